/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of spatial passes: one launch, and one more where the gradient of the weights has several slices. */
#include "conv/spatial/spatial.h"

#include "conv/gpu/slice_adder.h"
#include "conv/plan/padded.h"
#include "conv/spatial/call.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/launch.h"

static const cf_parameter parameters_of_call[] = {
    {sizeof(cf_spatial_call), CF_ADDRESS(cf_spatial_call, x.memory) | CF_ADDRESS(cf_spatial_call, y.memory) |
                                  CF_ADDRESS(cf_spatial_call, w.memory) | CF_ADDRESS(cf_spatial_call, bias) |
                                  CF_ADDRESS(cf_spatial_call, sums)},
    {0, 0}};

static cf_spatial_side side_of(const cf_layer *layer, const cf_tensor *t, const void *memory, bool input) {
    cf_spatial_side side = {.memory = memory,
                            .sample_stride = t->sample_stride,
                            .group_stride = t->group_stride,
                            .channel_stride = t->channel_stride};
    for (int a = 0; a < 3; ++a) {
        side.stride[a] = t->axis_stride[a];
        side.size[a] = (int)(input ? layer->axis[a].input : layer->axis[a].output);
    }
    return side;
}

/* The taps from the first one that meets the signal. */
static cf_spatial_taps taps_of(const cf_layer *layer, const cf_tensor *t, const void *memory, bool data) {
    int64_t first = 0;
    for (int a = 0; a < 3; ++a)
        first += layer->axis[a].first_tap * t->axis_stride[a];
    cf_spatial_taps taps = {.memory = (const char *)memory + first * (int64_t)cf_dtype_bytes(t->dtype),
                            .group_stride = t->group_stride,
                            .own_stride = data ? t->channel_stride : t->sample_stride,
                            .summed_stride = data ? t->sample_stride : t->channel_stride};
    for (int a = 0; a < 3; ++a)
        taps.stride[a] = t->axis_stride[a];
    return taps;
}

static const cf_parameter parameters_of_both[] = {
    {sizeof(cf_spatial_both_call),
     CF_ADDRESS(cf_spatial_both_call, data.x.memory) | CF_ADDRESS(cf_spatial_both_call, data.y.memory) |
         CF_ADDRESS(cf_spatial_both_call, data.w.memory) | CF_ADDRESS(cf_spatial_both_call, weights.x.memory) |
         CF_ADDRESS(cf_spatial_both_call, weights.y.memory) | CF_ADDRESS(cf_spatial_both_call, weights.w.memory) |
         CF_ADDRESS(cf_spatial_both_call, weights.sums)},
    {0, 0}};

static conv_fft_status add_slices(const cf_kernel *add, const cf_spatial_config *config, cf_spatial_call *call,
                                  struct CUstream_st *stream) {
    const int *const kernel = config->kernel;
    const int64_t count = call->channels * kernel[0] * kernel[1] * kernel[2];
    const cf_slice_adder adder = cf_slice_adder_of(call->slices);
    const cf_launch shape = {{(unsigned)cf_ceil_div(count, adder.sums), 1, 1},
                             {(unsigned)(adder.sums * adder.shares), 1, 1},
                             (size_t)cf_slice_adder_shared(adder, (int)sizeof(float)),
                             parameters_of_call};
    void *parameters[] = {call};
    return cf_kernel_launch(add, &shape, parameters, stream);
}

cf_convolution_desc cf_spatial_describe(const cf_layer *layer, int pass) {
    cf_convolution_desc desc = {.kind = cf_pass_table[pass].product,
                                .x = layer->x,
                                .w = pass == CF_PASS_WEIGHTS ? layer->gw : layer->w,
                                .y = layer->y,
                                .batch = layer->batch,
                                .groups = layer->groups,
                                .in_channels = layer->in_channels,
                                .out_channels = layer->out_channels};
    for (int a = 0; a < 3; ++a) {
        const cf_axis *const axis = &layer->axis[a];
        desc.axis[a] = (cf_convolution_axis){axis->input,    axis->output,      axis->kernel, axis->stride,
                                             axis->dilation, -axis->pad_before, axis->mode};
    }
    return desc;
}

static conv_fft_status run_on_device(const conv_fft_plan *plan, int pass, const cf_call *c) {
    const cf_spatial_state *const state = plan->pass[pass].state;
    const bool data = pass == CF_PASS_DATA, weights = pass == CF_PASS_WEIGHTS;
    const void *const w =
        taps_of(&plan->layer, weights ? &plan->layer.gw : &plan->layer.w, weights ? c->gw : c->w, data).memory;
    const bool accumulate =
        data ? (c->flags & CONV_FFT_ACCUMULATE_GX) != 0 : weights && (c->flags & CONV_FFT_ACCUMULATE_GW) != 0;
    /* Only the result is written. */
    return plan->device->ops->convolve(
        state->convolution, (void *)(data ? c->gx : c->x), (void *)w, (void *)(pass == CF_PASS_FORWARD ? c->y : c->gy),
        pass == CF_PASS_FORWARD ? c->bias : NULL, accumulate, (void *)cf_align((size_t)c->workspace), c->stream);
}

/* The arguments of a pass. `slices`: the configuration whose items and slices the launch has. */
static cf_spatial_call call_of(const cf_layer *layer, const cf_spatial_config *slices, int pass, const cf_call *c) {
    const bool data = pass == CF_PASS_DATA, weights = pass == CF_PASS_WEIGHTS;
    const cf_spatial_side x = side_of(layer, &layer->x, data ? c->gx : c->x, true),
                          y = side_of(layer, &layer->y, pass == CF_PASS_FORWARD ? c->y : c->gy, false);
    cf_spatial_call call = {.x = data ? y : x,
                            .y = data ? x : y,
                            .w = weights ? taps_of(layer, &layer->gw, c->gw, false)
                                         : taps_of(layer, &layer->w, c->w, data),
                            .bias = pass == CF_PASS_FORWARD ? c->bias : NULL,
                            .sums = weights && cf_spatial_adds(slices) ? (float *)cf_align((size_t)c->workspace) : NULL,
                            .channels = slices->channels,
                            .slices = weights ? slices->grid[1] : 1,
                            .samples = (int)slices->samples,
                            .items = (int)slices->items};
    for (int a = 0; a < 3; ++a)
        call.across[a] = (int)slices->along[a];
    call.accumulate =
        data ? (c->flags & CONV_FFT_ACCUMULATE_GX) != 0 : weights && (c->flags & CONV_FFT_ACCUMULATE_GW) != 0;
    return call;
}

static cf_launch shape_of(const cf_spatial_config *config, const cf_parameter *parameters) {
    return (cf_launch){{(unsigned)config->grid[0], (unsigned)config->grid[1], 1},
                       {(unsigned)config->threads, 1, 1},
                       (size_t)config->shared,
                       parameters};
}

static conv_fft_status run_kernels(const conv_fft_plan *plan, int pass, const cf_call *c) {
    const cf_spatial_state *state = plan->pass[pass].state;
    const cf_spatial_config *config = &state->config;
    cf_spatial_call call = call_of(&state->layer, config, pass, c);
    const cf_launch shape = shape_of(config, parameters_of_call);
    void *parameters[] = {&call};
    CF_FORWARD(cf_kernel_launch(state->kernel, &shape, parameters, c->stream));
    return cf_spatial_adds(config) ? add_slices(state->add, config, &call, c->stream) : CONV_FFT_SUCCESS;
}

static conv_fft_status run_both(const conv_fft_plan *plan, const cf_call *c) {
    const cf_spatial_state *state = plan->pass[CF_PASS_WEIGHTS].state;
    const cf_spatial_config *both = state->both;
    const cf_layer *const layer = &state->both_layer;
    cf_spatial_both_call call = {call_of(layer, both, CF_PASS_DATA, c), call_of(layer, both, CF_PASS_WEIGHTS, c)};
    const cf_launch shape = shape_of(both, parameters_of_both);
    void *parameters[] = {&call};
    CF_FORWARD(cf_kernel_launch(state->both_kernel, &shape, parameters, c->stream));
    if (cf_spatial_adds(both))
        CF_FORWARD(add_slices(state->both_add, both, &call.weights, c->stream));
    cf_stage_done(plan, c, CF_STAGE_CONVOLVE_GW);
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_spatial_run(const conv_fft_plan *plan, int set, const cf_call *c) {
    const int pass = set == CONV_FFT_FORWARD         ? CF_PASS_FORWARD
                     : set == CONV_FFT_BACKWARD_DATA ? CF_PASS_DATA
                                                     : CF_PASS_WEIGHTS; /* also of both gradients */
    const cf_spatial_state *state = plan->pass[pass].state;
    if (pass == CF_PASS_WEIGHTS)
        CF_FORWARD(cf_zero_weights(plan, c));
    if (plan->layer.batch == 0)
        return CONV_FFT_SUCCESS;
    if (set == CONV_FFT_BACKWARD)
        return run_both(plan, c);
    const cf_call call = cf_padded_call(plan, pass, c);
    CF_FORWARD(state->convolution ? run_on_device(plan, pass, &call) : run_kernels(plan, pass, &call));
    cf_stage_done(plan, c, cf_cost_whole_passes[pass]);
    return cf_padded_fold(plan, pass, &call, c);
}
