/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution passes in one kernel: transforms, products and sums of planes that stay in a block's shared memory, in the lines and steps
 * of tile.cuh. Spectra of signals never reach memory; those of the weights come from a transform before, [group][o][c][bin].
 *
 *     fused_scatter   few planes in, many out (forward of few input channels): the spectra of the inputs stay, outputs pass by
 *     fused_gather    many in, few out (their gradient): the sums stay, inputs pass by
 *     fused_weights   the gradient of the weights: sums over rows stay, x and gy pass by; [slice][group][o][c][bin]
 *
 * A block's P planes differ in the row (sample, shift, tile) and the group; channels are taken one after the other. Where one plane goes in
 * and one out, the spectrum lives in registers between the last step forward and the first one back.
 *
 * A problem F has: X, Y, the configs of what is read and what is written (fused_weights: of x and gy), which agree in their geometry;
 * IN, OUT, their columns per group (fused_weights: of x and gy), CHUNK, those outputs that a block has (blockIdx.z says which); CONJUGATE, whether products take the conjugate of the weights, which are
 * W_IN apart for each input and W_OUT for each output; ROWS_FIRST, whether neighbouring planes differ in the row.
 */
#pragma once

#include "fbfft/kernels/tile.cuh"

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
    static constexpr bool HAS_PHASES_X = X::AXIS[0].phases * X::AXIS[1].phases * X::AXIS[2].phases > 1;
    static constexpr bool HAS_PHASES_Y = Y::AXIS[0].phases * Y::AXIS[1].phases * Y::AXIS[2].phases > 1;
};

/* --------------------------------------------------------------------------------------------------- planes in and out */

/* The table of one column of one side. place(p): row and group of plane p; entries of planes that do not exist are those of another one. */
template <class K, class F>
CF_DEVICE Places<K> fused_places(smem<char> table, const FusedSide &side, int live, int column, int columns,
                                 long long weights, F place) {
    for (int p = int(threadIdx.x); p < K::P; p += K::T) {
        long long row, group;
        place(p < live ? p : live - 1, row, group);
        smem<char> entry = table + p * 32;
        find_plane<K>(entry, row, column, columns, side.sample_stride, group * side.group_stride);
        smem_cast<long long>(entry)[1] = group * weights;
        smem_cast<int>(entry)[7] = smem_cast<int>(entry)[7] + int(group * K::CHANNELS);
    }
    __syncthreads();
    return {table, live};
}

/* Planes of memory into lines, and the steps forward; without the last one unless WHOLE. */
template <class K, bool WHOLE> CF_DEVICE void fused_load(smem<cplx> z, const Places<K> &places, const void *memory) {
    typedef Tile<K> G;
    TileCall call = {};
    call.in = memory;
    if constexpr (K::STAGED)
        load_staged<K, K::WIDE>(z, places, call);
    else
        load_signal<K>(z, places, call);
    __syncthreads();
    axis_steps<K, 2, false, WHOLE || G::LAST != 2>(z, places, call);
    if constexpr (G::LAST <= 1)
        axis_steps<K, 1, false, WHOLE || G::LAST != 1>(z, places, call);
    if constexpr (G::LAST == 0)
        axis_steps<K, 0, false, WHOLE>(z, places, call);
}

/* The steps back, without the first one unless WHOLE, and lines into memory. */
template <class K, bool WHOLE>
CF_DEVICE void fused_store(smem<cplx> z, const Places<K> &places, void *memory, const void *bias, const FusedCall &c) {
    typedef Tile<K> G;
    TileCall call = {};
    call.out = memory;
    call.bias = bias;
    call.scale = c.scale;
    call.accumulate = c.accumulate;
    if constexpr (G::LAST == 0)
        axis_steps<K, 0, true, WHOLE>(z, places, call);
    if constexpr (G::LAST <= 1)
        axis_steps<K, 1, true, WHOLE || G::LAST != 1>(z, places, call);
    axis_steps<K, 2, true, WHOLE || G::LAST != 2>(z, places, call);
    if constexpr (K::STAGED)
        store_staged<K, K::WIDE>(z, places, call);
    else
        store_signal<K>(z, places, call);
}

/* ------------------------------------------------------------------------------------------------------------ products */

CF_DEVICE cplx get_weight(const cplx *p) {
    const typename PairOf<real>::type v = __ldg(reinterpret_cast<const typename PairOf<real>::type *>(p));
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
        const Task task(z, n);
        f(task, weights + places.spectrum(task.p) + task.bins(1));
    }
}

/* Lines that are the only axis: bins k and, of HALVES, N / 2 - k of a plane. */
template <class K> CF_DEVICE void get_bins(cplx *x, smem<cplx> plane, int k) {
    typedef Tile<K> G;
    const cplx a = plane[G::O2::frequency(k)];
    if constexpr (K::KIND == HALVES) {
        const cplx b = plane[G::O2::frequency(k ? G::LINE - k : 0)];
        const cplx even = half(a + conj(b)), odd = root<G::N2>(k) * times_minus_i(half(a - conj(b)));
        x[0] = even + odd;
        x[1] = conj(even - odd);
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
        const cplx last = k ? x[1] : cplx{x[1].x, 0};
        const cplx even = a + conj(last), odd = times_i(conj(root<G::N2>(k)) * (a - conj(last)));
        a = even + odd;
        b = conj(even - odd);
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

/* The first step back ends in z; the task is one of the same step forward. */
template <class F, class Task> CF_DEVICE void put_back(smem<cplx> z, const Task &task, const cplx *v) {
    ColumnTask<typename F::Y, Fused<F>::AXIS, Fused<F>::STEPS>(z, task).put_inverse(v);
}

/* One plane in, one out, in place. */
template <class F>
CF_DEVICE void multiply_in_place(smem<cplx> z, const Places<typename F::X> &places, const cplx *weights) {
    typedef Fused<F> U;
    if constexpr (U::AXIS == 2) {
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
            task.get_forward(v);
            step_transform<typename Task::O, U::STEPS, false, Task::HI>(v, task.t);
            unroll<0, R>([&](auto r) { v[r] = weighed<F::CONJUGATE>(v[r], get_weight(w + r * Task::bin_gap(1))); });
            step_transform<typename Task::O, U::STEPS, true>(v, task.t);
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
            step_transform<typename Task::O, U::STEPS, true>(v, task.t);
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
            task.get_forward(v);
            step_transform<typename Task::O, U::STEPS, false, Task::HI>(v, task.t);
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
            task.get_forward(v);
            step_transform<typename Task::O, U::STEPS, false, Task::HI>(v, task.t);
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
    long long first;
    int live;
    CF_DEVICE FusedBlock(smem<char> memory, const FusedCall &c) : shared(memory), call(c) {
        const long long left = c.rows * c.groups - (long long)blockIdx.x * F::X::P;
        first = (long long)blockIdx.x * F::X::P;
        live = left < F::X::P ? int(left) : F::X::P;
    }
    template <class K>
    CF_DEVICE Places<K> places(smem<char> table, const FusedSide &side, int column, int columns) const {
        return fused_places<K>(table, side, live, column, columns, (long long)F::IN * F::OUT * U::BINS,
                               [&](int p, long long &row, long long &group) {
                                   const long long n = first + p;
                                   row = F::ROWS_FIRST ? n % call.rows : n / call.groups;
                                   group = F::ROWS_FIRST ? n / call.rows : n % call.groups;
                               });
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
        places<typename F::X>(shared, call.x, 0, F::IN);
        places<typename F::Y>(shared + U::G::TABLE, call.y, 0, F::OUT);
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
        fused_load<typename F::X, U::AXIS == 2>(z, block.x(0), block.in(0));
        multiply_in_place<F>(z, block.x(0), call.weights);
        fused_store<typename F::Y, U::AXIS == 2>(z, block.y(0), block.out(0), block.bias(0), call);
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
        const auto place = [&](int p, long long &row, long long &group) {
            row = now;
            group = first + p;
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

/* sums[0][i] = sum over slices of sums[slice][i], in their order. */
CF_DEVICE void fused_add_slices(cplx *sums, long long count, long long slices) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    cplx sum = sums[i];
    for (long long s = 1; s < slices; ++s)
        sum = sum + sums[s * count + i];
    sums[i] = sum;
}
