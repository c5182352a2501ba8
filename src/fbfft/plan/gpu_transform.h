/* SPDX-License-Identifier: Apache-2.0 */
/* A transform compiled for a GPU, for fbfft.h and for the layers. */
#ifndef CF_FBFFT_GPU_TRANSFORM_H
#define CF_FBFFT_GPU_TRANSFORM_H

#include "cuda/jit/build_list.h"
#include "fbfft/plan/kernel_split.h"

typedef struct cf_gpu_transform {
    cf_fft_problem problem;
    cf_fft_passes passes;
    cf_kernel *kernel[CF_FFT_MAX_PASSES][2]; /* for aligned pointers, and for others; NULL: no run needs it */
} cf_gpu_transform;

/* Two forward transforms of one kernel each. One launch computes both. */
typedef struct cf_gpu_pair {
    const cf_gpu_transform *transform[2];
    cf_shared_fft_config tile[2][2]; /* [transform][variant: for aligned pointers, for others] */
    cf_kernel *kernel[2];
} cf_gpu_pair;

/* Plan a transform without compiling it. Its scratch is known then. */
conv_fft_status cf_gpu_transform_create(cf_gpu *gpu, const cf_fft_problem *problem, cf_gpu_transform **transform);
/* List the kernels of transforms and pairs. aligned: tensors of all runs begin at multiples of 16 bytes. */
conv_fft_status cf_gpu_transforms_list(cf_gpu_transform *const *transforms, int count, cf_gpu_pair *const *pairs,
                                       int pair_count, bool aligned, cf_build_list *list);
void cf_gpu_transform_destroy(cf_gpu_transform *transform); /* NULL is allowed; no run of it may be pending */

/* Plan a pair without compiling it. *pair is NULL if one launch gains nothing: a transform has several kernels, or
 * both fill the GPU several times over. rows, groups: those of each run. The transforms must outlive the pair; they
 * need not be compiled. */
conv_fft_status cf_gpu_pair_create(const cf_gpu *gpu, const cf_gpu_transform *first, const cf_gpu_transform *second,
                                   const int64_t rows[2], int64_t groups, cf_gpu_pair **pair);
void cf_gpu_pair_destroy(cf_gpu_pair *pair); /* NULL is allowed; no run of it may be pending */

/* Forward, scaled spectra: whether the kernel finds the scales and stores them. */
bool cf_gpu_transform_finds_scales(const cf_gpu_transform *transform);

/* Bytes of scratch of a run over this many rows. */
size_t cf_gpu_transform_scratch(const cf_gpu_transform *transform, int64_t rows);

void cf_gpu_transform_describe(const cf_gpu_transform *transform, cf_text *text);

/* Rows from `first` on, of this many groups. */
typedef struct cf_gpu_transform_call {
    const void *signal; /* element 0 of sample 0; written by the inverse */
    const void *spectrum;
    int64_t first, rows;
    int64_t base;                 /* the row with which the spectrum begins */
    int64_t unit;                 /* frequency-major: distance of two bins, in complex numbers */
    int64_t groups, group_stride; /* of the spectrum, in complex numbers */
    cf_row_scales scales;         /* of FP16 spectra */
    const void *bias;             /* inverse: of all channels, or NULL */
    bool accumulate;              /* inverse */
    void *scratch;
} cf_gpu_transform_call;

conv_fft_status cf_gpu_transform_run(const cf_gpu_transform *transform, const cf_gpu_transform_call *call,
                                     struct CUstream_st *stream);

conv_fft_status cf_gpu_pair_run(const cf_gpu_pair *pair, const cf_gpu_transform_call call[2],
                                struct CUstream_st *stream);

/* The source of a kernel. The caller frees its text after the source. OUT_OF_MEMORY. */
conv_fft_status cf_fft_real_source(const cf_fft_config *config, cf_source *source);
conv_fft_status cf_fft_shared_source(const cf_shared_fft_config *config, cf_source *source);
conv_fft_status cf_fft_tensor_core_source(const cf_shared_fft_config *config, cf_source *source);

#endif
