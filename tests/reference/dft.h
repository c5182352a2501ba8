/* SPDX-License-Identifier: Apache-2.0 */
/* Discrete Fourier transform in double, O(n^2) per line, straight from the definition. */
#ifndef TEST_REF_DFT_H
#define TEST_REF_DFT_H

#include <stdint.h>

/** out[f] = sum over t of in[t] * exp(sign * 2 pi i f t / n), n complex numbers as (re, im) pairs; no scale. `in` is
 * not `out`. */
void ref_dft(int64_t n, int sign, const double *in, double *out);

/** out[i] is the same for f = bins[i], i < count. bins NULL: f = i. */
void ref_dft_bins(int64_t n, int sign, const double *in, int64_t count, const int64_t *bins, double *out);

#endif
