/* SPDX-License-Identifier: Apache-2.0 */
/* The spectrum: from shared memory to bins, and back. */
#pragma once

#include "fbfft/shared_memory/signal.cuh"

template <class K> CF_DEVICE long long bin_of(int k0, int k1, int k, long long unit) {
    const long long bin =
        (long long)k0 * K::BIN_STRIDE[0] + (long long)k1 * K::BIN_STRIDE[1] + (long long)k * K::BIN_STRIDE[2];
    return K::UNIT ? bin : bin * unit;
}

/* The place of bin (k0, k1) of column k in its plane. */
template <class K> CF_DEVICE int bin_place(int k0, int k1, int k) {
    typedef PlaneGeometry<K> G;
    return G::O0::frequency(k0) * G::AXIS0_PITCH + G::row_at(G::O1::frequency(k1), G::O2::frequency(k), G::mirror(k));
}

struct SpectrumBin {
    int p, k0, k1, k;
};
/* n counts [P][N0][N1][columns] in the order of the spectrum in memory. */
template <class K, int COLUMNS> CF_DEVICE SpectrumBin bin_item(int n) {
    typedef PlaneGeometry<K> G;
    SpectrumBin t;
    if (K::ORDER == BY_PLANE) {
        t.p = n % K::P;
        n /= K::P;
    }
    if (K::ORDER == BY_ROW) {
        t.k0 = n % G::N0;
        n /= G::N0;
        t.k1 = n % G::N1;
        n /= G::N1;
        t.k = n % COLUMNS;
        n /= COLUMNS;
    } else {
        t.k = n % COLUMNS;
        n /= COLUMNS;
        t.k1 = n % G::N1;
        n /= G::N1;
        t.k0 = n % G::N0;
        n /= G::N0;
    }
    if (K::ORDER != BY_PLANE)
        t.p = n;
    return t;
}

/* Copy columns 0 .. COLUMNS - 1 between shared memory and the spectrum. COLUMNS is 1 or all of them. With
 * PACKED_REAL, columns k and LINE - k are copied at once. */
template <class K, int COLUMNS>
CF_DEVICE void store_bins(smem<cplx> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef PlaneGeometry<K> G;
    typedef typename K::Bins Bins;
    typename Bins::number *const out = static_cast<typename Bins::number *>(call.out);
#pragma unroll 2
    for (int n = int(threadIdx.x); n < K::P * G::N0 * G::N1 * COLUMNS; n += K::T) {
        const SpectrumBin t = bin_item<K, COLUMNS>(n);
        if (t.p >= plane_table.live)
            continue;
        smem<cplx> plane = z + t.p * G::PLANE;
        typename Bins::number *const to = out + plane_table.spectrum(t.p);
        const real factor = plane_table.factor(t.p);
        const cplx a = plane[bin_place<K>(t.k0, t.k1, t.k)];
        if constexpr (K::KIND == PACKED_REAL) {
            const cplx b = plane[bin_place<K>(0, 0, t.k ? G::LINE - t.k : 0)];
            const cplx even = times_half(a + conj(b)), odd = root<G::N2>(t.k) * times_minus_i(times_half(a - conj(b)));
            Bins::store(to + bin_of<K>(0, 0, t.k, call.bin_unit), even + odd, factor);
            Bins::store(to + bin_of<K>(0, 0, G::LINE - t.k, call.bin_unit), conj(even - odd), factor);
        } else if (G::NYQUIST_PACKED && t.k == 0) {
            const cplx b = plane[bin_place<K>(t.k0 ? G::N0 - t.k0 : 0, t.k1 ? G::N1 - t.k1 : 0, 0)];
            Bins::store(to + bin_of<K>(t.k0, t.k1, 0, call.bin_unit), times_half(a + conj(b)), factor);
            Bins::store(to + bin_of<K>(t.k0, t.k1, G::N2 / 2, call.bin_unit), times_minus_i(times_half(a - conj(b))),
                        factor);
        } else {
            Bins::store(to + bin_of<K>(t.k0, t.k1, t.k, call.bin_unit), a, factor);
        }
    }
}

/* Whether bin (k0, k1) of column 0 or N2 / 2 is its own mirror image. Its imaginary part is ignored. */
template <class K> CF_DEVICE bool own_mirror(int k0, int k1) {
    typedef PlaneGeometry<K> G;
    return (k0 == 0 || 2 * k0 == G::N0) && (k1 == 0 || 2 * k1 == G::N1);
}

template <class K, int COLUMNS>
CF_DEVICE void load_bins(smem<cplx> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef PlaneGeometry<K> G;
    typedef typename K::Bins Bins;
    const typename Bins::number *const in = static_cast<const typename Bins::number *>(call.in);
#pragma unroll 4
    for (int n = int(threadIdx.x); n < K::P * G::N0 * G::N1 * COLUMNS; n += K::T) {
        const SpectrumBin t = bin_item<K, COLUMNS>(n);
        smem<cplx> plane = z + t.p * G::PLANE;
        const typename Bins::number *const from = in + plane_table.spectrum(t.p);
        cplx a = Bins::load(from + bin_of<K>(t.k0, t.k1, t.k, call.bin_unit));
        if constexpr (K::KIND == PACKED_REAL) {
            cplx b = Bins::load(from + bin_of<K>(0, 0, G::LINE - t.k, call.bin_unit));
            if (t.k == 0) {
                a = {a.x, 0};
                b = {b.x, 0};
            }
            const cplx even = a + conj(b), odd = times_i(conj(root<G::N2>(t.k)) * (a - conj(b)));
            if (t.k > 0)
                plane[bin_place<K>(0, 0, G::LINE - t.k)] = conj(even - odd);
            plane[bin_place<K>(0, 0, t.k)] = even + odd;
        } else if (G::NYQUIST_PACKED && t.k == 0) {
            const cplx b = Bins::load(from + bin_of<K>(t.k0, t.k1, G::N2 / 2, call.bin_unit));
            plane[bin_place<K>(t.k0, t.k1, 0)] = own_mirror<K>(t.k0, t.k1) ? cplx{a.x, b.x} : a + times_i(b);
        } else {
            if (G::REAL && G::own(t.k) && own_mirror<K>(t.k0, t.k1))
                a.y = 0;
            plane[bin_place<K>(t.k0, t.k1, t.k)] = a;
            if (K::KIND == UNPACKED_REAL && t.k > 0)
                plane[bin_place<K>(0, 0, G::N2 - t.k)] = conj(a);
        }
    }
}
