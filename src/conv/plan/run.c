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

/* Let the families run. */
static conv_fft_status run_stages(const conv_fft_plan *plan, int set, const cf_call *call) {
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

/* The bytes that a call may touch from each of its arguments on. */
static void list_arguments(const conv_fft_plan *plan, int set, const cf_call *call,
                           cf_memory_argument arguments[CF_ARGUMENT_COUNT]) {
#define CF_CALL_ARGUMENT(NAME, name) \
    arguments[CF_ARGUMENT_##NAME] = (cf_memory_argument){#name, call->name, plan->argument_bytes[CF_ARGUMENT_##NAME]};
    CF_ARGUMENT_LIST(CF_CALL_ARGUMENT)
#undef CF_CALL_ARGUMENT
    if (!(set & (CONV_FFT_FORWARD | CONV_FFT_BACKWARD_WEIGHTS)))
        arguments[CF_ARGUMENT_X].bytes = 0;
    if (!(set & (CONV_FFT_FORWARD | CONV_FFT_BACKWARD_DATA)))
        arguments[CF_ARGUMENT_W].bytes = 0;
    if (set && (plan->layer.batch > 0 || call->workspace))
        arguments[CF_ARGUMENT_WORKSPACE].bytes = plan->workspace[set].bytes;
}

/* The recording that does what the call asks for, or NULL. arguments: its addresses. */
static const cf_recording *recording_of(const conv_fft_plan *plan, int set, const cf_call *call,
                                        const void *arguments[CF_ARGUMENT_COUNT]) {
    const cf_recording *const recording = plan->recording[set][call->gbias != NULL];
    if (!recording || call->flags || call->x_spectrum || call->w_spectrum || call->stage_times)
        return NULL;
    uintptr_t bits = 0;
#define CF_CALL_ADDRESS(NAME, name)             \
    arguments[CF_ARGUMENT_##NAME] = call->name; \
    bits |= CF_ARGUMENT_##NAME == CF_ARGUMENT_WORKSPACE ? 0 : (uintptr_t)call->name;
    CF_ARGUMENT_LIST(CF_CALL_ADDRESS)
#undef CF_CALL_ADDRESS
    arguments[CF_ARGUMENT_WORKSPACE] = (const void *)cf_align((size_t)call->workspace);
    return bits % CF_RECORDED_ALIGNMENT == 0 ? recording : NULL;
}

/* A GPU has kernels for vectors of 16 bytes only, unless the plan has others, too. */
static conv_fft_status check_alignment(const conv_fft_plan *plan, const cf_call *call) {
    const struct {
        const char *name;
        const void *address;
    } tensors[] = {{"x", call->x}, {"w", call->w},   {"gy", call->gy},
                   {"y", call->y}, {"gx", call->gx}, {"gw", call->gw}};
    if (!plan->device->is_gpu || plan->any_alignment)
        return CONV_FFT_SUCCESS;
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; ++i)
        CF_REQUIRE((uintptr_t)tensors[i].address % CF_RECORDED_ALIGNMENT == 0,
                   "%s is %p; it must be a multiple of %d bytes, or options.any_alignment of the plan must be 1",
                   tensors[i].name, tensors[i].address, CF_RECORDED_ALIGNMENT);
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_run(const conv_fft_plan *plan, int set, const cf_call *call) {
    const void *arguments[CF_ARGUMENT_COUNT];
    const cf_recording *const recording = recording_of(plan, set, call, arguments);
    if (recording)
        return plan->device->ops->record_run(plan->device, recording, NULL, arguments, call->stream);
    CF_FORWARD(check_alignment(plan, call));
    return run_stages(plan, set, call);
}

static conv_fft_status check_arguments(const conv_fft_plan *plan, const cf_memory_argument arguments[CF_ARGUMENT_COUNT],
                                       struct CUstream_st *stream) {
    if (!plan->device->ops->check_arguments || plan->trusted)
        return CONV_FFT_SUCCESS;
    return plan->device->ops->check_arguments(plan->device, arguments, CF_ARGUMENT_COUNT, stream);
}

/* Two ranges of bytes overlap. A tensor with gaps may have another in them, so of these only the first bytes count. */
static bool overlap(const cf_memory_argument *a, const cf_memory_argument *b, bool gaps) {
    const uintptr_t from_a = (uintptr_t)a->pointer, from_b = (uintptr_t)b->pointer;
    return gaps ? from_a == from_b : from_a < from_b + b->bytes && from_b < from_a + a->bytes;
}

static conv_fft_status check_overlap(const conv_fft_plan *plan, const cf_memory_argument arguments[CF_ARGUMENT_COUNT]) {
    /* The workspace overlaps nothing, and neither do the others of these. A kept spectrum is read or written. */
    static const int written[] = {CF_ARGUMENT_Y,        CF_ARGUMENT_GX,         CF_ARGUMENT_GW,
                                  CF_ARGUMENT_GBIAS,    CF_ARGUMENT_X_SPECTRUM, CF_ARGUMENT_W_SPECTRUM,
                                  CF_ARGUMENT_WORKSPACE};
    for (size_t i = 0; i < sizeof written / sizeof written[0]; ++i) {
        const cf_memory_argument *a = &arguments[written[i]];
        if (!a->pointer || a->bytes == 0)
            continue;
        for (int k = 0; k < CF_ARGUMENT_COUNT; ++k) {
            const cf_memory_argument *b = &arguments[k];
            if (b == a || !b->pointer || b->bytes == 0 || !overlap(a, b, plan->gaps & (1u << written[i] | 1u << k)))
                continue;
            return cf_fail(CONV_FFT_INVALID_ARGUMENT,
                           "%s (%zu bytes from %p) overlaps %s (%zu bytes from %p); outputs, kept spectra and the "
                           "workspace must not overlap any other argument",
                           a->name, a->bytes, a->pointer, b->name, b->bytes, b->pointer);
        }
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_run_checked(const conv_fft_plan *plan, int set, const cf_call *call) {
    cf_memory_argument checks[CF_ARGUMENT_COUNT];
    list_arguments(plan, set, call, checks);
    CF_FORWARD(check_overlap(plan, checks));
    const void *arguments[CF_ARGUMENT_COUNT];
    const cf_recording *const recording = recording_of(plan, set, call, arguments);
    if (recording) /* one operation of the device, so that it is entered once */
        return plan->device->ops->record_run(plan->device, recording, plan->trusted ? NULL : checks, arguments,
                                             call->stream);
    CF_FORWARD(check_arguments(plan, checks, call->stream));
    CF_FORWARD(check_alignment(plan, call));
    return run_stages(plan, set, call);
}

static void record_set(conv_fft_plan *plan, int set, bool with_gbias) {
    cf_call call = {.stream = NULL};
#define CF_RECORDED_ARGUMENT(NAME, name) call.name = cf_recorded_address(CF_ARGUMENT_##NAME);
    CF_ARGUMENT_LIST(CF_RECORDED_ARGUMENT)
#undef CF_RECORDED_ARGUMENT
    call.x_spectrum = call.w_spectrum = NULL;
    if (!with_gbias)
        call.gbias = NULL;
    plan->device->ops->record_begin(plan->device);
    const conv_fft_status status = run_stages(plan, set, &call);
    cf_recording *recording = plan->device->ops->record_end(plan->device);
    if (status != CONV_FFT_SUCCESS) { /* the call itself will report it */
        plan->device->ops->record_destroy(recording);
        recording = NULL;
    }
    plan->recording[set][with_gbias] = recording;
}

void cf_run_record(conv_fft_plan *plan) {
    if (!plan->device->ops->record_begin)
        return;
    for (int set = 1; set <= CONV_FFT_BACKWARD; ++set) {
        const bool is_call = set == CONV_FFT_FORWARD || !(set & CONV_FFT_FORWARD);
        if (!is_call || (set & plan->passes) != set)
            continue;
        record_set(plan, set, false);
        if (set & CONV_FFT_BACKWARD)
            record_set(plan, set, true);
    }
}

conv_fft_status cf_run_transform_weights(const conv_fft_plan *plan, int set, const cf_call *call) {
    cf_memory_argument checks[CF_ARGUMENT_COUNT];
    list_arguments(plan, set, call, checks);
    CF_FORWARD(check_overlap(plan, checks));
    CF_FORWARD(check_arguments(plan, checks, call->stream));
    const cf_pass_plan *pass = cf_plan_reader(plan, CF_W);
    const cf_spectrum *s = &pass->spectrum[CF_W];
    cf_block block = {
        .data = call->w_spectrum, .groups = s->groups, .rows = s->rows, .bin_stride = s->rows * s->columns};
    block.group_stride = s->bins * block.bin_stride;
    block.scales = cf_spectrum_scales(s, call->w_spectrum, s->groups, s->rows);
    block.scale_stride = s->rows * cf_spectrum_row_scales(s);
    char *scratch = (char *)cf_align((size_t)call->workspace) + plan->workspace[set].scratch;
    return plan->device->ops->forward(pass->transform[CF_W], call->w, (cf_origin){0, 0}, block, scratch, call->stream);
}
