/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For each set of passes every candidate is timed (mode exhaustive). The strategies that modes off and measure choose
 * are compared with the winner by the times of that run. Algorithms of other libraries are left out, because their
 * speed says nothing about the model. If only the quick search combined two gradients, their time is that of the
 * quick search.
 */
#include "tuning/model_quality.h"

#include "common/csv.h"
#include "tools/message.h"
#include "tools/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SETS = 2, /* forward, both gradients */
    STRATEGY_BYTES = 800
};

/* The result of one search of a problem, for each set. */
typedef struct finding {
    char first[SETS][STRATEGY_BYTES]; /* first of the list: the winner, or the best prediction */
    double winner_ms[SETS];
    double winner_predicted[SETS], min_predicted[SETS];
    /* Strategies whose times are wanted, and their times. Negative: not timed. */
    const char *wanted[SETS][2];
    double wanted_ms[SETS][2];
    int timed[SETS];
    /* NULL: no rows of candidates. */
    FILE *candidates;
    const char *name; /* of the layer */
} finding;

static const char *const set_names[SETS] = {"forward", "backward"};

static int note(const conv_fft_tune_candidate *c, void *user) {
    finding *f = user;
    const int set = c->pass == CONV_FFT_FORWARD ? 0 : 1;
    if (!f->first[set][0]) {
        snprintf(f->first[set], STRATEGY_BYTES, "%s", c->strategy);
        f->winner_ms[set] = c->measured_ms;
        f->winner_predicted[set] = f->min_predicted[set] = c->predicted_ms;
    }
    if (c->predicted_ms >= 0)
        f->min_predicted[set] = fmin(f->min_predicted[set], c->predicted_ms);
    f->timed[set] += c->measured_ms >= 0;
    if (f->candidates && c->measured_ms >= 0) {
        fprintf(f->candidates, "%s,%s,%.5f,%.5f,", f->name, set_names[set], c->predicted_ms, c->measured_ms);
        bench_csv_write_text(f->candidates, c->strategy);
        fputc('\n', f->candidates);
    }
    for (int i = 0; i < 2; ++i) {
        if (f->wanted[set][i] && strcmp(f->wanted[set][i], c->strategy) == 0)
            f->wanted_ms[set][i] = c->measured_ms;
    }
    return 0;
}

static int search(const quality_options *o, conv_fft_context *context, const layer_line *layer, conv_fft_tuning mode,
                  finding *f, double *seconds) {
    conv_fft_plan_options po;
    conv_fft_plan_options_init(&po);
    po.tuning = mode;
    po.own_kernels = 1;
    po.workspace_limit = (uint64_t)o->workspace_limit;
    po.tune_milliseconds = mode == CONV_FFT_TUNE_MEASURE ? o->milliseconds : o->exhaustive_milliseconds;
    for (int set = 0; set < SETS; ++set)
        f->wanted_ms[set][0] = f->wanted_ms[set][1] = -1.0;
    const double begin = seconds_now();
    if (conv_fft_tune_candidates(context, &layer->problem, &po, note, f) != CONV_FFT_SUCCESS)
        return layer_error(layer);
    *seconds = seconds_now() - begin;
    return 0;
}

/* Find the strategies of a plan of mode off, as searches write them. */
static int choose_by_model(const quality_options *o, conv_fft_context *context, const layer_line *layer, finding *f) {
    conv_fft_plan_options po;
    conv_fft_plan *plan = NULL;
    conv_fft_description forward, data, weights;
    conv_fft_plan_options_init(&po);
    po.tuning = CONV_FFT_TUNE_OFF;
    po.own_kernels = 1;
    po.workspace_limit = (uint64_t)o->workspace_limit;
    conv_fft_status status = conv_fft_plan_create(context, &layer->problem, &po, &plan);
    if (status == CONV_FFT_SUCCESS)
        status = conv_fft_plan_describe(plan, CONV_FFT_FORWARD, &forward);
    if (status == CONV_FFT_SUCCESS)
        status = conv_fft_plan_describe(plan, CONV_FFT_BACKWARD_DATA, &data);
    if (status == CONV_FFT_SUCCESS)
        status = conv_fft_plan_describe(plan, CONV_FFT_BACKWARD_WEIGHTS, &weights);
    conv_fft_plan_destroy(plan);
    if (status != CONV_FFT_SUCCESS)
        return layer_error(layer);
    snprintf(f->first[0], STRATEGY_BYTES, "%s", forward.strategy);
    snprintf(f->first[1], STRATEGY_BYTES, "%s; %s", data.strategy, weights.strategy);
    return 0;
}

/* Times relative to the exhaustive winner, over all sets of passes. */
typedef struct ratios {
    double logarithms;
    int64_t count, within_two, missing;
} ratios;

static void add(ratios *r, double ms, double winner_ms) {
    if (ms < 0 || winner_ms <= 0) {
        ++r->missing;
        return;
    }
    ++r->count;
    r->logarithms += log(ms / winner_ms);
    r->within_two += ms <= 2 * winner_ms;
}

static void print_ratios(const char *mode, const ratios *r) {
    printf("# %s: geometric mean %.3f of the exhaustive winner, within 2x in %.1f %%, of %" PRId64
           " sets of passes; not timed by the exhaustive search: %" PRId64 "\n",
           mode, r->count ? exp(r->logarithms / (double)r->count) : NAN,
           r->count ? 100.0 * (double)r->within_two / (double)r->count : NAN, r->count, r->missing);
}

/* Libraries are opened once. This must not count to the time of the first search. */
static int open_libraries(const quality_options *o, conv_fft_context *context) {
    static const char text[] = "in=1x1x8x8 kernel=3x3";
    layer_line small = {.name = "a small layer"};
    finding ignored = {.timed = {0}};
    double seconds;
    return layer_read(text, sizeof text - 1, &small) ||
           search(o, context, &small, CONV_FFT_TUNE_MEASURE, &ignored, &seconds);
}

/* Open the file of candidates and write its head. NULL with *failed set: it cannot be written. */
static FILE *open_candidates(const quality_options *o, const conv_fft_context *context, int *failed) {
    if (!o->candidates)
        return NULL;
    FILE *file = fopen(o->candidates, "w");
    if (file)
        fprintf(file, "case,pass,predicted_ms,measured_ms,strategy\n# %s\n", conv_fft_context_description(context));
    else
        fprintf(stderr, "%s: cannot write %s\n", program_name, o->candidates);
    *failed |= !file;
    return file;
}

static int close_candidates(FILE *file) {
    if (!file)
        return 0;
    const bool wrong = ferror(file) != 0;
    if (fclose(file) == 0 && !wrong)
        return 0;
    fprintf(stderr, "%s: the file of candidates is not complete\n", program_name);
    return 1;
}

int measure_quality(const quality_options *o, conv_fft_context *context, const network *n) {
    ratios off = {0}, quick = {0};
    double quick_seconds = 0, all_seconds = 0;
    int failed = open_libraries(o, context);
    FILE *candidates = open_candidates(o, context, &failed);
    if (o->candidates && !candidates)
        return failed;
    printf("case,pass,winner_ms,off_ms,measure_ms,timed,reach,measure_s,exhaustive_s,winner,off,measure\n# %s\n",
           conv_fft_context_description(context));
    for (int64_t i = 0; i < n->count; ++i) {
        const layer_line *layer = &n->layers[i];
        finding model = {.timed = {0}}, best_few = {.timed = {0}},
                all = {.timed = {0}, .candidates = candidates, .name = layer->name};
        double own = 0.0, exhaustive = 0.0;
        /* The quick search comes first, so that it compiles the kernels that it needs. */
        bool bad = choose_by_model(o, context, layer, &model) ||
                   search(o, context, layer, CONV_FFT_TUNE_MEASURE, &best_few, &own);
        for (int set = 0; set < SETS; ++set) {
            all.wanted[set][0] = model.first[set];
            all.wanted[set][1] = best_few.first[set];
        }
        bad = bad || search(o, context, layer, CONV_FFT_TUNE_EXHAUSTIVE, &all, &exhaustive);
        failed |= bad;
        if (bad)
            continue;
        quick_seconds += own;
        all_seconds += exhaustive;
        for (int set = 0; set < SETS; ++set) {
            double *ms = all.wanted_ms[set];
            if (set == 1 && ms[1] < 0) /* only the quick search combined these two gradients */
                ms[1] = best_few.winner_ms[set];
            add(&off, ms[0], all.winner_ms[set]);
            add(&quick, ms[1], all.winner_ms[set]);
            printf("%s,%s,%.5f,%.5f,%.5f,%d,%.3f,%.3f,%.3f,%s,%s,%s\n", layer->name, set_names[set], all.winner_ms[set],
                   ms[0], ms[1], all.timed[set], all.winner_predicted[set] / all.min_predicted[set], own, exhaustive,
                   all.first[set], model.first[set], best_few.first[set]);
        }
        fflush(stdout);
        if (candidates)
            fflush(candidates);
    }
    failed |= close_candidates(candidates);
    print_ratios("off", &off);
    print_ratios("measure", &quick);
    printf("# measure took %.1f s, %.1f %% of the exhaustive search's %.1f s\n", quick_seconds,
           100.0 * quick_seconds / (all_seconds > 0 ? all_seconds : 1), all_seconds);
    return failed;
}
