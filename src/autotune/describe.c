/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions and profiles of a plan's passes. */
#include "autotune/autotune.h"
#include "autotune/model.h"
#include "conv/run.h"
#include "core/arith.h"
#include "core/dtype.h"

#include <stdlib.h>
#include <string.h>

/* The costs of a set of passes; what both backward passes need is counted once if they share it. */
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
            cost[i].seconds += own[i].seconds;
        }
    }
    if (set & CONV_FFT_BACKWARD_WEIGHTS)
        cost[CF_STAGE_BIAS] = cf_model_bias(&plan->layer, plan->device);
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
    d.measured_ms = seconds ? 0.0 : -1.0;
    cf_stage_cost cost[CF_STAGE_COUNT];
    model_set(plan, set, cost);
    for (int i = 0; i < CF_STAGE_COUNT; ++i) {
        if (cost[i].seconds <= 0.0)
            continue;
        conv_fft_stage *stage = &d.stages[d.stage_count++];
        strncpy(stage->name, cf_stage_names[i], sizeof stage->name - 1);
        stage->bytes = cost[i].bytes;
        stage->operations = cost[i].operations;
        stage->predicted_ms = 1e3 * cost[i].seconds;
        stage->measured_ms = seconds ? 1e3 * seconds[i] : -1.0;
        d.predicted_ms += stage->predicted_ms;
        if (seconds)
            d.measured_ms += stage->measured_ms;
    }
    *description = d;
}

/* Bytes from the first to the last element. */
static size_t tensor_bytes(const cf_tensor *t, const int64_t extents[5]) {
    int64_t last = cf_max(0, extents[0] - 1) * t->sample_stride + (extents[1] - 1) * t->channel_stride;
    for (int a = 0; a < 3; ++a)
        last += (extents[2 + a] - 1) * t->axis_stride[a];
    return (size_t)(last + 1) * cf_dtype_bytes(t->dtype);
}

/* Random values of magnitude 0.5 to 1 and either sign: never zeros, whose products would cost less power and time. */
static void make_random(conv_fft_dtype dtype, void *data, size_t bytes) {
    uint64_t state = 1;
    for (size_t at = 0; at + cf_dtype_bytes(dtype) <= bytes; at += cf_dtype_bytes(dtype)) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint64_t bits = state >> 11;
        const uint64_t wide = (bits << 11 & 0x800fffffffffffffu) | 0x3fe0000000000000u;
        const uint32_t single = ((uint32_t)bits & 0x807fffffu) | 0x3f000000u;
        const uint16_t half = (uint16_t)(((uint32_t)bits & 0x83ffu) | 0x3800u),
                       brain = (uint16_t)(((uint32_t)bits & 0x807fu) | 0x3f00u);
        char *to = (char *)data + at;
        switch (dtype) {
        case CONV_FFT_FP64:
            memcpy(to, &wide, sizeof wide);
            break;
        case CONV_FFT_FP16:
            memcpy(to, &half, sizeof half);
            break;
        case CONV_FFT_BF16:
            memcpy(to, &brain, sizeof brain);
            break;
        default:
            memcpy(to, &single, sizeof single);
            break;
        }
    }
}

enum {
    BLOCK = 1 << 24 /* bytes of random values, which repeat */
};

static conv_fft_status fill_random(cf_device *device, conv_fft_dtype dtype, void *memory, size_t bytes, char *block) {
    const size_t piece = bytes < BLOCK ? bytes : BLOCK;
    make_random(dtype, block, piece);
    for (size_t done = 0; done < bytes; done += piece)
        CF_FORWARD(
            device->ops->write(device, (char *)memory + done, block, bytes - done < piece ? bytes - done : piece));
    return CONV_FFT_SUCCESS;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The tensors of a profile, in one allocation. */
typedef struct arena {
    char *memory;
    size_t bytes; /* stays at SIZE_MAX / 16, more than there can be */
} arena;

static void *take(arena *a, size_t bytes) {
    char *at = a->memory ? a->memory + a->bytes : NULL;
    a->bytes = bytes < SIZE_MAX / 16 - a->bytes ? a->bytes + cf_align(bytes) : SIZE_MAX / 16;
    return at;
}

/* Lay the tensors of the call out; with memory, fill the inputs too. */
static conv_fft_status place_tensors(const conv_fft_plan *plan, int set, arena *a, char *block, cf_call *call) {
    const cf_layer *l = &plan->layer;
    int64_t ex[5], ey[5], ew[5];
    cf_layer_extents(l, ex, ey, ew);
    const size_t x = tensor_bytes(&l->x, ex), y = tensor_bytes(&l->y, ey), w = tensor_bytes(&l->w, ew);
    const size_t gw = tensor_bytes(&l->gw, ew);
    const size_t bias = (size_t)ey[1] * cf_dtype_bytes(l->x.dtype);
    void *px = take(a, x), *pw = take(a, w), *py = take(a, y), *pbias = take(a, bias);
    void *gx = take(a, x), *pgw = take(a, gw), *gbias = take(a, (size_t)ey[1] * cf_dtype_bytes(l->gw.dtype));
    call->workspace = take(a, plan->workspace[set].bytes);
    if (!a->memory)
        return CONV_FFT_SUCCESS;
    CF_FORWARD(fill_random(plan->device, l->x.dtype, px, x, block));
    CF_FORWARD(fill_random(plan->device, l->w.dtype, pw, w, block));
    CF_FORWARD(fill_random(plan->device, l->y.dtype, py, y, block));
    CF_FORWARD(fill_random(plan->device, l->x.dtype, pbias, bias, block));
    call->x = px;
    call->w = pw;
    call->bias = pbias;
    call->y = py;
    call->gy = py;
    if (set & CONV_FFT_BACKWARD_DATA)
        call->gx = gx;
    if (set & CONV_FFT_BACKWARD_WEIGHTS)
        call->gw = pgw, call->gbias = gbias;
    return CONV_FFT_SUCCESS;
}

/* One run; seconds per stage, `stride` of them apart. */
static conv_fft_status measure(const conv_fft_plan *plan, int set, const cf_call *call, double *seconds, int stride) {
    cf_laps *laps = call->laps;
    laps->count = 0;
    CF_FORWARD(cf_run(plan, set, call));
    CF_FORWARD(laps->status);
    for (int i = 0; i < CF_STAGE_COUNT; ++i)
        seconds[i * stride] = 0;
    for (int i = 0; i < laps->count; ++i) {
        double lap;
        CF_FORWARD(plan->device->ops->timer_seconds(laps->timer, i + 1, &lap));
        seconds[(int)laps->stage[i] * stride] += lap;
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_profile(const conv_fft_plan *plan, int set, int repeats, conv_fft_description *description) {
    const cf_stage_ops *ops = plan->device->ops;
    cf_laps laps = {.timer = NULL};
    cf_call call = {.laps = &laps};
    arena size = {0};
    place_tensors(plan, set, &size, NULL, &call);
    double *times = malloc((size_t)repeats * CF_STAGE_COUNT * sizeof *times);
    char *block = malloc(BLOCK);
    void *memory = NULL;
    conv_fft_status status = times && block ? CONV_FFT_SUCCESS : cf_fail_memory(BLOCK, "the values of a profile");
    if (status == CONV_FFT_SUCCESS)
        status = ops->allocate(plan->device, size.bytes, &memory);
    if (status == CONV_FFT_SUCCESS)
        status = ops->timer_create(plan->device, &laps.timer);
    arena all = {memory, 0};
    if (status == CONV_FFT_SUCCESS)
        status = place_tensors(plan, set, &all, block, &call);
    for (int run = -1; status == CONV_FFT_SUCCESS && run < repeats; ++run) /* the first one warms up */
        status = measure(plan, set, &call, times + cf_max(run, 0), repeats);
    if (status == CONV_FFT_SUCCESS) {
        double median[CF_STAGE_COUNT];
        for (int i = 0; i < CF_STAGE_COUNT; ++i) {
            qsort(times + i * repeats, (size_t)repeats, sizeof *times, compare_doubles);
            median[i] = times[i * repeats + repeats / 2];
        }
        cf_describe(plan, set, median, description);
    }
    free(laps.stage);
    free(block);
    free(times);
    ops->timer_destroy(laps.timer);
    ops->release(plan->device, memory);
    return status;
}
