#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check rules that hold for every source file.

    source_rules.py ROOT         check the tree
    source_rules.py --self-test  check that each rule finds what it forbids

Every file starts with its licence (SPDX), after a "#!" line if there is one. The library (src/) never ends the
process and prints nothing: it calls no exit, abort, printf or similar functions. Only core/log.c writes, to the
standard error stream. Entry points of kernels are text of device headers (.cuh), so no C file has the word __global__.
Host, kernels and emulator share call.h and geometry.h. A struct of these is defined there only, and no C file prints a
static_assert that compares sizes of the host with those of a kernel. In NARROW, no line is longer than 120 columns.
"""
import re
import sys
from pathlib import Path

FOLDERS = ["src", "include", "tools", "examples", "bindings", "bench", "tests", "cmake", "scripts", ".ci"]
# Files and folders whose lines have at most 120 columns.
NARROW = ("include/", "src/", "tools/", "bench/", "bindings/", "tests/", "examples/", "scripts/", "cmake/",
          "CMakeLists.txt", "Makefile")
SUFFIXES = {".c", ".h", ".inc", ".cuh", ".cpp", ".py", ".sh", ".cmake", ".in"}
NAMES = {"CMakeLists.txt", "Makefile", "run"}
FORBIDDEN = re.compile(r"\b(v?f?printf|f?puts|f?putc|putchar|fwrite|perror|_?_?exit|_Exit|quick_exit|abort)\s*\(")
MAY_WRITE = {"fputs"}
SHARED_NAMES = ("/call.h", "/geometry.h")
SHARED_STRUCT = re.compile(r"^typedef struct (\w+) \{", re.M)
NOT_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)


def code_of(text):
    """The text without comments and literals, with the same lines."""
    return NOT_CODE.sub(lambda match: "\n" * match.group().count("\n"), text)


def faults_in(name, text):
    head = [line for line in text.split("\n")[:2] if not line.startswith("#!")]
    if not head or "SPDX-License-Identifier: Apache-2.0" not in head[0]:
        yield f"{name}:1: no SPDX line"
    if name.startswith(NARROW):
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > 120:
                yield f"{name}:{number}: {len(line)} columns; at most 120 are allowed"
    if name.startswith("src/") and not name.endswith(".cuh"):
        for match in FORBIDDEN.finditer(code := code_of(text)):
            if name != "src/core/log.c" or match.group(1) not in MAY_WRITE:
                line = code.count("\n", 0, match.start()) + 1
                yield f"{name}:{line}: {match.group(1)}() is forbidden in the library"
        if "__global__" in text:
            yield f"{name}: __global__; the entry points of kernels stand in device headers"
        if "static_assert" in text:
            yield f"{name}: static_assert; sizes that host and kernels need stand in a geometry.h"


def struct_faults(texts):
    """texts: name and text of each file of src. A second definition has the same name, as fooCall or foo_call."""
    def plain(name):
        return name.removeprefix("cf_").replace("_", "").lower()

    shared = {plain(struct): (struct, name) for name, text in texts if name.endswith(SHARED_NAMES)
              for struct in SHARED_STRUCT.findall(text)}
    for name, text in texts:
        for struct in re.findall(r"\bstruct (\w+) \{", text):
            if plain(struct) in shared and name != shared[plain(struct)][1]:
                yield f"{name}: struct {struct} is that of {shared[plain(struct)][1]}"


def faults(root):
    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*"))
             if path.is_file() and (path.suffix in SUFFIXES or path.name in NAMES)]
    files += [root / "CMakeLists.txt", root / "Makefile"]
    for path in files:
        yield from faults_in(path.relative_to(root).as_posix(), path.read_text())
    yield from struct_faults([(path.relative_to(root).as_posix(), path.read_text()) for path in files
                              if path.is_relative_to(root / "src")])
    sources = "".join(path.read_text() for path in (root / "tests").rglob("*.c*") if path.is_file())
    yield from failed_faults((root / "tests/data/failed.txt").read_text(), sources)


def failed_faults(text, sources):
    """A line of failed.txt is useless if no test has its list."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#") and f'"{line.split(": ")[0]}"' not in sources:
            yield f"tests/data/failed.txt:{number}: no list has the name {line.split(': ')[0]}"


def self_test():
    licence = "/* SPDX-License-Identifier: Apache-2.0 */\n"
    cases = [
        (0, "src/a.c", licence + "int f(void) { return snprintf(t, n, \"exit(%d)\", 1); } /* abort() */\n"),
        (0, "src/a.c", licence + "char a = '\"', *b = \"//\", c = '\"'; // abort()\n"),
        (1, "src/a.c", licence + "char a = '\"'; abort(); char c = '\"';\n"),
        (0, "src/core/log.c", licence + "fputs(text, stderr);\n"),
        (0, "tools/main.c", licence + "printf(\"\"); exit(1);\n"),
        (0, "scripts/a.sh", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"),
        (1, "tests/a.c", "int a;\n" + licence),
        (1, "src/core/status.c", licence + "fputs(text, stderr);\n"),
        (0, "tests/a.c", licence + "x" * 120 + "\n"),
        (1, "tests/a.c", licence + "x" * 121 + "\n"),
        (1, "src/core/log.c", licence + "printf(text);\n"),
        (1, "src/a.c", licence + "const char *entry = \"__global__ void f() {}\";\n"),
        (0, "src/a.cuh", licence + "__global__ void f() {}\n"),
        (1, "src/a.c", licence + "const char *same = \"static_assert(SIZE == %d);\";\n"),
    ]
    cases += [(1, "src/a.c", licence + f"x = 1;\n    {call} (1);\n")
              for call in ("printf", "fprintf", "exit", "abort", "puts")]
    for expected, text in [(0, "# a\nlines: b c\n"), (1, "lanes: b\n"), (1, "lines b\n")]:
        if len(list(failed_faults(text, 'test_select("lines", names)'))) != expected:
            yield f"failed.txt: expected {expected} faults in\n{text}"
    call = ("src/a/call.h", "typedef struct cf_fold_call {\n    int a;\n} cf_fold_call;\n")
    for expected, other in [(0, ("src/a/b.c", "struct fold_cal {\n")),
                            (1, ("src/a/b.c", "typedef struct fold_call {\n")),
                            (1, ("src/a/b.cuh", "struct FoldCall {\n"))]:
        if len(list(struct_faults([call, other]))) != expected:
            yield f"structs: expected {expected} faults in {other}"
    for expected, name, text in cases:
        found = list(faults_in(name, text))
        if len(found) != expected:
            yield f"{name}: expected {expected} faults, found {found} in\n{text}"


def main():
    found = list(self_test() if sys.argv[1] == "--self-test" else faults(Path(sys.argv[1])))
    print("\n".join(found) or "source rules: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
