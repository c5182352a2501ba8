/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CONV_STAGED_H
#define CF_CONV_STAGED_H

#include "conv/plan/family.h"

extern const cf_family cf_staged_family;

/* The operation cf_family.sums_bias(). Bin 0 of a spectrum is the sum of its plane, so gy is not read again. The
 * windows of gy must contain every element once, and one chunk must hold all rows. 16-bit spectra are too
 * inaccurate. */
bool cf_staged_sums_bias(const conv_fft_plan *plan, int set);

conv_fft_status cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call);

#endif
