/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost model: bytes, operations and seconds of each stage of a pass. It needs the problem, the strategy and the
 * properties of the device. It ranks strategies. Its seconds are a rough prediction.
 */
#ifndef CF_AUTOTUNE_MODEL_H
#define CF_AUTOTUNE_MODEL_H

#include "conv/plan/cost/stage_cost.h"

/* Costs of a feasible strategy for one pass. Stages that the pass does not have are zero. */
void cf_model_pass(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                   cf_stage_cost cost[CF_STAGE_COUNT]);

/* The cheapest product of those that the device has, and the costs with it. The strategy runs on the device with the
 * product that it has. */
cf_cgemm_variant cf_model_product(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                                  cf_stage_cost cost[CF_STAGE_COUNT]);

/* The time that a call for both gradients saves against one call for each (cf_family.saved_seconds()). */
double cf_model_shared_transpose(const cf_layer *layer, const cf_device *device, const cf_strategy *data,
                                 const cf_strategy *weights);

/* The sum of all stages. HUGE_VAL: one has no prediction. */
double cf_model_seconds(const cf_stage_cost cost[CF_STAGE_COUNT]);

/* The cost of the bias gradient in a run of these passes. */
cf_stage_cost cf_model_bias(const conv_fft_plan *plan, int set);

#endif
