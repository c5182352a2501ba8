/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of dft_matrix.cuh: windows of few taps to spectra of 16 bits by one matrix product. */
#ifndef CF_FBFFT_DFT_MATRIX_H
#define CF_FBFFT_DFT_MATRIX_H

#include "fbfft/shared_memory/config.h"

/* Whether a window of so many elements is one that it takes, whatever its types: few, in a basis with at most 4096 roots of one. */
bool cf_dense_takes(const int64_t basis[3], const int64_t counts[3]);

/* Whether it computes what this kernel of shared_memory/kernel.cuh would. */
bool cf_dense_suits(const cf_shared_fft_config *tile, const cf_gpu_properties *properties);

/* Turn its blocks into those of this kernel, with so many threads; 0: as it likes best. */
void cf_dense_configure(cf_shared_fft_config *tile, int threads, const cf_gpu_properties *properties);

/* The kernel alone, behind its constants. */
void cf_dense_emit(const cf_shared_fft_config *tile, cf_text *text);

void cf_dense_describe(const cf_shared_fft_config *tile, cf_text *text);

#endif
