/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales of spectra that the transforms of matrix.cuh find themselves. CLUSTER: so many blocks have the planes of a row of the spectrum, and find its
 * scale together: a plane's from its numbers, before its rows are multiplied, and the row's, the least of them, before bins are stored. 0:
 * find_factors() makes them of what another kernel found.
 */
#pragma once

#include "fbfft/kernels/matrix_rows.cuh"

#ifdef CF_SIMT
CF_DEVICE unsigned larger_halves(unsigned a, unsigned b) {
    const cplx x = unpack_halves(a), y = unpack_halves(b);
    return pack_halves(fmaxf(x.x, y.x), fmaxf(x.y, y.y));
}
CF_DEVICE void matrix_pair_barrier() { __syncthreads(); }
#else
/* Of both halves of a word; a NaN is not larger. */
CF_DEVICE unsigned larger_halves(unsigned a, unsigned b) {
    unsigned w;
    asm("max.f16x2 %0, %1, %2;" : "=r"(w) : "r"(a), "r"(b));
    return w;
}
/* Of a warp of even number and the next one. */
CF_DEVICE void matrix_pair_barrier() { asm volatile("bar.sync %0, 64;" ::"r"(1 + int(threadIdx.x) / 64) : "memory"); }
/* Blocks of a cluster meet, and read what another one has in its shared memory. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
template <int> CF_DEVICE void matrix_cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
template <int> CF_DEVICE void matrix_cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
template <int> CF_DEVICE float matrix_cluster_read(smem<float> own, int block) {
    float v;
    asm volatile("{\n.reg .b32 at;\nmapa.shared::cluster.u32 at, %1, %2;\nld.shared::cluster.f32 %0, [at];\n}"
                 : "=f"(v)
                 : "r"((unsigned)__cvta_generic_to_shared(own)), "r"(block)
                 : "memory");
    return v;
}
#endif
#endif
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 900
template <int> CF_DEVICE void matrix_cluster_arrive(); /* no kernel for other GPUs calls them */
template <int> CF_DEVICE void matrix_cluster_wait();
template <int> CF_DEVICE float matrix_cluster_read(smem<float> own, int block);
#endif

/* The largest magnitude of a lane's numbers. What is no number does not count, but that infinities are larger than others. */
template <class K> CF_DEVICE float matrix_largest(const MatrixRow<K, true> (&rows)[Matrix<K>::LIVE]) {
    float most = 0;
#pragma unroll
    for (int r = 0; r < Matrix<K>::LIVE; ++r)
#pragma unroll
        for (int i = 0; i < Matrix<K>::N2 / 4; ++i)
            most = fmaxf(most, fabsf(rows[r].of[i / 8][i % 8]));
    return most;
}
template <class K> CF_DEVICE float matrix_largest(const MatrixRow<K, false> (&rows)[Matrix<K>::LIVE]) {
    unsigned most = 0;
#pragma unroll
    for (int r = 0; r < Matrix<K>::LIVE; ++r)
#pragma unroll
        for (int i = 0; i < Matrix<K>::N2 / 8; ++i)
            most = larger_halves(most, rows[r].of[i / 4][i % 4] & 0x7fff7fffu);
    const cplx both = unpack_halves(most);
    return fmaxf(both.x, both.y);
}

/* The exponent, as FP32 has it, of the factor of bins under this magnitude, as in find_factors(). */
template <class K> CF_DEVICE unsigned matrix_exponent(float largest) {
    constexpr int TOP = 15;
    const int least = K::Storage::PLAIN ? 27 : 103; /* of numbers that have scales of FP32, or of FP16's smallest one */
    const int magnitude = max(int(__float_as_uint(largest) >> 23), least) - 126;
    return unsigned(max(127 + TOP - Matrix<K>::SUM - magnitude, 1));
}
CF_DEVICE float matrix_power(unsigned exponent) { return __uint_as_float(exponent << 23); }

/* The largest of a plane, whose halves neighbouring warps have; it is left for the block. */
template <class K> CF_DEVICE float matrix_meet(smem<float> halves, int task, float most) {
    for (int other = 16; other > 0; other /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, other));
    if (threadIdx.x % 32 == 0)
        halves[task] = most;
    matrix_pair_barrier();
    return fmaxf(most, halves[task ^ 1]);
}

/* The exponent of the row's factor, in every thread. The first block notes what undoes it. */
template <class K, int CLUSTER> CF_DEVICE unsigned matrix_row_exponent(smem<float> halves, const TileCall &call) {
    const int lane = int(threadIdx.x) % 32;
    float most = halves[lane % 16];
    for (int other = 8; other > 0; other /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, other));
    if constexpr (CLUSTER > 1) {
        if (threadIdx.x == 0)
            halves[16] = most;
        matrix_cluster_arrive<CLUSTER>();
        matrix_cluster_wait<CLUSTER>();
        most = matrix_cluster_read<CLUSTER>(halves + 16, lane % CLUSTER);
        for (int other = 16; other > 0; other /= 2)
            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, other));
        matrix_cluster_arrive<CLUSTER>(); /* waited for at the end, for until then others read here */
    }
    const unsigned exponent = matrix_exponent<K>(most);
    if (threadIdx.x == 0 && blockIdx.x % CLUSTER == 0) {
        const long long row = call.row_first + (long long)blockIdx.x * K::P / call.columns * call.row_step;
        call.scales[(long long)blockIdx.y * call.scale_group_stride + row - call.row_base] =
            matrix_power(254 - exponent);
    }
    return exponent;
}
