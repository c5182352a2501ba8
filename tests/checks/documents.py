#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""documents.py ROOT: relative links and the files that documents name exist, tables have a header, and README.md is
short.

A file is a name between backticks, with a folder, and a suffix of FILE. It is looked for beside the document, at the
top, and in src.

documents.py --self-test: each rule finds a fault that is put into a small tree.
"""
import re
import sys
import tempfile
from pathlib import Path

README_LINES = 180
TABLE_ROWS = 15
FOLDERS = ["docs", "bench", "bindings", "data", "examples", "src", "tests"]
LINK = re.compile(r"\]\(([^()\s]+)\)")
FILE = re.compile(r"`([\w./-]+/[\w.-]+\.(?:c|h|cuh|inc|md|py|txt|cmake|cpp|sh))`")
MADE_LATER = ("build/", "bench/out")
TABLE = re.compile(r"(?:^\|.*\n)+", re.M)
RULE = re.compile(r"\|(?:\s*:?-+:?\s*\|)+$")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.M | re.S)
# Seven or more hexadecimal digits, letters and digits mixed.
COMMIT = re.compile(r"\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,40}\b")


def documents(root):
    pages = sorted(root.glob("*.md"))
    for folder in FOLDERS:
        pages += sorted((root / folder).rglob("*.md"))
    return pages


def anchors(text):
    """The names that headings have as link targets."""
    heads = re.findall(r"^#+ (.*)$", CODE.sub(lambda match: match[0].strip("`"), text), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def link_faults(root):
    for page in documents(root):
        text = page.read_text(encoding="utf-8")
        for link in LINK.findall(CODE.sub("", text)):
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = page.parent / path if path else page
            if not target.exists():
                yield f"{page.relative_to(root)}: the link {link} leads nowhere"
            elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
                yield f"{page.relative_to(root)}: {path or page.name} has no heading for #{anchor}"


def file_faults(root):
    for page in documents(root):
        for name in FILE.findall(page.read_text(encoding="utf-8")):
            places = (page.parent / name, root / name, root / "src" / name)
            if not name.startswith(MADE_LATER) and not any(place.exists() for place in places):
                yield f"{page.relative_to(root)}: there is no file {name}"


def table_faults(root):
    for page in documents(root):
        for table in TABLE.findall(page.read_text(encoding="utf-8")):
            rows = table.splitlines()
            rules = [number for number, row in enumerate(rows) if RULE.match(row)]
            if rules != [1]:
                yield f"{page.relative_to(root)}: the table that begins with {rows[0][:40]!r} has no header"


def readme_faults(root):
    text = (root / "README.md").read_text(encoding="utf-8")
    if text.count("\n") > README_LINES:
        yield f"README.md has {text.count(chr(10))} lines; at most {README_LINES} are allowed"
    for table in TABLE.findall(text):
        rows = table.count("\n") - 2
        if rows > TABLE_ROWS:
            yield f"README.md: a table has {rows} rows; at most {TABLE_ROWS} are allowed"
    for commit in COMMIT.findall(text):
        yield f"README.md: {commit} looks like a commit"


def faults(root):
    return [*link_faults(root), *file_faults(root), *table_faults(root), *readme_faults(root)]


def self_test():
    good = ("# A page\n[here](#a-page) [there](docs/b.md#second-head) [away](https://x.y/z)\n```c\na[0](b)\n```\n"
            "| a |\n|---|\n| 1 |\n")
    bad = {"[no](docs/c.md)\n": "leads nowhere", "[no](docs/b.md#third)\n": "no heading", "`docs/d.md`\n": "no file",
           "\n" * 200: "lines", "| a |\n|---|\n" + "| a |\n" * 20: "rows",
           "|---|\n| a |\n": "no header", "| a |\n| b |\n": "no header",
           "commit 1a2b3c4 did it\n": "looks like a commit"}
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "docs").mkdir()
        (root / "docs/b.md").write_text("## Second `head`\n")
        (root / "README.md").write_text(good)
        if faults(root):
            return f"a good tree has faults: {faults(root)}"
        for text, word in bad.items():
            (root / "README.md").write_text(good + "\n" + text)
            if len(faults(root)) != 1 or word not in faults(root)[0]:
                return f"{text[:20]!r} gives {faults(root)}"
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    found = faults(Path(sys.argv[1]).resolve())
    return "\n".join(found) if found else 0


if __name__ == "__main__":
    sys.exit(main())
