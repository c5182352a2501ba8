/* SPDX-License-Identifier: Apache-2.0 */
/* Single results of a layer by the definition of the convolution, in FP64. */
#ifndef CONV_FFT_PROGRAM_DIRECT_SUM_H
#define CONV_FFT_PROGRAM_DIRECT_SUM_H

#include "conv_fft.h"

#include <stdbool.h>

/* A layer with three axes. The first ones of layers of lower rank have the extent 1. */
typedef struct direct_layer {
    int64_t batch, in_channels, out_channels, groups;
    int64_t input[3], kernel[3], output[3], stride[3], dilation[3], pad[3];
    conv_fft_padding padding;
    bool tensors_last, weights_last; /* the layouts */
} direct_layer;

/* The number of elements of the operands, in the places of the result of each pass. */
typedef struct direct_counts {
    int64_t x, w, y;
} direct_counts;

/* A result, and the same sum over absolute values. */
typedef struct direct_result {
    double value, magnitude;
} direct_result;

void direct_layer_make(const conv_fft_problem *p, const int64_t output[CONV_FFT_MAX_RANK], direct_layer *l);
direct_counts direct_count(const direct_layer *l);

/* About the number of products of one result of a pass. */
double direct_products(const direct_layer *l, conv_fft_pass pass);

/* The result at an index of y, gx or gw, in its layout, from the two operands that the pass reads. False: out of
 * memory. */
bool direct_sum(const direct_layer *l, conv_fft_pass pass, const double *x, const double *w, const double *gy,
                int64_t index, direct_result *result);

/* The channel of an element of y, which chooses its bias. */
int64_t direct_channel(const direct_layer *l, int64_t index);

#endif
