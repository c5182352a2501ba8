/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from cpu_spatial_check.c, because headers of conv and of cpu use the same words. */
#include "conv/spatial/spatial.h"
#include "support/cpu_spatial_check.h"

#include <stdio.h>
#include <stdlib.h>

cf_convolution_desc test_convolution(const conv_fft_problem *problem, int pass) {
    cf_layer layer;
    if (cf_layer_make(problem, &layer) != CONV_FFT_SUCCESS) {
        fprintf(stderr, "%s\n", conv_fft_last_error());
        exit(1);
    }
    return cf_spatial_describe(&layer, pass);
}
