/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels need from their platform. The platform is CUDA compiled by NVRTC, or the emulator in
 * tests/emulator (CF_SIMT). */
#pragma once

#ifdef CF_SIMT
#include <simt.h>
#else
/* A pointer to shared memory. The emulator has a class of the same name that checks every access. */
template <class T> using smem = T *;
template <class U, class T> __device__ __forceinline__ U *smem_cast(T *p) { return reinterpret_cast<U *>(p); }
template <class T> __device__ __forceinline__ T *cf_dynamic_shared() {
    extern __shared__ float4 cf_shared_memory[];
    return reinterpret_cast<T *>(cf_shared_memory);
}
#endif

/* A function of a kernel, which the compiler inlines. If it is forced to, it simplifies each copy of a function, not
 * the function before it is copied, and kernels with lines of 60 or 64 points take up to a third longer to compile.
 * Kernels of long signals are faster if it is forced to (CF_FORCE_INLINE). */
#ifdef CF_FORCE_INLINE
#define CF_DEVICE __device__ __forceinline__
#else
#define CF_DEVICE __device__ inline
#endif
/* A function that is not inlined: its values occupy registers only while it runs. */
#ifdef CF_SIMT
#define CF_APART CF_DEVICE
#else
#define CF_APART __device__ __noinline__
#endif

/* The head of a kernel whose blocks have so many threads. A multiprocessor must have registers for BLOCKS blocks. */
#define CF_KERNEL(THREADS, BLOCKS) extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)

/*
 * Programmatic dependent launch (PDL), on GPUs of compute capability 9.0. PDL wait, the first statement of a kernel:
 * the kernel launched before has ended, and its results are visible. Kernels that wait may be launched before that one
 * ends (cf_source.pdl_wait). This hides about a microsecond of each launch.
 */
CF_DEVICE void cf_pdl_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/*
 * PDL trigger, after the wait: the next kernel, if it waits itself, may begin as soon as all blocks of this kernel have
 * begun, and run beside them. Until it waits, it must not use results of this kernel. Results of earlier kernels are
 * visible.
 */
CF_DEVICE void cf_pdl_trigger() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* unroll<B, E>(f) calls f(Int<B>{}), ..., f(Int<E - 1>{}): a loop whose index is a constant, so that arrays stay in
 * registers and twiddles become immediate operands. */
template <int I> struct Int {
    static constexpr int value = I;
    __host__ __device__ constexpr operator int() const { return I; }
};
template <int... I> struct Ints {};
template <int N, int... I> struct CountInts : CountInts<N - 1, N - 1, I...> {};
template <int... I> struct CountInts<0, I...> { typedef Ints<I...> type; };
template <int B, class F, int... I> CF_DEVICE void unroll_each(const F &f, Ints<I...>) { (f(Int<B + I>{}), ...); }
template <int B, int E, class F> CF_DEVICE void unroll(const F &f) {
    unroll_each<B>(f, typename CountInts<(E > B ? E - B : 0)>::type{});
}

__host__ __device__ constexpr int cf_max_of(int a, int b) { return a > b ? a : b; }
__host__ __device__ constexpr int cf_min_of(int a, int b) { return a < b ? a : b; }
