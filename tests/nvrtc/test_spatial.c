/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC compiles the kernels of family spatial without many spills. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "conv/spatial/spatial.h"
#include "support/kernel_cases.h"
#include "support/nvrtc_compile.h"

enum {
    ALLOWED = 448,       /* bytes of spills */
    BOTH = CF_PASS_COUNT /* both gradients in one kernel */
};

static const char *const problems[] = {
    "in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 dtype=bf16 layout=last",
    "in=64x144x56x56 out=144 groups=144 kernel=3x3 pad=1 dtype=fp16 layout=last",
    "in=64x144x56x56 out=144 groups=144 kernel=5x5 pad=2 stride=2 dtype=fp16 layout=last",
    "in=64x144x56x56 out=144 groups=144 kernel=5x5 pad=2 stride=2",
    "in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3",
    "in=64x96x112x112 out=96 groups=96 kernel=3x3 pad=1 stride=2",
    "in=64x32x112x112 out=32 groups=32 kernel=3x3 pad=1",
    "in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 dtype=fp16",
    "in=64x1024x7x7 out=1024 groups=1024 kernel=13x13 pad=6 dtype=fp16 layout=last",
    "in=16x1536x32x32 out=1536 groups=1536 kernel=9x9 pad=4 layout=last",
    "in=64x128x56x56 out=128 groups=128 kernel=31x31 pad=15",
    "in=4x4096x8192 out=4096 groups=4096 kernel=4 pad=3:0",
    "in=4x4096x8192 out=4096 groups=4096 kernel=128 pad=127:0",
    "in=4x4096x8192 out=4096 groups=4096 kernel=64 pad=63:0 dtype=bf16 layout=last",
    "in=4x4096x8192 out=4096 groups=4096 kernel=4 pad=3:0 layout=last",
    "in=4x4096x8192 out=4096 groups=4096 kernel=32 pad=31:0 layout=last",
    "in=4x4096x8192 out=4096 groups=4096 kernel=64 pad=63:0 layout=last",
    "in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 layout=last",
    "in=64x144x56x56 out=144 groups=144 kernel=3x3 pad=1 layout=last",
    "in=64x144x56x56 out=144 groups=144 kernel=5x5 pad=2 stride=2 layout=last",
    "in=8x32x64x64x64 out=32 groups=32 kernel=7x7x7 pad=3 dtype=fp16",
    "in=8x32x64x64 out=64 groups=32 kernel=3x3 pad=1 dilation=2 mode=reflect layout=last",
};

static void add_pass(nvrtc_list *list, const char *problem, int pass, bool any_alignment,
                     const cf_gpu_properties *properties) {
    conv_fft_problem p;
    cf_layer layer;
    cf_spatial_config c;
    const char *why;
    assert_int_equal(conv_fft_problem_parse(problem, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(cf_layer_make(&p, &layer), CONV_FFT_SUCCESS);
    if (!cf_spatial_serves(&layer, &why) ||
        (pass == BOTH ? !cf_spatial_configure_walk(&layer, CF_PASS_DATA, true, properties, any_alignment, &c)
                      : cf_spatial_configure(&layer, pass, properties, any_alignment, &c) != CONV_FFT_SUCCESS))
        return;
    for (int adds = 0; adds <= cf_spatial_adds(&c); ++adds) {
        char kind[64], name[256];
        snprintf(kind, sizeof kind, "%s%s%s%s", c.walks ? "walks, " : "",
                 adds                      ? "add"
                 : pass == BOTH            ? "both"
                 : pass == CF_PASS_WEIGHTS ? "weights"
                                           : "signals",
                 c.last ? " last" : "", c.chunks > 1 ? " chunks" : "");
        snprintf(name, sizeof name, "%s, pass %d%s%s", problem, pass, any_alignment ? ", any alignment" : "",
                 adds ? ", add" : "");
        nvrtc_kernel *const kernel = nvrtc_list_add(list, properties, ALLOWED, kind, name);
        assert_int_equal(cf_spatial_source(&c, adds, &kernel->source), CONV_FFT_SUCCESS);
    }
}

static void add_kernels(nvrtc_list *list) {
    static const char *const gpus[] = {"data/gpus/h200.txt", "data/gpus/a100.txt"};
    for (int g = 0; g < 2; ++g) {
        const cf_gpu_properties properties = gpu_properties_of(gpus[g]);
        for (size_t i = 0; i < sizeof problems / sizeof problems[0]; ++i)
            for (int pass = 0; pass <= BOTH; ++pass)
                for (int any = 0; any < 2; ++any)
                    add_pass(list, problems[i], pass, any, &properties);
    }
}

int main(void) { return nvrtc_list_run("compile_spatial", add_kernels); }
