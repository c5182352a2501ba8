/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/model/baseline.h"

#include "conv/plan/family.h"

#include <math.h>

static bool take_first(const cf_strategy *strategy, void *user) {
    *(cf_strategy *)user = *strategy;
    return false;
}

conv_fft_status cf_choose_baseline(const cf_layer *layer, cf_device *device, int pass, double staged,
                                   cf_strategy *strategy, double *seconds) {
    const double less = 0.95; /* strategies of this library win where both should take as long */
    double limit = fmin(staged, *seconds);
    for (int i = 0; cf_families[i]; ++i) {
        const cf_family *const family = cf_families[i];
        const char *why;
        if (!family->first_seconds)
            continue;
        const double expected = family->first_seconds(layer, device, pass);
        cf_strategy first = {.family = NULL};
        if (expected >= less * limit)
            continue;
        const conv_fft_status status = family->candidates(layer, device, pass, take_first, &first);
        if (status == CONV_FFT_OUT_OF_MEMORY)
            return status;
        if (status != CONV_FFT_SUCCESS || !first.family || !family->runs_on(device, layer, pass, &first, &why))
            continue;
        *strategy = first;
        *seconds = limit = expected;
    }
    return CONV_FFT_SUCCESS;
}
