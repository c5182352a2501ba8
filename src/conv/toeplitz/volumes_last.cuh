/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise volumes with short kernels and channels last. The products are those of volumes.cuh and
 * volume_weights.cuh. A block has eight channels, and each of its warps computes 16 rows and 16 columns of one.
 *
 * Planes of a depth arrive in shared memory as they are in global memory: units of eight channels of one pixel. A step
 * later the block transposes them, and each channel has a plane of its own, of units of eight columns. ldmatrix reads
 * such operands transposed, so that a lane receives two pixels of one channel. Outputs go the other way.
 *
 *     step d    the copies of depth d + 3 begin | depth d + 1 is transposed | products of depth d
 *
 * There is one barrier a step. The host prints F (volume_config.c) with what volumes.cuh lists, with WARPS = ACROSS = 1
 * and LEAD = 0. GRANULE counts channels.
 */
#pragma once

#include "conv/toeplitz/volume_weights.cuh"

enum {
    VOLUME_CHANNELS = 8, /* of a block, a warp each */
    VOLUME_BUFFERS = 3   /* of copies */
};

/* A plane of one side, of the block's channels. Only COLUMNS columns of its units are loaded. A tile has the same place
 * in all depths, so a thread of few copies computes once where they begin. */
template <class S, int COLUMNS> struct ChannelPlanes {
    static constexpr int THREADS = 32 * VOLUME_CHANNELS, UNITS = S::ROWS * S::UNITS, /* of a channel */
        LOADED = 8 * UNITS, EACH = S::GRANULE > 1 ? S::GRANULE : 2, PARTS = VOLUME_CHANNELS / EACH,
                         COPIES = S::ROWS * COLUMNS * PARTS, OF_THREAD = (COPIES + THREADS - 1) / THREADS,
                         HELD = OF_THREAD <= 2 ? OF_THREAD : 0, OUTSIDE = -2147483647 - 1;
    const cf_toeplitz_side &side;
    Corner corner;
    int channels; /* that are left from the first one on */
    int held[cf_max_of(HELD, 1)];

    CF_DEVICE ChannelPlanes(const cf_toeplitz_side &s, Corner c, long long left)
        : side(s), corner(c), channels(left < VOLUME_CHANNELS ? int(left) : VOLUME_CHANNELS) {
        unroll<0, HELD>([&](auto i) { held[i] = offset_of(THREADS * i + int(threadIdx.x)); });
    }
    /* From the first channel of the plane, or OUTSIDE. */
    CF_DEVICE int offset_of(int copy) const {
        const int row = corner.row + copy / PARTS / COLUMNS, column = corner.column + copy / PARTS % COLUMNS,
                  channel = copy % PARTS * EACH;
        return is_inside(side, row, column) && channel < channels
                   ? int(row * side.row_stride + column * side.column_stride) + channel
                   : OUTSIDE;
    }
    CF_DEVICE void copy_one(smem<uint4> to, const unsigned short *plane, int copy, int offset, bool there) const {
        const int channel = copy % PARTS * EACH, row = copy / PARTS / COLUMNS, column = copy / PARTS % COLUMNS;
        const bool inside = there && offset != OUTSIDE;
        if (COPIES % THREADS != 0 && copy >= COPIES)
            return;
        smem<unsigned> place = smem_cast<unsigned>(to + row * (8 * S::UNITS) + column) + channel / 2;
        if (S::GRANULE > 1)
            copy_async<EACH / 2>(smem_cast<float>(place),
                                 reinterpret_cast<const float *>(inside ? plane + offset : plane), inside);
        else
            *place = channel_pair<S>(plane + (inside ? offset : 0), inside, inside && channel + 1 < channels);
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
    /* A warp transposes four units at a time. The planes of neighbouring channels are `distance` units apart. */
    static CF_DEVICE void transpose(smem<uint4> to, int distance, smem<uint4> from) {
        constexpr int FOURS = (UNITS + 3) / 4;
        const int lane = int(threadIdx.x) % 32, begin = int(threadIdx.x) / 32 * 4;
        unroll<0, (FOURS + 7) / 8>([&](auto i) {
            constexpr bool INSIDE = 32 * decltype(i)::value + 31 < UNITS; /* units of all warps */
            if (!INSIDE && begin + 32 * i >= UNITS)
                return;
            const int own = INSIDE ? begin + 32 * i + lane / 8 : cf_min_of(begin + 32 * i + lane / 8, UNITS - 1);
            unsigned word[4];
            ldmatrix_trans_x4(word, from, 8 * own + lane % 8);
            unroll<0, 4>([&](auto k) {
                const int unit = begin + 32 * i + k;
                if (INSIDE || unit < UNITS)
                    smem_cast<unsigned>(to + (lane / 4 * distance + unit))[lane % 4] = word[k];
            });
        });
    }
};

/* The outputs of a depth: planes of 16x16 elements of each channel in shared memory, and where this thread stores them.
 * Four matrices of eight channels of eight pixels are of each warp. A lane stores four channels of two pixels. */
template <class F> struct ChannelStore {
    typedef typename F::Storage::bits bits;
    static constexpr int PLANE = cf_toeplitz_channel_plane(16, 2), SIZE = VOLUME_CHANNELS * PLANE,
                         OUTSIDE = -2147483647 - 1;
    bits *to;     /* the first channel of the plane */
    int channels; /* that are left from the first one on */
    int place[2]; /* where this thread stores, or OUTSIDE */

    /* The unit of matrix i of this warp. */
    static CF_DEVICE int unit_of(int i) { return int(threadIdx.x) / 32 * 4 + i; }
    /* The first channel that this lane stores. Of a pair of matrices, even lanes store pixels of the first one. */
    static CF_DEVICE int first_channel() { return int(threadIdx.x) % 4 / 2 * 4; }

    CF_DEVICE ChannelStore(bits *plane, const cf_toeplitz_side &side, Corner corner, long long left)
        : to(plane), channels(left < VOLUME_CHANNELS ? int(left) : VOLUME_CHANNELS) {
        unroll<0, 2>([&](auto pair) {
            const int unit = unit_of(2 * pair + int(threadIdx.x) % 2), row = corner.row + unit / 2,
                      column = corner.column + unit % 2 * 8 + int(threadIdx.x) % 32 / 4, channel = first_channel();
            place[pair] = is_inside(side, row, column) && channel < channels
                              ? int(row * side.row_stride + column * side.column_stride) + channel
                              : OUTSIDE;
        });
    }

    /* Fills the planes with the old contents. */
    CF_DEVICE void load(smem<uint4> planes, const cf_toeplitz_side &side, Corner corner) const {
        const int lane = int(threadIdx.x) % 32;
        unroll<0, 4>([&](auto i) {
            const int unit = unit_of(i), row = corner.row + unit / 2, column = corner.column + unit % 2 * 8 + lane / 4,
                      channel = lane % 4 * 2;
            const bool inside = is_inside(side, row, column);
            const unsigned word = channel_pair<F>(to + (row * side.row_stride + column * side.column_stride + channel),
                                                  inside && channel < channels, inside && channel + 1 < channels);
            smem_cast<unsigned>(planes + (lane / 4 * PLANE + unit))[lane % 4] = mma_transposed(word);
        });
    }
    /* The four neighbouring outputs of this lane in each row. own: this lane has a complete output. */
    CF_DEVICE void put(smem<uint4> planes, const float (&sum)[16][4], const Outputs<F> &out, bool own,
                       const cf_toeplitz_volume_call &volume, long long item) const {
        const cf_toeplitz_call &call = volume.planes;
        if (call.accumulate) {
            load(planes, call.y, VolumeItem<F>(volume, item).output(call));
            __syncthreads();
        }
        if (!own)
            return;
        smem<uint2> at = smem_cast<uint2>(planes + int(threadIdx.x) / 32 * PLANE) + int(threadIdx.x) % 4;
        const auto words = [&](auto r, cplx first, cplx second) {
            at[4 * r] =
                make_uint2(F::Storage::word({out.value(sum[r], 0) + first.x, out.value(sum[r], 1) + first.y}),
                           F::Storage::word({out.value(sum[r], 2) + second.x, out.value(sum[r], 3) + second.y}));
        };
        if (call.accumulate)
            unroll<0, 16>([&](auto r) {
                const uint2 old = at[4 * r];
                words(r, F::Storage::pair(old.x), F::Storage::pair(old.y));
            });
        else
            unroll<0, 16>([&](auto r) { words(r, {0, 0}, {0, 0}); });
    }
    /* stride: to the next depth. */
    CF_DEVICE void store(smem<uint4> planes, long long stride) {
        const int lane = int(threadIdx.x) % 32;
        unsigned word[4];
        ldmatrix_trans_x4(word, planes, lane % 8 * PLANE + unit_of(lane / 8));
        unroll<0, 2>([&](auto pair) {
            const bool odd = lane % 2;
            const unsigned own = odd ? word[2 * pair + 1] : word[2 * pair],
                           other = __shfl_xor_sync(~0u, odd ? word[2 * pair] : word[2 * pair + 1], 1);
            const unsigned out[2] = {odd ? other : own, odd ? own : other};
            if (place[pair] == OUTSIDE)
                return;
            bits *const p = to + place[pair];
            if constexpr (F::GRANULE >= 4)
                store_words<4>(p, out);
            else
                unroll<0, 4 / F::GRANULE>([&](auto k) {
                    constexpr int K = F::GRANULE * decltype(k)::value;
                    if (first_channel() + K >= channels)
                        return;
                    if constexpr (F::GRANULE == 2)
                        *reinterpret_cast<unsigned *>(p + K) = out[k];
                    else
                        p[K] = bits(out[K / 2] >> K % 2 * 16);
                });
        });
        to += stride;
    }
};

template <class F> CF_DEVICE void volumes_last(const cf_toeplitz_volume_call &volume) {
    typedef Volumes<F> G;
    typedef ChannelPlanes<typename F::X, 15 + F::KERNEL_X> Loader;
    typedef ChannelStore<F> Store;
    constexpr int PLANE = cf_toeplitz_channel_plane(F::X::ROWS, F::X::UNITS), PLANES = VOLUME_CHANNELS * PLANE;
    const cf_toeplitz_call &call = volume.planes;
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, slot = lane / 4;
    const long long first_channel = (long long)blockIdx.x * VOLUME_CHANNELS, left = call.groups - first_channel,
                    group = first_channel + (warp < left ? warp : 0);
    smem<uint4> loaded = cf_dynamic_shared<uint4>(), planes = loaded + VOLUME_BUFFERS * Loader::LOADED,
                outputs = planes + 2 * PLANES, table = outputs + 2 * Store::SIZE + warp * (G::TABLE_ROWS * 16);
    const WeightScale<F> scale(volume, group);
    write_taps<F, 32>(table, volume, group, scale.up, lane);
    const Outputs<F> out = {scale.down, call.bias ? float(bias_at<F>(call.bias, group)) : 0.0f};
    const float start = F::SCALED ? 0.0f : out.bias;
    clear_tiles(loaded, VOLUME_BUFFERS * Loader::LOADED); /* columns that are not loaded stay zero */
    __syncthreads();
    for (long long i = blockIdx.y; i < volume_items(volume); i += gridDim.y) {
        const VolumeItem<F> item(volume, i);
        const Corner output = item.output(call);
        const int first = item.first, last = item.last;
        const Loader loader(call.x, {output.row - call.row_pad, output.column - call.column_pad}, left);
        Store store(plane_of(call.y, volume.y_depth_stride, item.sample, first_channel, item.begin), call.y, output,
                    left);
        int buffer = 0; /* of the copies of the next depth */
        const auto load = [&](int depth) {
            if (depth < last)
                loader.load(loaded + buffer * Loader::LOADED,
                            plane_of(call.x, volume.x_depth_stride, item.sample, first_channel, depth), true);
            tiles_commit();
            buffer = buffer + 1 < VOLUME_BUFFERS ? buffer + 1 : 0;
        };
        float sum[16][4];
        unroll<0, 16>([&](auto r) { sum[r][0] = sum[r][1] = sum[r][2] = sum[r][3] = start; });
        unroll<0, VOLUME_BUFFERS>([&](auto k) { load(first + k); });
        tiles_wait<VOLUME_BUFFERS - 1>();
        __syncthreads();
        if (first < last)
            Loader::transpose(planes + (first & 1) * PLANES, PLANE, loaded);
        bool pending = false; /* there are outputs of the step before */
#pragma unroll 1
        for (int depth = item.reads; depth < item.read_end; ++depth) {
            const int newest = depth + volume.depth_pad, done = newest - F::KERNEL_Z + 1;
            if (slot == (newest & 7))
                unroll<0, 16>([&](auto r) { sum[r][0] = sum[r][1] = sum[r][2] = sum[r][3] = start; });
            tiles_wait<VOLUME_BUFFERS - 2>();
            __syncthreads();
            if (pending)
                store.store(outputs + ((done + 1) & 1) * Store::SIZE, volume.y_depth_stride);
            if (depth >= first && depth < last) {
                load(depth + VOLUME_BUFFERS);
                if (depth + 1 < last)
                    Loader::transpose(planes + ((depth + 1) & 1) * PLANES, PLANE, loaded + buffer * Loader::LOADED);
                smem<uint4> own = planes + ((depth & 1) * PLANES + warp * PLANE);
                add_depth<F>(sum, smem_cast<unsigned>(own) + slot + lane % 4, table,
                             lane / 16 * 16 + lane / 8 % 2 * 8 + ((newest - lane) & 7));
            }
            pending = done >= item.begin;
            if (pending)
                store.put(outputs + (done & 1) * Store::SIZE, sum, out, slot == (done & 7), volume, i);
        }
        __syncthreads();
        if (pending)
            store.store(outputs + ((item.end - 1) & 1) * Store::SIZE, 0);
    }
}

/* The planes of both sides, and in shared memory those of single channels: two of x, and all depths of gy. */
template <class F> struct WeightPlanes {
    typedef ChannelPlanes<typename F::X, 15 + F::KERNEL_X> X;
    typedef ChannelPlanes<typename F::Y, 16> Y;
    static constexpr int DEPTHS = VolumeWeights<F>::DEPTHS, LOADED = X::LOADED + Y::LOADED,
                         PLANE_X = cf_toeplitz_channel_plane(F::X::ROWS, F::X::UNITS),
                         PLANES_X = VOLUME_CHANNELS * PLANE_X,
                         PLANE_Y = cf_toeplitz_channel_plane(F::Y::ROWS, F::Y::UNITS),
                         DEPTHS_Y = cf_toeplitz_channel_plane(DEPTHS, PLANE_Y); /* of a channel */
};

template <class F> CF_DEVICE void volume_weights_last(const cf_toeplitz_volume_call &volume) {
    typedef WeightPlanes<F> G;
    typedef typename G::X LoaderX;
    typedef typename G::Y LoaderY;
    const cf_toeplitz_call &call = volume.planes;
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32,
              q = lane % 8 < F::KERNEL_Z ? lane % 8 : F::KERNEL_Z - 1, x_at = lane / 8 + lane % 4,
              y_at = lane / 8 % 2 * F::Y::UNITS + lane / 16;
    const long long first_channel = (long long)blockIdx.x * VOLUME_CHANNELS, left = call.groups - first_channel;
    smem<uint4> loaded = cf_dynamic_shared<uint4>(), planes_x = loaded + VOLUME_BUFFERS * G::LOADED,
                planes_y = planes_x + 2 * G::PLANES_X;
    clear_tiles(loaded, VOLUME_BUFFERS * G::LOADED); /* columns that are not loaded stay zero */
    __syncthreads();
    VolumeWeights<F> sums = {};
    for (long long i = blockIdx.y; i < volume_items(volume); i += gridDim.y) {
        const VolumeItem<F> item(volume, i);
        const Corner output = item.output(call);
        /* Depths of gy before and behind those of the item are zero. The first steps only load gy. */
        const int first = item.first, last = item.last, begin = first - F::KERNEL_Z + 1;
        const auto slot_of = [&](int depth_y) { return (depth_y - item.begin + F::KERNEL_Z) % G::DEPTHS * G::PLANE_Y; };
        const LoaderX x_loader(call.x, {output.row - call.row_pad, output.column - call.column_pad}, left);
        const LoaderY y_loader(call.y, output, left);
        int buffer = 0; /* of the copies of the next step */
        const auto load = [&](int depth) {
            smem<uint4> to = loaded + buffer * G::LOADED;
            const int depth_y = depth + volume.depth_pad, inside = depth_y >= item.begin && depth_y < item.end;
            if (depth >= first && depth < last)
                x_loader.load(to, plane_of(call.x, volume.x_depth_stride, item.sample, first_channel, depth), true);
            if (depth < last)
                y_loader.load(
                    to + LoaderX::LOADED,
                    plane_of(call.y, volume.y_depth_stride, item.sample, first_channel, inside ? depth_y : item.begin),
                    inside);
            tiles_commit();
            buffer = buffer + 1 < VOLUME_BUFFERS ? buffer + 1 : 0;
        };
        const auto transpose = [&](int depth) {
            if (depth >= first && depth < last)
                LoaderX::transpose(planes_x + (depth & 1) * G::PLANES_X, G::PLANE_X, loaded + buffer * G::LOADED);
            if (depth < last)
                LoaderY::transpose(planes_y + slot_of(depth + volume.depth_pad), G::DEPTHS_Y,
                                   loaded + (buffer * G::LOADED + LoaderX::LOADED));
        };
        if (first >= last)
            continue;
        __syncthreads(); /* no warp reads the last item any more */
        unroll<0, VOLUME_BUFFERS>([&](auto k) { load(begin + k); });
        tiles_wait<VOLUME_BUFFERS - 1>();
        __syncthreads();
        transpose(begin);
#pragma unroll 1
        for (int depth = begin; depth < last; ++depth) {
            tiles_wait<VOLUME_BUFFERS - 2>();
            __syncthreads();
            load(depth + VOLUME_BUFFERS);
            transpose(depth + 1);
            if (depth >= first)
                sums.add(smem_cast<unsigned>(planes_x + ((depth & 1) * G::PLANES_X + warp * G::PLANE_X)) + x_at,
                         lane / 4 % 2 * 16, planes_y,
                         warp * G::DEPTHS_Y + slot_of(depth + volume.depth_pad - q) + y_at);
        }
    }
    __syncthreads();
    sums.store(volume, smem_cast<float>(loaded) + warp * VolumeWeights<F>::OF_WARP, first_channel + warp, lane);
}
