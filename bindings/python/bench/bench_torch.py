#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of whole networks with torch's layers, and after conv_fft.torch.convert(); what a call costs beside its kernels.

    python bench_torch.py [--case replknet31b-b32 ...] [--precision fp32 tf32 fp16 ...] [--tune MS] [--gpus N] [--out torch.csv]
    python bench_torch.py --overhead

A step is forward, loss, backward and an update by SGD with momentum, on random images; torch may search cuDNN's algorithms
(cudnn.benchmark, --search). fp16 and bf16: autocast. Both networks start from the same parameters; their losses stand side by side. The
median of the steps that fit into --seconds, by device events. convert() measures each layer and keeps the faster; --tune lets
conv_fft.autotune() measure strategies first, that many milliseconds for each plan. Rows of a file are replaced case by case.
--gpus: data-parallel training (DDP over NCCL), each GPU with a batch of the case's size, on one GPU and on that many; rows
step-gpusN."""
import argparse
import contextlib
import copy
import datetime
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import conv_fft
import conv_fft.torch
import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples"))
import networks  # noqa: E402

COLUMNS = "suite,case,pass,precision,layout,impl,ms,workspace_bytes,rel_l2,strategy"
AUTOCAST = {"fp16": torch.float16, "bf16": torch.bfloat16}


def median_ms(run, seconds, warm_up=2, least=5, most=200):
    """Of runs that follow each other as in training: the host waits for the device after the last."""
    for _ in range(warm_up):
        run()
    torch.cuda.synchronize()
    events, end_at = [], time.perf_counter() + seconds
    while len(events) <= least or (time.perf_counter() < end_at and len(events) <= most):
        if events:
            run()
        events.append(torch.cuda.Event(enable_timing=True))
        events[-1].record()
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in zip(events, events[1:]))


class Training:
    def __init__(self, model, case, precision, last):
        _, shape, labels, classes = networks.CASES[case]
        generator = torch.Generator(device="cuda").manual_seed(1)
        self.x = torch.randn(shape, device="cuda", generator=generator)
        if last:
            self.x = self.x.to(memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d)
        self.labels = torch.randint(classes, labels, device="cuda", generator=generator)
        self.model, self.dtype = model, AUTOCAST.get(precision)
        # The fused update has the least to do for the host, and GradScaler need not wait for the device with it.
        self.optimiser = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
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


def set_torch(precision, search):
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = precision != "fp32"
    torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = search > 0, search


def make_model(case, last):
    torch.manual_seed(0)
    model = networks.CASES[case][0]().cuda()
    if last:
        model = model.to(memory_format=torch.channels_last if len(networks.CASES[case][1]) == 4 else torch.channels_last_3d)
    return model


class Clock:
    """Says where the time of a case goes."""

    def __init__(self):
        self.begin = time.perf_counter()

    def note(self, what):
        torch.cuda.synchronize()
        now = time.perf_counter()
        print("#   %s took %.1f s" % (what, now - self.begin), flush=True)
        self.begin = now


def run_case(case, precision, last, options):
    """Rows of one network and precision: torch's layers, ours."""
    print("# %s %s" % (case, precision))
    clock = Clock()
    set_torch(precision, options.search)
    plain = make_model(case, last)
    theirs, ours = (Training(model, case, precision, last) for model in (plain, copy.deepcopy(plain)))
    theirs.step()
    clock.note("torch's first step")
    may = lambda name, layer: max(layer.kernel_size) >= options.least  # noqa: E731
    with conv_fft.autotune(milliseconds=options.tune) if options.tune else contextlib.nullcontext():
        with ours.autocast():
            conv_fft.torch.convert(ours.model, may, inputs=(ours.x,), repeats=0)
            clock.note("our plans")
            table = conv_fft.torch.convert(conv_fft.torch.revert(ours.model), may, inputs=(ours.x,))
            clock.note("convert()")
    if options.table:
        print(table)
    found = {}
    for name, training in (("torch", theirs), ("ours", ours)):
        found["step", name] = median_ms(training.step, options.seconds)
        clock.note("steps of " + name)
    first, again = (torch.stack(t.losses[:7]).double() for t in (theirs, ours))
    # In the file this stands where layers have their error. It grows from step to step, as rounding does in training.
    difference = ((first[0] - again[0]).abs() / first[0]).item()
    print("#   %d of %d layers changed; the loss of the first step differs by %.1e, that of the seventh by %.1e" % (
        len(table.changed), len(table), difference, (first[6] - again[6]).abs() / first[6]))
    if options.graph:
        for name, training in (("torch", theirs), ("ours", ours)):
            found["step-graph", name] = median_ms(training.graphed_step(), options.seconds / 2)
        clock.note("graphs")
    for kind in ("step", "step-graph")[:1 + options.graph]:
        print("#   %s: torch %.2f ms, ours %.2f ms: %.2fx" % (kind, found[kind, "torch"], found[kind, "ours"],
                                                             found[kind, "torch"] / found[kind, "ours"]), flush=True)
    layout = "last" if last else "first"
    return [["steps", case, kind, precision, layout, name, "%.4f" % ms, "0", "%.2e" % (difference if name == "ours" else 0),
             "%d of %d layers" % (len(table.changed), len(table)) if name == "ours" else ""] for (kind, name), ms in found.items()]


# ---- several GPUs

def choose(plain, case, precision, last, options):
    """What convert() changes: rank 0 measures, all ranks hear of it."""
    chosen = [None]
    if dist.get_rank() == 0:
        training = Training(copy.deepcopy(plain), case, precision, last)
        with training.autocast():
            chosen = [conv_fft.torch.convert(training.model, lambda name, layer: max(layer.kernel_size) >= options.least,
                                             inputs=(training.x,)).changed]
    dist.broadcast_object_list(chosen)
    return set(chosen[0])


def train_parallel(model, group, case, precision, last, options):
    """The median milliseconds of a step, and the loss of the first."""
    rank = dist.get_rank()
    # Statistics of normalisations stay each GPU's own: to broadcast hundreds of small tensors at each step costs the host more than
    # the step's own calls.
    parallel = DistributedDataParallel(model, device_ids=[rank], gradient_as_bucket_view=True, broadcast_buffers=False, static_graph=True,
                                       process_group=group)
    training = Training(parallel, case, precision, last)
    ms = median_ms(training.step, 0, warm_up=3, least=options.steps)
    sums = torch.stack([p.detach().double().sum() for p in model.parameters()])
    first = sums.clone()
    dist.broadcast(first, 0, group)
    if not torch.equal(sums, first):
        raise SystemExit("bench_torch.py: the parameters of rank %d are not those of rank 0" % rank)
    return ms, training.losses[0].item()


def run_rank(rank, count, store, case, last, options, results):
    """One process of `count`: trains alone, if it is the first, and with the others; rank 0 notes the times."""
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=store, rank=rank, world_size=count, device_id=torch.device("cuda", rank))
    alone = dist.new_group([0])
    for precision in options.precision:
        set_torch(precision, options.search)
        plain = make_model(case, last)
        changed = choose(plain, case, precision, last, options)
        for members, group in ((1, alone), (count, dist.group.WORLD)):
            for impl in ("torch", "ours") if rank < members else ():
                model = copy.deepcopy(plain)
                if impl == "ours":
                    conv_fft.torch.convert(model, lambda name, layer: name in changed)
                found = train_parallel(model, group, case, precision, last, options)
                if rank == 0:
                    results[precision, members, impl] = (*found, len(changed))
            dist.barrier()
    dist.destroy_process_group()


def run_gpus(case, last, options):
    """{precision: rows} of data-parallel training on one GPU and on several."""
    with multiprocessing.Manager() as manager, tempfile.TemporaryDirectory() as folder:
        results = manager.dict()
        multiprocessing.spawn(run_rank, (options.gpus, "file://%s/store" % folder, case, last, options, results), options.gpus)
        found = dict(results)
    rows = {precision: [] for precision in options.precision}
    for (precision, count, impl), (ms, loss, changed) in sorted(found.items()):
        theirs = found[precision, count, "torch"][1]
        rows[precision].append(["steps", case, "step-gpus%d" % count, precision, "last" if last else "first", impl, "%.4f" % ms, "0",
                                "%.2e" % (abs(loss - theirs) / theirs), "%d layers" % changed if impl == "ours" else ""])
        print("# %s %s, %d GPUs, %s: %.2f ms a step, %.0f samples a second, %.0f %% of %d times one GPU" % (
            case, precision, count, impl, ms, networks.CASES[case][1][0] * count / ms * 1e3,
            100 * found[precision, 1, impl][0] / ms, count), flush=True)
    return rows


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


def write(path, rows, commit, how):
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
              "# median of %s by device events, cudnn.benchmark of %d, SGD with momentum, convert() with measurements" % how]
    path.write_text("\n".join([COLUMNS, *kept, *header, *(",".join(row) for row in rows)]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs="*", default=list(networks.CASES), choices=list(networks.CASES))
    parser.add_argument("--precision", nargs="*", default=["fp32", "tf32", "fp16"], choices=["fp32", "tf32", "fp16", "bf16"])
    parser.add_argument("--layout", default="first", choices=["first", "last"])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--least", type=int, default=2, help="the smallest kernel that convert() may look at (default 2)")
    parser.add_argument("--search", type=int, default=10, metavar="N", help="algorithms of cuDNN that torch may try for each layer "
                        "(cudnn.benchmark_limit; 0: cudnn.benchmark off, as it is unless asked for)")
    parser.add_argument("--gpus", type=int, default=1, help="train on that many GPUs too, instead")
    parser.add_argument("--steps", type=int, default=10, help="with --gpus: how many are measured (default 10)")
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
        last = options.layout == "last"
        if options.gpus > 1:
            for rows in run_gpus(case, last, options).values():
                if options.out:
                    write(options.out, rows, commit, ("%d steps" % options.steps, options.search))
            continue
        for precision in options.precision:
            rows = run_case(case, precision, last, options)
            torch.cuda.empty_cache()
            if options.out:
                write(options.out, rows, commit, ("the steps of %g s" % options.seconds, options.search))


if __name__ == "__main__":
    main()
