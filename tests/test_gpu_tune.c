/* SPDX-License-Identifier: Apache-2.0 */
/* Measured tuning on a GPU: what wins is right, is found again by another context, and kept spectra are shared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device.h"
#include "gpu.h"
#include "layer.h"

#include <stdio.h>
#include <string.h>

static const char *const lines[] = {
    "in=5x12x23x24 out=10 kernel=3x4 pad=1",
    "in=3x8x30x31 out=8 kernel=7x7 pad=3 groups=8 layout=last dtype=fp16 gw=fp32",
    "in=2x4x19x18 out=4 kernel=4x3 pad=2 mode=reflect groups=2 stride=2 dtype=bf16",
    "in=2x3x2000 out=4 kernel=300 pad=10:20 mode=circular dtype=fp64",
    "in=2x3x9x10x11 out=4 kernel=3x3x3 pad=1 mode=replicate dilation=2",
    "in=4x16x32x32 out=16 kernel=9x9",
};
enum {
    LINES = sizeof lines / sizeof lines[0],
    PATIENCE = 120000 /* milliseconds: what is tested is what a search finds, however busy the host compiles */
};

static conv_fft_tune_statistics statistics_of(conv_fft_context *context) {
    conv_fft_tune_statistics s;
    assert_int_equal(conv_fft_tune_stats(context, &s), CONV_FFT_SUCCESS);
    return s;
}

static conv_fft_context *another_context(void) {
    conv_fft_context_options options;
    conv_fft_context *context = NULL;
    conv_fft_context_options_init(&options);
    options.device = 0;
    options.cache_directory = gpu_cache_directory();
    assert_int_equal(conv_fft_context_create(&options, &context), CONV_FFT_SUCCESS);
    return context;
}

static void tuned_layers_are_right(void **state) {
    NEED_DEVICE(state);
    conv_fft_context *tuner = another_context();
    for (int i = 0; i < LINES; ++i) {
        const conv_fft_problem p = test_problem(lines[i]);
        conv_fft_plan_options options;
        conv_fft_plan_options_init(&options);
        options.tuning = CONV_FFT_TUNE_MEASURE;
        options.tune_milliseconds = PATIENCE;
        generator g = generator_create((uint64_t)i);
        layer l = layer_create(&p, &g);
        conv_fft_plan *plan = test_plan(tuner, &p, &options);
        assert_non_null(plan);
        layer_check_all(&l, plan);
        conv_fft_plan_destroy(plan);
        layer_destroy(&l);
    }
    assert_int_equal(statistics_of(tuner).records, 2 * LINES);
    conv_fft_context *reader = another_context();
    for (int i = 0; i < LINES; ++i) {
        const conv_fft_problem p = test_problem(lines[i]);
        conv_fft_plan *plans[2];
        conv_fft_context *const contexts[] = {tuner, reader};
        conv_fft_description d[2];
        for (int k = 0; k < 2; ++k) {
            plans[k] = test_plan(contexts[k], &p, NULL);
            assert_int_equal(conv_fft_plan_describe(plans[k], CONV_FFT_BACKWARD, &d[k]), CONV_FFT_SUCCESS);
            assert_true(d[k].measured_ms > 0.0);
            conv_fft_plan_destroy(plans[k]);
        }
        assert_string_equal(d[0].strategy, d[1].strategy);
    }
    assert_int_equal(statistics_of(reader).hits, 2 * LINES);
    assert_int_equal(statistics_of(reader).misses, 0);
    conv_fft_context_destroy(reader);
    conv_fft_context_destroy(tuner);
    assert_int_equal(case_failures(), 0);
}

static void kept_spectra_are_shared(void **state) {
    NEED_DEVICE(state);
    conv_fft_context *context = another_context();
    const conv_fft_problem p = test_problem(lines[0]);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.tuning = CONV_FFT_TUNE_MEASURE;
    options.tune_milliseconds = PATIENCE;
    options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
    generator g = generator_create(3);
    layer l = layer_create(&p, &g);
    conv_fft_plan *plan = test_plan(context, &p, &options);
    assert_non_null(plan);
    layer_check_kept(&l, plan);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
    conv_fft_context_destroy(context);
    assert_int_equal(case_failures(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tuned_layers_are_right),
        cmocka_unit_test(kept_spectra_are_shared),
    };
    const int failed = cmocka_run_group_tests(tests, device_gpu_setup, device_teardown);
    return gpu_exit_status(failed);
}
