#!/usr/bin/env python3
"""Usage: plot_test.py PLOT: bench/peers/plot.py draws every library's times where they belong."""
import json
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

PLOT = sys.argv[1]
SVG = "{http://www.w3.org/2000/svg}"
SIZES = [8, 1024, 65536, 4 << 20, 64 << 20]


def row(peer, size, time, op="all_reduce", **more):
    return {"peer": peer, "op": op, "ranks": 2, "bytes": size, "time_us": time, "time_us_min": 0.8 * time, "time_us_max": 1.5 * time, "place": "loopback", "transport": "shm", **more}


def sample():
    """Times that grow with the size; nexar's are half of the others'."""
    return [row(peer, size, factor * (1 + size / 1000), op) for op in ("all_reduce", "broadcast") for peer, factor in (("nexar", 1), ("openmpi-shm", 2), ("gloo", 20))
            for size in SIZES] + [row("nexar", 0, 3, "barrier")]


class Plot(unittest.TestCase):
    def draw(self, rows, *options):
        with tempfile.TemporaryDirectory() as folder:
            file, picture = Path(folder) / "rows.json", Path(folder) / "picture.svg"
            file.write_text(rows if isinstance(rows, str) else json.dumps(rows))
            done = subprocess.run([PLOT, file, picture, *options], capture_output=True, text=True, timeout=60)
            return done, xml.fromstring(picture.read_text()) if picture.exists() else None

    def picture(self, rows, *options):
        done, drawn = self.draw(rows, *options)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        return drawn

    def lines(self, drawn):
        """[(library, [(x, y)])]"""
        return [(one.get("data-peer"), [tuple(map(float, point.split(","))) for point in one.get("points").split()]) for one in drawn.iter(f"{SVG}polyline")]

    def texts(self, drawn):
        return [one.text for one in drawn.iter(f"{SVG}text")]

    def test_has_a_line_of_each_library_in_each_panel_and_a_legend(self):
        drawn = self.picture(sample())
        self.assertEqual(sorted(name for name, _ in self.lines(drawn)), sorted(2 * ["nexar", "openmpi-shm", "gloo"]))
        texts = self.texts(drawn)
        for name in ("nexar", "openmpi-shm", "gloo", "loopback, 2 ranks; nexar over shm"):
            self.assertEqual(texts.count(name), 1, name)
        for panel in ("all_reduce", "broadcast", "time", "size of a rank's buffer"):
            self.assertIn(panel, texts)
        self.assertNotIn("barrier", texts)  # it has no size

    def test_larger_is_to_the_right_slower_is_above_and_scales_are_logarithmic(self):
        drawn = self.picture(sample(), "--op", "all_reduce")
        lines = dict(self.lines(drawn))
        self.assertEqual(set(lines), {"nexar", "openmpi-shm", "gloo"})
        for points in lines.values():
            self.assertEqual(len(points), len(SIZES))
            self.assertEqual(points, sorted(points))
            self.assertEqual([y for _, y in points], sorted((y for _, y in points), reverse=True))
        gaps = [ours[1] - theirs[1] for ours, theirs in zip(lines["nexar"], lines["openmpi-shm"])]
        self.assertGreater(min(gaps), 0)
        self.assertLess(max(gaps) - min(gaps), 0.3)  # twice the time is the same distance everywhere
        width, height = (float(drawn.get(name)) for name in ("width", "height"))
        for points in lines.values():
            for x, y in points:
                self.assertTrue(0 < x < width and 0 < y < height, (x, y))

    def test_labels_axes_with_units(self):
        texts = self.texts(self.picture(sample()))
        self.assertTrue(any(re.fullmatch(r"\d+ KiB", one) for one in texts), texts)
        self.assertIn("8 B", texts)
        self.assertIn("1 ms", texts)

    def test_draws_one_size_and_names_that_nobody_knew(self):
        drawn = self.picture([row("pigeons & <co>", 8, 5)], "--title", "a < b")
        self.assertEqual([name for name, _ in self.lines(drawn)], ["pigeons & <co>"])
        self.assertIn("a < b", self.texts(drawn))

    def test_refuses_what_cannot_be_drawn_in_one_line(self):
        for rows, why in (("no json", "cannot be drawn"), ([], "nothing with a size"), ({"op": 1}, "no list"), ([{"op": "all_reduce", "bytes": 8}], "no time_us"),
                          ([row("nexar", 0, 1)], "nothing with a size")):
            done, drawn = self.draw(rows)
            self.assertEqual((done.returncode, drawn, len(done.stderr.splitlines())), (1, None, 1), rows)
            self.assertIn(why, done.stderr)
        done, _ = self.draw(sample(), "--op", "scan")
        self.assertIn("of scan", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
