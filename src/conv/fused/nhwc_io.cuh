/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planes of neighbouring channels between memory, where the channels of a point stand side by side, and the lines of shared_memory/geometry.cuh. A thread
 * moves WIDE channels of a point at once, a unit of the block's planes, and goes down the rows:
 *
 *     memory          [row][x] | unit 0: WIDE channels | unit 1 | ...           neighbouring threads: other units, then other x
 *     shared memory   plane 0 [row][x], plane 1 [row][x], ...
 *
 * so that a block of sixteen or more bytes of channels uses what it reads. All planes of a unit have the same row, which the planner sees to.
 */
#pragma once

#include "conv/fused/plane_access.cuh"

template <class K> constexpr bool ABREAST = K::PLANES_TOUCH && (K::KIND == PAIRS || K::KIND == HALVES);

/* V neighbouring numbers, as they stand in memory. */
template <class S, int V, bool PLAIN = S::PLAIN> struct Neighbours {
    static constexpr int WORDS = (V + 1) / 2;
    unsigned w[WORDS];
    CF_DEVICE void clear() {
        unroll<0, WORDS>([&](auto i) { w[i] = 0; });
    }
    CF_DEVICE void load(const unsigned short *from) {
        if constexpr (V == 8) {
            const uint4 a = __ldg(reinterpret_cast<const uint4 *>(from));
            w[0] = a.x, w[1] = a.y, w[2] = a.z, w[3] = a.w;
        } else if constexpr (V == 4) {
            const uint2 a = __ldg(reinterpret_cast<const uint2 *>(from));
            w[0] = a.x, w[1] = a.y;
        } else if constexpr (V == 2) {
            w[0] = __ldg(reinterpret_cast<const unsigned *>(from));
        } else {
            w[0] = __ldg(from);
        }
    }
    CF_DEVICE void store(unsigned short *to) const {
        if constexpr (V == 8)
            *reinterpret_cast<uint4 *>(to) = uint4{w[0], w[1], w[2], w[3]};
        else if constexpr (V == 4)
            *reinterpret_cast<uint2 *>(to) = uint2{w[0], w[1]};
        else if constexpr (V == 2)
            *reinterpret_cast<unsigned *>(to) = w[0];
        else
            *to = (unsigned short)w[0];
    }
    template <int E> CF_DEVICE real get() const { return S::number((unsigned short)(w[E / 2] >> (16 * (E % 2)))); }
    CF_DEVICE void set(const real *v) {
        unroll<0, WORDS>([&](auto i) {
            w[i] = S::rounded(v[2 * i]);
            if constexpr (V > 1)
                w[i] |= (unsigned)S::rounded(v[2 * i + 1]) << 16;
        });
    }
};
template <class S, int V> struct Neighbours<S, V, true> {
    real v[V];
    CF_DEVICE void clear() {
        unroll<0, V>([&](auto e) { v[e] = 0; });
    }
    CF_DEVICE void load(const real *from) {
        if constexpr (V == 4) {
            const float4 a = __ldg(reinterpret_cast<const float4 *>(from));
            v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
        } else if constexpr (V == 2) {
            const typename PairOf<real>::type a = __ldg(reinterpret_cast<const typename PairOf<real>::type *>(from));
            v[0] = a.x, v[1] = a.y;
        } else {
            v[0] = __ldg(from);
        }
    }
    CF_DEVICE void store(real *to) const {
        if constexpr (V == 4)
            *reinterpret_cast<float4 *>(to) = make_float4(float(v[0]), float(v[1]), float(v[2]), float(v[3]));
        else if constexpr (V == 2)
            *reinterpret_cast<cplx *>(to) = cplx{v[0], v[1]};
        else
            to[0] = v[0];
    }
    template <int E> CF_DEVICE real get() const { return v[E]; }
    CF_DEVICE void set(const real *from) {
        unroll<0, V>([&](auto e) { v[e] = from[e]; });
    }
};

/* How the threads of a block share columns of units: SIDE neighbouring places of a unit, then those of the next one, for threads of a half
 * warp meet in banks least so. The members that Rows of plane_access.cuh asks for are called as there. */
template <class K> struct Units {
    typedef Tile<K> G;
    static constexpr bool PAIRED = K::KIND == PAIRS;
    static constexpr int WIDE = K::WIDE, COUNT = K::P / WIDE;
    static_assert(K::P % WIDE == 0, "units are whole");
    static constexpr int LO = K::STAGED ? G::template lo<2>() / 4 * 4 : G::LINE_LO,
                         HI = K::STAGED ? G::WAIT : G::LINE_HI, ACROSS = HI - LO;
    static constexpr int TOGETHER = COUNT < 16 / WIDE ? COUNT : 16 / WIDE; /* units that a warp reads side by side */
    static constexpr int SIDE = TOGETHER <= 1 ? ACROSS : 16 / TOGETHER < ACROSS ? 16 / TOGETHER : ACROSS;
    static constexpr int COLUMNS = (ACROSS + SIDE - 1) / SIDE * SIDE * COUNT;
    static constexpr int LANES = COLUMNS < K::T ? COLUMNS : K::T, TIMES = (COLUMNS + LANES - 1) / LANES;
    static constexpr int OF_A_PLANE = K::T / LANES, ROWS = G::D0 * G::DR, EACH = (ROWS + OF_A_PLANE - 1) / OF_A_PLANE;

    /* f(first plane, row, x) for each column that is the thread's. */
    template <class F> static CF_DEVICE void each_column(F f) {
        const int lane = int(threadIdx.x) % LANES, row = int(threadIdx.x) / LANES;
        if (K::T % LANES && row >= OF_A_PLANE)
            return;
#pragma unroll 1
        for (int j = 0; j < TIMES; ++j) {
            const int n = lane + j * LANES, unit = n / SIDE % COUNT, x = LO + n / (SIDE * COUNT) * SIDE + n % SIDE;
            if ((COLUMNS % LANES == 0 || n < COLUMNS) && (ACROSS % SIDE == 0 || x < HI))
                f(unit * WIDE, row, x);
        }
    }
};

/* What a thread knows of its pieces of one column: as Column of plane_access.cuh. */
template <class K> struct UnitColumn {
    typedef Units<K> S;
    typedef Tile<K> G;
    typedef typename K::Offset Offset;
    int p, row, x, place; /* first plane; place of the point in a line */
    Offset across, second;
    bool inside, second_inside;
    CF_DEVICE UnitColumn(const Places<K> &places, int plane, int first, int number) : p(plane), row(first), x(number) {
        const int start = places.template start<2>(p), from = S::PAIRED ? x : 2 * x;
        const auto find = [&](int i, bool &in) {
            in = i >= G::template lo<2>() && i < G::template hi<2>();
            return offset_of<K, 2, Offset>(in ? i : G::template lo<2>(), start, in);
        };
        across = find(from, inside);
        second = 0;
        second_inside = false;
        if constexpr (!S::PAIRED)
            second = find(from + 1, second_inside) - across;
        place = K::STAGED ? x : G::O2::time(x);
    }
    CF_DEVICE bool exists(int i) const {
        return (S::ROWS % S::OF_A_PLANE == 0 || row + i * S::OF_A_PLANE < S::ROWS) && i < S::EACH;
    }
    /* Where the i-th row of the first plane is. */
    CF_DEVICE int offset(int i) const {
        const int n = row + i * S::OF_A_PLANE;
        return p * G::PLANE + (n / G::DR + G::template lo<0>()) * G::SLAB + (n % G::DR + G::ROW_LO) * G::PITCH;
    }
};

/* Both numbers of a point of plane e of the unit, whose row is at `line` in the first one. */
template <class K> CF_DEVICE cplx get_point(smem<cplx> line, int place, int e) {
    typedef Tile<K> G;
    smem<cplx> at = line + e * G::PLANE;
    if constexpr (K::STAGED)
        return {smem_cast<real>(at)[place], smem_cast<real>(at)[place + G::WAIT]};
    else
        return at[place];
}
template <class K> CF_DEVICE void put_point(smem<cplx> line, int place, int e, cplx v) {
    typedef Tile<K> G;
    smem<cplx> at = line + e * G::PLANE;
    if constexpr (K::STAGED) {
        smem_cast<real>(at)[place] = v.x;
        smem_cast<real>(at)[place + G::WAIT] = v.y;
    } else {
        at[place] = v;
    }
}

template <class K> CF_DEVICE void load_units(smem<cplx> z, const Places<K> &places, const void *memory) {
    typedef Units<K> S;
    typedef typename K::Storage Storage;
    typedef typename Storage::bits bits;
    typedef Neighbours<Storage, S::WIDE> Numbers;
    constexpr int MOST = 128 / (2 * int(sizeof(Numbers))), BATCH = S::EACH < MOST ? S::EACH : MOST;
    S::each_column([&](int p, int row, int x) {
        const int shown = p < places.live ? p : places.live - S::WIDE; /* what is beyond is that once more */
        const UnitColumn<K> c(places, p, row, x);
        const Rows<K, S, STRAIGHT<K>> rows(places, shown, row);
        const bits *const column = static_cast<const bits *>(memory) + places.signal(shown) + c.across;
#pragma unroll 1
        for (int first = 0; first < S::EACH; first += BATCH) {
            const bits *const from = column + rows.base(first);
            Numbers v[BATCH][2];
            unroll<0, BATCH>([&](auto b) {
                const int i = first + b;
                unroll<0, 2>([&](auto h) {
                    v[b][h].clear();
                    if (c.exists(i) && rows.inside(row, i, S::PAIRED ? h : 0) &&
                        (S::PAIRED || h == 0 ? c.inside : c.second_inside))
                        v[b][h].load(from + rows.at(first, i, S::PAIRED ? h : 0) +
                                     (S::PAIRED || h == 0 ? 0 : c.second));
                });
            });
            unroll<0, BATCH>([&](auto b) {
                const int i = first + b;
                if (!c.exists(i))
                    return;
                smem<cplx> line = z + c.offset(i);
                unroll<0, S::WIDE>([&](auto e) {
                    constexpr int E = decltype(e)::value;
                    put_point<K>(line, c.place, E, {v[b][0].template get<E>(), v[b][1].template get<E>()});
                });
            });
        }
    });
}

template <class K> CF_DEVICE void store_units(smem<cplx> z, const Places<K> &places, const TileCall &call) {
    typedef Units<K> S;
    typedef typename K::Storage Storage;
    typedef typename Storage::bits bits;
    typedef Neighbours<Storage, S::WIDE> Numbers;
    constexpr int BATCH = S::EACH < 4 ? S::EACH : 4;
    const bool accumulate = call.accumulate;
    const real scale = K::STAGED ? real(1) : real(call.scale); /* put_rows() has scaled rows that wait */
    S::each_column([&](int p, int row, int x) {
        const UnitColumn<K> c(places, p, row, x);
        const Rows<K, S, STRAIGHT<K>> rows(places, p, row);
        if (p >= places.live || !(c.inside || c.second_inside))
            return;
        bits *const column = static_cast<bits *>(call.out) + places.signal(p) + c.across;
        real bias[S::WIDE];
        unroll<0, S::WIDE>([&](auto e) {
            bias[e] = 0;
            if (call.bias)
                bias[e] = Storage::load(static_cast<const bits *>(call.bias) + places.channel(p + e));
        });
#pragma unroll 1
        for (int first = 0; first < S::EACH; first += BATCH) {
            bits *const base = column + rows.base(first);
            unroll<0, BATCH>([&](auto b) {
                const int i = first + b;
                if (!c.exists(i))
                    return;
                smem<cplx> line = z + c.offset(i);
                real v[2][S::WIDE];
                unroll<0, S::WIDE>([&](auto e) {
                    const cplx a = get_point<K>(line, c.place, e);
                    v[0][e] = scale * a.x + bias[e];
                    v[1][e] = scale * a.y + bias[e];
                });
                unroll<0, 2>([&](auto h) {
                    if (!rows.inside(row, i, S::PAIRED ? h : 0) || !(S::PAIRED || h == 0 ? c.inside : c.second_inside))
                        return;
                    bits *const to = base + rows.at(first, i, S::PAIRED ? h : 0) + (S::PAIRED || h == 0 ? 0 : c.second);
                    Numbers n;
                    if (accumulate) {
                        n.load(to);
                        unroll<0, S::WIDE>([&](auto e) { v[h][e] += n.template get<decltype(e)::value>(); });
                    }
                    n.set(v[h]);
                    n.store(to);
                });
            });
        }
    });
}

/* ------------------------------------------------------------------------------------------------------- whole tensors */

/*
 * A tensor of many channels that stand side by side, and the same one as planes of `real` one after the other: kernels of register_resident.cuh take a channel
 * at a time, of which a sector of memory has a few bytes only. A block has ACROSS channels of POINTS points of a sample, which cross in shared
 * memory; blocks side by side have neighbouring channels. T has Storage and Offset of the tensor, CHANNELS, EXTENT of its axes, the distances SAMPLE and
 * AXIS, PLANE, the distance of planes, and WIDE, the channels that a thread moves at once.
 */
struct TurnCall {
    const void *from;
    void *to;
    const void *bias; /* per channel, of the tensor's type; may be null */
    int accumulate;
};
template <class T> struct Turn {
    typedef typename T::Storage Storage;
    typedef typename T::Offset Offset;
    typedef typename Storage::bits bits;
    static constexpr int THREADS = 256, ACROSS = 32, POINTS = 128, PITCH = POINTS + 1;
    static constexpr int QUAD = 16 / int(sizeof(real)), UNITS = ACROSS / T::WIDE;
    /* A thread has quads of one channel, and units of the same channels: how many, and how many points apart. */
    static constexpr int QUAD_GAP = THREADS / ACROSS * QUAD, QUADS = POINTS / QUAD_GAP, UNIT_GAP = THREADS / UNITS,
                         COUNT = POINTS / UNIT_GAP;
    static constexpr unsigned ROW = T::EXTENT[2], SLICE = T::EXTENT[1], SIZE = T::EXTENT[0] * SLICE * ROW;
    static constexpr unsigned PARTS = (T::CHANNELS + ACROSS - 1) / ACROSS, PIECES = (SIZE + POINTS - 1) / POINTS;
    static constexpr bool TOGETHER =
        (SLICE == 1 || T::AXIS[1] == ROW * T::AXIS[2]) && (T::EXTENT[0] == 1 || T::AXIS[0] == SLICE * ROW * T::AXIS[2]);
    typedef Neighbours<plain, QUAD> Quad;
    typedef Neighbours<Storage, T::WIDE> Unit;
    static_assert(T::CHANNELS % T::WIDE == 0 && T::PLANE % QUAD == 0 && T::PLANE >= SIZE, "none is cut off");

    unsigned point; /* of the block: its first one, as the channel and the places */
    int channel;
    long long planes, tensor;
    /* Of the thread. Eight quads of four channels, and as many channels of so many points, meet no bank twice. */
    int quad_channel, quad_point, unit_channel, unit_point;
    CF_DEVICE Turn() {
        const unsigned n = blockIdx.x;
        const long long sample = n / PARTS / PIECES;
        channel = int(n % PARTS) * ACROSS;
        point = n / PARTS % PIECES * POINTS;
        planes = (sample * T::CHANNELS + channel) * T::PLANE + point;
        tensor = sample * T::SAMPLE + channel;
        quad_channel = int(threadIdx.x) / (THREADS / ACROSS);
        quad_point = int(threadIdx.x) % (THREADS / ACROSS) * QUAD;
        unit_channel = int(threadIdx.x) % UNITS * T::WIDE;
        unit_point = int(threadIdx.x) / UNITS;
    }
    CF_DEVICE bool has(int c, int p) const { return channel + c < T::CHANNELS && point + p < SIZE; }
    CF_DEVICE bool has_quad(int i) const { return has(quad_channel, quad_point + i * QUAD_GAP); }
    CF_DEVICE bool has_unit(int i) const { return has(unit_channel, unit_point + i * UNIT_GAP); }
    /* Where they are in the block's shared memory. */
    CF_DEVICE int quad_place(int i, int e) const { return quad_channel * PITCH + quad_point + i * QUAD_GAP + e; }
    CF_DEVICE int unit_place(int i, int e) const { return (unit_channel + e) * PITCH + unit_point + i * UNIT_GAP; }
    /* In memory: of quad 0, from where the others are constants apart; of a unit. */
    CF_DEVICE long long in_planes() const { return planes + quad_channel * T::PLANE + quad_point; }
    CF_DEVICE long long in_tensor(int i) const {
        const unsigned n = point + (unit_point + i * UNIT_GAP), row = n / ROW;
        const Offset at = TOGETHER
                              ? Offset(n) * Offset(T::AXIS[2])
                              : Offset(row / SLICE) * Offset(T::AXIS[0]) + Offset(row % SLICE) * Offset(T::AXIS[1]) +
                                    Offset(n % ROW) * Offset(T::AXIS[2]);
        return tensor + unit_channel + at;
    }
};
/* Sixteen bytes in one go, which compilers part when they do not see that all of them always come together. Nothing reads them again. */
template <class B, class N> CF_DEVICE void put_sixteen(B *to, const N &n) { n.store(to); }
#ifndef CF_SIMT
CF_DEVICE void put_sixteen(float *to, const Neighbours<plain, 4> &n) {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(float(n.v[0])), "f"(float(n.v[1])),
                 "f"(float(n.v[2])), "f"(float(n.v[3])));
}
template <class S> CF_DEVICE void put_sixteen(unsigned short *to, const Neighbours<S, 8, false> &n) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(n.w[0]), "r"(n.w[1]), "r"(n.w[2]),
                 "r"(n.w[3]));
}
#endif
template <class T> CF_DEVICE void turn_from_planes(const TurnCall &call) {
    typedef Turn<T> G;
    const G at;
    smem<real> tile = cf_dynamic_shared<real>();
    const real *const from = static_cast<const real *>(call.from) + at.in_planes();
    typename G::Quad in[G::QUADS];
    unroll<0, G::QUADS>([&](auto i) {
        in[i].clear();
        if (at.has_quad(i))
            in[i].load(from + i * G::QUAD_GAP);
    });
    unroll<0, G::QUADS>([&](auto i) {
        unroll<0, G::QUAD>([&](auto e) { tile[at.quad_place(i, e)] = in[i].template get<decltype(e)::value>(); });
    });
    real bias[T::WIDE];
    unroll<0, T::WIDE>([&](auto e) {
        bias[e] = 0;
        if (call.bias && at.has(at.unit_channel, 0))
            bias[e] =
                G::Storage::load(static_cast<const typename G::bits *>(call.bias) + (at.channel + at.unit_channel + e));
    });
    __syncthreads();
    unroll<0, G::COUNT>([&](auto i) {
        if (!at.has_unit(i))
            return;
        typename G::bits *const to = static_cast<typename G::bits *>(call.to) + at.in_tensor(i);
        real v[T::WIDE];
        unroll<0, T::WIDE>([&](auto e) { v[e] = tile[at.unit_place(i, e)] + bias[e]; });
        typename G::Unit out;
        if (call.accumulate) {
            out.load(to);
            unroll<0, T::WIDE>([&](auto e) { v[e] += out.template get<decltype(e)::value>(); });
        }
        out.set(v);
        put_sixteen(to, out);
    });
}
template <class T> CF_DEVICE void turn_to_planes(const TurnCall &call) {
    typedef Turn<T> G;
    const G at;
    smem<real> tile = cf_dynamic_shared<real>();
    typename G::Unit in[G::COUNT];
    unroll<0, G::COUNT>([&](auto i) {
        in[i].clear();
        if (at.has_unit(i))
            in[i].load(static_cast<const typename G::bits *>(call.from) + at.in_tensor(i));
    });
    unroll<0, G::COUNT>([&](auto i) {
        unroll<0, T::WIDE>([&](auto e) { tile[at.unit_place(i, e)] = in[i].template get<decltype(e)::value>(); });
    });
    __syncthreads();
    real *const to = static_cast<real *>(call.to) + at.in_planes();
    unroll<0, G::QUADS>([&](auto i) {
        real v[G::QUAD];
        unroll<0, G::QUAD>([&](auto e) { v[e] = tile[at.quad_place(i, e)]; });
        typename G::Quad out;
        out.set(v);
        if (at.has_quad(i))
            put_sixteen(to + i * G::QUAD_GAP, out);
    });
}
