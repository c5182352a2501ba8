/* SPDX-License-Identifier: Apache-2.0 */
/* baselines/cudnn.h - cuDNN as a baseline, by the library's own family `direct`; for cudnn.c and cudnn_search.c only. */
#ifndef BENCH_CUDNN_UNIT_H
#define BENCH_CUDNN_UNIT_H

#include "common/gpu.h"
#include "conv/cudnn/cudnn.h"

#define CUDNN_MAX_WAYS 128
#define CUDNN_MAX_SEEN 512

/* One algorithm, by its name in a strategy. */
typedef struct cudnn_way {
    char text[CF_ALGORITHM_BYTES];
    double ms;
    size_t workspace_bytes;
    cf_direct_graph *graph; /* or, if NULL: */
    cf_direct_old *old;
} cudnn_way;

/* One pass of one layer. */
typedef struct cudnn_unit {
    bench_gpu *gpu;
    const bench_case *layer;
    const bench_class *class;
    conv_fft_pass pass;
    cf_direct_pass direct;
    void *memory[CF_OPERAND_COUNT]; /* of x or gx, w or gw, y or gy */
    double deadline_ms;             /* for new ways */
    bool cut_short;                 /* there was no time for all of them */
    cudnn_way ways[CUDNN_MAX_WAYS];
    int count;                     /* the first is the best, once they have been sorted */
    uint64_t seen[CUDNN_MAX_SEEN]; /* hashes of texts */
    int seen_count;
} cudnn_unit;

/* Finds the ways: the best first, and only such as compute in the class. Says on the standard error stream what it found. */
void cudnn_search(cudnn_unit *u, const bench_job *job);
conv_fft_status cudnn_way_run(const cudnn_unit *u, const cudnn_way *way);
void cudnn_way_close(const cudnn_unit *u, cudnn_way *way);

#endif /* BENCH_CUDNN_UNIT_H */
