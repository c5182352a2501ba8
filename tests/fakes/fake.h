/* SPDX-License-Identifier: Apache-2.0 */
/* What a test can ask a substitute library about itself, through dlsym(). */
#ifndef TEST_FAKE_H
#define TEST_FAKE_H

#include <stdatomic.h>

/* Of fake_cuda_state: what is open at the moment, and how many kernels were launched so far. */
typedef struct fake_cuda {
    atomic_int retained, depth, modules, allocations, launches;
} fake_cuda;

/* Of fake_cublas_state: handles that exist, batches of products that were computed so far, and what the last handle that was
 * asked about works with. */
typedef struct fake_cublas {
    int handles, products;
    void *stream, *workspace;
    unsigned math;
} fake_cublas;

/* A workspace of this size makes the substitute cuBLAS run out of memory. */
#define FAKE_CUBLAS_FAILING_BYTES 13

/* fake_nvrtc_compilations is an atomic_int: since the library was opened. */

/* What the substitute compiler makes, before the architecture: its driver takes nothing else. */
#define FAKE_CUBIN "FAKE CUBIN "
/* Device memory of the substitute GPU. */
#define FAKE_MEMORY (1 << 20)

#endif
