/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/plan/padded.h"

#include "core/arith.h"
#include "core/dtype.h"

bool cf_layer_folds(const cf_layer *layer, int pass) {
    bool folds = false;
    for (int a = 0; a < 3; ++a)
        folds = folds || layer->axis[a].mode != CONV_FFT_PAD_ZEROS;
    return folds && pass == CF_PASS_DATA;
}

bool cf_layer_is_last(const cf_layer *layer) {
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

cf_layer cf_layer_padded(const cf_layer *layer, int pass, bool last, cf_fold_desc *fold) {
    cf_layer padded = *layer;
    bool folds[3];
    if (!cf_layer_folds(layer, pass))
        return padded;
    for (int a = 0; a < 3; ++a)
        folds[a] = layer->axis[a].mode != CONV_FFT_PAD_ZEROS;
    cf_fold_make(layer, folds, layer->groups, fold, &padded.x);
    if (last && cf_layer_is_last(layer))
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

cf_layer cf_layer_padded_same_type(const cf_layer *layer, int pass, cf_fold_desc *fold) {
    cf_layer padded = cf_layer_padded(layer, pass, true, fold);
    if (!cf_layer_folds(layer, pass))
        return padded;
    cf_tensor *const x = &padded.x;
    x->dtype = fold->scratch_dtype = layer->x.dtype;
    if (!fold->last) { /* rows are units of 16 bytes */
        fold->row = cf_round_up(fold->padded[2], 16 / (int64_t)cf_dtype_bytes(x->dtype));
        cf_fold_set_strides(fold, layer->groups, x);
    }
    return padded;
}

cf_call cf_padded_call(const conv_fft_plan *plan, int pass, const cf_call *call) {
    cf_call padded = *call;
    if (plan->pass[pass].gx_store == CF_GX_FOLDED) {
        padded.gx = (char *)cf_align((size_t)call->workspace) + plan->workspace[CONV_FFT_BACKWARD_DATA].fold;
        padded.flags &= ~CONV_FFT_ACCUMULATE_GX;
    }
    return padded;
}

conv_fft_status cf_padded_fold(const conv_fft_plan *plan, int pass, const cf_call *padded, const cf_call *call) {
    const cf_layer *const layer = &plan->layer;
    if (plan->pass[pass].gx_store != CF_GX_FOLDED)
        return CONV_FFT_SUCCESS;
    CF_FORWARD(plan->device->ops->fold(plan->device, &plan->pass[pass].fold, padded->gx, layer->batch, layer->groups,
                                       call->gx, call->flags & CONV_FFT_ACCUMULATE_GX, call->stream));
    cf_stage_done(plan, call, CF_STAGE_FOLD_GX);
    return CONV_FFT_SUCCESS;
}
