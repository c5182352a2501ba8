/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backward weights with one plane of x and one of gy at a time, and sums in registers
 * (fused_register_weights). It replaces fused_weights of shared_memory.cuh for groups of one input column, such as
 * depthwise layers, where the host counts fewer cycles.
 *
 *     for each row of a slice
 *         load x and gy, transform both with shared barriers, except their last step
 *         each thread: last step of its tasks of both, sum += X conj(GY) in registers
 *     store the sums to [slice][group][output][bin]
 *
 *     shared memory     | table of x | table of gy | P planes of x | P planes of gy |
 *
 * Two buffers suffice, and neither spectra of gy nor sums leave registers.
 */
#pragma once

#include "conv/fused/shared_memory.cuh"

CF_DEVICE cplx plus_product(cplx sum, cplx a, cplx b) { /* sum + a conj(b) */
    sum.x += a.x * b.x;
    sum.y += a.y * b.x;
    sum.x += a.y * b.y;
    sum.y -= a.x * b.y;
    return sum;
}

/*
 * The planes of x and of gy for steps_of_axis(): each step transforms both, with one barrier for the two. The tasks
 * of gy begin with the threads that have fewer tasks of x.
 */
template <class F> struct BothSides {
    typedef typename F::X Config;
    typedef typename F::Y Y;
    smem<cplx> x, y;
    template <int A, int STEP, bool INVERSE> CF_DEVICE void step() const {
        const cf_shared_fft_call call = {};
        step_of_planes<Config, A, STEP, INVERSE>(x, call);
        step_of_planes<Y, A, STEP, INVERSE, tasks_of_step<Config, A, STEP>()>(y, call);
    }
    template <bool INVERSE> CF_DEVICE void hermitian_split() const {
        split_lines<Config, INVERSE>(x);
        split_lines<Y, INVERSE>(y);
    }
};

/*
 * The sums of a thread: of all points of its tasks in the last step, or with one axis only (LINES), of its pairs of
 * bins.
 */
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
            if constexpr (R > 16) /* registers do not hold both; no other thread uses these places */
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
    CF_DEVICE void store(cplx *out, const PlaneTable<typename F::Y> &plane_table, smem<cplx> y) const {
        each([&](auto i, int n) {
            const TaskY task(y, n);
            cplx *const to = out + plane_table.spectrum(task.p) + task.bins(1);
            if (task.p < plane_table.live)
                unroll<0, R>([&](auto r) { to[r * TaskY::bin_gap(1)] = sum[i * R + r]; });
        });
    }
};
template <class F> struct ThreadSums<F, true> {
    typedef typename F::Y K;
    typedef PlaneGeometry<K> G;
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
    CF_DEVICE void store(cplx *out, const PlaneTable<K> &plane_table, smem<cplx>) const {
        each([&](auto i, int p, int k) {
            cplx *const to = out + plane_table.spectrum(p);
            if (p >= plane_table.live)
                return;
            to[k] = sum[2 * i];
            if (K::KIND == PACKED_REAL)
                to[G::LINE - k] = sum[2 * i + 1];
        });
    }
};

/* How many rows a sample has. */
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

/* FFT stages of the planes of both sides, all but the last one. */
template <class F> CF_DEVICE void fused_weight_steps(smem<cplx> x, smem<cplx> y) {
    typedef Fused<F> U;
    const BothSides<F> both = {x, y};
    steps_of_axis<2, false>(both);
    if constexpr (U::AXIS < 2)
        steps_of_axis<1, false, U::AXIS != 1>(both);
    if constexpr (U::AXIS == 0)
        steps_of_axis<0, false, false>(both);
}

/*
 * fused_weights with IN = CHUNK = 1. The tables of the next row are written while the planes of this row are
 * transformed. Where planes have few 16-bit elements (AHEAD), the next row is loaded to registers meanwhile, so
 * that the block does not wait for memory.
 */
template <class F> CF_DEVICE void fused_register_weights(const cf_fused_call &call) {
    typedef Fused<F> U;
    typedef typename F::X X;
    typedef typename F::Y Y;
    constexpr bool LINES = U::AXIS == 2;
    const long long first = (long long)blockIdx.x * X::P, left = call.groups - first;
    const int live = left < X::P ? int(left) : X::P, output = int(blockIdx.z);
    const long long begin = call.rows * blockIdx.y / call.slices, end = call.rows * (blockIdx.y + 1) / call.slices;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<cplx> x = smem_cast<cplx>(shared + 2 * U::G::TABLE), y = x + U::BUFFER;
    const PlaneTable<X> from_x = {shared, live};
    const PlaneTable<Y> from_y = {shared + U::G::TABLE, live};
    const auto find = [&](long long now) {
        const auto place = [&](int p, int &row, int &group) {
            row = int(now);
            group = int(first) + p;
        };
        fused_tables<X, Y>(from_x.table, from_y.table, call, live, F::IN, F::OUT, (long long)F::OUT * U::BINS, place);
    };
    /* Where a row is a sample, the next table follows from the last one: all offsets grow by the sample stride. */
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
        fused_weight_steps<F>(x, y);
        sums.add(x, y);
        __syncthreads();
    }
    sums.store(call.weights + (blockIdx.y * call.groups * F::OUT + output) * U::BINS, from_y, y);
}
