#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of measured times from the results of bench_conv and bench_fft. It needs matplotlib.

    python3 bench/report/plot.py [DEVICE ...] [--results bench/results] [--out docs/pictures] [--format svg]

It draws these for each DEVICE (a folder of results; all by default) that has the results:

    DEVICE-layers.svg    per suite, layer and pass: the time of the best baseline over ours (also -layers-CLASS.svg)
    DEVICE-fft.svg       1-D and 2-D transforms: the time of a copy of as many bytes over that of ours and of cuFFT
    DEVICE-grid.svg      suite grid: the time of the best baseline over ours, by problem size and output extent, a map
                         for each kernel size, averaged over the passes, as in Figures 1-6 of the fbfft paper
                         (arXiv 1412.7580)
    DEVICE-roofline.svg  our FP32 layers: operations per second over operations per byte, both counted as in the
                         library's cost model for the strategy that was used. The roof is that of the fastest measured
                         copy, of the FP32 units by tests/data/gpus (dashed) and of FP32 products on tensor cores

The same results give the same files.
"""
import argparse
import math
import pathlib
import re
import sys

import results

try:
    import matplotlib
except ImportError:
    sys.exit("plot.py: matplotlib is missing; install python3-matplotlib")
matplotlib.use("Agg")
from matplotlib import colors, pyplot, ticker  # noqa: E402

COLOURS = {"fprop": "#1b6ca8", "bprop": "#d1495b", "accgrad": "#edae49", "backward": "#66a182"}
LAYER_PASSES = list(COLOURS)
RATIO_TICKS = [1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
STYLE = {"svg.hashsalt": "conv_fft", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": 9,
         "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "figure.facecolor": "white"}


def times_text(value, _=None):
    return "%gx" % value if value >= 1 else "1/%gx" % (1 / value)


def ratio_axis(axis, low, high):
    """A logarithmic axis of ratios that shows 1."""
    limits = min(low, 0.9) / 1.1, max(high, 1.1) * 1.1
    axis.axes.set(**{axis.axis_name + "scale": "log", axis.axis_name + "lim": limits})
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

def draw_fft(runs):
    """A line per implementation and direction, a panel per rank. Each extent shows its largest batch."""
    panels = {kind: {} for kind in ("1d", "2d")}
    for run in runs:
        size = results.transform_size(run) if run.kind() in panels else None
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
        ax.set_title("%s: n%s points" % (results.KINDS[kind], " x n" if kind == "2d" else ""), loc="left",
                     fontweight="bold")
        ax.set_xlabel("n")
        ax.set_ylim(0, 1.1)
        ax.axhline(1, color="black", linewidth=0.8)
        ax.grid(color="#dddddd", linewidth=0.6)
    axes[0].set_ylabel("rate / rate of a copy")
    axes[0].legend(frameon=False, loc="lower left", ncols=2)
    return figure


# ---- the grid

def grid_points(runs):
    """{kernel extent: {(problem size, output extent): the ratios of all passes of its cases}}."""
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
        values = [results.geometric_mean(points[at]) for at in points]
        drawn = ax.scatter([at[1] for at in points], [at[0] for at in points], c=values, norm=scale, cmap="RdYlGn",
                           marker="s", s=42, edgecolors="#555555", linewidths=0.3)
        ax.set_xscale("log", base=2)
        ax.set_yscale("log", base=10)
        ax.xaxis.set_major_locator(ticker.FixedLocator([1, 2, 4, 8, 16, 32, 64]))
        ax.xaxis.set_major_formatter(lambda value, _: "%d" % value)
        ax.set_title("%d x %d kernel: %d of %d faster" % (kernel, kernel, sum(v >= 1 for v in values), len(values)),
                     loc="left")
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
    """The fields of the layer's line in networks/, by name; None if there is no such line."""
    for path in results.suite_files(run.suite):
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


class Counts:
    """The counts of a layer's planes, points and elements, from the layer's fields and the strategy's options."""

    def __init__(self, fields, options, precision):
        self.batch, inputs, *data = extents_of(fields["in"])
        outputs, self.groups = int(fields.get("out", inputs)), int(fields.get("groups", 1))
        kernel, stride = ((extents_of(fields.get(name, "1")) * len(data))[:len(data)] for name in ("kernel", "stride"))
        basis, tiles, phases = extents_of(options["basis"]), extents_of(options["tiles"]), math.prod(stride)
        self.element = 4 if precision in ("fp32", "tf32") else 2
        self.points, self.bins = math.prod(basis), math.prod(basis[:-1]) * (basis[-1] // 2 + 1)
        self.rows = self.batch * math.prod(tiles)
        self.inputs, self.outputs = inputs // self.groups * phases, outputs // self.groups  # planes of a row and group
        self.tensors = {"x": self.batch * inputs * math.prod(data),
                        "w": outputs * inputs // self.groups * math.prod(kernel),
                        "y": self.batch * outputs * math.prod(output_extents(fields, data, kernel, stride))}
        self.planes = {"x": self.rows * inputs * phases, "w": outputs * inputs // self.groups * phases,
                       "y": self.rows * outputs}
        # With overlap-save each gradient divides gy into other tiles.
        self.shares_gy = math.prod(tiles) == 1 or options.get("overlap") == "add"

    def products(self):
        return 8 * self.bins * self.groups * self.rows * self.inputs * self.outputs

    def transforms(self, planes):
        return planes * (2.5 * self.points * math.log2(max(self.points, 2)) + self.points)


def staged_work(counts, passname):
    """The spectra of all operands and of the result, and the products that read and write them."""
    both = passname == "backward"
    names = ["x", "w", "y"] + (["x", "w"] + ([] if counts.shares_gy else ["y"]) if both else [])
    moved = sum(counts.tensors[name] * counts.element + counts.planes[name] * counts.bins * 8 for name in names)
    operations = sum(counts.transforms(counts.planes[name]) for name in names)
    products = 2 if both else 1
    moved += products * sum(counts.planes.values()) * counts.bins * 8
    return operations + products * counts.products(), moved


def fused_work(counts, passname):
    """Bytes of the tensors, and of the weights' spectra, written and read. For gw, x counts once for each chunk of sums
    that fits a block."""
    plane, again = 8 * counts.bins, 1
    if passname == "accgrad":
        chunk = min(counts.outputs, max(1, (110e3 / plane - counts.inputs - 1) // counts.inputs))
        again = counts.outputs / chunk
    planes = counts.rows * counts.groups * (again * counts.inputs + counts.outputs)
    moved = (counts.tensors["x"] * again + counts.tensors["y"] + counts.tensors["w"]) * counts.element
    moved += 2 * counts.planes["w"] * plane
    operations = counts.transforms(planes) + counts.products() + counts.transforms(counts.planes["w"])
    return operations, moved


def work(run):
    """Operations and bytes of our strategy in this pass, counted as in src/conv/plan/cost; None if unknown."""
    fields, (family, *words) = problem_of(run), run.strategy[run.ours()].split(" ")
    options = dict(word.split("=", 1) for word in words)
    if fields is None or family not in results.OUR_FAMILIES or "dilation" in fields or "basis" not in options:
        return None
    counts = Counts(fields, options, run.precision)
    if family == "staged":
        return staged_work(counts, run.passname)
    halves = [fused_work(counts, name) for name in (results.HALVES if run.passname == "backward" else [run.passname])]
    return tuple(map(sum, zip(*halves)))


def draw_roofline(points, memory, peaks):
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
    for peak, line in zip(sorted(peaks.values()) or [math.inf], ["--", "-"] if len(peaks) > 1 else ["-"]):
        ax.plot(at, [min(x * memory, peak) * 1e-12 for x in at], line, color="black", linewidth=1)
    handles = [pyplot.Line2D([], [], marker=marker, linestyle="", color="#888888", label=suite)
               for marker, suite in zip("os^DvP*X", suites)]
    handles += [pyplot.Line2D([], [], marker="o", linestyle="", color=COLOURS[name], label=name)
                for name in LAYER_PASSES]
    ax.legend(handles=handles, frameon=False, ncols=2, loc="lower right")
    ax.set_xlabel("operations per byte of the stages' tensors and spectra")
    ax.set_ylabel("TFLOP/s")
    ax.grid(color="#dddddd", linewidth=0.6)
    words = ["the fastest copy, %.1f TB/s" % (memory * 1e-12)]
    words += ["%s, %.0f TFLOP/s" % (name, peak * 1e-12) for name, peak in peaks.items()]
    ax.set_title("roof: " + "; ".join(words), loc="left", fontsize="medium")
    return figure


# ---- files

def pictures_of(device, runs):
    """The names of the pictures that have results, and the functions that draw them."""
    layers = [run for run in runs if not run.kind() and not run.kept() and run.ours() and run.best()]
    plain = [run for run in layers if run.suite != "grid" and run.passname in LAYER_PASSES]
    for key in dict.fromkeys((run.precision, run.layout) for run in plain):
        chosen = [run for run in plain if (run.precision, run.layout) == key]
        suffix = "" if key == ("fp32", "first") else "-%s-%s" % key
        yield "%s-layers%s" % (device, suffix), lambda chosen=chosen: draw_layers(chosen)
    if any(run.kind() in ("1d", "2d") and results.transform_size(run) and "copy" in run.ms for run in runs):
        yield device + "-fft", lambda: draw_fft(runs)
    grid = [run for run in layers if run.suite == "grid" and (run.precision, run.layout) == ("fp32", "first")]
    if sum(len(points) for points in grid_points(grid).values()) > results.LONG_GRID:
        yield device + "-grid", lambda: draw_grid(grid)
    memory = results.copy_rate(runs)
    points = [(run, *work(run)) for run in plain if run.precision == "fp32" and work(run)]
    if points and memory:
        yield device + "-roofline", lambda: draw_roofline(points, memory, results.peak_rates(runs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    bench = pathlib.Path(__file__).resolve().parents[1]
    parser.add_argument("devices", nargs="*", metavar="DEVICE")
    parser.add_argument("--results", default=bench / "results", type=pathlib.Path)
    parser.add_argument("--out", default=bench.parent / "docs" / "pictures", type=pathlib.Path)
    parser.add_argument("--format", default="svg", choices=["svg", "png"])
    arguments = parser.parse_args()
    devices = arguments.devices or sorted(path.name for path in arguments.results.iterdir() if path.is_dir())
    arguments.out.mkdir(parents=True, exist_ok=True)
    drawn = 0
    with matplotlib.rc_context(STYLE):
        for device in devices:
            for name, draw in pictures_of(device, results.read_results(arguments.results / device)):
                path = arguments.out / ("%s.%s" % (name, arguments.format))
                figure = draw()
                figure.savefig(path, dpi=110, metadata={"Date": None} if arguments.format == "svg"
                               else {"Software": None})
                pyplot.close(figure)
                print(path)
                drawn += 1
    if not drawn:
        print("plot.py: no results to draw in %s" % arguments.results, file=sys.stderr)
    return 0 if drawn else 1


if __name__ == "__main__":
    sys.exit(main())
