/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to the bins of spectra: those of the weights in memory, and those of planes in shared memory.
 *
 * Spectra of the weights are [group][output][input][bin], each with the BINS bins of one real plane in natural
 * order. They are complex numbers of the kernel's arithmetic type.
 *
 * With two or three axes, a thread has the bins of one column task in registers, and no bin needs its mirror image.
 * With one axis only, a real line may be packed as half as many complex points (PACKED_REAL). Bins k and N / 2 - k of x
 * then come from the same two bins of the packed line:
 *
 *     z[n] = x[2 n] + i x[2 n + 1],      Z its spectrum of N / 2 bins
 *     e = (Z[k] + conj Z[N / 2 - k]) / 2
 *     o = exp(-2 pi i k / N) (Z[k] - conj Z[N / 2 - k]) / 2 i
 *     X[k] = e + o,      X[N / 2 - k] = conj(e - o)
 */
#pragma once

#include "conv/fused/load_store.cuh"

/* -------------------------------------------------------------------------------------------------------- weights */

/*
 * Loads one bin of the weights. It does not use __ldg(): a kernel with a late PDL wait starts while another kernel
 * still writes the weights, and the read-only cache might then return old data.
 */
CF_DEVICE cplx get_weight(const cplx *p) {
    const typename PairOf<real>::type v = *reinterpret_cast<const typename PairOf<real>::type *>(p);
    return {v.x, v.y};
}
/* a w, or a conj(w). */
template <bool CONJUGATE> CF_DEVICE cplx weighed(cplx a, cplx w) { return a * (CONJUGATE ? conj(w) : w); }

/*
 * Calls f(task, w) for each task of this thread in the last forward step, which is also the first inverse step. w
 * points to the task's first bin in the weights of input 0 and output 0.
 */
template <class F, class A>
CF_DEVICE void for_tasks(smem<cplx> z, const PlaneTable<typename F::X> &plane_table, const cplx *weights, A f) {
    typedef Fused<F> U;
    typedef ColumnTask<typename F::X, U::AXIS, U::STEPS> Task;
#pragma unroll 1
    for (int n = int(threadIdx.x); n < Task::COUNT; n += F::X::T) {
        const Task task(z, F::ROWS_FIRST ? spread_task<typename F::X, Task::COUNT / F::X::P>(n) : n);
        f(task, weights + plane_table.spectrum(task.p) + task.bins(1));
    }
}

/* -------------------------------------------------------------------------------------------------- one axis only */

/* Two bins of x from two bins of Z, as in the head of this file. twiddle_k is exp(-2 pi i k / N). */
CF_DEVICE void split_packed(cplx *x, cplx a, cplx b, cplx twiddle_k) {
    const cplx even = times_half(a + conj(b)), odd = twiddle_k * times_minus_i(times_half(a - conj(b)));
    x[0] = even + odd;
    x[1] = conj(even - odd);
}
/* The inverse of split_packed(), without the factor 1 / 2. */
CF_DEVICE void merge_packed(cplx &a, cplx &b, const cplx *x, cplx twiddle_k) {
    const cplx even = x[0] + conj(x[1]), odd = times_i(conj(twiddle_k) * (x[0] - conj(x[1])));
    a = even + odd;
    b = conj(even - odd);
}

/* Reads bin k of a plane to x[0]; x[1] is bin N / 2 - k with PACKED_REAL, else bin k again. */
template <class K> CF_DEVICE void get_bins(cplx *x, smem<cplx> plane, int k) {
    typedef PlaneGeometry<K> G;
    const cplx a = plane[G::O2::frequency(k)];
    if constexpr (K::KIND == PACKED_REAL) {
        split_packed(x, a, plane[G::O2::frequency(k ? G::LINE - k : 0)], root<G::N2>(k));
    } else {
        x[0] = x[1] = a;
    }
}
/*
 * Writes bins, in the form that the inverse steps read: of a packed line, or of a whole line with its mirrored
 * half. ADD: adds to what is there. The imaginary parts of bins 0 and N / 2 become zero.
 */
template <class K, bool ADD> CF_DEVICE void put_bins(smem<cplx> plane, const cplx *x, int k) {
    typedef PlaneGeometry<K> G;
    cplx a = x[0], b = conj(a);
    int mirror = G::N2 - k;
    if (k == 0)
        a.y = 0;
    if constexpr (K::KIND == PACKED_REAL) {
        const cplx bins[2] = {a, k ? x[1] : cplx{x[1].x, 0}};
        merge_packed(a, b, bins, root<G::N2>(k));
        mirror = G::LINE - k;
    }
    const int at = G::O2::frequency(k);
    plane[at] = ADD ? plane[at] + a : a;
    if (k > 0 && mirror != k) {
        const int to = G::O2::frequency(mirror);
        plane[to] = ADD ? plane[to] + b : b;
    }
}
/*
 * Calls f(plane, k, w, w1) for each of this thread's bins: offset of the plane, bin, weights of bins k and N / 2 -
 * k.
 */
template <class F, class A>
CF_DEVICE void for_bins(const PlaneTable<typename F::X> &plane_table, const cplx *weights, A f) {
    typedef typename F::X K;
    typedef PlaneGeometry<K> G;
    for (int n = int(threadIdx.x); n < K::P * G::SWEEP; n += K::T) {
        const int p = n / G::SWEEP, k = n % G::SWEEP;
        const cplx *const w = weights + plane_table.spectrum(p);
        f(p * G::PLANE, k, w + k, w + (K::KIND == PACKED_REAL ? G::LINE - k : k));
    }
}

/*
 * Packed lines with several FFT steps. A thread takes two tasks of the last forward step at once. Task f has bins f
 * + r GAP, and task GAP - f has their mirror images, so the whole product stays in registers. Task 0 is its own
 * mirror image. So is task GAP / 2, if GAP is even. These two form one pair.
 */
template <class K> struct MirrorTask {
    typedef PlaneGeometry<K> G;
    typedef typename G::O2 O;
    typedef Step<O, O::STEPS> S;
    static constexpr int R = S::R, GAP = S::FREQUENCY_GAP, UNITS = (GAP + 1) / 2, COUNT = K::P * UNITS;
    int p, f;
    bool two; /* false: the second task is the first one again */
    smem<cplx> first, second;
    CF_DEVICE MirrorTask(smem<cplx> z, int n) : p(n / UNITS), f(n % UNITS), two(GAP % 2 == 0 || f > 0) {
        first = z + (p * G::PLANE + start(f));
        second = z + (p * G::PLANE + start(f > 0 ? GAP - f : GAP % 2 == 0 ? GAP / 2 : 0));
    }
    static CF_DEVICE int start(int frequency) {
        return S::start(O::STEPS == 2 ? frequency : frequency % O::A * O::B + frequency / O::A);
    }
    CF_DEVICE void get(cplx *v, cplx *w) const {
        unroll<0, R>([&](auto r) {
            v[r] = first[r * S::STRIDE];
            w[r] = second[r * S::STRIDE];
        });
    }
    CF_DEVICE void put(const cplx *v, const cplx *w) const {
        unroll<0, R>([&](auto r) {
            first[r * S::STRIDE] = v[r];
            if (two)
                second[r * S::STRIDE] = w[r];
        });
    }
    /*
     * Calls g(k, Z[k], Z[LINE - k], exp(-2 pi i k / N2)) once for each pair. A bin that is its own mirror image
     * comes as both.
     */
    template <class A> CF_DEVICE void each_pair(cplx *v, cplx *w, A g) const {
        if (f > 0) {
            const cplx twiddle_f = root<G::N2>(f);
            unroll<0, R>([&](auto r) {
                constexpr int I = decltype(r)::value;
                g(f + I * GAP, v[I], w[R - 1 - I], twiddle<I * GAP, G::N2>(twiddle_f));
            });
            return;
        }
        unroll<0, R / 2 + 1>([&](auto r) {
            constexpr int I = decltype(r)::value;
            g(I * GAP, v[I], v[I ? R - I : 0], twiddle<I * GAP, G::N2>(cplx{1, 0}));
        });
        if constexpr (GAP % 2 == 0)
            unroll<0, (R + 1) / 2>([&](auto r) {
                constexpr int I = decltype(r)::value, K0 = GAP / 2 + I * GAP;
                g(K0, w[I], w[R - 1 - I], twiddle<K0, G::N2>(cplx{1, 0}));
            });
    }
};
