/* SPDX-License-Identifier: Apache-2.0 */
/* Which planes with channels in place have one kernel for both gradients, and how it is divided into blocks; no GPU is
 * needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "conv/toeplitz/toeplitz.h"
#include "support/kernel_cases.h"
#include "support/random_problems.h"

static bool make(const char *line, cf_layer *layer) {
    conv_fft_problem p;
    return conv_fft_problem_parse(line, &p, NULL, 0) == CONV_FFT_SUCCESS &&
           cf_layer_make(&p, layer) == CONV_FFT_SUCCESS;
}

/* Their rows are in shared memory, and sums of gw and of the gradient of the bias. */
static void check_both_in_place(const char *line, const cf_layer *layer, const cf_toeplitz_both *both,
                                const cf_gpu_properties *properties) {
    const cf_toeplitz_config *d = &both->data, *w = &both->weights;
    const int64_t columns = layer->axis[2].input, outputs = 32 * d->tiles * d->parts, of_row = 3 * 16;
    const int warps = w->quads / 2 * w->parts, pairs = (w->kernel[1] + 1) / 2;
    const int64_t gy = outputs - 2 + 4 * d->steps, x = outputs - 1 + 2 * pairs,
                  bytes = of_row * d->batch * (d->buffers * (gy + x) + 2 * outputs) +
                          4ll * warps * (w->kernel[0] * pairs * 16 + 8);
    const bool good = d->aligned && w->aligned && layer->axis[1].input == layer->axis[1].output &&
                      columns == layer->axis[2].output && columns <= outputs && 16 * w->tiles * w->parts == outputs &&
                      d->quads == 4 && w->quads == 4 && d->batch == w->batch && d->buffers == w->buffers &&
                      d->column_pad + outputs <= gy + 1 && d->columns[0] == columns && d->columns[1] == columns &&
                      w->columns[0] == columns && d->tiles_across == 1 && w->tiles_across == 1 &&
                      w->threads == 32 * (d->quads * d->parts + warps) && w->threads <= 1024 && w->resident > 0 &&
                      128 * w->threads * w->resident <= properties->registers_per_multiprocessor &&
                      both->shared >= bytes && both->shared <= properties->shared_per_block &&
                      w->grid[0] * 16 >= layer->groups && w->grid[1] <= layer->batch * layer->axis[1].input;
    if (!good)
        fail_msg("%s, both gradients of planes in place", line);
}

static void both_gradients_of_planes_are_one_kernel(void **unused) {
    (void)unused;
    const cf_gpu_properties gpus[] = {gpu_properties_of("data/gpus/h200.txt"), gpu_properties_of("data/gpus/a100.txt")};
    generator g = test_generator(9);
    int found = 0, left = 0;
    for (int i = 0; i < 1000; ++i) {
        char line[256];
        const int rows = (int)random_int(&g, 1, 5), columns = (int)random_int(&g, 1, 5),
                  before = random_once_in(&g, 4) ? (int)random_int(&g, 0, rows) : rows / 2,
                  groups = 8 * (int)random_int(&g, 1, 50);
        snprintf(line, sizeof line,
                 "in=%dx%dx%dx%d out=%d groups=%d kernel=%dx%d pad=%d:%dx%d:%d dtype=bf16 layout=last",
                 (int)random_int(&g, 1, 70), groups, (int)random_int(&g, 17, 60), (int)random_int(&g, 1, 140), groups,
                 groups, rows, columns, before, rows - 1 - before < 0 ? 0 : rows - 1 - before, columns / 2,
                 columns - 1 - columns / 2);
        cf_layer layer;
        cf_toeplitz_both both;
        if (!make(line, &layer))
            continue;
        const cf_gpu_properties *const properties = &gpus[i % 2];
        assert_false(cf_toeplitz_configure_both(&layer, properties, true, &both));
        const cf_axis *const down = &layer.axis[1], *const across = &layer.axis[2];
        const bool few = down->kernel <= 3 && down->kernel * across->kernel <= 9 && across->input <= 128 &&
                         down->input == down->output && across->input == across->output &&
                         down->pad_before < down->kernel;
        if (cf_toeplitz_configure_both(&layer, properties, false, &both) != few)
            fail_msg("%s: %s", line, few ? "has two kernels" : "has one kernel");
        found += few;
        left += !few;
        if (few)
            check_both_in_place(line, &layer, &both, properties);
    }
    assert_true(found > 300 && left > 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_gradients_of_planes_are_one_kernel),
    };
    return cmocka_run_group_tests_name("toeplitz, both gradients of planes", tests, NULL, NULL);
}
