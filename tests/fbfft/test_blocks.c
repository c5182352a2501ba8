/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks that the planner chooses for frequency-major planes in shared memory. No GPU is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fbfft/plan/kernel_split.h"
#include "support/fft_cases.h"
#include "support/kernel_cases.h"

typedef struct planes_case {
    int basis[2], channels;
    fbfft_kind kind;
    conv_fft_dtype signal, spectrum;
    fbfft_order order;
    int planes, threads, blocks;
    int prefetched; /* rows of bins that are copied ahead; 0: none */
    int rows;       /* of the spectrum; 0: not known */
} planes_case;

static cf_fft_passes passes_of(const planes_case *c, const cf_gpu_properties *gpu) {
    fbfft_desc d = fft_desc(2, c->kind, 1, 0);
    cf_fft_problem problem;
    cf_fft_passes passes;
    for (int a = 0; a < 2; ++a)
        d.basis[a] = c->basis[a];
    d.channels = c->channels;
    d.order = c->order;
    d.dtype = c->signal;
    assert_int_equal(cf_fft_resolve(&d, &problem), CONV_FFT_SUCCESS);
    problem.transform.spectrum.dtype = c->spectrum;
    problem.transform.spectrum.rows = c->rows;
    assert_int_equal(cf_fft_passes_of(&problem, gpu, &passes), CONV_FFT_SUCCESS);
    return passes;
}

#define MAJOR FBFFT_FREQUENCY_MAJOR
#define FP32 CONV_FFT_FP32, CONV_FFT_FP32
#define FP16 CONV_FFT_FP16, CONV_FFT_FP16
#define BF16 CONV_FFT_BF16, CONV_FFT_BF16

static void blocks_that_store(void **unused) {
    static const planes_case cases[] = {
        {{32, 32}, 16, FBFFT_R2C, FP32, MAJOR, 8, 128, 5, 0, 0},
        {{64, 64}, 16, FBFFT_R2C, FP32, MAJOR, 8, 256, 1, 0, 0},
        {{36, 64}, 16, FBFFT_R2C, FP32, MAJOR, 8, 128, 3, 0, 0},
        {{40, 64}, 16, FBFFT_R2C, FP32, MAJOR, 8, 128, 2, 0, 0},
        {{64, 36}, 16, FBFFT_R2C, FP32, MAJOR, 4, 128, 3, 0, 0},
        {{63, 63}, 16, FBFFT_R2C, FP32, MAJOR, 4, 128, 3, 0, 0},
        {{72, 72}, 16, FBFFT_R2C, FP32, MAJOR, 4, 384, 2, 0, 0},
        {{36, 64}, 16, FBFFT_R2C, FP16, MAJOR, 8, 128, 3, 0, 0},
        {{40, 40}, 16, FBFFT_R2C, BF16, MAJOR, 8, 160, 4, 0, 0},
    };
    (void)unused;
    const cf_gpu_properties h200 = gpu_properties_of("data/gpus/h200.txt");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const cf_fft_passes passes = passes_of(&cases[i], &h200);
        const cf_shared_fft_config *tile = &passes.pass[0].tile[0];
        assert_int_equal(tile->planes, cases[i].planes);
        assert_int_equal(tile->threads, cases[i].threads);
        assert_int_equal(tile->blocks, cases[i].blocks);
        assert_int_equal(tile->prefetched, 0);
    }
}

/* The variant for spectra that do not begin at multiples of 16 bytes never copies ahead. */
static void blocks_that_load(void **unused) {
    static const planes_case cases[] = {
        {{64, 64}, 16, FBFFT_C2R, FP32, MAJOR, 8, 256, 1, 44, 0},
        {{36, 64}, 16, FBFFT_C2R, FP32, MAJOR, 16, 256, 1, 36, 0},
        {{64, 64}, 16, FBFFT_C2R, FP32, MAJOR, 8, 256, 1, 44, 67},
        {{64, 64}, 16, FBFFT_C2R, FP32, MAJOR, 8, 256, 1, 0, 66}, /* a block on each multiprocessor has one group */
        {{35, 64}, 16, FBFFT_C2R, FP32, MAJOR, 16, 256, 1, 34, 0},
        {{48, 48}, 2, FBFFT_C2R, CONV_FFT_BF16, CONV_FFT_FP32, MAJOR, 16, 384, 1, 22, 0},
        {{48, 48}, 4, FBFFT_C2R, FP16, MAJOR, 16, 384, 1, 48, 0},
        {{48, 48}, 6, FBFFT_C2R, FP16, MAJOR, 16, 384, 1, 0, 0},
        {{36, 64}, 15, FBFFT_C2R, FP32, MAJOR, 16, 256, 1, 0, 0},
        {{40, 40}, 16, FBFFT_C2R, FP32, MAJOR, 16, 320, 2, 0, 0},
        {{36, 63}, 16, FBFFT_C2R, FP32, MAJOR, 16, 256, 1, 0, 0},
        {{36, 64}, 16, FBFFT_C2R, CONV_FFT_FP64, CONV_FFT_FP64, MAJOR, 0, 0, 0, 0, 0},
        {{36, 64}, 16, FBFFT_C2R, FP32, FBFFT_NATURAL, 0, 0, 0, 0, 0},
    };
    (void)unused;
    const cf_gpu_properties h200 = gpu_properties_of("data/gpus/h200.txt");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const cf_fft_passes passes = passes_of(&cases[i], &h200);
        const cf_shared_fft_config *tile = passes.pass[0].tile;
        assert_int_equal(tile[0].prefetched, cases[i].prefetched);
        assert_int_equal(tile[0].grid, cases[i].prefetched ? h200.multiprocessors : 0);
        assert_int_equal(tile[1].prefetched, 0);
        assert_int_equal(tile[1].grid, 0);
        if (cases[i].planes == 0) /* of these only that nothing is copied ahead counts */
            continue;
        for (int variant = 0; variant < 2; ++variant) {
            assert_int_equal(tile[variant].planes, cases[i].planes);
            assert_int_equal(tile[variant].threads, cases[i].threads);
            assert_int_equal(tile[variant].blocks, cases[i].blocks);
            assert_true(tile[variant].blocks * tile[variant].shared <= h200.shared_per_multiprocessor);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_that_store),
        cmocka_unit_test(blocks_that_load),
    };
    return cmocka_run_group_tests_name("fbfft blocks", tests, NULL, NULL);
}
