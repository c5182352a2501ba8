/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the threads of a block share the last forward FFT step in kernels that keep spectra or sums in registers.
 *
 * A thread has the same tasks of this step in each of several planes. These are also the tasks of the first inverse
 * step. So one bin of the weights that the thread reads serves all of these planes, and no spectrum moves between
 * threads.
 *
 *     threads     | set 0: TASKS threads | set 1: TASKS threads | ...
 *     planes      set s has planes s, s + SETS, s + 2 SETS, ...
 *
 * With one set, a thread may have several tasks (TIMES) of each plane.
 *
 * An interval is what a block does between two barriers. It takes as long as the warp with most work. So single threads
 * that serve the whole block are in the last warp, which has no products, and tasks of a second kind in an interval
 * begin with the threads that have none of the first kind.
 */
#pragma once

#include "conv/fused/load_store.cuh"
#include "conv/fused/products.cuh"

/*
 * Another order of the column tasks: sixteen neighbouring threads get sixteen columns that begin at a multiple of
 * sixteen. Where the radix of the rows' first step is a multiple of sixteen, such columns have no bank conflicts.
 * The remaining columns come last.
 */
template <class K> CF_DEVICE int aligned_task(int i, int tasks) {
    typedef PlaneGeometry<K> G;
    constexpr int COLUMNS = G::COLUMNS, ALIGNED = COLUMNS / 16 * 16, REST = COLUMNS - ALIGNED;
    if constexpr (REST == 0 || ALIGNED == 0 || G::O2::A % 16 != 0) {
        return i;
    } else {
        const int all = tasks / COLUMNS * ALIGNED, j = i - all;
        return i < all ? i / ALIGNED * COLUMNS + i % ALIGNED : j / REST * COLUMNS + ALIGNED + j % REST;
    }
}

/* Tells the compiler that 0 <= n < LIMIT. Divisions by constants are shorter then. */
template <int LIMIT> CF_DEVICE int below(int n) {
#ifndef CF_SIMT
    __builtin_assume(n >= 0 && n < LIMIT);
#endif
    return n;
}

/* This thread's lane in the last warp; negative in other warps. */
template <class K> CF_DEVICE int in_last_warp() { return int(threadIdx.x) - (K::T - 32); }

/*
 * This thread's first task in an interval where the first OTHERS threads, counted round the block, have a task of
 * another kind.
 */
template <int T, int OTHERS> CF_DEVICE int first_behind() {
    const int n = int(threadIdx.x) - (OTHERS + 31) / 32 * 32 % T;
    return n < 0 ? n + T : n;
}

/* The step along axis 1 in the order of aligned_task(), in an interval with OTHERS tasks of another kind. */
template <class K, bool INVERSE, int OTHERS = 0> CF_DEVICE void aligned_columns(smem<cplx> z) {
    typedef ColumnTask<K, 1, 1> Task;
#pragma unroll 1
    for (int n = first_behind<K::T, OTHERS>(); n < Task::COUNT; n += K::T) {
        const Task task(z, below<Task::COUNT>(aligned_task<K>(below<Task::COUNT>(n), Task::COUNT)));
        cplx v[Task::POINTS];
        if constexpr (INVERSE)
            get_points(v, task);
        else
            get_column(v, task);
        transform_column<INVERSE>(v, task);
        if constexpr (INVERSE)
            put_column(v, task);
        else
            put_points(v, task);
    }
}

/* The tasks of a thread: TIMES tasks of each of PLANES planes, EACH in all. */
template <class F, class X = typename F::X> struct Resident {
    typedef Fused<F> U;
    typedef ColumnTask<X, U::AXIS, U::STEPS> Task;
    typedef typename Task::O O;
    static_assert(U::AXIS < 2, "lines alone have pairs of bins");
    static constexpr int R = Task::S::R, TASKS = Task::COUNT / X::P, T = X::T;
    static constexpr int SETS = T < 2 * TASKS ? 1 : T / TASKS < X::P ? T / TASKS : X::P;
    static constexpr int TIMES = (TASKS + T - 1) / T, PLANES = (X::P + SETS - 1) / SETS, EACH = TIMES * PLANES;
    static constexpr bool ALL = SETS == 1 ? TASKS % T == 0 : SETS * TASKS == T;
    static constexpr int BUSY = SETS * TASKS; /* tasks that are counted against the threads of an interval */
    int set, first;
    CF_DEVICE Resident() : set(SETS == 1 ? 0 : int(threadIdx.x) / TASKS), first(int(threadIdx.x) - set * TASKS) {}
    /* Calls f(i, n) for the i-th task of this thread, which is task n of a plane in the order of aligned_task(). */
    template <class A> CF_DEVICE void each_task(A f) const {
        unroll<0, TIMES>([&](auto i) {
            const int n = first + i * T;
            if (ALL || (SETS == 1 ? n < TASKS : set < SETS))
                f(i, below<TASKS>(aligned_task<X>(below<TASKS>(n), TASKS)));
        });
    }
    /* Calls g(q, p) for the q-th plane of this thread, which is plane p of the block. */
    template <class A> CF_DEVICE void each_plane(A g) const {
        unroll<0, PLANES>([&](auto q) {
            if (X::P % SETS == 0 || set + q * SETS < X::P)
                g(q, set + q * SETS);
        });
    }
    /* Task n of plane p. */
    static CF_DEVICE Task task(smem<cplx> z, int p, int n) { return Task(z + p * PlaneGeometry<X>::PLANE, n); }
    /* Distance between the bins of neighbouring registers. */
    static CF_DEVICE int gap() { return int(Task::bin_gap(1)); }
};

/* sum += a w, or a conj(w), as four multiply-adds. */
template <bool CONJUGATE> CF_DEVICE void add_product(cplx &sum, cplx a, cplx w) {
    sum.x += a.x * w.x;
    sum.y += a.y * w.x;
    sum.x -= a.y * (CONJUGATE ? -w.y : w.y);
    sum.y += a.x * (CONJUGATE ? -w.y : w.y);
}

/* The last forward step of a task: reads its points from shared memory, and leaves its bins in v. */
template <class M> CF_DEVICE void last_step(cplx *v, const typename M::Task &task) {
    get_column(v, task);
    transform_column<false>(v, task);
}
/* The first inverse step of task n of plane p: from the bins in v to shared memory. */
template <class M, class F> CF_DEVICE void first_back(cplx *v, smem<cplx> z, int p, int n) {
    const typename M::Task task = M::task(z, p, n);
    transform_column<true>(v, task);
    put_back<F>(z + p * PlaneGeometry<typename F::X>::PLANE, task, v);
}
