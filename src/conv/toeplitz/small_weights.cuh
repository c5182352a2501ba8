/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of the weights of small planes on tensor cores. Blocks of 16 positions are those of small_planes.cuh.
 *
 *     D[delta][a][b] = sum over samples and q of gy[block q][a] x[block STRIDE_Y q + delta][b]
 *
 * D is a product (m16n8k8): m = positions a of gy, n = positions b of x, k = eight samples. A lane reads words of
 * two neighbouring positions of two samples, and their halves are the operands, so that nothing is transposed. n is
 * eight positions of one parity: a warp has the even or the odd ones (PARITY). Taps are sums of diagonals of D.
 *
 * D stays in registers over all samples of a block. Tensor cores truncate their sums, so chains have at most LINKS
 * products, and are then added in FP32. Positions outside of a plane have any value. They meet in elements of D that
 * no tap reads.
 *
 * A block has CHANNELS channels and a slice of the samples, of which it loads SAMPLES at a time. The warps of a
 * channel: SPLITS shares of the samples, SHARES shares of delta, and two parities. With channels last a block has many
 * channels, so that the shares of delta are different blocks.
 *
 * The host prints F (small_planes.c) as for small_planes.cuh, with SPLITS and SHARES in the place of WARPS and BLOCKS.
 */
#pragma once

#include "conv/toeplitz/small_planes.cuh"
#include "conv/toeplitz/weights.cuh"

/* d += a b, 16 x 8 numbers from 16 x 8 and 8 x 8. The layout is that of mma_m16n8k16 (mma.cuh) without a[2], a[3] and
 * b1. */
#ifdef CF_SIMT
template <class Storage> CF_DEVICE void multiply_eight(float d[4], unsigned a0, unsigned a1, unsigned b) {
    const unsigned a[4] = {a0, a1, 0, 0};
    multiply_tile<Storage>(d, a, b, 0);
}
#else
template <class Storage> CF_DEVICE void multiply_eight(float d[4], unsigned a0, unsigned a1, unsigned b);
template <> CF_DEVICE void multiply_eight<fp16>(float d[4], unsigned a0, unsigned a1, unsigned b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(b));
}
template <> CF_DEVICE void multiply_eight<bf16>(float d[4], unsigned a0, unsigned a1, unsigned b) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(b));
}
#endif

template <class F> struct SmallWeights {
    typedef SmallPlanes<F> G;
    typedef SmallSide<F, typename F::X, F::LAST> X;
    typedef SmallSide<F, typename F::Y, F::LAST> Y;
    static constexpr int LINKS = 8, TOGETHER = 4, DELTAS = cf_max_of(G::LAST - G::FIRST + 1, 0),
                         EACH = (DELTAS + F::SHARES - 1) / F::SHARES, SHARES = F::LAST ? 1 : F::SHARES,
                         OWN = F::LAST ? EACH : DELTAS, WARPS = 2 * F::SPLITS * SHARES,
                         THREADS = 32 * F::CHANNELS * WARPS, STAGE = F::LAST ? F::SAMPLES : 8 * F::SPLITS,
                         STAGES = F::SAMPLES / STAGE;
    float sum[cf_max_of(EACH, 1)][4];

    /* Words of this lane in all blocks of a group of eight samples: positions 2 g and 2 g + 1 of samples 2 t and
     * 2 t + 1. put(block, words of both samples). */
    template <class S, class Side, int BLOCKS, class Put>
    static CF_DEVICE void read(smem<unsigned> samples, int channel, const Put &put) {
        const int lane = int(threadIdx.x) % 32, row = lane / 4 / G::OF_ROW, word = lane / 4 % G::OF_ROW,
                  at = channel * Side::PLANE + row * Side::ROW + (2 * word < S::COLUMNS ? 2 * word : 0);
        smem<unsigned> own = samples + lane % 4 * 2 * Side::PITCH;
        const SmallPairs<Side::ALIGNED> even(own, at), odd(own + Side::PITCH, at);
        unroll<0, BLOCKS>([&](auto p) {
            constexpr int PLACE = G::DOWN * decltype(p)::value * Side::ROW;
            if constexpr (G::DOWN * decltype(p)::value + G::DOWN <= S::ROWS) {
                put(p, even.template at<PLACE>(), odd.template at<PLACE>());
            } else {
                /* The second row of the last block does not exist. */
                put(p, row ? 0 : even.template at<PLACE>(), row ? 0 : odd.template at<PLACE>());
            }
        });
    }

    /* The first block of gy that meets x with this difference. */
    static constexpr CF_DEVICE int first_of(int delta) {
        return delta < 0 ? (F::STRIDE_Y - 1 - delta) / F::STRIDE_Y : 0;
    }

    /* Adds the products of eight samples. SHARE: of delta. */
    template <int SHARE> CF_DEVICE void add(const unsigned (&gy)[G::Y_BLOCKS][2], const unsigned (&x)[G::X_BLOCKS]) {
        constexpr int BEGIN = G::FIRST + SHARE * EACH, END = BEGIN + EACH < G::LAST + 1 ? BEGIN + EACH : G::LAST + 1;
        unroll<0, (EACH + TOGETHER - 1) / TOGETHER>([&](auto part) {
            unroll<0, (G::Y_BLOCKS + LINKS - 1) / LINKS>([&](auto chain) {
                constexpr int LINK = decltype(chain)::value * LINKS;
                float d[TOGETHER][4];
                unroll<0, TOGETHER>([&](auto c) { d[c][0] = d[c][1] = d[c][2] = d[c][3] = 0; });
                unroll<0, LINKS>([&](auto link) {
                    unroll<0, TOGETHER>([&](auto c) {
                        constexpr int D = BEGIN + decltype(part)::value * TOGETHER + decltype(c)::value,
                                      Q = first_of(D) + LINK + decltype(link)::value, P = G::met(Q, D);
                        if constexpr (D < END && Q < G::Y_BLOCKS && P >= 0)
                            multiply_eight<typename F::Storage>(d[c], gy[Q][0], gy[Q][1], x[P]);
                    });
                });
                unroll<0, TOGETHER>([&](auto c) {
                    constexpr int I = decltype(part)::value * TOGETHER + decltype(c)::value, D = BEGIN + I,
                                  Q = first_of(D) + LINK;
                    if constexpr (D < END && Q < G::Y_BLOCKS && G::met(Q, D) >= 0)
                        unroll<0, 4>([&](auto i) { sum[I][i] += d[c][i]; });
                });
            });
        });
    }

    /* Writes D to shared memory: [channel][split][delta][a][b]. */
    template <int SHARE> CF_DEVICE void put_sums(smem<float> own, int parity) {
        const int lane = int(threadIdx.x) % 32;
        unroll<0, EACH>([&](auto n) {
            constexpr int I = decltype(n)::value, AT = F::LAST ? I : SHARE * EACH + I;
            if constexpr (SHARE * EACH + I < DELTAS)
                unroll<0, 4>([&](auto i) {
                    own[AT * 256 + (lane / 4 * 2 + i / 2) * 16 + (lane % 4 * 2 + i % 2) * 2 + parity] = sum[I][i];
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
                        smem<float> d = memory + ((channel * F::SPLITS + split) * OWN + delta - begin) * 256 +
                                        (below * 16 + other) * G::ACROSS;
                        for (int column = 0; column < F::Y::COLUMNS; ++column)
                            if (unsigned(F::STRIDE_X * column + along) < unsigned(F::X::COLUMNS))
                                total += d[column * 16 + F::STRIDE_X * column + along];
                    }
            store_tap<F>(call, first + channel, r, s, total);
        }
    }
};

/* Waits until at most `pending` stages are on their way. */
CF_DEVICE void wait_for_stages(int pending) {
    unroll<0, 8>([&](auto n) {
        if (n == (pending < 7 ? pending : 7))
            tiles_wait<decltype(n)::value>();
    });
}

template <class F> CF_DEVICE void small_weights(const cf_toeplitz_call &call) {
    typedef SmallWeights<F> W;
    typedef SmallPlanes<F> G;
    constexpr int BLOCKS = F::LAST ? F::SHARES : 1;
    const int warp = int(threadIdx.x) / 32, parity = warp % 2,
              share = F::LAST ? int(blockIdx.x % BLOCKS) : warp / 2 % F::SHARES,
              split = warp / 2 / W::SHARES % F::SPLITS, channel = warp / W::WARPS;
    const long long first = (long long)(blockIdx.x / BLOCKS) * F::CHANNELS;
    smem<unsigned> x = cf_dynamic_shared<unsigned>(), gy = x + F::SAMPLES * W::X::PITCH;
    W sums = {};
    for (long long sample = (long long)blockIdx.y * F::SAMPLES; sample < call.samples;
         sample += (long long)gridDim.y * F::SAMPLES) {
        /* With channels first, each stage has eight samples for each split. They are multiplied while the next ones are
         * on their way. */
        for (int stage = 0; stage < W::STAGES; ++stage) {
            const int begin = stage * W::STAGE;
            load_small<F, typename F::X, typename W::X, W::STAGE, W::THREADS>(
                x + begin * W::X::PITCH, call.x, call.samples, call.groups, sample + begin, first);
            load_small<F, typename F::Y, typename W::Y, W::STAGE, W::THREADS>(
                gy + begin * W::Y::PITCH, call.y, call.samples, call.groups, sample + begin, first);
            tiles_commit();
        }
#pragma unroll 1
        for (int stage = 0; stage < W::STAGES; ++stage) {
            wait_for_stages(W::STAGES - 1 - stage);
            __syncthreads();
#pragma unroll 1
            for (int eight = split; eight < W::STAGE / 8; eight += F::SPLITS) {
                const int begin = stage * W::STAGE + 8 * eight;
                unsigned a[G::Y_BLOCKS][2], b[G::X_BLOCKS];
                W::template read<typename F::Y, typename W::Y, G::Y_BLOCKS>(gy + begin * W::Y::PITCH, channel,
                                                                            [&](auto q, unsigned even, unsigned odd) {
                                                                                a[q][0] = low_halves(even, odd);
                                                                                a[q][1] = high_halves(even, odd);
                                                                            });
                W::template read<typename F::X, typename W::X, G::X_BLOCKS>(
                    x + begin * W::X::PITCH, channel, [&](auto p, unsigned even, unsigned odd) {
                        b[p] = parity ? high_halves(even, odd) : low_halves(even, odd);
                    });
                unroll<0, F::SHARES>([&](auto s) {
                    if (s == share)
                        sums.template add<decltype(s)::value>(a, b);
                });
            }
        }
        __syncthreads();
    }
    smem<float> memory = cf_dynamic_shared<float>();
    unroll<0, F::SHARES>([&](auto s) {
        if (s == share)
            sums.template put_sums<decltype(s)::value>(memory + (channel * F::SPLITS + split) * (W::OWN * 256), parity);
    });
    __syncthreads();
    W::store(call, memory, first, G::FIRST + (F::LAST ? share * W::EACH : 0));
}
