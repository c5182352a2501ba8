/* SPDX-License-Identifier: Apache-2.0 */
/* DFTs of complex numbers as matrix products on tensor cores. A word is one complex number: two FP16 values, the real
 * part in the low half. Two formats of numbers are operands:
 *
 *     Fp16Number     one word
 *     SplitNumber    an FP32 number as the sum of two words, high and low. With three products, high high, high low
 *                    and low high, a result is about as accurate as one of FP32 units.
 *
 * A warp works on units of 256 words, a matrix of 16 slots by 16 columns. A lane is number 4 g + t of its warp. The
 * left operand is the 16 x 16 complex DFT matrix, and the slots of a column are the points that it transforms:
 *
 *     input     lane (g, t) has slots (t, i), i < 4, of columns (g, j), j < 2
 *     output    lane (g, t) has results (g, m), m < 2, of columns (t, e, j), e < 2, j < 2
 *
 * The columns of a result are in those lanes where the next product reads its slots. So two FFT stages follow one
 * another in registers, with twiddles between them that each lane computes for itself. For a radix r below 16 the
 * matrix is block diagonal: 16 / r transforms at a time. */
#pragma once

#include "fbfft/common/mma.cuh"
#include "fbfft/common/register_dft.cuh"

CF_DEVICE unsigned fp16_pack(cplx v) { return pack_fp16(v.x, v.y); }

/* fp16_copy_async(): copies four words from global to shared memory, or zeros. They are there after fp16_wait_async()
 * and a barrier. LINE: also prefetches the 128-byte line to the L2 cache, because other blocks need the rest of it
 * soon. */
#ifdef CF_SIMT
CF_DEVICE float fp16_cos(float angle) { return std::cos(angle); }
CF_DEVICE float fp16_sin(float angle) { return std::sin(angle); }
template <bool> CF_DEVICE void fp16_copy_async(smem<uint4> to, const uint4 *from, bool inside) {
    *to = inside ? __ldg(from) : uint4{0, 0, 0, 0};
}
CF_DEVICE void fp16_wait_async() {}
CF_DEVICE int fp16_hide(int v) { return v; }
#else
CF_DEVICE float fp16_cos(float angle) {
    float c;
    asm("cos.approx.f32 %0, %1;" : "=f"(c) : "f"(angle));
    return c;
}
CF_DEVICE float fp16_sin(float angle) {
    float s;
    asm("sin.approx.f32 %0, %1;" : "=f"(s) : "f"(angle));
    return s;
}
template <bool LINE> CF_DEVICE void fp16_copy_async(smem<uint4> to, const uint4 *from, bool inside) {
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    const int wanted = inside ? 16 : 0;
    if constexpr (LINE)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(wanted)
                     : "memory");
    else
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(wanted) : "memory");
}
CF_DEVICE void fp16_wait_async() { asm volatile("cp.async.wait_all;" ::: "memory"); }
/* Hides v from the compiler: what a loop computes from it is not kept in registers from one iteration to the next. */
CF_DEVICE int fp16_hide(int v) {
    asm volatile("" : "+r"(v));
    return v;
}
#endif

template <int N, bool INVERSE> CF_DEVICE void fp16_dft(cplx *v) {
    if constexpr (INVERSE)
        dft_inverse<N>(v);
    else
        dft<N>(v);
}
CF_DEVICE cplx fp16_times(cplx v, float factor) { return {factor * v.x, factor * v.y}; }

__host__ __device__ constexpr int fp16_log(int n) { return n <= 1 ? 0 : 1 + fp16_log(n / 2); }

/* factor exp(-+2 pi i phase / 2^32). Angles are rounded to 23 bits, which is more accurate than the hardware's sine
 * and cosine between -pi and pi. */
template <bool INVERSE> CF_DEVICE cplx fp16_root(unsigned phase, float factor) {
    constexpr float circle = INVERSE ? 6.28318531f : -6.28318531f;
    const float angle = __uint_as_float((phase >> 9) ^ 0x3fc00000u) * circle - 1.5f * circle;
    return {factor * fp16_cos(angle), factor * fp16_sin(angle)};
}

template <bool INVERSE> CF_DEVICE cplx fp16_twiddled(cplx w) { return INVERSE ? conj(w) : w; }

/* Permutes four bits: bit i of the value goes to bit (P >> 4 i & 15). */
template <int P> __host__ __device__ constexpr int fp16_order(int v) {
    return (v & 1) << (P & 15) | (v >> 1 & 1) << (P >> 4 & 15) | (v >> 2 & 1) << (P >> 8 & 15) |
           (v >> 3 & 1) << (P >> 12 & 15);
}

/* ---------------------------------------------------------------------------------------------- FFT stages in
 * registers */

/* Which slot, column and result a lane has. Slot (t, i) is number fp16_order<IN>(t + 4 i), with the bits of i
 * exchanged. Column (g, j) is the number of the slot with t = g / 2 and i = 2 (g % 2) + j. Result (g, m) is number
 * fp16_order<OUT>(g + 8 m). */
template <int IN> __host__ __device__ constexpr int fp16_slot(int t, int i) {
    return fp16_order<IN>(t | (i & 1) << 3 | (i >> 1) << 2);
}
template <int IN> __host__ __device__ constexpr int fp16_column(int g, int j) {
    return fp16_order<IN>(g >> 1 | (g & 1) << 2 | j << 3);
}
template <int OUT> __host__ __device__ constexpr int fp16_result(int g, int m) { return fp16_order<OUT>(g | m << 3); }

/* The bits of v rounded to 8 bits (BF16) or 11 bits (FP16). */
template <bool SCALED> __host__ __device__ constexpr unsigned mma_bits(double v) {
    constexpr int BITS = SCALED ? 10 : 7, BIAS = SCALED ? 15 : 127;
    double size = v < 0 ? -v : v;
    int exponent = 0;
    if (size < 1e-9)
        return 0;
    for (; size >= 2; size /= 2)
        ++exponent;
    for (; size < 1 && exponent > 1 - BIAS; size *= 2)
        --exponent;
    /* The leading bit of `size` adds one to the exponent. */
    return (v < 0 ? 0x8000u : 0u) | (unsigned(exponent + BIAS - 1) * (1u << BITS) + unsigned(size * (1 << BITS) + 0.5));
}

struct Fp16Number {
    typedef unsigned word;
    static constexpr int PARTS = 1;
    static CF_DEVICE word pack(cplx v) { return fp16_pack(v); }
    static CF_DEVICE unsigned part(word w, int) { return w; }
};

/* Values must not be above 65504. The sum of both words differs by at most 2^-24 of a value, and by 2^-25. */
struct SplitNumber {
    struct word {
        unsigned high, low;
    };
    static constexpr int PARTS = 2;
    static CF_DEVICE word pack(cplx v) {
        const unsigned high = fp16_pack(v);
        return {high, fp16_pack(v - unpack_fp16(high))};
    }
    static CF_DEVICE unsigned part(word w, int p) { return p == 0 ? w.high : w.low; }
};

/* The entries x + i y of each lane in the matrix of 16 points: the high and low words of (x, -y) and of (y, x). */
template <int IN, int OUT, bool INVERSE> struct SplitEntries {
    uint4 of[2][4][32];
    static __host__ __device__ constexpr unsigned high(double re, double im) {
        return mma_bits<true>(re) | mma_bits<true>(im) << 16;
    }
    /* What v differs from it when rounded to FP16, for v in -1 .. 1. */
    static __host__ __device__ constexpr double rest(double v) {
        const double size = v < 0 ? -v : v;
        double unit = 1.0 / 1024;
        while (unit > 1.0 / (1 << 24) && size < 1024 * unit)
            unit /= 2;
        const double rounded = double(int(size / unit + 0.5)) * unit;
        return v < 0 ? rounded - size : size - rounded;
    }
    __host__ __device__ constexpr SplitEntries() : of{} {
        for (int i = 0; i < 8 * 32; ++i) {
            const int lane = i % 32, m = i / 128,
                      k = fp16_slot<IN>(lane % 4, i / 32 % 4) * fp16_result<OUT>(lane / 4, m) & 15;
            const double x = cf_cos(k, 16), y = INVERSE ? cf_sin(k, 16) : -cf_sin(k, 16);
            uint4 &entry = of[m][i / 32 % 4][lane];
            entry.x = high(x, -y), entry.y = high(rest(x), rest(-y));
            entry.z = high(y, x), entry.w = high(rest(y), rest(x));
        }
    }
};
template <int IN, int OUT, bool INVERSE>
__device__ const SplitEntries<IN, OUT, INVERSE> split_entries = SplitEntries<IN, OUT, INVERSE>();

/* A lane's part of the matrix of 16 / R transforms of R points: slot s has point s % R of transform s / R. N: the
 * format of numbers. */
template <int R, int IN, int OUT, bool INVERSE, class N = Fp16Number> struct Fp16Matrix {
    typedef N Number;
    unsigned word[N::PARTS][2][2][4];
    CF_DEVICE Fp16Matrix(int g, int t) {
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if constexpr (N::PARTS == 2) {
                    static_assert(R == 16, "a row of the matrix is one transform");
                    const uint4 w = split_entries<IN, OUT, INVERSE>.of[m][i][4 * g + t];
                    word[0][m][i / 2][2 * (i % 2)] = w.x, word[1][m][i / 2][2 * (i % 2)] = w.y;
                    word[0][m][i / 2][2 * (i % 2) + 1] = w.z, word[1][m][i / 2][2 * (i % 2) + 1] = w.w;
                } else {
                    const int from = fp16_slot<IN>(t, i), to = fp16_result<OUT>(g, m);
                    cplx w = fp16_twiddled<INVERSE>(cf_roots<16>.w[(from % R) * (to % R) * (16 / R) & 15]);
                    if (from / R != to / R)
                        w = {0, 0};
                    word[0][m][i / 2][2 * (i % 2)] = fp16_pack({w.x, -w.y});
                    word[0][m][i / 2][2 * (i % 2) + 1] = fp16_pack({w.y, w.x});
                }
            }
    }
};

/* One matrix product. in[i][j]: slots (t, i) of columns (g, j). sum[m][j][e] and sum[m][j][2 + e]: the real and
 * imaginary part of result (g, m) of column 2 t + e. Products of low words come first, so that few roundings are as
 * large as those of the result. */
template <class M>
CF_DEVICE void fp16_step(const M &matrix, const typename M::Number::word (&in)[4][2], float (&sum)[2][2][4]) {
    typedef typename M::Number N;
    constexpr int PRODUCTS = 2 * N::PARTS - 1;
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int j = 0; j < 2; ++j)
#pragma unroll
            for (int k = 0; k < 4; ++k)
                sum[m][j][k] = 0;
#pragma unroll
    for (int p = 0; p < PRODUCTS; ++p) {
        const int a = PRODUCTS > 1 && p == 1, b = PRODUCTS > 1 && p == 0; /* the parts of the matrix and the numbers */
#pragma unroll
        for (int o = 0; o < 8; ++o) { /* of many products, neighbours do not wait for one another */
            const int h = PRODUCTS > 1 ? o / 4 : o % 2, m = PRODUCTS > 1 ? o / 2 % 2 : o / 4,
                      j = PRODUCTS > 1 ? o % 2 : o / 2 % 2;
            mma_m16n8k16(sum[m][j], matrix.word[a][m][h], N::part(in[2 * h][j], b), N::part(in[2 * h + 1][j], b));
        }
    }
}
CF_DEVICE cplx fp16_sum(const float (&sum)[2][2][4], int m, int j, int e) { return {sum[m][j][e], sum[m][j][2 + e]}; }

/* The twiddles w[m][e][j] of 256 points of each lane, see below, for both j. */
template <int IN, int OUT> struct SplitLaneTwiddles {
    float4 of[2][2][32];
    __host__ __device__ constexpr SplitLaneTwiddles() : of{} {
        for (int i = 0; i < 4 * 32; ++i) {
            const int lane = i % 32, m = i / 64, e = i / 32 % 2, k = fp16_result<OUT>(lane / 4, m),
                      a = k * fp16_column<IN>(2 * (lane % 4) + e, 0), b = k * fp16_column<IN>(2 * (lane % 4) + e, 1);
            of[m][e][lane] = {float(cf_cos(a, 256)), float(-cf_sin(a, 256)), float(cf_cos(b, 256)),
                              float(-cf_sin(b, 256))};
        }
    }
};
template <int IN, int OUT>
__device__ const SplitLaneTwiddles<IN, OUT> split_lane_twiddles = SplitLaneTwiddles<IN, OUT>();

/* Twiddles between the two stages of a transform of 16 R points: gain exp(-2 pi i b k / (16 R)) for result k of the
 * first stage and point b = column % R of the second. */
template <int R, int IN, int OUT, bool INVERSE, class N = Fp16Number> struct Fp16Twiddles {
    cplx w[2][2][2];
    CF_DEVICE Fp16Twiddles(int g, int t, float gain) {
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int e = 0; e < 2; ++e)
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    cplx v;
                    if constexpr (N::PARTS == 2 && R == 16) {
                        const float4 both = split_lane_twiddles<IN, OUT>.of[m][e][4 * g + t];
                        v = j == 0 ? cplx{both.x, both.y} : cplx{both.z, both.w};
                    } else {
                        const int b = fp16_column<IN>(2 * t + e, j) % R, k = fp16_result<OUT>(g, m);
                        v = cf_roots<16 * R>.w[b * k];
                    }
                    v = fp16_twiddled<INVERSE>(v);
                    w[m][e][j] = {gain * v.x, gain * v.y};
                }
    }
    /* Applies the twiddles. The columns of the first stage become the slots of the second. */
    CF_DEVICE void apply(const float (&sum)[2][2][4], typename N::word (&next)[4][2]) const {
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int e = 0; e < 2; ++e)
#pragma unroll
                for (int j = 0; j < 2; ++j)
                    next[2 * e + j][m] = N::pack(fp16_sum(sum, m, j, e) * w[m][e][j]);
    }
};
