#!/usr/bin/env python3
"""Usage: exports_test.py LIBRARY INCLUDE_DIR: the shared library exports what the public headers declare, and nothing else."""
import re
import subprocess
import sys
import unittest
from pathlib import Path

LIBRARY, INCLUDE = sys.argv[1:3]


def exported():
    listed = subprocess.run(["nm", "-DC", "--defined-only", LIBRARY], capture_output=True, text=True, check=True)
    return [line.split(" ", 2)[2] for line in listed.stdout.splitlines()]


class Exports(unittest.TestCase):
    def test_every_symbol_is_declared_in_a_public_header(self):
        words = set(re.findall(r"\w+", " ".join(path.read_text() for path in Path(INCLUDE).rglob("*.h"))))
        symbols = exported()
        self.assertIn("nexar::info()", symbols)
        for symbol in symbols:
            name = re.match(r"(?:(?:typeinfo(?: name)?|vtable) for )?nexar::([\w:~]+)", symbol)
            self.assertIsNotNone(name, f"not of nexar: {symbol}")
            for part in name.group(1).replace("~", "").split("::"):
                self.assertIn(part, words, f"not in a public header: {symbol}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
