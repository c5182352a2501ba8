/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded random problems of all kinds, each compared with the reference in all passes and by the adjoint identity.
 * Problem i of a run has the seed CONV_FFT_TEST_SEED + i: that seed and a count of 1 replay it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/compare.h"
#include "support/device.h"
#include "support/layer_problems.h"

enum {
    COUNT = TEST_AMOUNT(20000, 2000)
};

static void test_random_problems(void **state) {
    (void)state;
    assert_true(check_random_problems(COUNT));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_problems)};
    return cmocka_run_group_tests(tests, device_cpu_setup, device_teardown);
}
