#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that nobody uses words that only this project's makers understood. docs/GLOSSARY.md has the words to use.

    words.py ROOT         check the sources and documents below ROOT
    words.py --self-test  check that wrong texts are refused
"""
import re
import sys
import tempfile
from pathlib import Path

FOLDERS = ["src", "include", "tests", "bench", "tools", "bindings", "examples", "docs", "README.md", "CONTRIBUTING.md",
           "CHANGELOG.md"]
SUFFIXES = {".c", ".h", ".cuh", ".cpp", ".inc", ".py", ".md"}
# Not checked: this file, results and what the build makes, and what was tried when the words were others.
LEFT_OUT = {"tests/checks/words.py", "docs/performance/log.md"}

# Words that are refused wherever they stand, also as a part of a name (octet_bytes, OctetCall).
WORDS = {"abreast": "interleaved (NHWC)", "octet": "plane group", "octets": "plane groups", "slab": "bin tile",
         "slabs": "bin tiles",
         "rig": "benchmark buffers", "bag": "descriptors", "lap": "stage time", "laps": "stage times",
         "rides": "packs Nyquist into DC"}
# Words that are refused as a part of a name only; as English words they are good.
NAME_WORDS = {"turn": "transpose, twiddle, try or iteration", "turns": "the same", "turned": "the same",
              "waits": "PDL wait",
              "leads": "PDL trigger", "lease": "guard"}
IDIOMS = re.compile(r"in_turns?|takes?_turns")
PREFIXES = ["cf_long_", "cf_kept_", "kept_gather", "kept_scatter", "kept_weights", "kept_store", "cf_matrix",
            "cf_half_", "cf_tile_", "cf_race",
            "cf_rig", "cf_missed", "cf_direct", "cf_reference", "cf_product", "cf_service", "cf_stage_ops",
            "cf_gpu_facts", "matrix_line",
            "matrix_short", "half_tile", "bulk_get", "bulk_put", "CF_KERNEL_WAIT", "CF_KERNEL_LEAD"]
# (file, word or name): why it stays. One that is no longer needed is a fault; there may be at most 20.
EXCEPTIONS = {("src/cpu/fft/instantiate.c", "cf_product_"): "CF_FN(product) makes the name"}
MAX_EXCEPTIONS = 20

NAME = re.compile(r"[A-Za-z_]\w*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words_of(name):
    return [part.lower() for part in PART.findall(name)]


def refused_in(text):
    """Names and words that are refused, with what to write instead."""
    for name in NAME.findall(text):
        parts = words_of(IDIOMS.sub("", name))
        for word in parts:
            if word in WORDS:
                yield name, WORDS[word]
            elif word in NAME_WORDS and (len(parts) > 1 or name.isupper()):
                yield name, NAME_WORDS[word]
        if name.startswith(tuple(PREFIXES)):
            yield name, "a name with another prefix"


def files_of(root):
    for folder in FOLDERS:
        place = root / folder
        paths = sorted(place.rglob("*")) if place.is_dir() else [place]
        for path in paths:
            if path.suffix in SUFFIXES and path.is_file() and path.relative_to(root).as_posix() not in LEFT_OUT:
                yield path


def faults(root, exceptions):
    needed, any_file = set(), False
    for path in files_of(root):
        any_file = True
        where = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for name, instead in refused_in(line):
                if (where, name) in exceptions:
                    needed.add((where, name))
                else:
                    yield f"{where}:{number}: '{name}'; write: {instead}"
    if not any_file:
        yield f"{root}: nothing to check"
    for where, name in exceptions.keys() - needed:
        yield f"EXCEPTIONS: {where} has no '{name}' any more"
    if len(exceptions) > MAX_EXCEPTIONS:
        yield f"EXCEPTIONS: {len(exceptions)} of them; there may be {MAX_EXCEPTIONS}"


def self_test():
    """The expected number of faults, exceptions, and a text."""
    good = ("/* It takes turns, turns 90 degrees, waits for the return, and missed nothing. */ "
            "int return_code, stride, PARTS;")
    cases = [(0, {}, good), (1, {}, "int octet_bytes;"), (1, {}, "struct OctetCall;"), (1, {}, "channels abreast"),
             (1, {}, "int turn_call;"),
             (1, {}, "enum { TURNS };"), (1, {}, "cf_long_run();"), (1, {}, "kept_gather"),
             (0, {("src/a.c", "slab"): ""}, "slab slab"),
             (1, {("src/a.c", "slab"): ""}, "good"), (1, {("src/b.c", "slab"): ""}, "good"),
             (1, {("src/b.c", "slab"): "", }, good)]
    for expected, exceptions, text in cases:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "src").mkdir()
            (Path(folder) / "src" / "a.c").write_text(text + "\n")
            found = list(faults(Path(folder), exceptions))
            if len(found) != expected:
                yield f"text {text!r}: expected {expected} faults, found {found}"
    with tempfile.TemporaryDirectory() as folder:
        if len(list(faults(Path(folder), {}))) != 1:
            yield "an empty tree is good"


def main():
    found = list(self_test() if sys.argv[1] == "--self-test" else faults(Path(sys.argv[1]), EXCEPTIONS))
    print("\n".join(found) or "words: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
