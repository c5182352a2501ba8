/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of a plane with reflect, circular or replicate padding. A block computes the gradient of the whole
 * padded plane in FP32, in shared memory. The gradient of each position of the padding is added to the element that it
 * was copied from: first the rows of the padding, then its columns. The order of additions is fixed.
 *
 * The host prints Fold (folded_planes.c) with: MODE, HEIGHT and BREADTH (of gx), TOP and LEFT (the padding before it),
 * ROWS and COLUMNS (of the padded plane).
 */
#pragma once

#include "conv/toeplitz/tile.cuh"

/* By all threads of a plane, with equal calls for all planes of a block. */
template <class F, int PITCH> CF_DEVICE void fold_plane(smem<float> plane, int thread) {
    typedef typename F::Fold D;
    constexpr int THREADS = 32 * F::WARPS;
    for (int column = thread; column < D::COLUMNS; column += THREADS)
        for (int i = 0; i < D::ROWS - D::HEIGHT; ++i) {
            const int row = i < D::TOP ? i : i + D::HEIGHT,
                      to = (D::TOP + padded_index<D::MODE>(row - D::TOP, D::HEIGHT)) * PITCH + column;
            plane[to] = plane[to] + plane[row * PITCH + column];
        }
    __syncthreads();
    for (int row = thread; row < D::HEIGHT; row += THREADS)
        for (int i = 0; i < D::COLUMNS - D::BREADTH; ++i) {
            const int column = i < D::LEFT ? i : i + D::BREADTH, first = (D::TOP + row) * PITCH,
                      to = first + D::LEFT + padded_index<D::MODE>(column - D::LEFT, D::BREADTH);
            plane[to] = plane[to] + plane[first + column];
        }
    __syncthreads();
}

/* The folded plane to gx, by all threads of the plane. EACH elements are one store. */
template <class F, int PITCH>
CF_DEVICE void store_folded(const cf_toeplitz_call &call, smem<float> plane, typename F::Storage::bits *gx,
                            int thread) {
    typedef typename F::Fold D;
    constexpr int EACH = !F::Storage::PLAIN && F::GRANULE > 1 ? 2 : 1, OF_ROW = (D::BREADTH + EACH - 1) / EACH;
    for (int i = thread; i < D::HEIGHT * OF_ROW; i += 32 * F::WARPS) {
        const int row = i / OF_ROW, column = i % OF_ROW * EACH;
        smem<float> from = plane + ((D::TOP + row) * PITCH + D::LEFT + column);
        typename F::Storage::bits *const to = gx + (row * call.y.row_stride + column * call.y.column_stride);
        const bool pair = EACH == 2 && column + 2 <= D::BREADTH;
        float first = from[0], second = pair ? float(from[1]) : 0.0f;
        if (call.accumulate) {
            first += float(F::Storage::load(to));
            second += pair ? float(F::Storage::load(to + 1)) : 0.0f;
        }
        if constexpr (EACH == 2) {
            if (pair) {
                *reinterpret_cast<unsigned *>(to) = F::Storage::word({first, second});
                continue;
            }
        }
        F::Storage::store(to, first);
    }
}
