// SPDX-License-Identifier: Apache-2.0
// real1d_warp.cuh: full and partly filled warps, blocks of one and of two warps, whole and padded rows, aligned and
// not.
#include "kernels/dense_fft.h"

namespace {

template <int N, int L> void lines() {
    typedef Config1d<N, N, L, 64 / L, true> Whole;
    pairs<Whole>(128 / L + 5);
    pairs<Whole>(64 / L, 1);
    pairs<Config1d<N, N / 2 + 1, L, 64 / L, false>>(3);
    rest_pairs<Config1d<N, N / 4, L, 64 / L, true>>(64 / L + 1);
    rest_pairs<Config1d<N, N - 1, L, 64 / L, false>>(1);
    rest_pairs<Config1d<N, 1, L, 64 / L, false>>(64 / L + 1);
}
template <int N, int L> void rest_lines() {
    rest_pairs<Config1d<N, N, L, 64 / L, true>>(128 / L + 5);
    rest_pairs<Config1d<N, N / 2 + 1, L, 64 / L, false>>(3);
    rest_pairs<Config1d<N, N / 4, L, 64 / L, true>>(64 / L + 1);
    rest_pairs<Config1d<N, N - 1, L, 64 / L, false>>(1);
    rest_pairs<Config1d<N, 1, L, 64 / L, false>>(64 / L + 1);
}
void all() {
    lines<64, 4>(), lines<128, 4>();
    pairs<Config1d<64, 20, 4, 16, true>>(9);
    pairs<Config1d<256, 256, 8, 8, true>>(5);
    rest_lines<256, 8>(), rest_lines<32, 2>(), rest_lines<192, 4>();
}

} // namespace

int main() { return run_tests({{"pairs", all}}); }
