# SPDX-License-Identifier: Apache-2.0
"""Convolutions as calls. A plan is made once for each kind of call, and stays in `plans`."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

from . import arrays
from . import _structs as structs
from .errors import InvalidArgument
from .plan import plans
from ._values import integer
from .problem import Axes, Padding, Problem


def _strides(seen, last):
    """None for a dense array, else its element strides in the order of Problem."""
    if arrays.is_dense(seen.shape, seen.strides):
        return None
    return (seen.strides[0], seen.strides[-1], *seen.strides[1:-1]) if last else seen.strides


def _weight_dtype(seen, w):
    """Weights in float32 beside 16-bit arrays stay as they are; all others have the type of the other arrays."""
    return "float32" if w.dtype == "float32" and seen.dtype in ("float16", "bfloat16") else None


def _check_shapes(x, w, last, weights_last, groups, call):
    """Name the caller's arrays, which Problem knows by their shapes only."""
    if not 3 <= len(x) <= 5 or len(w) != len(x):
        raise ValueError("x has the shape %s and w has %s; both must have 3, 4 or 5 axes%s" % (x, w, call))
    channels, of_group = x[-1 if last else 1], w[-1 if weights_last else 1]
    if channels != of_group * groups:
        raise ValueError("x has the shape %s, with %d channels; it must have %d, as w has the shape %s and %d channels "
                         "for each of %d groups%s" % (x, channels, of_group * groups, w, of_group, groups, call))


def _check_gradient(problem, gy, call):
    try:
        y = problem.output_shape
    except InvalidArgument as error:
        raise InvalidArgument(str(error) + call) from None
    if gy != y:
        raise ValueError("gy has the shape %s; it must have the shape of y, %s%s" % (gy, y, call))


def _plan(passes, x_shape, w_shape, name, seen, options, views, *, x=None, w=None, y=None, gy_shape=None):
    """The plan of a call. `gy_shape` is given by backward()."""
    layout, weight_layout = options.get("layout", "first"), options.get("weight_layout")
    last, weights_last = layout == "last", (weight_layout or layout) == "last"
    if seen.dtype not in structs.DTYPES:
        raise ValueError("%s has the dtype %r; it must be one of %s"
                         % (name, seen.dtype, ", ".join(map(repr, structs.DTYPES))))
    call = ""
    if gy_shape is not None:
        call = (". The call was conv_fft.backward(x, w, gy) with x of the shape %s, w of %s and gy of %s, in this order"
                % (tuple(x_shape), tuple(w_shape), tuple(gy_shape)))
    if layout in structs.LAYOUTS and (weight_layout or layout) in structs.LAYOUTS:
        _check_shapes(tuple(x_shape), tuple(w_shape), last, weights_last, integer(options["groups"], "groups", 1), call)
    problem = Problem(x_shape, w_shape, dtype=seen.dtype, x_stride=x and _strides(x, last),
                      w_stride=w and _strides(w, weights_last), y_stride=y and _strides(y, last), **options)
    if gy_shape is not None:
        _check_gradient(problem, tuple(gy_shape), call)
    # On a GPU most arrays begin at multiples of 16 bytes. A plan for others has more kernels.
    aligned = seen.device < 0 or not any(view and view.pointer % 16 for view in views)
    return plans.get(problem, seen.device, passes, any_alignment=not aligned)


def forward(x: Any, w: Any, bias: Any = None, *, stride: Axes = 1, padding: Padding = 0, dilation: Axes = 1,
            groups: int = 1, padding_mode: str = "zeros", layout: str = "first", weight_layout: Optional[str] = None,
            math: str = "default", out: Any = None, stream: Any = None) -> Any:
    """y = conv(x, w) + bias: the cross-correlation of deep-learning frameworks.

    x       (N, C, D1..Dr), r = 1..3; for layout "last" (N, D1..Dr, C)
    w       (K, C/groups, T1..Tr); for weight_layout "last" (None: as layout) (K, T1..Tr, C/groups)
    bias    (K,) or None
    out     the result, of y's shape (N, K, M1..Mr) or (N, M1..Mr, K); None: a new array
    The other arguments are those of Problem; `stream` is that of Plan.forward.

    Arrays are of NumPy, torch, CuPy, numba or JAX, all of one package, device and type (float32, float16, bfloat16,
    float64). Beside float16 and bfloat16, w and bias may be of float32. No stride may be negative, not all may be 0,
    and a bias must be dense. Arrays are not copied, except NumPy arrays that break these rules, are not aligned, or
    have foreign byte order. `out` must not share memory with the other arrays. No gradient is recorded: conv_fft.torch
    does that.
    Raises TypeError and ValueError for arrays that do not fit, conv_fft.Error for what the library refuses."""
    kind = arrays.kind_of(x, "x")
    x_seen, w_seen = kind.view(x, "x"), kind.view(w, "w")
    y_seen = None if out is None else kind.target(out, "out")
    plan = _plan(structs.FORWARD, x_seen.shape, w_seen.shape, "x", x_seen,
                 dict(stride=stride, padding=padding, dilation=dilation, groups=groups, padding_mode=padding_mode,
                      layout=layout, weight_layout=weight_layout, math=math,
                      weight_dtype=_weight_dtype(x_seen, w_seen)),
                 (x_seen, w_seen, y_seen), x=x_seen, w=w_seen, y=y_seen)
    return plan.forward(x_seen.owner, w_seen.owner, bias, out=out, stream=stream)


def backward(x: Any, w: Any, gy: Any, *, need: Sequence[str] = ("x", "w", "bias"), stride: Axes = 1,
             padding: Padding = 0, dilation: Axes = 1, groups: int = 1, padding_mode: str = "zeros",
             layout: str = "first", weight_layout: Optional[str] = None, math: str = "default",
             weight_grad_dtype: Optional[str] = None, stream: Any = None) -> Tuple[Any, Any, Any]:
    """The gradients (gx, gw, gbias) of a loss from gy, its gradient for y.

    x, w    those of `forward`: always pass both, because they also give the shapes
    gy      of y's shape, (N, K, M1..Mr) or (N, M1..Mr, K)
    need    the wanted gradients: "x", "w", "bias", or several of them; the others are None
    gx, gw, gbias       new arrays, of the shapes of x, w and (K,)
    weight_grad_dtype   the type of gw and gbias: None for the type of w, "float32", or the type of gy
    The other shapes, arguments and errors are those of `forward`. For gx and gw in one call both x and w must be dense;
    NumPy arrays that are not dense are copied."""
    need = arrays.gradients(need, "need")
    kind = arrays.kind_of(x, "x")
    x_seen, w_seen, gy_seen = kind.view(x, "x"), kind.view(w, "w"), kind.view(gy, "gy")
    passes = (structs.BACKWARD_DATA if "x" in need else 0) | (structs.BACKWARD_WEIGHTS if "w" in need else 0)
    strides = {}
    if {"x", "w"} <= need:
        # Each is read, and its gradient has the same strides.
        x_seen, w_seen = kind.dense("x", x_seen), kind.dense("w", w_seen)
    elif "w" in need:
        strides["x"] = x_seen
    elif "x" in need:
        strides["w"] = w_seen
    plan = _plan(passes or structs.BACKWARD_DATA, x_seen.shape, w_seen.shape, "gy", gy_seen,
                 dict(stride=stride, padding=padding, dilation=dilation, groups=groups, padding_mode=padding_mode,
                      layout=layout, weight_layout=weight_layout, math=math, weight_grad_dtype=weight_grad_dtype,
                      weight_dtype=_weight_dtype(gy_seen, w_seen)),
                 (x_seen, w_seen, gy_seen), y=gy_seen, gy_shape=gy_seen.shape, **strides)
    return plan.backward(x_seen.owner if "w" in need else None, w_seen.owner if "x" in need else None, gy_seen.owner,
                         need=need, stream=stream)
