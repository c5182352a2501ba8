/* SPDX-License-Identifier: Apache-2.0 */
/* The substitute GPU of tests/fakes. */
#ifndef TEST_FAKE_GPU_H
#define TEST_FAKE_GPU_H

#include "cuda/driver/gpu.h"

/* Open it with the libraries of a folder of tests/fakes and no others. *gpu is NULL on failure. */
conv_fft_status open_gpu(const char *fakes, const char *cache, int ordinal, cf_gpu **gpu);
/* Open it with FAKES/good. A failure ends the program. */
cf_gpu *good_gpu(const char *cache);

/* A variable of a substitute library that is already open. */
void *inside_fake(const char *file, const char *variable);
/* Compilations of FAKES/good so far. */
int fake_compilations(void);
/* True if this libcuda has no open context, no module and no memory. */
bool nothing_open(const char *driver);

#define assert_says(part)                                                        \
    do {                                                                         \
        if (!strstr(conv_fft_last_error(), part))                                \
            fail_msg("\"%s\" does not say \"%s\"", conv_fft_last_error(), part); \
    } while (0)

#define close_gpu(gpu)                                         \
    do {                                                       \
        cf_gpu_close(gpu);                                     \
        assert_true(nothing_open(FAKES "/good/libcuda.so.1")); \
    } while (0)

#endif
