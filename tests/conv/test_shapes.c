/* SPDX-License-Identifier: Apache-2.0 */
/* The named problems of shapes/, one test each: all passes, with and without bias, accumulated, with kept spectra, and
 * in the smallest workspace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/layer.h"
#include "support/layer_problems.h"

#include <stdlib.h>

static void test_shape(void **state) { assert_true(check_named_problem(*state)); }

/* CONV_FFT_TEST_CASE: the pattern of the shapes to run (`*` and `?`); not set: all. */
int main(void) {
    int64_t count;
    named_problem *problems = read_problems("data/shapes", &count);
    struct CMUnitTest *tests = test_alloc((size_t)count * sizeof *tests);
    for (int64_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){problems[i].name, test_shape, NULL, NULL, &problems[i]};
    const char *const pattern = getenv("CONV_FFT_TEST_CASE");
    if (pattern && *pattern) {
        cmocka_set_test_filter(pattern);
        print_message("those of %d cases whose names contain %s\n", (int)count, pattern);
    }
    const int failed = _cmocka_run_group_tests("shapes", tests, (size_t)count, device_cpu_setup, device_teardown);
    print_worst_ratios("shapes");
    free(tests);
    free(problems);
    return failed;
}
