// SPDX-License-Identifier: Apache-2.0
// real2d.cuh: squares with one lane per row and several planes per block.
#include "kernels/dense_fft.h"

namespace {

void squares() {
    square<2, 1, 8>(), square<8, 1, 8>(), square<14, 1, 4>();
    rest_square<4, 1, 8>(), rest_square<6, 1, 5>(), rest_square<10, 1, 6>(), rest_square<12, 1, 5>(),
        rest_square<16, 1, 4>();
    rest_square<18, 1, 7>(), rest_square<20, 1, 3>(), rest_square<24, 1, 8>(), rest_square<28, 1, 2>(),
        rest_square<30, 1, 2>();
    rest_square<32, 1, 2>();
}

} // namespace

int main() { return run_tests({{"squares", squares}}); }
