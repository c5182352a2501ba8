#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of measured times, from the results that bench_conv and bench_fft keep. Needs matplotlib.

    python3 bench/plot.py [DEVICE ...] [--results bench/results] [--out docs/pictures] [--format svg]

For each DEVICE (a folder of results; all by default), as far as there are results:

    DEVICE-layers.svg             per suite, layer and pass: the time of the best baseline over ours (also -layers-CLASS.svg)
    DEVICE-fft.svg                1-D and 2-D transforms: the time of a copy of as many bytes over that of ours and of cuFFT
    DEVICE-grid.svg               suite grid: the same ratio over problem size and output extent, a map for each kernel size,
                                  averaged over the passes, as in Figures 1-6 of the fbfft paper (arXiv 1412.7580)
    DEVICE-roofline.svg           our FP32 layers: operations per second over operations per byte, both counted as the
                                  library's cost model counts them for the strategy that was used; below the roof of the
                                  fastest measured copy and of the FP32 units that tests/facts tells

The same results give the same files.
"""
import argparse
import math
import pathlib
import re
import sys

import measured

try:
    import matplotlib
except ImportError:
    sys.exit("plot.py: matplotlib is missing; install python3-matplotlib")
matplotlib.use("Agg")
from matplotlib import colors, pyplot, ticker  # noqa: E402

FACTS = pathlib.Path(__file__).resolve().parent.parent / "tests" / "facts"
COLOURS = {"fprop": "#1b6ca8", "bprop": "#d1495b", "accgrad": "#edae49", "backward": "#66a182"}
LAYER_PASSES = list(COLOURS)
RATIO_TICKS = [1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
STYLE = {"svg.hashsalt": "conv_fft", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": 9,
         "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "figure.facecolor": "white"}


def times_text(value, _=None):
    return "%gx" % value if value >= 1 else "1/%gx" % (1 / value)


def ratio_axis(axis, low, high):
    """A logarithmic axis of ratios that shows 1."""
    axis.axes.set(**{axis.axis_name + "scale": "log", axis.axis_name + "lim": (min(low, 0.9) / 1.1, max(high, 1.1) * 1.1)})
    axis.set_major_locator(ticker.FixedLocator(RATIO_TICKS))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(times_text)


# ---- layers

def draw_layers(runs):
    """A bar per pass, a group of bars per layer, a panel per suite."""
    panels = {}
    for run in runs:
        panels.setdefault(run.suite, {}).setdefault(run.case, {})[run.passname] = run.ratio()
    rows = [len(layers) for layers in panels.values()]
    figure, axes = pyplot.subplots(len(panels), 1, figsize=(8, 0.6 + sum(0.55 * n + 0.55 for n in rows)), squeeze=False,
                                   sharex=True, gridspec_kw={"height_ratios": [n + 0.4 for n in rows]},
                                   layout="constrained")
    ratios = [run.ratio() for run in runs]
    for ax, (suite, layers) in zip(axes[:, 0], panels.items()):
        passes = [name for name in LAYER_PASSES if any(name in of for of in layers.values())]
        for i, name in enumerate(passes):
            at = [y + (i + 0.5) * 0.8 / len(passes) - 0.4 for y, of in enumerate(layers.values()) if name in of]
            values = [of[name] for of in layers.values() if name in of]
            ax.barh(at, [value - 1 for value in values], 0.8 / len(passes), left=1, color=COLOURS[name], label=name)
        ax.axvline(1, color="black", linewidth=0.8)
        ax.set_yticks(range(len(layers)), list(layers))
        ax.set_ylim(len(layers) - 0.5, -0.5)
        ax.set_title(suite, loc="left", fontweight="bold")
        ax.grid(axis="x", color="#dddddd", linewidth=0.6)
        ratio_axis(ax.xaxis, min(ratios), max(ratios))
    axes[0, 0].legend(ncols=4, loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    axes[-1, 0].set_xlabel("time of the best baseline / ours (to the right of 1: we are faster)")
    return figure


# ---- transforms

def transform_size(run):
    """Of a square transform of a large batch: its extent and its batch; else None."""
    match = re.fullmatch(r"[12]d-n(\d+)(?:x(\d+))?-b(\d+)", run.case)
    return (int(match[1]), int(match[3])) if match and match[2] in (None, match[1]) else None


def draw_fft(runs):
    """A line per implementation and direction, a panel per rank; of each extent the largest batch."""
    panels = {kind: {} for kind in ("1d", "2d")}
    for run in runs:
        size = transform_size(run) if run.kind() in panels else None
        if size and run.ours() and "copy" in run.ms:
            of = panels[run.kind()].setdefault((run.passname, size[0]), (size[1], run))
            panels[run.kind()][run.passname, size[0]] = max(of, (size[1], run), key=lambda pair: pair[0])
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for ax, (kind, points) in zip(axes, panels.items()):
        for name, colour in (("ours", "#1b6ca8"), ("cufft", "#d1495b")):
            for passname, line in (("r2c", "-"), ("c2r", "--")):
                chosen = sorted((n, run) for (of, n), (_, run) in points.items() if of == passname and name in run.ms)
                if chosen:
                    ax.plot([n for n, _ in chosen], [run.ms["copy"] / run.ms[name] for _, run in chosen], line,
                            marker="o", markersize=3, color=colour, label="%s %s" % (name, passname))
        extents = sorted({n for _, n in points})
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_locator(ticker.FixedLocator([n for n in extents if n & (n - 1) == 0]))
        ax.xaxis.set_major_formatter(lambda value, _: "%d" % value)
        ax.tick_params(axis="x", labelsize=7)
        ax.set_title("%s: n%s points" % (measured.KINDS[kind], " x n" if kind == "2d" else ""), loc="left", fontweight="bold")
        ax.set_xlabel("n")
        ax.set_ylim(0, 1.1)
        ax.axhline(1, color="black", linewidth=0.8)
        ax.grid(color="#dddddd", linewidth=0.6)
    axes[0].set_ylabel("rate / rate of a copy")
    axes[0].legend(frameon=False, loc="lower left", ncols=2)
    return figure


# ---- the grid

def grid_points(runs):
    """By kernel extent: (problem size, output extent) -> the ratios of all passes of all cases there."""
    maps = {}
    for run in runs:
        match = re.fullmatch(r"g\d+-k(\d+)-o(\d+)-f(\d+)x(\d+)-s(\d+)", run.case)  # no scaled case
        if match and run.passname in ("fprop", "bprop", "accgrad"):
            kernel, output, f, f2, batch = map(int, match.groups())
            maps.setdefault(kernel, {}).setdefault((batch * f * f2, output), []).append(run.ratio())
    return {kernel: maps[kernel] for kernel in sorted(maps)}


def draw_grid(runs):
    maps = grid_points(runs)
    columns = min(3, len(maps))
    rows = -(-len(maps) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(1 + 3 * columns, 3.1 * rows), sharex=True, sharey=True,
                                   squeeze=False, layout="constrained")
    scale = colors.LogNorm(1 / 8, 8)
    for ax in axes.flat[len(maps):]:
        ax.remove()
    for ax, (kernel, points) in zip(axes.flat, maps.items()):
        values = [measured.geometric_mean(points[at]) for at in points]
        drawn = ax.scatter([at[1] for at in points], [at[0] for at in points], c=values, norm=scale, cmap="RdYlGn",
                           marker="s", s=42, edgecolors="#555555", linewidths=0.3)
        ax.set_xscale("log", base=2)
        ax.set_yscale("log", base=10)
        ax.xaxis.set_major_locator(ticker.FixedLocator([1, 2, 4, 8, 16, 32, 64]))
        ax.xaxis.set_major_formatter(lambda value, _: "%d" % value)
        ax.set_title("%d x %d kernel: %d of %d faster" % (kernel, kernel, sum(v >= 1 for v in values), len(values)), loc="left")
        ax.grid(color="#dddddd", linewidth=0.6)
    for ax in axes[:, 0]:
        ax.set_ylabel("problem size  S f f'")
    for ax in axes[-1]:
        ax.set_xlabel("output extent")
    bar = figure.colorbar(drawn, ax=figure.axes, extend="both", shrink=0.7)
    bar.ax.yaxis.set_major_locator(ticker.FixedLocator([1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8]))
    bar.ax.yaxis.set_minor_locator(ticker.NullLocator())
    bar.ax.yaxis.set_major_formatter(times_text)
    bar.set_label("best baseline / ours")
    return figure


# ---- roofline

def problem_of(run):
    """The fields of the layer's line in networks/, by name; None if it is not there."""
    for path in measured.suite_files(run.suite):
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            words = line.split("#")[0].split()
            if words and words[0] == run.case:
                return dict(word.split("=", 1) for word in words[1:])
    return None


def extents_of(text):
    return [int(number) for number in text.split("x")]


def output_extents(fields, data, kernel, stride):
    pads = fields.get("pad", "0")
    if pads == "same":
        return [-(-d // s) for d, s in zip(data, stride)]
    before, _, after = pads.partition(":")
    both = [int(before) + int(after or before)] * len(data)
    return [(d + p - k) // s + 1 for d, p, k, s in zip(data, both, kernel, stride)]


def work(run):
    """Operations and bytes of our strategy in this pass, counted as src/autotune/model.c does; None if they cannot be told."""
    fields, strategy = problem_of(run), run.strategy[run.ours()].split(" ")
    options = dict(word.split("=", 1) for word in strategy[1:])
    if fields is None or strategy[0] != "staged" or "dilation" in fields or "basis" not in options:
        return None
    batch, inputs, *data = extents_of(fields["in"])
    outputs, groups = int(fields.get("out", inputs)), int(fields.get("groups", 1))
    kernel = extents_of(fields.get("kernel", "1")) * (1 if "x" in fields.get("kernel", "1") else len(data))
    stride = extents_of(fields.get("stride", "1")) * (1 if "x" in fields.get("stride", "1") else len(data))
    basis, tiles, phases = extents_of(options["basis"]), extents_of(options["tiles"]), math.prod(stride)
    element = 4 if run.precision in ("fp32", "tf32") else 2
    points, bins, rows = math.prod(basis), math.prod(basis[:-1]) * (basis[-1] // 2 + 1), batch * math.prod(tiles)
    tensors = {"x": batch * inputs * math.prod(data), "w": outputs * inputs // groups * math.prod(kernel),
               "y": batch * outputs * math.prod(output_extents(fields, data, kernel, stride))}
    planes = {"x": rows * inputs * phases, "w": outputs * inputs // groups * phases, "y": rows * outputs}
    products = 2 if run.passname == "backward" else 1
    moved = operations = 0
    transforms = ["x", "w", "y"] + (["x", "w"] if products == 2 else [])
    for name in transforms:
        moved += tensors[name] * element + planes[name] * bins * 8
        operations += planes[name] * (2.5 * points * math.log2(max(points, 2)) + points)
    moved += products * sum(planes.values()) * bins * 8
    operations += products * 8 * bins * groups * rows * (inputs // groups * phases) * (outputs // groups)
    return operations, moved


def copy_rate(runs):
    """Bytes per second, read and written, of the fastest copy among the transforms; None if there is none."""
    rates = []
    for run in runs:
        size = transform_size(run)
        if size and "copy" in run.ms and run.passname in ("r2c", "c2r") and run.precision == "fp32":
            n, batch = size
            real, half = n ** int(run.case[0]) * 4, n ** (int(run.case[0]) - 1) * (n // 2 + 1) * 8
            rates.append(batch * (real + half) / run.ms["copy"] * 1e3)
    return max(rates, default=None)


def peak_rate(runs):
    """FP32 operations per second by the facts of the device that the results name; None if they are not known."""
    names = {line.split(": ", 1)[1].split(",")[0] for run in runs for line in run.conditions if line.startswith("device: ")}
    for path in sorted(FACTS.glob("*.txt")):
        facts = dict(re.findall(r"^(\w+)\s*[=:]\s*(.+)$", path.read_text(encoding="utf-8"), re.MULTILINE))
        if facts.get("name") in names and "multiprocessors" in facts and "clock_khz" in facts:
            return 2 * 128 * int(facts["multiprocessors"]) * int(facts["clock_khz"]) * 1e3
    return None


def draw_roofline(points, memory, peak):
    figure, ax = pyplot.subplots(figsize=(8, 4.6), layout="constrained")
    suites = list(dict.fromkeys(run.suite for run, _, _ in points))
    for marker, suite in zip("os^DvP*X", suites):
        for passname in LAYER_PASSES:
            chosen = [(operations / moved, operations / run.ms[run.ours()] * 1e-9) for run, operations, moved in points
                      if run.suite == suite and run.passname == passname]
            ax.scatter(*zip(*chosen) if chosen else ([], []), marker=marker, s=26, color=COLOURS[passname],
                       edgecolors="#333333", linewidths=0.3)
    for axis in (ax.xaxis, ax.yaxis):
        ax.set(**{axis.axis_name + "scale": "log"})
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.set_minor_locator(ticker.NullLocator())
        axis.set_major_formatter(lambda value, _: "%g" % value)
    low, high = min(o / m for _, o, m in points) / 2, max(o / m for _, o, m in points) * 2
    at = [low * (high / low) ** (i / 200) for i in range(201)]
    ax.plot(at, [min(x * memory, peak or math.inf) * 1e-12 for x in at], color="black", linewidth=1)
    handles = [pyplot.Line2D([], [], marker=marker, linestyle="", color="#888888", label=suite)
               for marker, suite in zip("os^DvP*X", suites)]
    handles += [pyplot.Line2D([], [], marker="o", linestyle="", color=COLOURS[name], label=name) for name in LAYER_PASSES]
    ax.legend(handles=handles, frameon=False, ncols=2, loc="lower right")
    ax.set_xlabel("operations per byte of the stages' tensors and spectra")
    ax.set_ylabel("TFLOP/s")
    ax.grid(color="#dddddd", linewidth=0.6)
    words = ["the fastest copy, %.1f TB/s" % (memory * 1e-12)] + (["FP32 units, %.0f TFLOP/s" % (peak * 1e-12)] if peak else [])
    ax.set_title("roof: " + "; ".join(words), loc="left")
    return figure


# ---- files

def pictures_of(device, runs):
    """Names and how to draw them, as far as there are results."""
    layers = [run for run in runs if not run.kind() and not run.kept() and run.ours() and run.best()]
    plain = [run for run in layers if run.suite != "grid" and run.passname in LAYER_PASSES]
    for key in dict.fromkeys((run.precision, run.layout) for run in plain):
        chosen = [run for run in plain if (run.precision, run.layout) == key]
        suffix = "" if key == ("fp32", "first") else "-%s-%s" % key
        yield "%s-layers%s" % (device, suffix), lambda chosen=chosen: draw_layers(chosen)
    if any(run.kind() in ("1d", "2d") and transform_size(run) and "copy" in run.ms for run in runs):
        yield device + "-fft", lambda: draw_fft(runs)
    grid = [run for run in layers if run.suite == "grid" and (run.precision, run.layout) == ("fp32", "first")]
    if sum(len(points) for points in grid_points(grid).values()) > measured.LONG_GRID:
        yield device + "-grid", lambda: draw_grid(grid)
    memory = copy_rate(runs)
    points = [(run, *work(run)) for run in plain if run.precision == "fp32" and work(run)]
    if points and memory:
        yield device + "-roofline", lambda: draw_roofline(points, memory, peak_rate(runs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = pathlib.Path(__file__).resolve().parent
    parser.add_argument("devices", nargs="*", metavar="DEVICE")
    parser.add_argument("--results", default=here / "results", type=pathlib.Path)
    parser.add_argument("--out", default=here.parent / "docs" / "pictures", type=pathlib.Path)
    parser.add_argument("--format", default="svg", choices=["svg", "png"])
    arguments = parser.parse_args()
    devices = arguments.devices or sorted(path.name for path in arguments.results.iterdir() if path.is_dir())
    arguments.out.mkdir(parents=True, exist_ok=True)
    drawn = 0
    with matplotlib.rc_context(STYLE):
        for device in devices:
            for name, draw in pictures_of(device, measured.read_results(arguments.results / device)):
                path = arguments.out / ("%s.%s" % (name, arguments.format))
                figure = draw()
                figure.savefig(path, dpi=110, metadata={"Date": None} if arguments.format == "svg" else {"Software": None})
                pyplot.close(figure)
                print(path)
                drawn += 1
    if not drawn:
        print("plot.py: no results to draw in %s" % arguments.results, file=sys.stderr)
    return 0 if drawn else 1


if __name__ == "__main__":
    sys.exit(main())
