/* SPDX-License-Identifier: Apache-2.0 */
/* Files of layers, one problem line each. Cases are reduced to what the machine can measure. */
#include "common/suite.h"

#include "common/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "networks/table4.txt" -> "table4" */
static void stem(const char *path, char *name, size_t bytes) {
    const char *slash = strrchr(path, '/');
    snprintf(name, bytes, "%s", slash ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot && dot != name)
        *dot = '\0';
}

/* Whether the baselines can compute the problem too. */
static bool supported(const conv_fft_problem *p) {
    static const int64_t none[2 + CONV_FFT_MAX_RANK];
    return p->dtype == CONV_FFT_FP32 && p->padding == CONV_FFT_PAD_ZEROS &&
           p->tensor_layout == CONV_FFT_CHANNELS_FIRST && p->weight_layout == CONV_FFT_CHANNELS_FIRST && p->batch > 0 &&
           (p->math == CONV_FFT_MATH_DEFAULT || p->math == CONV_FFT_MATH_FP32) &&
           !memcmp(p->x_stride, none, sizeof none) && !memcmp(p->y_stride, none, sizeof none) &&
           !memcmp(p->w_stride, none, sizeof none);
}

static bool set_shape(bench_case *c) {
    int64_t output[CONV_FFT_MAX_RANK];
    if (conv_fft_problem_output(&c->problem, output) != CONV_FFT_SUCCESS)
        return false;
    bench_shape_of(&c->problem, output, &c->shape);
    return true;
}

/* Read one line of a file, and append its case. An empty line has none. */
static bool add_line(bench_suite *suite, const char *name, const char *path, int number, const char *line) {
    bench_case c = {0};
    if (conv_fft_problem_parse(line, &c.problem, c.name, sizeof c.name) != CONV_FFT_SUCCESS) {
        bench_message("%s:%d: %s", path, number, conv_fft_last_error());
        return false;
    }
    if (c.problem.rank == 0)
        return true;
    if (c.name[0] == '\0' || !supported(&c.problem)) {
        bench_message(
            "%s:%d: a case needs a name, FP32 tensors, FP32 math, channels first, zero padding and a batch above 0",
            path, number);
        return false;
    }
    snprintf(c.suite, sizeof c.suite, "%s", name);
    if (!set_shape(&c)) {
        bench_message("%s:%d: %s", path, number, conv_fft_last_error());
        return false;
    }
    bench_case *cases = realloc(suite->cases, (suite->count + 1) * sizeof *cases);
    if (!cases) {
        bench_message("out of memory");
        return false;
    }
    suite->cases = cases;
    suite->cases[suite->count++] = c;
    return true;
}

bool bench_suite_read(const char *argument, bench_suite *suite) {
    char name[48], line[1024];
    const char *equals = strchr(argument, '='), *path = equals ? equals + 1 : argument;
    if (equals)
        snprintf(name, sizeof name, "%.*s", (int)(equals - argument), argument);
    else
        stem(path, name, sizeof name);

    FILE *file = fopen(path, "r");
    if (!file) {
        bench_message("cannot read suite %s: %s", path, strerror(errno));
        return false;
    }
    *suite = (bench_suite){0};
    bool good = true;
    for (int number = 1; good && fgets(line, sizeof line, file); number++)
        good = add_line(suite, name, path, number, line);
    if (good && ferror(file)) {
        bench_message("cannot read suite %s: %s", path, strerror(errno));
        good = false;
    }
    fclose(file);
    if (!good)
        bench_suite_free(suite);
    return good;
}

void bench_suite_free(bench_suite *suite) {
    free(suite->cases);
    *suite = (bench_suite){0};
}

/* Halves the channels: whole groups while there are several, else the larger one of in and out. False: nothing
   left to halve. */
static bool halve_channels(conv_fft_problem *p) {
    if (p->groups > 1 && p->groups % 2 == 0) {
        p->groups /= 2;
        p->in_channels /= 2;
        p->out_channels /= 2;
        return true;
    }
    if (p->groups > 1 || (p->in_channels == 1 && p->out_channels == 1))
        return false;
    bool in = p->in_channels >= p->out_channels, out = p->out_channels >= p->in_channels;
    p->in_channels = in && p->in_channels > 1 ? p->in_channels / 2 : p->in_channels;
    p->out_channels = out && p->out_channels > 1 ? p->out_channels / 2 : p->out_channels;
    return true;
}

bool bench_case_fit(bench_case *c, double max_gflop) {
    conv_fft_problem *p = &c->problem;
    const conv_fft_problem full = *p;
    double per_sample = bench_direct_gflop(&c->shape) / (double)p->batch;
    if (max_gflop <= 0)
        return true;
    if (per_sample * (double)p->batch > max_gflop)
        p->batch = per_sample < max_gflop ? (int64_t)(max_gflop / per_sample) : 1;
    do {
        if (!set_shape(c)) {
            bench_message("%s %s: %s", c->suite, c->name, conv_fft_last_error());
            return false;
        }
    } while (bench_direct_gflop(&c->shape) > max_gflop && halve_channels(p));

    size_t used = strlen(c->name);
    if (p->batch != full.batch)
        used += (size_t)snprintf(c->name + used, sizeof c->name - used, "-b%" PRId64, p->batch);
    if (used >= sizeof c->name || (p->in_channels == full.in_channels && p->out_channels == full.out_channels))
        return true;
    if (p->in_channels == p->out_channels)
        snprintf(c->name + used, sizeof c->name - used, "-c%" PRId64, p->in_channels);
    else
        snprintf(c->name + used, sizeof c->name - used, "-c%" PRId64 "x%" PRId64, p->in_channels, p->out_channels);
    return true;
}
