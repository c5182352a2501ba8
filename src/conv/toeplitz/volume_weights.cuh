/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of the weights of depthwise layers of volumes with short kernels, on tensor cores.
 *
 *     gw[q][r][s] = sum over samples, d, i, j of gy[d][i][j] x[d + q - pad][i + r - pad][j + s - pad]
 *
 * A warp has 16 rows and 16 columns of gy. For one row of one depth of x, a product (m16n8k16) sums over 16 columns:
 *
 *     m    eight depths q of the kernel, for two kernel rows r
 *     n    eight columns s of the kernel
 *     k    16 columns of gy
 *
 * Row (q, r) of A is a row of gy; ldmatrix reads the rows of eight depths. B[k][s] = x[k + s]: where it begins at an
 * odd column, it is put together from two words. The rows of gy are paired once. So an even row of x meets taps
 * (0, -1), (2, 1), ..., an odd one meets taps (1, 0), (3, 2), ..., and each of these pairs has a sum of its own in
 * registers. Tensor cores truncate their sums, so a chain has the eight products of one depth, and is then added in
 * FP32.
 *
 * A block has one channel and a slice of the items. It keeps KERNEL_Z + 1 depths of gy and two of x. If there are
 * several slices, another kernel adds them in their order.
 *
 * The host prints F (volume_config.c) with what volumes.cuh lists, with Weights as the type of gw, and with Y (the tile
 * of a plane of gy).
 */
#pragma once

#include "conv/toeplitz/volumes.cuh"
#include "conv/toeplitz/weights.cuh"

/* Writes tap i of a channel. */
template <class F> CF_DEVICE void put_tap(const cf_toeplitz_volume_call &call, long long group, int i, float total) {
    const int q = i / (F::KERNEL_Y * F::KERNEL_X), r = i / F::KERNEL_X % F::KERNEL_Y, s = i % F::KERNEL_X;
    write_tap<F>(call.planes,
                 static_cast<const typename F::Weights::bits *>(call.planes.w.memory) + q * call.w_depth_stride, group,
                 r, s, total);
}

CF_DEVICE unsigned shifted_word(unsigned low, unsigned high, unsigned shift) {
    return unsigned(((unsigned long long)high << 32 | low) >> shift);
}

template <class F> struct VolumeWeights {
    typedef typename F::X X;
    typedef typename F::Y Y;
    static constexpr int OF_X = X::ROWS * X::UNITS, OF_Y = (Y::ROWS * Y::UNITS) | 1; /* odd: no bank conflicts */
    static constexpr int EVEN = F::KERNEL_Y / 2 + 1, ODD = (F::KERNEL_Y + 1) / 2,    /* pairs of taps */
        DEPTHS = F::KERNEL_Z + 1, WARPS = F::WARPS * F::ACROSS, OF_WARP = (EVEN + ODD) * 128; /* sums */
    float sum[EVEN + ODD][4];

    /* Adds one depth of x. x: where this lane reads in the first row. shift: bits before its numbers in a word.
     * at_gy: the unit of gy where it reads in the first two rows. */
    CF_DEVICE void add(smem<unsigned> x, unsigned shift, smem<uint4> gy, int at_gy) {
        unsigned a[8][4];
        unroll<0, 8>([&](auto i) { ldmatrix_x4(a[i], gy, at_gy + 2 * i * Y::UNITS); });
        unroll<0, 2>([&](auto odd) {
            constexpr int PAIRS = odd ? ODD : EVEN, FIRST = odd ? EVEN : 0;
            float d[PAIRS][4];
            unroll<0, PAIRS>([&](auto p) { d[p][0] = d[p][1] = d[p][2] = d[p][3] = 0; });
            unroll<0, 7 + PAIRS>([&](auto k) {
                constexpr int ROW = 2 * decltype(k)::value + decltype(odd)::value;
                const smem<unsigned> at = x + ROW * (4 * X::UNITS);
                const unsigned b0 = shifted_word(at[0], at[1], shift), b1 = shifted_word(at[4], at[5], shift);
                unroll<0, PAIRS>([&](auto p) {
                    constexpr int PAIR = decltype(k)::value - decltype(p)::value;
                    if constexpr (PAIR >= 0 && PAIR < 8)
                        multiply_tile<typename F::Storage>(d[p], a[PAIR], b0, b1);
                });
            });
            unroll<0, PAIRS>([&](auto p) { unroll<0, 4>([&](auto i) { sum[FIRST + p][i] += d[p][i]; }); });
        });
    }

    /* Adds the sums of the warps of a channel in shared memory, and writes the taps. thread: of these warps. */
    CF_DEVICE void store(const cf_toeplitz_volume_call &call, smem<float> memory, long long group, int thread) const {
        const int lane = thread % 32;
        smem<float> mine = memory + thread / 32 * OF_WARP;
        unroll<0, EVEN + ODD>([&](auto p) {
            unroll<0, 4>(
                [&](auto i) { mine[128 * p + 64 * (i / 2) + lane / 4 * 8 + lane % 4 * 2 + i % 2] = sum[p][i]; });
        });
        __syncthreads();
        if (group >= call.planes.groups)
            return;
        for (int i = thread; i < Volumes<F>::TAPS; i += 32 * WARPS) {
            const int q = i / (F::KERNEL_Y * F::KERNEL_X), r = i / F::KERNEL_X % F::KERNEL_Y, s = i % F::KERNEL_X,
                      even = (r + 1) / 2 * 128 + r % 2 * 64, odd = (EVEN + r / 2) * 128 + (1 - r % 2) * 64;
            float total = 0;
            for (int warp = 0; warp < WARPS; ++warp)
                total += memory[warp * OF_WARP + even + 8 * q + s] + memory[warp * OF_WARP + odd + 8 * q + s];
            if (call.planes.slices > 1)
                call.planes.sums[(blockIdx.y * call.planes.groups + group) * Volumes<F>::TAPS + i] = total;
            else
                put_tap<F>(call, group, i, total);
        }
    }
};

template <class F> CF_DEVICE void toeplitz_volume_weights(const cf_toeplitz_volume_call &volume) {
    typedef VolumeWeights<F> G;
    const cf_toeplitz_call &call = volume.planes;
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, row = warp / F::ACROSS * 16,
              unit = warp % F::ACROSS * 2, begin_x = F::LEAD + lane / 4,
              q = lane % 8 < F::KERNEL_Z ? lane % 8 : F::KERNEL_Z - 1,
              x_at = row * (4 * G::X::UNITS) + 4 * unit + begin_x / 2 + lane % 4,
              y_at = (row + lane / 8 % 2) * G::Y::UNITS + unit + lane / 16;
    constexpr int THREADS = 32 * G::WARPS;
    const unsigned shift = begin_x % 2 * 16;
    const long long group = blockIdx.x;
    smem<uint4> planes_x = cf_dynamic_shared<uint4>(), planes_y = planes_x + 2 * G::OF_X;
    G sums = {};
    for (long long i = blockIdx.y; i < volume_items(volume); i += gridDim.y) {
        const VolumeItem<F> item(volume, i);
        const Corner output = item.output(call), input = {output.row - call.row_pad, output.column - call.column_pad};
        /* Depths of gy before and behind those of the item are zero. */
        const int first = item.first, last = item.last;
        const auto slot_of = [&](int depth_y) { return (depth_y - item.begin + F::KERNEL_Z) % G::DEPTHS * G::OF_Y; };
        const PlaneLoader<typename F::X, THREADS> x_loader(call.x, input);
        const PlaneLoader<typename F::Y, THREADS> y_loader(call.y, output);
        const auto load_x = [&](int depth) {
            x_loader.load(planes_x + (depth & 1) * G::OF_X,
                          plane_of(call.x, volume.x_depth_stride, item.sample, group, depth), true);
        };
        const auto load_y = [&](int depth_y) {
            const bool inside = depth_y >= item.begin && depth_y < item.end;
            y_loader.load(planes_y + slot_of(depth_y),
                          plane_of(call.y, volume.y_depth_stride, item.sample, group, inside ? depth_y : item.begin),
                          inside);
        };
        __syncthreads(); /* no warp reads the last item any more */
        if (first < last) {
            load_x(first);
            for (int q0 = 0; q0 < F::KERNEL_Z; ++q0)
                load_y(first + volume.depth_pad - q0);
        }
        tiles_commit();
#pragma unroll 1
        for (int depth = first; depth < last; ++depth) {
            const int depth_y = depth + volume.depth_pad;
            tiles_wait<0>();
            __syncthreads();
            if (depth + 1 < last) {
                load_x(depth + 1);
                load_y(depth_y + 1);
            }
            tiles_commit();
            sums.add(smem_cast<unsigned>(planes_x + (depth & 1) * G::OF_X) + x_at, shift, planes_y,
                     slot_of(depth_y - q) + y_at);
        }
    }
    __syncthreads();
    sums.store(volume, smem_cast<float>(planes_x), group, int(threadIdx.x));
}

/* Adds the slices: a sum is a tap of a channel. */
template <class F> CF_DEVICE void toeplitz_volume_add(const cf_toeplitz_volume_call &volume) {
    const cf_toeplitz_call &call = volume.planes;
    constexpr int TAPS = Volumes<F>::TAPS;
    const long long i = sum_of_thread<F::ADD_SUMS>();
    float total;
    if (add_slices<F::ADD_SUMS, F::ADD_SHARES>(total, call.sums, i, call.groups * TAPS, call.slices))
        put_tap<F>(volume, i / TAPS, int(i % TAPS), total);
}

/* The entry points. FUNCTION is toeplitz_volumes, toeplitz_volume_weights or toeplitz_volume_add. */
#define CF_TOEPLITZ_VOLUME_KERNEL(FUNCTION, THREADS, BLOCKS)                     \
    CF_KERNEL(THREADS, BLOCKS) cf_toeplitz(const cf_toeplitz_volume_call call) { \
        cf_pdl_wait();                                                           \
        FUNCTION<Problem>(call);                                                 \
    }
