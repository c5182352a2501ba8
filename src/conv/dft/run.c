/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of family dft: one launch, and one more where the gradient of the weights has several slices. */
#include "conv/dft/call.h"
#include "conv/dft/dft.h"
#include "conv/gpu/slice_adder.h"
#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/launch.h"

static const cf_parameter parameters_of_call[] = {
    {sizeof(cf_dft_call), CF_ADDRESS(cf_dft_call, x.memory) | CF_ADDRESS(cf_dft_call, y.memory) |
                              CF_ADDRESS(cf_dft_call, w.memory) | CF_ADDRESS(cf_dft_call, bias) |
                              CF_ADDRESS(cf_dft_call, sums)},
    {0, 0}};

static cf_dft_side side_of(const cf_tensor *t, const void *memory) {
    return (cf_dft_side){memory, t->sample_stride, t->group_stride, t->axis_stride[1]};
}

/* The taps from the first one that meets the signal. */
static cf_dft_taps taps_of(const cf_layer *layer, const cf_tensor *t, const void *memory) {
    int64_t first = 0;
    for (int a = 0; a < 3; ++a)
        first += layer->axis[a].first_tap * t->axis_stride[a];
    return (cf_dft_taps){(const char *)memory + first * (int64_t)cf_dtype_bytes(t->dtype), t->group_stride,
                         t->axis_stride[1], t->axis_stride[2]};
}

static conv_fft_status add_slices(const cf_dft_state *state, void **parameters, struct CUstream_st *stream) {
    const cf_dft_config *c = &state->config;
    const int64_t count = c->groups * c->kernel[0] * c->kernel[1];
    const cf_slice_adder adder = cf_slice_adder_of(c->grid[1]);
    const cf_launch shape = {{(unsigned)cf_ceil_div(count, adder.sums), 1, 1},
                             {(unsigned)(adder.sums * adder.shares), 1, 1},
                             (size_t)cf_slice_adder_shared(adder, (int)sizeof(float)),
                             parameters_of_call};
    return cf_kernel_launch(state->add, &shape, parameters, stream);
}

conv_fft_status cf_dft_run(const conv_fft_plan *plan, int set, const cf_call *c) {
    const int pass = set == CONV_FFT_FORWARD         ? CF_PASS_FORWARD
                     : set == CONV_FFT_BACKWARD_DATA ? CF_PASS_DATA
                                                     : CF_PASS_WEIGHTS;
    const cf_dft_state *state = plan->pass[pass].state;
    const cf_layer *layer = &plan->layer;
    const cf_dft_config *config = &state->config;
    const bool data = pass == CF_PASS_DATA, weights = pass == CF_PASS_WEIGHTS;
    if (weights)
        CF_FORWARD(cf_zero_weights(plan, c));
    if (layer->batch == 0)
        return CONV_FFT_SUCCESS;
    const cf_dft_side x = side_of(&layer->x, data ? c->gx : c->x),
                      y = side_of(&layer->y, pass == CF_PASS_FORWARD ? c->y : c->gy);
    cf_dft_call call = {.x = data ? y : x,
                        .y = data ? x : y,
                        .w = weights ? taps_of(layer, &layer->gw, c->gw) : taps_of(layer, &layer->w, c->w),
                        .bias = pass == CF_PASS_FORWARD ? c->bias : NULL,
                        .sums = cf_dft_adds(config) ? (float *)cf_align((size_t)c->workspace) : NULL,
                        .samples = config->samples,
                        .groups = config->groups,
                        .slices = config->grid[1]};
    call.accumulate =
        data ? (c->flags & CONV_FFT_ACCUMULATE_GX) != 0 : weights && (c->flags & CONV_FFT_ACCUMULATE_GW) != 0;
    void *parameters[] = {&call};
    const bool signal = config->signal.radix != 0;
    const cf_launch shape = {
        {(unsigned)(signal ? config->signal.blocks : config->grid[0]), signal ? 1 : (unsigned)config->grid[1], 1},
        {(unsigned)config->threads, 1, 1},
        (size_t)config->shared,
        parameters_of_call};
    CF_FORWARD(cf_kernel_launch(state->kernel, &shape, parameters, c->stream));
    if (cf_dft_adds(config))
        CF_FORWARD(add_slices(state, parameters, c->stream));
    cf_stage_done(plan, c, weights ? CF_STAGE_CONVOLVE_GW : data ? CF_STAGE_CONVOLVE_GX : CF_STAGE_CONVOLVE_Y);
    return CONV_FFT_SUCCESS;
}
