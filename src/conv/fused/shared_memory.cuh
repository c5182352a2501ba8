/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution passes in one kernel: transforms, products and sums of planes that stay in a block's shared memory, in the lines and steps
 * of shared_memory/kernel.cuh. Spectra of signals never reach memory; those of the weights come from a transform before, [group][o][c][bin].
 *
 *     fused_scatter   few planes in, many out (forward of few input channels): the spectra of the inputs stay, outputs pass by
 *     fused_gather    many in, few out (their gradient): the sums stay, inputs pass by
 *     fused_weights   the gradient of the weights: sums over rows stay, x and gy pass by; [slice][group][o][c][bin]
 *     fused_weight    the same of one plane each, with sums in registers
 *
 * A block's P planes differ in the row (sample, shift, tile) and the group; channels are taken one after the other. Where one plane goes in
 * and one out, the spectrum lives in registers between the last step forward and the first one back.
 *
 * A problem F has: X, Y, the configs of what is read and what is written (fused_weights: of x and gy), which agree in their geometry;
 * IN, OUT, their columns per group (fused_weights: of x and gy), CHUNK, those outputs that a block has (blockIdx.z says which); CONJUGATE, whether products take the conjugate of the weights, which are
 * W_IN apart for each input and W_OUT for each output; ROWS_FIRST, whether neighbouring planes differ in the row; wait(), of one input and one
 * output, CF_KERNEL_WAITS of cuda/jit/nvrtc.h, behind which the weights' spectra are there.
 */
#pragma once

#include "conv/fused/nhwc_io.cuh"
#include "conv/fused/pruned_fft.cuh"

struct FusedSide {
    const void *memory;
    long long sample_stride, group_stride;
};
struct FusedCall {
    FusedSide x, y;
    const void *bias; /* per channel of all groups, of Y's type; may be null */
    cplx *weights;    /* fused_weights writes its sums there */
    long long rows, groups, slices;
    double scale; /* of what is written; fused_weights: none */
    int accumulate;
};

template <class F> struct Fused {
    typedef typename F::X X;
    typedef typename F::Y Y;
    typedef Tile<X> G;
    static_assert(X::P == Y::P && X::T == Y::T && X::PITCH == Y::PITCH && X::PLANE == Y::PLANE && !X::RIDES,
                  "one geometry");
    static constexpr int AXIS = G::LAST, STEPS = AXIS == 0 ? G::O0::STEPS : AXIS == 1 ? G::O1::STEPS : G::O2::STEPS;
    static constexpr long long BINS = (long long)G::N0 * G::N1 * G::BINS;
    static constexpr int BUFFER = X::P * G::PLANE;
    static constexpr bool MIRRORS =
        AXIS == 2 && X::KIND == HALVES && STEPS > 1; /* MirrorTask serves for one plane in, one out */
    static constexpr bool HAS_PHASES_X = X::AXIS[0].phases * X::AXIS[1].phases * X::AXIS[2].phases > 1;
    static constexpr bool HAS_PHASES_Y = Y::AXIS[0].phases * Y::AXIS[1].phases * Y::AXIS[2].phases > 1;
};

/* --------------------------------------------------------------------------------------------------- planes in and out */

template <class K>
CF_DEVICE void fused_entry(smem<char> entry, const FusedSide &side, int row, int group, int column, int columns,
                           long long weights) {
    find_plane<K>(entry, row, column, columns, side.sample_stride, group * side.group_stride);
    smem_cast<long long>(entry)[1] = group * weights;
    smem_cast<int>(entry)[7] = smem_cast<int>(entry)[7] + group * int(K::CHANNELS);
}
/* The table of one column of one side. place(p): row and group of plane p; entries of planes that do not exist are those of another one. */
template <class K, class F>
CF_DEVICE Places<K> fused_places(smem<char> table, const FusedSide &side, int live, int column, int columns,
                                 long long weights, F place) {
    for (int p = int(threadIdx.x); p < K::P; p += K::T) {
        int row, group;
        place(p < live ? p : live - 1, row, group);
        fused_entry<K>(table + p * 32, side, row, group, column, columns, weights);
    }
    __syncthreads();
    return {table, live};
}
/* Those of column 0 of both sides, without a barrier. */
template <class X, class Y, class F>
CF_DEVICE void fused_tables(smem<char> x, smem<char> y, const FusedCall &call, int live, int in, int out,
                            long long weights, F place) {
    for (int p = int(threadIdx.x); p < X::P; p += X::T) {
        int row, group;
        place(p < live ? p : live - 1, row, group);
        fused_entry<X>(x + p * 32, call.x, row, group, 0, in, weights);
        fused_entry<Y>(y + p * 32, call.y, row, group, 0, out, weights);
    }
}

/* Numbers that come one by one need no register on their way. */
template <class K>
constexpr bool SINGLY = CAN_SWEEP<K> &&K::KIND == PAIRS &&K::Storage::PLAIN &&K::WIDE == 1 && !K::STAGED;

/* Planes of memory into lines, where they are after planes_arrive(); and back. */
template <class K> CF_DEVICE void planes_in(smem<cplx> z, const Places<K> &places, const void *memory) {
    if constexpr (ABREAST<K>) {
        load_units<K>(z, places, memory);
    } else if constexpr (SINGLY<K>) {
        load_rows<K, 1, true>(z, places, memory);
    } else if constexpr (FEW_SINGLES<K>) {
        Singles<K> numbers;
        numbers.load(places, memory);
        numbers.put(z, places);
    } else if constexpr (CAN_SWEEP<K>) {
        load_rows<K, K::WIDE>(z, places, memory);
    } else {
        TileCall call = {};
        call.in = memory;
        load_planes<K>(z, places, call);
    }
}
/* Those of both sides, on their way in registers. */
template <class X, class Y, bool FEW = FEW_SINGLES<X> &&FEW_SINGLES<Y>> struct BothSingles {};
template <class X, class Y> struct BothSingles<X, Y, true> {
    Singles<X> x;
    Singles<Y> y;
    CF_DEVICE void load(const Places<X> &from_x, const void *memory_x, const Places<Y> &from_y, const void *memory_y) {
        x.load(from_x, memory_x);
        y.load(from_y, memory_y);
    }
    CF_DEVICE void put(smem<cplx> to_x, const Places<X> &from_x, smem<cplx> to_y, const Places<Y> &from_y) const {
        x.put(to_x, from_x);
        y.put(to_y, from_y);
    }
};
template <class... K> CF_DEVICE void planes_arrive() {
    if constexpr (((K::STAGED || SINGLY<K>) || ...))
        wait_async();
    __syncthreads();
}
template <class K> CF_DEVICE void planes_to(smem<cplx> z, const Places<K> &places, const TileCall &call) {
    if constexpr (ABREAST<K>)
        store_units<K>(z, places, call);
    else if constexpr (CAN_SWEEP<K>)
        store_rows<K, K::WIDE>(z, places, call);
    else if constexpr (K::STAGED)
        store_staged<K, K::WIDE>(z, places, call);
    else
        store_signal<K>(z, places, call);
}
/* What is known of accumulate spares a question for each number. */
template <class K> CF_DEVICE void planes_out(smem<cplx> z, const Places<K> &places, TileCall call) {
    if (call.accumulate) {
        call.accumulate = 1;
        planes_to<K>(z, places, call);
    } else {
        planes_to<K>(z, places, call);
    }
}

/* The steps forward; without the last one unless WHOLE. */
template <class K, bool WHOLE> CF_DEVICE void fused_steps(smem<cplx> z) {
    typedef Tile<K> G;
    const TileCall call = {};
    const BlockPlanes<K> planes = {z, call};
    steps_of_axis<2, false, WHOLE || G::LAST != 2>(planes);
    if constexpr (G::LAST <= 1)
        steps_of_axis<1, false, WHOLE || G::LAST != 1>(planes);
    if constexpr (G::LAST == 0)
        steps_of_axis<0, false, WHOLE>(planes);
}
template <class K, bool WHOLE> CF_DEVICE void fused_load(smem<cplx> z, const Places<K> &places, const void *memory) {
    planes_in<K>(z, places, memory);
    planes_arrive<K>();
    fused_steps<K, WHOLE>(z);
}

/* The steps back, without the first one unless WHOLE, and lines into memory. */
template <class K> CF_DEVICE TileCall fused_call(void *memory, const void *bias, const FusedCall &c) {
    TileCall call = {};
    call.out = memory;
    call.bias = bias;
    call.scale = c.scale;
    call.accumulate = c.accumulate;
    return call;
}
template <class K, bool WHOLE> CF_DEVICE void fused_steps_back(smem<cplx> z, const TileCall &call) {
    typedef Tile<K> G;
    const BlockPlanes<K> planes = {z, call};
    if constexpr (G::LAST == 0)
        steps_of_axis<0, true, WHOLE>(planes);
    if constexpr (G::LAST <= 1)
        steps_of_axis<1, true, WHOLE || G::LAST != 1>(planes);
    steps_of_axis<2, true, WHOLE || G::LAST != 2>(planes);
}
template <class K, bool WHOLE>
CF_DEVICE void fused_store(smem<cplx> z, const Places<K> &places, void *memory, const void *bias, const FusedCall &c) {
    const TileCall call = fused_call<K>(memory, bias, c);
    fused_steps_back<K, WHOLE>(z, call);
    planes_out<K>(z, places, call);
}

/* ------------------------------------------------------------------------------------------------------------ products */

/* Not by way of the cache for what stays as it is: kernels that wait late begin while weights are being written. */
CF_DEVICE cplx get_weight(const cplx *p) {
    const typename PairOf<real>::type v = *reinterpret_cast<const typename PairOf<real>::type *>(p);
    return {v.x, v.y};
}
template <bool CONJUGATE> CF_DEVICE cplx weighed(cplx a, cplx w) { return a * (CONJUGATE ? conj(w) : w); }

/* f(task, v, w) for the tasks of the last step forward, which is also the first one back; w: the weights' bins of input 0 and output 0. */
template <class F, class A>
CF_DEVICE void for_tasks(smem<cplx> z, const Places<typename F::X> &places, const cplx *weights, A f) {
    typedef Fused<F> U;
    typedef ColumnTask<typename F::X, U::AXIS, U::STEPS> Task;
#pragma unroll 1
    for (int n = int(threadIdx.x); n < Task::COUNT; n += F::X::T) {
        const Task task(z, F::ROWS_FIRST ? spread_task<typename F::X, Task::COUNT / F::X::P>(n) : n);
        f(task, weights + places.spectrum(task.p) + task.bins(1));
    }
}

/* Bins k and N / 2 - k of two halves from those of their line, and back. */
CF_DEVICE void part_halves(cplx *x, cplx a, cplx b, cplx turn) {
    const cplx even = half(a + conj(b)), odd = turn * times_minus_i(half(a - conj(b)));
    x[0] = even + odd;
    x[1] = conj(even - odd);
}
CF_DEVICE void join_halves(cplx &a, cplx &b, const cplx *x, cplx turn) {
    const cplx even = x[0] + conj(x[1]), odd = times_i(conj(turn) * (x[0] - conj(x[1])));
    a = even + odd;
    b = conj(even - odd);
}

/* Lines that are the only axis: bins k and, of HALVES, N / 2 - k of a plane. */
template <class K> CF_DEVICE void get_bins(cplx *x, smem<cplx> plane, int k) {
    typedef Tile<K> G;
    const cplx a = plane[G::O2::frequency(k)];
    if constexpr (K::KIND == HALVES) {
        part_halves(x, a, plane[G::O2::frequency(k ? G::LINE - k : 0)], root<G::N2>(k));
    } else {
        x[0] = x[1] = a;
    }
}
/* z (+)= what the inverse steps expect of these. */
template <class K, bool ADD> CF_DEVICE void put_bins(smem<cplx> plane, const cplx *x, int k) {
    typedef Tile<K> G;
    cplx a = x[0], b = conj(a);
    int mirror = G::N2 - k;
    if (k == 0)
        a.y = 0;
    if constexpr (K::KIND == HALVES) {
        const cplx bins[2] = {a, k ? x[1] : cplx{x[1].x, 0}};
        join_halves(a, b, bins, root<G::N2>(k));
        mirror = G::LINE - k;
    }
    const int at = G::O2::frequency(k);
    plane[at] = ADD ? plane[at] + a : a;
    if (k > 0 && mirror != k) {
        const int to = G::O2::frequency(mirror);
        plane[to] = ADD ? plane[to] + b : b;
    }
}
template <class F, class A> CF_DEVICE void for_bins(const Places<typename F::X> &places, const cplx *weights, A f) {
    typedef typename F::X K;
    typedef Tile<K> G;
    for (int n = int(threadIdx.x); n < K::P * G::SWEEP; n += K::T) {
        const int p = n / G::SWEEP, k = n % G::SWEEP;
        const cplx *const w = weights + places.spectrum(p);
        f(p * G::PLANE, k, w + k, w + (K::KIND == HALVES ? G::LINE - k : k));
    }
}

/* Halved lines of several steps: two tasks of the last one forward and the first one back, with bins f + r GAP and GAP - f + r GAP, which are each
 * other's mirror images. Tasks 0 and GAP / 2, if there is one, are their own, and make a pair as well. */
template <class K> struct MirrorTask {
    typedef Tile<K> G;
    typedef typename G::O2 O;
    typedef Step<O, O::STEPS> S;
    static constexpr int R = S::R, GAP = S::FREQUENCY_GAP, UNITS = (GAP + 1) / 2, COUNT = K::P * UNITS;
    int p, f;
    bool two; /* or else the second task is the first */
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
    /* g(k, Z[k], Z[LINE - k], exp(-2 pi i k / N2)) once for each pair; where a bin is its own image, it comes twice. */
    template <class A> CF_DEVICE void each_pair(cplx *v, cplx *w, A g) const {
        if (f > 0) {
            const cplx turn = root<G::N2>(f);
            unroll<0, R>([&](auto r) {
                constexpr int I = decltype(r)::value;
                g(f + I * GAP, v[I], w[R - 1 - I], twiddle<I * GAP, G::N2>(turn));
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

/* The first step back ends in z; the task is one of the same step forward. */
template <class F, class Task> CF_DEVICE void put_back(smem<cplx> z, const Task &task, const cplx *v) {
    put_column(v, ColumnTask<typename F::Y, Fused<F>::AXIS, Fused<F>::STEPS>(z, task));
}

/* One plane in, one out, in place. */
template <class F>
CF_DEVICE void multiply_in_place(smem<cplx> z, const Places<typename F::X> &places, const cplx *weights) {
    typedef Fused<F> U;
    if constexpr (U::MIRRORS) {
        typedef MirrorTask<typename F::X> Task;
        typedef typename Task::G G;
#pragma unroll 1
        for (int n = int(threadIdx.x); n < Task::COUNT; n += F::X::T) {
            const Task task(z, n);
            const cplx *const at = weights + places.spectrum(task.p);
            cplx v[Task::R], w[Task::R];
            task.get(v, w);
            dft<Task::R>(v);
            dft<Task::R>(w);
            task.each_pair(v, w, [&](int k, cplx &a, cplx &b, cplx turn) {
                cplx x[2];
                part_halves(x, a, b, turn);
                x[0] = weighed<F::CONJUGATE>(x[0], get_weight(at + k));
                x[1] = weighed<F::CONJUGATE>(x[1], get_weight(at + (G::LINE - k)));
                if (k == 0)
                    x[0].y = x[1].y = 0;
                join_halves(a, b, x, turn);
            });
            dft_inverse<Task::R>(v);
            dft_inverse<Task::R>(w);
            task.put(v, w);
        }
    } else if constexpr (U::AXIS == 2) {
        for_bins<F>(places, weights, [&](int plane, int k, const cplx *w, const cplx *w1) {
            cplx x[2];
            get_bins<typename F::X>(x, z + plane, k);
            x[0] = weighed<F::CONJUGATE>(x[0], get_weight(w));
            x[1] = weighed<F::CONJUGATE>(x[1], get_weight(w1));
            put_bins<typename F::X, false>(z + plane, x, k);
        });
    } else {
        typedef ColumnTask<typename F::X, U::AXIS, U::STEPS> Task;
        for_tasks<F>(z, places, weights, [&](const Task &task, const cplx *w) {
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

/* to <- the first step back of the sum over inputs; spectrum c at z + c * BUFFER. */
template <class F>
CF_DEVICE void sum_inputs(smem<cplx> to, smem<cplx> z, const Places<typename F::X> &places, const cplx *weights) {
    typedef Fused<F> U;
    if constexpr (U::AXIS == 2) {
        for_bins<F>(places, weights, [&](int plane, int k, const cplx *w, const cplx *w1) {
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
        for_tasks<F>(z, places, weights, [&](const Task &task, const cplx *w) {
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

/* The last step forward in z; to each output's sum (at + o * BUFFER), what this input gives. */
template <class F, bool FIRST>
CF_DEVICE void add_input(smem<cplx> at, smem<cplx> z, const Places<typename F::X> &places, const cplx *weights) {
    typedef Fused<F> U;
    if constexpr (U::AXIS == 2) {
        for_bins<F>(places, weights, [&](int plane, int k, const cplx *w, const cplx *w1) {
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
        for_tasks<F>(z, places, weights, [&](const Task &task, const cplx *w) {
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

/* The last step forward of gy in z; to each sum (at + c * BUFFER), its product with x (x + c * BUFFER). */
template <class F, bool FIRST> CF_DEVICE void add_row(smem<cplx> at, smem<cplx> z, smem<cplx> x) {
    typedef Fused<F> U;
    typedef typename F::Y K;
    if constexpr (U::AXIS == 2) {
        typedef Tile<K> G;
        for (int n = int(threadIdx.x); n < K::P * G::SWEEP; n += K::T) {
            const int plane = n / G::SWEEP * G::PLANE, k = n % G::SWEEP;
            cplx y[2], u[2];
            get_bins<K>(y, z + plane, k);
            for (int c = 0; c < F::IN; ++c) {
                get_bins<K>(u, x + (c * U::BUFFER + plane), k);
                u[0] = u[0] * conj(y[0]);
                u[1] = u[1] * conj(y[1]);
                if constexpr (K::KIND == HALVES) { /* no inverse follows, which would undo what put_bins() leaves out */
                    u[0] = half(u[0]);
                    u[1] = half(u[1]);
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

/* ------------------------------------------------------------------------------------------------------------- kernels */

template <class K> CF_DEVICE const void *channel_of(const void *memory, int column, bool phases) {
    return static_cast<const typename K::Storage::bits *>(memory) + (phases ? 0 : column * K::CHANNEL_STRIDE);
}

/* Where the planes of a block are: which row and group, and the tables of both sides. */
template <class F> struct FusedBlock {
    typedef Fused<F> U;
    smem<char> shared;
    const FusedCall &call;
    int first, live;
    CF_DEVICE FusedBlock(smem<char> memory, const FusedCall &c) : shared(memory), call(c) {
        first = int(blockIdx.x) * F::X::P;
        const int left = int(c.rows * c.groups) - first;
        live = left < F::X::P ? left : F::X::P;
    }
    CF_DEVICE void place(int p, int &row, int &group) const {
        const unsigned n = unsigned(first + p), m = unsigned(F::ROWS_FIRST ? call.rows : call.groups);
        row = int(F::ROWS_FIRST ? n % m : n / m);
        group = int(F::ROWS_FIRST ? n / m : n % m);
    }
    template <class K>
    CF_DEVICE Places<K> places(smem<char> table, const FusedSide &side, int column, int columns) const {
        return fused_places<K>(table, side, live, column, columns, (long long)F::IN * F::OUT * U::BINS,
                               [&](int p, int &row, int &group) { place(p, row, group); });
    }
    /* Without phases, one table serves all columns, whose pointers differ. */
    CF_DEVICE Places<typename F::X> x(int column) const {
        if (U::HAS_PHASES_X && column > 0)
            return places<typename F::X>(shared, call.x, column, F::IN);
        return {shared, live};
    }
    CF_DEVICE Places<typename F::Y> y(int column) const {
        if (U::HAS_PHASES_Y && column > 0) {
            __syncthreads(); /* stores read the last one */
            return places<typename F::Y>(shared + U::G::TABLE, call.y, column, F::OUT);
        }
        return {shared + U::G::TABLE, live};
    }
    CF_DEVICE void begin() const {
        fused_tables<typename F::X, typename F::Y>(shared, shared + U::G::TABLE, call, live, F::IN, F::OUT,
                                                   (long long)F::IN * F::OUT * U::BINS,
                                                   [&](int p, int &row, int &group) { place(p, row, group); });
        __syncthreads();
    }
    CF_DEVICE smem<cplx> buffer(int i) const { return smem_cast<cplx>(shared + 2 * U::G::TABLE) + i * U::BUFFER; }
    CF_DEVICE const void *in(int column) const {
        return channel_of<typename F::X>(call.x.memory, column, U::HAS_PHASES_X);
    }
    CF_DEVICE void *out(int column) const {
        return const_cast<void *>(channel_of<typename F::Y>(call.y.memory, column, U::HAS_PHASES_Y));
    }
    CF_DEVICE const void *bias(int column) const {
        typedef typename F::Y::Storage::bits bits;
        return call.bias ? static_cast<const bits *>(call.bias) + (U::HAS_PHASES_Y ? 0 : column) : nullptr;
    }
};

template <class F> CF_DEVICE void fused_scatter(const FusedCall &call) {
    typedef Fused<F> U;
    const FusedBlock<F> block(cf_dynamic_shared<char>(), call);
    block.begin();
    if constexpr (F::IN == 1 && F::OUT == 1) {
        smem<cplx> z = block.buffer(0);
        constexpr bool WHOLE = U::AXIS == 2 && !U::MIRRORS;
        fused_load<typename F::X, WHOLE>(z, block.x(0), block.in(0));
        F::wait(); /* for the weights: the signal was there before their transform began */
        multiply_in_place<F>(z, block.x(0), call.weights);
        fused_store<typename F::Y, WHOLE>(z, block.y(0), block.out(0), block.bias(0), call);
    } else {
#pragma unroll 1
        for (int c = 0; c < F::IN; ++c)
            fused_load<typename F::X, true>(block.buffer(c), block.x(c), block.in(c));
#pragma unroll 1
        for (int i = 0; i < F::CHUNK; ++i) {
            const int o = int(blockIdx.z) * F::CHUNK + i;
            sum_inputs<F>(block.buffer(F::IN), block.buffer(0), block.x(0), call.weights + o * F::W_OUT);
            fused_store<typename F::Y, U::AXIS == 2>(block.buffer(F::IN), block.y(o), block.out(o), block.bias(o),
                                                     call);
            __syncthreads();
        }
    }
}

template <class F> CF_DEVICE void fused_gather(const FusedCall &call) {
    typedef Fused<F> U;
    const FusedBlock<F> block(cf_dynamic_shared<char>(), call);
    block.begin();
    smem<cplx> z = block.buffer(F::CHUNK);
    const int first = int(blockIdx.z) * F::CHUNK;
    const cplx *const weights = call.weights + first * F::W_OUT;
#pragma unroll 1
    for (int c = 0; c < F::IN; ++c) {
        fused_load<typename F::X, U::AXIS == 2>(z, block.x(c), block.in(c));
        if (c == 0)
            add_input<F, true>(block.buffer(0), z, block.x(c), weights);
        else
            add_input<F, false>(block.buffer(0), z, block.x(c), weights + c * F::W_IN);
    }
#pragma unroll 1
    for (int i = 0; i < F::CHUNK; ++i)
        fused_store<typename F::Y, true>(block.buffer(i), block.y(first + i), block.out(first + i),
                                         block.bias(first + i), call);
}

/* Block: groups blockIdx.x * P and following, rows of slice blockIdx.y. */
template <class F> CF_DEVICE void fused_weights(const FusedCall &call) {
    typedef Fused<F> U;
    const long long first = (long long)blockIdx.x * F::X::P, left = call.groups - first;
    const int live = left < F::X::P ? int(left) : F::X::P;
    const long long begin = call.rows * blockIdx.y / call.slices, end = call.rows * (blockIdx.y + 1) / call.slices;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<cplx> buffers = smem_cast<cplx>(shared + 2 * U::G::TABLE), z = buffers + F::IN * U::BUFFER,
               sums = z + U::BUFFER;
    Places<typename F::Y> gy = {shared + U::G::TABLE, live};
    const int first_out = int(blockIdx.z) * F::CHUNK;
#pragma unroll 1
    for (long long now = begin; now < end; ++now) {
        const auto place = [&](int p, int &row, int &group) {
            row = int(now);
            group = int(first) + p;
        };
#pragma unroll 1
        for (int c = 0; c < F::IN; ++c) {
            const int column = U::HAS_PHASES_X ? c : 0;
            const Places<typename F::X> x = fused_places<typename F::X>(shared, call.x, live, column, F::IN, 0, place);
            fused_load<typename F::X, true>(buffers + c * U::BUFFER, x,
                                            channel_of<typename F::X>(call.x.memory, c, U::HAS_PHASES_X));
        }
#pragma unroll 1
        for (int o = 0; o < F::CHUNK; ++o) {
            fused_places<typename F::Y>(shared + U::G::TABLE, call.y, live, 0, F::OUT,
                                        (long long)F::IN * F::OUT * U::BINS, place);
            fused_load<typename F::Y, U::AXIS == 2>(z, gy,
                                                    channel_of<typename F::Y>(call.y.memory, first_out + o, false));
            if (now == begin)
                add_row<F, true>(sums + o * F::IN * U::BUFFER, z, buffers);
            else
                add_row<F, false>(sums + o * F::IN * U::BUFFER, z, buffers);
        }
    }
#pragma unroll 1
    for (int i = 0; i < F::IN * F::CHUNK; ++i) {
        TileCall out = {};
        out.out = call.weights + (blockIdx.y * call.groups * (F::IN * F::OUT) + first_out * F::IN + i) * U::BINS;
        store_bins<typename F::Y, U::G::SWEEP>(sums + i * U::BUFFER, gy, out);
    }
}

/* ------------------------------------------------------------------- one plane of each side, and sums that stay in registers */

CF_DEVICE cplx plus_product(cplx sum, cplx a, cplx b) { /* sum + a conj(b) */
    sum.x += a.x * b.x;
    sum.y += a.y * b.x;
    sum.x += a.y * b.y;
    sum.y -= a.x * b.y;
    return sum;
}

/* The planes of x and those of gy, whose steps share their barriers. */
template <class F> struct BothSides {
    typedef typename F::X Config;
    typedef typename F::Y Y;
    smem<cplx> x, y;
    template <int A, int STEP, bool INVERSE> CF_DEVICE void step() const {
        const TileCall call = {};
        step_of_planes<Config, A, STEP, INVERSE>(x, call);
        step_of_planes<Y, A, STEP, INVERSE, tasks_of_step<Config, A, STEP>()>(y, call);
    }
    template <bool INVERSE> CF_DEVICE void part() const {
        part_lines<Config, INVERSE>(x);
        part_lines<Y, INVERSE>(y);
    }
};

/* The sums of a thread: of all points of its tasks of the last step, or, of lines alone, of its pairs of bins. */
template <class F, bool LINES> struct ThreadSums;
template <class F> struct ThreadSums<F, false> {
    typedef Fused<F> U;
    typedef ColumnTask<typename F::X, U::AXIS, U::STEPS> TaskX;
    typedef ColumnTask<typename F::Y, U::AXIS, U::STEPS> TaskY;
    static constexpr int T = F::X::T, R = TaskX::S::R, COUNT = TaskX::COUNT, EACH = (COUNT + T - 1) / T;
    cplx sum[EACH * R];
    template <class A> static CF_DEVICE void each(A f) {
        unroll<0, EACH>([&](auto i) {
            const int n = int(threadIdx.x) + i * T;
            if (COUNT % T == 0 || n < COUNT)
                f(i, spread_task<typename F::X, COUNT / F::X::P>(n));
        });
    }
    CF_DEVICE void add(smem<cplx> x, smem<cplx> y) {
        each([&](auto i, int n) {
            const TaskX of_x(x, n);
            const TaskY of_y(y, n);
            cplx v[R], u[R];
            get_column(v, of_x);
            transform_column<false>(v, of_x);
            if constexpr (R > 16) /* registers do not hold both, but the places are this thread's */
                of_x.put(v);
            get_column(u, of_y);
            transform_column<false>(u, of_y);
            unroll<0, R>([&](auto r) {
                cplx a = v[r];
                if constexpr (R > 16)
                    a = of_x.plane[of_x.place(r)];
                sum[i * R + r] = plus_product(sum[i * R + r], a, u[r]);
            });
        });
    }
    CF_DEVICE void store(cplx *out, const Places<typename F::Y> &places, smem<cplx> y) const {
        each([&](auto i, int n) {
            const TaskY task(y, n);
            cplx *const to = out + places.spectrum(task.p) + task.bins(1);
            if (task.p < places.live)
                unroll<0, R>([&](auto r) { to[r * TaskY::bin_gap(1)] = sum[i * R + r]; });
        });
    }
};
template <class F> struct ThreadSums<F, true> {
    typedef typename F::Y K;
    typedef Tile<K> G;
    static constexpr int COUNT = K::P * G::SWEEP, EACH = (COUNT + K::T - 1) / K::T;
    cplx sum[2 * EACH];
    template <class A> static CF_DEVICE void each(A f) {
        unroll<0, EACH>([&](auto i) {
            const int n = int(threadIdx.x) + i * K::T;
            if (COUNT % K::T == 0 || n < COUNT)
                f(i, n / G::SWEEP, n % G::SWEEP);
        });
    }
    CF_DEVICE void add(smem<cplx> x, smem<cplx> y) {
        each([&](auto i, int p, int k) {
            cplx v[2], u[2];
            get_bins<typename F::X>(v, x + p * G::PLANE, k);
            get_bins<K>(u, y + p * G::PLANE, k);
            sum[2 * i] = plus_product(sum[2 * i], v[0], u[0]);
            sum[2 * i + 1] = plus_product(sum[2 * i + 1], v[1], u[1]);
        });
    }
    CF_DEVICE void store(cplx *out, const Places<K> &places, smem<cplx>) const {
        each([&](auto i, int p, int k) {
            cplx *const to = out + places.spectrum(p);
            if (p >= places.live)
                return;
            to[k] = sum[2 * i];
            if (K::KIND == HALVES)
                to[G::LINE - k] = sum[2 * i + 1];
        });
    }
};

template <class K>
constexpr long long ROWS_OF_A_SAMPLE = K::AXIS[0]
                                           .slices *K::AXIS[1]
                                           .slices *K::AXIS[2]
                                           .slices *K::AXIS[0]
                                           .tiles *K::AXIS[1]
                                           .tiles *K::AXIS[2]
                                           .tiles *K::AXIS[0]
                                           .shifts *K::AXIS[1]
                                           .shifts *K::AXIS[2]
                                           .shifts;

/* As fused_weights, where IN and CHUNK are 1. The tables of a row are written while the planes of the one before are transformed, or, of few
 * numbers of 16 bits, their planes are read: the block has not to wait for memory. */
template <class F> CF_DEVICE void fused_weight(const FusedCall &call) {
    typedef Fused<F> U;
    typedef typename F::X X;
    typedef typename F::Y Y;
    constexpr bool LINES = U::AXIS == 2;
    const long long first = (long long)blockIdx.x * X::P, left = call.groups - first;
    const int live = left < X::P ? int(left) : X::P, output = int(blockIdx.z);
    const long long begin = call.rows * blockIdx.y / call.slices, end = call.rows * (blockIdx.y + 1) / call.slices;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<cplx> x = smem_cast<cplx>(shared + 2 * U::G::TABLE), y = x + U::BUFFER;
    const Places<X> from_x = {shared, live};
    const Places<Y> from_y = {shared + U::G::TABLE, live};
    const auto find = [&](long long now) {
        const auto place = [&](int p, int &row, int &group) {
            row = int(now);
            group = int(first) + p;
        };
        fused_tables<X, Y>(from_x.table, from_y.table, call, live, F::IN, F::OUT, (long long)F::OUT * U::BINS, place);
    };
    /* Where rows are samples, each is as far from the one before. */
    constexpr bool SAMPLES = ROWS_OF_A_SAMPLE<X> * ROWS_OF_A_SAMPLE<Y> == 1;
    const auto find_next = [&](long long now) {
        if constexpr (!SAMPLES) {
            find(now);
        } else if (int(threadIdx.x) < X::P) {
            const int entry = int(threadIdx.x) * 32;
            smem_cast<long long>(from_x.table + entry)[0] = from_x.signal(int(threadIdx.x)) + call.x.sample_stride;
            smem_cast<long long>(from_y.table + entry)[0] = from_y.signal(int(threadIdx.x)) + call.y.sample_stride;
        }
    };
    static_assert(X::P <= X::T, "a thread for each plane");
    ThreadSums<F, LINES> sums = {};
    find(begin);
    __syncthreads();
    constexpr bool AHEAD = SAMPLES && FEW_SINGLES<X> && FEW_SINGLES<Y>;
    BothSingles<X, Y> numbers;
    const auto load_ahead = [&](long long now) {
        if constexpr (AHEAD) {
            typedef typename X::Storage::bits bits;
            const bits *const of_x = static_cast<const bits *>(channel_of<X>(call.x.memory, 0, false)),
                              *const of_y = static_cast<const bits *>(channel_of<Y>(call.y.memory, output, false));
            numbers.load(from_x, of_x + (now - begin) * call.x.sample_stride, from_y,
                         of_y + (now - begin) * call.y.sample_stride);
        }
    };
    load_ahead(begin);
#pragma unroll 1
    for (long long now = begin; now < end; ++now) {
        if constexpr (AHEAD) {
            numbers.put(x, from_x, y, from_y);
            __syncthreads();
            if (now + 1 < end)
                load_ahead(now + 1);
        } else {
            planes_in<X>(x, from_x, channel_of<X>(call.x.memory, 0, false));
            planes_in<Y>(y, from_y, channel_of<Y>(call.y.memory, output, false));
            planes_arrive<X, Y>();
            if (now + 1 < end)
                find_next(now + 1);
        }
        const BothSides<F> both = {x, y};
        steps_of_axis<2, false>(both);
        if constexpr (!LINES)
            steps_of_axis<1, false, U::AXIS != 1>(both);
        if constexpr (U::AXIS == 0)
            steps_of_axis<0, false, false>(both);
        sums.add(x, y);
        __syncthreads();
    }
    sums.store(call.weights + (blockIdx.y * call.groups * F::OUT + output) * U::BINS, from_y, y);
}

/* sums[0][i] = sum over slices of sums[slice][i], in their order; BATCH of them are on their way before the first one is awaited. */
template <int BATCH> CF_DEVICE void fused_add_slices(cplx *sums, long long count, long long slices) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const cplx *from = sums + i;
    cplx sum = *from;
#pragma unroll 1
    for (int left = int(slices) - 1; left > 0; left -= BATCH) {
        cplx v[BATCH];
        unroll<0, BATCH>([&](auto b) {
            v[b] = {0, 0};
            from += count;
            if (b < left)
                v[b] = get_weight(from);
        });
        unroll<0, BATCH>([&](auto b) {
            if (b < left)
                sum = sum + v[b];
        });
    }
    sums[i] = sum;
}
