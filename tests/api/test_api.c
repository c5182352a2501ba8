/* SPDX-License-Identifier: Apache-2.0 */
/* Bad problems, options and handles, one at a time: the status, and a message that names the field, its value and the
 * allowed range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/error_text.h"
#include "support/layer.h"

#include <stdio.h>

static conv_fft_context *context;

static conv_fft_problem good_problem(void) {
    conv_fft_problem p;
    assert_int_equal(conv_fft_problem_parse("in=2x4x9x10 out=6 kernel=3x4 pad=1 groups=2", &p, NULL, 0),
                     CONV_FFT_SUCCESS);
    return p;
}

/* Every call that takes a problem refuses it, and leaves its outputs unchanged. */
static void expect_bad(const conv_fft_problem *p, const char *a, const char *b, const char *c) {
    int64_t output[3] = {-7, -7, -7};
    char text[512] = "#";
    conv_fft_plan *const marker = (conv_fft_plan *)text, *plan = marker;
    EXPECT_INVALID(conv_fft_problem_output(p, output), a, b, c);
    for (int axis = 0; axis < 3; axis++)
        assert_int_equal(output[axis], -7);
    EXPECT_INVALID(conv_fft_problem_format(p, text, sizeof text), a, b, c);
    assert_string_equal(text, "#");
    EXPECT_INVALID(conv_fft_plan_create(context, p, NULL, &plan), a, b, c);
    assert_ptr_equal(plan, marker);
}

/* The field's name, its value, and a part of the allowed range. */
#define BAD(assignment, name, value, range)  \
    do {                                     \
        conv_fft_problem p = good_problem(); \
        p.assignment;                        \
        expect_bad(&p, name, value, range);  \
    } while (0)

static void test_problem_fields(void **state) {
    (void)state;
    BAD(rank = 0, "rank", "0", "1 to 3");
    BAD(rank = 4, "rank", "4", "1 to 3");
    BAD(rank = -1, "rank", "-1", "1 to 3");
    BAD(batch = -1, "batch", "-1", "0");
    BAD(groups = 0, "groups", "0", "1");
    BAD(groups = -2, "groups", "-2", "1");
    BAD(groups = 3, "in_channels", "4", "multiple of groups");
    BAD(in_channels = 0, "in_channels", "0", "1");
    BAD(in_channels = 5, "in_channels", "5", "multiple of groups");
    BAD(out_channels = 0, "out_channels", "0", "1");
    BAD(out_channels = 7, "out_channels", "7", "multiple of groups");
    BAD(input[0] = 0, "input[0]", "0", "1");
    BAD(input[1] = -5, "input[1]", "-5", "1");
    BAD(kernel[0] = 0, "kernel[0]", "0", "1");
    BAD(kernel[1] = -1, "kernel[1]", "-1", "1");
    BAD(stride[0] = 0, "stride[0]", "0", "1");
    BAD(stride[1] = -3, "stride[1]", "-3", "1");
    BAD(dilation[0] = 0, "dilation[0]", "0", "1");
    BAD(dilation[1] = -3, "dilation[1]", "-3", "1");
    BAD(pad_before[0] = -1, "pad_before[0]", "-1", "0");
    BAD(pad_after[1] = -2, "pad_after[1]", "-2", "0");
    BAD(padding = (conv_fft_padding)4, "padding", "4", "0 to 3");
    BAD(padding = (conv_fft_padding)-1, "padding", "", "0 to 3"); /* the enum may be unsigned */
    BAD(tensor_layout = (conv_fft_layout)2, "tensor_layout", "2", "0 to 1");
    BAD(weight_layout = (conv_fft_layout)-1, "weight_layout", "", "0 to 1");
    BAD(dtype = (conv_fft_dtype)4, "dtype", "4", "0 to 3");
    BAD(dtype = CONV_FFT_DTYPE_SAME, "dtype", "-1", "0 to 3");
    BAD(weight_grad_dtype = (conv_fft_dtype)9, "weight_grad_dtype", "9", "-1 to 3");
    BAD(math = (conv_fft_math)5, "math", "5", "0 to 4");
    BAD(math = (conv_fft_math)-1, "math", "", "0 to 4");
    BAD(fp32_weights = 2, "fp32_weights", "2", "0 to 1");
    BAD(fp32_weights = -1, "fp32_weights", "-1", "0 to 1");
    for (int i = 0; i < 3; i++)
        BAD(reserved[i] = 1, "reserved", "1", "0");
}

static void test_kernel_and_padding(void **state) {
    (void)state;
    BAD(kernel[0] = 12, "kernel[0]", "12", "11");          /* 9 + 1 + 1 */
    BAD(dilation[1] = 4, "kernel[1]", "dilation 4", "12"); /* 3 * 4 + 1 against 10 + 1 + 1 */
    BAD(padding = CONV_FFT_PAD_REFLECT;
        p.pad_before[0] = 9, "pad_before[0]", "9", "with padding REFLECT and input[0] 9 it must be 0 to 8");
    BAD(padding = CONV_FFT_PAD_REFLECT; p.pad_after[1] = 10, "pad_after[1]", "10", "0 to 9");
    BAD(padding = CONV_FFT_PAD_CIRCULAR;
        p.pad_before[1] = 11, "pad_before[1]", "11", "with padding CIRCULAR and input[1] 10 it must be 0 to 10");
    BAD(padding = CONV_FFT_PAD_CIRCULAR; p.pad_after[0] = 10, "pad_after[0]", "10", "0 to 9");
}

/* Every combination of types is refused if the header does not allow it, and accepted if it does. */
static void test_types(void **state) {
    (void)state;
    static const char *const names[] = {"FP32", "FP16", "BF16", "FP64"};
    static const char *const maths[] = {"DEFAULT", "FP32", "TF32", "HALF", "FP64"};
    int64_t output[3];
    for (int dtype = 0; dtype < 4; dtype++) {
        const bool half = dtype == CONV_FFT_FP16 || dtype == CONV_FFT_BF16;
        for (int grad = 0; grad < 4; grad++) {
            conv_fft_problem p = good_problem();
            p.dtype = (conv_fft_dtype)dtype;
            p.weight_grad_dtype = (conv_fft_dtype)grad;
            if (grad == dtype || (half && grad == CONV_FFT_FP32))
                assert_int_equal(conv_fft_problem_output(&p, output), CONV_FFT_SUCCESS);
            else
                expect_bad(&p, "weight_grad_dtype", names[grad], names[dtype]);
        }
        conv_fft_problem master = good_problem();
        master.dtype = (conv_fft_dtype)dtype;
        master.fp32_weights = 1;
        if (half)
            assert_int_equal(conv_fft_problem_output(&master, output), CONV_FFT_SUCCESS);
        else
            expect_bad(&master, "fp32_weights is 1", names[dtype], "must be 0");
        for (int math = 0; math < 5; math++) {
            conv_fft_problem p = good_problem();
            p.dtype = (conv_fft_dtype)dtype;
            p.math = (conv_fft_math)math;
            const bool allowed =
                math == CONV_FFT_MATH_DEFAULT || (dtype == CONV_FFT_FP64) == (math == CONV_FFT_MATH_FP64);
            if (allowed && (math != CONV_FFT_MATH_TF32 || dtype == CONV_FFT_FP32) &&
                (math != CONV_FFT_MATH_HALF || half))
                assert_int_equal(conv_fft_problem_output(&p, output), CONV_FFT_SUCCESS);
            else
                expect_bad(&p, "math", maths[math], names[dtype]);
        }
    }
}

/* Products beyond 63 bits, one at a time, and single fields at the limit of their type. */
static void test_overflow(void **state) {
    (void)state;
    const int64_t big = (int64_t)1 << 40;
    BAD(batch = big; p.in_channels = p.input[0] = 1 << 20, "x", "multipl", "");
    BAD(batch = big; p.out_channels = 1 << 30, "y", "multipl", "");
    BAD(input[0] = p.kernel[0] = big; p.in_channels = p.out_channels = 1 << 20, "", "multipl", "");
    BAD(input[0] = INT64_MAX, "input[0]", "9223372036854775807", "");
    BAD(kernel[0] = INT64_MAX, "kernel[0]", "9223372036854775807", "");
    BAD(batch = INT64_MAX, "batch", "9223372036854775807", "");
    BAD(in_channels = INT64_MAX - 1, "in_channels", "9223372036854775806", "");
    BAD(out_channels = INT64_MAX - 1, "out_channels", "9223372036854775806", "");
    BAD(stride[0] = INT64_MAX, "stride[0]", "9223372036854775807", "");
    BAD(dilation[0] = INT64_MAX, "dilation[0]", "9223372036854775807", "");
    BAD(pad_before[0] = INT64_MAX, "pad_before[0]", "9223372036854775807", "");
    BAD(pad_after[0] = INT64_MAX, "pad_after[0]", "9223372036854775807", "");
    BAD(dilation[0] = (int64_t)1 << 58; p.kernel[0] = (int64_t)1 << 20, "kernel[0]", "dilation", "");
    BAD(x_stride[0] = INT64_MAX; p.x_stride[1] = 1, "x_stride[0]", "9223372036854775807", "");
    BAD(y_stride[0] = (int64_t)1 << 62; p.y_stride[1] = (int64_t)1 << 62, "y_stride", "", "");
}

/* A tensor that is written must not have two elements at one address. A tensor that is only read may. */
static void expect_bad_stride(conv_fft_problem p, int pass, const char *name, const char *written) {
    conv_fft_plan_options options;
    conv_fft_plan *plan = NULL;
    conv_fft_plan_options_init(&options);
    options.passes = pass;
    EXPECT_INVALID(conv_fft_plan_create(context, &p, &options, &plan), name, written);
    assert_null(plan);
    options.passes = CONV_FFT_ALL_PASSES & ~pass;
    assert_int_equal(conv_fft_plan_create(context, &p, &options, &plan), CONV_FFT_SUCCESS);
    conv_fft_plan_destroy(plan);
}

static void set_strides(int64_t *stride, int64_t a, int64_t b, int64_t c, int64_t d) {
    stride[0] = a;
    stride[1] = b;
    stride[2] = c;
    stride[3] = d;
}

static void test_strides(void **state) {
    (void)state;
    BAD(x_stride[1] = -1, "x_stride[1]", "-1", "0");
    BAD(y_stride[0] = -4, "y_stride[0]", "-4", "0");
    BAD(w_stride[3] = -2, "w_stride[3]", "-2", "0");
    /* x is [2][4][9][10], y [2][6][9][9], w [6][2][3][4] */
    conv_fft_problem p = good_problem();
    set_strides(p.x_stride, 0, 90, 10, 1);
    expect_bad_stride(p, CONV_FFT_BACKWARD_DATA, "x_stride", "gx");
    set_strides(p.x_stride, 360, 90, 9, 1);
    expect_bad_stride(p, CONV_FFT_BACKWARD_DATA, "x_stride", "gx");
    p = good_problem();
    set_strides(p.y_stride, 486, 81, 1, 0);
    expect_bad_stride(p, CONV_FFT_FORWARD, "y_stride", "y");
    set_strides(p.y_stride, 81, 81, 9, 1);
    expect_bad_stride(p, CONV_FFT_FORWARD, "y_stride", "y");
    p = good_problem();
    set_strides(p.w_stride, 0, 12, 4, 1);
    expect_bad_stride(p, CONV_FFT_BACKWARD_WEIGHTS, "w_stride", "gw");
}

static void test_problem_pointers(void **state) {
    (void)state;
    conv_fft_problem p = good_problem();
    int64_t output[3];
    char text[512];
    EXPECT_INVALID(conv_fft_problem_init(NULL, 2), "p", "NULL");
    EXPECT_INVALID(conv_fft_problem_init(&p, 0), "rank", "0", "1 to 3");
    EXPECT_INVALID(conv_fft_problem_init(&p, 4), "rank", "4", "1 to 3");
    assert_int_equal(p.batch, 2);
    EXPECT_INVALID(conv_fft_problem_output(NULL, output), "p", "NULL");
    EXPECT_INVALID(conv_fft_problem_output(&p, NULL), "output", "NULL");
    EXPECT_INVALID(conv_fft_problem_parse(NULL, &p, text, sizeof text), "line", "NULL");
    EXPECT_INVALID(conv_fft_problem_parse("in=1x1x1", NULL, text, sizeof text), "p", "NULL");
    EXPECT_INVALID(conv_fft_problem_format(NULL, text, sizeof text), "p", "NULL");
    EXPECT_INVALID(conv_fft_problem_format(&p, NULL, 512), "text", "NULL");
}

/* ---- contexts */

static void expect_bad_context(const conv_fft_context_options *options, const char *name, const char *value,
                               const char *range) {
    int marker;
    conv_fft_context *made = (conv_fft_context *)&marker;
    EXPECT_INVALID(conv_fft_context_create(options, &made), name, value, range);
    assert_ptr_equal(made, &marker);
}

#define BAD_CONTEXT(assignment, name, value, range)                                  \
    do {                                                                             \
        conv_fft_context_options options;                                            \
        assert_int_equal(conv_fft_context_options_init(&options), CONV_FFT_SUCCESS); \
        options.assignment;                                                          \
        expect_bad_context(&options, name, value, range);                            \
    } while (0)

static void test_context_options(void **state) {
    (void)state;
    EXPECT_INVALID(conv_fft_context_options_init(NULL), "options", "NULL");
    EXPECT_INVALID(conv_fft_context_create(NULL, NULL), "context", "NULL");
    BAD_CONTEXT(device = -3, "device", "-3", "-2");
    BAD_CONTEXT(log_level = (conv_fft_log_level)5, "log_level", "5", "0 to 4");
    BAD_CONTEXT(threads = -1, "threads", "-1", "0");
    BAD_CONTEXT(threads = INT32_MAX, "threads", "2147483647", "0 to ");
    BAD_CONTEXT(log_level = (conv_fft_log_level)-1, "log_level", "", "0 to 4");
    BAD_CONTEXT(struct_bytes = 0, "struct_bytes", "0", "conv_fft_context_options_init(&options)");
    BAD_CONTEXT(struct_bytes = 8, "struct_bytes", "8", "conv_fft_context_options_init(&options)");
    const conv_fft_context_options zero = {0};
    expect_bad_context(&zero, "struct_bytes", "0", "conv_fft_context_options_init");
    for (int i = 0; i < 3; i++)
        BAD_CONTEXT(reserved[i] = -1, "reserved", "-1", "0");
}

static void test_no_such_gpu(void **state) {
    (void)state;
    conv_fft_context_options options;
    conv_fft_context *made = NULL;
    conv_fft_context_options_init(&options);
    options.device = 4000;
    EXPECT(NO_DEVICE, conv_fft_context_create(&options, &made), "4000");
    assert_null(made);
}

static void test_context_properties(void **state) {
    (void)state;
    conv_fft_context *automatic = NULL;
    assert_int_equal(conv_fft_context_create(NULL, &automatic), CONV_FFT_SUCCESS);
    const int device = conv_fft_context_device(automatic);
    assert_true(device == 0 || device == CONV_FFT_DEVICE_CPU);
    assert_true(strlen(conv_fft_context_description(automatic)) > 0);
    conv_fft_context_destroy(automatic);
    assert_int_equal(conv_fft_context_device(context), CONV_FFT_DEVICE_CPU);
    assert_non_null(strstr(conv_fft_context_description(context), "CPU"));
    assert_int_equal(conv_fft_context_device(NULL), CONV_FFT_DEVICE_AUTO);
    assert_string_equal(conv_fft_context_description(NULL), "");
    conv_fft_context_destroy(NULL);
    conv_fft_plan_destroy(NULL);
}

static int ignore_record(const conv_fft_tune_record *record, void *user) {
    (void)record, (void)user;
    return 0;
}

static int ignore_candidate(const conv_fft_tune_candidate *candidate, void *user) {
    (void)candidate, (void)user;
    return 0;
}

static void test_tuning_arguments(void **state) {
    (void)state;
    conv_fft_problem p = good_problem();
    conv_fft_tune_statistics statistics;
    conv_fft_plan_options options;
    EXPECT_INVALID(conv_fft_tune_load(NULL, "file"), "context", "NULL");
    EXPECT_INVALID(conv_fft_tune_load(context, NULL), "path", "NULL");
    EXPECT_INVALID(conv_fft_tune_save(NULL, "file"), "context", "NULL");
    EXPECT_INVALID(conv_fft_tune_save(context, NULL), "path", "NULL");
    EXPECT_INVALID(conv_fft_tune_merge(NULL, "file", CONV_FFT_KEEP_MINE), "context", "NULL");
    EXPECT_INVALID(conv_fft_tune_merge(context, NULL, CONV_FFT_KEEP_MINE), "path", "NULL");
    EXPECT_INVALID(conv_fft_tune_merge(context, "file", (conv_fft_tune_policy)4), "policy", "4", "0 to 3");
    EXPECT_INVALID(conv_fft_tune_export(NULL, "file", &p, 1), "context", "NULL");
    EXPECT_INVALID(conv_fft_tune_export(context, NULL, &p, 1), "path", "NULL");
    EXPECT_INVALID(conv_fft_tune_export(context, "file", NULL, 1), "problems", "NULL");
    EXPECT_INVALID(conv_fft_tune_export(context, "file", &p, -1), "count", "-1");
    EXPECT_INVALID(conv_fft_tune_foreach(NULL, ignore_record, NULL), "context", "NULL");
    EXPECT_INVALID(conv_fft_tune_foreach(context, (conv_fft_tune_visit)0, NULL), "visit", "NULL");
    EXPECT_INVALID(conv_fft_tune_stats(NULL, &statistics), "context", "NULL");
    EXPECT_INVALID(conv_fft_tune_stats(context, NULL), "statistics", "NULL");
    EXPECT_INVALID(conv_fft_tune_problems(NULL, &p, 1, NULL, NULL, NULL), "context", "NULL");
    EXPECT_INVALID(conv_fft_tune_problems(context, NULL, 1, NULL, NULL, NULL), "problems", "NULL");
    EXPECT_INVALID(conv_fft_tune_candidates(NULL, &p, NULL, ignore_candidate, NULL), "context", "NULL");
    EXPECT_INVALID(conv_fft_tune_candidates(context, NULL, NULL, ignore_candidate, NULL), "problem", "NULL");
    EXPECT_INVALID(conv_fft_tune_candidates(context, &p, NULL, (conv_fft_candidate_visit)0, NULL), "visit", "NULL");
    conv_fft_plan_options_init(&options);
    options.passes = 8;
    EXPECT_INVALID(conv_fft_tune_problems(context, &p, 1, &options, NULL, NULL), "options.passes", "8", "1 to 7");
    EXPECT_INVALID(conv_fft_tune_candidates(context, &p, &options, ignore_candidate, NULL), "options.passes", "8");
    p.groups = 0;
    EXPECT_INVALID(conv_fft_tune_problems(context, &p, 1, NULL, NULL, NULL), "problems[0]", "groups", "0");
    EXPECT_INVALID(conv_fft_tune_export(context, "file", &p, 1), "problems[0]", "groups", "0");
}

static void test_problem_texts(void **state) {
    (void)state;
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", CONV_FFT_VERSION_MAJOR, CONV_FFT_VERSION_MINOR,
             CONV_FFT_VERSION_PATCH);
    assert_string_equal(conv_fft_version_string(), version);
    assert_int_equal(conv_fft_version(),
                     CONV_FFT_VERSION_MAJOR * 10000 + CONV_FFT_VERSION_MINOR * 100 + CONV_FFT_VERSION_PATCH);
    assert_int_equal(conv_fft_version_abi(), CONV_FFT_ABI);
#define CHECK_TEXT(name, value, text)         \
    assert_int_equal(CONV_FFT_##name, value); \
    assert_string_equal(conv_fft_status_string(CONV_FFT_##name), text);
    CONV_FFT_STATUS_LIST(CHECK_TEXT)
    assert_string_equal(conv_fft_status_string((conv_fft_status)99), "unknown status");
    assert_string_equal(conv_fft_status_string((conv_fft_status)-1), "unknown status");
}

static int create_context(void **state) {
    (void)state;
    context = test_context(0);
    return 0;
}

static int destroy_context(void **state) {
    (void)state;
    conv_fft_context_destroy(context);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_problem_fields),
        cmocka_unit_test(test_kernel_and_padding),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_strides),
        cmocka_unit_test(test_problem_pointers),
        cmocka_unit_test(test_context_options),
        cmocka_unit_test(test_no_such_gpu),
        cmocka_unit_test(test_context_properties),
        cmocka_unit_test(test_tuning_arguments),
        cmocka_unit_test(test_problem_texts),
    };
    return cmocka_run_group_tests(tests, create_context, destroy_context);
}
