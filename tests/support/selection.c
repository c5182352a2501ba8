/* SPDX-License-Identifier: Apache-2.0 */
#include "support/selection.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHARE_UNSET = 10,
    MIN_SHARE = 10
};

__attribute__((format(printf, 1, 2), noreturn)) static void refuse(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

static void *allocate(size_t bytes) {
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory)
        refuse("no memory for the names of cases");
    return memory;
}

static const char *variable(const char *name) {
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

uint64_t test_seed(void) {
    const char *text = variable("CONV_FFT_TEST_SEED");
    if (!text)
        return 1;
    char *end;
    errno = 0;
    const uint64_t seed = strtoull(text, &end, 0);
    const bool octal = text[0] == '0' && isdigit((unsigned char)text[1]);
    if (*end || errno || !isdigit((unsigned char)text[0]) || octal)
        refuse("CONV_FFT_TEST_SEED=%s: a seed is a whole number of up to 64 bits", text);
    return seed;
}

int test_share(void) {
    const char *text = variable("CONV_FFT_TEST_SHARE");
    if (!text)
        return SHARE_UNSET;
    if (strcmp(text, "core") == 0)
        return 0;
    char *end;
    const long share = strtol(text, &end, 10);
    if (*end || share < MIN_SHARE || share > 100 || !isdigit((unsigned char)text[0]) || text[0] == '0')
        refuse("CONV_FFT_TEST_SHARE=%s: a share is %d to 100 percent, or `core`", text, MIN_SHARE);
    return (int)share;
}

void test_replay(char *text, size_t bytes, const char *variables) {
    const char *const share = variable("CONV_FFT_TEST_SHARE"), *const more = variables ? variables : "";
    char seed[64] = "";
    if (!strstr(more, "CONV_FFT_TEST_SEED="))
        snprintf(seed, sizeof seed, " CONV_FFT_TEST_SEED=%" PRIu64, test_seed());
    snprintf(text, bytes, "make replay%s T=%s%s%s%s%s%s", strcmp(TEST_PRESET, "dev") == 0 ? "" : " P=" TEST_PRESET,
             program_invocation_short_name, seed, share ? " CONV_FFT_TEST_SHARE=" : "", share ? share : "",
             *more ? " " : "", more);
}

/* FNV-1a of list and name, then splitmix64 with the seed. */
static uint64_t hash_of(const char *list, const char *name, uint64_t seed) {
    uint64_t h = 0xcbf29ce484222325u;
    for (const char *c = list; *c; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001b3u;
    h = (h ^ 0x1f) * 0x100000001b3u;
    for (const char *c = name; *c; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001b3u;
    h += seed * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

/* ----------------------------------------------------------------------------------------------- lists of names */

typedef struct case_name {
    const char *name;
    int index;
} case_name;

static int compare_names(const void *a, const void *b) {
    return strcmp(((const case_name *)a)->name, ((const case_name *)b)->name);
}

/* Mark every case with this name. Returns false if there is none. */
static bool mark(const case_name *sorted, int count, const char *name, test_part *part) {
    int low = 0, high = count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (strcmp(sorted[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < count && strcmp(sorted[low].name, name) == 0;
    for (; low < count && strcmp(sorted[low].name, name) == 0; low++)
        part[sorted[low].index] = TEST_CORE;
    return found;
}

/* Mark the cases that a file names: all of its lines, or the lines with this prefix. A file that does not exist names
 * no case. */
static void mark_file(const char *path, const char *prefix, const case_name *sorted, int count, test_part *part) {
    FILE *file = fopen(path, "r");
    if (!file) {
        if (errno != ENOENT)
            refuse("%s: %s", path, strerror(errno));
        return;
    }
    char line[1024];
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        size_t length = strlen(line);
        if (length + 1 == sizeof line)
            refuse("%s:%d: the line is too long", path, number);
        while (length > 0 && isspace((unsigned char)line[length - 1]))
            line[--length] = 0;
        if (length == 0 || line[0] == '#' || strncmp(line, prefix, strlen(prefix)) != 0)
            continue;
        const char *const name = line + strlen(prefix);
        const bool drawn = *prefix && (strncmp(name, "drawn ", 6) == 0 || strncmp(name, "seed ", 5) == 0);
        if (!mark(sorted, count, name, part) && !drawn)
            refuse("%s:%d: no case has the name \"%s\"", path, number, name);
    }
    fclose(file);
}

/* ------------------------------------------------------------------------------------------------ the selection */

typedef struct ranked {
    uint64_t hash;
    int index;
} ranked;

static int compare_ranks(const void *a, const void *b) {
    const ranked *const p = a, *const q = b;
    return p->hash != q->hash ? (p->hash < q->hash ? -1 : 1) : p->index - q->index;
}

static int take_share(const char *list, const char *const *names, int count, test_part *part) {
    ranked *rest = allocate((size_t)count * sizeof *rest);
    const uint64_t seed = test_seed();
    int size = 0;
    for (int i = 0; i < count; i++)
        if (part[i] == TEST_LEFT_OUT)
            rest[size++] = (ranked){hash_of(list, names[i], seed), i};
    qsort(rest, (size_t)size, sizeof *rest, compare_ranks);
    const int share = (int)(((int64_t)size * test_share() + 99) / 100);
    for (int i = 0; i < share; i++)
        part[rest[i].index] = TEST_SHARE;
    free(rest);
    return share;
}

static int count_core(const test_part *part, int count) {
    int core = 0;
    for (int i = 0; i < count; i++)
        core += part[i] == TEST_CORE;
    return core;
}

/* Select only the cases whose names contain `text`. */
static int take_named(const char *list, const char *text, const char *const *names, int count, test_part *part) {
    int found = 0;
    for (int i = 0; i < count; i++) {
        const bool named = strstr(names[i], text) != NULL;
        part[i] = named ? TEST_CORE : TEST_LEFT_OUT;
        found += named;
    }
    if (found == 0)
        refuse("CONV_FFT_TEST_CASE=%s: none of the %d cases of %s has this in its name", text, count, list);
    fprintf(stderr, "%s: %d of %d cases, whose names contain \"%s\"\n", list, found, count, text);
    return found;
}

int test_parts(const char *list, const char *const *names, int count, test_part *part) {
    char path[4096], prefix[128];
    const int share = test_share();
    const char *only = variable("CONV_FFT_TEST_CASE");
    if (only)
        return take_named(list, only, names, count, part);
    case_name *sorted = allocate((size_t)count * sizeof *sorted);
    for (int i = 0; i < count; i++) {
        sorted[i] = (case_name){names[i], i};
        part[i] = TEST_LEFT_OUT;
    }
    qsort(sorted, (size_t)count, sizeof *sorted, compare_names);
    snprintf(path, sizeof path, "%s/core/%s.txt", TEST_DATA, list);
    mark_file(path, "", sorted, count, part);
    const int core = count_core(part, count);
    snprintf(path, sizeof path, "%s/failed.txt", TEST_DATA);
    snprintf(prefix, sizeof prefix, "%s: ", list);
    mark_file(path, prefix, sorted, count, part);
    const int failed = count_core(part, count) - core, by_seed = take_share(list, names, count, part);
    free(sorted);
    fprintf(stderr,
            "%s: %d of %d cases: %d of the core, %d that failed once, %d (%d %% of the rest) by seed 0x%" PRIx64 "\n",
            list, core + failed + by_seed, count, core, failed, by_seed, share, test_seed());
    return core + failed + by_seed;
}

int test_select(const char *list, const char *const *names, int count, bool *taken) {
    test_part *part = allocate((size_t)count * sizeof *part);
    const int size = test_parts(list, names, count, part);
    for (int i = 0; i < count; i++)
        taken[i] = part[i] != TEST_LEFT_OUT;
    free(part);
    return size;
}
