# SPDX-License-Identifier: Apache-2.0
"""Whole models: turns torch's layers into ours, and back, in place."""
from __future__ import annotations

import contextlib
from typing import Callable, Optional, Union

import torch

from ..plan import plans
from . import _entry
from ._cases import cases_of, inputs_of, left_as_it_is, on_gpu
from ._judge import Judge, decide, limit_of, without_plans_of
from ._precision import check_precision, is_exact, set_precision
from ._table import Conversion, Progress, Row, described
from ._timing import time_model
from .modules import OURS, THEIRS


def worthwhile(name, layer):
    """The rule without measurements: kernels with an axis of at least 9 taps (depthwise: 7; in volumes: 5)."""
    longest = max(layer.kernel_size)
    if len(layer.kernel_size) == 3:
        return longest >= 5
    return longest >= (7 if layer.groups == layer.in_channels and layer.groups > 1 else 9)


def convert(model: torch.nn.Module, predicate: Optional[Callable[[str, torch.nn.Module], bool]] = None, *,
            inputs: Union[tuple, torch.Tensor, None] = None, measure: bool = True, graph: bool = False,
            precision: Optional[str] = None, dtype: Optional[torch.dtype] = None,
            time_limit: Optional[float] = 20.0, progress: Optional[bool] = None, repeats: int = 5,
            again: bool = False) -> Conversion:
    """Turn convolution layers of a model into ours if that is faster, in place. Returns a Conversion, a table to print.

    predicate   called with (name, layer): may this layer be changed? None: any whose kernel has more than one element
                and that is judged, else `worthwhile`
    inputs      arguments for the model (a tuple, or a tensor). The model runs to record each layer's input, then both
                implementations of each kind of layer are timed on random data (with gradients in training mode), and
                the faster one stays. None: layers are not judged, but changed by the rule `worthwhile`
    measure     False: nothing is timed. Earlier measurements, tuning records and the cost model decide, and where they
                know nothing, `worthwhile`
    graph       True: the model will run as a captured CUDA graph or compiled with graphs, so only the device's times
                count. False: host time counts too. Two more steps of the model (forward; in training mode also
                gradients, which are dropped) show whether the host or the device is the slower one
    precision   the attribute `precision` of the layers that are changed: "fast", "exact", or None for the precision in
                force at each call (conv_fft.torch.precision)
    dtype       the autocast type of the run; None: that of the surrounding `torch.autocast`, if any
    time_limit  seconds after which nothing new is begun; layers that are not judged by then are left. None: no limit.
                It does not apply within conv_fft.autotune(), whose searches have limits of their own
    progress    whether a line on standard error says what is done; None: on a terminal
    repeats     measurements of each; the median counts. 0: nothing is judged, as without inputs, but the plans of
                changed layers are made
    again       True: measure every layer. False: times that an earlier run has kept are used; the table marks them
                with an asterisk

    Of a layer whose tuning records or cost model expect more than 1.3 times the time of torch's, no plan is made.
    Measurements are kept in the cache directory, for this device and these versions. The plans of changed layers are
    made before the call returns, if inputs are given and time is left.

    Parameters, hooks and buffers stay the same objects, so optimisers stay valid. The model is only changed at the end:
    errors of the model's run, and an interrupt (Ctrl-C), leave it as it was. Compile a model after this, not before.
    Subclasses of torch's layers, and layers of ours, are left alone."""
    check_precision(precision)
    limit = limit_of(time_limit)
    table = Conversion()
    table.model = model
    layers = _layers_of(model, predicate, table)
    device = next((p.device.type for p in model.parameters()), "cpu")
    autocast = torch.autocast(device, dtype=dtype) if dtype is not None else contextlib.nullcontext()
    line = Progress(progress)
    try:
        with autocast, without_plans_of(_entry._entries, plans) as wanted:
            judge, cases = Judge(line, precision, repeats, limit, again), []
            if inputs is None or repeats == 0:
                _by_rule(layers, predicate)
            if inputs is not None and layers:
                line.say("running the model")
                with left_as_it_is(model):
                    seen = inputs_of(model, layers, inputs)
                    cases = cases_of(layers, seen, model.training, is_exact(precision))
                    if repeats:
                        _judge_all(model, cases, inputs, judge, measure, graph, predicate)
            chosen = [case for case in cases if case.problem is not None and case.rows[0].decision == "changed"]
            judge.make_plans(chosen)
            _keep_without_plans([case for case in chosen if case.reason is not None])
            wanted.update(case.problem for case in chosen if case.reason is None)
    finally:
        line.end()
    _change([layer for layer, row in layers.items() if row.decision == "changed"], precision)
    return table


def _layers_of(model, predicate, table):
    """{layer: its row} of the layers that may be changed. Adds the rows of all convolutions to the table."""
    layers = {}
    for name, layer in model.named_modules():
        if type(layer) in OURS:
            row = Row(name, described(layer))
            table.append(row)
            if predicate is not None and not predicate(name, layer):
                row.why = "predicate"
            elif predicate is None and max(layer.kernel_size) == 1:
                row.why = "a kernel of one element"
            else:
                layers[layer] = row
    return layers


def _by_rule(layers, predicate):
    for layer, row in layers.items():
        if predicate is not None or worthwhile(row.name, layer):
            row.decision = "changed"
        else:
            row.why = "small kernel"


def _judge_all(model, cases, inputs, judge, measured, graph, predicate):
    """Judge the cases and fill in the rows of their layers."""
    able = []
    for case in cases:
        if case.seen is None:
            case.decide("kept", "not called")
        elif case.reason is not None:
            case.decide("kept", case.reason)
        else:
            able.append(case)
    unknown = judge.look_up(able)
    known = [case for case in able if case not in unknown]
    if not graph and any(on_gpu(case) for case in (able if measured else known)):
        judge.step = time_model(model, inputs)
    judge.model_has_run()
    if measured:
        judge.measure(unknown, known)
    else:
        judge.predict(unknown)
        for case in unknown:
            judge.expect(case, predicate is not None or worthwhile(case.rows[0].name, case.layer))
    decide([case for case in able if case.decision is None], graph, judge.step)
    for case in cases:
        for row in case.rows:
            row.decision, row.why, row.predicted_ms = case.decision, case.why, case.predicted_ms
            row.torch_ms, row.ours_ms = case.torch_ms, case.ours_ms
            row.torch_host_ms, row.ours_host_ms = case.torch_host_ms, case.ours_host_ms
            row.earlier = case.earlier


def _keep_without_plans(cases):
    for case in cases:
        for row in case.rows:
            row.decision, row.why = "kept", case.reason


def _change(layers, precision):
    """Turn layers into ours, all or, on an interrupt, none."""
    try:
        for layer in layers:
            layer.__class__ = OURS[type(layer)]
            set_precision(layer, precision)
    except BaseException:
        _restore(layers)
        raise


def _restore(layers):
    for layer in layers:
        if type(layer) in THEIRS:
            layer.__class__ = THEIRS[type(layer)]
            layer.__dict__.pop("_conv_fft_site", None)
            set_precision(layer, None)


def revert(model: torch.nn.Module) -> torch.nn.Module:
    """Turn our layers of a model back into torch's, in place; returns the model."""
    _restore(model.modules())
    return model
