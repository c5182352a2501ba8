/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FFT steps of planes in shared memory, for kernels whose speed is limited by the number of instructions. They do
 * the same as the steps of fbfft/shared_memory/steps.cuh, with the same layout of planes
 * (fbfft/shared_memory/geometry.cuh), and differ in this:
 *
 *     - The DFTs of pruned_dft.cuh leave out points that are known to be zero.
 *     - Addresses are constants added to one or two addresses for each task.
 *     - Where planes have suitable distances, neighbouring threads have the same task of neighbouring planes, which
 *       avoids bank conflicts.
 *
 *     step_along_rows()        axis 2: a task has R points of one line
 *     step_along_columns()     axis 1 or 0: a task has R points of one column
 */
#pragma once

#include "conv/fused/plane_load.cuh"
#include "conv/fused/plane_store.cuh"
#include "conv/fused/pruned_dft.cuh"

/*
 * How many neighbouring threads have the same task of as many planes. More than 1 where the distance of planes then
 * avoids bank conflicts of a half warp (spread_planes() of config.c). With 1, neighbouring threads have
 * neighbouring tasks of one plane.
 */
template <class K>
constexpr int SPREAD = sizeof(real) == 8 ? (K::P % 8 == 0 && K::PLANE % 2 == 1 ? 8 : 1)
                       : !K::STAGED && K::P % 16 == 0 && K::PLANE % 2 == 1                      ? 16
                       : K::P % 8 == 0 && K::PLANE % 4 == 2 && (K::STAGED || K::PITCH % 2 == 1) ? 8
                                                                                                : 1;
/* The task of thread n, as p * COUNT + i: task i of plane p. COUNT: tasks of a plane. */
template <class K, int COUNT> CF_DEVICE int spread_task(int n) {
    constexpr unsigned S = SPREAD<K>, C = COUNT;
    const unsigned u = unsigned(n);
    return S == 1 ? n : int((u / (S * C) * S + u % S) * C + u / S % C);
}

/*
 * This thread's first task in a step where OTHERS tasks of other planes come before. The threads that have fewer of
 * these begin. If for example each kind has tasks for half of the warps, all warps get one.
 */
template <class K, int OTHERS> CF_DEVICE int task_behind() {
    constexpr int FROM = OTHERS / 32 * 32 % K::T;
    const int n = int(threadIdx.x);
    return FROM == 0 ? n : n < FROM ? n + K::T - FROM : n - FROM;
}

/* Tasks of a step along axis 2, of all planes. */
template <class K, int STEP>
constexpr int ROW_TASKS =
    K::P *PlaneGeometry<K>::D0 *PlaneGeometry<K>::DR *Step<typename PlaneGeometry<K>::O2, STEP>::TASKS;

/* One step along axis 2, with a barrier to follow. STAGED lines hold two rows, which are made complex on the way. */
template <class K, int STEP, bool INVERSE, int OTHERS = 0>
CF_DEVICE void step_along_rows(smem<cplx> z, const cf_shared_fft_call &call) {
    typedef PlaneGeometry<K> G;
    typedef Step<typename G::O2, STEP> S;
    constexpr int OF_A_PLANE = G::D0 * G::DR, LINES = K::P * OF_A_PLANE;
    constexpr int NEIGHBOURS = SPREAD<K>;
    constexpr bool TIME = STEP == 1;
#pragma unroll 1
    for (int n = task_behind<K, OTHERS>(); n < LINES * S::TASKS; n += K::T) {
        int line = LINES >= 16 ? n % LINES : n / S::TASKS, t = LINES >= 16 ? n / LINES : n % S::TASKS;
        if constexpr (NEIGHBOURS > 1) {
            const int m = spread_task<K, OF_A_PLANE * S::TASKS>(n), of_plane = m % (OF_A_PLANE * S::TASKS);
            line = m / (OF_A_PLANE * S::TASKS) * OF_A_PLANE + of_plane % OF_A_PLANE;
            t = of_plane / OF_A_PLANE;
        }
        if constexpr (S::TASKS == 1)
            t = 0;
        const int p = line / OF_A_PLANE, i0 = line / G::DR % G::D0 + G::template lo<0>(),
                  row = line % G::DR + G::ROW_LO;
        smem<cplx> at = z + (p * G::PLANE + i0 * G::AXIS0_PITCH + row * G::PITCH + S::start(t));
        cplx v[S::R];
        if constexpr (K::STAGED && INVERSE) {
            read_line<S::R>(v, at);
            dft_back<S::R>(v);
            put_rows<K>(at, v, real(call.scale), 2 * row + 1 < G::template hi<1>());
        } else if constexpr (K::STAGED) {
            get_rows<K>(v, at, G::template lo<1>() % 2 == 0 || 2 * row >= G::template lo<1>(),
                        2 * row + 1 < G::template hi<1>());
            dft_of<S::R, cf_points(G::LINE_LO, G::LINE_HI)>(v);
            write_line<S::R>(at, v);
        } else {
            const auto has = [&](int r) {
                const int j = t + r * S::TIME_GAP;
                return !TIME || (j >= G::LINE_LO && j < G::LINE_HI);
            };
            unroll<0, S::R>([&](auto r) {
                v[r] = {0, 0};
                if (INVERSE || has(r))
                    v[r] = at[r * S::STRIDE];
            });
            step_of_data<typename G::O2, STEP, INVERSE, G::LINE_LO, G::LINE_HI>(v, t);
            unroll<0, S::R>([&](auto r) {
                if (!INVERSE || has(r))
                    at[r * S::STRIDE] = v[r];
            });
        }
    }
}

/*
 * The functions below read and write the points of a column task. They do the same as get(), put(), get_forward()
 * and put_inverse() of ColumnTask. Where a register has points of even or of odd rows only, points are constant
 * distances apart: those of even rows from the place of column k (`even`), and those of odd rows from the place of
 * its mirror image (`odd`).
 */
template <class Task> struct ColumnPlaces {
    typedef typename Task::G G;
    static constexpr int GAP = (Task::TWO ? Task::O::M / 2 : 1) * G::PITCH;
    smem<cplx> even, odd;
    CF_DEVICE ColumnPlaces(const Task &task, bool mirror_in = false) {
        smem<cplx> row = task.plane + (Task::TWO ? task.t : task.start) / 2 * G::PITCH;
        even = row + task.f;
        odd = row + (mirror_in ? task.mirror_in() : task.m);
    }
};
/* Points as complex numbers, without a Hermitian split. */
template <class Task> CF_DEVICE void get_points(cplx *v, const Task &task) {
    if constexpr (Task::EVEN) {
        const ColumnPlaces<Task> at(task);
        unroll<0, Task::POINTS / 2>([&](auto i) {
            constexpr int I = decltype(i)::value, A = Task::TWO ? I : 2 * I, B = Task::TWO ? Task::S::R + I : 2 * I + 1;
            v[A] = at.even[I * at.GAP];
            v[B] = at.odd[I * at.GAP];
        });
    } else {
        task.get(v);
    }
}
template <class Task> CF_DEVICE void put_points(const cplx *v, const Task &task) {
    if constexpr (Task::EVEN) {
        const ColumnPlaces<Task> at(task);
        unroll<0, Task::POINTS / 2>([&](auto i) {
            constexpr int I = decltype(i)::value, A = Task::TWO ? I : 2 * I, B = Task::TWO ? Task::S::R + I : 2 * I + 1;
            at.even[I * at.GAP] = v[A];
            at.odd[I * at.GAP] = v[B];
        });
    } else {
        task.put(v);
    }
}
/* The Hermitian split part(), where the factors 1 / 2 are part of multiply-adds. */
CF_DEVICE void part_pair(cplx &a, cplx &b, cplx z, cplx w) {
    w = times_half(w);
    a = {real(0.5) * z.x + w.x, real(0.5) * z.y - w.y};
    b = {real(0.5) * z.y + w.y, w.x - real(0.5) * z.x};
}
/* Whether any task has data in its I-th pair of rows, known at compile time; and whether this task has. */
template <class Task, int I> constexpr bool some_pair() {
    if constexpr (Task::TWO)
        return Task::template some_data<I>();
    else
        return I >= Task::G::ROW_LO && I < Task::G::ROW_HI;
}
template <class Task, int I> CF_DEVICE bool has_pair(const Task &task) {
    if constexpr (Task::TWO)
        return task.template has_data<I>();
    else
        return true;
}
/*
 * The points that a forward step begins with. The first step along axis 1 splits lines into the spectra of their
 * two rows.
 */
template <class Task> CF_DEVICE void get_column(cplx *v, const Task &task) {
    if constexpr (Task::SPLITS) {
        typedef typename Task::G G;
        const ColumnPlaces<Task> at(task, true);
        unroll<0, Task::TWO ? Task::S::R : G::ROWS>([&](auto i) {
            constexpr int I = decltype(i)::value, A = Task::TWO ? I : 2 * I, B = Task::TWO ? Task::S::R + I : 2 * I + 1;
            cplx a = {0, 0}, b = {0, 0};
            if constexpr (some_pair<Task, I>())
                if (has_pair<Task, I>(task))
                    part_pair(a, b, at.even[I * at.GAP], at.odd[I * at.GAP]);
            v[A] = a;
            if constexpr (B < Task::POINTS)
                v[B] = b;
        });
    } else if constexpr (Task::TIME) {
        task.get_forward(v);
    } else {
        get_points(v, task);
    }
}
/* The points that an inverse step ends with. The last step along axis 1 merges the spectra of two rows. */
template <class Task> CF_DEVICE void put_column(const cplx *v, const Task &task) {
    if constexpr (Task::SPLITS) {
        typedef typename Task::G G;
        const ColumnPlaces<Task> at(task);
        unroll<0, Task::TWO ? Task::S::R : G::ROWS>([&](auto i) {
            constexpr int I = decltype(i)::value, A = Task::TWO ? I : 2 * I, B = Task::TWO ? Task::S::R + I : 2 * I + 1;
            if constexpr (some_pair<Task, I>()) {
                cplx a = v[A], b = {0, 0};
                if constexpr (B < Task::POINTS)
                    b = v[B];
                if (has_pair<Task, I>(task)) { /* the Hermitian merge: hermitian_merge() */
                    at.even[I * at.GAP] = {a.x - b.y, a.y + b.x};
                    at.odd[I * at.GAP] = {a.x + b.y, b.x - a.y};
                }
            }
        });
    } else if constexpr (Task::TIME) {
        task.put_inverse(v);
    } else {
        put_points(v, task);
    }
}
/* The arithmetic of a column task. A task with TWO has two tasks of the step. */
template <bool INVERSE, class K, int X, int STEP>
CF_DEVICE void transform_column(cplx *v, const ColumnTask<K, X, STEP> &task) {
    typedef ColumnTask<K, X, STEP> Task;
    step_of_data<typename Task::O, STEP, INVERSE, Task::LO, Task::HI>(v, task.t);
    if constexpr (Task::TWO)
        step_of_data<typename Task::O, STEP, INVERSE, Task::LO, Task::HI>(v + Task::S::R, task.t + 1);
}
/* One step along axis 1 or 0, with a barrier to follow. */
template <class K, int X, int STEP, bool INVERSE, int OTHERS = 0> CF_DEVICE void step_along_columns(smem<cplx> z) {
    typedef ColumnTask<K, X, STEP> Task;
#pragma unroll 1
    for (int n = task_behind<K, OTHERS>(); n < Task::COUNT; n += K::T) {
        const Task task(z, spread_task<K, Task::COUNT / K::P>(n));
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
/* Tasks of a step along axis X, of all planes. */
template <class K, int X, int STEP> constexpr int tasks_of_step() {
    if constexpr (X == 2)
        return ROW_TASKS<K, STEP>;
    else
        return ColumnTask<K, X, STEP>::COUNT;
}
/* One step along axis X. */
template <class K, int X, int STEP, bool INVERSE, int OTHERS = 0>
CF_DEVICE void step_of_planes(smem<cplx> z, const cf_shared_fft_call &call) {
    if constexpr (X == 2)
        step_along_rows<K, STEP, INVERSE, OTHERS>(z, call);
    else
        step_along_columns<K, X, STEP, INVERSE, OTHERS>(z);
}

/* The planes of a block as an argument of steps_of_axis(), which calls step() and part() with barriers in between. */
template <class K> struct BlockPlanes {
    typedef K Config;
    smem<cplx> z;
    const cf_shared_fft_call &call;
    template <int X, int STEP, bool INVERSE> CF_DEVICE void step() const {
        step_of_planes<K, X, STEP, INVERSE>(z, call);
    }
    template <bool INVERSE> CF_DEVICE void hermitian_split() const { split_lines<K, INVERSE>(z); }
};
