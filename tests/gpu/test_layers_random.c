/* SPDX-License-Identifier: Apache-2.0 */
/* The random problems of conv/test_random.c on a GPU. There are fewer, because each has its own kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/gpu.h"
#include "support/layer_problems.h"

enum {
    COUNT = 300
};

static void random_problems(void **state) {
    NEED_DEVICE(state);
    assert_true(check_random_problems(COUNT));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_problems)};
    gpu_read_filters();
    return gpu_exit_status(
        cmocka_run_group_tests_name("random layers on a GPU", tests, device_gpu_setup, device_teardown));
}
