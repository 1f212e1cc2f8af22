#!/usr/bin/env python3
"""Runs the tests of one or more built presets and ends with one line: `N passed, N failed, N skipped`.

Failures and skips are named; the exit status is 1 if anything failed.
"""
import argparse
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run_preset(preset, long):
    report = ROOT / "build" / preset / "tests.xml"
    report.unlink(missing_ok=True)
    selection = ["-L", "^long$"] if long else ["-LE", "^long$"]
    print(f"-- {preset}{', long tests' if long else ''}", flush=True)
    command = ["ctest", "--preset", preset, "--parallel", str(2 * os.cpu_count()), "--output-junit", str(report), *selection]
    done = subprocess.run(command, cwd=ROOT)
    if not report.is_file():
        return done.returncode, []
    return done.returncode, [(case.get("name"), outcome(case)) for case in ElementTree.parse(report).iter("testcase")]


def outcome(case):
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed"
    return "passed" if case.get("status") == "run" else "skipped"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="the tests that take minutes, instead of the others")
    parser.add_argument("presets", nargs="+")
    arguments = parser.parse_args()

    counts = {"passed": 0, "failed": 0, "skipped": 0}
    named = []
    for preset in arguments.presets:
        status, cases = run_preset(preset, arguments.long)
        for name, result in cases:
            counts[result] += 1
            if result != "passed":
                named.append(f"{result}: {preset} {name}")
        if status != 0 and not any(result == "failed" for _, result in cases):
            counts["failed"] += 1
            named.append(f"failed: {preset}: ctest exited with {status}")
    print("\n".join(named))
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
