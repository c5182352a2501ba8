#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs_site.py ROOT WORK: the pages of the documents' site are complete.

The pages of the headers describe every function that the library exports. Every link leads to a page or file of the
site, every entry of its list of pages is one, and every document of docs/ is in that list. Where mkdocs is installed,
it makes the site, whose index of words finds functions and documents.
"""
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from documents import anchors

LINK = re.compile(r"\]\(([^()\s]+)\)")


def header_faults(root, pages):
    text = "".join(page.read_text(encoding="utf-8") for page in (pages / "include").glob("*.md"))
    for function in (root / "tests/checks/exported_symbols.txt").read_text().split():
        section = re.search(r"^### %s\n(.*?)(?=^##|\Z)" % re.escape(function.replace("_", r"\_")), text, re.M | re.S)
        if not section:
            yield f"the pages of the headers have no section {function}"
        elif not re.fullmatch(r"\s*```c\n[^`]*\b%s\([^`]*\);\n```\s+\S.*" % function, section[1], re.S):
            yield f"the section {function} has no declaration, or no text: {section[1]!r}"
    if re.search(r"CONV_FFT_API|/\*\*(?!<| )", text.replace("/** ", "")):
        yield "the pages of the headers have a macro of the linker, or a comment that was not read"


def link_faults(pages):
    for page in pages.rglob("*.md"):
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for link in LINK.findall(text):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if re.match(r"[a-z]+:", link):
                continue
            if not target.is_file():
                yield f"{page.relative_to(pages)}: the site has no {link}"
            elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
                yield f"{page.relative_to(pages)}: {path or page.name} has no heading for #{anchor}"


def list_faults(root, pages):
    listed = set(re.findall(r": (\S+\.md)$", (root / "docs/mkdocs.yml").read_text(encoding="utf-8"), re.M))
    for name in sorted(listed):
        if not (pages / name).is_file():
            yield f"docs/mkdocs.yml lists {name}, which is no page"
    for page in sorted((root / "docs").rglob("*.md")):
        if str(page.relative_to(root)) not in listed:
            yield f"docs/mkdocs.yml does not list {page.relative_to(root)}"


def site_faults(root, pages, work):
    """The site, made from a copy of the list of pages that names these pages."""
    config = work / "mkdocs.yml"
    text = (root / "docs/mkdocs.yml").read_text(encoding="utf-8")
    config.write_text(text.replace("../build/docs/pages", str(pages)).replace("../build/docs/site", str(work / "site")))
    made = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file",
                           str(config)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode:
        yield f"mkdocs ends with status {made.returncode}:\n{made.stdout}"
        return
    found = {entry["location"] for entry in json.loads((work / "site/search/search_index.json").read_text())["docs"]}
    for location in ("include/conv_fft/#conv_fft_forward", "docs/troubleshooting/#the-cache-folder", "examples/"):
        if location not in found:
            yield f"the search finds no {location}"


def main():
    root, folder = (Path(argument).resolve() for argument in sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        pages = Path(work) / "pages"
        subprocess.run([sys.executable, str(root / "scripts/docs.py"), str(pages)], check=True)
        found = [*header_faults(root, pages), *link_faults(pages), *list_faults(root, pages)]
        if importlib.util.find_spec("mkdocs"):
            found += site_faults(root, pages, Path(work))
        else:
            print("mkdocs is not installed: the site is not made")
    return "\n".join(found) if found else 0


if __name__ == "__main__":
    sys.exit(main())
