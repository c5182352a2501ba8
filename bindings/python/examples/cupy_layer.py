#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One layer with CuPy arrays in a GPU's memory, on a stream of one's own.

    python cupy_layer.py"""
import sys

import conv_fft

try:
    import cupy
except ImportError:
    sys.exit("cupy_layer.py: CuPy is not installed: pip install cupy-cuda13x (or cupy-cuda12x)")


def usable_gpu():
    """Whether the library can use GPU 0. If not, its sentence is printed."""
    try:
        print(conv_fft.context("cuda:0").description)
        return True
    except conv_fft.Error as error:
        print(error, file=sys.stderr)
        return False


def main():
    if not usable_gpu():
        sys.exit("cupy_layer.py: it needs a GPU")
    random = cupy.random.default_rng(0)
    x = random.standard_normal((8, 32, 64, 64), dtype="f")
    w = random.standard_normal((32, 1, 31, 31), dtype="f")  # depthwise: each filter has one channel

    # Arrays are not copied. Results are new CuPy arrays, from CuPy's pool of memory.
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.wait_event(cupy.cuda.Stream.null.record())  # x and w were made on another stream
        y = conv_fft.forward(x, w, padding="same", groups=32)
        gx, gw, _ = conv_fft.backward(x, w, y, need=("x", "w"), padding="same", groups=32)
    stream.synchronize()  # the calls have only enqueued their work

    exact = conv_fft.forward(x.get().astype("d"), w.get().astype("d"), padding="same", groups=32)  # on the CPU
    error = float(cupy.linalg.norm(y - cupy.asarray(exact)) / cupy.linalg.norm(cupy.asarray(exact)))
    # For y as gradient, <gw, w> and <gx, x> are both <y, y>.
    norms = [float((a.astype("d") * b).sum()) for a, b in ((y, y), (gw, w), (gx, x))]
    print("y: relative error %.1e; <y, y> %.6g, <gw, w> %.6g, <gx, x> %.6g" % (error, *norms))
    if not (error < 1e-5 and max(norms) < 1.0001 * min(norms)):
        sys.exit("cupy_layer.py: a result is wrong")


if __name__ == "__main__":
    main()
