/* SPDX-License-Identifier: Apache-2.0 */
/* The largest absolute values of FP16 and FP32 tensors, from which the scales of 16-bit spectra follow.
 *
 * A sample has `elements` elements, in five axes with strides. It is divided into `parts` parts, one block each.
 * Results are FP32: absmax[group][sample][part]. Infinities and NaN do not count. */
#pragma once

#include "conv/gpu/tensor.cuh"

/* The part of a sample that a block has. */
template <class T> struct AbsmaxPart {
    const T *data; /* of the sample */
    long long first, end;
    CF_DEVICE AbsmaxPart(const cf_absmax_call &s) {
        const int part = int(blockIdx.x % s.parts);
        const long long sample = blockIdx.x / s.parts % s.samples, group = blockIdx.x / s.parts / s.samples;
        data = static_cast<const T *>(s.data) + (sample * s.sample_stride + group * s.group_stride);
        first = s.elements * part / s.parts;
        end = s.elements * (part + 1) / s.parts;
    }
};

/* The place of an element that is counted over all axes. */
CF_DEVICE long long absmax_place(const cf_absmax_call &s, long long element) {
    long long place = 0;
    for (int a = 4; a >= 0; --a) {
        place += element % s.extent[a] * s.stride[a];
        element /= s.extent[a];
    }
    return place;
}

/* The largest value of the block. Only thread 0 gets it; all other threads have nothing left to do. */
CF_DEVICE unsigned absmax_of_block(unsigned largest) {
    smem<unsigned> warps = cf_dynamic_shared<unsigned>();
    for (int other = 16; other > 0; other /= 2)
        largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, other));
    if (int(threadIdx.x) % 32 == 0)
        warps[int(threadIdx.x) / 32] = largest;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 1; i < int(blockDim.x) / 32; ++i)
            largest = max(largest, warps[i]);
    return largest;
}

/* ---- FP16: magnitudes are compared as integers, two at a time */

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
CF_DEVICE unsigned absmax_of_any(const cf_absmax_call &s, const unsigned short *data, long long first, long long end) {
    unsigned low = 0, high = 0;
    for (long long i = first + threadIdx.x; i < end; i += blockDim.x)
        larger_of(low, high, data[absmax_place(s, i)]);
    return max(low, high >> 16);
}
CF_DEVICE void absmax_fp16(const cf_absmax_call &s) {
    const AbsmaxPart<unsigned short> p(s);
    const unsigned largest =
        absmax_of_block(s.dense ? absmax_of_dense(p.data, p.first, p.end) : absmax_of_any(s, p.data, p.first, p.end));
    if (threadIdx.x == 0)
        s.absmax[blockIdx.x] = cf_fp16_to_float((unsigned short)(max(largest, 0x400u) - 0x400u));
}

/* ---- FP32 */

CF_DEVICE unsigned larger_of(unsigned largest, float v) {
    const unsigned magnitude = __float_as_uint(v) & 0x7fffffffu;
    return magnitude < 0x7f800000u ? max(largest, magnitude) : largest;
}
CF_DEVICE unsigned absmax_of_dense(const float *data, long long first, long long end) {
    const long long T = (long long)blockDim.x, t = (long long)threadIdx.x;
    const long long ahead = (long long)((0 - reinterpret_cast<unsigned long long>(data + first) / 4) & 3);
    const long long from = first + ahead < end ? first + ahead : end, quads = (end - from) / 4;
    const float4 *const wide = reinterpret_cast<const float4 *>(data + from);
    unsigned largest = 0;
#pragma unroll 8
    for (long long i = t; i < quads; i += T) {
        const float4 q = __ldg(wide + i);
        largest = larger_of(larger_of(larger_of(larger_of(largest, q.x), q.y), q.z), q.w);
    }
    for (long long i = first + t; i < from; i += T)
        largest = larger_of(largest, data[i]);
    for (long long i = from + 4 * quads + t; i < end; i += T)
        largest = larger_of(largest, data[i]);
    return largest;
}
CF_DEVICE unsigned absmax_of_any(const cf_absmax_call &s, const float *data, long long first, long long end) {
    unsigned largest = 0;
    for (long long i = first + threadIdx.x; i < end; i += blockDim.x)
        largest = larger_of(largest, data[absmax_place(s, i)]);
    return largest;
}
CF_DEVICE void absmax_fp32(const cf_absmax_call &s) {
    constexpr unsigned MIN_EXPONENT = 127 - 100; /* of a result */
    const AbsmaxPart<float> p(s);
    const unsigned largest =
        absmax_of_block(s.dense ? absmax_of_dense(p.data, p.first, p.end) : absmax_of_any(s, p.data, p.first, p.end));
    if (threadIdx.x == 0)
        s.absmax[blockIdx.x] = __uint_as_float(max(largest, MIN_EXPONENT << 23));
}

/* The entry points. */
#define CF_ABSMAX_FP16_KERNEL                                     \
    extern "C" __global__ void cf_stage(const cf_absmax_call s) { \
        cf_pdl_wait();                                            \
        absmax_fp16(s);                                           \
    }
#define CF_ABSMAX_FP32_KERNEL                                     \
    extern "C" __global__ void cf_stage(const cf_absmax_call s) { \
        cf_pdl_wait();                                            \
        absmax_fp32(s);                                           \
    }
