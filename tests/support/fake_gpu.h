/* SPDX-License-Identifier: Apache-2.0 */
/* The substitute GPU of tests/fakes. */
#ifndef TEST_FAKE_GPU_H
#define TEST_FAKE_GPU_H

#include "cuda/driver/gpu.h"

/* With the libraries of a folder of tests/fakes and no others. *gpu is NULL on failure. */
conv_fft_status open_gpu(const char *fakes, const char *cache, int ordinal, cf_gpu **gpu);
/* The one of FAKES/good; anything else ends the program. */
cf_gpu *good_gpu(const char *cache);

/* A variable of a substitute library that is open already. */
void *inside_fake(const char *file, const char *variable);
/* Compilations of FAKES/good so far. */
int fake_compilations(void);
/* Nothing of this libcuda is open: no context, no module, no memory. */
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
