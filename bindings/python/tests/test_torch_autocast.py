# SPDX-License-Identifier: Apache-2.0
"""Layers under autocast: only x is cast. The library reads FP32 weights and biases; their gradients are of FP32."""
import contextlib
import copy

import conv_fft
import pytest
from conftest import HAS_TORCH
from torch_checks import assert_close

if HAS_TORCH:
    import conv_fft.torch as ours
    import torch
    from conv_fft.torch import _entry
    from torch import nn

SHORT = ("float16", "bfloat16")


@contextlib.contextmanager
def problems():
    """The problem lines of the plans that are made."""
    made = []

    def note(problem):
        made.append(problem.line)

    conv_fft.tuning.forget_plans()
    conv_fft.plan.observers.append(note)
    try:
        yield made
    finally:
        conv_fft.plan.observers.remove(note)


def kinds():
    """Layers and functions: the name, a layer, and its call."""
    def of(layer):
        return lambda x: layer(x)
    up, layer = ours.ConvTranspose2d(4, 6, 4, stride=2, groups=2), ours.Conv2d(4, 6, 5, padding=2, groups=2)
    last = copy.deepcopy(layer).to(memory_format=torch.channels_last)
    return {"layer": (layer, of(layer)), "transposed": (up, of(up)), "last": (last, of(last)),
            "function": (layer, lambda x: ours.functional.conv2d(x, layer.weight, layer.bias, padding=2, groups=2)),
            "unbatched": (layer, lambda x: torch.stack([layer(image) for image in x])),
            "compiled": (layer, torch.compile(layer, fullgraph=True, backend="aot_eager")),
            "compiled transposed": (up, torch.compile(up, fullgraph=True, backend="aot_eager"))}


KINDS = ("layer", "transposed", "last", "function", "unbatched", "compiled", "compiled transposed")


def exact_of(layer, x, gy):
    """y and the gradients in FP64 of the same weights, and x as it is cast."""
    theirs = {ours.Conv2d: nn.Conv2d, ours.ConvTranspose2d: nn.ConvTranspose2d}[type(layer)]
    double = copy.deepcopy(layer)
    double.__class__ = theirs
    double.double()
    x = x.detach().double().requires_grad_()
    y = double(x)
    return [y.detach(), *torch.autograd.grad(y, [x, *double.parameters()], gy.double())]


@pytest.mark.parametrize("short_x", [False, True])
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("dtype", SHORT)
def test_only_x_is_cast(dtype, name, short_x, device):
    dtype = getattr(torch, dtype)
    torch.manual_seed(5)
    torch._dynamo.reset()
    layer, call = kinds()[name]
    layer.to(device)
    x = torch.randn(3, 4, 12, 13, device=device).to(dtype)
    x = (x if short_x else x.float()).requires_grad_()
    with problems() as made:
        with torch.autocast(device, dtype=dtype):
            y = call(x)
        gy = torch.randn_like(y)
        found = [y.detach(), *torch.autograd.grad(y, [x, *layer.parameters()], gy)]
    assert made and all("w=fp32" in line for line in made) and not ours.fallbacks()
    assert [t.dtype for t in found] == [dtype, x.dtype, torch.float32, torch.float32]
    for one, other, what in zip(found, exact_of(layer, x, gy), ("y", "gx", "gw", "gbias")):
        assert_close(one, other, dtype, what)


@pytest.mark.parametrize("name", ["layer", "transposed", "compiled"])
def test_weights_are_not_rounded(name, device):
    """The sum of two taps is the difference of FP32 weights that are the same number in 16 bits."""
    torch._dynamo.reset()
    layer, call = kinds()[name]
    layer.to(device)
    with torch.no_grad():
        for p in layer.parameters():
            p.zero_()
        layer.weight[..., 1, 1], layer.weight[..., 3, 3] = 1 + 2 ** -12, -1
        with torch.autocast(device, dtype=torch.bfloat16), ours.precision("exact"):
            y = call(torch.ones(1, 4, 12, 12, device=device))
        channels = 4 // layer.groups
        both_taps = y[..., 5, 5].double()
    torch.testing.assert_close(both_taps, torch.full_like(both_taps, channels * 2 ** -12), rtol=0.01, atol=0)


@pytest.mark.parametrize("name", ["layer", "transposed", "compiled transposed"])
@pytest.mark.parametrize("dtype", SHORT)
def test_gradients_of_weights_are_not_rounded(dtype, name, device):
    """gw and gbias have more than the 8 or 11 bits of 16-bit numbers."""
    torch._dynamo.reset()
    dtype, (layer, call) = getattr(torch, dtype), kinds()[name]
    layer.to(device)
    x = torch.randn(3, 4, 12, 13, device=device)
    with torch.autocast(device, dtype=dtype), ours.precision("exact"):
        y = call(x)
    gy = torch.randn_like(y)
    found, wanted = torch.autograd.grad(y, [*layer.parameters()], gy), exact_of(layer, x.to(dtype), gy)[2:]
    for one, other in zip(found, wanted):
        error = (one.double() - other).norm() / other.norm()
        assert error < (other.to(dtype).double() - other).norm() / other.norm() / 10


def test_without_autocast_types_must_agree(device):
    """Also right after a call under autocast that had the same tensors."""
    x = torch.randn(2, 4, 9, 9, device=device).bfloat16()
    for kind in (ours.Conv2d, ours.ConvTranspose2d):
        layer, theirs = kind(4, 4, 3).to(device), getattr(nn, kind.__name__)(4, 4, 3).to(device)
        compiled = torch.compile(layer, backend="aot_eager")
        for call in (layer, compiled, lambda x: layer(x[0])):
            torch._dynamo.reset()
            with torch.autocast(device, dtype=torch.bfloat16):
                call(x)
            with pytest.raises(RuntimeError) as wanted:
                theirs(x)
            with pytest.raises(RuntimeError) as found:
                layer(x)
            assert str(found.value) == str(wanted.value)
            with pytest.raises(Exception, match="type|dtype"):
                call(x)
            with torch.autocast(device, dtype=torch.bfloat16):
                assert call(x).dtype == torch.bfloat16


def test_weights_of_other_types(device):
    """FP64 operands are torch's error; 16-bit weights or a 16-bit bias make all operands 16-bit ones."""
    x = torch.randn(2, 4, 9, 9, device=device)
    for kind in (ours.Conv2d, ours.ConvTranspose2d):
        for weight, bias, expected in (("bfloat16",) * 2 + ("",), ("float16",) * 2 + ("",), ("float32", "bfloat16", ""),
                                       ("bfloat16", "float32", ""), ("float32", "float32", "w=fp32")):
            layer = kind(4, 4, 3).to(device)
            layer.weight.data, layer.bias.data = (layer.weight.to(getattr(torch, weight)),
                                                  layer.bias.to(getattr(torch, bias)))
            with problems() as made, torch.autocast(device, dtype=torch.bfloat16):
                y = layer(x)
                y.sum().backward()
            assert y.dtype == torch.bfloat16 and made and not ours.fallbacks()
            assert all(("w=fp32" in line) == bool(expected) and "dtype=bf16" in line for line in made)
            assert layer.weight.grad.dtype == layer.weight.dtype and layer.bias.grad.dtype == layer.bias.dtype
        double, theirs = kind(4, 4, 3).to(device).double(), getattr(nn, kind.__name__)(4, 4, 3).to(device).double()
        with torch.autocast(device, dtype=torch.bfloat16):
            assert double(x.double()).dtype == torch.float64
            for layer in (double, theirs):
                with pytest.raises(RuntimeError):
                    layer(x)
                with pytest.raises(RuntimeError):
                    layer.float()(x.double())
                layer.double()


def test_when_torch_computes_a_call(device, monkeypatch):
    """Gradients still arrive in FP32, and y has the type of autocast."""
    for kind in (ours.Conv2d, ours.ConvTranspose2d):
        layer = kind(4, 4, 5, padding=2).to(device)
        x = torch.randn(2, 4, 15, 15, device=device, requires_grad=True)

        def passes():
            with torch.autocast(device, dtype=torch.bfloat16):
                y = layer(x)
            return [y, *torch.autograd.grad(y.float().square().sum(), [x, *layer.parameters()])]

        def fail(*_):
            raise torch.cuda.OutOfMemoryError("no memory")

        conv_fft.tuning.forget_plans()
        expected = passes()
        with monkeypatch.context() as patch:
            patch.setattr(_entry, "workspace", fail)
            for _ in range(2):
                found = passes()
                assert "no memory" in ours.fallbacks().values()
                for one, other in zip(found, expected):
                    assert one.dtype == other.dtype
                    assert_close(one, other, torch.bfloat16, "without memory")
        conv_fft.tuning.forget_plans()


# stride, padding before and after, dilation, groups, mode.
OPERATORS = [((1, 1), (1, 1, 1, 1), (1, 1), 2, 0), ((2, 1), (2, 0, 1, 3), (1, 1), 1, 1)]


@pytest.mark.parametrize("parameters", OPERATORS)
@pytest.mark.parametrize("dtype", SHORT)
def test_operators(dtype, parameters, device):
    torch.manual_seed(0)
    dtype, ops = getattr(torch, dtype), torch.ops.conv_fft
    x = torch.randn(2, 4, 8, 7, device=device).to(dtype).requires_grad_()
    w = torch.randn(4, 4 // parameters[3], 3, 3, device=device, requires_grad=True)
    bias = torch.randn(4, device=device, requires_grad=True)
    gy = torch.randn_like(ops.forward(x, w, bias, *parameters)).requires_grad_()
    torch.library.opcheck(ops.forward.default, (x, w, bias, *parameters))
    for wanted in ([True] * 3, [False, True, False], [True, False, True]):
        torch.library.opcheck(ops.backward.default, (x, w, gy, *parameters, wanted))
    torch.library.opcheck(ops.backward_data.default, (w, gy, [8, 7], *parameters))


def test_double_backward(device):
    found = {}
    for kind in (nn.Conv2d, ours.Conv2d):
        torch.manual_seed(1)
        layer = kind(3, 4, 5, padding=2).to(device)
        x = torch.randn(2, 3, 9, 9, device=device, requires_grad=True)
        double = kind is nn.Conv2d
        if double:
            layer.double()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=not double):
            y = layer(x.double() if double else x)
        gradients = torch.autograd.grad(y.double().tanh().sum(), [x, *layer.parameters()], create_graph=True)
        sum(g.double().square().sum() for g in gradients).backward()
        found[kind] = [x.grad, layer.weight.grad, layer.bias.grad]
    for one, other in zip(*found.values()):
        assert (one - other).norm() < 0.05 * one.norm()
    assert [t.dtype for t in found[ours.Conv2d]] == [torch.float32] * 3


def test_training_tools(device):
    """GradScaler, checkpoints, accumulation over two calls, and torch.func under autocast."""
    torch.manual_seed(2)
    net = nn.Sequential(ours.Conv2d(3, 4, 5, padding=2), nn.ReLU(), ours.ConvTranspose2d(4, 4, 3)).to(device)
    x = torch.randn(2, 3, 9, 9, device=device)

    def gradients(run):
        net.zero_grad()
        with torch.autocast(device, dtype=torch.float16):
            loss = run().float().square().mean()
        return loss

    gradients(lambda: net(x)).backward()
    plain = [p.grad.clone() for p in net.parameters()]
    gradients(lambda: torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False)).backward()
    assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), plain))
    loss = gradients(lambda: net(x))
    loss.backward(retain_graph=True)
    loss.backward()
    assert all(torch.equal(p.grad, 2 * g) for p, g in zip(net.parameters(), plain))
    scaler, optimizer = torch.amp.GradScaler(device, init_scale=256.0), torch.optim.SGD(net.parameters(), 0.0)
    scaler.scale(gradients(lambda: net(x))).backward()
    scaler.unscale_(optimizer)
    for p, g in zip(net.parameters(), plain):
        torch.testing.assert_close(p.grad, g, rtol=0.02, atol=1e-3)
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss_of(parameters):
        with torch.autocast(device, dtype=torch.float16):
            return torch.func.functional_call(net, parameters, (x,)).float().square().mean()
    for g, found in zip(plain, torch.func.grad(loss_of)(parameters).values()):
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, g, rtol=0.05, atol=1e-2)


def test_export_and_symbolic_shapes(device):
    layer = ours.Conv2d(3, 4, 5, padding=2).to(device)
    x = torch.randn(2, 3, 9, 9, device=device)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            with torch.autocast(device, dtype=torch.bfloat16):
                return self.layer(x)
    y = Net()(x)
    program = torch.export.export(Net(), (x,))
    assert any("conv_fft" in str(node.target) for node in _nodes(program.graph_module))
    torch.testing.assert_close(program.module()(x), y)
    torch._dynamo.reset()
    compiled = torch.compile(Net(), fullgraph=True, backend="aot_eager", dynamic=True)
    for extent in (9, 12, 17):
        x = torch.randn(2, 3, extent, extent + 1, device=device)
        torch.testing.assert_close(compiled(x), Net()(x))


def _nodes(module):
    return [node for part in module.modules() if hasattr(part, "graph") for node in part.graph.nodes]


def test_judged_layers_have_the_problems_of_their_calls(device):
    net = nn.Sequential(nn.Conv2d(3, 4, 9), nn.ConvTranspose2d(4, 4, 4, stride=2)).to(device)
    x = torch.randn(2, 3, 20, 20, device=device)
    with problems() as made:
        ours.convert(net, inputs=x, dtype=torch.bfloat16, repeats=0, predicate=lambda *_: True)
    assert made and all("w=fp32" in line for line in made)
    with problems() as again, torch.autocast(device, dtype=torch.bfloat16):
        net(x).sum().backward()
    assert set(again) == set(made)


def test_recorded_problems_have_the_types_of_their_calls(device):
    from conv_fft.record import Recorder, _torch_calls
    recorder = Recorder()
    x = torch.randn(2, 4, 15, 16, device=device)
    with _torch_calls(recorder), torch.no_grad():
        for kind in (ours.Conv2d, nn.Conv2d, nn.ConvTranspose2d):
            with torch.autocast(device, dtype=torch.bfloat16):
                kind(4, 4, 5).to(device)(x)
    assert recorder.counts and all("w=fp32" in line for line in recorder.counts)
    recorder = Recorder()
    with _torch_calls(recorder), torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16):
        bias = torch.randn(4, device=device).bfloat16()
        ours.functional.conv2d(x, torch.randn(4, 4, 5, 5, device=device), bias)
        torch.conv2d(x, torch.randn(4, 4, 5, 5, device=device), bias)
    assert recorder.counts and not any("w=fp32" in line for line in recorder.counts)
