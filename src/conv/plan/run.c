/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/plan/run.h"

#include "conv/plan/family.h"
#include "core/arith.h"

#include <stdlib.h>

#define CF_STAGE_NAME(name, text) [CF_STAGE_##name] = text,
const char *const cf_stage_names[CF_STAGE_COUNT] = {CF_STAGE_LIST(CF_STAGE_NAME)};
#undef CF_STAGE_NAME

static bool has_time_slot(cf_stage_times *stage_times) {
    if (stage_times->count < stage_times->capacity)
        return true;
    const int capacity = 2 * stage_times->capacity + 16;
    cf_stage_kind *stage = realloc(stage_times->stage, (size_t)capacity * sizeof *stage);
    if (!stage)
        return false;
    stage_times->stage = stage;
    stage_times->capacity = capacity;
    return true;
}

void cf_stage_done(const conv_fft_plan *plan, const cf_call *call, cf_stage_kind stage) {
    cf_stage_times *stage_times = call->stage_times;
    if (!stage_times || stage_times->status != CONV_FFT_SUCCESS)
        return;
    if (!has_time_slot(stage_times)) {
        stage_times->status =
            cf_fail_memory((size_t)stage_times->count * sizeof *stage_times->stage, "the stages of a profile");
        return;
    }
    stage_times->stage[stage_times->count++] = stage;
    stage_times->status = plan->device->ops->timer_mark(stage_times->timer, stage_times->count, call->stream);
}

/* The bias comes first, so that its scratch may use the whole workspace. */
static conv_fft_status run_bias(const conv_fft_plan *plan, int set, const cf_call *call) {
    const bool has_scratch =
        plan->layer.batch > 0 && plan->workspace[set].bytes >= CF_WORKSPACE_SLACK + plan->bias_scratch;
    const uintptr_t address = (uintptr_t)call->workspace;
    void *const scratch = has_scratch ? (char *)call->workspace + (cf_align(address) - address) : NULL;
    CF_FORWARD(plan->device->ops->bias_gradient(plan->device, &plan->bias, call->gy, call->gbias,
                                                call->flags & CONV_FFT_ACCUMULATE_GBIAS, scratch, call->stream));
    cf_stage_done(plan, call, CF_STAGE_BIAS);
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_run(const conv_fft_plan *plan, int set, const cf_call *call) {
    if (call->stage_times)
        CF_FORWARD(plan->device->ops->timer_mark(call->stage_times->timer, 0, call->stream));
    if (call->gbias && !plan->sums_bias[set])
        CF_FORWARD(run_bias(plan, set, call));
    if (set == CONV_FFT_BACKWARD && !plan->shares_gy) {
        cf_call weights = *call;
        weights.after_data = true;
        CF_FORWARD(plan->pass[CF_PASS_DATA].strategy.family->run(plan, CONV_FFT_BACKWARD_DATA, call));
        return plan->pass[CF_PASS_WEIGHTS].strategy.family->run(plan, CONV_FFT_BACKWARD_WEIGHTS, &weights);
    }
    if (set == 0)
        return CONV_FFT_SUCCESS;
    const int pass = set == CONV_FFT_FORWARD        ? CF_PASS_FORWARD
                     : set & CONV_FFT_BACKWARD_DATA ? CF_PASS_DATA
                                                    : CF_PASS_WEIGHTS;
    return plan->pass[pass].strategy.family->run(plan, set, call);
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
