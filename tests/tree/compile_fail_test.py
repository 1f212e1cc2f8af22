#!/usr/bin/env python3
"""Usage: compile_fail_test.py COMPILER INCLUDE_DIR: dropping a Result does not compile with the project's warnings."""
import subprocess
import sys
import unittest
from pathlib import Path

COMPILER, INCLUDE = sys.argv[1:3]
SOURCE = Path(__file__).resolve().parent / "compile_fail/dropped_result.cc"


def compile_with(define):
    command = [COMPILER, "-std=c++20", "-fsyntax-only", "-Wall", "-Werror", f"-I{INCLUDE}", f"-D{define}", str(SOURCE)]
    return subprocess.run(command, capture_output=True, text=True)


class DroppedResult(unittest.TestCase):
    def test_looking_at_it_compiles(self):
        done = compile_with("KEEP")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_dropping_it_does_not(self):
        for define in ("DROP_VOID", "DROP_VALUE"):
            done = compile_with(define)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("nodiscard", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
