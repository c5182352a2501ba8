/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor-core instructions beyond mma.cuh, for the GEMM kernels: wgmma, and groups of asynchronous copies.
 * The emulator (CF_SIMT) has functions of the same names. */
#pragma once

#include "fbfft/common/mma.cuh"

#ifdef CF_SIMT
CF_DEVICE void product_commit() {}
template <int PENDING> CF_DEVICE void product_wait() {}
template <class P> CF_DEVICE void wgmma_fence_proxy() {}
CF_DEVICE void wgmma_fence() {}
CF_DEVICE void wgmma_commit_group() {}
template <int TERMS> CF_DEVICE void wgmma_wait_group(float (&)[8][4], unsigned (&)[2][TERMS][4]) {}
CF_DEVICE void wgmma_mma_async(float d[8][4], const unsigned a[4], smem<uint4> b, bool first) {
    const int lane = (int)threadIdx.x % 32;
    for (int n = 0; n < 8; ++n) {
        const unsigned b0 = smem_cast<unsigned>(b + (n * 32 + lane / 4))[lane % 4],
                       b1 = smem_cast<unsigned>(b + (n * 32 + 8 + lane / 4))[lane % 4];
        for (int i = 0; i < 4 && first; ++i)
            d[n][i] = 0;
        mma_m16n8k16(d[n], a, b0, b1);
    }
}
#else
CF_DEVICE void product_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> CF_DEVICE void product_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
/* wgmma, compute capability 9.0: four warps multiply 64 rows by 64 columns. Each warp has 16 rows of A in registers,
 * as for mma_m16n8k16. B is in shared memory: groups of eight columns are 512 bytes apart, units of four words 128
 * bytes. Ordinary stores to B become visible to wgmma when the writers call wgmma_fence_proxy() and then meet at a
 * barrier. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
template <class P> CF_DEVICE void wgmma_fence_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
CF_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
CF_DEVICE void wgmma_mma_async(float (&d)[8][4], const unsigned a[4], smem<uint4> b, bool first) {
    const unsigned long long from = (unsigned)__cvta_generic_to_shared(b) >> 4 & 0x3fff,
                             matrix = from | 128ull >> 4 << 16 | 512ull >> 4 << 32;
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
                 "%11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, "
                 "%31}, {%32, %33, %34, %35}, %36, more, 1, 1, 0;\n}"
                 : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),
                   "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
                   "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]),
                   "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
                   "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]),
                   "+f"(d[7][2]), "+f"(d[7][3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix), "r"((int)!first));
}
CF_DEVICE void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/* The A registers are operands, because the instructions read them until this wait. */
template <int TERMS> CF_DEVICE void wgmma_wait_group(float (&d)[8][4], unsigned (&a)[2][TERMS][4]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;"
                 : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),
                   "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
                   "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]),
                   "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
                   "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]),
                   "+f"(d[7][2]), "+f"(d[7][3]), "+r"(a[0][0][0]), "+r"(a[0][0][1]), "+r"(a[0][0][2]), "+r"(a[0][0][3]),
                   "+r"(a[1][0][0]), "+r"(a[1][0][1]), "+r"(a[1][0][2]), "+r"(a[1][0][3])::"memory");
    if constexpr (TERMS == 2)
        asm volatile(""
                     : "+r"(a[0][TERMS - 1][0]), "+r"(a[0][TERMS - 1][1]), "+r"(a[0][TERMS - 1][2]),
                       "+r"(a[0][TERMS - 1][3]), "+r"(a[1][TERMS - 1][0]), "+r"(a[1][TERMS - 1][1]),
                       "+r"(a[1][TERMS - 1][2]), "+r"(a[1][TERMS - 1][3])::"memory");
}
#else
template <class P> CF_DEVICE void wgmma_fence_proxy(); /* declared only: no kernel for other GPUs calls them */
CF_DEVICE void wgmma_fence();
CF_DEVICE void wgmma_commit_group();
template <int TERMS> CF_DEVICE void wgmma_wait_group(float (&d)[8][4], unsigned (&a)[2][TERMS][4]);
CF_DEVICE void wgmma_mma_async(float (&d)[8][4], const unsigned a[4], smem<uint4> b, bool first);
#endif
#endif
