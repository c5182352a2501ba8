/* SPDX-License-Identifier: Apache-2.0 */
/* A context with tuning records on the substitute GPU of tests/fakes. Any part of it may fail to open. */
#ifndef TEST_FAKE_TUNING_H
#define TEST_FAKE_TUNING_H

#include "conv/plan/context.h"

/* A small layer. */
extern const char fake_tuned_line[];

/* CONV_FFT_SUCCESS if everything opens. */
conv_fft_status open_context(const char *libraries, const char *directory, conv_fft_context *context);
void close_context(conv_fft_context *context);

/* Plan a problem; `strategy` receives the strategies of all passes. */
conv_fft_status plan_problem(conv_fft_context *context, const char *problem, conv_fft_tuning tuning,
                             char strategy[3][256]);
/* The layer of fake_tuned_line. */
conv_fft_status plan_layer(conv_fft_context *context, conv_fft_tuning tuning, char strategy[3][256]);

#endif
