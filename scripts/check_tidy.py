#!/usr/bin/env python3
"""Checks what style asks of the tree and no compiler sees.

Prints `file:line: what is wrong` for each finding and exits 1 if there is any.
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROMISE = re.compile(r"\b(T" r"BD|T" r"ODO|F" r"IXME|X" r"XX)\b")  # split, so that this file keeps its own rule
TEXT = {".cc", ".h", ".cu", ".py", ".md", ".txt", ".cmake", ".json", ".sh", ".in", ".map"}
FILE_LINES_MAX = 600  # past this a file is two things
README_LINES_MAX = 25


def tracked_files():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.splitlines()]
    return [path for path in ROOT.rglob("*") if path.is_file() and "build" not in path.relative_to(ROOT).parts]


def check_lines(path):
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        if PROMISE.search(line):
            yield number, "a promise left in the tree: do it, or say what is"
        if line != line.rstrip():
            yield number, "white space at the end of the line"
    if path.suffix in {".cc", ".h", ".cu", ".py"} and len(lines) > FILE_LINES_MAX:
        yield len(lines), f"{len(lines)} lines: past {FILE_LINES_MAX} a file is two things"
    if path.suffix == ".h" and not any(line.startswith(("#pragma once", "#if defined(NEXAR_")) for line in lines):
        yield 1, "a header without #pragma once"


def check_folders():
    for folder in sorted(p for p in (ROOT / "src").iterdir() if p.is_dir()):
        readme = folder / "README.md"
        if not readme.is_file():
            yield folder, 0, "a source folder without README.md"
        elif len(readme.read_text().splitlines()) > README_LINES_MAX:
            yield readme, README_LINES_MAX, f"longer than {README_LINES_MAX} lines"


def main():
    findings = list(check_folders())
    for path in tracked_files():
        if path.is_file() and (path.suffix in TEXT or path.name in {"Makefile", "LAYERS", "run"}):
            findings += [(path, number, what) for number, what in check_lines(path)]
    for path, number, what in findings:
        print(f"{path.relative_to(ROOT)}:{number}: {what}")
    if not findings:
        print("tidy: nothing found")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
