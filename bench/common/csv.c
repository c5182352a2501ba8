/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results file is a line of column names, followed by parts. A part has comment lines with the conditions of one
 * run, and the rows that were measured under them. A new part replaces older rows of its cases, passes, precisions
 * and layouts. A part without rows is removed.
 */
#include "common/csv.h"

#include "common/message.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define COLUMNS "suite,case,pass,precision,layout,impl,ms,workspace_bytes,rel_l2,strategy\n"
#define MAX_LINE 1024
#define KEY_BYTES 176

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

/* The key of a row: the beginning of its line, which all rows of one measurement share. */
typedef struct row_key {
    char text[KEY_BYTES];
} row_key;

static row_key key_of(const bench_row *row) {
    row_key key;
    snprintf(key.text, sizeof key.text, "%s,%s,%s,%s,%s", row->suite, row->layer, row->pass, row->precision,
             layout_of(row));
    return key;
}

/* The first five fields. */
static row_key key_of_line(const char *line) {
    row_key key;
    size_t length = 0;
    for (int commas = 0; line[length] && length < sizeof key.text - 1; length++)
        if (line[length] == ',' && ++commas == 5)
            break;
    memcpy(key.text, line, length);
    key.text[length] = '\0';
    return key;
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(((const row_key *)a)->text, ((const row_key *)b)->text);
}

/* The sorted keys of the part's rows. NULL: out of memory. */
static row_key *keys_of(const bench_part *part) {
    row_key *keys = malloc((part->count + 1) * sizeof *keys);
    if (!keys) {
        bench_message("out of memory");
        return NULL;
    }
    for (size_t i = 0; i < part->count; i++)
        keys[i] = key_of(&part->rows[i]);
    qsort(keys, part->count, sizeof *keys, compare_keys);
    return keys;
}

/* Copy the rows of the old file that stay. The comment lines of a part are copied with the first of its rows that
 * stays. */
static bool copy_old(FILE *old, FILE *out, const char *path, const row_key *keys, size_t count) {
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
        const row_key key = key_of_line(line);
        if (bsearch(&key, keys, count, sizeof *keys, compare_keys))
            continue;
        fprintf(out, "%s%s", comments, line);
        comments[0] = '\0';
    }
    return !ferror(old);
}

void bench_csv_write_text(FILE *out, const char *text) { fprintf(out, strchr(text, ',') ? "\"%s\"" : "%s", text); }

static void write_part(FILE *out, const bench_part *part) {
    if (part->count > 0)
        fputs(part->header, out);
    for (size_t i = 0; i < part->count; i++) {
        const bench_row *r = &part->rows[i];
        fprintf(out, "%s,", key_of(r).text);
        bench_csv_write_text(out, r->impl);
        fprintf(out, ",%.4f,%" PRIu64 ",%.2e,", r->ms, r->workspace_bytes, r->rel_l2);
        bench_csv_write_text(out, r->strategy);
        fputc('\n', out);
    }
}

/* Write the new file beside the old one and rename it. An interrupted run then leaves the old file complete. */
static bool rewrite(const char *path, const char *temporary, const bench_part *part, const row_key *keys) {
    FILE *out = fopen(temporary, "w");
    if (!out) {
        bench_message("cannot write %s: %s", temporary, strerror(errno));
        return false;
    }
    fputs(COLUMNS, out);
    FILE *old = fopen(path, "r");
    bool good = old ? copy_old(old, out, path, keys, part->count) : errno == ENOENT;
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

/* Lock the folder of the file, so that processes that write there take turns. Negative: it cannot be locked. */
static int lock_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    char folder[MAX_LINE] = ".";
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    const int lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (lock >= 0 && flock(lock, LOCK_EX) != 0 && errno == EINTR)
        continue;
    return lock;
}

bool bench_csv_write(const char *path, const bench_part *part) {
    if (!path) {
        fputs(COLUMNS, stdout);
        write_part(stdout, part);
        return fflush(stdout) == 0;
    }
    size_t bytes = strlen(path) + sizeof ".new";
    char *temporary = malloc(bytes);
    row_key *keys = keys_of(part);
    bool good = temporary && keys;
    if (good) {
        snprintf(temporary, bytes, "%s.new", path);
        const int lock = lock_folder(path);
        good = rewrite(path, temporary, part, keys);
        if (lock >= 0)
            close(lock);
    }
    free(keys);
    free(temporary);
    return good;
}

/* The text of the field after so many commas. The fields before it have no quotes. */
static void read_field(const char *line, int commas, char *text, size_t bytes) {
    while (commas > 0 && *line)
        commas -= *line++ == ',';
    const bool quoted = *line == '"';
    snprintf(text, bytes, "%.*s", (int)strcspn(line + quoted, quoted ? "\"\n" : ",\n"), line + quoted);
}

bool bench_csv_next(FILE *file, const bench_row *row, char *strategy, size_t bytes) {
    const row_key wanted = key_of(row);
    char line[MAX_LINE], impl[sizeof row->impl];
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#' || strcmp(key_of_line(line).text, wanted.text) != 0)
            continue;
        read_field(line, 5, impl, sizeof impl);
        if (strcmp(impl, row->impl) != 0)
            continue;
        read_field(line, 9, strategy, bytes);
        return true;
    }
    return false;
}

bool bench_csv_has(const char *path, const char *commit, const bench_row *row) {
    const row_key wanted = key_of(row);
    char line[MAX_LINE], mark[128];
    bool of_commit = false, found = false;
    FILE *file = path ? fopen(path, "r") : NULL;
    snprintf(mark, sizeof mark, ", commit %s, ", commit);
    while (file && !found && fgets(line, sizeof line, file)) {
        if (!strncmp(line, "# suite ", 8))
            of_commit = strstr(line, mark) != NULL;
        else if (of_commit && line[0] != '#')
            found = !strcmp(key_of_line(line).text, wanted.text);
    }
    if (file)
        fclose(file);
    return found;
}
