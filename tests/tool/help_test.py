#!/usr/bin/env python3
"""Usage: help_test.py NEXAR MANUAL: every command explains itself, and refuses what it does not understand in one line."""
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

NEXAR, MANUAL = sys.argv[1], Path(sys.argv[2])
SCREEN_LINES = 40
SCREEN_COLUMNS = 140


def run(*words):
    return subprocess.run([NEXAR, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)


def section(text, title):
    """The lines of a section of a help text."""
    lines = text.splitlines()
    if f"{title}:" not in lines:
        return []
    rest = lines[lines.index(f"{title}:") + 1:]
    return rest[:rest.index("")] if "" in rest else rest


def commands(*path):
    """Every command that help shows, as lists of words; the tool itself is the first."""
    yield list(path)
    for line in section(run(*path, "--help").stdout, "Subcommands"):
        if re.match(r"  \w", line):
            yield from commands(*path, line.split()[0])


ALL = list(commands())


def options_with_values(path):
    """(name, type) of each option that takes a value."""
    for line in run(*path, "--help").stdout.splitlines():
        match = re.match(r"  (?:-\w,)?(--?[\w-]+) ([A-Z][A-Z0-9:|-]*)", line)
        if match:
            yield match.groups()


class Help(unittest.TestCase):
    def assertRefused(self, done, *named):
        self.assertEqual((done.returncode, done.stdout), (2, ""), done)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for name in named:
            self.assertIn(name, done.stderr)

    def test_knows_the_commands(self):
        self.assertLessEqual({("doctor",), ("info",), ("run",), ("seed",), ("token", "new"), ("bench", "p2p"), ("bench", "join")}, {tuple(path) for path in ALL})

    def test_is_one_screen_with_examples(self):
        for path in ALL:
            done = run(*path, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            lines = done.stdout.splitlines()
            self.assertLessEqual(len(lines), SCREEN_LINES, path)
            self.assertLessEqual(max(len(line) for line in lines), SCREEN_COLUMNS, path)
            examples = section(done.stdout, "Examples")
            self.assertTrue(any(" ".join(["nexar", *path]) in example for example in examples), path)

    def test_unknown_options_are_refused_with_those_that_are_known(self):
        for path in ALL:
            self.assertRefused(run(*path, "--nonesuch"), "nexar " + " ".join(path) if path else "nexar", "unknown option --nonesuch", "accepted are", "--help")

    def test_unknown_commands_are_refused_with_those_that_are_known(self):
        for path in ALL:
            below = [other[-1] for other in ALL if other[:-1] == path and other != path]
            if below:
                self.assertRefused(run(*path, "nonesuch"), "unknown command nonesuch", "accepted are", *below)
                self.assertRefused(run(*path), "a command is missing", *below)

    def test_values_that_are_none_are_refused_with_what_is_accepted(self):
        tried = 0
        for path in ALL:
            for name, kind in options_with_values(path):
                self.assertRefused(run(*path, name), name, "accepted is")  # nothing after it
                if kind in ("INT", "UINT", "DURATION"):
                    self.assertRefused(run(*path, name, "x"), name, "accepted is")
                    tried += 1
        self.assertGreater(tried, 8)
        for words in (["bench", "p2p", "--bytes", "8,x"], ["bench", "p2p", "--mode", "sideways"], ["doctor", "--port", "70000"], ["doctor", "--port", "2-1"], ["seed", "--listen", "x:1", "--world", "0", "--token-file", "x"]):
            self.assertRefused(run(*words), "accepted is")

    def test_what_is_required_is_named(self):
        self.assertRefused(run("seed", "--world", "2", "--token-file", "x"), "--listen", "HOST:PORT")
        self.assertRefused(run("seed", "--listen", "x:1", "--world", "2"), "--seed-file", "--token-file")
        self.assertRefused(run("info", "more"), "more", "nexar info --help")


class Manual(unittest.TestCase):
    def test_has_a_page_of_every_command_with_all_of_its_options(self):
        for path in ALL:
            text = (MANUAL / "man1" / ("-".join(["nexar", *path]) + ".1")).read_text().replace("\\-", "-")
            for title in ("NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "EXIT STATUS"):
                self.assertIn(f".SH {title}\n", text)
            for name, _ in options_with_values(path):
                self.assertIn(name, text)

    @unittest.skipIf(shutil.which("groff") is None, "groff is not installed")
    def test_pages_are_good_roff(self):
        for page in (MANUAL / "man1").iterdir():
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page)
            self.assertIn("EXIT STATUS", re.sub(".\x08", "", done.stdout))  # without what makes it bold


class Completion(unittest.TestCase):
    def complete(self, *words):
        script = f'. "{MANUAL}/nexar.bash"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nexar; echo "${{COMPREPLY[*]}}"'
        done = subprocess.run(["bash", "-c", script, "bash", "nexar", *words], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_knows_commands_and_options_at_every_level(self):
        self.assertEqual(self.complete("do"), ["doctor"])
        self.assertEqual(sorted(self.complete("token", "")), ["--help", "-h", "new"])
        self.assertEqual(self.complete("bench", "p2p", "--by"), ["--bytes"])
        self.assertEqual(self.complete("doctor", "--json", "--st"), ["--strict"])
        self.assertEqual(self.complete("nonesuch"), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
