/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real 1-D transforms of N points by warps that share nothing. 4 L^2 divides N. No barrier of a block is needed.
 *
 * As in real1d.cuh, a line is H = N / 2 complex numbers z[i], and Hermitian symmetry splits their transform Z.
 * With A = 2 L and B = H / A, a line is a matrix of A rows and B columns:
 *
 *     z[c + B r]      a lane has B / L columns c with all r < A, and reads or writes them in memory itself
 *     Z[k1 + A k2]    lane p has rows k1 = p and k1 = A - p with all k2 < B; lane 0 has rows 0 and A / 2
 *
 * So Z[k] and Z[H - k] meet in one lane, and one exchange in shared memory is enough.
 * The lanes of a line are neighbours.
 *
 * Signals are read and written in whole sectors that way. Rows of a spectrum are not aligned to sectors. Reads find the
 * rest of a sector in the L1 cache. Writes of parts of sectors would be slow, so the forward transform collects the
 * spectra of a warp in shared memory first.
 *
 * A config K is that of real1d.cuh. The blocks of a launch may have fewer warps than LINES needs.
 *
 * Memory: real [line][IN]; spectrum [line][N / 2 + 1].
 */
#pragma once

#include "fbfft/warp/real1d.cuh"

template <class K> struct Pairs1d {
    static constexpr int H = K::N / 2, BINS = H + 1, A = 2 * K::L, B = H / A, COLUMNS = B / K::L;
    static constexpr int LINES_PER_WARP = 32 / K::L, T = K::LINES * K::L;
    static constexpr bool VECTOR = COLUMNS % 2 == 0; /* a lane's columns are neighbouring pairs */
    static __host__ __device__ constexpr int row(int k1) { return cf_fft_pair_row(K::N, K::L, k1); }
    static constexpr int LINE = cf_fft_pair_line(K::N, K::L);
    static constexpr int WARP_BYTES = cf_fft_pair_bytes(LINES_PER_WARP, K::N, K::L), SHARED = T / 32 * WARP_BYTES;
};

/* w_H^(k1 c), and the factor of the split that depends on a lane's row k1: w_N^k1. */
template <int N, int L> struct __align__(16) PairRoots {
    static constexpr int A = 2 * L, B = N / 2 / A;
    cplx twiddle[A * B], row[2 * L];
    __host__ __device__ constexpr PairRoots() : twiddle{}, row{} {
        for (int i = 0; i < A * B; ++i)
            twiddle[i] = {real(cf_cos(i / B * (i % B), N / 2)), real(-cf_sin(i / B * (i % B), N / 2))};
        for (int l = 0; l < L; ++l) {
            row[2 * l] = {real(cf_cos(l, N)), real(-cf_sin(l, N))};
            row[2 * l + 1] = {real(cf_cos(l ? l : L, N)), real(-cf_sin(l ? l : L, N))};
        }
    }
};
template <int N, int L> __device__ const PairRoots<N, L> cf_pair_roots = PairRoots<N, L>();

/* The place of a thread. */
template <class K> struct PairPlace {
    long long first; /* the first line of the warp */
    int lines;       /* lines of the warp; none if it is not positive */
    int slot, line;  /* slot of the warp's exchange; line of the warp. The order spreads lines over the banks. */
    int lane;
    smem<char> own; /* shared memory of the warp */
    CF_DEVICE PairPlace(long long batch) {
        using P = Pairs1d<K>;
        constexpr int M = P::LINES_PER_WARP;
        const int warp = (int)threadIdx.x / 32, t = (int)threadIdx.x % 32;
        first = ((long long)blockIdx.x * ((int)blockDim.x / 32) + warp) * M;
        lines = batch - first >= M ? M : (int)(batch - first);
        slot = t / K::L;
        line = slot % (M / 2) * 2 + slot / (M / 2);
        lane = t % K::L;
        own = cf_dynamic_shared<char>() + warp * P::WARP_BYTES;
    }
    CF_DEVICE smem<cplx> exchange() const { return smem_cast<cplx>(own) + slot * Pairs1d<K>::LINE; }
    CF_DEVICE smem<cplx> spectrum() const { return smem_cast<cplx>(own) + line * Pairs1d<K>::BINS; }
    CF_DEVICE int column(int j) const {
        return Pairs1d<K>::VECTOR ? 2 * lane + j % 2 + j / 2 * 2 * K::L : lane + j * K::L;
    }
};

/* f(j, r, c + B r) for the numbers of a lane's columns. Neighbouring columns come in pairs. */
template <class K, class F> CF_DEVICE void each_in_columns(F f) {
    using P = Pairs1d<K>;
    unroll<0, P::A>([&](auto r) {
        unroll<0, P::VECTOR ? P::COLUMNS / 2 : P::COLUMNS>(
            [&](auto j) { f(Int<decltype(j)::value *(P::VECTOR ? 2 : 1)>{}, r); });
    });
}

template <class K> CF_DEVICE void pair_columns_in(cplx *v, const real *x, const PairPlace<K> &at) {
    using P = Pairs1d<K>;
    each_in_columns<K>([&](auto j, auto r) {
        constexpr int J = decltype(j)::value, R = decltype(r)::value, V = P::A * J + R;
        const int i = 2 * (at.column(J) + P::B * R);
        if constexpr (K::QUADS && P::VECTOR) {
            float4 q = make_float4(0, 0, 0, 0);
            if (2 * P::B * (R + 1) <= K::IN || i < K::IN)
                q = __ldcs(reinterpret_cast<const float4 *>(x + i));
            v[V] = {q.x, q.y};
            v[V + P::A] = {q.z, q.w};
        } else if constexpr (K::QUADS) {
            float2 q = make_float2(0, 0);
            if (2 * P::B * (R + 1) <= K::IN || i < K::IN)
                q = __ldcs(reinterpret_cast<const float2 *>(x + i));
            v[V] = {q.x, q.y};
        } else {
#pragma unroll
            for (int e = 0; e < (P::VECTOR ? 2 : 1); ++e)
                v[V + P::A * e] = {i + 2 * e < K::IN ? __ldg(x + (i + 2 * e)) : real(0),
                                   i + 2 * e + 1 < K::IN ? __ldg(x + (i + 2 * e + 1)) : real(0)};
        }
    });
}

template <class K> CF_DEVICE void pair_columns_out(real *x, const cplx *v, const PairPlace<K> &at) {
    using P = Pairs1d<K>;
    each_in_columns<K>([&](auto j, auto r) {
        constexpr int J = decltype(j)::value, R = decltype(r)::value, V = P::A * J + R;
        const int i = 2 * (at.column(J) + P::B * R);
        if constexpr (K::QUADS) {
            if (2 * P::B * (R + 1) <= K::IN || i < K::IN) {
                if constexpr (P::VECTOR)
                    __stcs(reinterpret_cast<float4 *>(x + i),
                           make_float4(v[V].x, v[V].y, v[V + P::A].x, v[V + P::A].y));
                else
                    __stcs(reinterpret_cast<float2 *>(x + i), make_float2(v[V].x, v[V].y));
            }
        } else {
#pragma unroll
            for (int e = 0; e < (P::VECTOR ? 2 : 1); ++e) {
                if (i + 2 * e < K::IN)
                    x[i + 2 * e] = v[V + P::A * e].x;
                if (i + 2 * e + 1 < K::IN)
                    x[i + 2 * e + 1] = v[V + P::A * e].y;
            }
        }
    });
}

/* f(place, v) for number c of row k1, and for c + 1 if columns are neighbours; for all columns of the lane, k1 = r. */
template <class K> CF_DEVICE void pair_columns_exchange(cplx *v, const PairPlace<K> &at, bool write) {
    using P = Pairs1d<K>;
    smem<cplx> exchange = at.exchange();
    each_in_columns<K>([&](auto j, auto r) {
        constexpr int J = decltype(j)::value, R = decltype(r)::value, V = P::A * J + R;
        const int i = at.column(J) + P::row(R);
        if constexpr (P::VECTOR) {
            if (write) {
                smem_cast<float4>(exchange + i)[0] = make_float4(v[V].x, v[V].y, v[V + P::A].x, v[V + P::A].y);
            } else {
                const float4 q = smem_cast<float4>(exchange + i)[0];
                v[V] = {q.x, q.y};
                v[V + P::A] = {q.z, q.w};
            }
        } else if (write) {
            exchange[i] = v[V];
        } else {
            v[V] = exchange[i];
        }
    });
}

template <class K> CF_DEVICE void pair_rows_exchange(cplx *v, const PairPlace<K> &at, int k1, bool write) {
    using P = Pairs1d<K>;
    smem<float4> row = smem_cast<float4>(at.exchange() + P::row(k1));
#pragma unroll
    for (int c = 0; c < P::B; c += 2) {
        if (write) {
            row[c / 2] = make_float4(v[c].x, v[c].y, v[c + 1].x, v[c + 1].y);
        } else {
            const float4 q = row[c / 2];
            v[c] = {q.x, q.y};
            v[c + 1] = {q.z, q.w};
        }
    }
}

/* The twiddles of a lane. They are loaded before its data: in a small batch nothing hides their latency. */
template <class K> struct PairTwiddles {
    cplx w[Pairs1d<K>::COLUMNS * Pairs1d<K>::A], low, high;
    CF_DEVICE PairTwiddles(const PairPlace<K> &at) {
        using P = Pairs1d<K>;
        const PairRoots<K::N, K::L> &roots = cf_pair_roots<K::N, K::L>;
        const float4 row = __ldg(reinterpret_cast<const float4 *>(roots.row) + at.lane);
        low = {row.x, row.y};
        high = {row.z, row.w};
        each_in_columns<K>([&](auto j, auto r) {
            constexpr int J = decltype(j)::value, R = decltype(r)::value, V = P::A * J + R;
            const cplx *twiddle = roots.twiddle + (at.column(J) + P::B * R);
            if constexpr (R > 0 && P::VECTOR) {
                const float4 q = __ldg(reinterpret_cast<const float4 *>(twiddle));
                w[V] = {q.x, q.y};
                w[V + P::A] = {q.z, q.w};
            } else if constexpr (R > 0) {
                const float2 q = __ldg(reinterpret_cast<const float2 *>(twiddle));
                w[V] = {q.x, q.y};
            }
        });
    }
    template <bool INVERSE> CF_DEVICE void apply(cplx *v) const {
        using P = Pairs1d<K>;
        unroll<0, P::COLUMNS * P::A>([&](auto i) {
            constexpr int I = decltype(i)::value;
            if constexpr (I % P::A > 0)
                v[I] = v[I] * (INVERSE ? conj(w[I]) : w[I]);
        });
    }
};

/* The spectrum of a line, from a lane's rows k1 = l and A - l; lane 0 has rows 0 and A / 2. */
template <class K>
CF_DEVICE void pair_split(smem<cplx> out, const cplx *a, const cplx *b, const PairTwiddles<K> &twiddles, int l,
                          real factor) {
    using S = Pairs1d<K>;
    constexpr int A = S::A, B = S::B;
    const cplx low = {factor * twiddles.low.x, factor * twiddles.low.y},
               high = {factor * twiddles.high.x, factor * twiddles.high.y};
    const int k1 = l ? l : A / 2;
    smem<cplx> up_low = out + l, up_high = out + k1, down_low = out + (S::H - l), down_high = out + (S::H - k1);
    unroll<0, B>([&](auto s) {
        constexpr int K2 = decltype(s)::value;
        constexpr bool LOW = 2 * K2 < B;
        const cplx z = LOW || l ? a[K2] : b[K2], mirror = !LOW || l ? b[B - 1 - K2] : a[(B - K2) % B];
        const cplx sum = z + conj(mirror),
                   odd = (LOW ? low : high) * twiddle<K2, 2 * B>(times_minus_i(z - conj(mirror)));
        (LOW ? up_low : up_high)[A * K2] = cplx{factor * sum.x + odd.x, factor * sum.y + odd.y};
        (LOW ? down_low : down_high)[-A * K2] = cplx{factor * sum.x - odd.x, odd.y - factor * sum.y};
    });
    if (l == 0)
        out[S::H / 2] = cplx{2 * factor * a[B / 2].x, -2 * factor * a[B / 2].y};
}

/* One number of a spectrum. It is aligned to 8 bytes only if ALIGNED. */
template <class K> CF_DEVICE cplx pair_load(const cplx *from) {
    if constexpr (K::ALIGNED) {
        const float2 q = __ldg(reinterpret_cast<const float2 *>(from));
        return {q.x, q.y};
    } else {
        const real *const parts = reinterpret_cast<const real *>(from);
        return {__ldg(parts), __ldg(parts + 1)};
    }
}

/* The inverse of that. It gives the rows multiplied by two. */
template <class K>
CF_DEVICE void pair_merge(cplx *a, cplx *b, const cplx *in, const PairTwiddles<K> &twiddles, int l, real factor) {
    using S = Pairs1d<K>;
    constexpr int A = S::A, B = S::B;
    const cplx low = {factor * twiddles.low.x, -factor * twiddles.low.y},
               high = {factor * twiddles.high.x, -factor * twiddles.high.y};
    const int k1 = l ? l : A / 2;
    const cplx *up_low = in + l, *up_high = in + k1, *down_low = in + (S::H - l), *down_high = in + (S::H - k1);
    cplx z[B], mirror[B];
#pragma unroll
    for (int s = 0; s < B; ++s) {
        z[s] = pair_load<K>((2 * s < B ? up_low : up_high) + A * s);
        mirror[s] = pair_load<K>((2 * s < B ? down_low : down_high) - A * s);
    }
    const cplx middle = pair_load<K>(in + S::H / 2), twice = {2 * factor * middle.x, -2 * factor * middle.y};
    if (l == 0) { /* bins 0 and N / 2 are real; their imaginary parts are ignored */
        z[0].y = 0;
        mirror[0].y = 0;
    }
    unroll<0, B>([&](auto s) {
        constexpr int K2 = decltype(s)::value;
        const cplx sum = z[K2] + conj(mirror[K2]),
                   odd = times_i((2 * K2 < B ? low : high) * twiddle<-K2, 2 * B>(z[K2] - conj(mirror[K2])));
        z[K2] = {factor * sum.x + odd.x, factor * sum.y + odd.y};
        mirror[K2] = {factor * sum.x - odd.x, odd.y - factor * sum.y};
    });
    unroll<0, B>([&](auto s) {
        constexpr int K2 = decltype(s)::value;
        if constexpr (2 * K2 < B) {
            a[K2] = z[K2];
            b[K2] = mirror[B - 1 - K2];
        } else {
            a[K2] = l ? z[K2] : 2 * K2 == B ? twice : mirror[B - K2];
            b[K2] = l ? mirror[B - 1 - K2] : z[K2];
        }
    });
}

template <class K>
CF_DEVICE void real1d_forward_pairs(const real *__restrict__ x, cplx *__restrict__ y, real scale, long long batch) {
    using P = Pairs1d<K>;
    const PairPlace<K> at(batch);
    if (at.lines <= 0)
        return;
    const int l = at.lane, line = at.line < at.lines ? at.line : at.lines - 1;
    const PairTwiddles<K> twiddles(at);
    cplx v[P::COLUMNS * P::A];
    pair_columns_in<K>(v, x + (at.first + line) * K::IN, at);
    unroll<0, P::COLUMNS>([&](auto j) { dft<P::A>(v + P::A * j); });
    twiddles.template apply<false>(v);
    pair_columns_exchange<K>(v, at, true);
    __syncwarp();
    cplx a[P::B], b[P::B];
    pair_rows_exchange<K>(a, at, l, false);
    pair_rows_exchange<K>(b, at, l ? P::A - l : P::A / 2, false);
    dft<P::B>(a);
    dft<P::B>(b);
    const real factor = real(0.5) * (K::SCALED ? scale : real(1));
    __syncwarp();
    pair_split<K>(at.spectrum(), a, b, twiddles, l, factor);
    __syncwarp();
    cplx *to = y + at.first * P::BINS;
    if (K::ALIGNED && at.lines == P::LINES_PER_WARP) {
        constexpr int QUADS = P::LINES_PER_WARP * P::BINS / 2;
#pragma unroll
        for (int i = 0; i < (QUADS + 31) / 32; ++i) {
            const int n = i * 32 + (int)threadIdx.x % 32;
            if (i * 32 + 32 <= QUADS || n < QUADS)
                __stcs(reinterpret_cast<float4 *>(to) + n, smem_cast<float4>(at.own)[n]);
        }
    } else {
        for (int n = (int)threadIdx.x % 32; n < at.lines * P::BINS * 2; n += 32)
            reinterpret_cast<real *>(to)[n] = smem_cast<real>(at.own)[n];
    }
}

template <class K>
CF_DEVICE void real1d_inverse_pairs(const cplx *__restrict__ y, real *__restrict__ x, real scale, long long batch) {
    using P = Pairs1d<K>;
    const PairPlace<K> at(batch);
    if (at.lines <= 0)
        return;
    const int l = at.lane, line = at.line < at.lines ? at.line : at.lines - 1;
    const PairTwiddles<K> twiddles(at);
    cplx a[P::B], b[P::B];
    pair_merge<K>(a, b, y + (at.first + line) * P::BINS, twiddles, l, scale);
    dft_inverse<P::B>(a);
    dft_inverse<P::B>(b);
    pair_rows_exchange<K>(a, at, l, true);
    pair_rows_exchange<K>(b, at, l ? P::A - l : P::A / 2, true);
    __syncwarp();
    cplx v[P::COLUMNS * P::A];
    pair_columns_exchange<K>(v, at, false);
    twiddles.template apply<true>(v);
    unroll<0, P::COLUMNS>([&](auto j) { dft_inverse<P::A>(v + P::A * j); });
    if (at.line < at.lines)
        pair_columns_out<K>(x + (at.first + at.line) * K::IN, v, at);
}

/* The entry point of all kernels of this folder. IN, OUT: real and cplx, or the other way. */
#define CF_WARP_FFT_KERNEL(FUNCTION, IN, OUT, THREADS, BLOCKS)                               \
    CF_KERNEL(THREADS, BLOCKS) cf_fft(const IN *in, OUT *out, real scale, long long batch) { \
        cf_pdl_wait();                                                                       \
        FUNCTION<Config>(in, out, scale, batch);                                             \
    }
