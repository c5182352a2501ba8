/* SPDX-License-Identifier: Apache-2.0 */
/* Storage types of signals and spectra: how numbers are stored in memory, conversions, and asynchronous copies.
 *
 *     signal      plain (FP32 or FP64), fp16, bf16
 *     spectrum    plain_bins (complex FP32 or FP64), fp16_bins, bf16_bins: one word of two 16-bit numbers per bin */
#pragma once

#include "fbfft/common/complex.cuh"

#ifndef CF_SIMT
CF_DEVICE float cf_fp16_to_float(unsigned short bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
CF_DEVICE unsigned short cf_float_to_fp16(float value) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
CF_DEVICE float cf_bf16_to_float(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }
CF_DEVICE unsigned short cf_float_to_bf16(float value) {
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
#endif

/* The vector type of two numbers. */
template <class T> struct PairOf;
template <> struct PairOf<float> { typedef float2 type; };
template <> struct PairOf<double> { typedef double2 type; };

struct fp16 {
    typedef unsigned short bits;
    static constexpr bool PLAIN = false;
    static CF_DEVICE real number(bits b) { return cf_fp16_to_float(b); }
    static CF_DEVICE bits rounded(real value) { return cf_float_to_fp16(float(value)); }
    static CF_DEVICE real load(const bits *p) { return number(__ldg(p)); }
    static CF_DEVICE void store(bits *p, real value) { *p = rounded(value); }
    static CF_DEVICE cplx pair(unsigned word) { return {number((bits)word), number((bits)(word >> 16))}; }
    static CF_DEVICE unsigned word(cplx v) { return rounded(v.x) | (unsigned)rounded(v.y) << 16; }
};
struct bf16 {
    typedef unsigned short bits;
    static constexpr bool PLAIN = false;
    static CF_DEVICE real number(bits b) { return cf_bf16_to_float(b); }
    static CF_DEVICE bits rounded(real value) { return cf_float_to_bf16(float(value)); }
    static CF_DEVICE real load(const bits *p) { return number(__ldg(p)); }
    static CF_DEVICE void store(bits *p, real value) { *p = rounded(value); }
    static CF_DEVICE cplx pair(unsigned word) { return {number((bits)word), number((bits)(word >> 16))}; }
    static CF_DEVICE unsigned word(cplx v) { return rounded(v.x) | (unsigned)rounded(v.y) << 16; }
};
struct plain {
    typedef real bits;
    static constexpr bool PLAIN = true;
    static CF_DEVICE real load(const bits *p) { return __ldg(p); }
    static CF_DEVICE void store(bits *p, real value) { *p = value; }
};

/* An element of a bias. The host prints K with Bias, the type of its elements. */
template <class K, class I> CF_DEVICE real bias_at(const void *bias, I element) {
    return K::Bias::load(static_cast<const typename K::Bias::bits *>(bias) + element);
}

/* Two 16-bit numbers in a word, the real part in the low half. */
#ifdef CF_SIMT
CF_DEVICE unsigned pack_fp16(float re, float im) {
    return (unsigned)cf_float_to_fp16(re) | (unsigned)cf_float_to_fp16(im) << 16;
}
CF_DEVICE cplx unpack_fp16(unsigned word) {
    return {cf_fp16_to_float((unsigned short)word), cf_fp16_to_float((unsigned short)(word >> 16))};
}
CF_DEVICE unsigned product_of_fp16(unsigned a, unsigned b) {
    const cplx x = unpack_fp16(a), y = unpack_fp16(b);
    return pack_fp16(float(x.x * y.x), float(x.y * y.y));
}
CF_DEVICE unsigned pack_bf16(float re, float im) {
    return (unsigned)cf_float_to_bf16(re) | (unsigned)cf_float_to_bf16(im) << 16;
}
#else
CF_DEVICE unsigned pack_fp16(float re, float im) {
    unsigned word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(im), "f"(re));
    return word;
}
CF_DEVICE cplx unpack_fp16(unsigned word) {
    float re, im;
    asm("{\n.reg .b16 re, im;\nmov.b32 {re, im}, %2;\ncvt.f32.f16 %0, re;\ncvt.f32.f16 %1, im;\n}"
        : "=f"(re), "=f"(im)
        : "r"(word));
    return {re, im};
}
/* Multiplies both halves of a word by those of another. */
CF_DEVICE unsigned product_of_fp16(unsigned a, unsigned b) {
    unsigned word;
    asm("mul.f16x2 %0, %1, %2;" : "=r"(word) : "r"(a), "r"(b));
    return word;
}
CF_DEVICE unsigned pack_bf16(float re, float im) {
    unsigned word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(im), "f"(re));
    return word;
}
#endif
CF_DEVICE cplx unpack_bf16(unsigned word) { return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)}; }

/* log2 of n, rounded up: the smallest b with n <= 2^b. */
__host__ __device__ constexpr int bits_of(long long n) {
    int bits = 0;
    while (n > 1ll << bits)
        ++bits;
    return bits;
}

/* The scale of FP16 bins is one float. Its exponent is a power of two, by which bins are to be multiplied. The first
 * two bits of its mantissa say by how many further powers of two every bin is below the largest value allowed.
 * power_of_scale() is that power of two, bound_of_scale() the largest possible bin in units of the largest value
 * allowed. */
CF_DEVICE float power_of_scale(float scale) { return __uint_as_float(__float_as_uint(scale) & 0xff800000u); }
CF_DEVICE float bound_of_scale(float scale) {
    const unsigned bits = __float_as_uint(scale), exponent = bits >> 23, less = bits >> 21 & 3u;
    return exponent > less ? __uint_as_float((exponent - less) << 23) : 0.0f;
}

/* Storage of a spectrum. SCALED: rows are multiplied by powers of two, and the scales that undo this are stored
 * beside the spectrum. */
struct plain_bins {
    typedef cplx number;
    static constexpr bool SCALED = false;
    static CF_DEVICE cplx load(const cplx *p) {
        const typename PairOf<real>::type v = __ldcs(reinterpret_cast<const typename PairOf<real>::type *>(p));
        return {v.x, v.y};
    }
    static CF_DEVICE cplx unpack(cplx number) { return number; }
    static CF_DEVICE void store(cplx *p, cplx v, real) { *p = v; }
};
struct scaled_bins : plain_bins {
    static constexpr bool SCALED = true;
};
struct fp16_bins {
    typedef unsigned number;
    static constexpr bool SCALED = true;
    static CF_DEVICE unsigned pack(float re, float im) { return pack_fp16(re, im); }
    static CF_DEVICE cplx unpack(unsigned word) { return unpack_fp16(word); }
    static CF_DEVICE cplx load(const unsigned *p) { return unpack(__ldcs(p)); }
    static CF_DEVICE void store(unsigned *p, cplx v, real scale) {
        *p = pack_fp16(float(scale * v.x), float(scale * v.y));
    }
};
struct fp16_numbers : fp16_bins {
    static constexpr bool SCALED = false;
    static CF_DEVICE void store(unsigned *p, cplx v, real) { *p = pack_fp16(float(v.x), float(v.y)); }
};
struct bf16_bins {
    typedef unsigned number;
    static constexpr bool SCALED = false;
    static CF_DEVICE unsigned pack(float re, float im) { return pack_bf16(re, im); }
    static CF_DEVICE cplx unpack(unsigned word) { return unpack_bf16(word); }
    static CF_DEVICE cplx load(const unsigned *p) { return unpack(__ldcs(p)); }
    static CF_DEVICE void store(unsigned *p, cplx v, real) { *p = pack_bf16(float(v.x), float(v.y)); }
};

/* The vector type of VECTOR FP32 numbers. */
template <int VECTOR> struct VectorOf { typedef float type; };
template <> struct VectorOf<2> { typedef float2 type; };
template <> struct VectorOf<4> { typedef float4 type; };
CF_DEVICE float2 sum_of(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
CF_DEVICE float4 sum_of(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
CF_DEVICE float2 plus_number(float2 a, float b) { return make_float2(a.x + b, a.y + b); }
CF_DEVICE float4 plus_number(float4 a, float b) { return make_float4(a.x + b, a.y + b, a.z + b, a.w + b); }

/* Copies VECTOR numbers from global to shared memory without registers, or stores zeros. They are there after
 * wait_async() and a barrier. */
#ifdef CF_SIMT
template <int VECTOR> CF_DEVICE void copy_async(smem<real> to, const real *from, bool inside) {
    if (VECTOR > 1 && inside) /* checks the address */
        __ldg(reinterpret_cast<const typename VectorOf<VECTOR>::type *>(from));
    for (int i = 0; i < VECTOR; ++i)
        to[i] = inside ? __ldg(from + i) : real(0);
}
CF_DEVICE void copy_line_async(smem<uint4> to, const uint4 *from) { to[0] = __ldg(from); }
CF_DEVICE void wait_async() {}
#else
template <int VECTOR> CF_DEVICE void copy_async(smem<real> to, const real *from, bool inside) {
    constexpr int BYTES = VECTOR * int(sizeof(real));
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    const int wanted = inside ? BYTES : 0;
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(wanted) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(place), "l"(from), "r"(wanted), "n"(BYTES)
                     : "memory");
}
/* The same for 16 bytes of a cache line of which other warps want the rest. */
CF_DEVICE void copy_line_async(smem<uint4> to, const uint4 *from) {
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
}
CF_DEVICE void wait_async() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#endif
