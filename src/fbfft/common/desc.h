/* SPDX-License-Identifier: Apache-2.0 */
/* A public description with every default filled in, in the terms that both devices work with. */
#ifndef CF_FBFFT_DESC_H
#define CF_FBFFT_DESC_H

#include "core/device_ops.h"
#include "fbfft.h"

/* A spectrum whose element (sample, channel, bin k) stands, in complex numbers, at
 *     sample * sample_stride + channel * channel_stride + sum over the axes of k * axis_stride
 * or, frequency-major, at (sum of k * axis_stride) * (batch * channels) + sample * channels + channel. */
typedef struct cf_fft_layout {
    bool frequency_major;
    int64_t sample_stride, channel_stride, axis_stride[3];
} cf_fft_layout;

/* A transform, rows of its spectrum being batch entries: axes are aligned to the right (those of rank 2 are axes 1 and 2). The
 * spectrum's `rows` is not known yet and 0; `channels` = `columns`. Of complex signals all bins count: bins is the product of the basis. */
typedef struct cf_fft_problem {
    cf_transform_desc transform;
    bool complex_signal;
    bool half;  /* pairs of FP16 on both sides: c2c_fp16/plan.h */
    bool adds;  /* some call of the inverse accumulates, or adds a bias */
    bool leads; /* what reads the spectrum has something to do before: CF_PDL_TRIGGER of cuda/jit/nvrtc.h */
    cf_fft_layout layout;
} cf_fft_problem;

/* INVALID_ARGUMENT: the sentence names the field. */
conv_fft_status cf_fft_check_kind(int rank, int kind);
conv_fft_status cf_fft_resolve(const fbfft_desc *desc, cf_fft_problem *problem);

/* Elements, numbers of the signal's dtype (pairs for complex signals), from the first of B entries to the last; of the spectrum,
 * pairs. INVALID_ARGUMENT: beyond 63 bits of bytes. */
conv_fft_status cf_fft_signal_elements(const cf_fft_problem *problem, int64_t batch, int64_t *elements);
conv_fft_status cf_fft_spectrum_elements(const cf_fft_problem *problem, int64_t batch, int64_t *elements);

/* Whether an execution of B >= 0 entries has sense: both of the above, and no two elements of a written signal in one place. */
conv_fft_status cf_fft_check_batch(const cf_fft_problem *problem, int64_t batch);

#endif
