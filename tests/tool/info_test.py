#!/usr/bin/env python3
"""Usage: info_test.py NEXAR RING: `nexar info --seed` shows worlds that run, to those who have the token."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

NEXAR, RING = sys.argv[1:3]
LIMIT = 60  # seconds; far more than anything here takes
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("NEXAR_")}
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "peers"))
from places import Wire, inside  # noqa: E402


class Info(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.token = Path(folder.name) / "token"

    def start(self, *words, **variables):
        process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**CLEAN, **variables})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def start_seed(self, world, *options, listen="127.0.0.1:0", before=()):
        self.seed_process = self.start(*before, NEXAR, "seed", "--listen", listen, "--world", world, "--token-file", self.token, *options)
        line = self.seed_process.stdout.readline()
        self.assertRegex(line, "^seed listening on ")
        self.seed = line.split()[-1]

    def start_rank(self, *before, **variables):
        return self.start(*before, RING, "wait", NEXAR_SEED=self.seed, NEXAR_TOKEN_FILE=str(self.token), **variables)

    def start_ranks(self, count, **variables):
        ranks = [self.start_rank(**variables) for _ in range(count)]
        for rank in ranks:
            self.assertRegex(rank.stdout.readline(), "^pid .* passed")  # the world stands
        return ranks

    def info(self, *arguments, before=(), **variables):
        variables.setdefault("NEXAR_TOKEN_FILE", str(self.token))
        return subprocess.run([*before, NEXAR, "info", *arguments], capture_output=True, text=True, timeout=LIMIT,
                              env={**CLEAN, **{name: value for name, value in variables.items() if value is not None}})

    def world(self, *arguments, status=0, **options):
        done = self.info("--json", *arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        return json.loads(done.stdout)


class OneHost(Info):
    def test_shows_ranks_links_with_the_reason_and_counters(self):
        self.start_seed(3)
        pids = sorted(str(rank.pid) for rank in self.start_ranks(3))
        world = self.world("--seed", self.seed)
        self.assertEqual((world["epoch"], world["hosts"], world["asked"]), (1, 1, f"{self.seed} (the seed)"))
        self.assertEqual([(rank["rank"], rank["host"], rank["answered"]) for rank in world["ranks"]], [(0, 0, True), (1, 0, True), (2, 0, True)])
        self.assertEqual(sorted(re.search(r"\d+$", rank["process"]).group() for rank in world["ranks"]), pids)
        self.assertEqual(len({rank["node"] for rank in world["ranks"]}), 3)
        for rank in world["ranks"]:
            self.assertEqual([link["rank"] for link in rank["links"]], [other for other in range(3) if other != rank["rank"]])
            self.assertIn(rank["address"], rank["addresses"])
            self.assertEqual(rank["counters"]["protocol_errors"], 0)
            for link in rank["links"]:
                self.assertEqual((link["state"], link["transport"], link["bulk"], link["reason"]), ("linked", "shm", "shm", "same host"))
        # Each passed three numbers on to the next.
        for rank in world["ranks"]:
            following = next(link for link in rank["links"] if link["rank"] == (rank["rank"] + 1) % 3)
            self.assertGreaterEqual(following["lanes"]["data"]["frames_sent"], 3)

        done = self.info("--seed", self.seed)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("3 ranks on 1 host, epoch 1", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^0 -> 1 +shm +shm .* same host$")

    def test_any_rank_will_do_when_the_seed_is_gone(self):
        self.start_seed(2, "--once")
        self.start_ranks(2, NEXAR_TRANSPORT="quic", NEXAR_INTERFACES="127.0.0.1", NEXAR_PORT="17100-17400")
        self.assertEqual(self.seed_process.wait(timeout=LIMIT), 0)
        for port in range(17100, 17400):  # where the ranks are: the first free ones of the range
            done = self.info("--json", "--timeout", "2s", "--seed", f"127.0.0.1:{port}")
            if done.returncode == 0:
                break
        world = json.loads(done.stdout)
        self.assertRegex(world["asked"], rf"^127.0.0.1:{port} \(rank [01]\)$")
        for rank in world["ranks"]:
            link, = rank["links"]
            self.assertEqual((link["transport"], link["bulk"], link["reason"]), ("quic", "quic", "same host, and the transport that was configured; TCP lanes: TCP lanes are not wanted here"))

    def test_a_rank_that_does_not_answer_is_named_and_is_the_status(self):
        self.start_seed(2)
        ranks = self.start_ranks(2, NEXAR_HEARTBEAT_TIMEOUT="60s", NEXAR_TRANSPORT="net")
        ranks[0].send_signal(19)  # SIGSTOP
        world = self.world("--seed", self.seed, "--timeout", "1s", status=1)
        silent, = (rank for rank in world["ranks"] if not rank["answered"])
        self.assertRegex(silent["error"], "nobody answered at .* within 1s")

    def test_says_how_many_have_come_to_a_world_that_is_not_complete(self):
        self.start_seed(2)
        rank = self.start_rank()
        done = self.info("--seed", self.seed)
        while "0 of 2" in done.stderr:
            done = self.info("--seed", self.seed)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("the world is not complete: 1 of 2 nodes have come", done.stderr)
        rank.kill()

    def test_nothing_is_told_to_who_has_no_or_another_token(self):
        self.start_seed(2)
        self.start_ranks(2)
        at_seed, own = self.seed, self.token
        rank = self.world("--seed", at_seed)["ranks"][0]["address"]
        self.token = own.with_name("other")
        self.start_seed(2)  # of another cluster, with a token of its own
        other = self.token.read_text().strip()
        for place in (at_seed, rank):
            done = self.info("--seed", place)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("another cluster", done.stderr)
            # The right cluster and authority with another secret: the last 51 letters.
            forged = own.read_text().strip()[:-51] + other[-51:]
            done = self.info("--seed", place, NEXAR_TOKEN=forged, NEXAR_TOKEN_FILE=None)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("the token is not this cluster's", done.stderr)
            done = self.info("--seed", place, NEXAR_TOKEN_FILE=None)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("NEXAR_TOKEN", done.stderr)
        self.token = own
        self.assertTrue(all(one["answered"] for one in self.world("--seed", at_seed)["ranks"]))  # and the world goes on

    def test_silence_and_nonsense_end_with_a_sentence(self):
        self.start_seed(1)
        for place, status, words in (("127.0.0.1:9", 1, "127.0.0.1:9"), ("nonesuch.invalid:1", 1, "nonesuch.invalid"), ("no-port", 2, "accepted is --seed HOST:PORT"),
                                     ("127.0.0.1:0", 2, "accepted is")):
            done = self.info("--seed", place, "--timeout", "300ms")
            self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (status, "", 1), place)
            self.assertIn(words, done.stderr)


@unittest.skipIf(os.geteuid() != 0, "network namespaces need root")
class TwoHosts(Info):
    def test_shows_what_is_between_hosts_and_what_within_one(self):
        with Wire() as wire:
            a, b = wire.names
            self.start_seed(3, listen="10.78.0.1:7070", before=inside(a))
            for rank in [self.start_rank(*inside(host)) for host in (a, a, b)]:
                self.assertRegex(rank.stdout.readline(), "^pid .* passed")
            world = self.world("--seed", self.seed, before=inside(b))  # seen from the other host
        self.assertEqual(world["hosts"], 2)
        hosts = [rank["host"] for rank in world["ranks"]]
        self.assertEqual(sorted(hosts), [0, 0, 1] if hosts.count(0) == 2 else [0, 1, 1])
        for rank in world["ranks"]:
            for link in rank["links"]:
                same = hosts[link["rank"]] == rank["host"]
                self.assertEqual((link["transport"], link["reason"].split(";")[0]), ("shm", "same host") if same else ("quic", "another host"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
