/* SPDX-License-Identifier: Apache-2.0 */
/* FP32 weights and biases beside 16-bit tensors: what calls read, and which pointers they take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/error_text.h"
#include "support/layer.h"
#include "support/layer_fp32_weights.h"

/* The alignment of w and bias is that of FP32, the alignment of x and y that of their own type. */
static void test_alignment(void **state) {
    (void)state;
    const conv_fft_problem p = test_problem("in=2x4x8x8 out=4 kernel=3 pad=1 dtype=fp16 w=fp32");
    generator g = test_generator(1);
    layer l = layer_create(&p, &g);
    conv_fft_plan *plan = test_plan(device_context(), &p, NULL);
    guarded workspace = layer_workspace(&l, plan, CONV_FFT_FORWARD);
    const char *const x = (const char *)l.x.tensor.memory.data, *const w = (const char *)l.w.tensor.memory.data,
                      *const bias = (const char *)l.bias.tensor.memory.data;
    void *const y = l.y.tensor.memory.data;
    const size_t bytes = workspace.bytes;
    EXPECT_INVALID(conv_fft_forward(plan, x, w + 2, bias, y, workspace.data, bytes, NULL), "w is", "multiple of 4", "");
    EXPECT_INVALID(conv_fft_forward(plan, x, w, bias + 2, y, workspace.data, bytes, NULL), "bias is", "multiple of 4",
                   "");
    EXPECT_INVALID(conv_fft_forward(plan, x + 1, w, bias, y, workspace.data, bytes, NULL), "x is", "multiple of 2", "");
    assert_int_equal(conv_fft_forward(plan, x, w, bias, y, workspace.data, bytes, NULL), CONV_FFT_SUCCESS);
    guarded_destroy(&workspace);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp32_weights_keep_their_bits),
        cmocka_unit_test(test_alignment),
    };
    return cmocka_run_group_tests(tests, device_cpu_setup, device_teardown);
}
