/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Families `cufft` and `cudnn` on a GPU: every candidate of every pass, over the named and over random problems,
 * against the definition; captured into graphs; by threads.
 *
 * The reference must be as accurate as our own families. What cuDNN offers is compared with what its number formats
 * allow: that its algorithms are called as they should be, not which of them keep the accuracy that we promise.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conv/plan/context.h"
#include "conv/plan/family.h"
#include "cuda/driver/memory.h"
#include "support/cuda_calls.h"
#include "support/device.h"
#include "support/gpu.h"
#include "support/layer_loose_tolerance.h"
#include "support/layer_threads.h"
#include "support/selection.h"
#include "support/strategy_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST = 64, /* candidates of a pass */
    RANDOM = 200
};

enum {
    CUFFT,
    CUDNN,
    FAMILIES
};
static const char *const names[FAMILIES] = {"cufft", "cudnn"};
static struct { atomic_int run, unsupported; } counted[FAMILIES];

typedef struct candidates {
    int count, rank;
    char line[MOST][256];
} candidates;

static bool visit(const cf_strategy *strategy, void *user) {
    candidates *c = user;
    cf_strategy_format(strategy, c->rank, c->line[c->count], sizeof c->line[0]);
    return ++c->count < MOST;
}

static candidates candidates_of(int family, const conv_fft_problem *p, int pass) {
    candidates c = {.rank = p->rank};
    cf_layer checked;
    cf_device *const device = device_context()->device;
    if (cf_layer_make(p, &checked) != CONV_FFT_SUCCESS || device->ops->prepare(device) != CONV_FFT_SUCCESS ||
        cf_family_named(names[family])->candidates(&checked, device, pass, visit, &c) != CONV_FFT_SUCCESS)
        case_fail("candidates: %s", conv_fft_last_error());
    return c;
}

static void check_candidate(layer *l, int family, int pass, const char *line) {
    char text[1024], problem[512];
    conv_fft_plan_options options;
    conv_fft_plan *plan = NULL;
    conv_fft_plan_options_init(&options);
    describe_problem(&l->problem, problem, sizeof problem);
    snprintf(text, sizeof text, "%s\n            %s", problem, line);
    case_begin(text, NULL);
    options.passes = strategy_passes[pass];
    options.strategy[pass] = line;
    options.any_alignment = tensor_alignment(1) < 16;
    const conv_fft_status status = conv_fft_plan_create(device_context(), &l->problem, &options, &plan);
    if (status == CONV_FFT_NOT_SUPPORTED && family == CUDNN) {
        counted[family].unsupported++;
        return;
    }
    if (status != CONV_FFT_SUCCESS) {
        case_fail("no plan: %s (%s)", conv_fft_status_string(status), conv_fft_last_error());
        return;
    }
    layer_check_pass_roughly(l, plan, strategy_passes[pass]);
    conv_fft_plan_destroy(plan);
    counted[family].run++;
}

/* All passes by family cufft, whole and in chunks, with the accuracy that the library's own families must have. */
static void check_reference(layer *l) {
    candidates c[3];
    for (int pass = 0; pass < 3; pass++)
        c[pass] = candidates_of(CUFFT, &l->problem, pass);
    for (int i = 0; i < 2 * c[0].count; i++) {
        conv_fft_plan_options options;
        char text[1024], problem[512], line[3][256];
        conv_fft_plan_options_init(&options);
        for (int pass = 0; pass < 3; pass++) {
            edit_strategy(c[pass].line[i / 2], "chunk", i % 2 ? "2" : "0", line[pass], sizeof line[0]);
            options.strategy[pass] = line[pass];
        }
        describe_problem(&l->problem, problem, sizeof problem);
        snprintf(text, sizeof text, "%s\n            %s", problem, line[0]);
        case_begin(text, NULL);
        conv_fft_plan *plan = test_plan(device_context(), &l->problem, &options);
        if (plan)
            layer_check_all(l, plan);
        conv_fft_plan_destroy(plan);
        counted[CUFFT].run++;
    }
}

/* Tensors aligned to 64 bytes go to cuDNN. Other tensors go to a kernel of the library, in one test. */
static void check_problem(const conv_fft_problem *p, uint64_t seed) {
    for (int turn = 0; turn < 2; turn++) {
        generator g = generator_create(seed);
        tensor_align(turn ? 64 : 0);
        layer l = layer_create(p, &g);
        for (int pass = 0; pass < 3; pass++) {
            const candidates c = candidates_of(CUDNN, p, pass);
            for (int i = 0; i < (turn ? c.count : c.count < 1 ? c.count : 1); i++)
                check_candidate(&l, CUDNN, pass, c.line[i]);
        }
        if (turn)
            check_reference(&l);
        layer_destroy(&l);
        tensor_align(0);
    }
}

static void check_named(int64_t i, void *problems) { check_problem(&((const named_problem *)problems)[i].problem, 1); }

static void check_random(int64_t i, void *unused) {
    (void)unused;
    generator g = generator_create(test_seed() + (uint64_t)i);
    const conv_fft_problem p = random_problem(&g, 3e5);
    check_problem(&p, test_seed() + (uint64_t)i);
}

static void report(const char *what) {
    print_message("%s: reference ran %d times; of cuDNN %d algorithms ran, %d it does not support\n", what,
                  counted[CUFFT].run, counted[CUDNN].run, counted[CUDNN].unsupported);
    assert_int_equal(case_failures(), 0);
}

static void named(void **state) {
    NEED_DEVICE(state);
    int64_t count;
    named_problem *problems = read_problems("data/shapes", &count);
    case_list list = {.name = "gpu_families"};
    for (int64_t i = 0; i < count; i++)
        case_list_add(&list, "%s", problems[i].name);
    const int64_t taken = device_each(&list, check_named, problems);
    free(problems);
    report("named problems");
    if (taken > 20) /* the libraries are there, and the families take most problems */
        assert_true(counted[CUFFT].run > taken / 4 && counted[CUDNN].run > taken);
}

static void random_problems(void **state) {
    NEED_DEVICE(state);
    const uint64_t count = environment_number("CONV_FFT_TEST_COUNT", RANDOM);
    case_list list = {.name = "gpu_families_random"};
    for (uint64_t i = 0; i < count; i++)
        case_list_add(&list, "seed %" PRIu64, test_seed() + i);
    device_each(&list, check_random, NULL);
    report("random problems too");
}

/* The causal operation of cuDNN 9.26, where it is found: all types, lengths that leave rows unaligned, signals that are
 * shorter than the kernel. */
static const char *const signals[] = {
    "in=4x64x512 out=64 kernel=4 pad=3:0 groups=64",
    "in=3x5x37 out=5 kernel=2 pad=1:0 groups=5",
    "in=2x7x1023 out=7 kernel=3 pad=2:0 groups=7 dtype=bf16",
    "in=2x7x1001 out=7 kernel=4 pad=3:0 groups=7 dtype=fp16",
    "in=2x3x500 out=3 kernel=8 pad=7:0 groups=3 dtype=fp64",
    "in=2x16x2048 out=16 kernel=32 pad=31:0 groups=16",
    "in=2x16x2050 out=16 kernel=64 pad=63:0 groups=16 dtype=bf16",
    "in=1x4x9000 out=4 kernel=256 pad=255:0 groups=4 dtype=fp16",
    "in=2x4x100 out=4 kernel=128 pad=127:0 groups=4",
    "in=1x3x5 out=3 kernel=16 pad=15:0 groups=3",
    "in=1x1x33 out=1 kernel=5 pad=4:0",
    "in=4x64x512 out=64 kernel=4 pad=3:0 groups=64 layout=last",
    "in=2x7x101 out=7 kernel=4 pad=3:0 groups=7 dtype=bf16 layout=last",
    "in=2x40x300 out=40 kernel=3 pad=2:0 groups=40 dtype=fp16 layout=last",
    "in=2x8x200 out=8 kernel=16 pad=15:0 groups=8 dtype=fp64 layout=last",
    "in=1x24x700 out=24 kernel=128 pad=127:0 groups=24 layout=last",
};

static void check_signal(int64_t i, void *unused) {
    (void)unused;
    const conv_fft_problem p = test_problem(signals[i]);
    check_problem(&p, 1);
}

static void causal_signals(void **state) {
    NEED_DEVICE(state);
    case_list list = {.name = "gpu_families_causal"};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        case_list_add(&list, "%s", signals[i]);
    const int before = counted[CUDNN].run;
    device_each(&list, check_signal, NULL);
    print_message("the causal operation ran %d times\n", counted[CUDNN].run - before);
    report("causal signals too");
}

/* ------------------------------------------------------------------------------------ graphs, threads, profiles */

#define LAYER "in=4x16x20x24 out=32 kernel=5x5 pad=2"

#define CALL(function, ...)                                                                                      \
    do {                                                                                                         \
        if (cf_driver_status(&device_gpu()->driver, calls.function(__VA_ARGS__), #function) != CONV_FFT_SUCCESS) \
            fail_msg("%s", conv_fft_last_error());                                                               \
    } while (0)

/* A graph of both calls, captured before the algorithm has ever run, gives the same results as the calls. */
static void check_graph(const char *line, const strategies *s) {
    const cuda_calls calls = cuda_calls_of(device_gpu());
    const conv_fft_problem p = test_problem(line);
    generator g = generator_create(3);
    conv_fft_plan_options options;
    cf_cu_stream stream;
    cuda_graph graph = NULL;
    cuda_graph_exec exec;
    conv_fft_plan_options_init(&options);
    for (int pass = 0; pass < 3; pass++)
        options.strategy[pass] = s->line[pass];
    tensor_align(64);
    layer l = layer_create(&p, &g);
    conv_fft_plan *plan = test_plan(device_context(), &p, &options);
    assert_non_null(plan);
    guarded f = layer_workspace(&l, plan, CONV_FFT_FORWARD), b = layer_workspace(&l, plan, CONV_FFT_BACKWARD);
    assert_int_equal(cf_gpu_stream_create(device_gpu(), &stream), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_enter(device_gpu()), CONV_FFT_SUCCESS);
    CALL(cuStreamBeginCapture, stream, CUDA_CAPTURE_GLOBAL);
    conv_fft_status status =
        conv_fft_forward(plan, l.x.tensor.memory.data, l.w.tensor.memory.data, l.bias.tensor.memory.data,
                         l.y.tensor.memory.data, f.data, f.bytes, stream);
    if (status == CONV_FFT_SUCCESS)
        status = conv_fft_backward(plan, l.x.tensor.memory.data, l.w.tensor.memory.data, l.gy.tensor.memory.data,
                                   l.gx.tensor.memory.data, l.gw.tensor.memory.data, l.gbias.tensor.memory.data, 0,
                                   b.data, b.bytes, stream);
    if (status != CONV_FFT_SUCCESS)
        print_error("%s: %s\n", s->line[0], conv_fft_last_error());
    CALL(cuStreamEndCapture, stream, &graph);
    assert_int_equal(status, CONV_FFT_SUCCESS);
    CALL(cuGraphInstantiate, &exec, graph, 0);
    for (int again = 0; again < 2; again++) {
        result *const results[] = {&l.y, &l.gx, &l.gw, &l.gbias};
        double *bias = test_alloc((size_t)l.y.tensor.count * sizeof *bias);
        memset(bias, 0, (size_t)l.y.tensor.count * sizeof *bias);
        ref_add_bias(&l.shape, l.bias.values, bias);
        for (int r = 0; r < 4; r++)
            tensor_poison(&results[r]->tensor);
        CALL(cuGraphLaunch, exec, stream);
        assert_int_equal(cf_gpu_synchronize(device_gpu(), stream), CONV_FFT_SUCCESS);
        for (int r = 0; r < 4; r++)
            assert_true(layer_check_roughly(&l, results[r], r == 0 ? bias : NULL, "a graph"));
        free(bias);
    }
    CALL(cuGraphExecDestroy, exec);
    CALL(cuGraphDestroy, graph);
    cf_gpu_leave(device_gpu());
    cf_gpu_stream_destroy(device_gpu(), stream);
    assert_true(release_workspace(&f, "forward") && release_workspace(&b, "backward"));
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
    tensor_align(0);
}

/* The first candidates that make a plan, starting with candidate `from`. Returns false if there are none. */
static bool pick(int family, const char *line, int from, strategies *s) {
    const conv_fft_problem p = test_problem(line);
    for (int pass = 0; pass < 3; pass++) {
        const candidates c = candidates_of(family, &p, pass);
        conv_fft_plan *plan = NULL;
        for (int i = from; i < c.count && !plan; i++) {
            conv_fft_plan_options options;
            conv_fft_plan_options_init(&options);
            options.passes = strategy_passes[pass];
            options.strategy[pass] = c.line[i];
            snprintf(s->line[pass], sizeof s->line[0], "%s", c.line[i]);
            conv_fft_plan_create(device_context(), &p, &options, &plan);
        }
        if (!plan)
            return false;
        conv_fft_plan_destroy(plan);
    }
    return true;
}

static void graphs(void **state) {
    NEED_DEVICE(state);
    strategies s;
    int captured = 0;
    for (int family = CUFFT; family <= CUDNN; family++)
        for (int from = 0; from < MOST && pick(family, LAYER, from, &s); from++, captured++) {
            print_message("%s; %s; %s\n", s.line[0], s.line[1], s.line[2]);
            check_graph(LAYER, &s);
        }
    assert_true(captured > 2);
}

static void causal_graph(void **state) {
    NEED_DEVICE(state);
    const strategies s = {{"cudnn algorithm=causal", "spatial", "spatial"}};
    const conv_fft_problem p = test_problem(signals[0]);
    if (candidates_of(CUDNN, &p, CF_PASS_FORWARD).count == 0)
        skip(); /* cuDNN is older than 9.26 */
    check_graph(signals[0], &s);
}

static void threads(void **state) {
    NEED_DEVICE(state);
    strategies s;
    tensor_align(64);
    assert_true(pick(CUFFT, LAYER, 0, &s));
    threads_share_forced(device_context(), LAYER, &s);
    for (int from = 0; from < 6 && pick(CUDNN, LAYER, from, &s); from++) {
        print_message("%s; %s; %s\n", s.line[0], s.line[1], s.line[2]);
        threads_share_forced(device_context(), LAYER, &s);
    }
    tensor_align(0);
}

static void profiles(void **state) {
    NEED_DEVICE(state);
    strategies s;
    for (int family = CUFFT; family <= CUDNN; family++) {
        const conv_fft_problem p = test_problem(LAYER);
        conv_fft_plan_options options;
        conv_fft_description d;
        conv_fft_plan_options_init(&options);
        assert_true(pick(family, LAYER, 0, &s));
        for (int pass = 0; pass < 3; pass++)
            options.strategy[pass] = s.line[pass];
        conv_fft_plan *plan = test_plan(device_context(), &p, &options);
        assert_non_null(plan);
        for (int pass = 1; pass <= 6; pass = pass == 4 ? 6 : 2 * pass) {
            assert_int_equal(conv_fft_profile(plan, (conv_fft_pass)pass, 3, &d), CONV_FFT_SUCCESS);
            assert_true(d.measured_ms > 0 && d.predicted_ms < 0);
        }
        conv_fft_plan_destroy(plan);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named),        cmocka_unit_test(random_problems), cmocka_unit_test(causal_signals),
        cmocka_unit_test(causal_graph), cmocka_unit_test(graphs),          cmocka_unit_test(threads),
        cmocka_unit_test(profiles),
    };
    gpu_read_filters();
    return gpu_exit_status(
        cmocka_run_group_tests_name("families beside ours on a GPU", tests, device_gpu_setup, device_teardown));
}
