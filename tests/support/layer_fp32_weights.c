/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/layer_fp32_weights.h"

#include "support/device.h"
#include "support/layer.h"

#include <math.h>

/* x is 1, w is 1 + delta, the bias is -1 - delta / 2: y is delta / 2. In 16 bits w would be 1, and the bias -1. gx is
 * 1 + delta, rounded to the type of the tensors. */
static bool keeps_bits(const char *line, double delta) {
    const conv_fft_problem p = test_problem(line);
    generator g = test_generator(1);
    layer l = layer_create(&p, &g);
    double values[1024];
    assert_true(l.x.tensor.count <= 1024 && l.y.tensor.count <= 1024);
    for (int i = 0; i < 1024; i++)
        values[i] = 1.0;
    layer_set(&l, &l.x, values);
    for (int64_t i = 0; i < l.w.tensor.count; i++)
        values[i] = 1.0 + delta;
    layer_set(&l, &l.w, values);
    for (int64_t i = 0; i < l.bias.tensor.count; i++)
        values[i] = -1.0 - delta / 2;
    layer_set(&l, &l.bias, values);
    conv_fft_plan *plan = test_plan(device_context(), &p, NULL);
    guarded workspace = layer_workspace(&l, plan, CONV_FFT_FORWARD);
    bool ok =
        check_status(conv_fft_forward(plan, l.x.tensor.memory.data, l.w.tensor.memory.data, l.bias.tensor.memory.data,
                                      l.y.tensor.memory.data, workspace.data, workspace.bytes, device_stream()),
                     "conv_fft_forward");
    for (int64_t i = 0; ok && i < l.y.tensor.count; i++) {
        const double y = tensor_load(&l.y.tensor, i);
        if (!(fabs(y - delta / 2) <= delta / 16))
            ok = case_fail("y[%d] is %g; it must be %g", (int)i, y, delta / 2);
    }
    ok = release_workspace(&workspace, "conv_fft_forward") && ok;
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
    return ok;
}

void fp32_weights_keep_their_bits(void **state) {
    NEED_DEVICE(state);
    /* The roundoff of FP16 near 1 is 2^-11, that of BF16 2^-8. Sums are of FP32. */
    assert_true(keeps_bits("in=2x8x8x8 out=8 kernel=1 groups=8 dtype=fp16 w=fp32", 0x1p-14));
    assert_true(keeps_bits("in=2x8x8x8 out=8 kernel=1 groups=8 dtype=bf16 w=fp32 layout=last", 0x1p-11));
    assert_true(keeps_bits("in=2x4x128 out=4 kernel=1 groups=4 dtype=bf16 w=fp32", 0x1p-11));
}
