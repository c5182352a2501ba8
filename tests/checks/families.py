#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that no code of src compares which family a strategy has.

    families.py ROOT         check ROOT/src
    families.py --self-test  check that each rule finds what it forbids

The table is src/conv/families.c. Its includes tell the folders of families. Code elsewhere asks a family for its
operations and properties (conv/plan/family.h). It must have neither the address of a family (cf_NAME_family) nor its
name as a text or a part of one, unless the text is also a name of something else (MAY_NAME). A family's own folder has
its own address and name. A family that takes layers in place of another one may name that one in `.replaces`.
"""
import re
import sys
import tempfile
from pathlib import Path

ADDRESS = re.compile(r"\bcf_(\w+)_family\b")
TEXT = re.compile(r'"((?:\\.|[^"\\\n])*)"')
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
INCLUDE = re.compile(r"^\s*#\s*include[^\n]*", re.M)
FAMILY_NAME = re.compile(r'\.(?:name|old_name)\s*=\s*"(\w+)"')
# Folders whose texts name the libraries cuDNN and cuFFT, not the families.
MAY_NAME = {"cuda", "conv/gpu"}


def code_of(path):
    return COMMENT.sub(lambda match: "\n" * match.group().count("\n"), path.read_text())


def families_of(src):
    """The folder and the names, new and old, of each family."""
    table = src / "conv/families.c"
    folders = sorted(set(re.findall(r'#include "conv/(\w+)/', table.read_text())) if table.is_file() else [])
    families = {}
    for folder in folders:
        text = "".join(code_of(path) for path in sorted((src / "conv" / folder).glob("*.c")))
        families[folder] = set(FAMILY_NAME.findall(text))
    return families


def faults(root):
    src = root / "src"
    families = families_of(src)
    if not families:
        yield "src/conv/families.c: no families"
    for folder, names in families.items():
        if not names:
            yield f"src/conv/{folder}: no family has this folder"
    for path in sorted(path for path in src.rglob("*") if path.suffix in (".c", ".h", ".inc")):
        where = path.relative_to(src).as_posix()
        if where == "conv/families.c":
            continue
        own = where.split("/")[1] if where.startswith("conv/") and where.split("/")[1] in families else None
        code = INCLUDE.sub("", code_of(path))
        for match in ADDRESS.finditer(code):
            if match[1] in families and match[1] != own:
                yield f"src/{where}:{code.count(chr(10), 0, match.start()) + 1}: the address of family {match[1]}"
        if any(where.startswith(folder + "/") for folder in MAY_NAME):
            continue
        others = {name for folder, names in families.items() if folder != own for name in names}
        for match in TEXT.finditer(code):
            if match[1].strip() in others and not re.search(r"\.replaces\s*=\s*$", code[:match.start()]):
                yield f"src/{where}:{code.count(chr(10), 0, match.start()) + 1}: the name of family {match[1]}"


def self_test():
    family = 'const cf_family cf_%s_family = {.name = "%s"};\n'
    good = {"conv/families.c": '#include "conv/one/one.h"\n#include "conv/two/two.h"\n'
                               'x = {&cf_one_family, &cf_two_family};\n',
            "conv/one/family.c": family % ("one", "one"),
            "conv/two/family.c": 'const cf_family cf_two_family = '
                                 '{.name = "two", .old_name = "other", .replaces = "one"};\n'}
    cases = [(0, {}), (0, {"autotune/a.c": '/* "one" */ s->family->baseline; f("one more");\n'}),
             (0, {"conv/one/run.c": 's->family == &cf_one_family && strcmp(name, "one");\n'}),
             (1, {"autotune/a.c": "s->family == &cf_one_family;\n"}), (1, {"autotune/a.c": 'strcmp(name, "one");\n'}),
             (1, {"autotune/a.c": 'strncmp(line, "two ", 4);\n'}), (1, {"conv/plan/a.c": 'strcmp(name, "other");\n'}),
             (1, {"conv/one/run.c": "s->family == &cf_two_family;\n"}),
             (1, {"conv/one/run.c": 'strcmp(name, "two");\n'}),
             (1, {"conv/two/family.c": "int nothing;\n"})]
    for expected, more in cases:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**good, **more}.items():
                path = Path(folder) / "src" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            found = list(faults(Path(folder)))
            if len(found) != expected:
                yield f"{more}: expected {expected} faults, found {found}"


def main():
    found = list(self_test() if sys.argv[1] == "--self-test" else faults(Path(sys.argv[1])))
    print("\n".join(found) or "families: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
