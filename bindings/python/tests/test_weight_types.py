# SPDX-License-Identifier: Apache-2.0
"""float32 weights and biases beside 16-bit arrays."""
import conv_fft
import numpy
import pytest
import reference

BOUND = 2.0 ** -10  # of float16, as in test_arrays.py


@pytest.mark.parametrize("layout", ("first", "last"))
def test_float32_weights_beside_16_bit_arrays(random, layout):
    x, w = random.standard_normal((2, 3, 9, 9)).astype("float16"), random.standard_normal((4, 3, 3, 3)).astype("f")
    bias, rule = random.standard_normal(4).astype("f"), ((1, 1), (0, 0), (0, 0), (1, 1), 1)
    exact, size = reference.forward(x, w, bias, *rule), reference.forward(abs(x), abs(w), abs(bias), *rule)
    order = (0, 1, 2, 3) if layout == "first" else (0, 2, 3, 1)
    back = tuple(numpy.argsort(order))
    laid = [numpy.ascontiguousarray(a.transpose(order)) for a in (x, w)]
    y = conv_fft.forward(*laid, bias, layout=layout)
    assert y.dtype == numpy.float16
    reference.close(y.transpose(back), exact, size, BOUND)
    gx, gw, gbias = conv_fft.backward(*laid, y, layout=layout)
    assert gx.dtype == numpy.float16 and gw.dtype == gbias.dtype == numpy.float32
    gy = y.transpose(back)
    reference.close(gw.transpose(back), reference.weight_gradient(x, gy, w.shape, *rule),
                    reference.weight_gradient(abs(x), abs(gy), w.shape, *rule), BOUND)
    reference.close(gx.transpose(back), reference.data_gradient(x.shape, gy, w, *rule),
                    reference.data_gradient(x.shape, abs(gy), abs(w), *rule), BOUND)
    _, gw, _ = conv_fft.backward(*laid, y, layout=layout, weight_grad_dtype="float16")
    assert gw.dtype == numpy.float16


def test_plan_checks_the_types_of_float32_weights(random):
    problem = conv_fft.Problem((1, 2, 9), (2, 2, 3), dtype="float16", weight_dtype="float32")
    plan = conv_fft.Plan(problem, "cpu")
    x, w, bias = (random.standard_normal(s).astype("f") for s in ((1, 2, 9), (2, 2, 3), (2,)))
    half = [a.astype("float16") for a in (x, w, bias)]
    y = plan.forward(half[0], w, bias)
    assert y.dtype == numpy.float16
    for given, said in (((x, w, bias), "x is of float32; it must be of float16"),
                        ((half[0], half[1], bias), "w is of float16; it must be of float32"),
                        ((half[0], w, half[2]), "bias is of float16; it must be of float32")):
        with pytest.raises(TypeError, match=said):
            plan.forward(*given)
    with pytest.raises(TypeError, match="w is of float16; it must be of float32"):
        plan.backward(half[0], half[1], y)
    gx, gw, gbias = plan.backward(half[0], w, y)
    assert gx.dtype == numpy.float16 and gw.dtype == gbias.dtype == numpy.float32
