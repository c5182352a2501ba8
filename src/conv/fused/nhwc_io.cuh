/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels-last planes between memory and shared memory.
 *
 * A thread moves a unit of VECTOR neighbouring channels of one point at once, and goes down the rows. It scatters the
 * channels to VECTOR planes:
 *
 *     memory            [row][x] | unit 0: channels 0 .. VECTOR - 1 | unit 1 | ...
 *     shared memory     plane 0 [row][x], plane 1 [row][x], ...
 *     threads           neighbouring threads have neighbouring units, then neighbouring x
 *
 * A block has as many channels as fill a sector of memory (32 bytes), so it uses all bytes that it reads. All
 * planes of a unit have the same row of the batch; the planner sees to that.
 */
#pragma once

#include "conv/fused/nhwc_vectors.cuh"
#include "conv/fused/plane_access.cuh"

/*
 * How the threads of a block share columns of units. Neighbouring threads have SIDE neighbouring points of one
 * unit, then those of the next unit, which gives the fewest bank conflicts of a half warp. Members that Rows needs
 * have the names of Sweep (plane_access.cuh).
 */
template <class K> struct Units {
    typedef PlaneGeometry<K> G;
    static constexpr bool PAIRED = K::KIND == TWO_ROWS_AS_COMPLEX;
    static constexpr int VECTOR = K::VECTOR, COUNT = K::P / VECTOR;
    static_assert(K::P % VECTOR == 0, "units are whole");
    static constexpr int LO = K::STAGED ? G::template lo<2>() / 4 * 4 : G::LINE_LO,
                         HI = K::STAGED ? G::STAGED_ROW : G::LINE_HI, ACROSS = HI - LO;
    static constexpr int TOGETHER = COUNT < 16 / VECTOR ? COUNT : 16 / VECTOR; /* units that a half warp reads */
    static constexpr int SIDE = TOGETHER <= 1 ? ACROSS : 16 / TOGETHER < ACROSS ? 16 / TOGETHER : ACROSS;
    static constexpr int COLUMNS = (ACROSS + SIDE - 1) / SIDE * SIDE * COUNT;
    static constexpr int LANES = COLUMNS < K::T ? COLUMNS : K::T, TIMES = (COLUMNS + LANES - 1) / LANES;
    static constexpr int OF_A_PLANE = K::T / LANES, ROWS = G::D0 * G::DR, EACH = (ROWS + OF_A_PLANE - 1) / OF_A_PLANE;

    /* Calls f(first plane of the unit, row, x) for each column of this thread. */
    template <class F> static CF_DEVICE void each_column(F f) {
        const int lane = int(threadIdx.x) % LANES, row = int(threadIdx.x) / LANES;
        if (K::T % LANES && row >= OF_A_PLANE)
            return;
#pragma unroll 1
        for (int j = 0; j < TIMES; ++j) {
            const int n = lane + j * LANES, unit = n / SIDE % COUNT, x = LO + n / (SIDE * COUNT) * SIDE + n % SIDE;
            if ((COLUMNS % LANES == 0 || n < COLUMNS) && (ACROSS % SIDE == 0 || x < HI))
                f(unit * VECTOR, row, x);
        }
    }
};

/* What a thread computes once for a column of units: the counterpart of Column in plane_access.cuh. */
template <class K> struct UnitColumn {
    typedef Units<K> S;
    typedef PlaneGeometry<K> G;
    typedef typename K::Offset Offset;
    int p, row, x, place; /* first plane; place of the point in a line */
    Offset across, second;
    bool inside, second_inside;
    CF_DEVICE UnitColumn(const PlaneTable<K> &plane_table, int plane, int first, int number)
        : p(plane), row(first), x(number) {
        const int start = plane_table.template start<2>(p), from = S::PAIRED ? x : 2 * x;
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
    /* The offset of the i-th row of the unit's first plane in shared memory. */
    CF_DEVICE int offset(int i) const {
        const int n = row + i * S::OF_A_PLANE;
        return p * G::PLANE + (n / G::DR + G::template lo<0>()) * G::AXIS0_PITCH + (n % G::DR + G::ROW_LO) * G::PITCH;
    }
};

/* Both elements of a point in plane e of the unit. line: the row in the unit's first plane. */
template <class K> CF_DEVICE cplx get_point(smem<cplx> line, int place, int e) {
    typedef PlaneGeometry<K> G;
    smem<cplx> at = line + e * G::PLANE;
    if constexpr (K::STAGED)
        return {smem_cast<real>(at)[place], smem_cast<real>(at)[place + G::STAGED_ROW]};
    else
        return at[place];
}
template <class K> CF_DEVICE void put_point(smem<cplx> line, int place, int e, cplx v) {
    typedef PlaneGeometry<K> G;
    smem<cplx> at = line + e * G::PLANE;
    if constexpr (K::STAGED) {
        smem_cast<real>(at)[place] = v.x;
        smem_cast<real>(at)[place + G::STAGED_ROW] = v.y;
    } else {
        at[place] = v;
    }
}

/* Loads all planes of the block. */
template <class K> CF_DEVICE void load_units(smem<cplx> z, const PlaneTable<K> &plane_table, const void *memory) {
    typedef Units<K> S;
    typedef typename K::Storage Storage;
    typedef typename Storage::bits bits;
    typedef Neighbours<Storage, S::VECTOR> Numbers;
    constexpr int MOST = 128 / (2 * int(sizeof(Numbers))), BATCH = S::EACH < MOST ? S::EACH : MOST;
    S::each_column([&](int p, int row, int x) {
        const int shown =
            p < plane_table.live ? p : plane_table.live - S::VECTOR; /* units beyond the last one repeat it */
        const UnitColumn<K> c(plane_table, p, row, x);
        const Rows<K, S, STRAIGHT<K>> rows(plane_table, shown, row);
        const bits *const column = static_cast<const bits *>(memory) + plane_table.signal(shown) + c.across;
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
                unroll<0, S::VECTOR>([&](auto e) {
                    constexpr int E = decltype(e)::value;
                    put_point<K>(line, c.place, E, {v[b][0].template get<E>(), v[b][1].template get<E>()});
                });
            });
        }
    });
}

/* Stores all planes of the block, scaled, with bias, and added to the old values where wanted. */
template <class K>
CF_DEVICE void store_units(smem<cplx> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef Units<K> S;
    typedef typename K::Storage Storage;
    typedef typename Storage::bits bits;
    typedef Neighbours<Storage, S::VECTOR> Numbers;
    constexpr int BATCH = S::EACH < 4 ? S::EACH : 4;
    const bool accumulate = call.accumulate;
    const real scale = K::STAGED ? real(1) : real(call.scale); /* put_rows() has scaled staged rows */
    S::each_column([&](int p, int row, int x) {
        const UnitColumn<K> c(plane_table, p, row, x);
        const Rows<K, S, STRAIGHT<K>> rows(plane_table, p, row);
        if (p >= plane_table.live || !(c.inside || c.second_inside))
            return;
        bits *const column = static_cast<bits *>(call.out) + plane_table.signal(p) + c.across;
        real bias[S::VECTOR];
        unroll<0, S::VECTOR>([&](auto e) {
            bias[e] = 0;
            if (call.bias)
                bias[e] = bias_at<K>(call.bias, plane_table.channel(p + e));
        });
#pragma unroll 1
        for (int first = 0; first < S::EACH; first += BATCH) {
            bits *const base = column + rows.base(first);
            unroll<0, BATCH>([&](auto b) {
                const int i = first + b;
                if (!c.exists(i))
                    return;
                smem<cplx> line = z + c.offset(i);
                real v[2][S::VECTOR];
                unroll<0, S::VECTOR>([&](auto e) {
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
                        unroll<0, S::VECTOR>([&](auto e) { v[h][e] += n.template get<decltype(e)::value>(); });
                    }
                    n.set(v[h]);
                    n.store(to);
                });
            });
        }
    });
}
