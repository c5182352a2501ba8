/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudnn_unit.h - cuDNN as a baseline, in both of its interfaces; for cudnn*.c only. Constants and functions are those of
 * cudnn_graph_v9.h, cudnn_ops_v9.h and cudnn_cnn_v9.h of cuDNN 9.19.0; those used here are the same in cuDNN 8.
 */
#ifndef BENCH_CUDNN_UNIT_H
#define BENCH_CUDNN_UNIT_H

#include "gpu.h"

struct cudnnContext;
struct cudnnTensorStruct;
struct cudnnFilterStruct;
struct cudnnConvolutionStruct;
typedef struct cudnnContext *cudnn_handle;
typedef struct cudnnTensorStruct *cudnn_tensor_desc;
typedef struct cudnnFilterStruct *cudnn_filter_desc;
typedef struct cudnnConvolutionStruct *cudnn_convolution_desc;
typedef void *cudnn_descriptor; /* of the graphs */

/* The enumerations, passed as numbers of the same type. */
typedef unsigned cudnn_status, cudnn_type, cudnn_format, cudnn_mode, cudnn_math, cudnn_algorithm, cudnn_attribute,
    cudnn_attribute_type, cudnn_descriptor_type, cudnn_property;

/* X(name, cuDNN's name, value) */
#define CUDNN_CONSTANTS(X)                                                                            \
    X(DNN_DATA_FLOAT, CUDNN_DATA_FLOAT, 0)                                                            \
    X(DNN_DATA_HALF, CUDNN_DATA_HALF, 2)                                                              \
    X(DNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16, 9)                                                      \
    X(DNN_DEFAULT_MATH, CUDNN_DEFAULT_MATH, 0)                                                        \
    X(DNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH, 1)                                                    \
    X(DNN_ALLOW_CONVERSION, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, 2)                                 \
    X(DNN_FMA_MATH, CUDNN_FMA_MATH, 3)                                                                \
    X(DNN_FORMAT_NCHW, CUDNN_TENSOR_NCHW, 0)                                                          \
    X(DNN_FORMAT_NHWC, CUDNN_TENSOR_NHWC, 1)                                                          \
    X(DNN_CROSS_CORRELATION, CUDNN_CROSS_CORRELATION, 1)                                              \
    X(DNN_FWD_ALGORITHMS, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, 8)                                        \
    X(DNN_BWD_DATA_ALGORITHMS, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, 6)                              \
    X(DNN_BWD_FILTER_ALGORITHMS, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, 7)                          \
    X(DNN_CONVOLUTION, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1)                                       \
    X(DNN_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2)                                                 \
    X(DNN_ENGINECFG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)                                           \
    X(DNN_ENGINEHEUR, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                                         \
    X(DNN_EXECUTION_PLAN, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                                 \
    X(DNN_KNOB_CHOICE, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, 7)                                       \
    X(DNN_CONVOLUTION_FORWARD, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10)            \
    X(DNN_CONVOLUTION_BWD_FILTER, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11) \
    X(DNN_CONVOLUTION_BWD_DATA, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12)     \
    X(DNN_OPERATIONGRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                                \
    X(DNN_VARIANT_PACK, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                                    \
    X(DNN_TENSOR, CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                                                \
    X(DNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100)                          \
    X(DNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101)                          \
    X(DNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_DILATIONS, 102)                          \
    X(DNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103)                \
    X(DNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104)                  \
    X(DNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105)                    \
    X(DNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106)                    \
    X(DNN_ATTR_ENGINEHEUR_MODE, CUDNN_ATTR_ENGINEHEUR_MODE, 200)                                      \
    X(DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                \
    X(DNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)                                \
    X(DNN_ATTR_ENGINECFG_ENGINE, CUDNN_ATTR_ENGINECFG_ENGINE, 300)                                    \
    X(DNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, 302)                        \
    X(DNN_ATTR_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400)                                    \
    X(DNN_ATTR_PLAN_ENGINE_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                      \
    X(DNN_ATTR_PLAN_WORKSPACE_SIZE, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)                    \
    X(DNN_ATTR_KNOB_TYPE, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 600)                                      \
    X(DNN_ATTR_KNOB_VALUE, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 601)                                    \
    X(DNN_ATTR_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700)                    \
    X(DNN_ATTR_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701)                      \
    X(DNN_ATTR_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702)            \
    X(DNN_ATTR_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703)                            \
    X(DNN_ATTR_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704)                            \
    X(DNN_ATTR_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705)                            \
    X(DNN_ATTR_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706)                  \
    X(DNN_ATTR_BWD_DATA_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707)                    \
    X(DNN_ATTR_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708)          \
    X(DNN_ATTR_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709)                          \
    X(DNN_ATTR_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710)                        \
    X(DNN_ATTR_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711)                        \
    X(DNN_ATTR_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712)              \
    X(DNN_ATTR_BWD_FILTER_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713)                \
    X(DNN_ATTR_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714)      \
    X(DNN_ATTR_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715)                    \
    X(DNN_ATTR_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716)                      \
    X(DNN_ATTR_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717)                    \
    X(DNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800)                          \
    X(DNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)                                \
    X(DNN_ATTR_OPERATIONGRAPH_ENGINES, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, 802)            \
    X(DNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900)                          \
    X(DNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                                    \
    X(DNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                                  \
    X(DNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_STRIDES, 903)                                        \
    X(DNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_ATTR_TENSOR_UNIQUE_ID, 906)                                    \
    X(DNN_ATTR_PACK_UNIQUE_IDS, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                             \
    X(DNN_ATTR_PACK_DATA_POINTERS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                       \
    X(DNN_ATTR_PACK_WORKSPACE, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)                               \
    X(DNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 1300)                       \
    X(DNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1301)                             \
    X(DNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303)                         \
    X(DNN_TYPE_HANDLE, CUDNN_TYPE_HANDLE, 0)                                                          \
    X(DNN_TYPE_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1)                                                    \
    X(DNN_TYPE_INT64, CUDNN_TYPE_INT64, 3)                                                            \
    X(DNN_TYPE_FLOAT, CUDNN_TYPE_FLOAT, 4)                                                            \
    X(DNN_TYPE_VOID_PTR, CUDNN_TYPE_VOID_PTR, 6)                                                      \
    X(DNN_TYPE_CONVOLUTION_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 7)                                      \
    X(DNN_TYPE_HEUR_MODE, CUDNN_TYPE_HEUR_MODE, 8)                                                    \
    X(DNN_TYPE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 9)                                                    \
    X(DNN_TYPE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 11)                                         \
    X(DNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 15)                                 \
    X(DNN_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0)                                      \
    X(DNN_NOTE_DOWN_CONVERT_INPUTS, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1)                      \
    X(DNN_NOTE_REDUCED_PRECISION_REDUCTION, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2)      \
    X(DNN_NOTE_FFT, CUDNN_NUMERICAL_NOTE_FFT, 3)                                                      \
    X(DNN_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 4)                            \
    X(DNN_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD, 5)                                            \
    X(DNN_HEUR_MODE_B, CUDNN_HEUR_MODE_B, 1)                                                          \
    X(DNN_HEUR_MODE_FALLBACK, CUDNN_HEUR_MODE_FALLBACK, 2)                                            \
    X(DNN_HEUR_MODE_A, CUDNN_HEUR_MODE_A, 3)

#define CUDNN_ENUMERATOR(name, cudnn_name, value) name = value,
enum {
    CUDNN_CONSTANTS(CUDNN_ENUMERATOR)
};
#undef CUDNN_ENUMERATOR

/* X(member, parameters); the members have the names of the exported symbols, and return a status. */
#define CUDNN_FUNCTIONS(X)                                                                                             \
    X(cudnnGetProperty, (cudnn_property property, int *value))                                                         \
    X(cudnnCreate, (cudnn_handle * handle))                                                                            \
    X(cudnnDestroy, (cudnn_handle handle))                                                                             \
    X(cudnnSetStream, (cudnn_handle handle, cf_cu_stream stream))                                                      \
    X(cudnnCreateTensorDescriptor, (cudnn_tensor_desc * tensor))                                                       \
    X(cudnnSetTensorNdDescriptor,                                                                                      \
      (cudnn_tensor_desc tensor, cudnn_type type, int axes, const int extents[], const int strides[]))                 \
    X(cudnnDestroyTensorDescriptor, (cudnn_tensor_desc tensor))                                                        \
    X(cudnnCreateFilterDescriptor, (cudnn_filter_desc * filter))                                                       \
    X(cudnnSetFilterNdDescriptor,                                                                                      \
      (cudnn_filter_desc filter, cudnn_type type, cudnn_format format, int axes, const int extents[]))                 \
    X(cudnnDestroyFilterDescriptor, (cudnn_filter_desc filter))                                                        \
    X(cudnnCreateConvolutionDescriptor, (cudnn_convolution_desc * convolution))                                        \
    X(cudnnSetConvolutionNdDescriptor, (cudnn_convolution_desc convolution, int axes, const int pads[],                \
                                        const int strides[], const int dilations[], cudnn_mode mode, cudnn_type type)) \
    X(cudnnSetConvolutionGroupCount, (cudnn_convolution_desc convolution, int groups))                                 \
    X(cudnnSetConvolutionMathType, (cudnn_convolution_desc convolution, cudnn_math math))                              \
    X(cudnnDestroyConvolutionDescriptor, (cudnn_convolution_desc convolution))                                         \
    X(cudnnGetConvolutionForwardWorkspaceSize,                                                                         \
      (cudnn_handle handle, cudnn_tensor_desc x, cudnn_filter_desc w, cudnn_convolution_desc convolution,              \
       cudnn_tensor_desc y, cudnn_algorithm algorithm, size_t * bytes))                                                \
    X(cudnnGetConvolutionBackwardDataWorkspaceSize,                                                                    \
      (cudnn_handle handle, cudnn_filter_desc w, cudnn_tensor_desc gy, cudnn_convolution_desc convolution,             \
       cudnn_tensor_desc gx, cudnn_algorithm algorithm, size_t * bytes))                                               \
    X(cudnnGetConvolutionBackwardFilterWorkspaceSize,                                                                  \
      (cudnn_handle handle, cudnn_tensor_desc x, cudnn_tensor_desc gy, cudnn_convolution_desc convolution,             \
       cudnn_filter_desc gw, cudnn_algorithm algorithm, size_t * bytes))                                               \
    X(cudnnConvolutionForward,                                                                                         \
      (cudnn_handle handle, const void *alpha, cudnn_tensor_desc x_desc, const void *x, cudnn_filter_desc w_desc,      \
       const void *w, cudnn_convolution_desc convolution, cudnn_algorithm algorithm, void *workspace, size_t bytes,    \
       const void *beta, cudnn_tensor_desc y_desc, void *y))                                                           \
    X(cudnnConvolutionBackwardData,                                                                                    \
      (cudnn_handle handle, const void *alpha, cudnn_filter_desc w_desc, const void *w, cudnn_tensor_desc gy_desc,     \
       const void *gy, cudnn_convolution_desc convolution, cudnn_algorithm algorithm, void *workspace, size_t bytes,   \
       const void *beta, cudnn_tensor_desc gx_desc, void *gx))                                                         \
    X(cudnnConvolutionBackwardFilter,                                                                                  \
      (cudnn_handle handle, const void *alpha, cudnn_tensor_desc x_desc, const void *x, cudnn_tensor_desc gy_desc,     \
       const void *gy, cudnn_convolution_desc convolution, cudnn_algorithm algorithm, void *workspace, size_t bytes,   \
       const void *beta, cudnn_filter_desc gw_desc, void *gw))                                                         \
    X(cudnnBackendCreateDescriptor, (cudnn_descriptor_type type, cudnn_descriptor * descriptor))                       \
    X(cudnnBackendDestroyDescriptor, (cudnn_descriptor descriptor))                                                    \
    X(cudnnBackendFinalize, (cudnn_descriptor descriptor))                                                             \
    X(cudnnBackendSetAttribute, (cudnn_descriptor descriptor, cudnn_attribute attribute, cudnn_attribute_type type,    \
                                 int64_t count, const void *values))                                                   \
    X(cudnnBackendGetAttribute, (cudnn_descriptor descriptor, cudnn_attribute attribute, cudnn_attribute_type type,    \
                                 int64_t wanted, int64_t * count, void *values))                                       \
    X(cudnnBackendExecute, (cudnn_handle handle, cudnn_descriptor plan, cudnn_descriptor variant_pack))

typedef struct cudnn_functions {
    size_t (*cudnnGetCudartVersion)(void);
    const char *(*cudnnGetErrorString)(cudnn_status status);
#define CUDNN_MEMBER(member, parameters) cudnn_status(*member) parameters;
    CUDNN_FUNCTIONS(CUDNN_MEMBER)
#undef CUDNN_MEMBER
} cudnn_functions;

/* ------------------------------------------------------------------------------------------- one pass of one layer */

#define CUDNN_MAX_AXES 5 /* batch, channels, and two or three more: a line is a plane of one row */
#define CUDNN_MAX_MATHS 2
#define CUDNN_MAX_WAYS 128
#define CUDNN_MAX_DESCRIPTORS 8

typedef struct cudnn_operand {
    int64_t extents[CUDNN_MAX_AXES], strides[CUDNN_MAX_AXES];
    void *memory;
} cudnn_operand;

/* One way to compute it. */
typedef struct cudnn_way {
    char text[200];
    size_t workspace_bytes;
    double ms;
    cudnn_descriptor configuration, plan, pack; /* of the graphs; plan NULL: the old calls, then: */
    int math;                                   /* the number of a convolution descriptor of the unit */
    cudnn_algorithm algorithm;
} cudnn_way;

/* image: x or gx, filter: w or gw, result: y or gy. */
typedef struct cudnn_unit {
    bench_gpu *gpu;
    const cudnn_functions *call;
    cudnn_handle handle;
    const bench_case *layer;
    const bench_class *class;
    conv_fft_pass pass;
    bool last; /* channels */
    int axes;
    cudnn_operand image, filter, result;
    double deadline_ms; /* for new ways */
    cudnn_way ways[CUDNN_MAX_WAYS];
    int count; /* the first is the best, once they have been sorted */
    /* The old calls. */
    cudnn_tensor_desc image_desc, result_desc;
    cudnn_filter_desc filter_desc;
    cudnn_convolution_desc convolutions[CUDNN_MAX_MATHS];
    /* The graph. */
    cudnn_descriptor descriptors[CUDNN_MAX_DESCRIPTORS];
    int descriptor_count;
} cudnn_unit;

cudnn_type cudnn_type_of(const cudnn_unit *u);

/* The library's own words about a failure, and false, unless status is a success. */
bool cudnn_good(const cudnn_unit *u, cudnn_status status, const char *what);

/* Finds the ways, with the context current: the best first, and only such as compute in the class. Says on the standard
   error stream what it found. */
void cudnn_search(cudnn_unit *u, const bench_job *job);
cudnn_status cudnn_way_run(const cudnn_unit *u, const cudnn_way *way);

/* Times a way that has all but its time, and keeps it if it runs. False: there is no time or place for others. */
bool cudnn_consider(cudnn_unit *u, cudnn_way *way);
bool cudnn_seen(const cudnn_unit *u, const char *text);

/* Every algorithm of the old calls; then what the heuristics of the graphs name, and every other engine. With the context current. What is not
   supported is passed over. */
void cudnn_algorithms_consider(cudnn_unit *u);
void cudnn_algorithms_close(cudnn_unit *u);
void cudnn_graph_consider(cudnn_unit *u);
void cudnn_graph_close(cudnn_unit *u);

cudnn_status cudnn_algorithm_run(const cudnn_unit *u, const cudnn_way *way);
/* Gives a way of the graphs its memory: that of the unit and the scratch. */
bool cudnn_graph_bind(const cudnn_unit *u, cudnn_way *way);
void cudnn_way_close(const cudnn_unit *u, cudnn_way *way);

#endif /* BENCH_CUDNN_UNIT_H */
