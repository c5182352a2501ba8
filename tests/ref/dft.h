/* SPDX-License-Identifier: Apache-2.0 */
/* Discrete Fourier transform in double, O(n^2) per line, straight from the definition. */
#ifndef TEST_REF_DFT_H
#define TEST_REF_DFT_H

#include <stdint.h>

/** out[f] = sum over t of in[t] * exp(sign * 2 pi i f t / n), n complex numbers as (re, im) pairs; no scale. `in` is
 * not `out`. */
void ref_dft(int64_t n, int sign, const double *in, double *out);

#endif
