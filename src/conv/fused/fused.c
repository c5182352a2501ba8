/* SPDX-License-Identifier: Apache-2.0 */
/* Family `fused`: what a plan and a call need of it. */
#include "conv/fused/fused.h"

#include "conv/fused/kernel_text.h"
#include "conv/gpu/device.h"
#include "conv/long1d/long1d.h"
#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/common/kernel_text.h"
#include "fbfft/plan/gpu_transform.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_KERNELS = 5, /* cf_fused_kernels() */
    FEW_SLICES = 8
};

/* How slices are added. From an H200: many of them (ConvNeXt's 56x56 has 11, channels last 54) in batches, by a kernel that lets the next one begin
 * beside it; in RepLKNet's 13x13, which has eight, that cost a fifth. */
static bool has_many_slices(const cf_fused_config *c) { return c->slices > FEW_SLICES; }
static int adding_threads(const cf_fused_config *c) { return has_many_slices(c) ? 128 : 256; }

/* plan->pass[].state */
typedef struct fused_state {
    cf_gpu *gpu;
    cf_long *lines; /* the form for long signals, which has all that follows in its own way; NULL: it does not serve */
    cf_long *both;  /* the same of both gradients in one call, of the plan's pass for those of the weights; or NULL */
    cf_fused_config config;
    cf_gpu_transform *weights;     /* w to its spectrum, or the gradient's spectrum to gw */
    cf_gpu_transform *inputs;      /* x to its spectrum, where that passes by; or NULL */
    cf_kernel *kernel[2];          /* for aligned pointers, for others */
    cf_kernel *add;                /* of slices; NULL: there is one */
    cf_kernel *turn[2];            /* for aligned pointers, for others; NULL: there is none */
    size_t spectra, of_x, scratch; /* bytes */
} fused_state;

/* ------------------------------------------------------------------------------------------------------------ planning */

bool cf_fused_feasible(const cf_layer *layer, int pass, const cf_strategy *s, const char **why) {
    if (!cf_families[CF_FAMILY_STAGED]->feasible(layer, pass, s, why))
        return false;
    *why = "its tiles do not overlap where they are stored, and it has no segments";
    if (s->overlap_add || cf_strategy_has_segments(layer, s))
        return false;
    *why = "its gradient of x does not fold padding back";
    if (pass == CF_PASS_DATA && cf_strategy_gx_store(layer, s) == CF_GX_FOLDED)
        return false;
    *why = "a window of the signal or of the weights is empty";
    static const cf_role roles[] = {CF_ROLE_X, CF_ROLE_W, CF_ROLE_Y, CF_ROLE_GX, CF_ROLE_GY};
    for (int i = 0; i < (int)(sizeof roles / sizeof roles[0]); ++i) {
        const cf_window w = cf_strategy_window(layer, s, roles[i]);
        for (int a = 0; a < 3; ++a)
            if (w.axis[a].count == 0)
                return false;
    }
    return true;
}

bool cf_fused_runs_on(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *s,
                      const char **why) {
    cf_fused_config config;
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    *why = "fused kernels need a GPU";
    if (!gpu)
        return false;
    *why = "its lines do not fit the shared memory of a block";
    cf_long_config lines;
    if (cf_long_serves(layer, pass, s))
        return layer->batch == 0 || cf_long_configure(layer, pass, s, &gpu->facts, &lines) == CONV_FFT_SUCCESS;
    *why = "its planes do not fit the shared memory of a block";
    return layer->batch == 0 || cf_fused_configure(layer, pass, s, &gpu->facts, &config) == CONV_FFT_SUCCESS;
}

bool cf_fused_shares_gy(const conv_fft_plan *plan) {
    const fused_state *state = plan->pass[CF_PASS_WEIGHTS].state;
    return state && state->both;
}

/* Planes one after the other, a row's columns side by side. */
static void lay_planes(const cf_strategy *s, cf_fft_problem *fft) {
    const cf_spectrum *spectrum = &fft->transform.spectrum;
    fft->layout.axis_stride[2] = 1;
    fft->layout.axis_stride[1] = s->basis[2] / 2 + 1;
    fft->layout.axis_stride[0] = s->basis[1] * fft->layout.axis_stride[1];
    fft->layout.channel_stride = spectrum->bins;
    fft->layout.sample_stride = spectrum->columns * spectrum->bins;
}

/* Of one group. */
static void describe_inputs(const cf_layer *layer, const cf_strategy *s, cf_fft_problem *fft) {
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    cf_strategy_spectra(layer, CF_PASS_WEIGHTS, s, spectrum);
    memset(fft, 0, sizeof *fft);
    fft->transform.tensor = layer->x;
    fft->transform.window = cf_fused_window(layer, CF_PASS_WEIGHTS, s, CF_X);
    fft->transform.spectrum = spectrum[CF_X];
    fft->transform.scale = 1.0;
    lay_planes(s, fft);
}

/* The weights as one group: rows are the output channels of all groups. */
static conv_fft_status describe_weights(const cf_layer *layer, int pass, const cf_strategy *s, cf_fft_problem *fft) {
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    cf_strategy_spectra(layer, pass, s, spectrum);
    memset(fft, 0, sizeof *fft);
    cf_transform_desc *d = &fft->transform;
    d->inverse = pass == CF_PASS_WEIGHTS;
    fft->leads = !d->inverse; /* fused_scatter() */
    /* Kernels of dense planes neither add nor lead. */
    fft->adds = d->inverse || (layer->in_channels == 1 && layer->out_channels == 1);
    d->tensor = d->inverse ? layer->gw : layer->w;
    d->window = cf_fused_window(layer, pass, s, CF_W);
    d->spectrum = spectrum[CF_W];
    d->spectrum.rows *= layer->groups;
    d->spectrum.groups = 1;
    d->scale = d->inverse ? 1.0 / ((double)s->basis[0] * (double)s->basis[1] * (double)s->basis[2]) : 1.0;
    lay_planes(s, fft);
    if (layer->groups > 1 && d->tensor.group_stride != layer->out_channels * d->tensor.sample_stride)
        return cf_fail(CONV_FFT_NOT_SUPPORTED,
                       "the groups of the weights are %lld elements apart; fused kernels take %lld",
                       (long long)d->tensor.group_stride, (long long)(layer->out_channels * d->tensor.sample_stride));
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_fused_prepare(conv_fft_plan *plan, int pass) {
    fused_state *state = calloc(1, sizeof *state);
    if (!state)
        return cf_fail_memory(sizeof *state, "a fused pass");
    plan->pass[pass].state = state;
    if (plan->layer.batch == 0)
        return CONV_FFT_SUCCESS;
    const cf_strategy *s = &plan->pass[pass].strategy;
    cf_fft_problem fft;
    state->gpu = cf_gpu_of_layers(plan->device);
    if (cf_long_serves(&plan->layer, pass, s)) {
        if (pass == CF_PASS_WEIGHTS && cf_long_serves_both(plan))
            CF_FORWARD(cf_long_create(state->gpu, &plan->layer, CF_LONG_BOTH, s, &state->both));
        return cf_long_create(state->gpu, &plan->layer, pass, s, &state->lines);
    }
    CF_FORWARD(cf_fused_configure(&plan->layer, pass, s, &state->gpu->facts, &state->config));
    CF_FORWARD(describe_weights(&plan->layer, pass, s, &fft));
    CF_FORWARD(cf_gpu_transform_create(state->gpu, &fft, &state->weights));
    const cf_fused_config *c = &state->config;
    state->spectra =
        cf_align((size_t)(c->slices * c->groups * c->in * c->out * c->bins) * 2 * cf_dtype_bytes(s->spectrum));
    state->scratch = cf_align(cf_gpu_transform_scratch(state->weights, fft.transform.spectrum.rows));
    if (!c->keeps || pass != CF_PASS_WEIGHTS)
        return CONV_FFT_SUCCESS;
    describe_inputs(&plan->layer, s, &fft);
    CF_FORWARD(cf_gpu_transform_create(state->gpu, &fft, &state->inputs));
    const size_t scratch = cf_align(cf_gpu_transform_scratch(state->inputs, c->rows));
    state->of_x = cf_align((size_t)(c->rows * c->in * c->bins) * 2 * cf_dtype_bytes(s->spectrum));
    state->scratch = scratch > state->scratch ? scratch : state->scratch;
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_fused_source(const cf_fused_config *c, int kernel, cf_source *source) {
    const int turn = kernel - (cf_fused_variants(c) + (c->slices > 1));
    const bool adds = turn < 0 && kernel == cf_fused_variants(c),
               doubles = c->tile[0][0].problem.fft.transform.spectrum.dtype == CONV_FFT_FP64;
    char tail[8192];
    cf_text t = {tail, sizeof tail, 0};
    if (adds)
        cf_text_add(&t,
                    "extern \"C\" __global__ void __launch_bounds__(%d) cf_fused(cplx *sums, long long count, "
                    "long long slices) {" CF_KERNEL_WAITS "%s    fused_add_slices<%d>(sums, count, slices);\n}\n",
                    adding_threads(c), has_many_slices(c) ? CF_KERNEL_LEADS : "", has_many_slices(c) ? 16 : 1);
    else if (turn >= 0)
        cf_fused_turn_emit(&c->turn, turn, &t);
    else
        cf_fused_emit(c, kernel, &t);
    char *text;
    CF_FORWARD(cf_fbfft_join_emitted(cf_fused_kernel_text, &t, &text));
    *source = (cf_source){.name = "cf_fused",
                          .text = text,
                          .options = {CF_FFT_OPTION, doubles ? "-DCF_REAL=double" : NULL},
                          .dynamic_shared = adds ? 0 : (size_t)(turn >= 0 ? c->turn.shared : c->shared)};
    return CONV_FFT_SUCCESS;
}

/* Where a kernel of cf_fused_source() stands. */
static cf_kernel **place_of(fused_state *state, int kernel) {
    const cf_fused_config *c = &state->config;
    const int adds = cf_fused_variants(c), turns = adds + (c->slices > 1);
    return kernel < adds ? &state->kernel[kernel] : kernel < turns ? &state->add : &state->turn[kernel - turns];
}

conv_fft_status cf_fused_build(conv_fft_plan *plan, int pass) {
    fused_state *state = plan->pass[pass].state;
    const cf_fused_config *c = &state->config;
    cf_source sources[MOST_KERNELS];
    cf_kernel *kernels[MOST_KERNELS] = {NULL}, **places[MOST_KERNELS];
    int count = 0;
    if (plan->layer.batch == 0)
        return CONV_FFT_SUCCESS;
    if (state->lines) {
        CF_FORWARD(state->both ? cf_long_build(state->both) : CONV_FFT_SUCCESS);
        return cf_long_build(state->lines);
    }
    cf_gpu_transform *const transforms[] = {state->weights, state->inputs};
    CF_FORWARD(cf_gpu_transforms_build(state->gpu, transforms, state->inputs ? 2 : 1, NULL, 0, plan->trial));
    memset(sources, 0, sizeof sources);
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int i = 0; status == CONV_FFT_SUCCESS && i < cf_fused_kernels(c); ++i) {
        cf_kernel **const place = place_of(state, i);
        if (plan->trial && (place == &state->kernel[1] || place == &state->turn[1]))
            continue;
        status = cf_fused_source(c, i, &sources[count]);
        places[count++] = place;
    }
    if (status == CONV_FFT_SUCCESS)
        status = cf_kernels_build(state->gpu, sources, count, kernels);
    for (int i = 0; i < count; ++i) {
        free((char *)sources[i].text);
        *places[i] = kernels[i];
    }
    return status;
}

void cf_fused_release(conv_fft_plan *plan, int pass) {
    fused_state *state = plan->pass[pass].state;
    if (!state)
        return;
    cf_long_destroy(state->lines);
    cf_long_destroy(state->both);
    cf_gpu_transform_destroy(state->weights);
    cf_gpu_transform_destroy(state->inputs);
    cf_kernel_destroy(state->kernel[0]);
    cf_kernel_destroy(state->kernel[1]);
    cf_kernel_destroy(state->add);
    cf_kernel_destroy(state->turn[0]);
    cf_kernel_destroy(state->turn[1]);
    free(state);
    plan->pass[pass].state = NULL;
}

/* At the beginning of the workspace, where a call for both gradients leaves those of gy to the second one. */
static size_t planes_bytes(const fused_state *state) { return cf_align(state->config.turn.bytes); }

cf_workspace cf_fused_workspace(const conv_fft_plan *plan, int set, int64_t rows) {
    cf_workspace ws = {.rows = rows};
    for (int i = 0; i < CF_PASS_COUNT; ++i) {
        const fused_state *state = plan->pass[i].state;
        if (!(set & 1 << i) || !state || (set == CONV_FFT_BACKWARD && i == CF_PASS_DATA))
            continue;
        ws.scratch = planes_bytes(state) + state->spectra + state->of_x;
        ws.bytes = ws.scratch + state->scratch + CF_WORKSPACE_SLACK;
        if (state->lines)
            ws.bytes = cf_long_bytes(set == CONV_FFT_BACKWARD ? state->both : state->lines) + CF_WORKSPACE_SLACK;
    }
    return ws;
}

/* ------------------------------------------------------------------------------------------------------------- running */

/* FusedSide and FusedCall of fused_call.cuh. */
typedef struct fused_side {
    const void *memory;
    int64_t sample_stride, group_stride;
} fused_side;
typedef struct fused_call {
    fused_side x, y;
    const void *bias;
    void *weights;
    int64_t rows, groups, slices;
    double scale;
    int accumulate;
} fused_call;

static fused_side side_of(const cf_tensor *t, const void *memory) {
    return (fused_side){memory, t->sample_stride, t->group_stride};
}

static conv_fft_status transform_weights(const fused_state *state, const void *tensor, char *spectra, bool accumulate,
                                         struct CUstream_st *stream) {
    const cf_gpu_transform_call call = {.signal = tensor,
                                        .spectrum = spectra,
                                        .rows = state->weights->problem.transform.spectrum.rows,
                                        .groups = 1,
                                        .accumulate = accumulate,
                                        .scratch = spectra + state->spectra + state->of_x};
    return cf_gpu_transform_run(state->weights, &call, stream);
}

static size_t bytes_at_once(const cf_tile_config *tile) {
    return (size_t)tile->wide * cf_dtype_bytes(tile->problem.fft.transform.tensor.dtype);
}

static conv_fft_status launch(const fused_state *state, fused_call *call, struct CUstream_st *stream) {
    const cf_fused_config *c = &state->config;
    const size_t unit[2] = {bytes_at_once(&c->tile[0][0]), bytes_at_once(&c->tile[1][0])};
    const bool aligned = (uintptr_t)call->x.memory % (c->whole ? 16 : unit[0]) == 0 &&
                         (uintptr_t)call->y.memory % (c->whole ? 16 : unit[1]) == 0;
    const cf_launch shape = {{(unsigned)c->blocks, (unsigned)c->slices, (unsigned)(c->out / c->chunk)},
                             {(unsigned)c->tile[0][0].threads, 1, 1},
                             (size_t)c->shared};
    void *parameters[] = {call};
    return cf_kernel_launch(state->kernel[cf_fused_variants(c) > 1 && !aligned], &shape, parameters, stream);
}

static bool turns_gy(const fused_state *state) {
    const cf_fused_turn *t = &state->config.turn;
    return t->blocks > 0 && t->reads && !t->x;
}

/* Whether the gradient of x has left the planes of gy, which are the same in both passes. */
static bool has_planes(const conv_fft_plan *plan, const cf_call *c) {
    const cf_pass_plan *data = &plan->pass[CF_PASS_DATA];
    return c->after_data && data->strategy.family == CF_FAMILY_FUSED && turns_gy(data->state);
}

/* The tensor of a side becomes planes, unless it has, which the kernel reads in its place. */
static conv_fft_status make_planes(const fused_state *state, fused_side *side, char *planes, bool made,
                                   struct CUstream_st *stream) {
    const cf_fused_turn *t = &state->config.turn;
    if (!made)
        CF_FORWARD(cf_fused_turn_run(t, state->turn, side->memory, planes, NULL, false, stream));
    *side = side_of(&t->planes, planes);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status run_weights(const conv_fft_plan *plan, const fused_state *state, const cf_call *c,
                                   char *workspace) {
    char *spectra = workspace + planes_bytes(state);
    const cf_fused_config *config = &state->config;
    fused_call call = {.x = side_of(&plan->layer.x, c->x),
                       .y = side_of(&plan->layer.y, c->gy),
                       .weights = spectra,
                       .rows = config->rows,
                       .groups = config->groups,
                       .slices = config->slices};
    if (state->inputs) {
        const cf_gpu_transform_call inputs = {.signal = c->x,
                                              .spectrum = spectra + state->spectra,
                                              .rows = config->rows,
                                              .groups = 1,
                                              .scratch = spectra + state->spectra + state->of_x};
        CF_FORWARD(cf_gpu_transform_run(state->inputs, &inputs, c->stream));
        call.x.memory = inputs.spectrum;
    }
    if (config->turn.blocks > 0)
        CF_FORWARD(make_planes(state, &call.y, workspace, has_planes(plan, c), c->stream));
    CF_FORWARD(launch(state, &call, c->stream));
    if (state->add) {
        int64_t count = config->groups * config->in * config->out * config->bins, slices = config->slices;
        const unsigned threads = (unsigned)adding_threads(config);
        const cf_launch shape = {{(unsigned)cf_ceil_div(count, threads), 1, 1}, {threads, 1, 1}, 0};
        void *parameters[] = {&spectra, &count, &slices};
        CF_FORWARD(cf_kernel_launch(state->add, &shape, parameters, c->stream));
    }
    cf_lap(plan, c, CF_STAGE_CONVOLVE_GW);
    CF_FORWARD(transform_weights(state, c->gw, spectra, c->flags & CONV_FFT_ACCUMULATE_GW, c->stream));
    cf_lap(plan, c, CF_STAGE_STORE_GW);
    return CONV_FFT_SUCCESS;
}

/* What is turned has bias and accumulate, or what the kernel writes itself. */
static conv_fft_status launch_turned(const fused_state *state, fused_call *call, char *turned,
                                     struct CUstream_st *stream) {
    const cf_fused_turn *t = &state->config.turn;
    if (t->blocks == 0)
        return launch(state, call, stream);
    if (t->reads) {
        CF_FORWARD(make_planes(state, &call->x, turned, false, stream));
        return launch(state, call, stream);
    }
    fused_call planes = *call;
    planes.y = side_of(&t->planes, turned);
    planes.bias = NULL;
    planes.accumulate = 0;
    CF_FORWARD(launch(state, &planes, stream));
    return cf_fused_turn_run(t, state->turn, call->y.memory, turned, call->bias, call->accumulate, stream);
}

conv_fft_status cf_fused_run(const conv_fft_plan *plan, int set, const cf_call *c) {
    const int pass = set == CONV_FFT_FORWARD         ? CF_PASS_FORWARD
                     : set == CONV_FFT_BACKWARD_DATA ? CF_PASS_DATA
                                                     : CF_PASS_WEIGHTS;
    const fused_state *state = plan->pass[pass].state;
    const cf_layer *layer = &plan->layer;
    const bool data = set & CONV_FFT_BACKWARD_DATA, accumulate = data && (c->flags & CONV_FFT_ACCUMULATE_GX);
    if (pass == CF_PASS_WEIGHTS)
        CF_FORWARD(cf_zero_weights(plan, c));
    if (data && !accumulate && cf_strategy_gx_store(layer, &plan->pass[CF_PASS_DATA].strategy) == CF_GX_ZEROED) {
        int64_t x[5], y[5], w[5];
        cf_layer_extents(layer, x, y, w);
        CF_FORWARD(plan->device->ops->zero(plan->device, &layer->x, x, c->gx, c->stream));
    }
    if (layer->batch == 0)
        return CONV_FFT_SUCCESS;
    char *const workspace = (char *)cf_align((size_t)c->workspace), *const spectra = workspace + planes_bytes(state);
    if (set == CONV_FFT_BACKWARD)
        return cf_long_run(plan, CF_LONG_BOTH, state->both, c, workspace);
    if (state->lines)
        return cf_long_run(plan, pass, state->lines, c, workspace);
    if (pass == CF_PASS_WEIGHTS)
        return run_weights(plan, state, c, workspace);
    CF_FORWARD(transform_weights(state, c->w, spectra, false, c->stream));
    cf_lap(plan, c, CF_STAGE_LOAD_W);
    const int64_t *basis = plan->pass[pass].strategy.basis;
    fused_call call = {.x = data ? side_of(&layer->y, c->gy) : side_of(&layer->x, c->x),
                       .y = data ? side_of(&layer->x, c->gx) : side_of(&layer->y, c->y),
                       .bias = c->bias,
                       .weights = spectra,
                       .rows = state->config.rows,
                       .groups = state->config.groups,
                       .slices = 1,
                       .scale = 1.0 / ((double)basis[0] * (double)basis[1] * (double)basis[2]),
                       .accumulate = accumulate};
    CF_FORWARD(launch_turned(state, &call, workspace, c->stream));
    cf_lap(plan, c, data ? CF_STAGE_CONVOLVE_GX : CF_STAGE_CONVOLVE_Y);
    return CONV_FFT_SUCCESS;
}

const cf_family cf_fused_family = {.feasible = cf_fused_feasible,
                                   .runs_on = cf_fused_runs_on,
                                   .prepare = cf_fused_prepare,
                                   .build = cf_fused_build,
                                   .release = cf_fused_release,
                                   .workspace = cf_fused_workspace,
                                   .run = cf_fused_run,
                                   .shares_gy = cf_fused_shares_gy};
