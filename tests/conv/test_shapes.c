/* SPDX-License-Identifier: Apache-2.0 */
/* The named problems of shapes/, one test each: all passes, with and without bias, accumulated, kept, and in the least
 * workspace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/layer.h"
#include "support/layer_problems.h"

#include <stdlib.h>

static void test_shape(void **state) { assert_true(check_named_problem(*state)); }

/* An argument is the pattern of the shapes to run (`*` and `?`); none: all. */
int main(int argc, char **argv) {
    int64_t count;
    named_problem *problems = read_problems("data/shapes", &count);
    struct CMUnitTest *tests = test_alloc((size_t)count * sizeof *tests);
    for (int64_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){problems[i].name, test_shape, NULL, NULL, &problems[i]};
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    const int failed = _cmocka_run_group_tests("shapes", tests, (size_t)count, device_cpu_setup, device_teardown);
    print_worst_ratios("shapes");
    free(tests);
    free(problems);
    return failed;
}
