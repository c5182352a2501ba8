/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of the weights of planes with channels last. The channels stay where they are in shared memory; operands
 * are transposed when they are read (ldmatrix).
 *
 *     gw[c][r][s] = sum over samples, i, j of gy[i][j][c] x[STRIDE_Y i + r - pad][STRIDE_X j + s - pad][c]
 *
 * A product (m16n8k16) has eight channels and 16 columns j of outputs: A[(e, c)][j] = x[..][STRIDE_X j + 2 p + e][c]
 * and B[j][d] = gy[i][j][d]. Its diagonal c = d belongs to the taps s = 2 p + e. A warp walks down a plane. It
 * multiplies a row of x by the LIVE rows of gy that meet it, which are in registers. Tensor cores truncate their sums.
 * So after about LINKS products the diagonals are added to FP32 numbers in shared memory.
 *
 * The host prints F (channels_last.c) with what signals have (channels_last.cuh). TILES counts 16 columns here, and
 * QUADS is even. A block has PARTS warps for each eight channels. OFFSET_Y, OFFSET_X and STEPS are not used.
 */
#pragma once

#include "conv/toeplitz/channels_last.cuh"

template <class F> struct LastWeights {
    static constexpr int SY = F::STRIDE_Y, SX = F::STRIDE_X, KY = F::KERNEL_Y, KX = F::KERNEL_X, PAIRS = (KX + 1) / 2,
                         EIGHTS = F::QUADS / 2, WARPS = EIGHTS * F::PARTS, OUTPUTS = 16 * F::TILES * F::PARTS,
                         POSITIONS = (OUTPUTS - 1) * SX + 2 * PAIRS, LIVE = (KY + SY - 1) / SY, PERIOD = LIVE * SY,
                         LINKS = 64, OF_WARP = KY * PAIRS * 16;
    static constexpr cf_toeplitz_row IN = cf_toeplitz_row_of(POSITIONS, F::QUADS, SX % 2 == 0),
                                     GY = cf_toeplitz_row_of(OUTPUTS, F::QUADS, false);
    static constexpr CF_DEVICE int slot_of(int n, int r) { return (n + LIVE * SY - r) / SY % LIVE; }
    float sum[KY][PAIRS][4];
    unsigned gy[LIVE][F::TILES][2];

    CF_DEVICE void clear() {
        unroll<0, LIVE>([&](auto l) { unroll<0, F::TILES>([&](auto i) { gy[l][i][0] = gy[l][i][1] = 0; }); });
    }
    CF_DEVICE void clear_sums() {
        unroll<0, KY>([&](auto r) {
            unroll<0, PAIRS>([&](auto p) { sum[r][p][0] = sum[r][p][1] = sum[r][p][2] = sum[r][p][3] = 0; });
        });
    }

    /* Reads row l of gy, or zeros. at: the unit of this lane. across: units of 16 columns. */
    template <class L> CF_DEVICE void read(L l, bool inside, smem<uint4> row, int at, int across = 16 * GY.pitch) {
        unroll<0, F::TILES>([&](auto i) {
            unsigned b[4] = {0, 0, 0, 0};
            if (inside)
                ldmatrix_trans_x4(b, row, at + i * across);
            gy[l][i][0] = b[0];
            gy[l][i][1] = b[1];
        });
    }

    /* Adds the products of row N (of a period) of x. */
    template <int N> CF_DEVICE void add(smem<uint4> row, int at) {
        unroll<0, F::TILES>([&](auto i) {
            unroll<0, PAIRS>([&](auto p) {
                unsigned a[4];
                ldmatrix_trans_x4(a, row, at + cf_toeplitz_place(IN, 16 * SX * i + 2 * p));
                unroll<0, KY>([&](auto r) {
                    if constexpr ((N + KY * SY - decltype(r)::value) % SY == 0) {
                        constexpr int L = slot_of(N, decltype(r)::value);
                        multiply_tile<typename F::Storage>(sum[r][p], a, gy[L][i][0], gy[L][i][1]);
                    }
                });
            });
        });
    }

    /* Adds the diagonals to the numbers of this warp. */
    CF_DEVICE void flush(smem<float> to) {
        const int lane = int(threadIdx.x) % 32, c = lane / 4;
        unroll<0, KY>([&](auto r) {
            if (lane % 4 == c / 2)
                unroll<0, 2 * PAIRS>([&](auto s) {
                    const int at = (2 * PAIRS * r + s) * 8 + c;
                    to[at] = to[at] + (c % 2 ? sum[r][s / 2][s % 2 * 2 + 1] : sum[r][s / 2][s % 2 * 2]);
                });
            __syncwarp(); /* so that the compiler does not load all numbers at once */
        });
        clear_sums();
    }

    /* Adds the numbers of the warps that share channels. */
    template <int SUMS = KY *KX>
    static CF_DEVICE void store(const cf_toeplitz_call &call, smem<float> totals, long long block) {
        constexpr int TAPS = KY * KX;
        for (int i = int(threadIdx.x); i < 8 * EIGHTS * TAPS; i += int(blockDim.x)) {
            const int c = i / TAPS, r = i % TAPS / KX, s = i % KX;
            if (block + c >= call.groups)
                continue;
            float total = 0;
            for (int p = 0; p < F::PARTS; ++p)
                total += totals[(p * EIGHTS + c / 8) * OF_WARP + (r * 2 * PAIRS + s) * 8 + c % 8];
            store_tap<F, SUMS>(call, block + c, r, s, total);
        }
    }
};

/* Loads batches of rows of x and of gy, one after the other. */
template <class F> struct LastWeightLoads {
    typedef LastWeights<F> G;
    static constexpr int THREADS = 32 * G::WARPS, OF_X = F::BATCH * G::IN.size;
    const cf_toeplitz_call &call;
    const Pieces<F, G::POSITIONS, F::WIDTH, G::SX % 2 == 0, THREADS, F::MODE> of_x;
    const Pieces<F, G::OUTPUTS, F::WIDTH_Y, false, THREADS, 0> of_gy;
    const SignalRows x, gy;
    Segment<F> ahead;
    int next; /* the first row of the next batch, of segment `ahead` */
    CF_DEVICE LastWeightLoads(const cf_toeplitz_call &c, long long block, int left)
        : call(c), of_x(c.x, c.groups, block, left * G::SX - c.column_pad), of_gy(c.y, c.groups, block, left),
          x(c.x, block), gy(c.y, block), ahead(c), next(0) {}
    CF_DEVICE void load(smem<uint4> to) {
        if (ahead.count > 0) {
#pragma unroll
            for (int k = 0; k < F::BATCH; ++k) {
                const int n = next + k, row = padded_index<F::MODE>(ahead.input + n, call.x.rows);
                if (n < ahead.rows && unsigned(row) < unsigned(call.x.rows))
                    of_x.load(to + k * G::IN.size, x.row(ahead.x, row));
                if (n % G::SY == 0 && n / G::SY < ahead.count)
                    of_gy.load(to + (OF_X + k * G::GY.size), gy.row(ahead.y, ahead.output + n / G::SY));
            }
            next += F::BATCH;
            if (next >= ahead.rows) {
                ahead.set(call);
                next = 0;
            }
        }
        tiles_commit();
    }
};

template <class F> CF_DEVICE void toeplitz_last_weights(const cf_toeplitz_call &call) {
    typedef LastWeights<F> G;
    constexpr int OF_X = F::BATCH * G::IN.size, SLOT = OF_X + F::BATCH * G::GY.size,
                  LAST_SLOT = (F::BUFFERS - 1) * SLOT,
                  UNROLLED = G::PERIOD % F::BATCH == 0 ? G::PERIOD : G::PERIOD * F::BATCH;
    const long long block = blockIdx.x * (4ll * F::QUADS);
    const int left = int(blockIdx.y) % call.tiles_across * G::OUTPUTS, lane = int(threadIdx.x) % 32,
              number = int(threadIdx.x) / 32, eight = number % G::EIGHTS, part = number / G::EIGHTS,
              column = 16 * F::TILES * part + lane / 16 * 8 + lane % 8,
              x_at = cf_toeplitz_place(G::IN, G::SX * column + lane / 8 % 2) + eight,
              gy_at = cf_toeplitz_place(G::GY, 16 * F::TILES * part + lane % 16) + eight;
    smem<uint4> memory = cf_dynamic_shared<uint4>();
    smem<float> totals = smem_cast<float>(memory + F::BUFFERS * SLOT), mine = totals + number * G::OF_WARP;
    clear_tiles(memory, F::BUFFERS * SLOT + G::WARPS * G::OF_WARP / 4);
    LastWeightLoads<F> loads(call, block, left);
    __syncthreads();
    for (int slot = 0; slot < LAST_SLOT; slot += SLOT)
        loads.load(memory + slot);
    int slot = 0, before = LAST_SLOT, links = 0; /* the batch that is multiplied, and the free buffer */
    G sums;
    sums.clear_sums();
    for (Segment<F> now(call); now.count > 0; now.set(call)) {
        sums.clear();
        smem<uint4> rows = memory;
        for (int base = 0; base < now.rows; base += UNROLLED) {
            unroll<0, UNROLLED>([&](auto u) {
                constexpr int N = decltype(u)::value, K = N % F::BATCH;
                const int n = base + N;
                if (n >= now.rows)
                    return;
                if (K == 0) {
                    tiles_wait<F::BUFFERS - 2>();
                    __syncthreads();
                    loads.load(memory + before);
                    rows = memory + slot;
                    before = slot;
                    slot = slot == LAST_SLOT ? 0 : slot + SLOT;
                }
                if constexpr (N % G::SY == 0)
                    sums.read(Int<N / G::SY % G::LIVE>(), n / G::SY < now.count, rows + (OF_X + K * G::GY.size), gy_at);
                if (F::MODE || unsigned(now.input + n) < unsigned(call.x.rows))
                    sums.template add<N>(rows + K * G::IN.size, x_at);
            });
            links += UNROLLED * F::TILES;
            if (links >= G::LINKS) {
                sums.flush(mine);
                links = 0;
            }
        }
    }
    sums.flush(mine);
    __syncthreads();
    G::store(call, totals, block);
}
