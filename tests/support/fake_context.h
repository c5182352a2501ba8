/* SPDX-License-Identifier: Apache-2.0 */
/* A context of layers on the substitute GPU of tests/fakes, with cuBLAS, and with cuDNN and cuFFT unless a test wants
 * other folders. */
#ifndef TEST_FAKE_CONTEXT_H
#define TEST_FAKE_CONTEXT_H

#include "conv/plan/context.h"

#define FAKES_PLAIN FAKES "/good:" FAKES "/with_cublas"
#define FAKES_ALL FAKES_PLAIN ":" FAKES "/with_cudnn"

/* Ends the program if there is none. `compiler`: NVRTC of this machine makes the kernels, if there is one. */
conv_fft_context *fake_context_create(const char *folders, const char *cache, bool compiler);
/* Nothing of the substitutes may be open then. */
void fake_context_destroy(conv_fft_context *context);

/* Kernels that the substitute driver has launched so far. */
int fake_launches(void);

/* A plan of this problem line with this strategy for all of its passes. *plan is NULL on failure. */
conv_fft_status forced_plan(conv_fft_context *context, const char *line, int passes, const char *strategy,
                            uint64_t workspace_limit, conv_fft_plan **plan);
/* The same without a limit; what fails ends the program. */
conv_fft_plan *good_forced_plan(conv_fft_context *context, const char *line, int passes, const char *strategy);

#endif
