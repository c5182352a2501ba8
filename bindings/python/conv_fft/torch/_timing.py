# SPDX-License-Identifier: Apache-2.0
"""How long torch's and our layers take, and a whole model, for convert()."""
from __future__ import annotations

import statistics
import time

import torch
from torch.utils._pytree import tree_flatten

from ._cases import run_model

PAUSE = 2_000_000  # cycles of the device: about a millisecond


def time_layer(layer, x, repeats, training, deadline):
    """(milliseconds, host milliseconds) of the forward pass, in training mode of forward and backward.

    On a GPU the first are the device's own, as in the middle of a captured graph, and their median counts. The host's
    are those that a call takes to return; of these the least counts, because other work of the host only adds to them.
    On a CPU the first are those of a call, and the host's are None. After the deadline one measurement suffices."""
    gradient = None

    def run():
        nonlocal gradient
        with torch.set_grad_enabled(training):
            y = layer(x)
        if training and y.requires_grad:
            gradient = torch.randn_like(y) if gradient is None else gradient
            y.backward(gradient)

    times, host, warm = [], [], 2
    for number in range(repeats + warm):
        torch.clear_autocast_cache()  # a step of training casts each weight anew
        if x.is_cuda:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            # The device is busy until all is enqueued, so its times have no gaps.
            torch.cuda._sleep(PAUSE)
            begin.record()
            start = time.perf_counter()
            run()
            host.append((time.perf_counter() - start) * 1e3)
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        else:
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
        if number >= warm and time.monotonic() > deadline:
            break
    return statistics.median(times[warm:]), min(host[warm:]) if host else None


def time_model(model, inputs, repeats=2):
    """(milliseconds until a step's calls have returned, until the device has finished): medians. None if the model does
    not run so. A step is forward, in training mode forward and backward; gradients are dropped."""
    parameters = [p for p in model.parameters() if p.requires_grad]

    def step():
        torch.clear_autocast_cache()
        with torch.set_grad_enabled(model.training):
            outputs = [t for t in tree_flatten(run_model(model, inputs))[0]
                       if isinstance(t, torch.Tensor) and t.requires_grad]
        if model.training and parameters and outputs:
            torch.autograd.grad(outputs, parameters, [torch.ones_like(t) for t in outputs], allow_unused=True)

    returned, finished = [], []
    try:
        step()
        for _ in range(repeats):
            torch.cuda.synchronize()
            start = time.perf_counter()
            step()
            returned.append((time.perf_counter() - start) * 1e3)
            torch.cuda.synchronize()
            finished.append((time.perf_counter() - start) * 1e3)
    except Exception:  # checkpoints, outputs of unknown classes, no memory for all gradients at once
        return None
    return statistics.median(returned), statistics.median(finished)
