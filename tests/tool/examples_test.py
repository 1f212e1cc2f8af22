#!/usr/bin/env python3
"""Usage: examples_test.py NEXAR DIRECTORY: every example runs as its comment says, and does what it says."""
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

NEXAR, EXAMPLES = sys.argv[1], Path(sys.argv[2])
SOURCES = Path(__file__).resolve().parents[2] / "examples"
LIMIT = 120  # seconds; far more than any takes


class Examples(unittest.TestCase):
    def ranks(self, name, *arguments):
        """What each rank printed, of the run that the first comment of the example shows."""
        shown = re.search(rf"//   nexar run -n (\d+) \./{name}\b", (SOURCES / f"{name}.cc").read_text())
        self.assertTrue(shown, f"{name}.cc does not show how to run it")
        done = subprocess.run([NEXAR, "run", "-n", shown.group(1), EXAMPLES / name, *arguments], capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return [[line.split("] ", 1)[1] for line in done.stdout.splitlines() if line.startswith(f"[{rank}] ")] for rank in range(int(shown.group(1)))]

    def test_there_is_a_test_of_each(self):
        tested = {name.removeprefix("test_") for name in dir(self) if name.startswith("test_")}
        self.assertLessEqual({source.stem for source in SOURCES.glob("*.cc")}, tested)

    def test_hello(self):
        self.assertEqual(self.ranks("hello"), [[f"hello from rank {rank} of 3, on host 0 of 1"] for rank in range(3)])

    def test_send_recv(self):
        ranks = self.ranks("send_recv")
        self.assertEqual(ranks[0], ["rank 0 got a million times 2", "rank 0 has added up to 499500 meanwhile"])
        self.assertEqual(ranks[1], ['rank 1 got "greetings from rank 0"', "rank 1 got a million times 1", "rank 1 has added up to 499500 meanwhile"])

    def test_all_reduce(self):
        self.assertEqual(self.ranks("all_reduce"), [[f"rank {rank}: a million sums, each 10", f"rank {rank}: the largest rank is 3"] for rank in range(4)])

    def test_broadcast(self):
        self.assertEqual(self.ranks("broadcast"), [[f"rank {rank} was told rate=0.1 epochs=3", f"rank {rank}: the last of the table is 998001"] for rank in range(3)])

    def test_barrier(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.ranks("barrier", f"{folder}/note"), [[f'rank {rank} reads "written by rank 0"'] for rank in range(4)])
            self.assertEqual(list(Path(folder).iterdir()), [])

    def test_split(self):
        rows, columns = [3, 12], [3, 5, 7]
        self.assertEqual(self.ranks("split"), [[f"rank {rank} is rank {rank % 3} of row {rank // 3} (sum {rows[rank // 3]}) and rank {rank // 3} of column {rank % 3} (sum {columns[rank % 3]})"]
                                               for rank in range(6)])

    def test_data_parallel(self):
        found = {line for rank in self.ranks("data_parallel") for line in rank}
        self.assertEqual(found, {f"rank {rank} found y = 2.500 x -1.000" for rank in range(4)})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
