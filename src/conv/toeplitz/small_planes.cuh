/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution of small planes on tensor cores: y from x, or gx from gy. Planes have at most 16 rows and 16
 * columns. The samples of the batch are the columns of a product.
 *
 *     y[i][j] = sum over r, s of w[r][s] x[STRIDE_Y i + r - ROW_PAD][STRIDE_X j + s - COLUMN_PAD]
 *
 * For gx with a stride, UP - 1 zeros follow each element of x (signals.cuh).
 *
 * A plane is cut into blocks of 16 positions: one row of 16 columns, or without stride also two rows (DOWN) of eight.
 * Block q of y and block p of x meet in a matrix A of taps that depends on delta = UP_Y p - STRIDE_Y q only. A product
 * (m16n8k16) multiplies A by block p of eight samples: m = positions of y, k = positions of x, n = samples. A warp has
 * one channel of eight samples. It keeps all blocks of x in registers, and reads each A once for BLOCKS blocks of y.
 *
 * Rows of A are positions 0, 2, ..., 14, 1, 3, ..., 15, so that a lane has two neighbours of a row of y, which are one
 * word. A row of taps is stored as words of two taps, one beginning at each tap: a lane reads its words of A directly.
 *
 * A block loads SAMPLES samples of CHANNELS channels, computes and stores them. With channels first, these are
 * contiguous in each sample. With channels last, they are transposed on the way to and from shared memory.
 *
 * The host prints F (small_planes.c) with: Storage, Weights, Bias (types of elements), X and Y (planes with ROWS,
 * COLUMNS and GRANULE, the elements that one copy moves), KERNEL_Y, KERNEL_X, STRIDE_Y, STRIDE_X, UP_Y, UP_X, ROW_PAD,
 * COLUMN_PAD, CHANNELS, SAMPLES, EACH (channels of a warp), WARPS (that share them), BLOCKS, LAST, FLIP, SCALED (as
 * signals.cuh).
 */
#pragma once

#include "conv/toeplitz/signals.cuh"
#include "conv/toeplitz/small_geometry.h"

/* Planes of one side in shared memory. Sample s of channel c begins at word s PITCH, element c PLANE. Rows are ROW
 * elements apart. PITCH is 4 modulo 8, so that eight samples have no bank conflicts. */
template <class F, class S, bool PADDED> struct SmallSide {
    static constexpr cf_toeplitz_small T = cf_toeplitz_small_of(S::ROWS, S::COLUMNS, F::CHANNELS, PADDED);
    static constexpr int ROW = T.row, PLANE = T.plane, PITCH = T.pitch;
    static constexpr bool ALIGNED = ROW % 2 == 0;
};
/* Planes of y stand in the place of those of x, which are in registers by then. */
template <class F, class S, class OTHER> struct SmallPlace {
    typedef SmallSide<F, S, true> Own;
    typedef SmallSide<F, OTHER, true> Other;
    static constexpr int ROW = Own::ROW, PLANE = cf_max_of(Own::PLANE, Other::PLANE),
                         PITCH = cf_max_of(Own::PITCH, Other::PITCH);
    static constexpr bool ALIGNED = true;
};
template <class F, bool LAST = F::LAST> struct SmallSides {
    typedef SmallSide<F, typename F::X, false> X;
    typedef SmallSide<F, typename F::Y, true> Y;
    static constexpr int TILES = F::SAMPLES * (X::PITCH + Y::PITCH), Y_AT = F::SAMPLES * X::PITCH;
};
template <class F> struct SmallSides<F, true> {
    typedef SmallPlace<F, typename F::X, typename F::Y> X;
    typedef SmallPlace<F, typename F::Y, typename F::X> Y;
    static constexpr int TILES = F::SAMPLES * X::PITCH, Y_AT = 0;
};

template <class F> struct SmallPlanes {
    typedef typename SmallSides<F>::X X;
    typedef typename SmallSides<F>::Y Y;
    static constexpr cf_toeplitz_bands T =
        cf_toeplitz_bands_of(F::X::ROWS, F::X::COLUMNS, F::Y::ROWS, F::Y::COLUMNS, F::KERNEL_Y, F::ROW_PAD, F::STRIDE_Y,
                             F::UP_Y, F::STRIDE_X *F::STRIDE_Y *F::UP_X *F::UP_Y > 1);
    static constexpr int ACROSS = T.across, DOWN = T.down, OF_ROW = ACROSS / 2, X_BLOCKS = T.x_blocks,
                         Y_BLOCKS = T.y_blocks, FIRST = T.first, LAST = T.last, ROWS = T.rows,
                         PAIRS = (F::STRIDE_X + F::UP_X) * OF_ROW, /* of words of a row of taps */
        TAPS = 2 * ROWS * PAIRS;

    static constexpr CF_DEVICE int met(int q, int delta) { return cf_toeplitz_met(T, q, delta); }
    /* Whether one of BLOCKS blocks of y from `first` on meets a block of x with this difference. */
    static constexpr CF_DEVICE bool is_met(int first, int delta) {
        bool any = false;
        for (int q = first; q < first + F::BLOCKS && q < Y_BLOCKS; ++q)
            any = any || met(q, delta) >= 0;
        return any;
    }
};

/* Pairs of neighbouring elements at a fixed distance from element `at`. ALIGNED: all of them are words. Otherwise a
 * pair may begin in the middle of a word, and where it does depends on whether its distance is even or odd. */
template <bool ALIGNED> struct SmallPairs {
    smem<unsigned> word[2];
    int shift[2];
    CF_DEVICE SmallPairs(smem<unsigned> sample, int at) {
        for (int odd = 0; odd < (ALIGNED ? 1 : 2); ++odd) {
            word[odd] = sample + (unsigned(at + odd) / 2);
            shift[odd] = (at + odd) % 2 * 16;
        }
    }
    template <int DISTANCE> CF_DEVICE unsigned at() const {
        constexpr int ODD = ALIGNED ? 0 : DISTANCE % 2, PLACE = (DISTANCE - ODD) / 2;
        const unsigned low = word[ODD][PLACE];
        if (ALIGNED)
            return low;
        const unsigned high = word[ODD][PLACE + 1];
        return unsigned(((unsigned long long)high << 32 | low) >> shift[ODD]);
    }
};

/* The pieces of all samples are divided among threads: a thread has one piece of every SAMPLES-th sample, or several
 * pieces of all samples. */
template <int PIECES, int THREADS> struct SmallPieces {
    static constexpr int SAMPLES = PIECES < THREADS ? THREADS / PIECES : 1, ALONG = PIECES < THREADS ? PIECES : THREADS;
    /* Threads that are left over have no piece. */
    static CF_DEVICE int first() { return int(threadIdx.x) < SAMPLES * ALONG ? int(threadIdx.x) % ALONG : PIECES; }
    static CF_DEVICE int sample() { return int(threadIdx.x) / ALONG; }
};

/* Samples `sample`, sample + 1, ... of channels `group`, group + 1, ...: the first element, and how many there are. */
template <class F, int SAMPLES> struct SmallPart {
    unsigned short *first;
    int there, channels;
    CF_DEVICE SmallPart(const cf_toeplitz_side &s, long long samples, long long groups, long long sample,
                        long long group)
        : first(static_cast<unsigned short *>(const_cast<void *>(s.memory)) + sample * s.sample_stride +
                group * s.group_stride),
          there(int(samples - sample < SAMPLES ? samples - sample : SAMPLES)),
          channels(int(groups - group < F::CHANNELS ? groups - group : F::CHANNELS)) {}
};

/* Loads a part. Elements that do not exist are zeros.
 * With channels last, two neighbours of eight channels become eight words. */
template <class F, class S, class Side, int SAMPLES, int THREADS>
CF_DEVICE void load_eights(smem<unsigned> to, const cf_toeplitz_side &s, long long samples, long long groups,
                           long long sample, long long group) {
    const SmallPart<F, SAMPLES> part(s, samples, groups, sample, group);
    constexpr int EIGHTS = F::CHANNELS / 8, OF_ROW = (S::COLUMNS + 1) / 2, WORDS = S::ROWS * OF_ROW,
                  COUNT = SAMPLES * WORDS * EIGHTS, EACH = (COUNT + THREADS - 1) / THREADS, AHEAD = EACH < 4 ? EACH : 4;
    for (int begin = int(threadIdx.x); begin < COUNT; begin += AHEAD * THREADS) {
        uint4 read[AHEAD][2];
#pragma unroll
        for (int n = 0; n < AHEAD; ++n) {
            const int i = begin + n * THREADS, eight = i % EIGHTS, word = i / EIGHTS % WORDS, own = i / EIGHTS / WORDS,
                      row = word / OF_ROW, column = word % OF_ROW * 2;
            const unsigned short *const from =
                part.first + (own * s.sample_stride + 8 * eight + row * s.row_stride + column * s.column_stride);
            read[n][0] = read[n][1] = make_uint4(0, 0, 0, 0);
            if (i >= COUNT || own >= part.there || 8 * eight >= part.channels)
                continue;
            read[n][0] = __ldg(reinterpret_cast<const uint4 *>(from));
            if (S::COLUMNS % 2 == 0 || column + 1 < S::COLUMNS)
                read[n][1] = __ldg(reinterpret_cast<const uint4 *>(from + s.column_stride));
        }
#pragma unroll
        for (int n = 0; n < AHEAD; ++n) {
            const int i = begin + n * THREADS, eight = i % EIGHTS, word = i / EIGHTS % WORDS, own = i / EIGHTS / WORDS;
            if (i >= COUNT)
                continue;
            const unsigned a[4] = {read[n][0].x, read[n][0].y, read[n][0].z, read[n][0].w},
                           b[4] = {read[n][1].x, read[n][1].y, read[n][1].z, read[n][1].w};
            smem<unsigned> at = to + (own * Side::PITCH + 8 * eight * (Side::PLANE / 2) +
                                      word / OF_ROW * (Side::ROW / 2) + word % OF_ROW);
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                at[2 * c * (Side::PLANE / 2)] = low_halves(a[c], b[c]);
                at[(2 * c + 1) * (Side::PLANE / 2)] = high_halves(a[c], b[c]);
            }
        }
    }
}

/* For load_granule(): a tile of 16-bit numbers. */
template <int COPIED> struct SmallCopy {
    static constexpr int NUMBERS = 8, ROWS = 1, UNITS = 1, STEP = 0, GRANULE = COPIED, MODE = 0;
};

/* Loads one piece of EACH elements of every sample of this thread, from the first one on. there: elements of a sample
 * from this piece on. Zeros stand for what does not exist. */
template <class Pieces, int GRANULE, int EACH, int SAMPLES, int PITCH>
CF_DEVICE void load_piece(smem<unsigned> at, const unsigned short *from, const cf_toeplitz_side &s, int samples,
                          int there) {
    there = there > 0 ? there : 0;
    const bool whole = GRANULE > 1 && (there >= EACH || there == 0);
    for (int own = Pieces::sample(); own < SAMPLES; own += Pieces::SAMPLES) {
        if (whole) {
            const bool inside = there > 0 && own < samples;
            copy_async<EACH / 2>(smem_cast<float>(at),
                                 inside ? reinterpret_cast<const float *>(from) : static_cast<const float *>(s.memory),
                                 inside);
        } else {
            for (int word = 0; word < EACH / 2; ++word)
                load_granule<SmallCopy<1>>(at + word, from, s.memory, own < samples, 2 * word, there);
        }
        from += Pieces::SAMPLES * s.sample_stride;
        at += Pieces::SAMPLES * PITCH;
    }
}

/* The same for both layouts. With channels first, copies are asynchronous. */
template <class F, class S, class Side, int SAMPLES, int THREADS>
CF_DEVICE void load_small(smem<unsigned> to, const cf_toeplitz_side &s, long long samples, long long groups,
                          long long sample, long long group) {
    const SmallPart<F, SAMPLES> part(s, samples, groups, sample, group);
    if constexpr (F::LAST) {
        load_eights<F, S, Side, SAMPLES, THREADS>(to, s, samples, groups, sample, group);
        return;
    }
    constexpr int EACH = S::GRANULE > 1 ? S::GRANULE : 2, CHUNK = F::CHANNELS * Side::PLANE,
                  PIECES = (CHUNK + EACH - 1) / EACH;
    typedef SmallPieces<PIECES, THREADS> Pieces;
    /* Unaligned rows read one word behind the last element, which counts for nothing. */
    if (!Side::ALIGNED && PIECES * EACH / 2 == (CHUNK + 1) / 2)
        for (int own = int(threadIdx.x); own < SAMPLES; own += THREADS)
            to[own * Side::PITCH + (CHUNK + 1) / 2] = 0;
    for (int piece = Pieces::first(); piece < PIECES; piece += Pieces::ALONG) {
        const int element = piece * EACH;
        load_piece<Pieces, S::GRANULE, EACH, SAMPLES, Side::PITCH>(
            to + (Pieces::sample() * Side::PITCH + element / 2),
            part.first + (Pieces::sample() * s.sample_stride + element), s, part.there,
            part.channels * Side::PLANE - element);
    }
}

/* Words of y from shared memory to one piece of EACH elements. */
template <int EACH> CF_DEVICE void store_words(unsigned short *to, const unsigned (&word)[EACH / 2]) {
    if constexpr (EACH == 8)
        store_unit(to, word);
    else if constexpr (EACH == 4)
        *reinterpret_cast<float2 *>(to) = make_float2(__uint_as_float(word[0]), __uint_as_float(word[1]));
    else
        *reinterpret_cast<unsigned *>(to) = word[0];
}

/* Stores what load_small() would load. In shared memory, rows of y are padded to whole words. */
template <class F, int SAMPLES, int THREADS>
CF_DEVICE void store_eights(const cf_toeplitz_call &call, smem<unsigned> from, long long sample, long long group) {
    typedef typename F::Y S;
    typedef typename SmallPlanes<F>::Y Side;
    const cf_toeplitz_side &s = call.y;
    const SmallPart<F, SAMPLES> part(s, call.samples, call.groups, sample, group);
    constexpr int OF_ROW = Side::ROW / 2;
    constexpr int EIGHTS = F::CHANNELS / 8, WORDS = S::ROWS * OF_ROW;
#pragma unroll 2
    for (int i = int(threadIdx.x); i < part.there * WORDS * EIGHTS; i += THREADS) {
        const int eight = i % EIGHTS, word = i / EIGHTS % WORDS, own = i / EIGHTS / WORDS, row = word / OF_ROW,
                  column = word % OF_ROW * 2;
        if (8 * eight >= part.channels)
            continue;
        smem<unsigned> at = from + (own * Side::PITCH + 8 * eight * (Side::PLANE / 2) + word);
        unsigned low[4], high[4];
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const unsigned a = at[2 * c * (Side::PLANE / 2)], b = at[(2 * c + 1) * (Side::PLANE / 2)];
            low[c] = low_halves(a, b);
            high[c] = high_halves(a, b);
        }
        unsigned short *const to =
            part.first + (own * s.sample_stride + 8 * eight + row * s.row_stride + column * s.column_stride);
        store_words<8>(to, low);
        if (S::COLUMNS % 2 == 0 || column + 1 < S::COLUMNS)
            store_words<8>(to + s.column_stride, high);
    }
}
template <class F, int SAMPLES, int THREADS>
CF_DEVICE void store_small(const cf_toeplitz_call &call, smem<unsigned> from, long long sample, long long group) {
    typedef typename F::Y S;
    typedef typename SmallPlanes<F>::Y Side;
    const cf_toeplitz_side &s = call.y;
    const SmallPart<F, SAMPLES> part(s, call.samples, call.groups, sample, group);
    if constexpr (F::LAST) {
        store_eights<F, SAMPLES, THREADS>(call, from, sample, group);
        return;
    }
    constexpr int EACH = S::GRANULE > 1 ? S::GRANULE : 2, PLANE = S::ROWS * S::COLUMNS, CHUNK = F::CHANNELS * PLANE,
                  PIECES = (CHUNK + EACH - 1) / EACH;
    typedef SmallPieces<PIECES, THREADS> Pieces;
    for (int piece = Pieces::first(); piece < PIECES; piece += Pieces::ALONG) {
        const int element = piece * EACH;
        int place[EACH]; /* of each element, in halves of words */
#pragma unroll
        for (int n = 0; n < EACH; ++n) {
            const int e = element + n < CHUNK ? element + n : CHUNK - 1;
            place[n] = e / S::COLUMNS * Side::ROW + e % S::COLUMNS;
        }
        unsigned short *to = part.first + (Pieces::sample() * s.sample_stride + element);
        smem<unsigned> at = from + Pieces::sample() * Side::PITCH;
        for (int own = Pieces::sample(); own < part.there; own += Pieces::SAMPLES) {
            unsigned word[EACH / 2];
#pragma unroll
            for (int n = 0; n < EACH / 2; ++n)
                if (S::COLUMNS % 2 == 0) {
                    word[n] = at[element / 2 + n];
                } else {
                    const unsigned a = at[place[2 * n] / 2], b = at[place[2 * n + 1] / 2];
                    word[n] =
                        (place[2 * n] % 2 ? a >> 16 : a & 0xffffu) | (place[2 * n + 1] % 2 ? b & 0xffff0000u : b << 16);
                }
            if (S::GRANULE > 1 && element + EACH <= part.channels * PLANE) {
                store_words<EACH>(to, word);
            } else {
#pragma unroll
                for (int n = 0; n < EACH; ++n)
                    if (element + n < part.channels * PLANE)
                        to[n] = (unsigned short)(word[n / 2] >> n % 2 * 16);
            }
            to += Pieces::SAMPLES * s.sample_stride;
            at += Pieces::SAMPLES * Side::PITCH;
        }
    }
}

/* The taps of a channel as words, by its warps: [row][PAIRS][2]. Row j is kernel row j + DOWN FIRST + ROW_PAD - DOWN +
 * 1. With tau = UP_X column of x - STRIDE_X column of y, word 0 of pair i has the taps of tau = 2 i - STRIDE_X (ACROSS
 * - 2) and of tau + UP_X. Word 1 has those of tau - STRIDE_X and of tau - STRIDE_X + UP_X. */
template <class F>
CF_DEVICE void load_taps(smem<unsigned> to, const cf_toeplitz_taps &w, long long group, bool live, float up) {
    typedef SmallPlanes<F> G;
    constexpr int OF_TAPS = 2 * G::PAIRS, COUNT = G::TAPS, THREADS = 32 * F::WARPS;
    /* Without stride another lane has the next tap: in word 0 of this pair, or in word 1 of the next pair. */
    constexpr bool SHUFFLED = F::STRIDE_X * F::UP_X == 1;
    const int lane = int(threadIdx.x) % 32, own = lane % OF_TAPS, other = own % 2 ? own - 1 : own + 3;
#pragma unroll 4
    for (int i = int(threadIdx.x) % THREADS; i - (SHUFFLED ? lane : 0) < COUNT; i += THREADS) {
        const int row = i / OF_TAPS + G::DOWN * G::FIRST + F::ROW_PAD - G::DOWN + 1, word = i % OF_TAPS,
                  s = word / 2 * 2 - F::STRIDE_X * (G::ACROSS - 2 + word % 2) + F::COLUMN_PAD;
        const bool inside = live && i < COUNT && unsigned(row) < unsigned(F::KERNEL_Y);
        const float tap = inside ? tap_at<F>(w, group, row, s) * up : 0.0f;
        float next = 0;
        if constexpr (SHUFFLED) {
            next = __shfl_sync(~0u, tap, lane - own + (other < OF_TAPS ? other : own));
            next = other < OF_TAPS ? next : 0.0f;
        } else if (inside) {
            next = tap_at<F>(w, group, row, s + F::UP_X) * up;
        }
        if (i < COUNT)
            to[i] = F::Storage::word({tap, next});
    }
}

/* The blocks of x of this lane's sample of a group: two words each. */
template <class F>
CF_DEVICE void read_blocks(unsigned (&x)[SmallPlanes<F>::X_BLOCKS][2], smem<unsigned> samples, int channel) {
    typedef SmallPlanes<F> G;
    const int lane = int(threadIdx.x) % 32;
    smem<unsigned> own = samples + lane / 4 * G::X::PITCH;
    unroll<0, 2>([&](auto word) {
        constexpr int FIRST = G::DOWN == 1 ? 8 * decltype(word)::value : 0,
                      BELOW = G::DOWN == 1 ? 0 : decltype(word)::value;
        const int column = FIRST + 2 * (lane % 4), inside = F::X::COLUMNS - column;
        const unsigned mask = inside >= 2 ? ~0u : inside == 1 ? 0xffffu : 0u;
        /* Lanes without an element read the same word as others. */
        const SmallPairs<G::X::ALIGNED> pairs(own, channel * G::X::PLANE +
                                                       (inside > 0 ? column : (F::X::COLUMNS - 1) / 2 * 2));
        unroll<0, G::X_BLOCKS>([&](auto p) {
            constexpr int ROW = G::DOWN * decltype(p)::value + BELOW;
            x[p][word] = 0;
            if constexpr (ROW < F::X::ROWS)
                x[p][word] = FIRST + 8 <= F::X::COLUMNS ? pairs.template at<ROW * G::X::ROW>()
                                                        : pairs.template at<ROW * G::X::ROW>() & mask;
        });
    });
}

/* Adds BLOCKS blocks of y from Y on to the old contents, element by element. */
template <class F, int Y>
CF_DEVICE void add_blocks(const cf_toeplitz_call &call, const float (&sum)[F::BLOCKS][4], long long sample,
                          long long group) {
    typedef SmallPlanes<F> G;
    const int lane = int(threadIdx.x) % 32;
    unroll<0, F::BLOCKS>([&](auto b) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const long long own = sample + 2 * (lane % 4) + i % 2;
            const Corner at = {G::DOWN * (Y + b) + lane / 4 / G::OF_ROW, 2 * (lane / 4 % G::OF_ROW) + i / 2};
            if (own >= call.samples || group >= call.groups || !is_inside(call.y, at.row, at.column))
                continue;
            auto *const p = element_of<F>(call.y, own, group, at);
            F::Storage::store(p, sum[b][i] + F::Storage::number(*p));
        }
    });
}

/* BLOCKS blocks of y from Y on, of eight samples of a channel. taps: those of the channel. */
template <class F, int Y>
CF_DEVICE void convolve_blocks(const cf_toeplitz_call &call, const unsigned (&x)[SmallPlanes<F>::X_BLOCKS][2],
                               smem<unsigned> taps, smem<unsigned> out, long long sample, long long group, float bias,
                               float down) {
    typedef SmallPlanes<F> G;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4, row = g / G::OF_ROW, word = g % G::OF_ROW;
    smem<float2> own =
        smem_cast<float2>(taps) + ((G::DOWN - 1 - row) * G::PAIRS + F::UP_X * t + F::STRIDE_X * (G::OF_ROW - 1 - word));
    float sum[F::BLOCKS][4] = {};
    unroll<G::FIRST, G::LAST + 1>([&](auto delta) {
        constexpr int D = decltype(delta)::value;
        if constexpr (G::is_met(Y, D)) {
            const int at = G::DOWN * (D - G::FIRST) * G::PAIRS;
            const float2 first = own[at], second = own[at + (G::DOWN == 1 ? 4 * F::UP_X : G::PAIRS)];
            const unsigned a[4] = {__float_as_uint(first.x), __float_as_uint(first.y), __float_as_uint(second.x),
                                   __float_as_uint(second.y)};
            unroll<0, F::BLOCKS>([&](auto b) {
                constexpr int P = G::met(Y + decltype(b)::value, D);
                if constexpr (P >= 0 && Y + decltype(b)::value < G::Y_BLOCKS)
                    multiply_tile<typename F::Storage>(sum[b], a, x[P][0], x[P][1]);
            });
        }
    });
    unroll<0, F::BLOCKS>([&](auto b) {
        unroll<0, 4>([&](auto i) { sum[b][i] = F::SCALED ? sum[b][i] * down + bias : sum[b][i] + bias; });
    });
    if (call.accumulate) {
        add_blocks<F, Y>(call, sum, sample, group);
        return;
    }
    smem<unsigned> to = out + (2 * t * G::Y::PITCH + row * (G::Y::ROW / 2) + word);
    unroll<0, F::BLOCKS>([&](auto b) {
        const int above = G::DOWN * (Y + b);
        if (above + row < F::Y::ROWS && 2 * word < F::Y::COLUMNS) {
            to[above * (G::Y::ROW / 2)] = F::Storage::word({sum[b][0], sum[b][2]});
            to[above * (G::Y::ROW / 2) + G::Y::PITCH] = F::Storage::word({sum[b][1], sum[b][3]});
        }
    });
}

template <class F> CF_DEVICE void small_planes(const cf_toeplitz_call &call) {
    typedef SmallPlanes<F> G;
    typedef SmallSides<F> Sides;
    constexpr int THREADS = 32 * F::CHANNELS / F::EACH * F::WARPS;
    const int warp = int(threadIdx.x) / 32, begin = warp / F::WARPS * F::EACH, share = warp % F::WARPS;
    const long long first = (long long)blockIdx.x * F::CHANNELS, sample = (long long)blockIdx.y * F::SAMPLES;
    smem<unsigned> x = cf_dynamic_shared<unsigned>(), y = x + Sides::Y_AT, taps = x + Sides::TILES;
    load_small<F, typename F::X, typename G::X, F::SAMPLES, THREADS>(x, call.x, call.samples, call.groups, sample,
                                                                     first);
    tiles_commit();
    for (int channel = begin; channel < begin + F::EACH; ++channel) {
        const long long group = first + channel;
        const bool live = group < call.groups;
        load_taps<F>(taps + channel * G::TAPS, call.w, group, live, WeightScale<F>(call.w, live ? group : 0).up);
    }
    tiles_wait<0>();
    __syncthreads();
#pragma unroll 1
    for (int i = share; i < F::EACH * F::SAMPLES / 8; i += F::WARPS) {
        const int channel = begin + i / (F::SAMPLES / 8), eight = i % (F::SAMPLES / 8);
        const long long group = first + channel;
        const bool live = group < call.groups;
        const float bias = live && call.bias ? float(bias_at<F>(call.bias, group)) : 0.0f,
                    down = WeightScale<F>(call.w, live ? group : 0).down;
        unsigned blocks[G::X_BLOCKS][2];
        read_blocks<F>(blocks, x + 8 * eight * G::X::PITCH, channel);
        __syncwarp();
        unroll<0, (G::Y_BLOCKS + F::BLOCKS - 1) / F::BLOCKS>([&](auto part) {
            convolve_blocks<F, decltype(part)::value * F::BLOCKS>(
                call, blocks, taps + channel * G::TAPS, y + (8 * eight * G::Y::PITCH + channel * (G::Y::PLANE / 2)),
                sample + 8 * eight, group, bias, down);
        });
    }
    if (call.accumulate)
        return;
    __syncthreads();
    store_small<F, F::SAMPLES, THREADS>(call, y, sample, first);
}
