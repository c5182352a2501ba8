/* SPDX-License-Identifier: Apache-2.0 */
/* The fastest algorithm of cuDNN. */
#ifndef BENCH_CUDNN_H
#define BENCH_CUDNN_H

#include "common/gpu.h"
#include "common/impl.h"

/* NULL: a message has been written. */
struct bench_cudnn *bench_cudnn_create(const bench_gpu *g);
void bench_cudnn_destroy(bench_gpu *g);

bool bench_cudnn_open(bench_impl *impl, const bench_job *job);

/* Free the algorithms that were found for the passes of a case. */
void bench_cudnn_forget(bench_gpu *g);

const char *bench_cudnn_version(const bench_gpu *g); /* "9.19.0", "none" */

#endif
