/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC compiles the kernels of family dft without many spills. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "conv/dft/dft.h"
#include "support/kernel_cases.h"
#include "support/nvrtc_compile.h"

enum {
    ALLOWED = 60,          /* bytes of spills */
    ALLOWED_SIGNALS = 180, /* before the loop over tiles: matrices and the spectrum of w fill the registers */
    ALLOWED_SUMS = 240     /* where sums of spectra fill the registers */
};

static const char *const problems[] = {
    "in=64x128x56x56 out=128 groups=128 kernel=31x31 pad=15 dtype=fp16 math=half",
    "in=64x128x56x56 out=128 groups=128 kernel=31x31 pad=15 dtype=bf16 math=half",
    "in=64x256x28x28 out=256 groups=256 kernel=29x29 pad=14 dtype=fp16 math=half",
    "in=64x256x28x28 out=256 groups=256 kernel=29x29 pad=14 dtype=bf16 w=fp32 math=half",
    "in=64x128x64x64 out=128 groups=128 kernel=31x31 pad=15 dtype=fp16 gw=fp32 math=half",
    "in=64x512x14x14 out=512 groups=512 kernel=27x27 pad=13 dtype=fp16 math=half",
    "in=16x768x8192 out=768 groups=768 kernel=1023 pad=511 dtype=fp16 math=half",
    "in=2x4096x16384 out=4096 groups=4096 kernel=1024 pad=1023:0 dtype=bf16 w=fp32 math=half",
    "in=8x64x9000 out=64 groups=64 kernel=5000 pad=4999:0 dtype=fp16 gw=fp32 math=half",
    "in=64x64x33x31 out=64 groups=64 kernel=13x21 pad=6x10 dtype=bf16 math=half",
};

static void add_pass(nvrtc_list *list, const char *problem, int pass, bool any_alignment,
                     const cf_gpu_properties *properties) {
    conv_fft_problem p;
    cf_layer layer;
    cf_dft_config c;
    const char *why;
    assert_int_equal(conv_fft_problem_parse(problem, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(cf_layer_make(&p, &layer), CONV_FFT_SUCCESS);
    assert_true(cf_dft_serves(&layer, pass, &why));
    assert_int_equal(cf_dft_configure(&layer, pass, properties, any_alignment, &c), CONV_FFT_SUCCESS);
    for (int adds = 0; adds <= cf_dft_adds(&c); ++adds) {
        char name[256];
        snprintf(name, sizeof name, "%s, pass %d%s%s", problem, pass, any_alignment ? ", any alignment" : "",
                 adds ? ", add" : "");
        nvrtc_kernel *const kernel = nvrtc_list_add(list, properties,
                                                    pass == CF_PASS_WEIGHTS ? ALLOWED_SUMS
                                                    : c.signal.radix        ? ALLOWED_SIGNALS
                                                                            : ALLOWED,
                                                    adds                      ? "add"
                                                    : pass == CF_PASS_WEIGHTS ? "weights"
                                                                              : "signals",
                                                    name);
        assert_int_equal(cf_dft_source(&c, adds, &kernel->source), CONV_FFT_SUCCESS);
    }
}

static void add_kernels(nvrtc_list *list) {
    static const char *const gpus[] = {"data/gpus/h200.txt", "data/gpus/a100.txt"};
    for (int g = 0; g < 2; ++g) {
        const cf_gpu_properties properties = gpu_properties_of(gpus[g]);
        for (size_t i = 0; i < sizeof problems / sizeof problems[0]; ++i)
            for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
                for (int any = 0; any < 2; ++any)
                    add_pass(list, problems[i], pass, any, &properties);
    }
}

int main(void) { return nvrtc_list_run("compile_dft", add_kernels); }
