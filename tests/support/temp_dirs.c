/* SPDX-License-Identifier: Apache-2.0 */
#include "support/temp_dirs.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A test whose setup fails proves nothing. */
static void need(bool condition, const char *what) {
    if (condition)
        return;
    perror(what);
    abort();
}

int scratch_create(void **state) {
    const char *const base = getenv("TMPDIR");
    char *const path = malloc(512);
    need(path != NULL, "malloc");
    snprintf(path, 512, "%s/conv_fft_test_XXXXXX", base ? base : "/tmp");
    need(mkdtemp(path) != NULL, path);
    *state = path;
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *position) {
    (void)status;
    (void)type;
    (void)position;
    return remove(path);
}

static int open_one(const char *path, const struct stat *status, int type, struct FTW *position) {
    (void)status;
    (void)position;
    return type == FTW_D || type == FTW_DNR ? chmod(path, 0700) : 0;
}

int scratch_remove(void **state) {
    nftw(*state, open_one, 8, FTW_PHYS);
    const int failed = nftw(*state, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return failed;
}

const char *scratch_path(const char *directory, const char *name) {
    static char paths[8][1024];
    static unsigned next;
    char *const path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

void scratch_write(const char *path, const void *data, size_t bytes) {
    FILE *const file = fopen(path, "wb");
    need(file && fwrite(data, 1, bytes, file) == bytes && fclose(file) == 0, path);
}

char *scratch_read(const char *path, size_t *bytes) {
    FILE *const file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *const data = calloc(1, 1 << 20);
    need(data != NULL, "calloc");
    *bytes = fread(data, 1, (1 << 20) - 1, file);
    fclose(file);
    return data;
}

static bool ends_with(const char *text, const char *suffix) {
    const size_t length = strlen(text), end = strlen(suffix);
    return length >= end && strcmp(text + length - end, suffix) == 0;
}

int scratch_count(const char *directory, const char *suffix, char *first) {
    DIR *const listing = opendir(directory);
    need(listing != NULL, directory);
    int count = 0;
    for (const struct dirent *item; (item = readdir(listing)) != NULL;) {
        if (item->d_name[0] == '.' && strlen(item->d_name) <= 2)
            continue;
        if (!ends_with(item->d_name, suffix))
            continue;
        if (first && count == 0)
            snprintf(first, 1024, "%s/%s", directory, item->d_name);
        ++count;
    }
    closedir(listing);
    return count;
}

enum {
    NOBODY = 65534
};

void unprivileged_begin(const char *directory) {
    if (geteuid() != 0)
        return;
    need(chown(directory, NOBODY, NOBODY) == 0 && seteuid(NOBODY) == 0, directory);
}

void unprivileged_end(void) {
    if (getuid() == 0)
        need(seteuid(0) == 0, "seteuid");
}

static int standard_error;
static FILE *captured;
static char text[16384];

void capture_begin(void) {
    fflush(stderr);
    captured = tmpfile();
    standard_error = dup(STDERR_FILENO);
    need(captured && standard_error >= 0 && dup2(fileno(captured), STDERR_FILENO) >= 0, "dup2");
}

const char *capture_end(void) {
    fflush(stderr);
    need(dup2(standard_error, STDERR_FILENO) >= 0, "dup2");
    close(standard_error);
    rewind(captured);
    text[fread(text, 1, sizeof text - 1, captured)] = '\0';
    fclose(captured);
    return text;
}

int occurrences(const char *within, const char *part) {
    int count = 0;
    while ((within = strstr(within, part)) != NULL) {
        ++count;
        within += strlen(part);
    }
    return count;
}
