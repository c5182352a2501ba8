/* SPDX-License-Identifier: Apache-2.0 */
/* conv-fft explain: the strategy, bytes, operations and time of each stage of each pass, and the candidates. */
#include "main.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- the source of the choice */

static const char *set_name(conv_fft_pass set) {
    return set == CONV_FFT_FORWARD ? "forward" : set == CONV_FFT_BACKWARD ? "backward, both gradients" : "all passes";
}

typedef struct deciding {
    const char *problem;
    conv_fft_pass set;
    double ms; /* that the plan has from the record */
    int found;
} deciding;

static int print_deciding(const conv_fft_tune_record *r, void *user) {
    deciding *d = user;
    if (d->found || r->keep || r->pass != d->set || fabs(r->ms - d->ms) > 1e-9 * d->ms ||
        strcmp(r->problem, d->problem) != 0)
        return 0;
    d->found = 1;
    printf("  %s: chosen by a tuning record, %.4f ms, the best of %" PRId64 " candidates timed in mode %s",
           set_name(d->set), r->ms, r->candidates, r->tuning == CONV_FFT_TUNE_EXHAUSTIVE ? "exhaustive" : "measure");
    if (r->direct_ms >= 0)
        printf("; the best direct algorithm took %.4f ms", r->direct_ms);
    putchar('\n');
    return 0;
}

static int print_source(conv_fft_context *context, const conv_fft_plan *plan, const layer_line *layer) {
    static const conv_fft_pass sets[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD};
    for (int i = 0; i < 2; ++i) {
        conv_fft_description d;
        if (conv_fft_plan_describe(plan, sets[i], &d) != CONV_FFT_SUCCESS)
            return layer_error(layer);
        deciding by = {layer->text, sets[i], d.measured_ms, d.measured_ms < 0};
        if (by.found)
            printf("  %s: chosen by the cost model%s, because no tuning record can be used\n", set_name(sets[i]),
                   conv_fft_context_device(context) == CONV_FFT_DEVICE_CPU ? " or a record of other threads" : "");
        else if (conv_fft_tune_foreach(context, print_deciding, &by) != CONV_FFT_SUCCESS)
            return library_error("no records");
    }
    return 0;
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
    int shown, max_shown;
} listing;

static int print_candidate(const conv_fft_tune_candidate *c, void *user) {
    listing *l = user;
    if (c->pass != l->set) {
        l->set = c->pass;
        l->shown = 0;
        printf("  candidates, %s\n    %13s %12s %15s  strategy, and why it was chosen or not\n", set_name(c->pass),
               "predicted ms", "measured ms", "workspace bytes");
    }
    if (l->shown++ >= l->max_shown)
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

static int explain_candidates(const options *o, conv_fft_context *context, const layer_line *layer) {
    conv_fft_plan_options po;
    conv_fft_plan_options_init(&po);
    po.workspace_limit = (uint64_t)o->workspace_limit;
    po.tuning = o->mode;
    po.tune_milliseconds = o->milliseconds;
    listing l = {.max_shown = (int)o->candidates};
    const conv_fft_status status = conv_fft_tune_candidates(context, &layer->problem, &po, print_candidate, &l);
    return status == CONV_FFT_SUCCESS ? 0 : layer_error(layer);
}

static int explain(const options *o, conv_fft_context *context, const layer_line *layer) {
    static const struct {
        conv_fft_pass pass;
        const char *name;
    } passes[] = {{CONV_FFT_FORWARD, "forward"},
                  {CONV_FFT_BACKWARD_DATA, "backward data"},
                  {CONV_FFT_BACKWARD_WEIGHTS, "backward weights"},
                  {CONV_FFT_BACKWARD, "backward, both gradients"}};
    conv_fft_plan_options po;
    conv_fft_plan_options_init(&po);
    po.workspace_limit = (uint64_t)o->workspace_limit;
    conv_fft_plan *plan;
    if (conv_fft_plan_create(context, &layer->problem, &po, &plan) != CONV_FFT_SUCCESS)
        return layer_error(layer);
    printf("%s%s%s\n", layer->name, layer->name[0] ? " " : "", layer->text);
    int failed = print_source(context, plan, layer);
    for (size_t i = 0; i < sizeof passes / sizeof passes[0] && !failed; ++i) {
        conv_fft_description d;
        const conv_fft_status status = o->measure ? conv_fft_profile(plan, passes[i].pass, (int)o->measure, &d)
                                                  : conv_fft_plan_describe(plan, passes[i].pass, &d);
        if (status != CONV_FFT_SUCCESS)
            failed = layer_error(layer);
        else
            print_description(passes[i].name, &d, layer->problem.rank);
        if (i == 0 && !failed)
            print_nan_reach(&layer->problem, &d);
    }
    conv_fft_plan_destroy(plan);
    if (o->candidates && !failed)
        failed = explain_candidates(o, context, layer);
    return failed;
}

/* Bad lines are passed over, and so are problems that no plan can be made for. */
static int explain_file(const options *o, conv_fft_context *context) {
    network n;
    int failed = network_read_all(&o->file, 1, 0, &n);
    for (int64_t i = 0; i < n.count; ++i) {
        const int status = explain(o, context, &n.layers[i]);
        failed = failed ? failed : status;
    }
    failed = failed ? failed : n.bad > 0;
    network_free(&n);
    return failed;
}

static int explain_words(const options *o, conv_fft_context *context, char **words, int count) {
    enum {
        USUAL_CANDIDATES = 10
    };
    char line[1024];
    size_t length = 0;
    for (int i = 0; i < count; ++i) {
        const int added = snprintf(line + length, sizeof line - length, "%s%s", i ? " " : "", words[i]);
        length += (size_t)added;
        if (length >= sizeof line)
            return usage_error("the problem is too long", NULL);
    }
    layer_line layer = {.file = NULL};
    if (layer_read(line, length, &layer) != 0)
        return 1;
    options own = *o;
    if (!own.candidates)
        own.candidates = USUAL_CANDIDATES;
    return layer.problem.rank > 0 ? explain(&own, context, &layer) : 0;
}

int explain_command(const options *o, char **words, int count) {
    if (count > 0 && strcmp(words[0], "fft") == 0)
        return explain_fft(o, words + 1, count - 1);
    if (o->properties)
        return usage_error("explain takes --facts for an fft only", NULL);
    if (o->milliseconds && o->mode == CONV_FFT_TUNE_OFF)
        return usage_error("explain measures for --milliseconds only with --mode", NULL);
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
