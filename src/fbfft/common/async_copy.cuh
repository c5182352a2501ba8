/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between global memory and a block's shared memory, of pieces that are whole 16-byte units: through
 * registers, and by TMA bulk copies.
 *
 * In global memory the pieces follow one another. In shared memory piece i is at byte place(i). */
#pragma once

#include "fbfft/common/complex.cuh"

/* Copies PIECES pieces of BYTES bytes from `from` to shared memory. The T threads of the block share the work. Each
 * issues up to 16 loads before its first store. Only the first `pieces` exist; the others become zero. Full blocks do
 * not test that, and all other conditions are constants: a branch around each load would make the loads wait for one
 * another. */
template <int T, int PIECES, int BYTES, bool FULL, class F>
CF_DEVICE void copy_in_as(smem<char> to, F place, const char *from, int pieces) {
    constexpr int QUADS = BYTES / 16, ALL = PIECES * QUADS, EACH = (ALL + T - 1) / T, BATCH = EACH < 16 ? EACH : 16;
#pragma unroll
    for (int first = 0; first < EACH; first += BATCH) {
        float4 q[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
            const int n = (first + i) * T + (int)threadIdx.x;
            q[i] = make_float4(0, 0, 0, 0);
            if ((ALL % T == 0 ? first + i < EACH : n < ALL) && (FULL || n < pieces * QUADS))
                q[i] = __ldcs(reinterpret_cast<const float4 *>(from) + n);
        }
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
            const int n = (first + i) * T + (int)threadIdx.x;
            if (ALL % T == 0 ? first + i < EACH : n < ALL)
                smem_cast<float4>(to + (place(n / QUADS) + n % QUADS * 16))[0] = q[i];
        }
    }
}
template <int T, int PIECES, int BYTES, class F>
CF_DEVICE void copy_in(smem<char> to, F place, const char *from, int pieces) {
    if (pieces == PIECES)
        copy_in_as<T, PIECES, BYTES, true>(to, place, from, pieces);
    else
        copy_in_as<T, PIECES, BYTES, false>(to, place, from, pieces);
}

/* The same from shared memory to global memory. */
template <int T, int PIECES, int BYTES, class F>
CF_DEVICE void copy_out(char *to, smem<char> from, F place, int pieces) {
    constexpr int QUADS = BYTES / 16, ALL = PIECES * QUADS, EACH = (ALL + T - 1) / T;
    if (pieces == PIECES) {
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const int n = i * T + (int)threadIdx.x;
            if (ALL % T == 0 || n < ALL)
                __stcs(reinterpret_cast<float4 *>(to) + n,
                       smem_cast<float4>(from + (place(n / QUADS) + n % QUADS * 16))[0]);
        }
    } else {
        for (int n = (int)threadIdx.x; n < pieces * QUADS; n += T)
            __stcs(reinterpret_cast<float4 *>(to) + n,
                   smem_cast<float4>(from + (place(n / QUADS) + n % QUADS * 16))[0]);
    }
}

/* Reads N reals from shared memory. ALIGNED: they start at a multiple of 16 bytes if N is a multiple of four,
 * otherwise at a multiple of two reals. */
template <int N, bool ALIGNED> CF_DEVICE void read_reals(float *to, smem<float> from) {
    if constexpr (ALIGNED && N % 4 == 0) {
#pragma unroll
        for (int i = 0; i < N / 4; ++i) {
            const float4 a = smem_cast<float4>(from)[i];
            to[4 * i] = a.x;
            to[4 * i + 1] = a.y;
            to[4 * i + 2] = a.z;
            to[4 * i + 3] = a.w;
        }
    } else if constexpr (ALIGNED && N % 2 == 0) {
#pragma unroll
        for (int i = 0; i < N / 2; ++i) {
            const float2 a = smem_cast<float2>(from)[i];
            to[2 * i] = a.x;
            to[2 * i + 1] = a.y;
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i)
            to[i] = from[i];
    }
}

#if !defined(CF_SIMT)
/* The same as copy_in() by TMA bulk copies (compute capability 9.0): one instruction moves a piece, and an mbarrier
 * (8 bytes of shared memory at `barrier`) counts the bytes. All threads of the block must call this. It returns when
 * all pieces have arrived. */
template <int PIECES, int BYTES, class F>
CF_DEVICE void tma_load_chunks(smem<char> to, F place, const char *from, int pieces, smem<char> barrier) {
    const unsigned bar = (unsigned)__cvta_generic_to_shared(barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(pieces * BYTES) : "memory");
    }
    if (threadIdx.x < 32) {
        __syncwarp();
        for (int i = (int)threadIdx.x; i < pieces; i += 32) {
            asm volatile(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                    (unsigned)__cvta_generic_to_shared(to + place(i))),
                "l"(from + (long long)i * BYTES), "r"(BYTES), "r"(bar)
                : "memory");
        }
    }
    __syncthreads();
    asm volatile("{\n.reg .pred arrived;\nWAIT:\nmbarrier.try_wait.parity.shared.b64 arrived, [%0], 0;\n"
                 "@!arrived bra WAIT;\n}" ::"r"(bar)
                 : "memory");
}
#endif
