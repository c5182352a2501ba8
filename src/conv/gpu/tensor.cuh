/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of the small operations, and the operation that zeroes a tensor.
 *
 * Extents, strides and the element type are read at run time. So one compiled kernel of each operation serves every
 * layer. */
#pragma once

#include "conv/gpu/call.h"
#include "fbfft/common/storage.cuh"

enum ViewType {
    FP32,
    FP16,
    BF16,
    FP64
}; /* as conv_fft_dtype */

CF_DEVICE double load_as(const void *p, long long i, int type) {
    if (type == FP32)
        return double(static_cast<const float *>(p)[i]);
    if (type == FP64)
        return static_cast<const double *>(p)[i];
    const unsigned short bits = static_cast<const unsigned short *>(p)[i];
    return double(type == FP16 ? cf_fp16_to_float(bits) : cf_bf16_to_float(bits));
}
/* 16-bit values are rounded twice: to FP32, then to 16 bits. The values are sums of rounded numbers anyway. */
CF_DEVICE void store_as(void *p, long long i, int type, double value) {
    if (type == FP32)
        static_cast<float *>(p)[i] = float(value);
    else if (type == FP64)
        static_cast<double *>(p)[i] = value;
    else
        static_cast<unsigned short *>(p)[i] =
            type == FP16 ? cf_float_to_fp16(float(value)) : cf_float_to_bf16(float(value));
}

CF_DEVICE long long place_of(const cf_tensor_view &t, const long long index[5]) {
    long long at = index[0] * t.stride[0];
    if (t.channels == 1)
        at += index[1] * t.group_stride;
    else
        at += index[1] / t.channels * t.group_stride + index[1] % t.channels * t.stride[1];
#pragma unroll
    for (int a = 2; a < 5; ++a)
        at += index[a] * t.stride[a];
    return at;
}
CF_DEVICE long long element_of(const cf_tensor_view &t, long long n, long long index[5]) {
    for (int a = 4; a >= 0; --a) {
        index[a] = n % t.extent[a];
        n /= t.extent[a];
    }
    return place_of(t, index);
}
CF_DEVICE long long count_of(const cf_tensor_view &t) {
    return t.extent[0] * t.extent[1] * t.extent[2] * t.extent[3] * t.extent[4];
}

/* Sets every element to zero. Memory between elements keeps its contents. */
CF_DEVICE void clear_view(const cf_tensor_view &t, void *data) {
    const long long count = count_of(t), step = (long long)gridDim.x * blockDim.x;
    for (long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        long long index[5];
        store_as(data, element_of(t, n, index), t.type, 0);
    }
}

/* The entry point of clear_view(). */
#define CF_CLEAR_KERNEL                                                       \
    extern "C" __global__ void cf_stage(const cf_tensor_view t, void *data) { \
        cf_pdl_wait();                                                        \
        clear_view(t, data);                                                  \
    }
