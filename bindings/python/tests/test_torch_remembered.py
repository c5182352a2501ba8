# SPDX-License-Identifier: Apache-2.0
"""What layers remember of their last call: a call like it is not looked up, and any other is."""
import copy

import conv_fft
import pytest
from conftest import HAS_TORCH

if HAS_TORCH:
    import conv_fft.torch as ours
    import torch
    import torch.autograd.forward_ad as forward_ad
    from conv_fft import _torch_memory
    from conv_fft.torch import _entry, modules
    from torch import nn
    from torch.utils._python_dispatch import TorchDispatchMode


@pytest.fixture(name="looked_up")
def counted_calls(monkeypatch):
    """One element for each call of a layer that is looked up."""
    conv_fft.tuning.forget_plans()  # and fallbacks of other tests
    calls, eager, transposed = [], modules._eager, modules.functional.transposed
    monkeypatch.setattr(modules, "_eager", lambda *given: calls.append(1) or eager(*given))
    monkeypatch.setattr(modules.functional, "transposed", lambda *given: calls.append(1) or transposed(*given))
    monkeypatch.setitem(torch.backends.flags_frozen.__globals__, "__allow_nonbracketed_mutation_flag", True)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    return calls


KINDS = ("Conv2d", "ConvTranspose2d")


def layer_and_input(device, kind="Conv2d", **more):
    torch.manual_seed(4)
    return getattr(ours, kind)(4, 4, 5, padding=2, **more).to(device), torch.randn(2, 4, 9, 9, device=device)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("autocast", ["", "float16", "bfloat16"])
@pytest.mark.parametrize("mode", ["no_grad", "inference_mode", "enable_grad"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_call_like_the_last_one_is_not_looked_up(kind, mode, autocast, bias, device, looked_up):
    layer, x = layer_and_input(device, kind, bias=bias)
    found = []
    with getattr(torch, mode)(), torch.autocast(device, dtype=getattr(torch, autocast or "bfloat16"),
                                                enabled=autocast != ""):
        for _ in range(3):
            for p in layer.parameters():
                p.data = p.data.clone()
            found.append(layer(x.clone()))
    assert len(looked_up) == 1 and all(torch.equal(y, found[0]) for y in found)
    assert all(y.requires_grad == (mode == "enable_grad") for y in found)
    if mode == "enable_grad":
        gradients = [torch.autograd.grad(y.sum(), [*layer.parameters()]) for y in found]
        assert all(torch.equal(a, b) for again in gradients for a, b in zip(again, gradients[0]))


def negative(t):
    return torch._neg_view(-t)


def changed(name, value):
    """A change of an attribute of the layer or of a tensor's data, which is undone afterwards."""
    def call(layer, x):
        if name in ("weight", "bias"):
            layer._parameters[name], old = value(layer._parameters[name]), layer._parameters[name]
        else:
            old = getattr(layer, name)
            setattr(layer, name, value)
        try:
            return layer(x)
        finally:
            setattr(layer, name, old)
    return call


def data_changed(change):
    """The same Parameter object gets other data."""
    def call(layer, x):
        old = layer.weight.data
        layer.weight.data = change(old)
        try:
            return layer(x)
        finally:
            layer.weight.data = old
    return call


def under_autocast(dtype):
    def call(layer, x):
        with torch.autocast(x.device.type, dtype=getattr(torch, dtype)):
            return layer(x)
    return call


def gradients(layer, x):
    x = x.clone().requires_grad_()
    return torch.cat([g.flatten() for g in torch.autograd.grad(layer(x).square().sum(), [x, *layer.parameters()])])


def twice(layer, x):
    """The gradients of a gradient penalty."""
    x = x.clone().requires_grad_()
    gx, = torch.autograd.grad(layer(x).tanh().sum(), x, create_graph=True)
    return torch.cat([g.flatten() for g in torch.autograd.grad(gx.square().sum(), [x, layer.weight])])


def without_gradients(layer, x):
    with torch.no_grad():
        y = layer(x)
    assert not y.requires_grad
    return y


def dual(layer, x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(layer(forward_ad.make_dual(x, x + 1))).tangent


def weight_of_torch_func(layer, x):
    def loss(weight):
        return torch.func.functional_call(layer, {"weight": weight}, (x,)).square().sum()
    return torch.func.grad(loss)(layer.weight.detach())


def vmapped(layer, x):
    return torch.func.vmap(lambda factor: factor * layer(x))(torch.arange(3.0, device=x.device))


def in_a_mode(layer, x):
    """The operators of a call are seen, so that its result depends on the mode."""
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))
    with Mode():
        y = layer(x)
    assert any("conv" in name for name in seen)
    return y


def traced(layer, x):
    return torch.jit.trace(copy.deepcopy(layer), x, check_trace=False)(2 * x)


def compiled(layer, x):
    torch._dynamo.reset()
    return torch.compile(layer, fullgraph=True, backend="aot_eager")(x)


class Sub(torch.Tensor if HAS_TORCH else object):
    pass


def variations():
    return {"shape": lambda layer, x: layer(x[:, :, :7]), "batch": lambda layer, x: layer(x[:1]),
            "unbatched": lambda layer, x: layer(x[0]), "strides": lambda layer, x: layer(x.transpose(2, 3)),
            "last": lambda layer, x: layer(x.contiguous(memory_format=torch.channels_last)),
            "offset": lambda layer, x: layer(torch.cat([x.flatten()[:1], x.flatten()])[1:].view(x.shape)),
            "subclass": lambda layer, x: layer(x.as_subclass(Sub)).as_subclass(torch.Tensor),
            "parameter": lambda layer, x: layer(nn.Parameter(x)),
            "negative x": lambda layer, x: layer(negative(x)), "gradient of x": gradients,
            "no gradients": without_gradients, "fp16": under_autocast("float16"), "bf16": under_autocast("bfloat16"),
            "no bias": changed("bias", lambda bias: None),
            "other bias": changed("bias", lambda bias: nn.Parameter(bias.detach() + 1)),
            "strided bias": changed("bias", lambda bias: nn.Parameter(torch.stack([bias.detach()] * 2, 1)[:, 0])),
            "other weight": changed("weight", lambda w: nn.Parameter(2 * w.detach()[:, :, 1:4])),
            "frozen": changed("weight", lambda w: nn.Parameter(2 * w.detach(), requires_grad=False)),
            "plain weight": changed("weight", lambda w: 2 * w.detach()),
            "negative weight": data_changed(negative), "transposed weight": data_changed(lambda w: w.transpose(2, 3)),
            "last weight": data_changed(lambda w: w.contiguous(memory_format=torch.channels_last)),
            "stride": changed("stride", (2, 1)), "dilation": changed("dilation", (1, 2)),
            "padding": changed("padding", (0, 1)), "same": changed("padding", "same"), "forward mode": dual,
            "func": weight_of_torch_func, "vmap": vmapped, "mode": in_a_mode, "trace": traced, "compile": compiled,
            "copy": lambda layer, x: copy.deepcopy(layer)(x), "twice": twice}


VARIATIONS = sorted(variations()) if HAS_TORCH else []


@pytest.mark.parametrize("begin", ["plain", "no gradients", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", VARIATIONS)
def test_another_call_is_looked_up(name, kind, begin, device, looked_up):
    """Right after a call that is remembered, and that call after it."""
    if kind == "ConvTranspose2d" and name == "same":
        pytest.skip("transposed layers have no padding of this name")
    layer, x = layer_and_input(device, kind)
    theirs = ours.revert(copy.deepcopy(layer))
    calls = {**variations(), "plain": lambda layer, x: layer(x)}
    for call in (calls[begin], calls[begin], calls[name], calls[name], calls[begin]):
        found, wanted = call(layer, x), call(theirs, x)
        assert found.dtype == wanted.dtype and found.requires_grad == wanted.requires_grad
        tolerance = {torch.float32: 1e-4, torch.float16: 0.01, torch.bfloat16: 0.05}[found.dtype]
        torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance * max(1, wanted.abs().max().item()))
    assert not ours.fallbacks()


def test_a_bias_after_a_call_without_one(device, looked_up):
    layer, x = layer_and_input(device, bias=False)
    layer(x)
    for bias in (torch.ones(4, device=device, dtype=torch.float64), torch.ones(3, device=device)):
        layer.bias = nn.Parameter(bias)
        with pytest.raises(RuntimeError):
            layer(x)
        layer.bias = None
        layer(x)
    layer.bias = nn.Parameter(torch.ones(4, device=device))
    torch.testing.assert_close(layer(x), nn.functional.conv2d(x, layer.weight, layer.bias, padding=2), rtol=1e-4,
                               atol=1e-4)


def test_the_output_size_of_transposed_layers(device, looked_up):
    layer, x = layer_and_input(device, "ConvTranspose2d", stride=2)
    theirs = ours.revert(copy.deepcopy(layer))
    for size in (None, (18, 17), None, (17, 18), (18, 17), None):
        torch.testing.assert_close(layer(x, size), theirs(x, size), rtol=1e-4, atol=1e-4)
    for more in ((1, 0), (0, 1), (1, 1)):
        layer.output_padding = theirs.output_padding = more
        torch.testing.assert_close(layer(x), theirs(x), rtol=1e-4, atol=1e-4)


def test_real_tensors_among_fake_ones(device, looked_up):
    layer, x = layer_and_input(device)
    layer(x)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(layer(x), torch._subclasses.FakeTensor)


def test_autocast_of_another_type_right_after(device, looked_up):
    layer, x = layer_and_input(device)
    for dtype in (torch.float16, torch.bfloat16, torch.float16):
        for enabled in (True, False, True):
            with torch.autocast(device, dtype=dtype, enabled=enabled):
                assert layer(x).dtype == (dtype if enabled else torch.float32)
    with torch.autocast(device, dtype=torch.float16):
        layer(x)
        with torch.autocast(device, dtype=torch.bfloat16):
            assert layer(x).dtype == torch.bfloat16
        assert layer(x.double().float()).dtype == torch.float16


def test_autocast_to_fp32(device, looked_up):
    layer, x = layer_and_input(device)
    wanted = layer(x.half().float())
    with torch.autocast(device, dtype=torch.bfloat16):
        torch.set_autocast_dtype(device, torch.float32)
        for _ in range(2):
            torch.testing.assert_close(layer(x.half()), wanted, rtol=1e-4, atol=1e-4)


def test_the_precision_and_the_arithmetic_are_asked_for(device, looked_up, monkeypatch):
    layer, x = layer_and_input(device)
    layer, x = layer.bfloat16(), x.bfloat16()

    def exact():
        return layer(x).grad_fn.entry.exact
    assert [exact(), exact(), len(looked_up)] == [False, False, 1]
    with ours.precision("exact"):
        assert [exact(), exact(), len(looked_up)] == [True, True, 2]
        layer.precision = "fast"
        assert not exact()
    layer.precision = "exact"
    assert exact()
    layer.precision = None
    assert not exact()
    layer.float()
    if device == "cuda":
        for allowed in (True, False, True):
            monkeypatch.setitem(torch.backends.flags_frozen.__globals__, "__allow_nonbracketed_mutation_flag", True)
            monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", allowed)
            assert ("tf32" in layer(x.float()).grad_fn.entry.problem.line) == allowed


def test_plans_that_are_forgotten_are_not_used(device, looked_up):
    layer, x = layer_and_input(device)
    entry = layer(x).grad_fn.entry
    assert layer(x).grad_fn.entry is entry
    conv_fft.tuning.forget_plans()
    other = layer(x).grad_fn.entry
    assert other is not entry and layer(x).grad_fn.entry is other
    _entry.give_up(other, conv_fft.Error("given up"))
    assert not hasattr(layer(x).grad_fn, "entry") and "given up" in ours.fallbacks().values()
    conv_fft.tuning.forget_plans()


@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_of_a_remembered_call_leaves_it_to_torch(kind, device, looked_up, monkeypatch):
    layer, x = layer_and_input(device, kind)
    for mode in (torch.no_grad, torch.enable_grad):
        with mode():
            wanted = [layer(x), layer(x)][1]
            with monkeypatch.context() as patch:
                patch.setattr(_entry, "_forward", lambda *_: 3)
                patch.setattr(_entry, "_backward", lambda *_: 3)
                found = layer(x)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
        assert ours.fallbacks()
        conv_fft.tuning.forget_plans()


def test_without_the_check_each_call_is_looked_up(device, looked_up, monkeypatch):
    monkeypatch.setattr(_torch_memory, "_TensorGuards", None)
    layer, x = layer_and_input(device)
    assert torch.equal(layer(x), layer(x)) and len(looked_up) == 2
