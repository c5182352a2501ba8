/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of the cases of short kernels, and checks of their results. */
#include "kernels/short_kernel_cases.h"

#include "conv/gpu/backend.h"
#include "kernels/no_driver.h"
#include "support/layer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------------ plans */

static conv_fft_status open_case(const short_case *c, const char *properties, short_opened *o) {
    cf_layer made;
    cf_strategy strategy[CF_PASS_COUNT];
    uint64_t smallest;
    const char *const family = c->spatial ? "spatial" : c->dft ? "dft" : c->igemm ? "implicit_gemm" : "toeplitz";
    memset(o, 0, sizeof *o);
    CF_FORWARD(conv_fft_problem_parse(c->problem, &o->problem, NULL, 0));
    CF_FORWARD(cf_gpu_properties_load(properties, &o->gpu.properties));
    no_driver(&o->gpu);
    o->gpu.properties.multiprocessors = c->processors ? c->processors : 1;
    if (c->shared) {
        o->gpu.properties.shared_per_block = c->shared;
        o->gpu.properties.shared_per_multiprocessor = c->shared + o->gpu.properties.shared_reserved_per_block;
    }
    CF_FORWARD(cf_gpu_layers_create(&o->gpu, &o->device));
    CF_FORWARD(cf_layer_make(&o->problem, &made));
    const int passes = c->passes  ? c->passes
                       : c->igemm ? CONV_FFT_FORWARD | CONV_FFT_BACKWARD_WEIGHTS
                                  : CONV_FFT_ALL_PASSES;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        CF_FORWARD(cf_strategy_parse(family, o->problem.rank, &strategy[pass]));
    return cf_plan_create(&made, o->device, passes, strategy, c->shifted, 0, &smallest, &o->plan);
}

bool short_case_open(const short_case *c, const char *properties, short_opened *o) {
    if (open_case(c, properties, o) == CONV_FFT_SUCCESS)
        return true;
    short_case_close(o);
    return false;
}

void short_case_close(short_opened *o) {
    cf_plan_destroy(o->plan);
    cf_gpu_layers_destroy(o->device);
}

/* --------------------------------------------------------------------------------------------------------- checking */

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
    check_status(status, "a call");
    release_workspace(&ws, "a call");
    double *const values = test_alloc((size_t)r->tensor.count * sizeof *values);
    tensor_get(&r->tensor, values);
    return values;
}

/* A NaN in one channel of one sample is seen in the result of this channel and sample, and does not change a bit of
 * others. Exception: in y and gx, `together` channels may share it. For the gradient of the weights, it does not change
 * other channels. */
static void check_spoiled(layer *l, const conv_fft_plan *plan, conv_fft_pass pass, int64_t together) {
    operand *const in = pass == CONV_FFT_BACKWARD_DATA ? &l->gy : &l->x;
    result *const r = pass == CONV_FFT_FORWARD ? &l->y : pass == CONV_FFT_BACKWARD_DATA ? &l->gx : &l->gw;
    const int64_t groups = in->tensor.extent[1], inner = in->tensor.count / in->tensor.extent[0] / groups,
                  out = pass == CONV_FFT_BACKWARD_WEIGHTS ? r->tensor.count / groups
                                                          : r->tensor.count / r->tensor.extent[0] / groups,
                  plane = pass == CONV_FFT_BACKWARD_WEIGHTS ? 1 : groups + 1, at = (groups + 1) * inner + inner / 2;
    double *const before = run_pass(l, plan, pass, r), *const values = in->values, good = values[at];
    values[at] = NAN;
    tensor_set(&in->tensor, values);
    double *const after = run_pass(l, plan, pass, r);
    values[at] = good;
    tensor_set(&in->tensor, values);
    int64_t seen = 0, changed = 0;
    for (int64_t i = 0; i < r->tensor.count; i++) {
        const int64_t own = i / out;
        if (own == plane)
            seen += isnan(after[i]);
        else if (own / groups != plane / groups || own % groups / together != plane % groups / together)
            changed += memcmp(&before[i], &after[i], sizeof before[i]) != 0;
    }
    if (seen == 0 || changed > 0)
        case_fail("pass %d: a NaN is seen %lld times, and changes %lld results of other planes", (int)pass,
                  (long long)seen, (long long)changed);
    free(before);
    free(after);
}

/* Channels whose products are computed together. */
static int64_t channels_together(const short_case *c, const conv_fft_plan *plan, int pass) {
    const cf_toeplitz_state *const state = c->spatial || c->dft || c->igemm ? NULL : plan->pass[pass].state;
    return state && state->config.in_place && pass != CF_PASS_WEIGHTS ? 4 : 1;
}

bool short_case_check(const short_case *c, int number, const short_opened *o) {
    const int failures = case_failures();
    char variables[256];
    snprintf(variables, sizeof variables, "CONV_FFT_TEST_CASE='%s'", c->problem);
    case_begin(c->problem, variables);
    generator g = generator_create((uint64_t)number);
    tensor_align(c->shifted ? 0 : 64);
    tolerate_fast_math();
    layer l = layer_create(&o->problem, &g);
    if (o->problem.fp32_weights)
        layer_grade_weights(&l);
    if (c->constant)
        layer_fill(&l, 1.9);
    const bool gx = o->plan->passes & CONV_FFT_BACKWARD_DATA, gw = o->plan->passes & CONV_FFT_BACKWARD_WEIGHTS;
    const backward_call overwrite = {.gx = gx, .gw = gw, .separate = number % 2},
                        add = {.gx = gx,
                               .gw = gw,
                               .separate = !overwrite.separate,
                               .flags = (gx ? CONV_FFT_ACCUMULATE_GX : 0) | (gw ? CONV_FFT_ACCUMULATE_GW : 0)};
    layer_check_forward(&l, o->plan, true);
    layer_check_forward(&l, o->plan, false);
    layer_check_backward(&l, o->plan, &overwrite);
    layer_check_backward(&l, o->plan, &add);
    if (o->plan->shares_gy) { /* kernels of family toeplitz also sum the gradient of the bias */
        backward_call joint = {.gx = true, .gw = true, .gbias = !c->spatial};
        layer_check_backward(&l, o->plan, &joint);
        joint.flags = CONV_FFT_ACCUMULATE_GX | CONV_FFT_ACCUMULATE_GW | CONV_FFT_ACCUMULATE_GBIAS;
        layer_check_backward(&l, o->plan, &joint);
        if (!c->spatial)
            layer_check_same_bits(&l, o->plan, o->problem.rank == 1);
    }
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        if (c->spoiled && (o->plan->passes & 1 << pass))
            check_spoiled(&l, o->plan, (conv_fft_pass)(1 << pass), channels_together(c, o->plan, pass));
    layer_destroy(&l);
    tensor_align(0);
    return case_failures() == failures;
}
