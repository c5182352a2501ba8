/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of reflect, circular and replicate padding: the gradient of each padded position is added to the
 * element that it was copied from.
 *
 *     scratch    [sample][channel][padded axes], dense, compute type. Last: [sample][padded axes][channel]; then
 *                neighbouring threads have neighbouring channels
 *     gx         the tensor, with any strides */
#pragma once

#include "conv/gpu/tensor.cuh"

/* The next position after `last` on an axis that was filled from `element`; the padded extent if there is none. The
 * padding is at most one period or mirror image. */
CF_DEVICE long long next_position(const cf_fold_call &f, int axis, long long element, long long last) {
    const long long size = f.gx.extent[2 + axis], pad = f.pad[axis], padded = f.padded[axis], own = element + pad,
                    mirrored = pad + 2 * (size - 1) - element;
    long long next = padded;
    if (f.mode == 0)
        next = last < own ? own : padded;
    else if (f.mode == 1)
        next = last < 0 ? (own < size ? own : own - size) : last + size;
    else if (f.mode == 2)
        next = last < pad - element ? pad - element : last < own ? own : last < mirrored ? mirrored : padded;
    else {
        next = max(last + 1, element == 0 ? 0ll : own);
        if (next > own && element < size - 1)
            next = padded;
    }
    return min(next, padded);
}

CF_DEVICE void fold_element(const cf_fold_call &f, const long long e[5]) {
    const long long at = place_of(f.gx, e), channels = f.gx.extent[1], each = f.last ? channels : 1,
                    positions = f.padded[0] * f.padded[1] * f.padded[2],
                    plane = f.last ? e[0] * positions * channels + e[1] : (e[0] * channels + e[1]) * positions;
    double sum = 0;
    for (long long q0 = next_position(f, 0, e[2], -1); q0 < f.padded[0]; q0 = next_position(f, 0, e[2], q0))
        for (long long q1 = next_position(f, 1, e[3], -1); q1 < f.padded[1]; q1 = next_position(f, 1, e[3], q1))
            for (long long q2 = next_position(f, 2, e[4], -1); q2 < f.padded[2]; q2 = next_position(f, 2, e[4], q2))
                sum += load_as(f.scratch, plane + ((q0 * f.padded[1] + q1) * f.padded[2] + q2) * each, f.type);
    store_as(f.data, at, f.gx.type, f.accumulate ? sum + load_as(f.data, at, f.gx.type) : sum);
}

/* A row has the elements of axis INNER of {sample, channel, axes}. `width` neighbouring threads share it. */
template <int INNER> CF_DEVICE void fold_rows(const cf_fold_call &f) {
    const long long row = f.gx.extent[INNER], count = count_of(f.gx), rows = count > 0 ? count / row : 0,
                    thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    int width = 32;
    while (width > 1 && width / 2 >= row)
        width /= 2;
    for (long long r = thread / width; r < rows; r += (long long)gridDim.x * blockDim.x / width) {
        long long e[5], rest = r;
#pragma unroll
        for (int a = 4; a >= 0; --a) {
            if (a == INNER)
                continue;
            e[a] = rest % f.gx.extent[a];
            rest /= f.gx.extent[a];
        }
        for (e[INNER] = thread % width; e[INNER] < row; e[INNER] += width)
            fold_element(f, e);
    }
}

CF_DEVICE void fold_padding(const cf_fold_call &f) {
    if (f.last)
        fold_rows<1>(f);
    else
        fold_rows<4>(f);
}

/* The entry point. */
#define CF_FOLD_KERNEL                                          \
    extern "C" __global__ void cf_stage(const cf_fold_call f) { \
        cf_pdl_wait();                                          \
        fold_padding(f);                                        \
    }
