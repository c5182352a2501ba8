# SPDX-License-Identifier: Apache-2.0
"""Plan.forward and Plan.backward with torch tensors: calls like an earlier one skip checks, and others do not."""
import pytest

import conv_fft
from conv_fft import arrays

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
        assert {kind: len(calls) for kind, calls in plan.known_calls.items()} == {("forward", False, False): 1,
                                                                                  ("forward", False, True): 1}
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
        with pytest.raises((ValueError, TypeError), match="|".join(bad)):
            plan.forward(**arguments)
    buffer = torch.empty(x.numel() + exact.numel())
    inside = buffer[:x.numel()].view(x.shape).copy_(x)
    good, shared = buffer[x.numel():].view(exact.shape), buffer[:exact.numel()].view(exact.shape)
    torch.testing.assert_close(plan.forward(inside, w, bias, out=good), exact, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="out shares memory with x"):
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
    for requires in (False, True) * 20:
        for turn in range(2):
            plan.forward(x, w.requires_grad_(requires), bias)
        assert len(plan.known_calls["forward", False, True]) <= 2
    plan.known_calls["forward", False, True] = ((lambda *_: False, [], []),) * 100
    torch.testing.assert_close(plan.forward(x, w, bias), exact, rtol=1e-4, atol=1e-4)
    assert len(plan.known_calls["forward", False, True]) == _torch_calls._LIMIT


def gradients(x, w, bias, gy):
    x, w, bias = (t.double().requires_grad_() for t in (x, w, bias))
    return torch.autograd.grad(torch.nn.functional.conv2d(x, w, bias), (x, w, bias), gy.double())


@pytest.fixture(name="checked")
def counted_checks(monkeypatch):
    """One element for each call whose tensors are checked against the plan."""
    calls, operands = [], arrays._Operands
    monkeypatch.setattr(arrays, "_Operands", lambda *given: calls.append(1) or operands(*given))
    return calls


NEEDS = [("x", "w", "bias"), ("x", "w"), "x", ["w"], {"w", "bias"}, "bias"]


@pytest.mark.parametrize("given", [(), ("x",), ("w", "bias"), ("x", "w", "bias")])
@pytest.mark.parametrize("need", NEEDS)
def test_backward_calls_are_known(call, need, given, checked):
    _, x, w, bias, exact = call
    plan = conv_fft.Plan(LINE, "cpu")
    wanted = [name for name in ("x", "w", "bias") if name == need or not isinstance(need, str) and name in need]
    gy = torch.randn_like(exact)
    for accumulate in ((), tuple(name for name in given if name in wanted)):
        for turn in range(3):
            x, w, gy = x.clone(), w.clone(), gy.clone()  # other addresses
            out = {name: torch.full_like(t, 1.0) for name, t in zip(("x", "w", "bias"), (x, w, bias))
                   if name in given and name in wanted}
            versions = {name: t._version for name, t in out.items()}
            checked.clear()
            found = plan.backward(x if "w" in wanted else None, w if "x" in wanted else None, gy, need=need,
                                  out=out, accumulate=accumulate)
            assert len(checked) == (turn == 0)
            for name, one, other in zip(("x", "w", "bias"), found, gradients(x, w, bias, gy)):
                if name not in wanted:
                    assert one is None
                    continue
                assert name not in out or one is out[name] and one._version > versions[name]
                torch.testing.assert_close(one, (other + (name in accumulate)).float(), rtol=1e-4, atol=1e-4)
        if not [name for name in given if name in wanted]:
            break


def test_other_backward_calls_are_checked(call, checked):
    _, x, w, bias, exact = call
    plan, gy = conv_fft.Plan(LINE, "cpu"), torch.randn_like(exact)
    out = {"x": torch.empty_like(x), "w": torch.empty_like(w), "bias": torch.empty_like(bias)}
    for turn in range(2):
        plan.backward(x, w, gy, out=out)
    assert len(checked) == 1
    for bad, said in ((dict(x=x[:1]), "x has the shape"), (dict(gy=gy.double()), "gy is of float64"),
                      (dict(w=w.transpose(2, 3)), "w has the shape"), (dict(need=("x", "w")), "out names bias"),
                      (dict(accumulate=("x", "y")), "accumulate is"), (dict(out={**out, "y": gy}), "out is"),
                      (dict(out={**out, "x": out["x"][:1]}), r"out\['x'\] has the shape"),
                      (dict(out={**out, "w": w}), r"out\['w'\] shares memory with w"), (dict(x=None), None)):
        arguments = {"x": x, "w": w, "gy": gy, "out": out, **bad}
        with pytest.raises((ValueError, TypeError, conv_fft.Error), match=said):
            plan.backward(**arguments)
    buffer = torch.empty(2 * x.numel())
    one, other = buffer[:x.numel()].view(x.shape).copy_(x), buffer[1:1 + x.numel()].view(x.shape)
    plan.backward(one, w, gy, out={"x": torch.empty_like(x)})
    with pytest.raises(ValueError, match="shares memory with x"):
        plan.backward(one, w, gy, out={"x": other})
    found = plan.backward(x, w, torch._neg_view(gy))
    for a, b in zip(found, gradients(x, w, bias, -gy)):
        torch.testing.assert_close(a, b.float(), rtol=1e-4, atol=1e-4)


def test_without_a_fast_check_each_call_is_checked(call, checked, monkeypatch):
    from conv_fft import _torch_memory
    monkeypatch.setattr(_torch_memory, "_TensorGuards", None)
    plan, x, w, bias, exact = call
    for turn in range(2):
        torch.testing.assert_close(plan.forward(x, w, bias), exact, rtol=1e-4, atol=1e-4)
    assert len(checked) == 2 and not plan.known_calls
