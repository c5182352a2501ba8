# SPDX-License-Identifier: Apache-2.0
"""How conv_fft.torch.convert() judges layers: limits, the cost model, host time, and what it keeps."""
import io
import json
import sys
import time
import types

import conv_fft
import pytest
from conftest import HAS_TORCH
from convert_checks import classes, example, fresh, network, plans_made, timed  # noqa: F401

if HAS_TORCH:
    import conv_fft.torch as ours
    import torch
    from conv_fft import _layer_times
    from conv_fft.torch import _cases, _entry, _judge, _kept, _model, _timing, conversion
    from torch import nn

INFINITY = float("inf")


# ---------------------------------------------------------------------------------------------- limits

def test_layers_that_it_cannot_judge_in_time_are_left(device):
    net, made = network(device), plans_made()
    before = classes(net)
    table = ours.convert(net, inputs=example(device), time_limit=0)
    assert classes(net) == before and not made
    assert {row.why for row in table} == {"no time left to judge it"} and "no time left" in str(table)


def test_a_plan_that_takes_long_ends_the_judging(monkeypatch):
    timed(monkeypatch)
    monkeypatch.setattr(_entry.Entry, "prepare", lambda entry, passes: time.sleep(0.4))
    monkeypatch.setattr(_judge, "_processors", lambda: 1)
    net, start = network(), time.monotonic()
    table = ours.convert(net, inputs=example(), time_limit=0.5)
    assert time.monotonic() - start < 3
    assert "no time left to judge it" in {row.why for row in table}


def test_a_slow_first_run_of_the_model_leaves_time_to_judge(monkeypatch):
    timed(monkeypatch)
    late = []
    clock = types.SimpleNamespace(monotonic=lambda: time.monotonic() + 600 * len(late))
    monkeypatch.setattr(_judge, "time", clock)
    net = network()
    net.register_forward_pre_hook(lambda *_: late or late.append(1))
    table = ours.convert(net, inputs=example(), time_limit=1000)
    assert late and "no time left to judge it" not in {row.why for row in table}


def test_the_largest_layers_are_judged_first(monkeypatch):
    timed(monkeypatch)
    order = []
    monkeypatch.setattr(_judge, "time_layer", lambda layer, *_: order.append(layer.kernel_size[0]) or (2.0, None))
    ours.convert(network(), inputs=example())
    assert order[:4] == [11, 4, 9, 3]


@pytest.mark.parametrize("limit", [-1, "20", True, float("nan")])
def test_a_wrong_limit_is_named(limit):
    with pytest.raises(ValueError, match="time_limit is %s; it must be a number of seconds" % repr(limit)):
        ours.convert(network(), inputs=example(), time_limit=limit)


def test_there_is_no_limit_within_autotune():
    assert _judge.limit_of(None) == INFINITY and _judge.limit_of(5) == 5
    with conv_fft.autotune():
        assert _judge.limit_of(5) == INFINITY


# -------------------------------------------------------------------------------------------- progress

def test_progress_is_shown_where_it_is_wanted(capsys, monkeypatch):
    ours.convert(network(), inputs=example())
    assert capsys.readouterr().err == ""  # this is no terminal
    _layer_times.clear()
    ours.convert(network(), inputs=example(), progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "convert: running the model" and all(line.startswith("convert: ") for line in lines)
    assert "convert: timing torch's layers: 1 of 4 kinds" in lines

    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    ours.convert(network(), inputs=example(), progress=False)
    assert terminal.getvalue() == ""
    ours.convert(network(), inputs=example())
    shown = terminal.getvalue()
    assert shown.startswith("\r\x1b[Kconvert: running") and shown.endswith("\r\x1b[K") and "\n" not in shown
    monkeypatch.setattr(sys, "stderr", None)  # as in pythonw
    ours.convert(network(), inputs=example(), progress=True)


# ------------------------------------------------------------------------------- what is asked and timed

def test_no_plan_is_made_of_a_layer_that_the_model_expects_to_lose(monkeypatch):
    calls, made = timed(monkeypatch), plans_made()
    for expected, tried in ((2.7, False), (2.5, True)):
        monkeypatch.setattr(_judge, "predict", lambda case, records: expected)
        _layer_times.clear()
        del calls[:], made[:]
        table = ours.convert(network(), inputs=example())
        assert bool(made) is tried and (ours.Conv2d in calls) is tried and len(table.changed) == 5 * tried
        if not tried:
            assert {row.why for row in table} == {"not tried: the cost model expects 2.700 ms (0.7x)"}
            assert {(row.torch_ms, row.ours_ms, row.predicted_ms) for row in table} == {(2.0, None, 2.7)}


def test_the_model_predicts_what_its_best_candidate_takes(device):
    net = network(device)
    cases = some_cases(net, example(device))
    for case in cases:
        expected = _model.predict(case, _model.Records())
        best = 0.0
        for passes in case.sets:
            found = conv_fft.candidates(case.problem, device, passes=passes, own_kernels=True)
            assert {c["passes"] for c in found} == {passes}
            assert not any(c["strategy"].startswith("cudnn") for c in found)
            best += min(c["predicted_ms"] for c in found if c["predicted_ms"] is not None)
        assert expected == pytest.approx(best) and expected > 0
    assert [case.sets for case in cases] == [(1, 4), (1, 6), (1, 6), (2, 1, 4)]


def some_cases(net, x, training=True):
    layers = {layer: types.SimpleNamespace(name="") for layer in net.modules() if type(layer) in ours.modules.OURS}
    with _cases.left_as_it_is(net):
        return _cases.cases_of(layers, _cases.inputs_of(net, layers, x), training, False)


def test_layers_of_one_kind_are_judged_once(monkeypatch):
    calls = timed(monkeypatch)
    table = ours.convert(network(), inputs=example())
    assert len(table) == 5 and len(calls) == 8  # two layers are of one kind
    assert table.changed == ["0", "3", "4", "5", "6"]
    # Other weights, strides or types are other kinds.
    net = nn.Sequential(nn.Conv2d(4, 4, 9, padding=4), nn.Conv2d(4, 4, 9, padding=4).to(
        memory_format=torch.channels_last), nn.Conv2d(4, 4, 9, padding=4, bias=False))
    assert len(some_cases(net, torch.randn(1, 4, 12, 12))) == 3


def test_every_layer_that_is_left_has_a_reason(monkeypatch):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Conv2d(2, 2, 3), nn.Conv2d(2, 2, 3)
            self.patched, self.refused = nn.Conv2d(2, 2, 3), nn.Conv2d(2, 2, 3)
            self.patched.forward = lambda x: nn.Conv2d.forward(self.patched, x)
            self.complex = nn.Conv2d(2, 2, 3, dtype=torch.complex64)

        def forward(self, x):
            self.complex(x.to(torch.complex64))
            return self.used(self.patched(self.refused(x)))
    timed(monkeypatch, ours_ms=3.0)
    table = ours.convert(Net(), lambda name, layer: name != "refused", inputs=torch.randn(1, 2, 12, 12))
    assert {row.name: row.why for row in table} == {
        "used": "0.7x", "unused": "not called", "patched": "its forward() is replaced", "refused": "predicate",
        "complex": "its tensors are of torch.complex64 and torch.complex64"}
    assert not table.changed


def test_a_layer_that_cannot_be_measured_is_left(monkeypatch):
    timed(monkeypatch)

    def fail(layer, *_):
        raise RuntimeError("no memory\nfor this")
    monkeypatch.setattr(_judge, "time_layer", fail)
    table = ours.convert(network(), inputs=example())
    assert {row.why for row in table} == {"it cannot be measured: no memory"} and not table.changed


def test_a_layer_whose_plan_cannot_be_made_is_left(monkeypatch):
    timed(monkeypatch)

    def fail(entry, passes):
        raise conv_fft.NotSupported("not today")
    monkeypatch.setattr(_entry.Entry, "prepare", fail)
    table = ours.convert(network(), inputs=example())
    assert {row.why for row in table} == {"not today"} and not table.changed


def test_without_measuring_a_layer_whose_plan_cannot_be_made_is_left(monkeypatch):
    def fail(entry, passes):
        raise conv_fft.NotSupported("not today")
    monkeypatch.setattr(_entry.Entry, "prepare", fail)
    net = network()
    table = ours.convert(net, inputs=example(), measure=False)
    assert not table.changed and table[1].why == "not today" and type(net[3]) is nn.Conv2d


# ------------------------------------------------------------------------------------ host and device time

def case(torch_ms, ours_ms, torch_host, ours_host, count=1):
    made = types.SimpleNamespace(torch_ms=torch_ms, ours_ms=ours_ms, torch_host_ms=torch_host, ours_host_ms=ours_host,
                                 predicted_ms=None, reason=None, rows=[None] * count, decision=None, why=None)
    made.decide = lambda decision, why: vars(made).update(decision=decision, why=why)
    return made


@pytest.mark.parametrize("graph, step, expected", [
    (True, None, "11100"),           # only the device's time counts
    (False, None, "10100"),          # unknown: the device must gain more than the host loses
    (False, (9.0, 9.1), "00100"),    # the device waits for the host
    (False, (2.0, 9.0), "11100"),    # the host waits for the device
    (False, (8.85, 9.5), "10100"),   # the host has 0.65 ms left
])
def test_host_time_counts_where_it_matters(graph, step, expected):
    cases = [case(1.0, 0.2, 0.1, 0.2), case(1.0, 0.6, 0.1, 0.6), case(1.0, 0.5, 0.2, 0.1), case(1.0, 0.99, 0.1, 0.1),
             case(1.0, 1.5, 0.1, 0.1)]
    _judge.decide(cases, graph, step)
    assert "".join("%d" % (one.decision == "changed") for one in cases) == expected
    assert all(one.why for one in cases)
    if expected == "00100":
        assert cases[0].why == "5.0x, but 100 us more of the host's time"


def test_layers_of_one_kind_count_as_often_as_they_are_there():
    for count, decision in ((1, "changed"), (20, "kept")):
        one = case(1.0, 0.9, 0.1, 0.2, count)
        _judge.decide([one], False, (28.5, 30.0))
        assert one.decision == decision


def as_on_a_gpu(monkeypatch, step, ours_host):
    """Layers have host times, and a model the times of a step, as on a GPU."""
    timed(monkeypatch)
    steps, calls = [], []

    def time_layer(layer, *_):
        mine = type(layer).__module__.startswith("conv_fft")
        calls.append(mine)
        return (1.0, ours_host) if mine else (2.0, 0.1)
    monkeypatch.setattr(_judge, "time_layer", time_layer)
    monkeypatch.setattr(conversion, "on_gpu", lambda case: True)
    monkeypatch.setattr(conversion, "time_model", lambda model, inputs: steps.append(inputs) or step)
    return steps, calls


@pytest.mark.parametrize("graph", [False, True])
def test_the_steps_of_a_model_are_timed_for_eager_ones_only(graph, monkeypatch):
    steps, _ = as_on_a_gpu(monkeypatch, (5.0, 5.0), 0.3)
    table = ours.convert(network(), inputs=example(), graph=graph)
    assert len(steps) == (not graph) and len(table.changed) == 5 * graph


def test_where_the_host_is_slower_one_layer_tells_what_all_cost_it(monkeypatch):
    for ours_host, tried in ((0.3, 1), (0.1, 4)):
        _, calls = as_on_a_gpu(monkeypatch, (5.0, 5.1), ours_host)
        _layer_times.clear()
        made = plans_made()
        table = ours.convert(network(), inputs=example())
        assert sum(calls) == tried and len(made) <= 3 * tried and len(table.changed) == (5 if tried == 4 else 0)
    _, calls = as_on_a_gpu(monkeypatch, (5.0, 5.1), 0.3)
    _layer_times.clear()
    for run in range(2):  # the second has the times of the layer that was tried
        table = ours.convert(network(), inputs=example())
        whys = [row.why for row in table]
        assert "2.0x, but 200 us more of the host's time" in whys and sum(calls) == 1
        assert "not tried: the device waits for the host, and ours costs it 200 us more" in whys
    # In a graph the host does not count, and the others are tried.
    assert len(ours.convert(network(), inputs=example(), graph=True).changed) == 5 and sum(calls) == 4


def test_a_step_of_a_model_leaves_no_gradients(monkeypatch):
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    net, x = network(), example()
    returned, finished = _timing.time_model(net, x)
    assert 0 < returned <= finished and all(p.grad is None for p in net.parameters())
    assert _timing.time_model(net, torch.randn(3)) is None


# ------------------------------------------------------------------------------------- what is kept

def test_a_second_run_measures_nothing(monkeypatch, device):
    net, x = network(device), example(device)
    first = ours.convert(net, inputs=x, graph=True)
    ours.revert(net)
    monkeypatch.setattr(_judge, "time_layer", None)
    monkeypatch.setattr(_judge, "predict", None)
    start = time.monotonic()
    second = ours.convert(net, inputs=x, graph=True)
    assert time.monotonic() - start < 5
    assert not any(row.earlier for row in first) and "*" not in str(first)
    assert [{**vars(row), "earlier": True} for row in first] == [vars(row) for row in second]
    assert str(second).count("*") > len(second) and str(second).endswith("again=True) measures again")
    with pytest.raises(TypeError):
        ours.convert(ours.revert(net), inputs=x, graph=True, again=True)
    # Another mode, precision or shape is something else.
    for change in (net.eval, lambda: None):
        change()
        with pytest.raises(TypeError):
            ours.convert(ours.revert(net), inputs=x if net.training else x, graph=True)
        net.train()
        x = torch.randn(2, 3, 20, 21, device=device)


def test_kept_times_are_those_of_one_device_version_and_strategy(monkeypatch):
    calls, x = timed(monkeypatch), example()
    ours.convert(network(), inputs=x)
    for place, name, value in ((_kept, "versions", lambda: "torch 0"), (_kept, "device_key", lambda device: "another"),
                               (_model.Records, "strategies", lambda self, case: ["staged"]),
                               (torch.backends.cudnn, "deterministic", True)):
        del calls[:]
        with monkeypatch.context() as patch:
            ours.convert(network(), inputs=x)
            assert not calls
            patch.setattr(place, name, value)
            ours.convert(network(), inputs=x)
            assert len(calls) == 8


def test_a_damaged_file_is_skipped_and_cleared(monkeypatch):
    calls, x = timed(monkeypatch), example()
    ours.convert(network(), inputs=x)
    path = _layer_times.folder() / "torch-layers.jsonl"
    assert path.stat().st_mode & 0o77 == 0
    lines = path.read_text().splitlines()
    assert len(lines) == 4 and all(json.loads(line)["torch_ms"] == 2.0 for line in lines)
    bad = json.loads(lines[1])
    path.write_text("\n".join(['{"key"', lines[0], "7", '{"key": ["a"], "torch_ms": 1}',
                               json.dumps({**bad, "ours_ms": "fast"}), json.dumps({**bad, "ours_ms": -1})]) + "\n")
    del calls[:]
    ours.convert(network(), inputs=x)
    assert len(calls) == 6  # one kind of four is known
    for mode in (0o666, 0o600):
        path.chmod(mode)
        del calls[:]
        ours.convert(network(), inputs=x)
        assert len(calls) == (8 if mode == 0o666 else 0)  # others could have written it
    monkeypatch.setattr(_layer_times, "LIMIT", 10)
    assert _layer_times.read() == {}
    ours.convert(network(), inputs=x)
    assert len(path.read_text().splitlines()) == 4  # begun anew
    assert conv_fft.cache.clear(path.parent) == 1 and not path.exists()


@pytest.mark.parametrize("place", ["/dev/null/x", ""])
def test_a_folder_that_cannot_be_written_is_no_error(place, monkeypatch):
    calls = timed(monkeypatch)
    monkeypatch.setenv("CONV_FFT_CACHE_DIR", place)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "")
    assert len(ours.convert(network(), inputs=example()).changed) == 5 and calls


# ------------------------------------------------------------------------------------ without measuring

def test_without_measuring_the_rule_decides_what_nobody_knows(device, monkeypatch):
    monkeypatch.setattr(_judge, "time_layer", None)
    monkeypatch.setattr(_judge, "expect_torch", lambda case, records: None)
    net, made = network(device), plans_made()
    table = ours.convert(net, inputs=example(device), measure=False)
    assert table.changed == ["3", "4", "5"] and table[0].why == "small kernel"
    assert {problem.line.split("kernel=")[1].split()[0] for problem in made} == {"9x9", "11x11"}
    assert all(row.torch_ms is None and row.ours_ms is None and row.predicted_ms > 0 for row in table)
    net(example(device)).sum().backward()
    assert len(made) == 4


def test_without_measuring_kept_times_decide(monkeypatch):
    timed(monkeypatch, ours_ms=5.0)
    ours.convert(network(), inputs=example())
    monkeypatch.setattr(_judge, "time_layer", None)
    table = ours.convert(network(), inputs=example(), measure=False)
    assert not table.changed and {row.why for row in table} == {"0.4x"}


def test_without_measuring_records_decide(monkeypatch):
    monkeypatch.setattr(_judge, "time_layer", None)
    for direct, changed in ((4.0, True), (2.0, False), (None, True)):
        record = {"ms": 3.0, "direct_ms": direct, "strategy": "staged"}
        monkeypatch.setattr(_model.Records, "find", lambda self, case, passes: record)
        table = ours.convert(nn.Sequential(nn.Conv2d(3, 3, 9)), inputs=example(), measure=False)
        assert bool(table.changed) is changed and table[0].predicted_ms == 6.0
        assert table[0].why == ("" if direct is None else "record: %.1fx" % (direct / 3))


def test_records_are_found(device):
    layer = nn.Conv2d(3, 4, 5, padding=2).to(device)
    x = torch.randn(2, 3, 13, 19, device=device)
    line = some_cases(layer, x)[0].problem.line
    assert _model.Records().find(some_cases(layer, x)[0], 1) is None
    conv_fft.tune([line], device, milliseconds=300 if device == "cpu" else 40000)
    found = _model.Records().find(some_cases(layer, x)[0], 1)
    assert found["problem"] == line and found["ms"] > 0 and found["passes"] == 1
    assert _model.predict(some_cases(layer, x, False)[0], _model.Records()) == found["ms"]


def test_records_of_16bit_weights_serve_for_fp32_weights():
    case = types.SimpleNamespace(entry=types.SimpleNamespace(number=-1), problem=conv_fft.Problem(
        (2, 3, 13, 19), (4, 3, 5, 5), dtype="float16", weight_dtype="float32", math="half"))
    own, short = case.problem.line, conv_fft.Problem((2, 3, 13, 19), (4, 3, 5, 5), dtype="float16", math="half").line
    records = _model.Records()
    records.devices[-1] = {(short, 1): {"ms": 1.0}}
    assert records.find(case, 1) == {"ms": 1.0} and records.find(case, 6) is None
    records.devices[-1][own, 1] = {"ms": 2.0}
    assert records.find(case, 1) == {"ms": 2.0}


def test_what_a_direct_method_takes_on_a_gpu(monkeypatch):
    about = types.SimpleNamespace(multi_processor_count=66, name="half an H200")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: about)
    one, depthwise = some_cases(nn.Conv2d(8, 16, 3, padding=1), torch.randn(2, 8, 10, 12)), some_cases(
        nn.Conv2d(8, 8, 3, padding=1, groups=8), torch.randn(2, 8, 10, 12))
    for (found,), rate, operations in ((one, 37.5, 2 * 2 * 16 * 120 * 8 * 9), (depthwise, 1.7, 2 * 2 * 8 * 120 * 9)):
        assert _model.expect_torch(found, _model.Records()) is None  # on a CPU
        found.seen = (*found.seen[:3], torch.device("cuda", 0), False)
        records = types.SimpleNamespace(find=lambda *_: None)
        ms, why = _model.expect_torch(found, records)
        assert _model.operations(found) == operations and why == "model"
        assert ms == pytest.approx(2 * operations / (rate / 2 * 1e9))  # forward, gradient of w
