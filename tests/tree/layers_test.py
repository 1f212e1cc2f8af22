#!/usr/bin/env python3
"""check_layers.py names file, line and rule of each kind of breach, and accepts what the law allows."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LAW = """\
layer base:
layer types: base
layer io: base types
public types: error.h
only sys/*: io
"""


class CheckLayers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.tree = Path(self.folder.name)
        self.write("src/LAYERS", LAW)
        self.write("src/base/bytes.h", "#pragma once\n")
        self.write("src/types/error.cc", '#include "nexar/error.h"\n#include "base/bytes.h"\n')
        self.write("src/io/udp.cc", '#include <sys/socket.h>\n#include "nexar/error.h"\n')
        self.write("src/io/udp.h", "#pragma once\n")
        self.write("include/nexar/error.h", "#pragma once\n#include <string>\n")

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def check(self):
        done = subprocess.run([sys.executable, ROOT / "scripts/check_layers.py", "--root", self.tree], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def assert_breach(self, *parts):
        code, output = self.check()
        self.assertEqual(code, 1, output)
        for part in parts:
            self.assertIn(part, output)

    def test_accepts_what_the_law_allows(self):
        self.assertEqual(self.check()[0], 0)

    def test_names_an_upward_include(self):
        self.write("src/base/bytes.h", '#pragma once\n\n#include "io/udp.h"\n')
        self.assert_breach("src/base/bytes.h:3:", "layer base may not include io/udp.h of layer io", "base may use no other layer")

    def test_names_an_upward_include_of_a_public_header(self):
        self.write("src/base/bytes.h", '#include "nexar/error.h"\n')
        self.assert_breach("src/base/bytes.h:1:", "layer base may not include nexar/error.h of layer types")

    def test_names_a_system_header_outside_its_place(self):
        self.write("src/types/error.cc", "#include <sys/socket.h>\n")
        self.assert_breach("src/types/error.cc:1:", "<sys/socket.h> may be included only in io")

    def test_names_a_private_or_foreign_include_in_a_public_header(self):
        self.write("include/nexar/error.h", '#include "base/bytes.h"\n#include <fmt/format.h>\n')
        self.assert_breach("include/nexar/error.h:1:", "include/nexar/error.h:2:", "not fmt/format.h")

    def test_names_a_folder_and_a_public_header_without_a_row(self):
        self.write("src/helpers/x.cc", "")
        self.write("include/nexar/other.h", "")
        self.assert_breach("src/helpers:0: folder helpers has no row", "include/nexar/other.h:0:")

    def test_names_an_include_that_is_not_from_the_root(self):
        self.write("src/io/udp.cc", '#include "udp.h"\n')
        self.assert_breach("src/io/udp.cc:1:", '"udp.h" is no file under src/')

    def test_refuses_a_law_with_a_cycle(self):
        self.write("src/LAYERS", "layer base: types\nlayer types: base\n")
        self.assert_breach("layer base uses types, which no row above declares")

    def test_every_real_layer_refuses_an_include_of_the_top(self):
        real = (ROOT / "src/LAYERS").read_text()
        rows = [line.split(":")[0].split()[1] for line in real.splitlines() if line.startswith("layer ")]
        self.write("src/LAYERS", real)
        self.write("src/runtime/node.h", "")
        below = rows[:rows.index("runtime")]
        for layer in below:
            self.write(f"src/{layer}/upward.cc", '#include "runtime/node.h"\n')
        _, output = self.check()
        for layer in below:
            self.assertIn(f"src/{layer}/upward.cc:1: layer {layer} may not include runtime/node.h of layer runtime", output)


if __name__ == "__main__":
    unittest.main()
