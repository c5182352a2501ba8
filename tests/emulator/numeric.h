/* SPDX-License-Identifier: Apache-2.0 */
/* Device functions of numbers that have another name on the host, or none. */
#ifndef SIMT_NUMERIC_H
#define SIMT_NUMERIC_H

#include <cmath>
#include <cstdint>
#include <cstring>

#define SIMT_MIN_MAX(type)                                    \
    inline type min(type a, type b) { return a < b ? a : b; } \
    inline type max(type a, type b) { return a > b ? a : b; }

SIMT_MIN_MAX(int)
SIMT_MIN_MAX(unsigned)
SIMT_MIN_MAX(long)
SIMT_MIN_MAX(unsigned long)
SIMT_MIN_MAX(long long)
SIMT_MIN_MAX(unsigned long long)
#undef SIMT_MIN_MAX

inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }

/* sin(pi x) and cos(pi x). Quarter circles are subtracted exactly, so that multiples of 1/2 give 0, 1 and -1. */
template <class T> inline void simt_sincospi(T x, T *sine, T *cosine) {
    const long double pi = 3.14159265358979323846264338327950288L;
    const long double turn = std::remainder(static_cast<long double>(x), 2.0L), quarters = std::rint(2 * turn);
    const long double angle = pi * (turn - quarters / 2), s = std::sin(angle), c = std::cos(angle);
    const long double sines[] = {s, c, -s, -c};
    const int q = static_cast<int>(quarters) & 3;
    *sine = static_cast<T>(sines[q]);
    *cosine = static_cast<T>(sines[(q + 1) & 3]);
}

inline void sincospif(float x, float *sine, float *cosine) { simt_sincospi(x, sine, cosine); }
inline void sincospi(double x, double *sine, double *cosine) { simt_sincospi(x, sine, cosine); }

inline float simt_float_of(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline std::uint32_t simt_bits_of(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline std::uint32_t __float_as_uint(float value) { return simt_bits_of(value); }
inline float __uint_as_float(std::uint32_t bits) { return simt_float_of(bits); }

/* Conversions to storage formats as the device's cvt.rn: to nearest, ties to even; NaN becomes 0x7fff. */

inline float cf_fp16_to_float(unsigned short half) {
    const std::uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31u, fraction = half & 0x3ffu;
    if (exponent == 0)
        return simt_float_of(simt_bits_of(static_cast<float>(fraction) * 0x1p-24f) | sign);
    return simt_float_of(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13);
}

inline unsigned short cf_float_to_fp16(float value) {
    const std::uint32_t bits = simt_bits_of(value), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    if (magnitude > 0x7f800000u)
        return 0x7fff;
    if (magnitude >= 0x477ff000u) /* 65520 and up */
        return static_cast<unsigned short>(sign | 0x7c00u);
    if (magnitude < 0x38800000u) /* below 2^-14: whole multiples of 2^-24 */
        return static_cast<unsigned short>(sign | static_cast<std::uint32_t>(std::lrint(std::fabs(value) * 0x1p24f)));
    return static_cast<unsigned short>(sign | (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1)) >> 13);
}

inline float cf_bf16_to_float(unsigned short bf16) { return simt_float_of(static_cast<std::uint32_t>(bf16) << 16); }

inline unsigned short cf_float_to_bf16(float value) {
    const std::uint32_t bits = simt_bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

#endif
