/* SPDX-License-Identifier: Apache-2.0 */
#include "api/log_call.h"

#include "conv/problem/parse.h"
#include "core/log.h"
#include "core/text.h"
#include "core/words.h"

#include <stdio.h>

/* "backward data", with what differs from the plain call of these passes. */
static void add_what(const cf_call *call, int set, cf_call_run run, cf_text *text) {
    if (run != cf_run_checked)
        cf_text_add(text, "transform w");
    else
        cf_text_add(text, "%s", set ? cf_pass_text(set) : "sum gbias");
    if (run == cf_run_checked && (call->x_spectrum || call->w_spectrum))
        cf_text_add(text, ", kept spectra %s%s", call->x_spectrum ? "x" : "", call->w_spectrum ? "w" : "");
    if (call->flags)
        cf_text_add(text, ", accumulating");
}

/* The strategies of the set, joined by "; ". */
static void add_strategies(const conv_fft_plan *plan, int set, cf_text *text) {
    for (int pass = 0, count = 0; pass < CF_PASS_COUNT; ++pass) {
        char line[256];
        if (!(set & 1 << pass))
            continue;
        cf_strategy_format(&plan->pass[pass].strategy, plan->layer.problem.rank, line, sizeof line);
        cf_text_add(text, "%s%s", count++ ? "; " : "", line);
    }
}

static const char *source(const conv_fft_plan *plan, int set) {
    if (plan->given & set)
        return "given";
    return plan->tuned & set ? "record" : "model";
}

conv_fft_status cf_run_and_log(const conv_fft_plan *plan, int set, const cf_call *call, cf_call_run run) {
    const cf_device_ops *const ops = plan->device->ops;
    cf_timer *timer = NULL;
    double seconds = -1.0;
    const bool timed = (!ops->may_wait || ops->may_wait(plan->device, call->stream)) &&
                       ops->timer_create(plan->device, &timer) == CONV_FFT_SUCCESS &&
                       ops->timer_mark(timer, 0, call->stream) == CONV_FFT_SUCCESS;
    const conv_fft_status status = run(plan, set, call);
    if (timed && status == CONV_FFT_SUCCESS && ops->timer_mark(timer, 1, call->stream) == CONV_FFT_SUCCESS &&
        ops->timer_seconds(timer, 1, &seconds) != CONV_FFT_SUCCESS)
        seconds = -1.0;
    ops->timer_destroy(timer);
    char line[2048], problem[1024] = "";
    cf_text text = {line, sizeof line, 0};
    add_what(call, set, run, &text);
    cf_problem_format(&plan->layer, problem, sizeof problem);
    cf_text_add(&text, " | %s | ", problem);
    add_strategies(plan, set, &text);
    if (status != CONV_FFT_SUCCESS)
        cf_text_add(&text, " | %s", conv_fft_status_string(status));
    else if (seconds >= 0.0)
        cf_text_add(&text, " | %.4f ms", 1e3 * seconds);
    else
        cf_text_add(&text, " | -");
    cf_log(CONV_FFT_LOG_CALLS, CONV_FFT_LOG_CALLS, "call | %s | %s", line, source(plan, set));
    return status;
}
