#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the machine code of the kernels of two builds, whatever names they have.

    compare_kernels.py [--jobs N] [--arch sm_90a] OLD NEW

OLD and NEW are folders of kernel sources. A build writes them where CONV_FFT_KEEP_SOURCE=FOLDER is set, for example by
the tests of tests/nvrtc. Each source is compiled by one NVRTC, and its .text sections are hashed. The two
sets of hashes must be the same: the sources may differ in names, order of files and comments only.
"""
import argparse
import collections
import concurrent.futures
import ctypes
import ctypes.util
import hashlib
import re
import struct
import sys
from pathlib import Path

OPTIONS = ["--std=c++17", "--device-as-default-execution-space"]  # what most kernels are compiled with


def load_nvrtc():
    for name in ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    sys.exit("compare_kernels: libnvrtc was not found; name its folder in LD_LIBRARY_PATH")


def compiled(nvrtc, text, options):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"kernel.cu", 0, None, None)
    given = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    status = nvrtc.nvrtcCompileProgram(program, len(options), given)
    if status:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.value.decode()[:2000])
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw


def text_sections(elf):
    """The bytes of the sections with machine code of a 64-bit ELF file."""
    offset, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQ", elf, offset + i * size) for i in range(count)]
    strings = sections[names][4]
    for name, _, _, _, start, length in sections:
        if elf[strings + name:].startswith(b".text"):
            yield elf[start:start + length]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    given = parser.parse_args()
    nvrtc = load_nvrtc()
    options = ["--gpu-architecture=" + given.arch, *OPTIONS]

    def digest(path):
        try:
            cubin = compiled(nvrtc, path.read_bytes(), options)
        except RuntimeError:  # a kernel in FP64
            cubin = compiled(nvrtc, path.read_bytes(), [*options, "-DCF_REAL=double"])
        texts = sorted(text_sections(cubin))
        name = re.sub("-[0-9a-f]{16}$", "", path.stem)
        return name, hashlib.sha256(b"".join(texts)).hexdigest(), sum(map(len, texts))

    found = []
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for folder in (given.old, given.new):
            sources = sorted(folder.glob("*.cu"))
            if not sources:
                sys.exit(f"compare_kernels: {folder} has no kernel sources (*.cu)")
            found.append(list(pool.map(digest, sources)))
    counts = [collections.Counter(kernel[1] for kernel in kernels) for kernels in found]
    for sign, kernels, others in (("-", found[0], counts[1]), ("+", found[1], counts[0])):
        for name, code, size in kernels:
            if code not in others:
                print(f"{sign} {name}: {size} bytes of machine code, in one build only")
    same = set(counts[0]) & set(counts[1])
    print(f"{len(found[0])} and {len(found[1])} kernels; {len(same)} machine codes are in both, "
          f"{len(set(counts[0]) ^ set(counts[1]))} in one")
    return 0 if set(counts[0]) == set(counts[1]) else 1


if __name__ == "__main__":
    sys.exit(main())
