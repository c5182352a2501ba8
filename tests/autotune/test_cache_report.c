/* SPDX-License-Identifier: Apache-2.0 */
/* The report on a cache directory, and which files are removed from it. */
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
    assert_int_equal(conv_fft_cache_clear(*state, &removed), CONV_FFT_SUCCESS);
    assert_int_equal(removed, 4); /* of our version two and the empty one, and the kernel */
    static const char *const left[] = {"tuning-1.jsonl", "tuning-2.jsonl", "tuning-headless.jsonl",
                                       "tuning-large.jsonl", "notes.jsonl"};
    for (size_t i = 0; i < sizeof left / sizeof left[0]; ++i)
        assert_int_equal(access(scratch_path(*state, left[i]), F_OK), 0);
    assert_int_equal(scratch_count(*state, ".jsonl", NULL), 5);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(kernels_are_verified),
        IN_SCRATCH(listing_is_not_a_use),
        IN_SCRATCH(other_versions_are_not_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
