/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of Toeplitz passes: one launch, also for both gradients together, and one more where the gradient of the
 * weights has several slices. */
#include "conv/toeplitz/toeplitz.h"

#include "conv/gpu/slice_adder.h"
#include "conv/plan/padded.h"
#include "conv/toeplitz/call.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/launch.h"

static const cf_parameter parameters_of_call[] = {
    {sizeof(cf_toeplitz_call), CF_ADDRESS(cf_toeplitz_call, x.memory) | CF_ADDRESS(cf_toeplitz_call, y.memory) |
                                   CF_ADDRESS(cf_toeplitz_call, w.memory) | CF_ADDRESS(cf_toeplitz_call, bias) |
                                   CF_ADDRESS(cf_toeplitz_call, sums)},
    {0, 0}};

static const cf_parameter parameters_of_volume_call[] = {
    {sizeof(cf_toeplitz_volume_call),
     CF_ADDRESS(cf_toeplitz_volume_call, planes.x.memory) | CF_ADDRESS(cf_toeplitz_volume_call, planes.y.memory) |
         CF_ADDRESS(cf_toeplitz_volume_call, planes.w.memory) | CF_ADDRESS(cf_toeplitz_volume_call, planes.bias) |
         CF_ADDRESS(cf_toeplitz_volume_call, planes.sums)},
    {0, 0}};

static const cf_parameter parameters_of_both[] = {
    {sizeof(cf_toeplitz_both_call),
     CF_ADDRESS(cf_toeplitz_both_call, data.x.memory) | CF_ADDRESS(cf_toeplitz_both_call, data.y.memory) |
         CF_ADDRESS(cf_toeplitz_both_call, data.w.memory) | CF_ADDRESS(cf_toeplitz_both_call, weights.x.memory) |
         CF_ADDRESS(cf_toeplitz_both_call, weights.y.memory) | CF_ADDRESS(cf_toeplitz_both_call, weights.w.memory) |
         CF_ADDRESS(cf_toeplitz_both_call, weights.bias) | CF_ADDRESS(cf_toeplitz_both_call, weights.sums)},
    {0, 0}};

static cf_toeplitz_side side_of(const cf_tensor *t, const void *memory, int64_t rows, int64_t columns) {
    return (cf_toeplitz_side){memory,    t->sample_stride, t->group_stride, t->axis_stride[1], t->axis_stride[2],
                              (int)rows, (int)columns};
}

/* The taps from the first one that meets the signal. */
static cf_toeplitz_taps taps_of(const cf_layer *layer, const cf_tensor *t, const void *memory) {
    int64_t first = 0;
    for (int a = 0; a < 3; ++a)
        first += layer->axis[a].first_tap * t->axis_stride[a];
    return (cf_toeplitz_taps){(const char *)memory + first * (int64_t)cf_dtype_bytes(t->dtype), t->group_stride,
                              t->axis_stride[1], t->axis_stride[2]};
}

static cf_toeplitz_volume_call volume_of(const cf_layer *layer, const cf_toeplitz_config *config,
                                         const cf_toeplitz_call *planes) {
    const bool data = config->pass == CF_PASS_DATA;
    const int64_t x_stride = layer->x.axis_stride[0], y_stride = layer->y.axis_stride[0];
    const int input = (int)layer->axis[0].input, output = (int)layer->axis[0].output;
    return (cf_toeplitz_volume_call){.planes = *planes,
                                     .x_depth_stride = data ? y_stride : x_stride,
                                     .y_depth_stride = data ? x_stride : y_stride,
                                     .w_depth_stride = config->pass == CF_PASS_WEIGHTS ? layer->gw.axis_stride[0]
                                                                                       : layer->w.axis_stride[0],
                                     .x_depths = data ? output : input,
                                     .y_depths = data ? input : output,
                                     .depth_pad = config->depth_pad,
                                     .parts = config->depth_parts,
                                     .part_depths = config->part_depths};
}

static conv_fft_status add_slices(const cf_kernel *add, const cf_toeplitz_config *c, const cf_parameter *list,
                                  void **parameters, struct CUstream_st *stream) {
    const int64_t count = cf_toeplitz_sums(c);
    const cf_slice_adder adder = cf_slice_adder_of(c->grid[1]);
    const cf_launch shape = {{(unsigned)cf_ceil_div(count, adder.sums), 1, 1},
                             {(unsigned)(adder.sums * adder.shares), 1, 1},
                             (size_t)cf_slice_adder_shared(adder, (int)sizeof(float)),
                             list};
    return cf_kernel_launch(add, &shape, parameters, stream);
}

/* The arguments of a pass. */
static cf_toeplitz_call call_of(const cf_layer *layer, const cf_toeplitz_config *config, const cf_call *c) {
    const bool data = config->pass == CF_PASS_DATA, weights = config->pass == CF_PASS_WEIGHTS,
               forward = config->pass == CF_PASS_FORWARD;
    const cf_axis *a = &layer->axis[1];
    const cf_toeplitz_side x = side_of(&layer->x, data ? c->gx : c->x, a[0].input, a[1].input),
                           y = side_of(&layer->y, forward ? c->y : c->gy, a[0].output, a[1].output);
    cf_toeplitz_call call = {.x = data ? y : x,
                             .y = data ? x : y,
                             .w = weights ? taps_of(layer, &layer->gw, c->gw) : taps_of(layer, &layer->w, c->w),
                             .bias = forward ? c->bias : NULL,
                             .sums = cf_toeplitz_adds(config) ? (float *)cf_align((size_t)c->workspace) : NULL,
                             .samples = config->samples,
                             .groups = config->groups,
                             .slices = weights ? config->grid[1] : 1,
                             .row_pad = config->row_pad,
                             .column_pad = config->column_pad,
                             .tiles_down = (int)config->tiles_down,
                             .tiles_across = (int)config->tiles_across};
    call.accumulate =
        data ? (c->flags & CONV_FFT_ACCUMULATE_GX) != 0 : weights && (c->flags & CONV_FFT_ACCUMULATE_GW) != 0;
    return call;
}

static conv_fft_status run_both(const conv_fft_plan *plan, const cf_toeplitz_state *state, const cf_call *c) {
    const cf_toeplitz_both *both = state->both;
    cf_toeplitz_both_call call = {call_of(&plan->layer, &both->data, c), call_of(&plan->layer, &both->weights, c)};
    call.weights.bias = c->gbias;
    call.weights.accumulate_bias = (c->flags & CONV_FFT_ACCUMULATE_GBIAS) != 0;
    void *parameters[] = {&call}, *of_weights[] = {&call.weights};
    const cf_launch shape = {{(unsigned)both->weights.grid[0], (unsigned)both->weights.grid[1], 1},
                             {(unsigned)both->weights.threads, 1, 1},
                             (size_t)both->shared,
                             parameters_of_both};
    CF_FORWARD(cf_kernel_launch(state->both_kernel, &shape, parameters, c->stream));
    if (cf_toeplitz_adds(&both->weights))
        CF_FORWARD(add_slices(state->both_add, &both->weights, parameters_of_call, of_weights, c->stream));
    cf_stage_done(plan, c, CF_STAGE_CONVOLVE_GW);
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_toeplitz_run(const conv_fft_plan *plan, int set, const cf_call *c) {
    const int pass = set == CONV_FFT_FORWARD         ? CF_PASS_FORWARD
                     : set == CONV_FFT_BACKWARD_DATA ? CF_PASS_DATA
                                                     : CF_PASS_WEIGHTS;
    const cf_toeplitz_state *state = plan->pass[pass].state;
    const cf_layer *layer = &state->layer;
    const cf_toeplitz_config *config = &state->config;
    const bool data = pass == CF_PASS_DATA, weights = pass == CF_PASS_WEIGHTS;
    if (weights)
        CF_FORWARD(cf_zero_weights(plan, c));
    if (layer->batch == 0)
        return CONV_FFT_SUCCESS;
    if (set == CONV_FFT_BACKWARD)
        return run_both(plan, state, c);
    const cf_call padded = cf_padded_call(plan, pass, c);
    cf_toeplitz_call call = call_of(layer, config, &padded);
    if (config->folded) {
        const cf_axis *const a = &plan->layer.axis[1];
        call.y = side_of(&plan->layer.x, c->gx, a[0].input, a[1].input);
    }
    cf_toeplitz_volume_call volume;
    const cf_parameter *const list = config->depths ? parameters_of_volume_call : parameters_of_call;
    void *parameters[] = {&call};
    if (config->depths) {
        volume = volume_of(layer, config, &call);
        parameters[0] = &volume;
    }
    const cf_launch shape = {{(unsigned)config->grid[0], (unsigned)config->grid[1], 1},
                             {(unsigned)config->threads, 1, 1},
                             (size_t)config->shared,
                             list};
    CF_FORWARD(cf_kernel_launch(state->kernel, &shape, parameters, c->stream));
    if (cf_toeplitz_adds(config))
        CF_FORWARD(add_slices(state->add, config, list, parameters, c->stream));
    cf_stage_done(plan, c, weights ? CF_STAGE_CONVOLVE_GW : data ? CF_STAGE_CONVOLVE_GX : CF_STAGE_CONVOLVE_Y);
    return cf_padded_fold(plan, pass, &padded, c);
}
