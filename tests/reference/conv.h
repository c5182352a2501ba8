/* SPDX-License-Identifier: Apache-2.0 */
/* Direct convolution in double, straight from the definition at the top of conv_fft.h:
 *
 *     y[n][o][m] = sum over c, k of w[o][c][k] * x[n][c][source(m * stride + k * dilation - pad_before)]
 *
 * Arrays are dense, channels first: x[batch][in_channels][D1][D2][D3], w[out_channels][in_channels/groups][K1][K2][K3],
 * y[batch][out_channels][M1][M2][M3]. For a lower rank the first axes have extent 1. */
#ifndef TEST_REF_CONV_H
#define TEST_REF_CONV_H

#include "conv_fft.h"

typedef struct ref_shape {
    int64_t batch, in_channels, out_channels, groups;
    int64_t input[3], kernel[3], output[3], stride[3], dilation[3], pad_before[3];
    conv_fft_padding padding;
} ref_shape;

ref_shape ref_shape_of(const conv_fft_problem *problem);

int64_t ref_input_count(const ref_shape *s);
int64_t ref_weight_count(const ref_shape *s);
int64_t ref_output_count(const ref_shape *s);
/** Multiplications of one pass, including those with zeros of the padding. */
double ref_products(const ref_shape *s);

/** The index that x[i] is copied from if i is outside of 0..extent-1; negative: x[i] is zero. */
int64_t ref_source(conv_fft_padding padding, int64_t i, int64_t extent);

/** The three passes. Each sets its last argument. */
void ref_forward(const ref_shape *s, const double *x, const double *w, double *y);
void ref_backward_data(const ref_shape *s, const double *w, const double *gy, double *gx);
void ref_backward_weights(const ref_shape *s, const double *x, const double *gy, double *gw);

/** Add bias[out_channels] to y. */
void ref_add_bias(const ref_shape *s, const double *bias, double *y);
/** Set gbias[out_channels] to the sums of gy. */
void ref_backward_bias(const ref_shape *s, const double *gy, double *gbias);

#endif
