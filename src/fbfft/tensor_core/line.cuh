/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms of real lines of N = N1 N2 points, as those of planes in plane.cuh but for a factor between rows and columns:
 *
 *     forward    y[n][k] = w_N^nk sum over i of x[n + N1 i] w_N2^ik,
 *                X[k + N2 (m + 16 c)] = sum over r of w_R^rc w_N1^rm (sum over j of y[R j + r][k] w_16^jm)
 *     inverse    u[c][j] = w_N1^-jc sum over m of X[k + N2 (R m + c)] w_16^-jm,
 *                y[j + 16 r][k] = w_N^-(j + 16 r)k sum over c of u[c][j] w_R^-rc,
 *                x[n + N1 i] = sum over k of y[n][k] w_N2^-ik
 *
 * Row j of class r is every N1-th point from R j + r on, so R neighbours are one lane's. The last sums and factors of the forward columns are in
 * registers behind the product, where those of planes are before it. k goes to N2 / 2; bins beyond N / 2 are images of others, and stand there
 * conjugated. Columns 0 and N2 / 2 have both bins of each such pair.
 */
#pragma once

#include "fbfft/tensor_core/plane_forward.cuh"
#include "fbfft/tensor_core/plane_inverse.cuh"

struct __align__(16) MatrixRoots {
    cplx of[2];
};
CF_DEVICE MatrixRoots matrix_fetch(const MatrixRoots *p) {
    const float4 v = __ldg(reinterpret_cast<const float4 *>(p));
    return {{{v.x, v.y}, {v.z, v.w}}};
}
__host__ __device__ constexpr cplx matrix_root(int k, int n) {
    return {real(cf_cos(k % n, n)), real(-cf_sin(k % n, n))};
}

/* Forward: w_N^nk of a lane's first two rows n of m, whose k is 8 m + g, and w_N^rk of the R rows from each of them on. */
template <int N1, int N2> struct MatrixTurns {
    static constexpr int R = N1 / 16;
    MatrixRoots row[2][N2 / 16][32], next[N2 / 16][8][(R + 1) / 2]; /* q, m, lane; m, g, r / 2 */
    __host__ __device__ constexpr MatrixTurns() : row{}, next{} {
        for (int m = 0; m < N2 / 16; ++m)
            for (int g = 0; g < 8; ++g) {
                const int k = 8 * m + g;
                for (int r = 0; r < R; ++r)
                    next[m][g][r / 2].of[r % 2] = matrix_root(r * k, N1 * N2);
                for (int i = 0; i < 16; ++i)
                    row[i / 8][m][4 * g + i / 2 % 4].of[i % 2] = matrix_root(R * i * k, N1 * N2);
            }
    }
};
template <int N1, int N2> __device__ const MatrixTurns<N1, N2> matrix_turns = MatrixTurns<N1, N2>();

/* Inverse: w_N^-nk of rows n = g + 8 h + 16 r of column k. */
template <int N1, int N2> struct MatrixReturns {
    static constexpr int R = N1 / 16;
    MatrixRoots of[N2 / 2 + 1][R][8]; /* k, r, g; h */
    __host__ __device__ constexpr MatrixReturns() : of{} {
        for (int k = 0; k <= N2 / 2; ++k)
            for (int n = 0; n < N1; ++n) {
                const cplx w = matrix_root(n * k, N1 * N2);
                of[k][n / 16][n % 8].of[n / 8 % 2] = {w.x, -w.y};
            }
    }
};
template <int N1, int N2> __device__ const MatrixReturns<N1, N2> matrix_returns = MatrixReturns<N1, N2>();

/* Of so many points from x on, whether none or all are data. */
template <class K> CF_DEVICE constexpr bool matrix_empty(int x, int points) {
    return x >= Tile<K>::template hi<2>() || x + points <= Tile<K>::template lo<2>();
}
template <class K> CF_DEVICE constexpr bool matrix_whole(int x, int points) {
    return x >= Tile<K>::template lo<2>() && x + points <= Tile<K>::template hi<2>();
}

/* Which points of line p, counted from some point on, are in the signal, and where. Mostly they are an interval whose elements follow one another. */
template <class K, class Bits> struct MatrixLine {
    typedef Tile<K> G;
    typedef typename K::Offset Offset;
    static constexpr TileAxis AXIS = K::AXIS[2];
    static constexpr bool PLAIN = AXIS.spread == 1 && AXIS.step == 1 && (!AXIS.checked || AXIS.mode == ZEROS);
    Bits *line; /* PLAIN: the first of these points */
    int from, start, low, count;
    bool inside;
    MatrixLine() = default;
    CF_DEVICE MatrixLine(Bits *signal, const Places<K> &places, int p, int from_) : from(from_) {
        inside = true;
        line = signal + places.signal(p) +
               offset_of<K, 0, Offset>(G::template lo<0>(), places.template start<0>(p), inside);
        line += offset_of<K, 1, Offset>(G::template lo<1>(), places.template start<1>(p), inside);
        start = places.template start<2>(p);
        low = G::template lo<2>();
        int high = G::template hi<2>();
        if constexpr (PLAIN) {
            const int coordinate = start - AXIS.first; /* of point 0 */
            if constexpr (AXIS.checked) {
                low = max(low, int(max(AXIS.lower, 0ll)) - coordinate);
                high = min(high, int(min(AXIS.upper, AXIS.size)) - coordinate);
            }
            line += (long long)(coordinate + from) * K::AXIS_STRIDE[2];
        }
        count = inside ? max(high - low, 0) : 0;
        low -= from;
    }
    /* Point x, or `in` is false. whole: it is data. */
    CF_DEVICE Bits *at(int x, bool whole, bool &in) const {
        if constexpr (PLAIN) {
            in = !AXIS.checked && whole ? inside : unsigned(x - low) < unsigned(count);
            return line + x * K::AXIS_STRIDE[2];
        } else {
            const int point = from + x;
            in = inside && (whole || (point >= G::template lo<2>() && point < G::template hi<2>()));
            return line + offset_of<K, 2, Offset>(in ? point : G::template lo<2>(), start, in);
        }
    }
};

/* ------------------------------------------------------------------------------------------------------------- forward */

/* R neighbours, as they stand in memory; what is beyond the data is zero. */
template <class K, class Line, int R>
CF_DEVICE void matrix_neighbours(float (&v)[R], const Line &line, int x, bool whole) {
    constexpr int WIDE = K::WIDE;
#pragma unroll
    for (int e = 0; e < R; e += WIDE) {
        bool in;
        const float *const from = line.at(x + e, whole, in);
#pragma unroll
        for (int i = 0; i < WIDE; ++i)
            v[e + i] = 0;
        if (!in)
            continue;
        if constexpr (WIDE == 4) {
            const float4 q = __ldg(reinterpret_cast<const float4 *>(from));
            v[e] = q.x, v[e + 1] = q.y, v[e + 2] = q.z, v[e + 3] = q.w;
        } else if constexpr (WIDE == 2) {
            const float2 q = __ldg(reinterpret_cast<const float2 *>(from));
            v[e] = q.x, v[e + 1] = q.y;
        } else {
            v[e] = __ldg(from);
        }
    }
}
template <class K, class Line, int WORDS>
CF_DEVICE void matrix_neighbours(unsigned (&w)[WORDS], const Line &line, int x, bool whole) {
    constexpr int R = Matrix<K>::R, WIDE = K::WIDE;
#pragma unroll
    for (int i = 0; i < WORDS; ++i)
        w[i] = 0;
#pragma unroll
    for (int e = 0; e < R; e += WIDE) {
        bool in;
        const unsigned short *const from = line.at(x + e, whole, in);
        if (!in)
            continue;
        if constexpr (WIDE == 4) {
            const uint2 v = __ldg(reinterpret_cast<const uint2 *>(from));
            w[0] = v.x, w[1] = v.y;
        } else if constexpr (WIDE == 2) {
            w[e / 2] = __ldg(reinterpret_cast<const unsigned *>(from));
        } else {
            w[e / 2] |= unsigned(__ldg(from)) << (16 * (e % 2));
        }
    }
}

/* Points e and e + 1 of a lane, of the R rows from row j of class 0 on. */
template <class K>
CF_DEVICE void matrix_two_points(MatrixRow<K, true> (&rows)[Matrix<K>::R], int part, int e,
                                 const float (&first)[Matrix<K>::R], const float (&second)[Matrix<K>::R]) {
#pragma unroll
    for (int r = 0; r < Matrix<K>::R; ++r) {
        rows[r].of[part][e] = first[r];
        rows[r].of[part][e + 1] = second[r];
    }
}
template <class K, int WORDS>
CF_DEVICE void matrix_two_points(MatrixRow<K, false> (&rows)[Matrix<K>::R], int part, int e,
                                 const unsigned (&first)[WORDS], const unsigned (&second)[WORDS]) {
#pragma unroll
    for (int r = 0; r < Matrix<K>::R; ++r)
        rows[r].of[part][e / 2] =
            r % 2 ? first[r / 2] >> 16 | (second[r / 2] & 0xffff0000u) : (first[r / 2] & 0xffffu) | second[r / 2] << 16;
}

/* Rows j of all classes, from a lane's first point on. */
template <class K, class Line>
CF_DEVICE void matrix_rows_of_line(MatrixRow<K> (&rows)[Matrix<K>::R], const Line &line) {
    typedef Matrix<K> M;
    typedef typename Choice<K::Storage::PLAIN, float, unsigned>::type Piece;
    constexpr int PIECES = K::Storage::PLAIN ? M::R : (M::R + 1) / 2;
#pragma unroll
    for (int i = 0; i < M::N2 / 4; i += 2) {
        Piece piece[2][PIECES] = {};
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int first = 4 * (i + h) * M::N1;
            if (!matrix_empty<K>(first, 4 * M::N1))
                matrix_neighbours<K>(piece[h], line, first, matrix_whole<K>(first, 4 * M::N1));
        }
        matrix_two_points<K>(rows, i / 8, i % 8, piece[0], piece[1]);
    }
}

/* Columns 8 m + g of rows j and j + 1 of all classes, to shared memory, times factor w_N^nk; column N2 / 2 as numbers in FP32, times factor alone. */
template <class K>
CF_DEVICE void matrix_put_line(smem<unsigned> to, const float (&sum)[Matrix<K>::R][4], float factor, int q, int m) {
    typedef Matrix<K> M;
    const MatrixTurns<M::N1, M::N2> &turns = matrix_turns<M::N1, M::N2>;
    const int lane = int(threadIdx.x) % 32, g = lane / 4;
    const bool first = m == 0 && g == 0;
    if (first)
#pragma unroll
        for (int r = 0; r < M::R; ++r)
            smem_cast<uint2>(to + (r * M::COLUMNS + M::N2 / 2) * M::LINE)[0] =
                make_uint2(__float_as_uint(factor * sum[r][2]), __float_as_uint(factor * sum[r][3]));
    MatrixRoots row = matrix_fetch(&turns.row[q][m][lane]);
#pragma unroll
    for (int i = 0; i < 2; ++i)
        row.of[i] = {factor * row.of[i].x, factor * row.of[i].y};
#pragma unroll
    for (int r = 0; r < M::R; r += 2) {
        MatrixRoots next = {};
        if (M::R > 1)
            next = matrix_fetch(&turns.next[m][g][r / 2]);
#pragma unroll
        for (int c = r; c < r + 2 && c < M::R; ++c) {
            unsigned word[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const cplx v = {sum[c][i], first ? 0.0f : sum[c][2 + i]};
                const cplx y = v * (c == 0 ? row.of[i] : row.of[i] * next.of[c % 2]);
                word[i] = K::Bins::pack(y.x, y.y);
            }
            smem_cast<uint2>(to + (c * M::COLUMNS + 8 * m + g) * M::LINE)[0] = make_uint2(word[0], word[1]);
        }
    }
}

template <class K>
CF_DEVICE void matrix_line_through(const MatrixNumbers<K> (&rows)[Matrix<K>::R], const MatrixWords *table, float factor,
                                   int q, smem<unsigned> to) {
    typedef Matrix<K> M;
#pragma unroll
    for (int m = 0; m < M::N2 / 16; ++m) {
        float sum[M::R][4] = {};
#pragma unroll
        for (int step = 0; step < M::STEPS; ++step) {
            if (matrix_empty<K>(16 * step * M::N1, 16 * M::N1))
                continue;
            const MatrixWords a = matrix_fetch(table, m * M::STEPS + step);
#pragma unroll
            for (int r = 0; r < M::R; ++r)
                multiply_bins<typename K::Bins>(sum[r], a.of, rows[r].of[step / 2][step % 2 * 2],
                                                rows[r].of[step / 2][step % 2 * 2 + 1]);
        }
        matrix_put_line<K>(to, sum, factor, q, m);
    }
}

/* A task is half the j of a line, 8 q + g of the right operand. */
template <class K>
CF_DEVICE void matrix_line_rows(smem<unsigned> y, smem<float> parts, const Places<K> &places, const TileCall &call) {
    typedef Matrix<K> M;
    typedef typename K::Storage::bits bits;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const MatrixWords *const table = &matrix_rows<M::SCALED, M::N2, M::WAY>.of[0][0][lane];
#pragma unroll 1
    for (int task = matrix_warp<K>(); task < 16; task += M::WARPS) {
        const int p = task / 2, q = task % 2;
        MatrixRow<K> raw[M::R];
        matrix_rows_of_line<K>(raw, MatrixLine<K, const bits>(static_cast<const bits *>(call.in), places, p,
                                                              M::N1 * t + M::R * (8 * q + g)));
        float whole;
        if constexpr (K::FINDS) {
            const float most = largest_of_warp(matrix_largest<K>(raw));
            whole = matrix_power(Factor<K>::exponent(most));
            if (lane == 0)
                parts[task] = most;
        }
        if constexpr (!K::FINDS)
            whole = places.factor(min(p, places.live - 1));
        MatrixNumbers<K> rows[M::R];
#pragma unroll
        for (int r = 0; r < M::R; ++r)
            rows[r] = matrix_numbers<K>(raw[r], matrix_up<K>() * whole);
        matrix_line_through<K>(rows, table, (K::Storage::PLAIN ? 1 / matrix_up<K>() : whole) / M::GAIN, q,
                               y + (p * 16 + 8 * q + 2 * t));
    }
}

/* Every so many columns. BOTH: matrix_stores_both(). */
template <class K, bool BOTH>
CF_DEVICE void matrix_line_columns_of(smem<unsigned> from, const MatrixSquare &re, const MatrixSquare &im,
                                      unsigned *out, long long second, int live, long long unit, unsigned share) {
    typedef Matrix<K> M;
    const int g = int(threadIdx.x) % 32 / 4, t = int(threadIdx.x) % 4;
    const long long down = bin_of<K>(0, 0, 8 * M::N2, unit);
    cplx turn[2][M::R]; /* of m = g and g + 8 */
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int r = 1; r < M::R; ++r)
            turn[h][r] = cf_roots<M::N1>.w[r * (g + 8 * h)];
#pragma unroll 1
    for (int column = matrix_warp<K>(); column < M::COLUMNS; column += M::WARPS) {
        float x[M::R][4] = {}, y[M::R][4] = {};
#pragma unroll
        for (int r = 0; r < M::R; ++r) {
            const uint4 w = smem_cast<uint4>(from)[(r * M::COLUMNS + column) * (M::LINE / 4)];
            unsigned b[4] = {w.x, w.y, w.z, w.w};
            if (column == M::N2 / 2)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const cplx root = cf_roots<2 * M::N1>.w[M::R * (4 * t + i) + r];
                    const float number = __uint_as_float(b[i]);
                    b[i] = K::Bins::pack(number * root.x, number * root.y);
                }
            if constexpr (K::FINDS)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    b[i] = product_of_halves(b[i], share);
            matrix_column<K>(x[r], re, b);
            matrix_column<K>(y[r], im, b);
        }
        const int bin = column + M::N2 * g;
        unsigned *const to = out + bin_of<K>(0, 0, bin, unit), *const image =
                                                                   out + bin_of<K>(0, 0, M::N1 * M::N2 - bin, unit);
        const bool own = column == 0 || column == M::N2 / 2, last = column == 0 && g == 0; /* it has bin N / 2 */
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            cplx v[2][M::R];
#pragma unroll
            for (int e = 0; e < 2; ++e) {
#pragma unroll
                for (int r = 0; r < M::R; ++r) {
                    v[e][r] = {x[r][2 * h + e], y[r][2 * h + e]};
                    if (r > 0)
                        v[e][r] = v[e][r] * turn[h][r];
                }
                dft<M::R>(v[e]);
            }
#pragma unroll
            for (int c = 0; c < M::R; ++c) {
                const int eighth = 2 * c + h;
                const bool mirrored = 8 * eighth >= M::N1 / 2;
                if (mirrored && own && !(8 * eighth == M::N1 / 2 && last))
                    continue;
                const float sign = mirrored ? -1.0f : 1.0f;
                unsigned *const at = mirrored ? image - eighth * down : to + eighth * down;
                matrix_store_two<BOTH>(at, second, live, K::Bins::pack(v[0][c].x, sign * v[0][c].y),
                                       K::Bins::pack(v[1][c].x, sign * v[1][c].y));
            }
        }
    }
}

template <class K>
CF_DEVICE void matrix_line_columns(smem<unsigned> y, smem<float> parts, const Places<K> &places, const TileCall &call) {
    typedef Matrix<K> M;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    unsigned share = 0; /* of the words of plane g: j from 4 t on, which are in one half */
    if constexpr (K::FINDS)
        share = matrix_share<K>(parts[2 * g + t / 2], matrix_octet_exponent<K>(parts, call));
    const MatrixSquare re = matrix_square(&matrix_columns<M::SCALED, false, false, 0>.of[0][lane]);
    const MatrixSquare im = matrix_imaginary(re);
    const long long plane = places.spectrum(2 * t), second = places.spectrum(2 * t + 1) - plane;
    unsigned *const out = static_cast<unsigned *>(call.out) + plane;
    const int live = places.live - 2 * t;
    if (matrix_stores_both<K>(places, call))
        matrix_line_columns_of<K, true>(y + 4 * lane, re, im, out, second, live, call.bin_unit, share);
    else
        matrix_line_columns_of<K, false>(y + 4 * lane, re, im, out, second, live, call.bin_unit, share);
}

template <class K> CF_DEVICE void matrix_line_forward(const TileCall &call) {
    typedef Matrix<K> M;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<unsigned> y = smem_cast<unsigned>(shared + M::G::TABLE) + matrix_octet<K>() * M::FORWARD;
    smem<float> parts = smem_cast<float>(y + (M::FORWARD - M::PARTS));
    const Places<K> all = find_planes<K, false>(shared, call), places = matrix_places<K>(all, matrix_octet<K>());
    if constexpr (K::Bins::SCALED && !K::FINDS) {
        find_factors<K>(shared, call, all.live);
        __syncthreads();
    }
    if (M::OCTETS == 1 || places.live > 0)
        matrix_line_rows<K>(y, parts, places, call);
    __syncthreads();
    if (M::OCTETS == 1 || places.live > 0)
        matrix_line_columns<K>(y, parts, places, call);
}

/* ------------------------------------------------------------------------------------------------------------- inverse */

/* Of columns, the left operand as MatrixColumns has it, but for m from 8 on, whose words are images: conjugated. */
template <bool SCALED, int DOWN> struct MatrixImages {
    MatrixWords of[2][32]; /* step, lane */
    __host__ __device__ constexpr MatrixImages() : of{} {
        const MatrixCosines<SCALED, 16, DOWN> roots;
        for (int step = 0; step < 2; ++step)
            for (int lane = 0; lane < 32; ++lane)
                for (int i = 0; i < 4; ++i) {
                    const int m = 4 * (lane % 4) + 2 * step + i / 2, turn = (lane / 4 + i % 2 * 8) * m;
                    of[step][lane].of[i] =
                        matrix_word(roots.cos(turn), m < 8 ? matrix_minus(roots.sin(turn)) : roots.sin(turn));
                }
    }
};
template <bool SCALED, int DOWN>
__device__ const MatrixImages<SCALED, DOWN> matrix_images = MatrixImages<SCALED, DOWN>();

/* A line's words of a column, as matrix_bins(), of images from N / 2 down. */
template <class K>
CF_DEVICE void matrix_line_bins(unsigned *w, const unsigned *line, int column, int t, long long unit) {
    typedef Matrix<K> M;
    const int bin = column + M::N2 * 4 * M::R * t;
    const unsigned *const from = line + bin_of<K>(0, 0, t < 2 ? bin : M::N1 * M::N2 - bin, unit);
    const long long down = bin_of<K>(0, 0, t < 2 ? M::N2 : -M::N2, unit);
#pragma unroll
    for (int i = 0; i < 4 * M::R; ++i)
        w[i] = __ldcs(from + i * down);
}

template <class K>
CF_DEVICE void matrix_line_bins_through(smem<unsigned> z, const Places<K> &places, const TileCall &call) {
    typedef Matrix<K> M;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const unsigned *const line = static_cast<const unsigned *>(call.in) + places.spectrum(g);
    const unsigned imaginary = t < 2 ? 0x80000000u : 0x8000u; /* (im, -re), or of images (-im, re) */
    /* Column N2 / 2, whose rows become real, goes before column 0, whose are so, too: one word has both. */
    int column = matrix_warp<K>() > 0 ? matrix_warp<K>() : M::N2 / 2;
    unsigned next[4 * M::R];
    matrix_line_bins<K>(next, line, column, t, call.bin_unit);
    const MatrixSquare a = matrix_square(&matrix_images<M::SCALED, M::DOWN>.of[0][lane]);
    cplx turn[2][M::R];
    matrix_turns_back<K>(turn, g);
    smem<unsigned> own = z + (2 * t * M::PLANE + g);
    for (bool more = true; more;) {
        const int k = column;
        unsigned w[4 * M::R];
#pragma unroll
        for (int i = 0; i < 4 * M::R; ++i)
            w[i] = next[i];
        column = k == M::N2 / 2 ? 0 : k + M::WARPS;
        more = column < M::N2 / 2;
        if (more)
            matrix_line_bins<K>(next, line, column, t, call.bin_unit);
        if (k == 0) /* bins 0 and N / 2 */
            matrix_mirrors(w, t);
        float u[M::R][2][4] = {};
        matrix_classes<K>(u, a, w, imaginary);
        MatrixRoots back[M::R];
#pragma unroll
        for (int r = 0; r < M::R; ++r)
            back[r] = matrix_fetch(&matrix_returns<M::N1, M::N2>.of[k][r][g]);
        unsigned words[2][2][M::R]; /* h, plane 2 t or 2 t + 1, r */
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                cplx v[M::R];
#pragma unroll
                for (int c = 0; c < M::R; ++c) {
                    v[c] = {u[c][0][2 * h + e], u[c][1][2 * h + e]};
                    if (c > 0)
                        v[c] = v[c] * turn[h][c];
                }
                dft_inverse<M::R>(v);
#pragma unroll
                for (int r = 0; r < M::R; ++r) {
                    const cplx y = v[r] * back[r].of[h];
                    words[h][e][r] = K::Bins::pack(y.x, y.y);
                }
            }
        smem<unsigned> to = own + (k < M::N2 / 2 ? k : 0) * M::WORD;
        const bool real_rows = k == 0 || k == M::N2 / 2;
        unsigned *const w0 = &words[0][0][0];
#pragma unroll
        for (int i = 0; i < 4 * M::R; ++i) {
            const int row = i / M::R % 2 * M::PLANE + 16 * (i % M::R) + i / (2 * M::R) * 8;
            if (!real_rows)
                to[row] = w0[i];
        }
        if (real_rows) {
#pragma unroll
            for (int i = 0; i < 4 * M::R; ++i) {
                const int row = i / M::R % 2 * M::PLANE + 16 * (i % M::R) + i / (2 * M::R) * 8;
                to[row] = k > 0 ? w0[i] << 16 : (w0[i] & 0xffffu) | (to[row] & 0xffff0000u);
            }
        }
    }
}

/* So many numbers of a line from point x on. */
template <class K, bool ADDS, int COUNT, class Line>
CF_DEVICE void matrix_put_numbers(const float *v, const Line &line, int x, bool whole, float bias) {
    constexpr int WIDE = K::WIDE < COUNT ? K::WIDE : COUNT;
#pragma unroll
    for (int e = 0; e < COUNT; e += WIDE) {
        bool in;
        typename K::Storage::bits *const to = line.at(x + e, whole, in);
        if (!in)
            continue;
        float u[WIDE];
#pragma unroll
        for (int i = 0; i < WIDE; ++i) {
            u[i] = v[e + i] + bias;
            if (ADDS)
                u[i] += K::Storage::load(to + i);
        }
        matrix_write<K, WIDE>(to, u);
    }
}

/* Eight rows of points, whose numbers stand in a lane as matrix_line_points() has them, through the task's own part of shared memory: from there
 * neighbouring lanes store neighbours. line: from the first point of this lane on. */
template <class K, int EACH, class Line>
CF_DEVICE void matrix_put_through(smem<unsigned> own, const float *v, const Line &line, int begin, float bias) {
    typedef Matrix<K> M;
    constexpr int WIDTH = 8 * EACH, ABREAST = 32 / WIDTH; /* numbers of a row, rows at once */
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    float u[2 * EACH];
#pragma unroll
    for (int i = 0; i < 2 * EACH; ++i)
        u[i] = v[i] + bias;
    __syncwarp(); /* before, others read what stood here */
    if constexpr (K::Storage::PLAIN) {
#pragma unroll
        for (int i = 0; i < 2 * EACH; ++i)
            own[g * M::WORD + EACH * (t + i / EACH * 4) + i % EACH] = __float_as_uint(u[i]);
    } else {
#pragma unroll
        for (int i = 0; i < EACH; i += 2)
            smem_cast<uint2>(own + (g / 2 * M::WORD + g % 2 * (WIDTH / 2) + EACH * t + i))[0] =
                make_uint2(K::Bins::pack(u[2 * i], u[2 * i + 1]), K::Bins::pack(u[2 * i + 2], u[2 * i + 3]));
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 8; i += ABREAST) {
        const int row = i + lane / WIDTH, column = lane % WIDTH;
        bool in;
        typename K::Storage::bits *const to = line.at(begin + M::N1 * i, matrix_whole<K>(begin, 8 * M::N1), in);
        if constexpr (K::Storage::PLAIN) {
            const float number = __uint_as_float(own[row * M::WORD + column]);
            if (in)
                *to = number;
        } else {
            const unsigned both = own[row / 2 * M::WORD + row % 2 * (WIDTH / 2) + column / 2];
            if (in)
                *to = (unsigned short)(both >> 16 * (column % 2));
        }
    }
}

/* A task is 8 EACH rows of a line, which are the right operand; results 2 t and 2 t + 1 of EACH products are neighbours, those of FP32 in two
 * pieces. ADDS: to what is there. */
template <class K, bool ADDS>
CF_DEVICE void matrix_line_points(smem<unsigned> z, const Places<K> &places, const TileCall &call) {
    typedef Matrix<K> M;
    typedef typename K::Storage::bits bits;
    constexpr bool PIECES = K::Storage::PLAIN;
    constexpr int EACH = M::R < 2 ? 2 : 4, WIDTH = 8 * EACH, TASKS = M::N1 / WIDTH;
    /* Stores of less than eight bytes a lane would come to the same sectors again and again. */
    constexpr bool THROUGH = !ADDS && K::WIDE * int(sizeof(bits)) < 8;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const MatrixWords *const table = &matrix_spots<M::SCALED, M::N2>.of[0][0][lane];
#pragma unroll 1
    for (int task = matrix_warp<K>(); task < min(places.live, 8) * TASKS; task += M::WARPS) {
        const int p = task / TASKS, first = task % TASKS * WIDTH;
        smem<unsigned> own = z + (p * M::PLANE + first);
        smem<unsigned> from = own + (t * M::WORD + EACH * (PIECES ? g / 2 + g % 2 * 4 : g));
        unsigned b[M::STEPS][2][EACH];
#pragma unroll
        for (int step = 0; step < M::STEPS; ++step)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int at = (8 * step + 4 * i) * M::WORD;
                if constexpr (EACH == 4) {
                    const uint4 v = smem_cast<uint4>(from + at)[0];
                    b[step][i][0] = v.x, b[step][i][1] = v.y, b[step][i][2] = v.z, b[step][i][3] = v.w;
                } else {
                    const uint2 v = smem_cast<uint2>(from + at)[0];
                    b[step][i][0] = v.x, b[step][i][1] = v.y;
                }
            }
        const float factor = float(call.scale) * (float(2 << M::DOWN) / M::GAIN) * places.factor(p);
        float bias = 0;
        if (call.bias)
            bias = K::Storage::load(static_cast<const bits *>(call.bias) + (long long)blockIdx.y * K::CHANNELS +
                                    places.channel(p));
        const MatrixLine<K, bits> line(
            static_cast<bits *>(call.out), places, p,
            first + (THROUGH ? M::N1 * (lane / WIDTH) + lane % WIDTH : M::N1 * g + (PIECES ? 1 : 2) * EACH * t));
#pragma unroll
        for (int n = 0; n < M::N2 / 16; ++n) {
            if (matrix_empty<K>(16 * n * M::N1, 16 * M::N1))
                continue;
            float sum[EACH][4] = {};
#pragma unroll
            for (int step = 0; step < M::STEPS; ++step) {
                const MatrixWords a = matrix_fetch(table, n * M::STEPS + step);
#pragma unroll
                for (int i = 0; i < EACH; ++i)
                    multiply_bins<typename K::Bins>(sum[i], a.of, b[step][0][i], b[step][1][i]);
            }
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int begin = (16 * n + 8 * half) * M::N1;
                const bool whole = matrix_whole<K>(begin, 8 * M::N1);
                if (matrix_empty<K>(begin, 8 * M::N1))
                    continue;
                float v[2 * EACH];
#pragma unroll
                for (int i = 0; i < 2 * EACH; ++i)
                    v[i] = factor * sum[i % EACH][2 * half + i / EACH];
                if constexpr (THROUGH) {
                    matrix_put_through<K, EACH>(own, v, line, begin, bias);
                } else if constexpr (PIECES) {
                    matrix_put_numbers<K, ADDS, EACH>(v, line, begin, whole, bias);
                    matrix_put_numbers<K, ADDS, EACH>(v + EACH, line, begin + 4 * EACH, whole, bias);
                } else {
                    matrix_put_numbers<K, ADDS, 2 * EACH>(v, line, begin, whole, bias);
                }
            }
        }
    }
}

template <class K> CF_DEVICE void matrix_line_inverse(const TileCall &call) {
    typedef Matrix<K> M;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<unsigned> z = smem_cast<unsigned>(shared + M::G::TABLE) + matrix_octet<K>() * M::INVERSE;
    const Places<K> places = matrix_places<K>(find_planes<K, true>(shared, call), matrix_octet<K>());
    if (M::OCTETS == 1 || places.live > 0)
        matrix_line_bins_through<K>(z, places, call);
    __syncthreads();
    if (call.accumulate)
        matrix_line_points<K, true>(z, places, call);
    else
        matrix_line_points<K, false>(z, places, call);
}
