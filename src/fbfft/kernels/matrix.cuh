/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms of real planes to frequency-major spectra of 16 bits, and back, by matrix products on tensor cores. A block has eight
 * planes; lane = 4 g + t.
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
 * Between rows and columns numbers are rounded to 16 bits once, as spectra are. Matrices are rounded, too: to multiples of a gain whose
 * products with sines and cosines happen to be nearer to such numbers than they are themselves.
 */
#pragma once

#include "fbfft/kernels/half.cuh"
#include "fbfft/kernels/tile.cuh"

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
           : SCALED  ? 1.836933136                                   /* 0.18 */
                     : 1.869544029 /* 0.21 */;
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

template <class K> struct Matrix {
    typedef Tile<K> G;
    static constexpr int N1 = G::N1, N2 = G::N2, R = N1 / 16, COLUMNS = N2 / 2 + 1, WARPS = K::T / 32;
    static constexpr int STEPS = N2 / 16;                        /* of a product along rows */
    static constexpr int LIVE = (G::template hi<1>() + 15) / 16; /* of the R rows of a sum; the others are zero */
    static constexpr bool SCALED = K::Bins::SCALED;
    /* Distances in shared memory, so that lanes meet different banks. Forward, words are [class][column][plane][j]. */
    static constexpr int LINE = 8 * 16 + 8;
    /* Inverse, [plane][column][row of the window, in tiles of 16]. */
    static constexpr int FIRST = G::template lo<1>() / 16, TILES = (G::template hi<1>() + 15) / 16 - FIRST;
    static constexpr int WORD = 16 * TILES + 8, PLANE = N2 / 2 * WORD + 4;
    static constexpr int SHARED_FORWARD = G::TABLE + 4 * R * COLUMNS * LINE, SHARED_INVERSE = G::TABLE + 4 * 8 * PLANE;
    /* Inverse, what keeps numbers between columns and rows as small as bins are. */
    static constexpr int DOWN = SCALED ? bits_of(N1) + 1 : 0;
    static constexpr float GAIN = float(matrix_gain<SCALED>(16) * matrix_gain<SCALED>(N2));
    static_assert(K::P == 8 && N1 % 16 == 0 && N2 % 32 == 0 && WARPS % R == 0, "the planner's choice");
};

#ifdef CF_SIMT
CF_DEVICE void matrix_multiply_bf16(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    const unsigned b[2] = {b0, b1};
    simt_multiply_bf16(d, a, b);
}
#else
CF_DEVICE void matrix_multiply_bf16(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif
template <class K> CF_DEVICE void matrix_multiply(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    if constexpr (K::Bins::SCALED)
        half_multiply(d, a, b0, b1);
    else
        matrix_multiply_bf16(d, a, b0, b1);
}
CF_DEVICE unsigned matrix_swapped(unsigned w) { return w >> 16 | w << 16; }

/* ------------------------------------------------------------------------------------------------------------ matrices */

struct __align__(16) MatrixWords {
    unsigned of[4];
};

/* Of columns, the left operand: row m (forward) or j (inverse), numbers 4 t + e of the sum, e = 2 step + half. It gives real parts. */
template <bool SCALED, bool INVERSE, int DOWN> struct MatrixColumns {
    MatrixWords of[2][32]; /* step, lane */
    __host__ __device__ constexpr MatrixColumns() : of{} {
        const MatrixCosines<SCALED, 16, DOWN> roots;
        for (int step = 0; step < 2; ++step)
            for (int lane = 0; lane < 32; ++lane)
                for (int i = 0; i < 4; ++i) {
                    const int turn = (lane / 4 + i % 2 * 8) * (4 * (lane % 4) + 2 * step + i / 2);
                    of[step][lane].of[i] =
                        matrix_word(roots.cos(turn), INVERSE ? matrix_minus(roots.sin(turn)) : roots.sin(turn));
                }
    }
};
template <bool SCALED, bool INVERSE, int DOWN>
__device__ const MatrixColumns<SCALED, INVERSE, DOWN> matrix_columns = MatrixColumns<SCALED, INVERSE, DOWN>();

/* Of rows, forward, the left operand: row g of a result is the real part of k = 8 m + g, row g + 8 the imaginary one, but k = 0 has N2 / 2
 * for it; numbers of a sum are points 32 (step / 2) + 8 t + 4 (step % 2) + 2 half, and the one after each. */
template <bool SCALED, int N2> struct MatrixRows {
    MatrixWords of[N2 / 16][N2 / 16][32]; /* m, step, lane */
    __host__ __device__ constexpr MatrixRows() : of{} {
        const MatrixCosines<SCALED, N2, 0> roots;
        for (int m = 0; m < N2 / 16; ++m)
            for (int step = 0; step < N2 / 16; ++step)
                for (int lane = 0; lane < 32; ++lane)
                    for (int i = 0; i < 4; ++i) {
                        const int k = 8 * m + lane / 4;
                        const int point = step / 2 * 32 + lane % 4 * 8 + step % 2 * 4 + i / 2 * 2;
                        const int turn = point * k, next = turn + k;
                        unsigned w = matrix_word(roots.cos(turn), roots.cos(next));
                        if (i % 2)
                            w = k > 0 ? matrix_word(matrix_minus(roots.sin(turn)), matrix_minus(roots.sin(next)))
                                      : matrix_word(roots.cos(0), roots.cos(N2 / 2));
                        of[m][step][lane].of[i] = w;
                    }
    }
};
template <bool SCALED, int N2> __device__ const MatrixRows<SCALED, N2> matrix_rows = MatrixRows<SCALED, N2>();

/* Inverse, the right operand, of half the results: columns of n are points 32 (n / 4) + 8 (column / 2) + 2 (n % 4) + column % 2; words of a sum are
 * k = 16 pair + 8 step + 4 half + t, of two steps at a time. */
template <bool SCALED, int N2> struct MatrixPoints {
    MatrixWords of[N2 / 8][N2 / 32][32]; /* n, pair of steps, lane */
    __host__ __device__ constexpr MatrixPoints() : of{} {
        const MatrixCosines<SCALED, N2, 0> roots;
        const MatrixCosines<SCALED, N2, 1> halves;
        for (int n = 0; n < N2 / 8; ++n)
            for (int pair = 0; pair < N2 / 32; ++pair)
                for (int lane = 0; lane < 32; ++lane)
                    for (int e = 0; e < 4; ++e) {
                        const int k = 16 * pair + 4 * e + lane % 4, column = lane / 4;
                        const int point = 32 * (n / 4) + 8 * (column / 2) + 2 * (n % 4) + column % 2, turn = point * k;
                        of[n][pair][lane].of[e] = k > 0 ? matrix_word(roots.cos(turn), matrix_minus(roots.sin(turn)))
                                                        : matrix_word(halves.cos(0), halves.cos(point * (N2 / 2)));
                    }
    }
};
template <bool SCALED, int N2> __device__ const MatrixPoints<SCALED, N2> matrix_points = MatrixPoints<SCALED, N2>();

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
    matrix_multiply<K>(d, a.of[0].of, b[0], b[1]);
    matrix_multiply<K>(d, a.of[1].of, b[2], b[3]);
}

/* ------------------------------------------------------------------------------------------------------------- forward */

/* Eight numbers of a row from position x on; what is beyond the data is zero. */
template <class K> CF_DEVICE void matrix_load(unsigned w[4], const unsigned short *row, bool inside, int x, int start) {
    typedef Tile<K> G;
    typedef typename K::Offset Offset;
    constexpr int WIDE = K::WIDE;
#pragma unroll
    for (int e = 0; e < 4; ++e)
        w[e] = 0;
#pragma unroll
    for (int e = 0; e < 8; e += WIDE) {
        bool in = inside && x + e >= G::template lo<2>() && x + e < G::template hi<2>();
        const Offset at = offset_of<K, 2, Offset>(in ? x + e : G::template lo<2>(), start, in);
        if (!in)
            continue;
        if constexpr (WIDE == 8) {
            const uint4 v = __ldg(reinterpret_cast<const uint4 *>(row + at));
            w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
        } else if constexpr (WIDE == 4) {
            const uint2 v = __ldg(reinterpret_cast<const uint2 *>(row + at));
            w[e / 2] = v.x, w[e / 2 + 1] = v.y;
        } else if constexpr (WIDE == 2) {
            w[e / 2] = __ldg(reinterpret_cast<const unsigned *>(row + at));
        } else {
            w[e / 2] |= unsigned(__ldg(row + at)) << (16 * (e % 2));
        }
    }
}

/* Row j of a plane, as products take it. */
template <class K> struct MatrixRow { unsigned of[Matrix<K>::N2 / 32][4]; };
template <class K>
CF_DEVICE void matrix_row(MatrixRow<K> &row, const Places<K> &places, const unsigned short *signal, int p, int j,
                          int t) {
    typedef Tile<K> G;
    typedef typename K::Offset Offset;
    bool inside = j >= G::template lo<1>() && j < G::template hi<1>();
    Offset at = offset_of<K, 1, Offset>(inside ? j : G::template lo<1>(), places.template start<1>(p), inside);
    at += offset_of<K, 0, Offset>(G::template lo<0>(), places.template start<0>(p), inside);
#pragma unroll
    for (int pair = 0; pair < Matrix<K>::N2 / 32; ++pair) {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            row.of[pair][e] = 0;
        if (32 * pair < G::template hi<2>() && 32 * pair + 32 > G::template lo<2>())
            matrix_load<K>(row.of[pair], signal + at, inside, 32 * pair + 8 * t, places.template start<2>(p));
    }
}

/* The classes of a column's j and j + 1, from their rows in registers to shared memory, times w^jc. */
template <class K>
CF_DEVICE void matrix_put(smem<unsigned> to, cplx *v, cplx *w, const cplx (&turn)[2][Matrix<K>::R], int column) {
    typedef Matrix<K> M;
    dft<M::R, M::LIVE>(v);
    dft<M::R, M::LIVE>(w);
    v[0] = {turn[0][0].x * v[0].x, turn[0][0].x * v[0].y};
    w[0] = {turn[1][0].x * w[0].x, turn[1][0].x * w[0].y};
#pragma unroll
    for (int c = 1; c < M::R; ++c) {
        v[c] = v[c] * turn[0][c];
        w[c] = w[c] * turn[1][c];
    }
#pragma unroll
    for (int c = 0; c < M::R; ++c)
        smem_cast<uint2>(to + (c * M::COLUMNS + column) * M::LINE)[0] =
            make_uint2(K::Bins::pack(v[c].x, v[c].y), K::Bins::pack(w[c].x, w[c].y));
}

/* A task is half the j of a plane, 8 q + g of the right operand. */
template <class K> CF_DEVICE void matrix_forward_rows(smem<unsigned> y, const Places<K> &places, const TileCall &call) {
    typedef Matrix<K> M;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const MatrixWords *const table = &matrix_rows<M::SCALED, M::N2>.of[0][0][lane];
#pragma unroll 1
    for (int task = int(threadIdx.x) / 32; task < 16; task += M::WARPS) {
        const int p = task / 2, q = task % 2;
        MatrixRow<K> rows[M::LIVE];
#pragma unroll
        for (int r = 0; r < M::LIVE; ++r)
            matrix_row<K>(rows[r], places, static_cast<const unsigned short *>(call.in) + places.signal(p), p,
                          8 * q + g + 16 * r, t);
        const float factor = places.factor(min(p, places.live - 1)) / M::GAIN;
        cplx turn[2][M::R];
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int c = 0; c < M::R; ++c) {
                const cplx w = cf_roots<M::N1>.w[c * (8 * q + 2 * t + i)];
                turn[i][c] = {factor * w.x, factor * w.y};
            }
        smem<unsigned> to = y + (p * 16 + 8 * q + 2 * t);
#pragma unroll
        for (int m = 0; m < M::N2 / 16; ++m) {
            float sum[M::LIVE][4] = {};
#pragma unroll
            for (int step = 0; step < M::STEPS; ++step) {
                if (32 * (step / 2) >= M::G::template hi<2>())
                    continue;
                const MatrixWords a = matrix_fetch(table, m * M::STEPS + step);
#pragma unroll
                for (int r = 0; r < M::LIVE; ++r)
                    matrix_multiply<K>(sum[r], a.of, rows[r].of[step / 2][step % 2 * 2],
                                       rows[r].of[step / 2][step % 2 * 2 + 1]);
            }
            const bool first = m == 0 && g == 0;
            cplx v[M::R], w[M::R], v_last[M::R], w_last[M::R];
#pragma unroll
            for (int r = 0; r < M::LIVE; ++r) {
                v_last[r] = {sum[r][2], 0};
                w_last[r] = {sum[r][3], 0};
                v[r] = {sum[r][0], first ? 0.0f : sum[r][2]};
                w[r] = {sum[r][1], first ? 0.0f : sum[r][3]};
            }
            matrix_put<K>(to, v, w, turn, 8 * m + g);
            if (first)
                matrix_put<K>(to, v_last, w_last, turn, M::N2 / 2);
        }
    }
}

/* Of a class, every so many columns. BOTH: planes 2 t and 2 t + 1 are neighbours, and both are stored. */
template <class K, bool BOTH>
CF_DEVICE void matrix_forward_class(smem<uint4> from, const MatrixSquare &re, const MatrixSquare &im, unsigned *to,
                                    long long second, int live, int first, long long unit) {
    typedef Matrix<K> M;
    constexpr int STEP = M::WARPS / M::R;
    const long long down = bin_of<K>(0, 8 * M::R, 0, unit), right = bin_of<K>(0, 0, STEP, unit);
#pragma unroll 2
    for (int column = first; column < M::COLUMNS; column += STEP, to += right) {
        const uint4 w = from[column * (M::LINE / 4)];
        const unsigned b[4] = {w.x, w.y, w.z, w.w};
        float x[4] = {0, 0, 0, 0}, y[4] = {0, 0, 0, 0};
        matrix_column<K>(x, re, b);
        matrix_column<K>(y, im, b);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const unsigned v0 = K::Bins::pack(x[2 * h], y[2 * h]), v1 = K::Bins::pack(x[2 * h + 1], y[2 * h + 1]);
            unsigned *const at = to + h * down;
            if (BOTH) {
                *reinterpret_cast<uint2 *>(at) = make_uint2(v0, v1);
            } else {
                if (live > 0)
                    at[0] = v0;
                if (live > 1)
                    at[second] = v1;
            }
        }
    }
}

template <class K>
CF_DEVICE void matrix_forward_columns(smem<unsigned> y, const Places<K> &places, const TileCall &call) {
    typedef Matrix<K> M;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4, warp = int(threadIdx.x) / 32, c = warp % M::R;
    const MatrixSquare re = matrix_square(&matrix_columns<M::SCALED, false, 0>.of[0][lane]);
    MatrixSquare im;
#pragma unroll
    for (int i = 0; i < 8; ++i) /* real parts come from (cos, sin), imaginary ones from (-sin, cos) */
        im.of[i / 4].of[i % 4] = matrix_swapped(re.of[i / 4].of[i % 4]) ^ 0x8000u;
    const long long plane = places.spectrum(2 * t), second = places.spectrum(2 * t + 1) - plane;
    unsigned *const out = static_cast<unsigned *>(call.out) + plane;
    const int live = places.live - 2 * t, first = warp / M::R;
    unsigned *const to = out + bin_of<K>(0, M::R * g + c, first, call.bin_unit);
    smem<uint4> from = smem_cast<uint4>(y + c * M::COLUMNS * M::LINE) + lane;
    if (live > 1 && second == 1 && call.bin_unit % 2 == 0 && reinterpret_cast<size_t>(out) % 8 == 0)
        matrix_forward_class<K, true>(from, re, im, to, second, live, first, call.bin_unit);
    else
        matrix_forward_class<K, false>(from, re, im, to, second, live, first, call.bin_unit);
}

template <class K> CF_DEVICE void matrix_forward(const TileCall &call) {
    typedef Tile<K> G;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<unsigned> y = smem_cast<unsigned>(shared + G::TABLE);
    const Places<K> places = find_planes<K, false>(shared, call);
    if constexpr (K::Bins::SCALED) {
        find_factors<K>(shared, call, places.live);
        __syncthreads();
    }
    matrix_forward_rows<K>(y, places, call);
    __syncthreads();
    matrix_forward_columns<K>(y, places, call);
}

/* ------------------------------------------------------------------------------------------------------------- inverse */

/* A plane's words of a column: R words of each number 4 t + e of its classes' sums, which follow one another. */
template <class K> CF_DEVICE void matrix_bins(unsigned *w, const unsigned *plane, int column, int t, long long unit) {
    typedef Matrix<K> M;
    const unsigned *from = plane + bin_of<K>(0, 4 * M::R * t, column, unit);
    const long long down = bin_of<K>(0, 1, 0, unit);
#pragma unroll
    for (int i = 0; i < 4 * M::R; ++i)
        w[i] = __ldcs(from + i * down);
}

/* u += the classes' sums of a column's words. What gives a real part gives the imaginary one of turned words, (im, -re). */
template <class K>
CF_DEVICE void matrix_classes(float (&u)[Matrix<K>::R][2][4], const MatrixSquare &a, const unsigned *w) {
    typedef Matrix<K> M;
#pragma unroll
    for (int c = 0; c < M::R; ++c) {
        const unsigned b[4] = {w[c], w[M::R + c], w[2 * M::R + c], w[3 * M::R + c]};
        unsigned turned[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            turned[i] = matrix_swapped(b[i]) ^ 0x80000000u;
        matrix_column<K>(u[c][0], a, b);
        matrix_column<K>(u[c][1], a, turned);
    }
}

/* Bins of column 0 or N2 / 2 that are their own mirror images: their imaginary parts do not count. */
CF_DEVICE void matrix_mirrors(unsigned *w, int t) {
    if (t % 2 == 0)
        w[0] = w[0] & 0xffffu;
}

template <class K>
CF_DEVICE void matrix_inverse_columns(smem<unsigned> z, const Places<K> &places, const TileCall &call) {
    typedef Matrix<K> M;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const unsigned *const plane = static_cast<const unsigned *>(call.in) + places.spectrum(g);
    unsigned next[4 * M::R];
    matrix_bins<K>(next, plane, int(threadIdx.x) / 32, t, call.bin_unit);
    const MatrixSquare a = matrix_square(&matrix_columns<M::SCALED, true, M::DOWN>.of[0][lane]);
    cplx turn[2][M::R]; /* of j = g and g + 8 */
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int c = 1; c < M::R; ++c)
            turn[h][c] = conj(cf_roots<M::N1>.w[c * (g + 8 * h)]);
    smem<unsigned> own = z + (2 * t * M::PLANE + g);
#pragma unroll 1
    for (int k = int(threadIdx.x) / 32; k < M::N2 / 2; k += M::WARPS) {
        unsigned w[4 * M::R];
        float u[M::R][2][4] = {};
#pragma unroll
        for (int i = 0; i < 4 * M::R; ++i)
            w[i] = next[i];
        if (k == 0) { /* both real columns at once, the second one times i */
            matrix_bins<K>(next, plane, M::N2 / 2, t, call.bin_unit);
            matrix_mirrors(w, t);
            matrix_mirrors(next, t);
#pragma unroll
            for (int i = 0; i < 4 * M::R; ++i)
                next[i] = matrix_swapped(next[i]) ^ 0x8000u;
            matrix_classes<K>(u, a, next);
        }
        if (k + M::WARPS < M::N2 / 2)
            matrix_bins<K>(next, plane, k + M::WARPS, t, call.bin_unit);
        matrix_classes<K>(u, a, w);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            cplx v[M::R];
#pragma unroll
            for (int c = 0; c < M::R; ++c) {
                v[c] = {u[c][0][i], u[c][1][i]};
                if (c > 0)
                    v[c] = v[c] * turn[i / 2][c];
            }
            dft_inverse<M::R>(v);
#pragma unroll
            for (int r = 0; r < M::TILES; ++r)
                own[i % 2 * M::PLANE + k * M::WORD + 16 * r + i / 2 * 8] =
                    K::Bins::pack(v[M::FIRST + r].x, v[M::FIRST + r].y);
        }
    }
}

/* Eight numbers of a row from position x on. */
template <class K>
CF_DEVICE void matrix_put_row(const float v[8], unsigned short *row, int x, int start, float bias, bool accumulate) {
    typedef Tile<K> G;
    typedef typename K::Offset Offset;
    constexpr int WIDE = K::WIDE;
#pragma unroll
    for (int e = 0; e < 8; e += WIDE) {
        bool in = x + e >= G::template lo<2>() && x + e < G::template hi<2>();
        const Offset at = offset_of<K, 2, Offset>(in ? x + e : G::template lo<2>(), start, in);
        if (!in)
            continue;
        unsigned short *const to = row + at;
        float u[WIDE];
#pragma unroll
        for (int i = 0; i < WIDE; ++i)
            u[i] = v[e + i] + bias;
        if (accumulate) {
#pragma unroll
            for (int i = 0; i < WIDE; ++i)
                u[i] += K::Storage::load(to + i);
        }
        if constexpr (WIDE == 8) {
            *reinterpret_cast<uint4 *>(to) = make_uint4(K::Bins::pack(u[0], u[1]), K::Bins::pack(u[2], u[3]),
                                                        K::Bins::pack(u[4], u[5]), K::Bins::pack(u[6], u[7]));
        } else if constexpr (WIDE == 4) {
            *reinterpret_cast<uint2 *>(to) = make_uint2(K::Bins::pack(u[0], u[1]), K::Bins::pack(u[2], u[3]));
        } else if constexpr (WIDE == 2) {
            *reinterpret_cast<unsigned *>(to) = K::Bins::pack(u[0], u[1]);
        } else {
            *to = K::Storage::rounded(u[0]);
        }
    }
}

template <class K> CF_DEVICE void matrix_inverse_rows(smem<unsigned> z, const Places<K> &places, const TileCall &call) {
    typedef Matrix<K> M;
    typedef Tile<K> G;
    typedef typename K::Offset Offset;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const MatrixWords *const table = &matrix_points<M::SCALED, M::N2>.of[0][0][lane];
#pragma unroll 1
    for (int task = int(threadIdx.x) / 32; task < places.live * M::TILES; task += M::WARPS) {
        const int p = task / M::TILES, m = task % M::TILES;
        smem<unsigned> from = z + (p * M::PLANE + 16 * m + g + t * M::WORD);
        unsigned a[M::STEPS][4];
#pragma unroll
        for (int step = 0; step < M::STEPS; ++step)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                a[step][i] = from[(8 * step + i / 2 * 4) * M::WORD + i % 2 * 8];
        const float factor = float(call.scale) * (float(2 << M::DOWN) / M::GAIN) * places.factor(p);
        float bias = 0;
        if (call.bias)
            bias = K::Storage::load(static_cast<const unsigned short *>(call.bias) +
                                    (long long)blockIdx.y * K::CHANNELS + places.channel(p));
        bool always = true;
        const Offset plane = offset_of<K, 0, Offset>(G::template lo<0>(), places.template start<0>(p), always);
        unsigned short *const signal = static_cast<unsigned short *>(call.out) + places.signal(p) + plane;
        unsigned short *row[2];
        bool inside[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int j = 16 * (M::FIRST + m) + g + 8 * h;
            inside[h] = always && j >= G::template lo<1>() && j < G::template hi<1>();
            row[h] = signal + offset_of<K, 1, Offset>(inside[h] ? j : G::template lo<1>(), places.template start<1>(p),
                                                      inside[h]);
        }
#pragma unroll
        for (int part = 0; part < M::N2 / 32; ++part) {
            if (32 * part >= G::template hi<2>() || 32 * part + 32 <= G::template lo<2>())
                continue;
            float sum[4][4] = {};
#pragma unroll
            for (int n = 0; n < 4; ++n) {
#pragma unroll
                for (int pair = 0; pair < M::N2 / 32; ++pair) {
                    const MatrixWords b = matrix_fetch(table, (4 * part + n) * (M::N2 / 32) + pair);
                    matrix_multiply<K>(sum[n], a[2 * pair], b.of[0], b.of[1]);
                    matrix_multiply<K>(sum[n], a[2 * pair + 1], b.of[2], b.of[3]);
                }
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float v[8];
#pragma unroll
                for (int i = 0; i < 8; ++i)
                    v[i] = factor * sum[i / 2][2 * h + i % 2];
                if (inside[h])
                    matrix_put_row<K>(v, row[h], 32 * part + 8 * t, places.template start<2>(p), bias, call.accumulate);
            }
        }
    }
}

template <class K> CF_DEVICE void matrix_inverse(const TileCall &call) {
    typedef Tile<K> G;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<unsigned> z = smem_cast<unsigned>(shared + G::TABLE);
    const Places<K> places = find_planes<K, true>(shared, call);
    matrix_inverse_columns<K>(z, places, call);
    __syncthreads();
    matrix_inverse_rows<K>(z, places, call);
}
