/* SPDX-License-Identifier: Apache-2.0 */
#include "tiling/tiling.h"

#include "core/arith.h"

void cf_axis_trim(cf_axis *axis) {
    if (axis->mode != CONV_FFT_PAD_ZEROS)
        return;
    /* Tap k reads k dilation - pad_before + o stride for 0 <= o < output; some of these must be in [0, input). */
    const int64_t last_output = (axis->output - 1) * axis->stride;
    const int64_t first = cf_ceil_div(cf_max(0, axis->pad_before - last_output), axis->dilation);
    const int64_t last = cf_min(axis->kernel - 1, (axis->pad_before + axis->input - 1) / axis->dilation);
    if (first > last)
        return;
    axis->first_tap += first;
    axis->kernel = last - first + 1;
    axis->pad_before -= first * axis->dilation;
}

/* Divide the taps of a phase into segments. With some lengths, equal steps do not reach all taps; then segments are a
 * little longer. */
static void cut(int64_t kernel, int64_t segments, cf_unit *u) {
    int64_t taps = cf_ceil_div(u->taps, segments);
    while (cf_gcd(taps, u->tap_step) != 1)
        ++taps;
    if (taps >= u->taps)
        return;
    u->first_phase = -((taps - 1) * u->tap_step / taps);
    u->phases = (kernel - 1) / taps - u->first_phase + 1;
    u->taps = u->phase_taps = taps;
}

/* A product of positions. Only shifts without elements have products that large; any large position serves them. */
static int64_t times(int64_t a, int64_t b) { return cf_multiply(&a, b) ? a : INT64_MAX / 4; }

/* Divisors are mostly 1 here, and a search asks for very many units. */
static int64_t divided(int64_t a, int64_t b) { return b == 1 ? a : a / b; }

cf_unit cf_unit_of(const cf_axis *axis, const cf_axis_grid *grid) {
    const int64_t common = cf_gcd(axis->stride, axis->dilation);
    const int64_t dilation = divided(axis->dilation, common);
    cf_unit u = {0};
    u.tap_step = divided(axis->stride, common);
    u.phases = cf_min(u.tap_step, axis->kernel);
    u.phase_taps = 1;
    u.shifts = grid->shift_dilation ? dilation : 1;
    u.spread = grid->shift_dilation ? 1 : dilation;
    u.taps = cf_ceil_div(axis->kernel, u.tap_step);
    if (grid->segments > 1)
        cut(axis->kernel, grid->segments, &u);
    u.extent = (u.taps - 1) * u.spread + 1;
    u.outputs = cf_ceil_div(axis->output, u.shifts);
    u.inputs = u.outputs + u.extent - 1;
    if (axis->mode != CONV_FFT_PAD_ZEROS) {
        u.high = u.inputs;
        return u;
    }
    /* Position u of shift a and of the phase whose first tap is t is x
     * [(u shifts + a) stride + t dilation - pad_before]. */
    const int64_t step = times(u.shifts, axis->stride), first = u.first_phase * u.phase_taps;
    const int64_t last = first + (u.phases - 1) * u.phase_taps;
    const int64_t reach = times(u.shifts - 1, axis->stride) + last * axis->dilation;
    u.low = cf_min(u.inputs, cf_ceil_div(cf_max(0, axis->pad_before - reach), step));
    u.high = cf_min(u.inputs, divided(axis->pad_before + axis->input - 1 - first * axis->dilation, step) + 1);
    u.high = cf_max(u.low, u.high);
    return u;
}

cf_unit cf_unit_make(const cf_axis *axis, bool shift_dilation) {
    const cf_axis_grid whole = {.shift_dilation = shift_dilation};
    return cf_unit_of(axis, &whole);
}

/* True if the wrap-around of the basis is the circular padding. */
static bool wraps(const cf_axis *axis, const cf_unit *unit, int64_t basis) {
    return axis->mode == CONV_FFT_PAD_CIRCULAR && basis == axis->input && axis->stride == 1 && unit->shifts == 1 &&
           !cf_unit_is_cut(unit) && unit->extent <= basis && unit->outputs <= basis;
}

int64_t cf_basis_one_tile(const cf_axis *axis, const cf_unit *unit) {
    if (wraps(axis, unit, axis->input) && cf_is_basis(axis->input))
        return axis->input;
    const int64_t data = cf_max(unit->high, unit->inputs - unit->low);
    return cf_max(data, cf_max(unit->extent, unit->outputs));
}

/* Outputs per tile. For gx by overlap-save: positions of x per tile. */
static int64_t tile_length(const cf_unit *unit, const cf_axis_grid *grid, cf_role role) {
    const bool own = (role == CF_ROLE_GY || role == CF_ROLE_GX) && !grid->overlap_add;
    return cf_max(1, cf_ceil_div(own ? unit->high - unit->low : unit->outputs, grid->tiles));
}

static bool fits(const cf_axis *axis, const cf_unit *unit, const cf_axis_grid *grid, cf_role result) {
    if (grid->basis < 1 || grid->tiles < 1 || grid->tiles > unit->inputs || grid->segments > axis->kernel)
        return false;
    if (grid->tiles == 1) {
        const int64_t data = cf_max(unit->high, unit->inputs - unit->low);
        return wraps(axis, unit, grid->basis) || grid->basis >= cf_max(data, cf_max(unit->extent, unit->outputs));
    }
    return tile_length(unit, grid, result) + unit->extent - 1 <= grid->basis;
}

bool cf_grid_fits(const cf_axis *axis, const cf_axis_grid *grid, cf_role result) {
    const cf_unit unit = cf_unit_of(axis, grid);
    return fits(axis, &unit, grid, result);
}

/* Shifts that align rows to vectors. */
typedef struct alignment {
    int64_t by;      /* positions by which x, its gradient and w move up: the alignment shift */
    int64_t back;    /* elements by which gy of backward data's own tiles begins earlier */
    int64_t lengths; /* the length of a tile is a multiple of this */
    int64_t counts;  /* the number of loaded elements is a multiple of this */
} alignment;

/* True if every tile of this length has results, and if all loaded and stored positions fit the basis. Positions that
 * wrap around are counted too. */
static bool fits_basis(const cf_unit *unit, const cf_axis_grid *grid, cf_role result, const alignment *l) {
    const int64_t length = cf_round_up(tile_length(unit, grid, result), l->lengths),
                  results = result == CF_ROLE_GX ? unit->high - unit->low : unit->outputs;
    return cf_ceil_div(results, length) == grid->tiles &&
           length + cf_round_up(unit->extent - 1 + l->by, l->counts) <= grid->basis;
}

/* The passes with several tiles that are exact with this grid: those with the result y or gw, and the one with gx. */
typedef struct exact_passes {
    bool y, gx;
} exact_passes;

/* True if the alignment fits every pass with this grid, so that all passes can share spectra of w. The grid saves
 * overlaps. */
static bool fits_all_passes(const cf_unit *unit, const cf_axis_grid *grid, exact_passes exact, const alignment *l) {
    if (grid->tiles == 1)
        return unit->high + l->by <= grid->basis && unit->extent + l->by <= grid->basis;
    return (!exact.y || fits_basis(unit, grid, CF_ROLE_Y, l)) && (!exact.gx || fits_basis(unit, grid, CF_ROLE_GX, l));
}

static alignment alignment_of(const cf_axis *axis, const cf_unit *unit, const cf_axis_grid *grid) {
    static const alignment none = {0, 0, 1, 1};
    if (axis->max_vector <= 1 || axis->mode != CONV_FFT_PAD_ZEROS || axis->stride != 1 || unit->shifts != 1 ||
        unit->phases != 1 || unit->low != axis->pad_before || unit->low >= unit->high)
        return none;
    cf_axis_grid save = *grid;
    save.overlap_add = false;
    const exact_passes exact = {fits(axis, unit, &save, CF_ROLE_Y), fits(axis, unit, &save, CF_ROLE_GX)};
    for (int64_t n = axis->max_vector; n > 1; n /= 2) {
        const alignment l = {cf_mod(-axis->pad_before, n), cf_mod(axis->pad_before - (unit->extent - 1), n), n, n};
        if (axis->input % n == 0 && fits_all_passes(unit, &save, exact, &l))
            return l;
    }
    for (int64_t n = axis->max_vector; n > 1; n /= 2) { /* align rows of y only */
        const alignment l = {0, 0, n, 1};
        if (axis->output % n == 0 && fits_all_passes(unit, &save, exact, &l))
            return l;
    }
    return none;
}

/* True if some tap meets an element of x. Dilated taps can step over a short input into its padding. */
static bool meets(const cf_axis *axis) {
    if (axis->mode != CONV_FFT_PAD_ZEROS)
        return true;
    for (int64_t k = 0; k < axis->kernel && k < 4096; ++k) {
        const int64_t offset = k * axis->dilation - axis->pad_before; /* of output 0 */
        const int64_t first = cf_max(0, -cf_floor_div(offset, axis->stride));
        if (first < axis->output && first * axis->stride + offset < axis->input)
            return true;
    }
    return axis->kernel > 4096; /* not searched further: a wrong `true` costs only rounding noise */
}

/* Positions u of x, from `from` on. */
static cf_axis_window positions(const cf_axis *axis, const cf_unit *unit, int64_t from) {
    cf_axis_window w = {0};
    w.spread = 1;
    w.step = unit->shifts * axis->stride;
    w.origin = from * w.step + unit->first_phase * unit->phase_taps * axis->dilation - axis->pad_before;
    w.shifts = unit->shifts;
    w.shift_step = axis->stride;
    w.phases = unit->phases;
    w.phase_step = unit->phase_taps * axis->dilation;
    w.size = axis->input;
    w.mode = axis->mode;
    const bool zeros = axis->mode == CONV_FFT_PAD_ZEROS;
    w.lower = zeros ? 0 : -axis->pad_before;
    w.upper = zeros ? axis->input : axis->input + axis->pad_after;
    /* If no tap meets x, x is not loaded. Then all results are exactly zero, without rounding noise. */
    if (!meets(axis))
        w.upper = w.lower;
    w.tiles = 1;
    return w;
}

static cf_axis_window window_x(const cf_axis *axis, const cf_unit *unit, const cf_axis_grid *grid, const alignment *l) {
    cf_axis_window w = positions(axis, unit, 0);
    if (grid->tiles == 1) {
        const int64_t high = cf_min(grid->basis, unit->high);
        w.count = cf_min(grid->basis, unit->inputs);
        if (wraps(axis, unit, grid->basis)) {
            w.count = grid->basis;
            w.upper = w.lower + grid->basis;
        } else if (unit->low < high) { /* what is padding in every shift and phase needs no transform */
            w = positions(axis, unit, unit->low);
            w.first = unit->low + l->by;
            w.count = high - unit->low;
        }
        return w;
    }
    const int64_t length = cf_round_up(tile_length(unit, grid, CF_ROLE_X), l->lengths);
    w.origin -= l->by;
    w.tiles = grid->tiles;
    w.tile_step = length * w.step;
    w.count = cf_round_up(length + unit->extent - 1 + l->by, l->counts);
    return w;
}

static cf_axis_window window_gx(const cf_axis *axis, const cf_unit *unit, const cf_axis_grid *grid,
                                const alignment *l) {
    if (grid->tiles == 1)
        return window_x(axis, unit, grid, l);
    if (grid->overlap_add) { /* positions that only alignment adds to x have no gradient */
        const alignment none = {0, 0, l->lengths, 1};
        cf_axis_window w = window_x(axis, unit, grid, &none);
        w.first = l->by;
        return w;
    }
    cf_axis_window w = positions(axis, unit, unit->low);
    w.first = unit->extent - 1 + l->back + l->by;
    w.count = cf_round_up(tile_length(unit, grid, CF_ROLE_GX), l->lengths);
    w.tiles = grid->tiles;
    w.tile_step = w.count * w.step;
    return w;
}

static cf_axis_window window_w(const cf_axis *axis, const cf_unit *unit, const alignment *l) {
    cf_axis_window w = {0};
    w.first = l->by;
    w.spread = unit->spread;
    w.count = unit->taps;
    w.step = unit->tap_step;
    w.tiles = w.shifts = 1;
    w.phases = unit->phases;
    w.phase_step = unit->phase_taps;
    w.origin = axis->first_tap + unit->first_phase * unit->phase_taps;
    w.lower = axis->first_tap;
    w.size = w.upper = axis->first_tap + axis->kernel;
    return w;
}

/* Outputs b, from `from` on. */
static cf_axis_window outputs(const cf_axis *axis, const cf_unit *unit, int64_t from, int64_t count) {
    cf_axis_window w = {0};
    w.spread = 1;
    w.count = count;
    w.step = unit->shifts;
    w.origin = from * w.step;
    w.tiles = 1;
    w.shifts = unit->shifts;
    w.shift_step = 1;
    w.phases = 1;
    w.size = w.upper = axis->output;
    return w;
}

static cf_axis_window window_y(const cf_axis *axis, const cf_unit *unit, const cf_axis_grid *grid, const alignment *l) {
    const int64_t length = tile_length(unit, grid, CF_ROLE_Y);
    cf_axis_window w = outputs(axis, unit, 0, grid->tiles > 1 ? cf_round_up(length, l->lengths) : length);
    w.tiles = grid->tiles;
    w.tile_step = w.count * w.step;
    return w;
}

static cf_axis_window window_gy(const cf_axis *axis, const cf_unit *unit, const cf_axis_grid *grid,
                                const alignment *l) {
    if (grid->tiles == 1 || grid->overlap_add)
        return window_y(axis, unit, grid, l);
    const int64_t length = cf_round_up(tile_length(unit, grid, CF_ROLE_GY), l->lengths);
    cf_axis_window w = outputs(axis, unit, unit->low - (unit->extent - 1) - l->back,
                               cf_round_up(length + unit->extent - 1 + l->back, l->counts));
    w.tiles = grid->tiles;
    w.tile_step = length * w.step;
    return w;
}

int64_t cf_grid_vector_width(const cf_axis *axis, const cf_axis_grid *grid) {
    const cf_unit unit = cf_unit_of(axis, grid);
    return alignment_of(axis, &unit, grid).counts;
}

cf_axis_window cf_axis_window_make(const cf_axis *axis, const cf_axis_grid *grid, cf_role role) {
    const cf_unit unit = cf_unit_of(axis, grid);
    const alignment l = alignment_of(axis, &unit, grid);
    switch (role) {
    case CF_ROLE_X:
        return window_x(axis, &unit, grid, &l);
    case CF_ROLE_Y:
        return window_y(axis, &unit, grid, &l);
    case CF_ROLE_GY:
        return window_gy(axis, &unit, grid, &l);
    case CF_ROLE_GX:
        return window_gx(axis, &unit, grid, &l);
    case CF_ROLE_W:
        break;
    }
    return window_w(axis, &unit, &l);
}

cf_axis_window cf_window_phases_as_tiles(const cf_axis_window *window) {
    cf_axis_window w = *window;
    if (w.shifts == 1) {
        w.shifts = w.tiles;
        w.shift_step = w.tile_step;
    }
    w.tiles = w.phases;
    w.tile_step = w.phase_step;
    w.phases = 1;
    w.phase_step = 0;
    return w;
}

bool cf_window_overlaps(const cf_axis_window *window) {
    return window->tiles > 1 && window->count * window->step > window->tile_step;
}

bool cf_window_covers(const cf_axis_window *window) {
    if (cf_window_overlaps(window))
        return false;
    /* Circular padding by wrap-around stores each index once, some through negative coordinates. */
    if (window->lower < 0 && window->upper - window->lower == window->size)
        return true;
    /* No two phases, shifts or tiles store the same index, so counting suffices; tiles that do not overlap follow each
     * other without gaps, as one long tile. Where there are very many phases, storing zeros first costs less than
     * counting. */
    if (window->shifts > 65536 / window->phases)
        return false;
    cf_axis_window whole = *window;
    whole.count *= whole.tiles;
    int64_t stored = 0;
    for (int64_t shift = 0; shift < whole.shifts; ++shift)
        for (int64_t phase = 0; phase < whole.phases; ++phase)
            stored += cf_window_inside(&whole, 0, shift, phase);
    return stored == whole.size;
}

bool cf_axis_folds(const cf_axis *axis, const cf_axis_grid *grid) {
    if (axis->mode == CONV_FFT_PAD_ZEROS)
        return false;
    const cf_unit unit = cf_unit_of(axis, grid);
    return !(grid->tiles == 1 && wraps(axis, &unit, grid->basis));
}

cf_axis_window cf_window_padded(const cf_axis *axis, const cf_axis_window *gx) {
    cf_axis_window w = *gx;
    if (axis->mode == CONV_FFT_PAD_ZEROS)
        return w;
    w.origin += axis->pad_before;
    w.lower = 0;
    w.size = w.upper = axis->pad_before + axis->input + axis->pad_after;
    w.mode = CONV_FFT_PAD_ZEROS;
    return w;
}

int64_t cf_next_basis(int64_t n) {
    if (n > INT64_MAX / 16) /* so that no product below overflows */
        return 0;
    int64_t best = 1;
    while (best < n)
        best *= 2;
    for (int64_t sevens = 1; sevens < best; sevens *= 7)
        for (int64_t fives = sevens; fives < best; fives *= 5)
            for (int64_t threes = fives; threes < best; threes *= 3) {
                int64_t value = threes;
                while (value < n)
                    value *= 2;
                best = cf_min(best, value);
            }
    return best;
}
