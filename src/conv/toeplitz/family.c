/* SPDX-License-Identifier: Apache-2.0 */
/* Family `toeplitz`: what a plan needs of it. */
#include "conv/gpu/device.h"
#include "conv/plan/padded.h"
#include "conv/toeplitz/toeplitz.h"
#include "core/arith.h"

#include <stdlib.h>

static bool feasible(const cf_layer *layer, int pass, const cf_strategy *s, const char **why) {
    (void)s;
    return cf_toeplitz_serves(layer, pass, why);
}

static bool runs_on(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *s, const char **why) {
    (void)s;
    cf_toeplitz_config config;
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    *why = "toeplitz needs a GPU";
    if (!gpu)
        return false;
    *why = "its tiles do not fit the shared memory or the registers of a block";
    return layer->batch == 0 || /* whatever alignment the plan will be made for */
           (cf_toeplitz_configure(layer, pass, &gpu->properties, false, &config) == CONV_FFT_SUCCESS &&
            cf_toeplitz_configure(layer, pass, &gpu->properties, true, &config) == CONV_FFT_SUCCESS);
}

/* Choose whether both gradients of a plan run as one. */
static conv_fft_status prepare_both(conv_fft_plan *plan, cf_toeplitz_state *state) {
    const cf_strategy *data = &plan->pass[CF_PASS_DATA].strategy, *weights = &plan->pass[CF_PASS_WEIGHTS].strategy;
    if ((plan->passes & CONV_FFT_BACKWARD) != CONV_FFT_BACKWARD || data->family != &cf_toeplitz_family ||
        cf_toeplitz_saved_seconds(&plan->layer, plan->device, data, weights) == 0.0)
        return CONV_FFT_SUCCESS;
    cf_toeplitz_both *const both = calloc(1, sizeof *both);
    if (!both)
        return cf_fail_memory(sizeof *both, "both gradients of a Toeplitz layer");
    if (cf_toeplitz_configure_both(&plan->layer, &cf_gpu_of_layers(plan->device)->properties, plan->any_alignment,
                                   both))
        state->both = both;
    else
        free(both);
    return CONV_FFT_SUCCESS;
}

static bool shares_gy(const conv_fft_plan *plan) {
    const cf_toeplitz_state *state = plan->pass[CF_PASS_WEIGHTS].state;
    return state && state->both;
}

/* A kernel for both gradients sums gy, too. */
static bool sums_bias(const conv_fft_plan *plan, int set) { return set == CONV_FFT_BACKWARD && shares_gy(plan); }

static conv_fft_status prepare(conv_fft_plan *plan, int pass) {
    cf_toeplitz_state *state = calloc(1, sizeof *state);
    if (!state)
        return cf_fail_memory(sizeof *state, "a Toeplitz pass");
    plan->pass[pass].state = state;
    state->layer = cf_layer_padded_same_type(&plan->layer, pass, &plan->pass[pass].fold);
    if (cf_layer_folds(&plan->layer, pass) && !cf_toeplitz_folds_planes(&plan->layer, pass))
        plan->pass[pass].gx_store = CF_GX_FOLDED;
    if (plan->layer.batch == 0)
        return CONV_FFT_SUCCESS;
    if (pass == CF_PASS_WEIGHTS)
        CF_FORWARD(prepare_both(plan, state));
    return cf_toeplitz_configure(&plan->layer, pass, &cf_gpu_of_layers(plan->device)->properties, plan->any_alignment,
                                 &state->config);
}

static conv_fft_status list_kernels(conv_fft_plan *plan, int pass, cf_build_list *list) {
    cf_toeplitz_state *state = plan->pass[pass].state;
    if (plan->layer.batch == 0)
        return CONV_FFT_SUCCESS;
    for (int adds = 0; adds <= cf_toeplitz_adds(&state->config); ++adds) {
        cf_source source;
        CF_FORWARD(cf_toeplitz_source(&state->config, adds, &source));
        CF_FORWARD(cf_build_list_add(list, &source, adds ? &state->add : &state->kernel, NULL));
    }
    if (state->both) {
        cf_source source;
        CF_FORWARD(cf_toeplitz_both_source(state->both, &source));
        CF_FORWARD(cf_build_list_add(list, &source, &state->both_kernel, NULL));
    }
    if (state->both && cf_toeplitz_adds(&state->both->weights)) {
        cf_source source;
        CF_FORWARD(cf_toeplitz_source(&state->both->weights, true, &source));
        CF_FORWARD(cf_build_list_add(list, &source, &state->both_add, NULL));
    }
    return CONV_FFT_SUCCESS;
}

static void release(conv_fft_plan *plan, int pass) {
    cf_toeplitz_state *state = plan->pass[pass].state;
    if (!state)
        return;
    cf_kernel_destroy(state->kernel);
    cf_kernel_destroy(state->add);
    cf_kernel_destroy(state->both_kernel);
    cf_kernel_destroy(state->both_add);
    free(state->both);
    free(state);
    plan->pass[pass].state = NULL;
}

static cf_workspace workspace(const conv_fft_plan *plan, int set, int64_t rows) {
    cf_workspace ws = {.rows = rows};
    const cf_toeplitz_state *state = plan->pass[CF_PASS_WEIGHTS].state;
    const cf_pass_plan *const data = &plan->pass[CF_PASS_DATA];
    size_t bytes = !(set & CONV_FFT_BACKWARD_WEIGHTS) || !state ? 0
                   : set == CONV_FFT_BACKWARD && state->both    ? cf_toeplitz_bytes(&state->both->weights)
                                                                : cf_toeplitz_bytes(&state->config);
    if ((set & CONV_FFT_BACKWARD_DATA) && data->gx_store == CF_GX_FOLDED)
        bytes =
            (size_t)cf_max((int64_t)bytes, (int64_t)cf_fold_bytes(&data->fold, plan->layer.groups, plan->layer.batch));
    if (bytes > 0)
        ws.bytes = bytes + CF_WORKSPACE_SLACK;
    return ws;
}

const cf_family cf_toeplitz_family = {.name = "toeplitz",
                                      .search_space = CF_SEARCH_SINGLE,
                                      .feasible = feasible,
                                      .runs_on = runs_on,
                                      .prepare = prepare,
                                      .list_kernels = list_kernels,
                                      .release = release,
                                      .workspace = workspace,
                                      .run = cf_toeplitz_run,
                                      .predict = cf_toeplitz_predict,
                                      .saved_seconds = cf_toeplitz_saved_seconds,
                                      .shares_gy = shares_gy,
                                      .sums_bias = sums_bias};
