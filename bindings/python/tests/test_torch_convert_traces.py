# SPDX-License-Identifier: Apache-2.0
"""What conv_fft.torch.convert() leaves behind: on a model that stays as it is, after an interrupt and after errors."""
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import conv_fft
import pytest
from conftest import HAS_TORCH
from convert_checks import example, fresh, network, plans_made, timed  # noqa: F401

if HAS_TORCH:
    import conv_fft.torch as ours
    import torch
    from conv_fft.torch import _entry, _judge, conversion
    from torch import nn

INFINITY = float("inf")


def traces(net):
    """Everything that convert() could leave on a model."""
    return [(id(module), type(module), {name: (id(value) if isinstance(value, torch.Tensor) else str(value))
                                        for name, value in vars(module).items()},
             {name: (id(t), None if t is None else t.tolist()) for name, t in
              [*module._parameters.items(), *module._buffers.items()]},
             [None if p is None else p.grad for p in module._parameters.values()]) for module in net.modules()]


def process():
    hooks = nn.modules.module
    return (dict(hooks._global_forward_hooks), dict(hooks._global_forward_pre_hooks), set(_entry._entries),
            set(conv_fft.plans.plans), torch.get_rng_state().tolist(), torch.is_grad_enabled(),
            torch.backends.cudnn.benchmark, dict(_entry.fallbacks))


@pytest.mark.parametrize("training", [True, False])
def test_a_model_in_which_nothing_changed_has_no_trace(training, monkeypatch, device):
    monkeypatch.setattr(_judge, "LEAST_GAIN", 1.0)  # no layer of ours is fast enough
    monkeypatch.setattr(_judge, "HOPELESS", INFINITY)
    net, x = network(device).train(training), example(device)
    before = traces(net), process()
    made = plans_made()
    table = ours.convert(net, inputs=x, time_limit=None, graph=True)  # no time leaves a layer untried
    assert made and not table.changed and all(row.ours_ms > 0 for row in table)
    assert (traces(net), process()) == before


def test_weights_are_cast_in_each_call_under_autocast(monkeypatch):
    seen = []
    timed(monkeypatch)
    monkeypatch.setattr(_judge, "time_layer", lambda *_: seen.append(torch.is_autocast_cache_enabled()) or (2.0, None))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours.convert(network(), inputs=example())
        assert seen and not any(seen) and torch.is_autocast_cache_enabled()


def test_only_plans_of_changed_layers_stay(monkeypatch):
    timed(monkeypatch)
    monkeypatch.setattr(_judge, "time_layer", lambda layer, *_: (
        (1.0 if type(layer) is ours.Conv2d else 9.0 if type(layer).__module__.startswith("conv_fft") else 2.0), None))
    net = network()
    table = ours.convert(net, inputs=example())
    assert table.changed == ["0", "3", "4", "5"] and len(conv_fft.plans) == 6


@pytest.mark.parametrize("when", ["torch's", "ours", "the model"])
def test_an_interrupt_leaves_the_model_as_it_was(when, monkeypatch, device):
    net, x = network(device), example(device)
    before = traces(net), process()

    def interrupted(layer, *_):
        if (when == "ours") == type(layer).__module__.startswith("conv_fft"):
            raise KeyboardInterrupt
        return 2.0, None
    timed(monkeypatch)
    monkeypatch.setattr(_judge, "time_layer", interrupted)
    with monkeypatch.context() as patch:
        if when == "the model":
            patch.setattr(nn.BatchNorm2d, "forward", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ours.convert(net, inputs=x)
    assert (traces(net), process()) == before
    net(x).sum().backward()


def test_an_interrupt_while_plans_are_made_does_not_wait(monkeypatch):
    timed(monkeypatch)
    monkeypatch.setattr(_entry.Entry, "prepare", lambda entry, passes: time.sleep(1.5))
    net, start = network(), time.monotonic()
    before = traces(net)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        ours.convert(net, inputs=example())
    assert time.monotonic() - start < 1.4 and traces(net) == before


def test_an_interrupt_of_the_change_undoes_it(monkeypatch):
    timed(monkeypatch)
    net, changed, original = network(), [], conversion.set_precision

    def interrupted(layer, name):
        changed.append(layer)
        if len(changed) == 3:
            raise KeyboardInterrupt
        original(layer, name)
    before = traces(net)
    monkeypatch.setattr(conversion, "set_precision", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ours.convert(net, inputs=example(), precision="exact")
    assert len(changed) > 3 and traces(net) == before


@pytest.mark.parametrize("inputs", [(), "text", "shape", "type"])
def test_inputs_that_cannot_run_give_torchs_error(inputs, device):
    x = {"text": "text", "shape": torch.randn(2, 5, 20, 20, device=device),
         "type": torch.randn(2, 3, 20, 20, device=device, dtype=torch.float64), (): ()}[inputs]
    net = network(device)
    with pytest.raises(Exception) as wanted:
        net(*(x if isinstance(x, (tuple, str)) else (x,)))
    before = traces(net), process()
    with pytest.raises(type(wanted.value)) as found:
        ours.convert(net, inputs=x)
    assert str(found.value) == str(wanted.value)
    assert (traces(net), process()) == before


def test_a_terminal_and_ctrl_c_in_a_program(tmp_path):
    """Ctrl-C in a program's convert() ends it with KeyboardInterrupt, and the model still trains."""
    script = tmp_path / "program.py"
    script.write_text("import os, signal, threading, torch, conv_fft.torch\nfrom torch import nn\n"
                      "net = nn.Sequential(*(nn.Conv2d(8, 8, k, padding=k // 2) for k in range(3, 13, 2))).eval()\n"
                      "x = torch.randn(2, 8, 48, 48)\nnet(x)\n"
                      "threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
                      "try:\n    while True:\n        conv_fft.torch.revert(net)\n        inside = True\n"
                      "        conv_fft.torch.convert(net, inputs=x, progress=True)\n        inside = False\n"
                      "        conv_fft.cache.clear(os.environ['CONV_FFT_CACHE_DIR'])\n"
                      "except KeyboardInterrupt:\n    pass\n"
                      "assert not inside or all(type(layer) is nn.Conv2d for layer in net)\n"
                      "net(x).sum().backward()\n"
                      "print('trains')\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "trains\n" and "convert: " in done.stderr, done.stderr


def without_memory(monkeypatch, where):
    """Plans, or workspaces, of which none fits the memory."""
    def fail(*_):
        raise conv_fft.OutOfMemory("out of memory: 77 bytes")
    if where == "plan":
        monkeypatch.setattr(conv_fft.plan, "_Handle", fail)
    else:
        monkeypatch.setattr(_entry, "workspace", fail)


@pytest.mark.parametrize("where, repeats", [("plan", 5), ("plan", 0), ("workspace", 5)])
def test_a_model_for_whose_layers_memory_is_lacking(where, repeats, monkeypatch, device):
    monkeypatch.setattr(_judge, "HOPELESS", INFINITY)
    monkeypatch.setattr(_judge, "LEAST_GAIN", -INFINITY)  # any layer of ours would be fast enough
    net, x = network(device), example(device)
    before = traces(net), process()
    without_memory(monkeypatch, where)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the table says all
        table = ours.convert(net, inputs=x, repeats=repeats)
    assert not table.changed and (traces(net), process()) == before
    assert [row.why.endswith("out of memory: 77 bytes") for row in table] == [repeats > 0, *[True] * 3, repeats > 0]


def test_a_model_whose_run_takes_all_memory(monkeypatch, device):
    """While its error is on its way there is no memory for anything else."""
    class Last(nn.Module):
        def forward(self, x):
            patch.setattr(torch, "equal", self.fail)
            self.fail()

        def fail(self, *_):
            raise torch.cuda.OutOfMemoryError("no memory for the last layer")
    net, x = nn.Sequential(*network(device), Last()), example(device)
    before = traces(net), process()
    with monkeypatch.context() as patch, pytest.raises(torch.cuda.OutOfMemoryError, match="for the last layer"):
        ours.convert(net, inputs=x)
    assert (traces(net), process()) == before
