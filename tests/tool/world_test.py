#!/usr/bin/env python3
"""Usage: world_test.py NEXAR RING: real processes become worlds, and notice deaths."""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

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

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one core cannot be shared out")
    def test_ranks_spin_on_cores_of_their_own_and_not_on_one_that_they_share(self):
        core = min(os.sched_getaffinity(0))
        for options, before, waits in ((["--bind"], None, "crowded=false spins=true"), ([], None, "crowded=false spins=true"),
                                       ([], lambda: os.sched_setaffinity(0, {core}), "crowded=true spins=false")):
            done = subprocess.run([NEXAR, "run", "-n", "2", *options, RING, "leave"], capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL,
                                  env={**os.environ, "NEXAR_LOG": "debug"}, preexec_fn=before)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count(waits), 2, done.stderr)

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


def udp_port(family=socket.AF_INET, host="127.0.0.1"):
    """A UDP socket at a port that the kernel chose, and the port."""
    bound = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    bound.bind((host, 0))
    bound.settimeout(LIMIT)
    return bound, bound.getsockname()[1]


class ByHand(unittest.TestCase):
    """Seed and ranks that a test starts one by one. Whatever is left is killed at the end."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.seed_file, self.token_file = self.folder / "seed", self.folder / "token"
        subprocess.run([NEXAR, "token", "new", "--seed-file", self.seed_file, "--token-file", self.token_file], check=True)
        self.base = {name: value for name, value in os.environ.items() if not name.startswith("NEXAR_")}

    def start(self, words, **variables):
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**self.base, **variables})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def start_seed(self, world, *options, listen="127.0.0.1:0"):
        seed = self.start([NEXAR, "seed", "--listen", listen, "--world", str(world), "--seed-file", str(self.seed_file), *options])
        return seed, re.match(r"seed listening on (\S+)\n", seed.stdout.readline()).group(1)

    def start_ring(self, seed, what="leave", **variables):
        return self.start([RING, what], **{"NEXAR_SEED": seed, "NEXAR_TOKEN_FILE": str(self.token_file), **variables})

    def assertEnds(self, process, status=0):
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, status, out + err)
        return out if status == 0 else err

    def test_ranks_may_start_before_their_seed(self):
        nobody, port = udp_port()
        ranks = [self.start_ring(f"127.0.0.1:{port}") for _ in range(2)]
        callers = set()
        while len(callers) < 2:  # both have tried
            callers.add(nobody.recvfrom(65536)[1])
        nobody.close()
        self.start_seed(2, listen=f"127.0.0.1:{port}")
        for rank in ranks:
            self.assertIn("among 2", self.assertEnds(rank))

    def test_the_world_goes_on_when_its_seed_is_killed(self):
        seed, address = self.start_seed(3)
        ranks = [self.start_ring(address, "again") for _ in range(3)]
        for rank in ranks:
            self.assertRegex(rank.stdout.readline(), r"passed \d+ among 3")
        seed.kill()
        seed.wait(timeout=LIMIT)
        for rank in ranks:
            rank.stdin.close()
            rank.stdin = None
        for rank in ranks:
            self.assertRegex(self.assertEnds(rank), r"^again \d+\n$")

    def test_a_different_configuration_is_named_with_the_rank(self):
        seed, address = self.start_seed(2, "--formation", "3s")
        ranks = [self.start_ring(address, NEXAR_RANK=str(rank), NEXAR_WORLD_SIZE="2", NEXAR_REPRODUCIBLE=reproducible)
                 for rank, reproducible in ((0, "true"), (1, "false"))]
        told = [self.assertEnds(rank, status=1) for rank in ranks]
        refused = next(rank for rank in (0, 1) if "refused" in told[rank])  # whoever came second
        ours, theirs = ("true", "false") if refused == 0 else ("false", "true")
        self.assertRegex(told[refused], rf"pid {ranks[refused].pid}' is configured with reproducible={ours}, and rank {1 - refused} \(.*pid {ranks[1 - refused].pid}\) with reproducible={theirs}")
        self.assertIn(f"missing: rank {refused}", told[1 - refused])
        self.assertEnds(seed, status=1)

    def test_a_seed_that_cannot_be_reached_is_named(self):
        nobody, port = udp_port()
        nobody.close()
        for address in (f"127.0.0.1:{port}", "nobody.invalid:7070"):
            told = self.assertEnds(self.start_ring(address, NEXAR_JOIN_TIMEOUT="1s"), status=1)
            self.assertIn("timeout", told)
            self.assertIn(address, told)

    def test_a_token_file_that_is_of_no_use_is_named(self):
        public, malformed, missing = (self.folder / name for name in ("public", "malformed", "missing"))
        public.write_text(self.token_file.read_text())
        public.chmod(0o644)
        malformed.write_text("nxr1-something\n")
        malformed.chmod(0o600)
        for file in (public, malformed, missing):
            told = self.assertEnds(self.start_ring("127.0.0.1:9", NEXAR_TOKEN_FILE=str(file)), status=1)
            self.assertIn(str(file), told)
            self.assertNotIn(self.token_file.read_text().strip(), told)
            self.assertNotIn("something", told)

    def test_a_world_that_stays_incomplete_names_who_is_missing(self):
        seed, address = self.start_seed(3, "--formation", "1s")
        rank = self.start_ring(address, NEXAR_RANK="1", NEXAR_WORLD_SIZE="3", NEXAR_JOIN_TIMEOUT="3s")
        for process in (rank, seed):
            self.assertRegex(self.assertEnds(process, status=1), r"1 of 3 nodes have come within 1s: rank 1 \(.+\); missing: rank 0, 2")

    def test_a_rank_that_gives_up_before_the_seed_names_who_is_missing(self):
        _, address = self.start_seed(3, "--formation", "60s")
        self.start_ring(address, NEXAR_RANK="0", NEXAR_WORLD_SIZE="3")
        while "2 of 3" not in (told := self.assertEnds(self.start_ring(address, NEXAR_RANK="2", NEXAR_WORLD_SIZE="3", NEXAR_JOIN_TIMEOUT="1s"), status=1)):
            self.assertIn("missing: rank 0, 1", told)  # the other process has not come yet
        self.assertRegex(told, rf"through the seed at {address} within \S+ \(rank 1\); cause: timeout: 2 of 3 nodes have come: .*rank 0 \(.+\).*; missing: rank 1\b")
        self.assertEqual(told.count("nodes have come"), 1)

    def test_a_port_that_is_taken_is_named(self):
        _, address = self.start_seed(1)
        taken, port = udp_port(socket.AF_INET6, "::")
        also = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        also.bind(("0.0.0.0", port))
        self.assertIn(f":{port}", self.assertEnds(self.start_ring(address, NEXAR_PORT=str(port)), status=1))
        taken.close()
        also.close()

    def start_torchrun(self, world, port):
        """What torchrun's ranks find in their environment."""
        common = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "NEXAR_TOKEN": self.token_file.read_text().strip()}
        only = {"NEXAR_SEED_FILE": str(self.seed_file)}
        return [self.start([RING, "leave"], RANK=str(rank), LOCAL_RANK=str(rank), **common, **(only if rank == 0 else {})) for rank in range(world)]

    def test_rank_zero_runs_the_seed_under_torchrun(self):
        free, port = udp_port(socket.AF_INET6, "::")
        free.close()
        for rank in self.start_torchrun(3, port):
            self.assertRegex(self.assertEnds(rank), r"passed \d+ among 3\n$")

    def test_rank_zero_runs_the_seed_where_there_is_only_ipv4(self):
        taken, port = udp_port(socket.AF_INET6, "::")  # [::] cannot be opened there, as on a host without IPv6
        for rank in self.start_torchrun(2, port):
            self.assertRegex(self.assertEnds(rank), r"passed \d+ among 2\n$")
        taken.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
