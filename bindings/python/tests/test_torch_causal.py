# SPDX-License-Identifier: Apache-2.0
"""conv_fft.torch's causal convolutions against torch's in FP64, as whole sequences and step by step."""
import pickle
from unittest import mock

import pytest
from conftest import HAS_TORCH
from torch_checks import assert_close

if HAS_TORCH:
    import conv_fft.torch as ours
    import torch
    import torch.nn.functional as F
    from torch import nn

    whole, update = ours.functional.causal_conv1d, ours.functional.causal_conv1d_update


def reference(x, weight, bias, activation=None, states=None):
    """By torch, in FP64."""
    x, weight, bias, states = (None if t is None else t.double() for t in (x, weight, bias, states))
    taps, length = weight.shape[1], x.shape[2]
    x = F.pad(x, (taps - 1, 0)) if states is None else torch.cat((states, x), 2)
    y = F.conv1d(x, weight.unsqueeze(1), bias, groups=weight.shape[0])
    assert y.shape[2] == length
    return y if activation is None else F.silu(y)


def tensors(device, dtype, batch=2, channels=3, length=20, taps=4):
    shapes = (batch, channels, length), (channels, taps), (channels,), (batch, channels, taps - 1)
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(shape, generator=generator).to(device, dtype).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["ncl", "nlc"])
def test_results_and_gradients(dtype, layout, device):
    dtype = getattr(torch, dtype)
    for length, taps, activation, with_bias, with_states in (
            (20, 4, "silu", True, False), (20, 4, None, True, True), (70, 50, None, False, False),
            (5, 9, "swish", True, True), (5, 9, None, True, False), (8, 1, None, True, True), (1, 4, None, True, True)):
        x, w, bias, states = tensors(device, dtype, length=length, taps=taps)
        given = [x, w, bias if with_bias else None, states if with_states else None]
        wanted = [t for t in given if t is not None]
        exact = [None if t is None else t.detach().double().requires_grad_() for t in given]
        right = reference(*exact[:3], activation, exact[3])
        rows = x if layout == "ncl" else x.transpose(1, 2)
        y, final = whole(rows, *given[1:3], activation, given[3], True, layout)
        assert y.shape == rows.shape and y.dtype == final.dtype == dtype
        y = y if layout == "ncl" else y.transpose(1, 2)
        what = "L %d, K %d" % (length, taps)
        assert_close(y, right, dtype, what)
        before = states if with_states else torch.zeros_like(states)
        assert torch.equal(final, torch.cat((before, x), 2)[..., length:])
        gy, gfinal = torch.randn_like(right).to(dtype), torch.randn_like(final)
        found = torch.autograd.grad((y, final), wanted, (gy, gfinal))
        last = torch.cat((torch.zeros_like(states) if exact[3] is None else exact[3], exact[0]), 2)[..., length:]
        expected = torch.autograd.grad((right, last), [t for t in exact if t is not None],
                                       (gy.double(), gfinal.double()))
        for one, other in zip(found, expected):
            assert one.dtype == dtype
            assert_close(one, other, dtype, what)


def test_gradients_by_differences():
    x, w, bias, states = tensors("cpu", torch.float64, length=6)
    assert torch.autograd.gradcheck(lambda *t: whole(*t[:3], "silu", t[3], True), (x, w, bias, states))
    assert torch.autograd.gradgradcheck(lambda *t: whole(*t[:3], None, t[3]), (x, w, bias, states))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_steps_equal_whole(dtype, device):
    dtype = getattr(torch, dtype)
    x, w, bias, states = (t.detach() for t in tensors(device, dtype, length=12))
    for more, activation in ((0, None), (3, "silu")):
        right = reference(x, w, bias, activation, states)
        state = torch.cat((torch.full((2, 3, more), 9.0).to(states), states), 2)
        place, found = state.data_ptr(), []
        for at, count in ((0, 1), (1, 1), (2, 5), (7, 0), (7, 1), (8, 4)):
            part = x[..., at:at + count]
            if at == 1:
                found.append(update(part.squeeze(2), state, w, bias, activation).unsqueeze(2))
            else:
                found.append(update(part, state, w, bias, activation))
            assert found[-1].dtype == dtype
        assert_close(torch.cat(found, 2), right, dtype, "steps")
        assert state.data_ptr() == place and torch.equal(state, x[..., 12 - 3 - more:])


def test_step_gradients():
    x, w, bias, states = tensors("cpu", torch.float64, length=1)
    y = update(x.squeeze(2), states.detach().clone(), w, bias)
    right = reference(x, w, bias, None, states.detach())
    for one, other in zip(torch.autograd.grad(y.sum(), (x, w, bias)), torch.autograd.grad(right.sum(), (x, w, bias))):
        assert_close(one, other, torch.float64, "step")


def test_state_gets_no_gradient():
    x, w, bias, states = tensors("cpu", torch.float64, length=5)
    update(x, states, w, bias).sum().backward()
    assert states.grad is None and x.grad is not None


def test_final_states_are_a_copy(device):
    x, w, bias, states = tensors(device, torch.float32)
    before = x.detach().clone()
    y, final = whole(x, w, bias, None, None, True)
    with torch.no_grad():
        final.zero_()
    assert torch.equal(x, before) and final.is_contiguous()
    y.sum().backward()  # raises if a tensor that autograd has kept was changed


def test_step_is_exact_inside():
    state, one = torch.tensor([[[1 + 2.0 ** -7]]]).bfloat16(), torch.ones(1, 1).bfloat16()
    w = torch.tensor([[1 + 2.0 ** -7, -1 - 2.0 ** -6]]).bfloat16()
    assert update(one, state, w).item() == 2.0 ** -14  # 0 if the products are rounded to BF16


def test_state_keeps_its_type():
    state = torch.tensor([[[3.0, 1 + 2.0 ** -20, 0.5]]])
    update(torch.full((1, 1), 2.0).bfloat16(), state, torch.ones(1, 2).bfloat16())
    assert state.tolist() == [[[1 + 2.0 ** -20, 0.5, 2.0]]]


@pytest.mark.parametrize("layout", ["ncl", "nlc"])
def test_layer(layout, device):
    theirs = nn.Conv1d(4, 4, 5, groups=4, padding=4).to(device)
    layer = ours.CausalConv1d(4, 5, activation="silu", layout=layout, device=device)
    layer.load_state_dict(theirs.state_dict())
    layer = pickle.loads(pickle.dumps(layer))
    x = torch.randn(2, 4, 11, device=device)
    right = F.silu(theirs.double()(x.double())[..., :11])
    back = (lambda t: t) if layout == "ncl" else (lambda t: t.transpose(1, 2))
    assert_close(back(layer(back(x))), right, torch.float32, "layer")
    y, state = layer(back(x[..., :6]), return_final_states=True)
    rest = [layer.step(x[..., 6], state).unsqueeze(2), back(layer.step(back(x[..., 7:]), state))]
    assert_close(torch.cat((back(y), *rest), 2), right, torch.float32, "layer and steps")
    state = layer.initial_state(2)
    assert state.shape == (2, 4, 4) and state.device == layer.weight.device
    assert_close(layer.step(x[..., 0], state), right[..., 0], torch.float32, "first step")
    assert ours.CausalConv1d(4, 5, bias=False).bias is None


def test_initialisation_is_torchs():
    torch.manual_seed(3)
    theirs = nn.Conv1d(4, 4, 5, groups=4)
    torch.manual_seed(3)
    layer = ours.CausalConv1d(4, 5)
    assert torch.equal(layer.weight, theirs.weight) and torch.equal(layer.bias, theirs.bias)


def test_library_computes_without_padded_copy(device):
    x, w, bias, states = tensors(device, torch.float32, length=30)
    with mock.patch.object(F, "pad", side_effect=AssertionError), mock.patch.object(
            F, "conv1d", side_effect=AssertionError), mock.patch.object(torch, "cat", side_effect=AssertionError):
        y = whole(x, w, bias, "silu")
    assert_close(y, reference(x, w, bias, "silu"), torch.float32, "no copy")


def test_precision_of_layer():
    layer, x = ours.CausalConv1d(3, 4), torch.randn(2, 3, 20)
    layer.precision = "exact"
    for call in (lambda: layer(x), lambda: layer.step(x, layer.initial_state(2))):
        with mock.patch.object(ours.functional, "convolution", return_value=NotImplemented) as convolution:
            assert_close(call(), reference(x, layer.weight.squeeze(1), layer.bias), torch.float32, "by torch")
        assert convolution.call_args.args[-1] == "exact"


def test_long_kernels(device):
    taps = 1000000
    x = torch.zeros(1, 1, 40, device=device)
    x[..., 3] = 2
    w = torch.randn(1, taps, device=device)
    assert_close(whole(x, w)[..., 3:], 2 * w[:, -37:].flip(1).unsqueeze(0), torch.float32, "a million taps")


def test_empty_and_strided(device):
    _, w, bias, states = (t.detach() for t in tensors(device, torch.float32))
    for shape in ((0, 3, 7), (2, 3, 0)):
        x = torch.zeros(shape, device=device, requires_grad=True)
        y, final = whole(x, w, bias, "silu", None, True)
        assert y.shape == shape and final.shape == (shape[0], 3, 3)
        y.sum().backward()
        assert x.grad.shape == shape
    assert torch.equal(whole(torch.zeros(2, 3, 0, device=device), w, bias, None, states, True)[1], states)
    x = torch.randn(4, 6, 40, device=device)[::2, 1::2, ::2]
    assert_close(whole(x, w, bias), reference(x, w, bias), torch.float32, "strided")


def test_autocast(device):
    kind = torch.device(device).type
    x, w, bias, states = tensors(device, torch.float32)
    for given in (states, None):
        with torch.autocast(kind, torch.bfloat16):
            y, final = whole(x, w, bias, "silu", given, True)
            state = (torch.zeros_like(states) if given is None else given.detach()).clone()
            step = update(x[..., 0], state, w, bias, "silu")
        assert y.dtype == step.dtype == torch.bfloat16 and final.dtype == torch.float32
        right = reference(x, w, bias, "silu", given)
        assert_close(y, right, torch.bfloat16, "autocast")
        assert_close(step, right[..., 0], torch.bfloat16, "autocast, step")
        gradients = torch.autograd.grad(y.sum(), (x, w, bias))
        for one, other in zip(gradients, torch.autograd.grad(right.sum(), (x, w, bias))):
            assert one.dtype == torch.float32
            assert_close(one, other, torch.bfloat16, "autocast, gradient")


def test_compiled(device):
    layer = ours.CausalConv1d(3, 4, activation="silu").to(device)
    x = torch.randn(2, 3, 20, device=device)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    y, final = compiled(x, return_final_states=True)
    assert_close(y, layer(x), torch.float32, "compiled")
    y = compiled(x, final)
    assert_close(y, layer(x, final), torch.float32, "compiled, state")
    y.sum().backward()
    states = layer.initial_state(2), layer.initial_state(2)
    step = torch.compile(layer.step, backend="aot_eager", fullgraph=True)
    assert_close(step(x[..., 0], states[0]), layer.step(x[..., 0], states[1]), torch.float32, "compiled step")
    assert torch.equal(*states) and states[0].any()


def test_wrong_arguments():
    x, w, bias, states = (t.detach() for t in tensors("cpu", torch.float32))
    for kind, message, call in (
            (ValueError, "activation is 'relu'; it must be None or 'silu' or 'swish'",
             lambda: whole(x, w, bias, "relu")),
            (ValueError, "layout is 'lnc'; it must be 'ncl' or 'nlc'", lambda: whole(x, w, layout="lnc")),
            (ValueError, "layout is None", lambda: whole(x, w, layout=None)),
            (ValueError, "x has 2 dimensions; it must have 3", lambda: whole(x[0], w)),
            (TypeError, "x is a list", lambda: whole([1], w)),
            (TypeError, "x is of torch.int64", lambda: whole(x.long(), w)),
            (ValueError, r"weight has the shape \(2, 4\); it must have \(3, K\)", lambda: whole(x, w[:2])),
            (ValueError, r"weight has the shape \(3, 0\)", lambda: whole(x, w[:, :0])),
            (ValueError, r"weight has 3 dimensions; it must have 2", lambda: whole(x, w.unsqueeze(1))),
            (ValueError, r"weight has the shape \(3, 4\); it must have \(20, K\)", lambda: whole(x, w, layout="nlc")),
            (TypeError, "weight is of torch.float64", lambda: whole(x, w.double())),
            (ValueError, "weight is on the device meta", lambda: whole(x, w.to("meta"))),
            (ValueError, r"bias has the shape \(2,\); it must have \(3,\)", lambda: whole(x, w, bias[:2])),
            (ValueError, r"initial_states has the shape \(2, 3, 2\); it must have \(2, 3, 3\)$",
             lambda: whole(x, w, None, None, states[..., 1:])),
            (ValueError, r"initial_states has the shape \(2, 3, 3\); it must have \(2, 3, 0\)$",
             lambda: whole(x, w[:, :1], None, None, states)),
            (ValueError, r"conv_state has the shape \(2, 3, 2\); it must have \(2, 3, 3 or more\)",
             lambda: update(x, states[..., 1:], w)),
            (ValueError, "x has 1 dimensions; it must have 2 or 3", lambda: update(x[0, 0], states, w)),
            (ValueError, "kernel_size is 0; it must be at least 1", lambda: ours.CausalConv1d(3, 0)),
            (TypeError, "channels is 1.5; it must be an int", lambda: ours.CausalConv1d(1.5, 3)),
            (ValueError, "layout is 'x'", lambda: ours.CausalConv1d(3, 3, layout="x")),
            (ValueError, "batch is -1; it must be at least 0", lambda: ours.CausalConv1d(3, 3).initial_state(-1))):
        with pytest.raises(kind, match=message):
            call()
    kept = states.clone()
    with pytest.raises(ValueError):
        update(x, states, w[:2])
    assert torch.equal(kept, states)
