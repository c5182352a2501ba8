/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.h - what the parts of bench_gemm share. Messages and the results file are those of bench.h. */
#ifndef BENCH_GEMM_H
#define BENCH_GEMM_H

#include "bench.h"
#include "conv/context.h"
#include "device/memory.h"

/* Spectra of a layer: bins of rows x in and rows x out numbers of X and Y, out x in of W. */
typedef struct gemm_case {
    char name[80];
    int64_t bins, rows, in, out;
} gemm_case;

#define GEMM_CASES 8

/* Writes the cases, named by their extents. */
size_t gemm_suite(gemm_case cases[GEMM_CASES]);

/* ---------------------------------------------------------------------------------- data.c: operands and the error */

/* One case, one product. */
typedef struct gemm_job {
    const gemm_case *c;
    cf_product_kind kind;
    conv_fft_context *context;
    cf_gpu *gpu;
    cf_cu_stream stream;
    void *operand[3]; /* X, W, Y on the device; that of the result is written to */
} gemm_job;

size_t gemm_bytes(const gemm_case *c, int operand);
int gemm_result(cf_product_kind kind); /* 0, 1, 2: X, W, Y */
/* Random numbers into all operands. */
conv_fft_status gemm_fill(const gemm_job *job);
conv_fft_status gemm_poison(const gemm_job *job);
/* ||got - exact|| / ||exact|| over sampled numbers of the result; NaN if one is NaN. */
conv_fft_status gemm_error(const gemm_job *job, double *error);

/* ------------------------------------------------------------------------------------------------------------- run.c */

typedef struct gemm_options {
    const char *out, *only, *commit; /* NULL: standard output, all cases, git's answer */
} gemm_options;

/* False: something that was to be measured was not, or gave a wrong result; messages have been written. */
bool gemm_bench(const gemm_options *o, const gemm_case *cases, size_t count);

#endif
