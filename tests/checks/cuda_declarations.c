/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles only if what src/cuda and tests declare themselves of CUDA agrees with CUDA's own headers. */
#include <cublas_v2.h>
#include <cuda.h>
#include <nvrtc.h>

#include "cuda/driver/properties.h"
#include "cuda/jit/nvrtc.h"
#include "cuda/libs/cublas.h"
#include "tests/support/cuda_calls.h"

#define SAME_VALUE(name, cuda_name, value) _Static_assert((long long)(cuda_name) == (value), #cuda_name);
CF_CU_CONSTANTS(SAME_VALUE)
CF_CUBLAS_CONSTANTS(SAME_VALUE)
CUDA_CALLS_CONSTANTS(SAME_VALUE)

#define SAME_ATTRIBUTE(field, number, cuda_name, least) \
    _Static_assert(CU_DEVICE_ATTRIBUTE_##cuda_name == (number), #field);
CF_GPU_PROPERTIES(SAME_ATTRIBUTE)

/* An initialiser of another function type is an error with -Werror. */
#define SAME_DRIVER_TYPE(member, symbol, parameters) cf_cu_result(*check_##symbol) parameters = symbol;
CF_DRIVER_FUNCTIONS(SAME_DRIVER_TYPE)
CUDA_CALLS_FUNCTIONS(SAME_DRIVER_TYPE)

#define SAME_PLACE(type, field, cuda_type, cuda_field) \
    _Static_assert(offsetof(type, field) == offsetof(cuda_type, cuda_field), #cuda_field);
SAME_PLACE(cf_cu_launch_config, grid, CUlaunchConfig, gridDimX)
SAME_PLACE(cf_cu_launch_config, block, CUlaunchConfig, blockDimX)
SAME_PLACE(cf_cu_launch_config, dynamic_shared_bytes, CUlaunchConfig, sharedMemBytes)
SAME_PLACE(cf_cu_launch_config, stream, CUlaunchConfig, hStream)
SAME_PLACE(cf_cu_launch_config, attributes, CUlaunchConfig, attrs)
SAME_PLACE(cf_cu_launch_config, attribute_count, CUlaunchConfig, numAttrs)
SAME_PLACE(cf_cu_launch_attribute, value, CUlaunchAttribute, value)
_Static_assert(sizeof(cf_cu_launch_config) == sizeof(CUlaunchConfig), "CUlaunchConfig");
_Static_assert(sizeof(cf_cu_launch_attribute) == sizeof(CUlaunchAttribute), "CUlaunchAttribute");

#define SAME_NVRTC_TYPE(member, parameters) cf_nvrtc_result(*check_##member) parameters = member;
CF_NVRTC_FUNCTIONS(SAME_NVRTC_TYPE)

#define SAME_CUBLAS_TYPE(member, symbol, parameters) cf_cublas_result(*check_##symbol) parameters = symbol;
CF_CUBLAS_FUNCTIONS(SAME_CUBLAS_TYPE)

const char *(*check_nvrtc_error)(cf_nvrtc_result) = nvrtcGetErrorString;
const char *(*check_cublas_status)(cf_cublas_result) = cublasGetStatusName;
