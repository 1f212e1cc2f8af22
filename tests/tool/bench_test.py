#!/usr/bin/env python3
"""Usage: bench_test.py NEXAR: `nexar bench` of collectives measures, checks its results, and reports."""
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

NEXAR = sys.argv[1]
LIMIT = 120  # seconds; far more than anything here takes
FIELDS = ["op", "ranks", "bytes", "dtype", "redop", "transport", "algorithm", "time_us", "p99_us", "algbw_GBps", "busbw_GBps", "wrong"]
OPERATIONS = ["all_reduce", "all_reduce_rs_ag", "reduce_scatter", "reduce_scatter_v", "all_gather", "all_gather_v", "all_gather_bytes", "broadcast", "broadcast_bytes",
              "reduce", "gather", "gather_v", "gather_bytes", "scatter", "scatter_v", "all_to_all", "all_to_all_v", "scan", "exclusive_scan", "barrier"]


def run(*arguments, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NEXAR_")}
    return subprocess.run([NEXAR, "bench", *arguments], capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL, env={**environment, **variables})


class Bench(unittest.TestCase):
    def rows(self, *arguments):
        done = run(*arguments, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_rows_have_every_field_and_right_results(self):
        rows = self.rows("all_reduce", "-n", "3", "--bytes", "8,100K", "--iters", "5", "--check")
        self.assertEqual([row["bytes"] for row in rows], [8, 102400])
        for row in rows:
            self.assertEqual(list(row), FIELDS)
            self.assertEqual((row["op"], row["ranks"], row["dtype"], row["redop"], row["wrong"]), ("all_reduce", 3, "f32", "sum", 0))
            self.assertGreater(row["time_us"], 0)
            self.assertGreaterEqual(row["p99_us"], row["time_us"])
            self.assertAlmostEqual(row["algbw_GBps"], row["bytes"] / row["time_us"] / 1e3)
            self.assertAlmostEqual(row["busbw_GBps"], row["algbw_GBps"] * 4 / 3)

    def test_all_is_every_operation_over_three_types(self):
        rows = self.rows("all", "-n", "2", "--bytes", "1000", "--iters", "3", "--check")
        self.assertEqual(list(dict.fromkeys(row["op"] for row in rows)), OPERATIONS)
        for row in rows:
            self.assertEqual(row["wrong"], 0, row)
        self.assertEqual([row["dtype"] for row in rows if row["op"] == "scan"], ["f32", "bf16", "i32"])
        self.assertEqual(len([row for row in rows if row["op"] == "barrier"]), 1)

    def test_every_reduction_of_a_type_can_be_asked_for(self):
        rows = self.rows("reduce_scatter", "-n", "2", "--bytes", "64", "--dtype", "u16,f16", "--op", "all", "--iters", "2", "--check", "--out-of-place", "--root", "1")
        self.assertEqual([(row["dtype"], row["redop"]) for row in rows], [("u16", op) for op in ("sum", "prod", "min", "max", "avg", "and", "or", "xor")] +
                         [("f16", op) for op in ("sum", "prod", "min", "max", "avg")])
        self.assertEqual({row["wrong"] for row in rows}, {0})

    def test_ranges_of_sizes_and_algorithms(self):
        rows = self.rows("all_gather", "-n", "2", "--bytes", "64-1K*4", "--algorithm", "ring", "--iters", "2")
        self.assertEqual([row["bytes"] for row in rows], [64, 256, 1024])
        self.assertEqual({(row["algorithm"], row["wrong"]) for row in rows}, {("ring", None)})

    def test_rows_name_the_algorithm_that_was_chosen(self):
        # Thresholds decide: what is small goes by few hops, what is large by the ring.
        rows = self.rows("all_reduce", "-n", "3", "--bytes", "8,1M,16M", "--iters", "2", "--transport", "net")
        self.assertEqual([row["algorithm"] for row in rows], ["recursive_doubling", "ring", "pipelined_ring"])
        row, = self.rows("all_reduce_rs_ag", "-n", "3", "--bytes", "1K", "--iters", "2", "--in-flight", "2")
        self.assertEqual((row["algorithm"], row["transport"]), ("ring+ring", "shm"))
        row, = self.rows("all_reduce", "-n", "3", "--bytes", "1K", "--iters", "2")
        self.assertEqual((row["algorithm"], row["transport"]), ("shared_memory", "shm"))
        row, = self.rows("all_reduce", "-n", "2", "--bytes", "1K", "--iters", "2", "--algorithm", "direct")
        self.assertEqual((row["algorithm"], row["transport"]), ("direct", "shm"))

    def test_several_calls_at_once(self):
        for op in ("all_reduce", "all_gather_bytes", "scan"):
            row, = self.rows(op, "-n", "3", "--bytes", "100K", "--in-flight", "5", "--iters", "2", "--check")
            self.assertEqual((row["op"], row["in_flight"], row["wrong"]), (op, 5, 0))
            row, = self.rows(op, "-n", "3", "--bytes", "100K", "--in-sequence", "5", "--iters", "2", "--check")
            self.assertEqual((row["op"], "in_flight" in row, row["wrong"]), (op, False, 0))

    def test_the_transport_is_what_was_asked_for(self):
        rows = self.rows("broadcast", "-n", "2", "--bytes", "8", "--iters", "2", "--transport", "quic")
        self.assertEqual([row["transport"] for row in rows], ["quic"])

    def test_the_table_has_the_columns_of_nccl_tests(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.json"
            done = run("reduce", "-n", "2", "--bytes", "8,64", "--iters", "3", "--check", "--json", str(file))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(len(json.loads(file.read_text())), 2)
        head, units, *lines = done.stdout.splitlines()
        self.assertEqual(head.split(), ["#", "op", "size", "count", "type", "redop", "time", "p99", "algbw", "busbw", "#wrong", "transport", "algorithm"])
        self.assertEqual(units.split(), ["#", "(B)", "(elements)", "(us)", "(us)", "(GB/s)", "(GB/s)"])
        self.assertEqual([line.split()[:5] for line in lines], [["reduce", "8", "2", "f32", "sum"], ["reduce", "64", "16", "f32", "sum"]])
        self.assertNotIn("\x1b", done.stdout)

    def test_a_terminal_sees_how_far_it_is(self):
        ours, theirs = pty.openpty()
        with subprocess.Popen([NEXAR, "bench", "scan", "-n", "2", "--iters", "3", "--bytes", "8,16"], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE) as process:
            os.close(theirs)
            self.assertEqual(process.wait(timeout=LIMIT), 0)
            shown = os.read(ours, 65536).decode()
        os.close(ours)
        self.assertIn("0 of 2", shown)
        self.assertIn("1 of 2", shown)
        self.assertNotIn("2 of 2", shown)
        self.assertRegex(shown, r"\x1b\[1A\x1b\[2Kscan")

    def test_ranks_of_a_world_that_others_started(self):
        base = {name: value for name, value in os.environ.items() if not name.startswith("NEXAR_")}
        with tempfile.TemporaryDirectory() as folder:
            token = Path(folder) / "token"
            with subprocess.Popen([NEXAR, "seed", "--listen", "127.0.0.1:0", "--world", "2", "--token-file", token, "--once"], stdout=subprocess.PIPE, text=True, env=base) as seed:
                address = re.match(r"seed listening on (\S+)\n", seed.stdout.readline()).group(1)
                ranks = [subprocess.Popen([NEXAR, "bench", "scatter", "--bytes", "64", "--iters", "3", "--check"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True, env={**base, "NEXAR_SEED": address, "NEXAR_TOKEN_FILE": str(token)}) for _ in range(2)]
                ended = [rank.communicate(timeout=LIMIT) for rank in ranks]
                self.assertEqual([rank.returncode for rank in ranks], [0, 0], ended)
                seed.wait(timeout=LIMIT)
            self.assertEqual(sorted(len(out.splitlines()) for out, _ in ended), [0, 3])

    def test_what_cannot_be_measured_is_named(self):
        for arguments, named in ((["all_reduse"], "all_reduse"), (["all_reduce", "--bytes", "many"], "many"), (["all_reduce", "--dtype", "f7"], "f7"),
                                 (["all_reduce", "--op", "and"], "and"), (["all_reduce", "--op", "median"], "median"), (["scan", "--transport", "pigeon"], "pigeon")):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(named, done.stderr)
        for arguments, named in ((["broadcast", "-n", "2", "--root", "2"], "rank 2"), (["all_reduce", "-n", "2", "--algorithm", "spiral"], "spiral")):
            done = run(*arguments, "--bytes", "8", "--iters", "2")
            self.assertNotEqual(done.returncode, 0, arguments)
            self.assertIn(named, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
