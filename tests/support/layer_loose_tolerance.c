/* SPDX-License-Identifier: Apache-2.0 */
#include "support/layer_loose_tolerance.h"

#include "support/device.h"

#include <math.h>
#include <stdlib.h>

/* The FP32 tolerance of bench_conv for this class: some engines of cuDNN compute 5x5 kernels by Winograd, with an error
 * of 5e-5. */
static double allowed(conv_fft_dtype dtype, conv_fft_math math) {
    return dtype == CONV_FFT_FP64                                     ? 1e-12
           : dtype == CONV_FFT_FP16                                   ? 4e-3
           : dtype == CONV_FFT_BF16                                   ? 3e-2
           : math == CONV_FFT_MATH_TF32 || math == CONV_FFT_MATH_HALF ? 4e-3
                                                                      : 1e-4;
}

/* Norm of the error, relative to the norm of the same sum over absolute values. */
bool layer_check_roughly(const layer *l, const result *r, const double *extra, const char *call) {
    double error = 0, size = 0;
    for (int64_t i = 0; i < r->tensor.count; i++) {
        const double more = extra ? extra[i] : 0;
        const double e = tensor_load(&r->tensor, i) - r->expected[i] - more, m = r->magnitude[i] + fabs(more);
        error += e * e;
        size += m * m;
    }
    const double ratio = r->tensor.count ? sqrt(error / size) : 0;
    const bool ok = ratio <= allowed(l->problem.dtype, l->problem.math);
    return (ok || case_fail("%s: %s: relative error %.3g", call, r->name, ratio)) &&
           (tensor_gaps_intact(&r->tensor) || case_fail("%s: bytes beside %s were written", call, r->name));
}

static bool run_forward(layer *l, const conv_fft_plan *plan, bool with_bias) {
    guarded ws = layer_workspace(l, plan, CONV_FFT_FORWARD);
    double *bias = test_alloc((size_t)l->y.tensor.count * sizeof *bias + 1);
    for (int64_t i = 0; i < l->y.tensor.count; i++)
        bias[i] = 0;
    if (with_bias)
        ref_add_bias(&l->shape, l->bias.values, bias);
    tensor_poison(&l->y.tensor);
    const bool ok = check_status(conv_fft_forward(plan, l->x.tensor.memory.data, l->w.tensor.memory.data,
                                                  with_bias ? l->bias.tensor.memory.data : NULL,
                                                  l->y.tensor.memory.data, ws.data, ws.bytes, device_stream()),
                                 "conv_fft_forward") &&
                    layer_check_roughly(l, &l->y, bias, with_bias ? "forward with bias" : "forward") &&
                    check_inputs(l, "forward");
    free(bias);
    return release_workspace(&ws, "forward") && ok;
}

static bool run_gradient(layer *l, const conv_fft_plan *plan, conv_fft_pass pass, bool accumulate) {
    guarded ws = layer_workspace(l, plan, pass);
    result *const r = pass == CONV_FFT_BACKWARD_DATA ? &l->gx : &l->gw;
    const unsigned flags = accumulate ? CONV_FFT_ACCUMULATE_GX | CONV_FFT_ACCUMULATE_GW : 0;
    if (accumulate)
        tensor_set(&r->tensor, r->old);
    else
        tensor_poison(&r->tensor);
    const bool data = pass == CONV_FFT_BACKWARD_DATA;
    const bool ok =
        check_status(conv_fft_backward(plan, data ? NULL : l->x.tensor.memory.data,
                                       data ? l->w.tensor.memory.data : NULL, l->gy.tensor.memory.data,
                                       data ? r->tensor.memory.data : NULL, data ? NULL : r->tensor.memory.data, NULL,
                                       flags, ws.data, ws.bytes, device_stream()),
                     "conv_fft_backward") &&
        layer_check_roughly(l, r, accumulate ? r->old : NULL, accumulate ? "accumulated" : "backward") &&
        check_inputs(l, "backward");
    return release_workspace(&ws, "backward") && ok;
}

bool layer_check_pass_roughly(layer *l, const conv_fft_plan *plan, conv_fft_pass pass) {
    if (pass == CONV_FFT_FORWARD)
        return run_forward(l, plan, false) && run_forward(l, plan, true);
    return run_gradient(l, plan, pass, false) && run_gradient(l, plan, pass, true);
}
