/* SPDX-License-Identifier: Apache-2.0 */
/* The reference itself: conversions of element types, the direct convolution, its gradients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "reference/conv.h"
#include "reference/dft.h"
#include "reference/dtype.h"
#include "support/random_problems.h"
#include "support/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- conversions: every pattern, and the three interesting points between neighbours */

static void check_16_bits(conv_fft_dtype dtype) {
    const unsigned infinity = dtype == CONV_FFT_FP16 ? 0x7c00 : 0x7f80;
    for (unsigned pattern = 0; pattern < 0x10000; pattern++) {
        const double value = ref_decode16(dtype, (uint16_t)pattern);
        if ((pattern & 0x7fff) > infinity) {
            assert_true(isnan(value));
            assert_true((ref_encode16(dtype, value) & 0x7fff) > infinity);
        } else {
            assert_int_equal(ref_encode16(dtype, value), pattern);
        }
    }
    for (unsigned pattern = 0; pattern + 1 < infinity; pattern++) {
        const double low = ref_decode16(dtype, (uint16_t)pattern), high = ref_decode16(dtype, (uint16_t)(pattern + 1));
        const double middle = (low + high) / 2;
        assert_true(low < high);
        assert_int_equal(ref_encode16(dtype, middle), pattern + (pattern & 1));
        assert_int_equal(ref_encode16(dtype, nextafter(middle, 0)), pattern);
        assert_int_equal(ref_encode16(dtype, nextafter(middle, INFINITY)), pattern + 1);
        assert_int_equal(ref_encode16(dtype, -middle), 0x8000 | (pattern + (pattern & 1)));
    }
}

static void test_fp16(void **state) {
    (void)state;
    check_16_bits(CONV_FFT_FP16);
    assert_true(ref_decode16(CONV_FFT_FP16, 0x3c00) == 1);
    assert_true(ref_decode16(CONV_FFT_FP16, 0xc100) == -2.5);
    assert_true(ref_decode16(CONV_FFT_FP16, 0x0001) == 0x1p-24);
    assert_true(ref_decode16(CONV_FFT_FP16, 0x7bff) == 65504);
    assert_int_equal(ref_encode16(CONV_FFT_FP16, 65519.9), 0x7bff);
    assert_int_equal(ref_encode16(CONV_FFT_FP16, 65520), 0x7c00);
    assert_int_equal(ref_encode16(CONV_FFT_FP16, -1e300), 0xfc00);
    assert_int_equal(ref_encode16(CONV_FFT_FP16, 0x1p-25), 0);
    assert_int_equal(ref_encode16(CONV_FFT_FP16, -0.0), 0x8000);
}

static void test_bf16(void **state) {
    (void)state;
    check_16_bits(CONV_FFT_BF16);
    for (unsigned pattern = 0; pattern < 0x7f80; pattern++) { /* the upper half of a binary32 */
        const uint32_t bits = pattern << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        assert_true(ref_decode16(CONV_FFT_BF16, (uint16_t)pattern) == (double)value);
    }
}

/* ---- the reference */

/* Small integers by hand: x = 1 2 3, w = 1 10, one zero on each side; then the gradients of gy = 1 0 0 100. */
static void test_reference_by_hand(void **state) {
    (void)state;
    conv_fft_problem p = {.rank = 1, .batch = 1, .in_channels = 1, .out_channels = 1, .groups = 1};
    p.input[0] = 3;
    p.kernel[0] = 2;
    p.stride[0] = p.dilation[0] = p.pad_before[0] = p.pad_after[0] = 1;
    const ref_shape s = ref_shape_of(&p);
    const double x[] = {1, 2, 3}, w[] = {1, 10}, gy[] = {1, 0, 0, 100};
    const double y[] = {10, 21, 32, 3}, gx[] = {10, 0, 100}, gw[] = {300, 1};
    double out[4];
    ref_forward(&s, x, w, out);
    assert_memory_equal(out, y, sizeof y);
    ref_backward_data(&s, w, gy, out);
    assert_memory_equal(out, gx, sizeof gx);
    ref_backward_weights(&s, x, gy, out);
    assert_memory_equal(out, gw, sizeof gw);
    ref_backward_bias(&s, gy, out);
    assert_true(out[0] == 101);
}

static void test_padding_modes(void **state) {
    (void)state;
    static const int expected[4][9] = {{-1, -1, -1, 0, 1, 2, -1, -1, -1},
                                       {0, 1, 2, 0, 1, 2, 0, 1, 2},
                                       {0, 2, 1, 0, 1, 2, 1, 0, 0},
                                       {0, 0, 0, 0, 1, 2, 2, 2, 2}};
    for (int mode = 0; mode < 4; mode++)
        for (int i = -3; i < 6; i++)
            if (mode != CONV_FFT_PAD_REFLECT || (i > -3 && i < 5)) /* reflect: at most extent - 1 beyond the edge */
                assert_int_equal(ref_source((conv_fft_padding)mode, i, 3), expected[mode][i + 3]);
}

/* y = IDFT(DFT(x) conj(DFT(w))) if the padding is circular and the kernel as long as the input. */
static void test_circular_theorem(void **state) {
    (void)state;
    enum {
        N = 15
    };
    conv_fft_problem p = {.rank = 1, .batch = 1, .in_channels = 1, .out_channels = 1, .groups = 1};
    p.input[0] = p.kernel[0] = N;
    p.stride[0] = p.dilation[0] = 1;
    p.pad_after[0] = N - 1;
    p.padding = CONV_FFT_PAD_CIRCULAR;
    const ref_shape s = ref_shape_of(&p);
    generator g = test_generator(1);
    double x[N], w[N], y[N], cx[2 * N], cw[2 * N], fx[2 * N], fw[2 * N];
    random_values(&g, N, x);
    random_values(&g, N, w);
    ref_forward(&s, x, w, y);
    for (int i = 0; i < N; i++) {
        cx[2 * i] = x[i];
        cw[2 * i] = w[i];
        cx[2 * i + 1] = cw[2 * i + 1] = 0;
    }
    ref_dft(N, -1, cx, fx);
    ref_dft(N, -1, cw, fw);
    for (int i = 0; i < N; i++) {
        cx[2 * i] = fx[2 * i] * fw[2 * i] + fx[2 * i + 1] * fw[2 * i + 1];
        cx[2 * i + 1] = fx[2 * i + 1] * fw[2 * i] - fx[2 * i] * fw[2 * i + 1];
    }
    ref_dft(N, 1, cx, fx);
    for (int i = 0; i < N; i++)
        assert_true(fabs(fx[2 * i] / N - y[i]) <= 1e-13);
}

/* <gy, y> = <gx, x> = <gw, w> over the random problems, so that the gradients belong to the forward pass. */
static void test_reference_is_adjoint(void **state) {
    (void)state;
    for (uint64_t number = 0; number < 500; number++) {
        generator g = test_generator(number);
        const conv_fft_problem p = random_problem(&g, 1e5);
        const ref_shape s = ref_shape_of(&p);
        const int64_t nx = ref_input_count(&s), nw = ref_weight_count(&s), ny = ref_output_count(&s);
        double *all = test_alloc((size_t)(2 * (nx + nw + ny)) * sizeof *all);
        double *x = all, *w = x + nx, *gy = w + nw, *y = gy + ny, *gx = y + ny, *gw = gx + nx;
        random_values(&g, nx + nw + ny, all);
        ref_forward(&s, x, w, y);
        ref_backward_data(&s, w, gy, gx);
        ref_backward_weights(&s, x, gy, gw);
        double forward = 0, data = 0, weights = 0, size = 1;
        for (int64_t i = 0; i < ny; i++) {
            forward += y[i] * gy[i];
            size += fabs(y[i] * gy[i]);
        }
        for (int64_t i = 0; i < nx; i++)
            data += gx[i] * x[i];
        for (int64_t i = 0; i < nw; i++)
            weights += gw[i] * w[i];
        assert_true(fabs(forward - data) <= 1e-12 * size);
        assert_true(fabs(forward - weights) <= 1e-12 * size);
        free(all);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fp16),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_reference_by_hand),
        cmocka_unit_test(test_padding_modes),
        cmocka_unit_test(test_circular_theorem),
        cmocka_unit_test(test_reference_is_adjoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
