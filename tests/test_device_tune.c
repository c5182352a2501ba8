/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning records of a GPU, on the substitute one of tests/fakes, which computes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "autotune/autotune.h"
#include "autotune/tuner.h"
#include "conv/gpu.h"
#include "fake_gpu.h"
#include "layer.h"
#include "scratch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char line[] = "in=2x2x12x13 out=3 kernel=5x5 pad=2";

/* CONV_FFT_SUCCESS if all of it opens. */
static conv_fft_status open_context(const char *libraries, const char *directory, conv_fft_context *context) {
    memset(context, 0, sizeof *context);
    context->log_level = CONV_FFT_LOG_WARNING;
    conv_fft_status status = open_gpu(libraries, directory, 0, &context->gpu);
    if (status == CONV_FFT_SUCCESS)
        status = cf_gpu_layers_create(context->gpu, &context->device);
    return status == CONV_FFT_SUCCESS ? cf_tuner_create(context, directory) : status;
}

static void close_context(conv_fft_context *context) {
    cf_tuner_destroy(context->tuner);
    if (context->device)
        cf_gpu_layers_destroy(context->device);
    cf_gpu_close(context->gpu);
}

/* Plan a layer; strategies of all passes. */
static conv_fft_status plan_problem(conv_fft_context *context, const char *problem, conv_fft_tuning tuning,
                                    char strategy[3][256]) {
    conv_fft_problem p;
    conv_fft_plan_options options;
    conv_fft_plan *plan = NULL;
    conv_fft_plan_options_init(&options);
    options.tuning = tuning;
    conv_fft_status status = conv_fft_problem_parse(problem, &p, NULL, 0);
    if (status == CONV_FFT_SUCCESS)
        status = conv_fft_plan_create(context, &p, &options, &plan);
    for (int pass = 0; pass < 3 && status == CONV_FFT_SUCCESS; ++pass) {
        conv_fft_description d;
        status = conv_fft_plan_describe(plan, (conv_fft_pass)(1 << pass), &d);
        if (status == CONV_FFT_SUCCESS)
            memcpy(strategy[pass], d.strategy, 256);
    }
    conv_fft_plan_destroy(plan);
    return status;
}

static conv_fft_status plan_layer(conv_fft_context *context, conv_fft_tuning tuning, char strategy[3][256]) {
    return plan_problem(context, line, tuning, strategy);
}

/* A record of each set of passes that are tuned together. */
static conv_fft_status keep_records(conv_fft_context *context, char strategy[3][256]) {
    conv_fft_problem p;
    cf_layer checked;
    conv_fft_status status = conv_fft_problem_parse(line, &p, NULL, 0);
    if (status == CONV_FFT_SUCCESS)
        status = cf_layer_make(&p, &checked);
    const int sets[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD};
    for (int i = 0; i < 2 && status == CONV_FFT_SUCCESS; ++i) {
        cf_record record;
        memset(&record, 0, sizeof record);
        status = cf_record_key_make(&checked, sets[i], 0, 0, &record.key);
        for (int pass = 0; pass < 3; ++pass) {
            if (sets[i] & 1 << pass)
                memcpy(record.strategy[pass], strategy[pass], sizeof record.strategy[pass]);
        }
        record.ms = 1.0;
        record.direct_ms = -1.0;
        record.mode = CONV_FFT_TUNE_MEASURE;
        if (status == CONV_FFT_SUCCESS)
            status = cf_tuner_put(context->tuner, &record);
    }
    return status;
}

/* A warmed directory that cannot be written serves a process without NVRTC: records and kernels, without a word. */
static void read_only_without_compiler(void **state) {
    char chosen[3][256], found[3][256];
    conv_fft_context context, later;
    conv_fft_tune_statistics s = {0};
    unprivileged_begin(*state);
    conv_fft_status first = open_context(FAKES "/good", *state, &context);
    if (first == CONV_FFT_SUCCESS)
        first = plan_layer(&context, CONV_FFT_TUNE_OFF, chosen);
    if (first == CONV_FFT_SUCCESS)
        first = keep_records(&context, chosen);
    close_context(&context);
    chmod(*state, 0500);
    capture_begin();
    conv_fft_status second = open_context(FAKES "/driver_only", *state, &later);
    const bool compiles = later.gpu && later.gpu->jit.library.usable;
    if (second == CONV_FFT_SUCCESS)
        second = plan_layer(&later, CONV_FFT_TUNE_CACHED, found);
    if (second == CONV_FFT_SUCCESS)
        second = conv_fft_tune_stats(&later, &s);
    close_context(&later);
    const char *said = capture_end();
    chmod(*state, 0700);
    unprivileged_end();
    assert_int_equal(first, CONV_FFT_SUCCESS);
    assert_int_equal(second, CONV_FFT_SUCCESS);
    assert_false(compiles);
    assert_null(strstr(said, "tuning"));
    assert_null(strstr(said, "kernel"));
    assert_int_equal(s.records, 2);
    assert_int_equal(s.hits, 2);
    assert_int_equal(s.misses + s.unusable + s.corrupt, 0);
    for (int pass = 0; pass < 3; ++pass)
        assert_string_equal(chosen[pass], found[pass]);
}

/* Its records are those of its name, compute capability and multiprocessors. */
static void of_this_gpu(void **state) {
    char strategy[3][256], name[1024];
    conv_fft_context context;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    assert_int_equal(plan_layer(&context, CONV_FFT_TUNE_OFF, strategy), CONV_FFT_SUCCESS);
    assert_int_equal(keep_records(&context, strategy), CONV_FFT_SUCCESS);
    assert_int_equal(scratch_count(*state, ".jsonl", name), 1);
    size_t bytes;
    char *text = scratch_read(name, &bytes), expected[256];
    const cf_gpu_facts *facts = &context.gpu->facts;
    snprintf(expected, sizeof expected, "\"device\":\"%s\",\"kind\":\"gpu, compute %lld.%lld, multiprocessors %lld\"",
             facts->name, (long long)facts->compute_major, (long long)facts->compute_minor,
             (long long)facts->multiprocessors);
    assert_non_null(strstr(text, expected));
    free(text);
    close_context(&context);
}

/* A GPU whose kernels compute nothing: every result is zero, and nothing of it is believed. */
static void nothing_is_no_result(void **state) {
    char measured[3][256], model[3][256];
    conv_fft_context context;
    conv_fft_tune_statistics s;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    assert_int_equal(plan_layer(&context, CONV_FFT_TUNE_OFF, model), CONV_FFT_SUCCESS);
    capture_begin();
    const conv_fft_status status = plan_layer(&context, CONV_FFT_TUNE_MEASURE, measured);
    const char *said = capture_end();
    assert_int_equal(status, CONV_FFT_SUCCESS);
    if (occurrences(said, "agreed with those of another") != 2)
        fail_msg("%s", said);
    assert_int_equal(occurrences(said, "no strategy's results agreed with those of another; the cost model decides"),
                     2);
    assert_int_equal(conv_fft_tune_stats(&context, &s), CONV_FFT_SUCCESS);
    assert_int_equal(s.records, 0);
    for (int pass = 0; pass < 3; ++pass)
        assert_string_equal(measured[pass], model[pass]);
    close_context(&context);
    assert_true(nothing_open(FAKES "/good/libcuda.so.1"));
}

/* Where the math mode allows them, large layers get spectra in 16 bits, of bases that are transformed by matrix products; both gradients then
 * read one spectrum of gy. */
static void short_spectra(void **state) {
    static const struct {
        const char *line, *spectrum, *basis;
    } cases[] = {{"in=128x64x64x64 out=64 kernel=9x9 dtype=fp16 math=half", "spectrum=fp16", "basis=64x64"},
                 {"in=128x64x64x64 out=64 kernel=9x9 dtype=bf16 math=half", "spectrum=bf16", "basis=64x64"},
                 {"in=128x64x64x64 out=64 kernel=9x9 math=tf32", "spectrum=fp16", "basis=64x64"},
                 {"in=128x64x60x60 out=64 kernel=5x5 dtype=bf16 math=half", "spectrum=bf16", "basis=64x64"},
                 {"in=128x128x32x32 out=128 kernel=9x9 dtype=fp16 math=half", "spectrum=fp16", "basis=32x32"},
                 {"in=128x128x32x32 out=128 kernel=9x9 dtype=bf16 math=half", "spectrum=bf16", "basis=32x32"},
                 {"in=128x64x64x64 out=64 kernel=9x9 dtype=fp16", "spectrum=fp32", "basis="},
                 {"in=128x64x64x64 out=64 kernel=9x9", "spectrum=fp32", "basis="},
                 {"in=2x2x12x13 out=3 kernel=5x5 pad=2 dtype=fp16 math=half", "spectrum=fp32", "basis="}};
    conv_fft_context context;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char strategy[3][256];
        assert_int_equal(plan_problem(&context, cases[i].line, CONV_FFT_TUNE_OFF, strategy), CONV_FFT_SUCCESS);
        for (int pass = 0; pass < 3; ++pass)
            if (!strstr(strategy[pass], cases[i].spectrum) || !strstr(strategy[pass], cases[i].basis))
                fail_msg("%s: %s", cases[i].line, strategy[pass]);
        if (strstr(strategy[1], "staged"))
            assert_string_equal(strategy[1], strategy[2]);
    }
    close_context(&context);
}

typedef struct progress {
    pthread_t thread;
    int calls, cancel_at;
} progress;

static int follow(int64_t done, int64_t total, void *user) {
    progress *p = user;
    assert_true(pthread_equal(pthread_self(), p->thread));
    assert_int_equal(done, 0);
    assert_int_equal(total, 1);
    return ++p->calls == p->cancel_at;
}

/* While all processors compile, only the caller's thread is asked whether to go on, and its answer ends the others. */
static void cancelled_while_compiling(void **state) {
    conv_fft_context context;
    conv_fft_problem p;
    conv_fft_tune_statistics s;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_problem_parse(line, &p, NULL, 0), CONV_FFT_SUCCESS);
    for (int at = 2; at < 5; ++at) { /* the first call is before the search */
        progress follower = {pthread_self(), 0, at};
        assert_int_equal(conv_fft_tune_problems(&context, &p, 1, NULL, follow, &follower), CONV_FFT_CANCELLED);
        assert_int_equal(follower.calls, at);
        assert_non_null(strstr(conv_fft_last_error(), "after 0 of 1 problems"));
    }
    assert_int_equal(conv_fft_tune_stats(&context, &s), CONV_FFT_SUCCESS);
    assert_int_equal(s.records, 0);
    close_context(&context);
    assert_true(nothing_open(FAKES "/good/libcuda.so.1"));
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(read_only_without_compiler), IN_SCRATCH(of_this_gpu),   IN_SCRATCH(nothing_is_no_result),
        IN_SCRATCH(cancelled_while_compiling),  IN_SCRATCH(short_spectra),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
