#!/usr/bin/env python3
"""Whether the crossover between QUIC and the TCP lanes is right: `nexar bench` with both (net) and with either alone, in random order, several rounds.

    bench/peers/ways.py                                                  64 KiB to 4 MiB both ways at once between two nodes
    bench/peers/ways.py --op all_to_all --ranks 4 --sizes 256K,1M,4M     sizes are of all parts together, as in nexar bench
    bench/peers/ways.py --program OLD/nexar --program NEW/nexar          two builds in one run

Each number is the median over the rounds in microseconds. The ratio is that of `net` to the faster of its two ways: 1.1 is 10 % slower.
"""
import argparse
import json
import random
import statistics
import sys
from pathlib import Path

from cores import Cores
from places import run

WAYS = ["net", "quic", "tcp"]
SIZES = "64K,96K,128K,256K,512K,1M,2M,4M"


def command(program, way, operation, ranks):
    what = ["p2p", "--mode", "exchange"] if operation == "exchange" else [operation, "-n", ranks]
    return [program, "bench", *what, "--transport", way]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, action="append")
    parser.add_argument("--op", default="exchange", help="exchange, or a collective")
    parser.add_argument("--ranks", type=int, default=2, help="of a collective")
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--near", type=int, help="nanoseconds, see cores.py; without it wherever the cores are")
    arguments = parser.parse_args()
    programs = arguments.program or [Path(__file__).resolve().parents[2] / "build/release/bin/nexar"]
    cores = Cores(Path(__file__).resolve().parents[2] / "build/release/bin", arguments.near)

    runs = [(program, way) for program in programs for way in WAYS]
    taken = {}
    for _ in range(arguments.rounds):
        random.shuffle(runs)
        for program, way in runs:
            words = [*command(program, way, arguments.op, arguments.ranks), "--bytes", arguments.sizes, "--json", "-"]
            for row in json.loads(cores.measured(lambda: run(*words))):
                taken.setdefault((program, row["bytes"], way), []).append(row["time_us"])

    print(f"{arguments.op}, {arguments.ranks} ranks, {arguments.rounds} rounds, cores {cores.take_range()} apart")
    print(f"{'bytes':>10}" + "".join(f"{way:>11}" for way in WAYS) + f"{'ratio':>8}")
    for program in programs:
        if len(programs) > 1:
            print(program)
        for size in sorted({size for _, size, _ in taken}):
            net, quic, tcp = (statistics.median(taken[program, size, way]) for way in WAYS)
            print(f"{size:>10}{net:>11.1f}{quic:>11.1f}{tcp:>11.1f}{net / min(quic, tcp):>8.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
