/* SPDX-License-Identifier: Apache-2.0 */
/* The largest absolute values of FP16 and FP32 tensors, from which the scales of 16-bit spectra follow.
 *
 * A sample has `elements` elements, in five axes with strides. It is divided into `parts` parts, one block each.
 * Results are FP32: largest[group][sample][part]. Infinities and NaN do not count. */
#pragma once

#include "conv/gpu/tensor.cuh"

/* The arguments for FP16 tensors. dense: the elements of a sample are contiguous, in any order of axes. */
struct AbsmaxCall {
    const unsigned short *data;
    float *absmax; /* [group][sample][part] */
    long long samples, sample_stride, group_stride, extent[5], stride[5], elements;
    int parts, dense;
};
/* Updates the maxima of the two halves of a word. A magnitude plus 0x400 is at least 0x400 as a 15-bit integer, and
 * wraps around below that for infinities and NaN. */
CF_DEVICE void larger_of(unsigned &low, unsigned &high, unsigned word) {
    const unsigned ordered = (word & 0x7fff7fffu) + 0x04000400u;
    low = max(low, ordered & 0x7fffu);
    high = max(high, ordered & 0x7fff0000u);
}
CF_DEVICE unsigned absmax_of_dense(const unsigned short *data, long long first, long long end) {
    const long long T = (long long)blockDim.x, t = (long long)threadIdx.x;
    const long long ahead = (long long)((0 - reinterpret_cast<unsigned long long>(data + first) / 2) & 7);
    const long long from = first + ahead < end ? first + ahead : end, quads = (end - from) / 8;
    const uint4 *const wide = reinterpret_cast<const uint4 *>(data + from);
    unsigned low = 0, high = 0;
#pragma unroll 4
    for (long long i = t; i < quads; i += T) {
        const uint4 q = __ldg(wide + i);
        larger_of(low, high, q.x);
        larger_of(low, high, q.y);
        larger_of(low, high, q.z);
        larger_of(low, high, q.w);
    }
    for (long long i = first + t; i < from; i += T)
        larger_of(low, high, data[i]);
    for (long long i = from + 8 * quads + t; i < end; i += T)
        larger_of(low, high, data[i]);
    return max(low, high >> 16);
}
CF_DEVICE unsigned absmax_of_any(const AbsmaxCall &s, const unsigned short *data, long long first, long long end) {
    unsigned low = 0, high = 0;
    for (long long i = first + threadIdx.x; i < end; i += blockDim.x) {
        long long n = i, at = 0;
        for (int a = 4; a >= 0; --a) {
            at += n % s.extent[a] * s.stride[a];
            n /= s.extent[a];
        }
        larger_of(low, high, data[at]);
    }
    return max(low, high >> 16);
}
CF_DEVICE void absmax_kernel(const AbsmaxCall &s) {
    const int part = int(blockIdx.x % s.parts), lane = int(threadIdx.x) % 32;
    const long long sample = blockIdx.x / s.parts % s.samples, group = blockIdx.x / s.parts / s.samples;
    const unsigned short *const data = s.data + (sample * s.sample_stride + group * s.group_stride);
    const long long first = s.elements * part / s.parts, end = s.elements * (part + 1) / s.parts;
    unsigned most = s.dense ? absmax_of_dense(data, first, end) : absmax_of_any(s, data, first, end);
    smem<unsigned> warps = cf_dynamic_shared<unsigned>();
    for (int other = 16; other > 0; other /= 2)
        most = max(most, __shfl_xor_sync(0xffffffffu, most, other));
    if (lane == 0)
        warps[int(threadIdx.x) / 32] = most;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int i = 1; i < int(blockDim.x) / 32; ++i)
        most = max(most, warps[i]);
    s.absmax[blockIdx.x] = cf_fp16_to_float((unsigned short)(max(most, 0x400u) - 0x400u));
}

struct ScanCall {
    const float *data;
    float *absmax; /* [group][sample][part] */
    long long samples, sample_stride, group_stride, extent[5], stride[5], elements;
    int parts, dense;
};

CF_DEVICE unsigned larger_of(unsigned most, float v) {
    const unsigned magnitude = __float_as_uint(v) & 0x7fffffffu;
    return magnitude < 0x7f800000u ? max(most, magnitude) : most;
}
CF_DEVICE unsigned scan_dense(const float *data, long long first, long long end) {
    const long long T = (long long)blockDim.x, t = (long long)threadIdx.x;
    const long long ahead = (long long)((0 - reinterpret_cast<unsigned long long>(data + first) / 4) & 3);
    const long long from = first + ahead < end ? first + ahead : end, quads = (end - from) / 4;
    const float4 *const wide = reinterpret_cast<const float4 *>(data + from);
    unsigned most = 0;
#pragma unroll 8
    for (long long i = t; i < quads; i += T) {
        const float4 q = __ldg(wide + i);
        most = larger_of(larger_of(larger_of(larger_of(most, q.x), q.y), q.z), q.w);
    }
    for (long long i = first + t; i < from; i += T)
        most = larger_of(most, data[i]);
    for (long long i = from + 4 * quads + t; i < end; i += T)
        most = larger_of(most, data[i]);
    return most;
}
CF_DEVICE unsigned scan_any(const ScanCall &s, const float *data, long long first, long long end) {
    unsigned most = 0;
    for (long long i = first + threadIdx.x; i < end; i += blockDim.x) {
        long long n = i, at = 0;
        for (int a = 4; a >= 0; --a) {
            at += n % s.extent[a] * s.stride[a];
            n /= s.extent[a];
        }
        most = larger_of(most, data[at]);
    }
    return most;
}
CF_DEVICE void absmax_of_groups(const ScanCall &s) {
    constexpr unsigned LEAST = 127 - 100; /* smallest exponent of a result */
    const int part = int(blockIdx.x % s.parts), lane = int(threadIdx.x) % 32;
    const long long sample = blockIdx.x / s.parts % s.samples, group = blockIdx.x / s.parts / s.samples;
    const float *const data = s.data + (sample * s.sample_stride + group * s.group_stride);
    const long long first = s.elements * part / s.parts, end = s.elements * (part + 1) / s.parts;
    unsigned most = s.dense ? scan_dense(data, first, end) : scan_any(s, data, first, end);
    smem<unsigned> warps = cf_dynamic_shared<unsigned>();
    for (int other = 16; other > 0; other /= 2)
        most = max(most, __shfl_xor_sync(0xffffffffu, most, other));
    if (lane == 0)
        warps[int(threadIdx.x) / 32] = most;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int i = 1; i < int(blockDim.x) / 32; ++i)
        most = max(most, warps[i]);
    s.absmax[blockIdx.x] = __uint_as_float(max(most, LEAST << 23));
}
