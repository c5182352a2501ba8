/* SPDX-License-Identifier: Apache-2.0 */
/* Family `long1d`: what a plan and a call need of it. */
#include "conv/long1d/long1d.h"

#include "conv/gpu/device.h"
#include "conv/plan/spectra.h"
#include "core/arith.h"

#include <stdlib.h>

/* plan->pass[].state */
typedef struct long1d_state {
    cf_long1d *pass; /* NULL: an empty batch */
    cf_long1d *both; /* backward weights only: both gradients in one call; or NULL */
} long1d_state;

static bool feasible(const cf_layer *layer, int pass, const cf_strategy *s, const char **why) {
    *why = "long1d computes single channels of one axis in FP32 and 16 bits, without stride and dilation, padded by "
           "zeros, in one tile whose basis is a power of two from 2048 to 2097152 and holds signal and padding";
    return cf_long1d_serves(layer, pass, s) && cf_strategy_suits_kernel(layer, pass, s, why);
}

static bool runs_on(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *s, const char **why) {
    cf_long1d_config config;
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    *why = "kernels for long signals need a GPU";
    if (!gpu)
        return false;
    *why = "its lines do not fit the shared memory of a block, or there are too many for one launch";
    return layer->batch == 0 || cf_long1d_configure(layer, pass, s, &gpu->properties, &config) == CONV_FFT_SUCCESS;
}

static bool shares_gy(const conv_fft_plan *plan) {
    const long1d_state *state = plan->pass[CF_PASS_WEIGHTS].state;
    return state && state->both;
}

/* Whether both gradients of the plan run as one. */
static bool serves_both(const conv_fft_plan *plan) {
    const cf_strategy *data = &plan->pass[CF_PASS_DATA].strategy, *weights = &plan->pass[CF_PASS_WEIGHTS].strategy;
    return (plan->passes & CONV_FFT_BACKWARD) == CONV_FFT_BACKWARD && data->family == &cf_long1d_family &&
           weights->family == &cf_long1d_family && cf_long1d_serves_both(&plan->layer, data, weights);
}

static conv_fft_status prepare(conv_fft_plan *plan, int pass) {
    long1d_state *state = calloc(1, sizeof *state);
    if (!state)
        return cf_fail_memory(sizeof *state, "a pass over long signals");
    plan->pass[pass].state = state;
    if (plan->layer.batch == 0)
        return CONV_FFT_SUCCESS;
    const cf_strategy *s = &plan->pass[pass].strategy;
    cf_gpu *gpu = cf_gpu_of_layers(plan->device);
    if (pass == CF_PASS_WEIGHTS && serves_both(plan))
        CF_FORWARD(cf_long1d_create(gpu, &plan->layer, CF_LONG1D_BOTH, s, &state->both));
    return cf_long1d_create(gpu, &plan->layer, pass, s, &state->pass);
}

static conv_fft_status list_kernels(conv_fft_plan *plan, int pass, cf_build_list *list) {
    const long1d_state *state = plan->pass[pass].state;
    if (plan->layer.batch == 0)
        return CONV_FFT_SUCCESS;
    if (state->both)
        CF_FORWARD(cf_long1d_list(state->both, list));
    return cf_long1d_list(state->pass, list);
}

static void release(conv_fft_plan *plan, int pass) {
    long1d_state *state = plan->pass[pass].state;
    if (!state)
        return;
    cf_long1d_destroy(state->pass);
    cf_long1d_destroy(state->both);
    free(state);
    plan->pass[pass].state = NULL;
}

/* The kernels of a set: those of both gradients, or of its only pass. */
static const cf_long1d *kernels_of(const conv_fft_plan *plan, int set) {
    const int pass = set == CONV_FFT_FORWARD         ? CF_PASS_FORWARD
                     : set == CONV_FFT_BACKWARD_DATA ? CF_PASS_DATA
                                                     : CF_PASS_WEIGHTS;
    const long1d_state *state = plan->pass[pass].state;
    return !state ? NULL : set == CONV_FFT_BACKWARD ? state->both : state->pass;
}

static cf_workspace workspace(const conv_fft_plan *plan, int set, int64_t rows) {
    const cf_long1d *kernels = kernels_of(plan, set);
    return (cf_workspace){.rows = rows, .bytes = (kernels ? cf_long1d_bytes(kernels) : 0) + CF_WORKSPACE_SLACK};
}

static conv_fft_status run(const conv_fft_plan *plan, int set, const cf_call *call) {
    const int pass = set == CONV_FFT_FORWARD            ? CF_PASS_FORWARD
                     : set == CONV_FFT_BACKWARD_DATA    ? CF_PASS_DATA
                     : set == CONV_FFT_BACKWARD_WEIGHTS ? CF_PASS_WEIGHTS
                                                        : CF_LONG1D_BOTH;
    if (set & CONV_FFT_BACKWARD_WEIGHTS)
        CF_FORWARD(cf_zero_weights(plan, call));
    if (set & CONV_FFT_BACKWARD_DATA)
        CF_FORWARD(cf_zero_gx(plan, call));
    if (plan->layer.batch == 0)
        return CONV_FFT_SUCCESS;
    char *const memory = (char *)cf_align((size_t)call->workspace);
    return cf_long1d_run(plan, pass, kernels_of(plan, set), call, memory);
}

const cf_family cf_long1d_family = {.name = "long1d",
                                    .replaces = "fused",
                                    .fields = 1u << CF_FIELD_BASIS | 1u << CF_FIELD_TILES | 1u << CF_FIELD_DILATION |
                                              1u << CF_FIELD_SPECTRUM,
                                    .search_space = CF_SEARCH_KERNELS,
                                    .feasible = feasible,
                                    .runs_on = runs_on,
                                    .prepare = prepare,
                                    .list_kernels = list_kernels,
                                    .release = release,
                                    .workspace = workspace,
                                    .run = run,
                                    .predict = cf_long1d_predict,
                                    .shares_gy = shares_gy};
