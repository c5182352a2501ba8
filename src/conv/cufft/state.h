/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CONV_CUFFT_STATE_H
#define CF_CONV_CUFFT_STATE_H

#include "conv/cufft/cufft.h"
#include "cuda/jit/kernel.h"
#include "cuda/libs/cufft.h"

#include <pthread.h>

enum {
    CF_CUFFT_PAD,
    CF_CUFFT_CROP,
    CF_CUFFT_TO_SPECTRUM,
    CF_CUFFT_FROM_SPECTRUM,
    CF_CUFFT_KERNELS
};

/* plan->pass[].state */
typedef struct cf_cufft_state {
    cf_gpu *gpu;
    pthread_mutex_t mutex; /* a plan of cuFFT serves one thread at a time */
    /* planes that cuFFT transforms at once; for an empty batch there are none, and plans are NULL */
    int64_t unit;
    cf_cufft_plan *forward, *inverse;
    size_t padded, bins, work; /* bytes of the parts of the unit's memory, in this order */
    cf_kernel *kernel[CF_CUFFT_KERNELS];
} cf_cufft_state;

/* The problem's own axis, at its place among the three axes of the pipeline. Its kernel is not trimmed. */
typedef struct cf_cufft_axis {
    int64_t input, kernel, output, pad_before, pad_after, stride, dilation;
} cf_cufft_axis;

cf_cufft_axis cf_cufft_axis_of(const cf_layer *layer, int axis);

#endif
