/* SPDX-License-Identifier: Apache-2.0 */
/* conv-fft explain: the strategy, bytes, operations and time of each stage of each pass, and the candidates. */
#include "main.h"

#include "interrupt.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REMEMBERED = 32, /* candidates that later ones are compared with */
    SHORT_WORDS = 3  /* of a strategy line: the family, and mostly the basis and tiles */
};

/* One pass of a plan. */
typedef struct pass_view {
    conv_fft_pass pass;
    conv_fft_description d;
    char strategies[STRATEGY_BYTES];
} pass_view;

static void print_axes(const char *name, const int64_t *axes, int rank) {
    printf("%s ", name);
    for (int a = 0; a < rank; ++a)
        printf("%s%" PRId64, a ? "x" : "", axes[a]);
}

/* Negative: there is none. */
static void print_ms(int width, double ms) {
    if (ms >= 0)
        printf("%*.4f ", width, ms);
    else
        printf("%*s ", width, "-");
}

static void print_times(double predicted_ms, double measured_ms) {
    print_ms(13, predicted_ms);
    if (measured_ms >= 0)
        printf("%12.4f\n", measured_ms);
    else
        printf("%12s\n", "-");
}

/* Whether the strategies transform tiles of a basis. */
static bool has_basis(const pass_view *v) { return strstr(v->strategies, " basis=") != NULL; }

static void print_pass(const pass_view *v, int rank, bool verbose) {
    const conv_fft_description *const d = &v->d;
    const bool both = v->pass == CONV_FFT_BACKWARD;
    char families[64], size[16];
    printf("  %s\n", pass_word(v->pass));
    if (verbose || both)
        print_strategies(v->strategies, 4, 4, verbose ? 0 : SHORT_WORDS, NULL);
    printf("    ");
    if (!both) {
        printf("%s, ", family_names(v->strategies, families));
        if (has_basis(v)) {
            print_axes("basis", d->basis, rank);
            print_axes(", tiles", d->tiles, rank);
            printf(", ");
        }
    }
    printf("workspace %s bytes%s\n", size_text(d->workspace_bytes, size),
           !d->shares_gy  ? ""
           : has_basis(v) ? ", gy transformed once"
                          : ", gy read once");
    printf("    %-16s %12s %12s %13s %12s\n", "stage", "MB", "Mflop", "predicted ms", "measured ms");
    for (int i = 0; i < d->stage_count; ++i) {
        const conv_fft_stage *s = &d->stages[i];
        printf("    %-16s %12.3f %12.3f ", s->name, s->bytes / 1e6, s->operations / 1e6);
        print_times(s->predicted_ms, s->measured_ms);
    }
    printf("    %-16s %12s %12s ", "total", "", "");
    print_times(d->predicted_ms, d->measured_ms);
}

static json_t *json_axes(const int64_t *axes, int rank) {
    json_t *list = json_array();
    for (int a = 0; a < rank; ++a)
        json_array_append_new(list, json_integer(axes[a]));
    return list;
}

static json_t *json_pass(const pass_view *v, int rank) {
    const conv_fft_description *const d = &v->d;
    json_t *stages = json_array();
    for (int i = 0; i < d->stage_count; ++i)
        json_array_append_new(stages,
                              json_pack("{s:s, s:f, s:f, s:o, s:o}", "stage", d->stages[i].name, "bytes",
                                        d->stages[i].bytes, "operations", d->stages[i].operations, "predicted_ms",
                                        json_ms(d->stages[i].predicted_ms), "ms", json_ms(d->stages[i].measured_ms)));
    return json_pack("{s:s, s:o, s:o, s:o, s:b, s:I, s:o, s:o, s:o}", "pass", pass_word(v->pass), "strategies",
                     json_strategies(v->strategies), "basis", has_basis(v) ? json_axes(d->basis, rank) : json_null(),
                     "tiles", has_basis(v) ? json_axes(d->tiles, rank) : json_null(), "shares_gy", d->shares_gy,
                     "workspace_bytes", (json_int_t)d->workspace_bytes, "predicted_ms", json_ms(d->predicted_ms), "ms",
                     json_ms(d->measured_ms), "stages", stages);
}

/* ---- the source of the choice */

typedef struct deciding {
    const char *problem;
    conv_fft_pass set;
    double ms; /* that the plan has from the record */
    bool found, json;
    json_t *object;
} deciding;

static int show_deciding(const conv_fft_tune_record *r, void *user) {
    deciding *d = user;
    if (d->found || r->keep || r->pass != d->set || fabs(r->ms - d->ms) > 1e-9 * d->ms ||
        strcmp(r->problem, d->problem) != 0)
        return 0;
    d->found = true;
    const char *mode = r->tuning == CONV_FFT_TUNE_EXHAUSTIVE ? "exhaustive" : "measure";
    char text[512];
    int used = snprintf(text, sizeof text,
                        "%s: chosen by a tuning record, %.4f ms, the best of %" PRId64 " candidates timed in mode %s",
                        pass_word(d->set), r->ms, r->candidates, mode);
    if (r->direct_ms >= 0)
        snprintf(text + used, sizeof text - (size_t)used, "; the best algorithm of another library took %.4f ms",
                 r->direct_ms);
    if (d->json) {
        d->object =
            json_pack("{s:s, s:s, s:f, s:o, s:I, s:s}", "pass", pass_word(d->set), "chosen_by", "record", "ms", r->ms,
                      "baseline_ms", json_ms(r->direct_ms), "candidates", (json_int_t)r->candidates, "mode", mode);
        return 0;
    }
    printf("  ");
    print_wrapped(text, 2, 4);
    return 0;
}

/* Whether a plan without measured times has other strategies than the cost model chooses. Then they are those of a
 * record of another number of threads. */
static bool is_a_hint(const options *o, conv_fft_context *context, const conv_fft_plan *plan, const layer_line *layer,
                      conv_fft_pass set) {
    char chosen[STRATEGY_BYTES] = "", models[STRATEGY_BYTES] = "";
    conv_fft_plan_options po;
    conv_fft_plan *model = NULL;
    conv_fft_plan_options_init(&po);
    po.tuning = CONV_FFT_TUNE_OFF;
    po.workspace_limit = (uint64_t)o->workspace_limit;
    const bool known = conv_fft_plan_create(context, &layer->problem, &po, &model) == CONV_FFT_SUCCESS &&
                       read_strategies(plan, set, chosen) == CONV_FFT_SUCCESS &&
                       read_strategies(model, set, models) == CONV_FFT_SUCCESS;
    conv_fft_plan_destroy(model);
    return known && strcmp(chosen, models) != 0;
}

static int show_source(const options *o, conv_fft_context *context, const conv_fft_plan *plan, const layer_line *layer,
                       json_t *object) {
    static const conv_fft_pass sets[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD};
    for (int i = 0; i < 2; ++i) {
        conv_fft_description d;
        if (conv_fft_plan_describe(plan, sets[i], &d) != CONV_FFT_SUCCESS)
            return layer_error(layer);
        deciding by = {layer->text, sets[i], d.measured_ms, d.measured_ms < 0, object != NULL, NULL};
        const bool hint = by.found && is_a_hint(o, context, plan, layer, sets[i]);
        if (by.found && !object)
            printf("  %s: chosen by %s\n", pass_word(sets[i]),
                   hint ? "a record of another number of threads"
                        : "the cost model, because no tuning record can be used");
        else if (!by.found && conv_fft_tune_foreach(context, show_deciding, &by) != CONV_FFT_SUCCESS)
            return library_error("no records");
        if (object)
            json_append(object, "chosen",
                        by.object ? by.object
                                  : json_pack("{s:s, s:s}", "pass", pass_word(sets[i]), "chosen_by",
                                              hint ? "record of other threads" : "model"));
    }
    return 0;
}

static void print_nan_reach(const conv_fft_problem *p, const pass_view *forward) {
    int64_t tiles = 1;
    for (int a = 0; a < p->rank; ++a)
        tiles *= forward->d.tiles[a];
    if (!has_basis(forward))
        printf("  A NaN or Inf in x reaches the outputs that read it, and on a GPU some of their neighbours, too.\n");
    else if (tiles == 1)
        printf("  A NaN or Inf in x spreads over all of its sample's outputs of the same group (one tile).\n");
    else
        printf("  A NaN or Inf in x spreads over those of its sample's %" PRId64
               " tiles that read it, in the same group.\n",
               tiles);
}

/* ---- other methods */

/* Why a direct method should be faster than a transform, as README.md has it in "When not to use it". NULL: it should
 * not, or the plan has chosen one. On a CPU the cost model compares both, and no other method is missing. */
static const char *why_direct(const conv_fft_context *context, const conv_fft_problem *p, const pass_view *forward) {
    static const char *const direct[] = {"cudnn", "spatial", "toeplitz", NULL};
    const bool cpu = conv_fft_context_device(context) == CONV_FFT_DEVICE_CPU;
    const bool dense = p->in_channels > p->groups && p->out_channels > p->groups;
    const double ms = forward->d.measured_ms >= 0 ? forward->d.measured_ms : forward->d.predicted_ms;
    char family[64];
    int64_t largest = 1;
    for (int a = 0; a < p->rank; ++a)
        largest = p->kernel[a] > largest ? p->kernel[a] : largest;
    if (cpu || p->batch == 0 || option_choice(family_names(forward->strategies, family), direct) >= 0)
        return NULL;
    if (largest == 1)
        return "a kernel of one point is a matrix product";
    if (largest <= 3 && dense && p->rank <= 2 && (p->dtype == CONV_FFT_FP16 || p->dtype == CONV_FFT_BF16))
        return "in FP16 and BF16, direct and Winograd methods are faster for kernels up to 3x3";
    if (ms >= 0 && ms < 0.02)
        return "the layer takes less than 20 microseconds, and transforms cost more than they save";
    return NULL;
}

static void show_direct(const char *why, json_t *object) {
    if (object) {
        json_object_set_new(object, "direct_method", why ? json_string(why) : json_null());
        return;
    }
    char text[256];
    snprintf(text, sizeof text, "A direct method should be faster: %s. See \"When not to use it\" in README.md.",
             why ? why : "");
    printf("%s", why ? "  " : "");
    if (why)
        print_wrapped(text, 2, 2);
}

/* ---- candidates */

typedef struct listing {
    conv_fft_pass set;
    int64_t shown, max_shown;
    bool verbose;
    json_t *object;                         /* NULL: text */
    char first[REMEMBERED][STRATEGY_BYTES]; /* the first candidates of this set of passes */
} listing;

/* Candidates whose first words are those of an earlier one are printed with the words that are different. */
static const char *alike(const listing *l, const char *strategies) {
    for (int64_t i = 0; i < l->shown - 1 && i < REMEMBERED; ++i)
        if (begin_alike(l->first[i], strategies, SHORT_WORDS))
            return l->first[i];
    return NULL;
}

static void print_candidate(const conv_fft_tune_candidate *c, bool verbose, const char *beside) {
    enum {
        INDENT = 43
    };
    char size[16];
    printf("    ");
    print_ms(13, c->predicted_ms);
    print_ms(12, c->measured_ms);
    printf("%9s", c->workspace_bytes ? size_text(c->workspace_bytes, size) : "-");
    if (verbose)
        putchar('\n');
    print_strategies(c->strategy, verbose ? 6 : 3, verbose ? 6 : INDENT, verbose ? 0 : SHORT_WORDS, beside);
    if (c->verdict[0]) {
        printf("%*s", INDENT, "");
        print_wrapped(c->verdict, INDENT, INDENT);
    }
}

static int show_candidate(const conv_fft_tune_candidate *c, void *user) {
    listing *l = user;
    if (c->pass != l->set) {
        l->set = c->pass;
        l->shown = 0;
        if (!l->object)
            printf("  candidates, %s\n    %13s %12s %9s   strategy, and why it was chosen or not\n", pass_word(c->pass),
                   "predicted ms", "measured ms", "workspace");
    }
    if (l->shown++ >= l->max_shown)
        return interrupted;
    if (l->object)
        json_append(l->object, "candidates",
                    json_pack("{s:s, s:o, s:o, s:o, s:o, s:s}", "pass", pass_word(c->pass), "strategies",
                              json_strategies(c->strategy), "predicted_ms", json_ms(c->predicted_ms), "ms",
                              json_ms(c->measured_ms), "workspace_bytes",
                              c->workspace_bytes ? json_integer((json_int_t)c->workspace_bytes) : json_null(),
                              "verdict", c->verdict));
    else
        print_candidate(c, l->verbose, l->verbose ? NULL : alike(l, c->strategy));
    if (l->shown <= REMEMBERED)
        snprintf(l->first[l->shown - 1], sizeof l->first[0], "%s", c->strategy);
    return interrupted;
}

static int explain_candidates(const options *o, conv_fft_context *context, const layer_line *layer, int64_t count,
                              json_t *object) {
    conv_fft_plan_options po;
    conv_fft_plan_options_init(&po);
    po.workspace_limit = (uint64_t)o->workspace_limit;
    po.tuning = o->mode;
    po.tune_milliseconds = o->milliseconds;
    po.cancel = &interrupted;
    listing l = {.max_shown = count, .verbose = o->verbose, .object = object};
    const conv_fft_status status = conv_fft_tune_candidates(context, &layer->problem, &po, show_candidate, &l);
    return status == CONV_FFT_SUCCESS || (status == CONV_FFT_CANCELLED && interrupted) ? 0 : layer_error(layer);
}

/* ---- the layer */

static int explain_plan(const options *o, conv_fft_context *context, const conv_fft_plan *plan, const layer_line *layer,
                        json_t *object) {
    static const conv_fft_pass passes[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD_DATA, CONV_FFT_BACKWARD_WEIGHTS,
                                           CONV_FFT_BACKWARD};
    int failed = show_source(o, context, plan, layer, object);
    for (size_t i = 0; i < sizeof passes / sizeof passes[0] && !failed && !interrupted; ++i) {
        pass_view v = {.pass = passes[i]};
        if ((o->measure ? conv_fft_profile(plan, v.pass, (int)o->measure, &v.d)
                        : conv_fft_plan_describe(plan, v.pass, &v.d)) != CONV_FFT_SUCCESS ||
            read_strategies(plan, v.pass, v.strategies) != CONV_FFT_SUCCESS) {
            failed = layer_error(layer);
            break;
        }
        if (i == 0)
            show_direct(why_direct(context, &layer->problem, &v), object);
        if (object)
            json_append(object, "passes", json_pass(&v, layer->problem.rank));
        else
            print_pass(&v, layer->problem.rank, o->verbose);
        if (i == 0 && !object)
            print_nan_reach(&layer->problem, &v);
    }
    return failed;
}

static int explain(const options *o, conv_fft_context *context, const layer_line *layer, json_t *document) {
    enum {
        USUAL_CANDIDATES = 10, /* of a problem of the command line */
        TIMED_CANDIDATES = 20
    };
    const int64_t usual = o->mode != CONV_FFT_TUNE_OFF ? TIMED_CANDIDATES : layer->file ? 0 : USUAL_CANDIDATES;
    const int64_t candidates = o->candidates ? o->candidates : usual;
    conv_fft_plan_options po;
    conv_fft_plan_options_init(&po);
    po.workspace_limit = (uint64_t)o->workspace_limit;
    conv_fft_plan *plan;
    if (conv_fft_plan_create(context, &layer->problem, &po, &plan) != CONV_FFT_SUCCESS)
        return layer_error(layer);
    json_t *object = document ? json_layer(document, layer) : NULL;
    if (!object)
        printf("%s%s%s\n", layer->name, layer->name[0] ? " " : "", layer->text);
    int failed = explain_plan(o, context, plan, layer, object);
    conv_fft_plan_destroy(plan);
    if (candidates && !failed && !interrupted)
        failed = explain_candidates(o, context, layer, candidates, object);
    return failed;
}

int explain_command(const options *o, char **words, int count) {
    if (o->milliseconds && o->mode == CONV_FFT_TUNE_OFF)
        return usage_error("explain measures for --milliseconds only with --mode", NULL);
    return for_each_layer(o, "explain", words, count, explain);
}
