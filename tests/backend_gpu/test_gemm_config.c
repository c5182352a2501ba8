/* SPDX-License-Identifier: Apache-2.0 */
/* Products on tensor cores without a GPU: their tiles, which layers may use them, and where the cost model chooses
 * them. nvrtc/test_gemm.c compiles their kernels. emulator/kernels/test_gemm_split_fp16.cpp and gpu/test_gemm.c test
 * their results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "autotune/search/candidates.h"
#include "conv/gpu/gemm/config.h"
#include "conv/plan/family.h"
#include "support/error_text.h"
#include "support/fake_context.h"
#include "support/fake_gpu.h"
#include "support/kernel_cases.h"
#include "support/layer.h"
#include "support/temp_dirs.h"

#include <stdio.h>
#include <string.h>

#define LIBRARIES FAKES "/good:" FAKES "/with_cublas"
#define STRATEGY(product, spectrum)                                                                  \
    "staged basis=16x16 tiles=1x1 dilation=step overlap=save product=" product " spectrum=" spectrum \
    " chunk=0 groups=0 keep=none"

/* ------------------------------------------------------------------------------------------------------------- cuts */

static void tiles_fit_the_gpu(void **unused) {
    (void)unused;
    cf_gpu_properties gpus[] = {gpu_properties_of("data/gpus/h200.txt"), gpu_properties_of("data/gpus/a100.txt"),
                                gpu_properties_of("data/gpus/a100.txt")};
    gpus[2].shared_per_block = gpus[2].shared_per_multiprocessor = 101376; /* as compute capability 8.6 has */
    int few = 0;
    for (int g = 0; g < 3; ++g)
        for (int i = 0; i < PRODUCT_CASES; ++i) {
            const cf_cgemm_desc d = product_case(i);
            const cf_cgemm_config c = cf_cgemm_configure(&d, &gpus[g]);
            const int64_t rows = c.kind == CF_CGEMM_BACKWARD_WEIGHTS ? d.out_columns : d.rows,
                          columns = c.kind == CF_CGEMM_FORWARD ? d.out_columns : d.in_columns;
            assert_true(cf_cgemm_threads(&c) <= 1024 && cf_cgemm_shared(&c) <= gpus[g].shared_per_block);
            assert_true(c.warps_m >= 1 && c.n_tiles * c.warps_n % 2 == 0 && c.stages >= 2 && c.slices >= 1 &&
                        c.blocks >= 1);
            assert_true(!c.grouped || (g == 0 && c.warps_m % 4 == 0 && c.m_tiles == 1 && c.n_tiles == 8));
            assert_int_equal(c.terms, d.dtype == CONV_FFT_FP32 && d.math == CONV_FFT_MATH_FP32 ? 2 : 1);
            assert_true(!c.grouped || c.dtype == CONV_FFT_FP32);
            assert_int_equal(c.narrow, c.dtype == CONV_FFT_FP16 && c.kind != CF_CGEMM_BACKWARD_WEIGHTS);
            /* Blocks cover the whole result, and no block is empty. */
            const int m = cf_cgemm_rows(&c), n = cf_cgemm_columns(&c);
            assert_int_equal(cf_cgemm_tiles(&c, d.rows), ((rows + m - 1) / m) * ((columns + n - 1) / n));
            /* Blocks share sums over many rows, where they are too few, and each has several chunks of its own. */
            const int64_t blocks = cf_cgemm_tiles(&c, d.rows) * d.bins * d.groups * c.row_slices;
            assert_true(c.row_slices == 1 ||
                        (c.kind == CF_CGEMM_BACKWARD_WEIGHTS && d.groups == 1 &&
                         blocks <= gpus[g].multiprocessors * c.blocks && d.rows / c.row_slices >= c.slices * c.chunk));
            few += c.row_slices > 1 && d.rows == 100000;
            /* A kernel that is compiled for the whole batch also runs parts of it. */
            assert_true(cf_cgemm_tiles(&c, 1) >= 1);
        }
    assert_int_equal(few, 3 * PRODUCT_TYPES);
}

/* -------------------------------------------------------------------------------------------------------------
 * plans */

static void wrong_products_are_refused(void **state) {
    conv_fft_context *context = fake_context_create(LIBRARIES, *state, false);
    conv_fft_plan *plan = NULL;
    EXPECT_INVALID(forced_plan(context, "in=2x4x12x12 out=4 kernel=5x5 dtype=fp64", CONV_FFT_FORWARD,
                               STRATEGY("tensor", "fp64"), 0, &plan),
                   "tensor cores", "FP32");
    plan = good_forced_plan(context, "in=2x4x12x12 out=4 kernel=5x5 dtype=fp16", CONV_FFT_ALL_PASSES,
                            STRATEGY("tensor", "fp32"));
    conv_fft_plan_destroy(plan);
    /* 16-bit spectra need a math mode that allows them, the tensors' type, and tensor cores. */
    EXPECT_INVALID(forced_plan(context, "in=2x4x12x12 out=4 kernel=5x5 dtype=fp16", CONV_FFT_FORWARD,
                               STRATEGY("tensor", "fp16"), 0, &plan),
                   "spectrum", "arithmetic");
    EXPECT_INVALID(forced_plan(context, "in=2x4x12x12 out=4 kernel=5x5 dtype=fp16 math=half", CONV_FFT_FORWARD,
                               STRATEGY("tensor", "bf16"), 0, &plan),
                   "spectrum", "arithmetic");
    EXPECT_INVALID(forced_plan(context, "in=2x4x12x12 out=4 kernel=5x5 dtype=fp16 math=half", CONV_FFT_FORWARD,
                               STRATEGY("blas", "fp16"), 0, &plan),
                   "tensor cores", "16-bit");
    plan = good_forced_plan(context, "in=2x4x12x12 out=4 kernel=5x5 dtype=fp16 math=half", CONV_FFT_ALL_PASSES,
                            STRATEGY("tensor", "fp16"));
    conv_fft_plan_destroy(plan);
    context->device->tensor_flops = 0;
    EXPECT(
        NOT_SUPPORTED,
        forced_plan(context, "in=2x4x12x12 out=4 kernel=5x5", CONV_FFT_FORWARD, STRATEGY("tensor", "fp32"), 0, &plan),
        "no tensor cores", "device");
    fake_context_destroy(context);
}

static void refused_on_the_cpu(void **unused) {
    (void)unused;
    conv_fft_context_options options;
    conv_fft_context *context = NULL;
    conv_fft_plan *plan = NULL;
    conv_fft_context_options_init(&options);
    options.device = CONV_FFT_DEVICE_CPU;
    assert_int_equal(conv_fft_context_create(&options, &context), CONV_FFT_SUCCESS);
    EXPECT(
        NOT_SUPPORTED,
        forced_plan(context, "in=2x4x12x12 out=4 kernel=5x5", CONV_FFT_FORWARD, STRATEGY("tensor", "fp32"), 0, &plan),
        "no tensor cores", "device");
    conv_fft_context_destroy(context);
}

/* The number of staged candidates with each product. Returns how many have 16-bit spectra. */
static int count_products(const conv_fft_context *context, const char *line, int count[CF_CGEMM_VARIANTS]) {
    const conv_fft_problem p = test_problem(line);
    cf_layer made;
    cf_candidates list;
    assert_int_equal(cf_layer_make(&p, &made), CONV_FFT_SUCCESS);
    const cf_tuning_job job = {.context = context, .layer = &made, .passes = CONV_FFT_FORWARD};
    assert_int_equal(cf_candidates_make(&job, &list), CONV_FFT_SUCCESS);
    memset(count, 0, CF_CGEMM_VARIANTS * sizeof *count);
    int halves = 0;
    for (size_t i = 0; i < list.count; ++i) {
        const cf_strategy *const s = &list.items[i].strategy[CF_PASS_FORWARD];
        if (s->family != cf_family_named("staged"))
            continue;
        ++count[s->product];
        halves += s->spectrum == made.x.dtype && s->spectrum != made.compute;
    }
    cf_candidates_clear(&list);
    return halves;
}

static void candidates(void **state) {
    conv_fft_context *context = fake_context_create(LIBRARIES, *state, false);
    int count[CF_CGEMM_VARIANTS];
    assert_int_equal(context->device->ops->prepare(context->device), CONV_FFT_SUCCESS); /* looks for cuBLAS */
    count_products(context, "in=16x32x24x24 out=32 kernel=5x5", count);
    assert_true(count[CF_CGEMM_TENSOR] > 0 && count[CF_CGEMM_BLAS] > 0 && count[CF_CGEMM_LOOP] > 0);
    count_products(context, "in=16x32x24x24 out=32 kernel=5x5 dtype=fp64", count);
    assert_true(count[CF_CGEMM_TENSOR] == 0 && count[CF_CGEMM_BLAS] > 0);
    assert_int_equal(count_products(context, "in=16x32x24x24 out=32 kernel=5x5 dtype=fp16", count), 0);
    const int halves = count_products(context, "in=16x32x24x24 out=32 kernel=5x5 dtype=bf16 math=half", count);
    assert_true(halves > 0 && count[CF_CGEMM_TENSOR] > halves && count[CF_CGEMM_BLAS] > 0);
    fake_context_destroy(context);
}

/* Dense layers with many channels use products on tensor cores. Depthwise layers and FP64 layers do not. */
static void cost_model_chooses_products(void **state) {
    static const struct {
        const char *line, *product;
    } cases[] = {{"in=128x64x64x64 out=64 kernel=9x9", " product=tensor "},
                 {"in=128x128x32x32 out=128 kernel=9x9 math=tf32", " product=tensor "},
                 {"in=16x64x32x32 out=64 kernel=9x9 dtype=fp64", " product=blas "}};
    conv_fft_context *context = fake_context_create(LIBRARIES, *state, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const conv_fft_problem p = test_problem(cases[i].line);
        conv_fft_plan *plan = test_plan(context, &p, NULL);
        conv_fft_description d;
        for (int pass = 1; pass <= 4; pass *= 2) {
            assert_int_equal(conv_fft_plan_describe(plan, (conv_fft_pass)pass, &d), CONV_FFT_SUCCESS);
            assert_non_null(strstr(d.strategy, cases[i].product));
        }
        conv_fft_plan_destroy(plan);
    }
    fake_context_destroy(context);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_fit_the_gpu),     cmocka_unit_test(refused_on_the_cpu),
        IN_SCRATCH(wrong_products_are_refused),  IN_SCRATCH(candidates),
        IN_SCRATCH(cost_model_chooses_products),
    };
    return cmocka_run_group_tests_name("products on tensor cores", tests, NULL, NULL);
}
