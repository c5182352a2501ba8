/* SPDX-License-Identifier: Apache-2.0 */
/* A run of bench_gemm. */
#ifndef BENCH_GEMM_RUN_H
#define BENCH_GEMM_RUN_H

#include "gemm/data.h"

typedef struct gemm_options {
    const char *out, *only, *commit; /* NULL: the standard output, all cases, what git says */
} gemm_options;

/* False: a measurement is missing or gave a wrong result. Messages have been written. */
bool gemm_bench(const gemm_options *o, const gemm_case *cases, size_t count);

#endif
