/* SPDX-License-Identifier: Apache-2.0 */
/* Family fused on a GPU: given strategies for all kinds of problems, against the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/gpu.h"
#include "support/layer.h"
#include "support/strategy_lines.h"

#include <errno.h>

/* Each problem with grids of different numbers of tiles; NULL ends them. */
static const struct {
    const char *line, *grids[3];
} problems[] = {
    {"in=5x7x20x20 out=7 groups=7 kernel=5x5 pad=2",
     {"basis=24x24 tiles=1x1", "basis=12x16 tiles=3x2", "basis=25x27 tiles=1x1"}},
    {"in=3x6x56x56 out=6 groups=6 kernel=31x31 pad=15",
     {"basis=72x72 tiles=1x1", "basis=80x96 tiles=1x1", "basis=60x64 tiles=2x2"}},
    {"in=9x16x14x14 out=16 groups=16 kernel=27x27 pad=13", {"basis=27x28 tiles=1x1", "basis=32x32 tiles=1x1", NULL}},
    {"in=4x64x7x7 out=64 groups=64 kernel=13x13 pad=6",
     {"basis=18x21 tiles=1x1", "basis=14x15 tiles=1x1", "basis=16x16 tiles=1x1"}},
    {"in=3x5x30x30 out=15 groups=5 kernel=7x5 pad=3x2", {"basis=36x32 tiles=1x1", "basis=16x20 tiles=3x2", NULL}},
    {"in=2x6x18x21 out=9 groups=3 kernel=3x4", {"basis=20x21 tiles=1x1", "basis=9x10 tiles=3x3", NULL}},
    {"in=3x3x40x40 out=24 kernel=11x11", {"basis=40x40 tiles=1x1", "basis=32x35 tiles=2x2", NULL}},
    {"in=3x3x40x40 out=24 kernel=11x11 layout=last", {"basis=40x40 tiles=1x1", "basis=32x35 tiles=2x2", NULL}},
    {"in=3x3x40x40 out=24 kernel=11x11 layout=last dtype=fp16",
     {"basis=40x40 tiles=1x1", "basis=32x35 tiles=2x2", NULL}},
    {"in=5x40x20x16 out=3 kernel=5x5 pad=2 layout=last dtype=bf16",
     {"basis=24x20 tiles=1x1", "basis=12x20 tiles=3x1", NULL}},
    {"in=5x3x20x16 out=6 kernel=5x5 pad=2 dtype=fp16", {"basis=12x20 tiles=3x1", "basis=24x24 tiles=1x1", NULL}},
    {"in=3x3x40x40 out=24 kernel=11x11 dtype=fp16", {"basis=40x40 tiles=1x1", NULL, NULL}},
    {"in=4x3x16x16 out=3 kernel=3x3 dtype=fp16", {"basis=16x16 tiles=1x1", NULL, NULL}},
    {"in=5x3x20x16 out=6 kernel=5x5 pad=2 dtype=fp16 w=fp32", {"basis=12x20 tiles=3x1", "basis=24x24 tiles=1x1", NULL}},
    {"in=3x3x40x40 out=24 kernel=11x11 layout=last dtype=bf16 w=fp32",
     {"basis=40x40 tiles=1x1", "basis=32x35 tiles=2x2", NULL}},
    {"in=5x24x20x20 out=24 groups=24 kernel=5x5 pad=2 layout=last dtype=fp16 w=fp32",
     {"basis=24x24 tiles=1x1", "basis=12x16 tiles=3x2", NULL}},
    {"in=5x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=bf16 w=fp32 gw=bf16",
     {"basis=24x24 tiles=1x1", "basis=12x16 tiles=3x2", NULL}},
    {"in=3x4x4000 out=4 groups=4 kernel=4000 pad=3999:0 dtype=bf16 w=fp32",
     {"basis=8192 tiles=1", "basis=16384 tiles=1", NULL}},
    {"in=2x3x60000 out=3 groups=3 kernel=300 pad=299:0 dtype=fp16 w=fp32", {"basis=65536 tiles=1", NULL, NULL}},
    {"in=5x3x60x60 out=8 kernel=9x9", {"basis=40x64 tiles=2x1", "basis=64x64 tiles=1x1", NULL}},
    {"in=5x6x40x44 out=2 kernel=5x5 pad=2", {"basis=48x48 tiles=1x1", "basis=24x48 tiles=2x1", NULL}},
    {"in=3x6x33x31 out=3 kernel=5x5 pad=2", {"basis=36x36 tiles=1x1", "basis=20x20 tiles=3x2", NULL}},
    {"in=3x2x30x33 out=4 kernel=5x4 stride=2x3 pad=2", {"basis=18x14 tiles=1x1", "basis=10x8 tiles=2x2", NULL}},
    {"in=3x4x30x33 out=4 groups=4 kernel=3x4 dilation=2x3 pad=3",
     {"basis=36x36 tiles=1x1", "basis=20x24 tiles=3x3", NULL}},
    {"in=4x8x19x18 out=8 groups=8 kernel=4x3 pad=2:0x1:3 layout=last",
     {"basis=21x21 tiles=1x1", "basis=12x14 tiles=3x2", NULL}},
    {"in=2x6x20x20 out=4 groups=2 kernel=3x3 pad=1 layout=last dtype=fp16",
     {"basis=21x24 tiles=1x1", "basis=12x12 tiles=2x2", NULL}},
    {"in=5x24x20x20 out=24 groups=24 kernel=5x5 pad=2 layout=last dtype=fp16",
     {"basis=24x24 tiles=1x1", "basis=12x16 tiles=3x2", "basis=25x27 tiles=1x1"}},
    {"in=5x8x20x20 out=24 groups=8 kernel=5x5 pad=2 layout=last dtype=fp16",
     {"basis=24x24 tiles=1x1", "basis=12x16 tiles=3x2", NULL}},
    {"in=2x48x56x56 out=48 groups=48 kernel=7x7 pad=3 layout=last dtype=bf16",
     {"basis=60x60 tiles=1x1", "basis=25x25 tiles=3x3", "basis=35x60 tiles=2x1"}},
    {"in=3x12x19x18 out=12 groups=12 kernel=4x3 pad=2:0x1:3 layout=last",
     {"basis=21x21 tiles=1x1", "basis=12x14 tiles=3x2", NULL}},
    {"in=3x10x17x18 out=10 groups=10 kernel=3x3 pad=2 mode=reflect layout=last dtype=fp16",
     {"basis=21x24 tiles=1x1", NULL, NULL}},
    {"in=2x8x9x10x11 out=8 groups=8 kernel=3x2x3 pad=1 layout=last dtype=bf16",
     {"basis=10x12x12 tiles=1x1x1", "basis=6x7x8 tiles=3x2x2", NULL}},
    {"in=5x16x200 out=16 groups=16 kernel=31 pad=15 layout=last dtype=fp16",
     {"basis=216 tiles=1", "basis=64 tiles=6", "basis=225 tiles=1"}},
    {"in=3x5x17x18 out=5 groups=5 kernel=3x3 pad=2 mode=reflect", {"basis=21x24 tiles=1x1", NULL, NULL}},
    {"in=3x2x17x18 out=3 kernel=3x3 pad=1 mode=circular dtype=bf16", {"basis=20x20 tiles=1x1", NULL, NULL}},
    {"in=3x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=fp64",
     {"basis=24x24 tiles=1x1", "basis=12x16 tiles=3x2", NULL}},
    {"in=3x6x9x10x11 out=6 groups=6 kernel=3x2x3 pad=1",
     {"basis=10x12x12 tiles=1x1x1", "basis=6x7x8 tiles=3x2x2", NULL}},
    {"in=2x2x12x12x12 out=3 kernel=5x5x5 pad=2", {"basis=15x15x16 tiles=1x1x1", "basis=8x9x10 tiles=3x3x2", NULL}},
    {"in=5x7x200 out=7 groups=7 kernel=31 pad=15", {"basis=216 tiles=1", "basis=64 tiles=6", "basis=225 tiles=1"}},
    {"in=5x7x1000 out=7 groups=7 kernel=1000 pad=999:0", {"basis=2000 tiles=1", "basis=2048 tiles=1", NULL}},
    {"in=3x5x1500 out=5 groups=5 kernel=501 pad=250 layout=last", {"basis=2048 tiles=1", "basis=4096 tiles=1", NULL}},
    {"in=3x4x4000 out=4 groups=4 kernel=4000 pad=3999:0 dtype=bf16",
     {"basis=8192 tiles=1", "basis=16384 tiles=1", NULL}},
    {"in=3x3x9000 out=3 groups=3 kernel=1500 pad=700", {"basis=32768 tiles=1", "basis=65536 tiles=1", NULL}},
    {"in=2x3x60000 out=3 groups=3 kernel=300 pad=299:0 dtype=fp16",
     {"basis=65536 tiles=1", "basis=131072 tiles=1", NULL}},
    {"in=2x2x100000 out=2 groups=2 kernel=200 pad=100",
     {"basis=262144 tiles=1", "basis=524288 tiles=1", "basis=2097152 tiles=1"}},
    {"in=40x1x1024 out=1 kernel=33 pad=16", {"basis=2048 tiles=1", NULL, NULL}},
    {"in=300x1x90 out=1 kernel=9 pad=4", {"basis=100 tiles=1", NULL, NULL}},
    {"in=5x3x100 out=8 kernel=9 pad=4", {"basis=105 tiles=1", "basis=24 tiles=7", NULL}},
    {"in=5x8x100 out=3 kernel=9 pad=4 dtype=fp16", {"basis=108 tiles=1", "basis=27 tiles=6", NULL}},
};

/* Family fused does not compute backward data if the padding must be folded. */
static bool is_fused(const conv_fft_problem *p, int pass) { return pass != 1 || p->padding == CONV_FFT_PAD_ZEROS; }

/* A problem and one of its grids. */
typedef struct fused_case {
    const char *line, *grid;
    int number;
    bool shifts;
} fused_case;

static void check_fused(int64_t i, void *cases) {
    const fused_case *const c = (const fused_case *)cases + i;
    const conv_fft_problem p = test_problem(c->line);
    generator g = generator_create((uint64_t)c->number);
    layer l = layer_create(&p, &g);
    char strategy[256], text[1024], problem[512];
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    snprintf(strategy, sizeof strategy, "fused %s dilation=%s spectrum=%s", c->grid, c->shifts ? "shift" : "step",
             p.dtype == CONV_FFT_FP64 ? "fp64" : "fp32");
    describe_problem(&p, problem, sizeof problem);
    snprintf(text, sizeof text, "%s\n            %s", problem, strategy);
    case_begin(text, NULL);
    for (int pass = 0; pass < 3; pass++)
        options.strategy[pass] = is_fused(&p, pass) ? strategy : NULL;
    conv_fft_plan *plan = test_plan(device_context(), &p, &options);
    conv_fft_description d;
    for (int pass = 0; plan && pass < 3; pass++) {
        check_status(conv_fft_plan_describe(plan, strategy_passes[pass], &d), "conv_fft_plan_describe");
        /* Family long1d takes over what it computes; the fields are the same. */
        if (is_fused(&p, pass) && strcmp(strchr(d.strategy, ' '), strchr(strategy, ' ')) != 0)
            case_fail("the plan has another strategy: %s", d.strategy);
    }
    if (plan)
        layer_check_all(&l, plan);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

static void forced_strategies(void **state) {
    enum {
        PROBLEMS = sizeof problems / sizeof problems[0],
        GRIDS = 3
    };
    NEED_DEVICE(state);
    fused_case cases[PROBLEMS * GRIDS];
    case_list list = {.name = "gpu_layers_fused"};
    for (int i = 0; i < PROBLEMS; i++)
        for (int n = 0; n < GRIDS && problems[i].grids[n]; n++) {
            const bool shifts = strstr(problems[i].line, "dilation") && n == 1;
            cases[list.count] = (fused_case){problems[i].line, problems[i].grids[n], i, shifts};
            case_list_add(&list, "%s %s", problems[i].line, problems[i].grids[n]);
        }
    device_each(&list, check_fused, cases);
    assert_int_equal(case_failures(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(forced_strategies)};
    gpu_read_filters();
    const int status =
        gpu_exit_status(cmocka_run_group_tests_name("fused layers on a GPU", tests, device_gpu_setup, device_teardown));
    print_worst_ratios("fused on a GPU");
    return status;
}
