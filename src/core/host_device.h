/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the headers call.h and geometry.h: one text for the host (C11), the kernels (CUDA C++) and the emulator. Such a
 * header has structs and functions of numbers only. NVRTC has no headers of C, so their integers are int and long long.
 */
#ifndef CF_CORE_HOST_DEVICE_H
#define CF_CORE_HOST_DEVICE_H

/* A function that the host calls, and that kernels use for constants. */
#ifdef __cplusplus
#ifdef CF_SIMT
#include <simt.h>
#endif
#define CF_CONSTEXPR __host__ __device__ constexpr
#else
#include <stdbool.h>
#define CF_CONSTEXPR static inline
#endif

#endif
