/* SPDX-License-Identifier: Apache-2.0 */
/* A public description with every default filled in, in the terms of both devices. */
#ifndef CF_FBFFT_DESC_H
#define CF_FBFFT_DESC_H

#include "core/device_ops.h"
#include "fbfft.h"

/* The layout of a spectrum. Element (sample, channel, bin k) is, in complex numbers, at
 *     sample * sample_stride + channel * channel_stride + sum over the axes of k * axis_stride
 * or, frequency-major, at (sum of k * axis_stride) * (batch * channels) + sample * channels + channel. */
typedef struct cf_fft_layout {
    bool frequency_major;
    int64_t sample_stride, channel_stride, axis_stride[3];
} cf_fft_layout;

/* A transform. Rows of its spectrum are batch entries. Axes are aligned to the right: those of rank 2 are axes 1 and
 * 2. The number of rows is not known yet and 0. `channels` equals `columns`. Complex signals have all bins: their
 * number is the product of the basis. */
typedef struct cf_fft_problem {
    cf_transform_desc transform;
    bool complex_signal;
    bool c2c_fp16;  /* signal and spectrum are complex FP16 numbers: c2c_fp16/plan.h */
    bool c2c_split; /* arithmetic SPLIT: c2c_split/plan.h */
    bool adds;      /* some call of the inverse accumulates or adds a bias */
    /* the kernel that reads the spectrum has work before its PDL wait: cf_pdl_trigger() of common/platform.cuh */
    bool pdl_trigger;
    cf_fft_layout layout;
} cf_fft_problem;

/* INVALID_ARGUMENT: the sentence names the field. */
conv_fft_status cf_fft_check_kind(int rank, int kind);
conv_fft_status cf_fft_resolve(const fbfft_desc *desc, cf_fft_problem *problem);

/* Elements from the first of B entries to the last: numbers of the signal's dtype (complex numbers for complex
 * signals), and complex numbers of the spectrum. INVALID_ARGUMENT: more bytes than 63 bits can count. */
conv_fft_status cf_fft_signal_elements(const cf_fft_problem *problem, int64_t batch, int64_t *elements);
conv_fft_status cf_fft_spectrum_elements(const cf_fft_problem *problem, int64_t batch, int64_t *elements);

/* Whether an execution of B >= 0 entries is valid: both sizes are, and no two elements of a signal that is written
 * have one address. */
conv_fft_status cf_fft_check_batch(const cf_fft_problem *problem, int64_t batch);

#endif
