/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC compiles the kernels of fused passes without many spills. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "conv/fused/fused.h"
#include "support/kernel_cases.h"
#include "support/nvrtc_compile.h"

enum {
    ALLOWED = 160 /* bytes of spills, where registers are traded for occupancy */
};

static void add_pass(nvrtc_list *list, const layer_case *from, int pass, const cf_gpu_properties *properties) {
    cf_layer layer;
    cf_strategy strategy;
    cf_fused_config c;
    fused_make(from->problem, from->grid, &layer, &strategy);
    assert_int_equal(cf_fused_configure(&layer, pass, &strategy, properties, &c), CONV_FFT_SUCCESS);
    for (int k = 0; k < cf_fused_kernels(&c); ++k) {
        char kind[64], name[256];
        snprintf(kind, sizeof kind, "%s, type %d, layout %d%s", k == 0 ? "pass" : "helper", (int)layer.x.dtype,
                 (int)layer.problem.tensor_layout, layer.problem.fp32_weights ? ", FP32 weights" : "");
        snprintf(name, sizeof name, "%s, %s, pass %d, kernel %d", from->problem, from->grid, pass, k);
        nvrtc_kernel *const kernel = nvrtc_list_add(list, properties, ALLOWED, kind, name);
        assert_int_equal(cf_fused_source(&c, k, &kernel->source), CONV_FFT_SUCCESS);
    }
}

/* Every `step`-th case, so that all lists together compile in minutes. */
static void add_for(nvrtc_list *list, const char *file, int step) {
    const cf_gpu_properties properties = gpu_properties_of(file);
    for (int i = 0; i < fused_case_count; i += step)
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
            if (fused_cases[i].passes & 1 << pass)
                add_pass(list, &fused_cases[i], pass, &properties);
}

static void add_kernels(nvrtc_list *list) {
    add_for(list, "data/gpus/h200.txt", 2);
    add_for(list, "data/gpus/a100.txt", 5);
}

int main(void) { return nvrtc_list_run("compile_fused", add_kernels); }
