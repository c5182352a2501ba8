/* SPDX-License-Identifier: Apache-2.0 */
/* Planes with channels first that are computed row by row (plane_rows.cuh, plane_rows_weights.cuh): which layers have
 * them, and how their passes are divided into blocks. */
#include "conv/gpu/slice_adder.h"
#include "conv/toeplitz/toeplitz.h"
#include "core/arith.h"

#include <math.h>

enum {
    MAX_TAPS = 9, /* of a row, so that a segment reads two units; and of a column, because of registers */
    EIGHT = 8,
    LANES = 16,     /* segments of a product */
    MIN_LANES = 10, /* that are used; with fewer, tiles are faster */
    BATCHES = 3,    /* of the ring */
    MAX_WARPS = 4,
    WANTED = 8 /* warps of a multiprocessor, for which rows of a plane are divided among several */
};

/* Rows of the ring that are copied together. */
static int batch_of(const cf_toeplitz_config *c) { return c->kernel[0] < 4 ? 2 * c->kernel[0] : c->kernel[0]; }

static int spare_of(const cf_toeplitz_config *c) { return c->pack * c->segments < LANES ? 2 : 0; }

static int64_t bytes_of(const cf_toeplitz_config *c) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const int64_t x = c->pack * (c->segments + 1) + spare_of(c), y = weights ? c->pack * c->segments + spare_of(c) : 0,
                  rings = (int64_t)CF_TOEPLITZ_UNIT * BATCHES * batch_of(c) * (x + y);
    return c->warps * cf_max(rings, weights ? 512ll * c->kernel[0] : 0);
}

/* Registers of a thread, about. */
static int registers_of(const cf_toeplitz_config *c) {
    const int of_row = c->pass == CF_PASS_WEIGHTS ? 10 : 6;
    return (int)cf_max(64, cf_round_up(of_row * c->kernel[0] + 32, EIGHT));
}

/* The columns of the segments: an even shift with which the 16 inputs of a segment are aligned units. */
static bool set_segments(cf_toeplitz_config *c) {
    const int spare = MAX_TAPS - c->kernel[1];
    c->shift = 0;
    while (c->shift < EIGHT && (c->lead = (int)cf_mod(-c->shift - c->column_pad, EIGHT)) > spare)
        c->shift += 2;
    c->segments = (int)cf_ceil_div(c->y.breadth + c->shift, EIGHT);
    c->x.left = c->shift + c->column_pad + c->lead;
    c->y.left = c->shift;
    return c->shift < EIGHT && c->segments <= LANES && c->x.left + c->x.breadth <= EIGHT * (c->segments + 1);
}

/* The elements of a copy, which are whole parts of a row. */
static int granule_of(const cf_layer *layer, const cf_tensor *t, const cf_toeplitz_access *a, int place) {
    int granule = cf_toeplitz_granule(layer, t, false, a->height, false);
    while (a->breadth % granule != 0 || place % granule != 0)
        granule /= 2;
    return granule;
}

static bool is_served(const cf_toeplitz_config *c) {
    return !c->last && !c->line && !c->folded && c->dtype != CONV_FFT_FP32 && c->mode == CONV_FFT_PAD_ZEROS &&
           c->stride[0] * c->stride[1] * c->up[0] * c->up[1] == 1 && c->kernel[0] <= MAX_TAPS &&
           c->kernel[1] <= MAX_TAPS && c->row_pad >= 0 && c->column_pad >= 0 && c->row_pad < c->kernel[0] &&
           c->y.height - 1 - c->row_pad < c->x.height && c->samples <= INT32_MAX;
}

/* Cycles of a quarter of a multiprocessor for each row of a warp, and each product: {signals, gradients of weights}.
 * From measurements on an H200. */
static const double of_any_row[2] = {100, 120}, of_product[2] = {16, 21};

double cf_toeplitz_cycles_rows(const cf_toeplitz_config *c, double multiprocessors) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const double items = ceil((double)c->samples / c->pack) * (double)c->groups * c->parts,
                 rows = c->parts > 1 ? c->of_part + c->kernel[0] - 1 : c->x.height;
    return items * rows * (of_any_row[weights] + of_product[weights] * c->kernel[0]) / fmin(4 * multiprocessors, items);
}

bool cf_toeplitz_configure_rows(const cf_layer *layer, const cf_gpu_properties *p, const cf_toeplitz_config *common,
                                cf_toeplitz_config *config) {
    cf_toeplitz_config c = *common;
    const bool data = c.pass == CF_PASS_DATA, weights = c.pass == CF_PASS_WEIGHTS;
    const cf_axis *const down = &layer->axis[1], *const across = &layer->axis[2];
    const int64_t x_step = layer->x.axis_stride[1], y_step = layer->y.axis_stride[1];
    const cf_toeplitz_access in = {.height = (int)down->input, .breadth = (int)across->input, .step = (int)x_step},
                             out = {.height = (int)down->output, .breadth = (int)across->output, .step = (int)y_step};
    c.by_rows = true;
    c.x = data ? out : in;
    c.y = data ? in : out;
    c.row_pad = (int)cf_toeplitz_pad(down, data);
    c.column_pad = (int)cf_toeplitz_pad(across, data);
    if (!is_served(&c) || !set_segments(&c))
        return false;
    c.pack = (int)cf_min(LANES / c.segments, c.samples);
    c.x.granule = granule_of(layer, data ? &layer->y : &layer->x, &c.x, c.x.left);
    c.y.granule = granule_of(layer, data ? &layer->x : &layer->y, &c.y, weights ? c.y.left : 0);
    if (c.pack * c.segments < MIN_LANES || c.x.granule < 2 || c.y.granule < 2)
        return false;
    /* Parts of a plane repeat KERNEL_Y - 1 rows. */
    const int64_t samples = cf_ceil_div(c.samples, c.pack), rows = weights ? c.x.height : c.y.height,
                  wanted = cf_ceil_div((int64_t)WANTED * p->multiprocessors, samples * c.groups);
    c.of_part = (int)cf_max(cf_ceil_div(rows, wanted), cf_min(rows, 2 * c.kernel[0]));
    c.parts = (int)cf_ceil_div(rows, c.of_part);
    const int64_t items = samples * c.parts;
    c.warps = (int)cf_ceil_div(items, cf_ceil_div(items, MAX_WARPS));
    c.threads = 32 * c.warps;
    c.shared = bytes_of(&c);
    c.resident = (int)cf_min(p->shared_per_multiprocessor / (c.shared + 1024),
                             p->registers_per_multiprocessor / (registers_of(&c) * c.threads));
    const int64_t blocks = cf_ceil_div(items, c.warps),
                  slices = cf_min(65535, cf_max(1, c.resident * p->multiprocessors * (weights ? 1 : 2) / c.groups));
    c.grid[0] = c.groups;
    c.grid[1] = cf_ceil_div(blocks, cf_ceil_div(blocks, slices));
    if (c.resident < 1 || c.shared > p->shared_per_block || c.grid[0] > INT32_MAX)
        return false;
    *config = c;
    return true;
}

static void print_side(const char *name, const cf_toeplitz_access *a, cf_text *t) {
    cf_text_add(t,
                "struct %s {\nstatic constexpr int NUMBERS = 8, ROWS = %d, COLUMNS = %d, STRIDE = %d, GRANULE = %d, "
                "FIRST = %d;\n};\n",
                name, a->height, a->breadth, a->step, a->granule, a->left);
}

void cf_toeplitz_print_rows(const cf_toeplitz_config *c, bool adds, cf_text *t) {
    const cf_slice_adder adder = cf_slice_adder_of(c->grid[1]);
    print_side("X", &c->x, t);
    print_side("Y", &c->y, t);
    cf_text_add(t,
                "static constexpr int TERMS = 1, KERNEL_Y = %d, KERNEL_X = %d, STRIDE_X = 1, UP_X = 1, LEAD = %d, "
                "ROW_PAD = %d, SHIFT = %d, SEGMENTS = %d, PACK = %d, WARPS = %d, PARTS = %d, PART_ROWS = %d;\n"
                "static constexpr bool FLIP = %d, SCALED = %d;\n};\n",
                c->kernel[0], c->kernel[1], c->lead, c->row_pad, c->shift, c->segments, c->pack, c->warps, c->parts,
                c->of_part, c->pass == CF_PASS_DATA, c->scaled);
    cf_text_add(t, "CF_TOEPLITZ_KERNEL(%s, %d, %d)\n",
                adds                         ? "toeplitz_add"
                : c->pass == CF_PASS_WEIGHTS ? "plane_rows_weights"
                                             : "plane_rows",
                adds ? adder.sums * adder.shares : c->threads, adds ? 1 : c->resident);
}
