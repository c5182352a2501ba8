/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms from FP16 to FP16 on tensor cores against the definition: every length, planes, both directions; planes do
 * not mix; range, round trips, streams and threads. */
#include "support/c2c_fp16_cases.h"
#include "support/gpu.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void lines(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    fft_list list = {0};
    half_add_lines(&list, 1, 20);
    fft_list_check(&list, "gpu_half_lines", gpu, context);
    conv_fft_context_destroy(context);
}

/* One after the other: the definition in double takes much memory and time. */
static void long_lines(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    fft_list list = {0};
    half_add_lines(&list, 21, 24);
    fft_list_check(&list, "gpu_half_long_lines", gpu, context);
    conv_fft_context_destroy(context);
}

static void planes(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    fft_list list = {0};
    half_add_planes(&list, 18);
    fft_list_check(&list, "gpu_half_planes", gpu, context);
    conv_fft_context_destroy(context);
}

/* One of each kind of kernel, and both kinds of FFT stages. */
static const int shapes[][3] = {{1, 1, 0},  {1, 3, 0},  {1, 4, 0},  {1, 5, 0},  {1, 7, 0},  {1, 8, 0}, {1, 9, 0},
                                {1, 10, 0}, {1, 12, 0}, {1, 14, 0}, {1, 15, 0}, {1, 16, 0}, {2, 5, 5}, {2, 6, 9}};

static void each(void **state, const char *name, fft_rule *rule, int most, int last_kind) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    fft_rule_list list = {.names = {.name = name}, .gpu = gpu, .context = context, .rule = rule};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; ++i)
        for (int kind = FBFFT_C2C_FORWARD; kind <= last_kind; ++kind) {
            const int *const s = shapes[i];
            if (s[1] + s[2] > most)
                continue;
            const fbfft_desc d = half_desc(s[0], (fbfft_kind)kind, s[1], s[2]);
            fft_rule_list_add(&list, &d);
        }
    fft_rule_list_check(&list);
    conv_fft_context_destroy(context);
}

static void isolation(void **state) { each(state, "gpu_half_isolation", fft_check_isolation, 16, FBFFT_C2C_INVERSE); }
static void inverse_of_forward(void **state) {
    each(state, "gpu_half_there_and_back", fft_check_there_and_back, 16, FBFFT_C2C_FORWARD);
}
static void energy_and_impulse(void **state) {
    each(state, "gpu_half_energy", fft_check_energy_and_impulse, 16, FBFFT_C2C_FORWARD);
}
static void range(void **state) { each(state, "gpu_half_range", half_check_range, 16, FBFFT_C2C_INVERSE); }
static void streams_and_threads(void **state) {
    each(state, "gpu_half_threads", fft_check_threads, 10, FBFFT_C2C_FORWARD);
}

static void alignment(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    const fbfft_desc d = half_desc(1, FBFFT_C2C_FORWARD, 4, 0);
    half_check_alignment(context, &d, "FP16");
    conv_fft_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_GPU(lines),     WITH_GPU(long_lines),         WITH_GPU(planes),
        WITH_GPU(isolation), WITH_GPU(inverse_of_forward), WITH_GPU(energy_and_impulse),
        WITH_GPU(range),     WITH_GPU(alignment),          WITH_GPU(streams_and_threads)};
    gpu_read_filters();
    return gpu_exit_status(cmocka_run_group_tests(tests, NULL, NULL));
}
