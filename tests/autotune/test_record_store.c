/* SPDX-License-Identifier: Apache-2.0 */
/* The tuner of a context: which of several records it finds, what a merge keeps, and its message if nothing can be
 * kept. */
#include "autotune/records/record_store.h"
#include "support/records.h"
#include "support/temp_dirs.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static conv_fft_context *context_in(const char *directory) {
    conv_fft_context_options options;
    conv_fft_context *context;
    conv_fft_context_options_init(&options);
    options.device = CONV_FFT_DEVICE_CPU;
    options.threads = 1;
    options.log_level = CONV_FFT_LOG_WARNING;
    options.cache_directory = directory;
    assert_int_equal(conv_fft_context_create(&options, &context), CONV_FFT_SUCCESS);
    return context;
}

/* A file of records of this device. */
static void write_file(const conv_fft_context *context, const char *path, cf_record *const *records, size_t count) {
    const cf_fingerprint device = cf_fingerprint_of(context);
    assert_int_equal(cf_record_file_write(path, &device, records, count), CONV_FFT_SUCCESS);
}

static bool find(conv_fft_context *context, int number, cf_record *found) {
    const cf_record wanted = test_record(number, 1.0, 1);
    bool there;
    assert_int_equal(cf_tuner_find(context->tuner, &wanted.key, found, &there), CONV_FFT_SUCCESS);
    return there;
}

static int count_record(const conv_fft_tune_record *record, void *user) {
    (void)record;
    ++*(int *)user;
    return 0;
}

static int count_shown(conv_fft_context *context) {
    int count = 0;
    assert_int_equal(conv_fft_tune_foreach(context, count_record, &count), CONV_FFT_SUCCESS);
    return count;
}

/* A record that needs a library version that is not installed never hides another record, and no other record hides
 * it. */
static void library_versions(void **state) {
    conv_fft_context *context = context_in(*state);
    cf_record plain = test_record(1, 1.0, 0), old = plain, found;
    strcpy(old.library, "cudnn 0.1");
    assert_int_equal(cf_tuner_put(context->tuner, &plain), CONV_FFT_SUCCESS);
    assert_int_equal(cf_tuner_put(context->tuner, &old), CONV_FFT_SUCCESS); /* the newer one */
    old.key = test_record(2, 1.0, 0).key;
    assert_int_equal(cf_tuner_put(context->tuner, &old), CONV_FFT_SUCCESS);
    for (int i = 0; i < 2; ++i) {
        assert_true(find(context, 1, &found));
        assert_string_equal(found.library, "");
        assert_true(find(context, 2, &found)); /* to be counted as not usable */
        assert_string_equal(found.library, "cudnn 0.1");
        assert_int_equal(count_shown(context), 2);
        conv_fft_context_destroy(context);
        context = context_in(*state); /* and from the directory */
    }
    const char *file = scratch_path(*state, "all.txt");
    cf_file_counts counts;
    cf_records records = {0};
    const cf_fingerprint device = cf_fingerprint_of(context);
    assert_int_equal(conv_fft_tune_save(context, file), CONV_FFT_SUCCESS);
    assert_int_equal(cf_record_file_read(AT_FDCWD, file, &device, false, 0, &records, &counts), CONV_FFT_SUCCESS);
    assert_int_equal(counts.records, 3);
    cf_records_clear(&records);
    conv_fft_context_destroy(context);
}

/* A merged record of a library that is not installed neither loses to a usable record nor comes before it. */
static void merged_libraries(void **state) {
    const char *file = scratch_path(*state, "file.jsonl");
    conv_fft_context *context = context_in(scratch_path(*state, "cache"));
    cf_record mine = test_record(1, 1.0, 0), theirs = test_record(1, 0.5, 1), *list[] = {&theirs}, found;
    strcpy(theirs.library, "cudnn 0.1");
    assert_int_equal(cf_tuner_put(context->tuner, &mine), CONV_FFT_SUCCESS);
    write_file(context, file, list, 1);
    assert_int_equal(conv_fft_tune_merge(context, file, CONV_FFT_KEEP_MINE), CONV_FFT_SUCCESS);
    assert_true(find(context, 1, &found));
    assert_string_equal(found.library, "");
    conv_fft_tune_statistics s;
    assert_int_equal(conv_fft_tune_stats(context, &s), CONV_FFT_SUCCESS);
    assert_int_equal(s.records, 2);
    conv_fft_context_destroy(context);
}

/* The policy `newest` compares the times of measuring, across files and lines in any order. The times stay true. */
static void newest_policy_compares_times(void **state) {
    cf_record old = test_record(1, 1.0, 1000), new = test_record(1, 2.0, 2000);
    cf_record *const orders[2][2] = {{&old, &new}, {&new, &old}};
    for (int order = 0; order < 2; ++order) {
        for (int files = 1; files <= 2; ++files) {
            char name[32];
            snprintf(name, sizeof name, "cache-%d-%d", order, files);
            const char *directory = scratch_path(*state, name);
            const char *paths[] = {scratch_path(*state, "a.jsonl"), scratch_path(*state, "b.jsonl")};
            conv_fft_context *context = context_in(directory);
            for (int i = 0; i < files; ++i) {
                write_file(context, paths[i], orders[order] + i, files == 1 ? 2 : 1);
                assert_int_equal(conv_fft_tune_merge(context, paths[i], CONV_FFT_KEEP_NEWEST), CONV_FFT_SUCCESS);
            }
            for (int i = 0; i < 2; ++i) {
                cf_record found;
                assert_true(find(context, 1, &found));
                assert_int_equal(found.written, 2000);
                assert_true(found.ms == 2.0);
                conv_fft_context_destroy(context);
                context = context_in(directory);
            }
            conv_fft_context_destroy(context);
        }
    }
}

/* The next process uses the choice of a merge, although the other record was measured later. */
static void merged_choice_comes_before_newer(void **state) {
    const char *file = scratch_path(*state, "file.jsonl"), *directory = scratch_path(*state, "cache");
    cf_record mine = test_record(1, 2.0, 0), theirs = test_record(1, 1.0, 1000), *list[] = {&theirs}, found;
    conv_fft_context *context = context_in(directory);
    assert_int_equal(cf_tuner_put(context->tuner, &mine), CONV_FFT_SUCCESS);
    write_file(context, file, list, 1);
    assert_int_equal(conv_fft_tune_merge(context, file, CONV_FFT_KEEP_FASTEST), CONV_FFT_SUCCESS);
    conv_fft_context_destroy(context);
    context = context_in(directory);
    assert_true(find(context, 1, &found));
    assert_true(found.ms == 1.0);
    assert_int_equal(found.written, 1000);
    conv_fft_context_destroy(context);
}

static void merged_into_memory_alone(void **state) {
    const char *file = scratch_path(*state, "file.jsonl"), *directory = scratch_path(*state, "cache");
    cf_record theirs = test_record(1, 1.0, 1000), *list[] = {&theirs}, found;
    mkdir(directory, 0700);
    chmod(directory, 0777); /* others can write it, so it is not used */
    conv_fft_context *context = context_in(directory);
    write_file(context, file, list, 1);
    capture_begin();
    const conv_fft_status status = conv_fft_tune_merge(context, file, CONV_FFT_KEEP_FASTEST);
    capture_end();
    assert_int_equal(status, CONV_FFT_IO_ERROR);
    assert_non_null(strstr(conv_fft_last_error(), "are kept in memory only (1 of them)"));
    assert_non_null(strstr(conv_fft_last_error(), "others can write it"));
    assert_true(find(context, 1, &found));
    conv_fft_context_destroy(context);
}

/* Ranks have records of their own. Loaded records come before them, even if they were measured or decided earlier. */
static void loaded_records_come_first(void **state) {
    const char *file = scratch_path(*state, "file.jsonl");
    cf_record shared = test_record(1, 1.0, 1000), *list[] = {&shared}, found;
    for (int rank = 0; rank < 3; ++rank) {
        char name[16];
        snprintf(name, sizeof name, "rank%d", rank);
        const char *directory = scratch_path(*state, name);
        for (int again = 0; again < 2; ++again) { /* its own record from this process, then from its directory */
            conv_fft_context *context = context_in(directory);
            cf_record own = test_record(1, 0.5 + rank, 0);
            snprintf(own.strategy[CF_PASS_FORWARD], sizeof own.strategy[0], "staged basis=%d", 100 + rank);
            if (!again)
                assert_int_equal(cf_tuner_put(context->tuner, &own), CONV_FFT_SUCCESS);
            write_file(context, file, list, 1);
            assert_int_equal(conv_fft_tune_load(context, file), CONV_FFT_SUCCESS);
            assert_true(find(context, 1, &found));
            assert_string_equal(found.strategy[CF_PASS_FORWARD], shared.strategy[CF_PASS_FORWARD]);
            assert_int_equal(found.rank, CF_RANK_PROCESS);
            conv_fft_context_destroy(context);
        }
    }
}

/* Loading a file without records fails: otherwise a rank would choose as if it had not loaded it. */
static void files_without_records(void **state) {
    const char *file = scratch_path(*state, "file.jsonl");
    conv_fft_context *context = context_in(scratch_path(*state, "cache"));
    for (int headers = 0; headers < 2; ++headers) {
        if (headers)
            write_file(context, file, NULL, 0);
        else
            scratch_write(file, "", 0);
        assert_int_equal(conv_fft_tune_load(context, file), CONV_FFT_IO_ERROR);
        assert_non_null(strstr(conv_fft_last_error(), "no tuning record of this device"));
        assert_int_equal(conv_fft_tune_merge(context, file, CONV_FFT_KEEP_MINE), CONV_FFT_IO_ERROR);
    }
    conv_fft_problem p[2];
    assert_int_equal(conv_fft_problem_parse("in=1x1x9 kernel=3", &p[0], NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_problem_parse("in=1x1x8 kernel=3", &p[1], NULL, 0), CONV_FFT_SUCCESS);
    capture_begin();
    assert_int_equal(conv_fft_tune_export(context, file, p, 2), CONV_FFT_SUCCESS);
    assert_non_null(strstr(capture_end(), "2 of 2 problems have no tuning record"));
    conv_fft_context_destroy(context);
}

/* With too many records to keep, the tuned plan is still made, and the directory stays as it is. */
static void too_many_records(void **state) {
    const char *file = scratch_path(*state, "file.jsonl"), *directory = scratch_path(*state, "cache");
    char *text = malloc((size_t)(CF_RECORDS_MAX + 1) * 512), *at = text;
    assert_non_null(text);
    conv_fft_context *context = context_in(directory);
    const cf_fingerprint device = cf_fingerprint_of(context);
    assert_int_equal(cf_header_format(&device, at), CONV_FFT_SUCCESS);
    at += strlen(at);
    for (int i = 0; i < CF_RECORDS_MAX; ++i) {
        char line[CF_LINE_BYTES];
        const cf_record r = test_record(100000 + i, 1.0, 1);
        assert_int_equal(cf_record_format(&r, line), CONV_FFT_SUCCESS);
        assert_true(strlen(line) < 512);
        strcpy(at, line);
        at += strlen(at);
    }
    scratch_write(file, text, (size_t)(at - text));
    free(text);
    assert_int_equal(conv_fft_tune_load(context, file), CONV_FFT_SUCCESS);
    cf_record r = test_record(1, 1.0, 1), found;
    capture_begin();
    const conv_fft_status first = cf_tuner_put(context->tuner, &r), second = cf_tuner_put(context->tuner, &r);
    const char *said = capture_end();
    assert_int_equal(first, CONV_FFT_SUCCESS);
    assert_int_equal(second, CONV_FFT_SUCCESS);
    assert_int_equal(occurrences(said, "conv_fft: "), 1);
    assert_non_null(strstr(said, "65536 tuning records already"));
    assert_false(find(context, 1, &found));
    r = test_record(100000, 0.5, 1); /* in the place of one that is there */
    assert_int_equal(cf_tuner_put(context->tuner, &r), CONV_FFT_SUCCESS);
    assert_true(find(context, 100000, &found));
    assert_true(found.ms == 0.5);
    conv_fft_context_destroy(context);
}

/* A refresh finds the records that another process has made meanwhile. Damage is counted once. */
static void refresh_finds_new_records(void **state) {
    conv_fft_context *a = context_in(*state), *b = context_in(*state);
    const cf_record first = test_record(1, 1.0, 0), second = test_record(2, 1.0, 0);
    cf_record found;
    char path[1024];
    assert_int_equal(cf_tuner_put(a->tuner, &first), CONV_FFT_SUCCESS);
    assert_int_equal(scratch_count(*state, ".jsonl", path), 1);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs("garbage\n", file);
    fclose(file);
    assert_int_equal(cf_tuner_refresh(b->tuner), CONV_FFT_SUCCESS);
    assert_true(find(b, 1, &found));
    assert_int_equal(cf_tuner_put(a->tuner, &second), CONV_FFT_SUCCESS);
    assert_false(find(b, 2, &found));
    assert_int_equal(cf_tuner_refresh(b->tuner), CONV_FFT_SUCCESS);
    assert_true(find(b, 2, &found));
    conv_fft_tune_statistics s;
    assert_int_equal(conv_fft_tune_stats(b, &s), CONV_FFT_SUCCESS);
    assert_int_equal(s.corrupt, 1);
    conv_fft_context_destroy(a);
    conv_fft_context_destroy(b);
}

/* The untuned log has whole lines, also after a full disk left a part of a line. */
static void untuned_log_after_a_torn_line(void **state) {
    static const char before[] = "in=1x1x8 kernel=3\nin=1x1x", after[] = "\nrecord-1\nrecord-2\n";
    const char *file = scratch_path(*state, "missed.txt");
    conv_fft_context *context = context_in(scratch_path(*state, "cache"));
    scratch_write(file, before, strlen(before));
    setenv("CONV_FFT_RECORD", file, 1);
    for (int number = 1; number <= 2; ++number) {
        cf_record_key key = test_record(number, 1.0, 1).key;
        snprintf(key.problem, sizeof key.problem, "record-%d", number);
        cf_tuner_count(context->tuner, &key, CF_TUNER_MISS);
        cf_tuner_count(context->tuner, &key, CF_TUNER_UNUSABLE);
    }
    setenv("CONV_FFT_RECORD", "/dev/full", 1);
    const cf_record_key third = test_record(3, 1.0, 1).key;
    capture_begin();
    cf_tuner_count(context->tuner, &third, CF_TUNER_MISS);
    const char *said = capture_end();
    unsetenv("CONV_FFT_RECORD");
    assert_non_null(strstr(said, "CONV_FFT_RECORD: the file /dev/full cannot be written: No space left"));
    size_t bytes;
    char *text = scratch_read(file, &bytes);
    assert_int_equal(bytes, strlen(before) + strlen(after));
    assert_memory_equal(text, before, strlen(before));
    assert_memory_equal(text + strlen(before), after, strlen(after));
    free(text);
    conv_fft_context_destroy(context);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(library_versions),
        IN_SCRATCH(merged_libraries),
        IN_SCRATCH(newest_policy_compares_times),
        IN_SCRATCH(merged_choice_comes_before_newer),
        IN_SCRATCH(merged_into_memory_alone),
        IN_SCRATCH(loaded_records_come_first),
        IN_SCRATCH(files_without_records),
        IN_SCRATCH(too_many_records),
        IN_SCRATCH(refresh_finds_new_records),
        IN_SCRATCH(untuned_log_after_a_torn_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
