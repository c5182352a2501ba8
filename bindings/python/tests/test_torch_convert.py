# SPDX-License-Identifier: Apache-2.0
"""convert(), revert() and python -m conv_fft.record."""
import contextlib
import subprocess
import sys
import threading

import conv_fft
import pytest
from conftest import HAS_TORCH

if HAS_TORCH:
    import conv_fft.torch as ours
    import torch
    from torch import nn


@pytest.fixture(autouse=True)
def no_earlier_measurements(monkeypatch, tmp_path):
    monkeypatch.setenv("CONV_FFT_CACHE_DIR", str(tmp_path / "cache"))


def network(device):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(),
                         nn.Sequential(nn.Conv2d(8, 8, 9, padding=4, groups=8)), nn.Conv2d(8, 8, 11, padding=5),
                         nn.Conv2d(8, 8, 11, padding=5)).to(device)


def kinds(net):
    return [type(layer) for layer in net.modules() if isinstance(layer, nn.Conv2d)]


def test_convert_by_rule_and_revert(device):
    net = network(device)
    x = torch.randn(2, 3, 20, 20, device=device)
    y, parameters = net(x), list(net.parameters())
    heard = []
    net[3].register_forward_hook(lambda *_: heard.append(1))
    table = ours.convert(net)
    assert kinds(net) == [nn.Conv2d, ours.Conv2d, ours.Conv2d, ours.Conv2d] and table.changed == ["2.0", "3", "4"]
    assert all(a is b for a, b in zip(parameters, net.parameters()))
    torch.testing.assert_close(net(x), y, rtol=1e-3, atol=1e-3)
    assert heard == [1]
    assert "small kernel" in str(table) and str(table).count("\n") == 4
    assert not ours.convert(net).changed
    assert ours.revert(net) is net and kinds(net) == [nn.Conv2d] * 4
    torch.testing.assert_close(net(x), y, rtol=1e-3, atol=1e-3)


def test_convert_by_predicate(device):
    net = network(device)
    table = ours.convert(net, lambda name, layer: name in ("0", "3"))
    assert table.changed == ["0", "3"] and kinds(net) == [ours.Conv2d, nn.Conv2d, ours.Conv2d, nn.Conv2d]


def test_kernels_of_one_element(device):
    """They are judged only if the caller asks for them."""
    x = torch.randn(2, 4, 20, 20, device=device)
    for predicate, judged in ((None, False), (lambda *_: True, True)):
        net = nn.Sequential(nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 7, padding=3)).to(device)
        table = ours.convert(net, predicate, inputs=(x,), repeats=1)
        assert [row.torch_ms is not None for row in table] == [judged, True]
        assert (table[0].why == "a kernel of one element") != judged


def test_convert_by_measurement(device):
    net = network(device)
    net[3].register_forward_hook(lambda *_: heard.append(1))
    heard = []
    net[0].weight.grad = torch.ones_like(net[0].weight)
    x = torch.randn(2, 3, 20, 20, device=device)
    table = ours.convert(net, lambda name, layer: name != "0", inputs=(x,), graph=True)
    assert heard == [1]
    assert [row.name for row in table] == ["0", "2.0", "3", "4"] and table[0].why == "predicate"
    for row in table[1:]:
        assert row.torch_ms > 0 and (row.ours_ms or 1) > 0 and row.why
        if row.ours_ms is None:
            assert row.predicted_ms > 1.3 * row.torch_ms and row.decision == "kept"
        else:
            assert (row.decision == "changed") == (row.ours_ms < 0.98 * row.torch_ms)
    assert table[2].ours_ms == table[3].ours_ms
    # Measurements add no gradient and remove none.
    assert all(p.grad is None for p in list(net.parameters())[1:])
    assert torch.equal(net[0].weight.grad, torch.ones_like(net[0].weight))
    net.eval()
    assert len(ours.convert(ours.revert(net), inputs=(x,))) == 4


def test_inputs_are_seen_however_a_layer_is_called(device):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Conv2d(3, 4, 9, padding=4)

        def forward(self, x):
            return self.layer(input=x)
    (row,) = ours.convert(Net().to(device), inputs=torch.randn(2, 3, 20, 20, device=device))
    assert row.torch_ms > 0 and row.predicted_ms > 0


@contextlib.contextmanager
def plans_made():
    """The threads that make plans. All plans are forgotten before."""
    made = []
    conv_fft.tuning.forget_plans()
    conv_fft.plan.observers.append(lambda problem: made.append(threading.current_thread()))
    try:
        yield made
    finally:
        conv_fft.plan.observers.pop()


def test_plans_are_made_side_by_side_before_layers_are_measured(device, monkeypatch):
    monkeypatch.setattr("conv_fft.torch._judge.HOPELESS", float("inf"))
    net, x = network(device), torch.randn(2, 3, 21, 20, device=device)
    with plans_made() as made, torch.autocast(device, dtype=torch.bfloat16):
        ours.convert(net, inputs=(x,), graph=True)  # host time leaves no layer untried
    assert len(made) == 6 and threading.main_thread() not in made  # forward and backward of three kinds of layers
    assert not ours.fallbacks()
    with plans_made() as made:
        table = ours.convert(ours.revert(net), inputs=(x,), repeats=0)
        assert len(made) == 4 and threading.main_thread() not in made
        net(x).sum().backward()
    assert len(made) == 4 and table.changed == ["2.0", "3", "4"] and table[2].ours_ms is None


def test_converted_layers_train_as_torchs(device):
    losses = {}
    for convert in (False, True):
        net = network(device).double()
        if convert:
            ours.convert(net, lambda *_: True)
        optimiser = torch.optim.Adam(net.parameters(), 1e-2)
        x = torch.randn(4, 3, 16, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).to(device)
        losses[convert] = []
        for _ in range(5):
            optimiser.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimiser.step()
            losses[convert].append(loss.item())
    assert losses[True] == pytest.approx(losses[False], rel=1e-8)


def test_autotune_measures_what_runs_in_it(device):
    layer = ours.Conv2d(3, 4, 5, padding=2).to(device)
    x = torch.randn(2, 3, 17, 19, device=device)
    layer(x)
    before = conv_fft.cache.stats(device)["records"]
    with conv_fft.autotune(milliseconds=300 if device == "cpu" else 40000):  # kernels are compiled in it
        layer(x).sum().backward()
    lines = [record["problem"] for record in conv_fft.cache.records(device)]
    assert conv_fft.cache.stats(device)["records"] >= before + 2 and any("in=2x3x17x19" in line for line in lines)
    hits = conv_fft.cache.stats(device)["hits"]
    layer(torch.randn(2, 3, 17, 19, device=device))
    conv_fft.Plan([line for line in lines if "in=2x3x17x19" in line][0], device, passes="forward")
    assert conv_fft.cache.stats(device)["hits"] > hits


def test_record_writes_the_layers_of_a_script(tmp_path):
    (tmp_path / "neighbour.py").write_text("steps = 2\n")
    script = tmp_path / "train.py"
    script.write_text("import conv_fft.torch, neighbour, sys, torch\nfrom torch import nn\n"
                      "assert sys.argv[1:] == ['--steps', '2']\n"
                      "net = nn.Sequential(nn.Conv2d(3, 4, 5, padding='same', padding_mode='circular'),\n"
                      "                    nn.LazyConv2d(4, 3, groups=4))\n"
                      "for _ in range(neighbour.steps):\n    net(torch.randn(2, 3, 12, 12)).sum().backward()\n"
                      "nn.functional.conv1d(torch.randn(1, 2, 50), torch.randn(3, 2, 9), stride=2)\n"
                      "nn.Conv1d(2, 3, 5)(input=torch.randn(1, 2, 50))\n"
                      "for package in (nn, conv_fft.torch):\n"
                      "    package.ConvTranspose1d(3, 2, 4, stride=2, output_padding=1)(torch.randn(1, 3, 10))\n"
                      "try:\n"
                      "    torch.conv_transpose1d(torch.ones(1, 1, 9), torch.ones(1, 1, 3),\n"
                      "                           output_padding=torch.tensor(0))\n"
                      "except RuntimeError:\n    pass\n")  # torch 2.6 refuses such a tensor itself; newer ones take it
    out = tmp_path / "layers.txt"
    subprocess.run([sys.executable, "-m", "conv_fft.record", "--out", str(out), str(script), "--steps", "2"],
                   check=True, timeout=200)
    lines = [line for line in out.read_text().splitlines() if not line.startswith("#")]
    problems = [conv_fft.Problem.parse(line) for line in lines]
    # A transposed layer is the data gradient of the layer whose input has the shape of its output.
    assert [problem.input_shape for problem in problems] == [(2, 3, 12, 12), (2, 4, 12, 12), (1, 2, 50), (1, 2, 50),
                                                             (1, 2, 23)]
    assert "mode=circular" in problems[0].line and problems[2].struct.stride[0] == 2
    assert "x2" in lines[0] and "x2" in lines[1]
