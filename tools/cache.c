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
    printf("# %s\n", conv_fft_context_description(context));
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

typedef struct problem_list {
    conv_fft_problem *problems;
    int64_t count, capacity;
    char last[1024]; /* records of one problem follow one another */
} problem_list;

static int add_problem(const conv_fft_tune_record *r, void *user) {
    problem_list *const l = user;
    if (strcmp(l->last, r->problem) == 0)
        return 0;
    if (l->count == l->capacity) {
        const int64_t capacity = 2 * l->capacity + 64;
        conv_fft_problem *const grown = realloc(l->problems, (size_t)capacity * sizeof *grown);
        if (!grown)
            return 1;
        l->problems = grown;
        l->capacity = capacity;
    }
    snprintf(l->last, sizeof l->last, "%s", r->problem);
    l->count += conv_fft_problem_parse(r->problem, &l->problems[l->count], NULL, 0) == CONV_FFT_SUCCESS;
    return 0;
}

/* Compile what plans of these problems launch, with the records of a file, into the file's folder. */
static int export_kernels(const options *o, const char *file, const conv_fft_problem *problems, int64_t count) {
    const char *const slash = strrchr(file, '/');
    char folder[4096];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - file) : 1, slash ? file : ".");
    conv_fft_context_options co;
    conv_fft_context *context;
    conv_fft_context_options_init(&co);
    co.device = o->device;
    co.threads = (int)o->threads;
    co.cache_directory = slash == file ? "/" : folder;
    if (conv_fft_context_create(&co, &context) != CONV_FFT_SUCCESS)
        return library_error("no context");
    /* It fails if no layer has a record, of which the export has warned. The cost model chooses for such layers. */
    conv_fft_tune_load(context, file);
    int64_t made = 0;
    for (int64_t i = 0; i < count; ++i) {
        conv_fft_plan *plan = NULL;
        if (conv_fft_plan_create(context, &problems[i], NULL, &plan) == CONV_FFT_SUCCESS)
            ++made;
        else
            library_error("no plan");
        conv_fft_plan_destroy(plan);
    }
    conv_fft_context_destroy(context);
    printf("%" PRId64 " of %" PRId64 " plans have their kernels in %s\n", made, count, co.cache_directory);
    return made < count;
}

static int export_all(const options *o, conv_fft_context *context, const char *file) {
    problem_list list = {0};
    if (conv_fft_tune_save(context, file) != CONV_FFT_SUCCESS)
        return library_error(file);
    if (!o->kernels)
        return 0;
    int failed =
        conv_fft_tune_foreach(context, add_problem, &list) == CONV_FFT_SUCCESS ? 0 : library_error("no records");
    if (!failed)
        failed = export_kernels(o, file, list.problems, list.count);
    free(list.problems);
    return failed;
}

/* Export all records, or the records of networks. --kernels: also the kernels of these problems. */
static int export(const options *o, conv_fft_context *context, char **words, int count) {
    if (count == 0)
        return usage_error("cache export needs the name of a file to write", NULL);
    if (o->kernels && conv_fft_context_device(context) == CONV_FFT_DEVICE_CPU)
        return usage_error("--kernels needs a GPU: a CPU has no compiled kernels", NULL);
    if (count == 1)
        return export_all(o, context, words[0]);
    network n;
    int failed = network_read_all(words + 1, count - 1, 0, &n);
    conv_fft_problem *problems = n.count == 0 ? NULL : calloc((size_t)n.count + 1, sizeof *problems);
    for (int64_t i = 0; problems && i < n.count; ++i)
        problems[i] = n.layers[i].problem;
    if (problems && conv_fft_tune_export(context, words[0], problems, n.count) != CONV_FFT_SUCCESS)
        failed = library_error(words[0]);
    else if (!problems && !failed)
        failed = 1;
    else if (problems && o->kernels)
        failed |= export_kernels(o, words[0], problems, n.count);
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

static int repair(conv_fft_context *context) {
    int64_t removed = 0;
    if (conv_fft_cache_repair(context, &removed) != CONV_FFT_SUCCESS)
        return library_error("not repaired");
    printf("%" PRId64 " lines or kernels removed\n", removed);
    return 0;
}

static int with_context(const options *o, const char *action, char **words, int count) {
    conv_fft_context *context;
    int failed = open_context(o, &context);
    if (failed)
        return failed;
    if (strcmp(action, "show") == 0)
        failed = show(context);
    else if (strcmp(action, "repair") == 0)
        failed = repair(context);
    else if (strcmp(action, "merge") == 0)
        failed = merge(o, context, words, count);
    else
        failed = export(o, context, words, count);
    conv_fft_context_destroy(context);
    return failed;
}

int cache_command(const options *o, char **words, int count) {
    if (count == 0)
        return usage_error("cache needs one of list, show, merge, export, clear, verify, repair", NULL);
    static const struct {
        const char *name, *full, *takes; /* letters of options */
        int words, context;
    } actions[] = {{"list", "cache list", "", 0, 0},      {"show", "cache show", "dt", 0, 1},
                   {"merge", "cache merge", "dtp", 1, 1}, {"export", "cache export", "dtk", 1, 1},
                   {"clear", "cache clear", "", 0, 0},    {"verify", "cache verify", "", 0, 0},
                   {"repair", "cache repair", "dt", 0, 1}};
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
    return usage_error("cache knows list, show, merge, export, clear, verify and repair, not", action);
}
