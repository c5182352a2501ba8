/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a source of short_kernels_emit.c: the text of a kernel with a unique name, in a namespace, and its
 * Registration. */
#ifndef SIMT_SHORT_KERNELS_H
#define SIMT_SHORT_KERNELS_H

#include "conv/dft/gradient.cuh"
#include "conv/dft/signals.cuh"
#include "conv/implicit_gemm/forward.cuh"
#include "conv/implicit_gemm/weights.cuh"
#include "conv/spatial/walk.cuh"
#include "conv/toeplitz/both.cuh"
#include "conv/toeplitz/channels_last_both.cuh"
#include "conv/toeplitz/lines_last_both.cuh"
#include "conv/toeplitz/plane_rows_weights.cuh"
#include "conv/toeplitz/planes_in_place_weights.cuh"
#include "conv/toeplitz/small_weights.cuh"
#include "conv/toeplitz/volumes_last.cuh"

struct Registration {
    /* The whole text. */
    Registration(const char *text, void (*kernel)(cf_toeplitz_call));
    Registration(const char *text, void (*kernel)(cf_toeplitz_both_call));
    Registration(const char *text, void (*kernel)(cf_toeplitz_volume_call));
    Registration(const char *text, void (*kernel)(cf_dft_call));
    Registration(const char *text, void (*kernel)(cf_igemm_call));
    Registration(const char *text, void (*kernel)(cf_spatial_call));
    Registration(const char *text, void (*kernel)(cf_spatial_both_call));
};

#endif
