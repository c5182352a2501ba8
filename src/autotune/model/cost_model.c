/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/model/cost_model.h"

#include "conv/plan/cost/stage_cost.h"
#include "conv/plan/family.h"
#include "core/calibration.h"
#include "core/dtype.h"

#include <math.h>
#include <string.h>

void cf_model_pass(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                   cf_stage_cost cost[CF_STAGE_COUNT]) {
    memset(cost, 0, CF_STAGE_COUNT * sizeof *cost);
    strategy->family->predict(layer, device, pass, strategy, cost);
}

double cf_model_shared_transpose(const cf_layer *layer, const cf_device *device, const cf_strategy *data,
                                 const cf_strategy *weights) {
    const cf_family *family = data->family;
    const bool together = family && family == weights->family && family->saved_seconds;
    return together ? family->saved_seconds(layer, device, data, weights) : 0.0;
}

cf_cgemm_variant cf_model_product(const cf_layer *layer, const cf_device *device, int pass,
                                  const cf_strategy *strategy) {
    /* If several cost the same, the first is taken. */
    static const cf_cgemm_variant variants[] = {CF_CGEMM_LOOP, CF_CGEMM_TENSOR, CF_CGEMM_BLAS};
    cf_cgemm_variant best = CF_CGEMM_LOOP;
    double min_seconds = HUGE_VAL;
    for (int i = 0; i < CF_CGEMM_VARIANTS; ++i) {
        const char *why;
        cf_strategy s = *strategy;
        cf_stage_cost cost[CF_STAGE_COUNT];
        s.product = variants[i];
        if ((s.product == CF_CGEMM_BLAS && !device->has_blas) || !s.family->feasible(layer, pass, &s, &why) ||
            !s.family->runs_on(device, layer, pass, &s, &why))
            continue;
        cf_model_pass(layer, device, pass, &s, cost);
        if (cf_model_seconds(cost) < min_seconds) {
            min_seconds = cf_model_seconds(cost);
            best = s.product;
        }
    }
    return best;
}

double cf_model_seconds(const cf_stage_cost cost[CF_STAGE_COUNT]) {
    double sum = 0.0;
    for (int i = 0; i < CF_STAGE_COUNT; ++i)
        sum += cost[i].seconds < 0.0 ? HUGE_VAL : cost[i].seconds;
    return sum;
}

cf_stage_cost cf_model_bias(const conv_fft_plan *plan, int set) {
    const cf_layer *layer = &plan->layer;
    const cf_spectrum *s = &plan->pass[CF_PASS_WEIGHTS].spectrum[CF_Y];
    int64_t x[5], y[5], w[5];
    cf_layer_extents(layer, x, y, w);
    const bool bins = plan->sums_bias[set];
    const double numbers = bins ? (double)s->rows * (double)(s->groups * s->columns) : cf_cost_elements(y);
    const conv_fft_dtype dtype = bins ? s->dtype : layer->y.dtype;
    const cf_device *device = plan->device;
    const double bytes = (bins ? 2.0 : 1.0) * numbers * (double)cf_dtype_bytes(dtype);
    cf_stage_cost cost = cf_cost_of(device, bytes, numbers, device->flops);
    if (device->calibration && !bins)
        cost.seconds = fmax(numbers / device->flops, bytes / (device->calibration->bias_rate * device->bandwidth)) +
                       2.0 * device->stage_seconds;
    return cost;
}
