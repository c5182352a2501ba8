/* SPDX-License-Identifier: Apache-2.0 */
/* The named problems of shapes/ on a GPU, as test_conv_shapes runs them on the CPU, and once more with aligned
 * tensors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/gpu.h"
#include "support/layer.h"
#include "support/layer_problems.h"

#include <stdlib.h>

static void check(int64_t i, void *problems) { check_named_problem((const named_problem *)problems + i); }

static void shapes(void **state) {
    NEED_DEVICE(state);
    int64_t count;
    named_problem *problems = read_problems("data/shapes", &count);
    case_list list = {.name = "gpu_layers_shapes"};
    for (int64_t i = 0; i < count; i++)
        case_list_add(&list, "%s", problems[i].name);
    device_each(&list, check, problems);
    free(problems);
    print_worst_ratios("shapes");
    assert_int_equal(case_failures(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes)};
    gpu_read_filters();
    return gpu_exit_status(
        cmocka_run_group_tests_name("named layers on a GPU", tests, device_gpu_setup, device_teardown));
}
