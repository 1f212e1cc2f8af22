#!/usr/bin/env python3
"""Usage: world_test.py NEXAR RING: real processes become worlds, and notice deaths."""
import os
import re
import signal
import subprocess
import sys
import unittest

NEXAR, RING = sys.argv[1:3]
LIMIT = 60  # seconds; far more than anything here takes
SHORT = {"NEXAR_HEARTBEAT_INTERVAL": "100ms", "NEXAR_HEARTBEAT_TIMEOUT": "1s"}


class World:
    """Ranks that each run under a shell that hides how they end, so that the launcher lets the survivors speak."""

    def __init__(self, size):
        self.process = subprocess.Popen([NEXAR, "run", "-n", str(size), "sh", "-c", '"$0" wait; true', RING], stdout=subprocess.PIPE, text=True,
                                        stdin=subprocess.DEVNULL, env={**os.environ, **SHORT})
        self.pids = {}
        while len(self.pids) < size:
            rank, pid = re.match(r"\[(\d+)\] pid (\d+) passed", self.process.stdout.readline()).groups()
            self.pids[int(rank)] = int(pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate(timeout=LIMIT)

    def verdicts(self):
        out, _ = self.process.communicate(timeout=LIMIT)
        return sorted(line for line in out.splitlines() if "peer_lost" in line or "came" in line)


class Worlds(unittest.TestCase):
    def test_of_many_sizes_form_and_end_at_different_times(self):
        for size in (2, 3, 5, 8, 16):
            done = subprocess.run([NEXAR, "run", "-n", str(size), RING, "leave"], capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(len(done.stdout.splitlines()), size)
            self.assertIn(f"passed {3 * size * (size - 1) // 2} among {size}\n", done.stdout)

    def test_survivors_of_a_kill_name_the_rank(self):
        with World(4) as world:
            os.kill(world.pids[2], signal.SIGKILL)
            verdicts = world.verdicts()
            self.assertEqual(len(verdicts), 3, verdicts)
            for verdict in verdicts:
                self.assertRegex(verdict, r"^\[[013]\] peer_lost: .*rank 2")

    def test_survivors_of_a_pause_name_the_rank_and_the_paused_one_ends_too(self):
        with World(3) as world:
            os.kill(world.pids[1], signal.SIGSTOP)
            first = sorted(next(line for line in world.process.stdout if "peer_lost" in line) for _ in range(2))
            for verdict, rank in zip(first, (0, 2)):
                self.assertRegex(verdict, rf"^\[{rank}\] peer_lost: .*rank 1")
            os.kill(world.pids[1], signal.SIGCONT)
            self.assertEqual(len(world.verdicts()), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
