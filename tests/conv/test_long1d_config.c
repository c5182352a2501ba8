/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers family long1d takes, and the configuration of their passes; no GPU is needed. nvrtc/test_long1d.c
 * compiles their kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conv/long1d/long1d.h"
#include "support/kernel_cases.h"

static void serves_long_lines_of_single_channels(void **unused) {
    (void)unused;
    static const struct {
        const char *problem, *grid;
        bool serves;
    } cases[] = {
        {"in=4x8x1024 out=8 groups=8 kernel=1024 pad=1023:0", "basis=2048 tiles=1", true},
        {"in=4x8x1024 out=8 groups=8 kernel=1024 pad=1023:0 dtype=bf16", "basis=4096 tiles=1", true},
        {"in=1x1x2048 out=1 kernel=1", "basis=2048 tiles=1", true},
        {"in=1x1x1048576 out=1 kernel=1048576 pad=1048575:0", "basis=2097152 tiles=1", true},
        /* With one sample more, results would wrap around. */
        {"in=4x8x1500 out=8 groups=8 kernel=1097 pad=548", "basis=2048 tiles=1", true},
        {"in=4x8x1500 out=8 groups=8 kernel=1099 pad=549", "basis=2048 tiles=1", false},
        {"in=4x8x1500 out=8 groups=8 kernel=1099 pad=548:549", "basis=2048 tiles=1", false},
        /* Layers that the family has no kernels for. */
        {"in=4x8x500 out=8 groups=8 kernel=500 pad=499:0", "basis=1024 tiles=1", false},
        {"in=4x8x1000 out=8 groups=8 kernel=1000 pad=999:0", "basis=2000 tiles=1", false},
        {"in=1x1x2000000 out=1 kernel=2000000 pad=1999999:0", "basis=4194304 tiles=1", false},
        {"in=4x8x4000 out=8 groups=8 kernel=9 pad=4", "basis=2048 tiles=2", false},
        {"in=4x8x1024 out=8 groups=4 kernel=9 pad=4", "basis=2048 tiles=1", false},
        {"in=4x8x1024 out=16 groups=8 kernel=9 pad=4", "basis=2048 tiles=1", false},
        {"in=4x8x2000 out=8 groups=8 kernel=9 pad=4 stride=2", "basis=2048 tiles=1", false},
        {"in=4x8x1024 out=8 groups=8 kernel=9 pad=8 dilation=2", "basis=2048 tiles=1", false},
        {"in=4x8x1024 out=8 groups=8 kernel=9 pad=4 mode=reflect", "basis=2048 tiles=1", false},
        {"in=4x8x1024 out=8 groups=8 kernel=9 pad=4 dtype=fp64", "basis=2048 tiles=1", false},
        {"in=4x8x1x1024 out=8 groups=8 kernel=1x9 pad=0x4", "basis=1x2048 tiles=1x1", true},
        {"in=4x8x2x1024 out=8 groups=8 kernel=1x9 pad=0x4", "basis=2x2048 tiles=1x1", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
            cf_layer layer;
            cf_strategy strategy;
            fused_make(cases[i].problem, cases[i].grid, &layer, &strategy);
            if (cf_long1d_serves(&layer, pass, &strategy) != cases[i].serves)
                fail_msg("%s, %s, pass %d", cases[i].problem, cases[i].grid, pass);
        }
}

static conv_fft_status configure(int i, int pass, const cf_gpu_properties *properties, cf_long1d_config *c) {
    cf_layer layer;
    cf_strategy strategy;
    fused_make(long_cases[i].problem, long_cases[i].grid, &layer, &strategy);
    assert_true(pass == CF_LONG1D_BOTH || cf_long1d_serves(&layer, pass, &strategy));
    const conv_fft_status status = cf_long1d_configure(&layer, pass, &strategy, properties, c);
    if (status != CONV_FFT_SUCCESS)
        return status;
    assert_int_equal(2 * cf_long1d_points(c) * cf_long1d_parts(c), strategy.basis[2]);
    assert_true(c->together > 0 && c->together <= c->groups && c->slices > 0 && c->slices <= c->rows);
    for (int stage = 0; stage < CF_LONG1D_STAGES; ++stage) {
        if (!c->stage[stage])
            continue;
        const cf_launch launch = cf_long1d_launch(c, (cf_long1d_stage)stage, c->together);
        assert_true(launch.dynamic_shared <= (size_t)properties->shared_per_block);
        assert_true(launch.block[0] % 32 == 0 && launch.block[0] > 0 && launch.block[0] <= 1024);
        assert_true(launch.grid[0] > 0 && launch.grid[1] > 0 && launch.grid[1] <= 65535);
    }
    return CONV_FFT_SUCCESS;
}

static void passes_are_cut_for_the_gpu(void **unused) {
    (void)unused;
    const cf_gpu_properties gpus[2] = {gpu_properties_of("data/gpus/h200.txt"),
                                       gpu_properties_of("data/gpus/a100.txt")};
    cf_long1d_config c;
    for (int i = 0; i < long_case_count; ++i)
        for (int pass = 0; pass <= CF_LONG1D_BOTH; ++pass)
            for (int g = 0; g < 2; ++g)
                assert_int_equal(configure(i, pass, &gpus[g], &c), CONV_FFT_SUCCESS);
}

static void little_shared_memory_is_refused(void **unused) {
    (void)unused;
    cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    cf_long1d_config c;
    properties.shared_per_block = 99 << 10;
    assert_int_equal(configure(3, CF_PASS_FORWARD, &properties, &c), CONV_FFT_SUCCESS);
    assert_int_equal(configure(3, CF_PASS_WEIGHTS, &properties, &c), CONV_FFT_NOT_SUPPORTED); /* two lines to a block */
    assert_int_equal(configure(3, CF_LONG1D_BOTH, &properties, &c), CONV_FFT_NOT_SUPPORTED);
    properties.shared_per_block = 60 << 10;
    assert_int_equal(configure(3, CF_PASS_FORWARD, &properties, &c), CONV_FFT_NOT_SUPPORTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_long_lines_of_single_channels),
        cmocka_unit_test(passes_are_cut_for_the_gpu),
        cmocka_unit_test(little_shared_memory_is_refused),
    };
    return cmocka_run_group_tests_name("long config", tests, NULL, NULL);
}
