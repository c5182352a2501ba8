/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/c2c_split/plan.h"

#include "core/arith.h"
#include "cuda/driver/pointer_check.h"
#include "cuda/jit/build_list.h"
#include "cuda/jit/kernel_sources.h"
#include "cuda/jit/launch.h"
#include "fbfft/c2c_split/geometry.h"
#include "fbfft/common/kernel_text.h"

#include <stdlib.h>

enum {
    NUMBER_BYTES = 8, /* of a complex number */
    LOG_MIN = 8
};

/* ---------------------------------------------------------------------------------------------------- configuration */

/* By the logarithm of the points: threads and rows of a block, and the most registers of a thread. With five blocks of
 * 128 threads, a multiprocessor has enough copies under way. From 8,192 points on, 96 registers do not hold what a
 * thread transforms. */
static const struct {
    int threads, lines, registers;
} shapes[] = {{128, 4, 96}, {128, 4, 96}, {128, 2, 96}, {128, 1, 96}, {128, 1, 96}, {128, 1, 168}, {256, 1, 255}};

conv_fft_status cf_c2c_split_configure(const cf_fft_problem *problem, const cf_gpu_properties *properties,
                                       cf_c2c_split_config *config) {
    cf_c2c_split_config c = {.inverse = problem->transform.inverse};
    while ((int64_t)1 << c.log_n < problem->transform.spectrum.basis[2])
        ++c.log_n;
    const int shape = c.log_n - LOG_MIN;
    c.threads = shapes[shape].threads;
    c.lines = shapes[shape].lines;
    c.shared = c.log_n > LOG_MIN ? (int64_t)16 * c.lines * cf_c2c_split_line(c.log_n) : 0;
    if (c.shared > properties->shared_per_block)
        return cf_fail(
            CONV_FFT_NOT_SUPPORTED,
            "arithmetic is FBFFT_ARITHMETIC_SPLIT (2), and basis[0] is %lld; that takes %lld bytes of shared "
            "memory, and a block of this GPU has %lld: choose FBFFT_ARITHMETIC_FP32 (1)",
            1LL << c.log_n, (long long)c.shared, (long long)properties->shared_per_block);
    const int64_t by_shared =
                      properties->shared_per_multiprocessor / (c.shared + properties->shared_reserved_per_block),
                  by_registers = properties->registers_per_multiprocessor / (c.threads * shapes[shape].registers);
    c.blocks = (int)cf_max(1, cf_min(by_registers, by_shared));
    *config = c;
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_c2c_split_source(const cf_c2c_split_config *c, cf_source *source) {
    char tail[1024];
    cf_text t = {tail, sizeof tail, 0};
    cf_text_add(&t,
                "struct Config {\nstatic constexpr int LOG_N = %d, THREADS = %d, LINES = %d;\n"
                "static constexpr bool INVERSE = %s;\n};\nCF_C2C_SPLIT_KERNEL(%d, %d)\n",
                c->log_n, c->threads, c->lines, c->inverse ? "true" : "false", c->threads, c->blocks);
    *source = (cf_source){.name = "cf_c2c_split",
                          .options = {"--device-as-default-execution-space"},
                          .pdl_wait = true,
                          .dynamic_shared = (size_t)c->shared};
    return cf_fbfft_set_text(source, cf_c2c_split_kernel_text, &t);
}

void cf_c2c_split_describe(const cf_c2c_split_config *c, cf_text *t) {
    cf_text_add(t, "c2c of FP32 by tensor cores, split into two FP16 numbers; lines of %lld", 1LL << c->log_n);
    if (c->log_n > LOG_MIN)
        cf_text_add(t, " = %d*256", 1 << (c->log_n - LOG_MIN));
    cf_text_add(t, "; lines per block %d; threads %d; shared memory %lld bytes", c->lines, c->threads,
                (long long)c->shared);
}

/* ------------------------------------------------------------------------------------------------------------ plans */

static conv_fft_status list_kernel(cf_c2c_split_plan *plan, cf_build_list *list) {
    cf_source source;
    CF_FORWARD(cf_c2c_split_source(&plan->config, &source));
    return cf_build_list_add(list, &source, &plan->kernel, NULL);
}

static conv_fft_status build(cf_gpu *gpu, const cf_fft_problem *problem, cf_c2c_split_plan *plan) {
    cf_build_list *list = NULL;
    CF_FORWARD(cf_c2c_split_configure(problem, &gpu->properties, &plan->config));
    CF_FORWARD(cf_build_list_create(gpu, &list));
    return cf_build_list_end(list, list_kernel(plan, list));
}

conv_fft_status cf_c2c_split_plan_create(cf_gpu *gpu, const cf_fft_problem *problem, cf_c2c_split_plan **result) {
    cf_c2c_split_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return cf_fail_memory(sizeof *plan, "a plan");
    plan->scale = (float)problem->transform.scale;
    const conv_fft_status status = build(gpu, problem, plan);
    if (status != CONV_FFT_SUCCESS)
        cf_c2c_split_plan_destroy(plan);
    else
        *result = plan;
    return status;
}

void cf_c2c_split_plan_destroy(cf_c2c_split_plan *plan) {
    if (!plan)
        return;
    cf_kernel_destroy(plan->kernel);
    free(plan);
}

conv_fft_status cf_c2c_split_plan_run(const cf_c2c_split_plan *plan, const void *in, void *out, int64_t entries,
                                      struct CUstream_st *stream) {
    const cf_c2c_split_config *c = &plan->config;
    const size_t bytes = (size_t)(entries * NUMBER_BYTES) << c->log_n;
    const cf_gpu_argument arguments[] = {{"in", in, bytes}, {"out", out, bytes}};
    CF_FORWARD(cf_gpu_check_arguments(plan->kernel->gpu, arguments, 2, stream));
    const int64_t blocks = cf_ceil_div(entries, c->lines);
    if (blocks > INT32_MAX)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "the batch makes %lld lines; one call takes at most %lld",
                       (long long)entries, (long long)INT32_MAX * c->lines);
    const cf_launch shape = {{(unsigned)blocks, 1, 1}, {(unsigned)c->threads, 1, 1}, (size_t)c->shared, NULL};
    long long lines = entries;
    float scale = plan->scale;
    void *parameters[] = {&in, &out, &lines, &scale};
    return cf_kernel_launch(plan->kernel, &shape, parameters, stream);
}
