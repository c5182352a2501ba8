/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes of fused/shared_memory.cuh where few planes stay in the registers of the threads that have the products, for layers of few channels on one side
 * and one group. A thread has the same tasks of the last step forward, which is the first one back, of several planes, so that a number of the
 * weights that it reads serves all of these:
 *
 *     kept_scatter    the spectra of the inputs stay
 *     kept_gather     the sums of the outputs stay
 *     kept_weights    the sums of some outputs with all inputs stay, and spectra of x pass by as well
 *
 * What passes by waits in shared memory for its turn: the weights of a plane, and rows of the signal where tiles have whole ones, which
 * are one piece of memory. BULK: one instruction moves them, and no thread waits for it. SPARE: so many planes of the weights have a place to wait in
 * while those before them are in use.
 *
 * A phase, between two barriers, takes as long as the warp that has most to do: what single threads do for the block is for the last warp, and
 * tasks of a second kind begin behind those of the first one.
 */
#pragma once

#include "conv/fused/shared_memory.cuh"

/* Task i of those of columns, in an order in which sixteen neighbouring threads have columns from a multiple of sixteen on: where lines are in turns
 * of sixteen, these meet no bank twice. Columns that are left over come last. */
template <class K> CF_DEVICE int aligned_task(int i, int tasks) {
    typedef Tile<K> G;
    constexpr int COLUMNS = G::COLUMNS, WHOLE = COLUMNS / 16 * 16, REST = COLUMNS - WHOLE;
    if constexpr (REST == 0 || WHOLE == 0 || G::O2::A % 16 != 0) {
        return i;
    } else {
        const int all = tasks / COLUMNS * WHOLE, j = i - all;
        return i < all ? i / WHOLE * COLUMNS + i % WHOLE : j / REST * COLUMNS + WHOLE + j % REST;
    }
}

/* A number of 0 to LIMIT - 1: divisions by constants are shorter then. */
template <int LIMIT> CF_DEVICE int below(int n) {
#ifndef CF_SIMT
    __builtin_assume(n >= 0 && n < LIMIT);
#endif
    return n;
}

/* This thread's number in the last warp, or less than 0. */
template <class K> CF_DEVICE int in_last_warp() { return int(threadIdx.x) - (K::T - 32); }

/* The first of this thread's tasks, which go round, where OTHERS of another kind in the same phase are for the first threads. */
template <int T, int OTHERS> CF_DEVICE int first_behind() {
    const int n = int(threadIdx.x) - (OTHERS + 31) / 32 * 32 % T;
    return n < 0 ? n + T : n;
}

/* column_step() in that order; beside OTHERS tasks of another kind. */
template <class K, bool INVERSE, int OTHERS = 0> CF_DEVICE void aligned_columns(smem<cplx> z) {
    typedef ColumnTask<K, 1, 1> Task;
#pragma unroll 1
    for (int n = first_behind<K::T, OTHERS>(); n < Task::COUNT; n += K::T) {
        const Task task(z, below<Task::COUNT>(aligned_task<K>(below<Task::COUNT>(n), Task::COUNT)));
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

/* A thread's tasks: TIMES of a plane, of PLANES planes. */
template <class F, class X = typename F::X> struct Kept {
    typedef Fused<F> U;
    typedef ColumnTask<X, U::AXIS, U::STEPS> Task;
    typedef typename Task::O O;
    static_assert(U::AXIS < 2, "lines alone have pairs of bins");
    static constexpr int R = Task::S::R, TASKS = Task::COUNT / X::P, T = X::T;
    static constexpr int SETS = T < 2 * TASKS ? 1 : T / TASKS < X::P ? T / TASKS : X::P;
    static constexpr int TIMES = (TASKS + T - 1) / T, PLANES = (X::P + SETS - 1) / SETS, EACH = TIMES * PLANES;
    static constexpr bool ALL = SETS == 1 ? TASKS % T == 0 : SETS * TASKS == T;
    static constexpr int BUSY = SETS * TASKS; /* threads, once or several times */
    int set, first;
    CF_DEVICE Kept() : set(SETS == 1 ? 0 : int(threadIdx.x) / TASKS), first(int(threadIdx.x) - set * TASKS) {}
    /* f(i, n) for each task i of a plane that is the thread's, n being its number in the plane (aligned_task()); g(q, p): for each plane. */
    template <class A> CF_DEVICE void each_task(A f) const {
        unroll<0, TIMES>([&](auto i) {
            const int n = first + i * T;
            if (ALL || (SETS == 1 ? n < TASKS : set < SETS))
                f(i, below<TASKS>(aligned_task<X>(below<TASKS>(n), TASKS)));
        });
    }
    template <class A> CF_DEVICE void each_plane(A g) const {
        unroll<0, PLANES>([&](auto q) {
            if (X::P % SETS == 0 || set + q * SETS < X::P)
                g(q, set + q * SETS);
        });
    }
    /* Task n of plane p. */
    static CF_DEVICE Task task(smem<cplx> z, int p, int n) { return Task(z + p * Tile<X>::PLANE, n); }
    static CF_DEVICE int gap() { return int(Task::bin_gap(1)); }
};

template <bool CONJUGATE> CF_DEVICE void add_product(cplx &sum, cplx a, cplx w) {
    sum.x += a.x * w.x;
    sum.y += a.y * w.x;
    sum.x -= a.y * (CONJUGATE ? -w.y : w.y);
    sum.y += a.x * (CONJUGATE ? -w.y : w.y);
}

/* The last step forward of a task. */
template <class M> CF_DEVICE void last_step(cplx *v, const typename M::Task &task) {
    get_column(v, task);
    transform_column<false>(v, task);
}
/* And the first one back. */
template <class M, class F> CF_DEVICE void first_back(cplx *v, smem<cplx> z, int p, int n) {
    const typename M::Task task = M::task(z, p, n);
    transform_column<true>(v, task);
    put_back<F>(z + p * Tile<typename F::X>::PLANE, task, v);
}

/* Two numbers as a word. */
CF_DEVICE unsigned word_of_two(fp16, real low, real high) { return pack_halves(float(low), float(high)); }
CF_DEVICE unsigned word_of_two(bf16, real low, real high) { return pack_bf16(float(low), float(high)); }

/* The low halves of two words as one, or, where `high` is 1, the second's high half and that of the first. Which of these is for the caller to know
 * once, as a number: compilers would choose it again for each word. */
CF_DEVICE unsigned which_halves(int high) { return 0x5410u - unsigned(high) * (0x5410u - 0x3276u); }
CF_DEVICE unsigned word_of_halves(unsigned first, unsigned second, unsigned which) {
#ifdef CF_SIMT
    return which == 0x5410u ? (first & 0xffffu) | second << 16 : second >> 16 | (first & 0xffff0000u);
#else
    return __byte_perm(first, second, which);
#endif
}

/* --------------------------------------------------------------------------------------------- pieces of memory in one go */

/* Copies of compute capability 9.0, whose bytes a barrier in shared memory counts. Each of `threads` has bulk_expect() of its own, then starts them.
 * bulk_wait() returns when the barrier's use of this number is over; both places, and sizes, are multiples of 16 bytes. */
#ifdef CF_SIMT
CF_DEVICE void bulk_begin(smem<char> barrier, int threads) { simt::bulk_begin(smem_offset(barrier), threads); }
CF_DEVICE void bulk_expect(smem<char> barrier, int bytes) { simt::bulk_expect(smem_offset(barrier), bytes); }
CF_DEVICE void bulk_get(smem<char> to, const void *from, int bytes, smem<char> barrier) {
    simt::bulk_get(smem_offset(to), from, bytes, smem_offset(barrier));
}
CF_DEVICE void bulk_wait(smem<char> barrier, int use) { simt::bulk_wait(smem_offset(barrier), use & 1); }
CF_DEVICE void bulk_put(void *to, smem<char> from, int bytes) { simt::bulk_put(to, smem_offset(from), bytes); }
CF_DEVICE void bulk_written() { simt::bulk_written(); }
CF_DEVICE void bulk_read() { simt::bulk_read(); }
#else
CF_DEVICE unsigned shared_address(smem<char> p) { return (unsigned)__cvta_generic_to_shared(p); }
CF_DEVICE void bulk_begin(smem<char> barrier, int threads) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(threads) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
CF_DEVICE void bulk_expect(smem<char> barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}
CF_DEVICE void bulk_get(smem<char> to, const void *from, int bytes, smem<char> barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}
CF_DEVICE void bulk_wait(smem<char> barrier, int use) {
    asm volatile("{\n.reg .pred arrived;\nWAIT:\nmbarrier.try_wait.parity.shared.b64 arrived, [%0], %1;\n"
                 "@!arrived bra WAIT;\n}" ::"r"(shared_address(barrier)),
                 "r"(use & 1)
                 : "memory");
}
CF_DEVICE void bulk_put(void *to, smem<char> from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(from)),
                 "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/* Before the barrier behind which bulk_put() reads what this thread has written. */
CF_DEVICE void bulk_written() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/* All of this thread's bulk_put() have read what they copy. */
CF_DEVICE void bulk_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
#endif

/* What planes that pass by are multiplied with: COUNT planes of bins, GAP apart, for each of `count`, which are STEP apart. Place after place of a ring
 * takes the next plane of bins; so the first SPARE of them come while the last plane's are in use. */
template <class F, int COUNT, long long GAP, long long STEP> struct WaitingWeights {
    typedef Fused<F> U;
    static constexpr int BINS = int(U::BINS), BYTES = BINS * int(sizeof(cplx)), PLACES = COUNT + F::SPARE;
    static_assert(F::SPARE <= COUNT && (F::BULK || F::SPARE == 0), "one plane ahead");
    smem<cplx> at;
    smem<char> barriers; /* of every second plane */
    const cplx *from;
    int count;
    /* Of the first plane of bins for i; of another one, where the first has this place. */
    static CF_DEVICE int first(int i) { return F::SPARE == 0 ? 0 : int(unsigned(i * COUNT) % PLACES); }
    CF_DEVICE smem<cplx> place(int first, int c) const {
        return at + first * BINS + (first + c < PLACES ? c : c - PLACES) * BINS;
    }
    CF_DEVICE void get(int i, int c) const {
        smem<char> barrier = barriers + i % 2 * 8;
        if (i >= count)
            return;
        bulk_expect(barrier, BYTES);
        bulk_get(smem_cast<char>(place(first(i), c)), from + (i * STEP + c * GAP), BYTES, barrier);
    }
    CF_DEVICE void begin() const {
        if constexpr (F::BULK) {
            const int c = in_last_warp<typename F::X>();
            if (threadIdx.x == 0) {
                bulk_begin(barriers, COUNT);
                bulk_begin(barriers + 8, COUNT);
            }
            __syncthreads();
            if (c >= 0 && c < F::SPARE)
                get(0, c);
        }
        fetch(0);
    }
    /* Those of plane i and, of SPARE, the next one, as far as there are any; behind the last use of those of plane i - 1. */
    CF_DEVICE void fetch(int i) const {
        if constexpr (F::BULK) {
            const int c = in_last_warp<typename F::X>();
            if (c >= 0 && c < COUNT)
                get(c < F::SPARE ? i + 1 : i, c);
        } else if (i < count) {
#pragma unroll 1
            for (int c = 0; c < COUNT; ++c)
#pragma unroll 4
                for (int n = int(threadIdx.x); n < BINS; n += F::X::T)
                    copy_async<2>(smem_cast<real>(place(first(i), c) + n),
                                  reinterpret_cast<const real *>(from + (i * STEP + c * GAP + n)), true);
        }
    }
    /* Not BULK: behind wait_async() and a barrier. */
    CF_DEVICE void wait(int i) const {
        if constexpr (F::BULK)
            bulk_wait(barriers + i % 2 * 8, i / 2);
    }
};

/* ------------------------------------------------------------------------------------------------------------ whole rows */

/* Tiles that have whole rows of the signal: those of a plane wait one behind the other, as they stand in memory. Of 16 bits, what is read waits as
 * it is, and pieces may begin and end in the middle of 16 bytes, of which the rest comes, too; what is written waits as words of two numbers and
 * leaves without its ends, which a thread moves, or, where lines have no such words (PACKS), waits in FP32, and the block's threads move it. */
template <class K> struct WholeRows {
    typedef Tile<K> G;
    typedef typename K::Storage Storage;
    typedef typename Storage::bits bits;
    static constexpr bool SERVES = G::O2::STEPS == 2 && G::O1::STEPS == 2 && G::PARTS_AT_STEP && G::D0 == 1;
    static constexpr int WIDTH = int(K::AXIS[2].size), UNIT = 16 / int(sizeof(bits));
    /* Numbers of a plane, and of those that begin in the middle. */
    static constexpr long long SIZE =
        ((long long)K::AXIS[1].count * WIDTH + UNIT - 1) / UNIT * UNIT + (Storage::PLAIN ? 0 : UNIT);
    static constexpr int LOW = int(K::AXIS[1].lower > 0 ? K::AXIS[1].lower : 0),
                         HIGH = int(K::AXIS[1].upper < K::AXIS[1].size ? K::AXIS[1].upper : K::AXIS[1].size);
    /* Two neighbouring tasks have words of two numbers of a row, and their warp has both. */
    static constexpr bool PACKS =
        !Storage::PLAIN && WIDTH % 2 == 0 && G::LINE_LO % 2 == 0 && Step<typename G::O2, 1>::TASKS % 4 == 0;
    typedef typename Choice<PACKS, bits, real>::type Waiting; /* what is written */
    /* f(first, at, count): numbers of plane p that are in the signal, from `first` on; where they wait. */
    template <class F> static CF_DEVICE void of_plane(const Places<K> &places, int p, F f) {
        const int start = places.template start<1>(p), low = start > LOW ? start : LOW,
                  high = start + K::AXIS[1].count < HIGH ? start + K::AXIS[1].count : HIGH;
        if (low < high)
            f(low * WIDTH, p * int(SIZE) + (low - start) * WIDTH, (high - low) * WIDTH);
    }
    /* Numbers from 16 bytes of memory to number n of plane p. */
    static CF_DEVICE int beyond(const Places<K> &places, const void *memory, int p, int n) {
        if constexpr (Storage::PLAIN)
            return 0;
        else
            return (int(reinterpret_cast<size_t>(memory) / sizeof(bits)) + int(places.signal(p)) + n) & (UNIT - 1);
    }
    /* By how much what is read of a plane waits further behind, so that 16 bytes there are 16 bytes in memory. */
    static CF_DEVICE int shift(const Places<K> &places, const void *memory, int p) {
        return beyond(places, memory, p, places.template start<1>(p) * WIDTH);
    }
    /* By a thread for each plane. */
    static CF_DEVICE void get(smem<real> rows, const Places<K> &places, const void *memory, smem<char> barrier) {
        constexpr int BYTES = int(sizeof(bits));
        const int p = in_last_warp<K>();
        if (p < 0 || p >= K::P)
            return;
        int bytes = 0;
        smem<char> to = smem_cast<char>(rows);
        const bits *from = static_cast<const bits *>(memory) + places.signal(p);
        of_plane(places, p, [&](int first, int at, int count) {
            const int before = beyond(places, memory, p, first), all = before + count;
            to = to + (at + shift(places, memory, p) - before) * BYTES;
            from += first - before;
            bytes = (Storage::PLAIN ? all : (all + UNIT - 1) / UNIT * UNIT) * BYTES;
        });
        bulk_expect(barrier, bytes);
        if (bytes > 0)
            bulk_get(to, from, bytes, barrier);
    }
    /* By a thread for each plane; of 16 bits by two, or by all. */
    static CF_DEVICE void put(smem<real> rows, const Places<K> &places, const TileCall &call) {
        if constexpr (Storage::PLAIN) {
            const int p = in_last_warp<K>();
            if (p < 0 || p >= places.live)
                return;
            of_plane(places, p, [&](int first, int at, int count) {
                bulk_put(static_cast<real *>(call.out) + places.signal(p) + first, smem_cast<char>(rows + at),
                         count * int(sizeof(real)));
            });
        } else if constexpr (PACKS) {
            static_assert(K::P <= 16, "a warp has two threads for each");
            const int n = in_last_warp<K>(), p = n % 16;
            if (n < 0 || p >= places.live)
                return;
            of_plane(places, p, [&](int first, int at, int count) {
                constexpr int BYTES = int(sizeof(bits));
                bits *const to = static_cast<bits *>(call.out) + places.signal(p) + first;
                smem<char> from = smem_cast<char>(rows) + (at + shift(places, call.out, p)) * BYTES;
                const int before = (UNIT - beyond(places, call.out, p, first)) % UNIT,
                          whole = (count - before) / UNIT * UNIT, end = before + whole;
                if (n < 16) {
                    if (whole > 0)
                        bulk_put(to + before, from + before * BYTES, whole * BYTES);
                } else {
                    if (before > 0)
                        *reinterpret_cast<uint2 *>(to) = smem_cast<uint2>(from)[0];
                    if (end < count)
                        *reinterpret_cast<uint2 *>(to + end) = smem_cast<uint2>(from + end * BYTES)[0];
                }
            });
        } else {
#pragma unroll 1
            for (int p = 0; p < places.live; ++p)
                of_plane(places, p, [&](int first, int at, int count) {
                    bits *const to = static_cast<bits *>(call.out) + places.signal(p) + first;
#pragma unroll 2
                    for (int n = 4 * int(threadIdx.x); n < count; n += 4 * K::T) {
                        const float4 four = smem_cast<float4>(rows + at)[n / 4];
                        const real v[4] = {four.x, four.y, four.z, four.w};
                        put_numbers<K, 4, 4>(to + n, v, 0, true, false, call.accumulate);
                    }
                });
        }
    }
    /* Those that were read and wait, from one of them on. */
    struct Read {
#ifdef CF_SIMT
        smem<real> rows;
        int first;
        CF_DEVICE Read(smem<real> r, int from) : rows(r), first(from) {}
        CF_DEVICE real operator[](int i) const {
            const int n = first + i;
            if constexpr (Storage::PLAIN)
                return rows[n];
            else
                return Storage::number((unsigned short)(smem_cast<unsigned>(rows)[n / 2] >> n % 2 * 16));
        }
#else
        smem<bits> at; /* a constant away from which places are known without instructions */
        CF_DEVICE Read(smem<real> rows, int from) : at(smem_cast<bits>(rows) + from) {}
        CF_DEVICE real operator[](int i) const {
            if constexpr (Storage::PLAIN)
                return at[i];
            else
                return Storage::number(at[i]);
        }
#endif
    };
};

/* Tasks of a step of lines along axis 2, of which neighbouring threads have eight lines by four. */
template <class K, int STEP> struct LineTask {
    typedef Tile<K> G;
    typedef typename G::O2 O;
    typedef Step<O, STEP> S;
    static constexpr int LINES = K::P * G::DR, GROUPS = (LINES + 7) / 8, TASKS = S::TASKS,
                         SIDE = TASKS % 4 == 0   ? 4
                                : TASKS % 2 == 0 ? 2
                                                 : 1,
                         COUNT = 8 * GROUPS * TASKS;
    int line, t, p, row; /* row: of pairs */
    bool exists;
    CF_DEVICE LineTask(int n)
        : line(n % 8 + n / (8 * SIDE) % GROUPS * 8), t(n / 8 % SIDE + n / (8 * SIDE * GROUPS) * SIDE), p(line / G::DR),
          row(line % G::DR + G::ROW_LO), exists(LINES % 8 == 0 || line < LINES) {}
    CF_DEVICE smem<cplx> place(smem<cplx> z) const { return z + (p * G::PLANE + row * G::PITCH + S::start(t)); }
    /* Of the pair's rows, where row 0 of the plane waits, and which of them there are. */
    CF_DEVICE int waits() const {
        return p * int(WholeRows<K>::SIZE) + (2 * row - G::template lo<1>()) * WholeRows<K>::WIDTH;
    }
    CF_DEVICE bool has(int h) const {
        const int i = 2 * row + h;
        return i >= G::template lo<1>() && i < G::template hi<1>();
    }
};

/* Beside OTHERS tasks of another kind. */
template <class K, int STEP, bool INVERSE, int OTHERS = 0> CF_DEVICE void step_of_lines(smem<cplx> z) {
    typedef LineTask<K, STEP> Task;
    typedef typename Task::S S;
#pragma unroll 1
    for (int n = first_behind<K::T, OTHERS>(); n < Task::COUNT; n += K::T) {
        const Task task(below<Task::COUNT>(n));
        if (!task.exists)
            continue;
        smem<cplx> at = task.place(z);
        cplx v[S::R];
        unroll<0, S::R>([&](auto r) { v[r] = at[r * S::STRIDE]; });
        step_of_data<typename Task::O, STEP, INVERSE>(v, task.t);
        unroll<0, S::R>([&](auto r) { at[r * S::STRIDE] = v[r]; });
    }
}
template <class K>
CF_DEVICE void lines_from_rows(smem<cplx> z, smem<real> rows, const Places<K> &places, const void *memory) {
    typedef Tile<K> G;
    typedef WholeRows<K> W;
    typedef LineTask<K, 1> Task;
    typedef typename Task::S S;
#pragma unroll 1
    for (int n = int(threadIdx.x); n < Task::COUNT; n += K::T) {
        const Task task(below<Task::COUNT>(n));
        if (!task.exists)
            continue;
        const int c = places.template start<1>(task.p) + 2 * task.row - G::template lo<1>();
        const bool first = task.has(0) && c >= W::LOW && c < W::HIGH,
                   second = task.has(1) && c + 1 >= W::LOW && c + 1 < W::HIGH;
        const typename W::Read from(rows,
                                    task.waits() + task.t - G::template lo<2>() + W::shift(places, memory, task.p));
        cplx v[S::R];
        unroll<0, S::R>([&](auto r) {
            constexpr int GAP = decltype(r)::value * S::TIME_GAP;
            v[r] = {0, 0};
            if constexpr (GAP < G::LINE_HI && GAP + S::TASKS > G::LINE_LO) {
                const int j = task.t + GAP;
                const bool in =
                    (GAP >= G::LINE_LO || j >= G::LINE_LO) && (GAP + S::TASKS <= G::LINE_HI || j < G::LINE_HI);
                if (in && first)
                    v[r].x = from[GAP];
                if (in && second)
                    v[r].y = from[GAP + W::WIDTH];
            }
        });
        step_of_data<typename Task::O, 1, false, G::LINE_LO, G::LINE_HI>(v, task.t);
        smem<cplx> at = task.place(z);
        unroll<0, S::R>([&](auto r) { at[r * S::STRIDE] = v[r]; });
    }
}
template <class K> CF_DEVICE real old_number(typename K::Storage::bits bits) {
    if constexpr (K::Storage::PLAIN)
        return bits;
    else
        return K::Storage::number(bits);
}
template <class K, bool ACCUMULATE>
CF_DEVICE void lines_to_rows_of(smem<cplx> z, smem<real> rows, const Places<K> &places, const TileCall &call) {
    typedef Tile<K> G;
    typedef WholeRows<K> W;
    typedef LineTask<K, 1> Task;
    typedef typename Task::S S;
    const real scale = real(call.scale);
#pragma unroll 1
    for (int n = int(threadIdx.x); n < Task::COUNT; n += K::T) {
        Task task(below<Task::COUNT>(n));
        if (!task.exists) {
            if constexpr (!W::PACKS)
                continue;
            task.p = 0; /* its warp exchanges numbers */
            task.row = G::ROW_LO;
        }
        smem<cplx> at = task.place(z);
        cplx v[S::R];
        unroll<0, S::R>([&](auto r) { v[r] = at[r * S::STRIDE]; });
        step_of_data<typename Task::O, 1, true>(v, task.t);
        real bias = 0;
        if (call.bias)
            bias = K::Storage::load(static_cast<const typename W::bits *>(call.bias) + places.channel(task.p));
        unroll<0, S::R>([&](auto r) { v[r] = {scale * v[r].x + bias, scale * v[r].y + bias}; });
        const int c = places.template start<1>(task.p) + 2 * task.row - G::template lo<1>(),
                  x = task.t - G::template lo<2>();
        smem<real> to = rows + (task.waits() + x);
        const typename W::bits *const old =
            static_cast<const typename W::bits *>(call.out) + places.signal(task.p) + (long long)c * W::WIDTH + x;
        const int odd = task.t % 2;
        const unsigned which = which_halves(odd);
        smem<unsigned> words = smem_cast<unsigned>(rows);
        if constexpr (W::PACKS)
            words = words + (task.waits() + W::shift(places, call.out, task.p) + x + odd * (W::WIDTH - 1)) / 2;
        const bool mine = task.exists && task.has(odd);
        unroll<0, S::R>([&](auto r) {
            constexpr int GAP = decltype(r)::value * S::TIME_GAP;
            if constexpr (GAP < G::LINE_HI && GAP + S::TASKS > G::LINE_LO) {
                const int j = task.t + GAP;
                const bool in =
                    (GAP >= G::LINE_LO || j >= G::LINE_LO) && (GAP + S::TASKS <= G::LINE_HI || j < G::LINE_HI);
                if (in) {
                    if constexpr (ACCUMULATE) {
                        if (task.has(0) && c >= W::LOW && c < W::HIGH)
                            v[r].x += old_number<K>(old[GAP]);
                        if (task.has(1) && c + 1 >= W::LOW && c + 1 < W::HIGH)
                            v[r].y += old_number<K>(old[GAP + W::WIDTH]);
                    }
                    if constexpr (!W::PACKS) {
                        if (task.has(0))
                            to[GAP] = v[r].x;
                        if (task.has(1))
                            to[GAP + W::WIDTH] = v[r].y;
                    }
                }
                if constexpr (W::PACKS) {
                    /* The first task gets the word of the first row, its neighbour that of the second one. */
                    const unsigned two = word_of_two(typename K::Storage(), v[r].x, v[r].y),
                                   other = __shfl_xor_sync(0xffffffffu, two, 8);
                    if (mine && in)
                        words[GAP / 2] = word_of_halves(two, other, which);
                }
            }
        });
    }
}

template <class K>
CF_DEVICE void lines_to_rows(smem<cplx> z, smem<real> rows, const Places<K> &places, const TileCall &call) {
    constexpr bool ADDS = K::Storage::PLAIN || WholeRows<K>::PACKS; /* else put() does */
    if (call.accumulate && ADDS)
        lines_to_rows_of<K, ADDS>(z, rows, places, call);
    else
        lines_to_rows_of<K, false>(z, rows, places, call);
}

/* --------------------------------------------------------------------------------------------------------- planes in and out */

/* planes_in(), which wait_async() ends. */
template <class K> CF_DEVICE void kept_in(smem<cplx> z, const Places<K> &places, const void *memory) {
    if constexpr (CAN_SWEEP<K> && K::Storage::PLAIN && K::KIND == PAIRS)
        load_rows<K, K::STAGED ? K::WIDE : 1, true>(z, places, memory);
    else
        planes_in<K>(z, places, memory);
}
CF_DEVICE void kept_arrive() {
    wait_async();
    __syncthreads();
}

/* The steps back but the first one, and lines into memory; a barrier must follow before lines change. */
template <class K> CF_DEVICE void kept_store(smem<cplx> z, const Places<K> &places, const TileCall &call) {
    fused_steps_back<K, false>(z, call);
    planes_out<K>(z, places, call);
}

/* ------------------------------------------------------------------------------------------------------------- kernels */

/* What a block's shared memory holds behind the tables: lines of one plane or two that pass by; weights; rows that wait; barriers of weights, and of
 * rows. */
template <class F, int COUNT, int BUFFERS, class Rows, class Waiting> struct KeptShared {
    typedef Fused<F> U;
    static_assert(!F::WHOLE || (F::BULK && Rows::SERVES), "two steps along both axes");
    static constexpr int ROWS = F::WHOLE ? int(Rows::SIZE * F::X::P * sizeof(Waiting) / sizeof(real)) : 0,
                         ROUND = 16 / int(sizeof(cplx));
    static constexpr int AT_WEIGHTS = (BUFFERS * U::BUFFER + ROUND - 1) / ROUND * ROUND,
                         AT_ROWS = AT_WEIGHTS + ((COUNT + F::SPARE) * int(U::BINS) + ROUND - 1) / ROUND * ROUND;
};

/* WHOLE: one output is a phase ahead of the one before it, so that there is a barrier for two phases, and threads that have nothing to do in
 * one have something in the other. */
template <class F> CF_DEVICE void kept_scatter(const FusedCall &call) {
    typedef Kept<F> M;
    typedef typename M::Task Task;
    typedef typename F::Y Y;
    typedef KeptShared<F, F::IN, F::WHOLE ? 2 : 1, WholeRows<Y>, typename WholeRows<Y>::Waiting> Layout;
    const FusedBlock<F> block(cf_dynamic_shared<char>(), call);
    const M mine;
    const int begin = int(blockIdx.z) * F::CHUNK;
    smem<real> rows = smem_cast<real>(block.buffer(0) + Layout::AT_ROWS);
    smem<char> barrier = smem_cast<char>(rows + Layout::ROWS);
    const WaitingWeights<F, F::IN, F::W_IN, F::W_OUT> waiting = {block.buffer(0) + Layout::AT_WEIGHTS, barrier,
                                                                 call.weights + begin * F::W_OUT, F::CHUNK};
    waiting.begin();
    block.begin();
    cplx x[M::EACH][F::IN][M::R];
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
    const auto buffer = [&](int o) { return block.buffer(F::WHOLE ? o & 1 : 0); };
    const auto multiply = [&](int o) {
        smem<cplx> z = buffer(o);
        const int first = waiting.first(o);
        waiting.wait(o);
        mine.each_task([&](auto i, int n) {
            cplx v[M::PLANES][M::R];
            unroll<0, M::PLANES * M::R>([&](auto r) { v[r / M::R][r % M::R] = {0, 0}; });
            unroll<0, F::IN>([&](auto c) {
                smem<cplx> at = waiting.place(first, c) + int(Task(z, n).bins(1));
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
    if constexpr (F::WHOLE) {
        typedef LineTask<Y, 1> Line;
        const Places<Y> places = block.y(0);
        multiply(0);
        __syncthreads();
        waiting.fetch(1);
        aligned_columns<Y, true>(buffer(0));
        __syncthreads();
#pragma unroll 1
        for (int o = 0; o < F::CHUNK; ++o) {
            const bool more = o + 1 < F::CHUNK;
            if (more)
                multiply(o + 1);
            step_of_lines<Y, 2, true, M::BUSY>(buffer(o));
            if (in_last_warp<Y>() >= 0)
                bulk_read();
            __syncthreads();
            waiting.fetch(o + 2);
            if (more)
                aligned_columns<Y, true, Line::COUNT>(buffer(o + 1));
            lines_to_rows<Y>(buffer(o), rows, places, to(o));
            bulk_written();
            __syncthreads();
            WholeRows<Y>::put(rows, places, to(o));
        }
        if (in_last_warp<Y>() >= 0)
            bulk_read();
    } else {
#pragma unroll 1
        for (int o = 0; o < F::CHUNK; ++o) {
            wait_async();
            __syncthreads();
            multiply(o);
            __syncthreads();
            waiting.fetch(o + 1);
            kept_store<Y>(buffer(o), block.y(begin + o), to(o));
        }
    }
}

/* The steps forward but the last one of `count` planes that pass by, and what follows: add(i). fetch(i) brings a plane, whose rows or lines were
 * fetched from memory(i), for i = 0, and are there; weights: what add(i) multiplies with; noted(i): after the last use of places(i).
 * AHEAD: one plane is a phase ahead of the one before it, as in kept_scatter; that has been slower where compilers spill. */
template <class M, class K, bool WHOLE, bool AHEAD, class Fetch, class Weights, class Buffer, class Where, class Memory,
          class Add, class Noted>
CF_DEVICE void each_passing(int count, smem<real> rows, smem<char> barrier, Fetch fetch, const Weights &weights,
                            Buffer buffer, Where places, Memory memory, Add add, Noted noted) {
    typedef LineTask<K, 1> Line;
    if constexpr (WHOLE && AHEAD) {
        bulk_wait(barrier, 0);
        lines_from_rows<K>(buffer(0), rows, places(0), memory(0));
        __syncthreads();
        fetch(1);
        noted(0);
        step_of_lines<K, 2, false>(buffer(0));
        __syncthreads();
    }
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
        const bool more = i + 1 < count;
        if constexpr (WHOLE && AHEAD) {
            aligned_columns<K, false, Line::COUNT>(buffer(i));
            if (more) {
                bulk_wait(barrier, i + 1);
                lines_from_rows<K>(buffer(i + 1), rows, places(i + 1), memory(i + 1));
            }
            __syncthreads();
            fetch(i + 2);
        } else if constexpr (WHOLE) {
            bulk_wait(barrier, i);
            lines_from_rows<K>(buffer(i), rows, places(i), memory(i));
            __syncthreads();
            fetch(i + 1);
            noted(i);
            step_of_lines<K, 2, false>(buffer(i));
            __syncthreads();
            aligned_columns<K, false>(buffer(i));
            __syncthreads();
        } else {
            kept_arrive();
            fetch(i + 1);
            noted(i);
            fused_steps<K, false>(buffer(i));
        }
        add(i);
        if (WHOLE && AHEAD && more)
            step_of_lines<K, 2, false, M::BUSY>(buffer(i + 1));
        __syncthreads();
        weights.fetch(i + 1);
        if (WHOLE && AHEAD)
            noted(i + 1);
    }
}

template <class F> CF_DEVICE void kept_gather(const FusedCall &call) {
    typedef Kept<F> M;
    typedef typename M::Task Task;
    typedef typename F::X X;
    typedef typename F::Y Y;
    typedef KeptShared<F, F::CHUNK, F::WHOLE ? 1 : 2, WholeRows<X>, typename X::Storage::bits> Layout;
    const FusedBlock<F> block(cf_dynamic_shared<char>(), call);
    const M mine;
    const int begin = int(blockIdx.z) * F::CHUNK;
    const cplx *const weights = call.weights + begin * F::W_OUT;
    smem<real> rows = smem_cast<real>(block.buffer(0) + Layout::AT_ROWS);
    smem<char> barrier = smem_cast<char>(rows + Layout::ROWS);
    const WaitingWeights<F, F::CHUNK, F::W_OUT, F::W_IN> waiting = {block.buffer(0) + Layout::AT_WEIGHTS, barrier,
                                                                    weights, F::IN};
    const Places<X> places = {block.shared, block.live};
    const auto buffer = [&](int c) { return block.buffer(F::WHOLE ? 0 : c & 1); };
    const auto fetch = [&](int c) {
        if (c >= F::IN)
            return;
        if constexpr (!F::WHOLE)
            kept_in<X>(buffer(c), block.x(c), block.in(c));
        else
            WholeRows<X>::get(rows, places, block.in(c), barrier + 16);
    };
    if constexpr (F::BULK)
        if (threadIdx.x == 0)
            bulk_begin(barrier + 16, X::P);
    waiting.begin();
    block.begin();
    cplx sums[M::EACH][F::CHUNK][M::R];
    unroll<0, M::EACH * F::CHUNK * M::R>([&](auto n) {
        sums[n / (F::CHUNK * M::R)][n / M::R % F::CHUNK][n % M::R] = {0, 0};
    });
    const auto add = [&](int c) {
        const int first = waiting.first(c);
        waiting.wait(c);
        mine.each_task([&](auto i, int n) {
            cplx v[M::PLANES][M::R];
            mine.each_plane([&](auto q, int p) { last_step<M>(v[q], M::task(buffer(c), p, n)); });
            unroll<0, F::CHUNK>([&](auto o) {
                smem<cplx> at = waiting.place(first, o) + int(Task(buffer(c), n).bins(1));
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
    each_passing<M, X, F::WHOLE, false>(
        F::IN, rows, barrier + 16, fetch, waiting, buffer, [&](int) { return places; },
        [&](int c) { return block.in(c); }, add, [](int) {});
#pragma unroll 1
    for (int o = 0; o < F::CHUNK; ++o) {
        smem<cplx> z = block.buffer(0);
        mine.each_task([&](auto i, int n) {
            mine.each_plane([&](auto q, int p) {
                cplx v[M::R];
                unroll<0, F::CHUNK>([&](auto k) {
                    if (o == k)
                        unroll<0, M::R>([&](auto r) { v[r] = sums[i * M::PLANES + q][k][r]; });
                });
                first_back<M, F>(v, z, p, n);
            });
        });
        __syncthreads();
        kept_store<Y>(z, block.y(begin + o), fused_call<Y>(block.out(begin + o), block.bias(begin + o), call));
        __syncthreads();
    }
}

/* Block: outputs blockIdx.z * P and following, rows of slice blockIdx.y, of which the spectra of x are in memory: [row][c][bin]. Tables are of
 * two rows, one of which is on its way. */
template <class F> CF_DEVICE void kept_weights(const FusedCall &call) {
    typedef typename F::Y K;
    typedef Kept<F, K> M;
    typedef typename M::U U;
    typedef typename M::Task Task;
    typedef KeptShared<F, F::IN, 2, WholeRows<K>, typename K::Storage::bits> Layout;
    const long long begin = call.rows * blockIdx.y / call.slices, end = call.rows * (blockIdx.y + 1) / call.slices;
    const int first_out = int(blockIdx.z) * K::P;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<cplx> buffers = smem_cast<cplx>(shared + 2 * U::G::TABLE);
    smem<real> rows = smem_cast<real>(buffers + Layout::AT_ROWS);
    smem<char> barrier = smem_cast<char>(rows + Layout::ROWS);
    const M mine;
    const int count = int(end - begin);
    const WaitingWeights<F, F::IN, U::BINS, F::IN *U::BINS> x = {
        buffers + Layout::AT_WEIGHTS, barrier, static_cast<const cplx *>(call.x.memory) + begin * (F::IN * U::BINS),
        count};
    const auto places = [&](int i) { return Places<K>{shared + (i & 1) * U::G::TABLE, K::P}; };
    const auto buffer = [&](int i) { return buffers + (i & 1) * U::BUFFER; };
    const auto find = [&](int i) {
        const int p = in_last_warp<K>();
        if (i < count && p >= 0 && p < K::P)
            fused_entry<K>(places(i).table + p * 32, call.y, int(begin) + i, 0, first_out + p, F::OUT, 0);
    };
    const auto fetch = [&](int i) {
        if (i >= count)
            return;
        if constexpr (!F::WHOLE)
            kept_in<K>(buffer(i), places(i), call.y.memory);
        else
            WholeRows<K>::get(rows, places(i), call.y.memory, barrier + 16);
    };
    if constexpr (F::BULK)
        if (threadIdx.x == 0)
            bulk_begin(barrier + 16, K::P);
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
    each_passing<M, K, F::WHOLE, true>(
        count, rows, barrier + 16, fetch, x, buffer, places, [&](int) { return call.y.memory; }, add,
        [&](int i) { find(i + 2); });
    cplx *const out = call.weights + (blockIdx.y * (F::OUT * F::IN) + first_out * F::IN) * U::BINS;
    mine.each_task([&](auto i, int n) {
        mine.each_plane([&](auto q, int p) {
            const Task task(buffers, n);
            unroll<0, F::IN>([&](auto c) {
                cplx *const to = out + (p * F::IN + c) * U::BINS + task.bins(1);
                unroll<0, M::R>([&](auto r) { to[r * M::gap()] = sums[i * M::PLANES + q][c][r]; });
            });
        });
    });
}
