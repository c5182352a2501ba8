/* SPDX-License-Identifier: Apache-2.0 */
/* The results file. */
#ifndef BENCH_CSV_H
#define BENCH_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct bench_row {
    char suite[48], layer[80], pass[16], precision[8], impl[32], strategy[640];
    bool channels_last;
    double ms, rel_l2;
    uint64_t workspace_bytes;
} bench_row;

/* Rows of one run of a suite or a part of it. header: comment lines; each begins with '#' and ends with a newline. */
typedef struct bench_part {
    char header[1024];
    bench_row *rows;
    size_t count, capacity;
} bench_part;

/* Write a text, in quotes if it has commas: names of stages with two tensors, knobs of cuDNN's engines. No text has
 * quotes. */
void bench_csv_write_text(FILE *out, const char *text);

bool bench_part_add(bench_part *part, const bench_row *row);

/* Write the part to the file. It replaces rows of the same suite, case, pass, precision and layout. Several
 * processes may write to one file. path NULL: to the standard output. */
bool bench_csv_write(const char *path, const bench_part *part);

/* Whether the file has rows like this one under a header with this commit. */
bool bench_csv_has(const char *path, const char *commit, const bench_row *row);

/* The strategy of the next row, from the position of the file on, that is like this one and has its implementation.
 * False: there is none. */
bool bench_csv_next(FILE *file, const bench_row *row, char *strategy, size_t bytes);

#endif
