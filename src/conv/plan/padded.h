/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of x with reflect, circular and replicate padding. The gradient of the padded signal is computed into the
 * workspace. Then the padding is folded back: each element gets the sum over its places in the padded signal. */
#ifndef CF_CONV_PLAN_PADDED_H
#define CF_CONV_PLAN_PADDED_H

#include "conv/plan/run.h"
#include "conv/plan/spectra.h"

/* Whether a gradient of x is folded, because its padding is no zeros. */
bool cf_layer_folds(const cf_layer *layer, int pass);
/* Whether neighbouring channels of all groups are neighbouring elements. */
bool cf_layer_is_last(const cf_layer *layer);
/* The layer whose pass is computed. If it is folded, x is the padded signal, dense and in the compute type, and *fold
 * is set. last: with channels last, so is the padded signal. */
cf_layer cf_layer_padded(const cf_layer *layer, int pass, bool last, cf_fold_desc *fold);
/* The same with the padded signal in the type of x, with channels last or with aligned rows. */
cf_layer cf_layer_padded_same_type(const cf_layer *layer, int pass, cf_fold_desc *fold);

/* The call that computes a pass. If it is folded, gx of this call is in the workspace; otherwise it is *call. */
cf_call cf_padded_call(const conv_fft_plan *plan, int pass, const cf_call *call);
/* Fold the gx of that call, if the pass is folded. */
conv_fft_status cf_padded_fold(const conv_fft_plan *plan, int pass, const cf_call *padded, const cf_call *call);

#endif
