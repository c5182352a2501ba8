#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # Where FFT layers win
#
# Times torch's layers and conv_fft's over kernels and images of several sizes, and plots how many times faster
# conv_fft's are. Open it as a notebook (VS Code, Spyder, Jupytext), or run it:
#
#     python where_fft_wins.py [--quick]        writes where_fft_wins.svg
#
# `--quick` takes seconds. All sizes take some minutes on a CPU, because torch's large depthwise kernels are slow there.

# %%
import statistics
import sys
import time

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit("where_fft_wins.py: torch is not installed: pip install torch")

import conv_fft.torch

QUICK = "--quick" in sys.argv
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KERNELS = [3, 15] if QUICK else [3, 5, 7, 11, 15, 21, 31]
EDGES = [16, 32] if QUICK else [14, 28, 56, 112]
BATCH, CHANNELS, REPEATS = (1, 8, 1) if QUICK else (8 if DEVICE == "cuda" else 1, 32, 5)
KINDS = {"depthwise": CHANNELS, "dense": 1}  # the groups of a layer

# %% [markdown]
# A step is the forward pass and both gradients. Plans are made, and kernels compiled, in calls that are not counted.


# %%
def milliseconds(layer, x):
    def step():
        y = layer(x)
        y.backward(y.detach())
        if DEVICE == "cuda":
            torch.cuda.synchronize()
    for _ in range(2):
        step()
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        step()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def speed_up(kind, kernel, edge):
    """The time of torch's layer over that of ours."""
    x = torch.randn(BATCH, CHANNELS, edge, edge, device=DEVICE, requires_grad=True)
    theirs, ours = (package.Conv2d(CHANNELS, CHANNELS, kernel, padding=kernel // 2, groups=KINDS[kind]).to(DEVICE)
                    for package in (nn, conv_fft.torch))
    return milliseconds(theirs, x) / milliseconds(ours, x)


# %% [markdown]
# Numbers above 1: FFT layers are faster. Their time hardly depends on the kernel, so they win from some kernel on.

# %%
torch.backends.cudnn.allow_tf32 = False  # the same precision for both
torch.backends.cudnn.benchmark = True  # torch takes its fastest algorithm
speed_ups = {}
for kind in KINDS:
    print("%s, %d channels, batch %d, on the %s" % (kind, CHANNELS, BATCH, "GPU" if DEVICE == "cuda" else "CPU"))
    print("kernel   " + "".join("%12s" % ("%dx%d" % (edge, edge)) for edge in EDGES))
    for kernel in KERNELS:
        speed_ups[kind, kernel] = [speed_up(kind, kernel, edge) for edge in EDGES]
        print("%2dx%-6d" % (kernel, kernel) + "".join("%11.2fx" % ratio for ratio in speed_ups[kind, kernel]))

# %% [markdown]
# The picture: blue where FFT layers win, red where torch's do.

# %%
try:
    from matplotlib import colors, pyplot
except ImportError:
    sys.exit("where_fft_wins.py: no picture, because matplotlib is not installed: pip install matplotlib")

figure, axes = pyplot.subplots(1, len(KINDS), figsize=(5 * len(KINDS), 4), layout="constrained")
for axis, kind in zip(axes, KINDS):
    image = axis.imshow([speed_ups[kind, kernel] for kernel in KERNELS], cmap="RdBu", aspect="auto", origin="lower",
                        norm=colors.LogNorm(1 / 16, 16))
    axis.set(title=kind, xlabel="edge of the image", ylabel="edge of the kernel", xticks=range(len(EDGES)),
             xticklabels=EDGES, yticks=range(len(KERNELS)), yticklabels=KERNELS)
    for row, kernel in enumerate(KERNELS):
        for column, ratio in enumerate(speed_ups[kind, kernel]):
            axis.text(column, row, "%.1f" % ratio, ha="center", va="center", color="k" if 0.2 < ratio < 5 else "w")
figure.colorbar(image, ax=axes, label="time of torch over time of conv_fft")
figure.savefig("where_fft_wins.svg")
print("where_fft_wins.svg")
