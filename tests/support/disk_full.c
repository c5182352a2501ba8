/* SPDX-License-Identifier: Apache-2.0 */
#include "support/disk_full.h"

#include <errno.h>
#include <unistd.h>

long disk_room = -1;

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
