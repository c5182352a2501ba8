/* SPDX-License-Identifier: Apache-2.0 */
#include "support/virtual_runs.h"

#include "support/virtual_clock.h"

#include <string.h>

virtual_run_state virtual_runs;

conv_fft_status __real_cf_plan_create(const cf_layer *l, cf_device *device, int passes,
                                      const cf_strategy strategy[CF_PASS_COUNT], bool any_alignment,
                                      uint64_t workspace_limit, uint64_t *smallest, conv_fft_plan **plan);
conv_fft_status __wrap_cf_plan_create(const cf_layer *l, cf_device *device, int passes,
                                      const cf_strategy strategy[CF_PASS_COUNT], bool any_alignment,
                                      uint64_t workspace_limit, uint64_t *smallest, conv_fft_plan **plan) {
    clock_advance(1e-3);
    return __real_cf_plan_create(l, device, passes, strategy, any_alignment, workspace_limit, smallest, plan);
}

/* Other work takes the processors, for a time that changes from run to run. */
static void count_run(void) {
    ++virtual_runs.count;
    if (virtual_runs.count < virtual_runs.lost_until && virtual_runs.count % virtual_runs.lost_every == 0)
        clock_lose(0.03 + 0.02 * (virtual_runs.count % 7));
}

conv_fft_status __real_cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call);
conv_fft_status __wrap_cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call) {
    const int pass = set & CONV_FFT_FORWARD ? CF_PASS_FORWARD : CF_PASS_WEIGHTS;
    const bool spoiled = virtual_runs.spoiled_basis && plan->pass[pass].strategy.basis[2] == virtual_runs.spoiled_basis;
    count_run();
    clock_advance(spoiled ? 1e-6 : virtual_runs.steady ? 0.02 : clock_seconds_of(plan, set));
    if (spoiled) {
        ++virtual_runs.spoiled;
        if (call->y)
            memset(call->y, 0x3f, 64);
        return CONV_FFT_SUCCESS;
    }
    return __real_cf_staged_run(plan, set, call);
}

/* The other family of CPUs. Its runs take 20 ms. */
conv_fft_status __real_cf_spatial_run(const conv_fft_plan *plan, int set, const cf_call *call);
conv_fft_status __wrap_cf_spatial_run(const conv_fft_plan *plan, int set, const cf_call *call) {
    count_run();
    clock_advance(0.02);
    return __real_cf_spatial_run(plan, set, call);
}
