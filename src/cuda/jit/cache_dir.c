/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/jit/cache_dir.h"

#include "core/environment.h"
#include "cuda/jit/cubin_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- where it is */

/* A relative XDG_CACHE_HOME is invalid by its specification. A relative HOME would name a different directory each
 * time. */
static bool find_path(const char *directory, char *path, size_t bytes) {
    const char *const own = directory ? directory : cf_environment("CONV_FFT_CACHE_DIR");
    const char *const xdg = cf_environment("XDG_CACHE_HOME"), *const home = cf_environment("HOME");
    int length = -1;
    if (own)
        length = snprintf(path, bytes, "%s", own);
    else if (xdg && xdg[0] == '/')
        length = snprintf(path, bytes, "%s/conv_fft", xdg);
    else if (home && home[0] == '/')
        length = snprintf(path, bytes, "%s/.cache/conv_fft", home);
    if (length > 0 && (size_t)length < bytes)
        return true;
    path[0] = '\0';
    return false;
}

/* The same as mkdir -p, for this user only. */
static void make_directories(const char *path) {
    char prefix[1024];
    for (size_t i = 1; path[i - 1] && i < sizeof prefix; ++i) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(prefix, path, i);
        prefix[i] = '\0';
        mkdir(prefix, 0700);
    }
}

const char *cf_distrust(const struct stat *status) {
    if (status->st_mode & (S_IWGRP | S_IWOTH))
        return "others can write it";
    if (status->st_uid != geteuid() && status->st_uid != 0)
        return "it belongs to another user";
    return NULL;
}

void cf_cache_folder_open(cf_cache_folder *folder, const char *directory, bool create) {
    *folder = (cf_cache_folder){.descriptor = -1};
    if (!find_path(directory, folder->path, sizeof folder->path)) {
        snprintf(folder->problem, sizeof folder->problem,
                 "there is no cache directory: set CONV_FFT_CACHE_DIR or HOME");
        return;
    }
    if (create)
        make_directories(folder->path);
    const int descriptor = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat status;
    if (descriptor < 0 || fstat(descriptor, &status) != 0) {
        const bool absent = errno == ENOENT && !create;
        snprintf(folder->problem, sizeof folder->problem, "the cache directory %s %s%s", folder->path,
                 absent ? "does not exist yet" : "cannot be opened: ", absent ? "" : strerror(errno));
        folder->absent = absent;
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    const char *const distrust = cf_distrust(&status);
    if (distrust) {
        snprintf(folder->problem, sizeof folder->problem, "the cache directory %s is not used, because %s",
                 folder->path, distrust);
        close(descriptor);
        return;
    }
    folder->descriptor = descriptor;
}

void cf_cache_folder_close(cf_cache_folder *folder) {
    if (folder->descriptor >= 0)
        close(folder->descriptor);
    folder->descriptor = -1;
}

bool cf_cache_folder_writable(const cf_cache_folder *folder) {
    return folder->descriptor >= 0 && faccessat(folder->descriptor, ".", W_OK, AT_EACCESS) == 0;
}

/* ---- how large it is */

typedef struct entry {
    char name[CF_CUBIN_NAME_BYTES];
    int64_t bytes;
    struct timespec used;
} entry;

typedef struct listing {
    entry *entries;
    size_t count, capacity;
    int64_t bytes;
} listing;

static bool append(listing *list, const entry *added) {
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity ? 2 * list->capacity : 64;
        entry *const grown = realloc(list->entries, capacity * sizeof *grown);
        if (!grown)
            return false;
        list->entries = grown;
        list->capacity = capacity;
    }
    list->entries[list->count++] = *added;
    list->bytes += added->bytes;
    return true;
}

/* A write takes far less than an hour, so an older temporary file has no owner. */
static bool left_behind(const struct stat *status) { return time(NULL) - status->st_mtime > 3600; }

static void list_kernels(int descriptor, DIR *directory, bool clean, listing *list) {
    for (const struct dirent *item; (item = readdir(directory)) != NULL;) {
        struct stat status;
        const bool kernel = cf_cubin_is_name(item->d_name), temporary = cf_cubin_is_temporary(item->d_name);
        if ((!kernel && !temporary) || fstatat(descriptor, item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (temporary && clean && left_behind(&status))
            unlinkat(descriptor, item->d_name, 0);
        if (!kernel || !S_ISREG(status.st_mode))
            continue;
        entry added = {.bytes = status.st_size, .used = status.st_mtim};
        memcpy(added.name, item->d_name, strlen(item->d_name) + 1);
        if (!append(list, &added))
            break;
    }
}

static int by_use(const void *left, const void *right) {
    const struct timespec a = ((const entry *)left)->used, b = ((const entry *)right)->used;
    if (a.tv_sec != b.tv_sec)
        return a.tv_sec < b.tv_sec ? -1 : 1;
    return (a.tv_nsec > b.tv_nsec) - (a.tv_nsec < b.tv_nsec);
}

cf_cache_usage cf_cache_folder_trim(const cf_cache_folder *folder, int64_t limit) {
    /* This descriptor is opened, not duplicated: reading moves the position, and duplicates share it. */
    const int descriptor = openat(folder->descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const directory = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    if (!directory) {
        if (descriptor >= 0)
            close(descriptor);
        return (cf_cache_usage){0, 0};
    }
    listing list = {0};
    list_kernels(descriptor, directory, limit >= 0, &list);
    size_t first = 0;
    if (limit >= 0 && list.bytes > limit) {
        qsort(list.entries, list.count, sizeof *list.entries, by_use);
        for (; first < list.count && list.bytes > limit; ++first) {
            unlinkat(descriptor, list.entries[first].name, 0);
            list.bytes -= list.entries[first].bytes;
        }
    }
    closedir(directory);
    free(list.entries);
    return (cf_cache_usage){(int64_t)(list.count - first), list.bytes};
}
