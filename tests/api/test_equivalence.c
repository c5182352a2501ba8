/* SPDX-License-Identifier: Apache-2.0 */
/* Every strategy computes the same layer: tiles, overlap, products, chunks, threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/layer.h"
#include "support/layer_strategies.h"

static void thread_counts(void **state) {
    (void)state;
    const conv_fft_problem p = test_problem("in=5x6x13x14 out=6 kernel=5x4 pad=2 groups=2");
    generator g = test_generator(6);
    layer l = layer_create(&p, &g);
    for (int threads = 1; threads <= 5; threads += 2) {
        conv_fft_context *own = test_context(threads);
        conv_fft_plan *plan = test_plan(own, &p, NULL);
        assert_true(plan && layer_check_all(&l, plan));
        conv_fft_plan_destroy(plan);
        conv_fft_context_destroy(own);
    }
    layer_destroy(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_tiled),         cmocka_unit_test(ways_cut),      cmocka_unit_test(ways_chunked),
        cmocka_unit_test(ways_forced_chunks), cmocka_unit_test(thread_counts),
    };
    return cmocka_run_group_tests(tests, device_cpu_setup, device_teardown);
}
