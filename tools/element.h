/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of tensors as numbers of FP64. */
#ifndef CONV_FFT_PROGRAM_ELEMENT_H
#define CONV_FFT_PROGRAM_ELEMENT_H

#include "conv_fft.h"

size_t element_bytes(conv_fft_dtype dtype);

/* The largest error of rounding to the type, relative to the value: 2 to the power of minus its bits. */
double element_roundoff(conv_fft_dtype dtype);

/* A random number in (-1, 1) that the type has exactly. state: any number, which changes. */
double element_random(conv_fft_dtype dtype, uint64_t *state);

/* Write a number of element_random() as element `index`; read an element. */
void element_write(conv_fft_dtype dtype, void *tensor, int64_t index, double value);
double element_read(conv_fft_dtype dtype, const void *tensor, int64_t index);

#endif
