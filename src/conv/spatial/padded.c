/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of x with reflect, circular and replicate padding. The gradient of the padded signal is computed into the
 * workspace. Then the padding is folded back: each element gets the sum over its places in the padded signal. */
#include "conv/spatial/spatial.h"

#include "conv/plan/spectra.h"

bool cf_spatial_folds(const cf_layer *layer, int pass) {
    bool folds = false;
    for (int a = 0; a < 3; ++a)
        folds = folds || layer->axis[a].mode != CONV_FFT_PAD_ZEROS;
    return folds && pass == CF_PASS_DATA;
}

bool cf_spatial_is_last(const cf_layer *layer) {
    return layer->groups > 1 && layer->x.axis_stride[2] != 1 &&
           (layer->in_channels > 1 ? layer->x.channel_stride : layer->x.group_stride) == 1;
}

static void set_last(const cf_layer *layer, cf_fold_desc *fold, cf_tensor *scratch) {
    fold->last = true;
    scratch->channel_stride = 1;
    scratch->group_stride = layer->in_channels;
    scratch->axis_stride[2] = layer->groups * layer->in_channels;
    scratch->axis_stride[1] = fold->padded[2] * scratch->axis_stride[2];
    scratch->axis_stride[0] = fold->padded[1] * scratch->axis_stride[1];
    scratch->sample_stride = fold->padded[0] * scratch->axis_stride[0];
}

cf_layer cf_spatial_padded(const cf_layer *layer, int pass, bool last, cf_fold_desc *fold) {
    cf_layer padded = *layer;
    bool folds[3];
    if (!cf_spatial_folds(layer, pass))
        return padded;
    for (int a = 0; a < 3; ++a)
        folds[a] = layer->axis[a].mode != CONV_FFT_PAD_ZEROS;
    cf_fold_make(layer, folds, layer->groups, fold, &padded.x);
    if (last && cf_spatial_is_last(layer))
        set_last(layer, fold, &padded.x);
    for (int a = 0; a < 3; ++a) {
        cf_axis *const axis = &padded.axis[a];
        if (!folds[a])
            continue;
        axis->input = fold->padded[a];
        axis->pad_before = axis->pad_after = 0;
        axis->mode = CONV_FFT_PAD_ZEROS;
    }
    return padded;
}
