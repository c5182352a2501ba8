/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/cudnn/cudnn.h"
#include "conv/plan/cost/stage_cost.h"
#include "core/calibration.h"
#include "core/dtype.h"

#include <math.h>

/* It counts the bytes of the tensors and the operations of the definition. What another library's algorithm does
 * is not known. */
void cf_cudnn_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                      cf_stage_cost cost[CF_STAGE_COUNT]) {
    (void)device, (void)strategy;
    cost[cf_cost_whole_passes[pass]] = cf_cost_definition(layer, pass);
}

/* Whether it is a dense layer of planes in 16 bits, of many channels. The rates of others are not known. */
static bool is_known(const cf_layer *layer, const cf_device *device) {
    return device->calibration && device->tensor_flops > 0.0 && layer->batch > 0 && layer->groups == 1 &&
           layer->problem.rank == 2 && layer->problem.math == CONV_FFT_MATH_HALF &&
           cf_dtype_bytes(layer->x.dtype) == 2 && layer->in_channels >= 32 && layer->out_channels >= 32;
}

/*
 * From an H100, algorithms that cuDNN's heuristics name first. They are products of matrices. The gradient of x counts
 * positions of x, also where gy has only padding. The rate grows with the columns of the result. Tensors with channels
 * first are reordered before and after that, by three kernels.
 */
double cf_cudnn_first_seconds(const cf_layer *layer, const cf_device *device, int pass) {
    cf_cudnn_pass p;
    const char *why;
    if (!is_known(layer, device) || !cf_cudnn_pass_make(layer, pass, &p, &why) || !cf_cudnn_is_trusted(&p, &why))
        return HUGE_VAL;
    int64_t x[5], y[5], w[5];
    cf_layer_extents(layer, x, y, w);
    const cf_calibration *const c = device->calibration;
    const bool weights = pass == CF_PASS_WEIGHTS, data = pass == CF_PASS_DATA, first = layer->x.axis_stride[2] == 1;
    const double in = (double)layer->in_channels, out = (double)layer->out_channels,
                 columns = weights ? fmin(in, out)
                           : data  ? in
                                   : out,
                 half = weights ? c->direct_columns_gw : c->direct_columns,
                 bytes = (cf_cost_elements(x) + cf_cost_elements(y)) * (double)cf_dtype_bytes(layer->x.dtype);
    double operations = cf_cost_definition(layer, pass).operations;
    for (int a = 0; a < 3 && data; ++a)
        operations *= fmax(1.0, (double)layer->axis[a].input / (double)(layer->axis[a].output * layer->axis[a].stride));
    const double rate = c->direct_rate * device->tensor_flops * columns / (columns + half);
    return fmax(operations / rate, bytes / device->bandwidth) + 2.0 * device->stage_seconds +
           (first ? 2.0 * bytes / device->bandwidth + 3.0 * device->stage_seconds : 0.0);
}
