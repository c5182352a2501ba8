/* SPDX-License-Identifier: Apache-2.0 */
/* How a pass over long signals is divided into blocks, and the text of its kernels. */
#include "conv/long1d/long1d.h"

#include "conv/long1d/geometry.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/kernel_sources.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/common/kernel_text.h"
#include "fbfft/warp/config.h"

#include <string.h>

enum {
    MIN_POINTS = 1024,
    MIN_FOR_BOTH = 4096, /* basis; for shorter signals, one gradient after the other was measured to be faster */
    MAX_LINE = 1 << 20
};

/* For lines of 1024, 2048, 4096 and 8192 points. Threads hold a step's points in registers, so few blocks fit. */
static const cf_long1d_steps steps_of_one[] = {
    {{32, 32, 1}, 32, 4, 4}, {{8, 16, 16}, 128, 1, 5}, {{16, 16, 16}, 256, 1, 4}, {{32, 16, 16}, 256, 1, 2}};
static const cf_long1d_steps steps_of_two[] = {
    {{16, 8, 8}, 32, 1, 8}, {{8, 16, 16}, 64, 1, 4}, {{16, 16, 16}, 128, 1, 2}, {{32, 16, 16}, 256, 1, 1}};
/* Radices of columns, by the number of parts, 2 to 128. */
static const struct {
    int radix[2], threads;
} columns[] = {{{2, 1}, 256}, {{4, 1}, 256}, {{8, 1}, 256}, {{16, 1}, 128},
               {{8, 4}, 128}, {{8, 8}, 256}, {{16, 8}, 256}};

static bool is_trivial(const cf_axis *axis, int64_t basis, int64_t tiles) {
    return basis == 1 && tiles == 1 && axis->input == 1 && axis->kernel == 1 && axis->output == 1;
}

static bool fits_int(int64_t count, const cf_tensor *t) {
    const int64_t stride = t->axis_stride[2] < 0 ? -t->axis_stride[2] : t->axis_stride[2];
    return stride < INT32_MAX / count;
}

bool cf_long1d_serves(const cf_layer *layer, int pass, const cf_strategy *s) {
    const cf_axis *a = &layer->axis[2];
    const int64_t basis = s->basis[2];
    if (layer->in_channels != 1 || layer->out_channels != 1 || layer->compute != CONV_FFT_FP32 ||
        s->spectrum != CONV_FFT_FP32 || !is_trivial(&layer->axis[0], s->basis[0], s->tiles[0]) ||
        !is_trivial(&layer->axis[1], s->basis[1], s->tiles[1]))
        return false;
    if (a->stride != 1 || a->dilation != 1 || a->mode != CONV_FFT_PAD_ZEROS || s->tiles[2] != 1 || s->overlap_add)
        return false;
    if (basis < 2 * MIN_POINTS || basis > 2 * MAX_LINE || (basis & (basis - 1)) != 0)
        return false;
    /* Numbers that wrap around reach no output that is stored. */
    const int64_t before = a->input + a->pad_before, after = a->output + a->kernel - 1 - a->pad_before;
    if (cf_max(a->input, a->output) > basis || cf_max(before, after) > basis)
        return false;
    return fits_int(a->input, &layer->x) && fits_int(a->output, &layer->y) &&
           fits_int(a->kernel, pass == CF_PASS_WEIGHTS ? &layer->gw : &layer->w);
}

bool cf_long1d_serves_both(const cf_layer *layer, const cf_strategy *data, const cf_strategy *weights) {
    return layer->batch > 0 && data->basis[2] == weights->basis[2] && data->basis[2] >= MIN_FOR_BOTH &&
           cf_long1d_serves(layer, CF_PASS_DATA, data) && cf_long1d_serves(layer, CF_PASS_WEIGHTS, weights);
}

static cf_long1d_side side_of(const cf_tensor *t, int64_t count) {
    return (cf_long1d_side){t->dtype, cf_tensor_bias_dtype(t), count, t->axis_stride[2]};
}

/* Bytes of shared memory for one line. */
static int64_t line_bytes(const cf_long1d_steps *s) {
    return (int64_t)cf_long1d_layout_of(s->radix[0], s->radix[1], s->radix[2]).size * 8;
}

static void choose_stages(cf_long1d_config *c, int pass) {
    const bool cut = cf_long1d_parts(c) > 1, both = pass == CF_LONG1D_BOTH, weights = both || pass == CF_PASS_WEIGHTS,
               multiplies = pass != CF_PASS_WEIGHTS;
    c->stage[CF_LONG1D_CUT_X] = cut;
    c->stage[CF_LONG1D_CUT_W] = cut && multiplies;
    c->stage[CF_LONG1D_CUT_Y] = c->stage[CF_LONG1D_JOIN_W] = cut && weights;
    c->stage[CF_LONG1D_JOIN_Y] = cut && !weights;
    c->stage[CF_LONG1D_JOIN_GX] = cut && both;
    c->stage[CF_LONG1D_SPECTRA] = multiplies;
    c->stage[CF_LONG1D_LINES] = !weights;
    c->stage[CF_LONG1D_SUMS] = weights && !both;
    c->stage[CF_LONG1D_BOTH_SUMS] = both;
    c->stage[CF_LONG1D_GRADIENT] = weights;
}

/* Groups of a chunk: as many as need a gigabyte between kernels, or a small share of the GPU's memory. Larger chunks
 * gain hardly anything. Smaller chunks would stay in the L2 cache, but the additional launches cost more. */
static int64_t groups_together(const cf_long1d_config *c, const cf_gpu_properties *properties) {
    const int64_t max_bytes = cf_min((int64_t)1 << 30, properties->memory_bytes / 32),
                  lines = c->stage[CF_LONG1D_CUT_Y]   ? 2 * c->rows + 2 * c->stage[CF_LONG1D_BOTH_SUMS]
                          : c->stage[CF_LONG1D_CUT_X] ? c->rows + 1
                                                      : 1;
    return cf_max(1, cf_min(c->groups, max_bytes / (lines * cf_long1d_points(c) * cf_long1d_parts(c) * 8)));
}

/* Lines that fit a block are not divided. Other lines are faster with short parts, until columns need two steps for
 * them. */
static int64_t points_of(int64_t line) {
    const int64_t max_short_parts = 16, short_points = CF_LONG1D_MAX_POINTS / 2;
    return line <= CF_LONG1D_MAX_POINTS             ? line
           : line <= max_short_parts * short_points ? short_points
                                                    : CF_LONG1D_MAX_POINTS;
}

conv_fft_status cf_long1d_configure(const cf_layer *layer, int pass, const cf_strategy *s,
                                    const cf_gpu_properties *properties, cf_long1d_config *config) {
    const cf_axis *a = &layer->axis[2];
    const int64_t line = s->basis[2] / 2, points = points_of(line);
    const bool data = pass == CF_PASS_DATA, sums = pass == CF_PASS_WEIGHTS || pass == CF_LONG1D_BOTH;
    int size = 0, cuts = 0;
    while (MIN_POINTS << size < points)
        ++size;
    while (points << cuts < line)
        ++cuts;
    cf_long1d_config c = {.one = steps_of_one[size], .two = steps_of_two[size], .column = {1, 1}, .slices = 1};
    if (cuts > 0) {
        memcpy(c.column, columns[cuts - 1].radix, sizeof c.column);
        c.column_threads = columns[cuts - 1].threads;
    }
    const cf_long1d_side x = side_of(&layer->x, a->input), y = side_of(&layer->y, a->output);
    c.x = data ? y : x;
    c.y = data ? x : y;
    c.w = side_of(&layer->w, a->kernel);
    c.gw = side_of(&layer->gw, a->kernel);
    c.pad = a->pad_before;
    c.conjugate = pass != CF_PASS_FORWARD;
    c.groups_first = layer->x.axis_stride[2] != 1 && layer->x.group_stride == 1;
    c.rows = layer->batch;
    c.groups = layer->groups;
    choose_stages(&c, pass);
    c.together = groups_together(&c, properties);
    const int64_t lines = cf_max(line_bytes(&c.one) * c.one.lines, sums ? 2 * line_bytes(&c.two) : 0),
                  tiles = cuts > 0 ? points / CF_LONG1D_LANES : 1;
    if (lines > properties->shared_per_block)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "lines of %lld points take %lld bytes; a block has %lld",
                       (long long)points, (long long)lines, (long long)properties->shared_per_block);
    if (c.rows > INT32_MAX / (c.together * cf_max(tiles, cf_long1d_parts(&c))))
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "%lld samples of %lld groups are too many blocks of one kernel",
                       (long long)c.rows, (long long)c.together);
    if (sums) {
        /* Sums are divided only if blocks would be too few otherwise. */
        const int64_t blocks = c.together * cf_long1d_parts(&c), wave = properties->multiprocessors * c.two.blocks;
        c.slices = cf_max(1, cf_min(c.rows, wave / blocks));
    }
    *config = c;
    return CONV_FFT_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------- kernels */

static const struct {
    const char *function;
    bool columns, two; /* two: steps of two lines */
} kernels[CF_LONG1D_STAGES] = {
    [CF_LONG1D_CUT_W] = {"columns_of_weights", true, false}, [CF_LONG1D_CUT_X] = {"columns_of_x", true, false},
    [CF_LONG1D_CUT_Y] = {"columns_of_y", true, false},       [CF_LONG1D_SPECTRA] = {"long1d_spectra", false, false},
    [CF_LONG1D_LINES] = {"long_lines", false, false},        [CF_LONG1D_SUMS] = {"long1d_sums", false, true},
    [CF_LONG1D_BOTH_SUMS] = {"long1d_both", false, true},    [CF_LONG1D_GRADIENT] = {"long1d_gradient", false, true},
    [CF_LONG1D_JOIN_Y] = {"y_of_columns", true, false},      [CF_LONG1D_JOIN_W] = {"weights_of_columns", true, false},
    [CF_LONG1D_JOIN_GX] = {"gx_of_columns", true, false}};

/* A spectrum is in the order of the steps of the kernel that reads it. */
static const cf_long1d_steps *steps_of(const cf_long1d_config *c, cf_long1d_stage stage) {
    return kernels[stage].two || c->stage[CF_LONG1D_BOTH_SUMS] ? &c->two : &c->one;
}
/* Whether a block of the kernel has two lines. */
static bool has_two(cf_long1d_stage stage) { return stage == CF_LONG1D_SUMS || stage == CF_LONG1D_BOTH_SUMS; }
static int threads_of(const cf_long1d_config *c, cf_long1d_stage stage) {
    const cf_long1d_steps *s = steps_of(c, stage);
    if (kernels[stage].columns)
        return c->column_threads;
    return s->threads * (has_two(stage) ? 2 : stage == CF_LONG1D_LINES ? s->lines : 1);
}
static size_t shared_of(const cf_long1d_config *c, cf_long1d_stage stage) {
    const cf_long1d_steps *s = steps_of(c, stage);
    if (kernels[stage].columns)
        return (size_t)cf_long1d_column_size(c->column[0], c->column[1]) * 8;
    return (size_t)line_bytes(s) * (size_t)(has_two(stage) ? 2 : stage == CF_LONG1D_LINES ? s->lines : 1);
}

cf_launch cf_long1d_launch(const cf_long1d_config *c, cf_long1d_stage stage, int64_t groups) {
    const bool weights = stage == CF_LONG1D_CUT_W || stage == CF_LONG1D_JOIN_W;
    int64_t blocks = groups * cf_long1d_parts(c);
    if (kernels[stage].columns)
        blocks = groups * (weights ? 1 : c->rows) *
                 (cf_long1d_points(c) / (c->column[1] > 1 ? CF_LONG1D_LANES : c->column_threads));
    else if (stage == CF_LONG1D_LINES)
        blocks = cf_ceil_div(blocks * c->rows, c->one.lines);
    return (cf_launch){{(unsigned)blocks, has_two(stage) ? (unsigned)c->slices : 1, 1},
                       {(unsigned)threads_of(c, stage), 1, 1},
                       shared_of(c, stage),
                       NULL};
}

static void add_side(const char *name, const cf_long1d_side *side, bool parts, int64_t pad, cf_text *t) {
    if (parts)
        cf_text_add(t, "struct %s {\ntypedef pieces Storage;\n};\n", name);
    else
        cf_text_add(t,
                    "struct %s {\ntypedef %s Storage;\ntypedef %s Bias;\nstatic constexpr int COUNT = %lld, STRIDE = "
                    "%lld, PAD = "
                    "%lld;\n};\n",
                    name, cf_storage_name(side->dtype), cf_storage_name(side->bias_dtype), (long long)side->count,
                    (long long)side->stride, (long long)pad);
}

static void add_kernel(const cf_long1d_config *c, cf_long1d_stage stage, cf_text *t) {
    const bool parts = cf_long1d_parts(c) > 1 && !kernels[stage].columns;
    const cf_long1d_steps *s = steps_of(c, stage);
    const bool gradient = stage == CF_LONG1D_GRADIENT || stage == CF_LONG1D_JOIN_W;
    const int blocks = stage == CF_LONG1D_LINES || has_two(stage) ? s->blocks : 2;
    add_side("SideX", &c->x, parts, 0, t);
    add_side("SideY", &c->y, parts, 0, t);
    add_side("SideW", gradient ? &c->gw : &c->w, parts, c->pad, t);
    cf_text_add(t, "struct Steps {\nstatic constexpr int R1 = %d, R2 = %d, R3 = %d, T = %d;\n};\n", s->radix[0],
                s->radix[1], s->radix[2], s->threads);
    cf_text_add(t, "struct Cut {\nstatic constexpr int A1 = %d, A2 = %d, H = %lld, T = %d;\n};\n", c->column[0],
                c->column[1], (long long)cf_long1d_points(c), c->column_threads);
    cf_text_add(t,
                "struct Problem {\ntypedef Steps K;\ntypedef Cut C;\ntypedef SideX X;\ntypedef SideY Y;\ntypedef SideW "
                "W;\nstatic constexpr int LINES = %d;\nstatic constexpr bool CONJUGATE = %s, GROUPS_FIRST = %s;\n};\n",
                s->lines, c->conjugate ? "true" : "false", c->groups_first ? "true" : "false");
    cf_text_add(t, "CF_LONG1D_KERNEL(%s, %d, %d)\n", kernels[stage].function, threads_of(c, stage), blocks);
}

conv_fft_status cf_long1d_source(const cf_long1d_config *c, cf_long1d_stage stage, cf_source *source) {
    char tail[4096];
    cf_text t = {tail, sizeof tail, 0};
    add_kernel(c, stage, &t);
    *source = (cf_source){.name = "cf_long1d",
                          .options = {CF_FFT_OPTION, "-DCF_FORCE_INLINE", NULL},
                          .dynamic_shared = shared_of(c, stage),
                          .pdl_wait = true,
                          .work = 2};
    return cf_fbfft_set_text(source, cf_long1d_kernel_text, &t);
}
