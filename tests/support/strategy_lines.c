/* SPDX-License-Identifier: Apache-2.0 */
#include "support/strategy_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const conv_fft_pass strategy_passes[3] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD_DATA, CONV_FFT_BACKWARD_WEIGHTS};

static void end(const char *what, const char *text) {
    fprintf(stderr, "%s: %s\n", what, text);
    exit(2);
}

strategies chosen_strategies(conv_fft_context *context, const conv_fft_problem *p) {
    strategies s;
    conv_fft_plan *plan = NULL;
    conv_fft_description d;
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W; /* which staged strategies alone can */
    if (conv_fft_plan_create(context, p, &options, &plan) != CONV_FFT_SUCCESS)
        end("no plan", conv_fft_last_error());
    for (int i = 0; i < 3; i++) {
        if (conv_fft_plan_describe(plan, strategy_passes[i], &d) != CONV_FFT_SUCCESS)
            end("no description", conv_fft_last_error());
        edit_strategy(d.strategy, "keep", "none", s.line[i], sizeof s.line[i]);
    }
    conv_fft_plan_destroy(plan);
    return s;
}

/* " key=value" as the line has it, the space included. */
static void copy_field(const char *line, const char *key, char *out, size_t bytes) {
    char pattern[32];
    snprintf(pattern, sizeof pattern, " %s=", key);
    const char *at = strstr(line, pattern);
    if (!at)
        end("this strategy line has no such key", pattern);
    snprintf(out, bytes, "%.*s", (int)(1 + strcspn(at + 1, " ")), at);
}

strategies fused_strategies(const strategies *staged) {
    static const char *const keys[] = {"basis", "tiles", "dilation", "spectrum"};
    strategies out;
    for (int i = 0; i < 3; i++) {
        size_t used = (size_t)snprintf(out.line[i], sizeof out.line[i], "fused");
        for (int k = 0; k < 4; k++) {
            copy_field(staged->line[i], keys[k], out.line[i] + used, sizeof out.line[i] - used);
            used += strlen(out.line[i] + used);
        }
    }
    return out;
}

void edit_strategy(const char *line, const char *key, const char *value, char *out, size_t bytes) {
    char pattern[32];
    snprintf(pattern, sizeof pattern, " %s=", key);
    const char *at = strstr(line, pattern);
    if (!at)
        end("this strategy line has no such key", pattern);
    at += strlen(pattern);
    snprintf(out, bytes, "%.*s%s%s", (int)(at - line), line, value, at + strcspn(at, " "));
}

static bool accepted(conv_fft_context *context, const conv_fft_problem *p, int pass, const char *line) {
    conv_fft_plan_options options;
    conv_fft_plan *plan = NULL;
    conv_fft_plan_options_init(&options);
    options.passes = strategy_passes[pass];
    options.strategy[pass] = line;
    const conv_fft_status status = conv_fft_plan_create(context, p, &options, &plan);
    conv_fft_plan_destroy(plan);
    if (status != CONV_FFT_SUCCESS && status != CONV_FFT_INVALID_ARGUMENT)
        end(line, conv_fft_last_error());
    return status == CONV_FFT_SUCCESS;
}

/* n for every axis, as in "12x12". */
static void repeat(int64_t n, int rank, char *text, size_t bytes) {
    size_t used = 0;
    for (int a = 0; a < rank && used < bytes; a++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%lld", a ? "x" : "", (long long)n);
}

static bool find_basis(conv_fft_context *context, const conv_fft_problem *p, int pass, int64_t tiles, const char *line,
                       char *out, size_t bytes) {
    char text[64], tiled[256];
    repeat(tiles, p->rank, text, sizeof text);
    edit_strategy(line, "tiles", text, tiled, sizeof tiled);
    for (int64_t n = 2; n <= 128; n++) {
        repeat(n, p->rank, text, sizeof text);
        edit_strategy(tiled, "basis", text, out, bytes);
        if (accepted(context, p, pass, out))
            return true;
    }
    return false;
}

/* The line with the field `segments` behind `tiles`. An axis has at most one segment for each tap. If no axis is cut,
 * the line stays the same. */
static void add_segments(const char *line, const conv_fft_problem *p, int64_t segments, char *out, size_t bytes) {
    char field[64] = " segments=";
    size_t used = strlen(field);
    bool cut = false;
    for (int a = 0; a < p->rank; a++) {
        const int64_t own = segments < p->kernel[a] ? segments : p->kernel[a];
        cut = cut || own > 1;
        used += (size_t)snprintf(field + used, sizeof field - used, "%s%lld", a ? "x" : "", (long long)own);
    }
    const char *at = strstr(line, " dilation=");
    if (!at)
        end("this strategy line has no dilation", line);
    snprintf(out, bytes, "%.*s%s%s", (int)(at - line), line, cut ? field : "", at);
}

bool find_strategies(conv_fft_context *context, const conv_fft_problem *p, int64_t tiles, const char *overlap,
                     const char *dilation, const char *product, strategies *out) {
    return find_cut_strategies(context, p, tiles, 1, overlap, dilation, product, out);
}

bool find_cut_strategies(conv_fft_context *context, const conv_fft_problem *p, int64_t tiles, int64_t segments,
                         const char *overlap, const char *dilation, const char *product, strategies *out) {
    const strategies start = chosen_strategies(context, p);
    char a[256], b[256];
    for (int pass = 0; pass < 3; pass++) {
        edit_strategy(start.line[pass], "overlap", overlap, a, sizeof a);
        edit_strategy(a, "dilation", dilation, b, sizeof b);
        edit_strategy(b, "product", product, a, sizeof a);
        add_segments(a, p, segments, b, sizeof b);
        if (!find_basis(context, p, pass, tiles, b, out->line[pass], sizeof out->line[pass]))
            return false;
    }
    return true;
}
