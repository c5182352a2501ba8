/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and matrices of DFT kernels (planes.cuh). */
#pragma once

#include "conv/dft/call.h"
#include "conv/dft/geometry.h"
#include "conv/gpu/slices.cuh"
#include "fbfft/common/mma.cuh"

/* ---------------------------------------------------------------------------------------------------------- numbers */

/* d += a b, two numbers in a word, and the largest number of a plane. */
template <class Storage> struct DftNumbers;
template <> struct DftNumbers<fp16> {
    static constexpr bool SCALED = true;
    static CF_DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
        mma_m16n8k16(d, a, b0, b1);
    }
    static CF_DEVICE unsigned word(float low, float high) { return pack_fp16(low, high); }
    static CF_DEVICE cplx pair(unsigned word) { return unpack_fp16(word); }
};
template <> struct DftNumbers<bf16> {
    static constexpr bool SCALED = false;
    static CF_DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
        multiply_bf16(d, a, b0, b1);
    }
    static CF_DEVICE unsigned word(float low, float high) { return pack_bf16(low, high); }
    static CF_DEVICE cplx pair(unsigned word) { return unpack_bf16(word); }
};

/* The larger magnitude of two FP16 numbers, in both halves of a word. Of a NaN and a number it may be the number. */
#ifdef CF_SIMT
CF_DEVICE unsigned larger_halves(unsigned a, unsigned b) {
    const unsigned low = (a & 0x7fffu) > (b & 0x7fffu) ? a & 0x7fffu : b & 0x7fffu,
                   high = (a >> 16 & 0x7fffu) > (b >> 16 & 0x7fffu) ? a >> 16 & 0x7fffu : b >> 16 & 0x7fffu;
    return low | high << 16;
}
#else
CF_DEVICE unsigned larger_halves(unsigned a, unsigned b) {
    unsigned larger;
    asm("{.reg .b32 m; abs.f16x2 m, %2; max.f16x2 %0, %1, m;}" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
}
#endif

/* The largest half of the words of a warp, in the low half. */
CF_DEVICE unsigned largest_of_warp(unsigned v) {
    v = larger_halves(v, v >> 16) & 0xffffu;
#ifdef CF_SIMT
    for (int lanes = 16; lanes > 0; lanes /= 2)
        v = larger_halves(v, __shfl_xor_sync(~0u, v, lanes));
    return v;
#else
    return __reduce_max_sync(~0u, v);
#endif
}

/* The power of two that brings a number to between 1 and 2, and the one that undoes it. Both are positive. */
struct DftScale {
    float up, down;
    CF_DEVICE explicit DftScale(float largest) {
        const unsigned exponent = __float_as_uint(largest) >> 23;
        up = __uint_as_float((exponent < 254 ? 254 - exponent : 1) << 23);
        down = __uint_as_float(exponent << 23);
    }
};

/* ----------------------------------------------------------------------------------------------------------- tables */

template <int N> struct DftCosines {
    float of[N];
    __host__ __device__ constexpr DftCosines() : of{} {
        for (int k = 0; k < N; ++k)
            of[k] = float(cf_cos(k, N));
    }
};
template <int N> __device__ const DftCosines<N> dft_cosines = DftCosines<N>();

/* cos(2 pi n / N) and sin(2 pi n / N), times a gain, from shared memory. n is not negative. */
template <int N> struct DftRoots {
    smem<float> of;
    CF_DEVICE void fill(float gain) const {
        for (int k = int(threadIdx.x); k < N; k += int(blockDim.x))
            of[k] = gain * dft_cosines<N>.of[k];
    }
    CF_DEVICE float cos(int n) const { return of[n % N]; }
    CF_DEVICE float sin(int n) const { return of[(n + N - N / 4) % N]; }
};

/* The weight of a frequency in an inverse transform of real numbers, which has N / 2 + 1 frequencies. */
template <int N> CF_DEVICE float dft_weight(int frequency) {
    return 2 * frequency > N ? 0.0f : 2 * frequency % N == 0 ? 0.5f : 1.0f;
}

template <class F> struct Dft {
    static constexpr int OUT_ROWS = F::GRADIENT ? F::KERNEL_Y : F::Y::ROWS,
                         OUT_COLUMNS = F::GRADIENT ? F::KERNEL_X : F::Y::COLUMNS,
                         ROWS = cf_max_of(F::X::ROWS, F::GRADIENT ? F::Y::ROWS : F::KERNEL_Y),
                         COLUMNS = cf_max_of(F::X::COLUMNS, F::GRADIENT ? F::Y::COLUMNS : F::KERNEL_X);
    static constexpr cf_dft_geometry G =
        cf_dft_geometry_of({ROWS, COLUMNS, OUT_ROWS, OUT_COLUMNS, F::BASIS_Y, F::BASIS_X, F::PLANES, !F::GRADIENT});
    static constexpr int TILES = G.tiles, EIGHTS = G.eights, STEPS_X = G.steps_x, STEPS_Y = G.steps_y,
                         READ_EIGHTS = G.read_eights, PITCH = G.pitch, PLANE = G.plane, OUT_EIGHTS = G.out_eights,
                         OUT_PAIRS = G.out_pairs, HALVES = G.halves, MID_ROWS = G.mid_rows, MID_PITCH = G.mid_pitch,
                         TEAM = 32 * TILES, THREADS = TEAM * F::TEAMS, TABLES = G.first + G.columns + G.table_x;
    /* Elements of x and of w are less than 2. Without gains a spectrum of w is at most 1. S, T and H are at most
     * LARGEST, if UNIT has no further bits, and FP16 ends at 65,504. */
    static constexpr float GAINS = F::GAIN_Y * F::GAIN_X,
                           LARGEST = 2.0f * float(F::BASIS_Y * F::X::COLUMNS) * GAINS * GAINS;
    static constexpr int DOWN = bits_of(2 * F::KERNEL_Y * F::KERNEL_X) + bits_of(1 + (long long)(LARGEST / 65504.0f));
    static constexpr float FACTOR = 128.0f / (float(F::BASIS_Y) * float(F::BASIS_X) * GAINS * GAINS * GAINS);
    typedef DftNumbers<typename F::Storage> N;
    static_assert((F::GRADIENT || F::PLANES % 2 == 0) && F::BASIS_Y % 4 == 0 && F::BASIS_X % 4 == 0,
                  "the planner's choice");
};

/* The matrices of steps 1 to 4 as operands of each lane. Frequencies behind the last one are zeros. */
template <class F> struct DftTables {
    typedef Dft<F> D;
    typedef typename D::N N;
    smem<uint4> first, columns, x; /* columns: for eight k, STEPS_Y operands of step 2 and OUT_PAIRS of step 3 */
    CF_DEVICE explicit DftTables(smem<uint4> memory)
        : first(memory), columns(first + D::G.first), x(columns + D::G.columns) {}

    /* room: for both tables of cosines. There are barriers inside. */
    CF_DEVICE void fill(smem<float> room) const {
        const DftRoots<F::BASIS_Y> down = {room};
        const DftRoots<F::BASIS_X> along = {room + F::BASIS_Y};
        down.fill(F::GAIN_Y);
        along.fill(F::GAIN_X);
        __syncthreads();
        for (int i = int(threadIdx.x); i < D::G.first; i += D::THREADS) {
            const int lane = i % 32, step = i / 32 % D::STEPS_X, f = i / 32 / D::STEPS_X * 8 + lane / 4;
            const bool live = 2 * f <= F::BASIS_X;
            unsigned a[4];
            unroll<0, 2>([&](auto half) {
                const int at = f * (16 * step + 8 * half + lane % 4 * 2);
                a[2 * half] = live ? N::word(along.cos(at), along.cos(at + f)) : 0;
                a[2 * half + 1] = live ? N::word(-along.sin(at), -along.sin(at + f)) : 0;
            });
            first[i] = make_uint4(a[0], a[1], a[2], a[3]);
        }
        for (int i = int(threadIdx.x); i < D::EIGHTS * D::STEPS_Y * 32; i += D::THREADS) {
            const int lane = i % 32, step = i / 32 % D::STEPS_Y, eight = i / 32 / D::STEPS_Y, k = 8 * eight + lane / 4,
                      row = step * 16 + lane % 4 * 2;
            const bool live = 2 * k <= F::BASIS_Y;
            unsigned b[4];
            unroll<0, 2>([&](auto half) {
                const int at = k * (row + 8 * half);
                b[half] = live ? N::word(down.cos(at), down.cos(at + k)) : 0;
                b[2 + half] = live ? N::word(down.sin(at), down.sin(at + k)) : 0;
            });
            columns[eight * D::G.each + step * 32 + lane] = make_uint4(b[0], b[1], b[2], b[3]);
        }
        for (int i = int(threadIdx.x); i < D::EIGHTS * D::OUT_PAIRS * 32; i += D::THREADS) {
            const int lane = i % 32, pair = i / 32 % D::OUT_PAIRS, eight = i / 32 / D::OUT_PAIRS,
                      k = 8 * eight + lane % 4 * 2;
            unsigned b[4];
            unroll<0, 2>([&](auto half) {
                const int row = (2 * pair + half) * 8 + lane / 4 + F::SHIFT_Y;
                float c[2], s[2];
                unroll<0, 2>([&](auto n) {
                    /* S counts twice at the frequencies that are their own opposites. */
                    const float weight = dft_weight<F::BASIS_Y>(k + n) / 32;
                    c[n] = weight * down.cos((k + n) * row);
                    s[n] = weight * down.sin((k + n) * row);
                });
                b[2 * half] = N::word(c[0], c[1]);
                b[2 * half + 1] = N::word(s[0], s[1]);
            });
            columns[eight * D::G.each + (D::STEPS_Y + pair) * 32 + lane] = make_uint4(b[0], b[1], b[2], b[3]);
        }
        /* Of 32 columns of y, a lane has eight neighbours: two of each of four products. */
        for (int i = int(threadIdx.x); i < D::G.table_x; i += D::THREADS) {
            const int lane = i % 32, pair = i / 32 % 2, half = i / 64 % D::HALVES,
                      f = i / 64 / D::HALVES * 8 + lane % 4 * 2;
            unsigned b[4];
            unroll<0, 2>([&](auto n) {
                const int column = 32 * half + lane / 8 * 8 + (2 * pair + n) * 2 + lane / 4 % 2 + F::SHIFT_X;
                float c[2], s[2];
                unroll<0, 2>([&](auto e) {
                    const float weight = dft_weight<F::BASIS_X>(f + e);
                    c[e] = weight * along.cos((f + e) * column);
                    s[e] = -weight * along.sin((f + e) * column);
                });
                b[2 * n] = N::word(c[0], c[1]);
                b[2 * n + 1] = N::word(s[0], s[1]);
            });
            x[i] = make_uint4(b[0], b[1], b[2], b[3]);
        }
    }
};
