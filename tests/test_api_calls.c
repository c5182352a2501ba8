/* SPDX-License-Identifier: Apache-2.0 */
/* Bad plan options and bad arguments of the layer's calls, one at a time. A refused call writes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "layer.h"
#include "sentence.h"
#include "strategies.h"

#include <inttypes.h>
#include <stdio.h>

static conv_fft_context *context;
static layer the_layer;
static conv_fft_plan *plan;       /* all passes, spectra kept */
static conv_fft_plan *plan_of[8]; /* by its passes */

/* ---- plan options */

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
    for (int i = 0; i < 4; i++)
        BAD_OPTIONS(reserved[i] = 5, "reserved", "5", "0");
    conv_fft_plan *made = NULL;
    EXPECT_INVALID(conv_fft_plan_create(NULL, &the_layer.problem, NULL, &made), "context", "NULL");
    EXPECT_INVALID(conv_fft_plan_create(context, NULL, NULL, &made), "problem", "NULL");
    EXPECT_INVALID(conv_fft_plan_create(context, &the_layer.problem, NULL, NULL), "plan", "NULL");
}

/* A forced strategy that the layer cannot have, for each pass. */
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

/* The sentence gives the least limit; that one works, one byte less does not and says the same. */
static void test_workspace_limit(void **state) {
    (void)state;
    conv_fft_plan_options options;
    char least_text[32], below_text[32];
    conv_fft_plan_options_init(&options);
    const uint64_t least = smallest_workspace_limit(context, &the_layer.problem, &options);
    assert_true(least > 1);
    snprintf(least_text, sizeof least_text, "%" PRIu64, least);
    snprintf(below_text, sizeof below_text, "%" PRIu64, least - 1);
    BAD_OPTIONS(workspace_limit = least - 1, "workspace_limit", below_text, least_text);
    BAD_OPTIONS(workspace_limit = 1, "workspace_limit", "1", least_text);
    options.workspace_limit = least;
    conv_fft_plan *made = test_plan(context, &the_layer.problem, &options);
    assert_non_null(made);
    assert_true(layer_check_all(&the_layer, made));
    conv_fft_plan_destroy(made);
}

/* ---- queries */

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
    EXPECT_INVALID(conv_fft_plan_spectrum(plan_of[CONV_FFT_BACKWARD_DATA], CONV_FFT_OPERAND_X, &bytes), "operand");
    EXPECT_INVALID(conv_fft_plan_spectrum(plan_of[CONV_FFT_BACKWARD_WEIGHTS], CONV_FFT_OPERAND_W, &bytes), "operand");
    assert_int_equal(bytes, 12345);
    assert_int_equal(d.stage_count, 77);
}

/* Passes with different bases have no spectrum in common. */
static void test_different_spectra(void **state) {
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
    EXPECT(NOT_SUPPORTED, conv_fft_plan_spectrum(made, CONV_FFT_OPERAND_W, &bytes), "w", "keep");
    assert_int_equal(bytes, 12345);
    conv_fft_plan_destroy(made);
}

/* ---- the layer's calls */

/* Every argument of every call; good values first. */
typedef struct arguments {
    const conv_fft_plan *plan;
    const void *x, *w, *bias, *gy;
    void *y, *gx, *gw, *gbias, *x_spectrum, *w_spectrum, *workspace;
    unsigned flags;
    size_t bytes;
} arguments;

static guarded workspace, spectra[2];

static arguments good(void) {
    return (arguments){.plan = plan,
                       .x = the_layer.x.tensor.memory.data,
                       .w = the_layer.w.tensor.memory.data,
                       .bias = the_layer.bias.tensor.memory.data,
                       .gy = the_layer.gy.tensor.memory.data,
                       .y = the_layer.y.tensor.memory.data,
                       .gx = the_layer.gx.tensor.memory.data,
                       .gw = the_layer.gw.tensor.memory.data,
                       .gbias = the_layer.gbias.tensor.memory.data,
                       .x_spectrum = spectra[0].data,
                       .w_spectrum = spectra[1].data,
                       .workspace = workspace.data,
                       .bytes = workspace.bytes};
}

typedef conv_fft_status (*layer_call)(const arguments *a);

static conv_fft_status forward(const arguments *a) {
    return conv_fft_forward(a->plan, a->x, a->w, a->bias, a->y, a->workspace, a->bytes, NULL);
}

static conv_fft_status forward_kept(const arguments *a) {
    return conv_fft_forward_kept(a->plan, a->x, a->w, a->bias, a->y, a->x_spectrum, a->w_spectrum, a->workspace,
                                 a->bytes, NULL);
}

static conv_fft_status backward(const arguments *a) {
    return conv_fft_backward(a->plan, a->x, a->w, a->gy, a->gx, a->gw, a->gbias, a->flags, a->workspace, a->bytes,
                             NULL);
}

static conv_fft_status backward_kept(const arguments *a) {
    return conv_fft_backward_kept(a->plan, a->x, a->w, a->gy, a->gx, a->gw, a->gbias, a->flags, a->x_spectrum,
                                  a->w_spectrum, a->workspace, a->bytes, NULL);
}

static conv_fft_status backward_data(const arguments *a) {
    return conv_fft_backward_data(a->plan, a->w, a->gy, a->gx, a->flags, a->workspace, a->bytes, NULL);
}

static conv_fft_status backward_weights(const arguments *a) {
    return conv_fft_backward_weights(a->plan, a->x, a->gy, a->gw, a->gbias, a->flags, a->workspace, a->bytes, NULL);
}

static conv_fft_status transform_weights(const arguments *a) {
    return conv_fft_transform_weights(a->plan, a->w, a->w_spectrum, a->workspace, a->bytes, NULL);
}

static void remember_all(void) {
    result *results[] = {&the_layer.y, &the_layer.gx, &the_layer.gw, &the_layer.gbias};
    for (int r = 0; r < 4; r++)
        tensor_poison(&results[r]->tensor);
    guarded_remember(&workspace);
    guarded_remember(&spectra[0]);
    guarded_remember(&spectra[1]);
}

static void assert_nothing_written(void) {
    assert_true(tensor_untouched(&the_layer.y.tensor) && tensor_untouched(&the_layer.gx.tensor) &&
                tensor_untouched(&the_layer.gw.tensor) && tensor_untouched(&the_layer.gbias.tensor));
    assert_true(guarded_untouched(&workspace) && guarded_untouched(&spectra[0]) && guarded_untouched(&spectra[1]));
}

#define BAD_CALL(call, assignment, ...)        \
    do {                                       \
        arguments a = good();                  \
        remember_all();                        \
        a.assignment;                          \
        EXPECT_INVALID(call(&a), __VA_ARGS__); \
        assert_nothing_written();              \
    } while (0)

/* The next address, which no element but one of one byte may have. */
#define ODD(pointer) ((void *)((uintptr_t)(pointer) + 1))

static void test_good_calls(void **state) {
    (void)state;
    static const layer_call calls[] = {forward,       forward_kept,     backward,         backward_kept,
                                       backward_data, backward_weights, transform_weights};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const arguments a = good();
        assert_int_equal(calls[i](&a), CONV_FFT_SUCCESS);
    }
}

static void test_null_arguments(void **state) {
    (void)state;
    BAD_CALL(forward, plan = NULL, "plan", "NULL");
    BAD_CALL(forward, x = NULL, "x is NULL");
    BAD_CALL(forward, w = NULL, "w is NULL");
    BAD_CALL(forward, y = NULL, "y is NULL");
    BAD_CALL(forward, workspace = NULL, "workspace is NULL");
    BAD_CALL(forward_kept, plan = NULL, "plan", "NULL");
    BAD_CALL(forward_kept, x = a.x_spectrum = NULL, "x is NULL");
    BAD_CALL(forward_kept, w = a.w_spectrum = NULL, "w is NULL");
    BAD_CALL(forward_kept, y = NULL, "y is NULL");
    BAD_CALL(backward, plan = NULL, "plan", "NULL");
    BAD_CALL(backward, x = NULL, "x is NULL");
    BAD_CALL(backward, w = NULL, "w is NULL");
    BAD_CALL(backward, gy = NULL, "gy is NULL");
    BAD_CALL(backward, workspace = NULL, "workspace is NULL");
    BAD_CALL(backward_kept, plan = NULL, "plan", "NULL");
    BAD_CALL(backward_kept, x = a.x_spectrum = NULL, "x is NULL");
    BAD_CALL(backward_kept, w = a.w_spectrum = NULL, "w is NULL");
    BAD_CALL(backward_kept, gy = NULL, "gy is NULL");
    BAD_CALL(backward_data, plan = NULL, "plan", "NULL");
    BAD_CALL(backward_data, w = NULL, "w is NULL");
    BAD_CALL(backward_data, gy = NULL, "gy is NULL");
    BAD_CALL(backward_data, gx = NULL, "gx is NULL");
    BAD_CALL(backward_weights, plan = NULL, "plan", "NULL");
    BAD_CALL(backward_weights, x = NULL, "x is NULL");
    BAD_CALL(backward_weights, gy = NULL, "gy is NULL");
    BAD_CALL(backward_weights, gw = NULL, "gw is NULL");
    BAD_CALL(transform_weights, plan = NULL, "plan", "NULL");
    BAD_CALL(transform_weights, w = NULL, "w is NULL");
    BAD_CALL(transform_weights, w_spectrum = NULL, "w_spectrum", "NULL");
    BAD_CALL(transform_weights, workspace = NULL, "workspace is NULL");
}

static void test_misaligned(void **state) {
    (void)state;
    BAD_CALL(forward, x = ODD(a.x), "x is", "multiple of 4");
    BAD_CALL(forward, w = ODD(a.w), "w is", "multiple of 4");
    BAD_CALL(forward, bias = ODD(a.bias), "bias is", "multiple of 4");
    BAD_CALL(forward, y = ODD(a.y), "y is", "multiple of 4");
    BAD_CALL(backward, x = ODD(a.x), "x is", "multiple of 4");
    BAD_CALL(backward, w = ODD(a.w), "w is", "multiple of 4");
    BAD_CALL(backward, gy = ODD(a.gy), "gy is", "multiple of 4");
    BAD_CALL(backward, gx = ODD(a.gx), "gx is", "multiple of 4");
    BAD_CALL(backward, gw = ODD(a.gw), "gw is", "multiple of 4");
    BAD_CALL(backward, gbias = ODD(a.gbias), "gbias is", "multiple of 4");
    BAD_CALL(transform_weights, w = ODD(a.w), "w is", "multiple of 4");
    BAD_CALL(forward_kept, x_spectrum = ODD(a.x_spectrum), "x_spectrum is", "multiple of 4");
    BAD_CALL(forward_kept, w_spectrum = ODD(a.w_spectrum), "w_spectrum is", "multiple of 4");
    BAD_CALL(backward_kept, x_spectrum = ODD(a.x_spectrum), "x_spectrum is", "multiple of 4");
    BAD_CALL(backward_kept, w_spectrum = ODD(a.w_spectrum), "w_spectrum is", "multiple of 4");
    BAD_CALL(transform_weights, w_spectrum = ODD(a.w_spectrum), "w_spectrum is", "multiple of 4");
}

/* One byte less than a pass needs: the sentence gives both sizes. */
static void test_small_workspace(void **state) {
    (void)state;
    static const struct {
        layer_call call;
        conv_fft_pass pass;
    } cases[] = {{forward, CONV_FFT_FORWARD},
                 {forward_kept, CONV_FFT_FORWARD},
                 {backward, CONV_FFT_BACKWARD},
                 {backward_kept, CONV_FFT_BACKWARD},
                 {backward_data, CONV_FFT_BACKWARD_DATA},
                 {backward_weights, CONV_FFT_BACKWARD_WEIGHTS}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bytes;
        char needed[32], given[32];
        assert_int_equal(conv_fft_plan_workspace(plan, cases[i].pass, &bytes), CONV_FFT_SUCCESS);
        assert_true(bytes > 1);
        snprintf(needed, sizeof needed, "%zu", bytes);
        snprintf(given, sizeof given, "%zu", bytes - 1);
        BAD_CALL(cases[i].call, bytes = bytes - 1, "workspace_bytes", given, needed);
        BAD_CALL(cases[i].call, bytes = 0, "workspace_bytes is 0", needed);
    }
    BAD_CALL(transform_weights, bytes = 0, "workspace_bytes is 0");
}

static void test_wrong_plan(void **state) {
    (void)state;
    const conv_fft_plan *of_forward = plan_of[CONV_FFT_FORWARD], *of_data = plan_of[CONV_FFT_BACKWARD_DATA],
                        *of_weights = plan_of[CONV_FFT_BACKWARD_WEIGHTS];
    BAD_CALL(forward, plan = of_data, "plan was made for", "2");
    BAD_CALL(forward, plan = plan_of[CONV_FFT_BACKWARD], "plan was made for", "6");
    BAD_CALL(backward_data, plan = of_forward, "plan was made for", "1");
    BAD_CALL(backward_data, plan = of_weights, "plan was made for", "4");
    BAD_CALL(backward_weights, plan = of_forward, "plan was made for", "1");
    BAD_CALL(backward_weights, plan = of_data, "plan was made for", "2");
    BAD_CALL(backward, plan = of_data, "plan was made for", "2");
    BAD_CALL(backward, plan = of_weights, "plan was made for", "4");
    BAD_CALL(backward, plan = of_forward; a.gx = a.gw = NULL, "plan was made for", "1"); /* gbias alone */
    BAD_CALL(transform_weights, plan = of_weights, "operand", "w");
    size_t bytes = 12345;
    EXPECT_INVALID(conv_fft_plan_workspace(of_forward, CONV_FFT_BACKWARD_DATA, &bytes), "plan was made for", "1");
    EXPECT_INVALID(conv_fft_plan_workspace(of_data, CONV_FFT_BACKWARD, &bytes), "plan was made for", "2");
    assert_int_equal(bytes, 12345);
}

static void test_flags(void **state) {
    (void)state;
    BAD_CALL(backward, flags = 8, "flags", "8", "1");
    BAD_CALL(backward_kept, flags = 9, "flags", "9", "1");
    BAD_CALL(backward_data, flags = 1u << 31, "flags", "2147483648", "1");
    BAD_CALL(backward_weights, flags = 16, "flags", "16", "1");
}

static int create_all(void **state) {
    (void)state;
    conv_fft_problem p;
    conv_fft_plan_options options;
    generator g = generator_create(1);
    context = test_context(0);
    if (conv_fft_problem_parse("in=3x4x9x10 out=6 kernel=3x4 pad=1 groups=2", &p, NULL, 0) != CONV_FFT_SUCCESS)
        return -1;
    case_begin("in=3x4x9x10 out=6 kernel=3x4 pad=1 groups=2", "test_api_calls");
    the_layer = layer_create(&p, &g);
    conv_fft_plan_options_init(&options);
    for (int passes = 1; passes <= CONV_FFT_ALL_PASSES; passes++) {
        options.passes = passes;
        plan_of[passes] = test_plan(context, &p, &options);
    }
    options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
    plan = test_plan(context, &p, &options);
    size_t forward_bytes = 0, backward_bytes = 0, x_bytes = 0, w_bytes = 0;
    conv_fft_plan_workspace(plan, CONV_FFT_FORWARD, &forward_bytes);
    conv_fft_plan_workspace(plan, CONV_FFT_BACKWARD, &backward_bytes);
    conv_fft_plan_spectrum(plan, CONV_FFT_OPERAND_X, &x_bytes);
    conv_fft_plan_spectrum(plan, CONV_FFT_OPERAND_W, &w_bytes);
    workspace = guarded_create(forward_bytes > backward_bytes ? forward_bytes : backward_bytes, 1);
    spectra[0] = guarded_create(x_bytes, 4);
    spectra[1] = guarded_create(w_bytes, 4);
    return case_failures();
}

static int destroy_all(void **state) {
    (void)state;
    guarded_destroy(&workspace);
    guarded_destroy(&spectra[0]);
    guarded_destroy(&spectra[1]);
    for (int passes = 1; passes <= CONV_FFT_ALL_PASSES; passes++)
        conv_fft_plan_destroy(plan_of[passes]);
    conv_fft_plan_destroy(plan);
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
        cmocka_unit_test(test_different_spectra),
        cmocka_unit_test(test_good_calls),
        cmocka_unit_test(test_null_arguments),
        cmocka_unit_test(test_misaligned),
        cmocka_unit_test(test_small_workspace),
        cmocka_unit_test(test_wrong_plan),
        cmocka_unit_test(test_flags),
    };
    return cmocka_run_group_tests(tests, create_all, destroy_all);
}
