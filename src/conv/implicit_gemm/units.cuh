/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, and tiles of x in shared memory, of implicit GEMMs (forward.cuh, weights.cuh). */
#pragma once

#include "conv/implicit_gemm/call.h"
#include "conv/implicit_gemm/geometry.h"
#include "conv/implicit_gemm/wgmma_tile.cuh"

template <class Storage> struct IgemmNumbers;
template <> struct IgemmNumbers<fp16> {
    static constexpr bool IS_FP16 = true;
    static CF_DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
        mma_m16n8k16(d, a, b0, b1);
    }
    static CF_DEVICE unsigned word(float low, float high) { return pack_fp16(low, high); }
};
template <> struct IgemmNumbers<bf16> {
    static constexpr bool IS_FP16 = false;
    static CF_DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
        multiply_bf16(d, a, b0, b1);
    }
    static CF_DEVICE unsigned word(float low, float high) { return pack_bf16(low, high); }
};

template <class F> struct IgemmUnits {
    typedef IgemmNumbers<typename F::Storage> Numbers;
    static constexpr cf_igemm_geometry G = cf_igemm_geometry_of(
        {F::CHANNELS, F::KERNEL_Y, F::KERNEL_X + F::LEAD, F::STRIDE_Y, F::STRIDE_X, F::TILE_ROWS, F::TILE_COLUMNS});
    static constexpr int THREADS = 128 * F::TEAMS, PIECES = (F::OUT_CHANNELS + F::N - 1) / F::N;
};

/* Where a tile begins. */
struct IgemmTile {
    long long sample;
    int row, column; /* of y */
};
template <class F> CF_DEVICE IgemmTile igemm_tile(int tile) {
    const int within = tile % (F::TILES_DOWN * F::TILES_ACROSS);
    return {tile / (F::TILES_DOWN * F::TILES_ACROSS), within / F::TILES_ACROSS * F::TILE_ROWS,
            within % F::TILES_ACROSS * F::TILE_COLUMNS};
}

/* A unit of x from (row, column) on. With PAIRS, two columns are one word of memory, and both exist or none does. */
template <class F>
CF_DEVICE uint4 igemm_unit_of_x(const unsigned short *from, const cf_igemm_side &x, int row, int column, bool wanted) {
    typedef IgemmUnits<F> I;
    const int channel_stride = int(x.channel_stride), column_stride = int(x.column_stride);
    const unsigned short *const pixel = from + row * int(x.row_stride) + column * column_stride;
    wanted = wanted && unsigned(row) < unsigned(F::ROWS);
    unsigned v[8];
    if constexpr (F::PAIRS) {
        unroll<0, 4>([&](auto e) {
            constexpr int TAP = decltype(e)::value / I::G.channels * 2, CHANNEL = decltype(e)::value % I::G.channels;
            unsigned both = 0;
            if (CHANNEL < F::CHANNELS && wanted && unsigned(column + TAP) < unsigned(F::COLUMNS))
                both = __ldg(reinterpret_cast<const unsigned *>(pixel + (CHANNEL * channel_stride + TAP)));
            v[TAP * I::G.channels + CHANNEL] = both & 0xffffu;
            v[(TAP + 1) * I::G.channels + CHANNEL] = both >> 16;
        });
    } else {
        unroll<0, 8>([&](auto e) {
            constexpr int TAP = decltype(e)::value / I::G.channels, CHANNEL = decltype(e)::value % I::G.channels;
            v[e] = 0;
            if (CHANNEL < F::CHANNELS && wanted && unsigned(column + TAP) < unsigned(F::COLUMNS))
                v[e] = __ldg(pixel + (CHANNEL * channel_stride + TAP * column_stride));
        });
    }
    return make_uint4(v[0] | v[1] << 16, v[2] | v[3] << 16, v[4] | v[5] << 16, v[6] | v[7] << 16);
}

/* Share `round` of ROUNDS of the TILE units of a tile of x. from: x of its sample and group. All loads of a batch come
 * before its first store. */
template <class F, int TILE, int ROUNDS, int MAX_BATCH>
CF_DEVICE void igemm_load(smem<uint4> tile, const cf_igemm_side &x, const unsigned short *from, const IgemmTile &at,
                          int round) {
    typedef IgemmUnits<F> I;
    constexpr int SHARE = (TILE + ROUNDS * I::THREADS - 1) / (ROUNDS * I::THREADS),
                  BATCH = cf_igemm_ceil(SHARE, cf_igemm_ceil(SHARE, MAX_BATCH));
#pragma unroll 1
    for (int first = 0; first < SHARE; first += BATCH) {
        uint4 unit[BATCH];
        const int start = (round * SHARE + first) * I::THREADS + int(threadIdx.x);
        unroll<0, BATCH>([&](auto b) {
            const int i = start + b * I::THREADS, phase = i % I::G.pitch / I::G.length,
                      row = at.row * F::STRIDE_Y - F::PAD_Y + i / I::G.pitch,
                      column = (at.column + i % I::G.length) * F::STRIDE_X - (F::PAD_X + F::LEAD) +
                               phase * I::G.taps % F::STRIDE_X;
            unit[b] = igemm_unit_of_x<F>(from, x, row, column, first + b < SHARE && i < TILE);
        });
        unroll<0, BATCH>([&](auto b) {
            if (first + b < SHARE && start + b * I::THREADS < TILE)
                tile[start + b * I::THREADS] = unit[b];
        });
    }
}
