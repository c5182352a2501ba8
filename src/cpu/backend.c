/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device: its operations, its kernels, and its speeds for the cost model. */
#include "cpu/backend.h"

#include "core/arith.h"
#include "cpu/device.h"
#include "cpu/processors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(CF_HAVE_AVX2) || defined(CF_HAVE_AVX512)
#include <cpuid.h>
#endif

static conv_fft_status nothing_to_prepare(cf_device *device) {
    (void)device;
    return CONV_FFT_SUCCESS;
}

static bool any_basis(const cf_device *device, const int64_t basis[3], conv_fft_dtype dtype) {
    (void)device;
    (void)basis;
    (void)dtype;
    return true;
}

static const cf_device_ops operations = {
    .prepare = nothing_to_prepare,
    .transforms = any_basis,
    .transform_create = cf_cpu_transform_create,
    .transform_destroy = cf_cpu_transform_destroy,
    .transform_scratch = cf_cpu_transform_scratch,
    .forward = cf_cpu_forward,
    .inverse = cf_cpu_inverse,
    .product = cf_cpu_cgemm,
    .convolution_create = cf_cpu_convolution_create,
    .convolution_destroy = cf_cpu_convolution_destroy,
    .convolution_scratch = cf_cpu_convolution_scratch,
    .convolve = cf_cpu_convolve,
    .convolution_seconds = cf_cpu_convolution_seconds,
    .fold = cf_cpu_fold,
    .bias_gradient = cf_cpu_bias_gradient,
    .clear = cf_cpu_clear,
    .zero = cf_cpu_zero,
    .allocate = cf_cpu_allocate,
    .write = cf_cpu_write,
    .release = cf_cpu_release,
    .timer_create = cf_cpu_timer_create,
    .timer_destroy = cf_cpu_timer_destroy,
    .timer_mark = cf_cpu_timer_mark,
    .timer_seconds = cf_cpu_timer_seconds,
};

/* Best first. A CPU that runs one set also runs all sets after it. */
static const cf_kernels *const all_kernels[] = {
#ifdef CF_HAVE_AVX512
    &cf_kernels_avx512,
#endif
#ifdef CF_HAVE_AVX2
    &cf_kernels_avx2,
#endif
    &cf_kernels_generic,
};

#if defined(CF_HAVE_AVX2) || defined(CF_HAVE_AVX512)
/* Not every supported compiler knows this feature by name. The test for AVX2 has checked that the system saves the
 * registers. */
static bool has_half_conversions(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

static bool is_supported(const cf_kernels *kernels) {
#ifdef CF_HAVE_AVX512
    if (kernels == &cf_kernels_avx512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("fma") && has_half_conversions();
#endif
#ifdef CF_HAVE_AVX2
    if (kernels == &cf_kernels_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_half_conversions();
#endif
    return kernels == &cf_kernels_generic;
}

const cf_kernels *const *cf_cpu_kernels_list(int *count) {
    const int all = (int)(sizeof all_kernels / sizeof all_kernels[0]);
    int first = 0;
    while (!is_supported(all_kernels[first]))
        ++first;
    *count = all - first;
    return all_kernels + first;
}

int cf_cpu_threads(const cf_device *device, int64_t tasks, double work) {
    const double min_work = 4e5, threads = work / min_work; /* for twenty microseconds of each thread */
    return (int)fmax(1.0, fmin(threads, (double)cf_min(device->threads, tasks)));
}

/* Speeds measured on a two-core server with AVX-512, FP32, one thread. They only rank strategies, so one set of ratios
 * serves every CPU. Transforms: in the cache, per set of kernels. Products: large ones by OpenBLAS, which chooses its
 * own instruction set. Bandwidth: a stream of reads and writes; threads share it, so it does not grow with many of
 * them. stage_seconds: the time to wake the threads. */
static void set_properties(cf_cpu_device *device, int rank) { /* rank: of its kernels, 0 for the baseline */
    static const double flops[] = {15e9, 28e9, 38e9};
    const double threads = device->base.threads;
    device->base.flops = flops[cf_min(rank, 2)] * threads;
    device->base.product_flops = 90e9 * threads;
    device->base.bandwidth = 10e9 * (threads < 8 ? threads : 8);
    device->base.stage_seconds = 5e-6;
    device->base.row_unit = 2;
    device->base.plane_points = device->base.line_points = INT64_MAX;
    device->base.chunk_bytes = 32e6; /* near the caches */
    device->base.group_bytes = 8e6;
}

/* OpenMP's setting, which programs and their users know, but no more threads than processors. */
static int default_threads(const cf_processors *processors) {
#ifdef _OPENMP
    return (int)cf_max(1, cf_min(omp_get_max_threads(), processors->count));
#else
    return processors->count;
#endif
}

/* "2 threads", and how many processors there are for them if that is unusual. */
static void describe_threads(int threads, const cf_processors *processors, char *text, size_t bytes) {
    const int length = snprintf(text, bytes, "%d thread%s", threads, threads == 1 ? "" : "s");
    if (threads > processors->count)
        snprintf(text + length, bytes - (size_t)length, " on %d processor%s", processors->count,
                 processors->count == 1 ? "" : "s");
    else if (processors->by_quota)
        snprintf(text + length, bytes - (size_t)length, " within a quota of %.3g processors", processors->quota);
}

conv_fft_status cf_cpu_create(int threads, conv_fft_log_level level, cf_device **device) {
    cf_cpu_device *cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return cf_fail_memory(sizeof *cpu, "the CPU device");
    int count;
    char blas[400], thread_text[64];
    const cf_processors processors = cf_processors_find("");
    level = cf_log_level(level);
    cpu->kernels = cf_cpu_kernels_list(&count)[0];
    cf_blas_open(&cpu->blas, blas, sizeof blas);
    cpu->base.ops = &operations;
    cpu->base.threads = threads > 0 ? threads : default_threads(&processors);
    cpu->base.has_blas = cpu->blas.cgemm != NULL;
    set_properties(cpu, count - 1);
    describe_threads(cpu->base.threads, &processors, thread_text, sizeof thread_text);
    snprintf(cpu->description, sizeof cpu->description, "CPU, %s, %s, %s", cpu->kernels->name, thread_text, blas);
    if (!cpu->base.has_blas)
        cf_log(level, CONV_FFT_LOG_WARNING, "%s; products of many channels will be slow", blas);
    *device = &cpu->base;
    return CONV_FFT_SUCCESS;
}

void cf_cpu_destroy(cf_device *device) { free(device); }

const char *cf_cpu_description(const cf_device *device) { return cf_cpu(device)->description; }
