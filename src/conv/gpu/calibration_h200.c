/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/gpu/calibration_hopper.h"

const cf_calibration cf_calibration_h200 = {.device = "H200", .memory_rate = 0.6, CF_HOPPER_FIGURES};
