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
import pathlib
import sys

MODELS = ["replknet", "convnext", "unet3d", "longconv"]


def positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("it is %r; it must be a whole number, at least 1" % text)
    return int(text)


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, nargs="+", default=MODELS)
    parser.add_argument("--steps", type=positive, default=100)
    parser.add_argument("--batch", type=positive, default=32, help="images or sequences; a quarter as many volumes")
    parser.add_argument("--edge", type=positive, default=128,
                        help="images are enlarged to this many pixels; sequences and volumes to fewer")
    parser.add_argument("--device", help="cpu or cuda; by default a GPU, if there is one")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/examples"))
    return parser.parse_args(arguments)


def main():
    options = options_of(sys.argv[1:])
    try:  # after the options, so that --help needs neither
        import torch
    except ImportError:
        sys.exit("train.py: torch is not installed; networks are trained with torch's layers and with conv_fft's")
    try:
        import conv_fft.torch  # noqa: F401
    except ImportError as error:
        sys.exit("train.py: conv_fft is not installed (%s): run 'pip install .' in the repository" % error)
    import comparison

    options.device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.allow_tf32 = False  # for both, so that the curves can be compared
    torch.backends.cudnn.benchmark = True  # torch then takes its fastest algorithms
    rows = []
    for name in options.model:
        rows += comparison.compare(name, options)
        comparison.write(options.out, rows, options.device)
    print("%s: losses.csv, losses.svg" % options.out)


if __name__ == "__main__":
    main()
