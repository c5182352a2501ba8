/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS: the table of its functions, opened at first use (which takes a while), and a pool of its handles. */
#ifndef CF_DEVICE_CUBLAS_H
#define CF_DEVICE_CUBLAS_H

#include "cuda/driver/gpu.h"

struct cublasContext;
struct float2;
struct double2;
typedef struct cublasContext *cf_cublas_handle;
typedef unsigned cf_cublas_result, cf_cublas_operation, cf_cublas_math, cf_cublas_type, cf_cublas_compute,
    cf_cublas_property;
typedef int cf_cublas_algorithm;

/* X(name, cuBLAS's name, value) */
#define CF_CUBLAS_CONSTANTS(X)                               \
    X(CF_CUBLAS_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED, 3) \
    X(CF_CUBLAS_DEFAULT_MATH, CUBLAS_DEFAULT_MATH, 0)        \
    X(CF_CUBLAS_TF32_MATH, CUBLAS_TF32_TENSOR_OP_MATH, 3)    \
    X(CF_CUBLAS_OP_N, CUBLAS_OP_N, 0)                        \
    X(CF_CUBLAS_OP_T, CUBLAS_OP_T, 1)                        \
    X(CF_CUBLAS_OP_C, CUBLAS_OP_C, 2)                        \
    X(CF_CUBLAS_MAJOR_VERSION, MAJOR_VERSION, 0)             \
    X(CF_CUBLAS_MINOR_VERSION, MINOR_VERSION, 1)             \
    X(CF_CUBLAS_PATCH_LEVEL, PATCH_LEVEL, 2)

#define CF_CUBLAS_ENUMERATOR(name, cuda_name, value) name = value,
enum {
    CF_CUBLAS_CONSTANTS(CF_CUBLAS_ENUMERATOR)
};
#undef CF_CUBLAS_ENUMERATOR

/* The parameters of ?gemmStridedBatched. */
#define CF_CUBLAS_GEMM(complex)                                                                                      \
    (cf_cublas_handle handle, cf_cublas_operation a_operation, cf_cublas_operation b_operation, int m, int n, int k, \
     const complex *alpha, const complex *a, int lda, long long a_stride, const complex *b, int ldb,                 \
     long long b_stride, const complex *beta, complex *c, int ldc, long long c_stride, int batch)

/* X(member of cf_cublas_functions, exported symbol, parameters) */
#define CF_CUBLAS_FUNCTIONS(X)                                                                                         \
    X(cublasGetProperty, cublasGetProperty, (cf_cublas_property property, int *value))                                 \
    X(cublasCreate, cublasCreate_v2, (cf_cublas_handle * handle))                                                      \
    X(cublasDestroy, cublasDestroy_v2, (cf_cublas_handle handle))                                                      \
    X(cublasSetStream, cublasSetStream_v2, (cf_cublas_handle handle, cf_cu_stream stream))                             \
    X(cublasSetWorkspace, cublasSetWorkspace_v2, (cf_cublas_handle handle, void *workspace, size_t bytes))             \
    X(cublasSetMathMode, cublasSetMathMode, (cf_cublas_handle handle, cf_cublas_math mode))                            \
    X(cublasCgemmStridedBatched, cublasCgemmStridedBatched, CF_CUBLAS_GEMM(struct float2))                             \
    X(cublasZgemmStridedBatched, cublasZgemmStridedBatched, CF_CUBLAS_GEMM(struct double2))                            \
    X(cublasGemmStridedBatchedEx, cublasGemmStridedBatchedEx,                                                          \
      (cf_cublas_handle handle, cf_cublas_operation a_operation, cf_cublas_operation b_operation, int m, int n, int k, \
       const void *alpha, const void *a, cf_cublas_type a_type, int lda, long long a_stride, const void *b,            \
       cf_cublas_type b_type, int ldb, long long b_stride, const void *beta, void *c, cf_cublas_type c_type, int ldc,  \
       long long c_stride, int batch, cf_cublas_compute compute, cf_cublas_algorithm algorithm))

typedef struct cf_cublas_functions {
    const char *(*cublasGetStatusName)(cf_cublas_result result);
#define CF_CUBLAS_MEMBER(member, symbol, parameters) cf_cublas_result(*member) parameters;
    CF_CUBLAS_FUNCTIONS(CF_CUBLAS_MEMBER)
#undef CF_CUBLAS_MEMBER
} cf_cublas_functions;

/* Open only the library; `library` says which one, or why there is none. */
conv_fft_status cf_cublas_open(cf_library *library, cf_cublas_functions *functions, const cf_search *search,
                               int driver_version);

/* The pool of a GPU. Creating it opens nothing. */
conv_fft_status cf_cublas_create(const cf_gpu *gpu, cf_cublas **cublas);
void cf_cublas_destroy(cf_cublas *cublas); /* NULL is allowed; no handle may be in use */

/* What one user holds from acquire to release. Meanwhile the GPU's context is current. */
typedef struct cf_cublas_guard {
    const cf_cublas_functions *call;
    cf_cublas_handle handle;
    struct cf_handle *pooled;
} cf_cublas_guard;

/* Take a handle on this stream. The caller gives it memory to work in, so cuBLAS allocates none, and results do not
 * depend on other work. If no handle is free, one is made. Plans acquire and release one when they are made, so that
 * runs find a free one. LIBRARY_MISSING, OUT_OF_MEMORY, DEVICE_ERROR. */
conv_fft_status cf_cublas_guard_acquire(cf_cublas *cublas, cf_cu_stream stream, cf_cublas_math math, void *workspace,
                                        size_t bytes, cf_cublas_guard *guard);
void cf_cublas_guard_release(cf_cublas *cublas, cf_cublas_guard *guard);

/* SUCCESS, or a failure whose sentence names the call and its result. */
conv_fft_status cf_cublas_status(const cf_cublas_functions *functions, cf_cublas_result result, const char *call);
#define CF_CUBLAS(functions, name, ...) cf_cublas_status(functions, (functions)->name(__VA_ARGS__), #name)

#endif
