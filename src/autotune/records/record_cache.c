/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/records/record_cache.h"

#include "core/clock.h"
#include "core/environment.h"
#include "core/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/vfs.h>
#endif

conv_fft_status cf_record_cache_init(cf_record_cache *cache, const char *directory, const cf_fingerprint *fingerprint,
                                     conv_fft_log_level log_level) {
    *cache = (cf_record_cache){.folder.descriptor = -1, .log_level = log_level, .fingerprint = *fingerprint};
    cf_fingerprint_stem(fingerprint, cache->stem);
    if (!directory)
        return CONV_FFT_SUCCESS;
    const size_t bytes = strlen(directory) + 1;
    cache->directory = malloc(bytes);
    if (!cache->directory)
        return cf_fail_memory(bytes, "the name of a directory");
    memcpy(cache->directory, directory, bytes);
    return CONV_FFT_SUCCESS;
}

void cf_record_cache_clear(cf_record_cache *cache) {
    if (cache->opened)
        cf_cache_folder_close(&cache->folder);
    free(cache->directory);
    cache->directory = NULL;
}

/* ---- reading */

bool cf_record_cache_is_name(const char *name) {
    const size_t length = strlen(name), end = sizeof ".jsonl" - 1;
    return length > end && strncmp(name, "tuning-", 7) == 0 && strcmp(name + length - end, ".jsonl") == 0;
}

static bool ends_as_records(const char *name) {
    const size_t length = strlen(name), end = sizeof ".jsonl" - 1;
    return length > end && name[0] != '.' && strcmp(name + length - end, ".jsonl") == 0;
}

enum {
    HINTS = INT_MIN /* instead of a rank: records of other numbers of threads */
};

/* Read all files of records in a directory whose names begin with `stem`. */
static conv_fft_status read_folder(cf_record_cache *cache, int folder, const char *stem, int rank, cf_records *records,
                                   int64_t *corrupt) {
    const int descriptor = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const directory = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    if (!directory) {
        if (descriptor >= 0)
            close(descriptor);
        return CONV_FFT_SUCCESS;
    }
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (const struct dirent *item; status == CONV_FFT_SUCCESS && (item = readdir(directory)) != NULL;) {
        cf_file_counts counts = {0};
        if (!ends_as_records(item->d_name) || strncmp(item->d_name, stem, strlen(stem)) != 0)
            continue;
        status = rank == HINTS ? cf_record_file_read_hints(descriptor, item->d_name, &cache->fingerprint, records)
                               : cf_record_file_read(descriptor, item->d_name, &cache->fingerprint, stem[0] != '\0',
                                                     rank, records, &counts);
        *corrupt += counts.damaged + counts.unknown;
        if (status == CONV_FFT_IO_ERROR) {
            cf_log(cache->log_level, CONV_FFT_LOG_WARNING, "%s", conv_fft_last_error());
            ++*corrupt;
            status = CONV_FFT_SUCCESS;
        }
    }
    closedir(directory);
    return status;
}

static conv_fft_status read_path(cf_record_cache *cache, bool hints, cf_records *records, int64_t *corrupt) {
    const char *list = cf_environment("CONV_FFT_TUNE_PATH");
    char name[1024];
    for (int rank = CF_RANK_PATH; cf_next_folder(&list, name, sizeof name); --rank) {
        const int folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder >= 0) {
            const conv_fft_status status = read_folder(cache, folder, "", hints ? HINTS : rank, records, corrupt);
            close(folder);
            CF_FORWARD(status);
        } else {
            cf_log(cache->log_level, CONV_FFT_LOG_WARNING, "CONV_FFT_TUNE_PATH: the folder %.900s cannot be opened: %s",
                   name, strerror(errno));
        }
    }
    return CONV_FFT_SUCCESS;
}

static void open_folder(cf_record_cache *cache, bool create) {
    if (cache->opened)
        cf_cache_folder_close(&cache->folder);
    cf_cache_folder_open(&cache->folder, cache->directory, create);
    cache->opened = true;
}

static conv_fft_status read_directory(cf_record_cache *cache, cf_records *records, int64_t *corrupt) {
    open_folder(cache, false);
    if (cache->folder.descriptor < 0)
        return CONV_FFT_SUCCESS;
    cf_fingerprint older = cache->fingerprint;
    for (older.abi = 1; older.abi <= cache->fingerprint.abi; ++older.abi) {
        char stem[CF_STEM_BYTES];
        cf_fingerprint_stem(&older, stem);
        CF_FORWARD(read_folder(cache, cache->folder.descriptor, stem, CF_RANK_CACHE, records, corrupt));
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_record_cache_read(cf_record_cache *cache, cf_records *records, int64_t *corrupt) {
    CF_FORWARD(read_directory(cache, records, corrupt));
    return read_path(cache, false, records, corrupt);
}

conv_fft_status cf_record_cache_read_again(cf_record_cache *cache, cf_records *records) {
    const conv_fft_log_level level = cache->log_level;
    int64_t counted_before = 0;
    cache->log_level = CONV_FFT_LOG_SILENT;
    const conv_fft_status status = read_directory(cache, records, &counted_before);
    cache->log_level = level;
    return status;
}

/* What cannot be read has been counted and logged before. */
conv_fft_status cf_record_cache_read_hints(cf_record_cache *cache, cf_records *hints) {
    const conv_fft_log_level level = cache->log_level;
    int64_t counted_before = 0;
    char stem[CF_STEM_BYTES]; /* without the hash, which depends on the number of threads */
    snprintf(stem, sizeof stem, "%.*s", (int)(strrchr(cache->stem, '-') - cache->stem) + 1, cache->stem);
    cache->log_level = CONV_FFT_LOG_SILENT;
    conv_fft_status status = CONV_FFT_SUCCESS;
    if (cache->opened && cache->folder.descriptor >= 0)
        status = read_folder(cache, cache->folder.descriptor, stem, HINTS, hints, &counted_before);
    if (status == CONV_FFT_SUCCESS)
        status = read_path(cache, true, hints, &counted_before);
    cache->log_level = level;
    return status;
}

/* ---- writing */

/* Network file systems: flock() and appends of several hosts are not reliable there. */
static bool is_network(int descriptor) {
#if defined(__linux__)
    static const unsigned long network[] = {0x6969 /* NFS */,        0x517b /* SMB */,        0xfe534d42 /* SMB 2 */,
                                            0xff534d42 /* CIFS */,   0x0bd00bd0 /* Lustre */, 0x47504653 /* GPFS */,
                                            0x19830326 /* BeeGFS */, 0x00c36400 /* Ceph */,   0x5346414f /* AFS */,
                                            0x01021997 /* 9P */,     0xaad7aaea /* PanFS */,  0x65735546 /* FUSE */};
    struct statfs status;
    if (fstatfs(descriptor, &status) != 0)
        return true;
    for (size_t i = 0; i < sizeof network / sizeof network[0]; ++i) {
        if (((unsigned long)status.f_type & 0xffffffffu) == network[i])
            return true;
    }
#endif
    return false;
}

int cf_record_cache_lock(const cf_cache_folder *folder) {
    const int file =
        openat(folder->descriptor, "tuning.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (file < 0)
        return -1;
    /* A writer holds the lock for less than a millisecond. A stopped writer must not block this process. */
    const double end = cf_clock_seconds() + 2.0;
    while (flock(file, LOCK_EX | LOCK_NB) != 0) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || cf_clock_seconds() > end) {
            close(file);
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    return file;
}

/* Unlock before closing: a process that was forked meanwhile would keep the lock. */
void cf_record_cache_unlock(int lock) {
    flock(lock, LOCK_UN);
    close(lock);
}

/* A name that no other process has, on any host. */
static const char *shard_name(cf_record_cache *cache) {
    const int64_t process = getpid();
    if (cache->shard_owner == process)
        return cache->shard;
    char host[64] = "host";
    gethostname(host, sizeof host - 1);
    for (char *at = host; *at; ++at)
        *at = *at == '/' ? '-' : *at;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(cache->shard, sizeof cache->shard, "%s.%s-%lld-%llx.jsonl", cache->stem, host, (long long)process,
             (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    cache->shard_owner = process;
    return cache->shard;
}

static conv_fft_status append(cf_record_cache *cache, const cf_record *record) {
    const int folder = cache->folder.descriptor;
    const int lock = is_network(folder) ? -1 : cf_record_cache_lock(&cache->folder);
    if (lock >= 0) {
        char name[sizeof cache->stem + 8];
        snprintf(name, sizeof name, "%s.jsonl", cache->stem);
        const conv_fft_status status = cf_record_file_append(folder, name, &cache->fingerprint, record);
        cf_record_cache_unlock(lock);
        if (status == CONV_FFT_SUCCESS)
            return status;
    }
    return cf_record_file_append(folder, shard_name(cache), &cache->fingerprint, record);
}

bool cf_record_cache_append(cf_record_cache *cache, const cf_record *record) {
    if (!cache->opened || cache->folder.descriptor < 0)
        open_folder(cache, true);
    const bool usable = cache->folder.descriptor >= 0;
    const conv_fft_status status =
        usable ? append(cache, record) : cf_fail(CONV_FFT_IO_ERROR, "%s", cache->folder.problem);
    if (status == CONV_FFT_SUCCESS)
        return true;
    if (!cache->warned)
        cf_log(cache->log_level, CONV_FFT_LOG_WARNING, "%s; tuning records are kept in memory only",
               conv_fft_last_error());
    cache->warned = true;
    return false;
}
