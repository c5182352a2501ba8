/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choices, and why.
 *
 * radices   One step a line while its points fit a thread's registers: no exchange at all. Longer lines: two steps of about equal
 *           radices, the first a multiple of 8 if it can be, so that threads side by side meet different banks; else three. Where there is
 *           one axis only, two steps from 33 points on: more threads share what little a line has to do.
 * planes    Frequency-major: as many as a block of 256 threads has lines, but at least 8 (64 bytes in FP32), if they fit. Else as many
 *           as give a block four warps.
 * threads   One for each line of the longest step, as registers allow.
 *
 * Kernels that multiply between two transforms are bound by their steps, not by memory: radices, planes and threads are those that cost
 * fewest cycles by a count of instructions and of accesses to shared memory (product_cycles()).
 */
#include "fbfft/tile.h"

#include "core/arith.h"
#include "core/dtype.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------------ choices */

/* Larger is worse: the largest radix decides on registers, beyond some number of points. */
static int badness(const int r[3], int few) {
    int largest = few;
    for (int i = 0; i < 3; ++i)
        largest = r[i] > largest ? r[i] : largest;
    return 4 * largest + (r[0] % 8 != 0) + 64 * (r[2] > 1);
}

static void choose_radices(int n, int most, int radix[3]) {
    int best = 1 << 30;
    radix[0] = n;
    radix[1] = radix[2] = 1;
    if (n <= most)
        return;
    for (int a = 2; a < n; ++a) {
        if (n % a)
            continue;
        for (int b = 1; b <= n / a; ++b) {
            const int r[3] = {a, n / a % b ? 1 : b, n / a % b ? n / a : n / a / b};
            if (r[1] == 1 && r[2] > 1)
                continue;
            const int bad = badness(r, most < 16 ? 8 : 16);
            if (bad < best) {
                best = bad;
                memcpy(radix, r, sizeof r);
            }
        }
    }
}

static int radix_product(const int r[3]) { return r[0] * r[1] * r[2]; }

static int most_points(const cf_tile_config *c) {
    int most = 1;
    for (int i = 0; i < 9; ++i)
        most = c->radix[i / 3][i % 3] > most ? c->radix[i / 3][i % 3] : most;
    return most;
}

/* Order of order.cuh: places of a line of axis 2. */
static int64_t line_size(const int r[3]) {
    const int64_t m = (int64_t)r[1] * r[2], cp = r[2] > 1 ? r[2] | 1 : r[2], mp = m > 1 ? (r[1] * cp) | 1 : r[1] * cp;
    return r[0] * mp;
}

static int64_t number_bytes(const cf_tile_config *c) {
    return (int64_t)cf_dtype_bytes(c->problem.fft.transform.spectrum.dtype);
}

static int64_t rows_of(const cf_tile_config *c) {
    const int n1 = radix_product(c->radix[1]);
    return c->kind == CF_TILE_PAIRS ? (n1 + 1) / 2 : n1;
}
static bool rides(const cf_tile_config *c) { return c->rides && radix_product(c->radix[2]) % 2 == 0; }
static int64_t least_pitch(const cf_tile_config *c) {
    const int extra = rides(c) ? 0 : radix_product(c->radix[2]) % 2 ? 1 : 2;
    return line_size(c->radix[2]) + (c->kind == CF_TILE_PAIRS ? extra : 0);
}
/* Lines along the axes before the last. */
static int64_t columns_of(const cf_tile_config *c) {
    const int n = radix_product(c->radix[2]);
    return c->kind != CF_TILE_PAIRS ? n : n / 2 + 1 - rides(c);
}
static int64_t least_plane(const cf_tile_config *c) { return radix_product(c->radix[0]) * rows_of(c) * c->pitch; }
static int64_t shared_bytes(const cf_tile_config *c) { return c->planes * (32 + c->plane * 2 * number_bytes(c)); }

static int registers_of(const cf_tile_config *c) {
    const int points = most_points(c) * (int)number_bytes(c) / 4;
    return points <= 8 ? 72 : points <= 16 ? 80 : points <= 32 ? 128 : points <= 48 ? 168 : 192;
}

/* Positions of axis x that may hold data. */
static int64_t extent(const cf_tile_config *c, int x) {
    const cf_axis_window *a = &c->problem.fft.transform.window.axis[x];
    return a->count == 0 ? 0 : c->problem.sliced[x] ? 1 : (a->count - 1) * a->spread + 1;
}

/* Lines of the longest step of a plane. */
static int64_t most_lines(const cf_tile_config *c) {
    const int64_t *basis = c->problem.fft.transform.spectrum.basis;
    const int64_t columns = columns_of(c);
    int64_t rows = extent(c, 1);
    if (c->kind == CF_TILE_PAIRS)
        rows = (rows + 1) / 2;
    int64_t most = 1;
    for (int x = 0; x < 3; ++x) {
        const int64_t others = x == 2 ? extent(c, 0) * rows : columns * (x == 1 ? extent(c, 0) : basis[1]);
        const int largest = c->radix[x][0] > c->radix[x][1] ? c->radix[x][0] : c->radix[x][1];
        if (basis[x] > 1)
            most = cf_max(
                most, others * (radix_product(c->radix[x]) / (largest > c->radix[x][2] ? largest : c->radix[x][2])));
    }
    return most;
}

/* --------------------------------------------------------------------------------------------------- bank conflicts */

/* Wavefronts of one access of a warp to complex numbers at these places. */
static int wavefronts(const int64_t place[32], int64_t number) {
    const int together = number == 8 ? 8 : 16; /* lanes that one wavefront can serve, and columns of banks */
    int total = 0;
    for (int first = 0; first < 32; first += together) {
        int most = 1;
        for (int i = 0; i < together; ++i) {
            int same = 0;
            for (int j = 0; j < together; ++j) {
                const int64_t a = place[first + i], b = place[first + j];
                same += a % together == b % together && (a != b || i == j);
            }
            most = same > most ? same : most;
        }
        total += most;
    }
    return total;
}

/* What a step along axis 2 and one along another axis cost with these distances, over a few warps. */
static int conflicts(const cf_tile_config *c) {
    const int64_t rows = cf_max(1, cf_min(rows_of(c), (extent(c, 1) + 1) / (c->kind == CF_TILE_PAIRS ? 2 : 1))),
                  depth = cf_max(1, extent(c, 0)), lines = c->planes * depth * rows;
    const int64_t columns = columns_of(c);
    const bool one_axis = radix_product(c->radix[0]) * radix_product(c->radix[1]) == 1;
    int total = 0;
    for (int warp = 0; warp < 4; ++warp) {
        int64_t by_line[32], by_column[32];
        for (int lane = 0; lane < 32; ++lane) {
            const int64_t n = 32 * warp + lane, line = n % lines, column = n % (c->planes * columns);
            by_line[lane] =
                line / (depth * rows) * c->plane + line / rows % depth * rows_of(c) * c->pitch + line % rows * c->pitch;
            const int64_t p = c->order == CF_TILE_BY_PLANE ? column % c->planes : column / columns;
            const int64_t k = c->order == CF_TILE_BY_PLANE ? column / c->planes : column % columns;
            by_column[lane] =
                p * c->plane + k % c->radix[2][0] * (line_size(c->radix[2]) / c->radix[2][0]) + k / c->radix[2][0];
        }
        if (!c->staged && lines >= 16)
            total += wavefronts(by_line, number_bytes(c));
        if (!one_axis)
            total += 2 * wavefronts(by_column, number_bytes(c));
    }
    return total;
}

/* The distances with the fewest conflicts, planes being up to so many numbers longer than need be. Staged lines are read as quads, which
 * an odd number of quads between them serves best. */
static void choose_distances(cf_tile_config *c, int64_t longer) {
    int best = INT32_MAX;
    int64_t pitch = 0, plane = 0;
    const int64_t least = least_pitch(c);
    for (int64_t i = least; i < least + 4; ++i) {
        if (c->staged && i % 4 != 2)
            continue;
        c->pitch = i;
        for (int64_t j = least_plane(c); j < least_plane(c) + longer; ++j) {
            c->plane = j;
            const int cost = (c->staged && j % 2) ? INT32_MAX : conflicts(c);
            if (cost < best) {
                best = cost;
                pitch = c->pitch;
                plane = c->plane;
            }
        }
    }
    c->pitch = pitch;
    c->plane = plane;
    c->shared = shared_bytes(c);
}

/* ------------------------------------------------------------------------------------------------------------- blocks */

/* Frequency-major: planes side by side are the pieces that are written, so eight if they fit at all. */
static void choose_planes(cf_tile_config *c, const cf_gpu_facts *facts, int64_t lines) {
    const bool pieces = c->order == CF_TILE_BY_PLANE;
    const int64_t threads = pieces ? 256 : 128;
    c->planes = pieces ? 32 : (int)cf_max(1, threads / lines);
    choose_distances(c, 16);
    while (c->planes > 1 && (c->shared > facts->shared_per_block || (c->planes * lines > threads && c->planes > 8))) {
        c->planes /= 2;
        choose_distances(c, 16);
    }
}

/* Blocks that a multiprocessor has room for, with so much shared memory each. */
static int64_t blocks_of(const cf_tile_config *c, int64_t shared, const cf_gpu_facts *facts) {
    const int64_t by_registers = facts->registers_per_multiprocessor / (c->threads * registers_of(c)),
                  by_shared = facts->shared_per_multiprocessor / (shared + facts->shared_reserved_per_block);
    return cf_min(cf_min(by_registers, by_shared), facts->threads_per_multiprocessor / c->threads);
}

/* Threads for so many lines, and what blocks then share a multiprocessor. */
static void choose_threads(cf_tile_config *c, const cf_gpu_facts *facts, int64_t total, int64_t shared) {
    const int64_t registers = registers_of(c),
                  most = cf_max(32, cf_min(512, facts->registers_per_multiprocessor / registers / 32 * 32));
    c->threads = (int)(cf_ceil_div(cf_ceil_div(total, cf_ceil_div(total, most)), 32) * 32);
    c->blocks = (int)cf_max(1, blocks_of(c, shared, facts));
}

static void choose_block(cf_tile_config *c, const cf_gpu_facts *facts) {
    const int64_t lines = most_lines(c);
    choose_planes(c, facts, lines);
    choose_threads(c, facts, c->planes * lines, c->shared);
}

static cf_tile_kind kind_of(const cf_tile_problem *p) {
    const int64_t *basis = p->fft.transform.spectrum.basis;
    if (p->fft.complex_signal)
        return CF_TILE_COMPLEX;
    if (basis[0] * basis[1] > 1)
        return CF_TILE_PAIRS;
    return basis[2] % 2 == 0 ? CF_TILE_HALVES : CF_TILE_SINGLE;
}

static cf_tile_order order_of(const cf_tile_problem *p) {
    if (p->column_stride == 1 && (p->fft.transform.spectrum.columns > 1 || p->fft.layout.frequency_major))
        return CF_TILE_BY_PLANE;
    return p->fft.layout.axis_stride[2] == 1 ? CF_TILE_BY_COLUMN : CF_TILE_BY_ROW;
}

/* Smallest and largest coordinate of any element of any plane. */
static void coordinates(const cf_axis_window *a, int64_t *low, int64_t *high) {
    const int64_t counts[3] = {a->tiles, a->shifts, a->phases}, steps[3] = {a->tile_step, a->shift_step, a->phase_step};
    *low = *high = a->origin;
    for (int i = 0; i < 3; ++i) {
        const int64_t far = (counts[i] - 1) * steps[i];
        *low += cf_min(far, 0);
        *high += cf_max(far, 0);
    }
    *high += cf_max(a->count - 1, 0) * a->step;
}

bool cf_tile_checked(const cf_axis_window *a) {
    int64_t low, high;
    coordinates(a, &low, &high);
    return low < cf_max(a->lower, 0) || high >= cf_min(a->upper, a->size);
}

static conv_fft_status check_extents(const cf_fft_problem *p) {
    const int64_t most = (int64_t)1 << 30;
    for (int x = 0; x < 3; ++x) {
        int64_t low, high;
        coordinates(&p->transform.window.axis[x], &low, &high);
        if (low < -most || high > most || p->transform.window.axis[x].size > most)
            return cf_fail(CONV_FFT_NOT_SUPPORTED,
                           "the signal's axis %d reaches from %lld to %lld of %lld; the GPU's transforms take 2^30", x,
                           (long long)low, (long long)high, (long long)p->transform.window.axis[x].size);
    }
    return CONV_FFT_SUCCESS;
}

cf_tile_problem cf_tile_problem_of(const cf_fft_problem *fft) {
    const int64_t columns = fft->transform.spectrum.columns;
    const bool major = fft->layout.frequency_major;
    return (cf_tile_problem){.fft = *fft,
                             .rows = 1,
                             .row_stride = major ? columns : fft->layout.sample_stride,
                             .column_split = columns,
                             .column_stride = major ? 1 : fft->layout.channel_stride};
}

static bool is_staged(const cf_tile_config *c) {
    return c->kind == CF_TILE_PAIRS && number_bytes(c) == 4 && c->radix[2][1] == 1 &&
           radix_product(c->radix[2]) % 4 == 0 && extent(c, 2) > 0;
}

/* Whether every row of every plane, as much of it as lies in the signal, is whole pieces of so many numbers at multiples of their size,
 * if the pointers are. */
static bool has_pieces(const cf_tile_config *c, int64_t wide) {
    const cf_transform_desc *t = &c->problem.fft.transform;
    const cf_axis_window *w = &t->window.axis[2];
    const int64_t counts[] = {2, w->tiles, w->shifts, w->phases},
                  steps[] = {w->origin, w->tile_step, w->shift_step, w->phase_step};
    bool whole = t->tensor.dtype == CONV_FFT_FP32 && t->tensor.axis_stride[2] == 1 && w->first % wide == 0 &&
                 w->spread == 1 && w->step == 1 && w->count % wide == 0;
    if (cf_tile_checked(w))
        whole = whole && w->mode == CONV_FFT_PAD_ZEROS && cf_max(w->lower, 0) % wide == 0 &&
                cf_min(w->upper, w->size) % wide == 0;
    for (int i = 0; i < 4; ++i)
        whole = whole && (counts[i] == 1 || steps[i] % wide == 0);
    for (int x = 0; x < 2; ++x)
        whole = whole && (t->window.axis[x].size == 1 || t->tensor.axis_stride[x] % wide == 0);
    return whole && t->tensor.sample_stride % wide == 0 && t->tensor.channel_stride % wide == 0 &&
           t->tensor.group_stride % wide == 0;
}

/* What does not depend on how planes share a block. */
static conv_fft_status choose_lines(const cf_tile_problem *problem, int points, cf_tile_config *c) {
    const int64_t *basis = problem->fft.transform.spectrum.basis;
    CF_FORWARD(check_extents(&problem->fft));
    c->problem = *problem;
    c->kind = kind_of(problem);
    const int most = points * 4 / (int)number_bytes(c);
    for (int x = 0; x < 3; ++x)
        choose_radices((int)(x == 2 && c->kind == CF_TILE_HALVES ? basis[x] / 2 : basis[x]), most, c->radix[x]);
    const cf_transform_desc *t = &problem->fft.transform;
    c->planes_touch = t->tensor.channel_stride == 1 && t->tensor.axis_stride[2] != 1 && t->spectrum.columns > 1;
    c->staged = is_staged(c);
    c->wide = !c->staged ? 1 : has_pieces(c, 4) ? 4 : has_pieces(c, 2) ? 2 : 1;
    return CONV_FFT_SUCCESS;
}

static conv_fft_status check_shared(int64_t bytes, const cf_gpu_facts *facts) {
    if (bytes > facts->shared_per_block)
        return cf_fail(CONV_FFT_NOT_SUPPORTED,
                       "a plane of this basis needs %lld bytes of shared memory; %s has %lld for a block",
                       (long long)bytes, facts->name, (long long)facts->shared_per_block);
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_tile_configure(const cf_tile_problem *problem, const cf_gpu_facts *facts, cf_tile_config *config) {
    cf_tile_config c = {.order = order_of(problem), .rides = true};
    const int64_t *basis = problem->fft.transform.spectrum.basis;
    const bool one_axis = basis[0] * basis[1] == 1;
    CF_FORWARD(choose_lines(problem, one_axis ? 32 : 64, &c));
    c.direct = (c.kind == CF_TILE_PAIRS || c.kind == CF_TILE_COMPLEX) && c.order != CF_TILE_BY_ROW &&
               (c.order == CF_TILE_BY_PLANE || !one_axis);
    for (int x = 0; x < 3; ++x)
        c.direct = c.direct && problem->fft.transform.window.axis[x].count > 0;
    choose_block(&c, facts);
    CF_FORWARD(check_shared(c.shared, facts));
    *config = c;
    return CONV_FFT_SUCCESS;
}

int64_t cf_tile_product_shared(const cf_tile_config *c, int count, int buffers) {
    return c->planes * (32 * count + c->plane * buffers * 2 * number_bytes(c));
}

/* What a warp spends on a step of lines of so many points, in cycles of a multiprocessor: instructions go four at a time, points
 * through shared memory twice, sixteen a cycle; and a hundred instructions find out which points. */
static double step_cycles(int radix) { return radix * ((2.5 * log2(radix) + 4.0) / 4.0 + 4.0) + 25.0; }

/* Warps' cycles for all steps of a block. */
static double block_cycles(const cf_tile_config *c) {
    const int64_t *basis = c->problem.fft.transform.spectrum.basis;
    int64_t rows = extent(c, 1);
    if (c->kind == CF_TILE_PAIRS)
        rows = (rows + 1) / 2;
    const int64_t lines[3] = {columns_of(c) * basis[1], columns_of(c) * extent(c, 0), extent(c, 0) * rows};
    double cycles = 6.0 * (double)cf_ceil_div(c->planes * lines[2] * radix_product(c->radix[2]), c->threads);
    for (int x = 0; x < 3; ++x)
        for (int step = 0; step < 3 && (step == 0 || c->radix[x][step] > 1) && basis[x] > 1; ++step) {
            const int64_t tasks = c->planes * lines[x] * (radix_product(c->radix[x]) / c->radix[x][step]);
            cycles += (double)cf_ceil_div(tasks, c->threads) * step_cycles(c->radix[x][step]);
        }
    return cycles * c->threads / 32.0;
}

/* Of all signals' planes: cycles of a plane, as the warps of a multiprocessor hide each other's latency. */
static double product_cycles(const cf_tile_config *configs, int count, int64_t shared, const cf_gpu_facts *facts) {
    const cf_tile_config *c = &configs[0];
    const int64_t blocks = blocks_of(c, shared, facts);
    /* Long radices have work of their own to go on with; a block that waits at a barrier needs others. */
    const double warps = (double)(blocks * c->threads) / 32.0, alone = most_points(c) >= 24 ? 10.0 : 14.0;
    const double hidden = warps / (warps + alone) * (double)blocks / ((double)blocks + 0.25);
    double cycles = 0.0;
    for (int i = 0; i < count; ++i)
        cycles += block_cycles(&configs[i]);
    return blocks > 0 ? cycles / c->planes / hidden : HUGE_VAL;
}

conv_fft_status cf_tile_configure_product(const cf_tile_problem *problems, int count, int buffers,
                                          const cf_gpu_facts *facts, cf_tile_config *configs, double *cycles) {
    enum {
        MOST_PLANES = 32,
        MOST_THREADS = 384
    };
    double best = HUGE_VAL;
    int64_t least = INT64_MAX;
    cf_tile_config trial[2];
    const int longest[] = {64, 10}; /* radices */
    for (int i = 0; i < 2; ++i) {
        bool staged = false;
        for (int side = 0; side < count; ++side) {
            trial[side] = (cf_tile_config){.order = CF_TILE_BY_COLUMN};
            CF_FORWARD(choose_lines(&problems[side], longest[i], &trial[side]));
            staged = staged || trial[side].staged;
        }
        cf_tile_config common = trial[0];
        common.staged = staged;
        common.planes = (int)cf_max(1, 128 / most_lines(&common));
        choose_distances(&common, 2); /* neighbouring lanes are in one plane */
        for (int planes = 1; planes <= MOST_PLANES; ++planes)
            for (int threads = 64; threads <= MOST_THREADS; threads += 32) {
                for (int side = 0; side < count; ++side) {
                    trial[side].pitch = common.pitch;
                    trial[side].plane = common.plane;
                    trial[side].planes = planes;
                    trial[side].threads = threads;
                    trial[side].shared = shared_bytes(&trial[side]);
                }
                const int64_t shared = cf_tile_product_shared(&trial[0], count, buffers);
                least = cf_min(least, shared);
                if (shared > facts->shared_per_block)
                    continue;
                const double expected = product_cycles(trial, count, shared, facts);
                if (expected >= best)
                    continue;
                *cycles = best = expected;
                memcpy(configs, trial, (size_t)count * sizeof *configs);
            }
    }
    if (best == HUGE_VAL)
        return cf_fail(CONV_FFT_NOT_SUPPORTED,
                       "%d buffers of this basis need %lld bytes of shared memory; %s has %lld for a block", buffers,
                       (long long)least, facts->name, (long long)facts->shared_per_block);
    const int64_t shared = cf_tile_product_shared(&configs[0], count, buffers);
    for (int side = 0; side < count; ++side) {
        cf_tile_config *c = &configs[side];
        c->blocks = (int)blocks_of(c, shared, facts);
    }
    return CONV_FFT_SUCCESS;
}

cf_tile_config cf_tile_unaligned(const cf_tile_config *config) {
    cf_tile_config c = *config;
    c.wide = 1;
    return c;
}

cf_tile_call cf_tile_call_of(const cf_tile_problem *p, int64_t rows, int64_t unit) {
    const cf_transform_desc *t = &p->fft.transform;
    const int64_t own = p->unit ? rows * p->unit : unit;
    return (cf_tile_call){.planes = rows * p->rows * t->spectrum.columns,
                          .columns = t->spectrum.columns,
                          .row_step = 1,
                          .sample_stride = t->tensor.sample_stride,
                          .group_stride = t->tensor.group_stride,
                          .row_split = p->split ? rows * p->split : INT64_MAX,
                          .row_split_stride = own,
                          .row_stride = p->row_stride,
                          .column_split = p->column_split,
                          .column_split_stride = p->column_split_stride,
                          .column_stride = p->column_stride,
                          .bin_unit = own,
                          .scale = t->scale};
}
