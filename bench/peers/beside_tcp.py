#!/usr/bin/env python3
"""Runs `nexar bench p2p` and tcp_exchange in turn, on loopback and between two network namespaces, and prints medians and ratios.

Namespaces need root. Each number is the median over rounds; the range is their minimum and maximum. A ratio of bandwidths above 1, and of times below 1, is
nexar ahead.
"""
import argparse
import json
import statistics
import sys
from pathlib import Path

from places import run, wire_of

PLACES = ["loopback", "veth9000", "veth1500", "1gbit"]


def row(output):
    return json.loads(output)[0]


def compare(programs, where, mode, size, wait, rounds, iterations):
    nexar_where, tcp_where = where
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(row(run("env", "NEXAR_TRANSPORT=net", programs / "nexar", "bench", "p2p", "--mode", mode, "--bytes", size, "--wait", wait, "--iters", iterations, "--json", "-", *nexar_where)))
        theirs.append(row(run(programs / "tcp_exchange", "--mode", mode, "--bytes", size, "--wait", "block" if mode != "pingpong" else wait, "--iters", iterations,
                              "--repeat", 1, "--json", "-", *tcp_where)))
    if any(r["wrong"] for r in ours + theirs):
        raise SystemExit("bytes were wrong")
    key = "time_us" if mode == "pingpong" else "algbw_GBps"
    a, b = [r[key] for r in ours], [r[key] for r in theirs]
    return statistics.median(a), (min(a), max(a)), statistics.median(b), (min(b), max(b))


def report(place, programs, rounds):
    def line(mode, size, wait, iterations, where):
        a, a_range, b, b_range = compare(programs, where, mode, size, wait, rounds, iterations)
        unit = "us" if mode == "pingpong" else "GB/s"
        print(f"{place:<10}{mode + ' ' + size + ' ' + wait:<24}{a:>9.3f} [{a_range[0]:.3f}-{a_range[1]:.3f}]{b:>12.3f} [{b_range[0]:.3f}-{b_range[1]:.3f}] {unit:<5}"
              f"{a / b:>7.2f}", flush=True)

    if place == "loopback":
        here = ([], [])
        line("exchange", "64M", "spin", 8, here)
        line("pingpong", "8", "spin", 5000, here)
        line("pingpong", "8", "block", 3000, here)
        return
    with wire_of(place) as wire:
        line("exchange", "64M", "spin", 2 if place == "1gbit" else 8, (wire.nexar(), wire.tcp()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=Path, default=Path(__file__).resolve().parents[2] / "build/release/bin")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--place", choices=PLACES, action="append")
    arguments = parser.parse_args()
    print(f"{'':<34}{'nexar':>9}{'':<16}{'plain TCP':>12}{'':<21}  ratio")
    for place in arguments.place or PLACES:
        report(place, arguments.bin, arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
