/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread moves which elements of channels-first planes, and where these are in memory and in shared memory.
 *
 * A row is cut into vectors of VECTOR elements. A thread takes one column of vectors and goes down the rows, so what
 * depends on the column is computed once. LANES threads, a slot, have one row:
 *
 *     slot 0     | lane 0 | lane 1 | ...     row 0 of plane 0, then rows OF_A_PLANE, 2 OF_A_PLANE, ...
 *     slot 1     | lane 0 | lane 1 | ...     row 1 of plane 0, ...
 *
 * With at least as many slots as planes, OF_A_PLANE slots share a plane. With fewer, each slot has several whole
 * planes.
 *
 * With TWO_ROWS_AS_COMPLEX, two neighbouring rows are the real and the imaginary part of one complex line, and are
 * moved together: "row" then means such a pair, and h = 0, 1 its two rows. With PACKED_REAL, two neighbouring elements
 * of a row are one complex point.
 */
#pragma once

#include "fbfft/shared_memory/kernel.cuh"

/* Whether the functions of these files move the planes of config K. */
template <class K>
constexpr bool CAN_SWEEP = !K::PLANES_INTERLEAVED && (K::KIND == TWO_ROWS_AS_COMPLEX || K::KIND == PACKED_REAL);

/* How the threads of a block share the vectors of its planes. */
template <class K, int VECTOR_> struct Sweep {
    typedef PlaneGeometry<K> G;
    static constexpr bool PAIRED = K::KIND == TWO_ROWS_AS_COMPLEX, HALVED = K::KIND == PACKED_REAL;
    /* VECTOR: elements that are moved at once. PIECE: elements of a vector, which has whole complex points. */
    static constexpr int VECTOR = VECTOR_, PIECE = HALVED ? cf_max_of(VECTOR, 2) : VECTOR;
    static constexpr int LO = K::STAGED ? G::template lo<2>() / 4 * 4
                              : HALVED  ? 2 * G::LINE_LO
                                        : G::LINE_LO,
                         HI = K::STAGED ? G::STAGED_ROW
                              : HALVED  ? 2 * G::LINE_HI
                                        : G::LINE_HI;
    static constexpr int ACROSS = (HI - LO + PIECE - 1) / PIECE;
    static constexpr int LANES = ACROSS < K::T ? ACROSS : K::T, TIMES = (ACROSS + LANES - 1) / LANES;
    static constexpr int SLOTS = K::T / LANES, ROWS = G::D0 * G::DR;
    static constexpr bool SHARED = SLOTS >= K::P; /* several slots share a plane */
    static constexpr int OF_A_PLANE = SHARED ? SLOTS / K::P : 1, PLANES = SHARED ? 1 : (K::P + SLOTS - 1) / SLOTS;
    static constexpr int EACH = (ROWS + OF_A_PLANE - 1) / OF_A_PLANE;
    static_assert(LO % PIECE == 0, "pieces begin where data do, or before");

    /*
     * The j-th column of this thread in its q-th plane: plane p, first row, first element x. Returns false if there
     * is none.
     */
    static CF_DEVICE bool find(int q, int j, int &p, int &row, int &x) {
        const int lane = int(threadIdx.x) % LANES, slot = int(threadIdx.x) / LANES;
        p = SHARED ? slot / OF_A_PLANE : slot + q * SLOTS;
        row = SHARED ? slot % OF_A_PLANE : 0;
        x = LO + (lane + j * LANES) * PIECE;
        return p < K::P && (K::T % LANES == 0 || slot < SLOTS) && (ACROSS % LANES == 0 || x < HI);
    }
    /* Calls f(plane, row, x) for each column of this thread. */
    template <class F> static CF_DEVICE void each_column(F f) {
#pragma unroll 1
        for (int q = 0; q < PLANES; ++q)
#pragma unroll 1
            for (int j = 0; j < TIMES; ++j) {
                int p, row, x;
                if (find(q, j, p, row, x))
                    f(p, row, x);
            }
    }
};

/*
 * Whether consecutive rows are a constant distance apart in memory: two axes, no spread window, no padding but
 * zeros.
 */
template <class K>
constexpr bool STRAIGHT = PlaneGeometry<K>::D0 == 1 && K::AXIS[1].spread == 1 &&
                          (!K::AXIS[1].checked || K::AXIS[1].mode == ZEROS);
/*
 * The rows of a thread's column. For row h of the i-th pair (or for the i-th row):
 *
 *     inside(row, i, h)      whether it is a row of the signal
 *     base(f) + at(f, i, h)  its distance in memory from row 0 of the signal. f <= i, and i - f is known at
 *                            compile time, so at() costs no instruction where rows are STRAIGHT.
 *
 * This version is for STRAIGHT rows. The second one looks up each row in the window.
 */
template <class K, class S, bool ONE_STEP> struct Rows {
    typedef PlaneGeometry<K> G;
    typedef typename K::Offset Offset;
    static constexpr int OF_A_PAIR = S::PAIRED ? 2 : 1;
    static constexpr Offset STEP = Offset(K::AXIS[1].step * K::AXIS_STRIDE[1]);
    int coordinate;
    Offset plane;
    bool inside_0;
    CF_DEVICE Rows(const PlaneTable<K> &plane_table, int p, int row) {
        inside_0 = true;
        plane = offset_of<K, 0, Offset>(G::template lo<0>(), plane_table.template start<0>(p), inside_0);
        coordinate = plane_table.template start<1>(p) +
                     (OF_A_PAIR * (row + G::ROW_LO) - K::AXIS[1].first) * int(K::AXIS[1].step);
    }
    CF_DEVICE Offset base(int first) const {
        return plane + Offset(coordinate) * Offset(K::AXIS_STRIDE[1]) + first * (S::OF_A_PLANE * OF_A_PAIR * STEP);
    }
    CF_DEVICE Offset at(int first, int i, int h) const { return ((i - first) * S::OF_A_PLANE * OF_A_PAIR + h) * STEP; }
    CF_DEVICE bool inside(int row, int i, int h) const {
        constexpr AxisWindow a = K::AXIS[1];
        const int position = OF_A_PAIR * (row + i * S::OF_A_PLANE + G::ROW_LO) + h;
        bool in = inside_0;
        if (h == 0 && OF_A_PAIR == 2 && G::template lo<1>() % 2)
            in = in && position >= G::template lo<1>();
        if (h == 1 && G::template hi<1>() % 2)
            in = in && position < G::template hi<1>();
        if constexpr (a.checked) {
            const int c = coordinate + (i * S::OF_A_PLANE * OF_A_PAIR + h) * int(a.step);
            constexpr int low = int(a.lower > 0 ? a.lower : 0), high = int(a.upper < a.size ? a.upper : a.size);
            in = in && c >= low && c < high;
        }
        return in;
    }
};
template <class K, class S> struct Rows<K, S, false> {
    typedef PlaneGeometry<K> G;
    typedef typename K::Offset Offset;
    const PlaneTable<K> &plane_table;
    int p, row;
    CF_DEVICE Rows(const PlaneTable<K> &from, int plane, int first) : plane_table(from), p(plane), row(first) {}
    CF_DEVICE Offset base(int) const { return 0; }
    CF_DEVICE Offset find(int i, int h, bool &in) const {
        const int n = row + i * S::OF_A_PLANE, line = n % G::DR + G::ROW_LO, position = S::PAIRED ? 2 * line + h : line;
        const bool data = position >= G::template lo<1>() && position < G::template hi<1>();
        in = data;
        const Offset at =
            offset_of<K, 1, Offset>(data ? position : G::template lo<1>(), plane_table.template start<1>(p), in);
        return at + offset_of<K, 0, Offset>(n / G::DR + G::template lo<0>(), plane_table.template start<0>(p), in);
    }
    CF_DEVICE Offset at(int, int i, int h) const {
        bool in;
        return find(i, h, in);
    }
    CF_DEVICE bool inside(int, int i, int h) const {
        bool in;
        find(i, h, in);
        return in;
    }
};

/* A word of VECTOR 16-bit elements. */
template <int VECTOR> struct BitsOf { typedef unsigned type; };
template <> struct BitsOf<4> { typedef unsigned long long type; };

/*
 * Loads COUNT elements, VECTOR at a time, and converts them. With VECTOR = 1 and COUNT = 2, the second element is
 * `second` elements away. Elements that are not inside become zero and are not read.
 */
template <class K, int COUNT, int VECTOR>
CF_DEVICE void get_numbers(real *v, const typename K::Storage::bits *from, typename K::Offset second, bool inside,
                           bool second_inside) {
    typedef typename K::Storage Storage;
    if constexpr (VECTOR > 1 && !Storage::PLAIN) {
        typedef typename BitsOf<VECTOR>::type Vector;
        const Vector a = inside ? __ldg(reinterpret_cast<const Vector *>(from)) : Vector(0);
        unroll<0, VECTOR>([&](auto e) { v[e] = Storage::number((unsigned short)(a >> (16 * e))); });
    } else if constexpr (VECTOR == 4) {
        const float4 a = inside ? __ldg(reinterpret_cast<const float4 *>(from)) : make_float4(0, 0, 0, 0);
        v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
    } else if constexpr (VECTOR == 2) {
        const float2 a = inside ? __ldg(reinterpret_cast<const float2 *>(from)) : make_float2(0, 0);
        v[0] = a.x, v[1] = a.y;
    } else {
        v[0] = inside ? Storage::load(from) : real(0);
        if constexpr (COUNT == 2)
            v[1] = second_inside ? Storage::load(from + second) : real(0);
    }
}

/* What a thread computes once for a column: offsets in memory and places in a line of shared memory. */
template <class K, int VECTOR> struct Column {
    typedef Sweep<K, VECTOR> S;
    typedef PlaneGeometry<K> G;
    typedef typename K::Offset Offset;
    int p, row, x, place[S::PIECE]; /* places of the points in a line */
    Offset across, second;
    bool inside, second_inside;
    CF_DEVICE Column(const PlaneTable<K> &plane_table, int plane, int first, int number)
        : p(plane), row(first), x(number) {
        const int start = plane_table.template start<2>(p);
        const auto find = [&](int i, bool &in) {
            in = i >= G::template lo<2>() && i < G::template hi<2>();
            return offset_of<K, 2, Offset>(in ? i : G::template lo<2>(), start, in);
        };
        across = find(x, inside);
        second = 0;
        second_inside = false;
        if constexpr (S::HALVED && VECTOR == 1)
            second = find(x + 1, second_inside) - across;
        const int point = S::HALVED ? x / 2 : x;
        unroll<0, S::PIECE>([&](auto e) {
            if (K::STAGED || (S::HALVED && e >= S::PIECE / 2))
                place[e] = 0;
            else
                place[e] = G::O2::time(point + e);
        });
    }
    /* Whether the thread has an i-th row. */
    CF_DEVICE bool exists(int i) const { return S::ROWS % S::OF_A_PLANE == 0 || row + i * S::OF_A_PLANE < S::ROWS; }
    /* The offset of the i-th row's line in shared memory. */
    CF_DEVICE int offset(int i) const {
        const int n = row + i * S::OF_A_PLANE;
        if constexpr (G::D0 == 1)
            return p * G::PLANE + G::template lo<0>() * G::AXIS0_PITCH + (n + G::ROW_LO) * G::PITCH;
        else
            return p * G::PLANE + (n / G::DR + G::template lo<0>()) * G::AXIS0_PITCH +
                   (n % G::DR + G::ROW_LO) * G::PITCH;
    }
};
