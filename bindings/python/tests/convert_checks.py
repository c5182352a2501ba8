# SPDX-License-Identifier: Apache-2.0
"""Common parts of the tests of conv_fft.torch.convert()."""
import conv_fft
import pytest
from conftest import HAS_TORCH

if HAS_TORCH:
    import torch
    from conv_fft.torch import _judge
    from torch import nn


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """No plans, no earlier measurements, and no observers of plans that another test has left."""
    monkeypatch.setenv("CONV_FFT_CACHE_DIR", str(tmp_path / "cache"))
    conv_fft.tuning.forget_plans()
    yield
    conv_fft.plan.observers.clear()


def network(device="cpu"):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Dropout(0.5),
                         nn.Conv2d(8, 8, 9, padding=4, groups=8), nn.Conv2d(8, 8, 11, padding=5),
                         nn.Conv2d(8, 8, 11, padding=5), nn.ConvTranspose2d(8, 4, 4, stride=2)).to(device)


def example(device="cpu"):
    return torch.randn(2, 3, 20, 20, device=device)


def classes(net):
    return [type(layer) for layer in net.modules()]


def timed(monkeypatch, torch_ms=2.0, ours_ms=1.0):
    """Replaces measurements of layers by these times. Returns the list of the classes of the layers that are timed."""
    calls = []

    def time_layer(layer, x, *_):
        calls.append(type(layer))
        return (ours_ms if type(layer).__module__.startswith("conv_fft") else torch_ms), None
    monkeypatch.setattr(_judge, "time_layer", time_layer)
    monkeypatch.setattr(_judge, "predict", lambda case, records: 1.0)
    return calls


def plans_made():
    made = []
    conv_fft.plan.observers[:] = [made.append]
    return made
