#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Move files to the folders of the house, and mend what names them.

    move_files.py LIST PREFIX...

Tests are called after their folder and file, and so they are in scripts and manuals: test_gpu_tune -> gpu_test_tune.

LIST has lines `folder/` and below each `    old/path > new name`. Files whose new place begins with one of the prefixes
move (git mv). Then include lines, paths from the root, from src/ and from tests/, and bare names of moved files change
in every text file of the tree but results. A name that several folders have is written with its folder.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Files that are to be divided or merged keep one place until then.
UNTIL_DIVIDED = {
    "src/conv/gpu_stages.c": "src/conv/gpu/stages.c",
    "src/conv/kernels/stages.cuh": "src/conv/gpu/stages.cuh",
    "src/conv/kernels/scan.cuh": "src/conv/gpu/scan.cuh",
    "src/conv/stage_text.h": "src/conv/gpu/stage_text.h",
    "src/conv/scan_text.h": "src/conv/gpu/scan_text.h",
    "src/conv/product_text.h": "src/conv/gpu/gemm/kernel_text.h",
    "src/conv/fused_text.h": "src/conv/fused/kernel_text.h",
    "src/fbfft/kernel_text.h": "src/fbfft/common/kernel_text.h",
    "src/fbfft/tile.c": "src/fbfft/shared_memory/config.c",
    "src/fbfft/kernels/tile.cuh": "src/fbfft/shared_memory/tile.cuh",
}
NOT_TEXT = ("bench/results/", "tuning/", "docs/pictures/", "data/", "scripts/move_files.py", "scripts/house_moves.txt",
            "tests/checks/include_direction.py")
INCLUDE = re.compile(r'^(\s*#\s*include\s*["<])([^">]+)([">].*)$', re.M)


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout


def read_list(path, prefixes):
    moves, folder = {}, ""
    for line in Path(path).read_text().splitlines():
        if re.match(r"\S+/( |$)", line):
            folder = line.split()[0]
        elif match := re.match(r"    (\S+)(?: > (.*))?$", line):
            old, new = match[1], match[2]
            if new is None:
                new = folder + os.path.basename(old)
            elif "(" in new:
                new = UNTIL_DIVIDED.get(old)
            elif not new.startswith("src/"):
                new = folder + new
            new = UNTIL_DIVIDED.get(old, new)
            if new and new != old and new.startswith(tuple(prefixes)) and (ROOT / old).exists():
                moves[old] = new
    return moves


class Names:
    def __init__(self, moves):
        self.moves = moves
        stems = {}
        for path in git("ls-files").split():
            stems.setdefault(os.path.basename(moves.get(path, path)), []).append(path)
        self.paths, self.bare = {}, {}
        for old, new in moves.items():
            self.paths[old] = new
            for root in ("src/", "tests/"):
                if old.startswith(root) and new.startswith(root):
                    self.paths[old[len(root):]] = new[len(root):]
            name, told = os.path.basename(old), os.path.basename(new)
            if (len(stems[told]) > 1 or told == "shared_memory.cuh") and "/" in new[4:]:
                told = "/".join(new.split("/")[-2:])
            if "/kernels/" in old:
                self.paths["kernels/" + name] = told
            if name != os.path.basename(new):
                self.bare[name] = told
        tracked = [os.path.basename(path) for path in git("ls-files").split()]
        self.bare = {name: told for name, told in self.bare.items() if tracked.count(name) == 1}
        names = sorted(self.paths, key=len, reverse=True)
        self.path_pattern = re.compile(r"(?<![\w/.-])((?:\.\./)*)(" + "|".join(map(re.escape, names)) + r")(?![\w/-])")
        names = sorted(self.bare, key=len, reverse=True)
        self.bare_pattern = re.compile(r"(?<![\w/.*-])(" + "|".join(map(re.escape,
            names)) + r")(?!\w)") if names else None
        self.tests = {}
        for old, new in moves.items():
            if re.match(r"tests/(simt/)?test_\w+\.(c|cpp)$", old):
                stem, folder = os.path.splitext(os.path.basename(new))[0], new.split("/")[1]
                self.tests[os.path.splitext(os.path.basename(old))[0]] = f"{folder}_{stem}"
        told = "|".join(sorted(self.tests, key=len, reverse=True))
        self.quoted_pattern = re.compile(rf"(?<=[\"= ])({told})(?=[\"\\]| CONV_FFT)")
        self.test_pattern = re.compile(rf"\b({told})\b(?!\.c|\.h)") if told else None

    def include(self, path, name):
        """What an include line of the file (at its old place) says now."""
        own = os.path.normpath(os.path.join(os.path.dirname(path), name))
        for old in (own, "src/" + name, "tests/" + name, "tests/simt/" + name, "tests/support/" + name,
                    "bench/" + name):
            if (ROOT / old).exists() or old in self.moves:
                if old not in self.moves and not (old == own and path in self.moves):
                    return name
                new = self.moves.get(old, old)
                for root in ("src/", "tests/emulator/", "tests/", "bench/"):
                    if new.startswith(root):
                        return new[len(root):]
        return name

    def mend(self, path, text):
        def told(name, names):
            new = names[name]
            is_known = "/" in name or path.startswith("tests/") or not new.startswith(("support/", "api/", "gpu/"))
            return new if is_known else name

        lines = INCLUDE.split(text)
        for i in range(0, len(lines), 4):  # what is between include lines
            lines[i] = self.path_pattern.sub(lambda m: m[1] + told(m[2], self.paths), lines[i])
            if self.bare_pattern:
                lines[i] = self.bare_pattern.sub(lambda m: told(m[1], self.bare), lines[i])
        text = "".join(self.include(path, part) if i % 4 == 2 else part for i, part in enumerate(lines))
        if not self.tests or path.startswith("bindings/"):
            return text
        if path.endswith((".c", ".h", ".cpp", ".cuh")):  # functions have such names, too
            return self.quoted_pattern.sub(lambda m: self.tests[m[1]], text)
        return self.test_pattern.sub(lambda m: self.tests[m[1]], text)


def main():
    moves = read_list(sys.argv[1], sys.argv[2:])
    if not moves:
        sys.exit("move_files.py: nothing to move")
    clash = {new for new in moves.values() if list(moves.values()).count(new) > 1}
    if clash:
        sys.exit(f"move_files.py: two files would become {clash}")
    names = Names(moves)
    changed = {}
    for path in git("ls-files").split():
        if path.startswith(NOT_TEXT):
            continue
        try:
            text = (ROOT / path).read_text()
        except UnicodeDecodeError:
            continue
        mended = names.mend(path, text)
        if mended != text:
            changed[path] = mended
    for path, text in changed.items():
        (ROOT / path).write_text(text)
    for old, new in moves.items():
        (ROOT / new).parent.mkdir(parents=True, exist_ok=True)
        git("mv", old, new)
    print(f"{len(moves)} files moved, {len(changed)} changed")


if __name__ == "__main__":
    main()
