/* SPDX-License-Identifier: Apache-2.0 */
/* Family `fused`: whether it computes a pass, and what a plan needs for it: transforms, kernels, workspace. */
#include "conv/fused/fused.h"

#include "conv/fused/state.h"
#include "conv/gpu/device.h"
#include "conv/gpu/slices.h"
#include "conv/plan/spectra.h"
#include "core/dtype.h"
#include "cuda/jit/build_list.h"
#include "cuda/jit/kernel_sources.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/common/kernel_text.h"

#include <stdlib.h>
#include <string.h>

static bool runs_on(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *s, const char **why) {
    cf_fused_config config;
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    *why = "fused kernels need a GPU";
    if (!gpu)
        return false;
    *why = "its planes do not fit the shared memory of a block, or there are too many for one launch";
    return layer->batch == 0 || cf_fused_configure(layer, pass, s, &gpu->properties, &config) == CONV_FFT_SUCCESS;
}

/* The layout of spectra: [row][column][bin], bins in natural order. */
static void lay_planes(const cf_strategy *s, cf_fft_problem *fft) {
    const cf_spectrum *spectrum = &fft->transform.spectrum;
    fft->layout.axis_stride[2] = 1;
    fft->layout.axis_stride[1] = s->basis[2] / 2 + 1;
    fft->layout.axis_stride[0] = s->basis[1] * fft->layout.axis_stride[1];
    fft->layout.channel_stride = spectrum->bins;
    fft->layout.sample_stride = spectrum->columns * spectrum->bins;
}

/* The transform of x, for one group. */
static void describe_inputs(const cf_layer *layer, const cf_strategy *s, cf_fft_problem *fft) {
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    cf_strategy_spectra(layer, CF_PASS_WEIGHTS, s, spectrum);
    memset(fft, 0, sizeof *fft);
    fft->transform.tensor = layer->x;
    fft->transform.window = cf_fused_window(layer, CF_PASS_WEIGHTS, s, CF_X);
    fft->transform.spectrum = spectrum[CF_X];
    fft->transform.scale = 1.0;
    lay_planes(s, fft);
}

/*
 * The transform of the weights, or its inverse. All groups are one group here, whose rows are the output channels
 * of all.
 */
static conv_fft_status describe_weights(const cf_layer *layer, int pass, const cf_strategy *s, cf_fft_problem *fft) {
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    cf_strategy_spectra(layer, pass, s, spectrum);
    memset(fft, 0, sizeof *fft);
    cf_transform_desc *d = &fft->transform;
    d->inverse = pass == CF_PASS_WEIGHTS;
    fft->pdl_trigger = !d->inverse;
    /* Kernels of dense planes (fbfft/warp) cannot add to old values, and have no PDL trigger, which fused_scatter()
     * needs with one input and one output. `adds` keeps these kernels away. */
    fft->adds = d->inverse || (layer->in_channels == 1 && layer->out_channels == 1);
    d->tensor = d->inverse ? layer->gw : layer->w;
    d->window = cf_fused_window(layer, pass, s, CF_W);
    d->spectrum = spectrum[CF_W];
    d->spectrum.rows *= layer->groups;
    d->spectrum.groups = 1;
    d->scale = d->inverse ? 1.0 / ((double)s->basis[0] * (double)s->basis[1] * (double)s->basis[2]) : 1.0;
    lay_planes(s, fft);
    if (layer->groups > 1 && d->tensor.group_stride != layer->out_channels * d->tensor.sample_stride)
        return cf_fail(CONV_FFT_NOT_SUPPORTED,
                       "the groups of the weights are %lld elements apart; fused kernels take %lld",
                       (long long)d->tensor.group_stride, (long long)(layer->out_channels * d->tensor.sample_stride));
    return CONV_FFT_SUCCESS;
}

static conv_fft_status prepare(conv_fft_plan *plan, int pass) {
    cf_fused_state *state = calloc(1, sizeof *state);
    if (!state)
        return cf_fail_memory(sizeof *state, "a fused pass");
    plan->pass[pass].state = state;
    if (plan->layer.batch == 0)
        return CONV_FFT_SUCCESS;
    const cf_strategy *s = &plan->pass[pass].strategy;
    cf_fft_problem fft;
    state->gpu = cf_gpu_of_layers(plan->device);
    CF_FORWARD(cf_fused_configure(&plan->layer, pass, s, &state->gpu->properties, &state->config));
    CF_FORWARD(describe_weights(&plan->layer, pass, s, &fft));
    CF_FORWARD(cf_gpu_transform_create(state->gpu, &fft, &state->weights));
    const cf_fused_config *c = &state->config;
    state->spectra =
        cf_align((size_t)(c->slices * c->groups * c->in * c->out * c->bins) * 2 * cf_dtype_bytes(s->spectrum));
    state->scratch = cf_align(cf_gpu_transform_scratch(state->weights, fft.transform.spectrum.rows));
    if (!c->resident || pass != CF_PASS_WEIGHTS)
        return CONV_FFT_SUCCESS;
    describe_inputs(&plan->layer, s, &fft);
    CF_FORWARD(cf_gpu_transform_create(state->gpu, &fft, &state->inputs));
    const size_t scratch = cf_align(cf_gpu_transform_scratch(state->inputs, c->rows));
    state->of_x = cf_align((size_t)(c->rows * c->in * c->bins) * 2 * cf_dtype_bytes(s->spectrum));
    state->scratch = scratch > state->scratch ? scratch : state->scratch;
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_fused_source(const cf_fused_config *c, int kernel, cf_source *source) {
    const int transpose = kernel - (cf_fused_variants(c) + (c->slices > 1));
    const conv_fft_dtype dtype = c->tile[0][0].problem.fft.transform.spectrum.dtype;
    if (transpose < 0 && kernel == cf_fused_variants(c))
        return cf_slices_source(c->slices, dtype, source);
    char tail[8192];
    cf_text t = {tail, sizeof tail, 0};
    if (transpose >= 0)
        cf_nhwc_transpose_emit(&c->transpose, transpose, &t);
    else
        cf_fused_emit(c, kernel, &t);
    *source = (cf_source){.name = "cf_fused",
                          .options = {CF_FFT_OPTION, dtype == CONV_FFT_FP64 ? "-DCF_REAL=double" : NULL},
                          .dynamic_shared = (size_t)(transpose >= 0 ? c->transpose.shared : c->shared),
                          .pdl_wait = true,
                          .work = transpose >= 0 ? 0 : 2};
    return cf_fbfft_set_text(source, cf_fused_kernel_text, &t);
}

/* The place of kernel number `kernel` of cf_fused_source() in the state. */
static cf_kernel **slot_of(cf_fused_state *state, int kernel) {
    const cf_fused_config *c = &state->config;
    const int adds = cf_fused_variants(c), transposes = adds + (c->slices > 1);
    return kernel < adds         ? &state->kernel[kernel]
           : kernel < transposes ? &state->add
                                 : &state->transpose[kernel - transposes];
}

static conv_fft_status list_kernels(conv_fft_plan *plan, int pass, cf_build_list *list) {
    cf_fused_state *state = plan->pass[pass].state;
    const cf_fused_config *c = &state->config;
    if (plan->layer.batch == 0)
        return CONV_FFT_SUCCESS;
    cf_gpu_transform *const transforms[] = {state->weights, state->inputs};
    CF_FORWARD(cf_gpu_transforms_list(transforms, state->inputs ? 2 : 1, NULL, 0, !plan->any_alignment, list));
    for (int i = 0; i < cf_fused_kernels(c); ++i) {
        cf_kernel **const slot = slot_of(state, i);
        cf_source source;
        if (!plan->any_alignment && (slot == &state->kernel[1] || slot == &state->transpose[1]))
            continue;
        CF_FORWARD(cf_fused_source(c, i, &source));
        CF_FORWARD(cf_build_list_add(list, &source, slot, NULL));
    }
    return CONV_FFT_SUCCESS;
}

static void release(conv_fft_plan *plan, int pass) {
    cf_fused_state *state = plan->pass[pass].state;
    if (!state)
        return;
    cf_gpu_transform_destroy(state->weights);
    cf_gpu_transform_destroy(state->inputs);
    cf_kernel_destroy(state->kernel[0]);
    cf_kernel_destroy(state->kernel[1]);
    cf_kernel_destroy(state->add);
    cf_kernel_destroy(state->transpose[0]);
    cf_kernel_destroy(state->transpose[1]);
    free(state);
    plan->pass[pass].state = NULL;
}

static cf_workspace workspace(const conv_fft_plan *plan, int set, int64_t rows) {
    cf_workspace ws = {.rows = rows};
    for (int i = 0; i < CF_PASS_COUNT; ++i) {
        const cf_fused_state *state = plan->pass[i].state;
        if (!(set & 1 << i) || !state)
            continue;
        ws.scratch = cf_fused_planes_bytes(state) + state->spectra + state->of_x;
        ws.bytes = ws.scratch + state->scratch + CF_WORKSPACE_SLACK;
    }
    return ws;
}

const cf_family cf_fused_family = {.name = "fused",
                                   .fields = 1u << CF_FIELD_BASIS | 1u << CF_FIELD_TILES | 1u << CF_FIELD_DILATION |
                                             1u << CF_FIELD_SPECTRUM,
                                   .search_space = CF_SEARCH_KERNELS,
                                   .feasible = cf_strategy_suits_kernel,
                                   .runs_on = runs_on,
                                   .prepare = prepare,
                                   .list_kernels = list_kernels,
                                   .release = release,
                                   .workspace = workspace,
                                   .run = cf_fused_run,
                                   .predict = cf_fused_predict,
                                   .saved_seconds = cf_fused_saved_seconds};
