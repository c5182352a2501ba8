/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/model/cost_model.h"

#include "autotune/model/stage_cost.h"
#include "conv/plan/family.h"
#include "core/dtype.h"

#include <math.h>
#include <string.h>

const cf_stage_kind cf_cost_whole_passes[CF_PASS_COUNT] = {CF_STAGE_CONVOLVE_Y, CF_STAGE_CONVOLVE_GX,
                                                           CF_STAGE_CONVOLVE_GW};

cf_stage_cost cf_cost_of(const cf_device *device, double bytes, double operations, double rate) {
    const double working = operations / rate, moving = bytes / device->bandwidth;
    return (cf_stage_cost){bytes, operations,
                           (device->overlaps ? fmax(working, moving) : working + moving) + device->stage_seconds};
}

double cf_cost_elements(const int64_t extents[5]) {
    double product = 1.0;
    for (int i = 0; i < 5; ++i)
        product *= (double)extents[i];
    return product;
}

/* From an H200. */
double cf_cost_plane_seconds(const cf_device *device, double points) {
    return device->overlaps ? 4.5e-9 * fmax(0.0, points - 300.0) : 0.0;
}

static cf_stage_cost unpredicted(double bytes, double operations) { return (cf_stage_cost){bytes, operations, -1.0}; }

/* It counts the bytes of the tensors and the operations of the definition. What another library's algorithm does
 * is not known. */
static void model_cudnn(const cf_layer *layer, int pass, cf_stage_cost cost[CF_STAGE_COUNT]) {
    int64_t x[5], y[5], w[5];
    cf_layer_extents(layer, x, y, w);
    const double bytes =
        cf_cost_elements(x) * (double)cf_dtype_bytes(layer->x.dtype) +
        cf_cost_elements(y) * (double)cf_dtype_bytes(layer->y.dtype) +
        cf_cost_elements(w) * (double)cf_dtype_bytes(pass == CF_PASS_WEIGHTS ? layer->gw.dtype : layer->w.dtype);
    cost[cf_cost_whole_passes[pass]] =
        unpredicted(bytes, 2.0 * cf_cost_elements(y) * cf_cost_elements(w) / (double)w[0]);
}

/* The stages are those of `staged`. Padding and transposition move each tensor and each spectrum through memory
 * twice more. */
static void model_cufft(cf_stage_cost cost[CF_STAGE_COUNT]) {
    for (int i = 0; i < CF_STAGE_COUNT; ++i) {
        const bool product = i == CF_STAGE_PRODUCT_Y || i == CF_STAGE_PRODUCT_GX || i == CF_STAGE_PRODUCT_GW;
        if (cost[i].seconds > 0.0)
            cost[i] = unpredicted(cost[i].bytes * (product ? 1.0 : 3.0), cost[i].operations);
    }
}

void cf_model_pass(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                   cf_stage_cost cost[CF_STAGE_COUNT]) {
    memset(cost, 0, CF_STAGE_COUNT * sizeof *cost);
    if (strategy->family->search_space == CF_SEARCH_KERNELS) {
        cf_cost_fused(layer, device, pass, strategy, cost);
        return;
    }
    if (strategy->family->baseline) {
        model_cudnn(layer, pass, cost);
        return;
    }
    cf_cost_staged(layer, device, pass, strategy, cost);
    if (strategy->family->library)
        model_cufft(cost);
}

cf_cgemm_variant cf_model_product(const cf_layer *layer, const cf_device *device, int pass,
                                  const cf_strategy *strategy) {
    /* If several cost the same, the first is taken. */
    static const cf_cgemm_variant variants[] = {CF_CGEMM_LOOP, CF_CGEMM_TENSOR, CF_CGEMM_BLAS};
    cf_cgemm_variant best = CF_CGEMM_LOOP;
    double least = HUGE_VAL;
    for (int i = 0; i < CF_CGEMM_VARIANTS; ++i) {
        const char *why;
        cf_strategy s = *strategy;
        cf_stage_cost cost[CF_STAGE_COUNT];
        s.product = variants[i];
        if ((s.product == CF_CGEMM_BLAS && !device->has_blas) || !s.family->feasible(layer, pass, &s, &why) ||
            !s.family->runs_on(device, layer, pass, &s, &why))
            continue;
        cf_model_pass(layer, device, pass, &s, cost);
        if (cf_model_seconds(cost) < least) {
            least = cf_model_seconds(cost);
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
    /* From an H200: 19 MB take 16 microseconds, 51 MB take 31, in one launch or two. */
    if (device->overlaps && !bins)
        cost.seconds = fmax(numbers / device->flops, bytes / (0.8 * device->bandwidth)) + 2.0 * device->stage_seconds;
    return cost;
}
