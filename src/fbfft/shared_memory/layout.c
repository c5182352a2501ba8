/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/shared_memory/layout.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "fbfft/shared_memory/geometry.h"
#include "fbfft/shared_memory/radices.h"

/* A line of axis 2, in the order of in_place_order.cuh. */
static cf_shared_fft_line line_of(const cf_shared_fft_config *c) {
    const int *r = c->radix[2];
    return cf_shared_fft_line_of(r[0], r[1], r[2], true);
}

static cf_shared_fft_plane plane_of(const cf_shared_fft_config *c) {
    const int points = cf_shared_fft_points(c->radix[2]);
    return cf_shared_fft_plane_of(c->kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX, c->packs_nyquist,
                                  cf_shared_fft_points(c->radix[1]), points, points);
}

int64_t cf_shared_fft_number_bytes(const cf_shared_fft_config *c) {
    return (int64_t)cf_dtype_bytes(cf_compute_dtype(c->problem.fft.transform.spectrum.dtype));
}

int64_t cf_shared_fft_extent(const cf_shared_fft_config *c, int x) {
    const cf_axis_window *a = &c->problem.fft.transform.window.axis[x];
    return a->count == 0 ? 0 : c->problem.sliced[x] ? 1 : (a->count - 1) * a->spread + 1;
}

int64_t cf_shared_fft_min_pitch(const cf_shared_fft_config *c) {
    const int64_t min_pitch = line_of(c).size + plane_of(c).extra;
    const cf_axis_window *w = &c->problem.fft.transform.window.axis[2];
    return c->staged ? cf_max(min_pitch, (w->first + cf_shared_fft_extent(c, 2) + c->alignment_shift + 3) / 4 * 4)
                     : min_pitch;
}

int64_t cf_shared_fft_columns(const cf_shared_fft_config *c) { return plane_of(c).columns; }

int64_t cf_shared_fft_min_plane(const cf_shared_fft_config *c) {
    return (int64_t)cf_shared_fft_points(c->radix[0]) * plane_of(c).rows * c->pitch;
}

int64_t cf_shared_fft_shared_bytes(const cf_shared_fft_config *c) {
    return cf_shared_fft_block_bytes(c->planes, c->plane, 2 * (int)cf_shared_fft_number_bytes(c), c->problem.scaled);
}

int64_t cf_shared_fft_max_lines(const cf_shared_fft_config *c) {
    const int64_t *basis = c->problem.fft.transform.spectrum.basis;
    const int64_t columns = cf_shared_fft_columns(c);
    int64_t rows = cf_shared_fft_extent(c, 1);
    if (c->kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX)
        rows = (rows + 1) / 2;
    int64_t max_lines = 1;
    for (int x = 0; x < 3; ++x) {
        const int64_t others =
            x == 2 ? cf_shared_fft_extent(c, 0) * rows : columns * (x == 1 ? cf_shared_fft_extent(c, 0) : basis[1]);
        const int max_radix = c->radix[x][0] > c->radix[x][1] ? c->radix[x][0] : c->radix[x][1];
        if (basis[x] > 1)
            max_lines = cf_max(max_lines, others * (cf_shared_fft_points(c->radix[x]) /
                                                    (max_radix > c->radix[x][2] ? max_radix : c->radix[x][2])));
    }
    return max_lines;
}

/* Wavefronts of one access of a warp to complex numbers at these places. */
static int wavefronts(const int64_t place[32], int64_t number) {
    const int together = number == 8 ? 8 : 16; /* lanes of one wavefront; also banks for numbers of this size */
    int at[32], total = 0;
    for (int lane = 0; lane < 32; ++lane)
        at[lane] = (int)place[lane];
    for (int first = 0; first < 32; first += together) {
        int max_conflicts = 1;
        for (int i = first; i < first + together; ++i) {
            int others = 0;
            for (int j = first; j < first + together; ++j)
                others += (((at[i] ^ at[j]) & (together - 1)) == 0) & (at[i] != at[j]);
            max_conflicts = 1 + others > max_conflicts ? 1 + others : max_conflicts;
        }
        total += max_conflicts;
    }
    return total;
}

/* Wavefronts of a step along axis 2 and of a step along another axis, for the config's distances. Only the first
 * warps are counted. */
static int conflicts(const cf_shared_fft_config *c) {
    const int64_t all_rows = plane_of(c).rows;
    const int rows = (int)cf_max(1, cf_min(all_rows, (cf_shared_fft_extent(c, 1) + 1) /
                                                         (c->kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX ? 2 : 1))),
              depth = (int)cf_max(1, cf_shared_fft_extent(c, 0)), lines = c->planes * depth * rows;
    const int columns = (int)cf_shared_fft_columns(c), radix = c->radix[2][0];
    const int64_t axis0_pitch = all_rows * c->pitch, step = line_of(c).bc_pitch, number = cf_shared_fft_number_bytes(c);
    const bool one_axis = cf_shared_fft_points(c->radix[0]) * cf_shared_fft_points(c->radix[1]) == 1;
    int total = 0;
    for (int warp = 0; warp < 4; ++warp) {
        int64_t by_line[32], by_column[32];
        for (int lane = 0; lane < 32; ++lane) {
            const int n = 32 * warp + lane, line = n % lines, column = n % (c->planes * columns);
            by_line[lane] =
                line / (depth * rows) * c->plane + line / rows % depth * axis0_pitch + line % rows * c->pitch;
            const int p = c->order == CF_SHARED_FFT_BY_PLANE ? column % c->planes : column / columns;
            const int k = c->order == CF_SHARED_FFT_BY_PLANE ? column / c->planes : column % columns;
            by_column[lane] = p * c->plane + k % radix * step + k / radix;
        }
        if (!c->staged && lines >= 16)
            total += wavefronts(by_line, number);
        if (!one_axis)
            total += 2 * wavefronts(by_column, number);
    }
    return total;
}

/* Staged lines are read four numbers at a time. The distance of two lines should be an odd number of such quads. */
void cf_shared_fft_choose_distances(cf_shared_fft_config *c, int64_t longer) {
    int best = INT32_MAX;
    int64_t pitch = 0, plane = 0;
    const int64_t min_pitch = cf_shared_fft_min_pitch(c);
    if (c->in_registers) {
        c->pitch = min_pitch;
        c->plane = 0;
        c->shared = cf_shared_fft_shared_bytes(c);
        return;
    }
    for (int64_t i = min_pitch; i < min_pitch + 4; ++i) {
        if (c->staged && i % 4 != 2)
            continue;
        c->pitch = i;
        for (int64_t j = cf_shared_fft_min_plane(c); j < cf_shared_fft_min_plane(c) + longer; ++j) {
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
    c->shared = cf_shared_fft_shared_bytes(c);
}
