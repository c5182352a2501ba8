/* SPDX-License-Identifier: Apache-2.0 */
/* bench_first_use measures how long the first plan of a layer takes. See --help. */
#include "conv_fft.h"
#include "core/clock.h"
#include "core/status.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "usage: bench_first_use [--output=FILE] [LINE...]\n"
    "\n"
    "Measures how long it takes to make the plan of a layer for all passes on GPU 0. LINE is a problem line, as in "
    "the\n"
    "files of networks/, without dtype= and math=. Without LINE ten layers are measured. Each layer is measured in "
    "FP32,\n"
    "and in FP16 with math=half. Each plan is made in a context of its own, in a process that has used CUDA before.\n"
    "The rows say:\n"
    "\n"
    "  state    cold: no kernel is in the cache, and there are no records, so the cost model chooses.\n"
    "           NVRTC's own cache is off (CUDA_CACHE_DISABLE).\n"
    "           warm: the kernels are in the cache; the cost model chooses.\n"
    "           given: the kernels are in the cache, and the strategies are given, as records give them.\n"
    "  wall_s   seconds; cpu_s: the processor seconds of all threads and processes. Of warm and given the least of "
    "five\n"
    "  kernels  compiled kernels in the cache; bytes: of their files\n"
    "\n"
    "--output=FILE writes the rows to FILE, too.\n";

static const char *const ten_layers[] = {
    "in=32x96x56x56 out=96 kernel=7x7 pad=3 groups=96",
    "in=64x128x56x56 out=128 kernel=31x31 pad=15 groups=128",
    "in=128x64x64x64 out=64 kernel=9x9",
    "in=64x3x224x224 out=64 kernel=7x7 pad=3 stride=2",
    "in=32x144x56x56 out=144 kernel=5x5 pad=2 stride=2 groups=144",
    "in=32x256x28x28 out=256 kernel=5x5 pad=2",
    "in=2x32x64x64x64 out=32 kernel=5x5x5 pad=2",
    "in=16x256x8192 out=256 kernel=11 pad=25 dilation=5",
    "in=4x1024x8192 out=1024 kernel=128 pad=127:0 groups=1024",
    "in=16x768x8192 out=768 kernel=8192 pad=8191:0 groups=768",
};

enum {
    REPEATS = 5,
    PATH_BYTES = 512
};

static double cpu_seconds_of(int who) {
    struct rusage used;
    getrusage(who, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}
static double cpu_seconds(void) { return cpu_seconds_of(RUSAGE_SELF) + cpu_seconds_of(RUSAGE_CHILDREN); }

typedef struct sample {
    double wall, cpu;
    char strategy[3][256];
} sample;

/* Make a plan in a new context. given: the strategies of the three passes, or NULL. */
static conv_fft_status make_plan(const char *cache, const conv_fft_problem *problem, const sample *given, sample *s) {
    static const conv_fft_pass passes[3] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD_DATA, CONV_FFT_BACKWARD_WEIGHTS};
    conv_fft_context_options of_context;
    conv_fft_plan_options options;
    conv_fft_context *context = NULL;
    conv_fft_plan *plan = NULL;
    conv_fft_context_options_init(&of_context);
    of_context.device = 0;
    of_context.cache_directory = cache;
    conv_fft_plan_options_init(&options);
    for (int i = 0; given && i < 3; ++i)
        options.strategy[i] = given->strategy[i];
    conv_fft_status status = conv_fft_context_create(&of_context, &context);
    if (status == CONV_FFT_SUCCESS) {
        const double wall = cf_clock_seconds(), cpu = cpu_seconds();
        status = conv_fft_plan_create(context, problem, &options, &plan);
        s->wall = cf_clock_seconds() - wall;
        s->cpu = cpu_seconds() - cpu;
    }
    for (int i = 0; status == CONV_FFT_SUCCESS && i < 3; ++i) {
        conv_fft_description d;
        status = conv_fft_plan_describe(plan, passes[i], &d);
        if (status == CONV_FFT_SUCCESS)
            memcpy(s->strategy[i], d.strategy, sizeof d.strategy);
    }
    conv_fft_plan_destroy(plan);
    conv_fft_context_destroy(context);
    return status;
}

/* Count the compiled kernels of a cache directory, or remove all its files. */
static void walk(const char *directory, bool removes, int *count, int64_t *bytes) {
    DIR *const open = opendir(directory);
    *count = 0;
    *bytes = 0;
    for (struct dirent *item; open && (item = readdir(open));) {
        char path[2 * PATH_BYTES];
        struct stat file;
        snprintf(path, sizeof path, "%s/%s", directory, item->d_name);
        if (stat(path, &file) != 0 || !S_ISREG(file.st_mode))
            continue;
        if (strstr(item->d_name, ".cubin")) {
            ++*count;
            *bytes += file.st_size;
        }
        if (removes)
            unlink(path);
    }
    if (open)
        closedir(open);
}

static void print_row(FILE *file, const char *line, const char *dtype, const char *state, const sample *s, int kernels,
                      int64_t bytes) {
    FILE *const files[] = {stdout, file};
    for (int i = 0; i < 2 && files[i]; ++i) {
        fprintf(files[i], "%s,%s,%s,%.4f,%.4f,%d,%" PRId64 "\n", line, dtype, state, s->wall, s->cpu, kernels, bytes);
        fflush(files[i]);
    }
}

static conv_fft_status measure(const char *cache, const char *line, const char *dtype, FILE *file) {
    static const char *const states[] = {"cold", "warm", "given"};
    char text[512];
    conv_fft_problem problem;
    sample chosen, best;
    int kernels, removed;
    int64_t bytes, removed_bytes;
    snprintf(text, sizeof text, "%s%s", line, strcmp(dtype, "fp16") == 0 ? " dtype=fp16 math=half" : "");
    CF_FORWARD(conv_fft_problem_parse(text, &problem, NULL, 0));
    walk(cache, true, &removed, &removed_bytes);
    for (int state = 0; state < 3; ++state) {
        for (int i = 0; i < (state ? REPEATS : 1); ++i) {
            sample s;
            CF_FORWARD(make_plan(cache, &problem, state == 2 ? &chosen : NULL, &s));
            if (i == 0 || s.wall < best.wall)
                best = s;
        }
        if (state == 0)
            chosen = best;
        walk(cache, false, &kernels, &bytes);
        print_row(file, line, dtype, states[state], &best, kernels, bytes);
    }
    walk(cache, true, &removed, &removed_bytes);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status measure_all(const char *const *lines, int count, FILE *file) {
    char cache[PATH_BYTES];
    const char *const folder = getenv("TMPDIR");
    snprintf(cache, sizeof cache, "%s/first_use.XXXXXX", folder ? folder : "/tmp");
    if (!mkdtemp(cache))
        return cf_fail(CONV_FFT_IO_ERROR, "%s cannot be made", cache);
    FILE *const files[] = {stdout, file};
    for (int i = 0; i < 2 && files[i]; ++i)
        fprintf(files[i], "layer,dtype,state,wall_s,cpu_s,kernels,bytes\n");
    /* A first plan, whose time is not taken, loads the CUDA libraries. */
    conv_fft_problem first;
    sample unused;
    conv_fft_status status = conv_fft_problem_parse("in=1x1x8 out=1 kernel=3", &first, NULL, 0);
    if (status == CONV_FFT_SUCCESS)
        status = make_plan(cache, &first, NULL, &unused);
    for (int i = 0; status == CONV_FFT_SUCCESS && i < count; ++i) {
        status = measure(cache, lines[i], "fp32", file);
        if (status == CONV_FFT_SUCCESS)
            status = measure(cache, lines[i], "fp16", file);
    }
    rmdir(cache);
    return status;
}

int main(int argc, char **argv) {
    FILE *file = NULL;
    int at = 1;
    setenv("CUDA_CACHE_DISABLE", "1", 1); /* an earlier run must not make this one faster */
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return 0;
    }
    if (argc > 1 && strncmp(argv[1], "--output=", 9) == 0) {
        file = fopen(argv[1] + 9, "w");
        if (!file) {
            fprintf(stderr, "bench_first_use: %s cannot be written\n", argv[1] + 9);
            return 1;
        }
        ++at;
    }
    const conv_fft_status status = argc > at
                                       ? measure_all((const char *const *)argv + at, argc - at, file)
                                       : measure_all(ten_layers, (int)(sizeof ten_layers / sizeof ten_layers[0]), file);
    if (status != CONV_FFT_SUCCESS)
        fprintf(stderr, "bench_first_use: %s\n", conv_fft_last_error());
    if (file)
        fclose(file);
    return status != CONV_FFT_SUCCESS;
}
