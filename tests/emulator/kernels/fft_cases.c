/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/fft_cases.h"

#include "support/fft_cases.h"
#include "support/random_problems.h"
#include "support/selection.h"
#include "tiling/tiling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_CASES = 2000
};

static tile_case list[MOST_CASES];
static int count;

static tile_case *add(fbfft_desc desc, int64_t batch) {
    if (count == MOST_CASES)
        abort();
    list[count] = (tile_case){.desc = desc, .batch = batch, .groups = 1};
    return &list[count++];
}

static bool is_inverse(fbfft_kind kind) { return kind == FBFFT_C2R || kind == FBFFT_C2C_INVERSE; }

/* The inverse of a forward kind, or itself. */
static fbfft_kind directed(fbfft_kind kind, bool inverse) { return (fbfft_kind)((int)kind + inverse); }

static void set_order(tile_case *c, int64_t order, bool channels_last, int64_t channels) {
    c->desc.order = (fbfft_order)order;
    c->desc.layout = channels_last ? CONV_FFT_CHANNELS_LAST : CONV_FFT_CHANNELS_FIRST;
    c->desc.channels = channels;
}

/* What layers ask of real transforms. */
static void set_added(tile_case *c) {
    const bool real_signal = c->desc.kind == FBFFT_R2C || c->desc.kind == FBFFT_C2R;
    c->added = c->desc.kind == FBFFT_C2R;
    c->groups = real_signal ? 2 : 1;
}

/* ---------------------------------------------------------------------------------------------------- families */

/* Every basis from 2 to 256 in both directions, whole and in part; order, type and layout by turns. Whole ones are sometimes the planner's,
 * for which shared_memory/kernel.cuh need not be the best. */
static void lines(void) {
    static const conv_fft_dtype types[] = {CONV_FFT_FP32, CONV_FFT_FP32, CONV_FFT_FP16, CONV_FFT_FP32, CONV_FFT_BF16};
    for (int64_t n = 2, i = 0; n <= 256; ++n) {
        const int64_t parts[] = {n - 1, (n + 2) / 3, n / 2 + 1};
        for (int j = 0; j < 4 && fft_is_basis(n); ++j, ++i) {
            const bool whole = j / 2 == i / 4 % 2;
            const fbfft_kind kind = i % 7 == 3 ? FBFFT_C2C_FORWARD : FBFFT_R2C;
            const int64_t batch = n <= 16 && i % 3 == 0 ? 261 : i % 7 + 2; /* some fill blocks */
            tile_case *c = add(fft_desc(1, directed(kind, j % 2), n, whole ? 0 : parts[i / 4 % 3]), batch);
            c->forced = !whole || i % 3;
            if (c->forced) {
                set_order(c, i % 3, i % 5 == 2, i % 3 == 2 ? 5 : i % 2 + 1);
                c->desc.dtype = types[i / 3 % 5];
            }
            c->shifted = i % 4 == 1;
        }
    }
}

static void long_lines(void) {
    static const int64_t bases[] = {625, 1024, 4096, 16384, 343, 7200, 15625};
    for (int i = 0; i < 14; ++i) {
        const int64_t n = bases[i % 7];
        const fbfft_kind kind = i % 4 == 2 ? FBFFT_C2C_FORWARD : FBFFT_R2C;
        tile_case *c = add(fft_desc(1, directed(kind, i / 7), n, i % 3 ? 0 : n - 3), 2);
        set_order(c, i % 3, false, i % 3 == 2 && n < 4096 ? 3 : 1);
        c->shifted = i % 2;
    }
}

/* Every basis from 2 to 256 on both axes and in both directions, whole and in part. Where planes are too large for a block these take two
 * passes. */
static void squares(void) {
    for (int64_t n = 2, i = 0; n <= 256; ++n) {
        const int64_t parts[] = {n - 1, (n + 2) / 3, n / 2 + 1};
        for (int j = 0; j < 4 && fft_is_basis(n); ++j, ++i) {
            const bool inverse = j % 2;
            const fbfft_kind kind = i % 9 == 4 && n <= 128 ? FBFFT_C2C_FORWARD : FBFFT_R2C;
            const int64_t batch = n <= 8 && i % 3 == 0 ? 67 : n <= 16 ? 3 : 1;
            tile_case *c = add(fft_desc(2, directed(kind, inverse), n, j < 2 ? 0 : parts[i / 3 % 3]), batch);
            set_order(c, i / 2 % 3, i % 5 == 2 && n < 128, i / 2 % 3 == 2 && n < 128 ? 3 : 1);
            c->desc.scale = i % 7 ? 1 : -0.5;
            c->forced = n <= 128;
            c->shifted = i % 7 % 4 == 1;
            if (i % 6 == 5 && n <= 128)
                set_added(c);
        }
    }
}

static int64_t random_basis(generator *g) {
    int64_t n = random_int(g, 1, random_once_in(g, 3) ? 256 : 40);
    while (!fft_is_basis(n))
        --n;
    return n;
}

/* Of 60 shapes, in both directions. */
static void rectangles(void) {
    generator g = generator_create(1);
    int64_t basis[2] = {1, 1};
    for (int i = 0; i < 120; ++i) {
        fbfft_desc d = fft_desc(2, directed(i / 2 % 6 == 5 ? FBFFT_C2C_FORWARD : FBFFT_R2C, i % 2), 1, 0);
        for (int a = 0; a < 2; ++a) {
            if (i % 2 == 0)
                basis[a] = random_basis(&g);
            d.basis[a] = basis[a];
            d.extent[a] = random_once_in(&g, 3) ? 0 : random_int(&g, 1, d.basis[a]);
        }
        const bool small = d.basis[0] * d.basis[1] < 4096;
        tile_case *c = add(d, small ? 3 : 1);
        set_order(c, i % 3, i % 4 == 2, i % 3 == 2 && small ? 4 : i % 2 + 1);
        c->forced = small;
        c->shifted = i % 5 == 3;
        if (i % 7 == 6)
            set_added(c);
    }
}

/* Real planes in natural order that are too large for a block: the real size, and small ones where blocks have little memory. */
static void two_kernels(conv_fft_dtype dtype) {
    static const int64_t planes[][2] = {{256, 256}, {12, 16}, {16, 12}, {48, 64}, {256, 250}, {4, 30}, {30, 14}};
    for (int i = 0; i < 28; ++i) {
        const int64_t *basis = planes[i / 2 % 7];
        const bool large = basis[1] > 128;
        if (dtype == CONV_FFT_FP64 && (large || i >= 14))
            continue;
        fbfft_desc d = fft_desc(2, i % 2 ? FBFFT_C2R : FBFFT_R2C, 1, 0);
        for (int a = 0; a < 2; ++a)
            d.basis[a] = basis[a];
        d.extent[0] = i % 3 == 1 ? basis[0] - 1 : i % 3 == 2 ? (basis[0] + 1) / 2 : 0;
        d.extent[1] = i % 5 == 1 ? basis[1] - 2 : i % 5 == 3 ? basis[1] / 4 * 2 : 0;
        if (i % 6 >= 4) {
            d.size[0] = d.extent[0] ? d.extent[0] : basis[0];
            d.offset[0] = i < 14 ? -1 : 1;
            d.step[0] = i < 14 ? 1 : 2;
            d.padding = i % 2 ? CONV_FFT_PAD_ZEROS : CONV_FFT_PAD_CIRCULAR;
        }
        d.dtype = dtype;
        d.scale = i % 4 < 2 ? 1 : 0.5;
        tile_case *c = add(d, large ? 1 : i % 3 + 2);
        c->passes = 2;
        c->shifted = i / 2 % 3 == 1;
        c->chunk = i % 3;
        if (!large)
            c->shared = (dtype == CONV_FFT_FP64 ? 2 : 1) * (basis[0] == 48 ? 2500 : 420);
    }
}

static void volumes(conv_fft_dtype dtype) {
    static const int64_t bases[][3] = {{4, 6, 8},  {5, 3, 7},  {6, 1, 4},    {1, 9, 5},   {8, 8, 8},
                                       {2, 3, 64}, {70, 4, 6}, {16, 16, 16}, {10, 80, 3}, {32, 32, 32}};
    for (int i = 0; i < (dtype == CONV_FFT_FP64 ? 6 : 20); ++i) {
        fbfft_desc d = fft_desc(3, directed(i % 5 == 4 ? FBFFT_C2C_FORWARD : FBFFT_R2C, i % 2 != i / 10), 1, 0);
        for (int a = 0; a < 3; ++a) {
            d.basis[a] = bases[i % 10][a];
            d.extent[a] = i / 10 ? 0 : (d.basis[a] + a) / 2 + (d.basis[a] > 3);
        }
        d.dtype = dtype;
        tile_case *c = add(d, i % 10 < 5 ? 3 : 1);
        set_order(c, i % 3, i % 4 == 3, i % 3 == 2 ? 2 : 1);
        c->shifted = i % 4 == 2;
    }
}

/* Planes and volumes that GPUs with little shared memory transform in several passes. */
static void several_passes(conv_fft_dtype dtype) {
    static const int64_t planes[][2] = {{12, 16}, {15, 14}, {16, 20}, {20, 9}}, volumes[][3] = {{6, 8, 12}, {5, 9, 7}};
    for (int i = 0; i < 72; ++i) {
        const fbfft_kind kind = (fbfft_kind)(i % 4);
        const int order = i / 4 % 3, rank = i < 36 ? 2 : 3, passes = i < 60 ? 2 : 3;
        const int64_t *basis = rank == 2 ? planes[i / 3 % 4] : volumes[i / 3 % 2];
        fbfft_desc d = fft_desc(rank, kind, 1, 0);
        for (int a = 0; a < rank; ++a) {
            d.basis[a] = basis[a];
            d.extent[a] = i % 5 == 2 ? 0 : i % 5 == 3 ? basis[a] / 2 : basis[a] - a;
        }
        if (dtype == CONV_FFT_FP64 && i % 5)
            continue;
        d.dtype = dtype;
        d.scale = i % 3 ? 1 : 0.25;
        tile_case *c = add(d, i % 4 + 2);
        set_order(c, order, i % 7 == 3, order == 2 || i % 7 == 3 ? 3 : i % 2 + 1);
        c->passes = passes;
        /* Frequency-major, a block must have room for planes of whole sectors: as many bytes of either type. */
        const bool major = order == FBFFT_FREQUENCY_MAJOR, sectors = major && (rank == 2 ? i % 2 : passes == 2);
        if (sectors)
            c->shared = rank == 2 ? 3000 : 4000;
        else
            c->shared = (dtype == CONV_FFT_FP64 ? 2 : 1) * (rank == 2 ? i % 3 ? 260 : 700 : passes == 3 ? 200 : 1000);
        c->shifted = i % 4 == 1;
        c->chunk = i % 3;
        if (major && i % 2)
            set_added(c);
    }
}

/* Some of the lists of the tests on devices. */
static void take(fft_list *taken, int every, conv_fft_dtype dtype) {
    for (int i = 0; i < taken->count; i += every) {
        const fft_case *from = &taken->cases[i];
        tile_case *c = add(from->desc, from->batch);
        c->forced = i % 2;
        c->shifted = i % 3 == 1;
        c->desc.dtype = dtype == CONV_FFT_FP64 || i % 4 < 2 ? dtype : i % 4 == 2 ? CONV_FFT_FP16 : CONV_FFT_BF16;
    }
    free(taken->cases);
    *taken = (fft_list){0};
}

static void layouts_and_windows(conv_fft_dtype dtype, int every) {
    fft_list taken = {0};
    for (int kind = FBFFT_R2C; kind <= FBFFT_C2C_INVERSE; ++kind) {
        fft_add_layouts(&taken, (fbfft_kind)kind, dtype);
        take(&taken, 5 * every, dtype);
        fft_add_windows(&taken, (fbfft_kind)kind, dtype);
        take(&taken, (is_inverse((fbfft_kind)kind) ? 2 : 4) * every + 1, dtype);
    }
}

/* Everything that a description can say, by chance: other ones for each seed. */
static void random_ones(void) {
    for (uint64_t i = 0; i < 80; ++i) {
        const fft_case from = fft_random_case(test_seed() + i, 512);
        tile_case *c = add(from.desc, from.batch);
        c->forced = c->drawn = true;
        c->shifted = from.in_shift + from.out_shift > 3;
    }
}

static void doubles(void) {
    static const int64_t bases[] = {2, 7, 12, 15, 40, 45, 64, 100, 128, 243, 256};
    for (int i = 0; i < 22; ++i) {
        const fbfft_kind kind = directed(i % 3 == 2 ? FBFFT_C2C_FORWARD : FBFFT_R2C, i % 2);
        for (int rank = 1; rank < 3; ++rank) {
            if (rank == 2 && bases[i / 2] > 64)
                continue;
            fbfft_desc d = fft_desc(rank, kind, bases[i / 2], i % 4 < 2 ? bases[i / 2] / 2 + 1 : 0);
            d.dtype = CONV_FFT_FP64;
            tile_case *c = add(d, 2);
            set_order(c, (i + rank) % 3, i % 5 == 3, i % 4 + 1);
            c->shifted = i % 4 == 1;
        }
    }
}

/* ------------------------------------------------------------------------------------------------ layers' windows */

/* An axis of a layer, and what of it is transformed. */
typedef struct layer_axis {
    int64_t basis, input, kernel, stride, dilation, pad;
    int64_t tiles;
    bool shifts, overlap_add; /* the dilation leaves as shifts */
    conv_fft_padding mode;
    int64_t piece;
} layer_axis;

static const layer_axis layer_axes[] = {
    {.basis = 16, .input = 12, .kernel = 4, .stride = 1, .dilation = 1, .pad = 2, .tiles = 1},
    {.basis = 12, .input = 30, .kernel = 4, .stride = 1, .dilation = 1, .pad = 1, .tiles = 4},
    {.basis = 8, .input = 19, .kernel = 3, .stride = 1, .dilation = 1, .pad = 1, .tiles = 4, .overlap_add = true},
    {.basis = 20, .input = 37, .kernel = 6, .stride = 2, .dilation = 1, .pad = 3, .tiles = 2},
    {.basis = 24, .input = 16, .kernel = 3, .stride = 1, .dilation = 3, .pad = 3, .tiles = 1},
    {.basis = 10, .input = 25, .kernel = 2, .stride = 1, .dilation = 2, .pad = 1, .tiles = 2, .shifts = true},
    {.basis = 28, .input = 20, .kernel = 5, .stride = 1, .dilation = 1, .pad = 2, .tiles = 1, .mode = 2},
    {.basis = 8, .input = 17, .kernel = 4, .stride = 3, .dilation = 2, .pad = 3, .tiles = 2, .mode = 3},
    {.basis = 9, .input = 21, .kernel = 2, .stride = 1, .dilation = 1, .pad = 0, .tiles = 3},
    {.basis = 40, .input = 58, .kernel = 8, .stride = 1, .dilation = 1, .pad = 4, .tiles = 2, .mode = 1},
    {.basis = 7, .input = 13, .kernel = 3, .stride = 2, .dilation = 1, .pad = 1, .tiles = 2},
};

static cf_axis_window window_of(const layer_axis *l, cf_role role) {
    const bool zeros = l->mode == CONV_FFT_PAD_ZEROS;
    const int64_t reach = (l->kernel - 1) * l->dilation + 1;
    const cf_axis axis = {.input = l->input,
                          .kernel = l->kernel,
                          .stride = l->stride,
                          .dilation = l->dilation,
                          .pad_before = l->pad,
                          .pad_after = l->pad,
                          .output = (l->input + 2 * l->pad - reach) / l->stride + 1,
                          /* Gradients of other padding go to a scratch that covers it. */
                          .mode = l->mode,
                          .piece = l->piece};
    cf_axis folded = axis;
    if (!zeros) {
        folded.input += 2 * l->pad;
        folded.pad_before = folded.pad_after = 0;
        folded.mode = CONV_FFT_PAD_ZEROS;
    }
    const cf_axis_grid grid = {
        .basis = l->basis, .tiles = l->tiles, .overlap_add = l->overlap_add, .shift_dilation = l->shifts};
    const bool of_gx = role == CF_ROLE_GX || role == CF_ROLE_GY;
    const cf_axis *const own = of_gx ? &folded : &axis;
    if (!cf_grid_fits(own, &grid, of_gx ? CF_ROLE_GX : CF_ROLE_Y)) {
        fprintf(stderr, "basis %d is too small for its layer\n", (int)l->basis);
        abort();
    }
    return cf_axis_window_make(own, &grid, role);
}

/* What every operand of a layer is: rank and axes by turns. halves: 16-bit spectra; cut: planes and volumes of these in two kernels. */
static void layers(conv_fft_dtype dtype, bool halves, bool cut, int every) {
    enum {
        AXES = sizeof layer_axes / sizeof layer_axes[0],
        WINDOWS = 6 * 2 * AXES
    };
    static const cf_role roles[] = {CF_ROLE_X, CF_ROLE_W, CF_ROLE_GY, CF_ROLE_Y, CF_ROLE_GX, CF_ROLE_W};
    static cf_window windows[4][WINDOWS];
    static const cf_axis_window none = {
        .spread = 1, .count = 1, .step = 1, .tiles = 1, .shifts = 1, .phases = 1, .upper = 1, .size = 1};
    for (int i = halves ? 1 : 0; i < WINDOWS; i += every) {
        const int first = i / 6, rank = i / 6 % 3 == 2 ? 1 + 2 * (i / 18 % 2) : 2;
        cf_window *const w = &windows[cut ? 3 : halves ? 2 : dtype == CONV_FFT_FP64][i];
        fbfft_desc d = fft_desc(rank, i % 6 < 3 ? FBFFT_R2C : FBFFT_C2R, 1, 0);
        bool overlapping = false;
        for (int x = 0; x < 3; ++x) {
            const int a = x - 3 + rank;
            w->axis[x] = none;
            if (a < 0)
                continue;
            /* Volumes get small axes. */
            const layer_axis *l = &layer_axes[rank == 3 && a < 2 ? (a ? 10 : 8) : (first + 3 * a) % AXES];
            w->axis[x] = window_of(l, roles[i % 6]);
            overlapping = overlapping || (l->overlap_add && l->tiles > 1);
            d.basis[a] = l->basis;
            d.size[a] = w->axis[x].size;
        }
        if (cut && rank == 1)
            continue;
        d.dtype = dtype != CONV_FFT_FP64 && !overlapping && i % 7 == 4 ? CONV_FFT_BF16 : dtype;
        d.scale = i % 4 == 1 ? 0.125 : 1;
        if (halves) {
            d.dtype = overlapping || i % 3 == 2 ? CONV_FFT_FP32 /* where these add up */
                      : i % 3 == 0              ? CONV_FFT_BF16
                                                : CONV_FFT_FP16;
            d.scale = d.kind == FBFFT_R2C ? 1 : d.scale;
        }
        tile_case *c = add(d, rank == 1 ? 5 : 2);
        /* Of spectra in 16 bits, some with whole scales. */
        set_order(c, FBFFT_FREQUENCY_MAJOR, i % 5 == 1, halves && i / 7 % 2 ? 8 * (i % 2 + 1) : i % 3 + 1);
        c->window = w;
        c->overlapping = overlapping && roles[i % 6] == CF_ROLE_GX;
        c->added = c->overlapping || i % 8 == 3;
        c->shifted = i % 4 == 2;
        c->halves = halves;
        if (i % 11 % 5 == 3 && rank == 2 && !halves) /* two kernels, either way */
            c->shared = 3000;
        if (cut) {
            c->shared = rank == 3 ? 20000 : 25 * d.basis[0] * d.basis[1];
            c->passes = 2;
        }
        c->chunk = i % 3;
    }
}

/* Rows that begin between multiples of four numbers and wait in pieces that do not: padding on one side or both, tiles, spectra of either size. */
static void early_rows(void) {
    static const layer_axis rows[] = {
        {.basis = 20, .input = 32, .kernel = 5, .stride = 1, .dilation = 1, .pad = 2, .tiles = 2},
        {.basis = 16, .input = 12, .kernel = 3, .stride = 1, .dilation = 1, .pad = 1, .tiles = 1},
        {.basis = 36, .input = 64, .kernel = 5, .stride = 1, .dilation = 1, .pad = 2, .tiles = 2},
        {.basis = 24, .input = 40, .kernel = 7, .stride = 1, .dilation = 1, .pad = 3, .tiles = 3},
        {.basis = 12, .input = 18, .kernel = 4, .stride = 1, .dilation = 1, .pad = 1, .tiles = 3},
        {.basis = 28, .input = 24, .kernel = 4, .stride = 1, .dilation = 1, .pad = 3, .tiles = 1},
        {.basis = 20, .input = 32, .kernel = 7, .stride = 1, .dilation = 1, .pad = 4, .tiles = 3},
        {.basis = 36, .input = 64, .kernel = 3, .stride = 1, .dilation = 1, .pad = 1, .tiles = 3, .piece = 4},
        {.basis = 20, .input = 12, .kernel = 3, .stride = 1, .dilation = 1, .pad = 1, .tiles = 1, .piece = 4}};
    static const layer_axis columns[] = {
        {.basis = 10, .input = 12, .kernel = 3, .stride = 1, .dilation = 1, .pad = 1, .tiles = 2},
        {.basis = 9, .input = 11, .kernel = 4, .stride = 1, .dilation = 1, .pad = 2, .tiles = 2}};
    static const cf_axis_window none = {
        .spread = 1, .count = 1, .step = 1, .tiles = 1, .shifts = 1, .phases = 1, .upper = 1, .size = 1};
    static const conv_fft_dtype types[] = {CONV_FFT_FP32, CONV_FFT_FP32, CONV_FFT_FP16, CONV_FFT_BF16};
    enum {
        CASES = 8 * sizeof rows / sizeof rows[0]
    };
    static cf_window windows[CASES];
    for (int i = 0; i < CASES; ++i) {
        const layer_axis *const own[] = {&columns[i % 2], &rows[i / 8]};
        cf_window *const w = &windows[i];
        fbfft_desc d = fft_desc(2, FBFFT_R2C, 1, 0);
        w->axis[0] = none;
        for (int a = 0; a < 2; ++a) {
            w->axis[a + 1] = window_of(own[a], i / 4 % 2 ? CF_ROLE_GY : CF_ROLE_X);
            d.basis[a] = own[a]->basis;
            d.size[a] = w->axis[a + 1].size;
        }
        d.dtype = types[i % 4];
        tile_case *c = add(d, 2);
        set_order(c, FBFFT_FREQUENCY_MAJOR, false, i % 3 ? 8 : 3);
        c->window = w;
        c->shifted = i % 7 == 6;
        c->halves = i % 4 > 0;
    }
}

/* Rows of 16-bit numbers that are stored four at a time, onto what is there. */
static void added_rows(void) {
    static const layer_axis axes[] = {
        {.basis = 16, .input = 12, .kernel = 4, .stride = 1, .dilation = 1, .pad = 2, .tiles = 1},
        {.basis = 28, .input = 20, .kernel = 5, .stride = 1, .dilation = 1, .pad = 2, .tiles = 1}};
    static const conv_fft_dtype types[] = {CONV_FFT_FP16, CONV_FFT_BF16};
    static const cf_axis_window none = {
        .spread = 1, .count = 1, .step = 1, .tiles = 1, .shifts = 1, .phases = 1, .upper = 1, .size = 1};
    static cf_window window;
    fbfft_desc d = fft_desc(2, FBFFT_C2R, 1, 0);
    window.axis[0] = none;
    for (int a = 0; a < 2; ++a) {
        window.axis[a + 1] = window_of(&axes[a], CF_ROLE_Y);
        d.basis[a] = axes[a].basis;
        d.size[a] = window.axis[a + 1].size;
    }
    for (int i = 0; i < 2; ++i) {
        d.dtype = types[i];
        tile_case *c = add(d, 2);
        set_order(c, FBFFT_FREQUENCY_MAJOR, false, 3);
        c->window = &window;
        c->added = true;
    }
}

/* Planes whose 16-bit spectra matrix products make: whole, in part, in pieces of each width, tiled, padded, with blocks that are not full; then
 * planes that touch. */
static void matrices(void) {
    static const layer_axis axes[][2] = {
        {{.basis = 64, .input = 64, .kernel = 9, .stride = 1, .dilation = 1, .tiles = 1},
         {.basis = 64, .input = 64, .kernel = 9, .stride = 1, .dilation = 1, .tiles = 1}},
        {{.basis = 32, .input = 32, .kernel = 9, .stride = 1, .dilation = 1, .tiles = 1},
         {.basis = 32, .input = 32, .kernel = 5, .stride = 1, .dilation = 1, .tiles = 1}},
        {{.basis = 64, .input = 57, .kernel = 4, .stride = 1, .dilation = 2, .pad = 3, .tiles = 1},
         {.basis = 32, .input = 44, .kernel = 5, .stride = 1, .dilation = 1, .pad = 2, .tiles = 2}},
        {{.basis = 32, .input = 40, .kernel = 3, .stride = 2, .dilation = 1, .pad = 1, .tiles = 1},
         {.basis = 64, .input = 50, .kernel = 7, .stride = 1, .dilation = 1, .pad = 5, .tiles = 1, .mode = 2}},
        {{.basis = 32, .input = 20, .kernel = 17, .stride = 1, .dilation = 1, .pad = 4, .tiles = 1},
         {.basis = 32, .input = 30, .kernel = 19, .stride = 1, .dilation = 1, .pad = 1, .tiles = 1}},
        {{.basis = 32, .input = 44, .kernel = 5, .stride = 1, .dilation = 1, .pad = 2, .tiles = 2},
         {.basis = 32, .input = 50, .kernel = 3, .stride = 2, .dilation = 1, .pad = 1, .tiles = 1, .mode = 2}},
        {{.basis = 16, .input = 16, .kernel = 7, .stride = 1, .dilation = 1, .tiles = 1},
         {.basis = 16, .input = 16, .kernel = 7, .stride = 1, .dilation = 1, .tiles = 1}},
        {{.basis = 16, .input = 13, .kernel = 4, .stride = 1, .dilation = 2, .pad = 1, .tiles = 1},
         {.basis = 16, .input = 24, .kernel = 4, .stride = 1, .dilation = 1, .pad = 2, .tiles = 2}}};
    static const cf_role roles[] = {CF_ROLE_X, CF_ROLE_W, CF_ROLE_GY, CF_ROLE_Y, CF_ROLE_GX, CF_ROLE_W};
    static const cf_axis_window none = {
        .spread = 1, .count = 1, .step = 1, .tiles = 1, .shifts = 1, .phases = 1, .upper = 1, .size = 1};
    enum {
        SHAPES = sizeof axes / sizeof axes[0],
        ROLES = sizeof roles / sizeof roles[0]
    };
    static cf_window windows[4 * SHAPES * ROLES];
    for (int n = 0; n < 4 * SHAPES * ROLES; ++n) {
        const int role = n % ROLES, shape = n / ROLES % SHAPES;
        const bool abreast = n >= 2 * SHAPES * ROLES, floats = n / (SHAPES * ROLES) % 2;
        if ((shape >= 5 && !abreast) || (floats && shape % 2)) /* some abreast alone */
            continue;
        cf_window *const w = &windows[n];
        fbfft_desc d = fft_desc(2, role < 3 ? FBFFT_R2C : FBFFT_C2R, 1, 0);
        w->axis[0] = none;
        for (int a = 0; a < 2; ++a) {
            const layer_axis *l = &axes[shape][a];
            w->axis[a + 1] = window_of(l, roles[role]);
            d.basis[a] = l->basis;
            d.size[a] = w->axis[a + 1].size;
        }
        d.dtype = floats ? CONV_FFT_FP32 : shape % 2 == role % 2 ? CONV_FFT_FP16 : CONV_FFT_BF16;
        d.scale = d.kind == FBFFT_C2R ? 0.125 : 1;
        tile_case *c = add(d, 2);
        set_order(c, FBFFT_FREQUENCY_MAJOR, abreast,
                  abreast                  ? (shape + role + floats) % 2 ? 8 : 16
                  : (shape + role / 2) % 2 ? 8
                                           : 5);
        c->window = w;
        c->added = (shape * ROLES + role) % 4 == 3;
        c->shifted = (shape * ROLES + role) % 5 == 4;
        c->halves = true;
        c->matrix = role != (shape == 4 ? 2 : 1); /* small windows of few data: weights, or of large ones gy */
    }
}

/* The gradient of x begins behind the first 16 rows of the basis. */
static void matrices_behind_rows(void) {
    static const layer_axis axes[] = {
        {.basis = 64, .input = 30, .kernel = 33, .stride = 1, .dilation = 1, .pad = 17, .tiles = 1},
        {.basis = 64, .input = 40, .kernel = 9, .stride = 1, .dilation = 1, .pad = 2, .tiles = 1}};
    static cf_window window;
    window.axis[0] = (cf_axis_window){
        .spread = 1, .count = 1, .step = 1, .tiles = 1, .shifts = 1, .phases = 1, .upper = 1, .size = 1};
    fbfft_desc d = fft_desc(2, FBFFT_C2R, 64, 0);
    for (int a = 0; a < 2; ++a) {
        window.axis[a + 1] = window_of(&axes[a], CF_ROLE_GX);
        d.size[a] = window.axis[a + 1].size;
    }
    d.dtype = CONV_FFT_FP16;
    d.scale = 0.125;
    for (int touching = 0; touching < 2; ++touching) {
        tile_case *c = add(d, 2);
        set_order(c, FBFFT_FREQUENCY_MAJOR, touching, touching ? 16 : 5);
        c->window = &window;
        c->halves = c->matrix = true;
    }
}

/* Columns of two steps in front of odd rows: the first step back reads bins whose imaginary parts do not count. */
static void own_mirrors(void) {
    static const layer_axis axes[] = {{.basis = 80, .input = 80, .kernel = 9, .stride = 1, .dilation = 1, .tiles = 1},
                                      {.basis = 9, .input = 9, .kernel = 3, .stride = 1, .dilation = 1, .tiles = 1}};
    static cf_window window;
    fbfft_desc d = fft_desc(2, FBFFT_C2R, 80, 0);
    window.axis[0] = (cf_axis_window){
        .spread = 1, .count = 1, .step = 1, .tiles = 1, .shifts = 1, .phases = 1, .upper = 1, .size = 1};
    for (int a = 0; a < 2; ++a) {
        window.axis[a + 1] = window_of(&axes[a], CF_ROLE_Y);
        d.basis[a] = axes[a].basis;
        d.size[a] = window.axis[a + 1].size;
    }
    tile_case *c = add(d, 2);
    set_order(c, FBFFT_FREQUENCY_MAJOR, false, 3);
    c->window = &window;
}

/* The same of lines, of which short ones may touch. */
static void matrix_lines(void) {
    static const layer_axis axes[] = {
        {.basis = 4096, .input = 3000, .kernel = 1023, .stride = 1, .dilation = 1, .pad = 511, .tiles = 1},
        {.basis = 1024, .input = 2048, .kernel = 257, .stride = 1, .dilation = 1, .tiles = 3},
        {.basis = 2048, .input = 1131, .kernel = 601, .stride = 1, .dilation = 1, .pad = 300, .tiles = 1, .mode = 2},
        {.basis = 512, .input = 1290, .kernel = 129, .stride = 1, .dilation = 1, .pad = 64, .tiles = 4},
        {.basis = 256, .input = 1000, .kernel = 33, .stride = 2, .dilation = 1, .pad = 5, .tiles = 3, .mode = 1},
        {.basis = 1024, .input = 1024, .kernel = 129, .stride = 1, .dilation = 1, .tiles = 1},
        {.basis = 512, .input = 1536, .kernel = 65, .stride = 1, .dilation = 4, .pad = 128, .tiles = 1, .shifts = true},
        {.basis = 2048, .input = 2048, .kernel = 1001, .stride = 1, .dilation = 1, .tiles = 1},
        {.basis = 4096, .input = 4096, .kernel = 2, .stride = 1, .dilation = 1000, .tiles = 1},
        {.basis = 256, .input = 256, .kernel = 97, .stride = 1, .dilation = 1, .tiles = 1},
        {.basis = 128, .input = 1120, .kernel = 17, .stride = 1, .dilation = 1, .pad = 8, .tiles = 10},
        {.basis = 64, .input = 600, .kernel = 3, .stride = 1, .dilation = 1, .pad = 1, .tiles = 10},
        {.basis = 32, .input = 240, .kernel = 9, .stride = 1, .dilation = 1, .pad = 4, .tiles = 10},
        {.basis = 16, .input = 132, .kernel = 5, .stride = 1, .dilation = 1, .pad = 2, .tiles = 11},
        {.basis = 128, .input = 90, .kernel = 31, .stride = 1, .dilation = 1, .pad = 15, .tiles = 1, .mode = 2},
        {.basis = 128, .input = 480, .kernel = 33, .stride = 1, .dilation = 1, .pad = 0, .tiles = 5},
        {.basis = 64, .input = 64, .kernel = 17, .stride = 1, .dilation = 1, .tiles = 1},
        {.basis = 64, .input = 240, .kernel = 5, .stride = 1, .dilation = 4, .pad = 8, .tiles = 1, .shifts = true},
        {.basis = 32, .input = 81, .kernel = 6, .stride = 1, .dilation = 1, .pad = 2, .tiles = 3},
        {.basis = 128, .input = 480, .kernel = 9, .stride = 2, .dilation = 1, .pad = 3, .tiles = 2, .mode = 1},
        {.basis = 32, .input = 60, .kernel = 9, .stride = 3, .dilation = 2, .pad = 5, .tiles = 2, .mode = 3},
        {.basis = 16, .input = 13, .kernel = 4, .stride = 1, .dilation = 2, .pad = 1, .tiles = 1},
        {.basis = 16, .input = 44, .kernel = 3, .stride = 1, .dilation = 1, .tiles = 4},
        {.basis = 32, .input = 32, .kernel = 17, .stride = 1, .dilation = 1, .tiles = 1},
        {.basis = 64, .input = 300, .kernel = 12, .stride = 1, .dilation = 1, .pad = 5, .tiles = 6},
        {.basis = 128, .input = 128, .kernel = 2, .stride = 1, .dilation = 40, .tiles = 1},
        {.basis = 1024, .input = 2048, .kernel = 127, .stride = 1, .dilation = 1, .pad = 63, .tiles = 3, .piece = 8},
        {.basis = 64, .input = 600, .kernel = 3, .stride = 1, .dilation = 1, .pad = 1, .tiles = 11, .piece = 8},
        {.basis = 128, .input = 120, .kernel = 9, .stride = 1, .dilation = 1, .pad = 4, .tiles = 1, .piece = 8},
        {.basis = 16, .input = 12, .kernel = 3, .stride = 1, .dilation = 1, .pad = 1, .tiles = 1, .piece = 8}};
    enum {
        CASES = 6 * sizeof axes / sizeof axes[0]
    };
    static const cf_role roles[] = {CF_ROLE_X, CF_ROLE_W, CF_ROLE_GY, CF_ROLE_Y, CF_ROLE_GX, CF_ROLE_W};
    static const cf_axis_window none = {
        .spread = 1, .count = 1, .step = 1, .tiles = 1, .shifts = 1, .phases = 1, .upper = 1, .size = 1};
    static const conv_fft_dtype types[] = {CONV_FFT_FP16, CONV_FFT_BF16, CONV_FFT_FP32};
    static cf_window windows[2 * CASES];
    for (int n = 0; n < 2 * CASES; ++n) {
        const int i = n % CASES;
        const bool touching = n >= CASES;
        const layer_axis *l = &axes[i / 6];
        cf_window *const w = &windows[n];
        if (touching && l->basis > 128)
            continue;
        fbfft_desc d = fft_desc(1, i % 6 < 3 ? FBFFT_R2C : FBFFT_C2R, 1, 0);
        w->axis[0] = w->axis[1] = none;
        w->axis[2] = window_of(l, roles[i % 6]);
        if (d.kind == FBFFT_R2C && 4 * w->axis[2].count <= l->basis)
            continue; /* a small window */
        d.basis[0] = l->basis;
        d.size[0] = w->axis[2].size;
        d.dtype = types[(i / 6 + i % 6 + touching) % 3];
        d.scale = d.kind == FBFFT_C2R ? 0.125 : 1;
        tile_case *c = add(d, 1 + (i % 3 == 0));
        set_order(c, FBFFT_FREQUENCY_MAJOR, touching,
                  touching                  ? 8 * (1 + i % 6 / 2 + 2 * (i / 6 % 2))
                  : (i / 6 + i % 6 / 2) % 2 ? 8
                                            : 5);
        c->window = w;
        c->added = i % 4 == 3;
        c->shifted = i % 5 == 4;
        c->halves = true;
        c->matrix = true;
    }
}

/* Windows of few data that one product transforms: bases of all kinds, one or three axes, dilation and phases, some of which lack taps, planes
 * that touch, warps and blocks of which a part is full, more than nine slabs. */
static void dense_windows(void) {
    static const struct {
        int rank;
        layer_axis axis[3]; /* the first ones */
        cf_role role;
        int channels, rows;
        bool last;
        conv_fft_dtype dtype;
    } cases[] = {
        {2,
         {{.basis = 64, .input = 64, .kernel = 9}, {.basis = 64, .input = 64, .kernel = 9}},
         CF_ROLE_W,
         8,
         3,
         false,
         CONV_FFT_FP16},
        {2,
         {{.basis = 32, .input = 32, .kernel = 9}, {.basis = 32, .input = 32, .kernel = 9}},
         CF_ROLE_W,
         16,
         10,
         false,
         CONV_FFT_FP16},
        {2,
         {{.basis = 32, .input = 32, .kernel = 9}, {.basis = 32, .input = 32, .kernel = 9}},
         CF_ROLE_W,
         24,
         6,
         true,
         CONV_FFT_FP16},
        {2,
         {{.basis = 32, .input = 32, .kernel = 9}, {.basis = 32, .input = 32, .kernel = 9}},
         CF_ROLE_W,
         5,
         7,
         false,
         CONV_FFT_BF16},
        {2,
         {{.basis = 32, .input = 32, .kernel = 9}, {.basis = 32, .input = 32, .kernel = 9}},
         CF_ROLE_W,
         8,
         4,
         false,
         CONV_FFT_FP32},
        {2,
         {{.basis = 64, .input = 64, .kernel = 9}, {.basis = 32, .input = 32, .kernel = 7}},
         CF_ROLE_W,
         8,
         9,
         true,
         CONV_FFT_FP32},
        {2,
         {{.basis = 16, .input = 16, .kernel = 7}, {.basis = 16, .input = 16, .kernel = 7}},
         CF_ROLE_W,
         8,
         18,
         false,
         CONV_FFT_FP16},
        {2,
         {{.basis = 16, .input = 16, .kernel = 7}, {.basis = 16, .input = 16, .kernel = 7}},
         CF_ROLE_W,
         16,
         5,
         true,
         CONV_FFT_BF16},
        {2,
         {{.basis = 16, .input = 13, .kernel = 3}, {.basis = 16, .input = 13, .kernel = 3}},
         CF_ROLE_W,
         40,
         4,
         false,
         CONV_FFT_FP16},
        {2,
         {{.basis = 16, .input = 13, .kernel = 3}, {.basis = 16, .input = 13, .kernel = 3}},
         CF_ROLE_W,
         7,
         5,
         true,
         CONV_FFT_FP32},
        {2,
         {{.basis = 64, .input = 50, .kernel = 5, .dilation = 2},
          {.basis = 32, .input = 30, .kernel = 4, .dilation = 3}},
         CF_ROLE_W,
         8,
         2,
         false,
         CONV_FFT_FP16},
        {2,
         {{.basis = 20, .input = 20, .kernel = 4}, {.basis = 24, .input = 24, .kernel = 5}},
         CF_ROLE_W,
         3,
         6,
         false,
         CONV_FFT_FP16},
        {2,
         {{.basis = 45, .input = 40, .kernel = 5, .dilation = 3}, {.basis = 28, .input = 28, .kernel = 2}},
         CF_ROLE_W,
         4,
         3,
         false,
         CONV_FFT_BF16},
        {2,
         {{.basis = 28, .input = 28, .kernel = 3}, {.basis = 15, .input = 15, .kernel = 4}},
         CF_ROLE_W,
         8,
         3,
         true,
         CONV_FFT_FP32},
        {2,
         {{.basis = 32, .input = 60, .kernel = 9, .stride = 2, .pad = 4},
          {.basis = 16, .input = 40, .kernel = 5, .stride = 3}},
         CF_ROLE_W,
         8,
         2,
         false,
         CONV_FFT_FP16},
        {2,
         {{.basis = 16, .input = 30, .kernel = 5, .stride = 2}, {.basis = 16, .input = 30, .kernel = 5, .stride = 2}},
         CF_ROLE_W,
         6,
         2,
         true,
         CONV_FFT_BF16},
        {2,
         {{.basis = 12, .input = 30, .kernel = 5, .stride = 3}, {.basis = 14, .input = 24, .kernel = 3, .stride = 2}},
         CF_ROLE_W,
         5,
         3,
         false,
         CONV_FFT_FP32},
        {2,
         {{.basis = 32, .input = 32, .kernel = 11}, {.basis = 32, .input = 32, .kernel = 11}},
         CF_ROLE_W,
         8,
         3,
         false,
         CONV_FFT_FP16},
        {2,
         {{.basis = 32, .input = 32, .kernel = 11}, {.basis = 40, .input = 40, .kernel = 11}},
         CF_ROLE_W,
         8,
         3,
         false,
         CONV_FFT_FP32},
        {2,
         {{.basis = 32, .input = 32, .kernel = 16}, {.basis = 32, .input = 32, .kernel = 8}},
         CF_ROLE_W,
         8,
         2,
         true,
         CONV_FFT_BF16},
        {2, /* beside such windows: the other operand */
         {{.basis = 16, .input = 16, .kernel = 7}, {.basis = 16, .input = 16, .kernel = 7}},
         CF_ROLE_X,
         8,
         3,
         false,
         CONV_FFT_FP16},
        {2,
         {{.basis = 16, .input = 16, .kernel = 7}, {.basis = 16, .input = 16, .kernel = 7}},
         CF_ROLE_X,
         16,
         2,
         true,
         CONV_FFT_BF16},
        {2,
         {{.basis = 16, .input = 16, .kernel = 7}, {.basis = 16, .input = 16, .kernel = 7}},
         CF_ROLE_X,
         8,
         2,
         false,
         CONV_FFT_FP32},
        {2,
         {{.basis = 16, .input = 16, .kernel = 5}, {.basis = 16, .input = 16, .kernel = 5}},
         CF_ROLE_W,
         8,
         5,
         false,
         CONV_FFT_FP16},
        {2,
         {{.basis = 16, .input = 7, .kernel = 6, .pad = 3}, {.basis = 16, .input = 8, .kernel = 5, .pad = 1}},
         CF_ROLE_X,
         8,
         3,
         false,
         CONV_FFT_FP16},
        {2,
         {{.basis = 24, .input = 5, .kernel = 6, .pad = 2, .mode = 2},
          {.basis = 20, .input = 6, .kernel = 5, .pad = 3, .mode = 1}},
         CF_ROLE_X,
         5,
         3,
         true,
         CONV_FFT_FP32},
        {2,
         {{.basis = 32, .input = 48, .kernel = 17, .tiles = 6}, {.basis = 64, .input = 12, .kernel = 9}},
         CF_ROLE_GY,
         16,
         2,
         false,
         CONV_FFT_BF16},
        {3,
         {{.basis = 8, .input = 8, .kernel = 3},
          {.basis = 12, .input = 12, .kernel = 3},
          {.basis = 10, .input = 10, .kernel = 2}},
         CF_ROLE_W,
         8,
         3,
         false,
         CONV_FFT_FP16},
        {3,
         {{.basis = 5, .input = 5, .kernel = 2},
          {.basis = 9, .input = 9, .kernel = 3},
          {.basis = 8, .input = 8, .kernel = 3}},
         CF_ROLE_W,
         3,
         6,
         true,
         CONV_FFT_FP32},
        {2, /* moved up */
         {{.basis = 20, .input = 16, .kernel = 4, .pad = 1},
          {.basis = 40, .input = 32, .kernel = 5, .pad = 2, .piece = 8}},
         CF_ROLE_W,
         8,
         5,
         false,
         CONV_FFT_FP16},
        {1, {{.basis = 256, .input = 256, .kernel = 33}}, CF_ROLE_W, 8, 4, false, CONV_FFT_FP16},
        {1, {{.basis = 4096, .input = 4096, .kernel = 100, .dilation = 7}}, CF_ROLE_W, 2, 3, false, CONV_FFT_BF16},
        {1, {{.basis = 75, .input = 75, .kernel = 17}}, CF_ROLE_W, 5, 4, true, CONV_FFT_FP32},
        {1, {{.basis = 100, .input = 100, .kernel = 9, .stride = 2}}, CF_ROLE_W, 8, 2, false, CONV_FFT_FP16},
    };
    enum {
        CASES = sizeof cases / sizeof cases[0]
    };
    static cf_window windows[CASES];
    static const cf_axis_window none = {
        .spread = 1, .count = 1, .step = 1, .tiles = 1, .shifts = 1, .phases = 1, .upper = 1, .size = 1};
    for (int i = 0; i < CASES; ++i) {
        cf_window *const w = &windows[i];
        fbfft_desc d = fft_desc(cases[i].rank, FBFFT_R2C, 1, 0);
        int64_t taps = 1, points = 1;
        for (int x = 0; x < 3; ++x) {
            const int a = x - 3 + cases[i].rank;
            w->axis[x] = none;
            if (a < 0)
                continue;
            layer_axis l = cases[i].axis[a];
            l.stride = l.stride ? l.stride : 1;
            l.dilation = l.dilation ? l.dilation : 1;
            l.tiles = l.tiles ? l.tiles : 1;
            w->axis[x] = window_of(&l, cases[i].role);
            d.basis[a] = l.basis;
            d.size[a] = w->axis[x].size;
            taps *= w->axis[x].count;
            points *= l.basis;
        }
        d.dtype = cases[i].dtype;
        tile_case *c = add(d, cases[i].rows);
        set_order(c, FBFFT_FREQUENCY_MAJOR, cases[i].last, cases[i].channels);
        c->window = w;
        c->groups = 1 + i % 2;
        c->shifted = i % 5 == 4;
        c->halves = true;
        c->matrix = c->dense = 4 * taps <= points;
    }
}

/* -------------------------------------------------------------------------------------------------------- names */

static void describe_axis(cf_text *t, const cf_axis_window *a) {
    static const char *const modes[] = {"", " circular", " reflect", " replicate"};
    cf_text_add(t, " %lld:%lld:%lld from %lld:%lld", (long long)a->first, (long long)a->spread, (long long)a->count,
                (long long)a->origin, (long long)a->step);
    if (a->tiles > 1)
        cf_text_add(t, " tiles %lld:%lld", (long long)a->tiles, (long long)a->tile_step);
    if (a->shifts > 1)
        cf_text_add(t, " shifts %lld:%lld", (long long)a->shifts, (long long)a->shift_step);
    if (a->phases > 1)
        cf_text_add(t, " phases %lld:%lld", (long long)a->phases, (long long)a->phase_step);
    cf_text_add(t, " in %lld:%lld:%lld%s", (long long)a->lower, (long long)a->upper, (long long)a->size,
                modes[a->mode]);
}

void tile_case_name(const tile_case *c, char *text, size_t bytes) {
    char desc[256];
    cf_text t = {text, bytes, 0};
    fft_describe(&c->desc, desc, sizeof desc);
    cf_text_add(&t, "%s%s batch %lld", c->drawn ? "drawn " : "", desc, (long long)c->batch);
    for (int a = 3 - c->desc.rank; a < 3 && c->window; a++) {
        cf_text_add(&t, a == 3 - c->desc.rank ? " window" : ",");
        describe_axis(&t, &c->window->axis[a]);
    }
    if (c->groups > 1)
        cf_text_add(&t, " groups %lld", (long long)c->groups);
    if (c->shared > 0)
        cf_text_add(&t, " shared %lld", (long long)c->shared);
    if (c->chunk > 0)
        cf_text_add(&t, " chunk %lld", (long long)c->chunk);
    cf_text_add(&t, "%s%s%s%s%s", c->halves ? " 16-bit-spectrum" : "", c->shifted ? " shifted" : "",
                c->forced ? " tiled" : "", c->added ? " added" : "", c->overlapping ? " overlapping" : "");
}

static test_part parts[MOST_CASES];

/* A pair's name is that of two cases. */
static bool pair_is_wanted(void) {
    const char *only = getenv("CONV_FFT_TEST_CASE");
    return only && strstr(only, " | ");
}

static void choose(void) {
    static char text[MOST_CASES][TILE_NAME_BYTES];
    const char *names[MOST_CASES];
    for (int i = 0; i < count; i++) {
        tile_case_name(&list[i], text[i], sizeof text[i]);
        names[i] = text[i];
    }
    if (!pair_is_wanted())
        test_parts("tile", names, count, parts);
}

test_part tile_case_part(int number) { return parts[number]; }

int tile_case_list(const tile_case **cases) {
    if (count == 0) {
        lines();
        long_lines();
        squares();
        rectangles();
        two_kernels(CONV_FFT_FP32);
        volumes(CONV_FFT_FP32);
        several_passes(CONV_FFT_FP32);
        layouts_and_windows(CONV_FFT_FP32, 1);
        layers(CONV_FFT_FP32, false, false, 1);
        doubles();
        two_kernels(CONV_FFT_FP64);
        volumes(CONV_FFT_FP64);
        several_passes(CONV_FFT_FP64);
        layouts_and_windows(CONV_FFT_FP64, 4);
        layers(CONV_FFT_FP64, false, false, 5);
        random_ones();
        layers(CONV_FFT_FP32, true, false, 7);
        layers(CONV_FFT_FP32, true, true, 4);
        early_rows();
        added_rows();
        matrices();
        matrix_lines();
        dense_windows();
        matrices_behind_rows();
        own_mirrors();
        choose();
    }
    *cases = list;
    return count;
}

/* ----------------------------------------------------------------------------------------------------- planning */

static conv_fft_status plan(const tile_case *c, const char *file, cf_fft_problem *problem, cf_fft_passes *passes) {
    cf_gpu_facts facts;
    CF_FORWARD(cf_gpu_facts_load(file, &facts));
    CF_FORWARD(cf_fft_resolve(&c->desc, problem));
    if (c->window) {
        cf_spectrum *s = &problem->transform.spectrum;
        problem->transform.window = *c->window;
        s->rows_per_sample = cf_window_tiles(c->window) * cf_window_shifts(c->window);
        s->columns *= cf_window_phases(c->window);
        s->scale_rows = s->rows_per_sample;
        if (c->halves)
            s->dtype = c->desc.dtype == CONV_FFT_FP32 ? CONV_FFT_FP16 : c->desc.dtype;
    }
    if (c->groups > 1) {
        int64_t elements;
        CF_FORWARD(cf_fft_signal_elements(problem, c->batch, &elements));
        problem->transform.tensor.group_stride = elements + 3 - (elements + 3) % 4 + 4;
    }
    facts.compute_major = 8; /* async_copy.cuh has no bulk copies in the emulator */
    if (c->shared)
        facts.shared_per_block = c->shared;
    memset(passes, 0, sizeof *passes);
    if (c->forced) {
        const cf_tile_problem whole = cf_tile_problem_of(problem);
        *passes = (cf_fft_passes){.count = 1, .chunk = INT64_MAX};
        CF_FORWARD(cf_tile_configure(&whole, &facts, &passes->pass[0].tile[0]));
        passes->pass[0].tile[1] = cf_tile_unaligned(&passes->pass[0].tile[0]);
        return CONV_FFT_SUCCESS;
    }
    CF_FORWARD(cf_fft_passes_of(problem, &facts, passes));
    if (c->chunk && passes->count > 1)
        passes->chunk = c->chunk;
    return CONV_FFT_SUCCESS;
}

int64_t tile_case_rows(const tile_case *c) {
    return c->batch * (c->window ? cf_window_tiles(c->window) * cf_window_shifts(c->window) : 1);
}

bool tile_case_plan(const tile_case *c, const char *facts, cf_fft_problem *problem, cf_fft_passes *passes) {
    return plan(c, facts, problem, passes) == CONV_FFT_SUCCESS;
}

int tile_case_variant(const tile_case *c, const cf_fft_passes *passes, int pass) {
    const cf_fft_pass *p = &passes->pass[pass];
    const bool signal = pass == 0, spectrum = pass + 1 == passes->count;
    return c->shifted && (p->plain ? signal || spectrum : signal && p->tile[0].wide > 1) ? 1 : 0;
}

/* The next pair of forward layers from case *i on: spectra in FP32, or in 16 bits, each by the steps of shared_memory/steps.cuh, by matrix products along the
 * axes, or by one product. */
typedef enum pair_way {
    BY_STEPS,
    BY_AXES,
    BY_PRODUCT
} pair_way;
static const pair_way pair_ways[][2] = {{BY_STEPS, BY_STEPS},    {BY_STEPS, BY_STEPS},   {BY_AXES, BY_AXES},
                                        {BY_AXES, BY_STEPS},     {BY_STEPS, BY_PRODUCT}, {BY_AXES, BY_PRODUCT},
                                        {BY_PRODUCT, BY_PRODUCT}};
enum {
    PAIR_PLAIN, /* the first one; of the others spectra have 16 bits */
    PAIR_KINDS = sizeof pair_ways / sizeof pair_ways[0]
};
/* The pass of a case that may be of such a pair, `nth` of it. */
static bool pairs_well(const char *facts, int kind, int nth, const tile_case *c, cf_fft_passes *passes, bool *good) {
    cf_fft_problem problem;
    if (!c->window || c->halves != (kind != PAIR_PLAIN) || c->desc.dtype == CONV_FFT_FP64)
        return false;
    if (!tile_case_plan(c, facts, &problem, passes))
        return *good = false;
    const cf_fft_pass *const own = &passes->pass[0];
    const bool told = cf_spectrum_is_scaled(problem.transform.spectrum.dtype) && !own->tile[0].finds_scales;
    const pair_way way = !own->matrix ? BY_STEPS : own->tile[0].slabs == 0 ? BY_AXES : BY_PRODUCT;
    return passes->count == 1 && !own->plain && !problem.transform.inverse && !told && way == pair_ways[kind][nth];
}

static bool next_pair(const char *facts, int kind, int *i, int pair[2], bool *good) {
    const int near = 12;
    cf_fft_passes passes[2];
    const cf_fft_pass *const both[2] = {&passes[0].pass[0], &passes[1].pass[0]};
    for (; *i < count; ++*i) {
        if (!pairs_well(facts, kind, 0, &list[*i], &passes[0], good))
            continue;
        for (int j = *i + 1; j < count && j <= *i + near; ++j)
            if (pairs_well(facts, kind, 1, &list[j], &passes[1], good) && cf_fft_can_pair(both)) {
                pair[0] = *i;
                pair[1] = j;
                *i = j + 1;
                return true;
            }
    }
    return false;
}

static test_part pair_parts[TILE_PAIRS];

/* A pair is compared with what the kernels of its cases make, so these are taken, too. */
static void take_sides(const int pair[2], test_part part) {
    for (int side = 0; side < 2 && part != TEST_LEFT_OUT; side++)
        if (parts[pair[side]] != TEST_CORE)
            parts[pair[side]] = part;
}

static void choose_pairs(int pairs[TILE_PAIRS][2], int made) {
    static char text[TILE_PAIRS][2 * TILE_NAME_BYTES];
    const char *names[TILE_PAIRS], *only = getenv("CONV_FFT_TEST_CASE");
    for (int i = 0; i < made; i++) {
        char second[TILE_NAME_BYTES];
        tile_case_name(&list[pairs[i][0]], text[i], TILE_NAME_BYTES);
        tile_case_name(&list[pairs[i][1]], second, sizeof second);
        strcat(strcat(text[i], " | "), second);
        names[i] = text[i];
    }
    if (only && *only && !pair_is_wanted())
        return;
    test_parts("tile_pairs", names, made, pair_parts);
    for (int i = 0; i < made; i++)
        take_sides(pairs[i], pair_parts[i]);
}

bool tile_pair_list(const char *facts, int pairs[TILE_PAIRS][2], int *made) {
    bool good = true;
    *made = 0;
    for (int kind = 0; kind < PAIR_KINDS; kind++)
        for (int i = 0, most = *made + TILE_PAIRS / PAIR_KINDS;
             *made < most && next_pair(facts, kind, &i, pairs[*made], &good);)
            ++*made;
    if (good)
        choose_pairs(pairs, *made);
    return good;
}

test_part tile_pair_part(int pair) { return pair_parts[pair]; }
