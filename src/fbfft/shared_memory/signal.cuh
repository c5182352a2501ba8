/* SPDX-License-Identifier: Apache-2.0 */
/* The signal: from memory to lines in shared memory, and back. */
#pragma once

#include "fbfft/shared_memory/addressing.cuh"

/* The offset of position i of axis X in the signal. If i lies outside, `inside` becomes false and the offset is that
 * of some other element. */
template <class K, int X, class Offset> CF_DEVICE Offset offset_of(int i, int start, bool &inside) {
    constexpr AxisWindow a = K::AXIS[X];
    constexpr Offset stride = Offset(K::AXIS_STRIDE[X]);
    int e = i - a.first;
    constexpr bool all = a.spread == 1;
    if constexpr (!all) {
        inside = inside && e % a.spread == 0;
        e /= a.spread;
    }
    if constexpr (!a.checked)
        return Offset(start + e * int(a.step)) * stride;
    int c = start + e * int(a.step);
    bool in = c >= int(a.lower) && c < int(a.upper);
    if constexpr (a.mode == CIRCULAR)
        c = c % int(a.size) + (c % int(a.size) < 0 ? int(a.size) : 0);
    else if constexpr (a.mode == REFLECT)
        c = c < 0 ? -c : c >= int(a.size) ? 2 * (int(a.size) - 1) - c : c;
    else if constexpr (a.mode == REPLICATE)
        c = c < 0 ? 0 : c >= int(a.size) ? int(a.size) - 1 : c;
    in = in && c >= 0 && c < int(a.size);
    inside = inside && in;
    return in ? Offset(c) * stride : Offset(0);
}

/* The index of one item of a loop over a block's lines: [P][D0][DR][DX], or with planes fastest. */
struct SignalItem {
    int p, i0, row, x;
};
template <class K> CF_DEVICE SignalItem item_of(int n) {
    typedef PlaneGeometry<K> G;
    SignalItem t;
    if constexpr (K::PLANES_INTERLEAVED) {
        t.p = n % K::P;
        n /= K::P;
        t.x = n % G::DX + G::LINE_LO;
        n /= G::DX;
        t.row = n % G::DR + G::ROW_LO;
        t.i0 = n / G::DR + G::template lo<0>();
    } else {
        t.x = n % G::DX + G::LINE_LO;
        n /= G::DX;
        t.row = n % G::DR + G::ROW_LO;
        n /= G::DR;
        t.i0 = n % G::D0 + G::template lo<0>();
        t.p = n / G::D0;
    }
    return t;
}

/* The offsets of the one or two numbers of an item. */
template <class K> struct Pair {
    typename K::Offset at[2];
    bool inside[2];
};
template <class K> CF_DEVICE Pair<K> pair_of(const SignalItem &t, const PlaneTable<K> &plane_table) {
    typedef PlaneGeometry<K> G;
    typedef typename K::Offset Offset;
    Pair<K> q;
    q.inside[0] = q.inside[1] = true;
    bool common = true;
    const Offset o0 = offset_of<K, 0, Offset>(t.i0, plane_table.template start<0>(t.p), common);
    const int s1 = plane_table.template start<1>(t.p), s2 = plane_table.template start<2>(t.p);
    if constexpr (K::KIND == TWO_ROWS_AS_COMPLEX) {
        const Offset o2 = offset_of<K, 2, Offset>(t.x, s2, common);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int i = 2 * t.row + h;
            const bool data = i >= G::template lo<1>() && i < G::template hi<1>();
            q.inside[h] = common && data;
            q.at[h] = o0 + o2 + offset_of<K, 1, Offset>(data ? i : G::template lo<1>(), s1, q.inside[h]);
        }
    } else if constexpr (K::KIND == PACKED_REAL) {
        const Offset o1 = offset_of<K, 1, Offset>(t.row, s1, common);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int i = 2 * t.x + h;
            const bool data = i >= G::template lo<2>() && i < G::template hi<2>();
            q.inside[h] = common && data;
            q.at[h] = o0 + o1 + offset_of<K, 2, Offset>(data ? i : G::template lo<2>(), s2, q.inside[h]);
        }
    } else {
        const Offset o1 = offset_of<K, 1, Offset>(t.row, s1, common);
        q.at[0] = o0 + o1 + offset_of<K, 2, Offset>(t.x, s2, common);
        q.inside[0] = common;
        q.inside[1] = false;
    }
    return q;
}

template <class K> CF_DEVICE int line_place(const SignalItem &t) {
    typedef PlaneGeometry<K> G;
    return t.p * G::PLANE + t.i0 * G::AXIS0_PITCH + t.row * G::PITCH + G::O2::time(t.x);
}

/* Access to two numbers of a signal at once. */
template <class K> CF_DEVICE cplx load_pair(const typename K::Storage::bits *p) {
    typedef typename K::Storage S;
    if constexpr (S::PLAIN) {
        const typename PairOf<real>::type v = __ldg(reinterpret_cast<const typename PairOf<real>::type *>(p));
        return {v.x, v.y};
    } else {
        return S::pair(__ldg(reinterpret_cast<const unsigned *>(p)));
    }
}
template <class K> CF_DEVICE void store_pair(typename K::Storage::bits *p, cplx v) {
    typedef typename K::Storage S;
    if constexpr (S::PLAIN) {
        *reinterpret_cast<cplx *>(p) = v;
    } else {
        *reinterpret_cast<unsigned *>(p) = S::word(v);
    }
}

template <class K>
CF_DEVICE void load_signal(smem<cplx> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef PlaneGeometry<K> G;
    typedef typename K::Storage Storage;
    typedef const typename Storage::bits *In;
    /* Numbers that are converted need more registers while they are loaded. */
    constexpr int ITEMS = K::P * G::D0 * G::DR * G::DX, BATCH = Storage::PLAIN ? 8 : 4;
    const In in = static_cast<In>(call.in);
    const real scale = real(call.scale);
    for (int base = int(threadIdx.x); base < ITEMS; base += K::T * BATCH) {
        cplx v[BATCH];
        int place[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const int n = base + b * K::T;
            const SignalItem t = item_of<K>(n < ITEMS ? n : ITEMS - 1);
            const Pair<K> q = pair_of<K>(t, plane_table);
            const In from = in + plane_table.signal(t.p) * (K::KIND == COMPLEX ? 2 : 1);
            place[b] = line_place<K>(t);
            if constexpr (K::KIND == COMPLEX) {
                v[b] = load_pair<K>(from + 2 * q.at[0]);
                v[b] = {q.inside[0] ? v[b].x : real(0), q.inside[0] ? v[b].y : real(0)};
            } else {
                v[b].x = Storage::load(from + q.at[0]);
                v[b].x = q.inside[0] ? v[b].x : real(0);
                v[b].y = 0;
                if constexpr (K::KIND != UNPACKED_REAL) {
                    v[b].y = Storage::load(from + q.at[1]);
                    v[b].y = q.inside[1] ? v[b].y : real(0);
                }
            }
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b)
            if (base + b * K::T < ITEMS)
                z[place[b]] = K::SCALED ? cplx{scale * v[b].x, scale * v[b].y} : v[b];
    }
}

template <class K> CF_DEVICE void put(typename K::Storage::bits *to, real value, bool accumulate) {
    K::Storage::store(to, accumulate ? value + K::Storage::load(to) : value);
}

/* STAGED: the rows of the block are divided into vectors of VECTOR numbers, and these among the threads. Vector i of
 * a thread is in plane p, in `row`, and begins at x. For a given thread, one of these does not depend on i: the plane
 * if planes are interleaved, else x. */
template <class K, int VECTOR> struct RowVectors {
    typedef PlaneGeometry<K> G;
    static constexpr int ROWS = G::D0 * (G::template hi<1>() - G::template lo<1>()), ACROSS = G::STAGED_ROW / VECTOR;
    static constexpr int WIDTH = divisor_from(K::T, ACROSS), TIMES = (ACROSS + WIDTH - 1) / WIDTH;
    static constexpr int OF_A_PLANE = K::T / K::P; /* threads of a plane; other threads have no work */
    static constexpr int EACH = K::PLANES_INTERLEAVED ? (ROWS * ACROSS + OF_A_PLANE - 1) / OF_A_PLANE
                                                      : (K::P * ROWS * WIDTH + K::T - 1) / K::T * TIMES;
    static_assert(!K::PLANES_INTERLEAVED || OF_A_PLANE > 0, "every plane has threads");
    int p, row, x;
    bool exists;
    CF_DEVICE RowVectors(int i) {
        if constexpr (K::PLANES_INTERLEAVED) {
            const int n = int(threadIdx.x) / K::P + i * OF_A_PLANE;
            p = int(threadIdx.x) % K::P;
            row = n / ACROSS;
            x = n % ACROSS * VECTOR;
            exists = n < ROWS * ACROSS && (K::T % K::P == 0 || int(threadIdx.x) < OF_A_PLANE * K::P);
        } else {
            const int n = int(threadIdx.x) / WIDTH + i / TIMES * (K::T / WIDTH);
            const int across = int(threadIdx.x) % WIDTH + i % TIMES * WIDTH;
            p = n / ROWS;
            row = n % ROWS;
            x = across * VECTOR;
            exists = n < K::P * ROWS && across < ACROSS;
        }
    }
};

/* The addresses of a vector in shared memory and in the signal. x counts numbers of the staged row. */
template <class K> struct StagedItem {
    smem<real> shared;
    typename K::Offset offset;
    bool inside;
};
template <class K, int VECTOR>
CF_DEVICE StagedItem<K> staged_item(smem<cplx> z, const PlaneTable<K> &plane_table, int p, int row, int x) {
    typedef PlaneGeometry<K> G;
    typedef typename K::Offset Offset;
    constexpr int ROWS = G::template hi<1>() - G::template lo<1>();
    const int i = row % ROWS + G::template lo<1>(), i0 = row / ROWS + G::template lo<0>();
    const int start = plane_table.template start<2>(p);
    StagedItem<K> r;
    const int point = x - K::ALIGNMENT_SHIFT;
    r.inside = point + (K::ALIGNMENT_SHIFT ? VECTOR - 1 : 0) >= G::template lo<2>() && point < G::template hi<2>();
    r.offset = offset_of<K, 2, Offset>(r.inside ? point : G::template lo<2>(), start, r.inside);
    r.offset += offset_of<K, 0, Offset>(i0, plane_table.template start<0>(p), r.inside) +
                offset_of<K, 1, Offset>(i, plane_table.template start<1>(p), r.inside);
    r.shared =
        smem_cast<real>(z + (p * G::PLANE + i0 * G::AXIS0_PITCH + i / 2 * G::PITCH)) + (x + i % 2 * G::STAGED_ROW);
    return r;
}
/* The type of VECTOR 16-bit numbers that move at once. In shared memory they are FP32. */
template <int VECTOR> struct WordsOf { typedef unsigned short type; };
template <> struct WordsOf<2> { typedef unsigned type; };
template <> struct WordsOf<4> { typedef uint2 type; };
template <class S> CF_DEVICE void put_numbers(smem<real> to, unsigned short v) { to[0] = S::number(v); }
template <class S> CF_DEVICE float2 numbers_of(unsigned v) {
    return make_float2(float(S::number((unsigned short)v)), float(S::number((unsigned short)(v >> 16))));
}
template <class S> CF_DEVICE void put_numbers(smem<real> to, unsigned v) {
    smem_cast<float2>(to)[0] = numbers_of<S>(v);
}
template <class S> CF_DEVICE void put_numbers(smem<real> to, uint2 v) {
    const float2 a = numbers_of<S>(v.x), b = numbers_of<S>(v.y);
    smem_cast<float4>(to)[0] = make_float4(a.x, a.y, b.x, b.y);
}
template <class S> CF_DEVICE unsigned word_of(float2 v) { return S::rounded(v.x) | (unsigned)S::rounded(v.y) << 16; }

/* Store a vector of a row in memory. It is rounded if the signal is FP16 or BF16. */
template <class S> CF_DEVICE void store_vector(float *to, float4 v, bool accumulate) {
    float4 *const vector = reinterpret_cast<float4 *>(to);
    *vector = accumulate ? sum_of(v, *vector) : v;
}
template <class S> CF_DEVICE void store_vector(float *to, float2 v, bool accumulate) {
    float2 *const vector = reinterpret_cast<float2 *>(to);
    *vector = accumulate ? sum_of(v, *vector) : v;
}
template <class S> CF_DEVICE void store_vector(unsigned short *to, float2 v, bool accumulate) {
    unsigned *const vector = reinterpret_cast<unsigned *>(to);
    *vector = word_of<S>(accumulate ? sum_of(v, numbers_of<S>(*vector)) : v);
}
template <class S> CF_DEVICE void store_vector(unsigned short *to, float4 v, bool accumulate) {
    uint2 *const vector = reinterpret_cast<uint2 *>(to);
    float2 a = make_float2(v.x, v.y), b = make_float2(v.z, v.w);
    if (accumulate) {
        const uint2 old = *vector;
        a = sum_of(a, numbers_of<S>(old.x));
        b = sum_of(b, numbers_of<S>(old.y));
    }
    *vector = make_uint2(word_of<S>(a), word_of<S>(b));
}

/* The rows are in shared memory after wait_async() and a barrier. */
template <class K, int VECTOR>
CF_DEVICE void load_staged(smem<cplx> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef typename K::Storage Storage;
    typedef RowVectors<K, VECTOR> Vectors;
    const typename Storage::bits *const in = static_cast<const typename Storage::bits *>(call.in);
    if constexpr (Storage::PLAIN) {
#pragma unroll 8
        for (int i = 0; i < Vectors::EACH; ++i) {
            const Vectors q(i);
            if (!q.exists)
                continue;
            const StagedItem<K> r = staged_item<K, VECTOR>(z, plane_table, q.p, q.row, q.x);
            copy_async<VECTOR>(r.shared, in + plane_table.signal(q.p) + r.offset, r.inside);
        }
    } else {
        /* These numbers pass through registers, so many loads must be under way at once. */
        typedef typename WordsOf<VECTOR>::type Words;
        constexpr int MAX_LOADS = 32 / VECTOR, BATCH = Vectors::EACH < MAX_LOADS ? Vectors::EACH : MAX_LOADS;
#pragma unroll 1
        for (int first = 0; first < Vectors::EACH; first += BATCH) {
            Words v[BATCH];
#pragma unroll
            for (int i = 0; i < BATCH; ++i) {
                const Vectors q(first + i);
                v[i] = Words();
                if (q.exists) {
                    const StagedItem<K> r = staged_item<K, VECTOR>(z, plane_table, q.p, q.row, q.x);
                    if (r.inside)
                        v[i] = __ldg(reinterpret_cast<const Words *>(in + plane_table.signal(q.p) + r.offset));
                }
            }
#pragma unroll
            for (int i = 0; i < BATCH; ++i) {
                const Vectors q(first + i);
                if (q.exists)
                    put_numbers<Storage>(staged_item<K, VECTOR>(z, plane_table, q.p, q.row, q.x).shared, v[i]);
            }
        }
    }
}
template <class K, int VECTOR>
CF_DEVICE void store_staged(smem<cplx> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef typename K::Storage::bits bits;
    typedef RowVectors<K, VECTOR> Vectors;
    const bool accumulate = call.accumulate;
#pragma unroll 4
    for (int i = 0; i < Vectors::EACH; ++i) {
        const Vectors q(i);
        if (!q.exists || q.p >= plane_table.live)
            continue;
        const StagedItem<K> r = staged_item<K, VECTOR>(z, plane_table, q.p, q.row, q.x);
        if (!r.inside)
            continue;
        bits *const to = static_cast<bits *>(call.out) + plane_table.signal(q.p) + r.offset;
        real bias = 0;
        if (call.bias)
            bias = bias_at<K>(call.bias, (long long)blockIdx.y * K::CHANNELS + plane_table.channel(q.p));
        if constexpr (VECTOR > 1) {
            typedef typename VectorOf<VECTOR>::type Vector;
            const Vector staged = smem_cast<Vector>(r.shared)[0];
            store_vector<typename K::Storage>(to, plus_number(staged, bias), accumulate);
        } else {
            const real v = r.shared[0];
            put<K>(to, v + bias, accumulate);
        }
    }
}

template <class K>
CF_DEVICE void load_planes(smem<cplx> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    if constexpr (K::STAGED)
        load_staged<K, K::VECTOR>(z, plane_table, call);
    else
        load_signal<K>(z, plane_table, call);
}

/* Read the two staged rows of a line. One of them may not exist. */
template <class K> CF_DEVICE void get_rows(cplx *v, smem<cplx> line, bool first, bool second) {
    typedef PlaneGeometry<K> G;
    constexpr int QUADS = G::STAGED_ROW / 4;
    smem<float4> rows = smem_cast<float4>(line);
    unroll<0, G::LINE>([&](auto x) { v[x] = {0, 0}; });
    unroll<(G::LINE_LO + K::ALIGNMENT_SHIFT) / 4, QUADS>([&](auto q) {
        const float4 none = make_float4(0, 0, 0, 0), a = first ? rows[int(q)] : none,
                     b = second ? rows[QUADS + q] : none;
        constexpr int X = 4 * decltype(q)::value - K::ALIGNMENT_SHIFT;
        if constexpr (X >= G::LINE_LO && X < G::LINE_HI)
            v[X] = {a.x, b.x};
        if constexpr (X + 1 >= G::LINE_LO && X + 1 < G::LINE_HI)
            v[X + 1] = {a.y, b.y};
        if constexpr (X + 2 >= G::LINE_LO && X + 2 < G::LINE_HI)
            v[X + 2] = {a.z, b.z};
        if constexpr (X + 3 >= G::LINE_LO && X + 3 < G::LINE_HI)
            v[X + 3] = {a.w, b.w};
    });
}
template <class K> CF_DEVICE void put_rows(smem<cplx> line, const cplx *v, real s, bool second) {
    constexpr int QUADS = PlaneGeometry<K>::STAGED_ROW / 4;
    smem<float4> rows = smem_cast<float4>(line);
    unroll<PlaneGeometry<K>::LINE_LO / 4, QUADS>([&](auto q) {
        cplx n[4]; /* points behind the line are not stored in the signal */
        unroll<0, 4>([&](auto i) {
            constexpr int X = 4 * decltype(q)::value + decltype(i)::value;
            n[i] = {0, 0};
            if constexpr (X < PlaneGeometry<K>::LINE)
                n[i] = {s * v[X].x, s * v[X].y};
        });
        rows[int(q)] = make_float4(n[0].x, n[1].x, n[2].x, n[3].x);
        if (second)
            rows[QUADS + q] = make_float4(n[0].y, n[1].y, n[2].y, n[3].y);
    });
}
/* Read a line of N complex numbers, two at a time. */
template <int N> CF_DEVICE void read_line(cplx *v, smem<cplx> line) {
    unroll<0, N / 2>([&](auto i) {
        const float4 a = smem_cast<float4>(line)[int(i)];
        v[2 * i] = {a.x, a.y};
        v[2 * i + 1] = {a.z, a.w};
    });
    if constexpr (N % 2)
        v[N - 1] = line[N - 1];
}
template <int N> CF_DEVICE void write_line(smem<cplx> line, const cplx *v) {
    unroll<0, N / 2>([&](auto i) {
        smem_cast<float4>(line)[int(i)] = make_float4(v[2 * i].x, v[2 * i].y, v[2 * i + 1].x, v[2 * i + 1].y);
    });
    if constexpr (N % 2)
        line[N - 1] = v[N - 1];
}

template <class K>
CF_DEVICE void store_signal(smem<cplx> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef PlaneGeometry<K> G;
    typedef typename K::Storage::bits bits;
    constexpr int ITEMS = K::P * G::D0 * G::DR * G::DX;
    const bool accumulate = call.accumulate;
    const real scale = real(call.scale);
#pragma unroll 4
    for (int n = int(threadIdx.x); n < ITEMS; n += K::T) {
        const SignalItem t = item_of<K>(n);
        if (t.p >= plane_table.live)
            continue;
        const Pair<K> q = pair_of<K>(t, plane_table);
        bits *const to = static_cast<bits *>(call.out) + plane_table.signal(t.p) * (K::KIND == COMPLEX ? 2 : 1);
        cplx v = z[line_place<K>(t)];
        const real factor = scale * plane_table.factor(t.p);
        v = {factor * v.x, factor * v.y};
        if (K::KIND != COMPLEX && call.bias) {
            const real bias = bias_at<K>(call.bias, (long long)blockIdx.y * K::CHANNELS + plane_table.channel(t.p));
            v = {v.x + bias, v.y + bias};
        }
        if constexpr (K::KIND == COMPLEX) {
            if (q.inside[0]) {
                store_pair<K>(to + 2 * q.at[0], v);
            }
        } else {
            if (q.inside[0])
                put<K>(to + q.at[0], v.x, accumulate);
            if (K::KIND != UNPACKED_REAL && q.inside[1])
                put<K>(to + q.at[1], v.y, accumulate);
        }
    }
}
