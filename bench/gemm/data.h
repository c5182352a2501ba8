/* SPDX-License-Identifier: Apache-2.0 */
/* The products that are measured: their operands, and the error of their results. */
#ifndef BENCH_GEMM_DATA_H
#define BENCH_GEMM_DATA_H

#include "conv/plan/context.h"
#include "cuda/driver/memory.h"

/* The spectra of a layer. Each bin has matrices X of rows x in, Y of rows x out and W of out x in complex numbers. */
typedef struct gemm_case {
    char name[80];
    int64_t bins, rows, in, out;
} gemm_case;

#define GEMM_CASES 8

typedef enum gemm_precision {
    GEMM_FP32,
    GEMM_TF32,
    GEMM_FP16, /* 16-bit spectra, except for the gradient of the weights */
    GEMM_BF16,
    GEMM_PRECISIONS
} gemm_precision;

/* Write the cases and return how many there are. The extents are their names. */
size_t gemm_suite(gemm_case cases[GEMM_CASES]);

/* One product of one case. */
typedef struct gemm_job {
    const gemm_case *c;
    cf_cgemm_kind kind;
    gemm_precision precision;
    conv_fft_context *context;
    cf_gpu *gpu;
    cf_cu_stream stream;
    void *operand[3]; /* X, W, Y on the device; one of them is the result */
    float *scales[3]; /* FP16: the scales of their rows */
    void *spread;     /* half.c: the right factor of cuBLAS's 16-bit product */
} gemm_job;

/* FP16 numbers are as large as those of the library, which scales their rows. */
static inline float gemm_scale(const gemm_job *job) { return job->precision == GEMM_FP16 ? 0x1p-12f : 1.0f; }
static inline bool gemm_is_half(const gemm_job *job) { return job->precision >= GEMM_FP16; }

/* The operand that is the result: 0, 1, 2 for X, W, Y. */
int gemm_result(cf_cgemm_kind kind);

/* Bytes in the precision of the job: of an operand, and of the right factor of cuBLAS's product. */
size_t gemm_bytes(const gemm_job *job, int operand);
size_t gemm_spread_bytes(const gemm_job *job);

/* Bytes of an operand in the largest precision. */
size_t gemm_most_bytes(const gemm_case *c, int operand);

/* The number of scales of an operand in FP16. */
size_t gemm_scales(const gemm_case *c, int operand);

/* Fill all operands with random numbers. All scales are equal. */
conv_fft_status gemm_fill(const gemm_job *job);

/* Overwrite the result with NaN. */
conv_fft_status gemm_poison(const gemm_job *job);

/* ||got - exact|| / ||exact|| over sampled numbers of the result. NaN if a number is NaN. */
conv_fft_status gemm_error(const gemm_job *job, double *error);

/* The value of 16 bits in the precision of the job. */
float gemm_number(const gemm_job *job, uint16_t bits);

#endif
