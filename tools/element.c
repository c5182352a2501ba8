/* SPDX-License-Identifier: Apache-2.0 */
#include "element.h"

#include "core/element.h"

#include <math.h>
#include <string.h>

#define DTYPE_BYTES(name, value, word, bytes, bits) [value] = bytes,
#define DTYPE_BITS(name, value, word, bytes, bits) [value] = bits,
static const int type_bytes[] = {CONV_FFT_DTYPE_LIST(DTYPE_BYTES)};
static const int type_bits[] = {CONV_FFT_DTYPE_LIST(DTYPE_BITS)};

size_t element_bytes(conv_fft_dtype dtype) { return (size_t)type_bytes[dtype]; }

double element_roundoff(conv_fft_dtype dtype) { return ldexp(1.0, -type_bits[dtype]); }

double element_random(conv_fft_dtype dtype, uint64_t *state) {
    const int bits = type_bits[dtype];
    *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return ldexp((double)(z >> (64 - bits)), -bits) * (z & 1 ? 1 : -1);
}

/* Numbers of element_random() are 0 or normal in FP16, and have no more than its 11 bits. */
static uint16_t to_fp16(double value) {
    int exponent;
    const double fraction = frexp(fabs(value), &exponent);
    const unsigned sign = signbit(value) ? 0x8000 : 0;
    if (fraction == 0)
        return (uint16_t)sign;
    return (uint16_t)(sign | (unsigned)(exponent + 14) << 10 | (unsigned)((2 * fraction - 1) * 1024));
}

void element_write(conv_fft_dtype dtype, void *tensor, int64_t index, double value) {
    char *const at = (char *)tensor + (size_t)index * element_bytes(dtype);
    const float single = (float)value;
    uint32_t bits;
    uint16_t half = 0;
    memcpy(&bits, &single, sizeof bits);
    switch (dtype) {
    case CONV_FFT_FP64:
        memcpy(at, &value, sizeof value);
        return;
    case CONV_FFT_FP16:
        half = to_fp16(value);
        memcpy(at, &half, sizeof half);
        return;
    case CONV_FFT_BF16:
        half = (uint16_t)(bits >> 16);
        memcpy(at, &half, sizeof half);
        return;
    default:
        memcpy(at, &single, sizeof single);
    }
}

double element_read(conv_fft_dtype dtype, const void *tensor, int64_t index) {
    return cf_element_value(dtype, (const char *)tensor + (size_t)index * element_bytes(dtype));
}
