#!/usr/bin/env python3
"""Usage: compile_fail_test.py COMPILER INCLUDE_DIR: what must not compile with the project's warnings does not."""
import subprocess
import sys
import unittest
from pathlib import Path

COMPILER, INCLUDE = sys.argv[1:3]
SOURCES = Path(__file__).resolve().parent / "compile_fail"


def compile_with(source, define):
    command = [COMPILER, "-std=c++20", "-fsyntax-only", "-Wall", "-Werror", f"-I{INCLUDE}", f"-D{define}", str(SOURCES / source)]
    return subprocess.run(command, capture_output=True, text=True)


class DroppedResult(unittest.TestCase):
    def test_looking_at_it_compiles(self):
        done = compile_with("dropped_result.cc", "KEEP")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_dropping_it_does_not(self):
        for define in ("DROP_VOID", "DROP_VALUE"):
            done = compile_with("dropped_result.cc", define)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("nodiscard", done.stderr)


class Buffers(unittest.TestCase):
    def test_each_memory_as_what_it_is_compiles(self):
        done = compile_with("buffers.cc", "KEEP")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_one_memory_as_the_other_does_not(self):
        defines = ("HOST_POINTER", "HOST_POINTER_AS_DEVICE_POINTER", "HOST_BUFFER", "HOST_SPAN", "DEVICE_BUFFER", "DEVICE_POINTER")
        for define in defines:
            done = compile_with("buffers.cc", define)
            self.assertNotEqual(done.returncode, 0, define)
            self.assertRegex(done.stderr, "no matching|could not convert|no viable conversion|no known conversion|invalid conversion", define)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
