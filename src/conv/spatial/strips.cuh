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
 *     channels last     neighbouring threads have neighbouring channels, and load from global memory (spatial_last)
 *     channels first    neighbouring threads have neighbouring strips of one channel, and load from a tile in shared
 *                       memory as FP32 numbers (spatial_first)
 *
 * Weights are in shared memory as FP32 numbers. The order of additions depends on the layer only.
 *
 * The host prints F (config.c) with: Storage, Weights, Bias (types of elements), Y and X (cf_spatial_axis of rows and
 * columns; X.taps is the number of taps that one window serves, CHUNKS such windows make a kernel row), KERNEL_Z,
 * KERNEL_X, DEPTH (cf_spatial_axis of the depth), MODE (of padding), OWN and SUMMED (channels of a group, call.h),
 * VECTOR, LANES (threads with neighbouring channels), STRIPS (of a block at a time), ACROSS, DOWN and PLANES (channels
 * first: strips of a tile, and samples), SKEWED (tiles are stored with gaps, against bank conflicts), THREADS.
 */
#pragma once

#include "conv/spatial/call.h"
#include "conv/spatial/geometry.h"
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

/* The index of the element that padding puts at position i; -1: a zero. */
template <int MODE> CF_DEVICE int padded_index(int i, int size) {
    if (unsigned(i) < unsigned(size))
        return i;
    if (MODE == 1) { /* circular */
        i %= size;
        return i < 0 ? i + size : i;
    }
    if (MODE == 2) { /* reflect */
        i = i < 0 ? -i : 2 * (size - 1) - i;
        return unsigned(i) < unsigned(size) ? i : -1;
    }
    return MODE == 3 ? (i < 0 ? 0 : size - 1) : -1; /* replicate */
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

/* What the kernels share. A chunk of taps moves the window by STEP inputs. */
template <class F> struct Spatial {
    typedef typename F::Storage::bits bits;
    static constexpr cf_spatial_axis Y = F::Y, X = F::X;
    static constexpr int VECTOR = F::VECTOR, TX = X.outs, TY = Y.outs, WINDOW = cf_spatial_window(X),
                         TALL = cf_spatial_window(Y), CHUNKS = (F::KERNEL_X + X.taps - 1) / X.taps,
                         STEP = X.transposed ? X.dilation * X.taps / X.stride : X.dilation * X.taps,
                         LOWEST = cf_spatial_first(X) - (X.transposed ? (CHUNKS - 1) * STEP : 0),
                         EXTENT = WINDOW + (CHUNKS - 1) * STEP, KERNEL = CHUNKS * X.taps,
                         TAPS = F::KERNEL_Z * Y.taps * KERNEL, PLANE = Y.taps * KERNEL * F::LANES * VECTOR,
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
            if constexpr (G::VECTOR == 2) {
                const float2 pair = smem_cast<const float2>(w)[s * F::LANES];
                tap[0] = pair.x;
                tap[1] = pair.y;
            } else {
                tap[0] = w[s * F::LANES];
            }
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
    template <bool LOAD> CF_DEVICE void move(typename G::bits *row, const cf_spatial_side &y, const Position &p) {
        typedef typename F::Storage Storage;
        const int rows = y.size[1] - p.at[1] * G::TY, columns = y.size[2] - p.at[2] * G::TX,
                  row_stride = int(y.stride[1]), column_stride = int(F::COLUMN_Y ? F::COLUMN_Y : y.stride[2]);
#pragma unroll
        for (int t = 0; t < G::TY; ++t, row += row_stride) {
            if (t >= rows)
                return;
#pragma unroll
            for (int j = 0; j < G::TX; ++j) {
                if (j >= columns)
                    continue;
                if constexpr (LOAD) {
#pragma unroll
                    for (int v = 0; v < G::VECTOR; ++v)
                        sum[t][j][v] += old_number<Storage>(row + j * column_stride + v);
                } else {
                    store_vector<Storage, G::VECTOR>(row + j * column_stride, sum[t][j]);
                }
            }
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

/* ---------------------------------------------------------------------------------------------------- channels last */

/* Rows of inputs in global memory. `origin` is the first column of the lowest window. */
template <class F> struct GlobalRows {
    typedef Spatial<F> G;
    typedef ::Element<typename F::Storage, F::VECTOR> Element;
    const typename G::bits *plane;
    int row_stride, column_stride, top, origin, rows, columns;
    CF_DEVICE GlobalRows(const cf_spatial_side &side, const Position &p)
        : plane(nullptr), row_stride(int(side.stride[1])), column_stride(int(F::COLUMN ? F::COLUMN : side.stride[2])),
          top(p.at[1] * cf_spatial_advance(G::Y) + cf_spatial_first(G::Y)),
          origin(p.at[2] * cf_spatial_advance(G::X) + G::LOWEST), rows(side.size[1]), columns(side.size[2]) {}
    CF_DEVICE bool fetch(Element (&next)[G::WINDOW], int n, int chunk) const {
        const int at = padded_index<F::MODE>(top + n, rows), begin = origin + G::offset(chunk);
        if (at < 0)
            return false;
        const typename G::bits *const row = plane + at * row_stride, *const from = plane + (at * row_stride +
                                                                                            begin * column_stride);
        if (begin >= 0 && begin + G::WINDOW <= columns) {
#pragma unroll
            for (int k = 0; k < G::WINDOW; ++k)
                next[k].load(from + k * column_stride, true);
            return true;
        }
#pragma unroll
        for (int k = 0; k < G::WINDOW; ++k) {
            const int column = padded_index<F::MODE>(begin + k, columns);
            next[k].load(F::MODE ? row + column * column_stride : from + k * column_stride, column >= 0);
        }
        return true;
    }
};

template <class F> CF_DEVICE void spatial_last(const cf_spatial_call &call) {
    typedef Spatial<F> G;
    typedef typename F::Storage Storage;
    const int lane = int(threadIdx.x) % F::LANES, strip = int(threadIdx.x) / F::LANES;
    const long long first = (long long)blockIdx.x * (F::LANES * F::VECTOR), channel = first + lane * F::VECTOR;
    smem<float> w = cf_dynamic_shared<float>();
    load_weights<F>(w, call, first);
    __syncthreads();
    if (strip >= F::STRIPS || channel >= call.channels)
        return;
    const long long group = channel / F::OWN, own = channel % F::OWN;
    const typename G::bits *const x =
        static_cast<const typename G::bits *>(call.x.memory) + group * call.x.group_stride;
    typename G::bits *const y = static_cast<typename G::bits *>(const_cast<void *>(call.y.memory)) +
                                group * call.y.group_stride + own * call.y.channel_stride;
    float bias[G::VECTOR];
#pragma unroll
    for (int v = 0; v < G::VECTOR; ++v)
        bias[v] = call.bias ? float(bias_at<F>(call.bias, channel + v)) : 0.0f;
    const Range range = range_of(call, F::STRIPS);
    for (int item = range.begin + strip; item < range.end; item += F::STRIPS) {
        const Position p = position_of(call, item);
        GlobalRows<F> rows(call.x, p);
        Strip<F> strips = {};
        for (int summed = 0; summed < F::SUMMED; ++summed)
            for (int q = 0; q < F::KERNEL_Z; ++q) {
                const int depth = plane_index<F>(p.at[0], q, call.x.size[0]);
                if (depth < 0)
                    continue;
                rows.plane =
                    x + (p.sample * call.x.sample_stride + summed * call.x.channel_stride + depth * call.x.stride[0]);
                strips.add(rows, w + ((summed * F::KERNEL_Z + q) * G::PLANE + lane * F::VECTOR));
            }
        typename G::bits *const to =
            y + (p.sample * call.y.sample_stride + int(p.at[0] * call.y.stride[0] + p.at[1] * G::TY * call.y.stride[1] +
                                                       p.at[2] * G::TX * call.y.stride[2]));
        strips.finish(bias);
        if (call.accumulate)
            strips.template move<true>(to, call.y, p);
        strips.template move<false>(to, call.y, p);
    }
}

/* --------------------------------------------------------------------------------------------------- channels first */

/* A tile of FP32 numbers in shared memory: PLANES planes of HEIGHT rows. A gap follows every `STEP` columns, so that
 * threads with neighbouring strips have no bank conflicts. */
template <int PLANES, int HEIGHT, int BREADTH, int STEP, bool SKEWED, int THREADS> struct FloatTile {
    static constexpr CF_DEVICE int along(int column) { return SKEWED ? column + column / STEP : column; }
    static constexpr int PITCH = along(BREADTH - 1) + 1 | 1, PLANE = HEIGHT * PITCH, SIZE = PLANES * PLANE,
                         LINES = PLANES * HEIGHT,
                         /* Threads of a row: a part of a warp, or all where there are few rows. */
        WIDE = LINES * 32 < THREADS ? THREADS
               : BREADTH > 16       ? 32
               : BREADTH > 8        ? 16
                                    : 8;

    /* Loads the planes of samples from `sample` on. (top, left) is the element of the first one. FP32 numbers are
     * there after wait_async() and a barrier. */
    template <class S, int MODE>
    static CF_DEVICE void load(smem<float> tile, const cf_spatial_side &side, const typename S::bits *from, int sample,
                               int samples, int top, int left) {
        for (int line = int(threadIdx.x) / WIDE; line < LINES; line += THREADS / WIDE) {
            const int row = line % HEIGHT, plane = line / HEIGHT, y = padded_index<MODE>(top + row, side.size[1]);
            const bool there = y >= 0 && sample + plane < samples;
            const typename S::bits *const p =
                from + (there ? (sample + plane) * side.sample_stride + y * side.stride[1] : 0);
            smem<float> to = tile + (plane * PLANE + row * PITCH);
#pragma unroll 4
            for (int column = int(threadIdx.x) % WIDE; column < BREADTH; column += WIDE) {
                const int x = padded_index<MODE>(left + column, side.size[2]);
                const bool inside = there && x >= 0;
                if constexpr (S::PLAIN)
                    copy_async<1>(to + along(column), inside ? p + x * side.stride[2] : from, inside);
                else
                    to[along(column)] = inside ? float(S::load(p + x * side.stride[2])) : 0.0f;
            }
        }
    }
};

/* Rows of a tile of type In. `from`: the place of the first input of the strip. */
template <class F, class In> struct TileRows {
    typedef Spatial<F> G;
    struct Element {
        float number;
        CF_DEVICE void get(float (&to)[1]) const { to[0] = number; }
    };
    smem<const float> from;
    int top, rows;
    CF_DEVICE bool fetch(Element (&next)[G::WINDOW], int n, int chunk) const {
        if (F::MODE == 0 && unsigned(top + n) >= unsigned(rows))
            return false;
        smem<const float> begin = from + (n * In::PITCH + In::along(G::offset(chunk)));
#pragma unroll
        for (int k = 0; k < G::WINDOW; ++k)
            next[k].number = begin[In::along(k)];
        return true;
    }
};

/* The tiles that a block loads one after another: of each item, all depths of all summed channels. */
template <int PARTS> struct Step {
    int item, part, number;
    CF_DEVICE Step next() const {
        return {part + 1 == PARTS ? item + int(gridDim.y) : item, part + 1 == PARTS ? 0 : part + 1, number + 1};
    }
};

template <class F> CF_DEVICE void spatial_first(const cf_spatial_call &call) {
    typedef Spatial<F> G;
    typedef typename F::Storage Storage;
    constexpr int ADVANCE = cf_spatial_advance(G::X), DOWNWARDS = cf_spatial_advance(G::Y), BREADTH = G::TX * F::ACROSS,
                  HEIGHT = G::TY * F::DOWN;
    typedef FloatTile<F::PLANES, DOWNWARDS *(F::DOWN - 1) + G::TALL, ADVANCE *(F::ACROSS - 1) + G::EXTENT, ADVANCE,
                      F::SKEWED, F::THREADS>
        In;
    typedef FloatTile<F::PLANES, HEIGHT, BREADTH, G::TX, true, F::THREADS> Out;
    typedef Step<F::SUMMED * F::KERNEL_Z> Tiles;
    const int thread = int(threadIdx.x), across = thread % F::ACROSS, down = thread / F::ACROSS % F::DOWN,
              plane = thread / (F::ACROSS * F::DOWN);
    const bool live = plane < F::PLANES;
    const long long channel = blockIdx.x, group = channel / F::OWN, own = channel % F::OWN;
    smem<float> w = cf_dynamic_shared<float>(), out = w + G::WEIGHTS, tiles = out + Out::SIZE;
    load_weights<F>(w, call, channel);
    const typename G::bits *const x =
        static_cast<const typename G::bits *>(call.x.memory) + group * call.x.group_stride;
    typename G::bits *const y = static_cast<typename G::bits *>(const_cast<void *>(call.y.memory)) +
                                group * call.y.group_stride + own * call.y.channel_stride;
    const float bias = call.bias ? float(bias_at<F>(call.bias, channel)) : 0.0f;
    const auto load = [&](const Tiles &step) {
        if (step.item >= call.items)
            return;
        const Position p = position_of(call, step.item);
        const int depth = plane_index<F>(p.at[0], step.part % F::KERNEL_Z, call.x.size[0]);
        if (depth >= 0)
            In::template load<Storage, F::MODE>(
                tiles + step.number % 2 * In::SIZE, call.x,
                x + (step.part / F::KERNEL_Z * call.x.channel_stride + depth * call.x.stride[0]), p.sample * F::PLANES,
                call.samples, p.at[1] * (DOWNWARDS * F::DOWN) + cf_spatial_first(G::Y),
                p.at[2] * (ADVANCE * F::ACROSS) + G::LOWEST);
    };
    Strip<F> strips = {};
    Tiles step = {int(blockIdx.y), 0, 0};
    load(step);
    for (; step.item < call.items; step = step.next()) {
        wait_async();
        __syncthreads();
        load(step.next());
        const Position p = position_of(call, step.item);
        if (live && plane_index<F>(p.at[0], step.part % F::KERNEL_Z, call.x.size[0]) >= 0) {
            const TileRows<F, In> rows = {tiles + (step.number % 2 * In::SIZE + plane * In::PLANE +
                                                   down * DOWNWARDS * In::PITCH + In::along(across * ADVANCE)),
                                          p.at[1] * (DOWNWARDS * F::DOWN) + cf_spatial_first(G::Y) + down * DOWNWARDS,
                                          call.x.size[1]};
            strips.add(rows, w + step.part * G::PLANE);
        }
        if (step.part + 1 < F::SUMMED * F::KERNEL_Z)
            continue;
        /* Outputs pass through shared memory, so that neighbouring threads store neighbouring elements. */
        if (live)
#pragma unroll
            for (int t = 0; t < G::TY; ++t)
#pragma unroll
                for (int j = 0; j < G::TX; ++j)
                    out[plane * Out::PLANE + (down * G::TY + t) * Out::PITCH + Out::along(across * G::TX) + j] =
                        strips.sum[t][j][0] + bias;
        strips = {};
        __syncthreads();
        for (int line = thread / Out::WIDE; line < Out::LINES; line += F::THREADS / Out::WIDE) {
            const int row = p.at[1] * HEIGHT + line % HEIGHT, sample = p.sample * F::PLANES + line / HEIGHT;
            if (sample >= call.samples || row >= call.y.size[1])
                continue;
            typename G::bits *const to =
                y + (sample * call.y.sample_stride + p.at[0] * call.y.stride[0] + row * call.y.stride[1]);
            smem<const float> from = out + (line / HEIGHT * Out::PLANE + line % HEIGHT * Out::PITCH);
#pragma unroll 4
            for (int i = thread % Out::WIDE; i < BREADTH; i += Out::WIDE) {
                const int column = p.at[2] * BREADTH + i;
                if (column >= call.y.size[2])
                    break;
                typename G::bits *const at = to + column * call.y.stride[2];
                const float value = from[Out::along(i)];
                Storage::store(at, call.accumulate ? value + old_number<Storage>(at) : value);
            }
        }
    }
}
