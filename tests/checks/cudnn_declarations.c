/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles only if what src/cuda declares itself of cuDNN and cuFFT agrees with their own headers. */
#include <cudnn.h>
#include <cudnn_backend.h>
#include <cufft.h>

#include "cuda/libs/cudnn.h"
#include "cuda/libs/cufft.h"

#define SAME_VALUE(name, library_name, value) _Static_assert((long long)(library_name) == (value), #library_name);
CF_CUDNN_CONSTANTS(SAME_VALUE)
CF_CUFFT_CONSTANTS(SAME_VALUE)

/* Three structs of cuDNN, one of ours. */
#define SAME_MEMBER(theirs, ours)                                                                                     \
    _Static_assert(offsetof(cudnnConvolutionFwdAlgoPerf_t, theirs) == offsetof(cf_cudnn_performance, ours) &&         \
                       offsetof(cudnnConvolutionBwdDataAlgoPerf_t, theirs) == offsetof(cf_cudnn_performance, ours) && \
                       offsetof(cudnnConvolutionBwdFilterAlgoPerf_t, theirs) == offsetof(cf_cudnn_performance, ours), \
                   #theirs)
SAME_MEMBER(algo, algorithm);
SAME_MEMBER(status, status);
SAME_MEMBER(time, ms);
SAME_MEMBER(memory, bytes);
SAME_MEMBER(determinism, determinism);
SAME_MEMBER(mathType, math);
_Static_assert(sizeof(cudnnConvolutionFwdAlgoPerf_t) == sizeof(cf_cudnn_performance), "size");
_Static_assert(sizeof(cudnnConvolutionBwdDataAlgoPerf_t) == sizeof(cf_cudnn_performance), "size");
_Static_assert(sizeof(cudnnConvolutionBwdFilterAlgoPerf_t) == sizeof(cf_cudnn_performance), "size");

/* An initialiser of another function type is an error with -Werror. */
#define SAME_CUDNN_TYPE(member, parameters) cf_cudnn_status(*check_##member) parameters = member;
CF_CUDNN_FUNCTIONS(SAME_CUDNN_TYPE)
CF_CUDNN_RANKINGS(SAME_CUDNN_TYPE, cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionBwdDataAlgoPerf_t,
                  cudnnConvolutionBwdFilterAlgoPerf_t)

/* cuDNN 9.26 has all of them. */
#if defined(CUDNN_VERSION) && CUDNN_VERSION >= 92600
#include "cuda/libs/cudnn_causal.h"
#include <cudnn_subquadratic_ops.h>
_Static_assert(CUDNN_CAUSAL_CONV1D_ACTIVATION_IDENTITY == 0, "no activation");
CF_CUDNN_CAUSAL_FUNCTIONS(SAME_CUDNN_TYPE)
#endif

size_t (*check_cudnn_cudart)(void) = cudnnGetCudartVersion;
const char *(*check_cudnn_error)(cf_cudnn_status) = cudnnGetErrorString;

#define SAME_CUFFT_TYPE(member, parameters) cf_cufft_result(*check_##member) parameters = member;
CF_CUFFT_FUNCTIONS(SAME_CUFFT_TYPE)
