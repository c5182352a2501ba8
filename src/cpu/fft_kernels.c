/* SPDX-License-Identifier: Apache-2.0 */
/* One set of kernels: float, then double. The build compiles this file once per instruction set. */
#include "core/arith.h"
#include "core/dtype.h"
#include "cpu/convert.h"
#include "cpu/kernels.h"

#include <string.h>

#define CF_INLINE static inline __attribute__((always_inline))
#define CF_PRAGMA(text) _Pragma(#text)
#define CF_SIMD CF_PRAGMA(omp simd)

#define CF_REAL float
#define CF_FN(name) cf_##name##_f32
#include "cpu/fft_kernels.inc"
#undef CF_REAL
#undef CF_FN

#define CF_REAL double
#define CF_REAL_IS_DOUBLE
#define CF_FN(name) cf_##name##_f64
#include "cpu/fft_kernels.inc"
#undef CF_REAL
#undef CF_FN

#define CF_REAL_TABLE(type)                                                                                            \
    {                                                                                                                  \
        .forward = cf_forward_##type, .inverse = cf_inverse_##type, .load = cf_load_##type, .store = cf_store_##type,  \
        .product = cf_product_##type                                                                                   \
    }

#if defined(CF_ISA_AVX512)
const cf_kernels cf_kernels_avx512 = {.name = "AVX-512", .f32 = CF_REAL_TABLE(f32), .f64 = CF_REAL_TABLE(f64)};
#elif defined(CF_ISA_AVX2)
const cf_kernels cf_kernels_avx2 = {.name = "AVX2", .f32 = CF_REAL_TABLE(f32), .f64 = CF_REAL_TABLE(f64)};
#else
const cf_kernels cf_kernels_generic = {.name = "baseline", .f32 = CF_REAL_TABLE(f32), .f64 = CF_REAL_TABLE(f64)};
#endif
