/* SPDX-License-Identifier: Apache-2.0 */
/* The fingerprint of a device, for its tuning records. */
#ifndef CF_AUTOTUNE_FINGERPRINT_H
#define CF_AUTOTUNE_FINGERPRINT_H

#include "autotune/records/record_format.h"
#include "conv/plan/context.h"

/* GPU: name, compute capability, number of multiprocessors. CPU: name, threads, whether a BLAS was found. */
cf_fingerprint cf_fingerprint_of(const conv_fft_context *context);

/* The beginning of the names of its files: "tuning-nvidia-h200-1a2b3c4d". */
#define CF_STEM_BYTES 72
void cf_fingerprint_stem(const cf_fingerprint *fingerprint, char stem[CF_STEM_BYTES]);

#endif
