#!/usr/bin/env python3
"""Runs `nexar bench p2p` and tcp_exchange in turn, on loopback and between two network namespaces, and prints medians and ratios.

Namespaces need root. Each number is the median over rounds; the range is their minimum and maximum. A ratio of bandwidths above 1, and of times below 1, is
nexar ahead.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

PLACES = ["loopback", "veth9000", "veth1500", "1gbit"]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class Wire:
    """Two namespaces joined by a cable, gone when the block ends."""

    def __init__(self, place):
        self.names = [f"nexar-beside-{os.getpid()}-{i}" for i in range(2)]
        self.mtu = 9000 if place == "veth9000" else 1500
        self.rate = place == "1gbit"

    def __enter__(self):
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "eth0", "mtu", self.mtu, "netns", self.names[0], "type", "veth", "peer", "name", "eth0", "mtu", self.mtu, "netns",
            self.names[1])
        for i, name in enumerate(self.names):
            run("ip", "-n", name, "addr", "add", f"10.78.0.{i + 1}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
            if self.rate:
                run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "1gbit", "burst", "64k", "latency", "5ms")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def nexar(self):
        return ["--netns", ",".join(self.names), "--address", "10.78.0.1,10.78.0.2"]

    def tcp(self):
        return ["--netns-server", self.names[0], "--netns-client", self.names[1], "--address", "10.78.0.1"]


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
    with Wire(place) as wire:
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
