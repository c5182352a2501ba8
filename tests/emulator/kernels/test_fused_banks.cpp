/* SPDX-License-Identifier: Apache-2.0 */
/* SPREAD of conv/fused/pruned_fft.cuh: with this distance between planes, FFT stages have no bank conflicts. With a
 * distance that is one number larger or smaller, they have. */
#include "check.h"
#include "simt.h"

#include <conv/fused/pruned_fft.cuh>

namespace {

/* Layers of RepLKNet: images of SIZE rows and columns at the end of a basis of twice that size. */
template <int P_, int PLANE_, int PITCH_, int SIZE, bool STAGED_> struct Layer {
    typedef plain Storage;
    typedef plain_bins Bins;
    typedef int Offset;
    static constexpr int KIND = TWO_ROWS_AS_COMPLEX, ORDER = BY_COLUMN, P = P_, T = 64, PITCH = PITCH_, PLANE = PLANE_;
    static constexpr int R0[3] = {1, 1, 1}, R1[3] = {2 * SIZE, 1, 1}, R2[3] = {2 * SIZE, 1, 1};
    static constexpr AxisWindow AXIS[3] = {
        {0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, ZEROS, false},
        {SIZE / 2 * 2, 1, SIZE, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0, SIZE, SIZE, ZEROS, false},
        {SIZE / 2 * 2, 1, SIZE, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0, SIZE, SIZE, ZEROS, false},
    };
    static constexpr long long AXIS_STRIDE[3] = {0, SIZE, 1}, CHANNEL_STRIDE = SIZE * SIZE;
    static constexpr long long BIN_STRIDE[3] = {2 * SIZE * (SIZE + 1), SIZE + 1, 1}, CHANNELS = 1;
    static constexpr bool DIRECT = false, IN_REGISTERS = false, STAGED = STAGED_;
    static constexpr int VECTOR = 1, ALIGNMENT_SHIFT = 0;
    static constexpr bool UNIT = true, SCALED = false, PLANES_INTERLEAVED = false, PACKS_NYQUIST = false;
};

template <class K> simt::result steps_of() {
    simt::options wanted;
    wanted.banks = true;
    return simt::launch(
        1, K::T, K::P * K::PLANE * sizeof(cplx),
        [] {
            const smem<cplx> z = cf_dynamic_shared<cplx>();
            const cf_shared_fft_call call = {};
            for (int n = int(threadIdx.x); n < K::P * K::PLANE; n += K::T)
                z[n] = cplx{real(n % 7), real(n % 5)};
            __syncthreads();
            step_along_rows<K, 1, false>(z, call);
            __syncthreads();
            step_along_columns<K, 1, 1, false>(z);
            __syncthreads();
            step_along_columns<K, 1, 1, true>(z);
            __syncthreads();
            step_along_rows<K, 1, true>(z, call);
        },
        wanted);
}

void spread_planes() {
    CHECK_CONFLICT_FREE((steps_of<Layer<16, 119, 17, 7, false>>()));
    CHECK_CONFLICT_FREE((steps_of<Layer<32, 121, 17, 7, false>>()));
    CHECK_CONFLICT_FREE((steps_of<Layer<8, 122, 17, 7, false>>()));
    CHECK_CONFLICT_FREE((steps_of<Layer<8, 422, 30, 14, true>>()));
}

void other_planes() {
    const simt::result even = steps_of<Layer<16, 120, 17, 7, false>>(), quads = steps_of<Layer<8, 420, 30, 14, true>>();
    CHECK(even.ok() && even.banks.ratio() > 1.2);
    CHECK(quads.ok() && quads.banks.ratio() > 1.2);
}

} // namespace

int main() { return run_tests({{"planes that are spread", spread_planes}, {"planes that are not", other_planes}}); }
