# SPDX-License-Identifier: Apache-2.0
"""Networks with large kernels, of plain torch modules: those layers of published networks that take most time."""
import torch
from torch import nn


def _normed(into, out, kernel, stride=1, groups=1, act=True):
    layers = [nn.Conv2d(into, out, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(out)]
    return nn.Sequential(*layers, nn.ReLU()) if act else nn.Sequential(*layers)


class LargeKernel(nn.Module):
    """A large depthwise layer and, in training, a parallel one of 5x5."""

    def __init__(self, channels, kernel):
        super().__init__()
        self.large = _normed(channels, channels, kernel, groups=channels, act=False)
        self.small = _normed(channels, channels, 5, groups=channels, act=False)

    def forward(self, x):
        return self.large(x) + self.small(x)


class RepLKBlock(nn.Module):
    def __init__(self, channels, kernel):
        super().__init__()
        self.body = nn.Sequential(nn.BatchNorm2d(channels), _normed(channels, channels, 1),
                                  LargeKernel(channels, kernel), nn.ReLU(), _normed(channels, channels, 1, act=False))
        self.feed = nn.Sequential(nn.BatchNorm2d(channels), _normed(channels, 4 * channels, 1, act=False), nn.GELU(),
                                  _normed(4 * channels, channels, 1, act=False))

    def forward(self, x):
        x = x + self.body(x)
        return x + self.feed(x)


def replknet31b(classes=1000):
    """RepLKNet-31B (Ding et al., arXiv 2203.06717), for images of 224x224."""
    widths, depths, kernels = (128, 256, 512, 1024), (2, 2, 18, 2), (31, 29, 27, 13)
    layers = [_normed(3, 128, 3, 2), _normed(128, 128, 3, groups=128), _normed(128, 128, 1),
              _normed(128, 128, 3, 2, groups=128)]
    for stage, (width, depth, kernel) in enumerate(zip(widths, depths, kernels)):
        layers += [RepLKBlock(width, kernel) for _ in range(depth)]
        if stage < 3:
            wider = widths[stage + 1]
            layers += [_normed(width, wider, 1), _normed(wider, wider, 3, 2, groups=wider)]
    return nn.Sequential(*layers, nn.BatchNorm2d(1024), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, classes))


class ChannelNorm(nn.Module):
    """LayerNorm over the channels of (N, C, H, W)."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(channels, eps=1e-6)

    def forward(self, x):
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.feed = nn.Sequential(nn.LayerNorm(channels, eps=1e-6), nn.Linear(channels, 4 * channels), nn.GELU(),
                                  nn.Linear(4 * channels, channels))
        self.scale = nn.Parameter(torch.full((channels,), 1e-6))

    def forward(self, x):
        return x + (self.scale * self.feed(self.depthwise(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2)


def convnext_t(classes=1000):
    """ConvNeXt-T (Liu et al., arXiv 2201.03545)."""
    widths, depths = (96, 192, 384, 768), (3, 3, 9, 3)
    layers = [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96)]
    for stage, (width, depth) in enumerate(zip(widths, depths)):
        if stage:
            layers += [ChannelNorm(widths[stage - 1]), nn.Conv2d(widths[stage - 1], width, 2, 2)]
        layers += [ConvNeXtBlock(width) for _ in range(depth)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(768), nn.Linear(768, classes))


def _twice(into, between, out, kernel):
    return nn.Sequential(*(layer for a, b in ((into, between), (between, out))
                           for layer in (nn.Conv3d(a, b, kernel, padding=kernel // 2, bias=False), nn.BatchNorm3d(b),
                                         nn.ReLU())))


class UNet3d(nn.Module):
    """A 3-D U-Net (Cicek et al., arXiv 1606.06650) of three levels with kernels of 5x5x5."""

    def __init__(self, kernel=5, width=32):
        super().__init__()
        self.down = nn.ModuleList([_twice(1, width, 2 * width, kernel),
                                   _twice(2 * width, 2 * width, 4 * width, kernel)])
        self.bottom = _twice(4 * width, 4 * width, 8 * width, kernel)
        self.up = nn.ModuleList([_twice(12 * width, 4 * width, 4 * width, kernel),
                                 _twice(6 * width, 2 * width, 2 * width, kernel)])
        self.last = nn.Conv3d(2 * width, 2, 1)

    def forward(self, x):
        kept = []
        for level in self.down:
            kept.append(level(x))
            x = nn.functional.max_pool3d(kept[-1], 2)
        x = self.bottom(x)
        for level, beside in zip(self.up, reversed(kept)):
            x = level(torch.cat([nn.functional.interpolate(x, scale_factor=2), beside], 1))
        return self.last(x)


# name: (network, shape of the input, shape of the labels, number of classes).
CASES = {"replknet31b-b32": (replknet31b, (32, 3, 224, 224), (32,), 1000),
         "convnext-t-b32": (convnext_t, (32, 3, 224, 224), (32,), 1000),
         "unet3d-k5-b2": (UNet3d, (2, 1, 64, 64, 64), (2, 64, 64, 64), 2)}
