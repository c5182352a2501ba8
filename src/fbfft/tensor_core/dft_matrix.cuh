/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms of real windows of few taps, as of a layer's weights, to frequency-major spectra of 16 bits by one matrix product:
 *
 *     X[k][plane] = sum over taps j of w[j][plane] w_N0^k0j0 w_N1^k1j1 w_N2^k2j2
 *
 * for any basis whose axes have at most 4096 roots of one between them. Rows g and g + 8 of a product are the real and imaginary part of bin g of eight, its columns are planes; lane = 4 g + t. Sums are in
 * FP32, so numbers are rounded once, to words; and the matrix is, to multiples of a gain as in plane.cuh. FP32 planes are the sum of
 * two numbers of 16 bits.
 *
 * A block makes its part of the matrix, of a slab of bins, in shared memory in the order of operands; each of its warps has the taps of 16 or 32
 * planes in registers. A tap's place in the sum, its slot, is in no order of memory: SPLIT, rows of even positions go before odd ones, so that
 *
 *     X[k1] = even[k1] + odd[k1],        X[k1 + N1 / 2] = even[k1] - odd[k1]
 *
 * take half the products. Lane (g, t) has slots 16 step + 4 t + 0..3 of a step, as left operand of bin g, as right one of plane
 * 16 (i / 2) + 4 (g / 2) + 2 (i % 2) + g % 2 of eight planes i; so a result has four neighbouring planes of a bin in one lane, and sixteen in a quad.
 */
#pragma once

#include "fbfft/tensor_core/scales.cuh"

__host__ __device__ constexpr int dense_common(int a, int b) { return b == 0 ? a : dense_common(b, a % b); }
__host__ __device__ constexpr int dense_multiple(int a, int b) { return a / dense_common(a, b) * b; }
__host__ __device__ constexpr int dense_up(int n, int unit) { return (n + unit - 1) / unit; }
/* Elements of an axis at even (0) or odd (1) positions. */
__host__ __device__ constexpr int dense_rows(const TileAxis &a, int parity) {
    int rows = 0;
    for (int e = 0; e < a.count; ++e)
        rows += (a.first + e * a.spread) % 2 == parity;
    return rows;
}
template <bool SCALED> __host__ __device__ constexpr double dense_gain(int n) {
    return 16 % n == 0   ? matrix_gain<SCALED>(16)
           : 32 % n == 0 ? matrix_gain<SCALED>(32)
           : 64 % n == 0 ? matrix_gain<SCALED>(64)
                         : 1.0;
}

template <class K> struct Dense {
    typedef Tile<K> G;
    static constexpr bool SCALED = K::Bins::SCALED, FLOATS = K::Storage::PLAIN;
    static constexpr int WARPS = K::T / 32, PLANES = K::P / WARPS, HALVES = PLANES / 16,
                         EIGHTS = PLANES / 8;    /* of a warp */
    static constexpr int PARTS = FLOATS ? 2 : 1; /* numbers of 16 bits whose sum is a number */
    static constexpr int C0 = K::AXIS[0].count, C1 = K::AXIS[1].count, C2 = K::AXIS[2].count;
    static constexpr int EVEN = dense_rows(K::AXIS[1], 0), ODD = dense_rows(K::AXIS[1], 1);
    static constexpr int WHOLE_STEPS = dense_up(C0 * C1 * C2, 16), EVEN_STEPS = dense_up(C0 * EVEN * C2, 16),
                         ODD_STEPS = dense_up(C0 * ODD * C2, 16);
    static constexpr bool SPLIT = G::N1 % 2 == 0 && EVEN_STEPS + ODD_STEPS < 2 * WHOLE_STEPS;
    static constexpr int FIRST = SPLIT ? EVEN_STEPS : WHOLE_STEPS; /* steps of even positions, or all */
    static constexpr int STEPS = SPLIT ? EVEN_STEPS + ODD_STEPS : WHOLE_STEPS, SLOTS = 16 * STEPS;
    /* Slots that have taps, of the first steps and of the others. */
    static constexpr int FIRST_TAPS = C0 * (SPLIT ? EVEN : C1) * C2, LAST_TAPS = SPLIT ? C0 * ODD * C2 : 0;
    /* Steps of a tile that a warp makes at once. */
    static constexpr int PIECE = STEPS % 2 == 0 && STEPS > 2 ? STEPS / 2 : STEPS, PIECES = STEPS / PIECE;
    /* A tap is as far from the first one in every plane. */
    static constexpr bool ALIKE =
        sizeof(typename K::Offset) == 4 && !K::AXIS[0].checked && !K::AXIS[1].checked && !K::AXIS[2].checked;
    static constexpr int ACROSS = G::N2 / 2 + 1, DOWN = SPLIT ? G::N1 / 2 : G::N1;
    static constexpr int LINES = G::N0 * DOWN * ACROSS, TILES = dense_up(LINES, 8); /* of bins, or pairs of them */
    /* Tiles of a slab: dft_matrix.c says why so many. */
    static constexpr int SLABS = dense_up(TILES, cf_max_of(1, (PLANES == 32 ? 56 : 112) / STEPS)),
                         SLAB = dense_up(TILES, SLABS);
    static constexpr int TURN = dense_multiple(dense_multiple(G::N0, G::N1), G::N2);
    static constexpr float GAIN = float(dense_gain<SCALED>(TURN));
    /* Words of shared memory; distances are such that lanes meet different banks. */
    static constexpr int ROOTS = dense_up(TURN, 4) * 4, TURNS = 4 * SLOTS, MATRIX = SLAB * STEPS * 128;
    static constexpr int PITCH = PARTS * (8 * STEPS + (STEPS % 2 ? 0 : 8)), STAGE = 8 * PITCH;
    static constexpr int SHARED = G::TABLE + 4 * (ROOTS + TURNS + MATRIX + WARPS * STAGE);
    static constexpr int FACTORS = SCALED && !FLOATS && !K::FINDS ? 4 : 1; /* of four planes */
    /* Bins as they are counted here follow one another in memory. */
    static constexpr bool NATURAL = G::N0 == 1 && K::BIN_STRIDE[2] == 1 && (G::N1 == 1 || K::BIN_STRIDE[1] == ACROSS);
    static_assert((PLANES == 16 || PLANES == 32) && PLANES * WARPS == K::P && !K::UNIT && TURN <= 4096,
                  "the planner's choice");
};

/* gain exp(-2 pi i k / N), as words. */
template <bool SCALED, int N> struct DenseRoots {
    unsigned of[N];
    __host__ __device__ constexpr DenseRoots() : of{} {
        for (int k = 0; k < N; ++k)
            of[k] = matrix_word(matrix_bits<SCALED>(dense_gain<SCALED>(N) * cf_cos(k, N)),
                                matrix_bits<SCALED>(-dense_gain<SCALED>(N) * cf_sin(k, N)));
    }
};
template <bool SCALED, int N> __device__ const DenseRoots<SCALED, N> dense_roots = DenseRoots<SCALED, N>();

/* The first halves of two words, and the second ones. dense_hide(): p, which the compiler takes for a number that it knows nothing of: else it adds
 * 64 bits twice for every load. */
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

/* The element of a slot; where there is none, the first one. */
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

/* ALIKE: from coordinate 0 on, but for where a plane starts. */
template <class K> CF_DEVICE int dense_offset(const DenseTap &tap) {
    return int(tap.e0 * K::AXIS[0].step * K::AXIS_STRIDE[0] + tap.e1 * K::AXIS[1].step * K::AXIS_STRIDE[1] +
               tap.e2 * K::AXIS[2].step * K::AXIS_STRIDE[2]);
}

/* Where things are in shared memory, behind the table of planes. */
template <class K> CF_DEVICE smem<unsigned> dense_words(int from) {
    return smem_cast<unsigned>(cf_dynamic_shared<char>() + Dense<K>::G::TABLE) + from;
}
template <class K> CF_DEVICE smem<uint4> dense_matrix() {
    return smem_cast<uint4>(dense_words<K>(Dense<K>::ROOTS + Dense<K>::TURNS));
}
template <class K> CF_DEVICE int dense_slab(const TileCall &call) {
    return Dense<K>::SLABS == 1 ? 0 : (int(blockIdx.x) - call.first_block) % Dense<K>::SLABS;
}
template <class K> CF_DEVICE int dense_tiles(int slab) {
    return min(Dense<K>::SLAB, Dense<K>::TILES - slab * Dense<K>::SLAB);
}

/* ---------------------------------------------------------------------------------------------------------- the matrix */

/* A bin, or the first one of a pair. */
struct DenseBin {
    int k0, k1, k2;
};
template <class K> CF_DEVICE DenseBin dense_bin(int line) {
    typedef Dense<K> D;
    const int row = line / D::ACROSS;
    return {D::G::N0 == 1 ? 0 : row / D::DOWN, D::G::N0 == 1 ? row : row % D::DOWN, line % D::ACROSS};
}

/* Places in the table of roots are counted in bytes. */
template <class K> CF_DEVICE unsigned dense_root(smem<unsigned> roots, unsigned turn) {
    constexpr unsigned BYTES = 4 * Dense<K>::TURN;
    return smem_cast<unsigned>(smem_cast<char>(roots) + int(turn % BYTES))[0];
}

/* The slab's operands, [tile][step][lane]; they are there after a barrier. */
template <class K> CF_DEVICE void dense_prepare(const TileCall &call) {
    typedef Dense<K> D;
    typedef typename D::G G;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4, slab = dense_slab<K>(call);
    smem<unsigned> roots = dense_words<K>(0), turns = dense_words<K>(D::ROOTS);
    for (int n = int(threadIdx.x); n < D::TURN; n += K::T)
        roots[n] = dense_roots<D::SCALED, D::TURN>.of[n];
    for (int n = int(threadIdx.x); n < D::SLOTS; n += K::T) {
        const DenseTap tap = dense_tap<K>(n);
        turns[n] = 4 * (D::TURN / G::N2) * unsigned(dense_position<K, 2>(tap.e2));
        if (G::N1 > 1)
            turns[D::SLOTS + n] = 4 * (D::TURN / G::N1) * unsigned(dense_position<K, 1>(tap.e1));
        if (G::N0 > 1)
            turns[2 * D::SLOTS + n] = 4 * (D::TURN / G::N0) * unsigned(dense_position<K, 0>(tap.e0));
        if (D::ALIKE)
            turns[3 * D::SLOTS + n] = unsigned(dense_offset<K>(tap));
    }
    __syncthreads();
    smem<uint4> to = dense_matrix<K>() + lane;
    const int items = dense_tiles<K>(slab) * D::PIECES;
#pragma unroll 1
    for (int item = int(threadIdx.x) / 32; item < items; item += D::WARPS) {
        const DenseBin bin = dense_bin<K>(8 * (slab * D::SLAB + item / D::PIECES) + g);
#pragma unroll
        for (int i = 0; i < D::PIECE; ++i) {
            const int slot = 4 * (item % D::PIECES * D::PIECE + i) + t; /* of four */
            const uint4 turn2 = smem_cast<uint4>(turns)[slot];
            unsigned turn[4] = {bin.k2 * turn2.x, bin.k2 * turn2.y, bin.k2 * turn2.z, bin.k2 * turn2.w};
            if constexpr (G::N1 > 1) {
                const uint4 turn1 = smem_cast<uint4>(turns + D::SLOTS)[slot];
                turn[0] += bin.k1 * turn1.x, turn[1] += bin.k1 * turn1.y;
                turn[2] += bin.k1 * turn1.z, turn[3] += bin.k1 * turn1.w;
            }
            if constexpr (G::N0 > 1) {
                const uint4 turn0 = smem_cast<uint4>(turns + 2 * D::SLOTS)[slot];
                turn[0] += bin.k0 * turn0.x, turn[1] += bin.k0 * turn0.y;
                turn[2] += bin.k0 * turn0.z, turn[3] += bin.k0 * turn0.w;
            }
            unsigned root[4];
#pragma unroll
            for (int k = 0; k < 4; ++k)
                root[k] = dense_root<K>(roots, turn[k]);
            uint4 a;
            a.x = dense_low(root[0], root[1]);
            a.y = dense_high(root[0], root[1]);
            a.z = dense_low(root[2], root[3]);
            a.w = dense_high(root[2], root[3]);
            to[32 * (D::PIECE * item + i)] = a;
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------ the taps */

/* Entries of a warp's planes, as find_planes() makes them; but the second number is, shifted by a byte, twice the place of the plane's scale, and
 * one more where that is not the plane's own to note. */
template <class K> CF_DEVICE Places<K> dense_places(const TileCall &call, long long first) {
    typedef Dense<K> D;
    const int lane = int(threadIdx.x) % 32;
    const Places<K> places = {cf_dynamic_shared<char>() + int(threadIdx.x) / 32 * D::PLANES * 32,
                              int(min(call.planes - first, (long long)D::PLANES))};
    if (lane < D::PLANES && places.live > 0) {
        const long long plane = first + min(lane, places.live - 1);
        /* Divisions of 64 bits take a hundred instructions. */
        const long long of_rows =
            call.planes > 0x7fffffff ? plane / call.columns : (long long)(unsigned(plane) / unsigned(call.columns));
        const long long row = call.row_first + of_rows, column = plane - of_rows * call.columns;
        smem<char> entry = places.table + lane * 32;
        find_plane<K>(entry, row, column, call.columns, call.sample_stride, (long long)blockIdx.y * call.group_stride);
        const long long scale = (row - call.row_base) * ((call.columns + 7) / 8) + column / 8;
        smem_cast<long long>(entry)[1] = (2 * scale + (column % 8 != 0 || lane >= places.live)) << 8;
    }
    __syncwarp();
    return places;
}

/* The factor of plane p of a warp; what undoes it is noted by the blocks of the first bins. */
template <class K>
CF_DEVICE void dense_set_factor(const Places<K> &places, const TileCall &call, int p, float largest) {
    smem<long long> entry = smem_cast<long long>(places.table + p * 32) + 1;
    const long long known = entry[0];
    entry[0] = known | Factor<K>::exponent(largest);
    if ((known & 256) == 0 && dense_slab<K>(call) == 0)
        call.scales[(long long)blockIdx.y * call.scale_group_stride + (known >> 9)] = Factor<K>::scale(largest);
}

/* Factors of what another kernel has found, of a sample each; most planes of a warp are of one. */
template <class K> CF_DEVICE void dense_find_factors(const Places<K> &places, const TileCall &call, long long first) {
    const int lane = int(threadIdx.x) % 32;
    long long row = call.row_first + first / call.columns, left = call.columns - first % call.columns; /* of this row */
    float largest = 0;
    for (int p = 0; p < Dense<K>::PLANES; ++p, --left) {
        if (left == 0) {
            ++row;
            left = call.columns;
        }
        if (p < places.live && (p == 0 || left == call.columns)) {
            const long long sample = row / call.scale_rows - call.row_base / call.scale_rows;
            const float *const part =
                call.largest + (long long)blockIdx.y * call.largest_group_stride + sample * call.parts;
            largest = largest_of_warp(lane < call.parts ? part[lane] : 0.0f);
        }
        if (lane == 0)
            dense_set_factor<K>(places, call, p, largest);
    }
    __syncwarp();
}

/* Two neighbouring slots: as they stand in memory. */
template <class K, bool FLOATS = Dense<K>::FLOATS> struct DensePair {
    typedef unsigned type;
    static CF_DEVICE unsigned of(unsigned short a, unsigned short b) { return a | unsigned(b) << 16; }
};
template <class K> struct DensePair<K, true> {
    typedef float2 type;
    static CF_DEVICE float2 of(float a, float b) { return make_float2(a, b); }
};

template <class K> CF_DEVICE int dense_plane(int eight, int g) {
    return 16 * (eight / 2) + 4 * (g / 2) + 2 * (eight % 2) + g % 2;
}

/* Which rows and pairs of slots of eight planes a lane loads: rows, four by eight pairs of a step; of planes that touch, eight by four pairs. */
template <class K> CF_DEVICE int dense_load_row(int lane, int i) {
    return K::PLANES_TOUCH ? lane % 8 : lane / 8 + i % 2 * 4;
}
template <class K> CF_DEVICE int dense_load_pair(int lane, int i) {
    return K::PLANES_TOUCH ? lane / 8 + 4 * i : lane % 8 + i / 2 * 8;
}

/* Of a plane: its tap of offset 0. */
template <class K>
CF_DEVICE const typename K::Storage::bits *dense_start(const typename K::Storage::bits *signal, const Places<K> &places,
                                                       int p) {
    typedef typename K::Offset Offset;
    signal += places.signal(p);
    if constexpr (Dense<K>::ALIKE)
        signal += Offset(places.template start<0>(p)) * Offset(K::AXIS_STRIDE[0]) +
                  Offset(places.template start<1>(p)) * Offset(K::AXIS_STRIDE[1]) +
                  Offset(places.template start<2>(p)) * Offset(K::AXIS_STRIDE[2]);
    return dense_hide(signal);
}

/* A number of plane p, or 0. data: there is a tap in its slot. */
template <class K>
CF_DEVICE typename K::Storage::bits dense_load(const typename K::Storage::bits *from, const Places<K> &places, int p,
                                               int slot, int offset, bool data) {
    typename K::Storage::bits v = 0;
    if constexpr (Dense<K>::ALIKE) {
        if (data)
            v = __ldg(from + offset);
    } else {
        typedef typename K::Offset Offset;
        const DenseTap tap = dense_tap<K>(slot);
        bool inside = data;
        Offset at = offset_of<K, 2, Offset>(dense_position<K, 2>(tap.e2), places.template start<2>(p), inside);
        at += offset_of<K, 1, Offset>(dense_position<K, 1>(tap.e1), places.template start<1>(p), inside);
        at += offset_of<K, 0, Offset>(dense_position<K, 0>(tap.e0), places.template start<0>(p), inside);
        if (inside)
            v = __ldg(from + at);
    }
    return v;
}

/* Whether there is a tap in a slot of this step. */
template <class K> CF_DEVICE bool dense_has_tap(int step, int slot) {
    typedef Dense<K> D;
    const int from = step < D::FIRST ? 0 : 16 * D::FIRST, taps = step < D::FIRST ? D::FIRST_TAPS : D::LAST_TAPS;
    return 16 * (step + 1) - from <= taps || slot - from < taps;
}

/* A lane's slots of a plane, as they stand in memory. */
template <class K, bool FLOATS = Dense<K>::FLOATS> struct DenseTaps { unsigned of[Dense<K>::STEPS][2]; };
template <class K> struct DenseTaps<K, true> { float of[Dense<K>::STEPS][4]; };

/* Half h of a warp's planes, through shared memory, where they are eight at a time. */
template <class K>
CF_DEVICE void dense_taps(DenseTaps<K> (&taps)[2], const Places<K> &places, const TileCall &call, int h) {
    typedef Dense<K> D;
    typedef DensePair<K> Pair;
    typedef typename Pair::type Type;
    constexpr int LOADS = 2 * D::STEPS;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const typename K::Storage::bits *const signal = static_cast<const typename K::Storage::bits *>(call.in);
    const smem<unsigned> stage = dense_words<K>(D::ROOTS + D::TURNS + D::MATRIX) + int(threadIdx.x) / 32 * D::STAGE;
    const smem<int2> offsets = smem_cast<int2>(dense_words<K>(D::ROOTS + 3 * D::SLOTS));
    const typename K::Storage::bits *from[2][2]; /* of rows i % 2 */
#pragma unroll
    for (int e = 0; e < 4; ++e)
        from[e / 2][e % 2] =
            dense_start<K>(signal, places, dense_plane<K>(2 * h + e / 2, dense_load_row<K>(lane, e % 2)));
    Type v[2][LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
        const int pair = dense_load_pair<K>(lane, i);
        const bool first = dense_has_tap<K>(i / 2, 2 * pair), second = dense_has_tap<K>(i / 2, 2 * pair + 1);
        int2 offset = {};
        if constexpr (D::ALIKE)
            offset = offsets[pair];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int p = dense_plane<K>(2 * h + e, dense_load_row<K>(lane, i));
            v[e][i] = Pair::of(dense_load<K>(from[e][i % 2], places, p, 2 * pair, offset.x, first),
                               dense_load<K>(from[e][i % 2], places, p, 2 * pair + 1, offset.y, second));
        }
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        __syncwarp(); /* before, others read what stood here */
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
            smem_cast<Type>(stage + dense_load_row<K>(lane, i) * D::PITCH)[dense_load_pair<K>(lane, i)] = v[e][i];
        __syncwarp();
#pragma unroll
        for (int step = 0; step < D::STEPS; ++step) {
            const smem<unsigned> own = stage + (g * D::PITCH + D::PARTS * (8 * step + 2 * t));
            if constexpr (D::FLOATS) {
                const float4 q = smem_cast<float4>(own)[0];
                taps[e].of[step][0] = q.x, taps[e].of[step][1] = q.y, taps[e].of[step][2] = q.z,
                taps[e].of[step][3] = q.w;
            } else {
                const uint2 w = smem_cast<uint2>(own)[0];
                taps[e].of[step][0] = w.x, taps[e].of[step][1] = w.y;
            }
        }
    }
}

template <class K> CF_DEVICE float dense_largest(const DenseTaps<K, true> (&taps)[2]) {
    return largest_of_floats<8 * Dense<K>::STEPS>([&](int i) { return taps[i % 2].of[i / 8][i / 2 % 4]; });
}
template <class K> CF_DEVICE float dense_largest(const DenseTaps<K, false> (&taps)[2]) {
    return largest_of_halves<4 * Dense<K>::STEPS>([&](int i) { return taps[i % 2].of[i / 4][i / 2 % 2]; });
}

/* As right operands: [part][eight planes][step]. */
template <class K> struct DenseOperands { unsigned of[Dense<K>::PARTS][Dense<K>::EIGHTS][Dense<K>::STEPS][2]; };

template <class K>
CF_DEVICE void dense_operands(DenseOperands<K> &b, const DenseTaps<K, false> (&taps)[2], int h, const float (&)[2]) {
#pragma unroll
    for (int e = 0; e < 2; ++e)
#pragma unroll
        for (int i = 0; i < 2 * Dense<K>::STEPS; ++i)
            b.of[0][2 * h + e][i / 2][i % 2] = taps[e].of[i / 2][i % 2];
}
template <class K>
CF_DEVICE void dense_operands(DenseOperands<K> &b, const DenseTaps<K, true> (&taps)[2], int h,
                              const float (&scale)[2]) {
#pragma unroll
    for (int e = 0; e < 2; ++e)
#pragma unroll
        for (int i = 0; i < 2 * Dense<K>::STEPS; ++i) {
            const cplx v = {scale[e] * taps[e].of[i / 2][2 * (i % 2)], scale[e] * taps[e].of[i / 2][2 * (i % 2) + 1]};
            const unsigned high = K::Bins::pack(v.x, v.y);
            const cplx rest = v - unpack_halves(high);
            b.of[0][2 * h + e][i / 2][i % 2] = high;
            b.of[1][2 * h + e][i / 2][i % 2] = K::Bins::pack(rest.x, rest.y);
        }
}

/* What results of half h are multiplied by: of four planes in a lane. */
template <class K> struct DenseFactors { float of[Dense<K>::HALVES][Dense<K>::FACTORS]; };

/* The operands of a warp, whose scales are found and noted. FP32 is brought to the end of FP16's range, so that both parts have all their bits. */
template <class K>
CF_DEVICE void dense_take(DenseOperands<K> &b, DenseFactors<K> &factors, const Places<K> &places,
                          const TileCall &call) {
    typedef Dense<K> D;
    constexpr int UP = D::SCALED ? Factor<K>::SUM : 0;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int h = 0; h < D::HALVES; ++h) {
        DenseTaps<K> taps[2];
        dense_taps<K>(taps, places, call, h);
        float scale[2] = {1, 1};
#pragma unroll
        for (int i = 0; i < D::FACTORS; ++i)
            factors.of[h][i] = 1 / D::GAIN;
        if constexpr (K::FINDS) { /* of the eight planes of half a warp */
            float most = dense_largest<K>(taps);
#pragma unroll
            for (int other = 1; other < 16; other *= 2)
                most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, other));
            if (lane % 16 == 0 && 16 * h + lane / 2 < places.live)
                dense_set_factor<K>(places, call, 16 * h + lane / 2, most);
            if constexpr (D::FLOATS)
                scale[0] = scale[1] = matrix_power(Factor<K>::exponent(most) + UP);
            else
                factors.of[h][0] *= matrix_power(Factor<K>::exponent(__shfl_sync(0xffffffffu, most, t / 2 * 16)));
        } else if constexpr (D::SCALED) {
#pragma unroll
            for (int e = 0; e < 2 && D::FLOATS; ++e)
                scale[e] = places.factor(dense_plane<K>(2 * h + e, g)) * float(1ll << UP);
#pragma unroll
            for (int i = 0; i < D::FACTORS && !D::FLOATS; ++i)
                factors.of[h][i] *= places.factor(16 * h + 4 * t + i);
        }
        if constexpr (D::FLOATS)
            factors.of[h][0] *= 1 / float(1ll << UP);
        dense_operands<K>(b, taps, h, scale);
    }
}

/* ---------------------------------------------------------------------------------------------------------- the product */

/* Four neighbouring planes of a bin, of which so many are there. WHOLE: all or none, at a multiple of their size. */
template <bool WHOLE> CF_DEVICE void dense_store(unsigned *to, const unsigned (&w)[4], int live) {
    if constexpr (WHOLE) {
        if (live > 0)
            *reinterpret_cast<uint4 *>(to) = make_uint4(w[0], w[1], w[2], w[3]);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (i < live)
                to[i] = w[i];
    }
}

template <class K, bool WHOLE>
CF_DEVICE void dense_bins(unsigned *out, const DenseOperands<K> &b, const DenseFactors<K> &factors, int live,
                          const TileCall &call) {
    typedef Dense<K> D;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, slab = dense_slab<K>(call), tiles = dense_tiles<K>(slab);
    const long long unit = call.bin_unit, apart = bin_of<K>(0, D::DOWN, 0, unit);
    smem<uint4> from = dense_matrix<K>() + lane;
    int line = 8 * slab * D::SLAB + g;
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
            dense_store<WHOLE>(to + 16 * h, sum, live - 16 * h);
            if (D::SPLIT)
                dense_store<WHOLE>(to + (16 * h + apart), difference, live - 16 * h);
        }
    }
}

/* Behind dense_prepare(). */
template <class K> CF_DEVICE void dense_multiply(const TileCall &call) {
    typedef Dense<K> D;
    const int warp = int(threadIdx.x) / 32, t = int(threadIdx.x) % 4;
    const long long first = (long long)((int(blockIdx.x) - call.first_block) / D::SLABS) * K::P + warp * D::PLANES;
    const Places<K> places = dense_places<K>(call, first);
    DenseOperands<K> b;
    DenseFactors<K> factors;
    if (places.live > 0) {
        if constexpr (D::SCALED && !K::FINDS)
            dense_find_factors<K>(places, call, first);
        dense_take<K>(b, factors, places, call);
    }
    __syncthreads();
    if (places.live <= 0)
        return;
    unsigned *const out = static_cast<unsigned *>(call.out) + (call.row_first - call.row_base) * call.columns + first +
                          (long long)blockIdx.y * call.spectrum_group_stride + 4 * t;
    const bool whole = places.live % 4 == 0 && call.bin_unit % 4 == 0 && (unsigned long long)out % 16 == 0;
    if (whole)
        dense_bins<K, true>(out, b, factors, places.live - 4 * t, call);
    else
        dense_bins<K, false>(out, b, factors, places.live - 4 * t, call);
}

template <class K> CF_DEVICE void dense_forward(const TileCall &call) {
    dense_prepare<K>(call);
    dense_multiply<K>(call);
}
