#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that files of source and functions of src are short.

    file_length.py ROOT         check ROOT
    file_length.py --self-test  check that wrong trees are refused
"""
import re
import sys
import tempfile
from pathlib import Path

FOLDERS = ("src", "include", "tests", "tools", "bench", "bindings", "examples", "scripts")
SUFFIXES = {".c", ".h", ".cuh", ".cpp", ".inc", ".py"}
MAX_FILE = 450
# Lines of a function in src, from the first line of the signature to the last brace.
MAX_FUNCTION = {".c": 60, ".h": 60, ".inc": 60, ".cuh": 70}
# Files and functions ("FILE: FUNCTION") that may be longer, and why. One that is no longer needed is a fault.
EXCEPTIONS = {
    "include/conv_fft.h": "the header is the manual",
    "src/conv/fused/plane_load.cuh: load_rows": "divided, it compiles to other machine code",
    "src/conv/gpu/gemm/cgemm_fp16.cuh: fp16_cgemm_run": "one loop over tiles, whose lambdas share registers",
}

# Comments and literals: their braces and hashes do not count.
NOT_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'|'\\.[^'\n]*'""", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
CONTAINER = re.compile(r"\b(?:namespace|extern|struct|class|union|enum)\b[^()=]*$")
SIGNATURE = re.compile(r"([\w~]+)\s*\([^{}]*\)\s*(?:const|noexcept|override|\s|:[^{};]*)*$", re.S)


def blanks(match):
    return re.sub(r"[^\n]", " ", match.group())


def functions(text):
    """(name, lines) of each function that is defined in a text of C or CUDA. Lambdas are part of their function."""
    code = DIRECTIVE.sub(blanks, NOT_CODE.sub(blanks, text))
    inside, begin, name, first = [], 0, None, 0  # open braces: whether each is that of a container
    for at, char in ((match.start(), match.group()) for match in re.finditer("[;{}]", code)):
        if char == "{":
            before = code[begin:at]
            container = all(inside) and bool(CONTAINER.search(before))
            if all(inside) and not container and (signature := SIGNATURE.search(before)):
                name, first = signature.group(1), begin + len(before) - len(before.lstrip())
            inside.append(container)
        elif char == "}" and inside:
            inside.pop()
            if name and all(inside):
                yield name, code.count("\n", first, at) + 1
                name = None
        if char != ";" or all(inside):
            begin = at + 1
    if name:  # its last brace was not found
        yield name, code.count("\n", first) + 1


def sources(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and "__pycache__" not in path.parts:
                yield path, path.relative_to(root).as_posix()


def faults(root, exceptions):
    needed, files = set(), 0

    def too_long(key, lines, most):
        if lines > most:
            needed.add(key)
            if key not in exceptions:
                yield f"{key}: {lines} lines; it may have {most}"

    for path, where in sources(root):
        files += 1
        text = path.read_text(encoding="utf-8")
        yield from too_long(where, len(text.splitlines()), MAX_FILE)
        if where.startswith("src/") and path.suffix in MAX_FUNCTION:
            for name, lines in functions(text):
                yield from too_long(f"{where}: {name}", lines, MAX_FUNCTION[path.suffix])
    if files == 0:
        yield f"{root}: no sources"
    for key in sorted(exceptions.keys() - needed):
        yield f"EXCEPTIONS: {key} is not too long any more"


def self_test():
    """The expected number of faults, exceptions, and files with their texts."""
    def function(lines, head="static int f(int a)"):
        return head + " {\n" + "    a++;\n" * (lines - 2) + "}\n"

    full = "\n" * MAX_FILE
    trees = [(1, {}, {}), (0, {}, {"src/a.c": full}), (1, {}, {"src/a.c": full + "\n"}),
             (0, {"src/a.c": ""}, {"src/a.c": full + "\n"}),
             (1, {"src/a.c": ""}, {"src/a.c": full}), (1, {"src/b.c": ""}, {"src/a.c": full}),
             (0, {}, {"src/a.txt": full + "\n", "src/a.c": ""})]
    trees += [(1, {}, {folder + "/a/b" + suffix: full + "\n"}) for folder in FOLDERS for suffix in sorted(SUFFIXES)]
    trees += [(0, {}, {"src/a.c": function(60)}), (1, {}, {"src/a.c": function(61)}),
              (1, {}, {"src/a.h": function(61)}),
              (0, {}, {"tests/a.c": function(61)}), (0, {}, {"src/a.cuh": function(70)}),
              (1, {}, {"src/a.cuh": function(71)}),
              (0, {"src/a.c: f": ""}, {"src/a.c": function(61)}), (1, {"src/a.c: f": ""}, {"src/a.c": function(60)}),
              (1, {"src/a.c: g": "", "src/a.c: f": ""}, {"src/a.c": function(61)})]
    # Text before, after or around a function does not count as its lines.
    trees += [(1, {}, {"src/a.cuh": text}) for text in (
        "namespace cf {\n" + function(71) + "}\n", "struct a {\n" + function(71, "__device__ int f() const") + "};\n",
        function(71, "template <int N>\n__device__ void f(int (&a)[N])").replace("a++;\n", "", 1) + function(70),
        function(70, "__global__ void __launch_bounds__(N) f(\n    int a)"), function(71, "int f(int a) /* { */"),
        function(71).replace("a++;", "if (a) { a++; }"),
        function(40) + "#if A\nint f() {\n#else\nint g() {\n#endif\n}\n" + function(80),
         function(71).replace("a++;", "int b[] = {1};"))]
    trees += [(0, {}, {"src/a.c": text}) for text in (
        "int a[] = {\n" + "    1,\n" * 100 + "};\n", "typedef struct a {\n" + "    int b;\n" * 100 + "} a;\n",
        "#define A(x) \\\n" + "    { x(1) } \\\n" * 100 + "\n" + function(60),
        "/*" + "\n" * 100 + "*/\n" + function(60),
        "int f(int a);\n" + "\n" * 100 + function(60), function(40) + function(40),
        "const char *a = \"{\";\n" + function(40) + function(40))]
    for expected, exceptions, tree in trees:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in tree.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            found = list(faults(Path(folder), exceptions))
            if len(found) != expected:
                yield f"tree {tree}, exceptions {exceptions}: expected {expected} faults, found {found}"


def main():
    found = list(self_test() if sys.argv[1] == "--self-test" else faults(Path(sys.argv[1]), EXCEPTIONS))
    print("\n".join(found) or "file length: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
