/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dense planes with few input channels as an implicit GEMM on tensor cores: no operand of the product is written to
 * memory. A reader begins here.
 *
 *     y[pixel][channel] = sum over units of x[pixel][unit] w[unit][channel]
 *
 * geometry.h says what a unit is. Operand A is x in shared memory as it is: the units of eight neighbouring outputs
 * follow one another, and the units of the next taps begin a few places later. So one tile of x serves all taps.
 * Operand B, the weights of a block's channels, stays in shared memory. A block has TEAMS teams of four warps. A team
 * multiplies patches of 64 outputs with N channels, one after the other, and sums are in FP32. While tensor cores work
 * on a patch, the warps load a share of the next tile of x.
 *
 *     patch           8 x 8 outputs with channels last, otherwise 64 neighbours of a row
 *     shared memory   | weights | tile of x | next tile of x | bias | outputs of each team, with channels first |
 *
 * The host prints F (config.c) with: Storage, Weights, Bias (types of elements), CHANNELS and OUT_CHANNELS (of a group
 * of the layer), KERNEL_Y, KERNEL_X, STRIDE_Y, STRIDE_X, PAD_Y, PAD_X, ROWS, COLUMNS, OUT_ROWS, OUT_COLUMNS, TILE_ROWS
 * and TILE_COLUMNS (outputs of a tile), TILES_DOWN and TILES_ACROSS (tiles of a plane), N (channels of a block), TEAMS,
 * LAST (y has channels last), GRANULE (elements that one store moves then), PAIRS (columns of x are loaded by twos),
 * LEAD (1: units begin one tap before the kernel, so that pairs are aligned).
 */
#pragma once

#include "conv/implicit_gemm/units.cuh"

template <class F> struct Igemm : IgemmUnits<F> {
    using IgemmUnits<F>::G;
    static constexpr int UNITS = F::KERNEL_Y * G.units, WEIGHTS = 2 * G.steps * F::N, TILE = G.rows * G.pitch,
                         PATCH_ROWS = cf_igemm_patch_rows(F::LAST), PATCH_COLUMNS = 64 / PATCH_ROWS,
                         ACROSS = F::TILE_COLUMNS / PATCH_COLUMNS, PATCHES = F::TILE_ROWS / PATCH_ROWS * ACROSS,
                         ROUNDS = (PATCHES + F::TEAMS - 1) / F::TEAMS,
                         /* From one eight of outputs of a patch to the next, in a tile. */
        NEXT_EIGHT = F::LAST ? F::STRIDE_Y * G.pitch : 8;
    /* The channel of the block that column `n` of the product has. With channels last, the columns of a thread are
     * neighbours. */
    static CF_DEVICE int channel(int n) { return F::LAST ? n % 8 / 2 * (F::N / 4) + n / 8 * 2 + n % 2 : n; }
};

/* B: weights of the channels from `first` on. Units and channels that do not exist are zeros. */
template <class F> CF_DEVICE void igemm_weights(smem<uint4> to, const cf_igemm_taps &w, long long group, int first) {
    typedef Igemm<F> I;
    const typename F::Weights::bits *const from =
        static_cast<const typename F::Weights::bits *>(w.memory) + group * w.group_stride;
    constexpr int BATCH = 4;
#pragma unroll 1
    for (int start = int(threadIdx.x); start < I::WEIGHTS; start += BATCH * I::THREADS) {
        float v[BATCH][8];
        unroll<0, BATCH>([&](auto b) {
            const int i = start + b * I::THREADS, unit = i / F::N, output = first + I::channel(i % F::N),
                      r = unit / I::G.units, s = cf_igemm_unit(I::G, unit % I::G.units) * I::G.taps - F::LEAD;
            unroll<0, 8>([&](auto e) {
                constexpr int TAP = decltype(e)::value / I::G.channels, CHANNEL = decltype(e)::value % I::G.channels;
                v[b][e] = 0;
                if (CHANNEL < F::CHANNELS && unit < I::UNITS && unsigned(s + TAP) < unsigned(F::KERNEL_X) &&
                    output < F::OUT_CHANNELS)
                    v[b][e] = float(F::Weights::load(from + output * w.output_stride + CHANNEL * w.input_stride +
                                                     r * w.row_stride + (s + TAP) * w.column_stride));
            });
        });
        unroll<0, BATCH>([&](auto b) {
            if (start + b * I::THREADS < I::WEIGHTS)
                to[start + b * I::THREADS] =
                    make_uint4(I::Numbers::word(v[b][0], v[b][1]), I::Numbers::word(v[b][2], v[b][3]),
                               I::Numbers::word(v[b][4], v[b][5]), I::Numbers::word(v[b][6], v[b][7]));
        });
    }
}

/* The words of the outputs of a thread: of its row of d, or of the row eight below. */
template <class F>
CF_DEVICE void igemm_words(unsigned (&word)[F::N / 8], const float (&d)[F::N / 8][4], smem<float> bias, int below) {
    unroll<0, F::N / 8>([&](auto n) {
        const float2 of = smem_cast<float2>(bias + Igemm<F>::channel(8 * n + int(threadIdx.x) % 4 * 2))[0];
        word[n] = Igemm<F>::Numbers::word((below ? d[n][2] : d[n][0]) + of.x, (below ? d[n][3] : d[n][1]) + of.y);
    });
}

/* Channels last: the outputs of a patch of 8 x 8. A thread has N / 4 neighbouring channels of two outputs. y: of the
 * sample, and of the block's first channel. */
template <class F>
CF_DEVICE void igemm_store_last(unsigned short *y, const cf_igemm_side &s, const float (&d)[F::N / 8][4],
                                smem<float> bias, int channels, int first_row, int first_column) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32 % 4, column = first_column + lane / 4;
    unroll<0, 2>([&](auto below) {
        const int row = first_row + 2 * warp + below;
        unsigned word[F::N / 8];
        igemm_words<F>(word, d, bias, below);
        if (row >= F::OUT_ROWS || column >= F::OUT_COLUMNS)
            return;
        unroll<0, F::N / 32>([&](auto piece) {
            const int channel = lane % 4 * (F::N / 4) + 8 * piece;
            unsigned short *const to = y + row * int(s.row_stride) + column * int(s.column_stride) + channel;
            if (channel >= channels)
                return;
            if (F::GRANULE == 8) {
                *reinterpret_cast<uint4 *>(to) =
                    make_uint4(word[4 * piece], word[4 * piece + 1], word[4 * piece + 2], word[4 * piece + 3]);
                return;
            }
            unroll<0, 4>([&](auto i) {
                const unsigned v = word[4 * piece + i];
                if (F::GRANULE > 1 && channel + 2 * i + 1 < channels) {
                    reinterpret_cast<unsigned *>(to)[i] = v;
                    return;
                }
                if (channel + 2 * i < channels)
                    to[2 * i] = (unsigned short)v;
                if (channel + 2 * i + 1 < channels)
                    to[2 * i + 1] = (unsigned short)(v >> 16);
            });
        });
    });
}

/* A barrier of a team. In the emulator it is one of the block: all teams come to as many. */
template <class F> CF_DEVICE void igemm_sync([[maybe_unused]] int team) {
#ifdef CF_SIMT
    __syncthreads();
#else
    asm volatile("bar.sync %0, 128;" ::"r"(team + 1) : "memory");
#endif
}

/* Channels first: the outputs of a patch of 64 neighbours of a row. They go through shared memory, `room` of the team,
 * so that a warp stores 64 outputs of a channel at once, in words. Where GRANULE is 1, a word may begin at every second
 * byte of memory. */
template <class F>
CF_DEVICE void igemm_store_first(unsigned short *y, const cf_igemm_side &s, const float (&d)[F::N / 8][4],
                                 smem<float> bias, smem<unsigned> room, int team, int channels, int row, int column,
                                 bool stores) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32 % 4,
              count = cf_min_of(F::OUT_COLUMNS - column, 64);
    igemm_sync<F>(team); /* the words before have been stored */
    unroll<0, 2>([&](auto below) {
        unsigned word[F::N / 8];
        igemm_words<F>(word, d, bias, below);
        unroll<0, F::N / 8>([&](auto n) {
            room[(8 * n + lane / 4) * CF_IGEMM_ROOM_PITCH + 8 * warp + 4 * below + lane % 4] = mma_transposed(word[n]);
        });
    });
    igemm_sync<F>(team);
    if (!stores)
        return;
    const int last = cf_min_of(channels, F::N);
    unsigned short *const first = y + row * int(s.row_stride) + column;
    if constexpr (F::GRANULE > 1) {
        const bool both = 2 * lane + 1 < count, one = F::OUT_COLUMNS % 2 != 0 && 2 * lane + 1 == count;
#pragma unroll 8
        for (int channel = warp; channel < last; channel += 4) {
            unsigned short *const to = first + channel * int(s.channel_stride) + 2 * lane;
            const unsigned word = room[channel * CF_IGEMM_ROOM_PITCH + lane];
            if (both)
                *reinterpret_cast<unsigned *>(to) = word;
            if (one)
                to[0] = (unsigned short)word;
        }
    } else {
#pragma unroll 4
        for (int channel = warp; channel < last; channel += 4) {
            unsigned short *const to = first + channel * int(s.channel_stride);
            const smem<unsigned> from = room + channel * CF_IGEMM_ROOM_PITCH;
            const int odd = int(reinterpret_cast<unsigned long long>(to) / 2 % 2), at = 2 * lane - odd;
            const unsigned own = from[lane], before = from[lane > 0 ? lane - 1 : 0],
                           word = odd ? own << 16 | before >> 16 : own;
            if (at >= 0 && at + 1 < count)
                *reinterpret_cast<unsigned *>(to + at) = word;
            else if (at >= 0 && at < count)
                to[at] = (unsigned short)word;
            else if (at < 0)
                to[0] = (unsigned short)(word >> 16);
            if (odd && lane == 31 && count == 64)
                to[63] = (unsigned short)(own >> 16);
        }
    }
}

template <class F> CF_DEVICE void igemm_forward(const cf_igemm_call &call) {
    typedef Igemm<F> I;
    const long long group = blockIdx.y / I::PIECES;
    const int tiles = int(call.samples) * (F::TILES_DOWN * F::TILES_ACROSS), blocks = int(gridDim.x),
              first_channel = int(blockIdx.y) % I::PIECES * F::N, team = int(threadIdx.x) / 128;
    const smem<uint4> weights = cf_dynamic_shared<uint4>(), x = weights + I::WEIGHTS;
    const smem<float> bias = smem_cast<float>(x + 2 * I::TILE);
    [[maybe_unused]] const smem<unsigned> room = smem_cast<unsigned>(bias + F::N) + team * (F::N * CF_IGEMM_ROOM_PITCH);
    const auto load = [&](int tile, int buffer, int round) {
        const IgemmTile at = igemm_tile<F>(tile);
        const unsigned short *const from = static_cast<const unsigned short *>(call.x.memory) +
                                           at.sample * call.x.sample_stride + group * call.x.group_stride;
        igemm_load<F, I::TILE, I::ROUNDS, 6>(x + buffer * I::TILE, call.x, from, at, round);
    };
#pragma unroll 1
    for (int round = 0; round < I::ROUNDS; ++round)
        load(int(blockIdx.x), 0, round);
    igemm_weights<F>(weights, call.w, group, first_channel);
    for (int n = int(threadIdx.x); n < F::N; n += I::THREADS)
        bias[n] = call.bias && first_channel + n < F::OUT_CHANNELS
                      ? float(bias_at<F>(call.bias, group * F::OUT_CHANNELS + first_channel + n))
                      : 0.0f;
    wgmma_fence_proxy<F>();
    __syncthreads();
    int buffer = 0;
#pragma unroll 1
    for (int tile = int(blockIdx.x); tile < tiles; tile += blocks, buffer ^= 1) {
        const IgemmTile at = igemm_tile<F>(tile);
        unsigned short *const y = static_cast<unsigned short *>(const_cast<void *>(call.y.memory)) +
                                  at.sample * call.y.sample_stride + group * call.y.group_stride +
                                  first_channel * call.y.channel_stride;
#pragma unroll 1
        for (int round = 0; round < I::ROUNDS; ++round) {
            /* All teams multiply in every round: the instructions of a branch would wait for one another. */
            const int patch = round * F::TEAMS + team, computed = patch < I::PATCHES ? patch : I::PATCHES - 1,
                      down = computed / I::ACROSS * I::PATCH_ROWS, across = computed % I::ACROSS * I::PATCH_COLUMNS;
            const smem<uint4> from = x + (buffer * I::TILE + down * F::STRIDE_Y * I::G.pitch + across);
            float d[F::N / 8][4];
            wgmma_fence();
            unroll<0, I::G.steps>([&](auto step) {
                constexpr int A = cf_igemm_place(I::G, F::STRIDE_X, 2 * decltype(step)::value),
                              NEXT = 2 * decltype(step)::value + 1,
                              B = NEXT < I::UNITS ? cf_igemm_place(I::G, F::STRIDE_X, NEXT) : A;
                wgmma_tile<typename I::Numbers, F::N, false, false>(d, from + A, {B - A, I::NEXT_EIGHT},
                                                                    weights + 2 * F::N * step, {F::N, 8}, step == 0);
            });
            wgmma_commit_group();
            if (tile + blocks < tiles)
                load(tile + blocks, buffer ^ 1, round);
            wgmma_tile_wait<F::N>(d);
            const int row = at.row + down, column = at.column + across;
            const bool stores = patch < I::PATCHES && row < F::OUT_ROWS && column < F::OUT_COLUMNS;
            if constexpr (!F::LAST)
                igemm_store_first<F>(y, call.y, d, bias, room, team, F::OUT_CHANNELS - first_channel, row, column,
                                     stores);
            else if (stores)
                igemm_store_last<F>(y, call.y, d, bias, F::OUT_CHANNELS - first_channel, row, column);
        }
        wgmma_fence_proxy<F>();
        __syncthreads();
    }
}
