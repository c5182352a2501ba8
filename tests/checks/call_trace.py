#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A forward call on a GPU passes few files. Usage: call_trace.py PROGRAM ROOT

Runs the program (call_trace.c) for layers of several kinds. addr2line says in which file each function stands.
Inline functions of headers are not counted. The files of each call are printed in the order of the first entry.
"""

import os
import subprocess
import sys
import tempfile

MAX_FILES = 6
LAYERS = {
    "dense": "in=8x64x32x32 out=64 kernel=5x5 pad=2 math=default",
    "dense, 16-bit spectra": "in=8x64x32x32 out=64 kernel=7x7 pad=3 dtype=fp16 math=half",
    "depthwise": "in=8x64x56x56 out=64 groups=64 kernel=7x7 pad=3",
    "depthwise, long signals": "in=8x64x4096 out=64 groups=64 kernel=1024 pad=1023:0",
}


def files_of_call(program, root, line):
    with tempfile.TemporaryDirectory() as cache:
        run = subprocess.run([program, cache, line], capture_output=True, text=True, check=True)
    addresses = run.stdout.split()
    found = subprocess.run(["addr2line", "-e", program, *addresses], capture_output=True, text=True, check=True)
    source = os.path.join(root, "src") + os.sep
    files = []
    for place in found.stdout.splitlines():
        path = os.path.normpath(place.rsplit(":", 1)[0])
        if path.startswith(source) and path.endswith(".c") and path[len(source):] not in files:
            files.append(path[len(source):])
    return files


def main():
    program, root = sys.argv[1], os.path.realpath(sys.argv[2])
    failed = False
    for name, line in LAYERS.items():
        files = files_of_call(program, root, line)
        print(f"{name}: {len(files)} files: {' '.join(files)}")
        if not files or files[0] != "api/conv_fft.c" or "cuda/jit/kernel.c" not in files:
            print("  the trace is not whole")
            failed = True
        if len(files) > MAX_FILES:
            print(f"  a call may pass {MAX_FILES}")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
