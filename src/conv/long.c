/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over long signals: its kernels, its memory, its launches. */
#include "conv/long.h"

#include "core/arith.h"
#include "core/dtype.h"

#include <stdlib.h>

struct cf_long {
    cf_gpu *gpu;
    cf_long_config config;
    cf_kernel *kernel[CF_LONG_STAGES];
};

conv_fft_status cf_long_create(cf_gpu *gpu, const cf_layer *layer, int pass, const cf_strategy *s, cf_long **made) {
    cf_long *l = calloc(1, sizeof *l);
    if (!l)
        return cf_fail_memory(sizeof *l, "a pass over long signals");
    *made = l;
    l->gpu = gpu;
    return cf_long_configure(layer, pass, s, &gpu->facts, &l->config);
}

conv_fft_status cf_long_build(cf_long *l) {
    cf_source sources[CF_LONG_STAGES] = {{0}};
    cf_kernel *kernels[CF_LONG_STAGES] = {NULL};
    int count = 0;
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int i = 0; i < CF_LONG_STAGES && status == CONV_FFT_SUCCESS; ++i)
        if (l->config.stage[i])
            status = cf_long_source(&l->config, (cf_long_stage)i, &sources[count++]);
    if (status == CONV_FFT_SUCCESS)
        status = cf_kernels_build(l->gpu, sources, count, kernels);
    for (int i = 0; i < count; ++i)
        free((char *)sources[i].text);
    for (int i = 0, next = 0; i < CF_LONG_STAGES; ++i)
        if (l->config.stage[i])
            l->kernel[i] = kernels[next++];
    return status;
}

void cf_long_destroy(cf_long *l) {
    for (int i = 0; l && i < CF_LONG_STAGES; ++i)
        cf_kernel_destroy(l->kernel[i]);
    free(l);
}

/* ------------------------------------------------------------------------------------------------------------- running */

/* LongTensor and LongCall of long.cuh. */
typedef struct long_tensor {
    void *memory;
    int64_t sample_stride, group_stride;
} long_tensor;
typedef struct long_call {
    long_tensor x, y, w;
    const void *bias;
    void *spectra, *pieces;
    int64_t rows, groups, slices;
    int accumulate;
} long_call;

/* Bytes of all lines of x or y of the groups at a time, cut; of their spectra of w. */
static size_t spectra_bytes(const cf_long_config *c) {
    return cf_align((size_t)(c->together * cf_long_pieces(c) * cf_long_points(c) * 8 * c->slices));
}
static size_t pieces_bytes(const cf_long_config *c) {
    if (!c->stage[CF_LONG_CUT_X])
        return 0;
    return cf_align((size_t)(c->together * c->rows * cf_long_pieces(c) * cf_long_points(c) * 8));
}

size_t cf_long_bytes(const cf_long *l) {
    const cf_long_config *c = &l->config;
    return spectra_bytes(c) + pieces_bytes(c) * (c->stage[CF_LONG_SUMS] ? 2 : 1);
}

static long_tensor tensor_of(const cf_tensor *t, const void *memory, int64_t group) {
    const int64_t bytes = (int64_t)cf_dtype_bytes(t->dtype);
    return (long_tensor){(char *)memory + group * t->group_stride * bytes, t->sample_stride, t->group_stride};
}

/* One kernel over `groups` groups. Pieces are in the place of whatever is cut. */
static conv_fft_status launch(const cf_long *l, cf_long_stage stage, const long_call *call, int64_t groups,
                              void *pieces, struct CUstream_st *stream) {
    const cf_launch shape = cf_long_launch(&l->config, stage, groups);
    const int64_t cut = cf_long_pieces(&l->config);
    const bool lines = stage >= CF_LONG_SPECTRA && stage <= CF_LONG_GRADIENT;
    long_call c = *call;
    c.pieces = pieces;
    c.groups = lines ? groups * cut : groups;
    if (stage == CF_LONG_CUT_W || stage == CF_LONG_JOIN_W)
        c.rows = 1;
    if (lines && cut > 1) {
        const int64_t points = cf_long_points(&l->config);
        c.x = (long_tensor){pieces, points, c.rows * points};
        c.y = (long_tensor){stage == CF_LONG_LINES ? pieces : c.y.memory, points, c.rows * points};
        c.w = (long_tensor){c.spectra, 0, points};
        c.bias = NULL;
        c.accumulate = 0;
    }
    void *parameters[] = {&c};
    return cf_kernel_launch(l->kernel[stage], &shape, parameters, stream);
}

static conv_fft_status run_product(const conv_fft_plan *plan, int pass, const cf_long *l, const cf_call *c,
                                   const long_call *call, int64_t groups) {
    const cf_long_config *config = &l->config;
    if (config->stage[CF_LONG_CUT_W])
        CF_FORWARD(launch(l, CF_LONG_CUT_W, call, groups, call->spectra, c->stream));
    CF_FORWARD(launch(l, CF_LONG_SPECTRA, call, groups, call->spectra, c->stream));
    cf_lap(plan, c, CF_STAGE_LOAD_W);
    if (config->stage[CF_LONG_CUT_X])
        CF_FORWARD(launch(l, CF_LONG_CUT_X, call, groups, call->pieces, c->stream));
    CF_FORWARD(launch(l, CF_LONG_LINES, call, groups, call->pieces, c->stream));
    if (config->stage[CF_LONG_JOIN_Y])
        CF_FORWARD(launch(l, CF_LONG_JOIN_Y, call, groups, call->pieces, c->stream));
    cf_lap(plan, c, pass == CF_PASS_DATA ? CF_STAGE_CONVOLVE_GX : CF_STAGE_CONVOLVE_Y);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status run_weights(const conv_fft_plan *plan, const cf_long *l, const cf_call *c, const long_call *call,
                                   int64_t groups) {
    const cf_long_config *config = &l->config;
    long_call sums = *call;
    if (config->stage[CF_LONG_CUT_X]) {
        sums.y.memory = (char *)call->pieces + pieces_bytes(config);
        CF_FORWARD(launch(l, CF_LONG_CUT_X, call, groups, call->pieces, c->stream));
        CF_FORWARD(launch(l, CF_LONG_CUT_Y, call, groups, sums.y.memory, c->stream));
    }
    CF_FORWARD(launch(l, CF_LONG_SUMS, &sums, groups, call->pieces, c->stream));
    cf_lap(plan, c, CF_STAGE_CONVOLVE_GW);
    CF_FORWARD(launch(l, CF_LONG_GRADIENT, call, groups, call->pieces, c->stream));
    if (config->stage[CF_LONG_JOIN_W])
        CF_FORWARD(launch(l, CF_LONG_JOIN_W, call, groups, call->spectra, c->stream));
    cf_lap(plan, c, CF_STAGE_STORE_GW);
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_long_run(const conv_fft_plan *plan, int pass, const cf_long *l, const cf_call *c, char *memory) {
    const cf_layer *layer = &plan->layer;
    const cf_long_config *config = &l->config;
    const bool data = pass == CF_PASS_DATA, weights = pass == CF_PASS_WEIGHTS;
    const cf_tensor *const w = weights ? &layer->gw : &layer->w;
    const unsigned adds = data ? CONV_FFT_ACCUMULATE_GX : weights ? CONV_FFT_ACCUMULATE_GW : 0;
    for (int64_t g = 0; g < config->groups; g += config->together) {
        const int64_t groups = cf_min(config->together, config->groups - g);
        long_call call = {.x = data ? tensor_of(&layer->y, c->gy, g) : tensor_of(&layer->x, c->x, g),
                          .y = data      ? tensor_of(&layer->x, c->gx, g)
                               : weights ? tensor_of(&layer->y, c->gy, g)
                                         : tensor_of(&layer->y, c->y, g),
                          .w = tensor_of(w, weights ? c->gw : c->w, g),
                          .spectra = memory,
                          .pieces = memory + spectra_bytes(config),
                          .rows = config->rows,
                          .slices = config->slices,
                          .accumulate = (c->flags & adds) != 0};
        call.w.memory =
            (char *)call.w.memory + layer->axis[2].first_tap * w->axis_stride[2] * (int64_t)cf_dtype_bytes(w->dtype);
        if (pass == CF_PASS_FORWARD && c->bias)
            call.bias = (const char *)c->bias + g * (int64_t)cf_dtype_bytes(layer->y.dtype);
        CF_FORWARD(weights ? run_weights(plan, l, c, &call, groups) : run_product(plan, pass, l, c, &call, groups));
    }
    return CONV_FFT_SUCCESS;
}
