/* SPDX-License-Identifier: Apache-2.0 */
/* A substitute of cuBLAS. It computes only if a test asks for it, but remembers how its handles are set up. As in the
 * real library, setting a stream resets the workspace. */
#include "cuda/libs/cublas.h"
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

/* op(matrix)[row][column] of a column-major matrix of complex numbers. */
static void element(const float *matrix, long long ld, cf_cublas_operation operation, int row, int column,
                    float value[2]) {
    const float *at = matrix + 2 * (operation == CF_CUBLAS_OP_N ? column * ld + row : row * ld + column);
    value[0] = at[0];
    value[1] = operation == CF_CUBLAS_OP_C ? -at[1] : at[1];
}

cf_cublas_result cublasCgemmStridedBatched CF_CUBLAS_GEMM(struct float2);
cf_cublas_result cublasCgemmStridedBatched CF_CUBLAS_GEMM(struct float2) {
    (void)handle, (void)alpha;
    ++fake_cublas_state.products;
    for (long long i = 0; fake_cublas_state.computes && i < batch; ++i)
        for (int column = 0; column < n; ++column)
            for (int row = 0; row < m; ++row) {
                float *to = (float *)c + 2 * (i * c_stride + (long long)column * ldc + row);
                const float keep = *(const float *)beta;
                double sum[2] = {keep ? to[0] : 0, keep ? to[1] : 0};
                for (int term = 0; term < k; ++term) {
                    float x[2], y[2];
                    element((const float *)a + 2 * i * a_stride, lda, a_operation, row, term, x);
                    element((const float *)b + 2 * i * b_stride, ldb, b_operation, term, column, y);
                    sum[0] += (double)x[0] * y[0] - (double)x[1] * y[1];
                    sum[1] += (double)x[0] * y[1] + (double)x[1] * y[0];
                }
                to[0] = (float)sum[0];
                to[1] = (float)sum[1];
            }
    return batch > 0 ? 0 : 7; /* CUBLAS_STATUS_INVALID_VALUE */
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
NO_PRODUCT(cublasZgemmStridedBatched, struct double2)

/* The library looks for this function and never calls it. */
int cublasGemmStridedBatchedEx;
