/* SPDX-License-Identifier: Apache-2.0 */
/* conv-fft tune: tune the layers of a network, with a table of what was chosen, and the gain. */
#include "interrupt.h"
#include "main.h"
#include "progress.h"
#include "table.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SETS = 2 /* forward, both gradients */
};

static const conv_fft_pass sets[SETS] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD};

/* Sums over sets of passes that have both times. */
typedef struct comparison {
    double tuned_ms, other_ms;
    int64_t count;
} comparison;

/* The records of one problem that its plan takes, and sums over a network. */
typedef struct table {
    const char *problem;
    uint64_t limit;
    conv_fft_tune_record row[SETS]; /* ms 0: there is none */
    char strategy[SETS][STRATEGY_BYTES];
    double ms; /* of all sets with a record: a training step */
    int64_t tuned, count;
    bool measured; /* some layer had no records before */
    comparison model, baseline;
    int64_t unmeasured;         /* sets of passes that should have been measured */
    char unmeasured_names[512]; /* of the first ones, joined by commas */
    json_t *document;           /* NULL: text */
} table;

/* Records keep a limit as the power of two at or below it. */
static uint64_t class_of(uint64_t limit) {
    while (limit & (limit - 1))
        limit &= limit - 1;
    return limit;
}

/* Whether a plan with this limit takes the record: the record has the class of the limit, or no limit and fits. */
static bool is_of_limit(const conv_fft_tune_record *r, uint64_t limit) {
    return !r->keep && (r->workspace_class == 0 || r->workspace_class == class_of(limit)) &&
           (limit == 0 || r->workspace_bytes <= limit);
}

static int take_record(const conv_fft_tune_record *r, void *user) {
    table *t = user;
    if (!is_of_limit(r, t->limit) || strcmp(r->problem, t->problem) != 0)
        return 0;
    for (int set = 0; set < SETS; ++set) {
        if (r->pass != sets[set] || (t->row[set].ms > 0 && r->workspace_class == 0))
            continue;
        t->row[set] = *r;
        snprintf(t->strategy[set], STRATEGY_BYTES, "%s", r->strategy);
    }
    return 0;
}

static void compare(comparison *c, double tuned_ms, double other_ms) {
    if (other_ms < 0)
        return;
    c->tuned_ms += tuned_ms;
    c->other_ms += other_ms;
    ++c->count;
}

/* The row of a set of passes: its record, or the choice of the cost model, without times. 0, or an exit status. */
static int read_row(const options *o, conv_fft_context *context, const layer_line *layer, int set, table *t,
                    table_row *row) {
    const conv_fft_tune_record *r = &t->row[set];
    *row = (table_row){.layer = layer, .pass = sets[set], .ms = -1, .model_ms = -1, .baseline_ms = -1};
    ++t->count;
    if (r->ms > 0) {
        row->by_record = true;
        row->ms = r->ms;
        row->model_ms = r->model_ms;
        row->baseline_ms = r->direct_ms;
        row->workspace_bytes = r->workspace_bytes;
        strcpy(row->strategies, t->strategy[set]);
        ++t->tuned;
        t->ms += r->ms;
        compare(&t->model, r->ms, r->model_ms);
        compare(&t->baseline, r->ms, r->direct_ms);
        return 0;
    }
    conv_fft_plan_options po;
    conv_fft_plan *plan = NULL;
    size_t bytes = 0;
    conv_fft_plan_options_init(&po);
    po.workspace_limit = (uint64_t)o->workspace_limit;
    const bool good = conv_fft_plan_create(context, &layer->problem, &po, &plan) == CONV_FFT_SUCCESS &&
                      conv_fft_plan_workspace(plan, sets[set], &bytes) == CONV_FFT_SUCCESS &&
                      read_strategies(plan, sets[set], row->strategies) == CONV_FFT_SUCCESS;
    row->workspace_bytes = bytes;
    conv_fft_plan_destroy(plan);
    return good ? 0 : layer_error(layer);
}

/* Note a set of passes that has no record of the wanted mode. */
static void note_unmeasured(const layer_line *layer, int set, table *t) {
    const size_t used = strlen(t->unmeasured_names);
    char name[96];
    snprintf(name, sizeof name, "%s%.64s %s", used ? ", " : "", layer->name, pass_word(sets[set]));
    ++t->unmeasured;
    if (strstr(t->unmeasured_names, ", ..."))
        return;
    if (used + strlen(name) + sizeof ", ..." <= sizeof t->unmeasured_names)
        strcpy(t->unmeasured_names + used, name);
    else
        strcpy(t->unmeasured_names + used, ", ...");
}

/* Returns whether all sets of passes were measured. */
static bool say_unmeasured(const table *t) {
    if (t->unmeasured > 0)
        fprintf(stderr,
                "conv-fft: %" PRId64 " not measured: %s; the messages above say why; --milliseconds gives more time\n",
                t->unmeasured, t->unmeasured_names);
    return t->unmeasured == 0;
}

static void print_comparison(const char *what, const comparison *c, int64_t of) {
    char text[256];
    if (c->count == 0)
        return;
    snprintf(text, sizeof text,
             "tuned is %.2f times as fast as %s: %.4f ms instead of %.4f ms (%" PRId64 " of %" PRId64
             " rows have both times)",
             c->other_ms / c->tuned_ms, what, c->tuned_ms, c->other_ms, c->count, of);
    print_wrapped(text, 0, 2);
}

/* The directory of the cache, or where else the records are. */
static const char *records_place(const table *t, char text[4200]) {
    char report[4200] = "";
    const bool usable = conv_fft_cache_report(NULL, report, sizeof report, NULL, NULL) == CONV_FFT_SUCCESS;
    snprintf(text, 4200, "%.*s", usable ? (int)strcspn(report, "\n") : 0, report);
    if (!t->measured && (!usable || access(text, F_OK) != 0))
        snprintf(text, 4200, "in the folders of CONV_FFT_TUNE_PATH");
    else if (!usable)
        snprintf(text, 4200, "in memory only, so they are lost: %s", conv_fft_last_error());
    else if (t->measured && access(text, W_OK) != 0)
        snprintf(text + strlen(text), 4200 - strlen(text), " cannot be written, so new ones are lost");
    return text;
}

static int print_summary(const table *t) {
    char place[4200];
    if (t->tuned == 0)
        printf("no row has a record");
    else
        printf("one training step: %.4f ms", t->ms);
    if (t->tuned > 0 && t->tuned < t->count)
        printf(" in the %" PRId64 " of %" PRId64 " rows that have a record", t->tuned, t->count);
    putchar('\n');
    print_comparison("the choice of the cost model", &t->model, t->count);
    print_comparison("the best algorithm of another library", &t->baseline, t->count);
    printf("records: %s\n", records_place(t, place));
    return 0;
}

static json_t *json_comparison(const comparison *c) {
    return c->count ? json_pack("{s:f, s:f, s:f, s:I}", "speedup", c->other_ms / c->tuned_ms, "tuned_ms", c->tuned_ms,
                                "other_ms", c->other_ms, "rows", (json_int_t)c->count)
                    : json_null();
}

static int end_document(const table *t) {
    char place[4200];
    json_object_set_new(t->document, "summary",
                        json_pack("{s:f, s:I, s:I, s:o, s:o, s:s}", "step_ms", t->ms, "tuned", (json_int_t)t->tuned,
                                  "rows", (json_int_t)t->count, "model", json_comparison(&t->model), "baseline",
                                  json_comparison(&t->baseline), "records", records_place(t, place)));
    return json_end(t->document);
}

/* ---- commands */

enum {
    INTERRUPTED = -1 /* instead of an exit status */
};

static int is_interrupted(int64_t done, int64_t total, void *user) {
    (void)done;
    (void)total;
    progress_tick(user);
    return interrupted;
}

static int tune_layer(const options *o, conv_fft_context *context, const layer_line *layer, progress *p) {
    conv_fft_plan_options po;
    conv_fft_plan_options_init(&po);
    po.tuning = o->mode;
    po.tune_milliseconds = o->milliseconds;
    po.tune_again = o->again;
    po.workspace_limit = (uint64_t)o->workspace_limit;
    const conv_fft_status status = conv_fft_tune_problems(context, &layer->problem, 1, &po, is_interrupted, p);
    progress_end(p);
    if (status == CONV_FFT_CANCELLED)
        return INTERRUPTED;
    return status == CONV_FFT_SUCCESS ? 0 : layer_error(layer);
}

static int show_layer(const options *o, conv_fft_context *context, const layer_line *layer, table *t) {
    int failed = 0;
    t->problem = layer->text;
    for (int set = 0; set < SETS; ++set)
        t->row[set].ms = 0;
    if (conv_fft_tune_foreach(context, take_record, t) != CONV_FFT_SUCCESS)
        return library_error("no records");
    for (int set = 0; set < SETS; ++set) {
        table_row row;
        const int status = read_row(o, context, layer, set, t, &row);
        failed = failed ? failed : status;
        if (!status)
            table_show(&row, TABLE_TUNE, o->verbose, t->document);
        if (layer->problem.batch > 0 && (t->row[set].ms <= 0 || t->row[set].tuning < o->mode))
            note_unmeasured(layer, set, t);
    }
    fflush(stdout);
    return failed;
}

/* The layers that have the wanted records: bits of `found`. */
typedef struct recorded {
    const network *n;
    const options *o;
    int *found;
} recorded;

static int note_recorded(const conv_fft_tune_record *r, void *user) {
    const recorded *known = user;
    const bool enough = is_of_limit(r, (uint64_t)known->o->workspace_limit) && r->tuning >= known->o->mode;
    for (int64_t i = 0; enough && i < known->n->count; ++i) {
        if (strcmp(r->problem, known->n->layers[i].text) == 0)
            known->found[i] |= 1 << r->pass;
    }
    return 0;
}

/* NULL: out of memory. */
static bool *find_recorded(const options *o, conv_fft_context *context, const network *n) {
    const int both = 1 << CONV_FFT_FORWARD | 1 << CONV_FFT_BACKWARD;
    bool *known = calloc((size_t)n->count, sizeof *known);
    recorded r = {n, o, calloc((size_t)n->count, sizeof *r.found)};
    if (known && r.found && !o->again)
        conv_fft_tune_foreach(context, note_recorded, &r);
    for (int64_t i = 0; known && r.found && i < n->count; ++i)
        known[i] = (r.found[i] & both) == both;
    free(r.found);
    return known;
}

/* Seconds that a layer may take; 0: any. */
static double max_seconds(const options *o) {
    const double usual = o->mode == CONV_FFT_TUNE_MEASURE ? 10.0 : 0.0; /* as conv_fft_plan_options.tune_milliseconds */
    return o->milliseconds ? 1e-3 * (double)o->milliseconds : usual;
}

static int tune_network(const options *o, conv_fft_context *context, const network *n) {
    table t = {.limit = (uint64_t)o->workspace_limit};
    bool *known = find_recorded(o, context, n);
    progress p = {.known = known, .total = n->count, .max_seconds = max_seconds(o)};
    int failed = 0;
    if (!known) {
        fputs("conv-fft: out of memory for the progress\n", stderr);
        return 1;
    }
    interrupt_begin();
    t.document = o->json ? json_begin_layers("tune", context) : NULL;
    if (!t.document)
        table_head(context, TABLE_TUNE);
    int64_t i = 0;
    for (; i < n->count && !interrupted; ++i) {
        progress_begin(&p, i, n->layers[i].name);
        const int status = tune_layer(o, context, &n->layers[i], &p);
        if (status == INTERRUPTED)
            break;
        failed |= status ? status : show_layer(o, context, &n->layers[i], &t);
    }
    free(known);
    t.measured = p.measured > 0;
    failed |= t.document ? end_document(&t) : print_summary(&t);
    fflush(stdout);
    if (!say_unmeasured(&t))
        failed = failed ? failed : 1;
    if (interrupted)
        fprintf(stderr, "conv-fft: interrupted after %" PRId64 " of %" PRId64 " layers; %s\n", i, n->count,
                o->again ? "with --again the first one is next" : "the same command goes on from there");
    return failed;
}

int tune_command(const options *o, char **words, int count) {
    if (count == 0)
        return usage_error("tune needs files of problem lines, or a problem", NULL);
    options own = *o;
    if (own.mode == CONV_FFT_TUNE_OFF)
        own.mode = CONV_FFT_TUNE_MEASURE;
    return with_network(&own, words, count, tune_network);
}
