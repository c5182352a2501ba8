// SPDX-License-Identifier: Apache-2.0
// The kernels of real transforms, run by the emulator and compared with the definition in double: in random thread
// order, with checks of races, bounds, uninitialised reads and barriers. They take long to compile, so the cases are
// divided among several programs. Of the programs named rest_..., each run compiles a share (in_share.h).
#ifndef SIMT_REAL_H
#define SIMT_REAL_H

#include "check.h"
#include "fbfft/warp/real1d.cuh"
#include "fbfft/warp/real1d_warp.cuh"
#include "fbfft/warp/real2d.cuh"
#include "kernels/in_share.h"

#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <string>
#include <vector>

typedef std::complex<double> complex;

inline std::vector<float> random_reals(size_t count, unsigned seed) {
    std::vector<float> v(count);
    for (float &a : v) {
        seed = seed * 1664525u + 1013904223u;
        a = float(int(seed >> 8) - (1 << 23)) / float(1 << 23);
    }
    return v;
}

// The transform by the definition, axis by axis: O(n^2) along each.
inline std::vector<complex> transform(const std::vector<complex> &in, int h, int w, double sign) {
    const double turn = sign * 2 * std::acos(-1.0);
    std::vector<complex> rows(in.size()), out(in.size());
    for (int y = 0; y < h; ++y)
        for (int k = 0; k < w; ++k)
            for (int x = 0; x < w; ++x)
                rows[y * w + k] += in[y * w + x] * std::polar(1.0, turn * (k * x % w) / w);
    for (int x = 0; x < w; ++x)
        for (int k = 0; k < h; ++k)
            for (int y = 0; y < h; ++y)
                out[k * w + x] += rows[y * w + x] * std::polar(1.0, turn * (k * y % h) / h);
    return out;
}

inline double relative_error(const std::vector<double> &expected, const std::vector<float> &got) {
    double error = 0, norm = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
        if (std::isnan(got[i]))
            return std::numeric_limits<double>::infinity();
        error += (got[i] - expected[i]) * (got[i] - expected[i]);
        norm += expected[i] * expected[i];
    }
    return norm > 0 ? std::sqrt(error / norm) : std::numeric_limits<double>::infinity();
}

struct Shape {
    int h, w, data_h, data_w, batch;
};

inline std::vector<float> spectra_of(const Shape &s, const std::vector<float> &x, std::vector<double> &expected) {
    const int bins = s.w / 2 + 1;
    for (int p = 0; p < s.batch; ++p) {
        std::vector<complex> plane(size_t(s.h) * s.w);
        for (int y = 0; y < s.data_h; ++y)
            for (int i = 0; i < s.data_w; ++i)
                plane[y * s.w + i] = x[(size_t(p) * s.data_h + y) * s.data_w + i];
        const std::vector<complex> spectrum = transform(plane, s.h, s.w, -1);
        for (int k = 0; k < s.h; ++k)
            for (int i = 0; i < bins; ++i) {
                expected.push_back(spectrum[k * s.w + i].real());
                expected.push_back(spectrum[k * s.w + i].imag());
            }
    }
    return std::vector<float>(expected.begin(), expected.end());
}

// Bins that are their own mirror images are real. An inverse ignores their imaginary parts.
inline void spoil_own_bins(const Shape &s, std::vector<float> &spectra) {
    const size_t bins = size_t(s.w / 2 + 1);
    for (size_t p = 0; p < size_t(s.batch); ++p)
        for (int k = 0; k < s.h; ++k)
            for (int i = 0; i < int(bins); ++i)
                if (2 * k % s.h == 0 && 2 * i % s.w == 0)
                    spectra[2 * ((p * size_t(s.h) + size_t(k)) * bins + size_t(i)) + 1] = 7;
}

// Both directions: forward against the definition, inverse of the exact spectrum against the data.
inline void check_both(const Shape &s, int per_block, int threads, int shared, int shared_inverse,
                       const std::function<void(const float *, cplx *)> &forward,
                       const std::function<void(const cplx *, float *)> &inverse, const char *name) {
    const std::vector<float> x = random_reals(size_t(s.batch) * s.data_h * s.data_w, unsigned(s.h * 1000 + s.w));
    std::vector<double> expected;
    std::vector<float> exact = spectra_of(s, x, expected);
    spoil_own_bins(s, exact);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> y(exact.size(), nan), back(x.size(), nan);
    simt::options o;
    o.order = simt::order::random;
    o.seed = unsigned(s.h + s.w);
    const unsigned blocks = unsigned((s.batch + per_block - 1) / per_block);
    const simt::result f = simt::launch(
        blocks, unsigned(threads), size_t(shared), [&] { forward(x.data(), reinterpret_cast<cplx *>(y.data())); }, o);
    const simt::result g = simt::launch(
        blocks, unsigned(threads), size_t(shared_inverse),
        [&] { inverse(reinterpret_cast<const cplx *>(exact.data()), back.data()); }, o);
    const std::string what = std::string(name) + " " + std::to_string(s.h) + "x" + std::to_string(s.w) + " from " +
                             std::to_string(s.data_h) + "x" + std::to_string(s.data_w);
    CHECK_TEXT(f.ok(), what + " forward: " + f.first());
    CHECK_TEXT(g.ok(), what + " inverse: " + g.first());
    const double error = relative_error(expected, y),
                 error_back = relative_error(std::vector<double>(x.begin(), x.end()), back);
    CHECK_TEXT(error <= 4e-7, what + " forward: error " + std::to_string(error * 1e7) + "e-7");
    CHECK_TEXT(error_back <= 4e-7, what + " inverse: error " + std::to_string(error_back * 1e7) + "e-7");
}

template <int H_, int W_, int IH_, int IW_, int L_, int PLANES_, bool QUADS_, bool SCALED_ = true> struct Config2d {
    static constexpr int H = H_, W = W_, IH = IH_, IW = IW_, L = L_, PLANES = PLANES_;
    static constexpr bool ALIGNED = QUADS_ || W_ % 4 == 0, QUADS = QUADS_, BULK = false, SCALED = SCALED_;
};
template <int N_, int IN_, int L_, int LINES_, bool QUADS_> struct Config1d {
    static constexpr int N = N_, IN = IN_, L = L_, LINES = LINES_;
    static constexpr bool ALIGNED = QUADS_ || N_ % 4 == 0, QUADS = QUADS_, SCALED = true;
};

template <class K> void plane(int batch) {
    check_both(
        {K::H, K::W, K::IH, K::IW, batch}, K::PLANES, Real2d<K>::T, Real2d<K>::SHARED, Inverse2d<K>::SHARED,
        [=](const float *x, cplx *y) { real2d_forward<K>(x, y, 1.0f, batch); },
        [=](const cplx *y, float *x) { real2d_inverse<K>(y, x, 1.0f / (K::H * K::W), batch); }, "2-D");
}
template <class K> void line(int batch) {
    check_both(
        {1, K::N, 1, K::IN, batch}, K::LINES, Real1d<K>::T, Real1d<K>::SHARED, Real1d<K>::SHARED,
        [=](const float *x, cplx *y) { real1d_forward<K>(x, y, 1.0f, batch); },
        [=](const cplx *y, float *x) { real1d_inverse<K>(y, x, 1.0f / K::N, batch); }, "1-D");
}

// Some launches have blocks of one warp.
template <class K> void pairs(int batch, int warps = Pairs1d<K>::T / 32) {
    typedef Pairs1d<K> P;
    check_both(
        {1, K::N, 1, K::IN, batch}, warps * P::LINES_PER_WARP, 32 * warps, warps * P::WARP_BYTES, warps * P::WARP_BYTES,
        [=](const float *x, cplx *y) { real1d_forward_pairs<K>(x, y, 1.0f, batch); },
        [=](const cplx *y, float *x) { real1d_inverse_pairs<K>(y, x, 1.0f / K::N, batch); }, "pairs of 1-D");
}
template <class K> void rest_plane(int batch) {
    if constexpr (in_share<K>())
        plane<K>(batch);
}
template <class K> void rest_line(int batch) {
    if constexpr (in_share<K>())
        line<K>(batch);
}
template <class K> void rest_pairs(int batch) {
    if constexpr (in_share<K>())
        pairs<K>(batch);
}
template <int N, int L, int PLANES> void square() {
    plane<Config2d<N, N, N, N, L, PLANES, true, false>>(PLANES + 1);
    plane<Config2d<N, N, N / 2 + 1, N / 2, L, PLANES, false>>(2);
}
template <int N, int L, int PLANES> void rest_square() {
    rest_plane<Config2d<N, N, N, N, L, PLANES, true, false>>(PLANES + 1);
    rest_plane<Config2d<N, N, N / 2 + 1, N / 2, L, PLANES, false>>(2);
}

#endif
