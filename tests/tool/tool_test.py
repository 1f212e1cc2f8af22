#!/usr/bin/env python3
"""Usage: tool_test.py NEXAR: the command line answers, and refuses in one line."""
import json
import subprocess
import sys
import unittest

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
            self.assertEqual((row["ranks"], row["transport"], row["wrong"]), (2, "quic", 0))
            self.assertGreater(row["time_us"], 0)

    def test_help_lists_the_commands(self):
        for arguments in (["--help"], ["info", "--help"]):
            done = run(*arguments)
            self.assertEqual(done.returncode, 0)
            self.assertIn("info", done.stdout)

    def test_bad_command_lines_are_refused_in_one_line(self):
        for arguments, named in ((["bench", "p2p", "--mode", "sideways"], "sideways"), (["bench"], "bench"), (["bogus"], "bogus"), ([], "command"), (["info", "--yaml"], "--yaml"), (["--wrong"], "--wrong"), (["info", "x"], "x")):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(done.stdout, "")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(named, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
