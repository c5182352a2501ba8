/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/search/elimination.h"

#include "autotune/search/noise.h"
#include "conv/plan/family.h"
#include "core/clock.h"
#include "core/thread_pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_MEASURED = 5,     /* candidates that mode `measure` times; more gain little (docs/tuning.md) */
    MAX_EXHAUSTIVE = 128, /* candidates that mode `exhaustive` times */
    ROUNDS = 7,
    SHORT_ROUNDS = 15,  /* if the best time is below CF_ELIMINATION_SHORT */
    REPEATS = 3,        /* of a run in which the process had less than one processor */
    EXTRA_ROUNDS = 300, /* of candidates whose runs were disturbed */
    CPU_FLUSH_BYTES = 32 << 20
};

/* Candidates whose prediction is this many times the best one are not timed: the model errs by less. */
#define HOPELESS 3.0
/* Candidates slower than the best by these factors drop out: after one or two runs, and after more. */
#define FAR_BEHIND 1.7
#define BEHIND 1.15

static const char out_of_time[] = "not timed: the time was up";
const char cf_elimination_untried[] = "not timed: the model expects others to be faster";

bool cf_elimination_is_late(const cf_elimination *r) { return cf_clock_seconds() > r->end; }

conv_fft_status cf_elimination_go_on(cf_elimination *r) {
    const cf_interruption *interruption = r->job->interruption;
    if (interruption && pthread_equal(pthread_self(), r->searcher) && !atomic_load(&r->stopped))
        atomic_store(&r->stopped, interruption->wanted(interruption->user));
    if (r->job->cancel && *r->job->cancel)
        atomic_store(&r->stopped, true);
    return atomic_load(&r->stopped) ? cf_fail(CONV_FFT_CANCELLED, "the search was ended before it had decided")
                                    : CONV_FFT_SUCCESS;
}

/* ---- candidates that take part */

/* Move the candidates that the mode times to the front, and return their number. An exhaustive search also times all
 * candidates of a quick one. */
static size_t choose_timed(const cf_tuning_job *job, conv_fft_tuning mode, cf_candidates *list) {
    const double best = list->count ? list->items[0].predicted : 0.0;
    const size_t selected = cf_candidates_select(job, list, MAX_MEASURED);
    size_t unknown = 0, count = selected;
    if (mode == CONV_FFT_TUNE_MEASURE)
        return selected;
    for (size_t i = selected; i < list->count; ++i) /* all candidates without predictions are timed */
        unknown += list->items[i].predicted == HUGE_VAL;
    for (size_t i = selected; i < list->count; ++i) {
        const cf_candidate moved = list->items[i];
        const bool known = moved.predicted < HUGE_VAL;
        if (known && (moved.predicted > HOPELESS * best || count + unknown >= MAX_EXHAUSTIVE))
            continue;
        memmove(&list->items[count + 1], &list->items[count], (i - count) * sizeof moved);
        list->items[count++] = moved;
    }
    return count;
}

static uint64_t workspace_of(const conv_fft_plan *plan, int passes) {
    uint64_t bytes = passes & CONV_FFT_FORWARD ? plan->workspace[CONV_FFT_FORWARD].bytes : 0;
    const int backward = passes & CONV_FFT_BACKWARD;
    if (backward && plan->workspace[backward].bytes > bytes)
        bytes = plan->workspace[backward].bytes;
    return bytes;
}

bool cf_elimination_held_bytes(const cf_elimination *r, const conv_fft_plan *plan, conv_fft_operand operand,
                               size_t *max_bytes) {
    if (!(r->job->keep & operand))
        return true;
    const int64_t bytes = cf_plan_spectrum_bytes(plan, operand);
    if (bytes == -1) /* no pass of the set reads it */
        return true;
    if (bytes > (int64_t)*max_bytes)
        *max_bytes = (size_t)bytes;
    return bytes >= 0;
}

void cf_elimination_drop(cf_elimination *r, size_t i, const char *verdict) {
    cf_candidate *c = &r->list->items[i];
    cf_plan_destroy(c->plan);
    c->plan = NULL;
    c->verdict = verdict;
    const cf_candidate dropped = *c;
    memmove(c, c + 1, (r->count - i - 1) * sizeof *c);
    r->list->items[--r->count] = dropped;
}

/* A plan to make. */
typedef struct order {
    cf_elimination *elimination;
    size_t place;    /* of the candidate in its list */
    const char *why; /* why the candidate cannot take part; NULL: it can */
} order;

typedef struct planning {
    order *orders;
    double half; /* a time of cf_clock_seconds(): compiling may take half of the time */
} planning;

static conv_fft_status make_one_plan(void *user, int i) {
    const planning *p = user;
    order *o = &p->orders[i];
    const cf_tuning_job *job = o->elimination->job;
    cf_candidate *c = &o->elimination->list->items[o->place];
    uint64_t smallest = 0;
    CF_FORWARD(cf_elimination_go_on(p->orders[0].elimination)); /* one interruption ends all searches */
    if (o->place >= 2 && cf_clock_seconds() > p->half) {
        o->why = out_of_time;
        return CONV_FFT_SUCCESS;
    }
    const conv_fft_status status = cf_plan_create(job->layer, job->context->device, job->passes, c->strategy, false,
                                                  job->workspace_limit, &smallest, &c->plan);
    if (status == CONV_FFT_OUT_OF_MEMORY)
        return status;
    if (status != CONV_FFT_SUCCESS)
        o->why = smallest ? "it needs more workspace than is allowed" : "no plan can be made of it";
    return CONV_FFT_SUCCESS;
}

/* Enlarge the sizes of the benchmark buffers for the candidate. Returns NULL, or why it cannot take part. */
static const char *take_sizes(cf_elimination *r, cf_candidate *c) {
    cf_bench_buffers_sizes *sizes = &r->sizes;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if (r->job->passes & 1 << pass)
            c->strategy[pass] = c->plan->pass[pass].strategy;
    }
    c->workspace = workspace_of(c->plan, r->job->passes);
    if (!cf_elimination_held_bytes(r, c->plan, CONV_FFT_OPERAND_X, &sizes->x_spectrum) ||
        !cf_elimination_held_bytes(r, c->plan, CONV_FFT_OPERAND_W, &sizes->w_spectrum))
        return "its passes share no spectrum that could be kept";
    sizes->workspace = c->workspace > sizes->workspace ? (size_t)c->workspace : sizes->workspace;
    return NULL;
}

/* List the candidates without plans: the best ones of all eliminations, then the second ones, and so on. Returns their
 * number. */
static size_t give_orders(cf_elimination *const eliminations[], int count, order *orders) {
    size_t given = 0;
    for (size_t next = 0, before = SIZE_MAX; given != before; ++next) {
        before = given;
        for (int i = 0; i < count; ++i)
            if (eliminations[i]->planned + next < eliminations[i]->count)
                orders[given++] = (order){eliminations[i], eliminations[i]->planned + next, NULL};
    }
    return given;
}

/* Make as many plans as the time allows. */
static conv_fft_status make_plans(cf_elimination *const eliminations[], int count, double half) {
    size_t capacity = 1;
    for (int i = 0; i < count; ++i)
        capacity += eliminations[i]->count - eliminations[i]->planned;
    planning p = {calloc(capacity, sizeof *p.orders), half};
    if (!p.orders)
        return cf_fail_memory(capacity * sizeof *p.orders, "a search");
    const size_t given = give_orders(eliminations, count, p.orders);
    conv_fft_status status = CONV_FFT_SUCCESS;
    if (eliminations[0]->job->context->gpu)
        status = cf_workers_run((int)given, make_one_plan, &p);
    for (size_t i = 0; i < given && !eliminations[0]->job->context->gpu && status == CONV_FFT_SUCCESS; ++i)
        status = make_one_plan(&p, (int)i);
    for (size_t i = 0; i < given && status == CONV_FFT_SUCCESS; ++i) {
        cf_elimination *r = p.orders[i].elimination;
        const char *why = p.orders[i].why ? p.orders[i].why : take_sizes(r, &r->list->items[r->planned]);
        if (why)
            cf_elimination_drop(r, r->planned, why);
        else
            ++r->planned;
    }
    free(p.orders);
    return status;
}

/* Replace candidates that cannot take part by the next best ones. Returns whether some candidates need plans. */
static bool fill_up(cf_elimination *r) {
    for (size_t i = r->count; i < r->list->count && r->count < r->wanted; ++i) {
        const cf_candidate moved = r->list->items[i];
        if (moved.verdict != cf_elimination_untried || moved.predicted == HUGE_VAL)
            continue;
        memmove(&r->list->items[r->count + 1], &r->list->items[r->count], (i - r->count) * sizeof moved);
        r->list->items[r->count++] = moved;
    }
    return r->count > r->planned;
}

conv_fft_status cf_eliminations_plan(cf_elimination *const eliminations[], int count, conv_fft_tuning mode,
                                     double end) {
    const double begin = cf_clock_seconds(), half = begin + (end - begin) / 2;
    bool more = count > 0;
    for (int i = 0; i < count; ++i) {
        cf_elimination *r = eliminations[i];
        r->searcher = pthread_self();
        r->count = choose_timed(r->job, mode, r->list);
        r->wanted = mode == CONV_FFT_TUNE_MEASURE && r->count > MAX_MEASURED ? MAX_MEASURED : r->count;
    }
    while (more) {
        CF_FORWARD(make_plans(eliminations, count, half));
        more = false;
        for (int i = 0; i < count && mode == CONV_FFT_TUNE_MEASURE && cf_clock_seconds() < half; ++i)
            more = fill_up(eliminations[i]) || more;
    }
    return CONV_FFT_SUCCESS;
}

/* Make the buffers. If the memory is too small for all workspaces, candidates with the largest one drop out. */
static conv_fft_status make_buffers(cf_elimination *r) {
    cf_bench_buffers_sizes *sizes = &r->sizes;
    const cf_gpu *gpu = r->job->context->gpu;
    sizes->flush = gpu ? 2 * (size_t)gpu->properties.l2_bytes : CPU_FLUSH_BYTES;
    for (;;) {
        const conv_fft_status status =
            cf_bench_buffers_create(r->job->context->device, gpu, r->job->layer, r->job->passes, sizes, &r->buffers);
        if (status == CONV_FFT_OUT_OF_MEMORY && sizes->flush) {
            sizes->flush = 0; /* tensors that fill the memory leave nothing in a cache anyway */
            continue;
        }
        if (status != CONV_FFT_OUT_OF_MEMORY || r->count <= 1)
            return status;
        const size_t largest = sizes->workspace;
        sizes->workspace = 0;
        for (size_t i = 0; i < r->count;) {
            const size_t own = (size_t)r->list->items[i].workspace;
            if (own == largest && r->count > 1) {
                cf_elimination_drop(r, i, "not timed: the device has too little memory for its workspace");
                continue;
            }
            sizes->workspace = own > sizes->workspace ? own : sizes->workspace;
            ++i;
        }
        if (sizes->workspace == largest)
            return status;
    }
}

/* ---- the rounds */

static double median_of(const cf_candidate *c) { return cf_runs_median(c->times, c->runs); }

static double best_median(const cf_elimination *r) {
    double best = HUGE_VAL;
    for (size_t i = 0; i < r->count; ++i)
        best = r->list->items[i].runs ? fmin(best, median_of(&r->list->items[i])) : best;
    return best;
}

static void drop_slow(cf_elimination *r, double factor) {
    const double best = best_median(r);
    for (size_t i = 0; i < r->count;) {
        cf_candidate *c = &r->list->items[i];
        c->measured = median_of(c);
        if (cf_runs_seconds(c->times, c->runs) <= factor * best || r->count <= 2)
            ++i;
        else
            cf_elimination_drop(r, i, "slower");
    }
}

/* A device error of another library's algorithm need not mean that the device failed. If it did, the next candidate
 * fails too. */
bool cf_elimination_spares(const cf_elimination *r, const cf_candidate *c, conv_fft_status status) {
    bool foreign = false;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        foreign = foreign || ((r->job->passes & 1 << pass) && c->strategy[pass].family->library);
    }
    return status == CONV_FFT_NOT_SUPPORTED || status == CONV_FFT_LIBRARY_MISSING ||
           (foreign && status == CONV_FFT_DEVICE_ERROR);
}

/* Run each candidate once, to warm up and to see whether it runs at all. */
static conv_fft_status warm_up(cf_elimination *r) {
    for (size_t i = 0; i < r->count;) {
        if (i >= 2 && cf_elimination_is_late(r)) {
            cf_elimination_drop(r, i, out_of_time);
            continue;
        }
        CF_FORWARD(cf_elimination_go_on(r));
        const conv_fft_status status = cf_bench_buffers_run(&r->buffers, r->list->items[i].plan);
        if (status == CONV_FFT_SUCCESS)
            ++i;
        else if (cf_elimination_spares(r, &r->list->items[i], status))
            cf_elimination_drop(r, i, "it does not run");
        else
            return status;
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_elimination_time(cf_elimination *r, const cf_bench_buffers *buffers, const conv_fft_plan *plan,
                                    cf_run_time *time) {
    CF_FORWARD(cf_bench_buffers_time(buffers, plan, time));
    for (int i = 0; i < REPEATS && cf_run_was_interrupted(time) && !cf_elimination_is_late(r); ++i) {
        cf_run_time again;
        CF_FORWARD(cf_elimination_go_on(r));
        CF_FORWARD(cf_bench_buffers_time(buffers, plan, &again));
        if (again.seconds < time->seconds)
            *time = again;
    }
    return CONV_FFT_SUCCESS;
}

/* Whether a candidate may be the fastest, but its runs were disturbed. */
static bool is_in_doubt(const cf_candidate *c, double best) {
    return cf_runs_are_disturbed(c->times, c->runs) && cf_runs_seconds(c->times, c->runs) <= best;
}

/* Repeat disturbed runs, the slowest first. */
static conv_fft_status repeat_disturbed(cf_elimination *r) {
    bool more = true;
    for (int round = 0; round < EXTRA_ROUNDS && more; ++round) {
        more = false;
        for (size_t i = 0; i < r->count && !cf_elimination_is_late(r); ++i) {
            cf_candidate *c = &r->list->items[i];
            cf_run_time again;
            if (!is_in_doubt(c, best_median(r)))
                continue;
            CF_FORWARD(cf_elimination_go_on(r));
            CF_FORWARD(cf_elimination_time(r, &r->buffers, c->plan, &again));
            cf_runs_improve(c->times, c->runs, &again);
            c->measured = median_of(c);
            more = true;
        }
    }
    return CONV_FFT_SUCCESS;
}

bool cf_elimination_is_disturbed(const cf_elimination *r, double *slowest, double *fastest) {
    const double best = best_median(r);
    for (size_t i = 0; i < r->count; ++i) {
        const cf_candidate *c = &r->list->items[i];
        if (!is_in_doubt(c, best))
            continue;
        *slowest = 0.0;
        *fastest = cf_runs_fastest(c->times, c->runs);
        for (int k = 0; k < c->runs; ++k)
            *slowest = fmax(*slowest, c->times[k].seconds);
        return true;
    }
    return false;
}

conv_fft_status cf_elimination_run(cf_elimination *r) {
    CF_FORWARD(warm_up(r));
    CF_FORWARD(cf_elimination_combine(r));
    for (int round = 0; r->count > 0 && round < (best_median(r) < CF_ELIMINATION_SHORT ? SHORT_ROUNDS : ROUNDS);
         ++round) {
        const double began = cf_clock_seconds();
        for (size_t i = 0; i < r->count; ++i) {
            cf_candidate *c = &r->list->items[i];
            if (round == 0 && i >= 2 && cf_elimination_is_late(r)) {
                cf_elimination_drop(r, i--, out_of_time);
                continue;
            }
            CF_FORWARD(cf_elimination_go_on(r));
            CF_FORWARD(cf_elimination_time(r, &r->buffers, c->plan, &c->times[c->runs]));
            ++c->runs;
        }
        drop_slow(r, round < 2 ? FAR_BEHIND : BEHIND);
        /* A round that takes as long must fit into the time that is left. */
        const double now = cf_clock_seconds();
        if (now + (now - began) > r->end)
            break;
    }
    return repeat_disturbed(r);
}

conv_fft_status cf_elimination_open(cf_elimination *r, double end) {
    r->end = end;
    return r->count > 0 ? make_buffers(r) : CONV_FFT_SUCCESS;
}

void cf_elimination_close(cf_elimination *r) {
    for (size_t i = 0; i < r->list->count; ++i) {
        cf_plan_destroy(r->list->items[i].plan);
        r->list->items[i].plan = NULL;
    }
    cf_bench_buffers_destroy(&r->buffers);
}
