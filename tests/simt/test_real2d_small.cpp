// SPDX-License-Identifier: Apache-2.0
// real2d.cuh: squares, one lane a line, several planes a block.
#include "real.h"

namespace {

void squares() {
    square<2, 1, 8>(), square<8, 1, 8>(), square<14, 1, 4>();
#ifndef SIMT_THIN
    square<4, 1, 8>(), square<6, 1, 5>(), square<10, 1, 6>(), square<12, 1, 5>(), square<16, 1, 4>();
    square<18, 1, 7>(), square<20, 1, 3>(), square<24, 1, 8>(), square<28, 1, 2>(), square<30, 1, 2>();
    square<32, 1, 2>();
#endif
}

} // namespace

int main() { return run_tests({{"squares", squares}}); }
