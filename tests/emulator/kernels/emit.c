/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/emit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const parts[] = {"core", "share"};

void emission_open(emission *e, const char *prefix, const char *header, int core_units, int share_units) {
    *e = (emission){.prefix = prefix, .units = {core_units, share_units}};
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < e->units[p]; i++) {
            if (i < EMIT_MAX_UNITS)
                e->stream[p][i] = open_memstream(&e->text[p][i], &e->bytes[p][i]);
            if (i == EMIT_MAX_UNITS || !e->stream[p][i]) {
                fprintf(stderr, "%s: no memory, or more than %d sources\n", prefix, (int)EMIT_MAX_UNITS);
                exit(1);
            }
            fprintf(e->stream[p][i], "#include \"%s\"\n\n", header);
        }
}

FILE *emission_next(emission *e, test_part part) {
    const int p = part == TEST_SHARE;
    return e->stream[p][e->next[p]++ % e->units[p]];
}

static bool is_there(const char *path, const char *text, size_t bytes) {
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    char *old = malloc(bytes + 1);
    const bool same = old && fread(old, 1, bytes + 1, file) == bytes && memcmp(old, text, bytes) == 0;
    free(old);
    fclose(file);
    return same;
}

static bool write_file(const char *path, const char *text, size_t bytes) {
    if (is_there(path, text, bytes))
        return true;
    FILE *file = fopen(path, "w");
    const bool good = file && fwrite(text, 1, bytes, file) == bytes;
    if ((file && fclose(file) != 0) || !good) {
        perror(path);
        return false;
    }
    return true;
}

static bool write_selection(const char *prefix) {
    static const char *const names[] = {"CONV_FFT_TEST_SEED", "CONV_FFT_TEST_SHARE", "CONV_FFT_TEST_CASE"};
    char path[4096], text[8192];
    int used = snprintf(text, sizeof text,
                        "extern const char *const emitted_selection[][2];\n"
                        "const char *const emitted_selection[][2] = {\n");
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        used += snprintf(text + used, sizeof text - (size_t)used, "    {\"%s\", R\"(%.1000s)\"},\n", names[i],
                         value ? value : "");
    }
    used += snprintf(text + used, sizeof text - (size_t)used, "};\n");
    snprintf(path, sizeof path, "%s_selection.cpp", prefix);
    return write_file(path, text, (size_t)used);
}

int emission_close(emission *e) {
    bool good = write_selection(e->prefix);
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < e->units[p]; i++) {
            char path[4096];
            snprintf(path, sizeof path, "%s_%s_%d.cpp", e->prefix, parts[p], i);
            good = fclose(e->stream[p][i]) == 0 && good && write_file(path, e->text[p][i], e->bytes[p][i]);
            free(e->text[p][i]);
        }
    return good ? 0 : 1;
}
