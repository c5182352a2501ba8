/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/plan/run.h"

#include "conv/plan/family.h"
#include "core/arith.h"

#include <stdlib.h>

#define CF_STAGE_NAME(name, text) [CF_STAGE_##name] = text,
const char *const cf_stage_names[CF_STAGE_COUNT] = {CF_STAGE_LIST(CF_STAGE_NAME)};
#undef CF_STAGE_NAME

static bool room_for_lap(cf_laps *laps) {
    if (laps->count < laps->capacity)
        return true;
    const int capacity = 2 * laps->capacity + 16;
    cf_stage_kind *stage = realloc(laps->stage, (size_t)capacity * sizeof *stage);
    if (!stage)
        return false;
    laps->stage = stage;
    laps->capacity = capacity;
    return true;
}

void cf_lap(const conv_fft_plan *plan, const cf_call *call, cf_stage_kind stage) {
    cf_laps *laps = call->laps;
    if (!laps || laps->status != CONV_FFT_SUCCESS)
        return;
    if (!room_for_lap(laps)) {
        laps->status = cf_fail_memory((size_t)laps->count * sizeof *laps->stage, "the stages of a profile");
        return;
    }
    laps->stage[laps->count++] = stage;
    laps->status = plan->device->ops->timer_mark(laps->timer, laps->count, call->stream);
}

/* Before all else, so that its scratch may be anything of the workspace. */
static conv_fft_status run_bias(const conv_fft_plan *plan, int set, const cf_call *call) {
    const bool room = plan->layer.batch > 0 && plan->workspace[set].bytes >= CF_WORKSPACE_SLACK + plan->bias_scratch;
    const uintptr_t address = (uintptr_t)call->workspace;
    void *const scratch = room ? (char *)call->workspace + (cf_align(address) - address) : NULL;
    CF_FORWARD(plan->device->ops->bias_gradient(plan->device, &plan->bias, call->gy, call->gbias,
                                                call->flags & CONV_FFT_ACCUMULATE_GBIAS, scratch, call->stream));
    cf_lap(plan, call, CF_STAGE_BIAS);
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_run(const conv_fft_plan *plan, int set, const cf_call *call) {
    if (call->laps)
        CF_FORWARD(plan->device->ops->timer_mark(call->laps->timer, 0, call->stream));
    if (call->gbias && !plan->sums_bias[set])
        CF_FORWARD(run_bias(plan, set, call));
    if (set == CONV_FFT_BACKWARD && !plan->shares_gy) {
        cf_call weights = *call;
        weights.after_data = true;
        CF_FORWARD(cf_families[plan->pass[CF_PASS_DATA].strategy.family]->run(plan, CONV_FFT_BACKWARD_DATA, call));
        return cf_families[plan->pass[CF_PASS_WEIGHTS].strategy.family]->run(plan, CONV_FFT_BACKWARD_WEIGHTS, &weights);
    }
    if (set == 0)
        return CONV_FFT_SUCCESS;
    const int pass = set == CONV_FFT_FORWARD        ? CF_PASS_FORWARD
                     : set & CONV_FFT_BACKWARD_DATA ? CF_PASS_DATA
                                                    : CF_PASS_WEIGHTS;
    return cf_families[plan->pass[pass].strategy.family]->run(plan, set, call);
}

conv_fft_status cf_run_transform_weights(const conv_fft_plan *plan, const void *w, void *w_spectrum, void *workspace,
                                         struct CUstream_st *stream) {
    const cf_pass_plan *pass = cf_plan_reader(plan, CF_W);
    const int set = plan->passes & CONV_FFT_FORWARD ? CONV_FFT_FORWARD : CONV_FFT_BACKWARD_DATA;
    const cf_spectrum *s = &pass->spectrum[CF_W];
    cf_block block = {.data = w_spectrum, .groups = s->groups, .rows = s->rows, .bin_stride = s->rows * s->columns};
    block.group_stride = s->bins * block.bin_stride;
    block.scales = cf_spectrum_scales(s, w_spectrum, s->groups, s->rows);
    block.scale_stride = s->rows * cf_spectrum_row_scales(s);
    const uintptr_t address = (uintptr_t)workspace;
    char *scratch = (char *)workspace + (cf_align(address) - address) + plan->workspace[set].scratch;
    return plan->device->ops->forward(pass->transform[CF_W], w, (cf_origin){0, 0}, block, scratch, stream);
}
