/* SPDX-License-Identifier: Apache-2.0 */
/* One line for each call, at the log level CONV_FFT_LOG_CALLS. */
#ifndef CF_API_LOG_CALL_H
#define CF_API_LOG_CALL_H

#include "conv/plan/run.h"

/* cf_run_checked() or cf_run_transform_weights(). */
typedef conv_fft_status (*cf_call_run)(const conv_fft_plan *plan, int set, const cf_call *call);

/* Run the call, wait for its end, and write a line: what was computed, the problem, the strategies, the time, and what
 * chose the strategies. On a GPU the time is between two events in the stream. A stream that is being captured into a
 * graph is not waited for, and the line has no time. */
conv_fft_status cf_run_and_log(const conv_fft_plan *plan, int set, const cf_call *call, cf_call_run run);

#endif
