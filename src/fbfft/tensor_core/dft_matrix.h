/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of dft_matrix.cuh. It computes 16-bit spectra of windows with few taps by one matrix product. */
#ifndef CF_FBFFT_DFT_MATRIX_H
#define CF_FBFFT_DFT_MATRIX_H

#include "fbfft/shared_memory/config.h"

/* Whether it takes a window of this many elements, of any type: few of them, in a basis with at most 4096 roots of
 * unity. */
bool cf_dense_takes(const int64_t basis[3], const int64_t counts[3]);

/* Whether it can replace this kernel of shared_memory/kernel.cuh. */
bool cf_dense_suits(const cf_shared_fft_config *tile, const cf_gpu_properties *properties);

/* Change the config of that kernel into one for this kernel, with so many threads; 0: as many as are best. */
void cf_dense_configure(cf_shared_fft_config *tile, int threads, const cf_gpu_properties *properties);

/* Print only the kernel, behind its constants. */
void cf_dense_emit(const cf_shared_fft_config *tile, cf_text *text);

void cf_dense_describe(const cf_shared_fft_config *tile, cf_text *text);

#endif
