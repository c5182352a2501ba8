/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CONV_SCAN_TEXT_H
#define CF_CONV_SCAN_TEXT_H

/* scan.cuh, to stand behind the text of fbfft's headers; made by cmake/Kernels.cmake. */
extern const char cf_scan_kernel_text[];

#endif
