/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit floating-point numbers to float and back: no branches, so that loops over them vectorise. Rounding is to the
 * nearest, ties to even; a NaN stays a NaN. */
#ifndef CF_CPU_CONVERT_H
#define CF_CPU_CONVERT_H

#include <math.h>
#include <stdint.h>

static inline uint32_t cf_float_bits(float value) {
    union {
        float value;
        uint32_t bits;
    } u = {value};
    return u.bits;
}

static inline float cf_bits_float(uint32_t bits) {
    union {
        uint32_t bits;
        float value;
    } u = {bits};
    return u.value;
}

/* The list of 16-bit types: X(name, to float, from float). Loads and stores of tensors have one loop for each. */
#define CF_16_BIT_LIST(X)                       \
    X(FP16, cf_fp16_to_float, cf_float_to_fp16) \
    X(BF16, cf_bfloat_to_float, cf_float_to_bfloat)

static inline float cf_bfloat_to_float(uint16_t b) { return cf_bits_float((uint32_t)b << 16); }

static inline uint16_t cf_float_to_bfloat(float value) {
    const uint32_t bits = cf_float_bits(value);
    const uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
    const uint32_t quiet = bits >> 16 | 0x40u;
    return (uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded);
}

static inline float cf_fp16_to_float(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, twice = (uint32_t)h << 17;
    /* Exponent and mantissa moved into place; the factor rebiases the exponent and keeps Inf and NaN. */
    const float normal = cf_bits_float((twice >> 4) + 0x70000000u) * 0x1p-112f;
    /* Subnormal: the mantissa as the low bits of 0.5. */
    const float subnormal = cf_bits_float((twice >> 17) | 0x3F000000u) - 0.5f;
    return cf_bits_float(sign | (twice < 0x08000000u ? cf_float_bits(subnormal) : cf_float_bits(normal)));
}

static inline uint16_t cf_float_to_fp16(float value) {
    const uint32_t bits = cf_float_bits(value), twice = bits << 1;
    /* Too large values become Inf. Then the sum with a power of two keeps the bits of FP16, correctly rounded. */
    const float scaled = (fabsf(value) * 0x1p+112f) * 0x1p-110f;
    const uint32_t exponent = twice & 0xFF000000u;
    const uint32_t bias = exponent < 0x71000000u ? 0x71000000u : exponent;
    const uint32_t sum = cf_float_bits(cf_bits_float((bias >> 1) + 0x07800000u) + scaled);
    const uint32_t magnitude = (sum >> 13 & 0x7C00u) + (sum & 0x0FFFu);
    return (uint16_t)((bits >> 16 & 0x8000u) | (twice > 0xFF000000u ? 0x7E00u : magnitude));
}

#endif
