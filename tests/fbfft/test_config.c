/* SPDX-License-Identifier: Apache-2.0 */
/* The planner's choices; no GPU is needed. nvrtc/test_fft.c compiles their kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fbfft/common/kernel_text.h"
#include "fbfft/plan/gpu_transform.h"
#include "fbfft/shared_memory/geometry.h"
#include "support/fft_cases.h"
#include "support/kernel_cases.h"

static fbfft_desc transform(int rank, fbfft_kind kind, int h, int w, int data_h, int data_w) {
    fbfft_desc d;
    assert_int_equal(fbfft_desc_init(&d, rank, kind), CONV_FFT_SUCCESS);
    d.basis[rank - 1] = w;
    d.extent[rank - 1] = data_w;
    if (rank == 2) {
        d.basis[0] = h;
        d.extent[0] = data_h;
    }
    return d;
}

static void powers_of_two_have_kernels(void **unused) {
    (void)unused;
    const cf_gpu_properties gpus[2] = {gpu_properties_of("data/gpus/h200.txt"),
                                       gpu_properties_of("data/gpus/a100.txt")};
    for (int g = 0; g < 2; ++g)
        for (int kind = 0; kind < 2; ++kind) {
            for (int w = 2; w <= 256; w *= 2) {
                const fbfft_desc line = transform(1, (fbfft_kind)kind, 1, w, 1, 0);
                cf_fft_config c;
                assert_int_equal(cf_fft_configure(&line, &gpus[g], &c), CONV_FFT_SUCCESS);
                /* Rows of more than 64 points have several lanes. Their square must divide both axes. */
                for (int h = 2; h <= 128 && w <= 128; h *= 2) {
                    if ((h > 64 && w < 4) || (w > 64 && h < 4))
                        continue;
                    const fbfft_desc plane = transform(2, (fbfft_kind)kind, h, w, 0, 0);
                    assert_int_equal(cf_fft_configure(&plane, &gpus[g], &c), CONV_FFT_SUCCESS);
                    assert_true(c.threads % 32 == 0 && c.threads <= 1024 && c.shared <= gpus[g].shared_per_block);
                    assert_true((int64_t)c.threads * c.blocks <= gpus[g].threads_per_multiprocessor);
                    assert_true(!c.bulk || gpus[g].compute_major >= 9);
                }
            }
        }
}

/* One lane computes a row. Two lanes do if both axes are multiples of 8 and one has more than 48 points. */
static void planes_of_up_to_64_points_have_kernels(void **unused) {
    (void)unused;
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    for (int h = 2; h <= 64; h += 2)
        for (int w = 2; w <= 64; w += 2) {
            if (!fft_is_basis(h) || !fft_is_basis(w))
                continue;
            const fbfft_desc plane = transform(2, FBFFT_R2C, h, w, 0, 0);
            cf_fft_config c;
            assert_int_equal(cf_fft_configure(&plane, &properties, &c), CONV_FFT_SUCCESS);
            assert_int_equal(c.lanes, h % 8 == 0 && w % 8 == 0 && (h > 48 || w > 48) ? 2 : 1);
        }
}

static void others_are_refused(void **unused) {
    (void)unused;
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    static const struct {
        int rank, h, w;
        const char *sentence;
    } cases[] = {{1, 1, 15, "basis[0] is 15"},          {1, 1, 512, "basis[0] is 512"},      {2, 8, 7, "basis[1] is 7"},
                 {2, 256, 256, "lines of this length"}, {2, 128, 2, "lines of this length"}, {3, 8, 8, "rank is 3"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        fbfft_desc d = transform(cases[i].rank == 3 ? 2 : cases[i].rank, FBFFT_R2C, cases[i].h, cases[i].w, 0, 0);
        d.rank = cases[i].rank;
        cf_fft_config c;
        assert_int_equal(cf_fft_configure(&d, &properties, &c), CONV_FFT_NOT_SUPPORTED);
        if (!strstr(conv_fft_last_error(), cases[i].sentence))
            fail_msg("%s: %s", cases[i].sentence, conv_fft_last_error());
    }
}

/* ----------------------------------------------------------------------------------------------------------- passes */

static int passes_of(fbfft_desc d, const cf_gpu_properties *properties) {
    cf_fft_problem problem;
    cf_fft_passes passes;
    assert_int_equal(cf_fft_resolve(&d, &problem), CONV_FFT_SUCCESS);
    if (cf_fft_passes_of(&problem, properties, &passes) != CONV_FFT_SUCCESS) {
        print_message("          rank %d: %s\n", d.rank, conv_fft_last_error());
        return 0;
    }
    for (int i = 0; i < passes.count; ++i) {
        const cf_fft_pass *const p = &passes.pass[i];
        const int64_t shared = p->plain ? p->real[0].shared : p->tile[0].shared;
        const int threads = p->plain ? p->real[0].threads : p->tile[0].threads;
        const int blocks = p->plain ? p->real[0].blocks : p->tile[0].blocks;
        assert_true(shared <= properties->shared_per_block);
        assert_true(threads % 32 == 0 && threads * blocks <= properties->threads_per_multiprocessor);
    }
    return passes.count;
}

static void expect_passes(fbfft_desc d, int expected, const cf_gpu_properties *properties) {
    for (int kind = FBFFT_R2C; kind <= FBFFT_C2R; ++kind) {
        d.kind = (fbfft_kind)kind;
        const int count = passes_of(d, properties);
        if (count != expected)
            fail_msg("%s %dx%dx%d takes %d passes, not %d", kind ? "c2r" : "r2c", (int)d.basis[0], (int)d.basis[1],
                     (int)d.basis[2], count, expected);
    }
}

/* A transform that fits the shared memory of an H200 is read and written once. */
static void one_kernel_if_shared_memory_fits(void **unused) {
    (void)unused;
    const cf_gpu_properties h200 = gpu_properties_of("data/gpus/h200.txt");
    for (int64_t n = 1; n <= 16384; ++n)
        if (fft_is_basis(n))
            expect_passes(fft_desc(1, FBFFT_R2C, n, 0), 1, &h200);
    for (int64_t h = 1; h <= 128; ++h)
        for (int64_t w = 1; w <= 128; ++w) {
            /* Squares, the tallest and the widest planes, and some others. */
            if (!fft_is_basis(h) || !fft_is_basis(w) || (h != w && h != 128 && w != 128 && (h + 3 * w) % 8))
                continue;
            fbfft_desc d = fft_desc(2, FBFFT_R2C, h, 0);
            d.basis[1] = w;
            expect_passes(d, 1, &h200);
        }
    for (int64_t n = 1; n <= 32; ++n)
        for (int longest = 0; longest < 4; ++longest) {
            if (!fft_is_basis(n))
                continue;
            fbfft_desc d = fft_desc(3, FBFFT_R2C, n, 0);
            if (longest < 3)
                d.basis[longest] = 32;
            expect_passes(d, 1, &h200);
        }
}

static void few_kernels_for_larger_transforms(void **unused) {
    (void)unused;
    const cf_gpu_properties h200 = gpu_properties_of("data/gpus/h200.txt");
    expect_passes(fft_desc(2, FBFFT_R2C, 256, 0), 2, &h200);
    expect_passes(fft_desc(2, FBFFT_R2C, 225, 0), 1, &h200);
    expect_passes(fft_desc(2, FBFFT_R2C, 250, 0), 2, &h200);
    expect_passes(fft_desc(2, FBFFT_R2C, 256, 9), 2, &h200);
    expect_passes(fft_desc(3, FBFFT_R2C, 64, 0), 2, &h200);
    expect_passes(fft_desc(3, FBFFT_R2C, 128, 0), 2, &h200);
    expect_passes(fft_desc(3, FBFFT_R2C, 256, 0), 3, &h200);
}

/* ----------------------------------------------------------------------------------------------- spectra in 16 bits */

#define LAST CONV_FFT_CHANNELS_LAST
#define MAJOR FBFFT_FREQUENCY_MAJOR

/* Which 16-bit spectra are computed by tensor-core FFT, and the vector width of their signals. */
static void tensor_core_fft_for_16_bit_spectra(void **unused) {
    (void)unused;
    static const struct {
        int basis[2], size[2], vector_width; /* 0: by steps */
        conv_fft_dtype signal, spectrum;
        fbfft_kind kind;
        conv_fft_layout layout;
        int64_t channels; /* 0: 3 */
    } cases[] = {
        {{64, 64}, {64, 64}, 8, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{64, 64}, {56, 56}, 8, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_C2R, 0, 0},
        {{32, 64}, {19, 60}, 4, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{64, 32}, {9, 30}, 2, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_C2R, 0, 0},
        {{32, 32}, {9, 9}, 1, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_C2R, 0, 0},
        {{32, 32}, {21, 21}, 1, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_R2C, 0, 0},
        {{64, 64}, {64, 64}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, LAST, 0},
        {{64, 64}, {64, 64}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, LAST, 12},
        {{64, 64}, {63, 63}, 2, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, LAST, 24},
        {{32, 64}, {9, 9}, 2, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_C2R, LAST, 64},
        {{64, 32}, {64, 30}, 2, CONV_FFT_FP32, CONV_FFT_FP16, FBFFT_R2C, LAST, 8},
        {{64, 64}, {63, 63}, 4, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_C2R, LAST, 32},
        {{32, 32}, {32, 32}, 2, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_R2C, LAST, 16},
        {{32, 32}, {32, 32}, 2, CONV_FFT_FP32, CONV_FFT_FP16, FBFFT_C2R, LAST, 16},
        {{64, 64}, {64, 64}, 0, CONV_FFT_FP16, CONV_FFT_FP32, FBFFT_R2C, 0, 0},
        {{64, 64}, {64, 64}, 4, CONV_FFT_FP32, CONV_FFT_FP16, FBFFT_C2R, 0, 0},
        {{32, 64}, {30, 42}, 2, CONV_FFT_FP32, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{64, 64}, {64, 64}, 0, CONV_FFT_FP32, CONV_FFT_BF16, FBFFT_C2R, 0, 0},
        {{48, 64}, {48, 64}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{64, 16}, {64, 16}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{64, 16}, {64, 16}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_C2C_FORWARD, 0, 0},
        /* lines */
        {{1, 4096}, {1, 4096}, 4, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{1, 4096}, {1, 3000}, 8, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_C2R, 0, 0},
        {{1, 2048}, {1, 2046}, 2, CONV_FFT_FP32, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{1, 1024}, {1, 1024}, 2, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{1, 1024}, {1, 1024}, 4, CONV_FFT_FP32, CONV_FFT_FP16, FBFFT_C2R, 0, 0},
        {{1, 1024}, {1, 999}, 1, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_C2R, 0, 0},
        {{1, 512}, {1, 300}, 2, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_R2C, 0, 0},
        {{1, 256}, {1, 256}, 1, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{1, 256}, {1, 256}, 2, CONV_FFT_FP32, CONV_FFT_FP16, FBFFT_C2R, 0, 0},
        {{1, 128}, {1, 128}, 8, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{1, 128}, {1, 99}, 1, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_C2R, 0, 0},
        {{1, 128}, {1, 100}, 4, CONV_FFT_FP32, CONV_FFT_FP16, FBFFT_R2C, 0, 8},
        {{1, 128}, {1, 33}, 1, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_R2C, 0, 0},
        {{1, 64}, {1, 62}, 2, CONV_FFT_FP32, CONV_FFT_FP16, FBFFT_C2R, 0, 0},
        {{1, 64}, {1, 61}, 1, CONV_FFT_FP32, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{1, 32}, {1, 24}, 8, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_C2R, 0, 0},
        {{1, 16}, {1, 16}, 4, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{1, 8}, {1, 8}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{1, 64}, {1, 64}, 2, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, LAST, 8},
        {{1, 64}, {1, 64}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, LAST, 12},
        {{1, 128}, {1, 99}, 4, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_C2R, LAST, 24},
        {{1, 16}, {1, 13}, 2, CONV_FFT_FP32, CONV_FFT_FP16, FBFFT_C2R, LAST, 40},
        {{1, 256}, {1, 256}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, LAST, 8},
        {{1, 72}, {1, 64}, 2, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, LAST, 16},
        {{1, 24}, {1, 17}, 4, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_C2R, LAST, 24},
        {{1, 120}, {1, 100}, 2, CONV_FFT_FP32, CONV_FFT_FP16, FBFFT_R2C, LAST, 8},
        {{1, 60}, {1, 60}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, LAST, 8},
        {{1, 72}, {1, 64}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 8},
        {{1, 1000}, {1, 1000}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{1, 8192}, {1, 8192}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{1, 1024}, {1, 1024}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, LAST, 8},
    };
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        fbfft_desc d = transform(cases[i].basis[0] > 1 ? 2 : 1, cases[i].kind, cases[i].basis[0], cases[i].basis[1],
                                 cases[i].size[0], cases[i].size[1]);
        cf_fft_problem problem;
        cf_fft_passes passes;
        d.channels = cases[i].channels ? cases[i].channels : 3;
        d.order = MAJOR;
        d.layout = cases[i].layout;
        d.dtype = cases[i].signal;
        assert_int_equal(cf_fft_resolve(&d, &problem), CONV_FFT_SUCCESS);
        problem.transform.spectrum.dtype = cases[i].spectrum;
        assert_int_equal(cf_fft_passes_of(&problem, &properties, &passes), CONV_FFT_SUCCESS);
        const cf_shared_fft_config *tile = passes.pass[0].tile;
        assert_int_equal(passes.pass[0].tensor_core, cases[i].vector_width > 0);
        if (cases[i].vector_width == 0)
            continue;
        assert_int_equal(passes.count, 1);
        assert_int_equal(tile[0].vector_width, cases[i].vector_width);
        assert_int_equal(tile[1].vector_width, 1);
        const bool two =
            d.layout == LAST && d.channels % 16 == 0 && d.dtype != CONV_FFT_FP32 && d.basis[0] == d.basis[1];
        const bool half = d.basis[0] > 64 && d.dtype == CONV_FFT_FP32;
        const int plane_groups = d.rank == 2         ? 1 + two
                                 : d.basis[0] <= 128 ? (half ? 8 : 16)
                                 : d.basis[0] == 256 ? 4
                                 : d.basis[0] == 512 ? 2
                                                     : 1;
        assert_int_equal(tile[0].planes, 8 * plane_groups);
        assert_true(tile[0].blocks * tile[0].shared <= properties.shared_per_multiprocessor);
    }
}

/* Small windows that one dense matrix transforms, and how blocks share the planes: 256 each, or 128. */
static void dense_matrix_for_small_windows(void **unused) {
    (void)unused;
    static const struct {
        int basis[2], size[2], bin_tiles, planes; /* 0: otherwise */
        conv_fft_dtype signal, spectrum;
        fbfft_kind kind;
        conv_fft_layout layout;
        int64_t channels;
    } cases[] = {
        {{64, 64}, {9, 9}, 15, 256, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 64},
        {{32, 32}, {9, 9}, 4, 256, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_R2C, 0, 3},
        {{32, 32}, {9, 9}, 2, 128, CONV_FFT_FP32, CONV_FFT_FP16, FBFFT_R2C, LAST, 24},
        {{16, 16}, {7, 7}, 1, 128, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 128},
        {{16, 16}, {3, 3}, 1, 128, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_R2C, LAST, 16},
        {{45, 28}, {5, 4}, 4, 256, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 5},
        {{32, 32}, {11, 11}, 3, 128, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 8},
        {{32, 32}, {16, 8}, 3, 128, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 8},
        {{1, 512}, {1, 128}, 3, 128, CONV_FFT_BF16, CONV_FFT_BF16, FBFFT_R2C, 0, 3},
        {{32, 32}, {9, 9}, 2, 128, CONV_FFT_FP32, CONV_FFT_BF16, FBFFT_R2C, 0, 8},
        /* more roots, more taps, more points of the window, other types, the inverse, complex numbers */
        {{63, 80}, {5, 5}, 0, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 8},
        {{64, 64}, {12, 12}, 0, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 8},
        {{16, 16}, {8, 9}, 0, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 8},
        {{32, 32}, {9, 9}, 0, 0, CONV_FFT_FP16, CONV_FFT_FP32, FBFFT_R2C, 0, 8},
        {{32, 32}, {9, 9}, 0, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_C2R, 0, 8},
        {{32, 32}, {9, 9}, 0, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_C2C_FORWARD, 0, 8},
    };
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        fbfft_desc d = transform(cases[i].basis[0] > 1 ? 2 : 1, cases[i].kind, cases[i].basis[0], cases[i].basis[1],
                                 cases[i].size[0], cases[i].size[1]);
        cf_fft_problem problem;
        cf_fft_passes passes;
        d.channels = cases[i].channels;
        d.order = MAJOR;
        d.layout = cases[i].layout;
        d.dtype = cases[i].signal;
        assert_int_equal(cf_fft_resolve(&d, &problem), CONV_FFT_SUCCESS);
        problem.transform.spectrum.dtype = cases[i].spectrum;
        assert_int_equal(cf_fft_passes_of(&problem, &properties, &passes), CONV_FFT_SUCCESS);
        const cf_shared_fft_config *tile = passes.pass[0].tile;
        assert_int_equal(tile->bin_tiles, cases[i].bin_tiles);
        if (cases[i].bin_tiles == 0)
            continue;
        assert_true(passes.count == 1 && passes.pass[0].tensor_core);
        assert_int_equal(tile->threads, 256);
        assert_int_equal(tile->planes, cases[i].planes);
        assert_int_equal(cf_shared_fft_blocks(tile, tile->planes + 1), 2 * cases[i].bin_tiles);
        assert_int_equal(tile->finds_scales, cases[i].spectrum == CONV_FFT_FP16 && cases[i].channels % 8 == 0);
        assert_true(tile->blocks * tile->shared <= properties.shared_per_multiprocessor);
    }
}

/* Kernels of short rows count them in 32 bits. */
static void short_rows_beyond_32_bits(void **unused) {
    (void)unused;
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    static const int64_t points[] = {64, 256};
    for (int i = 0; i < 4; ++i) {
        fbfft_desc d = transform(1, FBFFT_R2C, 1, (int)points[i / 2], 1, 0);
        cf_fft_problem problem;
        cf_fft_passes passes;
        d.channels = 8;
        d.order = MAJOR;
        d.dtype = CONV_FFT_BF16;
        assert_int_equal(cf_fft_resolve(&d, &problem), CONV_FFT_SUCCESS);
        problem.transform.spectrum.dtype = CONV_FFT_BF16;
        problem.transform.spectrum.rows = ((int64_t)1 << 27) - i % 2;
        assert_int_equal(cf_fft_passes_of(&problem, &properties, &passes), CONV_FFT_SUCCESS);
        assert_int_equal(passes.pass[0].tensor_core, i > 0);
    }
}

/* The slowest axis of volumes: lines of at most 48 points whose neighbours are other planes. */
static void lines_in_registers(void **unused) {
    (void)unused;
    static const struct {
        int64_t points;
        fbfft_order order;
        conv_fft_dtype spectrum;
        bool in_registers;
    } cases[] = {{36, MAJOR, CONV_FFT_FP32, true},
                 {40, MAJOR, CONV_FFT_FP16, true},
                 {48, MAJOR, CONV_FFT_BF16, true},
                 {50, MAJOR, CONV_FFT_FP32, false},
                 {36, FBFFT_NATURAL, CONV_FFT_FP32, false}};
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof cases[0]); ++i) {
        fbfft_desc d = transform(3, i % 2 ? FBFFT_C2R : FBFFT_R2C, 0, 36, 0, 30);
        cf_fft_problem problem;
        cf_fft_passes passes;
        d.basis[0] = cases[i / 2].points;
        d.basis[1] = 36;
        d.extent[0] = d.extent[1] = 30;
        d.channels = 32;
        d.order = cases[i / 2].order;
        d.dtype = CONV_FFT_FP32;
        assert_int_equal(cf_fft_resolve(&d, &problem), CONV_FFT_SUCCESS);
        problem.transform.spectrum.dtype = cases[i / 2].spectrum;
        assert_int_equal(cf_fft_passes_of(&problem, &properties, &passes), CONV_FFT_SUCCESS);
        const cf_shared_fft_config *tile = &passes.pass[passes.count - 1].tile[0];
        assert_int_equal(tile->in_registers, cases[i / 2].in_registers);
        if (tile->in_registers)
            assert_int_equal(tile->shared, tile->planes * CF_SHARED_FFT_TABLE);
    }
}

static cf_shared_fft_config rows_of_planes(const char *file, conv_fft_dtype spectrum, fbfft_kind kind,
                                           int64_t channels) {
    const cf_gpu_properties properties = gpu_properties_of(file);
    fbfft_desc d = transform(2, kind, 64, 64, 64, 64);
    cf_fft_problem problem;
    cf_fft_passes passes;
    d.channels = channels;
    d.order = MAJOR;
    d.dtype = CONV_FFT_FP32;
    assert_int_equal(cf_fft_resolve(&d, &problem), CONV_FFT_SUCCESS);
    problem.transform.spectrum.dtype = spectrum;
    problem.transform.spectrum.scale_rows = problem.transform.spectrum.rows_per_sample;
    assert_int_equal(cf_fft_passes_of(&problem, &properties, &passes), CONV_FFT_SUCCESS);
    assert_int_equal(passes.pass[0].tensor_core, spectrum == CONV_FFT_FP16);
    return passes.pass[0].tile[0];
}

/* Blocks that compute the scales of their planes have whole scales, of one row. */
static void blocks_with_scales(void **unused) {
    static const int64_t channels[] = {8, 24, 128, 12, 7};
    static const char *const files[] = {"data/gpus/h200.txt", "data/gpus/a100.txt"};
    (void)unused;
    for (int i = 0; i < 10; ++i) {
        const int64_t n = channels[i / 2];
        const char *const file = files[i % 2];
        assert_int_equal(rows_of_planes(file, CONV_FFT_FP16, FBFFT_R2C, n).finds_scales, n % 8 == 0);
        assert_false(rows_of_planes(file, CONV_FFT_FP16, FBFFT_C2R, n).finds_scales);
        assert_false(rows_of_planes(file, CONV_FFT_FP32, FBFFT_R2C, n).finds_scales);
    }
}

/* ------------------------------------------------------------------------------------------------------------- text */

/* A kernel whose text does not fit its buffer is an error. It is never compiled without its end. */
static void cut_text_is_an_error(void **unused) {
    (void)unused;
    char buffer[12];
    cf_text t = {buffer, sizeof buffer, 0};
    cf_source source = {.name = "f"};
    cf_text_add(&t, "void f(%s", "");
    cf_text_add(&t, ") {}");
    assert_int_equal(cf_fbfft_set_text(&source, "/* headers */", &t), CONV_FFT_SUCCESS);
    char *const text = cf_source_join(&source);
    assert_non_null(text);
    assert_non_null(strstr(text, "/* headers */void f() {}"));
    free(text);
    free((char *)(uintptr_t)source.text);
    source.text = NULL;
    cf_text_add(&t, "\n");
    assert_int_equal(cf_fbfft_set_text(&source, NULL, &t), CONV_FFT_INTERNAL_ERROR);
    assert_null(source.text);
    assert_non_null(strstr(conv_fft_last_error(), "has 12 bytes; its buffer has 11"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_of_two_have_kernels),
        cmocka_unit_test(planes_of_up_to_64_points_have_kernels),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(one_kernel_if_shared_memory_fits),
        cmocka_unit_test(few_kernels_for_larger_transforms),
        cmocka_unit_test(tensor_core_fft_for_16_bit_spectra),
        cmocka_unit_test(dense_matrix_for_small_windows),
        cmocka_unit_test(lines_in_registers),
        cmocka_unit_test(short_rows_beyond_32_bits),
        cmocka_unit_test(blocks_with_scales),
        cmocka_unit_test(cut_text_is_an_error),
    };
    return cmocka_run_group_tests_name("fbfft config", tests, NULL, NULL);
}
