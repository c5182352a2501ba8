/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a source of fft_emit.c: the text of a kernel with a unique name, in a namespace, and its
 * Registration. */
#ifndef SIMT_TILE_H
#define SIMT_TILE_H

#ifndef CF_REAL /* the kernels of plain planes are in float, and those of 16-bit spectra */
#include "fbfft/tensor_core/dft_matrix.cuh"
#include "fbfft/tensor_core/kernel.cuh"
#include "fbfft/warp/real1d.cuh"
#include "fbfft/warp/real1d_warp.cuh"
#include "fbfft/warp/real2d.cuh"
#endif
#include "fbfft/shared_memory/kernel.cuh"

/* The parameters are those of cf_kernel_launch(). */
typedef void (*tile_body)(void **parameters);

struct Registration {
    Registration(int number, int pass, int variant, tile_body body);
};

template <class T> const T &at(const void *parameter) { return *static_cast<const T *>(parameter); }

#endif
