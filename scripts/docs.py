#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs.py FOLDER: write the pages of the documents' site (make docs, docs/mkdocs.yml) into a folder.

The pages are README.md and what it links, directly or through other pages, at the same places. Links to a folder lead
to its README.md; if it has none, only their text stays. The public headers become pages: a section for each
declaration.
"""
import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADERS = ("conv_fft", "fbfft")
LINK = re.compile(r"\[([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]\(([^()\s]+)\)")
TOKEN = re.compile(r"""
      (?P<section>/\*\s-{10,}\s(?P<title>[^*]+?)\s\*/)
    | (?P<doc>/\*\*(?!/).*?\*/)
    | (?P<note>/\*.*?\*/)
    | (?P<define>\#[ ]*define[ ](?P<macro>\w+)(?:[^\n]*\\\n)*[^\n]*)
    | (?P<other>\#[^\n]*|extern[ ]"C"[ ]\{|\})
    | (?P<declaration>[a-zA-Z](?:[^;{}/]|/\*.*?\*/)*(?:\{(?:[^{}/]|/\*.*?\*/)*\}[^;]*)?;)
    """, re.S | re.X)


# ------------------------------------------------------------------------------------------- C headers

def lines_of(comment):
    """The text of a comment, without its borders and the space that all lines share."""
    text = re.sub(r"^/\*+|\*/$", "", comment.strip())
    lines = [re.sub(r"^\s*\*(?: |$)|^ ", "", line).rstrip() for line in text.split("\n")]
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def escaped(line):
    """A line whose characters mean themselves. What stands between backticks stays code."""
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_\[\]])", r"\\\1", part).replace("<", "&lt;")
                   for part in parts)


def markdown(comment):
    """Paragraphs. Lines that are indented by four spaces are a drawing or code, and so are the lines between them."""
    out, fenced = [], False
    lines = lines_of(comment)
    for number, line in enumerate(lines):
        if line.startswith("    ") and not fenced:
            out += ["", "```text"]
            fenced = True
        elif fenced and line and not line.startswith("  "):
            out += ["```", ""]
            fenced = False
        out.append(line if fenced else escaped(line))
    return "\n".join(out + (["```"] if fenced else []))


def name_of(declaration):
    for pattern in (r"^typedef [^(]*\(\*(\w+)\)", r"^typedef .*?(\w+);$", r"^enum \{\s*(?:/\*.*?\*/\s*)?(\w+)",
                    r"^(?:struct|enum) (\w+)", r"(\w+)\("):
        found = re.search(pattern, declaration, re.S)
        if found:
            return found.group(1)
    raise ValueError("a declaration has no name: %r" % declaration)


def without_export(declaration):
    """A declaration without CONV_FFT_API. Its other lines stay aligned."""
    word = "CONV_FFT_API "
    if not declaration.startswith(word):
        return declaration
    return re.sub(r"\n {%d}" % len(word), "\n", declaration[len(word):])


def header_page(name):
    """The page of a header. Raises ValueError for text that is neither a comment nor a declaration."""
    text = (ROOT / "include" / (name + ".h")).read_text(encoding="utf-8")
    guard = text.index("#ifndef ")
    drawing = "\n".join(lines_of(text[:guard].partition("\n")[2]))
    out = ["# %s.h" % name, "", "```text", drawing, "```", ""]
    doc, at = None, guard
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        token = TOKEN.match(text, at)
        if token is None:
            raise ValueError("include/%s.h: no declaration begins at %r" % (name, text[at:at + 60]))
        at = token.end()
        if token["section"]:
            out += ["## " + token["title"].capitalize(), ""]
        elif token["doc"]:
            doc = markdown(token["doc"])
        elif token["note"]:
            out += [markdown(token["note"]), ""]
        elif token["declaration"] or token["define"] and doc:
            code = without_export(token["declaration"] or token["define"])
            out += ["### " + escaped(token["macro"] or name_of(code)), "", "```c", code, "```", "", doc or "", ""]
            doc = None
    return "\n".join(out)


# ----------------------------------------------------------------------------------------------- pages

def target_of(page, link):
    """(what the link leads to, the rest of the link); None for a link to somewhere else."""
    path, mark, anchor = link.partition("#")
    if re.match(r"[a-z]+:", link) or not path:
        return None, ""
    target = Path(os.path.normpath(page.parent / path))
    if (ROOT / target).is_dir():
        target = target / "README.md"
    return target, mark + anchor


def with_links(page, text, wanted):
    """The text of a page with the links of the site. Adds to `wanted` the files that it links."""
    def replaced(match):
        target, rest = target_of(page, match[2])
        if target is None:
            return match[0]
        if not (ROOT / target).exists():
            return match[1]
        if target.parent == Path("include") and target.stem in HEADERS:
            target = target.with_suffix(".md")
        else:
            wanted.append(target)
        return "[%s](%s%s)" % (match[1], os.path.relpath(target, page.parent), rest)

    kept = []

    def hidden(match):
        kept.append(match[0])
        return "\0%d\0" % (len(kept) - 1)
    # Links may have code as their text, so only blocks are hidden.
    text = re.sub(r"^```.*?^```$", hidden, text, flags=re.M | re.S)
    return re.sub(r"\0(\d+)\0", lambda match: kept[int(match[1])], LINK.sub(replaced, text))


def write_pages(folder):
    wanted, done = [Path("README.md"), *(path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md"))], set()
    while wanted:
        page = wanted.pop()
        if page in done:
            continue
        done.add(page)
        place = folder / page
        place.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix == ".md":
            place.write_text(with_links(page, (ROOT / page).read_text(encoding="utf-8"), wanted), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / page, place)
    (folder / "include").mkdir(exist_ok=True)
    for name in HEADERS:
        (folder / "include" / (name + ".md")).write_text(header_page(name), encoding="utf-8")


def main():
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)  # pages of files that are gone
    write_pages(folder)


if __name__ == "__main__":
    sys.exit(main())
