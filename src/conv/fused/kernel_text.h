/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CONV_FUSED_TEXT_H
#define CF_CONV_FUSED_TEXT_H

/* The kernels of conv/fused and conv/long1d. fbfft's device headers come before them. cmake/Kernels.cmake makes it. */
extern const char cf_fused_kernel_text[];

#endif
