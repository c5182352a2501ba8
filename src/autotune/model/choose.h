/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of strategies by the cost model. */
#ifndef CF_AUTOTUNE_CHOOSE_H
#define CF_AUTOTUNE_CHOOSE_H

#include "conv/plan/context.h"
#include "conv/plan/plan.h"

/* Make the plan. Passes of the set `chosen` take strategy[pass]. For the other passes, the model chooses the fastest
 * strategy whose workspace fits. INVALID_ARGUMENT: nothing fits, or a strategy does not run. As cf_plan_create(). */
conv_fft_status cf_choose_plan(conv_fft_context *context, const cf_layer *layer, const conv_fft_plan_options *options,
                               int chosen, const cf_strategy strategy[CF_PASS_COUNT], conv_fft_plan **plan);

/* What the model chooses for all passes of a layer together, with any workspace. own_kernels: without algorithms of
 * other libraries. INVALID_ARGUMENT: no strategy runs it. */
conv_fft_status cf_choose_strategies(cf_device *device, const cf_layer *layer, int keep, bool own_kernels,
                                     cf_strategy strategy[CF_PASS_COUNT]);

#endif
