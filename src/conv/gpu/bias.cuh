/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of the bias: gbias[c] = sum over samples and positions of gy.
 *
 *     gy      [sample][channel][positions] or channels-last, with any strides; FP16, BF16, FP32 or FP64
 *     result  [part][channel]
 *
 * Each block sums a part of the elements of one tile. There are two kinds of tile:
 *
 *     rows    one channel whose rows are contiguous; threads read the 16-byte chunks of its rows, at any alignment
 *     down    some neighbouring channels; each of `lanes` lanes adds up `size` of them row by row (one, or 16 bytes)
 *
 * A channel has fewer than 2^31 chunks. Blocks of one part follow one another. With several parts, another launch
 * sums the results of the parts. 16-bit numbers are first added in FP32, a few at a time; everything else is added in
 * FP64. The order of additions depends only on the extents and the launch. */
#pragma once

#include "conv/gpu/tensor.cuh"

constexpr int BIAS_AHEAD = 4, BIAS_GROUPS = 32, BIAS_MAX = 8;

struct BiasFp16 {
    static constexpr int SIZE = 8;
    typedef unsigned short element;
    typedef uint4 vector;
    typedef float number;
};
template <int TYPE> struct BiasChunk : BiasFp16 {};
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
        const cplx pair = TYPE == FP16 ? unpack_fp16(word[i]) : unpack_bf16(word[i]);
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

/* What a block sums: rows of axis `last`, units from..to - 1 of it, at the places first..end - 1 of the axes before
 * it. Parts share the places, or the units if there is only one place. */
struct BiasPart {
    long long first, end, from, to;
};
CF_DEVICE BiasPart bias_share(const cf_bias_call &b, int part, int last, long long units) {
    const long long places = b.extent[0] * b.extent[1] * (last == 3 ? b.extent[2] : 1);
    if (places == 1)
        return {0, 1, units * part / b.parts, units * (part + 1) / b.parts};
    return {places * part / b.parts, places * (part + 1) / b.parts, 0, units};
}
CF_DEVICE long long bias_place(const cf_bias_call &b, long long place, int last) {
    long long at = 0;
#pragma unroll 1
    for (int a = last - 1; place > 0; --a) {
        at += place % b.extent[a] * b.stride[a];
        place /= b.extent[a];
    }
    return at;
}

/* A thread's sum of 16-byte chunks of one channel. Of a chunk that reaches beyond its row, only the elements of the
 * row count. */
template <int TYPE> CF_DEVICE double bias_rows(const cf_bias_call &b, long long channel, int part) {
    typedef BiasChunk<TYPE> Chunk;
    typedef typename Chunk::element element;
    constexpr int N = Chunk::SIZE, FULL = N << 8;
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
            int counts[BIAS_AHEAD]; /* first element that counts | end << 8 */
#pragma unroll
            for (int j = 0; j < BIAS_AHEAD; ++j) {
                const int before = int(reinterpret_cast<unsigned long long>(row) / sizeof(element)) & (N - 1);
                const int left = length + before - chunk * N, first = chunk == 0 ? before : 0, last = min(left, N);
                const element *const from = row + ((long long)chunk * N - before);
                const bool whole = first == 0 && last == N;
                q[j] = {};
                counts[j] = FULL;
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
                if (counts[j] != FULL)
#pragma unroll
                    for (int i = 0; i < N; ++i)
                        v[i] = i >= (counts[j] & 0xff) && i < counts[j] >> 8 ? v[i] : 0;
                sum += double(bias_tree<N>(v));
            }
        }
    }
    return sum;
}

/* A lane's sums of every lines-th row, of a chunk of channels or of one channel. */
template <int TYPE>
CF_DEVICE void bias_chunk_down(const cf_bias_call &b, int part, long long chunk, int line, int lines,
                               double (&sum)[BIAS_MAX]) {
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
CF_DEVICE double bias_channel_down(const cf_bias_call &b, int part, long long channel, int line, int lines) {
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

/* Adds the sums of the block's lines in shared memory. Thread line * lanes + lane has `size` sums. The sums of every
 * BIAS_GROUPS-th line are added first, in order, then those results. Thread n returns the total of number n. */
CF_DEVICE double bias_lines(const double (&own)[BIAS_MAX], int size, int lanes, int lines) {
    const int threads = int(blockDim.x), thread = int(threadIdx.x), numbers = lanes * size;
    const int groups = min(BIAS_GROUPS, threads / numbers);
    smem<double> sums = cf_dynamic_shared<double>(), later = sums + size * (threads + 1);
#pragma unroll
    for (int i = 0; i < BIAS_MAX; ++i)
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

/* The sums of one thread. */
template <int TYPE>
CF_DEVICE void bias_own(const cf_bias_call &b, int tile, int part, int line, int lines, double (&sum)[BIAS_MAX]) {
    const long long place = (long long)tile * b.lanes + int(threadIdx.x) % b.lanes;
    if (!b.down)
        sum[0] = bias_rows<TYPE>(b, tile, part);
    else if (line < lines && place < b.chunks && b.size > 1)
        bias_chunk_down<TYPE>(b, part, place, line, lines, sum);
    else if (line < lines && place < b.chunks)
        sum[0] = bias_channel_down<TYPE>(b, part, place, line, lines);
}
CF_DEVICE void sum_bias(const cf_bias_call &b) {
    const int tiles = int(gridDim.x) / b.parts, tile = int(blockIdx.x) % tiles, part = int(blockIdx.x) / tiles;
    const int thread = int(threadIdx.x), lines = int(blockDim.x) / b.lanes, line = thread / b.lanes;
    double sum[BIAS_MAX] = {};
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

/* The entry point. */
#define CF_BIAS_KERNEL                                                                  \
    extern "C" __global__ void __launch_bounds__(1024) cf_stage(const cf_bias_call b) { \
        cf_pdl_wait();                                                                  \
        cf_pdl_trigger();                                                               \
        sum_bias(b);                                                                    \
    }
