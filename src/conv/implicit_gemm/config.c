/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers the family computes, how the pass is divided into blocks, and the text of its kernel. */
#include "conv/implicit_gemm/implicit_gemm.h"

#include "conv/gpu/slice_adder.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "core/text.h"
#include "cuda/jit/kernel_sources.h"
#include "fbfft/common/kernel_text.h"
#include "fbfft/warp/config.h"

#include <float.h>

enum {
    UNIT_BYTES = 16,
    MAX_CHANNELS = 8, /* of a unit */
    MIN_OUTPUTS = 8,  /* channels of y, so that products are not mostly zeros */
    MAX_STRIDE = 8,
    MAX_STEPS = 64, /* products of a patch, and products of a tile for a sum, which the kernels list one by one */
    MAX_TEAMS = 3,
    MAX_DOWN = 8,     /* patches of a tile, or rows */
    MAX_SUMS = 72,    /* registers of a thread for sums of weights: more spill */
    MAX_CHAIN = 2048, /* products of a sum, which tensor cores truncate */
    MAX_EXTENT = 1 << 28,
    MAX_GRID = 65535
};

/* ---------------------------------------------------------------------------------------------------------- layers */

static int64_t magnitude(int64_t n) { return n < 0 ? -n : n; }

/* The places of a sample fit an int, and so do those of a tile that ends behind it. */
static bool is_small(const cf_layer *layer, const cf_tensor *t, bool is_x) {
    int64_t last = (is_x ? layer->in_channels : layer->out_channels) * magnitude(t->channel_stride);
    for (int a = 1; a < 3; ++a) {
        const cf_axis *axis = &layer->axis[a];
        const int64_t extent = 2 * (is_x ? axis->input + axis->kernel + axis->stride * 64 + magnitude(axis->pad_before)
                                         : axis->output + 64);
        if (magnitude(t->axis_stride[a]) >= INT32_MAX / extent)
            return false;
        last += extent * magnitude(t->axis_stride[a]);
    }
    return last < INT32_MAX;
}

static bool is_last(const cf_layer *layer) { return layer->y.axis_stride[2] != 1; }

static cf_igemm_geometry geometry_of_kernel(const cf_layer *layer) {
    const cf_axis *down = &layer->axis[1], *across = &layer->axis[2];
    const cf_igemm_extents e = {
        (int)layer->in_channels, (int)down->kernel, (int)across->kernel, (int)down->stride, (int)across->stride, 8, 8};
    return cf_igemm_geometry_of(e);
}

bool cf_igemm_serves(const cf_layer *layer, int pass, const char **why) {
    *why = "implicit_gemm computes y and gw";
    if (pass == CF_PASS_DATA)
        return false;
    *why = "implicit_gemm computes layers in FP16 and BF16, with weights of the same type";
    if ((layer->x.dtype != CONV_FFT_FP16 && layer->x.dtype != CONV_FFT_BF16) || layer->compute != CONV_FFT_FP32 ||
        (pass == CF_PASS_FORWARD ? &layer->w : &layer->gw)->dtype != layer->x.dtype)
        return false;
    *why = "implicit_gemm computes up to 8 input channels, and 8 output channels or more, of a group";
    if (layer->in_channels > MAX_CHANNELS || layer->out_channels < MIN_OUTPUTS)
        return false;
    *why = "implicit_gemm computes planes padded by zeros, without dilation, with strides of up to 8";
    const cf_axis *depth = &layer->axis[0];
    if (depth->input != 1 || depth->kernel != 1 || depth->output != 1 || depth->pad_before != 0)
        return false;
    for (int a = 1; a < 3; ++a) {
        const cf_axis *axis = &layer->axis[a];
        if (axis->mode != CONV_FFT_PAD_ZEROS || (axis->dilation != 1 && axis->kernel > 1) ||
            axis->stride > MAX_STRIDE || axis->input < 1 || axis->output < 1 || axis->input > MAX_EXTENT ||
            axis->output > MAX_EXTENT)
            return false;
    }
    *why = "implicit_gemm computes up to 64 products for a patch of outputs";
    if (layer->axis[1].kernel > 2 * MAX_STEPS || layer->axis[2].kernel > 16 * MAX_STEPS ||
        geometry_of_kernel(layer).steps > MAX_STEPS)
        return false;
    *why = "implicit_gemm computes tensors with neighbouring columns or channels of y, and counts the elements of a "
           "sample with 31 bits";
    return (layer->y.axis_stride[2] == 1 || layer->y.channel_stride == 1) && is_small(layer, &layer->x, true) &&
           is_small(layer, &layer->y, false);
}

/* ---------------------------------------------------------------------------------------------------------- blocks */

static int granule_of(const cf_layer *layer, int pass, bool any_alignment) {
    const cf_tensor *t = &layer->y;
    const bool last = is_last(layer);
    const int64_t strides[] = {t->sample_stride, t->group_stride, t->axis_stride[1],
                               last ? t->axis_stride[2] : t->channel_stride,
                               last                      ? layer->out_channels
                               : pass == CF_PASS_FORWARD ? 2
                                                         : layer->axis[2].output};
    int granule = any_alignment ? 1 : pass == CF_PASS_FORWARD && !last ? 2 : 8;
    for (int i = 0; i < 5; ++i)
        if (strides[i] % granule != 0)
            granule = strides[i] % 2 == 0 ? 2 : 1;
    return granule;
}

/* Whether columns of x are loaded by twos, and the taps before the kernel that align them: no unit more. */
static bool has_pairs(const cf_layer *layer, bool any_alignment, int *lead) {
    const cf_tensor *t = &layer->x;
    const cf_axis *across = &layer->axis[2];
    const int64_t taps = geometry_of_kernel(layer).taps,
                  even[] = {t->sample_stride,  t->group_stride, layer->in_channels > 1 ? t->channel_stride : 0,
                            t->axis_stride[1], across->stride,  across->input};
    *lead = across->pad_before % 2 != 0;
    bool pairs = !any_alignment && t->axis_stride[2] == 1 && taps > 1 &&
                 cf_ceil_div(across->kernel + *lead, taps) == cf_ceil_div(across->kernel, taps);
    for (int i = 0; i < 6; ++i)
        pairs = pairs && even[i] % 2 == 0;
    *lead = pairs && *lead;
    return pairs;
}

cf_igemm_geometry cf_igemm_geometry_for(const cf_igemm_config *c) {
    const cf_igemm_extents e = {c->channels, c->kernel[0], c->kernel[1] + c->lead, c->stride[0], c->stride[1],
                                c->tile[0],  c->tile[1]};
    return cf_igemm_geometry_of(e);
}

static cf_igemm_products products_for(const cf_igemm_config *c) {
    return cf_igemm_products_of(cf_igemm_geometry_for(c), c->kernel[0], c->stride[1]);
}

/* Products of a tile for one sum of a weight. */
static int64_t steps_of_tile(const cf_igemm_config *c) { return cf_ceil_div((int64_t)c->tile[0] * c->tile[1], 16); }

/* Units of gy of a tile (PITCH in weights.cuh). */
static int64_t units_of_gy(const cf_igemm_config *c) {
    return c->last ? c->columns / 8 * (16 * steps_of_tile(c) + 1) : 2 * steps_of_tile(c) * (c->columns + 4);
}

/* Units of a tile. */
static int64_t units_of_tile(const cf_igemm_config *c) {
    const cf_igemm_geometry g = cf_igemm_geometry_for(c);
    return c->pass == CF_PASS_WEIGHTS ? products_for(c).tile + units_of_gy(c) : (int64_t)g.rows * g.pitch;
}

/* The cycles of a tile on an idle multiprocessor: those of its tensor cores and loads, and how long a block waits. */
typedef struct cycles_of_tile {
    double busy, alone;
} cycles_of_tile;

/* The figures are from measurements on an H200. */
static cycles_of_tile forward_cycles(const cf_igemm_config *c) {
    const cf_igemm_geometry g = cf_igemm_geometry_for(c);
    const int rounds = (int)cf_ceil_div((int64_t)c->tile[0] * c->tile[1] / 64, c->teams);
    const double product = 12.0 + 0.46 * c->columns, unit = 1.9, wait = 600.0,
                 outputs = (c->last          ? 5.0
                            : c->granule > 1 ? 10.0
                                             : 23.0) *
                           c->columns,
                 patches = (double)rounds * c->teams;
    return (cycles_of_tile){patches * (g.steps * product + outputs) + (double)units_of_tile(c) * unit,
                            rounds * (g.steps * product * c->teams + 2 * outputs) + wait};
}

static cycles_of_tile weight_cycles(const cf_igemm_config *c) {
    const cf_igemm_products p = products_for(c);
    const double product = 22.0 + 0.56 * c->columns, unit = 1.7, wait = 1250.0,
                 all = (double)(cf_ceil_div(p.count, c->teams) * c->teams * steps_of_tile(c));
    return (cycles_of_tile){all * product + (double)units_of_tile(c) * unit, all * product + wait};
}

/* Teams of a multiprocessor share its tensor cores. The more there are, the less these wait for loads and stores. */
double cf_igemm_cycles(const cf_igemm_config *c, const cf_gpu_properties *p) {
    const cycles_of_tile of = c->pass == CF_PASS_WEIGHTS ? weight_cycles(c) : forward_cycles(c);
    const int64_t tiles = c->samples * c->tiles[0] * c->tiles[1], blocks = c->grid[0] * c->grid[1];
    const double busy = of.busy * (0.67 + 1.0 / (c->teams * c->resident)), alone = of.alone / c->resident;
    return (double)cf_ceil_div(blocks, p->multiprocessors) *
           (2000.0 + (double)cf_ceil_div(tiles, c->grid[0]) * (busy > alone ? busy : alone));
}

/* A block of so many teams, with tiles of so many outputs. False: it does not fit. */
static bool divide(cf_igemm_config *c, const cf_gpu_properties *p, int teams, int rows, int columns) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    c->teams = teams;
    c->tile[0] = rows;
    c->tile[1] = columns;
    c->tiles[0] = (int)cf_ceil_div(c->output[0], rows);
    c->tiles[1] = (int)cf_ceil_div(c->output[1], columns);
    const int64_t sums = weights ? cf_ceil_div(products_for(c).count, teams) * c->columns / 2 : 0,
                  registers = weights ? 80 + sums : 128,
                  room = c->last ? 0 : 4ll * CF_IGEMM_ROOM_PITCH * c->columns * teams,
                  fixed = weights ? 0
                                  : 2ll * cf_igemm_geometry_for(c).steps * c->columns * UNIT_BYTES + 4ll * c->columns +
                                        room;
    c->threads = 128 * teams;
    c->shared = 2 * units_of_tile(c) * UNIT_BYTES + fixed;
    if (c->shared > p->shared_per_block || sums > MAX_SUMS ||
        (weights && steps_of_tile(c) * cf_ceil_div(products_for(c).count, teams) > MAX_STEPS))
        return false;
    c->resident = (int)cf_max(1, cf_min(cf_min(p->shared_per_multiprocessor / (c->shared + 1024),
                                               p->registers_per_multiprocessor / (registers * c->threads)),
                                        p->threads_per_multiprocessor / c->threads));
    const int64_t tiles = c->samples * c->tiles[0] * c->tiles[1],
                  at_once = cf_max(1, p->multiprocessors * c->resident / c->grid[1]),
                  wanted = weights ? cf_max(at_once, cf_ceil_div(tiles * steps_of_tile(c), MAX_CHAIN)) : at_once;
    c->grid[0] = cf_ceil_div(tiles, cf_ceil_div(tiles, cf_min(tiles, wanted)));
    return true;
}

conv_fft_status cf_igemm_configure(const cf_layer *layer, int pass, const cf_gpu_properties *properties,
                                   bool any_alignment, cf_igemm_config *config) {
    static const int columns[2][4] = {{32, 64, 96}, {32, 48, 64, 96}};
    const bool weights = pass == CF_PASS_WEIGHTS;
    cf_igemm_config c = {.pass = pass,
                         .dtype = layer->x.dtype,
                         .weights = weights ? layer->gw.dtype : layer->w.dtype,
                         .bias = cf_tensor_bias_dtype(&layer->y),
                         .channels = (int)layer->in_channels,
                         .out_channels = (int)layer->out_channels,
                         .last = is_last(layer),
                         .granule = granule_of(layer, pass, any_alignment),
                         .samples = layer->batch,
                         .groups = layer->groups};
    for (int i = 0; i < 2; ++i) {
        const cf_axis *axis = &layer->axis[1 + i];
        c.kernel[i] = (int)axis->kernel;
        c.stride[i] = (int)axis->stride;
        c.pad[i] = (int)axis->pad_before;
        c.input[i] = (int)axis->input;
        c.output[i] = (int)axis->output;
    }
    const int patch_rows = weights ? 1 : cf_igemm_patch_rows(c.last), patch_columns = weights ? 8 : 64 / patch_rows;
    const int64_t across = cf_ceil_div(c.output[1], patch_columns);
    c.pairs = has_pairs(layer, any_alignment, &c.lead);
    double least = DBL_MAX;
    for (int n = 0; n < 4 && columns[weights][n] > 0; ++n) {
        c.columns = columns[weights][n];
        c.grid[1] = cf_ceil_div(layer->out_channels, c.columns) * layer->groups;
        if (c.grid[1] > MAX_GRID || (n > 0 && layer->out_channels <= columns[weights][n - 1]))
            continue;
        for (int teams = 1; teams <= MAX_TEAMS; ++teams)
            for (int down = 1; down <= MAX_DOWN; ++down)
                for (int parts = 1; parts <= 32 && parts <= across; parts *= 2) {
                    if (!divide(&c, properties, teams, patch_rows * down,
                                patch_columns * (int)cf_ceil_div(across, parts)))
                        continue;
                    const double cycles = cf_igemm_cycles(&c, properties);
                    if (cycles >= least)
                        continue;
                    least = cycles;
                    *config = c;
                }
    }
    if (layer->batch > INT32_MAX / 2 / (c.output[0] * across))
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "%lld samples have too many tiles", (long long)layer->batch);
    if (least == DBL_MAX)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "weights and tiles do not fit the %lld bytes of a block",
                       (long long)properties->shared_per_block);
    return CONV_FFT_SUCCESS;
}

static int64_t sums_of_block(const cf_igemm_config *c) { return 64ll * products_for(c).count * c->columns; }

size_t cf_igemm_bytes(const cf_igemm_config *c) {
    return c->pass == CF_PASS_WEIGHTS ? (size_t)(c->grid[0] * c->grid[1] * sums_of_block(c)) * 4 : 0;
}

/* ---------------------------------------------------------------------------------------------------------- kernel */

conv_fft_status cf_igemm_source(const cf_igemm_config *c, bool adds, cf_source *source) {
    const cf_slice_adder adder = cf_slice_adder_of(c->grid[0]);
    char tail[2048];
    cf_text t = {tail, sizeof tail, 0};
    cf_text_add(&t, "struct Problem {\ntypedef %s Storage;\ntypedef %s Weights;\ntypedef %s Bias;\n",
                cf_storage_name(c->dtype), cf_storage_name(c->weights), cf_storage_name(c->bias));
    cf_text_add(&t,
                "static constexpr int CHANNELS = %d, OUT_CHANNELS = %d, KERNEL_Y = %d, KERNEL_X = %d, STRIDE_Y = %d, "
                "STRIDE_X = %d, PAD_Y = %d, PAD_X = %d, ROWS = %d, COLUMNS = %d, OUT_ROWS = %d, OUT_COLUMNS = %d;\n",
                c->channels, c->out_channels, c->kernel[0], c->kernel[1], c->stride[0], c->stride[1], c->pad[0],
                c->pad[1], c->input[0], c->input[1], c->output[0], c->output[1]);
    cf_text_add(&t,
                "static constexpr int TILE_ROWS = %d, TILE_COLUMNS = %d, TILES_DOWN = %d, TILES_ACROSS = %d, N = %d, "
                "TEAMS = %d, GRANULE = %d, LEAD = %d, ADD_SUMS = %d, ADD_SHARES = %d;\nstatic constexpr bool LAST = "
                "%s, PAIRS = %s;\n};\n",
                c->tile[0], c->tile[1], c->tiles[0], c->tiles[1], c->columns, c->teams, c->granule, c->lead, adder.sums,
                adder.shares, c->last ? "true" : "false", c->pairs ? "true" : "false");
    cf_text_add(&t, "CF_IGEMM_KERNEL(%s, %d, %d)\n",
                adds                         ? "igemm_add"
                : c->pass == CF_PASS_WEIGHTS ? "igemm_weight_sums"
                                             : "igemm_forward",
                adds ? adder.sums * adder.shares : c->threads, adds ? 1 : c->resident);
    *source = (cf_source){.name = "cf_igemm",
                          .headers = {cf_igemm_kernel_text, NULL},
                          .options = {CF_FFT_OPTION, NULL},
                          .dynamic_shared =
                              adds ? (size_t)cf_slice_adder_shared(adder, (int)sizeof(float)) : (size_t)c->shared,
                          .pdl_wait = true};
    return cf_source_set_text(source, &t);
}
