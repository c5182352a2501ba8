/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise layers: threads that walk down the rows, so that each loads a row of inputs once.
 *
 * A thread has a segment: SEGMENT rows of TX outputs. In each step it loads the ADVANCE rows of inputs that belong to
 * TY rows of outputs (geometry.h), one step ahead. They meet HELD rows of outputs. The sums of these stay in
 * registers. After a step, the first TY of them are complete; the thread stores them, and the others move up.
 *
 * For the gradient of the weights, gy takes the place of these sums, and a thread has the sums of all taps
 * (gradient.cuh). For both gradients, a thread walks down gy. What it reads meets the sums of gx, and the rows of x at
 * the same places.
 *
 * With channels last, neighbouring threads have neighbouring channels. With channels first, all threads of a block
 * have one channel, and neighbouring threads have neighbouring columns. Then TOGETHER neighbouring columns are loaded
 * at once where they begin at a multiple of that number, and the columns between two strips come from the L1 cache.
 *
 * In signals of one axis with channels last the host exchanges the axes of rows and columns, so that threads walk
 * along the signal.
 *
 * The host prints F (walk.c) with what strips have (strips.cuh), one chunk, and SEGMENT (a multiple of TY), TOGETHER
 * and TOGETHER_Y (columns of what is read, and of outputs or what is beside them; channels last: 0).
 */
#pragma once

#include "conv/spatial/gradient.cuh"

/* The first columns of a row, COUNT together, as elements of one channel. */
template <class E> CF_DEVICE void load_columns(E *to, const float *from, int count, bool inside) {
    if (count == 4) {
        const float4 v = inside ? __ldg(reinterpret_cast<const float4 *>(from)) : make_float4(0, 0, 0, 0);
        to[0].bits = v.x;
        to[1].bits = v.y;
        to[2].bits = v.z;
        to[3].bits = v.w;
    } else if (count == 2) {
        const float2 v = inside ? __ldg(reinterpret_cast<const float2 *>(from)) : make_float2(0, 0);
        to[0].bits = v.x;
        to[1].bits = v.y;
    } else {
        to[0].load(from, inside);
    }
}

template <class F> struct Walk {
    typedef Spatial<F> G;
    typedef ::Element<typename F::Storage, F::VECTOR> Element;
    static constexpr int ADVANCE = cf_spatial_advance(G::Y), BEHIND = cf_spatial_behind(G::Y), HELD = BEHIND + G::TY;
    Element next[ADVANCE][G::WINDOW];

    /* Loads the inputs of a step, from row `first` on. */
    CF_DEVICE void load(const GlobalRows<F> &rows, int first) {
        constexpr int COLUMN_STRIDE = int(F::COLUMN);
        if constexpr (F::TOGETHER > 0) {
            load_together(rows, first);
            return;
        }
        if (first >= 0 && first + ADVANCE <= rows.rows && rows.origin >= 0 && rows.origin + G::WINDOW <= rows.columns) {
            const typename G::bits *const from = rows.plane + (first * rows.row_stride + rows.origin * COLUMN_STRIDE);
#pragma unroll
            for (int n = 0; n < ADVANCE; ++n)
#pragma unroll
                for (int k = 0; k < G::WINDOW; ++k)
                    next[n][k].load(from + (n * rows.row_stride + k * COLUMN_STRIDE), true);
            return;
        }
#pragma unroll
        for (int n = 0; n < ADVANCE; ++n) {
            const int row = padded_index<F::MODE>(first + n, rows.rows);
#pragma unroll
            for (int k = 0; k < G::WINDOW; ++k) {
                const int column = padded_index<F::MODE>(rows.origin + k, rows.columns);
                next[n][k].load(rows.plane + (row * rows.row_stride + column * COLUMN_STRIDE), row >= 0 && column >= 0);
            }
        }
    }

    /* Channels first. The padding is zeros. Strips begin at multiples of TOGETHER, and rows have such a length, so a
     * block of columns is inside or outside as a whole. */
    CF_DEVICE void load_together(const GlobalRows<F> &rows, int first) {
#pragma unroll
        for (int n = 0; n < ADVANCE; ++n) {
            const int row = first + n;
            const typename G::bits *const from = rows.plane + (row * rows.row_stride + rows.origin);
#pragma unroll
            for (int k = 0; k < G::WINDOW; ++k) {
                const int count = cf_spatial_together(G::LOWEST + k, G::LOWEST, G::LOWEST + G::WINDOW, F::TOGETHER);
                if ((k + G::LOWEST) % count == 0)
                    load_columns(&next[n][k], from + k, count,
                                 unsigned(row) < unsigned(rows.rows) &&
                                     unsigned(rows.origin + k) < unsigned(rows.columns));
            }
        }
    }

    /* The inputs that are there, as numbers. */
    CF_DEVICE void get(float (&x)[ADVANCE][G::WINDOW][G::VECTOR]) const {
#pragma unroll
        for (int n = 0; n < ADVANCE; ++n)
#pragma unroll
            for (int k = 0; k < G::WINDOW; ++k)
                next[n][k].get(x[n][k]);
    }

    /* Calls begin(r, s) for each tap, and then add(r, s, x, q, j) for each of its products of an input x and of column
     * j of row q of those that it meets. Taps that complete the first rows come first, so that their registers are
     * free early. */
    template <class Begin, class Add>
    CF_DEVICE void each_product(const float (&x)[ADVANCE][G::WINDOW][G::VECTOR], const Begin &begin, const Add &add) {
#pragma unroll
        for (int i = 0; i < G::Y.taps; ++i)
#pragma unroll
            for (int s = 0; s < G::X.taps; ++s) {
                const int r = G::Y.transposed ? i : G::Y.taps - 1 - i;
                begin(r, s);
#pragma unroll
                for (int n = 0; n < ADVANCE; ++n) {
                    const int q = cf_spatial_output(G::Y, n, r);
#pragma unroll
                    for (int j = 0; j < G::TX; ++j) {
                        const int at = cf_spatial_input(G::X, j, s);
                        if (q >= 0 && at >= 0)
                            add(r, s, x[n][at], q, j);
                    }
                }
            }
    }
};

/* Rows that the inputs of a step meet: sums of outputs, or numbers of another signal. */
template <class F> struct Held {
    typedef Spatial<F> G;
    static constexpr int BEHIND = Walk<F>::BEHIND, HELD = Walk<F>::HELD;
    float row[HELD][G::TX][G::VECTOR];

    CF_DEVICE void fill(const float (&value)[G::VECTOR]) {
#pragma unroll
        for (int q = 0; q < HELD; ++q)
            set(q, value);
    }
    CF_DEVICE void set(int q, const float (&value)[G::VECTOR]) {
#pragma unroll
        for (int j = 0; j < G::TX; ++j)
#pragma unroll
            for (int v = 0; v < G::VECTOR; ++v)
                row[q][j][v] = value[v];
    }
    /* Moves the rows of the next step up. The last TY rows get `fresh`. */
    CF_DEVICE void move_up(const float (&fresh)[G::VECTOR]) {
#pragma unroll
        for (int q = 0; q < BEHIND; ++q)
#pragma unroll
            for (int j = 0; j < G::TX; ++j)
#pragma unroll
                for (int v = 0; v < G::VECTOR; ++v)
                    row[q][j][v] = row[q + G::TY][j][v];
#pragma unroll
        for (int q = BEHIND; q < HELD; ++q)
            set(q, fresh);
    }
};

/* Where the outputs of a segment are in a signal of this size, from its first output on. */
template <class F, class T> struct OutputRows {
    typedef Spatial<F> G;
    static constexpr int STEP = F::TOGETHER_Y > 0 ? F::TOGETHER_Y : 1;
    T *from;
    int row_stride, height, columns;
    CF_DEVICE OutputRows(const cf_spatial_side &side, const Position &p, T *channel)
        : row_stride(int(side.stride[1])), height(side.size[1] - p.at[1] * F::SEGMENT),
          columns(side.size[2] - p.at[2] * G::TX) {
        height = height < F::SEGMENT ? height : F::SEGMENT;
        from = channel + (p.sample * side.sample_stride +
                          (p.at[1] * F::SEGMENT * row_stride + p.at[2] * G::TX * int(F::COLUMN_Y)));
    }
    /* TY rows from `row` on. Those outside of the segment are zeros. */
    CF_DEVICE void load(typename Walk<F>::Element (&next)[G::TY][G::TX], int row) const {
#pragma unroll
        for (int t = 0; t < G::TY; ++t)
#pragma unroll
            for (int j = 0; j < G::TX; j += STEP) {
                const typename F::Storage::bits *const at = from + ((row + t) * row_stride + j * int(F::COLUMN_Y));
                const bool inside = row + t < height && j < columns;
                if constexpr (F::TOGETHER_Y > 0)
                    load_columns(&next[t][j], at, STEP, inside);
                else
                    next[t][j].load(at, inside);
            }
    }
};

/* The last rows of those that are held, as numbers. */
template <class F>
CF_DEVICE void get_rows(Held<F> &held, const typename Walk<F>::Element (&next)[F::Y.outs][F::X.outs]) {
#pragma unroll
    for (int t = 0; t < F::Y.outs; ++t)
#pragma unroll
        for (int j = 0; j < F::X.outs; ++j)
            next[t][j].get(held.row[Held<F>::BEHIND + t][j]);
}

/* The rows of inputs of a segment, and where they begin. */
template <class F>
CF_DEVICE GlobalRows<F> segment_rows(const cf_spatial_call &call, const Position &p,
                                     const typename F::Storage::bits *channel) {
    GlobalRows<F> rows(call.x, p);
    rows.top = p.at[1] * (F::SEGMENT / F::Y.outs) * cf_spatial_advance(F::Y) + cf_spatial_first(F::Y);
    rows.plane = channel + p.sample * call.x.sample_stride;
    return rows;
}

/* Channels first: stores a row of a strip. */
template <class F> CF_DEVICE void store_columns(float *row, const float (&sum)[F::X.outs][F::VECTOR], int columns) {
#pragma unroll
    for (int j = 0; j < F::X.outs; j += F::TOGETHER_Y) {
        if (j >= columns)
            continue;
        if constexpr (F::TOGETHER_Y == 4)
            *reinterpret_cast<float4 *>(row + j) = make_float4(sum[j][0], sum[j + 1][0], sum[j + 2][0], sum[j + 3][0]);
        else if constexpr (F::TOGETHER_Y == 2)
            *reinterpret_cast<float2 *>(row + j) = make_float2(sum[j][0], sum[j + 1][0]);
        else
            row[j] = sum[j][0];
    }
}

/* Stores the rows of outputs that are complete after a step: those from `row` on, if they are in the segment. */
template <class F>
CF_DEVICE void store_step(const cf_spatial_call &call, const OutputRows<F, typename F::Result::bits> &to, int row,
                          Held<F> &outputs) {
#pragma unroll
    for (int t = 0; t < F::Y.outs; ++t) {
        if (unsigned(row + t) >= unsigned(to.height))
            continue;
        typename F::Result::bits *const at = to.from + (row + t) * to.row_stride;
        if (call.accumulate)
            move_outputs<F, true>(at, outputs.row[t], to.columns);
        if constexpr (F::TOGETHER_Y > 0)
            store_columns<F>(at, outputs.row[t], to.columns);
        else
            move_outputs<F, false>(at, outputs.row[t], to.columns);
    }
}

/* y or gx. BOTH: also the sums of gw of the signal `x`, which has the place of the outputs. */
template <class F, bool BOTH>
CF_DEVICE void walk_signals(const cf_spatial_call &call, const typename F::Storage::bits *x, smem<const float> w,
                            long long channel, int strip, TapSums<F> &sums) {
    typedef Spatial<F> G;
    typedef Walk<F> W;
    typedef typename G::bits bits;
    typedef typename G::result result;
    const bits *const in = static_cast<const bits *>(call.x.memory) + channel * call.x.group_stride;
    result *const out = static_cast<result *>(const_cast<void *>(call.y.memory)) + channel * call.y.group_stride;
    constexpr float NONE[G::VECTOR] = {};
    constexpr bool HELD = cf_spatial_holds_taps(G::Y, G::X, G::VECTOR);
    float bias[G::VECTOR], taps[HELD ? G::TAPS : 1][G::VECTOR];
    if (HELD)
#pragma unroll
        for (int i = 0; i < G::TAPS; ++i)
            load_tap<F>(taps[HELD ? i : 0], w + i * (F::LANES * G::VECTOR));
#pragma unroll
    for (int v = 0; v < G::VECTOR; ++v)
        bias[v] = call.bias ? float(bias_at<F>(call.bias, channel + v)) : 0.0f;
    const Range range = range_of(call, F::STRIPS);
    for (int item = range.begin + strip; item < range.end; item += F::STRIPS) {
        const Position p = position_of(call, item);
        const GlobalRows<F> rows = segment_rows<F>(call, p, in);
        const OutputRows<F, result> to(call.y, p, out);
        const OutputRows<F, const bits> beside(call.y, p, x);
        W walk;
        Held<F> outputs, others;
        typename W::Element next[G::TY][G::TX];
        outputs.fill(bias);
        walk.load(rows, rows.top);
        if (BOTH) {
            others.fill(NONE);
            beside.load(next, 0);
        }
#pragma unroll 1
        for (int row = -W::BEHIND, top = rows.top + W::ADVANCE; row < to.height; row += G::TY, top += W::ADVANCE) {
            float read[W::ADVANCE][G::WINDOW][G::VECTOR];
            walk.get(read);
            if (BOTH)
                get_rows<F>(others, next);
            if (row + G::TY < to.height) {
                walk.load(rows, top);
                if (BOTH)
                    beside.load(next, row + W::BEHIND + G::TY);
            }
            walk.each_product(
                read,
                [&](int r, int s) {
                    if (!HELD)
                        load_tap<F>(taps[0], w + (r * G::KERNEL + s) * (F::LANES * G::VECTOR));
                },
                [&](int r, int s, const float(&a)[G::VECTOR], int q, int j) {
#pragma unroll
                    for (int v = 0; v < G::VECTOR; ++v) {
                        outputs.row[q][j][v] += a[v] * taps[HELD ? r * G::KERNEL + s : 0][v];
                        if (BOTH)
                            sums.sum[r][s][v] += a[v] * others.row[q][j][v];
                    }
                });
            store_step<F>(call, to, row, outputs);
            outputs.move_up(bias);
            if (BOTH)
                others.move_up(NONE);
        }
    }
}

template <class F> CF_DEVICE void spatial_walk(const cf_spatial_call &call) {
    const int lane = int(threadIdx.x) % F::LANES, strip = int(threadIdx.x) / F::LANES;
    const long long first = (long long)blockIdx.x * (F::LANES * F::VECTOR), channel = first + lane * F::VECTOR;
    smem<float> w = cf_dynamic_shared<float>();
    TapSums<F> none;
    load_weights<F>(w, call, first);
    __syncthreads();
    if (strip < F::STRIPS && channel < call.channels)
        walk_signals<F, false>(call, nullptr, w + lane * F::VECTOR, channel, strip, none);
}

/* Both gradients, each with its own order of additions. gy is read once. */
template <class F> CF_DEVICE void spatial_walk_both(const cf_spatial_both_call &call) {
    const int lane = int(threadIdx.x) % F::LANES, strip = int(threadIdx.x) / F::LANES;
    const long long first = (long long)blockIdx.x * (F::LANES * F::VECTOR), channel = first + lane * F::VECTOR;
    smem<float> w = cf_dynamic_shared<float>();
    TapSums<F> sums = {};
    load_weights<F>(w, call.data, first);
    __syncthreads();
    if (strip < F::STRIPS && channel < call.data.channels)
        walk_signals<F, true>(call.data, x_of<F, typename F::Storage>(call.weights, channel), w + lane * F::VECTOR,
                              channel, strip, sums);
    sums.store(call.weights, w, first, strip < F::STRIPS);
}

/* The gradient of the weights. */
template <class F> CF_DEVICE void spatial_walk_weights(const cf_spatial_call &call) {
    typedef Spatial<F> G;
    typedef Walk<F> W;
    typedef typename G::bits bits;
    const int lane = int(threadIdx.x) % F::LANES, strip = int(threadIdx.x) / F::LANES;
    const long long first = (long long)blockIdx.x * (F::LANES * F::VECTOR), filter = first + lane * F::VECTOR;
    constexpr float NONE[G::VECTOR] = {};
    TapSums<F> sums = {};
    if (strip < F::STRIPS && filter < call.channels) {
        const bits *const x = x_of<F, typename F::Storage>(call, filter), *const y = gy_of<F, typename F::Storage>(
                                                                              call, filter);
        const Range range = range_of(call, F::STRIPS);
        for (int item = range.begin + strip; item < range.end; item += F::STRIPS) {
            const Position p = position_of(call, item);
            const GlobalRows<F> rows = segment_rows<F>(call, p, x);
            const OutputRows<F, const bits> beside(call.y, p, y);
            W walk;
            Held<F> gy;
            typename W::Element next[G::TY][G::TX];
            gy.fill(NONE);
            walk.load(rows, rows.top);
            beside.load(next, 0);
#pragma unroll 1
            for (int row = -W::BEHIND, top = rows.top + W::ADVANCE; row < beside.height;
                 row += G::TY, top += W::ADVANCE) {
                float read[W::ADVANCE][G::WINDOW][G::VECTOR];
                walk.get(read);
                get_rows<F>(gy, next);
                if (row + G::TY < beside.height) {
                    walk.load(rows, top);
                    beside.load(next, row + W::BEHIND + G::TY);
                }
                walk.each_product(
                    read, [](int, int) {},
                    [&](int r, int s, const float(&a)[G::VECTOR], int q, int j) {
#pragma unroll
                        for (int v = 0; v < G::VECTOR; ++v)
                            sums.sum[r][s][v] += a[v] * gy.row[q][j][v];
                    });
                gy.move_up(NONE);
            }
        }
    }
    sums.store(call, cf_dynamic_shared<float>(), first, strip < F::STRIPS);
}

#define CF_SPATIAL_BOTH_KERNEL(FUNCTION, THREADS, BLOCKS)                    \
    CF_KERNEL(THREADS, BLOCKS) cf_spatial(const cf_spatial_both_call call) { \
        cf_pdl_wait();                                                       \
        FUNCTION<Problem>(call);                                             \
    }
