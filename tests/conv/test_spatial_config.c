/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers family spatial takes, and how their passes are divided into blocks; no GPU is needed.
 * nvrtc/test_spatial.c compiles their kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conv/plan/padded.h"
#include "conv/spatial/spatial.h"
#include "core/arith.h"
#include "support/kernel_cases.h"
#include "support/random_problems.h"

static bool make(const char *line, cf_layer *layer) {
    conv_fft_problem p;
    return conv_fft_problem_parse(line, &p, NULL, 0) == CONV_FFT_SUCCESS &&
           cf_layer_make(&p, layer) == CONV_FFT_SUCCESS;
}

static void serves_short_kernels_of_few_channels(void **unused) {
    (void)unused;
    static const struct {
        const char *problem;
        bool serves;
        const char *why; /* a part of the reason why it does not take it */
    } cases[] = {
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2", true, ""},
        {"in=4x8x300x300 out=8 groups=8 kernel=5x5 pad=2 stride=8 dilation=64 dtype=bf16 layout=last", true, ""},
        {"in=4x8x20x20 out=64 groups=8 kernel=5x5 pad=2 dtype=fp16 w=fp32", true, ""},
        {"in=4x8x20x20 out=8 kernel=5x5 pad=2", true, ""},
        {"in=4x8x5x20x20 out=8 groups=8 kernel=3x3x3 pad=1", true, ""},
        {"in=4x8x2000 out=8 groups=8 kernel=256 pad=255:0", true, ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 mode=reflect", true, ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 mode=reflect dtype=fp16", true, ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 mode=circular layout=last", true, ""},
        {"in=4x8x20x20 out=9 kernel=5x5 pad=2", false, "8 channels"},
        {"in=4x9x20x20 out=8 kernel=5x5 pad=2", false, "8 channels"},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=fp64", false, "FP32, FP16 and BF16"},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 stride=9", false, "strides up to 8"},
        {"in=4x8x2000 out=8 groups=8 kernel=5 dilation=65", false, "dilations up to 64"},
        {"in=4x8x2000 out=8 groups=8 kernel=300", false, "256 taps"},
        {"in=4x8x60x20 out=8 groups=8 kernel=33x3", false, "31 x 31 rows"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        cf_layer layer;
        const char *why = "";
        assert_true(make(cases[i].problem, &layer));
        const bool serves = cf_spatial_serves(&layer, &why);
        if (serves != cases[i].serves || (!serves && !strstr(why, cases[i].why)))
            fail_msg("%s: %s", cases[i].problem, why);
    }
}

/* Both views of geometry.h agree: the tap by which an output reads an input, and the input that it reads by a tap. */
static void check_axis(const char *line, cf_spatial_axis a) {
    const int window = cf_spatial_window(a);
    bool good = window > 0 && a.outs > 0 && (!a.transposed || a.outs % a.stride == 0);
    for (int out = 0; good && out < a.outs; ++out)
        for (int tap = 0; tap < a.taps; ++tap) {
            const int in = cf_spatial_input(a, out, tap);
            const int at = cf_spatial_first(a) + in; /* the definition at the head of geometry.h */
            good = good && in < window &&
                   (in < 0         ? a.transposed && (out + a.pad - a.dilation * tap) % a.stride != 0
                    : a.transposed ? a.stride * at + a.dilation * tap - a.pad == out
                                   : a.stride * out + a.dilation * tap - a.pad == at) &&
                   (in < 0 || cf_spatial_tap(a, out, in) == tap);
        }
    if (!good)
        fail_msg("%s: an axis {%d, %d, %d, %d, %d, %d}", line, a.transposed, a.stride, a.dilation, a.pad, a.taps,
                 a.outs);
}

/* Walks: an input of a strip and a tap give the output that the other views give, and no product is left out. */
static void check_walk(const char *line, cf_spatial_axis a) {
    const int behind = cf_spatial_behind(a), advance = cf_spatial_advance(a);
    bool good = true;
    for (int input = 0; input < advance; ++input)
        for (int tap = 0; tap < a.taps; ++tap) {
            const int output = cf_spatial_output(a, input, tap);
            good = good && (output < 0 ? !a.transposed && (input - a.dilation * tap) % a.stride != 0
                                       : output < behind + a.outs && cf_spatial_tap(a, output - behind, input) == tap);
        }
    for (int out = 0; out < a.outs; ++out)
        for (int tap = 0; tap < a.taps; ++tap) {
            const int in = cf_spatial_input(a, out, tap);
            good = good && (in < 0 || cf_spatial_output(a, in % advance, tap) == out - in / advance * a.outs + behind);
        }
    if (!good)
        fail_msg("%s: a walk along an axis {%d, %d, %d, %d, %d, %d}", line, a.transposed, a.stride, a.dilation, a.pad,
                 a.taps, a.outs);
}

/* Walks with channels first: what is loaded together is aligned, and inside or outside of a row as a whole. */
static bool has_columns(const cf_layer *layer, const cf_spatial_config *c) {
    const bool data = c->pass == CF_PASS_DATA;
    if (!c->walks || cf_layer_is_last(layer))
        return c->together[0] == 0 && c->together[1] == 0;
    for (int i = 0; i < 2; ++i) {
        const bool of_x = (i == 0) != data;
        const cf_tensor *const t = of_x ? &layer->x : &layer->y;
        const int64_t columns = of_x ? layer->axis[2].input : layer->axis[2].output,
                      advance = i == 0 ? cf_spatial_advance(c->axis[2]) : c->axis[2].outs, n = c->together[i];
        if ((n != 1 && n != 2 && n != 4) || columns % n || advance % n || t->axis_stride[1] % n ||
            t->sample_stride % n || t->group_stride % n)
            return false;
    }
    return c->strips % 32 == 0 && c->lanes == 1 && c->vector == 1 && !c->exchanged;
}

/* What the kernels rely on. */
static void check_config(const char *line, const cf_layer *layer, const cf_spatial_config *c,
                         const cf_gpu_properties *properties) {
    const bool data = c->pass == CF_PASS_DATA, weights = c->pass == CF_PASS_WEIGHTS;
    const cf_layer turned = cf_spatial_exchanged(layer);
    const cf_axis *a = c->exchanged ? turned.axis : layer->axis;
    const int64_t rows = data ? a[1].input : a[1].output, columns = data ? a[2].input : a[2].output,
                  samples = c->last ? c->samples : cf_ceil_div(c->samples, c->planes),
                  rounds = c->last ? cf_ceil_div(c->items, c->strips) : c->items;
    for (int i = 0; i < 3; ++i)
        check_axis(line, c->axis[i].transposed && i == 0 ? (cf_spatial_axis){0, 1, 1, 0, 1, 1} : c->axis[i]);
    if (c->walks)
        check_walk(line, c->axis[1]);
    const bool good = c->threads > 0 && c->threads <= 1024 && c->threads % 32 == 0 &&
                      c->shared <= properties->shared_per_block && c->resident >= 1 &&
                      (!c->last || c->lanes * c->strips <= c->threads) &&
                      c->along[1] * (c->walks ? c->segment : c->axis[1].outs * (c->last ? 1 : c->down)) >= rows &&
                      (!c->walks || c->segment % c->axis[1].outs == 0) && has_columns(layer, c) &&
                      c->along[2] * c->axis[2].outs * (c->last ? 1 : c->across) >= columns &&
                      c->items == samples * c->along[0] * c->along[1] * c->along[2] && c->grid[1] >= 1 &&
                      c->grid[1] <= rounds && c->grid[1] <= 65535 && c->grid[0] * c->lanes * c->vector >= c->channels &&
                      c->channels % c->vector == 0 && c->chunks * c->axis[2].taps >= c->kernel[2] &&
                      (c->last || c->vector == 1) && (!weights || c->shares * c->rows >= c->kernel[1]);
    if (!good)
        fail_msg("%s, pass %d", line, c->pass);
}

static void passes_are_cut_for_the_gpu(void **unused) {
    (void)unused;
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    generator g = test_generator(1);
    int served = 0, fitting = 0;
    for (int i = 0; i < 3000; ++i) {
        char line[256];
        const int axes = (int)random_int(&g, 1, 2), rows = (int)random_int(&g, 1, 150),
                  columns = (int)random_int(&g, 1, axes == 1 ? 9000 : 150), own = (int)random_int(&g, 1, 3),
                  taps = (int)random_int(&g, 1, axes == 1 ? 100 : 9), groups = (int)random_int(&g, 1, 80);
        char axis[64], kernel[64];
        snprintf(axis, sizeof axis, axes == 1 ? "%d" : "%dx%d", axes == 1 ? columns : rows, columns);
        snprintf(kernel, sizeof kernel, axes == 1 ? "%d" : "%dx%d", taps, (int)random_int(&g, 1, 13));
        snprintf(line, sizeof line,
                 "in=%dx%dx%s out=%d groups=%d kernel=%s pad=%d stride=%d dilation=%d dtype=%s layout=%s",
                 (int)random_int(&g, 1, 70), groups, axis, groups * own, groups, kernel, (int)random_int(&g, 0, 19),
                 random_once_in(&g, 3) ? (int)random_int(&g, 1, 5) : 1,
                 random_once_in(&g, 3) ? (int)random_int(&g, 1, 9) : 1, random_once_in(&g, 2) ? "fp32" : "bf16",
                 random_once_in(&g, 2) ? "first" : "last");
        cf_layer layer;
        if (!make(line, &layer))
            continue;
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
            cf_spatial_config c;
            const char *why;
            if (!cf_spatial_serves(&layer, &why))
                continue;
            ++served;
            for (int any = 0; any < 2; ++any) {
                if (cf_spatial_configure(&layer, pass, &properties, any, &c) != CONV_FFT_SUCCESS)
                    continue;
                fitting += any;
                check_config(line, &layer, &c, &properties);
                if (any && c.vector != 1)
                    fail_msg("%s, pass %d: more than one element at any address", line, pass);
                if (pass == CF_PASS_DATA && cf_spatial_configure_walk(&layer, pass, true, &properties, any, &c))
                    check_config(line, &layer, &c, &properties);
            }
        }
    }
    assert_true(served > 4000 && fitting > served * 9 / 10);
}

/* A gradient with few channels is divided into slices. */
static void few_channels_are_divided(void **unused) {
    (void)unused;
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    cf_layer layer;
    cf_spatial_config c;
    assert_true(make("in=64x8x56x56 out=8 groups=8 kernel=3x3 pad=1 layout=last", &layer));
    assert_int_equal(cf_spatial_configure(&layer, CF_PASS_WEIGHTS, &properties, false, &c), CONV_FFT_SUCCESS);
    assert_true(cf_spatial_adds(&c));
    assert_int_equal(cf_spatial_bytes(&c), c.grid[1] * 8 * 9 * 4);
    assert_true(make("in=1x4096x4 out=4096 groups=4096 kernel=3 pad=1", &layer));
    assert_int_equal(cf_spatial_configure(&layer, CF_PASS_WEIGHTS, &properties, false, &c), CONV_FFT_SUCCESS);
    assert_false(cf_spatial_adds(&c));
    assert_int_equal(cf_spatial_bytes(&c), 0);
}

/* Threads walk in depthwise FP32 layers with channels last, if registers hold the sums of all rows that meet, and
 * planes are so high that few of these are in vain. Gradients with a stride have strips. */
static void threads_walk_where_sums_fit(void **unused) {
    (void)unused;
    static const struct {
        const char *problem;
        bool walks, exchanged;
    } cases[] = {
        {"in=4x64x56x56 out=64 groups=64 kernel=7x7 pad=3 layout=last", true, false},
        {"in=4x64x1x900 out=64 groups=64 kernel=1x32 pad=0x31:0 layout=last", true, true},
        {"in=4x64x900 out=64 groups=64 kernel=64 pad=63:0 layout=last", true, true},
        {"in=4x64x900 out=64 groups=64 kernel=4 pad=3:0 mode=circular layout=last", true, true},
        {"in=4x64x9000 out=64 groups=64 kernel=256 pad=255:0 layout=last", false, false},
        {"in=4x64x14x14 out=64 groups=64 kernel=7x7 pad=3 layout=last", false, false},
        {"in=4x64x56x56 out=64 groups=64 kernel=3x17 pad=1x8 layout=last", false, false},
        {"in=4x64x5x56x56 out=64 groups=64 kernel=3x3x3 pad=1 layout=last", false, false},
        {"in=4x64x56x56 out=64 groups=64 kernel=7x7 pad=3 dtype=fp16 layout=last", false, false},
        {"in=4x64x56x56 out=128 groups=64 kernel=7x7 pad=3 layout=last", false, false},
        {"in=4x64x56x56 out=64 groups=64 kernel=7x7 pad=3", true, false},
        {"in=4x64x56x56 out=64 groups=64 kernel=5x5 pad=2 stride=2", true, false},
        {"in=4x64x56x56 out=64 groups=64 kernel=7x7 pad=3 dtype=fp16", false, false},
        {"in=4x64x56x56 out=64 groups=64 kernel=7x7 pad=3 mode=circular", false, false},
        {"in=4x64x900 out=64 groups=64 kernel=4 pad=3:0", false, false},
    };
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    cf_layer layer;
    cf_spatial_config c;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
            assert_true(make(cases[i].problem, &layer));
            assert_int_equal(cf_spatial_configure(&layer, pass, &properties, false, &c), CONV_FFT_SUCCESS);
            if (c.walks != cases[i].walks || c.exchanged != cases[i].exchanged)
                fail_msg("%s, pass %d: %d, %d", cases[i].problem, pass, c.walks, c.exchanged);
        }
    assert_true(make("in=4x64x56x56 out=64 groups=64 kernel=5x5 pad=2 stride=2 layout=last", &layer));
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        assert_int_equal(cf_spatial_configure(&layer, pass, &properties, false, &c), CONV_FFT_SUCCESS);
        assert_true(c.walks == (pass == CF_PASS_FORWARD));
    }
    assert_true(cf_spatial_configure_walk(&layer, CF_PASS_DATA, true, &properties, false, &c) && c.both);
}

static void little_shared_memory_is_refused(void **unused) {
    (void)unused;
    cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    cf_layer layer;
    cf_spatial_config c;
    properties.shared_per_block = 500;
    assert_true(make("in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 dtype=fp16", &layer));
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        assert_int_equal(cf_spatial_configure(&layer, pass, &properties, false, &c), CONV_FFT_NOT_SUPPORTED);
}

static void large_sizes_are_refused(void **unused) {
    (void)unused;
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    cf_layer layer;
    cf_spatial_config c;
    const char *why = "";
    assert_true(make("in=2200000000x2x4 out=2 groups=2 kernel=3 pad=1 dtype=fp16", &layer));
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        assert_int_equal(cf_spatial_configure(&layer, pass, &properties, false, &c), CONV_FFT_NOT_SUPPORTED);
    assert_true(make("in=1x2x200000000 out=2 groups=2 kernel=3 pad=1 stride=2", &layer));
    assert_true(cf_spatial_serves(&layer, &why));
    assert_true(make("in=1x2x2x200000000 out=2 groups=2 kernel=1x3 pad=0x300000000:0", &layer));
    assert_false(cf_spatial_serves(&layer, &why));
    assert_true(make("in=1x16x16000x16000 out=16 groups=16 kernel=3x3 pad=1 layout=last", &layer));
    assert_false(cf_spatial_serves(&layer, &why));
    assert_non_null(strstr(why, "31 bits"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_short_kernels_of_few_channels),
        cmocka_unit_test(passes_are_cut_for_the_gpu),
        cmocka_unit_test(few_channels_are_divided),
        cmocka_unit_test(threads_walk_where_sums_fit),
        cmocka_unit_test(little_shared_memory_is_refused),
        cmocka_unit_test(large_sizes_are_refused),
    };
    return cmocka_run_group_tests_name("spatial config", tests, NULL, NULL);
}
