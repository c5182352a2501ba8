/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/plan/call_check.h"

#include "core/dtype.h"

static size_t spectrum_bytes(const conv_fft_plan *plan, conv_fft_operand operand, const void *spectrum) {
    const int64_t bytes = spectrum ? cf_plan_spectrum_bytes(plan, operand) : 0;
    return bytes > 0 ? (size_t)bytes : 0;
}

conv_fft_status cf_check_call_memory(const conv_fft_plan *plan, int set, const cf_call *c) {
    const cf_layer *const l = &plan->layer;
    if (!plan->device->ops->check_arguments || plan->trusted)
        return CONV_FFT_SUCCESS;
    int64_t x[5], y[5], w[5];
    cf_layer_extents(l, x, y, w);
    const bool reads_x = set & (CONV_FFT_FORWARD | CONV_FFT_BACKWARD_WEIGHTS);
    const bool reads_w = set & (CONV_FFT_FORWARD | CONV_FFT_BACKWARD_DATA);
    const cf_memory_argument arguments[] = {
        {"x", c->x, reads_x ? cf_tensor_bytes(&l->x, x) : 0},
        {"w", c->w, reads_w ? cf_tensor_bytes(&l->w, w) : 0},
        {"bias", c->bias, l->batch > 0 ? (size_t)y[1] * cf_dtype_bytes(l->y.dtype) : 0},
        {"gy", c->gy, cf_tensor_bytes(&l->y, y)},
        {"y", c->y, cf_tensor_bytes(&l->y, y)},
        {"gx", c->gx, cf_tensor_bytes(&l->x, x)},
        {"gw", c->gw, cf_tensor_bytes(&l->gw, w)},
        {"gbias", c->gbias, (size_t)y[1] * cf_dtype_bytes(l->gw.dtype)},
        {"x_spectrum", c->x_spectrum, spectrum_bytes(plan, CONV_FFT_OPERAND_X, c->x_spectrum)},
        {"w_spectrum", c->w_spectrum, spectrum_bytes(plan, CONV_FFT_OPERAND_W, c->w_spectrum)},
        {"workspace", c->workspace, set && (l->batch > 0 || c->workspace) ? plan->workspace[set].bytes : 0},
    };
    return plan->device->ops->check_arguments(plan->device, arguments, (int)(sizeof arguments / sizeof arguments[0]),
                                              c->stream);
}
