/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms of fbfft.h on a GPU, compared with the definition. Nothing here is cmocka's: threads may call all of it. */
#ifndef TEST_FBFFT_CHECK_H
#define TEST_FBFFT_CHECK_H

#include "device/gpu.h"
#include "fbfft.h"

/* Relative L2 error that a transform may have. */
#define FFT_TOLERANCE 4e-7

/* One plane; rank 1 has one row. Counts of floats. */
typedef struct fft_shape {
    bool inverse;
    int64_t rows, columns, bins, data_rows, data_columns;
    int64_t in, out;
    double scale;
} fft_shape;

fft_shape fft_shape_of(const fbfft_desc *desc);

/* Uniform in -1..1, in[planes][shape.in]. Spectra are Hermitian but for the imaginary parts that do not count. */
void fft_random_planes(const fft_shape *shape, uint64_t seed, int64_t planes, float *in);

/* Adds the squares of errors and of what they are compared with: expected results, or where outputs are clipped their rms
 * over the whole basis, since a few of them may all be small by chance. */
typedef struct fft_errors {
    double error, norm;
} fft_errors;
void fft_compare_plane(const fft_shape *shape, const float *in, const float *out, fft_errors *errors);
/* NaN if an output was NaN. */
double fft_relative_error(const fft_errors *errors);

/* Host arrays through a plan. Device memory is this call's own, between canaries, `shift` floats off a multiple of 256
 * bytes; outputs begin as NaN. */
typedef struct fft_run {
    const cf_gpu *gpu;
    const fbfft_plan *plan;
    const float *in;
    float *out;
    int64_t in_count, out_count; /* floats */
    int64_t batch;
    int in_shift, out_shift;
    cf_cu_stream stream;
} fft_run;

#define FFT_TEXT_BYTES 320
/* False: `text` says why. A written input or canary is a failure. */
bool fft_run_planes(const fft_run *run, char text[FFT_TEXT_BYTES]);

typedef struct fft_case {
    fbfft_desc desc;
    int64_t batch;
    int in_shift, out_shift;
    bool must; /* be supported */
} fft_case;

typedef struct fft_outcome {
    bool ok, supported;
    double error;
    char text[FFT_TEXT_BYTES + 128]; /* the case, and what is wrong */
} fft_outcome;

/* Makes the plan, runs it on random planes, and compares a sample of them. */
void fft_check_case(const cf_gpu *gpu, conv_fft_context *context, const fft_case *c, fft_outcome *outcome);

/* A square of rank 2 or a line of rank 1. extent 0: the basis. */
fbfft_desc fft_desc(int rank, fbfft_kind kind, int64_t basis, int64_t extent);

/* A context on GPU 0 with the cache directory of gpu.h. NULL: the last error says why. */
conv_fft_context *fft_gpu_context(void);

/* First lines of a test, after NEED_GPU: a variable `context`, or the test is skipped since nothing can be compiled. */
#define NEED_CONTEXT(gpu)                                                    \
    if (!(gpu)->jit.library.usable) {                                        \
        print_message("NVRTC is missing: %s\n", (gpu)->jit.library.problem); \
        skip();                                                              \
    }                                                                        \
    conv_fft_context *const context = fft_gpu_context();                     \
    if (!context)                                                            \
    fail_msg("no context: %s", conv_fft_last_error())

#endif
