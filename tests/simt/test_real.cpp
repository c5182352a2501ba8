// SPDX-License-Identifier: Apache-2.0
// The kernels of real transforms, run by the emulator and compared with the definition in double: every configuration in
// random thread order, with races, bounds, uninitialised reads and barriers checked.
#include "check.h"
#include "fbfft/kernels/real1d.cuh"
#include "fbfft/kernels/real2d.cuh"

#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <vector>

namespace {

typedef std::complex<double> complex;

std::vector<float> random_reals(size_t count, unsigned seed) {
    std::vector<float> v(count);
    for (float &a : v) {
        seed = seed * 1664525u + 1013904223u;
        a = float(int(seed >> 8) - (1 << 23)) / float(1 << 23);
    }
    return v;
}

// The definition, axis by axis: O(n^2) along each.
std::vector<complex> transform(const std::vector<complex> &in, int h, int w, double sign) {
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

double relative_error(const std::vector<double> &expected, const std::vector<float> &got) {
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

std::vector<float> spectra_of(const Shape &s, const std::vector<float> &x, std::vector<double> &expected) {
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

// Both directions: forward against the definition, inverse of the exact spectrum against the data.
template <class F, class G>
void check_both(const Shape &s, int per_block, int threads, int shared, int shared_inverse, F forward, G inverse,
                const char *name) {
    const std::vector<float> x = random_reals(size_t(s.batch) * s.data_h * s.data_w, unsigned(s.h * 1000 + s.w));
    std::vector<double> expected;
    const std::vector<float> exact = spectra_of(s, x, expected);
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
    static constexpr bool QUADS = QUADS_, BULK = false, SCALED = SCALED_;
};
template <int N_, int IN_, int L_, int LINES_, bool QUADS_> struct Config1d {
    static constexpr int N = N_, IN = IN_, L = L_, LINES = LINES_;
    static constexpr bool QUADS = QUADS_, SCALED = true;
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

// As the planner does: one lane up to 64 points.
template <int N> void short_line() {
    line<Config1d<N, N, 1, 32, N % 4 == 0>>(33);
    line<Config1d<N, (N + 1) / 2, 1, 32, false>>(5);
}
void short_lines() {
    short_line<2>(), short_line<4>(), short_line<6>(), short_line<8>(), short_line<10>(), short_line<12>(),
        short_line<14>();
    short_line<16>(), short_line<18>(), short_line<20>(), short_line<24>(), short_line<28>(), short_line<30>(),
        short_line<32>();
    short_line<36>(), short_line<40>(), short_line<42>(), short_line<48>(), short_line<50>(), short_line<54>(),
        short_line<56>();
    short_line<60>(), short_line<64>();
}
void long_lines() {
    line<Config1d<72, 72, 2, 32, true>>(33), line<Config1d<80, 33, 2, 32, false>>(7),
        line<Config1d<96, 96, 4, 32, true>>(40);
    line<Config1d<128, 128, 4, 32, true>>(35), line<Config1d<128, 77, 4, 32, false>>(3),
        line<Config1d<160, 160, 4, 32, true>>(32);
    line<Config1d<192, 100, 4, 32, true>>(4), line<Config1d<224, 224, 4, 32, true>>(8),
        line<Config1d<256, 256, 8, 16, true>>(17);
    line<Config1d<256, 31, 8, 16, false>>(5);
}

template <int N, int L, int PLANES> void square() {
    plane<Config2d<N, N, N, N, L, PLANES, true, false>>(PLANES + 1);
    plane<Config2d<N, N, N / 2 + 1, N / 2, L, PLANES, false>>(2);
}
void small_squares() {
    square<2, 1, 8>(), square<4, 1, 8>(), square<6, 1, 5>(), square<8, 1, 8>(), square<10, 1, 6>(), square<12, 1, 5>();
    square<14, 1, 4>(), square<16, 1, 4>(), square<18, 1, 7>(), square<20, 1, 3>(), square<24, 1, 8>(),
        square<28, 1, 2>();
    square<30, 1, 2>(), square<32, 1, 2>();
}
void large_squares() {
    square<36, 1, 1>(), square<40, 1, 1>(), square<42, 1, 1>(), square<48, 1, 1>(), square<50, 1, 1>(),
        square<56, 1, 1>();
    square<60, 1, 1>(), square<64, 1, 1>(), square<72, 2, 1>(), square<80, 4, 1>(), square<96, 4, 1>(),
        square<112, 4, 1>();
    square<128, 4, 1>();
}
void lanes() {
    square<16, 2, 2>(), square<16, 4, 3>(), square<32, 2, 1>(), square<32, 4, 2>(), square<64, 2, 1>(),
        square<64, 4, 1>(), square<64, 8, 1>();
}
void rectangles() {
    plane<Config2d<8, 32, 8, 32, 1, 2, true>>(3), plane<Config2d<32, 8, 31, 7, 1, 2, false>>(3),
        plane<Config2d<6, 10, 5, 9, 1, 6, false>>(7);
    plane<Config2d<12, 20, 2, 20, 1, 3, true>>(4), plane<Config2d<64, 16, 33, 16, 1, 1, false>>(2),
        plane<Config2d<14, 48, 9, 13, 1, 1, false>>(2);
    plane<Config2d<64, 64, 9, 9, 1, 1, false>>(2), plane<Config2d<16, 16, 5, 5, 1, 4, false>>(6),
        plane<Config2d<96, 16, 40, 12, 4, 1, true>>(2);
    plane<Config2d<128, 32, 100, 30, 4, 1, true>>(1), plane<Config2d<2, 64, 2, 64, 1, 1, true>>(3),
        plane<Config2d<64, 2, 64, 1, 1, 1, false>>(2);
}

} // namespace

int main() {
    return run_tests({{"short lines", short_lines},
                      {"long lines", long_lines},
                      {"small squares", small_squares},
                      {"large squares", large_squares},
                      {"lanes", lanes},
                      {"rectangles", rectangles}});
}
