/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms of whole signals and of parts of them: every basis, order, type and layout. */
#include "kernels/fft_case_builders.h"

#include "support/fft_cases.h"
#include "support/random_problems.h"

#include <stdlib.h>

static bool is_inverse(fbfft_kind kind) { return kind == FBFFT_C2R || kind == FBFFT_C2C_INVERSE; }

/* The kind for this direction. */
static fbfft_kind directed(fbfft_kind kind, bool inverse) { return (fbfft_kind)((int)kind + inverse); }

/* Real transforms as layers use them. */
static void set_added(tile_case *c) {
    const bool real_signal = c->desc.kind == FBFFT_R2C || c->desc.kind == FBFFT_C2R;
    c->added = c->desc.kind == FBFFT_C2R;
    c->groups = real_signal ? 2 : 1;
}

/* Every basis from 2 to 256 in both directions, with whole windows and parts; order, type and layout alternate. For
 * whole windows the planner may choose another kernel than shared_memory/kernel.cuh. */
static void lines(void) {
    static const conv_fft_dtype types[] = {CONV_FFT_FP32, CONV_FFT_FP32, CONV_FFT_FP16, CONV_FFT_FP32, CONV_FFT_BF16};
    for (int64_t n = 2, i = 0; n <= 256; ++n) {
        const int64_t parts[] = {n - 1, (n + 2) / 3, n / 2 + 1};
        for (int j = 0; j < 4 && fft_is_basis(n); ++j, ++i) {
            const bool whole = j / 2 == i / 4 % 2;
            const fbfft_kind kind = i % 7 == 3 ? FBFFT_C2C_FORWARD : FBFFT_R2C;
            const int64_t batch = n <= 16 && i % 3 == 0 ? 261 : i % 7 + 2; /* some fill blocks */
            tile_case *c = tile_case_add(fft_desc(1, directed(kind, j % 2), n, whole ? 0 : parts[i / 4 % 3]), batch);
            c->forced = !whole || i % 3;
            if (c->forced) {
                tile_case_order(c, i % 3, i % 5 == 2, i % 3 == 2 ? 5 : i % 2 + 1);
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
        tile_case *c = tile_case_add(fft_desc(1, directed(kind, i / 7), n, i % 3 ? 0 : n - 3), 2);
        tile_case_order(c, i % 3, false, i % 3 == 2 && n < 4096 ? 3 : 1);
        c->shifted = i % 2;
    }
}

/* Every basis from 2 to 256 on both axes and in both directions, with whole windows and parts. Planes too large for a
 * block take two kernels. */
static void squares(void) {
    for (int64_t n = 2, i = 0; n <= 256; ++n) {
        const int64_t parts[] = {n - 1, (n + 2) / 3, n / 2 + 1};
        for (int j = 0; j < 4 && fft_is_basis(n); ++j, ++i) {
            const bool inverse = j % 2;
            const fbfft_kind kind = i % 9 == 4 && n <= 128 ? FBFFT_C2C_FORWARD : FBFFT_R2C;
            const int64_t batch = n <= 8 && i % 3 == 0 ? 67 : n <= 16 ? 3 : 1;
            tile_case *c = tile_case_add(fft_desc(2, directed(kind, inverse), n, j < 2 ? 0 : parts[i / 3 % 3]), batch);
            tile_case_order(c, i / 2 % 3, i % 5 == 2 && n < 128, i / 2 % 3 == 2 && n < 128 ? 3 : 1);
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

/* Rectangles of 60 shapes, in both directions. */
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
        tile_case *c = tile_case_add(d, small ? 3 : 1);
        tile_case_order(c, i % 3, i % 4 == 2, i % 3 == 2 && small ? 4 : i % 2 + 1);
        c->forced = small;
        c->shifted = i % 5 == 3;
        if (i % 7 == 6)
            set_added(c);
    }
}

/* Real planes in natural order that are too large for a block: the real size, and small planes for blocks with little
 * memory. */
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
        tile_case *c = tile_case_add(d, large ? 1 : i % 3 + 2);
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
        tile_case *c = tile_case_add(d, i % 10 < 5 ? 3 : 1);
        tile_case_order(c, i % 3, i % 4 == 3, i % 3 == 2 ? 2 : 1);
        c->shifted = i % 4 == 2;
    }
}

/* Planes and volumes that need several kernels on GPUs with little shared memory. */
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
        tile_case *c = tile_case_add(d, i % 4 + 2);
        tile_case_order(c, order, i % 7 == 3, order == 2 || i % 7 == 3 ? 3 : i % 2 + 1);
        c->passes = passes;
        /* Frequency-major, a block must hold planes that fill whole sectors, of the same number of bytes for either
         * type. */
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
        tile_case *c = tile_case_add(from->desc, from->batch);
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

void tile_add_drawn(void) {
    for (uint64_t i = 0; i < 80; ++i) {
        const fft_case from = fft_random_case(test_seed() + i, 512);
        tile_case *c = tile_case_add(from.desc, from.batch);
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
            tile_case *c = tile_case_add(d, 2);
            tile_case_order(c, (i + rank) % 3, i % 5 == 3, i % 4 + 1);
            c->shifted = i % 4 == 1;
        }
    }
}

/* Blocks that transform several groups of planes and copy bins ahead: groups with fewer planes, several columns for
 * each thread, rows of bins that the buffers do not hold, two groups of channels, and spectra that do not begin at 16
 * bytes. An odd number of channels has no pairs. */
static void bins_ahead(void) {
    static const int64_t cases[][6] = {/* basis, extent, channels, batch */
                                       {36, 64, 28, 56, 16, 3}, {36, 64, 36, 64, 6, 7},  {64, 64, 64, 64, 8, 3},
                                       {48, 48, 45, 47, 6, 6},  {35, 64, 35, 60, 16, 2}, {48, 48, 48, 48, 16, 2},
                                       {36, 64, 36, 41, 2, 9},  {36, 64, 36, 64, 5, 4}};
    for (int i = 0; i < 10; ++i) {
        const int64_t *const n = cases[i % 8];
        fbfft_desc d = fft_desc(2, FBFFT_C2R, 1, 0);
        for (int a = 0; a < 2; ++a) {
            d.basis[a] = n[a];
            d.extent[a] = n[a + 2];
        }
        d.scale = i % 3 ? 1 : 0.5;
        tile_case *c = tile_case_add(d, n[5]);
        tile_case_order(c, FBFFT_FREQUENCY_MAJOR, i == 5, n[4]);
        c->one_multiprocessor = true;
        c->shifted = i >= 8;
        c->added = i % 2;
        c->groups = i == 1 || i == 3 ? 2 : 1;
    }
}

/* The same for gradients and outputs of layers: tiles, overlapping rows, phases of a stride, 16-bit spectra. */
static void layer_bins_ahead(void) {
    static const layer_axis axes[][2] = {
        {{.basis = 36, .input = 64, .kernel = 9, .stride = 1, .dilation = 1, .pad = 4, .tiles = 3},
         {.basis = 64, .input = 64, .kernel = 9, .stride = 1, .dilation = 1, .pad = 4, .tiles = 2}},
        {{.basis = 48, .input = 70, .kernel = 5, .stride = 1, .dilation = 1, .pad = 2, .tiles = 2, .overlap_add = true},
         {.basis = 48, .input = 44, .kernel = 5, .stride = 1, .dilation = 1, .pad = 2, .tiles = 1}},
        {{.basis = 36, .input = 60, .kernel = 7, .stride = 2, .dilation = 1, .pad = 3, .tiles = 1},
         {.basis = 64, .input = 118, .kernel = 7, .stride = 2, .dilation = 1, .pad = 3, .tiles = 1}}};
    static const cf_role roles[] = {CF_ROLE_Y, CF_ROLE_GX, CF_ROLE_GX};
    static const cf_axis_window none = {
        .spread = 1, .count = 1, .step = 1, .tiles = 1, .shifts = 1, .phases = 1, .upper = 1, .size = 1};
    static const conv_fft_dtype types[] = {CONV_FFT_FP32, CONV_FFT_FP32, CONV_FFT_FP32,
                                           CONV_FFT_FP32, CONV_FFT_FP32, CONV_FFT_BF16};
    static cf_window windows[6];
    for (int i = 0; i < 6; ++i) {
        const int shape = i % 3;
        fbfft_desc d = fft_desc(2, FBFFT_C2R, 1, 0);
        windows[i].axis[0] = none;
        for (int a = 0; a < 2; ++a) {
            windows[i].axis[a + 1] = layer_axis_window(&axes[shape][a], roles[shape]);
            d.basis[a] = axes[shape][a].basis;
            d.size[a] = windows[i].axis[a + 1].size;
        }
        d.scale = 0.125;
        d.dtype = types[i];
        tile_case *c = tile_case_add(d, 3);
        c->halves = i >= 3;
        tile_case_order(c, FBFFT_FREQUENCY_MAJOR, false, shape == 2 ? 3 : c->halves ? 12 : 6);
        c->window = &windows[i];
        c->overlapping = shape == 1;
        c->added = shape > 0;
        c->one_multiprocessor = true;
    }
}

void tile_add_bins_ahead(void) {
    bins_ahead();
    layer_bins_ahead();
}

void tile_add_signals(void) {
    lines();
    long_lines();
    squares();
    rectangles();
    two_kernels(CONV_FFT_FP32);
    volumes(CONV_FFT_FP32);
    several_passes(CONV_FFT_FP32);
    layouts_and_windows(CONV_FFT_FP32, 1);
}

void tile_add_double_signals(void) {
    doubles();
    two_kernels(CONV_FFT_FP64);
    volumes(CONV_FFT_FP64);
    several_passes(CONV_FFT_FP64);
    layouts_and_windows(CONV_FFT_FP64, 4);
}
