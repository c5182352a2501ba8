#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""readme_example.py ROOT LIBRARY WORK

The first C example of README.md compiles as given, links, and prints what README.md says. It must be within the first
100 lines and have at most 20 lines that are not blank. Its output must be in README.md as an indented block. CC in the
environment is the compiler.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

FIRST_LINES = 100
EXAMPLE_LINES = 20


def main():
    root, library, work = (Path(argument).resolve() for argument in sys.argv[1:4])
    readme = root / "README.md"
    head = "\n".join(readme.read_text().split("\n")[:FIRST_LINES]) if readme.is_file() else ""
    example = re.search(r"^```c\n(.*?)^```$", head, re.M | re.S)
    if not example:
        return f"README.md has no ```c example within its first {FIRST_LINES} lines"
    lines = [line for line in example.group(1).split("\n") if line.strip()]
    if len(lines) > EXAMPLE_LINES:
        return f"README.md: the example has {len(lines)} lines, at most {EXAMPLE_LINES} are promised"

    work.mkdir(parents=True, exist_ok=True)
    source, program = work / "readme_example.c", work / "readme_example"
    source.write_text(example.group(1))
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{root / 'include'}",
                    str(source), "-o", str(program), str(library), f"-Wl,-rpath,{library.parent}", "-lm"], check=True)
    ended = subprocess.run([str(program)], stdout=subprocess.PIPE, text=True)
    if ended.returncode:
        return f"README.md: the example ends with status {ended.returncode}"
    printed = "".join(f"    {line}\n" for line in ended.stdout.splitlines())
    if not printed or printed not in readme.read_text():
        return f"README.md does not show what its example prints:\n{printed}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
