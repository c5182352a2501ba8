/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/plan/cpu.h"

#include "core/text.h"
#include "cpu/backend.h"

#include <stdlib.h>

/* One line of text: the transform, without leading axes of one point, and the code that runs it. */
static void describe(const cf_device *cpu, const cf_fft_problem *p, cf_text *line) {
    const cf_transform_desc *t = &p->transform;
    const int64_t *n = t->spectrum.basis;
    int first = 0;
    while (first < 2 && n[first] == 1)
        ++first;
    cf_text_add(line, "%s ", p->complex_signal ? "c2c" : t->inverse ? "c2r" : "r2c");
    for (int a = first; a < 3; ++a)
        cf_text_add(line, "%s%lld", a > first ? "x" : "", (long long)n[a]);
    for (int a = first; a < 3; ++a)
        cf_text_add(line, "%s%lld", a > first ? "x" : " from ", (long long)t->window.axis[a].count);
    cf_text_add(line, "%s; %s%s", p->c2c_fp16 ? " of FP16" : "", cf_cpu_description(cpu),
                p->c2c_split ? "; arithmetic split computes in FP32 here" : "");
}

conv_fft_status cf_fft_cpu_create(cf_device *cpu, const cf_fft_problem *problem, fbfft_plan **result) {
    fbfft_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return cf_fail_memory(sizeof *plan, "a plan");
    const cf_transform_desc *t = &problem->transform;
    const conv_fft_status status =
        problem->c2c_fp16
            ? cf_cpu_c2c_fp16_create(cpu, t->spectrum.basis + 1, t->inverse, t->scale, &plan->cpu_c2c_fp16)
            : cf_cpu_planes_create(cpu, t, problem->complex_signal, &plan->cpu);
    if (status != CONV_FFT_SUCCESS) {
        free(plan);
        return status;
    }
    plan->problem = *problem;
    plan->on_cpu = true;
    cf_text line = {plan->description, sizeof plan->description, 0};
    describe(cpu, problem, &line);
    *result = plan;
    return CONV_FFT_SUCCESS;
}

void cf_fft_cpu_destroy(fbfft_plan *plan) {
    if (plan->problem.c2c_fp16)
        cf_cpu_c2c_fp16_destroy(plan->cpu_c2c_fp16);
    else
        cf_cpu_planes_destroy(plan->cpu);
    free(plan);
}

/* Each channel of a batch entry is a plane. */
static int64_t planes_of(const fbfft_plan *plan, int64_t batch) {
    return batch * plan->problem.transform.spectrum.channels;
}

size_t cf_fft_cpu_workspace(const fbfft_plan *plan, int64_t batch) {
    if (batch == 0)
        return 0;
    return plan->problem.c2c_fp16 ? cf_cpu_c2c_fp16_scratch(plan->cpu_c2c_fp16, planes_of(plan, batch))
                                  : cf_cpu_planes_scratch(plan->cpu, batch);
}

/* The strides of a frequency-major spectrum depend on the batch. */
static cf_cpu_strides strides_of(const cf_fft_problem *p, int64_t batch) {
    const cf_fft_layout *l = &p->layout;
    const cf_spectrum *s = &p->transform.spectrum;
    if (!l->frequency_major)
        return (cf_cpu_strides){.row = l->sample_stride,
                                .column = l->channel_stride,
                                .bin = {l->axis_stride[0], l->axis_stride[1], l->axis_stride[2]}};
    const int64_t planes = batch * s->columns, row_bins = s->bins / (s->basis[0] * s->basis[1]);
    return (cf_cpu_strides){
        .row = s->columns, .column = 1, .bin = {s->basis[1] * row_bins * planes, row_bins * planes, planes}};
}

void cf_fft_cpu_execute(const fbfft_plan *plan, const void *in, void *out, int64_t batch, void *workspace) {
    if (plan->problem.c2c_fp16)
        cf_cpu_c2c_fp16_run(plan->cpu_c2c_fp16, in, out, planes_of(plan, batch), workspace);
    else
        cf_cpu_planes_run(plan->cpu, in, out, batch, strides_of(&plan->problem, batch), workspace);
}
