/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/cufft/cufft.h"
#include "conv/plan/cost/stage_cost.h"

/* The stages are those of `staged`. Padding and transposition move each tensor and each spectrum through memory
 * twice more. */
void cf_cufft_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                      cf_stage_cost cost[CF_STAGE_COUNT]) {
    cf_cost_spectra(layer, device, pass, strategy, cost);
    for (int i = 0; i < CF_STAGE_COUNT; ++i) {
        const bool product = i == CF_STAGE_PRODUCT_Y || i == CF_STAGE_PRODUCT_GX || i == CF_STAGE_PRODUCT_GW;
        if (cost[i].seconds > 0.0)
            cost[i] = cf_cost_unpredicted(cost[i].bytes * (product ? 1.0 : 3.0), cost[i].operations);
    }
}
