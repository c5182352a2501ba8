/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions and profiles of a plan's passes. */
#include "autotune/model/cost_model.h"
#include "autotune/search/bench_buffers.h"
#include "autotune/tune.h"
#include "conv/plan/family.h"
#include "core/arith.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The costs of a set of passes. Stages that both gradients share are counted once. */
static void model_set(const conv_fft_plan *plan, int set, cf_stage_cost cost[CF_STAGE_COUNT]) {
    memset(cost, 0, CF_STAGE_COUNT * sizeof *cost);
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if (!(set & 1 << pass))
            continue;
        cf_stage_cost own[CF_STAGE_COUNT];
        cf_model_pass(&plan->layer, plan->device, pass, &plan->pass[pass].strategy, own);
        for (int i = 0; i < CF_STAGE_COUNT; ++i) {
            if (i == CF_STAGE_LOAD_GY && cost[i].seconds > 0.0 && plan->shares_gy)
                continue;
            cost[i].bytes += own[i].bytes;
            cost[i].operations += own[i].operations;
            cost[i].seconds = cost[i].seconds < 0.0 || own[i].seconds < 0.0 ? -1.0 : cost[i].seconds + own[i].seconds;
        }
    }
    if (set == CONV_FFT_BACKWARD && cost[CF_STAGE_CONVOLVE_GW].seconds > 0.0)
        cost[CF_STAGE_CONVOLVE_GW].seconds -= cf_model_shared_transpose(
            &plan->layer, plan->device, &plan->pass[CF_PASS_DATA].strategy, &plan->pass[CF_PASS_WEIGHTS].strategy);
    if (set & CONV_FFT_BACKWARD_WEIGHTS)
        cost[CF_STAGE_BIAS] = cf_model_bias(plan, set);
}

/* Whether one kernel computes both gradients. */
static bool is_one_kernel(const conv_fft_plan *plan, int set) {
    return set == CONV_FFT_BACKWARD && plan->shares_gy &&
           plan->pass[CF_PASS_WEIGHTS].strategy.family->search_space != CF_SEARCH_SPECTRA;
}

/* Add the cost of stage `gone` to stage `left`: one launch computes both, and cf_staged_run() and cf_long1d_run()
 * mark only the later stage. */
static void join(const conv_fft_plan *plan, cf_stage_kind gone, cf_stage_kind left,
                 cf_stage_cost cost[CF_STAGE_COUNT]) {
    cost[left].bytes += cost[gone].bytes;
    cost[left].operations += cost[gone].operations;
    cost[left].seconds += cost[gone].seconds - plan->device->stage_seconds;
    cost[gone] = (cf_stage_cost){0};
}

static void name_stage(const conv_fft_plan *plan, int set, int index, cf_stage_cost cost[CF_STAGE_COUNT],
                       conv_fft_stage *stage) {
    const bool w = cost[CF_STAGE_LOAD_W].seconds == 0.0, x = cost[CF_STAGE_LOAD_X].seconds == 0.0;
    strncpy(stage->name, cf_stage_names[index], sizeof stage->name - 1);
    if (index == CF_STAGE_LOAD_X && set == CONV_FFT_FORWARD && plan->pass[CF_PASS_FORWARD].pair)
        strncpy(stage->name, "transform w, x", sizeof stage->name - 1);
    if (index == CF_STAGE_CONVOLVE_GW && is_one_kernel(plan, set))
        strncpy(stage->name, "convolve gx, gw", sizeof stage->name - 1);
    if (index == CF_STAGE_LOAD_GY && (w || x))
        snprintf(stage->name, sizeof stage->name, "transform %s%sgy",
                 w && plan->pass[CF_PASS_DATA].pair && (set & CONV_FFT_BACKWARD_DATA) ? "w, " : "",
                 x && plan->pass[CF_PASS_WEIGHTS].pair && (set & CONV_FFT_BACKWARD_WEIGHTS) ? "x, " : "");
}

static void join_pairs(const conv_fft_plan *plan, int set, cf_stage_cost cost[CF_STAGE_COUNT]) {
    if ((set & CONV_FFT_FORWARD) && plan->pass[CF_PASS_FORWARD].pair)
        join(plan, CF_STAGE_LOAD_W, CF_STAGE_LOAD_X, cost);
    if ((set & CONV_FFT_BACKWARD_DATA) && plan->pass[CF_PASS_DATA].pair)
        join(plan, CF_STAGE_LOAD_W, CF_STAGE_LOAD_GY, cost);
    if ((set & CONV_FFT_BACKWARD_WEIGHTS) && plan->pass[CF_PASS_WEIGHTS].pair &&
        !((set & CONV_FFT_BACKWARD_DATA) && plan->shares_gy))
        join(plan, CF_STAGE_LOAD_X, CF_STAGE_LOAD_GY, cost);
    if (is_one_kernel(plan, set)) {
        join(plan, CF_STAGE_CONVOLVE_GX, CF_STAGE_CONVOLVE_GW, cost);
        if (plan->pass[CF_PASS_WEIGHTS].strategy.family->search_space == CF_SEARCH_SINGLE) {
            /* model_set() has subtracted the launch already, because saved_seconds() of such a family counts it */
            cost[CF_STAGE_CONVOLVE_GW].seconds += plan->device->stage_seconds;
            cost[CF_STAGE_CONVOLVE_GW].bytes -= cf_cost_gy_bytes(&plan->layer);
        }
    }
}

void cf_describe(const conv_fft_plan *plan, int set, const double *seconds, conv_fft_description *description) {
    conv_fft_description d;
    memset(&d, 0, sizeof d);
    const int pass = set & CONV_FFT_BACKWARD_WEIGHTS ? CF_PASS_WEIGHTS
                     : set & CONV_FFT_BACKWARD_DATA  ? CF_PASS_DATA
                                                     : CF_PASS_FORWARD;
    const cf_strategy *strategy = &plan->pass[pass].strategy;
    const int rank = plan->layer.problem.rank;
    cf_strategy_format(strategy, rank, d.strategy, sizeof d.strategy);
    for (int a = 0; a < rank; ++a) {
        d.basis[a] = strategy->basis[3 - rank + a];
        d.tiles[a] = strategy->tiles[3 - rank + a];
    }
    d.shares_gy = set == CONV_FFT_BACKWARD && plan->shares_gy;
    d.workspace_bytes = plan->workspace[set].bytes;
    d.measured_ms = seconds ? 0.0 : plan->tuned_seconds[set] > 0.0 ? 1e3 * plan->tuned_seconds[set] : -1.0;
    cf_stage_cost cost[CF_STAGE_COUNT];
    model_set(plan, set, cost);
    join_pairs(plan, set, cost);
    for (int i = 0; i < CF_STAGE_COUNT; ++i) {
        if (cost[i].seconds == 0.0)
            continue;
        conv_fft_stage *stage = &d.stages[d.stage_count++];
        name_stage(plan, set, i, cost, stage);
        stage->bytes = cost[i].bytes;
        stage->operations = cost[i].operations;
        stage->predicted_ms = cost[i].seconds < 0.0 ? -1.0 : 1e3 * cost[i].seconds;
        stage->measured_ms = seconds ? 1e3 * seconds[i] : -1.0;
        d.predicted_ms = d.predicted_ms < 0.0 || cost[i].seconds < 0.0 ? -1.0 : d.predicted_ms + stage->predicted_ms;
        if (seconds)
            d.measured_ms += stage->measured_ms;
    }
    *description = d;
}

/* Run once. seconds[stage * stride] is set for every stage. */
static conv_fft_status measure(const conv_fft_plan *plan, int set, const cf_call *call, double *seconds, int stride) {
    cf_stage_times *stage_times = call->stage_times;
    stage_times->count = 0;
    CF_FORWARD(cf_run(plan, set, call));
    CF_FORWARD(stage_times->status);
    for (int i = 0; i < CF_STAGE_COUNT; ++i)
        seconds[i * stride] = 0;
    for (int i = 0; i < stage_times->count; ++i) {
        double stage_time;
        CF_FORWARD(plan->device->ops->timer_seconds(stage_times->timer, i + 1, &stage_time));
        seconds[(int)stage_times->stage[i] * stride] += stage_time;
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_profile(const conv_fft_plan *plan, int set, int repeats, conv_fft_description *description) {
    const cf_bench_buffers_sizes sizes = {.workspace = plan->workspace[set].bytes};
    cf_stage_times stage_times = {.timer = NULL};
    cf_bench_buffers buffers = {0};
    double *times = malloc((size_t)repeats * CF_STAGE_COUNT * sizeof *times);
    conv_fft_status status =
        times ? CONV_FFT_SUCCESS : cf_fail_memory((size_t)repeats * CF_STAGE_COUNT * sizeof *times, "times of stages");
    if (status == CONV_FFT_SUCCESS)
        status = cf_bench_buffers_create(plan->device, NULL, &plan->layer, set, &sizes, &buffers);
    stage_times.timer = buffers.timer;
    for (int run = -1; status == CONV_FFT_SUCCESS && run < repeats; ++run) { /* run -1 warms up */
        cf_call call = cf_bench_buffers_call(&buffers, set);
        call.bias = set & CONV_FFT_FORWARD ? buffers.bias.data : NULL;
        call.gbias = set & CONV_FFT_BACKWARD_WEIGHTS ? buffers.gbias.data : NULL;
        call.stage_times = &stage_times;
        status = measure(plan, set, &call, times + cf_max(run, 0), repeats);
    }
    if (status == CONV_FFT_SUCCESS) {
        double median[CF_STAGE_COUNT];
        for (int i = 0; i < CF_STAGE_COUNT; ++i)
            median[i] = cf_median(times + i * repeats, repeats);
        cf_describe(plan, set, median, description);
    }
    free(stage_times.stage);
    free(times);
    cf_bench_buffers_destroy(&buffers);
    return status;
}
