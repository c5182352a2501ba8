/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of layers on the substitute GPU of tests/fakes, which computes nothing: what they launch with each strategy,
 * with kept spectra, and for both gradients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fakes/fake.h"
#include "support/error_text.h"
#include "support/fake_gpu.h"
#include "support/fake_layers.h"
#include "support/layer.h"
#include "support/strategy_lines.h"
#include "support/temp_dirs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int launches(void) { return ((const fake_cuda *)inside_fake(DRIVER, "fake_cuda_state"))->launches; }
static int products(void) {
    return ((const fake_cublas *)inside_fake(FAKES "/with_cublas/libcublas.so.13", "fake_cublas_state"))->products;
}

/* The stream of the calls. It need not exist. */
static char stream;
#define STREAM ((struct CUstream_st *)(void *)&stream)

/* One forward and one backward call. The memory is host memory, and nothing reads it. */
static void call_both(layer *l, const conv_fft_plan *plan) {
    guarded forward = layer_workspace(l, plan, CONV_FFT_FORWARD), back = layer_workspace(l, plan, CONV_FFT_BACKWARD);
    const void *x = l->x.tensor.memory.data, *w = l->w.tensor.memory.data;
    assert_int_equal(conv_fft_forward(plan, x, w, l->bias.tensor.memory.data, l->y.tensor.memory.data, forward.data,
                                      forward.bytes, STREAM),
                     CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_backward(plan, x, w, l->gy.tensor.memory.data, l->gx.tensor.memory.data,
                                       l->gw.tensor.memory.data, l->gbias.tensor.memory.data, 0, back.data, back.bytes,
                                       STREAM),
                     CONV_FFT_SUCCESS);
    assert_true(release_workspace(&forward, "conv_fft_forward") && release_workspace(&back, "conv_fft_backward"));
}

/* The same with kept spectra: a call of its own makes the spectrum of w, the forward call makes the spectrum of x, and
 * the backward call reads both. */
static void call_kept(layer *l, const conv_fft_plan *plan) {
    guarded forward = layer_workspace(l, plan, CONV_FFT_FORWARD), back = layer_workspace(l, plan, CONV_FFT_BACKWARD);
    const void *x = l->x.tensor.memory.data, *w = l->w.tensor.memory.data;
    size_t x_bytes, w_bytes;
    assert_int_equal(conv_fft_plan_spectrum(plan, CONV_FFT_OPERAND_X, &x_bytes), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_plan_spectrum(plan, CONV_FFT_OPERAND_W, &w_bytes), CONV_FFT_SUCCESS);
    guarded kept_x = guarded_create(x_bytes, 16), kept_w = guarded_create(w_bytes, 16);
    assert_int_equal(conv_fft_transform_weights(plan, w, kept_w.data, forward.data, forward.bytes, STREAM),
                     CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_forward_kept(plan, x, w, NULL, l->y.tensor.memory.data, kept_x.data, kept_w.data,
                                           forward.data, forward.bytes, STREAM),
                     CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_backward_kept(plan, NULL, NULL, l->gy.tensor.memory.data, l->gx.tensor.memory.data,
                                            l->gw.tensor.memory.data, NULL, 0, kept_x.data, kept_w.data, back.data,
                                            back.bytes, STREAM),
                     CONV_FFT_SUCCESS);
    guarded_destroy(&kept_x);
    guarded_destroy(&kept_w);
    assert_true(release_workspace(&forward, "conv_fft_forward_kept") &&
                release_workspace(&back, "conv_fft_backward_kept"));
}

/* Calls only launch in their stream. They load nothing, compile nothing, allocate and free no device memory, and never
 * wait. */
static void check_calls(conv_fft_context *context, const char *line, int keep,
                        void (*call)(layer *, const conv_fft_plan *), int least) {
    fake_cuda *const driver = inside_fake(DRIVER, "fake_cuda_state");
    const conv_fft_problem p = test_problem(line);
    generator g = test_generator(1);
    layer l = layer_create(&p, &g);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.keep = keep;
    conv_fft_plan *plan = test_plan(context, &p, &options);
    assert_non_null(plan);
    const int compiled = fake_compilations(), loaded = driver->modules, before = launches(), taken = driver->taken,
              freed = driver->freed, waits = driver->waits, elsewhere = driver->elsewhere;
    driver->expected_stream = STREAM;
    call(&l, plan);
    driver->expected_stream = NULL;
    assert_int_equal(driver->elsewhere, elsewhere);
    print_message("%s: %d launches\n", line, launches() - before);
    assert_true(launches() - before >= least);
    assert_int_equal(fake_compilations(), compiled);
    assert_int_equal(driver->modules, loaded);
    assert_int_equal(driver->taken, taken);
    assert_int_equal(driver->freed, freed);
    assert_int_equal(driver->waits, waits);
    assert_int_equal(driver->depth, 0);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

static void calls(void **state) {
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    /* x, w, y, twice their inverse and gy, gbias. Layers 1, 2 and 4 have passes without transforms, which take one
     * launch, or two for gw and where a gx is folded. */
    static const int least[] = {8, 5, 5, 8, 6};
    for (int i = 0; i < 5; i++) {
        check_calls(context, fake_layer_lines[i], 0, call_both, least[i]);
        check_calls(context, fake_layer_lines[i], CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W, call_kept,
                    8); /* w, then w, x, y; gy, gx, gw */
    }
    fake_context_destroy(context);
}

/* The counters see a profile, which allocates memory, uses events and waits. */
static void counters_see_a_profile(void **state) {
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    const fake_cuda *const driver = inside_fake(DRIVER, "fake_cuda_state");
    const conv_fft_problem p = test_problem(fake_layer_lines[0]);
    conv_fft_plan *plan = test_plan(context, &p, NULL);
    conv_fft_description d;
    const int taken = driver->taken, freed = driver->freed, waits = driver->waits;
    assert_int_equal(conv_fft_profile(plan, CONV_FFT_FORWARD, 1, &d), CONV_FFT_SUCCESS);
    assert_true(driver->taken > taken && driver->freed > freed && driver->waits > waits);
    assert_int_equal(driver->taken - taken, driver->freed - freed);
    conv_fft_plan_destroy(plan);
    fake_context_destroy(context);
}

/* At the level CALLS every call writes a line and waits. The substitute driver says that everything takes 1.5 ms. A
 * stream that is being captured is not waited for. */
static void calls_write_lines(void **state) {
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    fake_cuda *const driver = inside_fake(DRIVER, "fake_cuda_state");
    const conv_fft_problem p = test_problem(fake_layer_lines[0]);
    generator g = test_generator(1);
    layer l = layer_create(&p, &g);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
    for (int level = CONV_FFT_LOG_INFO; level <= CONV_FFT_LOG_CALLS; ++level) {
        context->log_level = (conv_fft_log_level)level;
        conv_fft_plan *plan = test_plan(context, &p, NULL), *kept = test_plan(context, &p, &options);
        for (int captured = 0; captured < 2; ++captured) {
            const int waits = driver->waits, logs = level == CONV_FFT_LOG_CALLS;
            driver->captured_stream = captured ? STREAM : NULL;
            driver->expected_stream = STREAM;
            const int elsewhere = driver->elsewhere;
            capture_begin();
            call_both(&l, plan);
            call_kept(&l, kept);
            const char *said = capture_end();
            driver->captured_stream = driver->expected_stream = NULL;
            assert_int_equal(driver->elsewhere, elsewhere);
            assert_int_equal(driver->waits - waits, logs && !captured ? 5 : 0);
            assert_int_equal(occurrences(said, "conv_fft: call | "), logs ? 5 : 0);
            assert_int_equal(occurrences(said, captured ? " | - | model\n" : " | 1.5000 ms | model\n"), logs ? 5 : 0);
            assert_int_equal(occurrences(said, "call | forward | in="), logs);
            assert_int_equal(occurrences(said, "call | both gradients | in="), logs);
            assert_int_equal(occurrences(said, "call | transform w | in="), logs);
            assert_int_equal(occurrences(said, "call | forward, kept spectra xw | in="), logs);
            assert_int_equal(occurrences(said, "call | both gradients, kept spectra xw | in="), logs);
        }
        conv_fft_plan_destroy(plan);
        conv_fft_plan_destroy(kept);
    }
    const strategies s = chosen_strategies(context, &p);
    conv_fft_plan_options_init(&options);
    options.strategy[0] = s.line[0];
    conv_fft_plan *plan = test_plan(context, &p, &options);
    capture_begin();
    call_both(&l, plan);
    const char *said = capture_end();
    assert_int_equal(occurrences(said, " | given\n"), 1);
    assert_int_equal(occurrences(said, " | model\n"), 1);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
    fake_context_destroy(context);
}

/* --------------------------------------------------------------------------------------------------- both gradients */

typedef struct backward_launches {
    int data, weights, both;
} backward_launches;

static backward_launches count_backward(layer *l, const conv_fft_plan *plan) {
    backward_launches n;
    guarded workspace = layer_workspace(l, plan, CONV_FFT_BACKWARD);
    const void *x = l->x.tensor.memory.data, *w = l->w.tensor.memory.data, *gy = l->gy.tensor.memory.data;
    void *gx = l->gx.tensor.memory.data, *gw = l->gw.tensor.memory.data;
    int *const counts[] = {&n.data, &n.weights, &n.both};
    for (int i = 0; i < 3; i++) {
        const int before = launches();
        assert_int_equal(conv_fft_backward(plan, i == 0 ? NULL : x, i == 1 ? NULL : w, gy, i == 1 ? NULL : gx,
                                           i == 0 ? NULL : gw, NULL, 0, workspace.data, workspace.bytes, NULL),
                         CONV_FFT_SUCCESS);
        *counts[i] = launches() - before;
    }
    assert_true(release_workspace(&workspace, "conv_fft_backward"));
    return n;
}

#define STAGED(basis, tiles, overlap)                                       \
    "staged basis=" basis " tiles=" tiles " dilation=step overlap=" overlap \
    " product=loop spectrum=fp32 chunk=0 groups=0 keep="

/* gy is transformed once for both gradients, which saves a launch. With overlap-save, the tiles of gy differ between
 * the gradients. With overlap-add, gx is zeroed, and its tiles are added one after the other. If each gradient alone
 * makes two spectra in one launch, the joint call makes the spectra of w and gy in one launch, and the spectrum of x in
 * another. */
static void joint_backward(void **state) {
    static const struct {
        const char *data, *weights;
        int shares, data_launches, weights_launches, both_launches;
    } cases[] = {
        {STAGED("16x16", "1x1", "save") "w", STAGED("16x16", "1x1", "save") "x", 1, 4, 4, 7},
        {STAGED("10x12", "2x2", "add") "w", STAGED("10x12", "2x2", "add") "x", 1, 8, 4, 11},
        {STAGED("10x12", "2x2", "save") "w", STAGED("10x12", "2x2", "save") "x", 0, 4, 4, 8},
        {STAGED("16x16", "1x1", "save") "w", STAGED("16x18", "1x1", "save") "x", 0, 4, 4, 8},
        {STAGED("16x16", "1x1", "save") "none", STAGED("16x16", "1x1", "save") "none", 1, 3, 3, 6},
        {STAGED("16x16", "1x1", "save") "none", STAGED("16x18", "1x1", "save") "none", 0, 3, 3, 6},
    };
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    const conv_fft_problem p = test_problem(fake_layer_lines[0]);
    generator g = test_generator(1);
    layer l = layer_create(&p, &g);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        conv_fft_plan_options options;
        conv_fft_description d;
        conv_fft_plan_options_init(&options);
        options.passes = CONV_FFT_BACKWARD;
        options.strategy[1] = cases[i].data;
        options.strategy[2] = cases[i].weights;
        conv_fft_plan *plan = test_plan(context, &p, &options);
        assert_non_null(plan);
        assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_BACKWARD, &d), CONV_FFT_SUCCESS);
        assert_int_equal(d.shares_gy, cases[i].shares);
        const backward_launches n = count_backward(&l, plan);
        assert_int_equal(n.data, cases[i].data_launches);
        assert_int_equal(n.weights, cases[i].weights_launches);
        assert_int_equal(n.both, cases[i].both_launches);
        conv_fft_plan_destroy(plan);
    }
    layer_destroy(&l);
    fake_context_destroy(context);
}

/* Layers with channels last and few channels on one side: fused kernels read planes of gy. For both gradients these
 * planes are made once, if both gradients read them. */
static void joint_backward_planes(void **state) {
    static const char fused[] = "fused basis=24x20 tiles=1x1 dilation=step spectrum=fp32";
    static const struct {
        const char *line, *data;
        int fewer;
    } cases[] = {
        {"in=3x3x20x16 out=40 kernel=5x5 pad=2 layout=last", fused, 1},
        {"in=3x3x20x16 out=40 kernel=5x5 pad=2 layout=last", STAGED("24x20", "1x1", "save") "none", 0},
        {"in=3x3x20x16 out=40 kernel=5x5 pad=2", fused, 0},
        {"in=3x40x20x16 out=3 kernel=5x5 pad=2 layout=last", fused, 0},
    };
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    generator g = test_generator(1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const conv_fft_problem p = test_problem(cases[i].line);
        layer l = layer_create(&p, &g);
        conv_fft_plan_options options;
        conv_fft_plan_options_init(&options);
        options.passes = CONV_FFT_BACKWARD;
        options.strategy[1] = cases[i].data;
        options.strategy[2] = fused;
        conv_fft_plan *plan = test_plan(context, &p, &options);
        assert_non_null(plan);
        const backward_launches n = count_backward(&l, plan);
        assert_int_equal(n.both, n.data + n.weights - cases[i].fewer);
        conv_fft_plan_destroy(plan);
        layer_destroy(&l);
    }
    fake_context_destroy(context);
}

/* The product that the strategy names is the one that runs. */
static void product_variants(void **state) {
    static const char *const variants[] = {"blas", "loop", "tensor"};
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    const conv_fft_problem p = test_problem(fake_layer_lines[0]);
    generator g = test_generator(1);
    layer l = layer_create(&p, &g);
    strategies s = chosen_strategies(context, &p);
    int launched[3], multiplied[3];
    for (int v = 0; v < 3; v++) {
        conv_fft_plan_options options;
        conv_fft_plan_options_init(&options);
        for (int pass = 0; pass < 3; pass++) {
            char edited[256];
            edit_strategy(s.line[pass], "product", variants[v], edited, sizeof edited);
            memcpy(s.line[pass], edited, sizeof edited);
            options.strategy[pass] = s.line[pass];
        }
        conv_fft_plan *plan = test_plan(context, &p, &options);
        assert_non_null(plan);
        launched[v] = launches();
        multiplied[v] = products();
        call_both(&l, plan);
        launched[v] = launches() - launched[v];
        multiplied[v] = products() - multiplied[v];
        conv_fft_plan_destroy(plan);
    }
    assert_int_equal(multiplied[0], 3);
    assert_int_equal(multiplied[1], 0);
    assert_int_equal(multiplied[2], 0);
    assert_int_equal(launched[1], launched[0] + 3);
    assert_int_equal(launched[2], launched[0] + 3);
    layer_destroy(&l);
    fake_context_destroy(context);
}

/* ------------------------------------------------------------------------------------------- kept spectra and pairs */

/* The operands that options.keep names can be kept. Then no launch transforms both operands, with chosen and with given
 * strategies. */
static void kept_spectra_exclude_pairs(void **state) {
    static const char forced[] = "staged basis=16x16 tiles=1x1 dilation=step overlap=save product=loop spectrum=fp32 "
                                 "chunk=0 groups=0 keep=none";
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    const conv_fft_problem p = test_problem("in=2x8x12x13 out=16 kernel=3x3 pad=1");
    for (int way = 0; way < 4; ++way) {
        const bool keeps = way % 2 != 0;
        conv_fft_plan_options options;
        size_t bytes, workspace;
        conv_fft_plan_options_init(&options);
        options.passes = CONV_FFT_FORWARD;
        options.keep = keeps ? CONV_FFT_OPERAND_W : 0;
        options.strategy[0] = way / 2 ? forced : NULL;
        conv_fft_plan *plan = test_plan(context, &p, &options);
        assert_non_null(plan);
        assert_int_equal(conv_fft_plan_workspace(plan, CONV_FFT_FORWARD, &workspace), CONV_FFT_SUCCESS);
        char *memory = test_alloc(workspace + 400000), *w_spectrum = memory + 100032;
        if (!keeps) {
            EXPECT(NOT_SUPPORTED, conv_fft_plan_spectrum(plan, CONV_FFT_OPERAND_W, &bytes), "options.keep");
            EXPECT(NOT_SUPPORTED, conv_fft_transform_weights(plan, memory, w_spectrum, memory, workspace, NULL),
                   "options.keep");
            EXPECT_INVALID(
                conv_fft_forward_kept(plan, memory, NULL, NULL, memory, NULL, w_spectrum, memory, workspace, NULL),
                "w_spectrum is given");
        } else {
            assert_int_equal(conv_fft_plan_spectrum(plan, CONV_FFT_OPERAND_W, &bytes), CONV_FFT_SUCCESS);
            assert_true(bytes <= 200000);
            assert_int_equal(conv_fft_transform_weights(plan, memory, w_spectrum, memory + 300032, workspace, NULL),
                             CONV_FFT_SUCCESS);
            assert_int_equal(conv_fft_forward_kept(plan, memory, NULL, NULL, memory + 50048, NULL, w_spectrum,
                                                   memory + 300032, workspace, NULL),
                             CONV_FFT_SUCCESS);
        }
        free(memory);
        conv_fft_plan_destroy(plan);
    }
    fake_context_destroy(context);
}

/* The number of launches of a forward call in chunks of `chunk` rows; 0: all rows at once. */
static int launches_in_chunks(conv_fft_context *context, int chunk) {
    const conv_fft_problem p = test_problem("in=4x8x12x13 out=16 kernel=3x3 pad=1");
    char line[256];
    conv_fft_plan_options options;
    size_t bytes;
    conv_fft_plan_options_init(&options);
    options.passes = CONV_FFT_FORWARD;
    snprintf(line, sizeof line,
             "staged basis=16x16 tiles=1x1 dilation=step overlap=save product=loop spectrum=fp32 chunk=%d groups=0 "
             "keep=none",
             chunk);
    options.strategy[0] = line;
    conv_fft_plan *plan = test_plan(context, &p, &options);
    assert_non_null(plan);
    assert_int_equal(conv_fft_plan_workspace(plan, CONV_FFT_FORWARD, &bytes), CONV_FFT_SUCCESS);
    char *memory = test_alloc(bytes + 100000), *y = memory + 50048;
    const int before = launches();
    assert_int_equal(conv_fft_forward(plan, memory, memory, NULL, y, memory + 100000, bytes, NULL), CONV_FFT_SUCCESS);
    const int count = launches() - before;
    free(memory);
    conv_fft_plan_destroy(plan);
    return count;
}

/* One launch transforms x and w if a call processes all rows at once. In chunks, w is transformed once, before the
 * first chunk. */
static void chunks_have_no_pairs(void **state) {
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    assert_int_equal(launches_in_chunks(context, 0), 3);     /* x and w, product, y */
    assert_int_equal(launches_in_chunks(context, 2), 1 + 6); /* w; x, product, y of each chunk */
    assert_int_equal(launches_in_chunks(context, 1), 1 + 12);
    fake_context_destroy(context);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(calls),
        IN_SCRATCH(counters_see_a_profile),
        IN_SCRATCH(calls_write_lines),
        IN_SCRATCH(joint_backward),
        IN_SCRATCH(joint_backward_planes),
        IN_SCRATCH(product_variants),
        IN_SCRATCH(kept_spectra_exclude_pairs),
        IN_SCRATCH(chunks_have_no_pairs),
    };
    return cmocka_run_group_tests_name("calls on the substitute GPU", tests, NULL, NULL);
}
