/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both gradients of a depthwise signal in one kernel, which reads gy once. Channels are first.
 *
 * A block has one channel and a slice of the items. An item is a tile of gy, with the columns around it that gx needs,
 * and the tile of x that gw needs. The block adds to its sums of gw (weights.cuh), and computes the tile of gx
 * (signals.cuh), which leaves through the memory of x. Both have the tiles, the slices and the order of additions that
 * they have in kernels of their own.
 *
 * The host prints two problems (both.c): D, that of gx, and W, that of gw. Y of W is the tile of gy that D reads, and
 * BEFORE is the number of its units before the first column of the tile.
 */
#pragma once

#include "conv/toeplitz/weights.cuh"

template <class D, class W> CF_DEVICE void toeplitz_both(const cf_toeplitz_both_call &call) {
    typedef Toeplitz<D> G;
    constexpr int OF_X = cf_toeplitz_both_x(Tile<typename W::X>::SIZE, G::OUT_PLANE), BUFFER = OF_X + G::Input::SIZE;
    static_assert(D::WIDTH == W::WIDTH && D::WARPS == W::WARPS && D::PLANES == 1 && W::PLANES == 1 && W::SHARES == 1,
                  "both gradients have the same tiles");
    static_assert(!D::SHARED, "fragments are in registers");
    const int part = int(threadIdx.x) / 32;
    const long long group = blockIdx.x;
    smem<uint4> memory = cf_dynamic_shared<uint4>();
    const WeightScale<D> scale(call.data.w, group);
    const Fragments<D> b(memory, call.data.w, group, scale.up, true);
    const Items<D> items(call.data);
    ToeplitzWeights<W> sums = {};
    const auto load = [&](long long item, smem<uint4> buffer) {
        const Corner output = items.output(call.data, item);
        const long long sample = items.sample(item);
        load_planes<typename W::X, 1>(buffer, call.weights.x, call.weights.samples, sample, group,
                                      Items<W>::input(call.weights, output));
        load_planes<typename D::X, 1>(buffer + OF_X, call.data.x, call.data.samples, sample, group,
                                      Items<D>::input(call.data, output));
    };
    int buffer = 0;
    if (items.begin < items.count)
        load(items.begin, memory);
    tiles_commit();
    for (long long item = items.begin; item < items.count; item += items.step, buffer ^= 1) {
        const smem<uint4> x = memory + buffer * BUFFER, gy = x + OF_X;
        if (item + items.step < items.count)
            load(item + items.step, memory + (buffer ^ 1) * BUFFER);
        tiles_commit();
        tiles_wait<1>();
        __syncthreads();
        if constexpr (W::Storage::PLAIN)
            sums.add_fp32(x, gy, part, 0);
        else
            sums.add(x, gy, part, 0);
        __syncthreads();
        convolve_tile<D>(call.data, b, gy, x, 0, part, items.sample(item), group, items.output(call.data, item), 0,
                         scale.down);
        __syncthreads();
    }
    sums.store(call.weights, smem_cast<float>(memory), group);
    if constexpr (W::BIAS)
        sums.store_bias(call.weights, smem_cast<float>(memory), group);
}

/* The entry point. The host prints the problems in namespaces, and FUNCTION, the template that computes both. */
#define CF_TOEPLITZ_BOTH_KERNEL(FUNCTION, THREADS, BLOCKS)                     \
    CF_KERNEL(THREADS, BLOCKS) cf_toeplitz(const cf_toeplitz_both_call call) { \
        cf_pdl_wait();                                                         \
        FUNCTION<of_gx::Problem, of_gw::Problem>(call);                        \
    }
