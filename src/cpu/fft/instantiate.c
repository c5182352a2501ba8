/* SPDX-License-Identifier: Apache-2.0 */
/* One set of kernels: float, then double. The build compiles this file once per instruction set. */
#include "core/arith.h"
#include "core/dtype.h"
#include "cpu/convert.h"
#include "cpu/fft/kernels.h"
#include "cpu/fft/transpose.h"

#include <string.h>

#define CF_INLINE static inline __attribute__((always_inline))
#define CF_PRAGMA(text) _Pragma(#text)
#define CF_SIMD CF_PRAGMA(omp simd)
#if defined(__clang__)
#define CF_UNROLL CF_PRAGMA(unroll)
#else
#define CF_UNROLL CF_PRAGMA(GCC unroll 16)
#endif

/* Vectors of tiles, and the lanes of tiles with one to four vectors: sums and factors fit the registers. */
#define CF_LIST_2(X) X(1) X(2)
#define CF_LIST_3(X) CF_LIST_2(X) X(3)
#define CF_LIST_4(X) CF_LIST_3(X) X(4)
#define CF_LIST_6(X) CF_LIST_4(X) X(5) X(6)
#define CF_LIST_8(X) CF_LIST_6(X) X(7) X(8)
#define CF_LIST_12(X) CF_LIST_8(X) X(9) X(10) X(11) X(12)
#define CF_LIST_14(X) CF_LIST_12(X) X(13) X(14)
#define CF_LIST_16(X) CF_LIST_14(X) X(15) X(16)
#if defined(CF_ISA_AVX512)
#define CF_VECTOR_BYTES 64
#define CF_ONE_VECTOR CF_LIST_16
#define CF_TWO_VECTORS CF_LIST_14
#define CF_THREE_VECTORS CF_LIST_8
#define CF_FOUR_VECTORS CF_LIST_6
#define CF_TILE_LANES 16, 14, 8, 6
#elif defined(CF_ISA_AVX2)
#define CF_VECTOR_BYTES 32
#define CF_ONE_VECTOR CF_LIST_12
#define CF_TWO_VECTORS CF_LIST_6
#define CF_THREE_VECTORS CF_LIST_4
#define CF_FOUR_VECTORS CF_LIST_2
#define CF_TILE_LANES 12, 6, 4, 2
#elif defined(__aarch64__)
#define CF_VECTOR_BYTES 16
#define CF_ONE_VECTOR CF_LIST_16
#define CF_TWO_VECTORS CF_LIST_12
#define CF_THREE_VECTORS CF_LIST_8
#define CF_FOUR_VECTORS CF_LIST_6
#define CF_TILE_LANES 16, 12, 8, 6
#else
#define CF_VECTOR_BYTES 16
#define CF_ONE_VECTOR CF_LIST_12
#define CF_TWO_VECTORS CF_LIST_6
#define CF_THREE_VECTORS CF_LIST_3
#define CF_FOUR_VECTORS CF_LIST_2
#define CF_TILE_LANES 12, 6, 3, 2
#endif

/* A compiler may load a number again for each use. Two cache lines have to be read for most unaligned vectors, so
 * that takes longer than the products. */
#if defined(__x86_64__)
#define CF_IN_REGISTER(vector) __asm__("" : "+v"(vector))
#elif defined(__aarch64__)
#define CF_IN_REGISTER(vector) __asm__("" : "+w"(vector))
#else
#define CF_IN_REGISTER(vector) (void)(vector)
#endif

/* Copy whole, aligned cache lines (64 bytes) to memory, bypassing the caches if the instruction set can. */
static inline void stream_lines(void *to, const void *from, size_t bytes) {
#if defined(__SSE2__)
    for (size_t i = 0; i < bytes; i += 16)
        _mm_stream_si128((__m128i *)((char *)to + i), _mm_loadu_si128((const __m128i *)((const char *)from + i)));
#else
    memcpy(to, from, bytes);
#endif
}

/* Must be called before another thread reads streamed data. */
static inline void stream_end(void) {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#define CF_REAL float
#define CF_BLOCK 4
#define CF_WIDE CF_WIDE_LANES
#define CF_FN(name) cf_##name##_f32
#include "cpu/fft/kernels.inc"
#include "cpu/gemm/gemm_tiles.inc"
#undef CF_REAL
#undef CF_BLOCK
#undef CF_WIDE
#undef CF_FN

#define CF_REAL double
#define CF_BLOCK 2
#define CF_WIDE 2
#define CF_REAL_IS_DOUBLE
#define CF_FN(name) cf_##name##_f64
#include "cpu/fft/kernels.inc"
#undef CF_REAL
#undef CF_FN

#define cf_few_rows_f64 NULL
#define CF_REAL_TABLE(type)                                                                                           \
    {                                                                                                                 \
        .forward = cf_forward_##type, .inverse = cf_inverse_##type, .load = cf_load_##type, .store = cf_store_##type, \
        .product = cf_product_##type, .few_rows = cf_few_rows_##type, .tiles = &cf_tiles_##type                       \
    }

#if defined(CF_ISA_AVX512)
const cf_kernels cf_kernels_avx512 = {.name = "AVX-512", .f32 = CF_REAL_TABLE(f32), .f64 = CF_REAL_TABLE(f64)};
#elif defined(CF_ISA_AVX2)
const cf_kernels cf_kernels_avx2 = {.name = "AVX2", .f32 = CF_REAL_TABLE(f32), .f64 = CF_REAL_TABLE(f64)};
#else
const cf_kernels cf_kernels_generic = {.name = "baseline", .f32 = CF_REAL_TABLE(f32), .f64 = CF_REAL_TABLE(f64)};
#endif
