/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/plan/spectra.h"

#include "conv/plan/family.h"
#include "core/arith.h"
#include "core/dtype.h"

#include <string.h>

const char cf_large_spectra[] = "it is too large: its spectra exceed 64 TiB",
           cf_large_axis[] = "it is too large: an axis with its padding exceeds 2^30 points, the most on a GPU";
#define CF_LARGE_INPUT(name, value, word) "it is too large: its input with padding " #name " exceeds 64 TiB",
const char *const cf_large_input[CF_PADDING_COUNT] = {CONV_FFT_PADDING_LIST(CF_LARGE_INPUT)};
#undef CF_LARGE_INPUT

bool cf_is_too_large(const char *why) {
    bool input = false;
    for (int mode = 0; mode < CF_PADDING_COUNT; ++mode)
        input = input || why == cf_large_input[mode];
    return input || why == cf_large_spectra || why == cf_large_axis;
}

int cf_strategy_axis(const cf_strategy *s, int a) {
    const bool columns =
        s->family->search_space == CF_SEARCH_SPECTRA && s->basis[0] == 1 && s->basis[1] > 1 && s->basis[2] == 1;
    return a > 0 && columns ? 3 - a : a;
}

cf_tensor cf_strategy_tensor(const cf_strategy *s, const cf_tensor *tensor) {
    cf_tensor t = *tensor;
    for (int a = 0; a < 3; ++a)
        t.axis_stride[a] = tensor->axis_stride[cf_strategy_axis(s, a)];
    return t;
}

cf_window cf_strategy_window(const cf_layer *layer, const cf_strategy *s, cf_role role) {
    cf_window window;
    memset(&window, 0, sizeof window);
    for (int a = 0; a < 3; ++a) {
        const int axis = cf_strategy_axis(s, a);
        const cf_axis_grid grid = cf_strategy_grid(s, axis);
        window.axis[a] = cf_axis_window_make(&layer->axis[axis], &grid, role);
    }
    return window;
}

bool cf_strategy_has_segments(const cf_layer *layer, const cf_strategy *s) {
    bool cut = false;
    for (int a = 0; a < 3; ++a) {
        const cf_axis_grid grid = cf_strategy_grid(s, a);
        const cf_unit unit = cf_unit_of(&layer->axis[a], &grid);
        cut = cut || cf_unit_is_cut(&unit);
    }
    return cut;
}

cf_order cf_strategy_order(const cf_layer *layer, const cf_strategy *s) {
    const cf_window gx = cf_strategy_window(layer, s, CF_ROLE_GX);
    cf_order order = {.ordered = 1, .beside = 1, .between = 1};
    bool tiles = false, beside = true;
    if (cf_strategy_has_segments(layer, s))
        order.between = cf_window_phases(&gx);
    for (int a = 2; a >= 0; --a) {
        const int axis = cf_strategy_axis(s, a);
        const cf_axis_grid grid = cf_strategy_grid(s, axis);
        const cf_unit unit = cf_unit_of(&layer->axis[axis], &grid);
        tiles = tiles || cf_window_overlaps(&gx.axis[a]);
        /* Tiles of the fastest axes do not overlap, whatever the phase. */
        beside = beside && !cf_window_overlaps(&gx.axis[a]) && !cf_unit_is_cut(&unit);
        order.beside *= beside ? gx.axis[a].tiles : 1;
    }
    order.ordered = order.between * (tiles ? cf_window_tiles(&gx) * cf_window_shifts(&gx) : 1);
    return order;
}

/* The gradient of the weights is a sum over chunks of rows. Sums of 16 bits would be rounded for each chunk. */
static conv_fft_dtype result_dtype(int pass, conv_fft_dtype spectrum) {
    return pass == CF_PASS_WEIGHTS ? cf_compute_dtype(spectrum) : spectrum;
}

bool cf_strategy_spectra(const cf_layer *layer, int pass, const cf_strategy *s,
                         cf_spectrum spectrum[CF_OPERAND_COUNT]) {
    cf_unit unit[3];
    for (int a = 0; a < 3; ++a) {
        const cf_axis_grid grid = cf_strategy_grid(s, a);
        unit[a] = cf_unit_of(&layer->axis[a], &grid);
    }
    int64_t basis[3], rows_per_sample = 1;
    for (int a = 0; a < 3; ++a)
        basis[a] = s->basis[cf_strategy_axis(s, a)];
    int64_t bins = basis[0];
    if (!cf_multiply(&bins, basis[1]) || !cf_multiply(&bins, basis[2] / 2 + 1))
        return false;
    for (int a = 0; a < 3; ++a)
        if (!cf_multiply(&rows_per_sample, s->tiles[a]) || !cf_multiply(&rows_per_sample, unit[a].shifts))
            return false;
    for (int operand = 0; operand < CF_OPERAND_COUNT; ++operand) {
        cf_spectrum *p = &spectrum[operand];
        memset(p, 0, sizeof *p);
        p->dtype = cf_pass_table[pass].result == operand ? result_dtype(pass, s->spectrum) : s->spectrum;
        for (int a = 0; a < 3; ++a)
            p->basis[a] = basis[a];
        p->groups = layer->groups;
        p->bins = bins;
        p->channels = operand == CF_Y ? layer->out_channels : layer->in_channels;
        p->columns = p->channels;
        for (int a = 0; a < 3; ++a)
            if (operand != CF_Y && !cf_multiply(&p->columns, unit[a].phases))
                return false;
        p->rows_per_sample = operand == CF_W ? 1 : rows_per_sample;
        p->rows = operand == CF_W ? layer->out_channels : layer->batch;
        if (!cf_multiply(&p->rows, p->rows_per_sample))
            return false;
        p->scale_rows = operand == CF_W ? p->rows : p->rows_per_sample;
        int64_t bytes = 2 * (int64_t)cf_dtype_bytes(p->dtype);
        if (!cf_multiply(&bytes, bins) || !cf_multiply(&bytes, p->groups) || !cf_multiply(&bytes, cf_max(1, p->rows)) ||
            !cf_multiply(&bytes, p->columns) || bytes > CF_SPECTRUM_MAX_BYTES)
            return false;
    }
    return true;
}

bool cf_layer_16bit_spectrum(const cf_layer *layer, conv_fft_dtype *spectrum) {
    const bool half = layer->problem.math == CONV_FFT_MATH_HALF && cf_dtype_bytes(layer->x.dtype) == 2;
    if (!half && layer->problem.math != CONV_FFT_MATH_TF32)
        return false;
    *spectrum = half ? layer->x.dtype : CONV_FFT_FP16;
    return true;
}

cf_gx_store cf_strategy_gx_store(const cf_layer *layer, const cf_strategy *s) {
    bool folds = false, overlaps = cf_strategy_has_segments(layer, s), covers = true;
    for (int a = 0; a < 3; ++a) {
        const cf_axis_grid grid = cf_strategy_grid(s, a);
        const cf_axis_window gx = cf_axis_window_make(&layer->axis[a], &grid, CF_ROLE_GX);
        folds = folds || cf_axis_folds(&layer->axis[a], &grid);
        overlaps = overlaps || cf_window_overlaps(&gx);
        covers = covers && cf_window_covers(&gx);
    }
    /* Partial sums of overlapping tiles and segments are not rounded to 16 bits. */
    if (folds || (overlaps && layer->x.dtype != layer->compute))
        return CF_GX_FOLDED;
    return overlaps || !covers ? CF_GX_ZEROED : CF_GX_DIRECT;
}

void cf_fold_make(const cf_layer *layer, const bool folds[3], int64_t groups, cf_fold_desc *fold, cf_tensor *scratch) {
    *fold = (cf_fold_desc){.tensor = layer->x,
                           .scratch_dtype = layer->compute,
                           .channels = layer->in_channels,
                           .mode = layer->problem.padding};
    for (int a = 0; a < 3; ++a) {
        const cf_axis *const axis = &layer->axis[a];
        fold->size[a] = fold->padded[a] = axis->input;
        if (!folds[a])
            continue;
        fold->pad[a] = axis->pad_before;
        fold->padded[a] += axis->pad_before + axis->pad_after;
    }
    fold->row = fold->padded[2];
    *scratch = layer->x;
    scratch->dtype = layer->compute;
    cf_fold_set_strides(fold, groups, scratch);
}

void cf_fold_set_strides(const cf_fold_desc *fold, int64_t groups, cf_tensor *scratch) {
    scratch->axis_stride[2] = 1;
    scratch->axis_stride[1] = fold->row;
    scratch->axis_stride[0] = fold->padded[1] * fold->row;
    scratch->channel_stride = fold->padded[0] * scratch->axis_stride[0];
    scratch->group_stride = fold->channels * scratch->channel_stride;
    scratch->sample_stride = groups * scratch->group_stride;
}

double cf_fold_bytes(const cf_fold_desc *fold, int64_t groups, int64_t samples) {
    return (double)samples * (double)groups * (double)fold->channels * (double)fold->padded[0] *
           (double)fold->padded[1] * (double)fold->row * (double)cf_dtype_bytes(fold->scratch_dtype);
}

bool cf_weights_are_zeroed(const conv_fft_plan *plan) {
    int64_t x[5], y[5], w[5];
    cf_layer_extents(&plan->layer, x, y, w);
    bool trimmed = plan->layer.batch == 0;
    for (int a = 0; a < 3; ++a) /* taps that meet only padding are in no window */
        trimmed = trimmed || plan->layer.axis[a].kernel < w[2 + a];
    return trimmed;
}

conv_fft_status cf_zero_weights(const conv_fft_plan *plan, const cf_call *call) {
    int64_t x[5], y[5], w[5];
    cf_layer_extents(&plan->layer, x, y, w);
    if (!cf_weights_are_zeroed(plan) || (call->flags & CONV_FFT_ACCUMULATE_GW))
        return CONV_FFT_SUCCESS;
    return plan->device->ops->zero(plan->device, &plan->layer.gw, w, call->gw, call->stream);
}

conv_fft_status cf_zero_gx(const conv_fft_plan *plan, const cf_call *c) {
    const cf_layer *layer = &plan->layer;
    int64_t x[5], y[5], w[5];
    if ((c->flags & CONV_FFT_ACCUMULATE_GX) ||
        cf_strategy_gx_store(layer, &plan->pass[CF_PASS_DATA].strategy) != CF_GX_ZEROED)
        return CONV_FFT_SUCCESS;
    cf_layer_extents(layer, x, y, w);
    return plan->device->ops->zero(plan->device, &layer->x, x, c->gx, c->stream);
}
