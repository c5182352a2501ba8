/* SPDX-License-Identifier: Apache-2.0 */
/* Family implicit_gemm on a GPU: dense layers with few input channels, against the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/case_list.h"
#include "support/device.h"
#include "support/gpu.h"
#include "support/layer.h"
#include "support/layer_strategies.h"
#include "support/random_problems.h"

static const char *const problems[] = {
    /* First layers of networks, in both layouts. */
    "in=9x3x128x128 out=96 kernel=11x11 dtype=fp16",
    "in=9x3x128x128 out=96 kernel=11x11 layout=last dtype=bf16",
    "in=5x3x224x224 out=64 kernel=11x11 pad=2 stride=4 dtype=fp16",
    "in=5x3x224x224 out=64 kernel=11x11 pad=2 stride=4 layout=last dtype=fp16",
    "in=5x3x224x224 out=64 kernel=7x7 pad=3 stride=2 dtype=bf16",
    "in=5x3x224x224 out=64 kernel=7x7 pad=3 stride=2 layout=last dtype=fp16",
    "in=5x3x224x224 out=32 kernel=3x3 pad=1 stride=2 dtype=fp16",
    "in=5x3x112x112 out=96 kernel=4x4 stride=4 layout=last dtype=bf16",
    "in=150x3x32x32 out=64 kernel=3x3 pad=1 dtype=fp16",
    "in=64x1x28x28 out=32 kernel=5x5 pad=2 dtype=bf16",
    /* Units of one to eight channels; strides that divide units and others; groups; odd extents. */
    "in=3x1x40x43 out=9 kernel=4x9 pad=1:2x0:2 stride=3 dtype=fp16",
    "in=3x4x37x38 out=16 groups=2 kernel=3x7 pad=2x4 stride=1x3 dtype=bf16 layout=last",
    "in=3x6x33x34 out=100 kernel=3x3 pad=1 dtype=fp16 layout=last",
    "in=3x6x33x35 out=130 groups=2 kernel=3x3 pad=1 dtype=bf16",
    "in=3x8x29x150 out=40 kernel=5x4 pad=2:1x3:0 dtype=fp16",
    "in=3x3x45x46 out=8 kernel=3x4 stride=5x6 dtype=bf16",
    "in=1x1x1x1 out=8 kernel=1x1 dtype=fp16",
    /* Padding of which taps meet no input. */
    "in=3x3x2x3 out=24 kernel=5x9 pad=4x8 dtype=fp16",
};

enum {
    RANDOM = 40
};
static char random_lines[RANDOM][192];

/* gx is left to other families. */
static const char *const families[3] = {"implicit_gemm", NULL, "implicit_gemm"};

static void check_problem(int64_t i, void *unused) {
    (void)unused;
    check_layer_of_families(problems[i], i, families, false);
}

static void check_random(int64_t i, void *unused) {
    (void)unused;
    check_layer_of_families(random_lines[i], i, families, false);
}

static void layers_of_family_implicit_gemm(void **state) {
    NEED_DEVICE(state);
    case_list list = {.name = "gpu_layers_implicit_gemm"};
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++)
        case_list_add(&list, "%s", problems[i]);
    device_each(&list, check_problem, NULL);
    assert_int_equal(case_failures(), 0);
}

static void random_layers_of_family_implicit_gemm(void **state) {
    NEED_DEVICE(state);
    case_list list = {.name = "gpu_layers_random_implicit_gemm"};
    generator g = test_generator(1);
    for (int i = 0; i < RANDOM; i++) {
        int kernel[2] = {0}, pad[2] = {0}, input[2] = {0}, stride[2] = {0};
        for (int a = 0; a < 2; a++) {
            kernel[a] = (int)random_int(&g, 1, 9);
            stride[a] = random_once_in(&g, 2) ? 1 : (int)random_int(&g, 1, 5);
            pad[a] = random_once_in(&g, 3) ? (int)random_int(&g, 0, kernel[a] - 1) : kernel[a] / 2;
            input[a] = (int)random_int(&g, kernel[a], 100);
        }
        if (random_once_in(&g, 2))
            input[1] = (input[1] + 7) / 8 * 8;
        const int groups = random_once_in(&g, 4) ? 2 : 1, out = (int)random_int(&g, 8, 110);
        snprintf(random_lines[i], sizeof random_lines[i],
                 "in=%dx%dx%dx%d out=%d groups=%d kernel=%dx%d pad=%dx%d stride=%dx%d %s%s", (int)random_int(&g, 1, 20),
                 groups * (int)random_int(&g, 1, random_once_in(&g, 2) ? 3 : 8), input[0], input[1], groups * out,
                 groups, kernel[0], kernel[1], pad[0], pad[1], stride[0], stride[1],
                 random_once_in(&g, 2) ? "dtype=fp16" : "dtype=bf16", random_once_in(&g, 2) ? " layout=last" : "");
        case_list_add(&list, "%s", random_lines[i]);
    }
    device_each(&list, check_random, NULL);
    assert_int_equal(case_failures(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_of_family_implicit_gemm),
        cmocka_unit_test(random_layers_of_family_implicit_gemm),
    };
    gpu_read_filters();
    const int status = gpu_exit_status(
        cmocka_run_group_tests_name("implicit GEMMs on a GPU", tests, device_gpu_setup, device_teardown));
    print_worst_ratios("implicit GEMMs on a GPU");
    return status;
}
