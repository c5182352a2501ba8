/* SPDX-License-Identifier: Apache-2.0 */
/* conv-fft explain: the strategy, bytes, operations and time of each stage of each pass, and the candidates. */
#include "conv-fft.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A problem as it was given: as arguments (file is NULL), or as a line of a file. */
typedef struct problem_source {
    const char *text, *file;
    long line;
} problem_source;

static int problem_error(const problem_source *source) {
    if (!source->file)
        return library_error(source->text);
    fprintf(stderr, "conv-fft: %s:%ld: %s\n", source->file, source->line, conv_fft_last_error());
    return 1;
}

static void print_axes(const char *name, const int64_t *axes, int rank) {
    printf("%s ", name);
    for (int a = 0; a < rank; ++a)
        printf("%s%" PRId64, a ? "x" : "", axes[a]);
}

/* Negative: there is none. */
static void print_times(double predicted_ms, double measured_ms) {
    const double ms[] = {predicted_ms, measured_ms};
    for (int i = 0; i < 2; ++i) {
        if (ms[i] >= 0)
            printf("%*.4f%c", 13 - i, ms[i], i ? '\n' : ' ');
        else
            printf("%*s%c", 13 - i, "-", i ? '\n' : ' ');
    }
}

static void print_description(const char *pass, const conv_fft_description *d, int rank) {
    printf("  %s\n    %s\n    ", pass, d->strategy);
    print_axes("basis", d->basis, rank);
    print_axes(", tiles", d->tiles, rank);
    printf(", workspace %" PRIu64 " bytes%s\n", d->workspace_bytes,
           d->shares_gy ? ", gy transformed once for both gradients" : "");
    printf("    %-16s %12s %12s %13s %12s\n", "stage", "MB", "Mflop", "predicted ms", "measured ms");
    for (int i = 0; i < d->stage_count; ++i) {
        const conv_fft_stage *s = &d->stages[i];
        printf("    %-16s %12.3f %12.3f ", s->name, s->bytes / 1e6, s->operations / 1e6);
        print_times(s->predicted_ms, s->measured_ms);
    }
    printf("    %-16s %12s %12s ", "total", "", "");
    print_times(d->predicted_ms, d->measured_ms);
}

static void print_nan_reach(const conv_fft_problem *p, const conv_fft_description *d) {
    int64_t tiles = 1;
    for (int a = 0; a < p->rank; ++a)
        tiles *= d->tiles[a];
    if (tiles == 1)
        printf("  A NaN or Inf in x spreads over all of its sample's outputs of the same group (one tile).\n");
    else
        printf("  A NaN or Inf in x spreads over those of its sample's %" PRId64
               " tiles that read it, in the same group.\n",
               tiles);
}

/* ---- candidates */

typedef struct listing {
    conv_fft_pass set;
    int shown, most;
} listing;

static const char *set_name(conv_fft_pass set) {
    return set == CONV_FFT_FORWARD ? "forward" : set == CONV_FFT_BACKWARD ? "backward, both gradients" : "all passes";
}

static int print_candidate(const conv_fft_tune_candidate *c, void *user) {
    listing *l = user;
    if (c->pass != l->set) {
        l->set = c->pass;
        l->shown = 0;
        printf("  candidates, %s\n    %13s %12s %15s  strategy, and why it was chosen or not\n", set_name(c->pass),
               "predicted ms", "measured ms", "workspace bytes");
    }
    if (l->shown++ >= l->most)
        return 0;
    printf("    ");
    if (c->predicted_ms >= 0)
        printf("%13.4f ", c->predicted_ms);
    else
        printf("%13s ", "-");
    if (c->measured_ms >= 0)
        printf("%12.4f ", c->measured_ms);
    else
        printf("%12s ", "-");
    if (c->workspace_bytes)
        printf("%15" PRIu64, c->workspace_bytes);
    else
        printf("%15s", "-");
    printf("  %s\n%48s%s\n", c->strategy, "", c->verdict);
    return 0;
}

static int explain_candidates(const options *o, conv_fft_context *context, const problem_source *source,
                              const conv_fft_problem *p) {
    conv_fft_plan_options po;
    conv_fft_plan_options_init(&po);
    po.workspace_limit = o->workspace_limit;
    po.tuning = o->mode;
    po.tune_milliseconds = o->milliseconds;
    listing l = {.most = o->candidates};
    const conv_fft_status status = conv_fft_tune_candidates(context, p, &po, print_candidate, &l);
    return status == CONV_FFT_SUCCESS ? 0 : problem_error(source);
}

static int explain(const options *o, conv_fft_context *context, const problem_source *source) {
    static const struct {
        conv_fft_pass pass;
        const char *name;
    } passes[] = {{CONV_FFT_FORWARD, "forward"},
                  {CONV_FFT_BACKWARD_DATA, "backward data"},
                  {CONV_FFT_BACKWARD_WEIGHTS, "backward weights"},
                  {CONV_FFT_BACKWARD, "backward, both gradients"}};
    conv_fft_problem p;
    char name[64], text[1024];
    if (conv_fft_problem_parse(source->text, &p, name, sizeof name) != CONV_FFT_SUCCESS)
        return problem_error(source);
    if (p.rank == 0)
        return 0;
    conv_fft_plan_options po;
    conv_fft_plan_options_init(&po);
    po.workspace_limit = o->workspace_limit;
    conv_fft_plan *plan;
    if (conv_fft_plan_create(context, &p, &po, &plan) != CONV_FFT_SUCCESS)
        return problem_error(source);
    conv_fft_problem_format(&p, text, sizeof text);
    printf("%s%s%s\n", name, *name ? " " : "", text);
    int failed = 0;
    for (size_t i = 0; i < sizeof passes / sizeof passes[0] && !failed; ++i) {
        conv_fft_description d;
        const conv_fft_status status = o->measure ? conv_fft_profile(plan, passes[i].pass, o->measure, &d)
                                                  : conv_fft_plan_describe(plan, passes[i].pass, &d);
        if (status != CONV_FFT_SUCCESS)
            failed = problem_error(source);
        else
            print_description(passes[i].name, &d, p.rank);
        if (i == 0 && !failed)
            print_nan_reach(&p, &d);
    }
    conv_fft_plan_destroy(plan);
    if (o->candidates && !failed)
        failed = explain_candidates(o, context, source, &p);
    return failed;
}

static int explain_file(const options *o, conv_fft_context *context) {
    FILE *file = fopen(o->file, "r");
    if (!file)
        return read_error(o->file);
    char *text = NULL;
    size_t bytes = 0;
    problem_source source = {.file = o->file};
    int failed = 0;
    while (!failed && getline(&text, &bytes, file) >= 0) {
        source.text = text;
        ++source.line;
        failed = explain(o, context, &source);
    }
    if (!failed && !feof(file))
        failed = read_error(o->file);
    free(text);
    fclose(file);
    return failed;
}

static int explain_words(const options *o, conv_fft_context *context, char **words, int count) {
    char line[1024];
    size_t length = 0;
    for (int i = 0; i < count; ++i) {
        const int added = snprintf(line + length, sizeof line - length, "%s%s", i ? " " : "", words[i]);
        length += (size_t)added;
        if (length >= sizeof line)
            return usage_error("the problem is too long", NULL);
    }
    return explain(o, context, &(problem_source){.text = line});
}

int explain_command(const options *o, char **words, int count) {
    if (count > 0 && strcmp(words[0], "fft") == 0)
        return explain_fft(o, words + 1, count - 1);
    if (o->facts)
        return usage_error("explain takes --facts for an fft only", NULL);
    if (!o->file && count == 0)
        return usage_error("explain needs a problem or --file", NULL);
    if (o->file && count > 0)
        return usage_error("explain takes a problem or --file, not both", NULL);
    conv_fft_context *context;
    int failed = open_context(o, &context);
    if (failed)
        return failed;
    failed = o->file ? explain_file(o, context) : explain_words(o, context, words, count);
    conv_fft_context_destroy(context);
    return failed;
}
