/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded random problems over the whole space, each compared with the reference in all passes and by the adjoint
 * identity. Problem i of a run has the seed CONV_FFT_TEST_SEED + i, so that one problem is replayed with that seed and
 * a count of 1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "layer.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    DEFAULT_SEED = 1,
    DEFAULT_COUNT = 2500,
    MOST_FAILURES = 10
};
static const double most_products = 1e6;

/* What the run has covered. */
static struct { int64_t problems, limited, kept, partial; } covered;

/* A subset of the gradients, with a random choice of what adds to its old contents. */
static bool check_subset(layer *l, const conv_fft_plan *plan, generator *g) {
    const int64_t wanted = random_int(g, 1, 7);
    const backward_call call = {.gx = wanted & 1,
                                .gw = wanted & 2,
                                .gbias = wanted & 4,
                                .separate = wanted != 4 && wanted != 5 && random_once_in(g, 2),
                                .flags = (unsigned)random_int(g, 0, 7)};
    covered.partial += wanted != 7;
    return layer_check_backward(l, plan, &call);
}

/* A limit between the least that is possible and what the plan would take without one. */
static void limit_workspace(conv_fft_context *context, const conv_fft_problem *p, conv_fft_plan_options *options,
                            generator *g) {
    conv_fft_plan *plan = test_plan(context, p, options);
    size_t most = 0;
    for (int pass = 1; pass <= 6; pass = pass == 4 ? 6 : 2 * pass) {
        size_t bytes = 0;
        if (plan)
            check_status(conv_fft_plan_workspace(plan, (conv_fft_pass)pass, &bytes), "conv_fft_plan_workspace");
        most = bytes > most ? bytes : most;
    }
    conv_fft_plan_destroy(plan);
    const uint64_t least = smallest_workspace_limit(context, p, options);
    if (least == 0 || least > most) {
        case_fail("the smallest workspace limit is %" PRIu64 ", but a plan without a limit needs %zu bytes", least,
                  most);
        return;
    }
    options->workspace_limit = random_once_in(g, 2) ? least : (uint64_t)random_int(g, (int64_t)least, (int64_t)most);
    covered.limited++;
}

static void check_plan(conv_fft_context *context, layer *l, const conv_fft_plan_options *options, generator *g) {
    conv_fft_plan *plan = test_plan(context, &l->problem, options);
    if (!plan)
        return;
    if (layer_check_all(l, plan) && check_subset(l, plan, g) && options->keep) {
        layer_check_kept(l, plan);
        covered.kept++;
    }
    conv_fft_plan_destroy(plan);
}

static void check_problem(conv_fft_context *context, uint64_t seed) {
    char text[1024], replay[128];
    generator g = generator_create(seed);
    const conv_fft_problem p = random_problem(&g, most_products);
    describe_problem(&p, text, sizeof text);
    snprintf(replay, sizeof replay, "CONV_FFT_TEST_SEED=%" PRIu64 " CONV_FFT_TEST_COUNT=1 test_conv_random", seed);
    case_begin(text, replay);

    layer l = layer_create(&p, &g);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    if (random_once_in(&g, 4))
        options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
    if (random_once_in(&g, 4))
        limit_workspace(context, &p, &options, &g);
    check_plan(context, &l, &options, &g);
    layer_destroy(&l);
    covered.problems++;
}

static void test_random_problems(void **state) {
    (void)state;
    const uint64_t seed = environment_number("CONV_FFT_TEST_SEED", DEFAULT_SEED);
    const uint64_t count = environment_number("CONV_FFT_TEST_COUNT", DEFAULT_COUNT);
    conv_fft_context *context = test_context(0);
    for (uint64_t i = 0; i < count && case_failures() < MOST_FAILURES; i++)
        check_problem(context, seed + i);
    conv_fft_context_destroy(context);
    printf("random: %" PRId64 " problems from seed %" PRIu64 " (%" PRId64 " with a workspace limit, %" PRId64
           " with kept spectra, %" PRId64 " partial backward calls)\n",
           covered.problems, seed, covered.limited, covered.kept, covered.partial);
    print_worst_ratios("random");
    assert_int_equal(case_failures(), 0);
    assert_int_equal(covered.problems, count);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_problems)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
