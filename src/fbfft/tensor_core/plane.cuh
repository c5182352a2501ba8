/* SPDX-License-Identifier: Apache-2.0 */
/* Real planes (2-D) to frequency-major spectra of 16 bits and back, by matrix products on tensor cores: the method,
 * its configuration, and the tables of DFT matrices.
 *
 *     signal      channels-first [plane][row][point], or channels-last [row][point][plane]
 *     spectrum    [bin][plane], words of two 16-bit numbers (re, im); bin = [N1][N2 / 2 + 1]
 *
 * Eight planes are transformed together: a plane group. A lane is number 4 g + t of its warp.
 *
 * Rows are real and have N2 points. Their transform is a product with one matrix. Forward, the rows of a plane are
 * the right operand; inverse, their words (re, im) are the left operand. Columns 0 and N2 / 2 of the result are
 * real, and share one word. Columns are complex and have N1 = 16 R points. Row n = j + 16 r and bin k = R m + c, with
 * j and m from 0 to 15, r and c from 0 to R - 1:
 *
 *     forward    y[c][j] = w_N1^jc sum over r of x[j + 16 r] w_R^rc,
 *                X[R m + c] = sum over j of y[c][j] w_16^jm
 *     inverse    u[c][j] = w_N1^-jc sum over m of X[R m + c] w_16^-jm,
 *                x[j + 16 r] = sum over c of u[c][j] w_R^-rc
 *
 * Here w_16 is the left operand, and 16 words of each of eight planes are the right operand. So neighbouring lanes
 * load and store bins of neighbouring planes. The sums over r and c and the twiddles are computed in registers. c is
 * called the class of a row or bin.
 *
 * In channels-last layout ("interleaved") a product along rows takes one row of all eight planes instead of eight
 * rows of one plane. A block may have two plane groups, each in half of its warps, so that it accesses whole 32-byte
 * sectors; for 1-D signals of 256 points it may have four.
 *
 * 1-D signals are planes with a twiddle between rows and columns: line_twiddles.cuh. Those of at most 128 points
 * have rows only: short_line_io.cuh.
 *
 * Rounding: numbers are rounded to 16 bits once between rows and columns, as spectra are. FP32 planes are also
 * rounded before rows. The matrices are rounded, too. They are multiplied by a gain, chosen so that its products
 * with the sines and cosines are closer to 16-bit numbers than the sines and cosines are. */
#pragma once

#include "fbfft/common/fp16_dft.cuh"
#include "fbfft/shared_memory/kernel.cuh"
#include "fbfft/tensor_core/geometry.h"

/* ------------------------------------------------------------------------------------------------------- arithmetic */

/* The gains are the best of a million candidates. Behind each: the RMS error of sines and cosines in units of 2^-11
 * or 2^-8. Without a gain it is about 0.25. */
struct MmaGain {
    int n;
    double fp16, bf16;
};
template <bool SCALED> __host__ __device__ constexpr double mma_gain(int n) {
    constexpr MmaGain gains[] = {
        {16, 1.860340118, 1.132880211 /* 0.03, 0.06 */},  {24, 1.603481768, 1.132421601 /* 0.04, 0.06 */},
        {32, 1.115195274, 1.624505997 /* 0.08, 0.12 */},  {40, 1.657247342, 1.912843905 /* 0.11, 0.20 */},
        {48, 1.719700328, 1.624206135 /* 0.13, 0.14 */},  {56, 1.820002789, 1.689814917 /* 0.16, 0.20 */},
        {64, 1.836933136, 1.869544029 /* 0.18, 0.21 */},  {72, 1.001950269, 1.811793687 /* 0.18, 0.23 */},
        {80, 1.726196014, 1.912596115 /* 0.20, 0.20 */},  {96, 1.836891375, 1.623722817 /* 0.18, 0.28 */},
        {112, 1.846539677, 1.689186659 /* 0.24, 0.27 */}, {120, 1.954049133, 1.797583925 /* 0.20, 0.24 */},
        {128, 1.973416822, 1.665691349 /* 0.25, 0.25 */}};
    for (const MmaGain &gain : gains)
        if (gain.n == n)
            return SCALED ? gain.fp16 : gain.bf16;
    return 0;
}

/* gain cos(2 pi k / N) / 2^DOWN. */
template <bool SCALED, int N, int DOWN> struct MmaCosines {
    unsigned of[N];
    __host__ __device__ constexpr MmaCosines() : of{} {
        for (int k = 0; k < N; ++k)
            of[k] = mma_bits<SCALED>(mma_gain<SCALED>(N) * cf_cos(k, N) / (1 << DOWN));
    }
    __host__ __device__ constexpr unsigned cos(int k) const { return of[(k % N + N) % N]; }
    __host__ __device__ constexpr unsigned sin(int k) const { return cos(k - N / 4); }
};
__host__ __device__ constexpr unsigned mma_word(unsigned low, unsigned high) { return low | high << 16; }
__host__ __device__ constexpr unsigned mma_minus(unsigned bits) { return bits ^ 0x8000u; }

/* Which points of a row a lane has. What four lanes load or store at a time is contiguous: eight 16-bit numbers or
 * four FP32 numbers of each lane. In channels-last layout: pairs, as a product's operand has them. */
enum MmaWay {
    MMA_SHORTS,
    MMA_FLOATS,
    MMA_INTERLEAVED,
    MMA_LINES
};

/* Instructions of a product with the N2-point matrix, and groups of eight bins. Of the last, only a half may count. */
__host__ __device__ constexpr int mma_steps(int n2) { return (n2 + 15) / 16; }

template <class K> struct MmaFft {
    typedef PlaneGeometry<K> G;
    static constexpr bool INTERLEAVED = K::PLANES_INTERLEAVED,
                          SHORT = K::KIND == PACKED_REAL && G::N2 <= CF_TENSOR_FFT_SHORT,
                          LINES = K::KIND == PACKED_REAL && !SHORT;
    static constexpr int PLANE_GROUPS = K::P / 8; /* of a block; channels-last 2, for sectors of 16 numbers */
    static constexpr int N1 = LINES ? cf_tensor_fft_split(G::N2) : G::N1, N2 = LINES ? G::N2 / N1 : G::N2;
    static constexpr int R = SHORT ? 1 : N1 / 16, COLUMNS = N2 / 2 + 1, WARPS = K::T / 32 / (SHORT ? 1 : PLANE_GROUPS);
    static constexpr MmaWay WAY = LINES                          ? MMA_LINES
                                  : INTERLEAVED                  ? MMA_INTERLEAVED
                                  : K::Storage::PLAIN || N2 < 32 ? MMA_FLOATS
                                                                 : MMA_SHORTS;
    static constexpr int SPAN = N2 == 16 ? 16 : 32, OWN = SPAN / 4; /* points of a part of a row; those of a lane */
    static constexpr int SPANS = (N2 + SPAN - 1) / SPAN; /* interleaved short signals may end inside a part */
    static constexpr int STEPS = mma_steps(N2);          /* instructions of a product along rows */
    static constexpr int ROWS = LINES ? N1 : G::template hi<1>();
    static constexpr int LIVE = (ROWS + 15) / 16; /* of the R rows of a sum; the others are zero */
    /* Channels-last: how many tasks a warp loads at once, if it has few. */
    static constexpr int BATCH = R > 1 ? 1 : WARPS < 4 ? 4 : 16 / WARPS;
    static constexpr bool SCALED = K::Bins::SCALED;
    /* Inverse: the tiles of 16 rows in the window. */
    static constexpr int FIRST = LINES ? 0 : G::template lo<1>() / 16,
                         TILES = LINES ? N1 / 16 : cf_tensor_fft_row_tiles(G::template lo<1>(), ROWS);
    static constexpr cf_tensor_fft_layout LAYOUT =
        cf_tensor_fft_layout_of(INTERLEAVED, LINES, K::Storage::PLAIN, N1, N2, TILES);
    static constexpr int LINE = LAYOUT.line, PARTS = LAYOUT.parts, WORD = LAYOUT.column, PLANE = LAYOUT.plane,
                         FORWARD = LAYOUT.forward, INVERSE = LAYOUT.inverse;
    /* SHORT: EACH is the number of plane groups of a warp. ROW: words of a row in shared memory. */
    static constexpr int EACH = SHORT ? PLANE_GROUPS / WARPS : 1, BYTES = sizeof(typename K::Storage::bits);
    static constexpr bool THROUGH = SHORT && cf_tensor_fft_through(INTERLEAVED, K::VECTOR, BYTES);
    static constexpr int ROW = cf_tensor_fft_short_row(BYTES, N2);
    static constexpr int SHARED_FORWARD = G::TABLE + 4 * PLANE_GROUPS * (SHORT ? THROUGH * 8 * ROW : FORWARD),
                         SHARED_INVERSE = G::TABLE + 4 * PLANE_GROUPS * (SHORT ? THROUGH * 8 * ROW : INVERSE);
    /* Inverse: columns are multiplied by 2^-DOWN, so that numbers between columns and rows are as small as bins. */
    static constexpr int DOWN = SCALED ? bits_of(N1) + 1 : 0;
    static constexpr int SUM = Factor<K>::SUM; /* forward: a bin is at most 2^SUM times the plane's largest number */
    static constexpr float GAIN = float((SHORT ? 1 : mma_gain<SCALED>(16)) * mma_gain<SCALED>(N2));
    static_assert(K::P == 8 * PLANE_GROUPS && N2 % (SHORT && INTERLEAVED ? 8 : SPAN) == 0 &&
                      (SHORT ? PLANE_GROUPS % (2 * WARPS) == 0
                             : PLANE_GROUPS <= (LINES         ? 4
                                                : INTERLEAVED ? 2
                                                              : 1) &&
                                   N1 % 16 == 0 && WARPS % R == 0 && 16 % WARPS == 0),
                  "the planner's choice");
};

/* A thread's plane group, its warp within the plane group, and the planes of the plane group. */
template <class K> CF_DEVICE int mma_plane_group() {
    return MmaFft<K>::PLANE_GROUPS == 1 ? 0 : int(threadIdx.x) / 32 / MmaFft<K>::WARPS;
}
template <class K> CF_DEVICE int mma_warp() {
    return MmaFft<K>::PLANE_GROUPS == 1 ? int(threadIdx.x) / 32 : int(threadIdx.x) / 32 % MmaFft<K>::WARPS;
}
template <class K> CF_DEVICE PlaneTable<K> mma_places(const PlaneTable<K> &of_block, int plane_group) {
    return {of_block.table + plane_group * 8 * 32, of_block.live - 8 * plane_group};
}

CF_DEVICE unsigned mma_swapped(unsigned w) { return w >> 16 | w << 16; }

/* --------------------------------------------------------------------------------------------------------- matrices */

struct __align__(16) MmaWords {
    unsigned of[4];
};

/* The left operand of columns, for real parts. Its rows are m (forward) or j (inverse). Number e = 2 step + half of
 * lane t in a sum is 4 t + e; forward in channels-last layout it is 4 e + t. */
template <bool SCALED, bool INVERSE, bool INTERLEAVED, int DOWN> struct MmaColumns {
    MmaWords of[2][32]; /* step, lane */
    __host__ __device__ constexpr MmaColumns() : of{} {
        const MmaCosines<SCALED, 16, DOWN> roots;
        for (int step = 0; step < 2; ++step)
            for (int lane = 0; lane < 32; ++lane)
                for (int i = 0; i < 4; ++i) {
                    const int t = lane % 4, e = 2 * step + i / 2;
                    const int twiddle = (lane / 4 + i % 2 * 8) * (INTERLEAVED ? 4 * e + t : 4 * t + e);
                    of[step][lane].of[i] =
                        mma_word(roots.cos(twiddle), INVERSE ? mma_minus(roots.sin(twiddle)) : roots.sin(twiddle));
                }
    }
};
template <bool SCALED, bool INVERSE, bool INTERLEAVED, int DOWN>
__device__ const MmaColumns<SCALED, INVERSE, INTERLEAVED, DOWN>
    mma_columns = MmaColumns<SCALED, INVERSE, INTERLEAVED, DOWN>();

/* The position in a row of point i of a lane's points: eight of 32 points, or four of 16. */
template <MmaWay WAY> __host__ __device__ constexpr int mma_point(int part, int t, int i) {
    return 32 * part + (WAY == MMA_LINES         ? 4 * i + t
                        : WAY == MMA_INTERLEAVED ? i / 2 * 8 + 2 * t + i % 2
                        : WAY == MMA_FLOATS      ? i / 4 * 16 + 4 * t + i % 4
                                                 : 8 * t + i);
}

/* The left operand of rows, forward. Rows g and g + 8 give the real and imaginary part of bin k = 8 m + g; k = 0 has
 * bin N2 / 2 instead of its imaginary part. A sum takes a lane's points 4 (step % 2) + 2 half, and the point after
 * each. */
template <bool SCALED, int N2, MmaWay WAY> struct MmaRows {
    static constexpr int STEPS = mma_steps(N2);
    MmaWords of[STEPS][STEPS][32]; /* m, step, lane */
    __host__ __device__ constexpr MmaRows() : of{} {
        const MmaCosines<SCALED, N2, 0> roots;
        for (int m = 0; m < STEPS; ++m)
            for (int step = 0; step < STEPS; ++step)
                for (int lane = 0; lane < 32; ++lane)
                    for (int i = 0; i < 4; ++i) {
                        const int k = 8 * m + lane / 4;
                        const int of_lane = step % 2 * 4 + i / 2 * 2;
                        const int point = mma_point<WAY>(step / 2, lane % 4, of_lane),
                                  next = mma_point<WAY>(step / 2, lane % 4, of_lane + 1);
                        unsigned w = mma_word(roots.cos(point * k), roots.cos(next * k));
                        if (i % 2)
                            w = k > 0 ? mma_word(mma_minus(roots.sin(point * k)), mma_minus(roots.sin(next * k)))
                                      : mma_word(roots.cos(point * (N2 / 2)), roots.cos(next * (N2 / 2)));
                        of[m][step][lane].of[i] = w;
                    }
    }
};
template <bool SCALED, int N2, MmaWay WAY>
__device__ const MmaRows<SCALED, N2, WAY> mma_rows = MmaRows<SCALED, N2, WAY>();

/* The right operand of rows, inverse, for half of the results. Column c of product n is point 2 (n % 4) + c % 2 of
 * lane c / 2, or 2 (n % 2) + c % 2 if a lane has four points. Words of a sum are k = 16 pair + 8 step + 4 half + t,
 * for two steps at a time. */
template <bool SCALED, int N2, MmaWay WAY> struct MmaPoints {
    static constexpr int OWN = N2 < 32 ? 4 : 8, PAIRS = (N2 + 31) / 32;
    MmaWords of[N2 / 8][PAIRS][32]; /* n, pair of steps, lane */
    __host__ __device__ constexpr MmaPoints() : of{} {
        const MmaCosines<SCALED, N2, 0> roots;
        const MmaCosines<SCALED, N2, 1> halves;
        for (int n = 0; n < N2 / 8; ++n)
            for (int pair = 0; pair < PAIRS; ++pair)
                for (int lane = 0; lane < 32; ++lane)
                    for (int e = 0; e < 4 && 4 * e < N2 / 2; ++e) {
                        const int k = 16 * pair + 4 * e + lane % 4, column = lane / 4;
                        const int point = mma_point<WAY>(2 * n / OWN, column / 2, 2 * n % OWN + column % 2),
                                  twiddle = point * k;
                        of[n][pair][lane].of[e] = k > 0 ? mma_word(roots.cos(twiddle), mma_minus(roots.sin(twiddle)))
                                                        : mma_word(halves.cos(0), halves.cos(point * (N2 / 2)));
                    }
    }
};
template <bool SCALED, int N2, MmaWay WAY>
__device__ const MmaPoints<SCALED, N2, WAY> mma_points = MmaPoints<SCALED, N2, WAY>();

/* The same in channels-last layout, as the left operand. Its rows are 16 points; words of a sum are k = 8 step + 4
 * half + t. */
template <bool SCALED, int N2> struct MmaSpots {
    static constexpr int STEPS = mma_steps(N2);
    MmaWords of[STEPS][STEPS][32]; /* 16 points, step, lane */
    __host__ __device__ constexpr MmaSpots() : of{} {
        const MmaCosines<SCALED, N2, 0> roots;
        const MmaCosines<SCALED, N2, 1> halves;
        for (int n = 0; n < STEPS; ++n)
            for (int step = 0; step < STEPS; ++step)
                for (int lane = 0; lane < 32; ++lane)
                    for (int i = 0; i < 4; ++i) {
                        const int point = 16 * n + i % 2 * 8 + lane / 4, k = 8 * step + i / 2 * 4 + lane % 4,
                                  twiddle = point * k;
                        of[n][step][lane].of[i] = k > 0 ? mma_word(roots.cos(twiddle), mma_minus(roots.sin(twiddle)))
                                                        : mma_word(halves.cos(0), halves.cos(point * (N2 / 2)));
                    }
    }
};
template <bool SCALED, int N2> __device__ const MmaSpots<SCALED, N2> mma_spots = MmaSpots<SCALED, N2>();

/* Reads entry i of a table. `own` is the first entry of this lane; an entry has 32 lanes. */
CF_DEVICE MmaWords mma_fetch(const MmaWords *own, int i) {
    const uint4 w = __ldg(reinterpret_cast<const uint4 *>(own + 32 * i));
    return {{w.x, w.y, w.z, w.w}};
}

/* The matrix of columns in registers. mma_column(): d += this matrix times 16 words of each of eight planes. */
struct MmaSquare {
    MmaWords of[2];
};
CF_DEVICE MmaSquare mma_square(const MmaWords *own) { return {{mma_fetch(own, 0), mma_fetch(own, 1)}}; }
template <class K> CF_DEVICE void mma_column(float d[4], const MmaSquare &a, const unsigned b[4]) {
    multiply_bins<typename K::Bins>(d, a.of[0].of, b[0], b[1]);
    multiply_bins<typename K::Bins>(d, a.of[1].of, b[2], b[3]);
}
