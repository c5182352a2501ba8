/* SPDX-License-Identifier: Apache-2.0 */
/* Bad plan options and bad queries of a plan, one at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/error_text.h"
#include "support/layer.h"
#include "support/strategy_lines.h"

#include <inttypes.h>
#include <stdio.h>

static conv_fft_context *context;
static layer the_layer;
static conv_fft_plan *plan, *data_plan, *weights_plan; /* of all passes, and of one */

static void expect_bad_options(const conv_fft_plan_options *options, const char *name, const char *value,
                               const char *range) {
    int marker;
    conv_fft_plan *made = (conv_fft_plan *)&marker;
    EXPECT_INVALID(conv_fft_plan_create(context, &the_layer.problem, options, &made), name, value, range);
    assert_ptr_equal(made, &marker);
}

#define BAD_OPTIONS(assignment, name, value, range)                           \
    do {                                                                      \
        conv_fft_plan_options bad;                                            \
        assert_int_equal(conv_fft_plan_options_init(&bad), CONV_FFT_SUCCESS); \
        bad.assignment;                                                       \
        expect_bad_options(&bad, name, value, range);                         \
    } while (0)

static void test_plan_options(void **state) {
    (void)state;
    EXPECT_INVALID(conv_fft_plan_options_init(NULL), "options", "NULL");
    BAD_OPTIONS(passes = 0, "passes", "0", "1 to 7");
    BAD_OPTIONS(passes = 8, "passes", "8", "1 to 7");
    BAD_OPTIONS(passes = -1, "passes", "-1", "1 to 7");
    BAD_OPTIONS(tuning = (conv_fft_tuning)4, "tuning", "4", "0 to 3");
    BAD_OPTIONS(tuning = (conv_fft_tuning)-1, "tuning", "", "0 to 3");
    BAD_OPTIONS(keep = 4, "keep", "4", "0 to 3");
    BAD_OPTIONS(keep = -1, "keep", "-1", "0 to 3");
    BAD_OPTIONS(tune_milliseconds = -1, "tune_milliseconds", "-1", "at least 0");
    BAD_OPTIONS(tune_again = 2, "tune_again", "2", "0 or 1");
    BAD_OPTIONS(trusted = -1, "trusted", "-1", "0 or 1");
    BAD_OPTIONS(own_kernels = 2, "own_kernels", "2", "0 or 1");
    BAD_OPTIONS(any_alignment = 2, "any_alignment", "2", "0 or 1");
    for (int i = 0; i < 1; i++)
        BAD_OPTIONS(reserved[i] = 5, "reserved", "5", "0");
    conv_fft_plan *made = NULL;
    EXPECT_INVALID(conv_fft_plan_create(NULL, &the_layer.problem, NULL, &made), "context", "NULL");
    EXPECT_INVALID(conv_fft_plan_create(context, NULL, NULL, &made), "problem", "NULL");
    EXPECT_INVALID(conv_fft_plan_create(context, &the_layer.problem, NULL, NULL), "plan", "NULL");
}

/* A given strategy that does not fit the layer, for each pass. */
static void test_forced_strategies(void **state) {
    (void)state;
    const strategies good = chosen_strategies(context, &the_layer.problem);
    for (int pass = 0; pass < 3; pass++) {
        char line[256];
        BAD_OPTIONS(strategy[pass] = "", "strategy", "", "");
        BAD_OPTIONS(strategy[pass] = "unknown basis=1x1", "strategy", "unknown", "");
        BAD_OPTIONS(strategy[pass] = "staged", "strategy", "basis", "");
        edit_strategy(good.line[pass], "basis", "11x16", line, sizeof line);
        BAD_OPTIONS(strategy[pass] = line, "strategy", "basis", "2, 3, 5 and 7");
        edit_strategy(good.line[pass], "basis", "2x2", line, sizeof line);
        BAD_OPTIONS(strategy[pass] = line, "strategy", "basis", "small");
        edit_strategy(good.line[pass], "basis", "16", line, sizeof line);
        BAD_OPTIONS(strategy[pass] = line, "basis", "16", "2");
        edit_strategy(good.line[pass], "spectrum", "fp64", line, sizeof line);
        BAD_OPTIONS(strategy[pass] = line, "strategy", "spectrum", "");
    }
}

/* The message gives the smallest limit. That limit works; with one byte less the message is the same. */
static void test_workspace_limit(void **state) {
    (void)state;
    conv_fft_plan_options options;
    char min_text[32], below_text[32];
    conv_fft_plan_options_init(&options);
    const uint64_t least = smallest_workspace_limit(context, &the_layer.problem, &options);
    assert_true(least > 1);
    snprintf(min_text, sizeof min_text, "%" PRIu64, least);
    snprintf(below_text, sizeof below_text, "%" PRIu64, least - 1);
    BAD_OPTIONS(workspace_limit = least - 1, "workspace_limit", below_text, min_text);
    BAD_OPTIONS(workspace_limit = 1, "workspace_limit", "1", min_text);
    options.workspace_limit = least;
    conv_fft_plan *made = test_plan(context, &the_layer.problem, &options);
    assert_non_null(made);
    assert_true(layer_check_all(&the_layer, made));
    conv_fft_plan_destroy(made);
}

/* A workspace limit below the needs of the fastest plan costs only some speed: tiles do not become one output each. */
static void test_limit_costs_little_speed(void **state) {
    (void)state;
    conv_fft_problem p;
    conv_fft_plan_options options;
    double ms[2] = {0, 0};
    assert_int_equal(conv_fft_problem_parse("in=2x4x600x600 out=4 kernel=9x9 pad=same", &p, NULL, 0), CONV_FFT_SUCCESS);
    conv_fft_plan_options_init(&options);
    options.passes = CONV_FFT_FORWARD;
    for (int i = 0; i < 2; i++) {
        conv_fft_description d;
        options.workspace_limit = i ? 3 << 20 : 0;
        conv_fft_plan *made = test_plan(context, &p, &options);
        assert_non_null(made);
        assert_int_equal(conv_fft_plan_describe(made, CONV_FFT_FORWARD, &d), CONV_FFT_SUCCESS);
        assert_true(i == 0 || d.workspace_bytes <= options.workspace_limit);
        ms[i] = d.predicted_ms;
        conv_fft_plan_destroy(made);
    }
    assert_true(ms[0] > 0 && ms[1] < 3 * ms[0]);
}

static void test_queries(void **state) {
    (void)state;
    size_t bytes = 12345;
    conv_fft_description d = {.stage_count = 77};
    EXPECT_INVALID(conv_fft_plan_workspace(NULL, CONV_FFT_FORWARD, &bytes), "plan", "NULL");
    EXPECT_INVALID(conv_fft_plan_workspace(plan, CONV_FFT_FORWARD, NULL), "bytes", "NULL");
    EXPECT_INVALID(conv_fft_plan_describe(NULL, CONV_FFT_FORWARD, &d), "plan", "NULL");
    EXPECT_INVALID(conv_fft_plan_describe(plan, CONV_FFT_FORWARD, NULL), "description", "NULL");
    EXPECT_INVALID(conv_fft_profile(NULL, CONV_FFT_FORWARD, 1, &d), "plan", "NULL");
    EXPECT_INVALID(conv_fft_profile(plan, CONV_FFT_FORWARD, 1, NULL), "description", "NULL");
    EXPECT_INVALID(conv_fft_profile(plan, CONV_FFT_FORWARD, 0, &d), "repeats", "0", "1 to 1000");
    EXPECT_INVALID(conv_fft_profile(plan, CONV_FFT_FORWARD, 1001, &d), "repeats", "1001", "1 to 1000");
    static const struct {
        int pass;
        const char *text;
    } wrong[] = {{0, "0"}, {3, "3"}, {5, "5"}, {7, "7"}, {8, "8"}, {-1, "-1"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        EXPECT_INVALID(conv_fft_plan_workspace(plan, (conv_fft_pass)wrong[i].pass, &bytes), "pass", wrong[i].text);
        EXPECT_INVALID(conv_fft_plan_describe(plan, (conv_fft_pass)wrong[i].pass, &d), "pass", wrong[i].text);
        EXPECT_INVALID(conv_fft_profile(plan, (conv_fft_pass)wrong[i].pass, 1, &d), "pass", wrong[i].text);
    }
    EXPECT_INVALID(conv_fft_plan_spectrum(NULL, CONV_FFT_OPERAND_X, &bytes), "plan", "NULL");
    EXPECT_INVALID(conv_fft_plan_spectrum(plan, CONV_FFT_OPERAND_X, NULL), "bytes", "NULL");
    EXPECT_INVALID(conv_fft_plan_spectrum(plan, (conv_fft_operand)3, &bytes), "operand", "3");
    EXPECT_INVALID(conv_fft_plan_spectrum(plan, (conv_fft_operand)0, &bytes), "operand", "0");
    EXPECT_INVALID(conv_fft_plan_spectrum(data_plan, CONV_FFT_OPERAND_X, &bytes), "operand");
    EXPECT_INVALID(conv_fft_plan_spectrum(weights_plan, CONV_FFT_OPERAND_W, &bytes), "operand");
    assert_int_equal(bytes, 12345);
    assert_int_equal(d.stage_count, 77);
}

/* The budget of a product of 40 bins: matrices of 2 x 3, 5 x 3 and 2 x 5 complex numbers. */
static void test_counted_product(void **state) {
    (void)state;
    conv_fft_problem p;
    conv_fft_plan_options options;
    conv_fft_description d;
    assert_int_equal(conv_fft_problem_parse("in=2x3x8x8 out=5 kernel=3x3", &p, NULL, 0), CONV_FFT_SUCCESS);
    conv_fft_plan_options_init(&options);
    options.passes = CONV_FFT_FORWARD;
    options.strategy[0] = "staged basis=8x8 tiles=1x1 dilation=step overlap=save product=loop spectrum=fp32 chunk=0 "
                          "groups=0 keep=none";
    conv_fft_plan *made = test_plan(context, &p, &options);
    assert_non_null(made);
    assert_int_equal(conv_fft_plan_describe(made, CONV_FFT_FORWARD, &d), CONV_FFT_SUCCESS);
    int products = 0;
    for (int i = 0; i < d.stage_count; i++) {
        if (!strstr(d.stages[i].name, "product"))
            continue;
        products++;
        assert_int_equal(d.stages[i].operations, 8 * 40 * 2 * 3 * 5);
        assert_int_equal(d.stages[i].bytes, 40 * (2 * 3 + 5 * 3 + 2 * 5) * 8);
    }
    assert_int_equal(products, 1);
    conv_fft_plan_destroy(made);
}

/* Passes with different bases cannot share a spectrum. */
static void test_different_bases_share_no_spectrum(void **state) {
    (void)state;
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    const strategies good = chosen_strategies(context, &the_layer.problem);
    char lines[2][256];
    edit_strategy(good.line[0], "basis", "25x25", lines[0], sizeof lines[0]);
    edit_strategy(good.line[1], "basis", "27x27", lines[1], sizeof lines[1]);
    options.strategy[0] = lines[0];
    options.strategy[1] = lines[1];
    conv_fft_plan *made = test_plan(context, &the_layer.problem, &options);
    assert_non_null(made);
    size_t bytes = 12345;
    EXPECT(NOT_SUPPORTED, conv_fft_plan_spectrum(made, CONV_FFT_OPERAND_W, &bytes), "of w", "agree in basis");
    assert_int_equal(bytes, 12345);
    conv_fft_plan_destroy(made);
}

static int create_all(void **state) {
    (void)state;
    const char *line = "in=3x4x9x10 out=6 kernel=3x4 pad=1 groups=2";
    conv_fft_problem p;
    conv_fft_plan_options options;
    generator g = test_generator(1);
    context = test_context(0);
    if (conv_fft_problem_parse(line, &p, NULL, 0) != CONV_FFT_SUCCESS)
        return -1;
    case_begin(line, NULL);
    the_layer = layer_create(&p, &g);
    plan = test_plan(context, &p, NULL);
    conv_fft_plan_options_init(&options);
    options.passes = CONV_FFT_BACKWARD_DATA;
    data_plan = test_plan(context, &p, &options);
    options.passes = CONV_FFT_BACKWARD_WEIGHTS;
    weights_plan = test_plan(context, &p, &options);
    return case_failures();
}

static int destroy_all(void **state) {
    (void)state;
    conv_fft_plan_destroy(plan);
    conv_fft_plan_destroy(data_plan);
    conv_fft_plan_destroy(weights_plan);
    layer_destroy(&the_layer);
    conv_fft_context_destroy(context);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_options),
        cmocka_unit_test(test_forced_strategies),
        cmocka_unit_test(test_workspace_limit),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_different_bases_share_no_spectrum),
        cmocka_unit_test(test_limit_costs_little_speed),
        cmocka_unit_test(test_counted_product),
    };
    return cmocka_run_group_tests(tests, create_all, destroy_all);
}
