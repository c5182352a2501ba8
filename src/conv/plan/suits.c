/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a strategy with a basis and tiles computes a pass, as several families ask. */
#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"

static int64_t padded_extent(const cf_axis *axis) { return axis->pad_before + axis->input + axis->pad_after; }

bool cf_strategy_suits_spectra(const cf_layer *layer, int pass, const cf_strategy *s, const char **why) {
    *why = "its spectrum must have the type of the layer's arithmetic";
    conv_fft_dtype in_short;
    const bool half = cf_layer_16bit_spectrum(layer, &in_short) && s->spectrum == in_short;
    if (s->spectrum != layer->compute && !half)
        return false;
    *why = "tensor cores multiply spectra of FP32 and of 16 bits only";
    if (s->product == CF_CGEMM_TENSOR && s->spectrum == CONV_FFT_FP64)
        return false;
    *why = "only tensor cores multiply 16-bit spectra";
    if (half && s->product != CF_CGEMM_TENSOR)
        return false;
    static const cf_role results[CF_PASS_COUNT] = {CF_ROLE_Y, CF_ROLE_GX, CF_ROLE_W};
    for (int a = 0; a < 3; ++a) {
        const cf_axis_grid grid = cf_strategy_grid(s, a);
        *why = "a basis must be a product of powers of 2, 3, 5 and 7";
        if (!cf_is_basis(grid.basis))
            return false;
        *why = "a basis is too small for its tiles, or there are more tiles than input positions or more segments than "
               "taps";
        if (!cf_grid_fits(&layer->axis[a], &grid, results[pass]))
            return false;
    }
    if (pass == CF_PASS_DATA && cf_strategy_has_segments(layer, s)) {
        const cf_window gx = cf_strategy_window(layer, s, CF_ROLE_GX);
        *why = "backward data has segments with dilation=shift or with several tiles, not with both";
        if (cf_window_tiles(&gx) > 1 && cf_window_shifts(&gx) > 1)
            return false;
        *why = "backward data has no segments with spectra of FP16, whose scales serve whole rows";
        if (cf_spectrum_is_scaled(s->spectrum))
            return false;
    }
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    *why = cf_large_input[layer->problem.padding];
    int64_t padded = 8 * cf_max(1, layer->batch);
    bool fits = cf_multiply(&padded, layer->groups) && cf_multiply(&padded, layer->in_channels);
    for (int a = 0; a < 3; ++a)
        fits =
            fits && cf_multiply(&padded, layer->problem.padding == CONV_FFT_PAD_ZEROS ? layer->axis[a].input
                                                                                      : padded_extent(&layer->axis[a]));
    if (!fits || padded > CF_SPECTRUM_MAX_BYTES)
        return false;
    *why = cf_large_spectra;
    return cf_strategy_spectra(layer, pass, s, spectrum);
}

bool cf_strategy_suits_kernel(const cf_layer *layer, int pass, const cf_strategy *s, const char **why) {
    if (!cf_strategy_suits_spectra(layer, pass, s, why))
        return false;
    *why = "its tiles do not overlap where they are stored, and it has no segments";
    if (s->overlap_add || cf_strategy_has_segments(layer, s))
        return false;
    *why = "its gradient of x does not fold padding back";
    if (pass == CF_PASS_DATA && cf_strategy_gx_store(layer, s) == CF_GX_FOLDED)
        return false;
    *why = "a window of the signal or of the weights is empty";
    static const cf_role roles[] = {CF_ROLE_X, CF_ROLE_W, CF_ROLE_Y, CF_ROLE_GX, CF_ROLE_GY};
    for (int i = 0; i < (int)(sizeof roles / sizeof roles[0]); ++i) {
        const cf_window w = cf_strategy_window(layer, s, roles[i]);
        for (int a = 0; a < 3; ++a)
            if (w.axis[a].count == 0)
                return false;
    }
    return true;
}
