/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor-core products of 16-bit numbers, two in a word (mma_m16n8k16), and of TF32 numbers (multiply_tf32). All lanes
 * of a warp must execute these instructions together. They are volatile, so that compilers do not move them into
 * branches. */
#pragma once

#include "fbfft/common/storage.cuh"

/* d += a b: 16 x 8 numbers from 16 x 16 and 16 x 8. With g = lane / 4 and t = lane % 4:
 *
 *     d[0], d[1]    row g, columns 2 t and 2 t + 1;    d[2], d[3]    the same in row g + 8
 *     a[0], a[1]    rows g and g + 8, word t;          a[2], a[3]    the same rows, word t + 4
 *     b0, b1        column g, words t and t + 4
 *
 * A word is two 16-bit numbers of a row of a, or of a column of b. For TF32 it is one number, and a has 16 x 8 of them.
 * Tensor cores ignore the last 13 bits of a TF32 number. */
#ifdef CF_SIMT
CF_DEVICE void mma_m16n8k16(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    simt_mma_m16n8k16(d, a, b0, b1);
}
CF_DEVICE void multiply_bf16(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    simt_multiply_bf16(d, a, b0, b1);
}
CF_DEVICE void multiply_tf32(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    simt_multiply_tf32(d, a, b0, b1);
}
#else
CF_DEVICE void mma_m16n8k16(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
CF_DEVICE void multiply_bf16(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
CF_DEVICE void multiply_tf32(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif

/* d = a b. */
#ifdef CF_SIMT
CF_DEVICE void mma_m16n8k16_first(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    d[0] = d[1] = d[2] = d[3] = 0;
    simt_mma_m16n8k16(d, a, b0, b1);
}
#else
CF_DEVICE void mma_m16n8k16_first(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, "
        "%10, %10};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0f));
}
#endif

/* ldmatrix: reads four matrices of eight rows of 16 bytes. Lane l gives the unit of 16 bytes of row l % 8 of matrix
 * l / 8. It receives word l % 4 of row l / 4 of each matrix. ldmatrix_trans_x4() reads their transposes: numbers
 * 2 (l % 4) and 2 (l % 4) + 1 of column l / 4. mma_transposed() transposes a matrix whose words the lanes hold. */
#ifdef CF_SIMT
CF_DEVICE void ldmatrix_x4(unsigned r[4], smem<uint4> from, int unit) { simt_ldmatrix_x4(r, from, unit); }
CF_DEVICE unsigned mma_transposed(unsigned w) { return simt_transposed(w); }
CF_DEVICE void ldmatrix_trans_x4(unsigned r[4], smem<uint4> from, int unit) {
    simt_ldmatrix_x4(r, from, unit);
    for (int i = 0; i < 4; ++i)
        r[i] = simt_transposed(r[i]);
}
CF_DEVICE void ldmatrix_trans_x2(unsigned r[2], smem<uint4> from, int unit) {
    unsigned twice[4];
    ldmatrix_trans_x4(twice, from, unit);
    r[0] = twice[0];
    r[1] = twice[1];
}
#else
CF_DEVICE void ldmatrix_x4(unsigned r[4], smem<uint4> from, int unit) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(from + unit))
                 : "memory");
}
CF_DEVICE void ldmatrix_trans_x4(unsigned r[4], smem<uint4> from, int unit) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(from + unit))
                 : "memory");
}
CF_DEVICE void ldmatrix_trans_x2(unsigned r[2], smem<uint4> from, int unit) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"((unsigned)__cvta_generic_to_shared(from + unit))
                 : "memory");
}
CF_DEVICE unsigned mma_transposed(unsigned w) {
    unsigned d;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(w));
    return d;
}
#endif

/* d += a b for the 16-bit type of a spectrum. */
template <class Bins> CF_DEVICE void multiply_bins(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    if constexpr (Bins::SCALED)
        mma_m16n8k16(d, a, b0, b1);
    else
        multiply_bf16(d, a, b0, b1);
}
