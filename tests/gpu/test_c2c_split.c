/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic SPLIT of fbfft.h: every length against the definition, beside cuFFT in FP32; planes do not mix; range,
 * round trips, streams and threads. */
#include "cuda/driver/memory.h"
#include "cuda/libs/cufft.h"
#include "support/c2c_fp16_cases.h"
#include "support/gpu.h"
#include "support/selection.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void lines(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    fft_list list = {0};
    split_add_lines(&list);
    fft_list_check(&list, "gpu_split_lines", gpu, context);
    conv_fft_context_destroy(context);
}

static void axes(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    fft_list list = {0};
    split_add_axes(&list, 25);
    fft_list_check(&list, "gpu_split_axes", gpu, context);
    conv_fft_context_destroy(context);
}

/* Those of the random problems that ask for arithmetic SPLIT. */
static void random_lines(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    fft_list list = {0};
    for (uint64_t seed = test_seed(); list.count < 24; ++seed) {
        const fft_case c = fft_random_case(seed, 1 << 17);
        if (c.desc.arithmetic != FBFFT_ARITHMETIC_SPLIT)
            continue;
        fft_case *const added = fft_list_add(&list, c.desc, c.batch);
        added->must = added->random = true;
        added->seed = seed;
    }
    fft_list_check(&list, "gpu_split_random", gpu, context);
    conv_fft_context_destroy(context);
}

static bool is_real(int kind) { return kind == FBFFT_R2C || kind == FBFFT_C2R; }
static bool is_inverse(int kind) { return kind == FBFFT_C2R || kind == FBFFT_C2C_INVERSE; }

static void each(void **state, const char *name, fft_rule *rule, bool inverses) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    fft_rule_list list = {.names = {.name = name}, .gpu = gpu, .context = context, .rule = rule};
    static const int several[][3] = {{0, 8, 9}, {0, 0, 17}};
    for (int kind = FBFFT_R2C; kind <= FBFFT_C2C_INVERSE; ++kind) {
        if (is_inverse(kind) && !inverses)
            continue;
        for (int log = 8; log <= 14; ++log) {
            const fbfft_desc d = split_desc((fbfft_kind)kind, log);
            fft_rule_list_add(&list, &d);
        }
        for (int i = 0; i < 2 && rule != fft_check_threads; ++i) { /* threads take many entries */
            const fbfft_desc d = split_desc_of((fbfft_kind)kind, several[i]);
            fft_rule_list_add(&list, &d);
        }
    }
    fft_rule_list_check(&list);
    conv_fft_context_destroy(context);
}

static void isolation(void **state) { each(state, "gpu_split_isolation", fft_check_isolation, true); }
static void inverse_of_forward(void **state) {
    each(state, "gpu_split_there_and_back", fft_check_there_and_back, false);
}
static void energy_and_impulse(void **state) { each(state, "gpu_split_energy", fft_check_energy_and_impulse, false); }
static void linearity(void **state) { each(state, "gpu_split_linearity", fft_check_linearity, true); }
static void streams_and_threads(void **state) { each(state, "gpu_split_threads", fft_check_threads, false); }

static double error_of(const fft_bench *b) {
    fft_errors errors = {0};
    for (int64_t p = 0; p < b->run.batch; ++p)
        fft_compare_plane(&b->shape, b->run.batch, p, b->run.in, b->run.out, &errors);
    return fft_relative_error(&errors);
}

/* Numbers near the largest and the smallest normal numbers of FP32 lose no accuracy. */
static void check_range(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc) {
    static const float magnitudes[] = {1e33f, 1e-30f};
    for (int i = 0; i < 2; ++i) {
        fft_bench b = fft_bench_create(gpu, context, desc, 2);
        for (int64_t k = 0; k < b.run.in_bytes / 4; ++k)
            ((float *)b.in)[k] *= magnitudes[i];
        fft_bench_run(&b);
        const double error = error_of(&b);
        if (!(error <= 4e-7))
            fail_msg("%lld points times %g: error %g", (long long)desc->basis[0], (double)magnitudes[i], error);
        fft_bench_destroy(&b);
    }
}
static void range(void **state) { each(state, "gpu_split_range", check_range, true); }

/* ----------------------------------------------------------------------------------------------------- beside cuFFT */

enum {
    R2C = 0x2a,
    C2C = 0x29
};

/* Results of cuFFT replace those of b. */
static void run_cufft(const cf_gpu *gpu, void *library, const fft_bench *b, int kind) {
    const bool real = is_real(kind);
    int (*plan)(int *, int, int *, int *, int, int, int *, int, int, int, int), (*destroy)(int);
    int (*run)(int, void *, void *, int); /* that of reals has no direction */
    *(void **)&plan = dlsym(library, "cufftPlanMany");
    *(void **)&run = dlsym(library, real ? "cufftExecR2C" : "cufftExecC2C");
    *(void **)&destroy = dlsym(library, "cufftDestroy");
    const size_t bytes = (size_t)b->run.in_bytes, out_bytes = (size_t)b->run.out_bytes;
    void *in, *out;
    int handle;
    assert_true(plan && run && destroy);
    assert_int_equal(cf_gpu_allocate(gpu, bytes, &in), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_allocate(gpu, out_bytes, &out), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_upload(gpu, in, b->in, bytes, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_enter(gpu), CONV_FFT_SUCCESS);
    int n[3], rank = 0;
    for (int x = 0; x < 3; ++x)
        if (b->shape.basis[x] > 1)
            n[rank++] = (int)b->shape.basis[x];
    assert_int_equal(plan(&handle, rank, n, NULL, 1, 0, NULL, 1, 0, real ? R2C : C2C, (int)b->run.batch), 0);
    assert_int_equal(run(handle, in, out, is_inverse(kind) ? 1 : -1), 0);
    assert_int_equal(cf_gpu_synchronize(gpu, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(destroy(handle), 0);
    cf_gpu_leave(gpu);
    assert_int_equal(cf_gpu_download(gpu, b->run.out, out, out_bytes, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_synchronize(gpu, NULL), CONV_FFT_SUCCESS);
    cf_gpu_free(gpu, in);
    cf_gpu_free(gpu, out);
}

/* Of large transforms one direction, because their definition takes seconds. The inverse of reals is compared with
 * cuFFT's error forward: its own is that of Hermitian spectra only, and random ones are not. */
static void check_beside_cufft(const cf_gpu *gpu, conv_fft_context *context, void *library, const int log[3],
                               int64_t batch) {
    const bool large = log[0] + log[1] + log[2] > 19;
    double theirs = 0;
    for (int kind = FBFFT_R2C; kind <= FBFFT_C2C_INVERSE; ++kind) {
        if (large && is_inverse(kind) == is_real(kind))
            continue;
        fbfft_desc d = split_desc_of((fbfft_kind)kind, log);
        d.scale = 1;
        fft_bench b = fft_bench_create(gpu, context, &d, batch);
        fft_bench_run(&b);
        const double ours = error_of(&b);
        if (kind != FBFFT_C2R) {
            run_cufft(gpu, library, &b, kind);
            theirs = error_of(&b);
        }
        print_message("2^%d x 2^%d x 2^%d%s points: error %.2e, cuFFT %.2e\n", log[0], log[1], log[2],
                      is_real(kind) ? " x 2 real" : "", ours, theirs);
        assert_true(theirs > 1e-9 && theirs < 1e-6);
        assert_true(ours <= 4 * theirs);
        fft_bench_destroy(&b);
    }
}

/* The error is at most four times cuFFT's. */
static void beside_cufft(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    const cf_library *const found = cf_cufft_library(gpu->cufft);
    void *const library = found->usable ? dlopen(found->file, RTLD_NOW) : NULL;
    if (!library) {
        print_message("cuFFT is missing: %s\n", found->problem);
        skip();
    }
    static const int several[][3] = {{0, 9, 10}, {0, 12, 8}, {8, 8, 8},  {0, 0, 15},
                                     {0, 0, 16}, {0, 0, 20}, {0, 0, 24}, {0, 0, 25}};
    for (int log = 8; log <= 14; ++log)
        check_beside_cufft(gpu, context, library, (const int[3]){0, 0, log}, 8);
    for (size_t i = 0; i < sizeof several / sizeof several[0]; ++i)
        check_beside_cufft(gpu, context, library, several[i], 1);
    conv_fft_context_destroy(context);
}

static void alignment(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    const fbfft_desc d = split_desc(FBFFT_C2C_FORWARD, 8);
    half_check_alignment(context, &d, "FBFFT_ARITHMETIC_SPLIT (2)");
    conv_fft_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {WITH_GPU(lines),
                                       WITH_GPU(axes),
                                       WITH_GPU(random_lines),
                                       WITH_GPU(isolation),
                                       WITH_GPU(inverse_of_forward),
                                       WITH_GPU(linearity),
                                       WITH_GPU(range),
                                       WITH_GPU(energy_and_impulse),
                                       WITH_GPU(alignment),
                                       WITH_GPU(beside_cufft),
                                       WITH_GPU(streams_and_threads)};
    gpu_read_filters();
    return gpu_exit_status(cmocka_run_group_tests(tests, NULL, NULL));
}
