/* SPDX-License-Identifier: Apache-2.0 */
/* cuFFT: the table of its functions, opened at first use, and plans of batches of real transforms. */
#ifndef CF_DEVICE_CUFFT_H
#define CF_DEVICE_CUFFT_H

#include "cuda/driver/gpu.h"

struct float2;
struct double2;
typedef int cf_cufft_handle;
typedef unsigned cf_cufft_result, cf_cufft_type, cf_cufft_property;

/* X(name, cuFFT's name, value) */
#define CF_CUFFT_CONSTANTS(X)                       \
    X(CF_CUFFT_ALLOC_FAILED, CUFFT_ALLOC_FAILED, 2) \
    X(CF_CUFFT_R2C, CUFFT_R2C, 0x2a)                \
    X(CF_CUFFT_C2R, CUFFT_C2R, 0x2c)                \
    X(CF_CUFFT_D2Z, CUFFT_D2Z, 0x6a)                \
    X(CF_CUFFT_Z2D, CUFFT_Z2D, 0x6c)

#define CF_CUFFT_ENUMERATOR(name, cufft_name, value) name = value,
enum {
    CF_CUFFT_CONSTANTS(CF_CUFFT_ENUMERATOR)
};
#undef CF_CUFFT_ENUMERATOR

/* X(member, parameters). The members have the names of the exported symbols and return a result. */
#define CF_CUFFT_FUNCTIONS(X)                                                                                          \
    X(cufftGetProperty, (cf_cufft_property property, int *value))                                                      \
    X(cufftCreate, (cf_cufft_handle * plan))                                                                           \
    X(cufftDestroy, (cf_cufft_handle plan))                                                                            \
    X(cufftSetAutoAllocation, (cf_cufft_handle plan, int automatic))                                                   \
    X(cufftSetWorkArea, (cf_cufft_handle plan, void *area))                                                            \
    X(cufftSetStream, (cf_cufft_handle plan, cf_cu_stream stream))                                                     \
    X(cufftMakePlanMany64, (cf_cufft_handle plan, int rank, long long *n, long long *in_embed, long long in_stride,    \
                            long long in_distance, long long *out_embed, long long out_stride, long long out_distance, \
                            cf_cufft_type type, long long batch, size_t *bytes))                                       \
    X(cufftExecR2C, (cf_cufft_handle plan, float *in, struct float2 *out))                                             \
    X(cufftExecC2R, (cf_cufft_handle plan, struct float2 * in, float *out))                                            \
    X(cufftExecD2Z, (cf_cufft_handle plan, double *in, struct double2 *out))                                           \
    X(cufftExecZ2D, (cf_cufft_handle plan, struct double2 * in, double *out))

typedef struct cf_cufft_functions {
#define CF_CUFFT_MEMBER(member, parameters) cf_cufft_result(*member) parameters;
    CF_CUFFT_FUNCTIONS(CF_CUFFT_MEMBER)
#undef CF_CUFFT_MEMBER
} cf_cufft_functions;

/* Open only the library; `library` says which one, or why there is none. */
conv_fft_status cf_cufft_open(cf_library *library, cf_cufft_functions *functions, const cf_search *search,
                              int driver_version);

/* The library of a GPU. Creating it opens nothing. */
conv_fft_status cf_cufft_create(const cf_gpu *gpu, cf_cufft **cufft);
void cf_cufft_destroy(cf_cufft *cufft); /* NULL is allowed; all plans must have been destroyed */

/* The library, which is opened if it was not tried before: its version, or why it is missing. It lives as long as
 * `cufft`. */
const cf_library *cf_cufft_library(cf_cufft *cufft);

/* `batch` transforms of real numbers [batch][n0][n1][n2] to complex numbers [batch][n0][n1][n2 / 2 + 1], or back.
 * Neither scales. Both are dense. With fewer than three axes, leading extents are 1. */
typedef struct cf_cufft_plan cf_cufft_plan;

/* LIBRARY_MISSING, OUT_OF_MEMORY, DEVICE_ERROR. */
conv_fft_status cf_cufft_plan_create(cf_cufft *cufft, const int64_t n[3], int64_t batch, bool inverse, bool doubles,
                                     cf_cufft_plan **plan);
void cf_cufft_plan_destroy(cf_cufft_plan *plan);            /* NULL is allowed */
size_t cf_cufft_plan_work_bytes(const cf_cufft_plan *plan); /* bytes of memory that a run works in */

/* The inverse may overwrite `in`. A plan serves one thread at a time. */
conv_fft_status cf_cufft_plan_run(const cf_cufft_plan *plan, void *in, void *out, void *work, cf_cu_stream stream);

#endif
