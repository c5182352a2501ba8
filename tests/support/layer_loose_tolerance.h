/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of results of other libraries: that they are called correctly, within the accuracy of their number formats.
 * The accuracy that this library promises is not required. */
#ifndef TEST_LAYER_ROUGH_H
#define TEST_LAYER_ROUGH_H

#include "support/layer.h"

/** Compare a result with expected + extra[] (extra may be NULL), by the norm. */
bool layer_check_roughly(const layer *l, const result *r, const double *extra, const char *call);

/** One pass, without the gradient of the bias: with and without bias, with and without accumulation. */
bool layer_check_pass_roughly(layer *l, const conv_fft_plan *plan, conv_fft_pass pass);

#endif
