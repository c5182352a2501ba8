/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of a case are measured one after the other. The implementations of a pass take turns. */
#include "conv/case.h"

#include "common/check.h"
#include "common/message.h"
#include "conv/baselines/cudnn.h"
#include "conv/baselines/direct_loops.h"
#include "conv/baselines/onednn.h"
#include "conv/baselines/ours.h"

#include <stdio.h>
#include <string.h>

typedef bool opener(bench_impl *impl, const bench_job *job);
static opener *const cpu_baselines[] = {
    bench_direct_open,
    bench_onednn_open,
    bench_onednn_blocked_open,
    NULL,
};
static opener *const gpu_baselines[] = {bench_cudnn_open, NULL};
enum {
    MAX_IMPLS = 9 + sizeof cpu_baselines / sizeof cpu_baselines[0]
};

void bench_spend(double *account, double *from) {
    const double now = bench_now_ms();
    *account += now - *from;
    *from = now;
}

static bool is_right(const bench_job *job, double error) { return error <= job->class->max_error; }

/* Run each implementation once with outputs full of NaN, and take the error of its result. This also warms it up. */
static bool warm_up(const bench_job *job, bench_impl *impls, size_t count, double *errors, bool *wrong) {
    for (size_t i = 0; i < count; i++) {
        if (!bench_poison(job->tensors, job->gpu, job->pass) || !impls[i].run(&impls[i]) ||
            (impls[i].finish && !impls[i].finish(&impls[i])) ||
            !bench_check_error(job->check, job->gpu, job->pass, &errors[i]))
            return false;
        if (!is_right(job, errors[i])) {
            bench_message("%s %s: wrong result, relative error %.2e", job->layer->name, impls[i].name, errors[i]);
            *wrong = true;
        }
    }
    return true;
}

static bool add_row(bench_session *run, const bench_job *job, const char *pass, const char *impl, const char *strategy,
                    uint64_t workspace_bytes, double ms, double error) {
    bench_row row = {
        .ms = ms, .rel_l2 = error, .workspace_bytes = workspace_bytes, .channels_last = run->o->channels_last};
    bench_copy(row.suite, sizeof row.suite, job->layer->suite);
    bench_copy(row.layer, sizeof row.layer, job->layer->name);
    bench_copy(row.pass, sizeof row.pass, pass);
    bench_copy(row.precision, sizeof row.precision, job->class->name);
    bench_copy(row.impl, sizeof row.impl, impl);
    bench_copy(row.strategy, sizeof row.strategy, strategy);
    return bench_part_add(&run->part, &row);
}

/* Add the rows of results that are not wrong. With kept spectra also the time of the transforms that are saved. */
static bool add_rows(bench_session *run, const bench_job *job, const char *pass, const bench_impl *impls, size_t count,
                     const double *ms, const double *errors) {
    char stages[256];
    double transforms_ms;
    for (size_t i = 0; i < count; i++)
        if (is_right(job, errors[i]) &&
            !add_row(run, job, pass, impls[i].name, impls[i].strategy, impls[i].workspace_bytes, ms[i], errors[i]))
            return false;
    return !job->kept || !is_right(job, errors[0]) ||
           (bench_ours_transforms(&impls[0], &transforms_ms, stages, sizeof stages) &&
            add_row(run, job, pass, "transforms", stages, 0, transforms_ms, 0));
}

/* The first implementation is the library. A case that is too large for the baselines runs without them. */
static size_t choose_openers(const bench_session *run, const bench_job *job, opener **openers) {
    const double gflop = bench_direct_gflop(&job->layer->shape);
    size_t count = 0;
    openers[count++] = bench_ours_open;
    if (job->kept) {
        openers[count++] = bench_unkept_open;
        return count;
    }
    if (run->o->tune)
        openers[count++] = bench_tuned_open;
    if (run->o->choice)
        openers[count++] = bench_choice_open;
    if (run->o->families) {
        openers[count++] = bench_staged_open;
        openers[count++] = bench_fused_open;
        openers[count++] = bench_long1d_open;
        openers[count++] = bench_toeplitz_open;
        openers[count++] = bench_dft_open;
        openers[count++] = bench_implicit_gemm_open;
        openers[count++] = bench_spatial_open;
        openers[count++] = bench_cufft_family_open;
    }
    if (run->o->max_gflop > 0 && gflop > run->o->max_gflop) {
        bench_message("%s: no baselines, they would need %.3g GFLOP", job->layer->name, gflop);
        return count;
    }
    for (opener *const *baseline = job->gpu ? gpu_baselines : cpu_baselines; *baseline; baseline++)
        if (!run->o->no_direct || *baseline != bench_direct_open)
            openers[count++] = *baseline;
    return count;
}

static void print_times(const bench_job *job, const char *pass, const bench_impl *impls, size_t count, const double *ms,
                        const double *errors) {
    fprintf(stderr, "%-10s %-28s %-9s", job->layer->suite, job->layer->name, pass);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, " %s %.4f (%.1e)", impls[i].name, ms[i], errors[i]);
    fputc('\n', stderr);
}

/* The best candidate of a family may be the library's choice. */
static bool is_repeated(const bench_impl *impls, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(impls[i].name, impls[count].name))
            return true;
    return false;
}

/* Measure all implementations of one pass. False: the library was not measured. */
static bool run_pass(bench_session *run, const bench_job *job, const char *pass) {
    bench_impl impls[MAX_IMPLS];
    opener *openers[MAX_IMPLS];
    double ms[MAX_IMPLS], errors[MAX_IMPLS], now = bench_now_ms();
    const size_t wanted = choose_openers(run, job, openers);
    size_t count = 0;
    bool good = true;
    for (size_t i = 0; i < wanted; i++) {
        if (openers[i](&impls[count], job)) {
            if (is_repeated(impls, count))
                impls[count].close(&impls[count]);
            else
                count++;
        } else
            good = good && i > 0;
        bench_spend(i == 0 ? &run->plans_ms : &run->baselines_ms, &now);
    }
    bool measured = count > 0 && warm_up(job, impls, count, errors, &run->wrong);
    bench_spend(&run->checks_ms, &now);
    measured = measured && bench_measure(run->timer, impls, count, run->seconds, ms) &&
               add_rows(run, job, pass, impls, count, ms, errors);
    bench_spend(&run->runs_ms, &now);
    if (measured)
        print_times(job, pass, impls, count, ms, errors);
    for (size_t i = 0; i < count; i++)
        impls[i].close(&impls[i]);
    return good && measured;
}

/* Add a row for each stage. Its bytes and operations stand before the strategy. */
static bool run_stages(bench_session *run, const bench_job *job, const char *pass) {
    conv_fft_description d;
    double now = bench_now_ms();
    bool good = bench_ours_profile(job, &d);
    for (int i = 0; i < d.stage_count && good; i++) {
        const conv_fft_stage *stage = &d.stages[i];
        char name[32], text[512];
        snprintf(name, sizeof name, "stage %s", stage->name);
        snprintf(text, sizeof text, "%.0f bytes %.0f operations of %s", stage->bytes, stage->operations, d.strategy);
        good = add_row(run, job, pass, name, text, d.workspace_bytes, stage->measured_ms, 0);
    }
    bench_spend(&run->runs_ms, &now);
    if (good)
        fprintf(stderr, "%-10s %-28s %-9s %d stages, %.4f ms\n", job->layer->suite, job->layer->name, pass,
                d.stage_count, d.measured_ms);
    return good;
}

static void run_all_stages(bench_session *run, const bench_case *layer) {
    for (int i = 0; i < BENCH_PASSES; i++) {
        const bench_job job = {.layer = layer,
                               .pass = bench_passes[i].pass,
                               .kept = bench_passes[i].kept,
                               .class = run->o->class,
                               .context = run->context,
                               .gpu = run->gpu};
        if (run->o->pass_set & 1u << i)
            run->wrong = !run_stages(run, &job, bench_passes[i].name) || run->wrong;
    }
}

static void run_passes(bench_session *run, const bench_case *layer, const bench_data *data,
                       const bench_tensors *tensors) {
    int outputs = 0;
    for (int i = 0; i < BENCH_PASSES; i++)
        outputs |= run->o->pass_set & 1u << i ? (int)bench_passes[i].pass : 0;
    double now = bench_now_ms();
    bench_check *check = bench_check_create(layer, data, tensors, outputs);
    bench_spend(&run->checks_ms, &now);
    if (!check) {
        bench_message("out of memory");
        run->wrong = true;
    }
    for (int i = 0; i < BENCH_PASSES && check; i++) {
        const bench_job job = {.layer = layer,
                               .pass = bench_passes[i].pass,
                               .kept = bench_passes[i].kept,
                               .class = run->o->class,
                               .data = data,
                               .tensors = tensors,
                               .context = run->context,
                               .gpu = run->gpu,
                               .check = check};
        if (run->o->pass_set & 1u << i)
            run->wrong = !run_pass(run, &job, bench_passes[i].name) || run->wrong;
    }
    bench_check_destroy(check);
}

bool bench_run_case(bench_session *run, const bench_case *layer) {
    bench_data data;
    if (run->o->stages) {
        run_all_stages(run, layer);
        return !run->o->out || bench_csv_write(run->o->out, &run->part);
    }
    bench_tensors tensors;
    double now = bench_now_ms();
    bool made = bench_data_create(layer, run->gpu, &data);
    if (made) {
        made = bench_tensors_create(layer, run->gpu, &data, &tensors);
        bench_spend(&run->data_ms, &now);
        if (made) {
            run_passes(run, layer, &data, &tensors);
            now = bench_now_ms();
            bench_tensors_free(run->gpu, &tensors);
        }
        bench_data_free(&data);
    }
    run->wrong = run->wrong || !made;
    if (run->gpu)
        bench_cudnn_forget(run->gpu);
    const bool written = !run->o->out || bench_csv_write(run->o->out, &run->part);
    bench_spend(&run->data_ms, &now);
    return written;
}
