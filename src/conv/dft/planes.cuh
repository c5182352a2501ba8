/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution of planes with large kernels: transforms, products and inverse transforms in one kernel. Every
 * DFT is a product with a dense matrix, on tensor cores (m16n8k16). A reader begins here.
 *
 *     y[i][j] = sum over r, s of w[r][s] x[i + r - pad][j + s - pad], as a circular convolution of BASIS_Y x BASIS_X
 *
 * f counts the frequencies of rows, k those of columns. A warp has eight f. TILES warps are a team, which has planes of
 * its own; the teams of a block share a channel and all tables. For one plane:
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
 * because step 4 adds all f. The spectrum of w (P and Q) stays in shared memory for all samples of a block.
 *
 * Rounding to 16 bits: the matrices, D, S and T, H. Sums are in FP32. The matrices are multiplied by gains, as those of
 * fbfft/tensor_core. D of w is the sum of two 16-bit numbers. FP16 planes are multiplied by a power of two, so that
 * their largest element is between 1 and 2, and nothing overflows.
 *
 * The host prints F (config.c) with: Storage, Weights, Bias (types of elements), X and Y (planes with ROWS, COLUMNS and
 * GRANULE, the elements that one copy moves), KERNEL_Y, KERNEL_X, BASIS_Y, BASIS_X, GAIN_Y, GAIN_X, SHIFT_Y, SHIFT_X
 * (the place of output (0, 0) in the circular convolution), TEAMS, PLANES (of a team, even), FLIP (the taps in reverse
 * order, forward), GRADIENT (of the weights).
 */
#pragma once

#include "conv/dft/steps.cuh"

template <class F> CF_DEVICE float dft_tap(const cf_dft_taps &w, long long group, int r, int s) {
    return F::Weights::load(static_cast<const typename F::Weights::bits *>(w.memory) + group * w.group_stride +
                            r * w.row_stride + s * w.column_stride);
}

/* The spectrum of the taps of a channel, times a power of two: [k / 8][P or Q][lane] for each warp of a team. Returns
 * the power of two that undoes it. The taps are the sum of two planes of 16-bit numbers, in `planes`, which are zeros
 * before. All threads call this. Teams share the work. */
template <class F>
CF_DEVICE float dft_weights(smem<float4> spectrum, smem<uint4> planes, smem<float> largest_of_warps,
                            const DftTables<F> &tables, const cf_dft_taps &w, long long group) {
    typedef Dft<F> D;
    constexpr int OF_ROW = (F::KERNEL_X + 1) / 2, PAIRS = F::KERNEL_Y * OF_ROW,
                  EACH = (PAIRS + D::THREADS - 1) / D::THREADS;
    const int warp = int(threadIdx.x) / 32, team = warp / D::TILES;
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
    for (int i = 0; i < D::THREADS / 32; ++i)
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
    const DftFirst<F> first(tables, warp % D::TILES);
#pragma unroll 1
    for (int plane = 0; plane < 2; ++plane) {
        unsigned d[2][D::STEPS_Y][4];
        dft_rows<F, true>(d[0], d[1], planes + plane * D::PLANE, first);
#pragma unroll 1
        for (int k = team; k < D::EIGHTS; k += F::TEAMS) {
            DftBins part[2], sum;
            if (plane == 1)
                sum = DftBins(spectrum[k * 64], spectrum[k * 64 + 32]);
            dft_columns<F, 2>(part, d, tables.columns + (k * D::G.each + int(threadIdx.x) % 32));
            unroll<0, 4>([&](auto i) {
                sum.p[i] = UNIT * (part[0].p[i] + part[1].p[i]) + (plane == 1 ? sum.p[i] : 0.0f);
                sum.q[i] = UNIT * (part[0].q[i] + part[1].q[i]) + (plane == 1 ? sum.q[i] : 0.0f);
            });
            spectrum[k * 64] = make_float4(sum.p[0], sum.p[1], sum.p[2], sum.p[3]);
            spectrum[k * 64 + 32] = make_float4(sum.q[0], sum.q[1], sum.q[2], sum.q[3]);
        }
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

/* Steps 1 to 3 of planes `first` and `first + 1` of a team, to `mid`. Returns the powers of two that undo their
 * scales. */
template <class F>
CF_DEVICE cplx dft_two_planes(smem<uint4> mid, int first, smem<uint4> planes, smem<float4> spectrum,
                              const DftTables<F> &tables, int warp) {
    typedef Dft<F> D;
    unsigned d[2][D::STEPS_Y][4];
    float down[2];
    const DftFirst<F> operand(tables, warp);
    unroll<0, 2>([&](auto p) {
        unsigned none[D::STEPS_Y][4];
        down[p] = dft_rows<F, false>(d[p], none, planes + p * D::PLANE, operand);
    });
    float sum[D::OUT_EIGHTS][2][4];
    unroll<0, D::OUT_EIGHTS * 8>([&](auto i) { sum[i / 8][i / 4 % 2][i % 4] = 0; });
#pragma unroll 1
    for (int k = 0; k < D::EIGHTS; ++k) {
        const smem<uint4> table = tables.columns + (k * D::G.each + int(threadIdx.x) % 32);
        const DftBins w(spectrum[k * 64], spectrum[k * 64 + 32]);
        DftBins bins[2];
        unsigned a[2][4];
        dft_columns<F, 2>(bins, d, table);
        unroll<0, 2>([&](auto p) {
            float s[2][2], t[2][2];
            unroll<0, 2>([&](auto n) { dft_product(s[n], t[n], bins[p], w, n); });
            dft_operand<typename D::N>(a[p], s, t);
        });
        dft_columns_back<F, 2>(sum, a, table);
    }
    unroll<0, D::OUT_EIGHTS>([&](auto eight) {
        unroll<0, 2>([&](auto p) { dft_put<F>(mid, warp, (first + p) * D::OUT_EIGHTS + eight, sum[eight][p]); });
    });
    return {down[0], down[1]};
}

/* Step 4 of all planes of a team. first: element (0, 0) of the first plane. planes: how many exist. */
template <class F>
CF_DEVICE void dft_outputs(typename F::Storage::bits *first, const cf_dft_side &y, bool accumulate, int planes,
                           smem<uint4> mid, const DftTables<F> &tables, smem<float> scales, float bias, int warp) {
    typedef Dft<F> D;
    const int lane = int(threadIdx.x) % 32;
    dft_parts<F>(tables, warp, [&](int part, int half, const DftLast<F> &last) {
        const int column = half * 32 + lane % 4 * 8;
        float sum[4][4];
        unroll<0, 16>([&](auto i) { sum[i / 4][i % 4] = 0; });
        dft_rows_back<F>(sum, mid, part, last);
        unroll<0, 2>([&](auto below) {
            const int plane = (2 * part + below) / D::OUT_EIGHTS,
                      row = (2 * part + below) % D::OUT_EIGHTS * 8 + lane / 4;
            if (plane >= planes || plane >= F::PLANES || row >= D::OUT_ROWS || column >= D::OUT_COLUMNS)
                return;
            const float scale = scales[plane];
            float v[8];
            unroll<0, 8>([&](auto i) { v[i] = sum[i / 2][2 * below + i % 2] * scale + bias; });
            const int place = plane * int(y.sample_stride) + row * int(y.row_stride) + column;
            dft_store<F>(first + place, accumulate, column, v);
        });
    });
}

/* y from x, or gx from gy. The next planes are copied while a team computes. */
template <class F> CF_DEVICE void dft_planes(const cf_dft_call &call) {
    typedef Dft<F> D;
    typedef typename F::X X;
    constexpr int BUFFER = F::PLANES * D::PLANE, OF_TEAM = 2 * BUFFER + D::G.mid;
    const int team = int(threadIdx.x) / D::TEAM, thread = int(threadIdx.x) % D::TEAM, warp = thread / 32,
              lane = int(threadIdx.x) % 32;
    const long long group = blockIdx.x;
    const int samples = int(call.samples);
    smem<uint4> memory = cf_dynamic_shared<uint4>(), planes = memory + team * OF_TEAM, mid = planes + 2 * BUFFER;
    const DftTables<F> tables(memory + F::TEAMS * OF_TEAM);
    smem<float4> spectra = smem_cast<float4>(memory + (F::TEAMS * OF_TEAM + D::TABLES)),
                 spectrum = spectra + (warp * D::EIGHTS * 64 + lane);
    smem<float> room = smem_cast<float>(spectra + D::G.spectrum), scales = room + (D::THREADS / 32 + team * F::PLANES);
    dft_clear(memory, F::TEAMS * OF_TEAM, D::THREADS);
    tables.fill(room + (D::THREADS / 32 + F::TEAMS * F::PLANES));
    const auto load = [&](int sample, int buffer) {
        unroll<0, F::PLANES>([&](auto p) {
            dft_load<F, X>(planes + (buffer * BUFFER + p * D::PLANE), call.x, samples, sample + p, group, thread);
        });
        dft_commit();
    };
    constexpr int TOGETHER = F::TEAMS * F::PLANES;
    int first_sample = int(blockIdx.y) * TOGETHER; /* of all teams */
    load(first_sample + team * F::PLANES, 0);
    const float factor = D::FACTOR * dft_weights<F>(spectrum, memory + 2 * BUFFER, room, tables, call.w, group),
                bias = call.bias ? float(bias_at<F>(call.bias, group)) : 0.0f;
    typename F::Storage::bits *const y =
        static_cast<typename F::Storage::bits *>(const_cast<void *>(call.y.memory)) + group * call.y.group_stride;
    for (int buffer = 0; first_sample < samples; buffer ^= 1) {
        dft_wait();
        dft_sync<F>(team);
        const int sample = first_sample + team * F::PLANES;
        first_sample += int(gridDim.y) * TOGETHER;
        load(first_sample + team * F::PLANES, buffer ^ 1);
#pragma unroll 1
        for (int first = 0; first < F::PLANES; first += 2) {
            const cplx down =
                dft_two_planes<F>(mid, first, planes + (buffer * F::PLANES + first) * D::PLANE, spectrum, tables, warp);
            if (thread == 0) {
                scales[first] = factor * float(down.x);
                scales[first + 1] = factor * float(down.y);
            }
        }
        dft_sync<F>(team);
        dft_outputs<F>(y + sample * call.y.sample_stride, call.y, call.accumulate, samples - sample, mid, tables,
                       scales, bias, warp);
    }
}
