/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers family toeplitz takes; no GPU is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "conv/toeplitz/toeplitz.h"
#include "support/kernel_cases.h"

static bool make(const char *line, cf_layer *layer) {
    conv_fft_problem p;
    return conv_fft_problem_parse(line, &p, NULL, 0) == CONV_FFT_SUCCESS &&
           cf_layer_make(&p, layer) == CONV_FFT_SUCCESS;
}

static void serves_short_kernels_of_single_channels(void **unused) {
    (void)unused;
    enum {
        F = 1 << CF_PASS_FORWARD,
        D = 1 << CF_PASS_DATA,
        W = 1 << CF_PASS_WEIGHTS
    };
    static const struct {
        const char *problem;
        int passes;
        const char *why; /* a part of the reason why it does not take another pass */
    } cases[] = {
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=fp16", F | D | W, ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=bf16 layout=last", F | D | W, ""},
        {"in=4x8x200 out=8 groups=8 kernel=128 pad=127:0 dtype=bf16", F | D | W, ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=fp16 w=fp32 math=half", F | D | W, ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=fp16 w=fp32", W, "math HALF"},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=fp16 stride=2", F | D | W, ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 stride=2", F | W, "in 16 bits"},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 stride=1x2", F | W, "in 16 bits"},
        {"in=4x8x1x200 out=8 groups=8 kernel=1x5 pad=0x2 stride=2x1", F | D | W, ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=fp16 stride=2 layout=last", F | D | W, ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=fp16 stride=3 layout=last", F | D | W, ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=15x15 pad=7 dtype=fp16 stride=2 layout=last", F | D | W, ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=1 dtype=fp16 stride=2 layout=last", F | D | W, ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=fp16 stride=5", 0, "stride"},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x1 pad=2x0 dilation=1x3 dtype=fp16", F | D | W, ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dilation=2x1 dtype=fp16", 0, "without dilation"},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 mode=reflect dtype=fp16", F | D | W, ""},
        {"in=4x8x20x61 out=8 groups=8 kernel=5x5 pad=2 mode=reflect dtype=fp16", F | W, "math HALF"},
        {"in=4x8x20x61 out=8 groups=8 kernel=5x5 pad=2 mode=reflect dtype=fp16 math=half", F | D | W, ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 mode=reflect layout=last dtype=fp16", F | W, "math HALF"},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 mode=circular", F | D | W, ""},
        {"in=2x8x1x20x20 out=8 groups=8 kernel=1x3x3 pad=1:0x1x1 stride=2x1x1 dtype=fp16", 0, "without stride"},
        {"in=2x8x1x20x20 out=8 groups=8 kernel=1x3x3 pad=1:0x1x1 stride=2x1x1 layout=last dtype=fp16", 0, ""},
        {"in=2x8x1x20x20 out=8 groups=8 kernel=1x3x3 pad=1:0x1x1 stride=2x1x1", 0, ""},
        {"in=4x8x5x20x20 out=8 groups=8 kernel=3x3x3 pad=1 dtype=fp16", F | D | W, ""},
        {"in=4x8x9x20x20 out=8 groups=8 kernel=8x8x7 pad=3 dtype=bf16 w=fp32 math=half", F | D | W, ""},
        {"in=4x8x12x20x20 out=8 groups=8 kernel=9x3x3 pad=1 dtype=fp16", 0, "8x8x7 taps"},
        {"in=4x8x12x20x20 out=8 groups=8 kernel=3x9x3 pad=1 dtype=fp16", 0, "8x8x7 taps"},
        {"in=4x8x12x20x20 out=8 groups=8 kernel=3x3x8 pad=1 dtype=fp16", 0, "8x8x7 taps"},
        {"in=4x8x5x20x20 out=8 groups=8 kernel=3x3x3 pad=1 stride=2x1x1 dtype=fp16", 0, "without stride"},
        {"in=4x8x5x20x20 out=8 groups=8 kernel=3x3x3 pad=1 stride=1x2x1 dtype=fp16", 0, "without stride"},
        {"in=4x8x5x20x20 out=8 groups=8 kernel=3x3x3 pad=1 dilation=2x1x1 dtype=fp16", 0, "8x8x7 taps"},
        {"in=4x8x5x20x20 out=8 groups=8 kernel=3x3x3 pad=1 layout=last dtype=fp16", F | D | W, ""},
        {"in=4x8x5x20x20 out=8 groups=8 kernel=3x3x3 pad=1", 0, "volumes of 16 bits"},
        {"in=4x8x5x20x20 out=8 groups=8 kernel=3x3x3 pad=1 mode=circular dtype=fp16 math=half", D, "padded by zeros"},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2", F | D | W, ""},
        {"in=4x8x900 out=8 groups=8 kernel=128 pad=127:0", F | D | W, ""},
        {"in=4x8x900 out=8 groups=8 kernel=129 pad=128:0", 0, "128 taps"},
        {"in=4x8x900 out=8 groups=8 kernel=256 pad=255:0 math=tf32", F | D | W, ""},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 layout=last", 0, "contiguous"},
        {"in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=fp64", 0, "FP32, FP16 and BF16"},
        {"in=4x8x20x20 out=16 groups=8 kernel=5x5 pad=2 dtype=fp16", 0, "single channels"},
        {"in=4x8x20x20 out=8 groups=4 kernel=5x5 pad=2 dtype=fp16", 0, "single channels"},
        {"in=4x8x900 out=8 groups=8 kernel=300 dtype=fp16", 0, "256 taps"},
        {"in=4x8x60x20 out=8 groups=8 kernel=33x3 dtype=fp16", 0, "31 rows"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
            cf_layer layer;
            const char *why = "";
            assert_true(make(cases[i].problem, &layer));
            const bool serves = cf_toeplitz_serves(&layer, pass, &why);
            if (serves != ((cases[i].passes >> pass & 1) != 0) || (!serves && !strstr(why, cases[i].why)))
                fail_msg("%s, pass %d: %s", cases[i].problem, pass, why);
        }
}

static void layers_whose_elements_lie_apart_are_refused(void **unused) {
    (void)unused;
    conv_fft_problem p;
    cf_layer layer;
    const char *why = "";
    assert_int_equal(conv_fft_problem_parse("in=4x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=fp16", &p, NULL, 0),
                     CONV_FFT_SUCCESS);
    p.x_stride[0] = 8 * 20 * 40, p.x_stride[1] = 20 * 40, p.x_stride[2] = 40, p.x_stride[3] = 2;
    assert_int_equal(cf_layer_make(&p, &layer), CONV_FFT_SUCCESS);
    assert_false(cf_toeplitz_serves(&layer, CF_PASS_FORWARD, &why));
    assert_non_null(strstr(why, "contiguous"));
}

static void little_shared_memory_is_refused(void **unused) {
    (void)unused;
    cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    cf_layer layer;
    cf_toeplitz_config c;
    properties.shared_per_block = 20 << 10;
    assert_true(make("in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 dtype=fp16", &layer));
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        assert_int_equal(cf_toeplitz_configure(&layer, pass, &properties, false, &c), CONV_FFT_NOT_SUPPORTED);
    properties.shared_per_block = 5 << 10;
    assert_true(make("in=8x32x64x64x64 out=32 groups=32 kernel=7x7x7 pad=3 dtype=fp16", &layer));
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        assert_int_equal(cf_toeplitz_configure(&layer, pass, &properties, false, &c), CONV_FFT_NOT_SUPPORTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_short_kernels_of_single_channels),
        cmocka_unit_test(layers_whose_elements_lie_apart_are_refused),
        cmocka_unit_test(little_shared_memory_is_refused),
    };
    return cmocka_run_group_tests_name("layers of toeplitz", tests, NULL, NULL);
}
