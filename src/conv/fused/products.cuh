/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of spectra, and their sums over channels or rows. Where a task of the last forward step holds all bins of
 * a product, the function also does that step and the first step of the inverse, in registers; not with one axis, and
 * not in sum_inputs(), which reads whole spectra. Each ends with a barrier. W is conj(W) with CONJUGATE.
 *
 *     multiply_in_place()     one input, one output: Y = X W
 *     sum_inputs()            inputs are whole spectra in shared memory: Y = sum over c of X[c] W[c]
 *     add_input()             sums of all outputs are in shared memory: Y[o] += X W[o]
 *     add_row()               gradient of the weights: GW[c] += X[c] conj(GY)
 *
 * Buffer c of spectra begins c * BUFFER complex numbers after the first. Each buffer has P planes.
 */
#pragma once

#include "conv/fused/bins.cuh"

/* Writes the result of the first inverse step to z. task is the same task of the last forward step. */
template <class F, class Task> CF_DEVICE void put_back(smem<cplx> z, const Task &task, const cplx *v) {
    put_column(v, ColumnTask<typename F::Y, Fused<F>::AXIS, Fused<F>::STEPS>(z, task));
}

/* One input, one output: the product replaces the input's planes in z. */
template <class F>
CF_DEVICE void multiply_in_place(smem<cplx> z, const PlaneTable<typename F::X> &plane_table, const cplx *weights) {
    typedef Fused<F> U;
    if constexpr (U::MIRRORS) {
        typedef MirrorTask<typename F::X> Task;
        typedef typename Task::G G;
#pragma unroll 1
        for (int n = int(threadIdx.x); n < Task::COUNT; n += F::X::T) {
            const Task task(z, n);
            const cplx *const at = weights + plane_table.spectrum(task.p);
            cplx v[Task::R], w[Task::R];
            task.get(v, w);
            dft<Task::R>(v);
            dft<Task::R>(w);
            task.each_pair(v, w, [&](int k, cplx &a, cplx &b, cplx twiddle_k) {
                cplx x[2];
                split_packed(x, a, b, twiddle_k);
                x[0] = weighed<F::CONJUGATE>(x[0], get_weight(at + k));
                x[1] = weighed<F::CONJUGATE>(x[1], get_weight(at + (G::LINE - k)));
                if (k == 0)
                    x[0].y = x[1].y = 0;
                merge_packed(a, b, x, twiddle_k);
            });
            dft_inverse<Task::R>(v);
            dft_inverse<Task::R>(w);
            task.put(v, w);
        }
    } else if constexpr (U::AXIS == 2) {
        for_bins<F>(plane_table, weights, [&](int plane, int k, const cplx *w, const cplx *w1) {
            cplx x[2];
            get_bins<typename F::X>(x, z + plane, k);
            x[0] = weighed<F::CONJUGATE>(x[0], get_weight(w));
            x[1] = weighed<F::CONJUGATE>(x[1], get_weight(w1));
            put_bins<typename F::X, false>(z + plane, x, k);
        });
    } else {
        typedef ColumnTask<typename F::X, U::AXIS, U::STEPS> Task;
        for_tasks<F>(z, plane_table, weights, [&](const Task &task, const cplx *w) {
            constexpr int R = Task::S::R;
            cplx v[R];
            get_column(v, task);
            transform_column<false>(v, task);
            unroll<0, R>([&](auto r) { v[r] = weighed<F::CONJUGATE>(v[r], get_weight(w + r * Task::bin_gap(1))); });
            transform_column<true>(v, task);
            put_back<F>(z, task, v);
        });
    }
    __syncthreads();
}

/* to = first inverse step of the sum over inputs. The whole spectrum of input c is at z + c * BUFFER. */
template <class F>
CF_DEVICE void sum_inputs(smem<cplx> to, smem<cplx> z, const PlaneTable<typename F::X> &plane_table,
                          const cplx *weights) {
    typedef Fused<F> U;
    if constexpr (U::AXIS == 2) {
        for_bins<F>(plane_table, weights, [&](int plane, int k, const cplx *w, const cplx *w1) {
            cplx sum[2] = {{0, 0}, {0, 0}};
            for (int c = 0; c < F::IN; ++c) {
                cplx x[2];
                get_bins<typename F::X>(x, z + (c * U::BUFFER + plane), k);
                sum[0] = sum[0] + weighed<F::CONJUGATE>(x[0], get_weight(w + c * F::W_IN));
                sum[1] = sum[1] + weighed<F::CONJUGATE>(x[1], get_weight(w1 + c * F::W_IN));
            }
            put_bins<typename F::X, false>(to + plane, sum, k);
        });
    } else {
        typedef ColumnTask<typename F::X, U::AXIS, U::STEPS> Task;
        for_tasks<F>(z, plane_table, weights, [&](const Task &task, const cplx *w) {
            constexpr int R = Task::S::R;
            cplx v[R];
            unroll<0, R>([&](auto r) { v[r] = {0, 0}; });
#pragma unroll 1
            for (int c = 0; c < F::IN; ++c) {
                smem<cplx> plane = task.plane + c * U::BUFFER;
                unroll<0, R>([&](auto r) {
                    v[r] = v[r] + weighed<F::CONJUGATE>(plane[task.place(r)],
                                                        get_weight(w + (c * F::W_IN + r * Task::bin_gap(1))));
                });
            }
            transform_column<true>(v, task);
            put_back<F>(to, task, v);
        });
    }
    __syncthreads();
}

/* Ends the forward transform of one input in z, and adds its product to the sum of each output at at + o * BUFFER. */
template <class F, bool FIRST>
CF_DEVICE void add_input(smem<cplx> at, smem<cplx> z, const PlaneTable<typename F::X> &plane_table,
                         const cplx *weights) {
    typedef Fused<F> U;
    if constexpr (U::AXIS == 2) {
        for_bins<F>(plane_table, weights, [&](int plane, int k, const cplx *w, const cplx *w1) {
            cplx x[2];
            get_bins<typename F::X>(x, z + plane, k);
            for (int o = 0; o < F::CHUNK; ++o) {
                const cplx y[2] = {weighed<F::CONJUGATE>(x[0], get_weight(w + o * F::W_OUT)),
                                   weighed<F::CONJUGATE>(x[1], get_weight(w1 + o * F::W_OUT))};
                put_bins<typename F::X, !FIRST>(at + (o * U::BUFFER + plane), y, k);
            }
        });
    } else {
        typedef ColumnTask<typename F::X, U::AXIS, U::STEPS> Task;
        for_tasks<F>(z, plane_table, weights, [&](const Task &task, const cplx *w) {
            constexpr int R = Task::S::R;
            cplx v[R];
            get_column(v, task);
            transform_column<false>(v, task);
#pragma unroll 1
            for (int o = 0; o < F::CHUNK; ++o) {
                smem<cplx> plane = at + (o * U::BUFFER + task.offset);
                unroll<0, R>([&](auto r) {
                    const cplx y = weighed<F::CONJUGATE>(v[r], get_weight(w + (o * F::W_OUT + r * Task::bin_gap(1))));
                    const int i = task.place(r);
                    plane[i] = FIRST ? y : plane[i] + y;
                });
            }
        });
    }
    __syncthreads();
}

/* Ends the forward transform of gy in z, and adds its products with the spectra x + c * BUFFER to at + c * BUFFER. */
template <class F, bool FIRST> CF_DEVICE void add_row(smem<cplx> at, smem<cplx> z, smem<cplx> x) {
    typedef Fused<F> U;
    typedef typename F::Y K;
    if constexpr (U::AXIS == 2) {
        typedef PlaneGeometry<K> G;
        for (int n = int(threadIdx.x); n < K::P * G::SWEEP; n += K::T) {
            const int plane = n / G::SWEEP * G::PLANE, k = n % G::SWEEP;
            cplx y[2], u[2];
            get_bins<K>(y, z + plane, k);
            for (int c = 0; c < F::IN; ++c) {
                get_bins<K>(u, x + (c * U::BUFFER + plane), k);
                u[0] = u[0] * conj(y[0]);
                u[1] = u[1] * conj(y[1]);
                /* put_bins() leaves out a factor 1 / 2, because inverses do. No inverse follows here. */
                if constexpr (K::KIND == PACKED_REAL) {
                    u[0] = times_half(u[0]);
                    u[1] = times_half(u[1]);
                }
                put_bins<K, !FIRST>(at + (c * U::BUFFER + plane), u, k);
            }
        }
    } else {
        typedef ColumnTask<K, U::AXIS, U::STEPS> Task;
#pragma unroll 1
        for (int n = int(threadIdx.x); n < Task::COUNT; n += K::T) {
            const Task task(z, n);
            constexpr int R = Task::S::R;
            cplx v[R];
            get_column(v, task);
            transform_column<false>(v, task);
#pragma unroll 1
            for (int c = 0; c < F::IN; ++c) {
                const int plane = c * U::BUFFER + task.offset;
                unroll<0, R>([&](auto r) {
                    const int i = plane + task.place(r);
                    const cplx product = x[i] * conj(v[r]);
                    at[i] = FIRST ? product : at[i] + product;
                });
            }
        }
    }
    __syncthreads();
}
