# SPDX-License-Identifier: Apache-2.0
"""The small networks that train.py trains, and their inputs: handwritten digits as images, volumes and sequences."""
import csv
import gzip
import pathlib

import networks
import torch
from torch import nn
from torch.nn import functional as F

DIGITS = pathlib.Path(__file__).resolve().parents[3] / "data" / "digits.csv.gz"


def images_of(edge):
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
