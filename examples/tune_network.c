/* SPDX-License-Identifier: Apache-2.0 */
/* Tune the layers of a network, one problem line each, and show what its plans use from then on.
 *
 *     tune_network ../networks/resnet50.txt 500        at most 500 milliseconds for each layer
 *
 * The records stay in the cache folder for every later program: a second run has nothing to measure. */
#include <conv_fft.h>
#include <stdio.h>
#include <stdlib.h>

#define TRY(call)                                           \
    do {                                                    \
        if (call) {                                         \
            fprintf(stderr, "%s\n", conv_fft_last_error()); \
            exit(EXIT_FAILURE);                             \
        }                                                   \
    } while (0)

enum {
    MAX_LAYERS = 100,
    NAME_BYTES = 40
};

static conv_fft_problem problems[MAX_LAYERS];
static char names[MAX_LAYERS][NAME_BYTES];

static int64_t read_network(const char *path) {
    char line[1024];
    int64_t count = 0;
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    while (fgets(line, sizeof line, file)) {
        if (count == MAX_LAYERS) {
            fprintf(stderr, "%s has more than %d layers\n", path, MAX_LAYERS);
            exit(EXIT_FAILURE);
        }
        TRY(conv_fft_problem_parse(line, &problems[count], names[count], NAME_BYTES));
        count += problems[count].rank > 0; /* 0: an empty line or a comment */
    }
    fclose(file);
    return count;
}

static int show_progress(int64_t done, int64_t total, void *user) {
    int64_t *shown = user;
    if (done != *shown)
        fprintf(stderr, "%lld of %lld layers are tuned\n", (long long)(*shown = done), (long long)total);
    return 0; /* anything else would end the tuning */
}

static void show_pass(const char *name, const conv_fft_plan *plan, conv_fft_pass pass, const char *text) {
    conv_fft_description d;
    TRY(conv_fft_plan_describe(plan, pass, &d));
    if (d.measured_ms >= 0)
        printf("%-10s %-9s %8.3f ms  %s\n", name, text, d.measured_ms, d.strategy);
    else
        printf("%-10s %-9s not measured  %s\n", name, text, d.strategy);
}

int main(int argc, char **argv) {
    const long milliseconds = argc > 2 ? strtol(argv[2], NULL, 10) : 2000;
    if (argc < 2 || milliseconds < 1) {
        fprintf(stderr, "usage: tune_network FILE [MILLISECONDS]\n");
        return 2;
    }
    const int64_t count = read_network(argv[1]);

    conv_fft_context *context;
    conv_fft_plan_options options;
    conv_fft_tune_statistics statistics;
    int64_t shown = -1;
    TRY(conv_fft_context_create(NULL, &context)); /* the GPU, if there is one */
    printf("%s\n", conv_fft_context_description(context));
    TRY(conv_fft_plan_options_init(&options));
    options.tuning = CONV_FFT_TUNE_MEASURE;
    options.tune_milliseconds = milliseconds;
    TRY(conv_fft_tune_problems(context, problems, count, &options, show_progress, &shown));

    for (int64_t i = 0; i < count; ++i) {
        conv_fft_plan *plan;
        TRY(conv_fft_plan_create(context, &problems[i], NULL, &plan)); /* finds the record */
        show_pass(names[i], plan, CONV_FFT_FORWARD, "forward");
        show_pass(names[i], plan, CONV_FFT_BACKWARD, "backward");
        conv_fft_plan_destroy(plan);
    }
    TRY(conv_fft_tune_stats(context, &statistics));
    printf("%lld records\n", (long long)statistics.records);
    conv_fft_context_destroy(context);
    return EXIT_SUCCESS;
}
