/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fbfft.h - batched small FFTs of 1 to 3 axes with implicit zero padding, clipped outputs and a layout of your choice
 * on both sides, after Vasilache et al., "Fast Convolutional Nets With fbfft" (arXiv 1412.7580, section 5).
 *
 *     fbfft_desc_init(&d, 2, FBFFT_R2C);  d.basis[0] = d.basis[1] = 64;  d.extent[0] = d.extent[1] = 9;
 *     fbfft_plan_create(context, &d, &plan);                          once; compiles, may be slow
 *     fbfft_plan_workspace(plan, batch, &bytes);                      0 if one kernel of a GPU suffices
 *     fbfft_execute(plan, images, spectra, batch, ws, bytes, stream); enqueues one kernel, or a few
 *
 * A transform goes between a signal and its spectrum. Per axis N is the basis, D the extent; E = N but for the last
 * axis of a real signal, where by Hermitian symmetry E = N / 2 + 1. B = batch, C = channels. As C arrays, unless
 * strides say otherwise,
 *
 *     signal       [B][C][S1]..[Sr]     CHANNELS_FIRST             spectrum     [B][C][E1]..[Er]     NATURAL
 *                  [B][S1]..[Sr][C]     CHANNELS_LAST                           [B][C][Er]..[E1]     TRANSPOSED
 *                                                                               [E1]..[Er][B][C]     FREQUENCY_MAJOR
 *
 * of reals (dtype) or pairs {re, im} of dtype; the spectrum is pairs {re, im} of float, of double for FP64.
 * The D points of an axis are a window of the signal: point i is element offset + i * step. A read outside 0..S-1
 * gives what `padding` says; a write there is dropped. By default the window is the whole signal: S = D.
 *
 *     R2C, C2C_FORWARD   spectrum[k] = scale * sum_i signal[i] exp(-2 pi i (k1 i1 / N1 + ..)); from D to N the signal
 *                        counts as zero
 *     C2R, C2C_INVERSE   signal[i] = scale * sum_k spectrum[k] exp(+2 pi i ..) for i < D; the sum is over all N bins.
 *                        scale = 1 / (N1 .. Nr) inverts the forward transform. C2R ignores the imaginary parts of
 *                        bins that are real for real signals.
 *
 * FP16 SPECTRA. With spectrum = FP16, tensor cores transform complex FP16 numbers into complex FP16 numbers. Limits:
 * kind C2C, dtype FP16, sizes that are powers of two: 2 to 2^24 for rank 1, 32 to 2048 per axis for rank 2. All other
 * fields but scale and channels have their defaults. in and out are aligned to 16 bytes. Sums are FP32; results are
 * rounded to FP16 up to six times (relative errors of 2e-4 to 6e-4). Values above 65504 become Inf: N ones have a bin
 * of N. A scale below 1 is applied in powers of two in between, in proportion to the points done. With a scale of 1 /
 * N no intermediate value exceeds sqrt(2) times the largest component of the input.
 *
 * ARITHMETIC says which units of a GPU compute; a plan never falls back to others. CPUs compute in FP32, or in FP64 for
 * dtype FP64, and refuse the same descriptions.
 *
 *     DEFAULT    as FP64 for dtype FP64, as FP16 where the spectrum is FP16, as FP32 otherwise
 *     FP32       FP32 units. dtype FP32, FP16 or BF16, spectrum FP32
 *     SPLIT      tensor cores: each FP32 number is the sum of two FP16 numbers, sums are FP32. Limits: dtype and
 *                spectrum FP32, sizes that are powers of two: the last axis 256 to 16384, or to 2^27 if it is the
 *                only one, other axes 256 to 4096. Of real signals (R2C, C2R), the last axis has twice as many
 *                points: 512 to 32768, or to 2^28. Rows of 16384, 2^23 and 2^24 complex points and other axes of
 *                4096 need 132 KB of shared memory a block, which not all GPUs have. All other fields but scale and
 *                channels have their defaults. in and out are aligned to 16 bytes. Results are about as accurate as
 *                those of FP32 units (measured relative errors of 1.5e-7 to 4.6e-7). Lines without a number above
 *                2e-34 in magnitude lose low bits (relative errors up to 1e-5).
 *     FP16       tensor cores, see FP16 SPECTRA. dtype and spectrum FP16
 *
 * Statuses, conv_fft_last_error(), streams and thread-sharing are as in conv_fft.h; memory is the context's device's.
 * Input, output and workspace may not overlap; the input is not written. The alignment of one number suffices, real or
 * complex (16 bytes are faster), unless `arithmetic` or `spectrum` says otherwise. No two planes (batch entry, channel)
 * share arithmetic: a NaN stays in its own.
 */
#ifndef FBFFT_H
#define FBFFT_H

#include "conv_fft.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fbfft_kind {
    FBFFT_R2C = 0,
    FBFFT_C2R = 1,
    FBFFT_C2C_FORWARD = 2,
    FBFFT_C2C_INVERSE = 3
} fbfft_kind;

/** Order of a spectrum, drawn above. */
typedef enum fbfft_order {
    FBFFT_NATURAL = 0,
    FBFFT_TRANSPOSED = 1,
    FBFFT_FREQUENCY_MAJOR = 2
} fbfft_order;

/** Which units of a GPU compute, see ARITHMETIC above. */
typedef enum fbfft_arithmetic {
    FBFFT_ARITHMETIC_DEFAULT = 0,
    FBFFT_ARITHMETIC_FP32 = 1,
    FBFFT_ARITHMETIC_SPLIT = 2,
    FBFFT_ARITHMETIC_FP16 = 3
} fbfft_arithmetic;

/** A transform. Start from fbfft_desc_init(); entries of unused axes are ignored. */
typedef struct fbfft_desc {
    int rank; /**< 1..3 axes */
    fbfft_kind kind;
    int64_t basis[CONV_FFT_MAX_RANK];  /**< N = 2^a 3^b 5^c 7^d in 1..256; of rank 1 to 16384; SPLIT, FP16: above */
    int64_t extent[CONV_FFT_MAX_RANK]; /**< D, 1..N; 0 (default): N */
    double scale;                      /**< default 1 */
    int64_t channels;                  /**< C, >= 1; default 1 */
    conv_fft_dtype dtype;              /**< of the signal; default FP32. FP16 and BF16 are computed in FP32 */
    conv_fft_layout layout;            /**< of the signal; default CHANNELS_FIRST */
    fbfft_order order;                 /**< of the spectrum; default NATURAL */
    int64_t size[CONV_FFT_MAX_RANK];   /**< S, >= 1; 0 (default): D */
    int64_t offset[CONV_FFT_MAX_RANK]; /**< of the window; may be negative; default 0 */
    int64_t step[CONV_FFT_MAX_RANK];   /**< >= 1; default 1 */
    /** Default ZEROS. Transforms that write a signal must have ZEROS. REFLECT: the window reaches at most S - 1 beyond
     * each end. */
    conv_fft_padding padding;
    /** Of the signal in elements: {batch, channel, axes}, >= 0; all zero (default): dense. */
    int64_t stride[2 + CONV_FFT_MAX_RANK];
    conv_fft_dtype spectrum;     /**< FP32 (default): as drawn above. FP16: pairs {re, im} of FP16, see FP16 SPECTRA */
    fbfft_arithmetic arithmetic; /**< default DEFAULT */
    int64_t reserved[3];         /**< zero */
} fbfft_desc;

/** A transform compiled for one device, for any batch. Immutable. */
typedef struct fbfft_plan fbfft_plan;

/** Fill in the defaults. INVALID_ARGUMENT: desc is NULL, rank is not 1..3, or kind is unknown. */
CONV_FFT_API conv_fft_status fbfft_desc_init(fbfft_desc *desc, int rank, fbfft_kind kind);

/**
 * Make a plan; the context must outlive it. INVALID_ARGUMENT: the sentence names the field. NOT_SUPPORTED: a plane is
 * too large for this device. LIBRARY_MISSING, COMPILE_ERROR, OUT_OF_MEMORY, DEVICE_ERROR.
 */
CONV_FFT_API conv_fft_status fbfft_plan_create(conv_fft_context *context, const fbfft_desc *desc, fbfft_plan **plan);

/** NULL is allowed. No execution of the plan may be pending. */
CONV_FFT_API void fbfft_plan_destroy(fbfft_plan *plan);

/** One line for each kernel of the plan. "" if plan is NULL. Lives as long as the plan. */
CONV_FFT_API const char *fbfft_plan_description(const fbfft_plan *plan);

/** Set *bytes to the workspace that an execution of `batch` planes per channel needs, at any alignment.
 * INVALID_ARGUMENT: a NULL, or a negative batch. */
CONV_FFT_API conv_fft_status fbfft_plan_workspace(const fbfft_plan *plan, int64_t batch, size_t *bytes);

/**
 * Enqueue the transform of `batch` >= 0 entries from `in` to `out`. The workspace may be NULL if none is needed; one
 * workspace serves one execution at a time. INVALID_ARGUMENT: a NULL or misaligned pointer, a negative batch, too
 * small a workspace. NOT_SUPPORTED: more planes than a GPU has blocks for in one launch, at least 2^31. DEVICE_ERROR.
 */
CONV_FFT_API conv_fft_status fbfft_execute(const fbfft_plan *plan, const void *in, void *out, int64_t batch,
                                           void *workspace, size_t bytes, struct CUstream_st *stream);

/**
 * A report about the kernels that a plan would have, the reasons for them, and the bytes, operations and shortest
 * possible times of `batch` entries (0: about 2^28 points). Nothing is compiled. The GPU is that of the context. If
 * context is NULL, facts_file describes the GPU in key=value lines, as conv_fft_devices_report() prints them, and no
 * GPU is needed. text, bytes, needed: as in conv_fft_devices_report(). INVALID_ARGUMENT; NOT_SUPPORTED: the plane is
 * too large for the GPU, its compute capability is below 8.0, or the context is a CPU's; IO_ERROR: the file cannot be
 * read.
 */
CONV_FFT_API conv_fft_status fbfft_explain(const conv_fft_context *context, const char *facts_file,
                                           const fbfft_desc *desc, int64_t batch, char *text, size_t bytes,
                                           size_t *needed);

#ifdef __cplusplus
}
#endif

#endif /* FBFFT_H */
