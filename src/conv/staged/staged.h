/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CONV_STAGED_H
#define CF_CONV_STAGED_H

#include "conv/plan/family.h"

extern const cf_family cf_staged_family;

/* As cf_family.sums_bias(). The sum of a plane is bin 0 of its spectrum, so gy is not read again. The windows of gy must meet every element
 * once, one chunk must hold all rows, and 16-bit spectra are too inaccurate. */
bool cf_staged_sums_bias(const conv_fft_plan *plan, int set);

conv_fft_status cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call);

#endif
