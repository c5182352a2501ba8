# SPDX-License-Identifier: Apache-2.0
"""The layer by its definition, in double precision, with loops over the kernel's taps; no FFT, no torch."""
import itertools

import numpy


def padded(x, before, after, mode="zeros"):
    widths = [(0, 0), (0, 0), *zip(before, after)]
    names = {"zeros": "constant", "circular": "wrap", "reflect": "reflect", "replicate": "edge"}
    return numpy.pad(x, widths, names[mode])


def _windows(x, kernel, stride, dilation, extents):
    """For each tap: its index, and the elements of the padded x that it multiplies."""
    for tap in itertools.product(*map(range, kernel)):
        yield tap, (slice(None), slice(None), *(slice(t * d, t * d + (m - 1) * s + 1, s)
                                                for t, d, s, m in zip(tap, dilation, stride, extents)))


def forward(x, w, bias, stride, before, after, dilation, groups, mode="zeros"):
    x, w = padded(x.astype(float), before, after, mode), w.astype(float)
    kernel = w.shape[2:]
    extents = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation)]
    share, out = w.shape[1], w.shape[0] // groups
    y = numpy.zeros((x.shape[0], w.shape[0], *extents))
    for tap, where in _windows(x, kernel, stride, dilation, extents):
        seen = x[where]
        for group in range(groups):
            y[:, group * out:(group + 1) * out] += numpy.einsum(
                "nc...,kc->nk...", seen[:, group * share:(group + 1) * share],
                w[(slice(group * out, (group + 1) * out), slice(None), *tap)])
    return y if bias is None else y + bias.astype(float).reshape(1, -1, *(1,) * len(kernel))


def _flat(a):
    return a.reshape(*a.shape[:2], -1)


def weight_gradient(x, gy, w_shape, stride, before, after, dilation, groups, mode="zeros"):
    x, gy = padded(x.astype(float), before, after, mode), gy.astype(float)
    share, out = w_shape[1], w_shape[0] // groups
    gw = numpy.zeros(w_shape)
    for tap, where in _windows(x, w_shape[2:], stride, dilation, gy.shape[2:]):
        seen = x[where]
        for group in range(groups):
            gw[(slice(group * out, (group + 1) * out), slice(None), *tap)] = numpy.einsum(
                "ncp,nkp->kc", _flat(seen[:, group * share:(group + 1) * share]),
                _flat(gy[:, group * out:(group + 1) * out]))
    return gw


def data_gradient(x_shape, gy, w, stride, before, after, dilation, groups):
    """Zero padding only."""
    w, gy = w.astype(float), gy.astype(float)
    share, out = w.shape[1], w.shape[0] // groups
    full = [n + b + a for n, b, a in zip(x_shape[2:], before, after)]
    gx = numpy.zeros((x_shape[0], x_shape[1], *full))
    for tap, where in _windows(gx, w.shape[2:], stride, dilation, gy.shape[2:]):
        for group in range(groups):
            part = gx[:, group * share:(group + 1) * share]
            part[where] += numpy.einsum("nk...,kc->nc...", gy[:, group * out:(group + 1) * out],
                                        w[(slice(group * out, (group + 1) * out), slice(None), *tap)])
    return gx[(slice(None), slice(None), *(slice(b, b + n) for b, n in zip(before, x_shape[2:])))]


def close(found, exact, magnitude, bound):
    """norm(found - exact) <= bound * norm(magnitude), where magnitude is the sum of absolute values. NaN fails."""
    error = numpy.linalg.norm((numpy.asarray(found, dtype=float) - exact).ravel())
    norm = numpy.linalg.norm(magnitude.ravel())
    assert error <= bound * norm, "error %.3g, norm %.3g" % (error, norm)
