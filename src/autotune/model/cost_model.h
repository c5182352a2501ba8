/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost model: bytes, operations and seconds of each stage of a pass, from the problem, the strategy and the facts of
 * the device. It ranks strategies; its seconds are a rough prediction.
 */
#ifndef CF_AUTOTUNE_MODEL_H
#define CF_AUTOTUNE_MODEL_H

#include "conv/plan/run.h"

typedef struct cf_stage_cost {
    double bytes, operations, seconds; /* seconds negative: not predicted, as all of `direct` and `reference` */
} cf_stage_cost;

/* Costs of a feasible strategy for one pass; stages that the pass does not have stay zero. */
void cf_model_pass(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                   cf_stage_cost cost[CF_STAGE_COUNT]);

/* The product that costs least, of those that the device has, for a strategy that is feasible with one of them. */
cf_product_variant cf_model_product(const cf_layer *layer, const cf_device *device, int pass,
                                    const cf_strategy *strategy);

/* What a call for both gradients saves where fused kernels read gy as planes, which it makes once (conv/fused/run.c); else 0. */
double cf_model_shared_turn(const cf_layer *layer, const cf_device *device, const cf_strategy *data,
                            const cf_strategy *weights);

/* Of all stages; HUGE_VAL if one is not predicted. */
double cf_model_seconds(const cf_stage_cost cost[CF_STAGE_COUNT]);

/* Cost of the gradient of the bias in a run of these passes. */
cf_stage_cost cf_model_bias(const conv_fft_plan *plan, int set);

#endif
