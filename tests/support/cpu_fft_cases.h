/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms of the CPU with their windows and blocks: simple and random ones. */
#ifndef TEST_CPU_SETTING_H
#define TEST_CPU_SETTING_H

#include "core/device_ops.h"
#include "support/random_problems.h"

/* One transform, and the block of the spectrum that a call covers. */
typedef struct setting {
    cf_transform_desc desc;
    int64_t samples, groups;         /* of the tensor */
    int64_t bias_channels, elements; /* of the tensor, in all */
    cf_origin origin;
    cf_block block;
    int64_t planes;
} setting;

/** The whole window, one tile, one group; to be completed. */
setting simple_setting(const int64_t basis[3], conv_fft_dtype dtype, int64_t samples, int64_t channels);

/** Fill in derived fields: strides, extents of the spectrum, scale; the block is the whole spectrum. */
void complete_whole(setting *s, conv_fft_layout layout);

/** Random extents, windows, padding modes, layouts, types and blocks. An inverse that is not ordered stores each
 * element at most once. */
setting random_setting(generator *g, bool inverse, bool ordered);

#endif
