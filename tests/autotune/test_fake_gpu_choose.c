/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of the cost model on the substitute GPU of tests/fakes: of all fused strategies that run, it knows the one
 * with the best prediction, though it configures only a few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "autotune/model/choose.h"
#include "autotune/model/cost_model.h"
#include "autotune/search/search_space.h"
#include "support/fake_context.h"
#include "support/layer.h"
#include "support/temp_dirs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What is known of the fused strategies of a pass. */
typedef struct fused_strategies {
    int running;
    double best, best_refused; /* the least predicted time of those that run, and of those that do not */
} fused_strategies;

static fused_strategies all_fused(const cf_device *device, const cf_layer *l, int pass) {
    fused_strategies all = {0, HUGE_VAL, HUGE_VAL};
    cf_space_bases list[3];
    cf_space_bases_of(l, device, false, list);
    for (int i = 0; i < list[0].count; ++i)
        for (int j = 0; j < list[1].count; ++j)
            for (int k = 0; k < list[2].count; ++k) {
                const int64_t basis[3] = {list[0].basis[i], list[1].basis[j], list[2].basis[k]};
                cf_strategy s = cf_space_strategy(l, basis, false, 0);
                cf_stage_cost cost[CF_STAGE_COUNT];
                const char *why;
                s.family = cf_space_family(CF_SEARCH_KERNELS);
                if (pass == CF_PASS_DATA)
                    cf_space_set_tiles(l, true, &s);
                cf_strategy_resolve(l, pass, &s);
                if (!s.family->feasible(l, pass, &s, &why))
                    continue;
                cf_model_pass(l, device, pass, &s, cost);
                const bool runs = s.family->runs_on(device, l, pass, &s, &why);
                double *const least = runs ? &all.best : &all.best_refused;
                *least = fmin(*least, cf_model_seconds(cost));
                all.running += runs;
            }
    return all;
}

/* Check that each of the passes `fused` has the best fused strategy, and that the other passes are staged. Returns the
 * passes for which a better prediction does not run. */
static int check_choice(const char *cache, const char *line, int fused) {
    const conv_fft_problem problem = test_problem(line);
    conv_fft_context *const context = fake_context_create(FAKES_PLAIN, cache, false);
    cf_layer l;
    int refused = 0;
    cf_strategy chosen[CF_PASS_COUNT];
    assert_int_equal(cf_layer_make(&problem, &l), CONV_FFT_SUCCESS);
    memset(chosen, 0, sizeof chosen);
    assert_int_equal(cf_choose_strategies(context->device, &l, 0, true, chosen), CONV_FFT_SUCCESS);
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        cf_stage_cost cost[CF_STAGE_COUNT];
        const char *why;
        const fused_strategies all = all_fused(context->device, &l, pass);
        cf_model_pass(&l, context->device, pass, &chosen[pass], cost);
        assert_int_equal(chosen[pass].family->search_space == CF_SEARCH_KERNELS, (fused >> pass) & 1);
        assert_true(chosen[pass].family->runs_on(context->device, &l, pass, &chosen[pass], &why));
        assert_true(all.running > 3);
        if (fused & 1 << pass)
            assert_true(cf_model_seconds(cost) == all.best);
        refused |= all.best_refused < all.best ? 1 << pass : 0;
    }
    fake_context_destroy(context);
    return refused;
}

static void depthwise_planes_are_fused(void **state) {
    check_choice(*state, "in=64x32x56x56 out=32 kernel=9x9 pad=4 groups=32", CONV_FFT_ALL_PASSES);
}

/* Some of the best predictions belong to planes that do not fit a block. */
static void large_planes_are_fused_in_tiles(void **state) {
    assert_true(check_choice(*state, "in=4x16x320x320 out=16 kernel=31x31 pad=15 groups=16", CONV_FFT_ALL_PASSES));
}

static void small_and_dense_layers_are_staged(void **state) {
    check_choice(*state, "in=8x48x28x28 out=48 kernel=5x5 pad=2 stride=2 groups=48", 0);
    check_choice(*state, "in=32x64x28x28 out=64 kernel=5x5 pad=2", 0);
}

/* The families of depthwise layers, as measured on an H100. */
static void depthwise_layers_have_their_families(void **state) {
    static const struct {
        const char *line, *family;
    } cases[] = {{"in=4x4096x8192 out=4096 groups=4096 kernel=4 pad=3:0", "toeplitz"},
                 {"in=4x4096x8192 out=4096 groups=4096 kernel=32 pad=31:0", "toeplitz"},
                 {"in=4x4096x8192 out=4096 groups=4096 kernel=128 pad=127:0", "toeplitz"},
                 {"in=4x4096x8192 out=4096 groups=4096 kernel=256 pad=255:0 math=tf32", "toeplitz"},
                 {"in=8x256x8192 out=256 groups=256 kernel=32 pad=31:0 layout=last", "spatial"},
                 {"in=4x4096x8192 out=4096 groups=4096 kernel=64 pad=63:0 dtype=bf16", "toeplitz"},
                 {"in=64x144x56x56 out=144 groups=144 kernel=5x5 pad=2 stride=2 layout=last dtype=fp16", "toeplitz"},
                 {"in=64x96x112x112 out=96 groups=96 kernel=3x3 pad=1 stride=2 layout=last dtype=fp16", "toeplitz"},
                 {"in=64x144x56x56 out=144 groups=144 kernel=5x5 pad=2 stride=2 dtype=fp16", "toeplitz"},
                 {"in=64x672x14x14 out=672 groups=672 kernel=5x5 pad=2 stride=2 dtype=fp16", "toeplitz"},
                 {"in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 layout=last dtype=bf16", "toeplitz"},
                 {"in=64x32x112x112 out=32 groups=32 kernel=3x3 pad=1 layout=last dtype=fp16", "toeplitz"},
                 {"in=64x240x28x28 out=240 groups=240 kernel=5x5 pad=2 layout=last dtype=fp16", "toeplitz"},
                 {"in=64x144x56x56 out=144 groups=144 kernel=3x3 pad=1 layout=last dtype=fp16", "toeplitz"},
                 {"in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 dtype=fp16", "toeplitz"},
                 {"in=8x32x64x64x64 out=32 groups=32 kernel=7x7x7 pad=3 dtype=fp16", "toeplitz"},
                 {"in=8x64x32x32x32 out=64 groups=64 kernel=3x3x3 pad=1 dtype=bf16", "toeplitz"},
                 {"in=64x128x56x56 out=128 groups=128 kernel=31x31 pad=15 dtype=fp16 math=half", "dft"},
                 {"in=64x256x28x28 out=256 groups=256 kernel=29x29 pad=14 dtype=bf16 math=half", "dft"},
                 {"in=64x512x14x14 out=512 groups=512 kernel=27x27 pad=13 dtype=fp16 math=half", "toeplitz"},
                 {"in=64x96x56x56 out=96 groups=96 kernel=5x5 pad=2 dtype=fp16 math=half", "toeplitz"},
                 {"in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3", "fused"},
                 {"in=64x384x14x14 out=384 groups=384 kernel=7x7 pad=3", "fused"},
                 {"in=4x4096x8192 out=4096 groups=4096 kernel=4 pad=3:0 layout=last dtype=bf16", "toeplitz"},
                 {"in=2x4096x16384 out=4096 groups=4096 kernel=1024 pad=1023:0 dtype=bf16 math=half", "dft"},
                 {"in=16x768x8192 out=768 groups=768 kernel=1023 pad=511 dtype=fp16 math=half", "dft"}};
    conv_fft_context *const context = fake_context_create(FAKES_PLAIN, *state, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const conv_fft_problem problem = test_problem(cases[i].line);
        cf_layer l;
        cf_strategy chosen[CF_PASS_COUNT];
        memset(chosen, 0, sizeof chosen);
        assert_int_equal(cf_layer_make(&problem, &l), CONV_FFT_SUCCESS);
        assert_int_equal(cf_choose_strategies(context->device, &l, 0, true, chosen), CONV_FFT_SUCCESS);
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
            if (strcmp(chosen[pass].family->name, cases[i].family) != 0)
                fail_msg("%s, pass %d: %s", cases[i].line, pass, chosen[pass].family->name);
    }
    fake_context_destroy(context);
}

/* The families of the passes of a layer, joined by commas, and whether cuDNN's algorithm has a name. */
static void check_families(conv_fft_context *context, const char *line, bool own_kernels, const char *wanted) {
    const conv_fft_problem problem = test_problem(line);
    cf_layer l;
    cf_strategy chosen[CF_PASS_COUNT];
    char families[64] = "";
    memset(chosen, 0, sizeof chosen);
    assert_int_equal(cf_layer_make(&problem, &l), CONV_FFT_SUCCESS);
    assert_int_equal(cf_choose_strategies(context->device, &l, 0, own_kernels, chosen), CONV_FFT_SUCCESS);
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        snprintf(families + strlen(families), sizeof families - strlen(families), "%s%s", pass ? "," : "",
                 chosen[pass].family->name);
        assert_int_equal(chosen[pass].algorithm[0] != 0, strcmp(chosen[pass].family->name, "cudnn") == 0);
    }
    if (strcmp(families, wanted) != 0)
        fail_msg("%s: %s, not %s", line, families, wanted);
}

/* As measured on an H100. */
static const char *const direct_is_faster = "in=128x384x13x13 out=384 kernel=3x3 dtype=fp16 math=half layout=last";

static void short_dense_kernels_in_16_bits_are_for_cudnn(void **state) {
    conv_fft_context *const context = fake_context_create(FAKES_ALL, *state, false);
    check_families(context, direct_is_faster, false, "cudnn,cudnn,cudnn");
    check_families(context, direct_is_faster, true, "staged,staged,staged");
    check_families(context, "in=128x384x13x13 out=384 kernel=3x3", false, "staged,staged,staged");
    check_families(context, "in=128x384x13x13 out=384 kernel=3x3 dtype=fp16 math=fp32", false, "staged,staged,staged");
    check_families(context, "in=128x3x128x128 out=96 kernel=11x11 dtype=fp16 math=half", true,
                   "implicit_gemm,fused,fused");
    check_families(context, "in=128x3x224x224 out=64 kernel=7x7 pad=3 stride=2 layout=last dtype=bf16", true,
                   "implicit_gemm,staged,implicit_gemm");
    check_families(context, "in=64x128x56x56 out=128 kernel=7x7 pad=3 dtype=fp16 math=half", false,
                   "staged,staged,staged");
    check_families(context, "in=64x96x28x28 out=96 kernel=3x3 pad=1 groups=96 dtype=fp16 math=half", false,
                   "toeplitz,toeplitz,toeplitz");
    fake_context_destroy(context);
}

/* Without cuDNN, and with one that does not start. */
static void without_cudnn_the_model_chooses_own_kernels(void **state) {
    static const char *const folders[] = {FAKES_PLAIN, FAKES_PLAIN ":" FAKES "/failing_cudnn"};
    for (int i = 0; i < 2; ++i) {
        conv_fft_context *const context = fake_context_create(folders[i], *state, false);
        check_families(context, direct_is_faster, false, "staged,staged,staged");
        fake_context_destroy(context);
    }
}

static void check_plan(conv_fft_context *context, int64_t own_kernels, int64_t any_alignment, uint64_t limit,
                       const char *wanted) {
    const conv_fft_problem problem = test_problem(direct_is_faster);
    conv_fft_plan_options options;
    conv_fft_plan *plan;
    conv_fft_description d;
    assert_int_equal(conv_fft_plan_options_init(&options), CONV_FFT_SUCCESS);
    options.tuning = CONV_FFT_TUNE_OFF;
    options.own_kernels = own_kernels;
    options.any_alignment = any_alignment;
    options.workspace_limit = limit;
    options.passes = CONV_FFT_FORWARD;
    assert_int_equal(conv_fft_plan_create(context, &problem, &options, &plan), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_FORWARD, &d), CONV_FFT_SUCCESS);
    if (strncmp(d.strategy, wanted, strlen(wanted)) != 0)
        fail_msg("%s, not %s", d.strategy, wanted);
    conv_fft_plan_destroy(plan);
}

static void plans_have_own_kernels_if_asked(void **state) {
    conv_fft_context *const context = fake_context_create(FAKES_ALL, *state, false);
    check_plan(context, 0, 0, 0, "cudnn algorithm=graph:");
    check_plan(context, 1, 0, 0, "staged ");
    check_plan(context, 0, 1, 0, "staged ");                 /* cuDNN takes no tensors that begin anywhere */
    check_plan(context, 0, 0, (uint64_t)1 << 40, "staged "); /* the workspace of an algorithm is not known in advance */
    fake_context_destroy(context);
}

/* A call for both gradients of a signal with channels first is one kernel, if it has few taps. */
static void both_gradients_of_signals_are_one_kernel(void **state) {
    static const struct {
        const char *line;
        bool one;
    } cases[] = {{"in=4x4096x8192 out=4096 groups=4096 kernel=4 pad=3:0 dtype=bf16", true},
                 {"in=4x4096x8192 out=4096 groups=4096 kernel=128 pad=127:0 dtype=fp16", true},
                 {"in=4x4096x8192 out=4096 groups=4096 kernel=4 pad=3:0", true},
                 {"in=4x4096x8192 out=4096 groups=4096 kernel=64 pad=63:0", false},
                 {"in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 dtype=fp16", false}};
    conv_fft_context *const context = fake_context_create(FAKES_PLAIN, *state, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const conv_fft_problem problem = test_problem(cases[i].line);
        conv_fft_plan *const plan = test_plan(context, &problem, NULL);
        conv_fft_description d;
        assert_non_null(plan);
        assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_BACKWARD, &d), CONV_FFT_SUCCESS);
        int stages = 0;
        bool named = false;
        for (; stages < d.stage_count; ++stages)
            named = named || strcmp(d.stages[stages].name, "convolve gx, gw") == 0;
        if (d.shares_gy != cases[i].one || named != cases[i].one || (stages == 1) != cases[i].one)
            fail_msg("%s: shares gy %d, %d stages", cases[i].line, d.shares_gy, stages);
        const cf_strategy *data = &plan->pass[CF_PASS_DATA].strategy, *weights = &plan->pass[CF_PASS_WEIGHTS].strategy;
        assert_int_equal(cf_model_shared_transpose(&plan->layer, context->device, data, weights) > 0.0, cases[i].one);
        conv_fft_plan_destroy(plan);
    }
    fake_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_gradients_of_signals_are_one_kernel),
        cmocka_unit_test(depthwise_planes_are_fused),
        cmocka_unit_test(large_planes_are_fused_in_tiles),
        cmocka_unit_test(small_and_dense_layers_are_staged),
        cmocka_unit_test(depthwise_layers_have_their_families),
        cmocka_unit_test(short_dense_kernels_in_16_bits_are_for_cudnn),
        cmocka_unit_test(without_cudnn_the_model_chooses_own_kernels),
        cmocka_unit_test(plans_have_own_kernels_if_asked),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
