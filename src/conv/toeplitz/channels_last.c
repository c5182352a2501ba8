/* SPDX-License-Identifier: Apache-2.0 */
/* Planes with channels last, whose channels stay in place (channels_last.cuh, channels_last_weights.cuh): which passes
 * are computed so, and how they are divided into blocks. */
#include "conv/gpu/slice_adder.h"
#include "conv/toeplitz/call.h"
#include "conv/toeplitz/toeplitz.h"
#include "core/arith.h"

#include <math.h>

enum {
    MAX_FRAGMENTS = 28, /* of D, four registers each */
    MAX_HELD = 108,     /* registers of B and of the sums of a tile */
    REGISTERS = 96,     /* of a thread, for B and the sums of all tiles, of 128 */
    MAX_TILES = 4,
    MAX_PARTS = 4,
    MAX_QUADS = 16,
    WARPS = 24,            /* of a multiprocessor that help */
    WARPS_OF_WEIGHTS = 12, /* the same for gw */
    FEW_PRODUCTS = 8,      /* of a row of inputs */
    BOTH_TAPS = 9,         /* of a kernel whose gradients are one kernel; with more, two kernels are faster */
    BOTH_ROWS = 3,         /* of taps */
    BOTH_QUADS = 4,        /* of its blocks: a sector of 32 bytes */
    BOTH_TILES = 2,        /* of a warp, at most */
    BOTH_COLUMNS = 128,    /* of a row */
    BOTH_REGISTERS = 128,  /* of a thread, at most */
    FOUR_WARPS = 128       /* a compiler counts registers for multiples of them */
};

/* Cycles of a quarter of a multiprocessor, beside the time of memory: for each row of inputs of a warp and each
 * product, {signals, gradients of weights}, and for each tile of a row that is stored. From measurements on an H100. */
static const double of_any_row[2] = {40, 150}, of_product[2] = {4.0, 4.2}, of_stored_tile = 15;

/* Positions of the padding that are read. */
static int64_t padding_of(const cf_axis *a) { return a->mode == CONV_FFT_PAD_ZEROS ? 0 : a->pad_before + a->pad_after; }

static bool is_short_axis(const cf_axis *a) { return a->dilation == 1 || a->kernel == 1; }

/* Positions of a row that two neighbouring outputs read, and the first one that output 0 may read. */
static int64_t first_of(const cf_axis *a, bool data) {
    return data ? -cf_floor_div(a->kernel - 1 - a->pad_before, a->stride) : -a->pad_before;
}
static int steps_of(const cf_axis *a, bool data) {
    const int64_t positions =
        data ? cf_floor_div(1 + a->pad_before, a->stride) - first_of(a, true) + 1 : a->kernel + a->stride;
    return (int)cf_ceil_div(cf_max(1, positions), 4);
}

/* Rows of outputs whose sums a warp has at the same time, or rows of gy. */
static int live_rows(const cf_axis *down, bool data) {
    const int rows = (int)cf_ceil_div(down->kernel, down->stride);
    return data ? rows * (int)down->stride : rows;
}

/* Registers of B, and of the sums of a tile. */
static int held_of(const cf_layer *layer, bool data) {
    return 2 * (int)layer->axis[1].kernel * steps_of(&layer->axis[2], data);
}
static int sums_of(const cf_layer *layer, bool data) { return 4 * live_rows(&layer->axis[1], data); }
static int fragments_of(const cf_layer *layer) {
    return (int)(layer->axis[1].kernel * cf_ceil_div(layer->axis[2].kernel, 2));
}

bool cf_toeplitz_in_place(const cf_layer *layer, int pass) {
    const cf_axis *const depth = &layer->axis[0], *const down = &layer->axis[1], *const across = &layer->axis[2];
    const bool data = pass == CF_PASS_DATA;
    if (depth->input > 1 || depth->output > 1 || depth->kernel > 1 || layer->x.dtype == CONV_FFT_FP32)
        return false;
    if (layer->x.axis_stride[2] <= 1 || layer->y.axis_stride[2] <= 1 || layer->x.group_stride != 1 ||
        layer->groups < 4 || !is_short_axis(down) || !is_short_axis(across) || (down->output == 1 && down->input == 1))
        return false;
    if (pass == CF_PASS_WEIGHTS)
        return fragments_of(layer) <= MAX_FRAGMENTS;
    return held_of(layer, data) + sums_of(layer, data) <= MAX_HELD &&
           (!data || (across->stride <= 2 && down->stride <= down->kernel));
}

/* Outputs of a row that a block has, and positions of a row of inputs that they read. */
static int outputs_of(const cf_toeplitz_config *c) {
    return (c->pass == CF_PASS_WEIGHTS ? 16 : 32) * c->tiles * c->parts;
}
static int positions_of(const cf_toeplitz_config *c) {
    const bool data = c->pass == CF_PASS_DATA;
    if (c->pass == CF_PASS_WEIGHTS)
        return (outputs_of(c) - 1) * c->stride[1] + (c->kernel[1] + 1) / 2 * 2;
    return cf_toeplitz_positions(outputs_of(c), cf_toeplitz_advance(c->stride[1], data), c->steps);
}

static int64_t bytes_of(const cf_toeplitz_config *c) {
    const bool data = c->pass == CF_PASS_DATA, weights = c->pass == CF_PASS_WEIGHTS;
    const bool split = weights ? c->stride[1] % 2 == 0 : cf_toeplitz_advance(c->stride[1], data) % 2 == 0;
    const cf_toeplitz_row x = cf_toeplitz_row_of(positions_of(c), c->quads, split),
                          y = cf_toeplitz_row_of(outputs_of(c), c->quads, !weights);
    if (weights)
        return (int64_t)CF_TOEPLITZ_UNIT * (c->buffers * c->batch * (x.size + y.size) +
                                            c->quads / 2 * c->parts * c->kernel[0] * ((c->kernel[1] + 1) / 2) * 4);
    return (int64_t)CF_TOEPLITZ_UNIT * c->batch * (c->buffers * x.size + 2 * (data ? c->stride[0] : 1) * y.size);
}

/* Registers of a thread, about. */
static int registers_of(const cf_layer *layer, const cf_toeplitz_config *c) {
    const bool data = c->pass == CF_PASS_DATA;
    if (c->pass == CF_PASS_WEIGHTS)
        return 4 * fragments_of(layer) + 2 * live_rows(&layer->axis[1], false) * c->tiles +
               2 * ((int)layer->axis[2].kernel + 1) + 72;
    return cf_max(80, held_of(layer, data) + (sums_of(layer, data) + 4) * c->tiles + 36);
}

/* The columns of a block: warps that share a row, with some tiles each. */
static void set_columns(const cf_layer *layer, cf_toeplitz_config *c, int64_t columns) {
    const bool data = c->pass == CF_PASS_DATA, weights = c->pass == CF_PASS_WEIGHTS;
    const int64_t all = cf_ceil_div(columns, weights ? 16 : 32),
                  fitting = (REGISTERS - held_of(layer, data)) / (sums_of(layer, data) + 4),
                  most = weights                              ? 2
                         : !data && layer->axis[1].stride > 1 ? 1
                                                              : cf_max(1, cf_min(MAX_TILES, fitting)),
                  max_parts = weights ? 2 * MAX_PARTS : MAX_PARTS;
    c->tiles_across = cf_ceil_div(all, most * max_parts);
    const int64_t of_block = cf_ceil_div(all, c->tiles_across);
    c->parts = (int)cf_ceil_div(of_block, most);
    c->tiles = (int)cf_ceil_div(of_block, c->parts);
}

/* Sets what follows from the channels of a block. */
static void set_block(const cf_layer *layer, cf_toeplitz_config *c, int quads, const cf_gpu_properties *p) {
    c->quads = quads;
    c->threads = 32 * c->parts * (c->pass == CF_PASS_WEIGHTS ? quads / 2 : quads);
    c->shared = bytes_of(c);
    c->resident = (int)cf_min(
        cf_min(p->threads_per_multiprocessor / c->threads, p->shared_per_multiprocessor / (c->shared + 1024)),
        p->registers_per_multiprocessor / (cf_round_up(registers_of(layer, c), 8) * c->threads));
}

/* The channels of a block with which most warps of a multiprocessor have something to do. Fewer than 32 channels take
 * more copies. */
static bool set_channels(const cf_layer *layer, cf_toeplitz_config *c, const cf_gpu_properties *p) {
    cf_toeplitz_config best = *c;
    double most = 0;
    for (int quads = 2; quads <= MAX_QUADS; quads += 2) {
        set_block(layer, c, quads, p);
        if (c->resident < 1 || c->shared > p->shared_per_block)
            break;
        const int64_t blocks = cf_ceil_div(c->groups, 4 * quads);
        const double warps =
                         cf_min(c->pass == CF_PASS_WEIGHTS ? WARPS_OF_WEIGHTS : WARPS, c->resident * c->threads / 32),
                     used = (double)c->groups / (double)(blocks * 4 * quads),
                     value = warps * used * (quads < 8 ? 0.5 + 0.05 * quads : 1.0) *
                             (c->resident == 1 && warps <= 8 ? 0.65 : 1.0);
        if (value >= most) {
            most = value;
            best = *c;
        }
    }
    *c = best;
    return most > 0;
}

static void set_grid(cf_toeplitz_config *c, int64_t rows, const cf_gpu_properties *p) {
    const int64_t units = c->samples * cf_ceil_div(rows, c->pass == CF_PASS_DATA ? c->stride[0] : 1);
    c->grid[0] = cf_ceil_div(c->groups, 4 * c->quads);
    const int64_t slices = cf_max(1, cf_min(cf_min(units, 65535 / c->tiles_across),
                                            p->multiprocessors * c->resident / (c->grid[0] * c->tiles_across)));
    c->grid[1] = cf_ceil_div(units, cf_ceil_div(units, slices)) * c->tiles_across;
}

conv_fft_status cf_toeplitz_configure_in_place(const cf_layer *layer, const cf_gpu_properties *properties,
                                               bool any_alignment, cf_toeplitz_config *c) {
    const bool data = c->pass == CF_PASS_DATA, weights = c->pass == CF_PASS_WEIGHTS;
    const cf_axis *const down = &layer->axis[1], *const across = &layer->axis[2];
    const int64_t rows = data ? down->input : down->output, columns = data ? across->input : across->output;
    c->in_place = true;
    c->stride[0] = (int)down->stride;
    c->stride[1] = (int)across->stride;
    c->steps = steps_of(across, data);
    c->row_pad = (int)-first_of(down, data);
    c->column_pad = (int)-first_of(across, data);
    c->offset[0] = data ? (int)(down->pad_before - down->stride * first_of(down, true)) : 0;
    c->offset[1] = data ? (int)(across->pad_before - across->stride * first_of(across, true)) : 0;
    c->aligned = !any_alignment && layer->groups % 8 == 0;
    for (int i = 0; i < 2; ++i) {
        const cf_tensor *const t = i ? &layer->y : &layer->x;
        c->aligned = c->aligned && (layer->batch == 1 || t->sample_stride % 8 == 0) && t->axis_stride[1] % 8 == 0 &&
                     t->axis_stride[2] % 8 == 0;
    }
    if (cf_toeplitz_configure_small_in_place(layer, properties, c))
        return CONV_FFT_SUCCESS;
    set_columns(layer, c, columns);
    /* Batches of two rows halve the barriers, but take more shared memory and longer kernels. */
    const bool few = down->stride == 1 && c->kernel[0] * c->steps * c->tiles < FEW_PRODUCTS;
    c->batch = !c->aligned || (!weights && (few || (data && down->stride > 1))) ? 1 : 2;
    c->buffers = c->batch == 2 ? 3 : 4;
    /* Two tiles of a row in one warp need more than 80 registers. 24 warps with one each have as many as they need. */
    if (!weights && few && c->aligned && c->tiles == 2 && c->parts == 1 && c->groups % 48 == 0) {
        c->tiles = 1;
        c->parts = c->batch = 2;
        c->buffers = 4;
    }
    while (!set_channels(layer, c, properties)) {
        if (c->batch > 1)
            c->batch = 1;
        else if (c->buffers > 2)
            c->buffers -= 1;
        else
            return cf_fail(CONV_FFT_NOT_SUPPORTED, "rows of a block take %lld bytes; a block has %lld",
                           (long long)c->shared, (long long)properties->shared_per_block);
    }
    c->columns[0] = (int)cf_min(positions_of(c), data ? across->output : across->input + padding_of(across));
    c->columns[1] = (int)cf_min(outputs_of(c), columns);
    set_grid(c, rows, properties);
    if (c->samples * rows > INT32_MAX / 2 || c->grid[0] > INT32_MAX || c->grid[1] > 65535)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "%lld samples of %lld groups, or rows of %lld, are too many",
                       (long long)c->samples, (long long)c->groups, (long long)columns);
    return CONV_FFT_SUCCESS;
}

/* Both gradients: what of a problem the blocks decide. */
static void set_both_block(cf_toeplitz_config *c, int64_t columns) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    c->of_both = true;
    c->batch = c->kernel[0] % 3 ? 2 : 3; /* so that few rows are unrolled */
    c->buffers = 4;
    c->quads = BOTH_QUADS;
    c->tiles = columns > 32 ? BOTH_TILES : 1;
    c->parts = (int)cf_ceil_div(columns, 32 * c->tiles) * (weights ? 2 : 1);
    c->columns[0] = (int)cf_min(positions_of(c), columns);
    c->columns[1] = (int)cf_min(outputs_of(c), columns);
}

/* Planes whose gradients are one kernel have as many rows and columns in x as in y, and padding by zeros. */
static bool can_join(const cf_layer *layer, const cf_toeplitz_config *data, const cf_toeplitz_config *weights) {
    bool same = true;
    for (int a = 1; a < 3; ++a) {
        const cf_axis *const axis = &layer->axis[a];
        const int64_t before = cf_toeplitz_pad(axis, true);
        same = same && axis->input == axis->output && axis->stride == 1 && before >= 0 && before < axis->kernel;
    }
    return same && weights->mode == CONV_FFT_PAD_ZEROS && data->aligned && weights->aligned && !data->small &&
           !weights->small && layer->axis[2].input <= BOTH_COLUMNS && layer->axis[1].kernel <= BOTH_ROWS &&
           layer->axis[1].kernel * layer->axis[2].kernel <= BOTH_TAPS;
}

bool cf_toeplitz_join_in_place(const cf_layer *layer, const cf_gpu_properties *properties, cf_toeplitz_both *both) {
    cf_toeplitz_config *const data = &both->data, *const weights = &both->weights;
    if (!can_join(layer, data, weights))
        return false;
    const int64_t columns = layer->axis[2].input;
    set_both_block(data, columns);
    set_both_block(weights, columns);
    const cf_toeplitz_row x = cf_toeplitz_row_of(positions_of(weights), BOTH_QUADS, false);
    const int warps = BOTH_QUADS / 2 * weights->parts,
              sums = weights->kernel[0] * ((weights->kernel[1] + 1) / 2) * 16 + 8;
    do
        both->shared = bytes_of(data) + (int64_t)CF_TOEPLITZ_UNIT * data->buffers * data->batch * x.size +
                       (int64_t)sizeof(float) * warps * sums;
    while (both->shared > properties->shared_per_block && --data->buffers > 1);
    weights->buffers = data->buffers;
    data->threads = weights->threads = 32 * (BOTH_QUADS * data->parts + warps);
    weights->resident = (int)cf_min(cf_min(properties->threads_per_multiprocessor / weights->threads,
                                           properties->shared_per_multiprocessor / (both->shared + 1024)),
                                    properties->registers_per_multiprocessor /
                                        (BOTH_REGISTERS * cf_round_up(weights->threads, FOUR_WARPS)));
    data->tiles_across = weights->tiles_across = 1;
    set_grid(weights, layer->axis[1].input, properties);
    return weights->resident > 0 && both->shared <= properties->shared_per_block;
}

void cf_toeplitz_print_in_place(const cf_toeplitz_config *c, bool adds, cf_text *t) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const cf_slice_adder adder = cf_slice_adder_of(c->grid[1]);
    static const char *const names[2][2] = {{"toeplitz_last", "toeplitz_last_weights"},
                                            {"planes_in_place", "planes_in_place_weights"}};
    if (c->small) {
        cf_toeplitz_print_plane("X", &c->x, t);
        cf_toeplitz_print_plane("Y", &c->y, t);
        cf_text_add(t, "static constexpr int ROW_PAD = %d, COLUMN_PAD = %d, ROW_STEP = %d, PACK = %d;\n", c->row_pad,
                    c->column_pad, c->row_step, c->pack);
    }
    cf_text_add(
        t,
        "static constexpr int MODE = %d, KERNEL_Y = %d, KERNEL_X = %d, STRIDE_Y = %d, STRIDE_X = %d, OFFSET_Y = "
        "%d, OFFSET_X = %d, STEPS = %d, TILES = %d, PARTS = %d, QUADS = %d, BATCH = %d, BUFFERS = %d, WIDTH = "
        "%d, WIDTH_Y = %d;\n"
        "static constexpr bool TRANSPOSED = %d, ALIGNED = %d, SCALED = %d, FLIP = %d;\n};\n",
        c->mode, c->kernel[0], c->kernel[1], c->stride[0], c->stride[1], c->offset[0], c->offset[1], c->steps, c->tiles,
        c->parts, c->quads, c->batch, c->buffers, c->columns[0], c->columns[1], c->pass == CF_PASS_DATA && !c->small,
        c->aligned, c->scaled, c->pass == CF_PASS_DATA && c->small);
    if (c->of_both && !adds)
        return;
    cf_text_add(t, "CF_TOEPLITZ_KERNEL(%s, %d, %d)\n",
                c->of_both ? "toeplitz_add_both"
                : adds     ? "toeplitz_add"
                           : names[c->small][weights],
                adds ? adder.sums * adder.shares : c->threads, adds ? 1 : c->resident);
}

/* Rows of inputs of a block: of its share of the outputs, and those that segments share. */
static double rows_of_block(const cf_layer *layer, const cf_toeplitz_config *c) {
    const bool data = c->pass == CF_PASS_DATA;
    const double outputs = (double)(data ? layer->axis[1].input : layer->axis[1].output),
                 share = (double)c->samples * outputs * (double)c->tiles_across / (double)c->grid[1],
                 segments = 1 + share / outputs, overlap = c->kernel[0] - c->stride[0];
    return data ? (share + segments * overlap) / c->stride[0] : share * c->stride[0] + segments * overlap;
}

double cf_toeplitz_cycles_in_place(const cf_layer *layer, const cf_toeplitz_config *c, double multiprocessors) {
    const bool data = c->pass == CF_PASS_DATA, weights = c->pass == CF_PASS_WEIGHTS;
    if (c->small)
        return cf_toeplitz_cycles_small_in_place(c, multiprocessors);
    const double products = weights ? (double)fragments_of(layer) * c->tiles / c->stride[0]
                                    : (double)c->kernel[0] * c->steps * c->tiles / (data ? 1 : c->stride[0]),
                 stored = weights ? 0 : (double)c->tiles * (data ? c->stride[0] : 1.0 / c->stride[0]),
                 of_row = of_any_row[weights] + of_product[weights] * products + of_stored_tile * stored,
                 warps = (double)c->grid[0] * (double)c->grid[1] * c->threads / 32;
    /* With few blocks, multiprocessors are idle. */
    const double used = fmin(1.0, (double)c->grid[0] * (double)c->grid[1] / multiprocessors);
    return warps * rows_of_block(layer, c) * of_row / (4 * multiprocessors * used);
}
