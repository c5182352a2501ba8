/* SPDX-License-Identifier: Apache-2.0 */
/* Measured tuning on a GPU: winners are right, other contexts and other processes find them, and kept spectra are
 * shared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/gpu.h"
#include "support/layer.h"
#include "support/temp_dirs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const lines[] = {
    "in=5x12x23x24 out=10 kernel=3x4 pad=1",
    "in=3x8x30x31 out=8 kernel=7x7 pad=3 groups=8 layout=last dtype=fp16 gw=fp32",
    "in=2x4x19x18 out=4 kernel=4x3 pad=2 mode=reflect groups=2 stride=2 dtype=bf16",
    "in=2x3x2000 out=4 kernel=300 pad=10:20 mode=circular dtype=fp64",
    "in=2x3x9x10x11 out=4 kernel=3x3x3 pad=1 mode=replicate dilation=2",
    "in=4x16x32x32 out=16 kernel=9x9",
};
enum {
    LINES = sizeof lines / sizeof lines[0],
    PATIENCE = 120000 /* milliseconds: what is tested is what a search finds, however busy the host compiles */
};

static conv_fft_tune_statistics statistics_of(conv_fft_context *context) {
    conv_fft_tune_statistics s;
    assert_int_equal(conv_fft_tune_stats(context, &s), CONV_FFT_SUCCESS);
    return s;
}

/* A folder of its own, so that programs that run at the same time do not find its records. */
static const char *cache_directory(void) { return scratch_path(gpu_cache_directory(), "tune"); }

static conv_fft_context *another_context(void) {
    conv_fft_context_options options;
    conv_fft_context *context = NULL;
    conv_fft_context_options_init(&options);
    options.device = 0;
    options.cache_directory = cache_directory();
    assert_int_equal(conv_fft_context_create(&options, &context), CONV_FFT_SUCCESS);
    return context;
}

/* Remove the records of an earlier run of this program. */
static int forget_records(void **state) {
    char name[1024];
    (void)state;
    conv_fft_context_destroy(device_context() ? another_context() : NULL); /* which makes the folder */
    while (device_context() && scratch_count(cache_directory(), ".jsonl", name) > 0)
        assert_int_equal(unlink(name), 0);
    return 0;
}

static void tuned_layers_are_right(void **state) {
    NEED_DEVICE(state);
    conv_fft_context *tuner = another_context();
    for (int i = 0; i < LINES; ++i) {
        const conv_fft_problem p = test_problem(lines[i]);
        conv_fft_plan_options options;
        conv_fft_plan_options_init(&options);
        options.tuning = CONV_FFT_TUNE_MEASURE;
        options.tune_milliseconds = PATIENCE;
        generator g = generator_create((uint64_t)i);
        layer l = layer_create(&p, &g);
        conv_fft_plan *plan = test_plan(tuner, &p, &options);
        assert_non_null(plan);
        layer_check_all(&l, plan);
        conv_fft_plan_destroy(plan);
        layer_destroy(&l);
    }
    assert_int_equal(statistics_of(tuner).records, 2 * LINES);
    conv_fft_context *reader = another_context();
    for (int i = 0; i < LINES; ++i) {
        const conv_fft_problem p = test_problem(lines[i]);
        conv_fft_plan *plans[2];
        conv_fft_context *const contexts[] = {tuner, reader};
        conv_fft_description d[2];
        for (int k = 0; k < 2; ++k) {
            plans[k] = test_plan(contexts[k], &p, NULL);
            assert_int_equal(conv_fft_plan_describe(plans[k], CONV_FFT_BACKWARD, &d[k]), CONV_FFT_SUCCESS);
            assert_true(d[k].measured_ms > 0.0);
            conv_fft_plan_destroy(plans[k]);
        }
        assert_string_equal(d[0].strategy, d[1].strategy);
    }
    assert_int_equal(statistics_of(reader).hits, 2 * LINES);
    assert_int_equal(statistics_of(reader).misses, 0);
    conv_fft_context_destroy(reader);
    conv_fft_context_destroy(tuner);
    assert_int_equal(case_failures(), 0);
}

static void kept_spectra_are_shared(void **state) {
    NEED_DEVICE(state);
    conv_fft_context *context = another_context();
    const conv_fft_problem p = test_problem(lines[0]);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.tuning = CONV_FFT_TUNE_MEASURE;
    options.tune_milliseconds = PATIENCE;
    options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
    generator g = generator_create(3);
    layer l = layer_create(&p, &g);
    conv_fft_plan *plan = test_plan(context, &p, &options);
    assert_non_null(plan);
    layer_check_kept(&l, plan);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
    conv_fft_context_destroy(context);
    assert_int_equal(case_failures(), 0);
}

/* ---- processes: rank 0 tunes, the others make plans of what they are sent */

enum {
    SHARED = 2, /* of the lines */
    RANKS = 4,
    TEXT_BYTES = 4096
};

/* The strategies of all passes of the lines, and how many look-ups found a record. */
static void describe_plans(conv_fft_context *context, char text[TEXT_BYTES]) {
    size_t used = 0;
    for (int i = 0; i < SHARED; ++i) {
        const conv_fft_problem p = test_problem(lines[i]);
        conv_fft_plan *plan = test_plan(context, &p, NULL);
        assert_non_null(plan);
        for (int pass = 0; pass < 3; ++pass) {
            conv_fft_description d;
            assert_int_equal(conv_fft_plan_describe(plan, (conv_fft_pass)(1 << pass), &d), CONV_FFT_SUCCESS);
            used += (size_t)snprintf(text + used, TEXT_BYTES - used, "%s\n", d.strategy);
        }
        conv_fft_plan_destroy(plan);
    }
    const conv_fft_tune_statistics s = statistics_of(context);
    snprintf(text + used, TEXT_BYTES - used, "%lld found, %lld missed\n", (long long)s.hits, (long long)s.misses);
}

/* A rank reads the records that it was sent (none if they are in its directory) and writes down its plans. */
static int be_rank(const char *directory, const char *records, const char *to) {
    conv_fft_context_options options;
    conv_fft_context *context = NULL;
    char text[TEXT_BYTES];
    conv_fft_context_options_init(&options);
    options.device = 0;
    options.cache_directory = directory;
    if (conv_fft_context_create(&options, &context) != CONV_FFT_SUCCESS ||
        (*records && conv_fft_tune_load(context, records) != CONV_FFT_SUCCESS)) {
        fprintf(stderr, "a rank: %s\n", conv_fft_last_error());
        return 1;
    }
    describe_plans(context, text);
    scratch_write(to, text, strlen(text));
    conv_fft_context_destroy(context);
    return 0;
}

/* Run this program again, with an argument for each parameter of be_rank(): a forked child must not use CUDA. */
static pid_t start_rank(const char *directory, const char *records, const char *to) {
    const pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "gpu_test_tune", directory, records, to, (char *)NULL);
        _exit(127);
    }
    return child;
}

/* Ranks with directories of their own get a file of records. One rank reads the records of the directory that they were
 * written to. */
static void other_processes_choose_alike(void **state) {
    NEED_DEVICE(state);
    conv_fft_context *tuner = another_context();
    conv_fft_problem problems[SHARED];
    conv_fft_plan_options options;
    char own[TEXT_BYTES], expected[64], name[32];
    void *place = NULL;
    pid_t ranks[RANKS];
    scratch_create(&place);
    conv_fft_plan_options_init(&options);
    options.tune_milliseconds = PATIENCE;
    for (int i = 0; i < SHARED; ++i)
        problems[i] = test_problem(lines[i]);
    assert_int_equal(conv_fft_tune_problems(tuner, problems, SHARED, &options, NULL, NULL), CONV_FFT_SUCCESS);
    char *const file = strdup(scratch_path(place, "records.jsonl"));
    assert_int_equal(conv_fft_tune_export(tuner, file, problems, SHARED), CONV_FFT_SUCCESS);
    conv_fft_context_destroy(tuner);
    tuner = another_context();
    describe_plans(tuner, own);
    conv_fft_context_destroy(tuner);
    snprintf(expected, sizeof expected, "%d found, 0 missed\n", 2 * SHARED);
    assert_non_null(strstr(own, expected));
    for (int i = 0; i < RANKS; ++i) {
        snprintf(name, sizeof name, "cache-%d", i);
        char *const directory = strdup(i == 0 ? cache_directory() : scratch_path(place, name));
        snprintf(name, sizeof name, "plans-%d", i);
        ranks[i] = start_rank(directory, i == 0 ? "" : file, scratch_path(place, name));
        assert_true(ranks[i] > 0);
        free(directory);
    }
    for (int i = 0; i < RANKS; ++i) {
        int status = -1;
        assert_int_equal(waitpid(ranks[i], &status, 0), ranks[i]);
        assert_int_equal(status, 0);
        size_t bytes;
        snprintf(name, sizeof name, "plans-%d", i);
        char *const theirs = scratch_read(scratch_path(place, name), &bytes);
        assert_non_null(theirs);
        assert_string_equal(theirs, own);
        free(theirs);
    }
    free(file);
    scratch_remove(&place);
}

int main(int argc, char **argv) {
    if (argc == 4)
        return be_rank(argv[1], argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(tuned_layers_are_right, forget_records),
        cmocka_unit_test(other_processes_choose_alike),
        cmocka_unit_test(kept_spectra_are_shared),
    };
    const int failed = cmocka_run_group_tests(tests, device_gpu_setup, device_teardown);
    return gpu_exit_status(failed);
}
