/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning records of a GPU, and the choices of the cost model for it, on the substitute GPU of tests/fakes, which
 * computes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "autotune/records/library_versions.h"
#include "autotune/records/record_file.h"
#include "autotune/records/record_store.h"
#include "conv/plan/family.h"
#include "support/fake_gpu.h"
#include "support/fake_tuning.h"
#include "support/layer.h"
#include "support/temp_dirs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Make a record for each set of passes that are tuned together. */
static conv_fft_status keep_records(conv_fft_context *context, char strategy[3][256]) {
    conv_fft_problem p;
    cf_layer checked;
    conv_fft_status status = conv_fft_problem_parse(fake_tuned_line, &p, NULL, 0);
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
        cf_strategy parsed[CF_PASS_COUNT];
        memset(parsed, 0, sizeof parsed);
        for (int pass = 0; pass < 3 && status == CONV_FFT_SUCCESS; ++pass)
            status = cf_strategy_parse(strategy[pass], checked.problem.rank, &parsed[pass]);
        cf_libraries_of(context, sets[i], parsed, record.library);
        record.ms = 1.0;
        record.direct_ms = -1.0;
        record.mode = CONV_FFT_TUNE_MEASURE;
        if (status == CONV_FFT_SUCCESS)
            status = cf_tuner_put(context->tuner, &record);
    }
    return status;
}

/* A directory with records and kernels that cannot be written serves a process without NVRTC, without a message. */
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

/* Records belong to a GPU of the same name, compute capability and number of multiprocessors. */
static void records_belong_to_one_kind_of_gpu(void **state) {
    char strategy[3][256], name[1024];
    conv_fft_context context;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    assert_int_equal(plan_layer(&context, CONV_FFT_TUNE_OFF, strategy), CONV_FFT_SUCCESS);
    assert_int_equal(keep_records(&context, strategy), CONV_FFT_SUCCESS);
    assert_int_equal(scratch_count(*state, ".jsonl", name), 1);
    size_t bytes;
    char *text = scratch_read(name, &bytes), expected[256];
    const cf_gpu_properties *properties = &context.gpu->properties;
    snprintf(expected, sizeof expected, "\"device\":\"%s\",\"kind\":\"gpu, compute %lld.%lld, multiprocessors %lld\"",
             properties->name, (long long)properties->compute_major, (long long)properties->compute_minor,
             (long long)properties->multiprocessors);
    assert_non_null(strstr(text, expected));
    free(text);
    close_context(&context);
}

/* If the math mode allows it, large layers get 16-bit spectra with bases of the tensor-core FFT, except for tiles that
 * were measured to be slow. Both gradients then read one spectrum of gy. Dilated signals stay whole if their elements
 * share sectors; small dilated planes do not. */
static void strategies_of_large_layers(void **state) {
    static const struct {
        const char *line, *spectrum, *part;
    } cases[] = {{"in=128x64x64x64 out=64 kernel=9x9 dtype=fp16 math=half", "spectrum=fp16", "basis=64x64"},
                 {"in=128x64x64x64 out=64 kernel=9x9 dtype=bf16 math=half", "spectrum=bf16", "basis=64x64"},
                 {"in=128x64x64x64 out=64 kernel=9x9 dtype=fp16 w=fp32 math=half", "spectrum=fp16", "basis=64x64"},
                 {"in=128x64x64x64 out=64 kernel=9x9 dtype=bf16 w=fp32 math=half", "spectrum=bf16", "basis=64x64"},
                 {"in=128x64x64x64 out=64 kernel=9x9 math=tf32", "spectrum=fp16", "basis=64x64"},
                 {"in=128x64x60x60 out=64 kernel=5x5 dtype=bf16 math=half", "spectrum=bf16", "basis=64x64"},
                 {"in=128x128x32x32 out=128 kernel=9x9 dtype=fp16 math=half", "spectrum=fp16", "basis=32x32"},
                 {"in=128x128x32x32 out=128 kernel=9x9 dtype=bf16 math=half", "spectrum=bf16", "basis=32x32"},
                 {"in=8x32x64x64x64 out=32 kernel=3x3x3 pad=same dtype=fp16 math=half", "spectrum=fp16", "basis="},
                 {"in=8x32x64x64x64 out=32 kernel=5x5x5 pad=same dtype=fp16 math=half", "spectrum=fp16", "basis="},
                 {"in=8x32x64x64x64 out=32 kernel=5x5x5 pad=same math=tf32", "spectrum=fp16", "basis="},
                 {"in=16x64x16384 out=64 kernel=127 pad=same dtype=fp16 math=half", "spectrum=fp16", "basis=1024"},
                 {"in=16x64x16384 out=64 kernel=1023 pad=same dtype=bf16 math=half", "spectrum=bf16", "basis=2048"},
                 {"in=8x64x16384 out=128 kernel=2 dilation=16 pad=16:0", "spectrum=fp32", "dilation=step"},
                 {"in=8x64x16384 out=128 kernel=2 dilation=16 pad=16:0 layout=last", "spectrum=fp32", "dilation=shift"},
                 {"in=8x64x64x64 out=64 kernel=1x9 dilation=4 pad=0x16", "spectrum=fp32", "dilation=step"},
                 {"in=8x64x64x64 out=64 kernel=3x3 dilation=16 pad=16", "spectrum=fp32", "dilation=shift"},
                 {"in=128x64x64x64 out=64 kernel=9x9 dtype=fp16", "spectrum=fp32", "basis="},
                 {"in=128x64x64x64 out=64 kernel=9x9", "spectrum=fp32", "basis="},
                 {"in=2x12x12x13 out=9 kernel=5x5 pad=2 dtype=fp16 math=half", "spectrum=fp32", "basis="}};
    conv_fft_context context;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char strategy[3][256];
        assert_int_equal(plan_problem(&context, cases[i].line, CONV_FFT_TUNE_OFF, strategy), CONV_FFT_SUCCESS);
        for (int pass = 0; pass < 3; ++pass)
            if (!strstr(strategy[pass], cases[i].spectrum) || !strstr(strategy[pass], cases[i].part))
                fail_msg("%s: %s", cases[i].line, strategy[pass]);
        if (strstr(strategy[1], "staged") && !strstr(cases[i].line, "dilation"))
            assert_string_equal(strategy[1], strategy[2]);
    }
    close_context(&context);
}

/* A layer whose sizes exceed the counters of GPU kernels is refused with the reason, if no strategy is given. */
static void too_long_signals_are_refused(void **state) {
    conv_fft_context context;
    char strategy[3][256];
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    assert_int_equal(plan_problem(&context, "in=16x11x8287491910 out=8 kernel=31 layout=last math=tf32",
                                  CONV_FFT_TUNE_OFF, strategy),
                     CONV_FFT_INVALID_ARGUMENT);
    if (!strstr(conv_fft_last_error(), "too large: an axis with its padding exceeds 2^30 points"))
        fail_msg("%s", conv_fft_last_error());
    close_context(&context);
}

/* ---- records that are shipped */

typedef struct shipped {
    conv_fft_context *context;
    const char *file;
    int records;
} shipped;

static conv_fft_status check_shipped(const cf_file_line *l, void *user) {
    shipped *s = user;
    conv_fft_problem p;
    cf_layer layer_of_record;
    if (l->kind == CF_LINE_HEADER || l->kind == CF_LINE_BLANK)
        return CONV_FFT_SUCCESS;
    if (l->kind != CF_LINE_RECORD)
        fail_msg("%s:%d is no record", s->file, (int)l->number);
    const cf_record *r = l->record;
    assert_int_equal(conv_fft_problem_parse(r->key.problem, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(cf_layer_make(&p, &layer_of_record), CONV_FFT_SUCCESS);
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        const char *why = "it cannot be read";
        cf_strategy strategy;
        if (!(r->key.passes & 1 << pass))
            continue;
        const bool parsed = cf_strategy_parse(r->strategy[pass], p.rank, &strategy) == CONV_FFT_SUCCESS;
        if (parsed)
            cf_strategy_resolve(&layer_of_record, pass, &strategy);
        const cf_family *family = parsed ? strategy.family : NULL;
        const bool own = parsed && !family->library;
        if (!parsed || !family->feasible(&layer_of_record, pass, &strategy, &why) ||
            (own && !family->runs_on(s->context->device, &layer_of_record, pass, &strategy, &why)))
            fail_msg("%s:%d: %s of %s: %s", s->file, (int)l->number, r->strategy[pass], r->key.problem, why);
    }
    ++s->records;
    return CONV_FFT_SUCCESS;
}

/* The shipped records of an H200, whose properties the substitute GPU has. Each record names strategies that exist and
 * that fit its problem. */
static void shipped_records_are_usable(void **state) {
    static const char folder[] = "../tuning/nvidia-h200";
    conv_fft_context context;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    DIR *files = opendir(folder);
    assert_non_null(files);
    int records = 0;
    for (const struct dirent *item; (item = readdir(files)) != NULL;) {
        shipped s = {.context = &context, .file = item->d_name};
        if (!strstr(item->d_name, ".jsonl"))
            continue;
        assert_int_equal(cf_record_file_scan(dirfd(files), item->d_name, NULL, check_shipped, &s), CONV_FFT_SUCCESS);
        assert_true(s.records > 0);
        records += s.records;
    }
    closedir(files);
    assert_true(records > 100);
    close_context(&context);
}

/* ---- libraries in trouble */

/* A plan with `own_kernels` takes no algorithm of cuDNN from a record either. */
static void check_own_kernels(conv_fft_context *context, const char *wanted) {
    conv_fft_problem p;
    conv_fft_plan_options options;
    conv_fft_plan *plan;
    conv_fft_description d;
    assert_int_equal(conv_fft_problem_parse(fake_tuned_line, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_plan_options_init(&options), CONV_FFT_SUCCESS);
    options.own_kernels = 1;
    capture_begin(); /* the record is refused */
    const conv_fft_status status = conv_fft_plan_create(context, &p, &options, &plan);
    capture_end();
    assert_int_equal(status, CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_FORWARD, &d), CONV_FFT_SUCCESS);
    assert_string_equal(d.strategy, wanted);
    conv_fft_plan_destroy(plan);
}

/* A plan does not fail if cuDNN cannot start, although there are records of its algorithms. The plan is made without
 * them, with a message and a count. */
static void library_that_does_not_start(void **state) {
    static const char *const folders[] = {FAKES "/good:" FAKES "/with_cudnn", FAKES "/good:" FAKES "/failing_cudnn"};
    char model[3][256], chosen[3][256], found[3][256];
    conv_fft_tune_statistics s;
    for (int i = 0; i < 2; ++i) {
        conv_fft_context context;
        assert_int_equal(open_context(folders[i], *state, &context), CONV_FFT_SUCCESS);
        if (i == 0) {
            assert_int_equal(plan_layer(&context, CONV_FFT_TUNE_OFF, model), CONV_FFT_SUCCESS);
            memcpy(chosen, model, sizeof chosen);
            strcpy(chosen[0], "cudnn algorithm=old:FFT_TILING:fma");
            assert_int_equal(keep_records(&context, chosen), CONV_FFT_SUCCESS);
        }
        capture_begin();
        const conv_fft_status status = plan_layer(&context, CONV_FFT_TUNE_CACHED, found);
        const char *said = capture_end();
        if (status != CONV_FFT_SUCCESS)
            fail_msg("%s", conv_fft_last_error());
        if (occurrences(said, "the measured strategies cannot be used here") != i)
            fail_msg("%s", said);
        for (int pass = 0; pass < 3; ++pass)
            assert_string_equal(found[pass], i == 0 ? chosen[pass] : model[pass]);
        assert_int_equal(conv_fft_tune_stats(&context, &s), CONV_FFT_SUCCESS);
        assert_int_equal(s.hits, i == 0 ? 2 : 0);
        assert_int_equal(s.misses, i == 0 ? 0 : 2);
        assert_int_equal(s.unusable, i == 0 ? 0 : 2);
        check_own_kernels(&context, model[0]);
        close_context(&context);
    }
}

/* Rows of a power of two have 16-bit spectra, up to 4,096 points. */
static void rows_have_16_bit_spectra(void **state) {
    conv_fft_context context;
    conv_fft_problem p;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    for (int basis = 256; basis <= 8192; basis *= 2) {
        char text[256];
        conv_fft_plan *plan = NULL;
        conv_fft_plan_options options;
        conv_fft_plan_options_init(&options);
        snprintf(text, sizeof text, "in=2x8x%d out=8 kernel=30 dtype=fp16 math=half", basis);
        assert_int_equal(conv_fft_problem_parse(text, &p, NULL, 0), CONV_FFT_SUCCESS);
        snprintf(text, sizeof text,
                 "staged basis=%d tiles=1 dilation=step overlap=save product=tensor spectrum=fp16 chunk=2 groups=1 "
                 "keep=none",
                 basis);
        for (int pass = 0; pass < 3; ++pass)
            options.strategy[pass] = text;
        assert_int_equal(conv_fft_plan_create(&context, &p, &options, &plan) == CONV_FFT_SUCCESS, basis <= 4096);
        conv_fft_plan_destroy(plan);
    }
    close_context(&context);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(read_only_without_compiler), IN_SCRATCH(records_belong_to_one_kind_of_gpu),
        IN_SCRATCH(strategies_of_large_layers), IN_SCRATCH(too_long_signals_are_refused),
        IN_SCRATCH(shipped_records_are_usable), IN_SCRATCH(library_that_does_not_start),
        IN_SCRATCH(rows_have_16_bit_spectra),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
