/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that are too long for one block: the four-step algorithm. A line of N = A H points is cut into A pieces
 * of H points, and the kernels of line.cuh treat each piece as a line.
 *
 *     n = H a + m     0 <= m < H
 *
 * Forward, a thread has the column of A points of one m. A tree over a leaves in piece k0 the polynomial modulo Z^H
 * - exp(-2 pi i (k0 - 1/4) / A). The factor exp(-2 pi i m (4 k0 + A - 1) / 4 N) of point m makes it a polynomial
 * modulo Z^H - i, which is what line.cuh transforms. The inverse has the same factor in its roots. Long columns, A
 * = A1 A2, take two steps with an exchange through shared memory: a = A2 a1 + b, k0 = k1 + A1 k2.
 *
 *     signals           as they are (line_io.cuh)
 *     pieces            [group][p1][p2][sample][m], with k1 = cf_reversed(p1, A1), k2 = cf_reversed(p2, A2)
 *     shared memory     [p1][b][32 columns], only with two steps
 *
 * The host prints a problem F (config.c) with C: A1, A2 (1: one step), H, and T, the threads of a block; and X, Y,
 * W (line_io.cuh).
 */
#pragma once

#include "conv/long1d/line_fft.cuh"
#include "conv/long1d/line_io.cuh"

/* Sizes. LANES: columns of a block; TILES: blocks of a line. */
template <class C> struct Columns {
    static constexpr int A1 = C::A1, A2 = C::A2, A = A1 * A2, H = C::H, N = A * H, T = C::T;
    static constexpr bool TWO = A2 > 1;
    static constexpr int LANES = TWO ? CF_LONG1D_LANES : T, WARPS = T / LANES, TILES = H / LANES;
    static_assert(H % LANES == 0 && A1 % WARPS == 0 && A2 % WARPS == 0, "threads share the work evenly");
};

/* exp(2 pi i k / N), N a power of two that is at most 2^24. */
template <int N> CF_DEVICE cplx unit(int k) {
    if constexpr (N <= 1 << 18) {
        return conj(root<N>(k & (N - 1)));
    } else {
        float s, c;
        sincospif(float(k & (N - 1)) * (2.0f / float(N)), &s, &c);
        return {c, s};
    }
}

/* w[j] = first q^j with q = exp(2 pi i k / N), for j < COUNT. */
template <int COUNT, int N> CF_DEVICE void unit_powers(cplx *w, cplx first, int k) {
    w[0] = first;
    unroll<0, cf_log2(COUNT)>([&](auto bit) {
        constexpr int B = 1 << decltype(bit)::value;
        const cplx q = unit<N>(k * B);
        unroll<0, B>([&](auto j) { w[B + j] = w[j] * q; });
    });
}

/*
 * Roots of an inverse tree of R points, after k of N times are selected. times() multiplies them by a common factor
 * (tree()).
 */
template <int R, int N> struct NodeRoots {
    cplx w[R / 2 > 0 ? R / 2 : 1];
    template <int E> CF_DEVICE AnyRoot get() const { return {w[E]}; }
    CF_DEVICE explicit NodeRoots(int k) {
        unroll<1, cf_log2(R) + 1>([&](auto level) {
            constexpr int L = decltype(level)::value, OWN = L > 1 ? 1 << (L - 2) : 1;
            const cplx first = unit<(N << L)>(k);
            unroll<0, OWN>([&](auto j) {
                w[cf_root_number(L, decltype(j)::value)] = twiddle<-decltype(j)::value, 1 << L>(first);
            });
        });
    }
    CF_DEVICE NodeRoots times(cplx factor) const {
        NodeRoots other = *this;
        unroll<0, (R > 1 ? R / 2 : 0)>([&](auto e) { other.w[e] = w[e] * factor; });
        return other;
    }
};

/* The column of a thread: m, sample and group; and where its points are in pieces and in shared memory. */
template <class C> struct ColumnPlace {
    typedef Columns<C> G;
    int m, warp;
    long long group, sample, rows;
    CF_DEVICE explicit ColumnPlace(const cf_long1d_call &call) {
        const unsigned line = blockIdx.x / G::TILES;
        m = int(blockIdx.x) % G::TILES * G::LANES + int(threadIdx.x) % G::LANES;
        warp = int(threadIdx.x) / G::LANES;
        rows = call.rows;
        group = line / unsigned(rows);
        sample = line % unsigned(rows);
    }
    CF_DEVICE long long piece(int p) const { return ((group * G::A + p) * rows + sample) * G::H + m; }
    CF_DEVICE smem<cplx> shared(int p1, int b) const {
        return cf_dynamic_shared<cplx>() + ((p1 * G::A2 + b) * G::LANES + int(threadIdx.x) % G::LANES);
    }
};

/*
 * Stores bins of a column to the pieces from `piece` on, with their factor. v[p] is bin k0 = first + step *
 * cf_reversed(p).
 */
template <class C, int COUNT>
CF_DEVICE void put_column(cplx *pieces, const ColumnPlace<C> &at, const cplx *v, int piece, int first, int step) {
    typedef Columns<C> G;
    cplx w[COUNT];
    unit_powers<COUNT, G::N>(w, unit<4 * G::N>(-at.m * (4 * first + G::A - 1)), -at.m * step);
    unroll<0, COUNT>([&](auto p) { pieces[at.piece(piece + p)] = v[p] * w[cf_reversed(decltype(p)::value, COUNT)]; });
}

/* From a signal or weights to pieces. COLUMN: Long1dColumn or TapColumn. */
template <class COLUMN, class C, class LINE>
CF_DEVICE void column_forward(const cf_long1d_call &call, const ColumnPlace<C> &at, LINE line) {
    typedef Columns<C> G;
#pragma unroll
    for (int i = 0; i < G::A2 / G::WARPS; ++i) {
        const int b = at.warp + i * G::WARPS;
        cplx v[G::A1];
        const COLUMN column(line, b * G::H + at.m);
        unroll<0, G::A1>([&](auto a) { v[a] = column.template get<decltype(a)::value>(); });
        quarter_tree<G::A1, COLUMN::REAL>(v);
        if constexpr (G::TWO) {
            unroll<0, G::A1>([&](auto p) { at.shared(p, b)[0] = v[p]; });
        } else {
            put_column<C, G::A>(call.parts, at, v, 0, 0, 1);
        }
    }
    if constexpr (G::TWO) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < G::A1 / G::WARPS; ++i) {
            const int p1 = at.warp + i * G::WARPS;
            const LoadedRoots<G::A2, false> roots(as_quads(cf_forward_roots<1, G::A1, G::A2>) + p1, G::A1);
            cplx v[G::A2];
            unroll<0, G::A2>([&](auto b) { v[b] = at.shared(p1, b)[0]; });
            tree<G::A2, false>(v, roots, roots);
            put_column<C, G::A2>(call.parts, at, v, p1 * G::A2, cf_reversed(p1, G::A1), G::A1);
        }
    }
}

/* From pieces to a signal or weights. */
template <class COLUMN, class C, class LINE>
CF_DEVICE void column_backward(const cf_long1d_call &call, const ColumnPlace<C> &at, LINE line, real bias) {
    typedef Columns<C> G;
    if constexpr (G::TWO) {
        const NodeRoots<G::A2, G::H> roots(at.m);
#pragma unroll
        for (int i = 0; i < G::A1 / G::WARPS; ++i) {
            const int p1 = at.warp + i * G::WARPS;
            cplx v[G::A2];
            unroll<0, G::A2>([&](auto p) {
                v[cf_reversed(decltype(p)::value, G::A2)] = get_piece(call.parts + at.piece(p1 * G::A2 + p));
            });
            tree<G::A2, true>(v, roots, roots);
            unroll<0, G::A2>([&](auto p) { at.shared(p1, cf_reversed(decltype(p)::value, G::A2))[0] = v[p]; });
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < G::A2 / G::WARPS; ++i) {
        const int b = at.warp + i * G::WARPS;
        cplx v[G::A1], u[G::A1];
        unroll<0, G::A1>([&](auto p) {
            constexpr int K1 = cf_reversed(decltype(p)::value, G::A1);
            if constexpr (G::TWO)
                v[K1] = at.shared(p, b)[0];
            else
                v[K1] = get_piece(call.parts + at.piece(p));
        });
        cplx factor = unit<4 * G::N>(at.m * (G::A - 1) - b * G::H);
        factor.x *= real(1.0 / G::A);
        factor.y *= real(1.0 / G::A);
        const NodeRoots<G::A1, G::A2 * G::H> late(b * G::H + at.m), roots = late.times(factor);
        v[0] = v[0] * factor;
        tree<G::A1, true>(v, roots, late);
        twiddle_all<G::A1>(u, v);
        COLUMN(line, b * G::H + at.m).template put<G::A1>(u, bias, call.accumulate != 0);
    }
}

/* -------------------------------------------------------------------------------------------------------- kernels */

template <class F, class S> struct ColumnOf {
    typedef Columns<typename F::C> G;
    typedef Long1dColumn<S, G::N, G::N / G::A1> Signal;
    typedef TapColumn<S, G::N, G::N / G::A1> Taps;
};

template <class F> CF_DEVICE void columns_of_x(const cf_long1d_call &call) {
    const ColumnPlace<typename F::C> at(call);
    column_forward<typename ColumnOf<F, typename F::X>::Signal>(call, at,
                                                                long_line<typename F::X>(call.x, at.group, at.sample));
}
template <class F> CF_DEVICE void columns_of_y(const cf_long1d_call &call) {
    const ColumnPlace<typename F::C> at(call);
    column_forward<typename ColumnOf<F, typename F::Y>::Signal>(call, at,
                                                                long_line<typename F::Y>(call.y, at.group, at.sample));
}
template <class F> CF_DEVICE void columns_of_weights(const cf_long1d_call &call) {
    const ColumnPlace<typename F::C> at(call);
    column_forward<typename ColumnOf<F, typename F::W>::Taps>(call, at, long_line<typename F::W>(call.w, at.group, 0));
}
template <class F> CF_DEVICE void y_of_columns(const cf_long1d_call &call) {
    const ColumnPlace<typename F::C> at(call);
    const real bias = call.bias ? bias_at<typename F::Y>(call.bias, at.group) : real(0);
    column_backward<typename ColumnOf<F, typename F::Y>::Signal>(
        call, at, long_line<typename F::Y>(call.y, at.group, at.sample), bias);
}
template <class F> CF_DEVICE void gx_of_columns(const cf_long1d_call &call) {
    const ColumnPlace<typename F::C> at(call);
    column_backward<typename ColumnOf<F, typename F::X>::Signal>(
        call, at, long_line<typename F::X>(call.gx, at.group, at.sample), 0);
}
template <class F> CF_DEVICE void weights_of_columns(const cf_long1d_call &call) {
    const ColumnPlace<typename F::C> at(call);
    column_backward<typename ColumnOf<F, typename F::W>::Taps>(call, at, long_line<typename F::W>(call.w, at.group, 0),
                                                               0);
}

/* The entry point of all kernels of this folder. */
#define CF_LONG1D_KERNEL(FUNCTION, THREADS, BLOCKS)                   \
    CF_KERNEL(THREADS, BLOCKS) cf_long1d(const cf_long1d_call call) { \
        cf_pdl_wait();                                                \
        FUNCTION<Problem>(call);                                      \
    }
