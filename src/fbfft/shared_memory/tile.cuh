/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms of 1 to 3 axes whose planes stay in shared memory: any layout, any window, any basis, one pass over memory.
 *
 * A block holds P planes. A plane is lines of complex numbers along axis 2, [N0][ROWS] of them; what a line is depends on KIND:
 *
 *     PAIRS      real, more than one row: rows 2r and 2r + 1 are the real and imaginary part of line r
 *     HALVES     real, one row, N2 even: points 2i and 2i + 1 are the real and imaginary part of point i
 *     SINGLE     real, one row, N2 odd: imaginary parts are zero
 *     COMPLEX    complex, as it is
 *
 * so that no two planes ever meet. Forward: signal -> lines; steps along axis 2, then 1, then 0 (in_place_order.cuh), each in place; spectrum.
 * Between axes 2 and 1, PAIRS are parted by Hermitian symmetry, in place: line Z = FFT(a + i b) gives
 *
 *     FFT(a)[k] = (Z[k] + conj Z[N2 - k]) / 2  at the place of Z[k],      FFT(b)[k] = (Z[k] - conj Z[N2 - k]) / 2i  at that of Z[N2 - k]
 *
 * for columns 0 <= k < COLUMNS. If N2 is even, column N2 / 2 rides as the imaginary part of column 0: both are transforms of
 * real numbers. If N2 is odd, or a product per bin follows (RIDES is false), FFT(b)[0] has an extra place at the end of the line, and so
 * has FFT(b)[N2 / 2].
 *
 * The last step along the last axis stores straight from registers if DIRECT: neighbouring threads then hold neighbouring planes
 * (frequency-major) or columns. Else, and for column 0, results go back to shared memory and are stored from there.
 *
 * STAGED: one step does axis 2, and its points are a multiple of four. Then the two rows of a line wait in its place one behind the
 * other, as they come, until the thread that transforms them reads them, four at a time; they come WIDE at a time. Forward, what waits begins
 * EARLY numbers before the line's first point, where that makes pieces stand at multiples of their size in memory.
 *
 * Zero rows are neither loaded nor transformed: row data is positions [LO, HI) of each axis. The inverse is all of this backwards.
 */
#pragma once

#include "fbfft/common/storage.cuh"
#include "fbfft/shared_memory/in_place_order.cuh"

enum TileKind {
    PAIRS,
    HALVES,
    SINGLE,
    COMPLEX
};
enum TileFirst {
    BY_PLANE,
    BY_COLUMN,
    BY_ROW
}; /* which index of a spectrum neighbouring threads differ in */
enum TilePadding {
    ZEROS,
    CIRCULAR,
    REFLECT,
    REPLICATE
};

/* One axis of core/window.h. Of an axis whose transform another kernel computes, each element is a slice: a row of its own. */
struct TileAxis {
    int first, spread, count;
    long long origin, step, slices, tiles, tile_step, shifts, shift_step, phases, phase_step, lower, upper, size;
    int mode;
    bool checked; /* some coordinate of some plane may lie outside the signal */
};

/* Arguments of one launch. A plane is (row, column) of the spectrum, column fastest in `planes`; its bin 0 stands at
 *     r / row_split * row_split_stride + r % row_split * row_stride + c / column_split * column_split_stride
 *     + c % column_split * column_stride                                        of row r, counted from row_base, and column c. */
struct TileCall {
    const void *in;
    void *out;
    const void *bias;          /* inverse, of the signal's type, per channel; may be null */
    long long planes, columns; /* columns of one row */
    long long row_first, row_step,
        row_base; /* plane p is in row row_first + p / columns * row_step; the spectrum begins with row_base */
    long long sample_stride, group_stride; /* of the signal */
    /* Of the spectrum, in complex numbers. */
    long long row_split, row_split_stride, row_stride, column_split, column_split_stride, column_stride;
    long long bin_unit, spectrum_group_stride;
    double scale;
    int accumulate;
    int first_block; /* of the launch, that this transform has */
    /* SCALED spectra: scales[group][row][column / 8] are factors that undo the powers of two of eight columns each. Forward, unless the kernel
     * FINDS them, they are made of the largest magnitudes of at most 32 parts of the signal, [group][sample][part], a sample being so many rows;
     * sample 0 is that of row_base. */
    int parts;
    float *scales;
    const float *largest;
    long long scale_rows, scale_group_stride, largest_group_stride;
};

/* The least divisor of n that is at least `least`; n if there is none. */
__host__ __device__ constexpr int divisor_from(int n, int least) {
    int d = least;
    while (d < n && n % d)
        ++d;
    return d < n ? d : n;
}

template <class K> struct Tile {
    typedef Order<K::R0[0], K::R0[1], K::R0[2], false> O0;
    typedef Order<K::R1[0], K::R1[1], K::R1[2], false> O1;
    typedef Order<K::R2[0], K::R2[1], K::R2[2], true> O2;
    static constexpr int N0 = O0::N, N1 = O1::N, N2 = K::KIND == HALVES ? 2 * O2::N : O2::N, LINE = O2::N;
    static constexpr bool REAL = K::KIND != COMPLEX, SPLIT = K::KIND == PAIRS;
    /* Rows are parted where columns are read: one step has all rows, a first one of several both rows of its pairs. */
    static constexpr bool PARTS_AT_STEP = SPLIT && (O1::STEPS == 1 || O1::M % 2 == 0);
    static constexpr int BINS = REAL ? N2 / 2 + 1 : N2;
    static constexpr bool RIDE = K::RIDES && SPLIT && N2 % 2 == 0;       /* column N2 / 2 on column 0 */
    static constexpr int COLUMNS = SPLIT ? BINS - RIDE : LINE;           /* lines along axes 1 and 0 */
    static constexpr int EXTRA = !SPLIT || RIDE ? 0 : 1 + (N2 % 2 == 0); /* places at the end of a line */
    static constexpr int SWEEP = K::KIND == HALVES ? LINE / 2 + 1 : K::KIND == SINGLE ? BINS : COLUMNS;
    static constexpr int ROWS = SPLIT ? (N1 + 1) / 2 : N1;
    static constexpr int LAST = N0 > 1 ? 0 : N1 > 1 || SPLIT ? 1 : 2; /* the axis next to the spectrum */

    /* Data: positions [LO, HI) of an axis; rows and points of lines that have any. */
    template <int X> static constexpr int lo() { return K::AXIS[X].first; }
    template <int X> static constexpr int hi() {
        return K::AXIS[X].count ? K::AXIS[X].first + (K::AXIS[X].count - 1) * K::AXIS[X].spread + 1 : K::AXIS[X].first;
    }
    static constexpr int D0 = hi<0>() - lo<0>();
    static constexpr int ROW_LO = SPLIT ? lo<1>() / 2 : lo<1>(), ROW_HI = SPLIT ? (hi<1>() + 1) / 2 : hi<1>();
    static constexpr int LINE_LO = K::KIND == HALVES ? lo<2>() / 2 : lo<2>();
    static constexpr int LINE_HI = K::KIND == HALVES ? (hi<2>() + 1) / 2 : hi<2>();
    static constexpr bool EMPTY = D0 == 0 || hi<1>() == lo<1>() || hi<2>() == lo<2>();
    static constexpr int DR = ROW_HI - ROW_LO, DX = LINE_HI - LINE_LO;
    static constexpr int WAIT = (LINE_HI + K::EARLY + 3) / 4 * 4; /* STAGED: numbers of a row */

    static constexpr int PITCH = K::PITCH, SLAB = ROWS * PITCH, PLANE = K::PLANE; /* of lines, axis 0, planes */
    static_assert(PITCH >= O2::SIZE + EXTRA && PLANE >= N0 * SLAB, "the planner's distances");
    static constexpr int TABLE = K::P * 32; /* bytes: where each plane is */
    static constexpr int SHARED = TABLE + K::P * PLANE * int(sizeof(cplx)) + (K::Bins::SCALED ? 64 : 0);

    /* Place of (row position s1, column place f or, of the odd row of a pair, its mirror m) in a slab. */
    static CF_DEVICE int row_at(int s1, int f, int m) {
        if constexpr (SPLIT)
            return s1 / 2 * PITCH + (s1 % 2 ? m : f);
        else
            return s1 * PITCH + f;
    }
    /* Is column k of a line the transform of real numbers, two rows' in one? (RIDE: of four.) */
    static CF_DEVICE bool own(int k) { return k == 0 || (!RIDE && 2 * k == N2); }
    static CF_DEVICE int mirror(int k) {
        if (SPLIT && own(k))
            return RIDE ? O2::frequency(N2 / 2) : O2::SIZE + (k > 0);
        return O2::frequency(k == 0 ? 0 : N2 - k);
    }
};

/* ---------------------------------------------------------------------------------------------------- where planes are */

/* Table entry of plane p: signal offset, spectrum offset, start of each axis; in 8, 8 and 3 x 4 bytes, then the channel. Where spectra
 * are SCALED, the low byte of the second is the exponent of a factor, as FP32 has it. */
template <class K> struct Places {
    smem<char> table;
    int live; /* planes of this block; table entries beyond repeat the last one */
    CF_DEVICE long long signal(int p) const { return smem_cast<long long>(table + p * 32)[0]; }
    CF_DEVICE long long spectrum(int p) const {
        const long long entry = smem_cast<long long>(table + p * 32)[1];
        return K::Bins::SCALED ? entry >> 8 : entry;
    }
    /* What the bins of the plane are multiplied by on their way to memory, or what undoes that. */
    CF_DEVICE real factor(int p) const {
        if constexpr (K::Bins::SCALED)
            return real(__uint_as_float((unsigned(smem_cast<long long>(table + p * 32)[1]) & 255u) << 23));
        else
            return 1;
    }
    template <int X> CF_DEVICE int start(int p) const {
        constexpr TileAxis a = K::AXIS[X];
        if constexpr (a.slices * a.tiles * a.shifts * a.phases == 1)
            return int(a.origin);
        else
            return smem_cast<int>(table + p * 32)[4 + X];
    }
    CF_DEVICE int channel(int p) const { return smem_cast<int>(table + p * 32)[7]; }
};

template <class K, int X, class Index> CF_DEVICE int start_of(Index &slice, Index &tile, Index &shift, Index &phase) {
    constexpr TileAxis a = K::AXIS[X];
    constexpr Index slices = Index(a.slices), tiles = Index(a.tiles), shifts = Index(a.shifts),
                    phases = Index(a.phases);
    const Index start = Index(a.origin) + slice % slices * Index(a.step) + tile % tiles * Index(a.tile_step) +
                        shift % shifts * Index(a.shift_step) + phase % phases * Index(a.phase_step);
    slice /= slices;
    tile /= tiles;
    shift /= shifts;
    phase /= phases;
    return int(start);
}

/* Rows of this kernel that one row of the whole transform is. */
template <class K> __host__ __device__ constexpr long long slices_of() {
    return K::AXIS[0].slices * K::AXIS[1].slices * K::AXIS[2].slices;
}

/* Where a plane's signal is: all of an entry but the place of its spectrum. */
template <class K, class Index>
CF_DEVICE void find_plane(smem<char> entry, Index row, Index column, Index columns, long long sample_stride,
                          long long base) {
    constexpr Index SLICES = Index(slices_of<K>());
    constexpr Index TILES = Index(K::AXIS[0].tiles * K::AXIS[1].tiles * K::AXIS[2].tiles);
    constexpr Index SHIFTS = Index(K::AXIS[0].shifts * K::AXIS[1].shifts * K::AXIS[2].shifts);
    constexpr Index PHASES = Index(K::AXIS[0].phases * K::AXIS[1].phases * K::AXIS[2].phases);
    Index slice = row % SLICES, tile = row / SLICES % TILES, shift = row / (SLICES * TILES) % SHIFTS;
    const Index sample = row / (SLICES * TILES * SHIFTS);
    Index phase = PHASES == 1 ? 0 : column / (columns / PHASES);
    const Index channel = PHASES == 1 ? column : column % (columns / PHASES);
    smem_cast<long long>(entry)[0] = base + (long long)sample * sample_stride + (long long)channel * K::CHANNEL_STRIDE;
    smem_cast<int>(entry)[6] = start_of<K, 2>(slice, tile, shift, phase);
    smem_cast<int>(entry)[5] = start_of<K, 1>(slice, tile, shift, phase);
    smem_cast<int>(entry)[4] = start_of<K, 0>(slice, tile, shift, phase);
    smem_cast<int>(entry)[7] = int(channel);
}

template <class K> CF_DEVICE float *scale_of_plane(const TileCall &call, long long row, long long column) {
    return call.scales + ((long long)blockIdx.y * call.scale_group_stride +
                          (row - call.row_base) / slices_of<K>() * ((call.columns + 7) / 8) + column / 8);
}

template <class K, bool INVERSE> CF_DEVICE Places<K> find_planes(smem<char> table, const TileCall &call) {
    const long long first = ((long long)blockIdx.x - call.first_block) * K::P, left = call.planes - first;
    const int live = left < K::P ? int(left) : K::P;
    for (int p = int(threadIdx.x); p < K::P; p += K::T) {
        const long long plane = first + (p < live ? p : live - 1);
        const long long row = call.row_first + plane / call.columns * call.row_step, column = plane % call.columns;
        smem<char> entry = table + p * 32;
        find_plane<K>(entry, row, column, call.columns, call.sample_stride, (long long)blockIdx.y * call.group_stride);
        const long long spectrum = (row - call.row_base) / call.row_split * call.row_split_stride +
                                   (row - call.row_base) % call.row_split * call.row_stride +
                                   column / call.column_split * call.column_split_stride +
                                   column % call.column_split * call.column_stride +
                                   (long long)blockIdx.y * call.spectrum_group_stride;
        if constexpr (!K::Bins::SCALED)
            smem_cast<long long>(entry)[1] = spectrum;
        else if constexpr (INVERSE)
            smem_cast<long long>(entry)[1] =
                spectrum << 8 | __float_as_uint(*scale_of_plane<K>(call, row, column)) >> 23;
        else
            smem_cast<long long>(entry)[1] = spectrum << 8;
    }
    __syncthreads();
    return {table, live};
}

/* Forward, of SCALED spectra: the exponent, as FP32 has it, of the power of two under which no bin leaves FP16's range where this is a plane's
 * largest magnitude, for a bin is at most the sum of its elements. Only every fourth power counts, so that planes of one layer mostly have the same;
 * FP16 has exponents enough. */
template <class K> struct Factor {
    typedef Tile<K> G;
    static constexpr int TOP = 15, SUM = bits_of((long long)G::D0 * (G::template hi<1>() - G::template lo<1>()) *
                                                 (G::template hi<2>() - G::template lo<2>()));
    static constexpr int LEAST =
        K::Storage::PLAIN ? 27 : 103; /* of numbers that have scales of FP32, or of FP16's smallest one */
    static CF_DEVICE int magnitude(float largest) { return max(int(__float_as_uint(largest) >> 23), LEAST) - 126; }
    /* Numbers near one, uniform or normal, are between the same two. */
    static CF_DEVICE int counted(float largest) { return ((magnitude(largest) + 4) >> 2) * 4 - 1; }
    /* By which the kernel of the axis that is slices here makes its sums smaller (fbfft/plan/kernel_split.c). */
    static constexpr int GROWTH = bits_of(slices_of<K>());
    static CF_DEVICE unsigned exponent(float largest) {
        return unsigned(max(127 + TOP - SUM - counted(largest), 1 + GROWTH));
    }
    /* What undoes it, and behind its exponent by how many powers of two bins are smaller than they might be (storage.cuh). Zeros have none,
     * and bear on no others where these are summed. */
    static CF_DEVICE float scale(float largest) {
        const unsigned less = unsigned(counted(largest) - magnitude(largest));
        return largest > 0 ? __uint_as_float((254 + GROWTH - exponent(largest)) << 23 | less << 21) : 0.0f;
    }
};

/* A plane's factor, for its bins; of every eighth column, what undoes it is noted. */
template <class K>
CF_DEVICE void set_factor(smem<char> table, const TileCall &call, int p, long long plane, float largest) {
    const unsigned exponent = Factor<K>::exponent(largest);
    smem<unsigned> low = smem_cast<unsigned>(table + (p * 32 + 8));
    low[0] = low[0] | exponent;
    const long long row = call.row_first + plane / call.columns * call.row_step, column = plane % call.columns;
    if (column % 8 == 0 && row % slices_of<K>() == 0)
        *scale_of_plane<K>(call, row, column) = Factor<K>::scale(largest);
}

/* Factors of what another kernel has found: a warp has a plane, a lane a part of the row's sample. They are there after a barrier. */
template <class K> CF_DEVICE void find_factors(smem<char> table, const TileCall &call, int live) {
    const long long first = ((long long)blockIdx.x - call.first_block) * K::P;
    const int lane = int(threadIdx.x) % 32;
    for (int p = int(threadIdx.x) / 32; p < live; p += K::T / 32) {
        const long long row = call.row_first + (first + p) / call.columns * call.row_step;
        const long long rows = call.scale_rows * slices_of<K>(), sample = row / rows - call.row_base / rows;
        const float *const part =
            call.largest + (long long)blockIdx.y * call.largest_group_stride + sample * call.parts;
        float largest = lane < call.parts ? part[lane] : 0.0f;
        for (int other = 16; other > 0; other /= 2)
            largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, other));
        if (lane == 0)
            set_factor<K>(table, call, p, first + p, largest);
    }
}

/* ---------------------------------------------------------------------------------------------------------- the signal */

/* Offset of position i of axis X in the signal, or `inside` becomes false and it is that of some element. */
template <class K, int X, class Offset> CF_DEVICE Offset offset_of(int i, int start, bool &inside) {
    constexpr TileAxis a = K::AXIS[X];
    constexpr Offset stride = Offset(K::AXIS_STRIDE[X]);
    int e = i - a.first;
    constexpr bool all = a.spread == 1;
    if constexpr (!all) {
        inside = inside && e % a.spread == 0;
        e /= a.spread;
    }
    if constexpr (!a.checked)
        return Offset(start + e * int(a.step)) * stride;
    int c = start + e * int(a.step);
    bool in = c >= int(a.lower) && c < int(a.upper);
    if constexpr (a.mode == CIRCULAR)
        c = c % int(a.size) + (c % int(a.size) < 0 ? int(a.size) : 0);
    else if constexpr (a.mode == REFLECT)
        c = c < 0 ? -c : c >= int(a.size) ? 2 * (int(a.size) - 1) - c : c;
    else if constexpr (a.mode == REPLICATE)
        c = c < 0 ? 0 : c >= int(a.size) ? int(a.size) - 1 : c;
    in = in && c >= 0 && c < int(a.size);
    inside = inside && in;
    return in ? Offset(c) * stride : Offset(0);
}

/* The index of one item of a sweep over a block's lines: [P][D0][DR][DX], or with planes fastest. */
struct TileItem {
    int p, i0, row, x;
};
template <class K> CF_DEVICE TileItem item_of(int n) {
    typedef Tile<K> G;
    TileItem t;
    if constexpr (K::PLANES_TOUCH) {
        t.p = n % K::P;
        n /= K::P;
        t.x = n % G::DX + G::LINE_LO;
        n /= G::DX;
        t.row = n % G::DR + G::ROW_LO;
        t.i0 = n / G::DR + G::template lo<0>();
    } else {
        t.x = n % G::DX + G::LINE_LO;
        n /= G::DX;
        t.row = n % G::DR + G::ROW_LO;
        n /= G::DR;
        t.i0 = n % G::D0 + G::template lo<0>();
        t.p = n / G::D0;
    }
    return t;
}

/* Offsets of the one or two numbers of an item. */
template <class K> struct Pair {
    typename K::Offset at[2];
    bool inside[2];
};
template <class K> CF_DEVICE Pair<K> pair_of(const TileItem &t, const Places<K> &places) {
    typedef Tile<K> G;
    typedef typename K::Offset Offset;
    Pair<K> q;
    q.inside[0] = q.inside[1] = true;
    bool common = true;
    const Offset o0 = offset_of<K, 0, Offset>(t.i0, places.template start<0>(t.p), common);
    const int s1 = places.template start<1>(t.p), s2 = places.template start<2>(t.p);
    if constexpr (K::KIND == PAIRS) {
        const Offset o2 = offset_of<K, 2, Offset>(t.x, s2, common);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int i = 2 * t.row + h;
            const bool data = i >= G::template lo<1>() && i < G::template hi<1>();
            q.inside[h] = common && data;
            q.at[h] = o0 + o2 + offset_of<K, 1, Offset>(data ? i : G::template lo<1>(), s1, q.inside[h]);
        }
    } else if constexpr (K::KIND == HALVES) {
        const Offset o1 = offset_of<K, 1, Offset>(t.row, s1, common);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int i = 2 * t.x + h;
            const bool data = i >= G::template lo<2>() && i < G::template hi<2>();
            q.inside[h] = common && data;
            q.at[h] = o0 + o1 + offset_of<K, 2, Offset>(data ? i : G::template lo<2>(), s2, q.inside[h]);
        }
    } else {
        const Offset o1 = offset_of<K, 1, Offset>(t.row, s1, common);
        q.at[0] = o0 + o1 + offset_of<K, 2, Offset>(t.x, s2, common);
        q.inside[0] = common;
        q.inside[1] = false;
    }
    return q;
}

template <class K> CF_DEVICE int line_place(const TileItem &t) {
    typedef Tile<K> G;
    return t.p * G::PLANE + t.i0 * G::SLAB + t.row * G::PITCH + G::O2::time(t.x);
}

/* Complex numbers of a signal. */
template <class K> CF_DEVICE cplx load_pair(const typename K::Storage::bits *p) {
    typedef typename K::Storage S;
    if constexpr (S::PLAIN) {
        const typename PairOf<real>::type v = __ldg(reinterpret_cast<const typename PairOf<real>::type *>(p));
        return {v.x, v.y};
    } else {
        return S::pair(__ldg(reinterpret_cast<const unsigned *>(p)));
    }
}
template <class K> CF_DEVICE void store_pair(typename K::Storage::bits *p, cplx v) {
    typedef typename K::Storage S;
    if constexpr (S::PLAIN) {
        *reinterpret_cast<cplx *>(p) = v;
    } else {
        *reinterpret_cast<unsigned *>(p) = S::word(v);
    }
}

template <class K> CF_DEVICE void load_signal(smem<cplx> z, const Places<K> &places, const TileCall &call) {
    typedef Tile<K> G;
    typedef typename K::Storage Storage;
    typedef const typename Storage::bits *In;
    /* Numbers that are converted take more registers on their way. */
    constexpr int ITEMS = K::P * G::D0 * G::DR * G::DX, BATCH = Storage::PLAIN ? 8 : 4;
    const In in = static_cast<In>(call.in);
    const real scale = real(call.scale);
    for (int base = int(threadIdx.x); base < ITEMS; base += K::T * BATCH) {
        cplx v[BATCH];
        int place[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const int n = base + b * K::T;
            const TileItem t = item_of<K>(n < ITEMS ? n : ITEMS - 1);
            const Pair<K> q = pair_of<K>(t, places);
            const In from = in + places.signal(t.p) * (K::KIND == COMPLEX ? 2 : 1);
            place[b] = line_place<K>(t);
            if constexpr (K::KIND == COMPLEX) {
                v[b] = load_pair<K>(from + 2 * q.at[0]);
                v[b] = {q.inside[0] ? v[b].x : real(0), q.inside[0] ? v[b].y : real(0)};
            } else {
                v[b].x = Storage::load(from + q.at[0]);
                v[b].x = q.inside[0] ? v[b].x : real(0);
                v[b].y = 0;
                if constexpr (K::KIND != SINGLE) {
                    v[b].y = Storage::load(from + q.at[1]);
                    v[b].y = q.inside[1] ? v[b].y : real(0);
                }
            }
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b)
            if (base + b * K::T < ITEMS)
                z[place[b]] = K::SCALED ? cplx{scale * v[b].x, scale * v[b].y} : v[b];
    }
}

template <class K> CF_DEVICE void put(typename K::Storage::bits *to, real value, bool accumulate) {
    K::Storage::store(to, accumulate ? value + K::Storage::load(to) : value);
}

/* STAGED: the pieces of WIDE numbers of the block's rows, as its threads share them: piece i of a thread is in some plane and row at x.
 * What of it stays the same for a thread does not depend on i: its plane if planes touch, else its place in the row. */
template <class K, int WIDE> struct Pieces {
    typedef Tile<K> G;
    static constexpr int ROWS = G::D0 * (G::template hi<1>() - G::template lo<1>()), ACROSS = G::WAIT / WIDE;
    static constexpr int WIDTH = divisor_from(K::T, ACROSS), TIMES = (ACROSS + WIDTH - 1) / WIDTH;
    static constexpr int OF_A_PLANE = K::T / K::P; /* threads; those beyond P times as many have nothing to do */
    static constexpr int EACH = K::PLANES_TOUCH ? (ROWS * ACROSS + OF_A_PLANE - 1) / OF_A_PLANE
                                                : (K::P * ROWS * WIDTH + K::T - 1) / K::T * TIMES;
    static_assert(!K::PLANES_TOUCH || OF_A_PLANE > 0, "every plane has threads");
    int p, row, x;
    bool exists;
    CF_DEVICE Pieces(int i) {
        if constexpr (K::PLANES_TOUCH) {
            const int n = int(threadIdx.x) / K::P + i * OF_A_PLANE;
            p = int(threadIdx.x) % K::P;
            row = n / ACROSS;
            x = n % ACROSS * WIDE;
            exists = n < ROWS * ACROSS && (K::T % K::P == 0 || int(threadIdx.x) < OF_A_PLANE * K::P);
        } else {
            const int n = int(threadIdx.x) / WIDTH + i / TIMES * (K::T / WIDTH);
            const int across = int(threadIdx.x) % WIDTH + i % TIMES * WIDTH;
            p = n / ROWS;
            row = n % ROWS;
            x = across * WIDE;
            exists = n < K::P * ROWS && across < ACROSS;
        }
    }
};

/* Where a piece stands and waits: x counts what waits of its row. */
template <class K> struct StagedItem {
    smem<real> shared;
    typename K::Offset offset;
    bool inside;
};
template <class K, int WIDE>
CF_DEVICE StagedItem<K> staged_item(smem<cplx> z, const Places<K> &places, int p, int row, int x) {
    typedef Tile<K> G;
    typedef typename K::Offset Offset;
    constexpr int ROWS = G::template hi<1>() - G::template lo<1>();
    const int i = row % ROWS + G::template lo<1>(), i0 = row / ROWS + G::template lo<0>();
    const int start = places.template start<2>(p);
    StagedItem<K> r;
    const int point = x - K::EARLY;
    r.inside = point + (K::EARLY ? WIDE - 1 : 0) >= G::template lo<2>() && point < G::template hi<2>();
    r.offset = offset_of<K, 2, Offset>(r.inside ? point : G::template lo<2>(), start, r.inside);
    r.offset += offset_of<K, 0, Offset>(i0, places.template start<0>(p), r.inside) +
                offset_of<K, 1, Offset>(i, places.template start<1>(p), r.inside);
    r.shared = smem_cast<real>(z + (p * G::PLANE + i0 * G::SLAB + i / 2 * G::PITCH)) + (x + i % 2 * G::WAIT);
    return r;
}
/* So many 16-bit numbers at once, between memory and shared memory, where they are FP32. */
template <int WIDE> struct WordsOf { typedef unsigned short type; };
template <> struct WordsOf<2> { typedef unsigned type; };
template <> struct WordsOf<4> { typedef uint2 type; };
template <class S> CF_DEVICE void put_numbers(smem<real> to, unsigned short v) { to[0] = S::number(v); }
template <class S> CF_DEVICE float2 numbers_of(unsigned v) {
    return make_float2(float(S::number((unsigned short)v)), float(S::number((unsigned short)(v >> 16))));
}
template <class S> CF_DEVICE void put_numbers(smem<real> to, unsigned v) {
    smem_cast<float2>(to)[0] = numbers_of<S>(v);
}
template <class S> CF_DEVICE void put_numbers(smem<real> to, uint2 v) {
    const float2 a = numbers_of<S>(v.x), b = numbers_of<S>(v.y);
    smem_cast<float4>(to)[0] = make_float4(a.x, a.y, b.x, b.y);
}
template <class S> CF_DEVICE unsigned word_of(float2 v) { return S::rounded(v.x) | (unsigned)S::rounded(v.y) << 16; }

/* A piece of a row to memory, rounded if need be. */
template <class S> CF_DEVICE void store_piece(float *to, float4 v, bool accumulate) {
    float4 *const piece = reinterpret_cast<float4 *>(to);
    *piece = accumulate ? sum_of(v, *piece) : v;
}
template <class S> CF_DEVICE void store_piece(float *to, float2 v, bool accumulate) {
    float2 *const piece = reinterpret_cast<float2 *>(to);
    *piece = accumulate ? sum_of(v, *piece) : v;
}
template <class S> CF_DEVICE void store_piece(unsigned short *to, float2 v, bool accumulate) {
    unsigned *const piece = reinterpret_cast<unsigned *>(to);
    *piece = word_of<S>(accumulate ? sum_of(v, numbers_of<S>(*piece)) : v);
}
template <class S> CF_DEVICE void store_piece(unsigned short *to, float4 v, bool accumulate) {
    uint2 *const piece = reinterpret_cast<uint2 *>(to);
    float2 a = make_float2(v.x, v.y), b = make_float2(v.z, v.w);
    if (accumulate) {
        const uint2 old = *piece;
        a = sum_of(a, numbers_of<S>(old.x));
        b = sum_of(b, numbers_of<S>(old.y));
    }
    *piece = make_uint2(word_of<S>(a), word_of<S>(b));
}

/* The rows are there after wait_async() and a barrier. */
template <class K, int WIDE> CF_DEVICE void load_staged(smem<cplx> z, const Places<K> &places, const TileCall &call) {
    typedef typename K::Storage Storage;
    typedef Pieces<K, WIDE> Piece;
    const typename Storage::bits *const in = static_cast<const typename Storage::bits *>(call.in);
    if constexpr (Storage::PLAIN) {
#pragma unroll 8
        for (int i = 0; i < Piece::EACH; ++i) {
            const Piece q(i);
            if (!q.exists)
                continue;
            const StagedItem<K> r = staged_item<K, WIDE>(z, places, q.p, q.row, q.x);
            copy_async<WIDE>(r.shared, in + places.signal(q.p) + r.offset, r.inside);
        }
    } else {
        /* These pass through registers, so many have to be under way at once. */
        typedef typename WordsOf<WIDE>::type Words;
        constexpr int MOST = 32 / WIDE, BATCH = Piece::EACH < MOST ? Piece::EACH : MOST;
#pragma unroll 1
        for (int first = 0; first < Piece::EACH; first += BATCH) {
            Words v[BATCH];
#pragma unroll
            for (int i = 0; i < BATCH; ++i) {
                const Piece q(first + i);
                v[i] = Words();
                if (q.exists) {
                    const StagedItem<K> r = staged_item<K, WIDE>(z, places, q.p, q.row, q.x);
                    if (r.inside)
                        v[i] = __ldg(reinterpret_cast<const Words *>(in + places.signal(q.p) + r.offset));
                }
            }
#pragma unroll
            for (int i = 0; i < BATCH; ++i) {
                const Piece q(first + i);
                if (q.exists)
                    put_numbers<Storage>(staged_item<K, WIDE>(z, places, q.p, q.row, q.x).shared, v[i]);
            }
        }
    }
}
template <class K, int WIDE> CF_DEVICE void store_staged(smem<cplx> z, const Places<K> &places, const TileCall &call) {
    typedef typename K::Storage::bits bits;
    typedef Pieces<K, WIDE> Piece;
    const bool accumulate = call.accumulate;
#pragma unroll 4
    for (int i = 0; i < Piece::EACH; ++i) {
        const Piece q(i);
        if (!q.exists || q.p >= places.live)
            continue;
        const StagedItem<K> r = staged_item<K, WIDE>(z, places, q.p, q.row, q.x);
        if (!r.inside)
            continue;
        bits *const to = static_cast<bits *>(call.out) + places.signal(q.p) + r.offset;
        real bias = 0;
        if (call.bias)
            bias = K::Storage::load(static_cast<const bits *>(call.bias) + (long long)blockIdx.y * K::CHANNELS +
                                    places.channel(q.p));
        if constexpr (WIDE > 1) {
            typedef typename WideOf<WIDE>::type Wide;
            const Wide waiting = smem_cast<Wide>(r.shared)[0];
            store_piece<typename K::Storage>(to, plus_number(waiting, bias), accumulate);
        } else {
            const real v = r.shared[0];
            put<K>(to, v + bias, accumulate);
        }
    }
}

template <class K> CF_DEVICE void load_planes(smem<cplx> z, const Places<K> &places, const TileCall &call) {
    if constexpr (K::STAGED)
        load_staged<K, K::WIDE>(z, places, call);
    else
        load_signal<K>(z, places, call);
}

/* The two rows of a line, as they wait in its place; one of them may not exist. */
template <class K> CF_DEVICE void get_rows(cplx *v, smem<cplx> line, bool first, bool second) {
    typedef Tile<K> G;
    constexpr int QUADS = G::WAIT / 4;
    smem<float4> rows = smem_cast<float4>(line);
    unroll<0, G::LINE>([&](auto x) { v[x] = {0, 0}; });
    unroll<(G::LINE_LO + K::EARLY) / 4, QUADS>([&](auto q) {
        const float4 none = make_float4(0, 0, 0, 0), a = first ? rows[int(q)] : none,
                     b = second ? rows[QUADS + q] : none;
        constexpr int X = 4 * decltype(q)::value - K::EARLY;
        if constexpr (X >= G::LINE_LO && X < G::LINE_HI)
            v[X] = {a.x, b.x};
        if constexpr (X + 1 >= G::LINE_LO && X + 1 < G::LINE_HI)
            v[X + 1] = {a.y, b.y};
        if constexpr (X + 2 >= G::LINE_LO && X + 2 < G::LINE_HI)
            v[X + 2] = {a.z, b.z};
        if constexpr (X + 3 >= G::LINE_LO && X + 3 < G::LINE_HI)
            v[X + 3] = {a.w, b.w};
    });
}
template <class K> CF_DEVICE void put_rows(smem<cplx> line, const cplx *v, real s, bool second) {
    constexpr int QUADS = Tile<K>::WAIT / 4;
    smem<float4> rows = smem_cast<float4>(line);
    unroll<Tile<K>::LINE_LO / 4, QUADS>([&](auto q) {
        rows[int(q)] = make_float4(s * v[4 * q].x, s * v[4 * q + 1].x, s * v[4 * q + 2].x, s * v[4 * q + 3].x);
        if (second)
            rows[QUADS + q] = make_float4(s * v[4 * q].y, s * v[4 * q + 1].y, s * v[4 * q + 2].y, s * v[4 * q + 3].y);
    });
}
/* A line of complex numbers, two at a time. */
template <int N> CF_DEVICE void read_line(cplx *v, smem<cplx> line) {
    unroll<0, N / 2>([&](auto i) {
        const float4 a = smem_cast<float4>(line)[int(i)];
        v[2 * i] = {a.x, a.y};
        v[2 * i + 1] = {a.z, a.w};
    });
}
template <int N> CF_DEVICE void write_line(smem<cplx> line, const cplx *v) {
    unroll<0, N / 2>([&](auto i) {
        smem_cast<float4>(line)[int(i)] = make_float4(v[2 * i].x, v[2 * i].y, v[2 * i + 1].x, v[2 * i + 1].y);
    });
}

template <class K> CF_DEVICE void store_signal(smem<cplx> z, const Places<K> &places, const TileCall &call) {
    typedef Tile<K> G;
    typedef typename K::Storage::bits bits;
    constexpr int ITEMS = K::P * G::D0 * G::DR * G::DX;
    const bool accumulate = call.accumulate;
    const real scale = real(call.scale);
#pragma unroll 4
    for (int n = int(threadIdx.x); n < ITEMS; n += K::T) {
        const TileItem t = item_of<K>(n);
        if (t.p >= places.live)
            continue;
        const Pair<K> q = pair_of<K>(t, places);
        bits *const to = static_cast<bits *>(call.out) + places.signal(t.p) * (K::KIND == COMPLEX ? 2 : 1);
        cplx v = z[line_place<K>(t)];
        const real factor = scale * places.factor(t.p);
        v = {factor * v.x, factor * v.y};
        if (K::KIND != COMPLEX && call.bias) {
            const real bias = K::Storage::load(static_cast<const bits *>(call.bias) +
                                               (long long)blockIdx.y * K::CHANNELS + places.channel(t.p));
            v = {v.x + bias, v.y + bias};
        }
        if constexpr (K::KIND == COMPLEX) {
            if (q.inside[0]) {
                store_pair<K>(to + 2 * q.at[0], v);
            }
        } else {
            if (q.inside[0])
                put<K>(to + q.at[0], v.x, accumulate);
            if (K::KIND != SINGLE && q.inside[1])
                put<K>(to + q.at[1], v.y, accumulate);
        }
    }
}

/* -------------------------------------------------------------------------------------------------------- the spectrum */

template <class K> CF_DEVICE long long bin_of(int k0, int k1, int k, long long unit) {
    const long long bin =
        (long long)k0 * K::BIN_STRIDE[0] + (long long)k1 * K::BIN_STRIDE[1] + (long long)k * K::BIN_STRIDE[2];
    return K::UNIT ? bin : bin * unit;
}

/* The place of bin (k0, k1) of column k in its plane. */
template <class K> CF_DEVICE int bin_place(int k0, int k1, int k) {
    typedef Tile<K> G;
    return G::O0::frequency(k0) * G::SLAB + G::row_at(G::O1::frequency(k1), G::O2::frequency(k), G::mirror(k));
}

struct TileBin {
    int p, k0, k1, k;
};
/* n counts [P][N0][N1][columns] in the order of the spectrum in memory. */
template <class K, int COLUMNS> CF_DEVICE TileBin bin_item(int n) {
    typedef Tile<K> G;
    TileBin t;
    if (K::ORDER == BY_PLANE) {
        t.p = n % K::P;
        n /= K::P;
    }
    if (K::ORDER == BY_ROW) {
        t.k0 = n % G::N0;
        n /= G::N0;
        t.k1 = n % G::N1;
        n /= G::N1;
        t.k = n % COLUMNS;
        n /= COLUMNS;
    } else {
        t.k = n % COLUMNS;
        n /= COLUMNS;
        t.k1 = n % G::N1;
        n /= G::N1;
        t.k0 = n % G::N0;
        n /= G::N0;
    }
    if (K::ORDER != BY_PLANE)
        t.p = n;
    return t;
}

/* Columns 0 .. COLUMNS - 1 between shared memory and the spectrum, COLUMNS being all of them or 1. HALVES: columns k and LINE - k
 * at once. */
template <class K, int COLUMNS> CF_DEVICE void store_bins(smem<cplx> z, const Places<K> &places, const TileCall &call) {
    typedef Tile<K> G;
    typedef typename K::Bins Bins;
    typename Bins::number *const out = static_cast<typename Bins::number *>(call.out);
#pragma unroll 2
    for (int n = int(threadIdx.x); n < K::P * G::N0 * G::N1 * COLUMNS; n += K::T) {
        const TileBin t = bin_item<K, COLUMNS>(n);
        if (t.p >= places.live)
            continue;
        smem<cplx> plane = z + t.p * G::PLANE;
        typename Bins::number *const to = out + places.spectrum(t.p);
        const real factor = places.factor(t.p);
        const cplx a = plane[bin_place<K>(t.k0, t.k1, t.k)];
        if constexpr (K::KIND == HALVES) {
            const cplx b = plane[bin_place<K>(0, 0, t.k ? G::LINE - t.k : 0)];
            const cplx even = half(a + conj(b)), odd = root<G::N2>(t.k) * times_minus_i(half(a - conj(b)));
            Bins::store(to + bin_of<K>(0, 0, t.k, call.bin_unit), even + odd, factor);
            Bins::store(to + bin_of<K>(0, 0, G::LINE - t.k, call.bin_unit), conj(even - odd), factor);
        } else if (G::RIDE && t.k == 0) {
            const cplx b = plane[bin_place<K>(t.k0 ? G::N0 - t.k0 : 0, t.k1 ? G::N1 - t.k1 : 0, 0)];
            Bins::store(to + bin_of<K>(t.k0, t.k1, 0, call.bin_unit), half(a + conj(b)), factor);
            Bins::store(to + bin_of<K>(t.k0, t.k1, G::N2 / 2, call.bin_unit), times_minus_i(half(a - conj(b))), factor);
        } else {
            Bins::store(to + bin_of<K>(t.k0, t.k1, t.k, call.bin_unit), a, factor);
        }
    }
}

/* Is bin (k0, k1) of column 0 or N2 / 2 its own mirror image? Its imaginary part does not count. */
template <class K> CF_DEVICE bool own_mirror(int k0, int k1) {
    typedef Tile<K> G;
    return (k0 == 0 || 2 * k0 == G::N0) && (k1 == 0 || 2 * k1 == G::N1);
}

template <class K, int COLUMNS> CF_DEVICE void load_bins(smem<cplx> z, const Places<K> &places, const TileCall &call) {
    typedef Tile<K> G;
    typedef typename K::Bins Bins;
    const typename Bins::number *const in = static_cast<const typename Bins::number *>(call.in);
#pragma unroll 4
    for (int n = int(threadIdx.x); n < K::P * G::N0 * G::N1 * COLUMNS; n += K::T) {
        const TileBin t = bin_item<K, COLUMNS>(n);
        smem<cplx> plane = z + t.p * G::PLANE;
        const typename Bins::number *const from = in + places.spectrum(t.p);
        cplx a = Bins::load(from + bin_of<K>(t.k0, t.k1, t.k, call.bin_unit));
        if constexpr (K::KIND == HALVES) {
            cplx b = Bins::load(from + bin_of<K>(0, 0, G::LINE - t.k, call.bin_unit));
            if (t.k == 0) {
                a = {a.x, 0};
                b = {b.x, 0};
            }
            const cplx even = a + conj(b), odd = times_i(conj(root<G::N2>(t.k)) * (a - conj(b)));
            if (t.k > 0)
                plane[bin_place<K>(0, 0, G::LINE - t.k)] = conj(even - odd);
            plane[bin_place<K>(0, 0, t.k)] = even + odd;
        } else if (G::RIDE && t.k == 0) {
            const cplx b = Bins::load(from + bin_of<K>(t.k0, t.k1, G::N2 / 2, call.bin_unit));
            plane[bin_place<K>(t.k0, t.k1, 0)] = own_mirror<K>(t.k0, t.k1) ? cplx{a.x, b.x} : a + times_i(b);
        } else {
            if (G::REAL && G::own(t.k) && own_mirror<K>(t.k0, t.k1))
                a.y = 0;
            plane[bin_place<K>(t.k0, t.k1, t.k)] = a;
            if (K::KIND == SINGLE && t.k > 0)
                plane[bin_place<K>(0, 0, G::N2 - t.k)] = conj(a);
        }
    }
}

/* --------------------------------------------------------------------------------------------------------------- steps */

template <bool FIRST, class A, class B> struct Choice { typedef A type; };
template <class A, class B> struct Choice<false, A, B> { typedef B type; };

/* One step of all lines along axis 2. */
template <class K, int STEP, bool INVERSE>
CF_DEVICE void line_step(smem<cplx> z, const Places<K> &places, const TileCall &call) {
    typedef Tile<K> G;
    typedef Step<typename G::O2, STEP> S;
    constexpr int LINES = K::P * G::D0 * G::DR;
    constexpr bool SPECTRUM = K::DIRECT && G::LAST == 2 && S::LAST, TIME = STEP == 1;
#pragma unroll 1
    for (int n = int(threadIdx.x); n < LINES * S::TASKS; n += K::T) {
        const int line = LINES >= 16 ? n % LINES : n / S::TASKS, t = LINES >= 16 ? n / LINES : n % S::TASKS;
        const int p = line / (G::D0 * G::DR), i0 = line / G::DR % G::D0 + G::template lo<0>(),
                  row = line % G::DR + G::ROW_LO;
        smem<cplx> at = z + (p * G::PLANE + i0 * G::SLAB + row * G::PITCH + S::start(t));
        const long long bins = SPECTRUM ? places.spectrum(p) + bin_of<K>(0, 0, S::frequency(t), call.bin_unit) : 0;
        const long long gap = bin_of<K>(0, 0, S::FREQUENCY_GAP, call.bin_unit);
        cplx v[S::R];
        const bool first = G::template lo<1>() % 2 == 0 || 2 * row >= G::template lo<1>();
        const bool second = 2 * row + 1 < G::template hi<1>();
        if constexpr (K::STAGED) {
            if constexpr (INVERSE) {
                read_line<S::R>(v, at);
                dft_inverse<S::R>(v);
                put_rows<K>(at, v, real(call.scale) * places.factor(p), second);
            } else {
                get_rows<K>(v, at, first, second);
                if (K::SCALED)
                    unroll<0, S::R>([&](auto r) { v[r] = {real(call.scale) * v[r].x, real(call.scale) * v[r].y}; });
                dft<S::R, G::LINE_HI>(v);
                write_line<S::R>(at, v);
            }
            continue;
        }
        unroll<0, S::R>([&](auto r) {
            const int j = t + r * S::TIME_GAP;
            if constexpr (SPECTRUM && INVERSE)
                v[r] = K::Bins::load(static_cast<const typename K::Bins::number *>(call.in) + bins + r * gap);
            else if (TIME && !INVERSE && (j < G::LINE_LO || j >= G::LINE_HI))
                v[r] = {0, 0};
            else
                v[r] = at[r * S::STRIDE];
        });
        step_transform<typename G::O2, STEP, INVERSE, G::LINE_HI>(v, t);
        unroll<0, S::R>([&](auto r) {
            const int j = t + r * S::TIME_GAP;
            if constexpr (SPECTRUM && !INVERSE) {
                if (p < places.live)
                    K::Bins::store(static_cast<typename K::Bins::number *>(call.out) + bins + r * gap, v[r],
                                   places.factor(p));
            } else if (!(TIME && INVERSE && (j < G::LINE_LO || j >= G::LINE_HI)))
                at[r * S::STRIDE] = v[r];
        });
    }
}

/* PAIRS: a column's two numbers of one line, from its places in Z to the spectra of two rows, and back. If a product follows or went before
 * (RIDES is false), an own column gives the same number twice here, and its imaginary parts back are zero already, but for rounding. */
template <class K> CF_DEVICE void part(cplx &a, cplx &b, int k) {
    const cplx za = a, zb = b;
    if (K::RIDES && Tile<K>::own(k)) {
        a = {za.x, Tile<K>::RIDE ? zb.x : real(0)};
        b = {za.y, Tile<K>::RIDE ? zb.y : real(0)};
    } else {
        a = half(za + conj(zb));
        b = times_minus_i(half(za - conj(zb)));
    }
}
template <class K> CF_DEVICE void join(cplx &a, cplx &b, int k) {
    const cplx ra = a, rb = b;
    if (K::RIDES && Tile<K>::own(k)) {
        a = {ra.x, rb.x};
        b = {ra.y, rb.y};
    } else {
        a = ra + times_i(rb);
        b = conj(ra) + times_i(conj(rb));
    }
}

/* The same for all lines, where it cannot be done in registers (PARTS_AT_STEP). */
template <class K, bool INVERSE> CF_DEVICE void part_lines(smem<cplx> z) {
    typedef Tile<K> G;
#pragma unroll 4
    for (int n = int(threadIdx.x); n < K::P * G::D0 * G::DR * G::COLUMNS; n += K::T) {
        const int k = n % G::COLUMNS, line = n / G::COLUMNS;
        smem<cplx> at =
            z + (line / (G::D0 * G::DR) * G::PLANE + (line / G::DR % G::D0 + G::template lo<0>()) * G::SLAB +
                 (line % G::DR + G::ROW_LO) * G::PITCH);
        const int f = G::O2::frequency(k), m = G::mirror(k);
        const bool both = 2 * (line % G::DR + G::ROW_LO) + 1 < G::N1;
        cplx a = at[f], b = {0, 0};
        if (!INVERSE && !K::RIDES && G::own(k))
            b = a;
        else if (!INVERSE ? G::RIDE || !G::own(k) : both)
            b = at[m];
        if constexpr (INVERSE)
            join<K>(a, b, k);
        else
            part<K>(a, b, k);
        at[f] = a;
        at[m] = b;
    }
}

/* One task of a step of all lines along axis X, 1 or 0: task t of the line in column k; `other` is its place along the other one of
 * these axes. Where a first step of several parts rows, the task is two of them, t and t + 1, which have the rows of the same pairs. */
template <class K, int X, int STEP> struct ColumnTask {
    typedef Tile<K> G;
    typedef typename Choice<X == 0, typename G::O0, typename G::O1>::type O;
    typedef Step<O, STEP> S;
    static constexpr bool TIME = STEP == 1;                           /* next to the signal */
    static constexpr bool PARTS = X == 1 && TIME && G::PARTS_AT_STEP; /* and rows are parted on the way */
    static constexpr bool TWO = PARTS && O::STEPS > 1;
    static constexpr int TASKS = S::TASKS / (TWO ? 2 : 1), POINTS = S::R * (TWO ? 2 : 1);
    static constexpr int OTHERS = X == 1 ? G::D0 : G::N1, COUNT = K::P * G::COLUMNS * OTHERS * TASKS;
    static constexpr int LO = G::template lo<X>(), HI = G::template hi<X>();
    /* Of PAIRS, lines are stored whole. */
    static constexpr int KEEP_LO = X == 1 && G::SPLIT ? 2 * G::ROW_LO : LO,
                         KEEP_HI = X == 1 && G::SPLIT ? 2 * G::ROW_HI : HI;
    /* Tasks begin with an even row: places of register r follow from r. */
    static constexpr bool EVEN = X == 1 && G::SPLIT && (TWO || (STEP == 2 && O::C == 1 && O::B % 2 == 0));
    int p, k, other, t, f, m, start, fixed, offset; /* of the plane */
    smem<cplx> plane;
    CF_DEVICE ColumnTask(smem<cplx> z, int n) {
        if (K::ORDER == BY_PLANE) {
            p = n % K::P;
            k = n / K::P % G::COLUMNS;
            other = n / (K::P * G::COLUMNS) % OTHERS;
            t = n / (K::P * G::COLUMNS * OTHERS);
        } else {
            k = n % G::COLUMNS;
            other = n / G::COLUMNS % OTHERS;
            t = n / (G::COLUMNS * OTHERS) % TASKS;
            p = n / (G::COLUMNS * OTHERS * TASKS);
        }
        if (TWO)
            t *= 2;
        f = G::O2::frequency(k);
        m = G::mirror(k);
        start = S::start(t);
        offset = p * G::PLANE + (X == 1 ? (other + G::template lo<0>()) * G::SLAB : 0);
        plane = z + offset;
        fixed = X == 0 ? G::row_at(G::O1::frequency(other), f, m) : 0;
    }
    /* The same task of a config with the same geometry. */
    template <class Other>
    CF_DEVICE ColumnTask(smem<cplx> z, const Other &o)
        : p(o.p), k(o.k), other(o.other), t(o.t), f(o.f), m(o.m), start(o.start), fixed(o.fixed), offset(o.offset),
          plane(z + o.offset) {}
    CF_DEVICE int place(int r) const {
        if constexpr (EVEN && !TWO)
            return start / 2 * G::PITCH + r / 2 * G::PITCH + (r % 2 ? m : f);
        return X == 0 ? (start + r * S::STRIDE) * G::SLAB + fixed : G::row_at(start + r * S::STRIDE, f, m);
    }
    /* The bin of register 0 after the last step, and the way to the next one. */
    CF_DEVICE long long bins(long long unit) const {
        const int first = S::frequency(t);
        return bin_of<K>(X == 0 ? first : 0, X == 0 ? other : first, k, unit);
    }
    static CF_DEVICE long long bin_gap(long long unit) {
        return bin_of<K>(X == 0 ? S::FREQUENCY_GAP : 0, X == 0 ? 0 : S::FREQUENCY_GAP, 0, unit);
    }

    /* TWO: the places of register r and of S::R + r, where t is even and O::M as well. */
    CF_DEVICE int even_row(int r) const { return t / 2 * G::PITCH + r * (O::M / 2) * G::PITCH + f; }
    CF_DEVICE int odd_row(int r) const { return t / 2 * G::PITCH + r * (O::M / 2) * G::PITCH + m; }
    /* Some task has data there, or each, or this one. */
    template <int I> static constexpr bool some_data() {
        return (I + 1) * (O::M / 2) > G::ROW_LO && I * (O::M / 2) < G::ROW_HI;
    }
    template <int I> CF_DEVICE bool has_data() const {
        constexpr int FIRST = I * (O::M / 2);
        bool has = some_data<I>();
        if constexpr (FIRST < G::ROW_LO)
            has = has && t / 2 + FIRST >= G::ROW_LO;
        if constexpr (FIRST + O::M / 2 > G::ROW_HI)
            has = has && t / 2 + FIRST < G::ROW_HI;
        return has;
    }
    /* Where what belongs to the real and imaginary part of an own column comes from: with one of them for both, part() need not ask. */
    CF_DEVICE int mirror_in() const { return !K::RIDES && G::own(k) ? f : m; }

    CF_DEVICE void get(cplx *v) const {
        unroll<0, S::R>([&](auto r) {
            v[r] = plane[TWO ? even_row(r) : place(r)];
            if constexpr (TWO)
                v[S::R + r] = plane[odd_row(r)];
        });
    }
    CF_DEVICE void put(const cplx *v) const {
        unroll<0, S::R>([&](auto r) {
            plane[TWO ? even_row(r) : place(r)] = v[r];
            if constexpr (TWO)
                plane[odd_row(r)] = v[S::R + r];
        });
    }
    /* The step's arithmetic; forward, only DATA points of the axis are not zero. */
    template <bool INVERSE, int DATA = O::N> CF_DEVICE void transform(cplx *v) const {
        step_transform<O, STEP, INVERSE, DATA>(v, t);
        if constexpr (TWO)
            step_transform<O, STEP, INVERSE, DATA>(v + S::R, t + 1);
    }
    /* What a forward step begins with. */
    CF_DEVICE void get_forward(cplx *v) const {
        const int mirror = mirror_in();
        if constexpr (TWO) {
            unroll<0, S::R>([&](auto r) {
                constexpr int I = decltype(r)::value;
                cplx a = {0, 0}, b = {0, 0};
                if constexpr (some_data<I>()) {
                    if (has_data<I>()) {
                        a = plane[even_row(I)];
                        if (!K::RIDES || G::RIDE || !G::own(k))
                            b = plane[odd_row(I) - m + mirror];
                    }
                    part<K>(a, b, k);
                }
                v[r] = a;
                v[S::R + r] = b;
            });
        } else if constexpr (PARTS) {
            unroll<0, G::ROWS>([&](auto pair) {
                cplx a = {0, 0}, b = {0, 0};
                if constexpr (decltype(pair)::value >= G::ROW_LO && decltype(pair)::value < G::ROW_HI) {
                    a = plane[pair * G::PITCH + f];
                    if (!K::RIDES || G::RIDE || !G::own(k))
                        b = plane[pair * G::PITCH + mirror];
                    part<K>(a, b, k);
                }
                v[2 * pair] = a;
                if constexpr (2 * decltype(pair)::value + 1 < G::N1)
                    v[2 * pair + 1] = b;
            });
        } else if constexpr (TIME) {
            unroll<0, S::R>([&](auto r) {
                const int j = t + r * S::TIME_GAP;
                v[r] = {0, 0};
                if (j >= LO && j < HI)
                    v[r] = plane[place(r)];
            });
        } else {
            get(v);
        }
    }
    /* Where an inverse step ends. */
    CF_DEVICE void put_inverse(const cplx *v) const {
        if constexpr (TWO) {
            unroll<0, S::R>([&](auto r) {
                constexpr int I = decltype(r)::value;
                cplx a = v[r], b = v[S::R + r];
                if constexpr (some_data<I>()) {
                    join<K>(a, b, k);
                    if (has_data<I>()) {
                        plane[even_row(I)] = a;
                        if (!K::RIDES || G::RIDE || !G::own(k))
                            plane[odd_row(I)] = b;
                    }
                }
            });
        } else if constexpr (PARTS) {
            unroll<G::ROW_LO, G::ROW_HI>([&](auto pair) {
                cplx a = v[2 * pair], b = {0, 0};
                if constexpr (2 * decltype(pair)::value + 1 < G::N1)
                    b = v[2 * pair + 1];
                join<K>(a, b, k);
                plane[pair * G::PITCH + f] = a;
                if (!K::RIDES || G::RIDE || !G::own(k))
                    plane[pair * G::PITCH + m] = b;
            });
        } else if constexpr (TIME) {
            unroll<0, S::R>([&](auto r) {
                const int j = t + r * S::TIME_GAP;
                if (j >= KEEP_LO && j < KEEP_HI)
                    plane[place(r)] = v[r];
            });
        } else {
            put(v);
        }
    }
};

template <class K, int X, int STEP, bool INVERSE>
CF_DEVICE void column_step(smem<cplx> z, const Places<K> &places, const TileCall &call) {
    typedef Tile<K> G;
    typedef ColumnTask<K, X, STEP> Task;
    typedef typename Task::S S;
    constexpr bool SPECTRUM = K::DIRECT && G::LAST == X && S::LAST;
#pragma unroll 1
    for (int n = int(threadIdx.x); n < Task::COUNT; n += K::T) {
        const Task task(z, n);
        const bool memory = SPECTRUM && !(G::RIDE && task.k == 0);
        const long long bins = SPECTRUM ? places.spectrum(task.p) + task.bins(call.bin_unit) : 0;
        const long long gap = Task::bin_gap(call.bin_unit);
        cplx v[Task::POINTS];
        if constexpr (SPECTRUM && INVERSE) {
            /* Imaginary parts of bins that are their own mirror images reach imaginary parts alone, and join() drops those. */
            if (memory) {
                const typename K::Bins::number *from = static_cast<const typename K::Bins::number *>(call.in) + bins;
                unroll<0, S::R>([&](auto r) { v[r] = K::Bins::load(from + r * gap); });
            } else {
                task.get(v);
            }
        } else if constexpr (INVERSE) {
            task.get(v);
        } else {
            task.get_forward(v);
        }
        task.template transform<INVERSE, G::template hi<X>()>(v);
        if constexpr (SPECTRUM && !INVERSE) {
            if (memory) {
                typename K::Bins::number *to = static_cast<typename K::Bins::number *>(call.out) + bins;
                const real factor = places.factor(task.p);
                if (task.p < places.live)
                    unroll<0, S::R>([&](auto r) { K::Bins::store(to + r * gap, v[r], factor); });
            } else {
                task.put(v);
            }
        } else if constexpr (INVERSE) {
            task.put_inverse(v);
        } else {
            task.put(v);
        }
    }
}

template <class K, int X, int STEP, bool INVERSE>
CF_DEVICE void step_of(smem<cplx> z, const Places<K> &places, const TileCall &call) {
    if constexpr (X == 2)
        line_step<K, STEP, INVERSE>(z, places, call);
    else
        column_step<K, X, STEP, INVERSE>(z, places, call);
}

/* The planes of a block, whose steps run side by side. Where planes of several kinds do, they have a class of their own. */
template <class K> struct Planes {
    typedef K Config;
    smem<cplx> z;
    const Places<K> &places;
    const TileCall &call;
    template <int X, int STEP, bool INVERSE> CF_DEVICE void step() const {
        step_of<K, X, STEP, INVERSE>(z, places, call);
    }
    template <bool INVERSE> CF_DEVICE void part() const { part_lines<K, INVERSE>(z); }
};

/* All steps of one axis, each followed by a barrier; those next to the spectrum only if WHOLE. */
template <int X, int STEP, bool INVERSE, class P> CF_DEVICE void step_and_wait(const P &planes) {
    planes.template step<X, STEP, INVERSE>();
    __syncthreads();
}
template <int X, bool INVERSE, bool WHOLE = true, class P> CF_DEVICE void steps_of_axis(const P &planes) {
    typedef Tile<typename P::Config> G;
    typedef
        typename Choice<X == 0, typename G::O0, typename Choice<X == 1, typename G::O1, typename G::O2>::type>::type O;
    constexpr bool PARTS = X == 1 && G::SPLIT && !G::PARTS_AT_STEP;
    if constexpr (PARTS && !INVERSE) {
        planes.template part<false>();
        __syncthreads();
    }
    if constexpr (INVERSE) {
        if constexpr (O::STEPS > 2 && WHOLE)
            step_and_wait<X, 3, true>(planes);
        if constexpr (O::STEPS > 1 && (O::STEPS > 2 || WHOLE))
            step_and_wait<X, 2, true>(planes);
        if constexpr (O::STEPS > 1 || WHOLE)
            step_and_wait<X, 1, true>(planes);
    } else {
        if constexpr (O::STEPS > 1 || WHOLE)
            step_and_wait<X, 1, false>(planes);
        if constexpr (O::STEPS > 1 && (O::STEPS > 2 || WHOLE))
            step_and_wait<X, 2, false>(planes);
        if constexpr (O::STEPS > 2 && WHOLE)
            step_and_wait<X, 3, false>(planes);
    }
    if constexpr (PARTS && INVERSE) {
        planes.template part<true>();
        __syncthreads();
    }
}
template <class K, int X, bool INVERSE, bool WHOLE = true>
CF_DEVICE void axis_steps(smem<cplx> z, const Places<K> &places, const TileCall &call) {
    steps_of_axis<X, INVERSE, WHOLE>(Planes<K>{z, places, call});
}

/* ---------------------------------------------------------------------------------------------------- factors of a block */

/* Of numbers that are not negative. */
CF_DEVICE float largest_of_warp(float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __uint_as_float(__reduce_max_sync(0xffffffffu, __float_as_uint(v)));
#else
    for (int other = 16; other > 0; other /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, other));
    return v;
#endif
}

/* The largest magnitude of the elements that a thread meets; what is no number does not count. */
CF_DEVICE float larger_number(float most, real v) {
    const float size = fabsf(float(v));
    return size < __uint_as_float(0x7f800000u) ? fmaxf(most, size) : most;
}
template <class K> CF_DEVICE float largest_loaded(smem<cplx> z) {
    typedef Tile<K> G;
    float most = 0;
    if constexpr (G::EMPTY) {
        return most;
    } else if constexpr (K::STAGED) { /* rows as they wait */
        constexpr int ROWS = G::template hi<1>() - G::template lo<1>(), QUADS = G::WAIT / 4;
        for (int n = int(threadIdx.x); n < K::P * G::D0 * ROWS * QUADS; n += K::T) {
            const int i = n / QUADS % ROWS + G::template lo<1>(), i0 = n / (QUADS * ROWS) % G::D0 + G::template lo<0>();
            const smem<cplx> line = z + (n / (QUADS * ROWS * G::D0) * G::PLANE + i0 * G::SLAB + i / 2 * G::PITCH);
            float4 q = smem_cast<float4>(line)[n % QUADS + i % 2 * QUADS];
            if constexpr (K::EARLY > 0 || G::LINE_HI % K::WIDE != 0) { /* the window's alone */
                const int from = G::LINE_LO + K::EARLY - 4 * (n % QUADS), to = G::LINE_HI + K::EARLY - 4 * (n % QUADS);
                q.x = from <= 0 ? q.x : 0.0f;
                q.y = from <= 1 && to > 1 ? q.y : 0.0f;
                q.z = from <= 2 && to > 2 ? q.z : 0.0f;
                q.w = from <= 3 && to > 3 ? q.w : 0.0f;
            }
            most = larger_number(larger_number(larger_number(larger_number(most, q.x), q.y), q.z), q.w);
        }
    } else {
        for (int n = int(threadIdx.x); n < K::P * G::D0 * G::DR * G::DX; n += K::T) {
            const cplx v = z[line_place<K>(item_of<K>(n))];
            most = larger_number(larger_number(most, v.x), v.y);
        }
    }
    return most;
}

/* Where a block FINDS the factor of its planes, all of one row: from what it has loaded. */
template <class K>
CF_DEVICE void find_own_factor(smem<char> table, smem<float> warps, smem<cplx> z, const TileCall &call) {
    static_assert(K::P % 8 == 0 && K::T <= 512, "whole scales, and room for what warps find");
    float most = largest_loaded<K>(z);
    most = largest_of_warp(most);
    if (threadIdx.x % 32 == 0)
        warps[int(threadIdx.x) / 32] = most;
    __syncthreads();
    const long long first = ((long long)blockIdx.x - call.first_block) * K::P;
    for (int p = int(threadIdx.x); p < K::P; p += K::T) {
        for (int i = 0; i < K::T / 32; ++i)
            most = fmaxf(most, warps[i]);
        set_factor<K>(table, call, p, first + p, most);
    }
}

/* ------------------------------------------------------------------------------------------------------------- kernels */

template <class K> CF_DEVICE void tile_forward(const TileCall &call) {
    typedef Tile<K> G;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<cplx> z = smem_cast<cplx>(shared + G::TABLE);
    const smem<float> warps = smem_cast<float>(shared + (G::TABLE + K::P * G::PLANE * int(sizeof(cplx)))); /* SCALED */
    const Places<K> places = find_planes<K, false>(shared, call);
    if constexpr (G::EMPTY) {
        for (int n = int(threadIdx.x); n < K::P * G::PLANE; n += K::T)
            z[n] = cplx{0, 0};
        if constexpr (K::Bins::SCALED && K::FINDS)
            find_own_factor<K>(shared, warps, z, call);
        else if constexpr (K::Bins::SCALED)
            find_factors<K>(shared, call, places.live);
        __syncthreads();
        store_bins<K, G::SWEEP>(z, places, call);
    } else {
        load_planes<K>(z, places, call);
        if constexpr (K::Bins::SCALED && !K::FINDS)
            find_factors<K>(shared, call, places.live);
        if constexpr (K::STAGED)
            wait_async();
        __syncthreads();
        if constexpr (K::Bins::SCALED && K::FINDS) {
            find_own_factor<K>(shared, warps, z, call);
            if constexpr (G::LAST == 2) /* other axes have barriers before bins are stored */
                __syncthreads();
        }
        axis_steps<K, 2, false>(z, places, call);
        if constexpr (G::N1 > 1 || G::SPLIT)
            axis_steps<K, 1, false>(z, places, call);
        if constexpr (G::N0 > 1)
            axis_steps<K, 0, false>(z, places, call);
        if constexpr (!K::DIRECT)
            store_bins<K, G::SWEEP>(z, places, call);
        else if constexpr (G::RIDE)
            store_bins<K, 1>(z, places, call);
    }
}

template <class K> CF_DEVICE void tile_inverse(const TileCall &call) {
    typedef Tile<K> G;
    if constexpr (!G::EMPTY) {
        smem<char> shared = cf_dynamic_shared<char>();
        smem<cplx> z = smem_cast<cplx>(shared + G::TABLE);
        const Places<K> places = find_planes<K, true>(shared, call);
        if constexpr (!K::DIRECT || G::RIDE) {
            load_bins<K, K::DIRECT ? 1 : G::SWEEP>(z, places, call);
            __syncthreads();
        }
        if constexpr (G::N0 > 1)
            axis_steps<K, 0, true>(z, places, call);
        if constexpr (G::N1 > 1 || G::SPLIT)
            axis_steps<K, 1, true>(z, places, call);
        axis_steps<K, 2, true>(z, places, call);
        if constexpr (K::STAGED)
            store_staged<K, K::WIDE>(z, places, call);
        else
            store_signal<K>(z, places, call);
    }
}
