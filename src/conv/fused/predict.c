/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of family `fused`. Most figures are from profiles on an H200. */
#include "conv/fused/fused.h"

#include "conv/fused/predict_share.h"
#include "conv/plan/cost/stage_cost.h"
#include "conv/plan/spectra.h"
#include "core/calibration.h"
#include "core/dtype.h"

#include <math.h>

/* Operations that would take as long as a point of a depthwise signal, there and back. Signals have short rows, and are
 * far from the rate of planes. Measured on an H100 with bases of 5 to 2,304 points. */
static const double line_operations = 87.0;

/* The factor of the time of depthwise planes of one tile with a padding mode, whose elements are loaded one by one:
 * {bases of up to 1,024 points, larger bases}. Measured on an H200. */
static const double padded_planes[2] = {1.3, 2.6};

static double padding_factor(const cf_layer *layer, int pass, const cf_strategy *s, double points) {
    bool padded = false;
    for (int a = 0; a < 3; ++a)
        padded = padded || layer->axis[a].mode != CONV_FFT_PAD_ZEROS;
    return padded && pass != CF_PASS_DATA && s->basis[1] > 1 && s->tiles[1] * s->tiles[2] == 1
               ? padded_planes[points > 1024.0]
               : 1.0;
}

/* The slices of gw are added one after the other, or by several threads, which takes as long as 20 slices at first. */
static double add_seconds(const cf_device *device, double slices) {
    return slices > 1.0 ? device->calibration->slice_seconds * fmin(slices, 20.0 + slices / 8.0) : 0.0;
}

/* The time of what a block does one after the other: it transforms the planes of its channels, and multiplies each
 * with each. Small dense problems take only this time. */
static double fused_chain(const cf_device *device, int pass, double points, double rows, double blocks, double in,
                          double out, double chunk) {
    const cf_calibration *const c = device->calibration;
    const double plane = c->fused_plane_seconds + 0.15 * cf_cost_plane_seconds(device, points),
                 product = c->fused_product_seconds;
    if (pass != CF_PASS_WEIGHTS)
        return (in + out) * plane + in * out * product;
    const double slices = fmin(rows, fmax(1.0, device->threads / 8.0 / (blocks * out / chunk)));
    return ceil(rows / slices) * ((in + chunk) * plane + in * chunk * product) + add_seconds(device, slices);
}

/* The channels whose spectra or sums stay in registers (register_resident.cuh). 0: the kernel is another one. */
static double resident_channels(const cf_layer *layer, int pass, const cf_strategy *s, double in, double out) {
    const double few = pass == CF_PASS_WEIGHTS ? in : fmin(in, out);
    const bool serves = layer->groups == 1 && s->basis[0] == 1 && s->basis[1] > 1 && in * out > 1.0 && few <= 8.0;
    return serves ? few : 0.0;
}

/* A tensor that is transposed to planes goes through memory once more, at the rate of a copy. */
static double transpose_seconds(const cf_device *device, const cf_nhwc_transpose *transpose) {
    const double bytes = cf_cost_elements(transpose->extent) * (double)cf_dtype_bytes(transpose->tensor.dtype) +
                         (double)transpose->bytes;
    return bytes / (1.3 * device->bandwidth) + device->stage_seconds;
}

/* The time of register-resident kernels in channels-last layout. Either the tensor with many channels is
 * transposed to planes first, or it is read or written as it is, which takes so many times as long. */
static double with_transpose(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *s,
                             double seconds) {
    const bool outputs = layer->out_channels > layer->in_channels;
    const cf_tensor *many = pass == CF_PASS_WEIGHTS || outputs ? &layer->y : &layer->x;
    const cf_nhwc_transpose transpose = cf_nhwc_transpose_of(layer, pass, s);
    if (many->axis_stride[2] == 1)
        return seconds;
    if (transpose.blocks == 0)
        return seconds * (pass == CF_PASS_WEIGHTS ? 2.0 : outputs == (pass == CF_PASS_FORWARD) ? 15.0 : 2.8);
    return seconds + transpose_seconds(device, &transpose);
}

static bool is_resident(const cf_layer *layer, int pass, const cf_strategy *s) {
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    cf_strategy_spectra(layer, pass, s, spectrum);
    return resident_channels(layer, pass, s, (double)spectrum[CF_X].columns, (double)spectrum[CF_Y].columns) > 0.0;
}

/* Both kernels read gy as planes: gy is transposed once. */
double cf_fused_saved_seconds(const cf_layer *layer, const cf_device *device, const cf_strategy *data,
                              const cf_strategy *weights) {
    if (!is_resident(layer, CF_PASS_DATA, data) || !is_resident(layer, CF_PASS_WEIGHTS, weights))
        return 0.0;
    const cf_nhwc_transpose of_data = cf_nhwc_transpose_of(layer, CF_PASS_DATA, data),
                            of_weights = cf_nhwc_transpose_of(layer, CF_PASS_WEIGHTS, weights);
    const bool both = of_data.blocks > 0 && of_data.reads && of_weights.blocks > 0 && !of_weights.x;
    return both ? transpose_seconds(device, &of_weights) : 0.0;
}

/* The time of register-resident kernels, from profiles of layer L1 and of the layers of the grid. The rate is
 * higher where tiles have whole rows, and lower for sums over many channels. For the gradient of the weights,
 * spectra of x go through memory. Small layers take the time of what a block does one after the other. */
static double resident_seconds(const cf_device *device, int pass, const cf_strategy *s, double operations, double rows,
                               double in, double out, double few, double plane) {
    static const double to_many[2] = {1.05, 1.33}, to_few[2] = {0.75, 1.06}, weights[2] = {1.05, 1.24};
    const bool sums = (pass == CF_PASS_FORWARD) == (in > out);
    const double *rates = pass == CF_PASS_WEIGHTS ? weights : sums ? to_few : to_many;
    const double step = device->calibration->resident_plane_seconds, multiprocessors = device->threads / 64.0;
    /* Fewer fit if planes are larger than those of L1, or if there are more channels. */
    const double large = (plane > 22e3 ? 1.5 : 1.0) * (few > 3.0 ? 1.5 : 1.0);
    const double work = large * operations / (device->fused_flops * rates[s->tiles[2] == 1]);
    double chain = (in + out) * step;
    /* A block has one row of all its channels. Mostly a multiprocessor has one block. */
    if (pass == CF_PASS_DATA && sums)
        chain *= fmax(1.0, 0.75 * ceil(rows / multiprocessors));
    if (pass == CF_PASS_FORWARD)
        chain = (in + fmin(out, fmax(4.0 * few, out * rows / 2.0 / multiprocessors))) * step;
    /* With many rows, each row is an interval ahead of the row before. */
    const double slices = fmin(rows, fmax(1.0, 2.0 * multiprocessors / out)), rounds = ceil(rows / slices),
                 few_rounds = 32.0;
    if (pass == CF_PASS_WEIGHTS)
        chain = (fmin(rounds, few_rounds) * 2.0 + fmax(0.0, rounds - few_rounds) * 1.5) * step +
                add_seconds(device, slices);
    double spectra = 0.0;
    if (pass == CF_PASS_WEIGHTS)
        spectra = 2.0 * rows * in * plane / device->bandwidth + device->stage_seconds +
                  cf_cost_plane_seconds(device, (double)(s->basis[1] * s->basis[2]));
    return fmax(work, chain) + spectra + device->stage_seconds;
}

/* Tensors and the spectra of the weights go through memory once. Each block of sums of gw transforms x again. */
void cf_fused_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                      cf_stage_cost cost[CF_STAGE_COUNT]) {
    cf_spectrum s[CF_OPERAND_COUNT];
    int64_t x[5], y[5], w[5];
    cf_strategy_spectra(layer, pass, strategy, s);
    cf_layer_extents(layer, x, y, w);
    const double points = (double)(s[CF_X].basis[0] * s[CF_X].basis[1] * s[CF_X].basis[2]), bins = (double)s[CF_X].bins;
    const double number = (double)cf_dtype_bytes(s[CF_X].dtype), plane = 2.0 * number * bins;
    const double in = (double)s[CF_X].columns, out = (double)s[CF_Y].columns, rows = (double)s[CF_X].rows,
                 groups = (double)layer->groups;
    /* Rates: gradients of weights keep sums in registers. Large planes leave room for fewer threads. Products of
     * several channels read all weights for every plane. */
    const double rate = device->fused_flops * ((in * out > 1 ? 0.7 : 1.45) / (pass == CF_PASS_WEIGHTS ? 1.4 : 1.0) /
                                               (plane > 30e3 ? 1.4 : 1.0));
    const double few = resident_channels(layer, pass, strategy, in, out);
    double chunk = out;
    if (pass == CF_PASS_WEIGHTS && few == 0.0) /* the sums have about 100 kB of shared memory */
        chunk = fmin(out, fmax(1.0, floor((110e3 / plane - in - 1.0) / in)));
    const double again = out / chunk;
    double share = in * out == 1.0 ? cf_cost_plane_share(layer, s[CF_X].basis) : 1.0;
    if (in * out == 1.0)
        share *= cf_cost_channels_last_share(layer, pass, s[CF_X].basis, plane);
    const double transforms =
                     share * rows * groups * (again * in + out) * points * (2.5 * log2(points > 2 ? points : 2) + 1.0),
                 products = 8.0 * rows * groups * in * out * bins;
    const double bytes = cf_cost_elements(x) * (double)cf_dtype_bytes(layer->x.dtype) * again +
                         cf_cost_elements(y) * (double)cf_dtype_bytes(layer->y.dtype);
    const double spectra = groups * in * out * plane;
    cf_stage_cost whole = cf_cost_of(device, bytes + spectra, transforms + (in * out > 1 ? 4.0 : 1.0) * products, rate);
    whole.operations = transforms + products;
    if (few > 0.0)
        whole.seconds =
            with_transpose(layer, device, pass, strategy,
                           fmax((bytes + spectra) / device->bandwidth,
                                resident_seconds(device, pass, strategy, whole.operations, rows, in, out, few, plane)));
    else
        whole.seconds = fmax(whole.seconds, fused_chain(device, pass, points, rows,
                                                        ceil(groups / fmax(1.0, 20e3 / plane)), in, out, chunk));
    if (in * out == 1.0 && s[CF_X].basis[0] * s[CF_X].basis[1] == 1)
        whole.seconds = fmax(whole.seconds, rows * groups * points * line_operations / device->fused_flops);
    if (in * out == 1.0)
        whole.seconds *= padding_factor(layer, pass, strategy, points);
    cost[cf_cost_whole_passes[pass]] = whole;
    cost[pass == CF_PASS_WEIGHTS ? CF_STAGE_STORE_GW : CF_STAGE_LOAD_W] =
        cf_cost_weights(device, spectra, cf_cost_weight_bytes(layer, pass), number, points);
}
