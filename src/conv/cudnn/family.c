/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/cudnn/cudnn.h"
#include "conv/gpu/device.h"

static const char *library_version(const cf_device *device) {
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    return gpu ? cf_cudnn_library(gpu->cudnn)->version : NULL;
}

const cf_family cf_cudnn_family = {.name = "cudnn",
                                   .old_name = "direct",
                                   .fields = 1u << CF_FIELD_ALGORITHM,
                                   .baseline = true,
                                   .library = "cudnn",
                                   .library_version = library_version,
                                   .feasible = cf_cudnn_feasible,
                                   .runs_on = cf_cudnn_runs_on,
                                   .prepare = cf_cudnn_prepare,
                                   .list_kernels = cf_cudnn_list,
                                   .release = cf_cudnn_release,
                                   .workspace = cf_cudnn_workspace,
                                   .run = cf_cudnn_run,
                                   .predict = cf_cudnn_predict,
                                   .candidates = cf_cudnn_candidates,
                                   .first_seconds = cf_cudnn_first_seconds};
