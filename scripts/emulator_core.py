#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The core lists of the emulator's tests (tests/data/core), and how much of the kernels' text they reach.

    scripts/emulator_core.py collect BUILD OUT.json.gz     run the programs of a build that has
                                                           CONV_FFT_EMULATOR_COVERAGE=ON, and note the lines of kernels
                                                           and the features that each case reaches
    scripts/emulator_core.py choose NOTES.json.gz [NAME]   write the lists: for each line and each feature a case, the
                                                           cheapest first
    scripts/emulator_core.py report NOTES.json.gz [FILE]   what the core lists reach, compared with all cases and with
                                                           the cases that FILE names; status 1 if the core reaches less
                                                           than 95 % of the lines
NAME: a file of names that the lists begin with (cases that faults need). A line is reached if a basic block that
begins on it is reached."""
import bisect
import collections
import gzip
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MIN_PERCENT = 95  # of the lines that all cases reach
MIN_LINES = 1425  # what the list of every tenth case reached, before there was a core
PROGRAMS = {"emulator_test_shared_memory_fft": "tile", "emulator_test_shared_memory_fft_double": "tile",
            "emulator_test_fused": "fused", "emulator_test_fused_double": "fused",
            "emulator_test_short_kernels": "short_kernels"}


# ---------------------------------------------------------------------------------------------------------- collecting

def line_table(program):
    """Addresses in order, and the line of a kernel's text that each begins: "" for what is no kernel."""
    rows = []
    listing = subprocess.Popen(["readelf", "--wide", "--debug-dump=decodedline", str(program)], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, errors="replace")
    row = re.compile(r"^(\S+)\s+(\d+|-)\s+(0x[0-9a-f]+|0)\b")
    heading = re.compile(r"^(?:CU: )?(\S+/(\S+)):(?:\[\+\+\])?$")  # folders have files of one name
    names, folders, folder, file = {}, {}, "", ""
    for text in listing.stdout:
        if title := heading.match(text):
            folder, file = Path(title[1]).parent.name, title[2]
            folders[file] = folder
        found = row.match(text)
        if found:
            name, number, address = found.groups()
            own = folder if name == file else folders.get(name, "")
            line = "%s/%s:%s" % (own, name, number) if name.endswith(".cuh") and number != "-" else ""
            rows.append((int(address, 16), names.setdefault(line, line)))
    listing.wait()
    rows.sort(key=lambda entry: entry[0])
    return [r[0] for r in rows], [r[1] for r in rows]


def collect_program(build, program):
    path, trace = build / "tests/emulator" / program, build / ("tests/emulator/%s.trace" % program)
    subprocess.run([str(path)], env=dict(os.environ, SIMT_COVERAGE=str(trace)), check=True, stdout=subprocess.DEVNULL,
                   cwd=ROOT / "tests")
    starts, lines = line_table(path)
    cases = {}
    for text in open(trace, encoding="utf-8"):
        if text.startswith("case "):
            case = cases.setdefault(text[5:-1], {"lines": set(), "features": set(), "blocks": 0})
        elif text.startswith("feature "):
            case["features"].add(text[8:-1])
        else:
            line = lines[bisect.bisect_right(starts, int(text, 16) - 1) - 1]
            if line:
                case["lines"].add(line)
                case["blocks"] += 1
    for name, case in cases.items():
        case["lines"], case["features"] = sorted(case["lines"]), sorted(case["features"])
        case["list"] = "tile_pairs" if " | " in name else PROGRAMS[program]
    return cases


def collect(build, out):
    with ThreadPoolExecutor() as pool:
        parts = list(pool.map(lambda program: collect_program(build, program), PROGRAMS))
    notes = {name: case for part in parts for name, case in part.items()}
    with gzip.open(out, "wt", encoding="utf-8") as file:
        json.dump(notes, file)
    print("%d cases, %d lines of kernels" % (len(notes), len({line for c in notes.values() for line in c["lines"]})))


# ------------------------------------------------------------------------------------------------------------ choosing

def features_of(name, case):
    """The features that a list must have a case for, besides lines: type, order, padding mode, corner bins (even and
    odd axes)."""
    found = {"noted " + f for f in case["features"]}
    kind = re.match(r"(r2c|c2r|c2c inverse|c2c) (\w+)", name)
    mode = next((m for m in ("circular", "reflect", "replicate") if m in name), "zeros")
    if kind and case["list"] == "tile":
        way, dtype = kind.groups()
        order = "frequency-major" if "frequency-major" in name else "transposed" if "transposed" in name else "natural"
        layout = "last" if "channels-last" in name else "first"
        bits = "16-bit spectrum" if "16-bit-spectrum" in name else "spectrum"
        basis = re.search(r"basis ([\dx]+)", name).group(1).split("x")
        found |= {"%s %s" % (way, dtype), "%s %s %s" % (way, order, layout), "%s %s %s" % (dtype, order, bits),
                  "%s %s rank %d" % (way, mode, len(basis)), "%s %s %s" % (mode, dtype, bits),
                  "%s corners %s %s" % (way, "".join("eo"[int(n) % 2] for n in basis), order)}
        for word in ("shifted", "added", "overlapping", "groups", "chunk", "tiles ", "shifts", "phases", "tiled",
                     "window"):
            if word in name:
                found |= {"%s %s" % (word, way), "%s %s" % (word, dtype), "%s %s" % (word, bits),
                          "%s %s" % (word, order)}
    elif case["list"] == "fused":
        passes = re.search(r"passes (\d)", name).group(1)
        dtype = (re.search(r"dtype=(\w+)", name) or [0, "fp32"])[1]
        layout = "last" if "layout=last" in name else "first"
        found |= {"%s passes %s" % (mode, passes), "%s %s" % (dtype, layout), "%s %s" % (dtype, passes)}
    return found


def choose(notes, first):
    reached, chosen = set(), []
    elements = {name: set(case["lines"]) | features_of(name, case) for name, case in notes.items()}
    elements = {name: found for name, found in elements.items()
                if not name.startswith("drawn ")}  # other seeds have others
    for name in first:
        if name not in elements:
            sys.exit("emulator_core.py: no case has the name \"%s\"" % name)
        chosen.append(name)
        reached |= elements.pop(name)
    wanted = set().union(*elements.values()) - reached
    while wanted:  # the most that is new for a block of code
        best = max(elements, key=lambda name: (len(elements[name] & wanted) / (notes[name]["blocks"] + 50), name))
        new = elements.pop(best) & wanted
        if new:
            chosen.append(best)
            wanted -= new
    return chosen


def write_lists(notes, names, head):
    folder = ROOT / "tests/data/core"
    folder.mkdir(parents=True, exist_ok=True)
    for which in sorted({case["list"] for case in notes.values()}):
        own = sorted(name for name in names if notes[name]["list"] == which)
        (folder / (which + ".txt")).write_text(head + "".join(name + "\n" for name in own), encoding="utf-8")
        print("%s: %d of %d cases" % (which, len(own), sum(case["list"] == which for case in notes.values())))


# ----------------------------------------------------------------------------------------------------------- reporting

def core_names():
    found = []
    for path in sorted((ROOT / "tests/data/core").glob("*.txt")):
        if path.stem in ("tile", "tile_pairs", "fused", "short_kernels"):
            found += [line for line in path.read_text(encoding="utf-8").splitlines()
                      if line and not line.startswith("#")]
    return found


def lines_of(notes, names):
    return {line for name in names if name in notes for line in notes[name]["lines"]}


def report(notes, other):
    rows = [("all cases", list(notes)), ("the core", core_names())]
    missing = [name for name in rows[1][1] if name not in notes]
    if missing:
        sys.exit("emulator_core.py: the notes have no case named \"%s\"; they lack %d cases of the core"
                 % (missing[0], len(missing)))
    if other:
        rows.append((Path(other).name, Path(other).read_text(encoding="utf-8").splitlines()))
    sets = [lines_of(notes, names) for _, names in rows]
    print("%-28s %6s %6s %8s" % ("", "cases", "lines", "blocks"))
    for (title, names), lines in zip(rows, sets):
        blocks = sum(notes[n]["blocks"] for n in set(names) if n in notes)
        print("%-28s %6d %6d %8d" % (title, len(names), len(lines), blocks))
    files = collections.Counter(line.split(":")[0] for line in sets[0])
    for name in sorted(files):
        print("    %-24s" % name + "".join(" %6d" % sum(line.startswith(name + ":") for line in lines)
                                           for lines in sets))
    lost = sorted(sets[0] - sets[1])
    print("not reached by the core: %s" % (" ".join(lost[:40]) or "nothing"))
    percent = 100 * len(sets[1]) / len(sets[0])
    print("the core reaches %d lines, %.1f %% of those that all cases reach; at least %d and %d %% are expected"
          % (len(sets[1]), percent, MIN_LINES, MIN_PERCENT))
    return 1 if percent < MIN_PERCENT or len(sets[1]) < MIN_LINES else 0


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "collect":
        return collect(Path(sys.argv[2]).resolve(), sys.argv[3])
    if len(sys.argv) in (3, 4) and sys.argv[1] in ("choose", "report"):
        with gzip.open(sys.argv[2], "rt", encoding="utf-8") as file:
            notes = json.load(file)
        other = sys.argv[3] if len(sys.argv) == 4 else None
        if sys.argv[1] == "report":
            return report(notes, other)
        first = [n for n in Path(other).read_text(encoding="utf-8").splitlines() if n and n[0] != "#"] if other else []
        write_lists(notes, choose(notes, first),
                    "# By scripts/emulator_core.py choose: for each line of a kernel and each feature a case.\n")
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
