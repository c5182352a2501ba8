/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution of long 1-D signals: transform, product and inverse transform in one kernel. Every DFT is a
 * product with a small matrix, on tensor cores (m16n8k16). A reader begins here.
 *
 *     y[o] = sum over k of w[k] x[o + k - pad]
 *
 * A signal is cut into tiles (overlap-save). A tile of 2 H elements is folded to H complex numbers, z[n] = x[n] + i
 * x[n + H], which is the polynomial of x modulo Z^H - i. Its values at the H roots of that modulus are its bins: bin k
 * is the value at exp(-2 pi i (k - 1/4) / H). Products of bins are products of polynomials modulo Z^2H + 1, and
 * products with conjugate bins are correlations. So spectra need no Hermitian split.
 *
 *     H = 256 RADIX,    n = 256 n1 + 16 n2 + n3,    k = k1 + RADIX (k2 + 16 k3),    root(a / b) = exp(-2 pi i a / b)
 *
 *     step 1     sums over n1, with root(n1 (k1 - 1/4) / RADIX)                    A = matrix,  B = elements
 *     step 2     sums over n2, with root(n2 (k1 - 1/4 + RADIX k2) / (16 RADIX))    A = matrix,  B = words of step 1
 *     twiddles   times root(n3 (k1 - 1/4 + RADIX k2) / H)
 *     step 3     sums over n3, with root(n3 k3 / 16)                               A = numbers, B = matrix
 *     product    the conjugate of what follows from the spectra of x and w: so the inverse has the same roots
 *     step 4     step 3 backwards                                                  A = matrix,  B = products
 *     step 5     twiddles, then step 2 backwards                                   A = matrix,  B = numbers
 *     step 6     step 1 backwards                                                  A = matrix,  B = words of step 5
 *
 * A warp has one k1: all numbers of steps 2 to 5 stay in its registers, and so do its matrices and its part of the
 * spectrum of w. Its twiddles are in shared memory. A block has several channels, one after the other. Results of one
 * product are operands of the next one in the same lanes: a lane g, t (number 4 g + t) has rows g and g + 8 and columns
 * 2 t and 2 t + 1 of a result, and these columns are the depth that the next product sums over. Only between steps 1
 * and 2 and between steps 5 and 6 do words (re, im) go through shared memory. A block computes LINES tiles between
 * barriers.
 *
 * Rounding to 16 bits, always FP16: the matrices, the twiddles, and what steps 1, 2, 4 and 5 and the product leave.
 * Sums, twiddled numbers before rounding and the spectrum of w are FP32. Each tile is multiplied by a power of two, so
 * that its largest element is between 1 and 2. This happens after step 1, whose sums overflow if BF16 elements of 2^122
 * and more add up. Step 1 of BF16 elements has a matrix that is the sum of two.
 *
 * The host prints F (config.c) with: Storage, Weights, Bias (types of elements), RADIX, LINES, GRANULE (elements that
 * one load or store moves), X_COUNT and Y_COUNT (elements of a signal), FIRST (the element of x where the first tile
 * begins), VALID (results of a tile), TILES (of a signal), KERNEL_X (taps; KERNEL_Y is 1), SHIFT (the place of tap 0 in
 * a tile), FLIP (the taps in reverse order).
 */
#pragma once

#include "conv/dft/signal_steps.cuh"

/* A tile in memory: element e is first[e], or zero unless at + e is one of 0 to count - 1. */
struct DftTile {
    const unsigned short *first;
    int at;
    unsigned count;

    /* Eight elements, from e + MORE on. */
    template <int GRANULE, int MORE> CF_DEVICE uint4 eight(int e) const {
        const unsigned short *const from = first + e;
        const int place = at + e;
        if constexpr (GRANULE == 8) {
            return unsigned(place + MORE) < count ? __ldg(reinterpret_cast<const uint4 *>(from + MORE))
                                                  : make_uint4(0, 0, 0, 0);
        } else {
            unsigned word[4];
            unroll<0, 4>([&](auto i) {
                constexpr int N = MORE + 2 * decltype(i)::value;
                word[i] = unsigned(place + N) < count ? __ldg(from + N) : 0u;
                if (unsigned(place + N + 1) < count)
                    word[i] |= unsigned(__ldg(from + N + 1)) << 16;
            });
            return make_uint4(word[0], word[1], word[2], word[3]);
        }
    }
};

/* Stores or adds eight neighbouring elements, of which `left` exist. */
template <class F>
CF_DEVICE void dft_put_elements(typename F::Storage::bits *to, int left, bool accumulate, const float (&v)[8]) {
    typedef typename F::Storage S;
    typedef DftNumbers<S> N;
    if (F::GRANULE == 8 && !accumulate) {
        *reinterpret_cast<uint4 *>(to) =
            make_uint4(N::word(v[0], v[1]), N::word(v[2], v[3]), N::word(v[4], v[5]), N::word(v[6], v[7]));
        return;
    }
#pragma unroll 1
    for (int i = 0; i < 8 && i < left; ++i) {
        float value = 0;
        unroll<0, 8>([&](auto n) { value = n == i ? v[n] : value; });
        S::store(to + i, accumulate ? value + S::load(to + i) : value);
    }
}

/* The largest of the numbers of all threads, in room for one of each warp. */
template <class F> CF_DEVICE float dft_largest_of_block(float v, smem<float> room) {
    for (int lanes = 16; lanes > 0; lanes /= 2)
        v = fmaxf(v, __shfl_xor_sync(~0u, v, lanes));
    if (int(threadIdx.x) % 32 == 0)
        room[threadIdx.x / 32] = v;
    __syncthreads();
    for (int i = 0; i < DftSignal<F>::WARPS; ++i)
        v = fmaxf(v, room[i]);
    __syncthreads();
    return v;
}

/* The part of a lane of the spectrum of w, at most `1` times a power of two. Returns what undoes all scales but those
 * of x. All threads call this. The tiles in shared memory are overwritten. */
template <class F>
CF_DEVICE float dft_signal_weights(DftLaneBins &w, const cf_dft_taps &taps, long long group, const DftMiddle<F> &middle,
                                   smem<uint4> lines, smem<uint4> matrices, smem<float> largest_of_warps) {
    typedef DftSignal<F> D;
    typedef DftNumbers<fp16> N;
    const int warp = int(threadIdx.x) / 32;
    const auto tap = [&](int k) {
        return k < 0 || k >= F::KERNEL_X
                   ? 0.0f
                   : F::Weights::load(static_cast<const typename F::Weights::bits *>(taps.memory) +
                                      group * taps.group_stride +
                                      (F::FLIP ? F::KERNEL_X - 1 - k : k) * taps.column_stride);
    };
    float largest = 0;
    for (int k = int(threadIdx.x); k < F::KERNEL_X; k += D::THREADS)
        largest = fmaxf(largest, fabsf(tap(k)));
    const DftScale scale(dft_largest_of_block<F>(largest, largest_of_warps));
    smem<unsigned> elements = smem_cast<unsigned>(lines + D::LINE);
    for (int i = int(threadIdx.x); i < D::H; i += D::THREADS) {
        const int k = 2 * i - F::SHIFT;
        elements[i] = N::word(scale.up * tap(k), scale.up * tap(k + 1));
    }
    __syncthreads();
    if (warp < 4) {
        DftColumns<F> columns;
        columns.read(warp, [&](int element, auto more) { return lines[D::LINE + element / 8 + more / 8]; });
        columns.template transform<N, 1>(lines, warp, matrices, 1.0f);
    }
    __syncthreads();
    middle.forward(w, lines);
    const DftScale bins(dft_largest_of_block<F>(w.largest(), largest_of_warps));
    w.multiply(32.0f / float(D::H) * bins.up); /* products are then at most 256, and what step 5 leaves 4,096 */
    return scale.down * bins.down * (1.0f / 32.0f);
}

/* LINES tiles in shared memory. Their elements are in registers before. */
template <class F> struct DftTiles {
    typedef DftSignal<F> D;
    typedef typename F::Storage::bits bits;
    typedef DftNumbers<typename F::Storage> N;
    DftColumns<F> columns[D::READS];
    smem<uint4> lines, matrices, twiddles;
    smem<unsigned> largest; /* [buffer][line][task] */

    CF_DEVICE explicit DftTiles(smem<uint4> memory)
        : lines(memory), matrices(memory + F::LINES * D::LINE), twiddles(matrices + D::S.matrices),
          largest(smem_cast<unsigned>(memory + D::S.units)) {}
    CF_DEVICE smem<float> room() const { return smem_cast<float>(largest + 8 * F::LINES); }

    /* tile_of(line): where a tile is. */
    template <class TILE> CF_DEVICE void read(const TILE &tile_of) {
        unroll<0, D::READS>([&](auto i) {
            const int task = int(threadIdx.x) / 32 * D::READS + i;
            const DftTile tile = tile_of(task / 4);
            columns[i].read(task % 4, [&](int element, auto more) {
                return tile.template eight<F::GRANULE, decltype(more)::value>(element);
            });
        });
    }
    CF_DEVICE DftScale scale_of(int line, int buffer) const {
        unsigned v = 0;
        unroll<0, 4>([&](auto i) {
            const unsigned other = largest[(buffer * F::LINES + line) * 4 + i];
            v = other > v ? other : v;
        });
        return DftScale(float(N::pair(v).x));
    }
    /* Step 1. Before it all warps have passed step 6 of the last tiles, and after it all words are there. */
    CF_DEVICE void first_step(int buffer) {
        const int first = int(threadIdx.x) / 32 * D::READS;
        unroll<0, D::READS>([&](auto i) {
            const unsigned v = columns[i].largest();
            if (int(threadIdx.x) % 32 == 0)
                largest[buffer * 4 * F::LINES + first + i] = v;
        });
        __syncthreads();
        constexpr int PARTS = D::E::SPLIT_MATRIX ? 2 : 1;
        unroll<0, D::READS>([&](auto i) {
            const int line = (first + i) / 4;
            columns[i].template transform<N, PARTS>(lines + line * D::LINE, (first + i) % 4,
                                                    matrices + (PARTS - 1) * 2 * D::MATRIX, scale_of(line, buffer).up);
        });
        __syncthreads();
    }
};

/* A slice of the tiles of a channel. A block has several items, for which matrices and twiddles stay. */
struct DftItem {
    long long group;
    int slice;
    CF_DEVICE DftItem(const cf_dft_call &call, long long item)
        : group(item % call.groups), slice(int(item / call.groups)) {}
};

/* y from x, or gx from gy. */
template <class F> CF_DEVICE void dft_signals(const cf_dft_call &call) {
    typedef DftSignal<F> D;
    typedef typename F::Storage::bits bits;
    const int warp = int(threadIdx.x) / 32;
    DftTiles<F> t(cf_dynamic_shared<uint4>());
    dft_outer_matrices<F>(t.matrices);
    const DftMiddle<F> middle(warp, t.twiddles);
    const int tiles = int(call.samples) * F::TILES, step = int(call.slices) * F::LINES;
#pragma unroll 1
    for (long long number = blockIdx.x; number < call.groups * call.slices; number += gridDim.x) {
        const DftItem item(call, number);
        DftLaneBins w;
        __syncthreads();
        const float factor = dft_signal_weights<F>(w, call.w, item.group, middle, t.lines, t.matrices, t.room());
        const float bias = call.bias ? float(bias_at<F>(call.bias, item.group)) : 0.0f;
        const bits *const x = static_cast<const bits *>(call.x.memory) + item.group * call.x.group_stride;
        bits *const y = static_cast<bits *>(const_cast<void *>(call.y.memory)) + item.group * call.y.group_stride;
        const auto read = [&](int first) {
            t.read([&](int line) {
                const int tile = first + line, at = tile % F::TILES * F::VALID + F::FIRST;
                return DftTile{x + tile / F::TILES * call.x.sample_stride + at, at,
                               unsigned(tile < tiles ? F::X_COUNT : 0)};
            });
        };
        int first = item.slice * F::LINES;
        read(first);
#pragma unroll 1
        for (int buffer = 0; first < tiles; first += step, buffer ^= 1) {
            t.first_step(buffer);
#pragma unroll 1
            for (int line = 0; line < F::LINES; ++line) {
                DftLaneBins bins;
                middle.forward(bins, t.lines + line * D::LINE);
                bins.correlate(w);
                middle.backward(t.lines + line * D::LINE, bins);
            }
            read(first + step);
            __syncthreads();
#pragma unroll 1
            for (int i = 0; i < D::WRITES; ++i) {
                const int task = warp * D::WRITES + i, line = task / 8, tile = first + line;
                if (tile >= tiles)
                    break;
                const float scale = factor * t.scale_of(line, buffer).down;
                const int begin = tile % F::TILES * F::VALID, left = cf_min_of(F::VALID, F::Y_COUNT - begin);
                bits *const signal = y + tile / F::TILES * call.y.sample_stride + begin;
                dft_last_step<F>(t.lines + line * D::LINE, task % 8, t.matrices + D::MATRIX,
                                 [&](int element, auto more, const float(&sum)[8]) {
                                     float v[8];
                                     unroll<0, 8>([&](auto n) { v[n] = scale * sum[n] + bias; });
                                     if (element + more < left)
                                         dft_put_elements<F>(signal + element + more, left - element - more,
                                                             call.accumulate != 0, v);
                                 });
            }
        }
    }
}

/* gw: tiles of x and gy in turn. The products of their spectra are summed in FP32 registers over all tiles of an item,
 * and one inverse transform gives the taps. If there are several slices, another kernel (dft_add) adds them. */
template <class F> CF_DEVICE void dft_signals_gradient(const cf_dft_call &call) {
    typedef DftSignal<F> D;
    typedef typename F::Storage::bits bits;
    const int warp = int(threadIdx.x) / 32;
    constexpr int PAIRS = F::LINES / 2;
    DftTiles<F> t(cf_dynamic_shared<uint4>());
    dft_outer_matrices<F>(t.matrices);
    const DftMiddle<F> middle(warp, t.twiddles);
    const int tiles = int(call.samples) * F::TILES, step = int(call.slices) * PAIRS;
#pragma unroll 1
    for (long long number = blockIdx.x; number < call.groups * call.slices; number += gridDim.x) {
        const DftItem item(call, number);
        const bits *const x = static_cast<const bits *>(call.x.memory) + item.group * call.x.group_stride,
                          *const gy = static_cast<const bits *>(call.y.memory) + item.group * call.y.group_stride;
        const auto read = [&](int first) {
            t.read([&](int line) {
                const int tile = first + line / 2, begin = tile % F::TILES * F::VALID;
                const long long sample = tile / F::TILES;
                const bool of_x = line % 2 == 0;
                const bits *const from =
                    of_x ? x + sample * call.x.sample_stride + F::FIRST : gy + sample * call.y.sample_stride;
                const int count = of_x ? F::X_COUNT : cf_min_of(F::VALID, F::Y_COUNT - begin);
                return DftTile{from + begin, of_x ? begin + F::FIRST : 0, unsigned(tile < tiles ? count : 0)};
            });
        };
        DftLaneBins sums = {};
        int first = item.slice * PAIRS;
        read(first);
#pragma unroll 1
        for (int buffer = 0; first < tiles; first += step, buffer ^= 1) {
            t.first_step(buffer);
#pragma unroll 1
            for (int pair = 0; pair < PAIRS; ++pair) {
                DftLaneBins bins, other;
                middle.forward(bins, t.lines + 2 * pair * D::LINE);
                middle.forward(other, t.lines + (2 * pair + 1) * D::LINE);
                bins.correlate(other);
                sums.add(bins, t.scale_of(2 * pair, buffer).down * t.scale_of(2 * pair + 1, buffer).down);
            }
            read(first + step);
        }
        const DftScale scale(dft_largest_of_block<F>(sums.largest(), t.room()));
        sums.multiply(scale.up); /* what step 5 leaves is then at most 725 */
        middle.backward(t.lines, sums);
        __syncthreads();
        const float factor = scale.down / float(D::H);
        if (warp < 8)
            dft_last_step<F>(t.lines, warp, t.matrices + D::MATRIX, [&](int element, auto more, const float(&sum)[8]) {
                unroll<0, 8>([&](auto n) {
                    const int k = element + more + n - F::SHIFT;
                    if (k >= 0 && k < F::KERNEL_X)
                        dft_put_tap<F>(call, item.group, item.slice, 0, k, factor * sum[n]);
                });
            });
        __syncthreads();
    }
}
