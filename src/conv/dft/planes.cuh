/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution of planes with large kernels: transforms, products and inverse transforms in one kernel. Every
 * DFT is a product with a dense matrix, on tensor cores (m16n8k16). A reader begins here.
 *
 *     y[i][j] = sum over r, s of w[r][s] x[i + r - pad][j + s - pad], as a circular convolution of BASIS_Y x BASIS_X
 *
 * f counts the frequencies of rows, k those of columns. A warp has eight f. For one plane:
 *
 *     step 1    D[f][i] = sum over j of exp(-2 pi i f j / BASIS_X) x[i][j]     A = matrix, B = plane
 *     step 2    P[f][k] = sum over i of D[f][i] cos(2 pi k i / BASIS_Y)        A = D,      B = matrix
 *               Q[f][k] = the same with sin, so that the spectrum is P - i Q at k and P + i Q at -k
 *     product   S = the sum of the products of both spectra at k and -k, T = the difference, each divided by 2
 *     step 3    H[f][i] = sum over k of S cos(2 pi k i / BASIS_Y) + i T sin    A = S, T,   B = matrix
 *     step 4    y[i][j] = sum over f of Re(H[f][i] exp(2 pi i f j / BASIS_X))  A = H,      B = matrix
 *
 * A tile of A has eight real parts and eight imaginary parts (rows 0 to 7 and 8 to 15), so a lane has both. Sums of one
 * step are the operand A of the next one, in the same lanes. Only H goes through shared memory, to be transposed, and
 * because step 4 adds all f. The spectrum of w stays in registers (P and Q) for all samples of a block.
 *
 * Rounding to 16 bits: the matrices, D, S and T, H. Sums are in FP32. The matrices are multiplied by gains, as those of
 * fbfft/tensor_core. D of w is the sum of two 16-bit numbers. FP16 planes are multiplied by a power of two, so that
 * their largest element is between 1 and 2, and nothing overflows.
 *
 * The host prints F (config.c) with: Storage, Weights, Bias (types of elements), X and Y (planes with ROWS, COLUMNS and
 * GRANULE, the elements that one copy moves), KERNEL_Y, KERNEL_X, BASIS_Y, BASIS_X, GAIN_Y, GAIN_X, SHIFT_Y, SHIFT_X
 * (the place of output (0, 0) in the circular convolution), PLANES (of a block, even), FLIP (the taps in reverse order,
 * forward), GRADIENT (of the weights).
 */
#pragma once

#include "conv/dft/steps.cuh"

template <class F> CF_DEVICE float dft_tap(const cf_dft_taps &w, long long group, int r, int s) {
    return F::Weights::load(static_cast<const typename F::Weights::bits *>(w.memory) + group * w.group_stride +
                            r * w.row_stride + s * w.column_stride);
}

/* The spectrum of the taps of a channel, times a power of two. Returns the one that undoes it. The taps are the sum of
 * two planes of 16-bit numbers, in `planes`, which are zeros before. All threads call this. */
template <class F>
CF_DEVICE float dft_weights(DftBins (&bins)[Dft<F>::EIGHTS], smem<uint4> planes, smem<float> largest_of_warps,
                            const DftTables<F> &tables, const cf_dft_taps &w, long long group) {
    typedef Dft<F> D;
    constexpr int OF_ROW = (F::KERNEL_X + 1) / 2, PAIRS = F::KERNEL_Y * OF_ROW,
                  EACH = (PAIRS + D::THREADS - 1) / D::THREADS;
    const int warp = int(threadIdx.x) / 32;
    float tap[EACH][2], largest = 0;
    unroll<0, EACH>([&](auto n) {
        const int i = int(threadIdx.x) + n * D::THREADS, row = i / OF_ROW, r = F::FLIP ? F::KERNEL_Y - 1 - row : row;
        unroll<0, 2>([&](auto e) {
            const int column = i % OF_ROW * 2 + e, s = F::FLIP ? F::KERNEL_X - 1 - column : column;
            tap[n][e] = i < PAIRS && column < F::KERNEL_X ? dft_tap<F>(w, group, r, s) : 0.0f;
            largest = fmaxf(largest, fabsf(tap[n][e]));
        });
    });
    for (int lanes = 16; D::N::SCALED && lanes > 0; lanes /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, lanes));
    if (int(threadIdx.x) % 32 == 0)
        largest_of_warps[warp] = largest;
    __syncthreads();
    for (int i = 0; i < D::TILES; ++i)
        largest = fmaxf(largest, largest_of_warps[i]);
    const DftScale scale(D::N::SCALED ? largest : 1.0f);
    unroll<0, EACH>([&](auto n) {
        const int i = int(threadIdx.x) + n * D::THREADS;
        if (i >= PAIRS)
            return;
        const float v[2] = {scale.up * tap[n][0], scale.up * tap[n][1]};
        const unsigned high = D::N::word(v[0], v[1]);
        const cplx rounded = D::N::pair(high);
        smem<unsigned> to = smem_cast<unsigned>(planes + i / OF_ROW * D::PITCH) + i % OF_ROW;
        to[0] = high;
        to[4 * D::PLANE] = D::N::word(v[0] - float(rounded.x), v[1] - float(rounded.y));
    });
    __syncthreads();
    constexpr float UNIT = 1.0f / float(1 << D::DOWN);
#pragma unroll 1
    for (int plane = 0; plane < 2; ++plane) {
        unsigned d[2][D::STEPS_Y][4];
        dft_rows<F, true>(d[0], d[1], planes + plane * D::PLANE, 1, tables);
        unroll<0, D::EIGHTS>([&](auto k) {
            DftBins part[2];
            dft_columns<F, 2, decltype(k)::value>(part, d, tables);
            unroll<0, 4>([&](auto i) {
                bins[k].p[i] = UNIT * (part[0].p[i] + part[1].p[i]) + (plane ? bins[k].p[i] : 0.0f);
                bins[k].q[i] = UNIT * (part[0].q[i] + part[1].q[i]) + (plane ? bins[k].q[i] : 0.0f);
            });
        });
    }
    __syncthreads();
    return scale.down * float(1 << D::DOWN);
}

/* Stores or adds eight neighbouring outputs of a row, of which COLUMNS - column exist. */
template <class F>
CF_DEVICE void dft_store(typename F::Storage::bits *to, bool accumulate, int column, const float (&v)[8]) {
    typedef typename F::Storage S;
    typedef typename F::Y Y;
    constexpr int EACH = cf_max_of(Y::GRANULE, 2);
    if (Y::GRANULE == 1 || accumulate) {
#pragma unroll 1
        for (int i = 0; i < 8 && column + i < Y::COLUMNS; ++i) {
            float value = 0;
            unroll<0, 8>([&](auto n) { value = n == i ? v[n] : value; });
            S::store(to + i, accumulate ? value + S::load(to + i) : value);
        }
        return;
    }
    unroll<0, 8 / EACH>([&](auto piece) {
        constexpr int AT = decltype(piece)::value * EACH;
        if (AT > 0 && column + AT >= Y::COLUMNS)
            return;
        unsigned word[4];
        unroll<0, EACH / 2>([&](auto i) { word[i] = Dft<F>::N::word(v[AT + 2 * i], v[AT + 2 * i + 1]); });
        if constexpr (EACH == 8)
            *reinterpret_cast<uint4 *>(to) = make_uint4(word[0], word[1], word[2], word[3]);
        else if constexpr (EACH == 4)
            *reinterpret_cast<float2 *>(to + AT) = make_float2(__uint_as_float(word[0]), __uint_as_float(word[1]));
        else
            *reinterpret_cast<unsigned *>(to + AT) = word[0];
    });
}

/* Step 4 of all planes of a block. A warp has every TILES-th part of 16 rows and 32 columns. */
template <class F> struct DftOutputs {
    typedef Dft<F> D;
    typedef typename F::Storage::bits bits;
    static constexpr int UNITS = D::MID_ROWS * D::HALVES, EACH = (UNITS + D::TILES - 1) / D::TILES;
    int place[EACH][2]; /* of rows g and g + 8 of a part, from the first plane on; negative: there is none */
    CF_DEVICE explicit DftOutputs(const cf_dft_side &y) {
        const int lane = int(threadIdx.x) % 32;
        unroll<0, EACH>([&](auto n) {
            unroll<0, 2>([&](auto below) {
                const int unit = int(threadIdx.x) / 32 + n * D::TILES, eight = unit / D::HALVES * 2 + below,
                          plane = eight / D::OUT_EIGHTS, row = eight % D::OUT_EIGHTS * 8 + lane / 4,
                          column = unit % D::HALVES * 32 + lane % 4 * 8;
                place[n][below] = unit < UNITS && plane < F::PLANES && row < D::OUT_ROWS && column < D::OUT_COLUMNS
                                      ? int(plane * y.sample_stride + row * y.row_stride) + column
                                      : -1;
            });
        });
    }
    /* first: element (0, 0) of the first plane. planes: how many exist. */
    CF_DEVICE void compute(bits *first, bool accumulate, long long planes, smem<uint4> mid, const DftTables<F> &tables,
                           float factor, smem<float> downs, float bias) const {
        unroll<0, EACH>([&](auto n) {
            const int unit = int(threadIdx.x) / 32 + n * D::TILES, part = unit / D::HALVES, half = unit % D::HALVES;
            if (unit >= UNITS)
                return;
            float sum[4][4];
            unroll<0, 16>([&](auto i) { sum[i / 4][i % 4] = 0; });
            dft_rows_back<F>(sum, mid, part, half, tables);
            unroll<0, 2>([&](auto below) {
                const int plane = (2 * part + below) / D::OUT_EIGHTS;
                if (place[n][below] < 0 || plane >= planes)
                    return;
                const float scale = D::N::SCALED ? factor * downs[plane] : factor;
                float v[8];
                unroll<0, 8>([&](auto i) { v[i] = sum[i / 2][2 * below + i % 2] * scale + bias; });
                dft_store<F>(first + place[n][below], accumulate, half * 32 + int(threadIdx.x) % 4 * 8, v);
            });
        });
    }
};

/* y from x, or gx from gy. The next planes are copied while steps 1 to 3 run, and their largest elements are found
 * before step 4. */
template <class F> CF_DEVICE void dft_planes(const cf_dft_call &call) {
    typedef Dft<F> D;
    typedef typename F::X X;
    constexpr int BUFFER = F::PLANES * D::PLANE;
    const int warp = int(threadIdx.x) / 32;
    const long long group = blockIdx.x, step = (long long)gridDim.y * F::PLANES;
    smem<uint4> memory = cf_dynamic_shared<uint4>(), mid = memory + 2 * BUFFER;
    smem<unsigned> largest = smem_cast<unsigned>(mid + (D::G.mid + D::TABLES));
    smem<float> downs = smem_cast<float>(largest + F::PLANES * D::TILES);
    const DftTables<F> tables(mid + D::G.mid);
    dft_clear(memory, 2 * BUFFER + 2 * D::PLANE, D::THREADS);
    tables.fill(downs + F::PLANES);
    const auto load = [&](long long sample, int buffer) {
        unroll<0, F::PLANES>([&](auto p) {
            dft_load<F, X>(memory + (buffer * BUFFER + p * D::PLANE), call.x, call.samples, sample + p, group);
        });
        dft_commit();
    };
    const auto find_scales = [&](int buffer) {
        if (D::N::SCALED)
            unroll<0, F::PLANES>(
                [&](auto p) { dft_absmax<F>(largest + p * D::TILES, memory + (buffer * BUFFER + p * D::PLANE)); });
    };
    long long sample = (long long)blockIdx.y * F::PLANES;
    load(sample, 0);
    DftBins w[D::EIGHTS];
    const float factor = D::FACTOR * dft_weights<F>(w, mid, smem_cast<float>(largest), tables, call.w, group),
                bias = call.bias ? float(bias_at<F>(call.bias, group)) : 0.0f;
    const DftOutputs<F> outputs(call.y);
    typename F::Storage::bits *y = static_cast<typename F::Storage::bits *>(const_cast<void *>(call.y.memory)) +
                                   sample * call.y.sample_stride + group * call.y.group_stride;
    dft_wait();
    __syncthreads();
    find_scales(0);
    for (int buffer = 0; sample < call.samples; buffer ^= 1) {
        __syncthreads();
        load(sample + step, buffer ^ 1);
#pragma unroll 1
        for (int first = 0; first < F::PLANES; first += 2) {
            unsigned a[2][D::EIGHTS][4];
            unsigned d[2][D::STEPS_Y][4];
            unroll<0, 2>([&](auto p) {
                unsigned none[D::STEPS_Y][4];
                const DftScale scale = dft_scale<F>(largest + (first + p) * D::TILES);
                dft_rows<F, false>(d[p], none, memory + (buffer * BUFFER + (first + p) * D::PLANE), scale.up, tables);
                if (D::N::SCALED && threadIdx.x == 0)
                    downs[first + p] = scale.down;
            });
            unroll<0, D::EIGHTS>([&](auto k) {
                DftBins bins[2];
                dft_columns<F, 2, decltype(k)::value>(bins, d, tables);
                unroll<0, 2>([&](auto p) {
                    float s[2][2], t[2][2];
                    unroll<0, 2>([&](auto n) { dft_product(s[n], t[n], bins[p], w[k], n); });
                    dft_operand<typename D::N>(a[p][k], s, t);
                });
            });
            dft_columns_back<F, 2>(a, tables, [&](int eight, const float(&sum)[2][4]) {
                unroll<0, 2>([&](auto p) { dft_put<F>(mid, warp, (first + p) * D::OUT_EIGHTS + eight, sum[p]); });
            });
        }
        dft_wait();
        __syncthreads();
        find_scales(buffer ^ 1);
        outputs.compute(y, call.accumulate, call.samples - sample, mid, tables, factor, downs, bias);
        sample += step;
        y += step * call.y.sample_stride;
    }
}
