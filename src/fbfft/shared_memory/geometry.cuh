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
 * real numbers. If N2 is odd, or a product per bin follows (PACKS_NYQUIST is false), FFT(b)[0] has an extra place at the end of the line, and so
 * has FFT(b)[N2 / 2].
 *
 * The last step along the last axis stores straight from registers if DIRECT: neighbouring threads then hold neighbouring planes
 * (frequency-major) or columns. Else, and for column 0, results go back to shared memory and are stored from there.
 *
 * STAGED: one step does axis 2, and its points are a multiple of four. Then the two rows of a line wait in its place one behind the
 * other, as they come, until the thread that transforms them reads them, four at a time; they come VECTOR at a time. Forward, what waits begins
 * ALIGNMENT_SHIFT numbers before the line's first point, where that makes pieces stand at multiples of their size in memory.
 *
 * Zero rows are neither loaded nor transformed: row data is positions [LO, HI) of each axis. The inverse is all of this backwards.
 */
#pragma once

#include "fbfft/common/storage.cuh"
#include "fbfft/shared_memory/in_place_order.cuh"

enum SignalKind {
    PAIRS,
    HALVES,
    SINGLE,
    COMPLEX
};
enum FirstStep {
    BY_PLANE,
    BY_COLUMN,
    BY_ROW
}; /* which index of a spectrum neighbouring threads differ in */
enum PaddingMode {
    ZEROS,
    CIRCULAR,
    REFLECT,
    REPLICATE
};

/* One axis of core/window.h. Of an axis whose transform another kernel computes, each element is a slice: a row of its own. */
struct AxisWindow {
    int first, spread, count;
    long long origin, step, slices, tiles, tile_step, shifts, shift_step, phases, phase_step, lower, upper, size;
    int mode;
    bool checked; /* some coordinate of some plane may lie outside the signal */
};

/* Arguments of one launch. A plane is (row, column) of the spectrum, column fastest in `planes`; its bin 0 stands at
 *     r / row_split * row_split_stride + r % row_split * row_stride + c / column_split * column_split_stride
 *     + c % column_split * column_stride                                        of row r, counted from row_base, and column c. */
struct SharedFftCall {
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
    const float *absmax;
    long long scale_rows, scale_group_stride, absmax_group_stride;
};

/* The least divisor of n that is at least `least`; n if there is none. */
__host__ __device__ constexpr int divisor_from(int n, int least) {
    int d = least;
    while (d < n && n % d)
        ++d;
    return d < n ? d : n;
}

template <class K> struct PlaneGeometry {
    typedef Order<K::R0[0], K::R0[1], K::R0[2], false> O0;
    typedef Order<K::R1[0], K::R1[1], K::R1[2], false> O1;
    typedef Order<K::R2[0], K::R2[1], K::R2[2], true> O2;
    static constexpr int N0 = O0::N, N1 = O1::N, N2 = K::KIND == HALVES ? 2 * O2::N : O2::N, LINE = O2::N;
    static constexpr bool REAL = K::KIND != COMPLEX, SPLIT = K::KIND == PAIRS;
    /* Rows are parted where columns are read: one step has all rows, a first one of several both rows of its pairs. */
    static constexpr bool PARTS_AT_STEP = SPLIT && (O1::STEPS == 1 || O1::M % 2 == 0);
    static constexpr int BINS = REAL ? N2 / 2 + 1 : N2;
    static constexpr bool NYQUIST_PACKED = K::PACKS_NYQUIST && SPLIT && N2 % 2 == 0; /* column N2 / 2 on column 0 */
    static constexpr int COLUMNS = SPLIT ? BINS - NYQUIST_PACKED : LINE;             /* lines along axes 1 and 0 */
    static constexpr int EXTRA = !SPLIT || NYQUIST_PACKED ? 0 : 1 + (N2 % 2 == 0);   /* places at the end of a line */
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
    static constexpr int WAIT = (LINE_HI + K::ALIGNMENT_SHIFT + 3) / 4 * 4; /* STAGED: numbers of a row */

    static constexpr int PITCH = K::PITCH, AXIS0_PITCH = ROWS * PITCH, PLANE = K::PLANE; /* of lines, axis 0, planes */
    static_assert(PITCH >= O2::SIZE + EXTRA && PLANE >= N0 * AXIS0_PITCH, "the planner's distances");
    static constexpr int TABLE = K::P * 32; /* bytes: where each plane is */
    static constexpr int SHARED = TABLE + K::P * PLANE * int(sizeof(cplx)) + (K::Bins::SCALED ? 64 : 0);

    /* Place of (row position s1, column place f or, of the odd row of a pair, its mirror m) in a slab. */
    static CF_DEVICE int row_at(int s1, int f, int m) {
        if constexpr (SPLIT)
            return s1 / 2 * PITCH + (s1 % 2 ? m : f);
        else
            return s1 * PITCH + f;
    }
    /* Is column k of a line the transform of real numbers, two rows' in one? (NYQUIST_PACKED: of four.) */
    static CF_DEVICE bool own(int k) { return k == 0 || (!NYQUIST_PACKED && 2 * k == N2); }
    static CF_DEVICE int mirror(int k) {
        if (SPLIT && own(k))
            return NYQUIST_PACKED ? O2::frequency(N2 / 2) : O2::SIZE + (k > 0);
        return O2::frequency(k == 0 ? 0 : N2 - k);
    }
};
