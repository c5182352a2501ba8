/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/search/search_space.h"

#include "conv/plan/family.h"
#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"

#include <math.h>
#include <string.h>

/* Add a few tiles if the rows of tiles can then be moved in vectors of half a sector, or, with twice as many added
 * tiles, of a quarter of a sector. Short bases gain most. Only 1-D layers gain: planes go through shared memory,
 * where a row may begin anywhere. results: outputs, or positions of x, that the tiles cover together. */
static int64_t tiles_for_vectors(const cf_axis *axis, const cf_axis_grid *grid, int64_t tiles, int64_t results) {
    enum {
        MAX_SHIFT = 3 /* vectors of a tile that the alignment shift may take */
    };
    const cf_unit unit = cf_unit_of(axis, grid);
    cf_axis_grid g = *grid;
    for (int part = 2; part <= 4 && axis->only_axis && axis->max_vector >= 2 * part; part *= 2) {
        const int64_t vector = axis->max_vector / part,
                      max_tiles = tiles + tiles / (grid->basis > 128 ? 32 : 8) * part / 4;
        g.tiles = tiles;
        if (cf_grid_vector_width(axis, &g) >= vector)
            return tiles;
        for (int64_t shift = 0; shift < MAX_SHIFT; ++shift) {
            const int64_t length = ((grid->basis - unit.extent + 1) / vector - shift) * vector;
            g.tiles = length > 0 ? cf_ceil_div(results, length) : INT64_MAX;
            if (g.tiles > tiles && g.tiles <= cf_min(unit.inputs, max_tiles) &&
                cf_grid_vector_width(axis, &g) >= vector)
                return g.tiles;
        }
    }
    return tiles;
}

int64_t cf_space_tiles(const cf_axis *axis, const cf_axis_grid *grid, bool own) {
    const cf_unit unit = cf_unit_of(axis, grid);
    cf_axis_grid one = *grid;
    one.tiles = 1;
    if (cf_grid_fits(axis, &one, CF_ROLE_Y))
        return 1;
    const int64_t length = grid->basis - unit.extent + 1;
    if (length < 1)
        return 0;
    /* One tile does not fit, so there are at least two, even if gx alone is short. */
    const int64_t results = own ? unit.high - unit.low : unit.outputs, tiles = cf_max(2, cf_ceil_div(results, length));
    return tiles <= unit.inputs ? tiles_for_vectors(axis, grid, tiles, results) : 0;
}

/* The tiles of a basis that holds the whole kernel. */
static int64_t whole_tiles(const cf_axis *axis, bool shift, int64_t basis, bool own) {
    const cf_axis_grid grid = {.basis = basis, .shift_dilation = shift};
    return cf_space_tiles(axis, &grid, own);
}

int64_t cf_space_segments(const cf_axis *axis, bool shift, int64_t basis) {
    enum {
        STEPS = 9
    };
    cf_axis_grid grid = {.basis = basis, .shift_dilation = shift, .segments = 1};
    const cf_unit whole = cf_unit_of(axis, &grid);
    if (whole.extent <= basis)
        return 1;
    /* With the fewest segments, a tile has few outputs. With three times as many, most points of a tile are outputs. */
    const int64_t min_segments = cf_ceil_div(whole.extent, basis);
    int64_t best = 1;
    double smallest = HUGE_VAL;
    for (int i = 0; i < STEPS; ++i) {
        grid.segments = cf_min(min_segments + cf_ceil_div(min_segments * i, 4), whole.taps);
        const cf_unit unit = cf_unit_of(axis, &grid);
        const int64_t tiles = cf_space_tiles(axis, &grid, false);
        const double size = ((double)tiles + 1.0) * ((double)unit.phases + 1.0); /* x, y and w */
        if (tiles == 0 || size >= smallest)
            continue;
        smallest = size;
        best = grid.segments;
    }
    return best;
}

static bool contains(const cf_space_bases *list, int64_t basis) {
    for (int i = 0; i < list->count; ++i)
        if (list->basis[i] == basis)
            return true;
    return false;
}

/* For each basis of the list, the longest first: add the smallest basis with as many tiles for positions of x as that
 * basis has for outputs. */
static void add_for_x(const cf_axis *axis, bool shift, int64_t whole, cf_space_bases *list) {
    enum {
        MAX_ADDED = 3
    };
    for (int i = list->count - 1, added = 0; i >= 0 && added < MAX_ADDED && list->count < CF_SPACE_MAX_BASES; --i) {
        int64_t n = list->basis[i];
        const int64_t tiles = whole_tiles(axis, shift, n, false);
        while (n && n < whole && whole_tiles(axis, shift, n, true) > tiles)
            n = cf_next_basis(n + 1);
        if (!n || n >= whole || contains(list, n))
            continue;
        list->basis[list->count++] = n;
        ++added;
    }
}

void cf_space_collect(const cf_axis *axis, bool shift, int64_t row_unit, int max_count, cf_space_bases *list) {
    const cf_unit unit = cf_unit_make(axis, shift);
    const int64_t whole = cf_next_basis(cf_basis_one_tile(axis, &unit));
    double smallest = HUGE_VAL;
    list->count = 0;
    for (int64_t n = cf_next_basis(unit.extent); n && n <= whole; n = cf_next_basis(n + 1)) {
        const int64_t tiles = whole_tiles(axis, shift, n, false);
        if (tiles == 0 || (double)tiles * (double)n >= smallest)
            continue;
        smallest = (double)tiles * (double)n;
        if (list->count == max_count) { /* drop the middle one */
            memmove(&list->basis[max_count / 2], &list->basis[max_count / 2 + 1],
                    (size_t)(max_count - max_count / 2 - 1) * sizeof list->basis[0]);
            --list->count;
        }
        list->basis[list->count++] = n;
    }
    const int ascending = list->count;
    add_for_x(axis, shift, whole, list);
    for (int i = ascending - 1; i >= 0 && list->count < CF_SPACE_MAX_BASES; --i) {
        int64_t n = list->basis[i];
        while (n % row_unit)
            n = cf_next_basis(n + 1);
        if (!contains(list, n))
            list->basis[list->count++] = n;
    }
}

/* 1-D layers of single channels have kernels for powers of two only (conv/long1d/long1d.h). Add the smallest power that
 * holds the axis, even if it is larger than other bases. */
static void add_power(const cf_axis *axis, bool shift, cf_space_bases *list) {
    const cf_unit unit = cf_unit_make(axis, shift);
    const int64_t whole = cf_basis_one_tile(axis, &unit);
    int64_t n = 2048;
    while (n < whole)
        n *= 2;
    if (2 * whole <= n || contains(list, n))
        return;
    if (list->count < CF_SPACE_MAX_BASES)
        ++list->count;
    list->basis[list->count - 1] = n;
}

/* A plane of a single channel stays in one block. There a slightly longer basis may take fewer operations: factors
 * without a common divisor need no twiddles (conv/fused/pruned_dft.cuh). */
static void add_longer(const cf_axis *axis, bool shift, int64_t longest, cf_space_bases *list) {
    const cf_unit unit = cf_unit_make(axis, shift);
    const int64_t whole = cf_next_basis(cf_basis_one_tile(axis, &unit)), next = cf_next_basis(whole + 1);
    if (next > whole && next <= longest && next - whole <= whole / 12 && !contains(list, next) &&
        list->count < CF_SPACE_MAX_BASES)
        list->basis[list->count++] = next;
}

/* The device's longest transform of axis a in planes of the layer. Axes with one tap can be cut into rows. */
static int64_t longest_of(const cf_layer *layer, const cf_device *device, int a) {
    const int64_t max_basis = (int64_t)1 << 24;
    int64_t basis[3];
    for (int i = 0; i < 3; ++i)
        basis[i] = layer->axis[i].kernel > 1 ? 2 : 1;
    for (basis[a] = 2; basis[a] < max_basis; basis[a] *= 2)
        if (!device->ops->transforms(device, basis, layer->compute))
            return basis[a] / 2;
    return INT64_MAX;
}

/* Add bases for a kernel that is cut into segments. */
static void add_cut(const cf_axis *axis, bool shift, int64_t longest, cf_space_bases *list) {
    static const int eighths[] = {8, 6, 5, 4, 3};
    enum {
        CUTS = sizeof eighths / sizeof eighths[0]
    };
    const cf_unit unit = cf_unit_make(axis, shift);
    if (unit.extent <= longest / 2)
        return;
    int count = 0;
    for (int i = 0; i < list->count && count < CF_SPACE_MAX_BASES - CUTS; ++i)
        if (list->basis[i] <= longest)
            list->basis[count++] = list->basis[i];
    for (int i = 0; i < CUTS; ++i)
        if (longest / 8 * eighths[i] < unit.extent)
            list->basis[count++] = longest / 8 * eighths[i];
    list->count = count;
}

/* With 16-bit spectra, tensor cores transform these bases (fbfft/tensor_core/config.h). That is worth a longer
 * basis. */
static void add_tensor_core(const cf_axis *axis, bool shift, int64_t first, int64_t last, int more,
                            cf_space_bases *list) {
    const cf_unit unit = cf_unit_make(axis, shift);
    const int64_t whole = cf_basis_one_tile(axis, &unit);
    for (int64_t n = first; n <= last; n *= 2)
        if (whole_tiles(axis, shift, n, false) > 0 && n < 2 * whole && !contains(list, n) &&
            list->count < CF_SPACE_MAX_BASES + more)
            list->basis[list->count++] = n;
}

/* Of lines whose points are apart in memory, they also transform multiples of eight. */
static void add_multiples(const cf_axis *axis, bool shift, cf_space_bases *list) {
    const int count = list->count;
    for (int i = 0; i < count; ++i) {
        const int64_t n = cf_round_up(list->basis[i], 8);
        if (n >= 16 && n <= 128 && cf_is_basis(n) && whole_tiles(axis, shift, n, false) > 0 && !contains(list, n) &&
            list->count < CF_SPACE_MAX_BASES)
            list->basis[list->count++] = n;
    }
}

void cf_space_bases_of(const cf_layer *layer, const cf_device *device, bool shift, cf_space_bases bases[3]) {
    static const int max_by_rank[] = {0, 15, 11, 7};
    for (int a = 0; a < 3; ++a)
        cf_space_collect(&layer->axis[a], shift, a == 2 ? device->row_unit : 1, max_by_rank[layer->problem.rank],
                         &bases[a]);
    for (int a = 0; a < 3; ++a)
        add_cut(&layer->axis[a], shift, longest_of(layer, device, a), &bases[a]);
    if (layer->problem.rank == 1 && layer->in_channels == 1 && layer->out_channels == 1)
        add_power(&layer->axis[2], shift, &bases[2]);
    for (int a = 1; a < 3; ++a)
        if (layer->problem.rank == 2 && device->fused_flops > 0.0 && layer->in_channels == 1 &&
            layer->out_channels == 1)
            add_longer(&layer->axis[a], shift, longest_of(layer, device, a), &bases[a]);
    conv_fft_dtype in_short;
    const bool halves = device->tensor_flops > 0.0 && cf_layer_16bit_spectrum(layer, &in_short);
    for (int a = 1; a < 3 && halves && layer->problem.rank == 2; ++a)
        add_tensor_core(&layer->axis[a], shift, 32, 64, 0, &bases[a]);
    for (int a = 1; a < 3 && halves; ++a)
        if (layer->problem.rank == 2 && layer->axis[3 - a].kernel == 1 && layer->x.axis_stride[a] != 1)
            add_multiples(&layer->axis[a], shift, &bases[a]);
    if (halves && layer->problem.rank == 1)
        add_tensor_core(&layer->axis[2], shift, 16, 4096, CF_SPACE_MAX_POWERS, &bases[2]);
}

void cf_space_set_tiles(const cf_layer *layer, bool own, cf_strategy *s) {
    for (int a = 0; a < 3; ++a) {
        const cf_axis_grid grid = cf_strategy_grid(s, a);
        s->tiles[a] = cf_space_tiles(&layer->axis[a], &grid, own);
    }
}

const cf_family *cf_space_family(cf_search_space space) {
    for (int i = 0; cf_families[i]; ++i)
        if (cf_families[i]->search_space == space && !cf_families[i]->replaces)
            return cf_families[i];
    return NULL;
}

cf_strategy cf_space_strategy(const cf_layer *layer, const int64_t basis[3], bool shift, int keep) {
    cf_strategy s;
    memset(&s, 0, sizeof s);
    s.family = cf_space_family(CF_SEARCH_SPECTRA);
    s.shift_dilation = shift;
    s.spectrum = layer->compute;
    s.keep = keep;
    for (int a = 0; a < 3; ++a) {
        s.basis[a] = basis[a];
        s.segments[a] = cf_space_segments(&layer->axis[a], shift, basis[a]);
    }
    cf_space_set_tiles(layer, false, &s);
    return s;
}

double cf_space_smallest_bytes(const cf_layer *layer, int pass, const cf_strategy *s) {
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    if (!cf_strategy_spectra(layer, pass, s, spectrum))
        return HUGE_VAL;
    double bytes = 0.0;
    for (int i = 0; i < CF_OPERAND_COUNT; ++i) {
        const cf_spectrum *p = &spectrum[i];
        bytes += (double)(p->bins * (i == CF_W ? p->rows : 1) * p->columns * 2) * (double)cf_dtype_bytes(p->dtype);
    }
    if (pass == CF_PASS_DATA && cf_strategy_gx_store(layer, s) == CF_GX_FOLDED) {
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
    cf_strategy_spectra(layer, pass, s, p);
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
