/* SPDX-License-Identifier: Apache-2.0 */
/* A substitute of an OpenBLAS that is linked with an OpenMP runtime of its own. It checks in each product how many
 * threads it may use. All products are 0. */
#include "cpu/gemm/openblas.h"
#include "fake.h"

#ifndef FAKE_OPENBLAS_PARALLEL
#define FAKE_OPENBLAS_PARALLEL 2
#endif

fake_openblas fake_openblas_state;
/* LeakSanitizer cannot read memory of this kind that a library gets only while threads run, so it is part of theirs. */
static _Thread_local __attribute__((tls_model("initial-exec"))) int threads = FAKE_OPENBLAS_THREADS;

void omp_set_num_threads(int number);
int omp_get_max_threads(void);
int openblas_get_parallel(void);
int openblas_get_num_threads(void);
char *openblas_get_config(void);
cf_blas_gemm cblas_cgemm;

void omp_set_num_threads(int number) { threads = number; }
int omp_get_max_threads(void) { return threads; }
int openblas_get_parallel(void) { return FAKE_OPENBLAS_PARALLEL; }
int openblas_get_num_threads(void) { return threads; }

char *openblas_get_config(void) {
    static char text[] = "OpenBLAS 0.0.1 of the tests";
    return text;
}

void cblas_cgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha, const void *a,
                 int lda, const void *b, int ldb, const void *beta, void *c, int ldc) {
    (void)order, (void)transpose_a, (void)transpose_b, (void)k, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb;
    (void)beta;
    ++fake_openblas_state.products;
    if (threads != 1)
        ++fake_openblas_state.on_several_threads;
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < 2 * n; ++j)
            ((float *)c)[2 * i * ldc + j] = 0;
}

#ifndef FAKE_LACKS_ZGEMM
cf_blas_gemm cblas_zgemm;
void cblas_zgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha, const void *a,
                 int lda, const void *b, int ldb, const void *beta, void *c, int ldc) {
    cblas_cgemm(order, transpose_a, transpose_b, m, 2 * n, k, alpha, a, lda, b, ldb, beta, c, 2 * ldc);
}
#endif
