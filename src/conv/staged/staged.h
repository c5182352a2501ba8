/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CONV_STAGED_H
#define CF_CONV_STAGED_H

#include "conv/plan/family.h"

/* Whether a run of these passes gives the gradient of the bias as well: the sum of a plane is bin 0 of its spectrum, so that gy need not be
 * read again. Its windows must meet every element once, one chunk must hold all rows, and spectra in 16 bits are too rough. */
bool cf_staged_sums_bias(const conv_fft_plan *plan, int set);

/* Why a strategy is not feasible, or runs nowhere here, that no other basis helps against. */
extern const char cf_staged_too_large[];

/* The type of spectra in 16 bits that the layer may have, for tensor cores to multiply; false: none. FP16 with its scales keeps as many bits of
 * FP32 tensors as TF32 does. */
bool cf_staged_short_spectrum(const cf_layer *layer, conv_fft_dtype *spectrum);

conv_fft_status cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call);

#endif
