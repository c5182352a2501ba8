/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planes with channels last: y from x, or gx from gy. The channels stay where they are; nothing is transposed.
 *
 * A product (m16n8k16) has four channels. A row of A is four positions of a row of inputs, with four channels each. A
 * row of the result is two neighbouring outputs, with the same four channels. So for one kernel row r
 *
 *     B[(p, c)][(e, d)] = w[c][r][the tap by which output e reads position p] if c = d, otherwise 0
 *
 * and the 16 rows of a product are 32 outputs of a row. STEPS products have all positions that two outputs read. B
 * stays in registers. A warp walks down a plane. It multiplies an input row by all kernel rows that meet it, for the
 * LIVE rows of outputs that are not complete. Complete rows go to shared memory, and from there to y, 16 bytes at a
 * time.
 *
 *     direct        output o reads by tap s the input         STRIDE o + s - pad
 *     TRANSPOSED    output o reads by tap s the input i with  STRIDE i + s - pad = o, if there is one (gx from gy)
 *
 * A block has QUADS groups of four channels, and a range of the rows of outputs of all samples. It copies rows of
 * inputs to shared memory as they are, BUFFERS - 1 batches ahead. Between two barriers it computes a batch of BATCH
 * rows.
 *
 * The host prints F (channels_last.c) with: Storage, Weights, Bias, KERNEL_Y, KERNEL_X, STRIDE_Y, STRIDE_X, TRANSPOSED,
 * OFFSET_Y, OFFSET_X (TRANSPOSED: the tap by which the first output would read the first input), STEPS, TILES (of 32
 * outputs of a row, of a warp), PARTS (warps that share a row), QUADS, BATCH, BUFFERS, WIDTH and WIDTH_Y (columns of x
 * and y that a block can meet), MODE (of padding, a conv_fft_padding), ALIGNED, SCALED, and FLIP (false).
 */
#pragma once

#include "conv/toeplitz/weights.cuh"

template <class F> struct Last {
    typedef typename F::Storage Storage;
    typedef unsigned short bits;
    static constexpr int SY = F::STRIDE_Y, SX = F::STRIDE_X, KY = F::KERNEL_Y, KX = F::KERNEL_X,
                         ADVANCE = cf_toeplitz_advance(SX, F::TRANSPOSED), OUTPUTS = 32 * F::TILES * F::PARTS,
                         POSITIONS = cf_toeplitz_positions(OUTPUTS, ADVANCE, F::STEPS),
                         THREADS = 32 * F::QUADS * F::PARTS;
    static constexpr cf_toeplitz_row IN = cf_toeplitz_row_of(POSITIONS, F::QUADS, ADVANCE % 2 == 0),
                                     OUT = cf_toeplitz_row_of(OUTPUTS, F::QUADS, true);
    static constexpr int SLOT = F::BATCH * IN.size; /* units of a batch */
    /* Rows of outputs that are not complete. The same registers have them every PERIOD rows of inputs. */
    static constexpr int LIVE = (KY + SY - 1) / SY * (F::TRANSPOSED ? SY : 1),
                         PERIOD = F::TRANSPOSED ? LIVE / SY : LIVE * SY,
                         UNROLLED = PERIOD % F::BATCH == 0 ? PERIOD : PERIOD * F::BATCH,
                         READY = F::TRANSPOSED ? SY : 1; /* rows of outputs that a row of inputs completes, at most */

    /* The row of outputs that kernel row r adds to, for input row n of a segment. Direct: only if it is a whole
     * number. */
    static constexpr CF_DEVICE int row_of(int n, int r) {
        return F::TRANSPOSED ? r - F::OFFSET_Y + SY * n : (n - r) / SY;
    }
    static constexpr CF_DEVICE bool meets(int n, int r) { return F::TRANSPOSED || (n + KY * SY - r) % SY == 0; }
    static CF_DEVICE bool is_inside(int n, int r, int count) {
        return (F::TRANSPOSED || n >= r) && unsigned(row_of(n, r)) < unsigned(count);
    }
    /* The number j of row_of() whose last kernel row is that of input row n. */
    static constexpr CF_DEVICE int last_tap(int j) { return F::TRANSPOSED ? j : KY - 1; }
    static constexpr CF_DEVICE int slot_of(int n, int r) {
        return F::TRANSPOSED ? (row_of(n, r) + LIVE * (F::OFFSET_Y / LIVE + 1)) % LIVE
                             : (n + LIVE * SY - r) / SY % LIVE;
    }
    static CF_DEVICE int tap(int position, int e) {
        return F::TRANSPOSED ? e + F::OFFSET_X - SX * position : position - SX * e;
    }
    /* The positions of four lanes in a step are 1 or 2 apart. 2 leads to fewer bank conflicts. */
    static constexpr CF_DEVICE int apart(int step) { return ADVANCE % 2 == 0 && step / 2 * 2 + 1 < F::STEPS ? 2 : 1; }
    static constexpr CF_DEVICE int first_of(int step) { return apart(step) == 2 ? step / 2 * 8 + step % 2 : 4 * step; }
};

template <class Storage> CF_DEVICE unsigned packed(float a, float b);
template <> CF_DEVICE unsigned packed<fp16>(float a, float b) { return pack_fp16(a, b); }
template <> CF_DEVICE unsigned packed<bf16>(float a, float b) { return pack_bf16(a, b); }

/* Walks over the rows of outputs of a block, which may be of several samples. A segment is those of one sample. */
template <class F> struct Segment {
    int at, end; /* units of outputs: rows, or TRANSPOSED STRIDE_Y rows. The host sees that they fit an int */
    int units, count, rows; /* units of a plane; rows of outputs of the segment; rows of inputs */
    int after, steps;       /* rows of inputs that warps of gw need behind those of gx; all that lie in the plane */
    int input, output;      /* the rows of the signals that its first rows are */
    int sample;
    long long x, y; /* the places of the sample in both signals */
    CF_DEVICE explicit Segment(const cf_toeplitz_call &call, int after_rows = 0) : after(after_rows) {
        units = F::TRANSPOSED ? (call.y.rows + F::STRIDE_Y - 1) / F::STRIDE_Y : call.y.rows;
        const int tiles = call.tiles_across, all = units * int(call.samples), slices = int(gridDim.y) / tiles,
                  each = (all + slices - 1) / slices;
        at = int(blockIdx.y) / tiles * each;
        end = cf_min_of(at + each, all);
        set(call);
    }
    CF_DEVICE void set(const cf_toeplitz_call &call) {
        constexpr int UNIT = F::TRANSPOSED ? F::STRIDE_Y : 1;
        count = 0;
        if (at >= end)
            return;
        sample = at / units;
        const int top = at - sample * units, here = cf_min_of(end - at, units - top);
        count = cf_min_of(here * UNIT, call.y.rows - top * UNIT);
        rows = F::TRANSPOSED ? (count - 1 + F::OFFSET_Y) / F::STRIDE_Y + 1 : (count - 1) * F::STRIDE_Y + F::KERNEL_Y;
        input = top * (F::TRANSPOSED ? 1 : F::STRIDE_Y) - call.row_pad;
        output = top * UNIT;
        x = sample * call.x.sample_stride;
        y = sample * call.y.sample_stride;
        steps = rows + cf_min_of(after, call.y.rows - (output + count));
        at += here;
    }
};

/* What a thread copies of each row: 16 bytes at `unit` in shared memory (-1: none), at byte `at` of the row in global
 * memory. WIDTH: the columns of the signal that the positions can have. Only ALIGNED signals are copied 16 bytes at a
 * time. The threads from FIRST on copy. */
template <class F, int POSITIONS, int WIDTH, bool SPLIT, int THREADS, int MODE, int FIRST = 0> struct Pieces {
    static constexpr cf_toeplitz_row ROW = cf_toeplitz_row_of(POSITIONS, F::QUADS, SPLIT);
    static constexpr int COUNT = (WIDTH * ROW.units + THREADS - 1) / THREADS;
    int unit[COUNT], channels; /* channels: of the signal, from the first one of the block on */
    unsigned at[COUNT];
    /* first: the column of the signal at position 0. channel: the first of the block. */
    CF_DEVICE Pieces(const cf_toeplitz_side &s, long long groups, long long channel, int first) {
        channels = groups - channel < 4 * F::QUADS ? int(groups - channel) : 4 * F::QUADS;
        const int begin = MODE ? first : cf_max_of(first, 0);
        unroll<0, COUNT>([&](auto i) {
            const int piece = int(threadIdx.x) - FIRST + i * THREADS, part = piece % ROW.units,
                      position = begin + piece / ROW.units - first,
                      column = padded_index<MODE>(first + position, s.columns);
            const bool there = piece < WIDTH * ROW.units && position < POSITIONS &&
                               unsigned(column) < unsigned(s.columns) && 8 * part < channels;
            unit[i] = there ? cf_toeplitz_place(ROW, position) + part : -1;
            at[i] = 2u * unsigned(column * int(s.column_stride) + 8 * part);
        });
    }
    /* How many channels piece i has. */
    CF_DEVICE int channels_of(int i) const {
        return channels - (int(threadIdx.x) - FIRST + i * THREADS) % ROW.units * 8;
    }
    CF_DEVICE void load(smem<uint4> to, const char *row) const {
        unroll<0, COUNT>([&](auto i) {
            if (unit[i] < 0)
                return;
            if (F::ALIGNED) {
                copy_async<4>(smem_cast<float>(to + unit[i]), reinterpret_cast<const float *>(row + at[i]), true);
                return;
            }
            const unsigned short *const from = reinterpret_cast<const unsigned short *>(row + at[i]);
            for (int c = 0; c < 8; c += 2) {
                const int left = channels_of(i) - c;
                smem_cast<unsigned>(to + unit[i])[c / 2] =
                    (left > 0 ? unsigned(__ldg(from + c)) : 0) | (left > 1 ? unsigned(__ldg(from + c + 1)) : 0) << 16;
            }
        });
    }
    CF_DEVICE void store(smem<uint4> from, char *row) const {
        unroll<0, COUNT>([&](auto i) {
            if (unit[i] < 0)
                return;
            if (F::ALIGNED) {
                *reinterpret_cast<uint4 *>(row + at[i]) = from[unit[i]];
                return;
            }
            unsigned short *const to = reinterpret_cast<unsigned short *>(row + at[i]);
            for (int c = 0; c < 8 && c < channels_of(i); ++c) {
                const unsigned word = smem_cast<unsigned>(from + unit[i])[c / 2];
                to[c] = (unsigned short)(word >> c % 2 * 16);
            }
        });
    }
};

/* Rows of a signal, in bytes from the first channel of the block on. */
struct SignalRows {
    char *first;
    long long stride;
    CF_DEVICE SignalRows(const cf_toeplitz_side &s, long long channel)
        : first(static_cast<char *>(const_cast<void *>(s.memory)) + 2 * channel), stride(2 * s.row_stride) {}
    CF_DEVICE char *row(long long sample, int row) const { return first + (2 * sample + row * stride); }
};

template <class F> struct LastSums {
    typedef Last<F> G;
    float sum[G::LIVE][F::TILES][4];

    /* SCALED sums begin with zero, others with the bias. */
    template <class L> CF_DEVICE void clear_row(L l, const float (&bias)[2]) {
        unroll<0, F::TILES>(
            [&](auto i) { unroll<0, 4>([&](auto k) { sum[l][i][k] = F::SCALED ? 0.0f : bias[k % 2]; }); });
    }
    CF_DEVICE void clear(const float (&bias)[2]) {
        unroll<0, G::LIVE>([&](auto l) { clear_row(l, bias); });
    }

    /* Adds the products of input row N of a period. first: the place of this lane's first position, of positions that
     * are 1 and 2 apart. */
    template <int N>
    CF_DEVICE void add(smem<const uint2> row, const int (&first)[2], const unsigned (&b)[G::KY][F::STEPS][2]) {
        unroll<0, F::STEPS>([&](auto j) {
            unsigned a[F::TILES][4];
            unroll<0, F::TILES>([&](auto i) {
                unroll<0, 2>([&](auto half) {
                    constexpr int AT = (16 * decltype(i)::value + 8 * decltype(half)::value) * G::ADVANCE +
                                       G::first_of(decltype(j)::value);
                    const uint2 v = row[first[G::apart(j) - 1] + 2 * cf_toeplitz_place(G::IN, AT)];
                    a[i][half] = v.x;
                    a[i][half + 2] = v.y;
                });
            });
            unroll<0, G::KY>([&](auto r) {
                if constexpr (G::meets(N, decltype(r)::value))
                    unroll<0, F::TILES>([&](auto i) {
                        multiply_tile<typename F::Storage>(sum[G::slot_of(N, r)][i], a[i], b[r][j][0], b[r][j][1]);
                    });
            });
        });
    }
};

/* What a warp adds to its sums, and how it stores them. Lane 4 g + t has outputs of channels 2 (t % 2) and the next. */
template <class F> struct LastWarp {
    typedef Last<F> G;
    unsigned b[G::KY][F::STEPS][2];
    float bias[2], down[2];
    int first[2], out; /* the places of the first position that is read and of the first output, in words of 8 and 4 */
    long long channel;
    int column, own_channel; /* of the first output in y; from the first channel of the block on */
    CF_DEVICE LastWarp(const cf_toeplitz_call &call, long long block, int left) {
        const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, quad = warp % F::QUADS,
                  part = warp / F::QUADS, g = lane / 4, t = lane % 4, pair = 32 * F::TILES * part / 2 + g;
        channel = block + 4 * quad;
        for (int d = 1; d <= 2; ++d)
            first[d - 1] = 2 * cf_toeplitz_place(G::IN, pair * G::ADVANCE + d * t) + quad;
        out = 4 * cf_toeplitz_place(G::OUT, 2 * pair + t / 2) + 2 * quad + t % 2;
        column = left + 2 * pair + t / 2;
        float up = 1;
        down[0] = down[1] = 1;
        for (int c = 0; c < 4 && F::SCALED; ++c) {
            const WeightScale<F> scale(call.w, channel + c < call.groups ? channel + c : 0);
            if (g % 4 == c)
                up = scale.up;
            if (t % 2 == c / 2)
                down[c % 2] = scale.down;
        }
        const bool live = channel + g % 4 < call.groups;
        unroll<0, G::KY>([&](auto r) {
            unroll<0, F::STEPS>([&](auto j) {
                const int s = G::tap(G::first_of(j) + G::apart(j) * t, g / 4);
                const float value = live ? float(tap_at<F>(call.w, channel + g % 4, r, s)) * up : 0.0f;
                const unsigned word =
                    g % 2 ? packed<typename F::Storage>(0, value) : packed<typename F::Storage>(value, 0);
                b[r][j][0] = g % 4 < 2 ? word : 0;
                b[r][j][1] = g % 4 < 2 ? 0 : word;
            });
        });
        own_channel = 4 * quad + 2 * (t % 2);
        channel = block + own_channel;
        for (int c = 0; c < 2; ++c)
            bias[c] = call.bias && channel + c < call.groups ? float(bias_at<F>(call.bias, channel + c)) : 0.0f;
    }

    /* Adds the old contents of a row of y to its sums. */
    CF_DEVICE void add_old(const cf_toeplitz_call &call, float (&sum)[F::TILES][4], const char *row) const {
        const unsigned short *const own = reinterpret_cast<const unsigned short *>(row) + own_channel;
        unroll<0, F::TILES>([&](auto i) {
            unroll<0, 4>([&](auto k) {
                const int at = column + 32 * i + 16 * (k / 2);
                if (at < call.y.columns && channel + k % 2 < call.groups)
                    sum[i][k] += float(F::Storage::number(own[at * int(call.y.column_stride) + k % 2]));
            });
        });
    }
    CF_DEVICE void scale(float (&sum)[F::TILES][4]) const {
        unroll<0, F::TILES>(
            [&](auto i) { unroll<0, 4>([&](auto k) { sum[i][k] = sum[i][k] * down[k % 2] + bias[k % 2]; }); });
    }
    /* Stores complete sums to shared memory. */
    CF_DEVICE void stage(smem<unsigned> staged, const float (&sum)[F::TILES][4]) const {
        unroll<0, F::TILES>([&](auto i) {
            unroll<0, 2>([&](auto half) {
                constexpr int AT = 32 * decltype(i)::value + 16 * decltype(half)::value;
                staged[out + 4 * cf_toeplitz_place(G::OUT, AT)] =
                    packed<typename F::Storage>(sum[i][2 * half], sum[i][2 * half + 1]);
            });
        });
    }
};

/* Loads batches of rows of x, one after the other. */
template <class F> struct LastLoads {
    typedef Last<F> G;
    const cf_toeplitz_call &call;
    const Pieces<F, G::POSITIONS, F::WIDTH, G::ADVANCE % 2 == 0, G::THREADS, F::MODE> pieces;
    const SignalRows x;
    Segment<F> ahead;
    int next; /* the first row of the next batch, of segment `ahead` */
    CF_DEVICE LastLoads(const cf_toeplitz_call &c, long long block, int left, int after)
        : call(c), pieces(c.x, c.groups, block, left / 2 * G::ADVANCE - c.column_pad), x(c.x, block), ahead(c, after),
          next(0) {}
    CF_DEVICE void load(smem<uint4> to) {
        if (ahead.count > 0) {
#pragma unroll
            for (int k = 0; k < F::BATCH; ++k) {
                const int row = padded_index<F::MODE>(ahead.input + next + k, call.x.rows);
                if (next + k < ahead.rows && unsigned(row) < unsigned(call.x.rows))
                    pieces.load(to + k * G::IN.size, x.row(ahead.x, row));
            }
            next += F::BATCH;
            if (next >= ahead.steps) {
                ahead.set(call);
                next = 0;
            }
        }
        tiles_commit();
    }
};

/* Complete rows of outputs, in shared memory from `out` on: two buffers of those that a batch completes. */
template <class F> struct LastStores {
    typedef Last<F> G;
    static constexpr int STAGED = F::BATCH * G::READY * G::OUT.size;
    const Pieces<F, G::OUTPUTS, F::WIDTH_Y, true, G::THREADS, 0> pieces;
    const SignalRows y;
    int staged, n; /* the buffer that is filled; the first row of inputs of its batch, or -1 */
    CF_DEVICE LastStores(const cf_toeplitz_call &c, long long block, int left)
        : pieces(c.y, c.groups, block, left), y(c.y, block), staged(0), n(-1) {}
    CF_DEVICE smem<uint4> place(smem<uint4> out, int k) const { return out + (staged + k * G::OUT.size); }
    /* Stores the rows of a batch of segment `of`, and takes the other buffer for the batch that begins with `after`. */
    CF_DEVICE void store(smem<uint4> out, const Segment<F> &of, int after) {
#pragma unroll
        for (int k = 0; k < F::BATCH * G::READY && n >= 0; ++k) {
            const int row = n + k / G::READY, r = G::last_tap(k % G::READY), q = G::row_of(row, r);
            if (G::meets(row, r) && G::is_inside(row, r, of.count))
                pieces.store(place(out, k), y.row(of.y, of.output + q));
        }
        staged = STAGED - staged;
        n = after;
    }
};

/* The sums of a row of outputs that is complete. */
template <class F>
CF_DEVICE void finish_row(const cf_toeplitz_call &call, const LastWarp<F> &warp, float (&sum)[F::TILES][4], bool inside,
                          const char *row, smem<uint4> to) {
    if (F::SCALED)
        warp.scale(sum);
    if (call.accumulate && inside)
        warp.add_old(call, sum, row);
    warp.stage(smem_cast<unsigned>(to), sum);
}

/* Copies rows of inputs to `memory`, and of outputs to `out`. after: of Segment. */
template <class F>
CF_DEVICE void walk_last(const cf_toeplitz_call &call, smem<uint4> memory, smem<uint4> out, int after) {
    typedef Last<F> G;
    constexpr int SLOT = G::SLOT, LAST_SLOT = (F::BUFFERS - 1) * SLOT;
    const long long block = blockIdx.x * (4ll * F::QUADS);
    const int left = int(blockIdx.y) % call.tiles_across * G::OUTPUTS;
    const LastWarp<F> warp(call, block, left);
    LastLoads<F> loads(call, block, left, after);
    LastStores<F> stores(call, block, left);
    block_barrier();
    for (int slot = 0; slot < LAST_SLOT; slot += SLOT)
        loads.load(memory + slot);
    int slot = 0, before = LAST_SLOT; /* the batch that is multiplied, and the free buffer */
    LastSums<F> sums;
    for (Segment<F> now(call, after); now.count > 0; now.set(call)) {
        sums.clear(warp.bias);
        smem<const uint2> rows = smem_cast<const uint2>(memory);
        for (int base = 0; base < now.steps; base += G::UNROLLED)
            unroll<0, G::UNROLLED>([&](auto u) {
                constexpr int N = decltype(u)::value, K = N % F::BATCH;
                const int n = base + N;
                if (n >= now.steps)
                    return;
                if (K == 0) {
                    tiles_wait<F::BUFFERS - 2>();
                    block_barrier();
                    stores.store(out, now, n);
                    loads.load(memory + before);
                    rows = smem_cast<const uint2>(memory + slot);
                    before = slot;
                    slot = slot == LAST_SLOT ? 0 : slot + SLOT;
                }
                if (n >= now.rows)
                    return;
                if (F::MODE || unsigned(now.input + n) < unsigned(call.x.rows))
                    sums.template add<N>(rows + 2 * K * G::IN.size, warp.first, warp.b);
                unroll<0, G::READY>([&](auto j) {
                    constexpr int R = G::last_tap(decltype(j)::value);
                    if constexpr (G::meets(N, R)) {
                        constexpr int L = G::slot_of(N, R);
                        finish_row<F>(call, warp, sums.sum[L], G::is_inside(n, R, now.count),
                                      stores.y.row(now.y, now.output + G::row_of(n, R)),
                                      stores.place(out, K * G::READY + j));
                        sums.clear_row(Int<L>(), warp.bias);
                    }
                });
            });
        block_barrier();
        stores.store(out, now, -1);
    }
}

template <class F> CF_DEVICE void toeplitz_last(const cf_toeplitz_call &call) {
    constexpr int SIZE = F::BUFFERS * Last<F>::SLOT;
    smem<uint4> memory = cf_dynamic_shared<uint4>();
    clear_tiles(memory, SIZE); /* columns outside of x stay zero */
    walk_last<F>(call, memory, memory + SIZE, 0);
}
