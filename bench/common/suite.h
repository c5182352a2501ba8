/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of a suite, read from a file of layers. */
#ifndef BENCH_SUITE_H
#define BENCH_SUITE_H

#include "common/shape.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct bench_case {
    char suite[48], name[80];
    conv_fft_problem problem;
    bench_shape shape;
} bench_case;

typedef struct bench_suite {
    bench_case *cases;
    size_t count;
} bench_suite;

/* Read [NAME=]FILE. NAME is the file's name if none is given. False: a message has been written. */
bool bench_suite_read(const char *argument, bench_suite *suite);
void bench_suite_free(bench_suite *suite);

/* Reduce the batch, then the channels, until a direct pass needs at most max_gflop (0: no limit). The name then
 * says so. */
bool bench_case_fit(bench_case *c, double max_gflop);

#endif
