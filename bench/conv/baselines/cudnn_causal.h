/* SPDX-License-Identifier: Apache-2.0 */
/* The fastest causal operation of cuDNN, as part of the baseline `cudnn`. */
#ifndef BENCH_CUDNN_CAUSAL_H
#define BENCH_CUDNN_CAUSAL_H

#include "common/gpu.h"
#include "common/impl.h"

/* Whether the layer is a depthwise signal that is padded with taps - 1 zeros before and none after. cuDNN's other
 * algorithms are not given such layers. */
bool bench_cudnn_is_causal(const bench_shape *shape);

bool bench_cudnn_causal_open(bench_impl *impl, const bench_job *job);

/* For the head of results: empty, or ", causal operations from another folder". */
const char *bench_cudnn_causal_note(const bench_gpu *g);

#endif
