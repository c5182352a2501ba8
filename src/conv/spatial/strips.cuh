/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution of short kernels by its definition, on FP32 units: y from x, or gx from gy. A reader begins here.
 *
 *     y[c][o] = sum over i, s of w[c][i][s] x[i][stride o + dilation s - pad]                   (geometry.h)
 *
 * A thread computes a strip: TY rows of TX outputs, of VECTOR neighbouring channels. It walks over the rows of inputs
 * that the strip reads. Of each it loads a window of columns into registers, and multiplies it by the taps of every
 * kernel row that meets it. So an input is loaded about once per strip and used by TX x TY outputs.
 *
 *     channels_last.cuh     neighbouring threads have neighbouring channels, and load from global memory
 *     channels_first.cuh    neighbouring threads have neighbouring strips of one channel, and load FP32 numbers from a
 *                           tile in shared memory
 *
 * Weights are in shared memory as FP32 numbers. In strips the order of additions depends on the layer only.
 *
 * The host prints F (config.c) with: Storage, Result (of what is read and written), Weights, Bias (types of elements),
 * Y and X (cf_spatial_axis of rows and columns; X.taps is the number of taps that one window serves, CHUNKS such
 * windows make a kernel row), KERNEL_Z, KERNEL_X, DEPTH (cf_spatial_axis of the depth), MODE (of padding), OWN and
 * SUMMED (channels of a group, call.h), VECTOR, LANES (threads with neighbouring channels), STRIPS (of a block at a
 * time), ACROSS, DOWN and PLANES (channels first: strips of a tile, and samples), SKEWED (cf_spatial_tile), THREADS,
 * UNROLLED (the loop over rows of inputs is unrolled), COLUMN and COLUMN_Y (channels last: strides of columns of what
 * is read and written).
 */
#pragma once

#include "conv/spatial/call.h"
#include "conv/spatial/geometry.h"
#include "fbfft/common/padding.cuh"
#include "fbfft/common/storage.cuh"

/* ------------------------------------------------------------------------------------------- elements and positions */

/* VECTOR neighbouring channels of one element, as they are stored. */
template <class S, int VECTOR> struct Element {
    typename S::bits bits;
    CF_DEVICE void load(const typename S::bits *p, bool inside) { bits = inside ? __ldg(p) : typename S::bits(0); }
    CF_DEVICE void get(float (&to)[VECTOR]) const {
        if constexpr (S::PLAIN)
            to[0] = float(bits);
        else
            to[0] = float(S::number(bits));
    }
};
template <class S> struct Element<S, 2> {
    unsigned bits;
    CF_DEVICE void load(const typename S::bits *p, bool inside) {
        bits = inside ? __ldg(reinterpret_cast<const unsigned *>(p)) : 0u;
    }
    CF_DEVICE void get(float (&to)[2]) const {
        const cplx v = S::pair(bits);
        to[0] = float(v.x);
        to[1] = float(v.y);
    }
};
template <> struct Element<plain, 2> {
    float2 bits;
    CF_DEVICE void load(const plain::bits *p, bool inside) {
        bits = inside ? __ldg(reinterpret_cast<const float2 *>(p)) : make_float2(0, 0);
    }
    CF_DEVICE void get(float (&to)[2]) const {
        to[0] = bits.x;
        to[1] = bits.y;
    }
};
template <class S, int VECTOR> CF_DEVICE void store_vector(typename S::bits *p, const float (&v)[VECTOR]) {
    if constexpr (VECTOR == 1)
        S::store(p, v[0]);
    else if constexpr (S::PLAIN)
        *reinterpret_cast<float2 *>(p) = make_float2(v[0], v[1]);
    else
        *reinterpret_cast<unsigned *>(p) = S::word({v[0], v[1]});
}
/* An element that this thread will overwrite. */
template <class S> CF_DEVICE float old_number(const typename S::bits *p) {
    if constexpr (S::PLAIN)
        return __ldcg(p);
    else
        return float(S::number(__ldcg(p)));
}

/* The index of the plane that output plane `out` reads by tap `tap`; -1: none. */
template <class F> CF_DEVICE int plane_index(int out, int tap, int size) {
    constexpr cf_spatial_axis Z = F::DEPTH;
    const int at =
        out * (Z.transposed ? 1 : Z.stride) + (Z.transposed ? Z.pad - Z.dilation * tap : Z.dilation * tap - Z.pad);
    if (!Z.transposed)
        return padded_index<F::MODE>(at, size);
    return at < 0 || at % Z.stride != 0 || at / Z.stride >= size ? -1 : at / Z.stride;
}

/* What the kernels share. */
template <class F> struct Spatial {
    typedef typename F::Storage::bits bits;
    typedef typename F::Result::bits result;
    static constexpr cf_spatial_axis Y = F::Y, X = F::X;
    static constexpr int VECTOR = F::VECTOR, TX = X.outs, TY = Y.outs, WINDOW = cf_spatial_window(X),
                         TALL = cf_spatial_window(Y), CHUNKS = (F::KERNEL_X + X.taps - 1) / X.taps,
                         STEP = cf_spatial_step(X),
                         LOWEST = cf_spatial_first(X) - (X.transposed ? (CHUNKS - 1) * STEP : 0),
                         KERNEL = CHUNKS * X.taps, TAPS = F::KERNEL_Z * Y.taps * KERNEL,
                         PLANE = Y.taps * KERNEL * F::LANES * VECTOR,
                         WEIGHTS = (F::SUMMED * F::KERNEL_Z * PLANE + 3) / 4 * 4;
    /* Where the window of a chunk begins, counted from the lowest input. */
    static constexpr CF_DEVICE int offset(int chunk) { return (X.transposed ? CHUNKS - 1 - chunk : chunk) * STEP; }
};

/* A strip or a tile: the number of its first output is its position times the outputs of one. */
struct Position {
    int sample, at[3];
};
CF_DEVICE Position position_of(const cf_spatial_call &call, int item) {
    Position p;
    p.at[2] = item % call.across[2];
    item /= call.across[2];
    p.at[1] = item % call.across[1];
    item /= call.across[1];
    p.at[0] = item % call.across[0];
    p.sample = item / call.across[0];
    return p;
}

/* The strips of a block. They follow one another, so that it finds the rows between them in its L1 cache. */
struct Range {
    int begin, end;
};
CF_DEVICE Range range_of(const cf_spatial_call &call, int strips) {
    const int rounds = (call.items + strips - 1) / strips, each = (rounds + int(gridDim.y) - 1) / int(gridDim.y),
              begin = int(blockIdx.y) * each * strips, end = begin + each * strips;
    return {begin, end < call.items ? end : call.items};
}

/* The weights of LANES x VECTOR channels from `first` on: [summed channel][tap][lane][channel of the vector]. A warp
 * reads four taps of eight channels: neighbours in global memory, without many bank conflicts in shared memory. */
template <class F> CF_DEVICE void load_weights(smem<float> w, const cf_spatial_call &call, long long first) {
    typedef Spatial<F> G;
    constexpr int CHANNELS = F::LANES * F::VECTOR, ALL = F::SUMMED * G::TAPS, FOURS = (ALL + 3) / 4,
                  COUNT = (CHANNELS + 7) / 8 * FOURS * 32;
#pragma unroll 4
    for (int i = int(threadIdx.x); i < COUNT; i += int(blockDim.x)) {
        const int place = i / 32 / FOURS * 8 + i % 8, at = i / 32 % FOURS * 4 + i / 8 % 4, tap = at % G::TAPS,
                  summed = at / G::TAPS, s = tap % G::KERNEL, r = tap / G::KERNEL % G::Y.taps,
                  q = tap / G::KERNEL / G::Y.taps;
        const long long channel = first + place;
        float value = 0;
        if (place >= CHANNELS || at >= ALL)
            continue;
        if (channel < call.channels && s < F::KERNEL_X)
            value = float(F::Weights::load(static_cast<const typename F::Weights::bits *>(call.w.memory) +
                                           channel / F::OWN * call.w.group_stride +
                                           channel % F::OWN * call.w.own_stride + summed * call.w.summed_stride +
                                           q * call.w.stride[0] + r * call.w.stride[1] + s * call.w.stride[2]));
        w[at * CHANNELS + place] = value;
    }
}

/* A tap of this thread's channels. */
template <class F> CF_DEVICE void load_tap(float (&tap)[F::VECTOR], smem<const float> w) {
    if constexpr (F::VECTOR == 2) {
        const float2 pair = smem_cast<const float2>(w)[0];
        tap[0] = pair.x;
        tap[1] = pair.y;
    } else {
        tap[0] = w[0];
    }
}

/* Channels last: stores outputs, or with LOAD adds the old contents to them. */
template <class F, bool LOAD>
CF_DEVICE void move_outputs(typename F::Result::bits *row, float (&sum)[F::X.outs][F::VECTOR], int columns) {
    typedef typename F::Result Result;
#pragma unroll
    for (int j = 0; j < F::X.outs; ++j) {
        if (j >= columns)
            continue;
        if constexpr (LOAD) {
#pragma unroll
            for (int v = 0; v < F::VECTOR; ++v)
                sum[j][v] += old_number<Result>(row + j * int(F::COLUMN_Y) + v);
        } else {
            store_vector<Result, F::VECTOR>(row + j * int(F::COLUMN_Y), sum[j]);
        }
    }
}

/* ------------------------------------------------------------------------------------------------- sums of a strip */

template <class F> struct Strip {
    typedef Spatial<F> G;
    float sum[G::TY][G::TX][G::VECTOR];

    /* Adds the products of one chunk of a row of inputs, for the outputs of row t. w: of its kernel row and lane. */
    CF_DEVICE void multiply(const float (&x)[G::WINDOW][G::VECTOR], float (&row)[G::TX][G::VECTOR],
                            smem<const float> w) {
#pragma unroll
        for (int s = 0; s < G::X.taps; ++s) {
            float tap[G::VECTOR];
            load_tap<F>(tap, w + s * (F::LANES * G::VECTOR));
#pragma unroll
            for (int j = 0; j < G::TX; ++j) {
                const int at = cf_spatial_input(G::X, j, s);
                if (at >= 0)
#pragma unroll
                    for (int v = 0; v < G::VECTOR; ++v)
                        row[j][v] += x[at][v] * tap[v];
            }
        }
    }

    CF_DEVICE void finish(const float (&bias)[G::VECTOR]) {
#pragma unroll
        for (int t = 0; t < G::TY; ++t)
#pragma unroll
            for (int j = 0; j < G::TX; ++j)
#pragma unroll
                for (int v = 0; v < G::VECTOR; ++v)
                    sum[t][j][v] += bias[v];
    }

    /* Channels last: stores the outputs, or with LOAD adds the old contents to them. */
    template <bool LOAD> CF_DEVICE void move(typename G::result *row, const cf_spatial_side &y, const Position &p) {
        const int rows = y.size[1] - p.at[1] * G::TY, columns = y.size[2] - p.at[2] * G::TX,
                  row_stride = int(y.stride[1]);
#pragma unroll
        for (int t = 0; t < G::TY; ++t, row += row_stride) {
            if (t >= rows)
                return;
            move_outputs<F, LOAD>(row, sum[t], columns);
        }
    }

    /* Adds a plane of inputs. Rows: fetch(next, n, chunk) loads a window of row n, or returns false if it is zero. The
     * next window is loaded before the products of this one. */
    template <class Rows> CF_DEVICE void add(const Rows &rows, smem<const float> w) {
        typename Rows::Element next[G::WINDOW];
        bool follows = rows.fetch(next, 0, 0);
#pragma unroll(F::UNROLLED ? G::TALL *G::CHUNKS : 1)
        for (int i = 0; i < G::TALL * G::CHUNKS; ++i) {
            const int row = i / G::CHUNKS, chunk = i % G::CHUNKS, after = i + 1;
            float x[G::WINDOW][G::VECTOR];
#pragma unroll
            for (int k = 0; k < G::WINDOW; ++k)
                next[k].get(x[k]);
            const bool any = follows;
            follows = after < G::TALL * G::CHUNKS && rows.fetch(next, after / G::CHUNKS, after % G::CHUNKS);
            if (!any)
                continue;
#pragma unroll
            for (int t = 0; t < G::TY; ++t) {
                const int r = cf_spatial_tap(G::Y, t, row);
                if (r >= 0)
                    multiply(x, sum[t], w + (r * G::KERNEL + chunk * G::X.taps) * (F::LANES * G::VECTOR));
            }
        }
    }
};
