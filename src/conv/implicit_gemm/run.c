/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of family implicit_gemm: one launch, and one more that adds the sums of a gradient of the weights. */
#include "conv/gpu/slice_adder.h"
#include "conv/implicit_gemm/call.h"
#include "conv/implicit_gemm/implicit_gemm.h"
#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/launch.h"

static const cf_parameter parameters_of_call[] = {
    {sizeof(cf_igemm_call), CF_ADDRESS(cf_igemm_call, x.memory) | CF_ADDRESS(cf_igemm_call, y.memory) |
                                CF_ADDRESS(cf_igemm_call, w.memory) | CF_ADDRESS(cf_igemm_call, bias) |
                                CF_ADDRESS(cf_igemm_call, sums)},
    {0, 0}};

static cf_igemm_side side_of(const cf_tensor *t, const void *memory) {
    return (cf_igemm_side){memory,           t->sample_stride, t->group_stride, t->channel_stride, t->axis_stride[1],
                           t->axis_stride[2]};
}

/* The taps from the first one that meets the signal. */
static cf_igemm_taps taps_of(const cf_layer *layer, const cf_tensor *t, const void *memory) {
    int64_t first = 0;
    for (int a = 0; a < 3; ++a)
        first += layer->axis[a].first_tap * t->axis_stride[a];
    return (cf_igemm_taps){(const char *)memory + first * (int64_t)cf_dtype_bytes(t->dtype),
                           t->group_stride,
                           t->sample_stride,
                           t->channel_stride,
                           t->axis_stride[1],
                           t->axis_stride[2]};
}

static conv_fft_status add_sums(const cf_igemm_state *state, void **parameters, struct CUstream_st *stream) {
    const cf_igemm_config *c = &state->config;
    const int64_t count = (int64_t)(cf_igemm_bytes(c) / sizeof(float)) / c->grid[0];
    const cf_slice_adder adder = cf_slice_adder_of(c->grid[0]);
    const cf_launch shape = {{(unsigned)cf_ceil_div(count, adder.sums), 1, 1},
                             {(unsigned)(adder.sums * adder.shares), 1, 1},
                             (size_t)cf_slice_adder_shared(adder, (int)sizeof(float)),
                             parameters_of_call};
    return cf_kernel_launch(state->add, &shape, parameters, stream);
}

conv_fft_status cf_igemm_run(const conv_fft_plan *plan, int set, const cf_call *c) {
    const bool weights = set == CONV_FFT_BACKWARD_WEIGHTS;
    const cf_igemm_state *state = plan->pass[weights ? CF_PASS_WEIGHTS : CF_PASS_FORWARD].state;
    const cf_layer *layer = &plan->layer;
    const cf_igemm_config *config = &state->config;
    if (weights)
        CF_FORWARD(cf_zero_weights(plan, c));
    if (layer->batch == 0)
        return CONV_FFT_SUCCESS;
    cf_igemm_call call = {.x = side_of(&layer->x, c->x),
                          .y = side_of(&layer->y, weights ? c->gy : c->y),
                          .w = weights ? taps_of(layer, &layer->gw, c->gw) : taps_of(layer, &layer->w, c->w),
                          .bias = weights ? NULL : c->bias,
                          .sums = weights ? (float *)cf_align((size_t)c->workspace) : NULL,
                          .samples = config->samples,
                          .blocks = config->grid[1],
                          .slices = config->grid[0],
                          .accumulate = weights && (c->flags & CONV_FFT_ACCUMULATE_GW) != 0};
    void *parameters[] = {&call};
    const cf_launch shape = {{(unsigned)config->grid[0], (unsigned)config->grid[1], 1},
                             {(unsigned)config->threads, 1, 1},
                             (size_t)config->shared,
                             parameters_of_call};
    CF_FORWARD(cf_kernel_launch(state->kernel, &shape, parameters, c->stream));
    if (weights)
        CF_FORWARD(add_sums(state, parameters, c->stream));
    cf_stage_done(plan, c, weights ? CF_STAGE_CONVOLVE_GW : CF_STAGE_CONVOLVE_Y);
    return CONV_FFT_SUCCESS;
}
