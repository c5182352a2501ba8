/* SPDX-License-Identifier: Apache-2.0 */
/* The named problems of shapes/ on a GPU, as test_conv_shapes runs them on the CPU, and once more with aligned tensors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device.h"
#include "gpu.h"
#include "layer.h"
#include "layer_problems.h"

#include <fnmatch.h>
#include <stdlib.h>

static const char *pattern = "*";

static void check(int64_t i, void *problems) {
    const named_problem *const named = (const named_problem *)problems + i;
    if (fnmatch(pattern, named->name, 0) == 0)
        check_named_problem(named);
}

static void shapes(void **state) {
    NEED_DEVICE(state);
    int64_t count;
    named_problem *problems = read_problems("shapes", &count);
    device_each(count, check, problems);
    free(problems);
    print_worst_ratios("shapes");
    assert_int_equal(case_failures(), 0);
}

/* An argument is the pattern of the shapes to run (`*` and `?`); none: all. */
int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes)};
    if (argc > 1)
        pattern = argv[1];
    return gpu_exit_status(
        cmocka_run_group_tests_name("named layers on a GPU", tests, device_gpu_setup, device_teardown));
}
