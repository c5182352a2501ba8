# SPDX-License-Identifier: Apache-2.0
"""The layers of a model by kind, with the inputs that they get, for convert(). Nothing here changes a model."""
from __future__ import annotations

import contextlib
from collections import OrderedDict

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from . import _entry, functional
from ._precision import set_precision
from .modules import OURS


class Case:
    """Layers that are the same to torch and to the library: one judgement serves all of them.

    seen        (shape, strides, type, device, requires_grad) of the input; None: not known
    x, w        tensors without memory that have the shapes, strides and types of the convolution's operands
    sets        the sets of passes whose plans the layers need
    problem     the conv_fft.Problem; None if torch computes the layers: `reason` says why"""

    def __init__(self, layer, seen, training, exact):
        self.layer, self.seen, self.training, self.rows = layer, seen, training, []
        self.x = self.w = self.config = self.problem = self.entry = None
        self.sets, self.reason = (), None
        self.torch_ms = self.ours_ms = self.torch_host_ms = self.ours_host_ms = self.predicted_ms = None
        self.decision, self.why, self.earlier = None, "", False
        if seen is not None:
            self.reason = self._describe(exact)

    def _describe(self, exact):
        layer, (shape, strides, dtype, device, needs_grad) = self.layer, self.seen
        if "forward" in layer.__dict__ or "_conv_forward" in layer.__dict__:
            return "its forward() is replaced"
        if "weight" not in layer._parameters or "bias" not in layer._parameters:
            return "its weight is no parameter"
        if device.type not in ("cuda", "cpu"):
            return "its input is on the device %s" % device
        self.config = functional.config_of(layer.weight.shape, layer.stride, layer.padding, layer.dilation,
                                           layer.groups, _entry.MODES.index(layer.padding_mode))
        x = torch.empty_strided(shape, strides, dtype=dtype, device="meta")
        x, self.w, _ = functional.autocast(device.type, x, *(None if p is None else p.detach().to("meta")
                                                             for p in (layer.weight, layer.bias)))
        if x.dim() == self.w.dim() - 1:
            x = x.unsqueeze(0)
        if self.config is None or x.dim() != self.w.dim():
            return "its parameters or input do not suit"
        if not functional.types_fit(x, self.w, device.type):
            return "its tensors are of %s and %s" % (x.dtype, self.w.dtype)
        of_x, of_w = self.training and needs_grad, self.training and layer.weight.requires_grad
        if layer.transposed:
            more = functional.per_axis(layer.output_padding, x.dim() - 2)
            extents = functional.transposed_extents(x, self.w, self.config, more)
            last = _entry.is_last(x) or _entry.is_last(self.w)
            x = torch.empty((x.shape[0], self.w.shape[1] * layer.groups, *extents), dtype=x.dtype, device="meta",
                            memory_format=_entry.FORMATS[x.dim()] if last else torch.contiguous_format)
            self.sets = (2,) + (1,) * of_x + (4,) * of_w
        else:
            self.sets = tuple(sorted({1, 2 * of_x | 4 * of_w} - {0}))
        self.x = x
        try:
            self.entry = _entry.entry_of(x, self.w, self.config, device, exact)
            self.problem = self.entry.problem
        except (RuntimeError, ValueError) as error:  # conv_fft.Error is a RuntimeError
            return str(error)
        return None

    def input(self):
        shape, strides, dtype, device, needs_grad = self.seen
        x = torch.empty_strided(shape, strides, dtype=dtype, device=device).normal_()
        return x.requires_grad_(self.training and needs_grad)

    def decide(self, decision, why):
        self.decision, self.why = decision, why


def on_gpu(case):
    return case.seen[3].type == "cuda"


def cases_of(layers, seen, training, exact):
    """The cases of layers, in the order of their first layers. layers: {layer: Row}; seen: {layer: what it got}."""
    found = OrderedDict()
    for layer, row in layers.items():
        weight = layer._parameters.get("weight")
        key = (repr(layer), seen.get(layer), None if weight is None or is_lazy(weight) else
               (weight.shape, weight.dtype, weight.device, weight.stride(), weight.requires_grad),
               "forward" in layer.__dict__)
        if key not in found:
            found[key] = Case(layer, seen.get(layer), training, exact)
        found[key].rows.append(row)
    return list(found.values())


def twin(layer, kind, precision):
    """A layer of the class `kind` with the same weights, but without hooks, and with gradients of its own. Calls of it
    leave the layer as it is."""
    made = kind.__new__(kind)
    for name, value in layer.__dict__.items():
        hooks = isinstance(value, dict) and "_hooks" in name
        made.__dict__[name] = type(value)() if hooks else value
    made.__dict__["_parameters"] = {name: None if p is None else nn.Parameter(p.detach(), p.requires_grad)
                                    for name, p in layer._parameters.items()}
    if kind is OURS.get(type(layer)):
        set_precision(made, precision)
    return made


@contextlib.contextmanager
def left_as_it_is(model):
    """Within this, calls of the model change neither its buffers nor the state of random numbers. Each call casts its
    weights under autocast, as the one call of a training step does."""
    devices = {t.device.index for t in model.parameters() if t.device.type == "cuda"}
    buffers = [(module._buffers, dict(module._buffers)) for module in model.modules()]
    contents = [(b, b.clone()) for _, of_module in buffers for b in of_module.values()
                if b is not None and not is_lazy(b) and not b.is_inference() and b.device.type != "meta"]
    cached = torch.is_autocast_cache_enabled()
    with torch.random.fork_rng(devices=sorted(devices)):
        try:
            torch.set_autocast_cache_enabled(False)
            yield
        finally:
            torch.set_autocast_cache_enabled(cached)
            for now, before in buffers:
                now.update((name, b) for name, b in before.items() if b is None or not is_lazy(b))
            for b, content in contents:
                if not _is_same(b, content):
                    b.data.copy_(content)  # unlike b.copy_(), leaves graphs valid that autograd has recorded before


def _is_same(b, content):
    try:
        return torch.equal(b, content)
    except (RuntimeError, MemoryError):  # to compare takes memory, and a run that failed may still hold all of it
        return False


def run_model(model, inputs):
    return model(*(inputs,) if isinstance(inputs, torch.Tensor) else inputs)


def inputs_of(model, layers, inputs):
    """Run the model once. Returns {layer: (shape, strides, type, device, requires_grad)} of each layer's first input.
    The tensors themselves might not all fit the memory."""
    seen, hooks = {}, []

    def note(layer, arguments, named):
        x = arguments[0] if arguments else named.get("input")
        if layer not in seen and isinstance(x, torch.Tensor):
            seen[layer] = (tuple(x.shape), x.stride(), x.dtype, x.device, x.requires_grad)

    try:
        for layer in layers:
            hooks.append(layer.register_forward_pre_hook(note, with_kwargs=True))
        with torch.set_grad_enabled(model.training):
            run_model(model, inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return seen
