/* SPDX-License-Identifier: Apache-2.0 */
/* The implementations that the library is compared with. */
#ifndef BENCH_FFT_BASELINES_H
#define BENCH_FFT_BASELINES_H

#include "fft/impl.h"

conv_fft_status fft_cufft_alone_open(fft_impl *impl);

/* cuFFT with a copy into or out of whole planes. */
conv_fft_status fft_cufft_padded_open(fft_impl *impl);

/* A copy in device memory of half the bytes that are read and written. */
conv_fft_status fft_copy_open(fft_impl *impl);

#endif
