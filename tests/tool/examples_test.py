#!/usr/bin/env python3
"""Usage: examples_test.py NEXAR DIRECTORY: every example runs as its comment says, and does what it says."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

NEXAR, EXAMPLES = sys.argv[1], Path(sys.argv[2])
SOURCES = Path(__file__).resolve().parents[2] / "examples"
LIMIT = 120  # seconds; far more than any takes
sys.path.insert(0, str(SOURCES.parent / "bench" / "peers"))
from places import Wire, inside  # noqa: E402


class Examples(unittest.TestCase):
    def ranks(self, name, *arguments):
        """What each rank printed, of the run that the first comment of the example shows."""
        shown = re.search(rf"//   nexar run -n (\d+) \./{name}\b", (SOURCES / f"{name}.cc").read_text())
        self.assertTrue(shown, f"{name}.cc does not show how to run it")
        done = subprocess.run([NEXAR, "run", "-n", shown.group(1), EXAMPLES / name, *arguments], capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return [[line.split("] ", 1)[1] for line in done.stdout.splitlines() if line.startswith(f"[{rank}] ")] for rank in range(int(shown.group(1)))]

    def test_there_is_a_test_of_each(self):
        tested = {name.removeprefix("test_") for tests in (Examples, TwoHosts) for name in dir(tests) if name.startswith("test_")}
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

    def test_rpc(self):
        self.assertEqual(self.ranks("rpc"), [[f"rank {rank}: 30 apples", f"rank {rank}: nobody has counted pear"] for rank in range(3)])

    def test_data_parallel(self):
        ends = set()
        for rank, lines in enumerate(self.ranks("data_parallel")):
            said = re.fullmatch(rf"rank {rank}: the loss went from 0\.[0-9]+ to (0\.00[0-9]+)", "\n".join(lines))
            self.assertTrue(said, lines)
            ends.add(said.group(1))
        self.assertEqual(len(ends), 1)

    def test_compressed(self):
        first, *others = self.ranks("compressed")
        self.assertEqual(first[0], "top_k(0.01): each step sends 44 bytes instead of 2000")
        for rank, lines in enumerate([first[1:], *others]):
            self.assertRegex("\n".join(lines), rf"^rank {rank}: a weight is off by 0\.00\d on average$")


class TwoHosts(unittest.TestCase):
    """The commands that two_hosts.cc shows, each in its host: a network namespace."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.token = Path(folder.name) / "token"

    def start(self, host, *words):
        process = subprocess.Popen(inside(host, *map(str, words)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def shown(self, command):
        """The words of the line of the example's comment that runs `command` on host a."""
        line = re.search(rf"(?m)^//   a\$ {re.escape(command)} (.*?)(   .*)?$", (SOURCES / "two_hosts.cc").read_text())
        self.assertTrue(line, f"two_hosts.cc does not show {command}")
        return [{"token": str(self.token), "a:7070": "10.78.0.1:7070"}.get(word, word) for word in line.group(1).split()]

    def test_two_hosts(self):
        if os.geteuid() != 0:
            self.skipTest("network namespaces need root")
        with Wire() as wire:
            a, b = wire.names
            seed = self.start(a, NEXAR, *self.shown("nexar"))
            self.assertIn("seed listening", seed.stdout.readline())
            ranks = [self.start(host, EXAMPLES / "two_hosts", *self.shown("./two_hosts")) for host in (a, b)]
            said = [rank.communicate(timeout=LIMIT) for rank in ranks]
        self.assertEqual([(rank.returncode, err) for rank, (_, err) in zip(ranks, said)], [(0, ""), (0, "")], said)
        lines = sorted(line for out, _ in said for line in out.splitlines())
        sums = [f"rank {rank}: 16777216 sums, 0 of them wrong" for rank in range(2)]
        self.assertEqual([line for line in lines if "sums" in line], sums)
        self.assertEqual([line for line in lines if " of 2, on host " in line], [f"rank {rank} of 2, on host {rank} of 2" for rank in range(2)])
        ways = [line for line in lines if "reaches" in line]
        for rank, line in enumerate(ways):
            self.assertRegex(line, rf"^rank {rank} reaches rank {1 - rank} at 10\.78\.0\.\d:\d+ by quic, large messages by tcp$")
        self.assertEqual(len(ways), 2)

    def test_two_hosts_says_what_is_wrong(self):
        for arguments, status, words in (((), 2, "usage"), (("127.0.0.1:1", "/nonesuch"), 1, "/nonesuch")):
            done = subprocess.run([EXAMPLES / "two_hosts", *arguments], capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual((done.returncode, done.stdout), (status, ""))
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
