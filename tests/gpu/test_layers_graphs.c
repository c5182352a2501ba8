/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA graphs of layer calls on a GPU: what they capture, how many kernels a pass launches, and what replays
 * compute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cuda/driver/memory.h"
#include "support/call_bench.h"
#include "support/cuda_calls.h"
#include "support/device.h"
#include "support/gpu.h"
#include "support/strategy_lines.h"

#include <stdlib.h>
#include <string.h>

#define CALL(function, ...) \
    assert_success(cf_driver_status(&device_gpu()->driver, calls->function(__VA_ARGS__), #function))

static cuda_graph capture(const cuda_calls *calls, call_bench *b, cf_cu_stream stream) {
    const call_places own = call_places_of(b);
    cuda_graph graph = NULL;
    CALL(cuStreamBeginCapture, stream, CUDA_CAPTURE_GLOBAL);
    const conv_fft_status status = call_enqueue(b, &own, stream);
    if (status != CONV_FFT_SUCCESS)
        print_error("%s\n", conv_fft_last_error());
    CALL(cuStreamEndCapture, stream, &graph);
    assert_int_equal(status, CONV_FFT_SUCCESS);
    return graph;
}

/* A graph has kernels and fills, no copies and no memory of its own. */
static size_t check_nodes(const cuda_calls *calls, cuda_graph graph, const char *line) {
    enum {
        MOST = 32768 /* the least workspace takes a sample, a tile and a group at a time */
    };
    static cuda_graph_node nodes[MOST];
    size_t count = 0, kernels = 0, fills = 0;
    CALL(cuGraphGetNodes, graph, NULL, &count);
    assert_in_range(count, 1, MOST);
    CALL(cuGraphGetNodes, graph, nodes, &count);
    for (size_t i = 0; i < count; i++) {
        cuda_node_type type;
        CALL(cuGraphNodeGetType, nodes[i], &type);
        kernels += type == CUDA_NODE_KERNEL;
        fills += type == CUDA_NODE_MEMSET;
    }
    print_message("%s: %zu kernels, %zu fills\n", line, kernels, fills);
    assert_int_equal(kernels + fills, count);
    assert_true(kernels > 0);
    return count;
}

static void check_graph(const cuda_calls *calls, const char *line, const conv_fft_plan_options *options,
                        unsigned flags) {
    const cf_gpu *const gpu = device_gpu();
    call_bench b = call_bench_create(line, options, flags);
    layer *const l = &b.layer;
    const call_places own = call_places_of(&b);
    cf_cu_stream stream;
    cuda_graph_exec exec;
    tensor first[CALL_RESULTS];
    assert_success(cf_gpu_stream_create(gpu, &stream));
    call_reset(&b);
    assert_success(call_enqueue(&b, &own, stream));
    assert_success(cf_gpu_synchronize(gpu, stream));
    for (int r = 0; r < CALL_RESULTS; r++)
        first[r] = tensor_copy(&call_result(l, r)->tensor);

    call_reset(&b);
    const cuda_graph graph = capture(calls, &b, stream);
    assert_success(cf_gpu_synchronize(gpu, stream));
    for (int r = 0; r < CALL_RESULTS; r++) /* nothing has run */
        assert_true(tensor_untouched(&call_result(l, r)->tensor));
    check_nodes(calls, graph, line);
    CALL(cuGraphInstantiate, &exec, graph, 0);
    for (int again = 0; again < 3; again++) {
        call_reset(&b);
        CALL(cuGraphLaunch, exec, stream);
        assert_success(cf_gpu_synchronize(gpu, stream));
        for (int r = 0; r < CALL_RESULTS; r++)
            assert_true(tensor_same_bits(&call_result(l, r)->tensor, &first[r], 0, first[r].count));
    }

    generator g = generator_create(8); /* other inputs in the same places */
    double *values = test_alloc((size_t)l->x.tensor.count * sizeof *values);
    random_values(&g, l->x.tensor.count, values);
    layer_set(l, &l->x, values);
    free(values);
    call_reset(&b);
    CALL(cuGraphLaunch, exec, stream);
    assert_success(cf_gpu_synchronize(gpu, stream));
    call_check(&b, "a graph of both calls");

    CALL(cuGraphExecDestroy, exec);
    CALL(cuGraphDestroy, graph);
    for (int r = 0; r < CALL_RESULTS; r++)
        tensor_destroy(&first[r]);
    cf_gpu_stream_destroy(gpu, stream);
    call_bench_destroy(&b);
}

/* One launch transforms both operands of a small pass. Product and inverse take one launch each. */
static void small_passes_take_three_launches(void **state) {
    NEED_DEVICE(state);
    static const char *const small[] = {"in=3x8x12x13 out=10 kernel=3x4 pad=1",
                                        "in=2x6x9x10 out=4 kernel=3x3 groups=2 layout=last dtype=fp16",
                                        "in=2x3x200 out=4 kernel=9 dtype=fp64"};
    const cuda_calls calls = cuda_calls_of(device_gpu());
    cf_cu_stream stream;
    assert_success(cf_gpu_enter(device_gpu()));
    assert_success(cf_gpu_stream_create(device_gpu(), &stream));
    for (int i = 0; i < 3; i++) {
        call_bench b = call_bench_create(small[i], NULL, 0);
        const conv_fft_problem problem = test_problem(small[i]);
        strategies s = chosen_strategies(device_context(), &problem);
        for (int pass = 0; pass < 3; pass++) {
            const call_places p = call_places_of(&b);
            conv_fft_plan_options options;
            char edited[256];
            cuda_graph graph = NULL;
            conv_fft_plan_options_init(&options);
            edit_strategy(s.line[pass], "product", "loop", edited, sizeof edited);
            options.strategy[pass] = edited;
            options.passes = (int)strategy_passes[pass];
            conv_fft_plan *const plan = test_plan(device_context(), &problem, &options);
            assert_non_null(plan);
            const guarded ws = layer_workspace(&b.layer, plan, strategy_passes[pass]);
            assert_success(cf_driver_status(&device_gpu()->driver,
                                            calls.cuStreamBeginCapture(stream, CUDA_CAPTURE_GLOBAL), "capture"));
            if (pass == 0)
                assert_success(conv_fft_forward(plan, p.x, p.w, p.bias, p.y, ws.data, ws.bytes, stream));
            else if (pass == 1)
                assert_success(conv_fft_backward_data(plan, p.w, p.gy, p.gx, 0, ws.data, ws.bytes, stream));
            else
                assert_success(conv_fft_backward_weights(plan, p.x, p.gy, p.gw, NULL, 0, ws.data, ws.bytes, stream));
            assert_success(
                cf_driver_status(&device_gpu()->driver, calls.cuStreamEndCapture(stream, &graph), "capture"));
            assert_int_equal(check_nodes(&calls, graph, small[i]), 3);
            assert_success(cf_driver_status(&device_gpu()->driver, calls.cuGraphDestroy(graph), "cuGraphDestroy"));
            guarded used = ws;
            assert_true(release_workspace(&used, "capture"));
            conv_fft_plan_destroy(plan);
        }
        call_bench_destroy(&b);
    }
    cf_gpu_stream_destroy(device_gpu(), stream);
    cf_gpu_leave(device_gpu());
}

static void graphs(void **state) {
    NEED_DEVICE(state);
    const cuda_calls calls = cuda_calls_of(device_gpu());
    assert_success(cf_gpu_enter(device_gpu()));
    for (int i = 0; i < CALL_LINES; i++)
        check_graph(&calls, call_lines[i], NULL, 0);
    cf_gpu_leave(device_gpu());
}

/* A plan with the smallest workspace, calls that accumulate gradients, kept spectra, and every kind of strategy. */
static void graphs_of_strategies(void **state) {
    NEED_DEVICE(state);
    static const char *const line = "in=7x6x12x13 out=9 kernel=3x4 pad=1 groups=3";
    const unsigned all = CONV_FFT_ACCUMULATE_GX | CONV_FFT_ACCUMULATE_GW | CONV_FFT_ACCUMULATE_GBIAS;
    const conv_fft_problem p = test_problem(line);
    const cuda_calls calls = cuda_calls_of(device_gpu());
    conv_fft_plan_options options;
    strategies ways[3] = {chosen_strategies(device_context(), &p)}; /* products of cuBLAS, fused, overlap-add */
    ways[1] = fused_strategies(&ways[0]);
    for (int pass = 0; pass < 3; pass++) {
        char edited[256];
        edit_strategy(ways[0].line[pass], "product", "blas", edited, sizeof edited);
        memcpy(ways[0].line[pass], edited, sizeof edited);
    }
    assert_true(find_strategies(device_context(), &p, 2, "add", "step", "loop", &ways[2]));
    assert_success(cf_gpu_enter(device_gpu()));
    conv_fft_plan_options_init(&options);
    check_graph(&calls, line, &options, all);
    options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
    check_graph(&calls, line, &options, 0);
    conv_fft_plan_options_init(&options);
    options.workspace_limit = smallest_workspace_limit(device_context(), &p, &options);
    check_graph(&calls, line, &options, 0);
    for (int way = 0; way < 3; way++) {
        conv_fft_plan_options_init(&options);
        for (int pass = 0; pass < 3; pass++)
            options.strategy[pass] = ways[way].line[pass];
        check_graph(&calls, line, &options, way == 2 ? all : 0);
    }
    cf_gpu_leave(device_gpu());
}

/* The number of nodes of one captured call. The memory exists, but nothing runs. */
static size_t count_nodes(const cuda_calls *calls, const char *line, conv_fft_pass pass, const char *strategy,
                          cf_cu_stream stream) {
    const size_t most = (size_t)32 << 20; /* of each tensor */
    const conv_fft_problem p = test_problem(line);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.passes = (int)pass;
    for (int i = 0; i < 3; i++)
        options.strategy[i] = strategy_passes[i] & pass ? strategy : NULL;
    conv_fft_plan *const plan = test_plan(device_context(), &p, &options);
    assert_non_null(plan);
    size_t bytes;
    assert_success(conv_fft_plan_workspace(plan, pass, &bytes));
    void *memory;
    assert_success(cf_gpu_allocate(device_gpu(), 6 * most + bytes, &memory));
    char *const x = memory, *const w = x + most, *const y = w + most, *const gy = y + most, *const gx = gy + most,
                *const gw = gx + most, *const workspace = gw + most;
    const bool data = pass & CONV_FFT_BACKWARD_DATA, weights = pass & CONV_FFT_BACKWARD_WEIGHTS;
    cuda_graph graph = NULL;
    CALL(cuStreamBeginCapture, stream, CUDA_CAPTURE_GLOBAL);
    const conv_fft_status status =
        pass == CONV_FFT_FORWARD ? conv_fft_forward(plan, x, w, NULL, y, workspace, bytes, stream)
                                 : conv_fft_backward(plan, weights ? x : NULL, data ? w : NULL, gy, data ? gx : NULL,
                                                     weights ? gw : NULL, NULL, 0, workspace, bytes, stream);
    if (status != CONV_FFT_SUCCESS)
        print_error("%s\n", conv_fft_last_error());
    CALL(cuStreamEndCapture, stream, &graph);
    assert_int_equal(status, CONV_FFT_SUCCESS);
    const size_t count = check_nodes(calls, graph, line);
    CALL(cuGraphDestroy, graph);
    cf_gpu_free(device_gpu(), memory);
    conv_fft_plan_destroy(plan);
    return count;
}

/* L4 as planned, L5 in one tile, and a small layer with the kernels of L5. A pass takes three launches. Both gradients
 * of the small layer take six: one makes the spectra of w and gy, and one makes the spectrum of x. */
static void launches_of_passes(void **state) {
    NEED_DEVICE(state);
    static const struct {
        const char *line, *strategy;
    } layers[] = {
        {"in=128x128x16x16 out=128 kernel=7x7",
         "staged basis=16x16 tiles=1x1 dilation=step overlap=save product=tensor "
         "spectrum=fp32 chunk=0 groups=0 keep=none"},
        {"in=128x128x13x13 out=128 kernel=3x3",
         "staged basis=14x16 tiles=1x1 dilation=step overlap=save product=tensor "
         "spectrum=fp32 chunk=0 groups=0 keep=none"},
        {"in=128x128x16x16 out=128 kernel=7x7", NULL},
        {"in=128x384x13x13 out=384 kernel=3x3",
         "staged basis=14x16 tiles=1x1 dilation=step overlap=save product=tensor "
         "spectrum=fp32 chunk=0 groups=0 keep=none"},
    };
    const cuda_calls calls = cuda_calls_of(device_gpu());
    cf_cu_stream stream;
    assert_success(cf_gpu_enter(device_gpu()));
    assert_success(cf_gpu_stream_create(device_gpu(), &stream));
    for (int i = 0; i < 4; i++) {
        for (int pass = 0; pass < 3; pass++)
            assert_int_equal(count_nodes(&calls, layers[i].line, strategy_passes[pass], layers[i].strategy, stream), 3);
        if (i < 3)
            assert_int_equal(count_nodes(&calls, layers[i].line, CONV_FFT_BACKWARD, layers[i].strategy, stream), 6);
    }
    cf_gpu_stream_destroy(device_gpu(), stream);
    cf_gpu_leave(device_gpu());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs),
        cmocka_unit_test(graphs_of_strategies),
        cmocka_unit_test(launches_of_passes),
        cmocka_unit_test(small_passes_take_three_launches),
    };
    gpu_read_filters();
    return gpu_exit_status(
        cmocka_run_group_tests_name("graphs of calls on a GPU", tests, device_gpu_setup, device_teardown));
}
