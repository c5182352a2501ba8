/* SPDX-License-Identifier: Apache-2.0 */
/* What a pass of family implicit_gemm costs: the bytes of its tensors, or the products of its patches. */
#include "conv/gpu/device.h"
#include "conv/implicit_gemm/implicit_gemm.h"

#include <math.h>

void cf_igemm_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                      cf_stage_cost cost[CF_STAGE_COUNT]) {
    (void)strategy;
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    cf_igemm_config c;
    cf_stage_cost whole = cf_cost_definition(layer, pass);
    whole.seconds = cf_cost_of(device, whole.bytes, 0.0, 1.0).seconds;
    if (gpu && layer->batch > 0 && cf_igemm_configure(layer, pass, &gpu->properties, false, &c) == CONV_FFT_SUCCESS) {
        const double clock = 0.89e3 * (double)gpu->properties.clock_khz;
        whole.seconds = fmax(whole.seconds, cf_igemm_cycles(&c, &gpu->properties) / clock) +
                        (pass == CF_PASS_WEIGHTS ? 2 : 1) * device->stage_seconds;
    }
    cost[cf_cost_whole_passes[pass]] = whole;
}
