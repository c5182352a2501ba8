/* SPDX-License-Identifier: Apache-2.0 */
/* How elements of tensors and of tiles are copied. */
#include "conv/toeplitz/toeplitz.h"

#include "core/arith.h"
#include "core/dtype.h"

int cf_toeplitz_numbers(conv_fft_dtype dtype) { return CF_TOEPLITZ_UNIT / (int)cf_dtype_bytes(dtype); }

int cf_toeplitz_granule(const cf_layer *layer, const cf_tensor *t, bool last, int64_t rows, bool any_alignment) {
    int granule = any_alignment ? 1 : last ? 2 : cf_toeplitz_numbers(t->dtype);
    const int64_t strides[] = {layer->batch > 1 ? t->sample_stride : 0, layer->groups > 1 ? t->group_stride : 0,
                               rows > 1 ? t->axis_stride[1] : 0, t->axis_stride[2],
                               cf_toeplitz_is_trivial(&layer->axis[0]) ? 0 : t->axis_stride[0]};
    for (int i = 0; i < 5; ++i)
        while (i != (last ? 1 : 3) && strides[i] % granule != 0)
            granule /= 2;
    return last && layer->groups % granule != 0 ? 1 : granule;
}

void cf_toeplitz_set_whole(const cf_toeplitz_config *c, cf_toeplitz_access *a, int64_t height, int64_t breadth,
                           int64_t top, int64_t left) {
    a->whole = !c->last && !c->line && c->tiles_down * c->tiles_across == 1 && top >= 0 && left >= 0 &&
               left % (a->numbers / 4) == 0 && (a->granule == 1 || breadth % a->granule == 0) &&
               top + height <= a->rows && left + cf_round_up(breadth, a->numbers / 4) <= a->numbers * a->units;
    if (!a->whole)
        return;
    a->height = (int)height;
    a->breadth = (int)breadth;
    a->top = (int)top;
    a->left = (int)left;
}

/* Padding outside of the tile counts for no output. */
void cf_toeplitz_set_padding(cf_toeplitz_config *c, const cf_axis *down, const cf_axis *across) {
    cf_toeplitz_access *const a = &c->x;
    if (c->mode == CONV_FFT_PAD_ZEROS || !a->whole)
        return;
    if (down->mode != CONV_FFT_PAD_ZEROS) {
        a->above = (int)cf_min(down->pad_before, a->top);
        a->below = (int)cf_min(down->pad_after, a->rows - a->top - a->height);
    }
    if (across->mode != CONV_FFT_PAD_ZEROS) {
        a->before = (int)cf_min(across->pad_before, a->left);
        a->behind = (int)cf_min(across->pad_after, a->numbers * a->units - a->left - a->breadth);
    }
}
