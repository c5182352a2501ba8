/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_gpu.h"

#include "fakes/fake.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

conv_fft_status open_gpu(const char *fakes, const char *cache, int ordinal, cf_gpu **gpu) {
    const cf_gpu_options options = {.ordinal = ordinal,
                                    .cache_directory = cache,
                                    .log_level = CONV_FFT_LOG_WARNING,
                                    .search = {.folders = fakes, .only_folders = true}};
    *gpu = NULL;
    return cf_gpu_open(&options, gpu);
}

static void need(bool condition, const char *what) {
    if (condition)
        return;
    fprintf(stderr, "%s: %s\n", what, conv_fft_last_error());
    abort();
}

cf_gpu *good_gpu(const char *cache) {
    cf_gpu *gpu;
    need(open_gpu(FAKES "/good", cache, 0, &gpu) == CONV_FFT_SUCCESS, "the substitute GPU does not open");
    return gpu;
}

void *inside_fake(const char *file, const char *variable) {
    void *const handle = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    need(handle != NULL, file);
    void *const address = dlsym(handle, variable);
    need(address != NULL, variable);
    dlclose(handle);
    return address;
}

int fake_compilations(void) {
    return atomic_load((atomic_int *)inside_fake(FAKES "/good/libnvrtc.so.13", "fake_nvrtc_compilations"));
}

bool nothing_open(const char *driver) {
    const fake_cuda *const state = inside_fake(driver, "fake_cuda_state");
    return state->retained == 0 && state->depth == 0 && state->modules == 0 && state->allocations == 0;
}
