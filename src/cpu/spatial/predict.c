/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a convolution by its definition. The rates are those of one thread of a server with AVX-512, from a fit
 * to 79 layers in all passes; they only rank strategies. */
#include "core/dtype.h"
#include "cpu/spatial/convolution.h"

double cf_cpu_convolution_seconds(const cf_device *device, const cf_convolution_desc *desc) {
    const bool weights = desc->kind == CF_CGEMM_BACKWARD_WEIGHTS;
    const cf_convolution c = cf_convolution_blocks(device, desc);
    double inputs = 1, outputs = 1, taps = 1, share = 1;
    for (int a = 0; a < 3; ++a) {
        inputs *= (double)desc->axis[a].input;
        outputs *= (double)desc->axis[a].output;
        taps *= (double)desc->axis[a].taps;
        if (!weights && (a < 2 || (!c.channelwise && c.summed >= CF_MIN_CLIPPED)))
            share *= cf_signal_products(&desc->axis[a]) / ((double)desc->axis[a].taps * (double)desc->axis[a].output);
    }
    const double planes = (double)desc->batch * (double)desc->groups,
                 weight_numbers = (double)desc->groups * (double)desc->in_channels * (double)desc->out_channels * taps,
                 numbers = planes * (inputs * (double)desc->in_channels + outputs * (double)desc->out_channels),
                 threads = (double)device->threads,
                 lanes = !c.channelwise        ? cf_lanes_used(c.own, c.block)
                         : c.samples_are_lanes ? cf_lanes_used(desc->batch, c.block)
                                               : cf_lanes_used(desc->groups, c.block),
                 products = share * (double)desc->batch * outputs * weight_numbers / lanes;
    const double flops = (c.channelwise ? 6.2e9 : 11.3e9) * (double)c.kernels->tiles->width,
                 of_number = c.channelwise ? 0.3e-9 / lanes
                             : weights     ? 0.5e-9
                                           : 0.3e-9,
                 of_weight = c.channelwise ? 0
                             : weights     ? 3.4e-9
                                           : 2e-9;
    return 2.0 * products / flops / threads + numbers * of_number / (threads < 8 ? threads : 8) +
           weight_numbers * of_weight / threads + 2.0 * device->stage_seconds;
}
