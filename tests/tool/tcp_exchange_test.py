#!/usr/bin/env python3
"""Usage: tcp_exchange_test.py TCP_EXCHANGE: the plain-TCP yardstick measures, checks its bytes, refuses, and leaves nobody behind."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TCP_EXCHANGE = sys.argv[1]
SMALL = ["--iters", "3", "--warmup", "1", "--repeat", "2", "--no-pin", "--limit", "60"]
FIELDS = {"op", "ranks", "bytes", "transport", "time_us", "p99_us", "algbw_GBps", "wrong"}
PATIENCE = 30  # seconds; reached only when something hangs


def run(*arguments):
    return subprocess.run([TCP_EXCHANGE, *arguments], capture_output=True, text=True, timeout=2 * PATIENCE)


def start(*arguments):
    return subprocess.Popen([TCP_EXCHANGE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children_of(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain")
        time.sleep(0.01)


class Measuring(unittest.TestCase):
    def check_rows(self, rows, mode, sizes):
        self.assertEqual([row["bytes"] for row in rows], sizes)
        for row in rows:
            self.assertLessEqual(FIELDS, row.keys())
            self.assertEqual((row["op"], row["ranks"], row["transport"], row["wrong"]), (mode, 2, "tcp", 0))
            self.assertGreater(row["time_us"], 0)
            self.assertGreaterEqual(row["p99_us"], row["time_us_min"])
            self.assertGreater(row["algbw_GBps"], 0)

    def test_every_mode_and_way_of_waiting_gives_right_bytes(self):
        for mode in ("exchange", "oneway", "pingpong"):
            for wait in ("spin", "block"):
                done = run("--mode", mode, "--wait", wait, "--bytes", "1,7,8,9,1K,300001", "--json", "-", *SMALL)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.check_rows(json.loads(done.stdout), mode, [1, 7, 8, 9, 1024, 300001])
                self.assertRegex(done.stderr, r"congestion (cubic|reno)")

    def test_a_message_may_be_longer_than_the_socket_buffers(self):
        done = run("--bytes", "2M", "--buffer", "64K", "--call", "8K", "--json", "-", *SMALL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_rows(json.loads(done.stdout), "exchange", [2 << 20])

    def test_json_goes_to_a_file_beside_the_table(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.json"
            done = run("--bytes", "64", "--json", str(path), *SMALL)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check_rows(json.loads(path.read_text()), "exchange", [64])
        self.assertIn("algbw", done.stdout)

    def test_two_ends_that_were_started_apart_find_each_other(self):
        for address in ("127.0.0.1", "[::1]"):
            with start("--listen", f"{address}:0", "--bytes", "1K", *SMALL) as server:
                line = server.stderr.readline()
                if "Cannot assign" in line or "Address family" in line:
                    self.skipTest(f"no {address} here")
                port = re.search(r"port (\d+)", line).group(1)
                done = run("--connect", f"{address}:{port}", "--bytes", "1K", "--json", "-", *SMALL)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.check_rows(json.loads(done.stdout), "exchange", [1024])
                self.assertEqual(server.wait(PATIENCE), 0)

    def test_ends_with_other_options_refuse_each_other(self):
        with start("--listen", "127.0.0.1:0", "--bytes", "1K", *SMALL) as server:
            port = re.search(r"port (\d+)", server.stderr.readline()).group(1)
            done = run("--connect", f"127.0.0.1:{port}", "--bytes", "2K", *SMALL)
            self.assertEqual(done.returncode, 1)
            self.assertIn("--bytes", done.stderr)
            self.assertEqual(server.wait(PATIENCE), 1)


class Refusing(unittest.TestCase):
    def test_bad_command_lines_are_refused_in_one_line(self):
        wrong = ((["--mode", "x"], "'x'"), (["--bytes", "0"], "'0'"), (["--bytes", "2G"], "'2'"), (["--bytes", "1,,2"], "''"), (["--bytes"], "--bytes"),
                 (["--iters", "0"], "'0'"), (["--iters", "1000001"], "1000001"), (["--bogus"], "--bogus"), (["word"], "word"),
                 (["--bytes", ",".join(["1"] * 65)], "64 sizes"), (["--repeat", "101"], "101"), (["--limit", "3601"], "3601"),
                 (["--listen", "127.0.0.1"], "ADDR:PORT"), (["--listen", "127.0.0.1:0", "--netns-client", "a"], "--netns"))
        for arguments, named in wrong:
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(done.stdout, "")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(named, done.stderr)

    def test_what_cannot_be_had_is_named(self):
        for arguments, named in ((["--address", "300.1.1.1"], "300.1.1.1"), (["--congestion", "nonesuch"], "nonesuch"),
                                 (["--netns-server", "nonesuch"], "/run/netns/nonesuch"), (["--json", "/nonesuch/x"], "/nonesuch/x"),
                                 (["--connect", "127.0.0.1:1"], "port 1")):
            done = run(*arguments, "--bytes", "8")
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn(named, done.stderr)

    def test_time_is_limited(self):
        done = run("--listen", "127.0.0.1:0", "--limit", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--limit", done.stderr)


class Ending(unittest.TestCase):
    def endless(self):
        supervisor = start("--bytes", "1K", "--iters", "1000000", "--repeat", "100", "--no-pin", "--limit", str(PATIENCE))
        wait_until(lambda: len(children_of(supervisor.pid)) == 2)
        return supervisor, children_of(supervisor.pid)

    def test_when_the_supervisor_goes_both_ends_go(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            supervisor, ends = self.endless()
            with supervisor:
                supervisor.send_signal(number)
                supervisor.wait(PATIENCE)
                wait_until(lambda: not any(is_running(pid) for pid in ends))

    def test_when_one_end_dies_all_end_and_say_so(self):
        for which in (0, 1):
            supervisor, ends = self.endless()
            with supervisor:
                os.kill(ends[which], signal.SIGKILL)
                self.assertEqual(supervisor.wait(PATIENCE), 1)
                self.assertFalse(any(is_running(pid) for pid in ends))
                self.assertIn("tcp_exchange: ", supervisor.stderr.read())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
