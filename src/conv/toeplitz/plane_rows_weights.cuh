/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of the weights of planes with channels first on tensor cores, one row of x at a time. Segments, samples
 * and the ring of rows are those of plane_rows.cuh.
 *
 *     D[r][a][b] = sum over samples, rows i and segments g of x[i + r - ROW_PAD][input a of g] gy[i][output b of g]
 *
 * A product (m16n8k16) has one row of x and one of gy: m = 16 inputs of a segment, n = its eight outputs, k = samples
 * and segments, so that all segments add to the same D. The tap of D[r][a][b] is a - b - LEAD. A warp walks down the
 * rows of x, and has the operands of KERNEL_Y rows of gy in registers.
 *
 * D stays in registers over all samples of a warp. Tensor cores truncate their sums, so chains have one batch of rows,
 * and are then added in FP32. Warps and slices are added in their order.
 *
 * The host prints F (plane_rows.c) as for plane_rows.cuh. PARTS are of the rows of x.
 */
#pragma once

#include "conv/toeplitz/plane_rows.cuh"

template <class F> struct PlaneWeights {
    typedef PlaneRing<F, typename F::X, F::SEGMENTS + 1> X;
    typedef PlaneRing<F, typename F::Y, F::SEGMENTS> Y;
    static constexpr int SUMS = F::KERNEL_Y * 128; /* of D */
    float sum[F::KERNEL_Y][4];

    /* Adds the planes of PACK samples from `sample` on, with part `part` of the rows of x. */
    CF_DEVICE void add(const cf_toeplitz_call &call, smem<uint4> ring, long long group, long long sample, int part) {
        const int lane = int(threadIdx.x) % 32, matrix = lane / 8,
                  x_at = plane_segment<F, F::SEGMENTS + 1>(lane % 8 + matrix / 2 * 8) + matrix % 2,
                  y_at = X::SIZE + plane_segment<F, F::SEGMENTS>(lane % 16);
        const int first = part * F::PART_ROWS, end = cf_min_of(first + F::PART_ROWS, F::X::ROWS),
                  from =
                      cf_max_of(first - F::KERNEL_Y + 1, -F::ROW_PAD); /* rows of x; row + ROW_PAD of gy comes, too */
        X x(call.x, call.samples, group, sample, from, end);
        Y gy(call.y, call.samples, group, sample, from + F::ROW_PAD, F::Y::ROWS);
        const auto copy = [&](int batch) {
            x.copy(call.x, ring + batch * (X::BATCH * X::ROW));
            gy.copy(call.y, ring + (X::SIZE + batch * (X::BATCH * Y::ROW)));
            tiles_commit();
        };
        for (int batch = 0; batch < X::BATCHES - 1; ++batch)
            copy(batch);
        unsigned b[F::KERNEL_Y][2] = {};
        int batch = 0;
#pragma unroll 1
        for (int row = from; row < end; row += X::BATCH) {
            tiles_wait<X::BATCHES - 2>();
            __syncwarp();
            copy(batch == 0 ? X::BATCHES - 1 : batch - 1);
            const int x_row = x_at + batch * (X::BATCH * X::ROW), y_row = y_at + batch * (X::BATCH * Y::ROW);
            float d[F::KERNEL_Y][4] = {};
            const auto multiply = [&](auto all) {
                constexpr bool ALL = decltype(all)::value;
                unroll<0, X::BATCH>([&](auto u) {
                    constexpr int U = decltype(u)::value, NEW = U % F::KERNEL_Y;
                    if (!ALL)
                        b[NEW][0] = b[NEW][1] = 0;
                    if (ALL || row + U + F::ROW_PAD < F::Y::ROWS)
                        ldmatrix_trans_x2(b[NEW], ring, y_row + U * Y::ROW);
                    if (!ALL && (row + U < first || row + U >= end))
                        return;
                    unsigned a[4];
                    ldmatrix_trans_x4(a, ring, x_row + U * X::ROW);
                    unroll<0, F::KERNEL_Y>([&](auto r) {
                        constexpr int GY = (U - decltype(r)::value + F::KERNEL_Y) % F::KERNEL_Y;
                        multiply_tile<typename F::Storage>(d[r], a, b[GY][0], b[GY][1]);
                    });
                });
            };
            if (row >= first && row + X::BATCH <= end && row + X::BATCH + F::ROW_PAD <= F::Y::ROWS)
                multiply(Int<1>{});
            else
                multiply(Int<0>{});
            unroll<0, F::KERNEL_Y>([&](auto r) { unroll<0, 4>([&](auto i) { sum[r][i] += d[r][i]; }); });
            batch = batch == X::BATCHES - 1 ? 0 : batch + 1;
        }
        tiles_wait<0>();
        __syncwarp();
    }

    /* Sums the diagonals of D of all warps. */
    CF_DEVICE void store(const cf_toeplitz_call &call, smem<float> memory, long long group) {
        const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
        unroll<0, F::KERNEL_Y>([&](auto r) {
            unroll<0, 2>([&](auto i) {
                smem_cast<float2>(memory + (warp * SUMS + r * 128 + (lane / 4 + 8 * i) * 8 + lane % 4 * 2))[0] =
                    make_float2(sum[r][2 * i], sum[r][2 * i + 1]);
            });
        });
        __syncthreads();
        for (int tap = int(threadIdx.x); tap < F::KERNEL_Y * F::KERNEL_X; tap += 32 * F::WARPS) {
            const int r = tap / F::KERNEL_X, s = tap % F::KERNEL_X;
            float total = 0;
            for (int other = 0; other < F::WARPS; ++other)
#pragma unroll
                for (int b = 0; b < 8; ++b)
                    total += memory[other * SUMS + r * 128 + (s + b + F::LEAD) * 8 + b];
            store_tap<F>(call, group, r, s, total);
        }
    }
};

template <class F> CF_DEVICE void plane_rows_weights(const cf_toeplitz_call &call) {
    typedef PlaneWeights<F> G;
    constexpr int SIZE = G::X::SIZE + G::Y::SIZE;
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
    const long long group = blockIdx.x, items = (call.samples + F::PACK - 1) / F::PACK * F::PARTS;
    const smem<uint4> ring = cf_dynamic_shared<uint4>() + warp * SIZE;
    for (int i = lane; i < SIZE; i += 32)
        ring[i] = make_uint4(0, 0, 0, 0);
    __syncwarp();
    G sums = {};
    for (long long item = (long long)blockIdx.y * F::WARPS + warp; item < items;
         item += (long long)gridDim.y * F::WARPS)
        sums.add(call, ring, group, item / F::PARTS * F::PACK, int(item % F::PARTS));
    __syncthreads();
    sums.store(call, cf_dynamic_shared<float>(), group);
}
