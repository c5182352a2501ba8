# SPDX-License-Identifier: Apache-2.0
"""One convolution layer as a value."""
from __future__ import annotations

import ctypes
from typing import Optional, Sequence, Tuple, Union

from . import _structs as structs
from ._library import check, lib
from ._values import c_string, integer, named

Axes = Union[int, Sequence[int]]
Padding = Union[int, str, Sequence[Union[int, Tuple[int, int]]]]
Shape = Sequence[int]


def _each(value, count):
    """The elements of a sequence; any other value is repeated `count` times."""
    try:
        return tuple(value)
    except TypeError:
        return (value,) * count


def _per_axis(value, rank, name):
    axes = _each(value, rank)
    if len(axes) != rank:
        raise ValueError("%s is %r; it must be an int or %d ints" % (name, value, rank))
    return tuple(integer(axis, name, 1) for axis in axes)


def pads(padding, kernel, stride, dilation):
    """Padding before and after each axis, from an int, one int or pair (before, after) per axis, "same" or "valid"."""
    rank = len(kernel)
    pairs = []
    if not isinstance(padding, str):
        pairs = [_each(pad, 2) for pad in _each(padding, rank)]
    elif padding == "valid":
        pairs = [(0, 0)] * rank
    elif padding == "same":
        if any(step != 1 for step in stride):
            raise ValueError("padding is 'same' and stride is %r; padding 'same' needs stride 1"
                             % (tuple(stride),))
        both = [(taps - 1) * step for taps, step in zip(kernel, dilation)]
        pairs = [(pad // 2, pad - pad // 2) for pad in both]
    if len(pairs) != rank or any(len(pair) != 2 for pair in pairs):
        raise ValueError("padding is %r; it must be an int, %d ints or pairs (before, after), 'same' or 'valid'"
                         % (padding, rank))
    return tuple(integer(pair[0], "padding") for pair in pairs), tuple(integer(pair[1], "padding") for pair in pairs)


class Problem:
    """A convolution layer: shapes and arithmetic, nothing about a device.

    input_shape     of x: (N, C, D1..Dr) for layout "first", (N, D1..Dr, C) for "last"; r is 1, 2 or 3
    weight_shape    of w: (K, C/groups, T1..Tr), for weight_layout "last" (K, T1..Tr, C/groups)
    stride, dilation  an int, or one per axis
    padding         an int, one per axis, pairs (before, after) per axis, "same" (stride 1) or "valid"
    padding_mode    "zeros", "circular", "reflect" or "replicate"
    dtype           "float32", "float16", "bfloat16" or "float64": of all tensors
    weight_dtype    of w and bias: None (dtype), or "float32" beside 16-bit tensors (master weights)
    weight_grad_dtype   of gw and gbias: None (weight_dtype), dtype, or "float32" for 16-bit tensors
    math            "default", "fp32", "tf32", "half" or "fp64": the arithmetic inside (conv_fft.h)
    x_stride, y_stride, w_stride   element strides {batch, channel, axes} (of w {out, in, axes}); None: dense in the
                                   layout

    y has the shape (N, K, M1..Mr), or (N, M1..Mr, K): `output_shape`. Two problems with the same fields are equal and
    have the same hash. Raises ValueError for a value of the wrong kind or range. The library checks the whole problem
    in `output_shape` and in Plan."""

    def __init__(self, input_shape: Shape, weight_shape: Shape, *, stride: Axes = 1, padding: Padding = 0,
                 dilation: Axes = 1, groups: int = 1, padding_mode: str = "zeros", layout: str = "first",
                 weight_layout: Optional[str] = None, dtype: str = "float32", weight_grad_dtype: Optional[str] = None,
                 math: str = "default", x_stride: Optional[Shape] = None, y_stride: Optional[Shape] = None,
                 w_stride: Optional[Shape] = None, weight_dtype: Optional[str] = None):
        x, w = _each(input_shape, 0), _each(weight_shape, 0)
        rank = len(x) - 2
        if rank not in (1, 2, 3) or len(w) != rank + 2:
            raise ValueError("input_shape has %d axes and weight_shape %d; both must have 3, 4 or 5" % (len(x), len(w)))
        weight_layout = layout if weight_layout is None else weight_layout
        x = _channels_second(x, named(structs.LAYOUTS, layout, "layout"), "input_shape")
        w = _channels_second(w, named(structs.LAYOUTS, weight_layout, "weight_layout"), "weight_shape")
        groups = integer(groups, "groups", 1)
        if x[1] != w[1] * groups:
            raise ValueError("input_shape has %d channels; it must have %d, as weight_shape has %d for each of %d "
                             "groups" % (x[1], w[1] * groups, w[1], groups))
        p = structs.Problem()
        check(lib.conv_fft_problem_init(ctypes.byref(p), rank))
        p.batch, p.in_channels, p.out_channels, p.groups = x[0], x[1], w[0], groups
        strides, dilations = _per_axis(stride, rank, "stride"), _per_axis(dilation, rank, "dilation")
        before, after = pads(padding, w[2:], strides, dilations)
        for field, values in (("input", x[2:]), ("kernel", w[2:]), ("stride", strides), ("dilation", dilations),
                              ("pad_before", before), ("pad_after", after)):
            getattr(p, field)[:rank] = values
        for field, values in (("x_stride", x_stride), ("y_stride", y_stride), ("w_stride", w_stride)):
            if values is not None:
                steps = _each(values, 0)
                if len(steps) != rank + 2:
                    raise ValueError("%s is %r; it must be None or %d ints" % (field, values, rank + 2))
                getattr(p, field)[:rank + 2] = [integer(step, field) for step in steps]
        p.padding = named(structs.PADDINGS, padding_mode, "padding_mode")
        p.tensor_layout, p.weight_layout = structs.LAYOUTS[layout], structs.LAYOUTS[weight_layout]
        p.dtype = named(structs.DTYPES, dtype, "dtype")
        p.fp32_weights = weight_dtype is not None and _has_fp32_weights(p.dtype, weight_dtype)
        p.weight_grad_dtype = structs.DTYPE_SAME
        if weight_grad_dtype is not None:
            p.weight_grad_dtype = named(structs.DTYPES, weight_grad_dtype, "weight_grad_dtype")
        p.math = named(structs.MATHS, math, "math")
        self.struct = p
        self._key = None

    @classmethod
    def parse(cls, line: str) -> Problem:
        """The problem of a line such as `in=8x16x32x32 out=32 kernel=9x9 pad=same`. See conv_fft_problem_parse()."""
        made = cls.__new__(cls)
        made.struct, made._key = structs.Problem(), None
        check(lib.conv_fft_problem_parse(c_string(line, "line"), ctypes.byref(made.struct), None, 0))
        if made.struct.rank == 0:
            raise ValueError("line is %r; it must hold a problem" % (line,))
        return made

    @property
    def line(self) -> str:
        """The problem as a line. Element strides are not part of the line."""
        text = ctypes.create_string_buffer(1024)
        check(lib.conv_fft_problem_format(ctypes.byref(self.struct), text, len(text)))
        return text.value.decode()

    @property
    def rank(self) -> int:
        return self.struct.rank

    @property
    def dtype(self) -> str:
        return structs.DTYPE_NAMES[self.struct.dtype]

    @property
    def weight_dtype(self) -> str:
        """The type of w and bias."""
        return "float32" if self.struct.fp32_weights else self.dtype

    @property
    def weight_grad_dtype(self) -> str:
        kind = self.struct.weight_grad_dtype
        return self.weight_dtype if kind == structs.DTYPE_SAME else structs.DTYPE_NAMES[kind]

    @property
    def input_shape(self) -> Tuple[int, ...]:
        p = self.struct
        return _in_layout((p.batch, p.in_channels, *p.input[:p.rank]), p.tensor_layout)

    @property
    def weight_shape(self) -> Tuple[int, ...]:
        p = self.struct
        return _in_layout((p.out_channels, p.in_channels // p.groups, *p.kernel[:p.rank]), p.weight_layout)

    @property
    def output_shape(self) -> Tuple[int, ...]:
        """The shape of y in the problem's layout. Checks the whole problem; raises InvalidArgument if it is wrong."""
        p = self.struct
        extents = structs.Axes()
        check(lib.conv_fft_problem_output(ctypes.byref(p), extents))
        return _in_layout((p.batch, p.out_channels, *extents[:p.rank]), p.tensor_layout)

    @property
    def key(self) -> bytes:
        """The bytes of the C struct. Equality and hash use them."""
        if self._key is None:
            self._key = bytes(self.struct)
        return self._key

    def __eq__(self, other):
        return isinstance(other, Problem) and self.key == other.key

    def __hash__(self):
        return hash(self.key)

    def __repr__(self):
        try:
            return "Problem(%s)" % self.line
        except RuntimeError as error:
            return "Problem(invalid: %s)" % error


def _has_fp32_weights(dtype, weight_dtype):
    kind, halves = named(structs.DTYPES, weight_dtype, "weight_dtype"), ("float16", "bfloat16")
    if kind != dtype and not (weight_dtype == "float32" and structs.DTYPE_NAMES[dtype] in halves):
        raise ValueError("weight_dtype is %r and dtype is %r; weight_dtype must be None, dtype, or 'float32' beside "
                         "float16 and bfloat16" % (weight_dtype, structs.DTYPE_NAMES[dtype]))
    return kind != dtype


def as_problem(problem):
    """The Problem, from a Problem or a problem line."""
    if isinstance(problem, Problem):
        return problem
    if isinstance(problem, str):
        return Problem.parse(problem)
    raise TypeError("problem is %r; it must be a Problem or a problem line" % (problem,))


def _channels_second(shape, last, name):
    shape = tuple(integer(extent, name) for extent in shape)
    return (shape[0], shape[-1], *shape[1:-1]) if last else shape


def _in_layout(shape, last):
    return (shape[0], *shape[2:], shape[1]) if last else tuple(shape)
