/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device: its operations, its kernels, what the cost model may expect of it. */
#include "cpu/cpu.h"

#include "core/arith.h"
#include "cpu/device.h"
#include "cpu/parallel.h"

#include <stdio.h>
#include <stdlib.h>

static const cf_stage_ops operations = {
    .transform_create = cf_cpu_transform_create,
    .transform_destroy = cf_cpu_transform_destroy,
    .transform_scratch = cf_cpu_transform_scratch,
    .forward = cf_cpu_forward,
    .inverse = cf_cpu_inverse,
    .product = cf_cpu_product,
    .fold = cf_cpu_fold,
    .bias_gradient = cf_cpu_bias_gradient,
    .clear = cf_cpu_clear,
    .zero = cf_cpu_zero,
};

static bool has_avx2(void) {
#ifdef CF_HAVE_AVX2
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

static bool has_avx512(void) {
#ifdef CF_HAVE_AVX512
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

static const cf_kernels *const all_kernels[] = {
#ifdef CF_HAVE_AVX512
    &cf_kernels_avx512,
#endif
#ifdef CF_HAVE_AVX2
    &cf_kernels_avx2,
#endif
    &cf_kernels_generic,
};

const cf_kernels *const *cf_cpu_kernels_list(int *count) {
    const int all = (int)(sizeof all_kernels / sizeof all_kernels[0]);
    int first = 0;
#ifdef CF_HAVE_AVX512
    if (!has_avx512()) ++first;
#endif
#ifdef CF_HAVE_AVX2
    if (first > 0 || !has_avx512()) first += !has_avx2();
#endif
    *count = all - first;
    return all_kernels + first;
}
