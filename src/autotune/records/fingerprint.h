/* SPDX-License-Identifier: Apache-2.0 */
/* Which device a tuning record is of. */
#ifndef CF_AUTOTUNE_FINGERPRINT_H
#define CF_AUTOTUNE_FINGERPRINT_H

#include "autotune/records/record_format.h"
#include "conv/plan/context.h"

/* A GPU: name, compute capability, number of multiprocessors. A CPU: the processor's name, threads, whether it has a BLAS. */
cf_fingerprint cf_fingerprint_of(const conv_fft_context *context);

/* What the names of its files begin with: "tuning-nvidia-h200-1a2b3c4d". */
#define CF_STEM_BYTES 72
void cf_fingerprint_stem(const cf_fingerprint *fingerprint, char stem[CF_STEM_BYTES]);

#endif
