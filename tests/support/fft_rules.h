/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of fbfft.h other than accuracy, for any transform on either device (gpu NULL: the CPU). Each fails the
 * test. */
#ifndef TEST_FBFFT_RULES_H
#define TEST_FBFFT_RULES_H

#include "support/case_list.h"
#include "support/fft_check.h"

/* A plan with memory for a batch of random planes on the host. */
typedef struct fft_bench {
    fft_shape shape;
    fft_run run;
    void *in;
    fbfft_plan *plan;
} fft_bench;

fft_bench fft_bench_create(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc, int64_t batch);
void fft_bench_destroy(fft_bench *b);
void fft_bench_run(const fft_bench *b);

/* A NaN or Inf in some planes shows in their outputs. The outputs of all other planes keep their bits. */
void fft_check_isolation(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc);
/* For FP32 or FP64. */
void fft_check_linearity(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc);
/* Forward, with whole windows and no padding: the energy of a spectrum is N times that of its signal, and an impulse at
 * the origin has a spectrum of ones. */
void fft_check_energy_and_impulse(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc);
/* Forward and then inverse, with scale 1 / N, gives the signal again. */
void fft_check_there_and_back(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc);
/* Several threads use one plan, on a GPU each with its own stream, and always get the same bits. */
void fft_check_threads(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc);
/* Bad arguments of fbfft_execute(), and empty batches. Nothing is computed, and only host memory is needed. */
void fft_check_arguments(conv_fft_context *context);

typedef void fft_rule(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc);

/* Transforms that one rule is checked with. */
typedef struct fft_rule_list {
    case_list names;
    fbfft_desc descs[128];
    const cf_gpu *gpu;
    conv_fft_context *context;
    fft_rule *rule;
} fft_rule_list;

void fft_rule_list_add(fft_rule_list *list, const fbfft_desc *desc);
/* Check the selected ones, one after the other. */
void fft_rule_list_check(fft_rule_list *list);

#endif
