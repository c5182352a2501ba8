/* SPDX-License-Identifier: Apache-2.0 */
/* The named problems of shapes/, one test each: all passes, with and without bias, accumulated, kept, and in the least
 * workspace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "layer.h"

#include <stdio.h>
#include <stdlib.h>

static conv_fft_context *context;

static void check_with(layer *l, const conv_fft_plan_options *options) {
    conv_fft_plan *plan = test_plan(context, &l->problem, options);
    assert_non_null(plan);
    bool ok = layer_check_all(l, plan);
    if (options->keep)
        ok = layer_check_kept(l, plan) && ok;
    conv_fft_plan_destroy(plan);
    assert_true(ok);
}

static void test_shape(void **state) {
    const named_problem *named = *state;
    char text[1024], replay[160];
    describe_problem(&named->problem, text, sizeof text);
    snprintf(replay, sizeof replay, "test_conv_shapes %s", named->name);
    case_begin(text, replay);

    generator g = generator_create(1);
    layer l = layer_create(&named->problem, &g);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    check_with(&l, &options);

    options.workspace_limit = smallest_workspace_limit(context, &named->problem, &options);
    assert_true(options.workspace_limit > 0);
    check_with(&l, &options);

    conv_fft_plan_options_init(&options);
    options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
    check_with(&l, &options);
    layer_destroy(&l);
}

/* An argument is the pattern of the shapes to run (`*` and `?`); none: all. */
int main(int argc, char **argv) {
    int64_t count;
    named_problem *problems = read_problems("shapes", &count);
    struct CMUnitTest *tests = test_alloc((size_t)count * sizeof *tests);
    for (int64_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){problems[i].name, test_shape, NULL, NULL, &problems[i]};
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    context = test_context(0);
    const int failed = _cmocka_run_group_tests("shapes", tests, (size_t)count, NULL, NULL);
    print_worst_ratios("shapes");
    conv_fft_context_destroy(context);
    free(tests);
    free(problems);
    return failed;
}
