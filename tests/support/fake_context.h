/* SPDX-License-Identifier: Apache-2.0 */
/* A context for layers on the substitute GPU of tests/fakes, with cuBLAS, cuDNN and cuFFT unless a test names other
 * folders. */
#ifndef TEST_FAKE_CONTEXT_H
#define TEST_FAKE_CONTEXT_H

#include "conv/plan/context.h"

#define FAKES_PLAIN FAKES "/good:" FAKES "/with_cublas"
#define FAKES_ALL FAKES_PLAIN ":" FAKES "/with_cudnn"

/* A failure ends the program. `compiler`: the NVRTC of this machine compiles the kernels if there is one. */
conv_fft_context *fake_context_create(const char *folders, const char *cache, bool compiler);
/* The program fails if objects of the substitute driver are still open then. */
void fake_context_destroy(conv_fft_context *context);

/* Kernels that the substitute driver has launched so far. */
int fake_launches(void);

/* A plan of this problem line with this strategy for all of its passes. *plan is NULL on failure. */
conv_fft_status forced_plan(conv_fft_context *context, const char *line, int passes, const char *strategy,
                            uint64_t workspace_limit, conv_fft_plan **plan);
/* The same without a limit. A failure ends the program. */
conv_fft_plan *good_forced_plan(conv_fft_context *context, const char *line, int passes, const char *strategy);

#endif
