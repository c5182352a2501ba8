/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: their size and precision, and the type that the CPU computes in. */
#ifndef CF_CORE_DTYPE_H
#define CF_CORE_DTYPE_H

#include "conv_fft.h"

#include <stdbool.h>

static inline size_t cf_dtype_bytes(conv_fft_dtype type) {
#define CF_BYTES(name, value, word, bytes, bits) [value] = bytes,
    static const unsigned char table[] = {CONV_FFT_DTYPE_LIST(CF_BYTES)};
#undef CF_BYTES
    return table[type];
}

/* Bits of the significand, the implicit one included: a rounding error is at most 2^-bits. */
static inline int cf_dtype_significand_bits(conv_fft_dtype type) {
#define CF_BITS(name, value, word, bytes, bits) [value] = bits,
    static const unsigned char table[] = {CONV_FFT_DTYPE_LIST(CF_BITS)};
#undef CF_BITS
    return table[type];
}

/* FP16, BF16: types that are stored in 16 bits and computed in FP32. */
static inline bool cf_dtype_is_16_bit(conv_fft_dtype type) { return cf_dtype_bytes(type) == 2; }

/* The type of spectra and sums on the CPU: FP64 for FP64, else FP32. */
static inline conv_fft_dtype cf_compute_dtype(conv_fft_dtype type) {
    return type == CONV_FFT_FP64 ? CONV_FFT_FP64 : CONV_FFT_FP32;
}

#endif
