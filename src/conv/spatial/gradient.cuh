/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of the weights of layers with short kernels, on FP32 units.
 *
 *     gw[c][i][s] = sum over samples and outputs o of gy[c][o] x[i][stride o + dilation s - pad]
 *
 * A thread has the sums of a share of the taps: ROWS kernel rows, of each X.taps taps. It walks over strips of gy, held
 * in registers, and over the windows of x that they meet. At the end the sums of the threads of a block are added in
 * their order. If a filter has several blocks (slices), another kernel adds theirs.
 *
 * The host prints F with what signals have (strips.cuh), and ROWS and SHARES (of one depth and chunk of taps: kernel
 * rows in shares). Y.taps is ROWS. KERNEL_Y is the number of kernel rows. STRIPS threads share the strips of a block.
 */
#pragma once

#include "conv/gpu/slices.cuh"
#include "conv/spatial/channels_first.cuh"
#include "conv/spatial/channels_last.cuh"

template <class F> struct TapSums {
    typedef Spatial<F> G;
    static constexpr int SHARES = F::SHARES * F::KERNEL_Z * G::CHUNKS;
    float sum[F::ROWS][G::X.taps][G::VECTOR];

    /* The kernel row, depth and chunk of taps with which a share begins. */
    static CF_DEVICE int row_of(int share) { return share % F::SHARES * F::ROWS; }
    static CF_DEVICE int chunk_of(int share) { return share / F::SHARES % G::CHUNKS; }
    static CF_DEVICE int depth_of(int share) { return share / F::SHARES / G::CHUNKS; }

    /* Adds the products of a strip of gy and the rows of x that it meets. The next window is loaded before the products
     * of this one. */
    template <class Rows> CF_DEVICE void add(const Rows &rows, const float (&gy)[G::TY][G::TX][G::VECTOR], int chunk) {
        typename Rows::Element next[G::WINDOW];
        bool follows = rows.fetch(next, 0, chunk);
#pragma unroll
        for (int n = 0; n < G::TALL; ++n) {
            float x[G::WINDOW][G::VECTOR];
#pragma unroll
            for (int k = 0; k < G::WINDOW; ++k)
                next[k].get(x[k]);
            const bool any = follows;
            follows = n + 1 < G::TALL && rows.fetch(next, n + 1, chunk);
            if (!any)
                continue;
#pragma unroll
            for (int t = 0; t < G::TY; ++t) {
                const int r = cf_spatial_tap(G::Y, t, n);
                if (r < 0)
                    continue;
#pragma unroll
                for (int s = 0; s < G::X.taps; ++s)
#pragma unroll
                    for (int j = 0; j < G::TX; ++j)
#pragma unroll
                        for (int v = 0; v < G::VECTOR; ++v)
                            sum[r][s][v] += x[cf_spatial_input(G::X, j, s)][v] * gy[t][j][v];
            }
        }
    }

    /* Adds the sums of the threads of a block, and writes them. `first`: the first filter of the block. */
    CF_DEVICE void store(const cf_spatial_call &call, smem<float> memory, long long first, bool live) {
        constexpr int OF_THREAD = G::X.taps * G::VECTOR, ITEMS = SHARES * F::LANES * OF_THREAD;
        /* In walks with channels first, all threads of a block have one channel. Their warps add first. */
        constexpr bool BY_WARPS = F::TOGETHER > 0;
        constexpr int STRIPS = BY_WARPS ? F::STRIPS / 32 : F::STRIPS;
        const int thread = int(threadIdx.x);
#pragma unroll
        for (int r = 0; r < F::ROWS; ++r) {
            __syncthreads();
            if constexpr (BY_WARPS) {
#pragma unroll
                for (int s = 0; s < G::X.taps; ++s) {
                    float total = sum[r][s][0];
                    for (int lanes = 16; lanes > 0; lanes /= 2)
                        total += __shfl_xor_sync(~0u, total, lanes);
                    if (thread % 32 == 0)
                        memory[thread / 32 * OF_THREAD + s] = total;
                }
            } else if (live)
#pragma unroll
                for (int s = 0; s < G::X.taps; ++s)
#pragma unroll
                    for (int v = 0; v < G::VECTOR; ++v)
                        memory[thread * OF_THREAD + s * G::VECTOR + v] = sum[r][s][v];
            __syncthreads();
            for (int i = thread; i < ITEMS; i += int(blockDim.x)) {
                const int share = i / (F::LANES * OF_THREAD), rest = i % (F::LANES * OF_THREAD),
                          lane = rest / OF_THREAD, place = rest % OF_THREAD,
                          s = chunk_of(share) * G::X.taps + place / G::VECTOR, row = row_of(share) + r;
                const long long filter = first + lane * G::VECTOR + place % G::VECTOR;
                if (row >= F::KERNEL_Y || s >= F::KERNEL_X || filter >= call.channels)
                    continue;
                float total = 0;
                for (int strip = 0; strip < STRIPS; ++strip)
                    total += memory[((share * STRIPS + strip) * F::LANES + lane) * OF_THREAD + place];
                put(call, filter, depth_of(share), row, s, total);
            }
        }
    }

    static CF_DEVICE void put(const cf_spatial_call &call, long long filter, int q, int r, int s, float total) {
        if (call.slices > 1) {
            call.sums[(((blockIdx.y * call.channels + filter) * F::KERNEL_Z + q) * F::KERNEL_Y + r) * F::KERNEL_X + s] =
                total;
            return;
        }
        write(call, filter, q, r, s, total);
    }

    static CF_DEVICE void write(const cf_spatial_call &call, long long filter, int q, int r, int s, float total) {
        typedef typename F::Weights W;
        const long long channel = filter / F::SUMMED;
        typename W::bits *const p = static_cast<typename W::bits *>(const_cast<void *>(call.w.memory)) +
                                    channel / F::OWN * call.w.group_stride + channel % F::OWN * call.w.own_stride +
                                    filter % F::SUMMED * call.w.summed_stride + q * call.w.stride[0] +
                                    r * call.w.stride[1] + s * call.w.stride[2];
        W::store(p, call.accumulate ? total + float(W::load(p)) : total);
    }
};

/* The channel of x and of gy that belong to a filter. */
template <class F, class S> CF_DEVICE const typename S::bits *x_of(const cf_spatial_call &call, long long filter) {
    return static_cast<const typename S::bits *>(call.x.memory) + filter / (F::SUMMED * F::OWN) * call.x.group_stride +
           filter % F::SUMMED * call.x.channel_stride;
}
template <class F, class S> CF_DEVICE const typename S::bits *gy_of(const cf_spatial_call &call, long long filter) {
    return static_cast<const typename S::bits *>(call.y.memory) + filter / (F::SUMMED * F::OWN) * call.y.group_stride +
           filter / F::SUMMED % F::OWN * call.y.channel_stride;
}

template <class F> CF_DEVICE void spatial_weights_last(const cf_spatial_call &call) {
    typedef Spatial<F> G;
    typedef TapSums<F> T;
    typedef typename F::Storage Storage;
    const int thread = int(threadIdx.x), lane = thread % F::LANES, strip = thread / F::LANES % F::STRIPS,
              share = thread / F::LANES / F::STRIPS, chunk = T::chunk_of(share);
    const long long first = (long long)blockIdx.x * (F::LANES * F::VECTOR), filter = first + lane * F::VECTOR;
    T sums = {};
    if (share < T::SHARES && filter < call.channels) {
        const typename G::bits *const x = x_of<F, Storage>(call, filter), *const gy = gy_of<F, Storage>(call, filter);
        const Range range = range_of(call, F::STRIPS);
        for (int item = range.begin + strip; item < range.end; item += F::STRIPS) {
            const Position p = position_of(call, item);
            const int depth = plane_index<F>(p.at[0], T::depth_of(share), call.x.size[0]);
            if (depth < 0)
                continue;
            GlobalRows<F> rows(call.x, p);
            rows.top += T::row_of(share) * G::Y.dilation;
            rows.plane = x + (p.sample * call.x.sample_stride + depth * call.x.stride[0]);
            constexpr int COLUMN_STRIDE = int(F::COLUMN_Y);
            const int row_stride = int(call.y.stride[1]), y_rows = call.y.size[1] - p.at[1] * G::TY,
                      y_columns = call.y.size[2] - p.at[2] * G::TX;
            const typename G::bits *const from =
                gy + (p.sample * call.y.sample_stride +
                      int(p.at[0] * call.y.stride[0] + p.at[1] * G::TY * row_stride + p.at[2] * G::TX * COLUMN_STRIDE));
            Element<Storage, G::VECTOR> raw[G::TY][G::TX];
#pragma unroll
            for (int t = 0; t < G::TY; ++t) {
                const typename G::bits *const row = from + t * row_stride;
#pragma unroll
                for (int j = 0; j < G::TX; ++j)
                    raw[t][j].load(row + j * COLUMN_STRIDE, t < y_rows && j < y_columns);
            }
            float held[G::TY][G::TX][G::VECTOR];
#pragma unroll
            for (int t = 0; t < G::TY; ++t)
#pragma unroll
                for (int j = 0; j < G::TX; ++j)
                    raw[t][j].get(held[t][j]);
            sums.add(rows, held, chunk);
        }
    }
    sums.store(call, cf_dynamic_shared<float>(), first, share < T::SHARES);
}

template <class F> CF_DEVICE void spatial_weights_first(const cf_spatial_call &call) {
    typedef Spatial<F> G;
    typedef TapSums<F> T;
    typedef typename F::Storage Storage;
    /* The rows of x that all shares meet. */
    constexpr int ADVANCE = cf_spatial_advance(G::X), DOWNWARDS = cf_spatial_advance(G::Y),
                  HEIGHT = cf_spatial_reach(G::Y, F::DOWN, F::SHARES);
    typedef FloatTile<F::PLANES, HEIGHT, cf_spatial_reach(G::X, F::ACROSS, G::CHUNKS), ADVANCE, F::SKEWED, F::THREADS>
        In;
    typedef FloatTile<F::PLANES, G::TY * F::DOWN, G::TX * F::ACROSS, G::TX, true, F::THREADS> Gy;
    typedef Step<F::KERNEL_Z> Tiles;
    const int thread = int(threadIdx.x), strip = thread % F::STRIPS, share = thread / F::STRIPS,
              across = strip % F::ACROSS, down = strip / F::ACROSS % F::DOWN, plane = strip / (F::ACROSS * F::DOWN),
              chunk = T::chunk_of(share);
    const long long filter = blockIdx.x;
    const typename G::bits *const x = x_of<F, Storage>(call, filter), *const y = gy_of<F, Storage>(call, filter);
    smem<float> memory = cf_dynamic_shared<float>(), tiles = memory + 2 * Gy::SIZE;
    const auto load = [&](const Tiles &step) {
        if (step.item >= call.items)
            return;
        const Position p = position_of(call, step.item);
        const int depth = plane_index<F>(p.at[0], step.part, call.x.size[0]);
        if (step.part == 0)
            Gy::template load<Storage, ZEROS>(memory + step.number / F::KERNEL_Z % 2 * Gy::SIZE, call.y,
                                              y + p.at[0] * call.y.stride[0], p.sample * F::PLANES, call.samples,
                                              p.at[1] * (G::TY * F::DOWN), p.at[2] * (G::TX * F::ACROSS));
        if (depth >= 0)
            In::template load<Storage, F::MODE>(tiles + step.number % 2 * In::SIZE, call.x,
                                                x + depth * call.x.stride[0], p.sample * F::PLANES, call.samples,
                                                p.at[1] * (DOWNWARDS * F::DOWN) + cf_spatial_first(G::Y),
                                                p.at[2] * (ADVANCE * F::ACROSS) + G::LOWEST);
    };
    T sums = {};
    Tiles step = {int(blockIdx.y), 0, 0};
    load(step);
    for (; step.item < call.items; step = step.next()) {
        wait_async();
        __syncthreads();
        load(step.next());
        const Position p = position_of(call, step.item);
        if (share >= T::SHARES || T::depth_of(share) != step.part ||
            plane_index<F>(p.at[0], step.part, call.x.size[0]) < 0)
            continue;
        smem<const float> gy = memory + (step.number / F::KERNEL_Z % 2 * Gy::SIZE + plane * Gy::PLANE +
                                         down * G::TY * Gy::PITCH + Gy::along(across * G::TX));
        float held[G::TY][G::TX][G::VECTOR];
#pragma unroll
        for (int t = 0; t < G::TY; ++t)
#pragma unroll
            for (int j = 0; j < G::TX; ++j)
                held[t][j][0] = gy[t * Gy::PITCH + j];
        const int begin = down * DOWNWARDS + T::row_of(share) * G::Y.dilation;
        const TileRows<F, In> rows = {
            tiles + (step.number % 2 * In::SIZE + plane * In::PLANE + begin * In::PITCH + In::along(across * ADVANCE)),
            p.at[1] * (DOWNWARDS * F::DOWN) + cf_spatial_first(G::Y) + begin, call.x.size[1]};
        sums.add(rows, held, chunk);
    }
    sums.store(call, memory, filter, share < T::SHARES);
}

/* Adds the slices: a sum is a tap of a filter. */
template <class F> CF_DEVICE void spatial_add(const cf_spatial_call &call) {
    constexpr int TAPS = F::KERNEL_Z * F::KERNEL_Y * F::KERNEL_X;
    const long long i = sum_of_thread<F::ADD_SUMS>();
    float total;
    if (!add_slices<F::ADD_SUMS, F::ADD_SHARES>(total, call.sums, i, call.channels * TAPS, call.slices))
        return;
    const int tap = int(i % TAPS);
    TapSums<F>::write(call, i / TAPS, tap / (F::KERNEL_Y * F::KERNEL_X), tap / F::KERNEL_X % F::KERNEL_Y,
                      tap % F::KERNEL_X, total);
}

/* The entry points. FUNCTION is spatial_last, spatial_first, spatial_weights_last, spatial_weights_first or
 * spatial_add. */
#define CF_SPATIAL_KERNEL(FUNCTION, THREADS, BLOCKS)                    \
    CF_KERNEL(THREADS, BLOCKS) cf_spatial(const cf_spatial_call call) { \
        cf_pdl_wait();                                                  \
        FUNCTION<Problem>(call);                                        \
    }
