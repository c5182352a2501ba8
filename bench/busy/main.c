/* SPDX-License-Identifier: Apache-2.0 */
/* bench_busy measures layers with one and with two threads while other programs use the same processors. See --help. */
#include "common/build_info.h"
#include "common/message.h"
#include "conv_fft.h"
#include "core/clock.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

const char program_name[] = "bench_busy";

static const char help[] =
    "usage: bench_busy PROGRAMS [LINE...]\n"
    "\n"
    "Prints what layers take on the CPU with one thread and with two, in milliseconds a call, while PROGRAMS programs\n"
    "that never wait use the same processors. Each of these programs stays on one processor. The processors have\n"
    "equally many if possible. Start bench_busy by taskset(1) with two processors. LINE is a problem line, as in the\n"
    "files of networks/. One and two threads alternate, for 40 ms each. The median of 15 such times is printed, and\n"
    "the ratio of both. A head says how it was measured, with the commit that git names here.\n";

enum {
    REPEATS = 15,
    MAX_PROGRAMS = 64
};

#define REPEAT_SECONDS 0.04

static const char *const small_layers[] = {
    "in=4x32x28x28 out=32 kernel=5x5 pad=same",   "in=8x64x14x14 out=64 kernel=13x13 pad=same groups=64",
    "in=4x16x32x32 out=16 kernel=9x9 pad=same",   "in=8x32x28x28 out=32 kernel=3x3 pad=same",
    "in=2x64x14x14 out=64 kernel=5x5 pad=same",   "in=4x32x56x56 out=32 kernel=7x7 pad=same groups=32",
    "in=1x32x32x32 out=32 kernel=15x15 pad=same", "in=2x32x4096 out=32 kernel=25 pad=same",
};

typedef struct layer {
    conv_fft_plan *plan[2]; /* one thread, two threads */
    float *x, *w, *y, *gx, *gw;
    void *workspace;
    size_t bytes;
} layer;

/* ---- the other programs */

static void keep_busy(int number) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) == 0 && CPU_COUNT(&all) > 0) {
        int left = number % CPU_COUNT(&all), processor = 0;
        while (!CPU_ISSET(processor, &all) || left-- > 0)
            ++processor;
        CPU_ZERO(&one);
        CPU_SET(processor, &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (volatile unsigned i = 0;; ++i)
        ;
}

/* How many have been started. */
static int start_programs(pid_t *programs, int count) {
    for (int i = 0; i < count; ++i) {
        programs[i] = fork();
        if (programs[i] == 0)
            keep_busy(i);
        if (programs[i] < 0)
            return i;
    }
    return count;
}

static void stop_programs(const pid_t *programs, int count) {
    for (int i = 0; i < count; ++i) {
        kill(programs[i], SIGKILL);
        waitpid(programs[i], NULL, 0);
    }
}

/* ---- layers */

static float *numbers(int64_t planes, const int64_t extents[3], int rank) {
    int64_t count = planes;
    for (int i = 0; i < rank; ++i)
        count *= extents[i];
    float *const memory = malloc((size_t)count * sizeof *memory);
    for (int64_t i = 0; memory && i < count; ++i)
        memory[i] = (float)(rand() % 1000) / 1000.0F;
    return memory;
}

static bool create_plans(conv_fft_context *const contexts[2], const conv_fft_problem *p, layer *l) {
    static const conv_fft_pass passes[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD};
    for (int i = 0; i < 2; ++i) {
        if (conv_fft_plan_create(contexts[i], p, NULL, &l->plan[i]) != CONV_FFT_SUCCESS)
            return false;
        for (int k = 0; k < 2; ++k) {
            size_t bytes = 0;
            if (conv_fft_plan_workspace(l->plan[i], passes[k], &bytes) != CONV_FFT_SUCCESS)
                return false;
            l->bytes = bytes > l->bytes ? bytes : l->bytes;
        }
    }
    return true;
}

static bool create(conv_fft_context *const contexts[2], const char *line, layer *l) {
    conv_fft_problem p;
    int64_t output[CONV_FFT_MAX_RANK];
    if (conv_fft_problem_parse(line, &p, NULL, 0) != CONV_FFT_SUCCESS ||
        conv_fft_problem_output(&p, output) != CONV_FFT_SUCCESS || !create_plans(contexts, &p, l))
        return false;
    const int64_t pairs = p.out_channels * (p.in_channels / p.groups);
    l->x = numbers(p.batch * p.in_channels, p.input, p.rank);
    l->gx = numbers(p.batch * p.in_channels, p.input, p.rank);
    l->w = numbers(pairs, p.kernel, p.rank);
    l->gw = numbers(pairs, p.kernel, p.rank);
    l->y = numbers(p.batch * p.out_channels, output, p.rank);
    l->workspace = malloc(l->bytes + 1);
    return l->x && l->gx && l->w && l->gw && l->y && l->workspace;
}

static void destroy(layer *l) {
    void *const memory[] = {l->x, l->gx, l->w, l->gw, l->y, l->workspace};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; ++i)
        free(memory[i]);
    for (int i = 0; i < 2; ++i)
        conv_fft_plan_destroy(l->plan[i]);
}

static bool call(const layer *l, const conv_fft_plan *plan, bool forward) {
    return (forward ? conv_fft_forward(plan, l->x, l->w, NULL, l->y, l->workspace, l->bytes, NULL)
                    : conv_fft_backward(plan, l->x, l->w, l->y, l->gx, l->gw, NULL, 0, l->workspace, l->bytes, NULL)) ==
           CONV_FFT_SUCCESS;
}

/* ---- times */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Milliseconds a call. The first calls do not count. */
static bool repeat(const layer *l, int threads, bool forward, double *ms) {
    const conv_fft_plan *const plan = l->plan[threads - 1];
    if (!call(l, plan, forward))
        return false;
    const double begin = cf_clock_seconds();
    double now = begin;
    for (int calls = 1; now < begin + REPEAT_SECONDS; ++calls) {
        if (!call(l, plan, forward))
            return false;
        now = cf_clock_seconds();
        *ms = 1e3 * (now - begin) / calls;
    }
    return true;
}

static bool measure(const layer *l, const char *line, int programs, bool forward) {
    double times[2][REPEATS];
    for (int i = 0; i < REPEATS; ++i)
        for (int k = 0; k < 2; ++k)
            if (!repeat(l, 1 + k, forward, &times[k][i]))
                return false;
    for (int k = 0; k < 2; ++k)
        qsort(times[k], REPEATS, sizeof times[k][0], by_value);
    const double one = times[0][REPEATS / 2], two = times[1][REPEATS / 2];
    printf("%s,%s,%d,%.3f,%.3f,%.2f\n", line, forward ? "forward" : "backward", programs, one, two, two / one);
    fflush(stdout);
    return true;
}

static bool measure_layer(conv_fft_context *const contexts[2], const char *line, int programs) {
    layer l = {0};
    const bool good =
        create(contexts, line, &l) && measure(&l, line, programs, true) && measure(&l, line, programs, false);
    destroy(&l);
    return good;
}

static void print_head(const conv_fft_context *context) {
    char commit[64], date[32], model[128];
    cpu_set_t all;
    const bool known = sched_getaffinity(0, sizeof all, &all) == 0;
    bench_commit(NULL, commit, sizeof commit);
    bench_date(date, sizeof date);
    bench_first_line("/proc/cpuinfo", "model name", "unknown CPU", model, sizeof model);
    printf("# suite busy, commit %s, %s\n# device: %s, %d processors\n# libraries: conv_fft %s (%s)\n"
           "# medians of %d times of %g ms each; one and two threads alternate, with warm caches\n"
           "layer,pass,programs,one_thread_ms,two_threads_ms,ratio\n",
           commit, date, model, known ? CPU_COUNT(&all) : 0, conv_fft_version_string(),
           conv_fft_context_description(context), REPEATS, 1e3 * REPEAT_SECONDS);
}

static bool measure_all(const char *const *lines, int count, int programs) {
    conv_fft_context *contexts[2] = {0};
    bool good = true;
    for (int i = 0; i < 2 && good; ++i) {
        conv_fft_context_options options;
        good = conv_fft_context_options_init(&options) == CONV_FFT_SUCCESS;
        options.device = CONV_FFT_DEVICE_CPU;
        options.threads = 1 + i;
        good = good && conv_fft_context_create(&options, &contexts[i]) == CONV_FFT_SUCCESS;
    }
    if (good)
        print_head(contexts[1]);
    for (int i = 0; i < count && good; ++i)
        good = measure_layer(contexts, lines[i], programs);
    for (int i = 0; i < 2; ++i)
        conv_fft_context_destroy(contexts[i]);
    return good;
}

/* False: it is no number of programs. */
static bool read_count(const char *text, int *count) {
    char *end;
    const long number = strtol(text, &end, 10);
    *count = (int)number;
    return end != text && *end == '\0' && number >= 0 && number <= MAX_PROGRAMS;
}

int main(int argc, char **argv) {
    pid_t programs[MAX_PROGRAMS];
    int count = 0;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return 0;
    }
    if (argc < 2 || !read_count(argv[1], &count)) {
        fprintf(stderr, "bench_busy: PROGRAMS is %s; it must be a number from 0 to %d\n",
                argc < 2 ? "missing" : argv[1], MAX_PROGRAMS);
        return 2;
    }
    const int started = start_programs(programs, count);
    bool good = started == count;
    if (!good)
        bench_message("only %d of %d programs could be started", started, count);
    else {
        good = argc > 2 ? measure_all((const char *const *)argv + 2, argc - 2, count)
                        : measure_all(small_layers, (int)(sizeof small_layers / sizeof *small_layers), count);
        if (!good)
            bench_message("%s", conv_fft_last_error());
    }
    stop_programs(programs, started);
    return !good;
}
