/* SPDX-License-Identifier: Apache-2.0 */
/* The report on a cache directory, and which files are removed from it. */
#include "autotune/records/cache_repair.h"
#include "cuda/jit/cubin_file.h"
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

static int64_t report(const char *directory, char text[4096]) {
    int64_t damaged = -1;
    assert_int_equal(conv_fft_cache_report(directory, text, 4096, NULL, &damaged), CONV_FFT_SUCCESS);
    return damaged;
}

/* Write a kernel to the directory and return its path. */
static const char *write_kernel(const char *directory) {
    static const char content[] = "not run here";
    const cf_source source = {.text = "extern \"C\" __global__ void k() {}", .options = {"-DA=1"}};
    const cf_cubin_key key = cf_cubin_key_of("sm_90", &source);
    char name[CF_CUBIN_NAME_BYTES];
    const int folder = open(directory, O_RDONLY | O_DIRECTORY);
    assert_true(folder >= 0);
    cf_cubin_name(&key, name);
    assert_true(
        cf_cubin_file_write(folder, &key, &(cf_cubin){.data = (char *)content, .bytes = sizeof content}, "13.0", 1));
    close(folder);
    return scratch_path(directory, name);
}

/* Verification depends on every byte of a kernel's file, its name, its length and its permissions. */
static void kernels_are_verified(void **state) {
    char text[4096];
    const char *path = write_kernel(*state);
    assert_int_equal(report(*state, text), 0);
    assert_non_null(strstr(text, "1 compiled kernel,"));
    size_t bytes;
    char *good = scratch_read(path, &bytes), *bad = scratch_read(path, &bytes);
    const size_t version = strlen("conv_fft cubin "); /* a file of another one is not ours to judge */
    for (size_t i = 0; i < bytes; ++i) {
        bad[i] ^= 4;
        scratch_write(path, bad, bytes);
        assert_int_equal(report(*state, text), i != version);
        bad[i] = good[i];
    }
    assert_non_null(strstr(text, strrchr(path, '/') + 1));
    for (size_t length = 0; length < bytes; length += 9) {
        scratch_write(path, good, length);
        assert_int_equal(report(*state, text), 1);
    }
    scratch_write(path, good, bytes);
    assert_int_equal(report(*state, text), 0);
    chmod(path, 0666);
    assert_int_equal(report(*state, text), 1);
    chmod(path, 0600);
    const char *other = scratch_path(*state, "0123456789abcdef.cubin");
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(report(*state, text), 1);
    free(good);
    free(bad);
}

/* A directory that does not exist is empty. It is not made. Another one that cannot be used is an error. */
static void absent_directory_is_empty(void **state) {
    char text[4096], wanted[4096];
    int64_t count = -1;
    const char *absent = scratch_path(*state, "absent");
    assert_int_equal(report(absent, text), 0);
    snprintf(wanted, sizeof wanted, "%s\n  0 compiled kernels, 0 bytes\n", absent);
    assert_string_equal(text, wanted);
    assert_int_equal(conv_fft_cache_clear(absent, &count), CONV_FFT_SUCCESS);
    assert_int_equal(count, 0);
    assert_int_not_equal(access(absent, F_OK), 0);
    assert_int_equal(mkdir(absent, 0700), 0);
    assert_int_equal(chmod(absent, 0777), 0);
    assert_int_equal(conv_fft_cache_report(absent, text, sizeof text, NULL, &count), CONV_FFT_IO_ERROR);
    assert_int_equal(conv_fft_cache_clear(absent, &count), CONV_FFT_IO_ERROR);
}

/* Listing a kernel does not count as its use. The kernel used least recently is removed first. */
static void listing_is_not_a_use(void **state) {
    char text[4096];
    const char *path = write_kernel(*state);
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct stat status;
    assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    assert_int_equal(report(*state, text), 0);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mtime, 1000);
}

/* Files of other versions are not removed: this version may not understand them. */
static void other_versions_are_not_removed(void **state) {
    static const struct { int version, abi; /* as far from ours */ } headers[] = {{0, 0}, {1, 0}, {0, 1}};
    char line[CF_LINE_BYTES], name[32], *text = test_file_text("B", 2);
    for (int i = 0; i < 3; ++i) {
        cf_fingerprint f = test_fingerprint("A");
        f.version += headers[i].version;
        f.abi += headers[i].abi;
        assert_int_equal(cf_header_format(&f, line), CONV_FFT_SUCCESS);
        snprintf(name, sizeof name, "tuning-%d.jsonl", i);
        scratch_write(scratch_path(*state, name), line, strlen(line));
    }
    scratch_write(scratch_path(*state, "tuning-empty.jsonl"), "", 0);
    scratch_write(scratch_path(*state, "tuning-device.jsonl"), text, strlen(text));
    scratch_write(scratch_path(*state, "tuning-headless.jsonl"), strchr(text, '\n') + 1, 9);
    scratch_write(scratch_path(*state, "tuning-large.jsonl"), line, strlen(line));
    assert_int_equal(truncate(scratch_path(*state, "tuning-large.jsonl"), (off_t)CF_RECORD_FILE_MAX_BYTES + 1), 0);
    scratch_write(scratch_path(*state, "notes.jsonl"), "mine\n", 5);
    write_kernel(*state);
    free(text);
    int64_t removed = 0;
    capture_begin();
    assert_int_equal(conv_fft_cache_clear(*state, &removed), CONV_FFT_SUCCESS);
    const char *said = capture_end();
    static const char *const sentences[] = {
        "tuning-1.jsonl stays: it has records of another version\n",
        "tuning-2.jsonl stays: it has records of another version\n",
        "tuning-headless.jsonl stays: the line that names its device and version is missing or damaged; \"conv-fft "
        "cache",
        "tuning-large.jsonl stays: the tuning records tuning-large.jsonl have 67108865 bytes"};
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; ++i)
        if (!strstr(said, sentences[i]))
            fail_msg("%s", said);
    assert_int_equal(occurrences(said, "conv_fft: "), 4);
    assert_int_equal(removed, 4); /* of our version two and the empty one, and the kernel */
    static const char *const left[] = {"tuning-1.jsonl", "tuning-2.jsonl", "tuning-headless.jsonl",
                                       "tuning-large.jsonl", "notes.jsonl"};
    for (size_t i = 0; i < sizeof left / sizeof left[0]; ++i)
        assert_int_equal(access(scratch_path(*state, left[i]), F_OK), 0);
    assert_int_equal(scratch_count(*state, ".jsonl", NULL), 5);
}

/* Two devices, versions of libraries, and records that replaced others. */
static void records_are_counted_once(void **state) {
    char text[4096], line[CF_LINE_BYTES], *all = malloc(64 * CF_LINE_BYTES), *other = test_file_text("B", 3);
    const cf_fingerprint a = test_fingerprint("A");
    cf_record record = test_record(1, 1.0, 1);
    assert_non_null(all);
    assert_int_equal(cf_header_format(&a, all), CONV_FFT_SUCCESS);
    for (int i = 0; i < 4; ++i) { /* two keys: with a library, and without */
        snprintf(record.library, sizeof record.library, "%s", i < 2 ? "cudnn 9.19.0" : "");
        record.written = record.decided = i + 1;
        assert_int_equal(cf_record_format(&record, line), CONV_FFT_SUCCESS);
        strcat(all, line);
    }
    scratch_write(scratch_path(*state, "tuning-a.jsonl"), all, strlen(all));
    strcat(all, other);
    scratch_write(scratch_path(*state, "tuning-ab.jsonl"), all, strlen(all));
    assert_int_equal(report(*state, text), 0);
    static const char device[] = " (gpu, compute 9.0, multiprocessors 132), interface 1, CUDA 13.0";
    char expected[3][256];
    snprintf(expected[0], 256, "  tuning-a.jsonl: 2 records, A%s, cudnn 9.19.0\n", device);
    snprintf(expected[1], 256, "  tuning-ab.jsonl: 2 devices\n    2 records, A%s, cudnn 9.19.0\n", device);
    snprintf(expected[2], 256, "    3 records, B%s\n", device);
    for (int i = 0; i < 3; ++i)
        if (!strstr(text, expected[i]))
            fail_msg("%s", text);
    free(all);
    free(other);
}

/* Each byte of a file is damaged in turn. Repaired, the file has all other lines, and nothing in it is damaged. */
static void damaged_files_are_repaired(void **state) {
    const cf_fingerprint a = test_fingerprint("A"), b = test_fingerprint("B");
    char stem[CF_STEM_BYTES], name[CF_STEM_BYTES + 8], report_text[4096], *text = test_file_text("A", 3);
    const size_t bytes = strlen(text);
    cf_fingerprint_stem(&a, stem);
    snprintf(name, sizeof name, "%s.jsonl", stem);
    const char *path = scratch_path(*state, name);
    for (size_t i = 0; i < bytes; i += 5) {
        int64_t removed = 0;
        const char before = text[i];
        text[i] ^= 4;
        scratch_write(path, text, bytes);
        const bool in_header = !memchr(text, '\n', i + 1);
        text[i] = before;
        const size_t there = records_in_cache(*state, "A", NULL);
        if (in_header) {
            assert_int_equal(there, 3);
            capture_begin();
            assert_int_equal(cf_cache_repair(*state, &b, &removed), CONV_FFT_SUCCESS);
            assert_int_equal(occurrences(capture_end(), "stays as it is"), 1);
            assert_int_equal(removed, 0);
        }
        assert_int_equal(cf_cache_repair(*state, &a, &removed), CONV_FFT_SUCCESS);
        assert_true(removed >= 1);
        assert_int_equal(report(*state, report_text), 0);
        assert_int_equal(records_in_cache(*state, "A", NULL), there);
        assert_int_equal(scratch_count(*state, "", NULL), 2); /* and the lock */
    }
    free(text);
}

/* A whole file is left alone. Strangers and files of other versions stay; a later header serves for the first one. */
static void other_files_are_not_repaired(void **state) {
    char stem[CF_STEM_BYTES], name[CF_STEM_BYTES + 16], line[CF_LINE_BYTES], *text = test_file_text("A", 2);
    cf_fingerprint a = test_fingerprint("A"), later = a;
    int64_t removed = 0;
    later.abi += 1;
    assert_int_equal(cf_header_format(&later, line), CONV_FFT_SUCCESS);
    strcat(line, "garbage\n");
    scratch_write(scratch_path(*state, "tuning-later.jsonl"), line, strlen(line));
    scratch_write(scratch_path(*state, "tuning-letter.jsonl"), "Dear reader\n", 12);
    cf_fingerprint_stem(&a, stem);
    snprintf(name, sizeof name, "%s.shard.jsonl", stem);
    char *twice = malloc(2 * strlen(text) + 1);
    assert_non_null(twice);
    strcpy(twice, text);
    strcat(twice, text);
    twice[3] ^= 4;
    scratch_write(scratch_path(*state, name), twice, strlen(twice));
    const char *kernel = write_kernel(*state);
    const cf_fingerprint b = test_fingerprint("B");
    capture_begin();
    assert_int_equal(cf_cache_repair(*state, &b, &removed), CONV_FFT_SUCCESS);
    const char *said = capture_end();
    assert_int_equal(removed, 1);
    assert_non_null(strstr(said, "tuning-later.jsonl stays as it is: it has records of another version"));
    assert_non_null(strstr(said, "tuning-letter.jsonl stays as it is: none of its lines can be verified"));
    assert_int_equal(occurrences(said, "stays"), 2);
    assert_int_equal(access(kernel, F_OK), 0);
    assert_int_equal(records_in_file(scratch_path(*state, name), "A", NULL), 2);
    scratch_write(kernel, "x", 1);
    capture_begin();
    assert_int_equal(cf_cache_repair(*state, &b, &removed), CONV_FFT_SUCCESS);
    capture_end();
    assert_int_equal(removed, 2);
    assert_int_equal(access(kernel, F_OK), -1);
    free(text);
    free(twice);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(kernels_are_verified),         IN_SCRATCH(absent_directory_is_empty),
        IN_SCRATCH(listing_is_not_a_use),         IN_SCRATCH(other_versions_are_not_removed),
        IN_SCRATCH(records_are_counted_once),     IN_SCRATCH(damaged_files_are_repaired),
        IN_SCRATCH(other_files_are_not_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
