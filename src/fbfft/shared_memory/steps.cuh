/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of the transforms along each axis. */
#pragma once

#include "fbfft/shared_memory/spectrum.cuh"

template <bool FIRST, class A, class B> struct Choice { typedef A type; };
template <class A, class B> struct Choice<false, A, B> { typedef B type; };

/* One step of all lines along axis 2. */
template <class K, int STEP, bool INVERSE>
CF_DEVICE void line_step(smem<cplx> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef PlaneGeometry<K> G;
    typedef Step<typename G::O2, STEP> S;
    constexpr int LINES = K::P * G::D0 * G::DR;
    constexpr bool SPECTRUM = K::DIRECT && G::LAST == 2 && S::LAST, TIME = STEP == 1;
#pragma unroll 1
    for (int n = int(threadIdx.x); n < LINES * S::TASKS; n += K::T) {
        const int line = LINES >= 16 ? n % LINES : n / S::TASKS, t = LINES >= 16 ? n / LINES : n % S::TASKS;
        const int p = line / (G::D0 * G::DR), i0 = line / G::DR % G::D0 + G::template lo<0>(),
                  row = line % G::DR + G::ROW_LO;
        smem<cplx> at = z + (p * G::PLANE + i0 * G::AXIS0_PITCH + row * G::PITCH + S::start(t));
        const long long bins = SPECTRUM ? plane_table.spectrum(p) + bin_of<K>(0, 0, S::frequency(t), call.bin_unit) : 0;
        const long long gap = bin_of<K>(0, 0, S::FREQUENCY_GAP, call.bin_unit);
        cplx v[S::R];
        const bool first = G::template lo<1>() % 2 == 0 || 2 * row >= G::template lo<1>();
        const bool second = 2 * row + 1 < G::template hi<1>();
        if constexpr (K::STAGED) {
            if constexpr (INVERSE) {
                read_line<S::R>(v, at);
                dft_inverse<S::R>(v);
                put_rows<K>(at, v, real(call.scale) * plane_table.factor(p), second);
            } else {
                get_rows<K>(v, at, first, second);
                if (K::SCALED)
                    unroll<0, S::R>([&](auto r) { v[r] = {real(call.scale) * v[r].x, real(call.scale) * v[r].y}; });
                dft<S::R, G::LINE_HI>(v);
                write_line<S::R>(at, v);
            }
            continue;
        }
        unroll<0, S::R>([&](auto r) {
            const int j = t + r * S::TIME_GAP;
            if constexpr (SPECTRUM && INVERSE)
                v[r] = K::Bins::load(static_cast<const typename K::Bins::number *>(call.in) + bins + r * gap);
            else if (TIME && !INVERSE && (j < G::LINE_LO || j >= G::LINE_HI))
                v[r] = {0, 0};
            else
                v[r] = at[r * S::STRIDE];
        });
        step_transform<typename G::O2, STEP, INVERSE, G::LINE_HI>(v, t);
        unroll<0, S::R>([&](auto r) {
            const int j = t + r * S::TIME_GAP;
            if constexpr (SPECTRUM && !INVERSE) {
                if (p < plane_table.live)
                    K::Bins::store(static_cast<typename K::Bins::number *>(call.out) + bins + r * gap, v[r],
                                   plane_table.factor(p));
            } else if (!(TIME && INVERSE && (j < G::LINE_LO || j >= G::LINE_HI)))
                at[r * S::STRIDE] = v[r];
        });
    }
}

/* TWO_ROWS_AS_COMPLEX: the Hermitian split of one column of one line, from two places of Z to the spectra of two
 * rows. If a product follows (PACKS_NYQUIST is false), both inputs of an own column are the same number.
 * hermitian_merge() is the inverse; after a product, the imaginary parts of an own column are zero but for rounding. */
template <class K> CF_DEVICE void hermitian_split(cplx &a, cplx &b, int k) {
    const cplx za = a, zb = b;
    if (K::PACKS_NYQUIST && PlaneGeometry<K>::own(k)) {
        a = {za.x, PlaneGeometry<K>::NYQUIST_PACKED ? zb.x : real(0)};
        b = {za.y, PlaneGeometry<K>::NYQUIST_PACKED ? zb.y : real(0)};
    } else {
        a = times_half(za + conj(zb));
        b = times_minus_i(times_half(za - conj(zb)));
    }
}
template <class K> CF_DEVICE void hermitian_merge(cplx &a, cplx &b, int k) {
    const cplx ra = a, rb = b;
    if (K::PACKS_NYQUIST && PlaneGeometry<K>::own(k)) {
        a = {ra.x, rb.x};
        b = {ra.y, rb.y};
    } else {
        a = ra + times_i(rb);
        b = conj(ra) + times_i(conj(rb));
    }
}

/* Split or merge all lines in shared memory. It is used where no step can do it in registers (SPLITS_AT_STEP is
 * false). */
template <class K, bool INVERSE> CF_DEVICE void split_lines(smem<cplx> z) {
    typedef PlaneGeometry<K> G;
#pragma unroll 4
    for (int n = int(threadIdx.x); n < K::P * G::D0 * G::DR * G::COLUMNS; n += K::T) {
        const int k = n % G::COLUMNS, line = n / G::COLUMNS;
        smem<cplx> at =
            z + (line / (G::D0 * G::DR) * G::PLANE + (line / G::DR % G::D0 + G::template lo<0>()) * G::AXIS0_PITCH +
                 (line % G::DR + G::ROW_LO) * G::PITCH);
        const int f = G::O2::frequency(k), m = G::mirror(k);
        const bool both = 2 * (line % G::DR + G::ROW_LO) + 1 < G::N1;
        cplx a = at[f], b = {0, 0};
        if (!INVERSE && !K::PACKS_NYQUIST && G::own(k))
            b = a;
        else if (!INVERSE ? G::NYQUIST_PACKED || !G::own(k) : both)
            b = at[m];
        if constexpr (INVERSE)
            hermitian_merge<K>(a, b, k);
        else
            hermitian_split<K>(a, b, k);
        at[f] = a;
        at[m] = b;
    }
}

/* One task of a step of all lines along axis X, 1 or 0: task t of the line in column k. `other` is the line's place
 * along the other of these axes. If the first of several steps splits rows, the task is two tasks, t and t + 1.
 * Task t has the first row of the lines and task t + 1 the second row, so that one thread can split them. */
template <class K, int X, int STEP> struct ColumnTask {
    typedef PlaneGeometry<K> G;
    typedef typename Choice<X == 0, typename G::O0, typename G::O1>::type O;
    typedef Step<O, STEP> S;
    static constexpr bool TIME = STEP == 1;                             /* the step nearest to the signal */
    static constexpr bool SPLITS = X == 1 && TIME && G::SPLITS_AT_STEP; /* the step also splits or merges rows */
    static constexpr bool TWO = SPLITS && O::STEPS > 1;
    static constexpr int TASKS = S::TASKS / (TWO ? 2 : 1), POINTS = S::R * (TWO ? 2 : 1);
    static constexpr int OTHERS = X == 1 ? G::D0 : G::N1, COUNT = K::P * G::COLUMNS * OTHERS * TASKS;
    static constexpr int LO = G::template lo<X>(), HI = G::template hi<X>();
    /* Lines of TWO_ROWS_AS_COMPLEX are stored whole. */
    static constexpr int STORE_LO = X == 1 && G::SPLIT ? 2 * G::ROW_LO : LO,
                         STORE_HI = X == 1 && G::SPLIT ? 2 * G::ROW_HI : HI;
    /* Tasks begin with an even row, so the place of register r depends only on r. */
    static constexpr bool EVEN = X == 1 && G::SPLIT && (TWO || (STEP == 2 && O::C == 1 && O::B % 2 == 0));
    int p, k, other, t, f, m, start, fixed, offset; /* of the plane */
    smem<cplx> plane;
    CF_DEVICE ColumnTask(smem<cplx> z, int n) {
        if (K::ORDER == BY_PLANE) {
            p = n % K::P;
            k = n / K::P % G::COLUMNS;
            other = n / (K::P * G::COLUMNS) % OTHERS;
            t = n / (K::P * G::COLUMNS * OTHERS);
        } else {
            k = n % G::COLUMNS;
            other = n / G::COLUMNS % OTHERS;
            t = n / (G::COLUMNS * OTHERS) % TASKS;
            p = n / (G::COLUMNS * OTHERS * TASKS);
        }
        if (TWO)
            t *= 2;
        f = G::O2::frequency(k);
        m = G::mirror(k);
        start = S::start(t);
        offset = p * G::PLANE + (X == 1 ? (other + G::template lo<0>()) * G::AXIS0_PITCH : 0);
        plane = z + offset;
        fixed = X == 0 ? G::row_at(G::O1::frequency(other), f, m) : 0;
    }
    /* The same task of a config with the same geometry. */
    template <class Other>
    CF_DEVICE ColumnTask(smem<cplx> z, const Other &o)
        : p(o.p), k(o.k), other(o.other), t(o.t), f(o.f), m(o.m), start(o.start), fixed(o.fixed), offset(o.offset),
          plane(z + o.offset) {}
    CF_DEVICE int place(int r) const {
        if constexpr (EVEN && !TWO)
            return start / 2 * G::PITCH + r / 2 * G::PITCH + (r % 2 ? m : f);
        return X == 0 ? (start + r * S::STRIDE) * G::AXIS0_PITCH + fixed : G::row_at(start + r * S::STRIDE, f, m);
    }
    /* The bin of register 0 after the last step, and the distance to the next register's bin. */
    CF_DEVICE long long bins(long long unit) const {
        const int first = S::frequency(t);
        return bin_of<K>(X == 0 ? first : 0, X == 0 ? other : first, k, unit);
    }
    static CF_DEVICE long long bin_gap(long long unit) {
        return bin_of<K>(X == 0 ? S::FREQUENCY_GAP : 0, X == 0 ? 0 : S::FREQUENCY_GAP, 0, unit);
    }

    /* TWO: the places of register r and of register S::R + r. t and O::M are even. */
    CF_DEVICE int even_row(int r) const { return t / 2 * G::PITCH + r * (O::M / 2) * G::PITCH + f; }
    CF_DEVICE int odd_row(int r) const { return t / 2 * G::PITCH + r * (O::M / 2) * G::PITCH + m; }
    /* Whether some task has data there; whether this task has. */
    template <int I> static constexpr bool some_data() {
        return (I + 1) * (O::M / 2) > G::ROW_LO && I * (O::M / 2) < G::ROW_HI;
    }
    template <int I> CF_DEVICE bool has_data() const {
        constexpr int FIRST = I * (O::M / 2);
        bool has = some_data<I>();
        if constexpr (FIRST < G::ROW_LO)
            has = has && t / 2 + FIRST >= G::ROW_LO;
        if constexpr (FIRST + O::M / 2 > G::ROW_HI)
            has = has && t / 2 + FIRST < G::ROW_HI;
        return has;
    }
    /* The place of the second input of hermitian_split(). An own column uses its first input twice, so
     * hermitian_split() needs no test. */
    CF_DEVICE int mirror_in() const { return !K::PACKS_NYQUIST && G::own(k) ? f : m; }

    CF_DEVICE void get(cplx *v) const {
        unroll<0, S::R>([&](auto r) {
            v[r] = plane[TWO ? even_row(r) : place(r)];
            if constexpr (TWO)
                v[S::R + r] = plane[odd_row(r)];
        });
    }
    CF_DEVICE void put(const cplx *v) const {
        unroll<0, S::R>([&](auto r) {
            plane[TWO ? even_row(r) : place(r)] = v[r];
            if constexpr (TWO)
                plane[odd_row(r)] = v[S::R + r];
        });
    }
    /* The arithmetic of the step. Forward, only the first DATA points of the axis are not zero. */
    template <bool INVERSE, int DATA = O::N> CF_DEVICE void transform(cplx *v) const {
        step_transform<O, STEP, INVERSE, DATA>(v, t);
        if constexpr (TWO)
            step_transform<O, STEP, INVERSE, DATA>(v + S::R, t + 1);
    }
    /* Read the inputs of a forward step. */
    CF_DEVICE void get_forward(cplx *v) const {
        const int mirror = mirror_in();
        if constexpr (TWO) {
            unroll<0, S::R>([&](auto r) {
                constexpr int I = decltype(r)::value;
                cplx a = {0, 0}, b = {0, 0};
                if constexpr (some_data<I>()) {
                    if (has_data<I>()) {
                        a = plane[even_row(I)];
                        if (!K::PACKS_NYQUIST || G::NYQUIST_PACKED || !G::own(k))
                            b = plane[odd_row(I) - m + mirror];
                    }
                    hermitian_split<K>(a, b, k);
                }
                v[r] = a;
                v[S::R + r] = b;
            });
        } else if constexpr (SPLITS) {
            unroll<0, G::ROWS>([&](auto pair) {
                cplx a = {0, 0}, b = {0, 0};
                if constexpr (decltype(pair)::value >= G::ROW_LO && decltype(pair)::value < G::ROW_HI) {
                    a = plane[pair * G::PITCH + f];
                    if (!K::PACKS_NYQUIST || G::NYQUIST_PACKED || !G::own(k))
                        b = plane[pair * G::PITCH + mirror];
                    hermitian_split<K>(a, b, k);
                }
                v[2 * pair] = a;
                if constexpr (2 * decltype(pair)::value + 1 < G::N1)
                    v[2 * pair + 1] = b;
            });
        } else if constexpr (TIME) {
            unroll<0, S::R>([&](auto r) {
                const int j = t + r * S::TIME_GAP;
                v[r] = {0, 0};
                if (j >= LO && j < HI)
                    v[r] = plane[place(r)];
            });
        } else {
            get(v);
        }
    }
    /* Write the results of an inverse step. */
    CF_DEVICE void put_inverse(const cplx *v) const {
        if constexpr (TWO) {
            unroll<0, S::R>([&](auto r) {
                constexpr int I = decltype(r)::value;
                cplx a = v[r], b = v[S::R + r];
                if constexpr (some_data<I>()) {
                    hermitian_merge<K>(a, b, k);
                    if (has_data<I>()) {
                        plane[even_row(I)] = a;
                        if (!K::PACKS_NYQUIST || G::NYQUIST_PACKED || !G::own(k))
                            plane[odd_row(I)] = b;
                    }
                }
            });
        } else if constexpr (SPLITS) {
            unroll<G::ROW_LO, G::ROW_HI>([&](auto pair) {
                cplx a = v[2 * pair], b = {0, 0};
                if constexpr (2 * decltype(pair)::value + 1 < G::N1)
                    b = v[2 * pair + 1];
                hermitian_merge<K>(a, b, k);
                plane[pair * G::PITCH + f] = a;
                if (!K::PACKS_NYQUIST || G::NYQUIST_PACKED || !G::own(k))
                    plane[pair * G::PITCH + m] = b;
            });
        } else if constexpr (TIME) {
            unroll<0, S::R>([&](auto r) {
                const int j = t + r * S::TIME_GAP;
                if (j >= STORE_LO && j < STORE_HI)
                    plane[place(r)] = v[r];
            });
        } else {
            put(v);
        }
    }
};

template <class K, int X, int STEP, bool INVERSE>
CF_DEVICE void column_step(smem<cplx> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef PlaneGeometry<K> G;
    typedef ColumnTask<K, X, STEP> Task;
    typedef typename Task::S S;
    constexpr bool SPECTRUM = K::DIRECT && G::LAST == X && S::LAST;
#pragma unroll 1
    for (int n = int(threadIdx.x); n < Task::COUNT; n += K::T) {
        const Task task(z, n);
        const bool memory = SPECTRUM && !(G::NYQUIST_PACKED && task.k == 0);
        const long long bins = SPECTRUM ? plane_table.spectrum(task.p) + task.bins(call.bin_unit) : 0;
        const long long gap = Task::bin_gap(call.bin_unit);
        cplx v[Task::POINTS];
        if constexpr (SPECTRUM && INVERSE) {
            /* Bins that are their own mirror image need no test: their imaginary parts only reach imaginary parts,
             * and hermitian_merge() drops those. */
            if (memory) {
                const typename K::Bins::number *from = static_cast<const typename K::Bins::number *>(call.in) + bins;
                unroll<0, S::R>([&](auto r) { v[r] = K::Bins::load(from + r * gap); });
            } else {
                task.get(v);
            }
        } else if constexpr (INVERSE) {
            task.get(v);
        } else {
            task.get_forward(v);
        }
        task.template transform<INVERSE, G::template hi<X>()>(v);
        if constexpr (SPECTRUM && !INVERSE) {
            if (memory) {
                typename K::Bins::number *to = static_cast<typename K::Bins::number *>(call.out) + bins;
                const real factor = plane_table.factor(task.p);
                if (task.p < plane_table.live)
                    unroll<0, S::R>([&](auto r) { K::Bins::store(to + r * gap, v[r], factor); });
            } else {
                task.put(v);
            }
        } else if constexpr (INVERSE) {
            task.put_inverse(v);
        } else {
            task.put(v);
        }
    }
}

template <class K, int X, int STEP, bool INVERSE>
CF_DEVICE void step_of(smem<cplx> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    if constexpr (X == 2)
        line_step<K, STEP, INVERSE>(z, plane_table, call);
    else
        column_step<K, X, STEP, INVERSE>(z, plane_table, call);
}

/* The planes of a block. Their steps run together. Blocks with planes of several kinds have a class of their own. */
template <class K> struct Planes {
    typedef K Config;
    smem<cplx> z;
    const PlaneTable<K> &plane_table;
    const cf_shared_fft_call &call;
    template <int X, int STEP, bool INVERSE> CF_DEVICE void step() const {
        step_of<K, X, STEP, INVERSE>(z, plane_table, call);
    }
    template <bool INVERSE> CF_DEVICE void hermitian_split() const { split_lines<K, INVERSE>(z); }
};

/* All steps of one axis, each followed by a barrier. The step next to the spectrum runs only if WHOLE. */
template <int X, int STEP, bool INVERSE, class P> CF_DEVICE void step_and_wait(const P &planes) {
    planes.template step<X, STEP, INVERSE>();
    __syncthreads();
}
template <int X, bool INVERSE, bool WHOLE = true, class P> CF_DEVICE void steps_of_axis(const P &planes) {
    typedef PlaneGeometry<typename P::Config> G;
    typedef
        typename Choice<X == 0, typename G::O0, typename Choice<X == 1, typename G::O1, typename G::O2>::type>::type O;
    constexpr bool SPLITS = X == 1 && G::SPLIT && !G::SPLITS_AT_STEP;
    if constexpr (SPLITS && !INVERSE) {
        planes.template hermitian_split<false>();
        __syncthreads();
    }
    if constexpr (INVERSE) {
        if constexpr (O::STEPS > 2 && WHOLE)
            step_and_wait<X, 3, true>(planes);
        if constexpr (O::STEPS > 1 && (O::STEPS > 2 || WHOLE))
            step_and_wait<X, 2, true>(planes);
        if constexpr (O::STEPS > 1 || WHOLE)
            step_and_wait<X, 1, true>(planes);
    } else {
        if constexpr (O::STEPS > 1 || WHOLE)
            step_and_wait<X, 1, false>(planes);
        if constexpr (O::STEPS > 1 && (O::STEPS > 2 || WHOLE))
            step_and_wait<X, 2, false>(planes);
        if constexpr (O::STEPS > 2 && WHOLE)
            step_and_wait<X, 3, false>(planes);
    }
    if constexpr (SPLITS && INVERSE) {
        planes.template hermitian_split<true>();
        __syncthreads();
    }
}
template <class K, int X, bool INVERSE, bool WHOLE = true>
CF_DEVICE void axis_steps(smem<cplx> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    steps_of_axis<X, INVERSE, WHOLE>(Planes<K>{z, plane_table, call});
}
