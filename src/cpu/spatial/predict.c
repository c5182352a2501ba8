/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a convolution by its definition. The rates are those of one thread of a server with AVX-512, from a fit
 * to 79 layers in all passes; they only rank strategies, and what stands in vectors. */
#include "core/dtype.h"
#include "cpu/spatial/convolution.h"

/* One thread: seconds of the products, and of reading and writing numbers and weights. */
typedef struct seconds {
    double products, numbers, weights;
} seconds;

/* Products of a vector for each of its numbers that is used. */
static double vector_products(const cf_convolution *c) {
    const cf_convolution_desc *const d = &c->desc;
    if (c->positions_are_vectors) {
        /* Vectors of positions begin anywhere, so some are in two cache lines of 64 bytes. */
        const double lines = 1 + (double)c->kernels->tiles->width * (double)c->real / 64,
                     loads = lines * (double)c->vectors + (double)c->block, products = (double)(c->vectors * c->block);
        return (loads < 1.1 * products ? 1.1 : loads / products) / cf_positions_used(c) /
               cf_lanes_used(c->own, c->block);
    }
    return 1 / (!c->channelwise        ? cf_lanes_used(c->own, c->block)
                : c->samples_are_lanes ? cf_lanes_used(d->batch, c->block)
                                       : cf_lanes_used(d->groups, c->block));
}

static seconds predict(const cf_convolution *c) {
    const cf_convolution_desc *const d = &c->desc;
    const bool weights = d->kind == CF_CGEMM_BACKWARD_WEIGHTS, gx = cf_is_gradient_of_signal(c);
    double inputs = 1, outputs = 1, taps = 1, share = 1;
    for (int a = 0; a < 3; ++a) {
        inputs *= (double)d->axis[a].input;
        outputs *= (double)d->axis[a].output;
        taps *= (double)d->axis[a].taps;
        if (!weights && !c->positions_are_vectors &&
            (a < 2 || c->whole_rows || (!c->channelwise && c->summed >= CF_MIN_CLIPPED)))
            share *= cf_signal_products(&d->axis[a]) / ((double)d->axis[a].taps * (double)d->axis[a].output);
    }
    const double planes = (double)d->batch * (double)d->groups, of_vectors = vector_products(c),
                 weight_numbers = (double)d->groups * (double)d->in_channels * (double)d->out_channels * taps,
                 x = planes * inputs * (double)d->in_channels, y = planes * outputs * (double)d->out_channels,
                 x_rows = x / (double)d->axis[2].input, y_rows = y / (double)d->axis[2].output,
                 flops = (c->channelwise ? 6.2e9 : 11.3e9) * (double)c->kernels->tiles->width,
                 of_number = c->channelwise ? 0.3e-9 * of_vectors
                             : weights      ? 0.5e-9
                                            : 0.3e-9,
                 of_weight = c->channelwise ? 0
                             : weights      ? 3.4e-9
                                            : 2e-9,
                 of_row = 10e-9; /* a channel that is packed or stored alone */
    return (seconds){.products = 2.0 * share * (double)d->batch * outputs * weight_numbers * of_vectors / flops,
                     .numbers =
                         (x + y) * of_number + of_row * ((c->positions_are_vectors || (c->planar && !gx) ? x_rows : 0) +
                                                         (c->positions_are_vectors || (c->planar && gx) ? y_rows : 0)),
                     .weights = weight_numbers * of_weight};
}

double cf_signal_seconds(const cf_convolution *c) {
    const seconds s = predict(c);
    return s.products + s.numbers + s.weights;
}

double cf_cpu_convolution_seconds(const cf_device *device, const cf_convolution_desc *desc) {
    const cf_convolution c = cf_convolution_blocks(device, desc);
    const seconds s = predict(&c);
    const double threads = (double)device->threads;
    return (s.products + s.weights) / threads + s.numbers / (threads < 8 ? threads : 8) + 2.0 * device->stage_seconds;
}
