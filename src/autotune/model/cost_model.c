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

static bool product_runs(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *s) {
    const char *why;
    return s->family->feasible(layer, pass, s, &why) && s->family->runs_on(device, layer, pass, s, &why);
}

cf_cgemm_variant cf_model_product(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                                  cf_stage_cost cost[CF_STAGE_COUNT]) {
    /* If several cost the same, the first is taken. */
    static const cf_cgemm_variant variants[] = {CF_CGEMM_LOOP, CF_CGEMM_TENSOR, CF_CGEMM_BLAS};
    cf_cgemm_variant best = CF_CGEMM_VARIANTS;
    double min_seconds = HUGE_VAL;
    for (int i = 0; i < CF_CGEMM_VARIANTS; ++i) {
        cf_strategy s = *strategy;
        cf_stage_cost own[CF_STAGE_COUNT];
        s.product = variants[i];
        if ((s.product == CF_CGEMM_BLAS && !device->has_blas) ||
            (s.product != strategy->product && !product_runs(layer, device, pass, &s)))
            continue;
        cf_model_pass(layer, device, pass, &s, own);
        const double seconds = cf_model_seconds(own);
        if (best < CF_CGEMM_VARIANTS && seconds >= min_seconds)
            continue;
        min_seconds = seconds;
        best = s.product;
        memcpy(cost, own, sizeof own);
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
    if (plan->sums_bias[set] && plan->pass[CF_PASS_WEIGHTS].strategy.family->search_space != CF_SEARCH_SPECTRA)
        return (cf_stage_cost){0}; /* the kernel of the gradients sums it */
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
