/* SPDX-License-Identifier: Apache-2.0 */
/* Measured on an H100 SXM: stages of the layers in bench/tuning/cases.txt. It has the multiprocessors of an H200, so
 * most figures are the same. Memory reaches a larger share of its peak: 0.75 to 0.87 in products of FP32 spectra, 0.65
 * to 0.75 in transforms of planes. */
#include "conv/gpu/calibration.h"

const cf_calibration cf_calibration_h100 = {
    .device = "H100",
    .transform_rate = 0.4,
    .product_rate = 1.6,
    .tensor_rate = 3.1,
    .memory_rate = 0.68,
    .stage_seconds = 4e-6,
    .ordered_seconds = 4e-5,
    .chunk_bytes = 2e9,
    .plane_point_seconds = 4.5e-9,
    .plane_points = 300.0,
    .sector_share = 0.8,
    .bias_rate = 0.8,
    .loop_term = 0.15e-6,
    .product_term = 0.025e-6,
    .loop_rate = 0.03,
    .blas_tf32_rate = 2.4,
    .tensor_16bit_rate = 2.2,
    .tensor_rounded_rate = 1.5,
    .narrow_share = 2.0,
    .cached_share = 0.8,
    .scale_seconds = 0.2e-9,
    .dense_rate = 2.2,
    .long1d_rate = 2.1,
    .fused_plane_seconds = 3e-6,
    .fused_product_seconds = 0.25e-6,
    .resident_plane_seconds = 2.3e-6,
    .slice_seconds = 0.05e-6,
};
