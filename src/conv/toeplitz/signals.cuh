/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution of short kernels without a transform, on tensor cores: y from x, or gx from gy. A reader
 * begins here.
 *
 *     y[i][j] = sum over r, s of w[r][s] x[STRIDE_Y i + r - pad][STRIDE_X j + s - pad]
 *
 * For one kernel row r, eight outputs of a row are the product of the 16 STEPS inputs that they read and a Toeplitz
 * matrix B[k][n] = w[r][k - LEAD - STRIDE_X n]. A product has 16 rows (m16n8k16), so a warp computes 16 rows of
 * outputs. For FP32 signals there are 8 STEPS inputs and TF32 products (m16n8k8, tf32.cuh). The rows of A are the same
 * tile for all kernel rows, one row further down. B depends on the weights only: its fragments stay in registers or in
 * shared memory, and the kernel walks over samples and tiles.
 *
 * The gradient of x with a stride is this sum with stride one, where UP - 1 zeros follow each element of x (here gy).
 * Products leave these zeros out. Eight inputs of a row have UP_X blocks of outputs, whose matrices differ:
 *
 *     B[k][n] of block q = w[r][UP_X k - LEAD - 8 q - n]
 *
 * A row of inputs has UP_Y rows of outputs. Row p of them takes the kernel rows r for which p + r + LEAD_Y is a
 * multiple of UP_Y. A warp computes 16 rows of one p at a time.
 *
 *     planes    the rows are those of an image
 *     a line    a signal of one axis is cut into rows of WIDTH outputs, which follow one another
 *
 * LEAD columns before the first input make copies aligned. Sums are in FP32. The order of additions does not depend
 * on the batch or the launch.
 *
 * The host prints F (config.c) with: Storage, Weights, Bias (types of elements), X (the tile of what is read,
 * tile.cuh), TERMS (of an FP32 number) and SPAN (tf32.cuh), KERNEL_Y, KERNEL_X, STRIDE_Y, STRIDE_X, UP_Y, UP_X, LEAD,
 * LEAD_Y, STEPS, BLOCKS (groups of eight outputs that a warp computes together), COUNT (how many such groups a row
 * has), WIDTH = 8 BLOCKS COUNT, WARPS (of a plane), PLANES (of a block), GRANULE (elements that one store writes), LAST
 * (channels last), FOLDED (the padding of gx is folded, folded_planes.cuh), LINE, FLIP (the taps in reverse order: gx
 * from gy), SHARED (B is in shared memory), SCALED (FP32 weights beside FP16 signals).
 */
#pragma once

#include "conv/toeplitz/folded_planes.cuh"
#include "conv/toeplitz/tf32.cuh"

template <class F> CF_DEVICE float tap_at(const cf_toeplitz_taps &w, long long group, int r, int s) {
    if (s < 0 || s >= F::KERNEL_X)
        return 0;
    const int row = F::FLIP ? F::KERNEL_Y - 1 - r : r, column = F::FLIP ? F::KERNEL_X - 1 - s : s;
    return F::Weights::load(static_cast<const typename F::Weights::bits *>(w.memory) + group * w.group_stride +
                            row * w.row_stride + column * w.column_stride);
}

/* The largest tap of a channel, in all lanes. */
template <class F> CF_DEVICE float largest_tap(const cf_toeplitz_taps &w, long long group) {
    float largest = 0;
    for (int i = int(threadIdx.x) % 32; i < F::KERNEL_Y * F::KERNEL_X; i += 32)
        largest = fmaxf(largest, fabsf(tap_at<F>(w, group, i / F::KERNEL_X, i % F::KERNEL_X)));
    for (int lanes = 16; lanes > 0; lanes /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, lanes));
    return largest;
}

/* SCALED: FP32 weights beside FP16 signals are multiplied by a power of two, so that the largest one is between 2^14
 * and 2^15. Otherwise small weights would lose bits. Taps: what largest_tap() takes. */
template <class F> struct WeightScale {
    float up = 1, down = 1;
    template <class Taps> CF_DEVICE WeightScale(const Taps &w, long long group) {
        if constexpr (F::SCALED) {
            const unsigned exponent = __float_as_uint(largest_tap<F>(w, group)) >> 23,
                           field = exponent < 15 ? 253 : cf_max_of(int(268 - exponent), 1);
            up = __uint_as_float(field << 23);
            down = __uint_as_float((254 - field) << 23);
        }
    }
};

/* Words 0 and 1 of this lane in a fragment of B of kernel row r: fragment k UP_X + q is step k of block q. An FP32 tap
 * is rounded to its terms. */
template <class F>
CF_DEVICE void toeplitz_fragment(unsigned (&b)[F::TERMS][2], const cf_toeplitz_taps &w, long long group, int r,
                                 int fragment, float scale) {
    constexpr int NUMBERS = F::X::NUMBERS, OF_WORD = NUMBERS / 4, UP = F::UP_X;
    const int lane = int(threadIdx.x) % 32, step = fragment / UP, q = fragment % UP;
#pragma unroll
    for (int word = 0; word < 2; ++word) {
        const int s = UP * (2 * NUMBERS * step + OF_WORD * (lane % 4) + NUMBERS * word) - F::LEAD - 8 * q -
                      lane / 4 * F::STRIDE_X;
        const float tap = tap_at<F>(w, group, r, s) * scale;
        if constexpr (NUMBERS == 4) {
            b[0][word] = tf32_of(tap);
            if (F::TERMS > 1)
                b[F::TERMS - 1][word] = tf32_of(tap - __uint_as_float(b[0][word]));
        } else {
            b[0][word] = F::Storage::word({tap, tap_at<F>(w, group, r, s + UP) * scale});
        }
    }
}

template <class F> struct Toeplitz {
    typedef Tile<typename F::X> Input;
    static constexpr int NUMBERS = F::X::NUMBERS, OF_BLOCK = 8 / NUMBERS, /* units of eight columns */
        WINDOW = cf_toeplitz_window((F::BLOCKS + F::UP_X - 1) / F::UP_X, F::STRIDE_X *OF_BLOCK, F::STEPS),
                         OUT_PITCH = cf_toeplitz_out_pitch(F::BLOCKS, F::FOLDED ? 4 : NUMBERS),
                         OUT_ROW = (F::FOLDED ? F::UP_Y : 1) * OUT_PITCH, /* from row to row of a warp */
        OUT_PLANE = (16 * F::WARPS * OUT_ROW) | 1, TILES = F::PLANES * Input::SIZE, BUFFERS = F::LAST ? 1 : 2,
                         OF_ROW = F::STEPS * F::UP_X, /* fragments of a kernel row */
        FRAGMENTS = F::KERNEL_Y * OF_ROW, CHANNELS = F::LAST ? F::PLANES : 1;
};

/* sum += the inputs of one kernel row times B. from: the place of this lane's row. unit: the first of the group. Lanes
 * 16 to 31 name the unit behind that of lanes 0 to 15. In a line, units may be in the next row. fragment(b, k) gives
 * this lane's words of B of step k. */
template <class F, class B>
CF_DEVICE void multiply_16_bit_row(float (&sum)[F::BLOCKS][4], smem<uint4> plane, int from, int unit,
                                   const B &fragment) {
    typedef Toeplitz<F> G;
    unsigned b[G::OF_ROW][1][2];
    unroll<0, G::OF_ROW>([&](auto k) { fragment(b[k], k); });
    unsigned a[G::WINDOW][2];
    unroll<0, G::WINDOW / 2>([&](auto i) {
        unsigned read[4];
        ldmatrix_x4(read, plane, from + G::Input::along(unit + 2 * i + int(threadIdx.x) % 32 / 16));
        a[2 * i][0] = read[0];
        a[2 * i][1] = read[1];
        a[2 * i + 1][0] = read[2];
        a[2 * i + 1][1] = read[3];
    });
    unroll<0, F::STEPS>([&](auto k) {
        unroll<0, F::BLOCKS>([&](auto n) {
            constexpr int UNIT = decltype(n)::value / F::UP_X * F::STRIDE_X + 2 * decltype(k)::value,
                          AT = decltype(k)::value * F::UP_X + decltype(n)::value % F::UP_X;
            const unsigned operand[4] = {a[UNIT][0], a[UNIT][1], a[UNIT + 1][0], a[UNIT + 1][1]};
            multiply_tile<typename F::Storage>(sum[n], operand, b[AT][0][0], b[AT][0][1]);
        });
    });
}

template <class F, class B>
CF_DEVICE void multiply_row(float (&sum)[F::BLOCKS][4], smem<uint4> plane, int from, int unit, const B &fragment) {
    if constexpr (F::Storage::PLAIN)
        multiply_fp32_row<F>(sum, plane, from, unit, fragment);
    else
        multiply_16_bit_row<F>(sum, plane, from, unit, fragment);
}

/* The output of this lane: of sum[n][2 half] and the one after it. */
template <class F> CF_DEVICE Corner output_of(Corner tile, int part, int group, int n, int half) {
    const int lane = int(threadIdx.x) % 32, row = 16 * part + lane / 4 + 8 * half,
              column = (group * F::BLOCKS + n) * 8 + lane % 4 * 2;
    if (F::LINE)
        return {0, tile.column + row * F::WIDTH + column};
    return {tile.row + row * F::UP_Y, tile.column + column};
}

template <class F>
CF_DEVICE typename F::Storage::bits *element_of(const cf_toeplitz_side &y, long long sample, long long group,
                                                Corner at) {
    return static_cast<typename F::Storage::bits *>(const_cast<void *>(y.memory)) + sample * y.sample_stride +
           group * y.group_stride + at.row * y.row_stride + at.column * y.column_stride;
}

/* Adds to y, element by element. */
template <class F>
CF_DEVICE void add_outputs(const cf_toeplitz_call &call, const float (&sum)[F::BLOCKS][4], Corner tile, int part,
                           int group, long long sample, long long channel) {
    if (sample >= call.samples || channel >= call.groups)
        return;
    unroll<0, F::BLOCKS>([&](auto n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            Corner at = output_of<F>(tile, part, group, n, i / 2);
            at.column += i % 2;
            if (!is_inside(call.y, at.row, at.column))
                continue;
            auto *const p = element_of<F>(call.y, sample, channel, at);
            F::Storage::store(p, sum[n][i] + F::Storage::load(p));
        }
    });
}

/* Outputs of a warp to shared memory: 16 rows, OUT_ROW units apart. FOLDED: in FP32. */
template <class F> CF_DEVICE void stage_outputs(smem<uint4> out, const float (&sum)[F::BLOCKS][4]) {
    const int lane = int(threadIdx.x) % 32;
    unroll<0, F::BLOCKS>([&](auto n) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            smem<uint4> row = out + (lane / 4 + 8 * half) * Toeplitz<F>::OUT_ROW;
            if constexpr (F::Storage::PLAIN || F::FOLDED)
                smem_cast<float2>(row)[4 * n + lane % 4] = make_float2(sum[n][2 * half], sum[n][2 * half + 1]);
            else
                smem_cast<unsigned>(row)[4 * n + lane % 4] = F::Storage::word({sum[n][2 * half], sum[n][2 * half + 1]});
        }
    });
}

/* Channels first: 16 rows of outputs from shared memory to y, by one warp. */
template <class F>
CF_DEVICE void store_rows(const cf_toeplitz_call &call, smem<uint4> out, Corner tile, int part, int group,
                          long long sample, long long channel) {
    typedef Copies<F::X::NUMBERS, F::GRANULE> C;
    typedef typename Tile<typename F::X>::bits bits;
    typedef typename VectorOf<C::WORDS>::type vector;
    constexpr int EACH = C::EACH, OF_ROW = 8 * F::BLOCKS / EACH;
    if (sample >= call.samples)
        return;
    for (int i = int(threadIdx.x) % 32; i < 16 * OF_ROW; i += 32) {
        const int row = i / OF_ROW, place = i % OF_ROW * EACH, line = 16 * part + row,
                  column = group * F::BLOCKS * 8 + place;
        const Corner at = F::LINE ? Corner{0, tile.column + line * F::WIDTH + column}
                                  : Corner{tile.row + line * F::UP_Y, tile.column + column};
        if (!is_inside(call.y, at.row, at.column))
            continue;
        smem<unsigned> from = smem_cast<unsigned>(out + row * Toeplitz<F>::OUT_PITCH) + place / C::OF_WORD;
        bits *const to = reinterpret_cast<bits *>(element_of<F>(call.y, sample, channel, at));
        if (C::ASYNC && at.column + EACH <= call.y.columns) {
            *reinterpret_cast<vector *>(to) = smem_cast<vector>(from)[0];
            continue;
        }
#pragma unroll
        for (int word = 0; word < C::WORDS; ++word) {
            const unsigned value = from[word];
            for (int half = 0; half < C::OF_WORD; ++half)
                if (at.column + C::OF_WORD * word + half < call.y.columns)
                    to[C::OF_WORD * word + half] = bits(value >> 16 * half);
        }
    }
}

/* Channels last: the outputs of all planes of the block, transposed back, by all warps. */
template <class F>
CF_DEVICE void store_channels(const cf_toeplitz_call &call, smem<uint4> out, Corner tile, int group, long long sample,
                              long long channel) {
    typedef Toeplitz<F> G;
    constexpr int WARPS = F::PLANES * F::WARPS;
    const int lane = int(threadIdx.x) % 32;
#pragma unroll 4
    for (int i = int(threadIdx.x) / 32; i < 16 * F::WARPS * F::BLOCKS; i += WARPS) {
        const int row = i / F::BLOCKS, unit = i % F::BLOCKS;
        const int column = (group * F::BLOCKS + unit) * 8 + lane / 4;
        const Corner at = F::LINE ? Corner{0, tile.column + row * F::WIDTH + column}
                                  : Corner{tile.row + row * F::UP_Y, tile.column + column};
        const bool inside = is_inside(call.y, at.row, at.column);
#pragma unroll
        for (int e = 0; e < F::PLANES / 8; ++e) {
            const unsigned word = mma_transposed(
                smem_cast<unsigned>(out + ((8 * e + lane / 4) * G::OUT_PLANE + row * G::OUT_PITCH + unit))[lane % 4]);
            const long long c = channel + 8 * e + lane % 4 * 2;
            if (!inside || c >= call.groups)
                continue;
            auto *const to = element_of<F>(call.y, sample, c, at);
            if (F::GRANULE > 1) {
                *reinterpret_cast<unsigned *>(to) = word;
                continue;
            }
            to[0] = (unsigned short)word;
            if (c + 1 < call.groups)
                to[1] = (unsigned short)(word >> 16);
        }
    }
}

/* The fragments of B of this lane: in registers, or in shared memory at `memory`. */
template <class F, bool SHARED = F::SHARED> struct Fragments {
    typedef Toeplitz<F> G;
    unsigned held[F::KERNEL_Y][G::OF_ROW][F::TERMS][2];
    CF_DEVICE Fragments(smem<uint4>, const cf_toeplitz_taps &w, long long group, float scale, bool live) {
        unroll<0, F::KERNEL_Y>([&](auto r) {
            unroll<0, G::OF_ROW>([&](auto k) {
#pragma unroll
                for (int t = 0; t < F::TERMS; ++t)
                    held[r][k][t][0] = held[r][k][t][1] = 0;
                if (live)
                    toeplitz_fragment<F>(held[r][k], w, group, r, k, scale);
            });
        });
    }
    template <int P> CF_DEVICE void multiply(float (&sum)[F::BLOCKS][4], smem<uint4> plane, int from, int unit) const {
        unroll<0, F::KERNEL_Y>([&](auto r) {
            constexpr int DOWN = P + decltype(r)::value + F::LEAD_Y;
            if constexpr (DOWN % F::UP_Y == 0)
                multiply_row<F>(sum, plane, from + DOWN / F::UP_Y * Tile<typename F::X>::PITCH, unit,
                                [&](unsigned(&b)[F::TERMS][2], auto k) {
                                    unroll<0, F::TERMS>([&](auto t) {
                                        b[t][0] = held[r][k][t][0];
                                        b[t][1] = held[r][k][t][1];
                                    });
                                });
        });
    }
};
template <class F> struct Fragments<F, true> {
    typedef Toeplitz<F> G;
    static constexpr int WORDS = 2 * F::TERMS;
    smem<unsigned> at;
    CF_DEVICE Fragments(smem<uint4> memory, const cf_toeplitz_taps &w, long long group, float scale, bool live) {
        constexpr int WARPS = F::LAST ? F::WARPS : F::WARPS * F::PLANES; /* that have this channel */
        at = smem_cast<unsigned>(memory) + int(threadIdx.x) % 32 * WORDS;
        for (int i = int(threadIdx.x) / 32 % WARPS; i < G::FRAGMENTS; i += WARPS) {
            unsigned b[F::TERMS][2] = {};
            if (live)
                toeplitz_fragment<F>(b, w, group, i / G::OF_ROW, i % G::OF_ROW, scale);
#pragma unroll
            for (int word = 0; word < WORDS; ++word)
                at[32 * WORDS * i + word] = b[word / 2][word % 2];
        }
    }
    template <int P> CF_DEVICE void multiply(float (&sum)[F::BLOCKS][4], smem<uint4> plane, int from, int unit) const {
        constexpr int BEGIN = P + F::LEAD_Y, END = BEGIN + F::KERNEL_Y;
#pragma unroll 1
        for (int down = (BEGIN + F::UP_Y - 1) / F::UP_Y; down * F::UP_Y < END; ++down) {
            const int r = down * F::UP_Y - BEGIN;
            multiply_row<F>(sum, plane, from + down * Tile<typename F::X>::PITCH, unit,
                            [&](unsigned(&b)[F::TERMS][2], auto k) {
                                unroll<0, WORDS>([&](auto word) {
                                    b[word / 2][word % 2] = at[32 * WORDS * (r * G::OF_ROW + k) + word];
                                });
                            });
        }
    }
};

/* The outputs of rows P of one tile, by a warp with part `part` of plane `plane`. */
template <class F, int P>
CF_DEVICE void convolve_rows(const cf_toeplitz_call &call, const Fragments<F> &b, smem<uint4> tiles, smem<uint4> out,
                             int plane, int part, long long sample, long long group, Corner output, float bias,
                             float down) {
    typedef Toeplitz<F> G;
    const int lane = int(threadIdx.x) % 32;
    const int from = (16 * part + lane % 16) * F::STRIDE_Y * G::Input::PITCH;
    const long long own = sample + (F::LAST ? 0 : plane);
    output.row += P;
#pragma unroll 1
    for (int g = 0; g < F::COUNT; ++g) {
        float sum[F::BLOCKS][4];
#pragma unroll
        for (int n = 0; n < F::BLOCKS; ++n)
            sum[n][0] = sum[n][1] = sum[n][2] = sum[n][3] = 0;
        b.template multiply<P>(sum, tiles + plane * G::Input::SIZE, from,
                               g * F::BLOCKS / F::UP_X * F::STRIDE_X * G::OF_BLOCK);
        unroll<0, F::BLOCKS>([&](auto n) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                sum[n][i] = F::SCALED ? sum[n][i] * down + bias : sum[n][i] + bias;
        });
        if constexpr (F::FOLDED) {
            stage_outputs<F>(out + (plane * G::OUT_PLANE + 16 * part * G::OUT_ROW + P * G::OUT_PITCH), sum);
            continue;
        }
        if (call.accumulate) {
            add_outputs<F>(call, sum, output, part, g, own, group);
            continue;
        }
        smem<uint4> mine = out + (plane * G::OUT_PLANE + 16 * part * G::OUT_PITCH);
        if constexpr (F::LAST && P > 0)
            __syncthreads();
        __syncwarp();
        stage_outputs<F>(mine, sum);
        if constexpr (F::LAST) {
            __syncthreads();
            store_channels<F>(call, out, output, g, sample, group - plane); /* COUNT is 1 */
        } else {
            __syncwarp();
            store_rows<F>(call, mine, output, part, g, own, group);
        }
    }
}

template <class F>
CF_DEVICE void convolve_tile(const cf_toeplitz_call &call, const Fragments<F> &b, smem<uint4> tiles, smem<uint4> out,
                             int plane, int part, long long sample, long long group, Corner output, float bias,
                             float down) {
    typedef Toeplitz<F> G;
    unroll<0, F::UP_Y>([&](auto p) {
        convolve_rows<F, decltype(p)::value>(call, b, tiles, out, plane, part, sample, group, output, bias, down);
    });
    if constexpr (F::FOLDED) {
        __syncthreads();
        const smem<float> folded = smem_cast<float>(out + plane * G::OUT_PLANE);
        const int thread = 32 * part + int(threadIdx.x) % 32;
        fold_plane<F, 4 * G::OUT_PITCH>(folded, thread);
        if (sample + plane < call.samples)
            store_folded<F, 4 * G::OUT_PITCH>(call, folded, element_of<F>(call.y, sample + plane, group, {0, 0}),
                                              thread);
    }
}

template <class F> CF_DEVICE void toeplitz_signals(const cf_toeplitz_call &call) {
    typedef Toeplitz<F> G;
    typedef typename F::X X;
    const int warp = int(threadIdx.x) / 32, plane = warp / F::WARPS, part = warp % F::WARPS;
    const long long first = (long long)blockIdx.x * G::CHANNELS, group = first + (F::LAST ? plane : 0);
    const bool live = group < call.groups;
    smem<uint4> memory = cf_dynamic_shared<uint4>(), out = memory + G::BUFFERS * G::TILES;
    const WeightScale<F> scale(call.w, live ? group : 0);
    smem<uint4> fragments = out + F::PLANES * G::OUT_PLANE;
    const Fragments<F> b(fragments + (F::LAST ? plane : 0) * (G::FRAGMENTS * 16), call.w, group, scale.up, live);
    const float bias = live && call.bias ? float(bias_at<F>(call.bias, group)) : 0.0f;
    const Items<F> items(call);
    int buffer = 0;
    if constexpr (F::LAST) {
        for (long long item = items.begin; item < items.count; item += items.step) {
            const Corner output = items.output(call, item);
            const long long sample = items.sample(item);
            load_channels<X, F::PLANES, F::PLANES * F::WARPS, 8>(memory, call.x, call.groups, sample, first,
                                                                 items.input(call, output));
            __syncthreads();
            convolve_tile<F>(call, b, memory, out, plane, part, sample, group, output, bias, scale.down);
            __syncthreads();
        }
        return;
    }
    if (X::WHOLE) {
        clear_tiles(memory, 2 * G::TILES);
        __syncthreads();
    }
    if (items.begin < items.count)
        load_planes<X, F::PLANES>(memory, call.x, call.samples, items.sample(items.begin), group,
                                  items.input(call, items.output(call, items.begin)));
    tiles_commit();
    for (long long item = items.begin; item < items.count; item += items.step, buffer ^= 1) {
        const long long next = item + items.step;
        if (next < items.count)
            load_planes<X, F::PLANES>(memory + (buffer ^ 1) * G::TILES, call.x, call.samples, items.sample(next), group,
                                      items.input(call, items.output(call, next)));
        tiles_commit();
        tiles_wait<1>();
        __syncthreads();
        if constexpr (X::MODE && X::WHOLE)
            pad_planes<X, F::PLANES>(memory + buffer * G::TILES);
        convolve_tile<F>(call, b, memory + buffer * G::TILES, out, plane, part, items.sample(item), group,
                         items.output(call, item), bias, scale.down);
        __syncthreads();
    }
}
