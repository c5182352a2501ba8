/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution of volumes with short kernels on tensor cores: y from x, or gx from gy.
 *
 *     y[d][i][j] = sum over q, r, s of w[q][r][s] x[d + q - pad][i + r - pad][j + s - pad]
 *
 * A warp computes 16 rows and 16 columns of outputs, and walks down the depths. It keeps sums of eight depths of y.
 * Output d stands in slot d % 8. A product (m16n8k16) adds what two rows of one depth of x give to one row of outputs:
 *
 *     m    eight slots, once for even columns and once for odd ones
 *     n    the eight pairs of columns of 16 outputs
 *     k    two rows of x, each with eight columns that begin where an even output begins to read
 *
 * Row (slot, parity) of A has the taps w[q][r][k - parity], with q = depth of x + pad - depth of y. A depends on the
 * depth of x only by an order of its rows, so ldmatrix reads it from one table. B is a word of x. If an even
 * output begins to read at an odd column, there are two ways. Up to six taps of a row begin one column later in A
 * (OFFSET). With seven taps, each word of B is put together from two words of x (BETWEEN).
 *
 * A slot is set to the bias before its output begins, and stored when its output is complete. A block has one channel
 * and loads planes of x two depths ahead. Sums are in FP32. The order of additions does not depend on the batch or the
 * launch.
 *
 * The host prints F (volume_config.c) with: Storage, Weights, Bias (types of elements), X (the tile of a plane of x:
 * ROWS, UNITS of eight columns, and GRANULE, the elements that one copy moves), KERNEL_Z, KERNEL_Y, KERNEL_X, LEAD
 * (columns before the first input), WARPS and ACROSS (warps of a block, down and across), GRANULE (elements that one
 * store writes), OUT_ROW (from one row of outputs to the next), FLIP (the taps in reverse order: gx from gy), SCALED
 * (FP32 weights beside FP16 signals).
 */
#pragma once

#include "conv/toeplitz/signals.cuh"

template <class F> struct Volumes {
    static constexpr int TAPS = F::KERNEL_Z * F::KERNEL_Y * F::KERNEL_X, BUFFERS = 3, SIZE = F::X::ROWS * F::X::UNITS,
                         ROW_WORDS = 4 * F::X::UNITS, TABLE_ROWS = F::KERNEL_Y / 2 * 2 + 3, /* of A */
        OFFSET = F::LEAD % 2 && F::KERNEL_X <= 6;           /* columns of k before the first tap */
    static constexpr bool BETWEEN = F::LEAD % 2 && !OFFSET; /* words of B begin between words of x */
};

template <class F>
CF_DEVICE float volume_tap(const cf_toeplitz_volume_call &call, long long group, int q, int r, int s) {
    if (unsigned(q) >= unsigned(F::KERNEL_Z) || unsigned(r) >= unsigned(F::KERNEL_Y) ||
        unsigned(s) >= unsigned(F::KERNEL_X))
        return 0;
    cf_toeplitz_taps w = call.planes.w;
    w.memory = static_cast<const typename F::Weights::bits *>(w.memory) +
               (F::FLIP ? F::KERNEL_Z - 1 - q : q) * call.w_depth_stride;
    return tap_at<F>(w, group, r, s);
}

/* The largest tap of a channel, in all lanes. */
template <class F> CF_DEVICE float largest_tap(const cf_toeplitz_volume_call &call, long long group) {
    float largest = 0;
    for (int i = int(threadIdx.x) % 32; i < Volumes<F>::TAPS; i += 32)
        largest = fmaxf(largest, fabsf(volume_tap<F>(call, group, i / (F::KERNEL_Y * F::KERNEL_X),
                                                     i / F::KERNEL_X % F::KERNEL_Y, i % F::KERNEL_X)));
    for (int lanes = 16; lanes > 0; lanes /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, lanes));
    return largest;
}

/* The table of A: [row of the kernel, from -1 on][parity][q], each a unit of eight columns. THREADS write it. */
template <class F, int THREADS>
CF_DEVICE void write_taps(smem<uint4> table, const cf_toeplitz_volume_call &call, long long group, float scale,
                          int thread) {
#pragma unroll 6 /* loads that wait together */
    for (int i = thread; i < Volumes<F>::TABLE_ROWS * 64; i += THREADS) {
        const int unit = i / 4, q = unit % 8, parity = unit / 8 % 2, r = unit / 16 - 1,
                  s = i % 4 * 2 - parity - Volumes<F>::OFFSET;
        smem_cast<unsigned>(table)[i] = F::Storage::word(
            {volume_tap<F>(call, group, q, r, s) * scale, volume_tap<F>(call, group, q, r, s + 1) * scale});
    }
}

/* The word of B in the row of x at `row`. */
template <class F> CF_DEVICE unsigned input_word(smem<unsigned> row) {
    if (Volumes<F>::BETWEEN)
        return row[0] >> 16 | row[1] << 16;
    return row[0];
}

/* Adds one depth of x. Pairs of its rows begin at even rows. An odd row of outputs has no tap for the first row of its
 * first pair. x: where this lane reads in the first row. at: the unit of the table where it reads A of row -1. */
template <class F> CF_DEVICE void add_depth(float (&sum)[16][4], smem<unsigned> x, smem<uint4> table, int at) {
    constexpr int ROWS = 15 + F::KERNEL_Y;
    unsigned in[ROWS + 1];
    in[ROWS] = 0;
    unroll<0, ROWS>([&](auto r) { in[r] = input_word<F>(x + r * Volumes<F>::ROW_WORDS); });
    unroll<0, 2>([&](auto odd) {
        unroll<0, (F::KERNEL_Y + 1 + odd) / 2>([&](auto pair) {
            unsigned taps[4];
            ldmatrix_x4(taps, table, at + 32 * pair + 16 * (1 - odd));
            unroll<0, 8>([&](auto i) {
                multiply_tile<typename F::Storage>(sum[2 * i + odd], taps, in[2 * i + 2 * pair],
                                                   in[2 * i + 2 * pair + 1]);
            });
        });
    });
}

/*
 * Copies planes to shared memory, row after row. A tile has the same place in all depths. A thread of few copies
 * computes once where they begin. The copies are asynchronous unless rows begin at any address (GRANULE 1). They are
 * there after tiles_wait() and a barrier. The number of columns is a multiple of GRANULE.
 */
template <class S, int THREADS> struct PlaneLoader {
    static constexpr int EACH = S::GRANULE > 1 ? S::GRANULE : 2, OF_ROW = 8 / EACH * S::UNITS,
                         COPIES = S::ROWS * OF_ROW, OF_THREAD = (COPIES + THREADS - 1) / THREADS,
                         HELD = OF_THREAD <= 2 ? OF_THREAD : 0, OUTSIDE = -2147483647 - 1;
    const cf_toeplitz_side &side;
    Corner corner;
    int held[cf_max_of(HELD, 1)];

    CF_DEVICE PlaneLoader(const cf_toeplitz_side &s, Corner c) : side(s), corner(c) {
        unroll<0, HELD>([&](auto i) { held[i] = offset_of(THREADS * i + int(threadIdx.x)); });
    }
    CF_DEVICE int column_of(int copy) const { return corner.column + copy % OF_ROW * EACH; }
    /* From the beginning of the plane, or OUTSIDE. */
    CF_DEVICE int offset_of(int copy) const {
        const int row = corner.row + copy / OF_ROW, column = column_of(copy);
        const bool inside =
            S::GRANULE > 1 ? unsigned(column) < unsigned(side.columns) : column + 1 >= 0 && column < side.columns;
        return inside && unsigned(row) < unsigned(side.rows) ? int(row * side.row_stride) + column : OUTSIDE;
    }
    CF_DEVICE void copy_one(smem<uint4> to, const unsigned short *plane, int copy, int offset, bool there) const {
        const bool inside = there && offset != OUTSIDE;
        smem<unsigned> place = smem_cast<unsigned>(to) + copy * (EACH / 2);
        if (COPIES % THREADS != 0 && copy >= COPIES)
            return;
        if (S::GRANULE > 1)
            copy_async<EACH / 2>(smem_cast<float>(place),
                                 reinterpret_cast<const float *>(inside ? plane + offset : plane), inside);
        else
            load_granule<S>(place, plane + (inside ? offset - column_of(copy) : 0), plane, inside, column_of(copy),
                            side.columns);
    }
    /* there: the plane exists; otherwise its elements are zero. */
    CF_DEVICE void load(smem<uint4> to, const unsigned short *plane, bool there) const {
        unroll<0, HELD>([&](auto i) { copy_one(to, plane, THREADS * i + int(threadIdx.x), held[i], there); });
        if (HELD > 0)
            return;
#pragma unroll 1
        for (int copy = int(threadIdx.x); copy < COPIES; copy += THREADS)
            copy_one(to, plane, copy, offset_of(copy), there);
    }
};

/* What sums become. */
template <class F> struct Outputs {
    float down, bias;
    /* Output i of four neighbours of a lane. */
    CF_DEVICE float value(const float (&s)[4], int i) const {
        const float sum = s[i % 2 * 2 + i / 2];
        return F::SCALED ? sum * down + bias : sum;
    }
};

/* The four neighbouring outputs of this lane in each row, stored by the lanes of a slot. */
template <class F> struct DepthStore {
    typedef typename F::Storage::bits bits;
    bits *to;
    int rows, columns; /* that are left of the plane; a plane has a multiple of GRANULE columns */
    bool accumulate;
    Outputs<F> out;

    CF_DEVICE void elements(bits *p, const float (&s)[4]) const {
        unroll<0, 4>([&](auto i) {
            if (i < columns)
                F::Storage::store(p + i, accumulate ? out.value(s, i) + F::Storage::number(p[i]) : out.value(s, i));
        });
    }
    CF_DEVICE void words(bits *p, const float (&s)[4]) const {
        const unsigned first = F::Storage::word({out.value(s, 0), out.value(s, 1)}),
                       second = F::Storage::word({out.value(s, 2), out.value(s, 3)});
        if constexpr (F::GRANULE >= 4) {
            *reinterpret_cast<float2 *>(p) = make_float2(__uint_as_float(first), __uint_as_float(second));
        } else {
            reinterpret_cast<unsigned *>(p)[0] = first;
            if (columns >= 4)
                reinterpret_cast<unsigned *>(p)[1] = second;
        }
    }
    CF_DEVICE void store(const float (&sum)[16][4]) const {
        if (columns <= 0)
            return;
        if (F::GRANULE > 1 && !accumulate && rows >= 16)
            unroll<0, 16>([&](auto i) { words(to + i * F::OUT_ROW, sum[i]); });
        else if (F::GRANULE > 1 && !accumulate)
            unroll<0, 16>([&](auto i) {
                if (i < rows)
                    words(to + i * F::OUT_ROW, sum[i]);
            });
        else
            unroll<0, 16>([&](auto i) {
                if (i < rows)
                    elements(to + i * F::OUT_ROW, sum[i]);
            });
    }
};

/* The items of a block: tiles of a part of the depths of a sample. */
template <class F> struct VolumeItem {
    long long sample;
    int tile, begin, end; /* the depths of outputs */
    int reads, read_end;  /* the depths that they read, also in the padding */
    int first, last;      /* those of them that x has */
    CF_DEVICE VolumeItem(const cf_toeplitz_volume_call &call, long long item) {
        const int tiles = call.planes.tiles_down * call.planes.tiles_across, part = int(item / tiles % call.parts);
        sample = item / tiles / call.parts;
        tile = int(item % tiles);
        begin = part * call.part_depths;
        end = cf_min_of(begin + call.part_depths, call.y_depths);
        reads = begin - call.depth_pad;
        read_end = end - call.depth_pad + F::KERNEL_Z - 1;
        first = cf_max_of(reads, 0);
        last = cf_min_of(read_end, call.x_depths);
    }
    CF_DEVICE Corner output(const cf_toeplitz_call &call) const {
        return {tile / call.tiles_across * (16 * F::WARPS), tile % call.tiles_across * (16 * F::ACROSS)};
    }
};
CF_DEVICE long long volume_items(const cf_toeplitz_volume_call &call) {
    return call.planes.samples * call.parts * call.planes.tiles_down * call.planes.tiles_across;
}

/* The first element of a plane. */
CF_DEVICE unsigned short *plane_of(const cf_toeplitz_side &side, long long depth_stride, long long sample,
                                   long long group, int depth) {
    return static_cast<unsigned short *>(const_cast<void *>(side.memory)) + sample * side.sample_stride +
           group * side.group_stride + depth * depth_stride;
}

template <class F> CF_DEVICE void toeplitz_volumes(const cf_toeplitz_volume_call &volume) {
    typedef Volumes<F> G;
    const cf_toeplitz_call &call = volume.planes;
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, slot = lane / 4;
    const long long group = blockIdx.x;
    smem<uint4> memory = cf_dynamic_shared<uint4>(), table = memory + G::BUFFERS * G::SIZE;
    const int row = warp / F::ACROSS * 16, column = warp % F::ACROSS * 16,
              place = row * G::ROW_WORDS + column / 2 + F::LEAD / 2 + lane / 4 + lane % 4;
    const WeightScale<F> scale(volume, group);
    write_taps<F, 32 * F::WARPS * F::ACROSS>(table, volume, group, scale.up, int(threadIdx.x));
    const float bias = call.bias ? float(bias_at<F>(call.bias, group)) : 0.0f, start = F::SCALED ? 0.0f : bias;
    for (long long i = blockIdx.y; i < volume_items(volume); i += gridDim.y) {
        const VolumeItem<F> item(volume, i);
        const Corner output = item.output(call), input = {output.row - call.row_pad, output.column - call.column_pad};
        const int first = item.first, last = item.last;
        const PlaneLoader<typename F::X, 32 * F::WARPS * F::ACROSS> loader(call.x, input);
        const unsigned short *from = plane_of(call.x, volume.x_depth_stride, item.sample, group, first);
        DepthStore<F> out = {plane_of(call.y, volume.y_depth_stride, item.sample, group, item.begin) +
                                 (output.row + row) * F::OUT_ROW + (output.column + column + lane % 4 * 4),
                             call.y.rows - output.row - row,
                             call.y.columns - output.column - column - lane % 4 * 4,
                             call.accumulate != 0,
                             {scale.down, bias}};
        int buffer = 0; /* of the plane that is read next */
        const auto load = [&](int depth, int to) {
            if (depth < last)
                loader.load(memory + to * G::SIZE, from, true);
            from += volume.x_depth_stride;
            tiles_commit();
        };
        float sum[16][4];
        unroll<0, 16>([&](auto r) { sum[r][0] = sum[r][1] = sum[r][2] = sum[r][3] = start; });
        __syncthreads(); /* no warp reads the last item any more */
        load(first, 0);
        load(first + 1, 1);
#pragma unroll 1
        for (int depth = item.reads; depth < item.read_end; ++depth) {
            const int newest = depth + volume.depth_pad; /* the output that begins to read here */
            if (slot == (newest & 7))
                unroll<0, 16>([&](auto r) { sum[r][0] = sum[r][1] = sum[r][2] = sum[r][3] = start; });
            if (depth >= first && depth < last) {
                tiles_wait<1>();
                __syncthreads();
                load(depth + 2, buffer > 0 ? buffer - 1 : 2);
                add_depth<F>(sum, smem_cast<unsigned>(memory + buffer * G::SIZE) + place, table,
                             lane / 16 * 16 + lane / 8 % 2 * 8 + ((newest - lane) & 7));
                buffer = buffer < 2 ? buffer + 1 : 0;
            }
            const int done = newest - F::KERNEL_Z + 1;
            if (done >= item.begin) {
                if (slot == (done & 7))
                    out.store(sum);
                out.to += volume.y_depth_stride;
            }
        }
    }
}
