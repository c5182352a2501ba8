/* SPDX-License-Identifier: Apache-2.0 */
/* The small stages of a layer: everything between the transforms that is neither a transform nor a large product. They read extents,
 * strides and types at run time, so that one kernel of each serves every layer. */
#pragma once

#include "fbfft/common/storage.cuh"

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

/*
 * gbias[c] = sum over samples and positions of gy. Every block sums a part of the elements of a tile, a tile being
 *
 *     a channel whose elements are rows without gaps: threads take the chunks of 16 bytes of its rows, wherever those begin; or,
 *     `down`, some channels side by side: each of `lanes` lanes adds up `size` of them, a chunk or a single one, row by row.
 *
 * Blocks of one part follow one another. What parts add up to becomes result[part][channel], for another launch to sum. 16-bit numbers
 * are first added in FP32, a few at a time, all else in FP64; the order depends on nothing but the extents and the launch.
 */
struct StageBias {
    const void *data;
    void *result;
    long long extent[4], stride[4]; /* of what is summed, the last one a row; or, `down`, all of them rows */
    long long channel_stride, channels;
    long long
        chunks; /* of a row, the last one perhaps of nothing (all of a channel are less than 2^31); `down`: side by side, or channels */
    long long end; /* of the data: elements that may be read, whether they count or not */
    int type, result_type, accumulate, down, size, lanes, parts;
};
constexpr int BIAS_AHEAD = 4, BIAS_GROUPS = 32, BIAS_MOST = 8;

struct BiasHalves {
    static constexpr int SIZE = 8;
    typedef unsigned short element;
    typedef uint4 vector;
    typedef float number;
};
template <int TYPE> struct BiasChunk : BiasHalves {};
template <> struct BiasChunk<FP32> {
    static constexpr int SIZE = 4;
    typedef float element;
    typedef float4 vector;
    typedef double number;
};
template <> struct BiasChunk<FP64> {
    static constexpr int SIZE = 2;
    typedef double element;
    typedef double2 vector;
    typedef double number;
};
template <int TYPE> CF_DEVICE void bias_numbers(const uint4 &q, float (&v)[8]) {
    const unsigned word[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const cplx pair = TYPE == FP16 ? unpack_halves(word[i]) : unpack_bf16(word[i]);
        v[2 * i] = float(pair.x);
        v[2 * i + 1] = float(pair.y);
    }
}
template <int> CF_DEVICE void bias_numbers(const float4 &q, double (&v)[4]) {
    v[0] = double(q.x), v[1] = double(q.y), v[2] = double(q.z), v[3] = double(q.w);
}
template <int> CF_DEVICE void bias_numbers(const double2 &q, double (&v)[2]) { v[0] = q.x, v[1] = q.y; }
template <int N, class T> CF_DEVICE T bias_tree(T (&v)[N]) {
#pragma unroll
    for (int half = N / 2; half > 0; half /= 2)
#pragma unroll
        for (int i = 0; i < half; ++i)
            v[i] = v[i] + v[i + half];
    return v[0];
}

/* What a block sums of rows: those of axis `last`, counted in units from..to - 1, for each of the places before that axis, first..end - 1. Parts
 * share the places or, where there is but one, the units. */
struct BiasPart {
    long long first, end, from, to;
};
CF_DEVICE BiasPart bias_share(const StageBias &b, int part, int last, long long units) {
    const long long places = b.extent[0] * b.extent[1] * (last == 3 ? b.extent[2] : 1);
    if (places == 1)
        return {0, 1, units * part / b.parts, units * (part + 1) / b.parts};
    return {places * part / b.parts, places * (part + 1) / b.parts, 0, units};
}
CF_DEVICE long long bias_place(const StageBias &b, long long place, int last) {
    long long at = 0;
#pragma unroll 1
    for (int a = last - 1; place > 0; --a) {
        at += place % b.extent[a] * b.stride[a];
        place /= b.extent[a];
    }
    return at;
}

/* A thread's sum of chunks of a channel. Those that begin or end outside of their row count in part. */
template <int TYPE> CF_DEVICE double bias_rows(const StageBias &b, long long channel, int part) {
    typedef BiasChunk<TYPE> Chunk;
    typedef typename Chunk::element element;
    constexpr int N = Chunk::SIZE, WHOLE = N << 8;
    const element *const data = static_cast<const element *>(b.data);
    const int chunks = int(b.chunks), length = int(b.extent[3]), threads = int(blockDim.x);
    const int chunk_step = threads % chunks;
    const long long row_step = threads / chunks * b.stride[2];
    const BiasPart share = bias_share(b, part, 2, b.extent[2] * chunks);
    double sum = 0;
    for (long long place = share.first; place < share.end; ++place) {
        const int unit = int(share.from) + int(threadIdx.x);
        const element *row =
            data + (channel * b.channel_stride + bias_place(b, place, 2) + unit / chunks * b.stride[2]);
        int chunk = unit % chunks;
        for (int ahead = int(share.to) - unit; ahead > 0; ahead -= BIAS_AHEAD * threads) {
            typename Chunk::vector q[BIAS_AHEAD];
            int counts[BIAS_AHEAD]; /* the first that counts, and << 8 the end */
#pragma unroll
            for (int j = 0; j < BIAS_AHEAD; ++j) {
                const int before = int(reinterpret_cast<unsigned long long>(row) / sizeof(element)) & (N - 1);
                const int left = length + before - chunk * N, first = chunk == 0 ? before : 0, last = min(left, N);
                const element *const from = row + ((long long)chunk * N - before);
                const bool whole = first == 0 && last == N;
                q[j] = {};
                counts[j] = WHOLE;
                if (ahead > j * threads && first < last) {
                    if (whole || (from >= data && from + N <= data + b.end)) {
                        q[j] = __ldg(reinterpret_cast<const typename Chunk::vector *>(from));
                        counts[j] = first | last << 8;
                    } else {
#pragma unroll 1
                        for (int i = first; i < last; ++i)
                            sum += load_as(from, i, TYPE);
                    }
                }
                row += row_step;
                chunk += chunk_step;
                if (chunk >= chunks) {
                    chunk -= chunks;
                    row += b.stride[2];
                }
            }
#pragma unroll
            for (int j = 0; j < BIAS_AHEAD; ++j) {
                typename Chunk::number v[N];
                bias_numbers<TYPE>(q[j], v);
                if (counts[j] != WHOLE)
#pragma unroll
                    for (int i = 0; i < N; ++i)
                        v[i] = i >= (counts[j] & 0xff) && i < counts[j] >> 8 ? v[i] : 0;
                sum += double(bias_tree<N>(v));
            }
        }
    }
    return sum;
}

/* A lane's sums of every lines-th row: of a chunk of channels, or of one channel. */
template <int TYPE>
CF_DEVICE void bias_chunk_down(const StageBias &b, int part, long long chunk, int line, int lines,
                               double (&sum)[BIAS_MOST]) {
    typedef BiasChunk<TYPE> Chunk;
    constexpr int N = Chunk::SIZE;
    const typename Chunk::element *const data = static_cast<const typename Chunk::element *>(b.data);
    const BiasPart share = bias_share(b, part, 3, b.extent[3]);
    const long long step = lines * b.stride[3];
    for (long long place = share.first; place < share.end; ++place) {
        long long row = share.from + line, at = bias_place(b, place, 3) + row * b.stride[3] + chunk * N;
        while (row < share.to) {
            typename Chunk::vector q[BIAS_AHEAD];
            typename Chunk::number v[N], w[N];
#pragma unroll
            for (int j = 0; j < BIAS_AHEAD; ++j, row += lines, at += step) {
                q[j] = {};
                if (row < share.to)
                    q[j] = __ldg(reinterpret_cast<const typename Chunk::vector *>(data + at));
            }
            bias_numbers<TYPE>(q[0], v);
#pragma unroll
            for (int j = 1; j < BIAS_AHEAD; ++j) {
                bias_numbers<TYPE>(q[j], w);
#pragma unroll
                for (int i = 0; i < N; ++i)
                    v[i] = v[i] + w[i];
            }
#pragma unroll
            for (int i = 0; i < N; ++i)
                sum[i] += double(v[i]);
        }
    }
}
template <int TYPE>
CF_DEVICE double bias_channel_down(const StageBias &b, int part, long long channel, int line, int lines) {
    constexpr int AHEAD = 2 * BIAS_AHEAD;
    typedef typename BiasChunk<TYPE>::number number;
    double sum = 0;
    const BiasPart share = bias_share(b, part, 3, b.extent[3]);
    for (long long place = share.first; place < share.end; ++place) {
        long long row = share.from + line,
                  at = channel * b.channel_stride + bias_place(b, place, 3) + row * b.stride[3];
        while (row < share.to) {
            number v[AHEAD];
#pragma unroll
            for (int j = 0; j < AHEAD; ++j) {
                v[j] = row < share.to ? number(load_as(b.data, at, TYPE)) : 0;
                row += lines;
                at += lines * b.stride[3];
            }
            sum += double(bias_tree<AHEAD>(v));
        }
    }
    return sum;
}

/* `lines` sums of each of lanes * size numbers, thread line * lanes + lane having `size` of a line, are added in the order of the lines, those
 * of every BIAS_GROUPS-th line first; thread n gets number n. */
CF_DEVICE double bias_lines(const double (&own)[BIAS_MOST], int size, int lanes, int lines) {
    const int threads = int(blockDim.x), thread = int(threadIdx.x), numbers = lanes * size;
    const int groups = min(BIAS_GROUPS, threads / numbers);
    smem<double> sums = cf_dynamic_shared<double>(), later = sums + size * (threads + 1);
#pragma unroll
    for (int i = 0; i < BIAS_MOST; ++i)
        if (i < size)
            sums[i * (threads + 1) + thread] = own[i];
    __syncthreads();
    const int number = thread % numbers, group = thread / numbers;
    double total = 0;
    if (group < groups) {
        smem<double> line = sums + (number % size * (threads + 1) + number / size);
#pragma unroll 4
        for (int i = group; i < lines; i += groups)
            total += line[i * lanes];
        later[thread] = total;
    }
    __syncthreads();
    if (thread < numbers)
#pragma unroll 4
        for (int i = 1; i < groups; ++i)
            total += later[i * numbers + thread];
    return total;
}

/* A thread's own sums. */
template <int TYPE>
CF_DEVICE void bias_own(const StageBias &b, int tile, int part, int line, int lines, double (&sum)[BIAS_MOST]) {
    const long long place = (long long)tile * b.lanes + int(threadIdx.x) % b.lanes;
    if (!b.down)
        sum[0] = bias_rows<TYPE>(b, tile, part);
    else if (line < lines && place < b.chunks && b.size > 1)
        bias_chunk_down<TYPE>(b, part, place, line, lines, sum);
    else if (line < lines && place < b.chunks)
        sum[0] = bias_channel_down<TYPE>(b, part, place, line, lines);
}
CF_DEVICE void stage_bias(const StageBias &b) {
    const int tiles = int(gridDim.x) / b.parts, tile = int(blockIdx.x) % tiles, part = int(blockIdx.x) / tiles;
    const int thread = int(threadIdx.x), lines = int(blockDim.x) / b.lanes, line = thread / b.lanes;
    double sum[BIAS_MOST] = {};
    if (b.type == FP32)
        bias_own<FP32>(b, tile, part, line, lines, sum);
    else if (b.type == FP64)
        bias_own<FP64>(b, tile, part, line, lines, sum);
    else if (b.type == FP16)
        bias_own<FP16>(b, tile, part, line, lines, sum);
    else
        bias_own<BF16>(b, tile, part, line, lines, sum);
    const double total = bias_lines(sum, b.size, b.lanes, lines);
    const long long channel = (long long)tile * b.lanes * b.size + thread;
    if (thread >= b.lanes * b.size || channel >= b.channels)
        return;
    const long long at = part * b.channels + channel;
    store_as(b.result, at, b.result_type, b.accumulate ? total + load_as(b.result, at, b.result_type) : total);
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

/* The products of core/device_ops.h where matrices are too small for a library: one number of the result per thread, or, for the gradient of
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
