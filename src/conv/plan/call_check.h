/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CONV_CALL_CHECK_H
#define CF_CONV_CALL_CHECK_H

#include "conv/plan/run.h"

/* On a GPU: everything that a call of these passes touches is memory that it can access, and the stream is one of its
 * own (cuda/driver/pointer_check.h). INVALID_ARGUMENT names the argument. On the CPU: SUCCESS. */
conv_fft_status cf_check_call_memory(const conv_fft_plan *plan, int set, const cf_call *call);

#endif
