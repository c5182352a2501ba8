/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of the planes of a block in memory, and the factors of FP16 spectra. */
#pragma once

#include "fbfft/shared_memory/geometry.cuh"

/* The entry of plane p has 32 bytes: the signal's offset (8 bytes), the spectrum's offset (8), the start along each
 * axis (3 x 4), the channel (4). If spectra are SCALED, the low byte of the spectrum's offset is the exponent of a
 * factor, in the encoding of FP32. */
template <class K> struct PlaneTable {
    smem<char> table;
    int live; /* planes of this block; entries after these repeat the last one */
    CF_DEVICE long long signal(int p) const { return smem_cast<long long>(table + p * 32)[0]; }
    CF_DEVICE long long spectrum(int p) const {
        const long long entry = smem_cast<long long>(table + p * 32)[1];
        return K::Bins::SCALED ? entry >> 8 : entry;
    }
    /* The bins of the plane are multiplied by this when they are stored. For the inverse, it undoes that. */
    CF_DEVICE real factor(int p) const {
        if constexpr (K::Bins::SCALED)
            return real(__uint_as_float((unsigned(smem_cast<long long>(table + p * 32)[1]) & 255u) << 23));
        else
            return 1;
    }
    template <int X> CF_DEVICE int start(int p) const {
        constexpr AxisWindow a = K::AXIS[X];
        if constexpr (a.slices * a.tiles * a.shifts * a.phases == 1)
            return int(a.origin);
        else
            return smem_cast<int>(table + p * 32)[4 + X];
    }
    CF_DEVICE int channel(int p) const { return smem_cast<int>(table + p * 32)[7]; }
};

template <class K, int X, class Index> CF_DEVICE int start_of(Index &slice, Index &tile, Index &shift, Index &phase) {
    constexpr AxisWindow a = K::AXIS[X];
    constexpr Index slices = Index(a.slices), tiles = Index(a.tiles), shifts = Index(a.shifts),
                    phases = Index(a.phases);
    const Index start = Index(a.origin) + slice % slices * Index(a.step) + tile % tiles * Index(a.tile_step) +
                        shift % shifts * Index(a.shift_step) + phase % phases * Index(a.phase_step);
    slice /= slices;
    tile /= tiles;
    shift /= shifts;
    phase /= phases;
    return int(start);
}

/* Rows of this kernel that belong to one row of the whole transform. */
template <class K> __host__ __device__ constexpr long long slices_of() {
    return K::AXIS[0].slices * K::AXIS[1].slices * K::AXIS[2].slices;
}

/* Find the signal of a plane: all of an entry except the spectrum's offset. */
template <class K, class Index>
CF_DEVICE void find_plane(smem<char> entry, Index row, Index column, Index columns, long long sample_stride,
                          long long base) {
    constexpr Index SLICES = Index(slices_of<K>());
    constexpr Index TILES = Index(K::AXIS[0].tiles * K::AXIS[1].tiles * K::AXIS[2].tiles);
    constexpr Index SHIFTS = Index(K::AXIS[0].shifts * K::AXIS[1].shifts * K::AXIS[2].shifts);
    constexpr Index PHASES = Index(K::AXIS[0].phases * K::AXIS[1].phases * K::AXIS[2].phases);
    Index slice = row % SLICES, tile = row / SLICES % TILES, shift = row / (SLICES * TILES) % SHIFTS;
    const Index sample = row / (SLICES * TILES * SHIFTS);
    Index phase = PHASES == 1 ? 0 : column / (columns / PHASES);
    const Index channel = PHASES == 1 ? column : column % (columns / PHASES);
    smem_cast<long long>(entry)[0] = base + (long long)sample * sample_stride + (long long)channel * K::CHANNEL_STRIDE;
    smem_cast<int>(entry)[6] = start_of<K, 2>(slice, tile, shift, phase);
    smem_cast<int>(entry)[5] = start_of<K, 1>(slice, tile, shift, phase);
    smem_cast<int>(entry)[4] = start_of<K, 0>(slice, tile, shift, phase);
    smem_cast<int>(entry)[7] = int(channel);
}

template <class K> CF_DEVICE float *scale_of_plane(const cf_shared_fft_call &call, long long row, long long column) {
    return call.scales + ((long long)blockIdx.y * call.scale_group_stride +
                          (row - call.row_base) / slices_of<K>() * ((call.columns + 7) / 8) + column / 8);
}

/* The address of bin 0 of a plane in the spectrum. */
CF_DEVICE long long spectrum_of(const cf_shared_fft_call &call, long long row, long long column) {
    return (row - call.row_base) / call.row_split * call.row_split_stride +
           (row - call.row_base) % call.row_split * call.row_stride +
           column / call.column_split * call.column_split_stride + column % call.column_split * call.column_stride +
           (long long)blockIdx.y * call.spectrum_group_stride;
}

template <class K, bool INVERSE>
CF_DEVICE PlaneTable<K> find_planes_of(smem<char> table, const cf_shared_fft_call &call, long long block) {
    const long long first = block * K::P, left = call.planes - first;
    const int live = left < K::P ? int(left) : K::P;
    for (int p = int(threadIdx.x); p < K::P; p += K::T) {
        const long long plane = first + (p < live ? p : live - 1);
        const long long row = call.row_first + plane / call.columns * call.row_step, column = plane % call.columns;
        smem<char> entry = table + p * 32;
        find_plane<K>(entry, row, column, call.columns, call.sample_stride, (long long)blockIdx.y * call.group_stride);
        const long long spectrum = spectrum_of(call, row, column);
        if constexpr (!K::Bins::SCALED)
            smem_cast<long long>(entry)[1] = spectrum;
        else if constexpr (INVERSE)
            smem_cast<long long>(entry)[1] =
                spectrum << 8 | __float_as_uint(*scale_of_plane<K>(call, row, column)) >> 23;
        else
            smem_cast<long long>(entry)[1] = spectrum << 8;
    }
    __syncthreads();
    return {table, live};
}
template <class K, bool INVERSE> CF_DEVICE PlaneTable<K> find_planes(smem<char> table, const cf_shared_fft_call &call) {
    return find_planes_of<K, INVERSE>(table, call, (long long)blockIdx.x - call.first_block);
}

/* Forward, SCALED spectra: find a power of two such that no bin leaves the range of FP16. A bin is at most the sum of
 * the plane's elements, and absmax is the largest of these. The result is the exponent in the encoding of FP32. Only
 * every fourth power is used, so that most planes of a layer get the same one. FP16 has enough exponents for that. */
template <class K> struct Factor {
    typedef PlaneGeometry<K> G;
    static constexpr int TOP = 15, SUM = bits_of((long long)G::D0 * (G::template hi<1>() - G::template lo<1>()) *
                                                 (G::template hi<2>() - G::template lo<2>()));
    /* The smallest exponent whose scale FP32 can store. FP16 signals: the exponent of the smallest FP16 number. */
    static constexpr int MIN_EXPONENT = K::Storage::PLAIN ? 27 : 103;
    static CF_DEVICE int magnitude(float absmax) { return max(int(__float_as_uint(absmax) >> 23), MIN_EXPONENT) - 126; }
    /* Numbers near one get the same exponent, whether uniform or normal. */
    static CF_DEVICE int counted(float absmax) { return ((magnitude(absmax) + 4) >> 2) * 4 - 1; }
    /* The kernel of the sliced axis makes its sums smaller by this exponent (fbfft/plan/kernel_split.c). */
    static constexpr int GROWTH = bits_of(slices_of<K>());
    static CF_DEVICE unsigned exponent(float absmax) {
        return unsigned(max(127 + TOP - SUM - counted(absmax), 1 + GROWTH));
    }
    /* The number that undoes the factor. The bits after its exponent say by how many powers of two the bins are
     * smaller than they could be (storage.cuh). A plane of zeros has scale zero. So it does not affect the scale of a
     * sum of planes. */
    static CF_DEVICE float scale(float absmax) {
        const unsigned less = unsigned(counted(absmax) - magnitude(absmax));
        return absmax > 0 ? __uint_as_float((254 + GROWTH - exponent(absmax)) << 23 | less << 21) : 0.0f;
    }
};

/* Set the factor of a plane for its bins. For every eighth column, store the number that undoes it. */
template <class K>
CF_DEVICE void set_factor(smem<char> table, const cf_shared_fft_call &call, int p, long long plane, float absmax) {
    const unsigned exponent = Factor<K>::exponent(absmax);
    smem<unsigned> low = smem_cast<unsigned>(table + (p * 32 + 8));
    low[0] = low[0] | exponent;
    const long long row = call.row_first + plane / call.columns * call.row_step, column = plane % call.columns;
    if (column % 8 == 0 && row % slices_of<K>() == 0)
        *scale_of_plane<K>(call, row, column) = Factor<K>::scale(absmax);
}

/* Compute the factors from the maxima that another kernel has found. Each warp takes one plane; each lane reads one
 * part of the row's sample. The factors are valid after a barrier. */
template <class K> CF_DEVICE void find_factors(smem<char> table, const cf_shared_fft_call &call, int live) {
    const long long first = ((long long)blockIdx.x - call.first_block) * K::P;
    const int lane = int(threadIdx.x) % 32;
    for (int p = int(threadIdx.x) / 32; p < live; p += K::T / 32) {
        const long long row = call.row_first + (first + p) / call.columns * call.row_step;
        const long long rows = call.scale_rows * slices_of<K>(), sample = row / rows - call.row_base / rows;
        const float *const part = call.absmax + (long long)blockIdx.y * call.absmax_group_stride + sample * call.parts;
        float absmax = lane < call.parts ? part[lane] : 0.0f;
        for (int other = 16; other > 0; other /= 2)
            absmax = max(absmax, __shfl_xor_sync(0xffffffffu, absmax, other));
        if (lane == 0)
            set_factor<K>(table, call, p, first + p, absmax);
    }
}
