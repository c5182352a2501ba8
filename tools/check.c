/* SPDX-License-Identifier: Apache-2.0 */
/* conv-fft check: run all passes of a layer on random data, and compare the results with direct sums. */
#include "device_memory.h"
#include "direct_sum.h"
#include "element.h"
#include "interrupt.h"
#include "main.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PRODUCTS 5e7 /* of one pass; fewer results are compared if their sums are long */

enum {
    MIN_SAMPLES = 64
};

/* A tensor on the host and on the device. */
typedef struct operand {
    const char *name;
    conv_fft_dtype dtype;
    int64_t count;
    void *host, *device;
    double *values; /* of inputs */
} operand;

/* The operands, with the results behind the inputs. */
enum {
    X,
    W,
    BIAS,
    GY,
    Y,
    GX,
    GW,
    GBIAS,
    OPERANDS,
    INPUTS = Y
};

typedef struct layer_check {
    const layer_line *line;
    direct_layer layer;
    const conv_fft_plan *plan;
    device_memory *memory;
    operand operands[OPERANDS];
    bool fast_math; /* TF32 and HALF round factors here */
} layer_check;

/* The comparison of one pass. */
typedef struct verdict {
    double error, limit; /* of the result with the largest error in relation to its limit */
    int64_t compared, results;
    bool good;
} verdict;

static int no_memory(const layer_check *c) {
    fprintf(stderr, "conv-fft: %s: there is no memory for the tensors; take a smaller batch\n",
            c->line->name[0] ? c->line->name : "the problem");
    return 1;
}

/* Inputs get random numbers, results NaN. 0, or an exit status. */
static int fill(layer_check *c, operand *t, bool is_input, uint64_t *state) {
    const size_t bytes = (size_t)t->count * element_bytes(t->dtype);
    t->host = malloc(bytes + 1);
    t->device = device_memory_get(c->memory, bytes);
    t->values = is_input ? malloc(((size_t)t->count + 1) * sizeof *t->values) : NULL;
    if (!t->host || !t->device || (is_input && !t->values))
        return no_memory(c);
    if (!is_input)
        return 0;
    for (int64_t i = 0; i < t->count; ++i) {
        t->values[i] = element_random(t->dtype, state);
        element_write(t->dtype, t->host, i, t->values[i]);
    }
    return device_memory_write(c->memory, t->device, t->host, bytes) ? 0 : 1;
}

static int make_operands(layer_check *c) {
    const conv_fft_problem *const p = &c->line->problem;
    const direct_counts n = direct_count(&c->layer);
    const conv_fft_dtype w = p->fp32_weights ? CONV_FFT_FP32 : p->dtype,
                         gw = p->weight_grad_dtype == CONV_FFT_DTYPE_SAME ? w : p->weight_grad_dtype;
    const operand operands[OPERANDS] = {[X] = {.name = "x", .dtype = p->dtype, .count = n.x},
                                        [W] = {.name = "w", .dtype = w, .count = n.w},
                                        [BIAS] = {.name = "bias", .dtype = w, .count = p->out_channels},
                                        [GY] = {.name = "gy", .dtype = p->dtype, .count = n.y},
                                        [Y] = {.name = "y", .dtype = p->dtype, .count = n.y},
                                        [GX] = {.name = "gx", .dtype = p->dtype, .count = n.x},
                                        [GW] = {.name = "gw", .dtype = gw, .count = n.w},
                                        [GBIAS] = {.name = "gbias", .dtype = gw, .count = p->out_channels}};
    uint64_t state = 1;
    int failed = 0;
    memcpy(c->operands, operands, sizeof operands);
    for (int i = 0; i < OPERANDS && !failed; ++i)
        failed = fill(c, &c->operands[i], i < INPUTS, &state);
    return failed;
}

static void free_operands(layer_check *c) {
    for (int i = 0; i < OPERANDS; ++i) {
        free(c->operands[i].host);
        free(c->operands[i].values);
        device_memory_release(c->memory, c->operands[i].device);
    }
}

/* ---- running */

static conv_fft_status call(const layer_check *c, conv_fft_pass pass, void *workspace, size_t bytes) {
    const operand *const t = c->operands;
    if (pass == CONV_FFT_FORWARD)
        return conv_fft_forward(c->plan, t[X].device, t[W].device, t[BIAS].device, t[Y].device, workspace, bytes, NULL);
    if (pass == CONV_FFT_BACKWARD_DATA)
        return conv_fft_backward_data(c->plan, t[W].device, t[GY].device, t[GX].device, 0, workspace, bytes, NULL);
    if (pass == CONV_FFT_BACKWARD_WEIGHTS)
        return conv_fft_backward_weights(c->plan, t[X].device, t[GY].device, t[GW].device, t[GBIAS].device, 0,
                                         workspace, bytes, NULL);
    return conv_fft_backward(c->plan, t[X].device, t[W].device, t[GY].device, t[GX].device, t[GW].device,
                             t[GBIAS].device, 0, workspace, bytes, NULL);
}

/* Whether the pass writes the result. */
static bool writes(conv_fft_pass pass, int result) {
    static const int pass_of[OPERANDS] = {[Y] = CONV_FFT_FORWARD,
                                          [GX] = CONV_FFT_BACKWARD_DATA,
                                          [GW] = CONV_FFT_BACKWARD_WEIGHTS,
                                          [GBIAS] = CONV_FFT_BACKWARD_WEIGHTS};
    return (pass & pass_of[result]) != 0;
}

/* Run a pass from results of NaN, and fetch them. 0, or an exit status. */
static int run(layer_check *c, conv_fft_pass pass) {
    size_t bytes;
    if (conv_fft_plan_workspace(c->plan, pass, &bytes) != CONV_FFT_SUCCESS)
        return layer_error(c->line);
    void *const workspace = device_memory_get(c->memory, bytes);
    bool good = workspace != NULL;
    for (int i = INPUTS; i < OPERANDS && good; ++i) {
        operand *const t = &c->operands[i];
        memset(t->host, 0xff, (size_t)t->count * element_bytes(t->dtype)); /* a NaN in every type */
        good = device_memory_write(c->memory, t->device, t->host, (size_t)t->count * element_bytes(t->dtype));
    }
    const conv_fft_status status = good ? call(c, pass, workspace, bytes) : CONV_FFT_SUCCESS;
    for (int i = INPUTS; i < OPERANDS && good && status == CONV_FFT_SUCCESS; ++i)
        if (writes(pass, i))
            good = device_memory_read(c->memory, c->operands[i].host, c->operands[i].device,
                                      (size_t)c->operands[i].count * element_bytes(c->operands[i].dtype));
    device_memory_release(c->memory, workspace);
    if (!workspace)
        return no_memory(c);
    return status != CONV_FFT_SUCCESS ? layer_error(c->line) : !good;
}

/* ---- comparing */

/* The limit of docs/numerics.md, relative to || |x| conv |w| ||. */
static double limit_of(const layer_check *c, conv_fft_dtype dtype) {
    const conv_fft_problem *const p = &c->line->problem;
    const double single = element_roundoff(CONV_FFT_FP32), own = element_roundoff(dtype);
    if (c->fast_math && p->math == CONV_FFT_MATH_TF32)
        return 6 * element_roundoff(CONV_FFT_FP16); /* TF32 has the 11 bits of FP16 */
    if (c->fast_math && p->math == CONV_FFT_MATH_HALF)
        return 3 * element_roundoff(p->dtype);
    return dtype == CONV_FFT_FP32 || dtype == CONV_FFT_FP64 ? 12 * own : own + 12 * single;
}

/* The exact result at an index. False: out of memory. */
static bool exact(const layer_check *c, int result, int64_t index, direct_result *sum) {
    const operand *const t = c->operands;
    const double *const x = t[X].values, *const w = t[W].values, *const gy = t[GY].values;
    if (result == GX)
        return direct_sum(&c->layer, CONV_FFT_BACKWARD_DATA, x, w, gy, index, sum);
    if (result == GW)
        return direct_sum(&c->layer, CONV_FFT_BACKWARD_WEIGHTS, x, w, gy, index, sum);
    if (result == Y) {
        if (!direct_sum(&c->layer, CONV_FFT_FORWARD, x, w, gy, index, sum))
            return false;
        sum->value += t[BIAS].values[direct_channel(&c->layer, index)];
        sum->magnitude += fabs(t[BIAS].values[direct_channel(&c->layer, index)]);
        return true;
    }
    *sum = (direct_result){0, 0};
    for (int64_t i = 0; i < t[GY].count; ++i) {
        const double value = direct_channel(&c->layer, i) == index ? gy[i] : 0;
        sum->value += value;
        sum->magnitude += fabs(value);
    }
    return true;
}

/* Compare all elements of a result, or a random sample. False: out of memory. */
static bool compare(const layer_check *c, int result, verdict *v) {
    const operand *const t = &c->operands[result];
    const double products = result == GBIAS ? (double)c->operands[GY].count
                                            : direct_products(&c->layer, result == Y    ? CONV_FFT_FORWARD
                                                                         : result == GX ? CONV_FFT_BACKWARD_DATA
                                                                                        : CONV_FFT_BACKWARD_WEIGHTS);
    const double wanted = fmax(MAX_PRODUCTS / fmax(products, 1), MIN_SAMPLES);
    const bool all = 2 * wanted >= (double)t->count;
    const int64_t samples = all ? t->count : (int64_t)wanted;
    double squares = 0, magnitudes = 0;
    uint64_t state = 7;
    for (int64_t i = 0; i < samples && !interrupted; ++i) {
        direct_result sum;
        const double place = (element_random(CONV_FFT_FP64, &state) + 1) / 2 * (double)t->count;
        const int64_t index = all ? i : (int64_t)fmin(place, (double)(t->count - 1));
        if (!exact(c, result, index, &sum))
            return false;
        const double error = element_read(t->dtype, t->host, index) - sum.value;
        squares += error * error;
        magnitudes += sum.magnitude * sum.magnitude;
    }
    const double error = squares == 0 ? 0 : sqrt(squares / magnitudes), limit = limit_of(c, t->dtype);
    const bool good = error <= limit; /* a NaN is not */
    if (v->results == 0 || !(error / limit <= v->error / v->limit)) {
        v->error = error;
        v->limit = limit;
    }
    v->good = v->good && good;
    v->compared += samples;
    v->results += t->count;
    return true;
}

static int check_pass(layer_check *c, conv_fft_pass pass, verdict *v) {
    const int failed = run(c, pass);
    *v = (verdict){.good = true};
    for (int i = INPUTS; i < OPERANDS && !failed; ++i)
        if (writes(pass, i) && !compare(c, i, v))
            return no_memory(c);
    return failed;
}

static void show(const layer_check *c, conv_fft_pass pass, const verdict *v, bool verbose, json_t *object) {
    char strategies[STRATEGY_BYTES] = "", families[64], count[64];
    read_strategies(c->plan, pass, strategies);
    if (object) {
        json_append(object, "passes",
                    json_pack("{s:s, s:o, s:o, s:f, s:b, s:I, s:I}", "pass", pass_word(pass), "strategies",
                              json_strategies(strategies), "error",
                              isfinite(v->error) ? json_real(v->error) : json_null(), "limit", v->limit, "good",
                              v->good, "compared", (json_int_t)v->compared, "results", (json_int_t)v->results));
        return;
    }
    if (v->compared == v->results)
        snprintf(count, sizeof count, "all %" PRId64, v->results);
    else
        snprintf(count, sizeof count, "%" PRId64 " of %" PRId64, v->compared, v->results);
    printf("  %-16s ", pass_word(pass));
    if (isnan(v->error))
        printf("%10s", "NaN");
    else
        printf("%10.2e", v->error);
    printf(" %10.2e  %-4s  %-28s %s\n", v->limit, v->good ? "good" : "BAD", count, family_names(strategies, families));
    if (verbose)
        print_strategies(strategies, 4, 4, 0, NULL);
    fflush(stdout);
}

static int check_passes(const options *o, layer_check *c, json_t *object) {
    static const conv_fft_pass passes[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD_DATA, CONV_FFT_BACKWARD_WEIGHTS,
                                           CONV_FFT_BACKWARD};
    int failed = make_operands(c);
    bool bad = false;
    for (size_t i = 0; i < sizeof passes / sizeof passes[0] && !failed && !interrupted; ++i) {
        verdict v;
        failed = check_pass(c, passes[i], &v);
        if (failed || interrupted)
            break;
        show(c, passes[i], &v, o->verbose, object);
        bad = bad || !v.good;
    }
    free_operands(c);
    return failed ? failed : bad;
}

static int check_layer(const options *o, conv_fft_context *context, const layer_line *line, json_t *document) {
    conv_fft_plan_options po;
    conv_fft_plan *plan;
    int64_t output[CONV_FFT_MAX_RANK];
    conv_fft_plan_options_init(&po);
    po.workspace_limit = (uint64_t)o->workspace_limit;
    if (conv_fft_problem_output(&line->problem, output) != CONV_FFT_SUCCESS ||
        conv_fft_plan_create(context, &line->problem, &po, &plan) != CONV_FFT_SUCCESS)
        return layer_error(line);
    layer_check c = {.line = line,
                     .plan = plan,
                     .memory = device_memory_open(context),
                     .fast_math = conv_fft_context_device(context) != CONV_FFT_DEVICE_CPU};
    direct_layer_make(&line->problem, output, &c.layer);
    json_t *object = document ? json_layer(document, line) : NULL;
    if (!object)
        printf("%s%s%s\n  %-16s %10s %10s  %-4s  %-28s %s\n", line->name, line->name[0] ? " " : "", line->text, "pass",
               "error", "limit", "", "results compared", "family");
    const int failed = c.memory ? check_passes(o, &c, object) : 1;
    device_memory_close(c.memory);
    conv_fft_plan_destroy(plan);
    return failed;
}

int check_command(const options *o, char **words, int count) {
    return for_each_layer(o, "check", words, count, check_layer);
}
