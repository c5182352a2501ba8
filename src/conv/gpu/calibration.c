/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/gpu/calibration.h"

#include <string.h>

/* A GPU that is measured is a file and a line here. */
static const cf_calibration *const calibrations[] = {&cf_calibration_h200, &cf_calibration_h100};

const cf_calibration *cf_calibration_of(const char *name) {
    for (size_t i = 0; i < sizeof calibrations / sizeof calibrations[0]; ++i)
        if (strstr(name, calibrations[i]->device))
            return calibrations[i];
    return calibrations[0];
}
