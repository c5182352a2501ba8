/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both gradients of planes with channels last in one kernel, which reads gy once. There is no stride, and gx has as
 * many rows as gy.
 *
 * A block has two kinds of warps. The first ones walk down gy, and have the sums of gx (channels_last.cuh). The others
 * read the same rows of gy, and rows of x beside them, for the sums of gw (channels_last_weights.cuh) and of the
 * gradient of the bias. In step n all warps have a row of gy: row n, from `row_pad` rows above the segment on. The
 * warps of gw also have the last row of x that this row of gy meets: row n - KERNEL_Y + 1, from the first row of the
 * segment on. So gw needs up to `row_pad` steps more than gx. All warps wait for one another after each batch of rows.
 *
 * The host prints two problems (both.c): D, that of gx, and W, that of gw. They have the same QUADS, BATCH and BUFFERS.
 */
#pragma once

#include "conv/toeplitz/channels_last_weights.cuh"

template <class D, class W> struct BothLast {
    typedef Last<D> G;
    typedef LastWeights<W> S;
    static constexpr int KY = D::KERNEL_Y, BATCH = D::BATCH, THREADS = 32 * S::WARPS, SUMS = S::KY * S::KX + 1,
                         OF_GY = 0, OF_OUT = OF_GY + D::BUFFERS * G::SLOT, OF_X = OF_OUT + 2 * BATCH * G::OUT.size,
                         X_SLOT = BATCH * S::IN.size, OF_TOTALS = OF_X + D::BUFFERS * X_SLOT,
                         BIAS = S::WARPS * S::OF_WARP, /* numbers before the sums of gy, of which a warp has eight */
        UNITS = OF_TOTALS + (BIAS + 8 * S::WARPS) / 4;
    static_assert(D::QUADS == W::QUADS && D::BATCH == W::BATCH && D::BUFFERS == W::BUFFERS && S::OUTPUTS <= G::OUTPUTS,
                  "both gradients have the same rows");
    static_assert(S::SY == 1 && S::SX == 1, "there is no stride");
};

/* Loads batches of rows of x. */
template <class D, class W> struct BothLastLoads {
    typedef BothLast<D, W> B;
    typedef typename B::S S;
    const cf_toeplitz_call &data, &weights;
    const Pieces<W, S::POSITIONS, W::WIDTH, false, B::THREADS, 0, B::G::THREADS> pieces;
    const SignalRows x;
    Segment<D> ahead;
    int next; /* the first step of the next batch, of segment `ahead` */
    CF_DEVICE BothLastLoads(const cf_toeplitz_both_call &call, long long block)
        : data(call.data), weights(call.weights), pieces(weights.x, weights.groups, block, -weights.column_pad),
          x(weights.x, block), ahead(data, data.row_pad), next(0) {}
    CF_DEVICE void load(smem<uint4> to) {
        if (ahead.count > 0) {
#pragma unroll
            for (int k = 0; k < B::BATCH; ++k) {
                const int n = next + k, row = ahead.output + n - (B::KY - 1);
                if (n < ahead.steps && unsigned(row) < unsigned(weights.x.rows))
                    pieces.load(to + k * S::IN.size, x.row(ahead.sample * weights.x.sample_stride, row));
            }
            next += B::BATCH;
            if (next >= ahead.steps) {
                ahead.set(data);
                next = 0;
            }
        }
        tiles_commit();
    }
};

/* The sum of the rows of gy, by products with ones: a lane of the first four has two channels. */
template <class W> struct GySums {
    float sum[4];
    CF_DEVICE void clear() { sum[0] = sum[1] = sum[2] = sum[3] = 0; }
    CF_DEVICE void add(const unsigned (&gy)[W::TILES][2]) {
        const unsigned ones = W::Storage::word({1, 1}), a[4] = {ones, ones, ones, ones};
        unroll<0, W::TILES>([&](auto i) { multiply_tile<typename W::Storage>(sum, a, gy[i][0], gy[i][1]); });
    }
    CF_DEVICE void flush(smem<float> to) {
        const int lane = int(threadIdx.x) % 32;
        for (int c = 0; c < 2 && lane < 4; ++c)
            to[2 * lane + c] = to[2 * lane + c] + sum[c];
        clear();
    }
};

/* The warps that have gw. */
template <class D, class W> CF_DEVICE void walk_last_weights(const cf_toeplitz_both_call &call, smem<uint4> memory) {
    typedef BothLast<D, W> B;
    typedef typename B::G G;
    typedef typename B::S S;
    constexpr int LAST = D::BUFFERS - 1, UNROLLED = S::PERIOD % B::BATCH == 0 ? S::PERIOD : S::PERIOD * B::BATCH;
    const long long block = blockIdx.x * (4ll * W::QUADS);
    const int lane = int(threadIdx.x) % 32, number = int(threadIdx.x) / 32 - G::THREADS / 32,
              eight = number % S::EIGHTS, first = 16 * W::TILES * (number / S::EIGHTS),
              x_at = cf_toeplitz_place(S::IN, first + lane / 16 * 8 + lane % 8 + lane / 8 % 2) + eight,
              gy_at = cf_toeplitz_place(G::IN, first + lane % 16 + call.data.column_pad) + eight;
    smem<float> totals = smem_cast<float>(memory + B::OF_TOTALS), mine = totals + number * S::OF_WARP,
                of_gy = totals + (B::BIAS + 8 * number);
    BothLastLoads<D, W> loads(call, block);
    S sums;
    GySums<W> bias;
    sums.clear_sums();
    bias.clear();
    block_barrier();
    for (int slot = 0; slot < LAST; ++slot)
        loads.load(memory + (B::OF_X + slot * B::X_SLOT));
    int slot = 0, before = LAST, links = 0; /* the batch that is multiplied, and the free buffer */
    for (Segment<D> now(call.data, call.data.row_pad); now.count > 0; now.set(call.data)) {
        sums.clear();
        smem<uint4> gy = memory, x = memory;
        for (int base = 0; base < now.steps; base += UNROLLED) {
            unroll<0, UNROLLED>([&](auto u) {
                constexpr int N = decltype(u)::value, K = N % B::BATCH;
                const int n = base + N;
                if (n >= now.steps)
                    return;
                if (K == 0) {
                    tiles_wait<D::BUFFERS - 2>();
                    block_barrier();
                    loads.load(memory + (B::OF_X + before * B::X_SLOT));
                    gy = memory + slot * G::SLOT;
                    x = memory + (B::OF_X + slot * B::X_SLOT);
                    before = slot;
                    slot = slot == LAST ? 0 : slot + 1;
                }
                const bool counts = unsigned(n - call.data.row_pad) < unsigned(now.count);
                sums.read(Int<N % S::LIVE>(), counts, gy + K * G::IN.size, gy_at, cf_toeplitz_place(G::IN, 16));
                if (counts)
                    bias.add(sums.gy[N % S::LIVE]);
                if (unsigned(now.output + n - (B::KY - 1)) < unsigned(call.weights.x.rows))
                    sums.template add<N>(x + K * S::IN.size, x_at);
            });
            links += UNROLLED * W::TILES;
            if (links >= S::LINKS) {
                sums.flush(mine);
                bias.flush(of_gy);
                links = 0;
            }
        }
        block_barrier();
    }
    sums.flush(mine);
    bias.flush(of_gy);
}

/* Writes the gradient of the bias: the sums of all parts of a row. */
template <class D, class W>
CF_DEVICE void store_last_bias(const cf_toeplitz_call &call, smem<float> totals, long long block) {
    typedef BothLast<D, W> B;
    typedef typename B::S S;
    const int c = int(threadIdx.x);
    if (c >= 8 * S::EIGHTS || block + c >= call.groups)
        return;
    float total = 0;
    for (int p = 0; p < W::PARTS; ++p)
        total += totals[B::BIAS + 8 * (p * S::EIGHTS + c / 8) + c % 8];
    store_tap<W, B::SUMS>(call, block + c, W::KERNEL_Y, 0, total);
}

template <class D, class W> CF_DEVICE void toeplitz_last_both(const cf_toeplitz_both_call &call) {
    typedef BothLast<D, W> B;
    const long long block = blockIdx.x * (4ll * W::QUADS);
    smem<uint4> memory = cf_dynamic_shared<uint4>();
    smem<float> totals = smem_cast<float>(memory + B::OF_TOTALS);
    clear_tiles(memory, B::UNITS);
    if (int(threadIdx.x) < B::G::THREADS)
        walk_last<D>(call.data, memory + B::OF_GY, memory + B::OF_OUT, call.data.row_pad);
    else
        walk_last_weights<D, W>(call, memory);
    __syncthreads();
    B::S::template store<B::SUMS>(call.weights, totals, block);
    store_last_bias<D, W>(call.weights, totals, block);
}
