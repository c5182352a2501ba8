#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that src/ includes in one direction only.

    include_direction.py ROOT         check ROOT/src
    include_direction.py --self-test  check that wrong trees are refused
"""
import re
import sys
import tempfile
from pathlib import Path

# A folder includes its own files and what stands to its right. cpu stands aside.
ORDER = ["api", "autotune", "conv", "tiling", "fbfft", "cuda", "core"]
ALLOWED = {folder: set(ORDER[i:]) for i, folder in enumerate(ORDER)}
ALLOWED["cpu"] = {"cpu", "core"}
for user in ("conv", "fbfft"):
    ALLOWED[user].add("cpu")

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def faults(root):
    src, public = root / "src", root / "include"
    sources = [path for path in sorted(src.rglob("*")) if path.suffix in (".c", ".h", ".inc", ".cuh")]
    if not sources:
        yield f"{src}: no sources"
    for path in sources:
        where = path.relative_to(src)
        folder = where.parts[0]
        if folder not in ALLOWED:
            yield f"src/{where}: folder '{folder}' has no place in the order"
            continue
        for name in INCLUDE.findall(path.read_text()):
            if (src / name).is_file():
                other = Path(name).parts[0]
                if other not in ALLOWED[folder]:
                    yield f"src/{where}: '{folder}' must not include '{other}' (\"{name}\")"
            elif not (public / name).is_file():
                yield f"src/{where}: \"{name}\" is neither in src/ nor in include/ (paths start at src/)"


def self_test():
    """Each tree has one fault, but the first, which has none."""
    trees = [
        (0, {"conv/a.c": "cpu/b.h", "cpu/b.h": "core/c.h", "core/c.h": "conv_fft.h", "api/a.c": "autotune/d.h",
             "autotune/d.h": "tiling/e.h", "tiling/e.h": "cuda/jit/f.h", "cuda/jit/f.h": "cuda/jit/f.h"}),
        (1, {"core/a.c": "tiling/b.h", "tiling/b.h": "core/c.h", "core/c.h": "conv_fft.h"}),
        (1, {"tiling/a.c": "cpu/b.h", "cpu/b.h": "core/c.h", "core/c.h": "conv_fft.h"}),
        (1, {"cpu/a.c": "tiling/b.h", "tiling/b.h": "conv_fft.h"}),
        (1, {"api/a.c": "cpu/b.h", "cpu/b.h": "conv_fft.h"}),
        (1, {"conv/a.c": "api/b.h", "api/b.h": "conv_fft.h"}),
        (1, {"core/a.c": "b.h"}),
        (1, {"extra/a.c": "conv_fft.h"}),
        (1, {"a.c": "conv_fft.h"}),
        (1, {}),
    ]
    for expected, tree in trees:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "include").mkdir()
            (root / "include" / "conv_fft.h").touch()
            for name, included in tree.items():
                path = root / "src" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f'#include <stdio.h>\n  #  include "{included}"\n')
            found = list(faults(root))
            if len(found) != expected:
                yield f"tree {tree}: expected {expected} faults, found {found}"


def main():
    found = list(self_test() if sys.argv[1] == "--self-test" else faults(Path(sys.argv[1])))
    print("\n".join(found) or "include direction: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
