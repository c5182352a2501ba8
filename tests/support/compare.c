/* SPDX-License-Identifier: Apache-2.0 */
#include "support/compare.h"

#include "reference/dtype.h"
#include "support/selection.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FP64_EPS 0x1p-53
#define FP32_EPS 0x1p-24
#define TF32_EPS 0x1p-11
#define FP16_EPS 0x1p-11
#define BF16_EPS 0x1p-8

typedef struct tolerance_row {
    conv_fft_dtype dtype;
    conv_fft_math math;
    tolerance allowed;
} tolerance_row;

/* Measured: two to three times the worst ratios that test_conv_random printed for 20,000 problems (norm 4.7,
 * element 9.9). These belong to layers where little of what a transform covers reaches the result: a kernel as long as
 * the input, outputs in the padding. The norm of a 16-bit tensor needs 1, the one rounding of its elements,
 * and 12 FP32_EPS. */
#define FP16_NORM (1 + 12 * FP32_EPS / FP16_EPS)
#define BF16_NORM (1 + 12 * FP32_EPS / BF16_EPS)

static const tolerance_row tolerances[] = {
    {CONV_FFT_FP64, CONV_FFT_MATH_FP64, {FP64_EPS, 12, FP64_EPS, 30}},
    {CONV_FFT_FP32, CONV_FFT_MATH_FP32, {FP32_EPS, 12, FP32_EPS, 30}},
    {CONV_FFT_FP32, CONV_FFT_MATH_TF32, {FP32_EPS, 12, FP32_EPS, 30}},
    {CONV_FFT_FP32, CONV_FFT_MATH_HALF, {FP32_EPS, 12, FP32_EPS, 30}},
    {CONV_FFT_FP16, CONV_FFT_MATH_FP32, {FP16_EPS, FP16_NORM, FP32_EPS, 30}},
    {CONV_FFT_FP16, CONV_FFT_MATH_HALF, {FP16_EPS, FP16_NORM, FP32_EPS, 30}},
    {CONV_FFT_BF16, CONV_FFT_MATH_FP32, {BF16_EPS, BF16_NORM, FP32_EPS, 30}},
    {CONV_FFT_BF16, CONV_FFT_MATH_HALF, {BF16_EPS, BF16_NORM, FP32_EPS, 30}},
};

/* Half of the ratio that FP32 may have: products are rounded to TF32 and, with FP16 spectra, spectra are rounded, but
 * sums are not. */
static const tolerance tf32_allowed = {TF32_EPS, 6, TF32_EPS, 15};
/* The contract of 16-bit spectra, relative to a direct convolution whose results are rounded to the same type. Other
 * errors show in single elements. An FP32 result may be of either type. */
static const tolerance fp16_allowed = {FP16_EPS, 3, FP16_EPS, 15}, bf16_allowed = {BF16_EPS, 3, BF16_EPS, 15};
static bool has_fast_math;

void tolerate_fast_math(void) { has_fast_math = true; }

tolerance tolerance_of(conv_fft_dtype dtype, conv_fft_math math) {
    if (math == CONV_FFT_MATH_TF32 && has_fast_math)
        return tf32_allowed;
    if (math == CONV_FFT_MATH_HALF && has_fast_math)
        return dtype == CONV_FFT_FP16 ? fp16_allowed : bf16_allowed;
    if (math == CONV_FFT_MATH_DEFAULT)
        math = dtype == CONV_FFT_FP64 ? CONV_FFT_MATH_FP64 : CONV_FFT_MATH_FP32;
    for (size_t i = 0; i < sizeof tolerances / sizeof tolerances[0]; i++)
        if (tolerances[i].dtype == dtype && tolerances[i].math == math)
            return tolerances[i].allowed;
    fprintf(stderr, "no tolerance for dtype %d, math %d\n", (int)dtype, (int)math);
    exit(2);
}

static double norm_of(const double *values, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += values[i] * values[i];
    return sqrt(sum);
}

static double nonzero_share(const double *values, int64_t count) {
    int64_t nonzero = 0;
    for (int64_t i = 0; i < count; i++)
        nonzero += values[i] != 0;
    return (double)nonzero / (double)count;
}

static void print_index(const tensor *t, int64_t index, char *text, size_t bytes) {
    int64_t at[TENSOR_MAX_DIMS] = {0};
    for (int d = t->dims - 1; d >= 0; d--) {
        at[d] = index % t->extent[d];
        index /= t->extent[d];
    }
    size_t used = 0;
    text[0] = 0;
    for (int d = 0; d < t->dims && used < bytes; d++)
        used += (size_t)snprintf(text + used, bytes - used, "[%lld]", (long long)at[d]);
}

/* Elements that no product reaches (magnitude 0) do not count. */
static double rms_of(const double *values, int64_t count) {
    int64_t nonzero = 0;
    for (int64_t i = 0; i < count; i++)
        nonzero += values[i] != 0;
    return nonzero ? norm_of(values, count) / sqrt((double)nonzero) : 0;
}

/* Find the element whose error is largest relative to its bound. A NaN counts as larger than everything. */
static void compare_elements(const tensor *actual, const double *expected, const double *magnitude, tolerance allowed,
                             comparison *c) {
    const double round = ref_dtype_roundoff(actual->dtype), floor = ref_dtype_floor(actual->dtype);
    const int64_t slice = actual->count / actual->extent[0];
    const double whole = rms_of(magnitude, actual->count);
    for (int64_t first = 0; first < actual->count; first += slice) {
        const double rms = rms_of(magnitude + first, slice);
        for (int64_t i = first; i < first + slice; i++) {
            const double error = fabs(tensor_load(actual, i) - expected[i]);
            const double unit = allowed.compute * (magnitude[i] + rms + whole / 4);
            const double beyond = error - round * fabs(expected[i]) - floor;
            const double ratio = beyond <= 0 ? 0 : unit > 0 ? beyond / unit : beyond > 0 ? INFINITY : NAN;
            if (isnan(ratio) ? !isnan(c->element_ratio) : ratio > c->element_ratio) {
                c->element_ratio = ratio;
                c->worst = i;
            }
        }
    }
}

comparison compare_tensor(const tensor *actual, const double *expected, const double *magnitude, conv_fft_math math,
                          double share) {
    comparison c = {.ok = true};
    if (actual->count == 0) {
        snprintf(c.text, sizeof c.text, "empty");
        return c;
    }
    const tolerance allowed = tolerance_of(actual->dtype, math);
    double squares = 0;
    for (int64_t i = 0; i < actual->count; i++) {
        const double error = tensor_load(actual, i) - expected[i];
        squares += error * error;
    }
    const double unit =
        allowed.eps * norm_of(magnitude, actual->count) + ref_dtype_floor(actual->dtype) * sqrt((double)actual->count);
    c.norm_ratio = squares == 0 ? 0 : sqrt(squares) / unit;
    compare_elements(actual, expected, magnitude, allowed, &c);
    c.share = nonzero_share(expected, actual->count);

    char index[80];
    print_index(actual, c.worst, index, sizeof index);
    const double got = tensor_load(actual, c.worst), want = expected[c.worst];
    const bool norm_ok = c.norm_ratio <= allowed.norm, element_ok = c.element_ratio <= allowed.element,
               share_ok = c.share >= share;
    c.ok = norm_ok && element_ok && share_ok;
    if (norm_ok && element_ok && !share_ok)
        snprintf(c.text, sizeof c.text, "proves nothing: only %.3g of the expected values are not zero", c.share);
    else
        snprintf(c.text, sizeof c.text,
                 "norm ratio %.4g (limit %g), element ratio %.4g (limit %g), worst %s: got %.9g, expected %.9g",
                 c.norm_ratio, allowed.norm, c.element_ratio, allowed.element, index, got, want);
    return c;
}

bool compare_products(double a, double b, double bound_for_one_eps, double limit, double *ratio) {
    const double error = fabs(a - b);
    *ratio = error == 0 ? 0 : error / bound_for_one_eps;
    return *ratio <= limit;
}

/* Several threads run cases in parallel. */
static _Thread_local char current_case[2048];
static _Thread_local char current_variables[1024];
static _Thread_local const char *current_name;
static atomic_int failures;

void case_begin(const char *text, const char *variables) {
    snprintf(current_case, sizeof current_case, "%s", text);
    snprintf(current_variables, sizeof current_variables, "%s", variables ? variables : "");
}

void case_name(const char *name) { current_name = name; }

bool case_in_turn(int64_t i, int64_t step) {
    replay_on_failure();
    return test_share() == 100 || (uint64_t)i % (uint64_t)step == test_seed() % (uint64_t)step;
}

static void print_replay(void) {
    const char *const count = getenv("CONV_FFT_TEST_COUNT");
    char variables[64] = "", line[512];
    if (count && *count)
        snprintf(variables, sizeof variables, "CONV_FFT_TEST_COUNT=%s", count);
    test_replay(line, sizeof line, variables);
    fprintf(stderr, "replay: %s\n", line);
}

static void print_replay_of(int status, void *unused) {
    (void)unused;
    if (status != 0)
        print_replay();
}

/* A sanitizer that found an error ends the program at once, after a call of this. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

static void prepare_replay(void) {
    on_exit(print_replay_of, NULL);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(print_replay);
}

void replay_on_failure(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare_replay);
}

bool case_fail(const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char variables[1100], line[1500];
    if (current_name)
        snprintf(variables, sizeof variables, "CONV_FFT_TEST_CASE='%s'", current_name);
    test_replay(line, sizeof line, current_name ? variables : current_variables);
    fprintf(stderr, "FAILED: %s\n    case:   %s\n    replay: %s\n", text, current_case, line);
    failures++;
    return false;
}

int case_failures(void) { return failures; }

uint64_t environment_number(const char *name, uint64_t value) {
    const char *text = getenv(name);
    if (!text || !*text)
        return value;
    char *end;
    errno = 0;
    const uint64_t number = strtoull(text, &end, 0);
    if (*end || errno || text[0] == '-' || number == 0) {
        fprintf(stderr, "%s=%s: it must be a whole number from 1 on\n", name, text);
        exit(2);
    }
    return number;
}
