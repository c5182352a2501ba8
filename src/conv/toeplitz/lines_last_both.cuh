/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both gradients of a depthwise signal with channels last in one kernel, which reads gy once.
 *
 * A block has CHANNELS channels and a slice of the items. An item is a tile of gy, with the columns around it that gx
 * needs, and the tile of x that gw needs. A warp adds to the sums of gw of EACH channels (weights.cuh), and computes
 * their gx (lines_last.cuh), which takes the place of gy. Both have the tiles, the slices and the order of additions
 * that they have in kernels of their own.
 *
 * Tiles are copied to shared memory as they are, BUFFERS items ahead, and transposed from there into planes of
 * channels.
 *
 * The host prints two problems (both.c): D, that of gx, and W, that of gw. Y of W is the tile of gy that D reads, and
 * BEFORE is the number of its units before the first column of the tile.
 */
#pragma once

#include "conv/toeplitz/lines_last.cuh"

/* Stores gw and the gradient of the bias of all channels. sums: those of EACH channels of a warp. */
template <class W, int EACH>
CF_DEVICE void store_both_sums(const cf_toeplitz_call &call, const ToeplitzWeights<W> (&sums)[EACH], smem<float> memory,
                               long long first) {
    unroll<0, EACH>([&](auto e) {
        const int channel = int(threadIdx.x) / 32 * EACH + e;
        const float bias = sums[e].bias_of_warp();
        if (threadIdx.x % 32 == 0 && first + channel < call.groups)
            store_tap<W, ToeplitzWeights<W>::SUMS>(call, first + channel, W::KERNEL_Y, 0, bias);
        sums[e].template put<0>(memory + channel * (W::REACH * 128));
    });
    __syncthreads();
    ToeplitzWeights<W>::template add_diagonals<0>(call, memory, first);
}

template <class D, class W> CF_DEVICE void lines_last_both(const cf_toeplitz_both_call &call) {
    typedef Lines<D> L;
    typedef GradientPlanes<W::PLANES, D::WARPS, typename W::X> X;
    typedef GradientPlanes<W::PLANES, D::WARPS, typename W::Y> Y;
    typedef LinePairs<X, X::PAIRS> XPairs;
    typedef LinePairs<Y, Y::PAIRS> YPairs;
    constexpr int COPIES = XPairs::UNITS + YPairs::UNITS; /* units of an item */
    static_assert(D::WIDTH == W::WIDTH && D::CHANNELS == W::PLANES && L::G::PITCH == Tile<typename W::Y>::PITCH,
                  "both gradients have the same tiles");
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
    const long long first = (long long)blockIdx.x * D::CHANNELS;
    smem<uint4> x = cf_dynamic_shared<uint4>(), gy = x + X::UNITS, copies = gy + Y::UNITS;
    smem<unsigned> taps = smem_cast<unsigned>(copies + D::BUFFERS * COPIES);
    const Items<W> items(call.weights);
    const auto copy = [&](long long item, int buffer) {
        if (item < items.count) {
            const Corner output = items.output(call.weights, item);
            const long long sample = items.sample(item);
            smem<uint4> to = copies + buffer * COPIES;
            XPairs::copy(to, call.weights.x, call.weights.groups, sample, first,
                         items.input(call.weights, output).column);
            YPairs::copy(to + XPairs::UNITS, call.data.x, call.data.groups, sample, first,
                         output.column - call.data.column_pad);
        }
        tiles_commit();
    };
#pragma unroll 1
    for (int i = 0; i < D::BUFFERS; ++i)
        copy(items.begin + i * items.step, i);
    float down[L::EACH];
    unroll<0, L::EACH>([&](auto e) {
        const long long own = first + warp * L::EACH + e;
        const WeightScale<D> scale(call.data.w, own < call.data.groups ? own : 0);
        L::load_taps(taps + (warp * L::EACH + e) * L::TAPS, call.data, own, scale.up);
        down[e] = scale.down;
    });
    ToeplitzWeights<W> sums[L::EACH] = {};
    int buffer = 0;
#pragma unroll 1
    for (long long item = items.begin; item < items.count; item += items.step) {
        const long long sample = items.sample(item);
        const int column = items.output(call.weights, item).column;
        smem<uint4> from = copies + buffer * COPIES;
        tiles_wait<D::BUFFERS - 1>();
        XPairs::put(smem_cast<unsigned>(x), from);
        YPairs::put(smem_cast<unsigned>(gy), from + XPairs::UNITS);
        copy(item + D::BUFFERS * items.step, buffer);
        buffer = buffer + 1 == D::BUFFERS ? 0 : buffer + 1;
        __syncthreads();
        unroll<0, L::EACH>([&](auto e) {
            const int channel = warp * L::EACH + e;
            smem<uint4> plane = gy + Y::plane(channel);
            sums[e].add(x + X::plane(channel), plane, 0, 0);
            float sum[L::BLOCKS][4] = {};
            L::multiply(sum, plane, taps + (channel * L::TAPS + 2 * (lane % 4) - lane / 4 + 7));
            if (D::SCALED) /* as in lines_last(), where a bias of zero is added */
                unroll<0, L::BLOCKS>(
                    [&](auto n) { unroll<0, 4>([&](auto k) { sum[n][k] = sum[n][k] * down[e] + 0.0f; }); });
            if (call.data.accumulate)
                L::add_old(call.data, sum, sample, first + channel, column);
            L::put(plane, sum);
        });
        __syncthreads();
        store_lines<Y, D::WIDTH>(call.data.y, call.data.groups, smem_cast<unsigned>(gy), sample, first, column);
        __syncthreads();
    }
    store_both_sums<W>(call.weights, sums, smem_cast<float>(x), first);
}
