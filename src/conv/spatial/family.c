/* SPDX-License-Identifier: Apache-2.0 */
/* Family `spatial`: what a plan needs of it. */
#include "conv/gpu/device.h"
#include "conv/plan/padded.h"
#include "conv/spatial/spatial.h"
#include "core/arith.h"

#include <stdlib.h>

enum {
    MAX_TAPS = 1 << 16, /* of a kernel */
    MAX_STRIDE = 1 << 10,
    MAX_EXTENT = 1 << 24
};

static bool has_own_convolutions(const cf_device *device) { return device->ops->convolution_create != NULL; }

static bool feasible(const cf_layer *layer, int pass, const cf_strategy *s, const char **why) {
    (void)s;
    cf_fold_desc fold;
    *why = "the gradient of the padded x is too large";
    (void)cf_layer_padded(layer, pass, false, &fold);
    if (cf_layer_folds(layer, pass) &&
        cf_fold_bytes(&fold, layer->groups, layer->batch) > (double)CF_SPECTRUM_MAX_BYTES)
        return false;
    *why = "spatial computes kernels of up to 65536 taps, strides up to 1024, extents up to 2^24";
    int64_t taps = 1;
    for (int a = 0; a < 3; ++a) {
        const cf_axis *const axis = &layer->axis[a];
        const int64_t reach = axis->output * axis->stride + axis->kernel * axis->dilation;
        if (axis->kernel > MAX_TAPS || axis->stride > MAX_STRIDE || axis->dilation > MAX_EXTENT ||
            axis->input > MAX_EXTENT || reach > 2 * MAX_EXTENT || axis->input < 1 || axis->output < 1)
            return false;
        taps *= axis->kernel;
    }
    return taps <= MAX_TAPS;
}

static bool runs_on(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *s, const char **why) {
    (void)s;
    cf_spatial_config config;
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    if (has_own_convolutions(device))
        return true;
    cf_fold_desc fold;
    const cf_layer padded = cf_layer_padded(layer, pass, true, &fold);
    if (!cf_spatial_serves(layer, why) || !cf_spatial_serves(&padded, why))
        return false;
    *why = "its tiles do not fit the shared memory or the registers of a block";
    return layer->batch == 0 ||
           cf_spatial_configure(&padded, pass, &gpu->properties, false, &config) == CONV_FFT_SUCCESS;
}

/* Choose whether both gradients of a plan run as one. */
static conv_fft_status prepare_both(conv_fft_plan *plan, cf_spatial_state *state) {
    const cf_strategy *data = &plan->pass[CF_PASS_DATA].strategy, *weights = &plan->pass[CF_PASS_WEIGHTS].strategy;
    if ((plan->passes & CONV_FFT_BACKWARD) != CONV_FFT_BACKWARD || data->family != &cf_spatial_family ||
        cf_spatial_saved_seconds(&plan->layer, plan->device, data, weights) == 0.0)
        return CONV_FFT_SUCCESS;
    cf_spatial_config *const both = calloc(1, sizeof *both);
    if (!both)
        return cf_fail_memory(sizeof *both, "both gradients of a spatial layer");
    if (cf_spatial_configure_walk(&plan->layer, CF_PASS_DATA, true, &cf_gpu_of_layers(plan->device)->properties,
                                  plan->any_alignment, both)) {
        state->both = both;
        state->both_layer = both->exchanged ? cf_spatial_exchanged(&state->layer) : state->layer;
    } else {
        free(both);
    }
    return CONV_FFT_SUCCESS;
}

static bool shares_gy(const conv_fft_plan *plan) {
    const cf_spatial_state *state = plan->pass[CF_PASS_WEIGHTS].state;
    return state && state->both;
}

static conv_fft_status prepare(conv_fft_plan *plan, int pass) {
    cf_spatial_state *state = calloc(1, sizeof *state);
    if (!state)
        return cf_fail_memory(sizeof *state, "a spatial pass");
    plan->pass[pass].state = state;
    state->layer = cf_layer_padded(&plan->layer, pass, !has_own_convolutions(plan->device), &plan->pass[pass].fold);
    if (cf_layer_folds(&plan->layer, pass))
        plan->pass[pass].gx_store = CF_GX_FOLDED;
    if (plan->layer.batch == 0)
        return CONV_FFT_SUCCESS;
    if (has_own_convolutions(plan->device)) {
        const cf_convolution_desc desc = cf_spatial_describe(&state->layer, pass);
        return plan->device->ops->convolution_create(plan->device, &desc, &state->convolution);
    }
    if (pass == CF_PASS_WEIGHTS)
        CF_FORWARD(prepare_both(plan, state));
    CF_FORWARD(cf_spatial_configure(&state->layer, pass, &cf_gpu_of_layers(plan->device)->properties,
                                    plan->any_alignment, &state->config));
    if (state->config.exchanged)
        state->layer = cf_spatial_exchanged(&state->layer);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status list_kernels(conv_fft_plan *plan, int pass, cf_build_list *list) {
    cf_spatial_state *state = plan->pass[pass].state;
    if (plan->layer.batch == 0 || state->convolution)
        return CONV_FFT_SUCCESS;
    for (int adds = 0; adds <= cf_spatial_adds(&state->config); ++adds) {
        cf_source source;
        CF_FORWARD(cf_spatial_source(&state->config, adds, &source));
        CF_FORWARD(cf_build_list_add(list, &source, adds ? &state->add : &state->kernel, NULL));
    }
    for (int adds = 0; state->both && adds <= cf_spatial_adds(state->both); ++adds) {
        cf_source source;
        CF_FORWARD(cf_spatial_source(state->both, adds, &source));
        CF_FORWARD(cf_build_list_add(list, &source, adds ? &state->both_add : &state->both_kernel, NULL));
    }
    return CONV_FFT_SUCCESS;
}

static void release(conv_fft_plan *plan, int pass) {
    cf_spatial_state *state = plan->pass[pass].state;
    if (!state)
        return;
    cf_kernel_destroy(state->kernel);
    cf_kernel_destroy(state->add);
    cf_kernel_destroy(state->both_kernel);
    cf_kernel_destroy(state->both_add);
    free(state->both);
    if (state->convolution)
        plan->device->ops->convolution_destroy(state->convolution);
    free(state);
    plan->pass[pass].state = NULL;
}

static cf_workspace workspace(const conv_fft_plan *plan, int set, int64_t rows) {
    cf_workspace ws = {.rows = rows};
    if (set == CONV_FFT_BACKWARD && shares_gy(plan)) {
        const cf_spatial_state *const state = plan->pass[CF_PASS_WEIGHTS].state;
        ws.bytes = cf_align(cf_spatial_bytes(state->both));
        ws.bytes += ws.bytes > 0 ? CF_WORKSPACE_SLACK : 0;
        return ws;
    }
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        const cf_spatial_state *const state = set & 1 << pass ? plan->pass[pass].state : NULL;
        if (!state)
            continue;
        if (state->convolution)
            ws.fold = cf_align(plan->device->ops->convolution_scratch(state->convolution));
        else if (cf_spatial_adds(&state->config))
            ws.fold = cf_align(cf_spatial_bytes(&state->config));
        if (plan->pass[pass].gx_store == CF_GX_FOLDED)
            ws.bytes = (size_t)cf_fold_bytes(&plan->pass[pass].fold, plan->layer.groups, plan->layer.batch);
        ws.bytes += ws.fold;
        ws.bytes += ws.bytes > 0 ? CF_WORKSPACE_SLACK : 0;
    }
    return ws;
}

const cf_family cf_spatial_family = {.name = "spatial",
                                     .search_space = CF_SEARCH_SINGLE,
                                     .feasible = feasible,
                                     .runs_on = runs_on,
                                     .prepare = prepare,
                                     .list_kernels = list_kernels,
                                     .release = release,
                                     .workspace = workspace,
                                     .run = cf_spatial_run,
                                     .predict = cf_spatial_predict,
                                     .saved_seconds = cf_spatial_saved_seconds,
                                     .shares_gy = shares_gy};
