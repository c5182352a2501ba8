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

# Folders of src. A folder includes its own files and those of the lines below, and nothing beside it.
ORDER = [
    ["api"],
    ["autotune"],
    ["conv"],  # families.c, the table of families
    ["conv/staged", "conv/fused", "conv/long1d", "conv/toeplitz", "conv/dft", "conv/implicit_gemm",
     "conv/spatial", "conv/cudnn", "conv/cufft"],
    ["conv/plan"],
    ["conv/gpu"],
    ["conv/problem"],
    ["tiling"],
    ["fbfft/plan"],
    ["fbfft/tensor_core", "fbfft/c2c_fp16", "fbfft/c2c_split"],
    ["fbfft/shared_memory", "fbfft/warp"],
    ["fbfft/common"],
    ["cpu", "cuda/libs", "cuda/compiler"],
    ["cuda/jit"],
    ["cuda/driver"],
    ["core"],
]
LINE = {folder: line for line, folders in enumerate(ORDER) for folder in folders}
FAMILIES = {"conv/staged", "conv/fused", "conv/long1d", "conv/toeplitz", "conv/dft", "conv/implicit_gemm",
            "conv/spatial", "conv/cudnn", "conv/cufft"}
ONLY = {"cpu": {"core"}, "tiling": {"core"}}  # they include these alone
NEVER = {"api": FAMILIES | {"cpu"}, "autotune": FAMILIES | {"cpu"}}  # they ask the table of families
# Exceptions from the order, with their reasons. An exception that is no longer needed is a fault.
EXCEPTIONS = {
    ("cuda/driver", "cuda/jit"): "a cf_gpu owns its cache of compiled kernels",
    ("cuda/driver", "cuda/libs"): "a cf_gpu owns its pools of library handles",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def folder_of(path):
    """The longest folder of ORDER that has the file. If there is none, the file's own folder."""
    parents = [parent.as_posix() for parent in path.parents]
    return next((parent for parent in parents if parent in LINE), parents[0])


def is_allowed(folder, other):
    if folder == other:
        return True
    below = LINE[other] > LINE[folder] and other not in NEVER.get(folder, ())
    return below and other in ONLY.get(folder, {other})


def faults(root, exceptions):
    src, public = root / "src", root / "include"
    sources = [path for path in sorted(src.rglob("*")) if path.suffix in (".c", ".h", ".inc", ".cuh")]
    needed = set()
    if not sources:
        yield f"{src}: no sources"
    for path in sources:
        where = path.relative_to(src)
        folder = folder_of(where)
        if folder not in LINE:
            yield f"src/{where}: folder '{folder}' has no place in the order"
            continue
        for name in INCLUDE.findall(path.read_text()):
            if not (src / name).is_file():
                if not (public / name).is_file():
                    yield f"src/{where}: \"{name}\" is neither in src/ nor in include/ (paths start at src/)"
                continue
            other = folder_of(Path(name))
            if other in LINE and is_allowed(folder, other):
                continue
            if (folder, other) in exceptions:
                needed.add((folder, other))
            else:
                yield f"src/{where}: '{folder}' must not include '{other}' (\"{name}\")"
    for folder, other in exceptions.keys() - needed:
        yield f"EXCEPTIONS: no file of '{folder}' includes '{other}' any more"


def self_test():
    """The expected number of faults, exceptions, and files with what each includes."""
    good = {"api/a.c": "autotune/b/c.h", "autotune/b/c.h": "conv/plan/d.h", "conv/plan/d.h": "fbfft/warp/e.h",
            "fbfft/warp/e.h": "fbfft/common/f.h", "fbfft/common/f.h": "cpu/g/h.h", "cpu/g/h.h": "core/i.h",
            "core/i.h": "conv_fft.h",
            "conv/families.c": "conv/fused/j.h", "conv/fused/j.h": "cuda/libs/k.h", "cuda/libs/k.h": "cuda/jit/l.h",
            "cuda/jit/l.h": "cuda/driver/m.h", "cuda/driver/m.h": "core/i.h"}
    trees = [(0, {}, good), (1, {}, {}), (1, {("cpu", "core"): ""}, {"core/a.h": "conv_fft.h"}),
             (0, {("core", "tiling"): ""}, {"core/a.c": "tiling/b.h", "tiling/b.h": "conv_fft.h"})]
    trees += [(1, {}, {name: included, included: "conv_fft.h"}) for name, included in [
        ("core/a.c", "tiling/b.h"), ("tiling/a.c", "cpu/b.h"), ("cpu/a.c", "cuda/jit/b.h"), ("cpu/a.c", "tiling/b.h"),
        ("api/a.c", "cpu/b.h"), ("api/a.c", "conv/staged/b.h"), ("autotune/model/a.c", "conv/cudnn/b.h"),
        ("conv/fused/a.c", "conv/staged/b.h"), ("conv/fused/a.c", "conv/b.h"), ("conv/plan/a.c", "conv/fused/b.h"),
        ("conv/plan/a.c", "api/b.h"), ("fbfft/common/a.c", "fbfft/warp/b.h"),
        ("fbfft/warp/a.c", "fbfft/shared_memory/b.h"),
        ("cuda/driver/a.c", "cuda/jit/b.h"), ("cuda/jit/a.c", "cuda/libs/b.h")]]
    trees += [(1, {}, {name: "conv_fft.h"}) for name in ("extra/a.c", "a.c", "fbfft/a.c")]
    trees += [(1, {}, {"core/a.c": "b.h"})]
    for expected, exceptions, tree in trees:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "include").mkdir()
            (root / "include" / "conv_fft.h").touch()
            for name, included in tree.items():
                path = root / "src" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f'#include <stdio.h>\n  #  include "{included}"\n')
            found = list(faults(root, exceptions))
            if len(found) != expected:
                yield f"tree {tree}: expected {expected} faults, found {found}"


def main():
    found = list(self_test() if sys.argv[1] == "--self-test" else faults(Path(sys.argv[1]), EXCEPTIONS))
    print("\n".join(found) or "include direction: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
