/* SPDX-License-Identifier: Apache-2.0 */
/* conv-fft cache: the records and kernels on disk. */
#include "main.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `verify` succeeds only if every line and every kernel can be verified. */
static int list(int verify) {
    size_t bytes = 0;
    int64_t damaged = 0;
    if (conv_fft_cache_report(NULL, NULL, 0, &bytes, &damaged) != CONV_FFT_SUCCESS)
        return library_error("no cache");
    char *text = malloc(bytes + 1024); /* the report may grow before the second call */
    if (!text) {
        fputs("conv-fft: out of memory for the report\n", stderr);
        return 1;
    }
    if (conv_fft_cache_report(NULL, text, bytes + 1024, NULL, &damaged) != CONV_FFT_SUCCESS) {
        free(text);
        return library_error("no cache");
    }
    fputs(text, stdout);
    free(text);
    if (verify)
        printf("%" PRId64 " lines or kernels cannot be verified\n", damaged);
    return verify && damaged > 0;
}

static const char *set_name(int set, char text[64]) {
    snprintf(text, 64, "%s%s%s", set & CONV_FFT_FORWARD ? " forward" : "", set & CONV_FFT_BACKWARD_DATA ? " data" : "",
             set & CONV_FFT_BACKWARD_WEIGHTS ? " weights" : "");
    return text;
}

static int print_record(const conv_fft_tune_record *r, void *user) {
    char passes[64];
    ++*(int64_t *)user;
    printf("%s\n  passes:%s\n  %.4f ms measured, %.4f predicted", r->problem, set_name(r->pass, passes), r->ms,
           r->predicted_ms);
    if (r->direct_ms >= 0)
        printf(", %.4f by the best direct algorithm", r->direct_ms);
    printf(", %" PRId64 " candidates, mode %s\n  workspace %" PRIu64 " bytes", r->candidates,
           r->tuning == CONV_FFT_TUNE_EXHAUSTIVE ? "exhaustive" : "measure", r->workspace_bytes);
    if (r->workspace_class)
        printf(", tuned for limits from %" PRIu64, r->workspace_class);
    if (r->keep)
        printf(", kept spectra %s%s", r->keep & CONV_FFT_OPERAND_X ? "x" : "", r->keep & CONV_FFT_OPERAND_W ? "w" : "");
    printf("\n  %s\n", r->strategy);
    return 0;
}

static int show(conv_fft_context *context) {
    int64_t count = 0;
    if (conv_fft_tune_foreach(context, print_record, &count) != CONV_FFT_SUCCESS)
        return library_error("no records");
    printf("%" PRId64 " record%s of this device\n", count, count == 1 ? "" : "s");
    return 0;
}

static int merge(const options *o, conv_fft_context *context, char **files, int count) {
    if (count == 0)
        return usage_error("cache merge needs a file of records", NULL);
    int failed = 0;
    for (int i = 0; i < count; ++i)
        failed |= conv_fft_tune_merge(context, files[i], o->policy) == CONV_FFT_SUCCESS ? 0 : library_error(files[i]);
    return failed;
}

/* Export all records, or the records of networks. */
static int export(conv_fft_context *context, char **words, int count) {
    if (count == 0)
        return usage_error("cache export needs the name of a file to write", NULL);
    if (count == 1)
        return conv_fft_tune_save(context, words[0]) == CONV_FFT_SUCCESS ? 0 : library_error(words[0]);
    network n;
    int failed = network_read_all(words + 1, count - 1, 0, &n);
    conv_fft_problem *problems = n.count == 0 ? NULL : calloc((size_t)n.count + 1, sizeof *problems);
    for (int64_t i = 0; problems && i < n.count; ++i)
        problems[i] = n.layers[i].problem;
    if (problems && conv_fft_tune_export(context, words[0], problems, n.count) != CONV_FFT_SUCCESS)
        failed = library_error(words[0]);
    else if (!problems && !failed)
        failed = 1;
    failed = failed ? failed : n.bad > 0;
    free(problems);
    network_free(&n);
    return failed;
}

static int clear(void) {
    int64_t removed = 0;
    if (conv_fft_cache_clear(NULL, &removed) != CONV_FFT_SUCCESS)
        return library_error("not cleared");
    printf("%" PRId64 " files removed\n", removed);
    return 0;
}

static int with_context(const options *o, const char *action, char **words, int count) {
    conv_fft_context *context;
    int failed = open_context(o, &context);
    if (failed)
        return failed;
    if (strcmp(action, "show") == 0)
        failed = show(context);
    else if (strcmp(action, "merge") == 0)
        failed = merge(o, context, words, count);
    else
        failed = export(context, words, count);
    conv_fft_context_destroy(context);
    return failed;
}

int cache_command(const options *o, char **words, int count) {
    if (count == 0)
        return usage_error("cache needs one of list, show, merge, export, clear, verify", NULL);
    static const struct {
        const char *name, *full, *takes; /* letters of options */
        int words, context;
    } actions[] = {{"list", "cache list", "", 0, 0},      {"show", "cache show", "dt", 0, 1},
                   {"merge", "cache merge", "dtp", 1, 1}, {"export", "cache export", "dt", 1, 1},
                   {"clear", "cache clear", "", 0, 0},    {"verify", "cache verify", "", 0, 0}};
    const char *action = words[0];
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; ++i) {
        if (strcmp(action, actions[i].name) != 0)
            continue;
        const int failed = check_given(o, actions[i].full, actions[i].takes);
        if (failed)
            return failed;
        if (!actions[i].words && count > 1)
            return usage_error("this takes no further argument", words[1]);
        if (actions[i].context)
            return with_context(o, action, words + 1, count - 1);
        return strcmp(action, "clear") == 0 ? clear() : list(action[0] == 'v');
    }
    return usage_error("cache knows list, show, merge, export, clear and verify, not", action);
}
