/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers the family computes, how a pass is divided into blocks, and the text of its kernels. */
#include "conv/toeplitz/toeplitz.h"

#include "conv/gpu/slice_adder.h"
#include "conv/plan/padded.h"
#include "conv/toeplitz/call.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "core/text.h"
#include "cuda/jit/kernel_sources.h"
#include "fbfft/common/kernel_text.h"
#include "fbfft/warp/config.h"

enum {
    MAX_TAPS = 256, /* of a row */
    MAX_FP32_TAPS = 128,
    MAX_ROWS = 31, /* of a kernel */
    MAX_STRIDE = 4,
    MAX_EXTENT = 1 << 28,
    HELD_FRAGMENTS = 32, /* of B, in the registers of a thread; more are in shared memory */
    HELD_TERMS = 18,     /* the same for FP32 signals, counted for each term */
    MAX_SUMS = 112,      /* of D, in the registers of a thread */
    FEW_SUMS = 88,       /* the same, channels first, if two shares have no more: that is faster */
    MAX_WARPS = 16       /* of a block for the gradient of the weights */
};

/* ---------------------------------------------------------------------------------------------------------- layers */

static bool is_short(conv_fft_dtype dtype) { return dtype == CONV_FFT_FP16 || dtype == CONV_FFT_BF16; }

/* Of FP32 numbers in TF32 products. */
static int terms_of(const cf_layer *layer) {
    return layer->x.dtype == CONV_FFT_FP32 && layer->problem.math == CONV_FFT_MATH_FP32 ? 2 : 1;
}

/* Units of eight columns. */
static int units_of_block(const cf_toeplitz_config *c) { return 8 / c->x.numbers; }

/* Whether rows have neighbouring elements (1) or neighbouring channels (2); 0: neither. */
static int layout_of(const cf_layer *layer, const cf_tensor *t) {
    if (t->axis_stride[2] == 1)
        return 1;
    return t->group_stride == 1 && layer->groups > 1 ? 2 : 0;
}

static bool fits_int(const cf_axis *a, const cf_tensor *t) {
    int64_t reach = 1;
    for (int i = 1; i < 3; ++i)
        reach += cf_max(a[i].input, a[i].output) * (t->axis_stride[i] < 0 ? -t->axis_stride[i] : t->axis_stride[i]);
    return reach < INT32_MAX;
}

/* The padding of planes. */
static conv_fft_padding mode_of(const cf_layer *layer) {
    return layer->axis[1].mode != CONV_FFT_PAD_ZEROS ? layer->axis[1].mode : layer->axis[2].mode;
}

static bool serves(const cf_layer *layer, int pass, const char **why) {
    *why = "toeplitz computes layers of single channels in FP32, FP16 and BF16";
    if (layer->in_channels != 1 || layer->out_channels != 1 || layer->compute != CONV_FFT_FP32)
        return false;
    *why = "toeplitz rounds FP32 weights of 16-bit signals, which math HALF allows";
    if (pass != CF_PASS_WEIGHTS && is_short(layer->x.dtype) && layer->w.dtype == CONV_FFT_FP32 &&
        layer->problem.math != CONV_FFT_MATH_HALF)
        return false;
    *why = "toeplitz computes layers without dilation";
    for (int a = 1; a < 3; ++a)
        if (layer->axis[a].dilation != 1 && layer->axis[a].kernel > 1)
            return false;
    *why = "toeplitz computes gradients of x with a stride in 16 bits";
    if (pass == CF_PASS_DATA && !is_short(layer->x.dtype) &&
        ((layer->axis[1].stride > 1 && !cf_toeplitz_is_trivial(&layer->axis[1])) || layer->axis[2].stride > 1))
        return false;
    *why = "toeplitz computes up to 31 rows of 256 taps, strides up to 4 and extents up to 2^28";
    for (int a = 1; a < 3; ++a)
        if (layer->axis[a].kernel > (a == 1 ? MAX_ROWS : MAX_TAPS) || layer->axis[a].stride > MAX_STRIDE ||
            layer->axis[a].input > MAX_EXTENT || layer->axis[a].output > MAX_EXTENT || layer->axis[a].input < 1 ||
            layer->axis[a].output < 1)
            return false;
    *why = "toeplitz computes FP32 rows of up to 128 taps, with math TF32 of up to 256";
    if (terms_of(layer) > 1 && layer->axis[2].kernel > MAX_FP32_TAPS)
        return false;
    *why = "toeplitz computes tensors whose rows or, of 16 bits, whose channels are contiguous";
    const int layout = layout_of(layer, &layer->x);
    if (!layout || (layout == 2 && !is_short(layer->x.dtype)) || layout != layout_of(layer, &layer->y))
        return false;
    *why = "toeplitz counts the elements of a sample with 31 bits";
    if (!fits_int(layer->axis, &layer->x) || !fits_int(layer->axis, &layer->y))
        return false;
    /* An axis whose only output reads padding is not trivial. */
    return (cf_toeplitz_is_trivial(&layer->axis[0]) && layer->axis[0].pad_before == 0) ||
           cf_toeplitz_serves_volumes(layer, why);
}

bool cf_toeplitz_serves(const cf_layer *layer, int pass, const char **why) {
    cf_fold_desc fold;
    const cf_layer padded = cf_layer_padded_same_type(layer, pass, &fold);
    const bool through_memory = cf_layer_folds(layer, pass) && !cf_toeplitz_folds_planes(layer, pass);
    *why = "toeplitz rounds the gradient of the padded x to 16 bits, which math HALF allows";
    if (through_memory && is_short(layer->x.dtype) && layer->problem.math != CONV_FFT_MATH_HALF)
        return false;
    *why = "the gradient of the padded x is too large";
    if (through_memory && cf_fold_bytes(&fold, layer->groups, layer->batch) > (double)CF_SPECTRUM_MAX_BYTES)
        return false;
    return serves(&padded, pass, why);
}

/* ----------------------------------------------------------------------------------------------------------- tiles */

/* Elements before the first output, of which each input is `up` elements: so many that copies are aligned. */
static int pad_of(int64_t pad, int up, int granule) {
    const int64_t inputs = -cf_floor_div(-pad, up);
    return (int)(inputs + cf_mod(-inputs, granule));
}

/* Rows of 16 lanes are shared among so many warps, evenly. */
static int warps_of(int64_t rows, int most) {
    const int64_t sixteens = cf_ceil_div(rows, 16), tiles = cf_ceil_div(sixteens, most);
    return (int)cf_ceil_div(sixteens, tiles);
}

/* Units of a row of outputs of a line: so many that the line has 16 rows, or 64 of more than eight units, if it is long
 * enough. */
static int line_units(int64_t outputs, int most) {
    int units = most;
    while (units > 8 && cf_ceil_div(outputs, 8 * units) < 64)
        units /= 2;
    return (int)cf_min(units, cf_max(1, cf_ceil_div(outputs, 8 * 16)));
}

static int64_t tile_bytes(const cf_toeplitz_access *a) {
    return (int64_t)cf_toeplitz_tile_of(a->rows, a->units, a->step).size * CF_TOEPLITZ_UNIT;
}

/* The tile of what is read for outputs of `rows` rows with `width` columns. */
static void set_input(cf_toeplitz_config *c, int units) {
    c->x.rows = c->line ? 16 * c->warps
                        : (16 * c->warps - 1) * c->stride[0] + (c->up[0] - 2 + c->kernel[0] + c->lead_y) / c->up[0] + 1;
    c->x.step = c->line ? c->width / c->x.numbers * c->stride[1] / c->up[1] : 0;
    c->x.units = units;
}

/* The taps of a row, and where the first one stands. Larger copies are better, unless products take more steps. */
static void choose_steps(cf_toeplitz_config *c, int64_t pad) {
    int best = 0;
    for (int granule = c->x.granule; granule >= 1; granule /= 2) {
        const int before = pad_of(pad, c->up[1], c->last ? 1 : (int)cf_max(granule, c->x.numbers / 4)),
                  lead = c->up[1] * before - (int)pad,
                  inputs = (7 * c->stride[1] + 8 * (c->up[1] - 1) + c->kernel[1] + lead - 1) / c->up[1] + 1,
                  steps = (int)cf_ceil_div(inputs, 2 * c->x.numbers);
        if (best != 0 && (steps >= c->steps || (granule == 1 && best > 1) || c->last))
            continue;
        best = granule;
        c->lead = lead;
        c->column_pad = before;
        c->steps = steps;
    }
    c->x.granule = best;
}

static void set_signal_tiles(cf_toeplitz_config *c, int64_t rows, int64_t columns) {
    if (c->line) {
        const int units = line_units(columns, c->last || c->x.numbers == 4 ? 8 : 16);
        c->count = (int)cf_ceil_div(units, 8);
        c->blocks = (int)cf_round_up(cf_ceil_div(units, c->count), c->up[1]);
        c->width = 8 * c->blocks * c->count;
        rows = cf_ceil_div(columns, c->width);
    } else {
        const int64_t units = cf_ceil_div(columns, 8);
        c->tiles_across = cf_ceil_div(units, 8);
        c->blocks = (int)cf_round_up(cf_ceil_div(units, c->tiles_across), c->tiles_across > 1 ? c->up[1] : 1);
        c->count = 1;
        c->width = 8 * c->blocks;
    }
    rows = cf_ceil_div(rows, c->up[0]);
    c->warps = c->last ? 1 : warps_of(rows, 4);
    c->tiles_down = c->line ? 1 : cf_ceil_div(rows, 16 * c->warps);
    if (c->line)
        c->tiles_across = cf_ceil_div(rows, 16 * c->warps);
    c->span = cf_min(c->steps, 4);
    const int stride = c->stride[1] * units_of_block(c);
    set_input(c, (c->count - 1) * c->blocks / c->up[1] * stride +
                     cf_toeplitz_window((int)cf_ceil_div(c->blocks, c->up[1]), stride, c->steps));
}

/* Fragments of B. */
static int fragments_of(const cf_toeplitz_config *c) { return c->kernel[0] * c->steps * c->up[1] * c->terms; }

static int64_t signal_bytes(const cf_toeplitz_config *c) {
    const int rows = 16 * c->warps * (c->folded ? c->up[0] : 1);
    const int64_t out = (int64_t)((rows * cf_toeplitz_out_pitch(c->blocks, c->folded ? 4 : c->x.numbers)) | 1) *
                        CF_TOEPLITZ_UNIT,
                  fragments = c->in_shared_memory ? (int64_t)fragments_of(c) * 256 : 0;
    return c->planes * ((c->last ? 1 : 2) * tile_bytes(&c->x) + out) + fragments * (c->last ? c->planes : 1);
}

static void set_weight_tiles(cf_toeplitz_config *c, int64_t rows, int64_t columns) {
    if (c->line) {
        c->across = (int)cf_max(1, line_units(columns, c->last || c->x.numbers == 4 ? 8 : 16) / 2);
        c->width = 16 * c->across;
        rows = cf_ceil_div(columns, c->width);
    } else {
        const int64_t blocks = cf_ceil_div(columns, 16);
        c->tiles_across = cf_ceil_div(blocks, 4);
        c->across = (int)cf_ceil_div(blocks, c->tiles_across);
        c->width = 16 * c->across;
    }
    /* Planes have so many sums that operands of two terms would spill. */
    c->together = !c->line && c->terms > 1 ? 1 : c->across % 4 == 0 ? 4 : c->across % 2 == 0 ? 2 : 1;
    c->reach = (int)cf_ceil_div(15 * c->stride[1] + c->kernel[1] + c->lead, 8);
    const int of_row = 4 * c->reach, sums = c->kernel[0] * of_row,
              most = !c->last && sums <= 2 * FEW_SUMS ? FEW_SUMS : MAX_SUMS;
    c->shares = (int)cf_ceil_div(sums, cf_max(most, of_row));
    c->of_share = (int)cf_ceil_div(c->kernel[0], c->shares);
    c->shares = (int)cf_ceil_div(c->kernel[0], c->of_share);
    c->warps = c->last ? 1 : warps_of(rows, c->shares > 2 ? 1 : 4);
    c->tiles_down = c->line ? 1 : cf_ceil_div(rows, 16 * c->warps);
    if (c->line)
        c->tiles_across = cf_ceil_div(rows, 16 * c->warps);
    set_input(c, (2 * c->stride[1] * (c->across - 1) + (c->reach + 1) / 2 * 2) * units_of_block(c));
    c->y.rows = 16 * c->warps;
    c->y.units = c->width / c->y.numbers;
    c->y.step = c->line ? c->y.units : 0;
    cf_toeplitz_set_whole(c, &c->y, rows, columns, 0, 0);
}

static int64_t weight_bytes(const cf_toeplitz_config *c) {
    const int64_t tiles = (c->last ? 1 : 2) * c->planes * (tile_bytes(&c->x) + tile_bytes(&c->y)),
                  sums = (int64_t)c->planes * c->warps * c->shares * c->reach * 512;
    return cf_max(tiles, sums);
}

/* Blocks: so many slices of the items that the GPU is busy, with equal shares. */
static conv_fft_status set_grid(cf_toeplitz_config *c, const cf_gpu_properties *p) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const int64_t items = (c->last ? c->samples : cf_ceil_div(c->samples, c->planes)) * c->tiles_down * c->tiles_across,
                  channels = cf_ceil_div(c->groups, c->last ? c->planes : 1);
    const int64_t resident = cf_max(1, cf_min(cf_min(p->threads_per_multiprocessor / c->threads,
                                                     p->shared_per_multiprocessor / (c->shared + 1024)),
                                              p->registers_per_multiprocessor / (128 * c->threads))),
                  wanted = p->multiprocessors * resident * (weights ? 1 : 3);
    const int64_t slices = cf_max(1, cf_min(cf_min(items, 65535), cf_ceil_div(wanted, channels)));
    c->grid[0] = channels;
    c->grid[1] = cf_ceil_div(items, cf_ceil_div(items, slices));
    return c->samples > INT32_MAX || c->grid[0] > INT32_MAX
               ? cf_fail(CONV_FFT_NOT_SUPPORTED, "%lld samples of %lld groups are too many", (long long)c->samples,
                         (long long)c->groups)
               : CONV_FFT_SUCCESS;
}

/* Small blocks wait least at barriers. Fragments in shared memory serve several planes. */
static int planes_of(const cf_toeplitz_config *c) {
    if (c->last)
        return c->groups > 8 && c->shares < 2 ? 16 : 8;
    return c->pass != CF_PASS_WEIGHTS && c->in_shared_memory ? (int)cf_max(1, cf_min(c->samples, 4 / c->warps)) : 1;
}

/* The pass of `layer`. own: the layer whose gradient of x is folded in the kernel; otherwise the same. */
static conv_fft_status configure_planes(const cf_layer *own, const cf_layer *layer, int pass,
                                        const cf_gpu_properties *properties, bool any_alignment,
                                        cf_toeplitz_config *config) {
    const bool data = pass == CF_PASS_DATA, weights = pass == CF_PASS_WEIGHTS;
    const cf_axis *down = &layer->axis[1], *across = &layer->axis[2];
    const cf_tensor *read = data ? &layer->y : &layer->x, *written = data ? &own->x : &layer->y,
                    *w = weights ? &layer->gw : &layer->w;
    cf_toeplitz_config c = {
        .pass = pass,
        .dtype = layer->x.dtype,
        .weights = w->dtype,
        .bias = cf_tensor_bias_dtype(&layer->y),
        .mode = mode_of(layer),
        .last = layout_of(layer, &layer->x) == 2,
        .line = cf_toeplitz_is_trivial(down) && down->pad_before == 0,
        .scaled = !weights && w->dtype == CONV_FFT_FP32 && layer->x.dtype == CONV_FFT_FP16,
        .kernel = {(int)down->kernel, (int)across->kernel},
        .stride = {data || cf_toeplitz_is_trivial(down) ? 1 : (int)down->stride, data ? 1 : (int)across->stride},
        .up = {!data || cf_toeplitz_is_trivial(down) ? 1 : (int)down->stride, data ? (int)across->stride : 1},
        .tiles_across = 1,
        .terms = terms_of(layer),
        .samples = layer->batch,
        .groups = layer->groups,
        .folded = own != layer};
    const int64_t row_pad = cf_toeplitz_pad(down, data), column_pad = cf_toeplitz_pad(across, data),
                  rows = data ? down->input : down->output, columns = data ? across->input : across->output;
    c.x.numbers = c.y.numbers = cf_toeplitz_numbers(layer->x.dtype);
    if (cf_toeplitz_in_place(layer, pass)) {
        *config = c;
        return cf_toeplitz_configure_in_place(layer, properties, any_alignment, config);
    }
    if ((!c.folded && cf_toeplitz_configure_small(layer, properties, any_alignment, &c, config)) ||
        (!any_alignment && cf_toeplitz_configure_rows(layer, properties, &c, config)) ||
        cf_toeplitz_configure_lines_last(layer, properties, any_alignment, &c, config))
        return CONV_FFT_SUCCESS;
    c.x.granule = cf_toeplitz_granule(layer, read, c.last, data ? down->output : down->input, any_alignment);
    c.y.granule = cf_toeplitz_granule(layer, written, c.last, rows, any_alignment);
    choose_steps(&c, column_pad);
    c.row_pad = pad_of(row_pad, c.up[0], 1);
    c.lead_y = c.up[0] * c.row_pad - (int)row_pad;
    c.in_shared_memory = fragments_of(&c) > (is_short(c.dtype) ? HELD_FRAGMENTS : HELD_TERMS);
    (weights ? set_weight_tiles : set_signal_tiles)(&c, rows, columns);
    cf_toeplitz_set_whole(&c, &c.x, data ? down->output : down->input, data ? across->output : across->input, c.row_pad,
                          c.column_pad);
    cf_toeplitz_set_padding(&c, down, across);
    for (c.planes = planes_of(&c);; c.planes /= 2) {
        c.shared = weights ? weight_bytes(&c) : signal_bytes(&c);
        c.threads = 32 * c.planes * c.warps * (weights ? c.shares : 1);
        if (c.shared <= properties->shared_per_block && c.threads <= 32 * MAX_WARPS)
            break;
        if (c.planes <= (c.last ? 8 : 1))
            return cf_fail(CONV_FFT_NOT_SUPPORTED, "a tile takes %lld bytes and %d threads; a block has %lld and %d",
                           (long long)c.shared, c.threads, (long long)properties->shared_per_block, 32 * MAX_WARPS);
    }
    if (weights && c.reach * 4 > MAX_SUMS + 64)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "sums of %d taps do not fit registers", c.kernel[1]);
    *config = c;
    return set_grid(config, properties);
}

conv_fft_status cf_toeplitz_configure(const cf_layer *layer, int pass, const cf_gpu_properties *properties,
                                      bool any_alignment, cf_toeplitz_config *config) {
    cf_fold_desc fold;
    const cf_layer padded = cf_layer_padded_same_type(layer, pass, &fold);
    if (!cf_toeplitz_is_trivial(&layer->axis[0]))
        return cf_toeplitz_configure_volumes(&padded, pass, properties, any_alignment, config);
    const bool folded = cf_toeplitz_folds_planes(layer, pass);
    CF_FORWARD(configure_planes(folded ? layer : &padded, &padded, pass, properties, any_alignment, config));
    if (folded)
        config->fold = fold;
    return CONV_FFT_SUCCESS;
}

size_t cf_toeplitz_bytes(const cf_toeplitz_config *c) {
    return cf_toeplitz_adds(c) ? (size_t)(c->grid[1] * cf_toeplitz_sums(c)) * 4 : 0;
}

/* --------------------------------------------------------------------------------------------------------- kernels */

/* Blocks for which a multiprocessor must have registers. The compiler would use more registers, to load ahead. Two
 * blocks of channels last are faster than one, unless their registers spill. */
static int resident_blocks(const cf_toeplitz_config *c) {
    const bool fp32 = !is_short(c->dtype), weights = c->pass == CF_PASS_WEIGHTS;
    const int of_row = c->steps * c->up[1], held = c->in_shared_memory ? of_row : c->kernel[0] * of_row,
              inputs = cf_toeplitz_window((int)cf_ceil_div(c->blocks, c->up[1]), c->stride[1], c->steps),
              needed = 32 + 2 * held + 4 * c->blocks + 2 * inputs,
              registers = c->depths                                        ? 128
                          : weights && fp32 && (!c->line || c->reach > 24) ? 256
                          : weights                                        ? 160
                          : fp32                                           ? 128
                          : c->last                                        ? (needed <= 72 ? 64 : 96)
                          : c->up[1] > 1                                   ? (held <= 14 ? 104 : 128)
                          : c->steps > 12                                  ? 128
                                                                           : 88;
    return (int)(c->aligned ? c->resident : cf_max(1, 65536 / (registers * c->threads)));
}

static const char *word_of(bool value) { return value ? "true" : "false"; }

static void add_access(const char *name, const cf_toeplitz_access *a, int mode, cf_text *t) {
    cf_text_add(t,
                "struct %s {\nstatic constexpr int NUMBERS = %d, ROWS = %d, UNITS = %d, STEP = %d, GRANULE = "
                "%d, MODE = %d;\nstatic constexpr bool "
                "WHOLE = %s;\nstatic constexpr int HEIGHT = %d, BREADTH = %d, TOP = %d, LEFT = %d, ABOVE = %d, BELOW = "
                "%d, BEFORE = %d, BEHIND = %d;\n};\n",
                name, a->numbers, a->rows, a->units, a->step, a->granule, mode, word_of(a->whole), a->height,
                a->breadth, a->top, a->left, a->above, a->below, a->before, a->behind);
}

/* The constants and the entry point of a kernel of tiles. */
static void print_tiles(const cf_toeplitz_config *c, bool adds, cf_text *t) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const cf_slice_adder adder = cf_slice_adder_of(c->grid[1]);
    cf_text_add(t, "typedef TileX X;\n");
    if (weights)
        cf_text_add(t, "typedef TileY Y;\n");
    cf_text_add(t,
                "static constexpr int TERMS = %d, KERNEL_Y = %d, KERNEL_X = %d, STRIDE_Y = %d, STRIDE_X = %d, UP_Y = "
                "%d, UP_X = "
                "%d, LEAD = %d, LEAD_Y = %d, WIDTH = "
                "%d, WARPS = %d, PLANES = %d, GRANULE = %d;\n",
                c->terms, c->kernel[0], c->kernel[1], c->stride[0], c->stride[1], c->up[0], c->up[1], c->lead,
                c->lead_y, c->width, c->warps, c->planes, c->y.granule);
    cf_text_add(t, "static constexpr bool LAST = %s, LINE = %s, FLIP = %s, SHARED = %s, SCALED = %s, FOLDED = %s;\n",
                word_of(c->last), word_of(c->line), word_of(c->pass == CF_PASS_DATA), word_of(c->in_shared_memory),
                word_of(c->scaled), word_of(c->folded));
    if (c->folded)
        cf_toeplitz_print_fold(&c->fold, t);
    if (c->depths)
        cf_text_add(
            t, "static constexpr int KERNEL_Z = %d, ACROSS = %d;\nstatic constexpr long long OUT_ROW = %lld;\n};\n",
            c->depths, c->across, (long long)c->out_row);
    else if (weights)
        cf_text_add(
            t,
            "static constexpr int ACROSS = %d, TOGETHER = %d, REACH = %d, SHARES = %d, ROWS = %d, BEFORE = %d;\n"
            "static constexpr bool BIAS = %s;\n};\n",
            c->across, c->together, c->reach, c->shares, c->of_share, c->before, word_of(c->of_both));
    else
        cf_text_add(t, "static constexpr int STEPS = %d, SPAN = %d, BLOCKS = %d, COUNT = %d;\n};\n", c->steps, c->span,
                    c->blocks, c->count);
    if (c->of_both && !adds)
        return;
    static const char *const names[3][3] = {{"toeplitz_signals", "toeplitz_weights", "toeplitz_add"},
                                            {"toeplitz_volumes", "toeplitz_volume_weights", "toeplitz_volume_add"},
                                            {"volumes_last", "volume_weights_last", "toeplitz_volume_add"}};
    cf_text_add(t, "CF_TOEPLITZ_%sKERNEL(%s, %d, %d)\n", c->depths ? "VOLUME_" : "",
                c->of_both            ? "toeplitz_add_both"
                : c->aligned && !adds ? "lines_last_weights"
                                      : names[!c->depths ? 0
                                              : c->last  ? 2
                                                         : 1][adds ? 2 : weights],
                adds ? adder.sums * adder.shares : c->threads, adds ? 1 : resident_blocks(c));
}

conv_fft_status cf_toeplitz_source(const cf_toeplitz_config *c, bool adds, cf_source *source) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const cf_slice_adder adder = cf_slice_adder_of(c->grid[1]);
    char tail[4096];
    cf_text t = {tail, sizeof tail, 0};
    if (c->x.rows > 0) /* the kernel has tiles */
        add_access("TileX", &c->x, (int)c->mode, &t);
    if (c->x.rows > 0 && weights)
        add_access("TileY", &c->y, CONV_FFT_PAD_ZEROS, &t);
    cf_text_add(&t, "struct Problem {\ntypedef %s Storage;\ntypedef %s Weights;\ntypedef %s Bias;\n",
                cf_storage_name(c->dtype), cf_storage_name(c->weights), cf_storage_name(c->bias));
    if (adds)
        cf_text_add(&t, "static constexpr int ADD_SUMS = %d, ADD_SHARES = %d;\n", adder.sums, adder.shares);
    if (c->in_place)
        cf_toeplitz_print_in_place(c, adds, &t);
    else if (c->small)
        cf_toeplitz_print_small(c, adds, &t);
    else if (c->by_rows)
        cf_toeplitz_print_rows(c, adds, &t);
    else if (c->aligned && !weights)
        cf_toeplitz_print_lines_last(c, &t);
    else
        print_tiles(c, adds, &t);
    *source = (cf_source){.name = "cf_toeplitz",
                          .headers = {cf_toeplitz_kernel_text, NULL},
                          .options = {CF_FFT_OPTION, NULL},
                          .dynamic_shared =
                              adds ? (size_t)cf_slice_adder_shared(adder, (int)sizeof(float)) : (size_t)c->shared,
                          .pdl_wait = true};
    return cf_source_set_text(source, &t);
}
