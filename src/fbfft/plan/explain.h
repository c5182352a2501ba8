/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan for a transform would be on a GPU, and why, for people. No GPU is needed. */
#ifndef CF_FBFFT_EXPLAIN_H
#define CF_FBFFT_EXPLAIN_H

#include "fbfft/plan/roofline.h"

/* batch 0: as many entries as have about 2^28 points. NOT_SUPPORTED: no kernel for it. */
conv_fft_status cf_fft_explain(const cf_fft_problem *problem, const cf_gpu_properties *properties, int64_t batch,
                               cf_text *text);

#endif
