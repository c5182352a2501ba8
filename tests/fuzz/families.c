/* SPDX-License-Identifier: Apache-2.0 */
/* The names and fields of the families, as strategy lines have them. Their code is not linked, because readers of
 * records do not call it. */
#include "conv/plan/family.h"

static bool never(const cf_layer *layer, int pass, const cf_strategy *strategy, const char **why) {
    (void)layer, (void)pass, (void)strategy;
    *why = "nothing runs here";
    return false;
}

#define KERNEL_FIELDS (1u << CF_FIELD_BASIS | 1u << CF_FIELD_TILES | 1u << CF_FIELD_DILATION | 1u << CF_FIELD_SPECTRUM)

static const cf_family families[] = {
    {.name = "staged", .fields = (1u << (CF_FIELD_KEEP + 1)) - 1, .feasible = never},
    {.name = "fused", .fields = KERNEL_FIELDS, .feasible = never},
    {.name = "long1d", .replaces = "fused", .fields = KERNEL_FIELDS, .feasible = never},
    {.name = "toeplitz", .feasible = never},
    {.name = "dft", .feasible = never},
    {.name = "implicit_gemm", .feasible = never},
    {.name = "spatial", .feasible = never},
    {.name = "cufft",
     .old_name = "reference",
     .fields = 1u << CF_FIELD_BASIS | 1u << CF_FIELD_CHUNK,
     .feasible = never},
    {.name = "cudnn", .old_name = "direct", .fields = 1u << CF_FIELD_ALGORITHM, .feasible = never},
};

const cf_family *const cf_families[] = {&families[0], &families[1], &families[2], &families[3], &families[4],
                                        &families[5], &families[6], &families[7], &families[8], NULL};
