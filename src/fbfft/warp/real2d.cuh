/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real 2-D transforms of H x W planes, in one kernel.
 *
 * A block has PLANES planes in shared memory. Two real rows are the real and the imaginary part of one complex line. So
 * H rows are H / 2 lines of W points. Columns 0 and W / 2 of their spectrum are transforms of real numbers. They are
 * packed the same way, so W / 2 + 1 columns are W / 2 lines of H points. A line has rows of one plane only.
 *
 *     forward   rows -> shared -> lines of W in registers -> shared -> lines of H in registers -> shared -> spectrum
 *     inverse   the same steps in reverse order
 *
 * The lanes of a line are 32 / L apart (warp_line.cuh). So neighbouring lanes hold neighbouring rows or columns. The
 * pitches put these into different banks.
 *
 * Constants of a config K:
 *
 *     H, W        points of the transform, both even
 *     IH, IW      rows and columns that hold data (forward) or are wanted (inverse); others are zero or dropped
 *     L           lanes of a line
 *     PLANES      planes of a block
 *     ALIGNED     planes of a spectrum begin at multiples of 16 bytes
 *     QUADS       pairs of rows begin at multiples of 16 bytes
 *     BULK        input comes by TMA bulk copies
 *     SCALED      false if the scale of a forward transform is 1
 *
 * Memory: real [plane][IH][IW]; spectrum [plane][H][W / 2 + 1], ky before kx.
 */
#pragma once

#include "fbfft/common/async_copy.cuh"
#include "fbfft/warp/geometry.h"
#include "fbfft/warp/warp_line.cuh"

template <class K> struct Real2d {
    static constexpr int PAIRS = K::H / 2, DATA_PAIRS = (K::IH + 1) / 2, COLUMNS = K::W / 2, BINS = K::W / 2 + 1;
    static constexpr int LINES = cf_max_of(PAIRS, COLUMNS), LINES_PER_WARP = 32 / K::L;
    static constexpr int T = cf_fft_threads_2d(K::PLANES, LINES, K::L);
    static constexpr cf_fft_layout_2d LAYOUT = cf_fft_layout_2d_of(K::H, K::W, K::IH, K::IW, K::L);
    static constexpr int MID = LAYOUT.line_pitch, STAGE = LAYOUT.stage, BYTES = LAYOUT.bytes;
    static constexpr int SHARED = cf_fft_shared_2d(K::PLANES, BYTES, K::BULK);

    /* The byte in shared memory where pair i of rows begins. i counts the pairs of all planes. */
    static CF_DEVICE int pair_at(int i) {
        return i / (K::IH / 2) * BYTES + i % (K::IH / 2) * STAGE * int(sizeof(real));
    }
    static CF_DEVICE int plane_at(int i) { return i * BYTES; }
};

/* The place of a thread: its plane in the block, its line in the plane, its lane in the line. */
template <class K> struct Place {
    int plane, line, lane;
    CF_DEVICE Place() {
        using P = Real2d<K>;
        const int n = (int)threadIdx.x / 32 * P::LINES_PER_WARP + (int)threadIdx.x % P::LINES_PER_WARP;
        plane = n / P::LINES;
        line = n % P::LINES;
        lane = (int)threadIdx.x % 32 / P::LINES_PER_WARP;
    }
};

/* f(plane, i), i < COUNT, for the planes whose line 0 belongs to this warp. The threads of the warp share the work. No
 * other warp accesses column 0, so no barrier of the block is needed. */
template <class K, int COUNT, class F> CF_DEVICE void for_column_0(int planes, F f) {
    using P = Real2d<K>;
    constexpr int EACH = P::LINES_PER_WARP, MAX_PLANES = K::PLANES == 1 ? 1 : (EACH + P::LINES - 1) / P::LINES;
    const int begin = (int)threadIdx.x / 32 * EACH, first = (begin + P::LINES - 1) / P::LINES;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < (MAX_PLANES * COUNT + 31) / 32; ++i) {
        const int n = i * 32 + (int)threadIdx.x % 32, plane = first + n / COUNT;
        if (n < MAX_PLANES * COUNT && plane < planes && plane * P::LINES < begin + EACH)
            f(plane, n % COUNT);
    }
    __syncwarp();
}

/* Complex line `pair` in time order (warp_line.cuh), from the staged rows. It is zero beyond IW and IH. */
template <class K> CF_DEVICE void read_rows(cplx *v, smem<real> rows, int pair, int l) {
    constexpr int R = K::W / K::L, C = R / K::L;
    const bool second = K::IH % 2 == 0 || 2 * pair + 1 < K::IH;
    smem<real> a = rows + pair * Real2d<K>::STAGE;
    unroll<0, K::L>([&](auto j) {
        constexpr bool ALL_LANES = R * j + R <= K::IW; /* every lane has data in all of these points */
        if constexpr (ALL_LANES) {
            real even[C], odd[C];
            read_reals<C, K::IW % 4 == 0 && R % 4 == 0>(even, a + (R * j + C * l));
            read_reals<C, K::IW % 4 == 0 && R % 4 == 0>(odd, a + (K::IW * (second ? 1 : 0) + R * j + C * l));
#pragma unroll
            for (int q = 0; q < C; ++q)
                v[C * j + q] = {even[q], second ? odd[q] : real(0)};
        } else if constexpr (R * j < K::IW) {
#pragma unroll
            for (int q = 0; q < C; ++q) {
                const int i = R * j + C * l + q;
                v[C * j + q] = {i < K::IW ? a[i] : real(0), i < K::IW && second ? a[K::IW + i] : real(0)};
            }
        } else {
#pragma unroll
            for (int q = 0; q < C; ++q)
                v[C * j + q] = {0, 0};
        }
    });
}

/* Store the transform of a pair of rows for read_pair(), which reads bin k and its mirror image, bin W - k. For k =
 * 0 it reads places 0 and W. There is no bin W, so these two places hold combinations from which its formula gives, for
 * each row, bin 0 plus i times bin W / 2. Both are real. */
template <class K> CF_DEVICE void write_line(smem<cplx> line, const cplx *v, int l, real scale) {
    constexpr int R = K::W / K::L; /* even */
#pragma unroll
    for (int r = 0; r < R; ++r) {
        cplx z = v[r];
        int place = l + K::L * r;
        if (r % (R / 2) == 0 && l == 0) {
            const cplx a = v[0], b = v[R / 2];
            z = r == 0 ? cplx{a.x - b.y, a.y + b.x} : cplx{a.x + b.y, a.y - b.x};
            place = r == 0 ? 0 : K::W;
        }
        line[place] = K::SCALED ? cplx{scale * z.x, scale * z.y} : z;
    }
}

/* Two elements of column k from the line of a pair of rows. Hermitian symmetry separates the rows. */
template <class K> CF_DEVICE void read_pair(cplx &even, cplx &odd, smem<cplx> mid, int pair, int k) {
    const cplx a = mid[pair * Real2d<K>::MID + k], b = mid[pair * Real2d<K>::MID + (K::W - k)];
    even = {real(0.5) * (a.x + b.x), real(0.5) * (a.y - b.y)};
    odd = {real(0.5) * (a.y + b.y), real(0.5) * (b.x - a.x)};
}

template <class K> CF_DEVICE void read_column(cplx *v, smem<cplx> mid, int k, int l) {
    constexpr int R = K::H / K::L, C = R / K::L;
    unroll<0, K::L>([&](auto j) {
        if constexpr (R * j >= K::IH) {
#pragma unroll
            for (int q = 0; q < C; ++q)
                v[C * j + q] = {0, 0};
        } else if constexpr (C % 2 == 0) {
#pragma unroll
            for (int q = 0; q < C; q += 2) {
                const int row = R * j + C * l + q;
                v[C * j + q] = v[C * j + q + 1] = {0, 0};
                if (R * j + R <= K::IH || row < K::IH)
                    read_pair<K>(v[C * j + q], v[C * j + q + 1], mid, row / 2, k);
            }
        } else {
#pragma unroll
            for (int q = 0; q < C; ++q) {
                const int row = R * j + C * l + q;
                cplx even = {0, 0}, odd = {0, 0};
                if (R * j + R <= K::IH || row < K::IH)
                    read_pair<K>(even, odd, mid, row / 2, k);
                v[C * j + q] = row % 2 ? odd : even;
            }
        }
    });
}

/* Store column k of the spectrum in shared memory [ky][kx]. Column 0 still contains column W / 2. */
template <class K> CF_DEVICE void write_column(smem<cplx> out, const cplx *v, int k, int l) {
#pragma unroll
    for (int r = 0; r < K::H / K::L; ++r)
        out[(l + K::L * r) * Real2d<K>::BINS + k] = v[r];
}

/* Separate columns 0 and W / 2. */
template <class K> CF_DEVICE void split_columns(smem<char> shared, int planes) {
    for_column_0<K, K::H / 2 + 1>(planes, [&](int plane, int ky) {
        smem<cplx> out = smem_cast<cplx>(shared + plane * Real2d<K>::BYTES);
        smem<cplx> row = out + ky * Real2d<K>::BINS, mirror = out + (ky ? K::H - ky : 0) * Real2d<K>::BINS;
        const cplx a = row[0], b = mirror[0];
        const cplx even = {real(0.5) * (a.x + b.x), real(0.5) * (a.y - b.y)},
                   odd = {real(0.5) * (a.y + b.y), real(0.5) * (b.x - a.x)};
        mirror[0] = conj(even);
        mirror[K::W / 2] = conj(odd);
        row[0] = even;
        row[K::W / 2] = odd;
    });
}

template <class K>
CF_DEVICE void real2d_forward(const real *__restrict__ x, cplx *__restrict__ y, real scale, long long batch) {
    using P = Real2d<K>;
    const long long first = (long long)blockIdx.x * K::PLANES;
    const int planes = K::PLANES == 1 || batch - first >= K::PLANES ? K::PLANES : (int)(batch - first);
    smem<char> shared = cf_dynamic_shared<char>();
    const real *from = x + first * (K::IH * K::IW);

    if constexpr (K::BULK) {
#if !defined(CF_SIMT)
        tma_load_chunks<K::PLANES * K::IH / 2, 2 * K::IW *int(sizeof(real))>(
            shared, [](int i) { return P::pair_at(i); }, (const char *)from, planes * (K::IH / 2),
            shared + K::PLANES * P::BYTES);
#endif
    } else if constexpr (K::QUADS) {
        copy_in<P::T, K::PLANES * K::IH / 2, 2 * K::IW *int(sizeof(real))>(
            shared, [](int i) { return P::pair_at(i); }, (const char *)from, planes * (K::IH / 2));
        __syncthreads();
    } else {
        for (int n = (int)threadIdx.x; n < planes * (K::IH * K::IW); n += P::T) {
            const int row = n / K::IW % K::IH;
            smem_cast<real>(shared + n / (K::IH * K::IW) * P::BYTES)[row / 2 * P::STAGE + row % 2 * K::IW + n % K::IW] =
                __ldg(from + n);
        }
        __syncthreads();
    }

    const Place<K> at;
    const bool live = at.plane < planes;
    smem<char> own = shared + (live ? at.plane : 0) * P::BYTES;
    cplx v[cf_max_of(K::H, K::W) / K::L];
    if (live && at.line < P::DATA_PAIRS)
        read_rows<K>(v, smem_cast<real>(own), at.line, at.lane);
    __syncthreads();
    line_forward<K::W, K::L, K::IW>(v, at.lane);
    if (live && at.line < P::DATA_PAIRS)
        write_line<K>(smem_cast<cplx>(own) + at.line * P::MID, v, at.lane, scale);
    __syncthreads();
    if (live && at.line < P::COLUMNS)
        read_column<K>(v, smem_cast<cplx>(own), at.line, at.lane);
    __syncthreads();
    line_forward<K::H, K::L, K::IH>(v, at.lane);
    if (live && at.line < P::COLUMNS)
        write_column<K>(smem_cast<cplx>(own), v, at.line, at.lane);
    split_columns<K>(shared, planes);
    __syncthreads();

    constexpr int PLANE = K::H * P::BINS;
    cplx *to = y + first * PLANE;
    if constexpr (K::ALIGNED) {
        copy_out<P::T, K::PLANES, PLANE *int(sizeof(cplx))>((char *)to, shared, [](int i) { return P::plane_at(i); },
                                                            planes);
    } else {
        for (int n = (int)threadIdx.x; n < planes * PLANE * 2; n += P::T)
            reinterpret_cast<real *>(to)[n] = smem_cast<real>(shared + n / (2 * PLANE) * P::BYTES)[n % (2 * PLANE)];
    }
}

/* ---------------------------------------------------------------------------------------------- inverse */

/* Between the two steps, a pair of rows holds two neighbouring numbers for each column k < W / 2. Column 0 still
 * contains column W / 2: its real parts belong to column 0, its imaginary parts to column W / 2. */
template <class K> struct Inverse2d : Real2d<K> {
    using P = Real2d<K>;
    static constexpr int MID = P::LAYOUT.pair_pitch, BYTES = P::LAYOUT.inverse_bytes;
    static constexpr int SHARED = cf_fft_shared_2d(K::PLANES, BYTES, K::BULK);
    static CF_DEVICE int pair_at(int i) {
        return i / (K::IH / 2) * BYTES + i % (K::IH / 2) * P::STAGE * int(sizeof(real));
    }
    static CF_DEVICE int plane_at(int i) { return i * BYTES; }
};

/* Pack columns 0 and W / 2 into column 0. For real planes four of their bins are real; the imaginary parts of these are
 * ignored. */
template <class K> CF_DEVICE void merge_columns(smem<char> shared, int planes) {
    for_column_0<K, K::H>(planes, [&](int plane, int ky) {
        smem<cplx> row = smem_cast<cplx>(shared + plane * Inverse2d<K>::BYTES) + ky * Real2d<K>::BINS;
        const cplx first = row[0], last = row[K::W / 2];
        row[0] = ky == 0 || 2 * ky == K::H ? cplx{first.x, last.x} : first + times_i(last);
    });
}

/* Column k of the spectrum in frequency order. */
template <class K> CF_DEVICE void read_spectrum(cplx *v, smem<cplx> in, int k, int l) {
#pragma unroll
    for (int r = 0; r < K::H / K::L; ++r)
        v[r] = in[(l + K::L * r) * Real2d<K>::BINS + k];
}

template <class K> CF_DEVICE void write_pairs(smem<cplx> mid, const cplx *v, int k, int l) {
    constexpr int R = K::H / K::L, C = R / K::L, M = Inverse2d<K>::MID;
    unroll<0, K::L>([&](auto j) {
        if constexpr (C % 2 == 0) {
#pragma unroll
            for (int q = 0; q < C; q += 2) {
                const cplx a = v[C * j + q], b = v[C * j + q + 1];
                smem_cast<float4>(mid)[(R * j + C * l + q) / 2 * M + k] = make_float4(a.x, a.y, b.x, b.y);
            }
        } else {
#pragma unroll
            for (int q = 0; q < C; ++q) {
                const int row = R * j + C * l + q;
                mid[(row / 2 * M + k) * 2 + row % 2] = v[C * j + q];
            }
        }
    });
}

/* Line `pair` in frequency order: Z = A + i B, where A and B are the Hermitian spectra of its two rows. */
template <class K> CF_DEVICE void read_pairs(cplx *v, smem<cplx> mid, int pair, int l) {
    constexpr int R = K::W / K::L; /* even */
    unroll<0, R>([&](auto r) {
        constexpr bool upper = 2 * decltype(r)::value >= R, first = decltype(r)::value % (R / 2) == 0;
        const int i = l + K::L * r;
        const bool packed = first && l == 0;
        const int k = packed ? 0 : upper ? K::W - i : i;
        const float4 both = smem_cast<float4>(mid)[pair * Inverse2d<K>::MID + k];
        const cplx a = {both.x, both.y}, b = {both.z, both.w};
        v[r] = upper ? cplx{a.x + b.y, b.x - a.y} : cplx{a.x - b.y, a.y + b.x};
        if (packed)
            v[r] = upper ? cplx{a.y, b.y} : cplx{a.x, b.x};
    });
}

/* Stage the wanted part of a pair of rows for the copy to memory. */
template <class K> CF_DEVICE void write_rows(smem<real> rows, const cplx *v, real scale, int pair, int l) {
    constexpr int R = K::W / K::L, C = R / K::L;
    constexpr bool VECTOR = C % 4 == 0 && K::IW % 4 == 0 && sizeof(real) == 4;
    smem<real> a = rows + pair * Real2d<K>::STAGE;
    const bool second = K::IH % 2 == 0 || 2 * pair + 1 < K::IH;
    unroll<0, K::L>([&](auto j) {
#pragma unroll
        for (int q = 0; q < C; q += VECTOR ? 4 : 1) {
            const int i = R * j + C * l + q;
            const cplx *u = v + C * j + q;
            if (R * j + R > K::IW && i >= K::IW)
                continue;
            if constexpr (VECTOR) {
                smem_cast<float4>(a + i)[0] =
                    make_float4(scale * u[0].x, scale * u[1].x, scale * u[2].x, scale * u[3].x);
                if (second)
                    smem_cast<float4>(a + (K::IW + i))[0] =
                        make_float4(scale * u[0].y, scale * u[1].y, scale * u[2].y, scale * u[3].y);
            } else {
                a[i] = scale * u[0].x;
                if (second)
                    a[K::IW + i] = scale * u[0].y;
            }
        }
    });
}

template <class K>
CF_DEVICE void real2d_inverse(const cplx *__restrict__ y, real *__restrict__ x, real scale, long long batch) {
    using P = Inverse2d<K>;
    constexpr int PLANE = K::H * P::BINS;
    const long long first = (long long)blockIdx.x * K::PLANES;
    const int planes = K::PLANES == 1 || batch - first >= K::PLANES ? K::PLANES : (int)(batch - first);
    smem<char> shared = cf_dynamic_shared<char>();
    const cplx *from = y + first * PLANE;

    if constexpr (K::BULK) {
#if !defined(CF_SIMT)
        tma_load_chunks<K::PLANES, PLANE *int(sizeof(cplx))>(
            shared, [](int i) { return P::plane_at(i); }, (const char *)from, planes, shared + K::PLANES * P::BYTES);
#endif
    } else if constexpr (K::ALIGNED) {
        copy_in<P::T, K::PLANES, PLANE *int(sizeof(cplx))>(
            shared, [](int i) { return P::plane_at(i); }, (const char *)from, planes);
        __syncthreads();
    } else {
        for (int n = (int)threadIdx.x; n < planes * PLANE * 2; n += P::T)
            smem_cast<real>(shared + n / (2 * PLANE) * P::BYTES)[n % (2 * PLANE)] =
                reinterpret_cast<const real *>(from)[n];
        __syncthreads();
    }

    const Place<K> at;
    const bool live = at.plane < planes, row = live && at.line < P::DATA_PAIRS, column = live && at.line < P::COLUMNS;
    smem<char> own = shared + (live ? at.plane : 0) * P::BYTES;
    cplx v[cf_max_of(K::H, K::W) / K::L];
    merge_columns<K>(shared, planes);
    if (column)
        read_spectrum<K>(v, smem_cast<cplx>(own), at.line, at.lane);
    __syncthreads();
    line_inverse<K::H, K::L>(v, at.lane);
    if (column)
        write_pairs<K>(smem_cast<cplx>(own), v, at.line, at.lane);
    __syncthreads();
    if (row)
        read_pairs<K>(v, smem_cast<cplx>(own), at.line, at.lane);
    __syncthreads();
    line_inverse<K::W, K::L>(v, at.lane);
    if (row)
        write_rows<K>(smem_cast<real>(own), v, scale, at.line, at.lane);
    __syncthreads();

    real *to = x + first * (K::IH * K::IW);
    if constexpr (K::QUADS) {
        copy_out<P::T, K::PLANES * K::IH / 2, 2 * K::IW *int(sizeof(real))>(
            (char *)to, shared, [](int i) { return P::pair_at(i); }, planes * (K::IH / 2));
    } else {
        for (int n = (int)threadIdx.x; n < planes * (K::IH * K::IW); n += P::T) {
            const int i = n / K::IW % K::IH;
            to[n] =
                smem_cast<real>(shared + n / (K::IH * K::IW) * P::BYTES)[i / 2 * P::STAGE + i % 2 * K::IW + n % K::IW];
        }
    }
}
