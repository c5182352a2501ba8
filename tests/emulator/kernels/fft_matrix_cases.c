/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor-core FFTs, whose spectra have 16 bits. */
#include "kernels/fft_case_builders.h"

#include "support/fft_cases.h"

void tile_add_matrices(void) {
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
        const bool interleaved = n >= 2 * SHAPES * ROLES, floats = n / (SHAPES * ROLES) % 2;
        if ((shape >= 5 && !interleaved) || (floats && shape % 2)) /* some interleaved alone */
            continue;
        cf_window *const w = &windows[n];
        fbfft_desc d = fft_desc(2, role < 3 ? FBFFT_R2C : FBFFT_C2R, 1, 0);
        w->axis[0] = none;
        for (int a = 0; a < 2; ++a) {
            const layer_axis *l = &axes[shape][a];
            w->axis[a + 1] = layer_axis_window(l, roles[role]);
            d.basis[a] = l->basis;
            d.size[a] = w->axis[a + 1].size;
        }
        d.dtype = floats ? CONV_FFT_FP32 : shape % 2 == role % 2 ? CONV_FFT_FP16 : CONV_FFT_BF16;
        d.scale = d.kind == FBFFT_C2R ? 0.125 : 1;
        tile_case *c = tile_case_add(d, 2);
        tile_case_order(c, FBFFT_FREQUENCY_MAJOR, interleaved,
                        interleaved              ? (shape + role + floats) % 2 ? 8 : 16
                        : (shape + role / 2) % 2 ? 8
                                                 : 5);
        c->window = w;
        c->added = (shape * ROLES + role) % 4 == 3;
        c->shifted = (shape * ROLES + role) % 5 == 4;
        c->halves = true;
        c->matrix = role != (shape == 4 ? 2 : 1); /* small windows of few data: weights, or of large ones gy */
    }
}

void tile_add_matrices_behind_rows(void) {
    static const layer_axis axes[] = {
        {.basis = 64, .input = 30, .kernel = 33, .stride = 1, .dilation = 1, .pad = 17, .tiles = 1},
        {.basis = 64, .input = 40, .kernel = 9, .stride = 1, .dilation = 1, .pad = 2, .tiles = 1}};
    static cf_window window;
    window.axis[0] = (cf_axis_window){
        .spread = 1, .count = 1, .step = 1, .tiles = 1, .shifts = 1, .phases = 1, .upper = 1, .size = 1};
    fbfft_desc d = fft_desc(2, FBFFT_C2R, 64, 0);
    for (int a = 0; a < 2; ++a) {
        window.axis[a + 1] = layer_axis_window(&axes[a], CF_ROLE_GX);
        d.size[a] = window.axis[a + 1].size;
    }
    d.dtype = CONV_FFT_FP16;
    d.scale = 0.125;
    for (int touching = 0; touching < 2; ++touching) {
        tile_case *c = tile_case_add(d, 2);
        tile_case_order(c, FBFFT_FREQUENCY_MAJOR, touching, touching ? 16 : 5);
        c->window = &window;
        c->halves = c->matrix = true;
    }
}

void tile_add_matrices_with_odd_rows(void) {
    static const layer_axis axes[][2] = {
        {{.basis = 64, .input = 61, .kernel = 7, .stride = 1, .dilation = 1, .tiles = 1},
         {.basis = 64, .input = 61, .kernel = 7, .stride = 1, .dilation = 1, .tiles = 1}},
        {{.basis = 32, .input = 29, .kernel = 3, .stride = 1, .dilation = 1, .pad = 1, .tiles = 1},
         {.basis = 64, .input = 107, .kernel = 7, .stride = 1, .dilation = 1, .pad = 3, .tiles = 2}},
        {{.basis = 64, .input = 45, .kernel = 6, .stride = 1, .dilation = 1, .pad = 2, .tiles = 1},
         {.basis = 32, .input = 45, .kernel = 5, .stride = 1, .dilation = 1, .pad = 2, .tiles = 2}}};
    static const cf_role roles[] = {CF_ROLE_Y, CF_ROLE_GX};
    static const conv_fft_dtype types[] = {CONV_FFT_FP16, CONV_FFT_BF16, CONV_FFT_FP32};
    static cf_window windows[3][2];
    for (int n = 0; n < 18; ++n) {
        const int shape = n % 3, role = n / 3 % 2, type = n / 6;
        cf_window *const w = &windows[shape][role];
        fbfft_desc d = fft_desc(2, FBFFT_C2R, 64, 0);
        w->axis[0] = (cf_axis_window){
            .spread = 1, .count = 1, .step = 1, .tiles = 1, .shifts = 1, .phases = 1, .upper = 1, .size = 1};
        for (int a = 0; a < 2; ++a) {
            w->axis[a + 1] = layer_axis_window(&axes[shape][a], roles[role]);
            d.basis[a] = axes[shape][a].basis;
            d.size[a] = w->axis[a + 1].size;
        }
        d.dtype = types[type];
        d.scale = 0.125;
        tile_case *const c = tile_case_add(d, 2);
        tile_case_order(c, FBFFT_FREQUENCY_MAJOR, false, 5);
        c->window = w;
        c->added = shape == 2 && role == 1;
        c->shifted = (shape + type) % 3 == 2;
        c->halves = c->matrix = true;
    }
}

void tile_add_matrix_lines(void) {
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
        {.basis = 16, .input = 12, .kernel = 3, .stride = 1, .dilation = 1, .pad = 1, .tiles = 1, .piece = 8},
        /* channels-last only */
        {.basis = 72, .input = 64, .kernel = 15, .stride = 1, .dilation = 1, .pad = 7, .tiles = 1},
        {.basis = 24, .input = 17, .kernel = 7, .stride = 1, .dilation = 1, .pad = 3, .tiles = 1},
        {.basis = 40, .input = 150, .kernel = 9, .stride = 1, .dilation = 1, .pad = 4, .tiles = 5},
        {.basis = 80, .input = 80, .kernel = 21, .stride = 1, .dilation = 1, .tiles = 1},
        {.basis = 120, .input = 200, .kernel = 7, .stride = 2, .dilation = 1, .pad = 3, .tiles = 1, .mode = 2},
        {.basis = 56, .input = 56, .kernel = 5, .stride = 1, .dilation = 3, .pad = 6, .tiles = 1, .shifts = true}};
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
        if (touching ? l->basis > 128 : (l->basis & (l->basis - 1)) != 0)
            continue;
        fbfft_desc d = fft_desc(1, i % 6 < 3 ? FBFFT_R2C : FBFFT_C2R, 1, 0);
        w->axis[0] = w->axis[1] = none;
        w->axis[2] = layer_axis_window(l, roles[i % 6]);
        if (d.kind == FBFFT_R2C && 4 * w->axis[2].count <= l->basis)
            continue; /* a small window */
        d.basis[0] = l->basis;
        d.size[0] = w->axis[2].size;
        d.dtype = types[(i / 6 + i % 6 + touching) % 3];
        d.scale = d.kind == FBFFT_C2R ? 0.125 : 1;
        tile_case *c = tile_case_add(d, 1 + (i % 3 == 0));
        tile_case_order(c, FBFFT_FREQUENCY_MAJOR, touching,
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
