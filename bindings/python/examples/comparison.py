# SPDX-License-Identifier: Apache-2.0
"""Trains one network three times for train.py, and writes what was found."""
import copy
import csv
import time

import conv_fft.torch
import curves
import digits
import torch
from torch.nn import functional as F

HELD_OUT = 8  # one of this many inputs is not used in training


def compute_exactly(layer):
    """Let a convolution of torch compute in double precision. The types of its parameters and result do not change."""
    convolve = layer._conv_forward
    double = lambda t: None if t is None else t.double()  # noqa: E731
    layer._conv_forward = lambda x, w, bias: convolve(double(x), double(w), double(bias)).float()


def train(model, inputs, labels, steps, batch, device):
    """The losses, and the median milliseconds of a step."""
    optimiser = torch.optim.AdamW(model.parameters(), 2e-3)
    generator = torch.Generator().manual_seed(0)
    losses, times = [], []
    for _ in range(steps):
        picked = torch.randint(len(inputs), (batch,), generator=generator)
        x, y = inputs[picked].to(device), labels[picked].to(device)
        begin = time.perf_counter()
        loss = F.cross_entropy(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())  # waits for the device
        times.append((time.perf_counter() - begin) * 1e3)
    return losses, sorted(times)[len(times) // 2]


@torch.no_grad()
def accuracy(model, inputs, labels, device):
    """The share of images, or of a volume's elements, that a trained network classifies correctly."""
    model.eval()
    return (model(inputs.to(device)).argmax(1).cpu() == labels).float().mean().item()


def difference(curve, other):
    """The root mean square of relative differences."""
    return (sum((a / b - 1) ** 2 for a, b in zip(curve, other)) / len(other)) ** 0.5


def compare(name, options):
    """Trains a network with torch's layers, ours, and exact ones; prints a summary; returns rows for losses.csv."""
    torch.manual_seed(0)
    theirs, inputs, labels = digits.MODELS[name](*digits.images_of(options.edge))
    theirs = theirs.to(options.device)
    # A volume has many times the elements of an image.
    batch = max(options.batch // 4, 1) if inputs.dim() == 5 else options.batch
    held = torch.arange(len(inputs)) % HELD_OUT == 0
    judged = held.nonzero().flatten()[:4 * batch]
    ours, exact = copy.deepcopy(theirs), copy.deepcopy(theirs)
    begin = time.perf_counter()
    table = conv_fft.torch.convert(ours, lambda _, layer: max(layer.kernel_size) >= 5, repeats=0,
                                   inputs=(inputs[:batch].to(options.device),))
    ready = time.perf_counter() - begin
    for layer in table.changed:
        compute_exactly(exact.get_submodule(layer))
    rows, found = [], {}
    for layers, model in (("torch", theirs), ("conv_fft", ours), ("torch, exact", exact)):
        found[layers], ms = train(model, inputs[~held], labels[~held], options.steps, batch, options.device)
        right = accuracy(model, inputs[judged], labels[judged], options.device)
        rows.append([name, layers, "%.4f" % ms, "%.4f" % right, " ".join("%.6g" % loss for loss in found[layers])])
    print("%s: %d of its %d layers changed, their plans made in %.1f s; a step takes torch %s ms, conv_fft %s ms" % (
        name, len(table.changed), len(table), ready, rows[0][2], rows[1][2]))
    print("    last loss: torch %.4f, conv_fft %.4f; right of what was held out: %s and %s" % (
        found["torch"][-1], found["conv_fft"][-1], rows[0][3], rows[1][3]))
    print("    the curves lie from that of exact layers: torch's %.1e, conv_fft's %.1e" % tuple(
        difference(found[layers], found["torch, exact"]) for layers in ("torch", "conv_fft")), flush=True)
    return rows


def write(folder, rows, device):
    folder.mkdir(parents=True, exist_ok=True)
    name = torch.cuda.get_device_name() if device.startswith("cuda") else "CPU"
    with open(folder / "losses.csv", "w", newline="") as file:
        file.write("# %s, torch %s, conv_fft %s\n" % (name, torch.__version__, conv_fft.__version__))
        csv.writer(file, lineterminator="\n").writerows([["model", "layers", "step_ms", "accuracy", "losses"], *rows])
    curves.draw(folder / "losses.csv", folder / "losses.svg")
