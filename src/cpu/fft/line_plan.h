/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a complex DFT of one length is computed: Stockham stages, which leave the result in natural order.
 *
 * With n = radix * m points left at stride s, a stage takes, for p < m and q < s,
 *
 *     y[q + s * (radix * p + j)] = w^(p * j) * sum_k x[q + s * (p + m * k)] exp(-2 pi i j k / radix)
 *     with w = exp(-2 pi i / n)
 *
 * and leaves s * radix interleaved transforms of m points.
 */
#ifndef CF_CPU_LINE_PLAN_H
#define CF_CPU_LINE_PLAN_H

#include "core/status.h"

/* 3^39 < 2^63: no length has more stages. */
enum {
    CF_MAX_STAGES = 40
};

typedef struct cf_line_stage {
    int radix;
    int64_t m, s;
    int64_t twiddle; /* index of the stage's twiddles: [p][j - 1] complex, 1 <= j < radix */
} cf_line_stage;

typedef struct cf_line_plan {
    int64_t length;
    int stages;
    cf_line_stage stage[CF_MAX_STAGES];
    int64_t twiddles; /* complex numbers in all */
} cf_line_plan;

/* INVALID_ARGUMENT unless length = 2^a 3^b 5^c 7^d. */
conv_fft_status cf_line_plan_init(cf_line_plan *plan, int64_t length);

/* Write the plan's twiddles, complex numbers of `dtype` (FP32 or FP64). */
void cf_line_plan_twiddles(const cf_line_plan *plan, conv_fft_dtype dtype, void *twiddles);

/* complex[index] = exp(-2 pi i k / n), for 0 <= k < n, correct to the last bits. */
void cf_root_of_unity(int64_t k, int64_t n, conv_fft_dtype dtype, void *complex, int64_t index);

#endif
