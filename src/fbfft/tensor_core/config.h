/* SPDX-License-Identifier: Apache-2.0 */
/* How the kernels of the tensor-core FFT are configured and launched: real planes and 1-D signals to 16-bit spectra and
 * back, by matrix products (plane.cuh, line_twiddles.cuh, short_line_io.cuh, dft_matrix_config.cuh). */
#ifndef CF_FBFFT_TENSOR_CORE_H
#define CF_FBFFT_TENSOR_CORE_H

#include "fbfft/shared_memory/config.h"

/* The bases that they take, of planes and of lines (touching: elements of one and the next are neighbours). */
bool cf_tensor_fft_takes_plane(const int64_t basis[3], bool interleaved);
bool cf_tensor_fft_takes_line(const int64_t basis[3], bool interleaved);

/* Whether they compute what this kernel of shared_memory/kernel.cuh would. */
bool cf_tensor_fft_suits(const cf_shared_fft_config *tile, const cf_gpu_properties *properties);

/* Turn its blocks into theirs. */
void cf_tensor_fft_configure(cf_shared_fft_config *tile, const cf_gpu_properties *properties);

/* The same for a signal at any address. */
cf_shared_fft_config cf_tensor_fft_unaligned(const cf_shared_fft_config *tile);

/* The kernel's text behind the device headers; its name is cf_fft. */
void cf_tensor_fft_emit(const cf_shared_fft_config *tile, cf_text *text);
/* Its constants alone, as cf_shared_fft_emit_config(). */
void cf_tensor_fft_emit_config(const cf_shared_fft_config *tile, const char *name, cf_text *text);

void cf_tensor_fft_describe(const cf_shared_fft_config *tile, cf_text *text);

#endif
