/* SPDX-License-Identifier: Apache-2.0 */
/* The field `arithmetic` of fbfft.h, and arithmetic SPLIT: what is refused, what is planned for a GPU, and the CPU's
 * results against the definition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fbfft/c2c_split/geometry.h"
#include "fbfft/c2c_split/plan.h"
#include "support/c2c_fp16_cases.h"
#include "support/error_text.h"
#include "support/layer.h"

static conv_fft_context *context;

/* --------------------------------------------------------------------------------------------------------- refusals */

#define BAD(assignment, ...)                                                \
    do {                                                                    \
        fbfft_desc d = split_desc(FBFFT_C2C_FORWARD, 10);                   \
        fbfft_plan *plan = NULL;                                            \
        d.assignment;                                                       \
        EXPECT_INVALID(fbfft_plan_create(context, &d, &plan), __VA_ARGS__); \
        assert_null(plan);                                                  \
    } while (0)

static void refusals(void **state) {
    (void)state;
    const char *const split = "FBFFT_ARITHMETIC_SPLIT (2)";
    BAD(arithmetic = (fbfft_arithmetic)-1, "arithmetic is -1", "FBFFT_ARITHMETIC_DEFAULT (0)");
    BAD(arithmetic = (fbfft_arithmetic)4, "arithmetic is 4", "FBFFT_ARITHMETIC_FP32 (1)", split);
    BAD(arithmetic = FBFFT_ARITHMETIC_FP16, "FBFFT_ARITHMETIC_FP16 (3)", "spectrum is CONV_FFT_FP32 (0)");
    BAD(spectrum = CONV_FFT_FP16, split, "must be FBFFT_ARITHMETIC_FP16 (3)", "DEFAULT");
    BAD(kind = FBFFT_R2C, "kind is 0", "FBFFT_C2C_FORWARD (2)", split);
    BAD(kind = FBFFT_C2R, "kind is 1", "FBFFT_C2C_INVERSE (3)", split);
    BAD(dtype = CONV_FFT_FP16, "dtype is 1", "CONV_FFT_FP32 (0)", split);
    BAD(dtype = CONV_FFT_FP64, "dtype is 3", "CONV_FFT_FP32 (0)", split);
    BAD(rank = 2, "rank is 2", "must be 1 where", split);
    BAD(rank = 3, "rank is 3", "must be 1 where", split);
    BAD(layout = CONV_FFT_CHANNELS_LAST, "layout is 1", "CHANNELS_FIRST", split);
    BAD(order = FBFFT_FREQUENCY_MAJOR, "order is 2", "NATURAL", split);
    BAD(padding = CONV_FFT_PAD_CIRCULAR, "padding is 1", "ZEROS", split);
    BAD(basis[0] = 1000, "basis[0] is 1000", "power of two", "256 to 16384", split);
    BAD(basis[0] = 128, "basis[0] is 128", "256 to 16384", split);
    BAD(basis[0] = 32768, "basis[0] is 32768", "256 to 16384", split);
    BAD(extent[0] = 1023, "extent[0] is 1023", "0 or 1024", split);
    BAD(size[0] = 1025, "size[0] is 1025", "0 or 1024", split);
    BAD(offset[0] = 1, "offset[0] is 1", "must be 0", split);
    BAD(step[0] = 2, "step[0] is 2", "must be 1", split);
    BAD(stride[1] = 1024, "stride[1] is 1024", "must be 0", split);
    for (int i = 0; i < 3; ++i)
        BAD(reserved[i] = 1, "reserved", "1", "0");
}

/* What DEFAULT does not choose for a type is refused. */
static void types(void **state) {
    (void)state;
    static const struct {
        conv_fft_dtype dtype, spectrum;
        bool allowed[4]; /* by arithmetic */
    } cases[] = {{CONV_FFT_FP32, CONV_FFT_FP32, {true, true, true, false}},
                 {CONV_FFT_FP16, CONV_FFT_FP32, {true, true, false, false}},
                 {CONV_FFT_BF16, CONV_FFT_FP32, {true, true, false, false}},
                 {CONV_FFT_FP64, CONV_FFT_FP32, {true, false, false, false}},
                 {CONV_FFT_FP16, CONV_FFT_FP16, {true, false, false, true}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        for (int a = 0; a < 4; ++a) {
            fbfft_desc d = split_desc(FBFFT_C2C_INVERSE, 8);
            fbfft_plan *plan = NULL;
            d.dtype = cases[i].dtype;
            d.spectrum = cases[i].spectrum;
            d.arithmetic = (fbfft_arithmetic)a;
            const conv_fft_status status = fbfft_plan_create(context, &d, &plan);
            assert_int_equal(status, cases[i].allowed[a] ? CONV_FFT_SUCCESS : CONV_FFT_INVALID_ARGUMENT);
            assert_int_equal(plan && strstr(fbfft_plan_description(plan), "split") != NULL,
                             a == FBFFT_ARITHMETIC_SPLIT && cases[i].allowed[a]);
            fbfft_plan_destroy(plan);
        }
}

/* ------------------------------------------------------------------------------------------------------------ plans */

static void explain(const fbfft_desc *d, char text[4096]) {
    if (fbfft_explain(NULL, "data/gpus/h200.txt", d, 0, text, 4096, NULL) != CONV_FFT_SUCCESS)
        fail_msg("no explanation: %s", conv_fft_last_error());
}

static void plan_is_explained(void **state) {
    (void)state;
    static const char *const words[] = {"c2c 4096 from 4096, fp32", "\narithmetic: FP32 as two FP16 numbers",
                                        "lines of 4096 = 16*256", "2147.48 MB read", "batch 65536"};
    char text[4096];
    fbfft_desc d = split_desc(FBFFT_C2C_FORWARD, 12);
    explain(&d, text);
    for (int w = 0; w < 5; ++w)
        if (!strstr(text, words[w]))
            fail_msg("no \"%s\" in %s", words[w], text);
    d.arithmetic = FBFFT_ARITHMETIC_FP32;
    explain(&d, text);
    assert_non_null(strstr(text, "\narithmetic: FP32 units\n"));
    d.arithmetic = FBFFT_ARITHMETIC_DEFAULT;
    d.dtype = CONV_FFT_FP64;
    explain(&d, text);
    assert_non_null(strstr(text, "\narithmetic: FP64 units\n"));
    d.dtype = d.spectrum = CONV_FFT_FP16;
    explain(&d, text);
    assert_non_null(strstr(text, "\narithmetic: FP16 on tensor cores"));
}

static cf_gpu_properties properties_of(const char *path) {
    cf_gpu_properties properties;
    assert_int_equal(cf_gpu_properties_load(path, &properties), CONV_FFT_SUCCESS);
    return properties;
}

/* Blocks fit the GPU, and as many as the compiler is told of fit a multiprocessor. */
static void plans(void **state) {
    (void)state;
    static const char *const files[] = {"data/gpus/h200.txt", "data/gpus/a100.txt"};
    for (int f = 0; f < 2; ++f)
        for (int log = 8; log <= 14; ++log) {
            const cf_gpu_properties p = properties_of(files[f]);
            const fbfft_desc d = split_desc(FBFFT_C2C_INVERSE, log);
            cf_fft_problem problem;
            cf_c2c_split_config c;
            assert_int_equal(cf_fft_resolve(&d, &problem), CONV_FFT_SUCCESS);
            assert_int_equal(cf_c2c_split_configure(&problem, &p, &c), CONV_FFT_SUCCESS);
            assert_true(c.inverse && c.log_n == log && c.blocks >= 1);
            assert_int_equal(c.shared, log == 8 ? 0 : 16 * c.lines * cf_c2c_split_line(log));
            assert_true(c.blocks * (c.shared + p.shared_reserved_per_block) <= p.shared_per_multiprocessor);
            assert_true(c.blocks * c.threads <= 2048);
        }
}

/* A GPU with less shared memory than a row takes. */
static void too_small(void **state) {
    (void)state;
    cf_gpu_properties p = properties_of("data/gpus/a100.txt");
    const fbfft_desc d = split_desc(FBFFT_C2C_FORWARD, 14);
    cf_fft_problem problem;
    cf_c2c_split_config c;
    p.shared_per_block = 101376;
    assert_int_equal(cf_fft_resolve(&d, &problem), CONV_FFT_SUCCESS);
    EXPECT(NOT_SUPPORTED, cf_c2c_split_configure(&problem, &p, &c), "basis[0] is 16384", "101376",
           "choose FBFFT_ARITHMETIC_FP32 (1)");
}

/* -------------------------------------------------------------------------------------------------------------- CPU */

static void lines(void **state) {
    (void)state;
    fft_list list = {0};
    split_add_lines(&list);
    fft_list_check(&list, "lines", NULL, context);
}

static void rules(void **state) {
    (void)state;
    const fbfft_desc d = split_desc(FBFFT_C2C_FORWARD, 9);
    fft_check_isolation(NULL, context, &d);
    fft_check_there_and_back(NULL, context, &d);
    half_check_alignment(context, &d, "FBFFT_ARITHMETIC_SPLIT (2)");
}

static int setup(void **state) {
    (void)state;
    context = test_context(2);
    return 0;
}
static int teardown(void **state) {
    (void)state;
    conv_fft_context_destroy(context);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals), cmocka_unit_test(types),     cmocka_unit_test(plan_is_explained),
        cmocka_unit_test(plans),    cmocka_unit_test(too_small), cmocka_unit_test(lines),
        cmocka_unit_test(rules)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
