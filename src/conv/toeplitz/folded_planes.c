/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of x whose padding the kernel folds: which layers have them, and the constants of their kernels. */
#include "conv/plan/padded.h"
#include "conv/toeplitz/toeplitz.h"

enum {
    MAX_FOLDED = 64 /* columns of a tile, and its rows of gy */
};

bool cf_toeplitz_folds_planes(const cf_layer *layer, int pass) {
    const cf_axis *const down = &layer->axis[1], *const across = &layer->axis[2];
    const int64_t rows = down->input + down->pad_before + down->pad_after,
                  columns = across->input + across->pad_before + across->pad_after;
    return cf_layer_folds(layer, pass) && cf_toeplitz_is_trivial(&layer->axis[0]) &&
           layer->axis[0].pad_before + layer->axis[0].pad_after == 0 && !cf_toeplitz_is_trivial(down) &&
           layer->x.axis_stride[2] == 1 && rows <= MAX_FOLDED * down->stride && columns <= MAX_FOLDED;
}

void cf_toeplitz_print_fold(const cf_fold_desc *fold, cf_text *t) {
    cf_text_add(t,
                "struct Fold {\nstatic constexpr int MODE = %d, HEIGHT = %d, BREADTH = %d, TOP = %d, LEFT = %d, ROWS = "
                "%d, COLUMNS = %d;\n};\n",
                (int)fold->mode, (int)fold->size[1], (int)fold->size[2], (int)fold->pad[1], (int)fold->pad[2],
                (int)fold->padded[1], (int)fold->padded[2]);
}
