/* SPDX-License-Identifier: Apache-2.0 */
/* conv-fft tune and bench: tune or run the layers of a network, with a table of what was chosen. */
#include "main.h"
#include "progress.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

/* A search ends between two steps. A second signal ends the program at once. */
static void interrupt(int number) {
    static const char text[] = "\nconv-fft: stopping; once more stops at once\n";
    (void)number;
    interrupted = 1;
    const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
}

static void stop_when_asked(void) {
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- the table */

static void print_table_head(void) {
    printf("%-24s %-9s %12s %12s %9s %15s  %s\n", "layer", "pass", "ms", "direct ms", "speed-up", "workspace bytes",
           "strategy");
}

enum {
    SETS = 2, /* forward, both gradients */
    STRATEGY_BYTES = 800
};

static const conv_fft_pass sets[SETS] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD};
static const char *const set_names[SETS] = {"forward", "backward"};

/* The records of one problem that its plan takes, and sums over the rows of a network. */
typedef struct table {
    const char *problem;
    uint64_t limit;
    conv_fft_tune_record row[SETS]; /* ms 0: there is none */
    char strategy[SETS][STRATEGY_BYTES];
    double ms, direct_ms; /* sums over rows with both times */
    int rows;
    int64_t unmeasured;         /* sets of passes that should have been measured */
    char unmeasured_names[512]; /* of the first ones, joined by commas */
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

static void print_tuned(const layer_line *layer, int set, table *t) {
    const conv_fft_tune_record *r = &t->row[set];
    printf("%-24s %-9s %12.4f ", layer->name, set_names[set], r->ms);
    if (r->direct_ms >= 0) {
        printf("%12.4f %9.2f ", r->direct_ms, r->direct_ms / r->ms);
        t->ms += r->ms;
        t->direct_ms += r->direct_ms;
        ++t->rows;
    } else {
        printf("%12s %9s ", "-", "-");
    }
    printf("%15" PRIu64 "  %s\n", r->workspace_bytes, t->strategy[set]);
}

/* A set of passes without a record: the choice of the cost model, and no time. */
static void print_untuned(const options *o, conv_fft_context *context, const layer_line *layer, int set) {
    conv_fft_plan_options po;
    conv_fft_plan *plan = NULL;
    conv_fft_description d;
    conv_fft_plan_options_init(&po);
    po.workspace_limit = (uint64_t)o->workspace_limit;
    if (conv_fft_plan_create(context, &layer->problem, &po, &plan) != CONV_FFT_SUCCESS ||
        conv_fft_plan_describe(plan, sets[set], &d) != CONV_FFT_SUCCESS)
        layer_error(layer);
    else
        printf("%-24s %-9s %12s %12s %9s %15" PRIu64 "  %s (the cost model's; not measured)\n", layer->name,
               set_names[set], "-", "-", "-", d.workspace_bytes, d.strategy);
    conv_fft_plan_destroy(plan);
}

/* Note a set of passes that has no record of the wanted mode. */
static void note_unmeasured(const layer_line *layer, int set, table *t) {
    const size_t used = strlen(t->unmeasured_names);
    char name[96];
    snprintf(name, sizeof name, "%s%.64s %s", used ? ", " : "", layer->name, set_names[set]);
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

static int print_layer(const options *o, conv_fft_context *context, const layer_line *layer, table *t) {
    t->problem = layer->text;
    for (int set = 0; set < SETS; ++set)
        t->row[set].ms = 0;
    if (conv_fft_tune_foreach(context, take_record, t) != CONV_FFT_SUCCESS)
        return library_error("no records");
    for (int set = 0; set < SETS; ++set) {
        if (t->row[set].ms > 0)
            print_tuned(layer, set, t);
        else
            print_untuned(o, context, layer, set);
        if (layer->problem.batch > 0 && (t->row[set].ms <= 0 || t->row[set].tuning < o->mode))
            note_unmeasured(layer, set, t);
    }
    fflush(stdout);
    return 0;
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
    stop_when_asked();
    printf("# %s\n", conv_fft_context_description(context));
    print_table_head();
    fflush(stdout);
    int64_t i = 0;
    for (; i < n->count && !interrupted; ++i) {
        progress_begin(&p, i, n->layers[i].name);
        const int status = tune_layer(o, context, &n->layers[i], &p);
        if (status == INTERRUPTED)
            break;
        failed |= status ? status : print_layer(o, context, &n->layers[i], &t);
    }
    free(known);
    if (t.rows > 0)
        printf("%-24s %-9s %12.4f %12.4f %9.2f\n", "all with both times", "", t.ms, t.direct_ms, t.direct_ms / t.ms);
    if (!say_unmeasured(&t))
        failed = failed ? failed : 1;
    if (!interrupted)
        return failed;
    fprintf(stderr, "conv-fft: interrupted after %" PRId64 " of %" PRId64 " layers; %s\n", i, n->count,
            o->again ? "with --again the first one is next" : "the same command goes on from there");
    return 1;
}

static int with_network(const options *o, char **words, int count,
                        int (*command)(const options *, conv_fft_context *, const network *)) {
    network n;
    conv_fft_context *context = NULL;
    int failed = network_read_all(words, count, o->count, &n);
    if (n.count > 0) {
        int status = open_context(o, &context);
        if (!status)
            status = command(o, context, &n);
        failed = failed ? failed : status;
    }
    failed = failed ? failed : n.bad > 0;
    conv_fft_context_destroy(context);
    network_free(&n);
    return failed;
}

int tune_command(const options *o, char **words, int count) {
    if (count == 0)
        return usage_error("tune needs a file of problem lines", NULL);
    options own = *o;
    if (own.mode == CONV_FFT_TUNE_OFF)
        own.mode = CONV_FFT_TUNE_MEASURE;
    return with_network(&own, words, count, tune_network);
}

static int bench_layer(conv_fft_context *context, const layer_line *layer, int repeats) {
    static const conv_fft_pass passes[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD_DATA, CONV_FFT_BACKWARD_WEIGHTS,
                                           CONV_FFT_BACKWARD};
    static const char *const names[] = {"fprop", "bprop", "accgrad", "backward"};
    conv_fft_plan *plan = NULL;
    conv_fft_status status = conv_fft_plan_create(context, &layer->problem, NULL, &plan);
    for (int i = 0; i < 4 && status == CONV_FFT_SUCCESS; ++i) {
        conv_fft_description d;
        status = conv_fft_profile(plan, passes[i], repeats, &d);
        if (status == CONV_FFT_SUCCESS)
            printf("%-24s %-9s %12.4f %15" PRIu64 "  %s\n", layer->name, names[i], d.measured_ms, d.workspace_bytes,
                   d.strategy);
    }
    if (status != CONV_FFT_SUCCESS)
        layer_error(layer);
    conv_fft_plan_destroy(plan);
    fflush(stdout);
    return status != CONV_FFT_SUCCESS;
}

static int bench_network(const options *o, conv_fft_context *context, const network *n) {
    int failed = 0;
    printf("%-24s %-9s %12s %15s  %s\n", "layer", "pass", "ms", "workspace bytes", "strategy");
    for (int64_t i = 0; i < n->count; ++i)
        failed |= bench_layer(context, &n->layers[i], o->measure ? (int)o->measure : 10);
    return failed;
}

int bench_command(const options *o, char **words, int count) {
    if (count == 0)
        return usage_error("bench needs a file of problem lines", NULL);
    return with_network(o, words, count, bench_network);
}
