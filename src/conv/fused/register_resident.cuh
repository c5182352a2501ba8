/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms, products, sums and inverse transforms in one kernel, with the spectra or sums of few planes in registers.
 * For layers with one group and few channels on one side, such as the first layer of a network.
 *
 *     kernel               stays in registers                       streamed, one plane after the other
 *     resident_scatter     spectra of all IN inputs                 outputs, CHUNK of them
 *     resident_gather      sums of CHUNK outputs                    inputs
 *     resident_weights     sums of P outputs with all IN inputs     gy and the spectra of x, row by row
 *
 * In resident_scatter and resident_gather, a block has P rows (samples or tiles) of one group. In resident_weights, its
 * P planes are of P outputs.
 *
 *     shared memory     | table | table | 1 or 2 buffers of P planes | ring of weights | staged rows | mbarriers |
 *     registers         [task and plane of the thread][channel that stays][point of the task]
 *
 * The host prints a problem F as for shared_memory.cuh, and also:
 *
 *     BULK           whether bulk copies move the weights (compute capability 9.0)
 *     PREFETCH       how many planes of weights are loaded ahead (prefetch_weights.cuh)
 *     WHOLE_ROWS     whether rows of a plane are copied as one piece (whole_rows.cuh); it needs BULK
 *
 * What limits the speed are instructions: see "interval" in register_tasks.cuh.
 */
#pragma once

#include "conv/fused/prefetch_weights.cuh"
#include "conv/fused/shared_memory.cuh"
#include "conv/fused/whole_rows_fft.cuh"

/* Starts to load planes, by cp.async where that is possible. They are there after resident_arrive(). */
template <class K> CF_DEVICE void resident_in(smem<cplx> z, const PlaneTable<K> &plane_table, const void *memory) {
    if constexpr (CAN_SWEEP<K> && K::Storage::PLAIN && K::KIND == TWO_ROWS_AS_COMPLEX)
        load_rows<K, K::STAGED ? K::VECTOR : 1, true>(z, plane_table, memory);
    else
        planes_in<K>(z, plane_table, memory);
}
CF_DEVICE void resident_arrive() {
    wait_async();
    __syncthreads();
}

/* All inverse steps but the first, and the store. A barrier must follow before the planes are changed. */
template <class K>
CF_DEVICE void resident_store(smem<cplx> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    fused_steps_back<K, false>(z, call);
    planes_out<K>(z, plane_table, call);
}

/* Offsets in the shared memory behind the tables (geometry.h). ROWS: numbers of the staged rows. */
template <class F, int COUNT, int BUFFERS, class Rows, class Staged> struct ResidentShared {
    typedef Fused<F> U;
    static_assert(!F::WHOLE_ROWS || (F::BULK && Rows::SERVES), "two steps along both axes");
    static constexpr int ROWS = F::WHOLE_ROWS ? int(Rows::SIZE * F::X::P * sizeof(Staged) / sizeof(real)) : 0;
    static constexpr cf_resident_offsets AT =
        cf_resident_offsets_of(BUFFERS * U::BUFFER, (COUNT + F::PREFETCH) * U::BINS, int(sizeof(cplx)));
    static constexpr int AT_WEIGHTS = int(AT.weights), AT_ROWS = int(AT.rows);
};

/*
 * Transforms all inputs, one after the other, and leaves their spectra in registers. These begin as zeros: ptxas 13.0
 * loses a spectrum of an earlier input if the registers have no values before the loop.
 */
template <class F>
CF_DEVICE void resident_inputs(cplx (&x)[Resident<F>::EACH][F::IN][Resident<F>::R], const Resident<F> &mine,
                               const FusedBlock<F> &block) {
    typedef Resident<F> M;
    unroll<0, M::EACH * F::IN * M::R>([&](auto n) { x[n / (F::IN * M::R)][n / M::R % F::IN][n % M::R] = {0, 0}; });
#pragma unroll 1
    for (int c = 0; c < F::IN; ++c) {
        smem<cplx> z = block.buffer(0);
        fused_load<typename F::X, false>(z, block.x(c), block.in(c));
        mine.each_task([&](auto i, int n) {
            mine.each_plane([&](auto q, int p) {
                cplx v[M::R];
                last_step<M>(v, M::task(z, p, n));
                unroll<0, F::IN>([&](auto k) {
                    if (c == k)
                        unroll<0, M::R>([&](auto r) { x[i * M::PLANES + q][k][r] = v[r]; });
                });
            });
        });
        __syncthreads();
    }
}

/*
 * The loop over `count` outputs whose rows are stored as one piece (whole_rows.cuh). multiply(o) leaves the product of
 * output o in buffer(o), after its first inverse step. Two outputs are in work at a time, one of them an interval ahead
 * of the other. So one barrier serves both, and threads without a task of one output have one of the other.
 *
 *     weights     ring of what multiply(o) multiplies with
 *     to(o)       the arguments of the store of output o
 */
template <class M, class Y, class Weights, class Buffer, class Multiply, class To>
CF_DEVICE void resident_store_rows(int count, smem<real> rows, const Weights &weights, Buffer buffer,
                                   const PlaneTable<Y> &plane_table, Multiply multiply, To to) {
    typedef LineTask<Y, 1> Line;
    multiply(0);
    __syncthreads();
    weights.fetch(1);
    aligned_columns<Y, true>(buffer(0));
    __syncthreads();
#pragma unroll 1
    for (int o = 0; o < count; ++o) {
        const bool more = o + 1 < count;
        if (more)
            multiply(o + 1);
        step_of_lines<Y, 2, true, M::BUSY>(buffer(o));
        if (in_last_warp<Y>() >= 0)
            tma_store_wait_read();
        __syncthreads();
        weights.fetch(o + 2);
        if (more)
            aligned_columns<Y, true, Line::COUNT>(buffer(o + 1));
        lines_to_rows<Y>(buffer(o), rows, plane_table, to(o));
        tma_store_fence();
        __syncthreads();
        WholeRows<Y>::put(rows, plane_table, to(o));
    }
    if (in_last_warp<Y>() >= 0)
        tma_store_wait_read();
}

/* Few inputs, whose spectra stay in registers; many outputs, stored one after the other. */
template <class F> CF_DEVICE void resident_scatter(const cf_fused_call &call) {
    typedef Resident<F> M;
    typedef typename M::Task Task;
    typedef typename F::Y Y;
    typedef ResidentShared<F, F::IN, F::WHOLE_ROWS ? 2 : 1, WholeRows<Y>, typename WholeRows<Y>::Staged> Layout;
    const FusedBlock<F> block(cf_dynamic_shared<char>(), call);
    const M mine;
    const int begin = int(blockIdx.z) * F::CHUNK;
    smem<real> rows = smem_cast<real>(block.buffer(0) + Layout::AT_ROWS);
    smem<char> barrier = smem_cast<char>(rows + Layout::ROWS);
    const PrefetchRing<F, F::IN, F::W_IN, F::W_OUT> ring = {block.buffer(0) + Layout::AT_WEIGHTS, barrier,
                                                            call.weights + begin * F::W_OUT, F::CHUNK};
    ring.begin();
    block.begin();
    cplx x[M::EACH][F::IN][M::R];
    resident_inputs<F>(x, mine, block);
    const auto buffer = [&](int o) { return block.buffer(F::WHOLE_ROWS ? o & 1 : 0); };
    const auto multiply = [&](int o) {
        smem<cplx> z = buffer(o);
        const int first = ring.first(o);
        ring.wait(o);
        mine.each_task([&](auto i, int n) {
            cplx v[M::PLANES][M::R];
            unroll<0, M::PLANES * M::R>([&](auto r) { v[r / M::R][r % M::R] = {0, 0}; });
            unroll<0, F::IN>([&](auto c) {
                smem<cplx> at = ring.place(first, c) + int(Task(z, n).bins(1));
                unroll<0, M::R>([&](auto r) {
                    const cplx w = at[r * M::gap()];
                    unroll<0, M::PLANES>(
                        [&](auto q) { add_product<F::CONJUGATE>(v[q][r], x[i * M::PLANES + q][c][r], w); });
                });
            });
            mine.each_plane([&](auto q, int p) { first_back<M, F>(v[q], z, p, n); });
        });
    };
    const auto to = [&](int o) { return fused_call<Y>(block.out(begin + o), block.bias(begin + o), call); };
    if constexpr (F::WHOLE_ROWS) {
        resident_store_rows<M, Y>(F::CHUNK, rows, ring, buffer, block.y(0), multiply, to);
    } else {
#pragma unroll 1
        for (int o = 0; o < F::CHUNK; ++o) {
            wait_async();
            __syncthreads();
            multiply(o);
            __syncthreads();
            ring.fetch(o + 1);
            resident_store<Y>(buffer(o), block.y(begin + o), to(o));
        }
    }
}

/*
 * The loop over `count` streamed planes, which are read one after the other. It transforms plane i but for its last
 * step, and then calls add(i).
 *
 *     fetch(i)               starts to load plane i. The caller has called fetch(0).
 *     weights                ring of what add(i) multiplies with
 *     buffer(i)              where plane i is transformed
 *     plane_table(i)         the table of plane i
 *     memory(i)              the memory of plane i
 *     after_use(i)           is called after the last use of plane_table(i)
 *
 * AHEAD: one plane is an interval ahead of the other, as in resident_store_rows(). It is slower where the compiler
 * spills registers.
 */
template <class M, class K, bool WHOLE_ROWS, bool AHEAD, class Fetch, class Weights, class Buffer, class Tables,
          class Memory, class Add, class AfterUse>
CF_DEVICE void for_streamed(int count, smem<real> rows, smem<char> barrier, Fetch fetch, const Weights &weights,
                            Buffer buffer, Tables plane_table, Memory memory, Add add, AfterUse after_use) {
    typedef LineTask<K, 1> Line;
    if constexpr (WHOLE_ROWS && AHEAD) {
        mbarrier_wait(barrier, 0);
        lines_from_rows<K>(buffer(0), rows, plane_table(0), memory(0));
        __syncthreads();
        fetch(1);
        after_use(0);
        step_of_lines<K, 2, false>(buffer(0));
        __syncthreads();
    }
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
        const bool more = i + 1 < count;
        if constexpr (WHOLE_ROWS && AHEAD) {
            aligned_columns<K, false, Line::COUNT>(buffer(i));
            if (more) {
                mbarrier_wait(barrier, i + 1);
                lines_from_rows<K>(buffer(i + 1), rows, plane_table(i + 1), memory(i + 1));
            }
            __syncthreads();
            fetch(i + 2);
        } else if constexpr (WHOLE_ROWS) {
            mbarrier_wait(barrier, i);
            lines_from_rows<K>(buffer(i), rows, plane_table(i), memory(i));
            __syncthreads();
            fetch(i + 1);
            after_use(i);
            step_of_lines<K, 2, false>(buffer(i));
            __syncthreads();
            aligned_columns<K, false>(buffer(i));
            __syncthreads();
        } else {
            resident_arrive();
            fetch(i + 1);
            after_use(i);
            fused_steps<K, false>(buffer(i));
        }
        add(i);
        if (WHOLE_ROWS && AHEAD && more)
            step_of_lines<K, 2, false, M::BUSY>(buffer(i + 1));
        __syncthreads();
        weights.fetch(i + 1);
        if (WHOLE_ROWS && AHEAD)
            after_use(i + 1);
    }
}

/* Transforms the sums of the outputs `begin` and on back, and stores them. */
template <class F>
CF_DEVICE void resident_outputs(const cplx (&sums)[Resident<F>::EACH][F::CHUNK][Resident<F>::R],
                                const Resident<F> &mine, const FusedBlock<F> &block, const cf_fused_call &call,
                                int begin) {
    typedef Resident<F> M;
    typedef typename F::Y Y;
#pragma unroll 1
    for (int o = 0; o < F::CHUNK; ++o) {
        smem<cplx> z = block.buffer(0);
        mine.each_task([&](auto i, int n) {
            mine.each_plane([&](auto q, int p) {
                cplx v[M::R];
                unroll<0, F::CHUNK>([&](auto k) {
                    if (k == 0 || o == k) /* v has a value on every path */
                        unroll<0, M::R>([&](auto r) { v[r] = sums[i * M::PLANES + q][k][r]; });
                });
                first_back<M, F>(v, z, p, n);
            });
        });
        __syncthreads();
        resident_store<Y>(z, block.y(begin + o), fused_call<Y>(block.out(begin + o), block.bias(begin + o), call));
        __syncthreads();
    }
}

/* Many inputs; few outputs, whose sums stay in registers. */
template <class F> CF_DEVICE void resident_gather(const cf_fused_call &call) {
    typedef Resident<F> M;
    typedef typename M::Task Task;
    typedef typename F::X X;
    typedef ResidentShared<F, F::CHUNK, F::WHOLE_ROWS ? 1 : 2, WholeRows<X>, typename X::Storage::bits> Layout;
    const FusedBlock<F> block(cf_dynamic_shared<char>(), call);
    const M mine;
    const int begin = int(blockIdx.z) * F::CHUNK;
    const cplx *const weights = call.weights + begin * F::W_OUT;
    smem<real> rows = smem_cast<real>(block.buffer(0) + Layout::AT_ROWS);
    smem<char> barrier = smem_cast<char>(rows + Layout::ROWS);
    const PrefetchRing<F, F::CHUNK, F::W_OUT, F::W_IN> ring = {block.buffer(0) + Layout::AT_WEIGHTS, barrier, weights,
                                                               F::IN};
    const PlaneTable<X> plane_table = {block.shared, block.live};
    const auto buffer = [&](int c) { return block.buffer(F::WHOLE_ROWS ? 0 : c & 1); };
    const auto fetch = [&](int c) {
        if (c >= F::IN)
            return;
        if constexpr (!F::WHOLE_ROWS)
            resident_in<X>(buffer(c), block.x(c), block.in(c));
        else
            WholeRows<X>::get(rows, plane_table, block.in(c), barrier + 16);
    };
    if constexpr (F::BULK)
        if (threadIdx.x == 0)
            mbarrier_init(barrier + 16, X::P);
    ring.begin();
    block.begin();
    cplx sums[M::EACH][F::CHUNK][M::R];
    unroll<0, M::EACH * F::CHUNK * M::R>([&](auto n) {
        sums[n / (F::CHUNK * M::R)][n / M::R % F::CHUNK][n % M::R] = {0, 0};
    });
    const auto add = [&](int c) {
        const int first = ring.first(c);
        ring.wait(c);
        mine.each_task([&](auto i, int n) {
            cplx v[M::PLANES][M::R];
            mine.each_plane([&](auto q, int p) { last_step<M>(v[q], M::task(buffer(c), p, n)); });
            unroll<0, F::CHUNK>([&](auto o) {
                smem<cplx> at = ring.place(first, o) + int(Task(buffer(c), n).bins(1));
                unroll<0, M::R>([&](auto r) {
                    const cplx w = at[r * M::gap()];
                    unroll<0, M::PLANES>(
                        [&](auto q) { add_product<F::CONJUGATE>(sums[i * M::PLANES + q][o][r], v[q][r], w); });
                });
            });
        });
    };
    fetch(0);
    __syncthreads();
    for_streamed<M, X, F::WHOLE_ROWS, false>(
        F::IN, rows, barrier + 16, fetch, ring, buffer, [&](int) { return plane_table; },
        [&](int c) { return block.in(c); }, add, [](int) {});
    resident_outputs<F>(sums, mine, block, call, begin);
}

/* Stores the sums of a block's planes, [output][input][bin]. */
template <class F, class M>
CF_DEVICE void resident_sums_out(cplx *out, const cplx (&sums)[M::EACH][F::IN][M::R], const M &mine,
                                 smem<cplx> buffers) {
    typedef typename M::Task Task;
    mine.each_task([&](auto i, int n) {
        mine.each_plane([&](auto q, int p) {
            const Task task(buffers, n);
            unroll<0, F::IN>([&](auto c) {
                cplx *const to = out + (p * F::IN + c) * M::U::BINS + task.bins(1);
                unroll<0, M::R>([&](auto r) { to[r * M::gap()] = sums[i * M::PLANES + q][c][r]; });
            });
        });
    });
}

/*
 * Backward weights. A block has the P outputs from blockIdx.z * P on, and the rows of slice blockIdx.y. Another
 * kernel has written the spectra of x, [row][input][bin], to which call.x points. The ring holds them in place of
 * weights. call.weights receives the sums. The two tables are of two rows of gy: one in use, and the
 * next one.
 */
template <class F> CF_DEVICE void resident_weights(const cf_fused_call &call) {
    typedef typename F::Y K;
    typedef Resident<F, K> M;
    typedef typename M::U U;
    typedef typename M::Task Task;
    typedef ResidentShared<F, F::IN, 2, WholeRows<K>, typename K::Storage::bits> Layout;
    const long long begin = call.rows * blockIdx.y / call.slices, end = call.rows * (blockIdx.y + 1) / call.slices;
    const int first_out = int(blockIdx.z) * K::P;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<cplx> buffers = smem_cast<cplx>(shared + 2 * U::G::TABLE);
    smem<real> rows = smem_cast<real>(buffers + Layout::AT_ROWS);
    smem<char> barrier = smem_cast<char>(rows + Layout::ROWS);
    const M mine;
    const int count = int(end - begin);
    const PrefetchRing<F, F::IN, U::BINS, F::IN *U::BINS> x = {
        buffers + Layout::AT_WEIGHTS, barrier, static_cast<const cplx *>(call.x.memory) + begin * (F::IN * U::BINS),
        count};
    const auto plane_table = [&](int i) { return PlaneTable<K>{shared + (i & 1) * U::G::TABLE, K::P}; };
    const auto buffer = [&](int i) { return buffers + (i & 1) * U::BUFFER; };
    const auto find = [&](int i) {
        const int p = in_last_warp<K>();
        if (i < count && p >= 0 && p < K::P)
            fused_entry<K>(plane_table(i).table + p * 32, call.y, int(begin) + i, 0, first_out + p, F::OUT, 0);
    };
    const auto fetch = [&](int i) {
        if (i >= count)
            return;
        if constexpr (!F::WHOLE_ROWS)
            resident_in<K>(buffer(i), plane_table(i), call.y.memory);
        else
            WholeRows<K>::get(rows, plane_table(i), call.y.memory, barrier + 16);
    };
    if constexpr (F::BULK)
        if (threadIdx.x == 0)
            mbarrier_init(barrier + 16, K::P);
    x.begin();
    find(0);
    find(1);
    __syncthreads();
    fetch(0);
    __syncthreads();
    cplx sums[M::EACH][F::IN][M::R];
    unroll<0, M::EACH * F::IN * M::R>([&](auto n) { sums[n / (F::IN * M::R)][n / M::R % F::IN][n % M::R] = {0, 0}; });
    const auto add = [&](int row) {
        const int first = x.first(row);
        x.wait(row);
        mine.each_task([&](auto i, int n) {
            cplx v[M::PLANES][M::R];
            mine.each_plane([&](auto q, int p) { last_step<M>(v[q], M::task(buffer(row), p, n)); });
            unroll<0, F::IN>([&](auto c) {
                smem<cplx> at = x.place(first, c) + int(Task(buffer(row), n).bins(1));
                unroll<0, M::R>([&](auto r) {
                    const cplx w = at[r * M::gap()];
                    unroll<0, M::PLANES>([&](auto q) { add_product<true>(sums[i * M::PLANES + q][c][r], w, v[q][r]); });
                });
            });
        });
    };
    for_streamed<M, K, F::WHOLE_ROWS, true>(
        count, rows, barrier + 16, fetch, x, buffer, plane_table, [&](int) { return call.y.memory; }, add,
        [&](int i) { find(i + 2); });
    cplx *const out = call.weights + (blockIdx.y * (F::OUT * F::IN) + first_out * F::IN) * U::BINS;
    resident_sums_out<F, M>(out, sums, mine, buffers);
}
