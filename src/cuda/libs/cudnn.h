/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN with both of its interfaces: the graph API, and the legacy API, whose calls take an algorithm by number. All is
 * declared here, so that no cuDNN header is needed. tests/checks/cudnn_declarations.c compares the declarations with
 * cuDNN's headers (9.19; what is used here is the same in cuDNN 8). The library is opened at first use. A pool has its
 * handles.
 */
#ifndef CF_DEVICE_CUDNN_H
#define CF_DEVICE_CUDNN_H

#include "cuda/driver/gpu.h"

struct cudnnContext;
struct cudnnTensorStruct;
struct cudnnFilterStruct;
struct cudnnConvolutionStruct;
typedef struct cudnnContext *cf_cudnn_handle;
typedef struct cudnnTensorStruct *cf_cudnn_tensor_desc;
typedef struct cudnnFilterStruct *cf_cudnn_filter_desc;
typedef struct cudnnConvolutionStruct *cf_cudnn_convolution_desc;
typedef void *cf_cudnn_descriptor; /* of the graph API */

/* cuDNN's enumerations, as integers of the same type. */
typedef unsigned cf_cudnn_status, cf_cudnn_type, cf_cudnn_format, cf_cudnn_mode, cf_cudnn_math, cf_cudnn_algorithm,
    cf_cudnn_attribute, cf_cudnn_attribute_type, cf_cudnn_descriptor_type, cf_cudnn_property;

/* X(name, cuDNN's name, value) */
#define CF_CUDNN_CONSTANTS(X)                                                                              \
    X(CF_CUDNN_NOT_SUPPORTED, CUDNN_STATUS_NOT_SUPPORTED, 3000)                                            \
    X(CF_CUDNN_COMPILATION_FAILED, CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED, 4001)                   \
    X(CF_CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, 0)                                                            \
    X(CF_CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, 1)                                                          \
    X(CF_CUDNN_DATA_HALF, CUDNN_DATA_HALF, 2)                                                              \
    X(CF_CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16, 9)                                                      \
    X(CF_CUDNN_DEFAULT_MATH, CUDNN_DEFAULT_MATH, 0)                                                        \
    X(CF_CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH, 1)                                                    \
    X(CF_CUDNN_FMA_MATH, CUDNN_FMA_MATH, 3)                                                                \
    X(CF_CUDNN_FORMAT_NCHW, CUDNN_TENSOR_NCHW, 0)                                                          \
    X(CF_CUDNN_FORMAT_NHWC, CUDNN_TENSOR_NHWC, 1)                                                          \
    X(CF_CUDNN_CROSS_CORRELATION, CUDNN_CROSS_CORRELATION, 1)                                              \
    X(CF_CUDNN_DETERMINISTIC, CUDNN_DETERMINISTIC, 1)                                                      \
    X(CF_CUDNN_FWD_ALGORITHMS, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, 8)                                        \
    X(CF_CUDNN_BWD_DATA_ALGORITHMS, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, 6)                              \
    X(CF_CUDNN_BWD_FILTER_ALGORITHMS, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, 7)                          \
    X(CF_CUDNN_CONVOLUTION, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1)                                       \
    X(CF_CUDNN_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2)                                                 \
    X(CF_CUDNN_ENGINECFG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)                                           \
    X(CF_CUDNN_ENGINEHEUR, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                                         \
    X(CF_CUDNN_EXECUTION_PLAN, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                                 \
    X(CF_CUDNN_KNOB_CHOICE, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, 7)                                       \
    X(CF_CUDNN_CONVOLUTION_FORWARD, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10)            \
    X(CF_CUDNN_CONVOLUTION_BWD_FILTER, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11) \
    X(CF_CUDNN_CONVOLUTION_BWD_DATA, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12)     \
    X(CF_CUDNN_OPERATIONGRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                                \
    X(CF_CUDNN_VARIANT_PACK, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                                    \
    X(CF_CUDNN_TENSOR, CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                                                \
    X(CF_CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100)                          \
    X(CF_CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101)                          \
    X(CF_CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_DILATIONS, 102)                          \
    X(CF_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103)                \
    X(CF_CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104)                  \
    X(CF_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105)                    \
    X(CF_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106)                    \
    X(CF_CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_ATTR_ENGINEHEUR_MODE, 200)                                      \
    X(CF_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                \
    X(CF_CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)                                \
    X(CF_CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_ATTR_ENGINECFG_ENGINE, 300)                                    \
    X(CF_CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, 302)                        \
    X(CF_CUDNN_ATTR_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400)                                    \
    X(CF_CUDNN_ATTR_PLAN_ENGINE_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                      \
    X(CF_CUDNN_ATTR_PLAN_WORKSPACE_SIZE, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)                    \
    X(CF_CUDNN_ATTR_KNOB_TYPE, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 600)                                      \
    X(CF_CUDNN_ATTR_KNOB_VALUE, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 601)                                    \
    X(CF_CUDNN_ATTR_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700)                    \
    X(CF_CUDNN_ATTR_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701)                      \
    X(CF_CUDNN_ATTR_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702)            \
    X(CF_CUDNN_ATTR_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703)                            \
    X(CF_CUDNN_ATTR_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704)                            \
    X(CF_CUDNN_ATTR_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705)                            \
    X(CF_CUDNN_ATTR_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706)                  \
    X(CF_CUDNN_ATTR_BWD_DATA_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707)                    \
    X(CF_CUDNN_ATTR_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708)          \
    X(CF_CUDNN_ATTR_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709)                          \
    X(CF_CUDNN_ATTR_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710)                        \
    X(CF_CUDNN_ATTR_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711)                        \
    X(CF_CUDNN_ATTR_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712)              \
    X(CF_CUDNN_ATTR_BWD_FILTER_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713)                \
    X(CF_CUDNN_ATTR_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714)      \
    X(CF_CUDNN_ATTR_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715)                    \
    X(CF_CUDNN_ATTR_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716)                      \
    X(CF_CUDNN_ATTR_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717)                    \
    X(CF_CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800)                          \
    X(CF_CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)                                \
    X(CF_CUDNN_ATTR_OPERATIONGRAPH_ENGINES, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, 802)            \
    X(CF_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900)                          \
    X(CF_CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                                    \
    X(CF_CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                                  \
    X(CF_CUDNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_STRIDES, 903)                                        \
    X(CF_CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_ATTR_TENSOR_UNIQUE_ID, 906)                                    \
    X(CF_CUDNN_ATTR_PACK_UNIQUE_IDS, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                             \
    X(CF_CUDNN_ATTR_PACK_DATA_POINTERS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                       \
    X(CF_CUDNN_ATTR_PACK_WORKSPACE, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)                               \
    X(CF_CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 1300)                       \
    X(CF_CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1301)                             \
    X(CF_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303)                         \
    X(CF_CUDNN_TYPE_HANDLE, CUDNN_TYPE_HANDLE, 0)                                                          \
    X(CF_CUDNN_TYPE_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1)                                                    \
    X(CF_CUDNN_TYPE_INT64, CUDNN_TYPE_INT64, 3)                                                            \
    X(CF_CUDNN_TYPE_FLOAT, CUDNN_TYPE_FLOAT, 4)                                                            \
    X(CF_CUDNN_TYPE_DOUBLE, CUDNN_TYPE_DOUBLE, 5)                                                          \
    X(CF_CUDNN_TYPE_VOID_PTR, CUDNN_TYPE_VOID_PTR, 6)                                                      \
    X(CF_CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 7)                                      \
    X(CF_CUDNN_TYPE_HEUR_MODE, CUDNN_TYPE_HEUR_MODE, 8)                                                    \
    X(CF_CUDNN_TYPE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 9)                                                    \
    X(CF_CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 11)                                         \
    X(CF_CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 15)                                 \
    X(CF_CUDNN_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0)                                      \
    X(CF_CUDNN_NOTE_DOWN_CONVERT_INPUTS, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1)                      \
    X(CF_CUDNN_NOTE_REDUCED_PRECISION_REDUCTION, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2)      \
    X(CF_CUDNN_NOTE_FFT, CUDNN_NUMERICAL_NOTE_FFT, 3)                                                      \
    X(CF_CUDNN_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 4)                            \
    X(CF_CUDNN_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD, 5)                                            \
    X(CF_CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_B, 1)                                                          \
    X(CF_CUDNN_HEUR_MODE_FALLBACK, CUDNN_HEUR_MODE_FALLBACK, 2)                                            \
    X(CF_CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_A, 3)

#define CF_CUDNN_ENUMERATOR(name, cudnn_name, value) name = value,
enum {
    CF_CUDNN_NOT_SUPPORTED_8 = 9, /* in cuDNN 8 */
    CF_CUDNN_CONSTANTS(CF_CUDNN_ENUMERATOR)
};
#undef CF_CUDNN_ENUMERATOR

/* What the legacy API says of an algorithm: cudnnConvolutionFwdAlgoPerf_t, and the same for the other passes. */
typedef struct cf_cudnn_performance {
    cf_cudnn_algorithm algorithm;
    cf_cudnn_status status;
    float ms;
    size_t bytes;
    unsigned determinism;
    cf_cudnn_math math;
    int reserved[3];
} cf_cudnn_performance;

/* X(member, parameters). The members have the names of the exported symbols and return a status. */
#define CF_CUDNN_FUNCTIONS(X)                                                                                          \
    X(cudnnGetProperty, (cf_cudnn_property property, int *value))                                                      \
    X(cudnnCreate, (cf_cudnn_handle * handle))                                                                         \
    X(cudnnDestroy, (cf_cudnn_handle handle))                                                                          \
    X(cudnnSetStream, (cf_cudnn_handle handle, cf_cu_stream stream))                                                   \
    X(cudnnCreateTensorDescriptor, (cf_cudnn_tensor_desc * tensor))                                                    \
    X(cudnnSetTensorNdDescriptor,                                                                                      \
      (cf_cudnn_tensor_desc tensor, cf_cudnn_type type, int axes, const int extents[], const int strides[]))           \
    X(cudnnDestroyTensorDescriptor, (cf_cudnn_tensor_desc tensor))                                                     \
    X(cudnnCreateFilterDescriptor, (cf_cudnn_filter_desc * filter))                                                    \
    X(cudnnSetFilterNdDescriptor,                                                                                      \
      (cf_cudnn_filter_desc filter, cf_cudnn_type type, cf_cudnn_format format, int axes, const int extents[]))        \
    X(cudnnDestroyFilterDescriptor, (cf_cudnn_filter_desc filter))                                                     \
    X(cudnnCreateConvolutionDescriptor, (cf_cudnn_convolution_desc * convolution))                                     \
    X(cudnnSetConvolutionNdDescriptor,                                                                                 \
      (cf_cudnn_convolution_desc convolution, int axes, const int pads[], const int strides[], const int dilations[],  \
       cf_cudnn_mode mode, cf_cudnn_type type))                                                                        \
    X(cudnnSetConvolutionGroupCount, (cf_cudnn_convolution_desc convolution, int groups))                              \
    X(cudnnSetConvolutionMathType, (cf_cudnn_convolution_desc convolution, cf_cudnn_math math))                        \
    X(cudnnDestroyConvolutionDescriptor, (cf_cudnn_convolution_desc convolution))                                      \
    X(cudnnGetConvolutionForwardWorkspaceSize,                                                                         \
      (cf_cudnn_handle handle, cf_cudnn_tensor_desc x, cf_cudnn_filter_desc w, cf_cudnn_convolution_desc convolution,  \
       cf_cudnn_tensor_desc y, cf_cudnn_algorithm algorithm, size_t * bytes))                                          \
    X(cudnnGetConvolutionBackwardDataWorkspaceSize,                                                                    \
      (cf_cudnn_handle handle, cf_cudnn_filter_desc w, cf_cudnn_tensor_desc gy, cf_cudnn_convolution_desc convolution, \
       cf_cudnn_tensor_desc gx, cf_cudnn_algorithm algorithm, size_t * bytes))                                         \
    X(cudnnGetConvolutionBackwardFilterWorkspaceSize,                                                                  \
      (cf_cudnn_handle handle, cf_cudnn_tensor_desc x, cf_cudnn_tensor_desc gy, cf_cudnn_convolution_desc convolution, \
       cf_cudnn_filter_desc gw, cf_cudnn_algorithm algorithm, size_t * bytes))                                         \
    X(cudnnConvolutionForward, (cf_cudnn_handle handle, const void *alpha, cf_cudnn_tensor_desc x_desc, const void *x, \
                                cf_cudnn_filter_desc w_desc, const void *w, cf_cudnn_convolution_desc convolution,     \
                                cf_cudnn_algorithm algorithm, void *workspace, size_t bytes, const void *beta,         \
                                cf_cudnn_tensor_desc y_desc, void *y))                                                 \
    X(cudnnConvolutionBackwardData,                                                                                    \
      (cf_cudnn_handle handle, const void *alpha, cf_cudnn_filter_desc w_desc, const void *w,                          \
       cf_cudnn_tensor_desc gy_desc, const void *gy, cf_cudnn_convolution_desc convolution,                            \
       cf_cudnn_algorithm algorithm, void *workspace, size_t bytes, const void *beta, cf_cudnn_tensor_desc gx_desc,    \
       void *gx))                                                                                                      \
    X(cudnnConvolutionBackwardFilter,                                                                                  \
      (cf_cudnn_handle handle, const void *alpha, cf_cudnn_tensor_desc x_desc, const void *x,                          \
       cf_cudnn_tensor_desc gy_desc, const void *gy, cf_cudnn_convolution_desc convolution,                            \
       cf_cudnn_algorithm algorithm, void *workspace, size_t bytes, const void *beta, cf_cudnn_filter_desc gw_desc,    \
       void *gw))                                                                                                      \
    X(cudnnBackendCreateDescriptor, (cf_cudnn_descriptor_type type, cf_cudnn_descriptor * descriptor))                 \
    X(cudnnBackendDestroyDescriptor, (cf_cudnn_descriptor descriptor))                                                 \
    X(cudnnBackendFinalize, (cf_cudnn_descriptor descriptor))                                                          \
    X(cudnnBackendSetAttribute, (cf_cudnn_descriptor descriptor, cf_cudnn_attribute attribute,                         \
                                 cf_cudnn_attribute_type type, int64_t count, const void *values))                     \
    X(cudnnBackendGetAttribute, (cf_cudnn_descriptor descriptor, cf_cudnn_attribute attribute,                         \
                                 cf_cudnn_attribute_type type, int64_t wanted, int64_t * count, void *values))         \
    X(cudnnBackendExecute, (cf_cudnn_handle handle, cf_cudnn_descriptor plan, cf_cudnn_descriptor variant_pack))

/* The same for functions that write what they say of algorithms, with the type of that for each pass. */
#define CF_CUDNN_RANKINGS(X, forward, data, filter)                                                                    \
    X(cudnnGetConvolutionForwardAlgorithm_v7,                                                                          \
      (cf_cudnn_handle handle, cf_cudnn_tensor_desc x, cf_cudnn_filter_desc w, cf_cudnn_convolution_desc convolution,  \
       cf_cudnn_tensor_desc y, int wanted, int *count, forward *results))                                              \
    X(cudnnGetConvolutionBackwardDataAlgorithm_v7,                                                                     \
      (cf_cudnn_handle handle, cf_cudnn_filter_desc w, cf_cudnn_tensor_desc gy, cf_cudnn_convolution_desc convolution, \
       cf_cudnn_tensor_desc gx, int wanted, int *count, data *results))                                                \
    X(cudnnGetConvolutionBackwardFilterAlgorithm_v7,                                                                   \
      (cf_cudnn_handle handle, cf_cudnn_tensor_desc x, cf_cudnn_tensor_desc gy, cf_cudnn_convolution_desc convolution, \
       cf_cudnn_filter_desc gw, int wanted, int *count, filter *results))

typedef struct cf_cudnn_functions {
    size_t (*cudnnGetCudartVersion)(void);
    const char *(*cudnnGetErrorString)(cf_cudnn_status status);
#define CF_CUDNN_MEMBER(member, parameters) cf_cudnn_status(*member) parameters;
    CF_CUDNN_FUNCTIONS(CF_CUDNN_MEMBER)
    CF_CUDNN_RANKINGS(CF_CUDNN_MEMBER, cf_cudnn_performance, cf_cudnn_performance, cf_cudnn_performance)
#undef CF_CUDNN_MEMBER
} cf_cudnn_functions;

/* Open only the library; `library` says which one, or why there is none. */
conv_fft_status cf_cudnn_open(cf_library *library, cf_cudnn_functions *functions, const cf_search *search,
                              int driver_version);

/* The pool of a GPU. Creating it opens nothing. */
conv_fft_status cf_cudnn_create(const cf_gpu *gpu, cf_cudnn **cudnn);
void cf_cudnn_destroy(cf_cudnn *cudnn); /* NULL is allowed; no handle may be in use */

/* The library, which is opened if it was not tried before: its version, or why it is missing. It lives as long as the
 * pool. */
const cf_library *cf_cudnn_library(cf_cudnn *cudnn);

/* What one user holds from acquire to release. Meanwhile the GPU's context is current and the thread's capture mode
 * is relaxed, because cuDNN may load kernels when it first runs them. */
typedef struct cf_cudnn_guard {
    const cf_cudnn_functions *call;
    cf_cudnn_handle handle;
    struct cf_handle *pooled;
    cf_cu_capture_mode mode; /* the capture mode to restore */
} cf_cudnn_guard;

/* Take a handle on this stream. If none is free, one is made. Plans acquire and release one when they are made, so
 * that runs find a free one. LIBRARY_MISSING, OUT_OF_MEMORY, DEVICE_ERROR. */
conv_fft_status cf_cudnn_guard_acquire(cf_cudnn *cudnn, cf_cu_stream stream, cf_cudnn_guard *guard);
void cf_cudnn_guard_release(cf_cudnn *cudnn, cf_cudnn_guard *guard);

/* SUCCESS. NOT_SUPPORTED: cuDNN does not support this, or could not compile a kernel of its own. DEVICE_ERROR. The
 * sentence names the call and its result. */
conv_fft_status cf_cudnn_check(const cf_cudnn_functions *functions, cf_cudnn_status status, const char *call);
#define CF_CUDNN(functions, name, ...) cf_cudnn_check(functions, (functions)->name(__VA_ARGS__), #name)

#endif
