/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured on one GPU, for the cost model. Each measured GPU has a table (conv/gpu/calibration_NAME.c). */
#ifndef CF_CORE_CALIBRATION_H
#define CF_CORE_CALIBRATION_H

typedef struct cf_calibration {
    const char *device; /* a part of the GPU's name, as the driver gives it */
    /* Rates, as shares of an FMA per lane and clock, and of the memory's peak. */
    double transform_rate, product_rate, tensor_rate, memory_rate;
    double stage_seconds, ordered_seconds; /* see cf_device in device_ops.h */
    double chunk_bytes;                    /* bytes of spectra that are processed at a time */
    /* The time before a block can begin its next plane, for each point beyond `plane_points`. */
    double plane_point_seconds, plane_points;
    double sector_share;               /* of the time of a sector that other blocks read again */
    double bias_rate;                  /* of a sum over gy, as a share of the bandwidth */
    double loop_term, product_term;    /* seconds of a term of a sum in a product: by a loop, by others */
    double loop_rate;                  /* of products by a loop, as a share of product_flops */
    double blas_tf32_rate;             /* of cuBLAS with TF32, against FP32 */
    double tensor_16bit_rate;          /* of 16-bit spectra on tensor cores, against FP32 accuracy */
    double tensor_rounded_rate;        /* of FP32 spectra that are rounded to one FP16 number */
    double narrow_share, cached_share; /* of cuBLAS where matrices are narrow; of 16-bit products from the cache */
    double scale_seconds;              /* for each plane of a 16-bit spectrum whose scale another kernel has found */
    double dense_rate;                 /* of transforms of w by a dense matrix, against tensor_flops */
    double long1d_rate;                /* of family long1d, against fused_flops */
    /* The two steps of a block of a fused kernel: transform a plane, multiply two spectra. */
    double fused_plane_seconds, fused_product_seconds;
    double resident_plane_seconds; /* the same for a plane of a register-resident kernel */
    double slice_seconds;          /* to add one slice of gw to the sum */
    /* Dense layers in 16 bits by cuDNN: the rate of products with many columns, against tensor_flops, and the columns
     * with which half of it is reached, in y and gx and in gw. */
    double direct_rate, direct_columns, direct_columns_gw;
} cf_calibration;

#endif
