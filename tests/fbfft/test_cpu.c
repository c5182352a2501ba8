/* SPDX-License-Identifier: Apache-2.0 */
/* fbfft.h on the CPU against the definition: every basis, kind, type, layout and window, and random combinations of
 * them; then the other promises of fbfft.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conv/plan/context.h"
#include "support/compare.h"
#include "support/cpu_fft_check.h"
#include "support/fft_cases.h"
#include "support/fft_rules.h"
#include "support/layer.h"

static conv_fft_context *context;

static const fbfft_kind kinds[] = {FBFFT_R2C, FBFFT_C2R, FBFFT_C2C_FORWARD, FBFFT_C2C_INVERSE};

typedef void (*family)(fft_list *, fbfft_kind, conv_fft_dtype);

static void check_family(family add, const char *what, bool all_types) {
    fft_list list = {0};
    for (int k = 0; k < 4; ++k)
        for (int dtype = CONV_FFT_FP32; dtype <= CONV_FFT_FP64; ++dtype)
            if (all_types || dtype == CONV_FFT_FP32 || dtype == CONV_FFT_FP64)
                add(&list, kinds[k], (conv_fft_dtype)dtype);
    fft_list_check(&list, what, NULL, context);
}

static void lines(void **state) {
    (void)state;
    check_family(fft_add_lines, "lines", false);
}

static void long_lines(void **state) {
    (void)state;
    check_family(fft_add_long_lines, "long lines", true);
}

static void planes(void **state) {
    (void)state;
    check_family(fft_add_planes, "planes", false);
}

static void volumes(void **state) {
    (void)state;
    check_family(fft_add_volumes, "volumes", false);
}

static void layouts(void **state) {
    (void)state;
    check_family(fft_add_layouts, "layouts", true);
}

static void windows(void **state) {
    (void)state;
    check_family(fft_add_windows, "windows", true);
}

static void random_cases(void **state) {
    (void)state;
    fft_list list = {.one_by_one = true};
    fft_add_random(&list, environment_number("CONV_FFT_TEST_COUNT", TEST_AMOUNT(2000, 400)), 4096);
    fft_list_check(&list, "random", NULL, context);
}

/* Random cases for the other sets of kernels that this CPU can run. */
static void fewer_random_cases(void) {
    fft_list list = {0};
    fft_add_random(&list, 100, 1024);
    fft_add_lines(&list, FBFFT_C2C_FORWARD, CONV_FFT_FP32);
    fft_add_lines(&list, FBFFT_C2C_INVERSE, CONV_FFT_FP64);
    fft_list_check(&list, ((cf_cpu_device *)context->device)->kernels->name, NULL, context);
}

static void all_kernels(void **state) {
    (void)state;
    with_all_kernels((cf_cpu_device *)context->device, fewer_random_cases);
}

/* Enough planes for both threads and for stores past the caches; and a plane that is too large for full units. */
static void large(void **state) {
    (void)state;
    fft_list list = {.one_by_one = true};
    for (int k = 0; k < 4; ++k)
        for (int order = 0; order < 3; ++order) {
            fbfft_desc d = fft_desc(2, kinds[k], 32, 0);
            d.channels = 16;
            d.order = (fbfft_order)order;
            d.layout = (conv_fft_layout)(order % 2);
            fft_list_add(&list, d, 70);
        }
    for (int k = 0; k < 4; ++k) {
        fbfft_desc d = fft_desc(3, kinds[k], 48, 0);
        d.basis[0] = 64;
        d.extent[1] = d.extent[2] = 2;
        fft_list_add(&list, d, 5);
    }
    fft_list_check(&list, "large", NULL, context);
}

/* ---------------------------------------------------------------------------------------------------------- rules */

static fbfft_desc with(fbfft_desc d, int64_t channels, conv_fft_layout layout, fbfft_order order,
                       conv_fft_dtype dtype) {
    d.channels = channels;
    d.layout = layout;
    d.order = order;
    d.dtype = dtype;
    d.scale = order == FBFFT_NATURAL ? 1 : 0.5;
    return d;
}

/* A few transforms of each kind. */
static void each(void (*check)(const cf_gpu *, conv_fft_context *, const fbfft_desc *), fbfft_kind kind, bool half) {
    const fbfft_desc descs[] = {
        fft_desc(1, kind, 16, 0),
        fft_desc(1, kind, 105, 77),
        with(fft_desc(1, kind, 1000, 0), 3, CONV_FFT_CHANNELS_LAST, FBFFT_FREQUENCY_MAJOR, CONV_FFT_FP64),
        with(fft_desc(2, kind, 12, 5), 5, CONV_FFT_CHANNELS_FIRST, FBFFT_FREQUENCY_MAJOR, CONV_FFT_FP32),
        with(fft_desc(2, kind, 15, 0), 16, CONV_FFT_CHANNELS_LAST, FBFFT_TRANSPOSED, CONV_FFT_FP32),
        with(fft_desc(3, kind, 6, 0), 2, CONV_FFT_CHANNELS_FIRST, FBFFT_TRANSPOSED, CONV_FFT_FP64),
        with(fft_desc(2, kind, 16, 9), 4, CONV_FFT_CHANNELS_LAST, FBFFT_NATURAL, CONV_FFT_FP16),
        with(fft_desc(3, kind, 8, 0), 1, CONV_FFT_CHANNELS_FIRST, FBFFT_FREQUENCY_MAJOR, CONV_FFT_BF16),
    };
    for (size_t i = 0; i < sizeof descs / sizeof descs[0] - (half ? 0 : 2); ++i)
        check(NULL, context, &descs[i]);
}

static void isolation(void **state) {
    (void)state;
    for (int k = 0; k < 4; ++k)
        each(fft_check_isolation, kinds[k], true);
}

static void linearity(void **state) {
    (void)state;
    for (int k = 0; k < 4; ++k)
        each(fft_check_linearity, kinds[k], false);
}

static void energy_and_impulse(void **state) {
    (void)state;
    each(fft_check_energy_and_impulse, FBFFT_R2C, true);
    each(fft_check_energy_and_impulse, FBFFT_C2C_FORWARD, true);
}

static void inverse_of_forward(void **state) {
    (void)state;
    each(fft_check_there_and_back, FBFFT_R2C, true);
    each(fft_check_there_and_back, FBFFT_C2C_FORWARD, true);
}

static void threads(void **state) {
    (void)state;
    const fbfft_desc real = fft_desc(2, FBFFT_R2C, 16, 0);
    const fbfft_desc complex_one =
        with(fft_desc(1, FBFFT_C2C_INVERSE, 60, 50), 3, CONV_FFT_CHANNELS_LAST, FBFFT_FREQUENCY_MAJOR, CONV_FFT_FP32);
    fft_check_threads(NULL, context, &real);
    fft_check_threads(NULL, context, &complex_one);
}

static void arguments(void **state) {
    (void)state;
    fft_check_arguments(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(planes),
        cmocka_unit_test(volumes),
        cmocka_unit_test(layouts),
        cmocka_unit_test(windows),
        cmocka_unit_test(random_cases),
        cmocka_unit_test(all_kernels),
        cmocka_unit_test(large),
        cmocka_unit_test(isolation),
        cmocka_unit_test(linearity),
        cmocka_unit_test(energy_and_impulse),
        cmocka_unit_test(inverse_of_forward),
        cmocka_unit_test(threads),
        cmocka_unit_test(arguments),
    };
    context = test_context(2);
    const int failures = cmocka_run_group_tests_name("fbfft on the CPU", tests, NULL, NULL);
    conv_fft_context_destroy(context);
    return failures;
}
