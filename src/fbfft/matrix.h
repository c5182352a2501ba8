/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of kernels/matrix.cuh and matrix_lines.cuh: planes and lines to spectra of 16 bits, and back, by matrix products. */
#ifndef CF_FBFFT_MATRIX_H
#define CF_FBFFT_MATRIX_H

#include "fbfft/tile.h"

/* Points of an axis of planes that they take, and of lines. */
bool cf_matrix_takes(int64_t points);
bool cf_matrix_takes_line(int64_t points);

/* Whether they compute what this kernel of tile.cuh would. */
bool cf_matrix_suits(const cf_tile_config *tile, const cf_gpu_facts *facts);

/* Turn its blocks into theirs. */
void cf_matrix_configure(cf_tile_config *tile, const cf_gpu_facts *facts);

/* The kernel's text behind the device headers; its name is cf_fft. */
void cf_matrix_emit(const cf_tile_config *tile, cf_text *text);
/* Its constants alone, as cf_tile_emit_config(). */
void cf_matrix_emit_config(const cf_tile_config *tile, const char *name, cf_text *text);

void cf_matrix_describe(const cf_tile_config *tile, cf_text *text);

#endif
