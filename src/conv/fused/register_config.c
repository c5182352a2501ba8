/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The config of a register-resident kernel (register_resident.cuh): radices, planes and threads of a block with the
 * fewest cycles, by a count of instructions. Streamed planes go through the same steps again and again, with a barrier
 * after each. A block has most of a multiprocessor. So an interval between two barriers takes as long as the scheduler
 * with the most warps. The figures are from profiles on an H200.
 */
#include "conv/fused/fused.h"

#include "conv/fused/geometry.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "fbfft/shared_memory/geometry.h"

#include <math.h>
#include <string.h>

enum {
    MAX_HELD = 8,    /* planes that stay in registers */
    MAX_POINTS = 20, /* of a task, for both rows of its pairs */
    MAX_PLANES = 8,
    MAX_THREADS = 1024,
    CHEAP_SPILLS = 12, /* registers whose spills cost less than having fewer threads */
    SCHEDULERS = 4     /* of a multiprocessor */
};

/* One candidate. */
typedef struct candidate {
    int columns[2], lines[2]; /* radices; products follow the second radix of columns */
    int planes, threads, blocks, chunk;
    int prefetch; /* planes of bins that are loaded ahead */
    bool whole_rows;
    int64_t pitch;
    double cycles; /* of the whole pass, on the multiprocessor with the most work */
} candidate;

/* What all candidates have in common. */
typedef struct resident_shape {
    const cf_fused_config *c;
    const cf_gpu_properties *properties;
    int64_t basis[3], columns, pairs; /* of a plane; pairs: of rows with data, on the streamed side */
    int held, number;                 /* planes that stay in registers; bytes of a number */
    bool whole_rows;                  /* blocks of the streamed side have whole rows */
    const cf_shared_fft_problem *streamed;
} resident_shape;

/* ------------------------------------------------------------------------------------------------------- whole rows */

/* Whether a vector of 16 bytes that ends behind a 16-bit window may be read whole, because the tensor does not end
 * there. */
static bool ends_whole(const cf_transform_desc *t) {
    const int64_t plane = t->window.axis[1].size * t->window.axis[2].size;
    return t->tensor.dtype == CONV_FFT_FP32 ||
           (t->tensor.sample_stride % 8 == 0 &&
            ((t->spectrum.channels - 1) * t->tensor.channel_stride + plane) % 8 == 0);
}

/* Whether tiles have whole rows, and the rows of each tile are contiguous in whole vectors of 16 bytes. */
static bool has_whole_rows(const cf_shared_fft_problem *p, bool reads) {
    const cf_transform_desc *t = &p->fft.transform;
    const cf_axis_window *x = &t->window.axis[2], *y = &t->window.axis[1];
    bool whole = t->tensor.dtype != CONV_FFT_FP64 && (!reads || ends_whole(t)) && t->tensor.axis_stride[2] == 1 &&
                 t->tensor.axis_stride[1] == x->size && t->window.axis[0].size == 1;
    whole = whole && x->spread == 1 && x->step == 1 && x->origin == 0 && x->count == x->size && x->lower <= 0 &&
            x->upper >= x->size && x->tiles * x->shifts * x->phases == 1;
    whole = whole && y->spread == 1 && y->step == 1 && y->shifts * y->phases == 1 &&
            (!cf_shared_fft_checked(y) || y->mode == CONV_FFT_PAD_ZEROS) && t->tensor.sample_stride % 4 == 0 &&
            t->tensor.channel_stride % 4 == 0;
    for (int64_t i = 0; whole && i < y->tiles; ++i) {
        const int64_t start = y->origin + i * y->tile_step, low = cf_max(start, cf_max(y->lower, 0)),
                      high = cf_min(start + y->count, cf_min(y->upper, y->size));
        whole = low * x->size % 4 == 0 && (low - start) * x->size % 4 == 0 && high * x->size % 4 == 0;
    }
    return whole;
}

/* Bytes of the staged rows of a plane. */
static int64_t bytes_of_rows(const resident_shape *s, const candidate *w) {
    const cf_transform_desc *t = &s->streamed->fft.transform;
    const cf_axis_window *x = &t->window.axis[2];
    const int bytes = (int)cf_dtype_bytes(t->tensor.dtype);
    const bool converted = s->c->form == CF_FUSED_SCATTER && !cf_whole_rows_pack(bytes, x->size, x->first, w->lines[1]);
    return cf_whole_rows_size(t->window.axis[1].count * x->size, bytes) * (converted ? s->number : bytes);
}

/* --------------------------------------------------------------------------------------------------------- counting */

/* Instructions of a step of this many points. twiddles: another step is between it and the spectrum. */
static double step_instructions(int points, bool twiddles) {
    return points * (2.2 * log2(points > 1 ? points : 2) + 2.5 + (twiddles ? 4.5 : 0.0)) + 30.0;
}

/* Cycles of tasks that the threads of a block share. */
static double interval(const candidate *w, double tasks, double instructions) {
    const double warps = w->threads / 32.0, full = floor(tasks / w->threads),
                 rest = ceil((tasks - full * w->threads) / 32.0);
    const double waves = full * ceil(warps / SCHEDULERS) + ceil(rest / SCHEDULERS);
    return waves * instructions * (1.0 + 2.0 * SCHEDULERS / warps) + 120.0;
}

/* The steps in the order of the kernels. */
static double cycles_of(const resident_shape *s, const candidate *w) {
    const int a = w->columns[0], b = w->columns[1], r = w->lines[0], q = w->lines[1];
    const int64_t lines = w->whole_rows ? cf_round_up(s->pairs * w->planes, 8) : s->pairs * w->planes,
                  columns = s->columns * w->planes, tasks = s->columns * a;
    const int sets = (int)cf_max(1, cf_min(w->threads / tasks, w->planes)), each = (int)cf_ceil_div(w->planes, sets);
    double cycles = 0.0;
    if (q > 1)
        cycles += interval(w, (double)(lines * r), step_instructions(q, false));
    cycles += interval(w, (double)(lines * q), step_instructions(r, q > 1) + (w->whole_rows ? r : 0));
    if (!w->whole_rows)
        cycles += interval(w, (double)(lines * r * q) / 2.0, 14.0);
    if (a > 1)
        cycles += interval(w, (double)(columns * b) / 2.0, 2.0 * step_instructions(a, true) + 4.0 * a);
    cycles +=
        interval(w, (double)(tasks * sets), b * (s->held * (4.0 * each + 1.0)) + each * step_instructions(b, a > 1));
    return cycles;
}

/* Registers of a thread: for numbers that stay, and for its longest task. NVRTC uses a few more than these. */
static int64_t registers_of(const resident_shape *s, const candidate *w) {
    const int64_t tasks = s->columns * w->columns[0], sets = cf_max(1, cf_min(w->threads / tasks, w->planes)),
                  each = cf_ceil_div(w->planes, sets);
    const int64_t resident = cf_ceil_div(tasks, w->threads) * each * s->held * w->columns[1],
                  points = cf_max(2 * w->columns[0], cf_max(w->lines[0], w->lines[1]));
    return (2 * resident + cf_max(2 * points + 34, 2 * w->columns[1] * each + 30)) * (s->number / 4);
}

/* Registers that a thread may have with this many blocks. A scheduler has whole warps. */
static int64_t registers_for(const resident_shape *s, const candidate *w) {
    const int64_t warps = cf_ceil_div((int64_t)w->threads / 32 * w->blocks, SCHEDULERS);
    return cf_min(255, s->properties->registers_per_multiprocessor / SCHEDULERS / (32 * warps) / 8 * 8);
}

static int64_t min_pitch(const candidate *w) {
    const int r = w->lines[0], q = w->lines[1];
    return cf_shared_fft_line_of(r, q, 1, true).size + cf_shared_fft_plane_of(true, false, 1, r * q, r * q).extra;
}

/* Whole rows: eight lines by four tasks have no bank conflicts if lines are two places apart, but for periods of
 * sixteen. */
static int64_t pitch_of(const candidate *w) {
    int64_t pitch = min_pitch(w);
    while (w->whole_rows ? pitch % 16 != 2 && pitch % 16 != 14 : w->lines[1] > 1 ? pitch % 2 == 0 : pitch % 4 != 2)
        ++pitch;
    return pitch - min_pitch(w) < 8 ? pitch : min_pitch(w);
}

static int64_t plane_of(const resident_shape *s, const candidate *w) {
    return cf_shared_fft_plane_of(true, false, (int)s->basis[1], 0, 0).rows * w->pitch;
}

static int64_t shared_with(const resident_shape *s, const candidate *w, bool whole_rows) {
    const int64_t buffers = s->c->form == (whole_rows ? CF_FUSED_GATHER : CF_FUSED_SCATTER) ? 1 : 2;
    const int64_t ring = (s->held + w->prefetch) * s->c->bins;
    const cf_resident_offsets at = cf_resident_offsets_of(buffers * w->planes * plane_of(s, w), ring, 2 * s->number);
    return w->planes * 2 * CF_SHARED_FFT_TABLE + 2 * s->number * at.rows +
           (whole_rows ? w->planes * bytes_of_rows(s, w) : 0) + CF_RESIDENT_BARRIERS;
}
/* If pointers are not aligned, rows are moved number by number. */
static int64_t shared_of(const resident_shape *s, const candidate *w) {
    const int64_t other = shared_with(s, w, false);
    return w->whole_rows ? cf_max(other, shared_with(s, w, true)) : other;
}

/* Bins that are loaded ahead use the shared memory that is left, which is allocated in units. */
static int prefetch_of(const resident_shape *s, const candidate *w) {
    const int64_t unit = 128,
                  each = s->properties->shared_per_multiprocessor / w->blocks / unit * unit -
                         s->properties->shared_reserved_per_block,
                  left = cf_min(each, s->properties->shared_per_block) - shared_of(s, w);
    return s->c->bulk ? (int)cf_min(s->held, left / (2 * s->number * s->c->bins)) : 0;
}

/* --------------------------------------------------------------------------------------------------------- choosing */

/* Choose the outputs of a block. Returns how many waves of blocks the multiprocessor with the most of them runs. Each
 * group of outputs transforms the inputs again. */
static double period_of(const resident_shape *s, candidate *w) {
    const cf_fused_config *c = s->c;
    const int64_t wave = s->properties->multiprocessors * w->blocks, blocks = cf_ceil_div(c->rows, w->planes);
    w->chunk = c->form == CF_FUSED_WEIGHTS ? w->planes : c->out;
    if (c->form == CF_FUSED_WEIGHTS)
        return (double)(c->rows * (c->out / w->planes)) / (double)s->properties->multiprocessors;
    while (c->form == CF_FUSED_SCATTER && w->chunk > 4 * c->in && blocks * (c->out / w->chunk) < wave)
        w->chunk = (int)cf_smaller_divisor(c->out, w->chunk);
    const double each = c->form == CF_FUSED_SCATTER ? w->chunk + c->in : c->in + c->out;
    return (double)(cf_ceil_div(blocks * (c->out / w->chunk), wave) * w->blocks) * each;
}

/* Compute the cycles with the largest number of blocks that fits. False: no block fits. */
static bool weigh(const resident_shape *s, candidate *w) {
    const int64_t shared = shared_of(s, w);
    if (shared > s->properties->shared_per_block)
        return false;
    w->blocks =
        (int)cf_min(s->properties->shared_per_multiprocessor / (shared + s->properties->shared_reserved_per_block),
                    s->properties->threads_per_multiprocessor / w->threads);
    while (w->blocks > 0 && registers_for(s, w) + CHEAP_SPILLS < registers_of(s, w))
        --w->blocks;
    if (w->blocks == 0)
        return false;
    /* All multiprocessors at once read about sixteen bytes of the L2 cache per cycle each. */
    const double cycles = cycles_of(s, w), reads = (double)(s->held * s->c->bins * 2 * s->number) / 16.0;
    w->cycles = fmax(cycles / pow(w->blocks, 0.6), reads) * period_of(s, w);
    return true;
}

/* Whether n is r[0] * r[1] with r[0] = first and no factor above the limit. */
static bool divide(int64_t n, int first, int limit, int r[2]) {
    r[0] = first;
    r[1] = (int)(n / first);
    return n % first == 0 && r[0] <= limit && r[1] <= limit;
}

/* Choose threads and planes for these radices. */
static void choose_block(const resident_shape *s, candidate next, candidate *best) {
    next.whole_rows = s->whole_rows && next.lines[1] > 1 && next.columns[0] > 1 && next.columns[1] % 2 == 0;
    next.pitch = pitch_of(&next);
    for (next.planes = 1; next.planes <= MAX_PLANES; ++next.planes)
        for (next.threads = 64; next.threads <= MAX_THREADS; next.threads += 32)
            if ((s->c->form != CF_FUSED_WEIGHTS || s->c->out % next.planes == 0) && weigh(s, &next) &&
                next.cycles < best->cycles)
                *best = next;
}

static conv_fft_status choose(const resident_shape *s, candidate *best) {
    candidate next = *best;
    for (int a = 1; a <= MAX_POINTS / 2; ++a)
        for (int r = 1; r <= MAX_POINTS; ++r)
            if (divide(s->basis[1], a, MAX_POINTS, next.columns) && (a == 1 || next.columns[1] % 2 == 0) &&
                (divide(s->basis[2], r, MAX_POINTS, next.lines) && (r > 1) && next.lines[1] <= next.lines[0]))
                choose_block(s, next, best);
    return best->cycles < HUGE_VAL
               ? CONV_FFT_SUCCESS
               : cf_fail(CONV_FFT_NOT_SUPPORTED, "a thread has too few registers for planes that stay there");
}

/* ------------------------------------------------------------------------------------------------------- the config */

static void fill_tiles(const resident_shape *s, const candidate *w, cf_fused_config *c,
                       const cf_shared_fft_config base[2]) {
    for (int side = 0; side < 2; ++side) {
        cf_shared_fft_config *const t = &c->tile[side][0];
        *t = base[side];
        memcpy(t->radix[1], w->columns, sizeof w->columns);
        memcpy(t->radix[2], w->lines, sizeof w->lines);
        t->radix[1][2] = t->radix[2][2] = 1;
        t->planes = w->planes;
        t->threads = w->threads;
        t->blocks = w->blocks;
        t->pitch = w->pitch;
        t->plane = plane_of(s, w);
        t->shared = w->planes * (32 + t->plane * 2 * s->number);
        t->staged = t->planes_interleaved = t->mirrors = false;
        c->tile[side][1] = cf_shared_fft_unaligned(t);
    }
}

/* The number of slices with which blocks fill the multiprocessors in each wave but the last. */
static int64_t slices_of(const resident_shape *s, const candidate *w, int64_t max_slices) {
    const int64_t parts = s->c->out / w->planes, wave = s->properties->multiprocessors * w->blocks;
    int64_t best = 1;
    double filled = 0.0;
    for (int64_t n = 1; n <= cf_min(max_slices, cf_ceil_div(8 * wave, parts)); ++n) {
        const double waves = (double)cf_ceil_div(n * parts, wave), full = (double)(n * parts) / (waves * (double)wave);
        if (full * (1.0 - 0.004 * waves) > filled) {
            filled = full * (1.0 - 0.004 * waves);
            best = n;
        }
    }
    return best;
}

conv_fft_status cf_resident_configure(cf_fused_config *c, const cf_shared_fft_problem problems[2],
                                      const cf_gpu_properties *properties, int64_t max_slices) {
    const cf_spectrum *spectrum = &problems[0].fft.transform.spectrum;
    cf_shared_fft_config base[2];
    candidate w = {.cycles = HUGE_VAL};
    resident_shape s = {.c = c,
                        .properties = properties,
                        .columns = spectrum->basis[2] / 2 + 1,
                        .held = c->form == CF_FUSED_GATHER ? c->out : c->in,
                        .number = (int)cf_dtype_bytes(spectrum->dtype),
                        .streamed = &problems[c->form != CF_FUSED_GATHER]};
    memcpy(s.basis, spectrum->basis, sizeof s.basis);
    if (c->groups > 1 || s.held > MAX_HELD || c->in * c->out == 1 || s.basis[0] > 1 || s.basis[1] < 2)
        return cf_fail(CONV_FFT_NOT_SUPPORTED,
                       "planes stay in registers only if there are two axes and one side has few columns in one group");
    const cf_axis_window *rows = &s.streamed->fft.transform.window.axis[1];
    const int64_t last = rows->first + (rows->count - 1) * rows->spread;
    s.pairs = last / 2 - rows->first / 2 + 1;
    c->bulk = properties->compute_major >= 9 && (c->bins % 2 == 0 || s.number == 8);
    s.whole_rows = c->bulk && s.number == 4 && has_whole_rows(s.streamed, c->form != CF_FUSED_SCATTER);
    CF_FORWARD(cf_shared_fft_configure_product(problems, 2, 2, false, properties, base, &c->cycles));
    CF_FORWARD(choose(&s, &w));
    w.prefetch = prefetch_of(&s, &w);
    fill_tiles(&s, &w, c, base);
    c->resident = c->rows_first = true;
    c->whole_rows = w.whole_rows;
    c->shared = shared_of(&s, &w);
    c->chunk = w.chunk;
    c->prefetch = w.prefetch;
    c->blocks = c->form == CF_FUSED_WEIGHTS ? 1 : cf_ceil_div(c->rows, w.planes);
    c->slices = c->form == CF_FUSED_WEIGHTS ? slices_of(&s, &w, max_slices) : 1;
    return CONV_FFT_SUCCESS;
}
