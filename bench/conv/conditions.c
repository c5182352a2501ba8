/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/conditions.h"

#include "common/build_info.h"
#include "common/gpu.h"
#include "common/message.h"
#include "conv/baselines/cudnn.h"
#include "conv/baselines/cudnn_causal.h"
#include "conv/baselines/onednn.h"

#include <stdio.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static int describe_cpu(const conv_fft_context *context, char *text, size_t bytes) {
    char model[128];
    int threads = 1;
    bench_first_line("/proc/cpuinfo", "model name", "unknown CPU", model, sizeof model);
#ifdef _OPENMP
    threads = omp_get_max_threads();
#endif
    return snprintf(text, bytes,
                    "# device: %s, %d threads\n"
                    "# libraries: conv_fft %s (%s), %s\n",
                    model, threads, conv_fft_version_string(), conv_fft_context_description(context),
                    bench_onednn_version());
}

static int describe_gpu(const bench_gpu *g, char *text, size_t bytes) {
    char driver[64];
    bench_driver(driver, sizeof driver);
    return snprintf(text, bytes,
                    "# device: %s, driver %s, CUDA %s\n"
                    "# libraries: conv_fft %s, NVRTC %s, cuBLAS %s, cuDNN %s%s\n",
                    g->gpu->properties.name, driver, g->gpu->driver.library.version, conv_fft_version_string(),
                    g->gpu->jit.library.usable ? g->gpu->jit.library.version : "none", g->cublas,
                    bench_cudnn_version(g), bench_cudnn_causal_note(g));
}

void bench_conditions(bench_part *part, const char *suite, const bench_options *o, double seconds,
                      const conv_fft_context *context, const struct bench_gpu *gpu, const bench_timer *timer) {
    char commit[64], date[32], search[128] = "", limit[64] = "none";
    bench_commit(o->commit, commit, sizeof commit);
    bench_date(date, sizeof date);
    if (o->max_gflop > 0)
        snprintf(limit, sizeof limit, "%g GFLOP direct per pass", o->max_gflop);

    if (gpu && gpu->cudnn)
        snprintf(search, sizeof search, ", at most %g s to search cuDNN%s for each pass%s", o->search,
                 o->tune ? "'s deterministic algorithms" : "", o->known ? ", those of earlier results first" : "");

    char *at = part->header;
    size_t left = sizeof part->header;
    int used = snprintf(at, left, "# suite %s, commit %s, %s\n", suite, commit, date);
    used +=
        gpu ? describe_gpu(gpu, at + used, left - (size_t)used) : describe_cpu(context, at + used, left - (size_t)used);
    if ((size_t)used < left && o->stages)
        snprintf(at + used, left - (size_t)used,
                 "# medians by the library's profile, whose runs follow one another without a flush, size limit: %s\n",
                 limit);
    else if ((size_t)used < left)
        snprintf(at + used, left - (size_t)used,
                 "# median of at least %d runs and %g s%s, caches flushed by %zu MiB, size limit: %s%s\n",
                 bench_timer_least_runs(timer), seconds, gpu ? " by device events" : "",
                 bench_timer_flush_bytes(timer) >> 20, limit, search);
}
