/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CONV_STAGED_H
#define CF_CONV_STAGED_H

#include "conv/family.h"

conv_fft_status cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call);

#endif
