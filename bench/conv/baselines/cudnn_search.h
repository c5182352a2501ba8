/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the fastest cuDNN algorithm of a pass. It uses the library's own family `cudnn`. */
#ifndef BENCH_CUDNN_SEARCH_H
#define BENCH_CUDNN_SEARCH_H

#include "common/gpu.h"
#include "common/impl.h"
#include "conv/cudnn/cudnn.h"

#define CUDNN_MAX_WAYS 128
#define CUDNN_MAX_SEEN 512

/* One algorithm. text: its name in a strategy. */
typedef struct cudnn_way {
    char text[CF_ALGORITHM_BYTES];
    double ms;
    size_t workspace_bytes;
    cf_cudnn_graph *graph; /* NULL: `old` is used */
    cf_cudnn_legacy *old;
} cudnn_way;

/* One pass of one layer. */
typedef struct cudnn_unit {
    bench_gpu *gpu;
    const bench_case *layer;
    const bench_class *class;
    conv_fft_pass pass;
    cf_cudnn_pass direct;
    void *memory[CF_OPERAND_COUNT]; /* x or gx, w or gw, y or gy */
    double deadline_ms;             /* no other algorithm is tried after this time */
    bool cut_short;                 /* there was no time to try all algorithms */
    cudnn_way ways[CUDNN_MAX_WAYS];
    int count;                     /* after sorting, the first is the best */
    uint64_t seen[CUDNN_MAX_SEEN]; /* hashes of texts */
    int seen_count;
} cudnn_unit;

/* Find the algorithms that compute in the class, best first. Write them to the standard error stream. */
void cudnn_search(cudnn_unit *u, const bench_job *job);
conv_fft_status cudnn_way_run(const cudnn_unit *u, const cudnn_way *way);
void cudnn_way_close(const cudnn_unit *u, cudnn_way *way);

#endif
