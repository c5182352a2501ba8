/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers family dft takes, and how their passes are divided into blocks; no GPU is needed. nvrtc/test_dft.c
 * compiles their kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conv/dft/dft.h"
#include "core/arith.h"
#include "support/kernel_cases.h"
#include "support/random_problems.h"

static bool make(const char *line, cf_layer *layer) {
    conv_fft_problem p;
    return conv_fft_problem_parse(line, &p, NULL, 0) == CONV_FFT_SUCCESS &&
           cf_layer_make(&p, layer) == CONV_FFT_SUCCESS;
}

static void serves_planes_with_math_half(void **unused) {
    (void)unused;
    static const struct {
        const char *problem, *why; /* why: a part of the reason why it does not take a pass; "": it takes all */
    } cases[] = {
        {"in=4x8x20x20 out=8 groups=8 kernel=15x15 pad=7 dtype=fp16 math=half", ""},
        {"in=4x8x64x64 out=8 groups=8 kernel=31x31 pad=15 dtype=bf16 math=half", ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=15x15 pad=7 dtype=fp16 w=fp32 math=half", ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=15x15 pad=7 dtype=fp16", "math HALF"},
        {"in=4x8x20x20 out=8 groups=8 kernel=15x15 pad=7 math=tf32", "FP16 and BF16"},
        {"in=4x8x20x20 out=16 groups=8 kernel=15x15 pad=7 dtype=fp16 math=half", "single channels"},
        {"in=4x8x20x20 out=8 groups=8 kernel=15x15 pad=7 dtype=fp16 layout=last math=half", "contiguous"},
        {"in=4x8x20x20 out=8 groups=8 kernel=15x15 pad=7 stride=2 dtype=fp16 math=half", "without stride"},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=4 dilation=2 dtype=fp16 math=half", "dilation"},
        {"in=4x8x20x20 out=8 groups=8 kernel=15x15 pad=7 mode=reflect dtype=fp16 math=half", "padded by zeros"},
        {"in=4x8x5x20x20 out=8 groups=8 kernel=3x3x3 pad=1 dtype=fp16 math=half", "planes"},
        {"in=4x8x65x20 out=8 groups=8 kernel=3x3 pad=1 dtype=fp16 math=half", "64 points"},
        {"in=4x8x64x64 out=8 groups=8 kernel=35x35 pad=17 dtype=fp16 math=half", "up to 80"},
        {"in=4x8x8192 out=8 groups=8 kernel=1023 pad=511 dtype=fp16 math=half", ""},
        {"in=4x8x9000 out=8 groups=8 kernel=7900 pad=7899:0 dtype=bf16 math=half", ""},
        {"in=4x8x9000 out=8 groups=8 kernel=7929 pad=7928:0 dtype=bf16 math=half", "fewer taps"},
        {"in=4x8x8192 out=8 groups=8 kernel=1023 pad=511 dtype=fp16", "math HALF"},
        {"in=4x8x8192 out=8 groups=8 kernel=1023 pad=511 stride=2 dtype=fp16 math=half", "without stride"},
        {"in=4x8x8192 out=8 groups=8 kernel=103 pad=102 dilation=2 dtype=fp16 math=half", "dilation"},
        {"in=4x8x8192 out=8 groups=8 kernel=1023 pad=511 mode=circular dtype=fp16 math=half", "padded by zeros"},
        {"in=4x8x8192 out=8 groups=8 kernel=1023 pad=511 layout=last dtype=fp16 math=half", "contiguous"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        cf_layer layer;
        assert_true(make(cases[i].problem, &layer));
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
            const char *why = "";
            const bool serves = cf_dft_serves(&layer, pass, &why);
            if (serves != !*cases[i].why || (!serves && !strstr(why, cases[i].why)))
                fail_msg("%s, pass %d: %s", cases[i].problem, pass, serves ? "is taken" : why);
        }
    }
}

/* No two pairs of an output and an input meet the same tap of the circular convolution, unless both or none do in the
 * layer. */
static void check_basis(const cf_layer *layer, const cf_dft_config *c) {
    for (int i = 0; i < 2; ++i) {
        const cf_axis *a = &layer->axis[i + 1];
        assert_int_equal(c->basis[i] % 4, 0);
        for (int64_t out = 0; out < a->output; ++out)
            for (int64_t in = 0; in < a->input; ++in)
                for (int64_t tap = 0; tap < a->kernel; ++tap) {
                    const int64_t apart = in - out + a->pad_before - tap;
                    if (apart != 0 && apart % c->basis[i] == 0)
                        fail_msg("axis %d: input %d meets output %d by tap %d", i, (int)in, (int)out, (int)tap);
                }
    }
}

static void configurations_fit(void **unused) {
    (void)unused;
    static const char *const gpus[] = {"data/gpus/h200.txt", "data/gpus/a100.txt"};
    int taken = 0;
    generator g = test_generator(3);
    for (int i = 0; i < 300; ++i) {
        char line[256];
        const int rows = (int)random_int(&g, 1, 64), columns = (int)random_int(&g, 1, 64),
                  kernel_y = (int)random_int(&g, 1, 40), kernel_x = (int)random_int(&g, 1, 40);
        snprintf(line, sizeof line, "in=%dx%dx%dx%d out=%d groups=%d kernel=%dx%d pad=%dx%d dtype=fp16 math=half",
                 (int)random_int(&g, 1, 200), 6, rows, columns, 6, 6, kernel_y, kernel_x,
                 (int)random_int(&g, 0, kernel_y), (int)random_int(&g, 0, kernel_x));
        cf_layer layer;
        const char *why;
        if (!make(line, &layer) || !cf_dft_serves(&layer, 0, &why))
            continue;
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
            for (int any = 0; any < 2; ++any) {
                const cf_gpu_properties properties = gpu_properties_of(gpus[i % 2]);
                cf_dft_config c;
                if (cf_dft_configure(&layer, pass, &properties, any, &c) != CONV_FFT_SUCCESS)
                    fail_msg("%s: %s", line, conv_fft_last_error());
                const cf_dft_geometry geometry = cf_dft_geometry_for(&c);
                assert_true(c.shared <= properties.shared_per_block && c.threads <= 1024);
                assert_true(c.grid[0] == layer.groups && c.grid[1] >= 1 &&
                            c.grid[1] * c.teams * c.planes < c.samples + c.teams * c.planes);
                assert_true(c.teams >= 1 && c.threads == 32 * geometry.tiles * c.teams && (pass < 2 || c.teams == 1));
                assert_true(8 * geometry.tiles > c.basis[1] / 2 && 8 * geometry.eights > c.basis[0] / 2);
                assert_true(geometry.pitch % 2 == 1 && geometry.mid_pitch % 2 == 1);
                assert_true(!any || (c.x.granule == 1 && c.y.granule == 1));
                assert_true(c.x.columns % c.x.granule == 0 && c.y.columns % c.y.granule == 0);
                if (pass == 0 && any == 0)
                    check_basis(&layer, &c);
                ++taken;
            }
    }
    assert_true(taken > 300);
}

/* The tiles of a signal have all results, none is empty, and no result of a tile meets what wraps around. */
static void check_tiles(const cf_layer *layer, const cf_dft_config *c) {
    const cf_axis *a = &layer->axis[2];
    const cf_dft_signal *s = &c->signal;
    const bool data = c->pass == CF_PASS_DATA;
    const int64_t pad = data ? a->kernel - 1 - a->pad_before : a->pad_before, outputs = data ? a->input : a->output;
    assert_true(s->radix == 8 || s->radix == 16);
    assert_true(s->first % 8 == 0 && s->valid % 8 == 0 && s->shift >= 0 && s->shift < 8);
    assert_int_equal(s->first + s->shift, -pad);
    assert_true((int64_t)s->tiles * s->valid >= outputs && (s->tiles - 1ll) * s->valid < outputs);
    assert_true(s->valid + a->kernel + s->shift - 1 <= 512ll * s->radix);
    assert_true(c->y.columns == (c->pass == CF_PASS_WEIGHTS ? a->output : outputs));
}

static void signals_fit(void **unused) {
    (void)unused;
    static const char *const gpus[] = {"data/gpus/h200.txt", "data/gpus/a100.txt"};
    int taken = 0, long_tiles = 0;
    generator g = test_generator(5);
    for (int i = 0; i < 300; ++i) {
        char line[256];
        const int groups = (int)random_int(&g, 1, 900),
                  kernel = (int)random_int(&g, 1, random_once_in(&g, 2) ? 7928 : 600);
        snprintf(line, sizeof line, "in=%dx%dx%d out=%d groups=%d kernel=%d pad=%d:%d dtype=%s math=half",
                 (int)random_int(&g, 1, 40), groups, (int)random_int(&g, 65, 20000), groups, groups, kernel,
                 (int)random_int(&g, 0, kernel), (int)random_int(&g, 0, kernel), i % 3 ? "fp16" : "bf16");
        cf_layer layer;
        const char *why;
        if (!make(line, &layer) || !cf_dft_serves(&layer, 0, &why))
            continue;
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
            for (int any = 0; any < 2; ++any) {
                const cf_gpu_properties properties = gpu_properties_of(gpus[i % 2]);
                cf_dft_config c;
                if (cf_dft_configure(&layer, pass, &properties, any, &c) != CONV_FFT_SUCCESS)
                    fail_msg("%s: %s", line, conv_fft_last_error());
                assert_true(c.shared <= properties.shared_per_block && c.threads == 32 * c.signal.radix);
                assert_true(c.grid[0] == groups && c.grid[1] >= 1 && c.signal.blocks >= 1 &&
                            c.signal.blocks <= c.grid[0] * c.grid[1]);
                assert_true(c.x.granule == c.y.granule && (!any || c.x.granule == 1));
                assert_true(c.x.columns % c.x.granule == 0 && c.y.columns % c.y.granule == 0);
                check_tiles(&layer, &c);
                long_tiles += c.signal.radix == 16;
                ++taken;
            }
    }
    assert_true(taken > 300 && long_tiles > 50 && long_tiles < taken - 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_planes_with_math_half),
        cmocka_unit_test(configurations_fit),
        cmocka_unit_test(signals_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
