# SPDX-License-Identifier: Apache-2.0
"""Training steps of the networks of ../examples and of timm, with torch's layers and after conv_fft.torch.convert()."""
import contextlib
import copy
import pathlib
import sys
import time

import conv_fft
import conv_fft.torch
import torch
from timing import AUTOCAST, median_ms, set_torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples"))
import networks  # noqa: E402


def timm_model(name):
    """A network of timm, which is imported only if the network is measured."""
    def make():
        import timm
        return timm.create_model(name)
    return make


# As networks.CASES. These have short depthwise kernels: MixNet (Tan and Le, arXiv 1907.09595) and EfficientNet (the
# same, arXiv 1905.11946).
TIMM_CASES = {case: (timm_model(name), (32, 3, 224, 224), (32,), 1000)
              for case, name in (("mixnet-s-b32", "mixnet_s"), ("mixnet-l-b32", "mixnet_l"),
                                 ("efficientnet-b0-b32", "efficientnet_b0"))}
CASES = {**networks.CASES, **TIMM_CASES}


class Training:
    def __init__(self, model, case, precision, last):
        _, shape, labels, classes = CASES[case]
        generator = torch.Generator(device="cuda").manual_seed(1)
        self.x = torch.randn(shape, device="cuda", generator=generator)
        if last:
            self.x = self.x.to(memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d)
        self.labels = torch.randint(classes, labels, device="cuda", generator=generator)
        self.model, self.dtype = model, AUTOCAST.get(precision)
        # The fused update costs the host least, and with it GradScaler does not wait for the device.
        self.optimiser = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
        # A first step that is skipped, because gradients overflow, leaves the momentum of the fused update without
        # values (torch 2.11), and parameters become NaN. With this scale no gradient of these networks overflows.
        self.scaler = torch.amp.GradScaler("cuda", init_scale=4096.0, enabled=precision == "fp16")
        self.losses = []

    def autocast(self):
        return torch.autocast("cuda", dtype=self.dtype) if self.dtype else contextlib.nullcontext()

    def graphed_step(self):
        """A replay of the step. It leaves out AMP's scaling of losses, which reads a number back from the device."""
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


def make_model(case, last):
    torch.manual_seed(0)
    model = CASES[case][0]().cuda()
    if last:
        model = model.to(memory_format=torch.channels_last if len(CASES[case][1]) == 4
                         else torch.channels_last_3d)
    return model


class Clock:
    """Prints how long each part of a case takes."""

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
            table = conv_fft.torch.convert(ours.model, may, inputs=(ours.x,))
            clock.note("convert()")
            conv_fft.torch.convert(conv_fft.torch.revert(ours.model), may, inputs=(ours.x,))
            clock.note("convert() again")
    if options.table:
        print(table)
    found = {}
    for name, training in (("torch", theirs), ("ours", ours)):
        found["step", name] = median_ms(training.step, options.seconds)
        clock.note("steps of " + name)
    first, again = (torch.stack(t.losses[:7]).double() for t in (theirs, ours))
    # The file has this in the column of errors. It grows from step to step, as rounding errors do in training.
    difference = ((first[0] - again[0]).abs() / first[0]).item()
    print("#   %d of %d layers changed; the loss of the first step differs by %.1e; "
          "those of the seventh are %.5g and %.5g" % (len(table.changed), len(table), difference, first[6], again[6]))
    with torch.autograd.set_multithreading_enabled(False):
        print("#   with backward passes in the calling thread: step: torch %.2f ms, ours %.2f ms" % tuple(
            median_ms(training.step, options.seconds / 2) for training in (theirs, ours)), flush=True)
    counts = {"step": "%d of %d layers" % (len(table.changed), len(table))}
    if options.graph:
        with ours.autocast():
            table = conv_fft.torch.convert(conv_fft.torch.revert(ours.model), may, inputs=(ours.x,), graph=True)
        counts["step-graph"] = "%d of %d layers" % (len(table.changed), len(table))
        print("#   as a graph: %s changed" % counts["step-graph"], flush=True)
        if options.table:
            print(table)
        for name, training in (("torch", theirs), ("ours", ours)):
            found["step-graph", name] = median_ms(training.graphed_step(), options.seconds / 2)
        clock.note("graphs")
    for kind in ("step", "step-graph")[:1 + options.graph]:
        print("#   %s: torch %.2f ms, ours %.2f ms: %.2fx" % (kind, found[kind, "torch"], found[kind, "ours"],
                                                              found[kind, "torch"] / found[kind, "ours"]), flush=True)
    layout = "last" if last else "first"
    return [["steps", case, kind, precision, layout, name, "%.4f" % ms, "0",
             "%.2e" % (difference if name == "ours" else 0), counts[kind] if name == "ours" else ""]
            for (kind, name), ms in found.items()]
