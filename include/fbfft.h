/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fbfft.h - batched small real FFTs with implicit zero padding and clipped outputs, after Vasilache et al., "Fast
 * Convolutional Nets With fbfft" (arXiv 1412.7580, section 5). Each transform is one kernel and one pass over memory.
 *
 *     fbfft_desc_init(&d, 2, FBFFT_R2C);  d.basis[0] = d.basis[1] = 64;  d.extent[0] = d.extent[1] = 9;
 *     fbfft_plan_create(context, &d, &plan);                 once; compiles, may be slow
 *     fbfft_execute(plan, images, spectra, batch, stream);   enqueues one kernel
 *
 * MEMORY, as C arrays, B = batch, Nr the basis and Dr the extent of the last axis:
 *
 *     real      [B][D1]..[Dr]              spectrum   [B][N1]..[Nr / 2 + 1]   of pairs {re, im}, the last axis halved
 *
 *     R2C   spectrum[k] = scale * sum_i real[i] exp(-2 pi i (k1 i1 / N1 + ..)), real being zero from D to N
 *     C2R   real[i]     = scale * sum_k spectrum[k] exp(+2 pi i ..) for i < D, over all N bins of the Hermitian spectrum.
 *           The imaginary parts of bins that are real for real signals do not count. scale = 1 / (N1 .. Nr) inverts R2C.
 *
 * Statuses, conv_fft_last_error(), streams and thread-sharing are as in conv_fft.h. Input and output may not overlap. The
 * alignment of one real number suffices; 16 bytes are faster. No two planes share arithmetic: a NaN stays in its own.
 *
 * This version: GPU contexts; FP32; even bases: of rank 1, all products of powers of 2, 3, 5 and 7 up to 64, and from there to 256
 * those with enough factors of 2 (all powers of two); of rank 2, up to 64 each, and to 128 where both are multiples of 4.
 * Anything else is NOT_SUPPORTED, with a sentence.
 */
#ifndef FBFFT_H
#define FBFFT_H

#include "conv_fft.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fbfft_kind {
    FBFFT_R2C = 0,
    FBFFT_C2R = 1
} fbfft_kind;

/** A transform. Start from fbfft_desc_init(). */
typedef struct fbfft_desc {
    int rank; /**< 1..3 axes */
    fbfft_kind kind;
    int64_t basis[CONV_FFT_MAX_RANK];  /**< N, >= 1; default 1 */
    int64_t extent[CONV_FFT_MAX_RANK]; /**< D, 1..N; 0 (default): N */
    double scale;                      /**< default 1 */
    int64_t reserved[4];               /**< zero */
} fbfft_desc;

/** Compiled for one transform and one device; the batch is free. Immutable. */
typedef struct fbfft_plan fbfft_plan;

/** Fill in the defaults. INVALID_ARGUMENT: desc is NULL, rank is not 1..3, or kind is unknown. */
CONV_FFT_API conv_fft_status fbfft_desc_init(fbfft_desc *desc, int rank, fbfft_kind kind);

/**
 * Make a plan; the context must outlive it. INVALID_ARGUMENT: the sentence names the field. NOT_SUPPORTED: not in this version (above).
 * LIBRARY_MISSING, COMPILE_ERROR, OUT_OF_MEMORY, DEVICE_ERROR.
 */
CONV_FFT_API conv_fft_status fbfft_plan_create(conv_fft_context *context, const fbfft_desc *desc, fbfft_plan **plan);

/** NULL is allowed. No execution of the plan may be pending. */
CONV_FFT_API void fbfft_plan_destroy(fbfft_plan *plan);

/** One line: lanes per line, planes and threads per block, shared memory, registers. "" if plan is NULL. Lives as long as the plan. */
CONV_FFT_API const char *fbfft_plan_description(const fbfft_plan *plan);

/**
 * Enqueue the transform of `batch` >= 0 planes from `in` to `out` (device memory). INVALID_ARGUMENT: a NULL or misaligned pointer, a negative
 * batch. DEVICE_ERROR.
 */
CONV_FFT_API conv_fft_status fbfft_execute(const fbfft_plan *plan, const void *in, void *out, int64_t batch,
                                           struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif /* FBFFT_H */
