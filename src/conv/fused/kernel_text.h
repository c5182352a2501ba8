/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CONV_FUSED_TEXT_H
#define CF_CONV_FUSED_TEXT_H

/* fused/shared_memory.cuh, to stand behind the text of fbfft's headers; made by cmake/Kernels.cmake. */
extern const char cf_fused_kernel_text[];

#endif
