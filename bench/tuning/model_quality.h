/* SPDX-License-Identifier: Apache-2.0 */
/* The quality of the cost model and of the quick search, compared with the exhaustive search. */
#ifndef BENCH_MODEL_QUALITY_H
#define BENCH_MODEL_QUALITY_H

#include "tools/network.h"

typedef struct quality_options {
    int device;
    int64_t threads, count, milliseconds, workspace_limit; /* 0: the default; all layers; the default; no limit */
    int64_t exhaustive_milliseconds;                       /* of a layer; 0: no limit */
    const char *candidates;                                /* a file for the timed strategies; NULL: none */
} quality_options;

/* Print a CSV row for each set of passes, and the means. Returns an exit status. */
int measure_quality(const quality_options *o, conv_fft_context *context, const network *n);

#endif
