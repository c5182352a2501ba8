/* SPDX-License-Identifier: Apache-2.0 */
/* What a test can read from a substitute library, through dlsym(). Several threads make plans at the same time, so all
 * members that calls change are atomic. */
#ifndef TEST_FAKE_H
#define TEST_FAKE_H

#include <stdatomic.h>

/* fake_cuda_state: what is open now; and counts so far: launched kernels, early launches, allocations, frees, waits of
 * the host, and how often the context was made current. */
typedef struct fake_cuda {
    atomic_int retained, depth, modules, allocations;
    atomic_int launches, overlapping, taken, freed, waits, entered;
    /* The answers of cuPointerGetAttributes() for one address, by attribute number. All other addresses are plain
     * memory of GPU 0 without bounds. */
    const void *special;
    unsigned long long attribute[32];
    const void *foreign_stream;  /* of another context */
    const void *captured_stream; /* being captured into a graph: the host may not wait for its events */
    /* The stream that a test expects; the number of launches, copies, fills and events in other streams; the event that
     * the host waited for last. */
    const void *expected_stream;
    atomic_int elsewhere;
    void *_Atomic waited_for;
} fake_cuda;

/* fake_cublas_state: the number of handles, the number of batched products computed, and the settings of the handle
 * that was read last. */
typedef struct fake_cublas {
    atomic_int handles, products;
    void *_Atomic stream, *_Atomic workspace;
    atomic_uint math;
    int computes; /* set by a test: single-precision products are computed indeed */
} fake_cublas;

/* A workspace of this size makes the substitute cuBLAS run out of memory. */
#define FAKE_CUBLAS_FAILING_BYTES 13

/* fake_cudnn_state: what exists now; what was planned and run so far; the pointers of the last run. */
typedef struct fake_cudnn {
    atomic_int handles, descriptors, plans, runs;
    const void *_Atomic pointers[3]; /* x or gx, w or gw, y or gy */
    void *_Atomic stream, *_Atomic workspace;
    _Atomic float beta;
    atomic_uint math;
} fake_cudnn;

/* fake_cufft_state: the numbers of plans that exist, were made and were run; the plan that was made or run last. */
typedef struct fake_cufft {
    atomic_int plans, made, runs, rank;
    atomic_llong batch;
    void *_Atomic work, *_Atomic stream;
    int computes; /* set by a test: single-precision transforms are computed indeed */
} fake_cufft;

/* A batch of this size makes the substitute cuFFT run out of memory. */
#define FAKE_CUFFT_FAILING_BATCH 13

/* fake_openblas_state: the number of products, and of those that could use more than one thread. */
typedef struct fake_openblas {
    atomic_int products, on_several_threads;
} fake_openblas;

/* What its OpenMP runtime allows each thread at first. */
#define FAKE_OPENBLAS_THREADS 7

/* fake_nvrtc_compilations is an atomic_int: compilations since the library was opened. */

/* Machine code of the substitute compiler: this text, then the architecture. The substitute driver accepts nothing
 * else. */
#define FAKE_CUBIN "FAKE CUBIN "
/* Addresses of device memory, which the host cannot access, have this bit. No host address has it. */
#define FAKE_DEVICE (1ull << 62)
/* How much of it the substitute GPU has. */
#ifndef FAKE_MEMORY
#define FAKE_MEMORY (1 << 20)
#endif

#endif
