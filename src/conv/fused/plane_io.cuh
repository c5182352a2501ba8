/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planes between memory and the lines of shared_memory/geometry.cuh, for kernels whose instructions count: what is worked out about a place is worked out once
 * for a thread, which then goes down the rows. A row is cut into pieces of WIDE numbers, LANES threads have one row's:
 *
 *     slot 0    | lane 0 | lane 1 | ...      row 0 of plane 0, then row OF_A_PLANE, ...
 *     slot 1    |        |        | ...      row 1 of plane 0, ...
 *
 * With fewer slots than planes, a slot has the whole of some planes. A row is a pair of rows of PAIRS, which are moved together.
 */
#pragma once

#include "fbfft/shared_memory/kernel.cuh"

template <class K> constexpr bool CAN_SWEEP = !K::PLANES_TOUCH && (K::KIND == PAIRS || K::KIND == HALVES);

template <class K, int WIDE_> struct Sweep {
    typedef Tile<K> G;
    static constexpr bool PAIRED = K::KIND == PAIRS, HALVED = K::KIND == HALVES;
    static constexpr int WIDE = WIDE_, PIECE = HALVED ? cf_max_of(WIDE, 2) : WIDE; /* numbers at once; of a piece */
    static constexpr int LO = K::STAGED ? G::template lo<2>() / 4 * 4
                              : HALVED  ? 2 * G::LINE_LO
                                        : G::LINE_LO,
                         HI = K::STAGED ? G::WAIT
                              : HALVED  ? 2 * G::LINE_HI
                                        : G::LINE_HI;
    static constexpr int ACROSS = (HI - LO + PIECE - 1) / PIECE;
    static constexpr int LANES = ACROSS < K::T ? ACROSS : K::T, TIMES = (ACROSS + LANES - 1) / LANES;
    static constexpr int SLOTS = K::T / LANES, ROWS = G::D0 * G::DR;
    static constexpr bool SHARED = SLOTS >= K::P; /* slots have a plane together */
    static constexpr int OF_A_PLANE = SHARED ? SLOTS / K::P : 1, PLANES = SHARED ? 1 : (K::P + SLOTS - 1) / SLOTS;
    static constexpr int EACH = (ROWS + OF_A_PLANE - 1) / OF_A_PLANE;
    static_assert(LO % PIECE == 0, "pieces begin where data do, or before");

    /* The j-th of the thread's columns in the q-th of its planes; false: there is none. */
    static CF_DEVICE bool find(int q, int j, int &p, int &row, int &x) {
        const int lane = int(threadIdx.x) % LANES, slot = int(threadIdx.x) / LANES;
        p = SHARED ? slot / OF_A_PLANE : slot + q * SLOTS;
        row = SHARED ? slot % OF_A_PLANE : 0;
        x = LO + (lane + j * LANES) * PIECE;
        return p < K::P && (K::T % LANES == 0 || slot < SLOTS) && (ACROSS % LANES == 0 || x < HI);
    }
    /* f(plane, row, x) for each column of pieces that is the thread's. */
    template <class F> static CF_DEVICE void each_column(F f) {
#pragma unroll 1
        for (int q = 0; q < PLANES; ++q)
#pragma unroll 1
            for (int j = 0; j < TIMES; ++j) {
                int p, row, x;
                if (find(q, j, p, row, x))
                    f(p, row, x);
            }
    }
};

/* Rows of a thread's column: of element h of the i-th pair, or of the i-th row alone, whether it is one of the signal's, and where it is, as
 * the distance from base(first), where first is at most i and not known before. STRAIGHT: one step leads from each to the next. */
template <class K>
constexpr bool STRAIGHT = Tile<K>::D0 == 1 && K::AXIS[1].spread == 1 &&
                          (!K::AXIS[1].checked || K::AXIS[1].mode == ZEROS);
template <class K, class S, bool ONE_STEP> struct Rows {
    typedef Tile<K> G;
    typedef typename K::Offset Offset;
    static constexpr int OF_A_PAIR = S::PAIRED ? 2 : 1;
    static constexpr Offset STEP = Offset(K::AXIS[1].step * K::AXIS_STRIDE[1]);
    int coordinate;
    Offset plane;
    bool inside_0;
    CF_DEVICE Rows(const Places<K> &places, int p, int row) {
        inside_0 = true;
        plane = offset_of<K, 0, Offset>(G::template lo<0>(), places.template start<0>(p), inside_0);
        coordinate =
            places.template start<1>(p) + (OF_A_PAIR * (row + G::ROW_LO) - K::AXIS[1].first) * int(K::AXIS[1].step);
    }
    CF_DEVICE Offset base(int first) const {
        return plane + Offset(coordinate) * Offset(K::AXIS_STRIDE[1]) + first * (S::OF_A_PLANE * OF_A_PAIR * STEP);
    }
    CF_DEVICE Offset at(int first, int i, int h) const { return ((i - first) * S::OF_A_PLANE * OF_A_PAIR + h) * STEP; }
    CF_DEVICE bool inside(int row, int i, int h) const {
        constexpr TileAxis a = K::AXIS[1];
        const int position = OF_A_PAIR * (row + i * S::OF_A_PLANE + G::ROW_LO) + h;
        bool in = inside_0;
        if (h == 0 && OF_A_PAIR == 2 && G::template lo<1>() % 2)
            in = in && position >= G::template lo<1>();
        if (h == 1 && G::template hi<1>() % 2)
            in = in && position < G::template hi<1>();
        if constexpr (a.checked) {
            const int c = coordinate + (i * S::OF_A_PLANE * OF_A_PAIR + h) * int(a.step);
            constexpr int low = int(a.lower > 0 ? a.lower : 0), high = int(a.upper < a.size ? a.upper : a.size);
            in = in && c >= low && c < high;
        }
        return in;
    }
};
template <class K, class S> struct Rows<K, S, false> {
    typedef Tile<K> G;
    typedef typename K::Offset Offset;
    const Places<K> &places;
    int p, row;
    CF_DEVICE Rows(const Places<K> &from, int plane, int first) : places(from), p(plane), row(first) {}
    CF_DEVICE Offset base(int) const { return 0; }
    CF_DEVICE Offset find(int i, int h, bool &in) const {
        const int n = row + i * S::OF_A_PLANE, line = n % G::DR + G::ROW_LO, position = S::PAIRED ? 2 * line + h : line;
        const bool data = position >= G::template lo<1>() && position < G::template hi<1>();
        in = data;
        const Offset at =
            offset_of<K, 1, Offset>(data ? position : G::template lo<1>(), places.template start<1>(p), in);
        return at + offset_of<K, 0, Offset>(n / G::DR + G::template lo<0>(), places.template start<0>(p), in);
    }
    CF_DEVICE Offset at(int, int i, int h) const {
        bool in;
        return find(i, h, in);
    }
    CF_DEVICE bool inside(int, int i, int h) const {
        bool in;
        find(i, h, in);
        return in;
    }
};

/* WIDE numbers of 16 bits. */
template <int WIDE> struct BitsOf { typedef unsigned type; };
template <> struct BitsOf<4> { typedef unsigned long long type; };

/* COUNT numbers, WIDE at a time; one by one, the second one has an offset of its own. */
template <class K, int COUNT, int WIDE>
CF_DEVICE void get_numbers(real *v, const typename K::Storage::bits *from, typename K::Offset second, bool inside,
                           bool second_inside) {
    typedef typename K::Storage Storage;
    if constexpr (WIDE > 1 && !Storage::PLAIN) {
        typedef typename BitsOf<WIDE>::type Wide;
        const Wide a = inside ? __ldg(reinterpret_cast<const Wide *>(from)) : Wide(0);
        unroll<0, WIDE>([&](auto e) { v[e] = Storage::number((unsigned short)(a >> (16 * e))); });
    } else if constexpr (WIDE == 4) {
        const float4 a = inside ? __ldg(reinterpret_cast<const float4 *>(from)) : make_float4(0, 0, 0, 0);
        v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
    } else if constexpr (WIDE == 2) {
        const float2 a = inside ? __ldg(reinterpret_cast<const float2 *>(from)) : make_float2(0, 0);
        v[0] = a.x, v[1] = a.y;
    } else {
        v[0] = inside ? Storage::load(from) : real(0);
        if constexpr (COUNT == 2)
            v[1] = second_inside ? Storage::load(from + second) : real(0);
    }
}

/* What a thread knows of its pieces of one column. */
template <class K, int WIDE> struct Column {
    typedef Sweep<K, WIDE> S;
    typedef Tile<K> G;
    typedef typename K::Offset Offset;
    int p, row, x, place[S::PIECE]; /* places of points in a line */
    Offset across, second;
    bool inside, second_inside;
    CF_DEVICE Column(const Places<K> &places, int plane, int first, int number) : p(plane), row(first), x(number) {
        const int start = places.template start<2>(p);
        const auto find = [&](int i, bool &in) {
            in = i >= G::template lo<2>() && i < G::template hi<2>();
            return offset_of<K, 2, Offset>(in ? i : G::template lo<2>(), start, in);
        };
        across = find(x, inside);
        second = 0;
        second_inside = false;
        if constexpr (S::HALVED && WIDE == 1)
            second = find(x + 1, second_inside) - across;
        const int point = S::HALVED ? x / 2 : x;
        unroll<0, S::PIECE>([&](auto e) {
            if (K::STAGED || (S::HALVED && e >= S::PIECE / 2))
                place[e] = 0;
            else
                place[e] = G::O2::time(point + e);
        });
    }
    CF_DEVICE bool exists(int i) const { return S::ROWS % S::OF_A_PLANE == 0 || row + i * S::OF_A_PLANE < S::ROWS; }
    CF_DEVICE int offset(int i) const {
        const int n = row + i * S::OF_A_PLANE;
        if constexpr (G::D0 == 1)
            return p * G::PLANE + G::template lo<0>() * G::SLAB + (n + G::ROW_LO) * G::PITCH;
        else
            return p * G::PLANE + (n / G::DR + G::template lo<0>()) * G::SLAB + (n % G::DR + G::ROW_LO) * G::PITCH;
    }
};

/* copy_async() at constant distances from two places, which cost no instruction. Nothing is read from where no number is. */
template <int WIDE, int TO, int FROM> CF_DEVICE void copy_near(smem<real> to, const real *from, bool inside) {
#ifdef CF_SIMT
    copy_async<WIDE>(to + TO, from + FROM, inside);
#else
    constexpr int UNIT = int(sizeof(real)), BYTES = WIDE * UNIT;
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    const int wanted = inside ? BYTES : 0;
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0 + %3], [%1 + %4], 16, %2;" ::"r"(place), "l"(from), "r"(wanted),
                     "n"(TO * UNIT), "n"(FROM * UNIT)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0 + %3], [%1 + %4], %5, %2;" ::"r"(place), "l"(from), "r"(wanted),
                     "n"(TO * UNIT), "n"(FROM * UNIT), "n"(BYTES)
                     : "memory");
#endif
}

/* ASYNC: without a register between, where they are after wait_async() and a barrier; rows that do not wait come number by number. */
template <class K, int WIDE, bool ASYNC = K::STAGED &&K::Storage::PLAIN>
CF_DEVICE void load_rows(smem<cplx> z, const Places<K> &places, const void *memory) {
    static_assert(!ASYNC || K::STAGED || (K::KIND == PAIRS && WIDE == 1), "numbers of two rows stand side by side");
    typedef Sweep<K, WIDE> S;
    typedef Tile<K> G;
    typedef typename K::Storage::bits bits;
    constexpr int ROWS = S::PAIRED ? 2 : 1, MOST = ASYNC ? 16 : 32 / (ROWS * S::PIECE),
                  BATCH = S::EACH < MOST ? S::EACH : MOST;
    /* The rows of a batch are constants apart, which are small. */
    constexpr long long STEP = K::AXIS[1].step * K::AXIS_STRIDE[1], FAR = 2 * BATCH * S::OF_A_PLANE * STEP;
    constexpr bool NEAR = STRAIGHT<K> && FAR < 1 << 20 && FAR > -(1 << 20);
    S::each_column([&](int p, int row, int x) {
        const Column<K, WIDE> c(places, p, row, x);
        const Rows<K, S, STRAIGHT<K>> rows(places, p, row);
        const bits *const column = static_cast<const bits *>(memory) + places.signal(p) + c.across;
#pragma unroll 1
        for (int first = 0; first < S::EACH; first += BATCH) {
            const bits *const from = column + rows.base(first);
            const auto exists = [&](int i) { return c.exists(i) && (S::EACH % BATCH == 0 || i < S::EACH); };
            smem<cplx> lines = z + c.offset(first);
            if constexpr (ASYNC && NEAR) {
                smem<real> to = smem_cast<real>(K::STAGED ? lines : lines + c.place[0]) + (K::STAGED ? x : 0);
                unroll<0, BATCH>([&](auto b) {
                    constexpr int B = decltype(b)::value * S::OF_A_PLANE;
                    const int i = first + b;
                    if (!exists(i))
                        return;
                    unroll<0, 2>([&](auto h) {
                        constexpr int H = decltype(h)::value;
                        copy_near<WIDE, 2 * B * G::PITCH + H *(K::STAGED ? G::WAIT : 1), int((2 * B + H) * STEP)>(
                            to, from, c.inside && rows.inside(row, i, h));
                    });
                });
                continue;
            }
            if constexpr (ASYNC) {
                unroll<0, BATCH>([&](auto b) {
                    const int i = first + b;
                    if (!exists(i))
                        return;
                    smem<cplx> line = lines + (c.offset(i) - c.offset(first));
                    smem<real> to = smem_cast<real>(K::STAGED ? line : line + c.place[0]) + (K::STAGED ? x : 0);
                    unroll<0, 2>([&](auto h) {
                        const bool in = c.inside && rows.inside(row, i, h);
                        copy_async<WIDE>(to + h * (K::STAGED ? G::WAIT : 1), in ? from + rows.at(first, i, h) : column,
                                         in);
                    });
                });
                continue;
            }
            real v[BATCH * ROWS * S::PIECE];
            unroll<0, BATCH>([&](auto b) {
                const int i = first + b;
                const bool there = exists(i);
                unroll<0, ROWS>([&](auto h) {
                    const bool in = there && rows.inside(row, i, h);
                    get_numbers<K, S::PIECE, WIDE>(v + (b * ROWS + h) * S::PIECE, from + rows.at(first, i, h), c.second,
                                                   in && c.inside, in && c.second_inside);
                });
            });
            unroll<0, BATCH>([&](auto b) {
                const int i = first + b;
                if (!exists(i))
                    return;
                const real *const u = v + b * ROWS * S::PIECE;
                smem<cplx> line = lines + (c.offset(i) - c.offset(first));
                unroll<0, S::PIECE>([&](auto e) {
                    if constexpr (K::STAGED) {
                        smem_cast<real>(line)[x + e] = u[e];
                        smem_cast<real>(line)[x + e + G::WAIT] = u[S::PIECE + e];
                    } else if constexpr (S::PAIRED) {
                        line[c.place[e]] = {u[e], u[S::PIECE + e]};
                    } else if constexpr (S::PIECE / 2 > decltype(e)::value) {
                        line[c.place[e]] = {u[2 * e], u[2 * e + 1]};
                    }
                });
            });
        }
    });
}

/* Numbers of 16 bits that come one by one, where a thread has few: all of them are on their way before the first one is awaited. */
template <class K> constexpr int singles_of_thread() {
    if constexpr (!CAN_SWEEP<K>)
        return 0;
    else
        return Sweep<K, 1>::PLANES * Sweep<K, 1>::TIMES * Sweep<K, 1>::EACH * 2;
}
template <class K>
constexpr bool FEW_SINGLES =
    CAN_SWEEP<K> &&K::KIND == PAIRS && !K::Storage::PLAIN && K::WIDE == 1 && !K::STAGED && singles_of_thread<K>() <= 16;
template <class K> struct Singles {
    typedef Sweep<K, 1> S;
    typedef typename K::Storage Storage;
    typedef typename Storage::bits bits;
    unsigned v[S::PLANES][S::TIMES][S::EACH][2];
    CF_DEVICE void load(const Places<K> &places, const void *memory) {
        unroll<0, S::PLANES * S::TIMES>([&](auto n) {
            constexpr int Q = decltype(n)::value / S::TIMES, J = decltype(n)::value % S::TIMES;
            int p, row, x;
            /* Threads without a column read another one's: a question less for each number. */
            const bool exists = S::find(Q, J, p, row, x);
            p = exists ? p : 0;
            row = exists ? row : 0;
            const Column<K, 1> c(places, p, row, exists ? x : S::LO);
            const Rows<K, S, STRAIGHT<K>> rows(places, p, row);
            const bits *const from = static_cast<const bits *>(memory) + places.signal(p) + c.across + rows.base(0);
            unroll<0, S::EACH>([&](auto i) {
                unroll<0, 2>([&](auto h) {
                    v[Q][J][i][h] = 0;
                    if ((!K::AXIS[2].checked || c.inside) && c.exists(i) && rows.inside(row, i, h))
                        v[Q][J][i][h] = __ldg(from + rows.at(0, i, h));
                });
            });
        });
    }
    CF_DEVICE void put(smem<cplx> z, const Places<K> &places) const {
        unroll<0, S::PLANES * S::TIMES>([&](auto n) {
            constexpr int Q = decltype(n)::value / S::TIMES, J = decltype(n)::value % S::TIMES;
            int p, row, x;
            if (!S::find(Q, J, p, row, x))
                return;
            const Column<K, 1> c(places, p, row, x);
            unroll<0, S::EACH>([&](auto i) {
                if (c.exists(i))
                    z[c.offset(i) + c.place[0]] = {Storage::number(bits(v[Q][J][i][0])),
                                                   Storage::number(bits(v[Q][J][i][1]))};
            });
        });
    }
};

/* COUNT numbers to memory, as get_numbers(). */
template <class K, int COUNT, int WIDE>
CF_DEVICE void put_numbers(typename K::Storage::bits *to, const real *v, typename K::Offset second, bool inside,
                           bool second_inside, bool accumulate) {
    if constexpr (WIDE > 1 && !K::Storage::PLAIN) {
        typedef typename BitsOf<WIDE>::type Wide;
        Wide *const piece = reinterpret_cast<Wide *>(to), old = inside && accumulate ? *piece : Wide(0);
        Wide a = 0;
        unroll<0, WIDE>([&](auto e) {
            const real sum = v[e] + (accumulate ? K::Storage::number((unsigned short)(old >> (16 * e))) : real(0));
            a |= Wide(K::Storage::rounded(sum)) << (16 * e);
        });
        if (inside)
            *piece = a;
    } else if constexpr (WIDE > 1) {
        typedef typename WideOf<WIDE>::type Wide;
        Wide a;
        if constexpr (WIDE == 4)
            a = make_float4(v[0], v[1], v[2], v[3]);
        else
            a = make_float2(v[0], v[1]);
        Wide *const piece = reinterpret_cast<Wide *>(to);
        if (inside)
            *piece = accumulate ? sum_of(a, *piece) : a;
    } else {
        if (inside)
            put<K>(to, v[0], accumulate);
        if constexpr (COUNT == 2)
            if (second_inside)
                put<K>(to + second, v[1], accumulate);
    }
}

template <class K, int WIDE> CF_DEVICE void store_rows(smem<cplx> z, const Places<K> &places, const TileCall &call) {
    typedef Sweep<K, WIDE> S;
    typedef Tile<K> G;
    typedef typename K::Storage::bits bits;
    constexpr int ROWS = S::PAIRED ? 2 : 1, BATCH = S::EACH < 8 ? S::EACH : 8;
    const bool accumulate = call.accumulate;
    const real scale = K::STAGED ? real(1) : real(call.scale); /* put_rows() has scaled rows that wait */
    S::each_column([&](int p, int row, int x) {
        const Column<K, WIDE> c(places, p, row, x);
        const Rows<K, S, STRAIGHT<K>> rows(places, p, row);
        if (p >= places.live || !(c.inside || c.second_inside))
            return;
        bits *const column = static_cast<bits *>(call.out) + places.signal(p) + c.across;
        real bias = 0;
        if (call.bias)
            bias = K::Storage::load(static_cast<const bits *>(call.bias) + places.channel(p));
#pragma unroll 1
        for (int first = 0; first < S::EACH; first += BATCH) {
            bits *const to = column + rows.base(first);
            smem<cplx> lines = z + c.offset(first);
            unroll<0, BATCH>([&](auto b) {
                const int i = first + b;
                if (!c.exists(i) || (S::EACH % BATCH && i >= S::EACH))
                    return;
                smem<cplx> line = lines + (c.offset(i) - c.offset(first));
                bool in[ROWS];
                unroll<0, ROWS>([&](auto h) { in[h] = rows.inside(row, i, h); });
                real v[2 * S::PIECE];
                unroll<0, S::PIECE>([&](auto e) {
                    if constexpr (K::STAGED) {
                        v[e] = in[0] ? smem_cast<real>(line)[x + e] : real(0);
                        v[S::PIECE + e] = in[ROWS - 1] ? smem_cast<real>(line)[x + e + G::WAIT] : real(0);
                    } else if constexpr (S::PAIRED) {
                        const cplx a = line[c.place[e]];
                        v[e] = a.x;
                        v[S::PIECE + e] = a.y;
                    } else if constexpr (S::PIECE / 2 > decltype(e)::value) {
                        const cplx a = line[c.place[e]];
                        v[2 * e] = a.x;
                        v[2 * e + 1] = a.y;
                    }
                });
                unroll<0, ROWS * S::PIECE>([&](auto e) { v[e] = scale * v[e] + bias; });
                unroll<0, ROWS>([&](auto h) {
                    put_numbers<K, S::PIECE, WIDE>(to + rows.at(first, i, h), v + h * S::PIECE, c.second,
                                                   in[h] && (!S::HALVED || c.inside), in[h] && c.second_inside,
                                                   accumulate);
                });
            });
        }
    });
}
