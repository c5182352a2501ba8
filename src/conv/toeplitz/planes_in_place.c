/* SPDX-License-Identifier: Apache-2.0 */
/* Small planes with channels last, whose channels stay in place (planes_in_place.cuh, planes_in_place_weights.cuh):
 * which layers have them, and how their passes are divided into blocks. */
#include "conv/gpu/slice_adder.h"
#include "conv/toeplitz/call.h"
#include "conv/toeplitz/toeplitz.h"
#include "core/arith.h"

#include <math.h>

enum {
    MAX_COLUMNS = 16,
    MAX_ROWS = 16,   /* all rows are unrolled */
    MIN_SAMPLES = 2, /* with one, half of a product is empty */
    MAX_QUADS = 16,
    FOUR = 4,        /* quads of a sector of 32 bytes: blocks that share sectors take much longer */
    FULL_QUADS = 8,  /* copies of fewer than 64 bytes take a little longer */
    FOUR_WARPS = 128 /* a compiler counts registers for multiples of them */
};

static bool is_small(const cf_layer *layer, const cf_toeplitz_config *c) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    if (!c->aligned || c->mode != CONV_FFT_PAD_ZEROS || layer->batch < MIN_SAMPLES ||
        (c->pass != CF_PASS_FORWARD && (c->stride[0] != 1 || c->stride[1] != 1)))
        return false;
    for (int a = 1; a < 3; ++a) {
        const int64_t most = a == 1 ? MAX_ROWS : MAX_COLUMNS;
        if (layer->axis[a].input > most || layer->axis[a].output > most)
            return false;
    }
    /* All outputs meet the signal, and y fits in the place of x. */
    return c->row_pad >= 0 && c->column_pad >= 0 && c->row_pad < c->kernel[0] &&
           (c->y.height - 1) * c->stride[0] - c->row_pad < c->x.height &&
           (weights || (c->y.height <= c->x.height && c->y.breadth <= c->x.breadth));
}

/* Positions from row to row, so that the zeros between two rows serve both. */
static int row_step_of(const cf_toeplitz_config *c) {
    const int step =
        cf_max(c->x.breadth + c->column_pad, (c->y.breadth - 1) * c->stride[1] + c->kernel[1] - c->column_pad);
    return (int)cf_round_up(step, 2);
}

static int64_t bytes_of(const cf_toeplitz_config *c) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const int of_row = 16 / c->pack, pairs = (c->kernel[1] + 1) / 2, above = (c->x.height - 1) * c->row_step;
    const cf_toeplitz_row y = cf_toeplitz_row_of(c->y.height * of_row, c->quads, false);
    if (weights)
        return (int64_t)CF_TOEPLITZ_UNIT *
               (2 * c->loaded * (cf_toeplitz_row_of(above + of_row - 1 + 2 * pairs, c->quads, false).size + y.size) +
                c->quads / 2 * c->parts * c->kernel[0] * pairs * 4);
    return (int64_t)CF_TOEPLITZ_UNIT * 2 * c->loaded *
           cf_toeplitz_row_of(above + cf_toeplitz_positions(2 * of_row, 2 * c->stride[1], c->steps), c->quads, true)
               .size;
}

/* Registers of a thread, about. */
static int registers_of(const cf_toeplitz_config *c) {
    if (c->pass == CF_PASS_WEIGHTS)
        return 4 * c->kernel[0] * ((c->kernel[1] + 1) / 2) + 2 * c->kernel[0] + 68;
    return 2 * c->kernel[0] * c->steps + 4 * c->kernel[0] + 52;
}

/* Cycles of a multiprocessor, beside the time of memory: for a launch, and for each product. {signals, gradients of
 * weights}. From measurements on an H100. */
static const double of_launch[2] = {3900, 6200}, of_product[2] = {1.2, 2.1};

double cf_toeplitz_cycles_small_in_place(const cf_toeplitz_config *c, double multiprocessors) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    double rows = 0; /* of x and y that meet */
    for (int r = 0; r < c->kernel[0]; ++r)
        for (int n = 0; n < c->x.height; ++n)
            rows += n + c->row_pad - r >= 0 && (n + c->row_pad - r) % c->stride[0] == 0 &&
                    (n + c->row_pad - r) / c->stride[0] < c->y.height;
    const double blocks = ceil((double)(c->grid[0] * c->grid[1]) / multiprocessors),
                 items = ceil((double)c->samples / (double)(c->loaded * c->grid[1])),
                 products = rows * (weights ? (c->kernel[1] + 1) / 2 * (c->parts * c->quads / 2) : c->steps * c->quads);
    return of_launch[weights] + of_product[weights] * blocks * items * products;
}

/* Sets what follows from the channels of a block. Returns the work of the busiest multiprocessor, or 0. */
static double set_block(cf_toeplitz_config *c, int quads, const cf_gpu_properties *p) {
    c->quads = quads;
    c->threads = 32 * c->parts * (c->pass == CF_PASS_WEIGHTS ? quads / 2 : quads);
    c->shared = bytes_of(c);
    c->resident = (int)cf_min(
        cf_min(p->threads_per_multiprocessor / c->threads, p->shared_per_multiprocessor / (c->shared + 1024)),
        p->registers_per_multiprocessor / (cf_round_up(registers_of(c), 8) * cf_round_up(c->threads, FOUR_WARPS)));
    if (c->resident < 1 || c->shared > p->shared_per_block)
        return 0;
    const int64_t items = cf_ceil_div(c->samples, c->loaded);
    c->grid[0] = cf_ceil_div(c->groups, 4 * quads);
    const int64_t slices = cf_max(1, cf_min(cf_min(items, 65535), p->multiprocessors * c->resident / c->grid[0]));
    c->grid[1] = cf_ceil_div(items, cf_ceil_div(items, slices));
    const int64_t of_block = cf_ceil_div(items, c->grid[1]),
                  blocks = cf_ceil_div(c->grid[0] * c->grid[1], p->multiprocessors);
    return (double)(of_block * blocks * quads) * (quads % FOUR ? 1.5 : quads < FULL_QUADS ? 1.05 : 1.0);
}

bool cf_toeplitz_configure_small_in_place(const cf_layer *layer, const cf_gpu_properties *properties,
                                          cf_toeplitz_config *config) {
    cf_toeplitz_config c = *config, best = c;
    const bool data = c.pass == CF_PASS_DATA, weights = c.pass == CF_PASS_WEIGHTS;
    const cf_axis *const down = &layer->axis[1], *const across = &layer->axis[2];
    const cf_toeplitz_access in = {.height = (int)down->input, .breadth = (int)across->input},
                             out = {.height = (int)down->output, .breadth = (int)across->output};
    c.small = true;
    c.x = data ? out : in;
    c.y = data ? in : out;
    if (!is_small(layer, &c))
        return false;
    c.row_step = row_step_of(&c);
    c.pack = weights ? (c.y.breadth > 8 ? 1 : 2) : c.y.breadth > 8 ? 2 : 4;
    c.tiles = c.parts = 1;
    c.batch = 1;
    c.buffers = 2;
    c.loaded = c.pack * c.parts;
    double least = 0;
    for (int quads = 2; quads <= MAX_QUADS; quads += 2) {
        const double work = set_block(&c, quads, properties);
        if (work > 0 && (least == 0 || work < least)) {
            least = work;
            best = c;
        }
    }
    if (least == 0 || best.grid[0] > INT32_MAX || c.samples > INT32_MAX / 2)
        return false;
    *config = best;
    return true;
}
