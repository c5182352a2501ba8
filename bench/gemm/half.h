/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS's product of 16-bit numbers. */
#ifndef BENCH_GEMM_HALF_H
#define BENCH_GEMM_HALF_H

#include "gemm/data.h"

/* cuBLAS has no complex product of 16-bit numbers. A real product of the same shape stands for it: the real and
 * imaginary parts of the left factor stand side by side, and the right factor is spread to [[re, im], [-im, re]].
 * Here all numbers are random, which does not change the time. */
extern const char gemm_half_strategy[];
conv_fft_status gemm_half_cublas(const gemm_job *job);

/* The error of its result, as gemm_error(). */
conv_fft_status gemm_half_error(const gemm_job *job, double *error);

#endif
