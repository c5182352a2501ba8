/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/plan/gpu_transform.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/kernel_sources.h"
#include "cuda/jit/launch.h"
#include "fbfft/common/kernel_text.h"

#include <stdlib.h>

static conv_fft_status make_source(const char *headers, const cf_text *tail, bool doubles, int64_t shared,
                                   cf_source *source) {
    *source = (cf_source){.name = "cf_fft",
                          .options = {CF_FFT_OPTION, doubles ? "-DCF_REAL=double" : NULL},
                          .dynamic_shared = (size_t)shared,
                          .pdl_wait = true};
    return cf_fbfft_set_text(source, headers, tail);
}

conv_fft_status cf_fft_real_source(const cf_fft_config *config, cf_source *source) {
    char tail[2048];
    cf_text t = {tail, sizeof tail, 0};
    cf_fft_emit(config, &t);
    return make_source(NULL, &t, false, config->shared, source);
}

conv_fft_status cf_fft_shared_source(const cf_shared_fft_config *config, cf_source *source) {
    char tail[4096];
    cf_text t = {tail, sizeof tail, 0};
    cf_shared_fft_emit(config, &t);
    const bool doubles = config->problem.fft.transform.spectrum.dtype == CONV_FFT_FP64;
    return make_source(NULL, &t, doubles, config->shared, source);
}

conv_fft_status cf_fft_tensor_core_source(const cf_shared_fft_config *config, cf_source *source) {
    char tail[4096];
    cf_text t = {tail, sizeof tail, 0};
    cf_tensor_fft_emit(config, &t);
    return make_source(cf_tensor_fft_kernel_text, &t, false, config->shared, source);
}

bool cf_gpu_transform_finds_scales(const cf_gpu_transform *t) {
    return t->passes.count == 1 && !t->passes.pass[0].plain && t->passes.pass[0].tile[0].finds_scales;
}

static conv_fft_status pair_source(const cf_gpu_pair *pair, int variant, cf_source *source) {
    const cf_shared_fft_config *const tile = pair->tile[variant];
    const cf_fft_pass *const pass[2] = {&pair->transform[0]->passes.pass[0], &pair->transform[1]->passes.pass[0]};
    char tail[8192];
    cf_text t = {tail, sizeof tail, 0};
    cf_fft_emit_pair(pass, tile, &t);
    const bool doubles = tile[0].problem.fft.transform.spectrum.dtype == CONV_FFT_FP64;
    CF_FORWARD(make_source(pass[0]->tensor_core || pass[1]->tensor_core ? cf_tensor_fft_kernel_text : NULL, &t, doubles,
                           cf_max(tile[0].shared, tile[1].shared), source));
    source->work = 2; /* two transforms */
    return CONV_FFT_SUCCESS;
}

enum {
    MAX_GROUPS = 65535 /* blocks along the second axis of a grid */
};

/* --------------------------------------------------------------------------------------------------------- creation */

/* The number of variants. Complex numbers are always aligned to their size; kernels that move one number at a time
 * need no second variant. Kernels that copy bins ahead copy 16 bytes of a spectrum. */
static int variants(const cf_fft_pass *pass) {
    return pass->plain || pass->tile[0].vector_width > 1 || pass->tile[0].prefetched > 0 ? 2 : 1;
}
static int pair_variants(const cf_gpu_pair *pair) {
    return (int)cf_max(variants(&pair->transform[0]->passes.pass[0]), variants(&pair->transform[1]->passes.pass[0]));
}

static conv_fft_status list_transform(cf_gpu_transform *t, int max_variants, cf_build_list *list) {
    for (int i = 0; i < t->passes.count; ++i) {
        const cf_fft_pass *pass = &t->passes.pass[i];
        for (int v = 0; v < cf_min(max_variants, variants(pass)); ++v) {
            cf_source source;
            CF_FORWARD(pass->plain         ? cf_fft_real_source(&pass->real[v], &source)
                       : pass->tensor_core ? cf_fft_tensor_core_source(&pass->tile[v], &source)
                                           : cf_fft_shared_source(&pass->tile[v], &source));
            CF_FORWARD(cf_build_list_add(list, &source, &t->kernel[i][v], NULL));
        }
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_gpu_transforms_list(cf_gpu_transform *const *transforms, int count, cf_gpu_pair *const *pairs,
                                       int pair_count, bool aligned, cf_build_list *list) {
    const int max_variants = aligned ? 1 : 2;
    for (int i = 0; i < count; ++i)
        CF_FORWARD(list_transform(transforms[i], max_variants, list));
    for (int i = 0; i < pair_count; ++i)
        for (int v = 0; v < cf_min(max_variants, pair_variants(pairs[i])); ++v) {
            cf_source source;
            CF_FORWARD(pair_source(pairs[i], v, &source));
            CF_FORWARD(cf_build_list_add(list, &source, &pairs[i]->kernel[v], NULL));
        }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_gpu_transform_create(cf_gpu *gpu, const cf_fft_problem *problem, cf_gpu_transform **result) {
    cf_gpu_transform *t = calloc(1, sizeof *t);
    if (!t)
        return cf_fail_memory(sizeof *t, "a transform");
    t->problem = *problem;
    const conv_fft_status status = cf_fft_passes_of(problem, &gpu->properties, &t->passes);
    if (status != CONV_FFT_SUCCESS)
        cf_gpu_transform_destroy(t);
    else
        *result = t;
    return status;
}

void cf_gpu_transform_destroy(cf_gpu_transform *t) {
    if (!t)
        return;
    for (int i = 0; i < t->passes.count; ++i) {
        cf_kernel_destroy(t->kernel[i][0]);
        cf_kernel_destroy(t->kernel[i][1]);
    }
    free(t);
}

/* Waves of blocks of a transform that has one kernel. */
static double waves(const cf_gpu *gpu, const cf_shared_fft_config *tile, int64_t rows, int64_t groups) {
    const int64_t planes = rows * tile->problem.fft.transform.spectrum.columns;
    return (double)(cf_shared_fft_blocks(tile, planes) * groups) /
           (double)(gpu->properties.multiprocessors * (int64_t)tile->blocks);
}

/* Points that a thread transforms in all steps. The compiler's time grows with it. */
static int points_of_steps(const cf_shared_fft_config *tile) {
    int points = 0;
    for (int x = 0; x < 3; ++x)
        for (int step = 0; step < 3; ++step)
            points += tile->radix[x][step] > 1 ? tile->radix[x][step] : 0;
    return points;
}

/* Whether a pair takes too long to compile for the launch that it saves. A pair of lines of 60 or 64 points takes two
 * to three seconds. With two waves of blocks or more, two launches were as fast as one (docs/performance/log.md). */
static bool is_too_long(const cf_fft_pass *const pass[2], double all_waves) {
    const int max_points = 160;
    const double many_waves = 2.0;
    return !pass[0]->tensor_core && !pass[1]->tensor_core && all_waves >= many_waves &&
           points_of_steps(&pass[0]->tile[0]) + points_of_steps(&pass[1]->tile[0]) > max_points;
}

conv_fft_status cf_gpu_pair_create(const cf_gpu *gpu, const cf_gpu_transform *first, const cf_gpu_transform *second,
                                   const int64_t rows[2], int64_t groups, cf_gpu_pair **result) {
    const cf_gpu_transform *const transform[2] = {first, second};
    const double fits_few_waves = 4.0;
    bool gains = false;
    double all_waves = 0.0;
    *result = NULL;
    for (int i = 0; i < 2; ++i) {
        const cf_fft_pass *own = &transform[i]->passes.pass[0];
        if (transform[i]->passes.count > 1 || own->plain || transform[i]->problem.transform.inverse ||
            groups > MAX_GROUPS || rows[i] <= 0)
            return CONV_FFT_SUCCESS;
        const double own_waves = waves(gpu, &own->tile[0], rows[i], groups);
        gains = gains || own_waves <= fits_few_waves;
        all_waves += own_waves;
    }
    const cf_fft_pass *const pass[2] = {&first->passes.pass[0], &second->passes.pass[0]};
    if (!gains || !cf_fft_can_pair(pass) || is_too_long(pass, all_waves))
        return CONV_FFT_SUCCESS;
    cf_gpu_pair *pair = calloc(1, sizeof *pair);
    if (!pair)
        return cf_fail_memory(sizeof *pair, "a pair of transforms");
    for (int v = 0; v < 2; ++v) {
        pair->transform[v] = transform[v];
        cf_fft_pair_tiles(pass, v, &gpu->properties, pair->tile[v]);
    }
    *result = pair;
    return CONV_FFT_SUCCESS;
}

void cf_gpu_pair_destroy(cf_gpu_pair *pair) {
    if (!pair)
        return;
    cf_kernel_destroy(pair->kernel[0]);
    cf_kernel_destroy(pair->kernel[1]);
    free(pair);
}

void cf_gpu_transform_describe(const cf_gpu_transform *t, cf_text *line) {
    for (int i = 0; i < t->passes.count; ++i) {
        const cf_fft_pass *pass = &t->passes.pass[i];
        cf_text_add(line, "%s", i ? "\n" : "");
        if (pass->plain)
            cf_fft_describe(&pass->real[0], line);
        else if (pass->tensor_core)
            cf_tensor_fft_describe(&pass->tile[0], line);
        else
            cf_shared_fft_describe(&pass->tile[0], line);
        cf_text_add(line, ", registers %d", t->kernel[i][0]->registers);
    }
}

/* ---------------------------------------------------------------------------------------------------------- running */

static int64_t chunk_of(const cf_gpu_transform *t, int64_t rows) { return cf_min(t->passes.chunk, rows); }

/* Bytes between kernel i and the next. */
static size_t between_bytes(const cf_gpu_transform *t, int i, int64_t rows) {
    return cf_align((size_t)(t->passes.between[i] * chunk_of(t, rows)));
}

size_t cf_gpu_transform_scratch(const cf_gpu_transform *t, int64_t rows) {
    size_t bytes = 0;
    for (int i = 0; i + 1 < t->passes.count; ++i)
        bytes += between_bytes(t, i, rows);
    return bytes > 0 ? bytes + 63 : 0;
}

static const cf_parameter real_parameters[] = {
    {sizeof(void *), 1}, {sizeof(void *), 1}, {sizeof(float), 0}, {sizeof(long long), 0}, {0, 0}};
#define CALL_ADDRESSES                                                                                                 \
    (CF_ADDRESS(cf_shared_fft_call, in) | CF_ADDRESS(cf_shared_fft_call, out) | CF_ADDRESS(cf_shared_fft_call, bias) | \
     CF_ADDRESS(cf_shared_fft_call, scales) | CF_ADDRESS(cf_shared_fft_call, absmax))
static const cf_parameter tile_parameters[] = {{sizeof(cf_shared_fft_call), CALL_ADDRESSES}, {0, 0}};
static const cf_parameter pair_parameters[] = {
    {sizeof(cf_shared_fft_call), CALL_ADDRESSES}, {sizeof(cf_shared_fft_call), CALL_ADDRESSES}, {0, 0}};

static conv_fft_status launch_tile(const cf_gpu_transform *t, int i, int variant, cf_shared_fft_call call,
                                   int64_t groups, struct CUstream_st *stream) {
    const cf_shared_fft_config *tile = &t->passes.pass[i].tile[variant];
    const int64_t blocks = cf_shared_fft_blocks(tile, call.planes);
    const int64_t in = (t->problem.transform.inverse ? call.spectrum_group_stride * 2 : call.group_stride),
                  out = (t->problem.transform.inverse ? call.group_stride : call.spectrum_group_stride * 2);
    const size_t signal = cf_dtype_bytes(t->problem.transform.tensor.dtype),
                 bias = cf_dtype_bytes(cf_tensor_bias_dtype(&t->problem.transform.tensor)),
                 spectrum = cf_dtype_bytes(t->problem.transform.spectrum.dtype);
    if (blocks > INT32_MAX)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "the batch makes %lld planes; one call takes at most %lld",
                       (long long)call.planes, (long long)INT32_MAX / cf_max(1, tile->bin_tiles) * tile->planes);
    const unsigned grid = (unsigned)(tile->grid ? cf_min(blocks, tile->grid) : blocks);
    for (int64_t group = 0; group < groups; group += MAX_GROUPS) {
        const unsigned many = (unsigned)cf_min(MAX_GROUPS, groups - group);
        const cf_launch shape = {
            {grid, many, 1}, {(unsigned)tile->threads, 1, 1}, (size_t)tile->shared, tile_parameters};
        void *parameters[] = {&call};
        CF_FORWARD(cf_kernel_launch(t->kernel[i][variant], &shape, parameters, stream));
        call.in = (const char *)call.in + MAX_GROUPS * in * (int64_t)(t->problem.transform.inverse ? spectrum : signal);
        call.out = (char *)call.out + MAX_GROUPS * out * (int64_t)(t->problem.transform.inverse ? signal : spectrum);
        if (call.bias)
            call.bias = (const char *)call.bias + MAX_GROUPS * t->problem.transform.spectrum.channels * (int64_t)bias;
        if (call.scales)
            call.scales += MAX_GROUPS * call.scale_group_stride;
        if (call.absmax)
            call.absmax += MAX_GROUPS * call.absmax_group_stride;
    }
    return CONV_FFT_SUCCESS;
}

/* Dense planes. Rows are samples, and there is one group. */
static conv_fft_status launch_plain(const cf_gpu_transform *t, int i, int variant, const cf_shared_fft_call *call,
                                    struct CUstream_st *stream) {
    const cf_fft_config real = cf_fft_for_batch(&t->passes.pass[i].real[variant], call->planes);
    const int64_t blocks = cf_ceil_div(call->planes, real.planes);
    if (blocks > INT32_MAX)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "the batch makes %lld planes; one call takes at most %lld",
                       (long long)call->planes, (long long)INT32_MAX * real.planes);
    const cf_launch shape = {
        {(unsigned)blocks, 1, 1}, {(unsigned)real.threads, 1, 1}, (size_t)real.shared, real_parameters};
    float scale = (float)call->scale;
    long long planes = call->planes;
    const void *in = call->in;
    void *out = call->out;
    void *parameters[] = {&in, &out, &scale, &planes};
    return cf_kernel_launch(t->kernel[i][variant], &shape, parameters, stream);
}

/* The call begins with row `first`, the block with row `base`. */
static void set_scales(const cf_row_scales *s, int64_t first, int64_t base, cf_shared_fft_call *call) {
    call->scales = s->scales + (first - base) * cf_ceil_div(call->columns, CF_SCALE_COLUMNS);
    call->scale_group_stride = s->group_stride;
    call->scale_rows = s->rows;
    call->absmax = s->absmax ? s->absmax + (first / s->rows - base / s->rows) * s->parts : NULL;
    call->absmax_group_stride = s->absmax_group_stride;
    call->parts = s->parts;
}

/* The last kernel of an inverse whose rows overlap: each launch has as many rows as do not overlap. If a row is many
 * slices, each launch has one row, because a launch's row step cannot skip slices. */
static conv_fft_status launch_ordered(const cf_gpu_transform *t, int variant, cf_shared_fft_call call, int64_t first,
                                      int64_t rows, int64_t groups, struct CUstream_st *stream) {
    const cf_transform_desc *d = &t->problem.transform;
    const int64_t apart = cf_min(d->ordered, rows), block = d->beside * d->between;
    const bool sliced = t->passes.count > 1;
    const bool beside = !sliced && d->beside > rows / apart && first % block == 0 && rows % block == 0;
    const int64_t together = sliced ? 1 : beside ? d->beside : rows / apart;
    call.planes = call.planes / rows * together;
    call.row_step = sliced ? 1 : beside ? d->between : apart;
    for (int64_t i = 0; i < rows / together; ++i) {
        const int64_t row = beside ? i / d->between * block + i % d->between : i;
        call.row_first = call.row_base + row * t->passes.pass[0].tile[variant].problem.rows;
        CF_FORWARD(launch_tile(t, 0, variant, call, groups, stream));
    }
    return CONV_FFT_SUCCESS;
}

/* Run one kernel over `rows` rows of the transform from `first` on. The kernel that accesses the signal finds rows by
 * their number. */
static conv_fft_status run_pass(const cf_gpu_transform *t, int i, const cf_gpu_transform_call *c, int64_t first,
                                int64_t rows, const void *signal, const void *spectrum, int64_t groups,
                                struct CUstream_st *stream) {
    const cf_fft_pass *pass = &t->passes.pass[i];
    const cf_shared_fft_problem *p = &pass->tile[0].problem;
    const bool inverse = t->problem.transform.inverse;
    const uintptr_t moved = (uintptr_t)signal | (pass->plain ? (uintptr_t)spectrum : 0);
    const unsigned element = (unsigned)cf_dtype_bytes(t->problem.transform.tensor.dtype),
                   batch = pass->plain ? 16 : element * (unsigned)pass->tile[0].vector_width;
    const bool apart = pass->tile[0].prefetched > 0 && (uintptr_t)spectrum % 16 != 0;
    const int variant = variants(pass) > 1 && (moved % batch || apart) ? 1 : 0;
    cf_shared_fft_call call = cf_shared_fft_call_of(p, rows, c->unit);
    if (pass->plain && i == 0)
        signal = (const char *)signal + first * t->problem.transform.tensor.sample_stride * (int64_t)sizeof(float);
    call.in = inverse ? spectrum : signal;
    call.out = (void *)(inverse ? signal : spectrum);
    if (pass->plain)
        return launch_plain(t, i, variant, &call, stream);
    call.spectrum_group_stride = c->group_stride;
    if (i == 0) {
        call.row_first = call.row_base = first * p->rows;
        call.bias = c->bias;
        call.accumulate = c->accumulate;
        if (c->scales.scales)
            set_scales(&c->scales, first, c->base, &call);
        if (t->problem.transform.ordered > 1)
            return launch_ordered(t, variant, call, first, rows, groups, stream);
    }
    return launch_tile(t, i, variant, call, groups, stream);
}

/* Run all kernels over the rows from `first` on. If there are several kernels, this is for one group. */
static conv_fft_status run_rows(const cf_gpu_transform *t, const cf_gpu_transform_call *c, int64_t first, int64_t rows,
                                const char *signal, const char *spectrum, struct CUstream_st *stream) {
    const int count = t->passes.count;
    char *between[CF_FFT_MAX_PASSES - 1] = {NULL};
    between[0] = (char *)cf_align((size_t)c->scratch);
    if (count > 2)
        between[1] = between[0] + between_bytes(t, 0, c->rows);
    for (int step = 0; step < count; ++step) {
        const int i = t->problem.transform.inverse ? count - 1 - step : step;
        CF_FORWARD(run_pass(t, i, c, first, rows, i == 0 ? signal : between[i - 1],
                            i + 1 == count ? spectrum : between[i], count > 1 ? 1 : c->groups, stream));
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_gpu_transform_run(const cf_gpu_transform *t, const cf_gpu_transform_call *c,
                                     struct CUstream_st *stream) {
    const cf_transform_desc *d = &t->problem.transform;
    const int64_t number = 2 * (int64_t)cf_dtype_bytes(d->spectrum.dtype),
                  element = (int64_t)cf_dtype_bytes(d->tensor.dtype),
                  bias = (int64_t)cf_dtype_bytes(cf_tensor_bias_dtype(&d->tensor));
    const int64_t row_stride =
        t->problem.layout.frequency_major ? d->spectrum.columns : t->problem.layout.sample_stride;
    const char *spectrum = c->spectrum;
    if (t->passes.count == 1)
        return run_rows(t, c, c->first, c->rows, c->signal, spectrum + (c->first - c->base) * row_stride * number,
                        stream);
    const int64_t chunk = chunk_of(t, c->rows);
    for (int64_t group = 0; group < c->groups; ++group)
        for (int64_t done = 0; done < c->rows; done += chunk) {
            const int64_t first = c->first + done;
            cf_gpu_transform_call own = *c;
            if (c->bias)
                own.bias = (const char *)c->bias + group * d->spectrum.channels * bias;
            if (c->scales.scales)
                own.scales.scales += group * c->scales.group_stride;
            if (c->scales.absmax)
                own.scales.absmax += group * c->scales.absmax_group_stride;
            CF_FORWARD(run_rows(t, &own, first, cf_min(chunk, c->rows - done),
                                (const char *)c->signal + group * d->tensor.group_stride * element,
                                spectrum + (group * c->group_stride + (first - c->base) * row_stride) * number,
                                stream));
        }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_gpu_pair_run(const cf_gpu_pair *pair, const cf_gpu_transform_call c[2], struct CUstream_st *stream) {
    cf_shared_fft_call call[2];
    int64_t blocks = 0;
    int variant = 0;
    for (int i = 0; i < 2; ++i) {
        const cf_shared_fft_config *tile = &pair->tile[0][i];
        const unsigned element = (unsigned)cf_dtype_bytes(tile->problem.fft.transform.tensor.dtype);
        if (tile->vector_width > 1 && (uintptr_t)c[i].signal % (element * (unsigned)tile->vector_width))
            variant = 1;
        call[i] = cf_shared_fft_call_of(&tile->problem, c[i].rows, c[i].unit);
        call[i].in = c[i].signal;
        call[i].out = (void *)c[i].spectrum;
        call[i].spectrum_group_stride = c[i].group_stride;
        call[i].row_step = 1;
        if (c[i].scales.scales)
            set_scales(&c[i].scales, 0, 0, &call[i]);
        call[i].first_block = (int)blocks;
        blocks += cf_shared_fft_blocks(tile, call[i].planes);
        if (blocks > INT32_MAX)
            return cf_fail(CONV_FFT_NOT_SUPPORTED, "the batch makes %lld planes; one call takes at most %lld",
                           (long long)call[i].planes, (long long)INT32_MAX / cf_max(1, tile->bin_tiles) * tile->planes);
    }
    const cf_shared_fft_config *tile = pair->tile[variant];
    const cf_launch shape = {{(unsigned)blocks, (unsigned)c[0].groups, 1},
                             {(unsigned)tile[0].threads, 1, 1},
                             (size_t)cf_max(tile[0].shared, tile[1].shared),
                             pair_parameters};
    void *parameters[] = {&call[0], &call[1]};
    return cf_kernel_launch(pair->kernel[variant], &shape, parameters, stream);
}
