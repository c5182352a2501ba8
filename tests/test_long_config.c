/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers have the fused form for long signals, how their passes are cut, and that NVRTC compiles their kernels without many spills
 * where it is found; no GPU is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compiled.h"
#include "conv/long.h"

enum {
    ALLOWED = 128, /* bytes of spills, where registers are traded for occupancy */
    MOST_KERNELS = 128
};

static cf_gpu_facts facts_of(const char *file) {
    cf_gpu_facts facts;
    assert_int_equal(cf_gpu_facts_load(file, &facts), CONV_FFT_SUCCESS);
    return facts;
}

static void make(const char *problem, const char *grid, cf_layer *layer, cf_strategy *strategy) {
    conv_fft_problem p;
    char line[256];
    assert_int_equal(conv_fft_problem_parse(problem, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(cf_layer_make(&p, layer), CONV_FFT_SUCCESS);
    snprintf(line, sizeof line, "fused %s spectrum=%s", grid, p.dtype == CONV_FFT_FP64 ? "fp64" : "fp32");
    assert_int_equal(cf_strategy_parse(line, p.rank, strategy), CONV_FFT_SUCCESS);
}

static void serves_long_lines_of_single_channels(void **unused) {
    (void)unused;
    static const struct {
        const char *problem, *grid;
        bool serves;
    } cases[] = {
        {"in=4x8x1024 out=8 groups=8 kernel=1024 pad=1023:0", "basis=2048 tiles=1 dilation=step", true},
        {"in=4x8x1024 out=8 groups=8 kernel=1024 pad=1023:0 dtype=bf16", "basis=4096 tiles=1 dilation=step", true},
        {"in=1x1x2048 out=1 kernel=1", "basis=2048 tiles=1 dilation=step", true},
        {"in=1x1x1048576 out=1 kernel=1048576 pad=1048575:0", "basis=2097152 tiles=1 dilation=step", true},
        /* One sample more would wrap around. */
        {"in=4x8x1500 out=8 groups=8 kernel=1097 pad=548", "basis=2048 tiles=1 dilation=step", true},
        {"in=4x8x1500 out=8 groups=8 kernel=1099 pad=549", "basis=2048 tiles=1 dilation=step", false},
        {"in=4x8x1500 out=8 groups=8 kernel=1099 pad=548:549", "basis=2048 tiles=1 dilation=step", false},
        /* What it has no kernels for. */
        {"in=4x8x500 out=8 groups=8 kernel=500 pad=499:0", "basis=1024 tiles=1 dilation=step", false},
        {"in=4x8x1000 out=8 groups=8 kernel=1000 pad=999:0", "basis=2000 tiles=1 dilation=step", false},
        {"in=1x1x2000000 out=1 kernel=2000000 pad=1999999:0", "basis=4194304 tiles=1 dilation=step", false},
        {"in=4x8x4000 out=8 groups=8 kernel=9 pad=4", "basis=2048 tiles=2 dilation=step", false},
        {"in=4x8x1024 out=8 groups=4 kernel=9 pad=4", "basis=2048 tiles=1 dilation=step", false},
        {"in=4x8x1024 out=16 groups=8 kernel=9 pad=4", "basis=2048 tiles=1 dilation=step", false},
        {"in=4x8x2000 out=8 groups=8 kernel=9 pad=4 stride=2", "basis=2048 tiles=1 dilation=step", false},
        {"in=4x8x1024 out=8 groups=8 kernel=9 pad=8 dilation=2", "basis=2048 tiles=1 dilation=step", false},
        {"in=4x8x1024 out=8 groups=8 kernel=9 pad=4 mode=reflect", "basis=2048 tiles=1 dilation=step", false},
        {"in=4x8x1024 out=8 groups=8 kernel=9 pad=4 dtype=fp64", "basis=2048 tiles=1 dilation=step", false},
        {"in=4x8x1x1024 out=8 groups=8 kernel=1x9 pad=0x4", "basis=1x2048 tiles=1x1 dilation=step", true},
        {"in=4x8x2x1024 out=8 groups=8 kernel=1x9 pad=0x4", "basis=2x2048 tiles=1x1 dilation=step", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
            cf_layer layer;
            cf_strategy strategy;
            make(cases[i].problem, cases[i].grid, &layer, &strategy);
            if (cf_long_serves(&layer, pass, &strategy) != cases[i].serves)
                fail_msg("%s, %s, pass %d", cases[i].problem, cases[i].grid, pass);
        }
}

/* A line of every length. */
static const struct {
    const char *problem, *grid;
} representative[] = {
    {"in=16x768x1024 out=768 groups=768 kernel=1024 pad=1023:0", "basis=2048"},
    {"in=16x768x2048 out=768 groups=768 kernel=2048 pad=2047:0", "basis=4096"},
    {"in=16x768x4096 out=768 groups=768 kernel=4096 pad=4095:0 dtype=bf16", "basis=8192"},
    {"in=16x768x8192 out=768 groups=768 kernel=8192 pad=8191:0", "basis=16384"},
    {"in=8x768x10000 out=768 groups=768 kernel=1023 pad=511 layout=last", "basis=32768"},
    {"in=8x768x32768 out=768 groups=768 kernel=32768 pad=32767:0", "basis=65536"},
    {"in=8x768x65536 out=768 groups=768 kernel=65536 pad=65535:0", "basis=131072"},
    {"in=2x768x100000 out=768 groups=768 kernel=100000 pad=99999:0 dtype=fp16", "basis=262144"},
    {"in=2x768x262144 out=768 groups=768 kernel=262144 pad=262143:0", "basis=524288"},
    {"in=1x768x524288 out=768 groups=768 kernel=524288 pad=524287:0", "basis=1048576"},
    {"in=1x768x1048576 out=768 groups=768 kernel=1048576 pad=1048575:0", "basis=2097152"},
};
enum {
    PROBLEMS = sizeof representative / sizeof representative[0]
};

static conv_fft_status configure(int i, int pass, const cf_gpu_facts *facts, cf_long_config *c) {
    cf_layer layer;
    cf_strategy strategy;
    char grid[128];
    snprintf(grid, sizeof grid, "%s tiles=1 dilation=step", representative[i].grid);
    make(representative[i].problem, grid, &layer, &strategy);
    assert_true(pass == CF_LONG_BOTH || cf_long_serves(&layer, pass, &strategy));
    const conv_fft_status status = cf_long_configure(&layer, pass, &strategy, facts, c);
    if (status != CONV_FFT_SUCCESS)
        return status;
    assert_int_equal(2 * cf_long_points(c) * cf_long_pieces(c), strategy.basis[2]);
    assert_true(c->together > 0 && c->together <= c->groups && c->slices > 0 && c->slices <= c->rows);
    for (int stage = 0; stage < CF_LONG_STAGES; ++stage) {
        if (!c->stage[stage])
            continue;
        const cf_launch launch = cf_long_launch(c, (cf_long_stage)stage, c->together);
        assert_true(launch.dynamic_shared <= (size_t)facts->shared_per_block);
        assert_true(launch.block[0] % 32 == 0 && launch.block[0] > 0 && launch.block[0] <= 1024);
        assert_true(launch.grid[0] > 0 && launch.grid[1] > 0 && launch.grid[1] <= 65535);
    }
    return CONV_FFT_SUCCESS;
}

static void passes_are_cut_for_the_gpu(void **unused) {
    (void)unused;
    const cf_gpu_facts gpus[2] = {facts_of("facts/h200.txt"), facts_of("facts/a100.txt")};
    cf_long_config c;
    for (int i = 0; i < PROBLEMS; ++i)
        for (int pass = 0; pass <= CF_LONG_BOTH; ++pass)
            for (int g = 0; g < 2; ++g)
                assert_int_equal(configure(i, pass, &gpus[g], &c), CONV_FFT_SUCCESS);
}

static void little_shared_memory_is_refused(void **unused) {
    (void)unused;
    cf_gpu_facts facts = facts_of("facts/h200.txt");
    cf_long_config c;
    facts.shared_per_block = 99 << 10;
    assert_int_equal(configure(3, CF_PASS_FORWARD, &facts, &c), CONV_FFT_SUCCESS);
    assert_int_equal(configure(3, CF_PASS_WEIGHTS, &facts, &c), CONV_FFT_NOT_SUPPORTED); /* two lines to a block */
    assert_int_equal(configure(3, CF_LONG_BOTH, &facts, &c), CONV_FFT_NOT_SUPPORTED);
    facts.shared_per_block = 60 << 10;
    assert_int_equal(configure(3, CF_PASS_FORWARD, &facts, &c), CONV_FFT_NOT_SUPPORTED);
}

static void compile_for(const cf_jit *jit, const char *facts_file, int one_of) {
    const cf_gpu_facts facts = facts_of(facts_file);
    static compiled kernels[MOST_KERNELS];
    int count = 0;
    for (int i = 0; i < PROBLEMS; i += one_of)
        for (int pass = 0; pass <= CF_LONG_BOTH; ++pass) {
            cf_long_config c;
            assert_int_equal(configure(i, pass, &facts, &c), CONV_FFT_SUCCESS);
            for (int stage = 0; stage < CF_LONG_STAGES; ++stage) {
                if (!c.stage[stage] || pass == CF_PASS_DATA) /* much the same as forward */
                    continue;
                assert_true(count < MOST_KERNELS);
                compiled *const kernel = &kernels[count++];
                *kernel = (compiled){.allowed = ALLOWED};
                assert_int_equal(cf_long_source(&c, (cf_long_stage)stage, &kernel->source), CONV_FFT_SUCCESS);
                snprintf(kernel->name, sizeof kernel->name, "%s, pass %d, stage %d", representative[i].problem, pass,
                         stage);
            }
        }
    assert_true(count > 0);
    assert_int_equal(compile_kernels(jit, &facts, kernels, count), 0);
}

static void kernels_compile_without_many_spills(void **unused) {
    (void)unused;
    cf_jit jit;
    if (!compiler_open(&jit))
        skip();
#ifdef __SANITIZE_ADDRESS__
    compile_for(&jit, "facts/h200.txt", 5); /* compilers take several times as long there */
#else
    compile_for(&jit, "facts/h200.txt", 3);
    compile_for(&jit, "facts/a100.txt", 5);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_long_lines_of_single_channels),
        cmocka_unit_test(passes_are_cut_for_the_gpu),
        cmocka_unit_test(little_shared_memory_is_refused),
        cmocka_unit_test(kernels_compile_without_many_spills),
    };
    return cmocka_run_group_tests_name("long config", tests, NULL, NULL);
}
