/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of grids: vector widths, tiles that fit them, segments of a kernel, bases, bytes of spectra. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "autotune/search/search_space.h"
#include "core/arith.h"
#include "core/spectrum.h"
#include "tiling/tiling.h"

static bool whole_pieces(const cf_axis_window *w, int64_t piece) {
    return w->first % piece == 0 && w->origin % piece == 0 && w->count % piece == 0 &&
           (w->tiles == 1 || w->tile_step % piece == 0);
}

/* If the basis is large enough, rows begin at multiples of the vector width, in memory and in the basis, for all
 * passes; w moves up for that. Otherwise the vector width becomes smaller. */
static void rows_begin_at_vectors(void **unused) {
    (void)unused;
    static const struct {
        int64_t input, kernel, pad, basis, tiles, expected;
    } cases[] = {{16384, 127, 63, 1024, 19, 16}, {16384, 31, 15, 1024, 17, 16}, {16384, 3, 1, 64, 293, 4},
                 {16384, 3, 1, 64, 265, 1},      {56, 7, 3, 64, 1, 8},          {120, 9, 4, 128, 1, 8},
                 {60, 3, 1, 64, 1, 4},           {61, 3, 1, 64, 1, 1},          {28, 5, 2, 32, 1, 4},
                 {12, 3, 1, 16, 1, 4},           {64, 9, 0, 64, 1, 16}};
    static const cf_role roles[] = {CF_ROLE_X, CF_ROLE_GX, CF_ROLE_GY, CF_ROLE_Y};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const cf_axis axis = {.input = cases[i].input,
                              .kernel = cases[i].kernel,
                              .stride = 1,
                              .dilation = 1,
                              .pad_before = cases[i].pad,
                              .pad_after = cases[i].pad,
                              .output = cases[i].input + 2 * cases[i].pad - cases[i].kernel + 1,
                              .mode = CONV_FFT_PAD_ZEROS,
                              .max_vector = 16};
        const cf_axis_grid grid = {.basis = cases[i].basis, .tiles = cases[i].tiles};
        assert_true(cf_grid_fits(&axis, &grid, CF_ROLE_Y) && cf_grid_fits(&axis, &grid, CF_ROLE_GX));
        const int64_t piece = cf_grid_vector_width(&axis, &grid);
        const cf_axis_window w = cf_axis_window_make(&axis, &grid, CF_ROLE_W);
        if (piece != cases[i].expected)
            print_error("case %d: pieces of %d, not of %d\n", (int)i, (int)piece, (int)cases[i].expected);
        assert_int_equal(piece, cases[i].expected);
        assert_int_equal((w.first + cases[i].pad) % piece, 0);
        for (int r = 0; r < (axis.output == axis.input ? 4 : 2); ++r) {
            const cf_axis_window window = cf_axis_window_make(&axis, &grid, roles[r]);
            assert_true(whole_pieces(&window, piece));
        }
    }
}

/* Rows get more tiles for that if necessary, but at most an eighth more. Planes do not, nor do elements that are never
 * moved as vectors. */
static void tiles_of_rows_fit_vectors(void **unused) {
    (void)unused;
    int more = 0;
    for (int64_t basis = 16; basis <= 1024; basis *= 2)
        for (int64_t kernel = 2; kernel <= basis / 2; ++kernel)
            for (int64_t pad = 0; pad < kernel; pad += 1 + kernel / 3) {
                cf_axis axis = {.input = 16384,
                                .kernel = kernel,
                                .stride = 1,
                                .dilation = 1,
                                .pad_before = pad,
                                .output = 16384 + pad - kernel + 1,
                                .mode = CONV_FFT_PAD_ZEROS,
                                .only_axis = true};
                for (int own = 0; own < 2; ++own) {
                    cf_axis_grid grid = {.basis = basis};
                    axis.max_vector = 1;
                    const int64_t least = cf_space_tiles(&axis, &grid, own);
                    axis.max_vector = 16;
                    grid.tiles = least;
                    const int64_t before = cf_grid_vector_width(&axis, &grid);
                    grid.tiles = cf_space_tiles(&axis, &grid, own);
                    assert_true(grid.tiles >= least && grid.tiles <= least + least / (basis > 128 ? 32 : 8));
                    assert_true(cf_grid_fits(&axis, &grid, own ? CF_ROLE_GX : CF_ROLE_Y));
                    if (grid.tiles > least)
                        assert_true(before < 8 && cf_grid_vector_width(&axis, &grid) >= 4);
                    more += grid.tiles > least;
                    axis.only_axis = false;
                    assert_int_equal(cf_space_tiles(&axis, &grid, own), least);
                    axis.only_axis = true;
                }
            }
    assert_true(more > 100);
    const cf_axis signal = {.input = 1 << 30,
                            .kernel = 3,
                            .stride = 1,
                            .dilation = 1,
                            .pad_before = 1,
                            .pad_after = 1,
                            .output = 1 << 30,
                            .mode = CONV_FFT_PAD_ZEROS,
                            .max_vector = 16,
                            .only_axis = true};
    const cf_axis_grid grid = {.basis = 64};
    assert_int_equal(cf_space_tiles(&signal, &grid, false), (1 << 30) / 56 + 1);
}

/* Segments are as long as requested, or a little longer if a stride needs it. Each has a tap that counts. */
static void segments(void **unused) {
    (void)unused;
    for (int64_t kernel = 1; kernel <= 40; ++kernel)
        for (int64_t stride = 1; stride <= 6; ++stride)
            for (int64_t count = 1; count <= kernel; ++count) {
                const cf_axis axis = {.input = 50,
                                      .kernel = kernel,
                                      .stride = stride,
                                      .dilation = 1,
                                      .output = (50 - kernel) / stride + 1,
                                      .mode = CONV_FFT_PAD_ZEROS};
                const cf_axis_grid grid = {.basis = 64, .tiles = 1, .segments = count};
                const cf_unit whole = cf_unit_make(&axis, false), unit = cf_unit_of(&axis, &grid);
                const cf_axis_window w = cf_axis_window_make(&axis, &grid, CF_ROLE_W);
                assert_true(unit.taps >= cf_ceil_div(whole.taps, count) && unit.taps <= whole.taps);
                assert_true(stride > 1 || unit.taps == cf_ceil_div(kernel, count));
                assert_int_equal(cf_unit_is_cut(&unit), unit.taps < whole.taps);
                for (int64_t phase = 0; phase < unit.phases; ++phase)
                    assert_true(cf_window_inside(&w, 0, 0, phase) > 0);
            }
}

static void bases(void **unused) {
    (void)unused;
    int count = 0;
    for (int64_t n = 1; n <= 256; ++n) {
        int64_t rest = n;
        for (int64_t prime = 2; prime <= 7; ++prime)
            while (rest % prime == 0)
                rest /= prime;
        assert_int_equal(cf_is_basis(n), rest == 1);
        if (n >= 2 && rest == 1)
            ++count;
    }
    assert_int_equal(count, 76);
    assert_int_equal(cf_next_basis(1), 1);
    assert_int_equal(cf_next_basis(71), 72);
    assert_int_equal(cf_next_basis(1025), 1029);
    assert_int_equal(cf_next_basis(INT64_MAX), 0);
}

/* FP16 spectra have a scale for each started group of eight columns of a row, behind their numbers. Other spectra have
 * no scales. */
static void spectrum_sizes(void **unused) {
    (void)unused;
    enum {
        GROUPS = 2,
        ROWS = 3,
        BINS = 5
    };
    static const struct {
        conv_fft_dtype dtype;
        int64_t columns;
        size_t number, scales; /* bytes of a complex number; scales of a row */
    } cases[] = {
        {CONV_FFT_FP64, 9, 16, 0}, {CONV_FFT_FP32, 9, 8, 0},  {CONV_FFT_BF16, 9, 4, 0},
        {CONV_FFT_FP16, 1, 4, 1},  {CONV_FFT_FP16, 7, 4, 1},  {CONV_FFT_FP16, 8, 4, 1},
        {CONV_FFT_FP16, 9, 4, 2},  {CONV_FFT_FP16, 16, 4, 2}, {CONV_FFT_FP16, 17, 4, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const cf_spectrum s = {.dtype = cases[i].dtype, .bins = BINS, .columns = cases[i].columns};
        const size_t numbers = GROUPS * ROWS * BINS * (size_t)s.columns * cases[i].number;
        static float data[2048];
        const float *const scales = cf_spectrum_scales(&s, data, GROUPS, ROWS);
        assert_int_equal(cf_spectrum_row_scales(&s), cases[i].scales);
        assert_int_equal(cf_spectrum_bytes(&s, GROUPS, ROWS),
                         numbers + GROUPS * ROWS * cases[i].scales * sizeof(float));
        if (cases[i].scales > 0)
            assert_int_equal((uintptr_t)scales - (uintptr_t)data, numbers);
        else
            assert_null(scales);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_begin_at_vectors),
        cmocka_unit_test(tiles_of_rows_fit_vectors),
        cmocka_unit_test(segments),
        cmocka_unit_test(bases),
        cmocka_unit_test(spectrum_sizes),
    };
    return cmocka_run_group_tests_name("sizes of grids", tests, NULL, NULL);
}
