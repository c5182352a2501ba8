/* SPDX-License-Identifier: Apache-2.0 */
/* Products of 16-bit numbers, two in a word, on tensor cores: instructions for which all lanes of a warp meet, so that
 * compilers may not move them to where only some come (volatile). */
#pragma once

#include "fbfft/common/storage.cuh"

/* d += a b: 16 x 8 numbers from 16 x 16 and 16 x 8. With g = lane / 4, t = lane % 4: d[0], d[1] stand in row g, columns 2t and
 * 2t + 1, d[2], d[3] eight rows below; words a[0] in row g, a[1] in row g + 8 of word column t, a[2], a[3] of word column t + 4;
 * b0, b1 at words t and t + 4 of column g. */
#ifdef CF_SIMT
CF_DEVICE void multiply_halves(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    simt_multiply_halves(d, a, b0, b1);
}
CF_DEVICE void multiply_bf16(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    simt_multiply_bf16(d, a, b0, b1);
}
#else
CF_DEVICE void multiply_halves(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
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
#endif

/* Of numbers as spectra have them. */
template <class Bins> CF_DEVICE void multiply_bins(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    if constexpr (Bins::SCALED)
        multiply_halves(d, a, b0, b1);
    else
        multiply_bf16(d, a, b0, b1);
}
