/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithms of other libraries that the cost model chooses without a measurement. */
#ifndef CF_AUTOTUNE_BASELINE_H
#define CF_AUTOTUNE_BASELINE_H

#include "conv/plan/plan.h"

/* Take the first algorithm of a family that knows its time, where that is clearly less than *seconds, the time of
 * *strategy, and than `staged` seconds. The other library is asked for algorithms only then. OUT_OF_MEMORY is the only
 * error. */
conv_fft_status cf_choose_baseline(const cf_layer *layer, cf_device *device, int pass, double staged,
                                   cf_strategy *strategy, double *seconds);

#endif
