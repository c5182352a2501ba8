/* SPDX-License-Identifier: Apache-2.0 */
#include "support/nvrtc_compile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda/jit/files.h"
#include "cuda/jit/hash.h"
#include "support/selection.h"
#include "support/tensor.h"

enum {
    SKIPPED = 77,
    NEAREST = 1, /* kernels of the core that are nearest to their limits */
    ENTRY_BYTES = 256
};

static const char report_registers[] = "--ptxas-options=-v";

/* --------------------------------------------------------------------------------------------------- kept results */

/* Two hashes of 64 bits, so that two kernels never share an entry by accident. */
typedef struct key {
    uint64_t a, b;
} key;

static void add_to_key(key *k, const char *text) {
    const size_t bytes = strlen(text) + 1; /* so that "ab", "c" is not "a", "bc" */
    k->a = cf_hash_on(k->a, text, bytes);
    k->b = cf_hash_on(k->b, text, bytes);
}

static key key_of(const cf_jit *jit, const char *architecture, const cf_source *source) {
    char library[64];
    struct stat file;
    /* Releases of one version differ in size. */
    const long long bytes = stat(jit->library.file, &file) == 0 ? (long long)file.st_size : 0;
    snprintf(library, sizeof library, "%s %lld", jit->library.version, bytes);
    key k = {CF_HASH_START, CF_HASH_START ^ UINT64_C(0x9e3779b97f4a7c15)};
    add_to_key(&k, library);
    add_to_key(&k, architecture);
    for (int i = 0; cf_jit_options[i]; ++i)
        add_to_key(&k, cf_jit_options[i]);
    for (int i = 0; i < CF_SOURCE_MAX_OPTIONS && source->options[i]; ++i)
        add_to_key(&k, source->options[i]);
    for (int i = 0; i < CF_SOURCE_MAX_HEADERS && source->headers[i]; ++i)
        add_to_key(&k, source->headers[i]);
    add_to_key(&k, source->text);
    return k;
}

static void path_of(const char *folder, key k, char path[4096]) {
    snprintf(path, 4096, "%s/%016" PRIx64 "%016" PRIx64 ".txt", folder, k.a, k.b);
}

/* One line: its key, its figures, and a hash of both. */
static int write_entry(key k, const nvrtc_result *r, char entry[ENTRY_BYTES]) {
    int length = snprintf(entry, ENTRY_BYTES,
                          "nvrtc-result 1 %016" PRIx64 "%016" PRIx64 " stack=%d spills=%d registers=%d milliseconds=%d",
                          k.a, k.b, r->stack, r->spills, r->registers, r->milliseconds);
    return length +
           snprintf(entry + length, ENTRY_BYTES - (size_t)length, " %016" PRIx64 "\n", cf_hash(entry, (size_t)length));
}

static bool read_kept(const char *path, key k, nvrtc_result *result) {
    char entry[ENTRY_BYTES] = {0}, same[ENTRY_BYTES];
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    const ssize_t bytes = read(file, entry, sizeof entry - 1);
    close(file);
    nvrtc_result r;
    /* The figures are formatted again. If the text differs, the entry is damaged or belongs to another kernel. */
    if (bytes <= 0 || sscanf(entry, "nvrtc-result 1 %*32s stack=%d spills=%d registers=%d milliseconds=%d", &r.stack,
                             &r.spills, &r.registers, &r.milliseconds) != 4)
        return false;
    write_entry(k, &r, same);
    if (strcmp(entry, same) != 0)
        return false;
    *result = r;
    return true;
}

/* The entry is written to a temporary file and renamed, so that a reader never finds a part. A result that cannot be
 * kept is computed again next time. */
static void keep(const char *folder, const char *path, key k, const nvrtc_result *result) {
    char entry[ENTRY_BYTES], beside[4096 + 32];
    const int length = write_entry(k, result, entry);
    mkdir(folder, 0777);
    snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid());
    const int file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    const bool written = file >= 0 && cf_write_all(file, entry, (size_t)length);
    if (file >= 0)
        close(file);
    if (!written || rename(beside, path) != 0) {
        print_message("          %s cannot be written: %s\n", path, strerror(errno));
        unlink(beside);
    }
}

/* ----------------------------------------------------------------------------------------------------- one kernel */

static bool number_before(const char *log, const char *words, int *number) {
    const char *at = log ? strstr(log, words) : NULL;
    if (!at)
        return false;
    while (at > log && at[-1] >= '0' && at[-1] <= '9')
        --at;
    *number = atoi(at);
    return true;
}

static int64_t cpu_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

conv_fft_status nvrtc_compile(const cf_jit *jit, const char *folder, const char *architecture, const cf_source *source,
                              nvrtc_result *result) {
    char path[4096];
    cf_source verbose = *source;
    int options = 0;
    while (verbose.options[options])
        ++options;
    assert_true(options + 1 < CF_SOURCE_MAX_OPTIONS);
    verbose.options[options] = report_registers;
    const key k = key_of(jit, architecture, &verbose);
    path_of(folder, k, path);
    if (read_kept(path, k, result))
        return CONV_FFT_SUCCESS;
    cf_cubin cubin = {0}, *const into = &cubin;
    const cf_source *const text = &verbose;
    const int64_t start = cpu_nanoseconds();
    CF_FORWARD(cf_jit_compile(jit, architecture, &text, 1, &into));
    result->milliseconds = (int)((cpu_nanoseconds() - start) / 1000000);
    const bool said = number_before(cubin.log, " bytes stack frame", &result->stack) &&
                      number_before(cubin.log, " bytes spill stores", &result->spills) &&
                      number_before(cubin.log, " registers", &result->registers);
    if (!said)
        fail_msg("NVRTC %s says nothing of spills and registers: %s", jit->library.version,
                 cubin.log ? cubin.log : "no log");
    cf_cubin_clear(&cubin);
    keep(folder, path, k, result);
    return CONV_FFT_SUCCESS;
}

/* --------------------------------------------------------------------------------------------------------- lists */

nvrtc_kernel *nvrtc_list_add(nvrtc_list *list, const cf_gpu_properties *properties, int allowed, const char *kind,
                             const char *name) {
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 64;
        list->kernels = realloc(list->kernels, (size_t)list->capacity * sizeof *list->kernels);
        assert_non_null(list->kernels);
    }
    nvrtc_kernel *const kernel = &list->kernels[list->count++];
    *kernel = (nvrtc_kernel){.allowed = allowed};
    cf_gpu_architecture(properties, kernel->architecture);
    const int lengths[2] = {snprintf(kernel->kind, sizeof kernel->kind, "%s: %s", kernel->architecture, kind),
                            snprintf(kernel->name, sizeof kernel->name, "%s: %s", kernel->architecture, name)};
    assert_true(lengths[0] < (int)sizeof kernel->kind && lengths[1] < (int)sizeof kernel->name);
    return kernel;
}

static bool is_required(void) {
    const char *const words = getenv("CONV_FFT_TEST_REQUIRE");
    return words && strstr(words, "nvrtc");
}

static void print_failed(const nvrtc_kernel *kernel, const char *why) {
    char variables[1100], line[1500];
    snprintf(variables, sizeof variables, "CONV_FFT_TEST_CASE='%s'", kernel->name);
    test_replay(line, sizeof line, variables);
    print_error("FAILED: %s: %s\n    replay: %s\n", kernel->name, why, line);
}

static bool check(const cf_jit *jit, nvrtc_kernel *kernel) {
    char why[256];
    if (nvrtc_compile(jit, TEST_COMPILED, kernel->architecture, &kernel->source, &kernel->result) != CONV_FFT_SUCCESS) {
        print_failed(kernel, conv_fft_last_error());
        return false;
    }
    const nvrtc_result *const r = &kernel->result;
    if (r->stack <= kernel->allowed && r->spills <= kernel->allowed)
        return true;
    snprintf(why, sizeof why, "%d bytes of spills, %d of local memory; %d are allowed", r->spills, r->stack,
             kernel->allowed);
    print_failed(kernel, why);
    return false;
}

/* ---------------------------------------------------------------------------------------------------------- core */

/* Registers that the launch bounds allow, minus those used. */
static int registers_left(const nvrtc_kernel *kernel) {
    const char *entry = strstr(kernel->source.text, "_KERNEL(");
    int threads = 0, blocks = 1;
    assert_non_null(entry);
    while (entry && sscanf(entry, ", %d, %d", &threads, &blocks) < 1 && sscanf(entry, "_KERNEL(%d", &threads) < 1)
        entry = strchr(entry + 1, ',');
    assert_true(threads > 0 && blocks > 0);
    const int most = 65536 / (threads * blocks) / 8 * 8;
    return (most < 255 ? most : 255) - kernel->result.registers;
}

/* Order by bytes left, then registers left, then time. */
static int compare_nearness(const void *a, const void *b) {
    const nvrtc_kernel *const kernels[2] = {*(const nvrtc_kernel *const *)a, *(const nvrtc_kernel *const *)b};
    int left[2][3];
    for (int i = 0; i < 2; ++i) {
        const nvrtc_result *const r = &kernels[i]->result;
        left[i][0] = registers_left(kernels[i]);
        left[i][1] = kernels[i]->allowed - (r->stack > r->spills ? r->stack : r->spills);
        left[i][2] = r->milliseconds;
    }
    for (int j = 0; j < 3; ++j)
        if (left[0][j] != left[1][j])
            return left[0][j] < left[1][j] ? -1 : 1;
    return strcmp(kernels[0]->name, kernels[1]->name);
}

/* The kernel of each kind that compiles fastest, and the kernels nearest to their limits. */
static void write_core(const nvrtc_list *list) {
    char path[4096];
    bool *const taken = test_alloc((size_t)list->count * sizeof *taken);
    const nvrtc_kernel **const sorted = test_alloc((size_t)list->count * sizeof *sorted);
    for (int i = 0; i < list->count; ++i) {
        const nvrtc_kernel *const k = &list->kernels[i];
        sorted[i] = k;
        taken[i] = true;
        for (int j = 0; taken[i] && j < list->count; ++j) {
            const nvrtc_kernel *const other = &list->kernels[j];
            const bool faster = other->result.milliseconds < k->result.milliseconds ||
                                (other->result.milliseconds == k->result.milliseconds && j < i);
            taken[i] = strcmp(other->kind, k->kind) != 0 || !faster;
        }
    }
    qsort(sorted, (size_t)list->count, sizeof *sorted, compare_nearness);
    for (int i = 0, more = NEAREST; i < list->count && more > 0; ++i) {
        bool *const mark = &taken[sorted[i] - list->kernels];
        more -= !*mark;
        *mark = true;
    }
    snprintf(path, sizeof path, "%s/core/%s.txt", TEST_DATA, list->name);
    FILE *const file = fopen(path, "w");
    if (!file)
        fail_msg("%s: %s", path, strerror(errno));
    fprintf(file,
            "# Kernels that every run compiles: of each kind the one that compiles fastest, and the %d nearest to "
            "their limits.\n"
            "# Written by: CONV_FFT_TEST_CORE=write ctest --test-dir build/dev -R '^test_%s$'\n",
            NEAREST, list->name);
    int milliseconds = 0, count = 0;
    for (int i = 0; i < list->count; ++i)
        if (taken[i]) {
            fprintf(file, "%s\n", list->kernels[i].name);
            milliseconds += list->kernels[i].result.milliseconds;
            ++count;
        }
    fclose(file);
    print_message("          core: %d of %d kernels, %.1f s to compile\n", count, list->count, milliseconds / 1000.0);
    free(taken);
    free(sorted);
}

/* ----------------------------------------------------------------------------------------------------------- run */

/* The one test of a program; cmocka passes it a pointer to this. */
typedef struct program {
    nvrtc_list list;
    void (*add_kernels)(nvrtc_list *list);
    cf_jit jit;
} program;

static int order_of(const nvrtc_kernel *p, const nvrtc_kernel *q) {
    int order = strcmp(p->architecture, q->architecture);
    for (int i = 0; order == 0 && i < CF_SOURCE_MAX_OPTIONS && (p->source.options[i] || q->source.options[i]); ++i)
        order =
            strcmp(p->source.options[i] ? p->source.options[i] : "", q->source.options[i] ? q->source.options[i] : "");
    for (int i = 0; order == 0 && i < CF_SOURCE_MAX_HEADERS && (p->source.headers[i] || q->source.headers[i]); ++i)
        order =
            strcmp(p->source.headers[i] ? p->source.headers[i] : "", q->source.headers[i] ? q->source.headers[i] : "");
    return order ? order : strcmp(p->source.text, q->source.text);
}

/* Equal kernels keep the order of the list. */
static int compare_sources(const void *a, const void *b) {
    const nvrtc_kernel *const p = *(const nvrtc_kernel *const *)a, *const q = *(const nvrtc_kernel *const *)b;
    const int order = order_of(p, q);
    return order ? order : p < q ? -1 : p > q;
}

/* Different cases may have the same kernel. It is compiled once, for the first of them, with the smallest of their
 * limits. */
static void remove_doubles(nvrtc_list *list) {
    nvrtc_kernel **const sorted = test_alloc((size_t)list->count * sizeof *sorted);
    for (int i = 0; i < list->count; ++i)
        sorted[i] = &list->kernels[i];
    qsort(sorted, (size_t)list->count, sizeof *sorted, compare_sources);
    for (int first = 0, i = 1; i < list->count; ++i) {
        nvrtc_kernel *const kernel = sorted[first], *const next = sorted[i];
        if (order_of(kernel, next) != 0) {
            first = i;
            continue;
        }
        kernel->allowed = next->allowed < kernel->allowed ? next->allowed : kernel->allowed;
        free((char *)next->source.text);
        next->source.text = NULL;
    }
    free(sorted);
    int count = 0;
    for (int i = 0; i < list->count; ++i)
        if (list->kernels[i].source.text)
            list->kernels[count++] = list->kernels[i];
    list->count = count;
}

static int take_kernels(const nvrtc_list *list, bool writes_core, bool *taken) {
    if (writes_core) {
        memset(taken, true, (size_t)list->count * sizeof *taken);
        return list->count;
    }
    const char **const names = test_alloc((size_t)list->count * sizeof *names);
    for (int i = 0; i < list->count; ++i)
        names[i] = list->kernels[i].name;
    const int count = test_select(list->name, names, list->count, taken);
    free(names);
    return count;
}

static void kernels_compile_without_many_spills(void **state) {
    program *const p = *state;
    nvrtc_list *const list = &p->list;
    const char *const core = getenv("CONV_FFT_TEST_CORE");
    const bool writes_core = core && strcmp(core, "write") == 0;
    if (core && *core && !writes_core)
        fail_msg("CONV_FFT_TEST_CORE=%s: the only value is `write`", core);
    p->add_kernels(list);
    remove_doubles(list);
    bool *const taken = test_alloc((size_t)list->count * sizeof *taken);
    const int count = take_kernels(list, writes_core, taken);
    const int64_t start = cpu_nanoseconds();
    int bad = 0;
    for (int i = 0; i < list->count; ++i)
        bad += taken[i] && !check(&p->jit, &list->kernels[i]);
    print_message("          %d kernels, NVRTC %s, %.1f s of CPU time\n", count, p->jit.library.version,
                  (double)(cpu_nanoseconds() - start) / 1e9);
    if (writes_core)
        write_core(list);
    free(taken);
    if (bad > 0)
        fail_msg("%d of %d kernels do not compile or spill too much", bad, count);
}

int nvrtc_list_run(const char *name, void (*add_kernels)(nvrtc_list *list)) {
    program p = {.list = {.name = name}, .add_kernels = add_kernels};
    const cf_search search = cf_search_default();
    if (cf_jit_open(&p.jit, &search, 0, CONV_FFT_LOG_SILENT) != CONV_FFT_SUCCESS) {
        print_error("%s: no NVRTC: %s\n", is_required() ? "FAILED" : "SKIPPED", conv_fft_last_error());
        return is_required() ? 1 : SKIPPED;
    }
    struct CMUnitTest tests[] = {cmocka_unit_test_prestate(kernels_compile_without_many_spills, &p)};
    const int failed = cmocka_run_group_tests_name(name, tests, NULL, NULL);
    for (int i = 0; i < p.list.count; ++i)
        free((char *)p.list.kernels[i].source.text);
    free(p.list.kernels);
    return failed != 0;
}
