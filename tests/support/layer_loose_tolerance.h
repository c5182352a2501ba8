/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what another library computes: that it is called as it should be, in the accuracy of its number formats,
 * not in the one that we promise. */
#ifndef TEST_LAYER_ROUGH_H
#define TEST_LAYER_ROUGH_H

#include "support/layer.h"

/** A result against expected + extra[] (may be NULL), by the norm. */
bool layer_check_roughly(const layer *l, const result *r, const double *extra, const char *call);

/** One pass of conv_fft_pass, but the gradient of the bias: with and without bias, with and without old contents. */
bool layer_check_pass_roughly(layer *l, const conv_fft_plan *plan, conv_fft_pass pass);

#endif
