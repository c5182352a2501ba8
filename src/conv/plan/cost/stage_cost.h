/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of stages, for the predictions of families. */
#ifndef CF_CONV_PLAN_STAGE_COST_H
#define CF_CONV_PLAN_STAGE_COST_H

#include "conv/plan/run.h"

typedef struct cf_stage_cost {
    double bytes, operations, seconds; /* seconds negative: no prediction, as for `cudnn` and `cufft` */
} cf_stage_cost;

/* A stage that moves so many bytes and computes so many operations at a rate. A GPU does both at the same time. */
cf_stage_cost cf_cost_of(const cf_device *device, double bytes, double operations, double rate);

/* The number of elements of a tensor. */
double cf_cost_elements(const int64_t extents[5]);

/* The time before a block can begin its next plane, however few planes there are. */
double cf_cost_plane_seconds(const cf_device *device, double points);

/* The geometry of a window, as far as it decides how fast a transform moves the tensor. */
typedef struct cf_placement {
    bool whole;             /* there is one tile */
    bool vectors;           /* rows of x can be moved eight bytes at a time, or the layout is channels-last */
    bool odd;               /* tiles overlap along rows and do not all begin at multiples of four numbers */
    bool overlaps, strided; /* tiles overlap; the stride of an axis is not one */
    bool result;
} cf_placement;

/* transform_cost.c: the transform of an operand. n real points count 2.5 n log2 n operations. */
cf_stage_cost cf_cost_transform(const cf_device *device, const cf_spectrum *spectrum, int operand,
                                const cf_tensor *tensor, double tensor_bytes, const cf_placement *place);
/* The transform of w by one matrix product (fbfft/tensor_core/dft_matrix.h). False: w has too many taps, or planes
 * are too large. */
bool cf_cost_dense_transform(const cf_device *device, const cf_spectrum *spectrum, const cf_tensor *tensor,
                             double tensor_bytes, cf_stage_cost *cost);
/* Whether the blocks of a transform find the scales of their planes. Eight planes of a row share one scale. They
 * must fit a multiprocessor, unless the transform is one matrix product. */
bool cf_cost_finds_scales(const cf_spectrum *spectrum, bool product);
/* Whether the spectrum is written and read once more between two kernels. */
bool cf_cost_is_large(const cf_device *device, const cf_spectrum *spectrum);

/* product_cost.c: the products of all bins. */
cf_stage_cost cf_cost_product(const cf_device *device, int pass, const cf_spectrum spectrum[CF_OPERAND_COUNT],
                              cf_cgemm_variant variant, conv_fft_math math);

/* spectra_cost.c: all stages of a pass through spectra in the workspace. */
void cf_cost_spectra(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                     cf_stage_cost cost[CF_STAGE_COUNT]);

/* The transform of the weights of a fused pass, or of their gradient. spectra, tensor: bytes. number: bytes of one
 * number. points: of the basis. */
cf_stage_cost cf_cost_weights(const cf_device *device, double spectra, double tensor, double number, double points);

/* Bytes of the weights that a pass reads or writes. */
double cf_cost_weight_bytes(const cf_layer *layer, int pass);

/* Bytes of gy. */
double cf_cost_gy_bytes(const cf_layer *layer);

/* The bytes of the tensors, and the operations of the definition. It has no predicted time. */
cf_stage_cost cf_cost_definition(const cf_layer *layer, int pass);

/* A stage without a predicted time. */
cf_stage_cost cf_cost_unpredicted(double bytes, double operations);

/* The stage of a pass that is computed as a whole. */
extern const cf_stage_kind cf_cost_whole_passes[CF_PASS_COUNT];

/* Both gradients by a family that computes passes as a whole: seconds of two calls, and bytes of one that reads gy
 * once. */
cf_stage_cost cf_cost_gradients(const cf_layer *layer, const cf_device *device, const cf_strategy *data,
                                const cf_strategy *weights);

#endif
