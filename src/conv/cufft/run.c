/* SPDX-License-Identifier: Apache-2.0 */
/* How passes of family `cufft` run. */
#include "conv/cufft/call.h"
#include "conv/cufft/state.h"
#include "conv/gpu/device.h"
#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/launch.h"

typedef struct runner {
    const conv_fft_plan *plan;
    const cf_call *call;
    const cf_pass_plan *pass;
    cf_cufft_state *state;
    cf_workspace ws;
    char *base;
    int64_t row, rows; /* the current chunk of samples */
} runner;

static cf_block block_of(const runner *r, int operand) {
    const cf_spectrum *s = &r->pass->spectrum[operand];
    const size_t offset = operand == CF_X ? r->ws.x : operand == CF_Y ? r->ws.y : r->ws.w;
    cf_block b = {.data = r->base + offset, .groups = s->groups, .rows = operand == CF_W ? s->rows : r->rows};
    b.bin_stride = b.rows * s->columns;
    b.group_stride = s->bins * b.bin_stride;
    return b;
}

static const cf_tensor *tensor_of(const runner *r, int operand) {
    const cf_layer *l = &r->plan->layer;
    const bool gradient = r->pass == &r->plan->pass[CF_PASS_WEIGHTS];
    return operand == CF_X ? &l->x : operand == CF_Y ? &l->y : gradient ? &l->gw : &l->w;
}

/* Planes of x and y are counted by (row, group, column). Planes of w are counted by (group, row, column), the order
 * of its tensor. */
static cf_cufft_planes planes_of(const runner *r, int operand, const cf_block *block) {
    const cf_spectrum *s = &r->pass->spectrum[operand];
    const cf_tensor *t = tensor_of(r, operand);
    const bool w = operand == CF_W;
    cf_cufft_planes p = {
        .b = w ? block->rows : s->groups,
        .c = s->columns,
        .tensor = {w ? t->group_stride : t->sample_stride, w ? t->sample_stride : t->group_stride, t->channel_stride},
        .spectrum = {w ? block->group_stride : s->columns, w ? s->columns : block->group_stride, 1},
        .bins = s->bins,
        .bin_stride = block->bin_stride,
        .type = (int)t->dtype,
        .scale = 1.0};
    for (int a = 0; a < 3; ++a) {
        const cf_cufft_axis axis = cf_cufft_axis_of(&r->plan->layer, a);
        p.extent[a] = operand == CF_X ? axis.input : operand == CF_Y ? axis.output : axis.kernel;
        p.stride[a] = t->axis_stride[a];
        p.at[a] = operand == CF_X ? axis.pad_before : 0;
        p.basis[a] = s->basis[a];
        p.scale /= (double)s->basis[a];
    }
    return p;
}

static char *tensor_at(const runner *r, int operand, const void *tensor) {
    const cf_tensor *t = tensor_of(r, operand);
    const int64_t elements = operand == CF_W ? 0 : r->row * t->sample_stride;
    return (char *)(uintptr_t)tensor + elements * (int64_t)cf_dtype_bytes(t->dtype);
}

static int64_t plane_count(const runner *r, int operand, const cf_block *block) {
    return block->groups * block->rows * r->pass->spectrum[operand].columns;
}

static conv_fft_status launch(const runner *r, int kernel, int64_t work, cf_cufft_planes *p, void *first, void *second,
                              void *third) {
    const cf_cufft_state *s = r->state;
    const bool square = kernel >= CF_CUFFT_TO_SPECTRUM;
    const int64_t max_blocks = s->gpu->properties.multiprocessors * 32;
    const int64_t blocks = square ? cf_ceil_div(p->bins, 32) * cf_ceil_div(p->count, 32) : cf_ceil_div(work, 256);
    const size_t shared = square ? 32 * 33 * 2 * cf_dtype_bytes(r->plan->layer.compute) : 0;
    const cf_launch shape = {{(unsigned)cf_max(1, cf_min(blocks, max_blocks)), 1, 1}, {256, 1, 1}, shared, NULL};
    void *parameters[] = {p, &first, &second, &third};
    return cf_kernel_launch(s->kernel[kernel], &shape, parameters, r->call->stream);
}

static conv_fft_status transform(const runner *r, const cf_cufft_plan *plan, void *in, void *out) {
    cf_cufft_state *s = r->state;
    pthread_mutex_lock(&s->mutex);
    const conv_fft_status status =
        cf_cufft_plan_run(plan, in, out, r->base + r->ws.scratch + s->padded + s->bins, r->call->stream);
    pthread_mutex_unlock(&s->mutex);
    return status;
}

/* cuFFT always transforms a whole unit. What is behind the last plane is ignored. */
static conv_fft_status load(const runner *r, int operand, const void *tensor, cf_stage_kind stage) {
    cf_block block = block_of(r, operand);
    cf_cufft_planes p = planes_of(r, operand, &block);
    const int64_t count = plane_count(r, operand, &block), points = p.basis[0] * p.basis[1] * p.basis[2];
    void *const padded = r->base + r->ws.scratch, *const bins = (char *)padded + r->state->padded;
    for (p.first = 0; p.first < count; p.first += p.count) {
        p.count = cf_min(r->state->unit, count - p.first);
        CF_FORWARD(launch(r, CF_CUFFT_PAD, p.count * points, &p, tensor_at(r, operand, tensor), padded, NULL));
        CF_FORWARD(transform(r, r->state->forward, padded, bins));
        CF_FORWARD(launch(r, CF_CUFFT_TO_SPECTRUM, 0, &p, bins, block.data, NULL));
    }
    cf_stage_done(r->plan, r->call, stage);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status store(const runner *r, int operand, void *tensor, const void *bias, bool accumulate,
                             cf_stage_kind stage) {
    cf_block block = block_of(r, operand);
    cf_cufft_planes p = planes_of(r, operand, &block);
    const int64_t count = plane_count(r, operand, &block), elements = p.extent[0] * p.extent[1] * p.extent[2];
    void *const padded = r->base + r->ws.scratch, *const bins = (char *)padded + r->state->padded;
    p.accumulate = accumulate;
    for (p.first = 0; p.first < count; p.first += p.count) {
        p.count = cf_min(r->state->unit, count - p.first);
        CF_FORWARD(launch(r, CF_CUFFT_FROM_SPECTRUM, 0, &p, bins, block.data, NULL));
        CF_FORWARD(transform(r, r->state->inverse, bins, padded));
        CF_FORWARD(launch(r, CF_CUFFT_CROP, p.count * elements, &p, padded, tensor_at(r, operand, tensor),
                          (void *)(uintptr_t)bias));
    }
    cf_stage_done(r->plan, r->call, stage);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status multiply(const runner *r, bool accumulate, cf_stage_kind stage) {
    CF_FORWARD(r->plan->device->ops->product(r->plan->device, &r->pass->product, block_of(r, CF_X), block_of(r, CF_W),
                                             block_of(r, CF_Y), accumulate, NULL, r->call->stream));
    cf_stage_done(r->plan, r->call, stage);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status run_rows(const runner *r, int pass) {
    const cf_call *c = r->call;
    switch (pass) {
    case CF_PASS_FORWARD:
        CF_FORWARD(load(r, CF_X, c->x, CF_STAGE_LOAD_X));
        CF_FORWARD(multiply(r, false, CF_STAGE_PRODUCT_Y));
        return store(r, CF_Y, c->y, c->bias, false, CF_STAGE_STORE_Y);
    case CF_PASS_DATA:
        CF_FORWARD(load(r, CF_Y, c->gy, CF_STAGE_LOAD_GY));
        CF_FORWARD(multiply(r, false, CF_STAGE_PRODUCT_GX));
        return store(r, CF_X, c->gx, NULL, c->flags & CONV_FFT_ACCUMULATE_GX, CF_STAGE_STORE_GX);
    default:
        CF_FORWARD(load(r, CF_X, c->x, CF_STAGE_LOAD_X));
        CF_FORWARD(load(r, CF_Y, c->gy, CF_STAGE_LOAD_GY));
        return multiply(r, r->row > 0, CF_STAGE_PRODUCT_GW);
    }
}

conv_fft_status cf_cufft_run(const conv_fft_plan *plan, int set, const cf_call *call) {
    const int pass = set == CONV_FFT_FORWARD         ? CF_PASS_FORWARD
                     : set == CONV_FFT_BACKWARD_DATA ? CF_PASS_DATA
                                                     : CF_PASS_WEIGHTS;
    if (cf_recording_refused())
        return CONV_FFT_SUCCESS;
    const uintptr_t address = (uintptr_t)call->workspace;
    runner r = {.plan = plan,
                .call = call,
                .pass = &plan->pass[pass],
                .state = plan->pass[pass].state,
                .ws = plan->workspace[set],
                .base = (char *)call->workspace + (cf_align(address) - address)};
    const int64_t batch = plan->layer.batch;
    if (batch == 0)
        return pass == CF_PASS_WEIGHTS ? cf_zero_weights(plan, call) : CONV_FFT_SUCCESS;
    if (pass != CF_PASS_WEIGHTS)
        CF_FORWARD(load(&r, CF_W, call->w, CF_STAGE_LOAD_W));
    for (; r.row < batch; r.row += r.rows) {
        r.rows = cf_min(r.ws.rows, batch - r.row);
        CF_FORWARD(run_rows(&r, pass));
    }
    return pass == CF_PASS_WEIGHTS
               ? store(&r, CF_W, call->gw, NULL, call->flags & CONV_FFT_ACCUMULATE_GW, CF_STAGE_STORE_GW)
               : CONV_FFT_SUCCESS;
}
