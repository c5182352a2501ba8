/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of the weights of small planes on tensor cores. Blocks of 16 positions are those of small_planes.cuh.
 *
 *     D[delta][a][b] = sum over samples and q of gy[block q][a] x[block STRIDE_Y q + delta][b]
 *
 * D is a product (m16n8k16): m = positions a of gy, n = eight positions b of x, k = 16 samples. In shared memory, a
 * block of a sample is two units of eight positions, so that ldmatrix.trans reads operands as they are. A warp has one
 * half of the positions of x (HALF). Taps are sums of diagonals of D.
 *
 * D stays in registers over all samples of a block. Tensor cores truncate their sums, so chains have at most LINKS
 * products, and are then added in FP32. Positions outside of a plane are zeros.
 *
 * A block has CHANNELS channels and a slice of the samples, of which it loads SAMPLES at a time. The warps of a
 * channel: SPLITS shares of the samples, SHARES shares of delta, and two halves. With channels last a block has many
 * channels, so that the shares of delta are different blocks.
 *
 * The host prints F (small_planes.c) as for small_planes.cuh, with SPLITS and SHARES in the place of WARPS and BLOCKS.
 */
#pragma once

#include "conv/toeplitz/small_planes.cuh"
#include "conv/toeplitz/weights.cuh"

/* Planes of one side in shared memory: rows have ACROSS elements, so that a block is 32 bytes. Other names are those of
 * SmallSide. UNITS: of 16 bytes, from a sample to the next one. */
template <class F, int BLOCKS> struct SmallRows {
    static constexpr int ROW = SmallPlanes<F>::ACROSS, PLANE = 16 * BLOCKS,
                         UNITS = cf_toeplitz_small_units(BLOCKS, F::CHANNELS), PITCH = 4 * UNITS;
};

/* Rows with an odd number of elements go to shared memory through registers, AHEAD words at a time, because words may
 * begin at any element. */
template <class F, class S, class Side, int SAMPLES, int THREADS> struct SmallRead {
    static constexpr int OF_ROW = (S::COLUMNS + 1) / 2, WORDS = S::ROWS * OF_ROW, PIECES = F::CHANNELS * WORDS;
    typedef SmallPieces<PIECES, THREADS> Pieces;
    static constexpr int OF_PIECE = (SAMPLES + Pieces::SAMPLES - 1) / Pieces::SAMPLES,
                         COUNT = (PIECES + Pieces::ALONG - 1) / Pieces::ALONG * OF_PIECE, AHEAD = 16;
    unsigned short low[AHEAD], high[AHEAD];

    static CF_DEVICE int piece(int n) {
        return Pieces::first() + (COUNT == OF_PIECE ? 0 : n / OF_PIECE * Pieces::ALONG);
    }
    static CF_DEVICE int sample(int n) {
        return Pieces::sample() + (COUNT == OF_PIECE ? n : n % OF_PIECE) * Pieces::SAMPLES;
    }
    static CF_DEVICE int element(int word) { return word / OF_ROW * S::COLUMNS + word % OF_ROW * 2; }
    CF_DEVICE void read(const SmallPart<F, SAMPLES> &part, long long stride, int begin) {
        const unsigned short *from = part.first + sample(begin) * stride + element(piece(begin));
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            const int word = piece(begin + i), own = sample(begin + i);
            if (COUNT != OF_PIECE)
                from = part.first + own * stride + element(word);
            const bool there = word < part.channels * WORDS && own < part.there;
            low[i] = there ? __ldg(from) : (unsigned short)0;
            high[i] = there && word % OF_ROW * 2 + 1 < S::COLUMNS ? __ldg(from + 1) : (unsigned short)0;
            from += Pieces::SAMPLES * stride;
        }
    }
    CF_DEVICE void put(smem<unsigned> to, int begin) const {
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            const int word = piece(begin + i), own = sample(begin + i);
            if (word < PIECES && own < SAMPLES)
                to[own * Side::PITCH + (word / WORDS * Side::PLANE + word / OF_ROW % S::ROWS * Side::ROW) / 2 +
                   word % OF_ROW] = low[i] | unsigned(high[i]) << 16;
        }
    }
};

/* Loads a part as load_small() does, if rows have whole words. */
template <class F, class S, class Side, int SAMPLES, int THREADS>
CF_DEVICE void load_rows(smem<unsigned> to, const cf_toeplitz_side &s, long long samples, long long groups,
                         long long sample, long long group) {
    const SmallPart<F, SAMPLES> part(s, samples, groups, sample, group);
    if constexpr (F::LAST) {
        load_eights<F, S, Side, SAMPLES, THREADS>(to, s, samples, groups, sample, group);
        return;
    }
    constexpr int COPIED = S::COLUMNS % S::GRANULE == 0            ? S::GRANULE
                           : S::COLUMNS % 4 == 0 && S::GRANULE > 4 ? 4
                           : S::GRANULE > 1                        ? 2
                                                                   : 1,
                  EACH = COPIED > 1 ? COPIED : 2, PLANE = S::ROWS * S::COLUMNS, PIECES = F::CHANNELS * PLANE / EACH;
    typedef SmallPieces<PIECES, THREADS> Pieces;
    for (int piece = Pieces::first(); piece < PIECES; piece += Pieces::ALONG) {
        const int element = piece * EACH, place = element / PLANE * Side::PLANE +
                                                  element % PLANE / S::COLUMNS * Side::ROW + element % S::COLUMNS;
        load_piece<Pieces, COPIED, EACH, SAMPLES, Side::PITCH>(to + (Pieces::sample() * Side::PITCH + place / 2),
                                                               part.first +
                                                                   (Pieces::sample() * s.sample_stride + element),
                                                               s, part.there, part.channels * PLANE - element);
    }
}

/* Clears the ends of rows, and the row of the last blocks that is beyond the planes. Loads leave them alone. */
template <class F, class S, class Side, int THREADS> CF_DEVICE void clear_ends(smem<unsigned> to) {
    constexpr int OF_ROW = Side::ROW / 2, ENDS = OF_ROW - (S::COLUMNS + 1) / 2, ROWS = Side::PLANE / Side::ROW,
                  BEYOND = (ROWS - S::ROWS) * OF_ROW, WORDS = S::ROWS * ENDS + BEYOND;
    for (int i = int(threadIdx.x); i < F::SAMPLES * F::CHANNELS * WORDS; i += THREADS) {
        const int plane = i / cf_max_of(WORDS, 1), n = i % cf_max_of(WORDS, 1) - BEYOND,
                  at =
                      n < 0 ? ROWS * OF_ROW + n : n / cf_max_of(ENDS, 1) * OF_ROW + OF_ROW - 1 - n % cf_max_of(ENDS, 1);
        to[plane / F::CHANNELS * Side::PITCH + plane % F::CHANNELS * (Side::PLANE / 2) + at] = 0;
    }
}

/* Waits until at most `pending` stages are on their way. */
CF_DEVICE void wait_for_stages(int pending) {
    unroll<0, 8>([&](auto n) {
        if (n == (pending < 7 ? pending : 7))
            tiles_wait<decltype(n)::value>();
    });
}

template <class F> struct SmallWeights {
    typedef SmallPlanes<F> G;
    typedef SmallRows<F, G::X_BLOCKS> X;
    typedef SmallRows<F, G::Y_BLOCKS> Y;
    static constexpr bool READ = !F::LAST && (F::X::COLUMNS % 2 || F::Y::COLUMNS % 2);
    static constexpr int LINKS = 8, PRODUCT = 16, /* samples */
        DELTAS = cf_max_of(G::LAST - G::FIRST + 1, 0), EACH = (DELTAS + F::SHARES - 1) / F::SHARES,
                         TOGETHER = EACH > 8 ? 4 : EACH, SHARES = F::LAST ? 1 : F::SHARES,
                         OWN = F::LAST ? EACH : DELTAS, WARPS = 2 * F::SPLITS * SHARES,
                         THREADS = 32 * F::CHANNELS * WARPS, STAGE = F::LAST || READ ? F::SAMPLES : PRODUCT * F::SPLITS,
                         STAGES = F::SAMPLES / STAGE;
    float sum[cf_max_of(EACH, 1)][4];

    /* Delta n of a share. With channels first the shares take turns, so that their work is even. */
    static constexpr CF_DEVICE int delta(int share, int n) {
        return G::FIRST + (F::LAST ? share * EACH + n : share + F::SHARES * n);
    }

    /* Loads SAMPLES samples. Copies have stages of 16 samples for each split, which are multiplied while the next ones
     * are on their way. */
    static CF_DEVICE void load(const cf_toeplitz_call &call, smem<uint4> x, smem<uint4> gy, long long sample,
                               long long first) {
        if constexpr (READ) {
            SmallRead<F, typename F::X, X, F::SAMPLES, THREADS> of_x;
            SmallRead<F, typename F::Y, Y, F::SAMPLES, THREADS> of_gy;
            const SmallPart<F, F::SAMPLES> x_part(call.x, call.samples, call.groups, sample, first),
                y_part(call.y, call.samples, call.groups, sample, first);
#pragma unroll 1
            for (int x_at = 0, y_at = 0; x_at < of_x.COUNT || y_at < of_gy.COUNT;
                 x_at += of_x.AHEAD, y_at += of_gy.AHEAD) {
                of_x.read(x_part, call.x.sample_stride, x_at);
                of_gy.read(y_part, call.y.sample_stride, y_at);
                of_x.put(smem_cast<unsigned>(x), x_at);
                of_gy.put(smem_cast<unsigned>(gy), y_at);
            }
            return;
        }
        for (int stage = 0; stage < STAGES; ++stage) {
            const int begin = stage * STAGE;
            load_rows<F, typename F::X, X, STAGE, THREADS>(smem_cast<unsigned>(x + begin * X::UNITS), call.x,
                                                           call.samples, call.groups, sample + begin, first);
            load_rows<F, typename F::Y, Y, STAGE, THREADS>(smem_cast<unsigned>(gy + begin * Y::UNITS), call.y,
                                                           call.samples, call.groups, sample + begin, first);
            tiles_commit();
        }
    }

    /* Whether `count` blocks of gy from q on meet x with this difference. */
    static constexpr CF_DEVICE bool meets(int q, int count, int delta) {
        bool any = false;
        for (int i = q; i < q + count && i < G::Y_BLOCKS; ++i)
            any = any || (delta <= G::LAST && G::met(i, delta) >= 0);
        return any;
    }

    /* Adds the products of 16 samples. x, gy: the first unit of the channel. SHARE: of delta. */
    template <int SHARE> CF_DEVICE void add(smem<uint4> gy, smem<uint4> x, int half) {
        const int lane = int(threadIdx.x) % 32, matrix = lane / 8,
                  y_at = (matrix / 2 * 8 + lane % 8) * Y::UNITS + matrix % 2,
                  x_at = (matrix % 2 * 8 + lane % 8) * X::UNITS + matrix / 2 * 2 + half;
        unsigned b[(G::X_BLOCKS + 1) / 2][4]; /* two blocks each */
        unroll<0, (G::X_BLOCKS + 1) / 2>([&](auto pair) {
            /* The last block may be alone. */
            const int twice = 2 * decltype(pair)::value + 1 < G::X_BLOCKS ? 0 : matrix / 2 * 2;
            ldmatrix_trans_x4(b[pair], x, x_at + 4 * pair - twice);
        });
        unroll<0, (EACH + TOGETHER - 1) / cf_max_of(TOGETHER, 1)>([&](auto part) {
            constexpr int BEGIN = decltype(part)::value * TOGETHER;
            unroll<0, (G::Y_BLOCKS + LINKS - 1) / LINKS>([&](auto chain) {
                constexpr int LINK = decltype(chain)::value * LINKS;
                float d[TOGETHER][4];
                unroll<0, TOGETHER>([&](auto c) { d[c][0] = d[c][1] = d[c][2] = d[c][3] = 0; });
                unroll<LINK, cf_min_of(LINK + LINKS, G::Y_BLOCKS)>([&](auto q) {
                    unsigned a[4];
                    ldmatrix_trans_x4(a, gy, y_at + 2 * q);
                    unroll<0, TOGETHER>([&](auto c) {
                        constexpr int N = BEGIN + decltype(c)::value, D = delta(SHARE, N),
                                      P = G::met(decltype(q)::value, D);
                        if constexpr (N < EACH && D <= G::LAST && P >= 0)
                            multiply_tile<typename F::Storage>(d[c], a, b[P / 2][P % 2 * 2], b[P / 2][P % 2 * 2 + 1]);
                    });
                });
                unroll<0, TOGETHER>([&](auto c) {
                    constexpr int N = BEGIN + decltype(c)::value;
                    if constexpr (N < EACH && meets(LINK, LINKS, delta(SHARE, N)))
                        unroll<0, 4>([&](auto i) { sum[N][i] += d[c][i]; });
                });
            });
        });
    }

    /* Where D[a][b] of a delta is: eight floats of rows a and a + 2 are not in the same banks. */
    static CF_DEVICE int place(int a, int b) { return 16 * a + (b ^ (a & 2) * 4); }

    /* Writes D to shared memory: [channel][split][delta][a][b]. */
    template <int SHARE> CF_DEVICE void put_sums(smem<float> own, int half) {
        const int lane = int(threadIdx.x) % 32;
        unroll<0, EACH>([&](auto n) {
            constexpr int D = delta(SHARE, decltype(n)::value), AT = F::LAST ? decltype(n)::value : D - G::FIRST;
            if constexpr (D <= G::LAST)
                unroll<0, 2>([&](auto i) {
                    smem_cast<float2>(own + (AT * 256 + place(lane / 4 + 8 * i, 8 * half + lane % 4 * 2)))[0] =
                        make_float2(sum[n][2 * i], sum[n][2 * i + 1]);
                });
        });
    }

    /* Sums the diagonals of the delta from `begin` on that are in memory. The first block of a channel also stores taps
     * that meet nothing. */
    static CF_DEVICE void store(const cf_toeplitz_call &call, smem<float> memory, long long first, int begin) {
        constexpr int TAPS = F::KERNEL_Y * F::KERNEL_X;
        for (int i = int(threadIdx.x); i < F::CHANNELS * TAPS; i += THREADS) {
            const int channel = i / TAPS, r = i % TAPS / F::KERNEL_X, s = i % F::KERNEL_X,
                      along = s - F::COLUMN_PAD; /* column of x - STRIDE_X column of gy */
            if (first + channel >= call.groups)
                continue;
            if (F::LAST && F::SHARES > 1) {
                const int delta = r - F::ROW_PAD, nearest = delta < G::FIRST  ? G::FIRST
                                                            : delta > G::LAST ? G::FIRST
                                                                              : delta;
                if (nearest < begin || nearest >= begin + OWN)
                    continue;
            }
            float total = 0;
            for (int split = 0; split < F::SPLITS; ++split)
                for (int below = 0; below < G::DOWN; ++below)       /* row of gy in its block */
                    for (int other = 0; other < G::DOWN; ++other) { /* row of x */
                        const int n = r - F::ROW_PAD - other + below, delta = n / G::DOWN;
                        if (n % G::DOWN || delta < G::FIRST || delta > G::LAST || delta < begin)
                            continue;
                        smem<float> d = memory + ((channel * F::SPLITS + split) * OWN + delta - begin) * 256;
#pragma unroll
                        for (int column = 0; column < F::Y::COLUMNS; ++column)
                            if (unsigned(F::STRIDE_X * column + along) < unsigned(F::X::COLUMNS))
                                total += d[place(below * G::ACROSS + column,
                                                 other * G::ACROSS + F::STRIDE_X * column + along)];
                    }
            store_tap<F>(call, first + channel, r, s, total);
        }
    }
};

template <class F> CF_DEVICE void small_weights(const cf_toeplitz_call &call) {
    typedef SmallWeights<F> W;
    typedef SmallPlanes<F> G;
    constexpr int BLOCKS = F::LAST ? F::SHARES : 1;
    const int warp = int(threadIdx.x) / 32, half = warp % 2,
              share = F::LAST ? int(blockIdx.x % BLOCKS) : warp / 2 % F::SHARES,
              split = warp / 2 / W::SHARES % F::SPLITS, channel = warp / W::WARPS;
    const long long first = (long long)(blockIdx.x / BLOCKS) * F::CHANNELS;
    smem<uint4> x = cf_dynamic_shared<uint4>(), gy = x + F::SAMPLES * W::X::UNITS;
    W sums = {};
    clear_ends<F, typename F::X, typename W::X, W::THREADS>(smem_cast<unsigned>(x));
    clear_ends<F, typename F::Y, typename W::Y, W::THREADS>(smem_cast<unsigned>(gy));
    for (long long sample = (long long)blockIdx.y * F::SAMPLES; sample < call.samples;
         sample += (long long)gridDim.y * F::SAMPLES) {
        W::load(call, x, gy, sample, first);
#pragma unroll 1
        for (int stage = 0; stage < W::STAGES; ++stage) {
            wait_for_stages(W::STAGES - 1 - stage);
            __syncthreads();
#pragma unroll 1
            for (int own = split; own < W::STAGE / W::PRODUCT; own += F::SPLITS) {
                const int begin = stage * W::STAGE + W::PRODUCT * own;
                unroll<0, F::SHARES>([&](auto s) {
                    if (s == share)
                        sums.template add<decltype(s)::value>(gy + (begin * W::Y::UNITS + channel * 2 * G::Y_BLOCKS),
                                                              x + (begin * W::X::UNITS + channel * 2 * G::X_BLOCKS),
                                                              half);
                });
            }
        }
        __syncthreads();
    }
    smem<float> memory = cf_dynamic_shared<float>();
    unroll<0, F::SHARES>([&](auto s) {
        if (s == share)
            sums.template put_sums<decltype(s)::value>(memory + (channel * F::SPLITS + split) * (W::OWN * 256), half);
    });
    __syncthreads();
    W::store(call, memory, first, G::FIRST + (F::LAST ? share * W::EACH : 0));
}
