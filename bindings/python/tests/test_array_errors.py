# SPDX-License-Identifier: Apache-2.0
"""Errors of conv_fft.forward, .backward and Plan: they name the caller's arrays, their values and what is allowed."""
import threading

import conv_fft
import numpy
import pytest
from conftest import HAS_GPU


def test_errors_name_the_callers_arrays(random):
    x, w, gy = (random.standard_normal(shape) for shape in ((1, 2, 9), (2, 2, 3), (1, 2, 7)))
    plan = conv_fft.Plan(conv_fft.Problem(x.shape, w.shape, dtype="float64"), "cpu")
    masked = numpy.ma.masked_array(x, x > 0)
    for call, said in ((lambda: conv_fft.forward(x[0, 0], w), r"^x has the shape \(9,\) and w has \(2, 2, 3\); both"),
                       (lambda: conv_fft.forward(x, w[:, :1]), r"^x has the shape \(1, 2, 9\), with 2 channels; it "
                        r"must have 1, as w has the shape \(2, 1, 3\) and 1 channels for each of 1 groups"),
                       (lambda: conv_fft.forward([1.0], w), "^x is of type list, which is no array"),
                       (lambda: conv_fft.forward(x, [1.0]), "^w is of type list; it must be a NumPy array"),
                       (lambda: conv_fft.forward(x, w, [1.0]), "^bias is of type list; it must be a NumPy array"),
                       (lambda: conv_fft.forward(x, w, out=[1.0]), "^out is of type list; it must be a NumPy array"),
                       (lambda: plan.forward(x, w, out=gy[..., 1:]), r"^out has the shape \(1, 2, 6\)"),
                       (lambda: plan.forward(x, w, out=gy.astype("f")), "^out is of float32; it must be of float64"),
                       (lambda: conv_fft.backward([1.0], w, gy), "^x is of type list, which is no array"),
                       (lambda: conv_fft.backward(x, w, [1.0]), "^gy is of type list; it must be"),
                       (lambda: plan.backward(x, w, gy, out={"w": [1.0]}), r"^out\['w'\] is of type list; it must be"),
                       (lambda: conv_fft.forward(masked, w), r"^x is a NumPy masked array.*x\.filled\(0\)"),
                       (lambda: plan.forward(x, numpy.ma.masked_array(w)), "^w is a NumPy masked array"),
                       (lambda: plan.forward(x, w, out=numpy.ma.zeros(gy.shape)), "^out is a NumPy masked array"),
                       (lambda: conv_fft.forward(x, w, padding=9, padding_mode="reflect"), "with padding REFLECT and")):
        with pytest.raises((ValueError, TypeError), match=said):
            call()


def test_arguments_in_another_order_are_named(random):
    """gy, x, w instead of x, w, gy, where each of the three shapes shows it: channels, extents, the shape of y."""
    for x, w, padding, said in (((2, 3, 9, 9), (4, 3, 3, 3), 1, r"^x has the shape \(2, 4, 9, 9\), with 4 channels; "),
                                ((2, 3, 9, 9), (3, 3, 5, 5), 0, "kernel.* 9"),
                                ((2, 3, 9, 9), (3, 3, 5, 5), 2, r"^gy has the shape \(3, 3, 5, 5\); it must have ")):
        x, w = random.standard_normal(x), random.standard_normal(w)
        y = conv_fft.forward(x, w, padding=padding)
        with pytest.raises(ValueError, match=said) as raised:
            conv_fft.backward(y, x, w, padding=padding)
        order = ("The call was conv_fft.backward(x, w, gy) with x of the shape %s, w of %s and gy of %s, in this order"
                 % (y.shape, x.shape, w.shape))
        assert str(raised.value).endswith(order)
        for one, other in zip(conv_fft.backward(x, w, y, padding=padding),
                              conv_fft.backward(gy=y, w=w, x=x, padding=padding)):
            numpy.testing.assert_array_equal(one, other)
    with pytest.raises(TypeError, match="positional"):
        conv_fft.backward(x, w, y, "x")


def test_errors_name_the_argument(random):
    x, w = random.standard_normal((1, 2, 5)), random.standard_normal((2, 2, 9))
    with pytest.raises(conv_fft.InvalidArgument, match="kernel") as raised:
        conv_fft.forward(x, w)
    assert raised.value.status == 1 and isinstance(raised.value, (ValueError, conv_fft.Error))
    plan = conv_fft.Plan(conv_fft.Problem((1, 2, 9), (2, 2, 3), dtype="float64"), "cpu")
    with pytest.raises(ValueError, match=r"x has the shape \(1, 2, 5\)"):
        plan.forward(x, w[:, :, :3])
    with pytest.raises(TypeError, match="float32"):
        plan.forward(random.standard_normal((1, 2, 9)).astype("f"), w[:, :, :3].copy())
    with pytest.raises(ValueError, match="strides"):
        plan.forward(random.standard_normal((1, 2, 18))[:, :, ::2], w[:, :, :3].copy())
    with pytest.raises(TypeError, match="list"):
        conv_fft.forward([1.0], w)
    for wrong, said in ((lambda: conv_fft.Plan(plan.problem, "cpu", passes="back"), "passes is 'back'"),
                        (lambda: plan.describe("back"), "pass_ is 'back'"),
                        (lambda: conv_fft.Plan(plan.problem, "cpu", tuning="best"), "tuning is 'best'"),
                        (lambda: conv_fft.candidates(plan.problem, "cpu", mode="best"), "mode is 'best'"),
                        (lambda: conv_fft.cache.merge("file", "oldest"), "policy is 'oldest'")):
        with pytest.raises(ValueError, match=said):
            wrong()
    with pytest.raises(ValueError, match="channels"):
        conv_fft.forward(x, w[:, :1], groups=1)
    with pytest.raises(conv_fft.NoDevice if HAS_GPU else conv_fft.Error):
        conv_fft.context(99)


def test_an_error_is_that_of_its_thread(random):
    found = {}

    def fail(kernel):
        for _ in range(50):
            try:
                conv_fft.Plan("in=1x1x5 kernel=%d" % kernel, "cpu")
            except conv_fft.Error as error:
                found.setdefault(kernel, set()).add(str(error))

    threads = [threading.Thread(target=fail, args=(kernel,)) for kernel in range(6, 14)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and all(len(sentences) == 1 and str(kernel) in min(sentences)
                                   for kernel, sentences in found.items())
