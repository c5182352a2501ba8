/* SPDX-License-Identifier: Apache-2.0 */
/* How family toeplitz divides passes into blocks; no GPU is needed. test_toeplitz_served.c tells which it takes.
 * nvrtc/test_toeplitz.c compiles their kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conv/toeplitz/toeplitz.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "support/kernel_cases.h"
#include "support/random_problems.h"

static bool make(const char *line, cf_layer *layer) {
    conv_fft_problem p;
    return conv_fft_problem_parse(line, &p, NULL, 0) == CONV_FFT_SUCCESS &&
           cf_layer_make(&p, layer) == CONV_FFT_SUCCESS;
}

/* What the kernels of channels in place rely on. */
static void check_in_place(const char *line, const cf_layer *layer, const cf_toeplitz_config *c,
                           const cf_gpu_properties *properties, bool any) {
    const bool data = c->pass == CF_PASS_DATA, weights = c->pass == CF_PASS_WEIGHTS;
    const cf_axis *a = layer->axis;
    const int64_t rows = data ? a[1].input : a[1].output, columns = data ? a[2].input : a[2].output,
                  units = layer->batch * cf_ceil_div(rows, data ? c->stride[0] : 1);
    /* The taps by which the last of two outputs reads the last position, and the first output the first one. */
    const int64_t last = 4 * c->steps - 1,
                  after = data ? 1 + c->offset[1] - c->stride[1] * (last + 1) : last + 1 - c->stride[1];
    const bool good = c->threads == 32 * c->parts * c->quads / (weights ? 2 : 1) && c->threads <= 1024 &&
                      c->shared <= properties->shared_per_block && c->quads % 2 == 0 && c->batch > 0 &&
                      c->buffers > 1 && c->tiles_across * c->parts * c->tiles * (weights ? 16 : 32) >= columns &&
                      c->grid[0] * 4 * c->quads >= layer->groups && c->grid[1] <= 65535 &&
                      c->grid[1] % c->tiles_across == 0 && c->grid[1] / c->tiles_across >= 1 &&
                      c->grid[1] / c->tiles_across <= units && !(any && c->aligned) &&
                      (weights || (data ? after < 0 && c->offset[1] + c->stride[1] >= c->kernel[1] &&
                                              c->offset[0] + c->stride[0] >= c->kernel[0] && c->offset[0] >= 0
                                        : after >= c->kernel[1]));
    if (!good)
        fail_msg("%s, pass %d", line, c->pass);
}

/* What the kernels of small planes rely on. */
static void check_small(const char *line, const cf_layer *layer, const cf_toeplitz_config *c,
                        const cf_gpu_properties *properties) {
    const bool data = c->pass == CF_PASS_DATA, weights = c->pass == CF_PASS_WEIGHTS;
    const cf_axis *a = layer->axis;
    const int64_t in[2] = {a[1].input, a[2].input}, out[2] = {a[1].output, a[2].output};
    const cf_toeplitz_bands bands = cf_toeplitz_small_bands(c);
    const int64_t x_pitch = weights ? 4 * cf_toeplitz_small_units(bands.x_blocks, c->planes)
                                    : cf_toeplitz_small_of(c->x.height, c->x.breadth, c->planes, c->last).pitch,
                  y_pitch = weights ? 4 * cf_toeplitz_small_units(bands.y_blocks, c->planes)
                                    : cf_toeplitz_small_of(c->y.height, c->y.breadth, c->planes, true).pitch,
                  deltas = cf_max(0, bands.last - bands.first + 1), shares = c->last ? 1 : c->shares,
                  loads = cf_ceil_div(c->samples, c->loaded),
                  begins[2] = {(int64_t)c->planes * in[0] * in[1], (int64_t)c->planes * out[0] * out[1]};
    const bool good =
        c->threads == 32 * c->planes * c->warps * (weights ? 2 * shares : 1) / (weights ? 1 : c->each) &&
        c->threads <= 512 && c->shared <= properties->shared_per_block &&
        4 * c->loaded * (c->last && !weights ? cf_max(x_pitch, y_pitch) : x_pitch + y_pitch) +
                (weights ? 0 : c->planes * bands.rows * 4 * (c->stride[1] + c->up[1]) * bands.across) <=
            c->shared &&
        (!weights || 1024 * (c->last ? cf_ceil_div(deltas, c->shares) : deltas) * c->planes * c->warps <= c->shared) &&
        c->loaded % 8 == 0 && c->grid[0] == cf_ceil_div(c->groups, c->planes) * (weights ? c->shares / shares : 1) &&
        (!weights || c->loaded % (16 * c->warps) == 0) && (c->shares < 2 || !c->last || bands.down == 1) &&
        c->grid[1] >= 1 && c->grid[1] <= 65535 && (weights ? c->grid[1] <= loads : c->grid[1] == loads) &&
        c->x.height == (data ? out : in)[0] && c->x.breadth == (data ? out : in)[1] &&
        c->y.height == (data ? in : out)[0] && c->y.breadth == (data ? in : out)[1] && bands.x_blocks <= 16 &&
        bands.y_blocks <= 16 &&
        (c->last ? c->planes % 8 == 0 && c->groups % 8 == 0 && c->x.granule == 8 && c->y.granule == 8
                 : begins[data] % c->x.granule == 0 && begins[!data] % c->y.granule == 0);
    if (!good)
        fail_msg("%s, pass %d, small planes", line, c->pass);
}

/* What the kernels of small planes in place rely on. */
static void check_small_in_place(const char *line, const cf_layer *layer, const cf_toeplitz_config *c,
                                 const cf_gpu_properties *properties, bool any) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const int of_row = (weights ? 16 : 32) / c->pack, after = c->y.breadth + c->kernel[1] - 1 - c->column_pad;
    const int64_t loads = cf_ceil_div(c->samples, c->loaded);
    const bool good =
        !any && c->aligned && layer->batch > 1 && c->threads == 32 * c->parts * c->quads / (weights ? 2 : 1) &&
        c->threads <= 512 && c->shared <= properties->shared_per_block && c->quads % 2 == 0 &&
        c->loaded == c->pack * c->parts && (weights || c->parts == 1) && c->y.breadth <= (weights ? of_row : 16) &&
        c->y.breadth <= of_row && c->row_step % 2 == 0 && c->row_step >= c->x.breadth + c->column_pad &&
        c->row_step >= after && c->row_pad < c->kernel[0] && c->y.height - 1 - c->row_pad < c->x.height &&
        (weights || (c->y.height <= c->x.height && c->y.breadth <= c->x.breadth && 4 * c->steps > c->kernel[1])) &&
        c->grid[0] * 4 * c->quads >= layer->groups && c->grid[1] >= 1 && c->grid[1] <= loads && c->grid[1] <= 65535;
    if (!good)
        fail_msg("%s, pass %d, small planes in place", line, c->pass);
}

/* What the kernels of planes that are computed row by row rely on. */
static void check_rows(const char *line, const cf_toeplitz_config *c, const cf_gpu_properties *properties, bool any) {
    if (any || c->threads != 32 * c->warps || c->shared > properties->shared_per_block || c->pack * c->segments > 16 ||
        c->shift % 2 || 8 * c->segments - c->shift < c->y.breadth || c->lead < 0 || c->lead + 7 + c->kernel[1] > 16 ||
        c->x.left % 8 || c->x.left != c->lead + c->shift + c->column_pad ||
        c->x.left + c->x.breadth > 8 * (c->segments + 1) || c->x.breadth % c->x.granule || c->x.granule % 2 ||
        c->y.breadth % c->y.granule || c->y.granule % 2 || (c->pass == CF_PASS_WEIGHTS && c->y.left % c->y.granule) ||
        c->of_part * c->parts < (c->pass == CF_PASS_WEIGHTS ? c->x.height : c->y.height) || c->grid[1] < 1 ||
        c->grid[1] > c->samples * c->parts)
        fail_msg("%s, pass %d, row by row", line, c->pass);
}

/* What the kernels of lines with channels last rely on. */
static void check_lines_last(const char *line, const cf_layer *layer, const cf_toeplitz_config *c,
                             const cf_gpu_properties *properties, bool any) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const cf_axis *across = &layer->axis[2];
    const int64_t columns = c->pass == CF_PASS_DATA ? across->input : across->output;
    const bool good = !any && c->line && c->last && c->planes % 8 == 0 && layer->groups % 8 == 0 &&
                      c->shared <= properties->shared_per_block && c->threads <= 512 && c->width % 16 == 0 &&
                      c->tiles_across * 16 * c->width >= columns && c->grid[0] * c->planes >= layer->groups &&
                      c->grid[1] >= 1 && c->grid[1] <= c->samples * c->tiles_across && c->grid[1] <= 65535 &&
                      (weights ? c->threads == 32 * c->planes && 8 * c->reach >= 15 + c->kernel[1] && c->lead == 0 &&
                                     c->width == 16 * c->across && c->x.units >= 2 * (c->across - 1) + c->reach
                               : c->planes % c->warps == 0 && 16 * c->steps >= 7 + c->kernel[1]);
    if (!good)
        fail_msg("%s, pass %d, lines with channels last", line, c->pass);
}

/* What the kernels rely on. */
static void check_config(const char *line, const cf_layer *layer, const cf_toeplitz_config *c,
                         const cf_gpu_properties *properties) {
    const bool data = c->pass == CF_PASS_DATA, weights = c->pass == CF_PASS_WEIGHTS;
    const cf_axis *a = layer->axis;
    const int64_t rows = data ? a[1].input : a[1].output, columns = data ? a[2].input : a[2].output,
                  items = (c->last ? c->samples : cf_ceil_div(c->samples, c->planes)) * c->tiles_down * c->tiles_across;
    const int64_t covered = c->line ? c->tiles_across * 16 * c->warps * c->width : c->tiles_across * c->width;
    const bool good =
        c->threads > 0 && c->threads <= 512 && c->threads % 32 == 0 && c->shared <= properties->shared_per_block &&
        covered >= columns && (c->line || c->tiles_down * 16 * c->warps * c->up[0] >= rows) && c->grid[0] >= 1 &&
        c->grid[1] >= 1 && c->grid[1] <= items && c->grid[1] <= 65535 &&
        c->grid[0] * (c->last ? c->planes : 1) >= layer->groups && (!c->last || c->planes % 8 == 0) &&
        (c->last || c->column_pad % c->x.granule == 0) && c->x.numbers * (int)cf_dtype_bytes(c->dtype) == 16 &&
        c->y.numbers == c->x.numbers &&
        c->terms == (c->dtype == CONV_FFT_FP32 && layer->problem.math == CONV_FFT_MATH_FP32 ? 2 : 1) &&
        (weights ? c->shares * c->of_share >= c->kernel[0] && 8 * c->reach >= 15 * c->stride[1] + c->kernel[1] + c->lead
                 : 2 * c->x.numbers * c->steps * c->up[1] >=
                       7 * c->stride[1] + 8 * (c->up[1] - 1) + c->kernel[1] + c->lead) &&
        c->lead >= 0 && c->lead_y >= 0 && c->lead_y < c->up[0] &&
        (weights || c->tiles_across * c->count == 1 || c->blocks % c->up[1] == 0);
    if (!good)
        fail_msg("%s, pass %d", line, c->pass);
}

static void passes_are_cut_for_the_gpu(void **unused) {
    (void)unused;
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    static const char *const types[] = {"fp16", "bf16", "fp32", "fp32 math=tf32"};
    generator g = test_generator(1);
    int served = 0, fitting = 0, in_place = 0, small = 0, small_in_place = 0, lines_last = 0, by_rows = 0;
    for (int i = 0; i < 4000; ++i) {
        char line[256];
        const int axes = (int)random_int(&g, 1, 2), most = random_once_in(&g, 3) ? 16 : 150,
                  longest = random_once_in(&g, 3) ? 7 : 31, rows = (int)random_int(&g, 1, most),
                  columns = (int)random_int(&g, 1, axes == 1 ? 9000 : most),
                  taps = (int)random_int(&g, 1, axes == 1 ? 256 : longest),
                  groups = (int)(random_once_in(&g, 3) ? 8 * random_int(&g, 1, 12) : random_int(&g, 2, 41));
        char axis[64], kernel[64];
        snprintf(axis, sizeof axis, axes == 1 ? "%d" : "%dx%d", axes == 1 ? columns : rows, columns);
        snprintf(kernel, sizeof kernel, axes == 1 ? "%d" : "%dx%d", taps, (int)random_int(&g, 1, longest));
        snprintf(line, sizeof line, "in=%dx%dx%s out=%d groups=%d kernel=%s pad=%d stride=%d dtype=%s layout=%s",
                 (int)random_int(&g, 1, 70), groups, axis, groups, groups, kernel,
                 (int)random_int(&g, 0, longest == 7 ? 3 : 19), random_once_in(&g, 3) ? 2 : 1,
                 types[random_int(&g, 0, 3)], random_once_in(&g, 2) ? "first" : "last");
        cf_layer layer;
        if (!make(line, &layer))
            continue;
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
            cf_toeplitz_config c;
            const char *why;
            if (!cf_toeplitz_serves(&layer, pass, &why))
                continue;
            ++served;
            for (int any = 0; any < 2; ++any) {
                if (cf_toeplitz_configure(&layer, pass, &properties, any, &c) != CONV_FFT_SUCCESS)
                    continue;
                fitting += any;
                if (c.in_place && c.small) {
                    ++small_in_place;
                    check_small_in_place(line, &layer, &c, &properties, any);
                    continue;
                }
                if (c.aligned && !c.in_place) {
                    ++lines_last;
                    check_lines_last(line, &layer, &c, &properties, any);
                    continue;
                }
                if (c.in_place) {
                    ++in_place;
                    check_in_place(line, &layer, &c, &properties, any);
                    continue;
                }
                c.by_rows ? check_rows(line, &c, &properties, any)
                          : (c.small ? check_small : check_config)(line, &layer, &c, &properties);
                small += c.small;
                by_rows += c.by_rows;
                if (any && (c.x.granule != 1 || c.y.granule != 1))
                    fail_msg("%s, pass %d: more than one element at any address", line, pass);
            }
        }
    }
    assert_true(served > 4000 && fitting > served * 9 / 10 && in_place > 400 && small > 60 && small_in_place > 3 &&
                lines_last > 100 && by_rows > 3);
}

/* What the kernel for both gradients relies on: both have the same tiles, which cover x and y. The tile of gy begins so
 * many whole units before that of gx. */
static void check_both(const char *line, const cf_layer *layer, const cf_toeplitz_both *both,
                       const cf_gpu_properties *properties, bool any) {
    const cf_toeplitz_config *d = &both->data, *w = &both->weights;
    const cf_toeplitz_tile x = cf_toeplitz_tile_of(w->x.rows, w->x.units, w->x.step),
                           gy = cf_toeplitz_tile_of(d->x.rows, d->x.units, d->x.step);
    const int64_t covered = d->tiles_across * 16 * d->warps * d->width,
                  out = 16 * d->warps * cf_toeplitz_out_pitch(d->blocks, d->x.numbers);
    cf_toeplitz_config alone;
    assert_int_equal(cf_toeplitz_configure(layer, CF_PASS_WEIGHTS, properties, any, &alone), CONV_FFT_SUCCESS);
    const bool good =
        d->line && w->line && d->width == w->width && d->warps == w->warps && d->tiles_across == w->tiles_across &&
        covered >= layer->axis[2].input && covered >= layer->axis[2].output && d->planes == 1 && w->planes == 1 &&
        w->shares == 1 && memcmp(&w->y, &d->x, sizeof d->x) == 0 && w->before * d->x.numbers == d->column_pad &&
        w->before + d->x.step <= d->x.units && both->shared <= properties->shared_per_block &&
        both->shared >= 32 * (cf_max(x.size, out) + gy.size) && both->shared >= 512 * w->warps * w->reach &&
        w->threads == d->threads && w->grid[0] == alone.grid[0] && w->grid[1] == alone.grid[1] &&
        (!any || (d->x.granule == 1 && w->x.granule == 1 && d->y.granule == 1));
    if (!good)
        fail_msg("%s, both gradients", line);
}

/* The same for lines with channels last. Planes and copies of both tiles, and taps, are in shared memory. */
static void check_both_lines_last(const char *line, const cf_layer *layer, const cf_toeplitz_both *both,
                                  const cf_gpu_properties *properties, bool any) {
    const cf_toeplitz_config *d = &both->data, *w = &both->weights;
    const cf_toeplitz_tile x = cf_toeplitz_tile_of(w->x.rows, w->x.units, w->x.step),
                           gy = cf_toeplitz_tile_of(w->y.rows, w->y.units, w->y.step);
    const int64_t covered = w->tiles_across * 16 * w->width, step = w->width / 8,
                  bytes = 16ll * w->planes * (x.size + gy.size + d->buffers * (x.loaded + gy.loaded)) +
                          4ll * w->planes * (16 * d->steps + 8);
    cf_toeplitz_config alone;
    assert_int_equal(cf_toeplitz_configure(layer, CF_PASS_WEIGHTS, properties, any, &alone), CONV_FFT_SUCCESS);
    const bool good = !any && d->width == w->width && d->tiles_across == w->tiles_across && d->planes == w->planes &&
                      covered >= layer->axis[2].input && covered >= layer->axis[2].output && d->buffers > 0 &&
                      d->planes % d->warps == 0 && w->threads == 32 * d->warps && w->threads <= 512 &&
                      8 * w->before == d->column_pad && w->y.step == step && w->y.units >= step + 2 * d->steps &&
                      w->y.units >= step + w->before && w->reach == alone.reach &&
                      w->grid[0] * w->planes >= layer->groups && w->grid[1] == alone.grid[1] &&
                      both->shared <= properties->shared_per_block && both->shared >= bytes &&
                      both->shared >= 512ll * w->planes * w->reach;
    if (!good)
        fail_msg("%s, both gradients of lines with channels last", line);
}

static void both_gradients_are_one_kernel(void **unused) {
    (void)unused;
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    static const struct {
        const char *problem;
        bool both;
    } cases[] = {
        {"in=4x4096x8192 out=4096 groups=4096 kernel=4 pad=3:0 dtype=bf16", true},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=128 pad=127:0 dtype=fp16", true},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=192 pad=191:0 dtype=fp16", false},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=31 pad=15 dtype=fp16", true},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=4 pad=3:0", true},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=32 pad=31:0", true},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=64 pad=63:0", false},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=32 pad=31:0 math=tf32", true},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=4 pad=3:0 dtype=bf16 layout=last", true},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=128 pad=127:0 dtype=fp16 layout=last", true},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=192 pad=191:0 dtype=fp16 layout=last", false},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=31 pad=15 dtype=fp16 layout=last", false},
        {"in=4x4092x8192 out=4092 groups=4092 kernel=4 pad=3:0 dtype=bf16 layout=last", false},
        {"in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 dtype=fp16", false},
        {"in=64x96x56x56 out=96 groups=96 kernel=3x3 pad=1 dtype=fp16", false},
        {"in=64x96x56x56 out=96 groups=96 kernel=3x3 pad=1 dtype=fp16 layout=last", true},
        {"in=64x96x56x56 out=96 groups=96 kernel=3x3 pad=0 dtype=fp16 layout=last", false},
        {"in=64x96x56x56 out=96 groups=96 kernel=3x3 pad=1 stride=2 dtype=fp16 layout=last", false},
        {"in=64x96x56x56 out=96 groups=96 kernel=5x5 pad=2 dtype=fp16 layout=last", false},
        {"in=64x96x14x14 out=96 groups=96 kernel=3x3 pad=1 dtype=fp16 layout=last", false},
        {"in=4x512x8x8x8 out=512 groups=512 kernel=3x3x3 pad=1 dtype=fp16", false},
    };
    cf_layer layer;
    cf_toeplitz_both both;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        assert_true(make(cases[i].problem, &layer));
        if (cf_toeplitz_configure_both(&layer, &properties, false, &both) != cases[i].both)
            fail_msg("%s", cases[i].problem);
    }
    static const char *const types[] = {"fp16", "bf16 gw=fp32", "fp32", "fp32 math=tf32"};
    generator g = test_generator(3);
    int found[2] = {0, 0};
    for (int i = 0; i < 2000; ++i) {
        char line[256];
        const bool last = i % 2;
        const int taps = (int)random_int(&g, 1, 160), groups = (int)random_int(&g, 2, 5000) * (last ? 8 : 1);
        const int after = random_once_in(&g, 3) ? (int)random_int(&g, 0, taps - 1) : 0;
        snprintf(line, sizeof line, "in=%dx%dx%d out=%d groups=%d kernel=%d pad=%d:%d dtype=%s%s",
                 (int)random_int(&g, 1, 70), groups, (int)random_int(&g, 1, last ? 2000 : 40000), groups, groups, taps,
                 taps - 1 - after, after, types[random_int(&g, 0, last ? 1 : 3)], last ? " layout=last" : "");
        if (!make(line, &layer))
            continue;
        for (int any = 0; any < 2; ++any)
            if (cf_toeplitz_configure_both(&layer, &properties, any, &both)) {
                ++found[last];
                (last ? check_both_lines_last : check_both)(line, &layer, &both, &properties, any);
            }
    }
    assert_true(found[0] > 400 && found[1] > 200);
}

/* Volumes: tiles and parts cover all outputs, and tiles hold what their warps read. */
static void volumes_are_cut_for_the_gpu(void **unused) {
    (void)unused;
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    generator g = test_generator(2);
    int served = 0;
    for (int i = 0; i < 1000; ++i) {
        char line[256];
        const int groups = (int)random_int(&g, 1, 200);
        const bool last = random_once_in(&g, 2);
        snprintf(line, sizeof line, "in=%dx%dx%dx%dx%d out=%d groups=%d kernel=%dx%dx%d pad=%d dtype=%s%s",
                 (int)random_int(&g, 1, 9), groups, (int)random_int(&g, 2, 70), (int)random_int(&g, 1, 150),
                 (int)random_int(&g, 1, 150), groups, groups, (int)random_int(&g, 2, 8), (int)random_int(&g, 1, 8),
                 (int)random_int(&g, 1, 7), (int)random_int(&g, 0, 9), random_once_in(&g, 2) ? "fp16" : "bf16",
                 last ? " layout=last" : "");
        cf_layer layer;
        if (!make(line, &layer))
            continue;
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
            for (int any = 0; any < 2; ++any) {
                cf_toeplitz_config c;
                const char *why;
                if (!cf_toeplitz_serves(&layer, pass, &why) || layer.axis[0].kernel == 1)
                    continue;
                ++served;
                assert_int_equal(cf_toeplitz_configure(&layer, pass, &properties, any, &c), CONV_FFT_SUCCESS);
                int64_t extent[3];
                for (int a = 0; a < 3; ++a)
                    extent[a] = pass == CF_PASS_DATA ? layer.axis[a].input : layer.axis[a].output;
                const int64_t items = c.samples * c.depth_parts * c.tiles_down * c.tiles_across;
                if (c.depths != layer.axis[0].kernel || c.depth_parts * c.part_depths < extent[0] ||
                    (c.depth_parts - 1) * c.part_depths >= extent[0] || c.tiles_down * 16 * c.warps < extent[1] ||
                    c.tiles_across * 16 * c.across < extent[2] || c.threads != 32 * c.planes * c.warps * c.across ||
                    c.threads > (c.last ? 256 : 128) || c.planes != (c.last ? 8 : 1) ||
                    c.last != (last && groups > 1) || c.grid[0] * c.planes < groups ||
                    (c.grid[0] - 1) * c.planes >= groups || groups % (c.last ? c.x.granule : 1) != 0 ||
                    (any && c.x.granule > 1) || c.grid[1] < 1 || c.grid[1] > items || c.grid[1] > 65535 ||
                    c.shared > properties.shared_per_block || c.x.rows != 16 * c.warps + c.kernel[0] - 1 ||
                    8 * c.x.units < 16 * c.across + c.lead + 8 || (!c.last && c.column_pad % c.x.granule != 0))
                    fail_msg("%s, pass %d", line, pass);
            }
    }
    assert_true(served > 1000);
}

static void known_layers_have_their_configuration(void **unused) {
    (void)unused;
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    static const struct {
        const char *problem;
        int pass, warps, planes, lead, steps, granule, store, whole;
    } cases[] = {
        {"in=64x96x56x56 out=96 groups=96 kernel=10x7 pad=3 dtype=fp16", 0, 4, 1, 1, 1, 4, 8, 1},
        {"in=4x384x14x14 out=384 groups=384 kernel=10x7 pad=3 dtype=fp16", 1, 1, 1, 1, 1, 2, 2, 1},
        {"in=4x1024x7x7 out=1024 groups=1024 kernel=13x13 pad=6 dtype=fp16", 0, 1, 1, 0, 2, 1, 1, 1},
        {"in=4x512x14x14 out=512 groups=512 kernel=27x27 pad=13 dtype=fp16", 0, 1, 4, 1, 3, 2, 2, 1},
        {"in=64x96x112x112 out=96 groups=96 kernel=10x7 pad=3 dtype=fp16", 0, 4, 1, 1, 1, 4, 8, 0},
        {"in=64x96x56x56 out=96 groups=96 kernel=11x11 pad=5 dtype=fp16 layout=last", 0, 1, 16, 0, 2, 2, 2, 0},
        {"in=64x8x56x56 out=8 groups=8 kernel=11x11 pad=5 dtype=fp16 layout=last", 0, 1, 8, 0, 2, 2, 2, 0},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=128 pad=127:0 dtype=bf16", 0, 4, 1, 1, 9, 8, 8, 0},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=128 pad=127:0", 0, 4, 1, 1, 17, 4, 4, 0},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=32 pad=31:0", 1, 4, 1, 0, 5, 4, 4, 0},
        {"in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3", 0, 4, 1, 1, 2, 4, 4, 1},
        {"in=64x1024x7x7 out=1024 groups=1024 kernel=13x13 pad=6", 0, 1, 4, 0, 3, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        cf_layer layer;
        cf_toeplitz_config c;
        assert_true(make(cases[i].problem, &layer));
        assert_int_equal(cf_toeplitz_configure(&layer, cases[i].pass, &properties, false, &c), CONV_FFT_SUCCESS);
        if (c.warps != cases[i].warps || c.planes != cases[i].planes || c.lead != cases[i].lead ||
            c.steps != cases[i].steps || c.x.granule != cases[i].granule || c.y.granule != cases[i].store ||
            c.x.whole != cases[i].whole)
            fail_msg("%s: warps %d, planes %d, lead %d, steps %d, granules %d and %d, whole %d", cases[i].problem,
                     c.warps, c.planes, c.lead, c.steps, c.x.granule, c.y.granule, c.x.whole);
    }
}

/* What the registers of FP32 signals hold, as measured on an H100. */
static void operands_of_fp32_signals_fit_registers(void **unused) {
    (void)unused;
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    static const struct {
        const char *problem;
        bool in_shared_memory; /* B */
        int terms, together;   /* together: of the gradient of the weights */
    } cases[] = {
        {"in=4x4096x8192 out=4096 groups=4096 kernel=64 pad=63:0", false, 2, 4},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=128 pad=127:0", true, 2, 4},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=128 pad=127:0 math=tf32", false, 1, 4},
        {"in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3", true, 2, 1},
        {"in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 math=tf32", false, 1, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        cf_layer layer;
        cf_toeplitz_config c, gradient;
        assert_true(make(cases[i].problem, &layer));
        assert_int_equal(cf_toeplitz_configure(&layer, CF_PASS_FORWARD, &properties, false, &c), CONV_FFT_SUCCESS);
        assert_int_equal(cf_toeplitz_configure(&layer, CF_PASS_WEIGHTS, &properties, false, &gradient),
                         CONV_FFT_SUCCESS);
        if (c.in_shared_memory != cases[i].in_shared_memory || c.terms != cases[i].terms ||
            gradient.together != cases[i].together || gradient.across % gradient.together != 0)
            fail_msg("%s: in shared memory %d, terms %d, together %d", cases[i].problem, c.in_shared_memory, c.terms,
                     gradient.together);
    }
}

/* A gradient with few channels is divided into slices, one with many is not. */
static void few_channels_are_divided(void **unused) {
    (void)unused;
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    cf_layer layer;
    cf_toeplitz_config c;
    assert_true(make("in=64x8x56x56 out=8 groups=8 kernel=7x7 pad=3 dtype=fp16", &layer));
    assert_int_equal(cf_toeplitz_configure(&layer, CF_PASS_WEIGHTS, &properties, false, &c), CONV_FFT_SUCCESS);
    assert_true(cf_toeplitz_adds(&c));
    assert_int_equal(cf_toeplitz_bytes(&c), c.grid[1] * 8 * 49 * 4);
    assert_true(make("in=64x2048x56x56 out=2048 groups=2048 kernel=7x7 pad=3 dtype=fp16", &layer));
    assert_int_equal(cf_toeplitz_configure(&layer, CF_PASS_WEIGHTS, &properties, false, &c), CONV_FFT_SUCCESS);
    assert_false(cf_toeplitz_adds(&c));
    assert_int_equal(cf_toeplitz_bytes(&c), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_are_cut_for_the_gpu),
        cmocka_unit_test(both_gradients_are_one_kernel),
        cmocka_unit_test(volumes_are_cut_for_the_gpu),
        cmocka_unit_test(known_layers_have_their_configuration),
        cmocka_unit_test(operands_of_fp32_signals_fit_registers),
        cmocka_unit_test(few_channels_are_divided),
    };
    return cmocka_run_group_tests_name("toeplitz config", tests, NULL, NULL);
}
