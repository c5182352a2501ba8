/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC compiles the kernels of products on tensor cores without many spills. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "conv/gpu/gemm/config.h"
#include "support/kernel_cases.h"
#include "support/nvrtc_compile.h"

enum {
    ALLOWED = 128 /* bytes of spills, outside of the inner loops, where registers are traded for occupancy */
};

/* Every `step`-th case, so that all lists together compile in minutes. */
static void add_for(nvrtc_list *list, const char *file, int step) {
    static const char *const kinds[] = {[CF_CGEMM_FORWARD] = "forward",
                                        [CF_CGEMM_BACKWARD_DATA] = "backward data",
                                        [CF_CGEMM_BACKWARD_WEIGHTS] = "backward weights"};
    const cf_gpu_properties properties = gpu_properties_of(file);
    for (int i = 0; i < PRODUCT_CASES; i += step) {
        const cf_cgemm_desc d = product_case(i);
        const cf_cgemm_config c = cf_cgemm_configure(&d, &properties);
        char kind[64], name[256];
        snprintf(kind, sizeof kind, "%s, type %d%s%s", d.dtype == CONV_FFT_FP32 ? kinds[d.kind] : "any", (int)d.dtype,
                 c.terms == 2 ? ", split" : "", c.grouped ? ", wgmma" : "");
        snprintf(name, sizeof name, "product %s, groups=%d bins=%d rows=%d in=%d out=%d, type %d, math %d",
                 kinds[d.kind], (int)d.groups, (int)d.bins, (int)d.rows, (int)d.in_columns, (int)d.out_columns,
                 (int)d.dtype, (int)d.math);
        nvrtc_kernel *const kernel = nvrtc_list_add(list, &properties, ALLOWED, kind, name);
        assert_int_equal(cf_cgemm_source(&c, &kernel->source), CONV_FFT_SUCCESS);
    }
}

static void add_kernels(nvrtc_list *list) {
    add_for(list, "data/gpus/h200.txt", 2);
    add_for(list, "data/gpus/a100.txt", 7);
}

int main(void) { return nvrtc_list_run("compile_product", add_kernels); }
