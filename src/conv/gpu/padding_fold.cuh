/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of reflect, circular and replicate padding: the gradient of each padded position is added to the
 * element that it was copied from.
 *
 *     scratch    [sample][channel][padded axes], dense, compute type
 *     gx         the tensor, with any strides */
#pragma once

#include "conv/gpu/tensor.cuh"

/* The next position after `last` on an axis that was filled from `element`; the padded extent if there is none. */
CF_DEVICE long long next_position(const cf_fold_call &f, int axis, long long element, long long last) {
    const long long size = f.gx.extent[2 + axis], pad = f.pad[axis], padded = f.padded[axis], own = element + pad;
    const long long mirrored = pad + 2 * (size - 1) - element;
    long long next = padded;
    if (f.mode == 0)
        next = last < own ? own : padded;
    else if (f.mode == 1)
        next = last < 0 ? own % size : last + size;
    else if (f.mode == 2)
        next = last < pad - element ? pad - element : last < own ? own : last < mirrored ? mirrored : padded;
    else {
        next = max(last + 1, element == 0 ? 0ll : own);
        if (next > own && element < size - 1)
            next = padded;
    }
    return min(next, padded);
}
CF_DEVICE void fold_padding(const cf_fold_call &f) {
    const long long count = count_of(f.gx), step = (long long)gridDim.x * blockDim.x;
    for (long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        long long e[5];
        const long long at = element_of(f.gx, n, e);
        const long long plane = (e[0] * f.gx.extent[1] + e[1]) * f.padded[0] * f.padded[1] * f.padded[2];
        double sum = 0;
        for (long long q0 = next_position(f, 0, e[2], -1); q0 < f.padded[0]; q0 = next_position(f, 0, e[2], q0))
            for (long long q1 = next_position(f, 1, e[3], -1); q1 < f.padded[1]; q1 = next_position(f, 1, e[3], q1))
                for (long long q2 = next_position(f, 2, e[4], -1); q2 < f.padded[2]; q2 = next_position(f, 2, e[4], q2))
                    sum += load_as(f.scratch, plane + (q0 * f.padded[1] + q1) * f.padded[2] + q2, f.type);
        store_as(f.data, at, f.gx.type, f.accumulate ? sum + load_as(f.data, at, f.gx.type) : sum);
    }
}

/* The entry point. */
#define CF_FOLD_KERNEL                                          \
    extern "C" __global__ void cf_stage(const cf_fold_call f) { \
        cf_pdl_wait();                                          \
        fold_padding(f);                                        \
    }
