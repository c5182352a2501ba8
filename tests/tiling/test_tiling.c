/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tile geometry against the definition of the layer, on one axis, in integers. Every operand is loaded through its
 * windows into a basis, multiplied by plain circular correlation, and stored through its windows. Results are exact.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/arith.h"
#include "support/compare.h"
#include "support/random_problems.h"
#include "support/selection.h"
#include "tiling/tiling.h"

enum {
    MAX_EXTENT = 64,
    MAX_BASIS = 512
};

/* State of the current case. Case i of a run has the seed CONV_FFT_TEST_SEED + i: that seed and a count of 1 replay
 * it. */
static generator state;
static uint64_t current;
static bool under_way;
static int64_t pick(int64_t low, int64_t high) { return random_int(&state, low, high); }

static uint64_t count_of(uint64_t usual) { return environment_number("CONV_FFT_TEST_COUNT", usual); }

static void begin(uint64_t i) {
    current = test_seed() + i;
    under_way = true;
    state = generator_create(current);
}

/* After each test, failed or not. */
static int print_failed(void **unused) {
    (void)unused;
    char variables[96], line[256];
    snprintf(variables, sizeof variables, "CONV_FFT_TEST_SEED=%" PRIu64 " CONV_FFT_TEST_COUNT=1", current);
    test_replay(line, sizeof line, variables);
    if (under_way)
        print_error("replay: %s\n", line);
    under_way = false;
    return 0;
}

/* The definition: index of x at a coordinate, or -1. */
static int64_t padded_index(const cf_axis *a, int64_t i) {
    const int64_t n = a->input;
    if (i >= 0 && i < n)
        return i;
    switch (a->mode) {
    case CONV_FFT_PAD_ZEROS:
        return -1;
    case CONV_FFT_PAD_CIRCULAR:
        return (i % n + n) % n;
    case CONV_FFT_PAD_REFLECT:
        return i < 0 ? -i : 2 * n - 2 - i;
    case CONV_FFT_PAD_REPLICATE:
        return i < 0 ? 0 : n - 1;
    }
    return -1;
}

typedef struct layer {
    cf_axis axis; /* in half of the cases trimmed */
    int64_t taps; /* of the tensor */
    int64_t x[MAX_EXTENT], w[MAX_EXTENT], gy[4 * MAX_EXTENT];
    int64_t y[4 * MAX_EXTENT], gx[MAX_EXTENT], gw[MAX_EXTENT]; /* by the definition */
} layer;

static void random_layer(layer *l) {
    memset(l, 0, sizeof *l);
    cf_axis *a = &l->axis;
    do {
        a->input = pick(1, 24);
        a->kernel = pick(1, 9);
        a->stride = pick(0, 1) ? 1 : pick(2, 5);
        a->dilation = pick(1, 5);
        a->max_vector = 1 << pick(0, 3);
        a->mode = (conv_fft_padding)pick(0, 3);
        const int64_t most = a->mode == CONV_FFT_PAD_CIRCULAR  ? a->input
                             : a->mode == CONV_FFT_PAD_REFLECT ? a->input - 1
                                                               : 12;
        a->pad_before = pick(0, most);
        a->pad_after = pick(0, most);
        if (a->pad_before + a->pad_after == 0)
            a->mode = CONV_FFT_PAD_ZEROS;
        a->output = a->input + a->pad_before + a->pad_after - (a->kernel - 1) * a->dilation - 1;
    } while (a->output < 0);
    a->output = a->output / a->stride + 1;
    for (int64_t i = 0; i < a->input; ++i)
        l->x[i] = pick(-99, 99);
    for (int64_t k = 0; k < a->kernel; ++k)
        l->w[k] = pick(-99, 99);
    for (int64_t o = 0; o < a->output; ++o)
        l->gy[o] = pick(-99, 99);
    for (int64_t o = 0; o < a->output; ++o)
        for (int64_t k = 0; k < a->kernel; ++k) {
            const int64_t i = padded_index(a, o * a->stride + k * a->dilation - a->pad_before);
            if (i < 0)
                continue;
            l->y[o] += l->w[k] * l->x[i];
            l->gx[i] += l->w[k] * l->gy[o];
            l->gw[k] += l->x[i] * l->gy[o];
        }
    l->taps = a->kernel;
    if (pick(0, 1))
        cf_axis_trim(a);
}

typedef struct place {
    int64_t tile, shift, phase;
} place;

static void load(const cf_axis_window *w, place p, int64_t basis, const int64_t *elements, int64_t *tile) {
    int64_t index[MAX_BASIS];
    memset(tile, 0, (size_t)basis * sizeof *tile);
    assert_true(w->count <= MAX_BASIS);
    cf_window_fill(w, p.tile, p.shift, p.phase, index);
    for (int64_t e = 0; e < w->count; ++e) {
        const int64_t position = w->first + e * w->spread;
        assert_true(position >= 0 && position < basis);
        if (index[e] >= 0)
            tile[position] = elements[index[e]];
    }
}

/* elements[..] += tile; stores[..] counts the stores. */
static void store(const cf_axis_window *w, place p, int64_t basis, const int64_t *tile, int64_t *elements,
                  int *stores) {
    int64_t index[MAX_BASIS];
    cf_window_fill(w, p.tile, p.shift, p.phase, index);
    for (int64_t e = 0; e < w->count; ++e) {
        const int64_t position = w->first + e * w->spread;
        assert_true(position >= 0 && position < basis);
        if (index[e] < 0)
            continue;
        elements[index[e]] += tile[position];
        ++stores[index[e]];
    }
}

typedef enum product {
    CORRELATE,
    CONVOLVE
} product;

/* c[i] += sum_j b[j] a[i + j] or a[i - j], with indices modulo n, as a product of spectra computes it. */
static void circular(product kind, int64_t n, const int64_t *a, const int64_t *b, int64_t *c) {
    for (int64_t j = 0; j < n; ++j) {
        if (b[j] == 0)
            continue;
        for (int64_t i = 0; i < n; ++i)
            c[i] += b[j] * a[kind == CORRELATE ? (i + j) % n : (i + n - j) % n];
    }
}

#define FOR_PLACES(p, w)                                         \
    for ((p).tile = 0; (p).tile < (w).tiles; ++(p).tile)         \
        for ((p).shift = 0; (p).shift < (w).shifts; ++(p).shift) \
            for ((p).phase = 0; (p).phase < (w).phases; ++(p).phase)

static void check_forward(const layer *l, const cf_axis_grid *g) {
    const cf_axis_window x = cf_axis_window_make(&l->axis, g, CF_ROLE_X),
                         w = cf_axis_window_make(&l->axis, g, CF_ROLE_W),
                         y = cf_axis_window_make(&l->axis, g, CF_ROLE_Y);
    int64_t a[MAX_BASIS], b[MAX_BASIS], c[MAX_BASIS], result[4 * MAX_EXTENT] = {0};
    int stores[4 * MAX_EXTENT] = {0};
    assert_true(x.tiles == y.tiles && x.shifts == y.shifts && x.phases == w.phases && y.phases == 1);
    place p;
    FOR_PLACES(p, y) {
        memset(c, 0, sizeof c);
        for (int64_t phase = 0; phase < x.phases; ++phase) {
            load(&x, (place){p.tile, p.shift, phase}, g->basis, l->x, a);
            load(&w, (place){0, 0, phase}, g->basis, l->w, b);
            circular(CORRELATE, g->basis, a, b, c);
        }
        store(&y, p, g->basis, c, result, stores);
    }
    assert_memory_equal(result, l->y, (size_t)l->axis.output * sizeof *result);
    for (int64_t o = 0; o < l->axis.output; ++o)
        assert_int_equal(stores[o], 1);
}

static void check_weights(const layer *l, const cf_axis_grid *g) {
    const cf_axis_window x = cf_axis_window_make(&l->axis, g, CF_ROLE_X),
                         w = cf_axis_window_make(&l->axis, g, CF_ROLE_W),
                         y = cf_axis_window_make(&l->axis, g, CF_ROLE_Y);
    int64_t a[MAX_BASIS], b[MAX_BASIS], c[MAX_BASIS], result[MAX_EXTENT] = {0};
    int stores[MAX_EXTENT] = {0};
    for (int64_t phase = 0; phase < x.phases; ++phase) {
        memset(c, 0, sizeof c);
        place p;
        FOR_PLACES(p, y) {
            load(&x, (place){p.tile, p.shift, phase}, g->basis, l->x, a);
            load(&y, p, g->basis, l->gy, b);
            circular(CORRELATE, g->basis, a, b, c);
        }
        store(&w, (place){0, 0, phase}, g->basis, c, result, stores);
    }
    assert_memory_equal(result, l->gw, (size_t)l->taps * sizeof *result);
    for (int64_t k = 0; k < l->taps; ++k)
        assert_int_equal(stores[k], k >= l->axis.first_tap && k < l->axis.first_tap + l->axis.kernel);
}

static void check_data(const layer *l, const cf_axis_grid *g) {
    const cf_axis *axis = &l->axis;
    cf_axis_window gy = cf_axis_window_make(axis, g, CF_ROLE_GY), w = cf_axis_window_make(axis, g, CF_ROLE_W),
                   gx = cf_axis_window_make(axis, g, CF_ROLE_GX);
    const cf_unit unit = cf_unit_of(axis, g);
    const bool folds = cf_axis_folds(axis, g), covers = cf_window_covers(&gx) && !cf_unit_is_cut(&unit),
               overlaps = cf_window_overlaps(&gx) || cf_unit_is_cut(&unit);
    const int64_t pad = axis->mode == CONV_FFT_PAD_ZEROS ? 0 : axis->pad_before;
    if (folds)
        gx = cf_window_padded(axis, &gx);
    int64_t a[MAX_BASIS], b[MAX_BASIS], c[MAX_BASIS], padded[MAX_BASIS] = {0}, result[MAX_EXTENT] = {0};
    int stores[MAX_BASIS] = {0};
    assert_true(gx.tiles == gy.tiles && gx.shifts == gy.shifts && gx.phases == w.phases && gx.size <= MAX_BASIS);
    place p;
    FOR_PLACES(p, gx) {
        memset(c, 0, sizeof c);
        load(&gy, (place){p.tile, p.shift, 0}, g->basis, l->gy, a);
        load(&w, (place){0, 0, p.phase}, g->basis, l->w, b);
        circular(CONVOLVE, g->basis, a, b, c);
        store(&gx, p, g->basis, c, padded, stores);
    }
    if (folds) {
        for (int64_t i = 0; i < gx.size; ++i) {
            const int64_t index = padded_index(axis, i - pad);
            assert_true(index >= 0);
            result[index] += padded[i];
        }
    } else {
        memcpy(result, padded, sizeof result);
    }
    assert_memory_equal(result, l->gx, (size_t)axis->input * sizeof *result);
    bool once = true, several = false;
    for (int64_t i = 0; i < gx.size; ++i) {
        if (stores[i] != 1)
            once = false;
        if (stores[i] > 1)
            several = true;
    }
    if (!overlaps)
        assert_false(several);
    if (!folds && covers)
        assert_true(once);
    if (!folds && !overlaps && once)
        assert_true(covers);
}

static void geometry_equals_definition(void **unused) {
    (void)unused;
    int64_t one_tile = 0, tiled = 0, wrapped = 0, trimmed = 0, cut = 0, strided = 0;
    const uint64_t count = count_of(TEST_AMOUNT(200000, 40000));
    for (uint64_t i = 0; i < count; ++i) {
        begin(i);
        layer l;
        random_layer(&l);
        cf_axis_grid g = {0};
        g.shift_dilation = pick(0, 1);
        g.overlap_add = pick(0, 1);
        g.segments = pick(0, 1) ? pick(1, l.axis.kernel) : 0;
        const cf_unit unit = cf_unit_of(&l.axis, &g);
        if (cf_unit_is_cut(&unit))
            ++cut;
        if (cf_unit_is_cut(&unit) && unit.tap_step > 1)
            ++strided;
        const int64_t smallest = cf_basis_one_tile(&l.axis, &unit);
        g.tiles = 1;
        g.basis = pick(0, 1) ? smallest : smallest + pick(0, 9);
        if (g.basis < unit.inputs)
            ++wrapped;
        if (l.axis.kernel < l.taps)
            ++trimmed;
        if (cf_grid_fits(&l.axis, &g, CF_ROLE_Y)) { /* not always: N = D + 1 does not wrap */
            ++one_tile;
            check_forward(&l, &g);
            check_weights(&l, &g);
            check_data(&l, &g);
        } else {
            assert_true(g.basis > smallest && l.axis.mode == CONV_FFT_PAD_CIRCULAR);
        }
        g.tiles = pick(1, cf_min(6, unit.inputs));
        g.basis = unit.extent + pick(0, 12);
        if (cf_grid_fits(&l.axis, &g, CF_ROLE_Y)) {
            ++tiled;
            check_forward(&l, &g);
            check_weights(&l, &g);
        }
        if (cf_grid_fits(&l.axis, &g, CF_ROLE_GX))
            check_data(&l, &g);
    }
    print_message(
        "          geometry: %lld one-tile grids, %lld of them shorter than the padded input, %lld tiled, %lld "
        "in segments, %lld of these with a stride\n",
        (long long)one_tile, (long long)wrapped, (long long)tiled, (long long)cut, (long long)strided);
    under_way = false;
    if (count >= 1000) { /* each kind has its share */
        const int64_t all = (int64_t)count;
        assert_true(4 * one_tile > all && 8 * tiled > all && 80 * wrapped > all && 400 * trimmed > all);
        assert_true(10 * cut > all && 20 * strided > all);
    }
}

/* If phases become tiles, the elements of a row and phase stay the same, in the order (shift or tile, phase). */
static void phases_as_tiles(void **unused) {
    (void)unused;
    const uint64_t count = count_of(TEST_AMOUNT(20000, 2000));
    for (uint64_t i = 0; i < count; ++i) {
        begin(i);
        layer l;
        random_layer(&l);
        cf_axis_grid g = {.segments = pick(1, l.axis.kernel), .shift_dilation = pick(0, 1), .tiles = 1};
        const cf_unit unit = cf_unit_of(&l.axis, &g);
        if (unit.shifts == 1)
            g.tiles = pick(1, cf_min(6, unit.inputs));
        g.basis = cf_max(cf_basis_one_tile(&l.axis, &unit), unit.extent + unit.inputs);
        const cf_axis_window gx = cf_axis_window_make(&l.axis, &g, CF_ROLE_GX), rows = cf_window_phases_as_tiles(&gx);
        assert_true(rows.phases == 1 && rows.shifts * rows.tiles == gx.shifts * gx.tiles * gx.phases);
        for (int64_t row = 0; row < rows.shifts * rows.tiles; ++row) {
            const int64_t before = row / gx.phases;
            const int64_t start = cf_window_start(&gx, before % gx.tiles, before / gx.tiles, row % gx.phases);
            assert_int_equal(cf_window_start(&rows, row % rows.tiles, row / rows.tiles, 0), start);
        }
    }
    under_way = false;
}

/* The rules of the smallest basis are tight: a basis that is smaller by one is refused. */
static void smaller_basis_is_refused(void **unused) {
    (void)unused;
    const uint64_t count = count_of(TEST_AMOUNT(20000, 2000));
    for (uint64_t i = 0; i < count; ++i) {
        begin(i);
        layer l;
        random_layer(&l);
        const cf_unit unit = cf_unit_make(&l.axis, false);
        const cf_axis_grid g = {cf_basis_one_tile(&l.axis, &unit) - 1, 1, false, false, 1};
        if (l.axis.mode == CONV_FFT_PAD_CIRCULAR && g.basis == l.axis.input)
            continue;
        assert_false(cf_grid_fits(&l.axis, &g, CF_ROLE_Y));
    }
    under_way = false;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(geometry_equals_definition, print_failed),
        cmocka_unit_test_teardown(phases_as_tiles, print_failed),
        cmocka_unit_test_teardown(smaller_basis_is_refused, print_failed),
    };
    return cmocka_run_group_tests_name("tiling", tests, NULL, NULL);
}
