/* SPDX-License-Identifier: Apache-2.0 */
/* A run of bench_conv. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "common/precision.h"

#define BENCH_MAX_SUITES 32

typedef struct bench_options {
    const char *suites[BENCH_MAX_SUITES];
    int suite_count;
    const char *only;             /* the name of a case; NULL: all cases */
    unsigned pass_set;            /* bit i: bench_passes[i] */
    int64_t count, skip, threads; /* 0: all cases; none; the default of OpenMP */
    int64_t shard, shards;        /* of every `shards` cases the one with this number, from 0; shards 0: all */
    int device;
    const bench_class *class;
    bool channels_last;
    const char *out, *commit;          /* NULL: the standard output; what git says */
    const char *known;                 /* earlier results; NULL: none */
    double seconds, search, max_gflop; /* seconds 0: the default of the device */
    double minutes;                    /* 0: no limit */
    bool tune, choice, families, stages, resume, prepare_only, list, verbose, no_direct;
} bench_options;

/* False: a measurement is missing or gave a wrong result. Messages have been written. */
bool bench_run(const bench_options *o);

#endif
