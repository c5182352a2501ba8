/* SPDX-License-Identifier: Apache-2.0 */
/* Where the planes of a block are in memory, and the factors of FP16 spectra. */
#pragma once

#include "fbfft/shared_memory/geometry.cuh"

/* Table entry of plane p: signal offset, spectrum offset, start of each axis; in 8, 8 and 3 x 4 bytes, then the channel. Where spectra
 * are SCALED, the low byte of the second is the exponent of a factor, as FP32 has it. */
template <class K> struct Places {
    smem<char> table;
    int live; /* planes of this block; table entries beyond repeat the last one */
    CF_DEVICE long long signal(int p) const { return smem_cast<long long>(table + p * 32)[0]; }
    CF_DEVICE long long spectrum(int p) const {
        const long long entry = smem_cast<long long>(table + p * 32)[1];
        return K::Bins::SCALED ? entry >> 8 : entry;
    }
    /* What the bins of the plane are multiplied by on their way to memory, or what undoes that. */
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

/* Rows of this kernel that one row of the whole transform is. */
template <class K> __host__ __device__ constexpr long long slices_of() {
    return K::AXIS[0].slices * K::AXIS[1].slices * K::AXIS[2].slices;
}

/* Where a plane's signal is: all of an entry but the place of its spectrum. */
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

template <class K> CF_DEVICE float *scale_of_plane(const SharedFftCall &call, long long row, long long column) {
    return call.scales + ((long long)blockIdx.y * call.scale_group_stride +
                          (row - call.row_base) / slices_of<K>() * ((call.columns + 7) / 8) + column / 8);
}

template <class K, bool INVERSE> CF_DEVICE Places<K> find_planes(smem<char> table, const SharedFftCall &call) {
    const long long first = ((long long)blockIdx.x - call.first_block) * K::P, left = call.planes - first;
    const int live = left < K::P ? int(left) : K::P;
    for (int p = int(threadIdx.x); p < K::P; p += K::T) {
        const long long plane = first + (p < live ? p : live - 1);
        const long long row = call.row_first + plane / call.columns * call.row_step, column = plane % call.columns;
        smem<char> entry = table + p * 32;
        find_plane<K>(entry, row, column, call.columns, call.sample_stride, (long long)blockIdx.y * call.group_stride);
        const long long spectrum = (row - call.row_base) / call.row_split * call.row_split_stride +
                                   (row - call.row_base) % call.row_split * call.row_stride +
                                   column / call.column_split * call.column_split_stride +
                                   column % call.column_split * call.column_stride +
                                   (long long)blockIdx.y * call.spectrum_group_stride;
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

/* Forward, of SCALED spectra: the exponent, as FP32 has it, of the power of two under which no bin leaves FP16's range where this is a plane's
 * largest magnitude, for a bin is at most the sum of its elements. Only every fourth power counts, so that planes of one layer mostly have the same;
 * FP16 has exponents enough. */
template <class K> struct Factor {
    typedef PlaneGeometry<K> G;
    static constexpr int TOP = 15, SUM = bits_of((long long)G::D0 * (G::template hi<1>() - G::template lo<1>()) *
                                                 (G::template hi<2>() - G::template lo<2>()));
    static constexpr int LEAST =
        K::Storage::PLAIN ? 27 : 103; /* of numbers that have scales of FP32, or of FP16's smallest one */
    static CF_DEVICE int magnitude(float absmax) { return max(int(__float_as_uint(absmax) >> 23), LEAST) - 126; }
    /* Numbers near one, uniform or normal, are between the same two. */
    static CF_DEVICE int counted(float absmax) { return ((magnitude(absmax) + 4) >> 2) * 4 - 1; }
    /* By which the kernel of the axis that is slices here makes its sums smaller (fbfft/plan/kernel_split.c). */
    static constexpr int GROWTH = bits_of(slices_of<K>());
    static CF_DEVICE unsigned exponent(float absmax) {
        return unsigned(max(127 + TOP - SUM - counted(absmax), 1 + GROWTH));
    }
    /* What undoes it, and behind its exponent by how many powers of two bins are smaller than they might be (storage.cuh). Zeros have none,
     * and bear on no others where these are summed. */
    static CF_DEVICE float scale(float absmax) {
        const unsigned less = unsigned(counted(absmax) - magnitude(absmax));
        return absmax > 0 ? __uint_as_float((254 + GROWTH - exponent(absmax)) << 23 | less << 21) : 0.0f;
    }
};

/* A plane's factor, for its bins; of every eighth column, what undoes it is noted. */
template <class K>
CF_DEVICE void set_factor(smem<char> table, const SharedFftCall &call, int p, long long plane, float absmax) {
    const unsigned exponent = Factor<K>::exponent(absmax);
    smem<unsigned> low = smem_cast<unsigned>(table + (p * 32 + 8));
    low[0] = low[0] | exponent;
    const long long row = call.row_first + plane / call.columns * call.row_step, column = plane % call.columns;
    if (column % 8 == 0 && row % slices_of<K>() == 0)
        *scale_of_plane<K>(call, row, column) = Factor<K>::scale(absmax);
}

/* Factors of what another kernel has found: a warp has a plane, a lane a part of the row's sample. They are there after a barrier. */
template <class K> CF_DEVICE void find_factors(smem<char> table, const SharedFftCall &call, int live) {
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
