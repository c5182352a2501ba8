#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a network with large kernels twice, with torch's layers and with conv_fft's, and compares losses and times.

    python train.py --model replknet|convnext|unet3d|longconv [--steps 100] [--device cuda] [--out FOLDER]

Both networks start from the same parameters and see the same batches of handwritten digits (data/digits.csv.gz): as images, as a
volume in which to find them, or pixel by pixel as a sequence. Written: losses.csv and, where matplotlib is, losses.png."""
import argparse
import copy
import csv
import gzip
import pathlib
import time

import conv_fft.torch
import networks
import torch
from torch import nn
from torch.nn import functional as F

DIGITS = pathlib.Path(__file__).resolve().parents[3] / "data" / "digits.csv.gz"


def digits():
    """(1797, 1, 8, 8) images of mean 0, and what they show."""
    with gzip.open(DIGITS, "rt") as file:
        rows = torch.tensor([[float(cell) for cell in row] for row in csv.reader(file)])
    images = rows[:, :64].reshape(-1, 1, 8, 8)
    return (images - images.mean()) / images.std(), rows[:, 64].long()


class LongConvolution(nn.Module):
    """A causal convolution as long as the sequence, channel by channel, then a mix of the channels."""

    def __init__(self, channels, length):
        super().__init__()
        self.length = length
        self.norm = nn.GroupNorm(1, channels)
        self.long = nn.Conv1d(channels, channels, length, padding=length - 1, groups=channels)
        # Taps fade with their age, or the sum of so many would be noise.
        self.long.weight.data.mul_(8 * torch.exp(torch.linspace(-5, 0, length)))
        self.mix = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        return x + self.mix(F.gelu(self.long(self.norm(x))[..., :self.length]))


def make_replknet(images, labels):
    net = nn.Sequential(nn.Conv2d(1, 32, 3, 2, 1), networks.RepLKBlock(32, 31), nn.Conv2d(32, 64, 3, 2, 1), networks.RepLKBlock(64, 27),
                        nn.BatchNorm2d(64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return net, F.interpolate(images, 64, mode="bilinear"), labels


def make_convnext(images, labels):
    net = nn.Sequential(nn.Conv2d(1, 48, 4, 4), networks.ChannelNorm(48), networks.ConvNeXtBlock(48), networks.ConvNeXtBlock(48),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10))
    return net, F.interpolate(images, 64, mode="bilinear"), labels


def make_unet3d(images, labels):
    """Digits as bodies of half the volume's depth, at random places in noise; label 1 where there is ink."""
    count = 64
    shapes = F.interpolate(images[:count], 16, mode="bilinear")[:, :, None].expand(-1, -1, 8, -1, -1)
    volumes = torch.zeros(count, 1, 16, 24, 24)
    for volume, shape in zip(volumes, shapes):
        z, y, x = (int(torch.randint(9, ())) for _ in range(3))
        volume[:, z:z + 8, y:y + 16, x:x + 16] = (shape > 0).float()
    return networks.UNet3d(kernel=5, width=8), volumes + 0.5 * torch.randn_like(volumes), volumes[:, 0].long()


def make_longconv(images, labels):
    length = 1024
    net = nn.Sequential(nn.Conv1d(1, 32, 1), LongConvolution(32, length), LongConvolution(32, length), nn.AdaptiveAvgPool1d(1),
                        nn.Flatten(), nn.Linear(32, 10))
    return net, F.interpolate(images, 32, mode="bilinear").flatten(2), labels


MODELS = {"replknet": make_replknet, "convnext": make_convnext, "unet3d": make_unet3d, "longconv": make_longconv}


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


def write(folder, name, curves):
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "losses.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", *curves])
        writer.writerows([step, *values] for step, values in enumerate(zip(*curves.values())))
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot
    pyplot.figure(figsize=(6, 4))
    for (label, losses), style in zip(curves.items(), ("-", "--")):
        pyplot.plot(losses, style, label=label)
    pyplot.xlabel("step")
    pyplot.ylabel("loss")
    pyplot.title(name)
    pyplot.legend()
    pyplot.savefig(folder / "losses.png", dpi=120, bbox_inches="tight")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=list(MODELS), default="replknet")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/examples"))
    options = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False  # of both alike, so that the curves can be compared
    torch.manual_seed(0)
    theirs, inputs, labels = MODELS[options.model](*digits())
    theirs = theirs.to(options.device)
    ours = copy.deepcopy(theirs)
    table = conv_fft.torch.convert(ours, lambda name, layer: max(layer.kernel_size) >= 5)
    curves, ms = {}, {}
    for name, model in (("torch", theirs), ("conv_fft", ours)):
        curves[name], ms[name] = train(model, inputs, labels, options.steps, options.batch, options.device)
    write(options.out / options.model, options.model, curves)
    first, last = (abs(curves["torch"][at] - curves["conv_fft"][at]) / curves["torch"][at] for at in (0, -1))
    print("%s on %s, %d of its %d layers changed" % (options.model, options.device, len(table.changed), len(table)))
    print("loss after %d steps: torch %.4f, conv_fft %.4f; they differ by %.1e at first, by %.1e at last" % (
        options.steps, curves["torch"][-1], curves["conv_fft"][-1], first, last))
    print("a step: torch %.2f ms, conv_fft %.2f ms" % (ms["torch"], ms["conv_fft"]))


if __name__ == "__main__":
    main()
