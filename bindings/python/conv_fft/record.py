# SPDX-License-Identifier: Apache-2.0
"""Writes the convolution layers of a program as a network description, which `conv-fft tune` and conv_fft.tune() read.

    python -m conv_fft.record [--out layers.txt] script.py [arguments of the script]

It records the convolutions and transposed convolutions of torch and of conv_fft.torch, layers and calls, and the plans
that conv_fft makes. Each kind is one line with its number of calls, in the order of first use."""
import argparse
import collections
import contextlib
import importlib.util
import os
import runpy
import sys

from . import plan
from .errors import Error
from .problem import Problem


class Recorder:
    def __init__(self):
        self.counts = collections.OrderedDict()
        self.inside = []  # running modules whose call is recorded already

    def note_plan(self, problem):
        """A plan is made once, for any number of calls."""
        if not self.inside:
            self.counts.setdefault(problem.line, 1)

    def note(self, problem):
        try:
            line = problem.line
        except Error:
            return  # a call that will fail
        self.counts[line] = self.counts.get(line, 0) + 1

    def text(self, title):
        lines = ["# Convolution layers of %s." % title]
        for number, (line, count) in enumerate(self.counts.items(), 1):
            lines.append("layer%d %s%s" % (number, line, " # x%d" % count if count > 1 else ""))
        return "\n".join(lines) + "\n"


@contextlib.contextmanager
def _torch_calls(recorder):
    """Records torch's convolutions: calls of functions, and of modules, whose padding modes no function sees."""
    import torch
    from torch import nn
    from torch.overrides import TorchFunctionMode

    from .torch import _entry, functional
    from .torch._precision import is_exact

    inside = recorder.inside

    def note(x, w, bias, stride, padding, dilation, groups, mode, precision=None):
        kind = w.device.type
        autocasts = functional.autocasts(kind) and x.dtype != torch.float64
        dtype = torch.get_autocast_dtype(kind) if autocasts else x.dtype
        fp32_weights = autocasts and all(_entry.has_fp32_weights(dtype, t.dtype) for t in (w, bias) if t is not None)
        config = functional.config_of(w.shape, stride, padding, dilation, groups, mode)
        if config is None or dtype not in _entry.DTYPES:
            return
        stride, pads, dilation, groups, mode = config
        rank = len(stride)
        last = _entry.is_last(x) or _entry.is_last(w)
        order = (lambda shape: (shape[0], *shape[2:], shape[1])) if last else tuple
        shape = tuple(x.shape) if x.dim() == rank + 2 else (1, *x.shape)
        try:
            problem = Problem(order(shape), order(tuple(w.shape)), stride=stride,
                              padding=tuple(zip(pads[:rank], pads[rank:])), dilation=dilation, groups=groups,
                              padding_mode=_entry.MODES[mode], layout="last" if last else "first",
                              dtype=_entry.DTYPES[dtype], math=_entry.math_of(dtype, kind, is_exact(precision)),
                              weight_dtype="float32" if fp32_weights else None)
        except ValueError:
            return
        recorder.note(problem)

    def of_call(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        note(input, weight, bias, stride, padding, dilation, groups, 0)

    def of_transposed(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        """Records the convolution whose data gradient the call computes."""
        config = functional.config_of(weight.shape, stride, padding, dilation, groups, 0)
        if config is not None and input.dim() == weight.dim():
            more = functional.per_axis(output_padding, len(config[0]))
            if len(more) != len(config[0]):
                return  # a call that will fail, or whose numbers are tensors
            extents = [max(extent, 0) for extent in functional.transposed_extents(input, weight, config, more)]
            form = _entry.FORMATS[input.dim()] if _entry.is_last(input) else torch.contiguous_format
            x = torch.empty((input.shape[0], weight.shape[1] * groups, *extents), dtype=input.dtype, device="meta",
                            memory_format=form)
            note(x, weight, bias, stride, padding, dilation, groups, 0)

    calls = {**dict.fromkeys((torch.conv1d, torch.conv2d, torch.conv3d), of_call),
             **dict.fromkeys((torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d), of_transposed)}

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function in calls and not inside:
                calls[function](*args, **(kwargs or {}))
            return function(*args, **(kwargs or {}))

    def enter(layer, arguments):
        # A layer that is called by keyword, or has no weight yet, is recorded by its function's call.
        convolution = isinstance(layer, (nn.Conv1d, nn.Conv2d, nn.Conv3d))
        if convolution and arguments and not nn.parameter.is_lazy(layer.weight):
            note(arguments[0], layer.weight, layer.bias, layer.stride, layer.padding, layer.dilation, layer.groups,
                 _entry.MODES.index(layer.padding_mode), getattr(layer, "precision", None))
            inside.append(layer)

    def leave(layer, arguments, result):
        if inside and inside[-1] is layer:
            inside.pop()

    hooks = [nn.modules.module.register_module_forward_pre_hook(enter),
             nn.modules.module.register_module_forward_hook(leave, always_call=True)]
    with Mode():
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


def main():
    parser = argparse.ArgumentParser(prog="python -m conv_fft.record", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="layers.txt", help="the network description (default: layers.txt)")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    recorder = Recorder()
    plan.observers.append(recorder.note_plan)
    watch = _torch_calls(recorder) if importlib.util.find_spec("torch") else contextlib.nullcontext()
    sys.argv = [options.script, *options.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(options.script))  # as if Python had been called with the script
    try:
        with watch:
            runpy.run_path(options.script, run_name="__main__")
    finally:
        if recorder.counts:  # otherwise an older file is left as it is
            with open(options.out, "w", encoding="utf-8") as file:
                file.write(recorder.text(options.script))
            print("%s: %d kinds of layers" % (options.out, len(recorder.counts)), file=sys.stderr)
        else:
            print("%s ran no convolution: %s is not written" % (options.script, options.out), file=sys.stderr)


if __name__ == "__main__":
    main()
