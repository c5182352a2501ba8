/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms by one dense DFT matrix: makes the matrix in shared memory.
 *
 * A block handles BIN_TILE tiles of eight bins. Their part of the matrix is [tile][step][lane] in units of 16 bytes,
 * which are the four registers of a left operand. All warps of the block read it. */
#pragma once

#include "fbfft/tensor_core/dft_matrix_config.cuh"

/* A bin; with SPLIT, the first one of the pair k1 and k1 + N1 / 2. */
struct DenseBin {
    int k0, k1, k2;
};
template <class K> CF_DEVICE DenseBin dense_bin(int line) {
    typedef Dense<K> D;
    const int row = line / D::ACROSS;
    return {D::G::N0 == 1 ? 0 : row / D::DOWN, D::G::N0 == 1 ? row : row % D::DOWN, line % D::ACROSS};
}

/* Reads a twiddle. `turn` is its offset in the table, in bytes, before the reduction modulo the table. */
template <class K> CF_DEVICE unsigned dense_root(smem<unsigned> roots, unsigned phase) {
    constexpr unsigned BYTES = 4 * Dense<K>::PERIOD;
    return smem_cast<unsigned>(smem_cast<char>(roots) + int(phase % BYTES))[0];
}

/* Makes the matrix of this block's bins, [tile][step][lane]. It is there after a barrier. */
template <class K> CF_DEVICE void dense_prepare(const cf_shared_fft_call &call) {
    typedef Dense<K> D;
    typedef typename D::G G;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4, bin_tile = dense_bin_tile<K>(call);
    smem<unsigned> roots = dense_words<K>(0), period = dense_words<K>(D::ROOTS);
    for (int n = int(threadIdx.x); n < D::PERIOD; n += K::T)
        roots[n] = dense_roots<D::SCALED, D::PERIOD>.of[n];
    for (int n = int(threadIdx.x); n < D::SLOTS; n += K::T) {
        const DenseTap tap = dense_tap<K>(n);
        period[n] = 4 * (D::PERIOD / G::N2) * unsigned(dense_position<K, 2>(tap.e2));
        if (G::N1 > 1)
            period[D::SLOTS + n] = 4 * (D::PERIOD / G::N1) * unsigned(dense_position<K, 1>(tap.e1));
        if (G::N0 > 1)
            period[2 * D::SLOTS + n] = 4 * (D::PERIOD / G::N0) * unsigned(dense_position<K, 0>(tap.e0));
        if (D::ALIKE)
            period[3 * D::SLOTS + n] = unsigned(dense_offset<K>(tap));
    }
    __syncthreads();
    smem<uint4> to = dense_matrix<K>() + lane;
    const int items = dense_tiles<K>(bin_tile) * D::PIECES;
#pragma unroll 1
    for (int item = int(threadIdx.x) / 32; item < items; item += D::WARPS) {
        const DenseBin bin = dense_bin<K>(8 * (bin_tile * D::BIN_TILE + item / D::PIECES) + g);
#pragma unroll
        for (int i = 0; i < D::PIECE; ++i) {
            const int slot = 4 * (item % D::PIECES * D::PIECE + i) + t; /* in groups of four slots */
            const uint4 twiddle2 = smem_cast<uint4>(period)[slot];
            unsigned phase[4] = {bin.k2 * twiddle2.x, bin.k2 * twiddle2.y, bin.k2 * twiddle2.z, bin.k2 * twiddle2.w};
            if constexpr (G::N1 > 1) {
                const uint4 twiddle1 = smem_cast<uint4>(period + D::SLOTS)[slot];
                phase[0] += bin.k1 * twiddle1.x, phase[1] += bin.k1 * twiddle1.y;
                phase[2] += bin.k1 * twiddle1.z, phase[3] += bin.k1 * twiddle1.w;
            }
            if constexpr (G::N0 > 1) {
                const uint4 twiddle0 = smem_cast<uint4>(period + 2 * D::SLOTS)[slot];
                phase[0] += bin.k0 * twiddle0.x, phase[1] += bin.k0 * twiddle0.y;
                phase[2] += bin.k0 * twiddle0.z, phase[3] += bin.k0 * twiddle0.w;
            }
            unsigned root[4];
#pragma unroll
            for (int k = 0; k < 4; ++k)
                root[k] = dense_root<K>(roots, phase[k]);
            uint4 a;
            a.x = dense_low(root[0], root[1]);
            a.y = dense_high(root[0], root[1]);
            a.z = dense_low(root[2], root[3]);
            a.w = dense_high(root[2], root[3]);
            to[32 * (D::PIECE * item + i)] = a;
        }
    }
}
