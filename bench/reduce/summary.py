#!/usr/bin/env python3
"""Runs bench_reduce, interleaved and repeated, and prints medians as a table with the ratios that matter.

GB/s counts the bytes of one buffer (10^9 bytes). `native` is the plain loop compiled with -O3 -march=native.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict

SIZES = {4 << 10: "4 KiB", 256 << 10: "256 KiB", 64 << 20: "64 MiB"}
QUICK = "^(pair|native)/(f32|f16|bf16|i32)/sum/|^(many8|pairs7)/f32/sum/67108864$|^memcpy/"


def measure(program, quick):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [program, f"--benchmark_out={out.name}", "--benchmark_out_format=json", "--benchmark_repetitions=5",
                   "--benchmark_enable_random_interleaving=true", f"--benchmark_min_time={0.02 if quick else 0.05}"]
        command += [f"--benchmark_filter={QUICK}"] if quick else []
        # Newer versions of Google Benchmark want a unit here and older ones take none; both take a bare number, the newer with a remark.
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.load(open(out.name))


def medians(results):
    """(form, type, op, bytes) -> median GB/s and spread in percent of it."""
    samples = defaultdict(list)
    for run in results["benchmarks"]:
        if run.get("run_type") == "iteration":
            form, data_type, op, size = run["run_name"].split("/")[:4]
            samples[form, data_type, op, int(size)].append(run["bytes_per_second"] / 1e9)
    return {key: (statistics.median(values), 100 * (max(values) - min(values)) / statistics.median(values)) for key, values in samples.items()}


def print_table(rates):
    print(f"{'reduction':<12}" + "".join(f"{name:>10}{'native':>9}{'ratio':>7}" for name in SIZES.values()) + "   GB/s, median of 5")
    for data_type, op in dict.fromkeys((t, o) for form, t, o, _ in rates if form == "pair"):
        cells = ""
        for size in SIZES:
            ours = rates["pair", data_type, op, size][0]
            native = rates.get(("native", data_type, op, size))
            cells += f"{ours:>10.1f}" + (f"{native[0]:>9.1f}{ours / native[0]:>7.2f}" if native else f"{'':>16}")
        print(f"{data_type + ' ' + op:<12}{cells}")
    print(f"{'memcpy':<12}" + "".join(f"{rates['memcpy', 'u8', 'copy', size][0]:>10.1f}{'':>16}" for size in SIZES))


def print_many(rates):
    rows = [key for key in rates if key[0] == "many8"]
    print(f"\n{'8 sources':<20}{'one pass':>10}{'streaming':>11}{'7 pairs':>9}{'gain':>7}   GB/s of the result")
    for _, data_type, op, size in rows:
        once, pairs = rates["many8", data_type, op, size][0], rates["pairs7", data_type, op, size][0]
        streaming = rates.get(("many8_nt", data_type, op, size))
        print(f"{data_type + ' ' + op + ' ' + SIZES[size]:<20}{once:>10.2f}" + (f"{streaming[0]:>11.2f}" if streaming else f"{'':>11}")
              + f"{pairs:>9.2f}{once / pairs:>6.2f}x")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--quick", action="store_true", help="only a few reductions, some seconds")
    parser.add_argument("--json", help="where to write the raw results")
    arguments = parser.parse_args()
    results = measure(arguments.program, arguments.quick)
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump(results, out, indent=1)
    rates = medians(results)
    print_table(rates)
    print_many(rates)
    print(f"\nspread of repetitions (max - min): median {statistics.median(spread for _, spread in rates.values()):.0f} % of the rate")
    return 0


if __name__ == "__main__":
    sys.exit(main())
