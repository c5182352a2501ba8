/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels-first planes from shared memory to memory, scaled, with bias, and added to the old values where wanted.
 * plane_access.cuh says which thread stores what. The layout in shared memory is that of plane_load.cuh.
 */
#pragma once

#include "conv/fused/plane_access.cuh"

/* Stores COUNT elements, VECTOR at a time: the counterpart of get_numbers(). */
template <class K, int COUNT, int VECTOR>
CF_DEVICE void put_numbers(typename K::Storage::bits *to, const real *v, typename K::Offset second, bool inside,
                           bool second_inside, bool accumulate) {
    if constexpr (VECTOR > 1 && !K::Storage::PLAIN) {
        typedef typename BitsOf<VECTOR>::type Vector;
        Vector *const piece = reinterpret_cast<Vector *>(to), old = inside && accumulate ? *piece : Vector(0);
        Vector a = 0;
        unroll<0, VECTOR>([&](auto e) {
            const real sum = v[e] + (accumulate ? K::Storage::number((unsigned short)(old >> (16 * e))) : real(0));
            a |= Vector(K::Storage::rounded(sum)) << (16 * e);
        });
        if (inside)
            *piece = a;
    } else if constexpr (VECTOR > 1) {
        typedef typename VectorOf<VECTOR>::type Vector;
        Vector a;
        if constexpr (VECTOR == 4)
            a = make_float4(v[0], v[1], v[2], v[3]);
        else
            a = make_float2(v[0], v[1]);
        Vector *const piece = reinterpret_cast<Vector *>(to);
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

/* Stores all planes of the block. */
template <class K, int VECTOR>
CF_DEVICE void store_rows(smem<cplx> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef Sweep<K, VECTOR> S;
    typedef PlaneGeometry<K> G;
    typedef typename K::Storage::bits bits;
    constexpr int ROWS = S::PAIRED ? 2 : 1, BATCH = S::EACH < 8 ? S::EACH : 8;
    const bool accumulate = call.accumulate;
    const real scale = K::STAGED ? real(1) : real(call.scale); /* put_rows() has scaled staged rows */
    S::each_column([&](int p, int row, int x) {
        const Column<K, VECTOR> c(plane_table, p, row, x);
        const Rows<K, S, STRAIGHT<K>> rows(plane_table, p, row);
        if (p >= plane_table.live || !(c.inside || c.second_inside))
            return;
        bits *const column = static_cast<bits *>(call.out) + plane_table.signal(p) + c.across;
        real bias = 0;
        if (call.bias)
            bias = bias_at<K>(call.bias, plane_table.channel(p));
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
                        v[S::PIECE + e] = in[ROWS - 1] ? smem_cast<real>(line)[x + e + G::STAGED_ROW] : real(0);
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
                    put_numbers<K, S::PIECE, VECTOR>(to + rows.at(first, i, h), v + h * S::PIECE, c.second,
                                                     in[h] && (!S::HALVED || c.inside), in[h] && c.second_inside,
                                                     accumulate);
                });
            });
        }
    });
}
