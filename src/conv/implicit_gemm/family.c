/* SPDX-License-Identifier: Apache-2.0 */
/* Family `implicit_gemm`: what a plan needs of it. */
#include "conv/gpu/device.h"
#include "conv/implicit_gemm/implicit_gemm.h"

#include <stdlib.h>

static bool feasible(const cf_layer *layer, int pass, const cf_strategy *s, const char **why) {
    (void)s;
    return cf_igemm_serves(layer, pass, why);
}

static bool runs_on(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *s, const char **why) {
    (void)s;
    cf_igemm_config config;
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    *why = "implicit_gemm needs a GPU of compute capability 9.0";
    if (!gpu || gpu->properties.compute_major != 9)
        return false;
    *why = "its weights and tiles do not fit the shared memory of a block";
    return layer->batch == 0 || /* whatever alignment the plan will be made for */
           (cf_igemm_configure(layer, pass, &gpu->properties, false, &config) == CONV_FFT_SUCCESS &&
            cf_igemm_configure(layer, pass, &gpu->properties, true, &config) == CONV_FFT_SUCCESS);
}

static conv_fft_status prepare(conv_fft_plan *plan, int pass) {
    cf_igemm_state *state = calloc(1, sizeof *state);
    if (!state)
        return cf_fail_memory(sizeof *state, "a pass of family implicit_gemm");
    plan->pass[pass].state = state;
    return plan->layer.batch == 0 ? CONV_FFT_SUCCESS
                                  : cf_igemm_configure(&plan->layer, pass, &cf_gpu_of_layers(plan->device)->properties,
                                                       plan->any_alignment, &state->config);
}

static conv_fft_status list_kernels(conv_fft_plan *plan, int pass, cf_build_list *list) {
    cf_igemm_state *state = plan->pass[pass].state;
    if (plan->layer.batch == 0)
        return CONV_FFT_SUCCESS;
    for (int adds = 0; adds <= (pass == CF_PASS_WEIGHTS); ++adds) {
        cf_source source;
        CF_FORWARD(cf_igemm_source(&state->config, adds, &source));
        CF_FORWARD(cf_build_list_add(list, &source, adds ? &state->add : &state->kernel, NULL));
    }
    return CONV_FFT_SUCCESS;
}

static void release(conv_fft_plan *plan, int pass) {
    cf_igemm_state *state = plan->pass[pass].state;
    if (!state)
        return;
    cf_kernel_destroy(state->kernel);
    cf_kernel_destroy(state->add);
    free(state);
    plan->pass[pass].state = NULL;
}

static cf_workspace workspace(const conv_fft_plan *plan, int set, int64_t rows) {
    cf_workspace ws = {.rows = rows};
    const cf_igemm_state *state = plan->pass[CF_PASS_WEIGHTS].state;
    if ((set & CONV_FFT_BACKWARD_WEIGHTS) && state && cf_igemm_bytes(&state->config) > 0)
        ws.bytes = cf_igemm_bytes(&state->config) + CF_WORKSPACE_SLACK;
    return ws;
}

const cf_family cf_implicit_gemm_family = {.name = "implicit_gemm",
                                           .search_space = CF_SEARCH_SINGLE,
                                           .feasible = feasible,
                                           .runs_on = runs_on,
                                           .prepare = prepare,
                                           .list_kernels = list_kernels,
                                           .release = release,
                                           .workspace = workspace,
                                           .run = cf_igemm_run,
                                           .predict = cf_igemm_predict};
