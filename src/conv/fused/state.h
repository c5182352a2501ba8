/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan holds for a fused pass. */
#ifndef CF_CONV_FUSED_STATE_H
#define CF_CONV_FUSED_STATE_H

#include "conv/fused/fused.h"
#include "core/arith.h"
#include "fbfft/plan/gpu_transform.h"

/* plan->pass[].state */
typedef struct cf_fused_state {
    cf_gpu *gpu;
    cf_fused_config config;
    cf_gpu_transform *weights;     /* w to its spectrum, or the gradient's spectrum to gw */
    cf_gpu_transform *inputs;      /* backward weights by register_resident.cuh: x to its spectrum; otherwise NULL */
    cf_kernel *kernel[2];          /* for aligned pointers, for others */
    cf_kernel *add;                /* adds slices; NULL: there is one slice */
    cf_kernel *transpose[2];       /* transposes, for aligned pointers and for others; NULL: there is none */
    size_t spectra, of_x, scratch; /* bytes of the workspace */
} cf_fused_state;

/*
 * Bytes of transposed planes at the beginning of the workspace. A call for both gradients leaves the planes of gy there
 * for its second pass.
 */
static inline size_t cf_fused_planes_bytes(const cf_fused_state *state) {
    return cf_align(state->config.transpose.bytes);
}

#endif
