/* SPDX-License-Identifier: Apache-2.0 */
/* A training loop: a layer learns a filter from its results by gradient descent. digits/ trains a whole network. */
#include <conv_fft.h>
#include <stdio.h>
#include <stdlib.h>

#define TRY(call)                                           \
    do {                                                    \
        if (call) {                                         \
            fprintf(stderr, "%s\n", conv_fft_last_error()); \
            exit(EXIT_FAILURE);                             \
        }                                                   \
    } while (0)

enum {
    BATCH = 16,
    EDGE = 32,
    TAPS = 9,
    STEPS = 100,
    IMAGES = BATCH * EDGE * EDGE,
    WEIGHTS = TAPS * TAPS
};

static const float rate = 0.5F; /* of learning */

static float x[IMAGES], y[IMAGES], wanted[IMAGES], gy[IMAGES];
static float w[WEIGHTS], bias[1], gw[WEIGHTS], gbias[1];

static float draw(void) { return (float)rand() / (float)RAND_MAX - 0.5F; }

int main(void) {
    conv_fft_context_options options;
    conv_fft_plan_options plan_options;
    conv_fft_context *context;
    conv_fft_problem problem;
    conv_fft_plan *plan;
    size_t bytes, more;

    TRY(conv_fft_context_options_init(&options));
    options.device = CONV_FFT_DEVICE_CPU;
    TRY(conv_fft_context_create(&options, &context));
    TRY(conv_fft_problem_parse("in=16x1x32x32 out=1 kernel=9x9 pad=same", &problem, NULL, 0));
    TRY(conv_fft_plan_options_init(&plan_options));
    /* The first layer of a network needs no gradient of x. */
    plan_options.passes = CONV_FFT_FORWARD | CONV_FFT_BACKWARD_WEIGHTS;
    TRY(conv_fft_plan_create(context, &problem, &plan_options, &plan)); /* once, before the loop */
    TRY(conv_fft_plan_workspace(plan, CONV_FFT_FORWARD, &bytes));
    TRY(conv_fft_plan_workspace(plan, CONV_FFT_BACKWARD_WEIGHTS, &more));
    bytes = bytes > more ? bytes : more;
    void *workspace = malloc(bytes);

    /* What is to be learned: the sum over the kernel's diagonal, plus 1. */
    for (int i = 0; i < TAPS; ++i)
        w[i * TAPS + i] = 1;
    bias[0] = 1;
    for (int i = 0; i < IMAGES; ++i)
        x[i] = draw();
    TRY(conv_fft_forward(plan, x, w, bias, wanted, workspace, bytes, NULL));

    for (int i = 0; i < WEIGHTS; ++i)
        w[i] = 0.1F * draw();
    bias[0] = 0;
    double loss = 0;
    for (int step = 0; step < STEPS; ++step) {
        TRY(conv_fft_forward(plan, x, w, bias, y, workspace, bytes, NULL));
        loss = 0;
        for (int i = 0; i < IMAGES; ++i) {
            const float difference = y[i] - wanted[i];
            loss += difference * difference / IMAGES;
            gy[i] = 2 * difference / IMAGES; /* the loss's gradient for y */
        }
        if (step % 20 == 0)
            printf("step %3d  loss %.6f\n", step, loss);
        TRY(conv_fft_backward_weights(plan, x, gy, gw, gbias, 0, workspace, bytes, NULL));
        for (int i = 0; i < WEIGHTS; ++i)
            w[i] -= rate * gw[i];
        bias[0] -= rate * gbias[0];
    }
    printf("step %3d  loss %.6f, bias %.3f, w[4][4] %.3f, w[4][5] %.3f\n", STEPS, loss, bias[0], w[4 * TAPS + 4],
           w[4 * TAPS + 5]);

    free(workspace);
    conv_fft_plan_destroy(plan);
    conv_fft_context_destroy(context);
    return loss < 1e-3 ? EXIT_SUCCESS : EXIT_FAILURE;
}
