/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sizes that all fused kernels share, and the table that says where the planes of a block are. call.h has their
 * arguments.
 *
 * A plane is one channel of one row, for one group. A row is a sample, or one tile or shift of a sample. A column
 * is a channel of a group, or one phase of a channel where a stride splits it into phases.
 *
 * A block holds P planes of one column. Its shared memory begins with two tables of P entries, one for each side (X
 * is what the kernel reads, Y what it writes; in kernels of the gradient of the weights they are x and gy):
 *
 *     bytes     0..7      8..15      16..27            28..31
 *     entry     signal    weights    start of each     channel
 *               offset    offset     axis              (for the bias)
 *
 * Places (fbfft/shared_memory/addressing.cuh) reads these entries.
 */
#pragma once

#include "conv/fused/call.h"
#include "fbfft/shared_memory/kernel.cuh"

/*
 * Sizes of problem F. AXIS is the last axis of the forward transform, and STEPS its number of FFT steps: the
 * product takes place in registers after the last step of AXIS. BINS: bins of a plane. BUFFER: complex numbers of
 * shared memory for P planes.
 */
template <class F> struct Fused {
    typedef typename F::X X;
    typedef typename F::Y Y;
    typedef PlaneGeometry<X> G;
    static_assert(X::P == Y::P && X::T == Y::T && X::PITCH == Y::PITCH && X::PLANE == Y::PLANE && !X::PACKS_NYQUIST,
                  "one geometry");
    static constexpr int AXIS = G::LAST, STEPS = AXIS == 0 ? G::O0::STEPS : AXIS == 1 ? G::O1::STEPS : G::O2::STEPS;
    static constexpr long long BINS = (long long)G::N0 * G::N1 * G::BINS;
    static constexpr int BUFFER = X::P * G::PLANE;
    static constexpr bool MIRRORS = AXIS == 2 && X::KIND == PACKED_REAL &&
                                    STEPS > 1; /* a kernel with one input and one output then uses MirrorTask */
    static constexpr bool HAS_PHASES_X = X::AXIS[0].phases * X::AXIS[1].phases * X::AXIS[2].phases > 1;
    static constexpr bool HAS_PHASES_Y = Y::AXIS[0].phases * Y::AXIS[1].phases * Y::AXIS[2].phases > 1;
};

/* ----------------------------------------------------------------------------------------------- tables of planes */

/* Writes one entry. weights: complex numbers between the weight spectra of neighbouring groups. */
template <class K>
CF_DEVICE void fused_entry(smem<char> entry, const cf_fused_side &side, int row, int group, int column, int columns,
                           long long weights) {
    find_plane<K>(entry, row, column, columns, side.sample_stride, group * side.group_stride);
    smem_cast<long long>(entry)[1] = group * weights;
    smem_cast<int>(entry)[7] = smem_cast<int>(entry)[7] + group * int(K::CHANNELS);
}
/*
 * Writes the table of one column of one side. place(p, row, group) returns the row and the group of plane p. Where
 * the last block has fewer than P planes, the entries beyond repeat the last plane, so that their loads stay inside
 * the tensor.
 */
template <class K, class F>
CF_DEVICE PlaneTable<K> fused_places(smem<char> table, const cf_fused_side &side, int live, int column, int columns,
                                     long long weights, F place) {
    for (int p = int(threadIdx.x); p < K::P; p += K::T) {
        int row, group;
        place(p < live ? p : live - 1, row, group);
        fused_entry<K>(table + p * 32, side, row, group, column, columns, weights);
    }
    __syncthreads();
    return {table, live};
}
/* Writes the tables of column 0 of both sides. The caller must add a barrier. */
template <class X, class Y, class F>
CF_DEVICE void fused_tables(smem<char> x, smem<char> y, const cf_fused_call &call, int live, int in, int out,
                            long long weights, F place) {
    for (int p = int(threadIdx.x); p < X::P; p += X::T) {
        int row, group;
        place(p < live ? p : live - 1, row, group);
        fused_entry<X>(x + p * 32, call.x, row, group, 0, in, weights);
        fused_entry<Y>(y + p * 32, call.y, row, group, 0, out, weights);
    }
}
