/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of the weights of depthwise layers with short kernels, on tensor cores.
 *
 *     gw[r][s] = sum over samples, i, j of gy[i][j] x[STRIDE_Y i + r - pad][STRIDE_X j + s - pad]
 *
 * For one kernel row r and 16 columns of outputs, the sums over 16 rows are a product (m16n8k16): D[a][b] += sum over
 * rows i of gy[i][a] x[STRIDE_Y i + r][8 c + b]. The taps are its diagonals: D[a][b] belongs to s = 8 c + b - LEAD -
 * STRIDE_X a. D stays in registers over all samples of a block; its diagonals are summed at the end. Tensor cores
 * truncate their sums, so chains have LINKS products, at most four, and are then added in FP32. FP32 signals have TF32
 * products (m16n8k8) of eight rows: first 0, 2, 4 and 6, then 1, 3, 5 and 7, because such rows have no bank conflicts.
 *
 * A block has one channel and a slice of the samples, or with channels last PLANES channels. If there are several
 * slices, another kernel adds them in their order.
 *
 * The host prints F (config.c) with: Storage, Weights (the type of gw), X and Y (tiles), TERMS (tf32.cuh), KERNEL_Y,
 * KERNEL_X, STRIDE_Y, STRIDE_X, LEAD, ACROSS (how many 16 columns of outputs a tile has), TOGETHER (how many of them
 * add_fp32() holds), WIDTH = 16 ACROSS, REACH (units of eight columns of x that meet 16 columns), WARPS (of a plane,
 * each with 16 rows), SHARES (among which the kernel rows are divided), ROWS (kernel rows of a share), PLANES, LAST,
 * LINE, BEFORE (units of the tile of gy before its first column that counts: both.cuh), BIAS (the gradient of the bias,
 * too).
 */
#pragma once

#include "conv/gpu/slices.cuh"
#include "conv/toeplitz/signals.cuh"

/* Writes one tap of gw, or adds to it. memory: gw, or one of its depths. */
template <class F>
CF_DEVICE void write_tap(const cf_toeplitz_call &call, const void *memory, long long group, int r, int s, float total) {
    typedef typename F::Weights W;
    typename W::bits *const p = static_cast<typename W::bits *>(const_cast<void *>(memory)) +
                                group * call.w.group_stride + r * call.w.row_stride + s * call.w.column_stride;
    W::store(p, call.accumulate ? total + W::load(p) : total);
}

/* Writes the gradient of the bias of one channel, or adds to it. */
template <class F> CF_DEVICE void write_bias(const cf_toeplitz_call &call, long long group, float total) {
    typedef typename F::Weights W;
    if (!call.bias)
        return;
    typename W::bits *const p = static_cast<typename W::bits *>(const_cast<void *>(call.bias)) + group;
    W::store(p, call.accumulate_bias ? total + W::load(p) : total);
}

/* One tap of gw, or of a slice of it. SUMS: of a channel. */
template <class F, int SUMS = F::KERNEL_Y *F::KERNEL_X>
CF_DEVICE void store_tap(const cf_toeplitz_call &call, long long group, int r, int s, float total) {
    if (call.slices > 1) {
        call.sums[(blockIdx.y * call.groups + group) * SUMS + r * F::KERNEL_X + s] = total;
        return;
    }
    if (SUMS > F::KERNEL_Y * F::KERNEL_X && r == F::KERNEL_Y)
        write_bias<F>(call, group, total);
    else
        write_tap<F>(call, call.w.memory, group, r, s, total);
}

template <class F> struct ToeplitzWeights {
    typedef Tile<typename F::X> X;
    typedef Tile<typename F::Y> Y;
    static constexpr int LINKS = F::ACROSS % 4 == 0   ? 4
                                 : F::ACROSS % 3 == 0 ? 3
                                 : F::ACROSS % 2 == 0 ? 2
                                                      : 1,
                         UNITS = 4, OF_X = F::PLANES * X::SIZE, BUFFER = OF_X + F::PLANES * Y::SIZE,
                         BUFFERS = F::LAST ? 1 : 2, CHANNELS = F::LAST ? F::PLANES : 1,
                         WARPS = F::PLANES * F::WARPS * F::SHARES;
    static constexpr int TAPS = F::KERNEL_Y * F::KERNEL_X, SUMS = TAPS + (F::BIAS ? 1 : 0); /* of a channel */
    float sum[F::ROWS][F::REACH][4];
    float bias[4]; /* D of gy and ones, or [0]: what a thread has of the sum of gy */

    /* The place of unit `unit` of a row of gy. */
    static CF_DEVICE int gy_unit(int unit) { return F::BEFORE ? Y::along(F::BEFORE + unit) : unit; }

    /* Adds the products of the FP32 tiles of a plane. A chain has the 16 rows of a warp. TOGETHER times 16 columns of
     * gy are in registers, so that eight columns of x are split once for all of them. */
    CF_DEVICE void add_fp32(smem<uint4> x, smem<uint4> gy, int part, int share) {
        constexpr int EIGHTS = 2 * F::STRIDE_X * (F::TOGETHER - 1) + F::REACH;
        const int lane = int(threadIdx.x) % 32, column = lane / 4, row = 16 * part + lane % 4 * 2;
#pragma unroll 1
        for (int first = 0; first < F::ACROSS; first += F::TOGETHER) {
            unsigned a[F::TOGETHER][2][F::TERMS][4];
            unroll<0, F::TOGETHER>([&](auto across) {
                unroll<0, 2>([&](auto half) {
                    unroll<0, 4>([&](auto i) {
                        const int at = (row + 8 * half + i / 2) * Y::PITCH +
                                       gy_unit(4 * (first + across) + i % 2 * 2 + column / 4);
                        unsigned term[F::TERMS];
                        const float value = smem_cast<float>(gy + at)[column % 4];
                        if (F::BIAS)
                            bias[0] += value;
                        split_tf32<F::TERMS>(term, value);
                        unroll<0, F::TERMS>([&](auto t) { a[across][half][t][i] = term[t]; });
                    });
                });
            });
            unroll<0, F::ROWS>([&](auto r) {
                if (share * F::ROWS + r >= F::KERNEL_Y)
                    return;
                unroll<0, EIGHTS>([&](auto eight) {
                    const int unit = 4 * F::STRIDE_X * first + 2 * eight + column / 4;
                    smem<float> from = smem_cast<float>(x + X::along(unit)) + column % 4;
                    unsigned b[2][F::TERMS][2];
                    unroll<0, 2>([&](auto half) {
                        unroll<0, 2>([&](auto i) {
                            const int at = (row + 8 * half + i) * F::STRIDE_Y + share * F::ROWS + r;
                            unsigned term[F::TERMS];
                            split_tf32<F::TERMS>(term, from[4 * at * X::PITCH]);
                            unroll<0, F::TERMS>([&](auto t) { b[half][t][i] = term[t]; });
                        });
                    });
                    unroll<0, F::TOGETHER>([&](auto across) {
                        constexpr int C = decltype(eight)::value - 2 * F::STRIDE_X * decltype(across)::value;
                        if constexpr (C >= 0 && C < F::REACH) {
                            float d[4] = {0, 0, 0, 0};
                            multiply_terms<F, 2>(d, a[across], b);
                            unroll<0, 4>([&](auto i) { sum[r][C][i] += d[i]; });
                        }
                    });
                });
            });
        }
    }

    /* Adds the products of the tiles of a plane. */
    CF_DEVICE void add(smem<uint4> x, smem<uint4> gy, int part, int share) {
        const int lane = int(threadIdx.x) % 32, matrix = lane / 8,
                  y_at = (16 * part + matrix / 2 * 8 + lane % 8) * Y::PITCH,
                  x_row = (16 * part + matrix % 2 * 8 + lane % 8) * F::STRIDE_Y + share * F::ROWS;
#pragma unroll 1
        for (int first = 0; first < F::ACROSS; first += LINKS) {
            unsigned a[LINKS][4];
#pragma unroll
            for (int i = 0; i < LINKS; ++i)
                ldmatrix_trans_x4(a[i], gy, y_at + gy_unit(2 * (first + i) + matrix % 2));
            if constexpr (F::BIAS) {
                const unsigned ones = F::Storage::word({1, 1});
                float d[4] = {0, 0, 0, 0};
#pragma unroll
                for (int i = 0; i < LINKS; ++i)
                    multiply_tile<typename F::Storage>(d, a[i], ones, ones);
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    bias[i] += d[i];
            }
            unroll<0, F::ROWS>([&](auto r) {
                if (share * F::ROWS + r >= F::KERNEL_Y)
                    return;
                unroll<0, (F::REACH + UNITS - 1) / UNITS>([&](auto group) {
                    constexpr int BEGIN = decltype(group)::value * UNITS,
                                  COUNT = F::REACH - BEGIN < UNITS ? F::REACH - BEGIN : UNITS;
                    float d[UNITS][4];
#pragma unroll
                    for (int c = 0; c < COUNT; ++c)
                        d[c][0] = d[c][1] = d[c][2] = d[c][3] = 0;
                    unroll<0, LINKS>([&](auto i) {
                        unroll<0, (COUNT + 1) / 2>([&](auto pair) {
                            const int unit = 2 * F::STRIDE_X * (first + i) + BEGIN + 2 * pair + matrix / 2;
                            unsigned b[4];
                            ldmatrix_trans_x4(b, x, (x_row + r) * X::PITCH + X::along(unit));
                            multiply_tile<typename F::Storage>(d[2 * pair], a[i], b[0], b[1]);
                            if constexpr (2 * decltype(pair)::value + 1 < COUNT)
                                multiply_tile<typename F::Storage>(d[2 * pair + 1], a[i], b[2], b[3]);
                        });
                    });
#pragma unroll
                    for (int c = 0; c < COUNT; ++c)
#pragma unroll
                        for (int i = 0; i < 4; ++i)
                            sum[r][BEGIN + c][i] += d[c][i];
                });
            });
        }
    }

    /* Writes D of kernel row R of this warp to shared memory. */
    template <int R> CF_DEVICE void put(smem<float> to) const {
        const int lane = int(threadIdx.x) % 32;
        unroll<0, F::REACH>([&](auto c) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                to[128 * c + (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum[R][c][i];
        });
    }

    /* Sums the diagonals of what all warps have put there. */
    template <int R>
    static CF_DEVICE void add_diagonals(const cf_toeplitz_call &call, smem<float> memory, long long first) {
        constexpr int OF_ROWS = F::SHARES * F::KERNEL_X;
        for (int i = int(threadIdx.x); i < CHANNELS * OF_ROWS; i += int(blockDim.x)) {
            const int channel = i / OF_ROWS, share = i % OF_ROWS / F::KERNEL_X, s = i % F::KERNEL_X,
                      row = share * F::ROWS + R;
            const long long group = first + channel;
            if (row >= F::KERNEL_Y || group >= call.groups)
                continue;
            /* With channels first, all planes are of one channel. */
            constexpr int PARTS = F::LAST ? F::WARPS : F::WARPS * F::PLANES;
            float total = 0;
            for (int part = 0; part < PARTS; ++part)
                for (int a = 0; a < 16; ++a) {
                    const int column = s + F::LEAD + F::STRIDE_X * a;
                    total += memory[((channel * PARTS + part) * F::SHARES + share) * (F::REACH * 128) +
                                    column / 8 * 128 + a * 8 + column % 8];
                }
            store_tap<F, SUMS>(call, group, row, s, total);
        }
    }

    CF_DEVICE void store(const cf_toeplitz_call &call, smem<float> memory, long long first) {
        unroll<0, F::ROWS>([&](auto r) {
            __syncthreads();
            put<decltype(r)::value>(memory + int(threadIdx.x) / 32 * (F::REACH * 128));
            __syncthreads();
            add_diagonals<decltype(r)::value>(call, memory, first);
        });
    }

    /* The gradient of the bias, as far as this warp has it, in all lanes. */
    CF_DEVICE float bias_of_warp() const {
        float total = F::Storage::PLAIN ? bias[0] : bias[0] + bias[2]; /* columns of D are equal */
        for (int lanes = F::Storage::PLAIN ? 1 : 4; lanes < 32; lanes *= 2)
            total += __shfl_xor_sync(~0u, total, lanes);
        return total;
    }

    /* Sums what the threads of the block have of the gradient of the bias. All warps have the same channel. */
    CF_DEVICE void store_bias(const cf_toeplitz_call &call, smem<float> memory, long long group) {
        float total = bias_of_warp();
        __syncthreads();
        if (threadIdx.x % 32 == 0)
            memory[int(threadIdx.x) / 32] = total;
        __syncthreads();
        if (threadIdx.x > 0)
            return;
        for (int warp = 1; warp < WARPS; ++warp)
            total += memory[warp];
        store_tap<F, SUMS>(call, group, F::KERNEL_Y, 0, total);
    }
};

template <class F> CF_DEVICE void toeplitz_weights(const cf_toeplitz_call &call) {
    typedef ToeplitzWeights<F> G;
    const int warp = int(threadIdx.x) / 32, share = warp % F::SHARES, part = warp / F::SHARES % F::WARPS,
              plane = warp / F::SHARES / F::WARPS;
    const long long first = (long long)blockIdx.x * G::CHANNELS;
    smem<uint4> memory = cf_dynamic_shared<uint4>();
    const Items<F> items(call);
    G sums = {};
    const auto load = [&](long long item, smem<uint4> buffer) {
        const Corner output = items.output(call, item), input = items.input(call, output);
        const long long sample = items.sample(item);
        if constexpr (F::LAST) {
            load_channels<typename F::X, F::PLANES, G::WARPS, 4>(buffer, call.x, call.groups, sample, first, input);
            load_channels<typename F::Y, F::PLANES, G::WARPS, 4>(buffer + G::OF_X, call.y, call.groups, sample, first,
                                                                 output);
        } else {
            load_planes<typename F::X, F::PLANES>(buffer, call.x, call.samples, sample, first, input);
            load_planes<typename F::Y, F::PLANES>(buffer + G::OF_X, call.y, call.samples, sample, first, output);
        }
    };
    int buffer = 0;
    if (F::X::WHOLE || F::Y::WHOLE) {
        clear_tiles(memory, G::BUFFERS * G::BUFFER);
        __syncthreads();
    }
    if (!F::LAST && items.begin < items.count)
        load(items.begin, memory);
    tiles_commit();
    for (long long item = items.begin; item < items.count; item += items.step, buffer ^= 1) {
        smem<uint4> at = memory + (F::LAST ? 0 : buffer * G::BUFFER);
        if (F::LAST)
            load(item, at);
        else if (item + items.step < items.count)
            load(item + items.step, memory + (buffer ^ 1) * G::BUFFER);
        tiles_commit();
        tiles_wait<1>();
        __syncthreads();
        if constexpr (F::X::MODE && F::X::WHOLE)
            pad_planes<typename F::X, F::PLANES>(at);
        smem<uint4> gy = at + (G::OF_X + plane * G::Y::SIZE);
        if constexpr (F::Storage::PLAIN)
            sums.add_fp32(at + plane * G::X::SIZE, gy, part, share);
        else
            sums.add(at + plane * G::X::SIZE, gy, part, share);
        __syncthreads();
    }
    sums.store(call, smem_cast<float>(memory), first);
}

/* Adds the slices: a sum is a tap of a channel, or with BIAS the gradient of its bias. */
template <class F, bool BIAS = false> CF_DEVICE void toeplitz_add(const cf_toeplitz_call &call) {
    constexpr int TAPS = F::KERNEL_Y * F::KERNEL_X, SUMS = TAPS + (BIAS ? 1 : 0);
    const long long i = sum_of_thread<F::ADD_SUMS>();
    const int tap = int(i % SUMS);
    float total;
    if (!add_slices<F::ADD_SUMS, F::ADD_SHARES>(total, call.sums, i, call.groups * SUMS, call.slices))
        return;
    if (BIAS && tap == TAPS)
        write_bias<F>(call, i / SUMS, total);
    else
        write_tap<F>(call, call.w.memory, i / SUMS, tap / F::KERNEL_X, tap % F::KERNEL_X, total);
}

template <class F> CF_DEVICE void toeplitz_add_both(const cf_toeplitz_call &call) { toeplitz_add<F, true>(call); }

/* The entry points. The host prints FUNCTION: the template that computes a pass, or adds slices. */
#define CF_TOEPLITZ_KERNEL(FUNCTION, THREADS, BLOCKS)                     \
    CF_KERNEL(THREADS, BLOCKS) cf_toeplitz(const cf_toeplitz_call call) { \
        cf_pdl_wait();                                                    \
        FUNCTION<Problem>(call);                                          \
    }
