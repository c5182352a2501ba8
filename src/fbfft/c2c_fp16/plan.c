/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/c2c_fp16/plan.h"

#include "core/arith.h"
#include "cuda/driver/pointer_check.h"
#include "cuda/jit/build_list.h"
#include "cuda/jit/launch.h"

#include <stdlib.h>

enum {
    NUMBER_BYTES = 4 /* of a complex number */
};

static conv_fft_status list_kernels(cf_c2c_fp16_plan *plan, cf_build_list *list) {
    for (int i = 0; i < plan->config.count; ++i) {
        cf_source source;
        CF_FORWARD(cf_c2c_fp16_source(&plan->config, i, &source));
        CF_FORWARD(cf_build_list_add(list, &source, &plan->kernel[i], NULL));
    }
    return CONV_FFT_SUCCESS;
}

static conv_fft_status build(cf_gpu *gpu, cf_c2c_fp16_plan *plan) {
    cf_build_list *list = NULL;
    CF_FORWARD(cf_build_list_create(gpu, &list));
    return cf_build_list_end(list, list_kernels(plan, list));
}

conv_fft_status cf_c2c_fp16_plan_create(cf_gpu *gpu, const cf_fft_problem *problem, cf_c2c_fp16_plan **result) {
    cf_c2c_fp16_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return cf_fail_memory(sizeof *plan, "a plan");
    cf_c2c_fp16_configure(problem, &gpu->properties, &plan->config);
    const conv_fft_status status = build(gpu, plan);
    if (status != CONV_FFT_SUCCESS)
        cf_c2c_fp16_plan_destroy(plan);
    else
        *result = plan;
    return status;
}

void cf_c2c_fp16_plan_destroy(cf_c2c_fp16_plan *plan) {
    if (!plan)
        return;
    for (int i = 0; i < plan->config.count; ++i)
        cf_kernel_destroy(plan->kernel[i]);
    free(plan);
}

size_t cf_c2c_fp16_plan_workspace(const cf_c2c_fp16_plan *plan, int64_t entries) {
    const cf_c2c_fp16_config *c = &plan->config;
    if (!c->uses_workspace || entries == 0)
        return 0;
    return (size_t)(cf_min(c->chunk, entries) * c->points * NUMBER_BYTES) + CF_C2C_FP16_ALIGNMENT - 1;
}

static conv_fft_status launch(const cf_c2c_fp16_plan *plan, int i, const void *in, void *out, int64_t entries,
                              struct CUstream_st *stream) {
    const cf_c2c_fp16_pass *p = &plan->config.pass[i];
    long long lines = entries * p->lines;
    const int64_t blocks = cf_ceil_div(lines, p->block_lines);
    if (blocks > INT32_MAX)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "the batch makes %lld lines; one call takes at most %lld", lines,
                       (long long)INT32_MAX * p->block_lines);
    const cf_launch shape = {
        {(unsigned)cf_min(blocks, p->max_blocks), 1, 1}, {(unsigned)p->threads, 1, 1}, (size_t)p->shared, NULL};
    void *parameters[] = {&in, &out, &lines};
    return cf_kernel_launch(plan->kernel[i], &shape, parameters, stream);
}

static conv_fft_status run_chunk(const cf_c2c_fp16_plan *plan, const char *in, char *out, int64_t entries,
                                 char *intermediate, struct CUstream_st *stream) {
    const cf_c2c_fp16_config *c = &plan->config;
    const char *from = in;
    for (int i = 0; i < c->count; ++i) {
        char *const to = c->uses_workspace && i + 1 < c->count ? intermediate : out;
        CF_FORWARD(launch(plan, i, from, to, entries, stream));
        from = to;
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_c2c_fp16_plan_run(const cf_c2c_fp16_plan *plan, const void *in, void *out, int64_t entries,
                                     void *workspace, struct CUstream_st *stream) {
    const cf_c2c_fp16_config *c = &plan->config;
    const size_t bytes = (size_t)(entries * c->points * NUMBER_BYTES);
    const cf_gpu_argument arguments[] = {
        {"in", in, bytes}, {"out", out, bytes}, {"workspace", workspace, cf_c2c_fp16_plan_workspace(plan, entries)}};
    CF_FORWARD(cf_gpu_check_arguments(plan->kernel[0]->gpu, arguments, 3, stream));
    char *const intermediate =
        (char *)(((uintptr_t)workspace + CF_C2C_FP16_ALIGNMENT - 1) / CF_C2C_FP16_ALIGNMENT * CF_C2C_FP16_ALIGNMENT);
    for (int64_t done = 0; done < entries; done += cf_min(c->chunk, entries - done)) {
        const int64_t offset = done * c->points * NUMBER_BYTES;
        CF_FORWARD(run_chunk(plan, (const char *)in + offset, (char *)out + offset, cf_min(c->chunk, entries - done),
                             intermediate, stream));
    }
    return CONV_FFT_SUCCESS;
}
