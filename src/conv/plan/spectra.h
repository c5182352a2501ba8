/* SPDX-License-Identifier: Apache-2.0 */
/* Windows and spectra of the operands of a layer, for a strategy with a basis and tiles; and how gx is stored. */
#ifndef CF_CONV_PLAN_SPECTRA_H
#define CF_CONV_PLAN_SPECTRA_H

#include "conv/plan/plan.h"
#include "conv/plan/run.h"
#include "core/words.h"

/* Limit of one spectrum, and of the padded gx, in bytes. Sums of such sizes do not overflow, nor does scratch for
 * many threads. */
#define CF_SPECTRUM_MAX_BYTES ((int64_t)1 << 46)

/* The axis of the layer that is axis `a` of the transforms. Real transforms halve their last axis. So if a plane's
 * basis has one point along its last axis, the axes change places. Only families whose search has products
 * (CF_SEARCH_SPECTRA) do that. */
int cf_strategy_axis(const cf_strategy *strategy, int a);
/* The strides of a tensor's axes in the order of the transforms. */
cf_tensor cf_strategy_tensor(const cf_strategy *strategy, const cf_tensor *tensor);

/* Find the spectra of a pass. False: one of them exceeds CF_SPECTRUM_MAX_BYTES. */
bool cf_strategy_spectra(const cf_layer *layer, int pass, const cf_strategy *strategy,
                         cf_spectrum spectrum[CF_OPERAND_COUNT]);

/* Reason texts for problems that are too large for any transform size: the spectra, an axis on a GPU, or the input with
 * the padding of a mode. */
extern const char cf_large_spectra[], cf_large_axis[];
extern const char *const cf_large_input[CF_PADDING_COUNT];
bool cf_is_too_large(const char *why);

/* Find the type of 16-bit spectra that tensor cores may multiply for this layer. False: there is none. For FP32
 * tensors, FP16 spectra with their scales keep as many bits as TF32. */
bool cf_layer_16bit_spectrum(const cf_layer *layer, conv_fft_dtype *spectrum);

/* The window of an operand in a role. */
cf_window cf_strategy_window(const cf_layer *layer, const cf_strategy *strategy, cf_role role);

/* Whether the strategy divides the taps of an axis into segments. */
bool cf_strategy_has_segments(const cf_layer *layer, const cf_strategy *strategy);

/* Which rows of gx overlap, in the terms of cf_transform_desc. If taps are in segments, these are phases of rows. */
typedef struct cf_order {
    int64_t ordered, beside, between;
} cf_order;
cf_order cf_strategy_order(const cf_layer *layer, const cf_strategy *strategy);

/* How the gradient of x is stored. */
cf_gx_store cf_strategy_gx_store(const cf_layer *layer, const cf_strategy *strategy);

/* Describe the fold of a padded gradient of x, and the scratch that has it: dense, of the compute type, with `groups`
 * groups of a sample. folds: the axes whose padding is folded. */
void cf_fold_make(const cf_layer *layer, const bool folds[3], int64_t groups, cf_fold_desc *fold, cf_tensor *scratch);
/* The strides of a dense scratch whose rows are fold->row positions apart. */
void cf_fold_set_strides(const cf_fold_desc *fold, int64_t groups, cf_tensor *scratch);
/* Bytes of the scratch of so many groups and samples. */
double cf_fold_bytes(const cf_fold_desc *fold, int64_t groups, int64_t samples);

/* Whether the strategy computes the pass through spectra; otherwise *why is a clause. */
bool cf_strategy_suits_spectra(const cf_layer *layer, int pass, const cf_strategy *strategy, const char **why);
/* The same for one kernel that transforms, multiplies and transforms back. */
bool cf_strategy_suits_kernel(const cf_layer *layer, int pass, const cf_strategy *strategy, const char **why);

/* Set the gradient of x to zero if a pass does not reach all of it, unless it accumulates. */
conv_fft_status cf_zero_gx(const conv_fft_plan *plan, const cf_call *call);

/* Whether no product reaches all of the gradient of the weights. */
bool cf_weights_are_zeroed(const conv_fft_plan *plan);
/* Set the gradient of the weights to zero if no product reaches all of it: the batch is empty, or taps meet only
 * padding. */
conv_fft_status cf_zero_weights(const conv_fft_plan *plan, const cf_call *call);

#endif
