/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers have small planes, how their passes are divided into blocks, and the constants of their kernels. */
#include "conv/gpu/slice_adder.h"
#include "conv/toeplitz/toeplitz.h"
#include "core/arith.h"

enum {
    MAX_EXTENT = 16, /* rows and columns of a plane */
    MIN_SAMPLES = 5, /* a product has eight; with fewer, rows of planes are faster */
    EIGHT = 8,
    SIXTEEN = 16, /* samples of a product of the gradient of the weights */
    MAX_GRID = 65535,
    MAX_WARPS = 16,
    TWO_BLOCKS = 113 << 10, /* bytes of shared memory of a block of which a multiprocessor has two */
    ONE_BLOCK = 118 << 10,  /* the same, if its registers suffice for one block anyway */
    MIN_WARPS = 4,          /* of a block for the gradient of the weights, if it has so many */
    MAX_DELTAS = 7,         /* of D, in the registers of a warp */
    MAX_DELTAS_LAST = 15    /* the same, with channels last: more shares load everything again */
};

/* Whether the planes of a sample follow one another without gaps. */
static bool is_dense(const cf_layer *layer, const cf_tensor *t, int64_t rows, int64_t columns) {
    return (rows == 1 || t->axis_stride[1] == columns) && (layer->groups == 1 || t->group_stride == rows * columns);
}

/* Whether eight channels of a pixel are aligned units of 16 bytes. */
static bool has_units(const cf_layer *layer, const cf_tensor *t) {
    return layer->groups % EIGHT == 0 && t->sample_stride % EIGHT == 0 && t->axis_stride[1] % EIGHT == 0 &&
           t->axis_stride[2] % EIGHT == 0;
}

static bool is_small(const cf_layer *layer, bool any_alignment, const cf_toeplitz_config *c) {
    const cf_axis *down = &layer->axis[1], *across = &layer->axis[2];
    if (c->line || c->mode != CONV_FFT_PAD_ZEROS || c->dtype == CONV_FFT_FP32 || layer->batch < MIN_SAMPLES)
        return false;
    for (int a = 1; a < 3; ++a)
        if (layer->axis[a].input > MAX_EXTENT || layer->axis[a].output > MAX_EXTENT)
            return false;
    if (c->last)
        return down->stride == 1 && across->stride == 1 && !any_alignment && has_units(layer, &layer->x) &&
               has_units(layer, &layer->y);
    return is_dense(layer, &layer->x, down->input, across->input) &&
           is_dense(layer, &layer->y, down->output, across->output);
}

/* The elements of one copy: samples and blocks of channels begin at multiples of them. */
static int granule_of(const cf_layer *layer, const cf_tensor *t, int64_t chunk, bool any_alignment) {
    int granule = any_alignment ? 1 : 8;
    while (chunk % granule != 0 || (layer->batch > 1 && t->sample_stride % granule != 0))
        granule /= 2;
    return granule;
}

/* The bytes of the loaded samples of a side. */
static int64_t side_bytes(const cf_toeplitz_config *c, const cf_toeplitz_access *a, bool padded) {
    return 4ll * c->loaded * cf_toeplitz_small_of(a->height, a->breadth, c->planes, padded).pitch;
}

/* The threads and the shared memory of a block with these channels and samples. */
static void set_signals(cf_toeplitz_config *c) {
    const cf_toeplitz_bands b = cf_toeplitz_small_bands(c);
    const int64_t x = side_bytes(c, &c->x, c->last), y = side_bytes(c, &c->y, true);
    const int groups = c->loaded / EIGHT;
    /* Of planes with many blocks, a half at a time: more registers would leave fewer warps. */
    c->blocks = b.y_blocks > EIGHT ? (b.y_blocks + 1) / 2 : b.y_blocks;
    c->each = c->last ? 2 : 1;
    c->warps = b.down == 1 ? groups : (groups + 1) / 2;
    c->threads = 32 * c->planes / c->each * c->warps;
    c->shared = (c->last ? cf_max(x, y) : x + y) + 4ll * (c->stride[1] + c->up[1]) * b.across * b.rows * c->planes;
    c->grid[1] = cf_ceil_div(c->samples, c->loaded);
}

/* The same of the gradient of the weights, whose rows are padded to blocks. */
static int64_t blocks_bytes(const cf_toeplitz_config *c, int blocks) {
    return (int64_t)CF_TOEPLITZ_UNIT * c->loaded * cf_toeplitz_small_units(blocks, c->planes);
}

static void set_weights(cf_toeplitz_config *c, const cf_gpu_properties *p) {
    const cf_toeplitz_bands b = cf_toeplitz_small_bands(c);
    const int deltas = b.last < b.first ? 0 : b.last - b.first + 1, groups = c->loaded / SIXTEEN;
    c->shares = (int)cf_max(1, cf_ceil_div(deltas, c->last ? MAX_DELTAS_LAST : MAX_DELTAS));
    const int shares = c->last ? 1 : c->shares; /* of a block */
    c->grid[0] *= c->shares / shares;
    c->warps = 1;
    while (groups % (2 * c->warps) == 0 && 4 * c->planes * shares * c->warps <= MIN_WARPS)
        c->warps *= 2;
    c->threads = 64 * shares * c->warps * c->planes;
    c->shared = cf_max(blocks_bytes(c, b.x_blocks) + blocks_bytes(c, b.y_blocks),
                       1024ll * (c->last ? cf_ceil_div(deltas, c->shares) : deltas) * c->warps * c->planes);
    const int64_t items = cf_ceil_div(c->samples, c->loaded), wanted = 2 * p->multiprocessors,
                  slices = cf_max(1, cf_min(cf_min(items, MAX_GRID), cf_ceil_div(wanted, c->grid[0])));
    c->grid[1] = cf_ceil_div(items, cf_ceil_div(items, slices));
}

/* Whether a block with these channels and samples fits the GPU. */
static bool fits(const cf_layer *layer, const cf_gpu_properties *p, bool any_alignment, cf_toeplitz_config *c) {
    const bool data = c->pass == CF_PASS_DATA;
    const int64_t x = (int64_t)c->x.height * c->x.breadth, y = (int64_t)c->y.height * c->y.breadth;
    c->x.granule = granule_of(layer, data ? &layer->y : &layer->x, c->last ? EIGHT : c->planes * x, any_alignment);
    c->y.granule = granule_of(layer, data ? &layer->x : &layer->y, c->last ? EIGHT : c->planes * y, any_alignment);
    c->grid[0] = cf_ceil_div(c->groups, c->planes);
    if (c->pass == CF_PASS_WEIGHTS)
        set_weights(c, p);
    else
        set_signals(c);
    const int most = c->last && c->pass == CF_PASS_WEIGHTS ? ONE_BLOCK : TWO_BLOCKS;
    return c->shared <= cf_min(p->shared_per_block, most) && c->threads <= 32 * MAX_WARPS;
}

bool cf_toeplitz_configure_small(const cf_layer *layer, const cf_gpu_properties *properties, bool any_alignment,
                                 const cf_toeplitz_config *common, cf_toeplitz_config *config) {
    if (!is_small(layer, any_alignment, common))
        return false;
    cf_toeplitz_config c = *common;
    const bool data = c.pass == CF_PASS_DATA, weights = c.pass == CF_PASS_WEIGHTS;
    const cf_axis *down = &layer->axis[1], *across = &layer->axis[2];
    const cf_toeplitz_access in = {.height = (int)down->input, .breadth = (int)across->input},
                             out = {.height = (int)down->output, .breadth = (int)across->output};
    c.small = true;
    c.x = data ? out : in;
    c.y = data ? in : out;
    c.row_pad = (int)cf_toeplitz_pad(down, data);
    c.column_pad = (int)cf_toeplitz_pad(across, data);
    const cf_toeplitz_bands b = cf_toeplitz_small_bands(&c);
    if (c.last) {
        /* y is slow to store in pieces of less than 32 bytes. */
        c.planes = weights ? EIGHT : b.down == 1 ? 2 * EIGHT : 4 * EIGHT;
        c.loaded = weights ? 8 * EIGHT : EIGHT;
    } else {
        /* Channels whose elements are whole copies of eight bytes. Many taps serve more samples. */
        c.planes = 1;
        while (c.planes < EIGHT && (c.x.height * c.x.breadth * c.planes) % 4 != 0)
            c.planes *= 2;
        c.loaded = weights || b.rows > 2 * EIGHT ? 8 * EIGHT : 4 * EIGHT;
    }
    const int few = c.last ? EIGHT : 1, least = weights ? SIXTEEN : EIGHT;
    while (c.loaded > least && c.loaded / 2 >= c.samples)
        c.loaded /= 2;
    while (!fits(layer, properties, any_alignment, &c)) {
        if (c.loaded > least)
            c.loaded /= 2;
        else if (c.planes > few)
            c.planes /= 2;
        else
            return false;
    }
    if (c.grid[1] > MAX_GRID || c.grid[0] > INT32_MAX)
        return false;
    *config = c;
    return true;
}

void cf_toeplitz_print_plane(const char *name, const cf_toeplitz_access *a, cf_text *t) {
    cf_text_add(t, "struct %s {\nstatic constexpr int ROWS = %d, COLUMNS = %d, GRANULE = %d;\n};\n", name, a->height,
                a->breadth, a->granule);
}

void cf_toeplitz_print_small(const cf_toeplitz_config *c, bool adds, cf_text *t) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const cf_slice_adder adder = cf_slice_adder_of(c->grid[1]);
    const int registers = weights ? 128 : cf_toeplitz_small_bands(c).y_blocks > EIGHT ? 80 : 64;
    cf_toeplitz_print_plane("X", &c->x, t);
    cf_toeplitz_print_plane("Y", &c->y, t);
    cf_text_add(t,
                "static constexpr int KERNEL_Y = %d, KERNEL_X = %d, STRIDE_Y = %d, STRIDE_X = %d, UP_Y = %d, UP_X = "
                "%d, ROW_PAD = %d, COLUMN_PAD = %d, CHANNELS = %d, "
                "SAMPLES = %d, EACH = %d, %s = %d, %s = %d;\n",
                c->kernel[0], c->kernel[1], c->stride[0], c->stride[1], c->up[0], c->up[1], c->row_pad, c->column_pad,
                c->planes, c->loaded, c->each, weights ? "SPLITS" : "WARPS", c->warps, weights ? "SHARES" : "BLOCKS",
                weights ? c->shares : c->blocks);
    cf_text_add(t, "static constexpr bool LAST = %s, FLIP = %s, SCALED = %s;\n};\n", c->last ? "true" : "false",
                c->pass == CF_PASS_DATA ? "true" : "false", c->scaled ? "true" : "false");
    cf_text_add(t, "CF_TOEPLITZ_KERNEL(%s, %d, %d)\n",
                adds      ? "toeplitz_add"
                : weights ? "small_weights"
                          : "small_planes",
                adds ? adder.sums * adder.shares : c->threads,
                adds ? 1 : (int)cf_max(1, 65536 / (registers * c->threads)));
}
