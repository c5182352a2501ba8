/* SPDX-License-Identifier: Apache-2.0 */
/* The transform by its definition, in double. */
#ifndef BENCH_FFT_REFERENCE_H
#define BENCH_FFT_REFERENCE_H

#include "conv_fft.h"
#include "fft/cases.h"

/* Compute the unscaled transform of one plane. Both are in natural order. OUT_OF_MEMORY. */
conv_fft_status fft_reference(const fft_case *c, bool inverse, const float *in, double *out);

/* The complex multiplications of that transform. */
int64_t fft_reference_work(const fft_case *c);

#endif
