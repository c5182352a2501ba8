/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels need from their platform: CUDA by NVRTC, or the emulator of tests/simt (CF_SIMT). */
#pragma once

#ifdef CF_SIMT
#include <simt.h>
#else
/* A pointer into shared memory. The emulator has a class of the same name that checks every access. */
template <class T> using smem = T *;
template <class U, class T> __device__ __forceinline__ U *smem_cast(T *p) { return reinterpret_cast<U *>(p); }
template <class T> __device__ __forceinline__ T *cf_dynamic_shared() {
    extern __shared__ float4 cf_shared_memory[];
    return reinterpret_cast<T *>(cf_shared_memory);
}
#endif

#define CF_DEVICE __device__ __forceinline__

/* f(Int<B>{}), ..., f(Int<E - 1>{}): a loop whose index is a constant, so that arrays stay in registers and twiddles
 * become immediates. */
template <int I> struct Int {
    static constexpr int value = I;
    __host__ __device__ constexpr operator int() const { return I; }
};
template <int B, int E, class F> CF_DEVICE void unroll(F f) {
    if constexpr (B < E) {
        f(Int<B>{});
        unroll<B + 1, E>(f);
    }
}

__host__ __device__ constexpr int cf_max_of(int a, int b) { return a > b ? a : b; }
