/* SPDX-License-Identifier: Apache-2.0 */
/* Large layers on a GPU: more groups, bins or channels than the blocks of a grid axis, transforms of several kernels,
 * many rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/gpu.h"
#include "support/layer.h"
#include "support/layer_problems.h"
#include "support/strategy_lines.h"

#include <stdio.h>
#include <string.h>

static const char *const lines[] = {
    "groups in=1x70000x4 out=70000 kernel=3 pad=1 groups=70000",
    "groups-last in=2x66000x5 out=66000 kernel=3 pad=1:0 groups=66000 layout=last dtype=fp16",
    "channels in=1x70000x5 out=1 kernel=2",
    "outputs in=1x1x5 out=70000 kernel=2 dtype=bf16",
    "batch in=70000x1x6 out=1 kernel=3 pad=1 mode=reflect",
    "signal in=1x2x12000 out=2 kernel=3000 pad=1500",
    "signal-fp64 in=1x1x9000 out=2 kernel=1500 mode=circular pad=200 dtype=fp64",
    "tiles in=1x1x400000 out=1 kernel=33",
    "plane in=1x2x200x190 out=2 kernel=31x30 pad=15 mode=replicate",
    "plane-last in=2x8x64x64 out=4 kernel=25x25 pad=12 layout=last dtype=fp16",
    "volume in=1x2x40x36x34 out=2 kernel=9x7x8 pad=3",
    "volume-fp64 in=1x1x24x33x28 out=2 kernel=5x8x7 mode=reflect pad=3 dtype=fp64",
    "dense in=8x32x28x28 out=64 kernel=5x5 pad=2",
    "dense-stride in=4x24x33x31 out=40 kernel=7x7 pad=3 stride=2 layout=last",
    "depthwise in=4x96x28x28 out=96 kernel=13x13 pad=6 groups=96",
    "cut-signal in=1x2x26000 out=2 kernel=20000 pad=300",
    "cut-signal-fp64 in=1x1x9500 out=2 kernel=9000 pad=200:0 mode=reflect dtype=fp64",
    "cut-plane in=2x2x330x40 out=3 kernel=300x7 pad=20x3",
    "cut-plane-last in=2x4x340x33 out=2 kernel=301x2 pad=9x1 mode=circular layout=last dtype=fp16",
    "cut-both in=1x2x310x320 out=1 kernel=300x300 pad=7",
    "cut-stride in=2x2x700x21 out=2 kernel=610x3 stride=2x3 pad=30x1 mode=replicate dtype=bf16 gw=fp32",
};
enum {
    LINES = sizeof lines / sizeof lines[0]
};

static named_problem problem_of(int64_t i) {
    named_problem named;
    conv_fft_problem_init(&named.problem, 1);
    if (conv_fft_problem_parse(lines[i], &named.problem, named.name, sizeof named.name) != CONV_FFT_SUCCESS)
        case_fail("%s: %s", lines[i], conv_fft_last_error());
    return named;
}

static case_list list_of(const char *name) {
    case_list list = {.name = name};
    for (int i = 0; i < LINES; i++)
        case_list_add(&list, "%s", problem_of(i).name);
    return list;
}

static void check(int64_t i, void *unused) {
    (void)unused;
    const named_problem named = problem_of(i);
    check_named_problem(&named);
}

static void large(void **state) {
    NEED_DEVICE(state);
    case_list list = list_of("gpu_layers_large");
    device_each(&list, check, NULL);
    print_worst_ratios("large");
    assert_int_equal(case_failures(), 0);
}

/* Each product, for layers that only one of them suits. */
static void check_products(int64_t i, void *unused) {
    static const char *const products[] = {"blas", "loop", "tensor"};
    (void)unused;
    const named_problem named = problem_of(i);
    generator g = generator_create((uint64_t)i);
    layer l = layer_create(&named.problem, &g);
    const strategies chosen = chosen_strategies(device_context(), &named.problem);
    const int variants = named.problem.dtype == CONV_FFT_FP64 ? 2 : 3; /* tensor cores multiply FP32 only */
    for (int v = 0; v < variants; v++) {
        char text[128];
        conv_fft_plan_options options;
        strategies forced;
        conv_fft_plan_options_init(&options);
        snprintf(text, sizeof text, "%s with product=%s", named.name, products[v]);
        case_begin(text, NULL);
        for (int pass = 0; pass < 3; pass++) {
            edit_strategy(chosen.line[pass], "product", products[v], forced.line[pass], sizeof forced.line[pass]);
            options.strategy[pass] = forced.line[pass];
        }
        conv_fft_plan *plan = test_plan(device_context(), &named.problem, &options);
        if (plan)
            layer_check_all(&l, plan);
        conv_fft_plan_destroy(plan);
    }
    layer_destroy(&l);
}

static void large_products(void **state) {
    NEED_DEVICE(state);
    case_list list = list_of("gpu_layers_large_products");
    device_each(&list, check_products, NULL);
    assert_int_equal(case_failures(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(large), cmocka_unit_test(large_products)};
    gpu_read_filters();
    return gpu_exit_status(
        cmocka_run_group_tests_name("large layers on a GPU", tests, device_gpu_setup, device_teardown));
}
