/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the tensor-core FFT: which of its methods a configuration takes.
 *
 * Short 1-D signals take one product with the whole matrix (short_line_io.cuh), longer ones rows, twiddles and
 * columns (line_twiddles.cuh), and planes take rows and columns (plane.cuh). */
#pragma once

#include "fbfft/tensor_core/short_line_forward.cuh"
#include "fbfft/tensor_core/short_line_inverse.cuh"

template <class K> CF_DEVICE void mma_forward(const cf_shared_fft_call &call) {
    if constexpr (MmaFft<K>::SHORT)
        mma_short_forward<K>(call);
    else if constexpr (MmaFft<K>::LINES)
        mma_line_forward<K>(call);
    else
        mma_plane_forward<K>(call);
}
template <class K> CF_DEVICE void mma_inverse(const cf_shared_fft_call &call) {
    if constexpr (MmaFft<K>::SHORT)
        mma_short_inverse<K>(call);
    else if constexpr (MmaFft<K>::LINES)
        mma_line_inverse<K>(call);
    else
        mma_plane_inverse<K>(call);
}

/* The entry point. DIRECTION: forward or inverse. */
#define CF_TENSOR_FFT_KERNEL(DIRECTION, THREADS, BLOCKS)               \
    CF_KERNEL(THREADS, BLOCKS) cf_fft(const cf_shared_fft_call call) { \
        cf_pdl_wait();                                                 \
        mma_##DIRECTION<Config>(call);                                 \
    }
