/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small planes with channels last: y from x, or without stride gx from gy. Planes have at most 16 columns. The products
 * are those of channels_last.cuh. A product has 32 outputs, which are a row of PACK samples: 16 columns of two samples,
 * or eight columns of four.
 *
 * A block copies whole planes of PACK samples of 4 QUADS channels to shared memory, while it computes the ones before.
 * So its warps wait for one another twice for each PACK samples, and not at each row. All rows and kernel rows are
 * constants.
 *
 * In shared memory, the rows of a plane are ROW_STEP positions apart. The zeros that follow a row also stand before the
 * next one. Row q of y takes the place of row q of x, which its warp has read by then; no other warp reads these four
 * channels.
 *
 * The host prints F (planes_in_place.c) with what channels_last.cuh needs, and: X and Y (ROWS and COLUMNS of planes),
 * ROW_PAD, COLUMN_PAD, ROW_STEP and PACK. FLIP: the taps in reverse order (gx from gy).
 */
#pragma once

#include "conv/toeplitz/channels_last_weights.cuh"

/* The planes of one side in shared memory. A sample has POSITIONS positions. */
template <class F, class S, int FIRST, int STEP, int POSITIONS, bool SPLIT> struct PlacedPlanes {
    static constexpr cf_toeplitz_row ROW = cf_toeplitz_row_of(POSITIONS, F::QUADS, SPLIT);
    static constexpr int COUNT = S::ROWS * S::COLUMNS * ROW.units;

    /* copy(place of a unit in shared memory, its element in global memory, whether it exists) for the units of SAMPLES
     * samples. */
    template <int SAMPLES, int THREADS, class Copy>
    static CF_DEVICE void each(const cf_toeplitz_side &s, long long samples, long long groups, long long sample,
                               long long group, const Copy &copy) {
        unsigned short *const first =
            static_cast<unsigned short *>(const_cast<void *>(s.memory)) + (sample * s.sample_stride + group);
        const int there = samples - sample < SAMPLES ? int(samples - sample) : SAMPLES,
                  channels = groups - group < 4 * F::QUADS ? int(groups - group) : 4 * F::QUADS;
#pragma unroll 4
        for (int i = int(threadIdx.x); i < SAMPLES * COUNT; i += THREADS) {
            const int unit = i % ROW.units, pixel = i / ROW.units, column = pixel % S::COLUMNS,
                      row = pixel / S::COLUMNS % S::ROWS, own = pixel / (S::COLUMNS * S::ROWS);
            copy(own * ROW.size + cf_toeplitz_place(ROW, row * STEP + column + FIRST) + unit,
                 first + (own * s.sample_stride + (row * int(s.row_stride) + column * int(s.column_stride) + 8 * unit)),
                 own < there && 8 * unit < channels);
        }
    }
    /* Samples and channels that do not exist are zeros. */
    template <int SAMPLES, int THREADS>
    static CF_DEVICE void load(smem<uint4> to, const cf_toeplitz_side &s, long long samples, long long groups,
                               long long sample, long long group) {
        each<SAMPLES, THREADS>(
            s, samples, groups, sample, group, [&](int place, const unsigned short *from, bool there) {
                copy_async<4>(smem_cast<float>(to + place),
                              static_cast<const float *>(there ? static_cast<const void *>(from) : s.memory), there);
            });
    }
};

template <class F> struct PlanesInPlace {
    static constexpr int KY = F::KERNEL_Y, SY = F::STRIDE_Y, LIVE = Last<F>::LIVE, ADVANCE = Last<F>::ADVANCE,
                         PAIRS = 16 / F::PACK, /* of outputs of a row of a sample */
        THREADS = 32 * F::QUADS,
                         POSITIONS =
                             (F::X::ROWS - 1) * F::ROW_STEP + cf_toeplitz_positions(2 * PAIRS, ADVANCE, F::STEPS);
    typedef PlacedPlanes<F, typename F::X, F::COLUMN_PAD, F::ROW_STEP, POSITIONS, true> In;
    typedef PlacedPlanes<F, typename F::Y, F::COLUMN_PAD, F::ROW_STEP, POSITIONS, true> Out;
    static constexpr cf_toeplitz_row ROW = In::ROW;
    static constexpr int BUFFER = F::PACK * ROW.size;

    /* The row of y to which row n of x adds by kernel row r; -1: none. */
    static constexpr CF_DEVICE int row_of(int n, int r) {
        const int row = n + F::ROW_PAD - r;
        return row >= 0 && row % SY == 0 && row / SY < F::Y::ROWS ? row / SY : -1;
    }
    /* Row q of y is complete after this row of x. */
    static constexpr CF_DEVICE int last_row(int q) { return cf_min_of(F::X::ROWS - 1, SY * q - F::ROW_PAD + KY - 1); }
    static constexpr CF_DEVICE bool is_first_row(int n, int q) { return n == cf_max_of(0, SY * q - F::ROW_PAD); }

    /* Of both halves of a product: the sample of this lane, its pair of outputs, and the places of its first positions
     * that are 1 and 2 apart, in words of eight bytes. */
    int own[2], column, first[2][2];
    CF_DEVICE explicit PlanesInPlace(int quad) {
        const int g = int(threadIdx.x) % 32 / 4, t = int(threadIdx.x) % 4;
        column = 2 * (g % PAIRS) + t / 2; /* PAIRS is at most eight */
        for (int half = 0; half < 2; ++half) {
            own[half] = (g + 8 * half) / PAIRS;
            for (int d = 1; d <= 2; ++d)
                first[half][d - 1] =
                    2 * (own[half] * ROW.size + cf_toeplitz_place(ROW, ADVANCE * (g % PAIRS) + d * t)) + quad;
        }
    }

    /* Reads row N of x, if there is one. */
    template <int N> CF_DEVICE void read(unsigned (&a)[F::STEPS][4], smem<const uint2> planes) const {
        if constexpr (N < F::X::ROWS)
            unroll<0, F::STEPS>([&](auto j) {
                constexpr int AT = 2 * cf_toeplitz_place(ROW, N * F::ROW_STEP + Last<F>::first_of(decltype(j)::value)),
                              D = Last<F>::apart(decltype(j)::value) - 1;
                const uint2 low = planes[first[0][D] + AT], high = planes[first[1][D] + AT];
                a[j][0] = low.x;
                a[j][1] = high.x;
                a[j][2] = low.y;
                a[j][3] = high.y;
            });
    }

    /* Adds the products of row N of x to the rows of y that it meets. Sums that begin are set before. */
    template <int N>
    CF_DEVICE void add(float (&sum)[LIVE][1][4], const unsigned (&a)[F::STEPS][4], const LastWarp<F> &warp) const {
        unroll<0, KY>([&](auto r) {
            constexpr int Q = row_of(N, decltype(r)::value);
            if constexpr (Q >= 0 && is_first_row(N, Q))
                unroll<0, 4>([&](auto k) { sum[Q % LIVE][0][k] = F::SCALED ? 0.0f : warp.bias[k % 2]; });
        });
        unroll<0, F::STEPS>([&](auto j) {
            unroll<0, KY>([&](auto r) {
                constexpr int Q = row_of(N, decltype(r)::value);
                if constexpr (Q >= 0)
                    multiply_tile<typename F::Storage>(sum[Q % LIVE][0], a[j], warp.b[r][j][0], warp.b[r][j][1]);
            });
        });
    }

    /* Adds the old contents of row q of y to its sums. */
    CF_DEVICE void add_old(const cf_toeplitz_call &call, const LastWarp<F> &warp, float (&sum)[1][4], long long sample,
                           int q) const {
        unroll<0, 4>([&](auto k) {
            const long long at = sample + own[k / 2], channel = warp.channel + k % 2;
            if (at < call.samples && channel < call.groups && column < F::Y::COLUMNS)
                sum[0][k] += float(F::Storage::number(static_cast<const unsigned short *>(
                    call.y.memory)[at * call.y.sample_stride + channel + q * call.y.row_stride +
                                   column * call.y.column_stride]));
        });
    }

    /* Puts row Q of y in the place of row Q of x. out: the places of this lane, in words of four bytes. */
    template <int Q> CF_DEVICE void put(smem<unsigned> planes, const int (&out)[2], const float (&sum)[1][4]) const {
        constexpr int AT = 4 * cf_toeplitz_place(ROW, Q * F::ROW_STEP);
        unroll<0, 2>([&](auto half) {
            if (column < F::Y::COLUMNS)
                planes[out[half] + AT] = packed<typename F::Storage>(sum[0][2 * half], sum[0][2 * half + 1]);
        });
    }
};

template <class F> CF_DEVICE void planes_in_place(const cf_toeplitz_call &call) {
    typedef PlanesInPlace<F> G;
    const int quad = int(threadIdx.x) / 32, t = int(threadIdx.x) % 4;
    const long long block = blockIdx.x * (4ll * F::QUADS), step = gridDim.y * (long long)F::PACK;
    smem<uint4> memory = cf_dynamic_shared<uint4>();
    const auto load = [&](long long sample, int buffer) {
        if (sample < call.samples)
            G::In::template load<F::PACK, G::THREADS>(memory + buffer, call.x, call.samples, call.groups, sample,
                                                      block);
        tiles_commit();
    };
    clear_tiles(memory, 2 * G::BUFFER); /* what surrounds a plane stays zero */
    __syncthreads();
    load(blockIdx.y * (long long)F::PACK, 0);
    const LastWarp<F> warp(call, block, 0);
    const G lane(quad);
    int out[2], buffer = 0;
    for (int half = 0; half < 2; ++half)
        out[half] = 4 * (lane.own[half] * G::ROW.size + cf_toeplitz_place(G::ROW, lane.column + F::COLUMN_PAD)) +
                    2 * quad + t % 2;
    for (long long sample = blockIdx.y * (long long)F::PACK; sample < call.samples; sample += step) {
        tiles_wait<0>();
        __syncthreads();
        load(sample + step, G::BUFFER - buffer);
        const smem<uint4> planes = memory + buffer;
        const smem<const uint2> rows = smem_cast<const uint2>(planes);
        float sum[G::LIVE][1][4];
        unsigned a[2][F::STEPS][4];
        lane.template read<0>(a[0], rows);
        unroll<0, F::X::ROWS>([&](auto n) {
            constexpr int N = decltype(n)::value;
            /* Before stores, which compilers do not move. */
            lane.template read<N + 1>(a[(N + 1) % 2], rows);
            lane.template add<N>(sum, a[N % 2], warp);
            __syncwarp(); /* all lanes have read what is overwritten */
            unroll<0, F::Y::ROWS>([&](auto q) {
                constexpr int Q = decltype(q)::value;
                if constexpr (G::last_row(Q) == N) {
                    if (F::SCALED)
                        warp.scale(sum[Q % G::LIVE]);
                    if (call.accumulate)
                        lane.add_old(call, warp, sum[Q % G::LIVE], sample, Q);
                    lane.template put<Q>(smem_cast<unsigned>(planes), out, sum[Q % G::LIVE]);
                }
            });
        });
        __syncthreads();
        G::Out::template each<F::PACK, G::THREADS>(call.y, call.samples, call.groups, sample, block,
                                                   [&](int place, unsigned short *to, bool there) {
                                                       if (there)
                                                           *reinterpret_cast<uint4 *>(to) = planes[place];
                                                   });
        buffer = G::BUFFER - buffer;
    }
}
