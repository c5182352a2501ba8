/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a cache directory: several processes at the same time, some of them killed; a full disk; directories
 * that cannot be written or must not be trusted; network file systems; CONV_FFT_TUNE_PATH. */
#include "support/disk_full.h"
#include "support/records.h"
#include "support/temp_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

ssize_t __wrap_write(int file, const void *data, size_t bytes); /* support/disk_full.c */

/* The file system type that fstatfs() returns; 0: the real one. */
static long file_system;

int __real_fstatfs(int file, struct statfs *status);
int __wrap_fstatfs(int file, struct statfs *status);
int __wrap_fstatfs(int file, struct statfs *status) {
    const int result = __real_fstatfs(file, status);
    if (file_system)
        status->f_type = file_system;
    return result;
}

/* A pause between a failed write and its repair, so that other writers come between. */
static long before_truncation; /* nanoseconds */

int __real_ftruncate(int file, off_t bytes);
int __wrap_ftruncate(int file, off_t bytes);
int __wrap_ftruncate(int file, off_t bytes) {
    nanosleep(&(struct timespec){.tv_nsec = before_truncation}, NULL);
    return __real_ftruncate(file, bytes);
}

static bool append(cf_record_cache *cache, int number) {
    const cf_record r = test_record(number, 1.0, 1 + number);
    return cf_record_cache_append(cache, &r);
}

static void kept_from_process_to_process(void **state) {
    const char *directory = scratch_path(*state, "a/b/cache");
    cf_record_cache cache = test_cache(directory, "A"), other = test_cache(directory, "B");
    assert_true(append(&cache, 1) && append(&cache, 2) && append(&other, 3));
    cf_record_cache_clear(&cache);
    cf_record_cache_clear(&other);
    assert_int_equal(records_in_cache(directory, "A", NULL), 2);
    assert_int_equal(records_in_cache(directory, "B", NULL), 1);
    assert_int_equal(records_in_cache(directory, "C", NULL), 0);
    assert_int_equal(scratch_count(directory, ".jsonl", NULL), 2);
    struct stat status;
    assert_int_equal(stat(directory, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
}

/* ---- writers that are killed */

enum {
    WRITERS = 8,
    LIVES = 64,    /* that are killed, of all writers together */
    RECORDS = 150, /* of a life that ends by itself */
    LIFE_RECORDS = 1000
};

/* Append records and report each one that was written. Then exit; a process that is to be killed waits for that, so
 * that the signal never comes too late. */
static void live(const char *directory, int life, int report, bool ends) {
    cf_record_cache cache = test_cache(directory, "A");
    for (int i = 0; i < (ends ? RECORDS : LIFE_RECORDS); ++i) {
        const int number = life * LIFE_RECORDS + i;
        if (append(&cache, number) && write(report, &number, sizeof number) != sizeof number)
            _exit(2);
    }
    while (!ends)
        pause();
    _exit(0);
}

static pid_t spawn(const char *directory, int life, int report, bool ends) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        live(directory, life, report, ends);
    return child;
}

static void pause_for(long microseconds) { nanosleep(&(struct timespec){.tv_nsec = 1000 * microseconds}, NULL); }

static void nothing_reported_is_lost(void **state) {
    const char *directory = *state;
    int report[2];
    assert_int_equal(pipe(report), 0);
    fcntl(report[1], F_SETPIPE_SZ, 1 << 20); /* room for every report */
    pid_t writers[WRITERS];
    int killed = 0;
    unsigned random = 1;
    for (int i = 0; i < WRITERS; ++i)
        writers[i] = spawn(directory, i, report[1], false);
    for (int lives = WRITERS; killed < LIVES; ++lives) {
        random = random * 1103515245u + 12345u;
        pause_for(random >> 16 & 4095);
        const int victim = killed < LIVES - WRITERS ? (int)(random >> 8 & (WRITERS - 1)) : killed - (LIVES - WRITERS);
        int how;
        kill(writers[victim], SIGKILL);
        assert_int_equal(waitpid(writers[victim], &how, 0), writers[victim]);
        assert_true(WIFSIGNALED(how));
        /* The last killed writers replace all earlier ones and stay. */
        const bool last = ++killed > LIVES - WRITERS;
        writers[victim] = spawn(directory, lives, report[1], last);
    }
    for (int i = 0; i < WRITERS; ++i) {
        int how;
        assert_int_equal(waitpid(writers[i], &how, 0), writers[i]);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
    close(report[1]);

    cf_records records = {0};
    cf_record_cache cache = test_cache(directory, "A");
    int64_t corrupt = 0;
    assert_int_equal(cf_record_cache_read(&cache, &records, &corrupt), CONV_FFT_SUCCESS);
    int reported = 0;
    for (int number; read(report[0], &number, sizeof number) == sizeof number; ++reported) {
        const cf_record wanted = test_record(number, 1.0, 1 + number);
        const cf_record *found = cf_records_find(&records, &wanted.key, "");
        if (!found)
            fail_msg("record %d was reported written and is lost", number);
        assert_string_equal(found->strategy[0], wanted.strategy[0]);
    }
    assert_true(reported >= WRITERS * RECORDS);
    assert_in_range(corrupt, 0, killed); /* at most one torn line for each */
    close(report[0]);
    cf_records_clear(&records);
    cf_record_cache_clear(&cache);
}

/* After a failed write, a writer removes its own part of a line, but nothing that another process wrote meanwhile. */
static void failed_write_keeps_lines_of_others(void **state) {
    int report[2];
    assert_int_equal(pipe(report), 0);
    fcntl(report[1], F_SETPIPE_SZ, 1 << 20);
    const pid_t failing = fork();
    assert_true(failing >= 0);
    if (failing == 0) {
        cf_record_cache cache = test_cache(*state, "A");
        const cf_fingerprint f = test_fingerprint("A");
        const cf_record r = test_record(99999, 1.0, 1);
        char name[sizeof cache.stem + 8];
        snprintf(name, sizeof name, "%s.jsonl", cache.stem);
        before_truncation = 1000000;
        for (cf_cache_folder_open(&cache.folder, *state, true);;) { /* in the common file alone, never in a shard */
            const int lock = cf_record_cache_lock(&cache.folder);
            disk_room = 100;
            if (lock < 0 || cf_record_file_append(cache.folder.descriptor, name, &f, &r) == CONV_FFT_SUCCESS)
                _exit(3);
            close(lock);
            pause_for(700); /* in which the others come */
        }
    }
    const pid_t writers[2] = {spawn(*state, 1, report[1], true), spawn(*state, 2, report[1], true)};
    for (int i = 0; i < 2; ++i) {
        int how;
        assert_int_equal(waitpid(writers[i], &how, 0), writers[i]);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
    int how;
    kill(failing, SIGKILL);
    assert_int_equal(waitpid(failing, &how, 0), failing);
    assert_true(WIFSIGNALED(how));
    close(report[0]);
    close(report[1]);
    assert_int_equal(records_in_cache(*state, "A", NULL), 2 * RECORDS);
}

/* If a line would make a file too large to be read, the line goes to a shard. */
static void full_file_makes_a_shard(void **state) {
    cf_record_cache cache = test_cache(*state, "A");
    assert_true(append(&cache, 1));
    char path[1024];
    assert_int_equal(scratch_count(*state, ".jsonl", path), 1);
    assert_int_equal(truncate(path, (off_t)CF_RECORD_FILE_MAX_BYTES - 100), 0);
    assert_true(append(&cache, 2) && append(&cache, 3));
    cf_record_cache_clear(&cache);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, CF_RECORD_FILE_MAX_BYTES - 100);
    assert_int_equal(scratch_count(*state, ".jsonl", NULL), 2);
    assert_int_equal(records_in_cache(*state, "A", NULL), 3);
}

/* A process is stopped while it holds the lock. Other processes write shards. */
static void held_lock_makes_a_shard(void **state) {
    cf_record_cache cache = test_cache(*state, "A");
    assert_true(append(&cache, 1));
    const int lock = open(scratch_path(*state, "tuning.lock"), O_RDWR);
    assert_true(lock >= 0);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    assert_true(append(&cache, 2));
    close(lock);
    assert_true(append(&cache, 3));
    cf_record_cache_clear(&cache);
    assert_int_equal(scratch_count(*state, ".jsonl", NULL), 2);
    assert_int_equal(records_in_cache(*state, "A", NULL), 3);
}

static void network_file_system(void **state) {
    file_system = 0x6969; /* NFS */
    pid_t children[3];
    int report[2];
    assert_int_equal(pipe(report), 0);
    for (int i = 0; i < 3; ++i)
        children[i] = spawn(*state, i, report[1], true);
    for (int i = 0; i < 3; ++i)
        waitpid(children[i], NULL, 0);
    file_system = 0;
    close(report[0]);
    close(report[1]);
    assert_int_equal(scratch_count(*state, ".jsonl", NULL), 3); /* a shard each */
    assert_int_equal(scratch_count(*state, ".lock", NULL), 0);
    assert_int_equal(records_in_cache(*state, "A", NULL), 3 * RECORDS);
}

/* ---- where nothing can be written */

static void full_disk(void **state) {
    cf_record_cache cache = test_cache(*state, "A");
    assert_true(append(&cache, 1));
    const long rooms[] = {0, 1, 100, 200};
    capture_begin();
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; ++i) {
        disk_room = rooms[i];
        const bool written = append(&cache, 2);
        disk_room = -1;
        if (written)
            break;
    }
    const char *said = capture_end();
    assert_int_equal(occurrences(said, "conv_fft: "), 1);
    assert_non_null(strstr(said, "No space left"));
    int64_t corrupt = 0;
    assert_int_equal(records_in_cache(*state, "A", &corrupt), 1);
    assert_int_equal(corrupt, 0); /* no part of a line is left */
    assert_true(append(&cache, 2));
    assert_int_equal(records_in_cache(*state, "A", NULL), 2);
    cf_record_cache_clear(&cache);
}

static void read_only(void **state) {
    cf_record_cache cache = test_cache(*state, "A");
    assert_true(append(&cache, 1));
    cf_record_cache_clear(&cache);
    char path[1024];
    assert_int_equal(scratch_count(*state, ".jsonl", path), 1);
    chmod(path, 0444);
    chmod(*state, 0555);
    unprivileged_begin(*state);
    cf_records records = {0};
    int64_t corrupt = 0;
    cache = test_cache(*state, "A");
    capture_begin();
    const conv_fft_status status = cf_record_cache_read(&cache, &records, &corrupt);
    const bool first = append(&cache, 2), second = append(&cache, 3);
    const char *said = capture_end();
    unprivileged_end();
    assert_int_equal(status, CONV_FFT_SUCCESS);
    assert_int_equal(records.count, 1);
    assert_false(first || second);
    assert_int_equal(occurrences(said, "conv_fft: "), 1);
    assert_non_null(strstr(said, "tuning records are kept in memory only"));
    cf_records_clear(&records);
    cf_record_cache_clear(&cache);
}

static void directory_others_can_write(void **state) {
    cf_record_cache cache = test_cache(*state, "A");
    assert_true(append(&cache, 1));
    cf_record_cache_clear(&cache);
    chmod(*state, 0777);
    assert_int_equal(records_in_cache(*state, "A", NULL), 0);
    cache = test_cache(*state, "A");
    capture_begin();
    const bool written = append(&cache, 2);
    const char *said = capture_end();
    assert_false(written);
    assert_non_null(strstr(said, "others can write it"));
    cf_record_cache_clear(&cache);
    chmod(*state, 0700);
    assert_int_equal(records_in_cache(*state, "A", NULL), 1);
}

/* A writer does not follow a link that has the name of the file. */
static void links_are_not_followed(void **state) {
    const char *directory = scratch_path(*state, "cache"), *victim = scratch_path(*state, "victim");
    cf_record_cache cache = test_cache(directory, "A");
    assert_true(append(&cache, 1));
    char path[1024];
    assert_int_equal(scratch_count(directory, ".jsonl", path), 1);
    assert_int_equal(unlink(path), 0);
    scratch_write(victim, "", 0);
    assert_int_equal(symlink(victim, path), 0);
    assert_true(append(&cache, 2)); /* in a shard */
    size_t bytes = 1;
    free(scratch_read(victim, &bytes));
    assert_int_equal(bytes, 0);
    cf_record_cache_clear(&cache);
    assert_int_equal(records_in_cache(directory, "A", NULL), 1);
}

/* A later version has a file of the same name. It stays unchanged, and new records go to a file beside it. */
static void file_of_a_later_version(void **state) {
    cf_record_cache cache = test_cache(*state, "A");
    assert_true(append(&cache, 1));
    char path[1024], line[CF_LINE_BYTES];
    assert_int_equal(scratch_count(*state, ".jsonl", path), 1);
    cf_fingerprint future = test_fingerprint("A");
    future.version = 2;
    assert_int_equal(cf_header_format(&future, line), CONV_FFT_SUCCESS);
    scratch_write(path, line, strlen(line));
    assert_true(append(&cache, 2));
    cf_record_cache_clear(&cache);
    size_t bytes;
    char *left = scratch_read(path, &bytes);
    assert_string_equal(left, line);
    free(left);
    assert_int_equal(records_in_cache(*state, "A", NULL), 1);
}

/* ---- precedence */

static void newest_of_the_directory_counts(void **state) {
    cf_record_cache cache = test_cache(*state, "A");
    static const struct {
        double ms;
        int64_t written;
    } lines[] = {{3.0, 30}, {1.0, 10}, {2.0, 20}};
    for (size_t i = 0; i < 3; ++i) {
        const cf_record r = test_record(1, lines[i].ms, lines[i].written);
        assert_true(cf_record_cache_append(&cache, &r));
    }
    cf_records records = {0};
    int64_t corrupt = 0;
    assert_int_equal(cf_record_cache_read(&cache, &records, &corrupt), CONV_FFT_SUCCESS);
    assert_int_equal(records.count, 1);
    assert_true(records.items[0]->ms == 3.0);
    cf_records_clear(&records);
    cf_record_cache_clear(&cache);
}

static void tune_path(void **state) {
    const char *first = scratch_path(*state, "first"), *second = scratch_path(*state, "second");
    const char *own = scratch_path(*state, "own");
    mkdir(first, 0700);
    mkdir(second, 0700);
    char *text = test_file_text("A", 3), path[4096];
    scratch_write(scratch_path(first, "resnet.jsonl"), text, strlen(text));
    scratch_write(scratch_path(first, "notes.txt"), "not records\n", 12);
    free(text);
    text = test_file_text("A", 5);
    scratch_write(scratch_path(second, "vgg.jsonl"), text, strlen(text));
    free(text);
    snprintf(path, sizeof path, "%s::%s/no/such:%s", first, first, second);
    setenv("CONV_FFT_TUNE_PATH", path, 1);
    cf_record_cache cache = test_cache(own, "A");
    const cf_record better = test_record(0, 0.5, 0);
    assert_true(cf_record_cache_append(&cache, &better));
    cf_records records = {0};
    int64_t corrupt = 0;
    capture_begin();
    const conv_fft_status status = cf_record_cache_read(&cache, &records, &corrupt);
    const char *said = capture_end();
    unsetenv("CONV_FFT_TUNE_PATH");
    assert_int_equal(status, CONV_FFT_SUCCESS);
    assert_int_equal(occurrences(said, "conv_fft: "), 1);
    assert_non_null(strstr(said, "/no/such"));
    assert_int_equal(corrupt, 0);
    assert_int_equal(records.count, 5);
    const int ranks[] = {CF_RANK_CACHE, CF_RANK_PATH, CF_RANK_PATH, CF_RANK_PATH - 2, CF_RANK_PATH - 2};
    for (int i = 0; i < 5; ++i) {
        const cf_record wanted = test_record(i, 1.0, 1);
        assert_int_equal(cf_records_find(&records, &wanted.key, "")->rank, ranks[i]);
    }
    assert_int_equal(scratch_count(second, "", NULL), 1); /* nothing is written there */
    cf_records_clear(&records);
    cf_record_cache_clear(&cache);
}

/* All records that an older interface has written to the directory are read. New records go to a new file. */
static void older_interfaces(void **state) {
    cf_record_cache older = test_cache(*state, "A");
    cf_record r = test_record(1, 1.0, 1);
    assert_true(cf_record_cache_append(&older, &r));
    cf_fingerprint device = older.fingerprint;
    ++device.abi;
    cf_record_cache cache;
    assert_int_equal(cf_record_cache_init(&cache, *state, &device, CONV_FFT_LOG_WARNING), CONV_FFT_SUCCESS);
    r = test_record(2, 1.0, 2);
    assert_true(cf_record_cache_append(&cache, &r));
    assert_int_equal(scratch_count(*state, ".jsonl", NULL), 2);
    cf_records records = {0};
    int64_t corrupt = 0;
    assert_int_equal(cf_record_cache_read(&cache, &records, &corrupt), CONV_FFT_SUCCESS);
    assert_int_equal(records.count, 2);
    assert_int_equal(corrupt, 0);
    assert_int_equal(records_in_cache(*state, "A", NULL), 1);
    cf_records_clear(&records);
    cf_record_cache_clear(&cache);
    cf_record_cache_clear(&older);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(kept_from_process_to_process),
        IN_SCRATCH(nothing_reported_is_lost),
        IN_SCRATCH(failed_write_keeps_lines_of_others),
        IN_SCRATCH(full_file_makes_a_shard),
        IN_SCRATCH(held_lock_makes_a_shard),
        IN_SCRATCH(network_file_system),
        IN_SCRATCH(full_disk),
        IN_SCRATCH(read_only),
        IN_SCRATCH(directory_others_can_write),
        IN_SCRATCH(links_are_not_followed),
        IN_SCRATCH(file_of_a_later_version),
        IN_SCRATCH(newest_of_the_directory_counts),
        IN_SCRATCH(tune_path),
        IN_SCRATCH(older_interfaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
