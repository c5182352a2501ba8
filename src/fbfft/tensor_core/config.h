/* SPDX-License-Identifier: Apache-2.0 */
/* How the kernels of the tensor-core FFT are configured and launched. They transform real planes and 1-D signals to
 * 16-bit spectra and back, as matrix products (plane.cuh, line_twiddles.cuh, short_line_io.cuh,
 * dft_matrix_config.cuh). */
#ifndef CF_FBFFT_TENSOR_CORE_H
#define CF_FBFFT_TENSOR_CORE_H

#include "fbfft/shared_memory/config.h"

/* The bases that the kernels take, for planes and for lines. interleaved: elements of neighbouring planes are
 * neighbours in memory. */
bool cf_tensor_fft_takes_plane(const int64_t basis[3], bool interleaved);
bool cf_tensor_fft_takes_line(const int64_t basis[3], bool interleaved);

/* Whether the tensor-core FFT can replace this kernel of shared_memory/kernel.cuh. */
bool cf_tensor_fft_suits(const cf_shared_fft_config *tile, const cf_gpu_properties *properties);

/* Change the config of that kernel into one for the tensor-core FFT. */
void cf_tensor_fft_configure(cf_shared_fft_config *tile, const cf_gpu_properties *properties);

/* The same config for a signal at any address. */
cf_shared_fft_config cf_tensor_fft_unaligned(const cf_shared_fft_config *tile);

/* The text of the kernel cf_fft. It follows the device headers. */
void cf_tensor_fft_emit(const cf_shared_fft_config *tile, cf_text *text);

void cf_tensor_fft_describe(const cf_shared_fft_config *tile, cf_text *text);

#endif
