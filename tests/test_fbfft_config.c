/* SPDX-License-Identifier: Apache-2.0 */
/* The planner's choices, and that NVRTC compiles them without spills where it is found; no GPU is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiled.h"
#include "fbfft/gpu_transform.h"
#include "fbfft_cases.h"

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

static cf_gpu_facts facts_of(const char *file) {
    cf_gpu_facts facts;
    assert_int_equal(cf_gpu_facts_load(file, &facts), CONV_FFT_SUCCESS);
    return facts;
}

static void powers_of_two_have_kernels(void **unused) {
    (void)unused;
    const cf_gpu_facts gpus[2] = {facts_of("facts/h200.txt"), facts_of("facts/a100.txt")};
    for (int g = 0; g < 2; ++g)
        for (int kind = 0; kind < 2; ++kind) {
            for (int w = 2; w <= 256; w *= 2) {
                const fbfft_desc line = transform(1, (fbfft_kind)kind, 1, w, 1, 0);
                cf_fft_config c;
                assert_int_equal(cf_fft_configure(&line, &gpus[g], &c), CONV_FFT_SUCCESS);
                /* Lines of more than 64 points have several lanes, whose square must divide both axes. */
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

static void others_are_refused(void **unused) {
    (void)unused;
    const cf_gpu_facts facts = facts_of("facts/h200.txt");
    static const struct {
        int rank, h, w;
        const char *sentence;
    } cases[] = {{1, 1, 15, "basis[0] is 15"},          {1, 1, 512, "basis[0] is 512"},      {2, 8, 7, "basis[1] is 7"},
                 {2, 256, 256, "lines of this length"}, {2, 128, 2, "lines of this length"}, {3, 8, 8, "rank is 3"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        fbfft_desc d = transform(cases[i].rank == 3 ? 2 : cases[i].rank, FBFFT_R2C, cases[i].h, cases[i].w, 0, 0);
        d.rank = cases[i].rank;
        cf_fft_config c;
        assert_int_equal(cf_fft_configure(&d, &facts, &c), CONV_FFT_NOT_SUPPORTED);
        if (!strstr(conv_fft_last_error(), cases[i].sentence))
            fail_msg("%s: %s", cases[i].sentence, conv_fft_last_error());
    }
}

/* ------------------------------------------------------------------------------------------------------------- passes */

static int passes_of(fbfft_desc d, const cf_gpu_facts *facts) {
    cf_fft_problem problem;
    cf_fft_passes passes;
    assert_int_equal(cf_fft_resolve(&d, &problem), CONV_FFT_SUCCESS);
    if (cf_fft_passes_of(&problem, facts, &passes) != CONV_FFT_SUCCESS) {
        print_message("          rank %d: %s\n", d.rank, conv_fft_last_error());
        return 0;
    }
    for (int i = 0; i < passes.count; ++i) {
        const cf_fft_pass *const p = &passes.pass[i];
        const int64_t shared = p->plain ? p->real[0].shared : p->tile[0].shared;
        const int threads = p->plain ? p->real[0].threads : p->tile[0].threads;
        const int blocks = p->plain ? p->real[0].blocks : p->tile[0].blocks;
        assert_true(shared <= facts->shared_per_block);
        assert_true(threads % 32 == 0 && threads * blocks <= facts->threads_per_multiprocessor);
    }
    return passes.count;
}

static void expect_passes(fbfft_desc d, int expected, const cf_gpu_facts *facts) {
    for (int kind = FBFFT_R2C; kind <= FBFFT_C2R; ++kind) {
        d.kind = (fbfft_kind)kind;
        const int count = passes_of(d, facts);
        if (count != expected)
            fail_msg("%s %dx%dx%d takes %d passes, not %d", kind ? "c2r" : "r2c", (int)d.basis[0], (int)d.basis[1],
                     (int)d.basis[2], count, expected);
    }
}

/* What fits an H200's shared memory is read and written once. */
static void one_pass_as_promised(void **unused) {
    (void)unused;
    const cf_gpu_facts h200 = facts_of("facts/h200.txt");
    for (int64_t n = 1; n <= 16384; ++n)
        if (fft_is_basis(n))
            expect_passes(fft_desc(1, FBFFT_R2C, n, 0), 1, &h200);
    for (int64_t h = 1; h <= 128; ++h)
        for (int64_t w = 1; w <= 128; ++w) {
            /* Squares, the tallest, the widest, and some others. */
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

static void few_passes_beyond(void **unused) {
    (void)unused;
    const cf_gpu_facts h200 = facts_of("facts/h200.txt");
    expect_passes(fft_desc(2, FBFFT_R2C, 256, 0), 2, &h200);
    expect_passes(fft_desc(2, FBFFT_R2C, 225, 0), 1, &h200);
    expect_passes(fft_desc(2, FBFFT_R2C, 250, 0), 2, &h200);
    expect_passes(fft_desc(2, FBFFT_R2C, 256, 9), 2, &h200);
    expect_passes(fft_desc(3, FBFFT_R2C, 64, 0), 2, &h200);
    expect_passes(fft_desc(3, FBFFT_R2C, 128, 0), 2, &h200);
    expect_passes(fft_desc(3, FBFFT_R2C, 256, 0), 3, &h200);
}

/* -------------------------------------------------------------------------------------------------------- compilation */

#define LAST CONV_FFT_CHANNELS_LAST
#define TRANSPOSED FBFFT_TRANSPOSED
#define MAJOR FBFFT_FREQUENCY_MAJOR

/* What the pipeline and the benchmarks use most, and one of every kind of kernel; each in both directions. `spills` in bytes where the
 * compiler trades a few registers for occupancy: all others promise none, and no other local memory. */
static const struct {
    int rank;
    int64_t basis[3], extent[3];
    int spills;
    int64_t channels;
    bool is_complex;
    fbfft_order order;
    conv_fft_dtype dtype;
    conv_fft_layout layout;
    bool halves; /* the spectrum has 16 bits, too */
} representative[] = {
    {.rank = 1, .basis = {8}},
    {.rank = 1, .basis = {64}},
    {.rank = 1, .basis = {128}},
    {.rank = 1, .basis = {256}},
    {.rank = 1, .basis = {256}, .extent = {31}},
    {.rank = 2, .basis = {8, 8}},
    {.rank = 2, .basis = {16, 16}, .extent = {5, 5}},
    {.rank = 2, .basis = {32, 32}},
    {.rank = 2, .basis = {64, 64}, .extent = {9, 9}},
    {.rank = 2, .basis = {64, 64}, .spills = 32},
    {.rank = 2, .basis = {36, 36}},
    {.rank = 2, .basis = {72, 72}, .spills = 64},
    {.rank = 2, .basis = {24, 40}, .extent = {7, 33}},
    {.rank = 2, .basis = {128, 128}, .spills = 256},
    /* tile.cuh */
    {.rank = 1, .basis = {45}},
    {.rank = 1, .basis = {16384}},
    {.rank = 1, .basis = {1000}, .is_complex = true},
    {.rank = 1, .basis = {128}, .channels = 8, .order = MAJOR, .dtype = CONV_FFT_FP16, .layout = LAST},
    {.rank = 2, .basis = {15, 15}},
    {.rank = 2, .basis = {80, 70}, .order = TRANSPOSED},
    {.rank = 2, .basis = {48, 48}, .is_complex = true},
    {.rank = 2, .basis = {16, 16}, .extent = {5, 5}, .channels = 16, .order = MAJOR},
    {.rank = 2, .basis = {32, 32}, .channels = 16, .order = MAJOR},
    {.rank = 2, .basis = {64, 64}, .channels = 16, .order = MAJOR},
    {.rank = 2, .basis = {36, 36}, .channels = 16, .order = MAJOR, .layout = LAST},
    {.rank = 2, .basis = {32, 32}, .extent = {9, 9}, .channels = 16, .order = MAJOR, .dtype = CONV_FFT_BF16},
    {.rank = 2, .basis = {128, 128}, .channels = 4, .order = MAJOR},
    {.rank = 2, .basis = {256, 256}},
    {.rank = 2, .basis = {32, 32}, .channels = 4, .order = MAJOR, .dtype = CONV_FFT_FP64},
    {.rank = 3, .basis = {32, 32, 32}},
    /* matrix_dense.cuh, and back by matrix.cuh */
    {.rank = 2,
     .basis = {64, 64},
     .extent = {9, 9},
     .channels = 16,
     .order = MAJOR,
     .dtype = CONV_FFT_FP16,
     .halves = true},
    {.rank = 2,
     .basis = {32, 32},
     .extent = {9, 9},
     .channels = 16,
     .order = MAJOR,
     .dtype = CONV_FFT_FP32,
     .layout = LAST,
     .halves = true},
    {.rank = 2,
     .basis = {16, 16},
     .extent = {3, 3},
     .channels = 16,
     .order = MAJOR,
     .dtype = CONV_FFT_BF16,
     .layout = LAST,
     .halves = true},
    /* matrix.cuh */
    {.rank = 2,
     .basis = {64, 64},
     .channels = 16,
     .order = MAJOR,
     .dtype = CONV_FFT_FP16,
     .halves = true,
     .spills = 64},
    {.rank = 2,
     .basis = {64, 32},
     .extent = {41, 21},
     .channels = 16,
     .order = MAJOR,
     .dtype = CONV_FFT_FP16,
     .halves = true},
    {.rank = 2,
     .basis = {32, 64},
     .extent = {24, 50},
     .channels = 16,
     .order = MAJOR,
     .dtype = CONV_FFT_BF16,
     .halves = true,
     .spills = 32},
    {.rank = 2, .basis = {32, 32}, .channels = 16, .order = MAJOR, .dtype = CONV_FFT_BF16, .halves = true},
    {.rank = 2, .basis = {64, 64}, .channels = 64, .order = MAJOR, .halves = true, .spills = 64},
    {.rank = 2, .basis = {32, 32}, .extent = {30, 30}, .channels = 128, .order = MAJOR, .halves = true},
    /* matrix_short.cuh */
    {.rank = 1,
     .basis = {128},
     .extent = {112},
     .channels = 64,
     .order = MAJOR,
     .dtype = CONV_FFT_FP16,
     .halves = true,
     .spills = 16},
    {.rank = 1, .basis = {128}, .extent = {98}, .channels = 64, .order = MAJOR, .halves = true, .spills = 16},
    {.rank = 1, .basis = {64}, .extent = {62}, .channels = 64, .order = MAJOR, .dtype = CONV_FFT_BF16, .halves = true},
    {.rank = 1, .basis = {64}, .channels = 64, .order = MAJOR, .halves = true, .spills = 16},
    {.rank = 1, .basis = {32}, .channels = 20, .order = MAJOR, .dtype = CONV_FFT_FP16, .halves = true},
    {.rank = 1, .basis = {16}, .channels = 64, .order = MAJOR, .halves = true},
    {.rank = 1,
     .basis = {128},
     .extent = {98},
     .channels = 64,
     .order = MAJOR,
     .dtype = CONV_FFT_FP16,
     .layout = LAST,
     .halves = true,
     .spills = 16},
    {.rank = 1, .basis = {64}, .channels = 24, .order = MAJOR, .dtype = CONV_FFT_BF16, .layout = LAST, .halves = true},
    {.rank = 1, .basis = {32}, .channels = 64, .order = MAJOR, .layout = LAST, .halves = true, .spills = 16},
};

enum {
    PROBLEMS = sizeof representative / sizeof representative[0],
    MOST_KERNELS = 2 * 2 * CF_FFT_MAX_PASSES * PROBLEMS,
#ifdef __SANITIZE_ADDRESS__
    ONE_OF = 9 /* compilers take several times as long there; odd, for both directions */
#else
    ONE_OF = 1
#endif
};

static fbfft_desc problem_of(int i, int inverse) {
    const int first = representative[i].is_complex ? FBFFT_C2C_FORWARD : FBFFT_R2C;
    fbfft_desc d = fft_desc(representative[i].rank, (fbfft_kind)(first + inverse), 1, 0);
    for (int a = 0; a < d.rank; ++a) {
        d.basis[a] = representative[i].basis[a];
        d.extent[a] = representative[i].extent[a];
    }
    d.channels = representative[i].channels ? representative[i].channels : 1;
    d.order = representative[i].order;
    d.dtype = representative[i].dtype;
    d.layout = representative[i].layout;
    return d;
}

/* Which 16-bit spectra come from matrix products, and in what pieces signals go. */
static void spectra_of_halves(void **unused) {
    (void)unused;
    static const struct {
        int basis[2], size[2], wide; /* 0: by steps */
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
        {{1, 1000}, {1, 1000}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{1, 8192}, {1, 8192}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 0},
        {{1, 1024}, {1, 1024}, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, LAST, 8},
    };
    const cf_gpu_facts facts = facts_of("facts/h200.txt");
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
        assert_int_equal(cf_fft_passes_of(&problem, &facts, &passes), CONV_FFT_SUCCESS);
        const cf_tile_config *tile = passes.pass[0].tile;
        assert_int_equal(passes.pass[0].matrix, cases[i].wide > 0);
        if (cases[i].wide == 0)
            continue;
        assert_int_equal(passes.count, 1);
        assert_int_equal(tile[0].wide, cases[i].wide);
        assert_int_equal(tile[1].wide, 1);
        const bool two =
            d.layout == LAST && d.channels % 16 == 0 && d.dtype != CONV_FFT_FP32 && d.basis[0] == d.basis[1];
        const int octets = d.rank == 2         ? 1 + two
                           : d.basis[0] == 128 ? d.dtype == CONV_FFT_FP32 ? 8 : 16
                           : d.basis[0] < 128  ? 16
                           : d.basis[0] == 256 ? 4
                           : d.basis[0] == 512 ? 2
                                               : 1;
        assert_int_equal(tile[0].planes, 8 * octets);
        assert_true(tile[0].blocks * tile[0].shared <= facts.shared_per_multiprocessor);
    }
}

/* Windows of few data that one product transforms, and how blocks share them: 256 planes each, or 128. */
static void one_product(void **unused) {
    (void)unused;
    static const struct {
        int basis[2], size[2], slabs, planes; /* 0: otherwise */
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
        /* more roots, more taps, more points of the window, other types, the inverse, complex numbers */
        {{63, 80}, {5, 5}, 0, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 8},
        {{64, 64}, {12, 12}, 0, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 8},
        {{16, 16}, {8, 9}, 0, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_R2C, 0, 8},
        {{32, 32}, {9, 9}, 0, 0, CONV_FFT_FP16, CONV_FFT_FP32, FBFFT_R2C, 0, 8},
        {{32, 32}, {9, 9}, 0, 0, CONV_FFT_FP32, CONV_FFT_BF16, FBFFT_R2C, 0, 8},
        {{32, 32}, {9, 9}, 0, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_C2R, 0, 8},
        {{32, 32}, {9, 9}, 0, 0, CONV_FFT_FP16, CONV_FFT_FP16, FBFFT_C2C_FORWARD, 0, 8},
    };
    const cf_gpu_facts facts = facts_of("facts/h200.txt");
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
        assert_int_equal(cf_fft_passes_of(&problem, &facts, &passes), CONV_FFT_SUCCESS);
        const cf_tile_config *tile = passes.pass[0].tile;
        assert_int_equal(tile->slabs, cases[i].slabs);
        if (cases[i].slabs == 0)
            continue;
        assert_true(passes.count == 1 && passes.pass[0].matrix);
        assert_int_equal(tile->threads, 256);
        assert_int_equal(tile->planes, cases[i].planes);
        assert_int_equal(cf_tile_blocks(tile, tile->planes + 1), 2 * cases[i].slabs);
        assert_int_equal(tile->finds_scales, cases[i].spectrum == CONV_FFT_FP16 && cases[i].channels % 8 == 0);
        assert_true(tile->blocks * tile->shared <= facts.shared_per_multiprocessor);
    }
}

/* Kernels of short lines count them in 32 bits. */
static void lines_beyond_counts(void **unused) {
    (void)unused;
    const cf_gpu_facts facts = facts_of("facts/h200.txt");
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
        assert_int_equal(cf_fft_passes_of(&problem, &facts, &passes), CONV_FFT_SUCCESS);
        assert_int_equal(passes.pass[0].matrix, i > 0);
    }
}

static cf_tile_config rows_of_planes(const char *file, conv_fft_dtype spectrum, fbfft_kind kind, int64_t channels) {
    const cf_gpu_facts facts = facts_of(file);
    fbfft_desc d = transform(2, kind, 64, 64, 64, 64);
    cf_fft_problem problem;
    cf_fft_passes passes;
    d.channels = channels;
    d.order = MAJOR;
    d.dtype = CONV_FFT_FP32;
    assert_int_equal(cf_fft_resolve(&d, &problem), CONV_FFT_SUCCESS);
    problem.transform.spectrum.dtype = spectrum;
    problem.transform.spectrum.scale_rows = problem.transform.spectrum.rows_per_sample;
    assert_int_equal(cf_fft_passes_of(&problem, &facts, &passes), CONV_FFT_SUCCESS);
    assert_int_equal(passes.pass[0].matrix, spectrum == CONV_FFT_FP16);
    return passes.pass[0].tile[0];
}

/* Blocks that find the scales of their planes: whole scales, of one row. */
static void scales(void **unused) {
    static const int64_t channels[] = {8, 24, 128, 12, 7};
    static const char *const files[] = {"facts/h200.txt", "facts/a100.txt"};
    (void)unused;
    for (int i = 0; i < 10; ++i) {
        const int64_t n = channels[i / 2];
        const char *const file = files[i % 2];
        assert_int_equal(rows_of_planes(file, CONV_FFT_FP16, FBFFT_R2C, n).finds_scales, n % 8 == 0);
        assert_false(rows_of_planes(file, CONV_FFT_FP16, FBFFT_C2R, n).finds_scales);
        assert_false(rows_of_planes(file, CONV_FFT_FP32, FBFFT_R2C, n).finds_scales);
    }
}

/* The kernels of a transform, as gpu_transform.c builds them, also those for pointers of less alignment. */
static int add_kernels(const fbfft_desc *d, bool halves, const cf_gpu_facts *facts, int allowed, compiled *to) {
    cf_fft_problem problem;
    cf_fft_passes passes;
    char text[192];
    int count = 0;
    assert_int_equal(cf_fft_resolve(d, &problem), CONV_FFT_SUCCESS);
    if (halves)
        problem.transform.spectrum.dtype = d->dtype == CONV_FFT_FP32 ? CONV_FFT_FP16 : d->dtype;
    problem.transform.spectrum.scale_rows = problem.transform.spectrum.rows_per_sample; /* as x and y have it */
    assert_int_equal(cf_fft_passes_of(&problem, facts, &passes), CONV_FFT_SUCCESS);
    assert_int_equal(passes.pass[0].matrix, halves);
    fft_describe(d, text, sizeof text);
    for (int p = 0; p < passes.count; ++p) {
        const cf_fft_pass *const pass = &passes.pass[p];
        const bool two = pass->plain || pass->tile[0].wide > 1;
        for (int v = 0; v < (two ? 2 : 1); ++v) {
            compiled *const c = &to[count++];
            *c = (compiled){.allowed = allowed};
            assert_int_equal(pass->plain    ? cf_fft_real_source(&pass->real[v], &c->source)
                             : pass->matrix ? cf_fft_matrix_source(&pass->tile[v], &c->source)
                                            : cf_fft_tile_source(&pass->tile[v], &c->source),
                             CONV_FFT_SUCCESS);
            snprintf(c->name, sizeof c->name, "%s, pass %d%s", text, p, v ? ", unaligned" : "");
        }
    }
    return count;
}

static void compile_all(const cf_jit *jit, const char *facts_file) {
    const cf_gpu_facts facts = facts_of(facts_file);
    static compiled kernels[MOST_KERNELS];
    int count = 0;
    for (int i = 0; i < 2 * PROBLEMS; i += ONE_OF) {
        const fbfft_desc d = problem_of(i / 2, i % 2);
        count += add_kernels(&d, representative[i / 2].halves, &facts, representative[i / 2].spills, &kernels[count]);
    }
    assert_int_equal(compile_kernels(jit, &facts, kernels, count), 0);
}

static void kernels_compile_without_spills(void **unused) {
    (void)unused;
    cf_jit jit;
    if (!compiler_open(&jit))
        skip();
    compile_all(&jit, "facts/h200.txt");
    compile_all(&jit, "facts/a100.txt");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_of_two_have_kernels),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(one_pass_as_promised),
        cmocka_unit_test(few_passes_beyond),
        cmocka_unit_test(spectra_of_halves),
        cmocka_unit_test(one_product),
        cmocka_unit_test(lines_beyond_counts),
        cmocka_unit_test(scales),
        cmocka_unit_test(kernels_compile_without_spills),
    };
    return cmocka_run_group_tests_name("fbfft config", tests, NULL, NULL);
}
