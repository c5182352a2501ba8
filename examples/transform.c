/* SPDX-License-Identifier: Apache-2.0 */
/* The FFTs alone (fbfft.h): images of 9 x 9 are padded with zeros to 16 x 16, transformed, and transformed back. */
#include <fbfft.h>
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

enum {
    IMAGES = 5,
    D = 9,         /* points of an axis of an image */
    N = 16,        /* points of an axis of the transform */
    E = N / 2 + 1, /* bins of the last axis: the others are their conjugates, as the images are real */
};

static float images[IMAGES][D][D], back[IMAGES][D][D];
static struct { float re, im; } spectra[IMAGES][N][E];

/* Make the plan of a kind of transform, execute it once, and free it. */
static void transform(conv_fft_context *context, fbfft_kind kind, double scale, const void *in, void *out) {
    fbfft_desc d;
    fbfft_plan *plan;
    size_t bytes;
    TRY(fbfft_desc_init(&d, 2, kind));
    d.basis[0] = d.basis[1] = N;
    d.extent[0] = d.extent[1] = D;
    d.scale = scale;
    TRY(fbfft_plan_create(context, &d, &plan));
    TRY(fbfft_plan_workspace(plan, IMAGES, &bytes));
    void *workspace = bytes ? malloc(bytes) : NULL;
    TRY(fbfft_execute(plan, in, out, IMAGES, workspace, bytes, NULL));
    free(workspace);
    fbfft_plan_destroy(plan);
}

/* The largest error of an image's bins, compared with the sums that define them. */
static double error_of_bins(int image) {
    const double angle = -2 * acos(-1) / N;
    double largest = 0;
    for (int k = 0; k < N; ++k)
        for (int l = 0; l < E; ++l) {
            double re = 0, im = 0;
            for (int i = 0; i < D; ++i)
                for (int j = 0; j < D; ++j) {
                    re += images[image][i][j] * cos(angle * (k * i + l * j));
                    im += images[image][i][j] * sin(angle * (k * i + l * j));
                }
            largest = fmax(largest, hypot(spectra[image][k][l].re - re, spectra[image][k][l].im - im));
        }
    return largest;
}

int main(void) {
    conv_fft_context_options options;
    conv_fft_context *context;
    TRY(conv_fft_context_options_init(&options));
    options.device = CONV_FFT_DEVICE_CPU;
    TRY(conv_fft_context_create(&options, &context));

    for (int image = 0; image < IMAGES; ++image)
        for (int i = 0; i < D; ++i)
            for (int j = 0; j < D; ++j)
                images[image][i][j] = (float)rand() / (float)RAND_MAX - 0.5F;

    transform(context, FBFFT_R2C, 1, images, spectra);
    transform(context, FBFFT_C2R, 1.0 / (N * N), spectra, back); /* with this scale it is the inverse */
    conv_fft_context_destroy(context);

    double forward = 0, both = 0;
    for (int image = 0; image < IMAGES; ++image) {
        forward = fmax(forward, error_of_bins(image));
        for (int i = 0; i < D; ++i)
            for (int j = 0; j < D; ++j)
                both = fmax(both, fabs(back[image][i][j] - images[image][i][j]));
    }
    printf("largest error of a bin %.1e, of an image after both transforms %.1e\n", forward, both);
    return forward < 1e-5 && both < 1e-6 ? EXIT_SUCCESS : EXIT_FAILURE;
}
