/* SPDX-License-Identifier: Apache-2.0 */
/* Every way to compute a layer gives the layer: tiles, overlap, products, chunks, threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "layer.h"
#include "strategies.h"

#include <stdio.h>
#include <string.h>

static conv_fft_context *context;

static conv_fft_problem parse(const char *line) {
    conv_fft_problem p;
    if (conv_fft_problem_parse(line, &p, NULL, 0) != CONV_FFT_SUCCESS)
        fail_msg("%s: %s", line, conv_fft_last_error());
    case_begin(line, "test_equivalence");
    return p;
}

static conv_fft_plan *plan_of(const conv_fft_problem *p, const conv_fft_plan_options *options) {
    conv_fft_plan *plan = test_plan(context, p, options);
    assert_non_null(plan);
    return plan;
}

/* All but the chunk, which a plan rounds to whole samples or parts of one, and the groups, which must divide those of
 * the layer. */
static void check_described(const conv_fft_plan *plan, const strategies *s) {
    conv_fft_description d;
    for (int pass = 0; pass < 3; pass++) {
        const char *chunk = strstr(s->line[pass], " chunk=");
        assert_non_null(chunk);
        assert_int_equal(conv_fft_plan_describe(plan, strategy_passes[pass], &d), CONV_FFT_SUCCESS);
        assert_memory_equal(d.strategy, s->line[pass], (size_t)(chunk - s->line[pass]));
    }
}

static void check_forced(layer *l, const strategies *s) {
    char text[1536], problem[512];
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    describe_problem(&l->problem, problem, sizeof problem);
    snprintf(text, sizeof text, "%s\n            %s\n            %s\n            %s", problem, s->line[0], s->line[1],
             s->line[2]);
    case_begin(text, "test_equivalence");
    for (int pass = 0; pass < 3; pass++)
        options.strategy[pass] = s->line[pass];
    conv_fft_plan *plan = plan_of(&l->problem, &options);
    check_described(plan, s);
    assert_true(layer_check_all(l, plan));
    conv_fft_plan_destroy(plan);
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

/* Each with the number of tiles it must be possible with. */
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
};

static void test_tiled(void **state) {
    (void)state;
    static const char *const overlaps[] = {"save", "add"}, *const dilations[] = {"step", "shift"},
                             *const products[] = {"blas", "loop"};
    for (size_t i = 0; i < sizeof tiled_problems / sizeof tiled_problems[0]; i++) {
        const conv_fft_problem p = parse(tiled_problems[i].line);
        generator g = generator_create(i);
        layer l = layer_create(&p, &g);
        for (int way = 0; way < 4; way++)
            for (int64_t tiles = 1; tiles <= tiled_problems[i].tiles; tiles++) {
                strategies s;
                if (!find_strategies(context, &p, tiles, overlaps[way & 1], dilations[way >> 1], products[tiles & 1],
                                     &s))
                    fail_msg("%s: no basis for %d tiles, overlap=%s dilation=%s", tiled_problems[i].line, (int)tiles,
                             overlaps[way & 1], dilations[way >> 1]);
                check_forced(&l, &s);
                const strategies one_row = with_chunk(&s, "1", "1"), few_rows = with_chunk(&s, "5", "2");
                check_forced(&l, &one_row);
                check_forced(&l, &few_rows);
            }
        layer_destroy(&l);
    }
}

/* All workspace limits from the least to the most give the same layer. */
static void test_chunked(void **state) {
    (void)state;
    static const char *const lines[] = {"in=7x6x12x13 out=9 kernel=3x4 pad=1 groups=3",
                                        "in=5x4x50 out=4 kernel=9 pad=4 groups=4 dtype=fp16",
                                        "in=6x3x11x12 out=4 kernel=3x3 pad=2 mode=reflect layout=last stride=2",
                                        "in=4x2x8x7x6 out=3 kernel=3x3x3 dtype=fp64"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const conv_fft_problem p = parse(lines[i]);
        generator g = generator_create(i);
        layer l = layer_create(&p, &g);
        conv_fft_plan_options options;
        conv_fft_plan_options_init(&options);
        const uint64_t least = smallest_workspace_limit(context, &p, &options);
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

static void test_forced_chunks(void **state) {
    (void)state;
    static const char *const numbers[] = {"0", "1", "2", "3", "5", "9"};
    const conv_fft_problem p = parse("in=5x6x12x13 out=6 kernel=3x4 pad=1 groups=3");
    generator g = generator_create(3);
    layer l = layer_create(&p, &g);
    const strategies start = chosen_strategies(context, &p);
    for (int rows = 0; rows < 6; rows++)
        for (int groups = 0; groups < 4; groups++) {
            const strategies s = with_chunk(&start, numbers[rows], numbers[groups]);
            check_forced(&l, &s);
        }
    layer_destroy(&l);
}

static void test_thread_counts(void **state) {
    (void)state;
    const conv_fft_problem p = parse("in=5x6x13x14 out=6 kernel=5x4 pad=2 groups=2");
    generator g = generator_create(6);
    layer l = layer_create(&p, &g);
    for (int threads = 1; threads <= 5; threads += 2) {
        conv_fft_context *own = test_context(threads);
        conv_fft_plan *plan = test_plan(own, &p, NULL);
        assert_true(plan && layer_check_all(&l, plan));
        conv_fft_plan_destroy(plan);
        conv_fft_context_destroy(own);
    }
    layer_destroy(&l);
}

static int create_context(void **state) {
    (void)state;
    context = test_context(0);
    return 0;
}

static int destroy_context(void **state) {
    (void)state;
    conv_fft_context_destroy(context);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiled),
        cmocka_unit_test(test_chunked),
        cmocka_unit_test(test_forced_chunks),
        cmocka_unit_test(test_thread_counts),
    };
    return cmocka_run_group_tests(tests, create_context, destroy_context);
}
