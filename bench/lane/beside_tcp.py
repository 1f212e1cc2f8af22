#!/usr/bin/env python3
"""Runs lane_exchange and tcp_exchange in turn and prints their ratios.

    bench/lane/beside_tcp.py [--rounds N] [--place loopback|veth1500|veth9000]... [--bytes N] [-- options of lane_exchange]

The places but loopback need root. CPU seconds are those of both ends for a GB each way, without start-up: the difference between a long and a short run.
"""
import argparse
import json
import resource
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from places import wire_of  # noqa: E402


def measure(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    row = json.loads(done.stdout[done.stdout.index("["):])[0] if "--json" in command else {}
    if row.get("wrong"):
        raise SystemExit("bytes were wrong")
    return row, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Program:
    """One way of moving the bytes, with what was measured of it."""

    def __init__(self, name, command, size, iterations):
        self.name, self.command, self.size, self.iterations = name, command, size, iterations
        self.speeds, self.costs = [], []

    def once(self):
        row, long = measure([*self.command, "--iters", self.iterations])
        _, short = measure([*self.command, "--iters", 1])
        self.speeds.append(row["algbw_GBps"])
        self.costs.append((long - short) / ((self.iterations - 1) * self.size * 1e-9))


def report(place, arguments, where_lane, where_tcp):
    iterations = max(10, (640 << 20) // arguments.bytes)
    lane = [arguments.bin / "lane_exchange", "--json", "--bytes", arguments.bytes, *where_lane, *arguments.rest]
    programs = [
        Program("plain TCP", [arguments.bin / "tcp_exchange", "--repeat", 1, "--warmup", 2, "--bytes", arguments.bytes, "--json", "-", *where_tcp],
                arguments.bytes, iterations),
        Program("lane, encrypted", lane, arguments.bytes, iterations),
        Program("lane, plain", [*lane, "--plain"], arguments.bytes, iterations),
    ]
    for _ in range(arguments.rounds):
        for program in programs:
            program.once()
    reference = programs[0]
    for program in programs:
        speed, cost = statistics.median(program.speeds), statistics.median(program.costs)
        print(f"{place:<10}{program.name:<18}{speed:>7.3f} GB/s [{min(program.speeds):.3f}-{max(program.speeds):.3f}]"
              f"{speed / statistics.median(reference.speeds):>7.2f}x{cost:>9.3f} CPU s/GB [{min(program.costs):.3f}-{max(program.costs):.3f}]"
              f"{statistics.median(reference.costs) / cost:>7.2f}x", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=Path(__file__).resolve().parents[2] / "build/release/bin")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bytes", type=int, default=64 << 20)
    parser.add_argument("--place", choices=["loopback", "veth1500", "veth9000"], action="append")
    parser.add_argument("rest", nargs="*", help="options of lane_exchange, after --")
    arguments = parser.parse_args()
    for place in arguments.place or ["loopback", "veth1500", "veth9000"]:
        if place == "loopback":
            report(place, arguments, [], [])
            continue
        with wire_of(place) as wire:
            report(place, arguments, wire.tcp(), wire.tcp())
    return 0


if __name__ == "__main__":
    sys.exit(main())
