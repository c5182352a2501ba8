/* SPDX-License-Identifier: Apache-2.0 */
/* The library itself. */
#ifndef BENCH_FFT_OURS_H
#define BENCH_FFT_OURS_H

#include "fbfft.h"
#include "fft/impl.h"

conv_fft_status fft_ours_open(fft_impl *impl);
conv_fft_status fft_ours_split_open(fft_impl *impl); /* arithmetic SPLIT */

fbfft_desc fft_desc_of(const fft_case *c, bool inverse);

#endif
