/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/space.h"

#include "conv/family.h"
#include "core/arith.h"
#include "core/dtype.h"

#include <math.h>
#include <string.h>

int64_t cf_space_tiles(const cf_axis *axis, const cf_unit *unit, int64_t basis, bool own) {
    const cf_axis_grid one = {.basis = basis, .tiles = 1, .shift_dilation = unit->spread == 1 && unit->shifts > 1};
    if (cf_grid_fits(axis, &one, CF_ROLE_Y))
        return 1;
    const int64_t length = basis - unit->extent + 1;
    if (length < 1)
        return 0;
    /* One tile does not fit, so there are at least two, even if gx alone is short. */
    const int64_t tiles = cf_max(2, cf_ceil_div(own ? unit->high - unit->low : unit->outputs, length));
    return tiles <= unit->inputs ? tiles : 0;
}

static bool contains(const cf_space_bases *list, int64_t basis) {
    for (int i = 0; i < list->count; ++i)
        if (list->basis[i] == basis)
            return true;
    return false;
}

/* For positions of x, the least bases with as many tiles as outputs have with those of the list, the longest ones first. */
static void add_for_x(const cf_axis *axis, const cf_unit *unit, int64_t whole, cf_space_bases *list) {
    enum {
        MOST = 3
    };
    for (int i = list->count - 1, added = 0; i >= 0 && added < MOST && list->count < CF_SPACE_MOST_BASES; --i) {
        int64_t n = list->basis[i];
        const int64_t tiles = cf_space_tiles(axis, unit, n, false);
        while (n && n < whole && cf_space_tiles(axis, unit, n, true) > tiles)
            n = cf_next_basis(n + 1);
        if (!n || n >= whole || contains(list, n))
            continue;
        list->basis[list->count++] = n;
        ++added;
    }
}

void cf_space_collect(const cf_axis *axis, bool shift, int64_t row_unit, int most, cf_space_bases *list) {
    const cf_unit unit = cf_unit_make(axis, shift);
    const int64_t whole = cf_next_basis(cf_basis_one_tile(axis, &unit));
    double least = HUGE_VAL;
    list->count = 0;
    for (int64_t n = cf_next_basis(unit.extent); n && n <= whole; n = cf_next_basis(n + 1)) {
        const int64_t tiles = cf_space_tiles(axis, &unit, n, false);
        if (tiles == 0 || (double)tiles * (double)n >= least)
            continue;
        least = (double)tiles * (double)n;
        if (list->count == most) { /* keep the smallest and the largest ones */
            memmove(&list->basis[most / 2], &list->basis[most / 2 + 1],
                    (size_t)(most - most / 2 - 1) * sizeof list->basis[0]);
            --list->count;
        }
        list->basis[list->count++] = n;
    }
    const int ascending = list->count;
    add_for_x(axis, &unit, whole, list);
    for (int i = ascending - 1; i >= 0 && list->count < CF_SPACE_MOST_BASES; --i) {
        int64_t n = list->basis[i];
        while (n % row_unit)
            n = cf_next_basis(n + 1);
        if (!contains(list, n))
            list->basis[list->count++] = n;
    }
}

/* Lines of single channels have kernels that take powers of two alone (conv/long.h): the least that holds the axis, be it larger. */
static void add_power(const cf_axis *axis, bool shift, cf_space_bases *list) {
    const cf_unit unit = cf_unit_make(axis, shift);
    const int64_t whole = cf_basis_one_tile(axis, &unit);
    int64_t n = 2048;
    while (n < whole)
        n *= 2;
    if (2 * whole <= n || contains(list, n))
        return;
    if (list->count < CF_SPACE_MOST_BASES)
        ++list->count;
    list->basis[list->count - 1] = n;
}

void cf_space_bases_of(const cf_layer *layer, const cf_device *device, bool shift, cf_space_bases bases[3]) {
    static const int most_by_rank[] = {0, 15, 11, 7};
    for (int a = 0; a < 3; ++a)
        cf_space_collect(&layer->axis[a], shift, a == 2 ? device->row_unit : 1, most_by_rank[layer->problem.rank],
                         &bases[a]);
    if (layer->problem.rank == 1 && layer->in_channels == 1 && layer->out_channels == 1)
        add_power(&layer->axis[2], shift, &bases[2]);
}

void cf_space_set_tiles(const cf_layer *layer, bool own, cf_strategy *s) {
    for (int a = 0; a < 3; ++a) {
        const cf_unit unit = cf_unit_make(&layer->axis[a], s->shift_dilation);
        s->tiles[a] = cf_space_tiles(&layer->axis[a], &unit, s->basis[a], own);
    }
}

cf_strategy cf_space_strategy(const cf_layer *layer, const int64_t basis[3], bool shift, int keep) {
    cf_strategy s;
    memset(&s, 0, sizeof s);
    s.family = CF_FAMILY_STAGED;
    s.shift_dilation = shift;
    s.spectrum = layer->compute;
    s.keep = keep;
    for (int a = 0; a < 3; ++a)
        s.basis[a] = basis[a];
    cf_space_set_tiles(layer, false, &s);
    return s;
}

double cf_space_smallest_bytes(const cf_layer *layer, int pass, const cf_strategy *s) {
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    if (!cf_staged_spectra(layer, pass, s, spectrum))
        return HUGE_VAL;
    double bytes = 0.0;
    for (int i = 0; i < CF_OPERAND_COUNT; ++i) {
        const cf_spectrum *p = &spectrum[i];
        bytes += (double)(p->bins * (i == CF_W ? p->rows : 1) * p->columns * 2) * (double)cf_dtype_bytes(p->dtype);
    }
    if (pass == CF_PASS_DATA && cf_staged_gx_store(layer, s) == CF_GX_FOLDED) {
        double padded = (double)layer->in_channels * (double)cf_dtype_bytes(layer->compute);
        for (int a = 0; a < 3; ++a)
            padded *= (double)(layer->axis[a].pad_before + layer->axis[a].input + layer->axis[a].pad_after);
        bytes += padded;
    }
    return bytes;
}

void cf_space_choose_chunks(const cf_layer *layer, const cf_device *device, int pass, cf_strategy *s) {
    const double cache = device->chunk_bytes, group_cache = device->group_bytes;
    cf_spectrum p[CF_OPERAND_COUNT];
    cf_staged_spectra(layer, pass, s, p);
    const double unit = 2.0 * (double)cf_dtype_bytes(p[CF_X].dtype) * (double)p[CF_X].bins;
    const double row = unit * (double)(p[CF_X].columns + p[CF_Y].columns);
    const double w = unit * (double)(p[CF_W].rows * p[CF_W].columns);
    const double group = w + row * (double)p[CF_X].rows;
    s->groups = (int64_t)fmin((double)layer->groups, fmax(4.0 * device->threads, group_cache / group));
    const double rows = fmax(cache, 2.0 * w * (double)s->groups) / (row * (double)s->groups);
    s->chunk = (int64_t)fmin((double)p[CF_X].rows, fmax(32.0, rows));
}

bool cf_space_has_dilation(const cf_layer *layer) {
    for (int a = 0; a < 3; ++a) {
        const cf_axis *axis = &layer->axis[a];
        if (axis->kernel > 1 && axis->dilation / cf_gcd(axis->dilation, axis->stride) > 1)
            return true;
    }
    return false;
}
