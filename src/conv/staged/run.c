/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How staged passes run. The loops, outermost first, are chunks of groups, chunks of rows, passes:
 *
 *     for each chunk of groups
 *         w -> W                                      (forward, backward data)
 *         for each chunk of rows
 *             x -> X,  X W* -> Y,  Y -> y             (forward)
 *             gy -> GY                                (backward, once for both)
 *             GY W -> GX,  GX -> gx                   (backward data)
 *             x -> X,  GW += GY* X                    (backward weights)
 *         GW -> gw
 *
 * If a pass has a pair, one launch makes both spectra that the pass reads, at the place of the second one here.
 */
#include "conv/staged/staged.h"

#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"

/* The state of one call. */
typedef struct runner {
    const conv_fft_plan *plan;
    const cf_call *call;
    const cf_pass_plan *forward, *data, *weights; /* NULL: not wanted */
    cf_workspace ws;
    char *base;                       /* aligned workspace */
    int64_t group, groups, row, rows; /* the current chunk */
    bool sums_bias;
} runner;

static char *complex_at(const cf_spectrum *s, void *base, int64_t index) {
    return (char *)base + index * 2 * (int64_t)cf_dtype_bytes(s->dtype);
}

/* The current chunk of an operand's spectrum: in the workspace, or in the caller's whole kept spectrum. */
static cf_block chunk_of(const runner *r, const cf_spectrum *s, bool is_w, size_t offset, void *kept) {
    cf_block block = {
        .group = r->group, .groups = r->groups, .row = is_w ? 0 : r->row, .rows = is_w ? s->rows : r->rows};
    block.bin_stride = (kept ? s->rows : block.rows) * s->columns;
    block.group_stride = s->bins * block.bin_stride;
    block.data =
        kept ? complex_at(s, kept, block.group * block.group_stride + block.row * s->columns) : r->base + offset;
    const int64_t row_scales = cf_spectrum_row_scales(s);
    block.scale_stride = (kept ? s->rows : block.rows) * row_scales;
    block.scales = kept ? cf_spectrum_scales(s, kept, s->groups, s->rows)
                        : cf_spectrum_scales(s, block.data, block.groups, block.rows);
    if (kept && block.scales)
        block.scales += block.group * block.scale_stride + block.row * row_scales;
    return block;
}

/* Transform a chunk of an operand. If `tensor` is NULL, its kept spectrum exists already. */
static conv_fft_status load(runner *r, const cf_pass_plan *pass, int operand, const void *tensor, cf_block block,
                            cf_stage_kind stage) {
    if (!tensor)
        return CONV_FFT_SUCCESS;
    CF_FORWARD(r->plan->device->ops->forward(pass->transform[operand], tensor, (cf_origin){0, 0}, block,
                                             r->base + r->ws.scratch, r->call->stream));
    cf_stage_done(r->plan, r->call, stage);
    return CONV_FFT_SUCCESS;
}

/* Transform both operands of a pass with a pair, in the order of the pair. */
static conv_fft_status load_pair(runner *r, const cf_pass_plan *pass, const void *first, cf_block first_block,
                                 const void *second, cf_block second_block, cf_stage_kind stage) {
    const void *const tensors[2] = {first, second};
    const cf_block blocks[2] = {first_block, second_block};
    CF_FORWARD(r->plan->device->ops->forward_pair(pass->pair, tensors, blocks, r->call->stream));
    cf_stage_done(r->plan, r->call, stage);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status multiply(runner *r, const cf_pass_plan *pass, cf_block x, cf_block w, cf_block y,
                                bool accumulate, cf_stage_kind stage) {
    CF_FORWARD(r->plan->device->ops->product(r->plan->device, &pass->product, x, w, y, accumulate,
                                             r->base + r->ws.scratch, r->call->stream));
    cf_stage_done(r->plan, r->call, stage);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status store(runner *r, const cf_pass_plan *pass, int operand, cf_block block, void *tensor,
                             cf_origin origin, const void *bias, bool accumulate, cf_stage_kind stage) {
    CF_FORWARD(r->plan->device->ops->inverse(pass->transform[operand], block, tensor, origin, bias, accumulate,
                                             r->base + r->ws.scratch, r->call->stream));
    cf_stage_done(r->plan, r->call, stage);
    return CONV_FFT_SUCCESS;
}

static cf_block load_w(const runner *r, const cf_pass_plan *pass) {
    return chunk_of(r, &pass->spectrum[CF_W], true, r->ws.w, r->call->w_spectrum);
}

static cf_block load_x(const runner *r, const cf_pass_plan *pass) {
    return chunk_of(r, &pass->spectrum[CF_X], false, r->ws.x, r->call->x_spectrum);
}

static conv_fft_status forward_rows(runner *r) {
    const cf_pass_plan *pass = r->forward;
    const cf_block x = load_x(r, pass), w = load_w(r, pass),
                   y = chunk_of(r, &pass->spectrum[CF_Y], false, r->ws.y, NULL);
    CF_FORWARD(pass->pair ? load_pair(r, pass, r->call->x, x, r->call->w, w, CF_STAGE_LOAD_X)
                          : load(r, pass, CF_X, r->call->x, x, CF_STAGE_LOAD_X));
    CF_FORWARD(multiply(r, pass, x, w, y, false, CF_STAGE_PRODUCT_Y));
    return store(r, pass, CF_Y, y, r->call->y, (cf_origin){0, 0}, r->call->bias, false, CF_STAGE_STORE_Y);
}

/* Store the current chunk of GX in gx. */
static conv_fft_status store_gx(runner *r, cf_block gx, void *tensor, cf_origin origin, bool accumulate) {
    gx.row *= r->data->gx_phases;
    gx.rows *= r->data->gx_phases;
    return store(r, r->data, CF_X, gx, tensor, origin, NULL, accumulate, CF_STAGE_STORE_GX);
}

/* Store the current chunk of gx through the padded scratch. It is cleared at a sample's first rows and folded after
 * its last. */
static conv_fft_status fold_rows(runner *r, cf_block gx) {
    const cf_pass_plan *pass = r->data;
    const cf_device_ops *ops = r->plan->device->ops;
    const cf_fold_desc *fold = &pass->fold;
    const int64_t per_sample = pass->spectrum[CF_X].rows_per_sample;
    const int64_t sample = r->row / per_sample, samples = cf_max(1, r->rows / per_sample);
    char *scratch = r->base + r->ws.fold;
    if (r->row % per_sample == 0)
        CF_FORWARD(ops->clear(r->plan->device, scratch, (size_t)cf_fold_bytes(fold, r->plan->chunk_groups, samples),
                              r->call->stream));
    CF_FORWARD(store_gx(r, gx, scratch, (cf_origin){sample, r->group}, true));
    if ((r->row + r->rows) % per_sample != 0)
        return CONV_FFT_SUCCESS;
    char *target = (char *)r->call->gx + (sample * fold->tensor.sample_stride + r->group * fold->tensor.group_stride) *
                                             (int64_t)cf_dtype_bytes(fold->tensor.dtype);
    CF_FORWARD(ops->fold(r->plan->device, fold, scratch, samples, r->groups, target,
                         r->call->flags & CONV_FFT_ACCUMULATE_GX, r->call->stream));
    cf_stage_done(r->plan, r->call, CF_STAGE_FOLD_GX);
    return CONV_FFT_SUCCESS;
}

bool cf_staged_sums_bias(const conv_fft_plan *plan, int set) {
    const cf_pass_plan *pass = &plan->pass[CF_PASS_WEIGHTS];
    const cf_layer *layer = &plan->layer;
    if (layer->batch == 0 || pass->spectrum[CF_Y].dtype != layer->compute ||
        (layer->groups > 1 && layer->out_channels > 1))
        return false;
    const int run = plan->shares_gy ? set : CONV_FFT_BACKWARD_WEIGHTS;
    bool covers = plan->workspace[run].rows >= pass->spectrum[CF_Y].rows;
    const cf_window gy = cf_strategy_window(layer, &pass->strategy, cf_pass_table[CF_PASS_WEIGHTS].role[CF_Y]);
    for (int a = 0; a < 3; ++a)
        covers = covers && cf_window_covers(&gy.axis[a]);
    return covers;
}

/* Sum the real parts of bin 0 over rows: one column of each group, or one group of all columns. */
static conv_fft_status sum_bias(const runner *r, cf_block gy) {
    const conv_fft_plan *plan = r->plan;
    const cf_spectrum *s = &r->weights->spectrum[CF_Y];
    const int64_t channels = r->groups * s->channels;
    const cf_bias_desc bin = {.tensor = {.dtype = s->dtype,
                                         .sample_stride = 2 * s->columns,
                                         .channel_stride = s->channels > 1 ? 2 : 2 * gy.group_stride},
                              .result_dtype = plan->bias.result_dtype,
                              .samples = gy.rows,
                              .channels = channels,
                              .size = {1, 1, 1}};
    char *gbias = (char *)r->call->gbias + r->group * s->channels * (int64_t)cf_dtype_bytes(bin.result_dtype);
    CF_FORWARD(plan->device->ops->bias_gradient(plan->device, &bin, gy.data, gbias,
                                                r->call->flags & CONV_FFT_ACCUMULATE_GBIAS, NULL, r->call->stream));
    cf_stage_done(plan, r->call, CF_STAGE_BIAS);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status backward_rows(runner *r, bool first) {
    const cf_pass_plan *shared = r->data ? r->data : r->weights;
    const cf_block gy = chunk_of(r, &shared->spectrum[CF_Y], false, r->ws.y, NULL);
    if (!shared->pair)
        CF_FORWARD(load(r, shared, CF_Y, r->call->gy, gy, CF_STAGE_LOAD_GY));
    else if (r->data)
        CF_FORWARD(load_pair(r, shared, r->call->w, load_w(r, shared), r->call->gy, gy, CF_STAGE_LOAD_GY));
    else
        CF_FORWARD(load_pair(r, shared, r->call->x, load_x(r, shared), r->call->gy, gy, CF_STAGE_LOAD_GY));
    if (r->sums_bias)
        CF_FORWARD(sum_bias(r, gy));
    if (r->data) {
        const cf_block gx = chunk_of(r, &r->data->spectrum[CF_X], false, r->ws.x, NULL);
        CF_FORWARD(multiply(r, r->data, gx, load_w(r, r->data), gy, false, CF_STAGE_PRODUCT_GX));
        if (r->data->gx_store == CF_GX_FOLDED) {
            CF_FORWARD(fold_rows(r, gx));
        } else {
            const bool accumulate = r->data->gx_store == CF_GX_ZEROED || (r->call->flags & CONV_FFT_ACCUMULATE_GX);
            CF_FORWARD(store_gx(r, gx, r->call->gx, (cf_origin){0, 0}, accumulate));
        }
    }
    if (r->weights) {
        const cf_block x = load_x(r, r->weights), gw = chunk_of(r, &r->weights->spectrum[CF_W], true, r->ws.gw, NULL);
        if (r->data || !shared->pair)
            CF_FORWARD(load(r, r->weights, CF_X, r->call->x, x, CF_STAGE_LOAD_X));
        CF_FORWARD(multiply(r, r->weights, x, gw, gy, !first, CF_STAGE_PRODUCT_GW));
    }
    return CONV_FFT_SUCCESS;
}

/* Run all rows, in chunks of whole samples or of parts of one sample. */
static conv_fft_status all_rows(runner *r, const cf_spectrum *y) {
    for (r->row = 0; r->row < y->rows; r->row += r->rows) {
        r->rows = cf_min(r->ws.rows, y->rows - r->row);
        if (r->ws.rows < y->rows_per_sample)
            r->rows = cf_min(r->rows, y->rows_per_sample - r->row % y->rows_per_sample);
        CF_FORWARD(r->forward ? forward_rows(r) : backward_rows(r, r->row == 0));
    }
    return CONV_FFT_SUCCESS;
}

static conv_fft_status start(runner *r) {
    const conv_fft_plan *plan = r->plan;
    int64_t x[5], y[5], w[5];
    cf_layer_extents(&plan->layer, x, y, w);
    if (r->data && r->data->gx_store == CF_GX_ZEROED && !(r->call->flags & CONV_FFT_ACCUMULATE_GX)) {
        CF_FORWARD(plan->device->ops->zero(plan->device, &plan->layer.x, x, r->call->gx, r->call->stream));
        cf_stage_done(r->plan, r->call, CF_STAGE_STORE_GX);
    }
    return r->weights ? cf_zero_weights(plan, r->call) : CONV_FFT_SUCCESS;
}

conv_fft_status cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call) {
    runner r = {.plan = plan, .call = call, .ws = plan->workspace[set]};
    if (set & CONV_FFT_FORWARD)
        r.forward = &plan->pass[CF_PASS_FORWARD];
    if (set & CONV_FFT_BACKWARD_DATA)
        r.data = &plan->pass[CF_PASS_DATA];
    if (set & CONV_FFT_BACKWARD_WEIGHTS)
        r.weights = &plan->pass[CF_PASS_WEIGHTS];
    const uintptr_t address = (uintptr_t)call->workspace;
    r.base = (char *)call->workspace + (cf_align(address) - address);
    CF_FORWARD(start(&r));
    if (plan->layer.batch == 0)
        return CONV_FFT_SUCCESS;

    const cf_pass_plan *reads_w = r.forward ? r.forward : r.data;
    const cf_spectrum *y = &(reads_w ? reads_w : r.weights)->spectrum[CF_Y];
    r.groups = plan->chunk_groups;
    r.sums_bias = call->gbias && plan->sums_bias[set];
    for (r.group = 0; r.group < plan->layer.groups; r.group += r.groups) {
        if (reads_w && !reads_w->pair)
            CF_FORWARD(load(&r, reads_w, CF_W, call->w, load_w(&r, reads_w), CF_STAGE_LOAD_W));
        CF_FORWARD(all_rows(&r, y));
        if (!r.weights)
            continue;
        const cf_block gw = chunk_of(&r, &r.weights->spectrum[CF_W], true, r.ws.gw, NULL);
        CF_FORWARD(store(&r, r.weights, CF_W, gw, call->gw, (cf_origin){0, 0}, NULL,
                         call->flags & CONV_FFT_ACCUMULATE_GW, CF_STAGE_STORE_GW));
    }
    return CONV_FFT_SUCCESS;
}
