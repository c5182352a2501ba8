/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Family `cufft`: cuFFT with explicit padding and transposes, and cuBLAS, as in section 3 of the fbfft paper. It is
 * a baseline and a second opinion for the library's own kernels, and is kept simple: one tile, stride and dilation 1,
 * padding by zeros, channels-first, FP32 and FP64.
 *
 *     tensor -> padded copy -> cuFFT -> [plane][bin] -> spectrum [group][bin][row][column]      `unit` planes at a time
 *     product per bin                                                                           chunks of samples
 *     spectrum -> [plane][bin] -> cuFFT -> padded result -> cropped, scaled tensor
 */
#ifndef CF_CONV_CUFFT_H
#define CF_CONV_CUFFT_H

#include "conv/plan/family.h"

extern const cf_family cf_cufft_family;

/* Its operations (conv/plan/family.h). */
bool cf_cufft_feasible(const cf_layer *layer, int pass, const cf_strategy *strategy, const char **why);
bool cf_cufft_runs_on(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *strategy,
                      const char **why);
void cf_cufft_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                      cf_stage_cost cost[CF_STAGE_COUNT]);
conv_fft_status cf_cufft_run(const conv_fft_plan *plan, int set, const cf_call *call);
conv_fft_status cf_cufft_candidates(const cf_layer *layer, cf_device *device, int pass,
                                    bool (*visit)(const cf_strategy *strategy, void *user), void *user);

#endif
