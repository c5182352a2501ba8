/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/jit/files.h"

#include <errno.h>
#include <unistd.h>

bool cf_read_all(int file, void *data, size_t bytes) {
    for (char *at = data; bytes > 0;) {
        const ssize_t got = read(file, at, bytes);
        if (got == 0)
            errno = 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

bool cf_write_all(int file, const void *data, size_t bytes) {
    for (const char *at = data; bytes > 0;) {
        const ssize_t put = write(file, at, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        bytes -= (size_t)put;
    }
    return true;
}
