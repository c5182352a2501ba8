/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that family `cudnn` needs besides cuDNN: sums of whole tensors, weights in the order of the causal operation,
 * and each pass by its definition, for tensors that cuDNN does not take. */
#pragma once

#include "conv/cudnn/call.h"
#include "conv/gpu/tensor.cuh"

template <typename INDEX> CF_DEVICE void cudnn_add_as(const cf_cudnn_add_call &a) {
    const INDEX count = INDEX(a.count), step = INDEX(gridDim.x) * INDEX(blockDim.x);
    const INDEX channels = INDEX(a.channels), inner = INDEX(a.inner);
    for (INDEX i = INDEX(blockIdx.x) * INDEX(blockDim.x) + INDEX(threadIdx.x); i < count; i += step) {
        double value = a.keep ? load_as(a.data, (long long)i, a.type) : 0.0;
        if (a.other)
            value += load_as(a.other, (long long)i, a.type);
        if (a.bias)
            value += load_as(a.bias, (long long)(i / inner % channels), a.type);
        store_as(a.data, (long long)i, a.type, value);
    }
}
CF_DEVICE void cudnn_add(const cf_cudnn_add_call &a) {
    if (a.count < (1ll << 31)) /* With one more grid stride the index stays below 2^32. */
        cudnn_add_as<unsigned>(a);
    else
        cudnn_add_as<unsigned long long>(a);
}

CF_DEVICE void cudnn_transpose(const cf_cudnn_transpose_call &a) {
    const long long count = a.rows * a.columns, step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        store_as(a.to, i, a.type, load_as(a.from, i % a.rows * a.columns + i / a.rows, a.type));
}

CF_DEVICE long long place(const cf_tensor_view &t, long long sample, long long channel, long long i, long long j,
                          long long k) {
    return sample * t.stride[0] + channel / t.channels * t.group_stride + channel % t.channels * t.stride[1] +
           i * t.stride[2] + j * t.stride[3] + k * t.stride[4];
}
/* The position of x that belongs to output o and tap k, or -1. */
CF_DEVICE long long input_of(const cf_cudnn_plain_call &p, int axis, long long o, long long k) {
    const long long i = o * p.stride[axis] + k * p.dilation[axis] - p.pad[axis];
    return i < p.x.extent[2 + axis] ? (i < 0 ? -1 : i) : -1;
}
/* The output whose tap k belongs to position i of x, or -1. */
CF_DEVICE long long output_of(const cf_cudnn_plain_call &p, int axis, long long i, long long k) {
    const long long o = i + p.pad[axis] - k * p.dilation[axis];
    return o < 0 || o % p.stride[axis] != 0 || o / p.stride[axis] >= p.y.extent[2 + axis] ? -1 : o / p.stride[axis];
}
CF_DEVICE void store_plain(const cf_cudnn_plain_call &p, const cf_tensor_view &t, void *data, long long at,
                           double sum) {
    store_as(data, at, t.type, p.accumulate ? sum + load_as(data, at, t.type) : sum);
}

CF_DEVICE void cudnn_plain_forward(const cf_cudnn_plain_call &p) {
    const long long count = count_of(p.y), step = (long long)gridDim.x * blockDim.x;
    for (long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        long long e[5];
        const long long at = element_of(p.y, n, e), first = e[1] / p.out * p.in;
        double sum = p.bias ? load_as(p.bias, e[1], p.y.type) : 0.0;
        for (long long k0 = 0; k0 < p.w.extent[2]; ++k0)
            for (long long k1 = 0; k1 < p.w.extent[3]; ++k1)
                for (long long k2 = 0; k2 < p.w.extent[4]; ++k2) {
                    const long long i0 = input_of(p, 0, e[2], k0), i1 = input_of(p, 1, e[3], k1),
                                    i2 = input_of(p, 2, e[4], k2);
                    if (i0 < 0 || i1 < 0 || i2 < 0)
                        continue;
                    for (long long c = 0; c < p.in; ++c)
                        sum += load_as(p.x_data, place(p.x, e[0], first + c, i0, i1, i2), p.x.type) *
                               load_as(p.w_data, place(p.w, e[1], c, k0, k1, k2), p.w.type);
                }
        store_plain(p, p.y, p.y_data, at, sum);
    }
}
CF_DEVICE void cudnn_plain_data(const cf_cudnn_plain_call &p) {
    const long long count = count_of(p.x), step = (long long)gridDim.x * blockDim.x;
    for (long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        long long e[5];
        const long long at = element_of(p.x, n, e), first = e[1] / p.in * p.out, c = e[1] % p.in;
        double sum = 0;
        for (long long k0 = 0; k0 < p.w.extent[2]; ++k0)
            for (long long k1 = 0; k1 < p.w.extent[3]; ++k1)
                for (long long k2 = 0; k2 < p.w.extent[4]; ++k2) {
                    const long long o0 = output_of(p, 0, e[2], k0), o1 = output_of(p, 1, e[3], k1),
                                    o2 = output_of(p, 2, e[4], k2);
                    if (o0 < 0 || o1 < 0 || o2 < 0)
                        continue;
                    for (long long o = first; o < first + p.out; ++o)
                        sum += load_as(p.y_data, place(p.y, e[0], o, o0, o1, o2), p.y.type) *
                               load_as(p.w_data, place(p.w, o, c, k0, k1, k2), p.w.type);
                }
        store_plain(p, p.x, p.x_data, at, sum);
    }
}
CF_DEVICE void cudnn_plain_weights(const cf_cudnn_plain_call &p) {
    const long long count = count_of(p.w), step = (long long)gridDim.x * blockDim.x;
    for (long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        long long e[5];
        const long long at = element_of(p.w, n, e), channel = e[0] / p.out * p.in + e[1];
        double sum = 0;
        for (long long s = 0; s < p.y.extent[0]; ++s)
            for (long long o0 = 0; o0 < p.y.extent[2]; ++o0)
                for (long long o1 = 0; o1 < p.y.extent[3]; ++o1)
                    for (long long o2 = 0; o2 < p.y.extent[4]; ++o2) {
                        const long long i0 = input_of(p, 0, o0, e[2]), i1 = input_of(p, 1, o1, e[3]),
                                        i2 = input_of(p, 2, o2, e[4]);
                        if (i0 >= 0 && i1 >= 0 && i2 >= 0)
                            sum += load_as(p.x_data, place(p.x, s, channel, i0, i1, i2), p.x.type) *
                                   load_as(p.y_data, place(p.y, s, e[0], o0, o1, o2), p.y.type);
                    }
        store_plain(p, p.w, p.w_data, at, sum);
    }
}

/* The entry points. PASS: forward, data or weights. */
#define CF_CUDNN_ADD_KERNEL                                              \
    extern "C" __global__ void cf_cudnn_add(const cf_cudnn_add_call a) { \
        cf_pdl_wait();                                                   \
        cudnn_add(a);                                                    \
    }
#define CF_CUDNN_TRANSPOSE_KERNEL                                                    \
    extern "C" __global__ void cf_cudnn_transpose(const cf_cudnn_transpose_call a) { \
        cf_pdl_wait();                                                               \
        cudnn_transpose(a);                                                          \
    }
#define CF_CUDNN_PLAIN_KERNEL(PASS)                                           \
    extern "C" __global__ void cf_cudnn_##PASS(const cf_cudnn_plain_call p) { \
        cf_pdl_wait();                                                        \
        cudnn_plain_##PASS(p);                                                \
    }
