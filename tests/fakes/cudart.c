/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA runtime of the GPU of cuda.c: device memory is host memory, which that driver takes as its own. */
#include "cuda_runtime_api.h"

#include <stdlib.h>
#include <string.h>

const char *cudaGetErrorString(cudaError_t error) { return error ? "out of memory" : "no error"; }
cudaError_t cudaSetDevice(int device) { return device ? cudaErrorMemoryAllocation : cudaSuccess; }
cudaError_t cudaMalloc(void **memory, size_t bytes) {
    return (*memory = calloc(1, bytes)) ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void *memory) {
    free(memory);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)kind;
    (void)stream;
    memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    *stream = malloc(1);
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return stream ? cudaSuccess : cudaErrorMemoryAllocation; }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    free(stream);
    return cudaSuccess;
}
