/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of fbfft.h other than accuracy, for any transform on either device (gpu NULL: the CPU). Each fails the
 * test. */
#ifndef TEST_FBFFT_RULES_H
#define TEST_FBFFT_RULES_H

#include "support/case_list.h"
#include "support/fft_check.h"

/* A plan with room for a batch of random planes on the host. */
typedef struct fft_bench {
    fft_shape shape;
    fft_run run;
    void *in;
    fbfft_plan *plan;
} fft_bench;

fft_bench fft_bench_create(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc, int64_t batch);
void fft_bench_destroy(fft_bench *b);
void fft_bench_run(const fft_bench *b);

/* A NaN or Inf in some planes: these show it, and all others keep their bits. */
void fft_check_isolation(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc);
/* Of FP32 or FP64. */
void fft_check_linearity(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc);
/* Forward, with whole windows and no padding: the energy of a spectrum is N times that of its signal, and an impulse at
 * the origin has a spectrum of ones. */
void fft_check_energy_and_impulse(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc);
/* Forward, and then back with 1 / N of its scale: the signal again. */
void fft_check_there_and_back(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc);
/* One plan used by several threads, on a GPU each with its own stream: always the same bits. */
void fft_check_threads(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc);
/* Bad arguments of executions, and empty batches. Nothing is computed, and no memory but the host's is needed. */
void fft_check_arguments(conv_fft_context *context);

typedef void fft_rule(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc);

/* Transforms that one rule is checked for. */
typedef struct fft_rule_list {
    case_list names;
    fbfft_desc descs[128];
    const cf_gpu *gpu;
    conv_fft_context *context;
    fft_rule *rule;
} fft_rule_list;

void fft_rule_list_add(fft_rule_list *list, const fbfft_desc *desc);
/* Those that test_select() takes, one after the other. */
void fft_rule_list_check(fft_rule_list *list);

#endif
