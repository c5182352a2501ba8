/* SPDX-License-Identifier: Apache-2.0 */
/* How fused passes are cut, and that NVRTC compiles their kernels without many spills where it is found; no GPU is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "autotune/model.h"
#include "autotune/space.h"
#include "compiled.h"
#include "conv/fused.h"
#include "conv/gpu.h"

enum {
    ALLOWED = 160, /* bytes of spills, where registers are traded for occupancy */
    MOST_KERNELS = 512,
    ALL = CONV_FFT_ALL_PASSES,
    ONE_WAY = CONV_FFT_FORWARD | CONV_FFT_BACKWARD_WEIGHTS /* backward data has much the same kernel as forward */
};

/* What the family is for, and one of every kind of kernel. */
static const struct {
    const char *problem, *grid;
    int passes;
} representative[] = {
    /* Networks of depthwise layers. */
    {"in=64x128x56x56 out=128 groups=128 kernel=31x31 pad=15", "basis=72x72 tiles=1x1", ONE_WAY},
    {"in=64x256x28x28 out=256 groups=256 kernel=29x29 pad=14", "basis=42x42 tiles=1x1", ALL},
    {"in=64x512x14x14 out=512 groups=512 kernel=27x27 pad=13", "basis=27x28 tiles=1x1", ONE_WAY},
    {"in=64x1024x7x7 out=1024 groups=1024 kernel=13x13 pad=6", "basis=14x14 tiles=1x1", ALL},
    {"in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3", "basis=32x32 tiles=3x3", ONE_WAY},
    {"in=64x384x14x14 out=384 groups=384 kernel=7x7 pad=3 layout=last", "basis=18x20 tiles=1x1", ALL},
    {"in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 layout=last dtype=fp16", "basis=60x60 tiles=1x1", ONE_WAY},
    {"in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 layout=last", "basis=25x25 tiles=3x3", ONE_WAY},
    {"in=8x32x64x64x64 out=32 groups=32 kernel=7x7x7 pad=3", "basis=16x16x16 tiles=7x7x7", ONE_WAY},
    {"in=16x768x8192 out=768 groups=768 kernel=1023 pad=511", "basis=4096 tiles=3", ALL},
    {"in=16x768x2048 out=768 groups=768 kernel=2048 pad=2047:0", "basis=4096 tiles=1", ONE_WAY},
    /* Few channels on one side. */
    {"in=128x3x128x128 out=96 kernel=11x11", "basis=64x64 tiles=3x3", CONV_FFT_FORWARD | CONV_FFT_BACKWARD_DATA},
    {"in=32x3x64x64 out=16 kernel=5x5 pad=2", "basis=36x36 tiles=2x2", CONV_FFT_BACKWARD_WEIGHTS},
    {"in=128x3x128x128 out=96 kernel=11x11 layout=last dtype=fp16", "basis=42x128 tiles=4x1", ALL},
    {"in=16x32x96 out=4 kernel=9 pad=4", "basis=105 tiles=1", ALL},
    {"in=32x64x30x30 out=128 groups=32 kernel=5x5 pad=2 stride=2", "basis=18x18 tiles=1x1", ALL},
    /* Types and bases. */
    {"in=64x128x56x56 out=128 groups=128 kernel=31x31 pad=15 dtype=fp16", "basis=72x72 tiles=1x1", CONV_FFT_FORWARD},
    {"in=64x1024x7x7 out=1024 groups=1024 kernel=13x13 pad=6 dtype=fp16", "basis=14x14 tiles=1x1",
     CONV_FFT_BACKWARD_WEIGHTS},
    {"in=64x64x24x24 out=64 groups=64 kernel=5x5 pad=2 dtype=bf16", "basis=27x35 tiles=1x1", ONE_WAY},
    {"in=16x64x40x40 out=64 groups=64 kernel=9x9 pad=4 dtype=fp64", "basis=45x48 tiles=1x1", ONE_WAY},
    {"in=16x16x90x90 out=16 groups=16 kernel=9x9 pad=4", "basis=96x128 tiles=1x1", ONE_WAY},
};

enum {
    PROBLEMS = sizeof representative / sizeof representative[0],
#ifdef __SANITIZE_ADDRESS__
    ONE_OF = 5 /* compilers take several times as long there */
#else
    ONE_OF = 1
#endif
};

static cf_gpu_facts facts_of(const char *file) {
    cf_gpu_facts facts;
    assert_int_equal(cf_gpu_facts_load(file, &facts), CONV_FFT_SUCCESS);
    return facts;
}

static void make_one(const char *problem, const char *grid, cf_layer *layer, cf_strategy *strategy) {
    conv_fft_problem p;
    char line[256];
    assert_int_equal(conv_fft_problem_parse(problem, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(cf_layer_make(&p, layer), CONV_FFT_SUCCESS);
    snprintf(line, sizeof line, "fused %s dilation=step spectrum=%s", grid, p.dtype == CONV_FFT_FP64 ? "fp64" : "fp32");
    assert_int_equal(cf_strategy_parse(line, p.rank, strategy), CONV_FFT_SUCCESS);
}
static void make(int i, cf_layer *layer, cf_strategy *strategy) {
    make_one(representative[i].problem, representative[i].grid, layer, strategy);
}

/* Whether the pass can be cut for this GPU; what is then chosen is what the GPU has. */
static bool cut(int i, int pass, const cf_gpu_facts *facts, cf_fused_config *c) {
    cf_layer layer;
    cf_strategy strategy;
    const char *why;
    make(i, &layer, &strategy);
    if (!cf_families[CF_FAMILY_FUSED].feasible(&layer, pass, &strategy, &why))
        fail_msg("%s, %s, pass %d: %s", representative[i].problem, representative[i].grid, pass, why);
    const conv_fft_status status = cf_fused_configure(&layer, pass, &strategy, facts, c);
    if (status == CONV_FFT_NOT_SUPPORTED)
        return false;
    assert_int_equal(status, CONV_FFT_SUCCESS);
    const cf_tile_config *const tile = &c->tile[0][0];
    assert_true(c->shared <= facts->shared_per_block);
    assert_true(tile->planes > 0 && tile->threads > 0 && tile->threads % 32 == 0 && tile->blocks > 0);
    assert_true((int64_t)tile->threads * tile->blocks <= facts->threads_per_multiprocessor);
    assert_true(tile->blocks * (c->shared + facts->shared_reserved_per_block) <= facts->shared_per_multiprocessor);
    assert_true(c->chunk > 0 && c->out % c->chunk == 0 && c->out / c->chunk <= 65535);
    assert_true(c->slices > 0 && c->slices <= c->rows && c->slices <= 65535);
    assert_true(c->blocks * tile->planes >= (pass == CF_PASS_WEIGHTS ? c->groups : c->groups * c->rows));
    return true;
}

static void passes_are_cut_for_the_gpu(void **unused) {
    (void)unused;
    const cf_gpu_facts gpus[2] = {facts_of("facts/h200.txt"), facts_of("facts/a100.txt")};
    cf_fused_config c;
    for (int i = 0; i < PROBLEMS; ++i)
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
            for (int g = 0; g < 2; ++g)
                if ((representative[i].passes & 1 << pass) && !cut(i, pass, &gpus[g], &c))
                    fail_msg("%s: %s, pass %d: %s", gpus[g].name, representative[i].problem, pass,
                             conv_fft_last_error());
}

/* A pass that needs more is refused; whatever is accepted fits. */
static void little_shared_memory(void **unused) {
    (void)unused;
    cf_gpu_facts facts = facts_of("facts/h200.txt");
    int accepted = 0, refused = 0;
    for (int64_t bytes = 1000; bytes < 200000; bytes += bytes / 7)
        for (int i = 0; i < PROBLEMS; ++i)
            for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
                cf_fused_config c;
                facts.shared_per_block = bytes;
                facts.shared_per_multiprocessor = bytes + facts.shared_reserved_per_block;
                const bool good = (representative[i].passes & 1 << pass) && cut(i, pass, &facts, &c);
                accepted += good;
                refused += !good;
            }
    print_message("          %d fit, %d are refused\n", accepted, refused);
    assert_true(accepted > 0 && refused > 0);
}

/* Channels that stand side by side: as many at once as there are in sixteen bytes, at multiples of their size. */
static void channels_are_moved_together(void **unused) {
    (void)unused;
    static const struct {
        const char *problem;
        int wide; /* 0: planes that do not touch */
    } cases[] = {
        {"in=8x96x20x20 out=96 groups=96 kernel=5x5 pad=2 layout=last dtype=fp16", 8},
        {"in=8x24x20x20 out=24 groups=24 kernel=5x5 pad=2 layout=last dtype=bf16", 8},
        {"in=8x12x20x20 out=12 groups=12 kernel=5x5 pad=2 layout=last dtype=fp16", 4},
        {"in=8x14x20x20 out=14 groups=14 kernel=5x5 pad=2 layout=last dtype=fp16", 2},
        {"in=8x15x20x20 out=15 groups=15 kernel=5x5 pad=2 layout=last dtype=fp16", 1},
        {"in=8x96x20x20 out=96 groups=96 kernel=5x5 pad=2 layout=last", 4},
        {"in=8x96x20x20 out=96 groups=96 kernel=5x5 pad=2 dtype=fp16", 0},
    };
    const cf_gpu_facts facts = facts_of("facts/h200.txt");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
            cf_layer layer;
            cf_strategy strategy;
            cf_fused_config c;
            make_one(cases[i].problem, "basis=24x24 tiles=1x1", &layer, &strategy);
            assert_int_equal(cf_fused_configure(&layer, pass, &strategy, &facts, &c), CONV_FFT_SUCCESS);
            for (int side = 0; side < 2; ++side) {
                const cf_tile_config *const tile = c.tile[side];
                assert_int_equal(tile[0].planes_touch, cases[i].wide > 0);
                assert_int_equal(tile[1].wide, 1); /* for pointers at any place */
                if (cases[i].wide == 0)
                    continue;
                assert_int_equal(tile[0].wide, cases[i].wide);
                assert_int_equal(tile[0].planes % cases[i].wide, 0);
            }
        }
}

/* Of single channels in one tile, bases that are a little longer than need be, where the model finds those cheaper whose lines take fewer
 * operations. */
static void longer_bases_are_offered(void **unused) {
    (void)unused;
    static const struct {
        const char *problem;
        int64_t basis;
        bool offered;
    } cases[] = {
        {"in=64x512x14x14 out=512 groups=512 kernel=27x27 pad=13", 28, true},
        {"in=64x1024x7x7 out=1024 groups=1024 kernel=13x13 pad=6", 15, true},
        {"in=64x1024x7x7 out=1024 groups=1024 kernel=13x13 pad=6", 18, false},
        {"in=64x8x14x14 out=8 kernel=27x27 pad=13", 28, false},
    };
    cf_gpu gpu = {.facts = facts_of("facts/h200.txt")};
    cf_device *device;
    cf_layer layer;
    cf_strategy strategy;
    assert_int_equal(cf_gpu_layers_create(&gpu, &device), CONV_FFT_SUCCESS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        cf_space_bases bases[3];
        bool offered = false;
        make_one(cases[i].problem, "basis=32x32 tiles=1x1", &layer, &strategy);
        cf_space_bases_of(&layer, device, false, bases);
        for (int n = 0; n < bases[1].count; ++n)
            offered = offered || bases[1].basis[n] == cases[i].basis;
        assert_int_equal(offered, cases[i].offered);
    }
    static const char *const grids[] = {"basis=28x28 tiles=1x1", "basis=27x28 tiles=1x1"};
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        double seconds[2];
        for (int i = 0; i < 2; ++i) {
            cf_stage_cost cost[CF_STAGE_COUNT];
            make_one(cases[0].problem, grids[i], &layer, &strategy);
            cf_model_pass(&layer, device, pass, &strategy, cost);
            seconds[i] = cf_model_seconds(cost);
        }
        assert_true(seconds[0] < seconds[1]);
    }
    cf_gpu_layers_destroy(device);
}

/* What both gradients save by reading gy as planes that are made once: something where both have kernels that read them. */
static bool reads_planes_of_gy(const cf_layer *layer, int pass, const cf_strategy *s, const cf_gpu_facts *facts) {
    cf_fused_config c;
    assert_int_equal(cf_fused_configure(layer, pass, s, facts, &c), CONV_FFT_SUCCESS);
    return c.keeps && c.turn.blocks > 0 && c.turn.reads && !c.turn.x;
}
static void gradients_share_planes_of_gy(void **unused) {
    (void)unused;
    static const struct {
        const char *problem, *grid;
        bool shared;
    } cases[] = {
        {"in=64x3x128x128 out=96 kernel=11x11 layout=last", "basis=40x128 tiles=4x1", true},
        {"in=64x3x128x128 out=96 kernel=11x11 layout=last dtype=fp16", "basis=40x128 tiles=4x1", true},
        {"in=64x1x60x60 out=64 kernel=5x5 stride=2 layout=last", "basis=32x32 tiles=1x1", true},
        {"in=64x3x60x60 out=64 kernel=5x5 stride=2 layout=last", "basis=32x32 tiles=1x1", false}, /* twelve columns */
        {"in=64x3x128x128 out=96 kernel=11x11", "basis=40x128 tiles=4x1", false},                 /* are planes */
        {"in=64x96x60x60 out=3 kernel=5x5 layout=last", "basis=60x60 tiles=1x1", false}, /* x has the channels */
        {"in=64x3x60x60 out=6 kernel=5x5 layout=last", "basis=60x60 tiles=1x1", false},  /* less than a sector */
        {"in=64x4x60x60 out=64 groups=2 kernel=5x5 layout=last", "basis=60x60 tiles=1x1", false},
    };
    cf_gpu gpu = {.facts = facts_of("facts/h200.txt")};
    cf_device *device;
    assert_int_equal(cf_gpu_layers_create(&gpu, &device), CONV_FFT_SUCCESS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        cf_layer layer;
        cf_strategy s, staged;
        cf_stage_cost cost[CF_STAGE_COUNT];
        make_one(cases[i].problem, cases[i].grid, &layer, &s);
        const double saved = cf_model_shared_turn(&layer, device, &s, &s);
        if (cases[i].shared != (saved > 0.0) ||
            cases[i].shared != (reads_planes_of_gy(&layer, CF_PASS_DATA, &s, &gpu.facts) &&
                                reads_planes_of_gy(&layer, CF_PASS_WEIGHTS, &s, &gpu.facts)))
            fail_msg("%s: %g seconds are saved", cases[i].problem, saved);
        if (!cases[i].shared)
            continue;
        /* It is what one of the passes takes for it, which is no faster than memory. */
        const cf_fused_turn turn = cf_fused_turn_of(&layer, CF_PASS_WEIGHTS, &s);
        cf_model_pass(&layer, device, CF_PASS_WEIGHTS, &s, cost);
        assert_true(saved < cf_model_seconds(cost));
        assert_true(saved > (double)turn.bytes / (2.0 * device->bandwidth));
        /* A pass of another family makes no planes. */
        staged = s;
        staged.family = CF_FAMILY_STAGED;
        assert_true(cf_model_shared_turn(&layer, device, &staged, &s) <= 0.0);
        assert_true(cf_model_shared_turn(&layer, device, &s, &staged) <= 0.0);
    }
    cf_gpu_layers_destroy(device);
}

static void compile_some(const cf_jit *jit, const char *facts_file, int one_of) {
    const cf_gpu_facts facts = facts_of(facts_file);
    static compiled kernels[MOST_KERNELS];
    int count = 0;
    for (int i = 0; i < PROBLEMS; i += one_of)
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
            cf_fused_config c;
            if (!(representative[i].passes & 1 << pass) || !cut(i, pass, &facts, &c))
                continue;
            for (int k = 0; k < cf_fused_kernels(&c); ++k) {
                assert_true(count < MOST_KERNELS);
                compiled *const kernel = &kernels[count++];
                *kernel = (compiled){.allowed = ALLOWED};
                assert_int_equal(cf_fused_source(&c, k, &kernel->source), CONV_FFT_SUCCESS);
                snprintf(kernel->name, sizeof kernel->name, "%s, %s, pass %d, kernel %d", representative[i].problem,
                         representative[i].grid, pass, k);
            }
        }
    assert_int_equal(compile_kernels(jit, &facts, kernels, count), 0);
}

static void kernels_compile_without_many_spills(void **unused) {
    (void)unused;
    cf_jit jit;
    if (!compiler_open(&jit))
        skip();
    compile_some(&jit, "facts/h200.txt", ONE_OF);
    compile_some(&jit, "facts/a100.txt", 3 * ONE_OF);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_are_cut_for_the_gpu),   cmocka_unit_test(little_shared_memory),
        cmocka_unit_test(channels_are_moved_together),  cmocka_unit_test(longer_bases_are_offered),
        cmocka_unit_test(gradients_share_planes_of_gy), cmocka_unit_test(kernels_compile_without_many_spills),
    };
    return cmocka_run_group_tests_name("fused config", tests, NULL, NULL);
}
