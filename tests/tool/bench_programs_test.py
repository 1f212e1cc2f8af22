#!/usr/bin/env python3
"""Usage: bench_programs_test.py NEXAR BIN: the programs of bench/ that training asks for run to their end and print every row."""
import os
import re
import subprocess
import sys
import unittest

NEXAR, BIN = sys.argv[1:3]
LIMIT = 120  # seconds; far more than anything here takes


def run(*words, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NEXAR_")}
    return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL, env={**environment, **variables})


class BenchTensor(unittest.TestCase):
    ROW = re.compile(r"\[0\] (.+?) +([0-9.]+) +\[([0-9]+)-([0-9]+)\](?: +([0-9.]+)  (.+))?")

    def rows(self, transport):
        done = run(NEXAR, "run", "-n", "2", f"{BIN}/bench_tensor", "1", NEXAR_TRANSPORT=transport)
        self.assertEqual(done.returncode, 0, done.stderr)
        heading, *rows = done.stdout.splitlines()
        self.assertEqual(heading.split(), ["[0]", "case", "us", "[range]", "times", "beside"])
        return [self.ROW.fullmatch(row).groups() for row in rows]

    def check(self, transport):
        rows = self.rows(transport)
        times = {name: float(us) for name, us, *_ in rows}
        self.assertEqual(len(times), 10)
        for name, us, least, most, ratio, beside in rows:
            self.assertGreater(float(us), 0, name)
            self.assertLessEqual(int(least), float(us), name)
            self.assertLessEqual(float(us), int(most) + 1, name)  # the range is cut to whole numbers
            if beside:
                self.assertAlmostEqual(float(ratio), float(us) / times[beside], delta=0.01 + 0.001 * float(ratio), msg=name)
        self.assertEqual({name: beside for name, *_, beside in rows}["bucketed, 1000 of 4 KiB"], "one of 4 MB")

    def test_by_memory(self):
        self.check("shm")

    def test_by_messages(self):
        self.check("net")

    def test_alone_it_says_what_is_missing(self):
        done = run(f"{BIN}/bench_tensor", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("NEXAR_SEED", done.stderr)


class BenchCompress(unittest.TestCase):
    def test_every_row_is_printed(self):
        done = run(f"{BIN}/bench_compress", "1", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("a += b", "sort", "top_k"):
            self.assertIn(name, done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
