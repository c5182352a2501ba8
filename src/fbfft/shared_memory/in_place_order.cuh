/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of N = A B C points is transformed in place by up to three steps. Between steps, points pass from thread to
 * thread.
 *
 *     step 1    a DFT over a, stride B C:   j = (B C) a + m  ->  k = a' + A k'    and a twiddle w_N^(m a')
 *     step 2    a DFT over b, stride C:     m = C b + c      ->  k' = b' + B k''  and a twiddle w_BC^(c b')
 *     step 3    a DFT over c
 *
 * Each step writes its results where it read its points. So frequencies are out of order at the end; frequency(k) is
 * the place of bin k. The inverse does the steps in reverse order. With PAD, groups of B C points and groups of C
 * points are an odd distance apart, so that neighbouring threads use different banks.
 */
#pragma once

#include "fbfft/common/register_dft.cuh"
#include "fbfft/shared_memory/geometry.h"

template <int A_, int B_, int C_, bool PAD> struct Order {
    static constexpr int A = A_, B = B_, C = C_, M = B * C, N = A * M, STEPS = 1 + (M > 1) + (C > 1);
    static constexpr cf_shared_fft_line LAYOUT = cf_shared_fft_line_of(A, B, C, PAD);
    static constexpr int CP = LAYOUT.c_pitch, MP = LAYOUT.bc_pitch, SIZE = LAYOUT.size;
    static constexpr int time(int j) { return j / M * MP + j % M / C * CP + j % C; }
    static constexpr int frequency(int k) { return k % A * MP + k / A % B * CP + k / (A * B); }
};

/* One step. A task transforms R points at distance `stride`; a line has `tasks` of them. Task t begins at start(t).
 * Its points are time indices or frequencies low(t) + r * gap of the whole line. */
template <class O, int STEP> struct Step {
    static constexpr int R = STEP == 1 ? O::A : STEP == 2 ? O::B : O::C;
    static constexpr int TASKS = O::N / R, STRIDE = STEP == 1 ? O::MP : STEP == 2 ? O::CP : 1;
    static constexpr bool LAST = STEP == O::STEPS; /* its results are frequencies */
    static CF_DEVICE int start(int t) {
        if constexpr (STEP == 1)
            return t / O::C * O::CP + t % O::C;
        else if constexpr (STEP == 2)
            return t / O::C * O::MP + t % O::C;
        else
            return t / O::B * O::MP + t % O::B * O::CP;
    }
    static constexpr int TIME_GAP = O::M; /* step 1: point r is j = t + r * TIME_GAP */
    static constexpr int FREQUENCY_GAP = O::N / R;
    static CF_DEVICE int frequency(int t) { /* last step: bin r is k = frequency(t) + r * FREQUENCY_GAP */
        if constexpr (STEP == 1)
            return 0;
        else if constexpr (STEP == 2)
            return t;
        else
            return t / O::B + O::A * (t % O::B);
    }
};

/* exp(-2 pi i k / N), 0 <= k < N. A long table is the product of a coarse and a fine one. */
template <int N, int COUNT> struct FirstRoots {
    cplx w[COUNT];
    __host__ __device__ constexpr FirstRoots() : w{} {
        for (int k = 0; k < COUNT; ++k) {
            w[k].x = real(cf_cos(k, N));
            w[k].y = real(-cf_sin(k, N));
        }
    }
};
template <int N, int COUNT> __device__ const FirstRoots<N, COUNT> cf_first_roots = FirstRoots<N, COUNT>();
/* The largest divisor of n that is at most 128. */
__host__ __device__ constexpr int cf_fine(int n) {
    int d = 128;
    while (n % d)
        --d;
    return d;
}
template <int N> CF_DEVICE cplx root(int k) {
    if constexpr (N <= 512) {
        return cf_roots<N>.w[k];
    } else {
        constexpr int FINE = cf_fine(N);
        return cf_roots<N / FINE>.w[k / FINE] * cf_first_roots<N, FINE>.w[k % FINE];
    }
}

/* exp(-2 pi i m r / N) for the tasks m of a step of R points. The roots of one task are neighbours and are loaded in
 * pairs. */
struct __align__(4 * sizeof(real)) RootPair {
    cplx first, second;
};
template <int N, int R> struct StepRoots {
    RootPair of[N / R][(R + 1) / 2];
    __host__ __device__ constexpr StepRoots() : of{} {
        for (int m = 0; m < N / R; ++m)
            for (int i = 0; i < (R + 1) / 2; ++i) {
                of[m][i].first = {real(cf_cos(2 * i * m, N)), real(-cf_sin(2 * i * m, N))};
                of[m][i].second = {real(cf_cos((2 * i + 1) * m, N)), real(-cf_sin((2 * i + 1) * m, N))};
            }
    }
};
template <int N, int R> __device__ const StepRoots<N, R> cf_step_roots = StepRoots<N, R>();

/* w[r] = exp(-2 pi i m r / N), 0 < r < R. In a long table the roots of a warp are in many cache lines, each loaded on
 * its own. So two roots are loaded, and the others are products of these. */
template <int N, int R> CF_DEVICE void powers(cplx *w, int m) {
    w[1] = root<N>(m);
    if constexpr (R > 4)
        w[4] = root<N>(4 * m);
    unroll<2, R>([&](auto r) {
        constexpr int I = decltype(r)::value, OTHER = I > 4 && I % 4 == 0 ? 4 : I % 4 ? I % 4 : 0;
        if constexpr (I < 4)
            w[I] = w[I - 1] * w[1];
        else if constexpr (I > 4)
            w[I] = w[I - OTHER] * w[OTHER];
    });
}

/* The arithmetic of a step on the registers of task t. */
template <class O, int STEP, bool INVERSE> CF_DEVICE void step_twiddles(cplx *v, int t) {
    if constexpr (STEP < O::STEPS) {
        constexpr int N = STEP == 1 ? O::N : O::M, R = Step<O, STEP>::R;
        const int m = STEP == 1 ? t : t % O::C;
        if constexpr (N > 256) {
            cplx w[R];
            powers<N, R>(w, m);
            unroll<1, R>([&](auto r) { v[r] = v[r] * (INVERSE ? conj(w[r]) : w[r]); });
        } else {
            const StepRoots<N, R> &roots = cf_step_roots<N, R>;
            unroll<0, (R + 1) / 2>([&](auto i) {
                const RootPair w = roots.of[m][int(i)];
                if constexpr (decltype(i)::value > 0)
                    v[2 * i] = v[2 * i] * (INVERSE ? conj(w.first) : w.first);
                if constexpr (2 * decltype(i)::value + 1 < R)
                    v[2 * i + 1] = v[2 * i + 1] * (INVERSE ? conj(w.second) : w.second);
            });
        }
    }
}
/* The DFT of task t of a step, with its twiddles. Only the first DATA points of the line are not zero. */
template <class O, int STEP, bool INVERSE, int DATA = O::N> CF_DEVICE void step_transform(cplx *v, int t) {
    if constexpr (INVERSE) {
        step_twiddles<O, STEP, true>(v, t);
        dft_inverse<Step<O, STEP>::R>(v);
    } else {
        dft<Step<O, STEP>::R, STEP == 1 ? (DATA + O::M - 1) / O::M : Step<O, STEP>::R>(v);
        step_twiddles<O, STEP, false>(v, t);
    }
}
