/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of layers on device_context() that need no reference and hold for any contents of other memory: tests for
 * cmocka. */
#ifndef TEST_LAYER_PROPERTIES_H
#define TEST_LAYER_PROPERTIES_H

#include "conv_fft.h"

void property_linearity(void **state);
void property_impulse(void **state);
void property_shift(void **state);
void property_accumulate(void **state);
void property_repeated_input(void **state);
void property_isolation(void **state);
void property_determinism(void **state);
void property_spread(void **state);

/* Two of these checks, for one layer of several samples and one strategy. They do not call cmocka: what they find are
 * failures of a case. */
void check_isolation(const conv_fft_problem *p, const conv_fft_plan_options *options);
void check_determinism(const conv_fft_problem *p, const conv_fft_plan_options *options);

/* All of them. */
#define LAYER_PROPERTIES                                                                                        \
    cmocka_unit_test(property_linearity), cmocka_unit_test(property_impulse), cmocka_unit_test(property_shift), \
        cmocka_unit_test(property_accumulate), cmocka_unit_test(property_repeated_input),                       \
        cmocka_unit_test(property_isolation), cmocka_unit_test(property_determinism),                           \
        cmocka_unit_test(property_spread)

#endif
