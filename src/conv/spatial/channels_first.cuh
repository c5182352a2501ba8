/* SPDX-License-Identifier: Apache-2.0 */
/* Signals with channels first: neighbouring threads have neighbouring strips of one channel, and load from a tile in
 * shared memory. */
#pragma once

#include "conv/spatial/strips.cuh"

/* A tile: the host's sizes are those of geometry.h, too. */
template <int PLANES, int HEIGHT, int BREADTH, int ADVANCE, bool SKEWED, int THREADS> struct FloatTile {
    static constexpr cf_spatial_tile T = {PLANES, HEIGHT, BREADTH, ADVANCE, SKEWED};
    static constexpr int PITCH = cf_spatial_pitch(T), PLANE = HEIGHT * PITCH, SIZE = int(cf_spatial_numbers(T)),
                         LINES = PLANES * HEIGHT, WIDE = cf_spatial_threads_of_row(T, THREADS);
    static constexpr CF_DEVICE int along(int column) { return cf_spatial_along(T, column); }

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
        if (F::MODE == ZEROS && unsigned(top + n) >= unsigned(rows))
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

/* Stores a tile of outputs. Neighbouring threads store neighbouring elements. */
template <class F, class Out>
CF_DEVICE void store_tile(const cf_spatial_call &call, smem<const float> out, typename F::Result::bits *y,
                          const Position &p) {
    typedef Spatial<F> G;
    typedef typename F::Result Result;
    constexpr int BREADTH = G::TX * F::ACROSS, HEIGHT = G::TY * F::DOWN;
    const int thread = int(threadIdx.x);
    for (int line = thread / Out::WIDE; line < Out::LINES; line += F::THREADS / Out::WIDE) {
        const int row = p.at[1] * HEIGHT + line % HEIGHT, sample = p.sample * F::PLANES + line / HEIGHT;
        if (sample >= call.samples || row >= call.y.size[1])
            continue;
        typename G::result *const to =
            y + (sample * call.y.sample_stride + p.at[0] * call.y.stride[0] + row * call.y.stride[1]);
        smem<const float> from = out + (line / HEIGHT * Out::PLANE + line % HEIGHT * Out::PITCH);
#pragma unroll 4
        for (int i = thread % Out::WIDE; i < BREADTH; i += Out::WIDE) {
            const int column = p.at[2] * BREADTH + i;
            if (column >= call.y.size[2])
                break;
            typename G::result *const at = to + column * call.y.stride[2];
            const float value = from[Out::along(i)];
            Result::store(at, call.accumulate ? value + old_number<Result>(at) : value);
        }
    }
}

template <class F> CF_DEVICE void spatial_first(const cf_spatial_call &call) {
    typedef Spatial<F> G;
    typedef typename F::Storage Storage;
    constexpr int ADVANCE = cf_spatial_advance(G::X), DOWNWARDS = cf_spatial_advance(G::Y), BREADTH = G::TX * F::ACROSS,
                  HEIGHT = G::TY * F::DOWN;
    typedef FloatTile<F::PLANES, cf_spatial_reach(G::Y, F::DOWN, 1), cf_spatial_reach(G::X, F::ACROSS, G::CHUNKS),
                      ADVANCE, F::SKEWED, F::THREADS>
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
    typename G::result *const y = static_cast<typename G::result *>(const_cast<void *>(call.y.memory)) +
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
        /* Outputs pass through shared memory. */
        if (live)
#pragma unroll
            for (int t = 0; t < G::TY; ++t)
#pragma unroll
                for (int j = 0; j < G::TX; ++j)
                    out[plane * Out::PLANE + (down * G::TY + t) * Out::PITCH + Out::along(across * G::TX) + j] =
                        strips.sum[t][j][0] + bias;
        strips = {};
        __syncthreads();
        store_tile<F, Out>(call, out, y, p);
    }
}
