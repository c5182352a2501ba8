// SPDX-License-Identifier: Apache-2.0
// real2d.cuh: rectangles, with odd numbers of rows and columns of data.
#include "kernels/dense_fft.h"

namespace {

void rectangles() {
    plane<Config2d<8, 12, 8, 12, 1, 2, true>>(3), plane<Config2d<6, 10, 5, 9, 1, 6, false>>(7);
    plane<Config2d<12, 20, 2, 20, 1, 3, true>>(4), plane<Config2d<64, 2, 64, 1, 1, 1, false>>(2);
    rest_plane<Config2d<8, 32, 8, 32, 1, 2, true>>(3), rest_plane<Config2d<32, 8, 31, 7, 1, 2, false>>(3);
    rest_plane<Config2d<64, 16, 33, 16, 2, 1, false>>(2), rest_plane<Config2d<14, 48, 9, 13, 1, 1, false>>(2);
    rest_plane<Config2d<64, 64, 9, 9, 2, 1, false>>(2), rest_plane<Config2d<16, 16, 5, 5, 1, 4, false>>(6);
    rest_plane<Config2d<96, 16, 40, 12, 4, 1, true>>(2), rest_plane<Config2d<128, 32, 100, 30, 4, 1, true>>(1);
    rest_plane<Config2d<2, 64, 2, 64, 1, 1, true>>(3);
}

} // namespace

int main() { return run_tests({{"rectangles", rectangles}}); }
