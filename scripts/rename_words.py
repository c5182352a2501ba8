#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Give identifiers the words of the field: rename_words.py [--check].

scripts/house_words.txt says which, and where. --check prints what would change and changes nothing.
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_TEXT = ("bench/results/", "tuning/", "docs/", "data/", "scripts/house_", "scripts/move_files.py",
            "scripts/rename_words.py")
CODE = (".c", ".h", ".cuh", ".cpp", ".inc")
NAME = re.compile(r"[A-Za-z_]\w*")
TEXT_OR_NAME = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|#\s*include[^\n]*|[A-Za-z_]\w*', re.S)


def read_sections():
    for line in (ROOT / "scripts/house_words.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if " > " not in line:
            kind, *folders = line.split()
            section = (kind, tuple(folders), {}, [])
            yield section
            continue
        old, new = line.split(" > ")
        if old.endswith("*"):
            section[3].append((old[:-1], new[:-1]))
        else:
            section[2][old] = new


def renamed(name, sections):
    for _, _, exact, prefixes in sections:
        if name in exact:
            return exact[name]
        for old, new in prefixes:
            if name.startswith(old):
                return new + name[len(old):]
    return name


def main():
    sections = list(read_sections())
    everywhere = [s for s in sections if s[0] == "all"]
    names = subprocess.run(["git", "-C", ROOT, "ls-files"], check=True, capture_output=True,
                           text=True).stdout.split("\n")
    for name in filter(None, names):
        path = ROOT / name
        if name.startswith(NOT_TEXT) or path.is_symlink() or path.suffix in (".gz", ".svg", ".png", ".csv"):
            continue
        text = path.read_text()
        here = [s for s in sections if s[0] == "code" and name.startswith(s[1])]

        def in_code(match):
            word = match[0]
            return word if not NAME.fullmatch(word) else renamed(word, here)

        new = NAME.sub(lambda match: renamed(match[0], everywhere), text)
        if here and path.suffix in CODE:
            new = TEXT_OR_NAME.sub(in_code, new)
        if new != text:
            print(name)
            if sys.argv[1:] != ["--check"]:
                path.write_text(new)


if __name__ == "__main__":
    main()
