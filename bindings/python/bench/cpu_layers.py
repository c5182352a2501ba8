#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the layers of networks/*.txt on a CPU beside torch's, which are mostly oneDNN's.

    python cpu_layers.py --suite torch-mixed=mixed [--threads 16] [--max-gflop 16] [--out conv.csv]

Both are called from Python. Calls of one kind follow each other for half of --seconds; the two kinds take turns twice,
so no call runs while threads of the other still spin. The median counts, without the first call of each turn. The
batch is reduced until a direct pass needs at most --max-gflop. Errors are relative to the library in FP64. Rows of a
suite in a file are replaced."""
import argparse
import datetime
import pathlib
import platform
import re
import statistics
import time

import conv_fft
import torch
from conv_fft._context import context

COLUMNS = "suite,case,pass,precision,layout,impl,ms,workspace_bytes,rel_l2,strategy"
NETWORKS = pathlib.Path(__file__).resolve().parents[3] / "networks"
CONVOLUTIONS = {1: torch.nn.functional.conv1d, 2: torch.nn.functional.conv2d, 3: torch.nn.functional.conv3d}


def layers_of(file, max_gflop):
    """Names and problem lines, with smaller batches."""
    for line in (NETWORKS / (file + ".txt")).read_text().splitlines():
        name, _, text = line.partition(" ")
        if not text or name == "#":
            continue
        problem = conv_fft.Problem.parse(text)
        batch = problem.input_shape[0]
        flop = 2.0 * problem.weight_shape[1]
        for extent in (*problem.output_shape[1:], *problem.weight_shape[2:]):
            flop *= extent
        smaller = max(1, min(batch, int(max_gflop * 1e9 / flop)))
        yield (name if smaller == batch else "%s-b%d" % (name, smaller),
               re.sub(r"in=\d+", "in=%d" % smaller, text))


def processor():
    found = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def turns(ours, theirs, seconds):
    """Median milliseconds of both."""
    found = ([], [])
    for _ in range(2):
        for call, times in zip((ours, theirs), found):
            call()
            end, least = time.perf_counter() + seconds / 2, len(times) + 3
            while time.perf_counter() < end or len(times) < least:
                begin = time.perf_counter()
                call()
                times.append(1e3 * (time.perf_counter() - begin))
    return [statistics.median(times) for times in found]


def error(result, exact):
    return max(((a.double() - b).norm() / b.norm()).item() for a, b in zip(result, exact))


def passes_of(text):
    """For each pass: its name, that of Plan.describe(), a call of ours and one of torch, both return their results, and
    the results in FP64."""
    plan, exact = conv_fft.Plan(text, "cpu"), conv_fft.Plan(text + " dtype=fp64", "cpu")
    problem = plan.problem
    p, rank = problem.struct, problem.rank
    x, w, gy = (torch.rand(shape) - 0.5 for shape in (problem.input_shape, problem.weight_shape, problem.output_shape))
    stride, pad, dilation = (list(axes[:rank]) for axes in (p.stride, p.pad_before, p.dilation))
    y, gx, gw = torch.empty_like(gy), torch.empty_like(x), torch.empty_like(w)
    exact_y = exact.forward(x.double(), w.double())
    exact_x, exact_w = exact.backward(x.double(), w.double(), gy.double(), need=("x", "w"))[:2]

    def forward():
        plan.forward(x, w, out=y)
        return [y]

    def gradients(*out):
        need = tuple(name for name, _ in out)

        def call():
            plan.backward(x, w, gy, need=need, out=dict(out))
            return [tensor for _, tensor in out]
        return call

    def torch_gradients(of_x, of_w):
        return [tensor for tensor in torch.ops.aten.convolution_backward(
            gy, x, w, None, stride, pad, dilation, False, [0] * rank, p.groups, [of_x, of_w, False])
            if tensor is not None]

    yield ("fprop", plan.describe("forward"), forward,
           lambda: [CONVOLUTIONS[rank](x, w, None, stride, pad, dilation, p.groups)], [exact_y])
    yield ("bprop", plan.describe("backward_data"), gradients(("x", gx)), lambda: torch_gradients(True, False),
           [exact_x])
    yield ("accgrad", plan.describe("backward_weights"), gradients(("w", gw)), lambda: torch_gradients(False, True),
           [exact_w])
    yield ("backward", plan.describe("backward"), gradients(("x", gx), ("w", gw)),
           lambda: torch_gradients(True, True), [exact_x, exact_w])


def rows_of(suite, name, text, seconds):
    rows = []
    for passname, described, ours, theirs, exact in passes_of(text):
        ms = turns(ours, theirs, seconds)
        errors = [error(ours(), exact), error(theirs(), exact)]
        if max(errors) > 1e-3:
            raise SystemExit("%s %s: errors %s" % (name, passname, errors))
        strategy = described["strategy"].rstrip(";")
        impls = [("ours-" + strategy.split()[0].rstrip(";"), ms[0], described["workspace_bytes"], errors[0], strategy),
                 ("torch", ms[1], 0, errors[1], "")]
        rows += ["%s,%s,%s,fp32,first,%s,%.4f,%d,%.2e,%s" % (suite, name, passname, *impl) for impl in impls]
        print(suite, name, passname, "%.3f %.3f" % tuple(ms), "%.2f" % (ms[1] / ms[0]), strategy[:50], flush=True)
    return rows


def write(path, suite, head, rows):
    """Replaces the rows of the suite. The head of other rows stays before them."""
    kept, pending = [], []
    for line in path.read_text().splitlines()[1:] if path.exists() else []:
        if line.startswith("#"):
            pending = [line] if line.startswith("# suite") else pending + [line]
        elif line.split(",")[0] != suite:
            kept += [*pending, line]
            pending = []
    path.write_text("\n".join([COLUMNS, *kept, *head, *rows]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", action="append", required=True, metavar="[NAME=]FILE")
    parser.add_argument("--threads", type=int, help="default: as torch")
    parser.add_argument("--max-gflop", type=float, default=float("inf"))
    parser.add_argument("--seconds", type=float, default=0.2, help="for both turns of a kind of call")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no layer after this time")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    threads, description = " %d thread" % torch.get_num_threads(), context("cpu").description
    if threads not in description:
        parser.error("torch has%ss, but the library is %s; set OMP_NUM_THREADS" % (threads, description))
    version = re.search(r"MKL-DNN v([\d.]+)|oneDNN v([\d.]+)", torch.__config__.show())
    head = ["# device: %s, %d threads" % (processor(), torch.get_num_threads()),
            "# libraries: conv_fft %s (%s), torch %s%s"
            % (conv_fft.__version__, context("cpu").description, torch.__version__,
               ", oneDNN " + (version[1] or version[2]) if version else ""),
            "# calls from Python that follow each other; median of at least 6 runs and %g s, size limit: %g GFLOP "
            "direct per pass" % (options.seconds, options.max_gflop)]
    end = time.time() + 60 * options.minutes
    rows = {}
    for option in options.suite:
        suite, _, file = option.rpartition("=")
        suite = suite or file
        for name, text in layers_of(file, options.max_gflop):
            if time.time() < end:
                rows.setdefault(suite, []).extend(rows_of(suite, name, text, options.seconds))
            if options.out and rows.get(suite):
                write(options.out, suite, ["# suite %s, commit %s, %s" % (suite, options.commit,
                                                                          datetime.date.today()), *head], rows[suite])


if __name__ == "__main__":
    with torch.no_grad():
        main()
