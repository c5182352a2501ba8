/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of the weights of dense planes with few input channels, as an implicit GEMM (forward.cuh):
 *
 *     gw[unit][channel] = sum over pixels of x[unit][pixel] gy[pixel][channel]
 *
 * Operand A is x in shared memory, transposed: the depth of a product is two groups of eight neighbouring outputs, and
 * its 64 rows are eight units of the kernel (cf_igemm_products of geometry.h). Operand B is gy. A block has the sums of
 * all units and N channels in registers while it walks over tiles; each team has every TEAMS-th product. Loads of the
 * next tile run while tensor cores work on this one. In the end blocks store their sums, and another kernel adds them
 * in a fixed order.
 *
 *     shared memory   | tile of x, gy of a tile | the same of the next tile |
 *     gy              channels first [group of eight outputs][channel], channels last [eight channels][output], in rows
 *                     of PITCH units
 *
 * The host prints F as for forward.cuh. Weights is the type of gw. LAST and GRANULE are those of gy, and a load moves
 * GRANULE elements. TILE_COLUMNS is a multiple of eight.
 */
#pragma once

#include "conv/gpu/slices.cuh"
#include "conv/implicit_gemm/units.cuh"

template <class F> struct IgemmWeights : IgemmUnits<F> {
    using IgemmUnits<F>::G;
    static constexpr cf_igemm_products P = cf_igemm_products_of(G, F::KERNEL_Y, F::STRIDE_X);
    static constexpr int ACROSS = F::TILE_COLUMNS / 8, GROUPS = F::TILE_ROWS * ACROSS, STEPS = (GROUPS + 1) / 2,
                         /* Units of gy from one eight to the next: no bank conflicts. */
        PITCH = F::LAST ? 16 * STEPS + 1 : F::N + 4, GY = F::LAST ? F::N / 8 * PITCH : 2 * STEPS * PITCH,
                         BUFFER = P.tile + GY, OF_TEAM = (P.count + F::TEAMS - 1) / F::TEAMS,
                         SUMS = P.count * 64 * F::N; /* of a block */
    /* The place in a tile of x of a group of outputs, for the first unit of the kernel. */
    static CF_DEVICE constexpr int place(int group) {
        return group / ACROSS * (F::STRIDE_Y * G.pitch) + group % ACROSS * 8;
    }
};

/* Elements of gy that one copy moves to shared memory: GRANULE of them are loaded at once. From `from` on, `count`
 * exist, a multiple of GRANULE. They are `step` apart. */
template <class F> struct IgemmPiece {
    typedef unsigned type;
    static CF_DEVICE unsigned load(const unsigned short *from, int count, int step) {
        if constexpr (F::GRANULE == 2)
            return count > 0 ? __ldg(reinterpret_cast<const unsigned *>(from)) : 0u;
        const unsigned low = count > 0 ? __ldg(from) : 0, high = count > 1 ? __ldg(from + step) : 0;
        return low | high << 16;
    }
};
struct IgemmUnit {
    typedef uint4 type;
    static CF_DEVICE uint4 load(const unsigned short *from, int count, int) {
        return count > 0 ? __ldcs(reinterpret_cast<const uint4 *>(from)) : make_uint4(0, 0, 0, 0);
    }
};
template <bool, class A, class B> struct IgemmEither { typedef A type; };
template <class A, class B> struct IgemmEither<false, A, B> { typedef B type; };

/* gy of a tile. from: of its sample, and of the block's first channel. Neighbouring threads have the pieces of a unit,
 * then those of the next unit, and so on, so that they load and store without bank conflicts. */
template <class F>
CF_DEVICE void igemm_load_gy(smem<uint4> to, const cf_igemm_side &gy, const unsigned short *from, const IgemmTile &at,
                             int channels) {
    typedef IgemmWeights<F> I;
    typedef typename IgemmEither<F::GRANULE == 8, IgemmUnit, IgemmPiece<F>>::type Piece;
    typedef typename Piece::type piece;
    const int channel_stride = int(gy.channel_stride), row_stride = int(gy.row_stride),
              column_stride = int(gy.column_stride);
    constexpr int OF_UNIT = 16 / int(sizeof(piece)), ELEMENTS = 8 / OF_UNIT, EIGHTS = F::N / 8,
                  PIECES = 2 * I::STEPS * F::N * OF_UNIT, BATCH = OF_UNIT == 1 ? 2 : 6;
#pragma unroll 1
    for (int start = int(threadIdx.x); start < PIECES; start += BATCH * I::THREADS) {
        piece loaded[BATCH];
        const auto place = [&](int b, int &group, int &channel, int &output) {
            const int i = start + b * I::THREADS, unit = i / OF_UNIT, element = i % OF_UNIT * ELEMENTS;
            channel = F::LAST ? unit % EIGHTS * 8 + element : unit / 2 % F::N;
            group = F::LAST ? unit / EIGHTS / 8 : unit / (2 * F::N) * 2 + unit % 2;
            output = F::LAST ? unit / EIGHTS % 8 : element;
            return i < PIECES;
        };
        unroll<0, BATCH>([&](auto b) {
            int group, channel, output;
            const bool wanted = place(b, group, channel, output);
            const int row = at.row + group / I::ACROSS, column = at.column + group % I::ACROSS * 8 + output;
            const bool inside = wanted && group < I::GROUPS && row < F::OUT_ROWS && column < F::OUT_COLUMNS;
            loaded[b] = Piece::load(from + row * row_stride + column * column_stride + channel * channel_stride,
                                    !inside || channel >= channels ? 0
                                    : F::LAST                      ? channels - channel
                                                                   : F::OUT_COLUMNS - column,
                                    F::LAST ? channel_stride : column_stride);
        });
        unroll<0, BATCH>([&](auto b) {
            int group, channel, output;
            if (!place(b, group, channel, output))
                return;
            const int unit = F::LAST ? channel / 8 * I::PITCH + group * 8 + output : group * I::PITCH + channel;
            smem_cast<piece>(to + unit)[(F::LAST ? channel % 8 : output) / ELEMENTS % OF_UNIT] = loaded[b];
        });
    }
}

template <class F> CF_DEVICE void igemm_weight_sums(const cf_igemm_call &call) {
    typedef IgemmWeights<F> I;
    const long long group = blockIdx.y / I::PIECES;
    const int tiles = int(call.samples) * (F::TILES_DOWN * F::TILES_ACROSS), blocks = int(gridDim.x),
              first_channel = int(blockIdx.y) % I::PIECES * F::N, team = int(threadIdx.x) / 128;
    const smem<uint4> memory = cf_dynamic_shared<uint4>();
    const auto load = [&](int tile, int buffer) {
        const IgemmTile at = igemm_tile<F>(tile);
        const unsigned short *const x = static_cast<const unsigned short *>(call.x.memory) +
                                        at.sample * call.x.sample_stride + group * call.x.group_stride,
                                    *const gy = static_cast<const unsigned short *>(call.y.memory) +
                                                at.sample * call.y.sample_stride + group * call.y.group_stride +
                                                first_channel * call.y.channel_stride;
        igemm_load<F, I::P.tile, 1, 2>(memory + buffer * I::BUFFER, call.x, x, at, 0);
        igemm_load_gy<F>(memory + (buffer * I::BUFFER + I::P.tile), call.y, gy, at, F::OUT_CHANNELS - first_channel);
    };
    int place[I::OF_TEAM], step[I::OF_TEAM];
    unroll<0, I::OF_TEAM>([&](auto j) {
        const int product = team + j * F::TEAMS;
        const cf_igemm_product at =
            cf_igemm_product_at(I::G, I::P, F::STRIDE_X, product < I::P.count ? product : I::P.count - 1);
        place[j] = at.place;
        step[j] = at.place_step;
    });
    float d[I::OF_TEAM][F::N / 8][4];
    unroll<0, I::OF_TEAM>([&](auto j) { unroll<0, F::N / 2>([&](auto i) { d[j][i / 4][i % 4] = 0; }); });
    load(int(blockIdx.x), 0);
    wgmma_fence_proxy<F>();
    __syncthreads();
    int buffer = 0;
#pragma unroll 1
    for (int tile = int(blockIdx.x); tile < tiles; tile += blocks, buffer ^= 1) {
        const smem<uint4> x = memory + buffer * I::BUFFER, gy = x + I::P.tile;
#pragma unroll 1
        for (int pair = 0; pair < 2 * I::STEPS; pair += 2) {
            wgmma_fence();
            const int from = I::place(pair), next = pair + 1 < I::GROUPS ? I::place(pair + 1) - from : 0;
            unroll<0, I::OF_TEAM>([&](auto j) {
                wgmma_tile<typename I::Numbers, F::N, true, F::LAST>(
                    d[j], x + (place[j] + from), {next, step[j]}, gy + pair * (F::LAST ? 8 : I::PITCH),
                    F::LAST ? WgmmaSteps{8, I::PITCH} : WgmmaSteps{I::PITCH, 8}, false);
            });
        }
        wgmma_commit_group();
        if (tile + blocks < tiles)
            load(tile + blocks, buffer ^ 1);
        unroll<0, I::OF_TEAM>([&](auto j) { wgmma_tile_wait<F::N>(d[j]); });
        wgmma_fence_proxy<F>();
        __syncthreads();
    }
    const int lane = int(threadIdx.x) % 32, row = int(threadIdx.x) / 32 % 4 * 16 + lane / 4;
    float *const sums = call.sums + ((long long)blockIdx.x * gridDim.y + blockIdx.y) * I::SUMS;
    unroll<0, I::OF_TEAM>([&](auto j) {
        const int product = team + j * F::TEAMS;
        if (product >= I::P.count)
            return;
        unroll<0, F::N / 8>([&](auto n) {
            unroll<0, 2>([&](auto below) {
                float *const to = sums + ((product * 64 + row + 8 * below) * F::N + 8 * n + lane % 4 * 2);
                *reinterpret_cast<float2 *>(to) = make_float2(d[j][n][2 * below], d[j][n][2 * below + 1]);
            });
        });
    });
}

/* Adds the sums of all blocks. Those that belong to no tap are left out. */
template <class F> CF_DEVICE void igemm_add(const cf_igemm_call &call) {
    typedef IgemmWeights<F> I;
    typedef typename F::Weights W;
    const long long i = sum_of_thread<F::ADD_SUMS>();
    float total;
    if (!add_slices<F::ADD_SUMS, F::ADD_SHARES>(total, call.sums, i, call.blocks * I::SUMS, call.slices))
        return;
    const int of_block = int(i % I::SUMS), block = int(i / I::SUMS), row = of_block / F::N % 64,
              output = block % I::PIECES * F::N + of_block % F::N, tap = row % 8 / I::G.channels,
              channel = row % I::G.channels;
    const cf_igemm_product at = cf_igemm_product_at(I::G, I::P, F::STRIDE_X, of_block / (64 * F::N));
    const int r = at.row + row / 8 * at.row_step, s = (at.unit + row / 8 * at.unit_step) * I::G.taps + tap - F::LEAD;
    if (r >= F::KERNEL_Y || s < 0 || s >= F::KERNEL_X || output >= F::OUT_CHANNELS || channel >= F::CHANNELS)
        return;
    typename W::bits *const to = static_cast<typename W::bits *>(const_cast<void *>(call.w.memory)) +
                                 block / I::PIECES * call.w.group_stride + output * call.w.output_stride +
                                 channel * call.w.input_stride + r * call.w.row_stride + s * call.w.column_stride;
    W::store(to, call.accumulate ? total + float(W::load(to)) : total);
}

/* The entry points. The host prints FUNCTION: the template that computes a pass, or adds slices. */
#define CF_IGEMM_KERNEL(FUNCTION, THREADS, BLOCKS)                  \
    CF_KERNEL(THREADS, BLOCKS) cf_igemm(const cf_igemm_call call) { \
        cf_pdl_wait();                                              \
        FUNCTION<Problem>(call);                                    \
    }
