# SPDX-License-Identifier: Apache-2.0
"""Whole models: turns torch's layers into ours, and back, in place."""
from __future__ import annotations

import concurrent.futures
import contextlib
import os
import statistics
import time
from typing import Callable, List, Optional, Union

import torch

from ..errors import Error
from ..plan import tunings
from . import _entry, functional
from ._precision import check_precision, is_exact, set_precision
from .modules import OURS, THEIRS


class Row:
    """One layer: its name, its type, "changed" or "kept", why, and milliseconds of both (None: not measured)."""

    def __init__(self, name, layer):
        self.name, self.layer, self.decision, self.why = name, layer, "kept", ""
        self.torch_ms, self.ours_ms = None, None


class Conversion(list):
    """The rows of a conversion; printed, a table. `model` is the model."""

    model = None

    @property
    def changed(self) -> List[str]:
        return [row.name for row in self if row.decision == "changed"]

    def __str__(self):
        def ms(value):
            return "" if value is None else "%.3f" % value
        lines = [("layer", "", "torch ms", "ours ms", "", "")]
        lines += [(row.name or "(the model)", row.layer, ms(row.torch_ms), ms(row.ours_ms), row.decision, row.why)
                  for row in self]
        widths = [max(len(line[column]) for line in lines) for column in range(5)]
        padded = [[cell.rjust(width) if 2 <= column < 4 else cell.ljust(width)
                   for column, (cell, width) in enumerate(zip(line, widths))] for line in lines]
        return "\n".join("  ".join((*cells, line[5])).rstrip() for cells, line in zip(padded, lines))


def _described(layer):
    text = "%s(%d, %d, %s" % (type(layer).__name__, layer.in_channels, layer.out_channels,
                              "x".join(map(str, layer.kernel_size)))
    return text + (", groups=%d)" % layer.groups if layer.groups > 1 else ")")


def worthwhile(name, layer):
    """The rule without measurements: kernels with an axis of at least 9 taps (depthwise: 7; in volumes: 5)."""
    longest = max(layer.kernel_size)
    if len(layer.kernel_size) == 3:
        return longest >= 5
    return longest >= (7 if layer.groups == layer.in_channels and layer.groups > 1 else 9)


def convert(model: torch.nn.Module, predicate: Optional[Callable[[str, torch.nn.Module], bool]] = None, *,
            inputs: Union[tuple, torch.Tensor, None] = None, repeats: int = 5,
            dtype: Optional[torch.dtype] = None, precision: Optional[str] = None) -> Conversion:
    """Turn convolution layers of a model into ours if that is faster, in place. Returns a Conversion, a table to print.

    predicate   called with (name, layer): may this layer be changed? None: any that is measured, else `worthwhile`
    inputs      arguments for the model (a tuple, or a tensor). The model runs once to record each layer's input, then
                both implementations of each layer are timed on random data (with gradients in training mode). The
                faster one stays; on a GPU ours must win by 0.02 ms, its extra cost on the host. In training mode that
                run updates the statistics of normalisations. None: nothing is measured
    repeats     measurements of each; the median counts. 0: nothing is measured, but the plans are made now, in parallel
    dtype       the autocast type of the run; None: that of the surrounding `torch.autocast`, if any
    precision   the attribute `precision` of the layers that are changed: "fast", "exact", or None for the precision in
                force at each call (conv_fft.torch.precision)

    Equal layers are measured once. Parameters, hooks and buffers stay the same objects, so optimisers stay valid.
    Compile a model after this, not before. Subclasses of torch's layers, and layers of ours, are left alone."""
    check_precision(precision)
    exact = is_exact(precision)
    table = Conversion()
    table.model = model
    layers = {}
    for name, layer in model.named_modules():
        if type(layer) in OURS:
            row = Row(name, _described(layer))
            table.append(row)
            if predicate is not None and not predicate(name, layer):
                row.why = "predicate"
            else:
                layers[layer] = row
    device = next((p.device.type for p in model.parameters()), "cpu")
    with torch.autocast(device, dtype=dtype) if dtype is not None else contextlib.nullcontext():
        seen = {} if inputs is None else _inputs_of(model, layers, inputs)
        measured = inputs is not None and repeats > 0
        if not measured:
            for layer in [layer for layer in layers if predicate is None and not worthwhile(layers[layer].name, layer)]:
                layers.pop(layer).why = "small kernel"
        _prepare({layer: about for layer, about in seen.items() if layer in layers}, model.training, exact)
        twins = {}
        for layer, row in layers.items():
            key = (repr(layer), layer.weight.dtype, layer.weight.stride(), layer.weight.requires_grad, seen.get(layer))
            twin = twins.setdefault(key, row)
            if not measured:
                row.decision = "changed"
            elif twin is row:
                _measure(layer, row, seen.get(layer), repeats, model.training, precision)
            else:
                row.decision, row.why, row.torch_ms, row.ours_ms = twin.decision, twin.why, twin.torch_ms, twin.ours_ms
    for layer, row in layers.items():
        if row.decision == "changed":
            layer.__class__ = OURS[type(layer)]
            set_precision(layer, precision)
    return table


def _inputs_of(model, layers, inputs):
    """The first input of each layer as (shape, strides, dtype, device, requires_grad). The tensors themselves might not
    all fit the memory."""
    seen = {}

    def note(layer, arguments, named):
        x = arguments[0] if arguments else named.get("input")
        if layer not in seen and isinstance(x, torch.Tensor):
            seen[layer] = (tuple(x.shape), x.stride(), x.dtype, x.device, x.requires_grad)

    hooks = [layer.register_forward_pre_hook(note, with_kwargs=True) for layer in layers]
    try:
        with torch.set_grad_enabled(model.training):
            model(*(inputs,) if isinstance(inputs, torch.Tensor) else inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def _prepare(seen, training, exact):
    """Make the plans of all layers in parallel, as most of the time is spent compiling. If plans measure strategies, do
    nothing: measurements would disturb each other."""
    if tunings[-1]["tuning"] != "cached":
        return
    jobs = {}
    for layer, (shape, strides, dtype, device, needs_grad) in seen.items():
        if layer.transposed or device.type not in ("cuda", "cpu"):
            continue
        config = functional.config_of(layer.weight.shape, layer.stride, layer.padding, layer.dilation, layer.groups,
                                      _entry.MODES.index(layer.padding_mode))
        x, w = functional.autocast(device.type, torch.empty_strided(shape, strides, dtype=dtype, device="meta"),
                                   layer.weight.to("meta"))
        if config is None or x.dim() != w.dim() or x.dtype != w.dtype or x.dtype not in _entry.DTYPES:
            continue
        need = (2 if training and needs_grad else 0) | (4 if training and layer.weight.requires_grad else 0)
        for passes in {1, need} - {0}:
            jobs[x.shape, x.stride(), x.dtype, w.shape, w.stride(), config, device, passes] = x, w

    def make(job):
        (*_, config, device, passes), (x, w) = job
        with contextlib.suppress(Error, ValueError):  # the layer's own call will handle the error
            _entry.entry_of(x, w, config, device, exact).prepare(passes)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(make, jobs.items()))


def _measure(layer, row, seen, repeats, training, precision):
    """Time both implementations of a layer and write the decision into the row. The layer stays torch's."""
    if seen is None:
        row.why = "not called"
        return
    shape, strides, dtype, device, needs_grad = seen
    x = torch.empty_strided(shape, strides, dtype=dtype, device=device).normal_()
    x.requires_grad_(training and needs_grad)
    theirs = type(layer)
    kept = [(p, p.grad) for p in layer.parameters()]
    hooks = _without_hooks(layer)
    try:
        row.torch_ms = _time(layer, x, repeats, training)
        layer.__class__ = OURS[theirs]
        set_precision(layer, precision)
        row.ours_ms = _time(layer, x, repeats, training)
    finally:
        set_precision(layer, None)
        layer.__class__ = theirs
        _restore_hooks(layer, hooks)
        for p, grad in kept:
            p.grad = grad
    worth = row.ours_ms + (HOST_MS if x.is_cuda else 0) < row.torch_ms
    row.decision = "changed" if worth else "kept"
    row.why = "%.1fx" % (row.torch_ms / row.ours_ms)


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _without_hooks(layer):
    """Remove and return a layer's hooks, which must not see the calls of a measurement."""
    hooks = {name: dict(getattr(layer, name)) for name in _HOOKS}
    for name in _HOOKS:
        getattr(layer, name).clear()
    return hooks


def _restore_hooks(layer, hooks):
    for name, found in hooks.items():
        getattr(layer, name).update(found)


# The extra host time of a layer of ours (docs/python.md). A smaller gain of the device would be lost in a model that
# keeps the host busier than the device.
HOST_MS = 0.02
PAUSE = 2_000_000  # cycles of the device: about a millisecond


def _time(layer, x, repeats, training):
    """The median milliseconds of the forward pass, in training mode of forward and backward."""
    gradient = None

    def run():
        nonlocal gradient
        with torch.set_grad_enabled(training):
            y = layer(x)
        if training and y.requires_grad:
            gradient = torch.randn_like(y) if gradient is None else gradient
            y.backward(gradient)

    times = []
    for _ in range(repeats + 2):
        if x.is_cuda:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            # The device is busy until all is enqueued, so only its own time counts, as in the middle of a network.
            torch.cuda._sleep(PAUSE)
            begin.record()
            run()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        else:
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times[2:])


def revert(model: torch.nn.Module) -> torch.nn.Module:
    """Turn our layers of a model back into torch's, in place; returns the model."""
    for layer in model.modules():
        if type(layer) in THEIRS:
            layer.__class__ = THEIRS[type(layer)]
            layer.__dict__.pop("_conv_fft_site", None)
            set_precision(layer, None)
    return model
