// SPDX-License-Identifier: Apache-2.0
// real2d.cuh: squares whose rows fill warps; small squares with the same code paths, and a share of the large ones.
#include "kernels/dense_fft.h"

namespace {

void one_lane() {
    square<12, 1, 6>();
    rest_square<36, 1, 3>(), rest_square<40, 1, 3>(), rest_square<42, 1, 1>(), rest_square<48, 1, 1>();
    rest_square<50, 1, 1>(), rest_square<54, 1, 1>(), rest_square<60, 1, 1>();
}
// Lanes that hold whole pairs of rows and lanes that do not, and blocks whose planes share warps.
void several_lanes() {
    square<12, 2, 3>(), square<16, 2, 2>(), square<16, 4, 3>();
    rest_square<32, 2, 1>(), rest_square<32, 4, 2>(), rest_square<56, 2, 1>(), rest_square<64, 2, 1>();
    rest_square<64, 4, 1>(), rest_square<64, 8, 1>(), rest_square<72, 2, 2>(), rest_square<80, 4, 1>();
    rest_square<96, 4, 1>(), rest_square<112, 4, 1>(), rest_square<128, 4, 1>();
}

} // namespace

int main() { return run_tests({{"one lane", one_lane}, {"several lanes", several_lanes}}); }
