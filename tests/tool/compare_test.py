#!/usr/bin/env python3
"""Usage: compare_test.py COMPARE: bench/compare says what became faster and slower."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMPARE = sys.argv[1]


def row(time, **fields):
    return {"op": "all_reduce", "ranks": 2, "bytes": 1024, "dtype": "f32", "redop": "sum", "transport": "quic", "algorithm": "ring", "time_us": time, **fields}


class Compare(unittest.TestCase):
    def compare(self, old, new, *options):
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("old.json", "new.json")]
            for file, rows in zip(files, (old, new)):
                file.write_text(json.dumps(rows))
            return subprocess.run([COMPARE, *map(str, files), *options], capture_output=True, text=True)

    def lines(self, old, new):
        done = self.compare(old, new)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()[1:]

    def test_names_what_changed_by_more_than_a_tie(self):
        sizes = [{"bytes": size} for size in (8, 16, 32)]
        lines = self.lines([row(100, **size) for size in sizes], [row(time, **size) for time, size in zip((50, 95, 150), sizes)])
        self.assertEqual([line.split()[10:] for line in lines], [["2.00", "faster"], ["1.05"], ["0.67", "SLOWER"]])

    def test_compares_only_what_is_the_same(self):
        lines = self.lines([row(10), row(10, ranks=4)], [row(10), row(10, transport="tcp")])
        self.assertEqual(len([line for line in lines if line.startswith("only in")]), 2)

    def test_names_another_algorithm_and_compares_all_the_same(self):
        line, = self.lines([row(10)], [row(5, algorithm="tree")])
        self.assertIn("quic ring>tree ", line)
        self.assertIn("faster", line)

    def test_compares_ratios_to_peers_of_the_same_run(self):
        lines = self.lines([row(10, peer="gloo", ratio=2)], [row(20, peer="gloo", ratio=3)])
        self.assertEqual(lines[0].split()[-1], "1.50")

    def test_fails_when_asked_to_and_nexar_is_slower(self):
        self.assertEqual(self.compare([row(10)], [row(20)], "--fail").returncode, 1)
        self.assertEqual(self.compare([row(10)], [row(10.5)], "--fail").returncode, 0)
        self.assertEqual(self.compare([row(10, peer="gloo")], [row(20, peer="gloo")], "--fail").returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
