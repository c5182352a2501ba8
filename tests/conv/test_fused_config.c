/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of fused passes; no GPU is needed. nvrtc/test_fused.c compiles their kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "autotune/model/cost_model.h"
#include "autotune/search/search_space.h"
#include "conv/fused/fused.h"
#include "conv/gpu/backend.h"
#include "conv/plan/family.h"
#include "support/kernel_cases.h"

/* Whether the pass has a configuration for this GPU. If so, the GPU has the resources that it needs. */
static bool cut(int i, int pass, const cf_gpu_properties *properties, cf_fused_config *c) {
    cf_layer layer;
    cf_strategy strategy;
    const char *why;
    fused_make(fused_cases[i].problem, fused_cases[i].grid, &layer, &strategy);
    if (!cf_family_named("fused")->feasible(&layer, pass, &strategy, &why))
        fail_msg("%s, %s, pass %d: %s", fused_cases[i].problem, fused_cases[i].grid, pass, why);
    const conv_fft_status status = cf_fused_configure(&layer, pass, &strategy, properties, c);
    if (status == CONV_FFT_NOT_SUPPORTED)
        return false;
    assert_int_equal(status, CONV_FFT_SUCCESS);
    const cf_shared_fft_config *const tile = &c->tile[0][0];
    assert_true(c->shared <= properties->shared_per_block);
    assert_true(tile->planes > 0 && tile->threads > 0 && tile->threads % 32 == 0 && tile->blocks > 0);
    assert_true((int64_t)tile->threads * tile->blocks <= properties->threads_per_multiprocessor);
    assert_true(tile->blocks * (c->shared + properties->shared_reserved_per_block) <=
                properties->shared_per_multiprocessor);
    assert_true(c->chunk > 0 && c->out % c->chunk == 0 && c->out / c->chunk <= 65535);
    assert_true(c->slices > 0 && c->slices <= c->rows && c->slices <= 65535);
    assert_true(c->blocks * tile->planes >= (pass == CF_PASS_WEIGHTS ? c->groups : c->groups * c->rows));
    return true;
}

static void passes_are_cut_for_the_gpu(void **unused) {
    (void)unused;
    const cf_gpu_properties gpus[2] = {gpu_properties_of("data/gpus/h200.txt"),
                                       gpu_properties_of("data/gpus/a100.txt")};
    cf_fused_config c;
    for (int i = 0; i < fused_case_count; ++i)
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
            for (int g = 0; g < 2; ++g)
                if ((fused_cases[i].passes & 1 << pass) && !cut(i, pass, &gpus[g], &c))
                    fail_msg("%s: %s, pass %d: %s", gpus[g].name, fused_cases[i].problem, pass, conv_fft_last_error());
}

/* A pass that needs more shared memory than the GPU has is refused, and an accepted pass fits. */
static void little_shared_memory(void **unused) {
    (void)unused;
    cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    int accepted = 0, refused = 0;
    for (int64_t bytes = 1000; bytes < 200000; bytes += bytes / 7)
        for (int i = 0; i < fused_case_count; ++i)
            for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
                cf_fused_config c;
                properties.shared_per_block = bytes;
                properties.shared_per_multiprocessor = bytes + properties.shared_reserved_per_block;
                const bool good = (fused_cases[i].passes & 1 << pass) && cut(i, pass, &properties, &c);
                accepted += good;
                refused += !good;
            }
    print_message("          %d fit, %d are refused\n", accepted, refused);
    assert_true(accepted > 0 && refused > 0);
}

/* Channels-last tensors are moved by vectors of up to 16 bytes, whose size divides that of a row. */
static void channels_are_moved_together(void **unused) {
    (void)unused;
    static const struct {
        const char *problem;
        int vector_width; /* 0: planes that do not touch */
    } cases[] = {
        {"in=8x96x20x20 out=96 groups=96 kernel=5x5 pad=2 layout=last dtype=fp16", 8},
        {"in=8x24x20x20 out=24 groups=24 kernel=5x5 pad=2 layout=last dtype=bf16", 8},
        {"in=8x12x20x20 out=12 groups=12 kernel=5x5 pad=2 layout=last dtype=fp16", 4},
        {"in=8x14x20x20 out=14 groups=14 kernel=5x5 pad=2 layout=last dtype=fp16", 2},
        {"in=8x15x20x20 out=15 groups=15 kernel=5x5 pad=2 layout=last dtype=fp16", 1},
        {"in=8x96x20x20 out=96 groups=96 kernel=5x5 pad=2 layout=last", 4},
        {"in=8x96x20x20 out=96 groups=96 kernel=5x5 pad=2 dtype=fp16", 0},
    };
    const cf_gpu_properties properties = gpu_properties_of("data/gpus/h200.txt");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
            cf_layer layer;
            cf_strategy strategy;
            cf_fused_config c;
            fused_make(cases[i].problem, "basis=24x24 tiles=1x1", &layer, &strategy);
            assert_int_equal(cf_fused_configure(&layer, pass, &strategy, &properties, &c), CONV_FFT_SUCCESS);
            for (int side = 0; side < 2; ++side) {
                const cf_shared_fft_config *const tile = c.tile[side];
                assert_int_equal(tile[0].planes_interleaved, cases[i].vector_width > 0);
                assert_int_equal(tile[1].vector_width, 1); /* for pointers at any place */
                if (cases[i].vector_width == 0)
                    continue;
                assert_int_equal(tile[0].vector_width, cases[i].vector_width);
                assert_int_equal(tile[0].planes % cases[i].vector_width, 0);
            }
        }
}

/* For single channels in one tile, the model may choose a basis slightly above the minimum, if transforms of that
 * length take fewer operations. */
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
    cf_gpu gpu = {.properties = gpu_properties_of("data/gpus/h200.txt")};
    cf_device *device;
    cf_layer layer;
    cf_strategy strategy;
    assert_int_equal(cf_gpu_layers_create(&gpu, &device), CONV_FFT_SUCCESS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        cf_space_bases bases[3];
        bool offered = false;
        fused_make(cases[i].problem, "basis=32x32 tiles=1x1", &layer, &strategy);
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
            fused_make(cases[0].problem, grids[i], &layer, &strategy);
            cf_model_pass(&layer, device, pass, &strategy, cost);
            seconds[i] = cf_model_seconds(cost);
        }
        assert_true(seconds[0] < seconds[1]);
    }
    cf_gpu_layers_destroy(device);
}

/* Making planes of gy once for both gradients saves time exactly if kernels of both gradients read such planes. */
static bool reads_planes_of_gy(const cf_layer *layer, int pass, const cf_strategy *s,
                               const cf_gpu_properties *properties) {
    cf_fused_config c;
    assert_int_equal(cf_fused_configure(layer, pass, s, properties, &c), CONV_FFT_SUCCESS);
    return c.resident && c.transpose.blocks > 0 && c.transpose.reads && !c.transpose.x;
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
    cf_gpu gpu = {.properties = gpu_properties_of("data/gpus/h200.txt")};
    cf_device *device;
    assert_int_equal(cf_gpu_layers_create(&gpu, &device), CONV_FFT_SUCCESS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        cf_layer layer;
        cf_strategy s, staged;
        cf_stage_cost cost[CF_STAGE_COUNT];
        fused_make(cases[i].problem, cases[i].grid, &layer, &s);
        const double saved = cf_model_shared_transpose(&layer, device, &s, &s);
        if (cases[i].shared != (saved > 0.0) ||
            cases[i].shared != (reads_planes_of_gy(&layer, CF_PASS_DATA, &s, &gpu.properties) &&
                                reads_planes_of_gy(&layer, CF_PASS_WEIGHTS, &s, &gpu.properties)))
            fail_msg("%s: %g seconds are saved", cases[i].problem, saved);
        if (!cases[i].shared)
            continue;
        /* The time saved is the time that one pass needs for it, which is no faster than memory. */
        const cf_nhwc_transpose transpose = cf_nhwc_transpose_of(&layer, CF_PASS_WEIGHTS, &s);
        cf_model_pass(&layer, device, CF_PASS_WEIGHTS, &s, cost);
        assert_true(saved < cf_model_seconds(cost));
        assert_true(saved > (double)transpose.bytes / (2.0 * device->bandwidth));
        /* A pass of another family makes no planes. */
        staged = s;
        staged.family = cf_family_named("staged");
        assert_true(cf_model_shared_transpose(&layer, device, &staged, &s) <= 0.0);
        assert_true(cf_model_shared_transpose(&layer, device, &s, &staged) <= 0.0);
    }
    cf_gpu_layers_destroy(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_are_cut_for_the_gpu),   cmocka_unit_test(little_shared_memory),
        cmocka_unit_test(channels_are_moved_together),  cmocka_unit_test(longer_bases_are_offered),
        cmocka_unit_test(gradients_share_planes_of_gy),
    };
    return cmocka_run_group_tests_name("fused config", tests, NULL, NULL);
}
