// SPDX-License-Identifier: Apache-2.0
// real2d.cuh: squares whose lines fill warps; with sanitizers small ones that take the same ways.
#include "real.h"

namespace {

void one_lane() {
#ifdef SIMT_THIN
    square<12, 1, 6>();
#else
    square<36, 1, 3>(), square<40, 1, 3>(), square<42, 1, 1>(), square<48, 1, 1>(), square<50, 1, 1>();
    square<54, 1, 1>(), square<60, 1, 1>();
#endif
}
// Lanes that hold whole pairs of rows and such that do not, and blocks whose planes share warps.
void several_lanes() {
    square<12, 2, 3>(), square<16, 2, 2>(), square<16, 4, 3>();
#ifndef SIMT_THIN
    square<32, 2, 1>(), square<32, 4, 2>(), square<56, 2, 1>(), square<64, 2, 1>(), square<64, 4, 1>();
    square<64, 8, 1>(), square<72, 2, 2>(), square<80, 4, 1>(), square<96, 4, 1>(), square<112, 4, 1>();
    square<128, 4, 1>();
#endif
}

} // namespace

int main() { return run_tests({{"one lane", one_lane}, {"several lanes", several_lanes}}); }
