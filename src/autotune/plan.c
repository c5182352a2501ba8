/* SPDX-License-Identifier: Apache-2.0 */
/* Making a plan. The strategy of a pass is named by the caller, or comes from a record, a measured search or the
 * model. */
#include "autotune/model/choose.h"
#include "autotune/records/library_versions.h"
#include "autotune/records/record_store.h"
#include "autotune/search/search.h"
#include "autotune/tune.h"
#include "conv/plan/family.h"
#include "core/clock.h"
#include "core/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The state of a plan before it is made. */
typedef struct planning {
    conv_fft_context *context;
    const conv_fft_plan_options *options;
    const cf_interruption *interruption;
    cf_layer layer;
    int chosen; /* passes that have a strategy */
    cf_strategy strategy[CF_PASS_COUNT];
    int tuned;         /* passes whose strategy is from a record or a search */
    int hits;          /* records that were found */
    cf_record_key key; /* of the last record that was found */
    double seconds[CONV_FFT_BACKWARD + 1];
    double end; /* of measuring: a time of cf_clock_seconds() */
} planning;

static conv_fft_status read_forced(planning *p) {
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        const char *line = p->options->strategy[pass];
        if (!line || !(p->options->passes & 1 << pass))
            continue;
        CF_FORWARD(cf_strategy_parse(line, p->layer.problem.rank, &p->strategy[pass]));
        cf_strategy_resolve(&p->layer, pass, &p->strategy[pass]);
        if (p->strategy[pass].family->fields & 1u << CF_FIELD_KEEP)
            p->strategy[pass].keep |= p->options->keep;
        p->chosen |= 1 << pass;
    }
    return CONV_FFT_SUCCESS;
}

/* Both gradients are one set, since they share the transform of gy. All passes are one set if spectra are kept. */
int cf_tuned_together(int passes, int keep, int sets[2]) {
    int count = 0;
    if (keep && passes) {
        sets[count++] = passes;
        return count;
    }
    if (passes & CONV_FFT_FORWARD)
        sets[count++] = CONV_FFT_FORWARD;
    if (passes & CONV_FFT_BACKWARD)
        sets[count++] = passes & CONV_FFT_BACKWARD;
    return count;
}

static cf_tuning_job job_of(const planning *p, int set) {
    return (cf_tuning_job){.context = p->context,
                           .layer = &p->layer,
                           .passes = set,
                           .keep = p->options->keep,
                           .workspace_limit = p->options->workspace_limit,
                           .own_kernels = p->options->own_kernels != 0,
                           .interruption = p->interruption,
                           .cancel = p->options->cancel};
}

/* ---- records */

/* Read the strategies of a record. False: one is unknown, does not run here, or needs too much workspace. */
static bool read_record(const planning *p, const cf_record *record, cf_strategy strategy[CF_PASS_COUNT]) {
    const uint64_t limit = p->options->workspace_limit;
    if (limit && record->workspace_bytes > limit)
        return false;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        const char *why;
        cf_strategy *s = &strategy[pass];
        if (!(record->key.passes & 1 << pass))
            continue;
        if (cf_strategy_parse(record->strategy[pass], p->layer.problem.rank, s) != CONV_FFT_SUCCESS)
            return false;
        cf_strategy_resolve(&p->layer, pass, s);
        const cf_family *family = s->family;
        if ((p->options->own_kernels && family->baseline) || !family->feasible(&p->layer, pass, s, &why) ||
            !family->runs_on(p->context->device, &p->layer, pass, s, &why))
            return false;
    }
    char library[CF_RECORD_LIBRARY_BYTES];
    cf_libraries_of(p->context, record->key.passes, strategy, library);
    return strcmp(library, record->library) == 0;
}

static void adopt(planning *p, int set, const cf_record *record, const cf_strategy strategy[CF_PASS_COUNT]) {
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if (set & 1 << pass)
            p->strategy[pass] = strategy[pass];
    }
    p->chosen |= set;
    p->tuned |= set;
    if (set <= CONV_FFT_BACKWARD && record->key.passes == set)
        p->seconds[set] = 1e-3 * record->ms;
}

enum {
    MAX_RECORDS = 4 /* records that may have strategies for one set of passes */
};

/*
 * Find the records with strategies for a set of passes. First records of the limit's class, then records without a
 * limit. For one gradient, if nothing will be measured, then records of both gradients. Records that were made in this
 * process or given to it come before all records of files.
 */
static conv_fft_status find_records(planning *p, const cf_record_key *key, cf_record found[MAX_RECORDS], int *count) {
    const bool one_gradient = key->passes == CONV_FFT_BACKWARD_DATA || key->passes == CONV_FFT_BACKWARD_WEIGHTS;
    const int sets = one_gradient && p->options->tuning < CONV_FFT_TUNE_MEASURE ? 2 : 1;
    *count = 0;
    for (int i = 0; i < 2 * sets; ++i) {
        cf_record_key tried = *key;
        cf_record record;
        bool there;
        tried.passes = i < 2 ? key->passes : CONV_FFT_BACKWARD;
        if (i % 2 == 1 && key->workspace_class == 0)
            continue;
        tried.workspace_class = i % 2 == 0 ? key->workspace_class : 0;
        CF_FORWARD(cf_tuner_find(p->context->tuner, &tried, &record, &there));
        if (!there)
            continue;
        int at = (*count)++;
        for (; at > 0 && found[at - 1].rank < record.rank; --at)
            found[at] = found[at - 1];
        found[at] = record;
    }
    return CONV_FFT_SUCCESS;
}

/* Find the first usable record. *event says whether there is one. */
static conv_fft_status look_up_key(planning *p, const cf_record_key *key, cf_record *record, cf_tuner_event *event,
                                   cf_strategy strategy[CF_PASS_COUNT]) {
    cf_record found[MAX_RECORDS];
    int count;
    CF_FORWARD(find_records(p, key, found, &count));
    *event = count > 0 ? CF_TUNER_UNUSABLE : CF_TUNER_MISS;
    for (int i = 0; i < count && *event != CF_TUNER_HIT; ++i) {
        if (read_record(p, &found[i], strategy)) {
            *record = found[i];
            *event = CF_TUNER_HIT;
        }
    }
    return CONV_FFT_SUCCESS;
}

/*
 * The same, and for a layer with FP32 weights that has no usable record also among those of 16-bit weights. Only the
 * transforms of w read FP32 weights. So a strategy that is fast with 16-bit weights is fast here, too.
 */
static conv_fft_status look_up(planning *p, const cf_record_key *key, cf_record *record, cf_tuner_event *event,
                               cf_strategy strategy[CF_PASS_COUNT]) {
    CF_FORWARD(look_up_key(p, key, record, event, strategy));
    if (*event == CF_TUNER_HIT || !p->layer.problem.fp32_weights || p->options->tuning >= CONV_FFT_TUNE_MEASURE)
        return CONV_FFT_SUCCESS;
    conv_fft_problem problem = p->layer.problem;
    cf_layer layer;
    cf_record_key other;
    cf_tuner_event other_event;
    problem.fp32_weights = 0;
    problem.weight_grad_dtype = CONV_FFT_DTYPE_SAME;
    CF_FORWARD(cf_layer_make(&problem, &layer));
    CF_FORWARD(cf_record_key_make(&layer, key->passes, p->options->keep, p->options->workspace_limit, &other));
    CF_FORWARD(look_up_key(p, &other, record, &other_event, strategy));
    if (other_event == CF_TUNER_HIT)
        *event = CF_TUNER_HIT;
    return CONV_FFT_SUCCESS;
}

/* For a set of passes without a record: take the strategies of the nearest number of threads, if there is a record of
 * it. They are a better guess than the cost model's, but the set counts as not measured. */
static conv_fft_status adopt_hint(planning *p, const cf_record_key *key) {
    cf_record_key tried = *key;
    cf_strategy strategy[CF_PASS_COUNT];
    memset(strategy, 0, sizeof strategy);
    for (int i = 0; i < (key->workspace_class ? 2 : 1); ++i) {
        cf_record record;
        bool there;
        tried.workspace_class = i == 0 ? key->workspace_class : 0;
        CF_FORWARD(cf_tuner_find_hint(p->context->tuner, &tried, &record, &there));
        if (!there || !read_record(p, &record, strategy))
            continue;
        adopt(p, key->passes, &record, strategy);
        if (key->passes <= CONV_FFT_BACKWARD)
            p->seconds[key->passes] = 0.0;
        cf_log(p->context->log_level, CONV_FFT_LOG_INFO,
               "%s of %.300s: the strategies of a record of another number of threads", cf_pass_text(key->passes),
               key->problem);
        break;
    }
    return CONV_FFT_SUCCESS;
}

/* ---- searches */

/* The searches for sets of passes that have no record, or are measured again. */
typedef struct sought {
    int count;
    cf_tuning_search search[2];
    cf_record_key key[2];
} sought;

static void end_searches(sought *s) {
    for (int i = 0; i < s->count; ++i)
        cf_search_end(&s->search[i]);
}

/* An equal share of the time that is left. */
static double share_of(const planning *p, int sets) { return fmax(0.0, p->end - cf_clock_seconds()) / sets; }

/* The seconds for the next search: an equal share of the time that is left, but at least the share that every search
 * had when the timing began. A search that takes longer than its share takes nothing from the others. */
static double seconds_of(const planning *p, double share, int sets_left) { return fmax(share, share_of(p, sets_left)); }

/* Log that a search has not decided: the layer, the reason, and what decides instead. */
static void warn(const planning *p, const cf_record_key *key, const char *why) {
    cf_log(p->context->log_level, CONV_FFT_LOG_WARNING, "tuning %s of %.300s: %.500s; %s", cf_pass_text(key->passes),
           key->problem, why,
           (p->chosen & key->passes) == key->passes ? "the older record stays" : "the cost model decides");
}

static conv_fft_status search(planning *p, const cf_record_key *key, double seconds, cf_tuning_search *s) {
    cf_record record;
    CF_FORWARD(cf_search_run(s, seconds));
    if (s->decided) {
        CF_FORWARD(cf_search_record(s, p->options->tuning, &record));
        adopt(p, s->job.passes, &record, s->list.items[0].strategy);
        if (cf_tuner_put(p->context->tuner, &record) != CONV_FFT_SUCCESS)
            cf_log(p->context->log_level, CONV_FFT_LOG_WARNING, "tuning: %s; this result is not kept",
                   conv_fft_last_error());
    } else if (s->list.count > 0)
        warn(p, key, s->why);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status search_all(planning *p, sought *s) {
    if (s->count == 0)
        return CONV_FFT_SUCCESS;
    const conv_fft_status planned = cf_searches_plan(s->search, s->count, p->options->tuning, p->end);
    const double share = share_of(p, s->count);
    for (int i = 0; i < s->count; ++i) {
        const conv_fft_status status = planned == CONV_FFT_SUCCESS
                                           ? search(p, &s->key[i], seconds_of(p, share, s->count - i), &s->search[i])
                                           : planned;
        if (status != CONV_FFT_OUT_OF_MEMORY)
            CF_FORWARD(status);
        else
            warn(p, &s->key[i], conv_fft_last_error());
    }
    return CONV_FFT_SUCCESS;
}

/* Adopt the strategies of a record. If the set is to be measured, begin a search. */
static conv_fft_status tune_set(planning *p, int set, sought *s) {
    const conv_fft_tuning mode = p->options->tuning;
    cf_record_key key;
    cf_record record;
    cf_tuner_event event;
    cf_strategy strategy[CF_PASS_COUNT];
    memset(strategy, 0, sizeof strategy);
    CF_FORWARD(cf_record_key_make(&p->layer, set, p->options->keep, p->options->workspace_limit, &key));
    CF_FORWARD(look_up(p, &key, &record, &event, strategy));
    cf_tuner_count(p->context->tuner, &key, event);
    if (event == CF_TUNER_HIT) {
        adopt(p, set, &record, strategy);
        p->key = key;
        ++p->hits;
    }
    if (event != CF_TUNER_HIT && mode < CONV_FFT_TUNE_MEASURE)
        CF_FORWARD(adopt_hint(p, &key));
    const bool enough = event == CF_TUNER_HIT && record.mode >= mode && !p->options->tune_again;
    if (mode < CONV_FFT_TUNE_MEASURE || enough)
        return CONV_FFT_SUCCESS;
    if (!p->options->tune_again) { /* another process may have measured the set by now */
        CF_FORWARD(cf_tuner_refresh(p->context->tuner));
        CF_FORWARD(look_up(p, &key, &record, &event, strategy));
        if (event == CF_TUNER_HIT) {
            adopt(p, set, &record, strategy);
            if (record.mode >= mode)
                return CONV_FFT_SUCCESS;
        }
    }
    const cf_tuning_job job = job_of(p, set);
    s->key[s->count] = key;
    const conv_fft_status status = cf_search_begin(&job, &s->search[s->count++]);
    if (status != CONV_FFT_OUT_OF_MEMORY)
        return status;
    warn(p, &key, conv_fft_last_error());
    cf_search_end(&s->search[--s->count]);
    return CONV_FFT_SUCCESS;
}

static double default_seconds(conv_fft_tuning mode) { return mode == CONV_FFT_TUNE_MEASURE ? 10.0 : HUGE_VAL; }

static conv_fft_status tune(planning *p) {
    const conv_fft_plan_options *o = p->options;
    int sets[2];
    if (o->tuning == CONV_FFT_TUNE_OFF || p->layer.batch == 0 || !p->context->tuner)
        return CONV_FFT_SUCCESS;
    CF_FORWARD(cf_layer_check_written(&p->layer, o->passes));
    const int count = cf_tuned_together(o->passes & ~p->chosen, o->keep, sets);
    p->end =
        cf_clock_seconds() + (o->tune_milliseconds ? 1e-3 * (double)o->tune_milliseconds : default_seconds(o->tuning));
    sought s = {.count = 0};
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int i = 0; i < count && status == CONV_FFT_SUCCESS; ++i)
        status = tune_set(p, sets[i], &s);
    if (status == CONV_FFT_SUCCESS)
        status = search_all(p, &s);
    end_searches(&s);
    return status;
}

/* ---- the plan */

/* Whether the passes can share the spectra that the caller keeps. */
static bool keeps(const conv_fft_plan *plan, int keep) {
    return (!(keep & CONV_FFT_OPERAND_X) || cf_plan_spectrum_bytes(plan, CONV_FFT_OPERAND_X) != -2) &&
           (!(keep & CONV_FFT_OPERAND_W) || cf_plan_spectrum_bytes(plan, CONV_FFT_OPERAND_W) != -2);
}

static conv_fft_status make(planning *p, conv_fft_plan **plan) {
    conv_fft_plan *made = NULL;
    const conv_fft_status status = cf_choose_plan(p->context, &p->layer, p->options, p->chosen, p->strategy, &made);
    if (status == CONV_FFT_SUCCESS && (!p->tuned || keeps(made, p->options->keep))) {
        memcpy(made->tuned_seconds, p->seconds, sizeof made->tuned_seconds);
        made->tuned = p->tuned;
        made->given = p->chosen & ~p->tuned;
        *plan = made;
        return status;
    }
    cf_plan_destroy(made);
    if (!p->tuned || status == CONV_FFT_OUT_OF_MEMORY)
        return status;
    /* A record is only a hint, so the cost model chooses instead, also if a library does not start here. If the device
     * itself has failed, the next try fails too. */
    if (status != CONV_FFT_SUCCESS)
        cf_log(p->context->log_level, CONV_FFT_LOG_WARNING,
               "tuning: the measured strategies cannot be used here: %s; the cost model decides",
               conv_fft_last_error());
    for (; p->hits > 0; --p->hits)
        cf_tuner_count(p->context->tuner, &p->key, CF_TUNER_WITHDRAWN);
    p->chosen &= ~p->tuned;
    p->tuned = 0;
    memset(p->seconds, 0, sizeof p->seconds);
    return make(p, plan);
}

/* The alignment shift depends on the number of tiles, so passes with different tiles could not share a kept spectrum
 * of w. CPUs need no alignment. */
static conv_fft_status make_layer(planning *p, const conv_fft_problem *problem) {
    CF_FORWARD(cf_layer_make(problem, &p->layer));
    if (!p->context->device->is_gpu || (p->options->keep & CONV_FFT_OPERAND_W))
        p->layer.axis[2].max_vector = 0;
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_autotune_plan(conv_fft_context *context, const conv_fft_problem *problem,
                                 const conv_fft_plan_options *options, const cf_interruption *interruption,
                                 conv_fft_plan **plan) {
    planning p;
    memset(&p, 0, sizeof p);
    p.context = context;
    p.options = options;
    p.interruption = interruption;
    CF_FORWARD(make_layer(&p, problem));
    CF_FORWARD(context->device->ops->prepare(context->device));
    CF_FORWARD(read_forced(&p));
    CF_FORWARD(tune(&p));
    return make(&p, plan);
}

/* ---- showing the candidates */

static conv_fft_status show(const cf_tuning_search *s, cf_candidate_visit visit, void *user) {
    for (size_t i = 0; i < s->list.count; ++i) {
        const char *verdict = s->list.items[i].verdict ? s->list.items[i].verdict : "";
        if (!s->decided && i == 0)
            verdict = *s->why ? s->why : "the cost model's first";
        if (visit(&s->job, &s->list.items[i], verdict, user) != 0)
            return cf_fail(CONV_FFT_CANCELLED, "visit ended the walk over the candidates");
    }
    return CONV_FFT_SUCCESS;
}

static conv_fft_status show_all(const planning *p, const int sets[2], int count, sought *s, cf_candidate_visit visit,
                                void *user) {
    const conv_fft_tuning mode = p->options->tuning;
    while (s->count < count) {
        const cf_tuning_job job = job_of(p, sets[s->count]);
        CF_FORWARD(cf_search_begin(&job, &s->search[s->count++]));
    }
    if (mode >= CONV_FFT_TUNE_MEASURE)
        CF_FORWARD(cf_searches_plan(s->search, count, mode, p->end));
    const double share = share_of(p, count);
    for (int i = 0; i < count; ++i) {
        if (mode >= CONV_FFT_TUNE_MEASURE)
            CF_FORWARD(cf_search_run(&s->search[i], seconds_of(p, share, count - i)));
        CF_FORWARD(show(&s->search[i], visit, user));
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_autotune_candidates(conv_fft_context *context, const conv_fft_problem *problem,
                                       const conv_fft_plan_options *options, cf_candidate_visit visit, void *user) {
    planning p;
    int sets[2];
    memset(&p, 0, sizeof p);
    p.context = context;
    p.options = options;
    CF_FORWARD(make_layer(&p, problem));
    CF_REQUIRE(p.layer.batch > 0, "in: the batch is 0; candidates need at least 1 sample");
    CF_FORWARD(cf_layer_check_written(&p.layer, options->passes));
    CF_FORWARD(context->device->ops->prepare(context->device));
    p.end = cf_clock_seconds() +
            (options->tune_milliseconds ? 1e-3 * (double)options->tune_milliseconds : default_seconds(options->tuning));
    const int count = cf_tuned_together(options->passes, options->keep, sets);
    sought s = {.count = 0};
    const conv_fft_status status = show_all(&p, sets, count, &s, visit, user);
    end_searches(&s);
    return status;
}
