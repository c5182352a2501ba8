/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over long signals: its kernels, its memory, its launches. */
#include "conv/long1d/long1d.h"

#include "conv/gpu/slices.h"
#include "conv/long1d/call.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/build_list.h"
#include "cuda/jit/launch.h"

#include <stdlib.h>

struct cf_long1d {
    cf_gpu *gpu;
    cf_long1d_config config;
    cf_kernel *kernel[CF_LONG1D_STAGES], *add; /* add: NULL unless cf_long1d_adds() */
};

conv_fft_status cf_long1d_create(cf_gpu *gpu, const cf_layer *layer, int pass, const cf_strategy *s, cf_long1d **made) {
    cf_long1d *l = calloc(1, sizeof *l);
    if (!l)
        return cf_fail_memory(sizeof *l, "a pass over long signals");
    *made = l;
    l->gpu = gpu;
    return cf_long1d_configure(layer, pass, s, &gpu->properties, &l->config);
}

conv_fft_status cf_long1d_list(cf_long1d *l, cf_build_list *list) {
    for (int i = 0; i < CF_LONG1D_STAGES; ++i) {
        cf_source source;
        if (!l->config.stage[i])
            continue;
        CF_FORWARD(cf_long1d_source(&l->config, (cf_long1d_stage)i, &source));
        CF_FORWARD(cf_build_list_add(list, &source, &l->kernel[i], NULL));
    }
    if (cf_long1d_adds(&l->config)) {
        cf_source source;
        CF_FORWARD(cf_slices_source(l->config.slices, CONV_FFT_FP32, &source));
        CF_FORWARD(cf_build_list_add(list, &source, &l->add, NULL));
    }
    return CONV_FFT_SUCCESS;
}

void cf_long1d_destroy(cf_long1d *l) {
    for (int i = 0; l && i < CF_LONG1D_STAGES; ++i)
        cf_kernel_destroy(l->kernel[i]);
    if (l)
        cf_kernel_destroy(l->add);
    free(l);
}

/* ---------------------------------------------------------------------------------------------------------- running */

static const cf_parameter parameters_of_call[] = {
    {sizeof(cf_long1d_call), CF_ADDRESS(cf_long1d_call, x.memory) | CF_ADDRESS(cf_long1d_call, y.memory) |
                                 CF_ADDRESS(cf_long1d_call, w.memory) | CF_ADDRESS(cf_long1d_call, gx.memory) |
                                 CF_ADDRESS(cf_long1d_call, bias) | CF_ADDRESS(cf_long1d_call, spectra) |
                                 CF_ADDRESS(cf_long1d_call, sums) | CF_ADDRESS(cf_long1d_call, parts)},
    {0, 0}};

/* Bytes of this many spectra for each group of a chunk; bytes of the parts of all lines of x or y. */
static size_t bytes_of(const cf_long1d_config *c, int64_t lines) {
    return cf_align((size_t)(c->together * cf_long1d_parts(c) * cf_long1d_points(c) * 8 * lines));
}
static size_t spectra_bytes(const cf_long1d_config *c) { return c->stage[CF_LONG1D_SPECTRA] ? bytes_of(c, 1) : 0; }
static size_t sums_bytes(const cf_long1d_config *c) {
    return c->stage[CF_LONG1D_GRADIENT] ? bytes_of(c, c->slices) : 0;
}
static size_t parts_bytes(const cf_long1d_config *c) { return c->stage[CF_LONG1D_CUT_X] ? bytes_of(c, c->rows) : 0; }

size_t cf_long1d_bytes(const cf_long1d *l) {
    const cf_long1d_config *c = &l->config;
    return spectra_bytes(c) + sums_bytes(c) + parts_bytes(c) * (c->stage[CF_LONG1D_GRADIENT] ? 2 : 1);
}

/* Launch one kernel for `groups` groups. The parts of x come first in memory, those of gy after them. */
static conv_fft_status launch(const cf_long1d *l, cf_long1d_stage stage, const cf_long1d_call *call, int64_t groups,
                              struct CUstream_st *stream) {
    const cf_long1d_config *config = &l->config;
    cf_launch shape = cf_long1d_launch(config, stage, groups);
    shape.parameters = parameters_of_call;
    const int64_t cut = cf_long1d_parts(config), points = cf_long1d_points(config);
    const bool lines = stage >= CF_LONG1D_SPECTRA && stage <= CF_LONG1D_GRADIENT;
    char *const parts = (void *)call->parts, *const of_gy = parts + parts_bytes(config);
    cf_long1d_call c = *call;
    if (stage == CF_LONG1D_CUT_W)
        c.parts = c.spectra;
    if (stage == CF_LONG1D_JOIN_W)
        c.parts = c.sums;
    if (stage == CF_LONG1D_CUT_Y || stage == CF_LONG1D_JOIN_GX)
        c.parts = (void *)of_gy;
    c.groups = lines ? groups * cut : groups;
    if (stage == CF_LONG1D_CUT_W || stage == CF_LONG1D_JOIN_W)
        c.rows = 1;
    if (lines && cut > 1) {
        c.x = (cf_long1d_tensor){parts, points, c.rows * points};
        c.y = c.gx = (cf_long1d_tensor){stage == CF_LONG1D_LINES ? parts : of_gy, points, c.rows * points};
        c.w = (cf_long1d_tensor){stage == CF_LONG1D_SPECTRA ? c.spectra : c.sums, 0, points};
        c.bias = NULL;
        c.accumulate = 0;
    }
    void *parameters[] = {&c};
    return cf_kernel_launch(l->kernel[stage], &shape, parameters, stream);
}

/* Launch the stages of a list that the pass has. */
static conv_fft_status launch_all(const cf_long1d *l, const cf_long1d_stage *stages, int count,
                                  const cf_long1d_call *call, int64_t groups, struct CUstream_st *stream) {
    for (int i = 0; i < count; ++i)
        if (l->config.stage[stages[i]])
            CF_FORWARD(launch(l, stages[i], call, groups, stream));
    return CONV_FFT_SUCCESS;
}

static conv_fft_status run_groups(const conv_fft_plan *plan, int pass, const cf_long1d *l, const cf_call *c,
                                  const cf_long1d_call *call, const cf_long1d_call *last, int64_t groups) {
    static const cf_long1d_stage weights[] = {CF_LONG1D_CUT_W, CF_LONG1D_SPECTRA},
                                 middle[] = {CF_LONG1D_CUT_X,     CF_LONG1D_CUT_Y,  CF_LONG1D_LINES,  CF_LONG1D_SUMS,
                                             CF_LONG1D_BOTH_SUMS, CF_LONG1D_JOIN_Y, CF_LONG1D_JOIN_GX},
                                 gradient[] = {CF_LONG1D_GRADIENT, CF_LONG1D_JOIN_W};
    static const cf_stage_kind kinds[] = {[CF_PASS_FORWARD] = CF_STAGE_CONVOLVE_Y,
                                          [CF_PASS_DATA] = CF_STAGE_CONVOLVE_GX,
                                          [CF_PASS_WEIGHTS] = CF_STAGE_CONVOLVE_GW,
                                          [CF_LONG1D_BOTH] = CF_STAGE_CONVOLVE_GW};
    CF_FORWARD(launch_all(l, weights, 2, call, groups, c->stream));
    if (l->config.stage[CF_LONG1D_SPECTRA])
        cf_stage_done(plan, c, CF_STAGE_LOAD_W);
    CF_FORWARD(launch_all(l, middle, 7, call, groups, c->stream));
    cf_stage_done(plan, c, kinds[pass]);
    if (!l->config.stage[CF_LONG1D_GRADIENT])
        return CONV_FFT_SUCCESS;
    if (l->add) {
        const int64_t count = groups * cf_long1d_parts(&l->config) * cf_long1d_points(&l->config),
                      slices = l->config.slices;
        CF_FORWARD(cf_slices_add(l->add, &(cf_slice_sums){call->sums, call->sums, count, slices, false}, slices,
                                 CONV_FFT_FP32, c->stream));
    }
    CF_FORWARD(launch_all(l, gradient, 2, last, groups, c->stream));
    cf_stage_done(plan, c, CF_STAGE_STORE_GW);
    return CONV_FFT_SUCCESS;
}

static cf_long1d_tensor tensor_of(const cf_tensor *t, const void *memory, int64_t group) {
    const int64_t bytes = (int64_t)cf_dtype_bytes(t->dtype);
    return (cf_long1d_tensor){memory ? (char *)memory + group * t->group_stride * bytes : NULL, t->sample_stride,
                              t->group_stride};
}

/* The taps, from the first one that meets the signal. */
static cf_long1d_tensor taps_of(const cf_layer *layer, const cf_tensor *t, const void *memory, int64_t group) {
    cf_long1d_tensor taps = tensor_of(t, memory, group);
    if (memory)
        taps.memory =
            (char *)taps.memory + layer->axis[2].first_tap * t->axis_stride[2] * (int64_t)cf_dtype_bytes(t->dtype);
    return taps;
}

conv_fft_status cf_long1d_run(const conv_fft_plan *plan, int pass, const cf_long1d *l, const cf_call *c, char *memory) {
    const cf_layer *layer = &plan->layer;
    const cf_long1d_config *config = &l->config;
    const bool forward = pass == CF_PASS_FORWARD, data = pass == CF_PASS_DATA;
    for (int64_t g = 0; g < config->groups; g += config->together) {
        const int64_t groups = cf_min(config->together, config->groups - g);
        cf_long1d_call call = {.x = data ? tensor_of(&layer->y, c->gy, g) : tensor_of(&layer->x, c->x, g),
                               .y = data      ? tensor_of(&layer->x, c->gx, g)
                                    : forward ? tensor_of(&layer->y, c->y, g)
                                              : tensor_of(&layer->y, c->gy, g),
                               .gx = tensor_of(&layer->x, c->gx, g),
                               .w = taps_of(layer, &layer->w, c->w, g),
                               .spectra = (void *)memory,
                               .sums = (void *)(memory + spectra_bytes(config)),
                               .parts = (void *)(memory + spectra_bytes(config) + sums_bytes(config)),
                               .rows = config->rows,
                               .slices = config->slices,
                               .accumulate = !forward && (c->flags & CONV_FFT_ACCUMULATE_GX)};
        if (forward && c->bias)
            call.bias = (const char *)c->bias + g * (int64_t)cf_dtype_bytes(cf_tensor_bias_dtype(&layer->y));
        cf_long1d_call last = call;
        last.w = taps_of(layer, &layer->gw, c->gw, g);
        last.slices = cf_long1d_adds(config) ? 1 : config->slices;
        last.accumulate = (c->flags & CONV_FFT_ACCUMULATE_GW) != 0;
        CF_FORWARD(run_groups(plan, pass, l, c, &call, &last, groups));
    }
    return CONV_FFT_SUCCESS;
}
