/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers family implicit_gemm takes, and how their passes are divided into blocks; no GPU is needed.
 * nvrtc/test_implicit_gemm.c compiles their kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conv/implicit_gemm/implicit_gemm.h"
#include "support/kernel_cases.h"
#include "support/random_problems.h"

static bool make(const char *line, cf_layer *layer) {
    conv_fft_problem p;
    return conv_fft_problem_parse(line, &p, NULL, 0) == CONV_FFT_SUCCESS &&
           cf_layer_make(&p, layer) == CONV_FFT_SUCCESS;
}

static void serves_few_channels_in_16_bits(void **unused) {
    (void)unused;
    static const struct {
        const char *problem, *why; /* why: a part of the reason why it does not take y and gw; "": it takes both */
    } cases[] = {
        {"in=4x3x128x128 out=96 kernel=11x11 dtype=fp16", ""},
        {"in=4x3x224x224 out=64 kernel=11x11 pad=2 stride=4 dtype=bf16 layout=last", ""},
        {"in=4x8x20x20 out=8 kernel=3x3 dtype=fp16", ""},
        {"in=4x9x20x20 out=8 kernel=3x3 dtype=fp16", "8 input channels"},
        {"in=4x3x20x20 out=7 kernel=3x3 dtype=fp16", "8 output channels"},
        {"in=4x3x20x20 out=8 kernel=3x3", "FP16 and BF16"},
        {"in=4x3x20x20 out=8 kernel=3x3 dtype=fp16 w=fp32 gw=fp32", "weights of the same type"},
        {"in=4x3x20x20 out=8 kernel=3x3 dilation=2 dtype=fp16", "dilation"},
        {"in=4x3x40x40 out=8 kernel=3x3 stride=9 dtype=fp16", "strides of up to 8"},
        {"in=4x3x20x20 out=8 kernel=3x3 pad=1 mode=reflect dtype=fp16", "padded by zeros"},
        {"in=4x3x5x20x20 out=8 kernel=3x3x3 dtype=fp16", "planes"},
        {"in=4x3x64x64 out=8 kernel=17x17 pad=8 dtype=fp16", "64 products"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        cf_layer layer;
        assert_true(make(cases[i].problem, &layer));
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
            const char *why = "", *const wanted = pass == CF_PASS_DATA ? "y and gw" : cases[i].why;
            const bool serves = cf_igemm_serves(&layer, pass, &why);
            if (serves != !*wanted || (!serves && !strstr(why, wanted)))
                fail_msg("%s, pass %d: %s", cases[i].problem, pass, serves ? "is taken" : why);
        }
    }
}

/* Products read every unit once, and units are in the tile where the kernels look for them. */
static void check_units(const cf_igemm_config *c) {
    const cf_igemm_geometry g = cf_igemm_geometry_for(c);
    const cf_igemm_products p = cf_igemm_products_of(g, c->kernel[0], c->stride[1]);
    int *const seen = calloc((size_t)(c->kernel[0] * g.units), sizeof *seen);
    assert_non_null(seen);
    int before = -1;
    for (int i = 0; i < g.units; ++i) {
        const int place = cf_igemm_place(g, c->stride[1], i), unit = cf_igemm_unit(g, i);
        assert_true(place > before && place < g.pitch);
        assert_int_equal(unit % g.all_phases * g.taps % c->stride[1] + (place % g.length) * c->stride[1],
                         unit * g.taps);
        before = place;
    }
    assert_true(before + c->tile[1] <= g.pitch);
    for (int i = 0; i < p.count; ++i) {
        const cf_igemm_product at = cf_igemm_product_at(g, p, c->stride[1], i);
        assert_true(at.place_step > 0);
        for (int n = 0; n < 8; ++n) {
            const int row = at.row + n * at.row_step, unit = at.unit + n * at.unit_step,
                      place = at.place + n * at.place_step;
            assert_true(place + ((c->tile[0] - 1) * c->stride[0]) * g.pitch + c->tile[1] <= p.tile);
            if (row >= c->kernel[0] || unit >= g.units)
                continue;
            seen[row * g.units + unit]++;
            assert_int_equal(place, row * g.pitch + unit % g.all_phases * g.length + unit * g.taps / c->stride[1]);
        }
    }
    for (int i = 0; i < c->kernel[0] * g.units; ++i)
        assert_int_equal(seen[i], 1);
    free(seen);
}

static void configurations_fit(void **unused) {
    (void)unused;
    int taken = 0;
    generator g = test_generator(5);
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    for (int i = 0; i < 300; ++i) {
        char line[256];
        const int kernel_y = (int)random_int(&g, 1, 13), kernel_x = (int)random_int(&g, 1, 13);
        snprintf(line, sizeof line, "in=%dx%dx%dx%d out=%d kernel=%dx%d pad=%dx%d stride=%dx%d dtype=fp16%s",
                 (int)random_int(&g, 1, 200), (int)random_int(&g, 1, 8), (int)random_int(&g, kernel_y, 224),
                 (int)random_int(&g, kernel_x, 224), (int)random_int(&g, 8, 200), kernel_y, kernel_x,
                 (int)random_int(&g, 0, kernel_y), (int)random_int(&g, 0, kernel_x), (int)random_int(&g, 1, 8),
                 (int)random_int(&g, 1, 8), random_once_in(&g, 2) ? " layout=last" : "");
        cf_layer layer;
        const char *why;
        if (!make(line, &layer))
            continue;
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
            for (int any = 0; any < 2; ++any) {
                cf_igemm_config c;
                if (!cf_igemm_serves(&layer, pass, &why) ||
                    cf_igemm_configure(&layer, pass, &properties, any, &c) != CONV_FFT_SUCCESS)
                    continue;
                const bool weights = pass == CF_PASS_WEIGHTS;
                const int64_t tiles = c.samples * c.tiles[0] * c.tiles[1];
                assert_true(c.shared <= properties.shared_per_block && c.threads == 128 * c.teams);
                assert_true(c.shared * c.resident <= properties.shared_per_multiprocessor);
                assert_true(c.tile[1] % 8 == 0);
                assert_true(weights || (c.tile[1] % (c.last ? 8 : 64) == 0 && c.tile[0] % (c.last ? 8 : 1) == 0));
                assert_true(c.tile[0] * c.tiles[0] >= c.output[0] && c.tile[1] * c.tiles[1] >= c.output[1]);
                assert_true(c.grid[0] >= 1 && c.grid[0] <= tiles && c.grid[1] * c.columns >= c.out_channels);
                assert_true(weights == (cf_igemm_bytes(&c) > 0));
                assert_true(!any || c.granule == 1);
                assert_true(c.granule <= (c.last || weights ? 8 : 2));
                check_units(&c);
                ++taken;
            }
    }
    assert_true(taken > 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_few_channels_in_16_bits),
        cmocka_unit_test(configurations_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
