#!/usr/bin/env python3
"""Usage: install_test.py BUILD_DIR COMPILER: the README's program builds and runs against the installed tree, by CMake and by pkg-config."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD, COMPILER = sys.argv[1:3]
HERE = Path(__file__).resolve().parent
README = HERE.parents[1] / "README.md"


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class InstalledTree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.prefix = Path(cls.folder.name) / "prefix"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        cls.libraries = next(cls.prefix.rglob("libnexar.so")).parent
        cls.consumer = Path(shutil.copytree(HERE / "consumer", Path(cls.folder.name) / "consumer"))
        (cls.consumer / "main.cc").write_text(re.search(r"```cpp\n(.*?)```", README.read_text(), re.DOTALL).group(1))

    def expect_ring(self, output):
        self.assertEqual(sorted(output.splitlines()), [f"[{rank}] rank {rank} of 3 got {(rank - 1) % 3 * 100} from rank {(rank - 1) % 3}" for rank in range(3)])

    def test_the_tool_is_there(self):
        self.assertIn("simd", run(self.prefix / "bin/nexar", "info"))
        for file in ("man/man1/nexar.1", "man/man1/nexar-run.1", "bash-completion/completions/nexar"):
            self.assertTrue((self.prefix / "share" / file).is_file(), file)

    def test_find_package_gives_both_libraries(self):
        out = Path(self.folder.name) / "cmake"
        run("cmake", "-S", self.consumer, "-B", out, f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_CXX_COMPILER={COMPILER}")
        run("cmake", "--build", out)
        for program in ("shared_consumer", "static_consumer"):
            self.expect_ring(run(self.prefix / "bin/nexar", "run", "-n", 3, out / program))

    def test_pkg_config_gives_the_shared_library(self):
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.libraries / "pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", "nexar", env=environment).split()
        program = Path(self.folder.name) / "by_pkg_config"
        run(COMPILER, "-std=c++20", self.consumer / "main.cc", "-o", program, *flags)
        environment["LD_LIBRARY_PATH"] = str(self.libraries)
        self.expect_ring(run(self.prefix / "bin/nexar", "run", "-n", 3, program, env=environment))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
