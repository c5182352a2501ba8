/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC compiles the kernels of family long1d without many spills. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "conv/gpu/slices.h"
#include "conv/long1d/long1d.h"
#include "support/kernel_cases.h"
#include "support/nvrtc_compile.h"

enum {
    ALLOWED = 128 /* bytes of spills, where registers are traded for occupancy */
};

static void add_pass(nvrtc_list *list, const layer_case *from, int pass, const cf_gpu_properties *properties) {
    cf_layer layer;
    cf_strategy strategy;
    cf_long1d_config c;
    fused_make(from->problem, from->grid, &layer, &strategy);
    assert_int_equal(cf_long1d_configure(&layer, pass, &strategy, properties, &c), CONV_FFT_SUCCESS);
    for (int stage = 0; stage < CF_LONG1D_STAGES; ++stage) {
        if (!c.stage[stage])
            continue;
        char kind[64], name[256];
        snprintf(kind, sizeof kind, "stage %d", stage);
        snprintf(name, sizeof name, "%s, pass %d, stage %d", from->problem, pass, stage);
        nvrtc_kernel *const kernel = nvrtc_list_add(list, properties, ALLOWED, kind, name);
        assert_int_equal(cf_long1d_source(&c, (cf_long1d_stage)stage, &kernel->source), CONV_FFT_SUCCESS);
    }
}

/* Every `step`-th case, so that all lists together compile in minutes. */
static void add_for(nvrtc_list *list, const char *file, int step) {
    const cf_gpu_properties properties = gpu_properties_of(file);
    for (int i = 0; i < long_case_count; i += step)
        for (int pass = 0; pass <= CF_LONG1D_BOTH; ++pass)
            if (pass == CF_LONG1D_BOTH || (long_cases[i].passes & 1 << pass))
                add_pass(list, &long_cases[i], pass, &properties);
}

/* The kernel that adds slices: few, in one batch for each thread, in several. */
static void add_adders(nvrtc_list *list) {
    static const int slices[] = {8, 100, 720};
    static const conv_fft_dtype types[] = {CONV_FFT_FP32, CONV_FFT_FP64};
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    for (int i = 0; i < 6; ++i) {
        char name[64];
        snprintf(name, sizeof name, "%d slices, type %d", slices[i / 2], i % 2);
        nvrtc_kernel *const kernel = nvrtc_list_add(list, &properties, 0, "slices", name);
        assert_int_equal(cf_slices_source(slices[i / 2], types[i % 2], &kernel->source), CONV_FFT_SUCCESS);
    }
}

static void add_kernels(nvrtc_list *list) {
    add_adders(list);
    add_for(list, "data/gpus/h200.txt", 3);
    add_for(list, "data/gpus/a100.txt", 5);
}

int main(void) { return nvrtc_list_run("compile_long", add_kernels); }
