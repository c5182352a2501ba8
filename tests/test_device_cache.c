/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel cache: what it gives back, what it refuses, and what it does where it cannot write. */
#include "device/cubin_cache.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A disk with this much room, in bytes; negative: a real one. */
static long disk_room = -1;

ssize_t __real_write(int file, const void *data, size_t bytes);
ssize_t __wrap_write(int file, const void *data, size_t bytes);
ssize_t __wrap_write(int file, const void *data, size_t bytes) {
    if (disk_room < 0)
        return __real_write(file, data, bytes);
    if (disk_room == 0) {
        errno = ENOSPC;
        return -1;
    }
    const ssize_t put = __real_write(file, data, bytes < (size_t)disk_room ? bytes : (size_t)disk_room);
    disk_room -= put;
    return put;
}

static cf_cubin_cache *cache_in(const char *directory, int64_t limit) {
    cf_cubin_cache *cache = NULL;
    assert_int_equal(cf_cubin_cache_create(directory, limit, CONV_FFT_LOG_WARNING, &cache), CONV_FFT_SUCCESS);
    return cache;
}

static cf_cubin_key key_of(const char *text) {
    const cf_source source = {.name = "kernel", .text = text};
    cf_cubin_key key;
    assert_int_equal(cf_cubin_key_make("sm_90a", &source, &key), CONV_FFT_SUCCESS);
    return key;
}

/* The machine code of a text in these tests: 256 bytes of its first letter. */
static void store(cf_cubin_cache *cache, const char *text) {
    cf_cubin_key key = key_of(text);
    char code[256];
    memset(code, text[0], sizeof code);
    const cf_cubin cubin = {.data = code, .bytes = sizeof code};
    cf_cubin_cache_store(cache, &key, &cubin, "13.0");
    cf_cubin_key_clear(&key);
}

static bool found(cf_cubin_cache *cache, const char *text) {
    cf_cubin_key key = key_of(text);
    cf_cubin cubin = {0};
    const bool is = cf_cubin_cache_find(cache, &key, &cubin);
    if (is) {
        assert_int_equal(cubin.bytes, 256);
        for (int i = 0; i < 256; ++i)
            assert_int_equal(((char *)cubin.data)[i], text[0]);
    }
    cf_cubin_clear(&cubin);
    cf_cubin_key_clear(&key);
    return is;
}

static bool found_anew(const char *directory, const char *text) {
    cf_cubin_cache *const cache = cache_in(directory, CF_CUBIN_CACHE_LIMIT);
    const bool is = found(cache, text);
    cf_cubin_cache_destroy(cache);
    return is;
}

static void stored_and_found(void **state) {
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    assert_false(found(cache, "a kernel"));
    store(cache, "a kernel");
    store(cache, "b kernel");
    assert_true(found(cache, "a kernel") && found(cache, "b kernel"));
    assert_false(found(cache, "c kernel"));
    cf_cubin_cache_destroy(cache);
    assert_true(found_anew(*state, "a kernel"));
    char path[1024];
    struct stat status;
    assert_int_equal(scratch_count(*state, ".cubin", path), 2);
    assert_int_equal(scratch_count(*state, "", NULL), 2);
    stat(path, &status);
    assert_int_equal(status.st_mode & 0777, 0600);
}

/* Architecture, options and text each make another kernel; so does what stands where. */
static void key_covers_everything(void **state) {
    (void)state;
    const cf_source sources[] = {
        {.name = "k", .text = "text"},
        {.name = "k", .text = "texts"},
        {.name = "k", .text = "text", .options = {"-DN=1"}},
        {.name = "k", .text = "text", .options = {"-DN=2"}},
        {.name = "k", .text = "text", .options = {"-DN=1", "-DM=1"}},
        {.name = "k", .text = "-DN=1\ntext"},
    };
    enum {
        COUNT = sizeof sources / sizeof sources[0]
    };
    cf_cubin_key keys[COUNT + 1];
    for (int i = 0; i < COUNT; ++i)
        cf_cubin_key_make("sm_80", &sources[i], &keys[i]);
    cf_cubin_key_make("sm_90a", &sources[0], &keys[COUNT]);
    for (int i = 0; i <= COUNT; ++i)
        for (int j = 0; j < i; ++j) {
            assert_true(keys[i].bytes != keys[j].bytes || memcmp(keys[i].text, keys[j].text, keys[i].bytes) != 0);
            assert_true(keys[i].hash != keys[j].hash);
        }
    for (int i = 0; i <= COUNT; ++i)
        cf_cubin_key_clear(&keys[i]);
}

/* Cut at every length, and every byte changed: never found, and compiling again repairs it. */
static void damaged(void **state) {
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    store(cache, "a kernel");
    char path[1024];
    assert_int_equal(scratch_count(*state, ".cubin", path), 1);
    size_t bytes;
    char *const good = scratch_read(path, &bytes), *const bad = malloc(bytes + 1);
    assert_true(bytes > 256 && bytes < 1000);
    for (size_t length = 0; length < bytes; ++length) {
        scratch_write(path, good, length);
        if (found(cache, "a kernel"))
            fail_msg("found in the first %zu of %zu bytes", length, bytes);
    }
    for (size_t i = 0; i < bytes; ++i) {
        memcpy(bad, good, bytes);
        bad[i] ^= 0x20;
        scratch_write(path, bad, bytes);
        if (found(cache, "a kernel"))
            fail_msg("found with byte %zu changed", i);
    }
    memcpy(bad, good, bytes);
    bad[bytes] = 'a';
    scratch_write(path, bad, bytes + 1);
    assert_false(found(cache, "a kernel"));
    store(cache, "a kernel");
    assert_true(found(cache, "a kernel"));
    cf_cubin_cache_destroy(cache);
    free(good);
    free(bad);
}

/* A sound file under the name of another key, as if two hashes were equal. */
static void other_key(void **state) {
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    cf_cubin_key key = key_of("b kernel");
    char path[1024], name[CF_CUBIN_NAME_BYTES];
    store(cache, "a kernel");
    scratch_count(*state, ".cubin", path);
    cf_cubin_name(&key, name);
    assert_int_equal(rename(path, scratch_path(*state, name)), 0);
    assert_false(found(cache, "b kernel"));
    cf_cubin_key_clear(&key);
    cf_cubin_cache_destroy(cache);
}

static void directory_others_can_write(void **state) {
    cf_cubin_cache *cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    store(cache, "a kernel");
    cf_cubin_cache_destroy(cache);
    const mode_t modes[] = {0777, 0770, 01777, 0722};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; ++i) {
        chmod(*state, modes[i]);
        capture_begin();
        cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
        const bool old = found(cache, "a kernel");
        store(cache, "b kernel");
        const bool kept = found(cache, "b kernel");
        cf_cubin_cache_destroy(cache);
        const char *const said = capture_end();
        assert_false(old);
        assert_true(kept); /* in memory */
        assert_int_equal(occurrences(said, "conv_fft: "), 1);
        assert_non_null(strstr(said, "is not used, because others can write it"));
    }
    chmod(*state, 0700);
    assert_true(found_anew(*state, "a kernel"));
    assert_false(found_anew(*state, "b kernel"));
}

static void file_others_can_write(void **state) {
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    char path[1024];
    store(cache, "a kernel");
    scratch_count(*state, ".cubin", path);
    const mode_t modes[] = {0666, 0620, 0602};
    capture_begin();
    bool any = false;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; ++i) {
        chmod(path, modes[i]);
        any = any || found(cache, "a kernel");
    }
    const char *const said = capture_end();
    assert_false(any);
    assert_int_equal(occurrences(said, "conv_fft: "), 1);
    assert_int_equal(occurrences(said, "others can write it"), 1);
    store(cache, "a kernel"); /* replaces it */
    assert_true(found(cache, "a kernel"));
    cf_cubin_cache_destroy(cache);
}

static void not_a_file(void **state) {
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    char path[1024];
    store(cache, "a kernel");
    scratch_count(*state, ".cubin", path);
    const char *const elsewhere = scratch_path(*state, "elsewhere");
    rename(path, elsewhere);
    assert_int_equal(symlink(elsewhere, path), 0);
    capture_begin();
    const bool linked = found(cache, "a kernel");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    const bool piped = found(cache, "a kernel");
    const char *const said = capture_end();
    assert_false(linked || piped);
    assert_int_equal(occurrences(said, "conv_fft: "), 1);
    cf_cubin_cache_destroy(cache);
}

/* Only root can make a file of another user. */
static void of_another_user(void **state) {
    if (geteuid() != 0)
        skip();
    cf_cubin_cache *cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    char path[1024];
    store(cache, "a kernel");
    scratch_count(*state, ".cubin", path);
    assert_int_equal(chown(path, 12345, 12345), 0);
    capture_begin();
    const bool file = found(cache, "a kernel");
    cf_cubin_cache_destroy(cache);
    chown(path, 0, 0);
    assert_int_equal(chown(*state, 12345, 12345), 0);
    const bool directory = found_anew(*state, "a kernel");
    const char *const said = capture_end();
    assert_false(file || directory);
    assert_int_equal(occurrences(said, "it belongs to another user"), 2);
    chown(*state, 0, 0);
    assert_true(found_anew(*state, "a kernel"));
}

/* A warmed directory gives its kernels; new ones stay in memory, with one warning. */
static void read_only(void **state) {
    unprivileged_begin(*state);
    cf_cubin_cache *cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    store(cache, "a kernel");
    cf_cubin_cache_destroy(cache);
    chmod(*state, 0500);
    capture_begin();
    cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    const bool warm = found(cache, "a kernel");
    store(cache, "b kernel");
    store(cache, "c kernel");
    const bool kept = found(cache, "b kernel") && found(cache, "c kernel");
    const bool writable = cf_cache_folder_writable(cf_cubin_cache_folder(cache));
    cf_cubin_cache_destroy(cache);
    const char *const said = capture_end();
    const bool stayed = found_anew(*state, "b kernel");
    chmod(*state, 0700);
    unprivileged_end();
    assert_true(warm && kept);
    assert_false(writable || stayed);
    assert_int_equal(occurrences(said, "conv_fft: "), 1);
    assert_int_equal(occurrences(said, "kept in memory only"), 1);
    assert_int_equal(scratch_count(*state, "", NULL), 1);
}

static void cannot_be_made(void **state) {
    unprivileged_begin(*state);
    chmod(*state, 0500);
    capture_begin();
    cf_cubin_cache *const cache = cache_in(scratch_path(*state, "a/b"), CF_CUBIN_CACHE_LIMIT);
    store(cache, "a kernel");
    const bool kept = found(cache, "a kernel");
    cf_cubin_cache_destroy(cache);
    const char *const said = capture_end();
    chmod(*state, 0700);
    unprivileged_end();
    assert_true(kept);
    assert_int_equal(occurrences(said, "conv_fft: "), 1);
    assert_non_null(
        strstr(said, "a/b cannot be opened: No such file or directory; compiled kernels are kept in memory only"));
}

/* Full after any number of bytes: nothing half-written is found or left. */
static void disk_full(void **state) {
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    capture_begin();
    for (long room = 0; room < 300; room += 7) {
        disk_room = room;
        store(cache, "a kernel");
    }
    disk_room = -1;
    const char *const said = capture_end();
    assert_int_equal(scratch_count(*state, "", NULL), 0);
    assert_int_equal(occurrences(said, "conv_fft: "), 1);
    assert_int_equal(
        occurrences(said, "No space left on device; compiled kernels that cannot be written are kept in memory only"),
        1);
    assert_true(found(cache, "a kernel"));
    assert_false(found_anew(*state, "a kernel"));
    store(cache, "a kernel"); /* there is room again */
    assert_true(found_anew(*state, "a kernel"));
    cf_cubin_cache_destroy(cache);
}

static void age(const char *path, time_t seconds) {
    const struct timespec times[2] = {{time(NULL) - seconds, 0}, {time(NULL) - seconds, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void bounded_on_disk(void **state) {
    cf_cubin_cache *cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    char path[1024], text[] = "a kernel";
    struct stat status;
    store(cache, text);
    scratch_count(*state, ".cubin", path);
    stat(path, &status);
    cf_cubin_cache_destroy(cache);
    const char *const foreign = scratch_path(*state, "records.jsonl"), *const temporary =
                                                                           scratch_path(*state, ".cubin-1-2-3");
    scratch_write(foreign, "{}", 2);
    scratch_write(temporary, "{}", 2);
    cache = cache_in(*state, 3 * status.st_size + 10);
    for (text[0] = 'b'; text[0] <= 'e'; ++text[0]) {
        cf_cubin_key key = key_of(text);
        char name[CF_CUBIN_NAME_BYTES];
        cf_cubin_name(&key, name);
        cf_cubin_key_clear(&key);
        store(cache, text);
        age(scratch_path(*state, name), 1000 - text[0]); /* b first */
        if (text[0] == 'b')
            age(path, 2000);
        if (text[0] == 'c')
            assert_true(found(cache, "a kernel")); /* a is used again */
    }
    assert_int_equal(scratch_count(*state, ".cubin", NULL), 3);
    assert_true(found(cache, "a kernel") && found(cache, "d kernel") && found(cache, "e kernel"));
    assert_false(found(cache, "b kernel") || found(cache, "c kernel"));
    assert_int_equal(scratch_count(*state, "records.jsonl", NULL), 1);
    assert_int_equal(access(temporary, F_OK), 0);
    age(temporary, 7200); /* by now its process has surely ended */
    store(cache, "f kernel");
    assert_int_not_equal(access(temporary, F_OK), 0);
    cf_cubin_cache_destroy(cache);
}

static void bounded_in_memory(void **state) {
    capture_begin();
    chmod(*state, 0777);
    cf_cubin_cache *const cache = cache_in(*state, 1000);
    char text[] = "a kernel";
    for (; text[0] <= 'c'; ++text[0])
        store(cache, text);
    const bool three = found(cache, "a kernel");
    store(cache, "d kernel");
    const bool used = found(cache, "a kernel"), last = found(cache, "d kernel"), unused = found(cache, "b kernel");
    cf_cubin_cache_destroy(cache);
    capture_end();
    assert_true(three && used && last);
    assert_false(unused);
}

static void removed(void **state) {
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    cf_cubin_key key = key_of("a kernel");
    store(cache, "a kernel");
    cf_cubin_cache_remove(cache, &key);
    assert_false(found(cache, "a kernel"));
    cf_cubin_key_clear(&key);
    cf_cubin_cache_destroy(cache);
}

static void path_is(const char *directory, const char *expected) {
    cf_cache_folder folder;
    cf_cache_folder_open(&folder, directory, false);
    assert_string_equal(folder.path, expected);
    cf_cache_folder_close(&folder);
}

static void location(void **state) {
    static const char *const names[] = {"CONV_FFT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
    char expected[1024];
    setenv("CONV_FFT_CACHE_DIR", "/own", 1);
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    setenv("HOME", *state, 1);
    path_is("/given", "/given");
    path_is(NULL, "/own");
    unsetenv("CONV_FFT_CACHE_DIR");
    path_is(NULL, "/xdg/conv_fft");
    setenv("XDG_CACHE_HOME", "relative", 1);
    snprintf(expected, sizeof expected, "%s/.cache/conv_fft", (const char *)*state);
    path_is(NULL, expected);
    unsetenv("XDG_CACHE_HOME");
    path_is(NULL, expected);
    cf_cache_folder folder;
    cf_cache_folder_open(&folder, NULL, true);
    struct stat status;
    assert_true(folder.descriptor >= 0);
    assert_int_equal(stat(expected, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    cf_cache_folder_close(&folder);
    setenv("HOME", "relative", 1);
    path_is(NULL, "");
    for (int i = 0; i < 3; ++i)
        unsetenv(names[i]);
    cf_cache_folder_open(&folder, NULL, true);
    assert_int_equal(folder.descriptor, -1);
    assert_non_null(strstr(folder.problem, "set CONV_FFT_CACHE_DIR or HOME"));
}

/* Threads and processes that store and find the same kernels at once see them whole or not at all. */
static void *hammer(void *argument) {
    for (int i = 0; i < 40; ++i) {
        char text[] = "a kernel";
        text[0] = (char)('a' + i % 5);
        store(argument, text);
        found(argument, text);
    }
    return NULL;
}

static void at_once(void **state) {
    const pid_t child = fork();
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    if (child == 0) {
        hammer(cache);
        _exit(0);
    }
    pthread_t threads[3];
    for (int i = 0; i < 3; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, cache), 0);
    for (int i = 0; i < 3; ++i)
        pthread_join(threads[i], NULL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(scratch_count(*state, "", NULL), 5);
    cf_cubin_cache_destroy(cache);
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    umask(0);
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(stored_and_found),
        cmocka_unit_test(key_covers_everything),
        WITH_SCRATCH(damaged),
        WITH_SCRATCH(other_key),
        WITH_SCRATCH(directory_others_can_write),
        WITH_SCRATCH(file_others_can_write),
        WITH_SCRATCH(not_a_file),
        WITH_SCRATCH(of_another_user),
        WITH_SCRATCH(read_only),
        WITH_SCRATCH(cannot_be_made),
        WITH_SCRATCH(disk_full),
        WITH_SCRATCH(bounded_on_disk),
        WITH_SCRATCH(bounded_in_memory),
        WITH_SCRATCH(removed),
        WITH_SCRATCH(location),
        WITH_SCRATCH(at_once),
    };
    return cmocka_run_group_tests_name("device cache", tests, NULL, NULL);
}
