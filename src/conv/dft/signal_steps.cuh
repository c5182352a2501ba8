/* SPDX-License-Identifier: Apache-2.0 */
/* The six steps of DFT kernels of signals (signals.cuh). */
#pragma once

#include "conv/dft/gradient.cuh"

/* What the storage of elements needs: how step 1 multiplies them, and the largest magnitude of two numbers. */
template <class Storage> struct DftElements {
    static constexpr bool SPLIT_MATRIX = false;
    static CF_DEVICE unsigned larger(unsigned a, unsigned b) { return larger_halves(a, b); }
};
template <> struct DftElements<bf16> {
    static constexpr bool SPLIT_MATRIX = true;
#ifdef CF_SIMT
    static CF_DEVICE unsigned larger(unsigned a, unsigned b) { return larger_halves(a, b); }
#else
    static CF_DEVICE unsigned larger(unsigned a, unsigned b) {
        unsigned larger;
        asm("{.reg .b32 m; abs.bf16x2 m, %2; max.bf16x2 %0, %1, m;}" : "=r"(larger) : "r"(a), "r"(b));
        return larger;
    }
#endif
};

template <class F> struct DftSignal {
    typedef DftElements<typename F::Storage> E;
    static constexpr int RADIX = F::RADIX, H = 256 * RADIX, WARPS = RADIX, THREADS = 32 * WARPS, EIGHTS = RADIX / 8,
                         READS = F::LINES * 4 / WARPS, /* of a warp, each 64 columns (n2, n3) of a tile */
        WRITES = F::LINES * 8 / WARPS;                 /* each 32 columns */
    static constexpr cf_dft_signal_sizes S = cf_dft_signal_sizes_of(RADIX, F::LINES, E::SPLIT_MATRIX);
    static constexpr int LINE = S.line, MATRIX = S.matrix;
    static_assert(F::LINES * 4 % WARPS == 0 && F::LINES >= 2, "warps have equal shares, and the taps have room");
};

/* The lane, hidden from the compiler: what follows from it is not kept in registers from one step to the next. */
CF_DEVICE int dft_lane() {
    int lane = int(threadIdx.x) % 32;
#ifndef CF_SIMT
    asm volatile("" : "+r"(lane));
#endif
    return lane;
}

/* exp(-2 pi i k / n), for powers of two n. */
CF_APART cplx dft_root(int k, int n) {
    float sine, cosine;
    sincospif(float(2 * (k & (n - 1))) / float(n), &sine, &cosine);
    return {cosine, -sine};
}

/* The unit of a chunk (four n3) of words n2 of k1. Chunks are exchanged so that no access has bank conflicts. Four
 * further k1 or n2 are always 256 or 16 units away. */
CF_DEVICE int dft_unit(int k1, int n2, int chunk) {
    return k1 * 64 + ((n2 * 4 + chunk) ^ ((n2 & 2) ^ ((k1 & 1) * 5) ^ (k1 & 2)));
}

template <class N> CF_DEVICE uint4 dft_words(const float (&re)[4], const float (&im)[4]) {
    return make_uint4(N::word(re[0], im[0]), N::word(re[1], im[1]), N::word(re[2], im[2]), N::word(re[3], im[3]));
}

/* A matrix c + i s of 16 x 16 numbers, in words of a lane: [8 rows or columns][half of the depth]. */
struct DftParts {
    unsigned c[2][2], s[2][2];
};

/* d = a b, or d += a b. */
template <bool FIRST> CF_DEVICE void dft_mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    if constexpr (FIRST)
        mma_m16n8k16_first(d, a, b0, b1);
    else
        mma_m16n8k16(d, a, b0, b1);
}

CF_DEVICE unsigned dft_negated(unsigned word) { return word ^ 0x80008000u; }

/* re + i im [8 columns][4] = the matrix times x + i y, whose words are [8 columns][half of the depth]. */
CF_DEVICE void dft_multiply(float (&re)[2][4], float (&im)[2][4], const DftParts &m, const unsigned (&x)[2][2],
                            const unsigned (&y)[2][2]) {
    const unsigned c[4] = {m.c[0][0], m.c[1][0], m.c[0][1], m.c[1][1]},
                   s[4] = {m.s[0][0], m.s[1][0], m.s[0][1], m.s[1][1]};
    unroll<0, 2>([&](auto n) { mma_m16n8k16_first(re[n], c, x[n][0], x[n][1]); });
    unroll<0, 2>([&](auto n) { mma_m16n8k16_first(im[n], c, y[n][0], y[n][1]); });
    unroll<0, 2>([&](auto n) { mma_m16n8k16(re[n], s, dft_negated(y[n][0]), dft_negated(y[n][1])); });
    unroll<0, 2>([&](auto n) { mma_m16n8k16(im[n], s, x[n][0], x[n][1]); });
}

/* re + i im = x + i y times the matrix. Words of x and y are [8 rows][half of the depth]. */
CF_DEVICE void dft_multiplied(float (&re)[2][4], float (&im)[2][4], const unsigned (&x)[2][2],
                              const unsigned (&y)[2][2], const DftParts &m) {
    const unsigned a[4] = {x[0][0], x[1][0], x[0][1], x[1][1]}, b[4] = {y[0][0], y[1][0], y[0][1], y[1][1]},
                   minus_b[4] = {dft_negated(b[0]), dft_negated(b[1]), dft_negated(b[2]), dft_negated(b[3])};
    unroll<0, 2>([&](auto n) { mma_m16n8k16_first(re[n], a, m.c[n][0], m.c[n][1]); });
    unroll<0, 2>([&](auto n) { mma_m16n8k16_first(im[n], b, m.c[n][0], m.c[n][1]); });
    unroll<0, 2>([&](auto n) { mma_m16n8k16(re[n], minus_b, m.s[n][0], m.s[n][1]); });
    unroll<0, 2>([&](auto n) { mma_m16n8k16(im[n], a, m.s[n][0], m.s[n][1]); });
}

/* ------------------------------------------------------------------------------------------------ steps 2 to 5 */

/* The numbers of a lane after step 3: [n][rows: k2 = g + 8 half][i], k3 = 4 t + 2 i + n. */
struct DftLaneBins {
    float re[2][4], im[2][4];

    /* Becomes its conjugate times another: the conjugate of the spectrum of a correlation. */
    CF_DEVICE void correlate(const DftLaneBins &other) {
        unroll<0, 8>([&](auto i) {
            constexpr int N = decltype(i)::value / 4, K = decltype(i)::value % 4;
            const float a = re[N][K], b = im[N][K], c = other.re[N][K], d = other.im[N][K];
            re[N][K] = a * c + b * d;
            im[N][K] = a * d - b * c;
        });
    }
    CF_DEVICE void multiply(float factor) {
        unroll<0, 8>([&](auto i) {
            re[i / 4][i % 4] *= factor;
            im[i / 4][i % 4] *= factor;
        });
    }
    CF_DEVICE void add(const DftLaneBins &other, float factor) {
        unroll<0, 8>([&](auto i) {
            re[i / 4][i % 4] += factor * other.re[i / 4][i % 4];
            im[i / 4][i % 4] += factor * other.im[i / 4][i % 4];
        });
    }
    CF_DEVICE float largest() const {
        float v = 0;
        unroll<0, 8>([&](auto i) { v = fmaxf(v, fmaxf(fabsf(re[i / 4][i % 4]), fabsf(im[i / 4][i % 4]))); });
        return v;
    }
};

/* The constants of a warp. */
template <class F> struct DftMiddle {
    typedef DftSignal<F> D;
    typedef DftNumbers<fp16> N;
    int k1;
    unsigned second[2][2][4]; /* operand A of step 2: real rows, imaginary rows; eight n2 */
    DftParts third, fifth;
    smem<uint4> twiddles; /* FP16 (re, im) of this warp, in the order of the numbers of steps 2 and 4 */

    CF_DEVICE DftMiddle(int warp, smem<uint4> tables) : k1(warp), twiddles(tables + warp * D::S.twiddles) {
        unsigned twiddle[2][2][2], back[2][2][2];
        const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
        const auto q = [&](int k2) { return 4 * (k1 + D::RADIX * k2) - 1; }; /* four times k - 1/4 */
        unroll<0, 2>([&](auto depth) {
            unroll<0, 4>([&](auto i) {
                const cplx w = dft_root((8 * depth + i / 2 * 4 + t) * q(g + i % 2 * 8), 64 * D::RADIX);
                second[0][depth][i] = N::word(w.x, -w.y);
                second[1][depth][i] = N::word(w.y, w.x);
            });
        });
        unroll<0, 2>([&](auto row) {
            unroll<0, 2>([&](auto half) {
                cplx third_root[2], fifth_root[2];
                unroll<0, 2>([&](auto i) {
                    third_root[i] = dft_root((2 * g + row) * (4 * t + 2 * i + half), 16);
                    fifth_root[i] = dft_root((g + 8 * row) * q(8 * half + 2 * t + i), 64 * D::RADIX);
                    const cplx there = dft_root((4 * t + 2 * i + row) * q(g + 8 * half), 1024 * D::RADIX),
                               again = dft_root((2 * g + half) * q(8 * row + 2 * t + i), 1024 * D::RADIX);
                    twiddle[row][half][i] = N::word(there.x, there.y);
                    back[row][half][i] = N::word(again.x, again.y);
                });
                third.c[row][half] = N::word(third_root[0].x, third_root[1].x);
                third.s[row][half] = N::word(third_root[0].y, third_root[1].y);
                fifth.c[row][half] = N::word(fifth_root[0].x, fifth_root[1].x);
                fifth.s[row][half] = N::word(fifth_root[0].y, fifth_root[1].y);
            });
            twiddles[row * 32 + lane] =
                make_uint4(twiddle[row][0][0], twiddle[row][0][1], twiddle[row][1][0], twiddle[row][1][1]);
            twiddles[64 + row * 32 + lane] =
                make_uint4(back[row][0][0], back[row][0][1], back[row][1][0], back[row][1][1]);
        });
    }

    /* Multiplies numbers [n][half of the rows][i] by their twiddles. The words of the result are operands: pairs over
     * i of [half of the rows][half of the depth]. */
    CF_DEVICE void turn(unsigned (&x)[2][2], unsigned (&y)[2][2], const float (&re)[2][4], const float (&im)[2][4],
                        smem<uint4> of_lane) const {
        unroll<0, 2>([&](auto n) {
            const uint4 words = of_lane[n * 32];
            const unsigned w[2][2] = {{words.x, words.y}, {words.z, words.w}};
            unroll<0, 2>([&](auto half) {
                float p[2], q[2];
                unroll<0, 2>([&](auto i) {
                    const cplx factor = N::pair(w[half][i]);
                    const float a = re[n][2 * half + i], b = im[n][2 * half + i];
                    p[i] = a * float(factor.x) - b * float(factor.y);
                    q[i] = a * float(factor.y) + b * float(factor.x);
                });
                x[half][n] = N::word(p[0], p[1]);
                y[half][n] = N::word(q[0], q[1]);
            });
        });
    }

    /* Steps 2 and 3 of a line. */
    CF_DEVICE void forward(DftLaneBins &bins, smem<uint4> line) const {
        const int lane = dft_lane(), g = lane / 4, t = lane % 4;
        const smem<uint2> words = smem_cast<uint2>(line + dft_unit(k1, t, g / 2)) + g % 2;
        float re[2][4], im[2][4];
        unroll<0, 2>([&](auto depth) {
            constexpr bool FIRST = decltype(depth)::value == 0;
            uint2 b[2];
            unroll<0, 2>([&](auto i) { b[i] = words[2 * 16 * (2 * depth + i)]; });
            dft_mma<FIRST>(re[0], second[0][depth], b[0].x, b[1].x);
            dft_mma<FIRST>(re[1], second[0][depth], b[0].y, b[1].y);
            dft_mma<FIRST>(im[0], second[1][depth], b[0].x, b[1].x);
            dft_mma<FIRST>(im[1], second[1][depth], b[0].y, b[1].y);
        });
        unsigned x[2][2], y[2][2];
        turn(x, y, re, im, twiddles + lane);
        dft_multiplied(bins.re, bins.im, x, y, third);
    }

    /* Steps 4 and 5, from the conjugate of the product. */
    CF_DEVICE void backward(smem<uint4> line, const DftLaneBins &bins) const {
        const int lane = dft_lane(), g = lane / 4, t = lane % 4;
        unsigned x[2][2], y[2][2];
        unroll<0, 4>([&](auto i) {
            x[i % 2][i / 2] = N::word(bins.re[i / 2][i % 2 * 2], bins.re[i / 2][i % 2 * 2 + 1]);
            y[i % 2][i / 2] = N::word(bins.im[i / 2][i % 2 * 2], bins.im[i / 2][i % 2 * 2 + 1]);
        });
        float re[2][4], im[2][4];
        dft_multiply(re, im, third, x, y);
        /* [k2 / 8][rows: n3 = 2 g + half][i]. These columns are the depth of step 5. */
        turn(x, y, re, im, twiddles + (64 + lane));
        dft_multiply(re, im, fifth, x, y);
        __syncwarp(); /* all lanes have read */
        unroll<0, 2>([&](auto row) {
            const float a[4] = {re[0][2 * row], re[1][2 * row], re[0][2 * row + 1], re[1][2 * row + 1]},
                        b[4] = {im[0][2 * row], im[1][2 * row], im[0][2 * row + 1], im[1][2 * row + 1]};
            line[dft_unit(k1, g, t) + 32 * row] = dft_words<N>(a, b);
        });
    }
};

/* -------------------------------------------------------------------------------------------------- steps 1 and 6 */

/* The matrices of steps 1 and 6 as operands of each lane: a row of eight is real, the next imaginary. */
template <class F> CF_DEVICE void dft_outer_matrices(smem<uint4> matrices) {
    typedef DftSignal<F> D;
    typedef DftNumbers<fp16> N;
    typedef DftNumbers<bf16> B;
    for (int i = int(threadIdx.x); i < D::MATRIX; i += D::THREADS) {
        const int lane = i % 32, column = i / 32 % D::EIGHTS * 8 + lane % 4, row = i / 32 / D::EIGHTS * 8 + lane / 4;
        unsigned first[4], last[4], high[4], low[4];
        unroll<0, 2>([&](auto half) {
            const int other = column + 4 * half;
            const cplx w = dft_root(other * (4 * row - 1), 4 * D::RADIX),
                       v = dft_root(row * (4 * other - 1), 4 * D::RADIX);
            first[2 * half] = N::word(w.x, -w.y);
            first[2 * half + 1] = N::word(w.y, w.x);
            last[2 * half] = N::word(v.x, -v.y);
            last[2 * half + 1] = N::word(-v.y, -v.x); /* the result is the conjugate */
            if constexpr (D::E::SPLIT_MATRIX) {
                high[2 * half] = B::word(w.x, -w.y);
                high[2 * half + 1] = B::word(w.y, w.x);
                const cplx rounded = B::pair(high[2 * half + 1]);
                low[2 * half] = B::word(w.x - rounded.y, rounded.x - w.y);
                low[2 * half + 1] = B::word(w.y - rounded.x, w.x - rounded.y);
            }
        });
        matrices[i] = make_uint4(first[0], first[1], first[2], first[3]);
        matrices[D::MATRIX + i] = make_uint4(last[0], last[1], last[2], last[3]);
        if constexpr (D::E::SPLIT_MATRIX) {
            matrices[2 * D::MATRIX + i] = make_uint4(high[0], high[1], high[2], high[3]);
            matrices[3 * D::MATRIX + i] = make_uint4(low[0], low[1], low[2], low[3]);
        }
    }
}

CF_DEVICE void dft_operand_of(unsigned (&a)[4], uint4 v) {
    a[0] = v.x;
    a[1] = v.y;
    a[2] = v.z;
    a[3] = v.w;
}

/* The elements of 64 columns of a tile that a lane has: eight neighbours of rows n1 = 8 e + 4 half + t and of the
 * rows H behind. */
template <class F> struct DftColumns {
    typedef DftSignal<F> D;
    uint4 chunk[D::EIGHTS][2][2];

    /* load(element, more): eight elements of the tile, from element + more on. */
    template <class LOAD> CF_DEVICE void read(int task, const LOAD &load) {
        const int lane = dft_lane(), g = lane / 4, t = lane % 4;
        unroll<0, D::EIGHTS * 4>([&](auto i) {
            constexpr int I = decltype(i)::value;
            chunk[I / 4][I / 2 % 2][I % 2] =
                load(256 * t + 64 * task + 8 * g, Int<I % 2 * D::H + (8 * (I / 4) + 4 * (I / 2 % 2)) * 256>{});
        });
    }
    CF_DEVICE unsigned largest() const {
        unsigned v = 0;
        unroll<0, D::EIGHTS * 4>([&](auto i) {
            const uint4 c = chunk[i / 4][i / 2 % 2][i % 2];
            v = D::E::larger(D::E::larger(D::E::larger(D::E::larger(v, c.x), c.y), c.z), c.w);
        });
        v = D::E::larger(v, v >> 16) & 0xffffu;
        for (int lanes = 16; lanes > 0; lanes /= 2)
            v = D::E::larger(v, __shfl_xor_sync(~0u, v, lanes));
        return v;
    }
    /* The word (x[n], x[n + H]) of neighbour N. */
    template <int N> CF_DEVICE unsigned word(int e, int half) const {
        const uint4 a = chunk[e][half][0], b = chunk[e][half][1];
        const unsigned x = N / 2 == 0   ? a.x
                           : N / 2 == 1 ? a.y
                           : N / 2 == 2 ? a.z
                                        : a.w,
                       y = N / 2 == 0   ? b.x
                           : N / 2 == 1 ? b.y
                           : N / 2 == 2 ? b.z
                                        : b.w;
        return N % 2 == 0 ? (x & 0xffffu) | y << 16 : x >> 16 | (y & 0xffff0000u);
    }
    /* Step 1, times a power of two. N: numbers of elements and matrix; PARTS: matrices that are added. */
    template <class N, int PARTS>
    CF_DEVICE void transform(smem<uint4> line, int task, smem<uint4> matrix, float scale) const {
        const int lane = dft_lane(), g = lane / 4, t = lane % 4;
        unroll<0, D::EIGHTS>([&](auto eight) {
            float sum[8][4];
            unroll<0, 32>([&](auto i) { sum[i / 4][i % 4] = 0; });
            unroll<0, D::EIGHTS * PARTS>([&](auto i) {
                constexpr int E = decltype(i)::value / PARTS;
                unsigned a[4];
                dft_operand_of(a, matrix[i % PARTS * D::MATRIX + (eight * D::EIGHTS + E) * 32 + lane]);
                unroll<0, 8>([&](auto n) {
                    constexpr int COLUMN = decltype(n)::value;
                    N::multiply(sum[n], a, word<COLUMN>(E, 0), word<COLUMN>(E, 1));
                });
            });
            unroll<0, 4>([&](auto c) {
                float re[4], im[4];
                unroll<0, 4>([&](auto i) {
                    re[i] = scale * sum[c % 2 * 4 + i][c / 2];
                    im[i] = scale * sum[c % 2 * 4 + i][2 + c / 2];
                });
                line[dft_unit(g, t, c) + (512 * eight + 16 * task)] = dft_words<DftNumbers<fp16>>(re, im);
            });
        });
    }
};

/* Step 6 of 32 columns: calls put(element, more, values) for eight neighbouring elements of the tile, from element +
 * more on. */
template <class F, class PUT>
CF_DEVICE void dft_last_step(smem<uint4> line, int task, smem<uint4> matrix, const PUT &put) {
    typedef DftSignal<F> D;
    const int lane = dft_lane(), g = lane / 4, t = lane % 4, n2 = 2 * task + g / 4;
    unsigned b[D::EIGHTS][2][4];
    unroll<0, D::EIGHTS * 2>([&](auto i) { dft_operand_of(b[i / 2][i % 2], line[dft_unit(t, n2, g % 4) + 256 * i]); });
    unroll<0, D::EIGHTS>([&](auto eight) {
        float sum[4][4];
        unroll<0, D::EIGHTS>([&](auto e) {
            unsigned a[4];
            dft_operand_of(a, matrix[(eight * D::EIGHTS + e) * 32 + lane]);
            unroll<0, 4>([&](auto n) { dft_mma<decltype(e)::value == 0>(sum[n], a, b[e][0][n], b[e][1][n]); });
        });
        unroll<0, 2>([&](auto part) {
            float v[8];
            unroll<0, 8>([&](auto i) { v[i] = sum[i % 4][2 * part + i / 4]; });
            put(256 * g + 32 * task + 8 * t, Int<decltype(part)::value * D::H + decltype(eight)::value * 2048>{}, v);
        });
    });
}
