#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of measured times into Markdown files, from the results that bench_conv and bench_fft keep.

    python3 bench/report/report.py FILE.md [FILE.md ...] [--results bench/results] [--check]

A table stands between two markers. For DEVICE, the name of a folder of results (cpu, h200, ...):

    <!-- bench:NAME:begin -->  ...  <!-- bench:NAME:end -->

    DEVICE                  every case and pass
    DEVICE-summary          one line per suite or kind, one column per pass
    DEVICE/summary-short    of that, the suites of layers in FP32, channels first, against cuDNN
    DEVICE/KIND             the transforms of a kind: 1d, 2d, padded, fm, 3d, other, half
    DEVICE/layers           every case and pass that is no transform
    DEVICE/suite-NAME       every case and pass of a suite
    DEVICE/means            per layer: the geometric mean over its passes, and the gain of the joint backward pass
    DEVICE/errors           per layer and class: the errors of ours and of cuDNN in each pass
    DEVICE/errors-short     of these, one line per class and pass
    DEVICE/grid             the suite grid: one line per kernel size and pass
    DEVICE/kept             passes with kept spectra: the saved part of the transforms' time
    DEVICE/stages           per stage of our layers: its bytes and operations, the times that a copy and the units would
                            take for them, and the measured time (bench_conv --stages, in stages.csv)
    DEVICE/tuned            per suite and pass: the tuned plan against cuDNN's fastest algorithm, which is one of its
                            candidates, and the number of layers where it is slower by more than 3 % and 1 us
    DEVICE/quality          the choices of the cost model and of quick searches, against the best of exhaustive searches
                            (bench_tuning, in quality.csv)
    DEVICE/warp             the warp-shuffle transforms beside those in shared memory and cuFFT (warp.csv)
    DEVICE/split-paper-1    the tables of the paper on splitting FP32 numbers beside ours, for rank 1; also 2 and 3
    DEVICE/busy             layers with one and two threads beside other programs (bench_busy, in busy.csv)
    DEVICE/goals            the goals for CPUs and what was measured, beside torch in folder cpu-16
    DEVICE/records          the records in tuning/DEVICE: one line per network
    DEVICE/products         the matrix products (bench_gemm): one line per size, cuBLAS and ours
    DEVICE/picture-NAME     the picture DEVICE-NAME.svg that plot.py drew

Tables of every case leave the suite grid out if it is long. Ours are the families staged, fused, long1d, toeplitz, dft,
implicit_gemm and spatial, and the tuned plan if it is of one of them. The families cudnn and cufft, which call other
libraries, are neither ours nor a baseline. Frequency-major spectra are compared with a copy of as many bytes, as cuFFT
has no such output. --check changes nothing and fails if a file is not up to date.
"""
import argparse
import os
import pathlib
import re
import statistics
import sys

from results import (FP32_PRODUCTS, HALVES, KINDS, LONG_GRID, OTHER_FORMS, OUR_FAMILIES, PASSES, PRECISIONS, SUITES,
                     Run, copy_rate, geometric_mean, peak_rates, read_results)
from model_quality import quality_lines
from processors import busy_lines, goals_lines
from warp_kernels import warp_lines
from split_paper import split_paper_lines
from tables import class_heads, conditions_text, number, ratio_text, short, table
from tuning_records import records_lines

MARKERS = re.compile(r"(<!-- bench:([\w./-]+):begin -->\n)(.*?)(<!-- bench:\2:end -->)", re.DOTALL)
NOTHING = ["No results yet."]
ERROR_PASSES = ["fprop", "bprop", "accgrad"]
PICTURES = {"layers": "the time of the best baseline over ours, for each layer and pass",
            "fft": "the rate of transforms over that of a copy, ours and cuFFT's",
            "grid": "the time of the best baseline over ours, over problem size and output extent, "
                    "for each kernel size",
            "roofline": "operations per second over operations per byte of our layers, and the device's roof"}


def full_table(runs):
    """A line per case and pass, a column per baseline. For suites that were measured with --choice also what
    the cost model chooses if it may choose cuDNN."""
    grid = len({run.case for run in runs if run.suite == "grid"})
    runs = [run for run in runs if not run.kept() and (run.suite != "grid" or grid <= LONG_GRID)]
    names = sorted({name for run in runs for name in run.baselines()})
    heads, class_of = class_heads([run for run in runs if not run.kind()])
    rows, chosen = [], {run.group() for run in runs if "choice" in run.ms}
    for run in runs:
        ours = run.ours()
        choice = "-"
        if ours and run.best() and run.group() in chosen:
            choice = "%s, %.2f" % ("cudnn" if "choice" in run.ms else "ours", run.regret())
        times = [number(run.ms[name]) if name in run.ms else "-" for name in names]
        rows.append([run.suite, run.case, *class_of(run), run.passname, number(run.ms[ours]) if ours else "-", *times,
                     ratio_text(run.ratio()) if ours and run.best() else "-",
                     "%.1e" % run.error[ours] if ours else "-", *[choice] * bool(chosen)])
    return table(runs, ["suite", "case", *heads, "pass", "ours", *names, "best / ours", "error of ours",
                        *["choice, its time / best"] * bool(chosen)], rows)


def layers_of(runs):
    """The passes of each layer, by name."""
    layers = {}
    for run in runs:
        if not run.kind() and not run.kept() and run.ours():
            layers.setdefault(run.layer(), {})[run.passname] = run
    return layers


def joint_gain(passes):
    """The time of both halves of the backward pass over that of the joint one; None if one is missing."""
    if not all(name in passes for name in [*HALVES, "backward"]):
        return None
    ms = {name: passes[name].ms[passes[name].ours()] for name in passes}
    return sum(ms[name] for name in HALVES) / ms["backward"]


def means_table(runs):
    """A line per layer: our ratio in each pass, their geometric mean, and the gain of the joint backward pass."""
    grid = len({run.case for run in runs if run.suite == "grid"})
    # The torch suites have other passes.
    layers = {key: passes for key, passes in layers_of(runs).items()
              if (key[0] != "grid" or grid <= LONG_GRID) and not key[0].startswith("torch-")}
    used = [run for passes in layers.values() for run in passes.values()]
    names = ["fprop", "bprop", "accgrad"]
    heads, class_of = class_heads(used)
    rows, of_suite = [], {}
    for passes in layers.values():
        run = next(iter(passes.values()))
        ratios = [passes[name].ratio() if name in passes and passes[name].best() else None for name in names]
        mean = geometric_mean(ratios) if None not in ratios else None
        if mean:
            of_suite.setdefault(run.group(), []).append(mean)
        gain = joint_gain(passes)
        rows.append([run.suite, run.case, *class_of(run), *("-" if r is None else ratio_text(r) for r in ratios),
                     ratio_text(mean) if mean else "-", "%.2f" % gain if gain else "-"])
    if not rows:
        return NOTHING
    lines = table(used, ["suite", "case", *heads, *(name + ": best / ours" for name in names), "geometric mean",
                         "both halves / backward"], rows)
    means = ["%s %s" % (name, ratio_text(geometric_mean(values))) for name, values in of_suite.items()]
    return lines + ["", "Geometric means over the layers of each suite: %s." % "; ".join(means)] if means else lines


def compared(runs):
    """The passes of layers that have errors both of ours and of cuDNN in the same class."""
    return [run for run in runs if not run.kind() and not run.kept() and run.passname in ERROR_PASSES and run.ours()
            and "cudnn" in run.error]


def error_pair(run):
    return "%.1e, %.1e" % (run.error[run.ours()], run.error["cudnn"])


def errors_table(runs):
    """A line per layer and class; the suite grid is left out if it is long."""
    used = compared(runs)
    grid = len({run.case for run in used if run.suite == "grid"})
    layers = {}
    for run in used:
        if run.suite != "grid" or grid <= LONG_GRID:
            layers.setdefault(run.layer(), {})[run.passname] = run
    if not layers:
        return NOTHING
    used = [run for passes in layers.values() for run in passes.values()]
    rows = [[*key, *(error_pair(passes[name]) if name in passes else "-" for name in ERROR_PASSES)]
            for key, passes in layers.items()]
    return table(used, ["suite", "case", "precision", "layout", *(name + ": ours, cuDNN" for name in ERROR_PASSES)],
                 rows)


def errors_short_table(runs):
    """A line per class and pass: medians and largest errors, and the case with the largest multiple of cuDNN's
    error."""
    groups, used = {}, compared(runs)
    for run in used:
        groups.setdefault((run.precision, run.passname), []).append(run)
    if not used:
        return NOTHING
    rows = []
    for precision, passname in sorted(groups, key=lambda key: (PRECISIONS.index(key[0]), PASSES.index(key[1]))):
        members = groups[precision, passname]
        pairs = [(run.error[run.ours()], run.error["cudnn"]) for run in members]
        medians, largest = ([f(errors) for errors in zip(*pairs)] for f in (statistics.median, max))
        multiples = [(ours / cudnn, run.case) for (ours, cudnn), run in zip(pairs, members) if cudnn > 0]
        rows.append([precision, passname, "%d" % len(members), "%.1e, %.1e" % tuple(medians),
                     "%.1e, %.1e" % tuple(largest), "%.2g (%s)" % max(multiples) if multiples else "-"])
    heads = ["precision", "pass", "layers", "median: ours, cuDNN", "largest: ours, cuDNN", "ours / cuDNN at most"]
    return table(used, heads, rows)[len(conditions_text(used)):]  # the table has no times, so it needs no conditions


def grid_table(runs):
    """A line per kernel size, class and pass of the suite grid."""
    groups, used = {}, [run for run in runs if run.suite == "grid" and not run.kept() and run.ours() and run.best()]
    if not used:
        return NOTHING
    for run in used:
        kernel = int(re.search(r"-k(\d+)-", run.case).group(1))
        groups.setdefault((PASSES.index(run.passname), run.group(), kernel), []).append(run)
    rows = []
    for (_, group, kernel), members in sorted(groups.items(), key=lambda item: (item[0][1], item[0][0], item[0][2])):
        rows.append([group, members[0].passname, "%dx%d" % (kernel, kernel), *summary_of(members)])
    lines = table(used, ["suite", "pass", "kernel", *SUMMARY], rows)
    large = [run for run in used if int(re.search(r"-k(\d+)-", run.case).group(1)) >= 9]
    means = []
    for least, words in ((0, "over all"), (20, "where the best baseline takes 20 microseconds or more"),
                         (50, "from 50"), (100, "from 100")):
        ratios = [run.ratio() for run in large if run.ms[run.best()] >= 1e-3 * least]
        means += ["%s %s" % (ratio_text(geometric_mean(ratios)), words)] if ratios else []
    return lines + (["", "Geometric means from 9x9 up: %s." % ", ".join(means)] if means else [])


def kept_table(runs):
    """A line per pass with kept spectra: the same plan with and without them, and the saved part of the transforms'
    time."""
    used = [run for run in runs if run.kept() and run.ours() and "unkept" in run.ms and run.ms.get("transforms", 0) > 0]
    if not used:
        return NOTHING
    heads, class_of = class_heads(used)
    rows = []
    for run in used:
        kept, unkept, transforms = run.ms[run.ours()], run.ms["unkept"], run.ms["transforms"]
        rows.append([run.suite, run.case, *class_of(run), run.passname.removesuffix("-kept"), number(unkept),
                     number(kept), number(transforms), "%.0f %%" % (100 * (unkept - kept) / transforms)])
    return table(used, ["suite", "case", *heads, "pass", "spectra made", "spectra kept", "their transforms",
                        "saved of the transforms"], rows)


def transform_table(runs, kind):
    """A line per transform of a kind, with its ratio to cuFFT and to a copy of as many bytes."""
    chosen = [run for run in runs if run.kind() == kind and run.ours()]
    if not chosen:
        return NOTHING
    names = [name for name in ("cufft", "cufft-padded", "copy") if any(name in run.ms for run in chosen)]
    ratios = [name for name in names if kind != "fm" or name == "copy"]
    lines = conditions_text(chosen)
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


SUMMARY = ["cases", "faster than the best baseline", "best / ours: geometric mean", "worst", "best"]


def summary_of(members):
    ratios = [run.ratio() for run in members]
    worst, best = min(members, key=Run.ratio), max(members, key=Run.ratio)
    return ["%d" % len(members), "%d" % sum(ratio >= 1 for ratio in ratios), ratio_text(geometric_mean(ratios)),
            "%s (%s)" % (worst.case, short(worst.ratio())), "%s (%s)" % (best.case, short(best.ratio()))]


def summary_cell(members, cases):
    ratios = [run.ratio() for run in members]
    won = sum(ratio >= 1 for ratio in ratios)
    notes = ["%s to %s" % (short(min(ratios)), short(max(ratios)))] if len(ratios) > 1 else []
    if won < len(ratios):
        notes.append("%d of %d faster" % (won, len(ratios)))
    elif won < cases:
        notes.append("%d case%s" % (won, "s" * (won > 1)))
    return ratio_text(geometric_mean(ratios)) + (" (%s)" % ", ".join(notes) if notes else "")


def summary_table(runs):
    """A line per suite (of transforms: per kind) and class, a column per pass. Suites with common passes share a
    table."""
    groups, tables, used = {}, [], [run for run in runs if run.ours() and run.best() and not run.kept()]
    for run in used:
        groups.setdefault(run.group(), {}).setdefault(run.passname, []).append(run)
    for group, passes in groups.items():
        lines, names = next((known for known in tables if known[1].keys() & passes.keys()), ({}, {}))
        if not lines:
            tables.append((lines, names))
        lines[group] = passes
        names.update(passes)
    text = conditions_text(used) + ["The time of the best baseline over ours: geometric mean (worst to best case)."]
    for lines, names in tables:
        names = sorted(names, key=PASSES.index)
        text += ["", "| suite | cases | %s |" % " | ".join(names), "|---|---:|%s" % ("---|" * len(names))]
        for group, passes in lines.items():
            cases = max(map(len, passes.values()))
            cells = [summary_cell(passes[name], cases) if name in passes else "-" for name in names]
            text.append("| %s | %d | %s |" % (group, cases, " | ".join(cells)))
    return text


def summary_short_table(runs):
    """The summary of layers in FP32, channels first, that cuDNN computes too, without the conditions of measurement."""
    used = [run for run in runs if run.precision == "fp32" and run.layout == "first" and "cudnn" in run.ms]
    lines = summary_table(used) if used else NOTHING
    return [line for line in lines if line.startswith("|")] or NOTHING


def tuned_table(runs):
    """A line per suite and pass with tuned plans."""
    used = [run for run in runs if "tuned" in run.ms and run.best()]
    if not used:
        return NOTHING
    rows = []
    for group, passname in dict.fromkeys((run.group(), run.passname) for run in used):
        of_row = [run for run in used if (run.group(), run.passname) == (group, passname)]
        ratios = {run.case: run.ms[run.best()] / run.ms["tuned"] for run in of_row}
        best = {run.case: run.ms[run.best()] for run in of_row}
        slower = [run.case for run in of_row if run.ms["tuned"] > max(1.03 * best[run.case], best[run.case] + 1e-3)]
        ours = sum(run.strategy["tuned"].split(" ")[0] in OUR_FAMILIES for run in of_row)
        worst = min(ratios, key=ratios.get)
        rows.append([group, passname, str(len(of_row)), str(ours), ratio_text(geometric_mean(list(ratios.values()))),
                     "%s %s" % (ratio_text(ratios[worst]), worst), str(len(slower))])
    return table(used, ["suite", "pass", "layers", "ours chosen", "cuDNN / tuned", "worst", "slower"], rows)


def stages_table(runs, results):
    """A line per stage: the time of a copy of its bytes, and that of its operations on the FP32 units or tensor
    cores."""
    used = [run for run in runs if run.stages]
    if not used:
        return NOTHING
    rate, peaks = copy_rate(results), list(peak_rates(used).values())
    heads, class_of = class_heads(used)
    rows = []
    for run in used:
        for name, ms, moved, operations, strategy in run.stages:
            tensor = name.startswith("product") and "product=tensor" in strategy
            peak = (peaks[-1] if tensor else peaks[0]) if peaks else None
            if peak and tensor and "spectrum=fp32" not in strategy:
                peak *= FP32_PRODUCTS  # numbers of 16 bits
            copy, units = 1e3 * moved / rate if rate else None, 1e3 * operations / peak if peak else None
            rows.append([run.suite, run.case, *class_of(run), run.passname, name, number(moved / 1e6),
                         number(copy) if copy else "-", number(operations / 1e9), number(units) if units else "-",
                         number(ms), "%.2f" % (ms / copy) if copy else "-",
                         "%.2f" % (ms / max(copy, units)) if copy and units else "-"])
    return table(used, ["suite", "case", *heads, "pass", "stage", "MB", "of a copy, ms", "Gflop", "of the units, ms",
                        "measured, ms", "measured / copy", "measured / the larger"], rows)


def products_table(runs):
    """A line per size of matrix products and class: both libraries' times of the three passes, and their largest
    errors."""
    sizes, used = {}, [run for run in runs if run.suite == "gemm" and run.ours() and "cublas" in run.ms]
    if not used:
        return NOTHING
    for run in used:
        sizes.setdefault((run.case, run.precision), {})[run.passname] = run
    rows = []
    for (case, precision), passes in sizes.items():
        members = [passes[name] for name in PASSES if name in passes]
        times = [", ".join(number(run.ms[name(run)]) for run in members) for name in (lambda run: "cublas", Run.ours)]
        errors = ["%.1e" % max(run.error[name(run)] for run in members) for name in (lambda run: "cublas", Run.ours)]
        rows.append([case, precision, *times, *errors])
    return table(used, ["case", "precision", "cuBLAS: fprop, bprop, accgrad", "ours", "error of cuBLAS",
                        "error of ours"], rows)


LAYERS = {"layers": full_table, "means": means_table, "errors": errors_table, "errors-short": errors_short_table,
          "summary-short": summary_short_table, "grid": grid_table, "kept": kept_table,
          "products": products_table}


def picture(path, picture_file):
    """A line of Markdown that shows a picture in the file of this path."""
    if not picture_file.exists():
        return ["No picture yet."]
    name = picture_file.stem.split("-")
    what = next(PICTURES[word] for word in reversed(name) if word in PICTURES)
    return ["![%s](%s)" % (what, pathlib.PurePath(os.path.relpath(picture_file, path.parent)).as_posix())]


OTHERS = {
    "warp": lambda folder: warp_lines(folder / "warp.csv"),
    **{"split-paper-%d" % rank: lambda folder, rank=rank: split_paper_lines(
        read_results(folder, lambda path: path.stem == "fft"), rank) for rank in (1, 2, 3)},
    "busy": lambda folder: busy_lines(folder / "busy.csv"),
    "goals": lambda folder: goals_lines(folder, folder.parent / "cpu-16"),
    "quality": lambda folder: quality_lines(folder / "quality.csv"),
    "records": lambda folder: records_lines(pathlib.Path(__file__).resolve().parents[2] / "tuning" / folder.name),
    "tuned": lambda folder: tuned_table(read_results(folder, lambda path: path.stem == "tuned")),
    "stages": lambda folder: stages_table(read_results(folder, lambda path: path.stem == "stages"),
                                          read_results(folder)),
}

OF_SUITES = {"suite-" + suite: suite for suite in SUITES}


def table_of(folder, kind, is_summary):
    """The lines of a table of results."""
    if kind in OTHERS:
        return OTHERS[kind](folder)
    if kind in OF_SUITES:
        return full_table([run for run in read_results(folder) if run.suite == OF_SUITES[kind]])
    transforms = kind in KINDS
    runs = read_results(folder, lambda path: path.stem not in OTHER_FORMS
                        and (not kind or (path.stem == "fft") == transforms))
    if not runs:
        raise SystemExit("report.py: no results in %s" % folder)
    if transforms:
        return transform_table(runs, kind)
    if kind:
        return LAYERS[kind](runs)
    return summary_table(runs) if is_summary else full_table(runs)


def fill(text, path, results, pictures):
    """The text of the file of this path with new contents of all its tables."""
    def marked(match):
        name, _, kind = match.group(2).partition("/")
        if kind.startswith("picture-") and kind.split("-")[1] in PICTURES:
            lines = picture(path, pictures / ("%s-%s.svg" % (name, kind.removeprefix("picture-"))))
        elif kind and kind not in KINDS and kind not in LAYERS and kind not in OTHERS and kind not in OF_SUITES:
            names = [*LAYERS, *OTHERS, *("picture-" + word for word in PICTURES), *OF_SUITES, *KINDS]
            raise SystemExit("report.py: the kind is %s; it must be one of %s"
                             % (kind, ", ".join(dict.fromkeys(names))))
        else:
            lines = table_of(results / name.removesuffix("-summary"), kind, name.endswith("-summary"))
        return match.group(1) + "\n" + "\n".join(lines) + "\n\n" + match.group(4)
    return MARKERS.sub(marked, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE.md", type=pathlib.Path)
    bench = pathlib.Path(__file__).resolve().parents[1]
    parser.add_argument("--results", default=bench / "results", type=pathlib.Path)
    parser.add_argument("--pictures", default=bench.parent / "docs" / "pictures", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a file is not up to date")
    arguments = parser.parse_args()
    stale = 0
    for path in arguments.files:
        old = path.read_text(encoding="utf-8")
        if not MARKERS.search(old):
            raise SystemExit("report.py: %s must have a line <!-- bench:DEVICE:begin --> and its end" % path)
        new = fill(old, path.resolve(), arguments.results, arguments.pictures.resolve())
        if new != old and arguments.check:
            print("report.py: %s is not up to date" % path, file=sys.stderr)
            stale += 1
        elif new != old:
            path.write_text(new, encoding="utf-8")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
