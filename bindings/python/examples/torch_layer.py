#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers in PyTorch: one layer beside torch's, and a model whose layers convert() judges, trained for some steps.

    python torch_layer.py"""
import sys

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit("torch_layer.py: torch is not installed: pip install torch")

import conv_fft.torch


def one_layer(device):
    """The same parameters in torch's layer and in ours give the same results and gradients."""
    theirs = nn.Conv2d(32, 32, 31, padding="same", groups=32).to(device)
    ours = conv_fft.torch.Conv2d(32, 32, 31, padding="same", groups=32).to(device)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 32, 56, 56, device=device)
    results = []
    for layer in (theirs, ours):
        y = layer(x)
        results.append((y, *torch.autograd.grad(y.square().mean(), layer.parameters())))
    errors = [((a - b).norm() / a.norm()).item() for a, b in zip(*results)]
    print("relative differences of y, gw and gbias: %s" % ", ".join("%.1e" % error for error in errors))
    # Without this a GPU may compute torch's layer in TF32, which has a relative error of about 1e-3.
    return max(errors) < (5e-3 if device == "cuda" else 1e-4)


def model():
    return nn.Sequential(nn.Conv2d(3, 16, 4, 4), nn.Conv2d(16, 16, 21, padding=10, groups=16), nn.BatchNorm2d(16),
                         nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4))


def train(net, x, labels, steps=8):
    optimiser = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(net(x), labels)
        loss.backward()
        optimiser.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    good = one_layer(device)

    net = model().to(device)
    x, labels = torch.randn(8, 3, 160, 160, device=device), torch.randint(4, (8,), device=device)
    before = nn.functional.cross_entropy(net(x), labels).item()
    # Times torch's and our layers, and changes those that become faster. The parameters stay the same objects.
    table = conv_fft.torch.convert(net, inputs=(x,))
    print(table)
    after = train(net, x, labels)
    print("loss before %.3f, after 8 steps %.3f" % (before, after))
    for call, why in conv_fft.torch.fallbacks().items():
        print("computed by torch: %s: %s" % (call, why))
    if not (good and after < before):
        sys.exit("torch_layer.py: a result is wrong")


if __name__ == "__main__":
    main()
