/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers the family computes, how a pass is divided into blocks, and the text of its kernels. */
#include "conv/spatial/spatial.h"

#include "conv/gpu/slice_adder.h"
#include "conv/plan/padded.h"
#include "conv/spatial/call.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "core/text.h"
#include "cuda/jit/kernel_sources.h"
#include "fbfft/common/kernel_text.h"
#include "fbfft/warp/config.h"

#include <string.h>

enum {
    MAX_TAPS = 256, /* of a row */
    MAX_ROWS = 31,  /* of a kernel, and depths */
    MAX_STRIDE = 8,
    MAX_DILATION = 64,
    MAX_CHANNELS = 8, /* of a group */
    MAX_EXTENT = 1 << 28,
    CHUNK = 16,           /* taps that one window serves, at most */
    MAX_OUTPUTS = 64,     /* sums of a thread */
    MAX_WINDOW = 72,      /* inputs that a thread holds */
    MAX_PRODUCTS = 1000,  /* in the text of a kernel; more compile slowly */
    MAX_UNROLLED = 800,   /* products of a strip whose rows are unrolled */
    MAX_TAP_SUMS = 100,   /* of a gradient of the weights, of a thread */
    THREADS = 128,        /* of a block, about */
    LAST_THREADS = 256,   /* the same, for signals with channels last */
    LONG = 16,            /* channels last: taps of a signal of one axis whose strips may have 16 outputs */
    SHARED = 48 * 1024,   /* bytes of a block, if possible */
    OTHER_REGISTERS = 44, /* addresses and counters, from what ptxas reports */
    MAX_SIGNAL_REGISTERS = 128
};

/* ---------------------------------------------------------------------------------------------------------- layers */

static bool is_depthwise(const cf_layer *layer) { return layer->in_channels == 1 && layer->out_channels == 1; }

static int64_t magnitude(int64_t value) { return value < 0 ? -value : value; }

/* Kernels compute the places of elements in a sample with 32 bits, also of those in the padding and behind the end. */
static bool fits_int(const cf_layer *layer, const cf_tensor *t) {
    int64_t reach = 1;
    for (int i = 0; i < 3; ++i) {
        const cf_axis *const a = &layer->axis[i];
        const int64_t own = cf_max(a->input, a->output),
                      extent = own + a->kernel > 2 ? own + magnitude(a->pad_before) + a->kernel * a->dilation + 64 : 1;
        reach += extent * cf_min(magnitude(t->axis_stride[i]), INT32_MAX);
    }
    return reach < INT32_MAX;
}

bool cf_spatial_serves(const cf_layer *layer, const char **why) {
    *why = "spatial computes groups of at most 8 channels in FP32, FP16 and BF16";
    if (layer->in_channels > MAX_CHANNELS || layer->out_channels > MAX_CHANNELS || layer->compute != CONV_FFT_FP32)
        return false;
    *why = "spatial computes up to 31 x 31 rows of 256 taps, strides up to 8, dilations up to 64, extents up to 2^28";
    for (int a = 0; a < 3; ++a) {
        const cf_axis *const axis = &layer->axis[a];
        if (axis->kernel > (a < 2 ? MAX_ROWS : MAX_TAPS) || axis->stride > MAX_STRIDE ||
            (axis->kernel > 1 && axis->dilation > MAX_DILATION) || axis->input > MAX_EXTENT ||
            axis->output * axis->stride > MAX_EXTENT || magnitude(axis->pad_before) > MAX_EXTENT || axis->input < 1 ||
            axis->output < 1)
            return false;
    }
    *why = "spatial counts the elements of a sample with 31 bits";
    return fits_int(layer, &layer->x) && fits_int(layer, &layer->y);
}

/* ---------------------------------------------------------------------------------------------------------- strips */

/* Products of an output strip along an axis, and inputs of its window that are read. */
static int products_of(cf_spatial_axis a) {
    int count = 0;
    for (int out = 0; out < a.outs; ++out)
        for (int tap = 0; tap < a.taps; ++tap)
            count += cf_spatial_input(a, out, tap) >= 0;
    return count;
}
static int reads_of(cf_spatial_axis a) {
    int count = 0;
    for (int at = cf_spatial_window(a) - 1; at >= 0; --at) {
        bool read = false;
        for (int out = 0; out < a.outs; ++out)
            read = read || cf_spatial_tap(a, out, at) >= 0;
        count += read;
    }
    return count;
}

/* Registers of a thread: sums, a window as numbers, the next one as it is stored, and others. */
static int registers_of(const cf_spatial_config *c) {
    const int window = reads_of(c->axis[2]), outs = c->axis[2].outs * c->axis[1].outs * c->vector,
              taps = c->pass == CF_PASS_WEIGHTS ? c->axis[2].taps * c->rows * c->vector : 0,
              stored = c->dtype == CONV_FFT_FP32 ? c->vector : 1;
    const int64_t wanted = outs + taps + window * (c->vector + stored) + OTHER_REGISTERS;
    return (int)cf_round_up(cf_max(64, cf_min(taps ? 232 : MAX_SIGNAL_REGISTERS, wanted)), 8);
}

/* Instructions of a thread for a strip. */
static double strip_instructions(const cf_spatial_config *c) {
    const cf_spatial_axis y = c->axis[1], x = c->axis[2];
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const double load = c->last ? 2 + (c->dtype == CONV_FFT_FP32 ? 0 : c->vector) : 1,
                 rows = weights ? (double)reads_of(y) : (double)cf_spatial_window(y),
                 outs = (double)x.outs * y.outs * c->vector * (c->last ? 2 : 8);
    const double of_chunk = rows * (12 + reads_of(x) * load) +
                            (double)products_of(y) * (products_of(x) * c->vector + (weights ? 0 : x.taps));
    return of_chunk * c->chunks * (weights ? c->shares : 1) * c->kernel[0] * (weights ? 1 : c->summed) + outs + 40;
}

/* The outputs of a strip: those with which the whole pass takes fewest instructions. */
static void choose_strip(cf_spatial_config *c, const int64_t extent[3]) {
    const int step_x = c->axis[2].transposed ? c->axis[2].stride : 1,
              step_y = c->axis[1].transposed ? c->axis[1].stride : 1,
              most_x = extent[1] == 1 && (!c->last || c->kernel[2] >= LONG) ? 16 : 8;
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    cf_spatial_config best = *c;
    double least = -1;
    for (int tx = step_x; tx <= cf_max(most_x, step_x); tx += step_x)
        for (int ty = step_y; ty <= cf_max(4, step_y); ty += step_y) {
            c->axis[2].outs = tx;
            c->axis[1].outs = ty;
            const int sums = tx * ty * c->vector, text = products_of(c->axis[2]) * products_of(c->axis[1]) * c->vector,
                      window = reads_of(c->axis[2]) * c->vector;
            const bool smallest = tx == step_x && ty == step_y;
            /* With a stride, a tile in shared memory has few outputs. So strips are small, for enough threads. */
            const int most = (weights ? MAX_OUTPUTS / 2 : MAX_OUTPUTS) /
                             (c->last || c->axis[2].transposed ? 1 : c->axis[2].stride * c->axis[1].stride);
            if (!smallest && (sums > most || window > MAX_WINDOW ||
                              (weights ? text : products_of(c->axis[2]) * ty * c->vector) > MAX_PRODUCTS))
                continue;
            const double cost =
                (double)cf_ceil_div(extent[2], tx) * (double)cf_ceil_div(extent[1], ty) * strip_instructions(c);
            if (least < 0 || cost < least) {
                least = cost;
                best = *c;
            }
        }
    *c = best;
}

/* ---------------------------------------------------------------------------------------------------------- blocks */

/* Threads that share n things, at most `most` of them, evenly. */
static int share_of(int64_t n, int64_t most) { return (int)cf_ceil_div(n, cf_ceil_div(n, most)); }

static int64_t weight_floats(const cf_spatial_config *c) {
    return cf_round_up(
        (int64_t)c->summed * c->kernel[0] * c->axis[1].taps * c->chunks * c->axis[2].taps * c->lanes * c->vector, 4);
}

/* Channels first: the tiles of what is read, and of outputs or gy. */
static cf_spatial_tile input_tile(const cf_spatial_config *c) {
    const cf_spatial_axis y = c->axis[1], x = c->axis[2];
    return (cf_spatial_tile){c->planes, cf_spatial_reach(y, c->down, c->shares),
                             cf_spatial_reach(x, c->across, c->chunks), cf_spatial_advance(x), c->skewed};
}
static cf_spatial_tile output_tile(const cf_spatial_config *c) {
    return (cf_spatial_tile){c->planes, c->axis[1].outs * c->down, c->axis[2].outs * c->across, c->axis[2].outs, true};
}

/* Instructions of warps that load or store a tile. Conversions from 16 bits wait for memory. */
static double tile_instructions(const cf_spatial_config *c, cf_spatial_tile t) {
    const int64_t wide = cf_spatial_threads_of_row(t, c->threads);
    return (double)(t.planes * t.height * (30 + 12 * cf_ceil_div(t.breadth, wide)) * wide) / 32.0 *
           (c->dtype == CONV_FFT_FP32 ? 1.0 : 1.5);
}

static int shares_of_taps(const cf_spatial_config *c) {
    return c->pass == CF_PASS_WEIGHTS ? c->shares * c->kernel[0] * c->chunks : 1;
}

static void set_sizes(cf_spatial_config *c) {
    if (!c->last)
        c->strips = c->across * c->down * c->planes;
    c->threads = (int)cf_round_up((int64_t)c->lanes * c->strips * shares_of_taps(c), 32);
    /* Tiles that are loaded have two buffers. */
    const int64_t in = c->last ? 0 : cf_spatial_numbers(input_tile(c)),
                  out = c->last ? 0 : cf_spatial_numbers(output_tile(c));
    int64_t floats;
    if (c->pass == CF_PASS_WEIGHTS)
        floats = cf_max(2 * (in + out), (int64_t)c->threads * c->axis[2].taps * c->vector);
    else
        floats = 2 * in + out + weight_floats(c);
    c->shared = 4 * floats;
}

static bool fits(const cf_spatial_config *c, int64_t shared) { return c->shared <= shared && c->threads <= 1024; }

/* Makes the block smaller until it has at most `shared` bytes; false: it cannot. */
static bool shrink(cf_spatial_config *c, int64_t shared) {
    for (set_sizes(c); !fits(c, shared); set_sizes(c)) {
        int *const part = c->last         ? (c->strips > 1 && c->pass == CF_PASS_WEIGHTS ? &c->strips : &c->lanes)
                          : c->planes > 1 ? &c->planes
                          : c->down > 1   ? &c->down
                                          : &c->across;
        if (*part <= (c->last && part == &c->lanes ? 4 : 1))
            return false;
        *part = (*part + 1) / 2;
    }
    return true;
}

static conv_fft_status set_block(cf_spatial_config *c, const int64_t extent[3], const cf_gpu_properties *p) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const int threads = (int)cf_max(1, (c->last && !weights ? LAST_THREADS : THREADS) / shares_of_taps(c));
    if (c->last) {
        c->lanes = share_of(cf_ceil_div(c->channels, c->vector), cf_min(threads, weights ? 16 : 64));
        const int most = (int)cf_max(1, threads / c->lanes);
        int whole = most; /* warps, if there is such a number of strips */
        while (whole > 0 && c->lanes * whole % 32 != 0)
            --whole;
        c->strips = whole > 0 ? whole : most;
    } else {
        const int most = threads < 128 ? threads : 128;
        c->lanes = 1;
        c->across = share_of(cf_ceil_div(extent[2], c->axis[2].outs), extent[1] == 1 ? most : cf_min(most, 32));
        c->down = share_of(cf_ceil_div(extent[1], c->axis[1].outs), cf_max(1, most / c->across));
        c->planes = share_of(c->samples, cf_max(1, most / (c->across * c->down)));
        const int advance = cf_spatial_advance(c->axis[2]);
        c->skewed = advance % 2 == 0 && (c->chunks == 1 || cf_spatial_step(c->axis[2]) % advance == 0);
    }
    cf_spatial_config smaller = *c;
    if (shrink(&smaller, cf_min(SHARED, p->shared_per_block)))
        *c = smaller;
    else if (!shrink(c, p->shared_per_block))
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "a tile takes %lld bytes and %d threads; a block has %lld and 1024",
                       (long long)c->shared, c->threads, (long long)p->shared_per_block);
    return CONV_FFT_SUCCESS;
}

/* Blocks: so many slices of the items that the GPU is busy, with equal shares. */
static conv_fft_status set_grid(cf_spatial_config *c, const int64_t extent[3], const cf_gpu_properties *p) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    c->along[0] = extent[0];
    c->along[1] = cf_ceil_div(extent[1], c->axis[1].outs * (c->last ? 1 : c->down));
    c->along[2] = cf_ceil_div(extent[2], c->axis[2].outs * (c->last ? 1 : c->across));
    const int64_t samples = c->last ? c->samples : cf_ceil_div(c->samples, c->planes),
                  plane = c->along[0] * c->along[1] * c->along[2];
    c->grid[0] = cf_ceil_div(c->channels, c->last ? c->lanes * c->vector : 1);
    if (c->samples > INT32_MAX / 2 || plane > INT32_MAX / 2 || samples > INT32_MAX / 2 / plane ||
        c->grid[0] > INT32_MAX)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "%lld samples of %lld channels are too many", (long long)c->samples,
                       (long long)c->channels);
    c->items = samples * plane;
    const int64_t blocks = cf_min(p->blocks_per_multiprocessor, p->threads_per_multiprocessor / c->threads),
                  by_shared = p->shared_per_multiprocessor / (c->shared + 1024),
                  by_registers = p->registers_per_multiprocessor / (registers_of(c) * c->threads);
    c->resident = (int)cf_max(1, cf_min(blocks, cf_min(by_shared, by_registers)));
    const int64_t rounds = c->last ? cf_ceil_div(c->items, c->strips) : c->items,
                  wanted = p->multiprocessors * c->resident *
                           (c->last   ? 1
                            : weights ? 2
                                      : 4),
                  slices = cf_max(1, cf_min(cf_min(rounds, 65535), cf_ceil_div(wanted, c->grid[0])));
    c->grid[1] = cf_ceil_div(rounds, cf_ceil_div(rounds, slices));
    return CONV_FFT_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------- choose */

static bool is_even(const cf_layer *layer, const cf_tensor *t) {
    return t->group_stride == 1 && (layer->batch == 1 || t->sample_stride % 2 == 0) && t->axis_stride[0] % 2 == 0 &&
           t->axis_stride[1] % 2 == 0 && t->axis_stride[2] % 2 == 0;
}

/* Taps of a kernel row that one window serves. Transposed, they are a multiple of the stride. */
static int chunk_of(int taps, int stride) { return taps <= CHUNK ? taps : CHUNK / stride * stride; }

void cf_spatial_set_problem(const cf_layer *layer, int pass, cf_spatial_config *config, int64_t extent[3]) {
    const bool data = pass == CF_PASS_DATA, weights = pass == CF_PASS_WEIGHTS;
    const cf_tensor *const w = weights ? &layer->gw : &layer->w;
    cf_spatial_config c = {.pass = pass,
                           .dtype = (data ? &layer->y : &layer->x)->dtype,
                           .result = (data ? &layer->x : &layer->y)->dtype,
                           .weights = w->dtype,
                           .bias = cf_tensor_bias_dtype(&layer->y),
                           .mode = CONV_FFT_PAD_ZEROS,
                           .last = cf_layer_is_last(layer),
                           .own = (int)(data ? layer->in_channels : layer->out_channels),
                           .summed = (int)(data ? layer->out_channels : layer->in_channels),
                           .vector = 1,
                           .shares = 1,
                           .samples = layer->batch};
    for (int a = 0; a < 3; ++a) {
        const cf_axis *const axis = &layer->axis[a];
        c.kernel[a] = (int)axis->kernel;
        c.axis[a] = (cf_spatial_axis){
            data, (int)axis->stride, axis->kernel > 1 ? (int)axis->dilation : 1, (int)axis->pad_before, c.kernel[a], 1};
        extent[a] = data ? axis->input : axis->output;
        if (axis->mode != CONV_FFT_PAD_ZEROS)
            c.mode = axis->mode;
    }
    c.channels = layer->groups * c.own * (weights ? c.summed : 1);
    if (c.last) {
        c.column[0] = (data ? &layer->y : &layer->x)->axis_stride[2];
        c.column[1] = (data ? &layer->x : &layer->y)->axis_stride[2];
    }
    *config = c;
}

bool cf_spatial_has_pairs(const cf_layer *layer, bool any_alignment) {
    return cf_layer_is_last(layer) && is_depthwise(layer) && layer->groups % 2 == 0 && !any_alignment &&
           is_even(layer, &layer->x) && is_even(layer, &layer->y);
}

conv_fft_status cf_spatial_configure(const cf_layer *layer, int pass, const cf_gpu_properties *properties,
                                     bool any_alignment, cf_spatial_config *config) {
    const bool data = pass == CF_PASS_DATA, weights = pass == CF_PASS_WEIGHTS;
    cf_spatial_config c;
    int64_t extent[3];
    if (cf_spatial_configure_walk(layer, pass, false, properties, any_alignment, config))
        return CONV_FFT_SUCCESS;
    cf_spatial_set_problem(layer, pass, &c, extent);
    if (cf_spatial_has_pairs(layer, any_alignment))
        c.vector = 2;
    c.axis[2].taps = chunk_of(c.kernel[2], data ? c.axis[2].stride : 1);
    c.chunks = (int)cf_ceil_div(c.kernel[2], c.axis[2].taps);
    if (weights) {
        c.shares = (int)cf_ceil_div(c.kernel[1], cf_max(1, MAX_TAP_SUMS / (c.axis[2].taps * c.vector)));
        c.rows = (int)cf_ceil_div(c.kernel[1], c.shares);
        c.shares = (int)cf_ceil_div(c.kernel[1], c.rows);
        c.axis[1].taps = c.rows;
    }
    choose_strip(&c, extent);
    CF_FORWARD(set_block(&c, extent, properties));
    CF_FORWARD(set_grid(&c, extent, properties));
    if (!c.last)
        c.tile_instructions = (double)c.items * (double)c.channels *
                              (tile_instructions(&c, input_tile(&c)) * c.kernel[0] * (weights ? 1 : c.summed) +
                               tile_instructions(&c, output_tile(&c)));
    c.instructions = strip_instructions(&c) * (double)c.channels / c.vector * (double)c.samples * (double)extent[0] *
                     (double)cf_ceil_div(extent[1], c.axis[1].outs) * (double)cf_ceil_div(extent[2], c.axis[2].outs) /
                     32.0;
    *config = c;
    return CONV_FFT_SUCCESS;
}

size_t cf_spatial_bytes(const cf_spatial_config *c) {
    return cf_spatial_adds(c)
               ? (size_t)(c->grid[1] * c->channels * c->kernel[0] * c->kernel[1] * c->kernel[2]) * sizeof(float)
               : 0;
}

/* --------------------------------------------------------------------------------------------------------- kernels */

static void add_axis(const char *name, cf_spatial_axis a, cf_text *t) {
    cf_text_add(t, "static constexpr cf_spatial_axis %s = {%d, %d, %d, %d, %d, %d};\n", name, a.transposed, a.stride,
                a.dilation, a.pad, a.taps, a.outs);
}

/* Whether the loop over the rows of a strip is unrolled. In a loop, the compiler converts 16-bit inputs again for each
 * row of outputs. */
static bool is_unrolled(const cf_spatial_config *c) {
    return c->chunks == 1 && products_of(c->axis[1]) * products_of(c->axis[2]) * c->vector <= MAX_UNROLLED;
}

static const char *function_of(const cf_spatial_config *c, bool adds) {
    if (adds)
        return "spatial_add";
    if (c->both)
        return "spatial_walk_both";
    if (c->walks)
        return c->pass == CF_PASS_WEIGHTS ? "spatial_walk_weights" : "spatial_walk";
    if (c->pass == CF_PASS_WEIGHTS)
        return c->last ? "spatial_weights_last" : "spatial_weights_first";
    return c->last ? "spatial_last" : "spatial_first";
}

conv_fft_status cf_spatial_source(const cf_spatial_config *c, bool adds, cf_source *source) {
    const cf_slice_adder adder = cf_slice_adder_of(c->grid[1]);
    char tail[2048];
    cf_text t = {tail, sizeof tail, 0};
    cf_text_add(
        &t, "struct Problem {\ntypedef %s Storage;\ntypedef %s Result;\ntypedef %s Weights;\ntypedef %s Bias;\n",
        cf_storage_name(c->dtype), cf_storage_name(c->result), cf_storage_name(c->weights), cf_storage_name(c->bias));
    add_axis("DEPTH", c->axis[0], &t);
    add_axis("Y", c->axis[1], &t);
    add_axis("X", c->axis[2], &t);
    cf_text_add(
        &t,
        "static constexpr int KERNEL_Z = %d, KERNEL_Y = %d, KERNEL_X = %d, MODE = %d, OWN = %d, SUMMED = %d, "
        "VECTOR = %d, LANES = %d, STRIPS = %d, ACROSS = %d, DOWN = %d, PLANES = %d, ROWS = %d, SHARES = %d, THREADS "
        "= %d, SEGMENT = %d, TOGETHER = %d, TOGETHER_Y = %d;\n",
        c->kernel[0], c->kernel[1], c->kernel[2], (int)c->mode, c->own, c->summed, c->vector, c->lanes, c->strips,
        c->across, c->down, c->planes, c->rows, c->shares, c->threads, c->segment, c->together[0], c->together[1]);
    if (adds)
        cf_text_add(&t, "static constexpr int ADD_SUMS = %d, ADD_SHARES = %d;\n", adder.sums, adder.shares);
    cf_text_add(&t, "static constexpr bool UNROLLED = %s;\n", is_unrolled(c) ? "true" : "false");
    cf_text_add(&t,
                "static constexpr long long COLUMN = %lld, COLUMN_Y = %lld;\nstatic constexpr bool SKEWED = %s;\n};\n",
                (long long)c->column[0], (long long)c->column[1], c->skewed ? "true" : "false");
    cf_text_add(&t, "CF_SPATIAL_%sKERNEL(%s, %d, %d)\n", c->both && !adds ? "BOTH_" : "", function_of(c, adds),
                adds ? adder.sums * adder.shares : c->threads, adds ? 1 : c->resident);
    *source = (cf_source){.name = "cf_spatial",
                          .headers = {cf_spatial_kernel_text, NULL},
                          .options = {CF_FFT_OPTION, NULL},
                          .dynamic_shared =
                              adds ? (size_t)cf_slice_adder_shared(adder, (int)sizeof(float)) : (size_t)c->shared,
                          .pdl_wait = true};
    return cf_source_set_text(source, &t);
}
