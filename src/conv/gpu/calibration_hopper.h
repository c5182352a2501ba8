/* SPDX-License-Identifier: Apache-2.0 */
/* The figures that an H100 and an H200 share: they have the same multiprocessors. Measured on an H200: profiles of
 * layers, of products, and of 1-D layers of 64 and 128 channels with dilations. bias_rate: 19 MB take 16 microseconds,
 * 51 MB take 31, in one launch or two. */
#ifndef CF_CONV_GPU_CALIBRATION_HOPPER_H
#define CF_CONV_GPU_CALIBRATION_HOPPER_H

#include "conv/gpu/calibration.h"

#define CF_HOPPER_FIGURES                                                                                             \
    .transform_rate = 0.4, .product_rate = 1.6, .tensor_rate = 3.1, .stage_seconds = 4e-6, .ordered_seconds = 4e-5,   \
    .chunk_bytes = 2e9, .plane_point_seconds = 4.5e-9, .plane_points = 300.0, .sector_share = 0.8, .bias_rate = 0.8,  \
    .loop_term = 0.15e-6, .product_term = 0.025e-6, .loop_rate = 0.03, .blas_tf32_rate = 2.4,                         \
    .tensor_16bit_rate = 2.2, .tensor_rounded_rate = 1.5, .narrow_share = 2.0, .cached_share = 0.8,                   \
    .scale_seconds = 0.2e-9, .dense_rate = 2.2, .long1d_rate = 2.1, .fused_plane_seconds = 3e-6,                      \
    .fused_product_seconds = 0.25e-6, .resident_plane_seconds = 2.3e-6, .slice_seconds = 0.05e-6, .direct_rate = 9.6, \
    .direct_columns = 85.0, .direct_columns_gw = 250.0

#endif
