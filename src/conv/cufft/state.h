/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CONV_REFERENCE_STATE_H
#define CF_CONV_REFERENCE_STATE_H

#include "conv/cufft/cufft.h"
#include "cuda/jit/kernel.h"
#include "cuda/libs/cufft.h"

#include <pthread.h>

enum {
    CF_REFERENCE_PAD,
    CF_REFERENCE_CROP,
    CF_REFERENCE_TO_SPECTRUM,
    CF_REFERENCE_FROM_SPECTRUM,
    CF_REFERENCE_KERNELS
};

/* plan->pass[].state */
typedef struct cf_reference_state {
    cf_gpu *gpu;
    pthread_mutex_t mutex; /* a plan of cuFFT serves one thread at a time */
    int64_t unit;          /* planes that cuFFT transforms at once; NULL plans, and none, for an empty batch */
    cf_cufft_plan *forward, *inverse;
    size_t padded, bins, work; /* bytes of the unit's memory, one part behind the other */
    cf_kernel *kernel[CF_REFERENCE_KERNELS];
} cf_reference_state;

/* The problem's own axis in the place of the three that the pipeline has; its kernel untrimmed. */
typedef struct cf_reference_axis {
    int64_t input, kernel, output, pad_before, pad_after, stride, dilation;
} cf_reference_axis;

cf_reference_axis cf_reference_axis_of(const cf_layer *layer, int axis);

#endif
