/* SPDX-License-Identifier: Apache-2.0 */
#include "data_file.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* The folder of the program's own file, or 0. */
static int program_folder(char folder[PATH_MAX]) {
    const ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    if (length <= 0)
        return 0;
    folder[length] = '\0';
    char *const last = strrchr(folder, '/');
    if (!last)
        return 0;
    *last = '\0';
    return 1;
}

FILE *data_file_open(const char *name) {
    FILE *const given = fopen(name, "r");
    const int error = errno;
    char folder[PATH_MAX], path[2 * PATH_MAX];
    if (given || error != ENOENT || name[0] == '/' || !program_folder(folder))
        return given;
    const int written = snprintf(path, sizeof path, "%s/" DATA_FROM_PROGRAM "/%s", folder, name);
    FILE *const installed = written > 0 && (size_t)written < sizeof path ? fopen(path, "r") : NULL;
    errno = error;
    return installed;
}
