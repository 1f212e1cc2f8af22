#!/usr/bin/env python3
"""Usage: tool_test.py NEXAR: the command line answers, and refuses in one line."""
import json
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

NEXAR = sys.argv[1]


def run(*arguments):
    return subprocess.run([NEXAR, *arguments], capture_output=True, text=True)


class Tool(unittest.TestCase):
    def test_info_names_version_cpu_simd_and_crypto(self):
        done = run("info")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], ["nexar", "compiler", "cpu", "features", "simd", "crypto"])

    def test_info_is_the_same_in_json(self):
        info = json.loads(run("info", "--json").stdout)
        self.assertEqual(info["version"], run("--version").stdout.strip())
        self.assertIn(info["simd"], info["simd_targets"])
        self.assertGreaterEqual(info["cores"], 1)
        self.assertRegex(info["crypto"], r"^AES-128-GCM by (ipsec-mb \(AVX-512\)|GnuTLS \d+\.\d+\.\d+)$")

    def test_bench_p2p_measures_and_verifies(self):
        done = run("bench", "p2p", "--bytes", "8,100000", "--iters", "5", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)
        self.assertEqual([(row["op"], row["bytes"]) for row in rows],
                         [(mode, size) for mode in ("pingpong", "oneway", "exchange") for size in (8, 100000)])
        for row in rows:
            self.assertEqual((row["ranks"], row["transport"], row["wrong"]), (2, "shm", 0))
            self.assertGreater(row["time_us"], 0)

    def test_bench_rpc_measures_calls_beside_messages(self):
        for arguments in ([], ["--in-process"]):
            done = run("bench", "rpc", "--iters", "20", "--no-load", "--json", "-", *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = json.loads(done.stdout)
            self.assertEqual([(row["op"], row["flight"]) for row in rows],
                             [("message", 1), ("call_quick", 1), ("call_pool", 1)]
                             + [(op, flight) for op in ("rate_quick", "rate_pool") for flight in (1, 4, 16, 64)])
            for row in rows:
                self.assertGreater(row["calls_per_s"], 0)
                self.assertGreater(row["ratio"], 0)

    def test_bench_join_measures_processes_and_threads(self):
        for arguments, op in (([], "join"), (["--in-process"], "join_in_process")):
            done = run("bench", "join", "-n", "4", "--json", "-", *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            row, = json.loads(done.stdout)
            self.assertEqual((row["op"], row["ranks"], row["transport"]), (op, 4, "quic"))
            self.assertLess(0, row["median_us"])
            self.assertLessEqual(row["median_us"], row["max_us"])
            self.assertLessEqual(row["max_us"], row["time_us"])
            self.assertLess(row["time_us"], row["whole_us"])

    def test_token_new_makes_two_files_for_their_owner_or_none(self):
        with tempfile.TemporaryDirectory() as folder:
            seed, token = Path(folder) / "seed", Path(folder) / "token"
            done = run("token", "new", "--seed-file", seed, "--token-file", token)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
            self.assertRegex(token.read_text(), r"^nxr1-[a-z0-9]{128}\n$")
            for file in (seed, token):
                self.assertEqual(file.stat().st_mode & 0o777, 0o600)
            for first, second, named in ((seed, f"{folder}/other", str(seed)), (f"{folder}/other", token, str(token)), ("/nonesuch/x", f"{folder}/other", "/nonesuch/x")):
                done = run("token", "new", "--seed-file", first, "--token-file", second)
                self.assertEqual(done.returncode, 1)
                self.assertIn(named, done.stderr)
            self.assertEqual(sorted(file.name for file in Path(folder).iterdir()), ["seed", "token"])

    def test_seed_says_where_it_listens_and_stays_until_interrupted(self):
        with tempfile.TemporaryDirectory() as folder:
            token = Path(folder) / "token"
            with subprocess.Popen([NEXAR, "seed", "--listen", "127.0.0.1:0", "--world", "2", "--token-file", token], stdout=subprocess.PIPE, text=True) as seed:
                self.assertRegex(seed.stdout.readline(), r"^seed listening on 127\.0\.0\.1:[1-9]\d*\n$")
                self.assertEqual(token.stat().st_mode & 0o777, 0o600)
                seed.send_signal(signal.SIGTERM)
                self.assertEqual(seed.wait(timeout=30), 0)
            done = run("seed", "--listen", "127.0.0.1:0", "--world", "2", "--token-file", token)
            self.assertEqual(done.returncode, 1)
            self.assertIn(str(token), done.stderr)

    def test_a_seed_that_cannot_listen_leaves_no_token(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("seed", "--listen", "nonesuch.invalid:1", "--world", "2", "--token-file", f"{folder}/token")
            self.assertEqual(done.returncode, 1)
            self.assertIn("nonesuch.invalid", done.stderr)
            self.assertEqual(list(Path(folder).iterdir()), [])

    def test_help_lists_the_commands(self):
        for arguments in (["--help"], ["info", "--help"]):
            done = run(*arguments)
            self.assertEqual(done.returncode, 0)
            self.assertIn("info", done.stdout)

    def test_bad_command_lines_are_refused_in_one_line(self):
        for arguments, named in ((["bench", "p2p", "--mode", "sideways"], "sideways"), (["bench"], "bench"), (["seed", "--listen", "x:1", "--world", "2"], "--seed-file"), (["token"], "token"), (["bogus"], "bogus"), ([], "command"), (["info", "--yaml"], "--yaml"), (["--wrong"], "--wrong"), (["info", "x"], "x")):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(done.stdout, "")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(named, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
