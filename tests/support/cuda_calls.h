/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the CUDA driver that only tests call: host memory that GPUs use in place, graphs, and occupancy.
 * checks/cuda_declarations.c compares them with CUDA's own headers. */
#ifndef TEST_CUDA_CALLS_H
#define TEST_CUDA_CALLS_H

#include "cuda/driver/gpu.h"

typedef struct CUgraph_st *cuda_graph;
typedef struct CUgraphNode_st *cuda_graph_node;
typedef struct CUgraphExec_st *cuda_graph_exec;
typedef unsigned cuda_node_type;

/* X(name, CUDA's name, value) */
#define CUDA_CALLS_CONSTANTS(X)                              \
    X(CUDA_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE, 1)       \
    X(CUDA_HOST_MAPPED, CU_MEMHOSTALLOC_DEVICEMAP, 2)        \
    X(CUDA_CAPTURE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL, 0) \
    X(CUDA_NODE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL, 0)        \
    X(CUDA_NODE_MEMSET, CU_GRAPH_NODE_TYPE_MEMSET, 2)

#define CUDA_CALLS_ENUMERATOR(name, cuda_name, value) name = value,
enum {
    CUDA_CALLS_CONSTANTS(CUDA_CALLS_ENUMERATOR)
};
#undef CUDA_CALLS_ENUMERATOR

/* X(member of cuda_calls, exported symbol, parameters) */
#define CUDA_CALLS_FUNCTIONS(X)                                                                      \
    X(cuMemHostAlloc, cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                 \
    X(cuMemFreeHost, cuMemFreeHost, (void *memory))                                                  \
    X(cuStreamBeginCapture, cuStreamBeginCapture_v2, (cf_cu_stream stream, cf_cu_capture_mode mode)) \
    X(cuStreamEndCapture, cuStreamEndCapture, (cf_cu_stream stream, cuda_graph * graph))             \
    X(cuGraphGetNodes, cuGraphGetNodes, (cuda_graph graph, cuda_graph_node * nodes, size_t * count)) \
    X(cuGraphNodeGetType, cuGraphNodeGetType, (cuda_graph_node node, cuda_node_type * type))         \
    X(cuGraphInstantiate, cuGraphInstantiateWithFlags,                                               \
      (cuda_graph_exec * exec, cuda_graph graph, unsigned long long flags))                          \
    X(cuGraphLaunch, cuGraphLaunch, (cuda_graph_exec exec, cf_cu_stream stream))                     \
    X(cuGraphExecDestroy, cuGraphExecDestroy, (cuda_graph_exec exec))                                \
    X(cuGraphDestroy, cuGraphDestroy, (cuda_graph graph))                                            \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor,      \
      (int *blocks, cf_cu_function function, int threads, size_t dynamic_shared_bytes))

typedef struct cuda_calls {
#define CUDA_CALLS_MEMBER(member, symbol, parameters) cf_cu_result(*member) parameters;
    CUDA_CALLS_FUNCTIONS(CUDA_CALLS_MEMBER)
#undef CUDA_CALLS_MEMBER
} cuda_calls;

/* The functions of the driver that the GPU was opened with. A missing function ends the program. */
cuda_calls cuda_calls_of(const cf_gpu *gpu);

#endif
