/* SPDX-License-Identifier: Apache-2.0 */
/* A program outside of the project, which uses only the installed header and library. It runs one small layer on the
 * CPU. */
#include <conv_fft.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int check(conv_fft_status status) {
    if (status != CONV_FFT_SUCCESS) {
        fprintf(stderr, "%s: %s\n", conv_fft_status_string(status), conv_fft_last_error());
    }
    return status == CONV_FFT_SUCCESS;
}

/* y[o] = x[o] + 10 x[o + 1] */
static int run_layer(const conv_fft_plan *plan) {
    const float x[4] = {1, 2, 3, 4}, w[2] = {1, 10}, expected[3] = {21, 32, 43};
    float y[3] = {NAN, NAN, NAN};
    size_t bytes = 0;
    if (!check(conv_fft_plan_workspace(plan, CONV_FFT_FORWARD, &bytes))) {
        return 0;
    }
    void *workspace = malloc(bytes);
    int good = check(conv_fft_forward(plan, x, w, NULL, y, workspace, bytes, NULL));
    for (int i = 0; i < 3; i++) {
        good = good && fabsf(y[i] - expected[i]) <= 1e-4f;
        printf("y[%d] = %g\n", i, (double)y[i]);
    }
    free(workspace);
    return good;
}

int main(void) {
    conv_fft_context_options options;
    conv_fft_context *context = NULL;
    conv_fft_problem problem;
    conv_fft_plan *plan = NULL;
    conv_fft_context_options_init(&options);
    options.device = CONV_FFT_DEVICE_CPU;
    conv_fft_problem_init(&problem, 1);
    problem.input[0] = 4;
    problem.kernel[0] = 2;
    int good = check(conv_fft_context_create(&options, &context)) &&
               check(conv_fft_plan_create(context, &problem, NULL, &plan)) && run_layer(plan);
    conv_fft_plan_destroy(plan);
    conv_fft_context_destroy(context);
    printf("libconv_fft %s: %s\n", conv_fft_version_string(), good ? "as expected" : "wrong");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
