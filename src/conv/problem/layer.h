/* SPDX-License-Identifier: Apache-2.0 */
/* A checked problem in the form the pipeline works with: three axes, channels per group, every stride resolved. */
#ifndef CF_CONV_LAYER_H
#define CF_CONV_LAYER_H

#include "core/spectrum.h"
#include "core/status.h"
#include "tiling/tiling.h"

typedef struct cf_layer {
    conv_fft_problem problem; /* with math and weight_grad_dtype resolved */
    int64_t batch, groups;
    int64_t in_channels, out_channels; /* per group */
    cf_axis axis[3];                   /* axis[3 - rank + a] is the problem's axis a, its kernel trimmed */
    cf_tensor x, y, w, gw;             /* gx is like x, gy like y */
    conv_fft_dtype compute;
} cf_layer;

void cf_problem_defaults(conv_fft_problem *problem, int rank);

/* Of w and bias. */
conv_fft_dtype cf_problem_weight_dtype(const conv_fft_problem *problem);

/* INVALID_ARGUMENT names the field, its value and its range. */
conv_fft_status cf_layer_make(const conv_fft_problem *problem, cf_layer *layer);

/* INVALID_ARGUMENT: a tensor that `passes` write may have two elements at one address. */
conv_fft_status cf_layer_check_written(const cf_layer *layer, int passes);

/* Extents {samples, channels, axes} of x, y and w over all groups. */
void cf_layer_extents(const cf_layer *layer, int64_t x[5], int64_t y[5], int64_t w[5]);

/* Bytes from the first to the last element; 0 if there are no samples. */
size_t cf_tensor_bytes(const cf_tensor *tensor, const int64_t extents[5]);

#endif
