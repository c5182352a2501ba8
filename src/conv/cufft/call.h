/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of the kernels beside cuFFT (pad_crop.cuh), for the host, the kernels and the emulator. */
#ifndef CF_CONV_CUFFT_CALL_H
#define CF_CONV_CUFFT_CALL_H

/* Planes of a tensor, counted by three indices (a, b, c), c fastest. The planes from `first` on are dense in the memory
 * of cuFFT. Strides are in elements, those of the spectrum in complex numbers. */
typedef struct cf_cufft_planes {
    long long first, count, b, c;
    long long tensor[3], spectrum[3];      /* strides of a, b, c */
    long long extent[3], stride[3], at[3]; /* of the tensor's axes: element e of an axis is at position e + at */
    long long basis[3], bins, bin_stride;
    int type, accumulate;
    double scale;
} cf_cufft_planes;

#endif
