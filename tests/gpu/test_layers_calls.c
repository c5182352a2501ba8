/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of layers on a GPU: memory of the device, graphs, streams and threads, empty batches, profiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cuda/driver/memory.h"
#include "reference/dtype.h"
#include "support/cuda_calls.h"
#include "support/device.h"
#include "support/gpu.h"
#include "support/layer.h"
#include "support/layer_threads.h"
#include "support/strategy_lines.h"

#include <stdlib.h>
#include <string.h>

#define assert_success(call)                                  \
    do {                                                      \
        if ((call) != CONV_FFT_SUCCESS)                       \
            fail_msg("%s: %s", #call, conv_fft_last_error()); \
    } while (0)

/* Products by cuBLAS and by our own kernel, a fold, transforms of several passes, all types and layouts. */
static const char *const lines[] = {
    "in=5x12x13x14 out=10 kernel=3x4 pad=1",
    "in=3x8x30x31 out=8 kernel=7x7 pad=3 groups=8 layout=last dtype=fp16 gw=fp32",
    "in=2x4x19x18 out=4 kernel=4x3 pad=2 mode=reflect groups=2 stride=2 dtype=bf16",
    "in=2x3x2000 out=4 kernel=300 pad=10:20 mode=circular dtype=fp64",
    "in=2x3x9x10x11 out=4 kernel=3x3x3 pad=1 mode=replicate dilation=2",
};
enum {
    LINES = sizeof lines / sizeof lines[0],
    RESULTS = 4,
    TENSORS = 8
};

/* A layer with its plan and its workspaces, and what its calls are like: with these flags, or with kept spectra. */
typedef struct bench {
    layer layer;
    conv_fft_plan *plan;
    guarded forward, backward, x_spectrum, w_spectrum;
    unsigned flags;
    bool kept;
} bench;

static guarded spectrum_of(const conv_fft_plan *plan, conv_fft_operand which) {
    size_t bytes;
    assert_success(conv_fft_plan_spectrum(plan, which, &bytes));
    return guarded_create(bytes, 16);
}

static bench bench_create(const char *line, const conv_fft_plan_options *options, unsigned flags) {
    const conv_fft_problem p = test_problem(line);
    generator g = generator_create(7);
    bench b = {.layer = layer_create(&p, &g), .plan = test_plan(device_context(), &p, options), .flags = flags};
    assert_non_null(b.plan);
    b.forward = layer_workspace(&b.layer, b.plan, CONV_FFT_FORWARD);
    b.backward = layer_workspace(&b.layer, b.plan, CONV_FFT_BACKWARD);
    b.kept = options && options->keep;
    if (b.kept) {
        b.x_spectrum = spectrum_of(b.plan, CONV_FFT_OPERAND_X);
        b.w_spectrum = spectrum_of(b.plan, CONV_FFT_OPERAND_W);
    }
    return b;
}

static void bench_destroy(bench *b) {
    if (b->kept) {
        assert_true(guarded_canaries_intact(&b->x_spectrum) && guarded_canaries_intact(&b->w_spectrum));
        guarded_destroy(&b->x_spectrum);
        guarded_destroy(&b->w_spectrum);
    }
    assert_true(release_workspace(&b->forward, "conv_fft_forward"));
    assert_true(release_workspace(&b->backward, "conv_fft_backward"));
    conv_fft_plan_destroy(b->plan);
    layer_destroy(&b->layer);
}

static result *result_of(layer *l, int r) { return (result *const[RESULTS]){&l->y, &l->gx, &l->gw, &l->gbias}[r]; }

static bool accumulates(const bench *b, int r) {
    static const unsigned flags[RESULTS] = {0, CONV_FFT_ACCUMULATE_GX, CONV_FFT_ACCUMULATE_GW,
                                            CONV_FFT_ACCUMULATE_GBIAS};
    return b->flags & flags[r];
}

/* NaN, or the old contents where the calls add to them. */
static void reset(bench *b) {
    for (int r = 0; r < RESULTS; r++) {
        result *const of = result_of(&b->layer, r);
        if (accumulates(b, r))
            tensor_set(&of->tensor, of->old);
        else
            tensor_poison(&of->tensor);
    }
}

/* Everything that the calls read and write. */
typedef struct places {
    void *x, *w, *bias, *gy, *y, *gx, *gw, *gbias, *forward, *backward;
} places;

static places own_places(bench *b) {
    layer *l = &b->layer;
    return (places){l->x.tensor.memory.data,  l->w.tensor.memory.data,     l->bias.tensor.memory.data,
                    l->gy.tensor.memory.data, l->y.tensor.memory.data,     l->gx.tensor.memory.data,
                    l->gw.tensor.memory.data, l->gbias.tensor.memory.data, b->forward.data,
                    b->backward.data};
}

/* Both calls with kept spectra: that of w is made by a call of its own, that of x by the forward call; backward reads both. */
static conv_fft_status enqueue_kept(const bench *b, const places *p, cf_cu_stream stream) {
    void *const x = b->x_spectrum.data, *const w = b->w_spectrum.data;
    CF_FORWARD(conv_fft_transform_weights(b->plan, p->w, w, p->forward, b->forward.bytes, stream));
    CF_FORWARD(conv_fft_forward_kept(b->plan, p->x, NULL, p->bias, p->y, x, w, p->forward, b->forward.bytes, stream));
    return conv_fft_backward_kept(b->plan, NULL, NULL, p->gy, p->gx, p->gw, p->gbias, b->flags, x, w, p->backward,
                                  b->backward.bytes, stream);
}

/* Both calls, one after the other. */
static conv_fft_status enqueue(const bench *b, const places *p, cf_cu_stream stream) {
    if (b->kept)
        return enqueue_kept(b, p, stream);
    CF_FORWARD(conv_fft_forward(b->plan, p->x, p->w, p->bias, p->y, p->forward, b->forward.bytes, stream));
    return conv_fft_backward(b->plan, p->x, p->w, p->gy, p->gx, p->gw, p->gbias, b->flags, p->backward,
                             b->backward.bytes, stream);
}

static void check_results(bench *b, const char *call) {
    layer *const l = &b->layer;
    double *bias = test_alloc((size_t)l->y.tensor.count * sizeof *bias);
    memset(bias, 0, (size_t)l->y.tensor.count * sizeof *bias);
    ref_add_bias(&l->shape, l->bias.values, bias);
    for (int r = 0; r < RESULTS; r++)
        assert_true(check_result(l, result_of(l, r),
                                 r == 0              ? bias
                                 : accumulates(b, r) ? result_of(l, r)->old
                                                     : NULL,
                                 call));
    assert_true(check_inputs(l, call));
    free(bias);
}

/* -------------------------------------------------------------------------------------------- memory of the device */

/* All of it, canaries included, at the same alignment. */
static void *upload(const guarded *m, void **base) {
    const cf_gpu *const gpu = device_gpu();
    assert_success(cf_gpu_allocate(gpu, m->total, base));
    assert_success(cf_gpu_upload(gpu, *base, m->base, m->total, NULL));
    return (char *)*base + (m->data - m->base);
}

/* The bits of a run in the device's own memory are those of one in the host's, canaries and gaps included. */
static void check_device_memory(const char *line) {
    const cf_gpu *const gpu = device_gpu();
    bench b = bench_create(line, NULL, 0);
    layer *const l = &b.layer;
    const guarded *const memory[TENSORS + 2] = {
        &l->x.tensor.memory,  &l->w.tensor.memory,  &l->bias.tensor.memory,  &l->gy.tensor.memory, &l->y.tensor.memory,
        &l->gx.tensor.memory, &l->gw.tensor.memory, &l->gbias.tensor.memory, &b.forward,           &b.backward};
    void *base[TENSORS + 2], *at[TENSORS + 2];
    reset(&b);
    for (int i = 0; i < TENSORS + 2; i++)
        at[i] = upload(memory[i], &base[i]);
    const places there = {at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8], at[9]}, here = own_places(&b);
    assert_success(enqueue(&b, &there, NULL));
    assert_success(enqueue(&b, &here, NULL));
    assert_success(cf_gpu_synchronize(gpu, NULL));
    check_results(&b, "both calls");
    for (int i = 0; i < TENSORS; i++) {
        unsigned char *copy = test_alloc(memory[i]->total);
        assert_success(cf_gpu_download(gpu, copy, base[i], memory[i]->total, NULL));
        assert_success(cf_gpu_synchronize(gpu, NULL));
        assert_memory_equal(copy, memory[i]->base, memory[i]->total);
        free(copy);
    }
    for (int i = 0; i < TENSORS + 2; i++)
        cf_gpu_free(gpu, base[i]);
    bench_destroy(&b);
}

static void device_memory_too(void **state) {
    NEED_DEVICE(state);
    for (int i = 0; i < LINES; i++)
        check_device_memory(lines[i]);
    tensor_align(64);
    for (int i = 0; i < LINES; i++)
        check_device_memory(lines[i]);
    tensor_align(0);
}

/* ---------------------------------------------------------------------------------------------------------- graphs */

#define CALL(function, ...) \
    assert_success(cf_driver_status(&device_gpu()->driver, calls->function(__VA_ARGS__), #function))

static cuda_graph capture(const cuda_calls *calls, bench *b, cf_cu_stream stream) {
    const places own = own_places(b);
    cuda_graph graph = NULL;
    CALL(cuStreamBeginCapture, stream, CUDA_CAPTURE_GLOBAL);
    const conv_fft_status status = enqueue(b, &own, stream);
    if (status != CONV_FFT_SUCCESS)
        print_error("%s\n", conv_fft_last_error());
    CALL(cuStreamEndCapture, stream, &graph);
    assert_int_equal(status, CONV_FFT_SUCCESS);
    return graph;
}

/* Kernels and fills, no copies, no memory of its own. */
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
    bench b = bench_create(line, options, flags);
    layer *const l = &b.layer;
    const places own = own_places(&b);
    cf_cu_stream stream;
    cuda_graph_exec exec;
    tensor first[RESULTS];
    assert_success(cf_gpu_stream_create(gpu, &stream));
    reset(&b);
    assert_success(enqueue(&b, &own, stream));
    assert_success(cf_gpu_synchronize(gpu, stream));
    for (int r = 0; r < RESULTS; r++)
        first[r] = tensor_copy(&result_of(l, r)->tensor);

    reset(&b);
    const cuda_graph graph = capture(calls, &b, stream);
    assert_success(cf_gpu_synchronize(gpu, stream));
    for (int r = 0; r < RESULTS; r++) /* nothing has run */
        assert_true(tensor_untouched(&result_of(l, r)->tensor));
    check_nodes(calls, graph, line);
    CALL(cuGraphInstantiate, &exec, graph, 0);
    for (int again = 0; again < 3; again++) {
        reset(&b);
        CALL(cuGraphLaunch, exec, stream);
        assert_success(cf_gpu_synchronize(gpu, stream));
        for (int r = 0; r < RESULTS; r++)
            assert_true(tensor_same_bits(&result_of(l, r)->tensor, &first[r], 0, first[r].count));
    }

    generator g = generator_create(8); /* other inputs in the same places */
    double *values = test_alloc((size_t)l->x.tensor.count * sizeof *values);
    random_values(&g, l->x.tensor.count, values);
    layer_set(l, &l->x, values);
    free(values);
    reset(&b);
    CALL(cuGraphLaunch, exec, stream);
    assert_success(cf_gpu_synchronize(gpu, stream));
    check_results(&b, "a graph of both calls");

    CALL(cuGraphExecDestroy, exec);
    CALL(cuGraphDestroy, graph);
    for (int r = 0; r < RESULTS; r++)
        tensor_destroy(&first[r]);
    cf_gpu_stream_destroy(gpu, stream);
    bench_destroy(&b);
}

/* Both operands of a small pass are transformed by one launch; product and inverse are one each. */
static void small_layers(void **state) {
    NEED_DEVICE(state);
    static const char *const small[] = {"in=3x8x12x13 out=10 kernel=3x4 pad=1",
                                        "in=2x6x9x10 out=4 kernel=3x3 groups=2 layout=last dtype=fp16",
                                        "in=2x3x200 out=4 kernel=9 dtype=fp64"};
    const cuda_calls calls = cuda_calls_of(device_gpu());
    cf_cu_stream stream;
    assert_success(cf_gpu_enter(device_gpu()));
    assert_success(cf_gpu_stream_create(device_gpu(), &stream));
    for (int i = 0; i < 3; i++) {
        bench b = bench_create(small[i], NULL, 0);
        const conv_fft_problem problem = test_problem(small[i]);
        strategies s = chosen_strategies(device_context(), &problem);
        for (int pass = 0; pass < 3; pass++) {
            const places p = own_places(&b);
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
        bench_destroy(&b);
    }
    cf_gpu_stream_destroy(device_gpu(), stream);
    cf_gpu_leave(device_gpu());
}

static void graphs(void **state) {
    NEED_DEVICE(state);
    const cuda_calls calls = cuda_calls_of(device_gpu());
    assert_success(cf_gpu_enter(device_gpu()));
    for (int i = 0; i < LINES; i++)
        check_graph(&calls, lines[i], NULL, 0);
    cf_gpu_leave(device_gpu());
}

/* A plan in chunks of the least workspace; calls that add to gradients; kept spectra; every kind of strategy. */
static void graphs_of_ways(void **state) {
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

/* Nodes of one call; the memory is real, but nothing runs. */
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

/* L4 as it is planned, L5 in one tile, and a small layer with the kernels of L5: three launches for a pass, and of the small ones six for both
 * gradients, of which one makes the spectra of w and of the gy that they share, and one that of x. */
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

/* ------------------------------------------------------------------------------------------------ streams and threads */

static void shared_plan(void **state) {
    NEED_DEVICE(state);
    conv_fft_context *const context = device_context();
    threads_share_plan(context, "in=4x12x7x21 out=10 kernel=3x3 stride=1x4 dilation=1x2 pad=2", "blas");
    threads_share_plan(context, "in=2x12x100 out=12 kernel=9 stride=2 dtype=fp64 groups=2", "blas");
    threads_share_plan(context, "in=3x6x13x14 out=6 kernel=3x3 pad=1 mode=circular", "loop");
    threads_share_plan(context, "in=2x8x13x14 out=8 kernel=3x3 pad=2 mode=reflect groups=8 layout=last dtype=fp16",
                       "loop");
}

static void plans_meanwhile(void **state) {
    NEED_DEVICE(state);
    threads_make_plans(device_context());
}

/* ---------------------------------------------------------------------------------------------------- empty batches */

static void empty_batch(void **state) {
    NEED_DEVICE(state);
    const conv_fft_problem p = test_problem("in=0x4x9x10 out=6 kernel=3x4 pad=1 groups=2 mode=reflect");
    generator g = generator_create(9);
    layer l = layer_create(&p, &g);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
    conv_fft_plan *kept = test_plan(device_context(), &p, &options), *plan = test_plan(device_context(), &p, NULL);
    assert_true(plan && kept);
    assert_true(layer_check_all(&l, plan));
    assert_true(layer_check_kept(&l, kept));
    conv_fft_plan_destroy(kept);
    void *const w = l.w.tensor.memory.data, *const gw = l.gw.tensor.memory.data,
                *const gbias = l.gbias.tensor.memory.data;
    assert_success(conv_fft_forward(plan, NULL, w, NULL, NULL, NULL, 0, NULL));
    tensor_poison(&l.gw.tensor);
    tensor_poison(&l.gbias.tensor);
    assert_success(conv_fft_backward(plan, NULL, NULL, NULL, NULL, gw, gbias, 0, NULL, 0, NULL));
    assert_success(device_wait());
    for (int64_t i = 0; i < l.gw.tensor.count; i++)
        assert_true(tensor_load(&l.gw.tensor, i) == 0);
    for (int64_t i = 0; i < l.gbias.tensor.count; i++)
        assert_true(tensor_load(&l.gbias.tensor, i) == 0);
    tensor_set(&l.gw.tensor, l.gw.old);
    tensor_set(&l.gbias.tensor, l.gbias.old);
    assert_success(conv_fft_backward(plan, NULL, NULL, NULL, NULL, gw, gbias,
                                     CONV_FFT_ACCUMULATE_GW | CONV_FFT_ACCUMULATE_GBIAS, NULL, 0, NULL));
    assert_success(device_wait());
    assert_true(tensor_untouched(&l.gw.tensor) && tensor_untouched(&l.gbias.tensor));
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

/* -------------------------------------------------------------------------------------------------------- profiles */

/* The last test: an illegal access leaves no GPU to work with. */
static void profiles(void **state) {
    NEED_DEVICE(state);
    for (int i = 0; i <= LINES; i++) { /* the last one has tensors that go to the device in several pieces */
        const conv_fft_problem p = test_problem(i < LINES ? lines[i] : "in=2x32x320x320 out=32 kernel=3x3");
        conv_fft_plan *plan = test_plan(device_context(), &p, NULL);
        assert_non_null(plan);
        for (int pass = 1; pass <= CONV_FFT_BACKWARD; pass = pass == 4 ? 6 : 2 * pass) {
            conv_fft_description d;
            assert_success(conv_fft_profile(plan, (conv_fft_pass)pass, 3, &d));
            assert_true(d.stage_count > 0 && d.measured_ms > 0);
            for (int s = 0; s < d.stage_count; s++)
                assert_true(d.stages[s].measured_ms >= 0);
        }
        conv_fft_plan_destroy(plan);
        assert_success(device_wait());
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_memory_too),  cmocka_unit_test(graphs),       cmocka_unit_test(graphs_of_ways),
        cmocka_unit_test(launches_of_passes), cmocka_unit_test(small_layers), cmocka_unit_test(shared_plan),
        cmocka_unit_test(plans_meanwhile),    cmocka_unit_test(empty_batch),  cmocka_unit_test(profiles),
    };
    gpu_read_filters();
    return gpu_exit_status(
        cmocka_run_group_tests_name("calls of layers on a GPU", tests, device_gpu_setup, device_teardown));
}
