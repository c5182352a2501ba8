/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/staged_cases.h"

#include "conv/gpu/backend.h"
#include "conv/gpu/device.h"
#include "conv/plan/plan.h"
#include "kernels/no_driver.h"
#include "support/layer.h"
#include "support/selection.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct staged_case {
    const char *line, *strategy; /* of all passes */
    bool older;                  /* a GPU without bulk copies */
    size_t align;                /* bytes */
} staged_case;

#define SPECTRUM(product, type) \
    " dilation=step overlap=save product=" product " spectrum=" type " chunk=0 groups=0 keep=none"
#define HALVES SPECTRUM("tensor", "fp16")
#define VECTOR SPECTRUM("tensor", "bf16")
#define FLOATS SPECTRUM("loop", "fp32")

static const staged_case cases[] = {
    /* Tensor-core FFTs of planes in both layouts; w by one dense matrix. */
    {"in=3x16x37x41 out=10 kernel=5x3 pad=same dtype=fp16 math=half", "staged basis=64x64 tiles=1x1" HALVES, false, 64},
    {"in=3x16x13x12 out=16 kernel=5x3 pad=1 math=tf32 layout=last wlayout=last", "staged basis=16x16 tiles=1x1" HALVES,
     false, 64},
    {"in=2x12x40x26 out=6 kernel=4x5 pad=2 stride=2x1 groups=2 dtype=bf16 math=half",
     "staged basis=32x32 tiles=1x1" VECTOR, true, 2},
    /* Rows, long and short, channels last and channels first. */
    {"in=3x8x460 out=5 kernel=21 pad=10 dtype=fp16 math=half", "staged basis=512 tiles=1" HALVES, false, 64},
    {"in=5x16x50 out=8 kernel=7 pad=3 mode=reflect math=tf32 layout=last", "staged basis=64 tiles=1" HALVES, false, 4},
    /* Volumes in two kernels; tiles. */
    {"in=2x8x16x14x20 out=8 kernel=3x3x3 pad=1 dtype=fp16 math=half", "staged basis=18x18x24 tiles=1x1x1" HALVES, true,
     64},
    {"in=2x8x25x27 out=8 kernel=5x4 pad=2 dilation=1x2 math=tf32", "staged basis=20x24 tiles=2x2" HALVES, false, 64},
    /* Rows that overlap, in one kernel and in two; chunks of rows and groups; dilation as shifts; kept spectra. */
    {"in=5x16x60 out=8 kernel=9 pad=4 groups=2 dtype=fp16 math=half",
     "staged basis=16 tiles=9 dilation=step overlap=add product=tensor spectrum=fp16 chunk=18 groups=1 keep=none",
     false, 2},
    {"in=2x8x14x30x18 out=8 kernel=3x3x3 math=tf32",
     "staged basis=16x18x20 tiles=1x2x1 dilation=step overlap=add product=tensor spectrum=fp16 chunk=2 groups=0 "
     "keep=none",
     true, 4},
    {"in=3x16x44x23 out=8 kernel=4x3 dilation=3x2 pad=4 dtype=bf16 math=half",
     "staged basis=32x32 tiles=1x1 dilation=shift overlap=save product=tensor spectrum=bf16 chunk=0 groups=0 keep=none",
     false, 64},
    {"in=4x8x26x30 out=16 kernel=5x3 pad=2x1 dtype=fp16 math=half layout=last",
     "staged basis=32x32 tiles=1x1 dilation=step overlap=save product=tensor spectrum=fp16 chunk=2 groups=0 keep=xw",
     false, 64},
    /* FP32 weights and biases beside 16-bit tensors: w by one dense matrix, by a tensor-core FFT and in shared memory;
     * every inverse that adds a bias. */
    {"in=3x16x37x41 out=10 kernel=5x3 pad=same dtype=fp16 w=fp32 math=half", "staged basis=64x64 tiles=1x1" HALVES,
     false, 64},
    {"in=3x16x13x12 out=16 kernel=5x3 pad=1 dtype=fp16 w=fp32 math=half layout=last wlayout=last",
     "staged basis=16x16 tiles=1x1" HALVES, false, 64},
    {"in=2x12x40x26 out=6 kernel=4x5 pad=2 stride=2x1 groups=2 dtype=bf16 w=fp32 math=half",
     "staged basis=32x32 tiles=1x1" VECTOR, true, 4},
    {"in=2x8x16x16 out=8 kernel=17x17 pad=8 dtype=bf16 w=fp32 math=half", "staged basis=32x32 tiles=1x1" VECTOR, false,
     64},
    {"in=2x8x16x16 out=8 kernel=17x17 pad=8 dtype=fp16 w=fp32 math=half", "staged basis=32x32 tiles=1x1" HALVES, false,
     64},
    {"in=3x8x460 out=5 kernel=21 pad=10 dtype=fp16 w=fp32 math=half", "staged basis=512 tiles=1" HALVES, false, 64},
    {"in=5x16x50 out=8 kernel=7 pad=3 dtype=fp16 w=fp32 math=half", "staged basis=64 tiles=1" HALVES, false, 64},
    {"in=5x16x50 out=8 kernel=7 pad=3 dtype=bf16 w=fp32 math=half layout=last", "staged basis=64 tiles=1" VECTOR, false,
     4},
    {"in=2x8x16x14x20 out=8 kernel=3x3x3 pad=1 groups=2 dtype=fp16 w=fp32 math=half",
     "staged basis=18x18x24 tiles=1x1x1" HALVES, true, 64},
    {"in=3x20x17x19 out=12 kernel=4x3 pad=1 dtype=bf16 w=fp32",
     "staged basis=20x20 tiles=1x1" SPECTRUM("tensor", "fp32"), false, 64},
    {"in=2x9x11x12 out=6 kernel=4x3 pad=1 groups=3 dtype=bf16 w=fp32",
     "staged basis=15x15 tiles=1x1 dilation=step overlap=save product=loop spectrum=fp32 chunk=0 groups=1 keep=none",
     false, 64},
    /* Columns of planes, whole and in chunks; phases, strides and padding modes; multiples of eight in channels-last
     * layout. */
    {"in=3x16x20x24 out=8 kernel=5x1 pad=same dtype=fp16 math=half", "staged basis=24x1 tiles=1x24" HALVES, false, 64},
    {"in=3x8x33x8 out=24 kernel=9x1 pad=4x0 groups=2 dtype=bf16 math=half",
     "staged basis=40x1 tiles=1x8 dilation=step overlap=save product=tensor spectrum=bf16 chunk=0 groups=1 keep=none",
     true, 2},
    {"in=3x16x65x40 out=8 kernel=15x1 pad=7x0 dtype=fp16 math=half",
     "staged basis=80x1 tiles=1x40 dilation=step overlap=save product=tensor spectrum=fp16 chunk=13 groups=0 keep=none",
     false, 64},
    {"in=2x8x30x32 out=16 kernel=9x1 stride=1x2 pad=4x0 dtype=bf16 w=fp32 math=half",
     "staged basis=40x1 tiles=1x16" VECTOR, false, 64},
    {"in=3x8x20x16 out=16 kernel=5x1 pad=2x0 mode=reflect dtype=fp16 math=half",
     "staged basis=24x1 tiles=1x16 dilation=step overlap=save product=tensor spectrum=fp16 chunk=32 groups=0 keep=xw",
     false, 4},
    {"in=2x8x60x16 out=8 kernel=9x1 stride=2x1 pad=4x0 dtype=fp16 math=half", "staged basis=36x1 tiles=1x16" HALVES,
     false, 64},
    {"in=2x8x40x11 out=8 kernel=5x1 pad=2x0 math=tf32", "staged basis=24x1 tiles=2x11" HALVES, false, 64},
    {"in=3x16x13x17 out=8 kernel=7x1 pad=same dtype=bf16 math=half layout=last", "staged basis=24x1 tiles=1x17" VECTOR,
     false, 64},
    {"in=2x3x20x9 out=4 kernel=6x1 pad=2x0 mode=circular", "staged basis=27x1 tiles=1x9" FLOATS, false, 64},
    /* FP32, also with products of split terms, and FP64. */
    {"in=3x20x17x19 out=12 kernel=4x3 pad=1", "staged basis=20x20 tiles=1x1" SPECTRUM("tensor", "fp32"), false, 64},
    {"in=3x5x19x23 out=4 kernel=5x4 pad=3:1x2 mode=circular layout=last", "staged basis=12x15 tiles=3x3" FLOATS, true,
     4},
    {"in=2x3x17 out=4 kernel=4 stride=3 pad=2 dtype=fp64 math=fp64", "staged basis=21 tiles=1" SPECTRUM("loop", "fp64"),
     false, 8}};

static conv_fft_plan *plan_of(const staged_case *c, const conv_fft_problem *problem, cf_device *device) {
    cf_layer made;
    cf_strategy strategy[CF_PASS_COUNT];
    uint64_t smallest = 0;
    conv_fft_plan *plan = NULL;
    bool good = cf_layer_make(problem, &made) == CONV_FFT_SUCCESS;
    for (int pass = 0; good && pass < CF_PASS_COUNT; pass++)
        good = cf_strategy_parse(c->strategy, problem->rank, &strategy[pass]) == CONV_FFT_SUCCESS;
    if (!good ||
        cf_plan_create(&made, device, CONV_FFT_ALL_PASSES, strategy, true, 0, &smallest, &plan) != CONV_FFT_SUCCESS)
        case_fail("%s", conv_fft_last_error());
    return plan;
}

/* The result of a pass, in memory that the caller frees. */
static double *run_pass(layer *l, const conv_fft_plan *plan, conv_fft_pass pass, result *r) {
    const void *const x = l->x.tensor.memory.data, *const w = l->w.tensor.memory.data,
                      *const gy = l->gy.tensor.memory.data;
    void *const out = r->tensor.memory.data;
    guarded ws = layer_workspace(l, plan, pass);
    tensor_poison(&r->tensor);
    const conv_fft_status status = pass == CONV_FFT_FORWARD
                                       ? conv_fft_forward(plan, x, w, NULL, out, ws.data, ws.bytes, NULL)
                                   : pass == CONV_FFT_BACKWARD_DATA
                                       ? conv_fft_backward_data(plan, w, gy, out, 0, ws.data, ws.bytes, NULL)
                                       : conv_fft_backward_weights(plan, x, gy, out, NULL, 0, ws.data, ws.bytes, NULL);
    if (status != CONV_FFT_SUCCESS)
        case_fail("%s", conv_fft_last_error());
    release_workspace(&ws, "a call");
    double *const values = test_alloc((size_t)r->tensor.count * sizeof *values);
    tensor_get(&r->tensor, values);
    return values;
}

/* An infinity in channel 1 of the last sample reaches its results, and does not change a bit of other samples. For the
 * gradient of the weights, it does not change other channels. */
static void check_infinity(layer *l, const conv_fft_plan *plan, conv_fft_pass pass) {
    const bool weights = pass == CONV_FFT_BACKWARD_WEIGHTS;
    operand *const in = pass == CONV_FFT_BACKWARD_DATA ? &l->gy : &l->x;
    result *const r = pass == CONV_FFT_FORWARD ? &l->y : weights ? &l->gw : &l->gx;
    const int64_t count = r->tensor.count, sample = in->tensor.count / in->tensor.extent[0],
                  inner = sample / in->tensor.extent[1], channels = r->tensor.extent[1],
                  taps = count / r->tensor.extent[0] / channels, others = count - count / r->tensor.extent[0];
    double *const before = run_pass(l, plan, pass, r), *const spoiled = in->values;
    const int64_t at = in->tensor.count - sample + inner + inner / 2;
    const double good = spoiled[at];
    spoiled[at] = INFINITY;
    tensor_set(&in->tensor, spoiled);
    double *const after = run_pass(l, plan, pass, r);
    spoiled[at] = good;
    tensor_set(&in->tensor, spoiled);
    int64_t seen = 0, changed = 0;
    double change = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        if (weights ? i / taps % channels == 1 : i >= others) {
            seen += !isfinite(after[i]);
        } else if (weights) {
            change += (after[i] - before[i]) * (after[i] - before[i]);
            norm += before[i] * before[i];
        } else {
            changed += memcmp(&before[i], &after[i], sizeof before[i]) != 0;
        }
    }
    if (seen == 0)
        case_fail("pass %d: an infinity is not seen", (int)pass);
    if (changed > 0 || !(change <= 1e-6 * norm))
        case_fail("pass %d: an infinity reaches others", (int)pass);
    free(before);
    free(after);
}

static void check_case(const staged_case *c, cf_device *device) {
    static const conv_fft_pass passes[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD_DATA, CONV_FFT_BACKWARD_WEIGHTS};
    const backward_call both = {.gx = true, .gw = true, .gbias = true},
                        each = {.gx = true,
                                .gw = true,
                                .separate = true,
                                .flags = CONV_FFT_ACCUMULATE_GX | CONV_FFT_ACCUMULATE_GW};
    conv_fft_problem problem;
    char text[600], variables[700];
    snprintf(text, sizeof text, "%s  %s", c->line, c->strategy);
    snprintf(variables, sizeof variables, "CONV_FFT_TEST_CASE='%s'", text);
    case_begin(text, variables);
    if (conv_fft_problem_parse(c->line, &problem, NULL, 0) != CONV_FFT_SUCCESS) {
        case_fail("%s", conv_fft_last_error());
        return;
    }
    generator g = generator_create(1);
    tensor_align(c->align);
    layer l = layer_create(&problem, &g);
    conv_fft_plan *plan = plan_of(c, &problem, device);
    if (plan && strstr(c->strategy, "keep=xw")) {
        layer_check_kept(&l, plan);
    } else if (plan && layer_check_forward(&l, plan, true) && layer_check_backward(&l, plan, &both) &&
               layer_check_backward(&l, plan, &each)) {
        for (int i = 0; i < 3; i++)
            check_infinity(&l, plan, passes[i]);
    }
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
    tensor_align(0);
}

enum {
    CASES = sizeof cases / sizeof cases[0],
    NAME_BYTES = 600
};

/* The cases that this run takes, by their lines. */
static void choose(bool taken[CASES]) {
    static char text[CASES][NAME_BYTES];
    const char *names[CASES];
    for (int i = 0; i < CASES; i++) {
        snprintf(text[i], sizeof text[i], "%s  %s", cases[i].line, cases[i].strategy);
        names[i] = text[i];
    }
    test_select("staged", names, CASES, taken);
}

int staged_cases_run(const char *properties) {
    bool taken[CASES];
    choose(taken);
    tolerate_fast_math();
    for (int i = 0; i < CASES; i++) {
        if (!taken[i])
            continue;
        cf_gpu gpu = {.ordinal = 0};
        no_driver(&gpu);
        cf_device *device = NULL;
        case_begin("the GPU", NULL);
        if (cf_gpu_properties_load(properties, &gpu.properties) != CONV_FFT_SUCCESS) {
            case_fail("%s", conv_fft_last_error());
            break;
        }
        if (cases[i].older)
            gpu.properties.compute_major = 8;
        if (cf_gpu_layers_create(&gpu, &device) != CONV_FFT_SUCCESS)
            case_fail("%s", conv_fft_last_error());
        else
            check_case(&cases[i], device);
        cf_gpu_layers_destroy(device);
        const char *const fault = staged_end_kernels();
        if (*fault)
            case_fail("%s", fault);
    }
    print_worst_ratios("staged layers");
    return case_failures();
}
