/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms by one dense DFT matrix: the method, its configuration, and the order of taps.
 *
 * Real windows of few taps, such as the weights of a layer, become frequency-major spectra of 16 bits by one matrix
 * product. The FFT size may be anything whose axes have at most 4096 different twiddles together:
 *
 *     X[k][plane] = sum over taps j of w[j][plane] w_N0^k0j0 w_N1^k1j1 w_N2^k2j2
 *
 * The matrix is the left operand: rows g and g + 8 of an instruction are the real and imaginary parts of bin g of
 * eight. Planes are the columns of the right operand. A lane is number 4 g + t of its warp. Sums are FP32, so results
 * are rounded once. The matrix is rounded to 16 bits, times a gain as in plane.cuh. FP32 planes are split into the
 * sum of two 16-bit numbers.
 *
 * A slot is the place of a tap in the sum. SPLIT: taps of even position on axis 1 come before those of odd position,
 * because
 *
 *     X[k1] = even[k1] + odd[k1],        X[k1 + N1 / 2] = even[k1] - odd[k1]
 *
 * takes half of the products. Of each step of 16 slots, lane (g, t) has slots 4 t to 4 t + 3.
 *
 * Dynamic shared memory: table of planes, twiddles (ROOTS words), turns of each slot (TWIDDLES), the matrix of this
 * block's bins (MATRIX), and a staging buffer of each warp (STAGE). */
#pragma once

#include "fbfft/tensor_core/plane.cuh"

template <bool SCALED> __host__ __device__ constexpr double dense_gain(int n) {
    return 16 % n == 0   ? mma_gain<SCALED>(16)
           : 32 % n == 0 ? mma_gain<SCALED>(32)
           : 64 % n == 0 ? mma_gain<SCALED>(64)
                         : 1.0;
}

template <class K> struct Dense {
    typedef PlaneGeometry<K> G;
    static constexpr bool SCALED = K::Bins::SCALED, FLOATS = K::Storage::PLAIN;
    static constexpr int WARPS = K::T / 32, PLANES = K::P / WARPS, HALVES = PLANES / 16,
                         EIGHTS = PLANES / 8;    /* of a warp */
    static constexpr int PARTS = FLOATS ? 2 : 1; /* how many 16-bit numbers stand for one number */
    static constexpr int C0 = K::AXIS[0].count, C1 = K::AXIS[1].count, C2 = K::AXIS[2].count;
    static constexpr cf_dense_sum SUM = cf_dense_sum_of(G::N1, K::AXIS[1].first, K::AXIS[1].spread, C0, C1, C2);
    static constexpr int EVEN = SUM.even, ODD = SUM.odd, FIRST = SUM.first, STEPS = SUM.steps, SLOTS = 16 * STEPS;
    static constexpr bool SPLIT = SUM.split;
    /* How many slots have taps: of the first steps, and of the others. */
    static constexpr int FIRST_TAPS = C0 * (SPLIT ? EVEN : C1) * C2, LAST_TAPS = SPLIT ? C0 * ODD * C2 : 0;
    /* A warp makes the operands of PIECE steps of a tile at a time. */
    static constexpr int PIECE = STEPS % 2 == 0 && STEPS > 2 ? STEPS / 2 : STEPS, PIECES = STEPS / PIECE;
    /* The offset of a tap from the first tap is the same in every plane. */
    static constexpr bool ALIKE =
        sizeof(typename K::Offset) == 4 && !K::AXIS[0].checked && !K::AXIS[1].checked && !K::AXIS[2].checked;
    static constexpr int ACROSS = G::N2 / 2 + 1, DOWN = SPLIT ? G::N1 / 2 : G::N1;
    static constexpr cf_dense_bins BINS = cf_dense_bins_of(G::N0, G::N1, G::N2, SPLIT, STEPS, PLANES);
    static constexpr int LINES = G::N0 * DOWN * ACROSS, TILES = int(BINS.tiles), MAX_BIN_TILES = int(BINS.bin_tiles),
                         BIN_TILE = BINS.bin_tile;
    static constexpr int PERIOD = int(cf_dense_period(G::N0, G::N1, G::N2));
    static constexpr float GAIN = float(dense_gain<SCALED>(PERIOD));
    static constexpr cf_dense_layout LAYOUT = cf_dense_layout_of(PERIOD, STEPS, BIN_TILE, PARTS, WARPS);
    static constexpr int ROOTS = LAYOUT.roots, TWIDDLES = LAYOUT.twiddles, PITCH = LAYOUT.pitch, STAGE = LAYOUT.stage,
                         MATRIX = LAYOUT.matrix, SHARED = G::TABLE + 4 * LAYOUT.words;
    static constexpr int FACTORS = SCALED && !FLOATS && !K::FINDS ? 4 : 1; /* of a lane's four planes */
    /* Bins are contiguous in memory in the order in which they are counted here. */
    static constexpr bool NATURAL = G::N0 == 1 && K::BIN_STRIDE[2] == 1 && (G::N1 == 1 || K::BIN_STRIDE[1] == ACROSS);
    static_assert((PLANES == 16 || PLANES == 32) && PLANES * WARPS == K::P && !K::UNIT && PERIOD <= 4096,
                  "the planner's choice");
};

/* gain exp(-2 pi i k / N), as words (re, im). */
template <bool SCALED, int N> struct DenseRoots {
    unsigned of[N];
    __host__ __device__ constexpr DenseRoots() : of{} {
        for (int k = 0; k < N; ++k)
            of[k] = mma_word(mma_bits<SCALED>(dense_gain<SCALED>(N) * cf_cos(k, N)),
                             mma_bits<SCALED>(-dense_gain<SCALED>(N) * cf_sin(k, N)));
    }
};
template <bool SCALED, int N> __device__ const DenseRoots<SCALED, N> dense_roots = DenseRoots<SCALED, N>();

/* dense_low() joins the low halves of two words, dense_high() the high halves. dense_hide() hides a pointer from the
 * compiler, which otherwise makes two 64-bit additions for every load. */
#ifdef CF_SIMT
CF_DEVICE unsigned dense_low(unsigned a, unsigned b) { return (a & 0xffffu) | b << 16; }
CF_DEVICE unsigned dense_high(unsigned a, unsigned b) { return a >> 16 | (b & 0xffff0000u); }
template <class T> CF_DEVICE const T *dense_hide(const T *p) { return p; }
#else
CF_DEVICE unsigned dense_low(unsigned a, unsigned b) { return __byte_perm(a, b, 0x5410); }
CF_DEVICE unsigned dense_high(unsigned a, unsigned b) { return __byte_perm(a, b, 0x7632); }
template <class T> CF_DEVICE const T *dense_hide(const T *p) {
    asm("" : "+l"(p));
    return p;
}
#endif

/* The element of a slot. A slot without a tap has element 0 and data = false. */
struct DenseTap {
    int e0, e1, e2;
    bool data;
};
template <class K> CF_DEVICE DenseTap dense_tap(int slot) {
    typedef Dense<K> D;
    constexpr bool TWICE = D::SPLIT && K::AXIS[1].spread % 2 == 1;
    const bool odd = D::SPLIT && slot >= 16 * D::FIRST;
    const int rows = !D::SPLIT ? D::C1 : odd ? D::ODD : D::EVEN, n = odd ? slot - 16 * D::FIRST : slot;
    int row = n / D::C2;
    DenseTap t = {0, 0, n % D::C2, row < D::C0 * rows};
    if constexpr (D::C0 > 1) {
        t.e0 = row / cf_max_of(rows, 1);
        row %= cf_max_of(rows, 1);
    }
    t.e1 = TWICE ? 2 * row + (odd != (K::AXIS[1].first % 2 == 1)) : row;
    if (!t.data)
        t = {0, 0, 0, false};
    return t;
}
template <class K, int X> CF_DEVICE int dense_position(int e) {
    return int(K::AXIS[X].first) + e * int(K::AXIS[X].spread);
}

/* With ALIKE: the offset of a tap in a plane, without that of the plane's start. */
template <class K> CF_DEVICE int dense_offset(const DenseTap &tap) {
    return int(tap.e0 * K::AXIS[0].step * K::AXIS_STRIDE[0] + tap.e1 * K::AXIS[1].step * K::AXIS_STRIDE[1] +
               tap.e2 * K::AXIS[2].step * K::AXIS_STRIDE[2]);
}

/* Addresses in shared memory, behind the table of planes. */
template <class K> CF_DEVICE smem<unsigned> dense_words(int from) {
    return smem_cast<unsigned>(cf_dynamic_shared<char>() + Dense<K>::G::TABLE) + from;
}
template <class K> CF_DEVICE smem<uint4> dense_matrix() {
    return smem_cast<uint4>(dense_words<K>(Dense<K>::ROOTS + Dense<K>::TWIDDLES));
}
template <class K> CF_DEVICE int dense_bin_tile(const cf_shared_fft_call &call) {
    return Dense<K>::MAX_BIN_TILES == 1 ? 0 : (int(blockIdx.x) - call.first_block) % Dense<K>::MAX_BIN_TILES;
}
template <class K> CF_DEVICE int dense_tiles(int bin_tile) {
    return min(Dense<K>::BIN_TILE, Dense<K>::TILES - bin_tile * Dense<K>::BIN_TILE);
}
