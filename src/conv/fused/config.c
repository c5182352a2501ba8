/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choices of a fused pass.
 *
 * form      Forward and backward data: the side with fewer columns stays in shared memory; the other is streamed.
 * sums      Backward weights with one input column: threads hold sums in registers if that costs less. Otherwise sums
 *           are in shared memory.
 * chunk     Outputs of one block. If sums stay in shared memory, it is the number that costs least, because each block
 *           transforms the inputs again. Otherwise it is all of them, or fewer if blocks are too few to fill the GPU.
 * resident  If one side has few columns in one group, its planes stay in registers, if they fit.
 * transpose The streamed side is then planes; an NHWC tensor is copied to planes first.
 * slices    Backward weights: parts of the rows. Blocks sum each part on their own. There are as many as fill the GPU
 *           once or twice.
 * spread    Planes are so far apart in shared memory that neighbouring threads may have one task of several planes.
 * channels  If channels of a point are neighbours (NHWC), threads move several of them at once.
 */
#include "conv/fused/fused.h"

#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/nvrtc.h"

#include <math.h>
#include <string.h>

enum {
    MAX_GRID = 65535, /* of the second and third axis */
    WAVES = 2,
    SECTOR = 32,        /* bytes */
    MAX_SUMS = 64 << 20 /* bytes of the slices' sums */
};

/* The alignment shift of both windows, with which rows of the first one begin with a multiple of `unit`. 0: there is
 * no space for it. */
static int64_t moved_by(const cf_axis_window *x, const cf_axis_window *w, int64_t basis, int64_t unit) {
    const int64_t by = (unit - x->first % unit) % unit;
    const bool fits =
        x->first + (x->count - 1) * x->spread + by < basis && w->first + (w->count - 1) * w->spread + by < basis;
    return fits ? by : 0;
}

cf_window cf_fused_window(const cf_layer *layer, int pass, const cf_strategy *s, int operand) {
    const cf_role *role = cf_pass_table[pass].role;
    cf_window window = cf_strategy_window(layer, s, role[operand]);
    const cf_window x = cf_strategy_window(layer, s, role[CF_X]), w = cf_strategy_window(layer, s, role[CF_W]);
    for (int a = 1; a < 3 && operand != CF_Y; ++a) {
        int64_t by = a == 2 ? moved_by(&x.axis[a], &w.axis[a], s->basis[a], 4) : 0;
        if (by == 0 && x.axis[a].first % 4)
            by = moved_by(&x.axis[a], &w.axis[a], s->basis[a], 2);
        window.axis[a].first += by;
    }
    return window;
}

cf_fused_form cf_fused_form_of(int pass, const cf_spectrum spectrum[CF_OPERAND_COUNT]) {
    const cf_spectrum *const in = &spectrum[pass == CF_PASS_DATA ? CF_Y : CF_X],
                             *const out = &spectrum[pass == CF_PASS_DATA ? CF_X : CF_Y];
    return pass == CF_PASS_WEIGHTS       ? CF_FUSED_WEIGHTS
           : in->columns <= out->columns ? CF_FUSED_SCATTER
                                         : CF_FUSED_GATHER;
}

static cf_shared_fft_problem side_of(const cf_layer *layer, int pass, const cf_strategy *s, int operand, bool inverse) {
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    cf_strategy_spectra(layer, pass, s, spectrum);
    const int64_t *basis = s->basis;
    cf_fft_problem fft;
    memset(&fft, 0, sizeof fft);
    fft.transform.inverse = inverse;
    fft.transform.tensor = operand == CF_X ? layer->x : layer->y;
    fft.transform.window = cf_fused_window(layer, pass, s, operand);
    fft.transform.spectrum = spectrum[operand];
    fft.transform.scale = 1.0;
    const int64_t row_bins = basis[2] / 2 + 1;
    fft.layout.axis_stride[0] = basis[1] * row_bins;
    fft.layout.axis_stride[1] = row_bins;
    fft.layout.axis_stride[2] = 1;
    return cf_shared_fft_problem_of(&fft);
}

/* What the kernels read and write. Backward weights: x and gy. */
static void find_sides(const cf_layer *layer, int pass, const cf_strategy *s, cf_shared_fft_problem problems[2]) {
    const bool data = pass == CF_PASS_DATA;
    problems[0] = side_of(layer, pass, s, data ? CF_Y : CF_X, false);
    problems[1] = side_of(layer, pass, s, data ? CF_X : CF_Y, pass != CF_PASS_WEIGHTS);
}

/* Whether planes of neighbouring groups are interleaved in memory. */
static bool touches(const cf_tensor *t) { return t->group_stride == 1 && t->axis_stride[2] != 1; }

static int buffers_of(const cf_fused_config *c) {
    switch (c->form) {
    case CF_FUSED_SCATTER:
        return c->in == 1 && c->out == 1 ? 1 : c->in + 1;
    case CF_FUSED_GATHER:
        return c->chunk + 1;
    default:
        return c->sums ? 2 : c->in + 1 + c->in * c->chunk;
    }
}

/* Channels that threads may move at once: at most sixteen bytes, always aligned to their size. 0: planes are not
 * interleaved. */
static int max_interleaved(const cf_fused_config *c, const cf_tensor *t) {
    if (c->rows_first || !touches(t))
        return 0;
    int width = 16 / (int)cf_dtype_bytes(t->dtype);
    const int64_t strides[] = {c->groups, t->sample_stride, t->axis_stride[0], t->axis_stride[1], t->axis_stride[2]};
    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; ++i)
        while (strides[i] % width)
            width /= 2;
    return width;
}

static int64_t number_bytes(const cf_shared_fft_problem *p) {
    return (int64_t)cf_dtype_bytes(p->fft.transform.tensor.dtype);
}

/* Whether blocks of this many groups waste hardly any of their planes. */
static bool fills_groups(const cf_fused_config *c, int planes) {
    return planes <= 1 || 8 * cf_ceil_div(c->groups, planes) * planes <= 9 * c->groups;
}

/* Interleaved planes: memory is accessed by sectors, so a block has all channels of a sector if they fit. This
 * matters more than the number of blocks. Sums in registers leave space for half of them. unit: planes that are not
 * interleaved are a multiple of this. */
static conv_fft_status configure_units(cf_fused_config *c, const cf_shared_fft_problem problems[2], int unit,
                                       const cf_gpu_properties *properties) {
    cf_shared_fft_config tile[2];
    cf_shared_fft_problem p[2] = {problems[0], problems[1]};
    const int interleaved[2] = {max_interleaved(c, &p[0].fft.transform.tensor),
                                max_interleaved(c, &p[1].fft.transform.tensor)};
    conv_fft_status status = CONV_FFT_NOT_SUPPORTED;
    const bool weights = c->form == CF_FUSED_WEIGHTS;
    const int max_bytes = weights ? SECTOR / 2 : SECTOR;
    const int min_bytes = interleaved[0] || interleaved[1] ? 1 : max_bytes; /* otherwise all tries are the same */
    for (int together = max_bytes; status == CONV_FFT_NOT_SUPPORTED && together >= min_bytes; together /= 2) {
        for (int side = 0; side < 2; ++side)
            p[side].interleaved = interleaved[side] ? (int)cf_max(1, together / number_bytes(&p[side])) : unit;
        if (weights && (!fills_groups(c, p[0].interleaved) || !fills_groups(c, p[1].interleaved)))
            continue;
        status = cf_shared_fft_configure_product(p, 2, buffers_of(c), c->sums, properties, tile, &c->cycles);
    }
    CF_FORWARD(status);
    c->shared = cf_shared_fft_product_shared(&tile[0], 2, buffers_of(c));
    for (int side = 0; side < 2; ++side) {
        tile[side].planes_interleaved = interleaved[side] > 0;
        if (tile[side].planes_interleaved)
            tile[side].vector_width = (int)cf_min(interleaved[side], p[side].interleaved);
        c->tile[side][0] = tile[side];
        c->tile[side][1] = cf_shared_fft_unaligned(&tile[side]);
    }
    return CONV_FFT_SUCCESS;
}

/* Put planes so far apart that a half warp may have one task of each of them without bank conflicts (SPREAD of
 * pruned_fft.cuh), if as many blocks fit then. */
static bool spread_planes(cf_fused_config *c, const cf_gpu_properties *properties) {
    const double shared_part = 0.4; /* of the cycles, as in fbfft/shared_memory/product_config.c */
    const cf_shared_fft_config *t = &c->tile[0][0];
    const bool doubles = t->problem.fft.transform.spectrum.dtype == CONV_FFT_FP64;
    const bool odd = doubles || (!t->staged && t->planes % 16 == 0);
    cf_shared_fft_config other = *t;
    cf_shared_fft_accesses accesses;
    if (t->planes % 8 || (!odd && !t->staged && t->pitch % 2 == 0))
        return false;
    while (odd ? other.plane % 2 == 0 : other.plane % 4 != 2)
        ++other.plane;
    const int64_t bytes = cf_shared_fft_product_shared(&other, 2, buffers_of(c));
    if (bytes > properties->shared_per_block ||
        other.blocks * (bytes + properties->shared_reserved_per_block) > properties->shared_per_multiprocessor)
        return false;
    cf_shared_fft_find_accesses(t, &accesses);
    c->cycles /= 1.0 - shared_part + shared_part * cf_shared_fft_wavefronts(&accesses, t->pitch, t->plane);
    c->shared = bytes;
    other.shared = cf_shared_fft_product_shared(&other, 1, 1);
    for (int i = 0; i < 4; ++i) {
        c->tile[i / 2][i % 2].plane = other.plane;
        c->tile[i / 2][i % 2].shared = other.shared;
    }
    return true;
}

/* Registers of a thread for short lines, most of whose points hold no data, from the disassembly. fbfft/shared_memory
 * assumes full lines. 0: use its figure. */
static int registers_of(const cf_fused_config *c) {
    const cf_shared_fft_config *t = &c->tile[0][0];
    const int64_t *basis = t->problem.fft.transform.spectrum.basis, points = cf_max(basis[1], basis[2]);
    if (t->kind != CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX || basis[0] > 1 || t->radix[1][0] != basis[1] ||
        t->radix[2][0] != basis[2] || c->in * c->out > 1 || t->problem.fft.transform.spectrum.dtype != CONV_FFT_FP32)
        return 0;
    if (c->form != CF_FUSED_WEIGHTS)
        return points <= 18 ? 72 : 0;
    const bool one_task = c->sums && t->planes * (basis[2] / 2 + 1) <= t->threads;
    /* 16 points fit 96 registers. But ten blocks instead of eight were 7 % slower: each has fewer loads under way,
     * and adds a slice. */
    return !one_task || points > 20 ? 0 : 128;
}

static void allow_more_blocks(cf_fused_config *c, const cf_gpu_properties *properties) {
    enum {
        SCHEDULERS = 4 /* of a multiprocessor, each with whole warps */
    };
    const int registers = registers_of(c);
    const int64_t threads = c->tile[0][0].threads;
    if (registers == 0)
        return;
    const int64_t warps = properties->registers_per_multiprocessor / SCHEDULERS / (32 * registers) * SCHEDULERS;
    const int64_t by_registers =
        cf_min(properties->shared_per_multiprocessor / (c->shared + properties->shared_reserved_per_block),
               properties->threads_per_multiprocessor / threads);
    const int64_t blocks = cf_min(cf_min(by_registers, properties->blocks_per_multiprocessor), 32 * warps / threads);
    if (blocks <= c->tile[0][0].blocks)
        return;
    for (int i = 0; i < 4; ++i)
        c->tile[i / 2][i % 2].blocks = (int)blocks;
}

/* Choose the number of planes that costs least, or multiples of eight, which can be spread. */
static conv_fft_status configure_tiles(cf_fused_config *c, const cf_shared_fft_problem problems[2],
                                       const cf_gpu_properties *properties) {
    enum {
        FEW_PLANES = 4 /* a multiple of eight would need twice the shared memory */
    };
    cf_fused_config eights = *c;
    CF_FORWARD(configure_units(c, problems, 0, properties));
    const cf_shared_fft_config *t = &c->tile[0][0];
    if (t->planes > FEW_PLANES && t->planes % 8 && !t->planes_interleaved && !c->tile[1][0].planes_interleaved &&
        configure_units(&eights, problems, 8, properties) == CONV_FFT_SUCCESS && eights.tile[0][0].blocks > 1 &&
        spread_planes(&eights, properties) && eights.cycles < c->cycles)
        *c = eights;
    else
        spread_planes(c, properties);
    allow_more_blocks(c, properties);
    return CONV_FFT_SUCCESS;
}

/* Blocks that run at the same time. */
static int64_t wave(const cf_fused_config *c, const cf_gpu_properties *properties) {
    return (int64_t)properties->multiprocessors * c->tile[0][0].blocks;
}

/* Choose the number of outputs of one block that costs least. Each group of outputs transforms the inputs again. */
static conv_fft_status choose_chunk(cf_fused_config *c, const cf_shared_fft_problem problems[2],
                                    const cf_gpu_properties *properties) {
    double best = HUGE_VAL;
    cf_fused_config next = *c;
    conv_fft_status status = CONV_FFT_NOT_SUPPORTED;
    for (next.chunk = c->out; next.chunk >= 1; next.chunk = (int)cf_smaller_divisor(c->out, next.chunk)) {
        const conv_fft_status tried = configure_tiles(&next, problems, properties);
        const double cycles = next.cycles * ((double)c->in * (c->out / next.chunk) + c->out);
        if (tried == CONV_FFT_SUCCESS && cycles < best) {
            best = cycles;
            *c = next;
            status = CONV_FFT_SUCCESS;
        }
        if (next.chunk == 1)
            break;
    }
    return status;
}

/* Sums of one plane of each side at a time, in registers. */
static conv_fft_status choose_single(cf_fused_config *c, const cf_shared_fft_problem problems[2],
                                     const cf_gpu_properties *properties) {
    if (c->in > 1)
        return CONV_FFT_NOT_SUPPORTED;
    c->sums = true;
    c->chunk = 1;
    return configure_tiles(c, problems, properties);
}

static int64_t max_slices(const cf_fused_config *c, conv_fft_dtype dtype) {
    const int64_t bytes = c->groups * c->in * c->out * c->bins * 2 * (int64_t)cf_dtype_bytes(dtype);
    return cf_max(1, cf_min(MAX_SUMS / bytes, cf_min(c->rows, MAX_GRID)));
}

/* The number of slices with which the blocks end first. Blocks run in waves. Each block sums the rows of a slice, and
 * needs about half a row more to begin and to write its sums. Of equal choices the fewest slices, because another
 * kernel adds them. */
static int64_t slices_of(const cf_fused_config *c, int64_t others, int64_t wave, int64_t limit) {
    int64_t best = 1, min_cost = INT64_MAX;
    for (int64_t n = 1; n <= cf_min(limit, cf_ceil_div(WAVES * wave, others)); ++n) {
        const int64_t cost = cf_ceil_div(n * others, wave) * (2 * cf_ceil_div(c->rows, n) + 1);
        if (cost >= min_cost)
            continue;
        min_cost = cost;
        best = n;
    }
    return best;
}

static conv_fft_status configure_weights(cf_fused_config *c, const cf_shared_fft_problem problems[2],
                                         const cf_gpu_properties *properties) {
    cf_fused_config single = *c;
    const conv_fft_status chosen = choose_chunk(c, problems, properties);
    /* From the disassembly. If planes are not interleaved, fbfft/shared_memory's figure is right. */
    const double in_shared = c->tile[0][0].planes_interleaved ? 1.1 : 1.0;
    if (choose_single(&single, problems, properties) == CONV_FFT_SUCCESS &&
        (chosen != CONV_FFT_SUCCESS ||
         single.cycles * 2 * single.out < in_shared * c->cycles * ((double)c->out / c->chunk + c->out)))
        *c = single;
    else
        CF_FORWARD(chosen);
    c->blocks = cf_ceil_div(c->groups, c->tile[0][0].planes);
    const int64_t others = c->blocks * (c->out / c->chunk);
    c->slices = slices_of(c, others, wave(c, properties), max_slices(c, problems[0].fft.transform.spectrum.dtype));
    return CONV_FFT_SUCCESS;
}

static conv_fft_status configure_product(cf_fused_config *c, const cf_shared_fft_problem problems[2],
                                         const cf_gpu_properties *properties) {
    const int64_t planes = c->rows * c->groups;
    c->chunk = c->out;
    if (c->form == CF_FUSED_GATHER)
        CF_FORWARD(choose_chunk(c, problems, properties));
    CF_FORWARD(configure_tiles(c, problems, properties));
    /* There are too few blocks to fill the GPU. */
    while (c->chunk > 4 * c->in &&
           cf_ceil_div(planes, c->tile[0][0].planes) * (c->out / c->chunk) < wave(c, properties))
        c->chunk = (int)cf_smaller_divisor(c->out, c->chunk);
    c->blocks = cf_ceil_div(planes, c->tile[0][0].planes);
    return configure_tiles(c, problems, properties);
}

/* Configure a kernel whose planes stay in registers, with a streamed side of planes. */
static conv_fft_status configure_resident(const cf_layer *layer, int pass, const cf_strategy *s,
                                          const cf_gpu_properties *properties, cf_fused_config *c) {
    cf_layer planes = *layer;
    cf_shared_fft_problem problems[2];
    c->transpose = cf_nhwc_transpose_of(layer, pass, s);
    if (c->transpose.shared > properties->shared_per_block)
        c->transpose = (cf_nhwc_transpose){0};
    if (c->transpose.blocks > 0)
        *(c->transpose.x ? &planes.x : &planes.y) = c->transpose.planes;
    find_sides(&planes, pass, s, problems);
    return cf_resident_configure(c, problems, properties, max_slices(c, problems[0].fft.transform.spectrum.dtype));
}

conv_fft_status cf_fused_configure(const cf_layer *layer, int pass, const cf_strategy *s,
                                   const cf_gpu_properties *properties, cf_fused_config *config) {
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    cf_strategy_spectra(layer, pass, s, spectrum);
    const int64_t columns = spectrum[CF_X].columns, outputs = spectrum[CF_Y].columns, limit = 1 << 20;
    cf_fused_config c = {.conjugate = pass == CF_PASS_FORWARD, .bins = spectrum[CF_X].bins, .slices = 1};
    if (columns > limit || outputs > limit)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "a group has %lld and %lld columns; fused kernels take at most %lld",
                       (long long)columns, (long long)outputs, (long long)limit);
    if (spectrum[CF_Y].rows > INT32_MAX / layer->groups)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "%lld planes of %lld groups each; fused kernels take 2^31 of them",
                       (long long)spectrum[CF_Y].rows, (long long)layer->groups);
    const bool data = pass == CF_PASS_DATA;
    c.in = (int)(data ? outputs : columns);
    c.out = (int)(data ? columns : outputs);
    c.in_stride = data ? columns * c.bins : c.bins;
    c.out_stride = data ? c.bins : columns * c.bins;
    c.form = cf_fused_form_of(pass, spectrum);
    c.rows = spectrum[CF_Y].rows;
    c.groups = layer->groups;
    c.rows_first = pass != CF_PASS_WEIGHTS && !touches(&layer->x) && !touches(&layer->y);
    cf_shared_fft_problem problems[2];
    find_sides(layer, pass, s, problems);
    cf_fused_config resident = c;
    if (configure_resident(layer, pass, s, properties, &resident) == CONV_FFT_SUCCESS)
        c = resident;
    else
        CF_FORWARD(pass == CF_PASS_WEIGHTS ? configure_weights(&c, problems, properties)
                                           : configure_product(&c, problems, properties));
    if (c.blocks > INT32_MAX || c.out / c.chunk > MAX_GRID)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "the pass makes %lld blocks; one kernel takes %lld", (long long)c.blocks,
                       (long long)INT32_MAX);
    *config = c;
    return CONV_FFT_SUCCESS;
}

void cf_fused_emit(const cf_fused_config *c, int variant, cf_text *t) {
    const char *const kernels[] = {"scatter", "gather", c->sums ? "register_weights" : "weights"};
    const bool whole_rows = c->whole_rows && variant == 0,
               late = c->form == CF_FUSED_SCATTER && c->in == 1 && c->out == 1;
    cf_shared_fft_emit_config(&c->tile[0][variant], "SideX", t);
    cf_shared_fft_emit_config(&c->tile[1][variant], "SideY", t);
    cf_text_add(t,
                "struct Problem {\ntypedef SideX X;\ntypedef SideY Y;\nstatic constexpr int IN = %d, OUT = %d, CHUNK = "
                "%d;\nstatic constexpr bool CONJUGATE = %s, ROWS_FIRST = %s;\n",
                c->in, c->out, c->chunk, c->conjugate ? "true" : "false", c->rows_first ? "true" : "false");
    cf_text_add(
        t,
        "static constexpr long long W_IN = %lld, W_OUT = %lld;\nstatic constexpr bool BULK = %s, WHOLE_ROWS = %s;\n"
        "static constexpr int PREFETCH = %d;\n",
        (long long)c->in_stride, (long long)c->out_stride, c->bulk ? "true" : "false", whole_rows ? "true" : "false",
        c->prefetch);
    cf_text_add(t, "};\nCF_FUSED_KERNEL(%s_%s, %d, %d, %s)\n", c->resident ? "resident" : "fused", kernels[c->form],
                c->tile[0][0].threads, c->tile[0][0].blocks, late ? "true" : "false");
}
