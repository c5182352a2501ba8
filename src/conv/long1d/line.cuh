/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution of long 1-D signals, one line for each block. A reader begins here.
 *
 * A line of 2 H real elements is folded to H complex ones, z[n] = x[n] + i x[n + H]. This is the polynomial of x
 * modulo Z^H - i. Its values at the H roots of that modulus are its bins: bin k is the value at exp(-2 pi i (k -
 * 1/4) / H). Products of these bins are products of polynomials, as with any DFT. Z^H - i divides Z^2H + 1, so what
 * wraps around a line returns with the opposite sign. So spectra need no Hermitian split, and no bin needs its
 * mirror image.
 *
 *     H = R1 R2 R3,     n = (R2 R3) a + R3 b + c,     k = k1 + R1 k2 + R1 R2 k3
 *
 * Step s of the transform sums over one of a, b, c, and its trees of butterflies contain all twiddles
 * (butterfly_tree.cuh). The inverse sums over k3, k2, k1, and its last step multiplies by exp(-i pi n / 2 H),
 * because bins are at k - 1/4. line_geometry.cuh draws shared memory, line_fft.cuh the order of spectra.
 *
 *     kernel            reads                        writes                              a block has
 *     long1d_spectra      w                            spectra of w                        a group
 *     long_lines        x, spectra of w              y (or gx from gy)                   LINES lines
 *     long1d_sums         x, gy                        sums over a slice of samples        a group, a slice
 *     long1d_both         x, gy, spectra of w          the same sums, and gx               a group, a slice
 *     long1d_gradient     sums of few slices           gw                                  a group
 *
 * Where there are more slices, conv/gpu/slices.cuh adds them before long1d_gradient.
 *
 * The host prints a problem F (config.c) with: K (line_geometry.cuh), X, Y, W (line_io.cuh), C (four_step.cuh),
 * LINES, CONJUGATE (whether products take the conjugate of the weights), GROUPS_FIRST (whether neighbouring lines
 * differ in the group).
 */
#pragma once

#include "conv/long1d/line_fft.cuh"
#include "conv/long1d/line_io.cuh"

/* The spectrum of the weights of group blockIdx.x. */
template <class F> CF_DEVICE void long1d_spectra(const cf_long1d_call &call) {
    typedef typename F::K K;
    typedef Long1d<K> G;
    typedef TapColumn<typename F::W, G::H, G::M> Taps;
    smem<cplx> z = cf_dynamic_shared<cplx>();
    const int t = int(threadIdx.x);
    const long long group = blockIdx.x;
    first_forward<K, Taps>(z, t, long_line<typename F::W>(call.w, group, 0));
    middle_forward<K>(z, t);
#pragma unroll
    for (int i = 0; i < G::LAST_EACH; ++i) {
        const int task = task_of<K, G::T / 32>(t, i);
        cplx v[G::LAST];
        task_forward<K>(v, z, task);
        put_bins<K>(call.spectra + group * G::H, v, task);
    }
}

/*
 * The product of a task's bins in v with the weights, and the first inverse step. weight(q) returns pair q of the
 * weights' bins.
 */
template <class F, class W> CF_DEVICE void multiply_task(smem<cplx> z, cplx *v, int task, W weight) {
    typedef typename F::K K;
    unroll<0, Long1d<K>::LAST / 2>([&](auto q) { /* first level of the inverse tree, whose root is a weight */
                                                 const float4 w = weight(q);
                                                 const cplx a = {w.x, w.y}, b = {w.z, w.w};
                                                 v[2 * q] = v[2 * q] * (F::CONJUGATE ? conj(a) : a);
                                                 butterfly(v[2 * q], v[2 * q + 1], F::CONJUGATE ? conj(b) : b);
    });
    task_backward<K, 2>(z, v, task);
}

/*
 * The last forward step of a line, its product with the weights, and the first inverse step. The weights are loaded
 * ahead.
 */
template <class F> CF_DEVICE void multiply_tasks(smem<cplx> z, int t, const float4 *spectrum) {
    typedef typename F::K K;
    typedef Long1d<K> G;
#pragma unroll
    for (int i = 0; i < G::LAST_EACH; ++i) {
        const int task = task_of<K, G::T / 32>(t, i);
        float4 w[G::LAST / 2];
        unroll<0, G::LAST / 2>([&](auto q) { w[q] = __ldcg(spectrum + spectrum_place<K>(q, task)); });
        cplx v[G::LAST];
        task_forward<K>(v, z, task);
        multiply_task<F>(z, v, task, [&](auto q) { return w[q]; });
    }
}

/* Prefetches to the second-level cache. CF_SIMT is the emulator (tests/emulator). */
#ifdef CF_SIMT
CF_DEVICE void fetch_ahead(const void *) {}
#else
CF_DEVICE void fetch_ahead(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
#endif

/* Prefetches COUNT elements from `line` on. */
template <class S, int COUNT>
CF_DEVICE void fetch_early(const typename S::Storage::bits *line, int thread, int threads) {
    constexpr int STEP = 128 / int(sizeof *line);
    for (int i = thread * STEP; i < COUNT; i += threads * STEP)
        fetch_ahead(line + i);
}

/*
 * y from x. A block has LINES lines; if these are several, each has one warp. Neighbouring blocks have lines of one
 * group, which read the same weights. With GROUPS_FIRST they have lines of one sample, whose elements are
 * interleaved in memory.
 */
template <class F> CF_DEVICE void long_lines(const cf_long1d_call &call) {
    typedef typename F::K K;
    typedef Long1d<K> G;
    typedef Long1dColumn<typename F::X, G::H, G::M> X;
    typedef Long1dColumn<typename F::Y, G::H, G::M> Y;
    const int t = int(threadIdx.x) % G::T;
    smem<cplx> z = cf_dynamic_shared<cplx>() + int(threadIdx.x) / G::T * G::SIZE;
    const unsigned line = blockIdx.x * F::LINES + threadIdx.x / G::T;
    if (F::LINES > 1 && line >= signals_of(call)) /* no barrier follows: warps share nothing */
        return;
    const unsigned group = group_of<F>(call, line), sample = sample_of<F>(call, line);
    first_forward<K, X>(z, t, long_line<typename F::X>(call.x, group, sample));
    middle_forward<K>(z, t);
    multiply_tasks<F>(z, t, reinterpret_cast<const float4 *>(call.spectra + (long long)group * G::H));
    middle_backward<K>(z, t);
    const auto y = long_line<typename F::Y>(call.y, group, sample);
    real bias = 0;
    if constexpr (!Y::PIECES)
        bias = call.bias ? bias_at<typename F::Y>(call.bias, group) : real(0);
    last_backward<K>(z, t, [&](int m, cplx *v) { Y(y, m).template put<G::R1>(v, bias, call.accumulate != 0); });
}

/*
 * Sums of gy conj(x), in registers. Weights are stored reversed here, so the products are those of polynomials: Y =
 * X W, GX = GY conj(W), GW = GY conj(X). A block has 2 T threads and two lines in shared memory, x and gy. In the last
 * step, each thread has the same tasks of both.
 */
template <class K> struct Long1dSums {
    typedef Long1d<K> G;
    static constexpr int EACH = G::LAST_EACH / 2, WARPS = 2 * G::T / 32;
    static_assert(G::LAST_EACH % 2 == 0 && G::T % 32 == 0, "tasks for twice the threads");
    cplx sum[EACH][G::LAST];
    /* The steps after step 1 of x at z and of gy behind it. Calls then(task, v) with the bins of gy. */
    template <class F> CF_DEVICE void add(smem<cplx> z, F then) {
        middle_forward<K, WARPS, 2>(z, int(threadIdx.x));
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const int task = task_of<K, WARPS>(int(threadIdx.x), i);
            cplx u[G::LAST], v[G::LAST];
            task_forward<K>(u, z, task);
            task_forward<K>(v, z + G::SIZE, task);
            unroll<0, G::LAST>([&](auto p) {
                cplx &s = sum[i][p];
                s.x = s.x + v[p].x * u[p].x + v[p].y * u[p].y;
                s.y = s.y + v[p].y * u[p].x - v[p].x * u[p].y;
            });
            then(task, v);
        }
    }
    CF_DEVICE void store(cplx *spectrum) const {
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            put_bins<K>(spectrum, sum[i], task_of<K, WARPS>(int(threadIdx.x), i));
    }
};

/*
 * The loop over the samples of slice blockIdx.y, for group blockIdx.x. Half of the threads do the first step of x,
 * the other half that of gy. Then all threads call after(sample).
 */
template <class F, class A> CF_DEVICE void long_rows(const cf_long1d_call &call, A after) {
    typedef typename F::K K;
    typedef Long1d<K> G;
    typedef Long1dColumn<typename F::X, G::H, G::M> X;
    typedef Long1dColumn<typename F::Y, G::H, G::M> Y;
    const int side = int(threadIdx.x) / G::T, t = int(threadIdx.x) % G::T;
    smem<cplx> own = cf_dynamic_shared<cplx>() + side * G::SIZE;
    const long long group = blockIdx.x, begin = call.rows * blockIdx.y / call.slices,
                    end = call.rows * (blockIdx.y + 1) / call.slices;
    constexpr bool PREFETCHES = !X::PIECES && X::STRIDE == 1 && Y::STRIDE == 1 &&
                                G::H <= 4096; /* beyond, prefetching was measured to cost more than it gains */
#pragma unroll 1
    for (long long sample = begin; sample < end; ++sample) {
        if (side == 0)
            first_forward<K, X>(own, t, long_line<typename F::X>(call.x, group, sample));
        else
            first_forward<K, Y>(own, t, long_line<typename F::Y>(call.y, group, sample));
        if (PREFETCHES && sample + 1 < end && side == 0)
            fetch_early<typename F::X, X::COUNT>(long_line<typename F::X>(call.x, group, sample + 1), t, G::T);
        else if (PREFETCHES && sample + 1 < end)
            fetch_early<typename F::Y, Y::COUNT>(long_line<typename F::Y>(call.y, group, sample + 1), t, G::T);
        after(sample);
        __syncthreads();
    }
}

/* Sums over the samples of a slice, for the gradient of the weights. */
template <class F> CF_DEVICE void long1d_sums(const cf_long1d_call &call) {
    typedef typename F::K K;
    Long1dSums<K> sums = {};
    long_rows<F>(call, [&](long long) { sums.add(cf_dynamic_shared<cplx>(), [](int, cplx *) {}); });
    sums.store(call.sums + (blockIdx.y * call.groups + blockIdx.x) * Long1d<K>::H);
}

/*
 * The same sums, and the gradient of x: each spectrum of gy is also multiplied by that of the weights and
 * transformed back.
 */
template <class F> CF_DEVICE void long1d_both(const cf_long1d_call &call) {
    typedef typename F::K K;
    typedef Long1d<K> G;
    typedef Long1dColumn<typename F::X, G::H, G::M> X;
    constexpr int WARPS = Long1dSums<K>::WARPS;
    smem<cplx> z = cf_dynamic_shared<cplx>(), gy = z + G::SIZE;
    const int t = int(threadIdx.x);
    const float4 *const spectrum = reinterpret_cast<const float4 *>(call.spectra + (long long)blockIdx.x * G::H);
    Long1dSums<K> sums = {};
    long_rows<F>(call, [&](long long sample) {
        sums.add(z, [&](int task, cplx *v) {
            multiply_task<F>(gy, v, task, [&](auto q) { return __ldcg(spectrum + spectrum_place<K>(q, task)); });
        });
        middle_backward<K, WARPS>(gy, t);
        const auto gx = long_line<typename F::X>(call.gx, blockIdx.x, sample);
        last_backward<K, 2 * G::T>(gy, t,
                                   [&](int m, cplx *v) { X(gx, m).template put<G::R1>(v, 0, call.accumulate != 0); });
    });
    sums.store(call.sums + (blockIdx.y * call.groups + blockIdx.x) * G::H);
}

/*
 * Adds the slices of group blockIdx.x, always in the same order, and transforms the sum back to the gradient of the
 * weights.
 */
template <class F> CF_DEVICE void long1d_gradient(const cf_long1d_call &call) {
    typedef typename F::K K;
    typedef Long1d<K> G;
    smem<cplx> z = cf_dynamic_shared<cplx>();
    const int t = int(threadIdx.x);
    const long long group = blockIdx.x;
#pragma unroll
    for (int i = 0; i < G::LAST_EACH; ++i) {
        const int task = task_of<K, G::T / 32>(t, i);
        cplx v[G::LAST];
        unroll<0, G::LAST>([&](auto p) { v[p] = {0, 0}; });
#pragma unroll 1
        for (long long s = 0; s < call.slices; ++s) {
            const float4 *const from = reinterpret_cast<const float4 *>(call.sums + (s * call.groups + group) * G::H);
            unroll<0, G::LAST / 2>([&](auto q) {
                const float4 w = __ldcg(from + spectrum_place<K>(q, task));
                v[2 * q] = v[2 * q] + cplx{w.x, w.y};
                v[2 * q + 1] = v[2 * q + 1] + cplx{w.z, w.w};
            });
        }
        task_backward<K>(z, v, task);
    }
    middle_backward<K>(z, t);
    typedef TapColumn<typename F::W, G::H, G::M> Taps;
    const auto taps = long_line<typename F::W>(call.w, group, 0);
    last_backward<K>(z, t, [&](int m, cplx *v) { Taps(taps, m).template put<G::R1>(v, 0, call.accumulate != 0); });
}
