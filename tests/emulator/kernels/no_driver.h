/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU that is not installed. Making its context current does nothing. */
#ifndef TEST_NO_DRIVER_H
#define TEST_NO_DRIVER_H

#include "cuda/driver/gpu.h"

static cf_cu_result no_push(cf_cu_context context) {
    (void)context;
    return 0;
}
static cf_cu_result no_pop(cf_cu_context *context) {
    *context = NULL;
    return 0;
}
static inline void no_driver(cf_gpu *gpu) {
    gpu->driver.cuCtxPushCurrent = no_push;
    gpu->driver.cuCtxPopCurrent = no_pop;
}

#endif
