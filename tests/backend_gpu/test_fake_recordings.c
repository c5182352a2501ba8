/* SPDX-License-Identifier: Apache-2.0 */
/* A plan records the launches of its calls. A recorded call launches the same as one that runs the families: the same
 * kernels with the same grids and parameters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conv/plan/family.h"
#include "conv/plan/run.h"
#include "core/arith.h"
#include "cuda/jit/launch.h"
#include "fakes/fake.h"
#include "support/compare.h"
#include "support/fake_gpu.h"
#include "support/fake_layers.h"
#include "support/layer.h"
#include "support/temp_dirs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is launched */

enum {
    MAX_LAUNCHES = 1200,
    MAX_BYTES = 1 << 20
};

typedef struct launch_log {
    int count;
    struct {
        const cf_kernel *kernel;
        cf_launch launch;
        cf_cu_stream stream;
    } launch[MAX_LAUNCHES];
    size_t bytes;
    char parameters[MAX_BYTES];
} launch_log;

static launch_log *current; /* NULL: nothing is logged */

conv_fft_status __real_cf_kernel_start(const cf_kernel *kernel, const cf_launch *launch, void **parameters,
                                       cf_cu_stream stream);
conv_fft_status __wrap_cf_kernel_start(const cf_kernel *kernel, const cf_launch *launch, void **parameters,
                                       cf_cu_stream stream);
conv_fft_status __wrap_cf_kernel_start(const cf_kernel *kernel, const cf_launch *launch, void **parameters,
                                       cf_cu_stream stream) {
    if (current && current->count < MAX_LAUNCHES) {
        current->launch[current->count].kernel = kernel;
        current->launch[current->count].launch = *launch;
        current->launch[current->count++].stream = stream;
        for (int i = 0; launch->parameters && launch->parameters[i].bytes > 0; ++i) {
            const size_t bytes = launch->parameters[i].bytes;
            assert_true(current->bytes + bytes <= MAX_BYTES);
            memcpy(current->parameters + current->bytes, parameters[i], bytes);
            current->bytes += bytes;
        }
    }
    return __real_cf_kernel_start(kernel, launch, parameters, stream);
}

/* Memory is not cleared, because addresses are made up. */
conv_fft_status __wrap_cf_gpu_fill(const cf_gpu *gpu, void *memory, unsigned char value, size_t bytes, cf_cu_stream to);
conv_fft_status __wrap_cf_gpu_fill(const cf_gpu *gpu, void *memory, unsigned char value, size_t bytes,
                                   cf_cu_stream to) {
    (void)gpu;
    if (current && current->count < MAX_LAUNCHES) {
        const uint64_t numbers[] = {(uint64_t)(uintptr_t)memory, value, bytes};
        current->launch[current->count].kernel = NULL;
        current->launch[current->count].launch = (cf_launch){.parameters = NULL};
        current->launch[current->count++].stream = to;
        assert_true(current->bytes + sizeof numbers <= MAX_BYTES);
        memcpy(current->parameters + current->bytes, numbers, sizeof numbers);
        current->bytes += sizeof numbers;
    }
    return CONV_FFT_SUCCESS;
}

static bool logs_agree(const launch_log *a, const launch_log *b) {
    bool same = a->count == b->count && a->bytes == b->bytes && memcmp(a->parameters, b->parameters, a->bytes) == 0;
    for (int i = 0; same && i < a->count; ++i) {
        const cf_launch *const first = &a->launch[i].launch, *const second = &b->launch[i].launch;
        same = a->launch[i].kernel == b->launch[i].kernel && a->launch[i].stream == b->launch[i].stream &&
               memcmp(first->grid, second->grid, sizeof first->grid) == 0 &&
               memcmp(first->block, second->block, sizeof first->block) == 0 &&
               first->dynamic_shared == second->dynamic_shared;
    }
    return same;
}

/* ---- the calls */

/* Addresses that nothing reads: the substitute computes nothing, and the plans are trusted. */
static char *address(int argument, size_t shift) {
    return (char *)(uintptr_t)(0x10000000000 + 0x100000000 * (uintptr_t)argument + shift);
}

static char stream;
#define STREAM ((struct CUstream_st *)(void *)&stream)

typedef struct recorded_calls {
    int recorded, refused;
} recorded_calls;

/* Make one call with the plan's recording, and one without. */
static void check_call(conv_fft_plan *plan, int set, bool with_bias, size_t shift, recorded_calls *calls) {
    static launch_log logs[2];
    cf_call call = {.x = address(CF_ARGUMENT_X, shift),
                    .w = address(CF_ARGUMENT_W, 0),
                    .bias = with_bias && set == CONV_FFT_FORWARD ? address(CF_ARGUMENT_BIAS, 0) : NULL,
                    .gy = address(CF_ARGUMENT_GY, 0),
                    .y = address(CF_ARGUMENT_Y, 0),
                    .gx = set & CONV_FFT_BACKWARD_DATA ? address(CF_ARGUMENT_GX, 0) : NULL,
                    .gw = set & CONV_FFT_BACKWARD_WEIGHTS ? address(CF_ARGUMENT_GW, 0) : NULL,
                    .gbias = with_bias && set != CONV_FFT_FORWARD ? address(CF_ARGUMENT_GBIAS, 0) : NULL,
                    .workspace = address(CF_ARGUMENT_WORKSPACE, 8), /* of any alignment */
                    .stream = STREAM};
    cf_recording **const place = &plan->recording[set][call.gbias != NULL], *const recording = *place;
    conv_fft_status status[2];
    for (int i = 0; i < 2; ++i) {
        logs[i].count = 0;
        logs[i].bytes = 0;
        current = &logs[i];
        *place = i == 0 ? recording : NULL;
        status[i] = cf_run(plan, set, &call);
    }
    current = NULL;
    *place = recording;
    if (status[0] != status[1])
        case_fail("passes %d: %s, and without the recording %s", set, conv_fft_status_string(status[0]),
                  conv_fft_status_string(status[1]));
    if (!logs_agree(&logs[0], &logs[1]))
        case_fail("passes %d: %d launches of a recording, %d without it, or their parameters differ", set,
                  logs[0].count, logs[1].count);
    ++*(recording ? &calls->recorded : &calls->refused);
}

static void check_problem(conv_fft_context *context, const conv_fft_problem *p, recorded_calls *calls) {
    static const int sets[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD_DATA, CONV_FFT_BACKWARD_WEIGHTS, CONV_FFT_BACKWARD};
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.trusted = 1;
    conv_fft_plan *plan = test_plan(context, p, &options);
    for (size_t i = 0; plan && i < sizeof sets / sizeof sets[0]; ++i)
        for (int bias = 0; bias < 2; ++bias) {
            check_call(plan, sets[i], bias, 0, calls);
            check_call(plan, sets[i], bias, 8, calls); /* not at a multiple of 16 bytes */
        }
    conv_fft_plan_destroy(plan);
}

static void recorded_calls_launch_the_same(void **state) {
    conv_fft_context *context = fake_context_create(WITHOUT_BLAS, *state, false);
    recorded_calls calls = {0};
    const int failures = case_failures();
    for (int i = 0; i < FAKE_LAYERS; ++i) {
        const conv_fft_problem p = test_problem(fake_layer_lines[i]);
        check_problem(context, &p, &calls);
    }
    const int problems = TEST_AMOUNT(100, 20);
    for (int i = 0; i < problems; ++i) {
        char text[512];
        generator g = test_generator((uint64_t)i);
        const conv_fft_problem p = random_problem(&g, 1e6);
        describe_problem(&p, text, sizeof text);
        case_begin(text, NULL);
        check_problem(context, &p, &calls);
    }
    print_message("%d calls are recorded, %d are not\n", calls.recorded, calls.refused);
    assert_true(calls.recorded > 20 * calls.refused); /* calls of very many launches are not */
    fake_context_destroy(context);
    assert_int_equal(case_failures(), failures);
}

/* Plans of families toeplitz and dft, which the cost model chooses here for every pass. The gradient of the weights
 * adds slices in the workspace. */
static void tensor_core_calls_are_recorded(void **state) {
    static const struct {
        const char *line, *family;
    } cases[] = {
        {"in=64x128x56x56 out=128 groups=128 kernel=7x7 pad=3 dtype=fp16", "toeplitz"},
        {"in=64x128x56x56 out=128 groups=128 kernel=7x7 pad=3 dtype=bf16 layout=last", "toeplitz"},
        {"in=4x4096x8192 out=4096 groups=4096 kernel=4 pad=3:0 dtype=bf16", "toeplitz"},
        {"in=64x128x56x56 out=128 groups=128 kernel=31x31 pad=15 dtype=fp16 math=half", "dft"},
        {"in=16x768x8192 out=768 groups=768 kernel=1023 pad=511 dtype=fp16 math=half", "dft"},
    };
    conv_fft_context *context = fake_context_create(WITHOUT_BLAS, *state, false);
    recorded_calls calls = {0};
    const int failures = case_failures();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const conv_fft_problem p = test_problem(cases[i].line);
        conv_fft_plan *plan = test_plan(context, &p, NULL);
        assert_non_null(plan);
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
            assert_string_equal(plan->pass[pass].strategy.family->name, cases[i].family);
        conv_fft_plan_destroy(plan);
        check_problem(context, &p, &calls);
    }
    assert_int_equal(calls.refused, 0);
    fake_context_destroy(context);
    assert_int_equal(case_failures(), failures);
}

/* ---- the context */

/* The context is made current once per call, with and without checks of pointers. */
static void context_is_entered_once(void **state) {
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    const fake_cuda *const driver = inside_fake(DRIVER, "fake_cuda_state");
    for (int trusted = 0; trusted < 2; ++trusted)
        for (int i = 0; i < 4; ++i) {
            const conv_fft_problem p = test_problem(fake_layer_lines[i]);
            conv_fft_plan_options options;
            conv_fft_plan_options_init(&options);
            options.trusted = trusted;
            conv_fft_plan *plan = test_plan(context, &p, &options);
            assert_non_null(plan);
            const int entered = driver->entered, launched = driver->launches;
            assert_int_equal(conv_fft_forward(plan, address(CF_ARGUMENT_X, 0), address(CF_ARGUMENT_W, 0), NULL,
                                              address(CF_ARGUMENT_Y, 0), address(CF_ARGUMENT_WORKSPACE, 0), SIZE_MAX,
                                              NULL),
                             CONV_FFT_SUCCESS);
            assert_true(driver->launches > launched);
            assert_int_equal(driver->entered - entered, 1);
            conv_fft_plan_destroy(plan);
        }
    fake_context_destroy(context);
}

/* ---- what cannot be recorded */

static const cf_source one_kernel = {.name = "first", .text = "extern \"C\" __global__ void first() {}"};

static void unrecordable_calls_are_refused(void **state) {
    static const cf_parameter types[] = {{sizeof(void *), 1}, {0, 0}}, large[] = {{65 * 8, 0}, {0, 0}};
    cf_gpu *const gpu = good_gpu(*state);
    cf_kernel *kernel;
    assert_int_equal(cf_kernels_build(gpu, &one_kernel, 1, &kernel), CONV_FFT_SUCCESS);
    static uint64_t words[65];
    void *const x = cf_recorded_address(CF_ARGUMENT_X), *parameters[] = {words};
    words[0] = (uint64_t)(uintptr_t)x + 24;
    const fake_cuda *const driver = inside_fake(DRIVER, "fake_cuda_state");
    const int launched = driver->launches;
    const struct {
        const cf_kernel *kernel;
        const cf_parameter *types;
        int count;
        bool other_work, recorded;
    } cases[] = {
        {kernel, types, 0, false, true},     {kernel, types, 1, false, true}, {kernel, types, 1024, false, true},
        {kernel, types, 1025, false, false}, /* too many */
        {NULL, types, 1, false, false},      {kernel, NULL, 1, false, false}, {kernel, large, 1, false, false},
        {kernel, types, 1, true, false},     {kernel, types, 0, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const cf_launch launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .parameters = cases[i].types};
        assert_false(cf_recording_refused());
        cf_recording_begin();
        for (int k = 0; k < cases[i].count; ++k)
            assert_int_equal(cf_kernel_launch(cases[i].kernel, &launch, parameters, NULL), CONV_FFT_SUCCESS);
        if (cases[i].other_work)
            assert_true(cf_recording_refused());
        cf_recording *recording = cf_recording_end();
        assert_int_equal(recording != NULL, cases[i].recorded);
        cf_recording_destroy(recording);
    }
    assert_int_equal(driver->launches, launched);
    cf_kernel_destroy(kernel);
    close_gpu(gpu);
}

/* Offsets of either sign, an argument that is NULL, and a word that is no address. */
static void addresses_are_replaced(void **state) {
    static const cf_parameter types[] = {{4 * sizeof(uint64_t), 7}, {sizeof(int), 0}, {0, 0}};
    cf_gpu *const gpu = good_gpu(*state);
    cf_kernel *kernel;
    assert_int_equal(cf_kernels_build(gpu, &one_kernel, 1, &kernel), CONV_FFT_SUCCESS);
    const uint64_t x = (uint64_t)(uintptr_t)cf_recorded_address(CF_ARGUMENT_X),
                   bias = (uint64_t)(uintptr_t)cf_recorded_address(CF_ARGUMENT_BIAS),
                   workspace = (uint64_t)(uintptr_t)cf_recorded_address(CF_ARGUMENT_WORKSPACE);
    uint64_t words[4] = {x - 4096, bias + 8, workspace + ((uint64_t)1 << 50), x};
    int number = 7;
    void *parameters[] = {words, &number};
    const cf_launch launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .parameters = types};
    cf_recording_begin();
    assert_int_equal(cf_kernel_launch(kernel, &launch, parameters, NULL), CONV_FFT_SUCCESS);
    cf_recording *recording = cf_recording_end();
    assert_non_null(recording);
    number = 8; /* recorded by value */
    static unsigned counters[2048], *const threads = &counters[1024];
    const void *arguments[CF_ARGUMENT_COUNT] = {
        [CF_ARGUMENT_X] = (char *)threads + 4096, [CF_ARGUMENT_WORKSPACE] = (void *)0x1000};
    static launch_log log;
    log.count = 0;
    log.bytes = 0;
    current = &log;
    assert_int_equal(cf_gpu_enter(gpu), CONV_FFT_SUCCESS);
    assert_int_equal(cf_recording_launch(recording, arguments, STREAM), CONV_FFT_SUCCESS);
    cf_gpu_leave(gpu);
    current = NULL;
    const uint64_t expected[4] = {(uint64_t)(uintptr_t)threads, 0, 0x1000 + ((uint64_t)1 << 50), x};
    assert_int_equal(log.count, 1);
    assert_ptr_equal(log.launch[0].stream, STREAM);
    assert_memory_equal(log.parameters, expected, sizeof expected);
    assert_int_equal(*(int *)(void *)(log.parameters + sizeof expected), 7);
    assert_int_equal(*threads, 32); /* the substitute counts them at its first parameter */
    cf_recording_destroy(recording);
    cf_kernel_destroy(kernel);
    close_gpu(gpu);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(recorded_calls_launch_the_same, scratch_create, scratch_remove),
        cmocka_unit_test_setup_teardown(tensor_core_calls_are_recorded, scratch_create, scratch_remove),
        cmocka_unit_test_setup_teardown(context_is_entered_once, scratch_create, scratch_remove),
        cmocka_unit_test_setup_teardown(unrecordable_calls_are_refused, scratch_create, scratch_remove),
        cmocka_unit_test_setup_teardown(addresses_are_replaced, scratch_create, scratch_remove),
    };
    return cmocka_run_group_tests_name("recordings", tests, NULL, NULL);
}
