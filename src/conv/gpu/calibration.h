/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CONV_GPU_CALIBRATION_H
#define CF_CONV_GPU_CALIBRATION_H

#include "core/calibration.h"

extern const cf_calibration cf_calibration_h200, cf_calibration_h100;

/* The table of the GPU of this name. A GPU that was not measured has the first one. */
const cf_calibration *cf_calibration_of(const char *name);

#endif
