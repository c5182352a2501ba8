/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms of 1 to 3 axes whose planes stay in shared memory. One kernel reads and writes memory once, for any
 * layout, window and basis.
 *
 * A block holds P planes. A plane is an array [N0][ROWS] of lines. A line is one 1-D transform of complex numbers along
 * axis 2. KIND says what a line contains:
 *
 *     TWO_ROWS_AS_COMPLEX   real, more than one row: rows 2r and 2r + 1 are the real and imaginary part of line r
 *     PACKED_REAL           real, one row, N2 even: points 2i and 2i + 1 are the real and imaginary part of point i
 *     UNPACKED_REAL         real, one row, N2 odd: imaginary parts are zero
 *     COMPLEX               complex numbers, unchanged
 *
 * So a line never contains numbers of two planes. The forward transform loads the signal into lines, does the FFT
 * stages ("steps") along axis 2, then 1, then 0 (in_place_order.cuh), each in place, and stores the spectrum.
 *
 * Between axes 2 and 1, the Hermitian split separates the spectra of two rows in place. With Z = FFT(a + i b):
 *
 *     FFT(a)[k] = (Z[k] + conj Z[N2 - k]) / 2     replaces Z[k]
 *     FFT(b)[k] = (Z[k] - conj Z[N2 - k]) / 2i    replaces Z[N2 - k]
 *
 * for columns 0 <= k < COLUMNS. If N2 is even, columns 0 and N2 / 2 are both transforms of real numbers, and column
 * N2 / 2 is packed into the imaginary part of column 0. If N2 is odd, or a product per bin follows (PACKS_NYQUIST is
 * false), FFT(b)[0] has an extra place at the end of the line; so has FFT(b)[N2 / 2].
 *
 * DIRECT: the last step along the last axis stores its registers straight to memory. Neighbouring threads then hold
 * neighbouring planes (frequency-major) or columns. Without DIRECT, and for column 0, results go back to shared memory
 * and are stored from there.
 *
 * STAGED: one step transforms axis 2, and its number of points is a multiple of four. The two rows of a line are copied
 * unconverted into the line's memory, one row after the other, VECTOR numbers at a time. The thread that transforms
 * them reads four numbers at a time. Forward, the copy begins ALIGNMENT_SHIFT numbers before the line's first point, so
 * that vectors are aligned in memory.
 *
 * Rows of zeros are neither loaded nor transformed. Rows with data are positions [LO, HI) of each axis. The inverse
 * does all of this in reverse order.
 *
 * The host prints a struct of constants K (emit.c):
 *
 *     Storage, Bias, Bins   types of a tensor's element, of a bias, and of a bin in memory (fbfft/common/storage.cuh)
 *     Offset                type of offsets in the spectrum: int or long long
 *     KIND, ORDER           what a line contains; the index of a spectrum in which neighbouring threads differ
 *     P, T                  planes and threads of a block
 *     PITCH, PLANE          distances of lines and of planes, in complex numbers
 *     R0, R1, R2            radices of the steps along each axis; 1: no such step
 *     AXIS                  the window of each axis
 *     AXIS_STRIDE, CHANNEL_STRIDE, CHANNELS, BIN_STRIDE     distances in memory, and the number of channels
 *     DIRECT, STAGED, ALIGNMENT_SHIFT, PACKS_NYQUIST        as above
 *     VECTOR                numbers that one access moves
 *     IN_REGISTERS          whether a thread has a whole line (kernel.cuh: line_in_registers())
 *     UNIT                  whether bins of a plane are contiguous (a spectrum that is not frequency-major)
 *     SCALED                whether the forward transform multiplies by a factor
 *     PLANES_INTERLEAVED    whether planes of neighbouring channels are interleaved in memory (NHWC)
 *     FINDS                 whether the kernel finds the scales of a 16-bit spectrum
 *     PREFETCHED            rows of bins that are copied ahead (prefetch.cuh); 0: the kernel does not do that
 */
#pragma once

#include "fbfft/common/padding.cuh"
#include "fbfft/common/storage.cuh"
#include "fbfft/shared_memory/call.h"
#include "fbfft/shared_memory/in_place_order.cuh"

enum SignalKind {
    TWO_ROWS_AS_COMPLEX,
    PACKED_REAL,
    UNPACKED_REAL,
    COMPLEX
};
enum SpectrumOrder {
    BY_PLANE,
    BY_COLUMN,
    BY_ROW
}; /* the index of a spectrum in which neighbouring threads differ */

/* One axis of core/window.h. If another kernel transforms the axis, each of its elements is a slice, that is, a row
 * of its own. */
struct AxisWindow {
    int first, spread, count;
    long long origin, step, slices, tiles, tile_step, shifts, shift_step, phases, phase_step, lower, upper, size;
    int mode;
    bool checked; /* some coordinate of some plane may lie outside the signal */
};

/* The smallest divisor of n that is not below `at_least`; n if there is none. */
__host__ __device__ constexpr int divisor_from(int n, int at_least) {
    int d = at_least;
    while (d < n && n % d)
        ++d;
    return d < n ? d : n;
}

template <class K> struct PlaneGeometry {
    typedef Order<K::R0[0], K::R0[1], K::R0[2], false> O0;
    typedef Order<K::R1[0], K::R1[1], K::R1[2], false> O1;
    typedef Order<K::R2[0], K::R2[1], K::R2[2], true> O2;
    static constexpr int N0 = O0::N, N1 = O1::N, N2 = K::KIND == PACKED_REAL ? 2 * O2::N : O2::N, LINE = O2::N;
    static constexpr bool REAL = K::KIND != COMPLEX, SPLIT = K::KIND == TWO_ROWS_AS_COMPLEX;
    /* The Hermitian split is part of the step that reads columns: a single step has all rows, and the first of
     * several steps has both rows of its pairs. */
    static constexpr bool SPLITS_AT_STEP = SPLIT && (O1::STEPS == 1 || O1::M % 2 == 0);
    static constexpr int BINS = REAL ? N2 / 2 + 1 : N2;
    static constexpr cf_shared_fft_plane LAYOUT = cf_shared_fft_plane_of(SPLIT, K::PACKS_NYQUIST, N1, N2, LINE);
    static constexpr bool NYQUIST_PACKED = LAYOUT.nyquist_packed;
    static constexpr int COLUMNS = LAYOUT.columns, EXTRA = LAYOUT.extra;
    static constexpr int SWEEP = K::KIND == PACKED_REAL ? LINE / 2 + 1 : K::KIND == UNPACKED_REAL ? BINS : COLUMNS;
    static constexpr int ROWS = LAYOUT.rows;
    static constexpr int LAST = N0 > 1            ? 0
                                : N1 > 1 || SPLIT ? 1
                                                  : 2; /* the axis of the last step before the spectrum */

    /* Positions [LO, HI) of an axis hold data. The same for rows and for points of lines. */
    template <int X> static constexpr int lo() { return K::AXIS[X].first; }
    template <int X> static constexpr int hi() {
        return K::AXIS[X].count ? K::AXIS[X].first + (K::AXIS[X].count - 1) * K::AXIS[X].spread + 1 : K::AXIS[X].first;
    }
    static constexpr int D0 = hi<0>() - lo<0>();
    static constexpr int ROW_LO = SPLIT ? lo<1>() / 2 : lo<1>(), ROW_HI = SPLIT ? (hi<1>() + 1) / 2 : hi<1>();
    static constexpr int LINE_LO = K::KIND == PACKED_REAL ? lo<2>() / 2 : lo<2>();
    static constexpr int LINE_HI = K::KIND == PACKED_REAL ? (hi<2>() + 1) / 2 : hi<2>();
    static constexpr bool EMPTY = D0 == 0 || hi<1>() == lo<1>() || hi<2>() == lo<2>();
    static constexpr int DR = ROW_HI - ROW_LO, DX = LINE_HI - LINE_LO;
    static constexpr int STAGED_ROW = (LINE_HI + K::ALIGNMENT_SHIFT + 3) / 4 * 4; /* STAGED: numbers of a staged row */

    static constexpr int PITCH = K::PITCH, AXIS0_PITCH = ROWS * PITCH,
                         PLANE = K::PLANE; /* distances of lines, of positions of axis 0, and of planes */
    static_assert(PITCH >= O2::SIZE + EXTRA && (K::IN_REGISTERS || PLANE >= N0 * AXIS0_PITCH),
                  "the planner's distances");
    static constexpr int TABLE = K::P * CF_SHARED_FFT_TABLE; /* bytes of the table of planes */
    static constexpr int SHARED = int(cf_shared_fft_block_bytes(K::P, PLANE, sizeof(cplx), K::Bins::SCALED));

    /* The place, within one position of axis 0, of row position s1 and column place f. The odd row of a pair is at
     * the mirror place m. */
    static CF_DEVICE int row_at(int s1, int f, int m) {
        if constexpr (SPLIT)
            return s1 / 2 * PITCH + (s1 % 2 ? m : f);
        else
            return s1 * PITCH + f;
    }
    /* Whether column k of a line is a transform of real numbers: of two rows in one, or of four if NYQUIST_PACKED. */
    static CF_DEVICE bool own(int k) { return k == 0 || (!NYQUIST_PACKED && 2 * k == N2); }
    static CF_DEVICE int mirror(int k) {
        if (SPLIT && own(k))
            return NYQUIST_PACKED ? O2::frequency(N2 / 2) : O2::SIZE + (k > 0);
        return O2::frequency(k == 0 ? 0 : N2 - k);
    }
};
