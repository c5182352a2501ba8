/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel cache with files that it must not trust, and without permission or space to write. */
#include "support/disk_full.h"
#include "support/kernel_cache.h"
#include "support/temp_dirs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

ssize_t __wrap_write(int file, const void *data, size_t bytes); /* support/disk_full.c */

static void directory_others_can_write(void **state) {
    cf_cubin_cache *cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    cache_store(cache, "a kernel");
    cf_cubin_cache_destroy(cache);
    const mode_t modes[] = {0777, 0770, 01777, 0722};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; ++i) {
        chmod(*state, modes[i]);
        capture_begin();
        cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
        const bool old = cache_has(cache, "a kernel");
        cache_store(cache, "b kernel");
        const bool kept = cache_has(cache, "b kernel");
        cf_cubin_cache_destroy(cache);
        const char *const said = capture_end();
        assert_false(old);
        assert_true(kept); /* in memory */
        assert_int_equal(occurrences(said, "conv_fft: "), 1);
        assert_non_null(strstr(said, "is not used, because others can write it"));
    }
    chmod(*state, 0700);
    assert_true(directory_has(*state, "a kernel"));
    assert_false(directory_has(*state, "b kernel"));
}

static void file_others_can_write(void **state) {
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    char path[1024];
    cache_store(cache, "a kernel");
    scratch_count(*state, ".cubin", path);
    const mode_t modes[] = {0666, 0620, 0602};
    capture_begin();
    bool any = false;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; ++i) {
        chmod(path, modes[i]);
        any = any || cache_has(cache, "a kernel");
    }
    const char *const said = capture_end();
    assert_false(any);
    assert_int_equal(occurrences(said, "conv_fft: "), 1);
    assert_int_equal(occurrences(said, "others can write it"), 1);
    cache_store(cache, "a kernel"); /* replaces it */
    assert_true(cache_has(cache, "a kernel"));
    cf_cubin_cache_destroy(cache);
}

static void not_a_file(void **state) {
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    char path[1024];
    cache_store(cache, "a kernel");
    scratch_count(*state, ".cubin", path);
    const char *const elsewhere = scratch_path(*state, "elsewhere");
    rename(path, elsewhere);
    assert_int_equal(symlink(elsewhere, path), 0);
    capture_begin();
    const bool linked = cache_has(cache, "a kernel");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    const bool piped = cache_has(cache, "a kernel");
    const char *const said = capture_end();
    assert_false(linked || piped);
    assert_int_equal(occurrences(said, "conv_fft: "), 1);
    cf_cubin_cache_destroy(cache);
}

/* Only root can create a file of another user. */
static void file_of_another_user(void **state) {
    if (geteuid() != 0)
        skip();
    cf_cubin_cache *cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    char path[1024];
    cache_store(cache, "a kernel");
    scratch_count(*state, ".cubin", path);
    assert_int_equal(chown(path, 12345, 12345), 0);
    capture_begin();
    const bool file = cache_has(cache, "a kernel");
    cf_cubin_cache_destroy(cache);
    chown(path, 0, 0);
    assert_int_equal(chown(*state, 12345, 12345), 0);
    const bool directory = directory_has(*state, "a kernel");
    const char *const said = capture_end();
    assert_false(file || directory);
    assert_int_equal(occurrences(said, "it belongs to another user"), 2);
    chown(*state, 0, 0);
    assert_true(directory_has(*state, "a kernel"));
}

/* Root could change everything of a user anyway, so the user's programs trust its directories and files. */
static void directory_of_root(void **state) {
    if (geteuid() != 0)
        skip();
    cf_cubin_cache *cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    char path[1024];
    cache_store(cache, "a kernel");
    cf_cubin_cache_destroy(cache);
    scratch_count(*state, ".cubin", path);
    chmod(path, 0644);
    chmod(*state, 0755);
    assert_int_equal(seteuid(12345), 0);
    capture_begin();
    const bool found = directory_has(*state, "a kernel");
    const char *const said = capture_end();
    assert_int_equal(seteuid(0), 0);
    assert_true(found);
    assert_int_equal(occurrences(said, "conv_fft: "), 0);
}

/* A read-only directory gives its kernels. New kernels stay in memory, with one warning. */
static void read_only(void **state) {
    unprivileged_begin(*state);
    cf_cubin_cache *cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    cache_store(cache, "a kernel");
    cf_cubin_cache_destroy(cache);
    chmod(*state, 0500);
    capture_begin();
    cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    const bool warm = cache_has(cache, "a kernel");
    cache_store(cache, "b kernel");
    cache_store(cache, "c kernel");
    const bool kept = cache_has(cache, "b kernel") && cache_has(cache, "c kernel");
    const bool writable = cf_cache_folder_writable(cf_cubin_cache_folder(cache));
    cf_cubin_cache_destroy(cache);
    const char *const said = capture_end();
    const bool stayed = directory_has(*state, "b kernel");
    chmod(*state, 0700);
    unprivileged_end();
    assert_true(warm && kept);
    assert_false(writable || stayed);
    assert_int_equal(occurrences(said, "conv_fft: "), 1);
    assert_int_equal(occurrences(said, "kept in memory only"), 1);
    assert_int_equal(scratch_count(*state, "", NULL), 1);
}

static void directory_that_cannot_be_made(void **state) {
    unprivileged_begin(*state);
    chmod(*state, 0500);
    capture_begin();
    cf_cubin_cache *const cache = cache_in(scratch_path(*state, "a/b"), CF_CUBIN_CACHE_LIMIT);
    cache_store(cache, "a kernel");
    const bool kept = cache_has(cache, "a kernel");
    cf_cubin_cache_destroy(cache);
    const char *const said = capture_end();
    chmod(*state, 0700);
    unprivileged_end();
    assert_true(kept);
    assert_int_equal(occurrences(said, "conv_fft: "), 1);
    assert_non_null(
        strstr(said, "a/b cannot be opened: No such file or directory; compiled kernels are kept in memory only"));
}

/* The disk is full after any number of bytes: no partial file is found or left. */
static void disk_full(void **state) {
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    capture_begin();
    for (long room = 0; room < 300; room += 7) {
        disk_room = room;
        cache_store(cache, "a kernel");
    }
    disk_room = -1;
    const char *const said = capture_end();
    assert_int_equal(scratch_count(*state, "", NULL), 0);
    assert_int_equal(occurrences(said, "conv_fft: "), 1);
    assert_int_equal(
        occurrences(said, "No space left on device; compiled kernels that cannot be written are kept in memory only"),
        1);
    assert_true(cache_has(cache, "a kernel"));
    assert_false(directory_has(*state, "a kernel"));
    cache_store(cache, "a kernel"); /* there is room again */
    assert_true(directory_has(*state, "a kernel"));
    cf_cubin_cache_destroy(cache);
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    umask(0);
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(directory_others_can_write),
        WITH_SCRATCH(file_others_can_write),
        WITH_SCRATCH(not_a_file),
        WITH_SCRATCH(file_of_another_user),
        WITH_SCRATCH(directory_of_root),
        WITH_SCRATCH(read_only),
        WITH_SCRATCH(directory_that_cannot_be_made),
        WITH_SCRATCH(disk_full),
    };
    return cmocka_run_group_tests_name("device cache trust", tests, NULL, NULL);
}
