/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/records/untuned_log.h"

#include "autotune/records/records.h"
#include "core/environment.h"
#include "cuda/jit/files.h"
#include "cuda/jit/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void cf_untuned_clear(cf_untuned *untuned) {
    free(untuned->noted);
    *untuned = (cf_untuned){0};
}

/* Whether the problem is new. Also false if there is no memory to remember it. */
static bool is_first(cf_untuned *untuned, uint64_t hash) {
    for (size_t i = 0; i < untuned->count; ++i) {
        if (untuned->noted[i] == hash)
            return false;
    }
    if (untuned->count == untuned->capacity) {
        const size_t capacity = untuned->capacity ? 2 * untuned->capacity : 64;
        uint64_t *grown = realloc(untuned->noted, capacity * sizeof *grown);
        if (!grown)
            return false;
        untuned->noted = grown;
        untuned->capacity = capacity;
    }
    untuned->noted[untuned->count++] = hash;
    return true;
}

/* Whether the file ends with an incomplete line. A full disk or a killed writer may leave one. */
static bool ends_within_line(int file, const char *path) {
    struct stat status;
    char last = '\n';
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
        return false;
    const int reading = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (reading < 0)
        return false;
    const bool within = pread(reading, &last, 1, status.st_size - 1) == 1 && last != '\n';
    close(reading);
    return within;
}

/* One write at the end of the file, so that lines of several processes do not mix. */
void cf_untuned_note(cf_untuned *untuned, conv_fft_log_level level, const char *problem) {
    const char *path = cf_environment("CONV_FFT_RECORD");
    if (!path || !is_first(untuned, cf_hash(problem, strlen(problem))))
        return;
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    char line[CF_RECORD_PROBLEM_BYTES + 64];
    /* A problem line cannot say element strides. */
    snprintf(line, sizeof line, "%s%s%s\n", file >= 0 && ends_within_line(file, path) ? "\n" : "",
             strchr(problem, '#') ? "# not of a plain layout: " : "", problem);
    const bool written = file >= 0 && cf_write_all(file, line, strlen(line));
    if (!written && !untuned->failed)
        cf_log(level, CONV_FFT_LOG_WARNING, "CONV_FFT_RECORD: the file %.700s cannot be written: %s", path,
               strerror(errno));
    untuned->failed = untuned->failed || !written;
    if (file >= 0)
        close(file);
}
