/* SPDX-License-Identifier: Apache-2.0 */
/* The cache directory on disk: where it is, whether it is trusted, and how large it may become. */
#ifndef CF_DEVICE_CACHE_FOLDER_H
#define CF_DEVICE_CACHE_FOLDER_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

typedef struct cf_cache_folder {
    /* -1: not usable. Files are opened through it, so the directory in use is the one that was checked. */
    int descriptor;
    char path[1024];    /* "" if no place was found */
    char problem[1200]; /* why it is not usable */
    bool absent;        /* it is not usable because it does not exist */
} cf_cache_folder;

/* Open `directory`. If it is NULL, open CONV_FFT_CACHE_DIR, else $XDG_CACHE_HOME/conv_fft, else ~/.cache/conv_fft.
 * With `create`, a missing directory is made, for this user only. A directory that others can write, or that belongs
 * neither to the user nor to root, is not usable: its kernels run on the GPU with the user's data. */
void cf_cache_folder_open(cf_cache_folder *folder, const char *directory, bool create);
void cf_cache_folder_close(cf_cache_folder *folder);
bool cf_cache_folder_writable(const cf_cache_folder *folder);

/* NULL, or the reason why a file or directory with this status is not trusted. */
const char *cf_distrust(const struct stat *status);

typedef struct cf_cache_usage {
    int64_t files, bytes;
} cf_cache_usage;

/* Count the kernels. Then remove those used least recently until at most `limit` bytes are left, and remove temporary
 * files that a process left behind. A negative limit removes nothing. Returns what is left. */
cf_cache_usage cf_cache_folder_trim(const cf_cache_folder *folder, int64_t limit);

#endif
