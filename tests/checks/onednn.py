#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onednn.py ROOT PROGRAM

What the bench declares of oneDNN agrees with oneDNN's header, and PROGRAM (bench_conv) measures every pass with oneDNN.
This needs the folder build/onednn, which `make bench` and `make test-plain` make (scripts/with_onednn.sh). Without it
the status is 77, which CTest counts as skipped.
"""
import csv
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT, PROGRAM = Path(sys.argv[1]), sys.argv[2]
PLACE = ROOT / "build/onednn"
LAYERS = """\
dense in=2x5x9x8 out=7 kernel=3x2 stride=2x1 pad=1:0 dilation=1x2
depthwise in=2x16x8x8 out=16 kernel=5x5 groups=16 pad=2
signal in=2x8x40 out=16 kernel=5 groups=2 pad=2
volume in=1x4x5x6x7 out=8 kernel=3x3x3 pad=1
"""
# An initialiser of another function type is an error with -Werror.
DECLARATIONS = """\
#include <oneapi/dnnl/dnnl.h>
#include "conv/baselines/onednn_library.h"
#define SAME_VALUE(name, onednn_name, value) _Static_assert((long long)(onednn_name) == (value), #onednn_name);
ONEDNN_CONSTANTS(SAME_VALUE)
#define SAME_TYPE(result, member, parameters) result(*check_##member) parameters = dnnl_##member;
ONEDNN_FUNCTIONS(SAME_TYPE, dnnl_version_t, dnnl_exec_arg_t)
#define SAME_PLACE(type, field, onednn_type, onednn_field) \\
    _Static_assert(offsetof(type, field) == offsetof(onednn_type, onednn_field), #onednn_field);
SAME_PLACE(onednn_version, major, dnnl_version_t, major)
SAME_PLACE(onednn_version, minor, dnnl_version_t, minor)
SAME_PLACE(onednn_version, patch, dnnl_version_t, patch)
SAME_PLACE(onednn_version, cpu_runtime, dnnl_version_t, cpu_runtime)
SAME_PLACE(onednn_argument, argument, dnnl_exec_arg_t, arg)
SAME_PLACE(onednn_argument, memory, dnnl_exec_arg_t, memory)
_Static_assert(sizeof(onednn_argument) == sizeof(dnnl_exec_arg_t), "dnnl_exec_arg_t");
"""


def declaration_faults():
    for compiler in filter(shutil.which, ["gcc", "clang"]):
        ended = subprocess.run(
            [compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-isystem",
             PLACE / "root/usr/include", *(f"-I{ROOT / name}" for name in ("bench", "src", "include")), "-xc", "-"],
            input=DECLARATIONS, stderr=subprocess.PIPE, text=True)
        if ended.returncode != 0:
            yield ended.stderr


def row_faults(folder):
    layers, out = folder / "layers.txt", folder / "conv.csv"
    layers.write_text(LAYERS)
    ended = subprocess.run(
        [ROOT / "scripts/with_onednn.sh", PROGRAM, "--suite", layers, "--out", out, "--seconds", "0.001", "--threads",
         "1", "--commit", "c0ffee"], stderr=subprocess.PIPE, text=True, env={**os.environ, "CONV_FFT_LIBRARY_PATH": ""})
    text = out.read_text() if out.exists() else ""
    if ended.returncode != 0 or ", oneDNN 3." not in text:
        yield f"status {ended.returncode}: {ended.stderr}\n{text}"
        return
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    errors = {(row["case"], row["pass"], row["impl"]): float(row["rel_l2"]) for row in rows}
    for name in (line.split()[0] for line in LAYERS.splitlines()):
        for passname in ("fprop", "bprop", "accgrad", "backward"):
            for impl in ("onednn", "onednn-blocked"):
                error = errors.get((name, passname, impl))
                if error is None or not 0 < error < 1e-5:
                    yield f"{name} {passname} {impl}: error {error}"


def main():
    if not (PLACE / "stamp").exists():
        print("build/onednn does not exist; scripts/with_onednn.sh makes it")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        found = [*declaration_faults(), *row_faults(Path(folder))]
    print("\n".join(found) or "oneDNN: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
