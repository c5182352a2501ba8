/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CONV_CALL_CHECK_H
#define CF_CONV_CALL_CHECK_H

#include "conv/plan/run.h"

/* GPU: check that the GPU can access all memory that a call of these passes uses, and that the stream belongs to its
 * context (cuda/driver/pointer_check.h). INVALID_ARGUMENT: the sentence names the argument. CPU: SUCCESS. */
conv_fft_status cf_check_call_memory(const conv_fft_plan *plan, int set, const cf_call *call);

#endif
