/* SPDX-License-Identifier: Apache-2.0 */
/* One layer on the CPU: the forward pass and all gradients, compared with direct sums. */
#include <conv_fft.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TRY(call)                                           \
    do {                                                    \
        if (call) {                                         \
            fprintf(stderr, "%s\n", conv_fft_last_error()); \
            exit(EXIT_FAILURE);                             \
        }                                                   \
    } while (0)

/* A layer of two groups. The kernel is 7 x 5, the stride 2 x 1, and the padding keeps the width. */
static const char line[] = "in=3x6x20x24 out=8 kernel=7x5 stride=2x1 pad=3x2 groups=2";

static float *new_numbers(int64_t count) {
    float *numbers = malloc((size_t)count * sizeof *numbers);
    if (!numbers)
        exit(EXIT_FAILURE);
    for (int64_t i = 0; i < count; ++i)
        numbers[i] = (float)rand() / (float)RAND_MAX - 0.5F;
    return numbers;
}

static double *new_zeros(int64_t count) {
    double *zeros = calloc((size_t)count, sizeof *zeros);
    if (!zeros)
        exit(EXIT_FAILURE);
    return zeros;
}

/* The error of a whole tensor. */
static int differs(const char *name, const float *found, const double *exact, int64_t count) {
    double error = 0, norm = 0;
    for (int64_t i = 0; i < count; ++i) {
        error += (found[i] - exact[i]) * (found[i] - exact[i]);
        norm += exact[i] * exact[i];
    }
    error = sqrt(error / norm);
    printf("%-5s  relative error %.1e\n", name, error);
    return !(error < 1e-5);
}

int main(void) {
    conv_fft_context_options options;
    conv_fft_context *context;
    conv_fft_problem p;
    conv_fft_plan *plan;
    int64_t m[CONV_FFT_MAX_RANK];
    size_t forward_bytes, backward_bytes;

    TRY(conv_fft_context_options_init(&options));
    options.device = CONV_FFT_DEVICE_CPU;
    TRY(conv_fft_context_create(&options, &context));
    TRY(conv_fft_problem_parse(line, &p, NULL, 0));
    TRY(conv_fft_problem_output(&p, m));
    TRY(conv_fft_plan_create(context, &p, NULL, &plan)); /* NULL: for all passes */
    TRY(conv_fft_plan_workspace(plan, CONV_FFT_FORWARD, &forward_bytes));
    TRY(conv_fft_plan_workspace(plan, CONV_FFT_BACKWARD, &backward_bytes));
    size_t bytes = forward_bytes > backward_bytes ? forward_bytes : backward_bytes; /* one workspace for both */

    const int64_t n = p.batch, k = p.out_channels, share = p.in_channels / p.groups, h = p.input[0], v = p.input[1];
    const int64_t xs = n * p.in_channels * h * v, ws = k * share * p.kernel[0] * p.kernel[1], ys = n * k * m[0] * m[1];
    float *x = new_numbers(xs), *w = new_numbers(ws), *bias = new_numbers(k), *gy = new_numbers(ys);
    float *y = new_numbers(ys), *gx = new_numbers(xs), *gw = new_numbers(ws), *gbias = new_numbers(k);
    void *workspace = malloc(bytes);

    TRY(conv_fft_forward(plan, x, w, bias, y, workspace, bytes, NULL));
    TRY(conv_fft_backward(plan, x, w, gy, gx, gw, gbias, 0, workspace, bytes, NULL));

    /* The same by the definition. Each product of x and w is a term of y, and so of the gradients. */
    double *y_exact = new_zeros(ys), *gx_exact = new_zeros(xs), *gw_exact = new_zeros(ws), *gb_exact = new_zeros(k);
    for (int64_t out = 0; out < ys; ++out) {
        const int64_t column = out % m[1], row = out / m[1] % m[0], channel = out / (m[0] * m[1]) % k;
        const int64_t sample = out / (m[0] * m[1] * k), group = channel / (k / p.groups);
        y_exact[out] = bias[channel];
        gb_exact[channel] += gy[out];
        for (int64_t tap = 0; tap < share * p.kernel[0] * p.kernel[1]; ++tap) {
            const int64_t b = tap % p.kernel[1], a = tap / p.kernel[1] % p.kernel[0];
            const int64_t c = group * share + tap / (p.kernel[0] * p.kernel[1]);
            const int64_t i = row * p.stride[0] + a - p.pad_before[0], j = column * p.stride[1] + b - p.pad_before[1];
            if (i < 0 || i >= h || j < 0 || j >= v)
                continue; /* padding */
            const int64_t in = ((sample * p.in_channels + c) * h + i) * v + j;
            const int64_t weight = channel * share * p.kernel[0] * p.kernel[1] + tap;
            y_exact[out] += (double)x[in] * w[weight];
            gx_exact[in] += (double)gy[out] * w[weight];
            gw_exact[weight] += (double)gy[out] * x[in];
        }
    }
    int wrong = differs("y", y, y_exact, ys) + differs("gx", gx, gx_exact, xs) + differs("gw", gw, gw_exact, ws) +
                differs("gbias", gbias, gb_exact, k);

    conv_fft_plan_destroy(plan); /* plans before their context */
    conv_fft_context_destroy(context);
    void *all[] = {x, w, bias, gy, y, gx, gw, gbias, workspace, y_exact, gx_exact, gw_exact, gb_exact};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
        free(all[i]);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
