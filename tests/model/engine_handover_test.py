#!/usr/bin/env python3
"""Searches every state of src/runtime/engine.pml, and shows that the search finds mistakes.

engine_handover_test.py SPIN C_COMPILER MODEL
"""
import re
import subprocess
import sys
import tempfile

# Each is searched exhaustively, in seconds.
RIGHT = [
    {"WAITERS": 3, "WATCHERS": 0, "IDLE_TIMEOUTS": 0, "DEADLINES": 0},
    {"WAITERS": 2, "WATCHERS": 1, "IDLE_TIMEOUTS": 0, "DEADLINES": 0},
    {"WAITERS": 2, "WATCHERS": 0},
    {"WAITERS": 1, "WATCHERS": 1, "ROUNDS": 2},
]
WRONG = [{"WAITERS": 2, "WATCHERS": 1, "IDLE_TIMEOUTS": 0, "FAULT": fault} for fault in range(1, 7)]
DEPTH = 100_000  # steps of the longest path, ten times what is needed; beyond it a search would not be exhaustive


def search(spin, compiler, model, settings):
    """What the search printed, and how many errors it found."""
    with tempfile.TemporaryDirectory() as folder:
        defines = [f"-D{name}={value}" for name, value in settings.items()]
        subprocess.run([spin, *defines, "-a", model], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([compiler, "-w", "-O2", "-DSAFETY", "-o", "pan", "pan.c"], cwd=folder, check=True)
        found = subprocess.run(["./pan", f"-m{DEPTH}"], cwd=folder, check=True, capture_output=True, text=True)
        errors = re.search(r"errors: (\d+)", found.stdout)
        complete = "Search not completed" not in found.stdout and "max search depth too small" not in found.stdout
        return found.stdout, int(errors.group(1)) if errors else None, complete


def main():
    failed = False
    for settings in RIGHT + WRONG:
        output, errors, complete = search(*sys.argv[1:4], settings)
        states = re.search(r"(\d\S*) states, stored", output)
        expected = errors == 1 if "FAULT" in settings else errors == 0 and complete
        print(f"{'as expected' if expected else 'UNEXPECTED'}: {settings}: {errors} errors in {states.group(1) if states else '?'} states")
        if not expected:
            failed = True
            print(output)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
