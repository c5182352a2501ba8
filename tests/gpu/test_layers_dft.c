/* SPDX-License-Identifier: Apache-2.0 */
/* Family dft on a GPU: planes and signals, against the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/arith.h"
#include "support/device.h"
#include "support/gpu.h"
#include "support/layer.h"
#include "support/layer_strategies.h"

static const char *const problems[] = {
    "in=5x7x56x56 out=7 groups=7 kernel=31x31 pad=15 dtype=fp16 math=half",
    "in=70x300x20x20 out=300 groups=300 kernel=15x15 pad=7 dtype=fp16 math=half",
    "in=9x150x56x56 out=150 groups=150 kernel=31x31 pad=15 dtype=fp16 math=half",
    "in=9x5x28x28 out=5 groups=5 kernel=29x29 pad=14 dtype=bf16 math=half",
    "in=64x3x64x64 out=3 groups=3 kernel=31x31 pad=15 dtype=bf16 math=half",
    "in=33x4x14x14 out=4 groups=4 kernel=27x27 pad=13 dtype=fp16 math=half",
    "in=4x9x7x7 out=9 groups=9 kernel=13x13 pad=6 dtype=bf16 math=half",
    "in=1x1x1x1 out=1 kernel=1x1 dtype=fp16 math=half",
    "in=5x3x17x30 out=3 groups=3 kernel=6x8 dtype=fp16 math=half",
    "in=3x2x9x11 out=2 groups=2 kernel=12x15 pad=7x9 dtype=bf16 math=half",
    "in=3x6x40x37 out=6 groups=6 kernel=20x31 pad=9:11x0:30 dtype=fp16 math=half",
    "in=6x5x40x44 out=5 groups=5 kernel=31x9 pad=15x4 dtype=fp16 w=fp32 math=half",
    "in=6x5x40x44 out=5 groups=5 kernel=9x31 pad=4x15 dtype=bf16 gw=fp32 math=half",
    /* Signals: one and several tiles, both lengths of tiles, as many taps as elements, any alignment. */
    "in=5x7x8192 out=7 groups=7 kernel=1023 pad=511 dtype=fp16 math=half",
    "in=3x300x4096 out=300 groups=300 kernel=1024 pad=1023:0 dtype=bf16 math=half",
    "in=2x3x6000 out=3 groups=3 kernel=6000 pad=5999:0 dtype=fp16 math=half",
    "in=2x5x8192 out=5 groups=5 kernel=4096 pad=0:4095 dtype=bf16 gw=fp32 math=half",
    "in=70x3x777 out=3 groups=3 kernel=129 pad=64 dtype=fp16 w=fp32 math=half",
};

static const char *const families[3] = {"dft", "dft", "dft"};

static void check_dft(int64_t i, void *unused) {
    (void)unused;
    check_layer_of_families(problems[i], i, families, false);
}

static void layers_of_family_dft(void **state) {
    NEED_DEVICE(state);
    case_list list = {.name = "gpu_layers_dft"};
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++)
        case_list_add(&list, "%s", problems[i]);
    device_each(&list, check_dft, NULL);
    assert_int_equal(case_failures(), 0);
}

enum {
    RANDOM = 24
};
static char random_lines[RANDOM][192]; /* of one of the tests below */

static void check_random(int64_t i, void *unused) {
    (void)unused;
    check_layer_of_families(random_lines[i], i, families, false);
}

static void random_planes_of_family_dft(void **state) {
    NEED_DEVICE(state);
    static const char *const types[] = {"dtype=fp16", "dtype=bf16", "dtype=fp16 w=fp32", "dtype=bf16 gw=fp32"};
    case_list list = {.name = "gpu_layers_planes"};
    generator g = test_generator(1);
    for (int i = 0; i < RANDOM; i++) {
        const int samples = (int)random_int(&g, 1, 40), groups = (int)random_int(&g, 2, 9);
        int kernel[2] = {0}, pad[2] = {0}, input[2] = {0};
        for (int a = 0; a < 2; a++) {
            kernel[a] = (int)random_int(&g, 1, 31);
            pad[a] = random_once_in(&g, 4) ? (int)random_int(&g, 0, kernel[a] - 1) : kernel[a] / 2;
            input[a] = (int)random_int(&g, kernel[a], cf_min(48, 64 - 2 * pad[a] + kernel[a] - 1)); /* y: at most 64 */
        }
        if (random_once_in(&g, 2))
            input[1] = (int)cf_max(kernel[1], input[1] / 8 * 8);
        snprintf(random_lines[i], sizeof random_lines[i],
                 "in=%dx%dx%dx%d out=%d groups=%d kernel=%dx%d pad=%dx%d %s math=half", samples, groups, input[0],
                 input[1], groups, groups, kernel[0], kernel[1], pad[0], pad[1], types[random_int(&g, 0, 3)]);
        case_list_add(&list, "%s", random_lines[i]);
    }
    device_each(&list, check_random, NULL);
    assert_int_equal(case_failures(), 0);
}

static void random_signals_of_family_dft(void **state) {
    NEED_DEVICE(state);
    static const char *const types[] = {"dtype=fp16", "dtype=bf16", "dtype=fp16 w=fp32", "dtype=bf16 gw=fp32"};
    case_list list = {.name = "gpu_layers_dft_signals"};
    generator g = test_generator(4);
    for (int i = 0; i < RANDOM; i++) {
        const int samples = (int)random_int(&g, 1, 20), groups = (int)random_int(&g, 2, 9),
                  kernel = (int)random_int(&g, 1, random_once_in(&g, 3) ? 7900 : 1100),
                  before = (int)random_int(&g, 0, kernel + 20);
        int input = (int)random_int(&g, cf_max(65, kernel - before), 9000);
        if (random_once_in(&g, 2))
            input = (input + 7) / 8 * 8;
        snprintf(random_lines[i], sizeof random_lines[i],
                 "in=%dx%dx%d out=%d groups=%d kernel=%d pad=%d:%d %s math=half", samples, groups, input, groups,
                 groups, kernel, before,
                 random_once_in(&g, 2) ? (int)cf_max(0, kernel - 1 - before) : (int)random_int(&g, 0, kernel),
                 types[random_int(&g, 0, 3)]);
        case_list_add(&list, "%s", random_lines[i]);
    }
    device_each(&list, check_random, NULL);
    assert_int_equal(case_failures(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_of_family_dft),
        cmocka_unit_test(random_planes_of_family_dft),
        cmocka_unit_test(random_signals_of_family_dft),
    };
    gpu_read_filters();
    const int status =
        gpu_exit_status(cmocka_run_group_tests_name("family dft on a GPU", tests, device_gpu_setup, device_teardown));
    print_worst_ratios("family dft on a GPU");
    return status;
}
