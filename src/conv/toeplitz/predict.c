/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a Toeplitz pass: memory, or the cycles of a multiprocessor for each tile. The figures are from
 * measurements on an H100. */
#include "conv/gpu/device.h"
#include "conv/plan/cost/stage_cost.h"
#include "conv/plan/padded.h"
#include "conv/toeplitz/toeplitz.h"
#include "core/arith.h"
#include "core/dtype.h"

#include <math.h>

/* Cycles of a multiprocessor for each copy of a thread, each instruction of a warp, and each plane of a tile. */
static const double copy = 0.65, single_copy = 2.4, transposed_copy = 0.44, store = 0.4, ldmatrix = 4.0, mma = 2.2,
                    plane = 60.0;

/* Lines with channels last: copies and stores wait for each other, and products run beside them. Factors of both. */
static const double line_copies = 1.5, line_products = 0.5;

/* The same for FP32 signals: for each TF32 product, each chain of gw, each operand, and each of its terms. Planes leave
 * a multiprocessor idle more often than lines: a factor for their rows, and cycles for each term of a warp of gw. */
static const double tf32 = 1.4, chain = 2.5, operand = 0.6, term = 1.4, idle_rows = 1.5, gw_idle_rows = 1.15,
                    gw_idle = 140.0;

/* Padding modes: cycles for the padding of a whole plane, shared by its warps, or for each row of another tile, which
 * has borders that are loaded element by element; {signals, gradients of weights}. And for each element of a plane that
 * is folded in its block. */
static const double padded_plane = 350.0, padded_row[2] = {31.0, 67.0}, folded_element = 0.2;

enum {
    WARPS = 8 /* that planes need on a multiprocessor */
};

static double copies(const cf_toeplitz_config *c, const cf_toeplitz_access *a) {
    const double each = (double)cf_max(a->numbers / 4, a->granule);
    if (c->last)
        return transposed_copy * 4.0 * cf_toeplitz_tile_of(a->rows, a->units, a->step).loaded;
    const double count = a->whole ? a->height * ceil(a->breadth / each)
                                  : cf_toeplitz_tile_of(a->rows, a->units, a->step).loaded * (a->numbers / each);
    return (a->granule == each ? copy : single_copy) * count;
}

/* Small planes: cycles of a multiprocessor for eight samples of a channel, of which each element and each product takes
 * some, and a factor for channels last. Forward or gx, and gw. */
static const double eight[2] = {130.0, 290.0}, small_element[2] = {1.1, 1.0}, small_product[2] = {3.2, 7.6},
                    small_last[2] = {2.0, 1.5};

static double small_cycles(const cf_toeplitz_config *c) {
    const cf_toeplitz_bands b = cf_toeplitz_small_bands(c);
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    double products = 0;
    for (int delta = b.first; delta <= b.last; ++delta)
        for (int q = 0; q < b.y_blocks; ++q)
            products += cf_toeplitz_met(b, q, delta) >= 0;
    return (c->last ? small_last[weights] : 1.0) *
           (eight[weights] + small_element[weights] * (c->x.height * c->x.breadth + c->y.height * c->y.breadth) +
            small_product[weights] * products);
}

/* Reads and products of the warps of a tile. */
static double product_cycles(const cf_toeplitz_config *c) {
    const double warps = c->warps;
    if (c->pass == CF_PASS_WEIGHTS)
        return warps * c->across *
               (ldmatrix * (c->shares + c->kernel[0] * ((c->reach + 1) / 2)) + mma * c->kernel[0] * c->reach);
    const int inputs = cf_toeplitz_window((int)cf_ceil_div(c->blocks, c->up[1]), c->stride[1], c->steps);
    return warps * c->count * c->kernel[0] * (ldmatrix * inputs / 2.0 + mma * c->steps * c->blocks) *
           (c->line ? 1.1 : 1.0);
}

static double fp32_product_cycles(const cf_toeplitz_config *c, const cf_gpu_properties *p) {
    const double warps = c->warps, each = operand + term * c->terms, product = tf32 * (c->terms > 1 ? 3.0 : 1.0);
    const int64_t resident = c->warps * cf_max(1, p->shared_per_multiprocessor / (c->shared + 1024));
    const double busy = c->line ? 1.0 : fmax(1.0, WARPS / (double)resident);
    if (c->pass == CF_PASS_WEIGHTS) {
        const double operands = (2.0 * c->stride[1] * (c->together - 1) + c->reach) / c->together,
                     row = each * operands + (2.0 * product + chain) * c->reach;
        return busy *
               ((c->line ? 0.0 : gw_idle * warps * c->terms) +
                warps * c->across * (2.0 * ldmatrix * c->shares + c->kernel[0] * row * (c->line ? 1.0 : gw_idle_rows)));
    }
    const double spans = ceil((double)c->steps / c->span), operands = spans * (c->blocks - 1) * c->stride[1] + c->steps;
    return busy * warps * c->count * c->kernel[0] * (each * operands + product * c->steps * c->blocks) *
           (c->line ? 1.1 : idle_rows);
}

static double padding_cycles(const cf_toeplitz_config *c) {
    if (c->folded)
        return folded_element * (double)(c->fold.size[1] * c->fold.size[2]);
    if (c->mode == CONV_FFT_PAD_ZEROS)
        return 0.0;
    return c->x.whole ? padded_plane / c->warps : padded_row[c->pass == CF_PASS_WEIGHTS] * c->x.rows;
}

static double tile_cycles(const cf_toeplitz_config *c, const cf_gpu_properties *p) {
    const double products = (c->dtype == CONV_FFT_FP32 ? fp32_product_cycles(c, p) : product_cycles(c)) +
                            (c->last ? 0.0 : padding_cycles(c));
    if (c->pass == CF_PASS_WEIGHTS)
        return plane + copies(c, &c->x) + copies(c, &c->y) + products;
    const double stores = c->warps * 16.0 * c->width * c->up[0];
    if (c->last && c->line)
        return plane + line_copies * (copies(c, &c->x) + transposed_copy * stores / 2.0) + line_products * products;
    return plane + copies(c, &c->x) + products +
           (c->last ? transposed_copy * stores / 2.0 : store * stores / (double)cf_max(c->y.numbers / 4, c->y.granule));
}

/* Cycles of a second. */
static double clock_of(const cf_gpu *gpu) { return 0.89e3 * (double)gpu->properties.clock_khz; }

/* The time of all tiles, each of so many cycles. With few blocks, multiprocessors are idle. */
static double tiles_seconds(const cf_device *device, const cf_gpu *gpu, const cf_toeplitz_config *c, double cycles) {
    const double processors = (double)gpu->properties.multiprocessors, blocks = (double)c->grid[0] * (double)c->grid[1],
                 tiles = c->small
                             ? ceil((double)c->samples / 8) * (double)c->groups
                             : (double)c->samples * (double)c->groups * (double)c->tiles_down * (double)c->tiles_across;
    return device->stage_seconds + tiles * cycles / (fmin(1.0, blocks / processors) * clock_of(gpu) * processors);
}

void cf_toeplitz_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                         cf_stage_cost cost[CF_STAGE_COUNT]) {
    (void)strategy;
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    cf_toeplitz_config c;
    cf_fold_desc fold;
    const cf_layer padded = cf_layer_padded_same_type(layer, pass, &fold);
    const bool folded = cf_toeplitz_folds_planes(layer, pass);
    cf_stage_cost whole = cf_cost_definition(folded ? layer : &padded, pass);
    if (cf_layer_folds(layer, pass) && !folded) {
        const double bytes = cf_fold_bytes(&fold, layer->groups, layer->batch);
        cost[CF_STAGE_FOLD_GX] = cf_cost_of(device, 2.0 * bytes, 0.0, 1.0);
    }
    whole.seconds = cf_cost_of(device, whole.bytes, 0.0, 1.0).seconds;
    if (gpu && layer->batch > 0 &&
        cf_toeplitz_configure(layer, pass, &gpu->properties, false, &c) == CONV_FFT_SUCCESS) {
        const double clock = clock_of(gpu), processors = (double)gpu->properties.multiprocessors;
        if (c.in_place)
            whole.seconds += cf_toeplitz_cycles_in_place(&padded, &c, processors) / clock;
        else if (c.aligned)
            whole.seconds =
                fmax(whole.seconds, device->stage_seconds + cf_toeplitz_cycles_lines_last(&c, processors) / clock);
        else if (c.by_rows)
            whole.seconds =
                fmax(whole.seconds, device->stage_seconds + cf_toeplitz_cycles_rows(&c, processors) / clock);
        else if (c.depths)
            whole.seconds =
                fmax(whole.seconds, device->stage_seconds + cf_toeplitz_volume_cycles(&c, &gpu->properties) / clock);
        else
            whole.seconds =
                fmax(whole.seconds,
                     tiles_seconds(device, gpu, &c, c.small ? small_cycles(&c) : tile_cycles(&c, &gpu->properties)));
        if (cf_toeplitz_adds(&c))
            whole.seconds += device->stage_seconds;
    }
    cost[cf_cost_whole_passes[pass]] = whole;
}

/* Tensors go through memory once, gy too. A block copies the tile of gy once. */
double cf_toeplitz_saved_seconds(const cf_layer *layer, const cf_device *device, const cf_strategy *data,
                                 const cf_strategy *weights) {
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    cf_toeplitz_both both;
    if (!gpu || layer->batch == 0 || !cf_toeplitz_configure_both(layer, &gpu->properties, false, &both))
        return 0.0;
    if (both.weights.in_place) /* the blocks are as busy as those of two kernels */
        return cf_cost_of(device, cf_cost_gy_bytes(layer), 0.0, 1.0).seconds;
    const cf_stage_cost apart = cf_cost_gradients(layer, device, data, weights);
    const cf_toeplitz_config *d = &both.data, *w = &both.weights;
    double seconds;
    if (w->aligned)
        seconds = device->stage_seconds +
                  cf_toeplitz_cycles_both_lines_last(&both, (double)gpu->properties.multiprocessors) / clock_of(gpu);
    else
        seconds = tiles_seconds(device, gpu, w,
                                tile_cycles(d, &gpu->properties) + tile_cycles(w, &gpu->properties) - plane -
                                    copies(w, &w->y));
    seconds = fmax(cf_cost_of(device, apart.bytes, 0.0, 1.0).seconds, seconds);
    if (cf_toeplitz_adds(w))
        seconds += device->stage_seconds;
    return fmax(0.0, apart.seconds - seconds);
}
