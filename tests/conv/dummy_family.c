/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/dummy_family.h"

#include <string.h>

static bool feasible(const cf_layer *layer, int pass, const cf_strategy *strategy, const char **why) {
    const conv_fft_problem *p = &layer->problem;
    (void)strategy;
    *why = "it scales one channel, forward";
    for (int a = 0; a < p->rank; ++a)
        if (p->kernel[a] != 1 || p->stride[a] != 1 || p->pad_before[a] != 0 || p->pad_after[a] != 0)
            return false;
    return pass == CF_PASS_FORWARD && layer->x.dtype == CONV_FFT_FP32 && layer->groups == 1 &&
           layer->in_channels == 1 && layer->out_channels == 1;
}

static bool runs_on(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *strategy,
                    const char **why) {
    (void)layer, (void)pass, (void)strategy;
    *why = "it needs a CPU";
    return !device->is_gpu;
}

static conv_fft_status prepare(conv_fft_plan *plan, int pass) {
    (void)plan, (void)pass;
    return CONV_FFT_SUCCESS;
}

static cf_workspace workspace(const conv_fft_plan *plan, int set, int64_t rows) {
    (void)plan, (void)set;
    return (cf_workspace){.rows = rows};
}

static conv_fft_status run(const conv_fft_plan *plan, int set, const cf_call *call) {
    int64_t x[5], y[5], w[5], count = 1;
    (void)set;
    cf_layer_extents(&plan->layer, x, y, w);
    for (int a = 0; a < 5; ++a)
        count *= y[a];
    for (int64_t i = 0; i < count; ++i)
        ((float *)call->y)[i] = ((const float *)call->x)[i] * *(const float *)call->w;
    cf_stage_done(plan, call, CF_STAGE_CONVOLVE_Y);
    return CONV_FFT_SUCCESS;
}

static void predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                    cf_stage_cost cost[CF_STAGE_COUNT]) {
    int64_t x[5], y[5], w[5];
    (void)strategy;
    cf_layer_extents(layer, x, y, w);
    cost[cf_cost_whole_passes[pass]] = cf_cost_of(device, 8 * cf_cost_elements(x), cf_cost_elements(x), device->flops);
}

static conv_fft_status candidates(const cf_layer *layer, cf_device *device, int pass,
                                  bool (*visit)(const cf_strategy *strategy, void *user), void *user) {
    cf_strategy s;
    const char *why;
    (void)device;
    memset(&s, 0, sizeof s);
    s.family = &dummy_family;
    for (int a = 0; a < 3; ++a)
        s.basis[a] = s.tiles[a] = 1;
    if (feasible(layer, pass, &s, &why))
        visit(&s, user);
    return CONV_FFT_SUCCESS;
}

const cf_family dummy_family = {.name = "scale",
                                .feasible = feasible,
                                .runs_on = runs_on,
                                .prepare = prepare,
                                .workspace = workspace,
                                .run = run,
                                .predict = predict,
                                .candidates = candidates};
