/* SPDX-License-Identifier: Apache-2.0 */
/* How the kernels of the tensor-core FFT are configured and launched: real planes and 1-D signals to 16-bit spectra and
 * back, by matrix products (plane.cuh, line_twiddles.cuh, short_line_io.cuh, dft_matrix_config.cuh). */
#ifndef CF_FBFFT_MATRIX_H
#define CF_FBFFT_MATRIX_H

#include "fbfft/shared_memory/config.h"

/* The bases that they take, of planes and of lines (touching: elements of one and the next are neighbours). */
bool cf_matrix_takes_plane(const int64_t basis[3], bool touching);
bool cf_matrix_takes_line(const int64_t basis[3], bool touching);

/* Whether they compute what this kernel of shared_memory/kernel.cuh would. */
bool cf_matrix_suits(const cf_tile_config *tile, const cf_gpu_facts *facts);

/* Turn its blocks into theirs. */
void cf_matrix_configure(cf_tile_config *tile, const cf_gpu_facts *facts);

/* The same for a signal at any address. */
cf_tile_config cf_matrix_unaligned(const cf_tile_config *tile);

/* The kernel's text behind the device headers; its name is cf_fft. */
void cf_matrix_emit(const cf_tile_config *tile, cf_text *text);
/* Its constants alone, as cf_tile_emit_config(). */
void cf_matrix_emit_config(const cf_tile_config *tile, const char *name, cf_text *text);

void cf_matrix_describe(const cf_tile_config *tile, cf_text *text);

#endif
