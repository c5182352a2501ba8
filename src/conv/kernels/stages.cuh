/* SPDX-License-Identifier: Apache-2.0 */
/* The small stages of a layer: everything between the transforms that is neither a transform nor a large product. They read extents,
 * strides and types at run time, so that one kernel of each serves every layer. */
#pragma once

#include "fbfft/kernels/storage.cuh"

enum StageType {
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
    return double(type == FP16 ? cf_half_to_float(bits) : cf_bf16_to_float(bits));
}
/* 16-bit values are rounded once more, from FP32: double rounding of what is a sum of rounded numbers anyway. */
CF_DEVICE void store_as(void *p, long long i, int type, double value) {
    if (type == FP32)
        static_cast<float *>(p)[i] = float(value);
    else if (type == FP64)
        static_cast<double *>(p)[i] = value;
    else
        static_cast<unsigned short *>(p)[i] =
            type == FP16 ? cf_float_to_half(float(value)) : cf_float_to_bf16(float(value));
}

/* A tensor's elements, counted in the order of its extents {samples, channels, axes}, last fastest. */
struct StageTensor {
    long long extent[5], stride[5], group_stride,
        channels; /* channels of a group; stride[1] is that of a channel in its group */
    int type;
};
CF_DEVICE long long element_of(const StageTensor &t, long long n, long long index[5]) {
    for (int a = 4; a >= 0; --a) {
        index[a] = n % t.extent[a];
        n /= t.extent[a];
    }
    long long at =
        index[0] * t.stride[0] + index[1] / t.channels * t.group_stride + index[1] % t.channels * t.stride[1];
    for (int a = 2; a < 5; ++a)
        at += index[a] * t.stride[a];
    return at;
}
CF_DEVICE long long count_of(const StageTensor &t) {
    return t.extent[0] * t.extent[1] * t.extent[2] * t.extent[3] * t.extent[4];
}

/* Every element becomes zero; nothing between them is touched. */
CF_DEVICE void stage_zero(const StageTensor &t, void *data) {
    const long long count = count_of(t), step = (long long)gridDim.x * blockDim.x;
    for (long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        long long index[5];
        store_as(data, element_of(t, n, index), t.type, 0);
    }
}

/* The largest magnitudes of FP16 numbers, of each part of each sample; what is no number does not count. A sample's elements are
 * neighbours (DENSE), or have five extents. */
struct StageLargest {
    const unsigned short *data;
    float *largest; /* [group][sample][part] */
    long long samples, sample_stride, group_stride, extent[5], stride[5], elements;
    int parts, dense;
};
/* Two numbers become what grows with their magnitudes, from 0x400 on; what is no number stays below. */
CF_DEVICE void larger_of(unsigned &low, unsigned &high, unsigned word) {
    const unsigned ordered = (word & 0x7fff7fffu) + 0x04000400u;
    low = max(low, ordered & 0x7fffu);
    high = max(high, ordered & 0x7fff0000u);
}
CF_DEVICE unsigned largest_of_dense(const unsigned short *data, long long first, long long end) {
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
CF_DEVICE unsigned largest_of_any(const StageLargest &s, const unsigned short *data, long long first, long long end) {
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
CF_DEVICE void stage_largest(const StageLargest &s) {
    const int part = int(blockIdx.x % s.parts), lane = int(threadIdx.x) % 32;
    const long long sample = blockIdx.x / s.parts % s.samples, group = blockIdx.x / s.parts / s.samples;
    const unsigned short *const data = s.data + (sample * s.sample_stride + group * s.group_stride);
    const long long first = s.elements * part / s.parts, end = s.elements * (part + 1) / s.parts;
    unsigned most = s.dense ? largest_of_dense(data, first, end) : largest_of_any(s, data, first, end);
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
    s.largest[blockIdx.x] = cf_half_to_float((unsigned short)(max(most, 0x400u) - 0x400u));
}

/* gbias[c] = sum over samples and positions of gy. A block owns a channel or, where channels are neighbours in memory, one per lane.
 * Elements of a channel are [rows][row], and a warp takes pieces of a row, eight elements of each lane at a time; the threads' sums
 * meet in a fixed order. */
struct StageBias {
    const void *data;
    void *result;
    long long extent[4], stride[4]; /* of what is summed, the last one a row */
    long long channel_stride, channels;
    int type, result_type, across, accumulate;
};
template <int TYPE> CF_DEVICE double bias_sum(const StageBias &b, long long base, int warp, int warps, int lane) {
    const int first = b.across ? 0 : lane, step = b.across ? 1 : 32;
    const long long piece = 8 * step, pieces = (b.extent[3] + piece - 1) / piece;
    const long long units = b.extent[0] * b.extent[1] * b.extent[2] * pieces;
    double sum = 0;
    for (long long u = warp; u < units; u += warps) {
        const long long row = u / pieces, from = u % pieces * piece + first;
        const long long at = base + row % b.extent[2] * b.stride[2] + row / b.extent[2] % b.extent[1] * b.stride[1] +
                             row / b.extent[2] / b.extent[1] * b.stride[0];
        double v[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const long long i = from + j * step;
            v[j] = i < b.extent[3] ? load_as(b.data, at + i * b.stride[3], TYPE) : 0.0;
        }
        sum += ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
    }
    return sum;
}
CF_DEVICE void stage_bias(const StageBias &b, int threads) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, warps = threads / 32;
    const long long channel = b.across ? (long long)blockIdx.x * 32 + lane : (long long)blockIdx.x;
    const long long base = channel * b.channel_stride;
    smem<double> sums = cf_dynamic_shared<double>();
    double sum = 0;
    if (channel < b.channels)
        sum = b.type == FP32   ? bias_sum<FP32>(b, base, warp, warps, lane)
              : b.type == FP64 ? bias_sum<FP64>(b, base, warp, warps, lane)
              : b.type == FP16 ? bias_sum<FP16>(b, base, warp, warps, lane)
                               : bias_sum<BF16>(b, base, warp, warps, lane);
    sums[int(threadIdx.x)] = sum;
    __syncthreads();
    const int last = b.across ? 32 : 1;
    for (int half = threads / 2; half >= last; half /= 2) {
        if (int(threadIdx.x) < half) {
            const double x = sums[int(threadIdx.x)], y = sums[int(threadIdx.x) + half];
            sums[int(threadIdx.x)] = x + y;
        }
        __syncthreads();
    }
    if (int(threadIdx.x) < last && channel < b.channels) {
        const double total = sums[int(threadIdx.x)];
        store_as(b.result, channel, b.result_type,
                 b.accumulate ? total + load_as(b.result, channel, b.result_type) : total);
    }
}

/* The adjoint of padding (cf_fold_desc): each element gathers the padded positions that were filled from it, in increasing order. */
struct StageFold {
    StageTensor gx;
    const void *scratch;
    void *data;
    long long pad[3], padded[3];
    int mode, type, accumulate; /* type: of the scratch */
};

/* The least position > last of an axis that was filled from the element; its padded extent if there is none. */
CF_DEVICE long long next_position(const StageFold &f, int axis, long long element, long long last) {
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
CF_DEVICE void stage_fold(const StageFold &f) {
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

/* The products of core/stage.h where matrices are too small for a library: one number of the result per thread, or, for the gradient of
 * the weights, which sums over rows, per warp. */
struct StageProduct {
    const cplx *x, *w, *y;
    long long bins, rows, in, out;          /* bins of all groups; rows of X and Y */
    long long x_stride, w_stride, y_stride; /* from a bin to the next */
    int accumulate;
};
CF_DEVICE cplx times_conj(cplx a, cplx b) { return a * conj(b); }
CF_DEVICE void add_to(cplx *p, cplx v, int accumulate) { *p = accumulate ? *p + v : v; }

CF_DEVICE void stage_product_forward(const StageProduct &s) {
    const long long count = s.bins * s.rows * s.out, step = (long long)gridDim.x * blockDim.x;
    for (long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        const long long o = n % s.out, r = n / s.out % s.rows, bin = n / (s.out * s.rows);
        const cplx *x = s.x + bin * s.x_stride + r * s.in, *w = s.w + bin * s.w_stride + o * s.in;
        cplx sum = {0, 0};
        for (long long c = 0; c < s.in; ++c)
            sum = sum + times_conj(x[c], w[c]);
        add_to(const_cast<cplx *>(s.y) + bin * s.y_stride + r * s.out + o, sum, s.accumulate);
    }
}
CF_DEVICE void stage_product_data(const StageProduct &s) {
    const long long count = s.bins * s.rows * s.in, step = (long long)gridDim.x * blockDim.x;
    for (long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        const long long c = n % s.in, r = n / s.in % s.rows, bin = n / (s.in * s.rows);
        const cplx *y = s.y + bin * s.y_stride + r * s.out, *w = s.w + bin * s.w_stride + c;
        cplx sum = {0, 0};
        for (long long o = 0; o < s.out; ++o)
            sum = sum + y[o] * w[o * s.in];
        add_to(const_cast<cplx *>(s.x) + bin * s.x_stride + r * s.in + c, sum, s.accumulate);
    }
}
CF_DEVICE void stage_product_weights(const StageProduct &s) {
    const long long count = s.bins * s.in * s.out, step = (long long)gridDim.x * (blockDim.x / 32);
    const int lane = int(threadIdx.x) % 32;
    for (long long n = (long long)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; n < count; n += step) {
        const long long c = n % s.in, o = n / s.in % s.out, bin = n / (s.in * s.out);
        const cplx *x = s.x + bin * s.x_stride + c, *y = s.y + bin * s.y_stride + o;
        cplx sum = {0, 0};
        for (long long r = lane; r < s.rows; r += 32)
            sum = sum + times_conj(x[r * s.in], y[r * s.out]);
        for (int other = 16; other > 0; other /= 2)
            sum = sum + cplx{__shfl_xor_sync(0xffffffffu, sum.x, other), __shfl_xor_sync(0xffffffffu, sum.y, other)};
        if (lane == 0)
            add_to(const_cast<cplx *>(s.w) + bin * s.w_stride + o * s.in + c, sum, s.accumulate);
    }
}
