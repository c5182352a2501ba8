/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, converted through double. Independent of the library's own conversions. */
#ifndef TEST_REF_DTYPE_H
#define TEST_REF_DTYPE_H

#include "conv_fft.h"

size_t ref_dtype_size(conv_fft_dtype dtype);
const char *ref_dtype_name(conv_fft_dtype dtype);

/** Half the distance from 1 to the next larger number: the relative error of one rounding. */
double ref_dtype_roundoff(conv_fft_dtype dtype);

/** Half of the smallest positive number: the error of one rounding near zero. */
double ref_dtype_floor(conv_fft_dtype dtype);

/** The pattern of a 16-bit type, rounded to nearest, ties to even; beyond the range: infinity. */
uint16_t ref_encode16(conv_fft_dtype dtype, double value);
double ref_decode16(conv_fft_dtype dtype, uint16_t pattern);

/** Element at `address`, which need not be aligned. */
double ref_load(conv_fft_dtype dtype, const void *address);
void ref_store(conv_fft_dtype dtype, void *address, double value);

#endif
