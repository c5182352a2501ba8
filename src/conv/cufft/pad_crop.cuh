/* SPDX-License-Identifier: Apache-2.0 */
/* Family `cufft`: the steps between a tensor and cuFFT. Each is a kernel of its own and goes through memory, as
 * in section 3 of the fbfft paper. */
#pragma once

#include "conv/cufft/call.h"
#include "conv/gpu/tensor.cuh"

CF_DEVICE void plane_of(const cf_cufft_planes &p, long long n, long long index[3]) {
    n += p.first;
    index[2] = n % p.c;
    index[1] = n / p.c % p.b;
    index[0] = n / p.c / p.b;
}
CF_DEVICE long long offset_of(const long long index[3], const long long stride[3]) {
    return index[0] * stride[0] + index[1] * stride[1] + index[2] * stride[2];
}

/* Copy planes of the tensor to their padded form. */
CF_DEVICE void cufft_pad(const cf_cufft_planes &p, const void *tensor, real *padded) {
    const long long points = p.basis[0] * p.basis[1] * p.basis[2], count = p.count * points;
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        const long long i = n % points;
        const long long e[3] = {i / p.basis[2] / p.basis[1] - p.at[0], i / p.basis[2] % p.basis[1] - p.at[1],
                                i % p.basis[2] - p.at[2]};
        bool inside = true;
        for (int a = 0; a < 3; ++a)
            inside = inside && e[a] >= 0 && e[a] < p.extent[a];
        double value = 0;
        if (inside) {
            long long index[3];
            plane_of(p, n / points, index);
            value = load_as(tensor, offset_of(index, p.tensor) + offset_of(e, p.stride), p.type);
        }
        padded[n] = real(value);
    }
}

/* Copy the tensor's part of padded planes back, scaled. `bias` (indexed by b and c) may be NULL. */
CF_DEVICE void cufft_crop(const cf_cufft_planes &p, const real *padded, void *tensor, const void *bias) {
    const long long elements = p.extent[0] * p.extent[1] * p.extent[2], count = p.count * elements;
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        const long long i = n % elements, plane = n / elements;
        const long long e[3] = {i / p.extent[2] / p.extent[1], i / p.extent[2] % p.extent[1], i % p.extent[2]};
        long long index[3];
        plane_of(p, plane, index);
        const long long at = offset_of(index, p.tensor) + offset_of(e, p.stride);
        const long long position =
            ((plane * p.basis[0] + e[0] + p.at[0]) * p.basis[1] + e[1] + p.at[1]) * p.basis[2] + e[2] + p.at[2];
        double value = double(padded[position]) * p.scale;
        if (bias)
            value += load_as(bias, index[1] * p.c + index[2], p.type);
        store_as(tensor, at, p.type, p.accumulate ? value + load_as(tensor, at, p.type) : value);
    }
}

/* Transpose [plane][bin] to the frequency-major spectrum, or back, in squares of 32 x 32 in shared memory. A block
 * has 32 x 8 threads. */
template <bool TO_SPECTRUM> CF_DEVICE void cufft_transpose(const cf_cufft_planes &p, cplx *planes, cplx *spectrum) {
    smem<cplx> tile = cf_dynamic_shared<cplx>();
    const long long across = (p.bins + 31) / 32, down = (p.count + 31) / 32;
    const int lane = int(threadIdx.x) % 32, row = int(threadIdx.x) / 32;
    for (long long t = blockIdx.x; t < across * down; t += gridDim.x) {
        const long long bin = t % across * 32, plane = t / across * 32;
        long long index[3];
        plane_of(p, plane + lane, index);
        const long long column = offset_of(index, p.spectrum);
        for (int i = row; i < 32; i += 8) {
            if (TO_SPECTRUM && plane + i < p.count && bin + lane < p.bins)
                tile[i * 33 + lane] = planes[(plane + i) * p.bins + bin + lane];
            if (!TO_SPECTRUM && plane + lane < p.count && bin + i < p.bins)
                tile[lane * 33 + i] = spectrum[(bin + i) * p.bin_stride + column];
        }
        __syncthreads();
        for (int i = row; i < 32; i += 8) {
            if (TO_SPECTRUM && plane + lane < p.count && bin + i < p.bins)
                spectrum[(bin + i) * p.bin_stride + column] = tile[lane * 33 + i];
            if (!TO_SPECTRUM && plane + i < p.count && bin + lane < p.bins)
                planes[(plane + i) * p.bins + bin + lane] = tile[i * 33 + lane];
        }
        __syncthreads();
    }
}

/* The entry points. */
#define CF_CUFFT_PAD_KERNEL                                                                              \
    extern "C" __global__ void cf_cufft_pad(const cf_cufft_planes p, const void *tensor, real *padded) { \
        cf_pdl_wait();                                                                                   \
        cufft_pad(p, tensor, padded);                                                                    \
    }
#define CF_CUFFT_CROP_KERNEL                                                                            \
    extern "C" __global__ void cf_cufft_crop(const cf_cufft_planes p, const real *padded, void *tensor, \
                                             const void *bias) {                                        \
        cf_pdl_wait();                                                                                  \
        cufft_crop(p, padded, tensor, bias);                                                            \
    }
#define CF_CUFFT_TO_SPECTRUM_KERNEL                                                                          \
    extern "C" __global__ void cf_cufft_to_spectrum(const cf_cufft_planes p, cplx *planes, cplx *spectrum) { \
        cf_pdl_wait();                                                                                       \
        cufft_transpose<true>(p, planes, spectrum);                                                          \
    }
#define CF_CUFFT_FROM_SPECTRUM_KERNEL                                                                          \
    extern "C" __global__ void cf_cufft_from_spectrum(const cf_cufft_planes p, cplx *planes, cplx *spectrum) { \
        cf_pdl_wait();                                                                                         \
        cufft_transpose<false>(p, planes, spectrum);                                                           \
    }
