/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of families. A new family is a folder of its own and a line here. */
#include "conv/cudnn/cudnn.h"
#include "conv/cufft/cufft.h"
#include "conv/fused/fused.h"
#include "conv/staged/staged.h"

static const cf_family cudnn = CF_FAMILY_OF(cf_cudnn), cufft = CF_FAMILY_OF(cf_cufft);

const cf_family *const cf_families[CF_FAMILY_COUNT] = {
    [CF_FAMILY_STAGED] = &cf_staged_family,
    [CF_FAMILY_FUSED] = &cf_fused_family,
    [CF_FAMILY_CUFFT] = &cufft,
    [CF_FAMILY_CUDNN] = &cudnn,
};
