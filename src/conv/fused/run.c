/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of fused passes: the transform of the weights, transposes, the fused kernel, and the sum of slices. */
#include "conv/fused/fused.h"

#include "conv/fused/call.h"
#include "conv/fused/state.h"
#include "conv/gpu/slices.h"
#include "conv/plan/spectra.h"
#include "core/dtype.h"
#include "cuda/jit/launch.h"

static const cf_parameter fused_parameters[] = {
    {sizeof(cf_fused_call), CF_ADDRESS(cf_fused_call, x.memory) | CF_ADDRESS(cf_fused_call, y.memory) |
                                CF_ADDRESS(cf_fused_call, bias) | CF_ADDRESS(cf_fused_call, weights)},
    {0, 0}};

static cf_fused_side side_of(const cf_tensor *t, const void *memory) {
    return (cf_fused_side){memory, t->sample_stride, t->group_stride};
}

/* Transform the weights to their spectra; in backward weights, the spectra of gw to gw. */
static conv_fft_status transform_weights(const cf_fused_state *state, const void *tensor, char *spectra,
                                         bool accumulate, struct CUstream_st *stream) {
    const cf_gpu_transform_call call = {.signal = tensor,
                                        .spectrum = spectra,
                                        .rows = state->weights->problem.transform.spectrum.rows,
                                        .groups = 1,
                                        .accumulate = accumulate,
                                        .scratch = spectra + state->spectra + state->of_x};
    return cf_gpu_transform_run(state->weights, &call, stream);
}

static size_t bytes_at_once(const cf_shared_fft_config *tile) {
    return (size_t)tile->vector_width * cf_dtype_bytes(tile->problem.fft.transform.tensor.dtype);
}

/* Launch the fused kernel: the variant for aligned pointers if they are aligned. */
static conv_fft_status launch(const cf_fused_state *state, cf_fused_call *call, struct CUstream_st *stream) {
    const cf_fused_config *c = &state->config;
    const size_t unit[2] = {bytes_at_once(&c->tile[0][0]), bytes_at_once(&c->tile[1][0])};
    const bool aligned = (uintptr_t)call->x.memory % (c->whole_rows ? 16 : unit[0]) == 0 &&
                         (uintptr_t)call->y.memory % (c->whole_rows ? 16 : unit[1]) == 0;
    const cf_launch shape = {{(unsigned)c->blocks, (unsigned)c->slices, (unsigned)(c->out / c->chunk)},
                             {(unsigned)c->tile[0][0].threads, 1, 1},
                             (size_t)c->shared,
                             fused_parameters};
    void *parameters[] = {call};
    return cf_kernel_launch(state->kernel[cf_fused_variants(c) > 1 && !aligned], &shape, parameters, stream);
}

/* Whether a pass reads gy transposed. */
static bool transposes_gy(const cf_fused_state *state) {
    const cf_nhwc_transpose *t = &state->config.transpose;
    return t->blocks > 0 && t->reads && !t->x;
}

/* Whether backward data of the same call has left the transposed gy in the workspace. */
static bool has_planes(const conv_fft_plan *plan, const cf_call *c) {
    const cf_pass_plan *data = &plan->pass[CF_PASS_DATA];
    return c->after_data && data->strategy.family == &cf_fused_family && transposes_gy(data->state);
}

/* Transpose the tensor of a side, unless that was done before. The kernel then reads the planes. */
static conv_fft_status make_planes(const cf_fused_state *state, cf_fused_side *side, char *planes, bool made,
                                   struct CUstream_st *stream) {
    const cf_nhwc_transpose *t = &state->config.transpose;
    if (!made)
        CF_FORWARD(cf_nhwc_transpose_run(t, state->transpose, side->memory, planes, NULL, false, stream));
    *side = side_of(&t->planes, planes);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status run_weights(const conv_fft_plan *plan, const cf_fused_state *state, const cf_call *c,
                                   char *workspace) {
    char *spectra = workspace + cf_fused_planes_bytes(state);
    const cf_fused_config *config = &state->config;
    cf_fused_call call = {.x = side_of(&plan->layer.x, c->x),
                          .y = side_of(&plan->layer.y, c->gy),
                          .weights = (void *)spectra,
                          .rows = config->rows,
                          .groups = config->groups,
                          .slices = config->slices};
    if (state->inputs) {
        const cf_gpu_transform_call inputs = {.signal = c->x,
                                              .spectrum = spectra + state->spectra,
                                              .rows = config->rows,
                                              .groups = 1,
                                              .scratch = spectra + state->spectra + state->of_x};
        CF_FORWARD(cf_gpu_transform_run(state->inputs, &inputs, c->stream));
        call.x.memory = inputs.spectrum;
    }
    if (config->transpose.blocks > 0)
        CF_FORWARD(make_planes(state, &call.y, workspace, has_planes(plan, c), c->stream));
    CF_FORWARD(launch(state, &call, c->stream));
    if (state->add) {
        const int64_t count = config->groups * config->in * config->out * config->bins;
        CF_FORWARD(cf_slices_add(state->add, &(cf_slice_sums){spectra, spectra, count, config->slices, false},
                                 config->slices, plan->pass[CF_PASS_WEIGHTS].strategy.spectrum, c->stream));
    }
    cf_stage_done(plan, c, CF_STAGE_CONVOLVE_GW);
    CF_FORWARD(transform_weights(state, c->gw, spectra, c->flags & CONV_FFT_ACCUMULATE_GW, c->stream));
    cf_stage_done(plan, c, CF_STAGE_STORE_GW);
    return CONV_FFT_SUCCESS;
}

/*
 * Launch the fused kernel, and a transpose before it (of what it reads) or after it (of what it writes). Bias and
 * accumulation are applied where the tensor is written, by the kernel or by the transpose.
 */
static conv_fft_status launch_transposed(const cf_fused_state *state, cf_fused_call *call, char *transposed,
                                         struct CUstream_st *stream) {
    const cf_nhwc_transpose *t = &state->config.transpose;
    if (t->blocks == 0)
        return launch(state, call, stream);
    if (t->reads) {
        CF_FORWARD(make_planes(state, &call->x, transposed, false, stream));
        return launch(state, call, stream);
    }
    cf_fused_call planes = *call;
    planes.y = side_of(&t->planes, transposed);
    planes.bias = NULL;
    planes.accumulate = 0;
    CF_FORWARD(launch(state, &planes, stream));
    return cf_nhwc_transpose_run(t, state->transpose, call->y.memory, transposed, call->bias, call->accumulate, stream);
}

conv_fft_status cf_fused_run(const conv_fft_plan *plan, int set, const cf_call *c) {
    const int pass = set == CONV_FFT_FORWARD         ? CF_PASS_FORWARD
                     : set == CONV_FFT_BACKWARD_DATA ? CF_PASS_DATA
                                                     : CF_PASS_WEIGHTS;
    const cf_fused_state *state = plan->pass[pass].state;
    const cf_layer *layer = &plan->layer;
    const bool data = set & CONV_FFT_BACKWARD_DATA, accumulate = data && (c->flags & CONV_FFT_ACCUMULATE_GX);
    if (pass == CF_PASS_WEIGHTS)
        CF_FORWARD(cf_zero_weights(plan, c));
    if (data)
        CF_FORWARD(cf_zero_gx(plan, c));
    if (layer->batch == 0)
        return CONV_FFT_SUCCESS;
    char *const workspace = (char *)cf_align((size_t)c->workspace), *const spectra =
                                                                        workspace + cf_fused_planes_bytes(state);
    if (pass == CF_PASS_WEIGHTS)
        return run_weights(plan, state, c, workspace);
    CF_FORWARD(transform_weights(state, c->w, spectra, false, c->stream));
    cf_stage_done(plan, c, CF_STAGE_LOAD_W);
    const int64_t *basis = plan->pass[pass].strategy.basis;
    cf_fused_call call = {.x = data ? side_of(&layer->y, c->gy) : side_of(&layer->x, c->x),
                          .y = data ? side_of(&layer->x, c->gx) : side_of(&layer->y, c->y),
                          .bias = c->bias,
                          .weights = (void *)spectra,
                          .rows = state->config.rows,
                          .groups = state->config.groups,
                          .slices = 1,
                          .scale = 1.0 / ((double)basis[0] * (double)basis[1] * (double)basis[2]),
                          .accumulate = accumulate};
    CF_FORWARD(launch_transposed(state, &call, workspace, c->stream));
    cf_stage_done(plan, c, data ? CF_STAGE_CONVOLVE_GX : CF_STAGE_CONVOLVE_Y);
    return CONV_FFT_SUCCESS;
}
