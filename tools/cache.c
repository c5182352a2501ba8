/* SPDX-License-Identifier: Apache-2.0 */
/* conv-fft cache: the records and kernels on disk. */
#include "main.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library's report, which the caller frees. NULL: a message has been written. */
static char *read_report(int64_t *damaged) {
    size_t bytes = 0;
    if (conv_fft_cache_report(NULL, NULL, 0, &bytes, damaged) != CONV_FFT_SUCCESS) {
        library_error("no cache");
        return NULL;
    }
    char *text = malloc(bytes + 1024); /* the report may grow before the second call */
    if (!text) {
        fputs("conv-fft: out of memory for the report\n", stderr);
        return NULL;
    }
    if (conv_fft_cache_report(NULL, text, bytes + 1024, NULL, damaged) == CONV_FFT_SUCCESS)
        return text;
    free(text);
    library_error("no cache");
    return NULL;
}

/* The first line is the directory. The others begin with two spaces. */
static json_t *json_report(const char *command, char *text, int64_t damaged) {
    json_t *document = json_begin(command, NULL);
    char *end = strchr(text, '\n');
    if (end)
        *end = '\0';
    json_object_set_new(document, "directory", json_string(text));
    json_lines(document, end ? end + 1 : "");
    json_object_set_new(document, "unverified", json_integer((json_int_t)damaged));
    return document;
}

/* `verify` succeeds only if every line and every kernel can be verified. */
static int list(const options *o, bool verify) {
    int64_t damaged = 0;
    char *text = read_report(&damaged);
    int failed = 0;
    if (!text)
        return 1;
    if (o->json) {
        failed = json_end(json_report(verify ? "cache verify" : "cache list", text, damaged));
    } else {
        fputs(text, stdout);
        if (verify)
            printf("%" PRId64 " lines or kernels cannot be verified\n", damaged);
    }
    free(text);
    return failed || (verify && damaged > 0);
}

int cache_list(const options *o, char **words, int count) {
    (void)words;
    (void)count;
    return list(o, false);
}

int cache_verify(const options *o, char **words, int count) {
    (void)words;
    (void)count;
    return list(o, true);
}

typedef struct showing {
    int64_t count;
    bool verbose;
    json_t *document; /* NULL: text */
} showing;

static const char *kept_name(int keep) { return keep == 3 ? "xw" : keep == CONV_FFT_OPERAND_X ? "x" : "w"; }

static const char *mode_name(const conv_fft_tune_record *r) {
    return r->tuning == CONV_FFT_TUNE_EXHAUSTIVE ? "exhaustive" : "measure";
}

static void print_record(const conv_fft_tune_record *r, bool verbose) {
    char size[16], families[64];
    printf("%s\n  %s: %.4f ms, predicted %.4f", r->problem, pass_word(r->pass), r->ms, r->predicted_ms);
    if (r->model_ms >= 0)
        printf(", the model's choice %.4f", r->model_ms);
    if (r->direct_ms >= 0)
        printf(", baseline %.4f", r->direct_ms);
    printf("\n    %s, workspace %s bytes, the best of %" PRId64 " candidates, mode %s\n",
           family_names(r->strategy, families), size_text(r->workspace_bytes, size), r->candidates, mode_name(r));
    if (r->fastest_ms >= 0)
        printf("    the shortest run took %.4f ms", r->fastest_ms);
    if (r->fastest_ms >= 0 && r->processors > 0)
        printf("; on average the process had %.1f processors", r->processors);
    if (r->fastest_ms >= 0)
        putchar('\n');
    if (r->workspace_class)
        printf("    tuned for limits from %s bytes\n", size_text(r->workspace_class, size));
    if (r->keep)
        printf("    kept spectra: %s\n", kept_name(r->keep));
    if (verbose)
        print_strategies(r->strategy, 4, 4, 0, NULL);
}

static int show_record(const conv_fft_tune_record *r, void *user) {
    showing *s = user;
    ++s->count;
    if (!s->document) {
        print_record(r, s->verbose);
        return 0;
    }
    json_append(s->document, "records",
                json_pack("{s:s, s:s, s:o, s:f, s:f, s:o, s:o, s:o, s:o, s:I, s:I, s:s, s:I, s:s}", "problem",
                          r->problem, "pass", pass_word(r->pass), "strategies", json_strategies(r->strategy), "ms",
                          r->ms, "predicted_ms", r->predicted_ms, "model_ms", json_ms(r->model_ms), "baseline_ms",
                          json_ms(r->direct_ms), "fastest_ms", json_ms(r->fastest_ms), "processors",
                          json_ms(r->processors > 0 ? r->processors : -1), "workspace_bytes",
                          (json_int_t)r->workspace_bytes, "workspace_class", (json_int_t)r->workspace_class, "keep",
                          r->keep ? kept_name(r->keep) : "", "candidates", (json_int_t)r->candidates, "mode",
                          mode_name(r)));
    return 0;
}

static int show(const options *o, conv_fft_context *context) {
    showing s = {.verbose = o->verbose, .document = o->json ? json_begin("cache show", context) : NULL};
    if (s.document)
        json_object_set_new(s.document, "records", json_array());
    else {
        printf("# ");
        print_wrapped(conv_fft_context_description(context), 2, 2);
    }
    if (conv_fft_tune_foreach(context, show_record, &s) != CONV_FFT_SUCCESS) {
        json_decref(s.document);
        return library_error("no records");
    }
    if (s.document)
        return json_end(s.document);
    printf("%" PRId64 " record%s of this device\n", s.count, s.count == 1 ? "" : "s");
    return 0;
}

int cache_show(const options *o, char **words, int count) {
    (void)words;
    (void)count;
    conv_fft_context *context;
    int failed = open_context(o, &context);
    if (failed)
        return failed;
    failed = show(o, context);
    conv_fft_context_destroy(context);
    return failed;
}

int cache_merge(const options *o, char **words, int count) {
    if (count == 0)
        return usage_error("cache merge needs a file of records", NULL);
    conv_fft_context *context;
    int failed = open_context(o, &context);
    if (failed)
        return failed;
    json_t *document = o->json ? json_begin("cache merge", context) : NULL;
    for (int i = 0; i < count; ++i) {
        const bool good = conv_fft_tune_merge(context, words[i], o->policy) == CONV_FFT_SUCCESS;
        failed |= good ? 0 : library_error(words[i]);
        if (document)
            json_append(document, "files", json_pack("{s:s, s:b}", "file", words[i], "good", good));
    }
    conv_fft_context_destroy(context);
    const int ended = document ? json_end(document) : 0;
    return failed ? failed : ended;
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
static int export_kernels(const options *o, const char *file, const conv_fft_problem *problems, int64_t count,
                          json_t *document) {
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
    if (document)
        json_object_update_new(document, json_pack("{s:s, s:I, s:I}", "directory", co.cache_directory, "plans",
                                                   (json_int_t)count, "plans_with_kernels", (json_int_t)made));
    else
        printf("%" PRId64 " of %" PRId64 " plans have their kernels in %s\n", made, count, co.cache_directory);
    return made < count;
}

static int export_all(const options *o, conv_fft_context *context, const char *file, json_t *document) {
    problem_list list = {0};
    if (conv_fft_tune_save(context, file) != CONV_FFT_SUCCESS)
        return library_error(file);
    if (!o->kernels)
        return 0;
    int failed =
        conv_fft_tune_foreach(context, add_problem, &list) == CONV_FFT_SUCCESS ? 0 : library_error("no records");
    if (!failed)
        failed = export_kernels(o, file, list.problems, list.count, document);
    free(list.problems);
    return failed;
}

/* Export all records, or the records of networks. --kernels: also the kernels of these problems. */
static int export_some(const options *o, conv_fft_context *context, char **words, int count, json_t *document) {
    if (count == 1)
        return export_all(o, context, words[0], document);
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
        failed |= export_kernels(o, words[0], problems, n.count, document);
    failed = failed ? failed : n.bad > 0;
    free(problems);
    network_free(&n);
    return failed;
}

int cache_export(const options *o, char **words, int count) {
    if (count == 0)
        return usage_error("cache export needs the name of a file to write", NULL);
    conv_fft_context *context;
    int failed = open_context(o, &context);
    if (failed)
        return failed;
    if (o->kernels && conv_fft_context_device(context) == CONV_FFT_DEVICE_CPU) {
        conv_fft_context_destroy(context);
        return usage_error("--kernels needs a GPU: a CPU has no compiled kernels", NULL);
    }
    json_t *document = o->json ? json_begin("cache export", context) : NULL;
    failed = export_some(o, context, words, count, document);
    conv_fft_context_destroy(context);
    if (!document)
        return failed;
    json_append(document, "files", json_pack("{s:s, s:b}", "file", words[0], "good", !failed));
    const int ended = json_end(document);
    return failed ? failed : ended;
}

static int print_removed(const options *o, const char *command, int64_t removed, const char *what) {
    if (!o->json) {
        printf("%" PRId64 " %s removed\n", removed, what);
        return 0;
    }
    json_t *document = json_begin(command, NULL);
    json_object_set_new(document, "removed", json_integer((json_int_t)removed));
    return json_end(document);
}

int cache_clear(const options *o, char **words, int count) {
    (void)words;
    (void)count;
    int64_t removed = 0;
    if (conv_fft_cache_clear(NULL, &removed) != CONV_FFT_SUCCESS)
        return library_error("not cleared");
    return print_removed(o, "cache clear", removed, "files");
}

int cache_repair(const options *o, char **words, int count) {
    (void)words;
    (void)count;
    conv_fft_context *context;
    int64_t removed = 0;
    int failed = open_context(o, &context);
    if (failed)
        return failed;
    failed = conv_fft_cache_repair(context, &removed) == CONV_FFT_SUCCESS ? 0 : library_error("not repaired");
    conv_fft_context_destroy(context);
    return failed ? failed : print_removed(o, "cache repair", removed, "lines or kernels");
}
