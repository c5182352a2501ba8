/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/dtype.h"

#include <math.h>
#include <string.h>

/* A binary format: sign bit, exponent field, `fraction` bits; `lowest` is the exponent of the smallest normal number.
 */
typedef struct format {
    const char *name;
    size_t size;
    int fraction, lowest;
} format;

static const format formats[] = {
    [CONV_FFT_FP32] = {"fp32", 4, 23, -126},
    [CONV_FFT_FP16] = {"fp16", 2, 10, -14},
    [CONV_FFT_BF16] = {"bf16", 2, 7, -126},
    [CONV_FFT_FP64] = {"fp64", 8, 52, -1022},
};

size_t ref_dtype_size(conv_fft_dtype dtype) { return formats[dtype].size; }

const char *ref_dtype_name(conv_fft_dtype dtype) { return formats[dtype].name; }

double ref_dtype_roundoff(conv_fft_dtype dtype) { return ldexp(1, -formats[dtype].fraction - 1); }

double ref_dtype_floor(conv_fft_dtype dtype) { return ldexp(1, formats[dtype].lowest - formats[dtype].fraction - 1); }

uint16_t ref_encode16(conv_fft_dtype dtype, double value) {
    const format *f = &formats[dtype];
    const unsigned sign = signbit(value) ? 0x8000u : 0;
    const unsigned infinity = (0x7fffu >> f->fraction) << f->fraction;
    if (isnan(value))
        return (uint16_t)(sign | infinity | 1u << (f->fraction - 1));
    if (isinf(value))
        return (uint16_t)(sign | infinity);
    if (value == 0)
        return (uint16_t)sign;

    int exponent;
    (void)frexp(value, &exponent);
    exponent -= 1;
    if (exponent < f->lowest)
        exponent = f->lowest;
    /* A power of two divides exactly, so nearbyint() is the only rounding. A carry runs on into the exponent field. */
    const long units = (long)nearbyint(fabs(value) / ldexp(1, exponent - f->fraction));
    const long bits = ((long)(exponent - f->lowest) << f->fraction) + units;
    return (uint16_t)(sign | (bits < (long)infinity ? (unsigned)bits : infinity));
}

double ref_decode16(conv_fft_dtype dtype, uint16_t pattern) {
    const format *f = &formats[dtype];
    const int field = (pattern & 0x7fff) >> f->fraction;
    const int fraction = pattern & ((1 << f->fraction) - 1);
    double magnitude;
    if (field == 0x7fff >> f->fraction)
        magnitude = fraction ? NAN : INFINITY;
    else if (field == 0)
        magnitude = ldexp(fraction, f->lowest - f->fraction);
    else
        magnitude = ldexp(fraction + (1 << f->fraction), f->lowest - f->fraction + field - 1);
    return pattern & 0x8000 ? -magnitude : magnitude;
}

double ref_load(conv_fft_dtype dtype, const void *address) {
    if (dtype == CONV_FFT_FP64) {
        double value;
        memcpy(&value, address, sizeof value);
        return value;
    }
    if (dtype == CONV_FFT_FP32) {
        float value;
        memcpy(&value, address, sizeof value);
        return (double)value;
    }
    uint16_t pattern;
    memcpy(&pattern, address, sizeof pattern);
    return ref_decode16(dtype, pattern);
}

void ref_store(conv_fft_dtype dtype, void *address, double value) {
    if (dtype == CONV_FFT_FP64) {
        memcpy(address, &value, sizeof value);
    } else if (dtype == CONV_FFT_FP32) {
        const float rounded = (float)value;
        memcpy(address, &rounded, sizeof rounded);
    } else {
        const uint16_t pattern = ref_encode16(dtype, value);
        memcpy(address, &pattern, sizeof pattern);
    }
}
