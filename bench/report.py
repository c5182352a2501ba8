#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of measured times into Markdown files, from the results that bench_conv and bench_fft keep.

    python3 bench/report.py FILE.md [FILE.md ...] [--results bench/results] [--check]

A table stands between two markers. For DEVICE, the name of a folder of results (cpu, h200, ...):

    <!-- bench:DEVICE:begin -->          ...  <!-- bench:DEVICE:end -->            every case and pass
    <!-- bench:DEVICE-summary:begin -->  ...  <!-- bench:DEVICE-summary:end -->    one line per suite (of transforms: per
                                                                                   kind) and pass
    <!-- bench:DEVICE/KIND:begin -->     ...  <!-- bench:DEVICE/KIND:end -->       the transforms of a kind: 1d, 2d, padded,
                                                                                   fm, 3d, other
    <!-- bench:DEVICE/layers:begin -->   ...  <!-- bench:DEVICE/layers:end -->     every case and pass that is no transform

Spectra that are frequency-major are compared with a copy of as many bytes: cuFFT has no such output.

--check changes nothing and fails if a file is not up to date.
"""
import argparse
import csv
import math
import pathlib
import re
import sys

COLUMNS = "suite,case,pass,precision,layout,impl,ms,workspace_bytes,rel_l2,strategy".split(",")
MARKERS = re.compile(r"(<!-- bench:([\w./-]+):begin -->\n)(.*?)(<!-- bench:\2:end -->)", re.DOTALL)
SUITES = ["fft", "table4", "nets", "grid", "volumes", "signals", "depthwise", "longconv"]
PASSES = ["fprop", "bprop", "accgrad", "backward", "r2c", "c2r", "c2c"]
KINDS = {"1d": "1-D", "2d": "2-D", "padded": "of padded planes", "fm": "frequency-major, against a copy", "3d": "3-D",
         "other": "complex, FP64"}


class Run:
    """One case, pass, precision and layout: milliseconds and errors by implementation."""

    def __init__(self, row):
        self.suite, self.case, self.passname = row["suite"], row["case"], row["pass"]
        self.precision = row["precision"]
        self.ms, self.error = {}, {}

    def add(self, row):
        self.ms[row["impl"]] = float(row["ms"])
        self.error[row["impl"]] = float(row["rel_l2"])

    def ours(self):
        """Name of our implementation: the tuned one, else the fastest family."""
        names = [name for name in self.ms if name == "tuned" or name.startswith("ours")]
        return "tuned" if "tuned" in names else min(names, key=self.ms.get, default=None)

    def kind(self):
        """Of a transform: a key of KINDS; else None."""
        if self.suite != "fft":
            return None
        if self.passname == "c2c" or self.precision != "fp32":
            return "other"
        return "fm" if "-fm" in self.case else "padded" if "-from" in self.case else self.case[:2]

    def baselines(self):
        return [name for name in self.ms if name not in ("tuned", "copy") and not name.startswith("ours")]

    def best(self):
        """Name of the fastest baseline that does the same, or None."""
        names = [name for name in self.ms if name == "copy"] if self.kind() == "fm" else self.baselines()
        return min(names, key=self.ms.get, default=None)

    def ratio(self):
        """Above 1: we are faster than the best baseline."""
        return self.ms[self.best()] / self.ms[self.ours()]


def read_results(folder, wanted=lambda path: True):
    """All runs of a device in the suites' order, and the conditions they were measured under."""
    runs, conditions = {}, []
    for path in filter(wanted, sorted(folder.glob("*.csv"))):
        lines = path.read_text(encoding="utf-8").splitlines()
        if not lines or lines[0].split(",") != COLUMNS:
            raise SystemExit("report.py: %s: the first line must name the columns %s" % (path, ",".join(COLUMNS)))
        conditions += [line.lstrip("# ") for line in lines if line.startswith("#")]
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            key = tuple(row[name] for name in COLUMNS[:5])
            runs.setdefault(key, Run(row)).add(row)
    if not runs:
        raise SystemExit("report.py: no results in %s" % folder)
    return in_order(list(runs.values())), conditions


def in_order(runs):
    """By suite, by a case's first appearance, by pass."""
    def place(name, names):
        return (names.index(name), "") if name in names else (len(names), name)
    kinds = list(KINDS)
    first = {}
    for position, run in enumerate(runs):
        first.setdefault((run.suite, run.case), position)
    return sorted(runs, key=lambda run: (place(run.suite, SUITES), place(run.kind() or "", kinds), first[run.suite, run.case], place(run.passname, PASSES)))


def number(value):
    return "%.3g" % value if value < 1000 else "%.0f" % value


def ratio_text(ratio):
    """Two digits, bold where we are faster."""
    return "**%.2f**" % ratio if ratio >= 1 else "%.2g" % ratio


def conditions_text(conditions):
    """The distinct conditions, but for the lines that name a suite."""
    distinct = list(dict.fromkeys(line for line in conditions if not line.startswith("suite ")))
    commits = list(dict.fromkeys(line.split(", ", 1)[1] for line in conditions if line.startswith("suite ")))
    return ["Measured with: %s." % "; ".join(commits + distinct), ""]


def full_table(runs, conditions):
    """A line per case and pass, a column per baseline."""
    names = sorted({name for run in runs for name in run.baselines()})
    lines = conditions_text(conditions)
    lines += ["| suite | case | pass | ours | %s | best / ours | error of ours |" % " | ".join(names),
              "|---|---|---|%s---:|---:|---:|" % ("---:|" * len(names))]
    for run in runs:
        ours = run.ours()
        times = [number(run.ms[name]) if name in run.ms else "-" for name in names]
        lines.append("| %s | %s | %s | %s | %s | %s | %s |" % (
            run.suite, run.case, run.passname, number(run.ms[ours]) if ours else "-", " | ".join(times),
            ratio_text(run.ratio()) if ours and run.best() else "-", "%.1e" % run.error[ours] if ours else "-"))
    return lines


def transform_table(runs, conditions, kind):
    """A line per transform of a kind, with its ratio to cuFFT and to a copy of as many bytes."""
    chosen = [run for run in runs if run.kind() == kind and run.ours()]
    if not chosen:
        return ["No results yet."]
    names = [name for name in ("cufft", "cufft-padded", "copy") if any(name in run.ms for run in chosen)]
    ratios = [name for name in names if kind != "fm" or name == "copy"]
    lines = conditions_text(conditions)
    heads = ["case", "pass", "ours", *names, *(name + " / ours" for name in ratios), "error of ours", "error of cufft"]
    lines += ["| %s |" % " | ".join(heads), "|---|---|%s" % ("---:|" * (len(heads) - 2))]
    for run in chosen:
        ours = run.ours()
        cells = [number(run.ms[name]) if name in run.ms else "-" for name in names]
        cells += [ratio_text(run.ms[name] / run.ms[ours]) if name in run.ms else "-" for name in ratios]
        cells += ["%.1e" % run.error[name] if name in run.error else "-" for name in (ours, "cufft")]
        passname = run.passname if run.precision == "fp32" else "%s %s" % (run.passname, run.precision)
        lines.append("| %s | %s | %s | %s |" % (run.case, passname, number(run.ms[ours]), " | ".join(cells)))
    return lines


def summary_table(runs, conditions):
    """A line per suite (of transforms: per kind) and pass: cases won and lost, and the geometric mean of the ratios."""
    groups = {}
    for run in runs:
        if run.ours() and run.best():
            suite = "%s %s" % (run.suite, KINDS.get(run.kind(), run.kind())) if run.kind() else run.suite
            groups.setdefault((suite, run.passname), []).append(run)
    lines = conditions_text(conditions)
    lines += ["| suite | pass | cases | faster than the best baseline | best / ours: geometric mean | worst | best |",
              "|---|---|---:|---:|---:|---|---|"]
    for (suite, passname), members in groups.items():
        ratios = [run.ratio() for run in members]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        worst, best = min(members, key=Run.ratio), max(members, key=Run.ratio)
        lines.append("| %s | %s | %d | %d | %s | %s (%.2g) | %s (%.2g) |" % (
            suite, passname, len(members), sum(ratio >= 1 for ratio in ratios), ratio_text(mean),
            worst.case, worst.ratio(), best.case, best.ratio()))
    return lines


def fill(text, results):
    """The text with every marked table written anew."""
    def table(match):
        name, _, kind = match.group(2).partition("/")
        if kind and kind not in KINDS and kind != "layers":
            raise SystemExit("report.py: %s is no kind; these are: layers, %s" % (kind, ", ".join(KINDS)))
        transforms = kind in KINDS
        runs, conditions = read_results(results / name.removesuffix("-summary"),
                                        lambda path: not kind or (path.stem == "fft") == transforms)
        if transforms:
            lines = transform_table(runs, conditions, kind)
        else:
            lines = summary_table(runs, conditions) if name.endswith("-summary") else full_table(runs, conditions)
        return match.group(1) + "\n" + "\n".join(lines) + "\n\n" + match.group(4)
    return MARKERS.sub(table, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE.md", type=pathlib.Path)
    parser.add_argument("--results", default=pathlib.Path(__file__).parent / "results", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a file is not up to date")
    arguments = parser.parse_args()
    stale = 0
    for path in arguments.files:
        old = path.read_text(encoding="utf-8")
        if not MARKERS.search(old):
            raise SystemExit("report.py: %s has no line <!-- bench:DEVICE:begin --> with its end" % path)
        new = fill(old, arguments.results)
        if new != old and arguments.check:
            print("report.py: %s is not up to date" % path, file=sys.stderr)
            stale += 1
        elif new != old:
            path.write_text(new, encoding="utf-8")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
