/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: sizes, names, and the type that computes for them. */
#ifndef CF_CORE_DTYPE_H
#define CF_CORE_DTYPE_H

#include "conv_fft.h"

static inline size_t cf_dtype_bytes(conv_fft_dtype type) {
    return type == CONV_FFT_FP64 ? 8 : type == CONV_FFT_FP32 ? 4 : 2;
}

/* Spectra and sums of the CPU: FP64 for FP64, else FP32. */
static inline conv_fft_dtype cf_compute_dtype(conv_fft_dtype type) {
    return type == CONV_FFT_FP64 ? CONV_FFT_FP64 : CONV_FFT_FP32;
}

#endif
