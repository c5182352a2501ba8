/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CONV_STAGE_TEXT_H
#define CF_CONV_STAGE_TEXT_H

/* The small operations of conv/gpu and those of families, to stand behind the text of fbfft's headers; made by cmake/Kernels.cmake. */
extern const char cf_stage_kernel_text[];

#endif
