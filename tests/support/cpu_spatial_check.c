/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cpu_spatial_check.h"

#include "cpu/spatial/convolution.h"

bool has_positions_as_vectors(const cf_device *device, const cf_convolution_desc *desc, bool *joined) {
    const cf_convolution c = cf_convolution_blocks(device, desc);
    *joined = c.rows_joined;
    return c.positions_are_vectors;
}

bool has_whole_rows(const cf_device *device, const cf_convolution_desc *desc) {
    return cf_convolution_blocks(device, desc).whole_rows;
}

bool packs_once(cf_device *device, const cf_convolution_desc *desc) {
    cf_convolution *c;
    if (cf_cpu_convolution_create(device, desc, &c) != CONV_FFT_SUCCESS)
        return false;
    const bool result = c->weights_once || c->sums_stay;
    cf_cpu_convolution_destroy(c);
    return result;
}
