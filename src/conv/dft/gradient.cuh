/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of the weights of depthwise planes with large kernels (planes.cuh):
 *
 *     gw[r][s] = sum over samples, i, j of gy[i][j] x[i + r - pad][j + s - pad]
 *
 * x and gy pass steps 1 and 2 together. The products of their spectra, with that of gy conjugate, are summed in FP32
 * registers over all samples of a block. Then steps 3 and 4 give the taps. Their operands are sums of two 16-bit
 * numbers. If there are several slices of the samples, another kernel adds them in their order.
 *
 * The host prints F as for planes.cuh. PLANES is 1; Weights is the type of gw; SHIFT_Y and SHIFT_X are the place of tap
 * (0, 0) in the circular correlation.
 */
#pragma once

#include "conv/dft/planes.cuh"

/* Adds S and T of bins n of a lane to (re, im) sums: the spectrum of x times that of gy, conjugate. */
CF_DEVICE void dft_correlate(float (&s)[2], float (&t)[2], const DftBins &x, const DftBins &gy, int n) {
    const float p0 = x.p[n], p2 = x.p[2 + n], q0 = x.q[n], q2 = x.q[2 + n], gp0 = gy.p[n], gp2 = gy.p[2 + n],
                gq0 = gy.q[n], gq2 = gy.q[2 + n];
    s[0] += p0 * gp0 + p2 * gp2 + q2 * gq2 + q0 * gq0;
    s[1] += p2 * gp0 - p0 * gp2 + q2 * gq0 - q0 * gq2;
    t[0] += p0 * gq2 - p2 * gq0 + q2 * gp0 - q0 * gp2;
    t[1] += p2 * gq2 + p0 * gq0 - q0 * gp0 - q2 * gp2;
}

/* Writes one tap of gw, or adds to it. */
template <class F> CF_DEVICE void dft_write_tap(const cf_dft_call &call, long long group, int r, int s, float total) {
    typedef typename F::Weights W;
    typename W::bits *const p = static_cast<typename W::bits *>(const_cast<void *>(call.w.memory)) +
                                group * call.w.group_stride + r * call.w.row_stride + s * call.w.column_stride;
    W::store(p, call.accumulate ? total + W::load(p) : total);
}

/* Writes one tap of a block's slice: of gw, or if there are several slices of their sums. */
template <class F>
CF_DEVICE void dft_put_tap(const cf_dft_call &call, long long group, long long slice, int r, int s, float total) {
    if (call.slices > 1)
        call.sums[((slice * call.groups + group) * F::KERNEL_Y + r) * F::KERNEL_X + s] = total;
    else
        dft_write_tap<F>(call, group, r, s, total);
}

template <class F> struct DftSums { float s[Dft<F>::EIGHTS][2][2], t[Dft<F>::EIGHTS][2][2]; };

/* The taps from the sums of all warps. */
template <class F>
CF_DEVICE void dft_taps(const cf_dft_call &call, DftSums<F> &sums, smem<uint4> mid, const DftTables<F> &tables,
                        smem<float> largest_of_warps) {
    typedef Dft<F> D;
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
    float largest = 0;
    unroll<0, D::EIGHTS>([&](auto k) {
        unroll<0, 4>([&](auto i) {
            largest = fmaxf(largest, fmaxf(fabsf(sums.s[k][i / 2][i % 2]), fabsf(sums.t[k][i / 2][i % 2])));
        });
    });
    for (int lanes = 16; lanes > 0; lanes /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, lanes));
    if (lane == 0)
        largest_of_warps[warp] = largest;
    __syncthreads();
    for (int i = 0; i < D::TILES; ++i)
        largest = fmaxf(largest, largest_of_warps[i]);
    const DftScale scale(largest);
    unsigned a[D::EIGHTS][2][4];
    unroll<0, D::EIGHTS>([&](auto k) {
        unroll<0, 4>([&](auto i) {
            sums.s[k][i / 2][i % 2] *= scale.up;
            sums.t[k][i / 2][i % 2] *= scale.up;
        });
        dft_operand<typename D::N>(a[k][0], sums.s[k], sums.t[k]);
        float s[2][2], t[2][2]; /* what a[k][0] lacks */
        unroll<0, 2>([&](auto part) {
            const cplx high = D::N::pair(a[k][0][part]), other = D::N::pair(a[k][0][3 - part]);
            s[0][part] = sums.s[k][0][part] - float(high.x);
            s[1][part] = sums.s[k][1][part] - float(high.y);
            const float sign = part == 1 ? -1.0f : 1.0f;
            t[0][part] = sums.t[k][0][part] - sign * float(other.x);
            t[1][part] = sums.t[k][1][part] - sign * float(other.y);
        });
        dft_operand<typename D::N>(a[k][1], s, t);
    });
    float h[D::OUT_EIGHTS][2][4];
    unroll<0, D::OUT_EIGHTS * 8>([&](auto i) { h[i / 8][i / 4 % 2][i % 4] = 0; });
    unroll<0, D::EIGHTS>([&](auto k) { dft_columns_back<F, 2>(h, a[k], tables.columns + (k * D::G.each + lane)); });
    unroll<0, D::OUT_EIGHTS>([&](auto eight) {
        float high[4], low[4];
        unroll<0, 4>([&](auto i) { high[i] = h[eight][0][i] + h[eight][1][i]; });
        unroll<0, 2>([&](auto part) {
            const cplx rounded = D::N::pair(D::N::word(high[2 * part], high[2 * part + 1]));
            low[2 * part] = high[2 * part] - float(rounded.x);
            low[2 * part + 1] = high[2 * part + 1] - float(rounded.y);
        });
        dft_put<F>(mid, warp, eight, high);
        dft_put<F>(mid + D::G.mid, warp, eight, low);
    });
    __syncthreads();
    const float factor = D::FACTOR * scale.down;
    dft_parts<F>(tables, warp, [&](int part, int half, const DftLast<F> &last) {
        float sum[4][4];
        unroll<0, 16>([&](auto i) { sum[i / 4][i % 4] = 0; });
        dft_rows_back<F>(sum, mid, part, last);
        dft_rows_back<F>(sum, mid + D::G.mid, part, last);
        unroll<0, 16>([&](auto i) {
            const int r = 16 * part + i / 8 * 8 + lane / 4, s = 32 * half + lane % 4 * 8 + i % 8;
            if (r >= F::KERNEL_Y || s >= F::KERNEL_X)
                return;
            dft_put_tap<F>(call, blockIdx.x, blockIdx.y, r, s, factor * sum[i % 8 / 2][i / 8 * 2 + i % 2]);
        });
    });
}

template <class F> CF_DEVICE void dft_gradient(const cf_dft_call &call) {
    typedef Dft<F> D;
    constexpr int BUFFER = 2 * D::PLANE;
    const long long group = blockIdx.x;
    smem<uint4> memory = cf_dynamic_shared<uint4>(), mid = memory + 2 * BUFFER;
    const DftTables<F> tables(mid + 2 * D::G.mid);
    smem<float> room = smem_cast<float>(mid + (2 * D::G.mid + D::TABLES));
    dft_clear(memory, 2 * BUFFER + 2 * D::G.mid, D::THREADS);
    tables.fill(room + D::TILES);
    DftSums<F> sums = {};
    const int samples = int(call.samples);
    const auto load = [&](int sample, int buffer) {
        dft_load<F, typename F::X>(memory + buffer * BUFFER, call.x, samples, sample, group, int(threadIdx.x));
        dft_load<F, typename F::Y>(memory + (buffer * BUFFER + D::PLANE), call.y, samples, sample, group,
                                   int(threadIdx.x));
        dft_commit();
    };
    load(int(blockIdx.y), 0);
    int buffer = 0;
    for (int sample = int(blockIdx.y); sample < samples; sample += int(gridDim.y), buffer ^= 1) {
        dft_wait();
        __syncthreads();
        load(sample + int(gridDim.y), buffer ^ 1);
        unsigned d[2][D::STEPS_Y][4], none[D::STEPS_Y][4];
        float down = 1;
        const DftFirst<F> first_operand(tables, int(threadIdx.x) / 32);
        unroll<0, 2>([&](auto p) {
            down *= dft_rows<F, false>(d[p], none, memory + (buffer * BUFFER + p * D::PLANE), first_operand);
        });
        unroll<0, D::EIGHTS>([&](auto k) {
            DftBins bins[2];
            dft_columns<F, 2>(bins, d, tables.columns + (k * D::G.each + int(threadIdx.x) % 32));
            if (D::N::SCALED)
                unroll<0, 4>([&](auto i) {
                    bins[0].p[i] *= down;
                    bins[0].q[i] *= down;
                });
            unroll<0, 2>([&](auto n) { dft_correlate(sums.s[k][n], sums.t[k][n], bins[0], bins[1], n); });
        });
    }
    __syncthreads();
    dft_taps<F>(call, sums, mid, tables, room);
}

/* Adds the slices: a sum is a tap of a channel. */
template <class F> CF_DEVICE void dft_add(const cf_dft_call &call) {
    constexpr int TAPS = F::KERNEL_Y * F::KERNEL_X;
    const long long i = sum_of_thread<F::ADD_SUMS>();
    float total;
    if (add_slices<F::ADD_SUMS, F::ADD_SHARES>(total, call.sums, i, call.groups * TAPS, call.slices))
        dft_write_tap<F>(call, i / TAPS, int(i % TAPS) / F::KERNEL_X, int(i % TAPS) % F::KERNEL_X, total);
}

/* The entry points. The host prints FUNCTION: the template that computes a pass, or adds slices. */
#define CF_DFT_KERNEL(FUNCTION, THREADS, BLOCKS)                \
    CF_KERNEL(THREADS, BLOCKS) cf_dft(const cf_dft_call call) { \
        cf_pdl_wait();                                          \
        FUNCTION<Problem>(call);                                \
    }
