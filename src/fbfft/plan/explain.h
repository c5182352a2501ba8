/* SPDX-License-Identifier: Apache-2.0 */
/* The plan that a GPU would have for a transform, and the reasons, as text for people. No GPU is needed. */
#ifndef CF_FBFFT_EXPLAIN_H
#define CF_FBFFT_EXPLAIN_H

#include "fbfft/plan/roofline.h"

/* batch 0: so many entries that they have about 2^28 points. NOT_SUPPORTED: no kernel computes it. */
conv_fft_status cf_fft_explain(const cf_fft_problem *problem, const cf_gpu_properties *properties, int64_t batch,
                               cf_text *text);

#endif
