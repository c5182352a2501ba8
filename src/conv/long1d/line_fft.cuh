/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a line's transform, in shared memory (line_geometry.cuh):
 *
 *     first_forward()       step 1: reads the line from memory
 *     middle_forward()      barrier; step 2 of three
 *     task_forward()        one task of the last step; its bins stay in registers
 *     task_backward()       the first inverse step of the same task
 *     middle_backward()     step 2 of three; barrier
 *     last_backward()       the last inverse step, whose results go to memory
 *
 * Between the two barriers, each warp has whole rows p1 of its own, so only these two barriers are for the whole
 * block.
 *
 *     spectra               [p3 / 2][p1][p2][p3 % 2]; no other kernel reads them
 */
#pragma once

#include "conv/long1d/line_geometry.cuh"
#include "conv/long1d/root_tables.cuh"

/* COUNT neighbouring complex numbers in shared memory, two at a time. */
template <int COUNT> CF_DEVICE void get_row(cplx *v, smem<cplx> from) {
    unroll<0, COUNT / 2>([&](auto i) {
        const float4 q = smem_cast<float4>(from)[int(i)];
        v[2 * i] = {q.x, q.y};
        v[2 * i + 1] = {q.z, q.w};
    });
}
template <int COUNT> CF_DEVICE void put_row(smem<cplx> to, const cplx *v) {
    unroll<0, COUNT / 2>([&](auto i) {
        smem_cast<float4>(to)[int(i)] = make_float4(v[2 * i].x, v[2 * i].y, v[2 * i + 1].x, v[2 * i + 1].y);
    });
}

/* Step 1. COLUMN (line_io.cuh) reads the points of a task from `line`. */
template <class K, class COLUMN, class LINE> CF_DEVICE void first_forward(smem<cplx> z, int t, LINE line) {
    typedef Long1d<K> G;
#pragma unroll
    for (int i = 0; i < G::FIRST_EACH; ++i) {
        const int m = t + i * G::T;
        const COLUMN column(line, m);
        cplx v[G::R1];
        unroll<0, G::R1>([&](auto a) { v[a] = column.template get<decltype(a)::value>(); });
        quarter_tree<G::R1, COLUMN::REAL>(v);
        smem<cplx> at = z + G::place(0, m);
        unroll<0, G::R1>([&](auto p) { at[p * G::MP] = v[p]; });
    }
}

/* v exp(-i pi A / 2 R) */
template <int A, int R> CF_DEVICE cplx twiddled(cplx v) {
    constexpr real c = real(cf_cos(A, 4 * R)), s = real(cf_sin(A, 4 * R));
    return {c * v.x + s * v.y, c * v.y - s * v.x};
}
/*
 * Brings the results of the last inverse tree into their order in time, and multiplies each by its part of the
 * offset: see TwiddleTable.
 */
template <int R> CF_DEVICE void twiddle_all(cplx *u, const cplx *v) {
    unroll<0, R>([&](auto p) {
        constexpr int A = cf_reversed(decltype(p)::value, R);
        u[A] = twiddled<A, R>(v[p]);
    });
}
/* The last inverse step, by THREADS threads. Calls put(m, v): points M a + m of the result are v[a]. */
template <class K, int THREADS = K::T, class F> CF_DEVICE void last_backward(smem<cplx> z, int t, F put) {
    typedef Long1d<K> G;
    typedef TwiddleTable<G::M, G::R1> Roots;
    static_assert(G::M % THREADS == 0 || G::M < THREADS, "threads share the work evenly, or some have none");
#pragma unroll
    for (int i = 0; i < (G::M + THREADS - 1) / THREADS; ++i) {
        const int m = t + i * THREADS;
        if (G::M < THREADS && m >= G::M)
            return;
        const float4 *const from = as_quads(cf_twiddle_table<G::M, G::R1>) + m;
        const float4 q = __ldg(from + (Roots::COUNT / 2 - 1) * G::M);
        const cplx twiddle = {q.x, q.y};
        const LoadedRoots<G::R1, true, Roots::LATE> late(from, G::M);
        LoadedRoots<G::R1, true> roots;
        unroll<0, Roots::LATE>([&](auto e) { roots.w[e] = late.w[e] * twiddle; });
        roots.template load<Roots::LATE, Roots::STORED>(from + Roots::LATE / 2 * G::M, G::M);
        roots.deepen();
        smem<cplx> at = z + G::place(0, m);
        cplx v[G::R1], u[G::R1];
        unroll<0, G::R1>([&](auto p) { v[cf_reversed(decltype(p)::value, G::R1)] = at[p * G::MP]; });
        v[0] = v[0] * twiddle;
        tree<G::R1, true>(v, roots, late);
        twiddle_all<G::R1>(u, v);
        put(m, u);
    }
}

/* The i-th task of a thread in the last step. A warp has the tasks of R1 / WARPS whole rows p1. */
template <class K, int WARPS> CF_DEVICE int task_of(int thread, int i) {
    static_assert(!Long1d<K>::THREE || K::R1 % WARPS == 0, "warps have whole rows");
    return thread / 32 * (Long1d<K>::TASKS / WARPS) + thread % 32 + i * 32;
}
/*
 * Step 2 of three, in place. Its tasks are (p1, c). A warp works on LINES lines at a time, which are SIZE apart. A
 * thread with several tasks takes two neighbouring ones at once (VECTOR), which have the same roots in the forward
 * direction.
 */
template <class K, int WARPS, int LINES, bool INVERSE> CF_DEVICE void middle_step(smem<cplx> z, int thread) {
    typedef Long1d<K> G;
    constexpr int R = G::R2, C = G::R3, LANES = 32 / LINES, ROWS = G::R1 / WARPS, EACH = ROWS * C / LANES,
                  VECTOR = EACH % 2 ? 1 : 2, OF_ROW = C / VECTOR;
#pragma unroll
    for (int i = 0; i < EACH / VECTOR; ++i) {
        const int n = thread % LANES + i * LANES, p1 = thread / 32 * ROWS + n / OF_ROW, c = n % OF_ROW * VECTOR;
        smem<cplx> at = z + (thread % 32 / LANES * G::SIZE + p1 * G::MP + c);
        cplx v[VECTOR][R];
        unroll<0, R>([&](auto p) {
            constexpr int TO = INVERSE ? cf_reversed(decltype(p)::value, R) : decltype(p)::value;
            if constexpr (VECTOR == 2) {
                const float4 q = smem_cast<float4>(at + p * G::CP)[0];
                v[0][TO] = {q.x, q.y};
                v[VECTOR - 1][TO] = {q.z, q.w};
            } else {
                v[0][TO] = at[p * G::CP];
            }
        });
        if constexpr (INVERSE) {
            const float4 *const from = as_quads(cf_backward_roots<C, R>) + c;
            unroll<0, VECTOR>([&](auto w) {
                const LoadedRoots<R, true> roots(from + int(w), C);
                tree<R, true>(v[w], roots, roots);
            });
        } else {
            const LoadedRoots<R, false> roots(as_quads(cf_forward_roots<1, G::R1, R>) + p1, G::R1);
            unroll<0, VECTOR>([&](auto w) { tree<R, false>(v[w], roots, roots); });
        }
        unroll<0, R>([&](auto p) {
            constexpr int TO = INVERSE ? cf_reversed(decltype(p)::value, R) : decltype(p)::value;
            if constexpr (VECTOR == 2)
                smem_cast<float4>(at + TO * G::CP)[0] =
                    make_float4(v[0][p].x, v[0][p].y, v[VECTOR - 1][p].x, v[VECTOR - 1][p].y);
            else
                at[TO * G::CP] = v[0][p];
        });
    }
}

/* One task of the last forward step: v gets its bins, in their order in spectra. */
template <class K> CF_DEVICE void task_forward(cplx *v, smem<cplx> z, int task) {
    typedef Long1d<K> G;
    const LoadedRoots<G::LAST, false> roots(
        as_quads(cf_forward_roots < G::THREE ? G::R1 : 1, G::THREE ? G::R2 : G::R1, G::LAST >) + task, G::TASKS);
    get_row<G::LAST>(v, z + G::row(task));
    tree<G::LAST, false>(v, roots, roots);
}
/* The first inverse step of a task. FIRST_LEVEL = 2: the caller has done the first level of the tree. */
template <class K, int FIRST_LEVEL = 1> CF_DEVICE void task_backward(smem<cplx> z, const cplx *bins, int task) {
    typedef Long1d<K> G;
    constexpr int R = G::LAST;
    cplx v[R], u[R];
    unroll<0, R>([&](auto p) { v[cf_reversed(decltype(p)::value, R)] = bins[p]; });
    const PlainRoots roots;
    tree<R, true, FIRST_LEVEL>(v, roots, roots);
    unroll<0, R>([&](auto p) { u[cf_reversed(decltype(p)::value, R)] = v[p]; });
    put_row<R>(z + G::row(task), u);
}

/* Where pair q of a task's bins is in a spectrum, in pairs. */
template <class K> CF_DEVICE int spectrum_place(int q, int task) { return q * Long1d<K>::TASKS + task; }
template <class K> CF_DEVICE void put_bins(cplx *spectrum, const cplx *v, int task) {
    unroll<0, Long1d<K>::LAST / 2>([&](auto q) {
        reinterpret_cast<float4 *>(spectrum)[spectrum_place<K>(q, task)] =
            make_float4(v[2 * q].x, v[2 * q].y, v[2 * q + 1].x, v[2 * q + 1].y);
    });
}

/* All that is between the first and the last step, with its barriers; then the same of the inverse. */
template <class K, int WARPS = K::T / 32, int LINES = 1> CF_DEVICE void middle_forward(smem<cplx> z, int thread) {
    if constexpr (LINES * K::T > 32)
        __syncthreads();
    else
        __syncwarp();
    if constexpr (Long1d<K>::THREE) {
        middle_step<K, WARPS, LINES, false>(z, thread);
        __syncwarp();
    }
}
template <class K, int WARPS = K::T / 32> CF_DEVICE void middle_backward(smem<cplx> z, int thread) {
    __syncwarp();
    if constexpr (Long1d<K>::THREE)
        middle_step<K, WARPS, 1, true>(z, thread);
    if constexpr (WARPS > 1)
        __syncthreads();
    else
        __syncwarp();
}
