/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CONV_PRODUCT_TEXT_H
#define CF_CONV_PRODUCT_TEXT_H

/* wgmma.cuh and the files cgemm_*.cuh, to stand behind the text of fbfft's headers; made by cmake/Kernels.cmake. */
extern const char cf_product_kernel_text[];

#endif
