# SPDX-License-Identifier: Apache-2.0
"""Layers for which memory is lacking: torch computes them, and one warning says so."""
import re
import warnings
import weakref

import conv_fft
import pytest
from conftest import HAS_TORCH
from torch_checks import assert_close

if HAS_TORCH:
    import conv_fft.torch as ours
    import torch
    from conv_fft import _torch_memory, _workspaces
    from conv_fft.torch import _entry, _ops
    from torch import nn


@pytest.fixture(autouse=True)
def fresh():
    conv_fft.tuning.forget_plans()
    yield
    conv_fft.tuning.forget_plans()


def layers():
    yield lambda: ours.Conv2d(3, 4, 5, padding=2), (2, 3, 19, 19)
    yield lambda: ours.Conv1d(4, 4, 9, groups=4, padding_mode="circular", padding="same"), (2, 4, 50)
    yield lambda: ours.ConvTranspose2d(3, 4, 5, stride=2), (2, 3, 19, 19)
    yield lambda: ours.CausalConv1d(4, 9), (2, 4, 50)


def passes(layer, x):
    y = layer(x)
    return [y, *torch.autograd.grad(y.square().sum(), [x, *layer.parameters()])]


def make(kind, shape, device):
    torch.manual_seed(0)
    return kind().double().to(device), torch.randn(shape, device=device, dtype=torch.float64, requires_grad=True)


def heard(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
    return [str(w.message) for w in found if "memory" in str(w.message)], result


def check_fallback(layer, x, exact, *said):
    """Torch computes all passes, one warning names the problem and what was lacking, and later calls say nothing."""
    texts, found = heard(lambda: passes(layer, x))
    for one, other in zip(found, exact):
        assert_close(one, other, torch.float64, "without memory")
    assert len(texts) == 1 and "torch computes it from now on" in texts[0], texts
    for text in ("conv_fft: memory was lacking for the layer in=", "kernel=", "dtype=fp64", *said):
        assert text in texts[0], texts
    assert heard(lambda: passes(layer, x))[0] == []
    assert any(said[-1] in why for why in ours.fallbacks().values())


@pytest.mark.parametrize("kind, shape", list(layers()))
def test_a_plan_that_cannot_be_made(kind, shape, device, monkeypatch):
    layer, x = make(kind, shape, device)
    exact = passes(layer, x)
    conv_fft.tuning.forget_plans()

    def fail(*_):
        raise conv_fft.OutOfMemory("GPU 0 (a GPU) has no 123456 bytes left of its 200000")
    with monkeypatch.context() as patch:
        patch.setattr(conv_fft.plan, "_Handle", fail)
        check_fallback(layer, x, exact, "has no 123456 bytes left")
    # What was given up stays so until the plans are forgotten.
    assert heard(lambda: passes(layer, x))[0] == [] and ours.fallbacks()
    conv_fft.tuning.forget_plans()
    assert heard(lambda: passes(layer, x))[0] == [] and not ours.fallbacks()


@pytest.mark.parametrize("kind, shape", list(layers()))
def test_a_workspace_that_cannot_be_allocated(kind, shape, device, monkeypatch):
    """With the error of torch's own allocator on a GPU, and of the system on a CPU."""
    layer, x = make(kind, shape, device)
    exact, map_ = passes(layer, x), _workspaces._map

    def allocator(number):
        return lambda *_: torch.empty(1 << 60, dtype=torch.uint8, device=device)
    conv_fft.free_workspaces()
    monkeypatch.setattr(_workspaces, "_map", lambda size: map_(1 << 60))
    monkeypatch.setattr(_torch_memory, "allocator", allocator)
    monkeypatch.setattr(_torch_memory, "SMALL", -1)
    conv_fft.tuning.forget_plans()
    check_fallback(layer, x, exact, " with a workspace of ",
                   "no memory for a workspace of 1152921504606846976 bytes" if device == "cpu" else "Tried to allocate")


def test_a_compiled_layer(device, monkeypatch):
    layer, x = make(*next(layers()), device)
    exact = passes(layer, x)

    def fail(*_):
        raise conv_fft.OutOfMemory("out of memory: 99 bytes for a plan")
    torch._dynamo.reset()
    conv_fft.tuning.forget_plans()
    monkeypatch.setattr(conv_fft.plan, "_Handle", fail)
    check_fallback(torch.compile(layer, backend="aot_eager"), x, exact, "99 bytes for a plan")


def test_the_memory_of_a_failed_call_is_free_when_torch_computes(device, monkeypatch):
    layer, x = make(*next(layers()), device)
    made, alive = [], []

    def allocator(number):
        empty = _torch_memory.allocator(number)

        def remembered(*arguments):
            tensor = empty(*arguments)
            made.append(weakref.ref(tensor))
            return tensor
        return remembered

    def fail(*_):
        raise torch.cuda.OutOfMemoryError("no memory")

    def by_torch(*arguments):
        alive.append([ref() for ref in made if ref() is not None])
        return compute(*arguments)
    compute = _ops.by_torch
    monkeypatch.setattr(_entry, "allocator", allocator)
    monkeypatch.setattr(_entry, "workspace", fail)
    monkeypatch.setattr(_ops, "by_torch", by_torch)
    texts, _ = heard(lambda: passes(layer, x))
    assert len(texts) == 1 and made and alive == [[], []]  # forward and backward


def test_other_errors_are_no_lack_of_memory(device, monkeypatch):
    layer, x = make(*next(layers()), device)

    def fail(*_):
        raise RuntimeError("something else")
    with monkeypatch.context() as patch:
        patch.setattr(_entry, "workspace", fail)
        with pytest.raises(RuntimeError, match="something else"):
            layer(x)

    def refuse(*_):
        raise conv_fft.NotSupported("this build does not")
    monkeypatch.setattr(conv_fft.plan, "_Handle", refuse)
    conv_fft.tuning.forget_plans()
    texts, y = heard(lambda: layer(x))
    assert texts == [] and "this build does not" in ours.fallbacks().values()
    torch.testing.assert_close(y, nn.functional.conv2d(x, layer.weight, layer.bias, padding=2))


def test_a_warning_that_is_an_error_comes_once(device, monkeypatch):
    layer, x = make(*next(layers()), device)

    def fail(*_):
        raise conv_fft.OutOfMemory("out of memory: 99 bytes for a plan")
    monkeypatch.setattr(conv_fft.plan, "_Handle", fail)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match=re.escape("out of memory: 99 bytes for a plan")):
            layer(x)
        assert layer(x).shape == (2, 4, 19, 19)
