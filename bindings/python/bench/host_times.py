# SPDX-License-Identifier: Apache-2.0
"""The host's time of calls: until they return, not until the device has finished."""
import contextlib
import time

import conv_fft.torch
import torch
from conv_fft import Plan, Problem
from conv_fft._library import check, lib
from conv_fft._torch_memory import current_stream
from timing import AUTOCAST
from torch import nn

COLUMNS = "layer,mode,pass,impl,us"
MODES = {"fp32": None, **{"autocast-" + name: dtype for name, dtype in AUTOCAST.items()}}
# Layers whose kernels take less time than a call costs the host: problem line, and the layer's arguments.
LAYERS = {"in=2x32x28x28 out=32 kernel=7x7 pad=3 groups=32": dict(kernel_size=7, padding=3, groups=32),
          "in=2x16x14x14 out=16 kernel=5x5 pad=2": dict(kernel_size=5, padding=2)}
IMPLEMENTATIONS = {"torch": nn.Conv2d, "ours": conv_fft.torch.Conv2d}
CALLS, ROUNDS = 50, 41
HOW = ("the least mean of %d calls in a row among %d rounds, the calls of a layer in turns; gradients of x, w, bias; "
       "autocast is on, and weights are cast anew after each backward pass" % (CALLS, ROUNDS))


class Calls:
    """The calls of one layer in one mode. Each method runs one call."""

    def __init__(self, line, arguments, mode, device):
        torch.manual_seed(0)
        self.problem = Problem.parse(line)
        batch, channels, *extents = self.problem.input_shape
        self.dtype = MODES[mode]
        self.layers = {impl: kind(channels, self.problem.weight_shape[0], **arguments).to(device)
                       for impl, kind in IMPLEMENTATIONS.items()}
        self.x = torch.randn(batch, channels, *extents, device=device, requires_grad=True)
        self.device = device

    def autocast(self):
        return torch.autocast(self.device, dtype=self.dtype) if self.dtype else contextlib.nullcontext()

    def forward(self, impl):
        layer, x = self.layers[impl], self.x.detach()
        return torch.no_grad, lambda: layer(x)

    def both(self, impl):
        layer, x = self.layers[impl], self.x
        sources, gy = [x, *layer.parameters()], torch.randn_like(layer(x))

        def call():
            torch.autograd.grad(layer(x), sources, gy)
            torch.clear_autocast_cache()
        return torch.enable_grad, call

    def plan(self):
        """Plan.forward(out=), and the C function with the same addresses."""
        p, short = self.problem, str(self.dtype or torch.float32).partition(".")[2]
        rank = p.rank
        problem = Problem(p.input_shape, p.weight_shape, padding=list(p.struct.pad_before[:rank]),
                          groups=p.struct.groups, dtype=short, weight_dtype="float32",
                          math="half" if self.dtype else "default")  # as the layers compute
        layer, x = self.layers["ours"], self.x.detach().to(self.dtype or torch.float32)
        plan = Plan(problem, self.device, passes="forward", trusted=True)
        out = torch.empty(plan.output_shape, dtype=x.dtype, device=x.device)
        workspace = torch.empty(plan.workspace[1], dtype=torch.uint8, device=x.device)
        w, bias = layer.weight.detach(), layer.bias.detach()
        stream = None if plan.device < 0 else current_stream(plan.device)
        addresses = (plan.handle, x.data_ptr(), w.data_ptr(), bias.data_ptr(), out.data_ptr(), workspace.data_ptr(),
                     plan.workspace[1], stream)
        function = lib.conv_fft_forward
        check(function(*addresses))
        # The tensors live as long as the calls.
        return ((torch.no_grad, lambda: plan.forward(x, w, bias, out=out)),
                (torch.no_grad, lambda held=(workspace, plan): function(*addresses)))


def microseconds(calls, device):
    """{key: us} of calls, {key: (mode of gradients, function)}, which are measured in turns."""
    best = dict.fromkeys(calls, float("inf"))
    for turn in range(ROUNDS + 1):
        for key, (grad, call) in calls.items():
            with grad():
                begin = time.perf_counter()
                for _ in range(CALLS):
                    call()
                us = (time.perf_counter() - begin) / CALLS * 1e6
            if device == "cuda":
                torch.cuda.synchronize()
            if turn:  # the first one warms up
                best[key] = min(best[key], us)
    return best


def host_rows(device):
    """Rows of COLUMNS. Also prints them."""
    rows = []
    for line, arguments in LAYERS.items():
        for mode in MODES:
            calls = Calls(line, arguments, mode, device)
            with calls.autocast():
                timed = {(passname, impl): make(impl) for passname, make in
                         (("forward", calls.forward), ("forward+backward", calls.both)) for impl in IMPLEMENTATIONS}
                timed["plan-forward-out", "ours"], timed["c-call", "ours"] = calls.plan()
                found = microseconds(timed, device)
            if conv_fft.torch.fallbacks():
                raise SystemExit("bench_torch.py: torch computes a layer itself: %s" % conv_fft.torch.fallbacks())
            for (passname, impl), us in found.items():
                rows.append([line, mode, passname, impl, "%.2f" % us])
                print(",".join(rows[-1]), flush=True)
    return rows
