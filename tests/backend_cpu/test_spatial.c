/* SPDX-License-Identifier: Apache-2.0 */
/* Family `spatial` on the CPU: layers whose channels and positions fill vectors, tiles and packed blocks, and leave
 * parts of them empty, with every set of kernels and several numbers of threads. Small layers of all kinds are in
 * tests/conv/test_random.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "conv/plan/context.h"
#include "support/cpu_spatial_check.h"
#include "support/device.h"
#include "support/layer.h"
#include "support/selection.h"

#include "cpu/device.h"

enum {
    COUNT = TEST_AMOUNT(24, 8), /* random layers for each set of kernels */
    THREADS = 3
};

static int64_t one_of(generator *g, const int64_t *list, int64_t count) { return list[random_int(g, 0, count - 1)]; }

static void random_wide_channels(generator *g, conv_fft_problem *p) {
    static const int64_t channels[] = {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 40, 48, 49, 65},
                         groups[] = {1, 3, 8, 15, 16, 17, 33};
    enum {
        CHANNELS = sizeof channels / sizeof channels[0],
        GROUPS = sizeof groups / sizeof groups[0]
    };
    if (random_once_in(g, 3)) { /* depthwise, perhaps with a multiplier */
        p->groups = one_of(g, groups, GROUPS);
        p->in_channels = p->groups;
        p->out_channels = p->groups * random_int(g, 1, 3);
        p->batch = random_once_in(g, 3) ? random_int(g, 14, 18) : random_int(g, 1, 3);
        return;
    }
    p->groups = random_once_in(g, 4) ? 2 : 1;
    p->in_channels = p->groups * one_of(g, channels, CHANNELS);
    p->out_channels = p->groups * one_of(g, channels, CHANNELS);
    p->batch = random_int(g, 1, 2);
}

/* Zero padding: every pass has the family. */
static conv_fft_problem random_wide_problem(generator *g) {
    static const int64_t longest[] = {230, 19, 7}, longest_kernel[] = {9, 5, 3};
    conv_fft_problem p;
    conv_fft_problem_init(&p, (int)random_int(g, 1, 3));
    random_wide_channels(g, &p);
    for (int a = 0; a < p.rank; a++) {
        const bool plain = random_once_in(g, 2);
        p.kernel[a] = random_int(g, 1, longest_kernel[p.rank - 1]);
        p.stride[a] = plain ? 1 : random_int(g, 1, 3);
        p.dilation[a] = plain ? 1 : random_int(g, 1, 3);
        const int64_t reach = (p.kernel[a] - 1) * p.dilation[a] + 1;
        p.pad_before[a] = random_int(g, 0, reach);
        p.pad_after[a] = random_once_in(g, 2) ? p.pad_before[a] : random_int(g, 0, reach);
        p.input[a] = reach + random_int(g, 0, longest[p.rank - 1]);
    }
    static const conv_fft_dtype dtypes[] = {CONV_FFT_FP32, CONV_FFT_FP32, CONV_FFT_FP64, CONV_FFT_BF16};
    p.dtype = dtypes[random_int(g, 0, 3)];
    p.tensor_layout = (conv_fft_layout)random_int(g, 0, 1);
    p.weight_layout = (conv_fft_layout)random_int(g, 0, 1);
    return p;
}

static conv_fft_plan_options spatial_options(void) {
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    for (int pass = 0; pass < 3; pass++)
        options.strategy[pass] = "spatial";
    return options;
}

static void check_layer(const conv_fft_problem *p, generator *g) {
    const conv_fft_plan_options options = spatial_options();
    layer l = layer_create(p, g);
    conv_fft_plan *plan = test_plan(device_context(), p, &options);
    assert_non_null(plan);
    layer_check_all(&l, plan);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

static void check_wide_problems(void) {
    for (int i = 0; i < COUNT; i++) {
        char text[1024];
        generator g = test_generator((uint64_t)i);
        const conv_fft_problem p = random_wide_problem(&g);
        describe_problem(&p, text, sizeof text);
        case_begin(text, NULL);
        check_layer(&p, &g);
    }
}

static void with_each_set_of_kernels(void (*check)(void)) {
    cf_cpu_device *const device = (cf_cpu_device *)device_context()->device;
    const cf_kernels *const best = device->kernels;
    int count;
    const cf_kernels *const *const list = cf_cpu_kernels_list(&count);
    for (int i = 0; i < count; i++) {
        device->kernels = list[i];
        check();
    }
    device->kernels = best;
    assert_int_equal(case_failures(), 0);
}

static void test_wide_layers(void **state) {
    NEED_DEVICE(state);
    with_each_set_of_kernels(check_wide_problems);
}

/* ---------------------------------------------------------------------------------------------------- few channels */

/* Layers with positions as vectors in this pass, and whether their rows are joined. */
typedef struct few_channels {
    const char *line;
    int pass;
    bool joined;
} few_channels;

static const few_channels few_channels_list[] = {
    {"in=2x5x37x41 out=1 kernel=3x3 pad=1", 0, true},
    {"in=2x2x61x67 out=18 kernel=5x5 stride=3x2 pad=2", 1, true},
    {"in=1x1x65x61 out=9 kernel=4x1 stride=1x3 pad=1", 1, true}, /* no tap reaches the longest columns of gx */
    {"in=1x1x61x90 out=40 kernel=4x7 dilation=2x1 pad=3", 1, true},
    {"in=3x4x40x131 out=4 groups=2 kernel=3x2 stride=2 dilation=1x2", 0, false},
    {"in=3x4x40x131 out=4 groups=2 kernel=3x2 stride=1x2", 1, true},
    {"in=1x40x90x33 out=2 kernel=3x3 pad=1x2 mode=reflect", 0, true},
    {"in=1x18x901 out=2 kernel=9 stride=2 pad=4 dtype=bf16", 0, false},
    {"in=2x2x9x20x33 out=1 kernel=3x3x3 pad=1 dtype=fp64", 0, true},
    {"in=2x1x9x20x131 out=20 kernel=3x3x2 stride=2 pad=1x0x1 layout=last", 1, true},
    {"in=1x2x301x300 out=2 kernel=3x3 pad=1", 0, true},
    {"in=1x1x300007 out=1 kernel=5 stride=2", 1, true},
    {"in=1x1x60x401 out=2 kernel=3x33 pad=1x16 groups=1", 0, true},
    {"in=3x4x40x131 out=4 groups=2 kernel=3x3 pad=1", 2, true},
    {"in=2x3x37x41 out=2 kernel=5x5 stride=2x1 dilation=1x2 pad=2", 2, false},
    {"in=1x1x30001 out=1 kernel=19 pad=9", 2, true},
    {"in=1x3x9x20x33 out=1 kernel=3x2x3 pad=1 dtype=fp64 mode=reflect", 2, true},
    {"in=1x2x9001 out=2 kernel=5 pad=2 dtype=fp16", 2, true},
    {"in=2x2x300x70 out=2 kernel=9x1 dilation=30x1", 2, true}}; /* rows that no tap reads */

static void check_few_channels(void) {
    for (size_t i = 0; i < sizeof few_channels_list / sizeof few_channels_list[0]; i++) {
        const few_channels *const one = &few_channels_list[i];
        const conv_fft_problem p = test_problem(one->line);
        const cf_convolution_desc desc = test_convolution(&p, one->pass);
        bool joined;
        if (!has_positions_as_vectors(device_context()->device, &desc, &joined) || joined != one->joined)
            fail_msg("%s: positions are no vectors, or rows are%s joined", one->line, joined ? "" : " not");
        generator g = test_generator((uint64_t)i);
        case_begin(one->line, NULL);
        check_layer(&p, &g);
    }
}

static void test_few_channels(void **state) {
    NEED_DEVICE(state);
    with_each_set_of_kernels(check_few_channels);
}

/* Tiles of whole rows. Kernels beside short rows: even, longer than two rows, and of one tap. */
static void check_whole_rows(void) {
    generator g = test_generator(1);
    for (int columns = 1; columns <= 16; columns++) {
        const int taps = (int)random_int(&g, 1, 2 * columns + 3), before = (int)random_int(&g, 0, taps - 1),
                  groups = random_once_in(&g, 3) ? 2 : 31;
        char line[256];
        snprintf(line, sizeof line,
                 "in=%dx%dx2x%dx%d out=%d groups=%d kernel=2x3x%d pad=1:0x1:1x%d:%d layout=%s dtype=%s",
                 groups == 2 ? 31 : 3, groups, (int)random_int(&g, 1, 9), columns, groups, groups, taps, before,
                 taps - 1 - before, random_once_in(&g, 4) ? "last" : "first", random_once_in(&g, 4) ? "fp64" : "fp32");
        const conv_fft_problem p = test_problem(line);
        for (int pass = 0; pass < 2; pass++) {
            const cf_convolution_desc desc = test_convolution(&p, pass);
            assert_int_equal(has_whole_rows(device_context()->device, &desc), columns <= CF_TILE_MAX_ROW);
        }
        case_begin(line, NULL);
        check_layer(&p, &g);
    }
}

static void test_whole_rows(void **state) {
    NEED_DEVICE(state);
    with_each_set_of_kernels(check_whole_rows);
}

/* ----------------------------------------------------------------------------------------------------- few samples */

/* Layers whose packed weights, or sums of gw, stay in the caches in all passes. */
static void check_few_samples(void) {
    static const char *const lines[] = {"in=1x150x7x9 out=130 kernel=3x3 pad=1",
                                        "in=3x100x6x5 out=128 kernel=5x5 pad=2x1 mode=circular",
                                        "in=2x128x21 out=97 kernel=7 dilation=2 pad=6",
                                        "in=2x240x6x6 out=160 kernel=3x3 groups=2 dtype=fp16",
                                        "in=2x100x4x5x6 out=97 kernel=3x2x3 pad=1 layout=last",
                                        "in=2x180x3x5 out=190 kernel=1x1",
                                        "in=1x66x5x5 out=67 kernel=4x4 pad=2 wlayout=last dtype=fp64"};
    cf_device *const device = device_context()->device;
    const int threads = device->threads;
    device->threads = 2; /* more would need more blocks of results */
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const conv_fft_problem p = test_problem(lines[i]);
        for (int pass = 0; pass < 3; pass++) {
            const cf_convolution_desc desc = test_convolution(&p, pass);
            if (!packs_once(device, &desc))
                fail_msg("%s: pass %d writes packed weights to memory", lines[i], pass);
        }
        generator g = test_generator((uint64_t)i);
        case_begin(lines[i], NULL);
        check_layer(&p, &g);
    }
    device->threads = threads;
}

static void test_few_samples(void **state) {
    NEED_DEVICE(state);
    with_each_set_of_kernels(check_few_samples);
}

/* ---------------------------------------------------------------------------------------------------- large layers */

/* Tasks and cells have parts of the rows, planes or volumes; those at the ends are smaller. */
static void test_parts_of_a_sample(void **state) {
    NEED_DEVICE(state);
    static const char *const lines[] = {"in=1x40x6001 out=24 kernel=5 pad=2",
                                        "in=1x33x9001 out=9 kernel=6 stride=3 dilation=2 pad=7",
                                        "in=1x5x30011 out=3 kernel=4 stride=2 pad=1",
                                        "in=1x3x20011 out=6 groups=3 kernel=9 stride=2 pad=4",
                                        "in=17x1x20011 out=1 kernel=5 dilation=3 pad=6",
                                        "in=1x1x200003 out=17 kernel=3 pad=1",
                                        "in=1x2x301x300 out=33 kernel=3x3 stride=2x1 pad=1",
                                        "in=1x1x71x73x40 out=33 kernel=3x1x1 pad=1x0x0",
                                        "in=1x2x31x32x90 out=2 groups=2 kernel=3x3x3 pad=1",
                                        "in=1x2x21x22x90 out=2 groups=2 kernel=3x3x3 stride=2 pad=1"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const conv_fft_problem p = test_problem(lines[i]);
        generator g = test_generator((uint64_t)i);
        case_begin(lines[i], NULL);
        check_layer(&p, &g);
    }
    assert_int_equal(case_failures(), 0);
}

/* A kernel that reads far apart elements: to divide the positions would not make what a task reads smaller, and each
 * task would pack nearly the whole signal. */
static void test_wide_dilation(void **state) {
    NEED_DEVICE(state);
    conv_fft_problem p = test_problem("in=1x1x200000 out=1 kernel=2 dilation=150000");
    const conv_fft_plan_options options = spatial_options();
    conv_fft_plan *plan = test_plan(device_context(), &p, &options);
    generator g = test_generator(0);
    layer l = layer_create(&p, &g);
    assert_non_null(plan);
    const clock_t start = clock();
    assert_true(layer_check_all(&l, plan));
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (seconds > TEST_AMOUNT(2, 10))
        fail_msg("%.1f seconds", seconds);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

/* Spectra of this layer are faster, but never as small as the packed weights. */
static void test_workspace_limit(void **state) {
    NEED_DEVICE(state);
    const conv_fft_problem p = test_problem("in=8x256x14x14 out=256 kernel=9x9 pad=4");
    conv_fft_plan_options options = spatial_options();
    conv_fft_plan *plan;
    size_t bytes = 0, own = 0;
    options.passes = CONV_FFT_FORWARD;
    assert_non_null(plan = test_plan(device_context(), &p, &options));
    assert_int_equal(conv_fft_plan_workspace(plan, CONV_FFT_FORWARD, &bytes), CONV_FFT_SUCCESS);
    conv_fft_plan_destroy(plan);
    options.strategy[0] = options.strategy[1] = options.strategy[2] = NULL;
    options.tuning = CONV_FFT_TUNE_OFF;
    options.workspace_limit = bytes;
    assert_non_null(plan = test_plan(device_context(), &p, &options));
    assert_int_equal(conv_fft_plan_workspace(plan, CONV_FFT_FORWARD, &own), CONV_FFT_SUCCESS);
    assert_true(own <= bytes);
    conv_fft_plan_destroy(plan);
    options.workspace_limit = bytes - 1;
    assert_int_equal(smallest_workspace_limit(device_context(), &p, &options), bytes);
}

static const char *const pass_result[3] = {"y", "gx", "gw"};

/* The workspace grows with the channels and the kernel, not with the extents or the batch. */
static void test_workspace_of_large_layers(void **state) {
    NEED_DEVICE(state);
    static const char *const lines[] = {
        "in=1x64x1048576 out=64 kernel=9 pad=4",         "in=1x1x4194304 out=1 kernel=9 stride=2 pad=4",
        "in=1x16x512x512x512 out=16 kernel=3x3x3 pad=1", "in=1x64x512x512x512 out=64 kernel=3x3x3 pad=1 groups=64",
        "in=1024x64x112x112 out=64 kernel=3x3 pad=1",    "in=1024x1x66000 out=1 kernel=65536"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const conv_fft_problem p = test_problem(lines[i]);
        const conv_fft_plan_options options = spatial_options();
        conv_fft_plan *plan = test_plan(device_context(), &p, &options);
        assert_non_null(plan);
        /* 16 numbers for each of 65536 taps are 4 MiB, for each thread. */
        const size_t limit = (size_t)(32 + 16 * device_context()->device->threads) << 20;
        for (int pass = 0; pass < 3; pass++) {
            size_t bytes = 0;
            assert_int_equal(conv_fft_plan_workspace(plan, 1 << pass, &bytes), CONV_FFT_SUCCESS);
            if (bytes > limit)
                fail_msg("%s: %zu bytes of workspace for %s, more than %zu", lines[i], bytes, pass_result[pass], limit);
        }
        conv_fft_plan_destroy(plan);
    }
}

/* The errors of equal terms do not cancel, and grow with the length of a sum that is computed in one go. Such sums had
 * errors of 250 to 1100 units of rounding. */
static void check_equal_terms(const char *line, int pass, int64_t terms, int64_t results) {
    const conv_fft_problem p = test_problem(line);
    const ref_shape s = ref_shape_of(&p);
    const int64_t count[3] = {ref_output_count(&s), ref_input_count(&s), ref_weight_count(&s)};
    const conv_fft_plan_options options = spatial_options();
    conv_fft_plan *plan = test_plan(device_context(), &p, &options);
    size_t bytes = 0;
    assert_non_null(plan);
    assert_int_equal(conv_fft_plan_workspace(plan, 1 << pass, &bytes), CONV_FFT_SUCCESS);
    void *const workspace = test_alloc(bytes);
    float *numbers[3];
    for (int t = 0; t < 3; t++) {
        numbers[t] = test_alloc((size_t)count[t] * sizeof(float));
        for (int64_t i = 0; i < count[t]; i++)
            numbers[t][i] = 0.1f;
    }
    float *const y = numbers[0], *const x = numbers[1], *const w = numbers[2];
    const conv_fft_status status = pass == 0 ? conv_fft_forward(plan, x, w, NULL, y, workspace, bytes, NULL)
                                   : pass == 1
                                       ? conv_fft_backward_data(plan, w, y, x, 0, workspace, bytes, NULL)
                                       : conv_fft_backward_weights(plan, x, y, w, NULL, 0, workspace, bytes, NULL);
    assert_int_equal(status, CONV_FFT_SUCCESS);
    assert_int_equal(count[pass], results);
    for (int64_t i = 0; i < results; i++) {
        const double exact = (double)terms * 0.1f * (double)0.1f,
                     error = fabs(numbers[pass][i] / exact - 1) * (1 << 24);
        if (error > 100)
            fail_msg("%s: result %lld of %s has an error of %.0f units of rounding", line, (long long)i,
                     pass_result[pass], error);
    }
    for (int t = 0; t < 3; t++)
        free(numbers[t]);
    free(workspace);
    conv_fft_plan_destroy(plan);
}

static void test_long_sums(void **state) {
    NEED_DEVICE(state);
    check_equal_terms("in=1x8192x4x4 out=2 kernel=3x3", 0, 9 * 8192, 2 * 2 * 2);
    check_equal_terms("in=1x1x16400 out=1 kernel=16384", 0, 16384, 17);
    check_equal_terms("in=1x2x8 out=16384 kernel=1", 1, 16384, 2 * 8);
    check_equal_terms("in=1x1x1000000 out=1 kernel=1", 2, 1000000, 1);
    check_equal_terms("in=1x16x500000 out=8 kernel=1", 2, 500000, 16 * 8);
}

/* ---------------------------------------------------------------------------------------------------------- threads */

/* Results of all passes with this number of threads. */
static void results_with(int threads, const char *line, float *results[3]) {
    conv_fft_context_options context_options;
    conv_fft_context *context;
    conv_fft_context_options_init(&context_options);
    context_options.device = CONV_FFT_DEVICE_CPU;
    context_options.threads = threads;
    assert_int_equal(conv_fft_context_create(&context_options, &context), CONV_FFT_SUCCESS);
    const conv_fft_problem p = test_problem(line);
    const conv_fft_plan_options options = spatial_options();
    generator g = test_generator(0);
    layer l = layer_create(&p, &g);
    conv_fft_plan *plan = test_plan(context, &p, &options);
    assert_non_null(plan);
    assert_true(layer_check_all(&l, plan));
    const tensor *const tensors[3] = {&l.y.tensor, &l.gx.tensor, &l.gw.tensor};
    for (int i = 0; i < 3; i++) {
        const size_t bytes = (size_t)tensors[i]->count * sizeof(float);
        results[i] = test_alloc(bytes);
        memcpy(results[i], tensors[i]->memory.data, bytes);
    }
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
    conv_fft_context_destroy(context);
}

/* The bits of results do not depend on the number of threads: blocks of an output are added in one order. */
static void test_threads_give_the_same_bits(void **state) {
    NEED_DEVICE(state);
    static const char *const lines[] = {"in=3x20x33x18 out=40 kernel=3x3 pad=1",
                                        "in=1x40x40x9 out=8 kernel=5x3 stride=2",
                                        "in=5x24x30x30 out=24 kernel=5x5 pad=same groups=24",
                                        "in=1x70x300 out=130 kernel=5 dilation=2",
                                        "in=17x1x64 out=1 kernel=9",
                                        "in=1x8x9001 out=9 kernel=7 stride=2",
                                        "in=2x8x160x61 out=3 kernel=5x5 pad=2",
                                        "in=1x3x900x40 out=2 kernel=9x3 stride=2",
                                        "in=1x160x7x9 out=190 kernel=3x3 pad=1"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const conv_fft_problem p = test_problem(lines[i]);
        const ref_shape s = ref_shape_of(&p);
        const int64_t count[3] = {ref_output_count(&s), ref_input_count(&s), ref_weight_count(&s)};
        float *one[3], *several[3];
        results_with(1, lines[i], one);
        results_with(THREADS, lines[i], several);
        for (int t = 0; t < 3; t++) {
            assert_memory_equal(one[t], several[t], (size_t)count[t] * sizeof(float));
            free(one[t]);
            free(several[t]);
        }
    }
}

/* -------------------------------------------------------------------------------------------------------- refusals */

static void expect_refusal(const char *line, int pass, conv_fft_status expected, const char *text) {
    const conv_fft_problem p = test_problem(line);
    conv_fft_plan_options options;
    conv_fft_plan *plan = NULL;
    conv_fft_plan_options_init(&options);
    options.strategy[pass] = "spatial";
    assert_int_equal(conv_fft_plan_create(device_context(), &p, &options, &plan), expected);
    assert_non_null(strstr(conv_fft_last_error(), text));
}

static void test_refusals(void **state) {
    NEED_DEVICE(state);
    expect_refusal("in=1x1x66000 out=1 kernel=65537", 0, CONV_FFT_INVALID_ARGUMENT, "65536 taps");
    expect_refusal("in=1x1x5000 out=1 kernel=1 stride=1025", 0, CONV_FFT_INVALID_ARGUMENT, "strides up to 1024");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wide_layers),       cmocka_unit_test(test_few_channels),
        cmocka_unit_test(test_parts_of_a_sample), cmocka_unit_test(test_wide_dilation),
        cmocka_unit_test(test_workspace_limit),   cmocka_unit_test(test_workspace_of_large_layers),
        cmocka_unit_test(test_long_sums),         cmocka_unit_test(test_threads_give_the_same_bits),
        cmocka_unit_test(test_refusals),          cmocka_unit_test(test_few_samples),
        cmocka_unit_test(test_whole_rows),
    };
    return cmocka_run_group_tests(tests, device_cpu_setup, device_teardown);
}
