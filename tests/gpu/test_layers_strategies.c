/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of api/test_equivalence.c on a GPU: given strategies and workspace limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/gpu.h"
#include "support/layer_strategies.h"

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_tiled),
        cmocka_unit_test(ways_cut),
        cmocka_unit_test(ways_chunked),
        cmocka_unit_test(ways_forced_chunks),
    };
    gpu_read_filters();
    return gpu_exit_status(
        cmocka_run_group_tests_name("ways of layers on a GPU", tests, device_gpu_setup, device_teardown));
}
