/* SPDX-License-Identifier: Apache-2.0 */
/* conv-fft tune and bench: tune or run the layers of a network, with a table of what was chosen. */
#include "conv-fft.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

/* A search ends between two steps; who does not want to wait for that says so a second time. */
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

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- progress, where somebody looks on */

/* Layers that have their records cost no time, so only the others tell how long the rest will take. */
typedef struct progress {
    bool *known;      /* of each layer: it need not be measured */
    int64_t measured; /* layers */
    double seconds;   /* for them */
} progress;

static int64_t count_unknown(const progress *p, int64_t from, int64_t to) {
    int64_t count = 0;
    for (int64_t i = from; i < to; ++i)
        count += !p->known[i];
    return count;
}

static void show_progress(const progress *p, int64_t done, int64_t total, const char *name) {
    enum {
        WIDTH = 30
    };
    if (!isatty(STDERR_FILENO))
        return;
    const int64_t unknown = count_unknown(p, done, total);
    char bar[WIDTH + 1], left[32] = "";
    const int filled = (int)(done * WIDTH / total);
    memset(bar, '.', WIDTH);
    memset(bar, '#', (size_t)filled);
    bar[WIDTH] = '\0';
    if (p->measured > 0 || unknown == 0) {
        const double seconds = unknown ? p->seconds / (double)p->measured * (double)unknown : 0;
        snprintf(left, sizeof left, ", %d min %02d s left", (int)seconds / 60, (int)seconds % 60);
    }
    fprintf(stderr, "\r\033[K[%s] %" PRId64 "/%" PRId64 " %s%s", bar, done, total, name, left);
}

static void end_progress(void) {
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

/* ---- the table */

static const char *set_name(conv_fft_pass set) {
    return set == CONV_FFT_FORWARD ? "forward" : set == CONV_FFT_BACKWARD ? "backward" : "other";
}

static void print_table_head(void) {
    printf("%-24s %-9s %12s %12s %9s %15s  %s\n", "layer", "pass", "ms", "direct ms", "speed-up", "workspace bytes",
           "strategy");
}

/* The records of one problem; the sums over the rows of a network. */
typedef struct table {
    const char *name;
    const char *problem;
    int forward, backward; /* rows for them */
    double ms, direct_ms;  /* sums, of rows with both times */
    int rows;
} table;

static int print_record(const conv_fft_tune_record *r, void *user) {
    table *t = user;
    const int wanted = r->pass == CONV_FFT_FORWARD || r->pass == CONV_FFT_BACKWARD;
    if (!wanted || r->keep || r->workspace_class || strcmp(r->problem, t->problem) != 0)
        return 0;
    printf("%-24s %-9s %12.4f ", t->name, set_name(r->pass), r->ms);
    if (r->direct_ms >= 0)
        printf("%12.4f %9.2f ", r->direct_ms, r->direct_ms / r->ms);
    else
        printf("%12s %9s ", "-", "-");
    printf("%15" PRIu64 "  %s\n", r->workspace_bytes, r->strategy);
    t->forward += r->pass == CONV_FFT_FORWARD;
    t->backward += r->pass == CONV_FFT_BACKWARD;
    if (r->direct_ms >= 0) {
        t->ms += r->ms;
        t->direct_ms += r->direct_ms;
        ++t->rows;
    }
    return 0;
}

/* What has no record: the cost model's choice, and no time. */
static void print_untuned(conv_fft_context *context, const layer_line *layer, conv_fft_pass set) {
    conv_fft_plan *plan = NULL;
    conv_fft_description d;
    if (conv_fft_plan_create(context, &layer->problem, NULL, &plan) != CONV_FFT_SUCCESS ||
        conv_fft_plan_describe(plan, set, &d) != CONV_FFT_SUCCESS)
        layer_error(layer);
    else
        printf("%-24s %-9s %12s %12s %9s %15" PRIu64 "  %s (the cost model's)\n", layer->name, set_name(set), "-", "-",
               "-", d.workspace_bytes, d.strategy);
    conv_fft_plan_destroy(plan);
}

/* ---- commands */

enum {
    INTERRUPTED = -1 /* in the place of an exit status */
};

static int is_interrupted(int64_t done, int64_t total, void *user) {
    (void)done;
    (void)total;
    (void)user;
    return interrupted;
}

static int tune_layer(const options *o, conv_fft_context *context, const layer_line *layer, table *t) {
    conv_fft_plan_options po;
    conv_fft_plan_options_init(&po);
    po.tuning = o->mode;
    po.tune_milliseconds = o->milliseconds;
    po.tune_again = o->again;
    t->name = layer->name;
    t->problem = layer->text;
    t->forward = t->backward = 0;
    const conv_fft_status status = conv_fft_tune_problems(context, &layer->problem, 1, &po, is_interrupted, NULL);
    end_progress();
    if (status == CONV_FFT_CANCELLED)
        return INTERRUPTED;
    if (status != CONV_FFT_SUCCESS)
        return layer_error(layer);
    if (conv_fft_tune_foreach(context, print_record, t) != CONV_FFT_SUCCESS)
        return library_error("no records");
    if (!t->forward)
        print_untuned(context, layer, CONV_FFT_FORWARD);
    if (!t->backward)
        print_untuned(context, layer, CONV_FFT_BACKWARD);
    fflush(stdout);
    return 0;
}

/* Which layers have the records that are wanted: bits of `sets`. */
typedef struct recorded {
    const network *n;
    conv_fft_tuning mode;
    int *sets;
} recorded;

static int note_recorded(const conv_fft_tune_record *r, void *user) {
    const recorded *known = user;
    const bool enough = !r->keep && !r->workspace_class && r->tuning >= known->mode;
    for (int64_t i = 0; enough && i < known->n->count; ++i) {
        if (strcmp(r->problem, known->n->layers[i].text) == 0)
            known->sets[i] |= 1 << r->pass;
    }
    return 0;
}

/* NULL: out of memory. */
static bool *find_recorded(const options *o, conv_fft_context *context, const network *n) {
    const int both = 1 << CONV_FFT_FORWARD | 1 << CONV_FFT_BACKWARD;
    bool *known = calloc((size_t)n->count, sizeof *known);
    recorded r = {n, o->mode, calloc((size_t)n->count, sizeof *r.sets)};
    if (known && r.sets && !o->again)
        conv_fft_tune_foreach(context, note_recorded, &r);
    for (int64_t i = 0; known && r.sets && i < n->count; ++i)
        known[i] = (r.sets[i] & both) == both;
    free(r.sets);
    return known;
}

static int tune_network(const options *o, conv_fft_context *context, const network *n) {
    table t = {.rows = 0};
    progress p = {.known = find_recorded(o, context, n)};
    int failed = 0;
    if (!p.known) {
        fputs("conv-fft: out of memory for the progress\n", stderr);
        return 1;
    }
    stop_when_asked();
    printf("# %s\n", conv_fft_context_description(context));
    print_table_head();
    fflush(stdout);
    int64_t i = 0;
    for (; i < n->count && !interrupted; ++i) {
        const double begin = seconds_now();
        show_progress(&p, i, n->count, n->layers[i].name);
        const int status = tune_layer(o, context, &n->layers[i], &t);
        if (status == INTERRUPTED)
            break;
        failed |= status;
        p.measured += !p.known[i];
        p.seconds += p.known[i] ? 0 : seconds_now() - begin;
    }
    end_progress();
    free(p.known);
    if (t.rows > 0)
        printf("%-24s %-9s %12.4f %12.4f %9.2f\n", "all with both times", "", t.ms, t.direct_ms, t.direct_ms / t.ms);
    if (!interrupted)
        return failed;
    fprintf(stderr,
            "conv-fft: interrupted after %" PRId64 " of %" PRId64 " layers; the same command goes on from there\n", i,
            n->count);
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
    return with_network(&own, words, count, own.quality ? measure_quality : tune_network);
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
        failed |= bench_layer(context, &n->layers[i], o->measure ? o->measure : 10);
    return failed;
}

int bench_command(const options *o, char **words, int count) {
    if (count == 0)
        return usage_error("bench needs a file of problem lines", NULL);
    return with_network(o, words, count, bench_network);
}
