#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of whole networks with torch's layers, and after conv_fft.torch.convert(); layers beside what torch offers for
them; what a call costs beside its kernels.

    python bench_torch.py [--case replknet31b-b32 ...] [--precision fp32 tf32 fp16 ...] [--tune MS] [--gpus N] [--out torch.csv]
    python bench_torch.py --layers longconv depthwise [--case L4096 ...] [--precision fp32 ...] [--out torch.csv]
    python bench_torch.py --overhead

A step is forward, loss, backward and an update by SGD with momentum, on random images; torch may search cuDNN's algorithms
(cudnn.benchmark, --search). fp16 and bf16: autocast. Both networks start from the same parameters; their losses stand side by side. The
median of the steps that fit into --seconds, by device events. convert() measures each layer and keeps the faster; --tune lets
conv_fft.autotune() measure strategies first, that many milliseconds for each plan. Rows of a file are replaced case by case.
--gpus: data-parallel training (DDP over NCCL), each GPU with a batch of the case's size, on one GPU and on that many; rows
step-gpusN.

--layers: the layers of networks/longconv.txt beside torch.fft (rfft of both, padded to twice the length, product, irfft), and of
networks/depthwise.txt beside torch's own convolution: its depthwise kernels and cuDNN's (searched for, as above), in both memory
formats, the fastest of them for each row; which one it was stands in the row. Passes: forward, and training (forward and both
gradients); eagerly, calls following each other, and -graph: replayed, 256 MiB written before each, so that nothing is in the cache.
Of depthwise layers each gradient alone as well: bprop-graph, accgrad-graph.
What would take more than --limit seconds a call is left out. Errors are those of the first four channels, against double precision."""
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
from conv_fft.torch import _entry
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
    with torch.autograd.set_multithreading_enabled(False):
        print("#   with backward passes in the calling thread: step: torch %.2f ms, ours %.2f ms" % tuple(
            median_ms(training.step, options.seconds / 2) for training in (theirs, ours)), flush=True)
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


# ---- layers

FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, **AUTOCAST}
NETWORKS = pathlib.Path(__file__).resolve().parents[3] / "networks"
CONVOLUTIONS = {1: nn.functional.conv1d, 2: nn.functional.conv2d, 3: nn.functional.conv3d}


def layers_of(suite):
    """{name: (shape of x, shape of w, parameters as conv_fft.torch takes them)}."""
    found = {}
    for line in (NETWORKS / (suite + ".txt")).read_text().splitlines():
        if line and not line.startswith("#"):
            name, text = line.split(None, 1)
            problem = conv_fft.Problem.parse(text)
            p, rank = problem.struct, problem.rank
            found[name] = (problem.input_shape, problem.weight_shape, (tuple(p.stride[:rank]), (*p.pad_before[:rank], *p.pad_after[:rank]),
                                                                       tuple(p.dilation[:rank]), p.groups, 0))
    return found


def by_conv_fft(x, w, config):
    return conv_fft.torch.functional.convolution(x, w, None, config)


def by_torch(x, w, config):
    stride, pads, dilation, groups, _ = config
    rank = len(stride)
    return CONVOLUTIONS[rank](x, w, None, stride, pads[:rank], dilation, groups)


def by_torch_fft(x, w, config):
    """Of causal 1-D depthwise layers, for taps in reverse order, as a convolution has them."""
    size = 2 * x.shape[-1]
    xs, ws = (torch.fft.rfft(t if t.dtype is torch.float64 else t.float(), n=size) for t in (x, w[:, 0]))
    return torch.fft.irfft(xs * ws, n=size)[..., :x.shape[-1]].to(x.dtype)


class Layer:
    """A function of one layer, with its operands."""

    def __init__(self, function, shapes, dtype, last):
        self.function, (x_shape, w_shape, self.config) = function, shapes
        generator = torch.Generator(device="cuda").manual_seed(1)
        self.x, self.w = (torch.randn(shape, device="cuda", generator=generator).to(dtype) for shape in (x_shape, w_shape))
        self.w /= self.w[0].numel() ** 0.5
        if function is by_torch_fft:
            self.w = self.w.flip(-1)
        if last:
            self.x, self.w = (t.to(memory_format=FORMATS[t.dim()]) for t in (self.x, self.w))
        for t in (self.x, self.w):
            t.requires_grad_()
        with torch.no_grad():
            self.gy = torch.empty_like(self.forward()).normal_(generator=generator)

    def forward(self):
        return self.function(self.x, self.w, self.config)

    def forward_alone(self):
        with torch.no_grad():
            return self.forward()

    def training(self):
        y = self.forward()
        return (y, *torch.autograd.grad(y, (self.x, self.w), self.gy))

    def gradient(self, of_x):
        """One of the two, without the graph of autograd."""
        wanted = [of_x, not of_x, False]
        x, w, (stride, pads, dilation, groups, mode) = self.x.detach(), self.w.detach(), self.config
        if self.function is by_conv_fft:
            return torch.ops.conv_fft.backward(self.gy, x, w, stride, pads, dilation, groups, mode, wanted)
        rank = len(stride)
        return torch.ops.aten.convolution_backward(self.gy, x, w, None, stride, pads[:rank], dilation, False, [0] * rank, groups, wanted)

    def passes(self):
        """{name: (a call, whether it is measured eagerly as well)}."""
        found = {"forward": (self.forward_alone, True), "training": (self.training, True)}
        if self.function is by_torch_fft or self.is_long():
            return found
        return {**found, "bprop": (lambda: self.gradient(True), False), "accgrad": (lambda: self.gradient(False), False)}

    def errors(self, passes):
        """{pass: error}, relative, of the first channels; the larger of both gradients' for both."""
        few = min(4, self.w.shape[0])
        of_x, of_w = (slice(None), slice(few)), slice(few)
        x, w = (t.detach()[part].double().contiguous().requires_grad_() for t, part in ((self.x, of_x), (self.w, of_w)))
        exact = by_torch_fft if self.function is by_torch_fft or self.is_long() else by_torch
        flipped = exact is by_torch_fft and self.function is not by_torch_fft
        y = exact(x, w.flip(-1) if flipped else w, (*self.config[:3], few, 0))
        wanted = (y, *torch.autograd.grad(y, (x, w), self.gy[:, :few].double()))
        if "training" in passes:
            found = self.training()
        else:
            found = (self.forward_alone(), self.gradient(True)[0] if "bprop" in passes else None,
                     self.gradient(False)[1] if "accgrad" in passes else None)
        of = {name: ((a[part] - b).norm() / b.norm()).item() for name, a, b, part in
              zip(("forward", "bprop", "accgrad"), found, wanted, (of_x, of_x, of_w)) if a is not None}
        return {**of, "training": max(of.get("bprop", 0), of.get("accgrad", 0))}

    def is_long(self):
        pads = self.config[1]
        return pads[:len(pads) // 2] != pads[len(pads) // 2:]


def graphed_ms(run, seconds, least=5, most=100):
    """The median of replays that find nothing in the cache."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    other = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    times, end_at = [], time.perf_counter() + seconds
    while len(times) < least or (time.perf_counter() < end_at and len(times) < most):
        other.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def times_of(layer, passes, options):
    """{pass: milliseconds}, eagerly and replayed."""
    found = {}
    for name in passes:
        run, eager = layer.passes()[name]
        if eager:
            found[name] = median_ms(run, options.seconds / 2)
        found[name + "-graph"] = graphed_ms(run, options.seconds / 2)
    return found


def bearable(function, shapes, dtype, last, options):
    """The passes that take less than the limit: an image tells, before a search for algorithms runs each of them on all."""
    (x_shape, *rest), search, names = shapes, torch.backends.cudnn.benchmark, []
    torch.backends.cudnn.benchmark = False
    try:
        for name, (run, _) in Layer(function, ((1, *x_shape[1:]), *rest), dtype, last).passes().items():
            for _ in range(2):  # the first loads libraries and kernels
                torch.cuda.synchronize()
                begin = time.perf_counter()
                run()
                torch.cuda.synchronize()
                seconds = (time.perf_counter() - begin) * x_shape[0]
                if seconds > 30 * options.limit:
                    return names
            if seconds <= options.limit:
                names.append(name)
    finally:
        torch.backends.cudnn.benchmark = search
    return names


def run_layer(suite, name, shapes, precision, options):
    """Rows of one layer and precision, for each memory format of ours."""
    print("# %s %s %s" % (suite, name, precision), flush=True)
    set_torch(precision, options.search)
    dtype, formats = DTYPES[precision], [False, True] if len(shapes[0]) in FORMATS else [False]
    best, errors = {}, {}
    if suite == "longconv":
        variants = [("torch.fft", by_torch_fft, True, False)]
    else:
        variants = [(("cuDNN allowed" if cudnn else "own kernels") + ", channels last" * last, by_torch, cudnn, last)
                    for cudnn in (False, True) for last in formats]
    for what, function, cudnn, last in variants:
        torch.backends.cudnn.enabled = cudnn
        try:
            passes = bearable(function, shapes, dtype, last, options)
            if not passes:
                print("#     torch, %s: takes more than %g s, left out" % (what, options.limit), flush=True)
                continue
            layer = Layer(function, shapes, dtype, last)
            found = times_of(layer, passes, options)
            errors[what] = layer.errors(passes)
            print("#     torch, %s: %s" % (what, ", ".join("%s %.4f" % item for item in found.items())), flush=True)
            for passname, ms in found.items():
                best[passname] = min(best.get(passname, (ms, what)), (ms, what))
        except torch.cuda.OutOfMemoryError:
            print("#     torch, %s: out of memory" % what, flush=True)
        finally:
            torch.backends.cudnn.enabled = True
            layer = None
            torch.cuda.empty_cache()
    rows = []
    for last in formats:
        layer = Layer(by_conv_fft, shapes, dtype, last)
        layer.training()
        if conv_fft.torch.fallbacks():
            raise SystemExit("bench_torch.py: %s is left to torch: %s" % (name, conv_fft.torch.fallbacks()))
        found, error = times_of(layer, layer.passes(), options), layer.errors(("training",))
        plans = {"forward": (1, "forward"), "training": (6, "backward"), "bprop": (2, "backward_data"), "accgrad": (4, "backward_weights")}
        for passname, ms in found.items():
            kind, layout = passname.removesuffix("-graph"), "last" if last else "first"
            number, described = plans[kind]
            plan = _entry.look_up(layer.x, layer.w, None, shapes[2], number).plans[number]
            rows.append(["torch-" + suite, name, passname, precision, layout, "ours", "%.4f" % ms, str(plan.workspace[number]),
                         "%.2e" % error[kind], plan.describe(described)["strategy"]])
            line = "#   %s %s: ours %.4f ms" % (layout, passname, ms)
            if passname in best:
                theirs, what = best[passname]
                rows.append(["torch-" + suite, name, passname, precision, layout, "torch", "%.4f" % theirs, "0",
                             "%.2e" % errors[what][kind], what.replace(",", "")])
                line += ", torch (%s) %.4f: %.2fx" % (what, theirs, theirs / ms)
            print(line, flush=True)
        layer = None
        torch.cuda.empty_cache()
    return rows


# ---- what a call costs

def print_overhead():
    """Prints the microseconds of a small layer called eagerly, and of its kernels alone, as a graph replays them; the processor's time
    of the calling thread and of all of them, which other work on the host changes less; and of backward passes in the calling thread."""
    calls = 200
    torch.backends.cudnn.allow_tf32 = False
    for impl, kind in (("torch", nn.Conv2d), ("ours", conv_fft.torch.Conv2d)):
        torch.manual_seed(0)
        layer = kind(32, 32, 7, padding=3, groups=32).cuda()
        x = torch.randn(2, 32, 28, 28, device="cuda")
        parameters = list(layer.parameters())

        def forward():
            for _ in range(calls):
                layer(x)

        def both():
            for _ in range(calls):
                layer(x).backward(gy)

        def gradients():
            for _ in range(calls):
                torch.autograd.grad(layer(x), parameters, gy)

        def gradients_here():
            with torch.autograd.set_multithreading_enabled(False):
                gradients()
        with torch.no_grad():
            gy = torch.randn_like(layer(x))
        found = {}
        for name, run, grad in (("forward", forward, False), ("forward-recorded", forward, True), ("forward+backward", both, True),
                                ("forward+gradients", gradients, True), ("the same in one thread", gradients_here, True)):
            with torch.set_grad_enabled(grad):
                found[name] = median_ms(run, 0.5) / calls * 1e3
                thread, process = [], []
                for _ in range(7):
                    torch.cuda.synchronize()  # it spins, which is not counted
                    begin = time.thread_time(), time.process_time()
                    run()
                    thread.append(time.thread_time() - begin[0])
                    process.append(time.process_time() - begin[1])
                found[name + ", thread"], found[name + ", process"] = (min(t) / calls * 1e6 for t in (thread, process))
        for name, run, grad in (("forward-graph", forward, False), ("forward+gradients-graph", gradients, True)):
            with torch.set_grad_enabled(grad):
                side = torch.cuda.Stream()
                with torch.cuda.stream(side):
                    run()
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    run()
            found[name] = median_ms(graph.replay, 0.5) / calls * 1e3
        print("# %s: a call of 32x7x7 depthwise on 2x32x28x28 takes, in us:" % impl)
        for name, us in found.items():
            print("#   %-34s %8.2f" % (name, us))
        print("#   over its kernels: forward %.2f, forward+gradients %.2f" % (found["forward"] - found["forward-graph"],
              found["forward+gradients"] - found["forward+gradients-graph"]), flush=True)


def write(path, rows, commit, how, suite="steps"):
    """The rows of a case and precision take the place of older ones; a header goes with the last of its rows."""
    keys = {tuple(row[:6]) for row in rows}
    kept, header = [], []
    for line in path.read_text().splitlines()[1:] if path.exists() else []:
        if line.startswith("#"):
            header = [line] if line.startswith("# suite") else header + [line]
        elif tuple(line.split(",")[:6]) not in keys:
            kept += [*header, line]
            header = []
    cudnn = torch.backends.cudnn.version() or 0
    header = ["# suite %s, commit %s, %s" % (suite, commit, datetime.date.today()),
              "# device: %s, CUDA %s" % (torch.cuda.get_device_name(), torch.version.cuda),
              "# libraries: conv_fft %s, torch %s, cuDNN %d.%d.%d" % (conv_fft.__version__, torch.__version__, cudnn // 10000, cudnn // 100 % 100,
                                                                      cudnn % 100),
              "# median of " + how]
    path.write_text("\n".join([COLUMNS, *kept, *header, *(",".join(row) for row in rows)]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs="*", help="networks (%s), or with --layers the names of some; all" % ", ".join(networks.CASES))
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
    parser.add_argument("--layers", nargs="+", choices=["longconv", "depthwise"], default=[], help="single layers instead of networks")
    parser.add_argument("--limit", type=float, default=2.0, help="with --layers: the longest call that is measured, in seconds (default 2)")
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
    for suite in options.layers:
        layers = layers_of(suite)
        for name in options.case or layers:
            for precision in options.precision if name in layers else ():
                rows = run_layer(suite, name, layers[name], precision, options)
                if options.out:
                    write(options.out, rows, commit, "eager calls, and of replayed graphs after 256 MiB written, %g s each, by device "
                          "events, cudnn.benchmark of %d; torch: the fastest of its ways" % (options.seconds / 2, options.search),
                          "torch-" + suite)
    unknown = set(options.case or ()) - set(networks.CASES)
    if unknown and not options.layers:
        parser.error("--case: %s; these are: %s" % (", ".join(unknown), ", ".join(networks.CASES)))
    how = "%s by device events, cudnn.benchmark of %d, SGD with momentum, convert() with measurements"
    for case in () if options.layers else options.case or networks.CASES:
        last = options.layout == "last"
        if options.gpus > 1:
            for rows in run_gpus(case, last, options).values():
                if options.out:
                    write(options.out, rows, commit, how % ("%d steps" % options.steps, options.search))
            continue
        for precision in options.precision:
            rows = run_case(case, precision, last, options)
            torch.cuda.empty_cache()
            if options.out:
                write(options.out, rows, commit, how % ("the steps of %g s" % options.seconds, options.search))


if __name__ == "__main__":
    main()
