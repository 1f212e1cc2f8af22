#!/usr/bin/env python3
"""Draws what collectives.py --json has written: time against size, both logarithmic, one line for each library and one panel for each operation.

    bench/peers/plot.py build/same-host.json build/same-host.svg
    bench/peers/plot.py build/line.json docs/line.svg --op all_reduce --title "10 Gbit/s, 2 ranks"

A point is the median of the rounds; the bar through it reaches from the least to the greatest. Lower is faster. The SVG is written by hand: nothing has to be installed.
"""
import argparse
import json
import math
import sys
from pathlib import Path
from xml.sax.saxutils import escape

# Colours that people who see few of them tell apart, and a mark each.
STYLES = {"nexar": ("#0072B2", "circle"), "openmpi-tcp": ("#D55E00", "square"), "openmpi-shm": ("#E69F00", "square"), "mpich-tcp": ("#CC79A7", "diamond"),
          "mpich-shm": ("#009E73", "diamond"), "gloo": ("#56B4E9", "triangle"), "plain-tcp": ("#777777", "cross")}
OTHERS = [("#000000", "circle"), ("#8B4513", "square"), ("#6A3D9A", "diamond")]  # of libraries that have no style of their own

PANEL_WIDTH, PANEL_HEIGHT = 420, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 28, 34, 46  # what a panel leaves around its axes
HEAD = 62                                  # of the picture: title and legend
LEGEND_STEP = 118
INK, GRID = "#222222", "#DDDDDD"


class Unusable(Exception):
    """A file that there is nothing to draw of."""


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def time_text(us):
    for unit, name in ((1e6, "s"), (1e3, "ms"), (1, "us")):
        if us >= unit:
            return f"{us / unit:g} {name}"
    return f"{us * 1e3:g} ns"


class Axis:
    """From a logarithmic range to a range of the picture."""

    def __init__(self, low, high, begin, end):
        self.low, self.high, self.begin, self.end = math.log(low), math.log(high), begin, end

    def at(self, value):
        return self.begin + (math.log(value) - self.low) / (self.high - self.low) * (self.end - self.begin)


def size_ticks(low, high):
    """Powers of two, a few of them: every power, every second, every third, ... beginning with the first."""
    first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
    step = max(1, math.ceil((last - first) / 6))
    return [2 ** power for power in range(first, last + 1, step)]


def time_ticks(low, high):
    return [10.0 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def mark(shape, x, y, colour):
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
    if shape == "square":
        return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" fill="{colour}"/>'
    corners = {"diamond": ((0, -4.5), (4.5, 0), (0, 4.5), (-4.5, 0)), "triangle": ((0, -4.5), (4.2, 3.5), (-4.2, 3.5))}
    if shape in corners:
        return f'<polygon points="{" ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners[shape])}" fill="{colour}"/>'
    return f'<path d="M{x - 3.5:.1f},{y - 3.5:.1f} l7,7 m0,-7 l-7,7" stroke="{colour}" stroke-width="2"/>'


def text(x, y, words, anchor="middle", size=12, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{more}>{escape(str(words))}</text>'


def line(x1, y1, x2, y2, colour, width=1.0):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def panel(title, rows, styles, left, top):
    """One operation: its axes, and a line for each library."""
    sizes = [row["bytes"] for row in rows]
    times = [row.get(field) or row["time_us"] for row in rows for field in ("time_us", "time_us_min", "time_us_max")]
    xs, ys = size_ticks(min(sizes), max(max(sizes), 2 * min(sizes))), time_ticks(min(times), max(max(times), 1.01 * min(times)))
    x = Axis(xs[0], max(xs[-1], max(sizes)), left + LEFT, left + PANEL_WIDTH - RIGHT)
    y = Axis(ys[0], ys[-1], top + PANEL_HEIGHT - BOTTOM, top + TOP)
    parts = [text(left + LEFT, top + 22, title, "start", 14, ' font-weight="bold"')]
    for tick in xs:
        parts += [line(x.at(tick), y.begin, x.at(tick), y.end, GRID), text(x.at(tick), y.begin + 16, size_text(tick), size=11)]
    for tick in ys:
        parts += [line(x.begin, y.at(tick), x.end, y.at(tick), GRID), text(x.begin - 6, y.at(tick) + 4, time_text(tick), "end", 11)]
    parts += [line(x.begin, y.begin, x.end, y.begin, INK), line(x.begin, y.begin, x.begin, y.end, INK),
              text((x.begin + x.end) / 2, y.begin + 36, "size of a rank's buffer"),
              text(left + 14, (y.begin + y.end) / 2, "time", more=f' transform="rotate(-90 {left + 14:.1f} {(y.begin + y.end) / 2:.1f})"')]
    for name, (colour, shape) in reversed(styles.items()):  # nexar last, on top
        own = sorted((row for row in rows if row["peer"] == name), key=lambda row: row["bytes"])
        if not own:
            continue
        points = [(x.at(row["bytes"]), y.at(row["time_us"])) for row in own]
        parts.append(f'<polyline data-peer="{escape(name)}" points="{" ".join(f"{px:.1f},{py:.1f}" for px, py in points)}" fill="none" stroke="{colour}" '
                     f'stroke-width="{2.6 if name == "nexar" else 1.4}"/>')
        for row, (px, py) in zip(own, points):
            if row.get("time_us_min") and row.get("time_us_max"):
                parts.append(line(px, y.at(row["time_us_min"]), px, y.at(row["time_us_max"]), colour))
            parts.append(mark(shape, px, py, colour))
    return parts


def styles_of(rows):
    """The libraries that are there, nexar first, each with its colour and mark."""
    present = list(dict.fromkeys(row["peer"] for row in rows))
    names = [name for name in STYLES if name in present] + sorted(name for name in present if name not in STYLES)
    others = iter(OTHERS * (1 + len(names) // len(OTHERS)))
    return {name: STYLES.get(name) or next(others) for name in names}


def title_of(rows):
    """Where it was measured, and what carried nexar's bytes."""
    first = rows[0]
    ways = list(dict.fromkeys(str(row.get("transport")) for row in rows if row["peer"] == "nexar"))
    return f"{first.get('place', 'here')}, {first.get('ranks', '?')} ranks" + (f"; nexar over {', '.join(ways)}" if ways else "")


def picture(rows, title=None):
    """The SVG of rows, which are objects as collectives.py writes them."""
    operations = list(dict.fromkeys(row["op"] for row in rows))
    columns = min(len(operations), 1 if len(operations) == 1 else 2 if len(operations) <= 4 else 3)
    styles = styles_of(rows)
    width = max(columns * PANEL_WIDTH, LEFT + len(styles) * LEGEND_STEP)
    height = HEAD + math.ceil(len(operations) / columns) * PANEL_HEIGHT
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" fill="{INK}">',
             f'<rect width="{width}" height="{height}" fill="white"/>', text(LEFT, 24, title or title_of(rows), "start", 16)]
    for i, (name, (colour, shape)) in enumerate(styles.items()):
        at = LEFT + i * LEGEND_STEP
        parts += [line(at, 46, at + 24, 46, colour, 2.6 if name == "nexar" else 1.4), mark(shape, at + 12, 46, colour), text(at + 30, 50, name, "start")]
    for i, operation in enumerate(operations):
        parts += panel(operation, [row for row in rows if row["op"] == operation], styles, i % columns * PANEL_WIDTH, HEAD + i // columns * PANEL_HEIGHT)
    return "\n".join([*parts, "</svg>", ""])


def usable(rows, operations):
    """The rows that can be drawn: a barrier has no size."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Unusable("it is no list of rows")
    kept = []
    for row in rows:
        for field in ("op", "bytes", "time_us"):
            if field not in row:
                raise Unusable(f"a row has no {field}")
        if row["bytes"] > 0 and row["time_us"] and row["time_us"] > 0 and (not operations or row["op"] in operations):
            kept.append({"peer": "nexar", **row})
    if not kept:
        raise Unusable("there is nothing with a size and a time" + (f" of {', '.join(operations)}" if operations else ""))
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, help="of collectives.py --json, or nexar bench --json")
    parser.add_argument("picture", type=Path, help="the SVG to write")
    parser.add_argument("--op", default="", help="operations; without it all that are there")
    parser.add_argument("--title", help="instead of the place")
    chosen = parser.parse_args()
    try:
        rows = usable(json.loads(chosen.rows.read_text()), [op for op in chosen.op.split(",") if op])
    except (OSError, ValueError, Unusable) as failure:
        raise SystemExit(f"{chosen.rows} cannot be drawn: {failure}") from failure
    chosen.picture.write_text(picture(rows, chosen.title))
    return 0


if __name__ == "__main__":
    sys.exit(main())
