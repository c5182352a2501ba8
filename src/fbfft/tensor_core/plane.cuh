/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms of real planes to frequency-major spectra of 16 bits, and back, by matrix products on tensor cores. Eight
 * planes go together, an octet; lane = 4 g + t.
 *
 * Rows are real lines of N2 points, a product with one matrix: forward a plane's rows are the right operand, or inverse its words (re, im) the left one.
 * Columns 0 and N2 / 2 are real where rows are; one word has both. Columns are complex lines of N1 = 16 R points:
 *
 *     forward    y[c][j] = w^jc sum over r of x[j + 16 r] w_R^rc,          X[R m + c] = sum over j of y[c][j] w_16^jm
 *     inverse    u[c][j] = w^-jc sum over m of X[R m + c] w_16^-jm,        x[j + 16 r] = sum over c of u[c][j] w_R^-rc
 *
 * where w_16 is the left operand, and 16 words of eight planes are the right one; so neighbouring lanes store and load bins of neighbouring
 * planes. All but the products is in registers.
 *
 * Where planes touch (channels last), a product along rows has one row of all eight planes instead of eight rows of one. So that whole sectors are
 * read and written, a block may have two such octets, each in half of its warps; of lines of 256 points four.
 *
 * Lines are planes with a factor between rows and columns: line_twiddles.cuh. Those of at most 128 points are rows alone: short_line_io.cuh.
 *
 * Between rows and columns numbers are rounded to 16 bits once, as spectra are; FP32 planes are so before their rows, too. Matrices are rounded, too: to multiples of a gain whose
 * products with sines and cosines happen to be nearer to such numbers than they are themselves.
 */
#pragma once

#include "fbfft/common/fp16_dft.cuh"
#include "fbfft/shared_memory/kernel.cuh"

/* --------------------------------------------------------------------------------------------------------- arithmetic */

/* v rounded to eight or eleven bits, as it stands in memory; 0, or a number that FP16 has all its bits for. */
template <bool SCALED> __host__ __device__ constexpr unsigned matrix_bits(double v) {
    constexpr int BITS = SCALED ? 10 : 7, BIAS = SCALED ? 15 : 127;
    double size = v < 0 ? -v : v;
    int exponent = 0;
    if (size < 1e-9)
        return 0;
    for (; size >= 2; size /= 2)
        ++exponent;
    for (; size < 1; size *= 2)
        --exponent;
    /* The first bit of the whole number adds one to the exponent. */
    return (v < 0 ? 0x8000u : 0u) | (unsigned(exponent + BIAS - 1) * (1u << BITS) + unsigned(size * (1 << BITS) + 0.5));
}

/* Found by trying a million. Behind each, the rms error of sines and cosines in units of 2^-11 or 2^-8; without a gain it is about 0.25. */
template <bool SCALED> __host__ __device__ constexpr double matrix_gain(int n) {
    return n == 16   ? SCALED ? 1.860340118 /* 0.03 */ : 1.132880211 /* 0.06 */
           : n == 32 ? SCALED ? 1.115195274 /* 0.08 */ : 1.624505997 /* 0.12 */
           : n == 64 ? SCALED ? 1.836933136 /* 0.18 */ : 1.869544029 /* 0.21 */
           : SCALED  ? 1.973416822                                   /* 0.25 */
                     : 1.665691349 /* 0.25 */;
}

/* gain cos(2 pi k / N) / 2^DOWN. */
template <bool SCALED, int N, int DOWN> struct MatrixCosines {
    unsigned of[N];
    __host__ __device__ constexpr MatrixCosines() : of{} {
        for (int k = 0; k < N; ++k)
            of[k] = matrix_bits<SCALED>(matrix_gain<SCALED>(N) * cf_cos(k, N) / (1 << DOWN));
    }
    __host__ __device__ constexpr unsigned cos(int k) const { return of[(k % N + N) % N]; }
    __host__ __device__ constexpr unsigned sin(int k) const { return cos(k - N / 4); }
};
__host__ __device__ constexpr unsigned matrix_word(unsigned low, unsigned high) { return low | high << 16; }
__host__ __device__ constexpr unsigned matrix_minus(unsigned bits) { return bits ^ 0x8000u; }

/* Which points of a row a lane has: what a quad moves at once are neighbours, eight numbers of 16 bits or four FP32 numbers of each lane, or,
 * abreast, pairs of a product's operand. */
enum MatrixWay {
    MATRIX_SHORTS,
    MATRIX_FLOATS,
    MATRIX_ABREAST,
    MATRIX_LINES
};

/* Lines of so many points at most are rows alone. */
constexpr int MATRIX_SHORT = 128;

/* N1 of a line of n points. */
__host__ __device__ constexpr int matrix_split(int n) { return n >= 2048 ? 64 : n >= 512 ? 32 : 16; }

template <class K> struct Matrix {
    typedef Tile<K> G;
    static constexpr bool ABREAST = K::PLANES_TOUCH, SHORT = K::KIND == HALVES && G::N2 <= MATRIX_SHORT,
                          LINES = K::KIND == HALVES && !SHORT;
    static constexpr int OCTETS = K::P / 8; /* parts of a block; abreast, two, for a sector has 16 numbers of 16 bits */
    static constexpr int N1 = LINES ? matrix_split(G::N2) : G::N1, N2 = LINES ? G::N2 / N1 : G::N2;
    static constexpr int R = SHORT ? 1 : N1 / 16, COLUMNS = N2 / 2 + 1, WARPS = K::T / 32 / (SHORT ? 1 : OCTETS);
    static constexpr MatrixWay WAY = LINES                          ? MATRIX_LINES
                                     : ABREAST                      ? MATRIX_ABREAST
                                     : K::Storage::PLAIN || N2 < 32 ? MATRIX_FLOATS
                                                                    : MATRIX_SHORTS;
    static constexpr int SPAN = N2 < 32 ? 16 : 32, OWN = SPAN / 4; /* points of a part of a row; those of a lane */
    static constexpr int STEPS = N2 / 16;                          /* of a product along rows */
    static constexpr int ROWS = LINES ? N1 : G::template hi<1>();
    static constexpr int LIVE = (ROWS + 15) / 16; /* of the R rows of a sum; the others are zero */
    /* Abreast, tasks whose numbers are on their way at once, where one has few. */
    static constexpr int BATCH = R > 1 ? 1 : WARPS < 4 ? 4 : 16 / WARPS;
    static constexpr bool SCALED = K::Bins::SCALED;
    /* Distances in shared memory, so that lanes meet different banks. Forward, words are [class][column][plane][j], abreast [..][j][plane]. */
    static constexpr int LINE = 8 * 16 + 8;
    /* Inverse, [plane][column][row of the window, in tiles of 16], abreast [column][row][plane]. */
    static constexpr int FIRST = LINES ? 0 : G::template lo<1>() / 16, TILES = (ROWS + 15) / 16 - FIRST;
    static constexpr int WORD = (ABREAST ? 8 : 1) * 16 * TILES + (LINES && K::Storage::PLAIN ? 4 : 8),
                         PLANE = N2 / 2 * WORD + 4;
    static constexpr int PARTS = ABREAST ? 128 : 16; /* forward, of planes, whose largest magnitudes are found */
    static constexpr int FORWARD = R * COLUMNS * LINE + PARTS,
                         INVERSE = ABREAST ? N2 / 2 * WORD : 8 * PLANE; /* words */
    /* SHORT: octets of a warp. Numbers that cannot be moved eight bytes at a time go through shared memory, so that neighbouring lanes move
     * neighbours; words of a line there, at a distance that brings the lanes of two lines to different banks. */
    static constexpr int EACH = SHORT ? OCTETS / WARPS : 1, BYTES = sizeof(typename K::Storage::bits);
    static constexpr bool THROUGH = SHORT && !ABREAST && K::WIDE * BYTES < 8;
    static constexpr int ROW = BYTES * N2 / 4 + (BYTES * N2 % 128 ? 0 : 16);
    static constexpr int SHARED_FORWARD = G::TABLE + 4 * OCTETS * (SHORT ? THROUGH * 8 * ROW : FORWARD),
                         SHARED_INVERSE = G::TABLE + 4 * OCTETS * (SHORT ? THROUGH * 8 * ROW : INVERSE);
    /* Inverse, what keeps numbers between columns and rows as small as bins are. */
    static constexpr int DOWN = SCALED ? bits_of(N1) + 1 : 0;
    static constexpr int SUM =
        Factor<K>::SUM; /* forward, a bin is at most so many powers of two larger than the plane's largest number */
    static constexpr float GAIN = float((SHORT ? 1 : matrix_gain<SCALED>(16)) * matrix_gain<SCALED>(N2));
    static_assert(K::P == 8 * OCTETS && N2 % SPAN == 0 &&
                      (SHORT ? OCTETS % (2 * WARPS) == 0
                             : OCTETS <= (LINES     ? 4
                                          : ABREAST ? 2
                                                    : 1) &&
                                   N1 % 16 == 0 && WARPS % R == 0 && 16 % WARPS == 0),
                  "the planner's choice");
};

/* Of a thread: its octet, the warp there, and the octet's planes. */
template <class K> CF_DEVICE int matrix_octet() {
    return Matrix<K>::OCTETS == 1 ? 0 : int(threadIdx.x) / 32 / Matrix<K>::WARPS;
}
template <class K> CF_DEVICE int matrix_warp() {
    return Matrix<K>::OCTETS == 1 ? int(threadIdx.x) / 32 : int(threadIdx.x) / 32 % Matrix<K>::WARPS;
}
template <class K> CF_DEVICE Places<K> matrix_places(const Places<K> &of_block, int octet) {
    return {of_block.table + octet * 8 * 32, of_block.live - 8 * octet};
}

#ifdef CF_SIMT
CF_DEVICE unsigned matrix_transposed(unsigned w) { return simt_transposed(w); }
#else
/* Of the 8 x 8 numbers whose row g has a lane's word in place t. */
CF_DEVICE unsigned matrix_transposed(unsigned w) {
    unsigned d;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(w));
    return d;
}
#endif
CF_DEVICE unsigned matrix_swapped(unsigned w) { return w >> 16 | w << 16; }

/* ------------------------------------------------------------------------------------------------------------ matrices */

struct __align__(16) MatrixWords {
    unsigned of[4];
};

/* Of columns, the left operand: row m (forward) or j (inverse), numbers 4 t + e of the sum, forward and abreast 4 e + t, e = 2 step + half. It gives
 * real parts. */
template <bool SCALED, bool INVERSE, bool ABREAST, int DOWN> struct MatrixColumns {
    MatrixWords of[2][32]; /* step, lane */
    __host__ __device__ constexpr MatrixColumns() : of{} {
        const MatrixCosines<SCALED, 16, DOWN> roots;
        for (int step = 0; step < 2; ++step)
            for (int lane = 0; lane < 32; ++lane)
                for (int i = 0; i < 4; ++i) {
                    const int t = lane % 4, e = 2 * step + i / 2;
                    const int turn = (lane / 4 + i % 2 * 8) * (ABREAST ? 4 * e + t : 4 * t + e);
                    of[step][lane].of[i] =
                        matrix_word(roots.cos(turn), INVERSE ? matrix_minus(roots.sin(turn)) : roots.sin(turn));
                }
    }
};
template <bool SCALED, bool INVERSE, bool ABREAST, int DOWN>
__device__ const MatrixColumns<SCALED, INVERSE, ABREAST, DOWN>
    matrix_columns = MatrixColumns<SCALED, INVERSE, ABREAST, DOWN>();

/* Of 32 points of a row, a lane of a quad has eight, of 16 four: the place of one of them. */
template <MatrixWay WAY> __host__ __device__ constexpr int matrix_point(int part, int t, int i) {
    return 32 * part + (WAY == MATRIX_LINES     ? 4 * i + t
                        : WAY == MATRIX_ABREAST ? i / 2 * 8 + 2 * t + i % 2
                        : WAY == MATRIX_FLOATS  ? i / 4 * 16 + 4 * t + i % 4
                                                : 8 * t + i);
}

/* Of rows, forward, the left operand: row g of a result is the real part of k = 8 m + g, row g + 8 the imaginary one, but k = 0 has N2 / 2
 * for it; numbers of a sum are points 4 (step % 2) + 2 half of those of a lane, and the next of that lane after each. */
template <bool SCALED, int N2, MatrixWay WAY> struct MatrixRows {
    MatrixWords of[N2 / 16][N2 / 16][32]; /* m, step, lane */
    __host__ __device__ constexpr MatrixRows() : of{} {
        const MatrixCosines<SCALED, N2, 0> roots;
        for (int m = 0; m < N2 / 16; ++m)
            for (int step = 0; step < N2 / 16; ++step)
                for (int lane = 0; lane < 32; ++lane)
                    for (int i = 0; i < 4; ++i) {
                        const int k = 8 * m + lane / 4;
                        const int of_lane = step % 2 * 4 + i / 2 * 2;
                        const int point = matrix_point<WAY>(step / 2, lane % 4, of_lane),
                                  next = matrix_point<WAY>(step / 2, lane % 4, of_lane + 1);
                        unsigned w = matrix_word(roots.cos(point * k), roots.cos(next * k));
                        if (i % 2)
                            w = k > 0
                                    ? matrix_word(matrix_minus(roots.sin(point * k)), matrix_minus(roots.sin(next * k)))
                                    : matrix_word(roots.cos(point * (N2 / 2)), roots.cos(next * (N2 / 2)));
                        of[m][step][lane].of[i] = w;
                    }
    }
};
template <bool SCALED, int N2, MatrixWay WAY>
__device__ const MatrixRows<SCALED, N2, WAY> matrix_rows = MatrixRows<SCALED, N2, WAY>();

/* Inverse, the right operand, of half the results: columns of n are points 2 (n % 4) + column % 2 of those of lane column / 2, or 2 (n % 2) + ... where
 * it has four; words of a sum are k = 16 pair + 8 step + 4 half + t, of two steps at a time. */
template <bool SCALED, int N2, MatrixWay WAY> struct MatrixPoints {
    static constexpr int OWN = N2 < 32 ? 4 : 8, PAIRS = (N2 + 31) / 32;
    MatrixWords of[N2 / 8][PAIRS][32]; /* n, pair of steps, lane */
    __host__ __device__ constexpr MatrixPoints() : of{} {
        const MatrixCosines<SCALED, N2, 0> roots;
        const MatrixCosines<SCALED, N2, 1> halves;
        for (int n = 0; n < N2 / 8; ++n)
            for (int pair = 0; pair < PAIRS; ++pair)
                for (int lane = 0; lane < 32; ++lane)
                    for (int e = 0; e < 4 && 4 * e < N2 / 2; ++e) {
                        const int k = 16 * pair + 4 * e + lane % 4, column = lane / 4;
                        const int point = matrix_point<WAY>(2 * n / OWN, column / 2, 2 * n % OWN + column % 2),
                                  turn = point * k;
                        of[n][pair][lane].of[e] = k > 0 ? matrix_word(roots.cos(turn), matrix_minus(roots.sin(turn)))
                                                        : matrix_word(halves.cos(0), halves.cos(point * (N2 / 2)));
                    }
    }
};
template <bool SCALED, int N2, MatrixWay WAY>
__device__ const MatrixPoints<SCALED, N2, WAY> matrix_points = MatrixPoints<SCALED, N2, WAY>();

/* The same abreast, the left operand: rows are 16 points, words of a sum k = 8 step + 4 half + t. */
template <bool SCALED, int N2> struct MatrixSpots {
    MatrixWords of[N2 / 16][N2 / 16][32]; /* of points, step, lane */
    __host__ __device__ constexpr MatrixSpots() : of{} {
        const MatrixCosines<SCALED, N2, 0> roots;
        const MatrixCosines<SCALED, N2, 1> halves;
        for (int n = 0; n < N2 / 16; ++n)
            for (int step = 0; step < N2 / 16; ++step)
                for (int lane = 0; lane < 32; ++lane)
                    for (int i = 0; i < 4; ++i) {
                        const int point = 16 * n + i % 2 * 8 + lane / 4, k = 8 * step + i / 2 * 4 + lane % 4,
                                  turn = point * k;
                        of[n][step][lane].of[i] = k > 0 ? matrix_word(roots.cos(turn), matrix_minus(roots.sin(turn)))
                                                        : matrix_word(halves.cos(0), halves.cos(point * (N2 / 2)));
                    }
    }
};
template <bool SCALED, int N2> __device__ const MatrixSpots<SCALED, N2> matrix_spots = MatrixSpots<SCALED, N2>();

/* Words of a table, of which a lane has one of 32. */
CF_DEVICE MatrixWords matrix_fetch(const MatrixWords *own, int i) {
    const uint4 w = __ldg(reinterpret_cast<const uint4 *>(own + 32 * i));
    return {{w.x, w.y, w.z, w.w}};
}

/* The matrix of columns in registers, and d += that times sixteen words of eight planes. */
struct MatrixSquare {
    MatrixWords of[2];
};
CF_DEVICE MatrixSquare matrix_square(const MatrixWords *own) { return {{matrix_fetch(own, 0), matrix_fetch(own, 1)}}; }
template <class K> CF_DEVICE void matrix_column(float d[4], const MatrixSquare &a, const unsigned b[4]) {
    multiply_bins<typename K::Bins>(d, a.of[0].of, b[0], b[1]);
    multiply_bins<typename K::Bins>(d, a.of[1].of, b[2], b[3]);
}
