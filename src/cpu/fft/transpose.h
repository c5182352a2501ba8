/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transposes in registers, between lines (lanes are neighbours) and tensors (elements of a lane are neighbours).
 *
 * A block has two doubles or four floats of each lane, which is a register of 16 bytes. A wide block has that of the
 * CF_WIDE_LANES lanes of a vector. It takes one shuffle for each four lanes and element, and whole vectors of lanes are
 * loaded and stored.
 */
#ifndef CF_CPU_TRANSPOSE_H
#define CF_CPU_TRANSPOSE_H

#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

typedef float float_row __attribute__((vector_size(16)));
typedef double double_row __attribute__((vector_size(16)));

/* Square: into[c][r] = from[r][c]. */
static inline void cf_transpose_block_f32(const float *const from[4], float *const into[4]) {
    float_row r[4];
    for (int i = 0; i < 4; ++i)
        memcpy(&r[i], from[i], sizeof r[i]);
    const float_row a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5),
                    b = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
    const float_row c = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7),
                    d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
    r[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    r[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
    r[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
    for (int i = 0; i < 4; ++i)
        memcpy(into[i], &r[i], sizeof r[i]);
}

static inline void cf_transpose_block_f64(const double *const from[2], double *const into[2]) {
    double_row r[2];
    for (int i = 0; i < 2; ++i)
        memcpy(&r[i], from[i], sizeof r[i]);
    const double_row a = __builtin_shufflevector(r[0], r[1], 0, 2), b = __builtin_shufflevector(r[0], r[1], 1, 3);
    memcpy(into[0], &a, sizeof a);
    memcpy(into[1], &b, sizeof b);
}

#if defined(CF_ISA_AVX512)
#define CF_WIDE_LANES 16
typedef __m512 wide_row;
#define CF_WIDE_OP(name) _mm512_##name

/* Four elements of lanes i, i + 4, i + 8 and i + 12. */
static inline wide_row load_lanes(const float *const row[], int i) {
    wide_row v = _mm512_castps128_ps512(_mm_loadu_ps(row[i]));
    v = _mm512_insertf32x4(v, _mm_loadu_ps(row[i + 4]), 1);
    v = _mm512_insertf32x4(v, _mm_loadu_ps(row[i + 8]), 2);
    return _mm512_insertf32x4(v, _mm_loadu_ps(row[i + 12]), 3);
}

static inline void store_lanes(wide_row v, float *const row[], int i) {
    _mm_storeu_ps(row[i], _mm512_castps512_ps128(v));
    _mm_storeu_ps(row[i + 4], _mm512_extractf32x4_ps(v, 1));
    _mm_storeu_ps(row[i + 8], _mm512_extractf32x4_ps(v, 2));
    _mm_storeu_ps(row[i + 12], _mm512_extractf32x4_ps(v, 3));
}
#elif defined(CF_ISA_AVX2)
#define CF_WIDE_LANES 8
typedef __m256 wide_row;
#define CF_WIDE_OP(name) _mm256_##name

/* Four elements of lanes i and i + 4. */
static inline wide_row load_lanes(const float *const row[], int i) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row[i])), _mm_loadu_ps(row[i + 4]), 1);
}

static inline void store_lanes(wide_row v, float *const row[], int i) {
    _mm_storeu_ps(row[i], _mm256_castps256_ps128(v));
    _mm_storeu_ps(row[i + 4], _mm256_extractf128_ps(v, 1));
}
#else
#define CF_WIDE_LANES 4
#endif

#if CF_WIDE_LANES > 4
/* Number j of a quarter (16 bytes) of r[i] becomes number i of that quarter of r[j]. */
static inline void transpose_quarters(wide_row r[4]) {
#define CF_LOW(a, b) CF_WIDE_OP(castps_pd)(CF_WIDE_OP(unpacklo_ps)(a, b))
#define CF_HIGH(a, b) CF_WIDE_OP(castps_pd)(CF_WIDE_OP(unpackhi_ps)(a, b))
#define CF_JOIN(half, a, b) CF_WIDE_OP(castpd_ps)(CF_WIDE_OP(unpack##half##_pd)(a, b))
    const __typeof__(CF_LOW(r[0], r[1])) a = CF_LOW(r[0], r[1]), b = CF_LOW(r[2], r[3]), c = CF_HIGH(r[0], r[1]),
                                         d = CF_HIGH(r[2], r[3]);
    r[0] = CF_JOIN(lo, a, b);
    r[1] = CF_JOIN(hi, a, b);
    r[2] = CF_JOIN(lo, c, d);
    r[3] = CF_JOIN(hi, c, d);
#undef CF_LOW
#undef CF_HIGH
#undef CF_JOIN
}

/* into[e][l] = row[l][e] of CF_WIDE_LANES lanes, e < 4. */
static inline void cf_wide_in_f32(const float *const row[], float *const into[4]) {
    wide_row r[4];
    for (int i = 0; i < 4; ++i)
        r[i] = load_lanes(row, i);
    transpose_quarters(r);
    for (int e = 0; e < 4; ++e)
        CF_WIDE_OP(storeu_ps)(into[e], r[e]);
}

/* row[l][e] = from[e][l]. */
static inline void cf_wide_out_f32(const float *const from[4], float *const row[]) {
    wide_row r[4];
    for (int e = 0; e < 4; ++e)
        r[e] = CF_WIDE_OP(loadu_ps)(from[e]);
    transpose_quarters(r);
    for (int i = 0; i < 4; ++i)
        store_lanes(r[i], row, i);
}
#else
static inline void cf_wide_in_f32(const float *const row[], float *const into[]) { cf_transpose_block_f32(row, into); }
static inline void cf_wide_out_f32(const float *const from[], float *const row[]) { cf_transpose_block_f32(from, row); }
#endif

/* Lines of doubles have no wide blocks. */
static inline void cf_wide_in_f64(const double *const row[], double *const into[]) {
    cf_transpose_block_f64(row, into);
}
static inline void cf_wide_out_f64(const double *const from[], double *const row[]) {
    cf_transpose_block_f64(from, row);
}

#endif
