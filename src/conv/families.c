/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of families. A new family is a folder of its own and a line here. */
#include "conv/cudnn/cudnn.h"
#include "conv/cufft/cufft.h"
#include "conv/dft/dft.h"
#include "conv/fused/fused.h"
#include "conv/implicit_gemm/implicit_gemm.h"
#include "conv/long1d/long1d.h"
#include "conv/spatial/spatial.h"
#include "conv/staged/staged.h"
#include "conv/toeplitz/toeplitz.h"

const cf_family *const cf_families[] = {
    &cf_staged_family,        &cf_fused_family,   &cf_long1d_family, &cf_toeplitz_family, &cf_dft_family,
    &cf_implicit_gemm_family, &cf_spatial_family, &cf_cufft_family,  &cf_cudnn_family,    NULL,
};
