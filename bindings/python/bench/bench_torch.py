#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of whole networks with torch's layers, and after conv_fft.torch.convert(); what a call costs beside its kernels.

    python bench_torch.py [--case replknet31b-b32 ...] [--precision fp32 tf32 fp16 ...] [--tune MS] [--out torch.csv] [--overhead]

A step is forward, loss, backward and an update by SGD with momentum, on random images; torch may search cuDNN's algorithms
(cudnn.benchmark). fp16 and bf16: autocast. Both networks start from the same parameters; their losses stand side by side. The
median of the steps that fit a second, by device events. convert() measures each layer and keeps the faster; --tune lets
conv_fft.autotune() measure strategies first, that many milliseconds for each plan. Rows of a file are replaced case by case."""
import argparse
import contextlib
import copy
import datetime
import pathlib
import statistics
import subprocess
import sys
import time

import conv_fft
import conv_fft.torch
import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples"))
import networks  # noqa: E402

COLUMNS = "suite,case,pass,precision,layout,impl,ms,workspace_bytes,rel_l2,strategy"
AUTOCAST = {"fp16": torch.float16, "bf16": torch.bfloat16}


def median_ms(run, seconds, warm_up=3, most=200):
    for _ in range(warm_up):
        run()
    torch.cuda.synchronize()
    times, end_at = [], time.perf_counter() + seconds
    while len(times) < 7 or (time.perf_counter() < end_at and len(times) < most):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


class Training:
    def __init__(self, model, case, precision, last):
        _, shape, labels, classes = networks.CASES[case]
        generator = torch.Generator(device="cuda").manual_seed(1)
        self.x = torch.randn(shape, device="cuda", generator=generator)
        if last:
            self.x = self.x.to(memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d)
        self.labels = torch.randint(classes, labels, device="cuda", generator=generator)
        self.model, self.dtype = model, AUTOCAST.get(precision)
        self.optimiser = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
        self.scaler = torch.amp.GradScaler("cuda", enabled=precision == "fp16")
        self.losses = []

    def autocast(self):
        return torch.autocast("cuda", dtype=self.dtype) if self.dtype else contextlib.nullcontext()

    def graphed_step(self):
        """A replay of the step, without the scaling of AMP's losses, which asks the device for a number."""
        self.scaler = torch.amp.GradScaler("cuda", enabled=False)
        self.optimiser.zero_grad()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        return graph.replay

    def step(self):
        with self.autocast():
            loss = nn.functional.cross_entropy(self.model(self.x), self.labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.optimiser.zero_grad()
        self.losses.append(loss.detach())


def run_case(case, precision, last, options):
    """Rows of one network and precision: torch's layers, ours."""
    tf32 = precision != "fp32"
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    plain = networks.CASES[case][0]().cuda()
    if last:
        plain = plain.to(memory_format=torch.channels_last if len(networks.CASES[case][1]) == 4 else torch.channels_last_3d)
    theirs, ours = (Training(model, case, precision, last) for model in (plain, copy.deepcopy(plain)))
    begin = time.perf_counter()
    with conv_fft.autotune(milliseconds=options.tune) if options.tune else contextlib.nullcontext():
        with ours.autocast():
            table = conv_fft.torch.convert(ours.model, lambda name, layer: max(layer.kernel_size) >= options.least, inputs=(ours.x,))
    print("# %s %s: convert() took %.1f s and changed %d of %d layers; a step takes" % (
        case, precision, time.perf_counter() - begin, len(table.changed), len(table)), flush=True)
    if options.table:
        print(table)
    found = {name: median_ms(training.step, options.seconds) for name, training in (("torch", theirs), ("ours", ours))}
    first, again = (torch.stack(t.losses[:10]).double() for t in (theirs, ours))
    # In the file this stands where layers have their error. It grows from step to step, as rounding does in training.
    difference = ((first[0] - again[0]).abs() / first[0]).item()
    print("#   torch %.2f ms, ours %.2f ms: %.2fx; the loss of the first step differs by %.1e, that of the tenth by %.1e" % (
        found["torch"], found["ours"], found["torch"] / found["ours"], difference, (first[9] - again[9]).abs() / first[9]), flush=True)
    found = {("step", name): ms for name, ms in found.items()}
    if options.graph:
        for name, training in (("torch", theirs), ("ours", ours)):
            found["step-graph", name] = median_ms(training.graphed_step(), options.seconds / 2)
        print("#   as a graph: torch %.2f ms, ours %.2f ms: %.2fx" % (
            found["step-graph", "torch"], found["step-graph", "ours"], found["step-graph", "torch"] / found["step-graph", "ours"]), flush=True)
    layout = "last" if last else "first"
    return [["steps", case, kind, precision, layout, name, "%.4f" % ms, "0", "%.2e" % (difference if name == "ours" else 0),
             "%d of %d layers" % (len(table.changed), len(table)) if name == "ours" else ""] for (kind, name), ms in found.items()]


def print_overhead():
    """Prints the microseconds of a small layer called eagerly, and of its kernels alone, as a graph replays them."""
    calls = 200
    torch.backends.cudnn.allow_tf32 = False
    for impl, kind in (("torch", nn.Conv2d), ("ours", conv_fft.torch.Conv2d)):
        torch.manual_seed(0)
        layer = kind(32, 32, 7, padding=3, groups=32).cuda()
        x = torch.randn(2, 32, 28, 28, device="cuda")

        def forward():
            for _ in range(calls):
                layer(x)

        def both():
            for _ in range(calls):
                layer(x).backward(gy)
        with torch.no_grad():
            gy = torch.randn_like(layer(x))
        found = {}
        for name, run, grad in (("forward", forward, False), ("forward-recorded", forward, True), ("forward+backward", both, True)):
            with torch.set_grad_enabled(grad):
                found[name] = median_ms(run, 0.3) / calls
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            forward()
        found["forward-graph"] = median_ms(graph.replay, 0.3) / calls
        print("# %s: a call of 32x7x7 depthwise on 2x32x28x28 takes, in us: %s; over its kernels %.2f" % (
            impl, ", ".join("%s %.2f" % (name, ms * 1e3) for name, ms in found.items()),
            (found["forward"] - found["forward-graph"]) * 1e3), flush=True)


def write(path, rows, commit, seconds):
    """The rows of a case and precision take the place of older ones; a header goes with the last of its rows."""
    keys = {tuple(row[:6]) for row in rows}
    kept, header = [], []
    for line in path.read_text().splitlines()[1:] if path.exists() else []:
        if line.startswith("#"):
            header = [line] if line.startswith("# suite") else header + [line]
        elif tuple(line.split(",")[:6]) not in keys:
            kept += [*header, line]
            header = []
    header = ["# suite steps, commit %s, %s" % (commit, datetime.date.today()),
              "# device: %s, CUDA %s" % (torch.cuda.get_device_name(), torch.version.cuda),
              "# libraries: conv_fft %s, torch %s, cuDNN %s" % (conv_fft.__version__, torch.__version__, torch.backends.cudnn.version()),
              "# median of the steps of %g s by device events, cudnn.benchmark on, SGD with momentum, convert() with measurements" % seconds]
    path.write_text("\n".join([COLUMNS, *kept, *header, *(",".join(row) for row in rows)]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs="*", default=list(networks.CASES), choices=list(networks.CASES))
    parser.add_argument("--precision", nargs="*", default=["fp32", "tf32", "fp16"], choices=["fp32", "tf32", "fp16", "bf16"])
    parser.add_argument("--layout", default="first", choices=["first", "last"])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--least", type=int, default=2, help="the smallest kernel that convert() may look at (default 2)")
    parser.add_argument("--tune", type=int, default=0, metavar="MS")
    parser.add_argument("--graph", action="store_true", help="the steps as CUDA graphs too: the device's time alone")
    parser.add_argument("--overhead", action="store_true", help="the cost of a call, instead of the networks")
    parser.add_argument("--table", action="store_true", help="print what convert() says")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--commit")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("bench_torch.py: there is no GPU")
    commit = options.commit or subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    if options.overhead:
        print_overhead()
        return
    for case in options.case:
        for precision in options.precision:
            rows = run_case(case, precision, options.layout == "last", options)
            torch.cuda.empty_cache()
            if options.out:
                write(options.out, rows, commit, options.seconds)


if __name__ == "__main__":
    main()
