#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains networks with large kernels, with torch's layers and with conv_fft's, and compares losses and times.

    python train.py [--model replknet convnext unet3d longconv] [--steps 100] [--edge 128] [--device cuda]
                    [--out FOLDER]

Each network is trained three times, from the same parameters and on the same batches of handwritten digits
(data/digits.csv.gz). The digits are images, or bodies in a volume, or sequences of pixels. The first training uses
torch's layers. The second uses conv_fft's for the large layers. The third uses torch's, with the large layers in double
precision, so that their results are rounded only once. The distance of a curve from the third shows the effect of
rounding within the large layers, of torch and of conv_fft.
The script writes losses.csv, and the curves as losses.svg (curves.py)."""
import argparse
import copy
import csv
import gzip
import pathlib
import sys
import time

import curves

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    sys.exit("train.py: torch is not installed; this script trains networks with torch's layers and with conv_fft's")
try:
    import conv_fft.torch
except ImportError as error:
    sys.exit("train.py: conv_fft is not installed (%s): run 'pip install .' in the repository" % error)
import networks  # noqa: E402

DIGITS = pathlib.Path(__file__).resolve().parents[3] / "data" / "digits.csv.gz"
HELD_OUT = 8  # one of this many inputs is not used in training


def digits(edge):
    """(1797, 1, edge, edge) enlarged images of mean 0, and their labels."""
    with gzip.open(DIGITS, "rt") as file:
        rows = torch.tensor([[float(cell) for cell in row] for row in csv.reader(file)])
    images = rows[:, :64].reshape(-1, 1, 8, 8)
    return F.interpolate((images - images.mean()) / images.std(), edge, mode="bilinear"), rows[:, 64].long()


class LongConvolution(nn.Module):
    """A causal depthwise convolution as long as the sequence, then a 1x1 convolution over the channels."""

    def __init__(self, channels, length):
        super().__init__()
        self.length = length
        self.norm = nn.GroupNorm(1, channels)
        self.long = nn.Conv1d(channels, channels, length, padding=length - 1, groups=channels)
        # Taps decay with their age. Without that the sum of so many taps would be noise.
        self.long.weight.data.mul_(8 * torch.exp(torch.linspace(-5, 0, length)))
        self.mix = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        return x + self.mix(F.gelu(self.long(self.norm(x))[..., :self.length]))


def make_replknet(images, labels):
    net = nn.Sequential(nn.Conv2d(1, 32, 3, 2, 1), networks.RepLKBlock(32, 31), nn.Conv2d(32, 64, 3, 2, 1),
                        networks.RepLKBlock(64, 27), nn.BatchNorm2d(64), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                        nn.Linear(64, 10))
    return net, images, labels


def make_convnext(images, labels):
    net = nn.Sequential(nn.Conv2d(1, 96, 2, 2), networks.ChannelNorm(96), networks.ConvNeXtBlock(96),
                        networks.ConvNeXtBlock(96), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 10))
    for block in net:
        if isinstance(block, networks.ConvNeXtBlock):
            # ConvNeXt starts with a tiny scale, with which two blocks would learn nothing in so few steps.
            block.scale.data.fill_(1)
    return net, images, labels


def make_unet3d(images, labels):
    """Digits as bodies of half the volume's depth, at random places in noise. Label 1 marks the bodies."""
    edge, count = images.shape[-1] // 4, 64
    shapes = F.interpolate(images[:count], edge, mode="bilinear")[:, :, None].expand(-1, -1, edge // 2, -1, -1)
    volumes = torch.zeros(count, 1, edge, 3 * edge // 2, 3 * edge // 2)
    for volume, shape in zip(volumes, shapes):
        z, y, x = (int(torch.randint(edge // 2 + 1, ())) for _ in range(3))
        volume[:, z:z + edge // 2, y:y + edge, x:x + edge] = (shape > 0).float()
    return networks.UNet3d(kernel=5, width=8), volumes + 0.5 * torch.randn_like(volumes), volumes[:, 0].long()


def make_longconv(images, labels):
    pixels = F.interpolate(images, images.shape[-1] // 2, mode="bilinear").flatten(2)
    length = pixels.shape[-1]
    net = nn.Sequential(nn.Conv1d(1, 32, 1), LongConvolution(32, length), LongConvolution(32, length),
                        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 10))
    return net, pixels, labels


MODELS = {"replknet": make_replknet, "convnext": make_convnext, "unet3d": make_unet3d, "longconv": make_longconv}


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
    theirs, inputs, labels = MODELS[name](*digits(options.edge))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=list(MODELS), nargs="+", default=list(MODELS))
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=32, help="images or sequences; a quarter as many volumes")
    parser.add_argument("--edge", type=int, default=128,
                        help="images are enlarged to this many pixels; sequences and volumes to fewer")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/examples"))
    options = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False  # for both, so that the curves can be compared
    torch.backends.cudnn.benchmark = True  # torch then takes its fastest algorithms
    rows = []
    for name in options.model:
        rows += compare(name, options)
        write(options.out, rows, options.device)
    print("%s: losses.csv, losses.svg" % options.out)


if __name__ == "__main__":
    main()
