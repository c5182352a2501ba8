/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, plans and texts that several tests need. */
#include "support/layer.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

conv_fft_context *test_context_in(const char *directory, int threads) {
    conv_fft_context_options options;
    conv_fft_context *context = NULL;
    conv_fft_context_options_init(&options);
    options.device = CONV_FFT_DEVICE_CPU;
    options.threads = threads;
    options.cache_directory = directory;
    if (conv_fft_context_create(&options, &context) != CONV_FFT_SUCCESS) {
        fprintf(stderr, "no context: %s\n", conv_fft_last_error());
        exit(2);
    }
    return context;
}

conv_fft_context *test_context(int threads) { return test_context_in(NULL, threads); }

conv_fft_problem test_problem(const char *line) {
    conv_fft_problem p;
    if (conv_fft_problem_parse(line, &p, NULL, 0) != CONV_FFT_SUCCESS) {
        fprintf(stderr, "%s: %s\n", line, conv_fft_last_error());
        exit(2);
    }
    case_begin(line, NULL);
    return p;
}

/* These options, or the default, for tensors as the tests place them. */
static conv_fft_plan_options options_for_tensors(const conv_fft_plan_options *options) {
    conv_fft_plan_options own;
    if (options)
        own = *options;
    else
        conv_fft_plan_options_init(&own);
    if (tensor_alignment(1) < 16)
        own.any_alignment = 1;
    return own;
}

conv_fft_plan *test_plan(conv_fft_context *context, const conv_fft_problem *problem,
                         const conv_fft_plan_options *options) {
    conv_fft_plan *plan = NULL;
    const conv_fft_plan_options own = options_for_tensors(options);
    return check_status(conv_fft_plan_create(context, problem, &own, &plan), "conv_fft_plan_create") ? plan : NULL;
}

uint64_t largest_number(const char *text) {
    uint64_t absmax = 0;
    while (*text) {
        char *end = (char *)text + 1;
        if (isdigit((unsigned char)*text)) {
            const uint64_t number = strtoull(text, &end, 10);
            absmax = number > absmax ? number : absmax;
        }
        text = end;
    }
    return absmax;
}

uint64_t smallest_workspace_limit(conv_fft_context *context, const conv_fft_problem *problem,
                                  const conv_fft_plan_options *options) {
    conv_fft_plan_options limited = options_for_tensors(options);
    conv_fft_plan *plan = NULL;
    limited.workspace_limit = 1;
    if (conv_fft_plan_create(context, problem, &limited, &plan) == CONV_FFT_SUCCESS) {
        conv_fft_plan_destroy(plan);
        return 1;
    }
    return largest_number(conv_fft_last_error());
}

static void append_strides(const char *name, const int64_t *stride, char *text, size_t bytes) {
    bool given = false;
    for (int d = 0; d < TENSOR_MAX_DIMS; d++)
        given = given || stride[d] != 0;
    size_t used = strlen(text);
    if (given && used < bytes)
        used += (size_t)snprintf(text + used, bytes - used, " %s={", name);
    for (int d = 0; given && d < TENSOR_MAX_DIMS && used < bytes; d++)
        used += (size_t)snprintf(text + used, bytes - used, "%lld%s", (long long)stride[d],
                                 d + 1 < TENSOR_MAX_DIMS ? "," : "}");
}

void describe_problem(const conv_fft_problem *problem, char *text, size_t bytes) {
    text[0] = 0;
    if (conv_fft_problem_format(problem, text, bytes) != CONV_FFT_SUCCESS)
        snprintf(text, bytes, "(%s)", conv_fft_last_error());
    append_strides("x_stride", problem->x_stride, text, bytes);
    append_strides("y_stride", problem->y_stride, text, bytes);
    append_strides("w_stride", problem->w_stride, text, bytes);
}
