# SPDX-License-Identifier: Apache-2.0
"""Values of the wrong kind or range are refused before the C call, with the argument's name. None is cut or wrapped."""
import re

import conv_fft
import numpy
import pytest
from conv_fft import _context

LINE = "in=1x2x9x9 kernel=3x3"
X, W = (1, 2, 9, 9), (2, 2, 3, 3)


@pytest.mark.parametrize("arguments", [
    dict(stride=2 ** 64 + 1), dict(stride=(1, 2 ** 63)), dict(stride=1.5), dict(stride=None), dict(stride="12"),
    dict(stride=0), dict(dilation=2 ** 64 + 1), dict(dilation=(1, 1, 1)), dict(padding=2 ** 64),
    dict(padding=((0, 1), (0, 2 ** 64))), dict(padding=1.5), dict(padding=(1, 2, 3)),
    dict(padding=numpy.ones((2, 3), int)), dict(padding="some"),
    dict(padding="same", dilation=2 ** 63 - 1, weight_shape=(2, 2, 9, 9)), dict(groups="1"), dict(groups=0),
    dict(groups=2 ** 64 + 1), dict(input_shape=(2 ** 64 + 2, 2, 9, 9)), dict(input_shape=(2.5, 2, 9, 9)),
    dict(input_shape="1299"), dict(input_shape=None), dict(weight_shape=("2", 2, 3, 3)), dict(weight_shape="2233"),
    dict(x_stride=(9, 9, 1)), dict(y_stride=(162, 81, 9, 1, 1)), dict(w_stride=(18, 9, 3, 2 ** 64 + 1)),
    dict(x_stride=5), dict(math=["fp32"]), dict(layout=0),
    dict(weight_dtype="float16"), dict(weight_dtype="float32", dtype="float64"), dict(weight_dtype="int8"),
    dict(weight_dtype="bfloat16", dtype="float16")])
def test_fields_of_a_problem(arguments):
    with pytest.raises(ValueError, match="^%s " % next(iter(arguments))):
        conv_fft.Problem(**{"input_shape": X, "weight_shape": W, **arguments})


def test_integers_of_other_packages():
    plain = conv_fft.Problem(X, W, stride=2, padding=((1, 2), (1, 2)), x_stride=(162, 81, 9, 1))
    other = conv_fft.Problem(numpy.array(X), numpy.array(W), stride=numpy.int8(2),
                             padding=numpy.array([[1, 2], [1, 2]]), groups=numpy.array(1),
                             x_stride=numpy.array((162, 81, 9, 1)))
    assert plain == other
    assert conv_fft.Problem(X, W, padding=numpy.array([1, 2])) == conv_fft.Problem(X, W, padding=(1, 2))


@pytest.mark.parametrize("arguments", [
    dict(passes=2 ** 32 + 1), dict(passes=8), dict(passes=None), dict(workspace_limit=-1),
    dict(workspace_limit=2 ** 64), dict(workspace_limit=1e6), dict(tune_milliseconds=2 ** 64), dict(tuning=["off"]),
    dict(strategies="abc"), dict(strategies=(None,) * 4), dict(strategies=5), dict(strategies=("own\0",)),
    dict(strategies=(5,)), dict(device=2 ** 32 - 2), dict(device=2 ** 70)])
def test_options_of_a_plan(arguments):
    with pytest.raises(ValueError, match="^%s " % next(iter(arguments))):
        conv_fft.Plan(LINE, **{"device": "cpu", **arguments})


def test_numbers_of_other_calls():
    plan = conv_fft.Plan(LINE, "cpu")
    for call, said in ((lambda: plan.profile("forward", 2 ** 32 + 1), "repeats"),
                       (lambda: conv_fft.tune([LINE], "cpu", milliseconds=2 ** 64 + 1), "milliseconds"),
                       (lambda: conv_fft.tune([LINE], "cpu", workspace_limit=-1), "workspace_limit"),
                       (lambda: conv_fft.candidates(LINE, "cpu", milliseconds=-1), "milliseconds"),
                       (lambda: conv_fft.autotune(milliseconds=1.5).__enter__(), "milliseconds")):
        with pytest.raises(ValueError, match="^%s is " % said):
            call()


def test_problems_of_no_kind():
    for wrong in (None, LINE.encode(), 5):
        for call in (lambda: conv_fft.Plan(wrong, "cpu"), lambda: conv_fft.tune([wrong], "cpu"),
                     lambda: conv_fft.candidates(wrong, "cpu")):
            with pytest.raises(TypeError, match="^problem is %s" % re.escape(repr(wrong))):
                call()


def test_texts_are_not_cut():
    for call, name in ((lambda: conv_fft.Plan(LINE + "\0 out=5", "cpu"), "line"),
                       (lambda: conv_fft.Problem.parse(None), "line"),
                       (lambda: conv_fft.cache.save("/tmp/a\0b", "cpu"), "path"),
                       (lambda: conv_fft.cache.load(5, "cpu"), "path"),
                       (lambda: conv_fft.cache.clear("/tmp/a\0b"), "path")):
        with pytest.raises(ValueError, match="^%s is " % name):
            call()


@pytest.mark.parametrize("device, number", [("cpu", -2), (None, -2), ("auto", -1), ("cuda", 0), ("cuda:1", 1), (3, 3),
                                            (-2, -2), (numpy.int64(-2), -2), (numpy.int32(1), 1)])
def test_names_of_devices(device, number):
    assert _context.device_number(device) == number


@pytest.mark.parametrize("device", ["cuda:-2", "cuda:-1", "cuda:x", "cuda:", "cuda:+1", "cuda: 1", "cuda:%d"
                                    % 2 ** 32, "cpu:0", "gpu", "1", "", 1.0, -3, 2 ** 32 - 2, 2 ** 70, b"cpu"])
def test_names_of_no_device(device):
    with pytest.raises(ValueError, match=r"^device is %s; it must be \"cpu\"" % re.escape(repr(device))):
        conv_fft.context(device)
