/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma with both operands in shared memory: four warps multiply 64 rows of A by N columns of B, over a depth of 16.
 * The emulator (CF_SIMT) has functions of the same names.
 *
 * An operand is made of eights: eight units of 16 bytes that follow one another. A unit is eight numbers of the depth
 * of one row of A, or of one column of B. If the operand is transposed, a unit is eight rows of A, or columns of B, of
 * one place of the depth. Warp w has rows 16 w to 16 w + 15 of the sums, and d[n] has columns 8 n to 8 n + 7, as in
 * mma_m16n8k16().
 */
#pragma once

#include "conv/gpu/gemm/wgmma.cuh"

/* The units from one eight of an operand to the next one of the depth, and of the rows of A or the columns of B. */
struct WgmmaSteps {
    int depth, rows;
};

#ifdef CF_SIMT
template <class Numbers, int N, bool TRANSPOSED_A, bool TRANSPOSED_B>
CF_DEVICE void wgmma_tile(float (&d)[N / 8][4], smem<uint4> a, WgmmaSteps of_a, smem<uint4> b, WgmmaSteps of_b,
                          bool first) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32 % 4;
    /* Matrix i: eights i % 2 of rows and i / 2 of the depth. */
    const auto four = [&](unsigned(&to)[4], bool transposed, smem<uint4> from, WgmmaSteps steps) {
        const int unit = lane / 8 % 2 * steps.rows + lane / 16 * steps.depth + lane % 8;
        if (transposed)
            ldmatrix_trans_x4(to, from, unit);
        else
            ldmatrix_x4(to, from, unit);
    };
    unsigned left[4];
    four(left, TRANSPOSED_A, a + 2 * warp * of_a.rows, of_a);
    for (int n = 0; n < N / 8; n += 2) {
        unsigned right[4];
        four(right, TRANSPOSED_B, b + n * of_b.rows, of_b);
        for (int i = 0; i < 2; ++i) {
            for (int e = 0; e < 4 && first; ++e)
                d[n + i][e] = 0;
            Numbers::multiply(d[n + i], left, right[i], right[2 + i]);
        }
    }
}
template <int N> CF_DEVICE void wgmma_tile_wait(float (&)[N / 8][4]) {}
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define CF_WGMMA_16(d, n)                                                                              \
    "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3]), "+f"(d[n + 1][0]), "+f"(d[n + 1][1]),  \
        "+f"(d[n + 1][2]), "+f"(d[n + 1][3]), "+f"(d[n + 2][0]), "+f"(d[n + 2][1]), "+f"(d[n + 2][2]), \
        "+f"(d[n + 2][3]), "+f"(d[n + 3][0]), "+f"(d[n + 3][1]), "+f"(d[n + 3][2]), "+f"(d[n + 3][3])
#define CF_WGMMA_8(d, n)                                                                              \
    "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3]), "+f"(d[n + 1][0]), "+f"(d[n + 1][1]), \
        "+f"(d[n + 1][2]), "+f"(d[n + 1][3])
#define CF_WGMMA_NUMBERS_32 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define CF_WGMMA_NUMBERS_48 CF_WGMMA_NUMBERS_32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define CF_WGMMA_NUMBERS_64 CF_WGMMA_NUMBERS_48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define CF_WGMMA_NUMBERS_96 \
    CF_WGMMA_NUMBERS_64 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
/* A, B, MORE, TA and TB: the operands behind the sums. */
#define CF_WGMMA_TILE(COLUMNS, TYPE, A, B, MORE, TA, TB, ...)                                                        \
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, " MORE ", 0;\nwgmma.mma_async.sync.aligned.m64n" #COLUMNS   \
                 "k16.f32." TYPE "." TYPE " {" CF_WGMMA_NUMBERS_##COLUMNS "}, " A ", " B ", more, 1, 1, " TA ", " TB \
                                                                          ";\n}"                                     \
                 : __VA_ARGS__                                                                                       \
                 : "l"(left), "l"(right), "r"(int(!first)), "n"(int(TRANSPOSED_A)), "n"(int(TRANSPOSED_B)))
#define CF_WGMMA_TILES(TYPE)                                                                              \
    if constexpr (N == 32)                                                                                \
        CF_WGMMA_TILE(32, TYPE, "%16", "%17", "%18", "%19", "%20", CF_WGMMA_16(d, 0));                    \
    else if constexpr (N == 48)                                                                           \
        CF_WGMMA_TILE(48, TYPE, "%24", "%25", "%26", "%27", "%28", CF_WGMMA_16(d, 0), CF_WGMMA_8(d, 4));  \
    else if constexpr (N == 64)                                                                           \
        CF_WGMMA_TILE(64, TYPE, "%32", "%33", "%34", "%35", "%36", CF_WGMMA_16(d, 0), CF_WGMMA_16(d, 4)); \
    else                                                                                                  \
        CF_WGMMA_TILE(96, TYPE, "%48", "%49", "%50", "%51", "%52", CF_WGMMA_16(d, 0), CF_WGMMA_16(d, 4),  \
                      CF_WGMMA_16(d, 8))
CF_DEVICE unsigned long long wgmma_matrix(smem<uint4> from, WgmmaSteps steps) {
    return (unsigned)__cvta_generic_to_shared(from) >> 4 | (unsigned long long)steps.depth << 16 |
           (unsigned long long)steps.rows << 32;
}
template <class Numbers, int N, bool TRANSPOSED_A, bool TRANSPOSED_B>
CF_DEVICE void wgmma_tile(float (&d)[N / 8][4], smem<uint4> a, WgmmaSteps of_a, smem<uint4> b, WgmmaSteps of_b,
                          bool first) {
    const unsigned long long left = wgmma_matrix(a, of_a), right = wgmma_matrix(b, of_b);
    if constexpr (Numbers::IS_FP16) {
        CF_WGMMA_TILES("f16");
    } else {
        CF_WGMMA_TILES("bf16");
    }
}
template <int N> CF_DEVICE void wgmma_tile_wait(float (&d)[N / 8][4]) {
    if constexpr (N == 32)
        asm volatile("wgmma.wait_group.sync.aligned 0;" : CF_WGMMA_16(d, 0)::"memory");
    else if constexpr (N == 48)
        asm volatile("wgmma.wait_group.sync.aligned 0;" : CF_WGMMA_16(d, 0), CF_WGMMA_8(d, 4)::"memory");
    else if constexpr (N == 64)
        asm volatile("wgmma.wait_group.sync.aligned 0;" : CF_WGMMA_16(d, 0), CF_WGMMA_16(d, 4)::"memory");
    else
        asm volatile("wgmma.wait_group.sync.aligned 0;"
                     : CF_WGMMA_16(d, 0), CF_WGMMA_16(d, 4), CF_WGMMA_16(d, 8)::"memory");
}
#else /* declared only: no kernel for other GPUs calls them */
template <class Numbers, int N, bool TRANSPOSED_A, bool TRANSPOSED_B>
CF_DEVICE void wgmma_tile(float (&d)[N / 8][4], smem<uint4> a, WgmmaSteps of_a, smem<uint4> b, WgmmaSteps of_b,
                          bool first);
template <int N> CF_DEVICE void wgmma_tile_wait(float (&d)[N / 8][4]);
#endif
