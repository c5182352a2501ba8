// SPDX-License-Identifier: Apache-2.0
// real1d.cuh: every length of a short line, as the planner has them one lane each, and longer ones on several lanes.
#include "real.h"

namespace {

template <int N> void short_line() {
    line<Config1d<N, N, 1, 32, N % 4 == 0>>(33);
    line<Config1d<N, (N + 1) / 2, 1, 32, false>>(5);
}
void short_lines() {
    short_line<2>(), short_line<12>(), short_line<14>();
    line<Config1d<16, 8, 1, 32, true>>(33);
#ifndef SIMT_THIN
    short_line<4>(), short_line<6>(), short_line<8>(), short_line<10>(), short_line<16>(), short_line<18>();
    short_line<20>(), short_line<24>(), short_line<28>(), short_line<30>(), short_line<32>(), short_line<36>();
    short_line<40>(), short_line<42>(), short_line<48>(), short_line<50>(), short_line<54>(), short_line<56>();
    short_line<60>();
#endif
}
void long_lines() {
    line<Config1d<24, 23, 2, 32, false>>(7), line<Config1d<32, 32, 4, 32, true>>(40);
#ifndef SIMT_THIN
    line<Config1d<72, 72, 2, 32, true>>(33), line<Config1d<80, 33, 2, 32, false>>(7);
    line<Config1d<96, 96, 4, 32, true>>(40), line<Config1d<160, 160, 4, 32, true>>(32);
    line<Config1d<192, 100, 4, 32, true>>(4), line<Config1d<224, 224, 4, 32, true>>(8);
#endif
}

} // namespace

int main() { return run_tests({{"short lines", short_lines}, {"long lines", long_lines}}); }
