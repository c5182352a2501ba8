# SPDX-License-Identifier: Apache-2.0
"""Plan.forward with torch tensors: calls like an earlier one skip checks, and others do not."""
import pytest

import conv_fft

torch = pytest.importorskip("torch")

LINE = "in=2x3x12x13 out=4 kernel=3x5"


@pytest.fixture(name="call")
def made_call():
    torch.manual_seed(1)
    plan = conv_fft.Plan(LINE, "cpu", passes="forward")
    x, w, bias = torch.randn(2, 3, 12, 13), torch.randn(4, 3, 3, 5), torch.randn(4)
    return plan, x, w, bias, torch.nn.functional.conv2d(x, w, bias)


def test_calls_are_known(call):
    plan, x, w, bias, exact = call
    out = torch.full_like(exact, float("nan"))
    for repeat in range(3):
        x, w, bias = x.clone(), w.clone(), bias.clone()  # other addresses
        version = out._version
        assert plan.forward(x, w, bias, out=out) is out
        torch.testing.assert_close(out, exact, rtol=1e-4, atol=1e-4)
        assert out._version > version
        torch.testing.assert_close(plan.forward(x, w, bias), exact, rtol=1e-4, atol=1e-4)
        assert len(plan.known_calls) == 2
        out.fill_(float("nan"))
    torch.testing.assert_close(plan.forward(x, w), exact - bias[:, None, None], rtol=1e-4, atol=1e-4)
    parameter = torch.nn.Parameter(w)
    for repeat in range(2):
        y = plan.forward(x, parameter, bias)
        assert not y.requires_grad
        torch.testing.assert_close(y, exact, rtol=1e-4, atol=1e-4)


def test_other_calls_are_checked(call):
    plan, x, w, bias, exact = call
    out = torch.empty_like(exact)
    plan.forward(x, w, bias, out=out)
    plan.forward(x, w, bias, out=out)
    for bad in (dict(x=x[:1]), dict(x=x.double()), dict(w=w.transpose(2, 3)), dict(x=x.transpose(2, 3)),
                dict(bias=bias[:3]), dict(out=out[:1])):
        arguments = {"x": x, "w": w, "bias": bias, "out": out, **bad}
        with pytest.raises((ValueError, TypeError), match="|".join(bad).replace("out", "y")):
            plan.forward(**arguments)
    buffer = torch.empty(x.numel() + exact.numel())
    inside = buffer[:x.numel()].view(x.shape).copy_(x)
    good, shared = buffer[x.numel():].view(exact.shape), buffer[:exact.numel()].view(exact.shape)
    torch.testing.assert_close(plan.forward(inside, w, bias, out=good), exact, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="share no memory"):
        plan.forward(inside, w, bias, out=shared)
    imaginary = torch.complex(torch.zeros_like(x), -x).conj().imag  # its memory holds -x
    assert imaginary.is_neg()
    for repeat in range(2):
        torch.testing.assert_close(plan.forward(imaginary, w, bias), exact, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="is_neg"):
        plan.forward(x, w, bias, out=torch.complex(exact, exact).conj().imag)


def test_the_known_calls_are_limited(call):
    plan, x, w, bias, exact = call
    from conv_fft import _torch_calls
    for _ in range(3):
        plan.forward(x, w, bias)
    assert len(plan.known_calls) == 1
    plan.known_calls.update((number, None) for number in range(2 * _torch_calls._LIMIT))
    plan.forward(x, w)
    assert len(plan.known_calls) == 1 + 2 * _torch_calls._LIMIT
