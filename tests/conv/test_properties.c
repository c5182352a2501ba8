/* SPDX-License-Identifier: Apache-2.0 */
/* Properties that need no reference, for every strategy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/layer_properties.h"

int main(void) {
    const struct CMUnitTest tests[] = {LAYER_PROPERTIES};
    return cmocka_run_group_tests(tests, device_cpu_setup, device_teardown);
}
