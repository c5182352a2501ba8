/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planes from memory to spectra in shared memory, and back.
 *
 * There are four ways to move planes. Constants of the kernel choose one at compile time:
 *
 *     channels-last tensors                    load_units(), store_units()       nhwc_io.cuh
 *     channels-first, real planes              load_rows(), store_rows()         plane_load.cuh, plane_store.cuh
 *     the same with few 16-bit elements        Singles                           plane_load.cuh
 *     everything else                          load_planes(), store_staged(),    fbfft/shared_memory/signal.cuh
 *                                              store_signal()
 *
 * Shared memory holds planes in the layout of fbfft/shared_memory/geometry.cuh. The FFT along axis 2 (rows) comes
 * first, then axis 1 (columns), then axis 0. The inverse runs backwards. All steps work in place.
 */
#pragma once

#include "conv/fused/fused_call.cuh"
#include "conv/fused/nhwc_io.cuh"
#include "conv/fused/pruned_fft.cuh"

/*
 * Whether elements are copied one at a time, by cp.async from memory to shared memory, without a register in
 * between.
 */
template <class K>
constexpr bool SINGLY =
    CAN_SWEEP<K> &&K::KIND == TWO_ROWS_AS_COMPLEX &&K::Storage::PLAIN &&K::VECTOR == 1 && !K::STAGED;

/* Starts to load planes. They are in shared memory after planes_arrive(). */
template <class K> CF_DEVICE void planes_in(smem<cplx> z, const PlaneTable<K> &plane_table, const void *memory) {
    if constexpr (INTERLEAVED<K>) {
        load_units<K>(z, plane_table, memory);
    } else if constexpr (SINGLY<K>) {
        load_rows<K, 1, true>(z, plane_table, memory);
    } else if constexpr (FEW_SINGLES<K>) {
        Singles<K> numbers;
        numbers.load(plane_table, memory);
        numbers.put(z, plane_table);
    } else if constexpr (CAN_SWEEP<K>) {
        load_rows<K, K::VECTOR>(z, plane_table, memory);
    } else {
        cf_shared_fft_call call = {};
        call.in = memory;
        load_planes<K>(z, plane_table, call);
    }
}
/* The planes of both sides, held in registers while they are loaded. Empty where either side has too many elements. */
template <class X, class Y, bool FEW = FEW_SINGLES<X> &&FEW_SINGLES<Y>> struct BothSingles {};
template <class X, class Y> struct BothSingles<X, Y, true> {
    Singles<X> x;
    Singles<Y> y;
    CF_DEVICE void load(const PlaneTable<X> &from_x, const void *memory_x, const PlaneTable<Y> &from_y,
                        const void *memory_y) {
        x.load(from_x, memory_x);
        y.load(from_y, memory_y);
    }
    CF_DEVICE void put(smem<cplx> to_x, const PlaneTable<X> &from_x, smem<cplx> to_y,
                       const PlaneTable<Y> &from_y) const {
        x.put(to_x, from_x);
        y.put(to_y, from_y);
    }
};
/* Waits for the planes of all configs K, and for all threads of the block. */
template <class... K> CF_DEVICE void planes_arrive() {
    if constexpr (((K::STAGED || SINGLY<K>) || ...))
        wait_async();
    __syncthreads();
}
/* Stores planes to memory. */
template <class K>
CF_DEVICE void planes_to(smem<cplx> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    if constexpr (INTERLEAVED<K>)
        store_units<K>(z, plane_table, call);
    else if constexpr (CAN_SWEEP<K>)
        store_rows<K, K::VECTOR>(z, plane_table, call);
    else if constexpr (K::STAGED)
        store_staged<K, K::VECTOR>(z, plane_table, call);
    else
        store_signal<K>(z, plane_table, call);
}
/* Stores planes. The branch on accumulate stands outside, so that the compiler drops the test of each element. */
template <class K> CF_DEVICE void planes_out(smem<cplx> z, const PlaneTable<K> &plane_table, cf_shared_fft_call call) {
    if (call.accumulate) {
        call.accumulate = 1;
        planes_to<K>(z, plane_table, call);
    } else {
        planes_to<K>(z, plane_table, call);
    }
}

/* The FFT steps of a forward transform. Without ALL_STEPS, the last step of the last axis is left to the product. */
template <class K, bool ALL_STEPS> CF_DEVICE void fused_steps(smem<cplx> z) {
    typedef PlaneGeometry<K> G;
    const cf_shared_fft_call call = {};
    const BlockPlanes<K> planes = {z, call};
    steps_of_axis<2, false, ALL_STEPS || G::LAST != 2>(planes);
    if constexpr (G::LAST <= 1)
        steps_of_axis<1, false, ALL_STEPS || G::LAST != 1>(planes);
    if constexpr (G::LAST == 0)
        steps_of_axis<0, false, ALL_STEPS>(planes);
}
/* Loads planes and transforms them. */
template <class K, bool ALL_STEPS>
CF_DEVICE void fused_load(smem<cplx> z, const PlaneTable<K> &plane_table, const void *memory) {
    planes_in<K>(z, plane_table, memory);
    planes_arrive<K>();
    fused_steps<K, ALL_STEPS>(z);
}

/* The arguments with which the functions of fbfft/shared_memory store planes. */
template <class K> CF_DEVICE cf_shared_fft_call fused_call(void *memory, const void *bias, const cf_fused_call &c) {
    cf_shared_fft_call call = {};
    call.out = memory;
    call.bias = bias;
    call.scale = c.scale;
    call.accumulate = c.accumulate;
    return call;
}
/* The FFT steps of an inverse transform. Without ALL_STEPS, the product has already done the first step. */
template <class K, bool ALL_STEPS> CF_DEVICE void fused_steps_back(smem<cplx> z, const cf_shared_fft_call &call) {
    typedef PlaneGeometry<K> G;
    const BlockPlanes<K> planes = {z, call};
    if constexpr (G::LAST == 0)
        steps_of_axis<0, true, ALL_STEPS>(planes);
    if constexpr (G::LAST <= 1)
        steps_of_axis<1, true, ALL_STEPS || G::LAST != 1>(planes);
    steps_of_axis<2, true, ALL_STEPS || G::LAST != 2>(planes);
}
/* Transforms planes back and stores them. */
template <class K, bool ALL_STEPS>
CF_DEVICE void fused_store(smem<cplx> z, const PlaneTable<K> &plane_table, void *memory, const void *bias,
                           const cf_fused_call &c) {
    const cf_shared_fft_call call = fused_call<K>(memory, bias, c);
    fused_steps_back<K, ALL_STEPS>(z, call);
    planes_out<K>(z, plane_table, call);
}
