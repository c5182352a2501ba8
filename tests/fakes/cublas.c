/* SPDX-License-Identifier: Apache-2.0 */
/* A cuBLAS that computes nothing, but remembers how its handles are set up. As in the real one, a new stream takes the
 * workspace away. */
#include "device/cublas.h"
#include "fake.h"

#include <stdlib.h>

struct cublasContext {
    int unused;
};

fake_cublas fake_cublas_state;

cf_cublas_result cublasGetProperty(cf_cublas_property property, int *value) {
    *value = property == CF_CUBLAS_MAJOR_VERSION ? 13 : 1;
    return 0;
}
const char *cublasGetStatusName(cf_cublas_result result) {
    return result == CF_CUBLAS_ALLOC_FAILED ? "CUBLAS_STATUS_ALLOC_FAILED" : "CUBLAS_STATUS_OTHER";
}
cf_cublas_result cublasCreate_v2(cf_cublas_handle *handle) {
    *handle = calloc(1, sizeof **handle);
    ++fake_cublas_state.handles;
    return 0;
}
cf_cublas_result cublasDestroy_v2(cf_cublas_handle handle) {
    free(handle);
    --fake_cublas_state.handles;
    return 0;
}
cf_cublas_result cublasSetStream_v2(cf_cublas_handle handle, cf_cu_stream stream) {
    (void)handle;
    fake_cublas_state.stream = stream;
    fake_cublas_state.workspace = NULL;
    return 0;
}
cf_cublas_result cublasSetWorkspace_v2(cf_cublas_handle handle, void *workspace, size_t bytes) {
    (void)handle;
    fake_cublas_state.workspace = workspace;
    return bytes == FAKE_CUBLAS_FAILING_BYTES ? CF_CUBLAS_ALLOC_FAILED : 0;
}
cf_cublas_result cublasSetMathMode(cf_cublas_handle handle, cf_cublas_math mode) {
    (void)handle;
    fake_cublas_state.math = mode;
    return 0;
}

#define NO_PRODUCT(name, complex)                                   \
    cf_cublas_result name CF_CUBLAS_GEMM(complex);                  \
    cf_cublas_result name CF_CUBLAS_GEMM(complex) {                 \
        (void)handle, (void)a_operation, (void)b_operation;         \
        (void)m, (void)n, (void)k, (void)alpha, (void)beta;         \
        (void)a, (void)lda, (void)a_stride;                         \
        (void)b, (void)ldb, (void)b_stride;                         \
        (void)c, (void)ldc, (void)c_stride;                         \
        ++fake_cublas_state.products;                               \
        return batch > 0 ? 0 : 7; /* CUBLAS_STATUS_INVALID_VALUE */ \
    }
NO_PRODUCT(cublasCgemmStridedBatched, struct float2)
NO_PRODUCT(cublasZgemmStridedBatched, struct double2)

/* This one is looked for, never called. */
int cublasGemmStridedBatchedEx;
