/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of problems that are tuned; files of records that are saved, loaded and merged; problems that have no record.
 * The clock is that of test_tune.c. */
#include "autotune/records/record_format.h"
#include "support/layer.h"
#include "support/temp_dirs.h"
#include "support/tuning.h"
#include "support/virtual_runs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* support/virtual_clock.c and support/virtual_runs.c */
double __wrap_cf_clock_seconds(void);
double __wrap_cf_clock_process_seconds(void);
conv_fft_status __wrap_cf_bench_buffers_create(cf_device *device, const cf_gpu *gpu, const cf_layer *layer, int passes,
                                               const cf_bench_buffers_sizes *sizes, cf_bench_buffers *buffers);
conv_fft_status __wrap_cf_plan_create(const cf_layer *l, cf_device *device, int passes,
                                      const cf_strategy strategy[CF_PASS_COUNT], bool any_alignment,
                                      uint64_t workspace_limit, uint64_t *smallest, conv_fft_plan **plan);
conv_fft_status __wrap_cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call);
conv_fft_status __wrap_cf_spatial_run(const conv_fft_plan *plan, int set, const cf_call *call);

typedef struct progress {
    int64_t last, cancel_at;
} progress;

static int follow(int64_t done, int64_t total, void *user) {
    progress *p = user;
    assert_int_equal(total, 3);
    assert_in_range(done - p->last, 0, 1); /* again and again while one is tuned, and each number once at least */
    p->last = done;
    return done == p->cancel_at;
}

static void lists_are_cancelled_and_continued(void **state) {
    conv_fft_context *context = tuning_context(*state);
    conv_fft_problem list[3] = {problem_of("in=1x2x9x9 kernel=3x3"), problem_of("in=1x2x10x10 kernel=3x3"),
                                problem_of("in=1x2x11x11 kernel=3x3")};
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_CACHED); /* means measure */
    progress p = {.cancel_at = 2};
    assert_int_equal(conv_fft_tune_problems(context, list, 3, &options, follow, &p), CONV_FFT_CANCELLED);
    assert_int_equal(p.last, 2);
    EXPECT_COUNTS(context, 4, 0, 4, 0);
    p = (progress){.cancel_at = -1};
    assert_int_equal(conv_fft_tune_problems(context, list, 3, &options, follow, &p), CONV_FFT_SUCCESS);
    assert_int_equal(p.last, 3);
    EXPECT_COUNTS(context, 6, 4, 6, 0);
    /* A plan that cannot be made does not stop the others. */
    options.workspace_limit = 1;
    list[1] = problem_of("in=0x2x11x11 kernel=3x3");
    assert_int_equal(conv_fft_tune_problems(context, list, 3, &options, NULL, NULL), CONV_FFT_INVALID_ARGUMENT);
    assert_non_null(strstr(conv_fft_last_error(), "problems[0]: options.workspace_limit is 1"));
    conv_fft_context_destroy(context);
}

static int count_record(const conv_fft_tune_record *record, void *user) {
    conv_fft_problem p;
    assert_int_equal(conv_fft_problem_parse(record->problem, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_true(record->ms > 0.0 && record->candidates >= 2);
    return ++*(int *)user == 100;
}

static void files(void **state) {
    const char *here = scratch_path(*state, "here"), *there = scratch_path(*state, "there");
    const char *all = scratch_path(*state, "all.jsonl"), *some = scratch_path(*state, "some.jsonl");
    conv_fft_problem list[2] = {problem_of("in=1x2x9x9 kernel=3x3"), problem_of("in=1x2x10x10 kernel=3x3")};
    conv_fft_context *a = tuning_context(here), *b = tuning_context(there);
    assert_int_equal(conv_fft_tune_problems(a, list, 2, NULL, NULL, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_tune_save(a, all), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_tune_export(a, some, list, 1), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_tune_load(b, some), CONV_FFT_SUCCESS);
    EXPECT_COUNTS(b, 2, 0, 0, 0);
    int count = 0;
    assert_int_equal(conv_fft_tune_foreach(b, count_record, &count), CONV_FFT_SUCCESS);
    assert_int_equal(count, 2);
    count = 99;
    assert_int_equal(conv_fft_tune_foreach(b, count_record, &count), CONV_FFT_CANCELLED);
    conv_fft_context_destroy(b);
    b = tuning_context(there);
    EXPECT_COUNTS(b, 0, 0, 0, 0); /* load keeps nothing on disk, merge does */
    assert_int_equal(conv_fft_tune_merge(b, all, CONV_FFT_KEEP_MINE), CONV_FFT_SUCCESS);
    EXPECT_COUNTS(b, 4, 0, 0, 0);
    conv_fft_context_destroy(b);
    b = tuning_context(there);
    EXPECT_COUNTS(b, 4, 0, 0, 0);
    for (int i = 0; i < 2; ++i) {
        const char *line = i ? "in=1x2x10x10 kernel=3x3" : "in=1x2x9x9 kernel=3x3";
        assert_string_equal(choose(a, line, NULL).text, choose(b, line, NULL).text);
    }
    assert_int_equal(conv_fft_tune_load(a, scratch_path(*state, "none.jsonl")), CONV_FFT_IO_ERROR);
    assert_non_null(strstr(conv_fft_last_error(), "none.jsonl"));
    scratch_write(some, "garbage\n", 8);
    assert_int_equal(conv_fft_tune_load(a, some), CONV_FFT_IO_ERROR);
    assert_non_null(strstr(conv_fft_last_error(), "no tuning record of this device"));
    assert_int_equal(statistics_of(a).corrupt, 1);
    conv_fft_context_destroy(a);
    conv_fft_context_destroy(b);
}

/* The choice of a merge comes before older and newer records of the directory. */
static void merged_choice_comes_first(void **state) {
    const char *here = scratch_path(*state, "here"), *file = scratch_path(*state, "file.jsonl");
    const char *const fast[] = {STAGED_LINE("24x24", "1x1"), NULL, NULL}, *const slow[] = {STAGED_LINE("25x25", "1x1"),
                                                                                           NULL, NULL};
    conv_fft_context *other = tuning_context(scratch_path(*state, "other"));
    put_record(other, tuned_line, CONV_FFT_FORWARD, 0, 0, 100, fast); /* older */
    assert_int_equal(conv_fft_tune_save(other, file), CONV_FFT_SUCCESS);
    conv_fft_context_destroy(other);
    static const struct {
        conv_fft_tune_policy policy;
        const char *kept;
    } cases[] = {{CONV_FFT_KEEP_MINE, "25x25"}, {CONV_FFT_KEEP_NEWEST, "25x25"}, {CONV_FFT_KEEP_THEIRS, "24x24"}};
    for (size_t i = 0; i < 3; ++i) {
        conv_fft_context *context = tuning_context(here);
        put_record(context, tuned_line, CONV_FFT_FORWARD, 0, 0, 100, slow);
        assert_int_equal(conv_fft_tune_merge(context, file, cases[i].policy), CONV_FFT_SUCCESS);
        assert_non_null(strstr(choose(context, tuned_line, NULL).text, cases[i].kept));
        conv_fft_context_destroy(context);
        context = tuning_context(here);
        assert_non_null(strstr(choose(context, tuned_line, NULL).text, cases[i].kept));
        conv_fft_context_destroy(context);
    }
}

static void untuned_log(void **state) {
    const char *log = scratch_path(*state, "missed.txt");
    setenv("CONV_FFT_RECORD", log, 1);
    conv_fft_context *context = tuning_context(*state);
    const conv_fft_plan_options off = options_with(CONV_FFT_TUNE_OFF);
    choose(context, tuned_line, NULL);
    choose(context, tuned_line, NULL);
    choose(context, "in=1x2x9x9 kernel=3x3", NULL);
    choose(context, "in=1x2x10x10 kernel=3x3", &off);
    conv_fft_problem strided = problem_of("in=1x1x8 kernel=3");
    const int64_t strides[] = {100, 100, 2};
    memcpy(strided.x_stride, strides, sizeof strides);
    conv_fft_plan *plan = NULL;
    assert_int_equal(conv_fft_plan_create(context, &strided, NULL, &plan), CONV_FFT_SUCCESS);
    conv_fft_plan_destroy(plan);
    conv_fft_context_destroy(context);
    setenv("CONV_FFT_RECORD", "/no/such/folder/file", 1);
    context = tuning_context(*state);
    capture_begin();
    choose(context, tuned_line, NULL);
    choose(context, "in=1x2x9x9 kernel=3x3", NULL);
    const char *said = capture_end();
    unsetenv("CONV_FFT_RECORD");
    assert_int_equal(occurrences(said, "CONV_FFT_RECORD: the file /no/such/folder/file"), 1);
    conv_fft_context_destroy(context);
    size_t bytes;
    char *text = scratch_read(log, &bytes);
    assert_int_equal(occurrences(text, "\n"), 3);
    int problems = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        conv_fft_problem p;
        assert_int_equal(conv_fft_problem_parse(line, &p, NULL, 0), CONV_FFT_SUCCESS);
        problems += p.rank > 0;
    }
    assert_int_equal(problems, 2);
    free(text);
}

/* One rank tunes and exports. The other ranks are processes of their own: they load the file and choose the same
 * without measuring. */
static int be_a_rank(const char *file, const char *directory) {
    conv_fft_context *context = tuning_context(directory);
    if (conv_fft_tune_load(context, file) != CONV_FFT_SUCCESS)
        return 2;
    const choice c = choose(context, tuned_line, NULL);
    const conv_fft_tune_statistics s = statistics_of(context);
    conv_fft_context_destroy(context);
    printf("%s\n", c.text);
    return s.hits == 2 && s.misses == 0 && c.forward_ms > 0.0 ? 0 : 3;
}

static void several_ranks(void **state) {
    const char *file = scratch_path(*state, "tuned.jsonl");
    conv_fft_context *context = tuning_context(scratch_path(*state, "rank0"));
    const conv_fft_problem p = problem_of(tuned_line);
    assert_int_equal(conv_fft_tune_problems(context, &p, 1, NULL, NULL, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_tune_export(context, file, &p, 1), CONV_FFT_SUCCESS);
    const choice mine = choose(context, tuned_line, NULL);
    conv_fft_context_destroy(context);
    enum {
        RANKS = 4
    };
    FILE *ranks[RANKS];
    for (int i = 0; i < RANKS; ++i) {
        char command[4096], self[1024] = "";
        assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
        snprintf(command, sizeof command, "exec '%s' --rank '%s' '%s/rank%d'", self, file, (const char *)*state, i + 1);
        ranks[i] = popen(command, "r");
        assert_non_null(ranks[i]);
    }
    for (int i = 0; i < RANKS; ++i) {
        char said[1024] = "";
        said[fread(said, 1, sizeof said - 1, ranks[i])] = '\0';
        const int how = pclose(ranks[i]);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
        assert_int_equal(strncmp(said, mine.text, strlen(mine.text)), 0);
    }
}

/* The forward strategy of a plan that measures nothing. It was never measured on this device. */
static choice hinted(const char *directory, int threads) {
    conv_fft_context *context = test_context_in(directory, threads);
    const choice c = choose(context, tuned_line, NULL);
    assert_true(c.forward_ms < 0.0 && c.backward_ms < 0.0);
    int count = 0;
    assert_int_equal(conv_fft_tune_foreach(context, count_record, &count), CONV_FFT_SUCCESS);
    assert_int_equal(count, 0);
    EXPECT_COUNTS(context, 0, 0, 2, 0);
    conv_fft_context_destroy(context);
    return c;
}

static void put_forward(const char *directory, int threads, const char *strategy) {
    conv_fft_context *context = test_context_in(directory, threads);
    put_record(context, tuned_line, CONV_FFT_FORWARD, 0, 0, 100, (const char *const[3]){strategy, NULL, NULL});
    conv_fft_context_destroy(context);
}

/* Without a record of its number of threads, a plan takes that of the nearest number on the same CPU. */
static void other_numbers_of_threads(void **state) {
    static const char few[] = STAGED_LINE("12x14", "2x2"), many[] = STAGED_LINE("9x24", "3x1"),
                      own[] = STAGED_LINE("6x24", "5x1");
    const char *here = scratch_path(*state, "here"), *empty = scratch_path(*state, "empty");
    const choice model = hinted(here, 2);
    put_forward(here, 4, few);
    put_forward(here, 16, many);
    const struct {
        int threads;
        const char *basis;
    } cases[] = {{1, "basis=12x14 "}, {2, "basis=12x14 "}, {9, "basis=12x14 "}, {10, "basis=12x14 "},
                 {11, "basis=9x24 "}, {15, "basis=9x24 "}, {64, "basis=9x24 "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const choice c = hinted(here, cases[i].threads);
        assert_non_null(strstr(c.text, cases[i].basis)); /* the other passes have no such basis */
        assert_null(strstr(strchr(c.text, '\n'), cases[i].basis));
    }
    conv_fft_context *context = tuning_context(here);
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_OFF);
    assert_string_equal(choose(context, tuned_line, &options).text, model.text);
    const char *forward[3] = {own, NULL, NULL};
    put_record(context, tuned_line, CONV_FFT_FORWARD, 0, 0, 100, forward);
    const choice exact = choose(context, tuned_line, NULL);
    assert_non_null(strstr(exact.text, "basis=6x24 "));
    assert_true(exact.forward_ms > 0.0);
    /* A hint is not saved as a record, and no reason not to measure. */
    const char *file = scratch_path(*state, "saved.jsonl");
    assert_int_equal(conv_fft_tune_save(context, file), CONV_FFT_SUCCESS);
    size_t bytes;
    char *const saved = scratch_read(file, &bytes);
    assert_int_equal(occurrences(saved, "\"problem\""), 1);
    free(saved);
    conv_fft_context_destroy(context);
    context = test_context_in(here, 3);
    options.tuning = CONV_FFT_TUNE_MEASURE;
    assert_true(choose(context, tuned_line, &options).forward_ms > 0.0);
    EXPECT_COUNTS(context, 2, 0, 2, 0);
    conv_fft_context_destroy(context);
    /* The folders of CONV_FFT_TUNE_PATH have hints, too: the saved file is of 2 threads. A hint with a limit that does
     * not fit, and a strategy that is unknown, are passed over. */
    assert_int_equal(setenv("CONV_FFT_TUNE_PATH", *state, 1), 0);
    const choice shipped = hinted(empty, 5);
    assert_non_null(strstr(shipped.text, "basis=6x24 "));
    context = test_context_in(empty, 5);
    options = options_with(CONV_FFT_TUNE_CACHED);
    options.workspace_limit = 99;
    const conv_fft_problem p = problem_of(tuned_line);
    conv_fft_plan *plan = NULL;
    assert_int_not_equal(conv_fft_plan_create(context, &p, &options, &plan), CONV_FFT_SUCCESS);
    conv_fft_context_destroy(context);
    assert_int_equal(setenv("CONV_FFT_TUNE_PATH", "", 1), 0);
    put_forward(empty, 6, "unknown strategy");
    assert_string_equal(hinted(empty, 5).text, hinted(scratch_path(*state, "nothing"), 5).text);
}

/* Only the number of threads may differ. */
static void hints_are_of_the_same_cpu(void **state) {
    static const struct {
        const char *device, *kind;
        int64_t version, abi;
        int threads;
    } headers[] = {
        {"a cpu", "cpu, threads 16, blas", 1, 1, 16},         {"a cpu", "cpu, threads 16, blas", 1, 0, 16},
        {"a cpu", "cpu, threads 4, blas", 1, 1, 0},           {"a cpu", "cpu, threads 16, no blas", 1, 1, 0},
        {"another cpu", "cpu, threads 16, blas", 1, 1, 0},    {"a cpu", "cpu, threads 16, blas", 2, 1, 0},
        {"a cpu", "cpu, threads 16, blas", 1, 2, 0},          {"a cpu", "cpu, threads -3, blas", 1, 1, 0},
        {"a cpu", "cpu, threads 99999999999, blas", 1, 1, 0}, {"a cpu", "gpu, compute 9.0", 1, 1, 0},
    };
    const cf_fingerprint device = {"a cpu", "cpu, threads 4, blas", "", 1, 1};
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; ++i) {
        cf_fingerprint header = {.version = headers[i].version, .abi = headers[i].abi};
        int own;
        snprintf(header.device, sizeof header.device, "%s", headers[i].device);
        snprintf(header.kind, sizeof header.kind, "%s", headers[i].kind);
        assert_int_equal(cf_fingerprint_other_threads(&device, &header, &own), headers[i].threads);
        assert_int_equal(own, 4);
        assert_int_equal(cf_fingerprint_other_threads(&(cf_fingerprint){"a", "gpu", "", 1, 1}, &header, &own), 0);
    }
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "--rank") == 0)
        return be_a_rank(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(lists_are_cancelled_and_continued),
        IN_SCRATCH(files),
        IN_SCRATCH(merged_choice_comes_first),
        IN_SCRATCH(untuned_log),
        IN_SCRATCH(several_ranks),
        IN_SCRATCH(other_numbers_of_threads),
        cmocka_unit_test(hints_are_of_the_same_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
