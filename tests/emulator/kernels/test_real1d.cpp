// SPDX-License-Identifier: Apache-2.0
// real1d.cuh: every length of short rows, with one lane each as the planner chooses them, and longer rows on several
// lanes.
#include "kernels/dense_fft.h"

namespace {

template <int N> void short_line() {
    line<Config1d<N, N, 1, 32, N % 4 == 0>>(33);
    line<Config1d<N, (N + 1) / 2, 1, 32, false>>(5);
}
template <int... N> void rest_short_lines() {
    (rest_line<Config1d<N, N, 1, 32, N % 4 == 0>>(33), ...);
    (rest_line<Config1d<N, (N + 1) / 2, 1, 32, false>>(5), ...);
}
void short_lines() {
    short_line<2>(), short_line<12>(), short_line<14>();
    line<Config1d<16, 8, 1, 32, true>>(33);
    rest_short_lines<4, 6, 8, 10, 16, 18, 20, 24, 28, 30, 32, 36, 40, 42, 48, 50, 54, 56, 60>();
}
void long_lines() {
    line<Config1d<24, 23, 2, 32, false>>(7), line<Config1d<32, 32, 4, 32, true>>(40);
    rest_line<Config1d<72, 72, 2, 32, true>>(33), rest_line<Config1d<80, 33, 2, 32, false>>(7);
    rest_line<Config1d<96, 96, 4, 32, true>>(40), rest_line<Config1d<160, 160, 4, 32, true>>(32);
    rest_line<Config1d<192, 100, 4, 32, true>>(4), rest_line<Config1d<224, 224, 4, 32, true>>(8);
}

} // namespace

int main() { return run_tests({{"short lines", short_lines}, {"long lines", long_lines}}); }
