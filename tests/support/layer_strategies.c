/* SPDX-License-Identifier: Apache-2.0 */
#include "support/layer_strategies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/layer.h"
#include "support/strategy_lines.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static conv_fft_plan *plan_of(const conv_fft_problem *p, const conv_fft_plan_options *options) {
    conv_fft_plan *plan = test_plan(device_context(), p, options);
    assert_non_null(plan);
    return plan;
}

/* The plan has these strategies, except for chunk and groups: a plan rounds the chunk to whole samples or parts of one,
 * and groups must divide the layer's groups. */
static bool check_described(const conv_fft_plan *plan, const strategies *s) {
    conv_fft_description d;
    for (int pass = 0; pass < 3; pass++) {
        const char *chunk = strstr(s->line[pass], " chunk=");
        if (!check_status(conv_fft_plan_describe(plan, strategy_passes[pass], &d), "conv_fft_plan_describe"))
            return false;
        if (!chunk || memcmp(d.strategy, s->line[pass], (size_t)(chunk - s->line[pass])) != 0)
            return case_fail("the plan has another strategy: %s", d.strategy);
    }
    return true;
}

static bool check_forced(layer *l, const strategies *s) {
    char text[1536], problem[512];
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    describe_problem(&l->problem, problem, sizeof problem);
    snprintf(text, sizeof text, "%s\n            %s\n            %s\n            %s", problem, s->line[0], s->line[1],
             s->line[2]);
    case_begin(text, NULL);
    for (int pass = 0; pass < 3; pass++)
        options.strategy[pass] = s->line[pass];
    conv_fft_plan *plan = test_plan(device_context(), &l->problem, &options);
    const bool ok = plan && check_described(plan, s) && layer_check_all(l, plan);
    conv_fft_plan_destroy(plan);
    return ok;
}

/* With kept spectra of x and w; with one tile all passes have the same basis. */
static bool check_kept_forced(layer *l, const strategies *s) {
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
    for (int pass = 0; pass < 3; pass++)
        options.strategy[pass] = s->line[0];
    case_begin(s->line[0], NULL);
    conv_fft_plan *plan = test_plan(device_context(), &l->problem, &options);
    const bool ok = plan && layer_check_kept(l, plan);
    conv_fft_plan_destroy(plan);
    return ok;
}

void check_layer_of_families(const char *line, int64_t seed, const char *const family[3], bool same_bits) {
    const conv_fft_problem p = test_problem(line);
    generator g = generator_create((uint64_t)seed);
    layer l = layer_create(&p, &g);
    char problem[512];
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    describe_problem(&p, problem, sizeof problem);
    case_begin(problem, NULL);
    for (int pass = 0; pass < 3; pass++)
        options.strategy[pass] = family[pass];
    conv_fft_plan *plan = test_plan(device_context(), &p, &options);
    conv_fft_description d;
    for (int pass = 0; plan && pass < 3; pass++) {
        check_status(conv_fft_plan_describe(plan, strategy_passes[pass], &d), "conv_fft_plan_describe");
        if (family[pass] && strcmp(d.strategy, family[pass]) != 0)
            case_fail("the plan has another strategy: %s", d.strategy);
    }
    if (plan)
        layer_check_all(&l, plan);
    if (plan && same_bits)
        layer_check_same_bits(&l, plan, p.rank == 1);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

static strategies with_chunk(const strategies *s, const char *chunk, const char *groups) {
    strategies out;
    char line[256];
    for (int pass = 0; pass < 3; pass++) {
        edit_strategy(s->line[pass], "chunk", chunk, line, sizeof line);
        edit_strategy(line, "groups", groups, out.line[pass], sizeof out.line[pass]);
    }
    return out;
}

static const char *const overlaps[] = {"save", "add"}, *const dilations[] = {"step", "shift"},
                         *const products[] = {"blas", "loop"};

/* Each problem with the number of tiles that must be possible. */
static const struct {
    const char *line;
    int64_t tiles;
} tiled_problems[] = {
    {"in=2x3x40 out=4 kernel=7 pad=3", 4},
    {"in=2x3x20x23 out=4 kernel=3x5 pad=1x2", 3},
    {"in=2x3x20x23 out=4 kernel=5x4 pad=2:0x1:3 mode=reflect", 3},
    {"in=2x4x19x18 out=4 kernel=4x3 pad=2 mode=circular groups=2 layout=last", 3},
    {"in=2x3x17x18 out=4 kernel=3x3 pad=4 mode=replicate dtype=fp16", 2},
    {"in=2x3x31x29 out=4 kernel=5x4 stride=2x3 pad=2 dtype=fp64", 2},
    {"in=2x3x30x33 out=4 kernel=3x4 dilation=2x3 pad=3", 2},
    {"in=2x3x33x31 out=4 kernel=4x3 stride=2 dilation=3 pad=4 mode=reflect dtype=bf16 gw=fp32", 2},
    {"in=2x4x9x10x11 out=4 kernel=3x2x3 pad=1 groups=4", 2},
    {"in=2x4x17x18 out=6 kernel=3x4 pad=1 groups=2 dtype=bf16 w=fp32", 2},
};

/* Under sanitizers each run takes some cases, chosen by the seed. 5 has no common divisor with the numbers of
 * strategies. */
enum {
    STEP = TEST_AMOUNT(1, 5)
};

enum {
    PROBLEMS = sizeof tiled_problems / sizeof tiled_problems[0],
    WAYS = 4
};

/* One problem with one overlap and dilation, with every number of tiles. */
static void check_tiled(int64_t i, void *unused) {
    (void)unused;
    if (!case_in_turn(i, STEP))
        return;
    const int64_t way = i % WAYS, number = i / WAYS;
    const conv_fft_problem p = test_problem(tiled_problems[number].line);
    generator g = test_generator((uint64_t)number);
    layer l = layer_create(&p, &g);
    for (int64_t tiles = 1; tiles <= tiled_problems[number].tiles; tiles++) {
        strategies s;
        if (!find_strategies(device_context(), &p, tiles, overlaps[way & 1], dilations[way >> 1], products[tiles & 1],
                             &s)) {
            case_fail("no basis for %d tiles, overlap=%s dilation=%s", (int)tiles, overlaps[way & 1],
                      dilations[way >> 1]);
            break;
        }
        const strategies one_row = with_chunk(&s, "1", "1"), few_rows = with_chunk(&s, "5", "2");
        check_forced(&l, &s);
        check_forced(&l, &one_row);
        check_forced(&l, &few_rows);
    }
    layer_destroy(&l);
}

void ways_tiled(void **state) {
    NEED_DEVICE(state);
    case_list list = {.name = "gpu_ways_tiled"};
    for (int i = 0; i < PROBLEMS * WAYS; i++)
        case_list_add(&list, "%s overlap=%s dilation=%s", tiled_problems[i / WAYS].line, overlaps[i & 1],
                      dilations[i % WAYS >> 1]);
    device_each(&list, check_tiled, NULL);
    assert_int_equal(case_failures(), 0);
}

/* --------------------------------------------------------------------------------------------------------- segments */

static const char *const cut_problems[] = {
    "in=2x3x40 out=4 kernel=9 pad=4",
    "in=2x3x18x21 out=4 kernel=7x6 pad=1:3x2",
    "in=2x3x20x18 out=4 kernel=6x5 pad=2:0x1:3 mode=reflect",
    "in=2x4x12x13 out=4 kernel=9x13 pad=4x6 mode=circular groups=2 layout=last",
    "in=2x3x17x11 out=4 kernel=3x17 pad=4 mode=replicate dtype=fp16",
    "in=1x2x23x37 out=3 kernel=11x1 stride=4x2 pad=5:1x0 mode=reflect wlayout=last",
    "in=2x3x31x29 out=4 kernel=7x8 stride=2x3 pad=2 dtype=fp64",
    "in=2x3x30x33 out=4 kernel=4x5 dilation=2x3 pad=3",
    "in=2x3x33x31 out=4 kernel=5x4 stride=2 dilation=3 pad=4 mode=reflect dtype=bf16 gw=fp32",
    "in=2x4x9x10x11 out=4 kernel=3x4x5 pad=1 groups=4",
    "in=2x2x9x10x13 out=4 kernel=4x3x6 stride=2x1x3 pad=2 mode=circular dtype=bf16",
    "in=3x2x5x9 out=2 kernel=9x17 pad=4x8",
};

enum {
    CUT_PROBLEMS = sizeof cut_problems / sizeof cut_problems[0],
    CUT_WAYS = 3 * 3 * 2 * 2 /* segments, tiles, overlap, dilation */
};

/* One problem with its taps in two and three segments, or in single taps. */
typedef struct cut_case {
    int number, segments, tiles;
    bool add, shift;
} cut_case;

static atomic_int cut_cases;

static bool cut_case_of(int i, cut_case *c) {
    static const int segments[] = {2, 3, 100};
    const int way = i % CUT_WAYS;
    *c = (cut_case){.number = i / CUT_WAYS,
                    .segments = segments[way % 3],
                    .tiles = way / 3 % 3 + 1,
                    .add = way / 9 % 2,
                    .shift = way / 18 != 0};
    const bool dilated = test_problem(cut_problems[c->number]).dilation[0] > 1;
    /* Without dilation there is nothing to shift, and with one tile nothing to add. Windows of gradients of x cannot
     * have shifts, tiles and segments at once. */
    return !(c->shift && (!dilated || c->tiles > 1)) && !(c->add && c->tiles == 1);
}

static void check_cut(int64_t i, void *cases) {
    if (!case_in_turn(i, STEP))
        return;
    const cut_case *const c = (const cut_case *)cases + i;
    const conv_fft_problem p = test_problem(cut_problems[c->number]);
    strategies s;
    if (!find_cut_strategies(device_context(), &p, c->tiles, c->segments, overlaps[c->add], dilations[c->shift],
                             products[c->tiles & 1], &s)) {
        if (c->tiles == 1) /* short inputs have no more */
            case_fail("no basis for %d tiles and %d segments", c->tiles, c->segments);
        return;
    }
    generator g = test_generator((uint64_t)c->number);
    layer l = layer_create(&p, &g);
    const strategies one_row = with_chunk(&s, "1", "1"), few_rows = with_chunk(&s, "5", "2");
    check_forced(&l, &s);
    check_forced(&l, &one_row);
    check_forced(&l, &few_rows);
    if (c->tiles == 1)
        check_kept_forced(&l, &s);
    layer_destroy(&l);
    cut_cases++;
}

void ways_cut(void **state) {
    NEED_DEVICE(state);
    case_list list = {.name = "gpu_ways_cut"};
    cut_case cases[CUT_PROBLEMS * CUT_WAYS];
    for (int i = 0; i < CUT_PROBLEMS * CUT_WAYS; i++)
        if (cut_case_of(i, &cases[list.count])) {
            const cut_case *const c = &cases[list.count];
            case_list_add(&list, "%s segments=%d tiles=%d overlap=%s dilation=%s", cut_problems[c->number], c->segments,
                          c->tiles, overlaps[c->add], dilations[c->shift]);
        }
    device_each(&list, check_cut, cases);
    assert_int_equal(case_failures(), 0);
    assert_true(device_gpu() || cut_cases > 100 / STEP / 2);
}

/* All workspace limits from the smallest to the largest give the same layer. */
void ways_chunked(void **state) {
    NEED_DEVICE(state);
    static const char *const lines[] = {"in=7x18x12x13 out=18 kernel=3x4 pad=1 groups=2",
                                        "in=5x18x50 out=18 kernel=9 pad=4 groups=2 dtype=fp16",
                                        "in=6x9x11x12 out=4 kernel=3x3 pad=2 mode=reflect layout=last stride=2",
                                        "in=4x2x8x7x6 out=3 kernel=3x3x3 dtype=fp64"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (!case_in_turn((int64_t)i, TEST_AMOUNT(1, 4)))
            continue;
        const conv_fft_problem p = test_problem(lines[i]);
        generator g = test_generator(i);
        layer l = layer_create(&p, &g);
        conv_fft_plan_options options;
        conv_fft_plan_options_init(&options);
        const uint64_t least = smallest_workspace_limit(device_context(), &p, &options);
        size_t most;
        conv_fft_plan *whole = plan_of(&p, NULL);
        assert_int_equal(conv_fft_plan_workspace(whole, CONV_FFT_BACKWARD, &most), CONV_FFT_SUCCESS);
        conv_fft_plan_destroy(whole);
        assert_true(least > 0 && least < most);
        for (int step = 0; step <= 6; step++) {
            options.workspace_limit = least + (most - least) * (uint64_t)step / 6;
            conv_fft_plan *plan = plan_of(&p, &options);
            for (int pass = 0; pass < 3; pass++) {
                size_t bytes;
                assert_int_equal(conv_fft_plan_workspace(plan, strategy_passes[pass], &bytes), CONV_FFT_SUCCESS);
                assert_true(bytes <= options.workspace_limit);
            }
            assert_true(layer_check_all(&l, plan));
            conv_fft_plan_destroy(plan);
        }
        layer_destroy(&l);
    }
}

void ways_forced_chunks(void **state) {
    NEED_DEVICE(state);
    static const char *const numbers[] = {"0", "1", "2", "3", "5", "9"};
    const conv_fft_problem p = test_problem("in=5x6x12x13 out=6 kernel=3x4 pad=1 groups=3");
    generator g = test_generator(3);
    layer l = layer_create(&p, &g);
    const strategies start = chosen_strategies(device_context(), &p);
    for (int rows = 0; rows < 6; rows++)
        for (int groups = 0; groups < 4; groups++) {
            if (!case_in_turn(4 * rows + groups, STEP))
                continue;
            const strategies s = with_chunk(&start, numbers[rows], numbers[groups]);
            assert_true(check_forced(&l, &s));
        }
    layer_destroy(&l);
}
