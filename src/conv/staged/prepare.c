/* SPDX-License-Identifier: Apache-2.0 */
/* Family `staged`: transform, product per bin, inverse, through spectra in the workspace. This file makes what a plan
 * needs. */
#include "conv/staged/staged.h"

#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "fbfft/shared_memory/config.h"

#include <string.h>

/* The kernels of a GPU count elements of an axis in 32 bits. */
static bool within_reach(const cf_layer *layer, int pass, const cf_strategy *s) {
    for (int operand = 0; operand < CF_OPERAND_COUNT; ++operand) {
        const cf_window window = cf_strategy_window(layer, s, cf_pass_table[pass].role[operand]);
        if (!cf_shared_fft_reaches(&window))
            return false;
    }
    return true;
}

/* The limit of conv/gpu/backend.c that the basis exceeds. */
static const char *large_basis(const cf_strategy *s) {
    const int64_t *n = s->basis;
    const bool line = n[0] * n[cf_strategy_axis(s, 1)] == 1, is_double = s->spectrum == CONV_FFT_FP64;
    const int64_t longest = !line ? 256 : is_double ? 8192 : 16384;
    if (n[0] <= longest && n[1] <= longest && n[2] <= longest)
        return "the basis is too large for the GPU's transforms: with 16-bit spectra a block must hold it without its "
               "first axis; longer kernels need segments";
    return !line ? "the basis is too large for the GPU's transforms: with several axes they have up to 256 points "
                   "an axis; longer kernels need segments"
           : is_double ? "the basis is too large for the GPU's transforms: in FP64 they have up to 8192 points; longer "
                         "kernels need segments"
                       : "the basis is too large for the GPU's transforms: of one axis they have up to 16384 points; "
                         "longer kernels need segments";
}

static bool runs_on(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *s, const char **why) {
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    if (s->product == CF_CGEMM_TENSOR) {
        *why = "it has no tensor cores";
        if (device->tensor_flops <= 0.0)
            return false;
        *why = "its products are too large for tensor cores";
        const int64_t limit = (int64_t)1 << 30;
        if (!cf_strategy_spectra(layer, pass, s, spectrum) || spectrum[CF_X].rows > limit ||
            spectrum[CF_X].columns > limit || spectrum[CF_Y].columns > limit ||
            spectrum[CF_X].bins > limit / spectrum[CF_X].groups)
            return false;
    }
    *why = cf_large_axis;
    if (device->is_gpu && !within_reach(layer, pass, s))
        return false;
    *why = large_basis(s);
    const int64_t basis[3] = {s->basis[0], s->basis[cf_strategy_axis(s, 1)], s->basis[cf_strategy_axis(s, 2)]};
    return device->ops->transforms(device, basis, s->spectrum);
}

/* Change the description of gx's inverse so that it stores into the padded scratch, and describe the fold. */
static void fold_gx(const conv_fft_plan *plan, cf_pass_plan *pass, cf_transform_desc *gx) {
    const cf_layer *layer = &plan->layer;
    bool folds[3];
    for (int a = 0; a < 3; ++a) {
        const int own = cf_strategy_axis(&pass->strategy, a);
        const cf_axis *axis = &layer->axis[own];
        const cf_axis_grid grid = cf_strategy_grid(&pass->strategy, own);
        folds[own] = cf_axis_folds(axis, &grid);
        if (folds[own])
            gx->window.axis[a] = cf_window_padded(axis, &gx->window.axis[a]);
    }
    cf_fold_make(layer, folds, plan->chunk_groups, &pass->fold, &gx->tensor);
}

/* Segments of gx overlap, so they are stored one after the other, as tiles are. The product's [row][phase][channel]
 * is read as [row, phase][channel]. */
static void phases_as_rows(cf_pass_plan *pass, cf_transform_desc *gx) {
    cf_spectrum *s = &gx->spectrum;
    pass->gx_phases = cf_window_phases(&gx->window);
    for (int a = 0; a < 3; ++a)
        gx->window.axis[a] = cf_window_phases_as_tiles(&gx->window.axis[a]);
    s->rows *= pass->gx_phases;
    s->rows_per_sample *= pass->gx_phases;
    s->columns = s->channels;
}

static bool axes_equal(const cf_axis_window *a, const cf_axis_window *b) {
    return a->first == b->first && a->spread == b->spread && a->count == b->count && a->origin == b->origin &&
           a->step == b->step && a->tiles == b->tiles && a->tile_step == b->tile_step && a->shifts == b->shifts &&
           a->shift_step == b->shift_step && a->phases == b->phases && a->phase_step == b->phase_step &&
           a->lower == b->lower && a->upper == b->upper && a->size == b->size && a->mode == b->mode;
}

/* Whether two descriptions of transforms of the same operand are equal. */
static bool descs_equal(const cf_transform_desc *a, const cf_transform_desc *b) {
    for (int i = 0; i < 3; ++i) {
        if (a->spectrum.basis[i] != b->spectrum.basis[i] || !axes_equal(&a->window.axis[i], &b->window.axis[i]))
            return false;
        if (a->tensor.axis_stride[i] != b->tensor.axis_stride[i])
            return false;
    }
    return a->inverse == b->inverse && a->ordered == b->ordered && a->tensor.dtype == b->tensor.dtype &&
           a->tensor.fp32_bias == b->tensor.fp32_bias && a->tensor.sample_stride == b->tensor.sample_stride &&
           a->tensor.channel_stride == b->tensor.channel_stride && a->tensor.group_stride == b->tensor.group_stride &&
           a->spectrum.dtype == b->spectrum.dtype && a->spectrum.rows == b->spectrum.rows &&
           a->spectrum.columns == b->spectrum.columns && a->spectrum.rows_per_sample == b->spectrum.rows_per_sample &&
           a->spectrum.channels == b->spectrum.channels;
}

static conv_fft_status get_transform(conv_fft_plan *plan, const cf_transform_desc *desc, cf_transform **transform) {
    for (int i = 0; i < plan->transform_count; ++i) {
        if (!descs_equal(&plan->transforms[i].desc, desc))
            continue;
        *transform = plan->transforms[i].transform;
        return CONV_FFT_SUCCESS;
    }
    CF_FORWARD(plan->device->ops->transform_create(plan->device, desc, transform));
    plan->transforms[plan->transform_count++] = (cf_transform_entry){*desc, *transform};
    return CONV_FFT_SUCCESS;
}

static conv_fft_status prepare(conv_fft_plan *plan, int index) {
    const cf_layer *layer = &plan->layer;
    const cf_pass_row *row = &cf_pass_table[index];
    cf_pass_plan *pass = &plan->pass[index];
    cf_strategy_spectra(layer, index, &pass->strategy, pass->spectrum);
    pass->product = (cf_cgemm_desc){.kind = row->product,
                                    .variant = pass->strategy.product,
                                    .dtype = pass->strategy.spectrum,
                                    .result_dtype = pass->spectrum[row->result].dtype,
                                    .math = layer->problem.math,
                                    .bins = pass->spectrum[CF_X].bins,
                                    .in_columns = pass->spectrum[CF_X].columns,
                                    .out_columns = pass->spectrum[CF_Y].columns,
                                    .rows = pass->spectrum[CF_X].rows,
                                    .groups = plan->chunk_groups};
    const cf_tensor *const tensors[CF_OPERAND_COUNT] = {&layer->x, index == CF_PASS_WEIGHTS ? &layer->gw : &layer->w,
                                                        &layer->y};
    for (int operand = 0; operand < CF_OPERAND_COUNT; ++operand) {
        cf_transform_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.inverse = operand == row->result;
        desc.tensor = *tensors[operand];
        desc.window = cf_strategy_window(layer, &pass->strategy, row->role[operand]);
        desc.spectrum = pass->spectrum[operand];
        desc.scale = 1.0;
        if (desc.inverse) {
            for (int a = 0; a < 3; ++a)
                desc.scale /= (double)desc.spectrum.basis[a];
        }
        if (index == CF_PASS_DATA && operand == CF_X) {
            const cf_order order = cf_strategy_order(layer, &pass->strategy);
            desc.ordered = order.ordered;
            desc.beside = order.beside;
            desc.between = order.between;
            pass->gx_store = cf_strategy_gx_store(layer, &pass->strategy);
            pass->gx_phases = 1;
            if (pass->gx_store == CF_GX_FOLDED)
                fold_gx(plan, pass, &desc);
            if (cf_strategy_has_segments(layer, &pass->strategy))
                phases_as_rows(pass, &desc);
        }
        desc.tensor = cf_strategy_tensor(&pass->strategy, &desc.tensor);
        CF_FORWARD(get_transform(plan, &desc, &pass->transform[operand]));
    }
    return CONV_FFT_SUCCESS;
}

/* Bytes that `rows` rows and one chunk of groups have in a spectrum. */
static size_t chunk_bytes(const conv_fft_plan *plan, const cf_spectrum *s, int64_t rows) {
    return cf_align(cf_spectrum_bytes(s, plan->chunk_groups, rows));
}

static cf_workspace workspace(const conv_fft_plan *plan, int set, int64_t rows) {
    cf_workspace ws = {0};
    ws.rows = rows;
    size_t w = 0, gw = 0, x = 0, y = 0, fold = 0, scratch = 0;
    for (int i = 0; i < CF_PASS_COUNT; ++i) {
        if (!(set & 1 << i))
            continue;
        const cf_pass_plan *pass = &plan->pass[i];
        const cf_spectrum *s = pass->spectrum;
        size_t *own = i == CF_PASS_WEIGHTS ? &gw : &w;
        *own = chunk_bytes(plan, &s[CF_W], s[CF_W].rows);
        x = (size_t)cf_max((int64_t)x, (int64_t)chunk_bytes(plan, &s[CF_X], rows));
        y = (size_t)cf_max((int64_t)y, (int64_t)chunk_bytes(plan, &s[CF_Y], rows));
        if (i == CF_PASS_DATA && pass->gx_store == CF_GX_FOLDED) {
            const int64_t samples = cf_max(1, rows / s[CF_X].rows_per_sample);
            fold = cf_align((size_t)cf_fold_bytes(&pass->fold, plan->chunk_groups, samples));
        }
        for (int operand = 0; operand < CF_OPERAND_COUNT; ++operand) {
            /* The spectrum of the weights serves all chunks. */
            const int64_t own_rows = operand == CF_W                        ? s[CF_W].rows
                                     : operand == CF_X && i == CF_PASS_DATA ? rows * pass->gx_phases
                                                                            : rows;
            const size_t bytes = cf_align(plan->device->ops->transform_scratch(pass->transform[operand], own_rows));
            scratch = (size_t)cf_max((int64_t)scratch, (int64_t)bytes);
        }
        if (plan->device->ops->product_scratch)
            scratch = (size_t)cf_max(
                (int64_t)scratch, (int64_t)cf_align(plan->device->ops->product_scratch(plan->device, &pass->product)));
    }
    ws.gw = ws.w + w;
    ws.x = ws.gw + gw;
    ws.y = ws.x + x;
    ws.fold = ws.y + y;
    ws.scratch = ws.fold + fold;
    ws.bytes = ws.scratch + scratch + CF_WORKSPACE_SLACK;
    return ws;
}

const cf_family cf_staged_family = {.name = "staged",
                                    .fields = (1u << (CF_FIELD_KEEP + 1)) - 1,
                                    .search_space = CF_SEARCH_SPECTRA,
                                    .feasible = cf_strategy_suits_spectra,
                                    .runs_on = runs_on,
                                    .prepare = prepare,
                                    .workspace = workspace,
                                    .run = cf_staged_run,
                                    .predict = cf_cost_spectra,
                                    .sums_bias = cf_staged_sums_bias};
