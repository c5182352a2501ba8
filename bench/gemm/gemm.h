/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.h - what the parts of bench_gemm share. Messages and the results file are those of bench.h. */
#ifndef BENCH_GEMM_H
#define BENCH_GEMM_H

#include "bench.h"
#include "conv/plan/context.h"
#include "cuda/driver/memory.h"

/* Spectra of a layer: bins of rows x in and rows x out numbers of X and Y, out x in of W. */
typedef struct gemm_case {
    char name[80];
    int64_t bins, rows, in, out;
} gemm_case;

#define GEMM_CASES 8

typedef enum gemm_precision {
    GEMM_FP32,
    GEMM_TF32,
    GEMM_FP16, /* spectra in 16 bits, but for the gradient of the weights */
    GEMM_BF16,
    GEMM_PRECISIONS
} gemm_precision;

/* Writes the cases, named by their extents. */
size_t gemm_suite(gemm_case cases[GEMM_CASES]);

/* ---------------------------------------------------------------------------------- data.c: operands and the error */

/* One case, one product. */
typedef struct gemm_job {
    const gemm_case *c;
    cf_product_kind kind;
    gemm_precision precision;
    conv_fft_context *context;
    cf_gpu *gpu;
    cf_cu_stream stream;
    void *operand[3]; /* X, W, Y on the device; that of the result is written to */
    float *scales[3]; /* FP16: of their rows */
    void *spread;     /* half.c: the right factor of cuBLAS's product in 16 bits */
} gemm_job;

/* Words of FP16 are as large as the pipeline makes them, which scales their rows. */
static inline float gemm_scale(const gemm_job *job) { return job->precision == GEMM_FP16 ? 0x1p-12f : 1.0f; }
static inline bool gemm_is_half(const gemm_job *job) { return job->precision >= GEMM_FP16; }
int gemm_result(cf_product_kind kind); /* 0, 1, 2: X, W, Y */
/* Of an operand, and of the right factor of cuBLAS's product, as this job's precision has them; what serves each. */
size_t gemm_bytes(const gemm_job *job, int operand);
size_t gemm_spread_bytes(const gemm_job *job);
size_t gemm_most_bytes(const gemm_case *c, int operand);
size_t gemm_scales(const gemm_case *c, int operand); /* of an operand in FP16 */
/* Random numbers into all operands; scales that are all the same. */
conv_fft_status gemm_fill(const gemm_job *job);
conv_fft_status gemm_poison(const gemm_job *job);
/* ||got - exact|| / ||exact|| over sampled numbers of the result; NaN if one is NaN. */
conv_fft_status gemm_error(const gemm_job *job, double *error);

float gemm_number(const gemm_job *job, uint16_t bits); /* in 16 bits, of the job's precision */

/* ------------------------------------------------------------------------------------------------------------ half.c */

/* cuBLAS has no complex product of 16-bit numbers, but a real one of this shape: with the left factor's parts side by side, and the
 * right one's spread to [[re, im], [-im, re]]. Here all are random numbers, for it takes no notice. */
extern const char gemm_half_strategy[];
conv_fft_status gemm_half_cublas(const gemm_job *job);
conv_fft_status gemm_half_error(const gemm_job *job, double *error); /* of its result, as gemm_error */

/* ------------------------------------------------------------------------------------------------------------- run.c */

typedef struct gemm_options {
    const char *out, *only, *commit; /* NULL: standard output, all cases, git's answer */
} gemm_options;

/* False: something that was to be measured was not, or gave a wrong result; messages have been written. */
bool gemm_bench(const gemm_options *o, const gemm_case *cases, size_t count);

#endif
