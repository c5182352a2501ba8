/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC compiles the kernels of family toeplitz without many spills. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "conv/toeplitz/toeplitz.h"
#include "support/kernel_cases.h"
#include "support/nvrtc_compile.h"

enum {
    ALLOWED = 480,        /* bytes of spills, where sums of gw, or taps of planes with a stride, fill the registers */
    ALLOWED_VOLUMES = 80, /* the same, kernels of volumes */
    ALLOWED_VOLUMES_LAST = 120
};

static const char *const problems[] = {
    "in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 dtype=fp16",
    "in=64x240x28x28 out=240 groups=240 kernel=5x5 pad=2 dtype=bf16",
    "in=64x32x112x112 out=32 groups=32 kernel=3x3 pad=1 dtype=fp16 w=fp32 math=half",
    "in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 dtype=bf16 layout=last",
    "in=64x96x112x112 out=96 groups=96 kernel=3x3 pad=1 stride=2 dtype=bf16 layout=last",
    "in=64x32x112x112 out=32 groups=32 kernel=3x3 pad=1 dtype=fp16 layout=last",
    "in=64x144x56x56 out=144 groups=144 kernel=3x3 pad=1 dtype=bf16 layout=last",
    "in=64x192x28x28 out=192 groups=192 kernel=3x3 pad=1 dtype=fp16 w=fp32 math=half layout=last",
    "in=64x240x28x28 out=240 groups=240 kernel=5x5 pad=2 dtype=fp16 layout=last",
    "in=64x384x14x14 out=384 groups=384 kernel=7x7 pad=3 dtype=fp16 w=fp32 math=half",
    "in=16x1536x32x32 out=1536 groups=1536 kernel=9x9 pad=4 dtype=bf16",
    "in=16x1536x32x32 out=1536 groups=1536 kernel=9x9 pad=4 dtype=fp16 layout=last",
    "in=64x1024x7x7 out=1024 groups=1024 kernel=13x13 pad=6 dtype=fp16",
    "in=64x512x14x14 out=512 groups=512 kernel=27x27 pad=13 dtype=fp16",
    "in=64x128x56x56 out=128 groups=128 kernel=31x31 pad=15 dtype=fp16",
    "in=64x384x14x14 out=384 groups=384 kernel=7x7 pad=3 dtype=bf16 layout=last",
    "in=64x1024x7x7 out=1024 groups=1024 kernel=13x13 pad=6 dtype=bf16 layout=last",
    "in=64x512x14x14 out=512 groups=512 kernel=27x27 pad=13 dtype=fp16 layout=last",
    "in=4x512x14x14 out=512 groups=512 kernel=27x27 pad=13 dtype=fp16",
    "in=64x144x112x112 out=144 groups=144 kernel=3x3 pad=1 stride=2 dtype=fp16",
    "in=64x144x56x56 out=144 groups=144 kernel=5x5 pad=2 stride=2 dtype=bf16 layout=last",
    "in=64x144x56x56 out=144 groups=144 kernel=5x5 pad=2 stride=2 dtype=fp16",
    "in=64x144x64x64 out=144 groups=144 kernel=13x13 pad=6 stride=2 dtype=bf16",
    "in=64x144x64x64 out=144 groups=144 kernel=15x15 pad=7 stride=2 dtype=fp16 layout=last",
    "in=64x672x14x14 out=672 groups=672 kernel=5x5 pad=2 stride=2 dtype=fp16",
    "in=64x672x14x14 out=672 groups=672 kernel=5x5 pad=2 stride=2 dtype=bf16 layout=last",
    "in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 mode=reflect dtype=fp16 math=half",
    "in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 mode=circular layout=last dtype=bf16 math=half",
    "in=4x4096x8192 out=4096 groups=4096 kernel=4 pad=3:0 dtype=bf16",
    "in=4x4096x8192 out=4096 groups=4096 kernel=128 pad=127:0 dtype=fp16",
    "in=4x4096x8192 out=4096 groups=4096 kernel=256 pad=255:0 dtype=bf16",
    "in=4x4096x8192 out=4096 groups=4096 kernel=4 pad=3:0 dtype=bf16 layout=last",
    "in=4x4096x8192 out=4096 groups=4096 kernel=64 pad=63:0 dtype=bf16 layout=last",
    "in=4x4096x8192 out=4096 groups=4096 kernel=128 pad=127:0 dtype=fp16 w=fp32 math=half layout=last",
    "in=64x672x14x14 out=672 groups=672 kernel=5x5 pad=2 dtype=fp16 layout=last",
    "in=64x960x7x7 out=960 groups=960 kernel=3x3 pad=1 dtype=fp16 w=fp32 math=half layout=last",
    "in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3",
    "in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 math=tf32",
    "in=16x1536x32x32 out=1536 groups=1536 kernel=9x9 pad=4",
    "in=64x512x14x14 out=512 groups=512 kernel=13x13 pad=6",
    "in=64x144x112x112 out=144 groups=144 kernel=3x3 pad=1 stride=2",
    "in=4x4096x8192 out=4096 groups=4096 kernel=32 pad=31:0",
    "in=4x4096x8192 out=4096 groups=4096 kernel=64 pad=63:0",
    "in=4x4096x8192 out=4096 groups=4096 kernel=128 pad=127:0",
    "in=4x4096x8192 out=4096 groups=4096 kernel=256 pad=255:0 math=tf32",
    "in=8x32x64x64x64 out=32 groups=32 kernel=7x7x7 pad=3 dtype=fp16",
    "in=8x32x64x64x64 out=32 groups=32 kernel=5x5x5 pad=2 dtype=bf16",
    "in=4x48x48x48x48 out=48 groups=48 kernel=3x3x3 pad=1 dtype=fp16 w=fp32 math=half",
    "in=4x96x16x16x16 out=96 groups=96 kernel=8x8x7 pad=4x4x3 dtype=bf16",
    "in=8x32x64x64x64 out=32 groups=32 kernel=7x7x7 pad=3 layout=last dtype=fp16",
    "in=8x32x64x64x64 out=32 groups=32 kernel=5x5x5 pad=2 layout=last dtype=bf16",
    "in=4x54x48x48x48 out=54 groups=54 kernel=3x3x3 pad=1 layout=last dtype=fp16 w=fp32 math=half",
    "in=4x8x16x16x16 out=8 groups=8 kernel=8x8x7 pad=4x4x3 layout=last dtype=bf16",
};

static void add_pass(nvrtc_list *list, const char *problem, int pass, bool any_alignment,
                     const cf_gpu_properties *properties) {
    conv_fft_problem p;
    cf_layer layer;
    cf_toeplitz_config c;
    const char *why;
    assert_int_equal(conv_fft_problem_parse(problem, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(cf_layer_make(&p, &layer), CONV_FFT_SUCCESS);
    if (!cf_toeplitz_serves(&layer, pass, &why) ||
        cf_toeplitz_configure(&layer, pass, properties, any_alignment, &c) != CONV_FFT_SUCCESS)
        return;
    for (int adds = 0; adds <= cf_toeplitz_adds(&c); ++adds) {
        char kind[64], name[256];
        snprintf(kind, sizeof kind, "%s%s%s%s%s", c.small ? "small " : "",
                 adds                      ? "add"
                 : pass == CF_PASS_WEIGHTS ? "weights"
                                           : "signals",
                 c.in_place  ? " in place"
                 : c.aligned ? " lines last"
                 : c.last    ? " last"
                             : "",
                 c.line ? " line" : "", c.depths ? " volumes" : "");
        snprintf(name, sizeof name, "%s, pass %d%s%s", problem, pass, any_alignment ? ", any alignment" : "",
                 adds ? ", add" : "");
        nvrtc_kernel *const kernel = nvrtc_list_add(list, properties,
                                                    !c.depths ? ALLOWED
                                                    : c.last  ? ALLOWED_VOLUMES_LAST
                                                              : ALLOWED_VOLUMES,
                                                    kind, name);
        assert_int_equal(cf_toeplitz_source(&c, adds, &kernel->source), CONV_FFT_SUCCESS);
    }
}

static void add_both(nvrtc_list *list, const char *problem, bool any_alignment, const cf_gpu_properties *properties) {
    conv_fft_problem p;
    cf_layer layer;
    cf_toeplitz_both both;
    const char *why;
    char name[256];
    assert_int_equal(conv_fft_problem_parse(problem, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(cf_layer_make(&p, &layer), CONV_FFT_SUCCESS);
    if (!cf_toeplitz_serves(&layer, CF_PASS_DATA, &why) || !cf_toeplitz_serves(&layer, CF_PASS_WEIGHTS, &why) ||
        !cf_toeplitz_configure_both(&layer, properties, any_alignment, &both))
        return;
    snprintf(name, sizeof name, "%s, both gradients%s", problem, any_alignment ? ", any alignment" : "");
    nvrtc_kernel *const kernel = nvrtc_list_add(list, properties, ALLOWED, "both gradients", name);
    assert_int_equal(cf_toeplitz_both_source(&both, &kernel->source), CONV_FFT_SUCCESS);
}

static void add_kernels(nvrtc_list *list) {
    static const char *const gpus[] = {"data/gpus/h200.txt", "data/gpus/a100.txt"};
    for (int g = 0; g < 2; ++g) {
        const cf_gpu_properties properties = gpu_properties_of(gpus[g]);
        for (size_t i = 0; i < sizeof problems / sizeof problems[0]; ++i)
            for (int any = 0; any < 2; ++any)
                add_both(list, problems[i], any, &properties);
        for (size_t i = 0; i < sizeof problems / sizeof problems[0]; ++i)
            for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
                for (int any = 0; any < 2; ++any)
                    add_pass(list, problems[i], pass, any, &properties);
    }
}

int main(void) { return nvrtc_list_run("compile_toeplitz", add_kernels); }
