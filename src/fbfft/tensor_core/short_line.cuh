/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms of real lines of 16 to 128 points, as those of planes in plane.cuh but for columns: one product with the whole matrix, so that no
 * number of 16 bits is rounded on its way, and one of FP32 before it. A warp has several octets, whose points or bins are in its registers, and reads the matrix once for all of them.
 *
 *     forward    the matrix is the left operand and eight lines are the right one: neighbouring lanes store bins of neighbouring lines
 *     inverse    bins of sixteen lines are the left operand and the matrix is the right one: neighbouring lanes store neighbouring points
 *
 * Where lines touch (channels last), words of neighbouring lines are turned into those of neighbouring points; and going back the matrix is the left
 * operand, so that neighbouring lanes store neighbouring lines.
 *
 * Short lines take little but finding out where they are. So each warp does that for its own, a lane for a line; the planner sees to it that there
 * are less than 2^30 lines, and those of a launch follow one another in a spectrum, unless some are passed over (row_step), going back.
 */
#pragma once

#include "fbfft/tensor_core/line_forward.cuh"
#include "fbfft/tensor_core/line_inverse.cuh"

/* The warp's lines, from line `first` of the launch on. As find_planes() with find_factors(). */
template <class K, bool INVERSE>
CF_DEVICE Places<K> matrix_short_places(smem<char> table, int first, const TileCall &call) {
    constexpr int COLUMNS = int(K::CHANNELS * K::AXIS[0].phases * K::AXIS[1].phases * K::AXIS[2].phases),
                  LINES = 8 * Matrix<K>::EACH;
    static_assert(LINES <= 32, "a lane for a line");
    const int p = int(threadIdx.x) % 32, live = min(int(call.planes) - first, LINES);
    if (p < LINES && live > 0) {
        /* Others repeat one of them; octets that touch are whole. */
        const int plane = first + (p < live ? p : Matrix<K>::ABREAST ? p % 8 : live - 1), column = plane % COLUMNS;
        const int row = int(call.row_first) + plane / COLUMNS * int(call.row_step), own = row - int(call.row_base);
        smem<char> entry = table + p * 32;
        find_plane<K>(entry, row, column, COLUMNS, call.sample_stride, (long long)blockIdx.y * call.group_stride);
        long long spectrum = own * (long long)COLUMNS + column + (long long)blockIdx.y * call.spectrum_group_stride;
        if constexpr (K::Bins::SCALED) {
            spectrum <<= 8;
            float *const scale = call.scales + ((long long)blockIdx.y * call.scale_group_stride +
                                                (own * (long long)((COLUMNS + 7) / 8) + column / 8));
            if constexpr (INVERSE) {
                spectrum |= __float_as_uint(*scale) >> 23;
            } else if constexpr (!K::FINDS) {
                const long long sample = row / call.scale_rows - call.row_base / call.scale_rows;
                const float *const part =
                    call.largest + (long long)blockIdx.y * call.largest_group_stride + sample * call.parts;
                float most = 0;
                for (int i = 0; i < call.parts; ++i)
                    most = fmaxf(most, __ldg(part + i));
                spectrum |= Factor<K>::exponent(most);
                if (column % 8 == 0 && p < live)
                    *scale = Factor<K>::scale(most);
            }
        }
        smem_cast<long long>(entry)[1] = spectrum;
    }
    __syncwarp();
    return {table, live};
}

/* THROUGH: lines of a warp between memory and its own part of shared memory, neighbouring words or numbers of each by neighbouring lanes. */
template <int UNITS> struct MatrixAcross { static constexpr int LANES = UNITS < 32 ? UNITS : 32, LINES = 32 / LANES; };

/* A word of a line, from its point x on; what is beyond the data is zero. */
template <class K, class Line> CF_DEVICE unsigned matrix_short_word(const Line &line, int x, bool whole) {
    constexpr int NUMBERS = 4 / Matrix<K>::BYTES;
    unsigned word = 0;
#pragma unroll
    for (int e = 0; e < NUMBERS; e += K::WIDE) {
        bool in;
        const auto *const from = line.at(x + e, whole, in);
        if (!in)
            continue;
        if constexpr (K::Storage::PLAIN)
            word = __float_as_uint(__ldg(from));
        else if constexpr (K::WIDE == 2)
            word = __ldg(reinterpret_cast<const unsigned *>(from));
        else
            word |= unsigned(__ldg(from)) << 16 * e;
    }
    return word;
}
template <class K>
CF_DEVICE void matrix_short_bring(smem<unsigned> own, const Places<K> &places,
                                  const typename K::Storage::bits *signal) {
    typedef Matrix<K> M;
    typedef MatrixAcross<M::BYTES * M::N2 / 4> A;
    constexpr int NUMBERS = 4 / M::BYTES;
    const int lane = int(threadIdx.x) % 32;
#pragma unroll 4
    for (int first = 0; first < 8 * M::EACH; first += A::LINES) {
        const int p = first + lane / A::LANES, word = lane % A::LANES;
        const MatrixLine<K, const typename K::Storage::bits> line(signal, places, p, NUMBERS * word);
#pragma unroll
        for (int x = 0; x < M::N2; x += NUMBERS * A::LANES) {
            constexpr int POINTS = NUMBERS * A::LANES;
            own[p * M::ROW + x / NUMBERS + word] =
                matrix_empty<K>(x, POINTS) ? 0 : matrix_short_word<K>(line, x, matrix_whole<K>(x, POINTS));
        }
    }
}
template <class K>
CF_DEVICE void matrix_short_leave(smem<unsigned> own, const Places<K> &places, typename K::Storage::bits *signal) {
    typedef Matrix<K> M;
    typedef typename K::Storage::bits bits;
    typedef MatrixAcross<M::N2 / K::WIDE> A;
    constexpr int WORDS = 4 / M::BYTES / K::WIDE; /* 2: of half words */
    const int lane = int(threadIdx.x) % 32, lines = min(places.live, 8 * M::EACH);
#pragma unroll 2
    for (int first = 0; first < lines; first += A::LINES) {
        const int p = first + lane / A::LANES, unit = lane % A::LANES;
        const MatrixLine<K, bits> line(signal, places, p, K::WIDE * unit);
#pragma unroll
        for (int i = 0; i < M::N2 / K::WIDE; i += A::LANES) {
            constexpr int POINTS = K::WIDE * A::LANES;
            if (matrix_empty<K>(K::WIDE * i, POINTS))
                continue;
            bool in;
            bits *const to = line.at(K::WIDE * i, matrix_whole<K>(K::WIDE * i, POINTS), in);
            if (!in || p >= lines)
                continue;
            const unsigned word = own[p * M::ROW + (i + unit) / WORDS];
            if constexpr (K::Storage::PLAIN)
                *to = __uint_as_float(word);
            else if constexpr (K::WIDE == 2)
                *reinterpret_cast<unsigned *>(to) = word;
            else
                *to = (unsigned short)(word >> 16 * (unit % 2));
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------- forward */

/* A lane's points of line g from where THROUGH brought them. */
template <class K> CF_DEVICE void matrix_short_get(MatrixRow<K, true> &row, smem<unsigned> line, int t) {
    typedef Matrix<K> M;
#pragma unroll
    for (int i = 0; i < M::N2 / 16; ++i) {
        const float4 q = smem_cast<float4>(line + matrix_point<M::WAY>(4 * i / M::OWN, t, 4 * i % M::OWN))[0];
        float *const v = &row.of[4 * i / M::OWN][4 * i % M::OWN];
        v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
    }
}
template <class K> CF_DEVICE void matrix_short_get(MatrixRow<K, false> &row, smem<unsigned> line, int t) {
    typedef Matrix<K> M;
#pragma unroll
    for (int part = 0; part < M::N2 / M::SPAN; ++part) {
        smem<unsigned> from = line + matrix_point<M::WAY>(part, t, 0) / 2;
        unsigned *const w = row.of[part];
        if constexpr (M::OWN == 8) {
            const uint4 v = smem_cast<uint4>(from)[0];
            w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
        } else {
            const uint2 v = smem_cast<uint2>(from)[0];
            w[0] = v.x, w[1] = v.y;
        }
    }
}

/* The same from memory. */
template <class K, class Line> CF_DEVICE void matrix_short_load(MatrixRow<K, true> &row, const Line &line) {
    typedef Matrix<K> M;
#pragma unroll
    for (int i = 0; i < M::N2 / 16; ++i) {
        float v[4] = {};
        if (!matrix_empty<K>(16 * i, 16))
            matrix_neighbours<K>(v, line, 16 * i, matrix_whole<K>(16 * i, 16));
#pragma unroll
        for (int e = 0; e < 4; ++e)
            row.of[4 * i / M::OWN][4 * i % M::OWN + e] = v[e];
    }
}
template <class K, class Line> CF_DEVICE void matrix_short_load(MatrixRow<K, false> &row, const Line &line) {
    typedef Matrix<K> M;
    constexpr int WORDS = K::WIDE / 2;
#pragma unroll
    for (int part = 0; part < M::N2 / M::SPAN; ++part) {
        const bool whole = matrix_whole<K>(M::SPAN * part, M::SPAN), none = matrix_empty<K>(M::SPAN * part, M::SPAN);
#pragma unroll
        for (int i = 0; i < M::OWN / 2; i += WORDS) {
            bool in = false;
            uint4 v = {0, 0, 0, 0};
            const unsigned short *from = nullptr;
            if (!none)
                from = line.at(M::SPAN * part + 2 * i, whole, in);
            if (in) {
                if constexpr (WORDS == 4)
                    v = __ldg(reinterpret_cast<const uint4 *>(from));
                if constexpr (WORDS == 2) {
                    const uint2 both = __ldg(reinterpret_cast<const uint2 *>(from));
                    v.x = both.x, v.y = both.y;
                }
            }
            row.of[part][i] = v.x;
            row.of[part][i + 1] = v.y;
            if constexpr (WORDS == 4)
                row.of[part][i + 2] = v.z, row.of[part][i + 3] = v.w;
        }
    }
}

/* The same of octets that touch. line: from point 2 t of line g on, or, of 16 bits, from point g of lines 2 t and 2 t + 1. */
template <class K, class Line> CF_DEVICE void matrix_short_touching(MatrixRow<K, true> &row, const Line &line) {
    typedef Matrix<K> M;
#pragma unroll
    for (int i = 0; i < M::N2 / 4; ++i) {
        const int x = i / 2 * 8 + i % 2;
        bool in = false;
        const float *from = nullptr;
        if (!matrix_empty<K>(i / 2 * 8, 8))
            from = line.at(x, matrix_whole<K>(i / 2 * 8, 8), in);
        row.of[i / M::OWN][i % M::OWN] = in ? __ldg(from) : 0.0f;
    }
}
template <class K, class Line> CF_DEVICE void matrix_short_touching(MatrixRow<K, false> &row, const Line &line) {
    typedef Matrix<K> M;
    constexpr int WORDS = M::OWN / 2;
#pragma unroll
    for (int i = 0; i < M::N2 / 8; ++i) {
        bool in = false;
        unsigned word = 0;
        const unsigned short *from = nullptr;
        if (!matrix_empty<K>(8 * i, 8))
            from = line.at(8 * i, matrix_whole<K>(8 * i, 8), in);
        if (in) {
            if constexpr (K::WIDE > 1)
                word = __ldg(reinterpret_cast<const unsigned *>(from));
            else
                word = __ldg(from) | unsigned(__ldg(from + 1)) << 16;
        }
        row.of[i / WORDS][i % WORDS] = word;
    }
#pragma unroll
    for (int i = 0; i < M::N2 / 8; ++i)
        row.of[i / WORDS][i % WORDS] = matrix_transposed(row.of[i / WORDS][i % WORDS]);
}

/* factor: of lines 2 t and 2 t + 1, of which to is the bin 0 of the first. BOTH: all of so many are live, and lanes store two bins at once. */
template <class K, bool BOTH>
CF_DEVICE void matrix_short_bins(const MatrixNumbers<K> (&rows)[Matrix<K>::EACH],
                                 const float (&factor)[Matrix<K>::EACH][2], unsigned *to, int live, long long unit) {
    typedef Matrix<K> M;
    const int lane = int(threadIdx.x) % 32, g = lane / 4;
    const MatrixWords *table = &matrix_rows<M::SCALED, M::N2, M::WAY>.of[0][0][lane];
    unsigned *const last = to + bin_of<K>(0, 0, M::N2 / 2, unit);
    const long long down = bin_of<K>(0, 0, 8, unit);
    to += bin_of<K>(0, 0, g, unit);
    /* Unrolled, longer loops take too many registers. */
#pragma unroll(M::N2 < 64 ? M::N2 / 16 : 1)
    for (int m = 0; m < M::N2 / 16; ++m, to += down, table += 32 * M::STEPS) {
        float sum[M::EACH][4] = {};
#pragma unroll
        for (int step = 0; step < M::STEPS; ++step) {
            if (matrix_empty<K>(16 * step / M::SPAN * M::SPAN, M::SPAN))
                continue;
            const MatrixWords a = matrix_fetch(table, step);
#pragma unroll
            for (int i = 0; i < M::EACH; ++i)
                multiply_bins<typename K::Bins>(sum[i], a.of, rows[i].of[step / 2][step % 2 * 2],
                                                rows[i].of[step / 2][step % 2 * 2 + 1]);
        }
        unsigned v[M::EACH][2];
#pragma unroll
        for (int i = 0; i < M::EACH; ++i)
#pragma unroll
            for (int e = 0; e < 2; ++e)
                v[i][e] = K::Bins::pack(factor[i][e] * sum[i][e], factor[i][e] * sum[i][2 + e]);
        if (m == 0 && g == 0) /* bins 0 and N / 2 are real: one has the other for its imaginary part */
#pragma unroll
            for (int i = 0; i < M::EACH; ++i) {
                matrix_store_two<BOTH>(last + 8 * i, 1, live - 8 * i, v[i][0] >> 16, v[i][1] >> 16);
                v[i][0] &= 0xffffu, v[i][1] &= 0xffffu;
            }
#pragma unroll
        for (int i = 0; i < M::EACH; ++i)
            matrix_store_two<BOTH>(to + 8 * i, 1, live - 8 * i, v[i][0], v[i][1]);
    }
}

template <class K> CF_DEVICE void matrix_short_forward(const TileCall &call) {
    typedef Matrix<K> M;
    typedef typename K::Storage::bits bits;
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, g = lane / 4, t = lane % 4;
    smem<char> shared = cf_dynamic_shared<char>();
    const int plane = (int(blockIdx.x) - call.first_block) * K::P + 8 * M::EACH * warp;
    const Places<K> places = matrix_short_places<K, false>(shared + 8 * M::EACH * 32 * warp, plane, call);
    const bits *const signal = static_cast<const bits *>(call.in);
    if (places.live <= 0)
        return;
    MatrixRow<K> raw[M::EACH][1];
    if constexpr (M::THROUGH) {
        smem<unsigned> own = smem_cast<unsigned>(shared + M::G::TABLE) + 8 * M::EACH * M::ROW * warp;
        matrix_short_bring<K>(own, places, signal);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < M::EACH; ++i)
            matrix_short_get<K>(raw[i][0], own + (8 * i + g) * M::ROW, t);
    } else if constexpr (M::ABREAST) {
#pragma unroll
        for (int i = 0; i < M::EACH; ++i)
            matrix_short_touching<K>(raw[i][0],
                                     MatrixLine<K, const bits>(signal + (K::Storage::PLAIN ? g : 2 * t), places, 8 * i,
                                                               K::Storage::PLAIN ? 2 * t : g));
    } else {
#pragma unroll
        for (int i = 0; i < M::EACH; ++i)
            matrix_short_load<K>(raw[i][0],
                                 MatrixLine<K, const bits>(signal, places, 8 * i + g, matrix_point<M::WAY>(0, t, 0)));
    }
    MatrixNumbers<K> rows[M::EACH];
    float factor[M::EACH][2], found = 0;
#pragma unroll
    for (int i = 0; i < M::EACH; ++i) {
        float whole = 1; /* of line g */
        factor[i][0] = factor[i][1] = 1 / M::GAIN;
        if constexpr (K::FINDS) {
            const float most = largest_of_warp(matrix_largest<K>(raw[i]));
            whole = matrix_power(Factor<K>::exponent(most));
            found = lane == i ? Factor<K>::scale(most) : found;
        } else if constexpr (M::SCALED) {
            whole = places.factor(8 * i + g);
        }
#pragma unroll
        for (int e = 0; e < 2 && M::SCALED; ++e)
            factor[i][e] *= K::Storage::PLAIN ? 1 / matrix_up<K>()
                            : K::FINDS        ? whole
                                              : places.factor(8 * i + 2 * t + e);
        rows[i] = matrix_numbers<K>(raw[i][0], matrix_up<K>() * whole);
    }
    if constexpr (K::FINDS) /* columns are whole octets */
        if (8 * lane < places.live && lane < M::EACH)
            call.scales[(long long)blockIdx.y * call.scale_group_stride + plane / 8 + lane] = found;
    unsigned *const to =
        static_cast<unsigned *>(call.out) + (long long)blockIdx.y * call.spectrum_group_stride + (plane + 2 * t);
    if (places.live >= 8 * M::EACH && call.bin_unit % 2 == 0 && reinterpret_cast<size_t>(to) % 8 == 0)
        matrix_short_bins<K, true>(rows, factor, to, places.live - 2 * t, call.bin_unit);
    else
        matrix_short_bins<K, false>(rows, factor, to, places.live - 2 * t, call.bin_unit);
}

/* ------------------------------------------------------------------------------------------------------------- inverse */

/* Bins of line g of each octet, as they stand in memory, but bins 0 and N / 2 are one word. DENSE: there are all of
 * them, and they follow one another. */
template <class K, bool DENSE>
CF_DEVICE void matrix_short_words(unsigned (&w)[Matrix<K>::EACH][Matrix<K>::N2 / 8], const unsigned *in,
                                  const Places<K> &places, long long unit) {
    typedef Matrix<K> M;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const unsigned *line[M::EACH];
#pragma unroll
    for (int i = 0; i < M::EACH; ++i)
        line[i] = i == 0 || !DENSE ? in + places.spectrum(8 * i + g) : line[0] + 8 * i;
#pragma unroll
    for (int k = 0; k < M::N2 / 8; ++k)
#pragma unroll
        for (int i = 0; i < M::EACH; ++i)
            w[i][k] = __ldcs(line[i] + bin_of<K>(0, 0, 4 * k + t, unit));
    if (t == 0)
#pragma unroll
        for (int i = 0; i < M::EACH; ++i)
            w[i][0] = (w[i][0] & 0xffffu) | __ldcs(line[i] + bin_of<K>(0, 0, M::N2 / 2, unit)) << 16;
}

/* A lane's points of a line to where they go THROUGH. */
template <class K>
CF_DEVICE void matrix_short_put(const float (&v)[Matrix<K>::OWN], smem<unsigned> line, int part, int t) {
    typedef Matrix<K> M;
    if constexpr (K::Storage::PLAIN) {
#pragma unroll
        for (int i = 0; i < M::OWN; i += 4)
            smem_cast<float4>(line + matrix_point<M::WAY>(part, t, i))[0] =
                make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
    } else {
        smem<unsigned> to = line + matrix_point<M::WAY>(part, t, 0) / 2;
#pragma unroll
        for (int i = 0; i < M::OWN; i += 4)
            smem_cast<uint2>(to + i / 2)[0] =
                make_uint2(K::Bins::pack(v[i], v[i + 1]), K::Bins::pack(v[i + 2], v[i + 3]));
    }
}

/* ADDS: to what is there. */
template <class K, bool ADDS>
CF_DEVICE void matrix_short_points(const unsigned (&w)[Matrix<K>::EACH][Matrix<K>::N2 / 8], smem<unsigned> own,
                                   const Places<K> &places, const TileCall &call) {
    typedef Matrix<K> M;
    typedef typename K::Storage::bits bits;
    constexpr bool THROUGH = M::THROUGH && !ADDS;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const MatrixWords *table = &matrix_points<M::SCALED, M::N2, M::WAY>.of[0][0][lane];
    constexpr int TASK = M::OWN / 2 * ((M::STEPS + 1) / 2); /* of the table */
    constexpr int PIECE = M::WAY == MATRIX_SHORTS ? 8 : 4;  /* neighbours of a lane */
    float factor[M::EACH], bias[M::EACH];
    MatrixLine<K, bits> line[M::EACH];
#pragma unroll
    for (int i = 0; i < M::EACH; ++i) {
        const int p = 8 * i + g;
        factor[i] = float(call.scale) * (2 / M::GAIN) * places.factor(p);
        bias[i] = 0;
        if (call.bias)
            bias[i] = K::Storage::load(static_cast<const bits *>(call.bias) + (long long)blockIdx.y * K::CHANNELS +
                                       places.channel(p));
        line[i] = MatrixLine<K, bits>(static_cast<bits *>(call.out), places, p, matrix_point<M::WAY>(0, t, 0));
        if (p >= places.live)
            line[i].inside = false, line[i].count = 0;
    }
#pragma unroll 1
    for (int part = 0; part < M::N2 / M::SPAN; ++part, table += 32 * TASK) {
        if (matrix_empty<K>(part * M::SPAN, M::SPAN))
            continue;
        float sum[M::EACH / 2][M::OWN / 2][4] = {};
#pragma unroll
        for (int n = 0; n < M::OWN / 2; ++n)
#pragma unroll
            for (int step = 0; step < M::STEPS; step += 2) {
                const MatrixWords b = matrix_fetch(table, n * ((M::STEPS + 1) / 2) + step / 2);
#pragma unroll
                for (int i = 0; i < M::EACH / 2; ++i)
#pragma unroll
                    for (int k = step; k < step + 2 && k < M::STEPS; ++k) {
                        const unsigned a[4] = {w[2 * i][2 * k], w[2 * i + 1][2 * k], w[2 * i][2 * k + 1],
                                               w[2 * i + 1][2 * k + 1]};
                        multiply_bins<typename K::Bins>(sum[i][n], a, b.of[k % 2 * 2], b.of[k % 2 * 2 + 1]);
                    }
            }
#pragma unroll
        for (int i = 0; i < M::EACH; ++i) {
            float v[M::OWN];
#pragma unroll
            for (int e = 0; e < M::OWN; ++e)
                v[e] = factor[i] * sum[i / 2][e / 2][i % 2 * 2 + e % 2];
            if constexpr (THROUGH) {
#pragma unroll
                for (int e = 0; e < M::OWN; ++e)
                    v[e] += bias[i];
                matrix_short_put<K>(v, own + (8 * i + g) * M::ROW, part, t);
            } else {
#pragma unroll
                for (int e = 0; e < M::OWN; e += PIECE) {
                    const int begin = M::SPAN * part + 4 * e;
                    if (!matrix_empty<K>(begin, 4 * PIECE))
                        matrix_put_numbers<K, ADDS, PIECE>(v + e, line[i], begin, matrix_whole<K>(begin, 4 * PIECE),
                                                           bias[i]);
                }
            }
        }
    }
    if constexpr (THROUGH) {
        __syncwarp();
        matrix_short_leave<K>(own, places, static_cast<bits *>(call.out));
    }
}

/* Of lines that touch. Numbers of 16 bits go four at a time where two octets are neighbours, so that they are whole sectors: lanes 2 i and 2 i + 1 of a
 * quad store those of both, the one of the first octet and the other of the second. */
template <class K, bool ADDS>
CF_DEVICE void matrix_short_abreast(const unsigned (&w)[Matrix<K>::EACH][Matrix<K>::N2 / 8], const Places<K> &places,
                                    const TileCall &call) {
    typedef Matrix<K> M;
    typedef typename K::Storage::bits bits;
    constexpr bool FOUR = K::WIDE == 4 && !K::Storage::PLAIN && !ADDS;
    constexpr int LINES = FOUR ? M::EACH / 2 : M::EACH; /* that a lane stores */
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const MatrixWords *table = &matrix_spots<M::SCALED, M::N2>.of[0][0][lane];
    float factor[M::EACH], bias[M::EACH][2];
    MatrixLine<K, bits> line[LINES];
#pragma unroll
    for (int i = 0; i < M::EACH; ++i) {
        factor[i] = float(call.scale) * (2 / M::GAIN) * places.factor(8 * i);
#pragma unroll
        for (int e = 0; e < 2; ++e)
            bias[i][e] = call.bias
                             ? K::Storage::load(static_cast<const bits *>(call.bias) +
                                                (long long)blockIdx.y * K::CHANNELS + places.channel(8 * i + 2 * t + e))
                             : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < LINES; ++i) {
        const int octet = FOUR ? 2 * i + t % 2 : i;
        line[i] = MatrixLine<K, bits>(static_cast<bits *>(call.out) + (FOUR ? t / 2 * 4 : 2 * t), places, 8 * octet, g);
        if (8 * octet >= places.live)
            line[i].inside = false, line[i].count = 0;
    }
#pragma unroll 1
    for (int n = 0; n < M::N2 / 16; ++n, table += 32 * M::STEPS) {
        if (matrix_empty<K>(16 * n, 16))
            continue;
        float sum[M::EACH][4] = {};
#pragma unroll
        for (int step = 0; step < M::STEPS; ++step) {
            const MatrixWords a = matrix_fetch(table, step);
#pragma unroll
            for (int i = 0; i < M::EACH; ++i)
                multiply_bins<typename K::Bins>(sum[i], a.of, w[i][2 * step], w[i][2 * step + 1]);
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int x = 16 * n + 8 * h;
            const bool whole = matrix_whole<K>(x, 8);
#pragma unroll
            for (int i = 0; i < LINES; ++i) {
                bool in;
                bits *const to = line[i].at(x, whole, in);
                if constexpr (FOUR) {
                    unsigned word[2]; /* of both octets */
#pragma unroll
                    for (int o = 0; o < 2; ++o) {
                        const float *const v = sum[2 * i + o] + 2 * h;
                        word[o] = K::Bins::pack(factor[2 * i + o] * v[0] + bias[2 * i + o][0],
                                                factor[2 * i + o] * v[1] + bias[2 * i + o][1]);
                    }
                    const unsigned got = __shfl_xor_sync(0xffffffffu, t % 2 ? word[0] : word[1], 1);
                    if (in)
                        *reinterpret_cast<uint2 *>(to) = t % 2 ? make_uint2(got, word[1]) : make_uint2(word[0], got);
                } else if (in) {
                    matrix_put_planes<K, 2>(to, sum[i] + 2 * h, factor[i], bias[i], ADDS);
                }
            }
        }
    }
}

template <class K> CF_DEVICE void matrix_short_inverse(const TileCall &call) {
    typedef Matrix<K> M;
    const int warp = int(threadIdx.x) / 32;
    smem<char> shared = cf_dynamic_shared<char>();
    const int plane = (int(blockIdx.x) - call.first_block) * K::P + 8 * M::EACH * warp;
    const Places<K> places = matrix_short_places<K, true>(shared + 8 * M::EACH * 32 * warp, plane, call);
    if (places.live <= 0)
        return;
    unsigned w[M::EACH][M::N2 / 8];
    if (call.row_step == 1 && places.live >= 8 * M::EACH)
        matrix_short_words<K, true>(w, static_cast<const unsigned *>(call.in), places, call.bin_unit);
    else
        matrix_short_words<K, false>(w, static_cast<const unsigned *>(call.in), places, call.bin_unit);
    if constexpr (M::ABREAST) {
        if (call.accumulate)
            matrix_short_abreast<K, true>(w, places, call);
        else
            matrix_short_abreast<K, false>(w, places, call);
    } else {
        smem<unsigned> own = smem_cast<unsigned>(shared + M::G::TABLE) + 8 * M::EACH * M::ROW * warp;
        if (call.accumulate)
            matrix_short_points<K, true>(w, own, places, call);
        else
            matrix_short_points<K, false>(w, own, places, call);
    }
}

/* ------------------------------------------------------------------------------------------------------------- kernels */

template <class K> CF_DEVICE void matrix_forward(const TileCall &call) {
    if constexpr (Matrix<K>::SHORT)
        matrix_short_forward<K>(call);
    else if constexpr (Matrix<K>::LINES)
        matrix_line_forward<K>(call);
    else
        matrix_plane_forward<K>(call);
}
template <class K> CF_DEVICE void matrix_inverse(const TileCall &call) {
    if constexpr (Matrix<K>::SHORT)
        matrix_short_inverse<K>(call);
    else if constexpr (Matrix<K>::LINES)
        matrix_line_inverse<K>(call);
    else
        matrix_plane_inverse<K>(call);
}
