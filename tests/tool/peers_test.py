#!/usr/bin/env python3
"""Usage: peers_test.py BIN PEERS: those of the peers that were built give right results, and the harness sets nexar beside them."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BIN, PEERS = map(Path, sys.argv[1:3])
LIMIT = 200  # seconds; far more than anything here takes
sys.path.insert(0, str(PEERS))
from collectives import OPERATIONS  # noqa: E402
from contenders import Asked, Failed, finish, peers_of, rows_of, start  # noqa: E402
from cores import Cores  # noqa: E402
from places import Loopback  # noqa: E402


class Peers(unittest.TestCase):
    def test_all_give_right_results(self):
        together = ",".join(OPERATIONS)  # what is measured at once is measured out of place
        with Loopback() as place:
            for peer in peers_of(BIN, LIMIT).values():
                for op in (together, "all_reduce"):
                    asked = Asked(op, ["4K"], 2, "1ms", 3, True)
                    if peer.missing() or not peer.can(place, asked):
                        continue
                    with self.subTest(peer=peer.name, op=op):
                        rows = peer.run(place, asked)
                        self.assertEqual([(row["op"], row["bytes"], row["wrong"]) for row in rows], [(one, 0 if one == "barrier" else 4096, 0) for one in op.split(",")])

    def test_the_harness_prints_ratios_and_writes_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.json"
            done = subprocess.run([PEERS / "collectives.py", "--bin", BIN, "--beside", "plain-tcp", "--sizes", "8,4K", "--rounds", "2", "--iters", "3", "--transport", "quic",
                                   "--json", file], capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            rows = json.loads(file.read_text())
        self.assertEqual(sorted((row["peer"], row["bytes"]) for row in rows), [("nexar", 8), ("nexar", 4096), ("plain-tcp", 8), ("plain-tcp", 4096)])
        for row in rows:
            self.assertEqual((row["rounds"], row["place"]), (2, "loopback"))
            self.assertLessEqual(row["time_us_min"], row["time_us"])
            self.assertLessEqual(row["time_us"], row["time_us_max"])
            ours = next(one["time_us"] for one in rows if one["peer"] == "nexar" and one["bytes"] == row["bytes"])
            self.assertAlmostEqual(row["ratio"], row["time_us"] / ours)
        self.assertIn("plain-tcp us", done.stdout)

    def test_rows_of_a_run_that_ends_badly_count_where_that_is_said_and_only_whole_ones(self):
        def run(text, **options):
            return rows_of(finish([start(["sh", "-c", f"echo '{text}'; exit 3"])], 10, **options))

        self.assertEqual(run('[{"a": 1}] bad termination', rows_suffice=True), [{"a": 1}])
        for text, options in (('[{"a": 1}]', {}), ('[{"a": 1},', {"rows_suffice": True}), ("", {"rows_suffice": True}), ("[]", {"rows_suffice": True})):
            with self.assertRaisesRegex(Failed, "status 3"):
                run(text, **options)

    def test_runs_count_only_while_the_cores_are_near(self):
        with tempfile.TemporaryDirectory() as folder:
            ways, at = Path(folder) / "ways", Path(folder) / "core_distance"
            at.write_text(f"#!/bin/sh\nhead -n1 {ways}\nsed -i 1d {ways}\n")
            at.chmod(0o755)
            ways.write_text("300\n50\n310\n60\n70\n")
            cores = Cores(Path(folder), 90)
            runs = iter(["apart when it was done", "near"])
            self.assertEqual(cores.measured(lambda: next(runs)), "near")
            self.assertEqual(cores.take_range(), "50-70 ns")
            self.assertEqual(cores.take_range(), "-")
            ways.write_text("300\n")
            self.assertEqual(Cores(Path(folder)).measured(lambda: "anywhere"), "anywhere")

    def test_a_peer_that_does_not_exist_is_named(self):
        done = subprocess.run([PEERS / "collectives.py", "--bin", BIN, "--beside", "pigeons"], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("pigeons", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
