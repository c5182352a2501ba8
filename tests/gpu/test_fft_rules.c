/* SPDX-License-Identifier: Apache-2.0 */
/* The other promises of fbfft.h on a GPU: planes do not mix, linearity, energy, impulses, round trips, bad arguments,
 * many streams and threads. */
#include "support/case_list.h"
#include "support/fft_rules.h"
#include "support/gpu.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Every kind of kernel: one and several lanes per row, few and many rows per block, whole and padded windows, all
 * layouts. */
static const struct {
    int rank;
    int64_t basis, extent, channels;
    conv_fft_layout layout;
    fbfft_order order;
    conv_fft_dtype dtype;
} shapes[] = {
    {1, 8, 0, 1, CONV_FFT_CHANNELS_FIRST, FBFFT_NATURAL, CONV_FFT_FP32},
    {1, 16, 0, 1, CONV_FFT_CHANNELS_FIRST, FBFFT_NATURAL, CONV_FFT_FP32},
    {1, 32, 19, 1, CONV_FFT_CHANNELS_FIRST, FBFFT_NATURAL, CONV_FFT_FP32},
    {1, 64, 0, 1, CONV_FFT_CHANNELS_FIRST, FBFFT_NATURAL, CONV_FFT_FP32},
    {1, 256, 0, 1, CONV_FFT_CHANNELS_FIRST, FBFFT_NATURAL, CONV_FFT_FP32},
    {1, 128, 100, 1, CONV_FFT_CHANNELS_FIRST, FBFFT_NATURAL, CONV_FFT_FP32},
    {2, 8, 0, 1, CONV_FFT_CHANNELS_FIRST, FBFFT_NATURAL, CONV_FFT_FP32},
    {2, 16, 5, 1, CONV_FFT_CHANNELS_FIRST, FBFFT_NATURAL, CONV_FFT_FP32},
    {2, 32, 0, 1, CONV_FFT_CHANNELS_FIRST, FBFFT_NATURAL, CONV_FFT_FP32},
    {2, 64, 0, 1, CONV_FFT_CHANNELS_FIRST, FBFFT_NATURAL, CONV_FFT_FP32},
    {2, 64, 11, 1, CONV_FFT_CHANNELS_FIRST, FBFFT_NATURAL, CONV_FFT_FP32},
    {2, 128, 0, 1, CONV_FFT_CHANNELS_FIRST, FBFFT_NATURAL, CONV_FFT_FP32},
    {1, 105, 77, 3, CONV_FFT_CHANNELS_FIRST, FBFFT_NATURAL, CONV_FFT_FP32},
    {1, 1000, 0, 3, CONV_FFT_CHANNELS_LAST, FBFFT_FREQUENCY_MAJOR, CONV_FFT_FP64},
    {1, 16384, 0, 1, CONV_FFT_CHANNELS_FIRST, FBFFT_NATURAL, CONV_FFT_FP32},
    {2, 12, 5, 5, CONV_FFT_CHANNELS_FIRST, FBFFT_FREQUENCY_MAJOR, CONV_FFT_FP32},
    {2, 15, 0, 16, CONV_FFT_CHANNELS_LAST, FBFFT_TRANSPOSED, CONV_FFT_FP32},
    {2, 16, 9, 4, CONV_FFT_CHANNELS_LAST, FBFFT_NATURAL, CONV_FFT_FP16},
    {3, 6, 0, 2, CONV_FFT_CHANNELS_FIRST, FBFFT_TRANSPOSED, CONV_FFT_FP64},
    {3, 8, 0, 1, CONV_FFT_CHANNELS_FIRST, FBFFT_FREQUENCY_MAJOR, CONV_FFT_BF16},
};
enum {
    SHAPES = sizeof shapes / sizeof shapes[0]
};

static fbfft_desc shape_desc(int i, fbfft_kind kind) {
    fbfft_desc d = fft_desc(shapes[i].rank, kind, shapes[i].basis, shapes[i].extent);
    d.channels = shapes[i].channels;
    d.layout = shapes[i].layout;
    d.order = shapes[i].order;
    d.dtype = shapes[i].dtype;
    return d;
}

/* Check all shapes for some kinds. None may be refused. 16-bit signals are included only if `half`. */
static void each(void **state, const char *name, fft_rule *rule, int first_kind, int kind_step, bool half) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    fft_rule_list list = {.names = {.name = name}, .gpu = gpu, .context = context, .rule = rule};
    for (int kind = first_kind; kind < 4; kind += kind_step)
        for (int i = 0; i < SHAPES; ++i) {
            const fbfft_desc d = shape_desc(i, (fbfft_kind)kind);
            if (half || (d.dtype != CONV_FFT_FP16 && d.dtype != CONV_FFT_BF16))
                fft_rule_list_add(&list, &d);
        }
    fft_rule_list_check(&list);
    conv_fft_context_destroy(context);
}

static void isolation(void **state) { each(state, "gpu_fbfft_isolation", fft_check_isolation, 0, 1, true); }
static void linearity(void **state) { each(state, "gpu_fbfft_linearity", fft_check_linearity, 0, 1, false); }
static void energy_and_impulse(void **state) {
    each(state, "gpu_fbfft_energy", fft_check_energy_and_impulse, FBFFT_R2C, FBFFT_C2C_FORWARD, true);
}
static void inverse_of_forward(void **state) {
    each(state, "gpu_fbfft_there_and_back", fft_check_there_and_back, FBFFT_R2C, FBFFT_C2C_FORWARD, true);
}
static void streams_and_threads(void **state) {
    each(state, "gpu_fbfft_threads", fft_check_threads, FBFFT_R2C, FBFFT_C2C_INVERSE, true);
}

static void arguments(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    fft_check_arguments(context);
    conv_fft_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_GPU(isolation),          WITH_GPU(linearity), WITH_GPU(energy_and_impulse),
        WITH_GPU(inverse_of_forward), WITH_GPU(arguments), WITH_GPU(streams_and_threads),
    };
    gpu_read_filters();
    return gpu_exit_status(cmocka_run_group_tests_name("fbfft on a GPU, rules", tests, NULL, NULL));
}
