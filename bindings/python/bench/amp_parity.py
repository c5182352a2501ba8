#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains under AMP with torch's layers and with conv_fft's, and compares the loss curves.

    python amp_parity.py [--network convnext dense5x5] [--dtype fp16 bf16] [--seeds 3] [--steps 300] [--edge 64]
                         [--batch 32] [--device cuda] [--out amp_parity.csv]

The networks are two blocks of ConvNeXt and four dense 5x5 layers, on handwritten digits (data/digits.csv.gz). Each is
trained from the same parameters and on the same batches by four variants: "torch"; "fast" and "exact", where conv_fft
computes the layers from 5x5 up, by that precision; and "fp32", torch's without AMP. The summary has the mean loss of
the last 50 steps, and the root mean square of the relative differences of a curve, averaged over 10 steps, from that
of "fp32". Curves of AMP that are as good as torch's lie as close to it. The file has a row for each training."""
import argparse
import csv
import pathlib
import statistics
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples"))
import comparison  # noqa: E402
import conv_fft.torch  # noqa: E402
import digits  # noqa: E402

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
VARIANTS = ("fp32", "torch", "exact", "fast")


def dense5x5():
    def layer(into, out, stride):
        return nn.Sequential(nn.Conv2d(into, out, 5, stride, 2, bias=False), nn.BatchNorm2d(out), nn.ReLU())
    return nn.Sequential(layer(1, 32, 2), layer(32, 64, 1), layer(64, 64, 1), layer(64, 64, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


NETWORKS = {"convnext": lambda: digits.make_convnext(None, None)[0], "dense5x5": dense5x5}


def losses_of(network, variant, dtype, seed, images, labels, options):
    """The losses of one training, and the number of layers that conv_fft computes."""
    torch.manual_seed(seed)
    model = NETWORKS[network]().to(options.device)
    count = 0
    if variant in ("fast", "exact"):
        count = len(conv_fft.torch.convert(model, lambda _, layer: min(layer.kernel_size) >= 5,
                                           precision=variant).changed)
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3)
    scaler = torch.amp.GradScaler(options.device, enabled=dtype == torch.float16 and variant != "fp32")
    generator, losses = torch.Generator().manual_seed(seed), []
    for _ in range(options.steps):
        picked = torch.randint(len(images), (options.batch,), generator=generator).to(images.device)
        with torch.autocast(options.device, dtype=dtype, enabled=variant != "fp32"):
            loss = F.cross_entropy(model(images[picked]), labels[picked])
        optimiser.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()
        losses.append(loss.detach())
    return torch.stack(losses).tolist(), count


def smooth(curve):
    return [statistics.mean(curve[at:at + 10]) for at in range(0, len(curve), 10)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", nargs="+", choices=list(NETWORKS), default=list(NETWORKS))
    parser.add_argument("--dtype", nargs="+", choices=list(DTYPES), default=list(DTYPES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--edge", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/amp_parity.csv"))
    options = parser.parse_args()
    images, labels = (t.to(options.device) for t in digits.images_of(options.edge))
    name = torch.cuda.get_device_name() if options.device.startswith("cuda") else "CPU"
    rows = []
    for network in options.network:
        for word in options.dtype:
            last, apart = {v: [] for v in VARIANTS}, {v: [] for v in VARIANTS}
            for seed in range(options.seeds):
                curves = {}
                for variant in VARIANTS:
                    curves[variant], count = losses_of(network, variant, DTYPES[word], seed, images, labels, options)
                    rows.append([network, word, seed, variant, count, " ".join("%.6g" % v for v in curves[variant])])
                    last[variant].append(statistics.mean(curves[variant][-50:]))
                    apart[variant].append(comparison.difference(smooth(curves[variant]), smooth(curves["fp32"])))
                # Written after each seed, so that an interrupted run keeps what it has.
                options.out.parent.mkdir(parents=True, exist_ok=True)
                with open(options.out, "w", newline="") as file:
                    file.write("# %s, torch %s, conv_fft %s; %d steps of %d images of %dx%d\n" % (
                        name, torch.__version__, conv_fft.__version__, options.steps, options.batch, options.edge,
                        options.edge))
                    csv.writer(file, lineterminator="\n").writerows(
                        [["network", "dtype", "seed", "variant", "layers", "losses"], *rows])
            for variant in VARIANTS:
                print("%-9s %s %-6s loss of the last 50 steps %s, apart from fp32 %s" % (
                    network, word, variant, " ".join("%.4f" % v for v in last[variant]),
                    " ".join("%.1e" % v for v in apart[variant])), flush=True)


if __name__ == "__main__":
    main()
