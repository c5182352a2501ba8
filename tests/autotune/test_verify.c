/* SPDX-License-Identifier: Apache-2.0 */
/* The proof of a winner's results if passes are tuned together: every pass is also computed in another way. On the
 * CPU. */
#include "autotune/search/search.h"
#include "conv/plan/run.h"
#include "support/layer.h"
#include "support/temp_dirs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    WRONG_BASIS = 16 /* gradients of the weights that are computed with it are wrong, always in the same way */
};

conv_fft_status __real_cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call);
conv_fft_status __wrap_cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call);
conv_fft_status __wrap_cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call) {
    const conv_fft_status status = __real_cf_staged_run(plan, set, call);
    if (call->gw && plan->pass[CF_PASS_WEIGHTS].strategy.basis[2] == WRONG_BASIS)
        memset(call->gw, 0x3f, 64);
    return status;
}

static int plans; /* that were made, or could not be made */

conv_fft_status __real_cf_plan_create(const cf_layer *own, cf_device *device, int passes,
                                      const cf_strategy strategy[CF_PASS_COUNT], bool any_alignment, uint64_t limit,
                                      uint64_t *smallest, conv_fft_plan **plan);
conv_fft_status __wrap_cf_plan_create(const cf_layer *own, cf_device *device, int passes,
                                      const cf_strategy strategy[CF_PASS_COUNT], bool any_alignment, uint64_t limit,
                                      uint64_t *smallest, conv_fft_plan **plan);
conv_fft_status __wrap_cf_plan_create(const cf_layer *own, cf_device *device, int passes,
                                      const cf_strategy strategy[CF_PASS_COUNT], bool any_alignment, uint64_t limit,
                                      uint64_t *smallest, conv_fft_plan **plan) {
    ++plans;
    return __real_cf_plan_create(own, device, passes, strategy, any_alignment, limit, smallest, plan);
}

static void add(cf_candidates *list, int data, int weights) {
    const int basis[CF_PASS_COUNT] = {0, data, weights};
    cf_candidate c;
    memset(&c, 0, sizeof c);
    c.measured = -1.0;
    for (int pass = CF_PASS_DATA; pass <= CF_PASS_WEIGHTS; ++pass) {
        char line[256];
        snprintf(line, sizeof line,
                 "staged basis=%dx%d tiles=1x1 dilation=step overlap=save product=loop spectrum=fp32 chunk=2 groups=1 "
                 "keep=none",
                 basis[pass], basis[pass]);
        assert_int_equal(cf_strategy_parse(line, 2, &c.strategy[pass]), CONV_FFT_SUCCESS);
    }
    assert_int_equal(cf_candidates_insert(list, list->count, &c), CONV_FFT_SUCCESS);
}

/* Search a list for both gradients, within the limit of workspace (0: none). Returns the bases of the winner, or 0 if
 * there is none. */
static void winner_of(const char *directory, uint64_t limit, cf_candidates *list, int64_t *data, int64_t *weights) {
    conv_fft_context *context = test_context_in(directory, 1);
    conv_fft_problem p;
    cf_layer checked;
    assert_int_equal(conv_fft_problem_parse("in=2x3x12x12 out=3 kernel=3x3", &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(cf_layer_make(&p, &checked), CONV_FFT_SUCCESS);
    const cf_tuning_job job = {
        .context = context, .layer = &checked, .passes = CONV_FFT_BACKWARD, .workspace_limit = limit};
    cf_tuning_search search = {.job = job, .list = *list};
    assert_int_equal(cf_searches_plan(&search, 1, CONV_FFT_TUNE_EXHAUSTIVE, HUGE_VAL), CONV_FFT_SUCCESS);
    plans = 0;
    assert_int_equal(cf_search_run(&search, 60.0), CONV_FFT_SUCCESS);
    *data = search.decided ? search.list.items[0].strategy[CF_PASS_DATA].basis[2] : 0;
    *weights = search.decided ? search.list.items[0].strategy[CF_PASS_WEIGHTS].basis[2] : 0;
    if (!search.decided)
        assert_string_equal(search.why, "no strategy's results agreed with those of another");
    cf_search_end(&search);
    conv_fft_context_destroy(context);
}

/* Two candidates that compute one pass in the same wrong way do not prove each other, although their other passes
 * differ. */
static void common_errors_prove_nothing(void **state) {
    cf_candidates list = {0};
    int64_t data, weights;
    add(&list, 14, WRONG_BASIS);
    add(&list, 18, WRONG_BASIS);
    winner_of(*state, 0, &list, &data, &weights);
    assert_int_equal(data, 0);
    assert_int_equal(weights, 0);
}

static void right_candidates_win(void **state) {
    cf_candidates list = {0};
    int64_t data, weights;
    add(&list, 14, WRONG_BASIS);
    add(&list, 18, WRONG_BASIS);
    add(&list, 48, 48);
    add(&list, 60, 60);
    winner_of(*state, 0, &list, &data, &weights);
    assert_true(data > 0);
    assert_true(weights == 48 || weights == 60);
}

/* Of many candidates whose workspaces are too large, few are tried as a proof. */
static void few_plans_are_tried(void **state) {
    enum {
        MANY = 2000,
        MAX_TRIES = 100, /* for each of the two candidates that run */
        LARGE_BASIS = 256
    };
    cf_candidates list = {0};
    int64_t data, weights;
    add(&list, 14, WRONG_BASIS);
    add(&list, 18, WRONG_BASIS);
    for (int i = 0; i < MANY; ++i)
        add(&list, LARGE_BASIS, LARGE_BASIS);
    winner_of(*state, 200000, &list, &data, &weights);
    assert_int_equal(data, 0);
    assert_in_range(plans, 1, 2 * MAX_TRIES + 2);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(common_errors_prove_nothing),
        IN_SCRATCH(right_candidates_win),
        IN_SCRATCH(few_plans_are_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
