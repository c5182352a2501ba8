/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choices, and why.
 *
 * radices   One step a line while its points fit a thread's registers: no exchange at all. Longer lines: two steps of about equal
 *           radices, the first a multiple of 8 if it can be, so that threads side by side meet different banks; else three. Where there is
 *           one axis only, two steps from 33 points on: more threads share what little a line has to do. Columns of rows in pairs: the
 *           first radix leaves an even number, and is small, for a thread has both rows of its pairs.
 * planes    Frequency-major: those that a block of 128 threads has lines for, but at least 8; 4 if no two blocks of 8 fit a multiprocessor.
 *           Where spectra are loaded, or elements of neighbouring planes touch: of 256 threads, but at least 16, if they fit. Else as
 *           many as give a block four warps.
 * threads   One for each line of the longest step, as registers allow.
 *
 * Kernels that multiply between two transforms are bound by their instructions, not by memory: radices, planes and threads are those that
 * cost fewest cycles by a count of instructions and of accesses to shared memory (product_cycles()), distances those that bring threads
 * together in banks least (spread_banks()). Their numbers are from profiles on an H200.
 */
#include "fbfft/shared_memory/config.h"

#include "core/arith.h"
#include "core/dtype.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------------ choices */

/* Of which one of several steps a thread does two tasks at a time. */
typedef enum two_tasks {
    NEVER_TWO,
    FIRST_TWO, /* columns that part rows: ColumnTask::TWO of steps.cuh */
    LAST_TWO   /* MirrorTask of conv/fused/bins.cuh */
} two_tasks;

static two_tasks two_along(const cf_tile_config *c, int x) {
    if (x == 1 && c->kind == CF_TILE_PAIRS)
        return FIRST_TWO;
    /* Sums of long lines take one block of as many threads as there are, which a short last step has tasks for as well. */
    const bool sums = c->sums && c->problem.fft.transform.spectrum.basis[2] > 12288;
    return x == 2 && c->kind == CF_TILE_HALVES && (c->mirrors || sums) ? LAST_TWO : NEVER_TWO;
}

/* Points of the step that has most. */
static int points_of(const int r[3], two_tasks two) {
    int points[3] = {r[0], r[1], r[2]};
    if (two == FIRST_TWO && r[1] > 1 && r[1] * r[2] % 2 == 0)
        points[0] *= 2;
    if (two == LAST_TWO && r[1] > 1)
        points[r[2] > 1 ? 2 : 1] *= 2;
    return (int)cf_max(points[0], cf_max(points[1], points[2]));
}

/* Larger is worse: the points of a thread decide on registers, beyond some number of them. */
static int badness(const int r[3], int few, two_tasks two) {
    const int points = points_of(r, two), order = two == FIRST_TWO ? 40 * (r[1] * r[2] % 2) : r[0] % 8 != 0;
    return 4 * (points > few ? points : few) + order + 64 * (r[2] > 1);
}

static void choose_radices(int n, int most, two_tasks two, int radix[3]) {
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
            const int bad = badness(r, most < 16 ? 8 : 16, two);
            /* Of equals, a short last step of columns is better, and a long first one of lines that fit registers. */
            const bool equal =
                bad == best && (two == FIRST_TWO || (two == LAST_TWO && a > radix[0] && points_of(r, two) <= 16));
            if (bad < best || equal) {
                best = bad;
                memcpy(radix, r, sizeof r);
            }
        }
    }
}

static int radix_product(const int r[3]) { return r[0] * r[1] * r[2]; }

static int most_points(const cf_tile_config *c) {
    int most = 1;
    for (int x = 0; x < 3; ++x)
        most = (int)cf_max(most, points_of(c->radix[x], two_along(c, x)));
    return most;
}

/* Order of in_place_order.cuh: places of a line of axis 2. */
static int64_t line_size(const int r[3]) {
    const int64_t m = (int64_t)r[1] * r[2], cp = r[2] > 1 ? r[2] | 1 : r[2], mp = m > 1 ? (r[1] * cp) | 1 : r[1] * cp;
    return r[0] * mp;
}

/* In shared memory and registers. */
static int64_t number_bytes(const cf_tile_config *c) {
    return (int64_t)cf_dtype_bytes(cf_compute_dtype(c->problem.fft.transform.spectrum.dtype));
}

static int64_t rows_of(const cf_tile_config *c) {
    const int n1 = radix_product(c->radix[1]);
    return c->kind == CF_TILE_PAIRS ? (n1 + 1) / 2 : n1;
}
static bool rides(const cf_tile_config *c) { return c->rides && radix_product(c->radix[2]) % 2 == 0; }
static int64_t least_pitch(const cf_tile_config *c) {
    const int extra = rides(c) ? 0 : radix_product(c->radix[2]) % 2 ? 1 : 2;
    const int64_t least = line_size(c->radix[2]) + (c->kind == CF_TILE_PAIRS ? extra : 0);
    const cf_axis_window *w = &c->problem.fft.transform.window.axis[2];
    return c->early ? cf_max(least, (w->first + w->count + c->early + 3) / 4 * 4) : least;
}
/* Lines along the axes before the last. */
static int64_t columns_of(const cf_tile_config *c) {
    const int n = radix_product(c->radix[2]);
    return c->kind != CF_TILE_PAIRS ? n : n / 2 + 1 - rides(c);
}
static int64_t least_plane(const cf_tile_config *c) { return radix_product(c->radix[0]) * rows_of(c) * c->pitch; }
static int64_t shared_bytes(const cf_tile_config *c) {
    return c->planes * (32 + c->plane * 2 * number_bytes(c)) + (c->problem.scaled ? 64 : 0); /* what warps find */
}

/* A transform that stores a frequency-major spectrum and loads one plane after the other. */
static bool stores_pieces(const cf_tile_config *c) {
    return c->order == CF_TILE_BY_PLANE && !c->problem.fft.transform.inverse && !c->planes_touch;
}

/* Positions of axis x that may hold data. */
static int64_t extent(const cf_tile_config *c, int x) {
    const cf_axis_window *a = &c->problem.fft.transform.window.axis[x];
    return a->count == 0 ? 0 : c->problem.sliced[x] ? 1 : (a->count - 1) * a->spread + 1;
}

/* The axis next to the spectrum. */
static int last_axis(const cf_tile_config *c) {
    return radix_product(c->radix[0]) > 1 ? 0 : radix_product(c->radix[1]) > 1 || c->kind == CF_TILE_PAIRS ? 1 : 2;
}

/* Points of the tasks of the last step; of lines alone, a pair of bins (get_bins() of conv/fused/bins.cuh). */
static int last_points(const cf_tile_config *c) {
    const int x = last_axis(c), *r = c->radix[x];
    return x == 2 ? 2 : r[2] > 1 ? r[2] : r[1] > 1 ? r[1] : r[0];
}

/* Complex numbers that a thread keeps from one row to the next. */
static int64_t kept_numbers(const cf_tile_config *c) {
    if (!c->sums)
        return 0;
    const int x = last_axis(c), points = last_points(c), n = radix_product(c->radix[2]);
    const int64_t lines = x == 0 ? columns_of(c) * radix_product(c->radix[1]) : columns_of(c) * extent(c, 0);
    const int64_t tasks = x == 2 ? n / 2 + 1 : lines * (radix_product(c->radix[x]) / points);
    return cf_ceil_div(c->planes * tasks, c->threads) * points;
}

/* Of one step an axis, as few as compilers spill nothing with: blocks of a few warps, each with tens of loads on their way, hide each other's barriers. */
static int frequency_major_registers(int points) {
    return points <= 16 ? 64 : points <= 24 ? 80 : points <= 40 ? 96 : points <= 48 ? 128 : points <= 56 ? 144 : 168;
}

/* Kernels that multiply: a few spills cost less than blocks that find no room. */
static int product_registers(const cf_tile_config *c, int points, int number) {
    const bool lines = last_axis(c) == 2;
    const int kept = (int)kept_numbers(c) * number, step = points <= 12            ? 64
                                                           : points <= 18          ? 80
                                                           : points <= 24 && lines ? 96
                                                           : points <= 32          ? 128
                                                                                   : 168;
    if (!c->sums)
        return step;
    if (lines)
        return (int)cf_max(step, (step < 96 ? step : 64) + 2 * kept);
    /* Sums, and what is multiplied: both factors if they are short. */
    const bool both = last_points(c) <= 16;
    const int last = 2 * kept + ((both ? 4 : 2) * last_points(c) + (both ? 40 : 56)) * number;
    return (int)cf_max(step, last <= 112 && number == 1 ? 80 : last);
}

static int registers_of(const cf_tile_config *c) {
    const int number = (int)number_bytes(c) / 4, points = most_points(c) * number;
    if (!c->rides)
        return product_registers(c, points, number);
    const bool major = c->order == CF_TILE_BY_PLANE, single = c->radix[0][1] * c->radix[1][1] * c->radix[2][1] == 1;
    return major && single         ? frequency_major_registers(points)
           : points <= 8 && !major ? 72
           : points <= 16          ? 80
           : points <= 32          ? 128
           : points <= 48          ? 168
                                   : 192;
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
    int at[32], total = 0;
    for (int lane = 0; lane < 32; ++lane)
        at[lane] = (int)place[lane];
    for (int first = 0; first < 32; first += together) {
        int most = 1;
        for (int i = first; i < first + together; ++i) {
            int others = 0;
            for (int j = first; j < first + together; ++j)
                others += (((at[i] ^ at[j]) & (together - 1)) == 0) & (at[i] != at[j]);
            most = 1 + others > most ? 1 + others : most;
        }
        total += most;
    }
    return total;
}

/* What a step along axis 2 and one along another axis cost with these distances, over a few warps. */
static int conflicts(const cf_tile_config *c) {
    const int rows = (int)cf_max(1, cf_min(rows_of(c), (extent(c, 1) + 1) / (c->kind == CF_TILE_PAIRS ? 2 : 1))),
              depth = (int)cf_max(1, extent(c, 0)), lines = c->planes * depth * rows;
    const int columns = (int)columns_of(c), radix = c->radix[2][0];
    const int64_t slab = rows_of(c) * c->pitch, step = line_size(c->radix[2]) / radix, number = number_bytes(c);
    const bool one_axis = radix_product(c->radix[0]) * radix_product(c->radix[1]) == 1;
    int total = 0;
    for (int warp = 0; warp < 4; ++warp) {
        int64_t by_line[32], by_column[32];
        for (int lane = 0; lane < 32; ++lane) {
            const int n = 32 * warp + lane, line = n % lines, column = n % (c->planes * columns);
            by_line[lane] = line / (depth * rows) * c->plane + line / rows % depth * slab + line % rows * c->pitch;
            const int p = c->order == CF_TILE_BY_PLANE ? column % c->planes : column / columns;
            const int k = c->order == CF_TILE_BY_PLANE ? column / c->planes : column % columns;
            by_column[lane] = p * c->plane + k % radix * step + k / radix;
        }
        if (!c->staged && lines >= 16)
            total += wavefronts(by_line, number);
        if (!one_axis)
            total += 2 * wavefronts(by_column, number);
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

/* Whether a multiprocessor has room for two blocks with a thread for each line. */
static bool two_fit(const cf_tile_config *c, const cf_gpu_facts *facts, int64_t lines) {
    return 2 * c->shared <= facts->shared_per_multiprocessor &&
           2 * c->planes * lines * registers_of(c) <= facts->registers_per_multiprocessor;
}

/* Forward, of scaled spectra: a block whose planes are all of one row, and whole scales, need not be told what these are. */
static bool finds_scales(const cf_tile_config *c) {
    const cf_transform_desc *t = &c->problem.fft.transform;
    return !t->inverse && c->problem.scaled && c->problem.rows == 1 && c->planes % 8 == 0 &&
           t->spectrum.columns % c->planes == 0;
}

/* Frequency-major: planes side by side are the pieces that are moved. Those that are stored meet in the L2 cache before they go to memory, so
 * 8 planes do (64 bytes in FP32), or 4 where 8 leave room for one block only, unless they would be parts of sectors; those that are loaded had
 * better be whole lines of the cache. */
static void choose_planes(cf_tile_config *c, const cf_gpu_facts *facts, int64_t lines) {
    const bool pieces = c->order == CF_TILE_BY_PLANE, stores = stores_pieces(c);
    const int few = cf_dtype_bytes(c->problem.fft.transform.spectrum.dtype) == 2 ? 8 : 4;
    const int64_t threads = pieces && !stores ? 256 : 128;
    const int least = stores ? 8 : 16;
    c->planes = pieces ? 32 : (int)cf_max(1, threads / lines);
    choose_distances(c, 16);
    while (c->planes > 1 &&
           (c->shared > facts->shared_per_block || (c->planes * lines > threads && c->planes > least) ||
            (stores && c->planes > few && !two_fit(c, facts, lines)))) {
        c->planes /= 2;
        choose_distances(c, 16);
    }
    cf_tile_config smaller = *c;
    while (smaller.planes > 8 && !finds_scales(&smaller))
        smaller.planes /= 2;
    if (finds_scales(&smaller) && smaller.planes < c->planes) {
        c->planes = smaller.planes;
        choose_distances(c, 16);
    }
    c->finds_scales = finds_scales(c);
}

/* Blocks that registers have room for. Warps of kernels that multiply are few, and a quarter of a multiprocessor has whole ones; a block that
 * has none but itself may do with fewer. */
static int64_t room_for(const cf_tile_config *c, const cf_gpu_facts *facts) {
    const int64_t all = facts->registers_per_multiprocessor, registers = registers_of(c);
    if (c->rides)
        return all / (c->threads * registers);
    const int64_t blocks = 4 * (all / (4 * 32 * registers)) / (c->threads / 32);
    return blocks == 0 && c->threads * (registers * 4 / 5) <= all ? 1 : blocks;
}

/* Blocks that a multiprocessor has room for, with so much shared memory each. */
static int64_t blocks_of(const cf_tile_config *c, int64_t shared, const cf_gpu_facts *facts) {
    const int64_t by_registers = room_for(c, facts),
                  by_shared = facts->shared_per_multiprocessor / (shared + facts->shared_reserved_per_block),
                  by_threads = facts->threads_per_multiprocessor / c->threads;
    return cf_min(cf_min(by_registers, by_shared), cf_min(by_threads, facts->blocks_per_multiprocessor));
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

static bool axis_reaches(const cf_axis_window *a) {
    const int64_t most = (int64_t)1 << 30;
    int64_t low, high;
    coordinates(a, &low, &high);
    return low >= -most && high <= most && a->size <= most;
}

bool cf_tile_reaches(const cf_window *w) {
    return axis_reaches(&w->axis[0]) && axis_reaches(&w->axis[1]) && axis_reaches(&w->axis[2]);
}

static conv_fft_status check_extents(const cf_fft_problem *p) {
    for (int x = 0; x < 3; ++x) {
        int64_t low, high;
        coordinates(&p->transform.window.axis[x], &low, &high);
        if (!axis_reaches(&p->transform.window.axis[x]))
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
                             .scaled = cf_spectrum_is_scaled(fft->transform.spectrum.dtype),
                             .row_stride = major ? columns : fft->layout.sample_stride,
                             .column_split = columns,
                             .column_stride = major ? 1 : fft->layout.channel_stride};
}

static bool is_staged(const cf_tile_config *c) {
    return c->kind == CF_TILE_PAIRS && number_bytes(c) == 4 && c->radix[2][1] == 1 &&
           radix_product(c->radix[2]) % 4 == 0 && extent(c, 2) > 0;
}

bool cf_tile_has_pieces(const cf_tile_config *c, int64_t wide) {
    const cf_transform_desc *t = &c->problem.fft.transform;
    const cf_axis_window *w = &t->window.axis[2];
    const int64_t counts[] = {2, w->tiles, w->shifts, w->phases},
                  steps[] = {w->origin, w->tile_step, w->shift_step, w->phase_step};
    bool whole =
        t->tensor.axis_stride[2] == 1 && w->first % wide == 0 && w->spread == 1 && w->step == 1 && w->count % wide == 0;
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

/* Forward, so many numbers of a row at a time, at multiples of their size in memory, wherever the row begins: by how many the first piece is
 * early, or -1. What a piece has beyond the window waits unread. */
static int early_pieces(const cf_tile_config *c, int64_t wide) {
    const cf_transform_desc *t = &c->problem.fft.transform;
    cf_tile_config even = *c;
    cf_axis_window *const w = &even.problem.fft.transform.window.axis[2];
    const int64_t first = w->origin - w->first;
    const int early = (int)((first % wide + wide) % wide);
    if (t->inverse || !c->staged || c->planes_touch || (cf_tile_checked(w) && w->mode != CONV_FFT_PAD_ZEROS) ||
        cf_max(w->lower, 0) % wide || cf_min(w->upper, w->size) % wide || (early == 0 && w->first % wide))
        return -1;
    w->origin = w->first = 0;
    w->count = w->count / wide * wide;
    return cf_tile_has_pieces(&even, wide) ? early : -1;
}

/* What does not depend on how planes share a block. points: that one step along axis 2 may have; of_columns: along the others. */
static conv_fft_status choose_lines(const cf_tile_problem *problem, int points, int of_columns, cf_tile_config *c) {
    const int64_t *basis = problem->fft.transform.spectrum.basis;
    CF_FORWARD(check_extents(&problem->fft));
    c->problem = *problem;
    c->kind = kind_of(problem);
    for (int x = 0; x < 3; ++x)
        choose_radices((int)(x == 2 && c->kind == CF_TILE_HALVES ? basis[x] / 2 : basis[x]),
                       (x == 2 ? points : of_columns) * 4 / (int)number_bytes(c), two_along(c, x), c->radix[x]);
    const cf_transform_desc *t = &problem->fft.transform;
    c->planes_touch = t->tensor.channel_stride == 1 && t->tensor.axis_stride[2] != 1 && t->spectrum.columns > 1;
    c->staged = is_staged(c);
    /* Products move rows of any lines in pieces: conv/fused/plane_access.cuh. */
    const bool wide = c->staged || (!c->rides && number_bytes(c) == 4 && !c->planes_touch &&
                                    (c->kind == CF_TILE_PAIRS || c->kind == CF_TILE_HALVES));
    c->wide = 1;
    c->early = 0;
    for (int pieces = 4; wide && pieces > c->wide; pieces /= 2) {
        const int early = cf_tile_has_pieces(c, pieces) ? 0 : c->rides ? early_pieces(c, pieces) : -1;
        if (early >= 0) {
            c->wide = pieces;
            c->early = early;
        }
    }
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
    CF_FORWARD(choose_lines(problem, one_axis ? 32 : 64, 64, &c));
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
 * through shared memory twice, sixteen a cycle; and forty instructions find out which points. */
enum {
    TASK_CYCLES = 10
};
static const double SPILLS = 1.8, /* columns of more than 48 points, which are transformed twice in one task */
    QUADS = 0.85;                 /* rows that wait are read four at a time */
static double step_cycles(int radix) { return radix * (0.9 * log2(radix) + 3.5) + TASK_CYCLES; }

/* Warps' cycles for all steps of a block. */
static double block_cycles(const cf_tile_config *c) {
    const int64_t *basis = c->problem.fft.transform.spectrum.basis;
    int64_t rows = extent(c, 1);
    if (c->kind == CF_TILE_PAIRS)
        rows = (rows + 1) / 2;
    const int64_t lines[3] = {columns_of(c) * basis[1], columns_of(c) * extent(c, 0), extent(c, 0) * rows};
    double cycles = 3.0 * (double)cf_ceil_div(c->planes * lines[2] * extent(c, 2), c->threads);
    for (int x = 0; x < 3; ++x)
        for (int step = 0; step < 3 && (step == 0 || c->radix[x][step] > 1) && basis[x] > 1; ++step) {
            const int64_t tasks = c->planes * lines[x] * (radix_product(c->radix[x]) / c->radix[x][step]);
            const bool two = step == 0 && two_along(c, x) == FIRST_TWO && c->radix[x][1] > 1 &&
                             c->radix[x][1] * c->radix[x][2] % 2 == 0;
            const double task = step_cycles(c->radix[x][step]) * (x < 2 && c->radix[x][step] > 48 ? SPILLS : 1.0) *
                                (x == 2 && c->staged ? QUADS : 1.0);
            cycles += two ? (double)cf_ceil_div(tasks / 2, c->threads) * (2.0 * task - TASK_CYCLES)
                          : (double)cf_ceil_div(tasks, c->threads) * task;
        }
    return cycles * c->threads / 32.0;
}

/* Products where one factor, or the sums, are in shared memory. */
static double sum_cycles(const cf_tile_config *c, double accesses) {
    const int64_t *basis = c->problem.fft.transform.spectrum.basis;
    return 2.0 * accesses * (double)(c->planes * columns_of(c) * basis[0] * basis[1]) / 32.0;
}

/* Of all signals' planes: cycles of a plane, as the warps of a multiprocessor hide each other's latency. */
static double product_cycles(const cf_tile_config *configs, int count, int64_t shared, const cf_gpu_facts *facts) {
    const cf_tile_config *c = &configs[0];
    const int64_t blocks = blocks_of(c, shared, facts);
    /* Long radices have work of their own to go on with; a block that waits at a barrier needs others. */
    const double warps = (double)(blocks * c->threads) / 32.0,
                 alone = (c->sums ? last_points(c) : most_points(c)) >= 24 ? 10.0 : 14.0;
    const double apart = blocks > 1 ? (double)blocks / ((double)blocks + 0.06) : 0.7;
    const double hidden = warps / (warps + alone) * apart;
    double cycles = 0.0;
    for (int i = 0; i < count; ++i)
        cycles += block_cycles(&configs[i]);
    if (c->sums)
        cycles += last_points(c) > 16 ? sum_cycles(c, 2.0) : 0.0;
    if (last_points(c) > 12 && kept_numbers(c) > last_points(c))
        cycles *= 1.3; /* sums of several tasks of many points each: compilers spill */
    if (!c->sums && !configs[count - 1].problem.fft.transform.inverse)
        cycles += sum_cycles(c, 4.0);
    /* Blocks of several warps share what they read of the weights. */
    return blocks > 0 ? cycles / c->planes / hidden * (c->threads == 32 ? 1.06 : 1.0) : HUGE_VAL;
}

/* A way to share a block. */
typedef struct way {
    cf_tile_config tile[2];
    double cycles;
} way;

/* How much of the cycles goes to shared memory. */
static const double shared_part = 0.4;

/* Of lines in two steps, either radix may come first; and the distances that bring threads together in banks least, unless they take too much
 * room. */
static void spread_banks(way *w, int count, int buffers, const cf_gpu_facts *facts) {
    const cf_tile_config before = w->tile[0];
    const bool two_steps = before.radix[2][1] > 1 && before.radix[2][2] == 1;
    cf_tile_config best = before, trial = before;
    cf_tile_accesses accesses;
    double least = HUGE_VAL;
    for (int swapped = 0; swapped < (two_steps ? 2 : 1); ++swapped) {
        trial.radix[2][0] = before.radix[2][swapped];
        trial.radix[2][1] = before.radix[2][two_steps ? 1 - swapped : 1];
        const int64_t pitch = least_pitch(&trial);
        cf_tile_find_accesses(&trial, &accesses);
        for (trial.pitch = pitch; trial.pitch < pitch + 8; ++trial.pitch)
            for (int longer = 0; longer < (before.planes > 1 ? 16 : 1); longer += 4) {
                trial.plane = least_plane(&trial) + longer;
                if (trial.staged && (trial.pitch % 4 != 2 || trial.plane % 2))
                    continue;
                for (int side = 0; side < count; ++side) {
                    memcpy(w->tile[side].radix[2], trial.radix[2], sizeof trial.radix[2]);
                    w->tile[side].pitch = trial.pitch;
                    w->tile[side].plane = trial.plane;
                    w->tile[side].shared = shared_bytes(&w->tile[side]);
                }
                const int64_t shared = cf_tile_product_shared(&w->tile[0], count, buffers);
                if (shared > facts->shared_per_block)
                    continue;
                double cycles = product_cycles(w->tile, count, shared, facts);
                if (cycles >= least * 0.995) /* whatever the banks are */
                    continue;
                cycles *= 1.0 - shared_part + shared_part * cf_tile_wavefronts(&accesses, trial.pitch, trial.plane);
                if (cycles >= least * 0.995)
                    continue;
                least = cycles;
                best = trial;
            }
    }
    for (int side = 0; side < count; ++side) {
        memcpy(w->tile[side].radix[2], best.radix[2], sizeof best.radix[2]);
        w->tile[side].pitch = best.pitch;
        w->tile[side].plane = best.plane;
        w->tile[side].shared = shared_bytes(&w->tile[side]);
    }
    if (least < HUGE_VAL)
        w->cycles = least;
}

/* The fewest cycles of any number of threads, with so many planes. */
static void choose_product_threads(way *w, int count, int planes, int buffers, const cf_gpu_facts *facts) {
    enum {
        MOST_THREADS = 512,
        MOST_REGISTERS = 200 /* with more, a thread has none for anything else */
    };
    int best = 32;
    w->cycles = HUGE_VAL;
    for (int side = 0; side < count; ++side) {
        w->tile[side].planes = planes;
        w->tile[side].shared = shared_bytes(&w->tile[side]);
    }
    const int64_t shared = cf_tile_product_shared(&w->tile[0], count, buffers);
    for (int threads = 32; threads <= MOST_THREADS && shared <= facts->shared_per_block; threads += 32) {
        for (int side = 0; side < count; ++side)
            w->tile[side].threads = threads;
        if (registers_of(&w->tile[0]) > MOST_REGISTERS)
            continue;
        const double expected = product_cycles(w->tile, count, shared, facts);
        if (expected >= w->cycles)
            continue;
        w->cycles = expected;
        best = threads;
    }
    for (int side = 0; side < count; ++side)
        w->tile[side].threads = best;
}

static bool same_way(const way *a, const way *b) {
    const cf_tile_config *x = &a->tile[0], *y = &b->tile[0];
    return x->planes == y->planes && x->threads == y->threads && memcmp(x->radix, y->radix, sizeof x->radix) == 0;
}

/* ways: sorted, and as many at most. */
static void keep_best(way *ways, int *found, int most, const way *w) {
    int at = *found < most ? (*found)++ : most;
    for (; at > 0 && ways[at - 1].cycles > w->cycles; --at)
        if (at < most)
            ways[at] = ways[at - 1];
    if (at < most)
        ways[at] = *w;
}

conv_fft_status cf_tile_configure_product(const cf_tile_problem *problems, int count, int buffers, bool sums,
                                          const cf_gpu_facts *facts, cf_tile_config *configs, double *cycles) {
    enum {
        MOST_PLANES = 32,
        WAYS = 5 /* whose banks are looked at */
    };
    way ways[WAYS], trial, *const next = &trial;
    int found = 0, unit = 1;
    int64_t least = INT64_MAX;
    for (int side = 0; side < count; ++side)
        unit = (int)cf_max(unit, problems[side].abreast);
    const int longest[][2] = {{64, 64}, {64, 10}, {10, 64}, {10, 10}}; /* radices */
    for (int i = 0; i < 4; ++i) {
        for (int side = 0; side < count; ++side) {
            next->tile[side] = (cf_tile_config){.order = CF_TILE_BY_COLUMN, .mirrors = buffers == 1, .sums = sums};
            CF_FORWARD(choose_lines(&problems[side], longest[i][0], longest[i][1], &next->tile[side]));
        }
        cf_tile_config common = next->tile[0];
        common.planes = unit;
        common.pitch = least_pitch(&common);
        common.plane = least_plane(&common);
        least = cf_min(least, cf_tile_product_shared(&common, count, buffers));
        if (cf_tile_product_shared(&common, count, buffers) > facts->shared_per_block)
            continue;
        common.planes = (int)cf_max(1, 128 / most_lines(&common));
        choose_distances(&common, 2); /* neighbouring lanes are in one plane */
        for (int side = 0; side < count; ++side) {
            next->tile[side].pitch = common.pitch;
            next->tile[side].plane = common.plane;
        }
        for (int planes = unit; planes <= MOST_PLANES; planes += unit) {
            choose_product_threads(next, count, planes, buffers, facts);
            if (next->cycles < HUGE_VAL)
                keep_best(ways, &found, WAYS, next);
        }
    }
    if (found == 0)
        return cf_fail(CONV_FFT_NOT_SUPPORTED,
                       "%d buffers of this basis need %lld bytes of shared memory; %s has %lld for a block", buffers,
                       (long long)least, facts->name, (long long)facts->shared_per_block);
    const way *best = NULL;
    for (int i = found - 1; i >= 0; --i) {
        if (i > 0 && same_way(&ways[i], &ways[i - 1])) /* of limits that give the same radices */
            continue;
        spread_banks(&ways[i], count, buffers, facts);
        if (!best || ways[i].cycles <= best->cycles)
            best = &ways[i];
    }
    *cycles = best->cycles;
    memcpy(configs, best->tile, (size_t)count * sizeof *configs);
    const int64_t shared = cf_tile_product_shared(&configs[0], count, buffers);
    for (int side = 0; side < count; ++side) {
        cf_tile_config *c = &configs[side];
        c->blocks = (int)blocks_of(c, shared, facts);
    }
    return CONV_FFT_SUCCESS;
}

void cf_tile_pair(cf_tile_config pair[2], const cf_gpu_facts *facts) {
    const int threads = pair[pair[1].threads > pair[0].threads].threads;
    const int64_t shared = cf_max(pair[0].shared, pair[1].shared);
    int64_t blocks = INT32_MAX;
    for (int i = 0; i < 2; ++i) {
        pair[i].threads = threads;
        blocks = cf_min(blocks, blocks_of(&pair[i], shared, facts));
    }
    pair[0].blocks = pair[1].blocks = (int)cf_max(1, blocks);
}

int64_t cf_tile_blocks(const cf_tile_config *config, int64_t planes) {
    return cf_ceil_div(planes, config->planes) * cf_max(1, config->slabs);
}

cf_tile_config cf_tile_unaligned(const cf_tile_config *config) {
    cf_tile_config c = *config;
    c.wide = 1;
    c.early = 0;
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
