# SPDX-License-Identifier: Apache-2.0
"""conv_fft.torch's layers and functions against torch's own. Random layers are in test_torch_layers_random.py."""
import re
import threading

import pytest
from conftest import GPU, HAS_TORCH
from torch_checks import assert_close, results

if HAS_TORCH:
    import conv_fft
    import conv_fft.torch as ours
    import torch
    from conv_fft.torch import _entry
    from torch import nn


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bits(dtype, device):
    dtype = getattr(torch, dtype)
    for groups in (1, 16):
        exact = nn.Conv2d(16, 16, 9, padding=4, groups=groups).double().to(device)
        mine = ours.Conv2d(16, 16, 9, padding=4, groups=groups).to(device, dtype)
        mine.load_state_dict(exact.state_dict())
        exact.load_state_dict(mine.state_dict())  # the numbers that fit 16 bits
        x = torch.randn(2, 16, 20, 21, device=device).to(dtype).requires_grad_()
        found, gy = results(mine, x, None)
        wanted, _ = results(exact, x.detach().double().requires_grad_(), gy.double())
        for one, other in zip(found, wanted):
            assert one.dtype == dtype
            assert_close(one, other, dtype, "groups %d" % groups)


def test_functional(device):
    x = torch.randn(2, 6, 12, 11, 10, device=device, dtype=torch.float64)
    for rank in (1, 2, 3):
        data = x.flatten(2 + rank - 1) if rank < 3 else x
        w = torch.randn(4, 3, *(3,) * rank, device=device, dtype=torch.float64)
        mine, theirs = (getattr(place, "conv%dd" % rank) for place in (ours.functional, nn.functional))
        assert_close(mine(data, w, None, 2, 1, groups=2), theirs(data, w, None, 2, 1, groups=2), torch.float64,
                     "conv%dd" % rank)
        w = w.transpose(0, 1).repeat(2, 1, *(1,) * rank)
        mine, theirs = (getattr(place, "conv_transpose%dd" % rank) for place in (ours.functional, nn.functional))
        assert_close(mine(data, w, stride=2, output_padding=1), theirs(data, w, stride=2, output_padding=1),
                     torch.float64, "conv_transpose%dd" % rank)


def test_unbatched(device):
    layer = ours.Conv2d(3, 4, 5, padding=2).to(device)
    x = torch.randn(3, 9, 9, device=device)
    torch.testing.assert_close(layer(x), layer(x[None])[0])
    up = ours.ConvTranspose2d(3, 4, 5, padding=2).to(device)
    torch.testing.assert_close(up(x), up(x[None])[0])


def test_what_is_torchs_stays_torchs(device):
    """A case that the library does not support has torch's result. Calls raise where torch's do."""
    same = dict(device=device)
    empty = torch.randn(0, 3, 9, 9, **same)
    for x, layer in [(empty, ours.Conv2d(3, 4, 3, **same)),
                     (empty.contiguous(memory_format=torch.channels_last), ours.Conv2d(3, 4, 3, **same)),
                     (empty[..., 0], ours.Conv1d(3, 4, 3, **same)),
                     (empty[..., None], ours.Conv3d(3, 4, (3, 3, 1), **same)),
                     (torch.randn(2, 3, 9, 9, dtype=torch.complex64, **same),
                      ours.Conv2d(3, 4, 3, dtype=torch.complex64, **same)),
                     (empty, ours.ConvTranspose2d(3, 4, 3, **same)),
                     (empty[..., 0], ours.ConvTranspose1d(3, 4, 3, **same))]:
        theirs = getattr(nn, type(layer).__name__)(3, 4, layer.kernel_size, dtype=layer.weight.dtype, **same)
        theirs.load_state_dict(layer.state_dict())
        torch.testing.assert_close(layer(x), theirs(x))
        layer(x).abs().sum().backward()
        assert layer.weight.grad.shape == layer.weight.shape
        if 0 in x.shape:
            assert not layer.weight.grad.any() and not layer.bias.grad.any()
    assert "empty" in " ".join(ours.fallbacks().values())
    layer = ours.Conv2d(3, 4, 5, **same)
    for wrong in (torch.randn(2, 3, 4, 9, **same), torch.randn(2, 2, 9, 9, **same),
                  torch.randn(2, 3, 9, 9, **same).double(), torch.randn(3, 9, **same)):
        with pytest.raises(RuntimeError):
            layer(wrong)
    meta = ours.Conv2d(3, 4, 5, device="meta")
    assert meta(torch.empty(2, 3, 9, 9, device="meta")).shape == (2, 4, 5, 5)
    with pytest.raises(ValueError):
        ours.Conv2d(3, 4, 5, stride=2, padding="same")


def test_torch_does_what_there_is_no_memory_for(device, monkeypatch):
    layer = ours.Conv2d(3, 4, 5, padding=2).double().to(device)
    x = torch.randn(2, 3, 9, 9, device=device, dtype=torch.float64, requires_grad=True)

    def passes():
        y = layer(x)
        return [y, *torch.autograd.grad(y.square().sum(), [x, *layer.parameters()])]
    exact, calls = passes(), []

    def fail(*_):
        calls.append(1)
        raise torch.cuda.OutOfMemoryError("no memory")
    monkeypatch.setattr(_entry, "workspace", fail)
    for one, other in zip(passes(), exact):
        assert_close(one, other, torch.float64, "without memory")
    # The backward pass of that graph tries the library too. Then torch computes the layer.
    assert len(calls) == 2 and "no memory" in ours.fallbacks().values()
    passes()
    assert len(calls) == 2
    conv_fft.tuning.forget_plans()


def test_constructor_state_and_initialisation():
    torch.manual_seed(3)
    theirs = nn.Conv2d(4, 6, (3, 5), groups=2, padding="same", padding_mode="circular")
    torch.manual_seed(3)
    mine = ours.Conv2d(4, 6, (3, 5), groups=2, padding="same", padding_mode="circular")
    assert isinstance(mine, nn.Conv2d) and list(mine.state_dict()) == list(theirs.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(mine.parameters(), theirs.parameters()))
    assert repr(mine) == repr(theirs)
    mine(torch.randn(1, 4, 9, 9))
    mine.padding_mode = theirs.padding_mode = "zeros"  # changes after the first call count
    mine.weight = theirs.weight = nn.Parameter(torch.randn(6, 2, 7, 4))
    x = torch.randn(1, 4, 9, 9)
    torch.testing.assert_close(mine(x), theirs(x), rtol=1e-4, atol=1e-4)
    mine.stride = (2, 2)
    mine.padding = (1, 1)
    assert mine(x).shape == (1, 6, 3, 4)


def test_what_a_layer_remembers(device, monkeypatch):
    """A layer's memory of its last call must not outlive the tensors and parameters of that call."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    layer = ours.Conv2d(4, 4, 5, padding=2).to(device)
    x = torch.randn(2, 4, 9, 9, device=device)
    made = []
    conv_fft.plan.observers.append(made.append)
    try:
        conv_fft.tuning.forget_plans()
        for call in range(2):
            layer(x)
        assert len(made) == 2  # forward, and the gradient of the weight
        conv_fft.tuning.forget_plans()
        layer(x)
        assert len(made) == 4
    finally:
        conv_fft.plan.observers.remove(made.append)
    for change in (lambda: layer.half(), lambda: layer.double(), lambda: layer.to(memory_format=torch.channels_last),
                   lambda: setattr(layer, "bias", None),
                   lambda: setattr(layer.weight, "data", layer.weight.detach().flip(0).float()),
                   lambda: setattr(layer, "weight",
                                   nn.Parameter(torch.randn(4, 4, 3, 7, device=device, dtype=torch.float64))),
                   lambda: setattr(layer, "dilation", (2, 1))):
        layer(x.to(layer.weight.dtype))
        change()
        z = x.to(layer.weight.dtype).requires_grad_()
        y = layer(z)
        weight, bias = layer.weight.double(), None if layer.bias is None else layer.bias.double()
        wanted = nn.functional.conv2d(z.double(), weight, bias, padding=2, dilation=layer.dilation)
        assert y.dtype == layer.weight.dtype
        assert_close(y, wanted, y.dtype, "a changed layer")
        y.sum().backward()


def test_layers_hold_plans_of_so_many_kinds_of_calls(device, monkeypatch):
    conv_fft.tuning.forget_plans()
    monkeypatch.setattr(conv_fft.plans, "limit", 3)
    for edge in range(9, 19):
        ours.functional.conv1d(torch.ones(1, 1, edge, device=device), torch.ones(1, 1, 3, device=device))
        assert 1 <= len(_entry._entries) <= 3
    conv_fft.tuning.forget_plans()


def test_numbers_that_torch_takes_or_refuses(device, monkeypatch):
    """A tensor without axes is a number where torch accepts one (2.6: for groups only). A bool is no number."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    x, w = torch.randn(1, 2, 9, 9, device=device), torch.randn(2, 2, 3, 3, device=device)
    one = torch.tensor(1)
    for name, more in (("conv2d", {}), ("conv_transpose2d", {"output_padding": (0, False, torch.tensor(0))})):
        mine, theirs = getattr(ours.functional, name), getattr(nn.functional, name)
        for argument, (good, *others) in {"padding": (1, True, one), "stride": (1, True, one),
                                          "dilation": (1, True, one), "groups": (1, True, 1.0, None, "1", one),
                                          **more}.items():
            torch.testing.assert_close(mine(x, w, **{argument: good}), theirs(x, w, **{argument: good}), rtol=1e-4,
                                       atol=1e-4)
            for other in others:
                if isinstance(other, torch.Tensor):
                    try:
                        wanted = theirs(x, w, **{argument: other})
                    except RuntimeError as error:
                        with pytest.raises(RuntimeError, match=re.escape(str(error))):
                            mine(x, w, **{argument: other})
                    else:
                        torch.testing.assert_close(mine(x, w, **{argument: other}), wanted, rtol=1e-4, atol=1e-4)
                else:
                    for call in (mine, theirs):
                        with pytest.raises(TypeError, match="conv"):
                            call(x, w, **{argument: other})


def test_out_counts_as_a_change(device):
    """Of what autograd has saved."""
    x, w = torch.randn(1, 2, 9, 9, device=device), torch.randn(2, 2, 3, 3, device=device)
    plan = conv_fft.Plan(conv_fft.Problem(x.shape, w.shape, padding=1), device)
    factor, y = torch.randn_like(x, requires_grad=True), torch.randn_like(x)
    for call in (lambda: plan.forward(x, w, out=y), lambda: conv_fft.forward(x, w, padding=1, out=y),
                 lambda: plan.backward(None, w, x, need="x", out={"x": y})):
        product = (factor * y).sum()
        call()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.backward()
    with torch.inference_mode():
        y = torch.empty_like(x)
        torch.testing.assert_close(plan.forward(x, w, out=y), plan.forward(x, w))


def test_some_channels_of_a_channels_last_tensor(device):
    """Results stay in channels_last, as torch's do. The second slice does not begin at a multiple of 16 bytes."""
    layer = ours.Conv2d(6, 6, 3, padding=1, stride=2, groups=6, device=device)
    whole = torch.randn(2, 18, 9, 8, device=device).to(memory_format=torch.channels_last)
    for x in (*whole.split(6, 1), whole[:, :6, 1:, :5]):
        assert not x.is_contiguous(memory_format=torch.channels_last)
        mine, theirs = x.detach().requires_grad_(), x.detach().contiguous().requires_grad_()
        y = layer(mine)
        expected = nn.functional.conv2d(theirs, layer.weight, layer.bias, stride=2, padding=1, groups=6)
        gy = torch.randn_like(y)
        found = torch.autograd.grad(y, (mine, layer.weight, layer.bias), gy)
        wanted = torch.autograd.grad(expected, (theirs, layer.weight, layer.bias), gy)
        assert all(t.is_contiguous(memory_format=torch.channels_last) for t in (y, found[0]))
        for one, other in zip((y, *found), (expected, *wanted)):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_channels_last(device):
    layer = ours.Conv2d(8, 12, 5, padding=2).to(device)
    x = torch.randn(2, 8, 13, 14, device=device)
    y = layer(x)
    assert y.is_contiguous()
    last = layer(x.to(memory_format=torch.channels_last))
    assert last.is_contiguous(memory_format=torch.channels_last)
    layer.to(memory_format=torch.channels_last)
    assert layer(x).is_contiguous(memory_format=torch.channels_last)
    layer(x).sum().backward()
    assert layer.weight.grad.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(last, y)


def test_the_same_bits_every_time(device):
    torch.use_deterministic_algorithms(True)
    try:
        layer = ours.Conv2d(16, 16, 7, padding=3).to(device)
        x = torch.randn(4, 16, 30, 30, device=device)
        first = [layer(x), *torch.autograd.grad(layer(x).square().sum(), layer.parameters())]
        for _ in range(3):
            again = [layer(x), *torch.autograd.grad(layer(x).square().sum(), layer.parameters())]
            assert all(torch.equal(a, b) for a, b in zip(first, again))
    finally:
        torch.use_deterministic_algorithms(False)


def test_threads(device):
    layers = [ours.Conv2d(4, 4, k, padding=k // 2).to(device).double() for k in (3, 5, 7, 9)]
    x = torch.randn(2, 4, 25, 25, device=device, dtype=torch.float64)

    def passes(layer):
        inner = x.clone().requires_grad_()
        y = layer(inner)
        return [y.detach(), *torch.autograd.grad(y.square().sum(), [inner, *layer.parameters()])]

    exact = [passes(layer) for layer in layers]
    wrong = []

    def run(number):
        stream = torch.cuda.Stream() if device == "cuda" else None
        with torch.cuda.stream(stream):
            for turn in range(10):
                which = (number + turn) % len(layers)
                found = passes(layers[which])
                if stream:
                    stream.synchronize()
                if not all(torch.equal(a, b) for a, b in zip(found, exact[which])):
                    wrong.append(which)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    if device == "cuda":
        torch.cuda.synchronize()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("device", [GPU])
def test_tf32_is_obeyed(device, monkeypatch):
    layer = ours.Conv2d(64, 64, 7, padding=3).cuda()
    x = torch.randn(8, 64, 40, 40, device="cuda")
    exact = nn.functional.conv2d(x.double(), layer.weight.double(), layer.bias.double(), padding=3)

    def error():
        return ((layer(x).double() - exact).norm() / exact.norm()).item()
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    assert error() < 2e-6
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    assert error() < 2e-3
    if hasattr(torch.backends.cudnn, "conv"):
        monkeypatch.setattr(torch.backends.cudnn.conv, "fp32_precision", "ieee")
        assert error() < 2e-6
        torch.backends.cudnn.conv.fp32_precision = "none"


@pytest.mark.parametrize("device", [GPU])
def test_large_tensors(device):
    """x, y and their gradients have more than 2^31 elements. All images but the last are 0, so only it has an
    effect."""
    if torch.cuda.get_device_properties(0).total_memory < 120 * 2 ** 30:
        pytest.skip("needs 120 GiB")
    conv_fft.tuning.forget_plans()
    x = torch.zeros(1100, 2, 1000, 1000, device="cuda", dtype=torch.half)
    x[-1].normal_()
    gy = torch.zeros_like(x)
    gy[-1].normal_()

    def passes(layer, x, gy):
        x = x.detach().requires_grad_()
        y = layer(x)
        return [y.detach(), *torch.autograd.grad(y, (x, layer.weight), gy)]
    for groups in (1, 2):
        layer = ours.Conv2d(2, 2, 7, padding=3, groups=groups, bias=False).cuda().half()
        found, exact = passes(layer, x, gy), passes(layer, x[-1:].clone(), gy[-1:].clone())
        assert not ours.fallbacks()
        for all_of, last in zip(found[:2], exact):
            torch.testing.assert_close(all_of[-1:], last)
            assert not all_of[:-1].any() and last.any()
        torch.testing.assert_close(found[2], exact[2], rtol=1e-2, atol=1e-2 * exact[2].abs().max().item())
        del found
