/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results file: a line of column names, then parts. A part is some comment lines (the conditions of one run) and
 * the rows measured under them. A new part replaces older rows of its cases, passes, precisions and
 * layouts; a part that has lost all its rows goes too.
 */
#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS "suite,case,pass,precision,layout,impl,ms,workspace_bytes,rel_l2,strategy\n"
#define MAX_LINE 1024

bool bench_part_add(bench_part *part, const bench_row *row) {
    if (part->count == part->capacity) {
        size_t capacity = part->capacity ? 2 * part->capacity : 64;
        bench_row *rows = realloc(part->rows, capacity * sizeof *rows);
        if (!rows) {
            bench_message("out of memory");
            return false;
        }
        part->rows = rows;
        part->capacity = capacity;
    }
    part->rows[part->count++] = *row;
    return true;
}

static const char *layout_of(const bench_row *row) { return row->channels_last ? "last" : "first"; }

/* Is the line a row that the part measures anew? */
static bool replaced(const char *line, const bench_part *part) {
    char key[176];
    for (size_t i = 0; i < part->count; i++) {
        const bench_row *row = &part->rows[i];
        int length = snprintf(key, sizeof key, "%s,%s,%s,%s,%s,", row->suite, row->layer, row->pass, row->precision,
                              layout_of(row));
        if (!strncmp(line, key, (size_t)length))
            return true;
    }
    return false;
}

/* Copies what stays of the old file: a part's comment lines wait until the first of its rows is kept. */
static bool copy_old(FILE *old, FILE *out, const char *path, const bench_part *part) {
    char line[MAX_LINE], comments[4 * MAX_LINE] = "";
    bool in_comments = false;
    if (!fgets(line, sizeof line, old))
        return !ferror(old);
    if (strcmp(line, COLUMNS)) {
        bench_message("%s is not a results file of this program: its first line differs from \"%.*s\"", path,
                      (int)strlen(COLUMNS) - 1, COLUMNS);
        return false;
    }
    while (fgets(line, sizeof line, old)) {
        if (line[0] == '#') {
            if (!in_comments)
                comments[0] = '\0';
            in_comments = true;
            strncat(comments, line, sizeof comments - strlen(comments) - 1);
            continue;
        }
        in_comments = false;
        if (replaced(line, part))
            continue;
        fprintf(out, "%s%s", comments, line);
        comments[0] = '\0';
    }
    return !ferror(old);
}

static void write_part(FILE *out, const bench_part *part) {
    fputs(part->header, out);
    for (size_t i = 0; i < part->count; i++) {
        const bench_row *r = &part->rows[i];
        fprintf(out, "%s,%s,%s,%s,%s,%s,%.4f,%" PRIu64 ",%.2e,%s\n", r->suite, r->layer, r->pass, r->precision,
                layout_of(r), r->impl, r->ms, r->workspace_bytes, r->rel_l2, r->strategy);
    }
}

/* Writes the new file beside the old one and renames it, so that an interrupted run leaves the old one whole. */
static bool rewrite(const char *path, const char *temporary, const bench_part *part) {
    FILE *out = fopen(temporary, "w");
    if (!out) {
        bench_message("cannot write %s: %s", temporary, strerror(errno));
        return false;
    }
    fputs(COLUMNS, out);
    FILE *old = fopen(path, "r");
    bool good = old ? copy_old(old, out, path, part) : errno == ENOENT;
    if (!old && !good)
        bench_message("cannot read %s: %s", path, strerror(errno));
    if (old)
        fclose(old);
    if (good)
        write_part(out, part);
    bool written = !ferror(out);
    written = fclose(out) == 0 && written;
    if (good && (!written || rename(temporary, path) != 0)) {
        bench_message("cannot write %s: %s", path, strerror(errno));
        good = false;
    }
    if (!good)
        remove(temporary);
    return good;
}

bool bench_csv_write(const char *path, const bench_part *part) {
    if (!path) {
        fputs(COLUMNS, stdout);
        write_part(stdout, part);
        return fflush(stdout) == 0;
    }
    size_t bytes = strlen(path) + sizeof ".new";
    char *temporary = malloc(bytes);
    if (!temporary) {
        bench_message("out of memory");
        return false;
    }
    snprintf(temporary, bytes, "%s.new", path);
    bool good = rewrite(path, temporary, part);
    free(temporary);
    return good;
}
