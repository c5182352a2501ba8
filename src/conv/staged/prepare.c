/* SPDX-License-Identifier: Apache-2.0 */
/* Family `staged`: transform -> product per bin -> inverse, through spectra in the workspace. What it needs at plan time. */
#include "conv/staged/staged.h"

#include "conv/cudnn/cudnn.h"
#include "conv/cufft/cufft.h"
#include "conv/fused/fused.h"
#include "conv/gpu/device.h"
#include "core/arith.h"
#include "core/dtype.h"

#include <string.h>

const cf_pass_row cf_pass_table[CF_PASS_COUNT] = {
    [CF_PASS_FORWARD] = {CF_Y, {CF_ROLE_X, CF_ROLE_W, CF_ROLE_Y}, CF_PRODUCT_FORWARD, "forward"},
    [CF_PASS_DATA] = {CF_X, {CF_ROLE_GX, CF_ROLE_W, CF_ROLE_GY}, CF_PRODUCT_BACKWARD_DATA, "backward data"},
    [CF_PASS_WEIGHTS] = {CF_W, {CF_ROLE_X, CF_ROLE_W, CF_ROLE_Y}, CF_PRODUCT_BACKWARD_WEIGHTS, "backward weights"},
};

cf_window cf_staged_window(const cf_layer *layer, const cf_strategy *s, cf_role role) {
    cf_window window;
    memset(&window, 0, sizeof window);
    for (int a = 0; a < 3; ++a) {
        const cf_axis_grid grid = cf_strategy_grid(s, a);
        window.axis[a] = cf_axis_window_make(&layer->axis[a], &grid, role);
    }
    return window;
}

bool cf_staged_is_cut(const cf_layer *layer, const cf_strategy *s) {
    bool cut = false;
    for (int a = 0; a < 3; ++a) {
        const cf_axis_grid grid = cf_strategy_grid(s, a);
        const cf_unit unit = cf_unit_of(&layer->axis[a], &grid);
        cut = cut || cf_unit_is_cut(&unit);
    }
    return cut;
}

cf_order cf_staged_order(const cf_layer *layer, const cf_strategy *s) {
    const cf_window gx = cf_staged_window(layer, s, CF_ROLE_GX);
    cf_order order = {.ordered = 1, .beside = 1, .between = 1};
    bool tiles = false, beside = true;
    if (cf_staged_is_cut(layer, s))
        order.between = cf_window_phases(&gx);
    for (int a = 2; a >= 0; --a) {
        const cf_axis_grid grid = cf_strategy_grid(s, a);
        const cf_unit unit = cf_unit_of(&layer->axis[a], &grid);
        tiles = tiles || cf_window_overlaps(&gx.axis[a]);
        /* Tiles of the fastest axes do not meet, whatever the phase. */
        beside = beside && !cf_window_overlaps(&gx.axis[a]) && !cf_unit_is_cut(&unit);
        order.beside *= beside ? gx.axis[a].tiles : 1;
    }
    order.ordered = order.between * (tiles ? cf_window_tiles(&gx) * cf_window_shifts(&gx) : 1);
    return order;
}

/* Of one spectrum or of the padded gx: so little that no sum of such sizes, nor scratch for many threads, overflows. */
#define MOST_BYTES ((int64_t)1 << 46)

const char cf_staged_too_large[] =
    "it is too large: its spectra, or the padded input, exceed 64 TiB, or on a GPU an axis "
    "with its padding 2^30 points";

/* The gradient of the weights is a sum of chunks of rows, which 16 bits would round again and again. */
static conv_fft_dtype result_dtype(int pass, conv_fft_dtype spectrum) {
    return pass == CF_PASS_WEIGHTS ? cf_compute_dtype(spectrum) : spectrum;
}

bool cf_staged_spectra(const cf_layer *layer, int pass, const cf_strategy *s, cf_spectrum spectrum[CF_OPERAND_COUNT]) {
    const cf_role *role = cf_pass_table[pass].role;
    const cf_window x = cf_staged_window(layer, s, role[CF_X]), y = cf_staged_window(layer, s, role[CF_Y]);
    int64_t bins = s->basis[0], rows_per_sample = 1;
    if (!cf_multiply(&bins, s->basis[1]) || !cf_multiply(&bins, s->basis[2] / 2 + 1))
        return false;
    for (int a = 0; a < 3; ++a)
        if (!cf_multiply(&rows_per_sample, y.axis[a].tiles) || !cf_multiply(&rows_per_sample, y.axis[a].shifts))
            return false;
    for (int operand = 0; operand < CF_OPERAND_COUNT; ++operand) {
        cf_spectrum *p = &spectrum[operand];
        memset(p, 0, sizeof *p);
        p->dtype = cf_pass_table[pass].result == operand ? result_dtype(pass, s->spectrum) : s->spectrum;
        for (int a = 0; a < 3; ++a)
            p->basis[a] = s->basis[a];
        p->groups = layer->groups;
        p->bins = bins;
        p->channels = operand == CF_Y ? layer->out_channels : layer->in_channels;
        p->columns = p->channels;
        for (int a = 0; a < 3; ++a)
            if (operand != CF_Y && !cf_multiply(&p->columns, x.axis[a].phases))
                return false;
        p->rows_per_sample = operand == CF_W ? 1 : rows_per_sample;
        p->rows = operand == CF_W ? layer->out_channels : layer->batch;
        if (!cf_multiply(&p->rows, p->rows_per_sample))
            return false;
        p->scale_rows = operand == CF_W ? p->rows : p->rows_per_sample;
        int64_t bytes = 2 * (int64_t)cf_dtype_bytes(p->dtype);
        if (!cf_multiply(&bytes, bins) || !cf_multiply(&bytes, p->groups) || !cf_multiply(&bytes, cf_max(1, p->rows)) ||
            !cf_multiply(&bytes, p->columns) || bytes > MOST_BYTES)
            return false;
    }
    return true;
}

static int64_t padded_extent(const cf_axis *axis) { return axis->pad_before + axis->input + axis->pad_after; }

bool cf_staged_short_spectrum(const cf_layer *layer, conv_fft_dtype *spectrum) {
    const bool half = layer->problem.math == CONV_FFT_MATH_HALF && cf_dtype_bytes(layer->x.dtype) == 2;
    if (!half && layer->problem.math != CONV_FFT_MATH_TF32)
        return false;
    *spectrum = half ? layer->x.dtype : CONV_FFT_FP16;
    return true;
}

static bool feasible(const cf_layer *layer, int pass, const cf_strategy *s, const char **why) {
    *why = "its spectrum must have the type of the layer's arithmetic";
    conv_fft_dtype in_short;
    const bool half = cf_staged_short_spectrum(layer, &in_short) && s->spectrum == in_short;
    if (s->spectrum != layer->compute && !half)
        return false;
    *why = "tensor cores multiply spectra of FP32 and of 16 bits only";
    if (s->product == CF_PRODUCT_TENSOR && s->spectrum == CONV_FFT_FP64)
        return false;
    *why = "only tensor cores multiply 16-bit spectra";
    if (half && s->product != CF_PRODUCT_TENSOR)
        return false;
    static const cf_role results[CF_PASS_COUNT] = {CF_ROLE_Y, CF_ROLE_GX, CF_ROLE_W};
    for (int a = 0; a < 3; ++a) {
        const cf_axis_grid grid = cf_strategy_grid(s, a);
        *why = "a basis must be a product of powers of 2, 3, 5 and 7";
        if (!cf_is_basis(grid.basis))
            return false;
        *why = "a basis is too small for its tiles, or there are more tiles than input positions or more segments than "
               "taps";
        if (!cf_grid_fits(&layer->axis[a], &grid, results[pass]))
            return false;
    }
    if (pass == CF_PASS_DATA && cf_staged_is_cut(layer, s)) {
        const cf_window gx = cf_staged_window(layer, s, CF_ROLE_GX);
        *why = "backward data has segments with dilation=shift or with several tiles, not with both";
        if (cf_window_tiles(&gx) > 1 && cf_window_shifts(&gx) > 1)
            return false;
        *why = "backward data has no segments with spectra of FP16, whose scales serve whole rows";
        if (cf_spectrum_is_scaled(s->spectrum))
            return false;
    }
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    *why = cf_staged_too_large;
    int64_t padded = 8 * cf_max(1, layer->batch);
    bool fits = cf_multiply(&padded, layer->groups) && cf_multiply(&padded, layer->in_channels);
    for (int a = 0; a < 3; ++a)
        fits =
            fits && cf_multiply(&padded, layer->problem.padding == CONV_FFT_PAD_ZEROS ? layer->axis[a].input
                                                                                      : padded_extent(&layer->axis[a]));
    return fits && padded <= MOST_BYTES && cf_staged_spectra(layer, pass, s, spectrum);
}

/* The kernels of a GPU count elements of an axis in 32 bits. */
static bool within_reach(const cf_layer *layer, int pass, const cf_strategy *s) {
    for (int operand = 0; operand < CF_OPERAND_COUNT; ++operand) {
        const cf_window window = cf_staged_window(layer, s, cf_pass_table[pass].role[operand]);
        if (!cf_tile_reaches(&window))
            return false;
    }
    return true;
}

static bool runs_on(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *s, const char **why) {
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    if (s->product == CF_PRODUCT_TENSOR) {
        *why = "it has no tensor cores";
        if (device->tensor_flops <= 0.0)
            return false;
        *why = "its products are too large for tensor cores";
        const int64_t most = (int64_t)1 << 30;
        if (!cf_staged_spectra(layer, pass, s, spectrum) || spectrum[CF_X].rows > most ||
            spectrum[CF_X].columns > most || spectrum[CF_Y].columns > most ||
            spectrum[CF_X].bins > most / spectrum[CF_X].groups)
            return false;
    }
    *why = cf_staged_too_large;
    if (cf_gpu_of_layers(device) && !within_reach(layer, pass, s))
        return false;
    *why = "the GPU has no transforms that large (256 points an axis; of one axis 16384, in FP64 8192; in 16 bits "
           "what two kernels do); longer kernels take segments";
    return device->ops->transforms(device, s->basis, s->spectrum);
}

cf_gx_store cf_staged_gx_store(const cf_layer *layer, const cf_strategy *s) {
    bool folds = false, overlaps = cf_staged_is_cut(layer, s), covers = true;
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

/* Turn the description of gx's inverse into one that stores into the padded scratch, and describe the fold. */
static void fold_gx(const conv_fft_plan *plan, cf_pass_plan *pass, cf_transform_desc *gx) {
    const cf_layer *layer = &plan->layer;
    cf_fold_desc *fold = &pass->fold;
    fold->tensor = layer->x;
    fold->scratch_dtype = layer->compute;
    fold->channels = layer->in_channels;
    fold->mode = layer->problem.padding;
    for (int a = 0; a < 3; ++a) {
        const cf_axis *axis = &layer->axis[a];
        const cf_axis_grid grid = cf_strategy_grid(&pass->strategy, a);
        const bool folds = cf_axis_folds(axis, &grid);
        fold->size[a] = fold->padded[a] = axis->input;
        if (!folds)
            continue;
        fold->pad[a] = axis->pad_before;
        fold->padded[a] += axis->pad_before + axis->pad_after;
        gx->window.axis[a] = cf_window_padded(axis, &gx->window.axis[a]);
    }
    cf_tensor *t = &gx->tensor;
    t->dtype = layer->compute;
    t->axis_stride[2] = 1;
    t->axis_stride[1] = fold->padded[2];
    t->axis_stride[0] = fold->padded[1] * t->axis_stride[1];
    t->channel_stride = fold->padded[0] * t->axis_stride[0];
    t->group_stride = layer->in_channels * t->channel_stride;
    t->sample_stride = plan->chunk_groups * t->group_stride;
}

/* Segments of gx overlap, so they are stored one after the other, as tiles are: the product's [row][phase][channel] is read as
 * [row, phase][channel]. */
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

/* Equal descriptions of transforms of the same operand of the same layer. */
static bool descs_equal(const cf_transform_desc *a, const cf_transform_desc *b) {
    for (int i = 0; i < 3; ++i) {
        if (a->spectrum.basis[i] != b->spectrum.basis[i] || !axes_equal(&a->window.axis[i], &b->window.axis[i]))
            return false;
        if (a->tensor.axis_stride[i] != b->tensor.axis_stride[i])
            return false;
    }
    return a->inverse == b->inverse && a->ordered == b->ordered && a->tensor.dtype == b->tensor.dtype &&
           a->tensor.sample_stride == b->tensor.sample_stride && a->tensor.channel_stride == b->tensor.channel_stride &&
           a->tensor.group_stride == b->tensor.group_stride && a->spectrum.dtype == b->spectrum.dtype &&
           a->spectrum.rows == b->spectrum.rows && a->spectrum.columns == b->spectrum.columns &&
           a->spectrum.rows_per_sample == b->spectrum.rows_per_sample && a->spectrum.channels == b->spectrum.channels;
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
    cf_staged_spectra(layer, index, &pass->strategy, pass->spectrum);
    pass->product = (cf_product_desc){.kind = row->product,
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
        desc.window = cf_staged_window(layer, &pass->strategy, row->role[operand]);
        desc.spectrum = pass->spectrum[operand];
        desc.scale = 1.0;
        if (desc.inverse) {
            for (int a = 0; a < 3; ++a)
                desc.scale /= (double)desc.spectrum.basis[a];
        }
        if (index == CF_PASS_DATA && operand == CF_X) {
            const cf_order order = cf_staged_order(layer, &pass->strategy);
            desc.ordered = order.ordered;
            desc.beside = order.beside;
            desc.between = order.between;
            pass->gx_store = cf_staged_gx_store(layer, &pass->strategy);
            pass->gx_phases = 1;
            if (pass->gx_store == CF_GX_FOLDED)
                fold_gx(plan, pass, &desc);
            if (cf_staged_is_cut(layer, &pass->strategy))
                phases_as_rows(pass, &desc);
        }
        CF_FORWARD(get_transform(plan, &desc, &pass->transform[operand]));
    }
    return CONV_FFT_SUCCESS;
}

/* Bytes of the part of a spectrum that `rows` rows and one chunk of groups have. */
static size_t part(const conv_fft_plan *plan, const cf_spectrum *s, int64_t rows) {
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
        *own = part(plan, &s[CF_W], s[CF_W].rows);
        x = (size_t)cf_max((int64_t)x, (int64_t)part(plan, &s[CF_X], rows));
        y = (size_t)cf_max((int64_t)y, (int64_t)part(plan, &s[CF_Y], rows));
        if (i == CF_PASS_DATA && pass->gx_store == CF_GX_FOLDED) {
            const int64_t samples = cf_max(1, rows / s[CF_X].rows_per_sample);
            const cf_fold_desc *f = &pass->fold;
            fold = cf_align(
                (size_t)(samples * plan->chunk_groups * f->channels * f->padded[0] * f->padded[1] * f->padded[2]) *
                cf_dtype_bytes(f->scratch_dtype));
        }
        for (int operand = 0; operand < CF_OPERAND_COUNT; ++operand) {
            /* The weights serve all chunks. */
            const int64_t own_rows = operand == CF_W                        ? s[CF_W].rows
                                     : operand == CF_X && i == CF_PASS_DATA ? rows * pass->gx_phases
                                                                            : rows;
            const size_t bytes = cf_align(plan->device->ops->transform_scratch(pass->transform[operand], own_rows));
            if (bytes > scratch)
                scratch = bytes;
        }
    }
    ws.gw = ws.w + w;
    ws.x = ws.gw + gw;
    ws.y = ws.x + x;
    ws.fold = ws.y + y;
    ws.scratch = ws.fold + fold;
    ws.bytes = ws.scratch + scratch + CF_WORKSPACE_SLACK;
    return ws;
}

const cf_family cf_families[CF_FAMILY_COUNT] = {
    [CF_FAMILY_STAGED] =
        {.feasible = feasible, .runs_on = runs_on, .prepare = prepare, .workspace = workspace, .run = cf_staged_run},
    [CF_FAMILY_FUSED] = {.feasible = cf_fused_feasible,
                         .runs_on = cf_fused_runs_on,
                         .prepare = cf_fused_prepare,
                         .build = cf_fused_build,
                         .release = cf_fused_release,
                         .workspace = cf_fused_workspace,
                         .run = cf_fused_run,
                         .shares_gy = cf_fused_shares_gy},
    [CF_FAMILY_REFERENCE] = CF_FAMILY_OF(cf_reference),
    [CF_FAMILY_DIRECT] = CF_FAMILY_OF(cf_direct),
};
