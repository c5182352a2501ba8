/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tuning records: truncated, altered, hostile, or of another device or version; and how files are written. */
#include "support/records.h"
#include "support/temp_dirs.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void write_text(const char *path, const char *text) { scratch_write(path, text, strlen(text)); }

static void joined_files(void **state) {
    const char *path = scratch_path(*state, "both.jsonl");
    char *first = test_file_text("A", 3), *second = test_file_text("B", 5), both[10 * CF_LINE_BYTES];
    snprintf(both, sizeof both, "%s%s", first, second);
    write_text(path, both);
    cf_file_counts counts;
    assert_int_equal(records_in_file(path, "A", &counts), 3);
    assert_int_equal(counts.records, 3);
    assert_int_equal(counts.foreign, 5);
    assert_int_equal(counts.headers, 2);
    assert_int_equal(records_in_file(path, "B", NULL), 5);
    assert_int_equal(records_in_file(path, "C", NULL), 0);
    free(first);
    free(second);
}

/* The file is cut at every length: all whole lines are read, and at most one line is damaged. */
static void truncated(void **state) {
    const char *path = scratch_path(*state, "cut.jsonl");
    char *text = test_file_text("A", 4);
    const size_t length = strlen(text);
    for (size_t cut = 0; cut <= length; ++cut) {
        cf_file_counts counts;
        size_t whole = 0;
        for (size_t i = 0; i < cut; ++i)
            whole += text[i] == '\n' || (i + 1 == cut && text[i + 1] == '\n');
        scratch_write(path, text, cut);
        assert_int_equal(records_in_file(path, "A", &counts), whole > 1 ? whole - 1 : 0);
        assert_true(counts.damaged <= 1);
    }
    free(text);
}

static void other_versions(void **state) {
    const char *path = scratch_path(*state, "future.jsonl");
    char *text = test_file_text("A", 3), line[CF_LINE_BYTES], file[6 * CF_LINE_BYTES];
    cf_fingerprint future = test_fingerprint("A");
    const struct { int64_t version, abi; } others[] = {{2, CONV_FFT_ABI}, {1, CONV_FFT_ABI + 1}};
    for (size_t i = 0; i < 2; ++i) {
        future.version = others[i].version;
        future.abi = others[i].abi;
        assert_int_equal(cf_header_format(&future, line), CONV_FFT_SUCCESS);
        snprintf(file, sizeof file, "%s%s", line, strchr(text, '\n') + 1);
        write_text(path, file);
        cf_file_counts counts;
        assert_int_equal(records_in_file(path, "A", &counts), 0);
        assert_int_equal(counts.foreign, 3);
        /* No record of this device is appended. */
        const cf_fingerprint mine = test_fingerprint("A");
        const cf_record r = test_record(9, 1.0, 1);
        assert_int_equal(cf_record_file_append(AT_FDCWD, path, &mine, &r), CONV_FFT_IO_ERROR);
        size_t bytes;
        char *left = scratch_read(path, &bytes);
        assert_string_equal(left, file);
        free(left);
    }
    free(text);
}

static void records_without_header(void **state) {
    const char *path = scratch_path(*state, "headless.jsonl");
    char *text = test_file_text("A", 3);
    write_text(path, strchr(text, '\n') + 1);
    cf_file_counts counts;
    assert_int_equal(records_in_file(path, "A", &counts), 0);
    assert_int_equal(counts.foreign, 3);
    free(text);
}

static conv_fft_status count_line(const cf_file_line *line, void *user) {
    (void)line;
    ++*(int *)user;
    return CONV_FFT_SUCCESS;
}

static void hostile_files(void **state) {
    const cf_fingerprint f = test_fingerprint("A");
    int lines = 0;
    const char *fifo = scratch_path(*state, "fifo"), *large = scratch_path(*state, "large"),
               *deep = scratch_path(*state, "deep"), *zeros = scratch_path(*state, "zeros");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(cf_record_file_scan(AT_FDCWD, fifo, &f, count_line, &lines), CONV_FFT_IO_ERROR);
    assert_int_equal(cf_record_file_scan(AT_FDCWD, *state, &f, count_line, &lines), CONV_FFT_IO_ERROR);
    assert_int_equal(cf_record_file_scan(AT_FDCWD, "/dev/zero", &f, count_line, &lines), CONV_FFT_IO_ERROR);
    write_text(large, "");
    assert_int_equal(truncate(large, (off_t)CF_RECORD_FILE_MAX_BYTES + 1), 0);
    assert_int_equal(cf_record_file_scan(AT_FDCWD, large, &f, count_line, &lines), CONV_FFT_IO_ERROR);
    assert_non_null(strstr(conv_fft_last_error(), "67108865"));
    assert_int_equal(lines, 0);
    write_text(zeros, "");
    assert_int_equal(truncate(zeros, 1 << 20), 0);
    cf_file_counts counts;
    assert_int_equal(records_in_file(zeros, "A", &counts), 0);
    assert_int_equal(counts.damaged, 1);
    /* Brackets as deep as a line is long, with a right CRC. */
    char brackets[CF_LINE_BYTES - 64], line[CF_LINE_BYTES];
    memset(brackets, '[', sizeof brackets);
    memcpy(brackets, "\"a\":", 4);
    brackets[sizeof brackets - 1] = '\0';
    test_sealed_line(brackets, line);
    write_text(deep, line);
    assert_int_equal(records_in_file(deep, "A", &counts), 0);
    assert_int_equal(counts.unknown, 1);
}

/* ---- writing */

static void appended(void **state) {
    const char *path = scratch_path(*state, "new.jsonl");
    const cf_fingerprint f = test_fingerprint("A");
    for (int i = 0; i < 5; ++i) {
        const cf_record r = test_record(i, 1.0, i);
        assert_int_equal(cf_record_file_append(AT_FDCWD, path, &f, &r), CONV_FFT_SUCCESS);
    }
    cf_file_counts counts;
    assert_int_equal(records_in_file(path, "A", &counts), 5);
    assert_int_equal(counts.headers, 1);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

/* A writer was killed within a line, possibly the first. The next record begins on a new line. */
static void after_a_torn_line(void **state) {
    const char *path = scratch_path(*state, "torn.jsonl");
    const cf_fingerprint f = test_fingerprint("A");
    const cf_record r = test_record(9, 1.0, 1);
    char *text = test_file_text("A", 2);
    const size_t length = strlen(text);
    for (size_t cut = 1; cut < length; cut += 7) {
        scratch_write(path, text, cut);
        const size_t before = records_in_file(path, "A", NULL);
        assert_int_equal(cf_record_file_append(AT_FDCWD, path, &f, &r), CONV_FFT_SUCCESS);
        assert_int_equal(records_in_file(path, "A", NULL), before + 1);
        assert_int_equal(cf_record_file_append(AT_FDCWD, path, &f, &r), CONV_FFT_SUCCESS);
        assert_int_equal(records_in_file(path, "A", NULL), before + 1);
    }
    free(text);
}

static void other_files_are_not_touched(void **state) {
    const char *path = scratch_path(*state, "letter.txt");
    static const char *const strangers[] = {"Dear reader,\n", "{\"some\":\"json\"}\n", "{", "\n\n", "{\"crc\":12}\n"};
    const cf_fingerprint f = test_fingerprint("A");
    cf_record r = test_record(9, 1.0, 1), *list[] = {&r};
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; ++i) {
        write_text(path, strangers[i]);
        assert_int_equal(cf_record_file_write(path, &f, list, 1), CONV_FFT_IO_ERROR);
        assert_non_null(strstr(conv_fft_last_error(), "letter.txt"));
        if (strcmp(strangers[i], "{") != 0) /* which may be the first byte of a line of ours */
            assert_int_equal(cf_record_file_append(AT_FDCWD, path, &f, &r), CONV_FFT_IO_ERROR);
        size_t bytes;
        char *left = scratch_read(path, &bytes);
        if (strcmp(strangers[i], "{") != 0)
            assert_string_equal(left, strangers[i]);
        free(left);
    }
    assert_int_equal(scratch_count(*state, "", NULL), 1); /* and no temporary file */
}

static void written_whole(void **state) {
    const char *path = scratch_path(*state, "all.jsonl");
    const cf_fingerprint f = test_fingerprint("A");
    cf_record a = test_record(1, 1.0, 1), b = test_record(2, 1.0, 1), *list[] = {&a, NULL, &b};
    assert_int_equal(cf_record_file_write(path, &f, list, 3), CONV_FFT_SUCCESS);
    assert_int_equal(records_in_file(path, "A", NULL), 2);
    assert_int_equal(cf_record_file_write(path, &f, list, 1), CONV_FFT_SUCCESS); /* replaces its own kind */
    assert_int_equal(records_in_file(path, "A", NULL), 1);
    assert_int_equal(scratch_count(*state, "", NULL), 1);
    assert_int_equal(cf_record_file_write(scratch_path(*state, "no/such/folder"), &f, list, 1), CONV_FFT_IO_ERROR);
}

/* A damaged first header loses at most the records up to the next one. */
static void headers_repeat(void **state) {
    enum {
        COUNT = 100
    };
    const char *path = scratch_path(*state, "all.jsonl");
    const cf_fingerprint f = test_fingerprint("A");
    cf_record records[COUNT], *list[COUNT];
    cf_file_counts counts;
    for (int i = 0; i < COUNT; ++i) {
        records[i] = test_record(i, 1.0, 1);
        list[i] = &records[i];
    }
    assert_int_equal(cf_record_file_write(path, &f, list, COUNT), CONV_FFT_SUCCESS);
    assert_int_equal(records_in_file(path, "A", &counts), COUNT);
    assert_int_equal(counts.headers, 4);
    size_t bytes;
    char *text = scratch_read(path, &bytes);
    text[20] ^= 4;
    scratch_write(path, text, bytes);
    assert_int_equal(records_in_file(path, "A", &counts), COUNT - 32);
    free(text);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(joined_files),      IN_SCRATCH(truncated),
        IN_SCRATCH(other_versions),    IN_SCRATCH(records_without_header),
        IN_SCRATCH(hostile_files),     IN_SCRATCH(appended),
        IN_SCRATCH(after_a_torn_line), IN_SCRATCH(other_files_are_not_touched),
        IN_SCRATCH(written_whole),     IN_SCRATCH(headers_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
