/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution of long signals, one line to a block.
 *
 * A line of 2 H real numbers is H complex ones, z[n] = x[n] + i x[n + H]: the polynomial of x modulo Z^H - i. Its values at the H roots of that
 * modulus are multiplied like those of any other transform, and since the modulus divides Z^(2 H) + 1, what wraps around comes back negative.
 * Nothing has to be parted into the spectra of two real halves, and a bin never meets its mirror image.
 *
 * Bin k is the value at exp(-2 pi i (k - 1/4) / H). With H = R1 R2 R3, n = (R2 R3) a + R3 b + c and k = k1 + R1 k2 + R1 R2 k3, step s sums over
 * one of a, b, c. Each is a tree of butterflies
 *
 *     level l     u + r v, u - r v     r = exp(-2 pi i ((K - 1/4) / F + j) / 2^l)     K, F: bins known before, how many there are
 *
 * six multiply-adds each with all twiddles inside. The inverse is a tree of the same kind over k3, k2, k1, whose last one also turns back by
 * exp(-i pi n / 2 H). Bins and rows stay in the order in which trees leave them: place p of R has index reversed(p).
 *
 *     shared memory   [p1][b][c] -> [p1][p2][c] -> [p1][p2][p3], one exchange between steps, in place
 *     spectra         [p3 / 2][p1][p2][p3 % 2], which no other kernel reads
 */
#pragma once

#include "fbfft/common/storage.cuh"
#include "fbfft/shared_memory/in_place_order.cuh"

/* ------------------------------------------------------------------------------------------------------------- butterflies */

__host__ __device__ constexpr int cf_log2(int n) { return n > 1 ? 1 + cf_log2(n / 2) : 0; }
__host__ __device__ constexpr int cf_reversed(int p, int n) {
    int reversed = 0;
    for (; n > 1; n /= 2, p /= 2)
        reversed = 2 * reversed + p % 2;
    return reversed;
}
/* The number of root j of a level among those that a tree needs, for half of each level is the other half times -i; and back. */
__host__ __device__ constexpr int cf_root_number(int level, int j) { return level > 1 ? (1 << (level - 2)) + j : 0; }
__host__ __device__ constexpr int cf_root_level(int number) { return number ? cf_log2(number) + 2 : 1; }
__host__ __device__ constexpr int cf_root_index(int number) {
    return number ? number - (1 << (cf_root_level(number) - 2)) : 0;
}

/* How many roots of a tree of r points are kept in memory: LoadedRoots. */
__host__ __device__ constexpr int cf_stored_roots(int r) { return r >= 16 ? 3 * r / 8 : r / 2; }

/* a + r b, a - r b */
CF_DEVICE void butterfly(cplx &a, cplx &b, cplx r) {
    const cplx sum = {a.x + r.x * b.x - r.y * b.y, a.y + r.x * b.y + r.y * b.x};
    b = {real(fma(real(2), a.x, -sum.x)), real(fma(real(2), a.y, -sum.y))}; /* compilers would add twice */
    a = sum;
}

/* v[reversed(k)] <- sum_j v[j] exp(+- 2 pi i j (k / R + what the roots say)). LATE roots serve for terms j > 0 alone, which lets those of term 0
 * be another's product with a common factor. */
template <int R, bool INVERSE, int FIRST_LEVEL = 1, class A, class B>
CF_DEVICE void tree(cplx *v, const A &roots, const B &late) {
    unroll<FIRST_LEVEL, cf_log2(R) + 1>([&](auto level) {
        constexpr int L = decltype(level)::value, NODES = 1 << (L - 1), HALF = R >> L, OWN = NODES > 1 ? NODES / 2 : 1;
        unroll<0, NODES>([&](auto node) {
            constexpr int J = cf_reversed(decltype(node)::value, NODES), FIRST = decltype(node)::value * 2 * HALF;
            constexpr bool TURNED = J >= OWN;
            constexpr int NUMBER = cf_root_number(L, J % OWN);
            unroll<0, HALF>([&](auto i) {
                cplx &a = v[FIRST + i], &b = v[FIRST + HALF + i];
                const auto go = [&](auto r) {
                    if constexpr (!decltype(r)::ONE)
                        butterfly(a, b, TURNED ? (INVERSE ? times_i(r.w) : times_minus_i(r.w)) : r.w);
                    else {
                        const cplx t = TURNED ? (INVERSE ? times_i(b) : times_minus_i(b)) : b;
                        b = a - t;
                        a = a + t;
                    }
                };
                if constexpr (decltype(i)::value == 0)
                    go(roots.template get<NUMBER>());
                else
                    go(late.template get<NUMBER>());
            });
        });
    });
}
struct AnyRoot {
    static constexpr bool ONE = false;
    cplx w;
};
struct RootOne {
    static constexpr bool ONE = true;
    cplx w;
};

/* Of the first step forward: nothing is known but the quarter. */
struct QuarterRoots {
    template <int E> CF_DEVICE AnyRoot get() const {
        constexpr int N = 4 << cf_root_level(E), K = 4 * cf_root_index(E) - 1;
        constexpr real c = real(cf_cos(K, N)), s = real(-cf_sin(K, N));
        return {{c, s}};
    }
};
/* The tree of those; REAL: of numbers without imaginary parts. */
template <int R, bool REAL> CF_DEVICE void quarter_tree(cplx *v) {
    const QuarterRoots roots;
    if constexpr (REAL)
        unroll<0, R / 2>([&](auto a) {
            constexpr real h = real(0.70710678118654752440);
            const real x = v[a].x, y = v[R / 2 + a].x;
            v[a] = {x + h * y, h * y};
            v[R / 2 + a] = {x - h * y, -h * y};
        });
    tree<R, false, REAL ? 2 : 1>(v, roots, roots);
}
/* Of the first step back. */
struct PlainRoots {
    template <int E> CF_DEVICE auto get() const {
        constexpr int N = 1 << cf_root_level(E), K = cf_root_index(E);
        constexpr real c = real(cf_cos(K, N)), s = real(cf_sin(K, N));
        if constexpr (K == 0)
            return RootOne{};
        else
            return AnyRoot{{c, s}};
    }
};
/* Roots of a tree of R points in registers: COUNT of them, or all. Half of the deepest level's are not in memory, but the other half turned by
 * an eighth: first-level caches are small. */
template <int R, bool INVERSE, int COUNT = R / 2> struct LoadedRoots {
    static constexpr int STORED = cf_stored_roots(R);
    cplx w[COUNT];
    template <int E> CF_DEVICE AnyRoot get() const { return {w[E]}; }
    /* Pairs are `stride` apart. */
    CF_DEVICE explicit LoadedRoots(const float4 *from, int stride) {
        load<0, (COUNT < STORED ? COUNT : STORED)>(from, stride);
        if constexpr (COUNT > STORED)
            deepen();
    }
    template <int FIRST, int END> CF_DEVICE void load(const float4 *from, int stride) {
        unroll<FIRST / 2, END / 2>([&](auto i) {
            const float4 q = __ldg(from + (i - FIRST / 2) * stride);
            w[2 * i] = {q.x, q.y};
            w[2 * i + 1] = {q.z, q.w};
        });
    }
    CF_DEVICE void deepen() {
        unroll<STORED, R / 2>([&](auto e) { w[e] = twiddle < INVERSE ? -1 : 1, 8 > (w[e - (R / 2 - STORED)]); });
    }
    CF_DEVICE LoadedRoots() {}
};

/* ------------------------------------------------------------------------------------------------------------------ geometry */

/* K: R1, R2, R3 (1: two steps), T threads to a line. */
template <class K> struct Long {
    static constexpr int R1 = K::R1, R2 = K::R2, R3 = K::R3, T = K::T;
    static constexpr bool THREE = R3 > 1;
    static constexpr int H = R1 * R2 * R3, M = R2 * R3, LAST = THREE ? R3 : R2, TASKS = H / LAST;
    /* Rows of LAST numbers an odd number of 16 bytes apart; where eight of them are shorter than all banks, so are theirs. */
    static constexpr int CP = THREE ? R3 + 2 : 1, MP = THREE ? R2 * CP + (R3 < 16 ? 8 : 0) : R2 + 2;
    static constexpr int SIZE = R1 * MP, BYTES = SIZE * int(sizeof(cplx));
    static constexpr int FIRST_EACH = M / T, LAST_EACH = TASKS / T;
    static_assert(FIRST_EACH * T == M && LAST_EACH * T == TASKS, "threads share the work evenly");
    static CF_DEVICE int place(int p1, int m) { return p1 * MP + (THREE ? m / R3 * CP + m % R3 : m); }
    static CF_DEVICE int row(int task) { return THREE ? task / R2 * MP + task % R2 * CP : task * MP; }
};

/* Roots of the steps in memory, two at a time: [pair][node]. */
template <int R1, int R2, int R3> struct __align__(16) ForwardRoots {
    static constexpr int NODES = R1 * R2,
                         COUNT = cf_stored_roots(R3); /* of a step of R3 points behind R1 R2 known bins */
    cplx w[COUNT / 2][NODES][2];
    __host__ __device__ constexpr ForwardRoots() : w{} {
        for (int e = 0; e < COUNT; ++e)
            for (int p = 0; p < NODES; ++p) {
                const int known = cf_reversed(p / R2, R1) + R1 * cf_reversed(p % R2, R2),
                          n = 4 * NODES << cf_root_level(e), k = 4 * known - 1 + 4 * NODES * cf_root_index(e);
                w[e / 2][p][e % 2] = {real(cf_cos(k, n)), real(-cf_sin(k, n))};
            }
    }
};
template <int R1, int R2, int R3>
__device__ const ForwardRoots<R1, R2, R3> cf_forward_roots = ForwardRoots<R1, R2, R3>();
template <int C, int R> struct __align__(16) BackwardRoots {
    static constexpr int NODES = C, COUNT = cf_stored_roots(R); /* of a step of R bins, behind C known times */
    cplx w[COUNT / 2][NODES][2];
    __host__ __device__ constexpr BackwardRoots() : w{} {
        for (int e = 0; e < COUNT; ++e)
            for (int c = 0; c < C; ++c) {
                const int n = C << cf_root_level(e), k = c + C * cf_root_index(e);
                w[e / 2][c][e % 2] = {real(cf_cos(k, n)), real(cf_sin(k, n))};
            }
    }
};
template <int C, int R> __device__ const BackwardRoots<C, R> cf_backward_roots = BackwardRoots<C, R>();
/* Of the last step back, where those of term 0 bring the turn of all and the scale with them: LATE ones without, but for the deepest level, DEEP
 * ones of that level with them, and these themselves. */
template <int M, int R> struct __align__(16) TurningRoots {
    static constexpr int LATE = R / 4, STORED = cf_stored_roots(R), COUNT = STORED + 2;
    cplx w[COUNT / 2][M][2];
    __host__ __device__ constexpr TurningRoots() : w{} {
        const int h = M * R, n = 4 * h;
        for (int m = 0; m < M; ++m) {
            for (int e = 0; e < STORED; ++e) {
                const int k = (m + M * cf_root_index(e)) * (n / (M << cf_root_level(e))) - (e < LATE ? 0 : m);
                const double scale = e < LATE ? 1.0 : 1.0 / h;
                w[e / 2][m][e % 2] = {real(scale * cf_cos(k, n)), real(scale * cf_sin(k, n))};
            }
            w[COUNT / 2 - 1][m][0] = {real(cf_cos(m, n) / h), real(-cf_sin(m, n) / h)};
        }
    }
};
template <int M, int R> __device__ const TurningRoots<M, R> cf_turning_roots = TurningRoots<M, R>();
template <class T> CF_DEVICE const float4 *as_quads(const T &roots) {
    return reinterpret_cast<const float4 *>(roots.w);
}

/* -------------------------------------------------------------------------------------------------------------------- steps */

/* COUNT neighbouring numbers in shared memory, by twos. */
template <int COUNT> CF_DEVICE void get_row(cplx *v, smem<cplx> from) {
    unroll<0, COUNT / 2>([&](auto i) {
        const float4 q = smem_cast<float4>(from)[int(i)];
        v[2 * i] = {q.x, q.y};
        v[2 * i + 1] = {q.z, q.w};
    });
}
template <int COUNT> CF_DEVICE void put_row(smem<cplx> to, const cplx *v) {
    unroll<0, COUNT / 2>([&](auto i) {
        smem_cast<float4>(to)[int(i)] = make_float4(v[2 * i].x, v[2 * i].y, v[2 * i + 1].x, v[2 * i + 1].y);
    });
}

/* Points of step 1 into z: columns of a COLUMN, which is made from `line`. */
template <class K, class COLUMN, class LINE> CF_DEVICE void first_forward(smem<cplx> z, int t, LINE line) {
    typedef Long<K> G;
#pragma unroll
    for (int i = 0; i < G::FIRST_EACH; ++i) {
        const int m = t + i * G::T;
        const COLUMN column(line, m);
        cplx v[G::R1];
        unroll<0, G::R1>([&](auto a) { v[a] = column.template get<decltype(a)::value>(); });
        quarter_tree<G::R1, COLUMN::REAL>(v);
        smem<cplx> at = z + G::place(0, m);
        unroll<0, G::R1>([&](auto p) { at[p * G::MP] = v[p]; });
    }
}

/* v exp(-i pi A / 2 R) */
template <int A, int R> CF_DEVICE cplx turned(cplx v) {
    constexpr real c = real(cf_cos(A, 4 * R)), s = real(cf_sin(A, 4 * R));
    return {c * v.x + s * v.y, c * v.y - s * v.x};
}
/* What a tree leaves, in the order of time, with the share of the turn that a tells. */
template <int R> CF_DEVICE void turn_all(cplx *u, const cplx *v) {
    unroll<0, R>([&](auto p) {
        constexpr int A = cf_reversed(decltype(p)::value, R);
        u[A] = turned<A, R>(v[p]);
    });
}
/* put(m, v): the result's numbers M a + m are v[a]. By THREADS threads. */
template <class K, int THREADS = K::T, class F> CF_DEVICE void last_backward(smem<cplx> z, int t, F put) {
    typedef Long<K> G;
    typedef TurningRoots<G::M, G::R1> Roots;
    static_assert(G::M % THREADS == 0 || G::M < THREADS, "threads share the work evenly, or some have none");
#pragma unroll
    for (int i = 0; i < (G::M + THREADS - 1) / THREADS; ++i) {
        const int m = t + i * THREADS;
        if (G::M < THREADS && m >= G::M)
            return;
        const float4 *const from = as_quads(cf_turning_roots<G::M, G::R1>) + m;
        const float4 q = __ldg(from + (Roots::COUNT / 2 - 1) * G::M);
        const cplx turn = {q.x, q.y};
        const LoadedRoots<G::R1, true, Roots::LATE> late(from, G::M);
        LoadedRoots<G::R1, true> roots;
        unroll<0, Roots::LATE>([&](auto e) { roots.w[e] = late.w[e] * turn; });
        roots.template load<Roots::LATE, Roots::STORED>(from + Roots::LATE / 2 * G::M, G::M);
        roots.deepen();
        smem<cplx> at = z + G::place(0, m);
        cplx v[G::R1], u[G::R1];
        unroll<0, G::R1>([&](auto p) { v[cf_reversed(decltype(p)::value, G::R1)] = at[p * G::MP]; });
        v[0] = v[0] * turn;
        tree<G::R1, true>(v, roots, late);
        turn_all<G::R1>(u, v);
        put(m, u);
    }
}

/* Between the exchanges of step 1, a warp has rows p1 of its own, and the steps upon them share nothing with other warps: R1 / WARPS rows,
 * whose tasks of the last step are task_of(). */
template <class K, int WARPS> CF_DEVICE int task_of(int thread, int i) {
    static_assert(!Long<K>::THREE || K::R1 % WARPS == 0, "warps have whole rows");
    return thread / 32 * (Long<K>::TASKS / WARPS) + thread % 32 + i * 32;
}
/* Step 2 of three, whose tasks are (p1, c), on LINES lines at a time, SIZE apart; where a thread has several, two are neighbours and share
 * their roots forward. */
template <class K, int WARPS, int LINES, bool INVERSE> CF_DEVICE void middle_step(smem<cplx> z, int thread) {
    typedef Long<K> G;
    constexpr int R = G::R2, C = G::R3, LANES = 32 / LINES, ROWS = G::R1 / WARPS, EACH = ROWS * C / LANES,
                  WIDE = EACH % 2 ? 1 : 2, OF_ROW = C / WIDE;
#pragma unroll
    for (int i = 0; i < EACH / WIDE; ++i) {
        const int n = thread % LANES + i * LANES, p1 = thread / 32 * ROWS + n / OF_ROW, c = n % OF_ROW * WIDE;
        smem<cplx> at = z + (thread % 32 / LANES * G::SIZE + p1 * G::MP + c);
        cplx v[WIDE][R];
        unroll<0, R>([&](auto p) {
            constexpr int TO = INVERSE ? cf_reversed(decltype(p)::value, R) : decltype(p)::value;
            if constexpr (WIDE == 2) {
                const float4 q = smem_cast<float4>(at + p * G::CP)[0];
                v[0][TO] = {q.x, q.y};
                v[WIDE - 1][TO] = {q.z, q.w};
            } else {
                v[0][TO] = at[p * G::CP];
            }
        });
        if constexpr (INVERSE) {
            const float4 *const from = as_quads(cf_backward_roots<C, R>) + c;
            unroll<0, WIDE>([&](auto w) {
                const LoadedRoots<R, true> roots(from + int(w), C);
                tree<R, true>(v[w], roots, roots);
            });
        } else {
            const LoadedRoots<R, false> roots(as_quads(cf_forward_roots<1, G::R1, R>) + p1, G::R1);
            unroll<0, WIDE>([&](auto w) { tree<R, false>(v[w], roots, roots); });
        }
        unroll<0, R>([&](auto p) {
            constexpr int TO = INVERSE ? cf_reversed(decltype(p)::value, R) : decltype(p)::value;
            if constexpr (WIDE == 2)
                smem_cast<float4>(at + TO * G::CP)[0] =
                    make_float4(v[0][p].x, v[0][p].y, v[WIDE - 1][p].x, v[WIDE - 1][p].y);
            else
                at[TO * G::CP] = v[0][p];
        });
    }
}

/* Task of the last step: its bins, in their order in spectra; and back. */
template <class K> CF_DEVICE void task_forward(cplx *v, smem<cplx> z, int task) {
    typedef Long<K> G;
    const LoadedRoots<G::LAST, false> roots(
        as_quads(cf_forward_roots < G::THREE ? G::R1 : 1, G::THREE ? G::R2 : G::R1, G::LAST >) + task, G::TASKS);
    get_row<G::LAST>(v, z + G::row(task));
    tree<G::LAST, false>(v, roots, roots);
}
template <class K, int FIRST_LEVEL = 1> CF_DEVICE void task_backward(smem<cplx> z, const cplx *bins, int task) {
    typedef Long<K> G;
    constexpr int R = G::LAST;
    cplx v[R], u[R];
    unroll<0, R>([&](auto p) { v[cf_reversed(decltype(p)::value, R)] = bins[p]; });
    const PlainRoots roots;
    tree<R, true, FIRST_LEVEL>(v, roots, roots);
    unroll<0, R>([&](auto p) { u[cf_reversed(decltype(p)::value, R)] = v[p]; });
    put_row<R>(z + G::row(task), u);
}

/* Pair q of a task's bins in a spectrum. */
template <class K> CF_DEVICE int spectrum_place(int q, int task) { return q * Long<K>::TASKS + task; }
template <class K> CF_DEVICE void put_bins(cplx *spectrum, const cplx *v, int task) {
    unroll<0, Long<K>::LAST / 2>([&](auto q) {
        reinterpret_cast<float4 *>(spectrum)[spectrum_place<K>(q, task)] =
            make_float4(v[2 * q].x, v[2 * q].y, v[2 * q + 1].x, v[2 * q + 1].y);
    });
}

/* From step 1 to before the last one, and back. */
template <class K, int WARPS = K::T / 32, int LINES = 1> CF_DEVICE void middle_forward(smem<cplx> z, int thread) {
    if constexpr (LINES * K::T > 32)
        __syncthreads();
    else
        __syncwarp();
    if constexpr (Long<K>::THREE) {
        middle_step<K, WARPS, LINES, false>(z, thread);
        __syncwarp();
    }
}
template <class K, int WARPS = K::T / 32> CF_DEVICE void middle_backward(smem<cplx> z, int thread) {
    __syncwarp();
    if constexpr (Long<K>::THREE)
        middle_step<K, WARPS, 1, true>(z, thread);
    if constexpr (WARPS > 1)
        __syncthreads();
    else
        __syncwarp();
}

/* ------------------------------------------------------------------------------------------------------------- lines in memory */

struct LongTensor {
    void *memory;
    long long sample_stride, group_stride;
};
/* Lines: [group][sample], a piece of a signal where long ones are cut (four_step.cuh). */
struct LongCall {
    LongTensor x, y, w, gx; /* gx: of both gradients */
    const void *bias;       /* per group; may be null */
    cplx *spectra, *sums, *pieces;
    long long rows, groups, slices;
    int accumulate;
    CF_DEVICE unsigned lines() const { return unsigned(rows * groups); }
    template <class F> CF_DEVICE unsigned group(unsigned line) const {
        return F::GROUPS_FIRST ? line % unsigned(groups) : line / unsigned(rows);
    }
    template <class F> CF_DEVICE unsigned sample(unsigned line) const {
        return F::GROUPS_FIRST ? line / unsigned(groups) : line % unsigned(rows);
    }
};

/* Storage of sides that are pieces: H complex numbers of a line, those of samples side by side. */
struct pieces {
    typedef cplx bits;
};
/* Signals, pieces and spectra are for one block: they would only drive the roots out of the first-level cache. */
template <class Storage> CF_DEVICE real load_once(const typename Storage::bits *p) {
    if constexpr (Storage::PLAIN)
        return __ldcs(p);
    else
        return Storage::number(__ldcs(p));
}
CF_DEVICE cplx get_piece(const cplx *from) {
    const float2 v = __ldcg(reinterpret_cast<const float2 *>(from));
    return {v.x, v.y};
}

/* Lines of a side S: Storage, COUNT numbers STRIDE apart. column<M>(m) has the points z[M A + m] of a line, 0 <= m < M, at constant distances:
 * get<A>(), and put<R>(v) for those of all A < R. */
template <class S, int H, int M, class Storage = typename S::Storage> struct LongColumn {
    typedef typename Storage::bits bits;
    static constexpr bool REAL = S::COUNT <= H, PIECES = false;
    static constexpr int COUNT = S::COUNT, STRIDE = S::STRIDE;
    bits *from;
    int m;
    CF_DEVICE LongColumn(bits *line, int number) : from(line + number * S::STRIDE), m(number) {}
    template <int FIRST> CF_DEVICE bool exists() const {
        return FIRST < S::COUNT && (FIRST + M <= S::COUNT || m < S::COUNT - FIRST);
    }
    template <int FIRST> CF_DEVICE real number() const {
        return exists<FIRST>() ? load_once<Storage>(from + FIRST * S::STRIDE) : real(0);
    }
    template <int A> CF_DEVICE cplx get() const { return {number<A * M>(), REAL ? real(0) : number<H + A * M>()}; }
    template <int FIRST> CF_DEVICE void put_number(real v) const {
        if (exists<FIRST>())
            Storage::store(from + FIRST * S::STRIDE, v);
    }
    template <int R> CF_DEVICE void put(cplx *v, real bias, bool accumulate) const {
        if (accumulate)
            unroll<0, R>([&](auto a) { v[a] = v[a] + get<decltype(a)::value>(); });
        unroll<0, R>([&](auto a) {
            put_number<decltype(a)::value * M>(v[a].x + bias);
            if (!REAL)
                put_number<H + decltype(a)::value * M>(v[a].y + bias);
        });
    }
};
template <class S, int H, int M> struct LongColumn<S, H, M, pieces> {
    static constexpr bool REAL = false, PIECES = true;
    static constexpr int COUNT = H, STRIDE = 1;
    cplx *from;
    CF_DEVICE LongColumn(cplx *line, int m) : from(line + m) {}
    template <int A> CF_DEVICE cplx get() const { return get_piece(from + A * M); }
    template <int R> CF_DEVICE void put(const cplx *v, real, bool) const {
        unroll<0, R>([&](auto a) { from[a * M] = v[a]; });
    }
};
template <class S> CF_DEVICE auto long_line(const LongTensor &t, long long group, long long sample) {
    return static_cast<typename S::Storage::bits *>(t.memory) + group * t.group_stride + sample * t.sample_stride;
}

/* Weights, W with a PAD: tap k stands at PAD - k, or where that is negative 2 H higher with the other sign. */
template <class W, int H, int M, class Storage = typename W::Storage> struct TapColumn {
    typedef typename Storage::bits bits;
    static constexpr bool REAL = W::PAD < H && W::COUNT - 1 <= W::PAD;
    bits *taps;
    int m;
    CF_DEVICE TapColumn(bits *line, int number) : taps(line), m(number) {}
    CF_DEVICE real number(int n) const {
        const int k = W::PAD - n, other = k + 2 * H;
        if (k >= 0)
            return k < W::COUNT ? Storage::load(taps + k * W::STRIDE) : real(0);
        return other < W::COUNT ? -Storage::load(taps + other * W::STRIDE) : real(0);
    }
    template <int A> CF_DEVICE cplx get() const { return {number(A * M + m), REAL ? real(0) : number(H + A * M + m)}; }
    CF_DEVICE void put_number(int n, real v, bool accumulate) const {
        const int k = W::PAD - n, tap = k < 0 ? k + 2 * H : k;
        if (tap >= W::COUNT)
            return;
        bits *const p = taps + tap * W::STRIDE;
        Storage::store(p, (k < 0 ? -v : v) + (accumulate ? Storage::load(p) : real(0)));
    }
    template <int R> CF_DEVICE void put(const cplx *v, real, bool accumulate) const {
        unroll<0, R>([&](auto a) {
            put_number(a * M + m, v[a].x, accumulate);
            if (!REAL)
                put_number(H + a * M + m, v[a].y, accumulate);
        });
    }
};
template <class W, int H, int M> struct TapColumn<W, H, M, pieces> : LongColumn<W, H, M, pieces> {
    CF_DEVICE TapColumn(cplx *line, int m) : LongColumn<W, H, M, pieces>(line, m) {}
};

/* ------------------------------------------------------------------------------------------------------------------ kernels */

/* Spectra of the weights of group blockIdx.x. */
template <class F> CF_DEVICE void long_spectra(const LongCall &call) {
    typedef typename F::K K;
    typedef Long<K> G;
    typedef TapColumn<typename F::W, G::H, G::M> Taps;
    smem<cplx> z = cf_dynamic_shared<cplx>();
    const int t = int(threadIdx.x);
    const long long group = blockIdx.x;
    first_forward<K, Taps>(z, t, long_line<typename F::W>(call.w, group, 0));
    middle_forward<K>(z, t);
#pragma unroll
    for (int i = 0; i < G::LAST_EACH; ++i) {
        const int task = task_of<K, G::T / 32>(t, i);
        cplx v[G::LAST];
        task_forward<K>(v, z, task);
        put_bins<K>(call.spectra + group * G::H, v, task);
    }
}

/* In place of a task's bins: their product with the weights', weight(q) being pair q of them, and the first step back. */
template <class F, class W> CF_DEVICE void multiply_task(smem<cplx> z, cplx *v, int task, W weight) {
    typedef typename F::K K;
    unroll<0, Long<K>::LAST / 2>([&](auto q) { /* pairs of the first level back, which has no roots but these */
                                               const float4 w = weight(q);
                                               const cplx a = {w.x, w.y}, b = {w.z, w.w};
                                               v[2 * q] = v[2 * q] * (F::CONJUGATE ? conj(a) : a);
                                               butterfly(v[2 * q], v[2 * q + 1], F::CONJUGATE ? conj(b) : b);
    });
    task_backward<K, 2>(z, v, task);
}

/* The last step of a line, its product with the weights, and the first step back. */
template <class F> CF_DEVICE void multiply_tasks(smem<cplx> z, int t, const float4 *spectrum) {
    typedef typename F::K K;
    typedef Long<K> G;
#pragma unroll
    for (int i = 0; i < G::LAST_EACH; ++i) {
        const int task = task_of<K, G::T / 32>(t, i);
        float4 w[G::LAST / 2];
        unroll<0, G::LAST / 2>([&](auto q) { w[q] = __ldcg(spectrum + spectrum_place<K>(q, task)); });
        cplx v[G::LAST];
        task_forward<K>(v, z, task);
        multiply_task<F>(z, v, task, [&](auto q) { return w[q]; });
    }
}

#ifdef CF_SIMT
CF_DEVICE void fetch_ahead(const void *) {}
#else
CF_DEVICE void fetch_ahead(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
#endif

/* Into the second-level cache, COUNT numbers from `line` on. */
template <class S, int COUNT>
CF_DEVICE void fetch_early(const typename S::Storage::bits *line, int thread, int threads) {
    constexpr int STEP = 128 / int(sizeof *line);
    for (int i = thread * STEP; i < COUNT; i += threads * STEP)
        fetch_ahead(line + i);
}

/* LINES lines to a block, by a warp each if there are several. Blocks of one group follow one another, for they read the same weights;
 * with GROUPS_FIRST, those whose signals lie between one another. */
template <class F> CF_DEVICE void long_lines(const LongCall &call) {
    typedef typename F::K K;
    typedef Long<K> G;
    typedef LongColumn<typename F::X, G::H, G::M> X;
    typedef LongColumn<typename F::Y, G::H, G::M> Y;
    const int t = int(threadIdx.x) % G::T;
    smem<cplx> z = cf_dynamic_shared<cplx>() + int(threadIdx.x) / G::T * G::SIZE;
    const unsigned line = blockIdx.x * F::LINES + threadIdx.x / G::T;
    if (F::LINES > 1 && line >= call.lines()) /* lines of a warp each share nothing */
        return;
    const unsigned group = call.group<F>(line), sample = call.sample<F>(line);
    first_forward<K, X>(z, t, long_line<typename F::X>(call.x, group, sample));
    middle_forward<K>(z, t);
    multiply_tasks<F>(z, t, reinterpret_cast<const float4 *>(call.spectra + (long long)group * G::H));
    middle_backward<K>(z, t);
    const auto y = long_line<typename F::Y>(call.y, group, sample);
    real bias = 0;
    if constexpr (!Y::PIECES)
        bias = call.bias ? F::Y::Storage::load(static_cast<const typename F::Y::Storage::bits *>(call.bias) + group)
                         : real(0);
    last_backward<K>(z, t, [&](int m, cplx *v) { Y(y, m).template put<G::R1>(v, bias, call.accumulate != 0); });
}

/* Of 2 T threads, each with tasks of two lines in shared memory: sums of the products of their bins. */
template <class K> struct LongSums {
    typedef Long<K> G;
    static constexpr int EACH = G::LAST_EACH / 2, WARPS = 2 * G::T / 32;
    static_assert(G::LAST_EACH % 2 == 0 && G::T % 32 == 0, "tasks for twice the threads");
    cplx sum[EACH][G::LAST];
    /* From step 1 on, of x and of gy behind it. then(task, v): with the bins of gy of a task. */
    template <class F> CF_DEVICE void add(smem<cplx> z, F then) {
        middle_forward<K, WARPS, 2>(z, int(threadIdx.x));
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const int task = task_of<K, WARPS>(int(threadIdx.x), i);
            cplx u[G::LAST], v[G::LAST];
            task_forward<K>(u, z, task);
            task_forward<K>(v, z + G::SIZE, task);
            unroll<0, G::LAST>([&](auto p) {
                cplx &s = sum[i][p];
                s.x = s.x + v[p].x * u[p].x + v[p].y * u[p].y;
                s.y = s.y + v[p].y * u[p].x - v[p].x * u[p].y;
            });
            then(task, v);
        }
    }
    CF_DEVICE void store(cplx *spectrum) const {
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            put_bins<K>(spectrum, sum[i], task_of<K, WARPS>(int(threadIdx.x), i));
    }
};

/* The rows of a slice, whose lines of x and gy a block has: half of the threads make the first step of that of x, the others of gy. after(sample): of
 * each row. Block: group blockIdx.x, slice blockIdx.y. */
template <class F, class A> CF_DEVICE void long_rows(const LongCall &call, A after) {
    typedef typename F::K K;
    typedef Long<K> G;
    typedef LongColumn<typename F::X, G::H, G::M> X;
    typedef LongColumn<typename F::Y, G::H, G::M> Y;
    const int side = int(threadIdx.x) / G::T, t = int(threadIdx.x) % G::T;
    smem<cplx> own = cf_dynamic_shared<cplx>() + side * G::SIZE;
    const long long group = blockIdx.x, begin = call.rows * blockIdx.y / call.slices,
                    end = call.rows * (blockIdx.y + 1) / call.slices;
    constexpr bool EARLY = !X::PIECES && X::STRIDE == 1 && Y::STRIDE == 1 &&
                           G::H <= 4096; /* beyond, it was measured to cost more than it gains */
#pragma unroll 1
    for (long long sample = begin; sample < end; ++sample) {
        if (side == 0)
            first_forward<K, X>(own, t, long_line<typename F::X>(call.x, group, sample));
        else
            first_forward<K, Y>(own, t, long_line<typename F::Y>(call.y, group, sample));
        if (EARLY && sample + 1 < end && side == 0)
            fetch_early<typename F::X, X::COUNT>(long_line<typename F::X>(call.x, group, sample + 1), t, G::T);
        else if (EARLY && sample + 1 < end)
            fetch_early<typename F::Y, Y::COUNT>(long_line<typename F::Y>(call.y, group, sample + 1), t, G::T);
        after(sample);
        __syncthreads();
    }
}

/* Sums over the rows of a slice of what gradients of the weights are made of. */
template <class F> CF_DEVICE void long_sums(const LongCall &call) {
    typedef typename F::K K;
    LongSums<K> sums = {};
    long_rows<F>(call, [&](long long) { sums.add(cf_dynamic_shared<cplx>(), [](int, cplx *) {}); });
    sums.store(call.sums + (blockIdx.y * call.groups + blockIdx.x) * Long<K>::H);
}

/* The same, and on its way the gradient of x, for which the spectra of gy are multiplied by those of the weights. */
template <class F> CF_DEVICE void long_both(const LongCall &call) {
    typedef typename F::K K;
    typedef Long<K> G;
    typedef LongColumn<typename F::X, G::H, G::M> X;
    constexpr int WARPS = LongSums<K>::WARPS;
    smem<cplx> z = cf_dynamic_shared<cplx>(), gy = z + G::SIZE;
    const int t = int(threadIdx.x);
    const float4 *const spectrum = reinterpret_cast<const float4 *>(call.spectra + (long long)blockIdx.x * G::H);
    LongSums<K> sums = {};
    long_rows<F>(call, [&](long long sample) {
        sums.add(z, [&](int task, cplx *v) {
            multiply_task<F>(gy, v, task, [&](auto q) { return __ldcg(spectrum + spectrum_place<K>(q, task)); });
        });
        middle_backward<K, WARPS>(gy, t);
        const auto gx = long_line<typename F::X>(call.gx, blockIdx.x, sample);
        last_backward<K, 2 * G::T>(gy, t,
                                   [&](int m, cplx *v) { X(gx, m).template put<G::R1>(v, 0, call.accumulate != 0); });
    });
    sums.store(call.sums + (blockIdx.y * call.groups + blockIdx.x) * G::H);
}

/* Sums of all slices, in their order, and the gradient of the weights of group blockIdx.x from them. */
template <class F> CF_DEVICE void long_gradient(const LongCall &call) {
    typedef typename F::K K;
    typedef Long<K> G;
    smem<cplx> z = cf_dynamic_shared<cplx>();
    const int t = int(threadIdx.x);
    const long long group = blockIdx.x;
#pragma unroll
    for (int i = 0; i < G::LAST_EACH; ++i) {
        const int task = task_of<K, G::T / 32>(t, i);
        cplx v[G::LAST];
        unroll<0, G::LAST>([&](auto p) { v[p] = {0, 0}; });
#pragma unroll 1
        for (long long s = 0; s < call.slices; ++s) {
            const float4 *const from = reinterpret_cast<const float4 *>(call.sums + (s * call.groups + group) * G::H);
            unroll<0, G::LAST / 2>([&](auto q) {
                const float4 w = __ldcg(from + spectrum_place<K>(q, task));
                v[2 * q] = v[2 * q] + cplx{w.x, w.y};
                v[2 * q + 1] = v[2 * q + 1] + cplx{w.z, w.w};
            });
        }
        task_backward<K>(z, v, task);
    }
    middle_backward<K>(z, t);
    typedef TapColumn<typename F::W, G::H, G::M> Taps;
    const auto taps = long_line<typename F::W>(call.w, group, 0);
    last_backward<K>(z, t, [&](int m, cplx *v) { Taps(taps, m).template put<G::R1>(v, 0, call.accumulate != 0); });
}
