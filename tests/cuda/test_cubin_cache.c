/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel cache: stored kernels are found again, damaged files are not used, and its size is limited. */
#include "support/kernel_cache.h"
#include "support/temp_dirs.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

static void stored_and_found(void **state) {
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    assert_false(cache_has(cache, "a kernel"));
    cache_store(cache, "a kernel");
    cache_store(cache, "b kernel");
    assert_true(cache_has(cache, "a kernel") && cache_has(cache, "b kernel"));
    assert_false(cache_has(cache, "c kernel"));
    cf_cubin_cache_destroy(cache);
    assert_true(directory_has(*state, "a kernel"));
    char path[1024];
    struct stat status;
    assert_int_equal(scratch_count(*state, ".cubin", path), 2);
    assert_int_equal(scratch_count(*state, "", NULL), 2);
    stat(path, &status);
    assert_int_equal(status.st_mode & 0777, 0600);
}

/* Kernels are also found in the folders of CONV_FFT_TUNE_PATH, and nothing is written there. A folder that others can
 * write is not used. */
static void further_folders(void **state) {
    const char *const further = scratch_path(*state, "further"), *const own = scratch_path(*state, "own");
    char list[2500];
    cf_cubin_cache *cache = cache_in(further, CF_CUBIN_CACHE_LIMIT);
    cache_store(cache, "a kernel");
    cf_cubin_cache_destroy(cache);
    snprintf(list, sizeof list, "%s/absent::%s", (const char *)*state, further);
    setenv("CONV_FFT_TUNE_PATH", list, 1);
    cache = cache_in(own, CF_CUBIN_CACHE_LIMIT);
    assert_true(cache_has(cache, "a kernel"));
    assert_false(cache_has(cache, "b kernel"));
    cache_store(cache, "b kernel");
    cf_cubin_cache_destroy(cache);
    assert_int_equal(scratch_count(further, ".cubin", NULL), 1);
    assert_int_equal(scratch_count(own, ".cubin", NULL), 1);
    chmod(further, 0777);
    cache = cache_in(own, CF_CUBIN_CACHE_LIMIT);
    assert_false(cache_has(cache, "a kernel"));
    cf_cubin_cache_destroy(cache);
    unsetenv("CONV_FFT_TUNE_PATH");
}

/* Another architecture, option or text makes another kernel. So does the same text as another part of the source. */
static void key_covers_everything(void **state) {
    (void)state;
    const cf_source sources[] = {
        {.name = "k", .text = "text"},
        {.name = "k", .text = "texts"},
        {.name = "k", .text = "text", .options = {"-DN=1"}},
        {.name = "k", .text = "text", .options = {"-DN=2"}},
        {.name = "k", .text = "text", .options = {"-DN=1", "-DM=1"}},
        {.name = "k", .text = "-DN=1\ntext"},
        {.name = "k", .text = "text", .headers = {"header"}},
        {.name = "k", .text = "text", .headers = {"other"}},
        {.name = "k", .text = "text", .headers = {"header", "other"}},
        {.name = "k", .text = "headertext"},
    };
    enum {
        COUNT = sizeof sources / sizeof sources[0]
    };
    cf_cubin_key keys[COUNT + 1];
    for (int i = 0; i < COUNT; ++i)
        keys[i] = cf_cubin_key_of("sm_80", &sources[i]);
    keys[COUNT] = cf_cubin_key_of("sm_90a", &sources[0]);
    for (int i = 0; i <= COUNT; ++i)
        for (int j = 0; j < i; ++j) {
            assert_true(keys[i].hash != keys[j].hash);
            assert_true(keys[i].crc != keys[j].crc);
            assert_false(cf_cubin_key_equal(&keys[i], &keys[j]));
        }
    for (int field = 0; field < 4; ++field) {
        cf_cubin_key other = keys[0];
        other.hash += field == 0;
        other.crc += field == 1;
        other.bytes += field == 2;
        assert_int_equal(cf_cubin_key_equal(&other, &keys[0]), field == 3);
    }
}

/* A file that is cut at any length or has any byte changed is never found. Compiling again repairs it. */
static void damaged(void **state) {
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    cache_store(cache, "a kernel");
    char path[1024];
    assert_int_equal(scratch_count(*state, ".cubin", path), 1);
    size_t bytes;
    char *const good = scratch_read(path, &bytes), *const bad = malloc(bytes + 1);
    assert_true(bytes > 256 && bytes < 1000);
    for (size_t length = 0; length < bytes; ++length) {
        scratch_write(path, good, length);
        if (cache_has(cache, "a kernel"))
            fail_msg("found in the first %zu of %zu bytes", length, bytes);
    }
    for (size_t i = 0; i < bytes; ++i) {
        memcpy(bad, good, bytes);
        bad[i] ^= 0x20;
        scratch_write(path, bad, bytes);
        if (cache_has(cache, "a kernel"))
            fail_msg("found with byte %zu changed", i);
    }
    memcpy(bad, good, bytes);
    bad[bytes] = 'a';
    scratch_write(path, bad, bytes + 1);
    assert_false(cache_has(cache, "a kernel"));
    cache_store(cache, "a kernel");
    assert_true(cache_has(cache, "a kernel"));
    cf_cubin_cache_destroy(cache);
    free(good);
    free(bad);
}

/* Replace one field of the file's first line, and compute its checksum again. */
static void forge(const char *path, const char *field, const char *value) {
    size_t bytes;
    char line[256], end[24], *const file = scratch_read(path, &bytes);
    const size_t length = strcspn(file, "\n") + 1, covered = length - strlen(" crc=01234567\n");
    const char *const at = strstr(file, field), *const rest = at + strlen(field) + strcspn(at + strlen(field), " ");
    snprintf(line, sizeof line, "%.*s%s%s%.*s", (int)(at - file), file, field, value,
             (int)(covered - (size_t)(rest - file)), rest);
    uLong crc = crc32_z(0, (const Bytef *)line, strlen(line));
    crc = crc32_z(crc, (const Bytef *)file + length, bytes - length);
    snprintf(end, sizeof end, " crc=%08lx\n", crc);
    strcat(line, end);
    char *const made = malloc(strlen(line) + bytes - length);
    memcpy(made, line, strlen(line));
    memcpy(made + strlen(line), file + length, bytes - length);
    scratch_write(path, made, strlen(line) + bytes - length);
    free(made);
    free(file);
}

/* Wrong sizes of machine code, with a right checksum. */
static void crafted_sizes(void **state) {
    static const char *const sizes[] = {"0", "1", "255", "257", "100000000", "18446744073709551611", "-1"};
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    char path[1024];
    cache_store(cache, "a kernel");
    scratch_count(*state, ".cubin", path);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        forge(path, " cubin=", sizes[i]);
        if (cache_has(cache, "a kernel"))
            fail_msg("found with a size of %s", sizes[i]);
    }
    forge(path, " cubin=", "256");
    assert_true(cache_has(cache, "a kernel"));
    cf_cubin_cache_destroy(cache);
}

/* A valid file under the name of another key is refused, also if the hashes are equal and only the CRC or the length
 * differs. */
static void file_of_another_key(void **state) {
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    const cf_cubin_key key = cache_key("b kernel");
    char path[1024], name[CF_CUBIN_NAME_BYTES], value[64];
    cache_store(cache, "a kernel");
    scratch_count(*state, ".cubin", path);
    cf_cubin_name(&key, name);
    assert_int_equal(rename(path, scratch_path(*state, name)), 0);
    assert_false(cache_has(cache, "b kernel"));
    for (int i = 0; i < 3; ++i) {
        snprintf(value, sizeof value, "%.16s-%08x-%zu", name, (unsigned)key.crc + (i == 0), key.bytes + (i == 1));
        forge(scratch_path(*state, name), " key=", value);
        cf_cubin cubin = {0};
        assert_int_equal(cf_cubin_cache_find(cache, &key, &cubin), i == 2);
        cf_cubin_clear(&cubin);
    }
    cf_cubin_cache_destroy(cache);
}

/* Machine code is compressed in files. */
static void files_are_compressed(void **state) {
    cf_cubin_cache *const cache = cache_in(*state, CF_CUBIN_CACHE_LIMIT);
    const cf_cubin_key key = cache_key("large");
    struct stat status;
    char path[1024];
    cf_cubin in = {.data = calloc(1, 100000), .bytes = 100000}, out = {0};
    assert_non_null(in.data);
    for (size_t i = 0; i < in.bytes; ++i)
        ((unsigned char *)in.data)[i] = (unsigned char)(i % 251);
    cf_cubin_cache_store(cache, &key, &in, "13.0");
    assert_int_equal(scratch_count(*state, ".cubin", path), 1);
    assert_int_equal(stat(path, &status), 0);
    assert_true(status.st_size < 10000);
    assert_true(cf_cubin_cache_find(cache, &key, &out));
    assert_int_equal(out.bytes, in.bytes);
    assert_memory_equal(out.data, in.data, in.bytes);
    cf_cubin_clear(&in);
    cf_cubin_clear(&out);
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
    cache_store(cache, text);
    scratch_count(*state, ".cubin", path);
    stat(path, &status);
    cf_cubin_cache_destroy(cache);
    const char *const foreign = scratch_path(*state, "records.jsonl"), *const temporary =
                                                                           scratch_path(*state, ".cubin-1-2-3");
    scratch_write(foreign, "{}", 2);
    scratch_write(temporary, "{}", 2);
    cache = cache_in(*state, 3 * status.st_size + 10);
    for (text[0] = 'b'; text[0] <= 'e'; ++text[0]) {
        const cf_cubin_key key = cache_key(text);
        char name[CF_CUBIN_NAME_BYTES];
        cf_cubin_name(&key, name);
        cache_store(cache, text);
        age(scratch_path(*state, name), 1000 - text[0]); /* b first */
        if (text[0] == 'b')
            age(path, 2000);
        if (text[0] == 'c')
            assert_true(cache_has(cache, "a kernel")); /* a is used again */
    }
    assert_int_equal(scratch_count(*state, ".cubin", NULL), 3);
    assert_true(cache_has(cache, "a kernel") && cache_has(cache, "d kernel") && cache_has(cache, "e kernel"));
    assert_false(cache_has(cache, "b kernel") || cache_has(cache, "c kernel"));
    assert_int_equal(scratch_count(*state, "records.jsonl", NULL), 1);
    assert_int_equal(access(temporary, F_OK), 0);
    age(temporary, 7200); /* by now its process has surely ended */
    cache_store(cache, "f kernel");
    assert_int_not_equal(access(temporary, F_OK), 0);
    cf_cubin_cache_destroy(cache);
}

static void bounded_in_memory(void **state) {
    capture_begin();
    chmod(*state, 0777);
    cf_cubin_cache *const cache = cache_in(*state, 1000);
    char text[] = "a kernel";
    for (; text[0] <= 'c'; ++text[0])
        cache_store(cache, text);
    for (int i = 0; i < 10; ++i)
        cache_store(cache, "c kernel"); /* again is not one more */
    const bool three = cache_has(cache, "a kernel");
    cache_store(cache, "d kernel");
    const bool used = cache_has(cache, "a kernel"), last = cache_has(cache, "d kernel"),
               unused = cache_has(cache, "b kernel");
    cf_cubin_cache_destroy(cache);
    capture_end();
    assert_true(three && used && last);
    assert_false(unused);
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

/* Threads and processes store and find the same kernels at the same time. They see whole kernels or none. */
static void *hammer(void *argument) {
    for (int i = 0; i < 40; ++i) {
        char text[] = "a kernel";
        text[0] = (char)('a' + i % 5);
        cache_store(argument, text);
        cache_has(argument, text);
    }
    return NULL;
}

static void threads_and_processes(void **state) {
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
        WITH_SCRATCH(further_folders),
        cmocka_unit_test(key_covers_everything),
        WITH_SCRATCH(damaged),
        WITH_SCRATCH(crafted_sizes),
        WITH_SCRATCH(file_of_another_key),
        WITH_SCRATCH(files_are_compressed),
        WITH_SCRATCH(bounded_on_disk),
        WITH_SCRATCH(bounded_in_memory),
        WITH_SCRATCH(location),
        WITH_SCRATCH(threads_and_processes),
    };
    return cmocka_run_group_tests_name("device cache", tests, NULL, NULL);
}
