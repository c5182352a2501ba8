/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution of planes with channels first on tensor cores, one row of inputs at a time: y from x, or gx
 * from gy.
 *
 *     y[i][j] = sum over r, s of w[r][s] x[i + r - ROW_PAD][j + s - COLUMN_PAD]
 *
 * A row of outputs is cut into SEGMENTS of eight. Outputs of segment g begin at column 8 g - SHIFT, and the 16 inputs
 * that they may read are two aligned units of a row of x. A product (m16n8k16) has the segments of PACK samples: m =
 * samples and segments, k = inputs, n = outputs. B is the Toeplitz matrix of one kernel row, as in signals.cuh. A warp
 * walks down the rows of x. It reads each row from shared memory once, for all kernel rows, and adds to the sums of
 * KERNEL_Y rows of y. One of them is complete then, and is stored: lanes have neighbouring words of it.
 *
 * A warp copies rows to a ring in shared memory, for itself alone. So warps do not wait for one another.
 *
 * The host prints F (plane_rows.c) with: Storage, Weights, Bias (types of elements), X and Y (planes), KERNEL_Y,
 * KERNEL_X, LEAD (inputs of a segment before the first one that is read), ROW_PAD, SHIFT, SEGMENTS, PACK, WARPS, PARTS
 * (of the rows of a plane, among as many warps), PART_ROWS, FLIP, SCALED (as signals.cuh). TERMS, STRIDE_X and UP_X are
 * those of signals.cuh. X and Y have NUMBERS (of a unit), ROWS, COLUMNS, STRIDE (elements from a row to the next one),
 * GRANULE (the elements that one copy moves) and FIRST (the place of element 0 in a row of the ring).
 */
#pragma once

#include "conv/toeplitz/weights.cuh"

/* Rows of the planes of PACK samples on their way to shared memory. S: the side. UNITS: of 16 bytes, of a row of one
 * sample. BATCH rows are in flight together, BATCHES - 1 times. */
template <class F, class S, int UNITS> struct PlaneRing {
    static constexpr int SPARE = F::PACK * F::SEGMENTS < 16 ? 2 : 0, /* units of zeros */
        ROW = F::PACK * UNITS + SPARE, BATCH = F::KERNEL_Y < 4 ? 2 * F::KERNEL_Y : F::KERNEL_Y, BATCHES = 3,
                         SIZE = BATCHES * BATCH * ROW, OF_ROW = S::COLUMNS / S::GRANULE, PIECES = F::PACK * OF_ROW;
    const unsigned short *from; /* the first piece of this lane in the next row that is copied */
    int row, end, samples;      /* that row; the row after the last one; samples that are there */

    CF_DEVICE PlaneRing(const cf_toeplitz_side &s, long long all, long long group, long long sample, int first,
                        int behind)
        : row(first), end(behind), samples(int(all - sample < F::PACK ? all - sample : F::PACK)) {
        const int lane = int(threadIdx.x) % 32;
        from = static_cast<const unsigned short *>(s.memory) + (sample + lane / OF_ROW) * s.sample_stride +
               group * s.group_stride + (long long)first * S::STRIDE + lane % OF_ROW * S::GRANULE;
    }

    /* Copies a row to its place in the ring. Samples that do not exist are zeros. */
    template <bool CHECKED, int U> CF_DEVICE void copy_row(const cf_toeplitz_side &s, smem<uint4> to) const {
        const int lane = int(threadIdx.x) % 32;
        unroll<0, (PIECES + 31) / 32>([&](auto n) {
            const int i = lane + 32 * n, own = i / OF_ROW, column = i % OF_ROW * S::GRANULE;
            const long long behind =
                n > 0 ? (own - lane / OF_ROW) * s.sample_stride + column - lane % OF_ROW * S::GRANULE : 0;
            if (i < PIECES && (!CHECKED || unsigned(row + U) < unsigned(end)))
                copy_async<S::GRANULE / 2>(smem_cast<float>(to + U * ROW) + (4 * own * UNITS + (S::FIRST + column) / 2),
                                           own < samples
                                               ? reinterpret_cast<const float *>(from + (behind + U * S::STRIDE))
                                               : static_cast<const float *>(s.memory),
                                           own < samples);
        });
    }
    /* Copies a batch of rows. */
    CF_DEVICE void copy(const cf_toeplitz_side &s, smem<uint4> to) {
        if (row >= 0 && row + BATCH <= end)
            unroll<0, BATCH>([&](auto u) { copy_row<false, decltype(u)::value>(s, to); });
        else
            unroll<0, BATCH>([&](auto u) { copy_row<true, decltype(u)::value>(s, to); });
        from += BATCH * S::STRIDE;
        row += BATCH;
    }
};

/* The unit of the ring that a lane names for ldmatrix: the first unit of segment and sample m, or zeros. */
template <class F, int UNITS> CF_DEVICE int plane_segment(int m) {
    return m < F::PACK * F::SEGMENTS ? m / F::SEGMENTS * UNITS + m % F::SEGMENTS : F::PACK * UNITS;
}

/* Where a warp stores outputs of a row: those of lane / 4, and those of lane / 4 + 8. */
template <class F> struct PlaneOutputs {
    unsigned short *to[2]; /* in row 0 of a batch */
    bool live[2];
    CF_DEVICE PlaneOutputs(const cf_toeplitz_call &call, long long group, long long sample, int row) {
        for (int half = 0; half < 2; ++half) {
            const int lane = int(threadIdx.x) % 32, m = lane / 4 + 8 * half,
                      column = m % F::SEGMENTS * 8 - F::SHIFT + lane % 4 * 2;
            const long long own = sample + m / F::SEGMENTS;
            live[half] = m < F::PACK * F::SEGMENTS && own < call.samples && unsigned(column) < unsigned(F::Y::COLUMNS);
            to[half] = static_cast<unsigned short *>(const_cast<void *>(call.y.memory)) + own * call.y.sample_stride +
                       group * call.y.group_stride + (long long)row * F::Y::STRIDE + column;
        }
    }
    template <int U> CF_DEVICE void store(const float (&sum)[4], float down, float bias, bool accumulate) const {
#pragma unroll
        for (int half = 0; half < 2; ++half)
            if (live[half]) {
                unsigned short *const at = to[half] + U * F::Y::STRIDE;
                float a = sum[2 * half], b = sum[2 * half + 1];
                a = F::SCALED ? a * down + bias : a + bias;
                b = F::SCALED ? b * down + bias : b + bias;
                if (accumulate) {
                    a += F::Storage::load(at);
                    b += F::Storage::load(at + 1);
                }
                *reinterpret_cast<unsigned *>(at) = F::Storage::word({a, b});
            }
    }
};

template <class F> CF_DEVICE void plane_rows(const cf_toeplitz_call &call) {
    constexpr int UNITS = F::SEGMENTS + 1;
    typedef PlaneRing<F, typename F::X, UNITS> Ring;
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
    const long long group = blockIdx.x, items = (call.samples + F::PACK - 1) / F::PACK * F::PARTS;
    const smem<uint4> ring = cf_dynamic_shared<uint4>() + warp * Ring::SIZE;
    const int own = plane_segment<F, UNITS>(lane % 16) + lane / 16;
    for (int i = lane; i < Ring::SIZE; i += 32)
        ring[i] = make_uint4(0, 0, 0, 0);
    __syncwarp();
    const WeightScale<F> scale(call.w, group);
    const float bias = call.bias ? float(bias_at<F>(call.bias, group)) : 0.0f;
    unsigned b[F::KERNEL_Y][1][2];
    unroll<0, F::KERNEL_Y>([&](auto r) { toeplitz_fragment<F>(b[r], call.w, group, r, 0, scale.up); });
    for (long long item = (long long)blockIdx.y * F::WARPS + warp; item < items;
         item += (long long)gridDim.y * F::WARPS) {
        const long long sample = item / F::PARTS * F::PACK;
        /* Rows of y, and of x that they read. */
        const int first = int(item % F::PARTS) * F::PART_ROWS, behind = cf_min_of(first + F::PART_ROWS, F::Y::ROWS),
                  from = cf_max_of(first - F::ROW_PAD, 0), last = behind - F::ROW_PAD + F::KERNEL_Y - 1,
                  end = cf_min_of(last, F::X::ROWS);
        PlaneOutputs<F> out(call, group, sample, from + F::ROW_PAD - F::KERNEL_Y + 1);
        Ring x(call.x, call.samples, group, sample, from, end);
        for (int batch = 0; batch < Ring::BATCHES - 1; ++batch) {
            x.copy(call.x, ring + batch * (Ring::BATCH * Ring::ROW));
            tiles_commit();
        }
        float sum[F::KERNEL_Y][4] = {};
        int batch = 0;
#pragma unroll 1
        for (int row = from; row < last; row += Ring::BATCH) {
            tiles_wait<Ring::BATCHES - 2>();
            __syncwarp();
            const smem<uint4> at = ring + batch * (Ring::BATCH * Ring::ROW);
            batch = batch == 0 ? Ring::BATCHES - 1 : batch - 1; /* the batch that has been read */
            x.copy(call.x, ring + batch * (Ring::BATCH * Ring::ROW));
            tiles_commit();
            batch = (batch + 2) % Ring::BATCHES;
            const int begin = row + F::ROW_PAD - F::KERNEL_Y + 1; /* the row of y that is complete first */
            const auto add = [&](auto all) {
                constexpr bool ALL = decltype(all)::value;
                unroll<0, Ring::BATCH>([&](auto u) {
                    constexpr int U = decltype(u)::value, DONE = (U + 1) % F::KERNEL_Y;
                    if (ALL || row + U < end) {
                        unsigned a[4];
                        ldmatrix_x4(a, at, own + U * Ring::ROW);
                        unroll<0, F::KERNEL_Y>([&](auto r) {
                            constexpr int SUM = (U - decltype(r)::value + F::KERNEL_Y) % F::KERNEL_Y;
                            multiply_tile<typename F::Storage>(sum[SUM], a, b[r][0][0], b[r][0][1]);
                        });
                    }
                    if (ALL || (begin + U >= first && begin + U < behind))
                        out.template store<U>(sum[DONE], scale.down, bias, !ALL && call.accumulate);
                    sum[DONE][0] = sum[DONE][1] = sum[DONE][2] = sum[DONE][3] = 0;
                });
            };
            if (begin >= first && row + Ring::BATCH <= end && !call.accumulate)
                add(Int<1>{});
            else
                add(Int<0>{});
            out.to[0] += Ring::BATCH * F::Y::STRIDE;
            out.to[1] += Ring::BATCH * F::Y::STRIDE;
        }
        tiles_wait<0>();
        __syncwarp();
    }
}
