/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN 3: what is used of its C interface. The library is opened at run time. */
#ifndef BENCH_ONEDNN_LIBRARY_H
#define BENCH_ONEDNN_LIBRARY_H

#include "cuda/driver/dynlib.h"

#include <stddef.h>
#include <stdint.h>

/* X(name, oneDNN's name, value) */
#define ONEDNN_CONSTANTS(X)                                          \
    X(ONEDNN_RUNTIME_OPENMP, DNNL_RUNTIME_OMP, 2)                    \
    X(ONEDNN_CPU, dnnl_cpu, 1)                                       \
    X(ONEDNN_DEFAULT_STREAM, dnnl_stream_default_flags, 1)           \
    X(ONEDNN_F32, dnnl_f32, 3)                                       \
    X(ONEDNN_ANY, dnnl_format_tag_any, 1)                            \
    X(ONEDNN_ABC, dnnl_abc, 4)                                       \
    X(ONEDNN_ABCD, dnnl_abcd, 5)                                     \
    X(ONEDNN_ABCDE, dnnl_abcde, 6)                                   \
    X(ONEDNN_ABCDEF, dnnl_abcdef, 7)                                 \
    X(ONEDNN_TRAINING, dnnl_forward_training, 64)                    \
    X(ONEDNN_DIRECT, dnnl_convolution_direct, 1)                     \
    X(ONEDNN_WINOGRAD, dnnl_convolution_winograd, 2)                 \
    X(ONEDNN_QUERY_SCRATCHPAD, dnnl_query_memory_consumption_s64, 6) \
    X(ONEDNN_QUERY_IMPLEMENTATION, dnnl_query_impl_info_str, 8)      \
    X(ONEDNN_QUERY_ARGUMENT, dnnl_query_exec_arg_md, 255)            \
    X(ONEDNN_FROM, DNNL_ARG_FROM, 1)                                 \
    X(ONEDNN_TO, DNNL_ARG_TO, 17)                                    \
    X(ONEDNN_X, DNNL_ARG_SRC, 1)                                     \
    X(ONEDNN_W, DNNL_ARG_WEIGHTS, 33)                                \
    X(ONEDNN_Y, DNNL_ARG_DST, 17)                                    \
    X(ONEDNN_GX, DNNL_ARG_DIFF_SRC, 129)                             \
    X(ONEDNN_GW, DNNL_ARG_DIFF_WEIGHTS, 161)                         \
    X(ONEDNN_GY, DNNL_ARG_DIFF_DST, 145)                             \
    X(ONEDNN_MAX_AXES, DNNL_MAX_NDIMS, 12)

#define ONEDNN_ENUMERATOR(name, onednn_name, value) name = value,
enum {
    ONEDNN_CONSTANTS(ONEDNN_ENUMERATOR)
};
#undef ONEDNN_ENUMERATOR

/* As data of a new memory: oneDNN allocates it. */
#define ONEDNN_ALLOCATE ((void *)UINTPTR_MAX)

typedef struct dnnl_engine onednn_engine;
typedef struct dnnl_stream onednn_stream;
typedef struct dnnl_memory_desc onednn_layout; /* extents, type and layout of a tensor */
typedef struct dnnl_memory onednn_memory;
typedef struct dnnl_primitive_desc onednn_description; /* of a primitive */
typedef struct dnnl_primitive onednn_primitive;
typedef struct dnnl_primitive_attr onednn_attributes;
typedef unsigned onednn_status; /* 0: success */

typedef struct onednn_version {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime, gpu_runtime;
} onednn_version;

typedef struct onednn_argument {
    int argument;
    onednn_memory *memory;
} onednn_argument;

/* X(result, member, parameters). The exported symbols are dnnl_ and the member's name. VERSION and ARGUMENT are the
 * types of the two structs above, which have no name of their own in oneDNN's header. */
#define ONEDNN_FUNCTIONS(X, VERSION, ARGUMENT)                                                                 \
    X(const VERSION *, version, (void))                                                                        \
    X(onednn_status, engine_create, (onednn_engine * *engine, unsigned kind, size_t index))                    \
    X(onednn_status, engine_destroy, (onednn_engine * engine))                                                 \
    X(onednn_status, stream_create, (onednn_stream * *stream, onednn_engine * engine, unsigned flags))         \
    X(onednn_status, stream_wait, (onednn_stream * stream))                                                    \
    X(onednn_status, stream_destroy, (onednn_stream * stream))                                                 \
    X(onednn_status, memory_desc_create_with_tag,                                                              \
      (onednn_layout * *layout, int axes, const int64_t *extents, unsigned type, unsigned tag))                \
    X(int, memory_desc_equal, (const onednn_layout *a, const onednn_layout *b))                                \
    X(size_t, memory_desc_get_size, (const onednn_layout *layout))                                             \
    X(onednn_status, memory_desc_destroy, (onednn_layout * layout))                                            \
    X(onednn_status, memory_create,                                                                            \
      (onednn_memory * *memory, const onednn_layout *layout, onednn_engine *engine, void *data))               \
    X(onednn_status, memory_get_memory_desc, (const onednn_memory *memory, const onednn_layout **layout))      \
    X(onednn_status, memory_get_data_handle, (const onednn_memory *memory, void **data))                       \
    X(onednn_status, memory_destroy, (onednn_memory * memory))                                                 \
    X(onednn_status, convolution_forward_primitive_desc_create,                                                \
      (onednn_description * *description, onednn_engine * engine, unsigned propagation, unsigned algorithm,    \
       const onednn_layout *x, const onednn_layout *w, const onednn_layout *bias, const onednn_layout *y,      \
       const int64_t *stride, const int64_t *dilation, const int64_t *before, const int64_t *after,            \
       const onednn_attributes *attributes))                                                                   \
    X(onednn_status, convolution_backward_data_primitive_desc_create,                                          \
      (onednn_description * *description, onednn_engine * engine, unsigned algorithm, const onednn_layout *gx, \
       const onednn_layout *w, const onednn_layout *gy, const int64_t *stride, const int64_t *dilation,        \
       const int64_t *before, const int64_t *after, const onednn_description *hint,                            \
       const onednn_attributes *attributes))                                                                   \
    X(onednn_status, convolution_backward_weights_primitive_desc_create,                                       \
      (onednn_description * *description, onednn_engine * engine, unsigned algorithm, const onednn_layout *x,  \
       const onednn_layout *gw, const onednn_layout *gbias, const onednn_layout *gy, const int64_t *stride,    \
       const int64_t *dilation, const int64_t *before, const int64_t *after, const onednn_description *hint,   \
       const onednn_attributes *attributes))                                                                   \
    X(onednn_status, reorder_primitive_desc_create,                                                            \
      (onednn_description * *description, const onednn_layout *from, onednn_engine *from_engine,               \
       const onednn_layout *to, onednn_engine *to_engine, const onednn_attributes *attributes))                \
    X(onednn_status, primitive_desc_query,                                                                     \
      (const onednn_description *description, unsigned what, int index, void *result))                         \
    X(const onednn_layout *, primitive_desc_query_md,                                                          \
      (const onednn_description *description, unsigned what, int index))                                       \
    X(onednn_status, primitive_desc_destroy, (onednn_description * description))                               \
    X(onednn_status, primitive_create, (onednn_primitive * *primitive, const onednn_description *description)) \
    X(onednn_status, primitive_execute,                                                                        \
      (const onednn_primitive *primitive, onednn_stream *stream, int count, const ARGUMENT *arguments))        \
    X(onednn_status, primitive_destroy, (onednn_primitive * primitive))

typedef struct onednn_functions {
#define ONEDNN_MEMBER(result, member, parameters) result(*member) parameters;
    ONEDNN_FUNCTIONS(ONEDNN_MEMBER, onednn_version, onednn_argument)
#undef ONEDNN_MEMBER
} onednn_functions;

/* Which oneDNN there is, or why there is none. The first call opens it; the main thread calls. */
const cf_library *onednn_library(void);

/* The functions of a usable library. */
const onednn_functions *onednn_calls(void);

#endif
