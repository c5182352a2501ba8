/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of the weights of small planes with channels last. The products are those of channels_last_weights.cuh.
 * Their 16 columns are a row of one sample, or rows of eight columns of PACK = 2 samples.
 *
 * As in planes_in_place.cuh, a block copies whole planes: x with zeros between its rows, and gy with rows of 16 / PACK
 * positions, of which those behind the last column are zeros. A warp has eight channels and PACK samples of each copy.
 *
 * The host prints F (planes_in_place.c) as for planes_in_place.cuh. A block copies PACK PARTS samples at a time.
 */
#pragma once

#include "conv/toeplitz/planes_in_place.cuh"

template <class F> struct WeightsInPlace {
    typedef LastWeights<F> Sums;
    static constexpr int KY = F::KERNEL_Y, OF_ROW = 16 / F::PACK, PAIRS = Sums::PAIRS, SAMPLES = F::PACK * F::PARTS,
                         THREADS = 32 * Sums::WARPS,
                         X_POSITIONS = (F::X::ROWS - 1) * F::ROW_STEP + OF_ROW - 1 + 2 * PAIRS,
                         GY_POSITIONS = F::Y::ROWS * OF_ROW;
    typedef PlacedPlanes<F, typename F::X, F::COLUMN_PAD, F::ROW_STEP, X_POSITIONS, false> X;
    typedef PlacedPlanes<F, typename F::Y, 0, OF_ROW, GY_POSITIONS, false> Gy;
    static constexpr int OF_X = SAMPLES * X::ROW.size, BUFFER = OF_X + SAMPLES * Gy::ROW.size,
                         ITEMS = cf_max_of(1, Sums::LINKS / F::X::ROWS); /* between two additions to the totals */

    /* The units of this lane in x and in gy. */
    int x_at, gy_at;
    CF_DEVICE WeightsInPlace(int eight, int part) {
        const int lane = int(threadIdx.x) % 32, x_column = lane / 16 * 8 + lane % 8, gy_column = lane % 16;
        x_at = (F::PACK * part + x_column / OF_ROW) * X::ROW.size +
               cf_toeplitz_place(X::ROW, x_column % OF_ROW + lane / 8 % 2) + eight;
        gy_at = (F::PACK * part + gy_column / OF_ROW) * Gy::ROW.size + cf_toeplitz_place(Gy::ROW, gy_column % OF_ROW) +
                eight;
    }

    /* Adds the products of row N of x. Rows of gy are read when they are first met. */
    template <int N> CF_DEVICE void add(Sums &sums, smem<uint4> x, smem<uint4> gy) const {
        unroll<0, KY>([&](auto r) {
            constexpr int Q = N + F::ROW_PAD - decltype(r)::value;
            if constexpr (Q >= 0 && Q < F::Y::ROWS && N == cf_max_of(0, Q - F::ROW_PAD)) {
                unsigned b[4];
                ldmatrix_trans_x4(b, gy, gy_at + cf_toeplitz_place(Gy::ROW, Q * OF_ROW));
                sums.gy[Q % KY][0][0] = b[0];
                sums.gy[Q % KY][0][1] = b[1];
            }
        });
        unroll<0, PAIRS>([&](auto p) {
            unsigned a[4];
            ldmatrix_trans_x4(a, x, x_at + cf_toeplitz_place(X::ROW, N * F::ROW_STEP + 2 * p));
            unroll<0, KY>([&](auto r) {
                constexpr int Q = N + F::ROW_PAD - decltype(r)::value;
                if constexpr (Q >= 0 && Q < F::Y::ROWS)
                    multiply_tile<typename F::Storage>(sums.sum[r][p], a, sums.gy[Q % KY][0][0], sums.gy[Q % KY][0][1]);
            });
        });
    }
};

template <class F> CF_DEVICE void planes_in_place_weights(const cf_toeplitz_call &call) {
    typedef WeightsInPlace<F> G;
    typedef typename G::Sums Sums;
    const int number = int(threadIdx.x) / 32;
    const long long block = blockIdx.x * (4ll * F::QUADS), step = gridDim.y * (long long)G::SAMPLES;
    smem<uint4> memory = cf_dynamic_shared<uint4>();
    smem<float> totals = smem_cast<float>(memory + 2 * G::BUFFER), mine = totals + number * Sums::OF_WARP;
    const auto load = [&](long long sample, int buffer) {
        if (sample < call.samples) {
            G::X::template load<G::SAMPLES, G::THREADS>(memory + buffer, call.x, call.samples, call.groups, sample,
                                                        block);
            G::Gy::template load<G::SAMPLES, G::THREADS>(memory + (buffer + G::OF_X), call.y, call.samples, call.groups,
                                                         sample, block);
        }
        tiles_commit();
    };
    clear_tiles(memory, 2 * G::BUFFER + Sums::WARPS * Sums::OF_WARP / 4); /* what surrounds a plane stays zero */
    __syncthreads();
    load(blockIdx.y * (long long)G::SAMPLES, 0);
    const G lane(number % Sums::EIGHTS, number / Sums::EIGHTS);
    Sums sums;
    sums.clear_sums();
    int buffer = 0, items = 0;
    for (long long sample = blockIdx.y * (long long)G::SAMPLES; sample < call.samples; sample += step) {
        tiles_wait<0>();
        __syncthreads();
        load(sample + step, G::BUFFER - buffer);
        unroll<0, F::X::ROWS>(
            [&](auto n) { lane.template add<decltype(n)::value>(sums, memory + buffer, memory + (buffer + G::OF_X)); });
        if (++items == G::ITEMS) {
            sums.flush(mine);
            items = 0;
        }
        buffer = G::BUFFER - buffer;
    }
    sums.flush(mine);
    __syncthreads();
    Sums::store(call, totals, block);
}
