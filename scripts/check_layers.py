#!/usr/bin/env python3
"""Checks every include under src/ and include/ against src/LAYERS.

Prints one line for each breach, `file:line: rule`, and exits 1 if there is any. `--root DIR` checks another tree.
"""
import argparse
import fnmatch
import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCE_SUFFIXES = {".h", ".cc", ".cu"}


class Law:
    """src/LAYERS, parsed: who may include whom."""

    def __init__(self, path):
        self.allowed = {}  # layer -> set of layers
        self.public = {}  # public header -> layer
        self.only = []  # (header pattern, places)
        for number, raw in enumerate(path.read_text().splitlines(), 1):
            line = raw.split("#")[0].strip()
            if not line:
                continue
            head, colon, tail = line.partition(":")
            kind, *subjects = head.split()
            if not colon or kind not in ("layer", "public", "only") or not subjects:
                raise SystemExit(f"{path}:{number}: expected `layer NAME: LAYERS`, `public LAYER: HEADERS` or `only HEADERS: PLACES`")
            if kind == "layer":
                self.add_layer(subjects[0], tail.split(), f"{path}:{number}")
            elif kind == "public":
                self.public.update({header: subjects[0] for header in tail.split()})
            else:
                self.only += [(pattern, tail.split()) for pattern in subjects]

    def add_layer(self, name, uses, where):
        # A row may name only rows above it, so the law cannot contain a cycle.
        for used in uses:
            if used not in self.allowed:
                raise SystemExit(f"{where}: layer {name} uses {used}, which no row above declares")
        self.allowed[name] = set(uses)


class Checker:
    def __init__(self, root):
        self.root = root
        self.law = Law(root / "src" / "LAYERS")
        self.breaches = []

    def breach(self, path, line, rule):
        self.breaches.append(f"{path.relative_to(self.root)}:{line}: {rule}")

    def run(self):
        source = self.root / "src"
        for folder in sorted(p for p in source.iterdir() if p.is_dir()):
            if folder.name not in self.law.allowed:
                self.breach(folder, 0, f"folder {folder.name} has no row in src/LAYERS")
                continue
            for path in sorted(p for p in folder.rglob("*") if p.suffix in SOURCE_SUFFIXES):
                self.check_private(path, folder.name)
        for path in sorted((self.root / "include").rglob("*.h")):
            self.check_public(path)
        return self.breaches

    def includes(self, path):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                yield number, match.group(1) == '"', match.group(2)

    def check_private(self, path, layer):
        place = str(path.parent.relative_to(self.root / "src"))
        for number, quoted, name in self.includes(path):
            if not quoted:
                self.check_outside(path, number, name, place)
            elif name.startswith("nexar/"):
                self.check_use(path, number, layer, self.owner(path, number, name), name)
            elif not (self.root / "src" / name).is_file():
                self.breach(path, number, f'"{name}" is no file under src/; name it from there, or use <> for what is not ours')
            else:
                self.check_use(path, number, layer, name.split("/")[0], name)

    def owner(self, path, number, name):
        header = name.removeprefix("nexar/")
        if header not in self.law.public:
            self.breach(path, number, f"{name} is not declared public in src/LAYERS")
        return self.law.public.get(header)

    def check_use(self, path, number, layer, used, name):
        if used is None or used == layer or used in self.law.allowed[layer]:
            return
        may = ", ".join(sorted(self.law.allowed[layer])) or "no other layer"
        self.breach(path, number, f"layer {layer} may not include {name} of layer {used} (src/LAYERS: {layer} may use {may})")

    def check_outside(self, path, number, name, place):
        for pattern, places in self.law.only:
            inside = any(place == p or place.startswith(p + "/") for p in places)
            if fnmatch.fnmatch(name, pattern) and not inside:
                self.breach(path, number, f"<{name}> may be included only in {', '.join(places)} (src/LAYERS: only {pattern})")

    def check_public(self, path):
        header = str(path.relative_to(self.root / "include" / "nexar"))
        layer = self.law.public.get(header)
        if layer is None:
            self.breach(path, 0, f"public header {header} is not declared in src/LAYERS")
            return
        for number, quoted, name in self.includes(path):
            if quoted and name.startswith("nexar/"):
                self.check_use(path, number, layer, self.owner(path, number, name), name)
            elif quoted or "." in name or "/" in name:
                self.breach(path, number, f"public headers include only nexar/ and the standard library, not {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    breaches = Checker(parser.parse_args().root.resolve()).run()
    print("\n".join(breaches) if breaches else "layers: every include keeps to src/LAYERS")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
