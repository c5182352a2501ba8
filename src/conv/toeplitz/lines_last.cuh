/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals of one axis with channels last, without stride: y from x, or gx from gy. The products are those of
 * signals.cuh: a line is cut into rows of WIDTH outputs, and 16 rows are a tile.
 *
 * A block has CHANNELS channels and some tiles that follow one another. Threads load two neighbours of eight channels,
 * and transpose them into planes of shared memory, one for each channel. They load the next tile while they compute. A
 * warp computes EACH channels, one after the other. Outputs take the place of the inputs of their channel, which the
 * warp has read by then, and go back to y in the same way, 16 bytes at a time.
 *
 * Taps are in shared memory as words of two neighbours, one word for each tap. So lanes read operands B directly.
 *
 * The host prints F (lines_last.c) with: Storage, Weights, Bias, KERNEL_Y = 1, KERNEL_X, STEPS, WIDTH, CHANNELS, WARPS,
 * BUFFERS (lines_last_both.cuh), FLIP, SCALED.
 */
#pragma once

#include "conv/toeplitz/small_weights.cuh"

/* Positions of CHANNELS channels in shared memory: a plane each, with rows of WIDTH elements that are an odd number of
 * units apart. Between groups of eight channels are SKEW units, so that their words have no bank conflicts. */
template <class F> struct LinePlanes {
    static constexpr int EIGHTS = F::CHANNELS / 8, THREADS = 32 * F::WARPS, STEP = F::WIDTH / 8, PITCH = STEP | 1,
                         SIZE = (16 + (2 * F::STEPS + STEP - 1) / STEP) * PITCH, SKEW = 8 / EIGHTS,
                         UNITS = F::CHANNELS * SIZE + (EIGHTS - 1) * SKEW;
    static CF_DEVICE int plane(int channel) { return channel * SIZE + channel / 8 * SKEW; }
    /* The word of a pair of positions. */
    static CF_DEVICE int word(int pair) { return (pair / 4 + pair / 4 / STEP * (PITCH - STEP)) * 4 + pair % 4; }
    static constexpr CF_DEVICE int along(int unit) { return unit + unit / STEP * (PITCH - STEP); }
};

/* The same for tiles of weights.cuh: S is X or Y. */
template <int CHANNELS, int WARPS, class S> struct GradientPlanes {
    static constexpr int EIGHTS = CHANNELS / 8, THREADS = 32 * WARPS, SIZE = Tile<S>::SIZE, SKEW = 8 / EIGHTS,
                         UNITS = CHANNELS * SIZE + (EIGHTS - 1) * SKEW, PAIRS = 4 * Tile<S>::LOADED;
    static CF_DEVICE int plane(int channel) { return channel * SIZE + channel / 8 * SKEW; }
    static CF_DEVICE int word(int pair) { return Tile<S>::place(pair / 4) * 4 + pair % 4; }
};

/* Two neighbouring positions of eight channels: EACH pairs of a thread, of PAIRS positions of a tile. They wait in
 * registers, or as they are in UNITS units of shared memory. */
template <class G, int PAIRS> struct LinePairs {
    static constexpr int COUNT = PAIRS * G::EIGHTS, EACH = (COUNT + G::THREADS - 1) / G::THREADS, UNITS = 2 * COUNT;
    uint4 read[EACH][2];

    /* f(n, i, half, address, inside) for both positions of each pair i of this thread, its n-th one. first: the column
     * of the signal at position 0. Columns outside of the signal are zeros. */
    template <class Body>
    static CF_DEVICE void for_each(const cf_toeplitz_side &s, long long groups, long long sample, long long group,
                                   int first, const Body &f) {
        const unsigned short *const from =
            static_cast<const unsigned short *>(s.memory) + (sample * s.sample_stride + group);
        unroll<0, EACH>([&](auto n) {
            const int i = int(threadIdx.x) + n * G::THREADS, eight = i % G::EIGHTS, column = first + i / G::EIGHTS * 2;
            const bool live = i < COUNT && group + 8 * eight < groups;
            const unsigned short *const p = from + (column * s.column_stride + 8 * eight);
            unroll<0, 2>([&](auto half) {
                f(n, i, half, p + half * s.column_stride, live && unsigned(column + half) < unsigned(s.columns));
            });
        });
    }
    CF_DEVICE void load(const cf_toeplitz_side &s, long long groups, long long sample, long long group, int first) {
        for_each(s, groups, sample, group, first, [&](auto n, int, auto half, const void *p, bool inside) {
            read[n][half] = inside ? __ldg(static_cast<const uint4 *>(p)) : make_uint4(0, 0, 0, 0);
        });
    }
    /* The same to shared memory. A thread reads there only what it has copied itself. */
    static CF_DEVICE void copy(smem<uint4> to, const cf_toeplitz_side &s, long long groups, long long sample,
                               long long group, int first) {
        for_each(s, groups, sample, group, first, [&](auto, int i, auto half, const void *p, bool inside) {
            if (COUNT % G::THREADS == 0 || i < COUNT)
                copy_async<4>(smem_cast<float>(to + (half * COUNT + i)),
                              static_cast<const float *>(inside ? p : s.memory), inside);
        });
    }

    static CF_DEVICE void put_pair(smem<unsigned> planes, int i, const uint4 &left, const uint4 &right) {
        smem<unsigned> to = planes + (4 * G::plane(i % G::EIGHTS * 8) + G::word(i / G::EIGHTS));
        const unsigned a[4] = {left.x, left.y, left.z, left.w}, b[4] = {right.x, right.y, right.z, right.w};
        unroll<0, 4>([&](auto c) {
            to[4 * G::SIZE * (2 * c)] = low_halves(a[c], b[c]);
            to[4 * G::SIZE * (2 * c + 1)] = high_halves(a[c], b[c]);
        });
    }
    CF_DEVICE void put(smem<unsigned> planes) const {
        unroll<0, EACH>([&](auto n) {
            const int i = int(threadIdx.x) + n * G::THREADS;
            if (COUNT % G::THREADS == 0 || i < COUNT)
                put_pair(planes, i, read[n][0], read[n][1]);
        });
    }
    static CF_DEVICE void put(smem<unsigned> planes, smem<uint4> from) {
        unroll<0, EACH>([&](auto n) {
            const int i = int(threadIdx.x) + n * G::THREADS;
            if (COUNT % G::THREADS == 0 || i < COUNT)
                put_pair(planes, i, from[i], from[COUNT + i]);
        });
    }
};

/* Stores 16 rows of WIDTH outputs of all channels. */
template <class G, int WIDTH>
CF_DEVICE void store_lines(const cf_toeplitz_side &s, long long groups, smem<unsigned> planes, long long sample,
                           long long group, int first) {
    constexpr int COUNT = 8 * WIDTH * G::EIGHTS;
    unsigned short *const base =
        static_cast<unsigned short *>(const_cast<void *>(s.memory)) + (sample * s.sample_stride + group);
#pragma unroll 4
    for (int i = int(threadIdx.x); i < COUNT; i += G::THREADS) {
        const int eight = i % G::EIGHTS, column = first + i / G::EIGHTS * 2;
        if (group + 8 * eight >= groups || column >= s.columns)
            continue;
        smem<unsigned> from = planes + (4 * G::plane(8 * eight) + G::word(i / G::EIGHTS));
        unsigned low[4], high[4];
        unroll<0, 4>([&](auto c) {
            const unsigned a = from[4 * G::SIZE * (2 * c)], b = from[4 * G::SIZE * (2 * c + 1)];
            low[c] = low_halves(a, b);
            high[c] = high_halves(a, b);
        });
        unsigned short *const to = base + (column * s.column_stride + 8 * eight);
        store_words<8>(to, low);
        if (column + 1 < s.columns)
            store_words<8>(to + s.column_stride, high);
    }
}

template <class F> struct Lines {
    typedef LinePlanes<F> G;
    static constexpr int EACH = F::CHANNELS / F::WARPS, BLOCKS = F::WIDTH / 8, OUTPUTS = 16 * F::WIDTH,
                         WINDOW = (BLOCKS + 2 * F::STEPS) / 2, /* pairs of units that a row reads */
        TAPS = 16 * F::STEPS + 8;                              /* words of a channel: from 7 before the first tap on */
    typedef LinePairs<G, (OUTPUTS + F::KERNEL_X) / 2> Pairs;

    /* The taps of this warp's channels as words. */
    static CF_DEVICE void load_taps(smem<unsigned> to, const cf_toeplitz_call &call, long long group, float up) {
        for (int i = int(threadIdx.x) % 32; i < TAPS; i += 32) {
            const bool live = group < call.groups;
            const float a = live ? tap_at<F>(call.w, group, 0, i - 7) * up : 0.0f,
                        b = live ? tap_at<F>(call.w, group, 0, i - 6) * up : 0.0f;
            to[i] = F::Storage::word({a, b});
        }
    }

    /* The products of units UNIT and UNIT + 1 of the rows: step K of the outputs n with UNIT = n + 2 K. */
    template <int UNIT>
    static CF_DEVICE void multiply_units(float (&sum)[BLOCKS][4], const unsigned (&a)[4],
                                         const unsigned (&b)[F::STEPS][2]) {
        unroll<0, BLOCKS>([&](auto n) {
            constexpr int TWICE = UNIT - decltype(n)::value;
            if constexpr (TWICE >= 0 && TWICE % 2 == 0 && TWICE / 2 < F::STEPS)
                multiply_tile<typename F::Storage>(sum[n], a, b[TWICE / 2][0], b[TWICE / 2][1]);
        });
    }

    /* Sums of 16 rows of a channel. taps: those of this lane. */
    static CF_DEVICE void multiply(float (&sum)[BLOCKS][4], smem<uint4> plane, smem<unsigned> taps) {
        const int lane = int(threadIdx.x) % 32, from = lane % 16 * G::PITCH + lane / 16;
        unsigned b[F::STEPS][2], a[WINDOW][4];
        unroll<0, F::STEPS>([&](auto k) {
            b[k][0] = taps[16 * k];
            b[k][1] = taps[16 * k + 8];
        });
        unroll<0, WINDOW>([&](auto i) {
            constexpr int I = decltype(i)::value;
            ldmatrix_x4(a[I], plane, from + G::along(2 * I));
            if constexpr (I > 0) {
                const unsigned between[4] = {a[I - 1][2], a[I - 1][3], a[I][0], a[I][1]};
                multiply_units<2 * I - 1>(sum, between, b);
            }
            multiply_units<2 * I>(sum, a[I], b);
        });
    }

    /* Adds the old contents of y. */
    static CF_DEVICE void add_old(const cf_toeplitz_call &call, float (&sum)[BLOCKS][4], long long sample,
                                  long long group, int first) {
        const int lane = int(threadIdx.x) % 32;
        unroll<0, BLOCKS>([&](auto n) {
            unroll<0, 4>([&](auto k) {
                const int column = first + (lane / 4 + 8 * (k / 2)) * F::WIDTH + 8 * n + lane % 4 * 2 + k % 2;
                if (column < call.y.columns && group < call.groups)
                    sum[n][k] += F::Storage::load(element_of<F>(call.y, sample, group, {0, column}));
            });
        });
    }

    /* Stores the sums of a channel in the place of its inputs. */
    static CF_DEVICE void put(smem<uint4> plane, const float (&sum)[BLOCKS][4]) {
        const int lane = int(threadIdx.x) % 32;
        __syncwarp(); /* all lanes have read their inputs */
        smem<unsigned> out = smem_cast<unsigned>(plane) + (lane / 4 * (4 * G::PITCH) + lane % 4);
        unroll<0, BLOCKS>([&](auto n) {
            out[4 * n] = F::Storage::word({sum[n][0], sum[n][1]});
            out[4 * n + 32 * G::PITCH] = F::Storage::word({sum[n][2], sum[n][3]});
        });
    }
};

template <class F> CF_DEVICE void lines_last(const cf_toeplitz_call &call) {
    typedef Lines<F> L;
    typedef LinePlanes<F> G;
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
    const long long first = (long long)blockIdx.x * F::CHANNELS, own = first + warp * L::EACH,
                    items = call.samples * call.tiles_across, each = (items + gridDim.y - 1) / gridDim.y,
                    begin = blockIdx.y * each, end = begin + each < items ? begin + each : items;
    smem<uint4> memory = cf_dynamic_shared<uint4>();
    smem<unsigned> planes = smem_cast<unsigned>(memory), taps = planes + 4 * G::UNITS;
    smem<float2> scales = smem_cast<float2>(taps + F::CHANNELS * L::TAPS); /* of the sums of a channel, and its bias */
    typename L::Pairs pairs;
    const auto load = [&](long long item) {
        pairs.load(call.x, call.groups, item / call.tiles_across, first,
                   int(item % call.tiles_across) * L::OUTPUTS - call.column_pad);
    };
    if (begin < end)
        load(begin);
    clear_tiles(memory, G::UNITS); /* units behind the inputs stay zero */
    for (int c = 0; c < L::EACH; ++c) {
        const bool live = own + c < call.groups;
        const WeightScale<F> scale(call.w, live ? own + c : 0);
        L::load_taps(taps + (warp * L::EACH + c) * L::TAPS, call, own + c, scale.up);
        if (lane == 0)
            scales[warp * L::EACH + c] =
                make_float2(scale.down, live && call.bias ? float(bias_at<F>(call.bias, own + c)) : 0.0f);
    }
    for (long long item = begin; item < end; ++item) {
        const long long sample = item / call.tiles_across;
        const int column = int(item % call.tiles_across) * L::OUTPUTS;
        __syncthreads();
        pairs.put(planes);
        if (item + 1 < end)
            load(item + 1);
        __syncthreads();
#pragma unroll 1
        for (int c = 0; c < L::EACH; ++c) {
            const int channel = warp * L::EACH + c;
            smem<uint4> plane = memory + G::plane(channel);
            float sum[L::BLOCKS][4];
            const float2 scale = scales[channel];
            unroll<0, L::BLOCKS>(
                [&](auto n) { unroll<0, 4>([&](auto k) { sum[n][k] = F::SCALED ? 0.0f : scale.y; }); });
            L::multiply(sum, plane, taps + (channel * L::TAPS + 2 * (lane % 4) - lane / 4 + 7));
            if (F::SCALED)
                unroll<0, L::BLOCKS>(
                    [&](auto n) { unroll<0, 4>([&](auto k) { sum[n][k] = sum[n][k] * scale.x + scale.y; }); });
            if (call.accumulate)
                L::add_old(call, sum, sample, first + channel, column);
            L::put(plane, sum);
        }
        __syncthreads();
        store_lines<G, F::WIDTH>(call.y, call.groups, planes, sample, first, column);
    }
}

/* The gradient of the weights: the products of weights.cuh, and a warp for each channel. */
template <class F> CF_DEVICE void lines_last_weights(const cf_toeplitz_call &call) {
    typedef GradientPlanes<F::PLANES, F::PLANES, typename F::X> X;
    typedef GradientPlanes<F::PLANES, F::PLANES, typename F::Y> Y;
    const int channel = int(threadIdx.x) / 32;
    const long long first = (long long)blockIdx.x * F::PLANES;
    smem<uint4> x = cf_dynamic_shared<uint4>(), gy = x + X::UNITS;
    const Items<F> items(call);
    ToeplitzWeights<F> sums = {};
    LinePairs<X, X::PAIRS> x_pairs;
    LinePairs<Y, Y::PAIRS> gy_pairs;
    const auto load = [&](long long item) {
        const Corner output = items.output(call, item);
        x_pairs.load(call.x, call.groups, items.sample(item), first, items.input(call, output).column);
        gy_pairs.load(call.y, call.groups, items.sample(item), first, output.column);
    };
    if (items.begin < items.count)
        load(items.begin);
    for (long long item = items.begin; item < items.count; item += items.step) {
        x_pairs.put(smem_cast<unsigned>(x));
        gy_pairs.put(smem_cast<unsigned>(gy));
        if (item + items.step < items.count)
            load(item + items.step);
        __syncthreads();
        sums.add(x + X::plane(channel), gy + Y::plane(channel), 0, 0);
        __syncthreads();
    }
    sums.store(call, smem_cast<float>(x), first);
}
