/* SPDX-License-Identifier: Apache-2.0 */
/* The two BLAS routines of the product, from an OpenBLAS found when a device is made. */
#ifndef CF_CPU_BLAS_H
#define CF_CPU_BLAS_H

#include <stdbool.h>
#include <stddef.h>

/* Values of the CBLAS standard. */
enum {
    CF_BLAS_ROW_MAJOR = 101,
    CF_BLAS_NO_TRANSPOSE = 111,
    CF_BLAS_CONJUGATE_TRANSPOSE = 113
};

typedef void cf_blas_gemm(int order, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha,
                          const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc);

typedef struct cf_blas {
    cf_blas_gemm *cgemm, *zgemm; /* NULL: none was found */
    bool own_threads;            /* it runs threads of its own: call it from one thread at a time */
    /* If OpenBLAS uses OpenMP: the setting of the calling thread. With 1 OpenBLAS starts no threads. Else NULL. */
    void (*set_openmp_threads)(int);
    int (*get_openmp_threads)(void);
} cf_blas;

/* text: name, version and path of the library that was found, for people. If a library that the user names is there
 * and cannot be used, also the reason. */
void cf_blas_open(cf_blas *blas, char *text, size_t bytes);

#endif
