#!/usr/bin/env python3
"""Runs nexar's collectives and those of Open MPI, MPICH and Gloo in turn, several rounds, and prints medians and ratios.

    bench/peers/collectives.py                                        all_reduce on loopback, 2 ranks, beside every peer that was built
    bench/peers/collectives.py --rate 10gbit --mtu 1500               between two namespaces on such a line
    bench/peers/collectives.py --op all --ranks 4 --transport net --json rows.json

Each number is the median over the rounds, and the range their least and greatest. A ratio is the peer's time over nexar's: above 1 nexar is faster, and within
10 % it is a tie. Namespaces need root. The peers are plain text; nexar is encrypted between hosts unless --plain. `plain-tcp` moves the bytes of an all_reduce of
two ranks and does nothing else.
"""
import argparse
import json
import os
import statistics
import sys
from pathlib import Path

from contenders import Asked, Failed, Nexar, peers_of
from cores import Cores
from places import Loopback, Wire

OPERATIONS = ["all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"]
SIZES = "8,1K,64K,1M,4M,16M,64M"
QUICK_SIZES = "8,64K,4M"


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", default="all_reduce", help=f"operations, or all: {','.join(OPERATIONS)}")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", default=None, help=SIZES)
    parser.add_argument("--beside", default=None, help="the peers; without it all that were built, but openmpi-shm-tuned")
    parser.add_argument("--transport", default="net", help="nexar's: auto, shm, net, quic, tcp")
    parser.add_argument("--algorithm", default="", help="nexar's; without it its own choice")
    parser.add_argument("--plain", action="store_true", help="nexar's bulk in plain text, as the peers' is")
    parser.add_argument("--shared", action="store_true", help="nexar's buffers from alloc_shared")
    parser.add_argument("--rate", help="two namespaces, with this rate on both ends: 10gbit")
    parser.add_argument("--burst", help="of the rate; 128k, or 64k at 1gbit")
    parser.add_argument("--mtu", type=int, help="two namespaces, with this MTU; 1500")
    parser.add_argument("--loss", type=float, help="two namespaces, with this percentage of packets lost")
    parser.add_argument("--rounds", type=int, default=None, help="5")
    parser.add_argument("--time", default=None, help="how long each size is measured in a round: 200ms")
    parser.add_argument("--iters", type=int, default=0, help="iterations of each size, instead of --time")
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a run is given up")
    parser.add_argument("--no-check", action="store_true", help="do not compare results with the oracle")
    parser.add_argument("--near", type=int, help="measures only while two cores are at most so many nanoseconds apart (cores.py)")
    parser.add_argument("--quick", action="store_true", help="few sizes, rounds and iterations: a minute")
    parser.add_argument("--json", help="write medians to this file")
    parser.add_argument("--bin", type=Path, default=Path(__file__).resolve().parents[2] / "build/release/bin")
    chosen = parser.parse_args()
    chosen.sizes = chosen.sizes or (QUICK_SIZES if chosen.quick else SIZES)
    chosen.rounds = chosen.rounds or (2 if chosen.quick else 5)
    chosen.time = chosen.time or ("50ms" if chosen.quick else "200ms")
    if chosen.op == "all":
        chosen.op = ",".join(OPERATIONS)
    return chosen


def place_of(chosen):
    if chosen.rate is None and chosen.mtu is None and chosen.loss is None:
        return Loopback()
    if os.geteuid() != 0:
        raise SystemExit("two namespaces need root")
    return Wire(mtu=chosen.mtu or 1500, rate=chosen.rate, burst=chosen.burst, loss=chosen.loss or 0)


def contenders_of(chosen):
    peers = peers_of(chosen.bin, chosen.limit)
    wanted = [name for name, peer in peers.items() if not peer.only_when_asked] if chosen.beside is None else [name for name in chosen.beside.split(",") if name]
    for name in wanted:
        if name not in peers:
            raise SystemExit(f"--beside: there is no peer {name}, only {', '.join(peers)}")
    nexar = Nexar(chosen.bin, chosen.transport, chosen.plain, chosen.shared, chosen.algorithm, chosen.limit)
    if nexar.missing():
        raise SystemExit(nexar.missing())
    found = [nexar]
    for name in wanted:
        why = peers[name].missing()
        if why is None:
            found.append(peers[name])
        else:
            print(f"without {name}: {why}; `make peers` installs and builds it", flush=True)
    return found


class Results:
    """Rows of all rounds, by contender and size."""

    def __init__(self):
        self.rows, self.failures = {}, []

    def add(self, name, rows):
        for row in rows:
            if row["wrong"]:
                raise SystemExit(f"{name}: {row['wrong']} elements of {row['op']} over {row['bytes']} bytes were wrong")
            self.rows.setdefault((name, row["bytes"]), []).append(row)

    def measure(self, contenders, place, asked, rounds, cores):
        for _ in range(rounds):
            for contender in contenders:
                if not contender.can(place, asked):
                    continue
                try:
                    self.add(contender.name, cores.measured(lambda: contender.run(place, asked)))
                except Failed as failed:
                    self.failures.append(f"{contender.name}, {asked.op}: {failed}")
                    print(f"failed: {self.failures[-1]}", file=sys.stderr, flush=True)

    def sizes(self):
        return sorted({size for _, size in self.rows})

    def median(self, name, size, field="time_us"):
        rows = self.rows.get((name, size))
        return statistics.median(row[field] for row in rows) if rows else None

    def objects(self, place, plain):
        """An object for each contender and size, as in `nexar bench --json`, with the place, the spread and the ratio."""
        for (name, size), rows in self.rows.items():
            times = [row["time_us"] for row in rows]
            ours = self.median("nexar", size)
            middle = statistics.median(times)
            yield {**rows[0], "peer": name, "place": place.label, "plain": plain or name != "nexar", "rounds": len(rows), "time_us": middle, "time_us_min": min(times),
                   "time_us_max": max(times), "p99_us": self.median(name, size, "p99_us"), "algbw_GBps": size / middle / 1e3 if middle else 0,
                   "busbw_GBps": self.median(name, size, "busbw_GBps") if "busbw_GBps" in rows[0] else None, "ratio": middle / ours if ours else None}

    def print(self, names):
        print(f"{'bytes':>12}{'nexar us':>12}{'[range]':>24}{'GB/s':>9}" + "".join(f"{name + ' us':>17}{'ratio':>8}" for name in names[1:]))
        for size in self.sizes():
            ours = [row["time_us"] for row in self.rows.get(("nexar", size), [])]
            middle = self.median("nexar", size)
            cells = f"{size:>12}" + (f"{middle:>12.1f}{f'[{min(ours):.1f}-{max(ours):.1f}]':>24}{size / middle / 1e3:>9.3f}" if ours else f"{'-':>12}{'':>33}")
            for name in names[1:]:
                theirs = self.median(name, size)
                ratio = f"{theirs / middle:>8.2f}" if theirs and middle else f"{'':>8}"
                cells += (f"{theirs:>17.1f}" if theirs else f"{'-':>17}") + ratio
            print(cells, flush=True)


def main():
    chosen = options()
    contenders = contenders_of(chosen)
    cores = Cores(chosen.bin, chosen.near)
    rows, failures = [], []
    with place_of(chosen) as place:
        for op in chosen.op.split(","):
            asked = Asked(op, chosen.sizes.split(","), chosen.ranks, chosen.time, chosen.iters, not chosen.no_check)
            present = [one for one in contenders if one.can(place, asked)]
            results = Results()
            results.measure(present, place, asked, chosen.rounds, cores)
            print(f"\n{op}, {chosen.ranks} ranks, {place.label}, nexar over {chosen.transport}{' in plain text' if chosen.plain else ''}, medians of {chosen.rounds}, "
                  f"cores {cores.take_range()} apart")
            results.print([one.name for one in present])
            rows += results.objects(place, chosen.plain)
            failures += results.failures
    if chosen.json:
        Path(chosen.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if any(failure.startswith("nexar,") for failure in failures) else 0


if __name__ == "__main__":
    sys.exit(main())
