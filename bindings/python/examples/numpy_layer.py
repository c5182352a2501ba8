#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One layer with NumPy arrays: forward and gradients, compared with sums over the taps; then with a plan.

    python numpy_layer.py"""
import sys

import numpy

import conv_fft

KERNEL, PAD = 9, 4  # the padding keeps the extents


def by_definition(x, w, bias):
    """y[n, k, i, j] = bias[k] + the sum over c, a, b of x[n, c, i + a - PAD, j + b - PAD] w[k, c, a, b]."""
    padded = numpy.pad(x, ((0, 0), (0, 0), (PAD, PAD), (PAD, PAD)))
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (KERNEL, KERNEL), (2, 3))
    return numpy.einsum("ncijab,kcab->nkij", windows, w, optimize=True) + bias[:, None, None]


def difference(found, exact):
    return float(numpy.linalg.norm(found - exact) / numpy.linalg.norm(exact))


def main():
    random = numpy.random.default_rng(0)
    x = random.standard_normal((4, 8, 32, 32), "f")  # (N, C, H, W)
    w = random.standard_normal((16, 8, KERNEL, KERNEL), "f")  # (K, C, taps of both axes)
    bias = random.standard_normal(16, "f")

    # The first call makes a plan, and later calls find it.
    y = conv_fft.forward(x, w, bias, padding=PAD)
    error = difference(y, by_definition(x.astype("d"), w.astype("d"), bias.astype("d")))
    print("y: relative error %.1e" % error)

    # The gradients of the loss sum(y * y) / 2, whose gradient for y is y itself.
    gx, gw, gbias = conv_fft.backward(x, w, y, padding=PAD)
    print("gradients: gx %s, gw %s, gbias %s" % (gx.shape, gw.shape, gbias.shape))
    # The loss changes along a direction of w as gw says.
    direction, step = random.standard_normal(w.shape, "f"), 1e-3

    def loss(weights):
        z = conv_fft.forward(x.astype("d"), weights.astype("d"), bias.astype("d"), padding=PAD)
        return (z * z).sum() / 2
    slope = (loss(w + step * direction) - loss(w - step * direction)) / (2 * step)
    expected = float((gw.astype("d") * direction).sum())
    print("slope of the loss along a direction of w: %.2f, by gw: %.2f" % (slope, expected))

    # A plan of one's own: nothing is looked up, results go into given arrays, and gradients are added up.
    plan = conv_fft.Plan("in=4x8x32x32 out=16 kernel=9x9 pad=4", "cpu")
    out, total = numpy.empty_like(y), numpy.zeros_like(w)
    plan.forward(x, w, bias, out=out)
    for _ in range(2):
        plan.backward(x, None, y, need="w", out={"w": total}, accumulate="w")
    same = numpy.array_equal(out, y) and difference(total, 2 * gw) < 1e-6
    print("with a plan: %s" % plan.describe("forward")["strategy"])
    if not (error < 1e-5 and abs(slope / expected - 1) < 1e-2 and same):
        sys.exit("numpy_layer.py: a result is wrong")


if __name__ == "__main__":
    main()
