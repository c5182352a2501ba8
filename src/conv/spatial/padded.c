/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of x with reflect, circular and replicate padding. The gradient of the padded signal is computed into the
 * workspace. Then the padding is folded back: each element gets the sum over its places in the padded signal. */
#include "conv/spatial/spatial.h"

#include "core/arith.h"
#include "core/dtype.h"

bool cf_spatial_folds(const cf_layer *layer, int pass) {
    bool folds = false;
    for (int a = 0; a < 3; ++a)
        folds = folds || layer->axis[a].mode != CONV_FFT_PAD_ZEROS;
    return folds && pass == CF_PASS_DATA;
}

cf_layer cf_spatial_padded(const cf_layer *layer, int pass) {
    cf_layer padded = *layer;
    if (!cf_spatial_folds(layer, pass))
        return padded;
    for (int a = 0; a < 3; ++a) {
        cf_axis *const axis = &padded.axis[a];
        if (axis->mode == CONV_FFT_PAD_ZEROS)
            continue;
        axis->input += axis->pad_before + axis->pad_after;
        axis->pad_before = axis->pad_after = 0;
        axis->mode = CONV_FFT_PAD_ZEROS;
    }
    cf_tensor *const x = &padded.x;
    x->dtype = layer->compute;
    x->axis_stride[2] = 1;
    x->axis_stride[1] = padded.axis[2].input;
    x->axis_stride[0] = padded.axis[1].input * x->axis_stride[1];
    x->channel_stride = padded.axis[0].input * x->axis_stride[0];
    x->group_stride = layer->in_channels * x->channel_stride;
    x->sample_stride = layer->groups * x->group_stride;
    return padded;
}

cf_fold_desc cf_spatial_fold(const cf_layer *layer) {
    const cf_layer padded = cf_spatial_padded(layer, CF_PASS_DATA);
    cf_fold_desc fold = {.tensor = layer->x,
                         .scratch_dtype = layer->compute,
                         .channels = layer->in_channels,
                         .mode = layer->problem.padding};
    for (int a = 0; a < 3; ++a) {
        fold.size[a] = layer->axis[a].input;
        fold.padded[a] = padded.axis[a].input;
        fold.pad[a] = layer->axis[a].pad_before - padded.axis[a].pad_before;
    }
    return fold;
}

double cf_spatial_padded_bytes(const cf_layer *layer) {
    const cf_layer padded = cf_spatial_padded(layer, CF_PASS_DATA);
    double elements = (double)layer->batch * (double)layer->groups * (double)layer->in_channels;
    for (int a = 0; a < 3; ++a)
        elements *= (double)padded.axis[a].input;
    return elements * (double)cf_dtype_bytes(layer->compute);
}
