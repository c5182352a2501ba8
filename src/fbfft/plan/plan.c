/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/plan/plan.h"

#include "cuda/driver/pointer_check.h"

#include <stdlib.h>

static conv_fft_status create(cf_gpu *gpu, fbfft_plan *plan) {
    CF_FORWARD(cf_gpu_transform_create(gpu, &plan->problem, &plan->gpu));
    cf_build_list *list = NULL;
    conv_fft_status status = cf_build_list_create(gpu, &list);
    if (status == CONV_FFT_SUCCESS)
        status = cf_build_list_end(list, cf_gpu_transforms_list(&plan->gpu, 1, NULL, 0, false, list));
    if (status != CONV_FFT_SUCCESS) {
        cf_gpu_transform_destroy(plan->gpu);
        return status;
    }
    cf_text text = {plan->description, sizeof plan->description, 0};
    cf_gpu_transform_describe(plan->gpu, &text);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status create_c2c_fp16(cf_gpu *gpu, fbfft_plan *plan) {
    CF_FORWARD(cf_c2c_fp16_plan_create(gpu, &plan->problem, &plan->c2c_fp16));
    cf_text text = {plan->description, sizeof plan->description, 0};
    for (int i = 0; i < plan->c2c_fp16->config.count; ++i) {
        cf_text_add(&text, "%s", i ? "\n" : "");
        cf_c2c_fp16_describe(&plan->c2c_fp16->config.pass[i], &text);
        cf_text_add(&text, "; registers %d", plan->c2c_fp16->kernel[i]->registers);
    }
    return CONV_FFT_SUCCESS;
}

static conv_fft_status create_c2c_split(cf_gpu *gpu, fbfft_plan *plan) {
    CF_FORWARD(cf_c2c_split_plan_create(gpu, &plan->problem, &plan->c2c_split));
    cf_text text = {plan->description, sizeof plan->description, 0};
    for (int i = 0; i < plan->c2c_split->config.count; ++i) {
        cf_text_add(&text, "%s", i ? "\n" : "");
        cf_c2c_split_describe(&plan->c2c_split->config, i, &text);
        cf_text_add(&text, "; registers %d", plan->c2c_split->kernel[i]->registers);
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_fft_plan_create(cf_gpu *gpu, const cf_fft_problem *problem, fbfft_plan **result) {
    fbfft_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return cf_fail_memory(sizeof *plan, "a plan");
    plan->problem = *problem;
    const conv_fft_status status = problem->c2c_fp16    ? create_c2c_fp16(gpu, plan)
                                   : problem->c2c_split ? create_c2c_split(gpu, plan)
                                                        : create(gpu, plan);
    if (status != CONV_FFT_SUCCESS)
        free(plan);
    else
        *result = plan;
    return status;
}

void cf_fft_plan_destroy(fbfft_plan *plan) {
    if (!plan)
        return;
    if (plan->problem.c2c_fp16)
        cf_c2c_fp16_plan_destroy(plan->c2c_fp16);
    else if (plan->problem.c2c_split)
        cf_c2c_split_plan_destroy(plan->c2c_split);
    else
        cf_gpu_transform_destroy(plan->gpu);
    free(plan);
}

/* Each channel of a batch entry is a plane. */
static int64_t planes_of(const fbfft_plan *plan, int64_t batch) {
    return batch * plan->problem.transform.spectrum.channels;
}

size_t cf_fft_plan_workspace(const fbfft_plan *plan, int64_t batch) {
    if (plan->problem.c2c_split)
        return cf_c2c_split_plan_workspace(plan->c2c_split, planes_of(plan, batch));
    return plan->problem.c2c_fp16 ? cf_c2c_fp16_plan_workspace(plan->c2c_fp16, planes_of(plan, batch))
                                  : cf_gpu_transform_scratch(plan->gpu, batch);
}

conv_fft_status cf_fft_execute(const fbfft_plan *plan, const void *in, void *out, int64_t batch, void *workspace,
                               struct CUstream_st *stream) {
    const cf_transform_desc *t = &plan->problem.transform;
    if (plan->problem.c2c_fp16)
        return cf_c2c_fp16_plan_run(plan->c2c_fp16, in, out, planes_of(plan, batch), workspace, stream);
    if (plan->problem.c2c_split)
        return cf_c2c_split_plan_run(plan->c2c_split, in, out, planes_of(plan, batch), workspace, stream);
    const cf_gpu_transform_call call = {.signal = t->inverse ? out : in,
                                        .spectrum = t->inverse ? in : out,
                                        .rows = batch,
                                        .unit = plan->problem.layout.frequency_major ? batch * t->spectrum.columns : 1,
                                        .groups = 1,
                                        .scratch = workspace};
    const cf_gpu_argument arguments[] = {
        {"in", in, 1}, {"out", out, 1}, {"workspace", workspace, cf_fft_plan_workspace(plan, batch)}};
    CF_FORWARD(cf_gpu_check_arguments(plan->gpu->kernel[0][0]->gpu, arguments, 3, stream));
    return cf_gpu_transform_run(plan->gpu, &call, stream);
}
