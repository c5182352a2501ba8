/* SPDX-License-Identifier: Apache-2.0 */
/* The cost model with the calibration table of a GPU, against the times of strategies that were measured on that GPU
 * (bench_tuning --candidates). No GPU is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "autotune/model/choose.h"
#include "conv/gpu/backend.h"
#include "conv/gpu/calibration.h"
#include "cuda/driver/gpu.h"
#include "support/kernel_cases.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SETS = 2, /* forward, both gradients */
    STRATEGY_BYTES = 800,
    MAX_LAYERS = 64
};

/* A layer. For each set: the model's choice, its measured time (negative: not timed), and the best measured time. */
typedef struct judged {
    char name[64], chosen[SETS][STRATEGY_BYTES];
    double chosen_ms[SETS], best_ms[SETS];
} judged;

typedef struct judged_layers {
    judged items[MAX_LAYERS];
    int count;
} judged_layers;

static void choose(cf_device *device, const char *line, judged *j) {
    conv_fft_problem problem;
    cf_layer layer;
    cf_strategy strategy[CF_PASS_COUNT];
    char text[CF_PASS_COUNT][STRATEGY_BYTES / 2 - 2];
    if (conv_fft_problem_parse(line, &problem, j->name, sizeof j->name) != CONV_FFT_SUCCESS)
        fail_msg("%s: %s", line, conv_fft_last_error());
    memset(strategy, 0, sizeof strategy);
    assert_int_equal(cf_layer_make(&problem, &layer), CONV_FFT_SUCCESS);
    assert_int_equal(cf_choose_strategies(device, &layer, 0, true, strategy), CONV_FFT_SUCCESS);
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        cf_strategy_format(&strategy[pass], problem.rank, text[pass], sizeof text[pass]);
    snprintf(j->chosen[0], STRATEGY_BYTES, "%s", text[CF_PASS_FORWARD]);
    snprintf(j->chosen[1], STRATEGY_BYTES, "%s; %s", text[CF_PASS_DATA], text[CF_PASS_WEIGHTS]);
    for (int set = 0; set < SETS; ++set) {
        j->chosen_ms[set] = -1.0;
        j->best_ms[set] = HUGE_VAL;
    }
}

static void choose_all(const char *facts, const char *cases, judged_layers *layers) {
    char line[1024];
    cf_gpu gpu = {.properties = gpu_properties_of(facts)};
    cf_device *device;
    FILE *file = fopen(cases, "r");
    assert_non_null(file);
    assert_int_equal(cf_gpu_layers_create(&gpu, &device), CONV_FFT_SUCCESS);
    device->has_blas = true;
    layers->count = 0;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "#\n")] = '\0';
        if (!line[0])
            continue;
        assert_true(layers->count < MAX_LAYERS);
        choose(device, line, &layers->items[layers->count++]);
    }
    fclose(file);
    cf_gpu_layers_destroy(device);
}

/* Take the row "case,pass,predicted_ms,measured_ms,strategy". A strategy with commas is in quotes. */
static void take_row(char *line, judged_layers *layers) {
    char name[64], pass[16];
    double predicted, ms;
    int at = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%63[^,],%15[^,],%lf,%lf,%n", name, pass, &predicted, &ms, &at) != 4 || at == 0)
        fail_msg("no row of a candidate: %s", line);
    const int set = strcmp(pass, "forward") == 0 ? 0 : 1;
    if (line[at] == '"') {
        ++at;
        line[strlen(line) - 1] = '\0';
    }
    for (int i = 0; i < layers->count; ++i) {
        judged *j = &layers->items[i];
        if (strcmp(j->name, name) != 0)
            continue;
        j->best_ms[set] = fmin(j->best_ms[set], ms);
        if (strcmp(j->chosen[set], line + at) == 0)
            j->chosen_ms[set] = ms;
        return;
    }
    fail_msg("the layer of this row is not known: %s", line);
}

static void read_measured(const char *table, judged_layers *layers) {
    static char line[4096];
    FILE *file = fopen(table, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (line[0] != '#' && strncmp(line, "case,", 5) != 0)
            take_row(line, layers);
    fclose(file);
}

/* The choices take at most 1.05 times as long as the best measured strategies in the geometric mean, and 1.25 times in
 * each case. Few choices were
 * not timed. */
static void choices_are_near_the_best(void **unused) {
    (void)unused;
    static judged_layers layers;
    double logarithms = 0.0, worst = 1.0;
    int timed = 0, sets = 0;
    choose_all("data/gpus/h100.txt", "../bench/tuning/cases.txt", &layers);
    read_measured("../bench/results/nvidia-h100/candidates.csv", &layers);
    for (int i = 0; i < layers.count; ++i)
        for (int set = 0; set < SETS; ++set) {
            const judged *j = &layers.items[i];
            const double ratio = j->chosen_ms[set] / j->best_ms[set];
            if (j->best_ms[set] == HUGE_VAL)
                continue;
            ++sets;
            if (j->chosen_ms[set] < 0.0)
                print_message("          %s, set %d: the choice %s was not timed\n", j->name, set, j->chosen[set]);
            if (j->chosen_ms[set] < 0.0)
                continue;
            ++timed;
            logarithms += log(ratio);
            worst = fmax(worst, ratio);
        }
    assert_true(timed > 0);
    const double mean = exp(logarithms / timed);
    print_message("          %d of %d choices were timed: geometric mean %.3f, worst %.2f\n", timed, sets, mean, worst);
    assert_true(sets == 56 && timed >= sets * 3 / 4);
    assert_true(mean < 1.05 && worst < 1.25);
}

/* Each measured GPU has its own table, found by a part of its name. Others have the first one. */
static void tables_are_found_by_name(void **unused) {
    (void)unused;
    assert_ptr_equal(cf_calibration_of("NVIDIA H200"), &cf_calibration_h200);
    assert_ptr_equal(cf_calibration_of("NVIDIA H100 80GB HBM3"), &cf_calibration_h100);
    assert_ptr_equal(cf_calibration_of("NVIDIA A100-SXM4-80GB"), &cf_calibration_h200);
    assert_ptr_equal(cf_calibration_of(""), &cf_calibration_h200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_are_near_the_best),
        cmocka_unit_test(tables_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
