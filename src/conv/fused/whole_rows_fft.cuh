/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The FFT along axis 2 of planes with two FFT steps along rows, between the staging area of whole_rows.cuh and the
 * planes in shared memory.
 *
 *     forward     lines_from_rows()         first step: reads staged rows, writes the plane
 *                 step_of_lines<2>()        second step, in the plane
 *     inverse     step_of_lines<2>()        step 2, done first, in the plane
 *                 lines_to_rows()           step 1, done last: reads the plane, adds bias and old values, writes
 *                 staged rows
 *
 * A complex line holds two neighbouring rows: row 2 r is its real part, row 2 r + 1 its imaginary part.
 */
#pragma once

#include "conv/fused/packed_words.cuh"
#include "conv/fused/whole_rows.cuh"

/*
 * Task n of an FFT step along axis 2. 32 neighbouring threads have eight lines times four tasks (SIDE), to avoid
 * bank conflicts.
 */
template <class K, int STEP> struct LineTask {
    typedef PlaneGeometry<K> G;
    typedef typename G::O2 O;
    typedef Step<O, STEP> S;
    static constexpr int LINES = K::P * G::DR, GROUPS = (LINES + 7) / 8, TASKS = S::TASKS,
                         SIDE = TASKS % 4 == 0   ? 4
                                : TASKS % 2 == 0 ? 2
                                                 : 1,
                         COUNT = 8 * GROUPS * TASKS;
    int line, t, p, row; /* row: a pair of rows */
    bool exists;
    CF_DEVICE LineTask(int n)
        : line(n % 8 + n / (8 * SIDE) % GROUPS * 8), t(n / 8 % SIDE + n / (8 * SIDE * GROUPS) * SIDE), p(line / G::DR),
          row(line % G::DR + G::ROW_LO), exists(LINES % 8 == 0 || line < LINES) {}
    CF_DEVICE smem<cplx> place(smem<cplx> z) const { return z + (p * G::PLANE + row * G::PITCH + S::start(t)); }
    /* Where the first row of the pair is staged, in elements. */
    CF_DEVICE int waits() const {
        return p * int(WholeRows<K>::SIZE) + (2 * row - G::template lo<1>()) * WholeRows<K>::WIDTH;
    }
    /* Whether the window has row h of the pair. */
    CF_DEVICE bool has(int h) const {
        const int i = 2 * row + h;
        return i >= G::template lo<1>() && i < G::template hi<1>();
    }
};

/* One step of all lines, in place, in an interval with OTHERS tasks of another kind (first_behind()). */
template <class K, int STEP, bool INVERSE, int OTHERS = 0> CF_DEVICE void step_of_lines(smem<cplx> z) {
    typedef LineTask<K, STEP> Task;
    typedef typename Task::S S;
#pragma unroll 1
    for (int n = first_behind<K::T, OTHERS>(); n < Task::COUNT; n += K::T) {
        const Task task(below<Task::COUNT>(n));
        if (!task.exists)
            continue;
        smem<cplx> at = task.place(z);
        cplx v[S::R];
        unroll<0, S::R>([&](auto r) { v[r] = at[r * S::STRIDE]; });
        step_of_data<typename Task::O, STEP, INVERSE>(v, task.t);
        unroll<0, S::R>([&](auto r) { at[r * S::STRIDE] = v[r]; });
    }
}
/* The first forward step, from staged rows. Rows and points outside the window are zero. */
template <class K>
CF_DEVICE void lines_from_rows(smem<cplx> z, smem<real> rows, const PlaneTable<K> &plane_table, const void *memory) {
    typedef PlaneGeometry<K> G;
    typedef WholeRows<K> W;
    typedef LineTask<K, 1> Task;
    typedef typename Task::S S;
#pragma unroll 1
    for (int n = int(threadIdx.x); n < Task::COUNT; n += K::T) {
        const Task task(below<Task::COUNT>(n));
        if (!task.exists)
            continue;
        const int c = plane_table.template start<1>(task.p) + 2 * task.row - G::template lo<1>();
        const bool first = task.has(0) && c >= W::LOW && c < W::HIGH,
                   second = task.has(1) && c + 1 >= W::LOW && c + 1 < W::HIGH;
        const typename W::Read from(rows, task.waits() + task.t - G::template lo<2>() +
                                              W::shift(plane_table, memory, task.p));
        cplx v[S::R];
        unroll<0, S::R>([&](auto r) {
            constexpr int GAP = decltype(r)::value * S::TIME_GAP;
            v[r] = {0, 0};
            if constexpr (GAP < G::LINE_HI && GAP + S::TASKS > G::LINE_LO) {
                const int j = task.t + GAP;
                const bool in =
                    (GAP >= G::LINE_LO || j >= G::LINE_LO) && (GAP + S::TASKS <= G::LINE_HI || j < G::LINE_HI);
                if (in && first)
                    v[r].x = from[GAP];
                if (in && second)
                    v[r].y = from[GAP + W::WIDTH];
            }
        });
        step_of_data<typename Task::O, 1, false, G::LINE_LO, G::LINE_HI>(v, task.t);
        smem<cplx> at = task.place(z);
        unroll<0, S::R>([&](auto r) { at[r * S::STRIDE] = v[r]; });
    }
}
template <class K> CF_DEVICE real old_number(typename K::Storage::bits bits) {
    if constexpr (K::Storage::PLAIN)
        return bits;
    else
        return K::Storage::number(bits);
}
/* Step 1, which the inverse does last, to staged rows. With ACCUMULATE it adds the old elements, which it reads from
 * memory. */
template <class K, bool ACCUMULATE>
CF_DEVICE void lines_to_rows_of(smem<cplx> z, smem<real> rows, const PlaneTable<K> &plane_table,
                                const cf_shared_fft_call &call) {
    typedef PlaneGeometry<K> G;
    typedef WholeRows<K> W;
    typedef LineTask<K, 1> Task;
    typedef typename Task::S S;
    const real scale = real(call.scale);
#pragma unroll 1
    for (int n = int(threadIdx.x); n < Task::COUNT; n += K::T) {
        Task task(below<Task::COUNT>(n));
        if (!task.exists) {
            if constexpr (!W::PACKS)
                continue;
            task.p = 0; /* the warp exchanges elements, so all its threads go on */
            task.row = G::ROW_LO;
        }
        smem<cplx> at = task.place(z);
        cplx v[S::R];
        unroll<0, S::R>([&](auto r) { v[r] = at[r * S::STRIDE]; });
        step_of_data<typename Task::O, 1, true>(v, task.t);
        real bias = 0;
        if (call.bias)
            bias = bias_at<K>(call.bias, plane_table.channel(task.p));
        unroll<0, S::R>([&](auto r) { v[r] = {scale * v[r].x + bias, scale * v[r].y + bias}; });
        const int c = plane_table.template start<1>(task.p) + 2 * task.row - G::template lo<1>(),
                  x = task.t - G::template lo<2>();
        smem<real> to = rows + (task.waits() + x);
        const typename W::bits *const old =
            static_cast<const typename W::bits *>(call.out) + plane_table.signal(task.p) + (long long)c * W::WIDTH + x;
        const int odd = task.t % 2;
        const unsigned which = which_fp16(odd);
        smem<unsigned> words = smem_cast<unsigned>(rows);
        if constexpr (W::PACKS)
            words = words + (task.waits() + W::shift(plane_table, call.out, task.p) + x + odd * (W::WIDTH - 1)) / 2;
        const bool mine = task.exists && task.has(odd);
        unroll<0, S::R>([&](auto r) {
            constexpr int GAP = decltype(r)::value * S::TIME_GAP;
            if constexpr (GAP < G::LINE_HI && GAP + S::TASKS > G::LINE_LO) {
                const int j = task.t + GAP;
                const bool in =
                    (GAP >= G::LINE_LO || j >= G::LINE_LO) && (GAP + S::TASKS <= G::LINE_HI || j < G::LINE_HI);
                if (in) {
                    if constexpr (ACCUMULATE) {
                        if (task.has(0) && c >= W::LOW && c < W::HIGH)
                            v[r].x += old_number<K>(old[GAP]);
                        if (task.has(1) && c + 1 >= W::LOW && c + 1 < W::HIGH)
                            v[r].y += old_number<K>(old[GAP + W::WIDTH]);
                    }
                    if constexpr (!W::PACKS) {
                        if (task.has(0))
                            to[GAP] = v[r].x;
                        if (task.has(1))
                            to[GAP + W::WIDTH] = v[r].y;
                    }
                }
                if constexpr (W::PACKS) {
                    /* The even task gets the word of the first row, its neighbour that of the second row. */
                    const unsigned two = word_of_two(typename K::Storage(), v[r].x, v[r].y),
                                   other = __shfl_xor_sync(0xffffffffu, two, 8);
                    if (mine && in)
                        words[GAP / 2] = word_of_fp16(two, other, which);
                }
            }
        });
    }
}

template <class K>
CF_DEVICE void lines_to_rows(smem<cplx> z, smem<real> rows, const PlaneTable<K> &plane_table,
                             const cf_shared_fft_call &call) {
    constexpr bool ADDS = K::Storage::PLAIN || WholeRows<K>::PACKS; /* else WholeRows::put() adds */
    if (call.accumulate && ADDS)
        lines_to_rows_of<K, ADDS>(z, rows, plane_table, call);
    else
        lines_to_rows_of<K, false>(z, rows, plane_table, call);
}
