/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of conv/test_properties.c on a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/gpu.h"
#include "support/layer_fp32_weights.h"
#include "support/layer_properties.h"

int main(void) {
    const struct CMUnitTest tests[] = {LAYER_PROPERTIES, cmocka_unit_test(fp32_weights_keep_their_bits)};
    gpu_read_filters();
    return gpu_exit_status(cmocka_run_group_tests_name("layers on a GPU", tests, device_gpu_setup, device_teardown));
}
