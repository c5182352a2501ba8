/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms of the operands of layers, with windows. */
#include "kernels/fft_case_builders.h"

#include "support/fft_cases.h"

#include <stdio.h>
#include <stdlib.h>

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

cf_axis_window layer_axis_window(const layer_axis *l, cf_role role) {
    const bool zeros = l->mode == CONV_FFT_PAD_ZEROS;
    const int64_t reach = (l->kernel - 1) * l->dilation + 1;
    const cf_axis axis = {.input = l->input,
                          .kernel = l->kernel,
                          .stride = l->stride,
                          .dilation = l->dilation,
                          .pad_before = l->pad,
                          .pad_after = l->pad,
                          .output = (l->input + 2 * l->pad - reach) / l->stride + 1,
                          /* Gradients with other padding go to a scratch that covers the padding. */
                          .mode = l->mode,
                          .max_vector = l->piece};
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

void tile_add_layers(conv_fft_dtype dtype, bool halves, bool cut, int every) {
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
            /* Axes of volumes are small. */
            const layer_axis *l = &layer_axes[rank == 3 && a < 2 ? (a ? 10 : 8) : (first + 3 * a) % AXES];
            w->axis[x] = layer_axis_window(l, roles[i % 6]);
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
        tile_case *c = tile_case_add(d, rank == 1 ? 5 : 2);
        /* Some of the 16-bit spectra have whole scales. */
        tile_case_order(c, FBFFT_FREQUENCY_MAJOR, i % 5 == 1, halves && i / 7 % 2 ? 8 * (i % 2 + 1) : i % 3 + 1);
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

void tile_add_early_rows(void) {
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
            w->axis[a + 1] = layer_axis_window(own[a], i / 4 % 2 ? CF_ROLE_GY : CF_ROLE_X);
            d.basis[a] = own[a]->basis;
            d.size[a] = w->axis[a + 1].size;
        }
        d.dtype = types[i % 4];
        tile_case *c = tile_case_add(d, 2);
        tile_case_order(c, FBFFT_FREQUENCY_MAJOR, false, i % 3 ? 8 : 3);
        c->window = w;
        c->shifted = i % 7 == 6;
        c->halves = i % 4 > 0;
    }
}

void tile_add_added_rows(void) {
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
        window.axis[a + 1] = layer_axis_window(&axes[a], CF_ROLE_Y);
        d.basis[a] = axes[a].basis;
        d.size[a] = window.axis[a + 1].size;
    }
    for (int i = 0; i < 2; ++i) {
        d.dtype = types[i];
        tile_case *c = tile_case_add(d, 2);
        tile_case_order(c, FBFFT_FREQUENCY_MAJOR, false, 3);
        c->window = &window;
        c->added = true;
    }
}

void tile_add_own_mirrors(void) {
    static const layer_axis axes[] = {{.basis = 80, .input = 80, .kernel = 9, .stride = 1, .dilation = 1, .tiles = 1},
                                      {.basis = 9, .input = 9, .kernel = 3, .stride = 1, .dilation = 1, .tiles = 1}};
    static cf_window window;
    fbfft_desc d = fft_desc(2, FBFFT_C2R, 80, 0);
    window.axis[0] = (cf_axis_window){
        .spread = 1, .count = 1, .step = 1, .tiles = 1, .shifts = 1, .phases = 1, .upper = 1, .size = 1};
    for (int a = 0; a < 2; ++a) {
        window.axis[a + 1] = layer_axis_window(&axes[a], CF_ROLE_Y);
        d.basis[a] = axes[a].basis;
        d.size[a] = window.axis[a + 1].size;
    }
    tile_case *c = tile_case_add(d, 2);
    tile_case_order(c, FBFFT_FREQUENCY_MAJOR, false, 3);
    c->window = &window;
}
