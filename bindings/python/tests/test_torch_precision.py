# SPDX-License-Identifier: Apache-2.0
"""conv_fft.torch.precision: which math mode the problems of 16-bit tensors have."""
import contextlib
import copy
import pickle
import threading

import conv_fft
import pytest
from conftest import HAS_TORCH

if HAS_TORCH:
    import conv_fft.torch as ours
    import torch
    from torch import nn

# Each test has inputs of another extent, so that its plans are not made yet.
SHORT = ("float16", "bfloat16")


@contextlib.contextmanager
def maths():
    """The math modes of the plans that are made, by problem lines: "half", "fp32", "tf32" or "fp64"."""
    made = []

    def note(problem):
        made.append(problem.line.rpartition("math=")[2].split()[0])

    conv_fft.tuning.forget_plans()
    conv_fft.plan.observers.append(note)
    try:
        yield made
    finally:
        conv_fft.plan.observers.remove(note)


def layer_and_input(device, dtype, **more):
    torch.manual_seed(3)
    dtype = getattr(torch, dtype)
    return (ours.Conv2d(4, 4, 7, padding=3, **more).to(device, dtype),
            torch.randn(2, 4, 15, 16, device=device).to(dtype).requires_grad_())


@pytest.mark.parametrize("dtype", [*SHORT, "float32", "float64"])
def test_it_chooses_the_math_mode_of_16_bit_tensors_only(dtype, device):
    layer, x = layer_and_input(device, dtype)
    with maths() as made:
        layer(x).sum().backward()
        with ours.precision("exact"):
            layer(x).sum().backward()
    of_fp32 = {"cpu": "fp32", "cuda": "tf32" if torch.backends.cudnn.allow_tf32 else "fp32"}[device]
    expected = ["half", "half", "fp32", "fp32"] if dtype in SHORT else [of_fp32 if dtype == "float32" else "fp64"] * 2
    assert made == expected and not ours.fallbacks()


def test_layers_calls_and_transposed_layers(device):
    layer, x = layer_and_input(device, "bfloat16")
    up = ours.ConvTranspose2d(4, 4, 4, stride=2).to(device, torch.bfloat16)
    for call in (lambda: layer(x), lambda: ours.functional.conv2d(x, layer.weight), lambda: up(x),
                 lambda: ours.functional.conv_transpose2d(x, up.weight), lambda: layer(x[0])):
        for name, math in (("fast", "half"), ("exact", "fp32")):
            with maths() as made, ours.precision(name), torch.no_grad():
                call()
            assert made and set(made) == {math}
    for name, math in (("fast", "half"), ("exact", "fp32")):
        layer.precision = up.precision = name
        with maths() as made, ours.precision({"fast": "exact", "exact": "fast"}[name]), torch.no_grad():
            layer(x), up(x)
        assert made == [math] * 2


def test_autocast(device):
    layer, x = layer_and_input(device, "float32")
    for name, math in (("fast", "half"), ("exact", "fp32")):
        with maths() as made, torch.autocast(device, dtype=torch.bfloat16), ours.precision(name):
            layer(x)
        assert made == [math] * 2


def test_gradients_have_the_precision_of_the_forward_call(device):
    layer, x = layer_and_input(device, "float16")
    for outer, inner, math in (("fast", "exact", "half"), ("exact", "fast", "fp32")):
        with maths() as made:
            with ours.precision(outer):
                y = layer(x)
            with ours.precision(inner):
                gx, = torch.autograd.grad(y.float().square().sum(), x, create_graph=True)
                gx.float().square().sum().backward()
        assert set(made) == {math}
        with maths() as made:
            with ours.precision(outer):
                y = ours.functional.conv_transpose2d(x, layer.weight, stride=2)
            with ours.precision(inner):
                gx, = torch.autograd.grad(y.float().square().sum(), x, create_graph=True)
                gx.float().square().sum().backward()
        assert set(made) == {math}


def test_contexts_nest_and_belong_to_their_thread():
    now, seen = ours.precision.now, []
    exact = ours.precision("exact")
    assert now() == "fast"
    with exact:
        with ours.precision("fast"):
            with exact:
                assert now() == "exact"
            assert now() == "fast"
        thread = threading.Thread(target=lambda: seen.append(now()))
        thread.start()
        thread.join()
        assert seen == ["fast"] and now() == "exact"
        with pytest.raises(RuntimeError), ours.precision("fast"):
            raise RuntimeError
        assert now() == "exact"
    assert now() == "fast"
    assert ours.precision("exact")(now)() == "exact" and now() == "fast"


def test_two_threads_at_once(device):
    layer, x = layer_and_input(device, "float16")
    ready, failures = threading.Barrier(2), []

    def run(name, math):
        for _ in range(20):
            with ours.precision(name):
                ready.wait(20)
                y = layer(x)
                entry = y.grad_fn.entry
                failures.extend([] if entry.problem.line.endswith("math=" + math) else [entry.problem.line])

    threads = [threading.Thread(target=run, args=case) for case in (("fast", "half"), ("exact", "fp32"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("name", ["slow", "", 3, "Exact"])
def test_an_unknown_precision_is_named(name):
    layer = ours.Conv2d(3, 4, 3)
    with pytest.raises(ValueError, match="precision is %r; it must be one of 'fast', 'exact'" % name):
        ours.precision(name)
    with pytest.raises(ValueError, match="precision is %r; it must be one of 'fast', 'exact'" % name):
        layer.precision = name
    with pytest.raises(ValueError, match="precision is %r; it must be one of 'fast', 'exact'" % name):
        ours.convert(nn.Sequential(nn.Conv2d(3, 4, 9)), precision=name)
    assert layer.precision is None


def test_the_attribute_of_a_layer(device):
    layer, x = layer_and_input(device, "float16")
    keys = list(layer.state_dict())
    assert layer.precision is None
    layer.precision = "exact"
    assert list(layer.state_dict()) == keys
    for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert copied.precision == "exact" and torch.equal(copied(x), layer(x))
    fresh = ours.Conv2d(4, 4, 7, padding=3).to(device, torch.float16)
    fresh.load_state_dict(layer.state_dict())
    assert fresh.precision is None
    layer.precision = None
    assert layer.precision is None and "_conv_fft_precision" not in layer.__dict__


def test_scripted_layers_are_torchs(device, monkeypatch):
    monkeypatch.setitem(torch.backends.flags_frozen.__globals__, "__allow_nonbracketed_mutation_flag", True)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    layer = ours.Conv2d(3, 4, 5).to(device)
    layer.precision = "exact"
    x = torch.randn(1, 3, 9, 9, device=device)
    torch.testing.assert_close(torch.jit.script(layer)(x), layer(x), rtol=1e-4, atol=1e-4)


def arguments_of_graph(call, *inputs):
    """The last arguments of the operators in the graph of a call that torch.compile traces."""
    found = []

    def backend(graph, _):
        found.extend(node.args[-1] for node in graph.graph.nodes if "conv_fft" in str(node.target))
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(call, fullgraph=True, backend=backend)
    compiled(*inputs)
    return compiled, found


def test_a_compiled_graph_keeps_the_precision_of_its_tracing(device):
    layer, x = layer_and_input(device, "bfloat16")
    up = ours.ConvTranspose2d(4, 4, 4, stride=2).to(device, torch.bfloat16)
    for name, exact, math in (("fast", False, "half"), ("exact", True, "fp32")):
        with ours.precision(name):
            compiled, found = arguments_of_graph(lambda x: up(layer(x)), x)
        assert found == [exact] * 2
        with maths() as made, ours.precision({"fast": "exact", "exact": "fast"}[name]):
            compiled(x).float().sum().backward()
        assert made and set(made) == {math}


def test_a_compiled_graph_follows_the_attribute(device):
    layer, x = layer_and_input(device, "bfloat16")
    compiled, found = arguments_of_graph(layer, x)
    layer.precision = "exact"
    compiled(x)
    layer.precision = None
    compiled(x)
    assert found[:2] == [False, True]


def test_ahead_of_time_graphs(device):
    layer, x = layer_and_input(device, "bfloat16")
    layer.precision = "exact"
    torch._dynamo.reset()
    with maths() as made:
        torch.compile(layer, fullgraph=True, backend="aot_eager")(x).float().sum().backward()
    assert made and set(made) == {"fp32"}
    program = torch.export.export(layer, (x.detach(),))
    with maths() as made:
        program.module()(x.detach())
    assert made == ["fp32"]


def test_convert_sets_the_attribute(device):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 9), ours.Conv2d(4, 4, 3)).to(device)
    ours.convert(net, precision="exact")
    assert type(net[1]) is ours.Conv2d and net[1].precision == "exact" and net[2].precision is None
    assert type(net[0]) is nn.Conv2d and not hasattr(net[0], "precision")
    ours.revert(net)
    assert "_conv_fft_precision" not in net[1].__dict__
    ours.convert(net)
    assert net[1].precision is None


def test_recorded_problems_have_the_math_mode_of_their_calls(device):
    from conv_fft.record import Recorder, _torch_calls
    layer, x = layer_and_input(device, "bfloat16")
    plain = nn.Conv2d(4, 4, 5).to(device, torch.bfloat16)
    recorder = Recorder()
    with _torch_calls(recorder), torch.no_grad():
        layer(x)
        plain(x)
        layer.precision = "exact"
        layer(x)
    assert [line.rpartition("math=")[2].split()[0] for line in recorder.counts] == ["half", "half", "fp32"]
