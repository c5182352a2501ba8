/* SPDX-License-Identifier: Apache-2.0 */
/* Signals with channels last: neighbouring threads have neighbouring channels, and load from global memory. */
#pragma once

#include "conv/spatial/strips.cuh"

/* Rows of inputs in global memory. `origin` is the first column of the lowest window. */
template <class F> struct GlobalRows {
    typedef Spatial<F> G;
    typedef ::Element<typename F::Storage, F::VECTOR> Element;
    const typename G::bits *plane;
    int row_stride, top, origin, rows, columns;
    CF_DEVICE GlobalRows(const cf_spatial_side &side, const Position &p)
        : plane(nullptr), row_stride(int(side.stride[1])),
          top(p.at[1] * cf_spatial_advance(G::Y) + cf_spatial_first(G::Y)),
          origin(p.at[2] * cf_spatial_advance(G::X) + G::LOWEST), rows(side.size[1]), columns(side.size[2]) {}
    CF_DEVICE bool fetch(Element (&next)[G::WINDOW], int n, int chunk) const {
        constexpr int COLUMN_STRIDE = int(F::COLUMN);
        const int at = padded_index<F::MODE>(top + n, rows), begin = origin + G::offset(chunk);
        if (at < 0)
            return false;
        const typename G::bits *const row = plane + at * row_stride, *const from = plane + (at * row_stride +
                                                                                            begin * COLUMN_STRIDE);
        if (begin >= 0 && begin + G::WINDOW <= columns) {
#pragma unroll
            for (int k = 0; k < G::WINDOW; ++k)
                next[k].load(from + k * COLUMN_STRIDE, true);
            return true;
        }
#pragma unroll
        for (int k = 0; k < G::WINDOW; ++k) {
            const int column = padded_index<F::MODE>(begin + k, columns);
            next[k].load(F::MODE != ZEROS ? row + column * COLUMN_STRIDE : from + k * COLUMN_STRIDE, column >= 0);
        }
        return true;
    }
};

template <class F> CF_DEVICE void spatial_last(const cf_spatial_call &call) {
    typedef Spatial<F> G;
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
    typename G::result *const y = static_cast<typename G::result *>(const_cast<void *>(call.y.memory)) +
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
        typename G::result *const to =
            y + (p.sample * call.y.sample_stride + int(p.at[0] * call.y.stride[0] + p.at[1] * G::TY * call.y.stride[1] +
                                                       p.at[2] * G::TX * call.y.stride[2]));
        strips.finish(bias);
        if (call.accumulate)
            strips.template move<true>(to, call.y, p);
        strips.template move<false>(to, call.y, p);
    }
}
