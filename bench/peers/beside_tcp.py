#!/usr/bin/env python3
"""Runs `nexar bench p2p` and tcp_exchange in turn, on loopback and between two network namespaces, and prints medians and ratios.

Namespaces need root. Each number is the median over rounds; the range is their minimum and maximum. A ratio of bandwidths above 1, and of times below 1, is
nexar ahead. The last column says how far apart two cores were, there and back; --near measures only where they are at most so far apart (`cores.py`).
"""
import argparse
import json
import statistics
import sys
from pathlib import Path

from cores import Cores
from places import run, wire_of

PLACES = ["loopback", "veth9000", "veth1500", "10gbit", "10gbit9000", "1gbit", "20ms", "20ms-lossy"]
LARGE = 64 << 20
ITERATIONS = {"1gbit": 2, "20ms": 2, "20ms-lossy": 1}  # of 64 MiB; 8 elsewhere


def row(output):
    return json.loads(output)[0]


class Ours:
    """nexar with one choice of transport."""

    def __init__(self, programs, transport, plain):
        self.program, self.plain = programs / "nexar", plain
        self.transport = transport
        self.name = transport + (" plain" if plain else "")

    def run(self, where, mode, size, wait, iterations):
        words = ["env", f"NEXAR_TRANSPORT={self.transport}"] + (["NEXAR_ENCRYPT_BULK=false", "NEXAR_LOG=error"] if self.plain else [])
        return row(run(*words, self.program, "bench", "p2p", "--mode", mode, "--bytes", size, "--wait", wait, "--iters", iterations, "--json", "-", *where))


def line(place, programs, cores, choices, where, mode, size, wait, iterations, rounds):
    nexar_where, tcp_where = where
    ours, theirs = {choice.name: [] for choice in choices}, []
    for _ in range(rounds):
        for choice in choices:
            ours[choice.name].append(cores.measured(lambda: choice.run(nexar_where, mode, size, wait, iterations)))
        theirs.append(cores.measured(lambda: row(run(programs / "tcp_exchange", "--mode", mode, "--bytes", size, "--wait", "block" if mode != "pingpong" else wait,
                                                     "--iters", iterations, "--repeat", 1, "--json", "-", *tcp_where))))
    if any(r["wrong"] for rows in [*ours.values(), theirs] for r in rows):
        raise SystemExit("bytes were wrong")
    key, unit = ("time_us", "us") if mode == "pingpong" else ("algbw_GBps", "GB/s")
    b = [r[key] for r in theirs]
    apart = cores.take_range()
    for name, rows in ours.items():
        a = [r[key] for r in rows]
        print(f"{place:<11}{name:<11}{mode + ' ' + size + ' ' + wait:<22}{statistics.median(a):>9.3f} {f'[{min(a):.3f}-{max(a):.3f}]':<19}{statistics.median(b):>9.3f} "
              f"{f'[{min(b):.3f}-{max(b):.3f}]':<19}{unit:<5}{statistics.median(a) / statistics.median(b):>6.2f}  {apart}", flush=True)


def iterations_of(place, size):
    scale = {"K": 1 << 10, "M": 1 << 20}
    bytes_ = int(size[:-1]) * scale[size[-1]]
    return min(ITERATIONS.get(place, 8) * (LARGE // bytes_), 2000)


def report(place, programs, cores, choices, sizes, rounds):
    if place == "loopback":
        here = ([], [])
        for size in sizes:
            line(place, programs, cores, choices, here, "exchange", size, "spin", iterations_of(place, size), rounds)
        line(place, programs, cores, choices[:1], here, "pingpong", "8", "spin", 5000, rounds)
        line(place, programs, cores, choices[:1], here, "pingpong", "8", "block", 3000, rounds)
        return
    with wire_of(place) as wire:
        for size in sizes:
            line(place, programs, cores, choices, (wire.nexar(), wire.tcp()), "exchange", size, "spin", iterations_of(place, size), rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=Path, default=Path(__file__).resolve().parents[2] / "build/release/bin")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--place", choices=PLACES, action="append")
    parser.add_argument("--transport", default="net", help="of nexar, one after the other: net,quic,tcp, and plain for net in plain text")
    parser.add_argument("--sizes", default="64M", help="of messages both ways at once: 64K,1M,64M")
    parser.add_argument("--near", type=int, help="nanoseconds; without it wherever the cores are")
    arguments = parser.parse_args()
    choices = [Ours(arguments.bin, "net" if name == "plain" else name, name == "plain") for name in arguments.transport.split(",")]
    print(f"{'':<44}{'nexar':>9}{'':<20}{'plain TCP':>9}{'':<24}  ratio  cores apart")
    cores = Cores(arguments.bin, arguments.near)
    for place in arguments.place or PLACES:
        report(place, arguments.bin, cores, choices, arguments.sizes.split(","), arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
