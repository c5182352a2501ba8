/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms by one dense DFT matrix: the product and its kernel. The method is in dft_matrix_config.cuh.
 *
 * A block computes BIN_TILE tiles of eight bins for K::P planes. The spectrum is frequency-major: [bin][plane] words
 * (re, im). */
#pragma once

#include "fbfft/tensor_core/dft_matrix_build.cuh"
#include "fbfft/tensor_core/dft_matrix_taps.cuh"

/* Stores four neighbouring planes of a bin, of which `live` exist. ALL_FOUR: all four or none exist, and the address is
 * aligned to 16 bytes. */
template <bool ALL_FOUR> CF_DEVICE void dense_store(unsigned *to, const unsigned (&w)[4], int live) {
    if constexpr (ALL_FOUR) {
        if (live > 0)
            *reinterpret_cast<uint4 *>(to) = make_uint4(w[0], w[1], w[2], w[3]);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (i < live)
                to[i] = w[i];
    }
}

template <class K, bool ALL_FOUR>
CF_DEVICE void dense_bins(unsigned *out, const DenseOperands<K> &b, const DenseFactors<K> &factors, int live,
                          const cf_shared_fft_call &call) {
    typedef Dense<K> D;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, bin_tile = dense_bin_tile<K>(call),
              tiles = dense_tiles<K>(bin_tile);
    const long long unit = call.bin_unit, apart = bin_of<K>(0, D::DOWN, 0, unit);
    smem<uint4> from = dense_matrix<K>() + lane;
    int line = 8 * bin_tile * D::BIN_TILE + g;
    unsigned *to = out + line * unit;
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile, from += 32 * D::STEPS, line += 8, to += 8 * unit) {
        float even[D::EIGHTS][4] = {}, odd[D::EIGHTS][4] = {};
#pragma unroll
        for (int step = 0; step < D::STEPS; ++step) {
            const uint4 w = from[32 * step];
            const unsigned a[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
            for (int part = 0; part < D::PARTS; ++part)
#pragma unroll
                for (int i = 0; i < D::EIGHTS; ++i)
                    multiply_bins<typename K::Bins>(step < D::FIRST ? even[i] : odd[i], a, b.of[part][i][step][0],
                                                    b.of[part][i][step][1]);
        }
        if (!D::NATURAL) {
            const DenseBin bin = dense_bin<K>(line);
            to = out + bin_of<K>(bin.k0, bin.k1, bin.k2, unit);
        }
        if (D::LINES % 8 && line >= D::LINES)
            break;
#pragma unroll
        for (int h = 0; h < D::HALVES; ++h) {
            unsigned sum[4], difference[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float factor = factors.of[h][D::FACTORS > 1 ? i : 0];
                const float(&x)[4] = even[2 * h + i / 2], (&y)[4] = odd[2 * h + i / 2];
                const cplx v = {factor * x[i % 2], factor * x[2 + i % 2]};
                sum[i] = D::SPLIT ? K::Bins::pack(v.x + factor * y[i % 2], v.y + factor * y[2 + i % 2])
                                  : K::Bins::pack(v.x, v.y);
                difference[i] = K::Bins::pack(v.x - factor * y[i % 2], v.y - factor * y[2 + i % 2]);
            }
            dense_store<ALL_FOUR>(to + 16 * h, sum, live - 16 * h);
            if (D::SPLIT)
                dense_store<ALL_FOUR>(to + (16 * h + apart), difference, live - 16 * h);
        }
    }
}

/* Loads a warp's taps and multiplies. dense_prepare() must run before; the barrier in here waits for the matrix. */
template <class K> CF_DEVICE void dense_multiply(const cf_shared_fft_call &call) {
    typedef Dense<K> D;
    const int warp = int(threadIdx.x) / 32, t = int(threadIdx.x) % 4;
    const long long first =
        (long long)((int(blockIdx.x) - call.first_block) / D::MAX_BIN_TILES) * K::P + warp * D::PLANES;
    const PlaneTable<K> plane_table = dense_places<K>(call, first);
    DenseOperands<K> b;
    DenseFactors<K> factors;
    if (plane_table.live > 0) {
        if constexpr (D::SCALED && !K::FINDS)
            dense_find_factors<K>(plane_table, call, first);
        dense_take<K>(b, factors, plane_table, call);
    }
    __syncthreads();
    if (plane_table.live <= 0)
        return;
    unsigned *const out = static_cast<unsigned *>(call.out) + (call.row_first - call.row_base) * call.columns + first +
                          (long long)blockIdx.y * call.spectrum_group_stride + 4 * t;
    const bool whole = plane_table.live % 4 == 0 && call.bin_unit % 4 == 0 && (unsigned long long)out % 16 == 0;
    if (whole)
        dense_bins<K, true>(out, b, factors, plane_table.live - 4 * t, call);
    else
        dense_bins<K, false>(out, b, factors, plane_table.live - 4 * t, call);
}

template <class K> CF_DEVICE void dense_forward(const cf_shared_fft_call &call) {
    dense_prepare<K>(call);
    dense_multiply<K>(call);
}

/* The entry point. The matrix does not depend on memory that other kernels write, so it is made before the PDL wait. */
#define CF_DENSE_FFT_KERNEL(THREADS, BLOCKS)                           \
    CF_KERNEL(THREADS, BLOCKS) cf_fft(const cf_shared_fft_call call) { \
        dense_prepare<Config>(call);                                   \
        cf_pdl_wait();                                                 \
        dense_multiply<Config>(call);                                  \
    }
