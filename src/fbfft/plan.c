/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/plan.h"

#include "device/pointer.h"

#include <stdlib.h>

conv_fft_status cf_fft_plan_create(cf_gpu *gpu, const cf_fft_problem *problem, fbfft_plan **result) {
    fbfft_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return cf_fail_memory(sizeof *plan, "a plan");
    plan->problem = *problem;
    conv_fft_status status = cf_gpu_transform_create(gpu, problem, &plan->gpu);
    if (status == CONV_FFT_SUCCESS)
        status = cf_gpu_transforms_build(gpu, &plan->gpu, 1, NULL, 0);
    if (status != CONV_FFT_SUCCESS) {
        cf_fft_plan_destroy(plan);
        return status;
    }
    cf_text text = {plan->description, sizeof plan->description, 0};
    cf_gpu_transform_describe(plan->gpu, &text);
    *result = plan;
    return CONV_FFT_SUCCESS;
}

void cf_fft_plan_destroy(fbfft_plan *plan) {
    if (!plan)
        return;
    cf_gpu_transform_destroy(plan->gpu);
    free(plan);
}

size_t cf_fft_plan_workspace(const fbfft_plan *plan, int64_t batch) {
    return cf_gpu_transform_scratch(plan->gpu, batch);
}

conv_fft_status cf_fft_execute(const fbfft_plan *plan, const void *in, void *out, int64_t batch, void *workspace,
                               struct CUstream_st *stream) {
    const cf_transform_desc *t = &plan->problem.transform;
    const cf_gpu_transform_call call = {.signal = t->inverse ? out : in,
                                        .spectrum = t->inverse ? in : out,
                                        .step = 1,
                                        .rows = batch,
                                        .unit = plan->problem.layout.frequency_major ? batch * t->spectrum.columns : 1,
                                        .groups = 1,
                                        .scratch = workspace};
    const cf_gpu_argument arguments[] = {
        {"in", in, 1}, {"out", out, 1}, {"workspace", workspace, cf_fft_plan_workspace(plan, batch)}};
    CF_FORWARD(cf_gpu_check_arguments(plan->gpu->kernel[0][0]->gpu, arguments, 3, stream));
    return cf_gpu_transform_run(plan->gpu, &call, stream);
}
