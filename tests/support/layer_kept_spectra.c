/* SPDX-License-Identifier: Apache-2.0 */
/* Calls with caller-owned spectra. */
#include "support/device.h"
#include "support/layer.h"

typedef struct kept {
    guarded x, w;
} kept;

/* Usually aligned only as the header requires: to one complex number. */
static guarded create_spectrum(const layer *l, const conv_fft_plan *plan, conv_fft_operand which) {
    size_t bytes = 0;
    check_status(conv_fft_plan_spectrum(plan, which, &bytes), "conv_fft_plan_spectrum");
    return guarded_create(bytes, tensor_alignment(l->problem.dtype == CONV_FFT_FP64 ? 16 : 8));
}

static bool check_forward_kept(layer *l, const conv_fft_plan *plan, const void *x, const void *w, void *x_spectrum,
                               void *w_spectrum, const char *call) {
    guarded workspace = layer_workspace(l, plan, CONV_FFT_FORWARD);
    tensor_poison(&l->y.tensor);
    const bool ok = check_status(conv_fft_forward_kept(plan, x, w, NULL, l->y.tensor.memory.data, x_spectrum,
                                                       w_spectrum, workspace.data, workspace.bytes, device_stream()),
                                 call);
    return release_workspace(&workspace, call) && ok && check_result(l, &l->y, NULL, call) && check_inputs(l, call);
}

static bool check_backward_kept(layer *l, const conv_fft_plan *plan, kept *spectra) {
    const char *call = "conv_fft_backward_kept reading both spectra";
    guarded workspace = layer_workspace(l, plan, CONV_FFT_BACKWARD);
    tensor_poison(&l->gx.tensor);
    tensor_poison(&l->gw.tensor);
    tensor_poison(&l->gbias.tensor);
    const bool ok =
        check_status(conv_fft_backward_kept(plan, NULL, NULL, l->gy.tensor.memory.data, l->gx.tensor.memory.data,
                                            l->gw.tensor.memory.data, l->gbias.tensor.memory.data, 0, spectra->x.data,
                                            spectra->w.data, workspace.data, workspace.bytes, device_stream()),
                     call);
    return release_workspace(&workspace, call) && ok && check_result(l, &l->gx, NULL, call) &&
           check_result(l, &l->gw, NULL, call) && check_result(l, &l->gbias, NULL, call) && check_inputs(l, call);
}

static bool check_stored(const guarded *spectrum, const char *name) {
    return guarded_canaries_intact(spectrum) || case_fail("bytes beside the spectrum of %s were written", name);
}

static bool check_transform_weights(layer *l, const conv_fft_plan *plan, guarded *spectrum) {
    const char *call = "conv_fft_transform_weights";
    guarded workspace = layer_workspace(l, plan, CONV_FFT_FORWARD);
    const bool ok = check_status(conv_fft_transform_weights(plan, l->w.tensor.memory.data, spectrum->data,
                                                            workspace.data, workspace.bytes, device_stream()),
                                 call);
    return release_workspace(&workspace, call) && ok && check_stored(spectrum, "w");
}

static bool check_only_read(const guarded *spectrum, const char *name) {
    return guarded_untouched(spectrum) || case_fail("the spectrum of %s was written where it should be read", name);
}

bool layer_check_kept(layer *l, const conv_fft_plan *plan) {
    kept stored = {create_spectrum(l, plan, CONV_FFT_OPERAND_X), create_spectrum(l, plan, CONV_FFT_OPERAND_W)};
    guarded weights = create_spectrum(l, plan, CONV_FFT_OPERAND_W);
    const void *x = l->x.tensor.memory.data, *w = l->w.tensor.memory.data;
    bool ok =
        check_forward_kept(l, plan, x, w, stored.x.data, stored.w.data, "conv_fft_forward_kept storing both spectra");
    ok = check_stored(&stored.x, "x") && check_stored(&stored.w, "w") && ok;
    guarded_remember(&stored.x);
    guarded_remember(&stored.w);
    ok = ok && check_forward_kept(l, plan, NULL, NULL, stored.x.data, stored.w.data,
                                  "conv_fft_forward_kept reading both spectra");
    ok = ok && check_backward_kept(l, plan, &stored);
    ok = ok && check_only_read(&stored.x, "x") && check_only_read(&stored.w, "w");
    ok = ok && check_transform_weights(l, plan, &weights);
    ok = ok &&
         check_forward_kept(l, plan, x, NULL, NULL, weights.data, "conv_fft_forward_kept reading the spectrum of w");
    guarded_destroy(&stored.x);
    guarded_destroy(&stored.w);
    guarded_destroy(&weights);
    return ok;
}
