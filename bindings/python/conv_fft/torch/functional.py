# SPDX-License-Identifier: Apache-2.0
"""torch.nn.functional's convolutions, with the same arguments and results, computed by conv_fft if supported.

Also causal_conv1d() and causal_conv1d_update(), which torch does not have."""
from __future__ import annotations

from typing import Optional, Sequence, Union

import torch
import torch.autograd.forward_ad as forward_ad
import torch.nn.functional as F
from torch import Tensor
from torch.nn.modules.utils import _pair, _single, _triple

from . import _entry, _ops
from ._precision import is_exact, is_exact_traced

Axes = Union[int, Sequence[int]]

_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
_strided, _recording = torch.strided, torch.is_grad_enabled
_look_up = _entry.look_up
_compiling = torch.compiler.is_compiling
_functorch = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)
_modes_active = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)
_tracing = torch._C._get_tracing_state
_for_onnx = torch.onnx.is_in_onnx_export  # ONNX has torch's operators only
# Faster than to ask for one kind of device. A torch without it asks for the kind.
_autocasts = getattr(torch._C, "_is_any_autocast_enabled", lambda: True)
_AXES = {1: _single, 2: _pair, 3: _triple}


def _pads(padding, kernel, stride, dilation):
    """Padding before each axis, then after; None if torch has to report an error."""
    if isinstance(padding, str):
        if padding == "valid":
            return (0,) * (2 * len(kernel))
        if padding != "same" or any(step != 1 for step in stride):
            return None
        total = [(taps - 1) * step for taps, step in zip(kernel, dilation)]
        return (*(pad // 2 for pad in total), *(pad - pad // 2 for pad in total))
    return (*padding, *padding)


def _numbers(*tuples):
    return all(isinstance(value, int) and not isinstance(value, bool) for values in tuples for value in values)


def per_axis(value, rank):
    """A tuple with one value per axis, from one value for all axes or one for each."""
    try:
        return tuple(_AXES[rank](value))
    except TypeError:  # a tensor without axes, which torch accepts as a number
        return ()


def config_of(weight_shape, stride, padding, dilation, groups, mode):
    """The parameters of a layer as the operators take them; None if torch has to report an error."""
    rank = len(weight_shape) - 2
    if rank not in _AXES:
        return None
    stride, dilation = per_axis(stride, rank), per_axis(dilation, rank)
    padding = padding if isinstance(padding, str) else per_axis(padding, rank)
    if {len(stride), len(dilation), rank if isinstance(padding, str) else len(padding)} != {rank}:
        return None
    pads = _pads(padding, weight_shape[2:], stride, dilation)
    if pads is None or not _numbers(stride, dilation, pads, (groups,)):
        return None
    if min(pads) < 0 or min(stride) < 1 or min(dilation) < 1:
        return None
    return stride, pads, dilation, groups, mode


def autocasts(kind):
    """Whether autocast is on for a kind of device."""
    return (kind == "cuda" or kind == "cpu") and torch.is_autocast_enabled(kind)


def autocast(kind, x, w, bias):
    """x, w and bias as the library reads them under autocast on a kind of device, if it is on.

    x gets the type that autocast gives to convolutions. w and bias stay as they are if both are of FP32 beside 16-bit
    x; else they get this type, too."""
    if not autocasts(kind):
        return x, w, bias
    to = torch.get_autocast_dtype(kind)
    x = _cast(x, to)
    if _entry.has_fp32_weights(x.dtype, w.dtype) and (bias is None or bias.dtype is torch.float32):
        return x, w, bias
    return x, _cast(w, to), None if bias is None else _cast(bias, to)


def _cast(t, dtype):
    return t if t.dtype is dtype or t.dtype is torch.float64 or not t.is_floating_point() else t.to(dtype)


def types_fit(x, w, kind):
    """Whether torch accepts the types of operands that `autocast` returned for a kind of device."""
    return x.dtype in _entry.DTYPES and (x.dtype == w.dtype or _entry.has_fp32_weights(x.dtype, w.dtype)
                                         and autocasts(kind))


def _fits(x, w, bias, groups):
    """Whether torch accepts the shapes and types too. For others torch reports the error."""
    return (x.dim() == w.dim() and x.shape[1] == w.shape[1] * groups and w.shape[0] % groups == 0
            and types_fit(x, w, x.device.type) and x.device == w.device and x.device.type in ("cuda", "cpu")
            and (bias is None
                 or (bias.dtype == w.dtype and bias.device == w.device and tuple(bias.shape) == (w.shape[0],))))


def _other(x, w, bias, config, exact):
    """Unbatched calls, and calls under torch.compile, export and dispatch modes, which have to see the operator."""
    if x.dim() == w.dim() - 1:
        y = _computed(x.unsqueeze(0), w, bias, config, exact)
        return y if y is NotImplemented else y.squeeze(0)
    if (_compiling() or _modes_active()) and not _functorch() and not _for_onnx() and _fits(x, w, bias, config[3]):
        return torch.ops.conv_fft.forward(x, w, bias, *config, exact)
    return NotImplemented


def convolution(x, w, bias, config, precision=None):
    """The convolution with the parameters of `config_of`, or NotImplemented if torch has to compute it.

    precision: the name of a layer's own, or None for that in force."""
    return _computed(x, w, bias, config, is_exact_traced(precision) if _compiling() else is_exact(precision))


def _computed(x, w, bias, config, exact):
    if not isinstance(x, Tensor):
        return NotImplemented  # a proxy of torch.fx
    if _compiling() or _tracing() is not None:
        return _other(*autocast(x.device.type, x, w, bias), config, exact)
    return eager(x, w, bias, config, exact)


def eager(x, w, bias, config, exact, site=None):
    """As `convolution`, for a call that is neither compiled nor traced, of a layer's _site.Site."""
    epoch, given = _entry.epoch, (x, w, bias)
    casts = _autocasts() and isinstance(x, Tensor) and autocasts(x.device.type)
    if casts:
        x, w, bias = autocast(x.device.type, x, w, bias)
    cast = x
    if (_modes_active() or type(x) not in _PLAIN or type(w) not in _PLAIN or x.layout is not _strided or _functorch()
            or forward_ad._current_level >= 0):
        return _other(x, w, bias, config, exact) if isinstance(x, Tensor) else NotImplemented
    if x.dtype is not w.dtype and not types_fit(x, w, x.device.type):
        return NotImplemented
    x, w, bias = x.resolve_neg(), w.resolve_neg(), None if bias is None else bias.resolve_neg()
    need, recorded = _needs(x, w, bias)
    entry = _look_up(x, w, bias, config, need, exact)
    if entry is None:
        return _other(x, w, bias, config, exact)
    if site is not None and x is cast and w is given[1] and bias is given[2]:
        site.remember(*given, entry, _ops.CONVOLUTION, recorded, casts, epoch)
    return _ops.CONVOLUTION[recorded](x, w, bias, entry)


def _needs(x, w, bias):
    """The passes of the gradients that will be needed, and whether autograd records the call."""
    if not _recording():
        return 0, False
    need = (2 if x.requires_grad else 0) | (4 if w.requires_grad else 0)
    return need, need > 0 or bias is not None and bias.requires_grad


def _conv(rank, x, w, bias, stride, padding, dilation, groups):
    config = None
    if isinstance(w, Tensor) and w.dim() == rank + 2:
        config = config_of(w.shape, stride, padding, dilation, groups, 0)
    y = NotImplemented if config is None else convolution(x, w, bias, config)
    return _CONVOLUTIONS[rank](x, w, bias, stride, padding, dilation, groups) if y is NotImplemented else y


_CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def conv1d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Axes = 1,
           padding: Union[Axes, str] = 0, dilation: Axes = 1, groups: int = 1) -> Tensor:
    """torch.nn.functional.conv1d()."""
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Axes = 1,
           padding: Union[Axes, str] = 0, dilation: Axes = 1, groups: int = 1) -> Tensor:
    """torch.nn.functional.conv2d()."""
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Axes = 1,
           padding: Union[Axes, str] = 0, dilation: Axes = 1, groups: int = 1) -> Tensor:
    """torch.nn.functional.conv3d()."""
    return _conv(3, input, weight, bias, stride, padding, dilation, groups)


def transposed_extents(x, w, config, more):
    """The extents of the output of a transposed convolution with `more` elements of output padding on each axis."""
    step, pads, dilated = config[:3]
    return [(x.shape[2 + a] - 1) * step[a] - 2 * pads[a] + dilated[a] * (w.shape[2 + a] - 1) + more[a] + 1
            for a in range(len(step))]


def transposed(x, w, bias, stride, padding, output_padding, groups, dilation, precision=None, site=None):
    """The transposed convolution as a convolution's data gradient, or NotImplemented if torch has to compute it."""
    if not isinstance(x, Tensor) or not isinstance(w, Tensor):
        return NotImplemented  # proxies of torch.fx
    rank = w.dim() - 2
    config = config_of(w.shape, stride, padding, dilation, groups, 0)
    more = () if config is None else per_axis(output_padding, rank)
    if (config is None or isinstance(padding, str) or groups < 1 or len(more) != rank or not _numbers(more)
            or any(not 0 <= m < step for m, step in zip(more, config[0]))):
        return NotImplemented
    epoch, given, casts = _entry.epoch, (x, w, bias), autocasts(x.device.type)
    x, w, bias = autocast(x.device.type, x, w, bias)
    cast = x
    unbatched = x.dim() == w.dim() - 1
    if unbatched:
        x = x.unsqueeze(0)
    if (x.dim() != w.dim() or x.shape[1] != w.shape[0] or w.shape[0] % groups or not types_fit(x, w, x.device.type)
            or x.device != w.device or x.device.type not in ("cuda", "cpu")
            or (bias is not None and (bias.dtype != w.dtype or tuple(bias.shape) != (w.shape[1] * groups,)))
            or x.layout is not torch.strided or _functorch() or forward_ad._current_level >= 0
            or _tracing() is not None or _for_onnx()
            or not (torch.compiler.is_compiling() or _modes_active() or type(x) in _PLAIN and type(w) in _PLAIN)):
        return NotImplemented
    size = transposed_extents(x, w, config, more)
    if not torch.compiler.is_compiling() and (0 in x.shape or 0 in w.shape or min(size) < 1):
        return NotImplemented
    exact = is_exact_traced(precision) if _compiling() else is_exact(precision)
    y = None
    if not (_compiling() or _modes_active()):
        x, w, bias = x.resolve_neg(), w.resolve_neg(), None if bias is None else bias.resolve_neg()
        entry = _entry.look_up(_ops.result_of(w, x, size, groups), w, None, config, 2 | _entry.GRADIENTS_ONLY, exact)
        if entry is not None:
            recorded = _needs(x, w, bias)[1]
            if site is not None and x is cast and w is given[1] and bias is given[2]:
                site.remember(*given, entry, _ops.TRANSPOSED, recorded, casts, epoch)
            y = _ops.TRANSPOSED[recorded](x, w, bias, entry)
    if y is None:
        y = torch.ops.conv_fft.backward_data(w, x, size, *config, exact)
        if bias is not None:
            y = (y + bias.view(1, -1, *(1,) * rank)).to(y.dtype)
    return y.squeeze(0) if unbatched else y


def _conv_transpose(rank, x, w, bias, stride, padding, output_padding, groups, dilation):
    y = NotImplemented
    if isinstance(w, Tensor) and w.dim() == rank + 2:
        y = transposed(x, w, bias, stride, padding, output_padding, groups, dilation)
    if y is NotImplemented:
        y = _TRANSPOSED[rank](x, w, bias, stride, padding, output_padding, groups, dilation)
    return y


def conv_transpose1d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Axes = 1, padding: Axes = 0,
                     output_padding: Axes = 0, groups: int = 1, dilation: Axes = 1) -> Tensor:
    """torch.nn.functional.conv_transpose1d()."""
    return _conv_transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Axes = 1, padding: Axes = 0,
                     output_padding: Axes = 0, groups: int = 1, dilation: Axes = 1) -> Tensor:
    """torch.nn.functional.conv_transpose2d()."""
    return _conv_transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Axes = 1, padding: Axes = 0,
                     output_padding: Axes = 0, groups: int = 1, dilation: Axes = 1) -> Tensor:
    """torch.nn.functional.conv_transpose3d()."""
    return _conv_transpose(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


from ._causal import causal_conv1d, causal_conv1d_update  # noqa: E402,F401
