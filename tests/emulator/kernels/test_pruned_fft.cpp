/* SPDX-License-Identifier: Apache-2.0 */
/* dft_of() of conv/fused/pruned_dft.cuh, in double, against the definition: many lengths, with data at all points, at
 * few points, and with gaps. Points without data are uninitialised and must not be read. */
#define CF_REAL double

#include "check.h"
#include "kernels/in_share.h"
#include "simt.h"

#include <conv/fused/pruned_fft.cuh>

#include <cmath>
#include <complex>
#include <limits>

namespace {

typedef std::complex<double> number;

const double PI = 3.14159265358979323846;

number point(int j) { return {std::sin(1.0 + j * j), std::cos(3.0 + 7.0 * j)}; }

template <int N> double error_of(const cplx *v, Points data, bool inverse) {
    double worst = 0;
    for (int k = 0; k < N; ++k) {
        number sum = 0;
        for (int j = 0; j < N; ++j)
            if (cf_has(data, j))
                sum += point(j) * std::polar(1.0, (inverse ? 2 : -2) * PI * (j * k % N) / N);
        const double error = std::abs(sum - number(v[k].x, v[k].y));
        worst = error > worst || std::isnan(error) ? error : worst;
    }
    return worst;
}

template <int N, Points DATA> void check_data() {
    const double none = std::numeric_limits<double>::quiet_NaN(), tolerance = 1e-14 * N;
    cplx v[N];
    for (int j = 0; j < N; ++j)
        v[j] = cf_has(DATA, j) ? cplx{point(j).real(), point(j).imag()} : cplx{none, none};
    dft_of<N, DATA>(v);
    CHECK_TEXT(error_of<N>(v, DATA, false) <= tolerance, std::to_string(N) + " points, data " + std::to_string(DATA));
}

template <int N> void check_length() {
    constexpr Points ALL = cf_points(0, N), HALF = cf_points(N / 2, N), MIDDLE = cf_points(N / 4, N - N / 4),
                     EVERY_THIRD = 0x9249249249249249u & ALL, LAST = cf_points(N - 1, N);
    check_data<N, ALL>();
    check_data<N, cf_points(0, (N + 1) / 2)>();
    check_data<N, HALF>();
    check_data<N, MIDDLE>();
    check_data<N, EVERY_THIRD>();
    check_data<N, LAST>();
    cplx v[N];
    for (int j = 0; j < N; ++j)
        v[j] = {point(j).real(), point(j).imag()};
    dft_back<N>(v);
    CHECK_TEXT(error_of<N>(v, ALL, true) <= 1e-14 * N, std::to_string(N) + " points back");
}

template <int N> struct Length {};
template <int N> void rest_length() {
    if constexpr (in_share<Length<N>>())
        check_length<N>();
}
template <int... N> void check_lengths() { (check_length<N>(), ...); }
template <int... N> void rest_lengths() { (rest_length<N>(), ...); }

/* Every factor in one, two and three FFT stages; a share of the other cases. */
void lines() {
    check_lengths<2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 21, 28, 36>();
    rest_lengths<14, 18, 20, 24, 25, 27, 30, 32, 35, 40, 42, 45, 48, 49, 54, 56, 60, 63, 64>();
}

/* Every task is executed once, for any SPREAD. */
template <int P_, int PLANE_, int PITCH_, bool STAGED_> struct Planes_ {
    static constexpr int P = P_, PLANE = PLANE_, PITCH = PITCH_;
    static constexpr bool STAGED = STAGED_;
};
template <class K, int COUNT> void check_tasks(int spread) {
    CHECK(SPREAD<K> == spread);
    bool seen[K::P * COUNT] = {};
    for (int n = 0; n < K::P * COUNT; ++n) {
        const int task = spread_task<K, COUNT>(n);
        if (!CHECK(task >= 0 && task < K::P * COUNT && !seen[task]))
            return;
        seen[task] = true;
        if (spread > 1)
            CHECK(task / COUNT % spread == n % spread);
    }
}
void tasks() {
    check_tasks<Planes_<8, 121, 17, false>, 5>(8);
    check_tasks<Planes_<24, 7, 6, false>, 12>(8);
    check_tasks<Planes_<8, 120, 17, false>, 5>(1);
    check_tasks<Planes_<5, 121, 17, false>, 4>(1);
}

} // namespace

int main() { return run_tests({{"lines", lines}, {"tasks", tasks}}); }
