/* SPDX-License-Identifier: Apache-2.0 */
/* The cache directory on disk: where it is, whether it can be trusted, and how large its kernels may grow. */
#ifndef CF_DEVICE_CACHE_FOLDER_H
#define CF_DEVICE_CACHE_FOLDER_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

typedef struct cf_cache_folder {
    int descriptor; /* -1: not usable. Files are reached through it, so that the directory that was checked is the one used */
    char path[1024];    /* "" if no place was found */
    char problem[1200]; /* why it is not usable */
} cf_cache_folder;

/* Open `directory`, or if it is NULL CONV_FFT_CACHE_DIR, else $XDG_CACHE_HOME/conv_fft, else ~/.cache/conv_fft. It is made,
 * for the user alone, if `create` says so. One that others can write, or that is neither the user's nor root's, is not
 * usable: what is in it runs on the GPU with the user's data. */
void cf_cache_folder_open(cf_cache_folder *folder, const char *directory, bool create);
void cf_cache_folder_close(cf_cache_folder *folder);
bool cf_cache_folder_writable(const cf_cache_folder *folder);

/* NULL, or why a file or directory with this status must not be trusted. */
const char *cf_distrust(const struct stat *status);

typedef struct cf_cache_usage {
    int64_t files, bytes;
} cf_cache_usage;

/* Count the kernels. Afterwards those used least recently are removed until the rest has at most `limit` bytes, and
 * temporary files that a process left behind too; a negative limit keeps everything. Returns what is left. */
cf_cache_usage cf_cache_folder_trim(const cf_cache_folder *folder, int64_t limit);

#endif
