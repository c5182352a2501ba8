/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms of fbfft.h on either device, compared with the definition. Nothing here calls cmocka, so any thread may
 * call it. */
#ifndef TEST_FBFFT_CHECK_H
#define TEST_FBFFT_CHECK_H

#include "cuda/driver/gpu.h"
#include "support/fft_definition.h"

/* Run host arrays through a plan. The call allocates the device's memory, between canaries, `shift` bytes beyond a
 * multiple of 256. Outputs and workspace begin as NaN. `out` becomes a copy of all output memory, with its gaps. */
typedef struct fft_run {
    const cf_gpu *gpu; /* NULL: the CPU */
    const fbfft_plan *plan;
    const void *in;
    void *out;
    int64_t in_bytes, out_bytes;
    int64_t batch;
    int in_shift, out_shift;
    cf_cu_stream stream;
} fft_run;

#define FFT_TEXT_BYTES 320
/* On false, `text` has the reason. Writing an input or a canary is a failure. */
bool fft_run_planes(const fft_run *run, char text[FFT_TEXT_BYTES]);

typedef struct fft_case {
    fbfft_desc desc;
    int64_t batch;
    int in_shift, out_shift; /* in numbers of the memory's type */
    bool must;               /* be supported */
    bool random;             /* of its seed alone */
    uint64_t seed;           /* of the values; of the whole case, if it is random */
} fft_case;

typedef struct fft_outcome {
    bool ok, supported;
    double error, tolerance;
    char text[2 * FFT_TEXT_BYTES + 128]; /* the case, and what is wrong */
    char variables[128];
} fft_outcome;

/* Make the plan, run it on random planes, and compare a sample of them. All outputs must be finite, and no other output
 * memory may be written. gpu NULL: the context is on the CPU. */
void fft_check_case(const cf_gpu *gpu, conv_fft_context *context, const fft_case *c, fft_outcome *outcome);

/* The same basis and extent on every axis. extent 0: the basis. */
fbfft_desc fft_desc(int rank, fbfft_kind kind, int64_t basis, int64_t extent);
/* "r2c 64x64 from 9x9", and all values that are not the default. */
void fft_describe(const fbfft_desc *desc, char *text, size_t bytes);

/* A context on GPU 0 with the cache directory of support/gpu.h. NULL: the last error says why. */
conv_fft_context *fft_gpu_context(void);

/* First line of a test after NEED_GPU: defines `context`, or skips the test if there is no compiler. */
#define NEED_CONTEXT(gpu)                                                    \
    if (!(gpu)->jit.library.usable) {                                        \
        print_message("NVRTC is missing: %s\n", (gpu)->jit.library.problem); \
        skip();                                                              \
    }                                                                        \
    conv_fft_context *const context = fft_gpu_context();                     \
    if (!context)                                                            \
    fail_msg("no context: %s", conv_fft_last_error())

#endif
