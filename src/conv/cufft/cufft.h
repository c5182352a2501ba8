/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Family `reference`: cuFFT with explicit padding and transposes, and cuBLAS, as in section 3 of the fbfft paper. It is
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

CF_FAMILY_DECLARE(cf_cufft);

#endif
