/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of a block for a transform. product_config.c chooses for kernels that multiply between two transforms.
 *
 * planes    A frequency-major spectrum that is stored: as many planes as a block of 128 threads has lines for, at least
 *           8. It has 4 if no two blocks of 8 planes fit a multiprocessor, unless one of 8 is faster. A frequency-major
 *           spectrum that is loaded, or interleaved channels: as many planes as 256 threads have lines for, at least
 *           16, if they fit. Other spectra: as many planes as give a block four warps.
 *           Lines in registers (README.md): 64, with a thread for each.
 * threads   One thread for each line of the longest step, as far as registers allow, or half as many.
 * prefetch  The inverse of planes of which only one block fits copies bins ahead, if the caller asks for it.
 */
#include "fbfft/shared_memory/config.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "fbfft/shared_memory/geometry.h"
#include "fbfft/shared_memory/layout.h"
#include "fbfft/shared_memory/lines.h"
#include "fbfft/shared_memory/occupancy.h"
#include "fbfft/shared_memory/radices.h"
#include "fbfft/shared_memory/signal_access.h"

/* Whether a transform stores a frequency-major spectrum and loads planes one after the other. */
static bool stores_frequency_major(const cf_shared_fft_config *c) {
    return c->order == CF_SHARED_FFT_BY_PLANE && !c->problem.fft.transform.inverse && !c->planes_interleaved;
}

/* Whether a block finds the scales itself: forward, if its planes belong to one row and fill whole scales. */
static bool finds_scales(const cf_shared_fft_config *c) {
    const cf_transform_desc *t = &c->problem.fft.transform;
    return !t->inverse && c->problem.scaled && c->problem.rows == 1 && c->planes % 8 == 0 &&
           t->spectrum.columns % c->planes == 0;
}

/* Real planes of which each axis is one step. */
static bool is_single_step(const cf_shared_fft_config *c) {
    return c->kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX && c->radix[0][1] * c->radix[1][1] * c->radix[2][1] == 1;
}

/* If only one block fits, planes are stored by half as many threads, if so many more blocks fit then that a
 * multiprocessor does not have fewer threads. */
static void choose_threads(cf_shared_fft_config *c, const cf_gpu_properties *properties, int64_t lines) {
    cf_shared_fft_choose_threads(c, properties, c->planes * lines, c->shared);
    cf_shared_fft_config half = *c;
    cf_shared_fft_choose_threads(&half, properties, cf_ceil_div(c->planes * lines, 2), c->shared);
    if (stores_frequency_major(c) && is_single_step(c) && c->blocks == 1 && half.threads * half.blocks >= c->threads)
        *c = half;
}

/* Whether 8 planes of a block that stores FP32 bins are faster than 4, although no two blocks of 8 have a thread for
 * each line: rows are staged, each axis is one step, and all threads have equally many columns. */
static bool stores_eight(const cf_shared_fft_config *c, const cf_gpu_properties *properties, int64_t lines) {
    cf_shared_fft_config eight = *c;
    eight.planes = 8;
    cf_shared_fft_choose_distances(&eight, 16);
    choose_threads(&eight, properties, lines);
    const cf_spectrum *s = &c->problem.fft.transform.spectrum;
    return s->dtype == CONV_FFT_FP32 && c->staged && s->basis[2] % 2 == 0 && is_single_step(c) &&
           8 * cf_shared_fft_columns(c) % eight.threads == 0;
}

/* Complex lines of which neighbouring threads access neighbouring planes, in the signal and in the spectrum. */
static bool has_lines_of_neighbours(const cf_shared_fft_problem *p) {
    const cf_transform_desc *t = &p->fft.transform;
    return p->fft.complex_signal && t->spectrum.basis[0] * t->spectrum.basis[1] == 1 && !p->scaled &&
           t->spectrum.columns > 1 && p->column_stride == 1 && t->tensor.channel_stride == 1 &&
           t->tensor.axis_stride[2] != 1;
}

/* In a frequency-major spectrum, neighbouring planes are moved together. Stores are combined in the L2 cache, so 8
 * planes are enough (64 bytes in FP32). Loads should be whole cache lines. */
static void choose_planes(cf_shared_fft_config *c, const cf_gpu_properties *properties, int64_t lines) {
    const bool major = c->order == CF_SHARED_FFT_BY_PLANE, stores = stores_frequency_major(c);
    const bool is_16bit = cf_dtype_bytes(c->problem.fft.transform.spectrum.dtype) == 2;
    const int min_planes = is_16bit || (stores && stores_eight(c, properties, lines)) ? 8 : 4;
    const int64_t threads = major && !stores ? 256 : 128;
    const int preferred = stores ? 8 : 16;
    c->planes = major ? 32 : (int)cf_max(1, threads / lines);
    cf_shared_fft_choose_distances(c, 16);
    while (c->planes > 1 &&
           (c->shared > properties->shared_per_block || (c->planes * lines > threads && c->planes > preferred) ||
            (stores && c->planes > min_planes && !cf_shared_fft_two_fit(c, properties, lines)))) {
        c->planes /= 2;
        cf_shared_fft_choose_distances(c, 16);
    }
    cf_shared_fft_config smaller = *c;
    while (smaller.planes > 8 && !finds_scales(&smaller))
        smaller.planes /= 2;
    if (finds_scales(&smaller) && smaller.planes < c->planes) {
        c->planes = smaller.planes;
        cf_shared_fft_choose_distances(c, 16);
    }
    c->finds_scales = finds_scales(c);
}

static void choose_block(cf_shared_fft_config *c, const cf_gpu_properties *properties) {
    const int64_t lines = cf_shared_fft_max_lines(c);
    c->in_registers = c->direct && c->radix[2][1] == 1 && has_lines_of_neighbours(&c->problem);
    if (c->in_registers) {
        c->planes = 64;
        cf_shared_fft_choose_distances(c, 1);
        for (; c->planes > 1 && c->shared > properties->shared_per_block; cf_shared_fft_choose_distances(c, 1))
            c->planes /= 2;
    } else {
        choose_planes(c, properties, lines);
    }
    choose_threads(c, properties, lines);
}

static cf_shared_fft_kind kind_of(const cf_shared_fft_problem *p) {
    const int64_t *basis = p->fft.transform.spectrum.basis;
    if (p->fft.complex_signal)
        return CF_SHARED_FFT_COMPLEX;
    if (basis[0] * basis[1] > 1)
        return CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX;
    return basis[2] % 2 == 0 ? CF_SHARED_FFT_PACKED_REAL : CF_SHARED_FFT_UNPACKED_REAL;
}

static cf_shared_fft_order order_of(const cf_shared_fft_problem *p) {
    if (p->column_stride == 1 && (p->fft.transform.spectrum.columns > 1 || p->fft.layout.frequency_major))
        return CF_SHARED_FFT_BY_PLANE;
    return p->fft.layout.axis_stride[2] == 1 ? CF_SHARED_FFT_BY_COLUMN : CF_SHARED_FFT_BY_ROW;
}

cf_shared_fft_problem cf_shared_fft_problem_of(const cf_fft_problem *fft) {
    const int64_t columns = fft->transform.spectrum.columns;
    const bool major = fft->layout.frequency_major;
    return (cf_shared_fft_problem){.fft = *fft,
                                   .rows = 1,
                                   .scaled = cf_spectrum_is_scaled(fft->transform.spectrum.dtype),
                                   .row_stride = major ? columns : fft->layout.sample_stride,
                                   .column_split = columns,
                                   .column_stride = major ? 1 : fft->layout.channel_stride};
}

conv_fft_status cf_shared_fft_choose_lines(const cf_shared_fft_problem *problem, int points, int of_columns,
                                           cf_shared_fft_config *c) {
    const int64_t *basis = problem->fft.transform.spectrum.basis;
    CF_FORWARD(cf_shared_fft_check_extents(&problem->fft));
    c->problem = *problem;
    c->kind = kind_of(problem);
    for (int x = 0; x < 3; ++x)
        cf_shared_fft_choose_radices((int)(x == 2 && c->kind == CF_SHARED_FFT_PACKED_REAL ? basis[x] / 2 : basis[x]),
                                     (x == 2 ? points : of_columns) * 4 / (int)cf_shared_fft_number_bytes(c),
                                     cf_shared_fft_two_along(c, x), c->radix[x]);
    cf_shared_fft_choose_access(c);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status check_shared(int64_t bytes, const cf_gpu_properties *properties) {
    if (bytes > properties->shared_per_block)
        return cf_fail(CONV_FFT_NOT_SUPPORTED,
                       "a plane of this basis needs %lld bytes of shared memory; %s has %lld for a block",
                       (long long)bytes, properties->name, (long long)properties->shared_per_block);
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_shared_fft_configure(const cf_shared_fft_problem *problem, const cf_gpu_properties *properties,
                                        cf_shared_fft_config *config) {
    cf_shared_fft_config c = {.order = order_of(problem), .packs_nyquist = true};
    const int64_t *basis = problem->fft.transform.spectrum.basis;
    const bool one_axis = basis[0] * basis[1] == 1;
    const int points = !one_axis ? 64 : has_lines_of_neighbours(problem) ? 48 : 32;
    CF_FORWARD(cf_shared_fft_choose_lines(problem, points, 64, &c));
    c.direct = (c.kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX || c.kind == CF_SHARED_FFT_COMPLEX) &&
               c.order != CF_SHARED_FFT_BY_ROW && (c.order == CF_SHARED_FFT_BY_PLANE || !one_axis);
    for (int x = 0; x < 3; ++x)
        c.direct = c.direct && problem->fft.transform.window.axis[x].count > 0;
    choose_block(&c, properties);
    CF_FORWARD(check_shared(c.shared, properties));
    *config = c;
    return CONV_FFT_SUCCESS;
}

void cf_shared_fft_choose_prefetch(cf_shared_fft_config *c, const cf_gpu_properties *properties) {
    const int n1 = cf_shared_fft_points(c->radix[1]), columns = (int)cf_shared_fft_columns(c);
    const cf_spectrum *s = &c->problem.fft.transform.spectrum;
    const int number = 2 * (int)cf_dtype_bytes(s->dtype), each = 16 / number; /* planes, and rows, of a copy */
    if (!c->problem.fft.transform.inverse || !c->direct || !c->problem.fft.layout.frequency_major ||
        c->kind != CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX || s->dtype == CONV_FFT_FP64 || s->basis[0] > 1 ||
        s->basis[2] % 2 != 0 || s->columns % each != 0 || c->radix[1][1] > 1 || c->planes < 8 ||
        c->planes * columns % c->threads != 0 || 2 * c->shared <= properties->shared_per_multiprocessor)
        return;
    /* Blocks that get one group of planes each have nothing to copy ahead. Plans of fbfft.h do not know their rows. */
    const int64_t rows_known = s->rows * c->problem.rows;
    if (rows_known > 0 && rows_known * s->columns <= (int64_t)c->planes * properties->multiprocessors)
        return;
    const int64_t left = properties->shared_per_block - c->shared -
                         cf_shared_fft_prefetch_bytes(c->planes, c->threads, n1, 0, number),
                  row = cf_shared_fft_prefetch_bytes(0, c->threads, 0, 1, number);
    const int rows = (int)cf_min(n1, cf_max(left, 0) / row) / each * each;
    if (5 * rows < 2 * n1)
        return;
    c->prefetched = rows;
    c->shared += cf_shared_fft_prefetch_bytes(c->planes, c->threads, n1, rows, number);
    c->blocks = 1;
    c->grid = properties->multiprocessors;
}

int64_t cf_shared_fft_blocks(const cf_shared_fft_config *config, int64_t planes) {
    return cf_ceil_div(planes, config->planes) * cf_max(1, config->bin_tiles);
}

cf_shared_fft_config cf_shared_fft_unaligned(const cf_shared_fft_config *config) {
    cf_shared_fft_config c = *config;
    c.vector_width = 1;
    c.alignment_shift = 0;
    return c;
}

cf_shared_fft_call cf_shared_fft_call_of(const cf_shared_fft_problem *p, int64_t rows, int64_t unit) {
    const cf_transform_desc *t = &p->fft.transform;
    const int64_t own = p->unit ? rows * p->unit : unit;
    return (cf_shared_fft_call){.planes = rows * p->rows * t->spectrum.columns,
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
