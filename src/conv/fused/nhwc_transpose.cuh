/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transposes a whole channels-last tensor to channels-first planes, or back (nhwc_transpose.c).
 *
 * The kernels of register_resident.cuh take one channel at a time. Of a channels-last tensor they would use few
 * bytes of each sector of memory, so the tensor with many channels is transposed before or after them. Planes are
 * of type `real`.
 *
 *     tensor            [sample][point] | channel 0 | channel 1 | ...       any strides of axes; Storage says the type
 *     planes            [sample][channel][point], PLANE elements from plane to plane
 *     shared memory     [channel][point]: ACROSS channels, POINTS points, rows of PITCH elements
 *
 * A block transposes ACROSS channels of POINTS points of one sample. A thread moves quads (16 bytes of points of
 * one channel) of planes, and units (VECTOR channels of one point) of the tensor. Blocks with neighbouring numbers
 * have neighbouring channels.
 *
 * The host prints T with: Storage, Bias, Offset (an integer type), CHANNELS, EXTENT (of the axes), SAMPLE and AXIS
 * (strides), PLANE, VECTOR.
 */
#pragma once

#include "conv/fused/call.h"
#include "conv/fused/nhwc_vectors.cuh"

/* Which elements a block and a thread have. */
template <class T> struct Transpose {
    typedef typename T::Storage Storage;
    typedef typename T::Offset Offset;
    typedef typename Storage::bits bits;
    static constexpr int THREADS = 256, ACROSS = 32, POINTS = 128, PITCH = POINTS + 1;
    static constexpr int QUAD = 16 / int(sizeof(real)), UNITS = ACROSS / T::VECTOR;
    /*
     * A thread has QUADS quads of one channel, QUAD_GAP points apart, and COUNT units of the same channels,
     * UNIT_GAP points apart.
     */
    static constexpr int QUAD_GAP = THREADS / ACROSS * QUAD, QUADS = POINTS / QUAD_GAP, UNIT_GAP = THREADS / UNITS,
                         COUNT = POINTS / UNIT_GAP;
    static constexpr unsigned ROW = T::EXTENT[2], SLICE = T::EXTENT[1], SIZE = T::EXTENT[0] * SLICE * ROW;
    static constexpr unsigned PARTS = (T::CHANNELS + ACROSS - 1) / ACROSS, PIECES = (SIZE + POINTS - 1) / POINTS;
    static constexpr bool TOGETHER =
        (SLICE == 1 || T::AXIS[1] == ROW * T::AXIS[2]) && (T::EXTENT[0] == 1 || T::AXIS[0] == SLICE * ROW * T::AXIS[2]);
    typedef Neighbours<plain, QUAD> Quad;
    typedef Neighbours<Storage, T::VECTOR> Unit;
    static_assert(T::CHANNELS % T::VECTOR == 0 && T::PLANE % QUAD == 0 && T::PLANE >= SIZE, "none is cut off");

    unsigned point; /* of the block: first point, first channel, offsets in planes and tensor */
    int channel;
    long long planes, tensor;
    /*
     * Of the thread. A warp has eight quads of four channels, or all units of some points; neither has bank
     * conflicts.
     */
    int quad_channel, quad_point, unit_channel, unit_point;
    CF_DEVICE Transpose() {
        const unsigned n = blockIdx.x;
        const long long sample = n / PARTS / PIECES;
        channel = int(n % PARTS) * ACROSS;
        point = n / PARTS % PIECES * POINTS;
        planes = (sample * T::CHANNELS + channel) * T::PLANE + point;
        tensor = sample * T::SAMPLE + channel;
        quad_channel = int(threadIdx.x) / (THREADS / ACROSS);
        quad_point = int(threadIdx.x) % (THREADS / ACROSS) * QUAD;
        unit_channel = int(threadIdx.x) % UNITS * T::VECTOR;
        unit_point = int(threadIdx.x) / UNITS;
    }
    CF_DEVICE bool has(int c, int p) const { return channel + c < T::CHANNELS && point + p < SIZE; }
    CF_DEVICE bool has_quad(int i) const { return has(quad_channel, quad_point + i * QUAD_GAP); }
    CF_DEVICE bool has_unit(int i) const { return has(unit_channel, unit_point + i * UNIT_GAP); }
    /* Places of their elements in shared memory. */
    CF_DEVICE int quad_place(int i, int e) const { return quad_channel * PITCH + quad_point + i * QUAD_GAP + e; }
    CF_DEVICE int unit_place(int i, int e) const { return (unit_channel + e) * PITCH + unit_point + i * UNIT_GAP; }
    /* Offsets in memory: of quad 0, from which the others are constant distances apart; of unit i. */
    CF_DEVICE long long in_planes() const { return planes + quad_channel * T::PLANE + quad_point; }
    CF_DEVICE long long in_tensor(int i) const {
        const unsigned n = point + (unit_point + i * UNIT_GAP), row = n / ROW;
        const Offset at = TOGETHER
                              ? Offset(n) * Offset(T::AXIS[2])
                              : Offset(row / SLICE) * Offset(T::AXIS[0]) + Offset(row % SLICE) * Offset(T::AXIS[1]) +
                                    Offset(n % ROW) * Offset(T::AXIS[2]);
        return tensor + unit_channel + at;
    }
};
/* Stores 16 bytes by one instruction. Compilers split the store of a struct into smaller ones. */
template <class B, class N> CF_DEVICE void put_sixteen(B *to, const N &n) { n.store(to); }
#ifndef CF_SIMT
CF_DEVICE void put_sixteen(float *to, const Neighbours<plain, 4> &n) {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(float(n.v[0])), "f"(float(n.v[1])),
                 "f"(float(n.v[2])), "f"(float(n.v[3])));
}
template <class S> CF_DEVICE void put_sixteen(unsigned short *to, const Neighbours<S, 8, false> &n) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(n.w[0]), "r"(n.w[1]), "r"(n.w[2]),
                 "r"(n.w[3]));
}
#endif
/* Planes to tensor, with bias, and added to the old values where wanted. */
template <class T> CF_DEVICE void nhwc_from_planes(const cf_transpose_call &call) {
    typedef Transpose<T> G;
    const G at;
    smem<real> tile = cf_dynamic_shared<real>();
    const real *const from = static_cast<const real *>(call.from) + at.in_planes();
    typename G::Quad in[G::QUADS];
    unroll<0, G::QUADS>([&](auto i) {
        in[i].clear();
        if (at.has_quad(i))
            in[i].load(from + i * G::QUAD_GAP);
    });
    unroll<0, G::QUADS>([&](auto i) {
        unroll<0, G::QUAD>([&](auto e) { tile[at.quad_place(i, e)] = in[i].template get<decltype(e)::value>(); });
    });
    real bias[T::VECTOR];
    unroll<0, T::VECTOR>([&](auto e) {
        bias[e] = 0;
        if (call.bias && at.has(at.unit_channel, 0))
            bias[e] = bias_at<T>(call.bias, at.channel + at.unit_channel + e);
    });
    __syncthreads();
    unroll<0, G::COUNT>([&](auto i) {
        if (!at.has_unit(i))
            return;
        typename G::bits *const to = static_cast<typename G::bits *>(call.to) + at.in_tensor(i);
        real v[T::VECTOR];
        unroll<0, T::VECTOR>([&](auto e) { v[e] = tile[at.unit_place(i, e)] + bias[e]; });
        typename G::Unit out;
        if (call.accumulate) {
            out.load(to);
            unroll<0, T::VECTOR>([&](auto e) { v[e] += out.template get<decltype(e)::value>(); });
        }
        out.set(v);
        put_sixteen(to, out);
    });
}
/* Tensor to planes. */
template <class T> CF_DEVICE void nhwc_to_planes(const cf_transpose_call &call) {
    typedef Transpose<T> G;
    const G at;
    smem<real> tile = cf_dynamic_shared<real>();
    typename G::Unit in[G::COUNT];
    unroll<0, G::COUNT>([&](auto i) {
        in[i].clear();
        if (at.has_unit(i))
            in[i].load(static_cast<const typename G::bits *>(call.from) + at.in_tensor(i));
    });
    unroll<0, G::COUNT>([&](auto i) {
        unroll<0, T::VECTOR>([&](auto e) { tile[at.unit_place(i, e)] = in[i].template get<decltype(e)::value>(); });
    });
    __syncthreads();
    real *const to = static_cast<real *>(call.to) + at.in_planes();
    unroll<0, G::QUADS>([&](auto i) {
        real v[G::QUAD];
        unroll<0, G::QUAD>([&](auto e) { v[e] = tile[at.quad_place(i, e)]; });
        typename G::Quad out;
        out.set(v);
        if (at.has_quad(i))
            put_sixteen(to + i * G::QUAD_GAP, out);
    });
}

/* The entry point. DIRECTION: to or from (planes). */
#define CF_NHWC_TRANSPOSE_KERNEL(DIRECTION)                                                    \
    extern "C" __global__ void __launch_bounds__(256) cf_fused(const cf_transpose_call call) { \
        cf_pdl_wait();                                                                         \
        nhwc_##DIRECTION##_planes<Tensor>(call);                                               \
    }
