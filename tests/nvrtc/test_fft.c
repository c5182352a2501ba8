/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC compiles the kernels of transforms without spills. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "fbfft/c2c_split/plan.h"
#include "fbfft/plan/gpu_transform.h"
#include "support/c2c_fp16_cases.h"
#include "support/fft_check.h"
#include "support/kernel_cases.h"
#include "support/nvrtc_compile.h"

#define LAST CONV_FFT_CHANNELS_LAST
#define TRANSPOSED FBFFT_TRANSPOSED
#define MAJOR FBFFT_FREQUENCY_MAJOR

/* The transforms that layers and benchmarks use most, and one of every kind of kernel, each in both directions.
 * `spills` are bytes, for kernels where the compiler uses fewer registers for more occupancy. All other kernels must
 * have no spills and no other local memory. */
static const struct {
    int rank;
    int64_t basis[3], extent[3];
    int spills;
    int64_t channels;
    bool is_complex;
    fbfft_order order;
    conv_fft_dtype dtype;
    conv_fft_layout layout;
    bool halves;       /* the spectrum has 16 bits, too */
    bool rectangle;    /* not of a size that tensor cores transform */
    bool fp32_weights; /* forward: the signal is FP32; inverse: the bias is */
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
    /* shared_memory/kernel.cuh */
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
    /* dft_matrix.cuh, and back by plane.cuh */
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
    /* plane.cuh */
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
    /* rows through shared memory: plane_inverse.cuh */
    {.rank = 2,
     .basis = {64, 64},
     .extent = {55, 55},
     .channels = 64,
     .order = MAJOR,
     .dtype = CONV_FFT_FP16,
     .halves = true},
    {.rank = 2, .basis = {32, 32}, .extent = {27, 27}, .channels = 64, .order = MAJOR, .halves = true},
    {.rank = 2, .basis = {64, 64}, .extent = {55, 55}, .channels = 64, .order = MAJOR, .halves = true},
    /* short_line_forward.cuh, short_line_inverse.cuh */
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
    {.rank = 1,
     .basis = {72},
     .extent = {64},
     .channels = 64,
     .order = MAJOR,
     .dtype = CONV_FFT_FP16,
     .layout = LAST,
     .halves = true},
    {.rank = 1, .basis = {72}, .extent = {64}, .channels = 64, .order = MAJOR, .layout = LAST, .halves = true},
    {.rank = 1, .basis = {120}, .channels = 64, .order = MAJOR, .dtype = CONV_FFT_BF16, .layout = LAST, .halves = true},
    {.rank = 1, .basis = {24}, .extent = {17}, .channels = 24, .order = MAJOR, .layout = LAST, .halves = true},
    /* FP32 weights and biases beside 16-bit tensors */
    {.rank = 2,
     .basis = {32, 32},
     .extent = {9, 9},
     .channels = 16,
     .order = MAJOR,
     .dtype = CONV_FFT_BF16,
     .halves = true,
     .fp32_weights = true},
    /* staged rows whose points are no multiple of four: shared_memory/signal.cuh */
    {.rank = 2, .basis = {14, 14}, .channels = 16, .order = MAJOR},
    {.rank = 2, .basis = {27, 30}, .extent = {23, 28}, .channels = 16, .order = MAJOR},
    /* prefetch.cuh, and the blocks of 40x40, of which two fit a multiprocessor */
    {.rank = 2, .basis = {36, 64}, .extent = {28, 56}, .channels = 64, .order = MAJOR},
    {.rank = 2, .basis = {40, 40}, .channels = 64, .order = MAJOR},
    {.rank = 2,
     .basis = {36, 64},
     .extent = {28, 56},
     .channels = 64,
     .order = MAJOR,
     .dtype = CONV_FFT_FP16,
     .halves = true,
     .rectangle = true},
    {.rank = 2,
     .basis = {40, 40},
     .spills = 48,
     .channels = 64,
     .order = MAJOR,
     .dtype = CONV_FFT_BF16,
     .halves = true,
     .rectangle = true},
    /* volumes whose slowest axis has a kernel of its own: lines in registers */
    {.rank = 3, .basis = {36, 36, 36}, .channels = 32, .order = MAJOR},
    {.rank = 3,
     .basis = {36, 36, 36},
     .extent = {32, 32, 32},
     .channels = 32,
     .order = MAJOR,
     .dtype = CONV_FFT_FP16,
     .halves = true,
     .spills = 48, /* compute capability 8.0 */
     .rectangle = true},
    {.rank = 3,
     .basis = {40, 28, 40},
     .extent = {34, 22, 34},
     .spills = 48,
     .channels = 32,
     .order = MAJOR,
     .halves = true,
     .rectangle = true},
};

enum {
    TRANSFORMS = sizeof representative / sizeof representative[0]
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

/* The kernels of a transform, as gpu_transform.c builds them, with those for less aligned pointers. */
static void add_transform(nvrtc_list *list, const fbfft_desc *d, bool halves, bool rectangle, bool fp32_weights,
                          const cf_gpu_properties *properties, int allowed) {
    cf_fft_problem problem;
    cf_fft_passes passes;
    char text[192], kind[96], name[256];
    assert_int_equal(cf_fft_resolve(d, &problem), CONV_FFT_SUCCESS);
    if (halves)
        problem.transform.spectrum.dtype = d->dtype == CONV_FFT_FP32 ? CONV_FFT_FP16 : d->dtype;
    problem.transform.tensor.fp32_bias = fp32_weights;
    if (fp32_weights && d->kind == FBFFT_R2C)
        problem.transform.tensor.dtype = CONV_FFT_FP32;
    problem.transform.spectrum.scale_rows = problem.transform.spectrum.rows_per_sample; /* as x and y have it */
    assert_int_equal(cf_fft_passes_of(&problem, properties, &passes), CONV_FFT_SUCCESS);
    assert_int_equal(passes.pass[0].tensor_core, halves && !rectangle);
    fft_describe(d, text, sizeof text);
    for (int p = 0; p < passes.count; ++p) {
        const cf_fft_pass *const pass = &passes.pass[p];
        const bool two = pass->plain || pass->tile[0].vector_width > 1 || pass->tile[0].prefetched > 0;
        for (int v = 0; v < (two ? 2 : 1); ++v) {
            snprintf(kind, sizeof kind, "%s, type %d, layout %d%s",
                     pass->plain               ? "plain"
                     : !pass->tensor_core      ? "tile"
                     : pass->tile[0].bin_tiles ? "dense matrix"
                     : d->kind == FBFFT_R2C    ? "matrix forward"
                                               : "matrix inverse",
                     (int)d->dtype, (int)d->layout, fp32_weights ? ", FP32 weights" : "");
            snprintf(name, sizeof name, "%s, pass %d%s%s%s", text, p, halves ? ", 16-bit spectrum" : "",
                     fp32_weights ? ", FP32 weights" : "", v ? ", unaligned" : "");
            nvrtc_kernel *const c = nvrtc_list_add(list, properties, allowed, kind, name);
            assert_int_equal(pass->plain         ? cf_fft_real_source(&pass->real[v], &c->source)
                             : pass->tensor_core ? cf_fft_tensor_core_source(&pass->tile[v], &c->source)
                                                 : cf_fft_shared_source(&pass->tile[v], &c->source),
                             CONV_FFT_SUCCESS);
        }
    }
}

/* Every `step`-th transform and direction, so that all lists together compile in minutes. An odd step covers both
 * directions. */
static void add_for(nvrtc_list *list, const char *file, int step) {
    const cf_gpu_properties properties = gpu_properties_of(file);
    for (int i = 0; i < 2 * TRANSFORMS; i += step) {
        const fbfft_desc d = problem_of(i / 2, i % 2);
        add_transform(list, &d, representative[i / 2].halves, representative[i / 2].rectangle,
                      representative[i / 2].fp32_weights, &properties, representative[i / 2].spills);
    }
}

/* Arithmetic SPLIT: kernels of an entry of 2^log[0] x 2^log[1] x 2^log[2] points, of which the last axis of real
 * signals has twice as many. */
static void add_split_plan(nvrtc_list *list, const cf_gpu_properties *properties, fbfft_kind kind, const int log[3],
                           int first, int last) {
    const fbfft_desc d = split_desc_of(kind, log);
    cf_fft_problem problem;
    cf_c2c_split_config config;
    assert_int_equal(cf_fft_resolve(&d, &problem), CONV_FFT_SUCCESS);
    assert_int_equal(cf_c2c_split_configure(&problem, properties, &config), CONV_FFT_SUCCESS);
    for (int i = first; i <= last; ++i) {
        char name[64];
        snprintf(name, sizeof name, "kind %d of 2^%d, 2^%d, 2^%d by split, kernel %d", (int)kind, log[0], log[1],
                 log[2], i);
        const int spills = kind == FBFFT_C2R && log[2] == 12 ? 8 : 0;
        nvrtc_kernel *const c = nvrtc_list_add(list, properties, spills, "split", name);
        assert_int_equal(cf_c2c_split_source(&config, i, &c->source), CONV_FFT_SUCCESS);
    }
}
/* Both directions of every length of rows and columns, the kernels of long rows, and those of reals. */
static void add_split(nvrtc_list *list, const char *file) {
    const cf_gpu_properties properties = gpu_properties_of(file);
    for (int kind = FBFFT_R2C; kind <= FBFFT_C2C_INVERSE; ++kind) {
        for (int log = 8; log <= 14; ++log)
            add_split_plan(list, &properties, (fbfft_kind)kind, (const int[3]){0, 0, log}, 0, 0);
        for (int log = 8; log <= 12 && kind >= FBFFT_C2C_FORWARD; ++log) {
            add_split_plan(list, &properties, (fbfft_kind)kind, (const int[3]){0, log, 8}, 1, 1);
            add_split_plan(list, &properties, (fbfft_kind)kind, (const int[3]){0, 0, 2 * log}, 0, 0);
        }
        add_split_plan(list, &properties, (fbfft_kind)kind, (const int[3]){0, 0, 15}, 0, 0);
        for (int log = 25; log <= 27 && kind >= FBFFT_C2C_FORWARD; ++log)
            add_split_plan(list, &properties, (fbfft_kind)kind, (const int[3]){0, 0, log}, 0, 1);
    }
    add_split_plan(list, &properties, FBFFT_R2C, (const int[3]){9, 10, 11}, 3, 3);
    add_split_plan(list, &properties, FBFFT_R2C, (const int[3]){0, 0, 27}, 3, 3);
    add_split_plan(list, &properties, FBFFT_C2R, (const int[3]){9, 10, 11}, 0, 0);
    add_split_plan(list, &properties, FBFFT_C2R, (const int[3]){0, 0, 27}, 0, 0);
}

static void add_kernels(nvrtc_list *list) {
    add_split(list, "data/gpus/h200.txt");
    add_split(list, "data/gpus/a100.txt");
    add_for(list, "data/gpus/h200.txt", 1);
    add_for(list, "data/gpus/a100.txt", 3);
}

int main(void) { return nvrtc_list_run("compile_fft", add_kernels); }
