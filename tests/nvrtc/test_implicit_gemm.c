/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC compiles the kernels of family implicit_gemm without spills. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "conv/implicit_gemm/implicit_gemm.h"
#include "support/kernel_cases.h"
#include "support/nvrtc_compile.h"

static const char *const problems[] = {
    "in=128x3x128x128 out=96 kernel=11x11 dtype=fp16",
    "in=128x3x128x128 out=96 kernel=11x11 dtype=bf16 layout=last",
    "in=128x3x224x224 out=64 kernel=11x11 pad=2 stride=4 dtype=fp16",
    "in=128x3x224x224 out=64 kernel=11x11 pad=2 stride=4 dtype=fp16 layout=last",
    "in=128x3x224x224 out=64 kernel=7x7 pad=3 stride=2 dtype=bf16",
    "in=128x3x224x224 out=32 kernel=3x3 pad=1 stride=2 dtype=bf16 layout=last",
    "in=128x1x64x64 out=96 kernel=9x9 pad=4 dtype=fp16",
    "in=128x8x64x64 out=96 kernel=3x3 pad=1 dtype=fp16",
};

static void add_kernels(nvrtc_list *list) {
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; ++i)
        for (int pass = 0; pass < CF_PASS_COUNT; pass += CF_PASS_WEIGHTS)
            for (int any = 0; any < 2; ++any)
                for (int adds = 0; adds <= (pass == CF_PASS_WEIGHTS); ++adds) {
                    conv_fft_problem p;
                    cf_layer layer;
                    cf_igemm_config c;
                    const char *why;
                    char name[256];
                    assert_int_equal(conv_fft_problem_parse(problems[i], &p, NULL, 0), CONV_FFT_SUCCESS);
                    assert_int_equal(cf_layer_make(&p, &layer), CONV_FFT_SUCCESS);
                    assert_true(cf_igemm_serves(&layer, pass, &why));
                    assert_int_equal(cf_igemm_configure(&layer, pass, &properties, any, &c), CONV_FFT_SUCCESS);
                    snprintf(name, sizeof name, "%s, pass %d%s%s", problems[i], pass, any ? ", any alignment" : "",
                             adds ? ", add" : "");
                    nvrtc_kernel *const kernel = nvrtc_list_add(list, &properties, 0,
                                                                adds   ? "add"
                                                                : pass ? "weights"
                                                                       : "forward",
                                                                name);
                    assert_int_equal(cf_igemm_source(&c, adds, &kernel->source), CONV_FFT_SUCCESS);
                }
}

int main(void) { return nvrtc_list_run("compile_implicit_gemm", add_kernels); }
