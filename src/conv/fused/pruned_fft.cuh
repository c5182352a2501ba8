/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of shared_memory/steps.cuh for kernels whose instructions count. Of every step it is known which of its points hold data, wherever they stand, and
 * the others cost nothing. Two parts of a line without a common divisor need no twiddles between them (Good and Thomas):
 *
 *     N = A B        j = (B a + A b) mod N  ->  k with k mod A = a', k mod B = b'
 *
 * Threads side by side have the same task of neighbouring planes where that brings them to all banks of shared memory.
 */
#pragma once

#include "conv/fused/plane_load.cuh"
#include "conv/fused/plane_store.cuh"

/* ------------------------------------------------------------------------------------------------------ points with gaps */

typedef unsigned long long Points; /* a set of at most 64 */
__host__ __device__ constexpr Points cf_points(int from, int to) {
    Points set = 0;
    for (int i = from; i < to; ++i)
        set |= Points(1) << i;
    return set;
}
__host__ __device__ constexpr bool cf_has(Points set, int i) { return set >> i & 1; }
/* How many points a set has that begins with 0 and has no gaps; 0: another one. */
__host__ __device__ constexpr int cf_leading(Points set) {
    int n = 0;
    while (n < 64 && cf_has(set, n))
        ++n;
    return set == cf_points(0, n) ? n : 0;
}
/* The part of n that is a power of its least prime. */
__host__ __device__ constexpr int cf_power_part(int n) {
    int prime = 2, part = 1;
    while (n > 1 && n % prime)
        ++prime;
    while (n % prime == 0) {
        n /= prime;
        part *= prime;
    }
    return part;
}
__host__ __device__ constexpr int cf_good_place(int a, int b, int A, int B) { return (B * a + A * b) % (A * B); }
__host__ __device__ constexpr int cf_good_bin(int a, int b, int A, int B) {
    int k = a;
    while (k % B != b)
        k += A;
    return k;
}
/* Those of the points first, first + gap, ... */
__host__ __device__ constexpr Points cf_every(Points set, int first, int gap, int count) {
    Points every = 0;
    for (int i = 0; i < count; ++i)
        every |= Points(cf_has(set, first + i * gap)) << i;
    return every;
}
__host__ __device__ constexpr Points cf_good_points(Points set, int b, int A, int B) {
    Points points = 0;
    for (int a = 0; a < A; ++a)
        points |= Points(cf_has(set, cf_good_place(a, b, A, B))) << a;
    return points;
}
/* Those b whose points, by the one or the other way to part a line, are not all missing. */
__host__ __device__ constexpr Points cf_columns(Points set, int A, int B, bool good) {
    Points columns = 0;
    for (int b = 0; b < B; ++b)
        columns |= Points((good ? cf_good_points(set, b, A, B) : cf_every(set, b, B, A)) != 0) << b;
    return columns;
}

/* a + b, of which some are there. */
template <bool A, bool B> CF_DEVICE cplx plus(cplx a, cplx b) {
    if constexpr (A && B)
        return a + b;
    else if constexpr (A)
        return a;
    else if constexpr (B)
        return b;
    else
        return {0, 0};
}
template <bool A> CF_DEVICE cplx there(const cplx &a) {
    if constexpr (A)
        return a;
    else
        return {0, 0};
}
CF_DEVICE cplx negative(cplx a) { return {-a.x, -a.y}; }

/* dft_prime(), N being odd. */
template <int N, Points DATA> CF_DEVICE void prime_of(cplx *v) {
    constexpr int M = (N - 1) / 2;
    constexpr bool FIRST = cf_has(DATA, 0);
    cplx sum[M + 1], difference[M + 1], total = FIRST ? v[0] : cplx{0, 0};
    unroll<1, M + 1>([&](auto j) {
        constexpr int J = decltype(j)::value;
        constexpr bool A = cf_has(DATA, J), B = cf_has(DATA, N - J),
                       BEFORE = (DATA & (cf_points(0, J) | cf_points(N - J + 1, N))) != 0;
        sum[J] = plus<A, B>(v[J], v[N - J]);
        difference[J] = plus<A, B>(v[J], negative(v[N - J]));
        total = plus < BEFORE, A || B > (total, sum[J]);
    });
    const cplx first = FIRST ? v[0] : cplx{0, 0};
    v[0] = total;
    unroll<1, M + 1>([&](auto k) {
        cplx even = first, odd = {0, 0};
        unroll<1, M + 1>([&](auto j) {
            constexpr int J = decltype(j)::value, JK = J * decltype(k)::value;
            constexpr real c = real(cf_cos(JK, N)), s = real(cf_sin(JK, N));
            if constexpr (cf_has(DATA, J) || cf_has(DATA, N - J)) {
                even.x += c * sum[J].x;
                even.y += c * sum[J].y;
                odd.x += s * difference[J].x;
                odd.y += s * difference[J].y;
            }
        });
        v[k] = even + times_minus_i(odd);
        v[N - k] = even - times_minus_i(odd);
    });
}

/* v[k] <- sum of v[j] exp(-2 pi i j k / N) over the j in DATA, which is not empty; the others are not read. */
template <int N, Points DATA> CF_DEVICE void dft_of(cplx *v) {
    constexpr int A = cf_power_part(N), LEADING = cf_leading(DATA);
    if constexpr (DATA == 1) {
        unroll<1, N>([&](auto k) { v[k] = v[0]; });
    } else if constexpr (A < N) {
        constexpr int B = N / A;
        constexpr Points COLUMNS = cf_columns(DATA, A, B, true);
        cplx t[N];
        unroll<0, B>([&](auto b) {
            constexpr Points OF_B = cf_good_points(DATA, b, A, B);
            if constexpr (OF_B != 0) {
                cplx u[A];
                unroll<0, A>([&](auto a) { u[a] = there<cf_has(OF_B, a)>(v[cf_good_place(a, b, A, B)]); });
                dft_of<A, OF_B>(u);
                unroll<0, A>([&](auto k) { t[B * k + b] = u[k]; });
            }
        });
        unroll<0, A>([&](auto a) {
            cplx u[B];
            unroll<0, B>([&](auto b) { u[b] = there<cf_has(COLUMNS, b)>(t[B * a + b]); });
            dft_of<B, COLUMNS>(u);
            unroll<0, B>([&](auto b) { v[cf_good_bin(a, b, A, B)] = u[b]; });
        });
    } else if constexpr (LEADING > 0) {
        dft<N, LEADING>(v);
    } else if constexpr (N == 2) {
        v[0] = v[1];
        v[1] = negative(v[1]);
    } else if constexpr (N == 4) {
        constexpr bool P0 = cf_has(DATA, 0), P1 = cf_has(DATA, 1), P2 = cf_has(DATA, 2), P3 = cf_has(DATA, 3);
        const cplx a = plus<P0, P2>(v[0], v[2]), b = plus<P0, P2>(v[0], negative(v[2]));
        const cplx c = plus<P1, P3>(v[1], v[3]), d = times_minus_i(plus<P1, P3>(v[1], negative(v[3])));
        v[0] = plus < P0 || P2, P1 || P3 > (a, c);
        v[1] = plus < P0 || P2, P1 || P3 > (b, d);
        v[2] = plus < P0 || P2, P1 || P3 > (a, negative(c));
        v[3] = plus < P0 || P2, P1 || P3 > (b, negative(d));
    } else if constexpr (cf_factor(N) == N) {
        prime_of<N, DATA>(v);
    } else { /* j = B a + b, k = k1 + A k2, as in dft() */
        constexpr int C = cf_factor(N), B = N / C;
        constexpr Points COLUMNS = cf_columns(DATA, C, B, false);
        cplx t[N];
        unroll<0, B>([&](auto b) {
            constexpr Points OF_B = cf_every(DATA, b, B, C);
            if constexpr (OF_B != 0) {
                cplx u[C];
                unroll<0, C>([&](auto a) { u[a] = there<cf_has(OF_B, a)>(v[B * a + b]); });
                dft_of<C, OF_B>(u);
                unroll<0, C>([&](auto k) { t[B * k + b] = twiddle<decltype(b)::value *decltype(k)::value, N>(u[k]); });
            }
        });
        unroll<0, C>([&](auto k1) {
            cplx u[B];
            unroll<0, B>([&](auto b) { u[b] = there<cf_has(COLUMNS, b)>(t[B * k1 + b]); });
            dft_of<B, COLUMNS>(u);
            unroll<0, B>([&](auto k2) { v[k1 + C * k2] = u[k2]; });
        });
    }
}
/* The inverse, unscaled, as dft_inverse(). */
template <int N> CF_DEVICE void dft_back(cplx *v) {
    unroll<0, N>([&](auto j) { v[j] = {v[j].y, v[j].x}; });
    dft_of<N, cf_points(0, N)>(v);
    unroll<0, N>([&](auto j) { v[j] = {v[j].y, v[j].x}; });
}

/* step_transform(); forward, the first step of a line has data in [LO, HI). */
template <class O, int STEP, bool INVERSE, int LO = 0, int HI = O::N> CF_DEVICE void step_of_data(cplx *v, int t) {
    constexpr int R = Step<O, STEP>::R;
    if constexpr (INVERSE) {
        step_twiddles<O, STEP, true>(v, t);
        dft_back<R>(v);
    } else {
        dft_of<R, STEP == 1 ? cf_points(LO / O::M, (HI + O::M - 1) / O::M) : cf_points(0, R)>(v);
        step_twiddles<O, STEP, false>(v, t);
    }
}

/* ------------------------------------------------------------------------------------------------------------- steps */

/* How many neighbouring threads have one task of as many planes: where planes are so far apart that a half warp then meets no bank twice
 * (spread_planes() of fused/config.c). 1: neighbours have neighbouring tasks. */
template <class K>
constexpr int SPREAD = sizeof(real) == 8 ? (K::P % 8 == 0 && K::PLANE % 2 == 1 ? 8 : 1)
                       : !K::STAGED && K::P % 16 == 0 && K::PLANE % 2 == 1                      ? 16
                       : K::P % 8 == 0 && K::PLANE % 4 == 2 && (K::STAGED || K::PITCH % 2 == 1) ? 8
                                                                                                : 1;
/* Task i of plane p, each plane having COUNT of them, as p * COUNT + i: that of thread n. */
template <class K, int COUNT> CF_DEVICE int spread_task(int n) {
    constexpr unsigned S = SPREAD<K>, C = COUNT;
    const unsigned u = unsigned(n);
    return S == 1 ? n : int((u / (S * C) * S + u % S) * C + u / S % C);
}

/* A thread's first task, where as many tasks of other planes belong to the same step: threads that have fewer of those begin. Tasks of rows that
 * half of the warps have are then shared by all of them. */
template <class K, int OTHERS> CF_DEVICE int task_behind() {
    constexpr int FROM = OTHERS / 32 * 32 % K::T;
    const int n = int(threadIdx.x);
    return FROM == 0 ? n : n < FROM ? n + K::T - FROM : n - FROM;
}

template <class K, int STEP>
constexpr int ROW_TASKS = K::P *Tile<K>::D0 *Tile<K>::DR *Step<typename Tile<K>::O2, STEP>::TASKS;

/* line_step() of planes whose spectra stay in the block. */
template <class K, int STEP, bool INVERSE, int OTHERS = 0>
CF_DEVICE void step_along_rows(smem<cplx> z, const TileCall &call) {
    typedef Tile<K> G;
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
        smem<cplx> at = z + (p * G::PLANE + i0 * G::SLAB + row * G::PITCH + S::start(t));
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

/* Where the points of a task of columns stand, and what it reads and writes: get(), put(), get_forward() and put_inverse() of ColumnTask. Where the
 * rows of pairs follow from the register, they are constants apart, from a place of the column and from one of its mirror image. */
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
/* part(), and with the halves as a factor of an addition. */
CF_DEVICE void part_pair(cplx &a, cplx &b, cplx z, cplx w) {
    w = half(w);
    a = {real(0.5) * z.x + w.x, real(0.5) * z.y - w.y};
    b = {real(0.5) * z.y + w.y, w.x - real(0.5) * z.x};
}
/* Whether some task has data in pair I of its rows; or this one. */
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
template <class Task> CF_DEVICE void get_column(cplx *v, const Task &task) {
    if constexpr (Task::PARTS) {
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
template <class Task> CF_DEVICE void put_column(const cplx *v, const Task &task) {
    if constexpr (Task::PARTS) {
        typedef typename Task::G G;
        const ColumnPlaces<Task> at(task);
        unroll<0, Task::TWO ? Task::S::R : G::ROWS>([&](auto i) {
            constexpr int I = decltype(i)::value, A = Task::TWO ? I : 2 * I, B = Task::TWO ? Task::S::R + I : 2 * I + 1;
            if constexpr (some_pair<Task, I>()) {
                cplx a = v[A], b = {0, 0};
                if constexpr (B < Task::POINTS)
                    b = v[B];
                if (has_pair<Task, I>(task)) { /* join() */
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
/* The arithmetic of a task of columns. */
template <bool INVERSE, class K, int X, int STEP>
CF_DEVICE void transform_column(cplx *v, const ColumnTask<K, X, STEP> &task) {
    typedef ColumnTask<K, X, STEP> Task;
    step_of_data<typename Task::O, STEP, INVERSE, Task::LO, Task::HI>(v, task.t);
    if constexpr (Task::TWO)
        step_of_data<typename Task::O, STEP, INVERSE, Task::LO, Task::HI>(v + Task::S::R, task.t + 1);
}
/* column_step() of such planes. */
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
template <class K, int X, int STEP> constexpr int tasks_of_step() {
    if constexpr (X == 2)
        return ROW_TASKS<K, STEP>;
    else
        return ColumnTask<K, X, STEP>::COUNT;
}
template <class K, int X, int STEP, bool INVERSE, int OTHERS = 0>
CF_DEVICE void step_of_planes(smem<cplx> z, const TileCall &call) {
    if constexpr (X == 2)
        step_along_rows<K, STEP, INVERSE, OTHERS>(z, call);
    else
        step_along_columns<K, X, STEP, INVERSE, OTHERS>(z);
}

/* For steps_of_axis(). */
template <class K> struct BlockPlanes {
    typedef K Config;
    smem<cplx> z;
    const TileCall &call;
    template <int X, int STEP, bool INVERSE> CF_DEVICE void step() const {
        step_of_planes<K, X, STEP, INVERSE>(z, call);
    }
    template <bool INVERSE> CF_DEVICE void part() const { part_lines<K, INVERSE>(z); }
};
